/* Small kernels, right and wrong ones, that try out tests/support/cuda_emulated.h and
 * exec/cuda/cuda_device.cuh. */
#ifndef MS_TESTS_SUPPORT_CUDA_SAMPLES_H
#define MS_TESTS_SUPPORT_CUDA_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MS_SAMPLE_THREADS 128

/* Each block of `threads` turns its elements round in shared memory; without the barrier
 * the result is a matter of luck. */
void ms_sample_reverse(int *to, const int *from, int num_blocks, int threads,
                       bool has_barrier);
/* to[i] = sum over round i of from[i threads + t], by block sums one after another, with
 * and without the barrier that keeps a warp from writing what others still read. */
void ms_sample_rounds(int *to, const int *from, int num_rounds, int threads,
                      bool has_barrier);
/* to[0]: sum over all threads of one block, by block_sum, to[1]: by shuffles down, to[2]:
 * largest, to[3]: of thread 5, to[4]: votes for positive numbers in the first warp. */
void ms_sample_sums(double *to, const double *from, int threads);
/* c (16, 8) = a (16, 16) b (16, 8), all row-major, a and b bf16: fragments from ldmatrix,
 * of b transposed, through copies that are waited for or not. */
void ms_sample_gemm(float *c, const unsigned short *a, const unsigned short *b,
                    bool waits);
/* Half of the threads wait where the others never come. */
void ms_sample_divergent(void);
/* Half of a warp shuffles, the other half votes. */
void ms_sample_mixed_warp(void);
/* Thread 0 writes element `at` of arrays of 32 floats: static shared memory, dynamic
 * shared memory, its stack. */
typedef enum ms_sample_memory {
    MS_SAMPLE_STATIC,
    MS_SAMPLE_DYNAMIC,
    MS_SAMPLE_STACK
} ms_sample_memory;
float ms_sample_write(ms_sample_memory memory, int at);
/* to[i] = what fresh shared memory holds. */
void ms_sample_fresh(float *to);
/* Each of the three dims of grid and block: to[i] counts visits of thread i of all
 * (blocks outer). */
void ms_sample_visit(int *to, const unsigned grid[3], const unsigned block[3]);
/* bf16 of each number, one at a time and two at a time. */
void ms_sample_round(unsigned short *one, unsigned *two, const float *from, int count);

#ifdef __cplusplus
}
#endif
#endif
