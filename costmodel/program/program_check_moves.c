/* Checks nodes that move data between ranks, and the order of experts' rows. */
#include "costmodel/program/program_check_priv.h"
#include "costmodel/tensor/spmd.h"

#include <string.h>

/* sparse-mesh axis whose ranks share experts and gather their rows */
#define ETP 2

/* ---- changes of placement ---- */

static bool is_split_by(ms_placement at, char letter)
{
    return at.kind == MS_SHARD && at.dim == letter;
}

/* Whether the split `at` over `axis` is a dim's innermost split: only that can be
 * gathered, cut or exchanged by a collective over `axis`. Splits nest in mesh order, axis
 * 0 outermost, but a strided split is inside the splits of later axes. */
static bool is_innermost(const ms_checker *c, const ms_tensor *t, int axis,
                         ms_placement at)
{
    long inside = 1;
    for (int a = axis + 1; a < MS_MESH_AXES; a++)
        if (is_split_by(t->at[a], at.dim))
            inside *= c->program->mesh_size[t->mesh][a];
    for (int a = 0; a < axis; a++)
        if (is_split_by(t->at[a], at.dim) && t->at[a].split_factor > 1)
            return false;
    return inside == (at.split_factor > 1 ? at.split_factor : 1);
}

static bool is_described(const ms_checker *c, const ms_node *node)
{
    const ms_tensor *in = ms_checker_in(c, node, 0), *out = ms_checker_out(c, node, 0);
    for (int axis = 0; axis < MS_MESH_AXES; axis++) {
        bool changes = axis == node->axis;
        if (!ms_placement_equal(in->at[axis], changes ? node->from : out->at[axis]) ||
            !ms_placement_equal(out->at[axis], changes ? node->to : in->at[axis]))
            return false;
    }
    return in->mesh == out->mesh && strcmp(in->dims, out->dims) == 0 &&
           in->role == out->role && in->element_bytes == out->element_bytes;
}

static void check_sides(ms_checker *c, int n)
{
    const ms_node *node = &c->program->nodes[n];
    const ms_placement sides[] = {node->from, node->to};
    const ms_tensor *t = ms_checker_in(c, node, 0);
    for (int i = 0; i < 2; i++) {
        if (sides[i].kind != MS_SHARD)
            continue;
        if (sides[i].dim == MS_DIM_ROWS &&
            (t->mesh != MS_SPARSE_MESH || node->axis != ETP)) {
            ms_checker_report(c, MS_CHECK_REDISTRIBUTION, n, node->axis,
                              "the rows of %s have no common order on the ranks",
                              t->name);
        } else if (!is_innermost(c, t, node->axis, sides[i])) {
            ms_checker_report(
                c, MS_CHECK_REDISTRIBUTION, n, node->axis,
                "%c of %s[%s] is split further by other axes inside of this "
                "one: those have to be gathered first",
                sides[i].dim, t->name, t->dims);
        }
    }
}

void ms_check_redistribution(ms_checker *c, int n)
{
    const ms_node *node = &c->program->nodes[n];
    if (node->num_in != 1 || node->num_out != 1 || node->axis >= MS_MESH_AXES) {
        ms_checker_report(c, MS_CHECK_STRUCTURE, n, -1,
                          "a redistribution has one operand, one result and one axis");
        return;
    }
    const ms_tensor *t = ms_checker_in(c, node, 0);
    if (!is_described(c, node)) {
        ms_checker_report(c, MS_CHECK_REDISTRIBUTION, n, node->axis,
                          "%s[%s] does not go from %s to %s on this axis alone", t->name,
                          t->dims, ms_checker_describe(node->from).text,
                          ms_checker_describe(node->to).text);
    } else if (ms_spmd_of_redistribution(node->from, node->to) == NULL) {
        ms_checker_report(c, MS_CHECK_REDISTRIBUTION, n, node->axis,
                          "no collective makes %s[%s], which is %s, %s", t->name, t->dims,
                          ms_checker_describe(node->from).text,
                          ms_checker_describe(node->to).text);
    } else {
        check_sides(c, n);
    }
}

/* ---- rows change meshes ---- */

/* Whether experts' rows are split contiguously over every axis. */
static bool rows_lie_well(const ms_checker *c, const ms_tensor *rows)
{
    for (int axis = 0; axis < MS_MESH_AXES; axis++) {
        ms_placement at = rows->at[axis];
        if (ms_checker_is_active(c->program, rows->mesh, axis) &&
            (!is_split_by(at, MS_DIM_ROWS) || at.split_factor > 1))
            return false;
    }
    return true;
}

static bool choice_lies_like(const ms_checker *c, const ms_tensor *choice,
                             const ms_tensor *rows)
{
    for (int axis = 0; axis < MS_MESH_AXES; axis++) {
        bool split = rows->at[axis].kind == MS_SHARD;
        ms_placement at = choice->at[axis];
        if (!ms_checker_is_active(c->program, MS_DENSE_MESH, axis))
            continue;
        if (split ? !is_split_by(at, MS_DIM_BATCH) && !is_split_by(at, MS_DIM_SEQUENCE)
                  : at.kind != MS_REPLICATE)
            return false;
    }
    return true;
}

