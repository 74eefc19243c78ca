/* Traces in the formats of Chakra and of PyTorch's profiler: those of a small plan are
 * accepted by their checkers and have its messages, and broken ones are not. */
#include "sim/simulate/trace_chakra.h"
#include "sim/simulate/trace_kineto.h"

#include "tests/support/chakra_read.h"
#include "tests/support/kineto_check.h"
#include "tests/test.h"

#define NUM_RANKS 4

typedef struct bench {
    ms_ctx *cx;
    ms_plan plan;
    ms_workload *workload;
    ms_planned planned;
    ms_simulation simulation;
    ms_rank_groups groups;
} bench;

/* llama-15m with pp 2 x tp 2 and 2 micro-batches, every rank by itself. */
static bench *open_bench(void)
{
    ms_ctx *cx = test_cx();
    bench *b = MS_NEW(cx->arena, bench);
    b->cx = cx;
    b->plan = ms_plan_default(NUM_RANKS);
    b->plan.model = "llama-15m";
    b->plan.size[MS_PP] = b->plan.size[MS_TP] = 2;
    b->plan.sequence_length = 64;
    b->plan.global_batch = 2;
    ms_plan_fill_defaults(&b->plan);
    ASSERT_OK(ms_workload_open(cx, &b->plan, &b->workload), cx);
    ASSERT_OK(ms_plan_check(cx, &b->plan, b->workload->model, MS_NOWHERE), cx);
    ms_planned_open(cx, b->workload, &b->plan, &b->planned);
    ms_simulate_options options = {
        .engine = MS_ENGINE_EVENT, .detail = MS_DETAIL_NODE, .unfolded = true};
    ASSERT_OK(ms_simulate(cx, &b->planned, &options, &b->simulation), cx);
    b->groups = ms_rank_groups_make(cx->arena, &b->simulation);
    return b;
}

static const char *chakra_bytes(bench *b, int actor, size_t *num)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_chakra_write(file, ms_chakra_open(b->cx->arena, &b->simulation, &b->groups, actor),
                    actor);
    *num = (size_t)ftell(file);
    return test_read_back(b->cx->arena, file);
}

static ms_chakra_trace *chakra_traces(bench *b)
{
    ms_chakra_trace *traces = MS_NEW_ARRAY(b->cx->arena, NUM_RANKS, ms_chakra_trace);
    for (int a = 0; a < NUM_RANKS; a++) {
        size_t num;
        const char *bytes = chakra_bytes(b, a, &num);
        const char *wrong =
            ms_chakra_read(b->cx->arena, (const unsigned char *)bytes, num, &traces[a]);
        if (wrong != NULL)
            fail_msg("rank %d: %s", a, wrong);
        ASSERT_TEXT(traces[a].version, "0.0.4");
    }
    return traces;
}

static const char *groups_of(bench *b, long num_written)
{
    bool is_written[NUM_RANKS] = {false};
    for (long i = 0; i < num_written; i++)
        is_written[i] = true;
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_chakra_write_groups(file, &b->groups, is_written);
    return test_read_back(b->cx->arena, file);
}

static ms_chakra_node *find(const ms_chakra_trace *trace, uint64_t type)
{
    for (int i = 0; i < trace->num_nodes; i++)
        if (trace->nodes[i].type == type)
            return &trace->nodes[i];
    fail_msg("no node of type %d", (int)type);
    return NULL;
}

/* ---- Chakra ---- */

static void a_run_takes_as_long_as_the_step(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_chakra_times times;
    const char *wrong =
        ms_chakra_run(b->cx, chakra_traces(b), NUM_RANKS, groups_of(b, 4), &times);
    ASSERT_TEXT(wrong, NULL);
    assert_true(fabs(times.end_us - 1e6 * b->simulation.last_end_s) <= 2.0);
    ms_workload_close(b->workload);
}

static void stages_exchange_messages(void **state)
{
    (void)state;
    bench *b = open_bench();
    const ms_chakra_trace *traces = chakra_traces(b);
    /* 64 tokens of 288 elements of 2 bytes; each of 2 ranks of tp sends half of them */
    const ms_chakra_node *send = find(&traces[1], CHAKRA_SEND);
    ASSERT_INT(send->comm_size, 64 * 288 * 2 / 2);
    ASSERT_INT(send->comm_src, 1);
    ASSERT_INT(send->comm_dst, 3);
    const ms_chakra_node *received = find(&traces[3], CHAKRA_RECV);
    ASSERT_INT(received->comm_tag, send->comm_tag);
    ASSERT_INT(received->num_deps, 0);
    ms_workload_close(b->workload);
}

static void groups_are_those_of_the_ranks_written(void **state)
{
    (void)state;
    bench *b = open_bench();
    const char *all = groups_of(b, 4), *first = groups_of(b, 1);
    assert_non_null(strstr(all, "[2, 3]"));
    assert_non_null(strstr(first, "[0, 1]"));
    assert_non_null(strstr(first, "[0, 1, 2, 3]"));
    assert_null(strstr(first, "[2, 3]"));
    ms_workload_close(b->workload);
}

