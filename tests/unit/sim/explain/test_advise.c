/* Advice on a plan: changes are predicted as the changed plans are, none is illegal, they
 * are ranked, the best pair is that of brute force, and measurements turn the choice. */
#include "sim/explain/advise.h"

#include "sim/explain/explain_priv.h"
#include "sim/explain/plan_edit.h"
#include "sim/step/framework_rules.h"
#include "tests/test.h"

static const ms_memory_rule safe = {.min_probability = 0.95};

static ms_plan plan_for(const char *model, long gpus)
{
    ms_plan plan = ms_plan_default(gpus);
    plan.model = model;
    plan.size[MS_DP_SHARD] = gpus;
    plan.sequence_length = 4096;
    plan.global_batch = 4 * gpus;
    plan.zero = 1;
    plan.stack = "generic";
    return plan;
}

static ms_plan pipelined(void)
{
    ms_plan plan = plan_for("llama-3.1-8b", 16);
    plan.size[MS_DP_SHARD] = plan.size[MS_TP] = 2;
    plan.size[MS_PP] = 4;
    plan.sequence_parallel = true;
    plan.stack = "megatron";
    return plan;
}

static ms_plan with_experts(void)
{
    ms_plan plan = plan_for("deepseek-v2-lite", 16);
    plan.size[MS_DP_SHARD] = 8;
    plan.size[MS_PP] = 2;
    plan.ep = 8;
    plan.zero = 3;
    plan.reshard_after_forward = false;
    plan.stack = "torchtitan";
    return plan;
}

static ms_plan too_large(void)
{
    ms_plan plan = plan_for("llama-3.1-8b", 8);
    plan.microbatch = 4;
    return plan;
}

static ms_workload *open_workload(ms_ctx *cx, const ms_plan *plan)
{
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_plan_check(cx, plan, workload->model, MS_NOWHERE), cx);
    return workload;
}

static const ms_advice *advise(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                               const ms_memory_rule *rule)
{
    ms_advice *advice = MS_NEW(cx->arena, ms_advice);
    ASSERT_OK(ms_advise(cx, workload, plan, rule, advice), cx);
    return advice;
}

/* ---- changes ---- */

static void equals_its_prediction(const ms_advised *change)
{
    ms_ctx *cx = test_cx();
    ms_workload *workload = open_workload(cx, &change->plan);
    ms_workload_set_memory_rule(workload, &safe);
    ms_prediction p;
    ASSERT_OK(ms_predict(cx, workload, &change->plan, &p), cx);
    ASSERT_NEAR(change->step_s, p.step_s, 0.0);
    ASSERT_NEAR(change->peak_bytes, p.peak_bytes, 0.0);
    ASSERT_NEAR(change->fits_probability, p.fits_probability, 0.0);
    ASSERT_INT(change->fits, p.fits);
    ms_workload_close(workload);
}

static void changes_take_the_time_of_their_plans(void **state)
{
    (void)state;
    const ms_plan plans[] = {pipelined(), with_experts(), too_large()};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        ms_ctx *cx = test_cx();
        ms_workload *workload = open_workload(cx, &plans[i]);
        const ms_advice *advice = advise(cx, workload, &plans[i], &safe);
        equals_its_prediction(&advice->given);
        for (int k = 0; k < advice->num; k += TEST_CASES(1, 5))
            equals_its_prediction(&advice->changes[k]);
        if (advice->has_pair)
            equals_its_prediction(&advice->pair);
        ms_workload_close(workload);
    }
}

/* The number of choices that a change sets, those that only follow left out. */
static int num_choices(const ms_plan *from, const ms_plan *to)
{
    int axes = 0, num = 0;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        axes += from->size[axis] != to->size[axis];
    assert_true(axes == 0 || axes == 2);
    bool moved = axes > 0;
    num += moved || memcmp(from->order, to->order, sizeof to->order) != 0;
    num += !moved && (from->ep != to->ep || from->etp != to->etp);
    num += from->microbatch != to->microbatch;
    num += !moved &&
           (from->schedule != to->schedule || from->virtual_stages != to->virtual_stages);
    num += !moved &&
           (from->zero != to->zero ||
            (to->zero == 3 && from->reshard_after_forward != to->reshard_after_forward));
    num += !moved && (from->sequence_parallel != to->sequence_parallel ||
                      from->async_tp != to->async_tp);
    num += !moved && from->cp_method != to->cp_method;
    num += from->recompute != to->recompute;
    return num;
}