static bool is_exchange(const ms_checker *c, const ms_node *node)
{
    int from = node->inverse ? MS_SPARSE_MESH : MS_DENSE_MESH;
    if (node->num_in != 2 || node->num_out != 1)
        return false;
    const ms_tensor *in = ms_checker_in(c, node, 0), *choice = ms_checker_in(c, node, 1),
                    *out = ms_checker_out(c, node, 0);
    return in->dims[0] == MS_DIM_ROWS && strcmp(in->dims, out->dims) == 0 &&
           strcmp(choice->dims, "bsk") == 0 && choice->mesh == MS_DENSE_MESH &&
           in->mesh == from && out->mesh != from;
}

void ms_check_exchange(ms_checker *c, int n)
{
    const ms_node *node = &c->program->nodes[n];
    const long *size = c->program->mesh_size[MS_SPARSE_MESH];
    if (!is_exchange(c, node)) {
        ms_checker_report(
            c, MS_CHECK_STRUCTURE, n, -1,
            "an exchange takes rows of one mesh and their choice, and gives "
            "rows of the other mesh");
        return;
    }
    const ms_tensor *in = ms_checker_in(c, node, 0), *out = ms_checker_out(c, node, 0);
    const ms_tensor *dense = node->inverse ? out : in;
    const ms_tensor *bad = !rows_lie_well(c, in)    ? in
                           : !rows_lie_well(c, out) ? out
                                                    : NULL;
    if (bad != NULL) {
        ms_checker_report(c, MS_CHECK_ROWS, n, -1,
                          "the rows of %s are not split over all axes on the %s mesh",
                          bad->name, bad->mesh == MS_DENSE_MESH ? "dense" : "sparse");
    } else if (!choice_lies_like(c, ms_checker_in(c, node, 1), dense)) {
        ms_checker_report(c, MS_CHECK_ROWS, n, -1,
                          "the choice lies otherwise than the tokens whose rows are "
                          "exchanged");
    } else if (size[ETP] > 1 && size[ETP] != c->program->mesh_size[MS_DENSE_MESH][2]) {
        ms_checker_report(c, MS_CHECK_ROWS, n, ETP,
                          "%ld ranks share each expert, but tokens are split over %ld",
                          size[ETP], c->program->mesh_size[MS_DENSE_MESH][2]);
    }
}

/* ---- the order of rows ---- */

/* Index of the operand that is the routing choice which orders the rows; -1: none. */
static int choice_operand(const ms_node *node)
{
    switch ((int)node->op) {
    case MS_OP_PERMUTE:
    case MS_OP_PERMUTE_GRAD:
    case MS_OP_EXCHANGE:
    case MS_OP_EXPERT_BIAS_GRAD:
        return 1;
    case MS_OP_GROUPED:
    case MS_OP_EXPERT_BIAS:
    case MS_OP_UNPERMUTE:
        return 2;
    case MS_OP_UNPERMUTE_GRAD:
        return 3;
    default:
        return -1;
    }
}

/* Whether two tensors are one routing choice (or copies of one) with equal placements. */
static bool same_choice(const ms_checker *c, int x, int y)
{
    const ms_tensor *tensors = c->program->tensors;
    if (x < 0 || y < 0 || c->root[x] != c->root[y])
        return x == y;
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        if (ms_checker_is_active(c->program, MS_DENSE_MESH, axis) &&
            !ms_placement_equal(tensors[x].at[axis], tensors[y].at[axis]))
            return false;
    return true;
}

static bool is_choice(const ms_checker *c, int tensor)
{
    int root = c->root[tensor], producer = c->program->tensors[root].producer;
    if (producer < 0)
        return false;
    const ms_node *node = &c->program->nodes[producer];
    return node->op == MS_OP_ROUTE && node->num_out == 2 && node->out[1] == root;
}

static void check_row_order(ms_checker *c, int n, int *order)
{
    const ms_node *node = &c->program->nodes[n];
    int operand = choice_operand(node), choice = -1;
    if (operand >= 0 && operand < node->num_in) {
        choice = node->in[operand];
        if (!is_choice(c, choice))
            ms_checker_report(c, MS_CHECK_ROWS, n, -1, "%s is no choice of experts",
                              c->program->tensors[choice].name);
    }
    for (int i = 0; i < node->num_in; i++) {
        if (!ms_tensor_has(ms_checker_in(c, node, i), MS_DIM_ROWS))
            continue;
        if (choice < 0)
            choice = order[node->in[i]];
        if (!same_choice(c, choice, order[node->in[i]])) {
            ms_checker_report(c, MS_CHECK_ROWS, n, -1,
                              "the rows of %s are in the order of another choice, or of "
                              "one that lies otherwise",
                              ms_checker_in(c, node, i)->name);
        }
    }
    for (int i = 0; i < node->num_out; i++)
        order[node->out[i]] =
            ms_tensor_has(ms_checker_out(c, node, i), MS_DIM_ROWS) ? choice : -1;
}

void ms_check_rows(ms_checker *c)
{
    int *order = MS_NEW_ARRAY(c->arena, c->program->num_tensors, int);
    for (int t = 0; t < c->program->num_tensors; t++)
        order[t] = -1;
    for (int n = 0; n < c->program->num_nodes; n++)
        check_row_order(c, n, order);
}
