/* Chooses blocks of chips for the ranks between two cuts of a mesh. */
#include "topo/torus.h"

#include <string.h>

/* Number of chips of a block along each dimension of the torus. */
typedef struct block {
    long part[MS_MAX_TORUS_DIMS];
} block;

/* [dim] unit: chips of blocks assigned so far along it; side: its length in units. */
typedef struct remaining {
    long side[MS_MAX_TORUS_DIMS], unit[MS_MAX_TORUS_DIMS];
} remaining;

static int dims_of(const ms_torus *torus, const block *b)
{
    int dims = 0;
    for (int i = 0; i < MS_MAX_TORUS_DIMS && i < torus->num_dims; i++)
        dims += b->part[i] > 1;
    return dims;
}

static bool takes_whole_sides(const ms_torus *torus, const remaining *left,
                              const block *b)
{
    for (int i = 0; i < MS_MAX_TORUS_DIMS && i < torus->num_dims; i++)
        if (b->part[i] > 1 && b->part[i] < left->side[i])
            return false;
    return true;
}

/* Links of a rank inside a block: per dimension 2 (ring) or 1 (line), divided by the
 * number of groups that lie between neighbours of a group and share those links. */
static double wires_of(const ms_torus *torus, const remaining *left, const block *b)
{
    double wires = 0.0;
    for (int i = 0; i < MS_MAX_TORUS_DIMS && i < torus->num_dims; i++) {
        bool ring = torus->closed[i] && b->part[i] == left->side[i];
        if (b->part[i] > 1)
            wires += (ring ? 2.0 : 1.0) / (double)left->unit[i];
    }
    return wires;
}

static bool is_better(const ms_torus *torus, const remaining *left, const block *a,
                      const block *best)
{
    bool whole = takes_whole_sides(torus, left, a);
    if (whole != takes_whole_sides(torus, left, best))
        return whole;
    if (whole && dims_of(torus, a) != dims_of(torus, best))
        return dims_of(torus, a) > dims_of(torus, best);
    return wires_of(torus, left, a) > wires_of(torus, left, best);
}

/* Finds the best block of `size` chips; of equal ones, the longest in the last
 * dimensions. Returns false if none fits. */
static bool best_block(const ms_torus *torus, const remaining *left, long size,
                       block *best)
{
    bool found = false;
    for (long x = 1; x <= size && x <= left->side[0]; x++) {
        for (long y = 1; x * y <= size && y <= left->side[1]; y++) {
            block b = {{x, y, size / (x * y)}};
            if (size % (x * y) != 0 || b.part[2] > left->side[2] ||
                left->side[0] % x != 0 || left->side[1] % y != 0 ||
                left->side[2] % b.part[2] != 0)
                continue;
            if (!found || is_better(torus, left, &b, best))
                *best = b;
            found = true;
        }
    }
    return found;
}

static void assign_block(ms_torus *torus, remaining *left, const block *b)
{
    for (int i = torus->num_dims - 1; i >= 0; i--) {
        if (b->part[i] <= 1)
            continue;
        torus->digit[torus->num_digits++] = (ms_torus_digit){i, b->part[i]};
        left->side[i] /= b->part[i];
        left->unit[i] *= b->part[i];
    }
}

void ms_torus_arrange(ms_torus *torus, const long *cuts, int num_cuts)
{
    remaining left = {.side = {1, 1, 1}, .unit = {1, 1, 1}};
    memcpy(left.side, torus->side, (size_t)torus->num_dims * sizeof *torus->side);
    torus->num_digits = 0;
    long filled = 1;
    for (int i = 0; i < num_cuts && num_cuts <= MS_MAX_TORUS_CUTS; i++) {
        block b = {{1, 1, 1}};
        if (cuts[i] <= filled || cuts[i] % filled != 0 ||
            !best_block(torus, &left, cuts[i] / filled, &b))
            continue;
        assign_block(torus, &left, &b);
        filled = cuts[i];
    }
    block all = {{left.side[0], left.side[1], left.side[2]}};
    assign_block(torus, &left, &all);
}

/* Inserts a cut (rank number) if all cuts still divide each other; returns the count. */
static int add_cut(long *cuts, int num_cuts, long cut)
{
    int at = 0;
    while (at < num_cuts && cuts[at] < cut)
        at++;
    bool is_known = at < num_cuts && cuts[at] == cut;
    bool fits =
        (at == 0 || cut % cuts[at - 1] == 0) && (at == num_cuts || cuts[at] % cut == 0);
    if (cut <= 1 || is_known || !fits || num_cuts == MS_MAX_TORUS_CUTS)
        return num_cuts;
    memmove(cuts + at + 1, cuts + at, (size_t)(num_cuts - at) * sizeof *cuts);
    cuts[at] = cut;
    return num_cuts + 1;
}

int ms_torus_add_cuts(const ms_mesh *mesh, long cuts[MS_MAX_TORUS_CUTS], int num_cuts)
{
    for (int i = mesh->num_axes - 1; i >= 0; i--) {
        const ms_mesh_axis *axis = &mesh->axes[i];
        num_cuts = add_cut(cuts, num_cuts, axis->stride);
        num_cuts = add_cut(cuts, num_cuts, axis->stride * axis->size);
    }
    return num_cuts;
}

ms_torus ms_torus_of_mesh(const ms_level *level, const ms_mesh *mesh)
{
    long cuts[MS_MAX_TORUS_CUTS], domain = level->gpus_per_domain;
    ms_torus torus =
        ms_torus_slice(level, mesh->num_ranks < domain ? mesh->num_ranks : domain);
    ms_torus_arrange(&torus, cuts, ms_torus_add_cuts(mesh, cuts, 0));
    return torus;
}