static void changes_are_single_legal_and_different(void **state)
{
    (void)state;
    const ms_plan plans[] = {pipelined(), with_experts(), too_large()};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        ms_ctx *cx = test_cx();
        ms_workload *workload = open_workload(cx, &plans[i]);
        const ms_stack *stack = workload->stack;
        const ms_advice *advice = advise(cx, workload, &plans[i], &safe);
        assert_true(advice->num > 5);
        for (int k = 0; k < advice->num; k++) {
            const ms_plan *plan = &advice->changes[k].plan;
            ASSERT_INT(ms_plan_refusal(plan, workload->model), MS_LEGAL);
            ASSERT_INT(num_choices(&plans[i], plan), 1);
            assert_true(plan->size[MS_PP] == 1 || stack->can_schedule[plan->schedule]);
            assert_true(plan->size[MS_CP] == 1 || stack->can_cp[plan->cp_method]);
            assert_null(ms_workload_broken_rule(workload, plan));
            assert_true(!plan->async_tp || plan->sequence_parallel);
            assert_true(advice->changes[k].change[0] != '\0');
            for (int other = 0; other < k; other++)
                assert_false(ms_plan_equal(plan, &advice->changes[other].plan));
        }
        ms_workload_close(workload);
    }
}

static bool has_change(const ms_advice *advice, const char *text)
{
    for (int i = 0; i < advice->num; i++)
        if (strcmp(advice->changes[i].change, text) == 0)
            return true;
    return false;
}

static void changes_have_the_words_of_flags(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "pp 4 -> 2, dp_shard 2 -> 4",
        "pp 4 -> 1, tp 2 -> 8",
        "dp_shard 2 -> 4, tp 2 -> 1",
        "dp_shard 2 -> 1, cp 1 -> 2, cp by ring",
        "order dp_shard,pp,tp",
        "mbs 1 -> 2",
        "schedule interleaved, v 1 -> 2",
        "zero 1 -> 0",
        "sp off",
        "async tp on",
        "recompute full",
    };
    ms_ctx *cx = test_cx();
    ms_plan plan = pipelined();
    ms_workload *workload = open_workload(cx, &plan);
    const ms_advice *advice = advise(cx, workload, &plan, &safe);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!has_change(advice, texts[i]))
            fail_msg("no change is \"%s\"", texts[i]);
    ms_workload_close(workload);
}

static void one_gpu_has_no_axes_to_change(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_for("llama-15m", 1);
    plan.sequence_length = 256;
    plan.zero = 0;
    ms_workload *workload = open_workload(cx, &plan);
    const ms_advice *advice = advise(cx, workload, &plan, &safe);
    assert_true(advice->num > 0);
    for (int i = 0; i < advice->num; i++) {
        const ms_plan *changed = &advice->changes[i].plan;
        assert_true(memcmp(changed->size, plan.size, sizeof plan.size) == 0);
        assert_true(changed->microbatch != 1 || changed->recompute != plan.recompute);
    }
    ms_workload_close(workload);
}

/* ---- ranking ---- */

static void changes_that_fit_come_first(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = too_large();
    ms_workload *workload = open_workload(cx, &plan);
    const ms_advice *advice = advise(cx, workload, &plan, &safe);
    assert_false(advice->given.fits);
    assert_true(advice->num_fitting > 0 && advice->num_fitting < advice->num);
    for (int i = 0; i < advice->num; i++) {
        const ms_advised *change = &advice->changes[i];
        ASSERT_INT(change->fits, i < advice->num_fitting);
        ASSERT_INT(change->fits,
                   change->fits_probability >= safe.min_probability && change->peak_fits);
        if (i > 0 && i != advice->num_fitting)
            assert_true(change[-1].step_s <= change->step_s);
    }
    ms_workload_close(workload);
}

static void the_rule_of_the_workload_stays(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = too_large();
    ms_workload *workload = open_workload(cx, &plan);
    const ms_memory_rule tight = {.headroom_frac = 0.25};
    ms_workload_set_memory_rule(workload, &tight);
    const ms_advice *advice = advise(cx, workload, &plan, &safe);
    ASSERT_NEAR(workload->memory.rule.headroom_frac, 0.25, 0.0);
    ASSERT_NEAR(advice->limit.rule.min_probability, 0.95, 0.0);
    ms_workload_close(workload);
}

/* ---- pairs ---- */

/* The least step of all plans with two changes that fit, each predicted. */
static double fastest_pair_s(ms_ctx *cx, ms_workload *workload, const ms_plan *plan)
{
    ms_plan_edit *edits;
    int num = ms_plan_edits(cx->arena, workload, plan, &edits);
    double fastest = INFINITY;
    ms_workload_set_memory_rule(workload, &safe);
    for (int i = 0; i < num; i++)
        for (int k = 0; k < num; k++) {
            ms_plan one, two;
            ms_prediction p;
            if (!ms_plan_edit_apply(workload, plan, &edits[i], &one) ||
                !ms_plan_edit_apply(workload, &one, &edits[k], &two) ||
                two.recompute == MS_RECOMPUTE_AUTO ||
                ms_workload_broken_rule(workload, &two) != NULL)
                continue;
            ms_arena_mark mark = ms_arena_save(cx->arena);
            ASSERT_OK(ms_predict(cx, workload, &two, &p), cx);
            if (p.fits)
                fastest = fmin(fastest, p.step_s);
            ms_arena_rewind(cx->arena, mark);
        }
    return fastest;
}

