/* The search's innermost choices: sharding and recomputation. Each complete plan gets a
 * step-time bound and its memory, and if it may be among the best, a replay. Two kinds of
 * plans are skipped without loss. Plans with recomputation, if the plan fits without it:
 * longer backwards never make a step shorter. Full recomputation of k layers per chunk,
 * if fewer layers suffice to fit: the smallest k is the fastest. */
#include "sim/search/explore_priv.h"

#include "base/number.h"
#include "sim/step/framework_rules.h"

#include <math.h>

/* ---- stages of one recomputation ---- */

/* Stages and memory inputs of a plan with one recomputation mode, for all shardings. */
typedef struct recomputed {
    ms_stage *stages;    /* (num_classes): one per class of equal stages */
    ms_rank_load *loads; /* (num_runs): one per class of equal ranks */
    bool knows_peaks;    /* `loads` include activations */
} recomputed;

static void make_stages(ms_explore_level *l, ms_layer_mode mode, long recompute_layers,
                        bool compute_alone, ms_stage *stages)
{
    const ms_split *split = l->split;
    ms_explore_price(l, 1U << mode | 1U << MS_RECOMPUTE_NONE);
    for (int i = 0; i < split->num_classes; i++) {
        int s = split->stage_of_class[i];
        ms_stage_layout layout = ms_split_layout(split, s, mode, recompute_layers);
        layout.compute_alone = compute_alone;
        ms_prices own = ms_pipeline_prices(&l->pipeline, s);
        ms_known_stage_make(own.workload, own.blocks, &layout, l->priced->known,
                            &stages[i]);
    }
}

static recomputed make_recomputed(ms_explore_level *l, ms_layer_mode mode,
                                  long recompute_layers)
{
    ms_arena *scratch = l->explorer->scratch;
    const ms_split *split = l->split;
    recomputed r = {MS_TAKE_ARRAY(scratch, split->num_classes, ms_stage),
                    MS_TAKE_ARRAY(scratch, split->num_runs, ms_rank_load), false};
    make_stages(l, mode, recompute_layers, false, r.stages);
    const ms_stack *stack = l->explorer->workload->stack;
    int num_microbatches = ms_schedule_stage_microbatches(&l->pipeline.shape);
    for (int i = 0; i < split->num_runs; i++) {
        const ms_rank_class *run = &split->runs[i];
        double buffer_bytes =
            ms_message_buffer_bytes(stack, &run->sides, l->priced->blocks.send_bytes,
                                    num_microbatches) +
            ms_held_output_bytes(stack, r.stages, run, num_microbatches) +
            l->priced->blocks.held_bytes;
        ms_rank_load_states(r.stages, run, buffer_bytes, &r.loads[i]);
        r.loads[i].is_only_backward = num_microbatches == 1;
    }
    return r;
}

static void use_recomputed(ms_explore_level *l, const recomputed *r, ms_layer_mode mode,
                           long recompute_layers)
{
    l->pipeline.stages = r->stages;
    l->pipeline.loads = r->loads;
    l->pipeline.mode = mode;
    l->pipeline.recompute_layers = recompute_layers;
    ms_plan_set_layer_mode(&l->plan, mode);
    l->plan.recompute_layers = recompute_layers;
}

/* ---- one complete plan ---- */

static double needed_bytes_of(const ms_explore_level *l, double peak_bytes)
{
    const ms_workload *workload = l->explorer->workload;
    return ms_needed_bytes(&workload->memory, peak_bytes,
                           ms_rank_outside_bytes(workload, &l->pipeline.shards));
}

static void note_need(ms_explore_level *l, double needed_bytes)
{
    if (needed_bytes < l->explorer->least_needed_bytes) {
        l->explorer->least_needed_bytes = needed_bytes;
        l->explorer->least_plan = l->plan;
    }
}

static const ms_rank_live *live_of_run(ms_explore_level *l, int i)
{
    const ms_rank_class *run = &l->split->runs[i];
    if (l->live[i].run == NULL)
        l->live[i] = ms_rank_live_cached(l->explorer->lives, run, l->lists);
    return &l->live[i];
}

