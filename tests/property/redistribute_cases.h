/* Random redistributions (mesh, tensor, source and target placement, prices), and the
 * price of a single change between two placements, judged by what ranks hold. */
#ifndef MS_TESTS_PROPERTY_REDISTRIBUTE_CASES_H
#define MS_TESTS_PROPERTY_REDISTRIBUTE_CASES_H

#include "base/rng.h"
#include "costmodel/reshard/redistribute.h"
#include "tests/support/pytorch_prices.h"
#include "tests/support/run_redistribution.h"
#include "tests/test.h"

/* ---- random cases ---- */

typedef struct example {
    ms_arena *arena;
    ms_mesh mesh;
    ms_global_tensor tensor;
    ms_collective_prices prices;
    ms_redistribute_task task;
} example;

static const char *const axis_names[] = {"dp", "cp", "ep", "tp"};

static void random_mesh(ms_rng *rng, long max_ranks, ms_mesh *out)
{
    long sizes[4], ranks = 1;
    int num_axes = 1 + (int)ms_rng_below(rng, 3);
    for (int i = 0; i < num_axes; i++) {
        sizes[i] = 1 + (long)ms_rng_below(rng, 4);
        while (ranks * sizes[i] > max_ranks)
            sizes[i]--;
        ranks *= sizes[i];
    }
    *out = ms_mesh_make(axis_names, sizes, num_axes);
}

/* A random tensor of one to three dims; `granule` divides every size. */
static ms_global_tensor random_tensor(ms_rng *rng, long granule)
{
    ms_global_tensor out = {"x", 1 + (int)ms_rng_below(rng, 3), "", {0}, 4};
    static const double bytes[] = {4, 4096, 4194304};
    for (int i = 0; i < out.num_dims; i++) {
        out.dims[i] = (char)('a' + i);
        out.size[i] = granule * (1 + (long)ms_rng_below(rng, granule > 1 ? 2 : 13));
    }
    out.element_bytes = bytes[ms_rng_below(rng, 3)];
    return out;
}

/* A random placement of the tensor on mesh axis `axis`: `partial`, replicated, or a shard
 * of a random dim. Some shards get a split factor that stands for an order of axes, some
 * get one that stands for none. */
static ms_placement random_placement(ms_rng *rng, const ms_mesh *mesh,
                                     const ms_global_tensor *tensor, int axis,
                                     int partial)
{
    uint64_t draw = ms_rng_below(rng, 8);
    if (draw == 0)
        return (ms_placement){.kind = (unsigned char)partial};
    if (draw <= 2)
        return ms_replicate;
    ms_placement at =
        ms_shard(tensor->dims[ms_rng_below(rng, (uint64_t)tensor->num_dims)]);
    int last = mesh->num_axes - 1;
    if (draw == 3)
        at.split_factor = (int)mesh->axes[last].size;
    if (draw == 4 && axis < last)
        at.split_factor = 2 + (int)ms_rng_below(rng, 3);
    return at;
}

static ms_spec random_spec(ms_rng *rng, const ms_mesh *mesh,
                           const ms_global_tensor *tensor, int partial)
{
    ms_spec spec = {0};
    for (int i = 0; i < mesh->num_axes; i++)
        spec.at[i] = random_placement(rng, mesh, tensor, i, partial);
    return spec;
}

/* Random prices of collectives: PyTorch's formulas with hosts of 1 to 8 GPUs, or those
 * of a cluster. */
static void random_prices(ms_rng *rng, ms_ctx *cx, const ms_cluster *cluster,
                          const ms_profile *profile, example *e)
{
    long per_host = 1L << ms_rng_below(rng, 4);
    if (ms_rng_below(rng, 2) == 0)
        e->prices = ms_collective_prices_pytorch(cx->arena, &e->mesh,
                                                 &ms_pytorch_defaults, per_host);
    else
        ASSERT_OK(ms_collective_prices_make(cx, &e->mesh, cluster, profile, &e->prices),
                  cx);
}

static const char *describe(const example *e)
{
    const char *text = "";
    for (int i = 0; i < e->mesh.num_axes; i++)
        text = ms_arena_printf(e->arena, "%s%s=%ld ", text, e->mesh.axes[i].name,
                               e->mesh.axes[i].size);
    for (int i = 0; i < e->tensor.num_dims; i++)
        text = ms_arena_printf(e->arena, "%s%c=%ld ", text, e->tensor.dims[i],
                               e->tensor.size[i]);
    return ms_arena_printf(e->arena, "%s: %s to %s", text,
                           ms_spec_text(e->arena, &e->mesh, &e->task.from),
                           ms_spec_text(e->arena, &e->mesh, &e->task.to));
}

/* ---- one change, judged by what ranks hold ---- */

/* Whether two ranks differ in no other coordinates than those of `axes`. */
static bool in_group(const example *e, ms_axis_set axes, long rank, long other)
{
    for (int i = 0; i < e->mesh.num_axes; i++) {
        const ms_mesh_axis *axis = &e->mesh.axes[i];
        bool same = rank / axis->stride % axis->size == other / axis->stride % axis->size;
        if (!same && !(axes >> i & 1))
            return false;
    }
    return true;
}

/* Whether every rank can get each element of its part under placement `to` from a rank in
 * its group over `axes` that holds the element under placement `from`. */
