/* Attention by kernels of a GPU (emulated), whole or as a ring of blocks, beside
 * exec/cpu/cpu_attention.c in fp64 on the same operands. */
#ifndef MS_TESTS_SUPPORT_ATTENTION_CASES_H
#define MS_TESTS_SUPPORT_ATTENTION_CASES_H

#include "exec/core/scalar.h"

/*
 * Cases are texts, NULL ends them: "b 2 s 17 n 4 g 2 d 8 w 6" (batch, sequence, heads,
 * heads of keys, width, width of values) and, if wanted, behind that
 *     window N      of keys
 *     ranks N       have their part of queries, and attend to their own block of keys
 *                   first, then to those of the ranks before them
 *     gathered      those ranks have all keys at once
 *     head-tail     positions are in balanced order, for that many ranks or 2
 *     unfused       probabilities are stored, and read in backward
 *     unaligned     to vectors
 *
 * Forward, then backward from the reference's o and lse, in two orders of threads, whose
 * results must have equal bits. Fails the test where an element differs by more than
 * roundings explain. With u a rounding of the type of reals (bf16: 2^-8), weights of a
 * product are rounded to it, and results as often as they are written: once, but not
 * those of blocks, which are sums in fp32. An element that is a sum of terms t may then
 * differ by
 *     u (1 + number of writes) sum |t|
 * and, since weights themselves come from sums in fp32 (fp64) of d products, and sums
 * have as many terms as the sequence is long, by
 *     4 (d + w + s) 2^-24 (2^-53) sum |t'|
 * where t' is t with all the products in it by magnitude.
 */
void ms_attention_cases_run(const char *const *cases, ms_real_type type);

#endif
