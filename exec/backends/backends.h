/* Folder exec/backends: ranks, transfers and clocks of each execution backend; no
 * kernels. This file finds the backends that the program was built with. */
#ifndef MS_EXEC_BACKENDS_BACKENDS_H
#define MS_EXEC_BACKENDS_BACKENDS_H

#include "exec/cuda/cuda_backend.h"

/* The backend called `name`: null, loop, mpi or cuda; NULL if unknown or not built in. */
const ms_backend *ms_backend_find(const char *name);
/* The cuda backend with this transport; NULL if built without CUDA. Not thread-safe. */
const ms_backend *ms_cuda_backend_by(ms_cuda_transport transport);

#endif
