/* Models with Mamba-2 layers, whose layers are a mixer or an MLP alone: files and
 * layer patterns, parameters and FLOP counted by hand, programs over tp, their cost
 * and saved activations, the split into pipeline stages, and refusals. */
#include "costmodel/model/model.h"
#include "costmodel/program/program_check.h"
#include "sim/step/traffic.h"

#include "tests/test.h"
#include "tests/unit/model_text.h"

static const ms_model *load(const char *name)
{
    ms_ctx *cx = test_cx();
    const ms_model *model = NULL;
    ASSERT_OK(ms_model_load(cx, name, &model), cx);
    return model;
}

/* A model with hidden size 8 and Mamba-2 layers of 4 heads of 2 in 2 groups, states of
 * 16: inner width 8, channels 8 + 2 * 32 = 72, projected width 8 + 72 + 4 = 84. */
#define SMALL                                                                            \
    "{\"schema\": \"meshsim.model-config/1\", \"name\": \"m\", \"family\": \"f\",\n"     \
    "\"source\": \"s\", \"tied_embeddings\": false, \"norm\": \"rms\",\n"                \
    "\"activation\": \"relu2\", \"position\": \"none\", \"max_positions\": 64,\n"        \
    "\"hidden\": 8, \"heads\": 2, \"kv_heads\": 2, \"head_dim\": 4,\n"                   \
    "\"ffn_hidden\": 32, \"vocab\": 10"
#define MAMBA(heads)                                                                     \
    ",\n\"mamba\": {\"mamba_num_heads\": " heads ", \"mamba_head_dim\": 2, "             \
    "\"ssm_state_size\": 16, \"n_groups\": 2, \"conv_kernel\": 4, \"chunk_size\": 8}"
#define PATTERN(layers, letters)                                                         \
    ",\n\"layers\": " layers ", \"hybrid_override_pattern\": \"" letters "\"}"

static ms_model small_model(void)
{
    ms_ctx *cx = test_cx();
    ms_model model;
    ASSERT_OK(read_model(cx, SMALL MAMBA("4") PATTERN("4", "M-M*"), &model), cx);
    return model;
}

/* ---- files ---- */

static void parameters_are_counted_by_hand(void **state)
{
    (void)state;
    ms_model model = small_model();
    ms_param_counts p = ms_model_params(&model);
    /* two Mamba layers: projections 8 * 84 and 8 * 8, 72 * 4 convolution taps and 72
     * biases, 3 parameters for each of 4 heads, an inner norm of 8 */
    ASSERT_NEAR(p.mamba, 2.0 * (672 + 64 + 288 + 72 + 12 + 8), 0.0);
    ASSERT_NEAR(p.mlp, 2.0 * 8 * 32, 0.0);
    ASSERT_NEAR(p.attention, 4.0 * 64, 0.0);
    ASSERT_NEAR(p.norm, 5.0 * 8, 0.0);
    ASSERT_NEAR(p.total, p.mamba + p.mlp + p.attention + p.norm + 2 * 80, 0.0);
}

/* Parameters by the model's card: 31.6 B, of which 3.6 B active, 3.2 B of these
 * without the embedding. */
static void nemotron_3_nano_has_the_counts_of_its_card(void **state)
{
    (void)state;
    const ms_model *model = load("nemotron-3-nano-30b-a3b");
    ms_param_counts p = ms_model_params(model);
    ASSERT_NEAR(p.total, 31577940288.0, 0.0);
    ASSERT_NEAR(p.active / 1e9, 3.6, 0.006);
    ASSERT_NEAR((p.active - p.embedding) / 1e9, 3.2, 0.01);
    ASSERT_INT(ms_model_mixers(model, MS_MIXER_MAMBA), 23);
    ASSERT_INT(ms_model_mixers(model, MS_MIXER_ATTENTION), 6);
}

/* Mamba, MLP and attention layers in arXiv 2504.03624 table 1: 24, 24 and 4 (8B); 54,
 * 54 and 10 (56B). */
