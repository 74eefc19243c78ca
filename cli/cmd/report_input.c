#include "cli/cmd/report_input.h"

#include "base/csv.h"
#include "cli/cmd/report_campaign.h"
#include "cli/cmd/report_json.h"
#include "cli/cmd/report_sweep.h"
#include "cli/options/output.h"
#include "cli/options/plan_command.h"
#include "costmodel/port/port.h"

#include <math.h>
#include <string.h>

/* ---- kinds of files ---- */

static ms_status take(ms_ctx *cx, const ms_result *result, ms_jval root,
                      ms_report_input *out)
{
    if (result->made_for == NULL)
        return ms_json_fail(cx, root, "the %s has no plan", out->kind);
    out->plan = *result->made_for;
    out->file_step_s = result->step_s;
    return MS_OK;
}

static ms_status read_engine(ms_ctx *cx, ms_jval object, ms_report_input *out)
{
    const char *engine;
    MS_TRY(ms_report_text(cx, object, "engine", &engine));
    out->by_events =
        engine != NULL && strcmp(engine, ms_engine_names[MS_ENGINE_EVENT]) == 0;
    return MS_OK;
}

static ms_status read_result(ms_ctx *cx, ms_jval root, ms_report_input *out)
{
    ms_results results = {0};
    MS_TRY(ms_results_add(cx, root, out->path, &results));
    MS_TRY(take(cx, &results.items[0], root, out));
    MS_TRY(read_engine(cx, root, out));
    return ms_report_campaign_read(cx, root, &out->campaign);
}

static ms_status read_certificate(ms_ctx *cx, ms_jval root, ms_page_search *out)
{
    ms_jval certificate = ms_report_member(cx, root, "certificate"), optimal;
    out->best_step_s = NAN;
    out->has_certificate = ms_json_is_object(certificate) &&
                           ms_json_member(cx, certificate, "optimal", &optimal);
    if (!out->has_certificate)
        return MS_OK;
    MS_TRY(ms_json_bool(cx, optimal, &out->optimal));
    return ms_report_number(cx, certificate, "best_step_s", &out->best_step_s);
}

/* Reads what the search says of each plan beside its prediction. */
static ms_status read_gaps(ms_ctx *cx, ms_jval root, ms_page_search *out)
{
    double *gaps = MS_NEW_ARRAY(cx->arena, out->plans.num, double);
    ms_jval list = ms_report_member(cx, root, "plans");
    for (int i = 0; i < out->plans.num; i++) {
        gaps[i] = NAN;
        if (ms_json_is_array(list) && i < ms_json_length(list))
            MS_TRY(
                ms_report_number(cx, ms_json_element(cx, list, i), "gap_frac", &gaps[i]));
    }
    out->gap_frac = gaps;
    return MS_OK;
}

static ms_status read_space(ms_ctx *cx, ms_jval root, ms_page_search *out)
{
    ms_jval space = ms_report_member(cx, root, "space"),
            ties = ms_report_member(cx, root, "ties");
    out->num_meshes = out->num_configurations = out->band_frac = NAN;
    if (ms_json_is_object(space)) {
        MS_TRY(ms_report_number(cx, space, "meshes", &out->num_meshes));
        MS_TRY(ms_report_number(cx, space, "configurations", &out->num_configurations));
    }
    return ms_json_is_object(ties)
               ? ms_report_number(cx, ties, "band_frac", &out->band_frac)
               : MS_OK;
}

/* Names of the searched stacks: "megatron,torchtitan". */
static ms_status read_stacks(ms_ctx *cx, ms_jval root, const char **out)
{
    MS_TRY(ms_report_text(cx, root, "stack", out));
    ms_jval list = ms_report_member(cx, root, "stacks");
    if (*out != NULL || !ms_json_is_array(list))
        return MS_OK;
    for (int i = 0; i < ms_json_length(list); i++) {
        const char *name;
        MS_TRY(ms_report_text(cx, ms_json_element(cx, list, i), "stack", &name));
        if (name != NULL)
            *out = *out == NULL ? name : ms_arena_printf(cx->arena, "%s,%s", *out, name);
    }
    return MS_OK;
}

/* The search that a command repeats, besides the job of a plan. */
typedef struct searched {
    const char *gpus;   /* NULL: the plan's */
    const char *stacks; /* NULL: the plan's own */
    const char *limits; /* NULL: none */
    double min_fit;     /* NaN: not stated */
    bool default_batch; /* each size has its own */
} searched;

