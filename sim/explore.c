/* The loops inside one mesh, outer to inner: micro-batch, sequence parallelism and async TP, schedule with its split (these
 * decide the relaxed bound), order of axes (decides the links), sharding, recomputation.
 *
 * Two reductions keep the result exact. Recomputation only adds time to backward actions and replay never shortens when an action grows, so
 * when a plan without it fits, plans that differ in recomputation alone are no better; and of "full on k layers" the
 * smallest k that fits is the fastest. Where memory or bounds reject, nothing is lost. */
#include "sim/explore.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

#define ALL_MODES ((1U << MS_NUM_RECOMPUTE) - 1U)

/* Parts on one order's links: priced once for all schedules of a batch. */
typedef struct priced_parts {
    ms_parts parts;
    unsigned modes; /* recompute modes done */
} priced_parts;

/* What the loops hand down. */
typedef struct level {
    ms_explorer *explorer;
    ms_plan plan; /* as far as it is decided */
    ms_bill_set *bills;
    const ms_links *links;
    priced_parts *priced; /* on these links */
    ms_pipeline pipeline;
    const ms_split *split;
    const ms_rank_live *live; /* (split->num_runs) */
} level;

static ms_schedule_shape shape_of(const ms_plan *plan)
{
    return (ms_schedule_shape){.kind = plan->schedule,
                               .num_ranks = (int)plan->size[MS_PP],
                               .num_microbatches = (int)ms_plan_microbatches(plan),
                               .virtual_stages = (int)plan->virtual_stages,
                               .group = (int)plan->microbatch_group};
}

/* ---- stages of one recomputation ---- */

/* Stages and loads of one recomputation, shared by all shardings. */
typedef struct recomputed {
    ms_stage *stages;    /* by class */
    ms_rank_load *loads; /* by run */
} recomputed;

static void price(level *l, unsigned modes)
{
    modes &= ~l->priced->modes;
    if (modes == 0)
        return;
    ms_workload_add_modes(l->explorer->workload, l->bills, modes);
    ms_parts_price(l->explorer->workload, l->bills, l->links, l->plan.async_tp, modes,
                   &l->priced->parts);
    l->priced->modes |= modes;
}

static void make_stages(level *l, ms_recompute mode, long recompute_layers,
                        ms_stage *stages)
{
    const ms_split *split = l->split;
    price(l, 1U << mode | 1U << MS_RECOMPUTE_NONE);
    for (int i = 0; i < split->num_classes; i++) {
        int s = split->stage_of_class[i];
        ms_stage_layout layout = {split->first_layer[s],
                                  split->layers[s],
                                  s == 0,
                                  s == split->num_stages - 1,
                                  mode,
                                  recompute_layers};
        ms_stage_make(l->explorer->workload, &l->priced->parts, &layout, &stages[i]);
    }
}

static recomputed make_recomputed(level *l, ms_recompute mode, long recompute_layers)
{
    ms_arena *scratch = l->explorer->scratch;
    const ms_split *split = l->split;
    recomputed r = {MS_NEW_ARRAY(scratch, split->num_classes, ms_stage),
                    MS_NEW_ARRAY(scratch, split->num_runs, ms_rank_load)};
    make_stages(l, mode, recompute_layers, r.stages);
    for (int i = 0; i < split->num_runs; i++)
        ms_rank_load_make(
            l->explorer->workload, r.stages, &l->live[i], l->priced->parts.send_bytes,
            ms_num_neighbours(split, split->runs[i].first_rank), &r.loads[i]);
    return r;
}

static void use_recomputed(level *l, const recomputed *r, ms_recompute mode,
                           long recompute_layers)
{
    l->pipeline.stages = r->stages;
    l->pipeline.loads = r->loads;
    l->plan.recompute = mode;
    l->plan.recompute_layers = recompute_layers;
}

/* ---- one complete plan ---- */

