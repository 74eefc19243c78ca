/* The search's outer loops over the plans of one mesh (sizes of the parallel axes), from
 * outer to inner: micro-batch, options such as sequence parallelism, schedule, order of
 * axes. explore_states.c then chooses sharding and recomputation. */
#include "sim/search/explore.h"

#include "base/number.h"
#include "sim/search/explore_priv.h"
#include "sim/step/bill_key.h"
#include "sim/step/bound.h"

#include <math.h>
#include <string.h>

ms_explorer ms_explorer_open(ms_workload *workload, const ms_space *space, int capacity)
{
    ms_arena *scratch = ms_arena_open();
    ms_rule_set rules = ms_explore_rules(scratch, workload, &space->base);
    return (ms_explorer){.workload = workload,
                         .space = space,
                         .scratch = scratch,
                         .capacity = capacity,
                         .found = MS_NEW_ARRAY(scratch, capacity, ms_found),
                         .least_bound_s = INFINITY,
                         .schedules = ms_schedule_cache_open(),
                         .lives = ms_live_cache_open(),
                         .stages = MS_NEW(scratch, ms_known_stages),
                         .rules = rules,
                         .accepted = ms_known_accepted_make(scratch, &rules),
                         .threshold_s = INFINITY,
                         .least_needed_bytes = INFINITY,
                         .known_needed_bytes = INFINITY};
}

static void close_caches(ms_explorer *explorer)
{
    ms_schedule_cache_close(explorer->schedules);
    ms_live_cache_close(explorer->lives);
}

void ms_explorer_close(ms_explorer *explorer)
{
    close_caches(explorer);
    ms_arena_close(explorer->scratch);
}

double ms_explore_worst_s(const ms_explorer *explorer)
{
    return explorer->num_found < explorer->capacity
               ? (double)INFINITY
               : explorer->found[explorer->num_found - 1].step_s;
}

bool ms_explore_is_beaten(const ms_explorer *explorer, double bound_s)
{
    return bound_s >= ms_explore_worst_s(explorer) || bound_s > explorer->threshold_s;
}

bool ms_explore_beats_none(const ms_explorer *explorer)
{
    return isinf(ms_explore_worst_s(explorer)) && isinf(explorer->threshold_s);
}

/* Empties the caches of schedules, if they are full. */
static void bound_caches(ms_explorer *explorer)
{
    if (!ms_schedule_cache_is_full(explorer->schedules))
        return;
    close_caches(explorer);
    explorer->schedules = ms_schedule_cache_open();
    explorer->lives = ms_live_cache_open();
}

/* ---- schedules ---- */

static bool set_schedule(ms_explore_level *l, ms_schedule_kind kind, long virtual_stages)
{
    l->plan.schedule = kind;
    l->plan.virtual_stages = virtual_stages;
    l->plan.microbatch_group = 0;
    ms_refusal refusal = ms_plan_refusal(&l->plan, l->explorer->workload->model);
    if (refusal != MS_LEGAL)
        l->explorer->counts.refused[refusal]++;
    return refusal == MS_LEGAL && !ms_explore_breaks_rule(l, MS_RULES_OF_SCHEDULE);
}

/* Iteration over the pipeline schedules that the search tries for one micro-batch. */
typedef struct schedules {
    int kind;
    long virtual_stages, most; /* current and largest number of chunks per rank */
} schedules;

static schedules schedules_of(const ms_explore_level *l)
{
    long most = l->explorer->workload->model->num_layers / l->plan.size[MS_PP];
    long limit = l->explorer->space->max_virtual_stages;
    return (schedules){.most = most < limit ? most : limit};
}

