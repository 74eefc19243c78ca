/* Imports Hugging Face config.json files by the tables of families and keys. All errors
 * of a file are reported. */
#include "costmodel/model/model_hf_priv.h"

#include <string.h>

#define MAX_HF_VALUE (1L << 30)
/* Parts of configs of several models that hold the language model. */
#define PARTS "text_config|thinker_config.text_config|language_config"

/* ---- keys ---- */

ms_status ms_hf_missing_key(ms_ctx *cx, const ms_hf_import *import, const char *names)
{
    const char *found = ms_model_keys_text(cx, import->root);
    size_t first = strcspn(names, "|");
    ms_status status =
        ms_json_fail(cx, import->root, "missing \"%.*s\", which model_type \"%s\" needs",
                     (int)first, names, import->model_type);
    if (names[first] == '\0')
        ms_hint(cx, "keys found: %s", found);
    else
        ms_hint(cx, "keys found: %s; other names of the missing one: %s", found,
                names + first + 1);
    return status;
}

static ms_status read_integer(ms_ctx *cx, ms_jval value, const ms_hf_key *key, long *out)
{
    return ms_json_integer(cx, value, (long)key->low, MAX_HF_VALUE, out);
}

/* Reads a whole number, or a list with one for each layer, which must be equal. */
static ms_status read_size(ms_ctx *cx, ms_jval value, const ms_hf_key *key, long *out)
{
    if (!ms_json_is_array(value) || ms_json_length(value) == 0)
        return read_integer(cx, value, key, out);
    MS_TRY(read_integer(cx, ms_json_element(cx, value, 0), key, out));
    for (int i = 1; i < ms_json_length(value); i++) {
        long other = 0;
        ms_jval element = ms_json_element(cx, value, i);
        MS_TRY(read_integer(cx, element, key, &other));
        if (other != *out) {
            ms_status status = ms_json_fail(
                cx, element, "%ld after %ld: layers of several widths are not supported",
                other, *out);
            ms_hint(cx, "one number for all layers prices a model of their mean");
            return status;
        }
    }
    return MS_OK;
}

/* Reads a period of layers, or its layers as letters (EXAONE: "LLLG", the last of which
 * is global). */
static ms_status read_period(ms_ctx *cx, ms_jval value, const ms_hf_key *key, long *out)
{
    const char *letters = "";
    if (!ms_json_is_string(value))
        return read_integer(cx, value, key, out);
    MS_TRY(ms_json_text(cx, value, &letters));
    size_t locals = strspn(letters, "L");
    if (strcmp(letters + locals, "G") != 0) {
        return ms_json_fail(cx, value,
                            "\"%s\" must be L for each layer with a window, then one "
                            "G, such as \"LLLG\"",
                            letters);
    }
    *out = (long)locals + 1;
    return MS_OK;
}

