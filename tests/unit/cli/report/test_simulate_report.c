/* Printed reports of simulations (text, diagram and JSON), for simulations made by
 * hand. */
#include "sim/request/simulate_options.h"

#include "tests/support/hand_simulation.h"
#include "tests/test.h"

static ms_simulate_report *report_of(ms_ctx *cx, const ms_simulation *s)
{
    ms_simulate_report *report = MS_NEW(cx->arena, ms_simulate_report);
    ms_plan *plan = MS_NEW(cx->arena, ms_plan);
    ms_prediction *prediction = MS_NEW(cx->arena, ms_prediction);
    *plan = ms_plan_default(128);
    plan->model = "hand";
    plan->size[MS_PP] = 2;
    plan->size[MS_DP_SHARD] = 64;
    plan->global_batch = 128;
    prediction->capacity_bytes = 80.0 * 1073741824.0;
    report->plan = plan;
    report->prediction = prediction;
    report->simulation = s;
    report->width = 70;
    ms_simulate_flags flags = {.ranks = "all"};
    ASSERT_OK(ms_simulate_flags_actors(cx, &flags, s, 2, report), cx);
    return report;
}

static const char *drawn(ms_ctx *cx, const ms_simulate_report *report)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_simulate_draw(file, cx->arena, report);
    return test_read_back(cx->arena, file);
}

static const char *printed(ms_ctx *cx, const ms_simulate_report *report)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_simulate_print(file, cx->arena, report);
    return test_read_back(cx->arena, file);
}

static void lines_are_ranks(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_simulate_report *report = report_of(cx, ms_hand_simulation(cx->arena, 1.0));
    ASSERT_TEXT(drawn(cx, report),
                "ms             0         2000       4000      6000       8000    10000\n"
                "               |         |          |         |          |         |\n"
                "pp 0           F0---F1----...........B0---------.....B1--------O-.....\n"
                "pp 1 rank 64   ......F0---B0---------F1---B1--------O-................\n"
                "pp 1 rank 127  ......F0------B0-------------F1------B1--------------O-\n"
                "               F forward, B backward, O optimizer, . idle\n");
}

static void lines_are_streams_of_chosen_ranks_in_a_window(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_simulation *s = ms_hand_simulation(cx->arena, 1.0);
    ms_simulate_report *report = report_of(cx, s);
    ms_simulate_flags flags = {.ranks = "0"};
    ASSERT_OK(ms_simulate_flags_actors(cx, &flags, s, 2, report), cx);
    report->gantt = MS_SIMULATE_GANTT_STREAMS;
    report->from_s = 0.5;
    report->to_s = 1.5;
    report->width = 14 + 20;
    ASSERT_TEXT(drawn(cx, report), "ms            500       1000\n"
                                   "              |         |\n"
                                   "pp 0 compute  F0--------F1--------\n"
                                   "  send        ..........>0........\n"
                                   "              F forward, > send, . idle\n");
}

static void ranks_are_shown_by_their_class(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    cx->verbosity = -1;
    const ms_simulation *s = ms_hand_simulation(cx->arena, 1.0);
    ms_simulate_report report = {0};
    ms_simulate_flags flags = {.ranks = "70,127,64,3"};
    ASSERT_OK(ms_simulate_flags_actors(cx, &flags, s, 2, &report), cx);
    ASSERT_INT(report.num_actors, 3);
    ASSERT_INT(report.actors[0], 1);
    ASSERT_INT(report.actors[1], 2);
    ASSERT_INT(report.actors[2], 0);
    /* default: of each pipeline rank the data-parallel rank that ends last */
    flags.ranks = NULL;
    ASSERT_OK(ms_simulate_flags_actors(cx, &flags, s, 2, &report), cx);
    ASSERT_INT(report.num_actors, 2);
    ASSERT_INT(report.actors[1], 2);
    const char *const bad[] = {"128", "-1", "1,,2", "", "0,x", "1.5", "stage"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ms_ctx *fresh = test_cx();
        fresh->verbosity = -1;
        flags.ranks = bad[i];
        ASSERT_INT(ms_simulate_flags_actors(fresh, &flags, s, 2, &report), MS_EINPUT);
        assert_non_null(strstr(test_messages(fresh), "the plan has ranks 0 to 127"));
    }
}

/* The nodes (operations) of an action are drawn as one bar; actions of two
 * micro-batches are two bars. */
static void nodes_are_drawn_as_their_action(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_simulation *s = ms_hand_simulation(cx->arena, 1.0);
    s->options.detail = MS_DETAIL_NODE;
    assert_non_null(strstr(drawn(cx, report_of(cx, s)), "F0---F1----....."));
}

static void text_tells_engine_times_and_memory(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_simulation *s = ms_hand_simulation(cx->arena, 1.0);
    s->options.engine = MS_ENGINE_EVENT;
    s->num_rate_changes = 1;
    s->options.num_slow = 1;
    s->options.slow[0] = (ms_slowdown){.rank = 127, .factor = 1.5};
    ms_simulate_report *report = report_of(cx, s);
    ms_simulation sound = *s;
    sound.step_s = s->step_s / 1.25;
    report->undisturbed = &sound;
    const char *text = printed(cx, report);
    const char *const lines[] = {
        "\nengine   event: links, SMs and HBM are shared; a task is an action of the "
        "schedule; eager sends\n",
        "\nranks    3 of 128 simulated, each for all that behave like it\n",
        "\nslow     rank 127 takes 1.5 times as long\n",
        "\nstep time     10.47 s: +1.01 % against the 10.37 s that predict's replay gives\n",
        "\nslowdowns     +25.00 %: without them the step takes 8.38 s\n",
        "\npeak memory   3.00 GiB of 80.00 GiB on rank 0: 77.00 GiB free\n",
        " 127   1           1     9.00          0.00    1.10       0.38  0.00  10.47  1.5 "
        "times as slow, ends last\n",
        "  64   1  3.00   2450.0  backward 0    2.00   0.00       0.00         1.00    0.00 "
        "     0.00   0.00\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (strstr(text, lines[i]) == NULL)
            fail_msg("missing:%s\nin:\n%s", lines[i], text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_ranks),
        cmocka_unit_test(lines_are_streams_of_chosen_ranks_in_a_window),
        cmocka_unit_test(ranks_are_shown_by_their_class),
        cmocka_unit_test(nodes_are_drawn_as_their_action),
        cmocka_unit_test(text_tells_engine_times_and_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