static void nemotron_h_has_the_layers_of_its_paper(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        long mamba, mlp, attention;
    } known[] = {{"nemotron-h-8b", 24, 24, 4}, {"nemotron-h-56b", 54, 54, 10}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const ms_model *model = load(known[i].name);
        ASSERT_INT(ms_model_mixers(model, MS_MIXER_MAMBA), known[i].mamba);
        ASSERT_INT(ms_model_mixers(model, MS_MIXER_NONE), known[i].mlp);
        ASSERT_INT(ms_model_mixers(model, MS_MIXER_ATTENTION), known[i].attention);
    }
}

static void what_is_written_reads_back_as_the_same(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = load("nemotron-3-nano-30b-a3b");
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    ms_jout out = ms_jout_open(file);
    ms_model_write_json(&out, model, 8192.0);
    ms_jout_close(&out);
    fclose(file);
    ms_jdoc *doc = NULL;
    ms_jval root, architecture;
    ms_model again;
    ASSERT_OK(ms_json_parse(cx, "m.json", text, size, &doc, &root), cx);
    assert_true(ms_json_member(cx, root, "architecture", &architecture));
    ASSERT_OK(ms_model_read(cx, architecture, "m", &again), cx);
    assert_memory_equal(again.kind_of_layer, model->kind_of_layer, 52);
    ASSERT_NEAR(ms_model_params(&again).total, ms_model_params(model).total, 0.0);
    ms_json_close(doc);
    free(text);
}

static void bad_patterns_are_errors_where_they_stand(void **state)
{
    (void)state;
    expect_model_error(SMALL MAMBA("4") PATTERN("4", "M-Mx"),
                       "m.json:7:41: error: letter 4 of the pattern is 'x'");
    expect_model_error(SMALL MAMBA("4") PATTERN("4", "M-Mx"), "letters are M (Mamba-2)");
    expect_model_error(SMALL MAMBA("4") PATTERN("4", "M-M"),
                       "m.json:7:41: error: a pattern of 3 letters for 4 layers");
    expect_model_error(
        SMALL MAMBA("4") ",\n\"layers\": 1, \"hybrid_override_pattern\": 3}",
        "m.json:7:41: error:");
    expect_model_error(
        SMALL MAMBA("4") ", \"layer_pattern\": [{\"count\": 1}]" PATTERN("1", "M"),
        "cannot both be given");
}

static void mamba_layers_and_sizes_belong_together(void **state)
{
    (void)state;
    expect_model_error(SMALL PATTERN("2", "M-"), "mamba_num_heads is 0");
    expect_model_error(SMALL MAMBA("4") PATTERN("2", "*-"),
                       "Mamba-2 heads, but no layer uses them");
    expect_model_error(SMALL MAMBA("3") PATTERN("2", "M-"),
                       "3 Mamba-2 heads are not divisible by 2 groups");
    expect_model_error(SMALL MAMBA("4") PATTERN("2", "ME"), "number of experts is 0");
    expect_model_error(SMALL ", \"parallel_block\": true" MAMBA("4") PATTERN("2", "M-"),
                       "in parallel");
}

static void imports_that_are_not_supported_say_so(void **state)
{
    (void)state;
#define NEMOTRON                                                                         \
    "{\"model_type\": \"nemotron_h\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "   \
    "\"vocab_size\": 100, \"intermediate_size\": 128, \"max_position_embeddings\": 32, " \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"mamba_num_heads\": 8, "   \
    "\"mamba_head_dim\": 8, \"ssm_state_size\": 16, \"n_groups\": 2"
    expect_model_error(NEMOTRON "}", "missing \"hybrid_override_pattern\"");
    expect_model_error(NEMOTRON
                       ", \"hybrid_override_pattern\": \"M-\", \"use_bias\": true}",
                       "use_bias true is not supported");
    expect_model_error(NEMOTRON ", \"hybrid_override_pattern\": \"M-\", "
                                "\"use_conv_bias\": false}",
                       "use_conv_bias false is not supported");
    expect_model_error(NEMOTRON ", \"hybrid_override_pattern\": \"M|\"}",
                       "letter 2 of the pattern is '|'");
}

/* ---- programs ---- */

