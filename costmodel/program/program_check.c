/* Runs all checks of a layer program: structure, placements, results, nodes. */
#include "costmodel/program/program_check.h"

#include "costmodel/program/program_check_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const ms_check_kind_names[] = {
    "structure",      "layout",  "partial-product", "partial-operand",
    "split",          "strided", "result",          "forgotten-reduction",
    "redistribution", "rows",    "gradient",        "update",
};
_Static_assert(sizeof ms_check_kind_names / sizeof *ms_check_kind_names ==
                   MS_NUM_CHECK_KINDS,
               "every kind has a name");

/* ---- findings ---- */

bool ms_checker_is_active(const ms_program *program, int mesh, int axis)
{
    return axis == 0 || program->mesh_size[mesh][axis] > 1;
}

ms_placement_words ms_checker_describe(ms_placement at)
{
    static const char *const words[] = {"replicated", "split", "a partial sum",
                                        "a partial maximum"};
    ms_placement_words made;
    if (at.kind != MS_SHARD)
        snprintf(made.text, sizeof made.text, "%s", words[at.kind]);
    else if (at.split_factor > 1)
        snprintf(made.text, sizeof made.text, "split by %c, strided by %d", at.dim,
                 at.split_factor);
    else
        snprintf(made.text, sizeof made.text, "split by %c", at.dim);
    return made;
}

/* Adds a finding, whose sentence begins with `place`, a node or tensor. */
static void add_finding(ms_checker *c, ms_check_kind kind, int node, const char *axis,
                        const char *place, const char *why)
{
    if (c->num_findings++ >= c->capacity)
        return;
    ms_check_finding *finding = &c->findings[c->num_findings - 1];
    *finding = (ms_check_finding){.node = node, .axis = axis, .kind = kind};
    snprintf(finding->text, sizeof finding->text, "%s%s%s: %s", place,
             axis != NULL ? " on " : "", axis != NULL ? axis : "", why);
}

void ms_checker_report(ms_checker *c, ms_check_kind kind, int node, int axis,
                       const char *format, ...)
{
    const ms_node *at = &c->program->nodes[node];
    char why[256], place[80];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    snprintf(place, sizeof place, "node %d (%.32s, %s)", node,
             at->name != NULL ? at->name : "no name", ms_op_names[at->op]);
    int mesh = axis >= 0 ? ms_checker_in(c, at, 0)->mesh : 0;
    add_finding(c, kind, node, axis >= 0 ? ms_mesh_axis_names[mesh][axis] : NULL, place,
                why);
}

void ms_checker_report_tensor(ms_checker *c, ms_check_kind kind, int tensor, int axis,
                              const char *format, ...)
{
    const ms_tensor *t = &c->program->tensors[tensor];
    char why[256], place[80];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    snprintf(place, sizeof place, "%.32s[%s]", t->name, t->dims);
    add_finding(c, kind, t->producer,
                axis >= 0 ? ms_mesh_axis_names[t->mesh][axis] : NULL, place, why);
}

/* ---- structure ---- */

static bool tensors_exist(const ms_program *program, const int *tensors, int count)
{
    if (count > MS_MAX_OPERANDS)
        return false;
    for (int i = 0; i < count; i++)
        if (tensors[i] < 0 || tensors[i] >= program->num_tensors)
            return false;
    return true;
}

static void check_operands(ms_checker *c, int n)
{
    const ms_program *program = c->program;
    const ms_node *node = &program->nodes[n];
    for (int i = 0; i < node->num_in; i++) {
        const ms_tensor *t = ms_checker_in(c, node, i);
        if (t->producer >= n)
            ms_checker_report(c, MS_CHECK_STRUCTURE, n, -1,
                              "%s[%s] is used before it is made", t->name, t->dims);
        bool forgotten = n >= program->num_forward_nodes &&
                         t->role == MS_ROLE_ACTIVATION && !t->saved &&
                         t->producer < program->num_forward_nodes;
        if (forgotten)
            ms_checker_report(c, MS_CHECK_STRUCTURE, n, -1,
                              "%s[%s] was neither saved for backward nor computed again",
                              t->name, t->dims);
    }
    for (int i = 0; i < node->num_out; i++) {
        if (ms_checker_out(c, node, i)->producer != n)
            ms_checker_report(
                c, MS_CHECK_STRUCTURE, n, -1, "%s[%s] is also made by another node",
                ms_checker_out(c, node, i)->name, ms_checker_out(c, node, i)->dims);
    }
}

static bool is_tensor_or_none(const ms_program *program, int tensor)
{
    return tensor >= -1 && tensor < program->num_tensors;
}

