#include "exec/cuda_table.h"

#include "exec/cuda_arrays.h"

const ms_cuda_kernels ms_cuda_all_kernels = {
    .fill = ms_cuda_array_fill,
    .add = ms_cuda_array_add,
    .scale = ms_cuda_array_scale,
    .copy_box = ms_cuda_array_copy_box,
    .add_sum = ms_cuda_array_add_sum,
    .add_squares = ms_cuda_array_add_squares,
    .sum_bytes = MS_CUDA_SUM_BYTES,
    .adamw = ms_cuda_array_adamw,
};