static const ms_program *layer(const ms_model *model, ms_program_key key)
{
    key.block = MS_BLOCK_LAYER;
    key.microbatch = 2;
    key.ep = key.etp = key.cp = 1;
    key.attention_fused = key.loss_parallel = true;
    const ms_program *program =
        ms_program_make(test_cx()->arena, model, &key, 32, 1, MS_BF16);
    ms_check_finding finding;
    if (!ms_program_check(program, &finding))
        fail_msg("tp %d: %s", key.tp, finding.text);
    return program;
}

static void programs_are_sound_over_tp(void **state)
{
    (void)state;
    ms_model model = small_model();
    for (int i = 0; i < 2 * 2 * MS_NUM_RECOMPUTE; i++) {
        for (int kind = 0; kind < model.num_kinds; kind++)
            layer(&model, (ms_program_key){.kind = (unsigned char)kind,
                                           .tp = i % 2 == 0 ? 1 : 2,
                                           .sequence_parallel = i / 2 % 2 == 1,
                                           .optimizer = i % 3 == 0,
                                           .recompute = (unsigned char)(i / 4)});
    }
}

static double flop_of(const ms_program *program, ms_pass pass, bool of_scan)
{
    double flop = 0.0;
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        bool scan = node->op == MS_OP_SCAN || node->op == MS_OP_SCAN_GRAD;
        if (node->pass == pass && scan == of_scan)
            flop += ms_node_flop(program, node);
    }
    return flop;
}

/* FLOP of a Mamba layer on 64 tokens. Its two projections take 2 * 8 * 84 and 2 * 8 * 8
 * for each token. Its scan, in chunks of 8 tokens with 2 groups, states of 16 and 8
 * channels, takes for each token: scores 2 * 8 * 16 * 2, results 9 * 8, states 2 * 16 *
 * 8, twice. */
static void a_layer_executes_the_flop_counted_by_hand(void **state)
{
    (void)state;
    ms_model model = small_model();
    const ms_program *whole = layer(&model, (ms_program_key){.tp = 1});
    double products = 64.0 * (1344 + 128);
    ASSERT_NEAR(flop_of(whole, MS_PASS_FORWARD, false), products, 0.0);
    ASSERT_NEAR(flop_of(whole, MS_PASS_BACKWARD_INPUT, false), products, 0.0);
    ASSERT_NEAR(flop_of(whole, MS_PASS_BACKWARD_WEIGHT, false), products, 0.0);
    ASSERT_NEAR(flop_of(whole, MS_PASS_FORWARD, true), 64.0 * (512 + 72 + 512), 0.0);
    ASSERT_NEAR(flop_of(whole, MS_PASS_BACKWARD_INPUT, true),
                64.0 * (3 * 512 + 3 * 72 + 6 * 256), 0.0);
    const ms_program *half = layer(&model, (ms_program_key){.tp = 2});
    ASSERT_NEAR(flop_of(half, MS_PASS_FORWARD, true), 32.0 * (512 + 72 + 512), 0.0);
    ASSERT_NEAR(flop_of(half, MS_PASS_FORWARD, false), products / 2.0, 0.0);
}

static double saved_bytes(const ms_program *program)
{
    double bytes = 0.0;
    for (int t = 0; t < program->num_tensors; t++)
        if (program->tensors[t].saved)
            bytes += ms_tensor_local_bytes(program, t);
    return bytes;
}

/* A Mamba layer saves for backward its input and the input's norm (8 channels each), the
 * projection (84), and three results of the inner width (8): before the gate, after the
 * gate, and the latter's norm. */
static void a_layer_keeps_the_inputs_of_its_kernels(void **state)
{
    (void)state;
    ms_model model = small_model();
    ASSERT_NEAR(saved_bytes(layer(&model, (ms_program_key){.tp = 1})),
                2.0 * 64 * (8 + 8 + 84 + 3 * 8), 0.0);
    ASSERT_NEAR(saved_bytes(layer(&model, (ms_program_key){.tp = 2,
                                                           .sequence_parallel = true,
                                                           .regather = true})),
                2.0 * 32 * (8 + 8 + 84 + 3 * 8), 0.0);
    ASSERT_NEAR(saved_bytes(layer(
                    &model, (ms_program_key){.tp = 1, .recompute = MS_RECOMPUTE_FULL})),
                2.0 * 64 * 8, 0.0);
}

