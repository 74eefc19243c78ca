/* Importing Hugging Face configs. The files in tests/data/hf/ hold the facts of the
 * public config.json of each model; totals are those of the published checkpoints. */
#include "costmodel/model/model.h"
#include "tests/test.h"
#include "tests/unit/model_text.h"

static const ms_model *load(const char *name)
{
    ms_ctx *cx = test_cx();
    const ms_model *model = NULL;
    const char *path = ms_arena_printf(cx->arena, "tests/data/hf/%s/config.json", name);
    ASSERT_OK(ms_model_load(cx, path, &model), cx);
    return model;
}

static void totals_are_those_of_the_checkpoints(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double total;
    } known[] = {
        {"llama-2-7b", 6738415616.0},
        {"llama-3.1-8b", 8030261248.0},
        {"llama-3.1-70b", 70553706496.0},
        {"llama-3.1-405b", 405853388800.0},
        {"llama-3.2-1b", 1235814400.0},
        {"mistral-7b", 7241732096.0},
        {"mixtral-8x7b", 46702792704.0},
        {"qwen2.5-7b", 7615616512.0},
        {"qwen1.5-moe-a2.7b", 14315784192.0},
        {"qwen3-8b", 8190735360.0},
        {"qwen3-30b-a3b", 30532122624.0},
        {"qwen3-235b-a22b", 235093634560.0},
        {"deepseek-v2-lite", 15706484224.0},
        {"deepseek-v3", 671026419200.0},
        {"gemma-2-9b", 9241705984.0},
        {"gemma-3-1b", 999885952.0},
        {"gemma-3-4b", 3880263168.0},
        {"gpt2", 124439808.0},
        {"gpt2-xl", 1557611200.0},
        {"gpt-neox-20b", 20554567680.0},
        {"opt-125m", 125239296.0},
        {"falcon-7b", 6921720704.0},
        {"falcon-40b", 41303293952.0},
        {"nemotron-3-nano-30b-a3b", 31577940288.0},
        {"nemotron-h-8b", 8100852736.0},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        double total = ms_model_params(load(known[i].name)).total;
        if (fabs(total - known[i].total) > 0.0)
            fail_msg("%s: got %.0f, want %.0f", known[i].name, total, known[i].total);
    }
}

static void assert_same_shapes(const ms_model *got, const ms_model *want)
{
    ASSERT_TEXT(got->family, want->family);
    ASSERT_INT(got->num_layers, want->num_layers);
    ASSERT_INT(got->hidden, want->hidden);
    ASSERT_INT(got->num_heads, want->num_heads);
    ASSERT_INT(got->num_kv_heads, want->num_kv_heads);
    ASSERT_INT(got->head_dim, want->head_dim);
    ASSERT_INT(got->value_head_dim, want->value_head_dim);
    ASSERT_INT(got->ffn_hidden, want->ffn_hidden);
    ASSERT_INT(got->vocab, want->vocab);
    ASSERT_INT(got->max_positions, want->max_positions);
    ASSERT_INT(got->norm, want->norm);
    ASSERT_INT(got->norms_per_layer, want->norms_per_layer);
    ASSERT_INT(got->final_norm, want->final_norm);
    ASSERT_INT(got->activation, want->activation);
    ASSERT_INT(got->position, want->position);
    ASSERT_INT(got->qkv_bias, want->qkv_bias);
    ASSERT_INT(got->attention_out_bias, want->attention_out_bias);
    ASSERT_INT(got->mlp_bias, want->mlp_bias);
    ASSERT_INT(got->parallel_block, want->parallel_block);
    ASSERT_INT(got->post_norms, want->post_norms);
    ASSERT_INT(got->qk_norm, want->qk_norm);
    ASSERT_INT(got->dropout, want->dropout);
    ASSERT_NEAR(got->rotary_base, want->rotary_base, 0.0);
    ASSERT_NEAR(got->norm_epsilon, want->norm_epsilon, 0.0);
    ASSERT_INT(got->gelu_tanh, want->gelu_tanh);
    ASSERT_INT(got->moe.router, want->moe.router);
    ASSERT_INT(got->moe.router_bias, want->moe.router_bias);
    ASSERT_INT(got->moe.norm_topk, want->moe.norm_topk);
    ASSERT_INT(got->moe.shared_ffn_hidden, want->moe.shared_ffn_hidden);
    ASSERT_INT(got->embedding_norm, want->embedding_norm);
    ASSERT_INT(got->norm_bias, want->norm_bias);
    ASSERT_INT(got->no_pre_norms, want->no_pre_norms);
    ASSERT_INT(got->qk_norm_whole, want->qk_norm_whole);
    ASSERT_INT(got->attention_sinks, want->attention_sinks);
    ASSERT_INT(got->head_bias, want->head_bias);
    ASSERT_INT(got->tied_embeddings, want->tied_embeddings);
    ASSERT_INT(got->moe.logit_bias, want->moe.logit_bias);
    ASSERT_INT(got->moe.expert_bias, want->moe.expert_bias);
    ASSERT_INT(got->num_kinds, want->num_kinds);
    for (int k = 0; k < want->num_kinds; k++) {
        ASSERT_INT(got->kinds[k].moe, want->kinds[k].moe);
        ASSERT_INT(got->kinds[k].window_tokens, want->kinds[k].window_tokens);
    }
    assert_memory_equal(got->kind_of_layer, want->kind_of_layer,
                        (size_t)want->num_layers);
}

