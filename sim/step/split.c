/* The default distribution of the model's layers over virtual pipeline stages. */
#include "sim/step/split.h"

#include "base/number.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Times of layers as prefix sums: layers a to b - 1 take prefix_s[b] - prefix_s[a]. */
typedef struct costs {
    const double *prefix_s; /* (num_layers + 1): sums of layer times */
    double embed_s, head_s;
    long num_layers, num_stages;
} costs;

static double bill_compute_s(const ms_bill *bill)
{
    return bill->compute_s[MS_BILL_FORWARD] + bill->compute_s[MS_BILL_BACKWARD];
}

static const double *sum_layers(const ms_workload *workload, const ms_bill_set *bills,
                                ms_arena *arena)
{
    double layer_s[MS_MAX_LAYER_KINDS], sum_s = 0.0;
    for (int kind = 0; kind < workload->model->num_kinds; kind++)
        layer_s[kind] = bill_compute_s(bills->layer[kind][MS_RECOMPUTE_NONE]);
    double *prefix_s = MS_NEW_ARRAY(arena, workload->model->num_layers + 1, double);
    for (long i = 0; i < workload->model->num_layers; i++) {
        sum_s += layer_s[workload->model->kind_of_layer[i]];
        prefix_s[i + 1] = sum_s;
    }
    return prefix_s;
}

static double extra_s(const costs *c, long stage)
{
    return (stage == 0 ? c->embed_s : 0.0) +
           (stage == c->num_stages - 1 ? c->head_s : 0.0);
}

static double stage_s(const costs *c, long stage, long first, long end)
{
    return c->prefix_s[end] - c->prefix_s[first] + extra_s(c, stage);
}

/* End (a layer) of the longest stage that starts at layer `first`, takes at most limit_s
 * seconds, and leaves a layer for each later stage; if none does, of one layer. */
static long furthest_end(const costs *c, long stage, long first, double limit_s)
{
    long low = first + 1, high = c->num_layers - (c->num_stages - 1 - stage);
    while (low < high) {
        long end = low + (high - low + 1) / 2;
        if (stage_s(c, stage, first, end) <= limit_s)
            low = end;
        else
            high = end - 1;
    }
    return low;
}

/* Whether all layers fit if each stage takes as many as limit_s seconds allow. *next_s
 * becomes the next larger limit with which some stage would take one more. */
static bool feasible(const costs *c, double limit_s, double *next_s)
{
    long layer = 0;
    *next_s = INFINITY;
    for (long stage = 0; stage < c->num_stages; stage++) {
        long most = c->num_layers - (c->num_stages - 1 - stage);
        long end = furthest_end(c, stage, layer, limit_s);
        double seconds = stage_s(c, stage, layer, end);
        if (seconds > limit_s) {
            *next_s = ms_min(*next_s, seconds);
            return false;
        }
        if (end < most)
            *next_s = ms_min(*next_s, stage_s(c, stage, layer, end + 1));
        layer = end;
    }
    return layer == c->num_layers;
}

static double total_s(const costs *c)
{
    return c->prefix_s[c->num_layers] + c->embed_s + c->head_s;
}

/* Smallest possible time of the slowest stage: tries each limit that changes a stage. */
static double smallest_limit(const costs *c)
{
    double limit_s = total_s(c) / (double)c->num_stages, next_s;
    while (!feasible(c, limit_s, &next_s))
        limit_s = next_s;
    return limit_s;
}

/* Earliest end (a layer) of each stage with which each later stage takes at most limit_s
 * seconds. */
static void earliest_ends(const costs *c, double limit_s, long *earliest)
{
    long end = c->num_layers;
    for (long stage = c->num_stages - 1; stage >= 0; stage--) {
        earliest[stage] = end;
        long low = stage < end - 1 ? stage : end - 1, high = end - 1;
        while (low < high) {
            long first = low + (high - low) / 2;
            if (stage_s(c, stage, first, end) <= limit_s)
                high = first;
            else
                low = first + 1;
        }
        end = high;
    }
}

