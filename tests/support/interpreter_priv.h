/* Internals shared by the files of the reference interpreter: access to tensor parts, and
 * one function per operation. */
#ifndef MS_TESTS_SUPPORT_INTERPRETER_PRIV_H
#define MS_TESTS_SUPPORT_INTERPRETER_PRIV_H

#include "tests/support/interpreter.h"

/* Position of a rank's part in the whole tensor. */
typedef struct ms_box {
    int num_dims;
    long start[MS_MAX_DIMS];
    long len[MS_MAX_DIMS];
} ms_box;

/* Records the first failure; `node` may be NULL. */
void ms_interp_fail(ms_interp *run, const ms_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

long ms_interp_size(const ms_interp *run, char letter);
ms_box ms_interp_box(ms_interp *run, int tensor, int rank);
/* Moves `index` (relative to the box) to the next element in row-major order; false after
 * the last. */
bool ms_box_next(const ms_box *box, long *index);
long ms_interp_coordinate(const ms_interp *run, int mesh, int axis, int rank);
/* The rank whose coordinate on one axis is `coordinate`, and equal on the other axes. */
int ms_interp_peer(const ms_interp *run, int mesh, int axis, int rank, long coordinate);

ms_cell *ms_interp_cell(ms_interp *run, int tensor, int rank);
ms_cell *ms_interp_in(ms_interp *run, const ms_node *node, int operand, int rank);
/* Allocates a result of a node, zeroed; a dim of rows ('r') is as long as the operands',
 * or `num_rows`. */
ms_cell *ms_interp_out(ms_interp *run, const ms_node *node, int result, int rank);
ms_cell *ms_interp_out_rows(ms_interp *run, const ms_node *node, int result, int rank,
                            long num_rows);
/* False, with the failure recorded, unless the cell has `count` elements. */
bool ms_interp_expect(ms_interp *run, const ms_node *node, const ms_cell *cell,
                      long count);
void ms_interp_count_flop(ms_interp *run, const ms_node *node, double flop);
long ms_interp_position(const ms_interp *run, long stored);
/* Length of the last dim. */
long ms_cell_last(const ms_cell *cell);
/* Number of elements divided by the length of the last dim. */
long ms_cell_leading(const ms_cell *cell);

/* Token at a position of a sequence; stream 0: input tokens, 1: targets. */
long ms_interp_token(const ms_interp *run, int stream, long sequence, long position);

typedef void ms_interp_kernel(ms_interp *run, const ms_node *node, int rank);
ms_interp_kernel ms_interp_einsum, ms_interp_grouped, ms_interp_bias, ms_interp_sum_to;
ms_interp_kernel ms_interp_add, ms_interp_dropout_grad, ms_interp_norm,
    ms_interp_norm_grad;
ms_interp_kernel ms_interp_activation, ms_interp_activation_grad, ms_interp_gate,
    ms_interp_gate_grad;
ms_interp_kernel ms_interp_adam;
ms_interp_kernel ms_interp_rotary, ms_interp_attention, ms_interp_attention_grad;
ms_interp_kernel ms_interp_mla_keys, ms_interp_mla_keys_grad;
ms_interp_kernel ms_interp_embed, ms_interp_embed_grad;
ms_interp_kernel ms_interp_loss_max, ms_interp_loss_sum, ms_interp_loss_token,
    ms_interp_loss_grad;
ms_interp_kernel ms_interp_route, ms_interp_route_grad, ms_interp_permute,
    ms_interp_permute_grad;
ms_interp_kernel ms_interp_unpermute, ms_interp_unpermute_grad;
/* Communication: computes the part of `rank` from the operands of all ranks of its
 * group. */
ms_interp_kernel ms_interp_redistribute, ms_interp_exchange;

/* Counts the rows that a rank of the sparse mesh receives for each of its experts,
 * counts[e / ep]; returns their sum, -1 with the failure recorded. `choice`: tensor of
 * chosen experts on the dense mesh. */
long ms_interp_expert_rows(ms_interp *run, const ms_node *node, int choice, int rank,
                           long *counts);
/* Whether a placement change gathers or reduce-scatters expert rows over the etp ranks
 * that share experts. */
bool ms_interp_shares_rows(const ms_node *node);
void ms_interp_share_rows(ms_interp *run, const ms_node *node, int rank);

#endif
