/* Model files: exact parameter counts, FLOP per token, names, bad input, and reading
 * back what is written. Totals are those of the published checkpoints (weights in the
 * safetensors headers on huggingface.co, tied weights counted once). */
#include "costmodel/model/model.h"
#include "tests/test.h"
#include "tests/unit/model_text.h"

static const ms_model *load(const char *name)
{
    ms_ctx *cx = test_cx();
    const ms_model *model = NULL;
    ASSERT_OK(ms_model_load(cx, name, &model), cx);
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
        {"llama-2-13b", 13015864320.0},
        {"llama-2-70b", 68976648192.0},
        {"llama-3-8b", 8030261248.0},
        {"llama-3.1-8b", 8030261248.0},
        {"llama-3.1-70b", 70553706496.0},
        {"llama-3.1-405b", 405853388800.0},
        {"llama-3.2-1b", 1235814400.0},
        {"llama-3.2-3b", 3212749824.0},
        {"mistral-7b", 7241732096.0},
        {"mixtral-8x7b", 46702792704.0},
        {"mixtral-8x22b", 140620634112.0},
        {"qwen2.5-0.5b", 494032768.0},
        {"qwen2.5-7b", 7615616512.0},
        {"qwen2.5-72b", 72706203648.0},
        {"qwen3-0.6b", 596049920.0},
        {"qwen3-8b", 8190735360.0},
        {"qwen3-32b", 32762123264.0},
        {"qwen3-30b-a3b", 30532122624.0},
        {"qwen3-235b-a22b", 235093634560.0},
        {"deepseek-v2-lite", 15706484224.0},
        {"deepseek-v2", 235741434880.0},
        {"deepseek-v3", 671026419200.0},
        {"gpt2", 124439808.0},
        {"gpt2-xl", 1557611200.0},
        {"gemma-2-9b", 9241705984.0},
        {"gemma-2-27b", 27227128320.0},
        {"gpt-neox-20b", 20554567680.0},
        {"opt-125m", 125239296.0},
        {"opt-13b", 12853473280.0},
        {"bloom-176b", 176247271424.0},
        {"bloom-7b1", 7069016064.0},
        {"mpt-7b", 6649286656.0},
        {"falcon-7b", 6921720704.0},
        {"falcon-40b", 41303293952.0},
        /* totals of this row and of those below are quoted, not read from the
         * checkpoints */
        {"falcon-180b", 179522565120.0},
        {"yi-34b", 34388917248.0},
        {"dbrx", 131596523520.0},
        {"kimi-k2", 1026408232448.0},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        double total = ms_model_params(load(known[i].name)).total;
        if (fabs(total - known[i].total) > 0.0)
            fail_msg("%s: got %.0f, want %.0f", known[i].name, total, known[i].total);
    }
}

/* Totals of further model files must not change. They were not compared with
 * checkpoints, only found to be near the sizes in the names. */
static void other_totals_stay_as_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double total;
    } known[] = {
        {"bloom-560m", 559214592.0},       {"bloom-1b1", 1065314304.0},
        {"bloom-1b7", 1722408960.0},       {"bloom-3b", 3002557440.0},
        {"opt-2.7b", 2651596800.0},        {"phi-2", 2779683840.0},
        {"phi-3-mini", 3821079552.0},      {"phi-3-medium", 13960238080.0},
        {"yi-6b", 6061035520.0},           {"llama-2-34b", 33743970304.0},
        {"llama-3.3-70b", 70553706496.0},  {"qwen2-7b", 7615616512.0},
        {"qwen2-72b", 72706203648.0},      {"internlm-7b", 7321948160.0},
        {"internlm2-7b", 7737708544.0},    {"internlm2-20b", 19861149696.0},
        {"deepseek-llm-7b", 6910365696.0}, {"deepseek-llm-67b", 67425001472.0},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        ASSERT_NEAR(ms_model_params(load(known[i].name)).total, known[i].total, 0.0);
}