static bool next_schedule(ms_explore_level *l, schedules *s)
{
    const ms_space *space = l->explorer->space;
    const ms_model *model = l->explorer->workload->model;
    long pp = l->plan.size[MS_PP];
    for (; s->kind < MS_CUSTOM; s->kind++, s->virtual_stages = 0) {
        ms_schedule_kind kind = (ms_schedule_kind)s->kind;
        while (s->virtual_stages < s->most) {
            long v = ++s->virtual_stages;
            if (!ms_space_tries_schedule(space, model, pp, kind, v))
                continue;
            if (ms_is_interrupted(l->explorer->interrupted))
                return false;
            if (set_schedule(l, kind, v))
                return true;
        }
    }
    return false;
}

/* Sets the shape of the schedule and the default split of layers over its stages. */
static void make_shape(ms_explore_level *l)
{
    ms_workload *workload = l->explorer->workload;
    l->shape = ms_workload_shape(workload, l->bills, &l->plan);
    const unsigned char *kinds = ms_plan_kinds(l->explorer->scratch, &l->plan, workload);
    l->split = ms_workload_split(workload, l->bills, &l->shape, kinds);
}

static void make_lists(ms_explore_level *l)
{
    ms_explorer *explorer = l->explorer;
    bound_caches(explorer);
    make_shape(l);
    bool has_edges = !ms_order_ends_with_first_chunk(l->shape.kind);
    l->lists = ms_outline_cached(explorer->schedules, &l->shape, has_edges);
}

/* ---- bounds that meshes share ---- */

static unsigned long long add_choices(unsigned long long key,
                                      const ms_choice_list *choices, const ms_plan *plan)
{
    for (int i = 0; i < choices->num; i++)
        key = key << 3 | (unsigned long long)ms_plan_get(plan, choices->of[i]);
    return key;
}

static unsigned long long batch_key(const ms_space *space, const ms_plan *plan)
{
    unsigned long long key = (unsigned long long)plan->microbatch;
    key = add_choices(key, &space->layers, plan);
    return add_choices(key, &space->prices, plan);
}

static unsigned long long bound_key(const ms_explore_level *l)
{
    const ms_plan *plan = &l->plan;
    unsigned long long key = l->batch_key << 8 | (unsigned long long)plan->schedule;
    return key << 16 | (unsigned long long)plan->virtual_stages;
}

static void note_bound(const ms_explore_level *l, double bound_s)
{
    ms_explorer *explorer = l->explorer;
    ms_schedule_bounds *noted = explorer->noted;
    if (noted == NULL || ms_explore_is_mixed(explorer)) /* bounds differ by arrangement */
        return;
    MS_MAKE_ROOM(explorer->scratch, noted->of, noted->num, noted->capacity, 256);
    noted->of[noted->num++] = (ms_schedule_bound){bound_key(l), bound_s};
}

/* Looks up the chosen schedule's step-time bound, in seconds, in explorer->known, which
 * lists bounds in the order of the search; NaN if the schedule is not listed. */
static double known_bound_s(const ms_explore_level *l)
{
    ms_explorer *explorer = l->explorer;
    const ms_schedule_bounds *known = explorer->known;
    unsigned long long key = bound_key(l);
    for (int i = explorer->num_passed; known != NULL && i < known->num; i++) {
        if (known->of[i].key != key)
            continue;
        explorer->num_passed = i + 1;
        return known->of[i].bound_s;
    }
    return NAN;
}

/* ---- batches: micro-batch, and choices of layers and prices ---- */

/* Resets the plan's schedule, and its options that change only prices, to defaults, and
 * fetches its priced programs (l->bills). False if the plan is illegal. */
static bool set_batch(ms_explore_level *l)
{
    ms_space_copy(&l->explorer->space->prices, &l->explorer->space->base, &l->plan);
    l->plan.schedule = MS_1F1B;
    l->plan.virtual_stages = 1;
    ms_refusal refusal = ms_plan_refusal(&l->plan, l->explorer->workload->model);
    if (refusal != MS_LEGAL) {
        l->explorer->counts.refused[refusal]++;
        return false;
    }
    if (ms_explore_breaks_rule(l, MS_RULES_OF_BATCH))
        return false;
    ms_bill_key key = ms_plan_bill_key(l->explorer->workload, &l->plan);
    l->bills = ms_workload_bills(l->explorer->workload, &key);
    return true;
}

