/* Reads from Hugging Face configs what changes a model's values, not its shapes. */
#include "costmodel/model/model_hf_priv.h"

#include "base/utf8.h"

#include <math.h>
#include <string.h>

/* ---- rotary angles ---- */

static ms_status optional_number(ms_ctx *cx, ms_jval object, const char *key, double *out)
{
    ms_jval value;
    if (!ms_json_member(cx, object, key, &value) || ms_json_is_null(value))
        return MS_OK;
    return ms_json_number(cx, value, 0.0, 1e15, out);
}

static ms_status read_kind(ms_ctx *cx, ms_jval rope, const char **kind)
{
    ms_jval value;
    *kind = "default";
    if (!ms_json_member(cx, rope, "rope_type", &value) &&
        !ms_json_member(cx, rope, "type", &value))
        return MS_OK;
    return ms_json_text(cx, value, kind);
}

/* Kinds without values here (dynamic, longrope, mrope) become features by name. */
static ms_status set_kind(ms_ctx *cx, ms_model *model, const char *kind)
{
    static const char *const words[] = {"default", "linear", "llama3", "yarn", NULL};
    int known = ms_choice_find(kind, words);
    if (known < 0)
        ms_model_add_not_executed(
            cx, model, ms_arena_printf(cx->arena, "rotary scaling \"%s\"", kind));
    else
        model->rotary_scaling.kind = (ms_rotary_scaling_kind)known;
    return MS_OK;
}

/* Keys of "rope_scaling", and of "rope_parameters" by transformers 5. */
static ms_status read_scaling(ms_ctx *cx, ms_jval rope, ms_model *model)
{
    ms_rotary_scaling *s = &model->rotary_scaling;
    const struct {
        const char *key;
        double *to, fallback;
    } keys[] = {{"factor", &s->factor, 1.0},
                {"original_max_position_embeddings", &s->original_positions,
                 (double)model->max_positions},
                {"low_freq_factor", &s->low_frequency_factor, 0.0},
                {"high_freq_factor", &s->high_frequency_factor, 0.0},
                {"beta_fast", &s->beta_fast, 32.0},
                {"beta_slow", &s->beta_slow, 1.0},
                {"mscale", &s->mscale, 0.0},
                {"mscale_all_dim", &s->mscale_all_dim, 0.0},
                {"attention_factor", &s->attention_factor, 0.0}};
    const char *kind;
    ms_jval truncates;
    bool whole = true;
    MS_TRY(read_kind(cx, rope, &kind));
    *s = (ms_rotary_scaling){0};
    if (strcmp(kind, "default") == 0)
        return MS_OK;
    MS_TRY(set_kind(cx, model, kind));
    if (s->kind == MS_ROTARY_SCALING_NONE)
        return MS_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        *keys[i].to = keys[i].fallback;
        MS_TRY(optional_number(cx, rope, keys[i].key, keys[i].to));
    }
    if (ms_json_member(cx, rope, "truncate", &truncates))
        MS_TRY(ms_json_bool(cx, truncates, &whole));
    double beta = 0.0; /* Ministral 3 */
    MS_TRY(optional_number(cx, rope, "llama_4_scaling_beta", &beta));
    if (beta > 0.0)
        ms_model_add_not_executed(cx, model, "llama_4_scaling_beta");
    s->untruncated = !whole && s->kind == MS_ROTARY_SCALING_YARN;
    return MS_OK;
}

/* Gemma 3's "rope_parameters" by transformers 5 has an object for each kind of layer. */
static ms_status read_rope(ms_ctx *cx, ms_hf_import *import)
{
    ms_model *model = &import->config.model;
    ms_jval rope, part;
    if (ms_json_member(cx, import->root, "rope_scaling", &rope)) {
        model->rotary_scaling = (ms_rotary_scaling){0}; /* null, too: no scaling */
        if (ms_json_is_object(rope))
            MS_TRY(read_scaling(cx, rope, model));
    }
    if (!ms_json_member(cx, import->root, "rope_parameters", &rope) ||
        !ms_json_is_object(rope))
        return MS_OK;
    if (ms_json_member(cx, rope, "sliding_attention", &part))
        MS_TRY(optional_number(cx, part, "rope_theta", &model->rotary_local_base));
    if (ms_json_member(cx, rope, "full_attention", &part))
        rope = part;
    if (ms_json_member(cx, rope, "rope_theta", &part))
        MS_TRY(ms_json_number(cx, part, 1.0, 1e15, &model->rotary_base));
    double rotated = 1.0;
    MS_TRY(optional_number(cx, rope, "partial_rotary_factor", &rotated));
    if (import->config.rotary_frac > 0.0)
        import->config.rotary_frac = rotated;
    else if (rotated != 1.0)
        ms_model_add_not_executed(cx, model, "partial_rotary_factor");
    return read_scaling(cx, rope, model);
}

