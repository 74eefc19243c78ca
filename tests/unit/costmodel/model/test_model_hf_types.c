/* All model types of Hugging Face configs: exact parameters of released files and of the
 * classes at their defaults, types that are refused, and how types are found. */
#include "costmodel/model/model.h"

#include "base/csv.h"
#include "tests/test.h"
#include "tests/unit/model_text.h"

#define MAX_ROWS 100

static ms_status import_as(ms_ctx *cx, const char *text, const char *model_type,
                           ms_model *out)
{
    ms_jdoc *doc = NULL;
    ms_jval root;
    MS_TRY(ms_json_parse_python(cx, "config.json", text, strlen(text), &doc, &root));
    ms_status status = ms_model_import_hf(cx, root, "m", model_type, out);
    ms_json_close(doc);
    return status;
}

static ms_model import(const char *text)
{
    ms_ctx *cx = test_cx();
    ms_model model = {0};
    ASSERT_OK(import_as(cx, text, NULL, &model), cx);
    return model;
}

static void expect_error(const char *text, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_model model;
    ASSERT_INT(import_as(cx, text, NULL, &model), MS_EINPUT);
    expect_message(cx, message);
}

/* Rows of a CSV file after its header. */
static int load_rows(ms_ctx *cx, const char *path, ms_csv_row *rows)
{
    ms_csv csv;
    int num_rows = 0;
    ASSERT_OK(ms_csv_load(cx, path, &csv), cx);
    assert_true(ms_csv_next(cx->arena, &csv, &rows[0]));
    while (num_rows < MAX_ROWS && ms_csv_next(cx->arena, &csv, &rows[num_rows]))
        num_rows++;
    return num_rows;
}

static void expect_counts(const char *name, const ms_model *model, const char *total,
                          const char *active)
{
    ms_param_counts got = ms_model_params(model);
    if (fabs(got.total - atof(total)) > 0.0 || fabs(got.active - atof(active)) > 0.0)
        fail_msg("%s: got %.0f (%.0f active), want %s (%s)", name, got.total, got.active,
                 total, active);
}

/* Counts of released files: the tensors of the classes, built with shapes alone. */
static void released_files_have_the_parameters_of_their_classes(void **state)
{
    (void)state;
    static ms_csv_row rows[MAX_ROWS];
    int num_read = 0, num_rows = load_rows(test_cx(), "tests/data/hf/expected.csv", rows);
    for (int i = 0; i < num_rows; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = NULL;
        const char *const *cells = rows[i].cells;
        const char *path =
            ms_arena_printf(cx->arena, "tests/data/hf/%s/config.json", cells[0]);
        if (cells[3][0] != '\0') {
            ASSERT_INT(ms_model_load(cx, path, &model), MS_EINPUT);
            expect_message(cx, cells[3]);
            expect_message(cx, "--as");
            continue;
        }
        ASSERT_OK(ms_model_load(cx, path, &model), cx);
        expect_counts(cells[0], model, cells[1], cells[2]);
        num_read++;
    }
    ASSERT_INT(num_rows, 30);
    ASSERT_INT(num_read, 25);
}

/* tests/oracle/hf_counts.py sums the shapes. */
static void classes_at_their_defaults_have_the_sum_of_their_shapes(void **state)
{
    (void)state;
    static ms_csv_row rows[MAX_ROWS];
    int num_rows = load_rows(test_cx(), "tests/data/hf/defaults.csv", rows);
    for (int i = 0; i < num_rows; i++) {
        const char *const *cells = rows[i].cells;
        ms_model model = import(cells[3]);
        expect_counts(cells[0], &model, cells[1], cells[2]);
    }
    ASSERT_INT(num_rows, 68);
}

