/* Loads models by name, alias or path, and checks every model. */
#include "costmodel/model/model.h"

#include "base/paths.h"
#include "base/utf8.h"
#include "costmodel/model/model_hub.h"
#include "costmodel/model/model_priv.h"

#include <assert.h>
#include <string.h>

/* A model name in lower case with hyphens: "Llama_3.1_70B" -> "llama-3.1-70b" */
static const char *normal_name(ms_ctx *cx, const char *name)
{
    char *text = ms_arena_strdup(cx->arena, name);
    for (char *p = text; *p != '\0'; p++) {
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
        else if (*p == '_')
            *p = '-';
    }
    return text;
}

/* Name of a model by its path: file name or, for config.json, that of the folder. */
static const char *name_from_path(ms_ctx *cx, const char *path)
{
    const char *end = path + strlen(path);
    const char *base = ms_path_name(path);
    if (strcmp(base, "config.json") == 0 && base - path >= 2) {
        end = base - 1;
        base = end;
        while (base > path && base[-1] != '/')
            base--;
    } else if (end - base > 5 && strcmp(end - 5, ".json") == 0) {
        end -= 5;
    }
    bool nameless = end == base || *base == '.' || strcmp(base, "-") == 0;
    return nameless ? "model" : ms_arena_strndup(cx->arena, base, (size_t)(end - base));
}

const char *ms_model_keys_text(ms_ctx *cx, ms_jval object)
{
    const char *text = "";
    int num_keys = ms_json_is_object(object) ? ms_json_length(object) : 0;
    for (int i = 0; i < num_keys && i < 32; i++) {
        const char *key = "";
        ms_json_entry(cx, object, i, &key);
        text = ms_arena_printf(cx->arena, "%s%s%.*s", text, i == 0 ? "" : ", ",
                               ms_utf8_prefix(key, 64), key);
    }
    return num_keys > 32 ? ms_arena_printf(cx->arena, "%s, ...", text) : text;
}

ms_status ms_model_read(ms_ctx *cx, ms_jval root, const char *name, ms_model *out)
{
    ms_jval ignored;
    if (!ms_json_is_object(root))
        return ms_json_fail(cx, root, "a model file holds an object");
    if (ms_json_member(cx, root, "schema", &ignored)) {
        MS_TRY(ms_json_require_strict(cx, root));
        return ms_model_read_own(cx, root, out);
    }
    if (ms_json_member(cx, root, "model_type", &ignored))
        return ms_model_import_hf(cx, root, name, NULL, out);
    ms_status status = ms_json_fail(
        cx, root, "no model: neither \"schema\" nor \"model_type\" among the keys: %s",
        ms_model_keys_text(cx, root));
    ms_hint(cx, "a model file has \"schema\": \"" MS_MODEL_CONFIG_SCHEMA
                "\"; a Hugging Face config.json has a \"model_type\"");
    return status;
}

/* Hints at the last part of a path or hub name, "mirror/Llama-3.1-8B", as a model name. */
static void hint_name(ms_ctx *cx, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return;
    const char *name = normal_name(cx, slash + 1);
    if (ms_config_file(cx, "models", name) != NULL)
        ms_hint(cx, "the shipped model of this name is \"%s\"", name);
}

ms_status ms_model_load(ms_ctx *cx, const char *name_or_path, const ms_model **out)
{
    const char *path = name_or_path;
    if (!ms_config_is_path(name_or_path))
        MS_TRY(ms_config_resolve(cx, "models", "model", normal_name(cx, name_or_path),
                                 &path));
    return ms_model_load_as(cx, path, NULL, out);
}

/* Reads a parsed file; `name` names a Hugging Face config. */
static ms_status read_file(ms_ctx *cx, ms_jval root, const char *name, const char *path,
                           const char *model_type, ms_model *model)
{
    ms_jval type;
    if (model_type != NULL)
        MS_TRY(ms_model_import_hf(cx, root, name, model_type, model));
    else
        MS_TRY(ms_model_read(cx, root, name, model));
    return ms_json_member(cx, root, "schema", &type)
               ? MS_OK
               : ms_model_check_index(cx, path, root, model);
}