static void assert_same_values(const ms_model *got, const ms_model *want)
{
    const ms_rotary_scaling *x = &got->rotary_scaling, *y = &want->rotary_scaling;
    ASSERT_INT(got->norm_plus_one, want->norm_plus_one);
    ASSERT_NEAR(got->embedding_scale, want->embedding_scale, 0.0);
    ASSERT_NEAR(got->query_pre_attn_scalar, want->query_pre_attn_scalar, 0.0);
    ASSERT_NEAR(got->attention_softcap, want->attention_softcap, 0.0);
    ASSERT_NEAR(got->logit_softcap, want->logit_softcap, 0.0);
    ASSERT_INT(got->position_offset, want->position_offset);
    ASSERT_INT(got->rotary_dim, want->rotary_dim);
    ASSERT_INT(got->rotary_interleaved, want->rotary_interleaved);
    ASSERT_NEAR(got->rotary_local_base, want->rotary_local_base, 0.0);
    ASSERT_INT(x->kind, y->kind);
    ASSERT_NEAR(x->factor, y->factor, 0.0);
    ASSERT_NEAR(x->low_frequency_factor, y->low_frequency_factor, 0.0);
    ASSERT_NEAR(x->high_frequency_factor, y->high_frequency_factor, 0.0);
    if (y->original_positions > 0.0)
        ASSERT_NEAR(x->original_positions, y->original_positions, 0.0);
    ASSERT_NEAR(x->mscale, y->mscale, 0.0);
    ASSERT_NEAR(x->mscale_all_dim, y->mscale_all_dim, 0.0);
    ASSERT_NEAR(got->moe.routed_scaling, want->moe.routed_scaling, 0.0);
    ASSERT_INT(got->moe.num_groups > 1 ? got->moe.top_groups : 0, want->moe.top_groups);
    ASSERT_NEAR(x->beta_fast,
                y->kind == MS_ROTARY_SCALING_YARN ? y->beta_fast : x->beta_fast, 0.0);
    ASSERT_INT(x->untruncated, y->untruncated);
    ASSERT_NEAR(got->swiglu_limit, want->swiglu_limit, 0.0);
    ASSERT_NEAR(got->logit_scale, want->logit_scale, 0.0);
    if (want->hidden_dropout > 0.0) { /* GPT-2's file says only that there is dropout */
        ASSERT_NEAR(got->attention_dropout, want->attention_dropout, 0.0);
        ASSERT_NEAR(got->hidden_dropout, want->hidden_dropout, 0.0);
        ASSERT_NEAR(got->embedding_dropout, want->embedding_dropout, 0.0);
    }
    ASSERT_INT(got->not_executed == NULL, want->not_executed == NULL);
    for (int i = 0; want->not_executed != NULL && want->not_executed[i] != NULL; i++)
        ASSERT_TEXT(got->not_executed[i], want->not_executed[i]);
}

