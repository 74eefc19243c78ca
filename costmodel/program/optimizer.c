/* Writes the optimizer pass: each weight gradient is reduced over the axes on which it is
 * a partial sum, then the weight is updated. The reductions are those of data
 * parallelism: over dp and cp for dense weights, edp for experts, tp for weights that
 * sequence parallelism replicates. Each is written as an all-reduce; with ZeRO 1 to 3 it
 * runs as a reduce-scatter, and an all-gather of the weights later. */
#include "costmodel/program/program_priv.h"

#define STATE_BYTES 4.0 /* optimizer moments are kept in fp32 */

static int reduced(ms_builder *b, int weight)
{
    int gradient = b->tensors[weight].gradient;
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        if (b->tensors[gradient].at[axis].kind == MS_PARTIAL_SUM)
            gradient = ms_convert(b, gradient, axis, ms_replicate);
    return gradient;
}

static void update(ms_builder *b, int weight)
{
    ms_node node = {.op = MS_OP_ADAM,
                    .pass = MS_PASS_OPTIMIZER,
                    .name = b->tensors[weight].name,
                    .forward = -1,
                    .num_in = 4,
                    .num_out = 3};
    node.in[0] = weight;
    node.in[1] = reduced(b, weight);
    for (int i = 2; i < 4; i++)
        node.in[i] = ms_add_tensor_like(b, weight, MS_ROLE_STATE, STATE_BYTES);
    for (int i = 0; i < 3; i++)
        node.out[i] = ms_add_tensor_like(b, weight, MS_ROLE_STATE, STATE_BYTES);
    ms_push_node(b, &node);
}

void ms_write_optimizer(ms_builder *b)
{
    int num_tensors = b->num_tensors;
    b->pass = MS_PASS_OPTIMIZER;
    for (int t = 0; t < num_tensors; t++)
        if (b->tensors[t].role == MS_ROLE_WEIGHT && b->tensors[t].gradient >= 0)
            update(b, t);
}
