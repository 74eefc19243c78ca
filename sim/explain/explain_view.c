#include "sim/explain/explain_view.h"

#include <string.h>

bool ms_explain_block_is(const ms_explanation *e, const ms_explain_block *block,
                         const char *name)
{
    if (strcmp(block->name, name) == 0)
        return true;
    return strcmp(name, "layer") == 0 && block == ms_explain_main_block(e);
}

ms_status ms_explain_check_block(ms_ctx *cx, const ms_explanation *e, const char *name)
{
    const char *known = "";
    for (int i = 0; i < e->num_blocks; i++) {
        if (ms_explain_block_is(e, &e->blocks[i], name))
            return MS_OK;
        known = ms_arena_printf(cx->arena, "%s%s%s", known, i == 0 ? "" : ", ",
                                e->blocks[i].name);
    }
    ms_status status =
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the plan has no part \"%s\"", name);
    ms_hint(cx, "its parts are %s", known);
    return status;
}

const char *ms_explain_state_axis(const ms_explanation *e, bool expert)
{
    const ms_plan *plan = e->plan;
    ms_traffic_group group = expert && plan->ep * plan->etp * plan->size[MS_TP] > 1
                                 ? MS_TRAFFIC_EXPERT_FSDP
                                 : MS_TRAFFIC_FSDP;
    if (plan->zero < 1 || ms_traffic_span(e->planned, e->rank, group)->size <= 1)
        return NULL;
    return ms_traffic_group_name(plan, group);
}

const char *ms_explain_pass(const ms_explain_collective *c)
{
    bool program = c->entry->cause == MS_CAUSE_NODES || c->num_causes == 0;
    return program ? ms_traffic_phase_names[c->entry->phase] : c->causes[0].pass;
}

const char *ms_tensor_shape_text(ms_arena *arena, const ms_program *program, int tensor,
                                 bool local)
{
    const char *text = "";
    for (const char *c = program->tensors[tensor].dims; *c != '\0'; c++) {
        double size =
            local ? ms_tensor_local_size(program, tensor, *c) : program->size[*c - '0'];
        text =
            ms_arena_printf(arena, "%s%s%.10g", text, text[0] == '\0' ? "" : "x", size);
    }
    return text;
}

const char *ms_tensor_maker(const ms_program *program, int tensor)
{
    const ms_tensor *t = &program->tensors[tensor];
    if (t->role == MS_ROLE_WEIGHT)
        return "weight";
    if (t->producer < 0)
        return "input";
    return ms_op_names[program->nodes[t->producer].op];
}

bool ms_tensor_is_forward(const ms_program *program, const ms_tensor *tensor)
{
    return tensor->role == MS_ROLE_WEIGHT ||
           (tensor->role == MS_ROLE_ACTIVATION &&
            tensor->producer < program->num_forward_nodes);
}
