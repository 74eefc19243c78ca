/* Placement propagation: chooses the letter that shards each node over a mesh axis;
 * placements of operands and results follow by the rules of einsum.h. Weights stay where
 * they are; activations are redistributed. Not by einsum_strategy.h: searches build
 * programs for any dp, and before there is a cluster to price on. */
#include "base/number.h"
#include "costmodel/program/program_priv.h"

#include <assert.h>
#include <string.h>

bool ms_axis_active(const ms_program *program, int mesh, int axis)
{
    return axis == 0 || program->mesh_size[mesh][axis] > 1;
}

ms_placement ms_stream_placement(const ms_builder *b, int axis)
{
    if (axis == 0)
        return ms_shard(MS_DIM_BATCH);
    if (axis == 1 || b->program->key.sequence_parallel)
        return ms_shard(MS_DIM_SEQUENCE);
    return ms_replicate;
}

int ms_to_stream(ms_builder *b, int tensor)
{
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        if (ms_axis_active(b->program, MS_DENSE_MESH, axis))
            tensor = ms_convert(b, tensor, axis, ms_stream_placement(b, axis));
    return tensor;
}

/* ---- redistribution ---- */

static int find_conversion(const ms_builder *b, int tensor, int axis, ms_placement to)
{
    for (int i = 0; i < b->num_conversions; i++) {
        const ms_conversion *known = &b->conversions[i];
        if (known->tensor == tensor && known->axis == axis &&
            ms_placement_equal(known->to, to))
            return known->result;
    }
    return -1;
}

int ms_convert(ms_builder *b, int tensor, int axis, ms_placement to)
{
    ms_tensor *source = &b->tensors[tensor];
    if (!ms_axis_active(b->program, source->mesh, axis) ||
        ms_placement_equal(source->at[axis], to))
        return tensor;
    int known = find_conversion(b, tensor, axis, to);
    if (known >= 0)
        return known;
    int result =
        ms_add_tensor_like(b, tensor, (ms_role)source->role, source->element_bytes);
    b->tensors[result].at[axis] = to;
    ms_node node = {.op = MS_OP_REDISTRIBUTE,
                    .name = source->name,
                    .forward = -1,
                    .axis = (unsigned char)axis,
                    .from = source->at[axis],
                    .to = to};
    ms_node_take(&node, tensor);
    ms_node_give(&node, result);
    ms_push_node(b, &node);
    assert(b->num_conversions < MS_MAX_CONVERSIONS);
    b->conversions[b->num_conversions++] =
        (ms_conversion){tensor, result, (unsigned char)axis, to};
    return result;
}

/* ---- strategies ---- */

char ms_operand_letter(const ms_node *node, const ms_tensor *operand, int input, int axis,
                       char letter)
{
    if (letter == MS_WHOLE || letter == MS_LINEAR)
        return 0;
    if (node->op == MS_OP_ATTENTION && !node->ring && letter == MS_DIM_SEQUENCE &&
        (input == 1 || input == 2))
        return 0; /* whole: a query needs all keys before it */
    if (node->op == MS_OP_ATTENTION && input == 3 && axis == 1)
        return 0; /* weights are whole on cp, also where it splits heads */
    if (ms_tensor_has(operand, letter))
        return letter;
    if (node->op == MS_OP_SCAN && letter == MS_DIM_MAMBA_PROJECTED)
        /* the operand's dim of heads, groups or channels */
        return operand->dims[strlen(operand->dims) == 3 ? 2 : 0];
    if (node->op == MS_OP_ATTENTION && letter == MS_DIM_HEADS &&
        ms_tensor_has(operand, MS_DIM_KV_HEADS))
        return MS_DIM_KV_HEADS; /* query heads are where their key head is */
    bool token_letter = letter == MS_DIM_BATCH || letter == MS_DIM_SEQUENCE;
    if ((node->op == MS_OP_PERMUTE || node->op == MS_OP_UNPERMUTE) && token_letter &&
        ms_tensor_has(operand, MS_DIM_ROWS))
        return MS_DIM_ROWS;
    bool by_expert = node->op == MS_OP_GROUPED || node->op == MS_OP_EXPERT_BIAS ||
                     node->op == MS_OP_EXPERT_BIAS_GRAD;
    if (by_expert && letter == MS_DIM_ROWS && axis == 1 &&
        ms_tensor_has(operand, MS_DIM_EXPERTS))
        return MS_DIM_EXPERTS; /* rows are where their expert is */
    return 0;
}

