/* meshsim explain: why a plan costs what it does; with --einsum, the communication of one
 * einsum on a mesh; with --redistribute, that of one tensor between two placements. */
#include "cli/cmd/explain_einsum.h"
#include "cli/cmd/explain_plan.h"
#include "cli/options/commands.h"
#include "sim/request/plan_options.h"

enum {
    OF_PLAN,
    OF_EINSUM,
    ADVICE,
    PLAN
};

/* Refuses options of the question not asked. The question is on tensors if `tensors`, the
 * option that asks it (--einsum, --redistribute), is not NULL, else on a plan. --cluster
 * and --ranks-per-domain: both. */
static ms_status check_one_question(ms_ctx *cx, const ms_args *args,
                                    const ms_option_set *sets, const char *tensors)
{
    bool is_einsum = tensors != NULL;
    ms_plan_options of_plan = *(const ms_plan_options *)sets[PLAN].out;
    of_plan.of[MS_CHOOSE_CLUSTER].text = NULL;
    of_plan.of[MS_CHOOSE_RANKS_PER_DOMAIN].whole.given = false;
    ms_option_set plan = sets[PLAN];
    plan.out = &of_plan;
    const char *given = ms_options_given(&sets[is_einsum ? OF_PLAN : OF_EINSUM], "");
    if (is_einsum && given == NULL)
        given = ms_options_given(&sets[ADVICE], "");
    if (is_einsum && given == NULL)
        given = ms_options_given(&plan, "");
    if (is_einsum && given == NULL && args->words.num_words > 0)
        given = args->words.words[0];
    if (given == NULL)
        return MS_OK;
    if (is_einsum) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s explains a plan, and %s is given", given,
                tensors);
        return ms_hint(cx, "leave out %s, or %s", tensors, given);
    }
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s explains an einsum, and --einsum is not given",
            given);
    return ms_hint(cx, "for example --einsum \"bsh,hf->bsf\" --mesh dp=2,tp=4");
}

ms_status ms_cmd_explain(ms_ctx *cx, ms_args *args)
{
    ms_explain_inputs explain = {0};
    ms_einsum_options einsum = {0};
    ms_plan_options plan = {0};
    const ms_option_set sets[] = {
        [OF_PLAN] = {"explain a plan", ms_explain_option_table, &explain},
        [OF_EINSUM] = {"explain an einsum", ms_einsum_option_table, &einsum},
        [ADVICE] = {"advice on a plan", ms_advise_option_table, &explain.advise},
        [PLAN] = {"plan", ms_plan_option_table(), &plan}};
    MS_TRY(ms_args_read(cx, args, sets, 4));
    if (args->done)
        return MS_OK;
    const char *tensors = einsum.einsum != NULL         ? "--einsum"
                          : einsum.redistribute != NULL ? "--redistribute"
                                                        : NULL;
    MS_TRY(check_one_question(cx, args, sets, tensors));
    if (tensors == NULL)
        return ms_explain_plan(cx, args, &explain, &plan);
    einsum.cluster = plan.of[MS_CHOOSE_CLUSTER].text;
    einsum.ranks_per_domain = ms_plan_given_or(&plan, MS_CHOOSE_RANKS_PER_DOMAIN, 0);
    return einsum.einsum != NULL ? ms_explain_einsum(cx, args, &einsum)
                                 : ms_explain_redistribution(cx, args, &einsum);
}