static void note_peak(level *l, double peak_bytes)
{
    if (peak_bytes < l->explorer->least_peak_bytes) {
        l->explorer->least_peak_bytes = peak_bytes;
        l->explorer->least_plan = l->plan;
    }
}

static bool fits(level *l, double *peak_bytes)
{
    int rank;
    *peak_bytes = ms_step_peak_bytes(&l->pipeline, ms_plan_sharding(&l->plan), &rank);
    note_peak(l, *peak_bytes);
    return *peak_bytes <= l->explorer->workload->cluster->device.memory_bytes;
}

/* Plans that take as long cannot improve the mesh's list. */
static double worst_found_s(const ms_explorer *explorer)
{
    return explorer->num_found < explorer->capacity
               ? (double)INFINITY
               : explorer->found[explorer->num_found - 1].step_s;
}

static void insert_found(ms_explorer *explorer, const ms_found *found)
{
    int at = explorer->num_found < explorer->capacity ? explorer->num_found++
                                                      : explorer->num_found - 1;
    for (; at > 0 && explorer->found[at - 1].step_s > found->step_s; at--)
        explorer->found[at] = explorer->found[at - 1];
    explorer->found[at] = *found;
}

static void replay_plan(level *l, double peak_bytes)
{
    ms_explorer *explorer = l->explorer;
    const ms_schedule *schedule =
        ms_schedule_cached(explorer->schedules, &l->pipeline.shape);
    ms_found found = {.plan = l->plan, .peak_bytes = peak_bytes};
    found.step_s = ms_step_exact_s(&l->pipeline, ms_plan_sharding(&l->plan), schedule,
                                   explorer->scratch);
    explorer->counts.replayed++;
    if (found.step_s < worst_found_s(explorer))
        insert_found(explorer, &found);
}

static bool is_beaten(const ms_explorer *explorer, double bound_s)
{
    return bound_s >= worst_found_s(explorer) || bound_s > explorer->threshold_s;
}

/* The plan is complete and its stages and loads are made. Returns whether it fits. */
static bool evaluate(level *l)
{
    ms_explorer *explorer = l->explorer;
    double peak_bytes;
    explorer->counts.evaluated++;
    bool fit = fits(l, &peak_bytes);
    if (!fit)
        explorer->counts.over_memory++;
    if (!fit && !explorer->bounds_only)
        return false;
    double bound_s = ms_step_bound_s(&l->pipeline, ms_plan_sharding(&l->plan));
    if (explorer->bounds_only)
        explorer->least_bound_s = ms_min(explorer->least_bound_s, bound_s);
    else if (explorer->exhaustive || !is_beaten(explorer, bound_s))
        replay_plan(l, peak_bytes);
    else
        explorer->counts.over_bound++;
    return fit;
}

/* ---- recomputation ---- */

static long most_layers(const ms_split *split)
{
    long most = 0;
    for (int i = 0; i < split->num_classes; i++) {
        long layers = split->layers[split->stage_of_class[i]];
        most = layers > most ? layers : most;
    }
    return most;
}

static bool fits_with(level *l, long recompute_layers)
{
    ms_arena_mark mark = ms_arena_save(l->explorer->scratch);
    double peak_bytes;
    recomputed r = make_recomputed(l, MS_RECOMPUTE_FULL, recompute_layers);
    use_recomputed(l, &r, MS_RECOMPUTE_FULL, recompute_layers);
    bool fit = fits(l, &peak_bytes);
    ms_arena_rewind(l->explorer->scratch, mark);
    return fit;
}

/* k = all layers is written as 0. */
static void evaluate_full(level *l, long recompute_layers, long most)
{
    ms_arena_mark mark = ms_arena_save(l->explorer->scratch);
    recomputed r = make_recomputed(l, MS_RECOMPUTE_FULL, recompute_layers);
    use_recomputed(l, &r, MS_RECOMPUTE_FULL,
                   recompute_layers == most ? 0 : recompute_layers);
    evaluate(l);
    ms_arena_rewind(l->explorer->scratch, mark);
}

