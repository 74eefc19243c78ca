/* What every rank did, in the process of rank 0. */
#ifndef MS_EXEC_COLLECT_H
#define MS_EXEC_COLLECT_H

#include "exec/runner.h"

/* Ranks of other processes send their times, ledgers, samples and records; in the process
 * of rank 0 outcome->ranks and outcome->step_s are then of the whole world, in the order
 * of ranks. Called by all processes, on the open backend; where one process carries all
 * ranks nothing happens. MS_EIO: a rank is gone. */
ms_status ms_outcome_collect(ms_ctx *cx, ms_backend_job *job, ms_outcome *outcome);

/* Frees the records. */
void ms_outcome_close(ms_outcome *outcome);

/* ---- one rank as bytes that another process of this program can read, for tests ---- */

typedef struct ms_packed {
    size_t num_bytes; /* a multiple of sizeof(long) */
    void *bytes;
} ms_packed;
ms_packed ms_rank_outcome_pack(ms_arena *arena, const ms_rank_outcome *rank,
                               long num_steps);
/* Times, samples and names live in the arena; the record is to be closed. */
void ms_rank_outcome_unpack(ms_arena *arena, const ms_packed *packed,
                            ms_rank_outcome *out);

#endif
