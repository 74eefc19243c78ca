/* Enumerates the changes of a spec that one collective can make. A dim that its axes
 * divide evenly, in an order of axes, is a mixed-radix number: axes leave at its minor
 * end and are appended there. Splits can also be undone in the order of the mesh, last
 * first, which always restores the parts before, and made there, with the target's
 * factor. With uneven parts an axis may leave or join by order only if every rank finds
 * its new indices within its group (find_all). */
#include "costmodel/reshard/redistribute_priv.h"

#include <assert.h>

/* Arguments of the enumeration of one spec's changes. */
typedef struct walk {
    const ms_move_space *space;
    const ms_spec *from;
    ms_move_visitor *visit;
    void *data;
    ms_change change;
} walk;

static ms_axis_set axes_of(const ms_mesh *mesh, const ms_spec *spec, char letter)
{
    ms_axis_set axes = 0;
    for (int i = 0; i < mesh->num_axes; i++)
        if (ms_placement_splits(spec->at[i], letter))
            axes |= 1U << i;
    return axes;
}

/* Whether axes split a dim evenly and in some order of axes, which *order receives. */
static bool is_regular(const ms_move_space *space, const ms_spec *spec, int dim,
                       ms_axis_order *order)
{
    const ms_redistribute_task *task = space->task;
    return ms_spec_order(task->mesh, spec, task->tensor->dims[dim], order) &&
           ms_spec_is_even(task->mesh, spec, task->tensor, dim);
}

/* ---- local indices ---- */

/* Subtracts from the effort left to a search; false if used up, which ends the search. */
static bool spend(const ms_move_space *space, double effort)
{
    *space->effort_left -= effort;
    return *space->effort_left >= 0.0;
}

/* Approximate number of index ranges of a dim that one rank holds. */
static double num_runs(const ms_mesh *mesh, const ms_spec *spec, char letter)
{
    double runs = 1.0;
    for (int i = 0; i < mesh->num_axes; i++)
        if (ms_placement_splits(spec->at[i], letter))
            runs += ms_placement_pieces(spec->at[i]);
    return runs;
}

static long common_length(ms_ranges a, ms_ranges b)
{
    long length = 0;
    for (int i = 0, j = 0; i < a.num_ranges && j < b.num_ranges;) {
        long a_end = a.ranges[i].start + a.ranges[i].length;
        long b_end = b.ranges[j].start + b.ranges[j].length;
        long start =
            a.ranges[i].start > b.ranges[j].start ? a.ranges[i].start : b.ranges[j].start;
        long end = a_end < b_end ? a_end : b_end;
        length += end > start ? end - start : 0;
        if (a_end < b_end)
            i++;
        else
            j++;
    }
    return length;
}

/* The rank at a row-major index over a set of axes (coordinate 0 on all others). */
static long rank_at(const ms_mesh *mesh, ms_axis_set axes, long index)
{
    long rank = 0;
    for (int i = mesh->num_axes - 1; i >= 0; i--) {
        if (axes >> i & 1) {
            rank += index % mesh->axes[i].size * mesh->axes[i].stride;
            index /= mesh->axes[i].size;
        }
    }
    return rank;
}

static bool finds_all(const ms_move_space *space, const ms_spec *from, const ms_spec *to,
                      int dim, ms_axis_set group, long rank)
{
    const ms_mesh *mesh = space->task->mesh;
    const ms_global_tensor *tensor = space->task->tensor;
    ms_arena_mark mark = ms_arena_save(space->scratch);
    ms_ranges wanted = ms_spec_ranges(space->scratch, mesh, to, tensor, dim, rank);
    long missing = ms_ranges_length(wanted);
    long base = rank;
    for (int i = 0; i < mesh->num_axes; i++)
        if (group >> i & 1)
            base -=
                rank / mesh->axes[i].stride % mesh->axes[i].size * mesh->axes[i].stride;
    for (long i = 0; i < ms_axis_set_ranks(mesh, group) && missing > 0; i++) {
        ms_ranges held = ms_spec_ranges(space->scratch, mesh, from, tensor, dim,
                                        base + rank_at(mesh, group, i));
        missing -= common_length(wanted, held);
    }
    ms_arena_rewind(space->scratch, mark);
    return missing == 0;
}

