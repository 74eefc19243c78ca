/* The answers of the program's commands, as JSON, of the library. */
#include "api/context.h"

#include "base/note.h"
#include "base/paths.h"
#include "costmodel/model/model.h"
#include "sim/request/explain_answer.h"
#include "sim/request/export_answer.h"
#include "sim/request/model_options.h"
#include "sim/request/predict_answer.h"
#include "sim/request/search_answer.h"
#include "sim/request/simulate_answer.h"
#include "topo/cluster.h"

#include <string.h>

/* Refuses an option that only the program has. */
static ms_status refuse(ms_ctx *cx, bool given, const char *option)
{
    if (!given)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s is of the program alone", option);
    return ms_hint(cx, "leave it out, or run meshsim");
}

/* ---- models, clusters ---- */

static ms_status list_names(ms_api_call *call)
{
    static const char *const kinds[] = {"models", "clusters", "stacks", NULL};
    const char *const *names;
    int num;
    if (ms_choice_find(call->name, kinds) < 0)
        return ms_fail(&call->cx, MS_EINPUT, MS_NOWHERE,
                       "\"%s\" is no kind of names: models, clusters, stacks",
                       call->name);
    MS_TRY(ms_config_names(&call->cx, call->name, &names, &num));
    ms_jout out = ms_api_result(call);
    ms_jout_begin_array(&out);
    for (int i = 0; i < num; i++)
        ms_jout_text(&out, names[i]);
    ms_jout_end_array(&out);
    ms_jout_close(&out);
    return MS_OK;
}

meshsim_status meshsim_names(meshsim_context *context, const char *kind, char **json)
{
    ms_api_call call = {.context = context, .work = list_names, .name = kind};
    return ms_api_run(&call, json);
}

static ms_status show_model(ms_api_call *call)
{
    ms_model_options options = {0};
    const ms_option_set set = {"options", ms_model_option_table, &options};
    const ms_model *model;
    long sequence_length;
    MS_TRY(ms_api_options(call, &set, 1));
    MS_TRY(
        ms_model_options_load(&call->cx, call->name, &options, &model, &sequence_length));
    ms_jout out = ms_api_result(call);
    ms_model_write_json(&out, model, (double)sequence_length);
    ms_jout_close(&out);
    return MS_OK;
}

meshsim_status meshsim_model(meshsim_context *context, const char *name,
                             const char *options, char **json)
{
    ms_api_call call = {
        .context = context, .work = show_model, .name = name, .options = options};
    return ms_api_run(&call, json);
}

static ms_status show_cluster(ms_api_call *call)
{
    const ms_cluster *cluster;
    MS_TRY(ms_cluster_load(&call->cx, call->name, &cluster));
    ms_jout out = ms_api_result(call);
    ms_cluster_write_json(&out, cluster);
    ms_jout_close(&out);
    return MS_OK;
}

meshsim_status meshsim_cluster(meshsim_context *context, const char *name, char **json)
{
    ms_api_call call = {.context = context, .work = show_cluster, .name = name};
    return ms_api_run(&call, json);
}

/* ---- plans ---- */

static ms_status make_plan(ms_api_call *call)
{
    ms_plan_options options = {.plan_text = call->plan_text};
    const ms_option_set set = {"plan", ms_plan_option_table(), &options};
    ms_plan plan;
    MS_TRY(ms_api_options(call, &set, 1));
    MS_TRY(refuse(&call->cx, options.ignore_rules, "--ignore-rules of a plan"));
    MS_TRY(ms_plan_from_options(&call->cx, &options, &plan));
    call->made = MS_NEW(call->cx.arena, meshsim_plan);
    *call->made = (meshsim_plan){call->cx.arena, plan};
    return MS_OK;
}

meshsim_status meshsim_plan_open(meshsim_context *context, const char *plan,
                                 const char *options, meshsim_plan **out)
{
    ms_api_call call = {
        .context = context, .work = make_plan, .options = options, .plan_text = plan};
    meshsim_status status = ms_api_run(&call, NULL);
    *out = status == MESHSIM_OK ? call.made : NULL;
    return status;
}

void meshsim_plan_close(meshsim_plan *plan)
{
    if (plan != NULL)
        ms_arena_close(plan->arena);
}

static ms_status show_plan(ms_api_call *call)
{
    ms_jout out = ms_api_result(call);
    ms_plan_write_json(&out, &call->plan->plan);
    ms_jout_close(&out);
    return MS_OK;
}

meshsim_status meshsim_plan_json(meshsim_context *context, const meshsim_plan *plan,
                                 char **json)
{
    ms_api_call call = {.context = context, .work = show_plan, .plan = plan};
    return ms_api_run(&call, json);
}

/* ---- predict, explain, simulate ---- */

static meshsim_status run_plan(meshsim_context *context, const meshsim_plan *plan,
                               const char *options, ms_status (*work)(ms_api_call *call),
                               char **json)
{
    ms_api_call call = {
        .context = context, .work = work, .options = options, .plan = plan};
    return ms_api_run(&call, json);
}

static ms_status predict(ms_api_call *call)
{
    ms_ctx *cx = &call->cx;
    ms_predict_inputs inputs;
    ms_predict_answer answer;
    ms_option_set sets[MS_NUM_PREDICT_SETS + 1];
    int num_sets = ms_predict_option_sets(&inputs, sets);
    sets[num_sets++] =
        (ms_option_set){"rules", ms_ignore_rules_table, &inputs.ignore_rules};
    MS_TRY(ms_api_options(call, sets, num_sets));
    MS_TRY(ms_predict_check(cx, &inputs, &answer));
    ms_status status = ms_predict_ask(cx, &inputs, &call->plan->plan, &answer);
    if (answer.is_complete) {
        ms_jout out = ms_api_result(call);
        ms_predict_answer_write_json(&out, &answer);
        ms_jout_close(&out);
    }
    ms_predict_answer_close(&answer);
    return status;
}

