/* The answer of `search --why`: its stages and numbers, and its words when the search
 * was interrupted. */
#include "base/json.h"
#include "sim/request/search_why.h"
#include "tests/support/json_values.h"
#include "tests/test.h"

typedef struct asked {
    ms_ctx *cx;
    ms_workload *workload;
    ms_space space;
    ms_search_result result;
    ms_prediction best;
    ms_why_question question;
    ms_why why;
} asked;

static const volatile int yes = 1;

static asked open_search(const char *model, long gpus, const char *limit)
{
    asked a = {.cx = test_cx()};
    ms_plan base = ms_plan_default(gpus);
    base.stack = "generic";
    base.model = model;
    ASSERT_OK(ms_workload_open(a.cx, &base, &a.workload), a.cx);
    a.space = ms_space_all(&base, a.workload->stack);
    if (limit != NULL)
        ASSERT_OK(ms_space_limit(a.cx, &a.space, limit), a.cx);
    return a;
}

/* Asks why the plan that `text` describes is not the best. `stop_ask`: answering is
 * interrupted from its start; `stop_search`: the search after it is. */
static void ask(asked *a, const char *text, bool stop_ask, bool stop_search)
{
    ms_search_options first = {
        .num_best = 3, .num_threads = 1, .interrupted = stop_ask ? &yes : NULL};
    ms_search_options options = first;
    options.interrupted = stop_search ? &yes : NULL;
    ASSERT_OK(
        ms_search_why_read(a->cx, text, &a->space.base, a->workload->stack, &a->question),
        a->cx);
    ASSERT_OK(ms_why_ask(a->cx, a->workload, &a->space, &first, &a->question, &a->why),
              a->cx);
    (void)ms_search(a->cx, a->workload, &a->space, &options, &a->result);
    bool found = a->result.num_found > 0;
    if (found)
        ASSERT_OK(ms_predict(a->cx, a->workload, &a->result.found[0].plan, &a->best),
                  a->cx);
    ms_why_context known = {a->cx,    a->workload, &a->space,
                            &options, &a->result,  found ? &a->best : NULL};
    ASSERT_OK(ms_why_answer(&known, &a->why), a->cx);
}

static const ms_why_stage *stage(const asked *a, const char *name)
{
    for (int i = 0; i < a->why.num_stages; i++)
        if (strcmp(a->why.stages[i].stage, name) == 0)
            return &a->why.stages[i];
    fail_msg("there is no stage \"%s\"", name);
    return NULL;
}

static double number_of(const ms_why_stage *stage, const char *name)
{
    for (int i = 0; i < stage->num_numbers; i++)
        if (strcmp(stage->numbers[i].name, name) == 0)
            return stage->numbers[i].value;
    fail_msg("stage \"%s\" has no number \"%s\"", stage->stage, name);
    return NAN;
}

static void expect_detail(const asked *a, const char *name, const char *part)
{
    const char *detail = stage(a, name)->detail;
    if (detail == NULL || strstr(detail, part) == NULL)
        fail_msg("%s: \"%s\" does not hold \"%s\"", name,
                 detail == NULL ? "(null)" : detail, part);
}

/* ---- stages ---- */

static void stages_stand_in_the_order_of_the_search(void **state)
{
    (void)state;
    static const char *const names[] = {"legal",  "space",     "mesh",   "sharding",
                                        "memory", "dominated", "replay", "difference"};
    asked a = open_search("8b", 8, NULL);
    ask(&a, "tp=8", false, false);
    ASSERT_INT(a.why.num_stages, 8);
    for (int i = 0; i < 8; i++)
        ASSERT_TEXT(a.why.stages[i].stage, names[i]);
    ms_workload_close(a.workload);
}

static void differences_sum_to_the_time_lost(void **state)
{
    (void)state;
    asked a = open_search("8b", 8, NULL);
    ask(&a, "tp=4,recompute=full", false, false);
    ASSERT_INT(a.why.verdict, MS_WHY_SLOWER);
    const ms_why_stage *difference = stage(&a, "difference");
    double sum_s = 0.0;
    for (int i = 0; i < difference->num_numbers; i++)
        sum_s += difference->numbers[i].value;
    double lost_s = number_of(stage(&a, "replay"), "slower_s");
    ASSERT_NEAR(lost_s, a.why.prediction.step_s - a.result.found[0].step_s, 1e-9);
    ASSERT_NEAR(sum_s, lost_s, 1e-9);
    assert_true(lost_s > 0.0);
    ms_workload_close(a.workload);
}

