#include "cli/report/report.h"

#include "base/print.h"
#include "base/table.h"
#include "costmodel/program/program_check.h"
#include "costmodel/tensor/spmd.h"
#include "sim/explain/explain_reason.h"
#include "sim/explain/explain_view.h"

#define MAX_FINDINGS 100

/* A block with the findings of the type checker on its program. */
typedef struct typed_block {
    const ms_explain_block *block;
    const ms_program *program;
    const int *gradients; /* [tensor] index of its gradient (ms_program_gradients) */
    int num_findings;     /* number of findings; the first MAX_FINDINGS are listed */
    ms_check_finding findings[MAX_FINDINGS];
} typed_block;

/* A change of placement in the forward pass, with its backward. */
typedef struct type_change {
    const char *tensor, *axis;
    const ms_spmd_change *forward, *backward;
} type_change;

static bool is_active(const ms_program *program, int mesh, int axis)
{
    return program->mesh_size[mesh][axis] > 1;
}

/* Whether axis `column` (0..2: dense mesh, 3..5: expert) has many ranks, any tensors. */
static bool is_shown(const ms_program *program, int column)
{
    int mesh = column / MS_MESH_AXES;
    if (!is_active(program, mesh, column % MS_MESH_AXES))
        return false;
    for (int t = 0; t < program->num_tensors; t++)
        if (program->tensors[t].mesh == mesh)
            return true;
    return false;
}

/* Finds the SPMD type of a tensor on an axis; false if it has none (partial maxima). */
static bool type_of(const typed_block *p, int tensor, int axis, ms_spmd_type *type)
{
    int gradient = p->gradients[tensor];
    bool partial =
        gradient >= 0 && p->program->tensors[gradient].at[axis].kind == MS_PARTIAL_SUM;
    return ms_spmd_of_placement(p->program->tensors[tensor].at[axis], partial, type);
}

static const char *type_word(const typed_block *p, int tensor, int axis)
{
    ms_spmd_type type;
    return type_of(p, tensor, axis, &type) ? ms_spmd_type_names[type] : "none";
}

static bool find_change(const typed_block *p, const ms_node *node, type_change *out)
{
    ms_spmd_type type;
    if (node->op != MS_OP_REDISTRIBUTE || node->pass != MS_PASS_FORWARD)
        return false;
    const ms_tensor *tensor = &p->program->tensors[node->in[0]];
    const ms_spmd_change *change = ms_spmd_of_redistribution(node->from, node->to);
    if (change == NULL || !is_active(p->program, tensor->mesh, node->axis))
        return false;
    if (type_of(p, node->out[0], node->axis, &type)) {
        const ms_spmd_change *exact = ms_spmd_find(change->primitive, change->from, type);
        change = exact != NULL ? exact : change;
    }
    *out = (type_change){tensor->name, ms_mesh_axis_names[tensor->mesh][node->axis],
                         change, ms_spmd_backward(change)};
    return true;
}

/* ---- text ---- */

static void print_types(FILE *out, ms_arena *arena, const typed_block *p)
{
    ms_table *table = MS_TABLE(arena, "lll", "tensor", "made by", "dims");
    for (int i = 0; i < 2 * MS_MESH_AXES; i++)
        if (is_shown(p->program, i))
            MS_COLUMNS(table, "l",
                       ms_mesh_axis_names[i / MS_MESH_AXES][i % MS_MESH_AXES]);
    for (int t = 0; t < p->program->num_tensors; t++) {
        const ms_tensor *tensor = &p->program->tensors[t];
        if (!ms_tensor_is_forward(p->program, tensor))
            continue;
        ms_table_cells(table, "%s\t%s\t%s", tensor->name, ms_tensor_maker(p->program, t),
                       tensor->dims);
        for (int i = 0; i < 2 * MS_MESH_AXES; i++) {
            if (is_shown(p->program, i)) {
                ms_table_cell(table, "%s",
                              tensor->mesh == i / MS_MESH_AXES
                                  ? type_word(p, t, i % MS_MESH_AXES)
                                  : "-");
            }
        }
    }
    ms_table_print(table, out);
}

static const char *change_text(ms_arena *arena, const ms_spmd_change *change)
{
    const char *name = ms_spmd_primitive_names[change->primitive];
    return ms_arena_printf(
        arena, "%s: %s to %s", change->local != NULL ? change->local : name,
        ms_spmd_type_names[change->from], ms_spmd_type_names[change->to]);
}

static void print_changes(FILE *out, ms_arena *arena, const typed_block *p)
{
    ms_table *table = MS_TABLE(arena, "llLL", "change of", "over", "forward", "backward");
    int num_changes = 0;
    for (int n = 0; n < p->program->num_forward_nodes; n++) {
        type_change change;
        if (!find_change(p, &p->program->nodes[n], &change))
            continue;
        num_changes++;
        ms_table_cells(table, "%s\t%s\t%s\t%s", change.tensor, change.axis,
                       change_text(arena, change.forward),
                       change_text(arena, change.backward));
    }
    if (num_changes > 0) {
        fputc('\n', out);
        ms_table_print(table, out);
    }
}