/* ---- the scan ---- */

/* A scan with all sizes 1: tokens, heads, channels of a head, groups, states, chunk. Its
 * convolution has 3 channels. So the traffic is 2 bytes (4 in fp32) times the number of
 * passes over memory. */
static void a_scan_moves_what_its_kernels_share(void **state)
{
    (void)state;
    ms_scan_shape one = {1, 1, 1, 1, 1, 1, 2.0, false};
    ASSERT_NEAR(ms_scan_traffic_bytes(one), 2.0 * (2 * 3 + 5 + 4 + 2) + 4.0 * (2 + 2),
                0.0);
    one.backward = true;
    ASSERT_NEAR(ms_scan_traffic_bytes(one), 2.0 * (5 * 3 + 17 + 18 + 7) + 4.0 * (4 + 6),
                0.0);
}

/* A scan's FLOP and traffic are linear in the sequence (Dao and Gu 2024, section 6),
 * but not in the chunk size: states are written once a chunk, scores grow with it. */
static void a_scan_is_linear_in_tokens_and_not_in_chunks(void **state)
{
    (void)state;
    ms_scan_shape shape = {8192, 64, 64, 128, 8, 128, 2.0, false};
    ms_scan_shape twice = shape, wide = shape;
    twice.tokens *= 2.0;
    wide.chunk_tokens = 256;
    ASSERT_NEAR(ms_scan_traffic_bytes(twice), 2.0 * ms_scan_traffic_bytes(shape), 1e-12);
    ASSERT_NEAR(ms_scan_flop(twice), 2.0 * ms_scan_flop(shape), 1e-12);
    assert_true(ms_scan_traffic_bytes(wide) < ms_scan_traffic_bytes(shape));
    assert_true(ms_scan_flop(wide) > ms_scan_flop(shape));
}

/* On an H100 the scan takes the time of its memory traffic. Its matrix products would
 * take a tenth of that; they set the time only where memory is infinitely fast. With
 * scan_loss 3 the scan takes four times the time of its traffic. */
static void a_scan_takes_the_time_of_its_traffic(void **state)
{
    (void)state;
    static const ms_device device;
    static const ms_profile profile;
    ms_stack stack = {.scan_loss.value = 0};
    ms_pricer pricer = {.device = &device,
                        .profile = &profile,
                        .stack = &stack,
                        .compute = MS_BF16,
                        .hbm_bytes_per_s = 2.68e12,
                        .gemm_flop_per_s = 6.4e14};
    ms_scan_shape shape = {8192, 64, 64, 128, 8, 128, 2.0, false};
    ASSERT_NEAR(ms_scan_s(&pricer, shape), 8192 * 131072.0 / 2.68e12, 1e-12);
    stack.scan_loss.value = 3;
    ASSERT_NEAR(ms_scan_s(&pricer, shape), 4 * 8192 * 131072.0 / 2.68e12, 1e-12);
    pricer.hbm_bytes_per_s = 1e18;
    ASSERT_NEAR(ms_scan_s(&pricer, shape), ms_scan_flop(shape) / 6.4e14, 1e-12);
}

/* ---- plans ---- */

static ms_plan plan_of(const char *model, long pp, long dp, long tp)
{
    ms_plan plan = ms_plan_default(pp * dp * tp);
    plan.stack = "generic";
    plan.model = model;
    plan.size[MS_PP] = pp;
    plan.size[MS_DP_SHARD] = dp;
    plan.size[MS_TP] = tp;
    plan.sequence_length = 4096;
    plan.global_batch = 8 * dp;
    plan.zero = 1;
    return plan;
}

static void what_cannot_be_split_is_refused(void **state)
{
    (void)state;
    const ms_model *model = load("nemotron-h-8b");
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of("nemotron-h-8b", 1, 1, 16);
    ASSERT_INT(ms_plan_refusal(&plan, model), MS_REFUSE_MAMBA);
    ASSERT_INT(ms_plan_check(cx, &plan, model, MS_NOWHERE), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "8 groups of Mamba-2 heads cannot be "
                                              "divided by tp 16"));
    plan = plan_of("nemotron-h-8b", 1, 1, 8);
    ASSERT_INT(ms_plan_refusal(&plan, model), MS_LEGAL);
    plan.gpus = 16;
    plan.size[MS_CP] = 2;
    ASSERT_INT(ms_plan_refusal(&plan, model), MS_REFUSE_MAMBA);
    ASSERT_INT(ms_plan_check(cx, &plan, model, MS_NOWHERE), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "is not priced"));
}

