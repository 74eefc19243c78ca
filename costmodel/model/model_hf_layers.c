/* Kinds of the layers of Hugging Face configs: experts, windows, and layers of one block
 * each. */
#include "costmodel/model/model_hf_priv.h"

#include <string.h>

/* ---- lists of layers ---- */

/* Finds a list with one word for each layer; false if it is absent or null. */
static ms_status find_list(ms_ctx *cx, const ms_hf_import *import, const char *names,
                           ms_jval *list, bool *found)
{
    *found = ms_hf_find(cx, import->root, names, list) && !ms_json_is_null(*list);
    if (!*found)
        return MS_OK;
    long num_layers = import->config.model.num_layers;
    if (!ms_json_is_array(*list) ||
        (num_layers > 0 && ms_json_length(*list) != num_layers))
        return ms_json_fail(cx, *list, "\"%.*s\" must be an array of %ld words",
                            (int)strcspn(names, "|"), names, num_layers);
    return MS_OK;
}

/* ---- experts ---- */

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

/* Sets dense[] by lists that say which layers have experts: Llama 4's "moe_layers" of
 * their indices, or "mlp_layer_types". *found: whether there is one. */
static ms_status read_sparse_lists(ms_ctx *cx, const ms_hf_import *import,
                                   unsigned char *dense, bool *found)
{
    ms_jval list;
    long num_layers = import->config.model.num_layers;
    *found = ms_hf_find(cx, import->root, "moe_layers", &list) && ms_json_is_array(list);
    if (*found)
        memset(dense, 1, (size_t)num_layers);
    for (int i = 0; *found && i < ms_json_length(list); i++) {
        long layer = 0;
        MS_TRY(
            ms_json_integer(cx, ms_json_element(cx, list, i), 0, num_layers - 1, &layer));
        dense[layer] = 0;
    }
    if (*found)
        return MS_OK;
    MS_TRY(find_list(cx, import, "mlp_layer_types", &list, found));
    for (int i = 0; *found && i < ms_json_length(list); i++) {
        const char *word = "";
        ms_jval value = ms_json_element(cx, list, i);
        MS_TRY(ms_json_text(cx, value, &word));
        dense[i] = strcmp(word, "dense") == 0;
        if (!dense[i] && strcmp(word, "sparse") != 0)
            return ms_json_fail(cx, value, "\"%s\" must be dense or sparse", word);
    }
    return MS_OK;
}

static bool has_experts(const ms_hf_config *config, long layer_idx)
{
    if (layer_idx < config->first_k_dense)
        return false;
    if (config->last_sparse >= 0 && layer_idx > config->last_sparse)
        return false;
    if (config->decoder_sparse_step > 0 &&
        (layer_idx + 1) % config->decoder_sparse_step != 0)
        return false;
    return config->moe_layer_freq == 0 || layer_idx % config->moe_layer_freq == 0;
}

/* ---- windows ---- */

/* Sets windows[layer], in tokens (0: full attention), by three keys of `config`. */
static void windows_by_rule(const ms_hf_config *config, long *windows)
{
    for (long i = 0; i < config->model.num_layers; i++) {
        long from = config->first_is_full ? i : i + 1;
        bool full = config->sliding_period > 0 && from % config->sliding_period == 0;
        windows[i] = full || i < config->max_window_layers ? 0 : config->sliding_window;
    }
}

static ms_status window_of_type(ms_ctx *cx, ms_jval value, const ms_hf_import *import,
                                long *window)
{
    static const char *const full[] = {"full_attention", "global", NULL};
    static const char *const sliding[] = {"sliding_attention", "chunked_attention",
                                          "local", NULL};
    const char *type = "";
    MS_TRY(ms_json_text(cx, value, &type));
    *window = 0;
    if (ms_choice_find(type, full) >= 0)
        return MS_OK;
    if (ms_choice_find(type, sliding) < 0 && import->foreign)
        return MS_OK;
    if (ms_choice_find(type, sliding) < 0)
        return ms_json_fail(cx, value,
                            "layer type \"%s\" is not one of model_type \"%s\"", type,
                            import->model_type);
    if (import->config.sliding_window == 0)
        return ms_json_fail(cx, value, "\"%s\" without a \"sliding_window\"", type);
    *window = import->config.sliding_window;
    return MS_OK;
}

