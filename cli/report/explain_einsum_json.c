/* Writes the explanation of an einsum as JSON of schema meshsim.explain/1. */
#include "cli/report/explain_einsum_priv.h"
#include "topo/mesh_text.h"

#include <string.h>

static void write_shape(ms_jout *out, const char *key, const long *size, int num_dims)
{
    ms_jout_begin_array_field(out, key);
    for (int i = 0; i < num_dims; i++)
        ms_jout_number(out, (double)size[i]);
    ms_jout_end_array(out);
}

static void write_spec(ms_jout *out, const einsum_report *report, const char *key,
                       const ms_global_tensor *tensor, const ms_spec *spec)
{
    const char *why = NULL;
    long local[MS_MAX_TENSOR_DIMS];
    ms_spec_largest_size(&report->mesh, spec, tensor, local);
    const char *partition =
        ms_spec_partition_text(report->arena, &report->mesh, tensor, spec, &why);
    ms_jout_begin_object_field(out, key);
    ms_jout_text_field(out, "placement", ms_einsum_spec_text(report, spec));
    ms_jout_text_field(out, "partition_spec", partition);
    ms_jout_text_field(out, "no_partition_spec", partition == NULL ? why : NULL);
    ms_jout_text_field(out, "needs_strided",
                       ms_spec_needs_strided(report->arena, &report->mesh, spec));
    write_shape(out, "local_shape", local, tensor->num_dims);
    ms_jout_number_field(out, "local_bytes",
                         ms_spec_local_bytes(&report->mesh, spec, tensor));
    ms_jout_end_object(out);
}

static void write_tensor(ms_jout *out, const einsum_report *report,
                         const ms_global_tensor *tensor, const ms_einsum_move *move,
                         const char *einsum)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "name", tensor->name);
    ms_jout_text_field(out, "dims", tensor->dims);
    if (einsum != NULL)
        ms_jout_text_field(out, "einsum", einsum);
    write_shape(out, "global_shape", tensor->size, tensor->num_dims);
    write_spec(out, report, "from", tensor, &move->from);
    write_spec(out, report, "to", tensor, &move->to);
    ms_jout_bool_field(out, "optimal", move->plan.is_optimal);
    ms_jout_end_object(out);
}

/* ---- the problem ---- */

