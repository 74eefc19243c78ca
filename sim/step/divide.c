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
    ms_pipeline pipeline; /* of the split that is tried */
    const long *first;    /* (num_stages): layers of the split that balances compute */
    const unsigned char *kinds;
    int num_stages;
    ms_sharding sharding;
    const ms_schedule *schedule;
    bool counts_memory;
    /* [ms_kind_set] of devices, by the rule in use; peak_factor 0: not made yet */
    ms_memory_limit limits[MS_NUM_KIND_SETS];
    ms_memory_rule rule;
    int num_ranks;
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

/* Sets the split that is tried, with its stages. */
static void open_split(division *d, const long *layers)
{
    ms_pipeline *pipeline = &d->pipeline;
    pipeline->split = ms_split_make(d->arena, pipeline->workload->model, layers,
                                    &pipeline->shape, d->kinds);
    pipeline->stages = ms_pipeline_stages(d->arena, pipeline);
}

/* Makes the loads of all ranks; returns their bytes over the limits. */
static double load_ranks(division *d, double *rank_excess_bytes)
{
    const ms_split *split = d->pipeline.split;
    ms_rank_load *loads = MS_TAKE_ARRAY(d->arena, split->num_runs, ms_rank_load);
    double all_bytes = 0.0;
    d->pipeline.loads = loads;
    for (int i = 0; i < split->num_runs; i++) {
        const ms_rank_class *run = &split->runs[i];
        ms_rank_live live = ms_rank_live_cached(d->lives, run, d->schedule);
        loads[i] = ms_pipeline_load(&d->pipeline, &run->sides, &live);
        double bytes = d->counts_memory ? excess_of(d, i) : 0.0;
        for (int r = run->first_rank; r < run->first_rank + run->num_ranks; r++)
            rank_excess_bytes[r] = bytes;
        all_bytes += run->num_ranks * bytes;
    }
    return all_bytes;
}

/* Prices t->layers; its step is infinite where it cannot be better than `best`. */
static void price(division *d, trial *t, const trial *best)
{
    ms_arena_mark mark = ms_arena_save(d->arena);
    open_split(d, t->layers);
    t->excess_bytes = load_ranks(d, t->rank_excess_bytes);
    t->step_s = INFINITY;
    bool excluded = best != NULL && t->excess_bytes > best->excess_bytes;
    bool equal = best != NULL && t->excess_bytes == best->excess_bytes;
    if (!excluded && !(equal && ms_step_bound_s(&d->pipeline, d->sharding, d->arena) >=
                                    best->step_s * (1.0 - LEAST_GAIN_FRAC)))
        t->step_s = ms_step_exact_s(&d->pipeline, d->sharding, d->schedule, d->arena);
    ms_arena_rewind(d->arena, mark);
}

static bool is_better(const trial *t, const trial *best)
{
    if (t->excess_bytes != best->excess_bytes)
        return t->excess_bytes < best->excess_bytes;
    return t->step_s < best->step_s * (1.0 - LEAST_GAIN_FRAC);
}

static trial new_trial(const division *d)
{
    return (trial){.layers = MS_NEW_ARRAY(d->arena, d->num_stages, long),
                   .rank_excess_bytes = MS_NEW_ARRAY(d->arena, d->num_ranks, double)};
}

static trial open_trial(division *d, const long *layers)
{
    trial t = new_trial(d);
    memcpy(t.layers, layers, (size_t)d->num_stages * sizeof *layers);
    price(d, &t, NULL);
    return t;
}

static void take_better(division *d, const trial *t, trial *best)
{
    if (is_better(t, best)) {
        memcpy(best->layers, t->layers, (size_t)d->num_stages * sizeof *t->layers);
        memcpy(best->rank_excess_bytes, t->rank_excess_bytes,
               (size_t)d->num_ranks * sizeof(double));
        best->excess_bytes = t->excess_bytes;
        best->step_s = t->step_s;
    }
}

