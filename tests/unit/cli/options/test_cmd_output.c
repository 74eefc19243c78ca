/* Output of the commands predict and search: the JSON keys that scripts read, flags
 * that reproduce the plan, and proposals of plans that fit as promised. */
#include "base/json.h"
#include "cli/options/plan_command.h"
#include "cli/report/report.h"
#include "sim/request/plan_options.h"
#include "sim/search/search_report.h"
#include "sim/search/shortfall.h"
#include "sim/search/ties.h"
#include "sim/step/prediction_text.h"
#include "tests/support/json_values.h"
#include "tests/test.h"

#define MAX_ARGUMENTS 64

/* ---- helpers ---- */

static ms_plan plan_of_flags(ms_ctx *cx, const char *line)
{
    ms_plan_options opts = {0};
    char *argv[MAX_ARGUMENTS];
    int argc = 0;
    for (char *word = strtok(ms_arena_strdup(cx->arena, line), " "); word != NULL;
         word = strtok(NULL, " "))
        argv[argc++] = word;
    ms_option_set set = {"plan", ms_plan_option_table(), &opts};
    ms_words words;
    ms_plan plan;
    cx->verbosity = -1;
    ASSERT_OK(ms_options_parse(cx, &set, 1, argc, argv, &words), cx);
    ASSERT_OK(ms_plan_from_options(cx, &opts, &plan), cx);
    return plan;
}

/* plan_of_flags with stack generic, whose predicted peaks include the context. */
static ms_plan generic_of_flags(ms_ctx *cx, const char *line)
{
    return plan_of_flags(cx, ms_arena_printf(cx->arena, "%s --stack generic", line));
}

static ms_workload *open_workload(ms_ctx *cx, const ms_plan *plan)
{
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    return workload;
}

static ms_jval prediction_json(ms_ctx *cx, const ms_prediction *prediction, ms_jdoc **doc)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_jout out = ms_jout_open(file);
    ms_prediction_write_json(&out, prediction);
    ms_jout_close(&out);
    return test_json(cx, file, doc);
}

/* ---- flags ---- */

static void assert_flags_give_it_back(const char *line)
{
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of_flags(cx, line);
    const char *flags = ms_plan_command_text(cx->arena, &plan);
    ms_plan again = plan_of_flags(cx, flags);
    if (!ms_plan_equal(&plan, &again))
        fail_msg("\"%s\" became \"%s\"", line, flags);
}

static void flags_of_a_plan_give_the_plan_back(void **state)
{
    (void)state;
    assert_flags_give_it_back("--model 8b --gpus 8");
    assert_flags_give_it_back("--model 70b --gpus 512 --tp 8 --pp 4 --zero 1");
    assert_flags_give_it_back(
        "--model 70b --gpus 512 --tp 8 --dp-replicate 4 --dp-shard 16 "
        "--reshard-after-forward off --recompute full "
        "--recompute-layers 3");
    assert_flags_give_it_back(
        "--model 405b --gpus 1024 --tp 8 --pp 8 --schedule interleaved "
        "--virtual-stages 2 --group 8 --microbatch 2 --global-batch "
        "2048 --seq 4096 --async-tp on --loss-parallel off");
    assert_flags_give_it_back(
        "--model mixtral-8x7b --gpus 64 --tp 2 --ep 8 --etp 2 --cluster "
        "hgx-a100-80g --stack megatron --sequence-parallel off");
    assert_flags_give_it_back(
        "--model 70b --gpus 64 --cp 4 --cp-balance none --tp 4 --order "
        "dp,pp,tp,cp --precision fp16 --recompute selective");
}

static void a_path_with_a_space_is_quoted(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of_flags(cx, "--model 8b --gpus 1");
    plan.model = "my model's/config.json";
    const char *flags = ms_plan_command_text(cx->arena, &plan);
    assert_non_null(strstr(flags, "--model 'my model'\\''s/config.json' --gpus 1"));
}

static void more_gpus_than_the_cluster_has_are_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = generic_of_flags(cx, "--model 8b --gpus 9");
    ms_cluster cluster = {.max_gpus = 8};
    ASSERT_INT(ms_plan_check_cluster(cx, &plan, &cluster), MS_EINPUT);
    cluster.max_gpus = 9;
    ASSERT_INT(ms_plan_check_cluster(cx, &plan, &cluster), MS_OK);
    cluster.max_gpus = 0;
    ASSERT_INT(ms_plan_check_cluster(cx, &plan, &cluster), MS_OK);
}