static void print_findings(FILE *out, const typed_block *p)
{
    ms_print(out, p->num_findings == 0 ? "\nno finding\n" : "\n%d finding%s\n",
             p->num_findings, p->num_findings == 1 ? "" : "s");
    for (int i = 0; i < p->num_findings && i < MAX_FINDINGS; i++)
        ms_print(out, "  %s\n", p->findings[i].text);
}

static void print_block(FILE *out, ms_arena *arena, const typed_block *p)
{
    ms_print(out, "types of %s\n", p->block->name);
    print_types(out, arena, p);
    print_changes(out, arena, p);
    print_findings(out, p);
}

/* ---- JSON ---- */

static void write_tensor(ms_jout *json, const typed_block *p, int t)
{
    const ms_tensor *tensor = &p->program->tensors[t];
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "name", tensor->name);
    ms_jout_text_field(json, "made_by", ms_tensor_maker(p->program, t));
    ms_jout_text_field(json, "dims", tensor->dims);
    ms_jout_begin_object_field(json, "types");
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        if (is_active(p->program, tensor->mesh, axis))
            ms_jout_text_field(json, ms_mesh_axis_names[tensor->mesh][axis],
                               type_word(p, t, axis));
    ms_jout_end_object(json);
    ms_jout_end_object(json);
}

static void write_half(ms_jout *json, const char *key, const ms_spmd_change *change)
{
    ms_jout_begin_object_field(json, key);
    ms_jout_text_field(json, "primitive", ms_spmd_primitive_names[change->primitive]);
    ms_jout_text_field(json, "local", change->local);
    ms_jout_text_field(json, "from", ms_spmd_type_names[change->from]);
    ms_jout_text_field(json, "to", ms_spmd_type_names[change->to]);
    ms_jout_end_object(json);
}

static void write_change(ms_jout *json, const type_change *change)
{
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "tensor", change->tensor);
    ms_jout_text_field(json, "axis", change->axis);
    write_half(json, "forward", change->forward);
    write_half(json, "backward", change->backward);
    ms_jout_end_object(json);
}

static void write_block(ms_jout *json, const typed_block *p)
{
    type_change change;
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "part", p->block->name);
    ms_jout_begin_array_field(json, "tensors");
    for (int t = 0; t < p->program->num_tensors; t++)
        if (ms_tensor_is_forward(p->program, &p->program->tensors[t]))
            write_tensor(json, p, t);
    ms_jout_end_array(json);
    ms_jout_begin_array_field(json, "changes");
    for (int n = 0; n < p->program->num_forward_nodes; n++)
        if (find_change(p, &p->program->nodes[n], &change))
            write_change(json, &change);
    ms_jout_end_array(json);
    ms_jout_number_field(json, "num_findings", p->num_findings);
    ms_jout_begin_array_field(json, "findings");
    for (int i = 0; i < p->num_findings && i < MAX_FINDINGS; i++) {
        const ms_check_finding *finding = &p->findings[i];
        ms_jout_begin_object(json);
        ms_jout_number_field(json, "node", finding->node);
        ms_jout_text_field(json, "axis", finding->axis);
        ms_jout_text_field(json, "kind", ms_check_kind_names[finding->kind]);
        ms_jout_text_field(json, "text", finding->text);
        ms_jout_end_object(json);
    }
    ms_jout_end_array(json);
    ms_jout_end_object(json);
}

/* ---- all blocks ---- */

ms_status ms_explain_types(ms_ctx *cx, ms_output *out, const ms_explanation *e,
                           const char *block, bool json)
{
    typed_block *p = MS_NEW(cx->arena, typed_block);
    int num_findings = 0;
    if (json) {
        ms_jout_begin_object(&out->json);
        ms_jout_text_field(&out->json, "schema", "meshsim.types/1");
        ms_jout_begin_array_field(&out->json, "parts");
    }
    for (int i = 0; i < e->num_blocks; i++) {
        if (block != NULL && !ms_explain_block_is(e, &e->blocks[i], block))
            continue;
        p->block = &e->blocks[i];
        p->program = p->block->program;
        p->gradients = ms_program_gradients(cx->arena, p->program);
        p->num_findings = ms_program_findings(p->program, p->findings, MAX_FINDINGS);
        num_findings += p->num_findings;
        if (json)
            write_block(&out->json, p);
        else
            print_block(out->file, cx->arena, p);
    }
    if (json) {
        ms_jout_end_array(&out->json);
        ms_jout_end_object(&out->json);
    }
    if (num_findings == 0)
        return MS_OK;
    return ms_fail(cx, MS_ECHECK, MS_NOWHERE,
                   "the programs of this plan have %d finding%s of the type checker",
                   num_findings, num_findings == 1 ? "" : "s");
}