/* Whether plans without asynchronous TP can be skipped: the same plans with it are tried
 * too and are never slower, unless the stack hides TP traffic in other ways. */
static bool async_dominates(const ms_explorer *explorer)
{
    return !explorer->exhaustive && !explorer->bounds_only &&
           explorer->workload->stack->tp_overlap_frac.value == 0.0 &&
           !explorer->workload->stack->overlaps_gradients &&
           ms_space_allows(explorer->space, MS_CHOOSE_ASYNC_TP, 1);
}

/* Iteration over micro-batches, options that change layers, options of prices only. */
typedef struct batches {
    bool in_microbatch, in_layers, in_prices; /* which of these three loops have begun */
    bool is_legal;
} batches;

static bool next_microbatch(ms_explore_level *l, batches *b)
{
    const ms_space *space = l->explorer->space;
    long local = space->base.global_batch / ms_plan_data_parallel(&l->plan);
    long *microbatch = &l->plan.microbatch;
    if (!b->in_microbatch)
        *microbatch = 0;
    b->in_microbatch = true;
    while (++*microbatch <= local && *microbatch <= space->max_microbatch)
        if (local % *microbatch == 0 &&
            ms_space_allows(space, MS_CHOOSE_MICROBATCH, *microbatch))
            return true;
    return false;
}

static bool next_layers(ms_explore_level *l, batches *b)
{
    while (!b->in_microbatch ||
           !ms_space_next(l->explorer->space, &l->explorer->space->layers, false,
                          &l->plan, &b->in_layers)) {
        if (!next_microbatch(l, b))
            return false;
        b->in_layers = false;
    }
    return true;
}

static bool is_skipped(const ms_explore_level *l)
{
    if (!l->plan.sequence_parallel || l->plan.async_tp || !async_dominates(l->explorer) ||
        !ms_explore_accepts_async(l))
        return false;
    ms_watch_async(l);
    return true;
}

/* Takes the next options that change only prices: on before off, the first wins ties. */
static bool next_prices(ms_explore_level *l, batches *b)
{
    while (ms_space_next(l->explorer->space, &l->explorer->space->prices, true, &l->plan,
                         &b->in_prices))
        if (!is_skipped(l))
            return true;
    return false;
}

static bool next_batch(ms_explore_level *l, batches *b)
{
    while (!b->is_legal || !next_prices(l, b)) {
        if (!next_layers(l, b))
            return false;
        b->is_legal = set_batch(l);
        b->in_prices = false;
    }
    l->batch_key = batch_key(l->explorer->space, &l->plan);
    return true;
}

/* ---- bound of a mesh ---- */

typedef struct mesh_bound {
    ms_links ideal;
    ms_priced_blocks priced;
    double least_s;
    ms_plan least; /* the plan with the smallest step-time bound, least_s */
} mesh_bound;

static void bound_schedule(ms_explore_level *l, mesh_bound *bound)
{
    make_shape(l);
    double bound_s = ms_explore_relaxed_bound_s(l, &bound->ideal, &bound->priced);
    note_bound(l, bound_s);
    if (bound_s < bound->least_s) {
        bound->least_s = bound_s;
        bound->least = l->plan;
    }
}

int ms_explore_compare_bounds(const ms_mesh_choice *a, const ms_mesh_choice *b)
{
    const long more[] = {a->size[MS_PP] - b->size[MS_PP],
                         a->size[MS_CP] - b->size[MS_CP],
                         a->size[MS_TP] - b->size[MS_TP],
                         a->ep - b->ep,
                         a->etp - b->etp,
                         a->size[MS_DP_REPLICATE] * a->size[MS_DP_SHARD] -
                             b->size[MS_DP_REPLICATE] * b->size[MS_DP_SHARD]};
    size_t i = 0;
    while (i + 1 < sizeof more / sizeof *more && more[i] == 0)
        i++;
    return (more[i] > 0) - (more[i] < 0);
}

