/* Random plans with units, buckets, copies of parameters on fewer ranks and partitioned
 * layer inputs: simulations equal predictions, and the bytes of a step do not depend on
 * units. */
#include "sim/simulate/simulation.h"
#include "sim/step/prediction.h"

#include "tests/support/random_plans.h"
#include "tests/test.h"

typedef struct choices {
    long unit_layers;
    double bucket_bytes;
    bool partition_activations;
} choices;

static const choices drawn[] = {
    {1, 0, false}, {3, 0, true}, {0, 40e6, false}, {0, 3e9, true}, {5, 300e6, false}};
#define NUM_DRAWN (int)(sizeof drawn / sizeof *drawn)

static double simulated_s(ms_ctx *cx, const ms_planned *planned, ms_detail detail)
{
    ms_simulate_options options = {.engine = MS_ENGINE_REPLAY, .detail = detail};
    ms_simulation simulation;
    ASSERT_OK(ms_simulate(cx, planned, &options, &simulation), cx);
    return simulation.step_s;
}

/* Bytes of gathers of parameters and reductions of gradients on the first rank. */
static double moved_bytes(ms_ctx *cx, const ms_planned *planned)
{
    ms_traffic traffic = ms_traffic_make(cx, planned, 0);
    double bytes = 0.0;
    for (int i = 0; i < traffic.num_entries; i++) {
        const ms_traffic_entry *e = &traffic.entries[i];
        if (e->phase == MS_TRAFFIC_PARAMS || e->phase == MS_TRAFFIC_GRADS)
            bytes += e->count * e->size_bytes;
    }
    return bytes;
}

/* Bytes that the backward gathers over a group of one rank in place of all. */
static bool keeps_whole_copies(const ms_planned *planned)
{
    const ms_span *span = &planned->links.sync_span[MS_SYNC_SECONDARY];
    return planned->links.has_secondary && (span[0].size == 1 || span[1].size == 1);
}

static void check_plan(ms_ctx *cx, ms_workload *workload, ms_workload *plain,
                       const ms_plan *plan)
{
    ms_planned planned, without;
    ms_prediction prediction;
    ms_planned_open(cx, workload, plan, &planned);
    ASSERT_OK(ms_predict(cx, workload, plan, &prediction), cx);
    double action_s = simulated_s(cx, &planned, MS_DETAIL_ACTION);
    if (fabs(action_s / prediction.step_s - 1.0) > 1e-12)
        fail_msg("%s: %.17g s by actions, predicted %.17g s",
                 ms_plan_text(cx->arena, plan), action_s, prediction.step_s);
    ms_plan other = *plan;
    other.unit_layers = 0;
    other.bucket_bytes = 0.0;
    other.partition_activations = false;
    ms_planned_open(cx, plain, &other, &without);
    double bytes = moved_bytes(cx, &planned), want_bytes = moved_bytes(cx, &without);
    if (!keeps_whole_copies(&planned) && fabs(bytes - want_bytes) > 1e-9 * want_bytes)
        fail_msg("%s: moves %.17g bytes, without units %.17g",
                 ms_plan_text(cx->arena, plan), bytes, want_bytes);
    /* tasks by node are exact where they are without the choices */
    ms_prediction plain_prediction;
    ASSERT_OK(ms_predict(cx, plain, &other, &plain_prediction), cx);
    double want_frac =
        fabs(simulated_s(cx, &without, MS_DETAIL_NODE) / plain_prediction.step_s - 1.0);
    double frac =
        fabs(simulated_s(cx, &planned, MS_DETAIL_NODE) / prediction.step_s - 1.0);
    if (want_frac < 1e-9 && frac > 1e-9)
        fail_msg("%s: %.17g s predicted, by nodes off by %g",
                 ms_plan_text(cx->arena, plan), prediction.step_s, frac);
}

static void check_choices(ms_ctx *cx, const ms_plan_subject *subject, const choices *more,
                          int num_plans)
{
    ms_plan base;
    ms_workload *plain, *workload;
    ASSERT_OK(ms_plan_subject_open(cx, subject, &base, &plain), cx);
    ms_plan with = base;
    with.unit_layers = more->unit_layers;
    with.bucket_bytes = more->bucket_bytes;
    with.partition_activations = more->partition_activations;
    ASSERT_OK(ms_workload_open(cx, &with, &workload), cx);
    ms_rng rng = ms_rng_seed(17 + (uint64_t)(more - drawn));
    for (int trial = 0; trial < num_plans; trial++) {
        ms_arena_mark mark = ms_arena_save(cx->arena);
        ms_plan plan = ms_random_plan(&rng, workload, &with, 32);
        plan.reshard_ranks = 1L << ms_rng_below(&rng, 4);
        if (ms_plan_refusal(&plan, workload->model) == MS_LEGAL)
            check_plan(cx, workload, plain, &plan);
        ms_arena_rewind(cx->arena, mark);
    }
    ms_workload_close(workload);
    ms_workload_close(plain);
}

static void simulations_of_units_equal_predictions(void **state)
{
    (void)state;
    for (int s = 0; s < MS_NUM_PLAN_SUBJECTS; s += 2)
        for (int i = 0; i < NUM_DRAWN; i++)
            check_choices(test_cx(), &ms_plan_subjects[s], &drawn[i], 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulations_of_units_equal_predictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
