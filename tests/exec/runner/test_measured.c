/* Tests of what a run's recorded events are summed up to: time per rank and per node
 * kind, and the trace; also after the records were sent to another process as bytes. */
#include "exec/runner/measured.h"
#include "exec/runner/outcome_collect.h"
#include "exec/runner/run_trace.h"
#include "sim/result/comparison.h"

#include "tests/test.h"

static void add(ms_recorder *r, const char *name, int kind, int stream, double start_s,
                double seconds)
{
    r->on = true;
    r->microbatch = 1;
    ms_recorder_add(r, (ms_recorded){.name = name,
                                     .kind = (unsigned char)kind,
                                     .stream = (unsigned char)stream,
                                     .start_s = start_s,
                                     .end_s = start_s + seconds,
                                     .waits = kind == MS_TASK_COLLECTIVE,
                                     .predicted_s = seconds / 2.0});
}

/* Makes the outcome of one rank: a slow step of 20 s, then two recorded steps of 10 s,
 * each with 4 s of matrix product, 2 s of waiting for a collective and 1 s of
 * optimizer. */
static ms_outcome one_rank(ms_rank_outcome *rank, double *step_s)
{
    *rank = (ms_rank_outcome){.ledger = {.peak_bytes = 640.0}};
    for (int step = 0; step < 2; step++) {
        double at_s = 20.0 + 10.0 * step;
        add(&rank->recorder, "mlp.down", MS_TASK_FORWARD, MS_STREAM_COMPUTE, at_s, 4.0);
        add(&rank->recorder, "mlp.down", MS_TASK_COLLECTIVE, MS_STREAM_TP, at_s + 4, 2.0);
        add(&rank->recorder, "optimizer", MS_TASK_OPTIMIZER, MS_STREAM_COMPUTE, at_s + 6,
            1.0);
    }
    step_s[0] = 20.0;
    step_s[1] = step_s[2] = 10.0;
    return (ms_outcome){.steps_done = 3, .step_s = step_s, .num_ranks = 1, .ranks = rank};
}

static void times_sum_to_the_step(void **state)
{
    (void)state;
    ms_rank_outcome rank;
    double step_s[3];
    ms_outcome outcome = one_rank(&rank, step_s);
    ms_measured m;
    ms_measured_make(test_cx()->arena, &outcome, 1, 100.0, NULL, &m);
    ASSERT_INT(m.num_steps, 2);
    ASSERT_NEAR(m.step_s, 10.0, 0.0);
    ASSERT_NEAR(m.tokens_per_s, 10.0, 0.0);
    ASSERT_NEAR(m.times[0].compute_s, 4.0, 1e-12);
    ASSERT_NEAR(m.times[0].exposed_comm_s, 2.0, 1e-12);
    ASSERT_NEAR(m.times[0].optimizer_s, 1.0, 1e-12);
    ASSERT_NEAR(m.times[0].host_s, 3.0, 1e-12);
    ASSERT_INT(m.kinds.num, 3);
    ASSERT_TEXT(m.kinds.kinds[0].name, "mlp.down");
    ASSERT_NEAR(m.kinds.kinds[0].measured_s, 4.0, 1e-12);
    ASSERT_NEAR(m.kinds.kinds[0].predicted_s, 2.0, 1e-12);
    ASSERT_NEAR(m.kinds.kinds[0].count, 1.0, 0.0);
    /* no warm-up: the slow step counts; the median step is 10 s, all steps take 40 s */
    ms_measured_make(test_cx()->arena, &outcome, 0, 100.0, NULL, &m);
    ASSERT_NEAR(m.step_s, 10.0, 0.0);
    ASSERT_NEAR(m.times[0].compute_s, 8.0 / 4.0, 1e-12);
    ASSERT_NEAR(m.times[0].host_s, 10.0 - (8.0 + 4.0 + 2.0) / 4.0, 1e-12);
    ASSERT_NEAR(m.kinds.kinds[0].measured_s, 8.0 / 4.0, 1e-12);
    ms_outcome_close(&outcome);
}

static void the_hosts_clock_has_its_own_median(void **state)
{
    (void)state;
    ms_rank_outcome rank;
    double step_s[3], wall_s[] = {31.0, 13.0, 11.0};
    ms_outcome outcome = one_rank(&rank, step_s);
    ms_measured m;
    ms_measured_make(test_cx()->arena, &outcome, 1, 100.0, NULL, &m);
    assert_true(isnan(m.wall_step_s));
    outcome.wall_s = wall_s;
    ms_measured_make(test_cx()->arena, &outcome, 1, 100.0, NULL, &m);
    ASSERT_NEAR(m.wall_step_s, 12.0, 0.0);
    ASSERT_NEAR(m.step_s, 10.0, 0.0);
    ms_outcome_close(&outcome);
}

