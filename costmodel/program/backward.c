/* Writes the backward nodes of a layer program, one rule per operation. A gradient has
 * the dims and splits of its tensor; it is a partial sum where the tensor is whole and
 * the forward node was sharded by a letter. Gradients from several consumers of a tensor
 * are summed, if placed alike, before communication: one reduction serves all. */
#include "costmodel/program/program_priv.h"

#include <assert.h>
#include <string.h>

/* ---- placements of gradients ---- */

static ms_placement gradient_placement(const ms_builder *b, int f, int input, int axis)
{
    const ms_node *node = &b->nodes[f];
    const ms_tensor *operand = &b->tensors[node->in[input]];
    if (!ms_axis_active(b->program, operand->mesh, axis))
        return ms_replicate;
    char letter = b->strategy[f][axis];
    bool is_bias = node->op == MS_OP_EXPERT_BIAS && input == 1;
    if (letter == MS_LINEAR && (operand->at[axis].kind == MS_PARTIAL_SUM || is_bias))
        return ms_replicate; /* the gradient of a partial sum is replicated */
    return ms_placed_over(
        b->program, axis,
        ms_spread_result(letter, ms_operand_letter(node, operand, input, axis, letter)));
}

static int gradient_like(ms_builder *b, int tensor)
{
    const ms_tensor *of = &b->tensors[tensor];
    bool of_weight = of->role == MS_ROLE_WEIGHT;
    return ms_add_tensor_like(b, tensor,
                              of_weight ? MS_ROLE_WEIGHT_GRADIENT : MS_ROLE_GRADIENT,
                              of->element_bytes);
}

static int gradient_of_input(ms_builder *b, int f, int input)
{
    int gradient = gradient_like(b, b->nodes[f].in[input]);
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        b->tensors[gradient].at[axis] = gradient_placement(b, f, input, axis);
    return gradient;
}

static bool same_placement(const ms_tensor *x, const ms_tensor *y)
{
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        if (!ms_placement_equal(x->at[axis], y->at[axis]))
            return false;
    return true;
}

/* ---- nodes ---- */

static ms_node gradient_node(const ms_builder *b, ms_op op, ms_pass pass, int f)
{
    ms_node node = b->nodes[f];
    node.op = (unsigned char)op;
    node.pass = (unsigned char)pass;
    node.num_in = node.num_out = 0;
    node.forward = f;
    return node;
}

/* ---- summing contributions ---- */

static int sum_of(ms_builder *b, int x, int y)
{
    int sum = gradient_like(b, x);
    b->tensors[sum].role = MS_ROLE_GRADIENT;
    ms_node node = {.op = MS_OP_ADD,
                    .pass = MS_PASS_BACKWARD_INPUT,
                    .name = b->tensors[x].name,
                    .forward = -1};
    ms_node_take(&node, x);
    ms_node_take(&node, y);
    ms_node_give(&node, sum);
    ms_push_node(b, &node);
    return sum;
}

static void contribute(ms_builder *b, int tensor, int gradient)
{
    if (b->tensors[tensor].role == MS_ROLE_WEIGHT) {
        assert(b->tensors[tensor].gradient < 0);
        b->tensors[tensor].gradient = gradient;
        return;
    }
    ms_contributions *all = &b->gradient[tensor];
    for (int i = 0; i < all->num; i++) {
        if (same_placement(&b->tensors[all->tensor[i]], &b->tensors[gradient])) {
            all->tensor[i] = sum_of(b, all->tensor[i], gradient);
            return;
        }
    }
    assert(all->num < MS_MAX_CONTRIBUTIONS);
    all->tensor[all->num++] = gradient;
}

/* Returns the whole gradient of a tensor, summed and reduced; -1 if it has none. */
static int take(ms_builder *b, int tensor)
{
    ms_contributions *all = &b->gradient[tensor];
    int total = -1;
    for (int i = 0; i < all->num; i++) {
        int term = all->tensor[i];
        for (int axis = 0; axis < MS_MESH_AXES; axis++)
            term = ms_convert(b, term, axis,
                              ms_gradient_placement(b->tensors[tensor].at[axis]));
        total = total < 0 ? term : sum_of(b, total, term);
    }
    return total;
}

/* Returns the gradient of a result of a linear node, which may stay a partial sum. */
static int take_linear(ms_builder *b, int tensor)
{
    const ms_contributions *all = &b->gradient[tensor];
    return all->num == 1 ? all->tensor[0] : take(b, tensor);
}

