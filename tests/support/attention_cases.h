/* Test cases of attention by GPU kernels (emulated), whole or as a ring of key blocks,
 * against exec/cpu/cpu_attention.c in fp64 on the same operands. */
#ifndef MS_TESTS_SUPPORT_ATTENTION_CASES_H
#define MS_TESTS_SUPPORT_ATTENTION_CASES_H

#include "exec/core/scalar.h"

/*
 * Runs test cases, whose list ends with NULL. A case is a text of letters with sizes, as
 * "b 2 s 17 n 4 g 2 d 8 w 6" (batch, sequence, query heads, key/value heads, head width,
 * width of values), followed by options:
 *     window N      attention window of N keys
 *     ranks N       context parallelism: N ranks have a part of the queries each, and
 *                   attend to their own block of keys, then to those of earlier ranks
 *     gathered      each of those ranks attends to all keys at once
 *     head-tail     positions in balanced order, for that many ranks or 2
 *     unfused       probabilities are stored, and read in backward
 *     unaligned     operands are not aligned to vectors
 *
 * Each case runs forward, then backward from the reference's o and lse, in two orders of
 * threads, which must give equal bits. Fails the test where an element's error is larger
 * than roundings explain. Let u be the rounding unit of the type (bf16: 2^-8). Operands
 * of products are rounded to the type, and results at each write: once, but not in a
 * ring, whose blocks are summed in fp32. An element that is a sum of terms t may then be
 * off by
 *     u (1 + number of writes) sum |t|
 * and, since probabilities come from fp32 (fp64) sums of d products, and sums have up to
 * s terms, by
 *     4 (d + w + s) 2^-24 (2^-53) sum |t'|
 * where t' is t with every product in it replaced by its magnitude.
 */
void ms_attention_cases_run(const char *const *cases, ms_real_type type);

#endif