/* ---- moves ---- */

/* Most stages of which each pair is tried. */
#define MOST_PAIRED_STAGES 8
/* Most stages of which two moves at once are tried. */
#define MOST_TWICE_MOVED 4

static bool is_extreme(const division *d, const trial *t, int stage, bool largest)
{
    const ms_schedule_shape *shape = &d->pipeline.shape;
    int rank = ms_schedule_rank(shape, stage);
    for (int s = 0; s < d->num_stages; s++) {
        long more =
            largest ? t->layers[s] - t->layers[stage] : t->layers[stage] - t->layers[s];
        if (ms_schedule_rank(shape, s) == rank && (more > 0 || (more == 0 && s < stage)))
            return false;
    }
    return true;
}

/* Whether the move may help: while ranks lack memory, from such a rank to one that does
 * not; with many stages only from the largest stage of a rank to the smallest. */
static bool is_tried(const division *d, const trial *best, int from, int to)
{
    const ms_schedule_shape *shape = &d->pipeline.shape;
    if (from == to || best->layers[from] < 2)
        return false;
    if (best->excess_bytes > 0.0 &&
        (best->rank_excess_bytes[ms_schedule_rank(shape, from)] == 0.0 ||
         best->rank_excess_bytes[ms_schedule_rank(shape, to)] > 0.0))
        return false;
    return d->num_stages <= MOST_PAIRED_STAGES ||
           (is_extreme(d, best, from, true) && is_extreme(d, best, to, false));
}

/* Tries the split of `tried`; whether it is better than `best`, which then becomes it. */
static bool try_split(division *d, trial *best, trial *tried)
{
    price(d, tried, best);
    bool better = is_better(tried, best);
    take_better(d, tried, best);
    return better;
}

/* Moves a layer between two stages where that is better; the layers between the stages
 * shift. Returns whether any move was. */
static bool move_layers(division *d, trial *best, trial *tried)
{
    bool moved = false;
    for (int from = 0; from < d->num_stages; from++) {
        for (int to = 0; to < d->num_stages; to++) {
            if (!is_tried(d, best, from, to))
                continue;
            memcpy(tried->layers, best->layers, (size_t)d->num_stages * sizeof(long));
            tried->layers[from]--;
            tried->layers[to]++;
            moved = try_split(d, best, tried) || moved;
        }
    }
    return moved;
}

/* Moves a layer twice at once, where ranks have several of a few stages: one move alone
 * may make the rank's other stage late. */
static bool move_twice(division *d, trial *best, trial *tried)
{
    int num = d->num_stages;
    if (num > MOST_TWICE_MOVED || ms_schedule_chunks(&d->pipeline.shape) == 1)
        return false;
    for (int moves = 0; moves < num * num * num * num; moves++) {
        const int of[4] = {moves % num, moves / num % num, moves / num / num % num,
                           moves / num / num / num};
        memcpy(tried->layers, best->layers, (size_t)num * sizeof(long));
        for (int i = 0; i < 4; i++)
            tried->layers[of[i]] += i % 2 == 0 ? -1 : 1;
        bool legal = of[0] != of[1] && of[0] <= of[2];
        for (int s = 0; s < num; s++)
            legal = legal && tried->layers[s] > 0;
        if (legal && try_split(d, best, tried))
            return true;
    }
    return false;
}

static void improve(division *d, trial *best)
{
    trial tried = new_trial(d);
    while (move_layers(d, best, &tried) || move_twice(d, best, &tried))
        ;
}

/* ---- starts ---- */

/* Seconds of a layer's forward and backward; with ZeRO-2 and ZeRO-3 a pass takes at least
 * as long as its gathers and reductions. */
static double layer_s(const division *d, const ms_block_cost *layer)
{
    bool gathers = d->sharding == MS_ZERO_3;
    double reduce_s = ms_shards_grads(d->sharding) ? layer->reduce_s : 0.0;
    double gather_s = gathers ? layer->gather_s : 0.0;
    return ms_max(layer->forward_s, gather_s) +
           ms_max(layer->backward_s, gather_s + reduce_s);
}