/* Full recomputation on as few layers of each chunk as fit. */
static void evaluate_least_full(level *l, long most)
{
    long low = fits_with(l, most) ? 1 : most, high = most;
    while (low < high) {
        long middle = low + (high - low) / 2;
        if (fits_with(l, middle))
            high = middle;
        else
            low = middle + 1;
    }
    evaluate_full(l, high, most);
}

static void explore_full(level *l, long most)
{
    ms_explorer *explorer = l->explorer;
    if (explorer->bounds_only)
        evaluate_full(l, most, most);
    else if (!explorer->exhaustive)
        evaluate_least_full(l, most);
    for (long layers = 1; explorer->exhaustive && layers <= most; layers++)
        evaluate_full(l, layers, most);
}

/* ---- sharding ---- */

static bool allowed_sharding(const level *l, ms_sharding sharding)
{
    const ms_space *space = l->explorer->space;
    bool keep = sharding == MS_ZERO_3_KEEP;
    long zero = keep ? 3 : (long)sharding;
    if (!ms_space_allows(space, MS_CHOOSE_ZERO, zero))
        return false;
    if (zero == 3 && !ms_space_allows(space, MS_CHOOSE_RESHARD, !keep))
        return false;
    if (sharding == MS_ZERO_3 && l->plan.size[MS_PP] > 1 &&
        !l->explorer->workload->stack->can_zero3_with_pp)
        return false;
    bool shards = l->pipeline.shards.dense > 1.0 || l->pipeline.shards.expert > 1.0;
    return shards || sharding == MS_ZERO_0;
}

static void set_sharding(level *l, ms_sharding sharding)
{
    l->plan.zero = sharding == MS_ZERO_3_KEEP ? 3 : (long)sharding;
    l->plan.reshard_after_forward = sharding != MS_ZERO_3_KEEP;
}

static const ms_recompute simple_modes[] = {MS_RECOMPUTE_NONE, MS_RECOMPUTE_SELECTIVE,
                                            MS_RECOMPUTE_PER_OP};
#define NUM_SIMPLE_MODES 3

static long count_recomputations(const ms_space *space, long most)
{
    long count = 0;
    for (int i = 0; i < NUM_SIMPLE_MODES; i++)
        count += ms_space_allows(space, MS_CHOOSE_RECOMPUTE, simple_modes[i]);
    return count +
           (ms_space_allows(space, MS_CHOOSE_RECOMPUTE, MS_RECOMPUTE_FULL) ? most : 0);
}

static bool allows_mode(const level *l, ms_recompute mode)
{
    return ms_space_allows(l->explorer->space, MS_CHOOSE_RECOMPUTE, mode);
}

/* One sharding with all recomputations; `made` keeps stages from one sharding to the next. */
static void explore_recomputations(level *l, recomputed made[NUM_SIMPLE_MODES], long most)
{
    ms_explorer *explorer = l->explorer;
    bool everything = explorer->exhaustive || explorer->bounds_only;
    long all = count_recomputations(explorer->space, most);
    explorer->counts.configurations += all;
    use_recomputed(l, &made[0], MS_RECOMPUTE_NONE, 0);
    if (!everything &&
        is_beaten(explorer, ms_step_bound_s(&l->pipeline, ms_plan_sharding(&l->plan)))) {
        explorer->counts.evaluated++;
        explorer->counts.over_bound += all;
        return;
    }
    for (int i = 0; i < NUM_SIMPLE_MODES; i++) {
        if (!allows_mode(l, simple_modes[i]))
            continue;
        if (made[i].stages == NULL)
            made[i] = make_recomputed(l, simple_modes[i], 0);
        use_recomputed(l, &made[i], simple_modes[i], 0);
        if (evaluate(l) && i == 0 && !everything) {
            explorer->counts.dominated += all - 1;
            return;
        }
    }
    if (allows_mode(l, MS_RECOMPUTE_FULL))
        explore_full(l, most);
}

