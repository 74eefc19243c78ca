/* Imports Hugging Face config.json files by the table ms_hf_families, one row per
 * model_type. All errors of a file are reported. */
#include "costmodel/model/model_hf_priv.h"

#include <string.h>

#define MAX_HF_VALUE (1L << 30)

/* ---- keys ---- */

static ms_status missing_key(ms_ctx *cx, const ms_hf_import *import, const char *name)
{
    ms_status status =
        ms_json_fail(cx, import->root, "missing \"%s\", which model_type \"%s\" needs",
                     name, import->model_type);
    ms_hint(cx, "keys found: %s", ms_model_keys_text(cx, import->root));
    return status;
}

/* Reads a JSON value into `member`, which has the C type of the key. */
static ms_status read_value(ms_ctx *cx, ms_jval value, const ms_hf_key *key, void *member)
{
    switch (key->type) {
    case MS_HF_SIZE:
        return ms_json_integer(cx, value, (long)key->low, MAX_HF_VALUE, member);
    case MS_HF_FLAG:
        return ms_json_bool(cx, value, member);
    case MS_HF_RATE:
        return ms_json_number(cx, value, 0.0, 1.0, member);
    case MS_HF_BASE:
        return ms_json_number(cx, value, 1.0, 1e15, member);
    case MS_HF_SCALAR:
        return ms_json_number(cx, value, 0.0, 1e15, member);
    case MS_HF_WORD:
        return ms_json_text(cx, value, member);
    }
    return MS_OK;
}

static void use_default(const ms_hf_key *key, void *member)
{
    switch (key->type) {
    case MS_HF_SIZE:
        *(long *)member = (long)key->fallback;
        break;
    case MS_HF_FLAG:
        *(bool *)member = key->fallback > 0.0;
        break;
    case MS_HF_RATE:
    case MS_HF_BASE:
    case MS_HF_SCALAR:
        *(double *)member = key->fallback;
        break;
    case MS_HF_WORD:
        *(const char **)member = key->word_fallback;
        break;
    }
}

static ms_status read_key(ms_ctx *cx, ms_hf_import *import, const ms_hf_key *key)
{
    void *member = (char *)&import->config + key->offset;
    bool needed = key->need == MS_HF_REQUIRED || key->need == MS_HF_REQUIRED_OR_NULL;
    bool nullable = key->need == MS_HF_NULLABLE || key->need == MS_HF_REQUIRED_OR_NULL;
    ms_jval value;
    bool found = ms_json_member(cx, import->root, key->name, &value);
    if (!found && key->alias != NULL)
        found = ms_json_member(cx, import->root, key->alias, &value);
    if (!found && needed)
        return missing_key(cx, import, key->name);
    if (!found)
        use_default(key, member);
    else if (!nullable || !ms_json_is_null(value))
        return read_value(cx, value, key, member);
    return MS_OK;
}

static ms_status read_keys(ms_ctx *cx, ms_hf_import *import, const ms_hf_family *family)
{
    ms_status status = MS_OK;
    size_t num_tables = sizeof family->keys / sizeof family->keys[0];
    for (size_t i = 0; i < num_tables && family->keys[i] != NULL; i++) {
        for (const ms_hf_key *key = family->keys[i]; key->name != NULL; key++) {
            ms_status one = read_key(cx, import, key);
            status = one == MS_OK ? status : one;
        }
    }
    return status;
}

/* ---- layers ---- */

/* Sets dense[layer] for layers in "mlp_only_layers". */
static ms_status read_mlp_only(ms_ctx *cx, const ms_hf_import *import,
                               unsigned char *dense)
{
    ms_jval list;
    if (!ms_json_member(cx, import->root, "mlp_only_layers", &list) ||
        ms_json_is_null(list))
        return MS_OK;
    if (!ms_json_is_array(list))
        return ms_json_fail(cx, list, "\"mlp_only_layers\" must be an array");
    int num_listed = ms_json_length(list);
    for (int i = 0; i < num_listed; i++) {
        long layer = 0;
        MS_TRY(ms_json_integer(cx, ms_json_element(cx, list, i), 0,
                               import->config.model.num_layers - 1, &layer));
        dense[layer] = 1;
    }
    return MS_OK;
}

/* Sets windows[layer], in tokens (0: full attention), by three keys of `config`. */
static void windows_by_rule(const ms_hf_config *config, long *windows)
{
    for (long i = 0; i < config->model.num_layers; i++) {
        bool full = config->sliding_period > 0 && (i + 1) % config->sliding_period == 0;
        windows[i] = full || i < config->max_window_layers ? 0 : config->sliding_window;
    }
}

static ms_status window_of_type(ms_ctx *cx, ms_jval value, long sliding_window,
                                long *window)
{
    const char *type = "";
    MS_TRY(ms_json_text(cx, value, &type));
    *window = 0;
    if (strcmp(type, "full_attention") == 0)
        return MS_OK;
    if (strcmp(type, "sliding_attention") != 0)
        return ms_json_fail(cx, value, "unknown layer type \"%s\"", type);
    if (sliding_window == 0)
        return ms_json_fail(cx, value,
                            "\"sliding_attention\" without a \"sliding_window\"");
    *window = sliding_window;
    return MS_OK;
}

