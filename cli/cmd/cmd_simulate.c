/* meshsim simulate: one plan's step, task by task. */
#include "cli/cmd/simulate_trace.h"
#include "cli/options/plan_command.h"

typedef struct request {
    ms_ctx *cx;
    const ms_args *args;
    const ms_simulate_flags *flags;
    bool ignore_rules;
    ms_workload *workload;
    ms_planned planned;
    ms_prediction prediction;
    ms_simulation simulation, undisturbed, steady;
    ms_simulate_report report;
} request;

static ms_status simulate_undisturbed(request *r)
{
    ms_simulate_options options = r->simulation.options;
    if (options.num_slow == 0 && options.jitter_frac == 0.0)
        return MS_OK;
    options.wants_link_samples = false;
    options.num_slow = 0;
    options.jitter_frac = 0.0;
    r->report.undisturbed = &r->undisturbed;
    return ms_simulate(r->cx, &r->planned, &options, &r->undisturbed);
}

/* Simulates a later training step, for comparison with the first. */
static ms_status simulate_steady(request *r)
{
    ms_simulate_options options = r->simulation.options;
    if (!options.first_step)
        return MS_OK;
    options.wants_link_samples = options.first_step = false;
    r->report.steady = &r->steady;
    return ms_simulate(r->cx, &r->planned, &options, &r->steady);
}

static void fill_report(request *r, const ms_plan *plan)
{
    const ms_simulate_flags *flags = r->flags;
    const char *path = r->args->common.output;
    ms_simulate_report *report = &r->report;
    report->plan = plan;
    report->prediction = &r->prediction;
    report->simulation = &r->simulation;
    report->gantt =
        flags->no_gantt ? MS_SIMULATE_GANTT_NONE : (ms_simulate_gantt)flags->gantt.value;
    report->from_s = flags->from_s.value;
    report->to_s = flags->to_s.given ? flags->to_s.value : r->simulation.last_end_s;
    report->width = flags->width.given ? (int)flags->width.value
                                       : ms_output_width(path, MS_SIMULATE_WIDTH);
    report->colours = ms_output_takes_colours(path);
}

static ms_status simulate(request *r, const ms_plan *plan)
{
    ms_simulate_options options;
    MS_TRY(ms_simulate_flags_options(r->cx, r->flags, &options));
    options.wants_link_samples =
        r->flags->trace != NULL && r->flags->trace_format.value == MS_TRACE_PERFETTO;
    MS_TRY(ms_planned_open_listed(r->cx, r->workload, plan, &r->planned));
    MS_TRY(ms_simulate(r->cx, &r->planned, &options, &r->simulation));
    ms_simulate_note_links(r->cx, &r->simulation);
    MS_TRY(simulate_undisturbed(r));
    MS_TRY(simulate_steady(r));
    (void)ms_predict_planned(r->cx, &r->planned, &r->prediction);
    MS_TRY(ms_simulate_flags_actors(r->cx, r->flags, &r->simulation,
                                    r->prediction.num_stages, &r->report));
    fill_report(r, plan);
    if (r->report.from_s < r->simulation.last_end_s)
        return MS_OK;
    return ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                   "--from is %g ms, but the step ends at %g ms", 1e3 * r->report.from_s,
                   1e3 * r->simulation.last_end_s);
}

/* ---- output ---- */

/* Writes the simulation result, also of a plan that does not fit into memory. */
static ms_status write_result(request *r, const ms_plan *plan)
{
    ms_ctx *cx = r->cx;
    ms_output out;
    MS_TRY(ms_output_open(cx, r->args->common.output, &out));
    ms_shortfall shortfall;
    ms_status status =
        ms_plan_check_fits(cx, r->args, r->workload, &r->prediction, plan, &shortfall);
    if (!r->prediction.fits)
        r->report.shortfall = &shortfall;
    if (r->args->common.json)
        ms_simulate_write_json(&out.json, cx->arena, &r->report);
    else
        ms_simulate_print(out.file, cx->arena, &r->report);
    return ms_output_close(cx, &out, status);
}

/* Simulates a plan whose workload (model, cluster) is open; writes trace and result. */
static ms_status simulate_and_write(request *r, ms_plan *plan)
{
    MS_TRY(
        ms_plan_obey_rules(r->cx, r->workload, plan, r->ignore_rules, &r->report.broken));
    MS_TRY(ms_plan_fit_recompute(r->cx, r->workload, plan));
    MS_TRY(simulate(r, plan));
    MS_TRY(ms_simulate_trace_write(r->cx, r->flags, &r->report));
    return write_result(r, plan);
}

ms_status ms_cmd_simulate(ms_ctx *cx, ms_args *args)
{
    ms_plan_options options = {0};
    ms_simulate_flags flags = {0};
    const ms_option_set sets[] = {{"simulate", ms_simulate_option_table, &flags},
                                  {"plan", ms_plan_option_table(), &options}};
    MS_TRY(ms_args_read(cx, args, sets, 2));
    if (args->done)
        return MS_OK;
    MS_TRY(ms_simulate_flags_check(cx, &flags));
    ms_plan plan;
    MS_TRY(ms_plan_of_command(cx, args, &options, &plan));
    MS_TRY(ms_plan_options_check_output(cx, &options, &plan, flags.trace));
    MS_TRY(ms_output_check_differ(cx, args->common.output, flags.trace));
    request *r = MS_NEW(cx->arena, request);
    r->cx = cx;
    r->args = args;
    r->flags = &flags;
    r->ignore_rules = r->report.lists_rules = options.ignore_rules;
    MS_TRY(ms_plan_open_workload(cx, &plan, &r->workload));
    r->report.own_sync = flags.optimizer_sync.given;
    r->workload->stack = ms_simulate_flags_stack(cx->arena, &flags, r->workload->stack);
    ms_status status = simulate_and_write(r, &plan);
    ms_workload_close(r->workload);
    return status;
}
