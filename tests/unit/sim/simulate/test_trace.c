/* Trace files of simulations: the traces written are accepted by the checker of
 * traces, and broken ones are not. */
#include "sim/simulate/trace.h"

#include "base/rng.h"
#include "tests/support/hand_simulation.h"
#include "tests/support/trace_check.h"
#include "tests/test.h"

static const char *trace_of(ms_ctx *cx, const ms_simulation *s,
                            const ms_trace_options *options)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_trace_write(file, cx->arena, s, options);
    return test_read_back(cx->arena, file);
}

static ms_trace_facts *check(ms_ctx *cx, const char *text)
{
    ms_trace_facts *facts = MS_NEW(cx->arena, ms_trace_facts);
    const char *wrong = ms_trace_check(cx, text, strlen(text), facts);
    if (wrong != NULL) {
        ms_diag_print(cx, stderr);
        fail_msg("%s", wrong);
    }
    return facts;
}

static void a_pipeline_has_processes_threads_and_arrows(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_simulation *s = ms_hand_simulation(cx->arena, 1.0);
    const char *text = trace_of(cx, s, &(ms_trace_options){0});
    const ms_trace_facts *facts = check(cx, text);
    ASSERT_INT(facts->num_processes, 3);
    ASSERT_TEXT(facts->processes[0].name, "rank 0 (pp 0, stands for 64 ranks)");
    ASSERT_TEXT(facts->processes[2].name, "rank 127 (pp 1, computes 1.5 times as long)");
    ASSERT_INT(facts->num_threads, 6); /* compute and send of 3 ranks */
    /* 3 ranks with 4 actions and the optimizer each; 3 ranks with 2 sends each */
    ASSERT_INT(facts->num_slices, 15 + 6);
    /* messages: 2 forward to each of two ranks, 2 back */
    ASSERT_INT(facts->num_flows, 2 * 2 + 2);
    ASSERT_INT(facts->num_counters, 9);
    assert_non_null(strstr(text, "\"name\": \"forward 1\""));
    assert_non_null(strstr(text, "\"link_bytes\": 2500000000"));
}

/* A process's compute slices and idle time add up to the step. */
static void slices_add_up_to_the_step(void **state)
{
    (void)state;
    const double stretches[] = {1.0, 0.001, 1.0 / 3.0, 1e-7, 7777.7777777};
    for (size_t i = 0; i < sizeof stretches / sizeof stretches[0]; i++) {
        ms_ctx *cx = test_cx();
        const ms_simulation *s = ms_hand_simulation(cx->arena, stretches[i]);
        const ms_trace_facts *facts = check(cx, trace_of(cx, s, &(ms_trace_options){0}));
        ASSERT_INT(facts->step_end_ns, llround(s->step_s * 1e9));
        for (int p = 0; p < facts->num_processes; p++) {
            const ms_actor *a = &s->actors[p];
            double idle_s = a->exposed_comm_s + a->bubble_s + a->host_s;
            double sum_ns = (double)facts->processes[p].compute_ns + idle_s * 1e9;
            /* rounding to a nanosecond per slice */
            assert_true(fabs(sum_ns - s->step_s * 1e9) <= 5.0);
        }
    }
}

static void ranks_can_be_chosen(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_simulation *s = ms_hand_simulation(cx->arena, 1.0);
    const int only[] = {2};
    const ms_trace_facts *facts =
        check(cx, trace_of(cx, s, &(ms_trace_options){1, only}));
    ASSERT_INT(facts->num_processes, 1);
    ASSERT_INT(facts->num_flows, 0);
    const int two[] = {2, 0};
    facts = check(cx, trace_of(cx, s, &(ms_trace_options){2, two}));
    ASSERT_INT(facts->processes[1].pid, 2);
    ASSERT_TEXT(facts->processes[1].name, "rank 0 (pp 0, stands for 64 ranks)");
    ASSERT_INT(facts->num_flows, 2);
}

/* Random tasks on one stream, many at the same time, with times in fractions of a
 * nanosecond, are drawn on separate lanes. */
static void tasks_at_once_get_lanes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        ms_ctx *cx = test_cx();
        ms_rng rng = ms_rng_seed(seed);
        ms_simulation *s = ms_hand_simulation(cx->arena, 1.0);
        double *start_s = MS_NEW_ARRAY(cx->arena, 1 + s->graph->num_tasks, double);
        double *end_s = MS_NEW_ARRAY(cx->arena, 1 + s->graph->num_tasks, double);
        long long taken_ns = 0;
        for (int task = 1; task <= s->graph->num_tasks; task++) {
            start_s[task] = ms_rng_uniform(&rng) * 1e-7;
            end_s[task] = start_s[task] + ms_rng_uniform(&rng) * 3e-8;
            if (ms_graph_tag(s->graph, task)->stream == MS_STREAM_COMPUTE)
                taken_ns += llround(end_s[task] * 1e9) - llround(start_s[task] * 1e9);
        }
        s->start_s = start_s;
        s->end_s = end_s;
        const char *text = trace_of(cx, s, &(ms_trace_options){0});
        const ms_trace_facts *facts = check(cx, text);
        for (int p = 0; p < facts->num_processes; p++)
            taken_ns -= facts->processes[p].compute_ns;
        ASSERT_INT(taken_ns, 0);
        assert_non_null(strstr(text, "\"name\": \"compute 2\""));
    }
}

