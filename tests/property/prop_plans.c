/* Laws that every prediction obeys, on random plans: lower bounds hold, parts add up
 * to the step, memory falls with sharding. Failures name the seed. */
#include "base/rng.h"
#include "sim/step/prediction.h"
#include "tests/property/search_cases.h"

typedef struct plan_source {
    ms_ctx *cx;
    ms_space space;
    ms_workload *workload;
    ms_mesh_choice *meshes;
    int num_meshes;
    ms_rng rng;
    uint64_t seed;
} plan_source;

static const search_case sources[] = {
    {"8b", "generic", "hgx-h100", 64, 128, 0, 1.0, {NULL}},
    {"8b", "torchtitan", "h100-96g-500w", 32, 64, 0, 1.0, {NULL}},
    {"70b", "megatron", "gb200-nvl72", 144, 288, 0, 1.0, {NULL}},
    {"qwen3-30b-a3b", "generic", "hgx-h200", 32, 64, 0, 1.0, {NULL}},
    {"deepseek-v2-lite", "nanotron", "hgx-h800", 16, 96, 0, 1.0, {NULL}},
    {"gpt3-175b", "megatron-2021", "hgx-a100-80g", 256, 512, 0, 1.0, {NULL}},
    {"8b", "generic", "mi300x", 64, 128, 0, 1.0, {NULL}},
    {"qwen3-30b-a3b", "generic", "tpu-v5p", 96, 192, 0, 1.0, {NULL}},
    {"70b", "maxtext", "tpu-v5p", 8192, 8192, 0, 1.0, {NULL}},
    {"qwen3-30b-a3b", "megatron-bridge", "hgx-h100", 64, 128, 0, 1.0, {NULL}},
};
#define NUM_SOURCES (int)(sizeof sources / sizeof *sources)

static plan_source open_source(int which)
{
    plan_source s = {.cx = test_cx()};
    long refused[MS_NUM_REFUSALS] = {0};
    s.workload = open_case(s.cx, &sources[which], &s.space);
    s.num_meshes =
        ms_space_meshes(&s.space, s.workload->model, s.cx->arena, &s.meshes, refused);
    assert_true(s.num_meshes > 0);
    return s;
}

static long pick(ms_rng *rng, long low, long high)
{
    return low + (long)ms_rng_below(rng, (uint64_t)(high - low + 1));
}

static void pick_order(plan_source *s, ms_plan *plan)
{
    ms_orders *orders = MS_NEW(s->cx->arena, ms_orders);
    ms_space_orders(&s->space, plan, s->workload, orders);
    long i = pick(&s->rng, 0, orders->num - 1);
    memcpy(plan->order, orders->order[i], sizeof plan->order);
}

static void pick_schedule(plan_source *s, ms_plan *plan)
{
    plan->schedule = (ms_schedule_kind)pick(&s->rng, 0, MS_NUM_SCHEDULES - 1);
    if (plan->size[MS_PP] == 1)
        plan->schedule = MS_1F1B;
    plan->virtual_stages = plan->schedule == MS_INTERLEAVED ? pick(&s->rng, 2, 5) : 1;
}

static void pick_states(plan_source *s, ms_plan *plan)
{
    plan->zero = pick(&s->rng, 0, 3);
    plan->reshard_after_forward =
        plan->zero != 3 || (pick(&s->rng, 0, 1) == 1 && plan->size[MS_PP] == 1);
    plan->recompute = (ms_recompute)pick(&s->rng, 0, MS_NUM_RECOMPUTE - 1);
    if (plan->recompute == MS_RECOMPUTE_FULL)
        plan->recompute_layers = pick(&s->rng, 0, 3);
}

/* A random legal plan that depends on the seed only. */
static ms_plan random_plan(plan_source *s, uint64_t seed)
{
    s->seed = seed;
    s->rng = ms_rng_seed(seed);
    for (int tries = 0; tries < 10000; tries++) {
        ms_plan plan =
            ms_space_plan(&s->space, &s->meshes[pick(&s->rng, 0, s->num_meshes - 1)]);
        long local = plan.global_batch / ms_plan_data_parallel(&plan);
        if (local == 0)
            continue;
        plan.microbatch = pick(&s->rng, 1, local < 4 ? local : 4);
        plan.sequence_parallel = plan.size[MS_TP] > 1 && pick(&s->rng, 0, 1) == 1;
        plan.async_tp = plan.sequence_parallel && pick(&s->rng, 0, 1) == 1;
        pick_schedule(s, &plan);
        pick_states(s, &plan);
        if (ms_plan_refusal(&plan, s->workload->model) != MS_LEGAL)
            continue;
        pick_order(s, &plan);
        ASSERT_INT(ms_plan_refusal(&plan, s->workload->model), MS_LEGAL);
        return plan;
    }
    fail_msg("seed %llu: no legal plan", (unsigned long long)seed);
    return s->space.base;
}