static const double *sum_layers(const division *d, const ms_block_costs *blocks)
{
    const ms_model *model = d->pipeline.workload->model;
    double *prefix_s = MS_NEW_ARRAY(d->arena, model->num_layers + 1, double);
    for (long i = 0; i < model->num_layers; i++)
        prefix_s[i + 1] =
            prefix_s[i] +
            layer_s(d, &blocks->layer[model->kind_of_layer[i]][d->pipeline.mode]);
    return prefix_s;
}

static double block_s(const ms_block_cost *block)
{
    return block->forward_s + block->backward_s;
}

/* Balances times with exposed communication. `most`: as in ms_stage_costs. */
static void balance(const division *d, const long *most, long *layers)
{
    const ms_schedule_shape *shape = &d->pipeline.shape;
    const double **prefix_s = MS_NEW_ARRAY(d->arena, d->num_stages, const double *);
    const double *known[MS_NUM_KIND_SETS] = {NULL};
    double *extra_s = MS_NEW_ARRAY(d->arena, d->num_stages, double);
    for (int s = 0; s < d->num_stages; s++) {
        ms_kind_set set = d->kinds[ms_schedule_rank(shape, s)];
        const ms_block_costs *blocks = d->pipeline.of_kinds[set].blocks;
        if (known[set] == NULL)
            known[set] = sum_layers(d, blocks);
        prefix_s[s] = known[set];
        extra_s[s] = (s == 0 ? block_s(&blocks->embed) : 0.0) +
                     (s == d->num_stages - 1 ? block_s(&blocks->head) : 0.0);
    }
    ms_stage_costs costs = {d->pipeline.workload->model->num_layers, d->num_stages,
                            prefix_s, extra_s, most};
    ms_balance_layers(&costs, d->arena, layers);
}

/* Gives stage `s` so many layers, and others nearly equal numbers of the rest. */
static void give_layers(const division *d, int s, long num, long *layers)
{
    long rest = d->pipeline.workload->model->num_layers - num, others = d->num_stages - 1;
    for (int i = 0; i < d->num_stages; i++) {
        if (i == s)
            continue;
        layers[i] = rest / others;
        rest -= layers[i];
        others--;
    }
    layers[s] = num;
}

/* The most layers that fit the devices of stage `s`, the only one of its rank; at least 1. */
static long most_layers(division *d, int s, trial *t)
{
    long low = 1, high = d->pipeline.workload->model->num_layers - (d->num_stages - 1);
    while (low < high) {
        long num = low + (high - low + 1) / 2;
        ms_arena_mark mark = ms_arena_save(d->arena);
        give_layers(d, s, num, t->layers);
        open_split(d, t->layers);
        load_ranks(d, t->rank_excess_bytes);
        ms_arena_rewind(d->arena, mark);
        if (t->rank_excess_bytes[ms_schedule_rank(&d->pipeline.shape, s)] > 0.0)
            high = num - 1;
        else
            low = num;
    }
    return low;
}

/* Takes the split that balances times among those that fit, if it is better: of schedules
 * with one stage a rank. */
static void take_fitting(division *d, trial *best)
{
    if (ms_schedule_chunks(&d->pipeline.shape) > 1)
        return;
    trial t = new_trial(d);
    long *most = MS_NEW_ARRAY(d->arena, d->num_stages, long), all = 0;
    for (int s = 0; s < d->num_stages; s++)
        all += most[s] = most_layers(d, s, &t);
    if (all < d->pipeline.workload->model->num_layers)
        return;
    balance(d, most, t.layers);
    price(d, &t, NULL);
    take_better(d, &t, best);
}

/* Whether every rank lacks memory: in any other split one of them has as many layers, or
 * more, and lacks it, too. */
