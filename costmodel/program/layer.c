/* Forward programs of embedding, layers and head, written as for one device. Only weights
 * state how tp, ep and etp split them; the placements of all other tensors follow by
 * propagation. Weights are split as in Megatron-LM (Shoeybi et al. 2019): projections
 * into heads and into the MLP by columns, out of them by rows, tables by vocabulary;
 * experts over ep, their width over etp. */
#include "costmodel/program/program_priv.h"

#include <assert.h>
#include <string.h>

static int rotary(ms_builder *b, const char *name, int x, long width)
{
    if (b->model->position != MS_POSITION_ROTARY)
        return x;
    ms_node node = ms_operation(MS_OP_ROTARY, name, x, -1);
    node.rotary_width = width;
    node.window_tokens = b->model->kinds[b->program->key.kind].window_tokens;
    return ms_emit_one(b, node, b->tensors[x].dims);
}

/* ---- attention ---- */

static int attend(ms_builder *b, int q, int k, int v)
{
    ms_node node = ms_operation(MS_OP_ATTENTION, "attention.core", q, k);
    node.ring = b->program->key.cp_method == MS_CP_RING;
    node.window_tokens = b->model->kinds[b->program->key.kind].window_tokens;
    ms_node_take(&node, v);
    if (b->model->attention_sinks)
        ms_node_take(&node, ms_model_weight(b, "attention.sinks", "n", MS_DIM_HEADS));
    int out = ms_add_result(b, &node, "bsnw");
    ms_node_give(&node, ms_add_statistic(b, "attention.lse", "bsn"));
    /* bytes saved per score: softmax 2; with dropout also mask 1 and its result 2 */
    if (!b->program->key.attention_fused)
        ms_node_give(&node,
                     ms_add_tensor(b, "attention.scores", "bsnt", MS_ROLE_ACTIVATION,
                                   b->model->dropout ? 5.0 : 2.0));
    ms_emit(b, &node);
    return out;
}

/* Redistributes a tensor over cp: its heads are split instead of its sequence. */
static int by_heads(ms_builder *b, int tensor)
{
    bool query_heads = ms_tensor_has(&b->tensors[tensor], MS_DIM_HEADS);
    return ms_convert(
        b, tensor, 1,
        ms_placed_over(b->program, 1,
                       ms_shard(query_heads ? MS_DIM_HEADS : MS_DIM_KV_HEADS)));
}

static int attention_over_cp(ms_builder *b, int q, int k, int v)
{
    if (b->program->key.cp_method != MS_CP_ULYSSES)
        return attend(b, q, k, v);
    q = by_heads(b, q);
    k = by_heads(b, k);
    v = by_heads(b, v);
    int out = attend(b, q, k, v);
    return ms_convert(b, out, 1, ms_stream_placement(b, 1));
}

/* Norms of queries, or of keys: of each head, or over all heads, which tp splits before
 * and after. */
static int query_key_norm(ms_builder *b, const char *name, int x)
{
    if (!b->model->qk_norm_whole)
        return ms_emit_norm_of(b, name, x, MS_NORM_RMS);
    ms_placement heads = b->tensors[x].at[2];
    return ms_convert(b, ms_emit_norm_over(b, name, x, MS_NORM_RMS, 2), 2, heads);
}

static int query_key(ms_builder *b, const char *name, int x)
{
    if (b->model->qk_norm)
        x = query_key_norm(b, name, x);
    long width = b->model->rotary_dim;
    return rotary(b, name, x, width > 0 ? width : b->model->head_dim);
}

static int grouped_query_attention(ms_builder *b, int x)
{
    const ms_model *model = b->model;
    int q = ms_emit_linear(b, "attention.query", "bsh,hnd->bsnd", x, 'n');
    int k = ms_emit_linear(b, "attention.key", "bsh,hgd->bsgd", x, 'g');
    int v = ms_emit_linear(b, "attention.value", "bsh,hgw->bsgw", x, 'g');
    if (model->qkv_bias) {
        q = ms_emit_bias(b, "attention.query_bias", q, "nd", 'n');
        k = ms_emit_bias(b, "attention.key_bias", k, "gd", 'g');
        v = ms_emit_bias(b, "attention.value_bias", v, "gw", 'g');
    }
    q = query_key(b, "attention.query_position", q);
    k = query_key(b, "attention.key_position", k);
    return attention_over_cp(b, q, k, v);
}

