#include "sim/step/recompute_fit.h"

#include "sim/step/bill_key.h"

#include <math.h>
#include <stdlib.h>

typedef struct budgets {
    int num;
    double *frac; /* distinct budgets (shares of activations saved), ascending, up to 1 */
} budgets;

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void sort_distinct(budgets *all)
{
    int num = 0;
    qsort(all->frac, (size_t)all->num, sizeof *all->frac, by_value);
    for (int i = 0; i < all->num; i++)
        if (num == 0 || all->frac[i] > all->frac[num - 1])
            all->frac[num++] = all->frac[i];
    all->num = num;
}

/* All budgets at which the choice of saved activations changes for a kind of layer. */
static budgets budgets_of(ms_arena *arena, const ms_workload *workload,
                          const ms_bill_key *key)
{
    ms_saved_front fronts[MS_MAX_LAYER_KINDS];
    int most = 1;
    for (int kind = 0; kind < workload->model->num_kinds; kind++) {
        fronts[kind] = ms_workload_saved_front(workload, arena, key, kind);
        most += fronts[kind].num_points;
    }
    budgets all = {0, MS_NEW_ARRAY(arena, most, double)};
    for (int kind = 0; kind < workload->model->num_kinds; kind++)
        for (int i = 0; i < fronts[kind].num_points; i++)
            all.frac[all.num++] =
                fmin(fronts[kind].points[i].bytes / fronts[kind].all.bytes, 1.0);
    all.frac[all.num++] = 1.0;
    sort_distinct(&all);
    return all;
}

/* Whether the plan fits with this budget, by a prediction. Needs a workload of its own,
 * since a workload caches priced programs of one budget. */
static ms_status try_budget(const ms_workload *workload, const ms_plan *plan, double frac,
                            bool *fits)
{
    ms_ctx scratch = {.arena = ms_arena_open()};
    ms_workload_inputs inputs = {workload->model, workload->cluster, workload->profile,
                                 workload->stack, workload->group_profiles};
    ms_plan tried = *plan;
    ms_workload *own;
    ms_prediction prediction;
    tried.recompute_budget_frac = frac;
    ms_status status = ms_workload_make(&scratch, &inputs, &tried, &own);
    if (status == MS_OK) {
        own->peak_spread = workload->peak_spread;
        own->memory = workload->memory;
        status = ms_predict(&scratch, own, &tried, &prediction);
        *fits = status == MS_OK && prediction.fits;
        ms_workload_close(own);
    }
    ms_arena_close(scratch.arena);
    return status;
}

/* The value with fewest decimal digits in [low, high), where all budgets act alike. */
static double shortest_between(double low, double high)
{
    double scale = 1.0;
    for (int digits = 1; digits <= 15; digits++) {
        scale *= 10.0;
        double value = ceil(low * scale) / scale;
        if (value < high && value <= 1.0)
            return value;
    }
    return low;
}

static ms_status largest_that_fits(const ms_workload *workload, const ms_plan *plan,
                                   const budgets *all, double *out)
{
    /* all->frac[low] fits, or low is 0; all->frac[high] does not fit */
    int low = 0, high = all->num - 1;
    bool all_fits = false;
    *out = 1.0;
    MS_TRY(try_budget(workload, plan, 1.0, &all_fits));
    if (all_fits)
        return MS_OK;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        bool fits = false;
        MS_TRY(try_budget(workload, plan, all->frac[middle], &fits));
        *(fits ? &low : &high) = middle;
    }
    *out = shortest_between(all->frac[low], all->frac[low + 1]);
    return MS_OK;
}

ms_status ms_recompute_fit(ms_workload *workload, ms_plan *plan)
{
    if (plan->recompute != MS_RECOMPUTE_AUTO || plan->recompute_budget_frac >= 0.0)
        return MS_OK;
    ms_ctx scratch = {.arena = ms_arena_open()};
    ms_bill_key key = ms_plan_bill_key(workload, plan);
    budgets all = budgets_of(scratch.arena, workload, &key);
    double frac = 0.0;
    ms_status status = largest_that_fits(workload, plan, &all, &frac);
    ms_arena_close(scratch.arena);
    if (status != MS_OK)
        return status;
    plan->recompute_budget_frac = workload->recompute_budget_frac = frac;
    return MS_OK;
}
