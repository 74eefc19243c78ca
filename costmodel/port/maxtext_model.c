/* MaxText: the model by its name, or by the dimensions of decoder_block llama2. */
#include "costmodel/port/maxtext_priv.h"

#include <string.h>

typedef struct named_model {
    const char *model; /* name in configs/models */
    const char *name;  /* model_name */
} named_model;

static const named_model named_models[] = {{"llama-2-7b", "llama2-7b"},
                                           {"llama-2-13b", "llama2-13b"},
                                           {"llama-2-70b", "llama2-70b"},
                                           {"llama-3-8b", "llama3-8b"},
                                           {"llama-3-70b", "llama3-70b"},
                                           {"llama-3.1-8b", "llama3.1-8b"},
                                           {"llama-3.1-70b", "llama3.1-70b"},
                                           {"llama-3.1-405b", "llama3.1-405b"},
                                           {"llama-3.3-70b", "llama3.3-70b"},
                                           {"llama-4-scout", "llama4-17b-16e"},
                                           {"llama-4-maverick", "llama4-17b-128e"},
                                           {"mistral-7b", "mistral-7b"},
                                           {"mixtral-8x7b", "mixtral-8x7b"},
                                           {"mixtral-8x22b", "mixtral-8x22b"},
                                           {"deepseek-v2-lite", "deepseek2-16b"},
                                           {"deepseek-v2", "deepseek2-236b"},
                                           {"deepseek-v3", "deepseek3-671b"},
                                           {"gemma-2b", "gemma-2b"},
                                           {"gemma-7b", "gemma-7b"},
                                           {"gemma-2-2b", "gemma2-2b"},
                                           {"gemma-2-9b", "gemma2-9b"},
                                           {"gemma-2-27b", "gemma2-27b"},
                                           {"gemma-3-4b", "gemma3-4b"},
                                           {"gemma-3-12b", "gemma3-12b"},
                                           {"gemma-3-27b", "gemma3-27b"},
                                           {"gpt3-175b", "gpt3-175b"},
                                           {"gpt-oss-20b", "gpt-oss-20b"},
                                           {"gpt-oss-120b", "gpt-oss-120b"},
                                           {"qwen3-0.6b", "qwen3-0.6b"},
                                           {"qwen3-4b", "qwen3-4b"},
                                           {"qwen3-8b", "qwen3-8b"},
                                           {"qwen3-14b", "qwen3-14b"},
                                           {"qwen3-32b", "qwen3-32b"},
                                           {"qwen3-30b-a3b", "qwen3-30b-a3b"},
                                           {"qwen3-235b-a22b", "qwen3-235b-a22b"},
                                           {"kimi-k2", "kimi-k2-1t"}};
#define NUM_NAMED (sizeof named_models / sizeof *named_models)

static const char *name_of(const ms_model *model)
{
    for (size_t i = 0; model->name != NULL && i < NUM_NAMED; i++)
        if (strcmp(named_models[i].model, model->name) == 0)
            return named_models[i].name;
    return NULL;
}

/* The last setting of a key; NULL: the file has none. */
static const ms_port_setting *look_up(const ms_port *port, const char *key)
{
    const ms_port_setting *last = NULL;
    for (int i = 0; i < port->settings->num; i++)
        if (strcmp(port->settings->rows[i].key, key) == 0)
            last = &port->settings->rows[i];
    return last;
}

#define MODEL_NAME "model_name"

static bool names_model(const ms_port *port)
{
    const ms_port_setting *name = look_up(port, MODEL_NAME);
    return name != NULL && name->value != NULL && strcmp(name->value, "default") != 0;
}

bool ms_maxtext_states_shapes(const ms_port *port)
{
    if (port->stack == NULL)
        return true;
    if (port->left_out != NULL)
        return name_of(port->model) == NULL;
    return !names_model(port) && look_up(port, "base_emb_dim") != NULL;
}

static void put_name(ms_port *port)
{
    const char *name = name_of(port->model);
    if (name != NULL && port->stack != NULL)
        ms_port_put_text(port, MODEL_NAME, name);
}