/* Adds multi-head latent attention (DeepSeek-V2, section 2.1): keys and values come from
 * a narrow latent vector and one rotary key shared by all heads. */
static int latent_attention(ms_builder *b, int x)
{
    const ms_model *model = b->model;
    int q;
    if (model->mla.q_lora_rank > 0) {
        q = ms_emit_norm(b, "attention.query_norm",
                         ms_emit_linear(b, "attention.query_down", "bsh,hq->bsq", x, 0));
        q = ms_emit_linear(b, "attention.query_up", "bsq,qnd->bsnd", q, 'n');
    } else {
        q = ms_emit_linear(b, "attention.query", "bsh,hnd->bsnd", x, 'n');
    }
    q = rotary(b, "attention.query_position", q, model->mla.rope_head_dim);
    int latent =
        ms_emit_norm(b, "attention.kv_norm",
                     ms_emit_linear(b, "attention.kv_down", "bsh,hc->bsc", x, 0));
    int shared_key = ms_emit_linear(b, "attention.key_rope", "bsh,ho->bso", x, 0);
    shared_key =
        rotary(b, "attention.key_position", shared_key, model->mla.rope_head_dim);
    int up = ms_emit_linear(b, "attention.kv_up", "bsc,cnu->bsnu", latent, 'n');
    ms_node node = ms_operation(MS_OP_MLA_KEYS, "attention.keys", up, shared_key);
    int k = ms_add_result(b, &node, "bsnd");
    int v = ms_node_give(&node, ms_add_activation(b, "attention.values", "bsnw"));
    ms_emit(b, &node);
    return attention_over_cp(b, q, k, v);
}

static int attention(ms_builder *b, int x)
{
    int heads = b->model->attention == MS_ATTENTION_MLA ? latent_attention(b, x)
                                                        : grouped_query_attention(b, x);
    int out = ms_emit_linear(b, "attention.output", "bsnw,nwh->bsh", heads, 'n');
    if (b->model->attention_out_bias)
        out = ms_emit_bias(b, "attention.output_bias", out, "h", 0);
    return out;
}

/* ---- Mamba-2 ---- */

/* Adds a Mamba-2 mixer as Megatron-Core's MambaMixer: one projection to gate, channels
 * and steps, one fused kernel up to the gate, and a norm per group of heads. */
static int mamba(ms_builder *b, int x)
{
    x = ms_emit_linear(b, "mamba.input", "bsh,hI->bsI", x, MS_DIM_MAMBA_PROJECTED);
    ms_node scan = ms_operation(MS_OP_SCAN, "mamba.scan", x, -1);
    ms_node_take(&scan,
                 ms_model_weight(b, "mamba.convolution", "XK", MS_DIM_MAMBA_CHANNELS));
    ms_node_take(
        &scan, ms_model_weight(b, "mamba.convolution_bias", "X", MS_DIM_MAMBA_CHANNELS));
    ms_node_take(&scan, ms_model_weight(b, "mamba.decay", "M", MS_DIM_MAMBA_HEADS));
    ms_node_take(&scan, ms_model_weight(b, "mamba.skip", "M", MS_DIM_MAMBA_HEADS));
    ms_node_take(&scan, ms_model_weight(b, "mamba.step_bias", "M", MS_DIM_MAMBA_HEADS));
    int y = ms_add_result(b, &scan, "bsD");
    ms_node_give(&scan, ms_add_activation(b, "mamba.ungated", "bsD"));
    ms_emit(b, &scan);
    int scale = ms_model_weight(b, "mamba.inner_norm", "D", MS_DIM_MAMBA_INNER);
    y = ms_emit_pointwise(b, MS_OP_GROUP_NORM, "mamba.inner_norm", y, scale);
    return ms_emit_linear(b, "mamba.output", "bsD,Dh->bsh", y, MS_DIM_MAMBA_INNER);
}

/* ---- MLP ---- */

