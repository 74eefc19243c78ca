#include "tests/support/sharded_tensor.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void ms_sharded_tensor_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

long ms_global_tensor_elements(const ms_global_tensor *tensor)
{
    long elements = 1;
    for (int i = 0; i < tensor->num_dims; i++)
        elements *= tensor->size[i];
    return elements;
}

static long *expand(ms_arena *arena, ms_ranges ranges)
{
    long *index = MS_NEW_ARRAY(arena, ms_ranges_length(ranges), long), n = 0;
    for (int i = 0; i < ranges.num_ranges; i++)
        for (long j = 0; j < ranges.ranges[i].length; j++)
            index[n++] = ranges.ranges[i].start + j;
    return index;
}

ms_sharded_tensor ms_sharded_tensor_make(ms_arena *arena, const ms_mesh *mesh,
                                         const ms_global_tensor *tensor,
                                         const ms_spec *spec)
{
    ms_sharded_tensor made = {mesh, tensor, *spec,
                              MS_NEW_ARRAY(arena, mesh->num_ranks, ms_shard_part)};
    for (long rank = 0; rank < mesh->num_ranks; rank++) {
        ms_shard_part *part = &made.parts[rank];
        part->num_elements = 1;
        for (int dim = 0; dim < tensor->num_dims; dim++) {
            ms_ranges held = ms_spec_ranges(arena, mesh, spec, tensor, dim, rank);
            part->size[dim] = ms_ranges_length(held);
            part->index[dim] = expand(arena, held);
            part->num_elements *= part->size[dim];
        }
        if (part->num_elements > 0)
            part->data = MS_NEW_ARRAY(arena, part->num_elements, double);
    }
    return made;
}

long ms_shard_part_offset(const ms_sharded_tensor *sharded, long rank, long element)
{
    const ms_shard_part *part = &sharded->parts[rank];
    long global = 0, stride = 1;
    for (int dim = sharded->tensor->num_dims - 1; dim >= 0; dim--) {
        global += part->index[dim][element % part->size[dim]] * stride;
        element /= part->size[dim];
        stride *= sharded->tensor->size[dim];
    }
    return global;
}

long **ms_sharded_tensor_where(ms_arena *arena, const ms_sharded_tensor *held)
{
    long **where = MS_NEW_ARRAY(arena, held->mesh->num_ranks, long *);
    long num_elements = ms_global_tensor_elements(held->tensor);
    for (long rank = 0; rank < held->mesh->num_ranks; rank++) {
        where[rank] = MS_NEW_ARRAY(arena, num_elements, long);
        for (long i = 0; i < num_elements; i++)
            where[rank][i] = -1;
        for (long i = 0; i < held->parts[rank].num_elements; i++)
            where[rank][ms_shard_part_offset(held, rank, i)] = i;
    }
    return where;
}

/* ---- partial values ---- */

/* Whether a rank has coordinate 0 on every axis with partial values. */
static bool is_first(const ms_sharded_tensor *sharded, long rank)
{
    for (int i = 0; i < sharded->mesh->num_axes; i++) {
        const ms_mesh_axis *axis = &sharded->mesh->axes[i];
        if (ms_placement_is_partial(sharded->spec.at[i]) &&
            rank / axis->stride % axis->size != 0)
            return false;
    }
    return true;
}

/* The rank with the same coordinates on all other axes, and 0 on axes with partial
 * values. */
static long first_of(const ms_sharded_tensor *sharded, long rank)
{
    for (int i = 0; i < sharded->mesh->num_axes; i++) {
        const ms_mesh_axis *axis = &sharded->mesh->axes[i];
        if (ms_placement_is_partial(sharded->spec.at[i]))
            rank -= rank / axis->stride % axis->size * axis->stride;
    }
    return rank;
}

static int reduction_of(const ms_spec *spec, const ms_mesh *mesh)
{
    for (int i = 0; i < mesh->num_axes; i++)
        if (ms_placement_is_partial(spec->at[i]))
            return spec->at[i].kind == MS_PARTIAL_AVG ? MS_PARTIAL_SUM : spec->at[i].kind;
    return MS_REPLICATE;
}

/* Product of the sizes of all axes with a partial average. */
static double averaged_ranks(const ms_sharded_tensor *sharded)
{
    double ranks = 1.0;
    for (int i = 0; i < sharded->mesh->num_axes; i++)
        if (sharded->spec.at[i].kind == MS_PARTIAL_AVG)
            ranks *= (double)sharded->mesh->axes[i].size;
    return ranks;
}

double ms_reduce_pair(int kind, double a, double b)
{
    if (kind == MS_PARTIAL_MAX)
        return fmax(a, b);
    return kind == MS_PARTIAL_MIN ? fmin(a, b) : a + b;
}

