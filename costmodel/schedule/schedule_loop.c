/* Rules of families that place stages in a loop: which micro-batch groups deadlock. */
#include "costmodel/schedule/schedule_priv.h"

static const char small_group[] =
    "a micro-batch group this small deadlocks; one of at least as many micro-batches as "
    "there are pipeline ranks, which divides their number, does not";
static const char ragged_group[] =
    "the last micro-batch group is too small and deadlocks; a group of at least as many "
    "micro-batches as there are pipeline ranks that divides their number, or a larger "
    "one, does not";

/* Least sum of two consecutive micro-batch groups that cannot deadlock on p ranks: d (p -
 * 1) if each rank has d fewer warm-up forwards than the previous, plus one if forward and
 * backward of a pair are one action. */
static long least_sum(const ms_schedule_shape *shape)
{
    ms_schedule_traits traits = ms_schedule_traits_of(shape->kind);
    return (long)traits.warmup_slope * (shape->num_ranks - 1) + traits.overlaps;
}

static const char *deadlock(const ms_schedule_shape *shape)
{
    int v = shape->virtual_stages, m = shape->num_microbatches;
    if (v == 1)
        return NULL;
    int group = ms_schedule_group(shape);
    int num_full = m / group, ragged = m % group;
    int harmless = v == 2 ? 1 : 0; /* v = 2: only three groups of one deadlock, not two */
    int num_together = group > harmless ? 2 : 3;
    if (num_full >= num_together && (long)num_together * group < least_sum(shape))
        return small_group;
    if (ragged > harmless && (long)group + ragged < least_sum(shape))
        return group < shape->num_ranks ? small_group : ragged_group;
    return NULL;
}

const char *ms_loop_objection(const ms_schedule_shape *shape)
{
    if (shape->num_ranks == 1 && shape->virtual_stages > 1)
        return "virtual stages need at least 2 pipeline ranks; one rank has 1";
    if (shape->group < 0)
        return "the micro-batch group is negative; 0 chooses it, 1 or more is a size";
    if (shape->group > shape->num_microbatches)
        return "the micro-batch group is larger than the number of micro-batches, which "
               "is the largest group";
    return deadlock(shape);
}

bool ms_schedule_group_deadlocks(const ms_schedule_shape *shape)
{
    const char *why = NULL;
    return !ms_schedule_allows(shape, &why) &&
           (why == small_group || why == ragged_group);
}
