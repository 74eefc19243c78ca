/* Writes the explanation of a plan as JSON, schema meshsim.explain/1. */
#include "sim/explain/explain_priv.h"
#include "sim/explain/explain_reason.h"
#include "sim/explain/explain_view.h"
#include "sim/step/prediction_text.h"

#include <string.h>

/* ---- blocks ---- */

static void write_placements(ms_jout *out, ms_arena *arena, const ms_program *program,
                             const ms_tensor *tensor)
{
    ms_jout_begin_object_field(out, "placement");
    for (int axis = 0; axis < MS_MESH_AXES; axis++) {
        if (program->mesh_size[tensor->mesh][axis] > 1)
            ms_jout_text_field(out, ms_mesh_axis_names[tensor->mesh][axis],
                               ms_placement_word(arena, tensor->at[axis]));
    }
    ms_jout_end_object(out);
}

static void write_shape(ms_jout *out, const char *key, const ms_program *program, int t,
                        bool local)
{
    ms_jout_begin_array_field(out, key);
    for (const char *c = program->tensors[t].dims; *c != '\0'; c++)
        ms_jout_number(out, local ? ms_tensor_local_size(program, t, *c)
                                  : program->size[*c - '0']);
    ms_jout_end_array(out);
}

static void write_tensor(ms_jout *out, ms_arena *arena, const ms_program *program, int t)
{
    static const char *const roles[] = {"activation", "weight", "gradient",
                                        "weight_gradient", "state"};
    const ms_tensor *tensor = &program->tensors[t];
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "index", t);
    ms_jout_text_field(out, "name", tensor->name);
    ms_jout_text_field(out, "role", roles[tensor->role]);
    ms_jout_text_field(out, "made_by", ms_tensor_maker(program, t));
    ms_jout_text_field(out, "dims", tensor->dims);
    write_shape(out, "global_shape", program, t, false);
    write_placements(out, arena, program, tensor);
    write_shape(out, "local_shape", program, t, true);
    ms_jout_number_field(out, "element_bytes", tensor->element_bytes);
    ms_jout_number_field(out, "local_bytes", ms_tensor_local_bytes(program, t));
    ms_jout_bool_field(out, "kept_for_backward", tensor->saved);
    ms_jout_end_object(out);
}

static void write_indices(ms_jout *out, const char *key, const int *indices, int num)
{
    ms_jout_begin_array_field(out, key);
    for (int i = 0; i < num; i++)
        ms_jout_number(out, indices[i]);
    ms_jout_end_array(out);
}

static void write_node(ms_jout *out, ms_arena *arena, const ms_explanation *e,
                       const ms_program *program, const ms_node *node)
{
    static const char *const passes[] = {"forward", "recompute", "backward", "weight",
                                         "optimizer"};
    bool moves = node->op == MS_OP_REDISTRIBUTE || node->op == MS_OP_EXCHANGE;
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "pass", passes[node->pass]);
    ms_jout_text_field(out, "op", ms_op_names[node->op]);
    ms_jout_text_field(out, "name", node->name);
    write_indices(out, "in", node->in, node->num_in);
    write_indices(out, "out", node->out, node->num_out);
    if (moves)
        ms_jout_text_field(out, "change", ms_node_change_text(arena, program, node));
    ms_jout_number_field(out, "flop", ms_node_flop(program, node));
    ms_jout_number_field(out, "compute_s",
                         ms_node_compute_s(program, node, &e->planned->workload->pricer));
    ms_jout_end_object(out);
}