/* Totals in billions as papers and cards print them: arXiv 2104.04473 table 1,
 * 2205.05198 table 3, 2204.02311 table 1, 2402.16819 (12.5 + 3.2 of embeddings),
 * 2406.11704 (331.6 + 9.4), 2205.01068, 2504.03624 (8 and 56), the card of Nemotron 3
 * Nano, and gpt-oss (20.9 and 116.8), Grok-1 (314) and the Ultra-Scale Playbook (8.86,
 * 80.0). */
static void totals_are_those_of_the_papers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double billions, tolerance;
    } known[] = {
        {"megatron-gpt-1.7b", 1.7, 0.03},
        {"megatron-gpt-3.6b", 3.6, 0.015},
        {"megatron-gpt-7.5b", 7.5, 0.005},
        {"megatron-gpt-18b", 18.4, 0.003},
        {"megatron-gpt-39b", 39.1, 0.001},
        {"megatron-gpt-76b", 76.1, 0.001},
        {"megatron-gpt-145b", 145.6, 0.001},
        {"megatron-gpt-310b", 310.1, 0.001},
        {"megatron-gpt-530b", 529.6, 1e-4},
        {"megatron-gpt-1t", 1008.0, 1e-4},
        {"megatron-gpt-22b", 22.0, 0.005},
        {"mt-nlg-530b", 529.6, 1e-4},
        {"palm-8b", 8.63, 0.001},
        {"palm-62b", 62.50, 0.001},
        {"palm-540b", 540.35, 1e-4},
        {"nemotron-4-15b", 15.7, 0.006},
        {"nemotron-4-340b", 341.0, 0.001},
        {"opt-175b", 175.0, 0.003},
        {"gpt-oss-20b", 20.914757184, 1e-12},
        {"gpt-oss-120b", 116.829156672, 1e-12},
        {"grok-1", 314.0, 0.006},
        {"playbook-8b", 8.86, 0.001},
        {"playbook-80b", 80.0, 0.001},
        {"internlm-20b", 20.0, 0.006},
        {"nemotron-3-nano-30b-a3b", 31.6, 0.001},
        {"nemotron-h-8b", 8.1, 0.001},
        {"nemotron-h-56b", 56.3, 0.001},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        ASSERT_NEAR(ms_model_params(load(known[i].name)).total / 1e9, known[i].billions,
                    known[i].tolerance);
}

/* 175.0 B parameters (Brown et al. 2020, table 2.1), of which the L layers of hidden
 * size h have 12 h^2 L = 173.9 B. */
static void gpt3_has_about_175e9_parameters(void **state)
{
    (void)state;
    ASSERT_NEAR(ms_model_params(load("gpt3-175b")).total, 174604259328.0, 0.0);
    ASSERT_NEAR(ms_model_params(load("gpt3-175b")).total, 175.0e9, 0.003);
}

static void kinds_of_parameters_sum_to_the_total(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const *names = NULL;
    int num_names = 0;
    ASSERT_OK(ms_model_names(cx, &names, &num_names), cx);
    assert_true(num_names >= 40);
    for (int i = 0; i < num_names; i++) {
        const ms_model *model = load(names[i]);
        ASSERT_TEXT(model->name, names[i]);
        ms_param_counts p = ms_model_params(model);
        ASSERT_NEAR(p.embedding + p.attention + p.mamba + p.mlp + p.experts + p.router +
                        p.norm + p.head,
                    p.total, 0.0);
        assert_true(p.active <= p.total && p.active > 0.0);
        assert_true((p.active < p.total) == (model->moe.num_experts > 0));
        assert_true((p.head > 0.0) != model->tied_embeddings);
    }
}

/* Parameters of Llama 3.1 8B by hand: hidden size 4096, 32 layers, key-value width
 * 1024, MLP width 14336, vocabulary 128256. */
