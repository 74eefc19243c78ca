/* meshsim report: one self-contained HTML page that defends the choice of a plan. */
#include "base/print.h"
#include "cli/cmd/report_campaign.h"
#include "cli/cmd/report_input.h"
#include "cli/options/output.h"
#include "cli/options/plan_command.h"
#include "sim/request/memory_options.h"
#include "sim/simulate/predict_events.h"

#include <math.h>
#include <string.h>

#define DEFAULT_PAGE "report.html"

typedef struct report_flags {
    ms_opt_integer point;
} report_flags;

static const ms_option report_table[] = {
    MS_OPT_INTEGER(
        report_flags, point, "--point", "N", 0, MS_MAX_SWEEP_POINTS,
        "the point of a sweep that the page is about, as its JSON counts them "
        "from 0 (the cheapest, without money the fastest, of its first model)"),
    {0},
};

typedef struct request {
    ms_ctx *cx;
    const ms_args *args;
    const ms_plan_options *options;
    bool asks_campaign; /* file and options ask for input.campaign */
    ms_report_input input;
    const char *path; /* the page */
    ms_page page;
    ms_prediction prediction;
    ms_explanation explanation;
    ms_advice advice;
    ms_timeline timeline;
    ms_planned drawn; /* which `timeline` is of */
    ms_campaign_answer answer;
} request;

/* ---- the facts ---- */

/* The rule of the file's search, whose headroom is what its limit leaves of a device. */
static void set_memory_rule(request *r, ms_workload *workload)
{
    ms_memory_rule rule = r->input.memory;
    if (isfinite(r->input.memory_limit_bytes))
        rule.headroom_bytes = fmax(
            workload->cluster->device.memory_bytes - r->input.memory_limit_bytes, 0.0);
    ms_workload_set_memory_rule(workload, &rule);
}

static ms_status predict(request *r, ms_workload *workload)
{
    ms_plan *plan = &r->input.plan;
    const ms_explain_options all = {.rank = -1, .figures = true, .answers = true};
    MS_TRY(r->input.by_events
               ? ms_predict_by_events(r->cx, workload, plan, &r->prediction)
               : ms_predict(r->cx, workload, plan, &r->prediction));
    MS_TRY(ms_explain(r->cx, workload, plan, &all, &r->explanation));
    ms_memory_rule rule = workload->memory.rule;
    if (rule.min_probability == 0.0) {
        rule.min_probability = MS_DEFAULT_MIN_FIT;
        ms_note_default(r->cx, "--min-fit %g for the changes that are compared",
                        rule.min_probability);
    }
    return ms_advise(r->cx, workload, plan, &rule, &r->advice);
}

/* Draws the pipeline; where that is impossible the page says why. */
static void draw_timeline(request *r, ms_workload *workload)
{
    ms_ctx own = {.arena = r->cx->arena};
    const ms_simulate_options options = {.engine = MS_ENGINE_REPLAY,
                                         .detail = MS_DETAIL_ACTION};
    ms_status status =
        ms_planned_open_listed(&own, workload, r->explanation.plan, &r->drawn);
    if (status == MS_OK)
        status = ms_timeline_make(&own, &r->drawn, &options, &r->timeline);
    if (status == MS_OK)
        r->page.timeline = &r->timeline;
    else
        r->page.no_timeline =
            own.first == NULL ? "it cannot be simulated" : own.first->message;
}

static ms_status find_campaign(request *r, const ms_workload *workload)
{
    if (!r->asks_campaign)
        return MS_OK;
    MS_TRY(ms_campaign_options_apply(r->cx, &r->input.campaign, workload, &r->input.plan,
                                     &r->prediction, &r->answer));
    r->page.campaign = &r->answer;
    return MS_OK;
}

static const char *command_text(const request *r)
{
    const char *text = "meshsim report";
    for (int i = 0; i < r->args->argc; i++)
        text = ms_arena_printf(r->cx->arena, "%s %s", text,
                               ms_shell_quoted(r->cx->arena, r->args->argv[i]));
    return text;
}

static ms_status find_facts(request *r, ms_workload *workload)
{
    set_memory_rule(r, workload);
    MS_TRY(predict(r, workload));
    MS_TRY(find_campaign(r, workload));
    draw_timeline(r, workload);
    ms_page *page = &r->page;
    page->arena = r->cx->arena;
    page->path = r->input.path;
    page->kind = r->input.kind;
    page->plan = r->explanation.plan;
    page->workload = workload;
    page->prediction = &r->prediction;
    page->file_step_s = r->input.file_step_s;
    page->explanation = &r->explanation;
    page->advice = &r->advice;
    page->search = r->input.search;
    page->sweep = r->input.sweep;
    page->notes = r->cx->notes;
    page->command = command_text(r);
    return MS_OK;
}

/* ---- output ---- */

