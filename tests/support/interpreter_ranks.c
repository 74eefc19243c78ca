/* Communication in the reference interpreter: placement changes between ranks, and whole
 * tensors gathered for comparison. */
#include "tests/support/interpreter_priv.h"

#include <math.h>
#include <string.h>

#define SMALLEST_SCALE 0.01

/* A rank's part of a tensor; the number of rows ('r') is that of the rank's cell. */
static ms_box part_of(ms_interp *run, int tensor, int rank, const ms_cell *cell)
{
    ms_box box = ms_interp_box(run, tensor, rank);
    const char *where = strchr(run->program->tensors[tensor].dims, MS_DIM_ROWS);
    if (where != NULL) {
        long i = where - run->program->tensors[tensor].dims;
        box.start[i] = 0;
        box.len[i] = cell->shape[i];
    }
    return box;
}

/* Row-major offset in `box` of the element at `index` relative to `from`; -1: outside of
 * `box`. */
static long offset_in(const ms_box *box, const ms_box *from, const long *index)
{
    long offset = 0;
    for (int i = 0; i < box->num_dims; i++) {
        long at = from->start[i] + index[i] - box->start[i];
        if (at < 0 || at >= box->len[i])
            return -1;
        offset = offset * box->len[i] + at;
    }
    return offset;
}

static bool change_is_described(ms_interp *run, const ms_node *node)
{
    const ms_tensor *in = &run->program->tensors[node->in[0]];
    const ms_tensor *out = &run->program->tensors[node->out[0]];
    bool fits = in->mesh == out->mesh && strcmp(in->dims, out->dims) == 0 &&
                node->axis < MS_MESH_AXES;
    for (int axis = 0; fits && axis < MS_MESH_AXES; axis++) {
        bool changes = axis == node->axis;
        fits = ms_placement_equal(in->at[axis], changes ? node->from : out->at[axis]) &&
               ms_placement_equal(out->at[axis], changes ? node->to : in->at[axis]);
    }
    bool is_divided = node->from.kind == MS_REPLICATE && node->to.kind == MS_PARTIAL_SUM;
    bool is_possible = node->to.kind == MS_REPLICATE || is_divided ||
                       (node->to.kind == MS_SHARD && node->from.kind != MS_PARTIAL_MAX);
    if (!fits || !is_possible)
        ms_interp_fail(run, node, "%s to %s: placements do not fit the attributes",
                       in->name, out->name);
    bool splits_rows = ms_interp_shares_rows(node);
    if (splits_rows && (in->mesh != MS_SPARSE_MESH || node->axis != 2))
        ms_interp_fail(run, node, "rows of %s are ragged and have no common order",
                       in->name);
    return fits && is_possible;
}

/* The ranks of a communication group, with each one's part of a tensor. */
typedef struct group {
    long size;
    int *ranks;
    ms_box *boxes;
    const ms_cell **cells;
} group;

static group read_group(ms_interp *run, const ms_node *node, int rank)
{
    int mesh = run->program->tensors[node->in[0]].mesh;
    group g = {.size = node->from.kind == MS_REPLICATE
                           ? 1
                           : run->program->mesh_size[mesh][node->axis]};
    g.ranks = MS_NEW_ARRAY(run->arena, g.size, int);
    g.boxes = MS_NEW_ARRAY(run->arena, g.size, ms_box);
    g.cells = MS_NEW_ARRAY(run->arena, g.size, const ms_cell *);
    for (long i = 0; i < g.size; i++) {
        g.ranks[i] = node->from.kind == MS_REPLICATE
                         ? rank
                         : ms_interp_peer(run, mesh, node->axis, rank, i);
        g.cells[i] = ms_interp_in(run, node, 0, g.ranks[i]);
        g.boxes[i] = part_of(run, node->in[0], g.ranks[i], g.cells[i]);
    }
    return g;
}

/* Reads one element: from the one rank that has it, or reduced over the group. Returns
 * the number of ranks that have it. */
static long collect(const group *g, ms_placement from, const ms_box *box,
                    const long *index, double *value)
{
    long num_found = 0;
    for (long i = 0; i < g->size; i++) {
        long offset = offset_in(&g->boxes[i], box, index);
        if (offset < 0)
            continue;
        double held = g->cells[i]->values[offset];
        if (num_found == 0)
            *value = held;
        else
            *value = from.kind == MS_PARTIAL_MAX ? fmax(*value, held) : *value + held;
        num_found++;
    }
    return num_found;
}

/* Elements that a rank sends: an all-reduce sends twice what a reduce-scatter does; else
 * a rank sends as many as it receives. */
static double sent_elements(const ms_node *node, const group *g, const ms_cell *in,
                            const ms_cell *out)
{
    double others = (double)(g->size - 1);
    if (node->from.kind == MS_REPLICATE)
        return 0;
    if (node->from.kind != MS_SHARD)
        return node->to.kind == MS_SHARD
                   ? others * (double)out->count
                   : 2 * others / (double)g->size * (double)in->count;
    return others / (double)g->size * (double)out->count;
}