static void parameters_of_llama_by_kind(void **state)
{
    (void)state;
    ms_param_counts p = ms_model_params(load("8b"));
    ASSERT_NEAR(p.embedding, 128256.0 * 4096.0, 0.0);
    ASSERT_NEAR(p.head, 128256.0 * 4096.0, 0.0);
    ASSERT_NEAR(p.attention, 32.0 * 2.0 * 4096.0 * (4096.0 + 1024.0), 0.0);
    ASSERT_NEAR(p.mlp, 32.0 * 3.0 * 4096.0 * 14336.0, 0.0);
    ASSERT_NEAR(p.norm, 65.0 * 4096.0, 0.0);
    ASSERT_NEAR(p.experts + p.router, 0.0, 0.0);
}

/* Active parameters by the models' reports: 37B (arXiv 2412.19437), 21B (2405.04434),
 * 22B and 3.3B (2505.09388), 12.9B (2401.04088). */
static void active_parameters_are_those_of_the_reports(void **state)
{
    (void)state;
    ASSERT_NEAR(ms_model_params(load("deepseek-v3")).active, 37.0e9, 0.02);
    ASSERT_NEAR(ms_model_params(load("deepseek-v2")).active, 21.0e9, 0.02);
    ASSERT_NEAR(ms_model_params(load("qwen3-235b-a22b")).active, 22.0e9, 0.02);
    ASSERT_NEAR(ms_model_params(load("qwen3-30b-a3b")).active, 3.3e9, 0.02);
    ASSERT_NEAR(ms_model_params(load("mixtral-8x7b")).active, 12.9e9, 0.005);
}

static void the_correction_bias_counts_as_router(void **state)
{
    (void)state;
    ms_param_counts p = ms_model_params(load("deepseek-v3"));
    ASSERT_NEAR(p.router, 58.0 * 256.0 * (7168.0 + 1.0), 0.0);
    ASSERT_NEAR(p.experts, 58.0 * 256.0 * 3.0 * 7168.0 * 2048.0, 0.0);
}

/* FLOP per token: 6 (N - V h) + 12 L h s = 4.503e10 + 1.288e10, with N parameters,
 * vocabulary V, hidden size h, L layers and sequence length s. */
static void flop_per_token_of_llama_8b(void **state)
{
    (void)state;
    ms_flop_per_token flop = ms_model_flop_per_token(load("llama-3.1-8b"), 8192.0);
    ASSERT_NEAR(flop.full_flop, 5.791e10, 1e-4);
    ASSERT_NEAR(flop.full_flop - flop.causal_flop, 12.0 * 32.0 * 4096.0 * 8192.0 / 2.0,
                1e-12);
}

static void a_tied_embedding_counts_as_head(void **state)
{
    (void)state;
    ms_flop_per_token flop = ms_model_flop_per_token(load("llama-3.2-1b"), 0.0);
    ASSERT_NEAR(flop.full_flop, 6.0 * 1235814400.0, 0.0);
    flop =
        /* learned position embeddings take no FLOP */
        ms_model_flop_per_token(load("gpt2"), 0.0);
    ASSERT_NEAR(flop.full_flop, 6.0 * (124439808.0 - 1024.0 * 768.0), 0.0);
}

static void only_active_experts_cost_flop(void **state)
{
    (void)state;
    const ms_model *model = load("mixtral-8x7b");
    ms_param_counts p = ms_model_params(model);
    ASSERT_NEAR(ms_model_flop_per_token(model, 0.0).full_flop,
                6.0 * (p.active - p.embedding), 0.0);
}

/* Mistral attends to a window of 4096 tokens. Of 8192 tokens the first 4096 see
 * themselves and all before, the others 4096 tokens, so on average 4096 (1 - 4096 /
 * 16384) = 3072 (up to 1/8192). */
