/* Simulations of random plans of every schedule: with a task per action they equal the
 * replay of the schedule, bit for bit; what ranks do adds up to the step; memory over
 * time peaks where the memory model says. */
#include "sim/simulate/simulation.h"
#include "sim/step/prediction.h"

#include "tests/support/graphs.h"
#include "tests/support/random_plans.h"
#include "tests/test.h"

typedef struct subject {
    ms_ctx *cx;
    ms_plan base;
    ms_workload *workload;
    /* one stack for each way in which optimizers wait (ms_optimizer_sync) */
    ms_stack stacks[2];
} subject;

static void use_sync(subject *s, ms_optimizer_sync sync)
{
    s->workload->stack = &s->stacks[sync];
}

static subject open_subject(const char *model, const char *cluster)
{
    subject s = {.cx = test_cx(), .base = ms_plan_default(64)};
    s.base.model = model;
    s.base.cluster = cluster;
    s.base.sequence_length = 4096;
    ASSERT_OK(ms_workload_open(s.cx, &s.base, &s.workload), s.cx);
    for (int sync = 0; sync < 2; sync++) {
        s.stacks[sync] = *s.workload->stack;
        s.stacks[sync].optimizer_sync = (ms_optimizer_sync)sync;
    }
    return s;
}

static const char *const models[] = {"llama-3.2-1b", "qwen3-30b-a3b"};

/* Whether schedules of this family exist for four ranks and eight micro-batches, with one
 * chunk or with two chunks a rank. */
static bool is_there(ms_schedule_kind kind)
{
    ms_schedule_shape shape = {.kind = kind, .num_ranks = 4, .num_microbatches = 8};
    for (shape.virtual_stages = 1; shape.virtual_stages <= 2; shape.virtual_stages++)
        if (ms_schedule_allows(&shape, NULL))
            return true;
    return false;
}

static void check_all_drawn(const int num_drawn[MS_NUM_SCHEDULES])
{
    for (int kind = 0; kind < MS_CUSTOM; kind++)
        if (is_there((ms_schedule_kind)kind) && num_drawn[kind] < 5)
            fail_msg("%s: drawn %d times", ms_schedule_names[kind], num_drawn[kind]);
}

static void actions_are_the_replay_to_the_last_bit(void **state)
{
    (void)state;
    int num_drawn[MS_NUM_SCHEDULES] = {0};
    for (int m = 0; m < 2; m++) {
        subject s = open_subject(models[m], "hgx-h100");
        ms_rng rng = ms_rng_seed(21 + (uint64_t)m);
        for (int trial = 0; trial < 300; trial++) {
            ms_arena_mark mark = ms_arena_save(s.cx->arena);
            ms_plan plan = ms_random_plan(&rng, s.workload, &s.base, 64);
            num_drawn[plan.schedule]++;
            use_sync(&s, trial % 2 == 0 ? MS_SYNC_GLOBAL : MS_SYNC_POST_VALIDATION);
            s.stacks[trial % 2].dp_overlap.value = trial % 5 != 0;
            ms_planned planned;
            ms_simulation sim;
            ms_planned_open(s.cx, s.workload, &plan, &planned);
            ms_simulate_options options = {.engine = MS_ENGINE_REPLAY,
                                           .detail = MS_DETAIL_ACTION,
                                           .unfolded = trial % 7 == 0};
            ASSERT_OK(ms_simulate(s.cx, &planned, &options, &sim), s.cx);
            assert_true(ms_graph_is_ordered(sim.graph));
            double want_s = ms_step_exact_s(&planned.pipeline, planned.sharding,
                                            planned.schedule, s.cx->arena);
            if (sim.step_s != want_s)
                fail_msg("%s, %s: simulated %.17g s, replay %.17g s",
                         ms_plan_text(s.cx->arena, &plan),
                         ms_optimizer_sync_names[trial % 2], sim.step_s, want_s);
            ms_arena_rewind(s.cx->arena, mark);
        }
        ms_workload_close(s.workload);
    }
    check_all_drawn(num_drawn);
}

