/* The backend of a run, and how its ranks are started. */
#ifndef MS_CLI_CMD_RUN_BACKEND_H
#define MS_CLI_CMD_RUN_BACKEND_H

#include "cli/options/run_options.h"
#include "exec/launch/environment.h"

typedef struct ms_run_choice {
    const ms_backend *backend;
    const char *mpiexec; /* mpiexec that must start the ranks; NULL: none needed */
    ms_launch environment;
} ms_run_choice;

/* Chooses the backend by flags and by how this process was started; notes why --backend
 * auto falls back to loop. MS_EINPUT: the started ranks are not as many as the plan's, or
 * cannot use MPI. MS_EIO: this build lacks the backend, or mpiexec is missing. */
ms_status ms_run_choose(ms_ctx *cx, const ms_run_flags *flags, const ms_plan *plan,
                        ms_run_choice *out);

/* Whether ranks of this launcher can communicate in a program built with MPI. */
bool ms_run_launcher_has_mpi(const ms_launch *environment);

/* Whether a launcher other than this program started this process and others. */
bool ms_run_is_one_of_many(const ms_run_choice *choice);

/* Notes that ranks share cores, if they do; with GPUs or a virtual clock they need few. */
void ms_run_note_cores(ms_ctx *cx, const ms_run_choice *choice, long num_ranks);

/* Each process passes `own`, the status of its preparations; `job` is open. Returns MS_OK
 * if all are MS_OK, otherwise the status of the lowest rank that failed. That rank prints
 * its errors; all other processes drop theirs. */
ms_status ms_run_agree(ms_ctx *cx, ms_backend_job *job, ms_status own);

/* Drops all recorded errors, because another rank reports them. */
void ms_run_forget_errors(ms_ctx *cx);

#endif
