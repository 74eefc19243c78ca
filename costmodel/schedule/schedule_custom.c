/* A schedule from a file: the action lists of its table. */
#include "costmodel/schedule/schedule_priv.h"

static const char *objection(const ms_schedule_shape *shape)
{
    const ms_schedule_table *table = shape->table;
    if (table == NULL)
        return "a schedule from a file needs its lists of actions";
    if (table->num_ranks != shape->num_ranks)
        return "the schedule's file has another number of pipeline ranks";
    if (table->num_microbatches != shape->num_microbatches)
        return "the schedule's file has another number of micro-batches";
    if (table->num_stages != shape->num_ranks * shape->virtual_stages)
        return "the schedule's file has another number of virtual stages per rank";
    return NULL;
}

static void fill_rank(const ms_schedule_shape *shape, int rank, ms_action_list *list)
{
    const ms_schedule_table *table = shape->table;
    for (int i = table->first_action[rank]; i < table->first_action[rank + 1]; i++)
        ms_action_push(list, table->actions[i]);
}

/* The table places the stages; ms_schedule_check decides whether its lists are valid. */
const ms_schedule_family ms_family_custom = {
    MS_NO_ALIASES,
    .traits = {.placement = MS_PLACE_LOOP,
               .least_virtual = 1,
               .splits_backward = true,
               .overlaps = true},
    .objection = objection,
    .fill_rank = fill_rank,
};
