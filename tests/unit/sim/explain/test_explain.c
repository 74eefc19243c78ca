/* Explanations of a plan: the blocks of the model, reasons of collectives in words,
 * the coefficients that enter, and answers that rest on predictions of other plans. */
#include "sim/explain/explain.h"

#include "cli/report/report.h"
#include "costmodel/program/program_check.h"
#include "sim/explain/explain_view.h"
#include "tests/test.h"

#include <stdlib.h>

static ms_plan plan_for(const char *model, long gpus)
{
    ms_plan plan = ms_plan_default(gpus);
    plan.stack = "generic";
    plan.model = model;
    plan.size[MS_DP_SHARD] = gpus;
    plan.sequence_length = 1024;
    plan.global_batch = 4 * gpus;
    plan.zero = 1;
    return plan;
}

static ms_plan with_tp(ms_plan plan, long tp)
{
    plan.size[MS_TP] = tp;
    plan.size[MS_DP_SHARD] /= tp;
    plan.sequence_parallel = true;
    return plan;
}

static ms_explanation *explain(ms_ctx *cx, const ms_plan *plan,
                               const ms_explain_options *options)
{
    ms_explanation *e = MS_NEW(cx->arena, ms_explanation);
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_plan_check(cx, plan, workload->model, MS_NOWHERE), cx);
    ASSERT_OK(ms_explain(cx, workload, plan, options, e), cx);
    return e;
}

/* Closes the workload of an explanation, which the explanation points into. */
static void close_explained(const ms_explanation *e)
{
    ms_workload_close(e->planned->workload);
}

static const ms_explain_options brief = {.rank = -1};

/* ---- parts ---- */