ms_status ms_model_load_as(ms_ctx *cx, const char *path, const char *model_type,
                           const ms_model **out)
{
    ms_jdoc *doc = NULL;
    ms_jval root;
    const char *word = path;
    bool is_hub_name = ms_model_is_hub_name(word);
    ms_status status =
        is_hub_name ? ms_model_hub_find(cx, word, model_type == NULL, &path) : MS_OK;
    if (status == MS_OK)
        status = ms_json_load_python(cx, path, &doc, &root);
    if (status != MS_OK) {
        hint_name(cx, word);
        return status;
    }
    ms_model *model = MS_NEW(cx->arena, ms_model);
    const char *name = is_hub_name ? ms_path_name(word) : name_from_path(cx, path);
    status = read_file(cx, root, name, path, model_type, model);
    ms_json_close(doc);
    if (status == MS_OK)
        *out = model;
    return status;
}

ms_status ms_model_names(ms_ctx *cx, const char *const **names, int *num_names)
{
    return ms_config_names(cx, "models", names, num_names);
}

bool ms_activation_is_gated(ms_activation activation)
{
    return activation == MS_ACT_SWIGLU || activation == MS_ACT_GEGLU;
}

void ms_model_clear_layers(ms_ctx *cx, ms_model *model)
{
    assert(model->num_layers >= 1 && model->num_layers <= MS_MAX_MODEL_LAYERS);
    model->num_kinds = 0;
    model->kind_of_layer = MS_NEW_ARRAY(cx->arena, model->num_layers, unsigned char);
}

bool ms_model_set_layer(ms_model *model, long layer_idx, ms_layer_kind kind)
{
    assert(layer_idx >= 0 && layer_idx < model->num_layers);
    int i = 0;
    while (i < model->num_kinds && !ms_layer_kind_equal(&model->kinds[i], &kind))
        i++;
    if (i == MS_MAX_LAYER_KINDS)
        return false;
    if (i == model->num_kinds)
        model->kinds[model->num_kinds++] = kind;
    model->kind_of_layer[layer_idx] = (unsigned char)i;
    return true;
}

/* ---- checks ---- */

/* A number of a model, and the range [low, high] in which it must lie. */
typedef struct size_check {
    const char *what;
    long value;
    long low;
    long high;
} size_check;

static ms_status check_sizes(ms_ctx *cx, const size_check *checks, ms_loc loc)
{
    ms_status status = MS_OK;
    for (; checks->what != NULL; checks++) {
        if (checks->value < checks->low || checks->value > checks->high)
            status = ms_fail(cx, MS_EINPUT, loc, "%s is %ld, must be between %ld and %ld",
                             checks->what, checks->value, checks->low, checks->high);
    }
    return status;
}

static ms_status check_shapes(ms_ctx *cx, const ms_model *model, ms_loc loc)
{
    const size_check checks[] = {
        {"number of layers", model->num_layers, 1, MS_MAX_MODEL_LAYERS},
        {"hidden size", model->hidden, 1, MS_MAX_MODEL_SIZE},
        {"number of heads", model->num_heads, 1, MS_MAX_MODEL_SIZE},
        {"number of key-value heads", model->num_kv_heads, 1, MS_MAX_MODEL_SIZE},
        {"head dimension", model->head_dim, 1, MS_MAX_MODEL_SIZE},
        {"value head dimension", model->value_head_dim, 1, MS_MAX_MODEL_SIZE},
        {"feed-forward size", model->ffn_hidden, 0, MS_MAX_MODEL_SIZE},
        {"vocabulary", model->vocab, 1, MS_MAX_MODEL_SIZE},
        {"number of positions", model->max_positions, 1, 1L << 30},
        {"norms per layer", model->norms_per_layer, 1, 4},
        {"number of modules of multi-token prediction", model->num_nextn_predict_layers,
         0, MS_MAX_NEXTN_LAYERS},
        {0},
    };
    return check_sizes(cx, checks, loc);
}

