/* Tests that start themselves again as ranks of MPI. */
#ifndef MS_TESTS_MPI_LAUNCH_H
#define MS_TESTS_MPI_LAUNCH_H

/* Skips the running test, saying why, where MPI is not built in, there is no mpiexec, or
 * the thread sanitizer is on. */
void ms_mpi_skip_if_missing(void);

/* Likewise where this MPI cannot join processes: Open MPI without its ompi-server. */
void ms_mpi_skip_if_not_joining(void);

/* Runs `program argument` as so many ranks, as root and with more ranks than cores too.
 * Returns what they printed; `code` becomes mpiexec's exit code. */
const char *ms_mpi_launch(int num_ranks, const char *program, const char *argument,
                          int *code);

/* The same as processes that no MPI starts, with the variables of torchrun. */
const char *ms_mpi_launch_joined(int num_ranks, const char *program, const char *argument,
                                 int *code);

/* Of this machine. */
long ms_mpi_free_port(void);

#endif
