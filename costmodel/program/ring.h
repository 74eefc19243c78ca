/* Ring attention, a method of context parallelism: queries stay, blocks of keys and
 * values travel once around the cp ranks, and every rank attends to the block it has
 * while the next one arrives. Results of blocks are merged by their log-sum-exp; in
 * backward the gradients of keys and values travel with their block and take one hop
 * more, home. Source: Liu et al. 2023, "Ring Attention with Blockwise Transformers";
 * Megatron-Core context parallelism (p2p). With head-tail balance ("zig-zag": rank r
 * holds chunks r and 2c-1-r of 2c) every step is the same work; with contiguous chunks
 * the last rank sets the pace, with half a block in its first step. */
#ifndef MS_COSTMODEL_PROGRAM_RING_H
#define MS_COSTMODEL_PROGRAM_RING_H

#include "costmodel/program/program.h"

/* Whether an ATTENTION or ATTENTION_GRAD node runs as a ring over more than one rank. */
bool ms_node_is_ring(const ms_program *program, const ms_node *node);

/* `count` sends of `size_bytes` from each rank to its neighbour on the cp axis. They may
 * overlap `window_frac` of the node's attention time: that of the ring steps in which
 * they run, divided among all transfers of those steps in proportion to bytes. */
typedef struct ms_ring_transfer {
    int count;
    double size_bytes;
    double window_frac;
} ms_ring_transfer;
#define MS_MAX_RING_TRANSFERS 5
/* Lists the transfers of ring attention; returns their number, 0 for other nodes. An
 * attention window shortens no ring: blocks that no query sees are sent all the same. */
int ms_ring_transfers(const ms_program *program, const ms_node *node,
                      ms_ring_transfer transfers[MS_MAX_RING_TRANSFERS]);

/* Key length at which the kernels of ring attention are rated, mean over steps. Rates are
 * those of causal kernels, whose queries see half of the keys on average: a step in which
 * every query sees k keys counts as a causal one of 2 k. With blocks of q tokens the
 * first step is causal: q. Later steps with contiguous chunks see whole blocks: 2 q. With
 * head-tail balance all queries see half a block in half of them, and half of the queries
 * see a whole block in the others: 1.5 q. */
double ms_ring_key_tokens(const ms_program *program, const ms_node *node);

/* HBM bytes of merging the results of c ring steps: c - 1 times, a rank's output
 * (backward: the gradients of queries, keys and values) is read in its own type, and an
 * fp32 accumulator read and written. 0 for other nodes. */
double ms_ring_merge_bytes(const ms_program *program, const ms_node *node);

/* Buffer bytes of ring attention: two key-value blocks, and gradients in backward. */
double ms_ring_buffer_bytes(const ms_program *program, const ms_node *node);

#endif