static double modelled_peak_bytes(const subject *s, const ms_planned *planned, int rank)
{
    double parts[MS_NUM_MEMORY_CATEGORIES], peak_bytes = 0.0;
    ms_rank_load load = ms_planned_load(s->cx, planned, rank);
    ms_rank_memory(s->workload, &load, planned->sharding, &planned->pipeline.shards,
                   parts);
    for (int i = 0; i < MS_NUM_MEMORY_CATEGORIES; i++)
        peak_bytes += parts[i];
    return peak_bytes;
}

static void check_actor(const subject *s, const ms_plan *plan, const ms_simulation *sim,
                        const ms_actor *actor, double peak_bytes)
{
    double sum_s = actor->compute_s + actor->exposed_comm_s + actor->bubble_s +
                   actor->optimizer_s + actor->host_s;
    if (fabs(sum_s - sim->step_s) > 1e-9 * sim->step_s ||
        fabs(actor->peak_bytes - peak_bytes) > 1e-9 * peak_bytes)
        fail_msg("%s, pipeline rank %d: parts add up to %.17g s of %.17g; peak %.17g "
                 "bytes, by the memory model %.17g",
                 ms_plan_text(s->cx->arena, plan), actor->pipeline_rank, sum_s,
                 sim->step_s, actor->peak_bytes, peak_bytes);
    for (int i = 1; i < actor->num_samples; i++)
        assert_true(actor->samples[i].time_s >= actor->samples[i - 1].time_s);
}

/* A rank's simulated memory over time peaks at what the prediction says of its stage. */
static void parts_add_up_and_memory_peaks_as_the_model_says(void **state)
{
    (void)state;
    int num_drawn[MS_NUM_SCHEDULES] = {0};
    for (int m = 0; m < 2; m++) {
        subject s = open_subject(models[m], "hgx-h100");
        ms_rng rng = ms_rng_seed(23 + (uint64_t)m);
        for (int trial = 0; trial < 300; trial++) {
            ms_arena_mark mark = ms_arena_save(s.cx->arena);
            ms_plan plan = ms_random_plan(&rng, s.workload, &s.base, 64);
            num_drawn[plan.schedule] += plan.size[MS_PP] > 1;
            use_sync(&s, trial % 3 == 0 ? MS_SYNC_POST_VALIDATION : MS_SYNC_GLOBAL);
            ms_planned planned;
            ms_simulation sim;
            ms_prediction prediction;
            ms_planned_open(s.cx, s.workload, &plan, &planned);
            ms_simulate_options options = {0};
            ASSERT_OK(ms_simulate(s.cx, &planned, &options, &sim), s.cx);
            ASSERT_OK(ms_predict(s.cx, s.workload, &plan, &prediction), s.cx);
            ASSERT_INT(sim.num_actors, plan.size[MS_PP]);
            for (int a = 0; a < sim.num_actors; a++) {
                const ms_actor *actor = &sim.actors[a];
                check_actor(&s, &plan, &sim, actor,
                            prediction.stages[actor->pipeline_rank].peak_bytes);
            }
            ms_arena_rewind(s.cx->arena, mark);
        }
        ms_workload_close(s.workload);
    }
    check_all_drawn(num_drawn);
}

/* Checks, where some ranks are slow, that folding changes no result: each rank ends,
 * idles and peaks in memory exactly as the rank that stands for its class. */
