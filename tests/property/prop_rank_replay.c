/* A rank that executes alone, with other ranks and links modelled, allocates to the byte
 * what it allocates among all ranks of the plan; and the step that measured actions of
 * such ranks make is, where kernels take their predicted times, the predicted step. */
#include "base/number.h"
#include "exec/backends/modelled.h"
#include "exec/runner/recompose.h"
#include "tests/support/run_cases.h"

#include "tests/test.h"

#include <math.h>

/* Runs one rank of an open plan alone; `out` keeps its time records. */
static void replay(ms_ctx *cx, const ms_run_opened *opened, const ms_backend *backend,
                   ms_runner_options options, long rank, ms_outcome *out)
{
    options.replays = options.balanced_routing = true;
    options.wants_weights = options.wants_gradients = options.wants_updated = false;
    ms_backend_job job = {.backend = backend,
                          .world = opened->world,
                          .type = options.type,
                          .replayed_rank = rank};
    ASSERT_OK(backend->open(cx, &job), cx);
    ASSERT_OK(ms_runner_run(cx, &job, opened->planned, &options, out), cx);
    backend->close(&job);
    ASSERT_INT(out->num_ranks, 1);
    ASSERT_INT(out->ranks[0].rank, rank);
}

/* ---- memory ---- */

static void compare_ledgers(const ms_run_case *c, ms_ctx *cx, const ms_ledger *alone,
                            const ms_ledger *among_all)
{
    for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++)
        if (alone->peak_parts[part] != among_all->peak_parts[part])
            fail_msg("%s, %s: %s %.0f bytes alone, %.0f among all ranks", c->model->name,
                     ms_plan_text(cx->arena, &c->plan), ms_memory_category_names[part],
                     alone->peak_parts[part], among_all->peak_parts[part]);
    assert_true(alone->peak_bytes == among_all->peak_bytes);
    assert_true(alone->workspace_peak_bytes == among_all->workspace_peak_bytes);
}

static void ranks_alone_allocate_the_same_bytes(void **state)
{
    (void)state;
    for (long number = 0; number < TEST_CASES(60, 10); number++) {
        ms_ctx *cx = test_cx();
        ms_run_opened opened;
        ms_outcome whole, alone;
        ms_run_case c = ms_run_case_draw(cx, &ms_run_fp32, 21, number, 0);
        ms_runner_options options = ms_run_options(c.model, &c.plan, MS_REAL_FP32);
        options.balanced_routing = true;
        options.first_recorded_step = options.num_steps;
        ASSERT_OK(ms_run_open(cx, c.model, &c.plan, c.stack, &opened), cx);
        ASSERT_OK(ms_run_opened_plan(cx, &opened, &ms_backend_loop, &options, &whole),
                  cx);
        for (long rank = 0; rank < c.plan.gpus; rank++) {
            replay(cx, &opened, &ms_backend_modelled, options, rank, &alone);
            compare_ledgers(&c, cx, &alone.ranks[0].ledger, &whole.ranks[rank].ledger);
            assert_true(isfinite(alone.losses[0]));
        }
        ms_run_close(&opened);
    }
}

/* ---- time ---- */

#define AGREE_FRAC 0.03 /* largest difference of the recomposed step */

/* Opens a plan on CPU cores, which never wait for a host. */
static void open_on_cores(ms_ctx *cx, const ms_run_case *c, ms_run_opened *out)
{
    ms_workload_inputs inputs = {.model = c->model};
    ms_planned *planned = MS_NEW(cx->arena, ms_planned);
    ms_world *world = MS_NEW(cx->arena, ms_world);
    ASSERT_OK(ms_cluster_load(cx, "cpu", &inputs.cluster), cx);
    ASSERT_OK(ms_profile_load(cx, inputs.cluster->device.profile, &inputs.profile), cx);
    ASSERT_OK(ms_stack_load(cx, "meshsim", &inputs.stack), cx);
    ASSERT_OK(ms_workload_make(cx, &inputs, &c->plan, &out->workload), cx);
    ms_planned_open(cx, out->workload, &c->plan, planned);
    *world = ms_world_make(cx->arena, &c->plan);
    out->planned = planned;
    out->world = world;
}

static long rank_of(const ms_world *world, int pipeline_rank)
{
    long rank = 0;
    while (world->places[rank].pp != pipeline_rank)
        rank++;
    return rank;
}

/* Whether real backends overlap what predictions do. They wait for reductions of a
 * micro-batch's gradients, whose buffers they reuse (ZeRO-2 and 3), and overlap rings and
 * chunks of async TP as far as kernels allow, where predictions have a share. Of sharded
 * gradients only the owners of a norm's sum them over tp; predictions count each rank. */
static bool runs_as_predicted(const ms_plan *plan)
{
    bool shards_grads =
        plan->zero == 2 || (plan->zero == 3 && plan->reshard_after_forward);
    bool ring = plan->size[MS_CP] > 1 && plan->cp_method == MS_CP_RING;
    bool splits_tokens = plan->size[MS_TP] > 1 && plan->sequence_parallel;
    return !shards_grads && !ring && !(plan->async_tp && plan->size[MS_TP] > 1) &&
           !(splits_tokens && plan->zero > 0);
}

/* The predicted step without the kernels of the optimizer, which no prediction times. */
static double predicted_s(const ms_recomposition *whole)
{
    const ms_pipeline *pipeline = &whole->planned->pipeline;
    int slowest;
    return whole->predicted_step_s -
           ms_optimizer_s(pipeline, whole->planned->sharding, &slowest) +
           pipeline->world_sync_s;
}

static void recomposed_steps_are_predicted_ones(void **state)
{
    (void)state;
    int num_pipelines = 0;
    for (long number = 0; number < TEST_CASES(150, 30); number++) {
        ms_ctx *cx = test_cx();
        ms_run_opened opened;
        ms_outcome outcome;
        ms_run_case c = ms_run_case_draw(cx, &ms_run_fp32, 22, number, 0);
        ms_runner_options options = ms_run_options(c.model, &c.plan, MS_REAL_FP32);
        if (!runs_as_predicted(&c.plan))
            continue;
        open_on_cores(cx, &c, &opened);
        ms_recomposition whole = ms_recomposition_open(cx->arena, opened.planned);
        for (int pp = 0; pp < whole.num_ranks; pp++) {
            if (whole.measured_by[pp] >= 0)
                continue;
            replay(cx, &opened, &ms_backend_modelled_untimed, options,
                   rank_of(opened.world, pp), &outcome);
            ms_recomposition_add(&whole, pp, &outcome, 0);
            ms_recorder_close(&outcome.ranks[0].recorder);
        }
        ms_recompose(&whole);
        double frac = whole.step_s / predicted_s(&whole) - 1.0;
        if (fabs(frac) > AGREE_FRAC)
            fail_msg("%s, %s: recomposed %.6g s, predicted %.6g s, %+.1f %%",
                     c.model->name, ms_plan_text(cx->arena, &c.plan), whole.step_s,
                     predicted_s(&whole), 100.0 * frac);
        num_pipelines += c.plan.size[MS_PP] > 1;
        ms_run_close(&opened);
    }
    assert_true(num_pipelines >= TEST_CASES(20, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_alone_allocate_the_same_bytes),
        cmocka_unit_test(recomposed_steps_are_predicted_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