static void wrong(const plan_source *s, const ms_plan *plan, const char *what, double a,
                  double b)
{
    fail_msg("seed %llu, %s, stack %s, %s: %s (%.17g, %.17g)",
             (unsigned long long)s->seed, plan->model, plan->stack,
             ms_plan_text(s->cx->arena, plan), what, a, b);
}

static ms_prediction predict(plan_source *s, const ms_plan *plan)
{
    ms_prediction prediction;
    ASSERT_OK(ms_predict(s->cx, s->workload, plan, &prediction), s->cx);
    return prediction;
}

typedef void (*plan_check)(plan_source *s, const ms_plan *plan);

static void for_random_plans(int per_source, plan_check check)
{
    for (int i = 0; i < NUM_SOURCES; i++) {
        plan_source s = open_source(i);
        for (int j = 0; j < per_source / TEST_CASES(1, 5); j++) {
            ms_plan plan = random_plan(&s, (uint64_t)(1000 * i + j));
            check(&s, &plan);
        }
        ms_workload_close(s.workload);
    }
}

static bool near_sum(double sum, double want)
{
    return fabs(sum - want) <= 1e-12 * fabs(want);
}

static void check_bound(plan_source *s, const ms_plan *plan)
{
    ms_prediction p = predict(s, plan);
    if (!(p.bound_s <= p.step_s))
        wrong(s, plan, "the bound is above the exact time", p.bound_s, p.step_s);
}

static void bounds_are_never_above_exact_times(void **state)
{
    (void)state;
    for_random_plans(150, check_bound);
}

static void check_sums(plan_source *s, const ms_plan *plan)
{
    ms_prediction p = predict(s, plan);
    double time_s =
        p.compute_s + p.exposed_comm_s + p.bubble_s + p.optimizer_s + p.host_s;
    if (!near_sum(time_s, p.step_s))
        wrong(s, plan, "the parts do not sum to the step", time_s, p.step_s);
    const double inputs[] = {p.compute_s, p.exposed_comm_s, p.bubble_s, p.optimizer_s,
                             p.host_s};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (!(inputs[i] >= -1e-9 * p.step_s))
            wrong(s, plan, "a part of the step is negative", (double)i, inputs[i]);
    double bytes = 0.0, most = 0.0;
    for (int i = 0; i < MS_NUM_MEMORY_CATEGORIES; i++) {
        bytes += p.memory[i];
        if (!(p.memory[i] >= 0.0))
            wrong(s, plan, "a part of memory is negative", (double)i, p.memory[i]);
    }
    for (int i = 0; i < p.num_stages; i++)
        most = fmax(most, p.stages[i].peak_bytes);
    if (!near_sum(bytes, p.peak_bytes) || !near_sum(most, p.peak_bytes))
        wrong(s, plan, "memory does not sum to the peak", bytes, p.peak_bytes);
    if (p.fits != (p.peak_bytes + p.outside_bytes <= p.capacity_bytes))
        wrong(s, plan, "fits is wrong", p.peak_bytes, p.capacity_bytes);
}

static void parts_sum_to_the_whole(void **state)
{
    (void)state;
    for_random_plans(60, check_sums);
}

/* The step is no faster than all devices at their peak FLOP rate, and no rank executes
 * more than its share. */
static void check_peak(plan_source *s, const ms_plan *plan)
{
    ms_prediction p = predict(s, plan);
    const ms_workload *w = s->workload;
    double tokens = (double)plan->global_batch * (double)plan->sequence_length;
    ms_flop_per_token flop =
        ms_model_flop_per_token(w->model, (double)plan->sequence_length);
    double least_s =
        tokens * flop.causal_flop /
        (w->cluster->device.peak_flop_per_s[plan->compute] * (double)plan->gpus);
    if (!(p.step_s > least_s) || !(p.compute_s > 0.0))
        wrong(s, plan, "faster than the peak", p.step_s, least_s);
    /* no matrix product runs twice without recomputation */
    if (plan->recompute == MS_RECOMPUTE_NONE && p.hfu_frac > 1.3 * p.mfu_frac)
        wrong(s, plan, "executes far more than the model's FLOP", p.hfu_frac, p.mfu_frac);
}

static void no_step_is_faster_than_the_devices(void **state)
{
    (void)state;
    for_random_plans(40, check_peak);
}

