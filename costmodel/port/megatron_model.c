/* Megatron-LM: the arguments of a model's shapes. */
#include "costmodel/port/megatron_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has_latents(const ms_port *port)
{
    return port->model->attention == MS_ATTENTION_MLA;
}

static bool has_plain_heads(const ms_port *port)
{
    return !has_latents(port);
}

static bool has_experts(const ms_port *port)
{
    return port->model->moe.num_experts > 0;
}

static bool is_rotary(const ms_port *port)
{
    return port->model->position == MS_POSITION_ROTARY;
}

static bool turns_pairs(const ms_port *port)
{
    return is_rotary(port) && has_plain_heads(port);
}

static long dense_layers(const ms_model *model)
{
    long num = 0;
    for (long i = 0; model->kind_of_layer != NULL && i < model->num_layers; i++)
        num += ms_layer_kind_has_dense_mlp(&model->kinds[model->kind_of_layer[i]]);
    return num;
}

/* ---- widths ---- */

static void put_ffn(ms_port *port)
{
    if (dense_layers(port->model) > 0)
        ms_port_put_whole(port, "--ffn-hidden-size", port->model->ffn_hidden);
}

/* Absent: 4 h; with SwiGLU 8/3 h, rounded down to a multiple of 64 (arguments.py). */
static ms_status take_ffn(ms_port *port)
{
    long hidden = port->model->hidden;
    bool gated = ms_port_has(port, "--swiglu");
    long ffn = gated ? (long)((double)(4 * hidden) * 2.0 / 3.0) / 64 * 64 : 4 * hidden;
    MS_TRY(ms_port_take_whole(port, "--ffn-hidden-size", 1, 1000000000, &ffn));
    port->model->ffn_hidden = ffn;
    return MS_OK;
}

static void put_heads(ms_port *port)
{
    const ms_model *model = port->model;
    if (has_latents(port))
        return;
    if (model->num_kv_heads != model->num_heads) {
        ms_port_put(port, "--group-query-attention", NULL);
        ms_port_put_whole(port, "--num-query-groups", model->num_kv_heads);
    }
    if (model->head_dim * model->num_heads != model->hidden)
        ms_port_put_whole(port, "--kv-channels", model->head_dim);
}

static ms_status take_heads(ms_port *port)
{
    ms_model *model = port->model;
    long groups = 1,
         channels = model->num_heads > 0 ? model->hidden / model->num_heads : 0;
    bool grouped = ms_port_has(port, "--group-query-attention");
    MS_TRY(ms_port_take_whole(port, "--num-query-groups", 1, 1000000, &groups));
    MS_TRY(ms_port_take_whole(port, "--kv-channels", 1, 1000000, &channels));
    model->num_kv_heads = grouped ? groups : model->num_heads;
    model->head_dim = model->value_head_dim = channels;
    return MS_OK;
}

static const char *const head_keys[] = {"--group-query-attention", "--num-query-groups",
                                        "--kv-channels", NULL};

static void put_latents(ms_port *port)
{
    const ms_model *model = port->model;
    if (!has_latents(port))
        return;
    ms_port_put(port, "--multi-latent-attention", NULL);
    if (model->mla.q_lora_rank > 0)
        ms_port_put_whole(port, "--q-lora-rank", model->mla.q_lora_rank);
    ms_port_put_whole(port, "--kv-lora-rank", model->mla.kv_lora_rank);
    ms_port_put_whole(port, "--qk-head-dim", model->mla.nope_head_dim);
    ms_port_put_whole(port, "--qk-pos-emb-head-dim", model->mla.rope_head_dim);
    ms_port_put_whole(port, "--v-head-dim", model->value_head_dim);
    ms_port_put(port, "--qk-layernorm", NULL);
}