static void set_rotary_dim(ms_hf_config *config)
{
    ms_model *model = &config->model;
    double rotated = config->rotary_frac * (double)model->head_dim;
    if (config->rotary_frac > 0.0 && rotated < (double)model->head_dim)
        model->rotary_dim = (long)rotated;
}

/* ---- keys that the family does not read ---- */

/* Keys of Hugging Face configs that change values, with the number that changes nothing.
 * A family whose tables do not have such a key would leave its effect out. */
static const struct {
    const char *key;
    double neutral;
} value_keys[] = {
    {"attention_dropout", 0.0},
    {"attention_probs_dropout_prob", 0.0},
    {"hidden_dropout_prob", 0.0},
    {"apply_residual_connection_post_layernorm", 0.0},
    {"use_mrope", 0.0},
    {"hidden_dropout", 0.0},
    {"resid_pdrop", 0.0},
    {"embd_pdrop", 0.0},
    {"attn_pdrop", 0.0},
    {"dropout", 0.0},
    {"activation_dropout", 0.0},
    {"residual_dropout", 0.0},
    {"embedding_dropout", 0.0},
    {"partial_rotary_factor", 1.0},
    {"rotary_pct", 1.0},
    {"rope_interleave", 0.0},
    {"attn_logit_softcapping", 0.0},
    {"final_logit_softcapping", 0.0},
    {"query_pre_attn_scalar", 0.0},
    {"rope_local_base_freq", 0.0},
    {"embedding_multiplier", 1.0},
    {"residual_multiplier", 1.0},
    {"attention_multiplier", 0.0},
    {"logits_scaling", 1.0},
    {"logit_scale", 1.0},
    {"scale_emb", 1.0},
    {"scale_depth", 0.0},
    {"clip_qkv", 0.0},
    {"attn_config.clip_qkv", 0.0},
    {"attn_config.prefix_lm", 0.0},
    {"attn_config.softmax_scale", 0.0},
    {"scale_attn_by_inverse_layer_idx", 0.0},
    {"scale_attn_weights", 1.0},
    {"time_step_limit", 0.0},
    {"routed_scaling_factor", 1.0},
    {"n_group", 1.0},
    {"attention_chunk_size", 0.0},
    {"attn_temperature_tuning", 0.0},
    {"no_rope_layer_interval", 0.0},
    {"use_bidirectional_attention", 0.0},
    {"output_router_logits", 0.0},
    {"attn_output_gate", 0.0},
    {"num_nextn_predict_layers", 0.0},
    {"layerdrop", 0.0},
};

static bool reads_key(const ms_hf_family *family, const char *key)
{
    for (const ms_hf_key *const *table = family->keys; *table != NULL; table++)
        for (const ms_hf_key *k = *table; k->names != NULL; k++)
            if (ms_hf_has_name(k->names, key))
                return true;
    return false;
}

/* The number of a JSON value, true being 1; false if it has none. */
static bool number_of(ms_ctx *cx, ms_jval value, double *out)
{
    ms_ctx quiet = {.arena = cx->arena, .verbosity = -1};
    bool flag = false;
    if (ms_json_bool(&quiet, value, &flag) == MS_OK) {
        *out = flag;
        return true;
    }
    return ms_json_number(&quiet, value, -1e300, 1e300, out) == MS_OK;
}

/* Whether a value is null, `neutral`, or limits without an effect: [0, Infinity], whose
 * second element is no finite number. */
static bool is_neutral(ms_ctx *cx, ms_jval value, double neutral)
{
    double number = 0.0;
    if (ms_json_is_array(value) && ms_json_length(value) == 2)
        return number_of(cx, ms_json_element(cx, value, 0), &number) && number == 0.0 &&
               !number_of(cx, ms_json_element(cx, value, 1), &number);
    return ms_json_is_null(value) || (number_of(cx, value, &number) && number == neutral);
}

static void note_unread_keys(ms_ctx *cx, ms_hf_import *import, const ms_hf_family *family)
{
    for (size_t i = 0; i < sizeof value_keys / sizeof *value_keys; i++) {
        const char *key = value_keys[i].key;
        ms_jval value;
        if (reads_key(family, key) || !ms_hf_find(cx, import->root, key, &value) ||
            is_neutral(cx, value, value_keys[i].neutral))
            continue;
        ms_model_add_not_executed(cx, &import->config.model, key);
    }
}

