/* Finds the box of a torus that a job gets, and the spans of groups of ranks in it. */
#include "topo/torus.h"

#include "base/number.h"

#include <math.h>
#include <stdlib.h>

static int compare_sides(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

/* Sides of a box of chips, ascending; missing dimensions have side 1. */
typedef struct box {
    long side[MS_MAX_TORUS_DIMS];
} box;

/* Whether all sides are multiples of the level's wrap: then all dimensions are rings. */
static bool has_closed_dims(const ms_level *level, const box *b)
{
    for (int i = MS_MAX_TORUS_DIMS - level->num_dims; i < MS_MAX_TORUS_DIMS; i++)
        if (level->wrap > 1 && b->side[i] % level->wrap != 0)
            return false;
    return true;
}

static bool is_better(const ms_level *level, const box *a, const box *b)
{
    double volume_a = (double)a->side[0] * (double)a->side[1] * (double)a->side[2];
    double volume_b = (double)b->side[0] * (double)b->side[1] * (double)b->side[2];
    if (volume_a != volume_b)
        return volume_a < volume_b;
    if (has_closed_dims(level, a) != has_closed_dims(level, b))
        return has_closed_dims(level, a);
    return a->side[0] + a->side[1] + a->side[2] < b->side[0] + b->side[1] + b->side[2];
}

/* The best box (is_better) that holds num_gpus; loop bounds keep sides x <= y <= z. */
static box best_box(const ms_level *level, const box *whole, long num_gpus)
{
    box best = *whole;
    for (long x = 1; x <= whole->side[0] && x * x * (x - 1) < num_gpus; x++) {
        for (long y = x; y <= whole->side[1] && x * y * (y - 1) < num_gpus; y++) {
            box b = {{x, y, (num_gpus + x * y - 1) / (x * y)}};
            if (b.side[2] <= whole->side[2] && is_better(level, &b, &best))
                best = b;
        }
    }
    return best;
}

ms_torus ms_torus_slice(const ms_level *level, long num_gpus)
{
    int missing = MS_MAX_TORUS_DIMS - level->num_dims;
    box whole = {{1, 1, 1}};
    double size = 1.0;
    for (int i = 0; i < level->num_dims; i++) {
        whole.side[missing + i] = level->dims[i];
        size *= (double)level->dims[i];
    }
    qsort(whole.side, MS_MAX_TORUS_DIMS, sizeof *whole.side, compare_sides);
    box b = (double)num_gpus >= size ? whole : best_box(level, &whole, num_gpus);
    ms_torus torus = {.num_dims = level->num_dims};
    bool closed = has_closed_dims(level, &b);
    for (int i = 0; i < level->num_dims; i++) {
        torus.side[i] = b.side[missing + i];
        torus.closed[i] =
            torus.side[i] > 1 && (closed || torus.side[i] == whole.side[missing + i]);
    }
    ms_torus_arrange(&torus, NULL, 0);
    return torus;
}

long ms_torus_positions(const ms_torus *torus)
{
    long positions = 1;
    for (int i = 0; i < torus->num_dims; i++)
        positions *= torus->side[i];
    return positions;
}

void ms_torus_coordinates(const ms_torus *torus, long position,
                          long coordinate[MS_MAX_TORUS_DIMS])
{
    for (int i = torus->num_dims - 1; i >= 0; i--) {
        coordinate[i] = position % torus->side[i];
        position /= torus->side[i];
    }
}

void ms_torus_locate(const ms_torus *torus, long rank, long coordinate[MS_MAX_TORUS_DIMS])
{
    long unit[MS_MAX_TORUS_DIMS] = {1, 1, 1};
    for (int i = 0; i < torus->num_dims; i++)
        coordinate[i] = 0;
    for (int i = 0; i < torus->num_digits; i++) {
        ms_torus_digit digit = torus->digit[i];
        coordinate[digit.dim] += rank % digit.size * unit[digit.dim];
        unit[digit.dim] *= digit.size;
        rank /= digit.size;
    }
}

long ms_torus_rank_at(const ms_torus *torus, const long coordinate[MS_MAX_TORUS_DIMS])
{
    long left[MS_MAX_TORUS_DIMS] = {0}, rank = 0, unit = 1;
    for (int i = 0; i < torus->num_dims; i++)
        left[i] = coordinate[i];
    for (int i = 0; i < torus->num_digits; i++) {
        ms_torus_digit digit = torus->digit[i];
        rank += left[digit.dim] % digit.size * unit;
        left[digit.dim] /= digit.size;
        unit *= digit.size;
    }
    return rank;
}

/* ---- groups that fill blocks ---- */

bool ms_torus_span_equal(const ms_torus_span *a, const ms_torus_span *b)
{
    return a->links == b->links && a->hops == b->hops && a->cut == b->cut &&
           a->step == b->step;
}

/* Positions of a group along a torus dimension: their number, and the side they span. */
typedef struct footprint {
    long positions, extent;
} footprint;

static ms_torus_span block_span(const ms_torus *torus, const footprint *footprints)
{
    ms_torus_span span = {.step = 1};
    for (int i = 0; i < MS_MAX_TORUS_DIMS && i < torus->num_dims; i++) {
        if (footprints[i].positions <= 1)
            continue;
        double extent = (double)footprints[i].extent;
        double sharing = extent / (double)footprints[i].positions;
        bool ring = torus->closed[i] && footprints[i].extent == torus->side[i];
        span.links += (ring ? 2.0 : 1.0) / sharing;
        span.hops += ring ? extent / 2.0 : extent - 1.0;
        span.cut = ms_max(span.cut, extent / (ring ? 8.0 : 4.0));
        long step = (long)ceil(sharing);
        span.step = step > span.step ? step : span.step;
    }
    return span;
}

/* Adds up to `size` ranks of a group's mode; false if it fills a torus digit unevenly. */
static bool add_mode(const ms_torus *torus, ms_mode mode, long size,
                     footprint *footprints)
{
    long unit = 1; /* ranks between neighbouring values of a digit */
    /* torus positions between neighbouring values of a digit, per dimension */
    long unit_positions[MS_MAX_TORUS_DIMS] = {1, 1, 1};
    long left = mode.size < size ? mode.size : size, stride = mode.stride;
    bool even = true;
    for (int i = 0; i < torus->num_digits && left > 1; i++) {
        ms_torus_digit digit = torus->digit[i];
        footprint *foot = &footprints[digit.dim];
        long line = unit * digit.size;
        if (stride < line) {
            long step = stride > unit ? stride / unit : 1;
            long most = digit.size / step;
            long here = left < most ? left : most;
            even = even && stride % unit == 0 && digit.size % step == 0 &&
                   (left < most ? most % left : left % most) == 0;
            foot->positions *= here;
            if (here > 1)
                foot->extent = here * step * unit_positions[digit.dim];
            left = (left + here - 1) / here;
            stride = line;
        }
        unit_positions[digit.dim] *= digit.size;
        unit = line;
    }
    return even && left == 1;
}

/* ---- groups that fill no blocks ---- */

/* Assumed ratio of a dimension's busiest link to the mean of its links. */
#define UNEVEN_LOAD  2.0
#define MOST_SAMPLES 32 /* most members of a group sampled for distances */

static void locate_member(const ms_torus *torus, const ms_group *group, long member,
                          long coordinate[MS_MAX_TORUS_DIMS])
{
    long rank = 0;
    for (int i = group->num_modes - 1; i >= 0; i--) {
        rank += member % group->modes[i].size * group->modes[i].stride;
        member /= group->modes[i].size;
    }
    ms_torus_locate(torus, rank % ms_torus_positions(torus), coordinate);
}

/* Adds the number of links in each dimension on a shortest path between two members. */
static void add_hops(const ms_torus *torus, const ms_group *group, long from, long to,
                     double hops[MS_MAX_TORUS_DIMS])
{
    long a[MS_MAX_TORUS_DIMS], b[MS_MAX_TORUS_DIMS];
    locate_member(torus, group, from, a);
    locate_member(torus, group, to, b);
    for (int i = 0; i < torus->num_dims; i++) {
        long way = labs(b[i] - a[i]), back = torus->side[i] - way;
        hops[i] += (double)(torus->closed[i] && back < way ? back : way);
    }
}

/* Bytes on the busiest link if every rank sends one byte over hops[i] links of dimension
 * i, half each way: UNEVEN_LOAD times the largest mean load of a dimension's links. */
static double busiest_wire(const ms_torus *torus, const double hops[MS_MAX_TORUS_DIMS])
{
    double most = 0.0;
    for (int i = 0; i < torus->num_dims; i++) {
        double side = (double)torus->side[i];
        double wires = torus->closed[i] ? 2.0 : 2.0 * (side - 1.0) / side;
        if (hops[i] > 0.0)
            most = ms_max(most, hops[i] / wires);
    }
    return UNEVEN_LOAD * most;
}

/* Span of a group that fills no block: that of a ring in rank order, with the measured
 * distances between its members and half of the bytes in each direction. */
static ms_torus_span uneven_span(const ms_torus *torus, const ms_group *group, long size)
{
    double ring[MS_MAX_TORUS_DIMS] = {0.0}, back[MS_MAX_TORUS_DIMS] = {0.0};
    double pairs[MS_MAX_TORUS_DIMS] = {0.0}, ranks = (double)size, ring_hops = 0.0;
    long samples = size - 1 < MOST_SAMPLES ? size - 1 : MOST_SAMPLES;
    for (long i = 0; i < samples; i++) {
        long member = i * (size - 1) / samples;
        add_hops(torus, group, member, member + 1, ring);
        for (long j = 0; j < samples; j++)
            add_hops(torus, group, member, size - 1 - j * (size - 1) / samples, pairs);
    }
    add_hops(torus, group, size - 1, 0, back);
    double chosen = (double)samples;
    ms_torus_span span = {.step = 1};
    for (int i = 0; i < torus->num_dims; i++) {
        long step = (long)ceil(UNEVEN_LOAD * ring[i] / chosen);
        span.step = step > span.step ? step : span.step;
        ring[i] = (ring[i] / chosen * (ranks - 1.0) + back[i]) / ranks;
        pairs[i] /= chosen * chosen;
        ring_hops += ring[i];
    }
    span.links = 1.0 / busiest_wire(torus, ring);
    span.hops = 0.5 * ranks * ring_hops;
    span.cut = busiest_wire(torus, pairs);
    return span;
}

ms_torus_span ms_torus_span_of(const ms_torus *torus, const ms_group *group, long size)
{
    footprint footprints[MS_MAX_TORUS_DIMS] = {{1, 1}, {1, 1}, {1, 1}};
    long left = size;
    bool even = true;
    for (int i = group->num_modes - 1; i >= 0 && left > 1; i--) {
        even = add_mode(torus, group->modes[i], left, footprints) && even;
        left = (left + group->modes[i].size - 1) / group->modes[i].size;
    }
    if (size > 1 && !even)
        return uneven_span(torus, group, size);
    return block_span(torus, footprints);
}

ms_torus_span ms_torus_span_least(const ms_level *level, long size)
{
    double links = 2.0 * (double)level->num_dims, ranks = (double)size;
    return (ms_torus_span){
        .links = links, .hops = 0.0, .cut = (ranks - 1.0) / (ranks * links), .step = 1};
}
