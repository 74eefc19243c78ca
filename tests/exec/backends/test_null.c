/* Tests of the null backend, whose ranks keep virtual clocks instead of computing:
 * hand-made transfers, and whole steps of random plans, whose time must equal the
 * simulator's to the last bit. */
#include "exec/runner/outcome_collect.h"
#include "exec/runner/rank_run.h"
#include "exec/runner/runner.h"
#include "sim/simulate/simulation.h"

#include "tests/support/random_plans.h"
#include "tests/support/transfer_checks.h"
#include "tests/test.h"

/* ---- hand-made transfers ---- */

/* Runs `main` on the null backend with four ranks, pp 2 x tp 2; ranks 0 and 1 are one tp
 * group. */
static void run_by_hand(ms_rank_main *main)
{
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_check_plan((long[]){2, 1, 1, 1, 2}, 1);
    ms_world world = ms_world_make(cx->arena, &plan);
    ms_backend_job job = {
        .backend = &ms_backend_null, .world = &world, .type = MS_REAL_FP32};
    ASSERT_OK(job.backend->open(cx, &job), cx);
    ASSERT_OK(job.backend->run(cx, &job, main, NULL), cx);
    job.backend->close(&job);
}

#define EXPECT(got, want)                                                                \
    do {                                                                                 \
        if ((got) != (want))                                                             \
            return ms_fail(cx, MS_ECHECK, MS_NOWHERE, "line %d: %g, expected %g",        \
                           __LINE__, (double)(got), (double)(want));                     \
    } while (0)

static const ms_backend *const clock_of = &ms_backend_null;

static ms_status compute(ms_ctx *cx, ms_device_rank *device, const ms_block_op *op)
{
    const ms_node node = {.op = MS_OP_ADD};
    return clock_of->kernel(cx, device, &(ms_op_call){.node = &node, .predicted = op});
}

/* Runs kernels of 2 and 3 s, then the tp collective `move`; ranks 1 and 3 begin 10 s
 * late. */
static ms_status collect(ms_ctx *cx, ms_device_rank *device, long rank, ms_block_op move,
                         ms_event *done)
{
    ms_block_op ops[3] = {{.compute_s = 2}, {.compute_s = 3}, move};
    ms_block_ops part = {.num_ops = {3}, .ops = {ops}};
    clock_of->begin_block(device, &part, MS_BILL_FORWARD);
    clock_of->idle(device, rank % 2 == 1 ? 10 : 0);
    MS_TRY(compute(cx, device, &ops[0]));
    MS_TRY(compute(cx, device, &ops[1]));
    ms_event after = clock_of->mark(device);
    ms_transfer transfer = {.group = MS_TRAFFIC_TP,
                            .stream = MS_STREAM_TP,
                            .name = "move",
                            .predicted = &ops[2]};
    return clock_of->start(cx, device, &transfer, &after, 1, done);
}

/* An exposed collective of 4 s: both ranks start it at 15 s, when the later one arrives,
 * and wait until 19 s. */
static ms_status exposed(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    (void)state;
    ms_event done;
    ms_block_op move = {.moves = true, .exposed_s = 4};
    MS_TRY(collect(cx, device, rank, move, &done));
    ms_block_op more = {.compute_s = 7};
    EXPECT(clock_of->now_s(device), 19);
    MS_TRY(compute(cx, device, &more));
    EXPECT(clock_of->now_s(device), rank % 2 == 1 ? 22 : 19);
    MS_TRY(clock_of->wait(cx, device, done));
    MS_TRY(compute(cx, device, &more));
    EXPECT(clock_of->now_s(device), rank % 2 == 1 ? 29 : 26);
    return MS_OK;
}

/* A collective that overlaps the kernel before it: its hidden 3.5 s run from 12 s, when
 * the later rank starts the kernel, to 15.5 s; its exposed second follows, until 16.5
 * s. */
static ms_status hidden_before(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    (void)state;
    ms_event done;
    ms_block_op move = {
        .moves = true, .hidden_s = 3.5, .exposed_s = 1, .overlapped_s = 3};
    MS_TRY(collect(cx, device, rank, move, &done));
    EXPECT(clock_of->now_s(device), 16.5);
    return MS_OK;
}

/* A collective that overlaps later kernels: its exposed second ends at 16 s, its hidden
 * part at 22 s. Waiting for the collective's event ends at 22 s, but a kernel of 10 s
 * runs from 16 to 26 s. */
static ms_status hidden_after(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    (void)state;
    ms_event done;
    ms_block_op move = {
        .moves = true, .hidden_s = 6, .exposed_s = 1, .overlaps_later_ops = true};
    MS_TRY(collect(cx, device, rank, move, &done));
    MS_TRY(clock_of->wait(cx, device, done));
    EXPECT(clock_of->now_s(device), 22);
    ms_block_op more = {.compute_s = 10};
    MS_TRY(compute(cx, device, &more));
    EXPECT(clock_of->now_s(device), 26);
    return MS_OK;
}

/* A parameter gather of 3 s and then a gradient reduction of 4 s on one stream, both
 * overlapping compute. */