/* The model of the name, unless the user names another. */
static ms_status take_name(ms_port *port)
{
    const ms_port_setting *name = ms_port_find(port, MODEL_NAME);
    bool overridden = false;
    double scale = 1.0;
    MS_TRY(ms_port_take_on(port, "override_model_config", &overridden));
    MS_TRY(ms_port_take_number(port, "global_parameter_scale", 0.0, 1e6, &scale));
    if (port->plan->model != NULL || !names_model(port)) {
        return scale == 1.0
                   ? MS_OK
                   : ms_port_fail(port, ms_port_find(port, "global_parameter_scale"),
                                  "scaled models are not read");
    }
    if (overridden)
        return ms_port_fail(port, name, "its dimensions are overridden: --model FILE");
    for (size_t i = 0; i < NUM_NAMED; i++)
        if (strcmp(named_models[i].name, name->value) == 0)
            port->plan->model = named_models[i].model;
    if (port->plan->model != NULL)
        return MS_OK;
    ms_port_fail(port, name, "\"%s\" is no name whose model is known", name->value);
    return ms_hint(port->cx, "--model NAME says which model it is");
}

static const char *const name_keys[] = {MODEL_NAME, "override_model_config",
                                        "global_parameter_scale", NULL};

/* Layers of decoder_block llama2: grouped queries, SwiGLU, RMS norms, no biases, rotary
 * positions. */
static void put_block(ms_port *port)
{
    const ms_model *m = port->model;
    const ms_layer_kind plain = {0};
    bool norms = m->norm != MS_NORM_RMS || m->plain_norms || m->post_norms ||
                 m->no_pre_norms || m->embedding_norm || m->norm_plus_one || m->qk_norm ||
                 m->qk_norm_whole || m->qk_norm_head_weights;
    bool scales = m->attention_sinks || m->attention_softcap > 0.0 ||
                  m->logit_softcap > 0.0 || m->logit_scale > 0.0 ||
                  m->query_pre_attn_scalar > 0.0 || m->embedding_scale > 0.0;
    bool biases = m->qkv_bias || m->attention_out_bias || m->mlp_bias || m->head_bias;
    bool is_llama = m->attention == MS_ATTENTION_GQA && m->moe.num_experts == 0 &&
                    m->num_kinds == 1 && ms_layer_kind_equal(&m->kinds[0], &plain) &&
                    m->activation == MS_ACT_SWIGLU && m->swiglu_limit == 0.0 &&
                    m->position == MS_POSITION_ROTARY && m->rotary_dim == 0 &&
                    m->rotary_scaling.kind == MS_ROTARY_SCALING_NONE &&
                    !m->parallel_block && !m->dropout && !norms && !scales && !biases;
    if (!is_llama)
        ms_port_leave_out(
            port, "model %s, which has no name and other layers than Llama 2", m->name);
    ms_port_put_text(port, "decoder_block", "llama2");
}

static ms_status take_block(ms_port *port)
{
    static const ms_port_word blocks[] = {{"llama2", 0}, {"mistral", 0}, {0}};
    long block = 0;
    return ms_port_take_word(port, "decoder_block", blocks, &block);
}

#define SHAPE(name, member, usual)                                                       \
    .kind = MS_PORT_WHOLE, .of = MS_OF_MODEL, .key = (name),                             \
    .offset = offsetof(ms_model, member), .absent = (usual), .always = true,             \
    .when = ms_maxtext_states_shapes
#define VALUE(name, member, usual)                                                       \
    .kind = MS_PORT_NUMBER, .of = MS_OF_MODEL, .key = (name),                            \
    .offset = offsetof(ms_model, member), .absent = (usual), .always = true,             \
    .soft = true, .when = ms_maxtext_states_shapes

const ms_port_row ms_maxtext_model_rows[] = {
    {.kind = MS_PORT_OWN,
     .of = MS_OF_MODEL,
     .put = put_name,
     .take = take_name,
     .keys = name_keys,
     .soft = true},
    {.kind = MS_PORT_OWN,
     .of = MS_OF_MODEL,
     .key = "decoder_block",
     .put = put_block,
     .take = take_block,
     .when = ms_maxtext_states_shapes,
     .soft = true},
    {SHAPE("base_emb_dim", hidden, 2048)},
    {SHAPE("base_mlp_dim", ffn_hidden, 7168)},
    {SHAPE("base_num_decoder_layers", num_layers, 16)},
    {SHAPE("base_num_query_heads", num_heads, 16)},
    {SHAPE("base_num_kv_heads", num_kv_heads, 16)},
    {SHAPE("head_dim", head_dim, 128)},
    {SHAPE("vocab_size", vocab, 32000), .soft = true},
    {.kind = MS_PORT_ON,
     .of = MS_OF_MODEL,
     .key = "logits_via_embedding",
     .offset = offsetof(ms_model, tied_embeddings),
     .when = ms_maxtext_states_shapes},
    {VALUE("rope_max_timescale", rotary_base, 10000)},
    {VALUE("normalization_layer_epsilon", norm_epsilon, 1e-5)},
    {0},
};