/* Completes a backward node whose result is the gradient of one forward operand. */
static void finish(ms_builder *b, ms_node *node, int input)
{
    int operand = b->nodes[node->forward].in[input];
    int gradient = ms_node_give(node, gradient_of_input(b, node->forward, input));
    ms_push_node(b, node);
    contribute(b, operand, gradient);
}

static bool is_frozen(const ms_builder *b, int tensor)
{
    return b->tensors[tensor].frozen;
}

/* ---- rules ---- */

typedef struct letters {
    const char *text;
    size_t length;
} letters;

static char *put(char *end, letters x)
{
    memcpy(end, x.text, x.length);
    return end + x.length;
}

/* The einsum text "x,y->z", made without printf because searches make so many. */
static char *einsum_of(ms_arena *arena, letters x, letters y, letters z)
{
    char *text = ms_arena_alloc(arena, x.length + y.length + z.length + 4), *end = text;
    end = put(end, x);
    *end++ = ',';
    end = put(end, y);
    *end++ = '-';
    *end++ = '>';
    put(end, z);
    return text;
}

static char *swap_einsum(ms_builder *b, const char *einsum, int input)
{
    const char *comma = strchr(einsum, ','), *arrow = strchr(einsum, '-');
    letters first = {einsum, (size_t)(comma - einsum)};
    letters second = {comma + 1, (size_t)(arrow - comma - 1)};
    letters result = {arrow + 2, strlen(arrow + 2)};
    return input == 0 ? einsum_of(b->arena, result, second, first)
                      : einsum_of(b->arena, first, result, second);
}

static void product_rule(ms_builder *b, int f)
{
    int gout = take(b, b->nodes[f].out[0]);
    if (gout < 0)
        return;
    for (int input = 0; input < 2; input++) {
        if (is_frozen(b, b->nodes[f].in[input]))
            continue;
        bool of_weight = b->tensors[b->nodes[f].in[input]].role == MS_ROLE_WEIGHT;
        ms_node node = gradient_node(
            b, (ms_op)b->nodes[f].op,
            of_weight ? MS_PASS_BACKWARD_WEIGHT : MS_PASS_BACKWARD_INPUT, f);
        node.einsum = swap_einsum(b, node.einsum, input);
        ms_node_take(&node, input == 0 ? gout : b->nodes[f].in[0]);
        ms_node_take(&node, input == 0 ? b->nodes[f].in[1] : gout);
        if (node.op == MS_OP_GROUPED)
            ms_node_take(&node, b->nodes[f].in[2]);
        finish(b, &node, input);
    }
}

static void bias_rule(ms_builder *b, int f)
{
    int gout = take(b, b->nodes[f].out[0]);
    if (gout < 0)
        return;
    contribute(b, b->nodes[f].in[0], gout);
    if (is_frozen(b, b->nodes[f].in[1]))
        return;
    ms_node node = gradient_node(b, MS_OP_SUM_TO, MS_PASS_BACKWARD_WEIGHT, f);
    ms_node_take(&node, gout);
    finish(b, &node, 1);
}

static void expert_bias_rule(ms_builder *b, int f)
{
    int gout = take(b, b->nodes[f].out[0]);
    contribute(b, b->nodes[f].in[0], gout);
    if (is_frozen(b, b->nodes[f].in[1]))
        return;
    ms_node node = gradient_node(b, MS_OP_EXPERT_BIAS_GRAD, MS_PASS_BACKWARD_WEIGHT, f);
    ms_node_take(&node, gout);
    ms_node_take(&node, b->nodes[f].in[2]);
    finish(b, &node, 1);
}

static void add_rule(ms_builder *b, int f)
{
    int gout = take(b, b->nodes[f].out[0]);
    if (gout < 0)
        return;
    contribute(b, b->nodes[f].in[0], gout);
    if (b->nodes[f].num_out == 1) {
        contribute(b, b->nodes[f].in[1], gout);
        return;
    }
    ms_node node = gradient_node(b, MS_OP_DROPOUT_GRAD, MS_PASS_BACKWARD_INPUT, f);
    ms_node_take(&node, gout);
    ms_node_take(&node, b->nodes[f].out[1]);
    finish(b, &node, 1);
}

static int num_losses_before(const ms_builder *b, int f)
{
    int count = 0;
    for (int n = 0; n < f; n++)
        count += b->nodes[n].op == MS_OP_LOSS;
    return count;
}

/* Starts backward: the logits' gradient needs only the softmax statistics of the loss. */
static void loss_rule(ms_builder *b, int f)
{
    const ms_node forward = b->nodes[f];
    int logits = b->logits[num_losses_before(b, f)];
    ms_node node = gradient_node(b, MS_OP_LOSS_GRAD, MS_PASS_BACKWARD_INPUT, f);
    ms_node_take(&node, logits);
    ms_node_take(&node, forward.in[0]);
    ms_node_take(&node, forward.in[1]);
    int gradient = ms_node_give(&node, gradient_like(b, logits));
    ms_push_node(b, &node);
    contribute(b, logits, gradient);
}