static ms_status state_moves(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    (void)state;
    ms_event gathered, reduced;
    ms_transfer transfer = {.group = MS_TRAFFIC_TP,
                            .stream = MS_STREAM_GATHER,
                            .name = "gather",
                            .predicted_s = 3};
    clock_of->idle(device, (double)(rank % 2));
    ms_event after = clock_of->mark(device);
    MS_TRY(clock_of->start(cx, device, &transfer, &after, 1, &gathered));
    transfer.stream = MS_STREAM_REDUCE;
    transfer.predicted_s = 4;
    MS_TRY(clock_of->start(cx, device, &transfer, NULL, 0, &reduced));
    EXPECT(clock_of->now_s(device), 8);
    MS_TRY(clock_of->wait(cx, device, gathered));
    clock_of->idle(device, 0.5);
    MS_TRY(clock_of->wait(cx, device, clock_of->mark(device)));
    clock_of->idle(device, 4);
    EXPECT(clock_of->now_s(device), 8.5);
    return MS_OK;
}

/* Ranks 0 and 1 start at 5 s a send that takes 2 s; ranks 2 and 3 have received it at 7
 * s, or later if they ask for it later. */
static ms_status sent(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    (void)state;
    ms_event done, now;
    ms_transfer transfer = {.kind = rank < 2 ? MS_TRANSFER_SEND : MS_TRANSFER_RECEIVE,
                            .peer = (rank + 2) % 4,
                            .tag = 7,
                            .name = "send",
                            .predicted_s = 2};
    clock_of->idle(device, rank < 2 ? 5 : rank == 2 ? 1 : 9);
    now = clock_of->mark(device);
    MS_TRY(clock_of->start(cx, device, &transfer, &now, 1, &done));
    EXPECT(clock_of->now_s(device), rank < 2 ? 5 : rank == 2 ? 1 : 9);
    if (rank >= 2)
        MS_TRY(clock_of->wait(cx, device, done));
    EXPECT(clock_of->now_s(device), rank < 2 ? 5 : rank == 2 ? 7 : 9);
    return MS_OK;
}

static void small_walks_take_what_they_should(void **state)
{
    (void)state;
    ms_rank_main *const walks[] = {exposed, hidden_before, hidden_after, state_moves,
                                   sent};
    for (size_t i = 0; i < sizeof walks / sizeof *walks; i++)
        run_by_hand(walks[i]);
}

/* A pipeline action waits for all transfers that arrived for it while the other action of
 * its pair ran, however many. */
static void a_walk_waits_for_all_that_arrives(void **state)
{
    (void)state;
    enum {
        MANY = 100
    };
    ms_flight flight = {.arena = test_cx()->arena};
    ms_walk_run walk = {.flight = &flight, .ready = 7};
    int num;
    const ms_event *after = ms_walk_run_after(&walk, &num);
    ASSERT_INT(num, 1);
    ASSERT_INT(after[0], 7);
    for (int i = 0; i < MANY; i++) {
        ms_walk_run_arrives(&walk, 1000 + i);
        ms_walk_run_arrives(&walk, 0); /* event 0 has already happened */
    }
    after = ms_walk_run_after(&walk, &num);
    ASSERT_INT(num, 1 + MANY);
    for (int i = 0; i < MANY; i++)
        ASSERT_INT(after[i], 1000 + i);
    ASSERT_INT(after[MANY], 7);
}

/* ---- whole steps ---- */

#define NUM_PLANS 20 /* for each model and stack */

typedef struct subject {
    ms_ctx *cx;
    ms_plan base;
    ms_workload *workload;
} subject;

/* Opens a model cut to four layers, with a stack and the choices of a plan, on H100s. */
static subject open_subject(const char *name, const char *stack, const ms_plan *base)
{
    subject s = {.cx = test_cx(), .base = *base};
    ms_workload_inputs inputs = {0};
    const ms_model *loaded;
    ASSERT_OK(ms_model_load(s.cx, name, &loaded), s.cx);
    ms_model *model = MS_NEW(s.cx->arena, ms_model);
    *model = *loaded;
    model->num_layers = 4;
    inputs.model = model;
    s.base.model = name;
    s.base.stack = stack;
    s.base.sequence_length = 4096;
    ASSERT_OK(ms_cluster_load(s.cx, "hgx-h100", &inputs.cluster), s.cx);
    ASSERT_OK(ms_profile_load(s.cx, inputs.cluster->device.profile, &inputs.profile),
              s.cx);
    ASSERT_OK(ms_stack_load(s.cx, stack, &inputs.stack), s.cx);
    ASSERT_OK(ms_workload_make(s.cx, &inputs, &s.base, &s.workload), s.cx);
    return s;
}

static double clock_step_s(const subject *s, const ms_planned *planned)
{
    ms_outcome out;
    ms_world world = ms_world_make(s->cx->arena, planned->plan);
    ms_backend_job job = {
        .backend = &ms_backend_null, .world = &world, .type = MS_REAL_FP32};
    ms_runner_options options = {.type = MS_REAL_FP32, .num_steps = 1};
    ASSERT_OK(job.backend->open(s->cx, &job), s->cx);
    ASSERT_OK(ms_runner_run(s->cx, &job, planned, &options, &out), s->cx);
    job.backend->close(&job);
    ASSERT_INT(out.steps_done, 1);
    ms_outcome_close(&out);
    return out.step_s[0];
}

