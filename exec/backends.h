/* The backends that this program was built with. */
#ifndef MS_EXEC_BACKENDS_H
#define MS_EXEC_BACKENDS_H

#include "exec/cuda_backend.h"

/* By name; NULL: it was built without it, or there is none. */
const ms_backend *ms_backend_find(const char *name);
/* "cuda"; NULL: built without CUDA. Not from several threads at once. */
const ms_backend *ms_cuda_backend_by(ms_cuda_transport transport);

#endif