/* Whether an operation needs dim `letter` of its first operand whole. */
static bool must_be_whole(const ms_builder *b, const ms_node *node, const ms_tensor *lead,
                          char letter)
{
    size_t rank = strlen(lead->dims);
    switch (node->op) {
    case MS_OP_NORM:
        return ms_tensor_has(&b->tensors[node->in[1]], letter);
    case MS_OP_ROTARY:
    case MS_OP_ROUTE:
    case MS_OP_GATE:
    case MS_OP_ATTENTION:
    case MS_OP_MLA_KEYS:
    case MS_OP_PERMUTE:
        return letter == lead->dims[rank - 1];
    case MS_OP_SCAN: /* each token's state needs the previous one */
        return letter == MS_DIM_SEQUENCE;
    default:
        return false;
    }
}

/* Approximate bytes per rank of redistributing an operand; slices are nearly free. */
static double conversion_cost(const ms_builder *b, int tensor, int axis, ms_placement to)
{
    const ms_tensor *source = &b->tensors[tensor];
    ms_placement from = source->at[axis];
    if (ms_placement_equal(from, to))
        return 0.0;
    /* dp is 1 here, because programs do not depend on it: count 2 ranks */
    double ranks = ms_max((double)b->program->mesh_size[source->mesh][axis], 2.0);
    double bytes = ms_tensor_local_bytes(b->program, tensor);
    if (from.kind == MS_REPLICATE)
        return 1e-6 * bytes;
    if (from.kind == MS_SHARD)
        return to.kind == MS_REPLICATE ? bytes * (ranks - 1.0) : bytes;
    return to.kind == MS_REPLICATE ? 2.0 * bytes : bytes;
}

/* A dim of heads is split over tp first; cp splits the heads of each tp rank further. */
ms_placement ms_placed_over(const ms_program *program, int axis, ms_placement at)
{
    bool heads = at.dim == MS_DIM_HEADS || at.dim == MS_DIM_KV_HEADS;
    if (at.kind == MS_SHARD && heads && axis == 1 &&
        program->mesh_size[MS_DENSE_MESH][2] > 1)
        at.split_factor = (int)program->mesh_size[MS_DENSE_MESH][2];
    return at;
}

static ms_placement required(const ms_builder *b, const ms_node *node,
                             const ms_tensor *operand, int input, int axis, char letter)
{
    return ms_placed_over(
        b->program, axis,
        ms_spread_operand(ms_operand_letter(node, operand, input, axis, letter)));
}

/* Approximate bytes moved to shard a node by `letter`; 1e300 if a weight had to move. */
static double strategy_cost(const ms_builder *b, const ms_node *node, int axis,
                            char letter)
{
    double cost = 0.0;
    for (int i = 0; i < node->num_in; i++) {
        const ms_tensor *operand = &b->tensors[node->in[i]];
        ms_placement to = required(b, node, operand, i, axis, letter);
        if (operand->role == MS_ROLE_WEIGHT) {
            if (!ms_placement_equal(operand->at[axis], to))
                return 1e300;
        } else {
            cost += conversion_cost(b, node->in[i], axis, to);
        }
    }
    return cost;
}

/* MS_WHOLE or the letter that moves fewest bytes if it shards a GEMM; ties: the first. */
static char cheapest_letter(const ms_builder *b, const ms_node *node, int axis)
{
    char best = MS_WHOLE;
    double best_cost = strategy_cost(b, node, axis, MS_WHOLE);
    for (const char *c = node->einsum; *c != '-'; c++) {
        if (*c == ',')
            continue;
        double cost = strategy_cost(b, node, axis, *c);
        if (cost < best_cost) {
            best = *c;
            best_cost = cost;
        }
    }
    assert(best_cost < 1e300);
    return best;
}

static bool all_partial(const ms_builder *b, const ms_node *node, int axis)
{
    for (int i = 0; i < node->num_in; i++)
        if (b->tensors[node->in[i]].at[axis].kind != MS_PARTIAL_SUM)
            return false;
    return true;
}

