/* meshsim explain: why a plan costs what it does; with --einsum, how one product goes over a mesh. */
#include "cli/commands.h"
#include "cli/explain_einsum.h"
#include "cli/explain_plan.h"
#include "cli/plan_options.h"

#include <string.h>

/* Options of the other kind of question would be ignored in silence. */
static ms_status check_einsum_alone(ms_ctx *cx, const ms_args *args, ms_plan_options plan,
                                    const ms_explain_plan_options *explain)
{
    static const ms_plan_options no_plan;
    static const ms_explain_plan_options no_explain;
    plan.cluster = NULL; /* of both */
    if (args->words.num_words == 0 && memcmp(&plan, &no_plan, sizeof plan) == 0 &&
        memcmp(explain, &no_explain, sizeof no_explain) == 0)
        return MS_OK;
    ms_status status = ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                               "--einsum explains a product, not a plan: of the plan's "
                               "options it takes --cluster only");
    ms_hint(cx, "leave --einsum out, or the plan");
    return status;
}

static ms_status check_plan_alone(ms_ctx *cx, const ms_einsum_options *einsum)
{
    static const ms_einsum_options no_einsum;
    if (memcmp(einsum, &no_einsum, sizeof no_einsum) == 0)
        return MS_OK;
    ms_status status =
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--mesh, --in, --out, --sizes, --dtype and --strict belong "
                "to an einsum, and --einsum is not given");
    ms_hint(cx, "for example --einsum \"bsh,hf->bsf\" --mesh dp=2,tp=4");
    return status;
}

ms_status ms_cmd_explain(ms_ctx *cx, ms_args *args)
{
    static const ms_plan_options no_plan;
    static const ms_explain_plan_options no_explain;
    static const ms_einsum_options no_einsum;
    ms_explain_plan_options explain;
    ms_einsum_options einsum;
    ms_plan_options plan;
    memcpy(&explain, &no_explain, sizeof explain); /* with their padding */
    memcpy(&einsum, &no_einsum, sizeof einsum);
    memcpy(&plan, &no_plan, sizeof plan);
    const ms_option_set sets[] = {{"explain a plan", ms_explain_plan_table, &explain},
                                  {"explain an einsum", ms_einsum_option_table, &einsum},
                                  {"plan", ms_plan_option_table, &plan}};
    MS_TRY(ms_args_read(cx, args, sets, 3));
    if (args->done)
        return MS_OK;
    if (einsum.einsum == NULL) {
        MS_TRY(check_plan_alone(cx, &einsum));
        return ms_explain_plan(cx, args, &explain, &plan);
    }
    MS_TRY(check_einsum_alone(cx, args, plan, &explain));
    einsum.cluster = plan.cluster;
    return ms_explain_einsum(cx, args, &einsum);
}