/* Bounds all plans of the chosen arrangement. */
static void bound_arranged(ms_explore_level *l, mesh_bound *bound)
{
    bound->ideal = ms_links_ideal(ms_explore_all_kinds(l), &l->plan);
    ms_explore_open_priced(l->explorer, &bound->priced, true, l->explorer->stages);
    for (batches b = {0}; next_batch(l, &b);) {
        ms_explore_forget_prices(&bound->priced);
        for (schedules s = schedules_of(l); next_schedule(l, &s);)
            bound_schedule(l, bound);
    }
}

/* Bounds each arrangement of a mixed cluster. */
static void bound_mixed(ms_explore_level *l, mesh_bound *bound)
{
    ms_explorer *explorer = l->explorer;
    ms_orders *orders = MS_NEW(explorer->scratch, ms_orders);
    ms_arrangements *arrangements = MS_NEW(explorer->scratch, ms_arrangements);
    ms_space_orders(explorer->space, &l->plan, explorer->workload, orders);
    arrangements->orders = orders;
    while (ms_explore_next_arrangement(l, arrangements) != NULL)
        bound_arranged(l, bound);
}

double ms_explore_bound_s(ms_explorer *explorer, const ms_mesh_choice *mesh,
                          ms_plan *least)
{
    ms_explore_level l = {.explorer = explorer,
                          .plan = ms_space_plan(explorer->space, mesh),
                          .any_replicas = true};
    ms_arena_mark mark = ms_arena_save(explorer->scratch);
    mesh_bound bound;
    bound.least_s = INFINITY;
    bound.least = l.plan;
    ms_counts counts = explorer->counts;
    if (explorer->noted != NULL)
        explorer->noted->num = 0;
    bool refused = ms_explore_breaks_rule(&l, MS_RULES_OF_MESH);
    if (!refused && ms_explore_is_mixed(explorer)) {
        bound_mixed(&l, &bound);
        ms_arena_rewind(explorer->scratch, mark);
    } else if (!refused) {
        bound_arranged(&l, &bound);
    }
    explorer->counts = counts;
    if (least != NULL)
        *least = bound.least;
    return bound.least_s;
}

double ms_explore_estimate_s(ms_explorer *explorer, const ms_mesh_choice *mesh,
                             const ms_plan *like)
{
    ms_arena_mark mark = ms_arena_save(explorer->scratch);
    ms_explore_level l = {.explorer = explorer,
                          .plan = ms_space_plan(explorer->space, mesh)};
    ms_counts counts = explorer->counts;
    double estimate_s = INFINITY;
    ms_priced_blocks priced;
    ms_explore_open_priced(explorer, &priced, false, NULL);
    l.plan.microbatch = like->microbatch;
    l.plan.device_order = like->device_order;
    ms_space_copy(&explorer->space->layers, like, &l.plan);
    if (set_batch(&l)) {
        ms_space_copy(&explorer->space->prices, like, &l.plan);
        if (set_schedule(&l, like->schedule, like->virtual_stages)) {
            ms_links links = ms_links_make(ms_explore_all_kinds(&l), &l.plan);
            make_lists(&l);
            ms_explore_open(&l, &links, &priced);
            estimate_s = ms_explore_least_sharded_s(&l);
        }
    }
    explorer->counts = counts;
    ms_arena_rewind(explorer->scratch, mark);
    return estimate_s;
}

/* ---- plans of a mesh ---- */

/* Number of plans with the chosen schedule, in all orders of axes. */
static long count_orders(ms_explore_level *l, const ms_orders *orders, bool one_by_one)
{
    if (!one_by_one)
        return orders->num * ms_explore_count_states(l);
    long num_plans = 0;
    for (int i = 0; i < orders->num; i++) {
        ms_explore_set_order(l, orders->order[i]);
        num_plans += ms_explore_count_states(l);
    }
    ms_explore_set_order(l, NULL);
    return num_plans;
}