static void refused_types_name_the_layer_and_a_way_out(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"qwen3_next", "gated delta net", "--as qwen3_moe"},
        {"qwen3_5_text", "gated delta net", "--as qwen3 "},
        {"gemma3n_text", "Laurel", "--as gemma3_text"},
        {"mamba", "Mamba-1", "--as mamba2"},
        {"minimax", "lightning attention", "--as mixtral"},
        {"lfm2_moe", "short convolution", "--as qwen3_moe"},
        {"falcon_h1", "side by side", "--as bamba"},
        {"deepseek_v32", "indexer", "--as deepseek_v3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text =
            ms_arena_printf(test_cx()->arena, "{\"model_type\": \"%s\"}", cases[i][0]);
        expect_error(text, cases[i][1]);
        expect_error(text, cases[i][2]);
    }
}

static void parts_of_classes_that_no_model_has_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"model_type\": \"mpt\", \"no_bias\": false}", "no_bias false"},
        {"{\"model_type\": \"mpt\", \"attn_config\": {\"qk_ln\": true}}",
         "attn_config.qk_ln true"},
        {"{\"model_type\": \"mpt\", \"attn_config\": {\"alibi\": false}}",
         "attn_config.alibi false"},
        {"{\"model_type\": \"phi\", \"qk_layernorm\": true}", "qk_layernorm true"},
        {"{\"model_type\": \"mamba2\", \"use_bias\": true}", "use_bias true"},
        {"{\"model_type\": \"mamba2\", \"use_conv_bias\": false}", "use_conv_bias false"},
        {"{\"model_type\": \"mamba2\", \"num_heads\": 100}",
         "100 Mamba-2 heads of 64 are not 2 x 4096 channels"},
        {"{\"model_type\": \"nemotron_h\"}", "missing \"hybrid_override_pattern\""},
        {"{\"model_type\": \"nemotron_h\", \"hybrid_override_pattern\": \"ME\", "
         "\"moe_latent_size\": 64}",
         "moe_latent_size"},
        {"{\"model_type\": \"granitemoehybrid\"}", "missing \"layer_types\""},
        {"{\"model_type\": \"dots1\"}", "n_routed_experts"},
        {"{\"model_type\": \"deepseek_v2\"}", "missing \"num_experts_per_tok\""},
        {"{\"model_type\": \"qwen3_omni_moe\", \"thinker_config\": {\"text_config\": {}}}",
         "missing \"hidden_size\""},
        {"{\"model_type\": \"exaone4\", \"sliding_window_pattern\": \"LGLG\"}",
         "such as \"LLLG\""},
        {"{\"model_type\": \"llama\", \"layer_types\": [\"linear_attention\"], "
         "\"num_hidden_layers\": 1}",
         "layer type \"linear_attention\" is not one of model_type \"llama\""},
        {"{\"model_type\": \"glm4_moe\", \"num_hidden_layers\": 1, \"head_dim\": 128, "
         "\"mlp_layer_types\": [\"wet\"]}",
         "\"wet\" must be dense or sparse"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_error(cases[i][0], cases[i][1]);
}

static void sizes_under_two_names_must_agree(void **state)
{
    (void)state;
    expect_error("{\"model_type\": \"gpt2\", \"n_embd\": 96, \"hidden_size\": 48}",
                 "96, but 48 under another of its names, hidden_size|n_embd");
    ASSERT_INT(
        import("{\"model_type\": \"gpt2\", \"n_embd\": 96, \"d_model\": 96}").hidden, 96);
    ASSERT_INT(import("{\"model_type\": \"bloom\", \"n_embed\": 96}").hidden, 96);
    ASSERT_INT(import("{\"model_type\": \"gpt_neo\", \"num_layers\": 3}").num_layers, 3);
}

