#include "cli/cmd/search_outputs.h"

#include "cli/options/plan_command.h"

ms_status ms_search_outputs_check(const ms_search_request *r, const ms_args *args)
{
    ms_ctx *cx = r->cx;
    const char *report = args->common.output, *plan = r->search->save_plan;
    MS_TRY(ms_plan_options_check_output(cx, r->plan, &r->space->base, report));
    MS_TRY(ms_plan_options_check_output(cx, r->plan, &r->space->base, plan));
    return ms_output_check_differ(cx, report, plan);
}

ms_status ms_search_outputs_open(const ms_search_request *r, const ms_args *args,
                                 ms_search_outputs *out)
{
    ms_ctx *cx = r->cx;
    const char *report = args->common.output, *plan = r->search->save_plan;
    *out = (ms_search_outputs){0};
    MS_TRY(ms_search_outputs_check(r, args));
    ms_status status = ms_output_open(cx, report, &out->report);
    if (status != MS_OK)
        out->report.file = NULL;
    if (status != MS_OK || plan == NULL)
        return status;
    status = ms_output_open(cx, plan, &out->plan);
    if (status != MS_OK) {
        out->plan.file = NULL;
        ms_output_drop(cx, &out->report);
    }
    return status;
}

void ms_search_outputs_drop(ms_ctx *cx, ms_search_outputs *out)
{
    ms_output_drop(cx, &out->report);
    if (out->plan.file != NULL)
        ms_output_drop(cx, &out->plan);
}

ms_status ms_search_save_plan(ms_ctx *cx, ms_output *out, const ms_plan *plan)
{
    if (out->file == NULL)
        return MS_OK;
    if (plan == NULL) {
        ms_output_drop(cx, out);
        return MS_OK;
    }
    ms_plan_write_json(&out->json, plan);
    return ms_output_close(cx, out, MS_OK);
}