/* Number of plans of the chosen arrangement, in these orders of axes. */
static long count_arranged(ms_explore_level *l, const ms_orders *orders)
{
    bool one_by_one = ms_explore_joins_order(l);
    long num_plans = 0;
    for (batches b = {0}; next_batch(l, &b);) {
        for (schedules s = schedules_of(l); next_schedule(l, &s);) {
            make_shape(l);
            num_plans += count_orders(l, orders, one_by_one);
        }
    }
    return num_plans;
}

long ms_explore_count(const ms_explorer *explorer, const ms_mesh_choice *mesh)
{
    const ms_workload *workload = explorer->workload;
    ms_arena_mark mark = ms_arena_save(explorer->scratch);
    ms_explorer all = *explorer;
    all.exhaustive = true;
    ms_explore_level l = {.explorer = &all, .plan = ms_space_plan(explorer->space, mesh)};
    ms_orders *orders = MS_NEW(explorer->scratch, ms_orders);
    ms_space_orders(explorer->space, &l.plan, workload, orders);
    ms_links links = ms_links_make(workload, &l.plan);
    l.pipeline.shards = ms_shard_sizes_of(&links, 1);
    long num_plans = 0;
    bool refused = orders->num == 0 || ms_explore_breaks_rule(&l, MS_RULES_OF_MESH);
    ms_arrangements *arrangements = MS_NEW(explorer->scratch, ms_arrangements);
    arrangements->orders = orders;
    const ms_orders *next;
    while (!refused && (next = ms_explore_next_arrangement(&l, arrangements)) != NULL)
        num_plans += count_arranged(&l, next);
    ms_arena_rewind(explorer->scratch, mark);
    return num_plans;
}

/* ---- the whole mesh ---- */

/* Links of a mesh, ideal or of each order of axes, and costs of blocks on them. */
typedef struct mesh_links {
    ms_links ideal;
    ms_priced_blocks ideal_priced;
    int num;
    const ms_orders *orders;
    ms_links *of_order;       /* (num): links of each order of axes */
    ms_priced_blocks *priced; /* (num): block costs on links `of_order` */
} mesh_links;

/* Whether plans with the chosen schedule may be among the best: judged by the schedule's
 * known step-time bound, then by a tighter bound, from its lists of actions. */
static bool is_open(ms_explore_level *l, mesh_links *links)
{
    ms_explorer *explorer = l->explorer;
    bool beats_none = explorer->watch == NULL && ms_explore_beats_none(explorer);
    double bound_s = beats_none ? (double)NAN : known_bound_s(l);
    bool beaten = ms_explore_is_beaten(explorer, bound_s); /* false for a NaN bound */
    if (!beaten)
        make_lists(l);
    if (beats_none)
        return true;
    if (!beaten)
        bound_s = ms_explore_relaxed_bound_s(l, &links->ideal, &links->ideal_priced);
    ms_watch_bound(l, MS_FATE_SCHEDULE_BOUND, bound_s);
    beaten = ms_explore_is_beaten(explorer, bound_s);
    explorer->counts.schedules_over_bound += beaten;
    return !beaten;
}

/* Evaluates `states` (sharding, recomputation; NULL: all) with every order of axes. */
static void explore_orders(ms_explore_level *l, mesh_links *links,
                           const ms_explore_state *states, int num_states)
{
    for (int i = 0; i < links->num; i++) {
        ms_arena_mark mark = ms_arena_save(l->explorer->scratch);
        memcpy(l->plan.order, links->orders->order[i], sizeof l->plan.order);
        ms_explore_open(l, &links->of_order[i], &links->priced[i]);
        if (states != NULL)
            ms_explore_sieved(l, states, num_states);
        else
            ms_explore_states(l);
        ms_arena_rewind(l->explorer->scratch, mark);
    }
    memcpy(l->plan.order, links->orders->order[0], sizeof l->plan.order);
}