/* ---- cutting ---- */

/* Random small whole number that depends on the element and on coordinates of axes with
 * partial values: replicas get equal ones. */
static double summand(const ms_sharded_tensor *made, ms_rng seed, long rank, long i)
{
    uint64_t key = 0;
    for (int axis = 0; axis < made->mesh->num_axes; axis++) {
        const ms_mesh_axis *a = &made->mesh->axes[axis];
        if (ms_placement_is_partial(made->spec.at[axis]))
            key = key * (uint64_t)a->size + (uint64_t)(rank / a->stride % a->size);
    }
    uint64_t elements = (uint64_t)ms_global_tensor_elements(made->tensor);
    ms_rng draw = ms_rng_split(seed, key * elements +
                                         (uint64_t)ms_shard_part_offset(made, rank, i));
    return (double)ms_rng_below(&draw, 16);
}

/* Replaces equal values by partial ones that reduce to them; for sums the first rank
 * loses what the others get. */
static void spread(ms_sharded_tensor *made, ms_rng *rng)
{
    int reduction = reduction_of(&made->spec, made->mesh);
    double count = averaged_ranks(made);
    ms_rng seed = rng == NULL ? (ms_rng){0} : ms_rng_seed(ms_rng_next(rng));
    for (long rank = 0; rank < made->mesh->num_ranks; rank++) {
        long first = first_of(made, rank);
        for (long i = 0; i < made->parts[rank].num_elements; i++) {
            double *mine = &made->parts[rank].data[i];
            double *firsts = &made->parts[first].data[i];
            double other = rng == NULL ? 0.0 : summand(made, seed, rank, i);
            if (first == rank) {
                *mine *= reduction == MS_PARTIAL_SUM ? count : 1.0;
            } else if (reduction == MS_PARTIAL_SUM) {
                *mine = other;
                *firsts -= other;
            } else {
                *mine += reduction == MS_PARTIAL_MAX ? -other : other;
            }
        }
    }
}

ms_sharded_tensor ms_sharded_tensor_cut(ms_arena *arena, const ms_mesh *mesh,
                                        const ms_global_tensor *tensor,
                                        const ms_spec *spec, const double *whole,
                                        ms_rng *rng)
{
    ms_sharded_tensor made = ms_sharded_tensor_make(arena, mesh, tensor, spec);
    for (long rank = 0; rank < mesh->num_ranks; rank++)
        for (long i = 0; i < made.parts[rank].num_elements; i++)
            made.parts[rank].data[i] = whole[ms_shard_part_offset(&made, rank, i)];
    if (reduction_of(spec, mesh) != MS_REPLICATE)
        spread(&made, rng);
    return made;
}

/* ---- gathering ---- */

/* Reduces the parts of all ranks that differ only on axes with partial values; `first` is
 * their first rank. */
static double *reduced_part(ms_arena *arena, const ms_sharded_tensor *sharded, long first)
{
    int reduction = reduction_of(&sharded->spec, sharded->mesh);
    long n = sharded->parts[first].num_elements;
    double *sum = MS_NEW_ARRAY(arena, n, double);
    for (long i = 0; i < n; i++)
        sum[i] = sharded->parts[first].data[i];
    for (long rank = 0; rank < sharded->mesh->num_ranks; rank++)
        if (rank != first && first_of(sharded, rank) == first)
            for (long i = 0; i < n; i++)
                sum[i] = ms_reduce_pair(reduction, sum[i], sharded->parts[rank].data[i]);
    double count = averaged_ranks(sharded);
    for (long i = 0; i < n; i++)
        sum[i] /= count;
    return sum;
}

double *ms_sharded_tensor_gather(ms_arena *arena, const ms_sharded_tensor *sharded)
{
    long n = ms_global_tensor_elements(sharded->tensor);
    double *whole = MS_NEW_ARRAY(arena, n, double);
    bool *known = MS_NEW_ARRAY(arena, n, bool);
    for (long rank = 0; rank < sharded->mesh->num_ranks; rank++) {
        if (!is_first(sharded, rank))
            continue;
        double *part = reduced_part(arena, sharded, rank);
        for (long i = 0; i < sharded->parts[rank].num_elements; i++) {
            long at = ms_shard_part_offset(sharded, rank, i);
            if (known[at] && !(fabs(part[i] - whole[at]) <= 1e-9 * fabs(whole[at])))
                ms_sharded_tensor_fail(
                    "rank %ld holds %.17g of element %ld, another %.17g", rank, part[i],
                    at, whole[at]);

            whole[at] = part[i];
            known[at] = true;
        }
    }
    for (long i = 0; i < n; i++)
        if (!known[i])
            ms_sharded_tensor_fail("element %ld is held by nobody", i);
    return whole;
}