static bool is_hopeless(const division *d, const trial *t)
{
    for (int rank = 0; rank < d->num_ranks; rank++)
        if (t->rank_excess_bytes[rank] == 0.0)
            return false;
    return true;
}

/* Divides within a rule of memory, from the fastest split of all, `best`; whether the
 * result fits. */
static bool divide_within(division *d, const ms_memory_rule *rule, trial *best)
{
    d->rule = *rule;
    memset(d->limits, 0, sizeof d->limits);
    d->counts_memory = true;
    price(d, best, NULL);
    if (best->excess_bytes == 0.0)
        return true;
    trial first = open_trial(d, d->first);
    take_better(d, &first, best);
    if (is_hopeless(d, best))
        return false;
    take_fitting(d, best);
    improve(d, best);
    return best->excess_bytes == 0.0;
}

static bool demands_room(const ms_memory_rule *rule)
{
    return rule->min_probability > 0.0 || rule->headroom_frac > 0.0 ||
           rule->headroom_bytes > 0.0;
}

/* The fastest split, whatever memory it needs. */
static trial divide_alone(division *d)
{
    trial best = open_trial(d, d->first);
    trial even = new_trial(d);
    balance(d, NULL, even.layers);
    price(d, &even, NULL);
    take_better(d, &even, &best);
    improve(d, &best);
    return best;
}

ms_division ms_divide_layers(const ms_pipeline *pipeline, ms_sharding sharding,
                             const ms_schedule *schedule, ms_arena *arena)
{
    const ms_split *first = pipeline->split;
    const ms_memory_rule *rule = &pipeline->workload->memory.rule;
    size_t size = (size_t)first->num_stages * sizeof(long);
    long *layers = MS_NEW_ARRAY(arena, first->num_stages, long);
    ms_arena *scratch = ms_arena_open();
    division d = {.pipeline = *pipeline,
                  .first = first->layers,
                  .kinds = first->kinds,
                  .num_stages = first->num_stages,
                  .sharding = sharding,
                  .schedule = schedule,
                  .num_ranks = first->num_ranks,
                  .lives = ms_live_cache_open(),
                  .arena = scratch};
    d.pipeline.enough_s = 0.0;
    trial best = divide_alone(&d);
    memcpy(layers, best.layers, size);
    bool is_slow = pipeline->enough_s > 0.0 && best.step_s >= pipeline->enough_s;
    const ms_memory_rule safe = {.min_probability = MS_DEFAULT_MIN_FIT};
    bool demands = demands_room(rule);
    if (!is_slow && !divide_within(&d, demands ? rule : &safe, &best) && !demands) {
        memcpy(best.layers, layers, size);
        divide_within(&d, rule, &best);
    }
    bool is_limited = memcmp(layers, best.layers, size) != 0;
    memcpy(layers, best.layers, size);
    ms_live_cache_close(d.lives);
    ms_arena_close(scratch);
    const ms_split *split = ms_split_make(arena, pipeline->workload->model, layers,
                                          &pipeline->shape, first->kinds);
    return (ms_division){split, is_limited, is_slow};
}

/* ---- bound ---- */

/* Least seconds of a block's forward and backward, as if halves and pairs hid all that
 * they can. */
static double least_s(const ms_pipeline *pipeline, const ms_block_cost *block)
{
    ms_schedule_traits traits = ms_schedule_traits_of(pipeline->shape.kind);
    bool splits = traits.splits_backward || pipeline->shape.kind == MS_CUSTOM;
    bool pairs = traits.overlaps || pipeline->shape.kind == MS_CUSTOM;
    double backward_s = splits
                            ? ms_min(block->backward_s, block->input_s + block->weight_s)
                            : block->backward_s;
    double hidden_s =
        pairs ? block->exchange_forward_s + block->exchange_backward_s : 0.0;
    return ms_max(block->forward_s + backward_s - hidden_s, 0.0);
}