static ms_status check_attention(ms_ctx *cx, const ms_model *model, ms_loc loc)
{
    if (model->num_heads % model->num_kv_heads != 0)
        return ms_fail(cx, MS_EINPUT, loc, "%ld heads are not divisible by %ld kv heads",
                       model->num_heads, model->num_kv_heads);
    bool mla = model->attention == MS_ATTENTION_MLA;
    if (!mla && model->value_head_dim != model->head_dim)
        return ms_fail(cx, MS_EINPUT, loc,
                       "value heads of %ld, but heads of %ld without MLA",
                       model->value_head_dim, model->head_dim);
    long rotated = mla ? model->mla.rope_head_dim : model->head_dim;
    if (model->position == MS_POSITION_ROTARY && rotated % 2 != 0)
        return ms_fail(cx, MS_EINPUT, loc,
                       "rotary positions need an even head size, not %ld", rotated);
    if (!mla)
        return MS_OK;
    const size_check checks[] = {
        {"q_lora_rank", model->mla.q_lora_rank, 0, MS_MAX_MODEL_SIZE},
        {"kv_lora_rank", model->mla.kv_lora_rank, 1, MS_MAX_MODEL_SIZE},
        {"nope head dimension", model->mla.nope_head_dim, 1, MS_MAX_MODEL_SIZE},
        {"rope head dimension", model->mla.rope_head_dim, 1, MS_MAX_MODEL_SIZE},
        {0},
    };
    MS_TRY(check_sizes(cx, checks, loc));
    if (model->head_dim != model->mla.nope_head_dim + model->mla.rope_head_dim)
        return ms_fail(cx, MS_EINPUT, loc, "head dimension is %ld, must be %ld + %ld",
                       model->head_dim, model->mla.nope_head_dim,
                       model->mla.rope_head_dim);
    if (model->num_kv_heads != model->num_heads)
        return ms_fail(cx, MS_EINPUT, loc, "MLA has %ld kv heads, but %ld heads",
                       model->num_kv_heads, model->num_heads);
    return MS_OK;
}

static ms_status check_experts(ms_ctx *cx, const ms_model *model, ms_loc loc)
{
    const size_check checks[] = {
        {"number of experts", model->moe.num_experts, 1, MS_MAX_MODEL_SIZE},
        {"experts per token", model->moe.top_k, 1, model->moe.num_experts},
        {"expert size", model->moe.ffn_hidden, 1, MS_MAX_MODEL_SIZE},
        {"shared expert size", model->moe.shared_ffn_hidden, 0, MS_MAX_MODEL_SIZE},
        {0},
    };
    MS_TRY(check_sizes(cx, checks, loc));
    if (model->moe.shared_gate && model->moe.shared_ffn_hidden == 0)
        return ms_fail(cx, MS_EINPUT, loc,
                       "a shared-expert gate without a shared expert");
    return MS_OK;
}

static ms_status check_layers(ms_ctx *cx, const ms_model *model, ms_loc loc)
{
    bool any_moe = false;
    bool any_dense = false;
    for (long i = 0; i < model->num_layers; i++) {
        assert(model->kind_of_layer != NULL &&
               model->kind_of_layer[i] < model->num_kinds);
        const ms_layer_kind *kind = &model->kinds[model->kind_of_layer[i]];
        any_moe = any_moe || kind->moe;
        any_dense = any_dense || ms_layer_kind_has_dense_mlp(kind);
        if (kind->window_tokens < 0 || kind->window_tokens > 1L << 30)
            return ms_fail(cx, MS_EINPUT, loc,
                           "sliding window of %ld tokens in layer %ld",
                           kind->window_tokens, i);
    }
    if (any_dense && model->ffn_hidden == 0)
        return ms_fail(cx, MS_EINPUT, loc,
                       "feed-forward size is 0, but there are layers without experts");
    if (any_moe)
        return check_experts(cx, model, loc);
    if (model->moe.num_experts != 0)
        return ms_fail(cx, MS_EINPUT, loc, "%ld experts, but no layer uses them",
                       model->moe.num_experts);
    return MS_OK;
}