/* Reads a JSON value into `member`, which has the C type of the key. */
static ms_status read_value(ms_ctx *cx, ms_jval value, const ms_hf_key *key, void *member)
{
    switch (key->type) {
    case MS_HF_SIZE:
        return read_size(cx, value, key, member);
    case MS_HF_PERIOD:
        return read_period(cx, value, key, member);
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

/* Sets a key whose value is null. */
static void use_null(const ms_hf_key *key, void *member)
{
    if (key->type == MS_HF_SIZE || key->type == MS_HF_PERIOD)
        *(long *)member = 0;
    else if (key->type == MS_HF_SCALAR)
        *(double *)member = 0.0;
}

static bool is_auto(ms_ctx *cx, ms_jval value)
{
    const char *text = "";
    return ms_json_is_string(value) && ms_json_text(cx, value, &text) == MS_OK &&
           strcmp(text, "auto") == 0;
}

/* Refuses a size that a config states under two names, differently. */
static ms_status check_other_names(ms_ctx *cx, const ms_hf_import *import,
                                   const ms_hf_key *key, long size)
{
    const char *names = key->names;
    for (;;) {
        long other = 0;
        ms_jval value;
        names += strcspn(names, "|");
        if (*names++ == '\0')
            return MS_OK;
        if (!ms_hf_find(cx, import->root, names, &value) || ms_json_is_null(value))
            continue;
        MS_TRY(read_size(cx, value, key, &other));
        if (other != size)
            return ms_json_fail(cx, value, "%ld, but %ld under another of its names, %s",
                                other, size, key->names);
    }
}

static ms_status read_key(ms_ctx *cx, ms_hf_import *import, const ms_hf_key *key)
{
    void *member = (char *)&import->config + key->offset;
    ms_jval value;
    bool size = key->type == MS_HF_SIZE;
    if (!ms_hf_find(cx, import->root, key->names, &value)) {
        if (size && *(const long *)member == MS_HF_NO_DEFAULT)
            return ms_hf_missing_key(cx, import, key->names);
        return MS_OK;
    }
    if (key->nullable && (ms_json_is_null(value) || (size && is_auto(cx, value)))) {
        use_null(key, member);
        return MS_OK;
    }
    MS_TRY(read_value(cx, value, key, member));
    return size ? check_other_names(cx, import, key, *(const long *)member) : MS_OK;
}

static ms_status read_keys(ms_ctx *cx, ms_hf_import *import, const ms_hf_family *family)
{
    ms_status status = MS_OK;
    for (const ms_hf_key *const *table = family->keys; *table != NULL; table++) {
        for (const ms_hf_key *key = *table; key->names != NULL; key++) {
            ms_status one = read_key(cx, import, key);
            status = one == MS_OK ? status : one;
        }
    }
    return status;
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
    else if (!gated && strcmp(word, "xielu") == 0)
        model->mlp_scalars = 2; /* Apertus: a GELU with two learned numbers */
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
    if (model->post_norms && !model->no_pre_norms)
        model->norms_per_layer = 4;
    if (config->attention_bias || config->all_biases) {
        model->qkv_bias = true;
        model->attention_out_bias = true;
    }
    model->mlp_bias = model->mlp_bias || config->all_biases;
    if (model->ffn_hidden == 0)
        model->ffn_hidden = config->inner_multiple * model->hidden;
    if (config->num_shared_experts > 0 && model->moe.shared_ffn_hidden == 0)
        model->moe.shared_ffn_hidden = config->num_shared_experts * model->moe.ffn_hidden;
    if (model->num_nextn_predict_layers > 0)
        model->nextn_loss_weight = MS_NEXTN_LOSS_WEIGHT;
    model->hidden_dropout = config->dropout_rates[0];
    model->attention_dropout = config->dropout_rates[1];
    model->embedding_dropout = config->dropout_rates[2];
    for (int i = 0; i < MS_HF_NUM_RATES; i++)
        model->dropout = model->dropout || config->dropout_rates[i] > 0.0;
    return ms_hf_set_layers(cx, import);
}

/* ---- types ---- */

static const ms_hf_family *family_of(const char *model_type)
{
    const ms_hf_family *family = ms_hf_families;
    while (family->model_type != NULL && strcmp(family->model_type, model_type) != 0)
        family++;
    return family->model_type == NULL ? NULL : family;
}

static const ms_hf_alias *alias_of(const char *model_type)
{
    const ms_hf_alias *alias = ms_hf_aliases;
    while (alias->model_type != NULL && strcmp(alias->model_type, model_type) != 0)
        alias++;
    return alias->model_type == NULL ? NULL : alias;
}

static const ms_hf_refusal *refusal_of(const char *model_type)
{
    const ms_hf_refusal *refusal = ms_hf_refusals;
    while (refusal->model_type != NULL && strcmp(refusal->model_type, model_type) != 0)
        refusal++;
    return refusal->model_type == NULL ? NULL : refusal;
}

/* The error of a model_type that is no family: refused by its layers, or unknown. */
static ms_status refuse_type(ms_ctx *cx, const ms_hf_import *import)
{
    const char *known = "";
    const ms_hf_refusal *r = refusal_of(import->model_type);
    if (r != NULL) {
        ms_json_fail(cx, import->root,
                     "model_type \"%s\" has layers that no model here can express: %s",
                     r->model_type, r->layer);
        return ms_hint(cx,
                       "meshsim model CONFIG --as %s reads it with the layers of that "
                       "type instead, whose parameters and costs differ",
                       r->nearest);
    }
    for (const ms_hf_family *f = ms_hf_families; f->model_type != NULL; f++)
        known = ms_arena_printf(cx->arena, "%s%s, ", known, f->model_type);
    for (const ms_hf_alias *a = ms_hf_aliases; a->model_type != NULL; a++)
        known = ms_arena_printf(cx->arena, "%s%s%s", known,
                                a == ms_hf_aliases ? "" : ", ", a->model_type);
    ms_status status = ms_json_fail(
        cx, import->root, "unknown model_type \"%s\" in a config with the keys %s",
        import->model_type, ms_model_keys_text(cx, import->root));
    ms_hint(
        cx,
        "\"meshsim model CONFIG --as TYPE\" reads it as one of these, and so does every "
        "command if its model_type is one: %s",
        known);
    return status;
}

/* Reads "model_type" of an object; false if it has none. */
static ms_status read_type(ms_ctx *cx, ms_jval object, const char **type, bool *found)
{
    ms_jval value;
    *found = ms_json_member(cx, object, "model_type", &value);
    return *found ? ms_json_text(cx, value, type) : MS_OK;
}

/* Goes from import->model_type to its family, and sets import->root to the part of the
 * config that holds the language model. *outer gets the alias that was followed, or NULL.
 */
static ms_status find_family(ms_ctx *cx, ms_hf_import *import,
                             const ms_hf_family **family, const ms_hf_alias **outer)
{
    *outer = alias_of(import->model_type);
    if (*outer != NULL) {
        ms_jval part;
        bool typed = false;
        import->model_type = (*outer)->family;
        if ((*outer)->part != NULL &&
            ms_hf_find(cx, import->root, (*outer)->part, &part) &&
            ms_json_is_object(part)) {
            import->root = part;
            MS_TRY(read_type(cx, part, &import->model_type, &typed));
            const ms_hf_alias *inner = alias_of(import->model_type);
            if (inner != NULL)
                import->model_type = inner->family;
        }
    }
    *family = family_of(import->model_type);
    return *family == NULL ? refuse_type(cx, import) : MS_OK;
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

/* The outer "tie_word_embeddings" of a config whose language model lies in a part. */
static ms_status read_outer_tie(ms_ctx *cx, ms_jval config, ms_model *model)
{
    ms_jval tie;
    if (!ms_json_member(cx, config, "tie_word_embeddings", &tie))
        return MS_OK;
    return ms_json_bool(cx, tie, &model->tied_embeddings);
}

/* Reads, completes and checks a model; `config` is the whole file. */
static ms_status import_model(ms_ctx *cx, ms_hf_import *import, ms_jval config,
                              const char *name)
{
    const ms_hf_family *family = NULL;
    const ms_hf_alias *outer = NULL;
    const char *file_type = import->model_type;
    MS_TRY(find_family(cx, import, &family, &outer));
    import->config = family->defaults;
    import->config.last_sparse = -1;
    ms_model *model = &import->config.model;
    MS_TRY(read_keys(cx, import, family));
    if (outer != NULL && outer->outer_tie)
        MS_TRY(read_outer_tie(cx, config, model));
    if (family->finish != NULL)
        MS_TRY(family->finish(cx, import));
    MS_TRY(complete(cx, import));
    MS_TRY(ms_hf_read_values(cx, import, family));
    MS_TRY(read_name(cx, config, name, model));
    ms_loc loc = ms_json_loc(cx, import->root);
    model->family = outer != NULL && outer->part != NULL ? file_type : family->model_type;
    model->source = ms_arena_printf(cx->arena, "Hugging Face config %s",
                                    loc.file == NULL ? name : loc.file);
    return ms_model_check(cx, model, loc);
}

/* Names the layers of a config's own type that the type it is read as lacks. */
static ms_status note_own_layers(ms_ctx *cx, ms_hf_import *import, ms_jval config)
{
    const char *own = "";
    bool typed = false;
    MS_TRY(read_type(cx, config, &own, &typed));
    const ms_hf_refusal *refusal = refusal_of(own);
    if (refusal != NULL)
        ms_model_add_not_executed(cx, &import->config.model, refusal->layer);
    return MS_OK;
}

ms_status ms_model_import_hf(ms_ctx *cx, ms_jval config, const char *name,
                             const char *model_type, ms_model *out)
{
    ms_hf_import *import = MS_NEW(cx->arena, ms_hf_import);
    bool typed = model_type != NULL;
    ms_jval part;
    import->root = config;
    import->model_type = model_type;
    import->foreign = typed;
    if (!ms_json_is_object(config))
        return missing_type(cx, config);
    if (!typed)
        MS_TRY(read_type(cx, config, &import->model_type, &typed));
    else if (ms_hf_find(cx, config, PARTS, &part) && ms_json_is_object(part))
        import->root = part;
    if (!typed)
        return missing_type(cx, config);
    MS_TRY(import_model(cx, import, config, name));
    if (import->foreign)
        MS_TRY(note_own_layers(cx, import, config));
    *out = import->config.model;
    return MS_OK;
}