meshsim_status meshsim_predict(meshsim_context *context, const meshsim_plan *plan,
                               const char *options, char **json)
{
    return run_plan(context, plan, options, predict, json);
}

static ms_status explain(ms_api_call *call)
{
    ms_ctx *cx = &call->cx;
    ms_explain_inputs inputs = {0};
    ms_explain_result answer;
    const ms_option_set sets[] = {
        {"explain", ms_explain_option_table, &inputs},
        {"advice on a plan", ms_advise_option_table, &inputs.advise}};
    MS_TRY(ms_api_options(call, sets, 2));
    MS_TRY(refuse(cx, inputs.types, "--types"));
    ms_status status = ms_explain_ask(cx, &inputs, &call->plan->plan, &answer);
    if (answer.is_complete) {
        ms_jout out = ms_api_result(call);
        ms_explain_answer_write_json(&out, cx->arena, &answer);
        ms_jout_close(&out);
    }
    ms_explain_answer_close(&answer);
    return status;
}

meshsim_status meshsim_explain(meshsim_context *context, const meshsim_plan *plan,
                               const char *options, char **json)
{
    return run_plan(context, plan, options, explain, json);
}

static ms_status simulate(ms_api_call *call)
{
    ms_ctx *cx = &call->cx;
    ms_simulate_flags flags = {0};
    const ms_option_set sets[] = {{"simulate", ms_simulate_option_table, &flags},
                                  {"rules", ms_ignore_rules_table, &flags.ignore_rules}};
    MS_TRY(ms_api_options(call, sets, 2));
    MS_TRY(refuse(cx, flags.trace != NULL || flags.trace_format.given, "--trace"));
    MS_TRY(ms_simulate_flags_check(cx, &flags));
    ms_simulate_answer *answer = MS_NEW(cx->arena, ms_simulate_answer);
    ms_status status = ms_simulate_ask(cx, &flags, &call->plan->plan, answer);
    if (answer->is_complete) {
        ms_jout out = ms_api_result(call);
        ms_simulate_write_json(&out, cx->arena, &answer->report);
        ms_jout_close(&out);
    }
    ms_simulate_answer_close(answer);
    return status;
}

meshsim_status meshsim_simulate(meshsim_context *context, const meshsim_plan *plan,
                                const char *options, char **json)
{
    return run_plan(context, plan, options, simulate, json);
}

static ms_status export_plan(ms_api_call *call)
{
    ms_export_inputs inputs = {0};
    ms_export_answer answer;
    const ms_option_set sets[] = {{"export", ms_export_option_table, &inputs},
                                  {"rules", ms_ignore_rules_table, &inputs.ignore_rules}};
    MS_TRY(ms_api_options(call, sets, 2));
    ms_status status = ms_export_ask(&call->cx, &inputs, &call->plan->plan, &answer);
    if (answer.is_complete) {
        ms_jout out = ms_api_result(call);
        ms_export_answer_write_json(&out, call->cx.arena, &answer);
        ms_jout_close(&out);
    }
    ms_export_answer_close(&answer);
    return status;
}

meshsim_status meshsim_export(meshsim_context *context, const meshsim_plan *plan,
                              const char *options, char **json)
{
    return run_plan(context, plan, options, export_plan, json);
}

/* ---- search ---- */

static void tell_progress(void *payload, const ms_search_progress *p)
{
    const ms_api_call *call = payload;
    if (call->progress(call->payload, p->done_frac, p->elapsed_s, p->best_step_s) != 0)
        meshsim_cancel(call->context);
}

/* The plan of a call as text, in the arena. */
static ms_status plan_text(ms_api_call *call, const char **out)
{
    *out = NULL;
    if (call->plan == NULL)
        return MS_OK;
    ms_jout json = ms_api_result(call);
    ms_plan_write_json(&json, &call->plan->plan);
    ms_jout_close(&json);
    bool is_written = fclose(call->stream) == 0;
    call->stream = NULL;
    if (is_written)
        *out = ms_arena_strdup(call->cx.arena, call->text);
    meshsim_free(call->text);
    call->text = NULL;
    return is_written ? MS_OK
                      : ms_fail(&call->cx, MS_EIO, MS_NOWHERE, "no memory for a plan");
}

static ms_status search(ms_api_call *call)
{
    ms_ctx *cx = &call->cx;
    ms_search_inputs inputs;
    ms_search_answer answer;
    ms_option_set sets[MS_NUM_SEARCH_SETS];
    int num_sets = ms_search_option_sets(cx, &inputs, sets);
    MS_TRY(plan_text(call, &inputs.plan.plan_text));
    MS_TRY(ms_api_options(call, sets, num_sets));
    MS_TRY(refuse(cx, inputs.search.save_plan != NULL, "--save-plan"));
    const ms_search_listener listener = {
        .progress = call->progress == NULL ? NULL : tell_progress, .payload = call};
    ms_status status = ms_search_ask(cx, &inputs, &listener, &answer);
    if (answer.is_complete) {
        ms_jout out = ms_api_result(call);
        ms_search_answer_write_json(&out, cx->arena, &answer);
        ms_jout_close(&out);
    }
    ms_search_answer_close(&answer);
    return status;
}

meshsim_status meshsim_search(meshsim_context *context, const meshsim_plan *plan,
                              const char *options, meshsim_progress progress,
                              void *payload, char **json)
{
    ms_api_call call = {.context = context,
                        .work = search,
                        .options = options,
                        .plan = plan,
                        .progress = progress,
                        .payload = payload};
    return ms_api_run(&call, json);
}
