/* Tests of the simulated time per node kind (all tasks of one name and task kind): they
 * sum to the ranks' times, and a real run of the plan has the same kinds. */
#include "exec/backends/backends.h"
#include "exec/runner/measured.h"
#include "sim/simulate/move_names.h"
#include "sim/simulate/node_kinds.h"

#include "tests/support/run_plan.h"
#include "tests/test.h"

#include <math.h>

typedef struct layout {
    const char *name;
    int zero, schedule;
    long pp, replicas, shards, cp, tp;
    bool tied;
    int cp_method;
} layout;

static const layout layouts[] = {
    {"zero 3", 3, MS_1F1B, 1, 1, 2, 1, 1, false, 0},
    {"hsdp", 2, MS_1F1B, 1, 2, 2, 1, 1, false, 0},
    {"zero 1", 1, MS_1F1B, 1, 2, 2, 1, 1, false, 0},
    {"pp, tied", 0, MS_1F1B, 2, 1, 1, 1, 1, true, 0},
    {"twins", 1, MS_DUALPIPE, 2, 1, 2, 1, 1, false, 0},
    {"tp", 0, MS_1F1B, 1, 1, 1, 1, 2, false, 0},
    {"ring", 0, MS_1F1B, 1, 1, 1, 2, 1, false, MS_CP_RING},
    {"all", 3, MS_1F1B, 2, 1, 2, 1, 2, true, 0},
};
#define NUM_LAYOUTS ((int)(sizeof layouts / sizeof *layouts))

static void make_plan(const layout *l, ms_plan *plan)
{
    *plan = ms_run_base_plan();
    plan->zero = l->zero;
    plan->schedule = l->schedule;
    plan->size[MS_PP] = l->pp;
    plan->size[MS_DP_REPLICATE] = l->replicas;
    plan->size[MS_DP_SHARD] = l->shards;
    plan->size[MS_CP] = l->cp;
    plan->size[MS_TP] = l->tp;
    plan->gpus = l->pp * l->replicas * l->shards * l->cp * l->tp;
    plan->cp_method = l->cp_method;
    plan->microbatch = 1;
    ms_plan_fill_defaults(plan);
}

static void open_layout(ms_ctx *cx, const layout *l, ms_plan *plan, ms_run_opened *out)
{
    ms_model *model = MS_NEW(cx->arena, ms_model);
    *model = *ms_pubrun_model(cx->arena, ms_small_llama);
    model->tied_embeddings = l->tied;
    make_plan(l, plan);
    ASSERT_OK(ms_run_open(cx, model, plan, "generic", out), cx);
}

static ms_simulation simulate(ms_ctx *cx, const ms_planned *planned, ms_engine engine)
{
    ms_simulate_options options = {.engine = engine, .detail = MS_DETAIL_NODE};
    ms_simulation simulation;
    ASSERT_OK(ms_simulate(cx, planned, &options, &simulation), cx);
    return simulation;
}

/* Sums the predicted seconds of the node kinds whose ms_task_kind is in [from, to]. */
static double sum_s(const ms_node_kinds *all, int from, int to)
{
    double sum = 0.0;
    for (int i = 0; i < all->num; i++)
        if (all->kinds[i].task_kind >= from && all->kinds[i].task_kind <= to)
            sum += all->kinds[i].predicted_s;
    return sum;
}

/* Node kinds sum to the end times of all ranks; their compute time equals the ranks'
 * compute time, and their waits for stages do not exceed the ranks' bubbles. */
