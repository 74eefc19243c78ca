/* Records what the search decides about one given plan (explorer->watch). A decision
 * after some of the choices holds for all plans that have these choices. */
#include "sim/search/explore_priv.h"

#include <math.h>
#include <string.h>

/* The choices made when the search decided something, outer choices included. */
typedef enum depth {
    BATCH,    /* mesh, micro-batch, options that change layers */
    SCHEDULE, /* all of BATCH; options that change prices, schedule, virtual stages */
    SHARDING, /* all of SCHEDULE; order of axes, sharding */
    COMPLETE
} depth;

static bool is_followed(const ms_explore_level *l, depth made)
{
    if (l->explorer->watch == NULL)
        return false;
    ms_plan like = l->explorer->watch->plan;
    if (made < COMPLETE) {
        like.recompute = l->plan.recompute;
        like.recompute_budget_frac = l->plan.recompute_budget_frac;
        like.recompute_layers = l->plan.recompute_layers;
    }
    if (made < SHARDING) {
        if (!ms_explore_is_mixed(l->explorer)) /* mixed: explored one by one */
            memcpy(like.order, l->plan.order, sizeof like.order);
        like.zero = l->plan.zero;
        like.reshard_after_forward = l->plan.reshard_after_forward;
    }
    if (made < SCHEDULE) {
        ms_space_copy(&l->explorer->space->prices, &l->plan, &like);
        like.schedule = l->plan.schedule;
        like.virtual_stages = l->plan.virtual_stages;
        like.microbatch_group = l->plan.microbatch_group;
    }
    return ms_plan_equal(&like, &l->plan);
}

void ms_watch_start(ms_watch *watch, const ms_plan *plan)
{
    *watch = (ms_watch){.plan = *plan,
                        .beaten_by_s = NAN,
                        .schedule_bound_s = NAN,
                        .sharding_bound_s = NAN,
                        .bound_s = NAN,
                        .peak_bytes = NAN,
                        .step_s = NAN};
}

void ms_watch_async(const ms_explore_level *l)
{
    if (is_followed(l, BATCH) && !l->explorer->watch->plan.async_tp)
        l->explorer->watch->fate = MS_FATE_ASYNC;
}

void ms_watch_unneeded(const ms_explore_level *l)
{
    ms_watch *watch = l->explorer->watch;
    if (is_followed(l, SHARDING) && watch->plan.recompute != MS_RECOMPUTE_NONE)
        watch->fate = MS_FATE_UNNEEDED;
}

void ms_watch_peak(const ms_explore_level *l, double peak_bytes, bool fits)
{
    ms_watch *watch = l->explorer->watch;
    if (!is_followed(l, COMPLETE))
        return;
    watch->peak_bytes = peak_bytes;
    if (!fits)
        watch->fate = MS_FATE_MEMORY;
}

void ms_watch_bound(const ms_explore_level *l, ms_fate fate, double bound_s)
{
    const ms_explorer *x = l->explorer;
    ms_watch *w = x->watch;
    bool of_schedule = fate == MS_FATE_SCHEDULE_BOUND;
    bool of_sharding = fate == MS_FATE_SHARDING_BOUND;
    if (!is_followed(l, of_schedule ? SCHEDULE : of_sharding ? SHARDING : COMPLETE))
        return;
    *(of_schedule   ? &w->schedule_bound_s
      : of_sharding ? &w->sharding_bound_s
                    : &w->bound_s) = bound_s;
    if (!ms_explore_is_beaten(x, bound_s))
        return;
    w->fate = fate;
    w->by_mesh = bound_s <= x->threshold_s;
    w->beaten_by_s = w->by_mesh ? x->found[x->num_found - 1].step_s : x->threshold_s;
}

void ms_watch_step(const ms_explore_level *l, double step_s)
{
    if (!is_followed(l, COMPLETE))
        return;
    l->explorer->watch->step_s = step_s;
    l->explorer->watch->fate = MS_FATE_REPLAYED;
}