/* Writes the backward of a token exchange, which sends the rows' gradients back;
 * gradients that are partial sums over etp stay so. */
static void exchange_rule(ms_builder *b, int f)
{
    const ms_node forward = b->nodes[f];
    int gout = take_linear(b, forward.out[0]);
    ms_node node = gradient_node(b, MS_OP_EXCHANGE, MS_PASS_BACKWARD_INPUT, f);
    node.inverse = !forward.inverse;
    ms_node_take(&node, gout);
    ms_node_take(&node, forward.in[1]);
    int gradient = ms_node_give(&node, gradient_like(b, forward.in[0]));
    ms_tensor *t = &b->tensors[gradient];
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        t->at[axis] = ms_gradient_placement(b->tensors[forward.in[0]].at[axis]);
    if (b->tensors[gout].at[2].kind == MS_PARTIAL_SUM)
        t->at[2] = b->tensors[gout].at[2];
    ms_push_node(b, &node);
    contribute(b, forward.in[0], gradient);
}

static void permute_rule(ms_builder *b, int f)
{
    const ms_node forward = b->nodes[f];
    int gout = take_linear(b, forward.out[0]);
    ms_node node = gradient_node(b, MS_OP_PERMUTE_GRAD, MS_PASS_BACKWARD_INPUT, f);
    ms_node_take(&node, gout);
    ms_node_take(&node, forward.in[1]);
    int gradient = ms_node_give(&node, gradient_of_input(b, f, 0));
    if (b->tensors[gout].at[2].kind == MS_PARTIAL_SUM)
        b->tensors[gradient].at[2] = b->tensors[gout].at[2];
    ms_push_node(b, &node);
    contribute(b, forward.in[0], gradient);
}

/* Writes the backward of a redistribution, by the placements of the result's gradient and
 * of the one wanted for the input: reduce-scatter for all-gather and vice versa, nothing
 * for all-reduce, all-gather for a local slice. */
static void redistribute_rule(ms_builder *b, int f)
{
    const ms_node forward = b->nodes[f];
    ms_contributions all = b->gradient[forward.out[0]];
    for (int i = 0; i < all.num; i++)
        contribute(b, forward.in[0],
                   ms_convert(b, all.tensor[i], forward.axis,
                              ms_gradient_placement(forward.from)));
}

/* How an operation is differentiated: by function `write`, or by one node `op`. `slots`:
 * its operands '>' its results. a b c ... are operands of the forward node, x y z its
 * results, capitals their gradients; what the forward node lacks is left out. */
typedef struct backward_rule {
    void (*write)(ms_builder *b, int f);
    const char *slots;
    ms_op op;
    bool of_weight; /* makes only the gradient of a weight */
} backward_rule;

static void attention_rule(ms_builder *b, int f);

static const backward_rule rules[MS_NUM_OPS] = {
    [MS_OP_EINSUM] = {.write = product_rule},
    [MS_OP_GROUPED] = {.write = product_rule},
    [MS_OP_BIAS] = {.write = bias_rule},
    [MS_OP_ADD] = {.write = add_rule},
    [MS_OP_NORM] = {.op = MS_OP_NORM_GRAD,
                    .slots = "abX>ABC"}, /* NORM_GRAD does not read the bias (c) */
    [MS_OP_ROTARY] = {.op = MS_OP_ROTARY, .slots = "X>A"},
    [MS_OP_ATTENTION] = {.write = attention_rule},
    [MS_OP_EXPERT_BIAS] = {.write = expert_bias_rule},
    [MS_OP_MLA_KEYS] = {.op = MS_OP_MLA_KEYS_GRAD, .slots = "XY>AB"},
    [MS_OP_ACTIVATION] = {.op = MS_OP_ACTIVATION_GRAD, .slots = "abX>AB"},
    [MS_OP_EMBED] = {.op = MS_OP_EMBED_GRAD, .slots = "X>A", .of_weight = true},
    [MS_OP_LOSS] = {.write = loss_rule},
    [MS_OP_ROUTE] = {.op = MS_OP_ROUTE_GRAD, .slots = "axyX>A"},
    [MS_OP_PERMUTE] = {.write = permute_rule},
    [MS_OP_EXCHANGE] = {.write = exchange_rule},
    [MS_OP_UNPERMUTE] = {.op = MS_OP_UNPERMUTE_GRAD, .slots = "Xabc>AB"},
    [MS_OP_GATE] = {.op = MS_OP_GATE_GRAD, .slots = "abX>AB"},
    /* SCAN_GRAD recomputes all but the operands and the ungated result (y). */
    [MS_OP_SCAN] = {.op = MS_OP_SCAN_GRAD, .slots = "abcdefyX>ABCDEF"},
    [MS_OP_CONCAT] = {.op = MS_OP_CONCAT_GRAD, .slots = "X>AB"},
    [MS_OP_GROUP_NORM] = {.op = MS_OP_GROUP_NORM_GRAD, .slots = "abX>AB"},
    [MS_OP_REDISTRIBUTE] = {.write = redistribute_rule},
};