static void check_folded(const subject *s, const ms_plan *plan, const ms_planned *planned,
                         ms_simulate_options options)
{
    ms_simulation folded, whole;
    ASSERT_OK(ms_simulate(s->cx, planned, &options, &folded), s->cx);
    options.unfolded = true;
    ASSERT_OK(ms_simulate(s->cx, planned, &options, &whole), s->cx);
    ASSERT_INT(whole.num_actors, plan->gpus);
    for (long rank = 0; rank < plan->gpus; rank++) {
        const ms_actor *alone = &whole.actors[rank],
                       *one = &folded.actors[folded.fold.class_of[rank]];
        if (alone->end_s != one->end_s || alone->bubble_s != one->bubble_s ||
            alone->peak_bytes != one->peak_bytes)
            fail_msg("%s: rank %ld ends at %.17g s, folded at %.17g s",
                     ms_plan_text(s->cx->arena, plan), rank, alone->end_s, one->end_s);
    }
    assert_true(folded.step_s == whole.step_s);
}

/* Folded and unfolded simulations node by node agree; with shared links only up to
 * rounding, since rates are summed in another order. */
static void check_folded_nodes(const subject *s, const ms_plan *plan,
                               const ms_planned *planned, ms_simulate_options options)
{
    ms_simulation folded, whole;
    options.detail = MS_DETAIL_NODE;
    options.unfolded = false;
    ASSERT_OK(ms_simulate(s->cx, planned, &options, &folded), s->cx);
    options.unfolded = true;
    ASSERT_OK(ms_simulate(s->cx, planned, &options, &whole), s->cx);
    double most = options.engine == MS_ENGINE_EVENT ? 1e-6 : 0.0;
    if (fabs(folded.step_s - whole.step_s) > most * whole.step_s)
        fail_msg("%s, engine %s: %.17g s, folded %.17g s",
                 ms_plan_text(s->cx->arena, plan), ms_engine_names[options.engine],
                 whole.step_s, folded.step_s);
}

static void folding_nodes_changes_nothing(void **state)
{
    (void)state;
    for (int m = 0; m < 2; m++) {
        subject s = open_subject(models[m], "hgx-h100");
        ms_rng rng = ms_rng_seed(41 + (uint64_t)m);
        for (int trial = 0; trial < 24; trial++) {
            ms_arena_mark mark = ms_arena_save(s.cx->arena);
            ms_plan plan = ms_random_plan(&rng, s.workload, &s.base, 16);
            ms_planned planned;
            ms_planned_open(s.cx, s.workload, &plan, &planned);
            ms_simulate_options options = {.num_slow = (int)ms_rng_below(&rng, 2)};
            options.engine = trial % 2 == 0 ? MS_ENGINE_REPLAY : MS_ENGINE_EVENT;
            options.slow[0] = (ms_slowdown){
                .rank = (long)ms_rng_below(&rng, (uint64_t)plan.gpus), .factor = 1.5};
            check_folded_nodes(&s, &plan, &planned, options);
            ms_arena_rewind(s.cx->arena, mark);
        }
        ms_workload_close(s.workload);
    }
}

/* Both engines, without shared links, agree on the same graph of nodes to the last bit;
 * memory peaks as it does with a task per action. */
static void engines_agree_on_nodes_without_sharing(void **state)
{
    (void)state;
    subject s = open_subject("llama-3.2-1b", "hgx-h100");
    ms_rng rng = ms_rng_seed(51);
    for (int trial = 0; trial < 60; trial++) {
        ms_arena_mark mark = ms_arena_save(s.cx->arena);
        ms_plan plan = ms_random_plan(&rng, s.workload, &s.base, 32);
        ms_planned planned;
        ms_simulation replay, event;
        ms_planned_open(s.cx, s.workload, &plan, &planned);
        ms_simulate_options options = {.detail = MS_DETAIL_NODE, .unshared = true};
        ASSERT_OK(ms_simulate(s.cx, &planned, &options, &replay), s.cx);
        options.engine = MS_ENGINE_EVENT;
        ASSERT_OK(ms_simulate(s.cx, &planned, &options, &event), s.cx);
        assert_true(ms_graph_is_ordered(replay.graph));
        size_t bytes = (size_t)(1 + replay.graph->num_tasks) * sizeof(double);
        assert_true(memcmp(replay.end_s, event.end_s, bytes) == 0);
        for (int a = 0; a < replay.num_actors; a++)
            check_actor(
                &s, &plan, &replay, &replay.actors[a],
                modelled_peak_bytes(&s, &planned, replay.actors[a].pipeline_rank));
        ms_arena_rewind(s.cx->arena, mark);
    }
    ms_workload_close(s.workload);
}