/* Adds an MLP's activation; `gate` is -1 if the MLP is not gated. */
static int activated(ms_builder *b, const char *name, int gate, int up)
{
    return gate >= 0 ? ms_emit_pointwise(b, MS_OP_ACTIVATION, name, gate, up)
                     : ms_emit_pointwise(b, MS_OP_ACTIVATION, name, up, -1);
}

/* Names of nodes, and einsums, of the dense MLP or of the shared experts. */
typedef struct mlp_names {
    const char *gate, *up, *down, *activation, *gate_bias, *up_bias;
    const char *into, *out;
    const char *width;
} mlp_names;

static const mlp_names dense_names = {"mlp.gate",       "mlp.up",        "mlp.down",
                                      "mlp.activation", "mlp.gate_bias", "mlp.up_bias",
                                      "bsh,hf->bsf",    "bsf,fh->bsh",   "f"};
static const mlp_names shared_names = {
    "shared.gate",       "shared.up",        "shared.down",
    "shared.activation", "shared.gate_bias", "shared.up_bias",
    "bsh,hF->bsF",       "bsF,Fh->bsh",      "F"};

/* Adds an MLP up to its activation. */
static int mlp_hidden(ms_builder *b, int x, const mlp_names *names)
{
    int gate = -1;
    if (ms_activation_is_gated(b->model->activation))
        gate = ms_emit_linear(b, names->gate, names->into, x, names->width[0]);
    int up = ms_emit_linear(b, names->up, names->into, x, names->width[0]);
    if (b->model->mlp_bias && gate >= 0)
        gate = ms_emit_bias(b, names->gate_bias, gate, names->width, names->width[0]);
    if (b->model->mlp_bias)
        up = ms_emit_bias(b, names->up_bias, up, names->width, names->width[0]);
    return activated(b, names->activation, gate, up);
}

static int mlp_out(ms_builder *b, int hidden, const mlp_names *names)
{
    int out = ms_emit_linear(b, names->down, names->out, hidden, names->width[0]);
    if (b->model->mlp_bias)
        out = ms_emit_bias(b, "mlp.down_bias", out, "h", 0);
    return out;
}

/* ---- mixture of experts ---- */

static int grouped(ms_builder *b, const char *name, const char *einsum, int rows,
                   int choice)
{
    char dims[MS_MAX_DIMS + 1];
    ms_copy_weight_dims(einsum, dims);
    ms_node node =
        ms_operation(MS_OP_GROUPED, name, rows, ms_expert_weight(b, name, dims));
    node.einsum = einsum;
    ms_node_take(&node, choice);
    return ms_emit_one(b, node, strchr(einsum, '>') + 1);
}

/* Adds to rows the bias of each row's expert, if experts have biases. */
static int expert_bias(ms_builder *b, const char *name, int rows, int choice)
{
    if (!b->model->moe.expert_bias)
        return rows;
    const char dims[] = {MS_DIM_EXPERTS, b->tensors[rows].dims[1], '\0'};
    ms_node node =
        ms_operation(MS_OP_EXPERT_BIAS, name, rows, ms_expert_weight(b, name, dims));
    ms_node_take(&node, choice);
    return ms_emit_one(b, node, b->tensors[rows].dims);
}

static int exchange(ms_builder *b, const char *name, int rows, int choice, bool back)
{
    ms_node node = ms_operation(MS_OP_EXCHANGE, name, rows, choice);
    node.inverse = back;
    return ms_emit_one(b, node, "rh");
}

static int experts(ms_builder *b, int rows, int choice)
{
    int gate = -1, up = grouped(b, "experts.up", "rh,ehi->ri", rows, choice);
    if (ms_activation_is_gated(b->model->activation))
        gate =
            expert_bias(b, "experts.gate_bias",
                        grouped(b, "experts.gate", "rh,ehi->ri", rows, choice), choice);
    up = expert_bias(b, "experts.up_bias", up, choice);
    int hidden = activated(b, "experts.activation", gate, up);
    int out = grouped(b, "experts.down", "ri,eih->rh", hidden, choice);
    return expert_bias(b, "experts.down_bias", out, choice);
}