/* ---- predictions ---- */

static void prediction_json_has_the_documented_keys(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = generic_of_flags(cx, "--model 8b --gpus 16 --pp 2 --tp 2 --zero 1");
    ms_workload *workload = open_workload(cx, &plan);
    ms_prediction p;
    ASSERT_OK(ms_predict(cx, workload, &plan, &p), cx);
    ms_jdoc *doc;
    ms_jval root = prediction_json(cx, &p, &doc);
    ASSERT_NEAR(test_number(cx, root, "step_s"), p.step_s, 0.0);
    assert_true(test_number(cx, root, "step_s_low") <= p.step_s);
    assert_true(test_number(cx, root, "step_s_high") >= p.step_s);
    double tokens = 8192.0 * (double)plan.global_batch;
    ASSERT_NEAR(test_number(cx, root, "tokens_per_s"), tokens / p.step_s, 1e-12);
    ASSERT_NEAR(test_number(cx, root, "tokens_per_s_per_gpu"), tokens / p.step_s / 16.0,
                1e-12);
    ASSERT_NEAR(test_number(cx, root, "mfu_frac"), p.mfu_frac, 0.0);
    ASSERT_NEAR(test_number(cx, root, "hfu_frac"), p.hfu_frac, 0.0);
    double sum = test_number(cx, root, "compute_s") +
                 test_number(cx, root, "exposed_comm_s") +
                 test_number(cx, root, "bubble_s") +
                 test_number(cx, root, "optimizer_s") + test_number(cx, root, "host_s");
    ASSERT_NEAR(sum, p.step_s, 1e-9);
    ASSERT_INT(ms_json_length(test_member(cx, root, "stages")), 2);
    ASSERT_INT(ms_json_length(test_member(cx, root, "layers_per_stage")), 2);
    assert_true(ms_json_length(test_member(cx, root, "axes")) >= 3);
    ms_json_close(doc);
    ms_workload_close(workload);
}

static void memory_parts_sum_to_the_peak_in_json(void **state)
{
    (void)state;
    static const char *const parts[] = {"params",       "grads",   "optimizer",
                                        "activations",  "logits",  "gathered_params",
                                        "comm_buffers", "context", "fragmentation"};
    ms_ctx *cx = test_cx();
    ms_plan plan = generic_of_flags(cx, "--model 8b --gpus 16 --pp 2 --tp 2 --zero 1");
    ms_workload *workload = open_workload(cx, &plan);
    ms_prediction p;
    ASSERT_OK(ms_predict(cx, workload, &plan, &p), cx);
    ms_jdoc *doc;
    ms_jval memory = test_member(cx, prediction_json(cx, &p, &doc), "memory");
    double sum = 0.0;
    for (int i = 0; i < 9; i++)
        sum += test_number(cx, test_member(cx, memory, "parts"), parts[i]);
    ASSERT_INT(ms_json_length(test_member(cx, memory, "parts")), 9);
    ASSERT_NEAR(sum, test_number(cx, memory, "peak_bytes"), 1e-12);
    ASSERT_NEAR(test_number(cx, memory, "capacity_bytes"), p.capacity_bytes, 0.0);
    ms_json_close(doc);
    ms_workload_close(workload);
}

static const char *page(ms_ctx *cx, const ms_plan *plan)
{
    ms_workload *workload = open_workload(cx, plan);
    ms_prediction p;
    ASSERT_OK(ms_predict(cx, workload, plan, &p), cx);
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_prediction_print(file, cx->arena, plan, &p);
    ms_workload_close(workload);
    return test_read_back(cx->arena, file);
}

static void the_page_says_whether_the_plan_fits(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan small = generic_of_flags(cx, "--model 8b --gpus 16 --tp 2");
    ms_plan large = generic_of_flags(cx, "--model 70b --gpus 8");
    assert_non_null(strstr(page(cx, &small), "GiB free\n"));
    assert_null(strstr(page(cx, &small), "DOES NOT FIT"));
    assert_non_null(strstr(page(cx, &large), "DOES NOT FIT, "));
    ms_plan megatron = plan_of_flags(cx, "--model 8b --gpus 16 --tp 2 --stack megatron");
    assert_non_null(strstr(page(cx, &megatron), " of context and communicators of "));
    assert_null(strstr(page(cx, &small), "on the device"));
}

