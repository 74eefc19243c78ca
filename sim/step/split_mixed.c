/* Layers of pipeline stages that run at different speeds (docs/formulas 5.8). */
#include "base/number.h"
#include "sim/step/kind_prices.h"
#include "sim/step/split.h"

#include <math.h>

/* Times of stages: layers a to b - 1 take prefix_s[b] - prefix_s[a] on a kind set. */
typedef struct stage_costs {
    long num_layers, num_stages;
    const double **prefix_s; /* (num_stages): [num_layers + 1], sums of layer times */
    const double *extra_s;   /* (num_stages): of embedding and head */
} stage_costs;

static double bill_s(const ms_bill *bill)
{
    return bill->compute_s[MS_BILL_FORWARD] + bill->compute_s[MS_BILL_BACKWARD];
}

static const double *sum_layers(const ms_model *model, const ms_bill_set *bills,
                                ms_arena *arena)
{
    double *prefix_s = MS_NEW_ARRAY(arena, model->num_layers + 1, double);
    for (long i = 0; i < model->num_layers; i++)
        prefix_s[i + 1] =
            prefix_s[i] +
            bill_s(bills->layer[model->kind_of_layer[i]][MS_RECOMPUTE_NONE]);
    return prefix_s;
}

static stage_costs costs_of(ms_workload *workload, const ms_bill_key *key,
                            const ms_schedule_shape *shape, const unsigned char *kinds,
                            ms_arena *arena)
{
    int num_stages = ms_schedule_model_stages(shape);
    const double *known[MS_NUM_KIND_SETS] = {NULL};
    double *extra_s = MS_NEW_ARRAY(arena, num_stages, double);
    stage_costs c = {workload->model->num_layers, num_stages,
                     MS_NEW_ARRAY(arena, num_stages, const double *), extra_s};
    for (int s = 0; s < num_stages; s++) {
        ms_kind_set set = kinds[ms_schedule_rank(shape, s)];
        const ms_bill_set *bills =
            ms_workload_bills(ms_workload_of_kinds(workload, set), key);
        if (known[set] == NULL)
            known[set] = sum_layers(workload->model, bills, arena);
        c.prefix_s[s] = known[set];
        extra_s[s] = (s == 0 ? bill_s(&bills->embed) : 0.0) +
                     (s == num_stages - 1 ? bill_s(&bills->head) : 0.0);
    }
    return c;
}

static double stage_s(const stage_costs *c, long stage, long first, long end)
{
    return c->prefix_s[stage][end] - c->prefix_s[stage][first] + c->extra_s[stage];
}

/* Least largest stage time of all splits. */
static double least_limit_s(const stage_costs *c, ms_arena *arena)
{
    long width = c->num_layers + 1;
    double *best_s = MS_NEW_ARRAY(arena, width, double);
    double *next_s = MS_NEW_ARRAY(arena, width, double);
    for (long end = 1; end < width; end++)
        best_s[end] = INFINITY;
    for (long stage = 0; stage < c->num_stages; stage++) {
        for (long end = 0; end < width; end++) {
            next_s[end] = INFINITY;
            for (long first = stage; first < end; first++)
                next_s[end] = ms_min(
                    next_s[end], ms_max(best_s[first], stage_s(c, stage, first, end)));
        }
        double *was = best_s;
        best_s = next_s;
        next_s = was;
    }
    return best_s[c->num_layers];
}

/* Finds the split with the least sum of squared times, of those without a longer stage. */
static void most_even(const stage_costs *c, double limit_s, ms_arena *arena, long *layers)
{
    long width = c->num_layers + 1;
    double *sum = MS_NEW_ARRAY(arena, (c->num_stages + 1) * width, double);
    long *from = MS_NEW_ARRAY(arena, (c->num_stages + 1) * width, long);
    for (long i = 1; i < (c->num_stages + 1) * width; i++)
        sum[i] = INFINITY;
    for (long stage = 0; stage < c->num_stages; stage++) {
        const double *before = &sum[stage * width];
        double *after = &sum[(stage + 1) * width];
        for (long end = stage + 1; end < width; end++) {
            for (long first = stage; first < end; first++) {
                double seconds = stage_s(c, stage, first, end);
                double all = before[first] + seconds * seconds;
                if (seconds > limit_s || all >= after[end])
                    continue;
                after[end] = all;
                from[(stage + 1) * width + end] = first;
            }
        }
    }
    long end = c->num_layers;
    for (long stage = c->num_stages; stage > 0; stage--) {
        long first = from[stage * width + end];
        layers[stage - 1] = end - first;
        end = first;
    }
}

static bool all_equal(const unsigned char *kinds, int num_ranks)
{
    for (int i = 1; i < num_ranks; i++)
        if (kinds[i] != kinds[0])
            return false;
    return true;
}

/* Whether devices differ by more than the speed of some nodes, which frameworks do not know
 * of when they divide the layers. */
static bool has_groups(const ms_cluster *cluster)
{
    for (int k = 0; k < cluster->num_kinds; k++)
        if (cluster->kinds[k].like != NULL)
            return true;
    return false;
}

/* Whether the stack's framework takes any number of layers for each stage. */
static bool takes_layers(const ms_workload *workload)
{
    const ms_variables own = MS_VARIABLE(MS_FACT_OWN_SPLIT);
    for (int i = 0; i < workload->rules.num; i++)
        if ((workload->rules.rules[i].need.reads & own) != 0)
            return false;
    return workload->stack->layer_split != MS_SPLIT_BY_FLOP;
}

bool ms_layers_follow_devices(const ms_workload *workload)
{
    return takes_layers(workload) && has_groups(workload->cluster);
}

bool ms_divides_layers(const ms_workload *workload, const ms_schedule_shape *shape,
                       const unsigned char *kinds)
{
    return kinds != NULL && ms_layers_follow_devices(workload) &&
           !all_equal(kinds, shape->num_ranks);
}

void ms_mixed_split(ms_workload *workload, const ms_bill_set *bills,
                    const ms_schedule_shape *shape, const unsigned char *kinds,
                    long *layers)
{
    if (!ms_divides_layers(workload, shape, kinds)) {
        int num_stages = ms_schedule_model_stages(shape);
        bool in_pairs =
            ms_schedule_placement(shape->kind) != MS_PLACE_LOOP && num_stages % 2 == 0;
        ms_default_split(workload, bills, num_stages, in_pairs, layers);
        return;
    }
    ms_arena *scratch = ms_arena_open();
    stage_costs c = costs_of(workload, &bills->key, shape, kinds, scratch);
    /* rounding of prefix sums must not exclude the stage that determines the limit */
    double limit_s = least_limit_s(&c, scratch) * (1.0 + 1e-12);
    most_even(&c, limit_s, scratch, layers);
    ms_arena_close(scratch);
}
