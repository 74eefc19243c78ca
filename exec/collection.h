/* Whole tensors of the model, from the pieces that ranks answer for. */
#ifndef MS_EXEC_COLLECTION_H
#define MS_EXEC_COLLECTION_H

#include "exec/rank_run.h"

typedef struct ms_collection {
    int num_tensors;
    ms_safe_tensor *tensors; /* in the order of their names */
    double **values;         /* theirs, to be filled; zero until then */
} ms_collection;

/* All weights of the model by Hugging Face's names. Lives in cx->arena. */
ms_collection ms_collection_make(ms_ctx *cx, const ms_job *job);

/* Every rank adds what it answers for; where processes carry some ranks only, all of them
 * get the whole. Called by all ranks. */
ms_status ms_collection_fill(ms_rank_run *r, ms_collection *collection,
                             ms_unit_content content);

#endif
