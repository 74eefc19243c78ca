/* What a backend does to arrays in the memory of a rank, which the program itself cannot
 * read or write. All of it happens in the order of the rank's compute stream, after what
 * it was given before; only `read`, `write`, `count` and `read_sums` wait for it.
 * Pointers are to elements of the type given with them. */
#ifndef MS_EXEC_ARRAYS_H
#define MS_EXEC_ARRAYS_H

#include "base/diag.h"
#include "exec/array_args.h"
#include "exec/op_call.h"
#include "exec/scalar.h"

typedef struct ms_device_rank ms_device_rank;

/* Attention of a rank's queries to one block of keys and values. Results of blocks are
 * merged by their log-sum-exp, so that a ring of blocks and one block of all keys agree
 * (FlashAttention, Dao et al. 2022, section 3.1; Liu et al. 2023, "Ring Attention"). */
typedef struct ms_attention_block {
    const ms_op_call *call; /* ATTENTION or ATTENTION_GRAD: window, scale, positions */
    const ms_local *q;      /* [b s n d] */
    const ms_local *k,
        *v; /* [b t g d], [b t g w]: the block; start[1] is its place in stored order */
    /* In the type that sums are made in (fp32 for bf16), since every block is added to them: */
    /* forward: o [b s n w] and lse [b s n], those of the blocks so far; before the first
     * lse is -inf and o is 0 */
    ms_local *o, *lse;
    /* backward: o, which is rounded then, and lse are final, go [b s n w]; gq, gk and gv
     * are added to (gk, gv: of the block) */
    const ms_local *go;
    ms_local *gq, *gk, *gv;
} ms_attention_block;

/* Sums that stay in the rank's memory until they are asked for. */
#define MS_MAX_SUMS 64

typedef struct ms_array_ops {
    void (*fill)(ms_device_rank *device, ms_scalar scalar, void *to, double value,
                 long count);
    void (*add)(ms_device_rank *device, ms_scalar scalar, void *to, const void *from,
                long count); /* to += from */
    void (*round_sum)(ms_device_rank *device, const ms_rounded_sum *sum);
    void (*scale)(ms_device_rank *device, ms_scalar scalar, void *x, double factor,
                  long count);
    void (*copy)(ms_device_rank *device, void *to, const void *from, size_t bytes);
    void (*copy_box)(ms_device_rank *device, const ms_box_copy *copy);
    /* Initial values, made where they are to be. Types: those of weights; bf16 is rounded
     * from fp32, as from master weights. */
    void (*initialise)(ms_device_rank *device, ms_scalar scalar, void *to,
                       const ms_initial_piece *piece);
    /* To and from numbers of the program, in pieces of up to MS_MOST_AT_ONCE_BYTES.
     * MS_EIO: what came before failed. */
    ms_status (*read)(ms_ctx *cx, ms_device_rank *device, ms_scalar scalar, double *to,
                      const void *from, long count);
    ms_status (*write)(ms_ctx *cx, ms_device_rank *device, ms_scalar scalar, void *to,
                       const double *from, long count);
    /* counts[i] += the number of elements of x that are i, 0 <= i < num. */
    ms_status (*count)(ms_ctx *cx, ms_device_rank *device, const ms_local *x,
                       long *counts, long num);
    /* sum `slot` (below MS_MAX_SUMS) += sum of x, or of its squares; in fp64, always in
     * the same order */
    void (*add_sum)(ms_device_rank *device, ms_scalar scalar, int slot, const void *x,
                    long count);
    void (*add_squares)(ms_device_rank *device, ms_scalar scalar, int slot, const void *x,
                        long count);
    /* The first `num` sums, which are 0 from then on; all are when a rank begins. */
    ms_status (*read_sums)(ms_ctx *cx, ms_device_rank *device, double *sums, int num);
    void (*adamw)(ms_device_rank *device, const ms_adamw *how, const ms_update *update);
    void (*attention_block)(ms_device_rank *device, const ms_attention_block *block,
                            void *workspace);
    void (*attention_block_grad)(ms_device_rank *device, const ms_attention_block *block,
                                 void *workspace);
} ms_array_ops;

#endif
