#include "sim/request/simulate_answer.h"

static ms_status simulate_undisturbed(ms_ctx *cx, ms_simulate_answer *a)
{
    ms_simulate_options options = a->simulation.options;
    if (options.num_slow == 0 && options.jitter_frac == 0.0)
        return MS_OK;
    options.wants_link_samples = false;
    options.num_slow = 0;
    options.jitter_frac = 0.0;
    a->report.undisturbed = &a->undisturbed;
    return ms_simulate(cx, &a->planned, &options, &a->undisturbed);
}

/* Simulates a later training step, for comparison with the first. */
static ms_status simulate_steady(ms_ctx *cx, ms_simulate_answer *a)
{
    ms_simulate_options options = a->simulation.options;
    if (!options.first_step)
        return MS_OK;
    options.wants_link_samples = options.first_step = false;
    a->report.steady = &a->steady;
    return ms_simulate(cx, &a->planned, &options, &a->steady);
}

static void fill_report(const ms_simulate_flags *flags, ms_simulate_answer *a)
{
    ms_simulate_report *report = &a->report;
    report->plan = &a->plan;
    report->prediction = &a->prediction;
    report->simulation = &a->simulation;
    report->gantt =
        flags->no_gantt ? MS_SIMULATE_GANTT_NONE : (ms_simulate_gantt)flags->gantt.value;
    report->from_s = flags->from_s.value;
    report->to_s = flags->to_s.given ? flags->to_s.value : a->simulation.last_end_s;
}

static ms_status simulate(ms_ctx *cx, const ms_simulate_flags *flags,
                          ms_simulate_answer *a)
{
    ms_simulate_options options;
    MS_TRY(ms_simulate_flags_options(cx, flags, &options));
    options.wants_link_samples =
        flags->trace != NULL && flags->trace_format.value == MS_TRACE_PERFETTO;
    MS_TRY(ms_planned_open_listed(cx, a->workload, &a->plan, &a->planned));
    MS_TRY(ms_simulate(cx, &a->planned, &options, &a->simulation));
    ms_simulate_note_links(cx, &a->simulation);
    MS_TRY(simulate_undisturbed(cx, a));
    MS_TRY(simulate_steady(cx, a));
    (void)ms_predict_planned(cx, &a->planned, &a->prediction);
    MS_TRY(ms_simulate_flags_actors(cx, flags, &a->simulation, a->prediction.num_stages,
                                    &a->report));
    fill_report(flags, a);
    if (a->report.from_s < a->simulation.last_end_s)
        return MS_OK;
    return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                   "--from is %g ms, but the step ends at %g ms", 1e3 * a->report.from_s,
                   1e3 * a->simulation.last_end_s);
}

ms_status ms_simulate_ask(ms_ctx *cx, const ms_simulate_flags *flags, const ms_plan *plan,
                          ms_simulate_answer *out)
{
    *out = (ms_simulate_answer){.plan = *plan};
    out->report.lists_rules = flags->ignore_rules;
    out->report.own_sync = flags->optimizer_sync.given;
    MS_TRY(ms_plan_open_workload(cx, &out->plan, &out->workload));
    out->workload->stack =
        ms_simulate_flags_stack(cx->arena, flags, out->workload->stack);
    MS_TRY(ms_plan_obey_rules(cx, out->workload, &out->plan, flags->ignore_rules,
                              &out->report.broken));
    MS_TRY(ms_plan_fit_recompute(cx, out->workload, &out->plan));
    MS_TRY(simulate(cx, flags, out));
    out->is_complete = true;
    ms_status status = ms_plan_check_fits(cx, out->workload, &out->prediction, &out->plan,
                                          &out->shortfall);
    if (!out->prediction.fits)
        out->report.shortfall = &out->shortfall;
    return status;
}

void ms_simulate_answer_close(ms_simulate_answer *answer)
{
    if (answer->workload != NULL)
        ms_workload_close(answer->workload);
}