static void broken_files_are_refused(void **state)
{
    (void)state;
    bench *b = open_bench();
    size_t num;
    const char *text = chakra_bytes(b, 0, &num);
    unsigned char *bytes = ms_arena_take(b->cx->arena, num);
    memcpy(bytes, text, num);
    ms_chakra_trace trace;
    ASSERT_TEXT(ms_chakra_read(b->cx->arena, bytes, num - 1, &trace),
                "a length is beyond the end");
    bytes[1] = 0x1a; /* the version in field 3 */
    ASSERT_TEXT(ms_chakra_read(b->cx->arena, bytes, num, &trace),
                "an unknown field or wire type");
    ms_workload_close(b->workload);
}

static void expect_wrong_run(bench *b, const ms_chakra_trace *traces, const char *want)
{
    ms_chakra_times times;
    const char *wrong = ms_chakra_run(b->cx, traces, NUM_RANKS, groups_of(b, 4), &times);
    ASSERT_TEXT(wrong, want);
}

static void wrong_runs_are_refused(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_chakra_trace *traces = chakra_traces(b);
    find(&traces[0], CHAKRA_SEND)->comm_tag++;
    expect_wrong_run(b, traces, "a deadlock");
    traces = chakra_traces(b);
    find(&traces[2], CHAKRA_RECV)->comm_size++;
    expect_wrong_run(b, traces, "a message is received twice, or in another size");
    traces = chakra_traces(b);
    find(&traces[3], CHAKRA_COLL)->comm_size++;
    expect_wrong_run(b, traces, "members of a collective disagree on its type or size");
    traces = chakra_traces(b);
    find(&traces[3], CHAKRA_COLL)->pg_name = 1;
    expect_wrong_run(b, traces, "a collective of a group without the rank");
    traces = chakra_traces(b);
    traces[1].num_nodes--;
    expect_wrong_run(b, traces, NULL); /* the optimizer, for which none waits */
    traces[1].num_nodes--;
    expect_wrong_run(b, traces, "a deadlock"); /* the all-reduce of the gradient norm */
    ms_workload_close(b->workload);
}

/* ---- Kineto ---- */

static const char *kineto_text(bench *b, int actor)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_kineto_write(file, b->cx->arena, &b->simulation, &b->groups, actor);
    return test_read_back(b->cx->arena, file);
}

static void ranks_have_kernels_and_transfers(void **state)
{
    (void)state;
    bench *b = open_bench();
    for (int a = 0; a < NUM_RANKS; a++) {
        ms_kineto_facts facts;
        ASSERT_TEXT(ms_kineto_check(b->cx, kineto_text(b, a), &facts), NULL);
        ASSERT_INT(facts.rank, a);
        ASSERT_INT(facts.world_size, NUM_RANKS);
        ASSERT_INT(facts.step_ns, llround(1e9 * b->simulation.last_end_s));
        assert_true(facts.compute_ns > 0 && facts.update_ns > 0 && facts.comm_ns > 0);
        ASSERT_INT(facts.bytes[MS_ALL_TO_ALL], 0);
        assert_true(facts.bytes[MS_ALL_REDUCE] >= MS_NORM_BYTES);
    }
    ms_workload_close(b->workload);
}

/* Replaces the first `from` in rank 0's trace by `to`: the checker must refuse it. */
static void expect_wrong_kineto(bench *b, const char *from, const char *to,
                                const char *why)
{
    const char *text = kineto_text(b, 0), *found = strstr(text, from);
    assert_non_null(found);
    text = ms_arena_printf(b->cx->arena, "%.*s%s%s", (int)(found - text), text, to,
                           found + strlen(from));
    ms_kineto_facts facts;
    const char *wrong = ms_kineto_check(b->cx, text, &facts);
    if (wrong == NULL || strstr(wrong, why) == NULL)
        fail_msg("\"%s\" for \"%s\": %s, want \"%s\"", to, from,
                 wrong == NULL ? "accepted" : wrong, why);
}

static void wrong_ranks_are_refused(void **state)
{
    (void)state;
    bench *b = open_bench();
    expect_wrong_kineto(b, "\"rank\"", "\"number\"", "no rank");
    expect_wrong_kineto(b, "\"traceEvents\"", "\"events\"", "no traceEvents");
    expect_wrong_kineto(b, "\"cat\": \"kernel\"", "\"cat\": \"op\"", "unknown category");
    expect_wrong_kineto(b, "ProfilerStep#0", "Step", "unknown category");
    expect_wrong_kineto(b, "\"correlation\": 1}", "\"correlation\": 999999}",
                        "without a launch");
    expect_wrong_kineto(b, "\"ncclDevKernel_", "\"Memcpy", "communication or memory");
    expect_wrong_kineto(b, "\"Group size\": 2", "\"Group size\": 1", "wrong arguments");
    expect_wrong_kineto(b, "\"dtype\": \"BFloat16\"", "\"dtype\": \"E\"", "dtype");
    expect_wrong_kineto(b, "\"stream\": 7, ", "", "without device, stream");
    ms_workload_close(b->workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_takes_as_long_as_the_step),
        cmocka_unit_test(stages_exchange_messages),
        cmocka_unit_test(groups_are_those_of_the_ranks_written),
        cmocka_unit_test(broken_files_are_refused),
        cmocka_unit_test(wrong_runs_are_refused),
        cmocka_unit_test(ranks_have_kernels_and_transfers),
        cmocka_unit_test(wrong_ranks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