static void a_sliding_window_limits_the_pairs(void **state)
{
    (void)state;
    const ms_model *model = load("mistral-7b");
    double matrices = ms_model_flop_per_token(model, 0.0).full_flop;
    ms_flop_per_token flop = ms_model_flop_per_token(model, 8192.0);
    double per_pair = 12.0 * 32.0 * 4096.0;
    ASSERT_NEAR(flop.causal_flop - matrices, per_pair * 3072.0, 1e-12);
    ASSERT_NEAR(flop.full_flop - matrices, per_pair * 6144.0, 1e-12);
    flop = ms_model_flop_per_token(model, 4096.0);
    ASSERT_NEAR(flop.full_flop - matrices, per_pair * 4096.0, 1e-12);
}

static void layers_of_mixed_models_have_kinds(void **state)
{
    (void)state;
    const ms_model *deepseek = load("deepseek-v3");
    ASSERT_INT(deepseek->num_kinds, 2);
    assert_false(deepseek->kinds[deepseek->kind_of_layer[2]].moe);
    assert_true(deepseek->kinds[deepseek->kind_of_layer[3]].moe);
    assert_true(deepseek->kinds[deepseek->kind_of_layer[60]].moe);
    const ms_model *gemma = load("gemma-2-9b");
    ASSERT_INT(gemma->kinds[gemma->kind_of_layer[40]].window_tokens, 4096);
    ASSERT_INT(gemma->kinds[gemma->kind_of_layer[41]].window_tokens, 0);
}

static void aliases_and_spelling(void **state)
{
    (void)state;
    ASSERT_TEXT(load("70b")->name, "llama-3.1-70b");
    ASSERT_TEXT(load("8B")->name, "llama-3.1-8b");
    ASSERT_TEXT(load("405b")->name, "llama-3.1-405b");
    ASSERT_TEXT(load("llama-3-405b")->name, "llama-3.1-405b");
    ASSERT_TEXT(load("1b")->name, "llama-3.2-1b");
    ASSERT_TEXT(load("Llama_3.1_8B")->name, "llama-3.1-8b");
    ASSERT_TEXT(load("Mixtral")->name, "mixtral-8x7b");
    ASSERT_TEXT(load("gpt3")->name, "gpt3-175b");
    ASSERT_TEXT(load("DeepSeek_V3")->name, "deepseek-v3");
}

static void a_path_is_read_as_a_file(void **state)
{
    (void)state;
    ASSERT_TEXT(load("configs/models/gpt2.json")->name, "gpt2");
    ASSERT_TEXT(load("tests/data/hf/qwen3-8b/config.json")->name, "qwen3-8b");
}

static void an_unknown_name_suggests_the_nearest(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = NULL;
    ASSERT_INT(ms_model_load(cx, "llama-3.1-7b", &model), MS_EINPUT);
    assert_null(model);
    const char *messages = test_messages(cx);
    assert_non_null(strstr(messages, "unknown model \"llama-3.1-7b\""));
    assert_non_null(strstr(messages, "llama-"));
}

static void a_missing_file_is_an_io_error(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = NULL;
    ASSERT_INT(ms_model_load(cx, "no/such/config.json", &model), MS_EIO);
    ASSERT_INT(ms_model_load(cx, "no/such/Llama-3.1-8B", &model), MS_EIO);
    assert_non_null(strstr(test_messages(cx), "of this name is \"llama-3.1-8b\""));
}

/* ---- own format, bad input ---- */

#define SMALL                                                                            \
    "{\"schema\": \"meshsim.model-config/1\", \"name\": \"m\", \"family\": \"llama\", "  \
    "\"source\": \"test\", \"max_positions\": 64, \"tied_embeddings\": false, "          \
    "\"norm\": \"rms\", \"activation\": \"swiglu\", \"position\": \"rotary\", "