static void an_import_equals_the_model_file_of_that_name(void **state)
{
    (void)state;
    static const char *const names[] = {
        "llama-2-7b",       "llama-3.1-8b",  "llama-3.1-70b", "llama-3.1-405b",
        "llama-3.2-1b",     "mistral-7b",    "mixtral-8x7b",  "qwen2.5-7b",
        "qwen3-8b",         "qwen3-30b-a3b", "deepseek-v3",   "gemma-2-9b",
        "deepseek-v2-lite", "gpt2",          "gpt2-xl",       "gpt-neox-20b",
        "opt-125m",         "falcon-7b",     "falcon-40b",    "qwen3-235b-a22b",
        "gpt-oss-20b",      "kimi-k2",       "gemma-2b",      "phi-4-mini",
        "stablelm-2-1.6b",  "starcoder2-7b", "olmo-2-13b",    "gpt-j-6b",
        "santacoder-1.1b",  "smollm2-360m",  "glm-4.5-air",   "olmoe-1b-7b",
        "smollm3-3b",       "nemotron-h-56b"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *want = NULL;
        ASSERT_OK(ms_model_load(cx, names[i], &want), cx);
        assert_same_shapes(load(names[i]), want);
        assert_same_values(load(names[i]), want);
    }
}

static void gemma_3_has_two_rotary_bases(void **state)
{
    (void)state;
    const ms_model *model = load("gemma-3-4b");
    const ms_model *want = NULL;
    ASSERT_OK(ms_model_load(test_cx(), "gemma-3-4b", &want), test_cx());
    ASSERT_NEAR(model->rotary_base, 1e6, 0.0);
    ASSERT_NEAR(model->rotary_local_base, 1e4, 0.0);
    assert_same_values(model, want);
}

static void gemma_3_has_one_full_layer_in_six(void **state)
{
    (void)state;
    const ms_model *model = load("gemma-3-4b");
    for (int i = 0; i < 34; i++)
        ASSERT_INT(model->kinds[model->kind_of_layer[i]].window_tokens,
                   i % 6 == 5 ? 0 : 1024);
    assert_true(model->qk_norm);
    ASSERT_TEXT(model->family, "gemma3");
}

static void the_name_is_that_of_the_config_or_its_folder(void **state)
{
    (void)state;
    ASSERT_TEXT(load("llama-2-7b")->name, "meta-llama/Llama-2-7b-hf");
    ASSERT_TEXT(load("qwen3-8b")->name, "qwen3-8b");
    assert_non_null(
        strstr(load("qwen3-8b")->source, "tests/data/hf/qwen3-8b/config.json"));
}

/* ---- configs as text ---- */

static ms_status import(ms_ctx *cx, const char *text, ms_model *out)
{
    ms_jdoc *doc = NULL;
    ms_jval root;
    MS_TRY(ms_json_parse(cx, "config.json", text, strlen(text), &doc, &root));
    ms_status status = ms_model_import_hf(cx, root, "m", NULL, out);
    ms_json_close(doc);
    return status;
}

static void expect_error(const char *text, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_model model;
    ASSERT_INT(import(cx, text, &model), MS_EINPUT);
    expect_message(cx, message);
}

#define SIZES                                                                            \
    "\"hidden_size\": 64, \"num_hidden_layers\": 4, \"vocab_size\": 100, "               \
    "\"intermediate_size\": 128, \"max_position_embeddings\": 32"
#define LLAMA "{\"model_type\": \"llama\", " SIZES ", "
#define QWEN2                                                                            \
    "{\"model_type\": \"qwen2\", " SIZES                                                 \
    ", \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
#define QWEN3_MOE                                                                        \
    "{\"model_type\": \"qwen3_moe\", " SIZES ", \"num_attention_heads\": 4, "            \
    "\"num_key_value_heads\": 2, \"moe_intermediate_size\": 32, \"num_experts_per_tok\": 2, "