static void links_have_counters(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_simulation *s = ms_hand_simulation(cx->arena, 1.0);
    const ms_link_sample samples[] = {
        {1.0, 0, 0.5}, {1.1, 0, 1.0}, {1.1, 0, 0.25}, {2.0, 0, 0.0}};
    ms_link_total *totals = MS_NEW_ARRAY(cx->arena, s->graph->num_links, ms_link_total);
    totals[0] = (ms_link_total){0.275, 0.5};
    s->link_totals = totals;
    s->num_link_samples = 4;
    s->link_samples = samples;
    const char *text = trace_of(cx, s, &(ms_trace_options){0});
    const ms_trace_facts *facts = check(cx, text);
    ASSERT_INT(facts->num_processes, 4);
    ASSERT_TEXT(facts->processes[3].name, "links");
    /* 3 counters for 4 samples, since two samples have the same time */
    ASSERT_INT(facts->processes[3].num_counters, 3);
    assert_non_null(strstr(text, "\"name\": \"leaf out\""));
    assert_null(strstr(text, "\"used_frac\": 1}"));
}

/* Replaces every `from` in a trace by `to`: the checker must refuse the trace for the
 * reason `why`. */
static void expect_wrong(const char *from, const char *to, const char *why)
{
    ms_ctx *cx = test_cx();
    const char *rest =
        trace_of(cx, ms_hand_simulation(cx->arena, 1.0), &(ms_trace_options){0});
    const char *text = "", *found = strstr(rest, from);
    assert_non_null(found);
    for (; found != NULL; found = strstr(rest, from)) {
        text =
            ms_arena_printf(cx->arena, "%s%.*s%s", text, (int)(found - rest), rest, to);
        rest = found + strlen(from);
    }
    text = ms_arena_printf(cx->arena, "%s%s", text, rest);
    ms_trace_facts *facts = MS_NEW(cx->arena, ms_trace_facts);
    const char *wrong = ms_trace_check(cx, text, strlen(text), facts);
    if (wrong == NULL || strstr(wrong, why) == NULL)
        fail_msg("\"%s\" for \"%s\": %s, want \"%s\"", to, from,
                 wrong == NULL ? "accepted" : wrong, why);
}

static void wrong_traces_are_refused(void **state)
{
    (void)state;
    expect_wrong("\"traceEvents\"", "\"events\"", "other keys");
    expect_wrong("\"dur\": 2000000", "\"dur\": 2000000.001", "before the one before it");
    expect_wrong("\"dur\": 250000", "\"dur\": 0", "dur > 0");
    expect_wrong("\"dur\": 250000", "\"dur\": 250000.0004", "no whole nanosecond");
    expect_wrong("\"cat\": \"optimizer\", ", "", "needs cat");
    expect_wrong("\"name\": \"thread_name\"", "\"name\": \"thread_nam\"",
                 "unknown metadata");
    expect_wrong("\"args\": {\"name\": \"send\"}", "\"args\": {}",
                 "without its argument");
    expect_wrong("\"name\": \"process_name\"", "\"name\": \"process_sort_index\"",
                 "without its argument");
    expect_wrong("\"pid\": 2", "\"pid\": 2147483648", "wrong type");
    expect_wrong("\"pid\": 3", "\"pid\": 2", "named twice");
    expect_wrong("\"params\": 2", "\"params\": -2", "negative");
    expect_wrong("\"bp\": \"e\"", "\"bp\": \"s\"", "needs bp e");
    expect_wrong("\"ph\": \"f\"", "\"ph\": \"s\"", "twice");
    expect_wrong("\"id\": 2, ", "", "needs cat, ts, id");
    expect_wrong("\"s\": \"g\"", "\"s\": \"x\"", "scope");
    expect_wrong("\"ph\": \"X\"", "\"ph\": \"B\"", "unknown phase");
    expect_wrong("\"stage\": 1}", "\"stage\": 1", "no JSON");
    expect_wrong("\"name\": \"backward 0\", \"pid\": 1",
                 "\"name\": \"backward 0\", \"pid\": 3", "thread without a name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_has_processes_threads_and_arrows),
        cmocka_unit_test(slices_add_up_to_the_step),
        cmocka_unit_test(ranks_can_be_chosen),
        cmocka_unit_test(tasks_at_once_get_lanes),
        cmocka_unit_test(links_have_counters),
        cmocka_unit_test(wrong_traces_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