/* ---- keys that nothing reads ---- */

/* Keys that the importer reads outside the families' tables, and keys that change neither
 * shapes nor values of a training step: of transformers' PretrainedConfig, of generation,
 * storage, initial values, tasks, and of losses that balance experts. */
static const char *const other_keys[] = {
    "model_type",
    "_name_or_path",
    "rope_scaling",
    "rope_parameters",
    "layer_types",
    "mlp_only_layers",
    "hybrid_override_pattern",
    "text_config",
    "architectures",
    "auto_map",
    "transformers_version",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "attn_implementation",
    "torch_dtype",
    "dtype",
    "quantization_config",
    "torchscript",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "is_decoder",
    "is_encoder_decoder",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "sep_token_id",
    "unk_token_id",
    "decoder_start_token_id",
    "tokenizer_class",
    "prefix",
    "use_cache",
    "cache_implementation",
    "gradient_checkpointing",
    "pretraining_tp",
    "ep_size",
    "no_rope_layers",
    "attention_types",
    "attention_layers",
    "layers_block_type",
    "attn_layer_indices",
    "attn_config",
    "ffn_config",
    "vision_config",
    "audio_config",
    "moe_layers",
    "mlp_layer_types",
    "time_step_rank",
    "mamba_hidden_act",
    "residual_in_fp32",
    "original_max_position_embeddings",
    "initial_context_length",
    "is_llama_config",
    "max_length",
    "attention_softmax_in_fp32",
    "scale_attention_softmax_in_fp32",
    "logits_to_keep",
    "z_loss_coefficient",
    "router_jitter_noise",
    "input_jitter_noise",
    "init_method",
    "for_llm_class",
    "num_logits_to_keep",
    "use_mamba_kernels",
    "initializer_range",
    "init_std",
    "initializer_factor",
    "rescale_prenorm_residual",
    "time_step_min",
    "time_step_max",
    "time_step_floor",
    "mamba_dt_init",
    "task_specific_params",
    "id2label",
    "label2id",
    "problem_type",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "aux_loss_alpha",
    "router_aux_loss_coef",
    "router_z_loss_coef",
    "seq_aux",
    "n_ctx",               /* GPT-2: n_positions again */
    "sliding_window_size", /* Gemma 2: sliding_window again */
};

static bool is_known_key(const ms_hf_family *family, const char *key)
{
    if (reads_key(family, key))
        return true;
    for (size_t i = 0; i < sizeof other_keys / sizeof *other_keys; i++)
        if (strcmp(other_keys[i], key) == 0)
            return true;
    for (size_t i = 0; i < sizeof value_keys / sizeof *value_keys; i++)
        if (strcmp(value_keys[i].key, key) == 0)
            return true;
    return false;
}

#define MOST_LISTED 16

/* Lists keys that are not known, unless they are null or false. */
static void list_unknown_keys(ms_ctx *cx, ms_hf_import *import,
                              const ms_hf_family *family)
{
    const char *text = "";
    int num = 0;
    for (int i = 0; i < ms_json_length(import->root); i++) {
        const char *key = "";
        double number = 0.0;
        ms_jval value = ms_json_entry(cx, import->root, i, &key);
        if (is_known_key(family, key) || ms_json_is_null(value) ||
            (number_of(cx, value, &number) && number == 0.0))
            continue;
        if (num++ < MOST_LISTED)
            text = ms_arena_printf(cx->arena, "%s%s%.*s", text, num > 1 ? ", " : "",
                                   ms_utf8_prefix(key, 64), key);
    }
    if (num > MOST_LISTED)
        text = ms_arena_printf(cx->arena, "%s and %d more", text, num - MOST_LISTED);
    import->config.model.unread_keys = num > 0 ? text : NULL;
}

ms_status ms_hf_read_values(ms_ctx *cx, ms_hf_import *import, const ms_hf_family *family)
{
    ms_model *model = &import->config.model;
    MS_TRY(read_rope(cx, import));
    set_rotary_dim(&import->config);
    if (import->config.unscaled_windows &&
        model->rotary_scaling.kind != MS_ROTARY_SCALING_NONE)
        model->rotary_local_base = model->rotary_base;
    if (import->config.scales_embedding)
        model->embedding_scale = sqrt((double)model->hidden);
    note_unread_keys(cx, import, family);
    list_unknown_keys(cx, import, family);
    return MS_OK;
}