static void folding_changes_nothing(void **state)
{
    (void)state;
    for (int m = 0; m < 2; m++) {
        subject s = open_subject(models[m], "hgx-h100");
        ms_rng rng = ms_rng_seed(31 + (uint64_t)m);
        for (int trial = 0; trial < 100; trial++) {
            ms_arena_mark mark = ms_arena_save(s.cx->arena);
            ms_plan plan = ms_random_plan(&rng, s.workload, &s.base, 64);
            ms_planned planned;
            ms_planned_open(s.cx, s.workload, &plan, &planned);
            ms_simulate_options options = {.num_slow = (int)ms_rng_below(&rng, 3)};
            for (int i = 0; i < options.num_slow; i++)
                options.slow[i] = (ms_slowdown){
                    .rank = (long)ms_rng_below(&rng, (uint64_t)plan.gpus), .factor = 1.5};
            check_folded(&s, &plan, &planned, options);
            ms_arena_rewind(s.cx->arena, mark);
        }
        ms_workload_close(s.workload);
    }
}

/* Makes the plan with axes of these sizes; false: the plan is not legal. */
static bool mesh_plan(const subject *s, const long sizes[MS_NUM_PLAN_AXES], ms_plan *plan)
{
    *plan = s->base;
    plan->gpus = 1;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++) {
        plan->size[axis] = sizes[axis];
        plan->gpus *= sizes[axis];
    }
    plan->zero = 1;
    plan->global_batch = 2 * ms_plan_data_parallel(plan);
    return plan->gpus <= 64 && ms_plan_refusal(plan, s->workload->model) == MS_LEGAL;
}

/* Folding does not change results on any legal mesh of at most 64 ranks with a slow
 * rank in the middle: with a task per action, and on small meshes node by node with
 * shared links. */
static void folding_changes_nothing_on_any_mesh(void **state)
{
    (void)state;
    subject s = open_subject("llama-3.2-1b", "hgx-h100");
    int num_meshes = 0;
    for (long code = 0; code < 17L * 64 * 64 * 16 * 8; code++) {
        long sizes[MS_NUM_PLAN_AXES] = {
            code / (64L * 64 * 16 * 8) + 1, code / (64 * 16 * 8) % 64 + 1,
            code / (16 * 8) % 64 + 1, code / 8 % 16 + 1, code % 8 + 1};
        ms_plan plan;
        if (sizes[0] * sizes[1] * sizes[2] * sizes[3] * sizes[4] > 64 ||
            !mesh_plan(&s, sizes, &plan))
            continue;
        ms_arena_mark mark = ms_arena_save(s.cx->arena);
        ms_planned planned;
        ms_planned_open(s.cx, s.workload, &plan, &planned);
        ms_simulate_options options = {.num_slow = 1};
        options.slow[0] = (ms_slowdown){.rank = plan.gpus / 2, .factor = 1.5};
        check_folded(&s, &plan, &planned, options);
        options.engine = MS_ENGINE_EVENT;
        if (plan.gpus <= 6)
            check_folded_nodes(&s, &plan, &planned, options);
        ms_arena_rewind(s.cx->arena, mark);
        num_meshes++;
    }
    assert_true(num_meshes > 400);
    ms_workload_close(s.workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actions_are_the_replay_to_the_last_bit),
        cmocka_unit_test(parts_add_up_and_memory_peaks_as_the_model_says),
        cmocka_unit_test(folding_changes_nothing),
        cmocka_unit_test(folding_changes_nothing_on_any_mesh),
        cmocka_unit_test(folding_nodes_changes_nothing),
        cmocka_unit_test(engines_agree_on_nodes_without_sharing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
