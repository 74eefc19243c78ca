/* meshsim search: the fastest plans of a space, with a certificate that none is faster. */
#include "base/print.h"
#include "cli/cmd/search_outputs.h"
#include "cli/options/commands.h"
#include "cli/options/plan_command.h"
#include "cli/options/progress.h"
#include "cli/report/campaign_report.h"
#include "cli/report/objective_report.h"
#include "cli/report/report.h"
#include "cli/report/stacks_report.h"
#include "sim/request/search_answer.h"

#include <math.h>

typedef struct caller {
    ms_ctx *cx;
    const ms_args *args;
    ms_search_outputs out; /* report.file is NULL before they are opened */
} caller;

/* ---- text ---- */

/* Prints the answer to --why as text, with the command line that predicts the plan. */
static void print_why(FILE *out, ms_arena *arena, const ms_why *why)
{
    fputc('\n', out);
    ms_why_print(out, arena, why);
    if (why->has_plan)
        ms_print(out, "  in full    meshsim predict %s\n",
                 ms_plan_command_text(arena, &why->plan));
}

/* " --layers-per-stage 20,12" if the plan would have others by itself, else "". */
static const char *layers_flag(ms_arena *arena, const ms_plan *plan)
{
    const char *text = plan->num_stage_layers > 0 ? " --layers-per-stage " : "";
    for (long i = 0; i < plan->num_stage_layers; i++)
        text = ms_arena_printf(arena, "%s%s%ld", text, i == 0 ? "" : ",",
                               plan->layers_per_stage[i]);
    return text;
}

static void print_one(FILE *out, ms_arena *arena, const ms_search_answer *answer)
{
    const ms_search_report *report = &answer->report;
    if (answer->objective != NULL)
        ms_objective_print(out, arena, answer->objective);
    if (report->result == NULL)
        return;
    ms_search_print(out, arena, report);
    if (report->result->num_found > 0) {
        const char *flags =
            ms_arena_printf(arena, "%s%s", ms_plan_command_text(arena, &report->plans[0]),
                            layers_flag(arena, &report->result->found[0].plan));
        ms_print(out, "try          meshsim predict %s\n", flags);
        const char *command =
            ms_export_command_text(arena, &report->result->found[0].plan, false, flags);
        if (command != NULL)
            ms_print(out, "export       %s\n", command);
    }
    if (report->layout != NULL)
        ms_print(out, "stages       --pipeline-model-parallel-layout '%s'\n",
                 report->layout);
    if (answer->campaign != NULL)
        ms_campaign_print(out, arena, answer->campaign);
    if (report->why != NULL)
        print_why(out, arena, report->why);
}

/* Progress in a line of the terminal, cleared at the end. */
static void show_progress(void *payload, const ms_search_progress *p)
{
    const caller *c = payload;
    const ms_progress now = {"search", p->done_frac, 1.0, p->best_step_s, NAN};
    if (ms_progress_write(c->args, &now))
        return;
    fputs("\r\033[K", stderr);
    if (p->done_frac < 1.0) {
        fprintf(stderr, "%.0f %% of the search done", 100.0 * p->done_frac);
        if (p->done_frac > 0.0)
            fprintf(stderr, ", about %.0f s left",
                    p->elapsed_s * (1.0 / p->done_frac - 1.0));
        if (!isnan(p->best_step_s))
            fprintf(stderr, "; fastest plan so far %.4g s", p->best_step_s);
    }
    (void)fflush(stderr);
}

/* ---- the search ---- */

/* Opens the output files before the search, so that write errors appear at once. */
static ms_status open_outputs(void *payload, const ms_search_request *r)
{
    caller *c = payload;
    if (c->out.report.file != NULL)
        return ms_search_outputs_check(r, c->args);
    if (!c->args->common.threads.given)
        ms_note_default(c->cx, "--threads %d", ms_ctx_threads(c->cx));
    return ms_search_outputs_open(r, c->args, &c->out);
}

static ms_status write_answer(caller *c, const ms_search_answer *answer, ms_status status)
{
    ms_ctx *cx = c->cx;
    if (c->out.report.file == NULL) /* an objective takes no number of GPUs */
        MS_TRY(ms_output_open(cx, c->args->common.output, &c->out.report));
    ms_output *out = &c->out.report;
    if (c->args->common.json)
        ms_search_answer_write_json(&out->json, cx->arena, answer);
    else if (answer->stacks != NULL)
        ms_stacks_print(out->file, cx->arena, &answer->stacks->report);
    else
        print_one(out->file, cx->arena, answer);
    status = ms_output_close(cx, out, status);
    ms_status saved =
        ms_search_save_plan(cx, &c->out.plan, ms_search_answer_plan(answer));
    return saved != MS_OK ? saved : status;
}

ms_status ms_cmd_search(ms_ctx *cx, ms_args *args)
{
    ms_search_inputs inputs;
    ms_option_set sets[MS_NUM_SEARCH_SETS];
    int num_sets = ms_search_option_sets(cx, &inputs, sets);
    MS_TRY(ms_args_read(cx, args, sets, num_sets));
    if (args->done)
        return MS_OK;
    caller c = {.cx = cx, .args = args};
    ms_search_listener listener = {.ready = open_outputs, .payload = &c};
    if (ms_progress_is_shown(args))
        listener.progress = show_progress;
    ms_search_answer answer;
    ms_status status = ms_search_ask(cx, &inputs, &listener, &answer);
    if (answer.is_complete)
        status = write_answer(&c, &answer, status);
    else if (c.out.report.file != NULL)
        ms_search_outputs_drop(cx, &c.out);
    ms_search_answer_close(&answer);
    return status;
}