static void write_block(ms_jout *out, ms_arena *arena, const ms_explanation *e,
                        const ms_explain_block *block)
{
    const ms_program *program = block->program;
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "part", block->name);
    ms_jout_number_field(out, "layers", (double)block->num_layers);
    ms_jout_number_field(out, "first_rank", block->first_rank);
    ms_jout_text_field(out, "recompute",
                       ms_recompute_names[ms_layer_mode_recompute(block->held.mode)]);
    ms_jout_text_field(out, "states_over", ms_explain_state_axis(e, false));
    ms_jout_text_field(out, "expert_states_over", ms_explain_state_axis(e, true));
    ms_jout_begin_array_field(out, "tensors");
    for (int t = 0; t < program->num_tensors; t++)
        write_tensor(out, arena, program, t);
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "nodes");
    for (int n = 0; n < program->num_nodes; n++)
        write_node(out, arena, e, program, &program->nodes[n]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

/* ---- collectives ---- */

static void write_causes(ms_jout *out, const ms_explain_collective *c)
{
    ms_jout_begin_array_field(out, "why");
    for (int i = 0; i < c->num_causes; i++) {
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "pass", c->causes[i].pass);
        ms_jout_text_field(out, "tensor", c->causes[i].tensor);
        ms_jout_text_field(out, "change", c->causes[i].change);
        ms_jout_text_field(out, "because", c->causes[i].why);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static void write_collective(ms_jout *out, const ms_explain_collective *c)
{
    const ms_traffic_entry *entry = c->entry;
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "rank", c->rank);
    ms_jout_text_field(out, "part", c->block);
    ms_jout_text_field(out, "pass", ms_explain_pass(c));
    ms_jout_text_field(out, "phase", ms_traffic_phase_names[entry->phase]);
    ms_jout_text_field(out, "axis", c->axis);
    ms_jout_text_field(out, "collective", ms_collective_names[entry->collective]);
    ms_jout_text_field(out, "algorithm", ms_algorithm_name(entry->algorithm));
    ms_jout_number_field(out, "chunks", entry->num_chunks);
    ms_jout_number_field(out, "group_size", (double)c->span->size);
    ms_jout_number_field(out, "ranks_per_node", (double)c->span->per_domain[0]);
    ms_jout_text_field(out, "tier", c->tier);
    ms_jout_number_field(out, "size_bytes", entry->size_bytes);
    ms_jout_number_field(out, "sent_bytes", entry->wire_bytes);
    ms_jout_number_field(out, "nic_bytes", entry->nic_bytes);
    ms_jout_number_field(out, "one_s", entry->one_s);
    ms_jout_number_field(out, "per_part", entry->per_block);
    ms_jout_number_field(out, "count", entry->count);
    ms_jout_number_field(out, "comm_s", entry->count * entry->one_s);
    ms_jout_number_field(out, "exposed_s", entry->exposed_s);
    write_causes(out, c);
    ms_jout_end_object(out);
}

/* ---- figures and answers ---- */

const char *ms_explain_unit(const ms_explain_figure *figure)
{
    static const char *const units[] = {"B", "B/s", "s", "FLOP/s", ""};
    return units[figure->unit];
}

static void write_figure(ms_jout *out, const ms_explain_figure *f)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "file", f->file);
    ms_jout_text_field(out, "key", f->key);
    ms_jout_text_field(out, "help", f->help);
    ms_jout_number_field(out, "value", f->value);
    ms_jout_text_field(out, "unit", ms_explain_unit(f));
    ms_jout_text_field(out, "from", ms_provenance_names[f->from]);
    ms_jout_text_field(out, "source", f->source);
    ms_jout_number_field(out, "step_effect", f->step_effect);
    ms_jout_number_field(out, "memory_effect", f->memory_effect);
    ms_jout_end_object(out);
}

static void write_answer(ms_jout *out, const ms_explain_answer *answer)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "key", answer->key);
    ms_jout_text_field(out, "question", answer->question);
    ms_jout_text_field(out, "answer", answer->answer);
    ms_jout_end_object(out);
}

static bool wants_block(const ms_explanation *e, const ms_explain_view *view, int i)
{
    return view->block == NULL || ms_explain_block_is(e, &e->blocks[i], view->block);
}

static bool wants_collective(const ms_explanation *e, const ms_explain_view *view,
                             const ms_explain_collective *c)
{
    for (int i = 0; i < e->num_blocks; i++)
        if (c->block != NULL && strcmp(e->blocks[i].name, c->block) == 0)
            return wants_block(e, view, i);
    return view->block == NULL;
}

static void write_lists(ms_jout *out, ms_arena *arena, const ms_explanation *e,
                        const ms_explain_view *view)
{
    ms_jout_begin_array_field(out, "parts");
    for (int i = 0; i < e->num_blocks && view->tensors; i++)
        if (wants_block(e, view, i))
            write_block(out, arena, e, &e->blocks[i]);
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "collectives");
    for (int i = 0; i < e->num_collectives && view->collectives; i++)
        if (wants_collective(e, view, &e->collectives[i]))
            write_collective(out, &e->collectives[i]);
    ms_jout_end_array(out);
}

void ms_explanation_write_fields(ms_jout *out, ms_arena *arena, const ms_explanation *e,
                                 const ms_explain_view *view)
{
    ms_jout_text_field(out, "schema", "meshsim.explain/1");
    ms_jout_number_field(out, "step_s", e->prediction.step_s);
    ms_jout_number_field(out, "step_s_low", e->prediction.step_low_s);
    ms_jout_number_field(out, "step_s_high", e->prediction.step_high_s);
    ms_jout_text_field(out, "interval", ms_interval_text(arena, e->plan, &e->prediction));
    ms_jout_number_field(out, "peak_bytes", e->prediction.peak_bytes);
    ms_jout_number_field(out, "device_bytes",
                         e->prediction.peak_bytes + e->prediction.outside_bytes);
    ms_jout_bool_field(out, "fits", e->prediction.fits);
    ms_jout_number_field(out, "rank", e->rank);
    write_lists(out, arena, e, view);
    ms_jout_begin_array_field(out, "axes");
    for (int i = 0; i < e->num_axes; i++) {
        ms_jout_begin_object(out);
        ms_axis_write_fields(out, &e->axes[i]);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "coefficients");
    for (int i = 0; i < e->num_figures; i++)
        write_figure(out, &e->figures[i]);
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "answers");
    for (int i = 0; i < MS_NUM_ANSWERS && view->answers; i++)
        write_answer(out, &e->answers[i]);
    ms_jout_end_array(out);
}