/* Compares predictions of a plan with two ZeRO stages: `more` shards more than `less`
 * does, so no rank may need more memory (ZeRO-3 that keeps gathered parameters is
 * compared with ZeRO-1). Ranks are compared one by one, since sharding gradients may move
 * the peak to another rank. The peak of `more` is taken without its buffers of gathered
 * parameters, which a higher stage adds. Parameters and optimizer states are also
 * compared by themselves; gradients are not, since the gradient of the head counts only
 * when the peak is at the head. */
static void compare_stages(plan_source *s, ms_plan *plan, const ms_prediction *less,
                           const ms_prediction *more)
{
    double fragmentation = 1.0 + s->workload->stack->fragmentation_frac.value;
    ASSERT_INT(more->num_stages, less->num_stages);
    for (int i = 0; i < more->num_stages; i++) {
        const double *was = less->stages[i].memory, *is = more->stages[i].memory;
        double peak =
            more->stages[i].peak_bytes - fragmentation * is[MS_MEMORY_GATHERED_PARAMS];
        double before = was[MS_MEMORY_PARAMS] + was[MS_MEMORY_OPTIMIZER];
        double after = is[MS_MEMORY_PARAMS] + is[MS_MEMORY_OPTIMIZER];
        if (!(after <= before * (1.0 + 1e-12)))
            wrong(s, plan, "states grow with the stage", after, before);
        if (!(peak <= less->stages[i].peak_bytes * (1.0 + 1e-12)))
            wrong(s, plan, "memory grows with the stage", peak,
                  less->stages[i].peak_bytes);
    }
}

static void check_zero(plan_source *s, const ms_plan *plan)
{
    ms_plan staged = *plan;
    ms_prediction p[4];
    staged.reshard_after_forward = plan->size[MS_PP] == 1;
    for (staged.zero = 0; staged.zero <= 3; staged.zero++) {
        p[staged.zero] = predict(s, &staged);
        long before = staged.zero - (staged.zero == 3 && plan->size[MS_PP] > 1 ? 2 : 1);
        if (before >= 0)
            compare_stages(s, &staged, &p[before], &p[staged.zero]);
    }
}

static void memory_falls_with_sharding(void **state)
{
    (void)state;
    for_random_plans(100, check_zero);
}

static ms_plan read_back(ms_ctx *cx, const ms_plan *plan)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_jout out = ms_jout_open(file);
    ms_plan_write_json(&out, plan);
    ms_jout_close(&out);
    const char *text = test_read_back(cx->arena, file);
    ms_jdoc *doc;
    ms_jval root;
    ms_plan again;
    ASSERT_OK(ms_json_parse(cx, "plan.json", text, strlen(text), &doc, &root), cx);
    ASSERT_OK(ms_plan_read(cx, root, &again), cx);
    ms_json_close(doc);
    return again;
}

static void check_json(plan_source *s, const ms_plan *plan)
{
    ms_plan again = read_back(s->cx, plan);
    if (!ms_plan_equal(&again, plan))
        wrong(s, plan, ms_plan_text(s->cx->arena, &again), 0, 0);
    double was = predict(s, plan).step_s, is = predict(s, &again).step_s;
    if (memcmp(&was, &is, sizeof was) != 0)
        wrong(s, plan, "a saved plan takes another time", is, was);
}

static void saved_plans_are_the_same_plans(void **state)
{
    (void)state;
    for_random_plans(25, check_json);
}

/* ---- links ---- */

static void check_law(plan_source *s, const ms_plan *plan, const char *name,
                      const ms_collective_law *ideal, const ms_collective_law *real)
{
    for (double bytes = 64.0; bytes < 1e11; bytes *= 32.0) {
        double least_s = ms_collective_s(ideal, bytes),
               real_s = ms_collective_s(real, bytes);
        if (!(least_s <= real_s * (1.0 + 1e-12)))
            wrong(s, plan,
                  ms_arena_printf(s->cx->arena, "ideal links are slower: %s, %g bytes",
                                  name, bytes),
                  least_s, real_s);
    }
}

static void check_links(plan_source *s, const ms_plan *plan)
{
    const ms_workload *w = s->workload;
    ms_links ideal = ms_links_ideal(w, plan);
    ms_links real = ms_links_make(w, plan);
    for (int axis = 0; axis < MS_NUM_BILL_AXES; axis++)
        for (int c = 0; c < MS_NUM_COLLECTIVES; c++)
            check_law(s, plan,
                      ms_arena_printf(s->cx->arena, "%s of bill axis %d",
                                      ms_collective_names[c], axis),
                      &ideal.law[axis][c], &real.law[axis][c]);
    for (int group = 0; group < MS_NUM_SYNC_GROUPS; group++) {
        check_law(s, plan, "gather", &ideal.gather[group], &real.gather[group]);
        check_law(s, plan, "reduce", &ideal.reduce[group], &real.reduce[group]);
        check_law(s, plan, "all-reduce", &ideal.all_reduce[group],
                  &real.all_reduce[group]);
    }
    check_law(s, plan, "send", &ideal.send, &real.send);
    check_law(s, plan, "world", &ideal.world, &real.world);
}