/* Defaults of MLATransformerConfig: 512, 128, 64 and 128. */
static ms_status take_latents(ms_port *port)
{
    ms_model *model = port->model;
    if (!ms_port_has(port, "--multi-latent-attention"))
        return MS_OK;
    model->attention = MS_ATTENTION_MLA;
    model->num_kv_heads = model->num_heads;
    model->mla.kv_lora_rank = 512;
    model->mla.nope_head_dim = model->value_head_dim = 128;
    model->mla.rope_head_dim = 64;
    MS_TRY(
        ms_port_take_whole(port, "--q-lora-rank", 1, 1000000, &model->mla.q_lora_rank));
    MS_TRY(
        ms_port_take_whole(port, "--kv-lora-rank", 1, 1000000, &model->mla.kv_lora_rank));
    MS_TRY(
        ms_port_take_whole(port, "--qk-head-dim", 1, 1000000, &model->mla.nope_head_dim));
    MS_TRY(ms_port_take_whole(port, "--qk-pos-emb-head-dim", 1, 1000000,
                              &model->mla.rope_head_dim));
    MS_TRY(ms_port_take_whole(port, "--v-head-dim", 1, 1000000, &model->value_head_dim));
    model->head_dim = model->mla.nope_head_dim + model->mla.rope_head_dim;
    model->qk_norm = false;
    return MS_OK;
}

static const char *const latent_keys[] = {"--multi-latent-attention",
                                          "--q-lora-rank",
                                          "--kv-lora-rank",
                                          "--qk-head-dim",
                                          "--qk-pos-emb-head-dim",
                                          "--v-head-dim",
                                          NULL};

/* ---- positions ---- */

static void put_positions(ms_port *port)
{
    long positions = port->model->max_positions, sequence = port->plan->sequence_length;
    ms_port_put_whole(port, "--max-position-embeddings",
                      positions > sequence ? positions : sequence);
}

static ms_status take_positions(ms_port *port)
{
    return ms_port_take_whole(port, "--max-position-embeddings", 1, 1000000000000,
                              &port->model->max_positions);
}

static const ms_port_word positions[] = {{"rope", MS_POSITION_ROTARY},
                                         {"learned_absolute", MS_POSITION_LEARNED},
                                         {"none", MS_POSITION_NONE},
                                         {0}};

static void put_position(ms_port *port)
{
    const char *word = ms_port_word_of(positions, port->model->position);
    if (word == NULL)
        ms_port_leave_out(port, "the model's positions (alibi)");
    else
        ms_port_put(port, "--position-embedding-type", word);
}

static ms_status take_position(ms_port *port)
{
    long kind = ms_port_has(port, "--use-rotary-position-embeddings") || has_latents(port)
                    ? MS_POSITION_ROTARY
                    : MS_POSITION_LEARNED;
    MS_TRY(ms_port_take_word(port, "--position-embedding-type", positions, &kind));
    port->model->position = (ms_position_kind)kind;
    return MS_OK;
}

static const char *const position_keys[] = {"--position-embedding-type",
                                            "--use-rotary-position-embeddings", NULL};

/* Scaling of rotary frequencies: llama3, linear, and yarn with latent attention. */
static void put_scaling(ms_port *port)
{
    const ms_rotary_scaling *s = &port->model->rotary_scaling;
    bool yarn = s->kind == MS_ROTARY_SCALING_YARN;
    if (s->kind == MS_ROTARY_SCALING_LLAMA3) {
        ms_port_put(port, "--use-rope-scaling", NULL);
        ms_port_put_number(port, "--rope-scaling-factor", s->factor);
    } else if (s->kind == MS_ROTARY_SCALING_LINEAR) {
        ms_port_put_number(port, "--rotary-seq-len-interpolation-factor", s->factor);
    } else if (yarn && has_latents(port)) {
        ms_port_put_number(port, "--rotary-scaling-factor", s->factor);
        ms_port_put_number(port, "--mscale", s->mscale);
        ms_port_put_number(port, "--mscale-all-dim", s->mscale_all_dim);
    } else if (yarn) {
        ms_port_leave_out(port, "the model's rotary_scaling yarn");
    } else if (has_latents(port)) {
        ms_port_put(port, "--rope-type", "rope");
    }
}

/* Values of frequencies change no shape and no cost: the model's own stand. */
static ms_status take_scaling(ms_port *port)
{
    static const char *const keys[] = {"--rope-type",
                                       "--use-rope-scaling",
                                       "--rope-scaling-factor",
                                       "--rotary-seq-len-interpolation-factor",
                                       "--rotary-scaling-factor",
                                       "--mscale",
                                       "--mscale-all-dim",
                                       "--beta-fast",
                                       "--beta-slow",
                                       "--original-max-position-embeddings",
                                       NULL};
    for (int i = 0; keys[i] != NULL; i++)
        (void)ms_port_has(port, keys[i]);
    return MS_OK;
}