static void stated_types_and_the_optimizer_are_named(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = generic_of_flags(cx, "--model 8b --gpus 16 --tp 2");
    assert_null(strstr(page(cx, &plan), "grads bf16"));
    plan = generic_of_flags(cx, "--model 8b --gpus 16 --tp 2 --grad-dtype bf16 "
                                "--master-dtype none --optimizer lion");
    assert_non_null(strstr(page(cx, &plan), ", bf16, grads bf16, master none, lion"));
}

static void four_digits_are_shown_at_any_size(void **state)
{
    (void)state;
    ASSERT_INT(ms_decimals(12345.0), 0);
    ASSERT_INT(ms_decimals(12.34), 2);
    ASSERT_INT(ms_decimals(1.0), 3);
    ASSERT_INT(ms_decimals(0.0123), 5);
    ASSERT_INT(ms_decimals(0.0), 3);
    ASSERT_INT(ms_decimals((double)INFINITY), 3);
}

static const ms_search_options two_best = {.num_best = 2, .num_threads = 1};

/* ---- plans that would fit ---- */

static ms_shortfall shortfall_of(ms_ctx *cx, const char *line, ms_workload **workload)
{
    ms_plan plan = generic_of_flags(cx, line);
    *workload = open_workload(cx, &plan);
    ms_prediction p;
    ASSERT_OK(ms_predict(cx, *workload, &plan, &p), cx);
    assert_false(p.fits);
    ms_shortfall shortfall;
    ms_shortfall_of_plan(cx, *workload, &plan, &p, &two_best, &shortfall);
    ASSERT_NEAR(shortfall.needed_bytes, p.needed_bytes, 0.0);
    return shortfall;
}

/* The advice for a plan that does not fit is found after looking at no more than `most`
 * plans. It is none where parameters and optimizer states alone do not fit (deepseek-v3:
 * 671e9 parameters of 18 bytes); where few plans fit, it is far from hundreds of
 * millions. */
static void a_plan_that_does_not_fit_is_told_without_long_searches(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        long most;
    } rows[] = {
        {"--model deepseek-v3 --gpus 1", 0},
        {"--model qwen3-235b-a22b --cluster tpu-v5e --gpus 256 --seq 32k --global-batch "
         "16 --dp-shard 16 --tp 4 --cp 4",
         1000000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_ctx *cx = test_cx();
        ms_workload *workload;
        ms_shortfall shortfall = shortfall_of(cx, rows[i].line, &workload);
        assert_true(shortfall.change == NULL || rows[i].most > 0);
        assert_true(shortfall.configurations <= rows[i].most);
        ms_workload_close(workload);
    }
}

/* The plan that results from a plan file with flags that change it. */
static ms_plan changed_by_flags(ms_ctx *cx, const ms_plan *plan, const char *flags)
{
    char path[] = "/tmp/meshsim-test-change-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    ms_jout out = ms_jout_open(file);
    ms_plan_write_json(&out, plan);
    ms_jout_close(&out);
    ASSERT_INT(fclose(file), 0);
    ms_plan changed =
        plan_of_flags(cx, ms_arena_printf(cx->arena, "--plan %s %s", path, flags));
    ASSERT_INT(remove(path), 0);
    return changed;
}

static void the_proposed_change_fits_when_its_flags_are_used(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "--model 70b --gpus 64",
        "--model 70b --gpus 64 --tp 8 --zero 1",
        "--model 70b --gpus 64 --tp 4 --zero 0 --recompute full",
        "--model 70b --gpus 8 --tp 8 --zero 1",
        "--model 70b --gpus 64 --tp 8 --zero 1 --microbatch 8",
        "--model 8b --gpus 8 --seq 200k --global-batch 8",
        "--model 8b --gpus 8 --seq 200k --global-batch 8 --pp 8 --layers-per-stage "
        "4,4,4,4,4,4,4,4 --loss-parallel off",
        /* the proposal for this command is a plan on more GPUs */
        "--model llama-3.1-405b --gpus 8 --global-batch 500",
    };
    for (int i = 0; i < 8; i++) {
        ms_ctx *cx = test_cx();
        ms_workload *workload;
        ms_shortfall shortfall = shortfall_of(cx, lines[i], &workload);
        assert_non_null(shortfall.change);
        ms_plan plan = generic_of_flags(cx, lines[i]);
        plan = changed_by_flags(cx, &plan, shortfall.change);
        ms_prediction p;
        ASSERT_OK(ms_predict(cx, workload, &plan, &p), cx);
        assert_true(p.fits);
        ASSERT_NEAR(p.step_s, shortfall.step_s, 0.0);
        ASSERT_NEAR(p.peak_bytes, shortfall.peak_bytes, 0.0);
        ms_plan again =
            plan_of_flags(cx, ms_plan_command_text(cx->arena, &shortfall.changed));
        ASSERT_OK(ms_predict(cx, workload, &again, &p), cx);
        ASSERT_NEAR(p.step_s, shortfall.step_s, 0.0);
        ms_workload_close(workload);
    }
}

