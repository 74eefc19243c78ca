/* Array operations in the memory of a rank, which host code cannot access. They run in
 * order on the compute stream; only `read`, `write`, `count` and `read_sums` wait. */
#ifndef MS_EXEC_CORE_ARRAYS_H
#define MS_EXEC_CORE_ARRAYS_H

#include "base/diag.h"
#include "exec/core/array_args.h"
#include "exec/core/op_call.h"
#include "exec/core/scalar.h"

typedef struct ms_device_rank ms_device_rank;

/* Attention to one block of keys and values. Results of blocks are merged by their
 * log-sum-exp, so that a ring of blocks and one block of all keys agree (FlashAttention,
 * Dao et al. 2022, section 3.1; Liu et al. 2023, "Ring Attention"). */
typedef struct ms_attention_block {
    const ms_op_call *call; /* ATTENTION(_GRAD) with window, scale and positions */
    const ms_local *q;      /* queries [b s n d] */
    /* keys [b t g d] and values [b t g w]; start[1] is the block's stored index */
    const ms_local *k, *v;
    /* Output o [b s n w] and log-sum-exp lse [b s n] in the accumulation type (fp32 for
     * bf16), as all arrays below. Forward: results of the blocks so far, at first -inf in
     * lse and 0 in o. Backward: final values, o rounded to the type of activations. */
    ms_local *o, *lse;
    /* Backward only: gradient go [b s n w] of o; gq, gk and gv are added to. */
    const ms_local *go;
    ms_local *gq, *gk, *gv;
} ms_attention_block;

/* Number of fp64 sums that stay in the rank's memory until `read_sums`. */
#define MS_MAX_SUMS 64

typedef struct ms_array_ops {
    void (*fill)(ms_device_rank *device, ms_scalar scalar, void *to, double value,
                 long count);
    void (*add)(ms_device_rank *device, ms_scalar scalar, void *to, const void *from,
                long count); /* adds `from` to `to` */
    void (*round_sum)(ms_device_rank *device, const ms_rounded_sum *sum);
    void (*scale)(ms_device_rank *device, ms_scalar scalar, void *x, double factor,
                  long count);
    void (*copy)(ms_device_rank *device, void *to, const void *from, size_t bytes);
    void (*copy_box)(ms_device_rank *device, const ms_box_copy *copy);
    /* Fills `to` with initial values; bf16 ones are rounded from fp32. */
    void (*initialise)(ms_device_rank *device, ms_scalar scalar, void *to,
                       const ms_initial_piece *piece);
    /* Copies from or to doubles of the host, in pieces of up to MS_MOST_AT_ONCE_BYTES.
     * MS_EIO if an earlier operation of the rank failed. */
    ms_status (*read)(ms_ctx *cx, ms_device_rank *device, ms_scalar scalar, double *to,
                      const void *from, long count);
    ms_status (*write)(ms_ctx *cx, ms_device_rank *device, ms_scalar scalar, void *to,
                       const double *from, long count);
    /* counts[i] += number of elements of x that equal i, 0 <= i < num. */
    ms_status (*count)(ms_ctx *cx, ms_device_rank *device, const ms_local *x,
                       long *counts, long num);
    /* Adds the sum of x, or of its squares, to sum `slot` in fp64, in a fixed order. */
    void (*add_sum)(ms_device_rank *device, ms_scalar scalar, int slot, const void *x,
                    long count);
    void (*add_squares)(ms_device_rank *device, ms_scalar scalar, int slot, const void *x,
                        long count);
    /* Reads the first `num` sums and resets them to 0, their initial value. */
    ms_status (*read_sums)(ms_ctx *cx, ms_device_rank *device, double *sums, int num);
    void (*adamw)(ms_device_rank *device, const ms_adamw *how, const ms_update *update);
    void (*attention_block)(ms_device_rank *device, const ms_attention_block *block,
                            void *workspace);
    void (*attention_block_grad)(ms_device_rank *device, const ms_attention_block *block,
                                 void *workspace);
} ms_array_ops;

#endif