static ms_status check_norms(ms_ctx *cx, const ms_model *model, ms_loc loc)
{
    if (model->swiglu_limit > 0.0 && model->activation != MS_ACT_SWIGLU)
        return ms_fail(cx, MS_EINPUT, loc, "swiglu_limit needs the activation swiglu");
    if (model->attention_sinks && model->attention != MS_ATTENTION_GQA)
        return ms_fail(cx, MS_EINPUT, loc, "attention_sinks cannot be used with mla");
    if (model->no_pre_norms && (!model->post_norms || model->parallel_block))
        return ms_fail(cx, MS_EINPUT, loc,
                       "no_pre_norms needs post_norms, and no parallel_block");
    bool four = model->post_norms && !model->no_pre_norms;
    if (model->norms_per_layer == 3 || four != (model->norms_per_layer == 4))
        return ms_fail(cx, MS_EINPUT, loc,
                       "%ld norms per layer %s norms after the blocks",
                       model->norms_per_layer, four ? "with" : "without");
    if (model->norms_per_layer == 1 && !model->parallel_block)
        return ms_fail(cx, MS_EINPUT, loc,
                       "1 norm per layer needs attention and MLP in parallel");
    if (model->norm == MS_NORM_RMS && model->norm_bias)
        return ms_fail(cx, MS_EINPUT, loc, "an RMS norm has no bias");
    if (model->plain_norms && model->norm_bias)
        return ms_fail(cx, MS_EINPUT, loc, "norms without weights have no bias");
    if (model->qk_norm_head_weights && (!model->qk_norm || model->qk_norm_whole))
        return ms_fail(cx, MS_EINPUT, loc,
                       "qk_norm_head_weights needs qk_norm, and no qk_norm_whole");
    return MS_OK;
}

/* Refuses an empty text, and control characters, which could steer a terminal. */
static ms_status check_text(ms_ctx *cx, const char *what, const char *text, ms_loc loc)
{
    if (text == NULL || text[0] == '\0')
        return ms_fail(cx, MS_EINPUT, loc, "the model's %s is empty", what);
    for (const char *p = text; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return ms_fail(cx, MS_EINPUT, loc,
                           "control characters in the model's %s \"%s\"", what, text);
    return MS_OK;
}

static ms_status check_texts(ms_ctx *cx, const ms_model *model, ms_loc loc)
{
    MS_TRY(check_text(cx, "name", model->name, loc));
    MS_TRY(check_text(cx, "family", model->family, loc));
    return check_text(cx, "source", model->source, loc);
}

ms_status ms_model_check(ms_ctx *cx, const ms_model *model, ms_loc loc)
{
    MS_TRY(check_texts(cx, model, loc));
    MS_TRY(check_shapes(cx, model, loc));
    MS_TRY(check_attention(cx, model, loc));
    MS_TRY(check_norms(cx, model, loc));
    MS_TRY(check_layers(cx, model, loc));
    MS_TRY(ms_model_check_hybrid(cx, model, loc));
    MS_TRY(ms_model_check_values(cx, model, loc));
    if (model->head_bias && model->tied_embeddings)
        return ms_fail(cx, MS_EINPUT, loc, "a tied head has no bias");
    double num_params = ms_model_params(model).total;
    if (num_params > 9007199254740992.0)
        return ms_fail(cx, MS_EINPUT, loc, "%.3g parameters, more than 2^53", num_params);
    return MS_OK;
}