/* ---- layers ---- */

static const ms_port_word norms[] = {
    {"LayerNorm", MS_NORM_LAYER}, {"RMSNorm", MS_NORM_RMS}, {0}};

static void put_activation(ms_port *port)
{
    ms_activation kind = port->model->activation;
    if (kind == MS_ACT_SWIGLU)
        ms_port_put(port, "--swiglu", NULL);
    else if (kind == MS_ACT_RELU2)
        ms_port_put(port, "--squared-relu", NULL);
    else if (kind != MS_ACT_GELU)
        ms_port_leave_out(port, "the model's activation %s",
                          kind == MS_ACT_GEGLU ? "geglu" : "relu");
}

static ms_status take_activation(ms_port *port)
{
    port->model->activation = ms_port_has(port, "--swiglu")         ? MS_ACT_SWIGLU
                              : ms_port_has(port, "--squared-relu") ? MS_ACT_RELU2
                                                                    : MS_ACT_GELU;
    return MS_OK;
}

static const char *const activation_keys[] = {"--swiglu", "--squared-relu", NULL};

static void put_biases(ms_port *port)
{
    const ms_model *model = port->model;
    bool all = model->qkv_bias && model->attention_out_bias && model->mlp_bias;
    bool none = !model->attention_out_bias && !model->mlp_bias;
    if (!all && !none)
        ms_port_leave_out(port, "biases of some of the model's linear layers");
    if (!all)
        ms_port_put(port, "--disable-bias-linear", NULL);
    if (!all && model->qkv_bias)
        ms_port_put(port, "--add-qkv-bias", NULL);
}

static ms_status take_biases(ms_port *port)
{
    ms_model *model = port->model;
    bool all = !ms_port_has(port, "--disable-bias-linear");
    bool of_queries = ms_port_has(port, "--add-qkv-bias");
    model->qkv_bias = all || of_queries;
    model->attention_out_bias = model->mlp_bias = all;
    return MS_OK;
}

static const char *const bias_keys[] = {"--disable-bias-linear", "--add-qkv-bias", NULL};

/* Megatron drops out with probability 0.1 unless told otherwise. */
static void put_dropout(ms_port *port)
{
    const ms_model *model = port->model;
    ms_port_put_number(port, "--attention-dropout",
                       model->dropout ? model->attention_dropout : 0.0);
    ms_port_put_number(port, "--hidden-dropout",
                       model->dropout ? model->hidden_dropout : 0.0);
}

static ms_status take_dropout(ms_port *port)
{
    ms_model *model = port->model;
    model->attention_dropout = model->hidden_dropout = 0.1;
    MS_TRY(ms_port_take_number(port, "--attention-dropout", 0.0, 1.0,
                               &model->attention_dropout));
    MS_TRY(
        ms_port_take_number(port, "--hidden-dropout", 0.0, 1.0, &model->hidden_dropout));
    model->dropout = model->attention_dropout > 0.0 || model->hidden_dropout > 0.0;
    return MS_OK;
}

static const char *const dropout_keys[] = {"--attention-dropout", "--hidden-dropout",
                                           NULL};

/* ---- kinds of layers ---- */

static bool *layers_with(ms_port *port, bool experts)
{
    const ms_model *model = port->model;
    bool *on = MS_NEW_ARRAY(port->cx->arena, model->num_layers, bool);
    for (long i = 0; i < model->num_layers; i++) {
        const ms_layer_kind *kind = &model->kinds[model->kind_of_layer[i]];
        on[i] = experts ? kind->moe : kind->window_tokens > 0;
    }
    return on;
}

static long count(const bool *on, long num)
{
    long sum = 0;
    for (long i = 0; i < num; i++)
        sum += on[i];
    return sum;
}

/* The window of all layers that have one; -1: they have several. */
static long window_of(const ms_model *model)
{
    long window = 0;
    for (int i = 0; i < model->num_kinds; i++) {
        long own = model->kinds[i].window_tokens;
        if (own > 0 && window > 0 && own != window)
            return -1;
        window = own > 0 ? own : window;
    }
    return window;
}

