/* Folder exec/launch: starts ranks' processes and detects launchers; not what ranks do.
 *
 * Starts this program as the ranks of a run by mpiexec; no rank outlives the call. */
#ifndef MS_EXEC_LAUNCH_LAUNCH_H
#define MS_EXEC_LAUNCH_LAUNCH_H

#include "base/diag.h"

#include <stdbool.h>

/* Environment variable that is set in ranks started by ms_launch_run. */
#define MS_LAUNCHED_VARIABLE "MESHSIM_LAUNCHED"

typedef struct ms_launch_job {
    const char *mpiexec; /* path from ms_launch_find */
    long num_ranks;
    long num_cores; /* cores of this machine; more ranks than cores share them */
    int argc;       /* arguments of each rank, without the program's name */
    char *const *argv;
    bool shows_progress; /* whether ranks report their progress */
} ms_launch_job;

/* Whether this process is a rank that ms_launch_run started. */
bool ms_launch_is_own(void);
/* Whether this process is a launched rank and must report its progress. */
bool ms_launch_shows_progress(void);

/* Path of mpiexec or mpirun in $PATH; NULL if neither exists. Lives in the arena. */
const char *ms_launch_find(ms_arena *arena);

/* Runs the ranks by mpiexec, waits for their end, then prints their standard output,
 * which the caller flushes and checks. Messages of mpiexec itself are printed only if its
 * exit code does not explain them. The first SIGINT, SIGTERM or SIGUSR1 asks ranks to
 * stop; 7 s later, or at a second SIGINT or SIGTERM, they are killed. Returns
 * MS_EINTERRUPTED if stopped, MS_EIO if mpiexec fails or a signal kills a rank, else the
 * ranks' exit code. */
ms_status ms_launch_run(ms_ctx *cx, const ms_launch_job *launch);

/* ---- standard error of mpiexec (launch_output.c) ---- */

typedef struct ms_launch_output {
    char line[512]; /* last line, while it is incomplete */
    int length;
    bool in_block;    /* between the lines of dashes around Open MPI's messages */
    char block[4096]; /* mpiexec's own messages, without the dashes */
    int block_length;
    bool has_error;  /* whether a rank printed "error: ..." */
    long dead_rank;  /* rank that died by a signal; -1 if unknown */
    int dead_signal; /* signal by which a rank died; 0 if none */
} ms_launch_output;

ms_launch_output ms_launch_output_open(void);
/* Takes in mpiexec's standard error and forwards the lines of ranks to `out`. If `out` is
 * NULL they are dropped: Open MPI 4.1.4 prints errors when ended by force. */
void ms_launch_output_add(ms_launch_output *output, const char *bytes, long num_bytes,
                          FILE *out);
void ms_launch_output_close(ms_launch_output *output, FILE *out);

/* Status by mpiexec's exit code (128 + n: signal n); reports errors no rank printed. */
ms_status ms_launch_judge(ms_ctx *cx, const ms_launch_output *output, int code);

#endif
