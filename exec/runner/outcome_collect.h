/* Gathers the results of all ranks of a run in the process of rank 0. */
#ifndef MS_EXEC_RUNNER_OUTCOME_COLLECT_H
#define MS_EXEC_RUNNER_OUTCOME_COLLECT_H

#include "exec/runner/runner.h"

/* Sends times, memory ledgers, samples and records of other processes' ranks to rank 0,
 * whose outcome->ranks and outcome->step_s then cover all ranks, in rank order. All
 * processes call it while the backend is open; it does nothing if one process runs all
 * ranks. MS_EIO if a rank is gone. */
ms_status ms_outcome_collect(ms_ctx *cx, ms_backend_job *job, ms_outcome *outcome);

/* Raises each of outcome->step_s to the time of the slowest of the outcome's ranks. */
void ms_outcome_find_step_times(ms_outcome *outcome);
/* Frees the time records of the outcome's ranks. */
void ms_outcome_close(ms_outcome *outcome);

/* ---- serialization of one rank's outcome, public for tests; readable by processes of
 * the same program ---- */

typedef struct ms_packed {
    size_t num_bytes; /* a multiple of sizeof(long) */
    void *bytes;
} ms_packed;
ms_packed ms_rank_outcome_pack(ms_arena *arena, const ms_rank_outcome *rank,
                               long num_steps);
/* Reads what ms_rank_outcome_pack wrote. Times, samples and names live in the arena; the
 * caller closes the recorder. */
void ms_rank_outcome_unpack(ms_arena *arena, const ms_packed *packed,
                            ms_rank_outcome *out);

#endif