static void put_kinds(ms_port *port)
{
    const ms_model *model = port->model;
    if (model->mamba.num_heads > 0 || ms_model_is_hybrid(model)) {
        ms_port_leave_out(port, "layers without attention or without MLP");
        return;
    }
    const bool *experts = layers_with(port, true), *windows = layers_with(port, false);
    long num = model->num_layers, window = window_of(model);
    if (has_experts(port) && count(experts, num) < num)
        ms_port_put_text(port, "--moe-layer-freq",
                         ms_megatron_pattern_text(port->cx->arena, experts, num));
    if (window < 0)
        ms_port_leave_out(port, "windows of several lengths");
    if (window <= 0)
        return;
    /* tokens to the left and to the right; the form is from memory */
    ms_port_put(port, "--window-size",
                ms_arena_printf(port->cx->arena, "%ld,0", window - 1));
    if (count(windows, num) < num)
        ms_port_put_text(port, "--window-attn-skip-freq",
                         ms_megatron_pattern_text(port->cx->arena, windows, num));
}

static ms_status take_pattern(ms_port *port, const char *key, bool first, bool *on)
{
    const ms_port_setting *setting = ms_port_find(port, key);
    long num = port->model->num_layers;
    const char *text = setting == NULL || setting->value == NULL ? "" : setting->value;
    if (setting != NULL && !ms_megatron_pattern_read(text, num, first, on)) {
        return ms_port_fail(port, setting,
                            "\"%s\" is neither a number nor a list of 0 and 1 "
                            "for %ld layers",
                            text, num);
    }
    return MS_OK;
}

static ms_status take_window(ms_port *port, long *window)
{
    const ms_port_setting *setting = ms_port_find(port, "--window-size");
    if (setting == NULL)
        return MS_OK;
    char *end;
    const char *text = setting->value == NULL ? "" : setting->value;
    text += strspn(text, "( ");
    long left = strtol(text, &end, 10);
    if (end == text || left < 0 || left > 1000000000 || strchr(", ", *end) == NULL)
        return ms_port_fail(port, setting, "\"%s\" is no window \"LEFT,0\"", text);
    *window = left + 1;
    return MS_OK;
}

/* Every layer has attention and an MLP; two properties make up to four kinds. */
static ms_status take_kinds(ms_port *port)
{
    ms_model *model = port->model;
    long num = model->num_layers, window = 0;
    if (num == 0)
        return MS_OK;
    bool *experts = MS_NEW_ARRAY(port->cx->arena, num, bool);
    bool *windows = MS_NEW_ARRAY(port->cx->arena, num, bool);
    MS_TRY(take_window(port, &window));
    for (long i = 0; i < num; i++) {
        experts[i] = model->moe.num_experts > 0;
        windows[i] = window > 0;
    }
    if (model->moe.num_experts > 0)
        MS_TRY(take_pattern(port, "--moe-layer-freq", true, experts));
    if (window > 0)
        MS_TRY(take_pattern(port, "--window-attn-skip-freq", false, windows));
    model->kind_of_layer = MS_NEW_ARRAY(port->cx->arena, num, unsigned char);
    for (long i = 0; i < num; i++) {
        ms_layer_kind kind = {.moe = experts[i],
                              .window_tokens = windows[i] ? window : 0};
        int k = 0;
        while (k < model->num_kinds && !ms_layer_kind_equal(&model->kinds[k], &kind))
            k++;
        if (k == model->num_kinds)
            model->kinds[model->num_kinds++] = kind;
        model->kind_of_layer[i] = (unsigned char)k;
    }
    return MS_OK;
}

static const char *const kind_keys[] = {"--moe-layer-freq", "--window-size",
                                        "--window-attn-skip-freq", NULL};

/* ---- experts ---- */

