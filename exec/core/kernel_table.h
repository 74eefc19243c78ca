/* Table of CPU kernels on row-major arrays in fp32, fp64 or bf16. Every kernel runs on
 * the calling thread and has no state; it allocates nothing but, for bf16, the fp32 copies
 * of its operands, which no ledger counts. */
#ifndef MS_EXEC_CORE_KERNEL_TABLE_H
#define MS_EXEC_CORE_KERNEL_TABLE_H

#include "exec/core/arrays.h"

typedef void ms_kernel(const ms_op_call *call);

typedef struct ms_kernels {
    ms_real_type type;
    size_t real_bytes;
    /* NULL for ops that communicate (exec/lower/lower.h) and for ADAM. */
    ms_kernel *op[MS_NUM_OPS];
    void (*attention_block)(const ms_attention_block *block, void *workspace);
    void (*attention_block_grad)(const ms_attention_block *block, void *workspace);
    /* Bytes of scratch memory that the kernel of a node needs. */
    size_t (*workspace_bytes)(const ms_program *program, const ms_node *node);
    /* Element-wise functions on arrays of the real type. */
    void (*add)(void *to, const void *from, long count);     /* adds `from` to `to` */
    void (*maximum)(void *to, const void *from, long count); /* larger one into `to` */
    void (*scale)(void *x, double factor, long count);
    void (*fill)(void *x, double value, long count);
    double (*sum_of_squares)(const void *x, long count); /* summed in fp64 */
    bool (*is_finite)(const void *x, long count);        /* NULL for bf16 */
    void (*from_double)(void *to, const double *from, long count);
    void (*to_double)(double *to, const void *from, long count);
    /* NULL for bf16, whose moments are not rounded by a kernel */
    void (*adamw)(const ms_adamw *how, void *weight, const void *gradient,
                  void *first_moment, void *second_moment, long count);
} ms_kernels;

#endif
