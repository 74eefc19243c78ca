#include "sim/simulate/actors.h"

#include <stdlib.h>

/* ---- ranks of groups ---- */

static bool is_first_of_group(const ms_group *group, long rank)
{
    for (int i = 0; i < group->num_modes; i++)
        if (rank / group->modes[i].stride % group->modes[i].size != 0)
            return false;
    return true;
}

ms_fold_axis ms_group_axis(ms_arena *arena, const ms_plan_groups *groups, int which)
{
    const ms_group *group = &groups->group[which];
    long num_ranks = groups->mesh.num_ranks, at = 0;
    long *ranks = MS_NEW_ARRAY(arena, num_ranks, long);
    for (long rank = 0; rank < num_ranks; rank++) {
        if (!is_first_of_group(group, rank))
            continue;
        ms_mesh_group_ranks(&groups->mesh, group, rank, ranks + at);
        at += group->size;
    }
    return (ms_fold_axis){num_ranks / group->size, group->size, ranks,
                          which == MS_TRAFFIC_PP};
}

/* ---- colours of single ranks ---- */

static int factor_index(const double *factors, double factor)
{
    int i = 0;
    while (factors[i] != 0.0 && factors[i] != factor)
        i++;
    return i;
}

/* Numbers the ranks so that equal numbers mean equal pipeline rank, slow factor and
 * colour. Few ranks are slow, so a linear search over the distinct factors is enough. */
static int *own_colours(ms_arena *arena, const ms_actors *actors,
                        const long *pipeline_rank, const double *slow_factor,
                        const int *colour)
{
    long num_ranks = actors->fold.num_ranks;
    double *factors = MS_NEW_ARRAY(arena, num_ranks + 1, double);
    int *own = MS_NEW_ARRAY(arena, num_ranks, int), num_factors = 0;
    for (long rank = 0; rank < num_ranks; rank++) {
        own[rank] = factor_index(factors, slow_factor[rank]);
        factors[own[rank]] = slow_factor[rank];
        num_factors = own[rank] >= num_factors ? own[rank] + 1 : num_factors;
    }
    for (long rank = 0; rank < num_ranks; rank++) {
        own[rank] += colour != NULL ? colour[rank] * num_factors : 0;
        own[rank] = own[rank] * actors->num_pipeline_ranks + (int)pipeline_rank[rank];
    }
    return own;
}

/* ---- actors ---- */

static void list_by_pipeline_rank(ms_arena *arena, const long *pipeline_rank,
                                  ms_actors *out)
{
    int *first = MS_NEW_ARRAY(arena, out->num_pipeline_ranks + 1, int);
    int *at = MS_NEW_ARRAY(arena, out->num, int);
    int *of_actor = MS_NEW_ARRAY(arena, out->num, int), num = 0;
    for (int r = 0; r < out->num_pipeline_ranks; r++) {
        first[r] = num;
        for (int a = 0; a < out->num; a++)
            if (pipeline_rank[out->fold.member[a]] == r)
                at[num++] = a;
    }
    first[out->num_pipeline_ranks] = num;
    for (int a = 0; a < out->num; a++)
        of_actor[a] = (int)pipeline_rank[out->fold.member[a]];
    out->first_at = first;
    out->at = at;
    out->pipeline_rank = of_actor;
}

static void find_pipelines(ms_arena *arena, const ms_plan_groups *groups, ms_actors *out)
{
    int *along = MS_NEW_ARRAY(arena, (long)out->num * out->num_pipeline_ranks, int);
    long *ranks = MS_NEW_ARRAY(arena, out->num_pipeline_ranks, long);
    for (int a = 0; a < out->num; a++) {
        ms_mesh_group_ranks(&groups->mesh, &groups->group[MS_TRAFFIC_PP],
                            out->fold.member[a], ranks);
        for (int r = 0; r < out->num_pipeline_ranks; r++)
            along[(long)a * out->num_pipeline_ranks + r] = out->fold.class_of[ranks[r]];
    }
    out->along = along;
}

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Finds the meetings (actors that communicate) of one kind of group. All groups of an
 * actor contain the same classes of ranks, so the first one determines its meeting. */
static ms_meetings find_meetings(ms_arena *arena, const ms_fold *fold,
                                 const ms_fold_axis *axis)
{
    int *of_actor = MS_NEW_ARRAY(arena, fold->num_classes, int);
    int *actors = MS_NEW_ARRAY(arena, fold->num_classes, int);
    int *first = MS_NEW_ARRAY(arena, fold->num_classes + 1, int), num = 0, at = 0;
    for (int a = 0; a < fold->num_classes; a++)
        of_actor[a] = -1;
    for (long g = 0; g < axis->num_groups; g++) {
        const long *ranks = axis->ranks + g * axis->size;
        if (of_actor[fold->class_of[ranks[0]]] >= 0)
            continue;
        first[num] = at;
        for (long i = 0; i < axis->size; i++) {
            int actor = fold->class_of[ranks[i]];
            if (of_actor[actor] >= 0)
                continue;
            of_actor[actor] = num;
            actors[at++] = actor;
        }
        qsort(actors + first[num], (size_t)(at - first[num]), sizeof *actors,
              compare_ints);
        num++;
    }
    first[num] = at;
    return (ms_meetings){axis->size, num, of_actor, first, actors};
}

ms_actors ms_actors_make(ms_arena *arena, const ms_plan *plan, const double *slow_factor,
                         const int *colour, bool unfolded)
{
    ms_arena *scratch = ms_arena_open();
    ms_plan_groups groups = ms_plan_groups_of(plan);
    long num_ranks = groups.mesh.num_ranks;
    ms_actors out = {.fold.num_ranks = num_ranks,
                     .num_pipeline_ranks = (int)groups.group[MS_TRAFFIC_PP].size};
    ms_fold_axis axes[MS_NUM_TRAFFIC_GROUPS];
    for (int i = 0; i < MS_NUM_TRAFFIC_GROUPS; i++)
        axes[i] = ms_group_axis(scratch, &groups, i);
    long *pipeline_rank = MS_NEW_ARRAY(scratch, num_ranks, long);
    for (long i = 0; i < num_ranks; i++)
        pipeline_rank[axes[MS_TRAFFIC_PP].ranks[i]] = i % out.num_pipeline_ranks;
    const int *own = own_colours(scratch, &out, pipeline_rank, slow_factor, colour);
    out.fold = unfolded ? ms_fold_none(arena, num_ranks)
                        : ms_fold_make(arena, num_ranks, own, axes, MS_TRAFFIC_WORLD);
    out.num = out.fold.num_classes;
    list_by_pipeline_rank(arena, pipeline_rank, &out);
    find_pipelines(arena, &groups, &out);
    double *factors = MS_NEW_ARRAY(arena, out.num, double);
    for (int a = 0; a < out.num; a++)
        factors[a] = slow_factor[out.fold.member[a]];
    out.slow_factor = factors;
    for (int i = 0; i < MS_NUM_TRAFFIC_GROUPS; i++)
        out.meetings[i] = find_meetings(arena, &out.fold, &axes[i]);
    ms_arena_close(scratch);
    return out;
}

const int *ms_meeting_actors(const ms_meetings *meetings, int meeting, int *num)
{
    *num = meetings->first[meeting + 1] - meetings->first[meeting];
    return meetings->actors + meetings->first[meeting];
}
