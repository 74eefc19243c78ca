/* The part of a tensor that each rank holds, and the order in which axes split a dim. */
#include "costmodel/reshard/spec.h"

#include <assert.h>
#include <string.h>

bool ms_placement_splits(ms_placement at, char letter)
{
    return at.kind == MS_SHARD && at.dim == letter;
}

int ms_global_tensor_dim(const ms_global_tensor *tensor, char letter)
{
    const char *where = letter == '\0' ? NULL : strchr(tensor->dims, letter);
    return where == NULL ? -1 : (int)(where - tensor->dims);
}

bool ms_spec_equal(const ms_mesh *mesh, const ms_spec *a, const ms_spec *b)
{
    for (int i = 0; i < mesh->num_axes; i++)
        if (!ms_placement_equal(a->at[i], b->at[i]))
            return false;
    return true;
}

/* ---- checking ---- */

#define MAX_SPLIT_FACTOR 65536 /* larger factors would list every element */

static bool linear(ms_placement at)
{
    return at.kind == MS_PARTIAL_SUM || at.kind == MS_PARTIAL_AVG;
}

static const char *wrong_shard(ms_arena *arena, const ms_global_tensor *tensor,
                               const char *axis, ms_placement at)
{
    if (ms_global_tensor_dim(tensor, at.dim) < 0)
        return ms_arena_printf(arena, "%s shards dim %c, which %s[%s] does not have",
                               axis, at.dim, tensor->name, tensor->dims);
    if (at.split_factor < 0 || at.split_factor > MAX_SPLIT_FACTOR)
        return ms_arena_printf(arena, "the split factor %d of %s is not within 1 to %d",
                               at.split_factor, axis, MAX_SPLIT_FACTOR);
    return NULL;
}

bool ms_spec_check(ms_arena *arena, const ms_mesh *mesh, const ms_global_tensor *tensor,
                   const ms_spec *spec, const char **why)
{
    int partial = -1;
    *why = NULL;
    for (int i = 0; i < mesh->num_axes && *why == NULL; i++) {
        ms_placement at = spec->at[i];
        if (at.kind == MS_SHARD)
            *why = wrong_shard(arena, tensor, mesh->axes[i].name, at);
        if (!ms_placement_is_partial(at))
            continue;
        if (partial >= 0 && at.kind != spec->at[partial].kind &&
            !(linear(at) && linear(spec->at[partial]))) {
            *why = ms_arena_printf(arena, "a %s over %s and a %s over %s do not commute",
                                   ms_reduction_names[spec->at[partial].kind],
                                   mesh->axes[partial].name, ms_reduction_names[at.kind],
                                   mesh->axes[i].name);
        }
        partial = i;
    }
    return *why == NULL;
}

/* ---- splitting ---- */

static long ceil_div(long a, long b)
{
    return (a + b - 1) / b;
}

static long chunk_length(long length, long parts, long index)
{
    long chunk = ceil_div(length, parts);
    long rest = length - index * chunk;
    return rest < 0 ? 0 : rest < chunk ? rest : chunk;
}

static long split_length(long length, long split_factor, long parts, long index)
{
    if (length == 0)
        return 0;
    long piece = ceil_div(length, split_factor);
    return length / piece * chunk_length(piece, parts, index) +
           chunk_length(length % piece, parts, index);
}

long ms_ranges_length(ms_ranges ranges)
{
    long length = 0;
    for (int i = 0; i < ranges.num_ranges; i++)
        length += ranges.ranges[i].length;
    return length;
}

static void append(ms_ranges *out, long start, long length)
{
    ms_range *last = out->num_ranges > 0 ? &out->ranges[out->num_ranges - 1] : NULL;
    if (last != NULL && last->start + last->length == start)
        last->length += length;
    else
        out->ranges[out->num_ranges++] = (ms_range){start, length};
}

/* A position in a list of index ranges; it only ascends. */
typedef struct walk {
    ms_ranges list;
    int at;      /* index of the current range in the list */
    long before; /* number of elements before the current range */
} walk;

/* Appends the elements at positions [first, end) of a list of ranges to `out`. */
static void copy_positions(walk *from, long first, long end, ms_ranges *out)
{
    while (first < end) {
        const ms_range *range = &from->list.ranges[from->at];
        long skip = first - from->before;
        if (skip >= range->length) {
            from->before += range->length;
            from->at++;
            continue;
        }
        long left = range->length - skip;
        long take = end - first < left ? end - first : left;
        append(out, range->start + skip, take);
        first += take;
    }
}

/* Part `index` of a list of n elements, split as by torch.chunk into k parts: chunk c =
 * ceil(n/k); part i holds max(0, min(n, (i + 1) c) - i c) elements. With a split factor f
 * > 1 the list is cut into f pieces, each of these into k parts, and the parts i of all
 * pieces are concatenated (_StridedShard). */
static ms_ranges split_ranges(ms_arena *arena, ms_ranges whole, long split_factor,
                              long parts, long index)
{
    long length = ms_ranges_length(whole);
    if (length == 0)
        return whole;
    long piece = ceil_div(length, split_factor), num_pieces = ceil_div(length, piece);
    ms_ranges out = {.ranges =
                         MS_NEW_ARRAY(arena, whole.num_ranges + num_pieces, ms_range)};
    walk from = {.list = whole};
    for (long start = 0; start < length; start += piece) {
        long size = length - start < piece ? length - start : piece;
        long first = start + index * ceil_div(size, parts);
        copy_positions(&from, first, first + chunk_length(size, parts, index), &out);
    }
    return out;
}