static void a_small_model_is_counted_by_hand(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model;
    ASSERT_OK(read_model(cx,
                         SMALL
                         "\"layers\": 2, \"hidden\": 8, \"heads\": 2, \"kv_heads\": 1, "
                         "\"head_dim\": 4, \"ffn_hidden\": 16, \"vocab\": 10}",
                         &model),
              cx);
    /* parameters: embedding and head 80 each; each of two layers attention 64 + 32 + 32 +
     * 64, MLP 3 * 128, norms 16; the last norm 8 */
    ASSERT_NEAR(ms_model_params(&model).attention, 384.0, 0.0);
    ASSERT_NEAR(ms_model_params(&model).total, 160.0 + 384.0 + 768.0 + 40.0, 0.0);
    /* defaults of members that the file leaves out */
    ASSERT_NEAR(model.rotary_base, 10000.0, 0.0);
    ASSERT_NEAR(model.norm_epsilon, 1e-6, 0.0);
    assert_false(model.gelu_tanh);
}

static void truncated_json_names_the_place(void **state)
{
    (void)state;
    expect_model_error(SMALL "\"layers\": 2, \"hidden\":", "m.json:1:");
}

static void wrong_types_are_errors(void **state)
{
    (void)state;
    expect_model_error(SMALL "\"layers\": \"two\"}", "at /layers");
    expect_model_error(SMALL "\"tied_embeddings\": 1}", "/tied_embeddings");
    expect_model_error("[]", "a model file holds an object");
    expect_model_error("{\"schema\": 3}", "at /schema");
}

static void an_unknown_key_names_the_nearest(void **state)
{
    (void)state;
    expect_model_error(SMALL "\"layrs\": 2}", "layers");
    expect_model_error(SMALL "\"layrs\": 2}", "layrs");
}

static void sizes_out_of_range_are_errors(void **state)
{
    (void)state;
    expect_model_error(SMALL "\"hidden\": 0}", "/hidden");
    expect_model_error(SMALL "\"layers\": -2}", "/layers");
    expect_model_error(SMALL "\"vocab\": 1e300}", "/vocab");
    expect_model_error(SMALL "\"layers\": 2.5}", "/layers");
    expect_model_error(SMALL "\"rotary_base\": 0.5}", "/rotary_base");
    expect_model_error(SMALL "\"norm_epsilon\": -1e-5}", "/norm_epsilon");
    expect_model_error(
        SMALL "\"layers\": 10000, \"hidden\": 16777216, \"heads\": 1, \"kv_heads\": 1, "
              "\"head_dim\": 2, \"ffn_hidden\": 16777216, \"vocab\": 10}",
        "more than 2^53");
}

/* A model without dropout has no rate of it. */
static void dropout_that_is_off_has_no_rate(void **state)
{
    (void)state;
    const char *const sizes =
        "\"layers\": 2, \"hidden\": 8, \"heads\": 2, \"kv_heads\": 1, \"head_dim\": 4, "
        "\"ffn_hidden\": 16, \"vocab\": 10, \"dropout\": false, ";
    ms_ctx *cx = test_cx();
    ms_model model;
    const char *zero =
        ms_arena_printf(cx->arena, SMALL "%s\"hidden_dropout\": 0}", sizes);
    ASSERT_OK(read_model(cx, zero, &model), cx);
    assert_false(model.dropout);
    expect_model_error(
        ms_arena_printf(cx->arena, SMALL "%s\"hidden_dropout\": 0.1}", sizes),
        "\"dropout\" is false, but a rate of dropout is above 0");
}

static void heads_must_be_divisible_by_kv_heads(void **state)
{
    (void)state;
    expect_model_error(SMALL
                       "\"layers\": 2, \"hidden\": 8, \"heads\": 6, \"kv_heads\": 4, "
                       "\"head_dim\": 4, \"ffn_hidden\": 16, \"vocab\": 10}",
                       "6 heads are not divisible by 4 kv heads");
}

