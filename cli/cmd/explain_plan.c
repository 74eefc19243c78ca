#include "cli/cmd/explain_plan.h"
#include "cli/report/report.h"

#include "cli/options/output.h"
#include "cli/options/plan_command.h"
#include "sim/explain/explain_view.h"

#define MAX_RANK 1048576

const ms_option ms_explain_plan_table[] = {
    MS_OPT_FLAG(
        ms_explain_plan_options, questions, "--questions",
        "only answers: gain of tp, traffic across nodes, bubble, activations, order"),
    MS_OPT_FLAG(ms_explain_plan_options, collectives, "--collectives",
                "only collectives, with the reason of each"),
    MS_OPT_FLAG(ms_explain_plan_options, tensors, "--tensors",
                "only tensors: shapes, placements, bytes"),
    MS_OPT_FLAG(ms_explain_plan_options, coefficients, "--coefficients",
                "only coefficients that affect the plan, with provenance and effect"),
    MS_OPT_FLAG(ms_explain_plan_options, types, "--types",
                "check the layer programs: the type of every tensor on each axis, and "
                "what is illegal (exit code 4)"),
    MS_OPT_TEXT(ms_explain_plan_options, block, "--part", "NAME",
                "tensors and collectives of one block: embedding, layer, head"),
    MS_OPT_INTEGER(ms_explain_plan_options, rank, "--rank", "N", 0, MAX_RANK,
                   "pipeline rank (default: the one that ends the step)"),
    {0},
};

static ms_explain_view view_of(const ms_explain_plan_options *o)
{
    bool some = o->types || o->collectives || o->tensors || o->coefficients ||
                o->questions || o->advise.advise;
    bool short_of_block = !some && o->block == NULL;
    return (ms_explain_view){.collectives = o->collectives || !some,
                             .tensors = o->tensors || !some,
                             .figures = o->coefficients || short_of_block,
                             .answers = o->questions || short_of_block,
                             .sources = o->coefficients,
                             .block = o->block};
}

/* Writes the explanation of a plan as JSON; `shortfall` is NULL when the plan fits,
 * `advice` without --advise. */
static void write_json(ms_jout *json, ms_arena *arena, const ms_explanation *e,
                       const ms_explain_view *view, const ms_shortfall *shortfall,
                       const ms_advice *advice)
{
    ms_jout_begin_object(json);
    ms_explanation_write_fields(json, arena, e, view);
    ms_jout_key(json, "plan");
    ms_plan_write_json(json, e->plan);
    if (shortfall != NULL) {
        ms_jout_key(json, "shortfall");
        ms_shortfall_write_json(json, shortfall);
    }
    if (advice != NULL)
        ms_advice_write_field(json, advice);
    ms_jout_end_object(json);
}

static ms_status explain(ms_ctx *cx, const ms_args *args,
                         const ms_explain_plan_options *o, ms_workload *workload,
                         const ms_plan *plan)
{
    ms_explain_view view = view_of(o);
    ms_explain_options options = {.rank = o->rank.given ? (int)o->rank.value : -1,
                                  .figures = view.figures,
                                  .answers = view.answers};
    ms_explanation explanation;
    if (o->rank.given && o->rank.value >= plan->size[MS_PP])
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--rank is %ld, but the pipeline has ranks 0 to %ld",
                       o->rank.value, plan->size[MS_PP] - 1);
    if (o->types && (o->collectives || o->tensors || o->coefficients || o->questions ||
                     o->advise.advise))
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--types excludes --questions, --collectives, --tensors, "
                       "--coefficients and --advise");
    const ms_advice *advice;
    MS_TRY(ms_advise_options_apply(cx, &o->advise, workload, plan, &advice));
    MS_TRY(ms_explain(cx, workload, plan, &options, &explanation));
    if (view.block != NULL)
        MS_TRY(ms_explain_check_block(cx, &explanation, view.block));
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (o->types)
        return ms_output_close(
            cx, &out,
            ms_explain_types(cx, &out, &explanation, o->block, args->common.json));
    ms_shortfall shortfall;
    ms_status status =
        ms_plan_check_fits(cx, args, workload, &explanation.prediction, plan, &shortfall);
    if (args->common.json)
        write_json(&out.json, cx->arena, &explanation, &view,
                   status == MS_OK ? NULL : &shortfall, advice);
    else
        ms_explanation_print(out.file, cx->arena, &explanation, &view);
    if (advice != NULL && !args->common.json)
        ms_advice_print(out.file, cx->arena, advice, ms_advise_options_rows(&o->advise));
    return ms_output_close(cx, &out, status);
}

ms_status ms_explain_plan(ms_ctx *cx, const ms_args *args,
                          const ms_explain_plan_options *o, ms_plan_options *options)
{
    ms_plan plan;
    MS_TRY(ms_plan_of_command(cx, args, options, &plan));
    ms_workload *workload;
    MS_TRY(ms_plan_open_fitted(cx, &plan, &workload));
    ms_status status = explain(cx, args, o, workload, &plan);
    ms_workload_close(workload);
    return status;
}
