/* Shapes of one rank's kernels (GEMM, attention, scan), which costmodel/cost prices. */
#ifndef MS_COSTMODEL_TENSOR_KERNEL_SHAPE_H
#define MS_COSTMODEL_TENSOR_KERNEL_SHAPE_H

#include <stdbool.h>

/* `batch` equal GEMMs m x k by k x n; bytes per element of operands and of results. */
typedef struct ms_gemm_shape {
    double batch, m, n, k;
    double element_bytes, result_bytes;
} ms_gemm_shape;

/* Shape of attention forward or backward: `flop` counts executed FLOP, of causal pairs
 * only; `key_tokens`: causal keys, twice the mean number that a query sees;
 * score_elements = batch * queries * keys. */
typedef struct ms_attention_shape {
    double flop, key_tokens, head_dim, score_elements, traffic_bytes;
    bool backward;
    double query_rows;  /* batch * heads * queries; 0: enough to fill the GPU */
    double value_dim;   /* width of a value head; 0: equal to head_dim */
    double batch;       /* unfused: number of GEMMs, sequences * heads; 0: 1 */
    double score_bytes; /* unfused: HBM bytes of softmax and dropout per score element */
} ms_attention_shape;

/* A Mamba-2 mixer between its projections: causal convolution, and the recurrence of
 * states as GEMMs within chunks of tokens ("state space duality": Dao and Gu 2024,
 * arXiv 2405.21060, section 6). [2.2.2] of docs/formulas. Kernels are those of
 * mamba_split_conv1d_scan_combined (state-spaces/mamba, ops/triton/ssd_*.py, and
 * causal-conv1d), which Megatron-Core and Hugging Face call, quoted from memory:
 * states of chunks and scores are in memory between kernels, in fp32, and the backward
 * repeats the forward without its last kernel. */
typedef struct ms_scan_shape {
    double tokens;
    double heads, head_dim, state_size, groups;
    double chunk_tokens;
    double element_bytes; /* bytes of a stored activation element */
    bool backward;
} ms_scan_shape;

/* FLOP of a scan's GEMMs. Forward per token (state size N, G groups, H heads of width P,
 * chunks of Q tokens): scores 2 Q N G, their results a causal half of 2 Q P H, states of
 * chunks 2 N P H, and as much for results from states. Backward: scores and their results
 * three times, and six GEMMs of 2 N P H. */
double ms_scan_flop(ms_scan_shape shape);

/* HBM bytes read and written by all kernels of a scan. */
double ms_scan_traffic_bytes(ms_scan_shape shape);

int ms_scan_kernels(bool backward);

/* Bytes of a scan's intermediate buffers (not operands and results). */
double ms_scan_buffer_bytes(ms_scan_shape shape);

#endif
