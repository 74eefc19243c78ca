#include "sim/simulate/rank_groups.h"

static void find_used(const ms_simulation *s, bool used[MS_NUM_TRAFFIC_GROUPS])
{
    const ms_graph *graph = s->graph;
    for (int p = 0; p < graph->num_parts; p++) {
        int num = graph->parts[p + 1].first - graph->parts[p].first;
        for (int i = 0; i < num; i++) {
            const ms_task_work *work = &s->work[graph->parts[p].tags[i].work];
            if (work->kind != MS_WORK_KERNEL)
                used[work->group] = true;
        }
    }
}

ms_rank_groups ms_rank_groups_make(ms_arena *arena, const ms_simulation *s)
{
    ms_rank_groups out = {0};
    ms_plan_groups groups = ms_plan_groups_of(s->planned->plan);
    bool used[MS_NUM_TRAFFIC_GROUPS] = {[MS_TRAFFIC_PP] = true};
    find_used(s, used);
    long next_id = 1;
    for (int which = 0; which < MS_NUM_TRAFFIC_GROUPS; which++) {
        if (!used[which])
            continue;
        ms_fold_axis *axis = &out.axis[which];
        *axis = ms_group_axis(arena, &groups, which);
        out.first_id[which] = next_id;
        next_id += axis->num_groups;
        out.index[which] = MS_NEW_ARRAY(arena, s->fold.num_ranks, int);
        for (long i = 0; i < axis->num_groups * axis->size; i++)
            out.index[which][axis->ranks[i]] = (int)(i / axis->size);
    }
    return out;
}

long ms_rank_group_id(const ms_rank_groups *groups, ms_traffic_group which, long rank)
{
    return groups->first_id[which] + groups->index[which][rank];
}

const long *ms_rank_group_members(const ms_rank_groups *groups, ms_traffic_group which,
                                  long rank)
{
    const ms_fold_axis *axis = &groups->axis[which];
    return axis->ranks + groups->index[which][rank] * axis->size;
}

long ms_rank_group_neighbour(const ms_rank_groups *groups, ms_traffic_group which,
                             long rank, int steps)
{
    const long *members = ms_rank_group_members(groups, which, rank);
    long size = groups->axis[which].size, at = 0;
    while (members[at] != rank)
        at++;
    return members[(at + steps + size) % size];
}
