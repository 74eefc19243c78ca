/* Whole tensors of the model, assembled from the shards of all ranks. */
#ifndef MS_EXEC_RUNNER_WHOLE_WEIGHTS_H
#define MS_EXEC_RUNNER_WHOLE_WEIGHTS_H

#include "exec/runner/rank_run.h"

typedef struct ms_collection {
    ms_safe_file file; /* all weights, sorted by name */
    double **values;   /* elements of each tensor; 0 until ms_collection_fill */
} ms_collection;

/* Names and shapes of all weights of the model, sorted by name, without values. Lives in
 * cx->arena. */
ms_safe_file ms_job_weights(ms_ctx *cx, const ms_job *job);
/* The tensor with a name, of a file whose tensors are sorted by name; NULL: none. */
const ms_safe_tensor *ms_safe_find_sorted(const ms_safe_file *file, const char *name);

/* All weights of the model by their Hugging Face names. Lives in cx->arena. */
ms_collection ms_collection_make(ms_ctx *cx, const ms_job *job);

/* Copies the rank's shards into the whole tensors; if ranks run in several processes,
 * every process gets all elements. All ranks must call it. */
ms_status ms_collection_fill(ms_rank_run *r, ms_collection *collection,
                             ms_unit_content content);

#endif