/* ---- local parts ---- */

ms_ranges ms_spec_ranges(ms_arena *arena, const ms_mesh *mesh, const ms_spec *spec,
                         const ms_global_tensor *tensor, int dim, long rank)
{
    ms_ranges held = {.ranges = MS_NEW(arena, ms_range)};
    append(&held, 0, tensor->size[dim]);
    for (int i = 0; i < mesh->num_axes; i++) {
        const ms_mesh_axis *axis = &mesh->axes[i];
        if (ms_placement_splits(spec->at[i], tensor->dims[dim]))
            held = split_ranges(arena, held, ms_placement_pieces(spec->at[i]), axis->size,
                                rank / axis->stride % axis->size);
    }
    return held;
}

static long shard_ranks(const ms_mesh *mesh, const ms_spec *spec, char letter)
{
    long ranks = 1;
    for (int i = 0; i < mesh->num_axes; i++)
        if (ms_placement_splits(spec->at[i], letter))
            ranks *= mesh->axes[i].size;
    return ranks;
}

/* Longest part of `length` elements split by axes `axis` and later. A split's first part
 * is the longest, but it may be shorter for a longer list: over 4 ranks it is 3 of 5
 * elements in 4 pieces (2, 2, 1, 0), and 4 of 4 elements in 4 pieces (1, 1, 1, 1). */
static long longest_part(const ms_mesh *mesh, const ms_spec *spec, char letter, int axis,
                         long length)
{
    while (axis < mesh->num_axes && !ms_placement_splits(spec->at[axis], letter))
        axis++;
    if (axis == mesh->num_axes)
        return length;
    long longest = 0, previous = -1, pieces = ms_placement_pieces(spec->at[axis]);
    for (long i = 0; i < mesh->axes[axis].size; i++) {
        long part = split_length(length, pieces, mesh->axes[axis].size, i);
        if (part == previous)
            continue;
        long below = longest_part(mesh, spec, letter, axis + 1, part);
        longest = below > longest ? below : longest;
        previous = part;
    }
    return longest;
}

void ms_spec_largest_size(const ms_mesh *mesh, const ms_spec *spec,
                          const ms_global_tensor *tensor, long *size)
{
    for (int dim = 0; dim < tensor->num_dims; dim++) {
        if (ms_spec_is_even(mesh, spec, tensor, dim))
            size[dim] = tensor->size[dim] / shard_ranks(mesh, spec, tensor->dims[dim]);
        else
            size[dim] = longest_part(mesh, spec, tensor->dims[dim], 0, tensor->size[dim]);
    }
}

double ms_spec_local_bytes(const ms_mesh *mesh, const ms_spec *spec,
                           const ms_global_tensor *tensor)
{
    long size[MS_MAX_TENSOR_DIMS];
    ms_spec_largest_size(mesh, spec, tensor, size);
    double bytes = tensor->element_bytes;
    for (int i = 0; i < tensor->num_dims; i++)
        bytes *= (double)size[i];
    return bytes;
}

bool ms_spec_is_even(const ms_mesh *mesh, const ms_spec *spec,
                     const ms_global_tensor *tensor, int dim)
{
    long left = tensor->size[dim];
    for (int i = 0; i < mesh->num_axes; i++) {
        if (!ms_placement_splits(spec->at[i], tensor->dims[dim]))
            continue;
        if (left % (ms_placement_pieces(spec->at[i]) * mesh->axes[i].size) != 0)
            return false;
        left /= mesh->axes[i].size;
    }
    return true;
}

/* ---- order ---- */

/* Place in `order` before which the sizes of axes multiply to `product`; -1: none. */
static int place_after(const ms_mesh *mesh, const ms_axis_order *order, long product)
{
    long before = 1;
    for (int i = 0; i <= order->num_axes; i++) {
        if (before == product)
            return i;
        if (i < order->num_axes)
            before *= mesh->axes[order->axes[i]].size;
    }
    return -1;
}

static void insert(ms_axis_order *order, int place, int axis)
{
    memmove(&order->axes[place + 1], &order->axes[place],
            (size_t)(order->num_axes - place) * sizeof order->axes[0]);
    order->axes[place] = axis;
    order->num_axes++;
}

/* Inserts the axes, the mesh's last first: factors are products of later axes' sizes. */
bool ms_spec_order(const ms_mesh *mesh, const ms_spec *spec, char letter,
                   ms_axis_order *out)
{
    *out = (ms_axis_order){0};
    for (int i = mesh->num_axes - 1; i >= 0; i--) {
        if (!ms_placement_splits(spec->at[i], letter))
            continue;
        int place = place_after(mesh, out, ms_placement_pieces(spec->at[i]));
        if (place < 0 && mesh->axes[i].size > 1)
            return false;
        insert(out, place < 0 ? 0 : place, i); /* axes of size 1: any place */
    }
    return true;
}

void ms_spec_set_order(const ms_mesh *mesh, ms_spec *spec, char letter,
                       const ms_axis_order *order)
{
    for (int i = 0; i < mesh->num_axes; i++)
        if (ms_placement_splits(spec->at[i], letter))
            spec->at[i] = ms_replicate;
    for (int i = 0; i < order->num_axes; i++) {
        int axis = order->axes[i];
        long factor = 1;
        for (int j = 0; j < i; j++)
            if (order->axes[j] > axis)
                factor *= mesh->axes[order->axes[j]].size;
        spec->at[axis] = ms_shard(letter);
        spec->at[axis].split_factor = factor > 1 ? (int)factor : 0;
    }
}