static bool is_tensor(const ms_tensor *t)
{
    if (t->mesh > MS_SPARSE_MESH || t->role > MS_ROLE_STATE || t->dims[0] == '\0')
        return false;
    for (const char *d = t->dims; *d != '\0'; d++)
        if (*d < '0' || *d > 'z')
            return false;
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        if (t->at[axis].kind > MS_PARTIAL_MAX)
            return false;
    return true;
}

static bool tensors_are_sound(ms_checker *c)
{
    const ms_program *p = c->program;
    bool sound = is_tensor_or_none(p, p->input) && is_tensor_or_none(p, p->output) &&
                 is_tensor_or_none(p, p->input_gradient) &&
                 is_tensor_or_none(p, p->output_gradient);
    for (int t = 0; t < p->num_tensors; t++)
        sound = sound && is_tensor(&p->tensors[t]) &&
                is_tensor_or_none(p, p->tensors[t].gradient);
    if (!sound)
        add_finding(c, MS_CHECK_STRUCTURE, -1, NULL, "the program",
                    "a tensor has no dims, mesh or placement, or one that is named does "
                    "not exist");
    return sound;
}

static bool structure_is_sound(ms_checker *c)
{
    const ms_program *program = c->program;
    if (!tensors_are_sound(c))
        return false;
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (node->op >= MS_NUM_OPS || node->num_in == 0 || node->num_out == 0 ||
            !tensors_exist(program, node->in, node->num_in) ||
            !tensors_exist(program, node->out, node->num_out)) {
            add_finding(c, MS_CHECK_STRUCTURE, n, NULL, "a node",
                        "it has no operation, operands or results");
            return false;
        }
        check_operands(c, n);
    }
    return c->num_findings == 0;
}

/* ---- layouts of tensors ---- */

static void check_shard(ms_checker *c, int tensor, int axis)
{
    const ms_tensor *t = &c->program->tensors[tensor];
    ms_placement at = t->at[axis];
    if (!ms_tensor_has(t, at.dim)) {
        ms_checker_report_tensor(c, MS_CHECK_LAYOUT, tensor, axis,
                                 "split by %c, a dim it does not have", at.dim);
        return;
    }
    long inside = 1;
    for (int a = axis + 1; a < MS_MESH_AXES; a++)
        if (t->at[a].kind == MS_SHARD && t->at[a].dim == at.dim)
            inside *= c->program->mesh_size[t->mesh][a];
    if (at.split_factor > 1 && at.split_factor != inside)
        ms_checker_report_tensor(c, MS_CHECK_LAYOUT, tensor, axis,
                                 "strided by %d, but the axes inside split %c into %ld",
                                 at.split_factor, at.dim, inside);
    double local = ms_tensor_local_size(c->program, tensor, at.dim);
    if (local != (double)(long)local && at.dim != MS_DIM_ROWS)
        ms_checker_report_tensor(c, MS_CHECK_LAYOUT, tensor, axis,
                                 "%c does not divide by the axes that split it", at.dim);
}

static bool is_given(const ms_program *program, int tensor)
{
    ms_role role = (ms_role)program->tensors[tensor].role;
    return role == MS_ROLE_WEIGHT || role == MS_ROLE_STATE || tensor == program->input ||
           tensor == program->output_gradient;
}

static void check_layout(ms_checker *c, int tensor)
{
    const ms_tensor *t = &c->program->tensors[tensor];
    if (t->producer < 0 && !is_given(c->program, tensor))
        ms_checker_report_tensor(c, MS_CHECK_STRUCTURE, tensor, -1,
                                 "nothing makes it, and it is not given");
    for (int axis = 0; axis < MS_MESH_AXES; axis++) {
        if (!ms_checker_is_active(c->program, t->mesh, axis))
            continue;
        if (t->at[axis].kind == MS_SHARD)
            check_shard(c, tensor, axis);
        else if (t->producer < 0 && ms_placement_is_partial(t->at[axis]))
            ms_checker_report_tensor(c, MS_CHECK_LAYOUT, tensor, axis,
                                     "it is given, but %s",
                                     ms_checker_describe(t->at[axis]).text);
    }
}

/* ---- promises of a program ---- */

/* Writes over which axes a partial sum was reduced: "reduced over dp but "; "": none. */
static void list_reduced(const ms_checker *c, int tensor, char text[48])
{
    const ms_tensor *now = &c->program->tensors[tensor],
                    *made = &c->program->tensors[c->root[tensor]];
    size_t length = 0;
    text[0] = '\0';
    for (int axis = 0; axis < MS_MESH_AXES; axis++) {
        if (ms_placement_is_partial(made->at[axis]) &&
            !ms_placement_is_partial(now->at[axis]))
            length += (size_t)snprintf(text + length, 48 - length, "%s%s",
                                       length > 0 ? " and " : "reduced over ",
                                       ms_mesh_axis_names[now->mesh][axis]);
    }
    if (length > 0)
        snprintf(text + length, 48 - length, " but ");
}