static ms_status read_windows(ms_ctx *cx, const ms_hf_import *import, long *windows)
{
    const ms_hf_config *config = &import->config;
    ms_jval types;
    windows_by_rule(config, windows);
    if (!config->layer_types ||
        !ms_json_member(cx, import->root, "layer_types", &types) ||
        ms_json_is_null(types))
        return MS_OK;
    if (!ms_json_is_array(types) || ms_json_length(types) != config->model.num_layers)
        return ms_json_fail(cx, types, "\"layer_types\" must be an array of %ld words",
                            config->model.num_layers);
    for (int i = 0; i < config->model.num_layers; i++)
        MS_TRY(window_of_type(cx, ms_json_element(cx, types, i), config->sliding_window,
                              &windows[i]));
    return MS_OK;
}

static bool has_experts(const ms_hf_config *config, long layer_idx)
{
    if (config->model.moe.num_experts == 0 || layer_idx < config->first_k_dense)
        return false;
    if (config->decoder_sparse_step > 0 &&
        (layer_idx + 1) % config->decoder_sparse_step != 0)
        return false;
    return config->moe_layer_freq == 0 || layer_idx % config->moe_layer_freq == 0;
}

/* Sets layers by hybrid_override_pattern, and clears sizes that no layer uses. */
static ms_status set_hybrid_layers(ms_ctx *cx, ms_hf_import *import)
{
    ms_model *model = &import->config.model;
    ms_jval pattern;
    if (!ms_json_member(cx, import->root, "hybrid_override_pattern", &pattern))
        return missing_key(cx, import, "hybrid_override_pattern");
    MS_TRY(ms_model_read_hybrid(cx, pattern, model));
    bool any_moe = false, any_dense = false;
    for (int i = 0; i < model->num_kinds; i++) {
        any_moe = any_moe || model->kinds[i].moe;
        any_dense = any_dense || ms_layer_kind_has_dense_mlp(&model->kinds[i]);
    }
    if (!any_moe)
        memset(&model->moe, 0, sizeof model->moe);
    if (!any_dense)
        model->ffn_hidden = 0;
    if (ms_model_mixers(model, MS_MIXER_MAMBA) == 0)
        memset(&model->mamba, 0, sizeof model->mamba);
    return MS_OK;
}

static ms_status set_layers(ms_ctx *cx, ms_hf_import *import)
{
    ms_model *model = &import->config.model;
    if (model->num_layers > MS_MAX_MODEL_LAYERS)
        return ms_json_fail(cx, import->root, "%ld layers, must be at most %d",
                            model->num_layers, MS_MAX_MODEL_LAYERS);
    ms_model_clear_layers(cx, model);
    if (import->config.hybrid)
        return set_hybrid_layers(cx, import);
    long *windows = MS_NEW_ARRAY(cx->arena, model->num_layers, long);
    unsigned char *dense = MS_NEW_ARRAY(cx->arena, model->num_layers, unsigned char);
    MS_TRY(read_windows(cx, import, windows));
    if (model->moe.num_experts > 0)
        MS_TRY(read_mlp_only(cx, import, dense));
    bool any_dense = false;
    for (long i = 0; i < model->num_layers; i++) {
        bool moe = has_experts(&import->config, i) && !dense[i];
        any_dense = any_dense || !moe;
        ms_model_set_layer(model, i,
                           (ms_layer_kind){.moe = moe, .window_tokens = windows[i]});
    }
    if (!any_dense)
        model->ffn_hidden = 0; /* configs give this width even without dense MLPs */
    return MS_OK;
}

/* ---- the model ---- */

static ms_status set_activation(ms_ctx *cx, ms_hf_import *import)
{
    ms_model *model = &import->config.model;
    const char *word = import->config.activation;
    bool gated = ms_activation_is_gated(model->activation);
    bool gelu = strncmp(word, "gelu", 4) == 0 || strcmp(word, "quick_gelu") == 0;
    model->gelu_tanh = strcmp(word, "gelu_new") == 0 ||
                       strcmp(word, "gelu_pytorch_tanh") == 0 ||
                       strcmp(word, "gelu_fast") == 0;
    bool relu = strcmp(word, "relu") == 0;
    bool relu2 = strcmp(word, "relu2") == 0 || strcmp(word, "relu_squared") == 0;
    if (gelu)
        model->activation = gated ? MS_ACT_GEGLU : MS_ACT_GELU;
    else if (gated && (strcmp(word, "silu") == 0 || strcmp(word, "swish") == 0))
        model->activation = MS_ACT_SWIGLU;
    else if (!gated && relu)
        model->activation = MS_ACT_RELU;
    else if (!gated && relu2)
        model->activation = MS_ACT_RELU2;
    else
        return ms_json_fail(cx, import->root,
                            "activation \"%s\" is not known for model_type \"%s\"", word,
                            import->model_type);
    return MS_OK;
}