/* The end in [low, high] with which layers before it take nearest to target_s seconds. */
static long nearest_end(const costs *c, double target_s, long low, long high)
{
    while (low < high) {
        long end = low + (high - low) / 2;
        if (c->embed_s + 0.5 * (c->prefix_s[end] + c->prefix_s[end + 1]) < target_s)
            low = end + 1;
        else
            high = end;
    }
    return low;
}

static void split_by_stages(const costs *c, ms_arena *scratch, long *layers)
{
    double limit_s = smallest_limit(c);
    long *earliest = MS_NEW_ARRAY(scratch, c->num_stages, long);
    earliest_ends(c, limit_s, earliest);
    long first = 0;
    for (long stage = 0; stage < c->num_stages; stage++) {
        bool last = stage == c->num_stages - 1;
        long high = last ? c->num_layers : furthest_end(c, stage, first, limit_s);
        long low = earliest[stage] > first ? earliest[stage] : first + 1;
        double target_s = total_s(c) * (double)(stage + 1) / (double)c->num_stages;
        long end = low < high ? nearest_end(c, target_s, low, high) : high;
        layers[stage] = end - first;
        first = end;
    }
}

/* ---- stages that share a rank in pairs ---- */

/* Layers without a rank yet: each rank takes a stage from the front and from the back. */
typedef struct remaining_layers {
    long first, end; /* remaining layers: `first` to `end` - 1 */
    double taken_s;
} remaining_layers;

/* Numbers of layers of the two stages of a rank; seconds by which the time of all layers
 * taken so far misses its goal; difference of the two stages' seconds. */
typedef struct pair_choice {
    long front, back;
    double miss_s, uneven_s;
} pair_choice;

/* Layers of the last stage, at most `most`, that bring the time of all taken nearest to
 * the goal: the fewest to which half of the next one would be too much. */
static long nearest_back(const costs *c, const remaining_layers *m, long stage,
                         double goal_s, long most)
{
    long low = 1, high = most;
    while (low < high) {
        long back = low + (high - low) / 2, first = m->end - back;
        double next_s = c->prefix_s[first] - c->prefix_s[first - 1];
        if (m->taken_s + stage_s(c, stage, first, m->end) + 0.5 * next_s < goal_s)
            low = back + 1;
        else
            high = back;
    }
    return low;
}

static pair_choice try_pair(const costs *c, const remaining_layers *m, long pair,
                            double goal_s, long front)
{
    long last = c->num_stages - 1 - pair, least_left = c->num_stages - 2 * (pair + 1);
    double front_s = stage_s(c, pair, m->first, m->first + front);
    remaining_layers rest = {m->first + front, m->end, m->taken_s + front_s};
    long most = rest.end - rest.first - least_left;
    long back = least_left == 0 ? most : nearest_back(c, &rest, last, goal_s, most);
    double back_s = stage_s(c, last, m->end - back, m->end);
    return (pair_choice){front, back, fabs(rest.taken_s + back_s - goal_s),
                         fabs(front_s - back_s)};
}

static bool is_nearer(const pair_choice *a, const pair_choice *b, double rounding_s)
{
    if (fabs(a->miss_s - b->miss_s) > rounding_s)
        return a->miss_s < b->miss_s;
    return a->uneven_s < b->uneven_s;
}

/* Distributes layers over ranks with two stages each, from both ends of the model
 * inwards. Each rank's time is brought as near to an equal share of the total as
 * possible; of equally near choices the one whose two stages differ least is taken. */
