/* Test cases of attention by GPU kernels (emulated), whole or as a ring of key blocks,
 * against exec/cpu/cpu_attention.c in fp64 on the same operands. */
#ifndef MS_TESTS_SUPPORT_ATTENTION_CASES_H
#define MS_TESTS_SUPPORT_ATTENTION_CASES_H

#include "exec/cuda/cuda_call.h"

/*
 * Runs test cases, whose list ends with NULL. A case is a text of letters with sizes, as
 * "b 2 s 17 n 4 g 2 d 8 w 6" (batch, sequence, query heads, key/value heads, head width,
 * width of values), followed by options:
 *     window N      attention window of N keys
 *     cap N         soft cap N of scores
 *     alibi N       ALiBi of a model of N heads
 *     first N       the first head is number N of these
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

/* A library whose kernels may run the cases. */
typedef struct ms_attention_library {
    const ms_cuda_driver *driver; /* driver whose device is open */
    ms_run_attention choice;
    ms_cuda_attention_use use; /* out: calls counted */
} ms_attention_library;

/* Runs cases in bf16 by a library where it can. Gradients of keys and values may be
 * rounded once more where heads share them; bits may differ between runs unless the
 * choice is deterministic. */
void ms_attention_cases_run_by(const char *const *cases, ms_attention_library *library);

/* The driver of a GPU that the thread has entered, whose memory includes the host's;
 * NULL: none. Only programs with tests/exec/gpu_memory.c have this function. */
__attribute__((weak)) const ms_cuda_driver *ms_test_gpu_driver(void);

#endif