static ms_status set_heads(ms_ctx *cx, ms_hf_import *import)
{
    ms_model *model = &import->config.model;
    if (model->num_kv_heads == 0)
        model->num_kv_heads = model->num_heads;
    if (model->head_dim == 0) {
        if (model->hidden % model->num_heads != 0) {
            return ms_json_fail(
                cx, import->root,
                "hidden size %ld is not divisible by %ld heads, and there is "
                "no \"head_dim\"",
                model->hidden, model->num_heads);
        }
        model->head_dim = model->hidden / model->num_heads;
    }
    if (model->value_head_dim == 0)
        model->value_head_dim = model->head_dim;
    return MS_OK;
}

static ms_status complete(ms_ctx *cx, ms_hf_import *import)
{
    ms_hf_config *config = &import->config;
    ms_model *model = &config->model;
    MS_TRY(set_activation(cx, import));
    MS_TRY(set_heads(cx, import));
    if (model->post_norms)
        model->norms_per_layer = 4;
    if (config->attention_bias) {
        model->qkv_bias = true;
        model->attention_out_bias = true;
    }
    model->hidden_dropout = config->dropout_rates[0];
    model->attention_dropout = config->dropout_rates[1];
    model->embedding_dropout = config->dropout_rates[2];
    for (int i = 0; i < MS_HF_NUM_RATES; i++)
        model->dropout = model->dropout || config->dropout_rates[i] > 0.0;
    return set_layers(cx, import);
}

static ms_status find_family(ms_ctx *cx, const ms_hf_import *import,
                             const ms_hf_family **out)
{
    const char *known = "";
    for (*out = ms_hf_families; (*out)->model_type != NULL; (*out)++) {
        if (strcmp((*out)->model_type, import->model_type) == 0)
            return MS_OK;
        known = ms_arena_printf(cx->arena, "%s%s%s", known, known[0] == '\0' ? "" : ", ",
                                (*out)->model_type);
    }
    ms_status status = ms_json_fail(
        cx, import->root, "unknown model_type \"%s\" in a config with the keys %s",
        import->model_type, ms_model_keys_text(cx, import->root));
    ms_hint(cx, "known model types: %s", known);
    return status;
}

static ms_status read_name(ms_ctx *cx, ms_jval config, const char *name, ms_model *model)
{
    ms_jval value;
    model->name = ms_arena_strdup(cx->arena, name);
    if (!ms_json_member(cx, config, "_name_or_path", &value) || ms_json_is_null(value))
        return MS_OK;
    const char *text = "";
    MS_TRY(ms_json_text(cx, value, &text));
    if (text[0] != '\0')
        model->name = text;
    return MS_OK;
}

static ms_status missing_type(ms_ctx *cx, ms_jval config)
{
    ms_status status = ms_json_fail(cx, config, "missing \"model_type\"");
    ms_hint(cx, "keys found: %s", ms_model_keys_text(cx, config));
    return status;
}

/* Reads, completes and checks a model. `config` is the whole file; import->root, from
 * which shapes are read, is the file or its "text_config". */
static ms_status import_model(ms_ctx *cx, ms_hf_import *import, ms_jval config,
                              const char *name)
{
    const ms_hf_family *family = NULL;
    ms_jval part;
    MS_TRY(find_family(cx, import, &family));
    if (strcmp(import->model_type, "gemma3") == 0 &&
        ms_json_member(cx, config, "text_config", &part) && ms_json_is_object(part))
        import->root = part; /* the language model; the vision tower is ignored */
    import->config = family->fixed;
    MS_TRY(read_keys(cx, import, family));
    if (family->finish != NULL)
        MS_TRY(family->finish(cx, import));
    MS_TRY(complete(cx, import));
    MS_TRY(ms_hf_read_values(cx, import, family));
    ms_model *model = &import->config.model;
    MS_TRY(read_name(cx, config, name, model));
    ms_loc loc = ms_json_loc(cx, import->root);
    model->family = family->model_type;
    model->source = ms_arena_printf(cx->arena, "Hugging Face config %s",
                                    loc.file == NULL ? name : loc.file);
    return ms_model_check(cx, model, loc);
}

ms_status ms_model_import_hf(ms_ctx *cx, ms_jval config, const char *name, ms_model *out)
{
    ms_hf_import *import = MS_NEW(cx->arena, ms_hf_import);
    ms_jval type;
    import->root = config;
    if (!ms_json_is_object(config) || !ms_json_member(cx, config, "model_type", &type))
        return missing_type(cx, config);
    MS_TRY(ms_json_text(cx, type, &import->model_type));
    MS_TRY(import_model(cx, import, config, name));
    *out = import->config.model;
    return MS_OK;
}