static bool check_plan(const subject *s, const ms_plan *plan)
{
    ms_planned planned;
    ms_simulation sim;
    ms_simulate_options options = {.engine = MS_ENGINE_REPLAY, .detail = MS_DETAIL_NODE};
    ms_planned_open(s->cx, s->workload, plan, &planned);
    ASSERT_OK(ms_simulate(s->cx, &planned, &options, &sim), s->cx);
    double got_s = clock_step_s(s, &planned);
    if (got_s != sim.step_s)
        print_error("%s on %s, %s: %.17g s by clocks, %.17g s simulated\n", s->base.model,
                    s->base.stack, ms_plan_text(s->cx->arena, plan), got_s, sim.step_s);
    return got_s == sim.step_s;
}

/* Checks random plans of a subject, which it closes; returns how many are wrong. */
static int num_wrong(subject *s, uint64_t seed, int num)
{
    int wrong = 0;
    ms_rng rng = ms_rng_seed(seed);
    for (int trial = 0; trial < num; trial++) {
        ms_arena_mark mark = ms_arena_save(s->cx->arena);
        ms_plan plan = ms_random_plan(&rng, s->workload, &s->base, 16);
        wrong += !check_plan(s, &plan);
        ms_arena_rewind(s->cx->arena, mark);
    }
    ms_workload_close(s->workload);
    return wrong;
}

static void random_plans_take_what_is_simulated(void **state)
{
    (void)state;
    static const char *const subjects[][2] = {{"llama-3.2-1b", "generic"},
                                              {"llama-3.2-1b", "megatron"},
                                              {"llama-3.2-1b", "meshsim"},
                                              {"llama-3.2-1b", "simumax"},
                                              {"qwen3-30b-a3b", "generic"}};
    int wrong = 0;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++) {
        const ms_plan base = ms_plan_default(16);
        subject s = open_subject(subjects[i][0], subjects[i][1], &base);
        wrong += num_wrong(&s, 31 + i, NUM_PLANS);
    }
    ASSERT_INT(wrong, 0);
}

/* Copies to host memory and back, and an update there, take the simulator's seconds. */
static void offloaded_plans_take_what_is_simulated(void **state)
{
    (void)state;
    int wrong = 0;
    for (int i = 0; i < 4; i++) {
        ms_plan base = ms_plan_default(16);
        base.offload_activations_frac = i == 3 ? 0.0 : 0.97;
        base.offload_layer_inputs = i == 3;
        base.offload_optimizer = i % 2 == 0 ? MS_HOST_UPDATE : MS_HOST_STATES;
        subject s = open_subject("llama-3.2-1b", i < 2 ? "meshsim" : "megatron", &base);
        wrong += num_wrong(&s, 51 + (uint64_t)i, NUM_PLANS / 2);
    }
    ASSERT_INT(wrong, 0);
}

/* Empty pipeline stages between the first and the last pass on what they receive. */
static void empty_stages_hand_on_what_has_arrived(void **state)
{
    (void)state;
    static const long layers[] = {2, 0, 0, 2};
    static const struct {
        ms_schedule_kind schedule;
        long pp, virtual_stages, zero;
    } cases[] = {
        {MS_1F1B, 4, 1, 1},        {MS_1F1B, 4, 1, 2},      {MS_GPIPE, 4, 1, 3},
        {MS_ZB_H1, 4, 1, 0},       {MS_DUALPIPE, 4, 1, 1},  {MS_ZB_V, 2, 2, 1},
        {MS_INTERLEAVED, 2, 2, 1}, {MS_DUALPIPEV, 2, 2, 0}, {MS_DUALPIPEV, 2, 2, 2}};
    const ms_plan base = ms_plan_default(16);
    subject s = open_subject("llama-3.2-1b", "meshsim", &base);
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_plan plan = s.base;
        plan.size[MS_PP] = cases[i].pp;
        plan.size[MS_DP_SHARD] = 16 / cases[i].pp;
        plan.microbatch = 1;
        plan.global_batch = 128;
        ms_plan_set_schedule(&plan, cases[i].schedule);
        plan.virtual_stages = cases[i].virtual_stages;
        plan.zero = cases[i].zero;
        plan.num_stage_layers = 4;
        plan.layers_per_stage = layers;
        ASSERT_OK(ms_plan_check(s.cx, &plan, s.workload->model, MS_NOWHERE), s.cx);
        wrong += !check_plan(&s, &plan);
    }
    ms_workload_close(s.workload);
    ASSERT_INT(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_walks_take_what_they_should),
        cmocka_unit_test(a_walk_waits_for_all_that_arrives),
        cmocka_unit_test(random_plans_take_what_is_simulated),
        cmocka_unit_test(offloaded_plans_take_what_is_simulated),
        cmocka_unit_test(empty_stages_hand_on_what_has_arrived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