/* Whether ranks before those of run i have equal stages and keep as much or more. */
static bool is_no_peak(const ms_explore_level *l, const recomputed *r, int i)
{
    int like = l->split->runs[i].like;
    return like < i && ms_schedule_traits_of(l->shape.kind).first_keeps_most &&
           r->loads[like].buffer_bytes >= r->loads[i].buffer_bytes;
}

static void find_peaks(ms_explore_level *l, recomputed *r)
{
    for (int i = 0; !r->knows_peaks && i < l->split->num_runs; i++)
        if (!is_no_peak(l, r, i))
            ms_rank_load_peak(r->stages, live_of_run(l, i), &r->loads[i]);
    r->knows_peaks = true;
}

/* Whether the plan with recomputation `r` fits device memory; sets its peak memory. */
static bool fits(ms_explore_level *l, recomputed *r, double *peak_bytes)
{
    int rank;
    find_peaks(l, r);
    *peak_bytes = ms_step_peak_bytes(&l->pipeline, ms_plan_sharding(&l->plan), &rank);
    double needed_bytes = needed_bytes_of(l, *peak_bytes);
    note_need(l, needed_bytes);
    return ms_fits_limit(&l->explorer->workload->memory, needed_bytes);
}

static void insert_found(ms_explorer *explorer, const ms_found *found)
{
    int at = explorer->num_found < explorer->capacity ? explorer->num_found++
                                                      : explorer->num_found - 1;
    for (; at > 0 && explorer->found[at - 1].step_s > found->step_s; at--)
        explorer->found[at] = explorer->found[at - 1];
    explorer->found[at] = *found;
}

static void replay_plan(ms_explore_level *l, double peak_bytes)
{
    ms_explorer *explorer = l->explorer;
    /* a rule on the order of axes and on choices made after it */
    const ms_rule *broken = ms_workload_broken_rule(explorer->workload, &l->plan);
    if (ms_explore_count_rule(explorer, broken)) {
        explorer->counts.configurations--;
        return;
    }
    ms_arena_mark mark = ms_arena_save(explorer->scratch);
    const ms_schedule *schedule =
        ms_schedule_cached(explorer->schedules, &l->pipeline.shape, explorer->scratch);
    ms_found found = {.plan = l->plan, .peak_bytes = peak_bytes};
    double worst_s = ms_min(ms_explore_worst_s(explorer), explorer->threshold_s);
    l->pipeline.enough_s = isinf(worst_s) || explorer->watch != NULL ? 0.0 : worst_s;
    found.step_s = ms_step_exact_s(&l->pipeline, ms_plan_sharding(&l->plan), schedule,
                                   explorer->scratch);
    ms_arena_rewind(explorer->scratch, mark);
    explorer->counts.replayed++;
    ms_watch_step(l, found.step_s);
    if (found.step_s < ms_explore_worst_s(explorer))
        insert_found(explorer, &found);
}

/* Finds a plan's memory and step-time bound, replays it if needed; true if it fits. */
static bool evaluate(ms_explore_level *l, recomputed *r)
{
    ms_explorer *explorer = l->explorer;
    double peak_bytes;
    explorer->counts.evaluated++;
    bool fit = fits(l, r, &peak_bytes);
    if (!fit)
        explorer->counts.over_memory++;
    ms_watch_peak(l, peak_bytes, fit);
    if (!fit && !explorer->bounds_only)
        return false;
    double bound_s =
        ms_step_bound_s(&l->pipeline, ms_plan_sharding(&l->plan), l->explorer->scratch);
    ms_watch_bound(l, MS_FATE_PLAN_BOUND, bound_s);
    if (explorer->bounds_only)
        explorer->least_bound_s = ms_min(explorer->least_bound_s, bound_s);
    else if (explorer->exhaustive || !ms_explore_is_beaten(explorer, bound_s))
        replay_plan(l, peak_bytes);
    else
        explorer->counts.over_bound++;
    return fit;
}

/* ---- recomputation ---- */

static bool allows_mode(const ms_explore_level *l, ms_layer_mode mode)
{
    return (l->legal.modes >> mode & 1U) != 0;
}

/* The fewest layers of each chunk that full recomputation may recompute. */
static long fewest_full(const ms_explore_level *l, long most)
{
    return l->legal.partial ? 1 : most;
}

