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

/* Whether a norm is a module of its own in Megatron Core (MS_MODULE_LAYERNORM). */
static bool is_separate_norm(const ms_builder *b, const ms_node *node)
{
    const ms_layer_kind *kind = &b->model->kinds[b->program->key.kind];
    return strcmp(node->name, "mlp.norm") == 0
               ? kind->moe
               : strcmp(node->name, "attention.norm") == 0 &&
                     b->model->attention == MS_ATTENTION_MLA;
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

/* Modules that discard a result of a node, or whose checkpoint it is a part of. */
static int modules_of_result(const ms_builder *b, const ms_node *node, int tensor)
{
    static const int of_attention[] = {0, MS_MODULE_CORE_ATTN,
                                       MS_MODULE_CORE_ATTN | MS_MODULE_SCORES};
    switch (node->op) {
    case MS_OP_NORM:
        return MS_MODULE_NORMS | (is_separate_norm(b, node) ? MS_MODULE_LAYERNORM : 0);
    case MS_OP_GROUP_NORM:
        return MS_MODULE_NORMS;
    case MS_OP_ACTIVATION:
        return MS_MODULE_ACTIVATIONS |
               (strcmp(node->name, "experts.activation") == 0 ? MS_MODULE_MOE_ACT : 0);
    case MS_OP_ATTENTION:
        /* the projection after the attention core saves its result as its own input */
        return of_attention[output_index(node, tensor)];
    default:
        return is_made_of_latents(b, node) ? MS_MODULE_MLA_UP_PROJ : 0;
    }
}

/* The modules that selective recomputation repeats. */
static int chosen_modules(const ms_builder *b)
{
    int modules = b->program->key.modules;
    return modules != 0 ? modules : MS_MODULES_DEFAULT;
}

/* Whether backward reads a tensor outside the checkpoints `modules` that make it. */
static bool leaves(const ms_builder *b, int tensor, int modules)
{
    for (int n = b->program->num_forward_nodes; n < b->num_written; n++)
        if ((b->forward[n].modules & modules) == 0 &&
            ms_node_reads(&b->forward[n], tensor))
            return true;
    return false;
}

static bool modules_keep(const ms_builder *b, int tensor, const ms_node *node)
{
    int modules = chosen_modules(b);
    return (modules_of_result(b, node, tensor) & modules) == 0 &&
           ((node->modules & modules) == 0 || leaves(b, tensor, node->modules & modules));
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
        if (!modules_keep(b, tensor, node))
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

/* Repeats the nodes of checkpoints, whole if the stack does, else those that backward
 * needs. */
static void rerun_checkpoints(ms_builder *b, int num_forward, int modules)
{
    bool whole = b->program->key.reruns_layer;
    for (int n = 0; whole && n < num_forward; n++)
        if ((b->forward[n].modules & modules) != 0)
            materialise(b, num_forward, b->forward[n].out[0]);
    for (int n = num_forward; n < b->num_written; n++)
        for (int i = 0;
             (b->forward[n].modules & modules) != 0 && i < b->forward[n].num_in; i++)
            materialise(b, num_forward, b->forward[n].in[i]);
}

/* The chosen checkpoints that a backward node is part of and that are not in `done`. */
static int new_checkpoints(const ms_builder *b, const ms_node *node, int done)
{
    bool selective = b->program->key.recompute == MS_RECOMPUTE_SELECTIVE;
    return selective ? node->modules & chosen_modules(b) & ~done : 0;
}

void ms_write_recompute(ms_builder *b, int num_forward)
{
    int num_nodes = b->num_written = b->num_nodes, done = 0;
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
        int begun = new_checkpoints(b, &node, done);
        if (begun != 0)
            rerun_checkpoints(b, num_forward, begun);
        done |= begun;
        for (int i = 0; i < node.num_in; i++)
            node.in[i] = materialise(b, num_forward, node.in[i]);
        ms_push_node(b, &node);
    }
    if (mode == MS_RECOMPUTE_PER_OP)
        keep_named_tensors(b, num_forward);
}
