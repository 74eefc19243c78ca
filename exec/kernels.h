/* The kernels of a CPU rank: plain C over row-major arrays, for fp32 and fp64 (exec/cpu_*.c is compiled once for each), products by BLAS.
 * Every kernel runs on the calling thread, allocates nothing, and has no state. */
#ifndef MS_EXEC_KERNELS_H
#define MS_EXEC_KERNELS_H

#include "exec/op_call.h"

typedef enum ms_real_type {
    MS_REAL_FP32,
    MS_REAL_FP64
} ms_real_type;

typedef void ms_kernel(const ms_op_call *call);

/* Attention of a rank's queries to one block of keys and values. Results of blocks are merged by their log-sum-exp, so that a ring of blocks and
 * one block of all keys agree (FlashAttention, Dao et al. 2022, section 3.1; Liu et al. 2023, "Ring Attention"). */
typedef struct ms_attention_block {
    const ms_op_call *call; /* ATTENTION or ATTENTION_GRAD: window, scale, positions */
    const ms_local *q;      /* [b s n d] */
    const ms_local *k,
        *v; /* [b t g d], [b t g w]: the block; start[1] is its place in stored order */
    /* forward: o [b s n w] and lse [b s n], those of the blocks so far; before the first lse is -inf and o is 0 */
    ms_local *o, *lse;
    /* backward: o and lse are final, go [b s n w]; gq, gk and gv are added to (gk, gv: of the block) */
    const ms_local *go;
    ms_local *gq, *gk, *gv;
} ms_attention_block;

/* AdamW (Loshchilov and Hutter 2019, algorithm 2), as PyTorch's torch/optim/adamw.py: weight decay first, bias correction by step. */
typedef struct ms_adamw {
    double learning_rate, beta1, beta2, epsilon, weight_decay;
    long step;             /* counted from 1 */
    double gradient_scale; /* of the clip; 1: none */
} ms_adamw;

typedef struct ms_kernels {
    ms_real_type type;
    size_t real_bytes;
    ms_kernel *op
        [MS_NUM_OPS]; /* NULL: REDISTRIBUTE, EXCHANGE and ADAM, which are lowerings (exec/lower.h) or the optimizer */
    void (*attention_block)(const ms_attention_block *block, void *workspace);
    void (*attention_block_grad)(const ms_attention_block *block, void *workspace);
    /* Bytes of workspace that a call needs. */
    size_t (*workspace_bytes)(const ms_program *program, const ms_node *node);
    /* element-wise on arrays of reals */
    void (*add)(void *to, const void *from, long count);     /* to += from */
    void (*maximum)(void *to, const void *from, long count); /* to = max(to, from) */
    void (*scale)(void *x, double factor, long count);
    void (*fill)(void *x, double value, long count);
    double (*sum_of_squares)(const void *x, long count); /* in fp64 */
    bool (*is_finite)(const void *x, long count);
    void (*from_double)(void *to, const double *from, long count);
    void (*to_double)(double *to, const void *from, long count);
    void (*adamw)(const ms_adamw *how, void *weight, const void *gradient,
                  void *first_moment, void *second_moment, long count);
} ms_kernels;

const ms_kernels *ms_cpu_kernels(ms_real_type type);

#endif