static void put_router(ms_port *port)
{
    const ms_model *model = port->model;
    if (!has_experts(port))
        return;
    if (model->moe.router == MS_ROUTER_SIGMOID)
        ms_port_put(port, "--moe-router-score-function", "sigmoid");
    else if (model->moe.router == MS_ROUTER_SOFTMAX_TOPK && !model->moe.norm_topk)
        ms_port_put(port, "--moe-router-pre-softmax", NULL);
    if (model->moe.router_bias)
        ms_port_put(port, "--moe-router-enable-expert-bias", NULL);
    if (model->moe.num_groups > 1) {
        ms_port_put_whole(port, "--moe-router-num-groups", model->moe.num_groups);
        ms_port_put_whole(port, "--moe-router-group-topk", model->moe.top_groups);
    }
    if (model->moe.routed_scaling > 0.0)
        ms_port_put_number(port, "--moe-router-topk-scaling-factor",
                           model->moe.routed_scaling);
    if (model->moe.logit_bias || model->moe.expert_bias)
        ms_port_leave_out(port, "biases of the model's router or experts");
}

/* The router's formula changes no shape: that of the model stands. */
static ms_status take_router(ms_port *port)
{
    static const char *const keys[] = {"--moe-router-score-function",
                                       "--moe-router-pre-softmax",
                                       "--moe-router-enable-expert-bias",
                                       "--moe-router-num-groups",
                                       "--moe-router-group-topk",
                                       "--moe-router-topk-scaling-factor",
                                       NULL};
    for (int i = 0; keys[i] != NULL; i++)
        (void)ms_port_has(port, keys[i]);
    port->moe = has_experts(port);
    return MS_OK;
}

/* Absent: the width of dense layers. */
static ms_status take_expert_ffn(ms_port *port)
{
    ms_model *model = port->model;
    if (model->moe.num_experts == 0)
        return MS_OK;
    model->moe.ffn_hidden = model->ffn_hidden;
    return ms_port_take_whole(port, "--moe-ffn-hidden-size", 1, 1000000000,
                              &model->moe.ffn_hidden);
}

static void put_expert_ffn(ms_port *port)
{
    if (has_experts(port))
        ms_port_put_whole(port, "--moe-ffn-hidden-size", port->model->moe.ffn_hidden);
}

/* ---- parts that no argument states ---- */

static void put_rest(ms_port *port)
{
    const ms_model *m = port->model;
    const struct {
        bool has;
        const char *what;
    } parts[] = {
        {m->embedding_norm, "embedding_norm"},
        {m->plain_norms, "plain_norms"},
        {m->post_norms, "post_norms"},
        {m->no_pre_norms, "no_pre_norms"},
        {m->qk_norm_whole, "qk_norm_whole"},
        {m->qk_norm_head_weights, "qk_norm_head_weights"},
        {m->parallel_block, "parallel_block"},
        {m->norm == MS_NORM_LAYER && !m->norm_bias, "norms without bias"},
        {!m->final_norm, "no final norm"},
        {m->swiglu_limit > 0.0, "swiglu_limit"},
        {m->mlp_scalars > 0, "mlp_scalars"},
        {m->attention_sinks, "attention_sinks"},
        {m->head_bias, "head_bias"},
        {m->attention_softcap > 0.0, "attention_softcap"},
        {m->logit_softcap > 0.0, "logit_softcap"},
        {m->logit_scale > 0.0, "logit_scale"},
        {m->query_pre_attn_scalar > 0.0, "query_pre_attn_scalar"},
        {m->embedding_scale > 0.0 && m->embedding_scale != 1.0, "embedding_scale"},
        {m->rotary_local_base > 0.0, "rotary_local_base"},
        {m->position_offset > 0, "position_offset"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].has)
            ms_port_leave_out(port, "the model's %s", parts[i].what);
    double share = m->rotary_dim > 0 && m->head_dim > 0
                       ? (double)m->rotary_dim / (double)m->head_dim
                       : 1.0;
    if (turns_pairs(port) && share != 1.0)
        ms_port_put_number(port, "--rotary-percent", share);
    if (port->stack != NULL && port->stack->trains_mtp && m->num_nextn_predict_layers > 0)
        ms_port_put_whole(port, "--mtp-num-layers", m->num_nextn_predict_layers);
}