/* All shardings with all recomputations, on given links and schedule. */
static void explore_states(level *l)
{
    recomputed made[NUM_SIMPLE_MODES] = {{0}};
    made[0] = make_recomputed(l, MS_RECOMPUTE_NONE, 0);
    long most = most_layers(l->split);
    for (int s = 0; s < MS_NUM_SHARDINGS; s++) {
        if (!allowed_sharding(l, (ms_sharding)s))
            continue;
        set_sharding(l, (ms_sharding)s);
        explore_recomputations(l, made, most);
    }
}

/* ---- links, schedules ---- */

static void open_pipeline(level *l, const ms_links *links, priced_parts *priced)
{
    ms_workload *workload = l->explorer->workload;
    l->links = links;
    l->priced = priced;
    price(l, 1U << MS_RECOMPUTE_NONE);
    l->pipeline =
        (ms_pipeline){.workload = workload,
                      .links = links,
                      .shape = shape_of(&l->plan),
                      .split = l->split,
                      .shards = ms_shard_sizes_of(links),
                      .send_s = l->plan.size[MS_PP] > 1 ? l->priced->parts.send_s : 0.0,
                      .world_sync_s = ms_step_sync_s(workload, links, &priced->parts)};
}

/* The schedule's bound on ideal links, without any traffic of parameters and gradients, recomputation or optimizer. */
static double relaxed_bound_s(level *l, const ms_links *ideal, priced_parts *priced)
{
    ms_arena *scratch = l->explorer->scratch;
    ms_arena_mark mark = ms_arena_save(scratch);
    open_pipeline(l, ideal, priced);
    ms_stage *stages = MS_NEW_ARRAY(scratch, l->split->num_classes, ms_stage);
    make_stages(l, MS_RECOMPUTE_NONE, 0, stages);
    for (int i = 0; i < l->split->num_classes; i++)
        stages[i].sum.all_reduce_s = stages[i].unit_all_reduce_s =
            stages[i].sum.tp_sync_s = 0.0;
    l->pipeline.stages = stages;
    l->pipeline.loads = MS_NEW_ARRAY(scratch, l->split->num_runs, ms_rank_load);
    double bound_s = ms_step_bound_s(&l->pipeline, MS_ZERO_0);
    ms_arena_rewind(scratch, mark);
    return bound_s;
}

typedef void (*schedule_visitor)(level *l, void *payload);

static bool is_interrupted(const ms_explorer *explorer)
{
    return explorer->interrupted != NULL && *explorer->interrupted;
}

static bool set_schedule(level *l, ms_schedule_kind kind, long virtual_stages)
{
    l->plan.schedule = kind;
    l->plan.virtual_stages = virtual_stages;
    l->plan.microbatch_group = 0;
    ms_refusal refusal = ms_plan_refusal(&l->plan, l->explorer->workload->model);
    if (refusal != MS_LEGAL)
        l->explorer->counts.refused[refusal]++;
    return refusal == MS_LEGAL;
}

/* Calls back for every schedule that the plan's mesh and batch allow, with the default split made. */
static void visit_schedules(level *l, schedule_visitor visit, void *payload)
{
    const ms_space *space = l->explorer->space;
    ms_workload *workload = l->explorer->workload;
    long pp = l->plan.size[MS_PP], most = workload->model->num_layers / pp;
    most = most < space->max_virtual_stages ? most : space->max_virtual_stages;
    for (int kind = 0; kind < MS_NUM_SCHEDULES; kind++) {
        if (!ms_space_allows(space, MS_CHOOSE_SCHEDULE, kind) ||
            (pp == 1 && kind != MS_1F1B))
            continue;
        long first = kind == MS_INTERLEAVED ? 2 : 1,
             last = kind == MS_INTERLEAVED ? most : 1;
        for (long v = first; v <= last; v++) {
            if (is_interrupted(l->explorer))
                return;
            if (!ms_space_allows(space, MS_CHOOSE_VIRTUAL_STAGES, v) ||
                !set_schedule(l, (ms_schedule_kind)kind, v))
                continue;
            l->split = ms_workload_split(workload, l->bills, (int)pp, (int)v);
            visit(l, payload);
        }
    }
}