void ms_checker_require_whole(ms_checker *c, int tensor, int node, const char *what)
{
    const ms_tensor *t = &c->program->tensors[tensor];
    char reduced[48];
    list_reduced(c, tensor, reduced);
    for (int axis = 0; axis < MS_MESH_AXES; axis++) {
        if (!ms_checker_is_active(c->program, t->mesh, axis) ||
            !ms_placement_is_partial(t->at[axis]))
            continue;
        if (node >= 0) {
            ms_checker_report(c, MS_CHECK_FORGOTTEN_REDUCTION, node, axis,
                              "%s %s[%s] is %sstill %s over %s", what, t->name, t->dims,
                              reduced, ms_checker_describe(t->at[axis]).text,
                              ms_mesh_axis_names[t->mesh][axis]);
        } else {
            ms_checker_report_tensor(c, MS_CHECK_FORGOTTEN_REDUCTION, tensor, axis,
                                     "%s is %sstill %s over %s", what, reduced,
                                     ms_checker_describe(t->at[axis]).text,
                                     ms_mesh_axis_names[t->mesh][axis]);
        }
    }
}

static void check_promises(ms_checker *c)
{
    const ms_program *program = c->program;
    const ms_tensor *tensors = program->tensors;
    if (program->output >= 0)
        ms_checker_require_whole(c, program->output, -1, "the program's result");
    if (program->key.block != MS_BLOCK_LAYER || program->input < 0 || program->output < 0)
        return;
    for (int axis = 0; axis < MS_MESH_AXES; axis++) {
        if (ms_checker_is_active(program, MS_DENSE_MESH, axis) &&
            !ms_placement_equal(tensors[program->input].at[axis],
                                tensors[program->output].at[axis])) {
            ms_checker_report_tensor(
                c, MS_CHECK_RESULT, program->output, axis,
                "the layer's result is %s, its input %s",
                ms_checker_describe(tensors[program->output].at[axis]).text,
                ms_checker_describe(tensors[program->input].at[axis]).text);
        }
    }
}

/* ---- the walk ---- */

static void find_roots(ms_checker *c)
{
    const ms_program *program = c->program;
    c->root = MS_NEW_ARRAY(c->arena, program->num_tensors, int);
    for (int t = 0; t < program->num_tensors; t++)
        c->root[t] = t;
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        bool again = node->pass == MS_PASS_RECOMPUTE && node->forward >= 0 &&
                     node->forward < program->num_forward_nodes && node->forward < n;
        if (node->op == MS_OP_REDISTRIBUTE && node->num_in == 1 && node->num_out == 1)
            c->root[node->out[0]] = c->root[node->in[0]];
        else if (again && program->nodes[node->forward].num_out == node->num_out)
            for (int i = 0; i < node->num_out; i++)
                c->root[node->out[i]] = c->root[program->nodes[node->forward].out[i]];
    }
}

static void check_nodes(ms_checker *c)
{
    for (int n = 0; n < c->program->num_nodes; n++) {
        int op = c->program->nodes[n].op;
        if (op == MS_OP_REDISTRIBUTE)
            ms_check_redistribution(c, n);
        else if (op == MS_OP_EXCHANGE)
            ms_check_exchange(c, n);
        else
            ms_check_operation(c, n);
    }
}

static void check_all(ms_checker *c)
{
    c->gradient = MS_NEW_ARRAY(c->arena, c->program->num_tensors, int);
    for (int t = 0; t < c->program->num_tensors; t++)
        c->gradient[t] = -1;
    if (!structure_is_sound(c))
        return;
    find_roots(c);
    check_nodes(c);
    ms_check_rows(c);
    ms_check_backward(c);
    ms_check_updates(c);
    check_promises(c);
    for (int t = 0; t < c->program->num_tensors; t++)
        check_layout(c, t);
}

int ms_program_findings(const ms_program *program, ms_check_finding *findings,
                        int capacity)
{
    ms_checker c = {.program = program,
                    .arena = ms_arena_open(),
                    .findings = findings,
                    .capacity = capacity};
    check_all(&c);
    ms_arena_close(c.arena);
    return c.num_findings;
}

bool ms_program_check(const ms_program *program, ms_check_finding *first)
{
    return ms_program_findings(program, first, first != NULL ? 1 : 0) == 0;
}

const int *ms_program_gradients(ms_arena *arena, const ms_program *program)
{
    ms_checker c = {.program = program, .arena = arena};
    check_all(&c);
    return c.gradient;
}
