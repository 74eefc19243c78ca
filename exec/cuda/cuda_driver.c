#include "exec/cuda/cuda_driver.h"

extern const ms_cuda_driver
    ms_cuda_library_driver; /* defined in exec/cuda/vendor_cudart.c */

const ms_cuda_driver *ms_cuda_driver_of_libraries(void)
{
#ifdef MS_WITH_CUDA
    return &ms_cuda_library_driver;
#else
    return NULL;
#endif
}
