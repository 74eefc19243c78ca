/* One communicator of processes that no MPI started, and that torchrun's variables describe. */
#ifndef MS_EXEC_BACKEND_MPI_JOIN_H
#define MS_EXEC_BACKEND_MPI_JOIN_H

#include "exec/rendezvous.h"

#include <mpi.h>
#include <sys/types.h>

typedef struct ms_mpi_joined {
    MPI_Comm world; /* ranks are the launcher's */
    ms_rendezvous meeting;
    pid_t server; /* of rank 0, which the ranks of Open MPI find each other by; 0: none */
} ms_mpi_joined;

/* Once in a process. Initialises MPI. MS_EIO: somebody does not come, or this MPI cannot
 * join processes; MS_EINTERRUPTED, without a message: `interrupted` (may be NULL) was
 * set. `out` is to be left in any case. Where MPI itself waits in vain, for a rank that
 * has ended or longer than timeout_s, the process ends with the same status and its message. */
ms_status ms_mpi_join(ms_ctx *cx, const ms_launch *launch, double timeout_s,
                      volatile const int *interrupted, ms_mpi_joined *out);
/* Waits, no longer than the ranks waited for each other to come, until all are here; then
 * nobody misses who leaves. False: somebody is not. */
bool ms_mpi_all_done(const ms_mpi_joined *joined);
/* After MPI has ended; or when this rank has failed, which the others then see. */
void ms_mpi_leave(ms_mpi_joined *joined);

#endif