static void null_is_not_absent(void **state)
{
    (void)state;
    ASSERT_INT(import("{\"model_type\": \"mixtral\"}").num_kv_heads, 8);
    ASSERT_INT(import("{\"model_type\": \"mixtral\", \"num_key_value_heads\": null}")
                   .num_kv_heads,
               32);
    ASSERT_INT(import("{\"model_type\": \"deepseek_v3\"}").mla.q_lora_rank, 1536);
    ASSERT_INT(import("{\"model_type\": \"deepseek_v3\", \"q_lora_rank\": null}")
                   .mla.q_lora_rank,
               0);
    ASSERT_INT(import("{\"model_type\": \"mistral\"}").kinds[0].window_tokens, 4096);
    ASSERT_INT(import("{\"model_type\": \"mistral\", \"sliding_window\": null}")
                   .kinds[0]
                   .window_tokens,
               0);
    ASSERT_INT(import("{\"model_type\": \"qwen3_moe\"}").head_dim, 2048 / 32);
    ASSERT_INT(import("{\"model_type\": \"gpt2\", \"n_inner\": null}").ffn_hidden, 3072);
}

static void lists_of_equal_sizes_are_sizes(void **state)
{
    (void)state;
    ms_model model =
        import("{\"model_type\": \"hunyuan_v1_moe\", \"num_experts\": [4, 4], "
               "\"moe_topk\": [2, 2], \"num_shared_expert\": [1, 1], "
               "\"moe_intermediate_size\": [64, 64], \"num_hidden_layers\": 2}");
    ASSERT_INT(model.moe.num_experts, 4);
    ASSERT_INT(model.moe.top_k, 2);
    ASSERT_INT(model.moe.ffn_hidden, 64);
    ASSERT_INT(model.moe.shared_ffn_hidden, 64);
    expect_error("{\"model_type\": \"hunyuan_v1_moe\", \"moe_topk\": [2, 1]}",
                 "/moe_topk/1");
}

static void language_models_lie_in_parts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *family;
        long hidden;
    } cases[] = {
        {"{\"model_type\": \"llava\", \"text_config\": {\"hidden_size\": 64}}", "llava",
         64},
        {"{\"model_type\": \"llava\", \"text_config\": {\"model_type\": \"mistral\", "
         "\"num_key_value_heads\": null}}",
         "llava", 4096},
        {"{\"model_type\": \"mistral3\", \"text_config\": {\"model_type\": "
         "\"ministral3\", \"num_hidden_layers\": 2}}",
         "mistral3", 4096},
        {"{\"model_type\": \"kimi_vl\", \"text_config\": {\"hidden_size\": 512}}",
         "kimi_vl", 512},
        {"{\"model_type\": \"deepseek_vl_v2\", \"language_config\": "
         "{\"num_experts_per_tok\": 6}}",
         "deepseek_vl_v2", 4096},
        {"{\"model_type\": \"qwen2_5_vl\", \"hidden_size\": 1024, \"num_hidden_layers\": "
         "2, \"vision_config\": {\"hidden_size\": 7}}",
         "qwen2_5_vl", 1024},
        {"{\"model_type\": \"kimi_k2\"}", "deepseek_v3", 7168},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_model model = import(cases[i].text);
        ASSERT_TEXT(model.family, cases[i].family);
        ASSERT_INT(model.hidden, cases[i].hidden);
    }
}

/* Qwen3-VL: the outer key counts; Qwen2-VL: that of the text part. */
static void ties_are_those_of_the_right_part(void **state)
{
    (void)state;
    assert_false(import("{\"model_type\": \"qwen3_vl\", \"tie_word_embeddings\": false, "
                        "\"text_config\": {\"tie_word_embeddings\": true}}")
                     .tied_embeddings);
    assert_true(import("{\"model_type\": \"qwen2_vl\", \"tie_word_embeddings\": false, "
                       "\"text_config\": {\"tie_word_embeddings\": true}}")
                    .tied_embeddings);
}

static bool has_feature(const ms_model *model, const char *name)
{
    for (int i = 0; model->not_executed != NULL && model->not_executed[i] != NULL; i++)
        if (strcmp(model->not_executed[i], name) == 0)
            return true;
    return false;
}

