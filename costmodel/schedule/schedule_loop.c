/* What families whose stages lie in a loop have in common: which groups of micro-batches
 * deadlock, and the orders of 1F1B with a split backward. */
#include "costmodel/schedule/schedule_priv.h"

const char *ms_no_objection(const ms_schedule_shape *shape)
{
    (void)shape;
    return NULL;
}

static const char small_group[] =
    "a micro-batch group this small deadlocks; one of at least as many micro-batches as "
    "there are pipeline ranks, which divides their number, does not";
static const char ragged_group[] =
    "the last micro-batch group is too small and deadlocks; a group of at least as many "
    "micro-batches as there are pipeline ranks that divides their number, or a larger "
    "one, does not";

/* How many micro-batches two groups that follow each other must have together: d (p - 1)
 * when rank r runs w(0) - d r forwards before its first backward, and one more when the
 * forward and the backward of a slot are one action. */
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
    int harmless = v == 2 ? 1 : 0; /* one micro-batch gives way to its neighbours */
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

void ms_fill_split_1f1b(const ms_schedule_shape *shape, int depth, ms_action_list *lists)
{
    int p = shape->num_ranks, m = shape->num_microbatches;
    for (int rank = 0; rank < p; rank++) {
        ms_action_list *list = &lists[rank];
        int num_forwards = 0, num_weights = 0;
        while (num_forwards < m && num_forwards < depth * (p - 1 - rank))
            ms_action_add(list, MS_FORWARD, rank, num_forwards++);
        for (int b = 0; b < m; b++) {
            if (num_forwards < m)
                ms_action_add(list, MS_FORWARD, rank, num_forwards++);
            ms_action_add(list, MS_BACKWARD_INPUT, rank, b);
            if (b >= depth * rank)
                ms_action_add(list, MS_BACKWARD_WEIGHT, rank, num_weights++);
        }
        while (num_weights < m)
            ms_action_add(list, MS_BACKWARD_WEIGHT, rank, num_weights++);
    }
}
