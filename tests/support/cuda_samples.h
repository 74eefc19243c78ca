/* Small CUDA kernels, correct and faulty ones, that test the emulation
 * (tests/support/cuda_emulated.h) and exec/cuda/cuda_device.cuh. */
#ifndef MS_TESTS_SUPPORT_CUDA_SAMPLES_H
#define MS_TESTS_SUPPORT_CUDA_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MS_SAMPLE_THREADS 128

/* Reverses the elements of each block of `threads` through shared memory; without the
 * barrier the result depends on the order of threads. */
void ms_sample_reverse(int *to, const int *from, int num_blocks, int threads,
                       bool has_barrier);
/* Computes to[i] = sum over threads t of from[i threads + t], by one block sum after
 * another; without the barrier a warp may overwrite sums that others still read. */
void ms_sample_rounds(int *to, const int *from, int num_rounds, int threads,
                      bool has_barrier);
/* Results: to[0]: sum over all threads of a block by block_sum; to[1]: by shuffles down;
 * to[2]: largest; to[3]: value of thread 5; to[4]: first warp's ballot of positive
 * numbers. */
void ms_sample_sums(double *to, const double *from, int threads);
/* c (16, 8) = a (16, 16) b (16, 8), row-major, a and b bf16: a tensor-core product with
 * ldmatrix, through asynchronous copies that are waited for or (`waits` false) not. */
void ms_sample_gemm(float *c, const unsigned short *a, const unsigned short *b,
                    bool waits);
/* Faulty kernel: half of the threads wait at a barrier that the others never reach. */
void ms_sample_divergent(void);
/* Faulty kernel: half of a warp shuffles while the other half votes. */
void ms_sample_mixed_warp(void);
/* Kernel that writes element `at` of an array of 32 floats, in static or dynamic shared
 * memory or on the stack of thread 0. */
typedef enum ms_sample_memory {
    MS_SAMPLE_STATIC,
    MS_SAMPLE_DYNAMIC,
    MS_SAMPLE_STACK
} ms_sample_memory;
float ms_sample_write(ms_sample_memory memory, int at);
/* Copies uninitialised shared memory to `to`. */
void ms_sample_fresh(float *to);
/* Counts in to[i] the visits of thread i, numbered over all blocks (blocks outer), for a
 * grid and block of three dims. */
void ms_sample_visit(int *to, const unsigned grid[3], const unsigned block[3]);
/* Rounds numbers to bf16: one at a time, and two at a time. */
void ms_sample_round(unsigned short *one, unsigned *two, const float *from, int count);

#ifdef __cplusplus
}
#endif
#endif