/* The letter that shards an operation other than GEMMs: as its first operand is split. */
static char lead_letter(const ms_builder *b, const ms_node *node, int axis)
{
    const ms_tensor *lead = &b->tensors[node->in[0]];
    ms_placement at = lead->at[axis];
    bool linear =
        node->op == MS_OP_UNPERMUTE || (node->op == MS_OP_ADD && node->num_out == 1);
    if (at.kind == MS_PARTIAL_SUM && linear &&
        (node->op == MS_OP_UNPERMUTE || all_partial(b, node, axis)))
        return MS_LINEAR;
    if (at.kind == MS_PARTIAL_SUM && node->op == MS_OP_EXPERT_BIAS)
        return MS_LINEAR; /* each rank adds its share of the bias */
    if (ms_placement_is_partial(at) ||
        (at.kind == MS_SHARD && must_be_whole(b, node, lead, at.dim)))
        at = ms_stream_placement(b, axis);
    if (at.kind != MS_SHARD)
        return MS_WHOLE;
    if (node->op == MS_OP_UNPERMUTE && at.dim == MS_DIM_ROWS)
        return axis == 0 ? MS_DIM_BATCH : MS_DIM_SEQUENCE;
    return at.dim;
}

static char choose_letter(const ms_builder *b, const ms_node *node, int axis)
{
    ms_placement table;
    switch (node->op) {
    case MS_OP_EINSUM:
        return cheapest_letter(b, node, axis);
    case MS_OP_GROUPED: /* rows over edp and ep, width of experts over etp */
        if (axis != 2)
            return MS_DIM_ROWS;
        return b->tensors[node->in[1]].at[axis].kind == MS_SHARD ? MS_DIM_EXPERT_FFN
                                                                 : MS_WHOLE;
    case MS_OP_EMBED:
        table = b->tensors[node->in[0]].at[axis];
        if (table.kind == MS_SHARD)
            return table.dim;
        table = ms_stream_placement(b, axis);
        return table.kind == MS_SHARD ? table.dim : MS_WHOLE;
    default:
        return lead_letter(b, node, axis);
    }
}

static ms_placement output_placement(const ms_builder *b, const ms_node *node,
                                     const ms_tensor *out, int axis, char letter)
{
    ms_placement result =
        ms_spread_result(letter, ms_operand_letter(node, out, -1, axis, letter));
    if (node->op == MS_OP_LOSS_MAX && result.kind == MS_PARTIAL_SUM)
        result.kind = MS_PARTIAL_MAX;
    return ms_placed_over(b->program, axis, result);
}

static void spread(ms_builder *b, ms_node *node, int axis, char letter)
{
    int mesh = b->tensors[node->in[0]].mesh;
    for (int i = 0; i < node->num_in; i++) {
        const ms_tensor *operand = &b->tensors[node->in[i]];
        if (operand->mesh != mesh || operand->role == MS_ROLE_WEIGHT)
            continue;
        if (letter == MS_LINEAR && operand->at[axis].kind == MS_PARTIAL_SUM)
            continue;
        char by = letter == MS_LINEAR ? MS_WHOLE : letter;
        node->in[i] =
            ms_convert(b, node->in[i], axis, required(b, node, operand, i, axis, by));
    }
    for (int i = 0; i < node->num_out; i++) {
        ms_tensor *out = &b->tensors[node->out[i]];
        out->mesh = (unsigned char)mesh;
        out->at[axis] = output_placement(b, node, out, axis, letter);
    }
}

/* Sets mesh (the other one) and placements of the rows that dispatch or combine makes. */
static void place_exchange(ms_builder *b, const ms_node *node)
{
    const ms_tensor *rows = &b->tensors[node->in[0]];
    ms_tensor *out = &b->tensors[node->out[0]];
    const ms_program *program = b->program;
    out->mesh = rows->mesh == MS_DENSE_MESH ? MS_SPARSE_MESH : MS_DENSE_MESH;
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        out->at[axis] = ms_axis_active(program, out->mesh, axis) ? ms_shard(MS_DIM_ROWS)
                                                                 : ms_replicate;
}

int ms_emit(ms_builder *b, ms_node *node)
{
    char strategy[MS_MESH_AXES] = {0};
    node->pass = b->pass;
    node->forward = -1;
    if (node->op == MS_OP_EXCHANGE) {
        place_exchange(b, node);
    } else {
        int mesh = b->tensors[node->in[0]].mesh;
        for (int axis = 0; axis < MS_MESH_AXES; axis++) {
            if (!ms_axis_active(b->program, mesh, axis)) {
                for (int i = 0; i < node->num_out; i++)
                    b->tensors[node->out[i]].mesh = (unsigned char)mesh;
                continue;
            }
            strategy[axis] = choose_letter(b, node, axis);
            spread(b, node, axis, strategy[axis]);
        }
    }
    int index = ms_push_node(b, node);
    memcpy(b->strategy[index], strategy, sizeof strategy);
    return index;
}