static void write_json(const request *r, ms_jout *json)
{
    const ms_prediction *p = &r->prediction;
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "schema", "meshsim.report/1");
    ms_jout_text_field(json, "file", r->path);
    ms_jout_text_field(json, "title", ms_page_title(&r->page));
    ms_jout_text_field(json, "from", r->input.kind);
    ms_jout_text_field(json, "layout", ms_page_layout_text(&r->page));
    ms_jout_number_field(json, "step_s", p->step_s);
    ms_jout_number_field(json, "step_s_low", p->step_low_s);
    ms_jout_number_field(json, "step_s_high", p->step_high_s);
    ms_jout_number_field(json, "tokens_per_s", p->tokens_per_s);
    ms_jout_number_field(json, "mfu_frac", p->mfu_frac);
    ms_jout_bool_field(json, "fits", p->fits);
    ms_jout_number_field(json, "peak_bytes", p->peak_bytes);
    ms_jout_number_field(json, "fits_probability", p->fits_probability);
    if (r->page.campaign != NULL) {
        const ms_campaign *c = &r->answer.campaign;
        ms_jout_number_field(json, "elapsed_s", c->elapsed_s);
        ms_jout_number_field(json, "cost", c->cost);
        ms_jout_number_field(json, "energy_kwh", c->energy_kwh);
        ms_jout_bool_field(json, "keeps_limits", ms_campaign_keeps_limits(&r->answer));
    }
    ms_jout_end_object(json);
}

static ms_status write_page(const request *r)
{
    ms_output out;
    MS_TRY(ms_output_open(r->cx, r->path, &out));
    ms_page_write(out.file, &r->page);
    return ms_output_close(r->cx, &out, MS_OK);
}

static ms_status write_summary(const request *r)
{
    bool is_stdout = strcmp(r->path, "-") == 0;
    if (is_stdout)
        return MS_OK;
    ms_output out;
    MS_TRY(ms_output_open(r->cx, NULL, &out));
    if (r->args->common.json)
        write_json(r, &out.json);
    else
        ms_print(out.file, "page          %s\nabout         %s\n", r->path,
                 ms_page_title(&r->page));
    return ms_output_close(r->cx, &out, MS_OK);
}

static ms_status report(request *r, ms_workload *workload)
{
    ms_broken_rules broken;
    MS_TRY(ms_plan_obey_rules(r->cx, workload, &r->input.plan, r->options->ignore_rules,
                              &broken));
    MS_TRY(ms_plan_fit_recompute(r->cx, workload, &r->input.plan));
    MS_TRY(find_facts(r, workload));
    MS_TRY(write_page(r));
    MS_TRY(write_summary(r));
    ms_shortfall shortfall;
    return ms_plan_check_fits(r->cx, workload, &r->prediction, &r->input.plan,
                              &shortfall);
}

/* MS_EINPUT if the page would replace the plan's file, or be mixed with JSON. */
static ms_status check_target(request *r)
{
    bool is_stdout = strcmp(r->path, "-") == 0;
    if (is_stdout && r->args->common.json)
        return ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                       "--json and the page would both go to standard output; -o FILE "
                       "takes the page");
    MS_TRY(ms_output_check_differ(r->cx, r->input.path, r->path));
    ms_plan_options files = *r->options;
    MS_TRY(ms_plan_options_check_output(r->cx, &files, &r->input.plan, r->path));
    return ms_output_check_writable(r->cx, r->path);
}

ms_status ms_cmd_report(ms_ctx *cx, ms_args *args)
{
    ms_plan_options plan = {0};
    ms_campaign_options campaign = {0};
    ms_kept_notes notes = {0};
    report_flags flags = {0};
    const ms_option_set sets[] = {{"report", report_table, &flags},
                                  {"campaign", ms_campaign_option_table, &campaign},
                                  {"plan", ms_plan_option_table(), &plan}};
    MS_TRY(ms_args_read(cx, args, sets, 3));
    if (args->done)
        return MS_OK;
    cx->notes = &notes;
    request *r = MS_NEW(cx->arena, request);
    *r = (request){.cx = cx,
                   .args = args,
                   .options = &plan,
                   .path =
                       args->common.output != NULL ? args->common.output : DEFAULT_PAGE};
    MS_TRY(ms_report_input_read(cx, args, &plan, &flags.point, &r->input));
    r->page.file_has_campaign = r->input.campaign.tokens.given;
    MS_TRY(ms_report_campaign_merge(cx, &campaign,
                                    r->input.sweep == NULL ? NULL : r->input.path,
                                    &r->input.campaign, &r->asks_campaign));
    MS_TRY(check_target(r));
    ms_workload *workload;
    MS_TRY(ms_plan_open_workload(cx, &r->input.plan, &workload));
    ms_status status = report(r, workload);
    ms_workload_close(workload);
    cx->notes = NULL;
    return status;
}
