/* EINSUM and GROUPED as products of matrices: which letters are rows, columns, terms and
 * batch, for the kernels of any device. */
#ifndef MS_EXEC_EINSUM_H
#define MS_EXEC_EINSUM_H

#include "exec/gemm.h"
#include "exec/op_call.h"

/* The letters of "a,b->c" with their local sizes. */
typedef struct ms_einsum {
    char text[3][MS_MAX_DIMS + 1]; /* a, b, c */
    long size['z' + 1];
} ms_einsum;

/* Of a call with operands in[0], in[1] and out[0]. */
ms_einsum ms_einsum_of(const ms_op_call *call);
bool ms_einsum_has(const ms_einsum *e, int term, char letter);
/* Product of the sizes of the letters. */
long ms_einsum_size(const ms_einsum *e, const char *letters);

typedef struct ms_einsum_product {
    ms_gemm gemm; /* num_batch 0: a batch of no products */
    /* c is stored (n, m): its transpose is b' a', so gemm's a is the second operand */
    bool swapped;
} ms_einsum_product;

/* False when the letters do not lie as a product of matrices needs them, or one is summed
 * in one operand alone. Those of layer programs do. */
bool ms_einsum_as_product(const ms_einsum *e, ms_einsum_product *out);

/* The products of GROUPED, one for each expert of the rank: set up by begin, then one
 * product after another. */
typedef struct ms_grouped {
    ms_einsum einsum; /* of one expert */
    const ms_routing *routing;
    long expert;  /* of the next product */
    long at[3];   /* first elements of its operands a, b, c */
    long step[3]; /* to the next expert: by matrices, or by rows */
    bool by_expert[3];
} ms_grouped;

ms_grouped ms_grouped_begin(const ms_op_call *call);
/* The next expert: its rows are set in einsum, where its operands begin in `at`. False
 * after the last. */
bool ms_grouped_next(ms_grouped *g, long at[3]);

#endif
