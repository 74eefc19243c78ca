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

/* Once in a process. Initialises MPI. MS_EIO: somebody does not come, or this MPI cannot join processes. `out` is to be left in any case. */
ms_status ms_mpi_join(ms_ctx *cx, const ms_launch *launch, double timeout_s,
                      ms_mpi_joined *out);
/* After MPI has ended; or when this rank has failed, which the others then see. */
void ms_mpi_leave(ms_mpi_joined *joined);

#endif
