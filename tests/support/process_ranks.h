/* Tests that start themselves again as ranks, a process each, which nothing but the
 * variables of a launcher brings together. */
#ifndef MS_TESTS_SUPPORT_PROCESS_RANKS_H
#define MS_TESTS_SUPPORT_PROCESS_RANKS_H

#include <sys/types.h>

#define MS_TEST_PROCESSES 8

typedef enum ms_test_launcher {
    MS_TEST_TORCHRUN, /* at this machine's own address */
    MS_TEST_NETWORK,  /* ... at one that others reach, where it has one */
    MS_TEST_SLURM,
    MS_TEST_STORE /* by hand, with a file */
} ms_test_launcher;

typedef struct ms_test_process {
    pid_t pid;
    int output;       /* standard output and error */
    const char *said; /* all of it */
    int code;         /* of its exit; 128 + the signal that ended it */
} ms_test_process;

typedef struct ms_test_processes {
    int num;
    ms_test_process rank[MS_TEST_PROCESSES];
} ms_test_processes;

/* Runs this program with `argument` as ranks 0 ... of `num`, of which the last `missing`
 * are not started. */
void ms_test_start(ms_test_processes *processes, ms_test_launcher launcher, int num,
                   int missing, const char *argument);
/* Waits until all have ended, and fails the test if that takes too long. */
void ms_test_wait(ms_test_processes *processes);
/* Fails the test unless the rank ended with the code and said the text (NULL: any). */
void ms_test_expect(const ms_test_processes *processes, int rank, int code,
                    const char *text);

#endif