static void explore_schedule(ms_explore_level *l, mesh_links *links)
{
    ms_explorer *explorer = l->explorer;
    bool everything = explorer->exhaustive || explorer->bounds_only;
    if (everything)
        make_lists(l);
    else if (!is_open(l, links))
        return;
    ms_arena_mark mark = ms_arena_save(explorer->scratch);
    l->live = MS_NEW_ARRAY(explorer->scratch, l->split->num_runs, ms_rank_live);
    if (everything || explorer->watch != NULL) {
        explore_orders(l, links, NULL, 0);
    } else {
        ms_explore_state states[MS_MAX_EXPLORE_STATES];
        ms_explore_open(l, &links->ideal, &links->ideal_priced);
        int num_states = ms_explore_sieve(l, links->num, states);
        if (num_states > 0)
            explore_orders(l, links, states, num_states);
    }
    ms_arena_rewind(explorer->scratch, mark);
}

static void explore_batch(ms_explore_level *l, mesh_links *links)
{
    ms_explore_forget_prices(&links->ideal_priced);
    for (int i = 0; i < links->num; i++)
        ms_explore_forget_prices(&links->priced[i]);
    for (schedules s = schedules_of(l); next_schedule(l, &s);)
        explore_schedule(l, links);
}

/* Explores the plans of the chosen arrangement, in these orders of axes. */
static void explore_arranged(ms_explore_level *l, const ms_orders *orders)
{
    ms_explorer *explorer = l->explorer;
    ms_workload *workload = ms_explore_all_kinds(l);
    mesh_links links;
    links.num = orders->num;
    links.orders = orders;
    links.of_order = MS_NEW_ARRAY(explorer->scratch, orders->num, ms_links);
    links.priced =
        ms_arena_take(explorer->scratch, (size_t)orders->num * sizeof *links.priced);
    links.ideal = ms_links_ideal(workload, &l->plan);
    ms_explore_open_priced(explorer, &links.ideal_priced, true, explorer->stages);
    for (int i = 0; i < orders->num; i++) {
        ms_explore_open_priced(explorer, &links.priced[i], false, NULL);
        memcpy(l->plan.order, orders->order[i], sizeof l->plan.order);
        links.of_order[i] = ms_links_make(workload, &l->plan);
    }
    memcpy(l->plan.order, orders->order[0], sizeof l->plan.order);
    for (batches b = {0}; next_batch(l, &b);)
        explore_batch(l, &links);
}

void ms_explore_mesh(ms_explorer *explorer, const ms_mesh_choice *mesh,
                     double threshold_s)
{
    ms_arena_mark mark = ms_arena_save(explorer->scratch);
    ms_explore_level *l = MS_NEW(explorer->scratch, ms_explore_level);
    ms_orders *orders = MS_NEW(explorer->scratch, ms_orders);
    l->explorer = explorer;
    l->plan = ms_space_plan(explorer->space, mesh);
    ms_space_orders(explorer->space, &l->plan, explorer->workload, orders);
    memcpy(l->plan.order, orders->order[0], sizeof l->plan.order);
    explorer->num_found = explorer->num_passed = 0;
    explorer->threshold_s = threshold_s;
    ms_arrangements *arrangements = MS_NEW(explorer->scratch, ms_arrangements);
    arrangements->orders = orders;
    bool refused = ms_explore_breaks_rule(l, MS_RULES_OF_MESH) ||
                   ms_explore_count_rule(explorer, orders->broken);
    const ms_orders *next;
    while (!refused && (next = ms_explore_next_arrangement(l, arrangements)) != NULL) {
        ms_arena_mark arranged = ms_arena_save(explorer->scratch);
        explore_arranged(l, next);
        ms_arena_rewind(explorer->scratch, arranged);
    }
    ms_arena_rewind(explorer->scratch, mark);
}
