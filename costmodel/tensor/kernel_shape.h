/* Shapes of the kernels that laws price: matrix products, attention, scans, each of one
 * rank. */
#ifndef MS_COSTMODEL_TENSOR_KERNEL_SHAPE_H
#define MS_COSTMODEL_TENSOR_KERNEL_SHAPE_H

#include <stdbool.h>

/* A batch of equal matrix products m x k by k x n with elements of `element_bytes`, and
 * results of `result_bytes`. */
typedef struct ms_gemm_shape {
    double batch, m, n, k;
    double element_bytes, result_bytes;
} ms_gemm_shape;

/* Attention forward or backward: `flop` counts executed (causal) FLOP; `key_tokens` is the
 * length of the keys that causal queries walk, twice the mean; score_elements = batch *
 * queries * keys. */
typedef struct ms_attention_shape {
    double flop, key_tokens, head_dim, score_elements, traffic_bytes;
    bool backward;
    double query_rows; /* batch * heads * queries; 0: enough of them */
    double value_dim;  /* 0: as head_dim */
    /* where nothing is fused: */
    double batch; /* sequences * heads, products of their own; 0: 1 */
    /* HBM traffic of softmax and dropout between products, per score element */
    double score_bytes;
} ms_attention_shape;

/* What a Mamba-2 mixer does between its projections: causal convolution, and the
 * recurrence of states as products within chunks of tokens ("state space duality": Dao
 * and Gu 2024, arXiv 2405.21060, section 6). [2.2.2] of docs/formulas.
 *
 * Kernels are those of mamba_split_conv1d_scan_combined (state-spaces/mamba,
 * ops/triton/ssd_*.py, and causal-conv1d), which Megatron-Core and Hugging Face call,
 * quoted from memory: states of chunks and the products of what writes and reads states
 * lie in memory between them, in fp32, and the backward computes all of the forward again
 * but its last kernel. */
typedef struct ms_scan_shape {
    double tokens;
    double heads, head_dim, state_size, groups;
    double chunk_tokens;
    double element_bytes; /* as activations are stored */
    bool backward;
} ms_scan_shape;

/* FLOP of the products of a scan: scores within chunks (2 Q N G a token), their results (a causal
 * half of 2 Q P H), states of chunks and what they add to results (2 N P H each);
 * backward three times the first two and six products with states. */
double ms_scan_flop(ms_scan_shape shape);

/* HBM traffic of all kernels of a scan. */
double ms_scan_traffic_bytes(ms_scan_shape shape);

/* Number of kernels of a scan. */
int ms_scan_kernels(bool backward);

/* Bytes that the kernels of a scan use beside operands and results, all at once. */
double ms_scan_buffer_bytes(ms_scan_shape shape);

#endif