/* Sets full recomputation of `recompute_layers` layers of each chunk in the plan, which
 * stores 0 (all) if that is `most`, the number of layers of the largest chunk. */
static recomputed use_full(ms_explore_level *l, long recompute_layers, long most)
{
    recomputed r = make_recomputed(l, MS_RECOMPUTE_FULL, recompute_layers);
    use_recomputed(l, &r, MS_RECOMPUTE_FULL,
                   recompute_layers == most ? 0 : recompute_layers);
    return r;
}

/* Whether the plan with full recomputation fits memory; `complete`: evaluates it too. */
static bool try_full(ms_explore_level *l, long recompute_layers, long most, bool complete)
{
    ms_arena_mark mark = ms_arena_save(l->explorer->scratch);
    double peak_bytes;
    recomputed r = use_full(l, recompute_layers, most);
    bool fit = complete ? evaluate(l, &r) : fits(l, &r, &peak_bytes);
    ms_arena_rewind(l->explorer->scratch, mark);
    return fit;
}

/* The fewest layers per chunk that make the plan fit if fully recomputed; else `most`. */
static long least_full(ms_explore_level *l, long most)
{
    long low = fewest_full(l, most), high = most;
    if (low < most && !try_full(l, most, most, false))
        return most;
    while (low < high) {
        long middle = low + (high - low) / 2;
        if (try_full(l, middle, most, false))
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

static void explore_full(ms_explore_level *l, long most)
{
    ms_explorer *explorer = l->explorer;
    if (explorer->bounds_only || !explorer->exhaustive)
        try_full(l, explorer->bounds_only ? most : least_full(l, most), most, true);
    for (long layers = fewest_full(l, most); explorer->exhaustive && layers <= most;
         layers++)
        try_full(l, layers, most, true);
}

/* ---- sharding ---- */

static bool allowed_sharding(const ms_explore_level *l, ms_sharding sharding)
{
    bool keep = sharding == MS_ZERO_3_NO_RESHARD;
    bool shards = l->pipeline.shards.dense > 1.0 || l->pipeline.shards.expert > 1.0;
    if (sharding == MS_ZERO_3 && !ms_plan_reshard_ranks_divide(&l->plan))
        return false;
    return ms_space_tries_sharding(l->explorer->space, shards, keep ? 3 : (long)sharding,
                                   !keep);
}

static void set_sharding(ms_explore_level *l, ms_sharding sharding)
{
    l->plan.zero = sharding == MS_ZERO_3_NO_RESHARD ? 3 : (long)sharding;
    l->plan.reshard_after_forward = sharding != MS_ZERO_3_NO_RESHARD;
}

#define NUM_NAMED_MODES  3
#define NUM_SIMPLE_MODES (NUM_NAMED_MODES + MS_NUM_BUDGETS)

/* The modes that recompute all layers alike: those with a name, from little to much
 * recomputation, then automatic ones from the largest budget to the smallest. */
static ms_layer_mode simple_mode(int i)
{
    static const ms_recompute named[NUM_NAMED_MODES] = {
        MS_RECOMPUTE_NONE, MS_RECOMPUTE_SELECTIVE, MS_RECOMPUTE_PER_OP};
    return i < NUM_NAMED_MODES ? (ms_layer_mode)named[i]
                               : ms_layer_mode_of_budget(NUM_SIMPLE_MODES - 1 - i);
}

static long count_recomputations(const ms_explore_level *l, long most)
{
    long count = allows_mode(l, MS_RECOMPUTE_FULL) ? most - fewest_full(l, most) + 1 : 0;
    for (int i = 0; i < NUM_SIMPLE_MODES; i++)
        count += allows_mode(l, simple_mode(i));
    return count;
}

/* Whether the step-time bound without recomputation rules the chosen sharding out. */
static bool is_sharding_beaten(const ms_explore_level *l)
{
    if (l->explorer->watch == NULL && ms_explore_beats_none(l->explorer))
        return false;
    double bound_s =
        ms_step_bound_s(&l->pipeline, ms_plan_sharding(&l->plan), l->explorer->scratch);
    ms_watch_bound(l, MS_FATE_SHARDING_BOUND, bound_s);
    return ms_explore_is_beaten(l->explorer, bound_s);
}

/* Chooses a sharding, with the recomputations that are legal with it. */
static void choose_sharding(ms_explore_level *l, ms_sharding sharding)
{
    set_sharding(l, sharding);
    l->legal = ms_explore_legal_recompute(l);
}

/* Evaluates a sharding with all recomputations. `made`: caches stages of simple modes. */
static void explore_recomputations(ms_explore_level *l, recomputed made[NUM_SIMPLE_MODES],
                                   long most)
{
    ms_explorer *explorer = l->explorer;
    bool everything = explorer->exhaustive || explorer->bounds_only;
    long all = count_recomputations(l, most);
    explorer->counts.configurations += all;
    if (all == 0) {
        ms_explore_count_refused(l);
        return;
    }
    use_recomputed(l, &made[0], MS_RECOMPUTE_NONE, 0);
    if (!everything && is_sharding_beaten(l)) {
        explorer->counts.evaluated++;
        explorer->counts.over_bound += all;
        return;
    }
    for (int i = 0; i < NUM_SIMPLE_MODES; i++) {
        if (!allows_mode(l, simple_mode(i)))
            continue;
        if (made[i].stages == NULL)
            made[i] = make_recomputed(l, simple_mode(i), 0);
        use_recomputed(l, &made[i], simple_mode(i), 0);
        if (evaluate(l, &made[i]) && i == 0 && !everything) {
            explorer->counts.dominated += all - 1;
            ms_watch_unneeded(l);
            return;
        }
    }
    if (allows_mode(l, MS_RECOMPUTE_FULL))
        explore_full(l, most);
}

void ms_explore_states(ms_explore_level *l)
{
    recomputed made[NUM_SIMPLE_MODES] = {{0}};
    made[0] = make_recomputed(l, MS_RECOMPUTE_NONE, 0);
    long most = ms_split_most_layers(l->split);
    for (int s = 0; s < MS_NUM_SHARDINGS; s++) {
        if (!allowed_sharding(l, (ms_sharding)s))
            continue;
        choose_sharding(l, (ms_sharding)s);
        explore_recomputations(l, made, most);
    }
}

/* ---- the sieve: states that every order of axes has to look at ---- */

typedef struct sieve {
    ms_explore_level *l;
    long num_orders, most; /* numbers: orders of axes; layers of the largest chunk */
    int num;
    ms_explore_state *states; /* (num): shardings with recomputations kept so far */
    recomputed bare;          /* memory of parameters and optimizer states only */
    recomputed made[NUM_SIMPLE_MODES];
} sieve;

/* Whether the quick step-time bound, or else the tight one, rules out a complete plan. */
static bool is_pipeline_beaten(ms_explore_level *l)
{
    const ms_explorer *explorer = l->explorer;
    ms_sharding sharding = ms_plan_sharding(&l->plan);
    if (ms_explore_beats_none(explorer))
        return false;
    if (ms_explore_is_beaten(explorer,
                             ms_step_bound_s(&l->pipeline, sharding, explorer->scratch)))
        return true;
    l->pipeline.lists = ms_outline_cached(explorer->schedules, &l->shape, true);
    return ms_explore_is_beaten(
        explorer, ms_step_tight_bound_s(&l->pipeline, sharding, explorer->scratch));
}

/* Adds sharding and recomputation to s->states if they fit memory. */
static bool keep_fitting(sieve *s, recomputed *r)
{
    ms_explore_level *l = s->l;
    ms_explore_state state = {.sharding = ms_plan_sharding(&l->plan),
                              .mode = l->pipeline.mode,
                              .layers = l->plan.recompute_layers};
    bool fit = fits(l, r, &state.peak_bytes);
    if (fit)
        s->states[s->num++] = state;
    return fit;
}

/* Adds full recomputation of the fewest layers that fit; none if 1 layer is too slow. Fewer
 * layers do not fit, more are at least as slow. */
static void sift_full(sieve *s)
{
    ms_explore_level *l = s->l;
    ms_counts *counts = &l->explorer->counts;
    ms_arena_mark mark = ms_arena_save(l->explorer->scratch);
    long fewest = fewest_full(l, s->most), least = fewest;
    recomputed r = use_full(l, fewest, s->most);
    bool beaten = is_pipeline_beaten(l);
    if (!beaten) {
        least = least_full(l, s->most);
        r = use_full(l, least, s->most);
        beaten = is_pipeline_beaten(l);
    }
    counts->evaluated++;
    counts->over_memory += (least - fewest) * s->num_orders;
    if (beaten)
        counts->over_bound += (s->most - least + 1) * s->num_orders;
    else if (keep_fitting(s, &r))
        counts->dominated += (s->most - least) * s->num_orders;
    else
        counts->over_memory += (s->most - least + 1) * s->num_orders;
    ms_arena_rewind(l->explorer->scratch, mark);
}

/* Sifts recomputation of all layers alike in mode i; false if none needs to be looked at
 * after it, since the plan fits without recomputation. */
static bool sift_simple(sieve *s, int i, long all)
{
    ms_explore_level *l = s->l;
    ms_counts *counts = &l->explorer->counts;
    if (s->made[i].stages == NULL)
        s->made[i] = make_recomputed(l, simple_mode(i), 0);
    use_recomputed(l, &s->made[i], simple_mode(i), 0);
    counts->evaluated++;
    if (i > 0 && is_pipeline_beaten(l)) {
        counts->over_bound += s->num_orders;
    } else if (!keep_fitting(s, &s->made[i])) {
        counts->over_memory += s->num_orders;
    } else if (i == 0) {
        counts->dominated += (all - 1) * s->num_orders;
        return false;
    }
    return true;
}

/* Whether a sharding can be skipped: without activations it already exceeds device
 * memory, and also the least memory found so far, which is reported if no plan fits. */
static bool is_too_large(sieve *s)
{
    ms_explore_level *l = s->l;
    ms_explorer *explorer = l->explorer;
    int rank;
    use_recomputed(l, &s->bare, MS_RECOMPUTE_NONE, 0);
    double least_bytes = needed_bytes_of(
        l, ms_step_peak_bytes(&l->pipeline, ms_plan_sharding(&l->plan), &rank));
    double known_bytes =
        ms_min(explorer->least_needed_bytes, explorer->known_needed_bytes);
    return !ms_fits_limit(&explorer->workload->memory, least_bytes) &&
           least_bytes > known_bytes;
}

static void sift_sharding(sieve *s)
{
    ms_explore_level *l = s->l;
    ms_explorer *explorer = l->explorer;
    long all = count_recomputations(l, s->most);
    explorer->counts.configurations += all * s->num_orders;
    if (all == 0) {
        ms_explore_count_refused(l);
        return;
    }
    if (is_too_large(s)) {
        explorer->counts.evaluated++;
        explorer->counts.over_memory += all * s->num_orders;
        return;
    }
    if (s->made[0].stages == NULL)
        s->made[0] = make_recomputed(l, MS_RECOMPUTE_NONE, 0);
    use_recomputed(l, &s->made[0], MS_RECOMPUTE_NONE, 0);
    if (is_sharding_beaten(l)) {
        explorer->counts.evaluated++;
        explorer->counts.over_bound += all * s->num_orders;
        return;
    }
    for (int i = 0; i < NUM_SIMPLE_MODES; i++)
        if (allows_mode(l, simple_mode(i)) && !sift_simple(s, i, all))
            return;
    if (allows_mode(l, MS_RECOMPUTE_FULL))
        sift_full(s);
}

double ms_explore_least_sharded_s(ms_explore_level *l)
{
    ms_explorer *explorer = l->explorer;
    double least_s = INFINITY;
    recomputed bare = make_recomputed(l, MS_RECOMPUTE_NONE, 0);
    use_recomputed(l, &bare, MS_RECOMPUTE_NONE, 0);
    for (int i = 0; i < MS_NUM_SHARDINGS; i++) {
        ms_sharding sharding = (ms_sharding)i;
        int rank;
        if (!allowed_sharding(l, sharding))
            continue;
        double least_bytes =
            needed_bytes_of(l, ms_step_peak_bytes(&l->pipeline, sharding, &rank));
        if (ms_fits_limit(&explorer->workload->memory, least_bytes))
            least_s = ms_min(least_s,
                             ms_step_bound_s(&l->pipeline, sharding, explorer->scratch));
    }
    return least_s;
}

int ms_explore_sieve(ms_explore_level *l, long num_orders, ms_explore_state *states)
{
    ms_arena_mark mark = ms_arena_save(l->explorer->scratch);
    sieve s = {.l = l,
               .num_orders = num_orders,
               .most = ms_split_most_layers(l->split),
               .states = states};
    s.bare = make_recomputed(l, MS_RECOMPUTE_NONE, 0);
    for (int sharding = 0; sharding < MS_NUM_SHARDINGS; sharding++) {
        if (!allowed_sharding(l, (ms_sharding)sharding))
            continue;
        choose_sharding(l, (ms_sharding)sharding);
        sift_sharding(&s);
    }
    ms_arena_rewind(l->explorer->scratch, mark);
    return s.num;
}

void ms_explore_sieved(ms_explore_level *l, const ms_explore_state *states, int num)
{
    ms_explorer *explorer = l->explorer;
    for (int i = 0; i < num; i++) {
        ms_arena_mark mark = ms_arena_save(explorer->scratch);
        set_sharding(l, states[i].sharding);
        long most = ms_split_most_layers(l->split);
        long layers = states[i].mode == MS_RECOMPUTE_FULL && states[i].layers == 0
                          ? most
                          : states[i].layers;
        recomputed r = make_recomputed(l, states[i].mode, layers);
        use_recomputed(l, &r, states[i].mode, states[i].layers);
        explorer->counts.evaluated++;
        if (is_pipeline_beaten(l))
            explorer->counts.over_bound++;
        else
            replay_plan(l, states[i].peak_bytes);
        ms_arena_rewind(explorer->scratch, mark);
    }
}

long ms_explore_count_states(const ms_explore_level *l)
{
    ms_explore_level one = *l;
    long count = 0;
    for (int s = 0; s < MS_NUM_SHARDINGS; s++) {
        if (!allowed_sharding(l, (ms_sharding)s))
            continue;
        choose_sharding(&one, (ms_sharding)s);
        count += count_recomputations(&one, ms_split_most_layers(l->split));
    }
    return count;
}

/* ---- links, schedules ---- */

void ms_explore_open(ms_explore_level *l, const ms_links *links, ms_priced_blocks *priced)
{
    ms_workload *workload = l->explorer->workload;
    l->links = links;
    l->priced = priced;
    ms_explore_price(l, 1U << MS_RECOMPUTE_NONE);
    l->pipeline = (ms_pipeline){
        .workload = workload,
        .links = links,
        .of_kinds = priced->mixed == NULL ? NULL : priced->mixed->prices,
        .shape = l->shape,
        .split = l->split,
        .shards = ms_shard_sizes_of(links, l->shape.num_microbatches),
        .world_sync_s = ms_step_sync_s(workload, links, &priced->blocks, l->split),
        .lists = l->lists,
        .blocks = &priced->blocks};
    ms_pipeline_set_sends(&l->pipeline, priced->blocks.send_s);
}

double ms_explore_relaxed_bound_s(ms_explore_level *l, const ms_links *ideal,
                                  ms_priced_blocks *priced)
{
    ms_arena *scratch = l->explorer->scratch;
    ms_arena_mark mark = ms_arena_save(scratch);
    ms_explore_open(l, ideal, priced);
    ms_stage *stages = MS_TAKE_ARRAY(scratch, l->split->num_classes, ms_stage);
    make_stages(l, MS_RECOMPUTE_NONE, 0, true, stages);
    for (int i = 0; i < l->split->num_classes; i++) {
        ms_block_cost *sum = &stages[i].sum;
        sum->all_reduce_s = sum->tp_sync_s = 0.0;
        /* no gradient exchange between copies of a stage (DualPipe) */
        sum->dense_params = sum->expert_params = 0.0;
        stages[i].update = (ms_update_cost){0};
    }
    l->pipeline.stages = stages;
    l->pipeline.loads = MS_NEW_ARRAY(scratch, l->split->num_runs, ms_rank_load);
    double bound_s = ms_step_bound_s(&l->pipeline, MS_ZERO_0, l->explorer->scratch);
    ms_arena_rewind(scratch, mark);
    return bound_s;
}
