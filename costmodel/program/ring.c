#include "costmodel/program/ring.h"

#define CP_AXIS 1

bool ms_node_is_ring(const ms_program *program, const ms_node *node)
{
    bool attention = node->op == MS_OP_ATTENTION || node->op == MS_OP_ATTENTION_GRAD;
    return attention && node->ring && program->mesh_size[MS_DENSE_MESH][CP_AXIS] > 1;
}

/* Copies of each key head that ring attention sends: 1, or one per query head. */
static double copies_of_heads(const ms_program *program, const ms_node *node)
{
    if (!program->key.ring_repeats_heads)
        return 1.0;
    return ms_tensor_local_size(program, node->in[0], MS_DIM_HEADS) /
           ms_tensor_local_size(program, node->in[1], MS_DIM_KV_HEADS);
}

static double key_value_bytes(const ms_program *program, const ms_node *node)
{
    return copies_of_heads(program, node) * (ms_tensor_local_bytes(program, node->in[1]) +
                                             ms_tensor_local_bytes(program, node->in[2]));
}

static double gradient_bytes_of(const ms_program *program, int gradient)
{
    double element_bytes = program->key.ring_gradient_bytes;
    return element_bytes > 0.0
               ? element_bytes * ms_tensor_local_elements(program, gradient)
               : ms_tensor_local_bytes(program, gradient);
}

static double key_value_gradient_bytes(const ms_program *program, const ms_node *node)
{
    return copies_of_heads(program, node) * (gradient_bytes_of(program, node->out[1]) +
                                             gradient_bytes_of(program, node->out[2]));
}

/* Shares of a rank's attention time in the first ring step and in each later one. */
typedef struct step_shares {
    double first, later;
} step_shares;

static step_shares shares_of(const ms_program *program)
{
    double ranks = (double)program->mesh_size[MS_DENSE_MESH][CP_AXIS];
    if (!program->key.cp_unbalanced)
        return (step_shares){1.0 / ranks, 1.0 / ranks};
    return (step_shares){0.5 / (ranks - 0.5), 1.0 / (ranks - 0.5)};
}

static int forward_transfers(double bytes, int ranks, step_shares share,
                             ms_ring_transfer *transfers)
{
    int num = 0;
    transfers[num++] = (ms_ring_transfer){1, bytes, share.first};
    if (ranks > 2)
        transfers[num++] =
            (ms_ring_transfer){ranks - 2, bytes, share.later * (ranks - 2)};
    return num;
}

/* Lists the sends of backward: keys and values, their gradients one step later, and at
 * the end one hop that brings the gradients home. */
static int backward_transfers(double bytes, double gradient_bytes, int ranks,
                              step_shares share, ms_ring_transfer *transfers)
{
    int num = 0, both = ranks - 2;
    double ours = bytes / (bytes + gradient_bytes);
    transfers[num++] = (ms_ring_transfer){1, bytes, share.first};
    if (both > 0) {
        double shared = share.later * both;
        transfers[num++] = (ms_ring_transfer){both, bytes, shared * ours};
        transfers[num++] =
            (ms_ring_transfer){both, gradient_bytes, shared * (1.0 - ours)};
    }
    transfers[num++] = (ms_ring_transfer){1, gradient_bytes, share.later};
    transfers[num++] = (ms_ring_transfer){1, gradient_bytes, 0.0};
    return num;
}

int ms_ring_transfers(const ms_program *program, const ms_node *node,
                      ms_ring_transfer transfers[MS_MAX_RING_TRANSFERS])
{
    if (!ms_node_is_ring(program, node))
        return 0;
    int ranks = (int)program->mesh_size[MS_DENSE_MESH][CP_AXIS];
    double bytes = key_value_bytes(program, node);
    step_shares share = shares_of(program);
    if (node->op == MS_OP_ATTENTION)
        return forward_transfers(bytes, ranks, share, transfers);
    return backward_transfers(bytes, key_value_gradient_bytes(program, node), ranks,
                              share, transfers);
}

double ms_ring_key_tokens(const ms_program *program, const ms_node *node)
{
    double ranks = (double)program->mesh_size[MS_DENSE_MESH][CP_AXIS];
    double block = ms_tensor_local_size(program, node->in[1], MS_DIM_SEQUENCE);
    double later = program->key.cp_unbalanced ? 2.0 : 1.5;
    return block * (1.0 + later * (ranks - 1.0)) / ranks;
}

#define ACCUMULATOR_BYTES 4.0

double ms_ring_merge_bytes(const ms_program *program, const ms_node *node)
{
    if (!ms_node_is_ring(program, node))
        return 0.0;
    double bytes = 0.0;
    int num_merged = node->op == MS_OP_ATTENTION ? 1 : node->num_out;
    for (int i = 0; i < num_merged; i++) {
        bytes +=
            (i == 0 ? 1.0 : copies_of_heads(program, node)) *
            (ms_tensor_local_bytes(program, node->out[i]) +
             2.0 * ACCUMULATOR_BYTES * ms_tensor_local_elements(program, node->out[i]));
    }
    return bytes * (double)(program->mesh_size[MS_DENSE_MESH][CP_AXIS] - 1);
}

double ms_ring_buffer_bytes(const ms_program *program, const ms_node *node)
{
    if (!ms_node_is_ring(program, node))
        return 0.0;
    double bytes = 2.0 * key_value_bytes(program, node);
    if (node->op == MS_OP_ATTENTION_GRAD)
        bytes += key_value_gradient_bytes(program, node);
    return bytes;
}