static void layers_must_have_a_size(void **state)
{
    (void)state;
    const char *const dense = SMALL
        "\"layers\": 2, \"hidden\": 8, \"heads\": 2, \"kv_heads\": 1, \"head_dim\": 4, \"vocab\": 10}";
    expect_model_error(dense, "feed-forward size is 0");
    expect_model_error(SMALL
                       "\"layers\": 2, \"hidden\": 8, \"heads\": 2, \"kv_heads\": 1, "
                       "\"ffn_hidden\": 16, \"vocab\": 10}",
                       "head_dim");
}

#define SMALL_MOE                                                                        \
    SMALL                                                                                \
    "\"layers\": 2, \"hidden\": 8, \"heads\": 2, \"kv_heads\": 1, \"head_dim\": 4, "     \
    "\"vocab\": 10, "

static void experts_must_be_consistent(void **state)
{
    (void)state;
    expect_model_error(SMALL_MOE
                       "\"moe\": {\"num_experts\": 2, \"top_k\": 3, \"ffn_hidden\": 4, "
                       "\"router\": \"sigmoid\", \"norm_topk\": true}}",
                       "experts per token is 3, must be between 1 and 2");
    expect_model_error(
        SMALL_MOE
        "\"ffn_hidden\": 4, \"layer_pattern\": [{\"count\": 2, \"moe\": true}]}",
        "number of experts is 0");
    expect_model_error(SMALL_MOE
                       "\"ffn_hidden\": 4, \"layer_pattern\": [{\"count\": 3}]}",
                       "runs of 3 layers in a model of 2");
}

static void another_schema_is_refused(void **state)
{
    (void)state;
    expect_model_error("{\"schema\": \"meshsim.plan/1\"}",
                       "schema is \"meshsim.plan/1\"");
    expect_model_error("{\"a\": 1, \"b\": 2}", "among the keys: a, b");
}

/* ---- output ---- */

/* Writes the model's architecture as JSON and reads it back into `again`. */
static void read_back(ms_ctx *cx, const ms_model *model, ms_model *again)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_jout out = ms_jout_open(file);
    ms_model_write_json(&out, model, 8192.0);
    ms_jout_close(&out);
    const char *text = test_read_back(cx->arena, file);
    ms_jdoc *doc = NULL;
    ms_jval root;
    ms_jval part;
    ASSERT_OK(ms_json_parse(cx, "out", text, strlen(text), &doc, &root), cx);
    double total = 0.0;
    assert_true(ms_json_member(cx, root, "params", &part));
    assert_true(ms_json_member(cx, part, "total", &part));
    ASSERT_OK(ms_json_number(cx, part, 0.0, 1e18, &total), cx);
    ASSERT_NEAR(total, ms_model_params(model).total, 0.0);
    assert_true(ms_json_member(cx, root, "architecture", &part));
    ASSERT_OK(ms_model_read(cx, part, "again", again), cx);
    ms_json_close(doc);
}