static void write_mesh(ms_jout *out, const einsum_report *report)
{
    ms_jout_begin_array_field(out, "mesh");
    for (int axis = 0; axis < report->mesh.num_axes; axis++) {
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "axis", report->mesh.axes[axis].name);
        ms_jout_number_field(out, "size", (double)report->mesh.axes[axis].size);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static void write_letters(ms_jout *out, const einsum_report *report)
{
    const ms_einsum *einsum = &report->problem.einsum;
    ms_jout_begin_array_field(out, "letters");
    for (const char *c = einsum->letters; *c != '\0'; c++) {
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "letter", ms_arena_strndup(report->arena, c, 1));
        ms_jout_number_field(out, "size", (double)report->size[(unsigned char)*c]);
        ms_jout_bool_field(out, "is_default", report->is_default[(unsigned char)*c]);
        ms_jout_text_field(out, "kind",
                           ms_letter_kind_names[ms_einsum_letter_kind(einsum, *c)]);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

/* ---- the strategy ---- */

static void write_spread(ms_jout *out, const einsum_report *report, int axis,
                         ms_spread spread)
{
    bool by_letter = spread.letter != MS_WHOLE && spread.letter != MS_LINEAR;
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "axis", report->mesh.axes[axis].name);
    ms_jout_text_field(out, "letter",
                       by_letter ? ms_arena_strndup(report->arena, &spread.letter, 1)
                                 : NULL);
    if (spread.split_factor > 1)
        ms_jout_number_field(out, "split_factor", spread.split_factor);
    if (spread.letter == MS_LINEAR)
        ms_jout_number_field(out, "partial_input", spread.input + 1);
    ms_jout_text_field(out, "rule", ms_einsum_rule_text(report, spread));
    ms_jout_end_object(out);
}

static void write_choice(ms_jout *out, const einsum_report *report, const char *key,
                         const ms_einsum_choice *choice)
{
    ms_jout_begin_object_field(out, key);
    ms_jout_number_field(out, "forward_s", choice->total_s);
    ms_jout_number_field(out, "compute_s", choice->compute_s);
    ms_jout_text_field(out, "output", ms_einsum_spec_text(report, &choice->output.to));
    ms_jout_begin_array_field(out, "axes");
    for (int axis = 0; axis < report->mesh.num_axes; axis++)
        write_spread(out, report, axis, choice->spread[axis]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

static void write_strategy(ms_jout *out, const einsum_report *report)
{
    const ms_einsum_strategy *strategy = &report->strategy;
    ms_jout_bool_field(out, "legal_as_given", strategy->is_legal);
    ms_jout_begin_array_field(out, "conflicts");
    for (int axis = 0; axis < report->mesh.num_axes; axis++) {
        if (strategy->conflict[axis] == MS_CONFLICT_NONE)
            continue;
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "axis", report->mesh.axes[axis].name);
        ms_jout_text_field(out, "conflict",
                           ms_einsum_conflict_texts[strategy->conflict[axis]]);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_bool_field(out, "exhaustive", strategy->is_exhaustive);
    write_choice(out, report, "strategy", &strategy->chosen);
    if (strategy->has_cheaper) {
        write_choice(out, report, "cheaper", &strategy->cheaper);
    } else {
        ms_jout_key(out, "cheaper");
        ms_jout_null(out);
    }
}

/* ---- tensors ---- */

static void write_tensors(ms_jout *out, const einsum_report *report)
{
    const ms_einsum_problem *problem = &report->problem;
    const ms_einsum_choice *choice = &report->strategy.chosen;
    ms_jout_begin_array_field(out, "inputs");
    for (int i = 0; i < problem->einsum.num_inputs; i++)
        write_tensor(out, report, &problem->inputs[i], &choice->inputs[i], NULL);
    ms_jout_end_array(out);
    ms_jout_key(out, "output");
    write_tensor(out, report, &problem->output, &choice->output, NULL);
    ms_jout_key(out, "output_gradient");
    write_tensor(out, report, &problem->output, &report->backward.output, NULL);
    ms_jout_begin_array_field(out, "input_gradients");
    for (int i = 0; i < problem->einsum.num_inputs; i++) {
        const ms_einsum_input_gradient *gradient = &report->backward.inputs[i];
        write_tensor(out, report, &problem->inputs[i], &gradient->move,
                     ms_einsum_text(report->arena, &gradient->einsum));
    }
    ms_jout_end_array(out);
}

/* ---- costs ---- */

static void write_axes(ms_jout *out, const einsum_report *report, ms_axis_set axes)
{
    ms_jout_begin_array_field(out, "axes");
    for (int axis = 0; axis < report->mesh.num_axes; axis++)
        if ((axes & (1U << axis)) != 0)
            ms_jout_text(out, report->mesh.axes[axis].name);
    ms_jout_end_array(out);
}

static void write_event(ms_jout *out, const einsum_report *report,
                        const einsum_event *event)
{
    const ms_redistribute_step *step = event->step;
    bool local = ms_change_is_local(step->change);
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "pass", event->backward ? "backward" : "forward");
    ms_jout_text_field(out, "tensor", event->tensor);
    ms_jout_text_field(out, "change", ms_change_names[step->change]);
    write_axes(out, report, step->axes);
    ms_jout_number_field(out, "ranks",
                         (double)ms_axis_set_ranks(&report->mesh, step->axes));
    ms_jout_text_field(
        out, "tier",
        local ? NULL : ms_axis_set_tier(&report->mesh, report->cluster, step->axes));
    ms_jout_text_field(out, "from", ms_einsum_spec_text(report, &step->from));
    ms_jout_text_field(out, "to", ms_einsum_spec_text(report, &step->to));
    ms_jout_number_field(out, "size_bytes", step->size_bytes);
    ms_jout_number_field(out, "sent_bytes", ms_einsum_sent_bytes(report, step));
    ms_jout_number_field(out, "time_s", step->seconds);
    ms_jout_end_object(out);
}

static void write_costs(ms_jout *out, const einsum_report *report)
{
    ms_jout_begin_array_field(out, "collectives");
    for (int i = 0; i < report->num_events; i++)
        write_event(out, report, &report->events[i]);
    ms_jout_end_array(out);
    ms_jout_begin_object_field(out, "compute");
    ms_jout_number_field(out, "forward_flop", report->forward_flop);
    ms_jout_number_field(out, "backward_flop", report->backward_flop);
    ms_jout_number_field(out, "forward_s", report->strategy.chosen.compute_s);
    ms_jout_number_field(out, "backward_s", report->backward_compute_s);
    ms_jout_end_object(out);
    ms_jout_begin_array_field(out, "totals");
    for (int i = 0; i < report->num_totals; i++) {
        const einsum_total *total = &report->totals[i];
        ms_jout_begin_object(out);
        write_axes(out, report, total->axes);
        ms_jout_number_field(out, "forward_s", total->forward_s);
        ms_jout_number_field(out, "backward_s", total->backward_s);
        ms_jout_number_field(out, "sent_bytes", total->sent_bytes);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static void write_setting(ms_jout *out, const einsum_report *report)
{
    ms_jout_text_field(out, "dtype", ms_dtype_names[report->dtype]);
    ms_jout_text_field(out, "cluster", report->cluster->name);
    write_mesh(out, report);
}

void ms_einsum_write_json(ms_jout *out, const einsum_report *report)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.explain/1");
    ms_jout_begin_object_field(out, "einsum");
    ms_jout_text_field(out, "text",
                       ms_einsum_text(report->arena, &report->problem.einsum));
    write_setting(out, report);
    write_letters(out, report);
    write_strategy(out, report);
    write_tensors(out, report);
    write_costs(out, report);
    ms_jout_end_object(out);
    ms_jout_end_object(out);
}

void ms_redistribution_report_write_json(ms_jout *out, const einsum_report *report,
                                         const ms_einsum_move *move)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.explain/1");
    ms_jout_begin_object_field(out, "redistribution");
    write_setting(out, report);
    ms_jout_key(out, "tensor");
    write_tensor(out, report, &report->problem.output, move, NULL);
    ms_jout_number_field(out, "total_s", move->plan.seconds);
    ms_jout_begin_array_field(out, "collectives");
    for (int i = 0; i < report->num_events; i++)
        write_event(out, report, &report->events[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
    ms_jout_end_object(out);
}