static void layers_without_rotation_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool unrotated;
    } cases[] = {
        {"{\"model_type\": \"smollm3\"}", true},
        {"{\"model_type\": \"smollm3\", \"num_hidden_layers\": 2, \"no_rope_layers\": "
         "[1, 1]}",
         false},
        {"{\"model_type\": \"cohere2\"}", true},
        {"{\"model_type\": \"exaone4\"}", true},
        {"{\"model_type\": \"exaone4\", \"sliding_window\": null}", false},
        {"{\"model_type\": \"llama4_text\"}", true},
        {"{\"model_type\": \"olmo3\"}", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_model model = import(cases[i].text);
        ASSERT_INT(has_feature(&model, "layers without rotation"), cases[i].unrotated);
    }
}

/* Windows by rules of the classes: which of the first six layers have full attention. */
static void windows_follow_the_rules_of_the_classes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *full; /* F: full attention, -: a window */
    } cases[] = {
        {"{\"model_type\": \"gemma2\"}", "-F-F-F"},
        {"{\"model_type\": \"gemma3_text\"}", "-----F"},
        {"{\"model_type\": \"olmo3\"}", "---F--"},
        {"{\"model_type\": \"cohere2\"}", "---F--"},
        {"{\"model_type\": \"gpt_oss\"}", "-F-F-F"},
        {"{\"model_type\": \"gpt_neo\"}", "F-F-F-"},
        {"{\"model_type\": \"gpt_neo\", \"num_layers\": 6, \"attention_types\": "
         "[[[\"local\"], 2], [[\"global\", \"local\"], 2]]}",
         "--F-F-"},
        {"{\"model_type\": \"exaone4\", \"sliding_window_pattern\": \"LG\"}", "-F-F-F"},
        {"{\"model_type\": \"llama4_text\"}", "---F--"},
        {"{\"model_type\": \"mistral\"}", "------"},
        {"{\"model_type\": \"llama\"}", "FFFFFF"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_model model = import(cases[i].text);
        char got[7] = "------";
        for (int k = 0; k < 6; k++)
            if (model.kinds[model.kind_of_layer[k]].window_tokens == 0)
                got[k] = 'F';
        ASSERT_TEXT(got, cases[i].full);
    }
}

static void hybrid_layers_follow_lists_and_patterns(void **state)
{
    (void)state;
    ms_model nemotron =
        import("{\"model_type\": \"nemotron_h\", \"layers_block_type\": [\"mamba\", "
               "\"moe\", \"full_attention\", \"linear_attention\", \"mlp\"]}");
    ASSERT_INT(nemotron.num_layers, 5);
    ASSERT_INT(ms_model_mixers(&nemotron, MS_MIXER_MAMBA), 2);
    ASSERT_INT(ms_model_mixers(&nemotron, MS_MIXER_ATTENTION), 1);
    ms_model bamba = import("{\"model_type\": \"bamba\", \"num_hidden_layers\": 4, "
                            "\"attn_layer_indices\": [1]}");
    ASSERT_INT(bamba.num_layers, 8);
    ASSERT_INT(ms_model_mixers(&bamba, MS_MIXER_MAMBA), 3);
    ms_model granite =
        import("{\"model_type\": \"granitemoehybrid\", "
               "\"num_hidden_layers\": 1, \"layer_types\": [\"mamba\"], "
               "\"num_local_experts\": 0, \"shared_intermediate_size\": 64}");
    ASSERT_INT(granite.moe.num_experts, 0);
    ASSERT_INT(granite.ffn_hidden, 64);
    expect_error("{\"model_type\": \"nemotron_h\", \"layers_block_type\": [\"rnn\"]}",
                 "block \"rnn\"");
}