static void an_unknown_type_names_what_was_found(void **state)
{
    (void)state;
    expect_error(
        "{\"model_type\": \"rwkv\", \"d_state\": 16, \"d_conv\": 4}",
        "unknown model_type \"rwkv\" in a config with the keys model_type, d_state, d_conv");
    expect_error("{\"model_type\": \"rwkv\"}", "is one: llama, mistral");
}

static void a_missing_key_names_what_was_found(void **state)
{
    (void)state;
    expect_error("{\"model_type\": \"dots1\", \"hidden_size\": 64}",
                 "missing \"num_experts\", which model_type \"dots1\" needs");
    expect_error("{\"model_type\": \"dots1\", \"hidden_size\": 64}",
                 "keys found: model_type, hidden_size");
    expect_error("{\"hidden_size\": 64}", "missing \"model_type\"");
    expect_error("[1, 2]", "missing \"model_type\"");
}

static void all_errors_of_a_config_are_reported(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model;
    ASSERT_INT(import(cx,
                      "{\"model_type\": \"dots1\", \"vocab_size\": \"x\", "
                      "\"hidden_size\": null}",
                      &model),
               MS_EINPUT);
    ASSERT_INT(cx->num_errors, 5);
}

static void wrong_types_of_used_keys_are_errors(void **state)
{
    (void)state;
    expect_error(LLAMA "\"num_attention_heads\": \"4\"}", "at /num_attention_heads");
    expect_error(LLAMA "\"num_attention_heads\": 4, \"tie_word_embeddings\": 1}",
                 "at /tie_word_embeddings");
    expect_error(LLAMA "\"num_attention_heads\": 4, \"hidden_act\": 7}",
                 "at /hidden_act");
    expect_error(LLAMA "\"num_attention_heads\": null}", "at /num_attention_heads");
    expect_error("{\"model_type\": 4}", "at /model_type");
    expect_error(QWEN2 "\"layer_types\": \"full_attention\"}", "at /layer_types");
    expect_error(QWEN3_MOE "\"num_experts\": 4, \"mlp_only_layers\": [9]}",
                 "/mlp_only_layers/0");
}

static void sizes_out_of_range_are_errors(void **state)
{
    (void)state;
    expect_error(LLAMA "\"num_attention_heads\": 0}", "at /num_attention_heads");
    expect_error(LLAMA "\"num_attention_heads\": -4}", "at /num_attention_heads");
    expect_error(LLAMA "\"num_attention_heads\": 1e18}", "at /num_attention_heads");
    expect_error(LLAMA "\"num_attention_heads\": 5}", "64 is not divisible by 5 heads");
    expect_error(LLAMA "\"num_attention_heads\": 4, \"num_key_value_heads\": 3}",
                 "4 heads are not divisible by 3 kv heads");
    expect_error(
        "{\"model_type\": \"gpt2\", \"n_embd\": 8, \"n_layer\": 1000000, \"n_head\": 2, "
        "\"n_positions\": 8, \"vocab_size\": 8}",
        "1000000 layers");
}

static void unknown_activations_are_errors(void **state)
{
    (void)state;
    expect_error(LLAMA "\"num_attention_heads\": 4, \"hidden_act\": \"tanh\"}",
                 "activation \"tanh\" is not known");
}

static void projected_embeddings_are_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = NULL;
    ASSERT_INT(ms_model_load(cx, "tests/data/hf/opt-350m/config.json", &model),
               MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "word_embed_proj_dim 512"));
}

static void irrelevant_keys_are_ignored(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model;
    ASSERT_OK(import(cx,
                     LLAMA "\"num_attention_heads\": 4, \"rope_scaling\": {\"a\": [1]}, "
                           "\"eos_token_id\": [1, 2], \"anything\": null}",
                     &model),
              cx);
    ASSERT_INT(model.head_dim, 16);
    ASSERT_INT(model.num_kv_heads, 4);
}

