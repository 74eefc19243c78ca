#include "cli/options/whatif_options.h"

#include "cli/options/plan_command.h"
#include "sim/request/searched_plan.h"

#include <math.h>
#include <string.h>

#define DEFAULT_CHANGE "20%"

const ms_option ms_whatif_option_table[] = {
    MS_OPT_TEXT(ms_whatif_options, change, "--change", "X%",
                "lower and raise each number by so much (default 20%)"),
    MS_OPT_FLAG(ms_whatif_options, all, "--all",
                "search the best plan again for every number, and list all"),
    MS_OPT_LIST(ms_whatif_options, limit, "--limit", "CHOICE<=VALUE,...",
                "narrow the searches: tp<=8, pp=4, recompute=none"),
    MS_OPT_FLAG(ms_whatif_options, csv, "--csv", "write CSV instead of text"),
    {0},
};

void ms_whatif_options_sets(ms_ctx *cx, ms_whatif_options *options,
                            ms_option_set sets[MS_NUM_WHATIF_SETS])
{
    static const char *const kept[] = {"--plan",      "--model",
                                       "--cluster",   "--gpus",
                                       "--seq",       "--global-batch",
                                       "--precision", "--stack",
                                       "--profile",   "--ranks-per-domain",
                                       NULL};
    const ms_option_set all[MS_NUM_WHATIF_SETS] = {
        {"whatif", ms_whatif_option_table, options},
        {"memory", ms_memory_option_table, &options->memory},
        {"campaign", ms_campaign_jobs_option_table, &options->campaign},
        {"plan", ms_searched_plan_table(cx, kept, NULL), &options->plan}};
    memcpy(sets, all, sizeof all);
}

static ms_status read_change(ms_ctx *cx, const char *text, double *out)
{
    if (text == NULL)
        ms_note_default(cx, "--change %s", DEFAULT_CHANGE);
    text = text == NULL ? DEFAULT_CHANGE : text;
    if (ms_parse_percentage(text, out) && *out > 0.0)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "--change is \"%s\", must be a share above 0 and below 100 %%", text);
    return ms_hint(cx, "--change 20%%");
}

/* The campaign that is asked for; a price alone needs none. */
static ms_status read_campaign(ms_ctx *cx, const ms_campaign_options *options,
                               const ms_campaign_question **out)
{
    ms_campaign_options asked = *options;
    bool is_asked;
    if (options->simulate_failures || options->seed.given) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "whatif simulates no failures");
        return ms_hint(cx, "\"meshsim predict\" does, for one plan");
    }
    if (!asked.tokens.given && !asked.chinchilla && !asked.flop.given)
        asked.price.given = false;
    MS_TRY(ms_campaign_options_check(cx, &asked, &is_asked));
    *out = NULL;
    if (!is_asked)
        return MS_OK;
    ms_campaign_question *question = MS_NEW(cx->arena, ms_campaign_question);
    *question = ms_campaign_options_question(options);
    *out = question;
    return MS_OK;
}

/* The user's plan, with the budget of automatic recomputation that fits. */
static ms_status read_given(ms_ctx *cx, const ms_plan_options *options,
                            const ms_plan **out)
{
    *out = NULL;
    if (options->plan_file == NULL)
        return MS_OK;
    ms_plan *plan = MS_NEW(cx->arena, ms_plan);
    ms_workload *workload;
    MS_TRY(ms_plan_from_options(cx, options, plan));
    MS_TRY(ms_plan_open_fitted(cx, plan, &workload));
    ms_workload_close(workload);
    *out = plan;
    return MS_OK;
}

static ms_status check_memory(ms_ctx *cx, const ms_best_question *job)
{
    const ms_cluster *cluster;
    MS_TRY(ms_cluster_load(cx, job->base.cluster, &cluster));
    return ms_memory_options_check(cx, &job->limits->memory, cluster);
}

ms_status ms_whatif_options_make(ms_ctx *cx, ms_whatif_options *options,
                                 ms_what_if_question *out)
{
    ms_plan_limits *limits = MS_NEW(cx->arena, ms_plan_limits);
    *out = (ms_what_if_question){.search_all = options->all};
    MS_TRY(read_change(cx, options->change, &out->change_frac));
    MS_TRY(read_campaign(cx, &options->campaign, &out->job.campaign));
    MS_TRY(ms_plan_limits_read(cx, &options->limit, &options->memory, limits));
    MS_TRY(read_given(cx, &options->plan, &out->given));
    if (out->given != NULL)
        ms_plan_give(&options->plan, MS_CHOOSE_GPUS, out->given->gpus);
    MS_TRY(ms_plan_base_from_options(cx, &options->plan, &out->job.base));
    out->job.limits = limits;
    out->gpu_hour_price =
        options->campaign.price.given ? options->campaign.price.value : (double)NAN;
    return check_memory(cx, &out->job);
}