static void parts_are_told_apart_by_what_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *model, *names[4];
        long layers[4];
    } rows[] = {
        {"llama-3.1-8b", {"embedding", "layer", "head"}, {1, 32, 1}},
        {"deepseek-v2-lite",
         {"embedding", "layer.dense", "layer.experts", "head"},
         {1, 1, 26, 1}},
        {"gemma-2-2b",
         {"embedding", "layer.window", "layer.global", "head"},
         {1, 13, 13, 1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = plan_for(rows[i].model, 8);
        const ms_explanation *e = explain(cx, &plan, &brief);
        for (int k = 0; k < e->num_blocks; k++) {
            ASSERT_TEXT(e->blocks[k].name, rows[i].names[k]);
            ASSERT_INT(e->blocks[k].num_layers, rows[i].layers[k]);
            ms_check_finding first;
            assert_true(ms_program_check(e->blocks[k].program, &first));
        }
        close_explained(e);
    }
}

static void recomputed_layers_are_a_part_of_their_own(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_for("llama-3.1-8b", 8);
    plan.recompute = MS_RECOMPUTE_FULL;
    plan.recompute_layers = 5;
    const ms_explanation *e = explain(cx, &plan, &brief);
    ASSERT_INT(e->num_blocks, 4);
    ASSERT_TEXT(e->blocks[1].name, "layer.recomputed");
    ASSERT_INT(e->blocks[1].num_layers, 5);
    ASSERT_TEXT(ms_explain_main_block(e)->name, "layer.kept");
    close_explained(e);
}

/* Blocks on other pipeline ranks are listed with the rank that holds them. */
static void parts_elsewhere_are_listed_with_their_rank(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = with_tp(plan_for("llama-3.1-8b", 16), 2);
    plan.size[MS_PP] = 4;
    plan.size[MS_DP_SHARD] = 2;
    ms_explain_options options = {.rank = 1};
    const ms_explanation *e = explain(cx, &plan, &options);
    int seen[4] = {0};
    for (int i = 0; i < e->num_collectives; i++) {
        const ms_explain_collective *c = &e->collectives[i];
        seen[c->rank]++;
        if (c->rank != 1)
            ASSERT_TEXT(c->block, c->rank == 0 ? "embedding" : "head");
        bool sync =
            c->entry->phase == MS_TRAFFIC_PARAMS || c->entry->phase == MS_TRAFFIC_GRADS;
        ASSERT_INT(isnan(c->entry->exposed_s), sync && e->prediction.ending_rank != 1);
    }
    assert_true(seen[0] > 0 && seen[1] > 0 && seen[2] == 0 && seen[3] > 0);
    close_explained(e);
}

/* ---- reasons ---- */

static const ms_explain_cause *cause_of(const ms_explanation *e, const char *pass,
                                        const char *tensor, const char *change)
{
    for (int i = 0; i < e->num_collectives; i++)
        for (int k = 0; k < e->collectives[i].num_causes; k++) {
            const ms_explain_cause *c = &e->collectives[i].causes[k];
            if (strcmp(c->pass, pass) == 0 && strcmp(c->tensor, tensor) == 0 &&
                strcmp(c->change, change) == 0)
                return c;
        }
    fail_msg("nothing changes %s in %s by %s", tensor, pass, change);
    return NULL;
}

static void reasons_name_those_who_ask(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = with_tp(plan_for("llama-3.1-8b", 16), 2);
    plan.size[MS_CP] = 2;
    plan.size[MS_DP_SHARD] = 4;
    const ms_explanation *e = explain(cx, &plan, &brief);
    static const struct {
        const char *pass, *tensor, *change, *why;
    } rows[] = {
        {"forward", "mlp.norm", "S(s) -> R @tp",
         "mlp.gate, up are split by f and need every s"},
        {"forward", "mlp.down", "P -> S(s) @tp",
         "mlp.down sums over f, of which each rank has a part"},
        {"forward", "attention.value", "S(s) -> R @cp",
         "attention.core: a rank's queries attend to every key before them"},
        {"recompute", "mlp.norm", "S(s) -> R @tp",
         "gradients of mlp.up, gate are split by f and need every s"},
        {"backward", "mlp.norm", "P -> S(s) @tp",
         "gradients of mlp.up, gate sum over f, of which each rank has a part"},
        {"backward", "attention.value", "P -> S(s) @cp",
         "gradients of attention.core have the part of each rank's own queries"},
        {"forward", "embedding.tokens", "P -> S(s) @tp",
         "embedding.tokens finds the rows of a rank's own part of v only"},
        {"forward", "loss.max", "P(max) -> R @tp",
         "loss.max is the maximum over each rank's part of v"},
        {"forward", "parameters", "S -> R @fsdp",
         "each rank updated its shard only, forward needs them all"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ASSERT_TEXT(cause_of(e, rows[i].pass, rows[i].tensor, rows[i].change)->why,
                    rows[i].why);
    close_explained(e);
}

/* The explanation of gathers says that a rank keeps a shard of the parameters under
 * ZeRO-3, and all of them under ZeRO-1 and 2. */
static void gathers_say_what_a_rank_keeps(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    for (long zero = 1; zero <= 3; zero++) {
        ms_plan plan = plan_for("llama-3.1-8b", 8);
        plan.zero = zero;
        plan.reshard_after_forward = zero == 3;
        const ms_explanation *e = explain(cx, &plan, &brief);
        ASSERT_TEXT(cause_of(e, "forward", "parameters", "S -> R @dp_shard")->why,
                    zero == 3
                        ? "each rank keeps a shard, forward needs them whole"
                        : "each rank updated its shard only, forward needs them all");
        close_explained(e);
    }
}

/* The sends of ring attention are listed apart by the work that hides them; no work
 * hides the last one, of gradients. */
static void the_last_hop_of_a_ring_is_told_apart(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_for("llama-3.1-8b", 8);
    plan.size[MS_DP_SHARD] = 2;
    plan.size[MS_CP] = 4;
    plan.cp_method = MS_CP_RING;
    const ms_explanation *e = explain(cx, &plan, &brief);
    int last_hops = 0;
    for (int i = 0; i < e->num_collectives; i++) {
        const ms_explain_collective *c = &e->collectives[i];
        if (strcmp(c->axis, "cp") != 0)
            continue;
        ASSERT_INT(c->num_causes, 1);
        if (strstr(c->causes[0].why, "the last hop") == NULL)
            continue;
        last_hops++;
        ASSERT_NEAR(c->entry->per_block, 1.0, 0);
        ASSERT_NEAR(c->entry->exposed_s, c->entry->count * c->entry->one_s, 1e-12);
    }
    ASSERT_INT(last_hops, 1);
    close_explained(e);
}

static void exchanges_say_which_way_they_go(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_for("mixtral-8x7b", 16);
    plan.ep = 8;
    const ms_explanation *e = explain(cx, &plan, &brief);
    ASSERT_TEXT(cause_of(e, "forward", "experts.dispatch", "by token -> by expert")->why,
                "tokens go to the ranks that hold their experts (dispatch)");
    ASSERT_TEXT(cause_of(e, "backward", "experts.dispatch", "by expert -> by token")->why,
                "gradients of the tokens return to where the tokens are");
    close_explained(e);
}

/* ---- figures ---- */

static const ms_explain_figure *figure_named(const ms_explanation *e, const char *key)
{
    for (int i = 0; i < e->num_figures; i++)
        if (strcmp(e->figures[i].key, key) == 0)
            return &e->figures[i];
    return NULL;
}

static void figures_that_do_not_enter_are_left_out(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_explain_options options = {.rank = -1, .figures = true};
    ms_plan node = plan_for("llama-3.1-8b", 8), nodes = plan_for("llama-3.1-8b", 16);
    const ms_explanation *inside = explain(cx, &node, &options);
    assert_non_null(figure_named(inside, "link.frac"));
    assert_null(figure_named(inside, "networks.infiniband.bandwidth_frac"));
    assert_null(figure_named(inside, "levels.leaf.bandwidth"));
    assert_null(figure_named(inside, "all_to_all.frac"));
    /* not among the figures, since the plan has no all-reduce large enough for NVLS */
    assert_null(figure_named(inside, "nvls.base"));
    /* a switch has no relative effect */
    assert_true(isnan(figure_named(inside, "dp_overlap")->step_effect));
    assert_null(figure_named(inside, "gemm.fp16.efficiency"));
    assert_null(figure_named(inside, "usd_per_gpu_hour"));
    assert_null(figure_named(inside, "tp_overlap"));
    const ms_explanation *across = explain(cx, &nodes, &options);
    assert_non_null(figure_named(across, "networks.infiniband.bandwidth_frac"));
    assert_non_null(figure_named(across, "levels.leaf.bandwidth"));
    assert_null(figure_named(across, "networks.roce.bandwidth_frac"));
    close_explained(across);
    close_explained(inside);
}

/* Effects are relative changes of the step time: compute time is inversely
 * proportional to the power limit, so on one device the step changes by most of the
 * limit's change, and no more. */
static void effects_are_relative_changes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_explain_options options = {.rank = -1, .figures = true};
    ms_plan plan = plan_for("gpt2-xl", 1);
    plan.zero = 0;
    const ms_explanation *e = explain(cx, &plan, &options);
    const ms_explain_figure *power = figure_named(e, "device.tdp_w");
    assert_true(power->step_effect < -0.4 && power->step_effect > -1.0);
    ASSERT_NEAR(power->memory_effect, 0.0, 0);
    ASSERT_NEAR(power->value, 700.0, 1e-12);
    ASSERT_INT(power->from, MS_SPEC);
    /* fp32 moments are 8 of the 2 + 4 + 4 + 8 bytes of a parameter; activations come
     * on top */
    const ms_explain_figure *moments = figure_named(e, "moment_bytes");
    assert_true(moments->memory_effect > 0.05 && moments->memory_effect < 8.0 / 18.0);
    ASSERT_NEAR(moments->step_effect, 0.0, 0);
    ASSERT_INT(moments->from, MS_ASSUMED);
    assert_true(strlen(moments->source) > 0);
    for (int i = 1; i < e->num_figures; i++) {
        double before = e->figures[i - 1].step_effect, now = e->figures[i].step_effect;
        if (!isnan(before) && !isnan(now))
            assert_true(fabs(now) <= fabs(before) + 1e-6 || fabs(before) < 1e-6);
    }
    close_explained(e);
}

/* ---- answers ---- */

static const char *answer_of(const ms_explanation *e, const char *key)
{
    for (int i = 0; i < MS_NUM_ANSWERS; i++)
        if (strcmp(e->answers[i].key, key) == 0)
            return e->answers[i].answer;
    fail_msg("no answer %s", key);
    return NULL;
}

static void assert_holds(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

/* A GPT-3 layer saves 34 s b h bytes: 10 whole and 24 split over tp, all split with
 * sequence parallelism (Korthikanti et al. 2022, table 2). */
static void activations_are_those_of_the_paper(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = with_tp(plan_for("gpt3-175b", 16), 8);
    ms_explain_options options = {.rank = -1, .answers = true};
    const ms_explanation *e = explain(cx, &plan, &options);
    const char *text = answer_of(e, "activations");
    /* the .03 beyond the paper's 24: log-sum-exp of attention, 4 b s a bytes with a
     * heads */
    assert_holds(text, "10 + 24.03/8 with tp 8");
    assert_holds(text, "0 + 34.03/8 with sequence parallelism (this plan)");
    close_explained(e);
}

/* The step time that an answer states for an alternative plan is the prediction of
 * that plan. */
static void answers_rest_on_predictions(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = with_tp(plan_for("llama-3.1-8b", 16), 4), half = plan;
    half.size[MS_TP] = 2;
    half.size[MS_DP_SHARD] = 8;
    ms_explain_options options = {.rank = -1, .answers = true};
    const ms_explanation *e = explain(cx, &plan, &options);
    const ms_explanation *other = explain(cx, &half, &brief);
    ms_prediction p = other->prediction;
    close_explained(other);
    const char *text = answer_of(e, "tensor_parallel");
    assert_holds(text, "tp 2 x dp_shard 8");
    assert_holds(text, ms_arena_printf(cx->arena, "(%+.1f %%)",
                                       100.0 * (p.step_s / e->prediction.step_s - 1.0)));
    assert_holds(answer_of(e, "nodes"), "tp stays inside");
    assert_holds(answer_of(e, "nodes"), "dp_shard crosses nodes");
    assert_holds(answer_of(e, "pipeline"), "there is no pipeline");
    assert_holds(answer_of(e, "order"), "no order is faster: dp_shard,tp takes");
    close_explained(e);
}

/* The MLP width at which matrix products take as long as tensor-parallel traffic, for
 * Llama 3.1 70B with tp 8. Products: gate, up and down with f/8 columns or rows on a
 * rank, each run for its result and for the gradients of both operands. Traffic: 5
 * movements of 2 s h bytes, namely all-gathers before the MLP in forward, before it in
 * backward, and of its input again for the weights' gradients; and a reduce-scatter after
 * it in forward and in backward. */
static void the_width_makes_products_as_long_as_traffic(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = with_tp(plan_for("llama-3.1-70b", 16), 8);
    plan.sequence_length = 8192;
    ms_explain_options options = {.rank = -1, .answers = true};
    ms_explanation *e = MS_NEW(cx->arena, ms_explanation);
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
    ASSERT_OK(ms_explain(cx, workload, &plan, &options, e), cx);
    double s = 8192, h = 8192, f = 28672, part = f / 8;
    const ms_gemm_shape wide = {1, s, part, h, 2, 2}, narrow = {1, s, h, part, 2, 2},
                        in = {1, h, part, s, 2, 8},
                        out = {1, part, h, s, 2, 8}; /* results are fp32 sums */
    const ms_pricer *pricer = &workload->pricer;
    /* gate and up each run `wide` for the result, `narrow` for the input's gradient and
     * `in` for the weight's gradient; down runs `narrow`, `wide` and `out` for these */
    double products_s = 3 * ms_gemm_s(pricer, wide) + 3 * ms_gemm_s(pricer, narrow) +
                        2 * ms_gemm_s(pricer, in) + ms_gemm_s(pricer, out);
    const ms_collective_law *gather = &e->planned->links.law[MS_BILL_TP][MS_ALL_GATHER];
    double traffic_s = 5 * ms_collective_s(gather, 2 * s * h);
    assert_holds(answer_of(e, "tensor_parallel"),
                 ms_arena_printf(cx->arena, "at a width of %.0f, the model has 28672",
                                 f * traffic_s / products_s));
    ms_workload_close(workload);
}

/* A plan without tensor parallelism is told the same MLP width, at which products take
 * as long as tensor-parallel traffic, as the plan with tp 2. */
static void the_width_is_known_without_tensor_parallelism(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_explain_options options = {.rank = -1, .answers = true};
    const char *width[2];
    for (int i = 0; i < 2; i++) {
        ms_plan plan = plan_for("8b", 8);
        if (i == 1)
            plan = with_tp(plan, 2);
        ms_explanation *e = explain(cx, &plan, &options);
        width[i] = strstr(answer_of(e, "tensor_parallel"), "at a width of ");
        assert_non_null(width[i]);
        width[i] = ms_arena_strndup(cx->arena, width[i], strcspn(width[i], ","));
        close_explained(e);
    }
    ASSERT_TEXT(width[0], width[1]);
}

/* tp 2 changes the time of this plan by less than the printed digits: the answer must
 * not print "-0.0 %". */
static void differences_that_round_to_nothing_have_no_sign(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_for("deepseek-v3", 2048);
    plan.size[MS_PP] = 16;
    plan.size[MS_DP_SHARD] = 128;
    plan.ep = 64;
    plan.sequence_length = 4096;
    plan.global_batch = 16256;
    plan.recompute = MS_RECOMPUTE_FULL;
    ms_explain_options options = {.rank = -1, .answers = true};
    const ms_explanation *e = explain(cx, &plan, &options);
    assert_holds(answer_of(e, "tensor_parallel"), "tp 2 x dp_shard 64");
    assert_null(strstr(answer_of(e, "tensor_parallel"), "(-0.0 %)"));
    close_explained(e);
}

/* ---- names of parts ---- */

static void an_unknown_part_is_an_error(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_for("deepseek-v2-lite", 8);
    const ms_explanation *e = explain(cx, &plan, &brief);
    ASSERT_OK(ms_explain_check_block(cx, e, "layer.dense"), cx);
    ASSERT_OK(ms_explain_check_block(cx, e, "layer"), cx);
    ASSERT_INT(ms_explain_check_block(cx, e, "layers"), MS_EINPUT);
    assert_holds(test_messages(cx), "embedding, layer.dense, layer.experts, head");
    close_explained(e);
}

/* ---- types ---- */

static char *types_text(ms_ctx *cx, const ms_explanation *e, ms_status want)
{
    char *text = NULL;
    size_t length = 0;
    ms_output out = {.file = open_memstream(&text, &length)};
    assert_non_null(out.file);
    ASSERT_INT(ms_explain_types(cx, &out, e, "layer", false), want);
    (void)fclose(out.file);
    char *kept = ms_arena_strdup(cx->arena, text);
    free(text);
    return kept;
}

/* Breaks the program: claims that the partial sums of attention's output are whole. */
static void forget_reduction(const ms_program *program)
{
    for (int n = 0; n < program->num_forward_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (node->op == MS_OP_EINSUM && strcmp(node->name, "attention.output") == 0)
            program->tensors[node->out[0]].at[2] = ms_replicate;
    }
}

static void types_show_what_the_checker_finds(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = with_tp(plan_for("llama-3.1-8b", 8), 4);
    ms_explanation *e = explain(cx, &plan, &brief);
    assert_non_null(strstr(types_text(cx, e, MS_OK), "\nno finding\n"));
    forget_reduction(ms_explain_main_block(e)->program);
    const char *text = types_text(cx, e, MS_ECHECK);
    assert_null(strstr(text, "no finding"));
    assert_non_null(strstr(text, "(attention.output, einsum) on tp: "));
    assert_non_null(strstr(test_messages(cx), "of the type checker"));
    close_explained(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_told_apart_by_what_they_are),
        cmocka_unit_test(recomputed_layers_are_a_part_of_their_own),
        cmocka_unit_test(parts_elsewhere_are_listed_with_their_rank),
        cmocka_unit_test(reasons_name_those_who_ask),
        cmocka_unit_test(gathers_say_what_a_rank_keeps),
        cmocka_unit_test(the_last_hop_of_a_ring_is_told_apart),
        cmocka_unit_test(exchanges_say_which_way_they_go),
        cmocka_unit_test(figures_that_do_not_enter_are_left_out),
        cmocka_unit_test(effects_are_relative_changes),
        cmocka_unit_test(activations_are_those_of_the_paper),
        cmocka_unit_test(answers_rest_on_predictions),
        cmocka_unit_test(the_width_makes_products_as_long_as_traffic),
        cmocka_unit_test(the_width_is_known_without_tensor_parallelism),
        cmocka_unit_test(differences_that_round_to_nothing_have_no_sign),
        cmocka_unit_test(an_unknown_part_is_an_error),
        cmocka_unit_test(types_show_what_the_checker_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
