#include "sim/step/kind_prices.h"

/* The kinds of the ranks whose pipeline coordinate is `stage`: of each block of `stride`
 * ranks in a period of pp blocks. */
static ms_kind_set kinds_at(const ms_plan *plan, const ms_cluster *cluster, long stride,
                            long stage)
{
    bool reversed = plan->device_order == MS_DEVICES_REVERSED;
    ms_kind_set all = (1U << cluster->num_kinds) - 1U, kinds = 0;
    long period = stride * plan->size[MS_PP];
    for (long first = stage * stride; first < plan->gpus && kinds != all; first += period)
        kinds |= ms_kinds_of_ranks(cluster, reversed, first, stride);
    return kinds;
}

const unsigned char *ms_plan_kinds(ms_arena *arena, const ms_plan *plan,
                                   const ms_workload *workload)
{
    if (workload->cluster->num_kinds == 0)
        return NULL;
    int pp = (int)plan->size[MS_PP];
    ms_mesh mesh = ms_plan_mesh(plan);
    int axis = ms_mesh_find(&mesh, ms_plan_axis_names[MS_PP]);
    long stride = axis >= 0 ? mesh.axes[axis].stride : plan->gpus;
    unsigned char *kinds = MS_NEW_ARRAY(arena, pp, unsigned char);
    for (int i = 0; i < pp; i++)
        kinds[i] = (unsigned char)kinds_at(plan, workload->cluster, stride, i);
    if (ms_schedule_placement(plan->schedule) == MS_PLACE_BOTH_WAYS)
        for (int i = 0; i < pp / 2; i++)
            kinds[i] = kinds[pp - 1 - i] = (unsigned char)(kinds[i] | kinds[pp - 1 - i]);
    return kinds;
}

ms_kind_set ms_all_kinds(const unsigned char *kinds, int num_ranks)
{
    ms_kind_set all = 0;
    for (int i = 0; kinds != NULL && i < num_ranks; i++)
        all |= kinds[i];
    return all;
}
