/* Gathering the results of all ranks in the process of rank 0. */
#ifndef MS_EXEC_RUNNER_COLLECT_H
#define MS_EXEC_RUNNER_COLLECT_H

#include "exec/runner/runner.h"

/* Ranks of other processes send their times, ledgers, samples and records; in the process
 * of rank 0, outcome->ranks and outcome->step_s then cover the whole world, in rank
 * order. All processes call it, on the open backend; it does nothing if one process runs
 * all ranks. MS_EIO: a rank is gone. */
ms_status ms_outcome_collect(ms_ctx *cx, ms_backend_job *job, ms_outcome *outcome);

/* Raises the time of each step to that of the slowest of the outcome's ranks. */
void ms_outcome_find_step_times(ms_outcome *outcome);
/* Frees the records of the outcome. */
void ms_outcome_close(ms_outcome *outcome);

/* ---- serialization of one rank's outcome, public for tests; readable by processes of
 * the same program ---- */

typedef struct ms_packed {
    size_t num_bytes; /* size; a multiple of sizeof(long) */
    void *bytes;
} ms_packed;
ms_packed ms_rank_outcome_pack(ms_arena *arena, const ms_rank_outcome *rank,
                               long num_steps);
/* Inverse of ms_rank_outcome_pack. Times, samples and names live in the arena; the caller
 * closes the record. */
void ms_rank_outcome_unpack(ms_arena *arena, const ms_packed *packed,
                            ms_rank_outcome *out);

#endif