static void constants_follow_the_keys_or_the_class(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model;
    ASSERT_OK(import(cx, LLAMA "\"num_attention_heads\": 4}", &model), cx);
    ASSERT_NEAR(model.rotary_base, 10000.0, 0.0);
    ASSERT_NEAR(model.norm_epsilon, 1e-6, 0.0);
    ASSERT_OK(import(cx,
                     LLAMA "\"num_attention_heads\": 4, \"rms_norm_eps\": 3e-5, "
                           "\"rope_parameters\": {\"rope_theta\": 500000.0}}",
                     &model),
              cx);
    ASSERT_NEAR(model.rotary_base, 500000.0, 0.0);
    ASSERT_NEAR(model.norm_epsilon, 3e-5, 0.0);
    expect_error(LLAMA "\"num_attention_heads\": 4, \"rope_theta\": -1}",
                 "at /rope_theta");
    assert_true(load("gpt2")->gelu_tanh);
    assert_false(load("falcon-7b")->gelu_tanh);
}

static void biases_of_llama_follow_the_keys(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model;
    ms_model biased;
    ASSERT_OK(import(cx, LLAMA "\"num_attention_heads\": 4, \"num_key_value_heads\": 2}",
                     &model),
              cx);
    ASSERT_OK(import(cx,
                     LLAMA "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
                           "\"attention_bias\": true, \"mlp_bias\": true}",
                     &biased),
              cx);
    double more = ms_model_params(&biased).total - ms_model_params(&model).total;
    ASSERT_NEAR(more, 4.0 * (64.0 + 32.0 + 32.0 + 64.0 + 128.0 + 128.0 + 64.0), 0.0);
}

static void windows_of_qwen_start_at_max_window_layers(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model;
    ASSERT_OK(import(cx,
                     QWEN2 "\"use_sliding_window\": true, \"sliding_window\": 8, "
                           "\"max_window_layers\": 3}",
                     &model),
              cx);
    ASSERT_INT(model.kinds[model.kind_of_layer[2]].window_tokens, 0);
    ASSERT_INT(model.kinds[model.kind_of_layer[3]].window_tokens, 8);
    ASSERT_OK(
        import(cx,
               QWEN2
               "\"use_sliding_window\": true, \"sliding_window\": 8, \"layer_types\": "
               "[\"sliding_attention\", \"full_attention\", \"full_attention\", "
               "\"full_attention\"]}",
               &model),
        cx);
    ASSERT_INT(model.kinds[model.kind_of_layer[0]].window_tokens, 8);
    ASSERT_INT(model.kinds[model.kind_of_layer[3]].window_tokens, 0);
}

static void experts_follow_step_list_and_alias(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model;
    ASSERT_OK(import(cx,
                     QWEN3_MOE "\"num_local_experts\": 4, \"decoder_sparse_step\": 2, "
                               "\"mlp_only_layers\": [3]}",
                     &model),
              cx);
    for (int i = 0; i < 4; i++)
        ASSERT_INT(model.kinds[model.kind_of_layer[i]].moe, i == 1);
    ASSERT_INT(model.moe.num_experts, 4);
    ASSERT_INT(model.ffn_hidden, 128);
}

/* A small Llama with more keys. */
static void import_llama_with(ms_ctx *cx, const char *keys, ms_model *out)
{
    const char *text = ms_arena_printf(
        cx->arena,
        "{\"model_type\": \"llama\", \"hidden_size\": 16, \"num_hidden_layers\": 1, "
        "\"num_attention_heads\": 4, \"vocab_size\": 32, "
        "\"max_position_embeddings\": 16, \"intermediate_size\": 24, %s}",
        keys);
    ASSERT_OK(import(cx, text, out), cx);
}