/* Least seconds of a layer on a kind of devices, over those on the first rank's: r_i. */
static double least_ratio(const ms_pipeline *pipeline, const ms_block_costs *first,
                          const ms_block_costs *own, ms_layer_mode mode)
{
    double ratio = INFINITY;
    for (int kind = 0; kind < pipeline->workload->model->num_kinds; kind++)
        ratio = ms_min(ratio, least_s(pipeline, &own->layer[kind][mode]) /
                                  least_s(pipeline, &first->layer[kind][mode]));
    return ratio;
}

/* Seconds a micro-batch of embedding and head on a rank with one stage. */
static double ends_s(const ms_pipeline *pipeline, int rank, const ms_block_costs *own)
{
    const ms_split *split = pipeline->split;
    if (split->num_chunks > 1)
        return 0.0;
    double embed_s = rank == 0 ? least_s(pipeline, &own->embed) : 0.0;
    return rank == split->num_ranks - 1 ? embed_s + least_s(pipeline, &own->head)
                                        : embed_s;
}

/* Least seconds of every split, by rank. */
typedef struct whole_bound {
    const ms_pipeline *pipeline;
    ms_layer_mode mode;
    bool passes;  /* ranks have one stage each, which the first micro-batch passes */
    bool arrives; /* the first micro-batch reaches a rank through all ranks before it */
    double microbatches;
    const ms_block_costs **own; /* (num_ranks) */
    double **prefix_s;          /* (num_ranks): [num_layers + 1], sums of layer times */
} whole_bound;

static whole_bound open_bound(const ms_pipeline *pipeline, ms_arena *arena)
{
    const ms_split *split = pipeline->split;
    const ms_model *model = pipeline->workload->model;
    bool some = pipeline->mode == MS_RECOMPUTE_FULL && pipeline->recompute_layers > 0;
    bool spans = pipeline->workload->stack->optimizer_sync != MS_SYNC_GLOBAL;
    bool arrives = !spans && ms_order_ends_with_first_chunk(pipeline->shape.kind);
    whole_bound b = {pipeline,
                     some ? MS_RECOMPUTE_NONE : pipeline->mode,
                     arrives && split->num_chunks == 1,
                     arrives,
                     ms_schedule_stage_microbatches(&pipeline->shape),
                     MS_NEW_ARRAY(arena, split->num_ranks, const ms_block_costs *),
                     MS_NEW_ARRAY(arena, split->num_ranks, double *)};
    for (int rank = 0; rank < split->num_ranks; rank++) {
        const ms_block_costs *own = pipeline->of_kinds[split->kinds[rank]].blocks;
        b.own[rank] = own;
        if (rank > 0 && own == b.own[rank - 1]) {
            b.prefix_s[rank] = b.prefix_s[rank - 1];
            continue;
        }
        b.prefix_s[rank] = MS_NEW_ARRAY(arena, model->num_layers + 1, double);
        for (long i = 0; i < model->num_layers; i++)
            b.prefix_s[rank][i + 1] =
                b.prefix_s[rank][i] +
                least_s(pipeline, &own->layer[model->kind_of_layer[i]][b.mode]);
    }
    return b;
}

/* The bound by shares of ranks, without the synchronization of all ranks. */
static double shared_bound_s(const whole_bound *b)
{
    const ms_split *split = b->pipeline->split;
    double later = 0.0, shares = 0.0, ends = 0.0; /* sums over ranks, for a = 1 */
    for (int rank = split->num_ranks - 1; rank >= 0; rank--) {
        double weight = 1.0 / least_ratio(b->pipeline, b->own[0], b->own[rank], b->mode);
        double after = b->passes ? later : 0.0;
        double share = ms_max((weight - after) / b->microbatches, 0.0);
        ends +=
            (b->microbatches * share + after) * ends_s(b->pipeline, rank, b->own[rank]);
        shares += share;
        later += share;
    }
    double copies = (double)(split->num_chunks * split->num_ranks) / split->num_stages;
    double layers_s = b->prefix_s[0][b->pipeline->workload->model->num_layers];
    return (copies * layers_s + ends) / shares;
}