/* ---- micro-batches and tensor options ---- */

static bool set_batch(level *l, long microbatch, bool sequence_parallel)
{
    l->plan.microbatch = microbatch;
    l->plan.sequence_parallel = sequence_parallel;
    l->plan.async_tp = false;
    l->plan.schedule = MS_1F1B;
    l->plan.virtual_stages = 1;
    ms_refusal refusal = ms_plan_refusal(&l->plan, l->explorer->workload->model);
    if (refusal != MS_LEGAL) {
        l->explorer->counts.refused[refusal]++;
        return false;
    }
    ms_bill_key key = {.tp = (short)l->plan.size[MS_TP],
                       .cp = (short)l->plan.size[MS_CP],
                       .ep = (short)l->plan.ep,
                       .etp = (short)l->plan.etp,
                       .microbatch = (int)microbatch,
                       .sequence_parallel = sequence_parallel,
                       .loss_parallel = true};
    l->bills = ms_workload_bills(l->explorer->workload, &key);
    return true;
}

/* Chunked TP traffic is never slower than exposed traffic, unless the stack already hides a share of that. */
static bool async_dominates(const ms_explorer *explorer)
{
    return !explorer->exhaustive && !explorer->bounds_only &&
           explorer->workload->stack->tp_overlap_frac.value == 0.0 &&
           ms_space_allows(explorer->space, MS_CHOOSE_ASYNC_TP, 1);
}

typedef void (*batch_visitor)(level *l, void *payload);

static void visit_async(level *l, batch_visitor visit, void *payload)
{
    const ms_space *space = l->explorer->space;
    bool possible = l->plan.sequence_parallel && l->plan.size[MS_TP] > 1;
    int least = possible && async_dominates(l->explorer);
    /* on before off: of plans that take as long the first is kept */
    for (int async = possible; async >= least; async--) {
        if (possible && !ms_space_allows(space, MS_CHOOSE_ASYNC_TP, async))
            continue;
        l->plan.async_tp = async != 0;
        visit(l, payload);
    }
}

/* Calls back for every micro-batch, sequence parallelism and async TP that the mesh allows. */
static void visit_batches(level *l, batch_visitor visit, void *payload)
{
    const ms_space *space = l->explorer->space;
    long local = space->base.global_batch / ms_plan_data_parallel(&l->plan);
    bool tensor_parallel = l->plan.size[MS_TP] > 1;
    for (long microbatch = 1; microbatch <= local && microbatch <= space->max_microbatch;
         microbatch++) {
        if (local % microbatch != 0 ||
            !ms_space_allows(space, MS_CHOOSE_MICROBATCH, microbatch))
            continue;
        for (int sp = 0; sp <= (int)tensor_parallel; sp++) {
            if (tensor_parallel &&
                !ms_space_allows(space, MS_CHOOSE_SEQUENCE_PARALLEL, sp))
                continue;
            if (set_batch(l, microbatch, sp))
                visit_async(l, visit, payload);
        }
    }
}

/* ---- bound of a mesh ---- */

typedef struct mesh_bound {
    ms_links ideal;
    priced_parts priced;
    double least_s;
} mesh_bound;

static void bound_schedule(level *l, void *payload)
{
    mesh_bound *bound = payload;
    bound->least_s =
        ms_min(bound->least_s, relaxed_bound_s(l, &bound->ideal, &bound->priced));
}

static void bound_batch(level *l, void *payload)
{
    mesh_bound *bound = payload;
    bound->priced.modes = 0;
    visit_schedules(l, bound_schedule, payload);
}