static void ideal_links_are_never_slower(void **state)
{
    (void)state;
    for_random_plans(150, check_links);
}

/* ---- scaling ---- */

static void scale(ms_coefficient *c, double factor)
{
    c->value *= factor;
}

/* The cluster with all rates k times as high and all delays k times as short. */
static ms_cluster faster_cluster(const ms_cluster *was, double k)
{
    ms_cluster c = *was;
    c.device.hbm_bytes_per_s *= k;
    c.device.tdp_w *= k;
    for (int i = 0; i < MS_NUM_DTYPES; i++)
        c.device.peak_flop_per_s[i] *= k;
    for (int i = 0; i < c.num_levels; i++) {
        c.levels[i].bandwidth_bytes_per_s *= k;
        c.levels[i].latency_s /= k;
    }
    return c;
}

static ms_profile faster_profile(const ms_profile *was, double k)
{
    ms_profile p = *was;
    for (int i = 0; i < MS_NUM_DTYPES; i++) {
        scale(&p.gemm[i].overhead_s, 1.0 / k);
        scale(&p.gemm[i].depth_s, 1.0 / k);
    }
    for (int i = 0; i < MS_NUM_ATTENTION_KERNELS; i++) {
        scale(&p.attention[i].forward_flop_per_s, k);
        scale(&p.attention[i].backward_flop_per_s, k);
    }
    ms_coefficient *const delays[] = {
        &p.launch_s,          &p.link_base_s, &p.link_step_s, &p.all_to_all_base_s,
        &p.all_to_all_step_s, &p.nvls_base_s, &p.p2p_base_s};
    for (size_t i = 0; i < sizeof delays / sizeof *delays; i++)
        scale(delays[i], 1.0 / k);
    scale(&p.nvls_bytes_per_s, k);
    for (int i = 0; i < p.num_networks; i++) {
        scale(&p.networks[i].base_s, 1.0 / k);
        scale(&p.networks[i].step_s, 1.0 / k);
        scale(&p.networks[i].rank_step_s, 1.0 / k);
    }
    return p;
}

static void faster_machines_take_less_time_in_proportion(void **state)
{
    (void)state;
    const double factors[] = {2.0, 3.0, 0.7};
    for (int i = 0; i < NUM_SOURCES; i++) {
        plan_source s = open_source(i);
        const ms_workload *w = s.workload;
        double k = factors[i % 3];
        ms_cluster cluster = faster_cluster(w->cluster, k);
        ms_profile profile = faster_profile(w->profile, k);
        ms_stack stack = *w->stack;
        scale(&stack.host_s_per_layer, 1.0 / k);
        scale(&stack.routing_s, 1.0 / k);
        scale(&stack.host_s_per_collective_rank, 1.0 / k);
        scale(&stack.message_stall_s, 1.0 / k);
        scale(&stack.dtensor_s, 1.0 / k);
        scale(&stack.graph_launch_s, 1.0 / k);
        ms_workload_inputs inputs = {w->model, &cluster, &profile, &stack, NULL};
        ms_workload *faster;
        ASSERT_OK(ms_workload_make(s.cx, &inputs, &s.space.base, &faster), s.cx);
        for (int j = 0; j < TEST_CASES(25, 5); j++) {
            ms_plan plan = random_plan(&s, (uint64_t)(7000 + 100 * i + j));
            ms_prediction was = predict(&s, &plan), is;
            /* The faster cluster gets the same split of layers over stages: left free, it
             * may take another split that is equally good. */
            plan.num_stage_layers = was.num_stage_layers;
            plan.layers_per_stage = was.layers_per_stage;
            ASSERT_OK(ms_predict(s.cx, faster, &plan, &is), s.cx);
            if (fabs(is.step_s * k - was.step_s) > 1e-9 * was.step_s ||
                is.peak_bytes != was.peak_bytes)
                wrong(&s, &plan, "does not scale", is.step_s * k, was.step_s);
        }
        ms_workload_close(faster);
        ms_workload_close(s.workload);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_are_never_above_exact_times),
        cmocka_unit_test(parts_sum_to_the_whole),
        cmocka_unit_test(no_step_is_faster_than_the_devices),
        cmocka_unit_test(memory_falls_with_sharding),
        cmocka_unit_test(saved_plans_are_the_same_plans),
        cmocka_unit_test(ideal_links_are_never_slower),
        cmocka_unit_test(faster_machines_take_less_time_in_proportion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
