/* Decides which activations are saved for backward, and copies the forward nodes that
 * make the others: if backward needs a tensor that is not saved, its producer is copied
 * before the first use, and so on down to saved tensors. */
#include "costmodel/program/program_priv.h"

#include <assert.h>
#include <string.h>

/* Backward repeats gathers of linear layers' inputs, but not of rows that etp ranks
 * share: the dispatcher gathers those, and experts' GEMMs save the result (Megatron). */
bool ms_node_is_gathered_again(const ms_program *program, const ms_node *node)
{
    return program->key.regather && node->op == MS_OP_REDISTRIBUTE &&
           node->from.kind == MS_SHARD && node->to.kind == MS_REPLICATE &&
           node->from.dim != MS_DIM_ROWS;
}

static int output_index(const ms_node *node, int tensor)
{
    int i = 0;
    while (i < node->num_out && node->out[i] != tensor)
        i++;
    assert(i < node->num_out);
    return i;
}

static bool odd_product(const ms_builder *b, int node)
{
    int count = 0;
    for (int i = 0; i <= node; i++)
        count += b->forward[i].op == MS_OP_EINSUM;
    return count % 2 == 1;
}

/* Whether TorchTitan's selective policy saves a node's results: attention, every second
 * GEMM, reduce-scatters, all-to-alls, top-k (distributed/activation_checkpoint.py). */
static bool per_op_keeps(const ms_builder *b, int producer)
{
    const ms_node *node = &b->forward[producer];
    switch (node->op) {
    case MS_OP_ATTENTION:
    case MS_OP_EXCHANGE:
    case MS_OP_ROUTE:
        return true;
    case MS_OP_EINSUM:
        return odd_product(b, producer);
    case MS_OP_REDISTRIBUTE:
        return node->from.kind == MS_PARTIAL_SUM && node->to.kind == MS_SHARD;
    default:
        return false;
    }
}

/* Whether an MLA node makes queries, keys or values from latent vectors (DeepSeek-V3,
 * arXiv: 2412.19437, section 3.2.3; Megatron Core, recompute_modules mla_up_proj). */
static bool is_made_of_latents(const ms_builder *b, const ms_node *node)
{
    return b->model->attention == MS_ATTENTION_MLA &&
           (node->op == MS_OP_MLA_KEYS || node->op == MS_OP_ROTARY ||
            strcmp(node->name, "attention.query_up") == 0 ||
            strcmp(node->name, "attention.kv_up") == 0);
}

static bool policy_keeps(const ms_builder *b, int tensor, int producer)
{
    const ms_node *node = &b->forward[producer];
    switch ((ms_recompute)b->program->key.recompute) {
    case MS_RECOMPUTE_FULL:
        return false;
    case MS_RECOMPUTE_PER_OP:
        return per_op_keeps(b, producer);
    case MS_RECOMPUTE_SELECTIVE:
        /* the projection after the attention core saves its result as its own input */
        if (b->program->key.core_attention)
            return (node->op != MS_OP_ATTENTION || output_index(node, tensor) == 0) &&
                   !ms_node_is_gathered_again(b->program, node);
        if (node->op == MS_OP_NORM || node->op == MS_OP_GROUP_NORM ||
            node->op == MS_OP_ACTIVATION)
            return false;
        if (node->op == MS_OP_ATTENTION && output_index(node, tensor) == 2)
            return false;
        if (is_made_of_latents(b, node))
            return false;
        break;
    case MS_RECOMPUTE_AUTO:
        if (!ms_saved_has(&b->program->key.keep, producer))
            return false;
        break;
    case MS_RECOMPUTE_NONE:
    case MS_NUM_RECOMPUTE:
        break;
    }
    return !ms_node_is_gathered_again(b->program, node);
}

/* Returns the layer's input, gathered over tp from the saved parts. */
static int gathered_input(ms_builder *b)
{
    int part = b->program->input_part, input = b->program->input,
        split = b->tensors[part].producer;
    if (b->clone[split] >= 0)
        return b->nodes[b->clone[split]].out[0];
    b->tensors[part].saved = true;
    ms_node gather = b->forward[split];
    gather.pass = MS_PASS_RECOMPUTE;
    gather.forward = split;
    gather.from = b->forward[split].to;
    gather.to = b->forward[split].from;
    gather.in[0] = part;
    gather.out[0] =
        ms_add_tensor_like(b, input, MS_ROLE_ACTIVATION, b->tensors[input].element_bytes);
    b->clone[split] = ms_push_node(b, &gather);
    return gather.out[0];
}

