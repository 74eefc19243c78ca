/* The backend "cuda" on the device in memory (tests/support/cuda_fake.h), with ranks as
 * threads. */
#ifndef MS_TESTS_SUPPORT_CUDA_BACKEND_H
#define MS_TESTS_SUPPORT_CUDA_BACKEND_H

#include "exec/cuda/cuda_backend.h"

/* Kernels on the processor, through the streams of the device. Small blocks of memory, so
 * that there are several. The fake device is to be begun with as many devices as there
 * are ranks, or (host) any number. */
ms_cuda_backend ms_test_cuda_backend(ms_cuda_transport transport);

#endif
