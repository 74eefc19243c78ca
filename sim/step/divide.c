#include "sim/step/divide.h"

#include "base/number.h"
#include "sim/step/bound.h"
#include "sim/step/live_cache.h"
#include "sim/step/split.h"

#include <math.h>
#include <string.h>

/* Least share of a step by which a move of layers must shorten it, far above rounding. */
#define LEAST_GAIN_FRAC 1e-9

/* ---- prices of splits ---- */

/* A split with its price; excess_bytes: memory over the limits, summed over all ranks. */
typedef struct trial {
    long *layers;              /* (num_stages) */
    double *rank_excess_bytes; /* (num_ranks) */
    double excess_bytes, step_s;
} trial;

/* The plan whose layers are divided. */
typedef struct division {
    ms_pipeline pipeline;  /* values of the split that is tried */
    const ms_split *first; /* balanced by compute */
    ms_sharding sharding;
    const ms_schedule *schedule;
    ms_memory_rule rule;
    /* [ms_kind_set] of devices, by the rule; peak_factor 0: not made yet */
    ms_memory_limit limits[MS_NUM_KIND_SETS];
    ms_live_cache *lives;
    ms_arena *arena;
} division;

static const ms_memory_limit *limit_of(division *d, const ms_workload *own,
                                       ms_kind_set kinds)
{
    ms_memory_limit *limit = &d->limits[kinds];
    if (limit->peak_factor == 0.0)
        *limit = ms_memory_limit_make(&d->rule, own->peak_spread, own->stack->name,
                                      own->cluster->device.memory_bytes);
    return limit;
}

static double excess_of(division *d, int run)
{
    double parts[MS_NUM_MEMORY_CATEGORIES], peak_bytes = 0.0;
    const ms_pipeline *pipeline = &d->pipeline;
    int stage = pipeline->split->stage_of_class[pipeline->split->runs[run].classes[0]];
    const ms_workload *own = ms_pipeline_prices(pipeline, stage).workload;
    ms_rank_memory(own, &pipeline->loads[run], d->sharding, &pipeline->shards, parts);
    for (int i = 0; i < MS_NUM_MEMORY_CATEGORIES; i++)
        peak_bytes += parts[i];
    const ms_memory_limit *limit =
        limit_of(d, own, ms_split_kinds(pipeline->split, stage));
    double outside_bytes = ms_rank_outside_bytes(own, &pipeline->shards);
    double need_bytes = ms_needed_bytes(limit, peak_bytes, outside_bytes);
    return ms_max(need_bytes - limit->limit_bytes, 0.0);
}

/* Sets the split that is tried, with its stages and loads; returns bytes over the limits,
 * summed over all ranks. */
static double open_split(division *d, const trial *t)
{
    ms_pipeline *pipeline = &d->pipeline;
    double all_bytes = 0.0;
    const ms_split *split = ms_split_make(d->arena, pipeline->workload->model, t->layers,
                                          &pipeline->shape, d->first->kinds);
    ms_rank_load *loads = MS_TAKE_ARRAY(d->arena, split->num_runs, ms_rank_load);
    pipeline->split = split;
    pipeline->stages = ms_pipeline_stages(d->arena, pipeline);
    pipeline->loads = loads;
    for (int i = 0; i < split->num_runs; i++) {
        const ms_rank_class *run = &split->runs[i];
        ms_rank_live live = ms_rank_live_cached(d->lives, run, d->schedule);
        loads[i] = ms_pipeline_load(pipeline, &run->sides, &live);
        double bytes = excess_of(d, i);
        for (int r = run->first_rank; r < run->first_rank + run->num_ranks; r++)
            t->rank_excess_bytes[r] = bytes;
        all_bytes += run->num_ranks * bytes;
    }
    return all_bytes;
}

/* Prices t->layers; the step is infinite where it cannot be better than `best`. */
static void price(division *d, trial *t, const trial *best)
{
    ms_arena_mark mark = ms_arena_save(d->arena);
    t->excess_bytes = open_split(d, t);
    t->step_s = INFINITY;
    double enough_s = best == NULL || t->excess_bytes < best->excess_bytes
                          ? (double)INFINITY
                          : best->step_s * (1.0 - LEAST_GAIN_FRAC);
    bool excluded = best != NULL && t->excess_bytes > best->excess_bytes;
    if (!excluded && ms_step_bound_s(&d->pipeline, d->sharding, d->arena) < enough_s)
        t->step_s = ms_step_exact_s(&d->pipeline, d->sharding, d->schedule, d->arena);
    ms_arena_rewind(d->arena, mark);
}

static bool is_better(const trial *t, const trial *best)
{
    if (t->excess_bytes != best->excess_bytes)
        return t->excess_bytes < best->excess_bytes;
    return t->step_s < best->step_s * (1.0 - LEAST_GAIN_FRAC);
}

static trial copy_trial(const division *d, const long *layers)
{
    size_t size = (size_t)d->first->num_stages * sizeof *layers;
    trial t = {.layers = MS_NEW_ARRAY(d->arena, d->first->num_stages, long),
               .rank_excess_bytes = MS_NEW_ARRAY(d->arena, d->first->num_ranks, double)};
    memcpy(t.layers, layers, size);
    return t;
}