/* GPT-Neo's "attention_types": pairs of a list of types and how often it is repeated. */
static ms_status read_attention_types(ms_ctx *cx, const ms_hf_import *import,
                                      ms_jval pairs, long *windows)
{
    long layer = 0, num_layers = import->config.model.num_layers;
    int num_pairs = ms_json_is_array(pairs) ? ms_json_length(pairs) : 0;
    for (int i = 0; i < num_pairs; i++) {
        ms_jval pair = ms_json_element(cx, pairs, i);
        long repeats = 0;
        if (!ms_json_is_array(pair) || ms_json_length(pair) != 2)
            return ms_json_fail(cx, pair, "must be a list of types and a number");
        MS_TRY(
            ms_json_integer(cx, ms_json_element(cx, pair, 1), 1, num_layers, &repeats));
        ms_jval types = ms_json_element(cx, pair, 0);
        int num_types = ms_json_is_array(types) ? ms_json_length(types) : 0;
        for (long k = 0; k < repeats * num_types && layer < num_layers; k++)
            MS_TRY(window_of_type(cx, ms_json_element(cx, types, (int)(k % num_types)),
                                  import, &windows[layer++]));
    }
    if (layer != num_layers)
        return ms_json_fail(cx, pairs, "\"attention_types\" has %ld of %ld layers", layer,
                            num_layers);
    return MS_OK;
}

static ms_status read_windows(ms_ctx *cx, const ms_hf_import *import, long *windows)
{
    ms_jval types;
    bool found;
    windows_by_rule(&import->config, windows);
    if (ms_json_member(cx, import->root, "attention_types", &types) &&
        !ms_json_is_null(types))
        return read_attention_types(cx, import, types, windows);
    MS_TRY(find_list(cx, import, "layer_types|attention_layers", &types, &found));
    for (int i = 0; found && i < import->config.model.num_layers; i++)
        MS_TRY(window_of_type(cx, ms_json_element(cx, types, i), import, &windows[i]));
    return MS_OK;
}

/* ---- rotation ---- */

/* Whether a layer does not rotate queries and keys, by "no_rope_layers" (0 for such a
 * layer) or by its rules. */
static ms_status find_unrotated(ms_ctx *cx, const ms_hf_import *import,
                                const long *windows, bool *any)
{
    const ms_hf_config *config = &import->config;
    ms_jval list;
    *any =
        config->no_rope_period > 0 && config->no_rope_period <= config->model.num_layers;
    if (ms_json_member(cx, import->root, "no_rope_layers", &list) &&
        ms_json_is_array(list) && ms_json_length(list) > 0) {
        *any = false;
        for (int i = 0; i < ms_json_length(list); i++) {
            long rotates = 1;
            MS_TRY(ms_json_integer(cx, ms_json_element(cx, list, i), 0, 1, &rotates));
            *any = *any || rotates == 0;
        }
    }
    for (long i = 0; config->full_layers_do_not_rotate && config->sliding_window > 0 &&
                     i < config->model.num_layers;
         i++)
        *any = *any || windows[i] == 0;
    return MS_OK;
}

static ms_status note_unrotated(ms_ctx *cx, ms_hf_import *import, const long *windows)
{
    bool any = false;
    MS_TRY(find_unrotated(cx, import, windows, &any));
    if (any)
        ms_model_add_not_executed(cx, &import->config.model, "layers without rotation");
    return MS_OK;
}

/* ---- layers of one block each ---- */

/* The letter of a block in "layers_block_type" or "layer_types". */
static ms_status letter_of_block(ms_ctx *cx, ms_jval value, char *letter)
{
    static const struct {
        const char *word;
        char letter;
    } blocks[] = {{"mamba", 'M'},     {"linear_attention", 'M'},
                  {"attention", '*'}, {"full_attention", '*'},
                  {"mlp", '-'},       {"moe", 'E'}};
    const char *word = "";
    MS_TRY(ms_json_text(cx, value, &word));
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        *letter = blocks[i].letter;
        if (strcmp(blocks[i].word, word) == 0)
            return MS_OK;
    }
    return ms_json_fail(cx, value,
                        "block \"%s\" is none of mamba, attention, mlp and moe", word);
}

/* Sets *text to the letters of a list of blocks; NULL without such a list. */
static ms_status read_blocks(ms_ctx *cx, const ms_hf_import *import, const char **text)
{
    ms_jval list;
    bool found;
    *text = NULL;
    MS_TRY(find_list(cx, import, "layers_block_type|layer_types", &list, &found));
    if (!found)
        return MS_OK;
    int length = ms_json_length(list);
    char *letters = MS_NEW_ARRAY(cx->arena, length + 1, char);
    for (int i = 0; i < length; i++)
        MS_TRY(letter_of_block(cx, ms_json_element(cx, list, i), &letters[i]));
    *text = letters;
    return MS_OK;
}