static void route(ms_builder *b, int x, int *probability, int *choice)
{
    int logits = ms_emit_linear(b, "router.logits", "bsh,he->bse", x, 0);
    b->tensors[logits].element_bytes = ms_statistic_bytes(b);
    if (b->model->moe.logit_bias) {
        logits = ms_emit_bias(b, "router.logits_bias", logits, "e", 0);
        b->tensors[logits].element_bytes = ms_statistic_bytes(b);
    }
    ms_node node = ms_operation(MS_OP_ROUTE, "router.choice", logits, -1);
    if (b->model->moe.router_bias)
        ms_node_take(&node, ms_model_weight(b, "router.bias", "e", 0));
    *probability = ms_node_give(&node, ms_add_statistic(b, "router.weight", "bsk"));
    *choice = ms_node_give(&node, ms_add_statistic(b, "router.choice", "bsk"));
    ms_emit(b, &node);
}

/* Splits a tensor's tokens over tp, so that each tp rank sends its own to the experts. */
static int for_experts(ms_builder *b, int tensor)
{
    return ms_convert(b, tensor, 2, ms_shard(MS_DIM_SEQUENCE));
}

/* The shared experts of a layer while they are written; x: input, hidden: activated, out:
 * result; -1: not written yet. */
typedef struct shared_experts {
    int x, hidden, out;
} shared_experts;

/* Writes the next part of the shared experts: up to their activation, then the rest. */
static void write_shared(ms_builder *b, shared_experts *shared)
{
    b->modules |= MS_MODULE_SHARED_EXPERTS;
    if (shared->hidden < 0) {
        shared->hidden = mlp_hidden(b, shared->x, &shared_names);
    } else {
        shared->out = mlp_out(b, shared->hidden, &shared_names);
        if (b->model->moe.shared_gate) {
            int gate = ms_emit_linear(b, "shared.router", "bsh,h1->bs1", shared->x, 0);
            shared->out =
                ms_emit_pointwise(b, MS_OP_GATE, "shared.gated", shared->out, gate);
        }
    }
    b->modules &= (unsigned short)~MS_MODULE_SHARED_EXPERTS;
}

/* Adds the experts. With etp the ranks of an etp group share the rows of all of them,
 * gathered after dispatch and reduced before combine, so a row crosses ep once (Megatron
 * Core, MoEAlltoAllTokenDispatcher). Shared experts that overlap follow dispatch and
 * combine (core/transformer/moe/shared_experts.py: fc1 beside the one, fc2 the other). */
static int exchanged_experts(ms_builder *b, int rows, int choice, shared_experts *shared)
{
    bool overlaps = b->program->key.shared_overlap && shared->x >= 0;
    int first = b->num_tensors;
    rows = exchange(b, "experts.dispatch", rows, choice, false);
    if (overlaps)
        write_shared(b, shared);
    rows = experts(b, ms_convert(b, rows, 2, ms_replicate), choice);
    rows = ms_convert(b, rows, 2, ms_shard(MS_DIM_ROWS));
    for (int t = first; t < b->num_tensors; t++)
        b->tensors[t].received = b->tensors[t].dims[0] == MS_DIM_ROWS;
    rows = exchange(b, "experts.combine", rows, choice, true);
    if (overlaps)
        write_shared(b, shared);
    return rows;
}

static int routed_experts(ms_builder *b, int x, shared_experts *shared)
{
    int probability, choice;
    route(b, x, &probability, &choice);
    x = for_experts(b, x);
    probability = for_experts(b, probability);
    choice = for_experts(b, choice);
    int rows =
        ms_emit_one(b, ms_operation(MS_OP_PERMUTE, "experts.permute", x, choice), "rh");
    if (b->program->key.shared_overlap && shared->x >= 0)
        (void)ms_convert(b, shared->x, 2, ms_replicate); /* gathered before dispatch */
    rows = exchanged_experts(b, rows, choice, shared);
    ms_node unpermute =
        ms_operation(MS_OP_UNPERMUTE, "experts.unpermute", rows, probability);
    ms_node_take(&unpermute, choice);
    return ms_emit_one(b, unpermute, "bsh");
}