void ms_interp_redistribute(ms_interp *run, const ms_node *node, int rank)
{
    if (!change_is_described(run, node))
        return;
    if (ms_interp_shares_rows(node)) {
        ms_interp_share_rows(run, node, rank);
        return;
    }
    const ms_tensor *t = &run->program->tensors[node->in[0]];
    group g = read_group(run, node, rank);
    const ms_cell *in = ms_interp_in(run, node, 0, rank);
    ms_cell *out = ms_interp_out(run, node, 0, rank);
    ms_box box = part_of(run, node->out[0], rank, out);
    bool is_reduced =
        node->from.kind == MS_PARTIAL_SUM || node->from.kind == MS_PARTIAL_MAX;
    long index[MS_MAX_DIMS] = {0};
    for (long i = 0; i < out->count; i++) {
        long num_found = collect(&g, node->from, &box, index, &out->values[i]);
        if (num_found != (is_reduced ? g.size : 1)) {
            ms_interp_fail(
                run, node,
                "rank %d needs an element of %s[%s] that %ld of %ld ranks of the group hold",
                rank, t->name, t->dims, num_found, g.size);
            return;
        }
        /* reduce-scatter: ranks receive equal shares */
        if (node->to.kind == MS_PARTIAL_SUM)
            out->values[i] /= (double)run->program->mesh_size[t->mesh][node->axis];
        ms_box_next(&box, index);
    }
    run->node_wire_bytes[(node - run->program->nodes) * run->num_ranks + rank] =
        sent_elements(node, &g, in, out) * t->element_bytes;
}

/* The rank with coordinate 0 on every axis on which the tensor is replicated: its copy is
 * the one compared with. */
static int first_copy(const ms_interp *run, const ms_tensor *t, int rank)
{
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        if (t->at[axis].kind == MS_REPLICATE)
            rank = ms_interp_peer(run, t->mesh, axis, rank, 0);
    return rank;
}

static void add_part(const ms_box *whole, const ms_box *box, const ms_cell *cell,
                     double *values)
{
    long index[MS_MAX_DIMS] = {0};
    for (long i = 0; i < cell->count; i++) {
        values[offset_in(whole, box, index)] += cell->values[i];
        ms_box_next(box, index);
    }
}

const double *ms_interp_gather(ms_interp *run, int tensor, long *count)
{
    const ms_tensor *t = &run->program->tensors[tensor];
    ms_box whole = {.num_dims = (int)strlen(t->dims)};
    *count = 1;
    for (int i = 0; i < whole.num_dims; i++) {
        whole.len[i] = ms_interp_size(run, t->dims[i]);
        *count *= whole.len[i];
    }
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        if (t->at[axis].kind == MS_PARTIAL_MAX)
            ms_interp_fail(run, NULL, "%s is a partial maximum", t->name);
    if (strchr(t->dims, MS_DIM_ROWS) != NULL ||
        ms_interp_cell(run, tensor, 0)->values == NULL)
        ms_interp_fail(run, NULL, "%s cannot be gathered", t->name);
    double *values = MS_NEW_ARRAY(run->arena, *count, double);
    for (int rank = 0; rank < run->num_ranks && run->why[0] == '\0'; rank++) {
        const ms_cell *cell = ms_interp_cell(run, tensor, rank);
        int first = first_copy(run, t, rank);
        ms_box box = ms_interp_box(run, tensor, rank);
        if (first == rank)
            add_part(&whole, &box, cell, values);
        else if (!(ms_interp_difference(cell->values,
                                        ms_interp_cell(run, tensor, first)->values,
                                        cell->count) <= 1e-12))
            ms_interp_fail(run, NULL, "%s is replicated, but differs on ranks %d and %d",
                           t->name, first, rank);
    }
    return run->why[0] == '\0' ? values : NULL;
}

double ms_interp_loss(ms_interp *run)
{
    const ms_program *program = run->program;
    long count, num_gradients;
    const double *output = ms_interp_gather(run, program->output, &count),
                 *gradient = NULL;
    if (program->output_gradient >= 0)
        gradient = ms_interp_gather(run, program->output_gradient, &num_gradients);
    if (output == NULL || (program->output_gradient >= 0 && gradient == NULL))
        return (double)NAN;
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += output[i] * (gradient != NULL ? gradient[i] : 1 / (double)count);
    return sum;
}

double ms_interp_difference(const double *got, const double *want, long count)
{
    double difference = 0, largest = SMALLEST_SCALE;
    for (long i = 0; i < count; i++) {
        if (isnan(got[i]) || isnan(want[i]))
            return HUGE_VAL;
        difference = fmax(difference, fabs(got[i] - want[i]));
        largest = fmax(largest, fabs(want[i]));
    }
    return difference / largest;
}

void ms_interp_positions(long *positions, long sequence, long cp)
{
    long chunk = sequence / (2 * cp);
    for (long stored = 0; stored < sequence; stored++) {
        long half = stored / chunk,
             rank = half / 2; /* chunks 2c and 2c + 1 belong to rank c */
        long from = half % 2 == 0 ? rank : 2 * cp - 1 - rank;
        positions[stored] = from * chunk + stored % chunk;
    }
}