static const char *search_command(ms_arena *arena, const ms_plan *plan, const searched *s)
{
    const char *gpus =
        s->gpus != NULL ? s->gpus : ms_arena_printf(arena, "%ld", plan->gpus);
    const char *text = ms_arena_printf(
        arena, "meshsim search --model %s --cluster %s --gpus %s --seq %ld",
        ms_shell_quoted(arena, plan->model), ms_shell_quoted(arena, plan->cluster), gpus,
        plan->sequence_length);
    if (!s->default_batch)
        text = ms_arena_printf(arena, "%s --global-batch %ld", text, plan->global_batch);
    text = ms_arena_printf(
        arena, "%s --precision %s --stack %s", text, ms_dtype_names[plan->compute],
        ms_shell_quoted(arena, s->stacks != NULL ? s->stacks : plan->stack));
    if (isfinite(s->min_fit))
        text = ms_arena_printf(arena, "%s --min-fit %g", text, s->min_fit);
    if (s->limits != NULL && s->limits[0] != '\0')
        text = ms_arena_printf(arena, "%s --limit %s", text,
                               ms_shell_quoted(arena, s->limits));
    return text;
}

static ms_status read_command(ms_ctx *cx, ms_jval root, const ms_plan *plan,
                              ms_page_search *out)
{
    const char *objective;
    searched s = {.min_fit = out->min_fit};
    ms_jval chosen = ms_report_member(cx, root, "objective");
    MS_TRY(ms_report_text(cx, root, "limits", &s.limits));
    MS_TRY(read_stacks(cx, root, &s.stacks));
    MS_TRY(ms_report_text(cx, chosen, "name", &objective));
    bool one_batch;
    MS_TRY(ms_report_sizes_text(cx, ms_report_member(cx, chosen, "jobs"), &s.gpus,
                                &one_batch));
    s.default_batch = !one_batch;
    out->command = search_command(cx->arena, plan, &s);
    if (objective != NULL)
        out->command =
            ms_arena_printf(cx->arena, "%s --objective %s", out->command, objective);
    return MS_OK;
}

/* Moves the fastest plan to the front: lists of several stacks have the user's order. */
static void put_fastest_first(ms_results *plans)
{
    int fastest = 0;
    for (int i = 1; i < plans->num; i++)
        if (plans->items[i].step_s < plans->items[fastest].step_s)
            fastest = i;
    ms_result first = plans->items[0];
    plans->items[0] = plans->items[fastest];
    plans->items[fastest] = first;
}

static ms_status read_list(ms_ctx *cx, ms_jval root, const char *path, ms_results *plans)
{
    MS_TRY(ms_results_add(cx, root, path, plans));
    if (ms_json_is_array(ms_report_member(cx, root, "stacks")))
        put_fastest_first(plans);
    return MS_OK;
}

/* Reads how the plans of a search were found, and the command that repeats it. */
static ms_status read_how(ms_ctx *cx, ms_jval root, const ms_plan *plan,
                          ms_page_search *out)
{
    MS_TRY(read_certificate(cx, root, out));
    MS_TRY(read_gaps(cx, root, out));
    MS_TRY(read_space(cx, root, out));
    MS_TRY(ms_report_number(cx, root, "min_fit", &out->min_fit));
    return read_command(cx, root, plan, out);
}

static ms_status read_search(ms_ctx *cx, ms_jval root, ms_report_input *out)
{
    ms_page_search *search = MS_NEW(cx->arena, ms_page_search);
    *search = (ms_page_search){0};
    MS_TRY(read_list(cx, root, out->path, &search->plans));
    MS_TRY(take(cx, &search->plans.items[0], root, out));
    MS_TRY(read_engine(cx, root, out));
    MS_TRY(read_how(cx, root, &out->plan, search));
    MS_TRY(ms_report_number(cx, root, "memory_limit_bytes", &out->memory_limit_bytes));
    out->memory.min_probability = isnan(search->min_fit) ? 0.0 : search->min_fit;
    MS_TRY(ms_report_objective_read(cx, root, &out->sweep));
    out->search = search;
    return ms_report_campaign_read(cx, root, &out->campaign);
}

static ms_status read_plan(ms_ctx *cx, ms_jval root, ms_report_input *out)
{
    return ms_plan_read(cx, root, &out->plan);
}

/* Reads the rule by which the plans of a sweep fit. */
static ms_status read_memory_rule(ms_ctx *cx, ms_jval root, ms_memory_rule *out)
{
    MS_TRY(ms_report_number(cx, root, "min_fit", &out->min_probability));
    MS_TRY(ms_report_number(cx, root, "headroom_frac", &out->headroom_frac));
    MS_TRY(ms_report_number(cx, root, "headroom_bytes", &out->headroom_bytes));
    double *const all[] = {&out->min_probability, &out->headroom_frac,
                           &out->headroom_bytes};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (isnan(*all[i]))
            *all[i] = 0.0;
    return MS_OK;
}