/* Whether the group over axes `leaving` of every rank holds, under `from`, all indices of
 * dim `dim` that the rank has under `to`. */
static bool find_all(const ms_move_space *space, const ms_spec *from, const ms_spec *to,
                     int dim, ms_axis_set leaving)
{
    const ms_mesh *mesh = space->task->mesh;
    char letter = space->task->tensor->dims[dim];
    ms_axis_set involved = axes_of(mesh, from, letter) | axes_of(mesh, to, letter);
    long ranks = ms_axis_set_ranks(mesh, involved);
    double runs = num_runs(mesh, from, letter) + num_runs(mesh, to, letter);
    if (space->is_plain ||
        !spend(space, (double)ranks * (double)ms_axis_set_ranks(mesh, leaving) * runs))
        return false;
    for (long i = 0; i < ranks; i++)
        if (!finds_all(space, from, to, dim, leaving, rank_at(mesh, involved, i)))
            return false;
    return true;
}

/* ---- leaving a dim ---- */

typedef struct departure {
    ms_axis_set axes;
    ms_spec rest; /* the spec with `axes` replicated instead of splitting */
} departure;

#define MAX_DEPARTURES (3 * MS_MAX_AXES + 1) /* most ways in which axes leave a dim */

static bool is_movable(const ms_move_space *space, int axis)
{
    return space->movable >> axis & 1;
}

/* Lists ways in which the last axes in the order of a dim's splits leave the dim. */
static int leave_by_order(const ms_move_space *space, const ms_spec *from, int dim,
                          ms_axis_order order, departure *out)
{
    char letter = space->task->tensor->dims[dim];
    bool even = ms_spec_is_even(space->task->mesh, from, space->task->tensor, dim);
    departure gone = {0, *from};
    int n = 0;
    while (order.num_axes > 0 && is_movable(space, order.axes[order.num_axes - 1])) {
        gone.axes |= 1U << order.axes[--order.num_axes];
        ms_spec_set_order(space->task->mesh, &gone.rest, letter, &order);
        if (even || find_all(space, from, &gone.rest, dim, gone.axes))
            out[n++] = gone;
    }
    return n;
}

/* Lists ways to undo a dim's splits in the order of the mesh, last first. If a dim is not
 * regular, one axis may also leave alone if no index is lost: by chance with uneven
 * parts, or dp where 8 rows are split over dp as 4 pieces, then over ep. */
static int leave_by_mesh(const ms_move_space *space, const ms_spec *from, int dim,
                         departure *out)
{
    char letter = space->task->tensor->dims[dim];
    assert(space->task->mesh->num_axes >= 0 &&
           space->task->mesh->num_axes <= MS_MAX_AXES);
    ms_axis_order order;
    bool regular = is_regular(space, from, dim, &order), is_suffix = true;
    departure gone = {0, *from};
    int n = 0;
    for (int i = space->task->mesh->num_axes - 1; i >= 0; i--) {
        if (!ms_placement_splits(from->at[i], letter))
            continue;
        is_suffix = is_suffix && is_movable(space, i);
        if (is_suffix) {
            gone.axes |= 1U << i;
            gone.rest.at[i] = ms_replicate;
            out[n++] = gone;
        }
        out[n] = (departure){1U << i, *from};
        out[n].rest.at[i] = ms_replicate;
        n += !regular && is_movable(space, i) && gone.axes != 1U << i &&
             find_all(space, from, &out[n].rest, dim, 1U << i);
    }
    return n;
}

/* Whether axes split a dim in another order than that of the mesh. */
static bool is_strided(const ms_move_space *space, const ms_spec *spec, int dim)
{
    for (int i = 0; i < space->task->mesh->num_axes; i++)
        if (ms_placement_splits(spec->at[i], space->task->tensor->dims[dim]) &&
            ms_placement_pieces(spec->at[i]) > 1)
            return true;
    return false;
}