static void the_best_plan_differs_in_nothing(void **state)
{
    (void)state;
    asked a = open_search("8b", 8, NULL);
    ask(&a, "zero=0", false, false); /* any question, to get the list of best plans */
    const ms_plan *best = &a.result.found[0].plan;
    const char *text =
        ms_arena_printf(a.cx->arena, "pp=%ld,dp_replicate=%ld,dp_shard=%ld,cp=%ld,tp=%ld",
                        best->size[MS_PP], best->size[MS_DP_REPLICATE],
                        best->size[MS_DP_SHARD], best->size[MS_CP], best->size[MS_TP]);
    ask(&a, text, false, false);
    ASSERT_INT(a.why.verdict, MS_WHY_LISTED);
    ASSERT_INT(a.why.rank, 1);
    assert_true(ms_plan_equal(&a.why.plan, &a.result.found[0].plan));
    expect_detail(&a, "replay", "the best");
    ASSERT_INT(a.why.num_stages, 7);
    ms_workload_close(a.workload);
}

static void a_wrong_size_is_refused_with_the_nearest_one(void **state)
{
    (void)state;
    asked a = open_search("phi-3-medium", 64, NULL);
    ask(&a, "tp=4", false, false);
    ASSERT_INT(a.why.verdict, MS_WHY_REFUSED);
    ASSERT_INT(a.why.refusal, MS_REFUSE_HEADS);
    ASSERT_INT(a.why.num_stages, 1);
    ASSERT_TEXT(a.why.stages[0].verdict, "refused (heads)");
    expect_detail(&a, "legal",
                  "10 key-value heads can neither be divided by tp 4 nor copied evenly");
    expect_detail(&a, "legal", "the nearest that would do: tp=2");
    ms_workload_close(a.workload);
}

static void limits_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *limit, *text, *said;
    } cases[] = {
        {"tp<=4", "tp=8", "tp=8, and the search is limited to tp<=4"},
        {"cp>=2", "dp_shard=8", "the limit cp>=2 leaves no plan that matches"},
        {NULL, "mbs=32", "microbatch=32, and the search goes to 16 (--max-microbatch)"},
        {NULL, "pp=2,v=9",
         "virtual_stages=9, and the search goes to 8 (--max-virtual-stages)"},
        {NULL, "pp=1,schedule=gpipe", "without a pipeline (pp 1) only 1f1b is tried"},
        {NULL, "dp_replicate=8,zero=1", "zero 1 has nothing to shard over"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        asked a = open_search("8b", 8, cases[i].limit);
        ask(&a, cases[i].text, false, false);
        ASSERT_INT(a.why.verdict, MS_WHY_OUTSIDE);
        ASSERT_TEXT(stage(&a, "space")->verdict, "outside");
        expect_detail(&a, "space", cases[i].said);
        assert_true(a.why.has_plan);
        assert_true(a.why.prediction.step_s > 0.0);
        ms_workload_close(a.workload);
    }
}

static void choices_without_effect_are_said_to_have_none(void **state)
{
    (void)state;
    asked a = open_search("8b", 8, NULL);
    ask(&a, "tp=1,async=on", false, false);
    expect_detail(&a, "space", "async_tp=on has no effect here");
    ms_workload_close(a.workload);
}

static void the_list_without_plans_has_room(void **state)
{
    (void)state;
    asked a = open_search("405b", 8, NULL);
    ask(&a, "tp=8", false, false);
    ASSERT_INT(a.result.num_found, 0);
    ASSERT_INT(a.why.verdict, MS_WHY_NO_FIT);
    expect_detail(&a, "space", "the one that needs least memory, as none fits");
    expect_detail(&a, "mesh", "the list has room");
    expect_detail(&a, "memory", "GiB short; the nearest change that fits: --");
    expect_detail(&a, "replay", "no plan was found to compare with");
    const ms_why_stage *memory = stage(&a, "memory");
    ASSERT_NEAR(number_of(memory, "shortfall_bytes"),
                number_of(memory, "peak_bytes") - number_of(memory, "capacity_bytes"),
                1e-12);
    ms_workload_close(a.workload);
}

