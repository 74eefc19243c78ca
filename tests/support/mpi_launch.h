/* Tests that start themselves again as ranks of MPI. */
#ifndef MS_TESTS_SUPPORT_MPI_LAUNCH_H
#define MS_TESTS_SUPPORT_MPI_LAUNCH_H

/* Skips the running test, saying why, where MPI is not built in, there is no mpiexec, or
 * the thread sanitizer is on. */
void ms_mpi_skip_if_missing(void);

/* Runs `program argument` as so many ranks, as root and with more ranks than cores too.
 * Returns what they printed; `code` becomes mpiexec's exit code. */
const char *ms_mpi_launch(int num_ranks, const char *program, const char *argument,
                          int *code);

/* Standard output of a shell's command, and its exit code (-1: it died by a signal). */
const char *ms_test_shell(const char *command, int *code);

#endif