static void the_pair_is_that_of_brute_force(void **state)
{
    (void)state;
    ms_plan small = too_large();
    small.gpus = 4;
    small.size[MS_DP_SHARD] = 4;
    const ms_plan plans[] = {small, pipelined()};
    for (int i = 0; i < TEST_CASES(2, 1); i++) {
        ms_ctx *cx = test_cx();
        ms_workload *workload = open_workload(cx, &plans[i]);
        const ms_advice *advice = advise(cx, workload, &plans[i], &safe);
        assert_true(advice->has_pair);
        assert_true(advice->pair.fits);
        assert_true(advice->num_fitting == 0 ||
                    advice->pair.step_s < advice->changes[0].step_s);
        double fastest_s = fastest_pair_s(cx, workload, &plans[i]);
        assert_true(advice->pair.step_s <= fastest_s);
        if (advice->pair.plan.recompute != MS_RECOMPUTE_AUTO)
            ASSERT_NEAR(advice->pair.step_s, fastest_s, 0.0);
        ms_workload_close(workload);
    }
}

/* ---- measurements ---- */

static double lead_s(const ms_workload *workload, const ms_advice_measure *m,
                     double value)
{
    return ms_explain_step_with(workload, &m->rival->plan, m->figure, value) -
           ms_explain_step_with(workload, &m->best->plan, m->figure, value);
}

static ms_plan wide(void)
{
    ms_plan plan = plan_for("llama-3.1-70b", 512);
    plan.size[MS_PP] = 4;
    plan.size[MS_DP_SHARD] = 16;
    plan.size[MS_TP] = 8;
    plan.sequence_parallel = true;
    plan.sequence_length = 8192;
    plan.global_batch = 512;
    plan.recompute = MS_RECOMPUTE_SELECTIVE;
    plan.stack = "generic";
    return plan;
}

static void a_coefficient_turns_the_choice(void **state)
{
    (void)state;
    static const struct {
        ms_memory_rule rule;
        bool has_interval;
    } rows[] = {{{0}, false}, {{.headroom_frac = 0.15}, true}};
    ms_plan plan = wide();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_ctx *cx = test_cx();
        ms_workload *workload = open_workload(cx, &plan);
        const ms_advice *advice = advise(cx, workload, &plan, &rows[i].rule);
        const ms_advice_measure *m = &advice->measure;
        assert_true(advice->has_measure && m->figure != NULL);
        assert_true(m->figure->from != MS_SPEC);
        assert_true(m->best->step_s < m->rival->step_s);
        double value = m->figure->value, change = m->flip_value - value;
        assert_true(lead_s(workload, m, value + 0.99 * change) > 0.0);
        assert_true(lead_s(workload, m, m->flip_value) <= 0.0);
        ASSERT_INT(!isnan(m->low), rows[i].has_interval);
        if (rows[i].has_interval)
            assert_true(m->low <= value && value <= m->high && m->low <= m->flip_value &&
                        m->flip_value <= m->high);
        ms_workload_close(workload);
    }
}

static void a_faster_plan_that_may_fit_is_measured_first(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_for("llama-3.2-1b", 1);
    plan.sequence_length = 7168;
    plan.global_batch = 16;
    plan.zero = 0;
    plan.stack = "megatron";
    ms_workload *workload = open_workload(cx, &plan);
    const ms_advice *advice = advise(cx, workload, &plan, &safe);
    const ms_advice_measure *m = &advice->measure;
    assert_true(advice->has_measure && m->figure == NULL);
    ASSERT_TEXT(m->rival->change, "mbs 1 -> 4");
    ASSERT_TEXT(m->best->change, "mbs 1 -> 2");
    assert_true(m->rival->step_s < m->best->step_s);
    assert_true(m->rival->peak_fits && !m->rival->fits && m->best->fits);
    ms_workload_close(workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_take_the_time_of_their_plans),
        cmocka_unit_test(changes_are_single_legal_and_different),
        cmocka_unit_test(changes_have_the_words_of_flags),
        cmocka_unit_test(one_gpu_has_no_axes_to_change),
        cmocka_unit_test(changes_that_fit_come_first),
        cmocka_unit_test(the_rule_of_the_workload_stays),
        cmocka_unit_test(the_pair_is_that_of_brute_force),
        cmocka_unit_test(a_coefficient_turns_the_choice),
        cmocka_unit_test(a_faster_plan_that_may_fit_is_measured_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
