/* Long schedules, whose lists repeat one period in their middle: how long they are, and
 * schedules that leave most of the middle out. */
#include "costmodel/schedule/schedule_priv.h"

const char ms_too_many_actions[] =
    "a schedule has at most 4194304 actions; take fewer micro-batches or stages";

/* Number of actions of all ranks for one micro-batch, at most. */
static long actions_per_microbatch(const ms_schedule_shape *shape)
{
    long kinds = ms_schedule_traits_of(shape->kind).splits_backward ? 3 : 2;
    return kinds * ms_schedule_model_stages(shape);
}

long ms_schedule_num_actions(const ms_schedule_shape *shape)
{
    return shape->num_microbatches * actions_per_microbatch(shape);
}

bool ms_schedule_is_listed(const ms_schedule_shape *shape)
{
    return ms_schedule_num_actions(shape) <= MS_MOST_ACTIONS;
}

int ms_schedule_period(const ms_schedule_shape *shape, int *least)
{
    ms_schedule_traits traits = ms_schedule_traits_of(shape->kind);
    int p = shape->num_ranks, m = shape->num_microbatches;
    *least = traits.repeats_after * p;
    bool repeats = traits.repeats_after > 0 && *least < m &&
                   (!traits.groups || (m % p == 0 && ms_schedule_group(shape) == p));
    if (!repeats)
        return 0;
    if (traits.groups)
        return p;
    return traits.placement == MS_PLACE_BOTH_WAYS ? 2 : 1;
}

/* Micro-batches that a schedule of about `num_actions` actions lists: two beginnings and
 * ends at least, and a number that differs from the whole by periods. */
static long listed_microbatches(const ms_schedule_shape *shape, long num_actions)
{
    int least, period = ms_schedule_period(shape, &least);
    long m = shape->num_microbatches;
    if (period == 0)
        return m;
    long listed = num_actions / actions_per_microbatch(shape);
    if (listed < 2L * least)
        listed = 2L * least;
    if (2L * (listed + 2L * period) >= m)
        return m;
    return listed + period + (m - listed) % period;
}

bool ms_schedule_can_condense(const ms_schedule_shape *shape)
{
    if (ms_schedule_is_listed(shape))
        return true;
    long listed = listed_microbatches(shape, 0);
    return listed <= MS_MOST_ACTIONS / actions_per_microbatch(shape);
}

ms_schedule *ms_schedule_condense(ms_arena *arena, const ms_schedule_shape *shape,
                                  long num_actions)
{
    int least, period = ms_schedule_period(shape, &least);
    ms_schedule_shape listed = *shape;
    listed.num_microbatches = (int)listed_microbatches(shape, num_actions);
    ms_schedule *schedule = ms_schedule_make(arena, &listed);
    if (period == 0 || listed.num_microbatches == shape->num_microbatches)
        return schedule;
    schedule->num_left_out = (shape->num_microbatches - listed.num_microbatches) / period;
    listed.num_microbatches -= period;
    schedule->shorter = ms_schedule_make(arena, &listed);
    return schedule;
}