static int mixture(ms_builder *b, int x)
{
    shared_experts shared = {-1, -1, -1};
    if (b->model->moe.shared_ffn_hidden > 0)
        shared.x = x;
    int routed = routed_experts(b, x, &shared);
    if (shared.x < 0)
        return routed;
    while (shared.out < 0)
        write_shared(b, &shared);
    return ms_emit_add(b, "experts.sum", shared.out, routed);
}

/* ---- blocks ---- */

static bool has_experts(const ms_builder *b)
{
    return b->model->kinds[b->program->key.kind].moe;
}

static int feed_forward(ms_builder *b, int x)
{
    b->modules = has_experts(b) ? MS_MODULE_MOE : MS_MODULE_MLP;
    int out = has_experts(b) ? mixture(b, x)
                             : mlp_out(b, mlp_hidden(b, x, &dense_names), &dense_names);
    b->modules = 0;
    return out;
}

static int stream_input(ms_builder *b)
{
    int x = ms_add_activation(b, "input", "bsh");
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        if (ms_axis_active(b->program, MS_DENSE_MESH, axis))
            b->tensors[x].at[axis] = ms_stream_placement(b, axis);
    b->program->input = x;
    return x;
}

static int parallel_block(ms_builder *b, int x)
{
    int attention_in = ms_emit_norm(b, "attention.norm", x);
    int mlp_in =
        b->model->norms_per_layer > 1 ? ms_emit_norm(b, "mlp.norm", x) : attention_in;
    int sum =
        ms_emit_add(b, "block.sum", attention(b, attention_in), feed_forward(b, mlp_in));
    return ms_emit_residual(b, "block.residual", x, sum);
}

/* Names of the norms and the residual sum of attention or of the MLP. */
typedef struct branch_names {
    const char *norm, *post_norm, *residual;
} branch_names;

static int add_branch(ms_builder *b, int x, int (*write)(ms_builder *, int),
                      const branch_names *names)
{
    if (write == feed_forward && !has_experts(b))
        b->modules = MS_MODULE_MLP; /* the norm is part of the first linear layer */
    int branch = write(b, b->model->no_pre_norms ? x : ms_emit_norm(b, names->norm, x));
    if (b->model->post_norms)
        branch = ms_emit_norm(b, names->post_norm, branch);
    return ms_emit_residual(b, names->residual, x, branch);
}

static int serial_block(ms_builder *b, int x)
{
    static const branch_names of_attention = {"attention.norm", "attention.post_norm",
                                              "attention.residual"};
    static const branch_names of_mamba = {"mamba.norm", "mamba.post_norm",
                                          "mamba.residual"};
    static const branch_names of_mlp = {"mlp.norm", "mlp.post_norm", "mlp.residual"};
    const ms_layer_kind *kind = &b->model->kinds[b->program->key.kind];
    if (kind->mixer == MS_MIXER_ATTENTION)
        x = add_branch(b, x, attention, &of_attention);
    if (kind->mixer == MS_MIXER_MAMBA)
        x = add_branch(b, x, mamba, &of_mamba);
    return kind->no_mlp ? x : add_branch(b, x, feed_forward, &of_mlp);
}

/* Splits an input that tp ranks share, for backward to gather again (ZeRO, Rajbhandari et
 * al. 2020, section 6.1, partitioned activations). */
static void part_input(ms_builder *b, int x)
{
    const ms_program_key *key = &b->program->key;
    if (key->partitions_inputs && key->recompute == MS_RECOMPUTE_FULL && key->tp > 1 &&
        !key->sequence_parallel)
        b->program->input_part = ms_convert(b, x, 2, ms_shard(MS_DIM_SEQUENCE));
}

void ms_write_layer(ms_builder *b)
{
    int x = stream_input(b);
    b->program->output =
        b->model->parallel_block ? parallel_block(b, x) : serial_block(b, x);
    part_input(b, x);
}

static int embed(ms_builder *b, const char *name, const char *dims, bool by_position)
{
    int table = ms_model_weight(b, name, dims, by_position ? 0 : MS_DIM_VOCAB);
    ms_node node = ms_operation(MS_OP_EMBED, name, table, -1);
    node.by_position = by_position;
    node.ahead = b->module;
    return ms_emit_one(b, node, "bsh");
}

