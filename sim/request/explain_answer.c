#include "sim/request/explain_answer.h"

#define MAX_RANK 1048576

const ms_option ms_explain_option_table[] = {
    MS_OPT_FLAG(
        ms_explain_inputs, questions, "--questions",
        "only answers: gain of tp, traffic across nodes, bubble, activations, order"),
    MS_OPT_FLAG(ms_explain_inputs, collectives, "--collectives",
                "only collectives, with the reason of each"),
    MS_OPT_FLAG(ms_explain_inputs, tensors, "--tensors",
                "only tensors: shapes, placements, bytes"),
    MS_OPT_FLAG(ms_explain_inputs, coefficients, "--coefficients",
                "only coefficients that affect the plan, with provenance and effect"),
    MS_OPT_FLAG(ms_explain_inputs, types, "--types",
                "check the layer programs: the type of every tensor on each axis, and "
                "what is illegal (exit code 4)"),
    MS_OPT_TEXT(ms_explain_inputs, block, "--part", "NAME",
                "tensors and collectives of one block: embedding, layer, head"),
    MS_OPT_INTEGER(ms_explain_inputs, rank, "--rank", "N", 0, MAX_RANK,
                   "pipeline rank (default: the one that ends the step)"),
    {0},
};

static ms_explain_view view_of(const ms_explain_inputs *o)
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

static ms_status check(ms_ctx *cx, const ms_explain_inputs *o, const ms_plan *plan)
{
    if (o->rank.given && o->rank.value >= plan->size[MS_PP])
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--rank is %ld, but the pipeline has ranks 0 to %ld",
                       o->rank.value, plan->size[MS_PP] - 1);
    if (o->types && (o->collectives || o->tensors || o->coefficients || o->questions ||
                     o->advise.advise))
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--types excludes --questions, --collectives, --tensors, "
                       "--coefficients and --advise");
    return MS_OK;
}

ms_status ms_explain_ask(ms_ctx *cx, const ms_explain_inputs *inputs, const ms_plan *plan,
                         ms_explain_result *out)
{
    *out = (ms_explain_result){.plan = *plan, .view = view_of(inputs), .fits = true};
    plan = &out->plan;
    MS_TRY(ms_plan_open_fitted(cx, &out->plan, &out->workload));
    MS_TRY(check(cx, inputs, plan));
    ms_explain_options options = {.rank =
                                      inputs->rank.given ? (int)inputs->rank.value : -1,
                                  .figures = out->view.figures,
                                  .answers = out->view.answers};
    ms_explanation *explanation = &out->explanation;
    MS_TRY(
        ms_advise_options_apply(cx, &inputs->advise, out->workload, plan, &out->advice));
    MS_TRY(ms_explain(cx, out->workload, plan, &options, explanation));
    if (out->view.block != NULL)
        MS_TRY(ms_explain_check_block(cx, explanation, out->view.block));
    out->is_complete = true;
    if (inputs->types)
        return MS_OK;
    ms_status status = ms_plan_check_fits(cx, out->workload, &explanation->prediction,
                                          plan, &out->shortfall);
    out->fits = status == MS_OK;
    return status;
}

void ms_explain_answer_close(ms_explain_result *answer)
{
    if (answer->workload != NULL)
        ms_workload_close(answer->workload);
}

void ms_explain_answer_write_json(ms_jout *out, ms_arena *arena,
                                  const ms_explain_result *answer)
{
    const ms_explanation *e = &answer->explanation;
    ms_jout_begin_object(out);
    ms_explanation_write_fields(out, arena, e, &answer->view);
    ms_jout_key(out, "plan");
    ms_plan_write_json(out, e->plan);
    if (!answer->fits) {
        ms_jout_key(out, "shortfall");
        ms_shortfall_write_json(out, &answer->shortfall);
    }
    if (answer->advice != NULL)
        ms_advice_write_field(out, answer->advice);
    ms_jout_end_object(out);
}