static int departures(const ms_move_space *space, const ms_spec *from, int dim,
                      departure *out)
{
    ms_axis_order order;
    int n = 0;
    bool strided = is_strided(space, from, dim);
    char letter = space->task->tensor->dims[dim];
    bool regular = is_regular(space, from, dim, &order) &&
                   ms_spec_order(space->task->mesh, &space->task->to, letter, &order);
    if (strided && ms_spec_order(space->task->mesh, from, letter, &order))
        n = leave_by_order(space, from, dim, order, out);
    if (strided && regular && !space->leaves_orders)
        return n;
    return n + leave_by_mesh(space, from, dim, out + n);
}

/* ---- joining a dim ---- */

static bool is_last(const ms_mesh *mesh, const ms_spec *spec, int axis, char letter)
{
    return axes_of(mesh, spec, letter) >> axis == 0;
}

/* Splits a dim by one more axis, innermost; false if a rank lacks its new part. */
static bool append_axis(const ms_move_space *space, const ms_spec *spec, int axis,
                        int dim, ms_spec *out)
{
    const ms_mesh *mesh = space->task->mesh;
    char letter = space->task->tensor->dims[dim];
    ms_axis_order order;
    *out = *spec;
    if (!ms_spec_order(mesh, spec, letter, &order))
        return false;
    order.axes[order.num_axes++] = axis;
    ms_spec_set_order(mesh, out, letter, &order);
    return is_regular(space, out, dim, &order) || is_last(mesh, spec, axis, letter) ||
           find_all(space, spec, out, dim, 0);
}

/* Places an axis as `at` if the other splits allow it without traffic; else false. */
static bool place_axis(const ms_move_space *space, const ms_spec *spec, int axis, int dim,
                       ms_placement at, ms_spec *out)
{
    ms_axis_order order;
    *out = *spec;
    out->at[axis] = at;
    if (is_last(space->task->mesh, spec, axis, at.dim))
        return true;
    bool regular =
        is_regular(space, spec, dim, &order) && is_regular(space, out, dim, &order);
    return !regular && find_all(space, spec, out, dim, 0);
}

/* Keeps those of n specs whose placement on an axis is the target's; returns how many. */
static int keep_targets(const ms_move_space *space, int axis, int n, ms_spec *specs)
{
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (ms_placement_equal(specs[i].at[axis], space->task->to.at[axis]))
            specs[kept++] = specs[i];
    return kept;
}

/* Lists the specs, at most 3, that result from sharding a dim over one more axis. */
static int arrivals(const ms_move_space *space, const ms_spec *spec, int axis, int dim,
                    ms_spec *out)
{
    const ms_mesh *mesh = space->task->mesh;
    char letter = space->task->tensor->dims[dim];
    ms_placement wanted = space->task->to.at[axis];
    int n = append_axis(space, spec, axis, dim, out);
    bool ordered = n > 0;
    if (ms_placement_splits(wanted, letter) &&
        place_axis(space, spec, axis, dim, wanted, &out[n]))
        n += n == 0 || !ms_spec_equal(mesh, &out[0], &out[n]);
    if (!ordered && is_last(mesh, spec, axis, letter) &&
        place_axis(space, spec, axis, dim, ms_shard(letter), &out[n]))
        n += n == 0 || !ms_spec_equal(mesh, &out[0], &out[n]);
    return space->is_plain ? keep_targets(space, axis, n, out) : n;
}

/* Axes that are to shard dims [dim, end_dim): one dim is filled after the other, since
 * only within a dim the order of joining matters. */
typedef struct arrival {
    ms_axis_set left, axes; /* axes still to place; all axes of the change */
    int dim, end_dim;
} arrival;

