/* What families whose stages lie in a loop have in common: which groups of micro-batches deadlock, and the
 * orders of 1F1B with a split backward. */
#include "costmodel/schedule_loop_priv.h"

const char *ms_no_objection(const ms_schedule_shape *shape)
{
    (void)shape;
    return NULL;
}

bool ms_loop_deadlocks(const ms_schedule_shape *shape, int least_sum)
{
    int v = shape->virtual_stages, m = shape->num_microbatches;
    if (v == 1)
        return false;
    int group = ms_schedule_group(shape);
    int num_full = m / group, ragged = m % group;
    int harmless = v == 2 ? 1 : 0; /* one micro-batch gives way to its neighbours */
    int num_together = group > harmless ? 2 : 3;
    return (num_full >= num_together && 2L * group < least_sum) ||
           (ragged > harmless && (long)group + ragged < least_sum);
}

const char *ms_loop_objection(const ms_schedule_shape *shape, int least_sum)
{
    if (shape->group < 0)
        return "the micro-batch group is negative; 0 chooses it, 1 or more is a size";
    if (shape->group > shape->num_microbatches)
        return "the micro-batch group is larger than the number of micro-batches, which "
               "is the largest group";
    if (!ms_loop_deadlocks(shape, least_sum))
        return NULL;
    if (ms_schedule_group(shape) < shape->num_ranks)
        return "a micro-batch group this small deadlocks; one of at least as many "
               "micro-batches as there are pipeline ranks, which divides their number, "
               "does not";
    return "the last micro-batch group is too small and deadlocks; a group that divides "
           "the number of micro-batches, or a larger one, does not";
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