static bool group_holds(const example *e, const ms_spec *from, const ms_spec *to,
                        ms_axis_set axes)
{
    ms_sharded_tensor before =
        ms_sharded_tensor_make(e->arena, &e->mesh, &e->tensor, from);
    ms_sharded_tensor after = ms_sharded_tensor_make(e->arena, &e->mesh, &e->tensor, to);
    long **where = ms_sharded_tensor_where(e->arena, &before);
    for (long rank = 0; rank < e->mesh.num_ranks; rank++)
        for (long i = 0; i < after.parts[rank].num_elements; i++) {
            long element = ms_shard_part_offset(&after, rank, i), other = 0;
            while (other < e->mesh.num_ranks &&
                   (where[other][element] < 0 || !in_group(e, axes, rank, other)))
                other++;
            if (other == e->mesh.num_ranks)
                return false;
        }
    return true;
}

/* The one kind of change (such as all-gather) that takes all of `axes` from one
 * placement to the other; MS_NUM_CHANGES: there is none. */
static ms_change change_of(const example *e, const ms_spec *from, const ms_spec *to,
                           ms_axis_set axes)
{
    static const ms_change of[3][3] = {
        /* rows: from replicate, from shard, from partial; columns: to each of these
         * three */
        {MS_NUM_CHANGES, MS_CHANGE_SLICE, MS_CHANGE_DIVIDE},
        {MS_CHANGE_ALL_GATHER, MS_CHANGE_ALL_TO_ALL, MS_NUM_CHANGES},
        {MS_CHANGE_ALL_REDUCE, MS_CHANGE_REDUCE_SCATTER, MS_NUM_CHANGES}};
    ms_change common = MS_NUM_CHANGES;
    char from_dim = 0, to_dim = 0;
    unsigned char partial = MS_REPLICATE;
    for (int i = 0; i < e->mesh.num_axes; i++) {
        ms_placement a = from->at[i], b = to->at[i];
        if (!(axes >> i & 1))
            continue;
        int row = a.kind > MS_SHARD ? 2 : a.kind, column = b.kind > MS_SHARD ? 2 : b.kind;
        bool exchange = row == 1 && column == 1;
        bool differs = common != MS_NUM_CHANGES &&
                       (common != of[row][column] || (row == 2 && a.kind != partial));
        if (of[row][column] == MS_NUM_CHANGES || differs ||
            (exchange && ((from_dim != 0 && a.dim != from_dim) ||
                          (to_dim != 0 && b.dim != to_dim) || a.dim == b.dim)))
            return MS_NUM_CHANGES;
        common = of[row][column];
        partial = a.kind;
        from_dim = a.dim;
        to_dim = b.dim;
    }
    return common;
}

/* Whether changing placement `from` to `to` only sends whole parts between ranks: all of
 * `axes` shard in both, and each rank's new part is the whole old part of one rank. */
static bool is_permutation(const example *e, const ms_spec *from, const ms_spec *to,
                           ms_axis_set axes)
{
    for (int i = 0; i < e->mesh.num_axes; i++)
        if ((axes >> i & 1) &&
            (from->at[i].kind != MS_SHARD || to->at[i].kind != MS_SHARD))
            return false;
    ms_sharded_tensor before =
        ms_sharded_tensor_make(e->arena, &e->mesh, &e->tensor, from);
    ms_sharded_tensor after = ms_sharded_tensor_make(e->arena, &e->mesh, &e->tensor, to);
    for (long rank = 0; rank < e->mesh.num_ranks; rank++) {
        bool found = false;
        for (long other = 0; other < e->mesh.num_ranks && !found; other++) {
            const ms_shard_part *mine = &after.parts[rank];
            const ms_shard_part *theirs = &before.parts[other];
            found = in_group(e, axes, rank, other) &&
                    mine->num_elements == theirs->num_elements;
            for (long i = 0; i < mine->num_elements && found; i++)
                found = ms_shard_part_offset(&after, rank, i) ==
                        ms_shard_part_offset(&before, other, i);
        }
        if (!found)
            return false;
    }
    return true;
}

static bool is_ordered(const example *e, const ms_spec *spec)
{
    ms_axis_order order;
    for (int dim = 0; dim < e->tensor.num_dims; dim++)
        if (!ms_spec_order(&e->mesh, spec, e->tensor.dims[dim], &order))
            return false;
    return true;
}

/* Seconds of the cheapest single collective over `axes` that changes placement `from` to
 * `to`; with `sends`, ranks may also send whole parts to each other instead. INFINITY:
 * neither gives `to`. */
static double single_change_s(const example *e, const ms_spec *from, const ms_spec *to,
                              ms_axis_set axes, bool sends)
{
    ms_change change = change_of(e, from, to, axes);
    double best_s = INFINITY;
    if (change != MS_NUM_CHANGES) {
        bool local = ms_change_is_local(change);
        bool reduces =
            change == MS_CHANGE_ALL_REDUCE || change == MS_CHANGE_REDUCE_SCATTER;
        if (!group_holds(e, from, to, local || reduces ? 0 : axes))
            change = MS_NUM_CHANGES;
        else if (local)
            return 0.0;
    }
    if (change != MS_NUM_CHANGES)
        best_s = e->prices.seconds(
            e->prices.data, ms_change_collective(change), axes,
            ms_redistribute_step_bytes(&e->task, change, axes, from, to));
    if (sends && is_ordered(e, from) && is_ordered(e, to) &&
        is_permutation(e, from, to, axes))
        best_s = fmin(best_s,
                      e->prices.seconds(e->prices.data, MS_SEND, axes,
                                        ms_spec_local_bytes(&e->mesh, from, &e->tensor)));
    return best_s;
}

#endif
