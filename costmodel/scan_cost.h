/* Time of what a Mamba-2 mixer does between its projections: causal convolution, and the
 * recurrence of states as products within chunks of tokens ("state space duality": Dao
 * and Gu 2024, arXiv 2405.21060, section 6). [2.2.2] of docs/formulas.
 *
 * Kernels are those of mamba_split_conv1d_scan_combined (state-spaces/mamba,
 * ops/triton/ssd_*.py, and causal-conv1d), which Megatron-Core and Hugging Face call,
 * quoted from memory: states of chunks and the products of what writes and reads states
 * lie in memory between them, in fp32, and the backward computes all of the forward again
 * but its last kernel. */
#ifndef MS_COSTMODEL_SCAN_COST_H
#define MS_COSTMODEL_SCAN_COST_H

#include "costmodel/kernel_cost.h"

#include <stdbool.h>

/* Of one rank. */
typedef struct ms_scan_shape {
    double tokens;
    double heads, head_dim, state_size, groups;
    double chunk_tokens;
    double element_bytes; /* as activations are stored */
    bool backward;
} ms_scan_shape;

/* FLOP of the products: scores within chunks (2 Q N G a token), their results (a causal
 * half of 2 Q P H), states of chunks and what they add to results (2 N P H each);
 * backward three times the first two and six products with states. */
double ms_scan_flop(ms_scan_shape shape);

/* HBM traffic of all kernels. */
double ms_scan_traffic_bytes(ms_scan_shape shape);

/* The longer of traffic through HBM, with what the stack loses beyond it, and products at
 * the rate of large ones in 16 bits, and the launches' overhead is the host's. */
double ms_scan_s(const ms_pricer *pricer, ms_scan_shape shape);

int ms_scan_kernels(bool backward);

/* Bytes that the kernels use beside operands and results, all at once. */
double ms_scan_room_bytes(ms_scan_shape shape);

#endif
