#include "tests/support/run_redistribution.h"

typedef struct run {
    const ms_redistribute_step *step;
    const ms_sharded_tensor *before;
    /* [rank][element of the whole tensor]: index in the rank's part, -1: not held */
    long **where;
    long *sent; /* elements sent by each rank to the rank that is computed */
} run;

static long coordinate(const ms_mesh_axis *axis, long rank)
{
    return rank / axis->stride % axis->size;
}

/* Whether two ranks agree on all axes that the step does not communicate over. */
static bool in_group(const run *r, long rank, long other)
{
    const ms_mesh *mesh = r->before->mesh;
    for (int i = 0; i < mesh->num_axes; i++)
        if ((r->step->axes >> i & 1) == 0 &&
            coordinate(&mesh->axes[i], rank) != coordinate(&mesh->axes[i], other))
            return false;
    return true;
}

/* Placement in `spec` on the first axis of the step. */
static ms_placement changed(const run *r, const ms_spec *spec)
{
    int axis = 0;
    while ((r->step->axes >> axis & 1) == 0)
        axis++;
    return spec->at[axis];
}

/* An element reduced over the group of a rank. */
static double reduced(const run *r, long rank, long element)
{
    int kind = changed(r, &r->step->from).kind;
    double total = 0.0;
    bool first = true;
    for (long other = 0; other < r->before->mesh->num_ranks; other++) {
        if (!in_group(r, rank, other))
            continue;
        long at = r->where[other][element];
        if (at < 0)
            ms_sharded_tensor_fail("%s: rank %ld has no summand of element %ld",
                                   ms_change_names[r->step->change], other, element);
        double value = r->before->parts[other].data[at];
        total = first ? value : ms_reduce_pair(kind, total, value);
        first = false;
    }
    long ranks = ms_axis_set_ranks(r->before->mesh, r->step->axes);
    return kind == MS_PARTIAL_AVG ? total / (double)ranks : total;
}

/* An element from a group member that has it; from the rank itself if the step is
 * local. */
static double copied(const run *r, long rank, long element)
{
    bool local = ms_change_is_local(r->step->change);
    for (long other = 0; other < r->before->mesh->num_ranks; other++) {
        long at = r->where[other][element];
        if (at < 0 || (local ? other != rank : !in_group(r, rank, other)))
            continue;
        r->sent[other]++;
        return r->before->parts[other].data[at];
    }
    ms_sharded_tensor_fail("%s: nobody in the group of rank %ld holds element %ld",
                           ms_change_names[r->step->change], rank, element);
}

static bool first_in_group(const run *r, long rank)
{
    const ms_mesh *mesh = r->before->mesh;
    for (int i = 0; i < mesh->num_axes; i++)
        if ((r->step->axes >> i & 1) != 0 && coordinate(&mesh->axes[i], rank) != 0)
            return false;
    return true;
}

static double value_after(const run *r, long rank, long element)
{
    ms_change change = r->step->change;
    if (change == MS_CHANGE_ALL_REDUCE || change == MS_CHANGE_REDUCE_SCATTER)
        return reduced(r, rank, element);
    double value = copied(r, rank, element);
    bool is_summand =
        change == MS_CHANGE_DIVIDE && changed(r, &r->step->to).kind == MS_PARTIAL_SUM;
    return is_summand && !first_in_group(r, rank) ? 0.0 : value;
}

/* Checks that no rank sends more to another than the price assumes: the rank's share of
 * an all-gather or all-to-all, or all its elements for a permutation. */
static void check_sent(const run *r)
{
    const ms_sharded_tensor *before = r->before;
    ms_change change = r->step->change;
    double share = change == MS_CHANGE_PERMUTE
                       ? 1.0
                       : 1.0 / (double)ms_axis_set_ranks(before->mesh, r->step->axes);
    double most = share * r->step->size_bytes / before->tensor->element_bytes;
    for (long rank = 0; rank < before->mesh->num_ranks; rank++)
        if (!ms_change_is_local(change) && (double)r->sent[rank] > most + 0.5)
            ms_sharded_tensor_fail("%s: priced for %g elements from a rank, sends %ld",
                                   ms_change_names[change], most, r->sent[rank]);
}

static ms_sharded_tensor run_step(ms_arena *arena, const ms_sharded_tensor *before,
                                  const ms_redistribute_step *step)
{
    run r = {step, before, ms_sharded_tensor_where(arena, before), NULL};
    ms_sharded_tensor after =
        ms_sharded_tensor_make(arena, before->mesh, before->tensor, &step->to);
    r.sent = MS_NEW_ARRAY(arena, before->mesh->num_ranks, long);
    for (long rank = 0; rank < before->mesh->num_ranks; rank++) {
        ms_shard_part *part = &after.parts[rank];
        for (long i = 0; i < before->mesh->num_ranks; i++)
            r.sent[i] = 0;
        for (long i = 0; i < part->num_elements; i++)
            part->data[i] = value_after(&r, rank, ms_shard_part_offset(&after, rank, i));
        check_sent(&r);
    }
    return after;
}

ms_sharded_tensor ms_run_redistribution(ms_arena *arena, ms_sharded_tensor held,
                                        const ms_redistribution *plan)
{
    for (int i = 0; i < plan->num_steps; i++)
        held = run_step(arena, &held, &plan->steps[i]);
    return held;
}