double ms_explore_bound_s(ms_explorer *explorer, const ms_mesh_choice *mesh)
{
    level l = {.explorer = explorer, .plan = ms_space_plan(explorer->space, mesh)};
    mesh_bound bound = {.least_s = INFINITY};
    ms_counts counts =
        explorer->counts; /* refusals are counted when the mesh is explored */
    bound.ideal =
        ms_links_ideal(&l.plan, explorer->workload->cluster, explorer->workload->profile);
    visit_batches(&l, bound_batch, &bound);
    explorer->counts = counts;
    return bound.least_s;
}

/* ---- the whole mesh ---- */

typedef struct mesh_links {
    ms_links ideal;
    priced_parts ideal_priced;
    int num;
    const ms_orders *orders;
    ms_links *of_order;
    priced_parts *priced; /* (num) */
} mesh_links;

static const ms_rank_live *live_of_runs(level *l)
{
    ms_schedule_shape shape = shape_of(&l->plan);
    const ms_schedule *live = ms_live_cached(l->explorer->schedules, &shape);
    ms_rank_live *of_run =
        MS_NEW_ARRAY(l->explorer->scratch, l->split->num_runs, ms_rank_live);
    for (int i = 0; i < l->split->num_runs; i++)
        of_run[i] = ms_rank_live_make(l->explorer->scratch, &l->split->runs[i], live,
                                      l->split->runs[i].first_rank);
    return of_run;
}

static void explore_schedule(level *l, void *payload)
{
    mesh_links *links = payload;
    ms_explorer *explorer = l->explorer;
    if (!explorer->exhaustive && !explorer->bounds_only) {
        double bound_s = relaxed_bound_s(l, &links->ideal, &links->ideal_priced);
        if (is_beaten(explorer, bound_s)) {
            explorer->counts.over_bound++;
            return;
        }
    }
    ms_arena_mark outer = ms_arena_save(explorer->scratch);
    l->live = live_of_runs(l);
    for (int i = 0; i < links->num; i++) {
        ms_arena_mark mark = ms_arena_save(explorer->scratch);
        memcpy(l->plan.order, links->orders->order[i], sizeof l->plan.order);
        open_pipeline(l, &links->of_order[i], &links->priced[i]);
        explore_states(l);
        ms_arena_rewind(explorer->scratch, mark);
    }
    ms_arena_rewind(explorer->scratch, outer);
    memcpy(l->plan.order, links->orders->order[0], sizeof l->plan.order);
}

static void explore_batch(level *l, void *payload)
{
    mesh_links *links = payload;
    links->ideal_priced.modes = 0;
    for (int i = 0; i < links->num; i++)
        links->priced[i].modes = 0;
    visit_schedules(l, explore_schedule, payload);
}

void ms_explore_mesh(ms_explorer *explorer, const ms_mesh_choice *mesh,
                     double threshold_s)
{
    ms_workload *workload = explorer->workload;
    ms_arena_mark mark = ms_arena_save(explorer->scratch);
    level *l = MS_NEW(explorer->scratch, level);
    ms_orders *orders = MS_NEW(explorer->scratch, ms_orders);
    l->explorer = explorer;
    l->plan = ms_space_plan(explorer->space, mesh);
    ms_space_orders(explorer->space, &l->plan, workload->model, workload->cluster,
                    orders);
    mesh_links links = {
        .num = orders->num,
        .orders = orders,
        .of_order = MS_NEW_ARRAY(explorer->scratch, orders->num, ms_links),
        .priced = MS_NEW_ARRAY(explorer->scratch, orders->num, priced_parts)};
    links.ideal = ms_links_ideal(&l->plan, workload->cluster, workload->profile);
    for (int i = 0; i < orders->num; i++) {
        memcpy(l->plan.order, orders->order[i], sizeof l->plan.order);
        links.of_order[i] = ms_links_make(&l->plan, workload->cluster, workload->profile);
    }
    memcpy(l->plan.order, orders->order[0], sizeof l->plan.order);
    explorer->num_found = 0;
    explorer->threshold_s = threshold_s;
    visit_batches(l, explore_batch, &links);
    ms_arena_rewind(explorer->scratch, mark);
}
