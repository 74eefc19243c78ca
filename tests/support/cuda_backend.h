/* The CUDA backend on a fake GPU (tests/support/cuda_fake.h), with ranks as threads. */
#ifndef MS_TESTS_SUPPORT_CUDA_BACKEND_H
#define MS_TESTS_SUPPORT_CUDA_BACKEND_H

#include "exec/cuda/cuda_backend.h"

/* Makes a CUDA backend with emulated kernels and small memory blocks, so that ranks have
 * several. The fake GPU must have begun with as many devices as ranks, or with any number
 * for transfers through host memory. */
ms_cuda_backend ms_test_cuda_backend(ms_cuda_transport transport);

#endif