/* Adds to `node` the operands that `slots` names; false if one is a missing gradient. */
static bool take_slots(ms_builder *b, const ms_node *forward, const char *slots,
                       ms_node *node)
{
    for (const char *s = slots; *s != '>'; s++) {
        int tensor = -1;
        if (*s >= 'X' && *s <= 'Z') {
            tensor = take(b, forward->out[*s - 'X']);
            if (tensor < 0)
                return false;
        } else if (*s >= 'x') {
            tensor = *s - 'x' < forward->num_out ? forward->out[*s - 'x'] : -1;
        } else {
            tensor = *s - 'a' < forward->num_in ? forward->in[*s - 'a'] : -1;
        }
        if (tensor >= 0)
            ms_node_take(node, tensor);
    }
    return true;
}

/* Sets the operands of a forward node whose gradients `slots` names, without frozen
 * weights; returns their number. */
static int differentiated(const ms_builder *b, const ms_node *forward, const char *slots,
                          int operands[MS_MAX_OPERANDS])
{
    int num = 0;
    for (const char *s = strchr(slots, '>') + 1; *s != '\0'; s++) {
        int input = *s - 'A';
        if (input < forward->num_in && !is_frozen(b, forward->in[input]))
            operands[num++] = input;
    }
    return num;
}

static void write_rule(ms_builder *b, int f, const backward_rule *rule)
{
    const ms_node forward = b->nodes[f];
    int operands[MS_MAX_OPERANDS];
    int num = differentiated(b, &forward, rule->slots, operands);
    if (num == 0)
        return;
    ms_node node = gradient_node(
        b, rule->op, rule->of_weight ? MS_PASS_BACKWARD_WEIGHT : MS_PASS_BACKWARD_INPUT,
        f);
    if (rule->op == MS_OP_ROTARY)
        node.inverse = !forward.inverse;
    if (!take_slots(b, &forward, rule->slots, &node))
        return;
    for (int i = 0; i < num; i++)
        ms_node_give(&node, gradient_of_input(b, f, operands[i]));
    ms_push_node(b, &node);
    for (int i = 0; i < num; i++)
        contribute(b, forward.in[operands[i]], node.out[i]);
}

/* Writes the backward of attention: of queries, keys and values, then of sinks, which
 * read the output and its gradient alone. */
static void attention_rule(ms_builder *b, int f)
{
    static const backward_rule of_inputs = {.op = MS_OP_ATTENTION_GRAD,
                                            .slots = "abcxyXz>ABC"},
                               of_sinks = {.op = MS_OP_SINK_GRAD, .slots = "xyXd>D"};
    write_rule(b, f, &of_inputs);
    if (b->nodes[f].num_in > 3)
        write_rule(b, f, &of_sinks);
}

/* ---- the pass ---- */

static void seed_output_gradient(ms_builder *b)
{
    int output = b->program->output;
    int seed = gradient_like(b, output);
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        b->tensors[seed].at[axis] = ms_gradient_placement(b->tensors[output].at[axis]);
    b->program->output_gradient = seed;
    contribute(b, output, seed);
}

void ms_write_backward(ms_builder *b)
{
    int num_forward = b->num_nodes;
    b->pass = MS_PASS_BACKWARD_INPUT;
    if (b->program->key.block != MS_BLOCK_HEAD)
        seed_output_gradient(b);
    /* an embedding beside adapters is frozen, and nothing comes before it */
    bool ends = b->program->key.lora.rank > 0 && b->program->key.block == MS_BLOCK_EMBED;
    for (int f = num_forward - 1; f >= 0 && !ends; f--) {
        const backward_rule *rule = &rules[b->nodes[f].op];
        if (rule->write != NULL)
            rule->write(b, f);
        else if (rule->slots != NULL)
            write_rule(b, f, rule);
    }
    if (b->program->input >= 0) {
        b->program->input_gradient = take(b, b->program->input);
        b->tensors[b->program->input].gradient = b->program->input_gradient;
    }
}
