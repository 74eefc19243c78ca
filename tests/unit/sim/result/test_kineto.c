/* Traces of PyTorch's profiler: sums over hand-made kernels. */
#include "sim/result/kineto.h"
#include "tests/test.h"

#define HEAD "{\"schemaVersion\": 1, \"traceEvents\": ["

static double node_s(const ms_result *result, const char *kind)
{
    for (int i = 0; i < result->num_nodes; i++)
        if (strcmp(result->nodes[i].kind, kind) == 0)
            return result->nodes[i].seconds;
    fail_msg("no node %s", kind);
    return 0.0;
}

/* Two steps of 100 ms. Compute: 10 ms of a kernel that began before them, 5, 40, and 18 of
 * the optimizer. The all-gather runs from 5 to 30 ms: alone from 10 to 20 and 25 to 30. */
static void every_moment_counts_once(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_results results = {0};
    ASSERT_OK(ms_results_add_file(cx, "tests/data/compare/kineto.json", &results), cx);
    const ms_result *r = &results.items[0];
    ASSERT_INT(r->kind, MS_RESULT_TRACE);
    ASSERT_NEAR(r->step_s, 0.1, 1e-9);
    ASSERT_NEAR(r->times_s[MS_RESULT_COMPUTE], 0.055 / 2, 1e-9);
    ASSERT_NEAR(r->times_s[MS_RESULT_OPTIMIZER], 0.018 / 2, 1e-9);
    ASSERT_NEAR(r->times_s[MS_RESULT_EXPOSED_COMM], 0.015 / 2, 1e-9);
    assert_true(isnan(r->times_s[MS_RESULT_BUBBLE]));
    ASSERT_INT(r->num_nodes, 4);
    ASSERT_NEAR(node_s(r, "sm90_xmma_gemm_bf16"), 0.05 / 2, 1e-9);
    ASSERT_NEAR(
        node_s(r, "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
        0.015 / 2, 1e-9);
}

static void wrong_traces_are_refused_at_their_place(void **state)
{
    (void)state;
    static const char step[] = "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": "
                               "\"ProfilerStep#1\", \"ts\": 0, \"dur\": 9},\n";
    static const char kernel[] =
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"ts\": 1, ";
    static const struct {
        const char *events[3], *message;
        int line;
    } cases[] = {
        {{kernel, "\"dur\": 1}"}, "no annotation \"ProfilerStep#N\" marks a step", 1},
        {{step, "{\"ph\": \"i\"}"}, "no kernel of a GPU, or steps without time", 1},
        {{step, kernel, "\"dur\": -1}"}, "\"dur\" must not be below 0", 2},
        {{step, kernel, "\"x\": 1}"}, "\"dur\" is missing", 2},
        {{kernel, "\"dur\": 1, \"args\": {\"device\": 0}},\n{\"ph\": \"X\", \"cat\": ",
          "\"kernel\", \"name\": \"k\", \"ts\": 1, \"dur\": 1, \"args\": {\"device\": 1}}"},
         "kernels of devices 0 and 1: a trace must be of one rank",
         2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_jdoc *doc;
        ms_jval root;
        ms_results results = {0};
        const char *const *e = cases[i].events;
        const char *text = ms_arena_printf(cx->arena, HEAD "%s%s%s]}", e[0], e[1],
                                           e[2] == NULL ? "" : e[2]);
        ASSERT_OK(ms_json_parse(cx, "trace", text, strlen(text), &doc, &root), cx);
        ASSERT_INT(ms_results_add(cx, root, "trace", &results), MS_EINPUT);
        ASSERT_TEXT(cx->first->message, cases[i].message);
        ASSERT_INT(cx->first->loc.line, cases[i].line);
        ms_json_close(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_moment_counts_once),
        cmocka_unit_test(wrong_traces_are_refused_at_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
