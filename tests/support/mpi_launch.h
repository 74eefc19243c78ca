/* For tests that start themselves again as MPI ranks. */
#ifndef MS_TESTS_SUPPORT_MPI_LAUNCH_H
#define MS_TESTS_SUPPORT_MPI_LAUNCH_H

/* Skips the running test, with a reason, if MPI is not built in, mpiexec is missing, or
 * the thread sanitizer is on. */
void ms_mpi_skip_if_missing(void);

/* Runs `program argument` as `num_ranks` MPI processes, also as root and on fewer cores.
 * Returns their output; `code` gets mpiexec's exit code. */
const char *ms_mpi_launch(int num_ranks, const char *program, const char *argument,
                          int *code);

/* Runs a shell command; returns its standard output, `code` gets its exit code (-1: ended
 * by a signal). */
const char *ms_test_shell(const char *command, int *code);

#endif
