#include "costmodel/tensor/kernel_shape.h"

/* HBM passes of all scan kernels together over each kind of tensor (reads, writes). */
typedef struct scan_passes {
    double channels;    /* inputs and outputs of the convolution */
    double inner;       /* values, gates and results of heads */
    double groups;      /* matrices B and C, which write and read states */
    double wide_states; /* states of token chunks, in fp32 */
    double states;      /* states of token chunks, as stored */
    double scores;      /* scores between tokens of a chunk, in fp32 */
} scan_passes;

/* HBM passes of all forward kernels, a number before each member. Convolution: 2
 * channels. States of chunks: 1 inner (values), 1 groups (writer), 1 wide. Passing states
 * on: 1 wide, 1 states. Scores: 2 groups, 1 scores. Scan: 4 inner (values, gates, two
 * results), 1 groups (reader), 1 states, 1 scores. */
static const scan_passes forward_passes = {
    .channels = 2, .inner = 5, .groups = 4, .wide_states = 2, .states = 2, .scores = 2};

/* HBM passes of all backward kernels, a number before each member. Forward again without
 * its scan: 2 channels, 1 inner, 3 groups, 2 wide, 1 states, 1 scores; gate 5 inner.
 * Gradients of states: 1 inner, 1 groups, 1 wide; passing: 1 wide, 2 states; values: 3
 * inner, 1 groups, 1 states, 1 scores; writer, reader: 2 inner, 4 groups (fp32), 2
 * states; scores: 2 inner, 1 scores, then for writer, reader 8 groups, 2 scores; decays:
 * 3 inner, 1 groups, 1 states, 1 scores; convolution: 3 channels. */
static const scan_passes backward_passes = {
    .channels = 5, .inner = 17, .groups = 18, .wide_states = 4, .states = 7, .scores = 6};

/* Elements of each kind of scan tensor on a rank. */
typedef struct scan_sizes {
    double channels, inner, groups, states, scores;
} scan_sizes;

static scan_sizes sizes_of(ms_scan_shape shape)
{
    double inner = shape.tokens * shape.heads * shape.head_dim;
    double groups = shape.tokens * shape.groups * shape.state_size;
    return (scan_sizes){
        .channels = inner + 2.0 * groups,
        .inner = inner,
        .groups = groups,
        .states = inner * shape.state_size / shape.chunk_tokens,
        .scores = shape.tokens * shape.groups * shape.chunk_tokens,
    };
}

double ms_scan_flop(ms_scan_shape shape)
{
    double inner = shape.heads * shape.head_dim;
    double scores = 2.0 * shape.chunk_tokens * shape.state_size * shape.groups;
    double results = (shape.chunk_tokens + 1.0) * inner;
    double states = 2.0 * shape.state_size * inner;
    double per_token = shape.backward ? 3.0 * scores + 3.0 * results + 6.0 * states
                                      : scores + results + 2.0 * states;
    return shape.tokens * per_token;
}

double ms_scan_traffic_bytes(ms_scan_shape shape)
{
    const scan_passes *p = shape.backward ? &backward_passes : &forward_passes;
    scan_sizes n = sizes_of(shape);
    double stored = p->channels * n.channels + p->inner * n.inner + p->groups * n.groups +
                    p->states * n.states;
    double wide = p->wide_states * n.states + p->scores * n.scores;
    return shape.element_bytes * stored + 4.0 * wide;
}

double ms_scan_buffer_bytes(ms_scan_shape shape)
{
    scan_sizes n = sizes_of(shape);
    double copies = shape.backward ? 2.0 : 1.0; /* backward: gradients beside values */
    double stored = copies * (n.channels + n.states) + (shape.backward ? n.inner : 0.0);
    return shape.element_bytes * stored + 4.0 * (n.states + copies * n.scores);
}

/* Number of kernels of a scan. Forward: convolution, sums of decays, states, passing of
 * states, scores, scan. Backward: the first five again, and eleven for gradients. */
int ms_scan_kernels(bool backward)
{
    return backward ? 16 : 6;
}