/* A proposal to use other GPUs or axis sizes states the ZeRO stage, if the proposed plan
 * would otherwise get another default stage. */
static void the_proposed_layout_says_its_zero(void **state)
{
    (void)state;
    static const struct {
        const char *kept, *replaced, *zero;
    } cases[] = {
        {"--model 70b --tp 8 --pp 2 ", "--gpus 16 --zero 1", "--zero 1"},
        {"--model 70b --recompute full ", "--gpus 16", "--zero 3"},
        {"--model 70b --gpus 64 --recompute full --seq 32k ", "--zero 3",
         "--tp 2 --dp-shard 32 --zero 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_workload *workload;
        ms_shortfall shortfall = shortfall_of(
            cx, ms_arena_printf(cx->arena, "%s%s", cases[i].kept, cases[i].replaced),
            &workload);
        assert_non_null(strstr(shortfall.change, cases[i].zero));
        ms_plan plan = generic_of_flags(
            cx, ms_arena_printf(cx->arena, "%s%s", cases[i].kept, shortfall.change));
        ms_prediction p;
        ASSERT_OK(ms_predict(cx, workload, &plan, &p), cx);
        ASSERT_NEAR(p.step_s, shortfall.step_s, 0.0);
        ASSERT_NEAR(p.peak_bytes, shortfall.peak_bytes, 0.0);
        ms_workload_close(workload);
    }
}

static void recomputation_is_proposed_before_anything_else(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_workload *workload;
    ms_shortfall shortfall = shortfall_of(cx, "--model 70b --gpus 64", &workload);
    ASSERT_TEXT(shortfall.change, "--recompute full");
    ASSERT_INT(ms_shortfall_fail(cx, &shortfall), MS_ENOFIT);
    assert_non_null(strstr(test_messages(cx), "GiB short"));
    assert_non_null(strstr(test_messages(cx), "--recompute full (step "));
    ms_workload_close(workload);
}

/* ---- search ---- */

typedef struct searched {
    ms_workload *workload;
    ms_space space;
    ms_search_result result;
    ms_status status;
} searched;

static void search(ms_ctx *cx, const char *line, searched *s)
{
    ms_plan base = generic_of_flags(cx, line);
    s->workload = open_workload(cx, &base);
    s->space = ms_space_all(&base, s->workload->stack);
    s->status = ms_search(cx, s->workload, &s->space, &two_best, &s->result);
    ms_search_tie(cx, s->workload, &s->space, &two_best, 0.0, &s->result);
}

static ms_jval search_json(ms_ctx *cx, const searched *s, const ms_shortfall *shortfall,
                           ms_jdoc **doc)
{
    ms_plan plans[2];
    ms_prediction predictions[2];
    for (int i = 0; i < s->result.num_found; i++) {
        const ms_plan *plan = &s->result.found[i].plan;
        ASSERT_OK(ms_predict(cx, s->workload, plan, &predictions[i]), cx);
        plans[i] = ms_prediction_plan(plan, &predictions[i]);
    }
    ms_search_report report = {.space = &s->space,
                               .limits = "",
                               .memory = &s->workload->memory,
                               .rules = &s->workload->rules,
                               .result = &s->result,
                               .num_threads = 1,
                               .plans = plans,
                               .predictions = predictions,
                               .shortfall = shortfall};
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_jout out = ms_jout_open(file);
    ms_jout_begin_object(&out);
    ms_search_write_fields(&out, &report);
    ms_jout_end_object(&out);
    ms_jout_close(&out);
    return test_json(cx, file, doc);
}

static void plans_of_a_search_read_back_predict_the_same(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    searched s;
    search(cx, "--model 8b --gpus 8", &s);
    ASSERT_INT(s.status, MS_OK);
    ms_jdoc *doc;
    ms_jval root = search_json(cx, &s, NULL, &doc);
    ms_jval plans = test_member(cx, root, "plans");
    ASSERT_INT(ms_json_length(plans), 2);
    for (int i = 0; i < 2; i++) {
        ms_jval entry = ms_json_element(cx, plans, i);
        ms_plan plan;
        ASSERT_OK(ms_plan_read(cx, test_member(cx, entry, "plan"), &plan), cx);
        ASSERT_INT(plan.num_stage_layers, plan.size[MS_PP] * plan.virtual_stages);
        ms_prediction p;
        ASSERT_OK(ms_predict(cx, s.workload, &plan, &p), cx);
        ASSERT_NEAR(p.step_s, s.result.found[i].step_s, 1e-12);
        ASSERT_NEAR(test_number(cx, test_member(cx, entry, "prediction"), "step_s"),
                    p.step_s, 1e-12);
    }
    ms_json_close(doc);
    ms_workload_close(s.workload);
}

static void search_json_has_the_documented_keys(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    searched s;
    search(cx, "--model 8b --gpus 8", &s);
    ms_jdoc *doc;
    ms_jval root = search_json(cx, &s, NULL, &doc);
    ASSERT_NEAR(test_number(cx, root, "elapsed_s"), s.result.elapsed_s, 0.0);
    ASSERT_NEAR(test_number(cx, root, "threads"), 1.0, 0.0);
    ms_jval space = test_member(cx, root, "space");
    ASSERT_NEAR(test_number(cx, space, "meshes"), (double)s.result.num_meshes, 0.0);
    ASSERT_NEAR(test_number(cx, space, "evaluated"), (double)s.result.counts.evaluated,
                0.0);
    ASSERT_NEAR(test_number(cx, space, "replayed"), (double)s.result.counts.replayed,
                0.0);
    ASSERT_NEAR(test_number(cx, space, "configurations"),
                (double)s.result.counts.configurations, 0.0);
    ASSERT_NEAR(test_number(cx, test_member(cx, space, "rejected"), "memory"),
                (double)s.result.counts.over_memory, 0.0);
    ms_jval certificate = test_member(cx, root, "certificate");
    bool optimal;
    ASSERT_OK(ms_json_bool(cx, test_member(cx, certificate, "optimal"), &optimal), cx);
    assert_true(optimal);
    ASSERT_NEAR(test_number(cx, certificate, "best_step_s"), s.result.found[0].step_s,
                1e-12);
    assert_true(ms_json_is_null(test_member(cx, certificate, "smallest_open_bound_s")));
    ASSERT_NEAR(test_number(cx, test_member(cx, root, "ties"), "band_frac"), 0.0, 0.0);
    ms_jval second = ms_json_element(cx, test_member(cx, root, "plans"), 1);
    bool fastest;
    ASSERT_NEAR(test_number(cx, second, "gap_frac"),
                s.result.found[1].step_s / s.result.found[0].step_s - 1.0, 1e-12);
    ASSERT_NEAR(test_number(cx, second, "tie_group"), 1.0, 0.0);
    ASSERT_OK(ms_json_bool(cx, test_member(cx, second, "fastest"), &fastest), cx);
    assert_false(fastest);
    ASSERT_INT(ms_json_length(test_member(cx, second, "faster_probability")), 2);
    ms_jval shortfall;
    assert_false(ms_json_member(cx, root, "shortfall", &shortfall));
    ms_json_close(doc);
    ms_workload_close(s.workload);
}

static void a_search_without_result_says_what_would_fit(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    searched s;
    search(cx, "--model 70b --gpus 7", &s);
    ASSERT_INT(s.status, MS_ENOFIT);
    ms_shortfall shortfall;
    ms_shortfall_of_search(cx, s.workload, &s.space, &two_best, &s.result, &shortfall);
    ms_jdoc *doc;
    ms_jval root = search_json(cx, &s, &shortfall, &doc);
    ASSERT_INT(ms_json_length(test_member(cx, root, "plans")), 0);
    ms_jval body = test_member(cx, root, "shortfall");
    double needed = test_number(cx, body, "needed_bytes"),
           has = test_number(cx, body, "capacity_bytes");
    assert_true(needed > has);
    ASSERT_NEAR(test_number(cx, body, "shortfall_bytes"), needed - has, 1e-12);
    assert_true(test_number(cx, test_member(cx, body, "nearest_change"), "peak_bytes") <=
                has);
    assert_non_null(strstr(shortfall.change, "--gpus "));
    ms_json_close(doc);
    ms_workload_close(s.workload);
}

static void limits_that_leave_no_legal_plan_need_no_memory_figure(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    searched s;
    ms_plan base = generic_of_flags(cx, "--model phi-3-medium --gpus 16");
    s.workload = open_workload(cx, &base);
    s.space = ms_space_all(&base, s.workload->stack);
    /* illegal: tp 4 does not divide the 10 key-value heads */
    ASSERT_OK(ms_space_limit(cx, &s.space, "tp=4"), cx);
    s.status = ms_search(cx, s.workload, &s.space, &two_best, &s.result);
    ASSERT_INT(s.status, MS_ENOFIT);
    ms_shortfall shortfall;
    ms_shortfall_of_search(cx, s.workload, &s.space, &two_best, &s.result, &shortfall);
    assert_true(isnan(shortfall.needed_bytes));
    assert_non_null(strstr(shortfall.reason, "heads 1"));
    ms_jdoc *doc;
    ms_jval body = test_member(cx, search_json(cx, &s, &shortfall, &doc), "shortfall");
    assert_true(ms_json_is_null(test_member(cx, body, "needed_bytes")));
    assert_true(ms_json_is_null(test_member(cx, body, "plan")));
    ms_json_close(doc);
    ms_workload_close(s.workload);
}

static void a_search_is_made_before_nothing_is_said_to_fit(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_workload *workload;
    ms_shortfall shortfall =
        shortfall_of(cx, "--model 8b --gpus 8 --seq 200k --global-batch 8", &workload);
    assert_true(shortfall.is_searched);
    ASSERT_INT(shortfall.changed.gpus, 8);
    assert_null(strstr(shortfall.change, "--gpus"));
    ms_shortfall_fail(cx, &shortfall);
    assert_non_null(strstr(test_messages(cx), "search finds a plan that does: --"));
    ms_workload_close(workload);
}

static void what_does_not_divide_is_not_searched_with_more_gpus(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    searched s;
    search(cx, "--model 8b --gpus 1003 --global-batch 1000", &s); /* 1003 = 17 x 59 */
    ASSERT_INT(s.status, MS_ENOFIT);
    assert_true(isinf(s.result.least_needed_bytes));
    ms_shortfall shortfall;
    ms_shortfall_of_search(cx, s.workload, &s.space, &two_best, &s.result, &shortfall);
    assert_null(shortfall.change);
    ms_workload_close(s.workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_of_a_plan_give_the_plan_back),
        cmocka_unit_test(a_path_with_a_space_is_quoted),
        cmocka_unit_test(more_gpus_than_the_cluster_has_are_refused),
        cmocka_unit_test(prediction_json_has_the_documented_keys),
        cmocka_unit_test(memory_parts_sum_to_the_peak_in_json),
        cmocka_unit_test(the_page_says_whether_the_plan_fits),
        cmocka_unit_test(stated_types_and_the_optimizer_are_named),
        cmocka_unit_test(four_digits_are_shown_at_any_size),
        cmocka_unit_test(the_proposed_change_fits_when_its_flags_are_used),
        cmocka_unit_test(the_proposed_layout_says_its_zero),
        cmocka_unit_test(recomputation_is_proposed_before_anything_else),
        cmocka_unit_test(plans_of_a_search_read_back_predict_the_same),
        cmocka_unit_test(search_json_has_the_documented_keys),
        cmocka_unit_test(a_search_without_result_says_what_would_fit),
        cmocka_unit_test(limits_that_leave_no_legal_plan_need_no_memory_figure),
        cmocka_unit_test(a_search_is_made_before_nothing_is_said_to_fit),
        cmocka_unit_test(what_does_not_divide_is_not_searched_with_more_gpus),
        cmocka_unit_test(a_plan_that_does_not_fit_is_told_without_long_searches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