/* Whether whole layers can be divided over ranks with one stage each, so that each rank's
 * micro-batches and one on the ranks before it take at most limit_s: least sums of the
 * latter by the number of layers so far. */
static bool stages_allow(const whole_bound *b, double limit_s, ms_arena *scratch)
{
    long width = b->pipeline->workload->model->num_layers + 1;
    double *before_s = MS_NEW_ARRAY(scratch, width, double);
    double *after_s = MS_NEW_ARRAY(scratch, width, double);
    for (long i = 1; i < width; i++)
        before_s[i] = INFINITY;
    for (int rank = 0; rank < b->pipeline->split->num_ranks; rank++) {
        const double *prefix_s = b->prefix_s[rank];
        double extra_s = ends_s(b->pipeline, rank, b->own[rank]);
        for (long end = 0; end < width; end++) {
            after_s[end] = INFINITY;
            for (long first = end - 1; first >= 0; first--) {
                double own_s = prefix_s[end] - prefix_s[first] + extra_s;
                if (b->microbatches * own_s > limit_s)
                    break;
                if (b->microbatches * own_s + before_s[first] <= limit_s)
                    after_s[end] = ms_min(after_s[end], before_s[first] + own_s);
            }
        }
        double *was = before_s;
        before_s = after_s;
        after_s = was;
    }
    return isfinite(before_s[width - 1]);
}

/* Whether ranks with several stages can have all layers in limit_s, if each layer takes as
 * little as the model's quickest. The first micro-batch passes a layer of each rank. */
static bool ranks_allow(const whole_bound *b, double limit_s)
{
    const ms_split *split = b->pipeline->split;
    const ms_model *model = b->pipeline->workload->model;
    double layers = 0.0, arrival_s = 0.0;
    for (int rank = 0; rank < split->num_ranks; rank++) {
        double layer_s = INFINITY;
        for (int kind = 0; kind < model->num_kinds; kind++)
            layer_s = ms_min(layer_s,
                             least_s(b->pipeline, &b->own[rank]->layer[kind][b->mode]));
        layers += floor(ms_max(limit_s - arrival_s, 0.0) / (b->microbatches * layer_s));
        arrival_s += b->arrives ? layer_s : 0.0;
    }
    return layers * split->num_stages >=
           (double)model->num_layers * split->num_chunks * split->num_ranks;
}

/* Raises a bound as far as no division of whole layers is as fast. */
static double whole_layers_s(const whole_bound *b, double bound_s)
{
    const double precise_frac = 2e-3, most_frac = 0.5;
    bool single = b->pipeline->split->num_chunks == 1;
    double low_s = bound_s, high_s = bound_s * (1.0 + most_frac);
    if (single && !b->passes)
        return bound_s;
    while (high_s - low_s > precise_frac * bound_s) {
        double limit_s = 0.5 * (low_s + high_s);
        ms_arena *scratch = ms_arena_open();
        bool allow = single ? stages_allow(b, limit_s, scratch) : ranks_allow(b, limit_s);
        ms_arena_close(scratch);
        if (allow)
            high_s = limit_s;
        else
            low_s = limit_s;
    }
    return low_s;
}

double ms_divided_bound_s(const ms_pipeline *pipeline, double enough_s)
{
    ms_arena *scratch = ms_arena_open();
    whole_bound b = open_bound(pipeline, scratch);
    double sync_s = pipeline->workload->stack->optimizer_sync == MS_SYNC_GLOBAL
                        ? pipeline->world_sync_s
                        : 0.0;
    double bound_s = shared_bound_s(&b);
    if (bound_s + sync_s < enough_s)
        bound_s = whole_layers_s(&b, bound_s);
    ms_arena_close(scratch);
    return bound_s * (1.0 - 1e-12) + sync_s;
}