static double seconds_of(const ms_bill *bill)
{
    return bill->compute_s[MS_BILL_FORWARD] + bill->compute_s[MS_BILL_BACKWARD];
}

/* Stages are split by time, whatever kinds of layers they hold: none is longer than
 * the mean by more than the longest layer. */
static void a_pipeline_is_cut_by_the_pattern(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of("nemotron-h-8b", 4, 1, 1);
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
    ms_planned planned;
    ms_planned_open(cx, workload, &plan, &planned);
    const ms_split *split = planned.pipeline.split;
    long sum = 0;
    double stage_s[4] = {seconds_of(&planned.bills->embed), 0.0, 0.0,
                         seconds_of(&planned.bills->head)};
    double total_s = stage_s[0] + stage_s[3], longest_s = 0.0;
    for (int s = 0; s < 4; s++) {
        sum += split->layers[s];
        for (long i = split->first_layer[s]; i < split->first_layer[s] + split->layers[s];
             i++) {
            const ms_bill *bill =
                planned.bills
                    ->layer[workload->model->kind_of_layer[i]][MS_RECOMPUTE_NONE];
            stage_s[s] += seconds_of(bill);
            total_s += seconds_of(bill);
            longest_s = fmax(longest_s, seconds_of(bill));
        }
    }
    ASSERT_INT(sum, 52);
    for (int s = 0; s < 4; s++)
        assert_true(stage_s[s] <= total_s / 4.0 + longest_s);
    ms_workload_close(workload);
}

/* A rank has half of all parameters and activations, except norms, with tp 2. */
static void tensor_parallelism_halves_what_a_rank_holds(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    double params[2], kept[2];
    for (int i = 0; i < 2; i++) {
        ms_plan plan = plan_of("nemotron-3-nano-30b-a3b", 1, 8, 1 + i);
        plan.sequence_parallel = i == 1;
        plan.ep = 8;
        ms_workload *workload;
        ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
        ms_planned planned;
        ms_planned_open(cx, workload, &plan, &planned);
        const ms_bill *bill = planned.bills->layer[0][MS_RECOMPUTE_NONE];
        params[i] = bill->dense_params;
        kept[i] = bill->memory.saved.activation_bytes;
        ms_workload_close(workload);
    }
    ASSERT_NEAR(params[1], (params[0] + 2688.0) / 2.0, 1e-12);
    ASSERT_NEAR(params[0], 38742208.0 + 2688.0, 1e-12);
    assert_true(kept[1] >= kept[0] / 2.0 && kept[1] < 0.7 * kept[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_counted_by_hand),
        cmocka_unit_test(nemotron_3_nano_has_the_counts_of_its_card),
        cmocka_unit_test(nemotron_h_has_the_layers_of_its_paper),
        cmocka_unit_test(what_is_written_reads_back_as_the_same),
        cmocka_unit_test(bad_patterns_are_errors_where_they_stand),
        cmocka_unit_test(mamba_layers_and_sizes_belong_together),
        cmocka_unit_test(imports_that_are_not_supported_say_so),
        cmocka_unit_test(programs_are_sound_over_tp),
        cmocka_unit_test(a_layer_executes_the_flop_counted_by_hand),
        cmocka_unit_test(a_layer_keeps_the_inputs_of_its_kernels),
        cmocka_unit_test(a_scan_moves_what_its_kernels_share),
        cmocka_unit_test(a_scan_is_linear_in_tokens_and_not_in_chunks),
        cmocka_unit_test(a_scan_takes_the_time_of_its_traffic),
        cmocka_unit_test(what_cannot_be_split_is_refused),
        cmocka_unit_test(a_pipeline_is_cut_by_the_pattern),
        cmocka_unit_test(tensor_parallelism_halves_what_a_rank_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
