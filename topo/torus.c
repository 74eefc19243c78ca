/* Slices of a torus and the footprints of groups on them. */
#include "topo/torus.h"

#include "base/number.h"

#include <math.h>
#include <stdlib.h>

static int compare_sides(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

/* Sides in ascending order; dims that the level lacks have one position, and come first. */
typedef struct box {
    long side[MS_MAX_TORUS_DIMS];
} box;

static bool is_whole(const ms_level *level, const box *b)
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
    if (is_whole(level, a) != is_whole(level, b))
        return is_whole(level, a);
    return a->side[0] + a->side[1] + a->side[2] < b->side[0] + b->side[1] + b->side[2];
}

/* x <= y <= z: the last holds when z - 1 layers of x y would be too few. */
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
    bool closed = is_whole(level, &b);
    for (int i = 0; i < level->num_dims; i++) {
        torus.side[i] = b.side[missing + i];
        torus.closed[i] =
            torus.side[i] > 1 && (closed || torus.side[i] == whole.side[missing + i]);
    }
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

/* Positions of a group along one dim, and how far they reach when its last step is counted too. */
typedef struct footprint {
    long positions, extent;
} footprint;

bool ms_torus_span_equal(const ms_torus_span *a, const ms_torus_span *b)
{
    return a->links == b->links && a->hops == b->hops && a->cut == b->cut &&
           a->step == b->step;
}

static ms_torus_span measure(const ms_torus *torus, const footprint *feet)
{
    ms_torus_span span = {.step = 1};
    for (int i = 0; i < MS_MAX_TORUS_DIMS && i < torus->num_dims; i++) {
        if (feet[i].positions <= 1)
            continue;
        double extent = (double)feet[i].extent;
        double sharing = extent / (double)feet[i].positions;
        bool ring = torus->closed[i] && feet[i].extent == torus->side[i];
        span.links += (ring ? 2.0 : 1.0) / sharing;
        span.hops += ring ? extent / 2.0 : extent - 1.0;
        span.cut = ms_max(span.cut, extent / (ring ? 8.0 : 4.0));
        long step = (long)ceil(sharing);
        span.step = step > span.step ? step : span.step;
    }
    return span;
}

/* A mode walks from its stride upwards through the dims. False when it fills one of them unevenly. */
static bool walk(const ms_torus *torus, ms_mode mode, long size, footprint *feet)
{
    long unit = 1; /* ranks from one position of dim i to the next */
    long left = mode.size < size ? mode.size : size, stride = mode.stride;
    bool even = true;
    for (int i = torus->num_dims - 1; i >= 0 && left > 1; i--) {
        long line = unit * torus->side[i];
        if (stride < line) {
            long step = stride > unit ? stride / unit : 1;
            long most = torus->side[i] / step;
            long here = left < most ? left : most;
            even = even && stride % unit == 0 && torus->side[i] % step == 0 &&
                   (left < most ? most % left : left % most) == 0;
            feet[i].positions *= here;
            feet[i].extent = here * step;
            left = (left + here - 1) / here;
            stride = line;
        }
        unit = line;
    }
    return even && left == 1;
}

/* Rings in the order of the ranks turn back at the end of each line, and hops cross each other: taken as half of one line, shared by as many groups as
 * their stride passes over, and twice the cut of a line as long as the group. */
static ms_torus_span uneven_span(const ms_torus *torus, const ms_group *group, long size)
{
    long stride = group->modes[group->num_modes - 1].stride, sides = 0, longest = 1;
    for (int i = 0; i < torus->num_dims; i++) {
        longest = torus->side[i] > longest ? torus->side[i] : longest;
        sides += torus->side[i] - 1;
    }
    double sharing = (double)(stride < longest ? stride : longest);
    double reach = (double)(size < longest ? size : longest);
    return (ms_torus_span){.links = 0.5 / sharing,
                           .hops = (double)(sides > 0 ? sides : 1),
                           .cut = 0.5 * sharing * reach,
                           .step = sides > 0 ? sides : 1};
}

ms_torus_span ms_torus_span_of(const ms_torus *torus, const ms_group *group, long size)
{
    footprint feet[MS_MAX_TORUS_DIMS] = {{1, 1}, {1, 1}, {1, 1}};
    long left = size;
    bool even = true;
    for (int i = group->num_modes - 1; i >= 0 && left > 1; i--) {
        even = walk(torus, group->modes[i], left, feet) && even;
        left = (left + group->modes[i].size - 1) / group->modes[i].size;
    }
    if (size > 1 && !even)
        return uneven_span(torus, group, size);
    return measure(torus, feet);
}

ms_torus_span ms_torus_span_least(const ms_level *level, long size)
{
    double links = 2.0 * (double)level->num_dims, ranks = (double)size;
    return (ms_torus_span){
        .links = links, .hops = 0.0, .cut = (ranks - 1.0) / (ranks * links), .step = 1};
}