static void a_written_model_reads_back_the_same(void **state)
{
    (void)state;
    static const char *const names[] = {"deepseek-v3", "gemma-2-9b",  "gpt2",
                                        "falcon-7b",   "mpt-7b",      "bloom-176b",
                                        "qwen3-8b",    "mixtral-8x7b"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = load(names[i]);
        ms_model again;
        read_back(cx, model, &again);
        ASSERT_TEXT(again.name, model->name);
        ASSERT_TEXT(again.source, model->source);
        ms_param_counts was = ms_model_params(model);
        ms_param_counts is = ms_model_params(&again);
        assert_memory_equal(&was, &is, sizeof was);
        ASSERT_INT(again.num_kinds, model->num_kinds);
        assert_memory_equal(again.kind_of_layer, model->kind_of_layer,
                            (size_t)model->num_layers);
        ASSERT_NEAR(ms_model_flop_per_token(&again, 8192.0).causal_flop,
                    ms_model_flop_per_token(model, 8192.0).causal_flop, 0.0);
        ASSERT_INT(again.moe.router, model->moe.router);
        ASSERT_INT(again.dropout, model->dropout);
        assert_memory_equal(&again.rotary_scaling, &model->rotary_scaling,
                            sizeof model->rotary_scaling);
        ASSERT_NEAR(again.embedding_scale, model->embedding_scale, 0.0);
        ASSERT_NEAR(again.query_pre_attn_scalar, model->query_pre_attn_scalar, 0.0);
        ASSERT_NEAR(again.attention_softcap, model->attention_softcap, 0.0);
        ASSERT_NEAR(again.logit_softcap, model->logit_softcap, 0.0);
        ASSERT_NEAR(again.rotary_local_base, model->rotary_local_base, 0.0);
        ASSERT_NEAR(again.moe.routed_scaling, model->moe.routed_scaling, 0.0);
        ASSERT_INT(again.norm_plus_one, model->norm_plus_one);
        ASSERT_INT(again.position_offset, model->position_offset);
        ASSERT_INT(again.rotary_dim, model->rotary_dim);
        ASSERT_INT(again.rotary_interleaved, model->rotary_interleaved);
        ASSERT_INT(again.moe.num_groups, model->moe.num_groups);
        ASSERT_INT(again.moe.top_groups, model->moe.top_groups);
        ASSERT_INT(again.not_executed != NULL, model->not_executed != NULL);
        ASSERT_NEAR(again.rotary_base, model->rotary_base, 0.0);
        ASSERT_NEAR(again.norm_epsilon, model->norm_epsilon, 0.0);
        ASSERT_INT(again.gelu_tanh, model->gelu_tanh);
        ASSERT_INT(again.parallel_block, model->parallel_block);
    }
}

static void the_page_shows_exact_counts(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_model_print(file, load("llama-3.1-70b"), 8192.0);
    const char *page = test_read_back(cx->arena, file);
    assert_non_null(strstr(page, "70,553,706,496"));
    assert_non_null(strstr(page, "GQA, 64 heads of 128, 8 kv heads"));
    assert_non_null(strstr(page, "sequence length 8,192"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_those_of_the_checkpoints),
        cmocka_unit_test(other_totals_stay_as_they_are),
        cmocka_unit_test(totals_are_those_of_the_papers),
        cmocka_unit_test(gpt3_has_about_175e9_parameters),
        cmocka_unit_test(kinds_of_parameters_sum_to_the_total),
        cmocka_unit_test(parameters_of_llama_by_kind),
        cmocka_unit_test(active_parameters_are_those_of_the_reports),
        cmocka_unit_test(the_correction_bias_counts_as_router),
        cmocka_unit_test(flop_per_token_of_llama_8b),
        cmocka_unit_test(a_tied_embedding_counts_as_head),
        cmocka_unit_test(only_active_experts_cost_flop),
        cmocka_unit_test(a_sliding_window_limits_the_pairs),
        cmocka_unit_test(layers_of_mixed_models_have_kinds),
        cmocka_unit_test(aliases_and_spelling),
        cmocka_unit_test(a_path_is_read_as_a_file),
        cmocka_unit_test(an_unknown_name_suggests_the_nearest),
        cmocka_unit_test(a_missing_file_is_an_io_error),
        cmocka_unit_test(a_small_model_is_counted_by_hand),
        cmocka_unit_test(truncated_json_names_the_place),
        cmocka_unit_test(wrong_types_are_errors),
        cmocka_unit_test(dropout_that_is_off_has_no_rate),
        cmocka_unit_test(an_unknown_key_names_the_nearest),
        cmocka_unit_test(sizes_out_of_range_are_errors),
        cmocka_unit_test(heads_must_be_divisible_by_kv_heads),
        cmocka_unit_test(layers_must_have_a_size),
        cmocka_unit_test(experts_must_be_consistent),
        cmocka_unit_test(another_schema_is_refused),
        cmocka_unit_test(a_written_model_reads_back_the_same),
        cmocka_unit_test(the_page_shows_exact_counts),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