static void split_in_pairs(const costs *c, long *layers)
{
    remaining_layers m = {0, c->num_layers, 0.0};
    for (long pair = 0; pair < c->num_stages / 2; pair++) {
        double goal_s = total_s(c) * (double)(2 * (pair + 1)) / (double)c->num_stages;
        long least_left = c->num_stages - 2 * (pair + 1);
        double rounding_s = 1e-9 * total_s(c);
        pair_choice best = try_pair(c, &m, pair, goal_s, 1);
        for (long front = 2; front < m.end - m.first - least_left; front++) {
            double front_s = stage_s(c, pair, m.first, m.first + front);
            if (m.taken_s + front_s - goal_s > best.miss_s + rounding_s)
                break; /* more layers would miss the goal by more */
            pair_choice next = try_pair(c, &m, pair, goal_s, front);
            if (is_nearer(&next, &best, rounding_s))
                best = next;
        }
        long last = c->num_stages - 1 - pair;
        layers[pair] = best.front;
        layers[last] = best.back;
        m.taken_s += stage_s(c, pair, m.first, m.first + best.front) +
                     stage_s(c, last, m.end - best.back, m.end);
        m.first += best.front;
        m.end -= best.back;
    }
}

static double longest_pair_s(const costs *c, const long *layers)
{
    double longest_s = 0.0;
    long first = 0, end = c->num_layers;
    for (long pair = 0; pair < c->num_stages / 2; pair++) {
        long last = c->num_stages - 1 - pair;
        longest_s = ms_max(longest_s, stage_s(c, pair, first, first + layers[pair]) +
                                          stage_s(c, last, end - layers[last], end));
        first += layers[pair];
        end -= layers[last];
    }
    return longest_s;
}

static void split_balanced(const ms_workload *workload, const ms_bill_set *bills,
                           int num_stages, bool in_pairs, long *layers)
{
    ms_arena *scratch = ms_arena_open();
    costs c = {.prefix_s = sum_layers(workload, bills, scratch),
               .embed_s = bill_compute_s(&bills->embed),
               .head_s = bill_compute_s(&bills->head),
               .num_layers = workload->model->num_layers,
               .num_stages = num_stages};
    assert(num_stages <= c.num_layers);
    split_by_stages(&c, scratch, layers);
    if (in_pairs) {
        /* required: the slowest rank 2 % faster, as unequal stages lengthen the bubble */
        const double worth_frac = 0.98;
        long *paired = MS_NEW_ARRAY(scratch, num_stages, long);
        split_in_pairs(&c, paired);
        if (longest_pair_s(&c, paired) < worth_frac * longest_pair_s(&c, layers))
            memcpy(layers, paired, (size_t)num_stages * sizeof *layers);
    }
    ms_arena_close(scratch);
}

/* Equal stages, or stages that are equal if the embedding and the head count as a layer
 * each, as with Megatron-LM's account-for-embedding-in-pipeline-split and
 * account-for-loss-in-pipeline-split. The models of Qi et al. 2023 (arXiv 2401.10241) and
 * Llama 3 405B were split this way. False if neither gives whole layers. */
static bool split_evenly(long num_layers, int num_stages, long *layers)
{
    bool ends_count = num_layers % num_stages != 0;
    long counted = num_layers + (ends_count ? 2 : 0), each = counted / num_stages;
    if (counted % num_stages != 0 || each <= (ends_count ? 1 : 0))
        return false;
    for (int s = 0; s < num_stages; s++)
        layers[s] = each;
    layers[0] -= ends_count;
    layers[num_stages - 1] -= ends_count;
    return true;
}

/* Splits by FLOP as nanotron does (src/nanotron/trainer.py, models/base.py; docs/formulas
 * 5.7): each stage takes layers until its cost, half the forward FLOP of a token, reaches
 * its share of the total. One difference: nanotron puts the head on the last stage that
 * has layers, and empty stages after it; here the head is on the last stage, and empty
 * stages come before it. The number of sends is the same. */
static void split_by_flop(const ms_workload *workload, int num_stages, long *layers)
{
    const ms_model *model = workload->model;
    double hidden = (double)model->hidden;
    double layer = hidden * (4.0 * hidden + 3.0 * (double)model->ffn_hidden +
                             (double)workload->sequence_length);
    double total = (double)model->num_layers * layer + (double)model->vocab * hidden;
    int stage = 0;
    for (long i = 0; i < model->num_layers; i++) {
        layers[stage]++;
        double share = total * (double)(stage + 1) / (double)num_stages;
        if ((double)(i + 1) * layer >= share && stage + 1 < num_stages)
            stage++;
    }
    if (stage + 1 < num_stages) {
        layers[num_stages - 1] = layers[stage];
        layers[stage] = 0;
    }
}