/* Keys that a family's tables lack are features by name, unless they change nothing. */
static void keys_that_are_not_read_are_not_dropped(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *name;
    } cases[] = {
        {"\"hidden_dropout\": 0.1", "hidden_dropout"},
        {"\"hidden_dropout\": 0.0", NULL},
        {"\"logit_scale\": null", NULL},
        {"\"residual_multiplier\": 0.22", "residual_multiplier"},
        {"\"residual_multiplier\": 1.0", NULL},
        {"\"partial_rotary_factor\": 0.5", "partial_rotary_factor"},
        {"\"use_bidirectional_attention\": true", "use_bidirectional_attention"},
        {"\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 4.0}",
         "rotary scaling \"dynamic\""},
        {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4.0}", NULL},
        {"\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 5000.0, "
         "\"partial_rotary_factor\": 0.5}",
         "partial_rotary_factor"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_model model;
        import_llama_with(cx, cases[i].keys, &model);
        if (cases[i].name == NULL) {
            assert_null(model.not_executed);
            continue;
        }
        assert_non_null(model.not_executed);
        ASSERT_TEXT(model.not_executed[0], cases[i].name);
        assert_null(model.not_executed[1]);
    }
}

/* Keys that nothing reads are listed, unless they are harmless, null or false. */
static void unknown_keys_are_listed(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *listed;
    } cases[] = {
        {"\"torch_dtype\": \"bfloat16\", \"use_cache\": true, \"mamba\": null, "
         "\"wide\": false",
         NULL},
        {"\"mup_scale\": 2.5, \"use_cache\": true, \"memory_layers\": [1, 2]",
         "mup_scale, memory_layers"},
        {"\"residual_multiplier\": 0.2", NULL}, /* a feature that is refused by name */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_model model;
        import_llama_with(cx, cases[i].keys, &model);
        if (cases[i].listed == NULL)
            assert_null(model.unread_keys);
        else
            ASSERT_TEXT(model.unread_keys, cases[i].listed);
    }
}

/* A Falcon config with the names of the older model class, key-value heads for each
 * head, and sequential blocks with two norms and biases. */
static void falcon_without_parallel_attention(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model;
    ASSERT_OK(
        import(
            cx,
            "{\"model_type\": \"falcon\", \"n_embed\": 64, \"n_layer\": 2, \"n_head\": 4, "
            "\"vocab_size\": 100, \"multi_query\": false, \"parallel_attn\": false, "
            "\"bias\": true, \"alibi\": true}",
            &model),
        cx);
    ASSERT_INT(model.num_kv_heads, 4);
    ASSERT_INT(model.norms_per_layer, 2);
    ASSERT_INT(model.position, MS_POSITION_ALIBI);
    /* a GPT-2 layer has 12 h^2 + 13 h parameters */
    ASSERT_NEAR(ms_model_params(&model).total,
                6400.0 + 2.0 * (12.0 * 4096.0 + 13.0 * 64.0) + 128.0, 0.0);
}

static void a_control_character_in_the_name_is_refused(void **state)
{
    (void)state;
    expect_error(LLAMA "\"num_attention_heads\": 4, \"_name_or_path\": \"a\\u001b[2J\"}",
                 "control characters");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_those_of_the_checkpoints),
        cmocka_unit_test(an_import_equals_the_model_file_of_that_name),
        cmocka_unit_test(gemma_3_has_one_full_layer_in_six),
        cmocka_unit_test(gemma_3_has_two_rotary_bases),
        cmocka_unit_test(keys_that_are_not_read_are_not_dropped),
        cmocka_unit_test(the_name_is_that_of_the_config_or_its_folder),
        cmocka_unit_test(an_unknown_type_names_what_was_found),
        cmocka_unit_test(a_missing_key_names_what_was_found),
        cmocka_unit_test(all_errors_of_a_config_are_reported),
        cmocka_unit_test(wrong_types_of_used_keys_are_errors),
        cmocka_unit_test(sizes_out_of_range_are_errors),
        cmocka_unit_test(unknown_activations_are_errors),
        cmocka_unit_test(projected_embeddings_are_refused),
        cmocka_unit_test(irrelevant_keys_are_ignored),
        cmocka_unit_test(constants_follow_the_keys_or_the_class),
        cmocka_unit_test(biases_of_llama_follow_the_keys),
        cmocka_unit_test(windows_of_qwen_start_at_max_window_layers),
        cmocka_unit_test(experts_follow_step_list_and_alias),
        cmocka_unit_test(unknown_keys_are_listed),
        cmocka_unit_test(falcon_without_parallel_attention),
        cmocka_unit_test(a_control_character_in_the_name_is_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
