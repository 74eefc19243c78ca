/* The closed-form step time that predictions and searches use: of random plans of all
 * kinds, the replay of nodes takes the same time where nothing is shared; against the
 * event engine with shared links, of plans that shard parameters (ZeRO-3), including
 * experts across nodes, most take the same time, and none a very different one
 * (docs/formulas 6.9). */
#include "sim/simulate/simulation.h"

#include "tests/support/random_plans.h"
#include "tests/test.h"

#include <stdlib.h>

/* Limits of the relative difference between event engine and prediction: the median of
 * the plans, the 95th percentile, and the worst plan. */
#define MEDIAN_FRAC 0.008
#define MOST_FRAC   0.05
#define WORST_FRAC  0.12

/* ---- nothing is shared ---- */

#define PLANS_OF_EACH TEST_CASES(250, 25)
#define WITHIN_FRAC   0.01 /* the difference that counts as agreement */
/* Least share of plans that agree; of a tenth as many plans three standard errors less. */
#define AGREE_FRAC TEST_CASES(0.99, 0.97)

static double nodes_alone_frac(ms_ctx *cx, ms_workload *workload, const ms_plan *plan)
{
    const ms_simulate_options options = {
        .engine = MS_ENGINE_REPLAY, .detail = MS_DETAIL_NODE, .unshared = true};
    ms_planned planned;
    ms_simulation nodes;
    ms_planned_open(cx, workload, plan, &planned);
    ASSERT_OK(ms_simulate(cx, &planned, &options, &nodes), cx);
    double frac = fabs(nodes.step_s / nodes.predicted_step_s - 1.0);
    if (frac > WORST_FRAC)
        fail_msg("%s, %s: nodes %.4g s, actions %.4g s", plan->model,
                 ms_plan_text(cx->arena, plan), nodes.step_s, nodes.predicted_step_s);
    return frac;
}

static void nodes_and_actions_take_the_same_time(void **state)
{
    (void)state;
    int num_agreeing = 0, num = MS_NUM_PLAN_SUBJECTS * PLANS_OF_EACH;
    for (int i = 0; i < MS_NUM_PLAN_SUBJECTS; i++) {
        ms_ctx *cx = test_cx();
        ms_plan base;
        ms_workload *workload;
        ASSERT_OK(ms_plan_subject_open(cx, &ms_plan_subjects[i], &base, &workload), cx);
        ms_rng rng = ms_rng_seed(404 + (uint64_t)i);
        for (int drawn = 0; drawn < PLANS_OF_EACH; drawn++) {
            ms_arena_mark mark = ms_arena_save(cx->arena);
            ms_plan plan = ms_random_plan(&rng, workload, &base, base.gpus);
            num_agreeing += nodes_alone_frac(cx, workload, &plan) <= WITHIN_FRAC;
            ms_arena_rewind(cx->arena, mark);
        }
        ms_workload_close(workload);
    }
    if (num_agreeing < AGREE_FRAC * num)
        fail_msg("%d of %d plans take the same time by nodes and by actions",
                 num_agreeing, num);
}

/* ---- links are shared ---- */

static bool divides_nodes(long size)
{
    return size == 1 || size % 2 == 0;
}

/* Whether the plan is compared. Left out: axes of odd size, whose groups lie across
 * nodes unevenly, which the closed form ignores, and schedules with paired actions,
 * which have a formula of their own (docs/formulas 4.4). */
static bool is_subject(const ms_plan *plan)
{
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        if (!divides_nodes(plan->size[axis]))
            return false;
    return plan->zero == 3 && plan->reshard_after_forward && plan->gpus >= 8 &&
           plan->size[MS_DP_SHARD] * plan->size[MS_CP] > 1 &&
           !ms_schedule_traits_of(plan->schedule).overlaps;
}

/* How much longer the step takes by the event engine, as a fraction of the prediction. */
static double difference_frac(ms_ctx *cx, ms_workload *workload, const ms_plan *plan)
{
    const ms_simulate_options options = {.engine = MS_ENGINE_EVENT,
                                         .detail = MS_DETAIL_NODE};
    ms_planned planned;
    ms_simulation events;
    ms_planned_open(cx, workload, plan, &planned);
    ASSERT_OK(ms_simulate(cx, &planned, &options, &events), cx);
    double frac = events.step_s / events.predicted_step_s - 1.0;
    if (fabs(frac) > WORST_FRAC)
        fail_msg("%s, %s: events %.4g s, prediction %.4g s", plan->model,
                 ms_plan_text(cx->arena, plan), events.step_s, events.predicted_step_s);
    return fabs(frac);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void predictions_are_what_events_take(void **state)
{
    (void)state;
    static const char *const models[] = {"llama-3.1-8b", "qwen3-30b-a3b", "mixtral-8x7b"};
    enum {
        PLANS_PER_MODEL = 40
    };
    double fracs[3 * PLANS_PER_MODEL];
    int num = 0, num_experts = 0;
    for (int m = 0; m < 3; m++) {
        ms_ctx *cx = test_cx();
        ms_plan base = ms_plan_default(64);
        base.model = models[m];
        base.cluster = "hgx-h100";
        base.sequence_length = 4096;
        ms_workload *workload;
        ASSERT_OK(ms_workload_open(cx, &base, &workload), cx);
        ms_rng rng = ms_rng_seed(77 + (uint64_t)m);
        for (int drawn = 0; drawn < PLANS_PER_MODEL;) {
            ms_arena_mark mark = ms_arena_save(cx->arena);
            ms_plan plan = ms_random_plan(&rng, workload, &base, 64);
            bool wants_experts = m > 0 && drawn % 2 == 0;
            if (is_subject(&plan) && (plan.ep > 1 || !wants_experts)) {
                fracs[num++] = difference_frac(cx, workload, &plan);
                num_experts += plan.ep > 1;
                drawn++;
            }
            ms_arena_rewind(cx->arena, mark);
        }
        ms_workload_close(workload);
    }
    qsort(fracs, (size_t)num, sizeof *fracs, compare_doubles);
    assert_true(num_experts >= PLANS_PER_MODEL);
    if (fracs[num / 2] > MEDIAN_FRAC || fracs[num * 95 / 100] > MOST_FRAC)
        fail_msg("of %d plans the median differs by %.4f, 95 of 100 by at most %.4f", num,
                 fracs[num / 2], fracs[num * 95 / 100]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_and_actions_take_the_same_time),
        cmocka_unit_test(predictions_are_what_events_take),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