/* Bamba's "attn_layer_indices": those layers have attention, the others Mamba-2. */
static ms_status read_attention_indices(ms_ctx *cx, const ms_hf_import *import,
                                        const char **text)
{
    ms_jval list;
    long num_layers = import->config.model.num_layers;
    char *letters = MS_NEW_ARRAY(cx->arena, num_layers + 1, char);
    memset(letters, 'M', (size_t)num_layers);
    *text = letters;
    if (!ms_json_member(cx, import->root, "attn_layer_indices", &list) ||
        !ms_json_is_array(list))
        return MS_OK;
    for (int i = 0; i < ms_json_length(list); i++) {
        long layer = 0;
        MS_TRY(
            ms_json_integer(cx, ms_json_element(cx, list, i), 0, num_layers - 1, &layer));
        letters[layer] = '*';
    }
    return MS_OK;
}

/* Letters of a class whose layers are a mixer and an MLP: two for each layer. */
static ms_status pair_letters(ms_ctx *cx, ms_hf_import *import, const char **text)
{
    ms_model *model = &import->config.model;
    const char *mixers;
    MS_TRY(read_blocks(cx, import, &mixers));
    if (mixers == NULL && strcmp(import->model_type, "bamba") != 0)
        return ms_hf_missing_key(cx, import, "layer_types");
    if (mixers == NULL)
        MS_TRY(read_attention_indices(cx, import, &mixers));
    char *letters = MS_NEW_ARRAY(cx->arena, 2 * model->num_layers + 1, char);
    for (long i = 0; i < model->num_layers; i++) {
        letters[2 * i] = mixers[i];
        letters[2 * i + 1] = model->moe.num_experts > 0 ? 'E' : '-';
    }
    model->num_layers *= 2;
    *text = letters;
    return MS_OK;
}

/* Nemotron-H: its pattern, or its list of blocks; either gives the number of layers. */
static ms_status block_letters(ms_ctx *cx, ms_hf_import *import, ms_jval *where,
                               const char **text)
{
    if (ms_json_member(cx, import->root, "hybrid_override_pattern", where) &&
        !ms_json_is_null(*where))
        return ms_json_text(cx, *where, text);
    MS_TRY(read_blocks(cx, import, text));
    if (*text != NULL)
        return MS_OK;
    *text = "";
    return ms_hf_missing_key(cx, import,
                             "hybrid_override_pattern\" or \"layers_block_type");
}

static ms_status set_hybrid_layers(ms_ctx *cx, ms_hf_import *import)
{
    ms_model *model = &import->config.model;
    ms_jval where = import->root;
    const char *text = "";
    if (import->config.hybrid == MS_HF_BLOCK_LIST)
        MS_TRY(block_letters(cx, import, &where, &text));
    else if (import->config.hybrid == MS_HF_MIXER_AND_MLP)
        MS_TRY(pair_letters(cx, import, &text));
    else
        text = memset(MS_NEW_ARRAY(cx->arena, model->num_layers + 1, char), 'M',
                      (size_t)model->num_layers);
    if (model->num_layers == 0)
        model->num_layers = (long)strlen(text);
    if (model->num_layers < 1 || model->num_layers > MS_MAX_MODEL_LAYERS)
        return ms_json_fail(cx, import->root, "%ld layers, must be 1 to %d",
                            model->num_layers, MS_MAX_MODEL_LAYERS);
    ms_model_clear_layers(cx, model);
    return ms_model_set_hybrid(cx, where, text, model);
}

/* ---- all layers ---- */

/* Clears sizes that no layer uses, which configs give nevertheless. */
static void clear_unused(ms_model *model)
{
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
}

static ms_status set_full_layers(ms_ctx *cx, ms_hf_import *import)
{
    ms_model *model = &import->config.model;
    ms_model_clear_layers(cx, model);
    long *windows = MS_NEW_ARRAY(cx->arena, model->num_layers, long);
    unsigned char *dense = MS_NEW_ARRAY(cx->arena, model->num_layers, unsigned char);
    MS_TRY(read_windows(cx, import, windows));
    bool listed = false;
    if (model->moe.num_experts > 0) {
        MS_TRY(read_sparse_lists(cx, import, dense, &listed));
        MS_TRY(read_mlp_only(cx, import, dense));
    }
    for (long i = 0; i < model->num_layers; i++) {
        bool moe = model->moe.num_experts > 0 && !dense[i] &&
                   (listed || has_experts(&import->config, i));
        ms_model_set_layer(model, i,
                           (ms_layer_kind){.moe = moe, .window_tokens = windows[i]});
    }
    return note_unrotated(cx, import, windows);
}

ms_status ms_hf_set_layers(ms_ctx *cx, ms_hf_import *import)
{
    ms_model *model = &import->config.model;
    if (model->num_layers > MS_MAX_MODEL_LAYERS)
        return ms_json_fail(cx, import->root, "%ld layers, must be at most %d",
                            model->num_layers, MS_MAX_MODEL_LAYERS);
    MS_TRY(import->config.hybrid == MS_HF_NOT_HYBRID ? set_full_layers(cx, import)
                                                     : set_hybrid_layers(cx, import));
    clear_unused(model);
    return MS_OK;
}
