/* Folder exec/backends: ranks, transfers and clocks of each execution backend; no
 * kernels. This file finds the backends that the program was built with. */
#ifndef MS_EXEC_BACKENDS_BACKENDS_H
#define MS_EXEC_BACKENDS_BACKENDS_H

#include "exec/cuda/cuda_backend.h"

/* Values of the option --backend: automatic choice, or one backend, even if not built in.
 * Those from MS_BACKEND_LOOP on compute tensors; MS_BACKEND_NULL only predicts times. */
typedef enum ms_backend_choice {
    MS_BACKEND_AUTO,
    MS_BACKEND_NULL,
    MS_BACKEND_LOOP,
    MS_BACKEND_MPI,
    MS_BACKEND_CUDA
} ms_backend_choice;
/* "auto" "null" "loop" "mpi" "cuda", then NULL */
extern const char *const ms_backend_names[];
/* Help text of the backends that compute values. */
#define MS_BACKENDS_HELP                                                                 \
    "loop: one thread per rank; mpi: one process per rank; cuda: one GPU per rank"

/* The backend called `name`: null, loop, mpi or cuda; NULL if unknown or not built in. */
const ms_backend *ms_backend_find(const char *name);
/* The cuda backend with this transport; NULL if built without CUDA. Not thread-safe. */
const ms_backend *ms_cuda_backend_by(ms_cuda_transport transport);

#endif