/* Moves a layer along each of `num` pairs of stages, from and to; whether the split is
 * better than `best`, which it then becomes. */
static bool try_moves(division *d, const int *moves, int num, trial *best, trial *tried)
{
    int num_stages = d->first->num_stages;
    memcpy(tried->layers, best->layers, (size_t)num_stages * sizeof(long));
    for (int i = 0; i < 2 * num; i++)
        tried->layers[moves[i]] += i % 2 == 0 ? -1 : 1;
    for (int s = 0; s < num_stages; s++)
        if (tried->layers[s] < 1)
            return false;
    price(d, tried, best);
    if (!is_better(tried, best))
        return false;
    trial was = *best;
    *best = *tried;
    *tried = was;
    return true;
}

/* ---- moves ---- */

/* Most stages of which each pair is tried. */
#define MOST_PAIRED_STAGES 8
/* Most stages of which two moves at once are tried. */
#define MOST_TWICE_MOVED 4

/* Whether a stage has the most or the fewest layers of its rank, the first of equals. */
static bool is_extreme(const division *d, const trial *t, int stage, bool largest)
{
    const ms_schedule_shape *shape = &d->pipeline.shape;
    int rank = ms_schedule_rank(shape, stage);
    for (int s = 0; s < d->first->num_stages; s++) {
        long more =
            largest ? t->layers[s] - t->layers[stage] : t->layers[stage] - t->layers[s];
        if (ms_schedule_rank(shape, s) == rank && (more > 0 || (more == 0 && s < stage)))
            return false;
    }
    return true;
}

/* Whether a move may help: while ranks lack memory, from such a rank to one that does not;
 * with many stages only from the largest stage of a rank to the smallest of another. */
static bool may_help(const division *d, const trial *best, int from, int to)
{
    const ms_schedule_shape *shape = &d->pipeline.shape;
    int source = ms_schedule_rank(shape, from), target = ms_schedule_rank(shape, to);
    if (from == to ||
        (best->excess_bytes > 0.0 && (best->rank_excess_bytes[source] == 0.0 ||
                                      best->rank_excess_bytes[target] > 0.0)))
        return false;
    return d->first->num_stages <= MOST_PAIRED_STAGES ||
           (source != target && is_extreme(d, best, from, true) &&
            is_extreme(d, best, to, false));
}

/* Moves a layer between two stages where that is better; the layers between the stages
 * shift. Returns whether any move was. */
static bool move_once(division *d, trial *best, trial *tried)
{
    bool moved = false;
    for (int from = 0; from < d->first->num_stages; from++)
        for (int to = 0; to < d->first->num_stages; to++)
            if (may_help(d, best, from, to))
                moved = try_moves(d, (const int[]){from, to}, 1, best, tried) || moved;
    return moved;
}

/* Moves two layers at once, where ranks have several of a few stages: one move alone may
 * make the other stage of a rank late. */
static bool move_twice(division *d, trial *best, trial *tried)
{
    int num = d->first->num_stages;
    if (num > MOST_TWICE_MOVED || d->first->num_chunks == 1 || best->excess_bytes > 0.0)
        return false;
    for (int moves = 0; moves < num * num * num * num; moves++) {
        const int of[4] = {moves % num, moves / num % num, moves / num / num % num,
                           moves / num / num / num};
        if (of[0] != of[1] && of[0] <= of[2] && try_moves(d, of, 2, best, tried))
            return true;
    }
    return false;
}

const ms_split *ms_divide_layers(const ms_pipeline *pipeline, ms_sharding sharding,
                                 const ms_schedule *schedule, ms_arena *arena)
{
    const ms_split *first = pipeline->split;
    const ms_memory_rule *rule = &pipeline->workload->memory.rule;
    bool is_set = rule->min_probability > 0.0 || rule->headroom_frac > 0.0 ||
                  rule->headroom_bytes > 0.0;
    ms_arena *scratch = ms_arena_open();
    division d = {
        .pipeline = *pipeline,
        .first = first,
        .sharding = sharding,
        .schedule = schedule,
        .rule = is_set ? *rule : (ms_memory_rule){.min_probability = MS_DEFAULT_MIN_FIT},
        .lives = ms_live_cache_open(),
        .arena = scratch};
    d.pipeline.enough_s = 0.0;
    trial best = copy_trial(&d, first->layers), tried = copy_trial(&d, first->layers);
    price(&d, &best, NULL);
    while (move_once(&d, &best, &tried) || move_twice(&d, &best, &tried))
        ;
    long *layers = MS_NEW_ARRAY(arena, first->num_stages, long);
    memcpy(layers, best.layers, (size_t)first->num_stages * sizeof *layers);
    const ms_split *split = ms_split_make(arena, pipeline->workload->model, layers,
                                          &pipeline->shape, first->kinds);
    ms_live_cache_close(d.lives);
    ms_arena_close(scratch);
    return split;
}