void ms_write_embedding(ms_builder *b)
{
    int x = ms_to_stream(b, embed(b, "embedding.tokens", "vh", false));
    if (b->model->position == MS_POSITION_LEARNED)
        x = ms_emit_add(b, "embedding.sum", x,
                        embed(b, "embedding.positions", "ph", true));
    if (b->model->embedding_norm)
        x = ms_emit_norm(b, "embedding.norm", x);
    b->program->input = -1;
    b->program->output = x;
}

/* Adds cross entropy by three statistics per token, so that a vocabulary split over tp is
 * reduced with 12 bytes per token (PyTorch torch/distributed/tensor/parallel/loss.py). */
static int loss(ms_builder *b, int logits)
{
    ms_node largest = ms_operation(MS_OP_LOSS_MAX, "loss.max", logits, -1);
    int max = ms_node_give(&largest, ms_add_statistic(b, "loss.max", "bs"));
    ms_emit(b, &largest);
    ms_node summed = ms_operation(MS_OP_LOSS_SUM, "loss.sum", logits, max);
    summed.ahead = b->module;
    int sum = ms_node_give(&summed, ms_add_statistic(b, "loss.sum", "bs"));
    int target = ms_node_give(&summed, ms_add_statistic(b, "loss.target", "bs"));
    ms_emit(b, &summed);
    max = summed.in[1]; /* maximum over the whole vocabulary */
    ms_node last = ms_operation(MS_OP_LOSS, "loss", max, sum);
    last.ahead = b->module;
    ms_node_take(&last, target);
    int out = ms_node_give(&last, ms_add_statistic(b, "loss", "bs"));
    ms_emit(b, &last);
    return out;
}

static int logits_and_loss(ms_builder *b, const char *name, int x, bool shared)
{
    int matrix = ms_model_weight(b, name, "vh", MS_DIM_VOCAB);
    b->tensors[matrix].shared = shared;
    int logits = ms_emit_product(b, name, "bsh,vh->bsv", x, matrix);
    if (b->model->head_bias)
        logits = ms_emit_bias(b, "head.bias", logits, "v", MS_DIM_VOCAB);
    if (!b->program->key.loss_parallel && ms_axis_active(b->program, MS_DENSE_MESH, 2))
        logits = ms_convert(b, logits, 2, ms_replicate);
    b->logits[b->num_logits++] = logits;
    return loss(b, logits);
}

/* Adds one module of multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2):
 * hidden states and embeddings of the next tokens, each after a norm, through a
 * projection and a layer like the model's last. Megatron-Core copies the embedding to the
 * last stage, once for all modules; the output matrix is the model's. */
static int predict_next(ms_builder *b, int x)
{
    int next = embed(b, "mtp.embedding", "vh", false);
    int table = b->nodes[b->tensors[next].producer].in[0];
    b->tensors[table].shared = b->module > 1 || b->model->tied_embeddings;
    next = ms_to_stream(b, next);
    next = ms_emit_norm(b, "mtp.embedding_norm", next);
    ms_node concat = ms_operation(MS_OP_CONCAT, "mtp.input", next,
                                  ms_emit_norm(b, "mtp.hidden_norm", x));
    int both = ms_emit_one(b, concat, "bsH");
    x = ms_to_stream(
        b, ms_emit_linear(b, "mtp.projection", "bsH,Hh->bsh", both, MS_DIM_HIDDEN));
    x = b->model->parallel_block ? parallel_block(b, x) : serial_block(b, x);
    logits_and_loss(b, "mtp.logits", ms_emit_norm(b, "mtp.norm", x), true);
    return x;
}

void ms_write_head(ms_builder *b)
{
    int x = stream_input(b);
    int normed = b->model->final_norm ? ms_emit_norm(b, "head.norm", x) : x;
    b->program->output = logits_and_loss(b, "head.logits", normed, false);
    for (int i = 1; i <= b->program->key.mtp; i++) {
        b->module = (unsigned char)i;
        x = predict_next(b, x);
    }
    b->module = 0;
}