static void a_rank_travels_as_bytes(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    ms_rank_outcome rank, copy;
    double step_s[3];
    ms_ledger_sample samples[2] = {{.time_s = 1.0}, {.time_s = 2.0, .action = 5}};
    ms_outcome outcome = one_rank(&rank, step_s);
    rank.rank = 7;
    rank.samples = samples;
    rank.num_samples = 2;
    rank.step_s = (double[]){4.0, 1.0, 2.0};
    ms_packed packed = ms_rank_outcome_pack(arena, &rank, 3);
    ASSERT_INT(packed.num_bytes % sizeof(long), 0);
    ms_rank_outcome_unpack(arena, &packed, &copy);
    ASSERT_INT(copy.rank, 7);
    ASSERT_INT(copy.num_samples, 2);
    ASSERT_INT(copy.samples[1].action, 5);
    for (int i = 0; i < 3; i++)
        ASSERT_NEAR(copy.step_s[i], rank.step_s[i], 0.0);
    ASSERT_NEAR(copy.ledger.peak_bytes, 640.0, 0.0);
    ASSERT_INT(copy.recorder.num, rank.recorder.num);
    for (long i = 0; i < copy.recorder.num; i++) {
        const ms_recorded *got = &copy.recorder.slices[i],
                          *want = &rank.recorder.slices[i];
        ASSERT_TEXT(got->name, want->name);
        assert_true(got->start_s == want->start_s && got->kind == want->kind &&
                    got->microbatch == 1 && got->waits == want->waits);
    }
    ms_recorder_close(&copy.recorder);
    ms_outcome_close(&outcome);
}

static ms_result read_trace(ms_ctx *cx, const ms_outcome *outcome)
{
    ms_plan plan = ms_plan_default(1);
    plan.model = "small";
    ms_measured measured;
    ms_measured_make(cx->arena, outcome, 1, 100.0, NULL, &measured);
    ms_run_trace trace = {&plan, "loop", 10.0, 2, 1, outcome->ranks, &measured.kinds};
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_run_trace_write(file, cx->arena, &trace);
    const char *text = test_read_back(cx->arena, file);
    ms_jdoc *doc;
    ms_jval root;
    ms_result result;
    ASSERT_OK(ms_json_parse(cx, "trace", text, strlen(text), &doc, &root), cx);
    ASSERT_OK(ms_result_read(cx, root, &result), cx);
    ms_json_close(doc);
    return result;
}

static void traces_read_back_and_differences_are_sorted(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_rank_outcome ranks[2];
    double step_s[3];
    ms_outcome outcome = one_rank(&ranks[0], step_s);
    ms_result a = read_trace(cx, &outcome);
    ASSERT_INT(a.num_nodes, 3);
    ASSERT_TEXT(a.nodes[0].kind, "mlp.down forward");
    ASSERT_NEAR(a.nodes[0].seconds, 4.0, 1e-9);
    ms_outcome other = one_rank(&ranks[1], step_s);
    add(&ranks[1].recorder, "loss", MS_TASK_FORWARD, MS_STREAM_COMPUTE, 50.0, 6.0);
    ms_result b = read_trace(cx, &other);
    ms_comparison c = ms_comparison_make(cx->arena, &a, &b);
    ASSERT_INT(c.num_nodes, 4);
    ASSERT_TEXT(c.nodes[0].kind, "loss forward");
    assert_true(isnan(c.nodes[0].a_s));
    ASSERT_NEAR(ms_compared_difference_s(&c.nodes[0]), 3.0, 1e-9);
    ASSERT_NEAR(c.rest.a_s, 3.0, 1e-9);
    ASSERT_NEAR(ms_compared_difference_s(&c.rest), -3.0, 1e-9);
    ms_outcome_close(&outcome);
    ms_outcome_close(&other);
}

static void other_documents_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[]",
        "{}",
        "{\"schema\": \"meshsim.plan/1\"}",
        "{\"schema\": 3}",
        "{\"schema\": \"meshsim.run/1\", \"measured\": 1}",
        "{\"schema\": \"meshsim.prediction/1\", \"step_s\": -1}",
        "{\"schema\": \"meshsim.prediction/1\", \"step_s\": \"1 s\"}",
        "{\"traceEvents\": 1}",
        "{\"traceEvents\": [], \"otherData\": {\"step_s\": 0}}",
        "{\"traceEvents\": [{\"ph\": \"X\"}], \"otherData\": {\"step_s\": 1}}",
        "{\"traceEvents\": [1], \"otherData\": {\"step_s\": 1}}",
        "{\"traceEvents\": [], \"otherData\": {\"step_s\": 1, \"ranks\": 1}}",
        "{\"traceEvents\": [], \"otherData\": {\"step_s\": 1, \"ranks\": 0, \"nodes\": []}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ms_ctx *cx = test_cx();
        ms_jdoc *doc;
        ms_jval root;
        ms_result result;
        ASSERT_OK(ms_json_parse(cx, "x", texts[i], strlen(texts[i]), &doc, &root), cx);
        ASSERT_INT(ms_result_read(cx, root, &result), MS_EINPUT);
        assert_true(cx->num_errors > 0);
        ms_json_close(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_sum_to_the_step),
        cmocka_unit_test(the_hosts_clock_has_its_own_median),
        cmocka_unit_test(a_rank_travels_as_bytes),
        cmocka_unit_test(traces_read_back_and_differences_are_sorted),
        cmocka_unit_test(other_documents_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