/* Visits the specs in which every axis in `left` shards a dim, in every order of axes. */
static void join(const walk *w, const ms_spec *spec, arrival to)
{
    if (to.left == 0) {
        w->visit(w->data, w->change, to.axes, spec);
        return;
    }
    for (; to.dim < to.end_dim; to.dim++) {
        for (int axis = 0; axis < w->space->task->mesh->num_axes; axis++) {
            ms_spec next[3];
            if (!(to.left >> axis & 1) || !spend(w->space, 1.0))
                continue;
            int n = arrivals(w->space, spec, axis, to.dim, next);
            arrival rest = to;
            rest.left &= ~(1U << axis);
            for (int i = 0; i < n; i++)
                join(w, &next[i], rest);
        }
    }
}

static void join_any(const walk *w, const ms_spec *spec, ms_axis_set axes)
{
    join(w, spec, (arrival){axes, axes, 0, w->space->task->tensor->num_dims});
}

/* ---- the kinds of change ---- */

static ms_axis_set axes_of_kind(const walk *w, int kind)
{
    ms_axis_set axes = 0;
    for (int i = 0; i < w->space->task->mesh->num_axes; i++)
        if (is_movable(w->space, i) && w->from->at[i].kind == kind)
            axes |= 1U << i;
    return axes;
}

static void visit_slices(walk *w)
{
    ms_axis_set replicated = axes_of_kind(w, MS_REPLICATE);
    w->change = MS_CHANGE_SLICE;
    for (int axis = 0; axis < w->space->task->mesh->num_axes; axis++)
        if (replicated >> axis & 1)
            join_any(w, w->from, 1U << axis);
}

/* Visits divisions (R -> P) of replicated axes that are partial in the target. */
static void visit_divisions(walk *w)
{
    const ms_redistribute_task *task = w->space->task;
    ms_axis_set replicated = axes_of_kind(w, MS_REPLICATE);
    for (int axis = 0; axis < task->mesh->num_axes; axis++) {
        ms_spec to = *w->from;
        const char *why;
        if (!(replicated >> axis & 1) || task->from.at[axis].kind != MS_REPLICATE ||
            !ms_placement_is_partial(task->to.at[axis]))
            continue;
        to.at[axis] = task->to.at[axis];
        if (ms_spec_check(w->space->scratch, task->mesh, task->tensor, &to, &why))
            w->visit(w->data, MS_CHANGE_DIVIDE, 1U << axis, &to);
    }
}

/* Visits all-reduces and reduce-scatters over all sets of axes of one reduction kind. */
static void visit_reductions(walk *w)
{
    for (int kind = 0; kind < MS_NUM_PLACEMENTS; kind++) {
        ms_axis_set partial =
            ms_reduction_names[kind] == NULL ? 0 : axes_of_kind(w, kind);
        for (ms_axis_set axes = partial; axes != 0; axes = (axes - 1) & partial) {
            ms_spec rest = *w->from;
            for (int i = 0; i < w->space->task->mesh->num_axes; i++)
                if (axes >> i & 1)
                    rest.at[i] = ms_replicate;
            w->visit(w->data, MS_CHANGE_ALL_REDUCE, axes, &rest);
            w->change = MS_CHANGE_REDUCE_SCATTER;
            join_any(w, &rest, axes);
        }
    }
}

/* Visits all-gathers over `gone->axes` plus axes that can leave dims `dim` and later. */
static void visit_gathers(walk *w, int dim, const departure *gone)
{
    if (dim == w->space->task->tensor->num_dims) {
        if (gone->axes != 0)
            w->visit(w->data, MS_CHANGE_ALL_GATHER, gone->axes, &gone->rest);
        return;
    }
    departure more[MAX_DEPARTURES];
    int n = departures(w->space, &gone->rest, dim, more);
    visit_gathers(w, dim + 1, gone);
    for (int i = 0; i < n; i++) {
        more[i].axes |= gone->axes;
        visit_gathers(w, dim + 1, &more[i]);
    }
}

static void visit_exchanges(walk *w)
{
    int num_dims = w->space->task->tensor->num_dims;
    w->change = MS_CHANGE_ALL_TO_ALL;
    for (int from_dim = 0; from_dim < num_dims; from_dim++) {
        departure gone[MAX_DEPARTURES];
        int n = departures(w->space, w->from, from_dim, gone);
        for (int to_dim = 0; to_dim < num_dims; to_dim++)
            for (int i = 0; i < n && to_dim != from_dim; i++)
                join(w, &gone[i].rest,
                     (arrival){gone[i].axes, gone[i].axes, to_dim, to_dim + 1});
    }
}