/* Returns what backward reads for a forward tensor: itself, or a recomputed copy. */
static int materialise(ms_builder *b, int num_forward, int tensor)
{
    ms_tensor *t = &b->tensors[tensor];
    if (t->role != MS_ROLE_ACTIVATION)
        return tensor;
    if (tensor == b->program->input_part)
        return tensor;
    if (tensor == b->program->input && b->program->input_part >= 0)
        return gathered_input(b);
    int producer = t->producer;
    if (producer < 0 || producer >= num_forward || policy_keeps(b, tensor, producer)) {
        t->saved = producer < num_forward;
        return tensor;
    }
    const ms_node *original = &b->forward[producer];
    int index = output_index(original, tensor);
    if (b->clone[producer] >= 0)
        return b->nodes[b->clone[producer]].out[index];
    ms_node copy = *original;
    copy.pass = MS_PASS_RECOMPUTE;
    copy.forward = producer;
    for (int i = 0; i < copy.num_in; i++)
        copy.in[i] = materialise(b, num_forward, copy.in[i]);
    for (int i = 0; i < copy.num_out; i++) {
        copy.out[i] = ms_add_tensor_like(b, original->out[i], MS_ROLE_ACTIVATION,
                                         b->tensors[original->out[i]].element_bytes);
    }
    b->clone[producer] = ms_push_node(b, &copy);
    return copy.out[index];
}

/* Whether a forward result is dropped by the recompute mode, not by a repeated gather. */
static bool is_dropped(const ms_builder *b, int num_forward, int tensor)
{
    int producer = b->tensors[tensor].producer;
    return b->tensors[tensor].role == MS_ROLE_ACTIVATION && producer >= 0 &&
           producer < num_forward && !policy_keeps(b, tensor, producer) &&
           !ms_node_is_gathered_again(b->program, &b->forward[producer]);
}

static bool drops_something(const ms_builder *b, int num_forward, int num_nodes)
{
    bool drops = false;
    for (int n = num_forward; n < num_nodes; n++)
        for (int i = 0; i < b->forward[n].num_in; i++)
            drops = drops || is_dropped(b, num_forward, b->forward[n].in[i]);
    return drops;
}

/* Whether forward nodes run again as one block before backward (activation
 * checkpointing), not one by one where their results are needed. */
static bool is_checkpointed(const ms_builder *b, int num_forward, int num_nodes)
{
    ms_recompute mode = (ms_recompute)b->program->key.recompute;
    return mode == MS_RECOMPUTE_FULL || mode == MS_RECOMPUTE_PER_OP ||
           (mode == MS_RECOMPUTE_AUTO && drops_something(b, num_forward, num_nodes));
}

/* Marks all results that TorchTitan's policy saves, also those never read by backward. */
static void keep_named_tensors(ms_builder *b, int num_forward)
{
    for (int t = 0; t < b->num_tensors; t++) {
        ms_tensor *tensor = &b->tensors[t];
        if (tensor->role == MS_ROLE_ACTIVATION && tensor->producer >= 0 &&
            tensor->producer < num_forward && per_op_keeps(b, tensor->producer))
            tensor->saved = true;
    }
}

void ms_write_recompute(ms_builder *b, int num_forward)
{
    int num_nodes = b->num_nodes;
    ms_recompute mode = (ms_recompute)b->program->key.recompute;
    memcpy(b->forward, b->nodes, (size_t)num_nodes * sizeof *b->nodes);
    for (int i = 0; i < num_forward; i++)
        b->clone[i] = -1;
    b->num_nodes = num_forward;
    /* Repeating the layer as a whole runs even what backward never reads: the last GEMM,
     * reduction and residual sum. */
    if (mode == MS_RECOMPUTE_FULL && b->program->key.reruns_layer)
        for (int n = 0; n < num_forward; n++)
            materialise(b, num_forward, b->forward[n].out[0]);
    if (is_checkpointed(b, num_forward, num_nodes))
        for (int n = num_forward; n < num_nodes; n++)
            for (int i = 0; i < b->forward[n].num_in; i++)
                materialise(b, num_forward, b->forward[n].in[i]);
    for (int n = num_forward; n < num_nodes; n++) {
        ms_node node = b->forward[n];
        for (int i = 0; i < node.num_in; i++)
            node.in[i] = materialise(b, num_forward, node.in[i]);
        ms_push_node(b, &node);
    }
    if (mode == MS_RECOMPUTE_PER_OP)
        keep_named_tensors(b, num_forward);
}
