/* Operations on arrays in a rank's device memory, which host code cannot access. They run
 * in order on the compute stream; only `read`, `write`, `count` and `read_sums` wait. */
#ifndef MS_EXEC_CORE_ARRAYS_H
#define MS_EXEC_CORE_ARRAYS_H

#include "base/diag.h"
#include "exec/core/array_args.h"
#include "exec/core/op_call.h"
#include "exec/core/scalar.h"

typedef struct ms_device_rank ms_device_rank;

/* Attention to one block of keys and values. Results of blocks are merged by their
 * log-sum-exp, so that ring attention and attention to all keys at once agree
 * (FlashAttention, Dao et al. 2022, section 3.1; Liu et al. 2023, "Ring Attention"). */
typedef struct ms_attention_block {
    const ms_op_call *call; /* the ATTENTION(_GRAD): window, positions */
    const ms_local *q;      /* queries (batch, sequence, heads, width) */
    /* keys and values of the block; start[1]: stored index of its first token */
    const ms_local *k, *v;
    /* Output o of the queries, and log-sum-exp lse. Forward: of all blocks so far, in the
     * accumulation type (fp32 for bf16); o is 0 and lse -inf before the first. Backward:
     * of all blocks, o rounded to the type of activations. */
    ms_local *o, *lse;
    /* Backward only: gradient of o. Gradients of q, k, v are added to gq, gk, gv. */
    const ms_local *go;
    ms_local *gq, *gk, *gv;
} ms_attention_block;

/* Number of fp64 sums (`add_sum`, `add_squares`) that a rank's device memory holds. */
#define MS_MAX_SUMS 64

typedef struct ms_array_ops {
    void (*fill)(ms_device_rank *device, ms_scalar scalar, void *to, double value,
                 long count);
    void (*add)(ms_device_rank *device, ms_scalar scalar, void *to, const void *from,
                long count); /* adds `from` to `to` */
    void (*round_sum)(ms_device_rank *device, const ms_rounded_sum *sum);
    /* NULL if the backend has no plan's own types (exec/core/plan_types.h). */
    void (*convert)(ms_device_rank *device, const ms_conversion *conversion);
    void (*scale)(ms_device_rank *device, ms_scalar scalar, void *x, double factor,
                  long count);
    void (*copy)(ms_device_rank *device, void *to, const void *from, size_t bytes);
    void (*copy_box)(ms_device_rank *device, const ms_box_copy *copy);
    /* Fills `to` with a weight's initial values; bf16 ones are rounded from fp32. */
    void (*initialise)(ms_device_rank *device, ms_scalar scalar, void *to,
                       const ms_initial_piece *piece);
    /* `read` and `write` copy between device memory and doubles of the host, in pieces of
     * up to MS_MOST_AT_ONCE_BYTES. MS_EIO if an earlier operation of the rank failed. */
    ms_status (*read)(ms_ctx *cx, ms_device_rank *device, ms_scalar scalar, double *to,
                      const void *from, long count);
    ms_status (*write)(ms_ctx *cx, ms_device_rank *device, ms_scalar scalar, void *to,
                       const double *from, long count);
    /* counts[i] += number of elements of x that equal i, for 0 <= i < num; on CPUs x may
     * have negative ones, too. */
    ms_status (*count)(ms_ctx *cx, ms_device_rank *device, const ms_local *x,
                       long *counts, long num);
    /* Adds the elements of x or their squares, in a fixed order, to fp64 sum `slot`. */
    void (*add_sum)(ms_device_rank *device, ms_scalar scalar, int slot, const void *x,
                    long count);
    void (*add_squares)(ms_device_rank *device, ms_scalar scalar, int slot, const void *x,
                        long count);
    /* Copies the first `num` fp64 sums to the host and resets them to 0. */
    ms_status (*read_sums)(ms_ctx *cx, ms_device_rank *device, double *sums, int num);
    void (*adamw)(ms_device_rank *device, const ms_adamw *how, const ms_update *update);
    void (*attention_block)(ms_device_rank *device, const ms_attention_block *block,
                            void *workspace);
    void (*attention_block_grad)(ms_device_rank *device, const ms_attention_block *block,
                                 void *workspace);
    /* NULL if the backend has no optimizer but AdamW. Replaces the host's row-major matrix
     * x, m rows and n >= m columns, by an almost orthogonal one: after division by its
     * norm `iterations` of A = X X^T, B = b A + c A A, X = a X + B X with the coefficients
     * of Jordan et al. 2024 (kellerjordan.github.io/posts/muon). `scratch` has room for
     * m (2 m + n) numbers. */
    void (*orthogonalize)(double *x, long m, long n, int iterations, double *scratch);
} ms_array_ops;

#endif