static void kinds_sum_to_the_ends_of_ranks(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * NUM_LAYOUTS; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan;
        ms_run_opened opened;
        open_layout(cx, &layouts[i / 2], &plan, &opened);
        ms_simulation s =
            simulate(cx, opened.planned, i % 2 == 0 ? MS_ENGINE_REPLAY : MS_ENGINE_EVENT);
        ms_node_kinds kinds = ms_simulated_kinds(cx->arena, &s);
        double ends_s = 0.0, compute_s = 0.0, bubble_s = 0.0;
        for (int a = 0; a < s.num_actors; a++) {
            ends_s += (double)s.actors[a].multiplicity * s.actors[a].end_s;
            compute_s += (double)s.actors[a].multiplicity * s.actors[a].compute_s;
            bubble_s += (double)s.actors[a].multiplicity * s.actors[a].bubble_s;
        }
        ASSERT_NEAR(sum_s(&kinds, 0, MS_NUM_TASK_KINDS) / ends_s, 1.0, 1e-9);
        ASSERT_NEAR(sum_s(&kinds, MS_TASK_FORWARD, MS_TASK_RECOMPUTE) / compute_s, 1.0,
                    1e-9);
        double waiting_s = sum_s(&kinds, MS_TASK_RECEIVE, MS_TASK_RECEIVE);
        assert_true(waiting_s <= bubble_s * (1.0 + 1e-9));
        ASSERT_INT(waiting_s > 0.0, layouts[i / 2].pp > 1);
        for (int k = 1; k < kinds.num; k++)
            assert_true(kinds.kinds[k].predicted_s >= 0.0 &&
                        kinds.kinds[k].predicted_s <= kinds.kinds[k - 1].predicted_s);
        ms_run_close(&opened);
    }
}

/* ---- beside a run ---- */

static ms_node_kinds run_kinds(ms_ctx *cx, const ms_run_opened *opened)
{
    ms_runner_options options = ms_run_options(opened->planned->workload->model,
                                               opened->planned->plan, MS_REAL_FP32);
    ms_backend_job job = {
        .backend = &ms_backend_loop, .world = opened->world, .type = MS_REAL_FP32};
    ms_outcome outcome;
    ASSERT_OK(job.backend->open(cx, &job), cx);
    ASSERT_OK(ms_runner_run(cx, &job, opened->planned, &options, &outcome), cx);
    ms_measured measured;
    ms_measured_make(cx->arena, &outcome, 0, 1.0, NULL, &measured);
    for (long i = 0; i < outcome.num_ranks; i++)
        ms_recorder_close(&outcome.ranks[i].recorder);
    job.backend->close(&job);
    return measured.kinds;
}

static bool has(const ms_node_kinds *all, const ms_node_kind *kind)
{
    for (int i = 0; i < all->num; i++)
        if (all->kinds[i].task_kind == kind->task_kind &&
            strcmp(all->kinds[i].name, kind->name) == 0)
            return true;
    return false;
}

/* Whether a node kind occurs in simulations only: a real run has no separate record for
 * host delays, interference, gradient accumulation and ring transfers inside
 * attention. */
static bool only_simulated(const layout *l, const ms_node_kind *kind)
{
    return kind->task_kind == MS_TASK_HOST || strcmp(kind->name, "interference") == 0 ||
           strcmp(kind->name, MS_MOVE_ACCUMULATE) == 0 ||
           (l->cp > 1 && kind->task_kind == MS_TASK_COLLECTIVE &&
            strcmp(kind->name, "attention.core") == 0);
}

static void a_run_has_the_kinds_of_its_simulation(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_LAYOUTS; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan;
        ms_run_opened opened;
        open_layout(cx, &layouts[i], &plan, &opened);
        ms_simulation s = simulate(cx, opened.planned, MS_ENGINE_REPLAY);
        ms_node_kinds simulated = ms_simulated_kinds(cx->arena, &s);
        ms_node_kinds run = run_kinds(cx, &opened);
        for (int k = 0; k < simulated.num; k++)
            if (!has(&run, &simulated.kinds[k]) &&
                !only_simulated(&layouts[i], &simulated.kinds[k]))
                fail_msg("%s: the run has no %s", layouts[i].name,
                         ms_node_kind_text(cx->arena, &simulated.kinds[k]));
        for (int k = 0; k < run.num; k++)
            if (!has(&simulated, &run.kinds[k]))
                fail_msg("%s: the simulation has no %s", layouts[i].name,
                         ms_node_kind_text(cx->arena, &run.kinds[k]));
        ms_run_close(&opened);
    }
}

/* A table of node kinds grows beyond its initial capacity. */
static void kinds_grow(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    ms_node_kinds all = ms_node_kinds_make(arena);
    const int num = 5000;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < num; i++)
            ms_node_kinds_at(&all, ms_arena_printf(arena, "node %d", i / 2), i % 2)
                ->count += 1.0;
    ASSERT_INT(all.num, num);
    for (int i = 0; i < num; i++)
        ASSERT_NEAR(all.kinds[i].count, 2.0, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_sum_to_the_ends_of_ranks),
        cmocka_unit_test(a_run_has_the_kinds_of_its_simulation),
        cmocka_unit_test(kinds_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
