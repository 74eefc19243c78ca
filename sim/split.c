/* The default distribution of layers over virtual stages. */
#include "sim/split.h"

#include <assert.h>
#include <string.h>

/* Times of layers as prefix sums: cost of layers [a, b) is prefix(b) - prefix(a). */
typedef struct costs {
    const ms_workload *workload;
    double layer_s[MS_MAX_LAYER_KINDS];
    double embed_s, head_s;
    long num_layers, num_stages;
} costs;

static double bill_s(const ms_bill *bill)
{
    return bill->compute_s[MS_BILL_FORWARD] + bill->compute_s[MS_BILL_BACKWARD];
}

static double prefix_s(const costs *c, long layer)
{
    double seconds = 0.0;
    for (int kind = 0; kind < c->workload->model->num_kinds; kind++)
        seconds += c->layer_s[kind] * c->workload->layers_before[kind][layer];
    return seconds;
}

static double extra_s(const costs *c, long stage)
{
    return (stage == 0 ? c->embed_s : 0.0) + (stage == c->num_stages - 1 ? c->head_s : 0.0);
}

/* The last layer boundary in [low, high] whose stage from `first` stays within limit_s; low when none does. */
static long furthest(const costs *c, long stage, long first, long high, double limit_s)
{
    double budget = limit_s - extra_s(c, stage) + prefix_s(c, first);
    long low = first + 1;
    while (low < high) {
        long middle = low + (high - low + 1) / 2;
        if (prefix_s(c, middle) <= budget)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Whether every stage can stay within limit_s: each takes as many layers as fit and leaves one for each that follows. */
static bool feasible(const costs *c, double limit_s)
{
    long layer = 0;
    for (long stage = 0; stage < c->num_stages; stage++) {
        long high = c->num_layers - (c->num_stages - 1 - stage);
        long next = furthest(c, stage, layer, high, limit_s);
        if (prefix_s(c, next) - prefix_s(c, layer) + extra_s(c, stage) > limit_s)
            return false;
        layer = next;
    }
    return layer == c->num_layers;
}

/* Smallest feasible limit by bisection to 1 part in 10^7, finer than any difference between stage times that matters. */
static double smallest_limit(const costs *c)
{
    double total = prefix_s(c, c->num_layers) + c->embed_s + c->head_s;
    double low = total / (double)c->num_stages, high = total;
    if (feasible(c, low * (1.0 + 1e-7)))
        return low * (1.0 + 1e-7);
    while (high - low > 1e-7 * high) {
        double middle = 0.5 * (low + high);
        if (feasible(c, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Earliest boundary before `stage` from which the stages to the right still fit: fill them from the end. */
static void earliest_boundaries(const costs *c, double limit_s, long *earliest)
{
    long layer = c->num_layers;
    earliest[c->num_stages] = layer;
    for (long stage = c->num_stages - 1; stage >= 0; stage--) {
        double floor_s = prefix_s(c, layer) - (limit_s - extra_s(c, stage));
        long low = stage, high = layer - 1;
        while (low < high) {
            long middle = low + (high - low) / 2;
            if (prefix_s(c, middle) >= floor_s)
                high = middle;
            else
                low = middle + 1;
        }
        layer = low;
        earliest[stage] = layer;
    }
}

/* The boundary whose prefix lies nearest to `target_s`. */
static long nearest_boundary(const costs *c, double target_s, long low, long high)
{
    while (low < high) {
        long middle = low + (high - low) / 2;
        if (c->embed_s + 0.5 * (prefix_s(c, middle) + prefix_s(c, middle + 1)) >= target_s)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void ms_default_split(const ms_workload *w, const ms_bill_set *bills, int num_stages, long *layers)
{
    costs c = {.workload = w, .embed_s = bill_s(&bills->embed), .head_s = bill_s(&bills->head),
               .num_layers = w->model->num_layers, .num_stages = num_stages};
    assert(num_stages <= c.num_layers);
    for (int kind = 0; kind < w->model->num_kinds; kind++)
        c.layer_s[kind] = bill_s(&bills->layer[kind][MS_RECOMPUTE_NONE]);
    double limit_s = smallest_limit(&c);
    double total_s = prefix_s(&c, c.num_layers) + c.embed_s + c.head_s;
    ms_arena *scratch = ms_arena_open();
    long *earliest = MS_NEW_ARRAY(scratch, num_stages + 1, long);
    earliest_boundaries(&c, limit_s, earliest);
    long layer = 0;
    for (long stage = 0; stage < num_stages; stage++) {
        long high = furthest(&c, stage, layer, c.num_layers - (num_stages - 1 - stage), limit_s);
        long low = earliest[stage + 1] > layer ? earliest[stage + 1] : layer + 1;
        double target_s = total_s * (double)(stage + 1) / (double)num_stages;
        long next = stage == num_stages - 1 ? c.num_layers
                    : low < high            ? nearest_boundary(&c, target_s, low, high)
                                            : high;
        layers[stage] = next - layer;
        layer = next;
    }
    ms_arena_close(scratch);
}

/* ---- classes and runs ---- */

typedef struct split_builder {
    ms_split *split;
    const ms_model *model;
    int *class_of_stage, *stage_of_class;
    ms_run *runs;
} split_builder;

static bool stages_alike(const split_builder *b, int x, int y)
{
    const ms_split *split = b->split;
    int last = split->num_stages - 1;
    if (split->layers[x] != split->layers[y] || (x == 0) != (y == 0) || (x == last) != (y == last))
        return false;
    const unsigned char *kinds = b->model->kind_of_layer;
    return memcmp(kinds + split->first_layer[x], kinds + split->first_layer[y], (size_t)split->layers[x]) == 0;
}

static void find_classes(split_builder *b)
{
    ms_split *split = b->split;
    for (int s = 0; s < split->num_stages; s++) {
        int c = split->num_classes - 1; /* stages are mostly like the one before */
        while (c >= 0 && !stages_alike(b, b->stage_of_class[c], s))
            c--;
        if (c < 0) {
            c = split->num_classes++;
            b->stage_of_class[c] = s;
        }
        b->class_of_stage[s] = c;
    }
}

static void find_runs(split_builder *b, ms_arena *arena, int virtual_stages)
{
    ms_split *split = b->split;
    for (int rank = 0; rank < split->num_ranks; rank++) {
        int *classes = MS_NEW_ARRAY(arena, virtual_stages, int);
        for (int chunk = 0; chunk < virtual_stages; chunk++)
            classes[chunk] = b->class_of_stage[chunk * split->num_ranks + rank];
        ms_run *last = split->num_runs > 0 ? &b->runs[split->num_runs - 1] : NULL;
        if (last != NULL && memcmp(last->classes, classes, (size_t)virtual_stages * sizeof *classes) == 0)
            last->num_ranks++;
        else
            b->runs[split->num_runs++] = (ms_run){rank, 1, classes};
    }
}

ms_split *ms_split_make(ms_arena *arena, const ms_model *model, const long *layers, int num_ranks, int virtual_stages)
{
    int num_stages = num_ranks * virtual_stages;
    ms_split *split = MS_NEW(arena, ms_split);
    long *first_layer = MS_NEW_ARRAY(arena, num_stages, long);
    for (int s = 1; s < num_stages; s++)
        first_layer[s] = first_layer[s - 1] + layers[s - 1];
    split_builder b = {split, model, MS_NEW_ARRAY(arena, num_stages, int), MS_NEW_ARRAY(arena, num_stages, int),
                       MS_NEW_ARRAY(arena, num_ranks, ms_run)};
    split->num_ranks = num_ranks;
    split->num_stages = num_stages;
    split->layers = layers;
    split->first_layer = first_layer;
    find_classes(&b);
    find_runs(&b, arena, virtual_stages);
    split->class_of_stage = b.class_of_stage;
    split->stage_of_class = b.stage_of_class;
    split->runs = b.runs;
    return split;
}
