/* Starts this program again as the ranks of a run, by mpiexec of Open MPI or MPICH, and
 * ends with them: no rank outlives the call. */
#ifndef MS_EXEC_LAUNCH_H
#define MS_EXEC_LAUNCH_H

#include "base/diag.h"

#include <stdbool.h>

/* Set in the environment of ranks that were started here. */
#define MS_LAUNCHED_VARIABLE "MESHSIM_LAUNCHED"

typedef struct ms_launch_job {
    const char *mpiexec; /* as ms_launch_find gives it */
    long num_ranks;
    long num_cores; /* of this machine; more ranks than that share them */
    int argc;       /* of each rank, without the program's name */
    char *const *argv;
    bool shows_progress; /* ranks are to say how far they are */
} ms_launch_job;

/* Whether this process is such a rank. */
bool ms_launch_is_own(void);
/* Whether it is one, and is to say how far it is. */
bool ms_launch_shows_progress(void);

/* mpiexec or mpirun in $PATH; NULL: neither. Lives in the arena. */
const char *ms_launch_find(ms_arena *arena);

/* The environment and command line of Open MPI (also as root, also with more ranks than
 * cores), MPICH or Intel MPI; NULL-ended, in the arena. */
char **ms_launch_command(ms_arena *arena, const ms_launch_job *launch,
                         const char *program);

/* Runs the ranks and waits for them. What they print on standard output is written to ours
 * when they have ended: the caller flushes it, and finds there what could not be written.
 * On standard error what mpiexec adds to the messages of ranks is left out when an exit code says as much.
 * SIGINT, SIGTERM and SIGUSR1 ask the ranks to stop (SIGUSR1); a second SIGINT or
 * SIGTERM, or 7 s, ends them by force: MS_EINTERRUPTED. Else the exit code of the ranks;
 * MS_EIO when mpiexec cannot be started or fails, and when a rank dies by a signal, which
 * is named. */
ms_status ms_launch_run(ms_ctx *cx, const ms_launch_job *launch);

/* ---- what mpiexec writes on standard error (launch_output.c) ---- */

typedef struct ms_launch_output {
    char line[512]; /* so far */
    int length;
    bool in_block;    /* Open MPI draws lines of dashes around its own messages */
    char block[4096]; /* its messages, without the dashes */
    int block_length;
    bool has_error;  /* a rank said "error: ..." */
    long dead_rank;  /* that died by a signal; -1: none that is named */
    int dead_signal; /* 0: none */
} ms_launch_output;

ms_launch_output ms_launch_output_open(void);
/* Takes in bytes; lines of ranks go on to `out`; NULL: nowhere, for an mpiexec that was
 * ended by force and fails in its clean-up (seen: Open MPI 4.1.4 with PMIx 4.2.2). */
void ms_launch_output_add(ms_launch_output *output, const char *bytes, long num_bytes,
                          FILE *out);
void ms_launch_output_close(ms_launch_output *output, FILE *out);

/* What an end of mpiexec means; records an error where ranks did not. `code`: its exit
 * code, 128 + n when it died by signal n. */
ms_status ms_launch_judge(ms_ctx *cx, const ms_launch_output *output, int code);

#endif
