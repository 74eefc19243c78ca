/* Layer programs made by hand: tensors and nodes are appended as given, and nothing is
 * derived. */
#include "tests/support/hand_program.h"

#include <assert.h>
#include <string.h>

void ms_hand_set_size(ms_hand *h, char letter, long size)
{
    h->program.size[letter - '0'] = (double)size;
}

ms_hand *ms_hand_open(ms_arena *arena)
{
    ms_hand *h = MS_NEW(arena, ms_hand);
    h->arena = arena;
    h->options.seed = 5;
    h->program = (ms_program){.model = &h->model,
                              .tensors = h->tensors,
                              .nodes = h->nodes,
                              .input = 0,
                              .output = 0,
                              .input_gradient = -1,
                              .output_gradient = -1};
    for (int mesh = 0; mesh < 2; mesh++)
        for (int axis = 0; axis < MS_MESH_AXES; axis++)
            h->program.mesh_size[mesh][axis] = 1;
    ms_hand_set_size(h, MS_DIM_BATCH, 2);
    ms_hand_set_size(h, MS_DIM_SEQUENCE, 8);
    ms_hand_set_size(h, MS_DIM_HIDDEN, 4);
    return h;
}

void ms_hand_set_mesh(ms_hand *h, ms_mesh_kind mesh, long outer, long middle, long inner)
{
    h->program.mesh_size[mesh][0] = outer;
    h->program.mesh_size[mesh][1] = middle;
    h->program.mesh_size[mesh][2] = inner;
}

ms_placement ms_hand_placement(char c)
{
    if (c == 'P' || c == 'M')
        return (ms_placement){.kind = c == 'P' ? MS_PARTIAL_SUM : MS_PARTIAL_MAX};
    if (c == 'R')
        return ms_replicate;
    return ms_shard(c);
}

/* at[i]: placement on mesh axis i: R replicated, P partial sum, M partial maximum,
 * otherwise sharded along the dim of this letter. */
int ms_hand_tensor(ms_hand *h, const char *dims, ms_role role, const char *at)
{
    int index = h->program.num_tensors++;
    assert(index < MS_MAX_HAND);
    ms_tensor *t = &h->tensors[index];
    *t = (ms_tensor){.name = ms_arena_printf(h->arena, "t%d", index),
                     .role = (unsigned char)role,
                     .saved = true,
                     .element_bytes = 2,
                     .producer = -1,
                     .gradient = -1};
    memcpy(t->dims, dims, strlen(dims) + 1);
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        t->at[axis] = ms_hand_placement(at[axis]);
    return index;
}

/* Adds an activation that the next node will produce. */
int ms_hand_result(ms_hand *h, const char *dims, const char *at)
{
    int index = ms_hand_tensor(h, dims, MS_ROLE_ACTIVATION, at);
    h->tensors[index].producer = h->program.num_nodes;
    return index;
}

ms_node *ms_hand_node(ms_hand *h, ms_op op, int num_in, int num_out)
{
    int index = h->program.num_nodes++;
    assert(index < MS_MAX_HAND);
    h->program.num_forward_nodes = h->program.num_nodes;
    h->nodes[index] = (ms_node){.op = (unsigned char)op,
                                .num_in = (unsigned char)num_in,
                                .num_out = (unsigned char)num_out,
                                .name = "hand",
                                .forward = -1};
    return &h->nodes[index];
}

ms_node *ms_hand_unary(ms_hand *h, ms_op op, int x, int out)
{
    ms_node *made = ms_hand_node(h, op, 1, 1);
    made->in[0] = x;
    made->out[0] = out;
    h->program.output = out;
    return made;
}

ms_node *ms_hand_binary(ms_hand *h, ms_op op, int x, int y, int out)
{
    ms_node *made = ms_hand_unary(h, op, x, out);
    made->num_in = 2;
    made->in[1] = y;
    return made;
}

int ms_hand_redistribute(ms_hand *h, int x, int axis, const char *at)
{
    int out = ms_hand_result(h, h->tensors[x].dims, at);
    h->tensors[out].mesh = h->tensors[x].mesh;
    ms_node *made = ms_hand_unary(h, MS_OP_REDISTRIBUTE, x, out);
    made->axis = (unsigned char)axis;
    made->from = h->tensors[x].at[axis];
    made->to = h->tensors[out].at[axis];
    return out;
}