static ms_status read_sweep(ms_ctx *cx, ms_jval root, ms_report_input *out)
{
    ms_page_sweep *sweep = MS_NEW(cx->arena, ms_page_sweep);
    const char *limits;
    ms_jval point, plan;
    MS_TRY(ms_report_sweep_read(cx, root, out->point, sweep, &point));
    if (!ms_json_member(cx, point, "plan", &plan))
        return ms_json_fail(cx, point, "the point has no plan");
    MS_TRY(ms_plan_read(cx, plan, &out->plan));
    out->file_step_s = sweep->points[sweep->reported].step_s;
    MS_TRY(read_memory_rule(cx, root, &out->memory));
    MS_TRY(ms_report_text(cx, root, "limits", &limits));
    const searched of_point = {.limits = limits, .min_fit = out->memory.min_probability};
    sweep->command = search_command(cx->arena, &out->plan, &of_point);
    out->sweep = sweep;
    return ms_report_campaign_read(cx, point, &out->campaign);
}

typedef struct file_kind {
    const char *schema, *kind;
    ms_status (*read)(ms_ctx *cx, ms_jval root, ms_report_input *out);
} file_kind;

static const file_kind kinds[] = {
    {"meshsim.plan/1", "plan", read_plan},
    {"meshsim.prediction/1", "prediction", read_result},
    {"meshsim.search/1", "search", read_search},
    {"meshsim.sweep/1", "sweep", read_sweep},
    {NULL, NULL, NULL},
};

static ms_status read_document(ms_ctx *cx, ms_jval root, ms_report_input *out)
{
    const char *schema = NULL;
    if (ms_json_is_object(root))
        MS_TRY(ms_report_text(cx, root, "schema", &schema));
    for (const file_kind *k = kinds; k->schema != NULL && schema != NULL; k++) {
        if (strcmp(schema, k->schema) != 0)
            continue;
        out->kind = k->kind;
        return k->read(cx, root, out);
    }
    ms_json_fail(cx, root, "this is no plan, prediction, search or sweep");
    return ms_hint(cx, "predict, search and sweep write them with --json, search "
                       "--save-plan writes plans");
}

/* Reads a result or plan in JSON; leaves a framework's file to the plan's options. */
static ms_status read_file(ms_ctx *cx, ms_report_input *out)
{
    ms_csv text;
    ms_jdoc *doc;
    ms_jval root;
    MS_TRY(ms_csv_load(cx, out->path, &text));
    if (ms_port_format_of_text(cx->arena, text.text, text.length) != NULL)
        return MS_OK;
    MS_TRY(ms_json_parse(cx, strcmp(out->path, "-") == 0 ? "standard input" : out->path,
                         text.text, text.length, &doc, &root));
    ms_status status = read_document(cx, root, out);
    ms_json_close(doc);
    return status;
}

/* ---- the command ---- */

/* MS_EINPUT if plan flags other than --profile and --ignore-rules are given. */
static ms_status refuse_flags(ms_ctx *cx, const ms_plan_options *options,
                              const ms_report_input *input)
{
    ms_plan_options others = *options;
    others.of[MS_CHOOSE_PROFILE].text = NULL;
    others.plan_file = NULL;
    others.ignore_rules = false;
    const ms_option_set set = {"plan", ms_plan_option_table(), &others};
    const char *name = ms_options_given(&set, "");
    if (name == NULL)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s would change the plan of %s, which is a %s",
            name, input->path, input->kind);
    return ms_hint(cx, "leave it out, or report a plan file with it");
}

static bool has_flags(const ms_plan_options *options)
{
    ms_plan_options others = *options;
    others.plan_file = NULL;
    const ms_option_set set = {"plan", ms_plan_option_table(), &others};
    return ms_options_given(&set, "") != NULL;
}

ms_status ms_report_input_read(ms_ctx *cx, const ms_args *args,
                               const ms_plan_options *options,
                               const ms_opt_integer *point, ms_report_input *out)
{
    ms_plan_options plan = *options;
    *out = (ms_report_input){
        .kind = "plan", .file_step_s = NAN, .memory_limit_bytes = NAN, .point = point};
    MS_TRY(ms_plan_options_word(cx, &plan, args->words.words[0]));
    out->path = plan.plan_file;
    if (out->path == NULL && point->given)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--point is for files of sweeps");
    if (out->path == NULL)
        return ms_plan_from_options(cx, &plan, &out->plan);
    MS_TRY(read_file(cx, out));
    if (point->given && strcmp(out->kind, "sweep") != 0)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--point is for sweeps; %s is a %s",
                       out->path, out->kind);
    out->plan.profile = options->of[MS_CHOOSE_PROFILE].text;
    if (strcmp(out->kind, "plan") != 0)
        return refuse_flags(cx, &plan, out);
    if (out->plan.model == NULL || has_flags(options))
        return ms_plan_from_options(cx, &plan, &out->plan);
    return MS_OK;
}
