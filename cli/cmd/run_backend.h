/* Which backend carries out a run, and where its ranks come from. */
#ifndef MS_CLI_CMD_RUN_BACKEND_H
#define MS_CLI_CMD_RUN_BACKEND_H

#include "cli/options/run_options.h"
#include "exec/launch/environment.h"

typedef struct ms_run_choice {
    const ms_backend *backend;
    const char *mpiexec; /* that is to start the ranks; NULL: they are here */
    ms_launch environment;
} ms_run_choice;

/* Looks at how this process was started. Notes why loop serves when nothing was asked
 * for. MS_EINPUT: as many ranks as were started are not what the plan needs, or no MPI
 * can bring them together; MS_EIO: this build has no such backend, or there is no mpiexec. */
ms_status ms_run_choose(ms_ctx *cx, const ms_run_flags *flags, const ms_plan *plan,
                        ms_run_choice *out);

/* Whether the ranks of this launcher meet, in a program built with MPI. */
bool ms_run_launcher_has_mpi(const ms_launch *environment);

/* Whether somebody else started this process and others beside it, which find out on
 * their own what is wrong. */
bool ms_run_is_one_of_many(const ms_run_choice *choice);

/* On the open backend, of every process: when one of them has failed none goes on.
 * Returns the status of the lowest rank that failed, which prints its errors; those of
 * others are forgotten. */
ms_status ms_run_agree(ms_ctx *cx, ms_backend_job *job, ms_status own);

/* Another rank has the same to say. */
void ms_run_forget_errors(ms_ctx *cx);

#endif