/* Granite's and MiniCPM's scales are features that run executes; branches' are not. */
static void scales_are_those_of_the_classes(void **state)
{
    (void)state;
    ms_model granite =
        import("{\"model_type\": \"granite\", \"embedding_multiplier\": 12.0, "
               "\"attention_multiplier\": 0.0078125, \"logits_scaling\": 16.0, "
               "\"residual_multiplier\": 0.22}");
    ASSERT_NEAR(granite.embedding_scale, 12.0, 0.0);
    ASSERT_NEAR(granite.query_pre_attn_scalar, 16384.0, 0.0);
    ASSERT_NEAR(granite.logit_scale, 1.0 / 16.0, 0.0);
    assert_true(has_feature(&granite, "scale of residual branches"));
    ms_model plain = import("{\"model_type\": \"granite\"}");
    assert_null(plain.not_executed);
    ms_model minicpm =
        import("{\"model_type\": \"minicpm\", \"hidden_size\": 2304, \"scale_emb\": 12, "
               "\"dim_model_base\": 256, \"num_attention_heads\": 36}");
    ASSERT_NEAR(minicpm.embedding_scale, 12.0, 0.0);
    ASSERT_NEAR(minicpm.logit_scale, 256.0 / 2304.0, 0.0);
}

static void a_bare_infinity_is_read_in_configs_alone(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model = import("{\"model_type\": \"mamba2\", \"num_hidden_layers\": 2, "
                            "\"time_step_limit\": [0.0, Infinity], \"a\": NaN}");
    assert_null(model.not_executed);
    ms_model limited =
        import("{\"model_type\": \"mamba2\", \"time_step_limit\": [0.0, 0.1]}");
    assert_true(has_feature(&limited, "time_step_limit"));
    ms_model worded = import("{\"model_type\": \"mamba2\", \"time_step_limit\": [0.0, "
                             "{\"__float__\": \"Infinity\"}]}");
    assert_null(worded.not_executed);
    expect_error("{\"model_type\": \"mamba2\", \"rms_norm_eps\": -Infinity}",
                 "\"rms_norm_eps\" is too large");
    ASSERT_INT(read_model(cx, "{\"schema\": Infinity}", &model), MS_EINPUT);
    expect_message(cx, "m.json:1:12: error: a value must stand here");
}

static void another_type_reads_what_it_can(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model;
    ASSERT_OK(import_as(cx,
                        "{\"model_type\": \"unheard_of\", \"hidden_size\": 64, "
                        "\"num_attention_heads\": 4}",
                        "llama", &model),
              cx);
    ASSERT_INT(model.hidden, 64);
    ASSERT_TEXT(model.family, "llama");
    ASSERT_OK(import_as(cx,
                        "{\"model_type\": \"qwen3_5_moe\", \"text_config\": "
                        "{\"num_hidden_layers\": 3}}",
                        "qwen3_moe", &model),
              cx);
    ASSERT_INT(model.num_layers, 3);
    assert_true(has_feature(&model, "gated delta net"));
    ASSERT_OK(import_as(cx,
                        "{\"model_type\": \"lfm2\", \"num_hidden_layers\": 2, "
                        "\"layer_types\": [\"conv\", \"full_attention\"]}",
                        "qwen3", &model),
              cx);
    ASSERT_INT(model.num_kinds, 1);
    ASSERT_INT(import_as(cx, "{\"model_type\": \"x\"}", "y", &model), MS_EINPUT);
    expect_message(cx, "unknown model_type \"y\"");
    expect_message(cx, "--as TYPE");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(released_files_have_the_parameters_of_their_classes),
        cmocka_unit_test(classes_at_their_defaults_have_the_sum_of_their_shapes),
        cmocka_unit_test(refused_types_name_the_layer_and_a_way_out),
        cmocka_unit_test(parts_of_classes_that_no_model_has_are_refused),
        cmocka_unit_test(sizes_under_two_names_must_agree),
        cmocka_unit_test(null_is_not_absent),
        cmocka_unit_test(lists_of_equal_sizes_are_sizes),
        cmocka_unit_test(language_models_lie_in_parts),
        cmocka_unit_test(ties_are_those_of_the_right_part),
        cmocka_unit_test(layers_without_rotation_are_named),
        cmocka_unit_test(windows_follow_the_rules_of_the_classes),
        cmocka_unit_test(hybrid_layers_follow_lists_and_patterns),
        cmocka_unit_test(scales_are_those_of_the_classes),
        cmocka_unit_test(a_bare_infinity_is_read_in_configs_alone),
        cmocka_unit_test(another_type_reads_what_it_can),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
