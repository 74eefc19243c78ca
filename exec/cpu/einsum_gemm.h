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
    ms_gemm gemm; /* num_batch 0 means an empty batch */
    bool swapped; /* c is stored transposed: c' = b' a', so a and b change places */
} ms_einsum_product;

/* Writes an einsum as a (batched) matrix product; false if the order of letters does not
 * allow it, which no layer program has, or a letter is summed in one operand alone. */
bool ms_einsum_as_product(const ms_einsum *e, ms_einsum_product *out);

/* Iterator over the matrix products of GROUPED, one per expert of the rank. */
typedef struct ms_grouped {
    ms_einsum einsum; /* einsum of one expert, without the letter of experts */
    const ms_routing *routing;
    long expert;       /* expert of the next product */
    long at[3];        /* offsets of a, b, c for the next product, in elements */
    long step[3];      /* elements of a, b, c per expert or per row */
    bool by_expert[3]; /* whether `step` is per expert instead of per row */
} ms_grouped;

ms_grouped ms_grouped_begin(const ms_op_call *call);
/* Sets the next expert's number of rows and operand offsets; false after the last. */
bool ms_grouped_next(ms_grouped *g, long at[3]);

#endif
