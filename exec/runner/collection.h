/* Whole tensors of the model, assembled from the shards of all ranks. */
#ifndef MS_EXEC_RUNNER_COLLECTION_H
#define MS_EXEC_RUNNER_COLLECTION_H

#include "exec/runner/rank_run.h"

typedef struct ms_collection {
    ms_safe_file file; /* tensors, sorted by name */
    double **values;   /* elements of each tensor; zero until ms_collection_fill */
} ms_collection;

/* All weights of the model under their Hugging Face names. Lives in cx->arena. */
ms_collection ms_collection_make(ms_ctx *cx, const ms_job *job);

/* Every rank adds the shards that it is responsible for; if the ranks run in several
 * processes, all processes get the whole tensors. All ranks call it. */
ms_status ms_collection_fill(ms_rank_run *r, ms_collection *collection,
                             ms_unit_content content);

#endif
