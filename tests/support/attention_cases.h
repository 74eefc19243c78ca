/* Attention by kernels of a GPU (emulated), whole or as a ring of blocks, beside exec/cpu_attention.c in fp64 on the same operands. */
#ifndef MS_TESTS_ATTENTION_CASES_H
#define MS_TESTS_ATTENTION_CASES_H

#include "exec/scalar.h"

#include <stdbool.h>

typedef struct ms_attention_case {
    long batch, sequence, heads, kv_heads, width, value_width, window;
    /* 0: one operation for the whole. Otherwise every rank has its part of queries, and attends to its own block first, then to those of the ranks before it. */
    int num_ranks;
    bool is_gathered;    /* ranks have their part of queries, and all keys at once */
    bool head_tail;      /* positions in balanced order, for that many ranks or 2 */
    bool is_unfused;     /* probabilities are stored, and read in backward */
    bool is_not_aligned; /* to vectors */
} ms_attention_case;

/*
 * Forward, then backward from the reference's o and lse, in two orders of threads, whose results must have equal bits. Fails the test where an element differs by
 * more than roundings explain. With u a rounding of the type of reals (bf16: 2^-8), weights of a product are rounded to it, and results as often as they are
 * written: o once for each block, a gradient once for each rank that adds to it. An element that is a sum of terms t may then differ by
 *     u (1 + number of writes) sum |t|
 * and, since weights themselves come from sums in fp32 (fp64) of d products, and sums have as many terms as the sequence is long, by
 *     4 (d + w + s) 2^-24 (2^-53) sum |t'|
 * where t' is t with all the products in it by magnitude.
 */
void ms_attention_case_run(const ms_attention_case *c, ms_real_type type);

#endif