/* ---- interrupted ---- */

static void an_interrupted_search_leaves_it_open(void **state)
{
    (void)state;
    asked a = open_search("8b", 8, NULL);
    ask(&a, "pp=2,dp_shard=4", false, true);
    assert_false(a.result.optimal);
    ASSERT_INT(a.why.verdict, MS_WHY_OPEN);
    ASSERT_TEXT(stage(&a, "mesh")->verdict, "open");
    assert_true(a.why.has_plan);
    ms_workload_close(a.workload);
}

static void nothing_is_said_of_plans_that_were_not_looked_at(void **state)
{
    (void)state;
    asked a = open_search("8b", 8, NULL);
    ask(&a, "pp=2", true, true);
    ASSERT_INT(a.why.verdict, MS_WHY_OPEN);
    assert_false(a.why.has_plan);
    ASSERT_TEXT(stage(&a, "space")->verdict, "unknown");
    ms_workload_close(a.workload);
}

/* ---- text and JSON ---- */

static void orders_are_read_with_their_commas(void **state)
{
    (void)state;
    static const unsigned char want[] = {MS_PP, MS_CP, MS_DP_REPLICATE, MS_DP_SHARD,
                                         MS_TP};
    static const char *const texts[] = {"order=pp,cp,dp,tp", "tp=2,order=pp,cp,dp,tp",
                                        " order =pp,cp,dp,tp,tp=2,zero=1"};
    asked a = open_search("8b", 8, NULL);
    for (size_t i = 0; i < 3; i++) {
        ASSERT_OK(ms_search_why_read(a.cx, texts[i], &a.space.base, a.workload->stack,
                                     &a.question),
                  a.cx);
        assert_true(a.question.asked.fixed_order);
        assert_memory_equal(a.question.asked.base.order, want, sizeof want);
        ASSERT_INT(a.question.asked.low[MS_CHOOSE_TP], i == 0 ? 0 : 2);
    }
    ms_workload_close(a.workload);
}

static void json_holds_stages_plan_and_prediction(void **state)
{
    (void)state;
    asked a = open_search("8b", 8, NULL);
    ask(&a, "tp=2", false, false);
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_jout out = ms_jout_open(file);
    ms_why_write_json(&out, &a.why);
    ms_jout_close(&out);
    ms_jdoc *doc;
    ms_jval root = test_json(a.cx, file, &doc);
    ASSERT_TEXT(test_text(a.cx, root, "text"), "tp=2");
    ms_jval stages = test_member(a.cx, root, "stages");
    ASSERT_INT(ms_json_length(stages), a.why.num_stages);
    ms_jval mesh = ms_json_element(a.cx, stages, 2);
    ASSERT_NEAR(test_number(a.cx, mesh, "bound_s"), a.why.mesh_bound_s, 1e-12);
    ms_plan plan;
    ASSERT_OK(ms_plan_read(a.cx, test_member(a.cx, root, "plan"), &plan), a.cx);
    ASSERT_INT(plan.size[MS_TP], 2);
    ms_jval prediction = test_member(a.cx, root, "prediction");
    ASSERT_NEAR(test_number(a.cx, prediction, "step_s"), a.why.prediction.step_s, 1e-12);
    ms_json_close(doc);
    ms_workload_close(a.workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_stand_in_the_order_of_the_search),
        cmocka_unit_test(differences_sum_to_the_time_lost),
        cmocka_unit_test(the_best_plan_differs_in_nothing),
        cmocka_unit_test(a_wrong_size_is_refused_with_the_nearest_one),
        cmocka_unit_test(limits_are_named),
        cmocka_unit_test(choices_without_effect_are_said_to_have_none),
        cmocka_unit_test(the_list_without_plans_has_room),
        cmocka_unit_test(an_interrupted_search_leaves_it_open),
        cmocka_unit_test(nothing_is_said_of_plans_that_were_not_looked_at),
        cmocka_unit_test(orders_are_read_with_their_commas),
        cmocka_unit_test(json_holds_stages_plan_and_prediction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