void ms_default_split(const ms_workload *workload, const ms_bill_set *bills,
                      int num_stages, bool in_pairs, long *layers)
{
    ms_layer_split how = workload->stack->layer_split;
    memset(layers, 0, (size_t)num_stages * sizeof *layers);
    if (how == MS_SPLIT_BY_FLOP)
        split_by_flop(workload, num_stages, layers);
    else if (how != MS_SPLIT_EVEN ||
             !split_evenly(workload->model->num_layers, num_stages, layers))
        split_balanced(workload, bills, num_stages, in_pairs, layers);
}

/* ---- classes of stages and ranks ---- */

typedef struct split_builder {
    ms_split *split;
    const ms_model *model;
    int *class_of_stage, *stage_of_class;
    ms_rank_class *runs;
} split_builder;

static bool stages_alike(const split_builder *b, int x, int y)
{
    const ms_split *split = b->split;
    int last = split->num_stages - 1;
    if (split->layers[x] != split->layers[y] || (x == 0) != (y == 0) ||
        (x == last) != (y == last) ||
        ms_split_kinds(split, x) != ms_split_kinds(split, y))
        return false;
    const unsigned char *kinds = b->model->kind_of_layer;
    return memcmp(kinds + split->first_layer[x], kinds + split->first_layer[y],
                  (size_t)split->layers[x]) == 0;
}

static void find_classes(split_builder *b)
{
    ms_split *split = b->split;
    for (int s = 0; s < split->num_stages; s++) {
        int c = split->num_classes - 1; /* search from the latest class: often equal */
        while (c >= 0 && !stages_alike(b, b->stage_of_class[c], s))
            c--;
        if (c < 0) {
            c = split->num_classes++;
            b->stage_of_class[c] = s;
        }
        b->class_of_stage[s] = c;
    }
}

/* Counts a rank's model chunks by stage class. */
static void count_distinct(ms_rank_class *run, ms_arena *arena, int chunks)
{
    int *distinct = MS_NEW_ARRAY(arena, chunks, int);
    int *multiplicity = MS_NEW_ARRAY(arena, chunks, int);
    for (int chunk = 0; chunk < chunks; chunk++) {
        int i = 0;
        while (i < run->num_distinct && distinct[i] != run->classes[chunk])
            i++;
        if (i == run->num_distinct)
            distinct[run->num_distinct++] = run->classes[chunk];
        multiplicity[i]++;
    }
    run->distinct = distinct;
    run->multiplicity = multiplicity;
}

int ms_split_stage(const ms_split *split, int rank, int chunk)
{
    int stage = ms_schedule_stage(&split->shape, rank, chunk);
    return ms_schedule_model_stage(&split->shape, stage);
}

bool ms_split_holds(const ms_split *split, int rank, int stage)
{
    for (int chunk = 0; chunk < split->num_chunks; chunk++)
        if (ms_split_stage(split, rank, chunk) == stage)
            return true;
    return false;
}

bool ms_split_ends_meet(const ms_split *split)
{
    int first_rank = ms_schedule_rank(&split->shape, 0);
    return ms_split_holds(split, first_rank, split->num_stages - 1);
}

ms_kind_set ms_split_kinds(const ms_split *split, int stage)
{
    return split->kinds == NULL ? 0
                                : split->kinds[ms_schedule_rank(&split->shape, stage)];
}

long ms_split_most_layers(const ms_split *split)
{
    long most = 0;
    for (int i = 0; i < split->num_classes; i++) {
        long layers = split->layers[split->stage_of_class[i]];
        most = layers > most ? layers : most;
    }
    return most;
}

/* The stages beside a rank's chunk, before and after it, that lie on other ranks: fills
 * in their ranks, returns how many. */
