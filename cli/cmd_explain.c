/* meshsim explain: why a plan costs what it does. */
#include "cli/commands.h"
#include "cli/explain_plan.h"
#include "cli/plan_options.h"

ms_status ms_cmd_explain(ms_ctx *cx, ms_args *args)
{
    ms_explain_plan_options explain = {0};
    ms_plan_options plan = {0};
    const ms_option_set sets[] = {{"explain", ms_explain_plan_table, &explain},
                                  {"plan", ms_plan_option_table, &plan}};
    MS_TRY(ms_args_read(cx, args, sets, 2));
    if (args->done)
        return MS_OK;
    return ms_explain_plan(cx, args, &explain, &plan);
}
