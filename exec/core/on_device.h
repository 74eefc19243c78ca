/* Functions that CPU and GPU kernels share: plain C that CUDA compiles too. */
#ifndef MS_EXEC_CORE_ON_DEVICE_H
#define MS_EXEC_CORE_ON_DEVICE_H

#ifdef __CUDACC__
#define MS_ON_DEVICE __host__ __device__
#else
#define MS_ON_DEVICE
#endif

#endif