static int chunk_neighbours(const ms_split *split, int rank, int chunk, int out[2])
{
    const ms_schedule_shape *shape = &split->shape;
    bool both_ways = ms_schedule_placement(shape->kind) == MS_PLACE_BOTH_WAYS;
    int stage = both_ways ? rank : ms_schedule_stage(shape, rank, chunk), num = 0;
    int num_stages = both_ways ? split->num_ranks : split->num_stages;
    for (int beside = stage - 1; beside <= stage + 1; beside += 2) {
        if (beside < 0 || beside >= num_stages)
            continue;
        int other = both_ways ? beside : ms_schedule_rank(shape, beside);
        if (other != rank)
            out[num++] = other;
    }
    return num;
}

/* Whether one of a rank's chunks before `chunk` has `other` as a neighbour. */
static bool is_known_neighbour(const ms_split *split, int rank, int chunk, int other)
{
    int ranks[2];
    for (int c = 0; c < chunk; c++)
        for (int num = chunk_neighbours(split, rank, c, ranks); num > 0; num--)
            if (ranks[num - 1] == other)
                return true;
    return false;
}

ms_rank_sides ms_split_sides(const ms_split *split, int rank)
{
    ms_rank_sides sides = {0};
    int ranks[2];
    for (int chunk = 0; chunk < split->num_chunks; chunk++) {
        int beside = chunk_neighbours(split, rank, chunk, ranks);
        sides.messages += beside;
        for (int i = 0; i < beside; i++)
            sides.neighbours += (i == 0 || ranks[1] != ranks[0]) &&
                                !is_known_neighbour(split, rank, chunk, ranks[i]);
    }
    return sides;
}

static void find_runs(split_builder *b, ms_arena *arena)
{
    ms_split *split = b->split;
    ms_rank_class *last = NULL;
    int chunks = split->num_chunks;
    for (int rank = 0; rank < split->num_ranks; rank++) {
        int *classes = MS_NEW_ARRAY(arena, chunks, int);
        for (int chunk = 0; chunk < chunks; chunk++)
            classes[chunk] = b->class_of_stage[ms_split_stage(split, rank, chunk)];
        size_t size = (size_t)chunks * sizeof *classes;
        if (last != NULL && memcmp(last->classes, classes, size) == 0) {
            last->num_ranks++;
            continue;
        }
        int like = 0;
        while (like < split->num_runs &&
               memcmp(b->runs[like].classes, classes, size) != 0)
            like++;
        last = &b->runs[split->num_runs++];
        *last = (ms_rank_class){.first_rank = rank,
                                .num_ranks = 1,
                                .like = like,
                                .sides = ms_split_sides(split, rank),
                                .classes = classes};
        count_distinct(last, arena, chunks);
    }
}

ms_split *ms_split_make(ms_arena *arena, const ms_model *model, const long *layers,
                        const ms_schedule_shape *shape, const unsigned char *kinds)
{
    int num_ranks = shape->num_ranks, num_stages = ms_schedule_model_stages(shape);
    ms_split *split = MS_NEW(arena, ms_split);
    long *first_layer = MS_NEW_ARRAY(arena, num_stages, long);
    for (int s = 1; s < num_stages; s++)
        first_layer[s] = first_layer[s - 1] + layers[s - 1];
    split_builder b = {split, model, MS_NEW_ARRAY(arena, num_stages, int),
                       MS_NEW_ARRAY(arena, num_stages, int),
                       MS_NEW_ARRAY(arena, num_ranks, ms_rank_class)};
    split->num_ranks = num_ranks;
    split->num_chunks = ms_schedule_chunks(shape);
    split->shape = *shape;
    split->kinds = kinds;
    split->num_stages = num_stages;
    split->layers = layers;
    split->first_layer = first_layer;
    find_classes(&b);
    find_runs(&b, arena);
    split->class_of_stage = b.class_of_stage;
    split->stage_of_class = b.stage_of_class;
    split->runs = b.runs;
    return split;
}
