#include "exec/cuda/cuda_driver.h"

#ifdef MS_WITH_CUDA
/* defined in exec/cuda/vendor_cudart.c */
extern const ms_cuda_driver ms_cuda_library_driver;

const ms_cuda_driver *ms_cuda_driver_of_libraries(void)
{
    return &ms_cuda_library_driver;
}
#else
const ms_cuda_driver *ms_cuda_driver_of_libraries(void)
{
    return NULL;
}
#endif