static ms_status take_rest(ms_port *port)
{
    ms_model *model = port->model;
    double share = 1.0;
    model->final_norm = true;
    model->norm_bias = model->norm == MS_NORM_LAYER;
    (void)ms_port_has(port, "--mtp-loss-scaling-factor");
    MS_TRY(ms_port_take_number(port, "--rotary-percent", 0.0, 1.0, &share));
    if (share < 1.0)
        model->rotary_dim = lround(share * (double)model->head_dim);
    return ms_port_take_whole(port, "--mtp-num-layers", 0, MS_MAX_NEXTN_LAYERS,
                              &model->num_nextn_predict_layers);
}

static const char *const rest_keys[] = {"--rotary-percent", "--mtp-num-layers", NULL};

/* ---- the table ---- */

#define WHOLE(option, member)                                                            \
    .kind = MS_PORT_WHOLE, .of = MS_OF_MODEL, .key = (option),                           \
    .offset = offsetof(ms_model, member)
#define NUMBER(option, member)                                                           \
    .kind = MS_PORT_NUMBER, .of = MS_OF_MODEL, .key = (option),                          \
    .offset = offsetof(ms_model, member)
#define FLAG(option, member)                                                             \
    .kind = MS_PORT_ON, .of = MS_OF_MODEL, .key = (option),                              \
    .offset = offsetof(ms_model, member)
#define OWN(puts, takes)                                                                 \
    .kind = MS_PORT_OWN, .of = MS_OF_MODEL, .put = (puts), .take = (takes)

static void put_tied(ms_port *port)
{
    if (!port->model->tied_embeddings)
        ms_port_put(port, "--untie-embeddings-and-output-weights", NULL);
}

static ms_status take_tied(ms_port *port)
{
    port->model->tied_embeddings =
        !ms_port_has(port, "--untie-embeddings-and-output-weights");
    return MS_OK;
}

const ms_port_row ms_megatron_model_rows[] = {
    {WHOLE("--num-layers", num_layers), .always = true},
    {WHOLE("--hidden-size", hidden), .always = true},
    {OWN(put_ffn, take_ffn), .key = "--ffn-hidden-size"},
    {WHOLE("--num-attention-heads", num_heads), .always = true},
    {OWN(put_heads, take_heads), .keys = head_keys},
    {FLAG("--qk-layernorm", qk_norm)},
    {OWN(put_latents, take_latents), .keys = latent_keys},
    {WHOLE("--vocab-size", vocab), .soft = true},
    {OWN(put_positions, take_positions), .key = "--max-position-embeddings",
     .soft = true},
    {OWN(put_position, take_position), .keys = position_keys},
    {NUMBER("--rotary-base", rotary_base), .absent = 10000, .when = is_rotary,
     .soft = true},
    {FLAG("--rotary-interleaved", rotary_interleaved), .when = turns_pairs, .soft = true},
    {OWN(put_scaling, take_scaling), .soft = true},
    {.kind = MS_PORT_WORD,
     .of = MS_OF_MODEL,
     .key = "--normalization",
     .words = norms,
     .offset = offsetof(ms_model, norm),
     .absent = MS_NORM_LAYER},
    {NUMBER("--norm-epsilon", norm_epsilon), .alias = "--layernorm-epsilon",
     .absent = 1e-5, .soft = true},
    {FLAG("--apply-layernorm-1p", norm_plus_one), .soft = true},
    {OWN(put_activation, take_activation), .keys = activation_keys},
    {OWN(put_tied, take_tied), .key = "--untie-embeddings-and-output-weights"},
    {OWN(put_biases, take_biases), .keys = bias_keys},
    {OWN(put_dropout, take_dropout), .keys = dropout_keys, .soft = true},
    {WHOLE("--num-experts", moe.num_experts)},
    {OWN(put_kinds, take_kinds), .keys = kind_keys},
    {WHOLE("--moe-router-topk", moe.top_k), .absent = 2, .always = true,
     .when = has_experts},
    {OWN(put_expert_ffn, take_expert_ffn), .key = "--moe-ffn-hidden-size"},
    {WHOLE("--moe-shared-expert-intermediate-size", moe.shared_ffn_hidden),
     .when = has_experts},
    {FLAG("--moe-shared-expert-gate", moe.shared_gate), .when = has_experts,
     .soft = true},
    {OWN(put_router, take_router), .soft = true},
    {OWN(put_rest, take_rest), .keys = rest_keys, .soft = true},
    {0},
};
