/* EINSUM and GROUPED as matrix products, for kernels of any device. */
#ifndef MS_EXEC_CPU_EINSUM_GEMM_H
#define MS_EXEC_CPU_EINSUM_GEMM_H

#include "exec/core/op_call.h"
#include "exec/cpu/gemm.h"

/* The letters of an einsum "a,b->c" with the local sizes of their dims. */
typedef struct ms_einsum {
    char text[3][MS_MAX_DIMS + 1]; /* letters of a, of b, of c */
    long size['z' + 1];
} ms_einsum;

/* The einsum of an operation with operands in[0] and in[1] and result out[0]. */
ms_einsum ms_einsum_of(const ms_op_call *call);
bool ms_einsum_has(const ms_einsum *e, int term, char letter);
/* Number of elements of a tensor with these letters. */
long ms_einsum_size(const ms_einsum *e, const char *letters);

typedef struct ms_einsum_product {
    ms_gemm gemm; /* unlike in ms_gemm, num_batch 0 means no product */
    bool swapped; /* whether c is stored transposed: `gemm` then computes c' = b' a' */
} ms_einsum_product;

/* Writes an einsum as a (batched) matrix product. False if a letter is summed in one
 * operand alone, or if the order of letters forbids it (in no layer program). */
bool ms_einsum_as_product(const ms_einsum *e, ms_einsum_product *out);

/* Number of rows, of those that an operation on experts' rows has, of one expert. */
long ms_rows_of_expert(const ms_routing *routing, long expert);

/* Iterator over the matrix products of GROUPED, one per expert of the rank. */
typedef struct ms_grouped {
    ms_einsum einsum; /* einsum of one expert, without the letter of experts */
    const ms_routing *routing;
    long expert;       /* expert of the next product */
    long at[3];        /* offsets of a, b, c for the next product, in elements */
    long step[3];      /* step[i]: elements of a, b or c per expert or per row */
    bool by_expert[3]; /* true: step[i] is per expert; false: per row of tokens */
} ms_grouped;

ms_grouped ms_grouped_begin(const ms_op_call *call);
/* Sets the next expert's number of rows (in g->einsum) and `at`; false after the last. */
bool ms_grouped_next(ms_grouped *g, long at[3]);

#endif