/* ---- permutations ---- */

typedef struct permutation {
    const walk *w;
    ms_axis_set all;
    long ranks[MS_MAX_TENSOR_DIMS]; /* [dim] parts still to be cut */
} permutation;

/* Number of parts into which the outer axes of its split order cut the dim of `axis`. */
static long parts_before(const ms_mesh *mesh, const ms_spec *spec, int axis)
{
    ms_axis_order order;
    long parts = 1;
    ms_spec_order(mesh, spec, spec->at[axis].dim, &order);
    for (int i = 0; order.axes[i] != axis; i++)
        parts *= mesh->axes[order.axes[i]].size;
    return parts;
}

/* The axes whose dim or place in its split order differs between `from` and `to`. */
static ms_axis_set exchanged(const ms_mesh *mesh, ms_axis_set axes, const ms_spec *from,
                             const ms_spec *to)
{
    for (int i = 0; i < mesh->num_axes; i++)
        if ((axes >> i & 1) && from->at[i].dim == to->at[i].dim &&
            parts_before(mesh, from, i) == parts_before(mesh, to, i))
            axes &= ~(1U << i);
    return axes;
}

/* Splits dims from `dim` on over axes `left`, in any order, into p->ranks[] parts. */
static void rearrange(permutation *p, int dim, ms_axis_set left, const ms_spec *spec)
{
    const ms_move_space *space = p->w->space;
    const ms_redistribute_task *task = space->task;
    if (left == 0) {
        ms_axis_set axes = exchanged(task->mesh, p->all, p->w->from, spec);
        if (axes != 0)
            p->w->visit(p->w->data, MS_CHANGE_PERMUTE, axes, spec);
        return;
    }
    for (; dim < task->tensor->num_dims; dim++) {
        for (int axis = 0; axis < task->mesh->num_axes; axis++) {
            long size = task->mesh->axes[axis].size;
            ms_spec next;
            if (!(left >> axis & 1) || p->ranks[dim] % size != 0 || !spend(space, 1.0) ||
                !append_axis(space, spec, axis, dim, &next) ||
                (space->is_plain && keep_targets(space, axis, 1, &next) == 0))
                continue;
            p->ranks[dim] /= size;
            rearrange(p, dim, left & ~(1U << axis), &next);
            p->ranks[dim] *= size;
        }
    }
}

/* Permutes `gone->axes` plus axes that can leave evenly split dims from `dim` on. */
static void visit_permutations(permutation *p, int dim, const departure *gone)
{
    const ms_move_space *space = p->w->space;
    if (dim == space->task->tensor->num_dims) {
        p->all = gone->axes;
        if ((gone->axes & (gone->axes - 1)) != 0)
            rearrange(p, 0, gone->axes, &gone->rest);
        return;
    }
    departure more[MAX_DEPARTURES];
    ms_axis_order order;
    bool regular = is_regular(space, &gone->rest, dim, &order);
    int n = regular ? leave_by_order(space, &gone->rest, dim, order, more) : 0;
    p->ranks[dim] = 1;
    visit_permutations(p, dim + 1, gone);
    for (int i = 0; i < n; i++) {
        p->ranks[dim] = ms_axis_set_ranks(space->task->mesh, more[i].axes);
        more[i].axes |= gone->axes;
        visit_permutations(p, dim + 1, &more[i]);
    }
    p->ranks[dim] = 1;
}

void ms_moves_visit(const ms_move_space *space, const ms_spec *from,
                    ms_move_visitor *visit, void *data)
{
    walk w = {.space = space, .from = from, .visit = visit, .data = data};
    permutation p = {.w = &w};
    departure none = {0, *from};
    visit_slices(&w);
    visit_divisions(&w);
    visit_reductions(&w);
    visit_gathers(&w, 0, &none);
    visit_exchanges(&w);
    visit_permutations(&p, 0, &none);
}
