#include "sim/planning/campaign_of_plan.h"

#include <math.h>

/* 419 unexpected interruptions in 54 days on 16,384 GPUs: Llama 3 (arxiv.org/abs/
 * 2407.21783, section 3.3.4 and table 5) */
#define LLAMA_3_GPU_HOURS (54.0 * 24.0 * 16384.0 / 419.0)
/* 2 TB/s that its storage sustains, for 16,384 GPUs (section 3.3.1) */
#define LLAMA_3_WRITE_BYTES_PER_S (2e12 / 16384.0)
/* 20 tokens a parameter: Hoffmann et al. 2022 (arxiv.org/abs/2203.15556, table 3) */
#define CHINCHILLA_TOKENS 20.0
#define ASSUMED_RESTART_S 600.0
#define LEAST_GOODPUT     1e-3

ms_campaign_question ms_campaign_question_empty(void)
{
    const double none = (double)NAN;
    return (ms_campaign_question){
        .given = {none, none, none, none, none, none, none, none, none, none},
        .flop = none,
        .deadline_s = none,
        .budget = none};
}

static double given_or(double given, double otherwise)
{
    return isnan(given) ? otherwise : given;
}

static double tokens_of(const ms_campaign_question *question, const ms_workload *workload)
{
    ms_param_counts params = ms_model_params(workload->model);
    if (question->chinchilla)
        return CHINCHILLA_TOKENS * params.total;
    return given_or(question->given.tokens, question->flop / (6.0 * params.active));
}

/* Power limit of a device; on a mixed cluster the mean over the job's, in listed order. */
static double mean_tdp_w(const ms_cluster *cluster, long gpus)
{
    long counts[MS_MAX_DEVICE_KINDS];
    double sum_w = 0.0;
    if (cluster->num_kinds == 0)
        return cluster->device.tdp_w;
    ms_count_kinds(cluster, false, gpus, counts);
    for (int k = 0; k < cluster->num_kinds; k++)
        sum_w +=
            counts[k] > 0 ? (double)counts[k] * ms_kind_device(cluster, k)->tdp_w : 0.0;
    return sum_w / (double)gpus;
}

ms_campaign_terms ms_campaign_terms_of(const ms_campaign_question *question,
                                       const ms_workload *workload, double gpus)
{
    const ms_campaign_terms *given = &question->given;
    const ms_cluster *cluster = workload->cluster;
    ms_campaign_terms t = *given;
    t.tokens = tokens_of(question, workload);
    t.gpu_hour_price = given_or(given->gpu_hour_price, cluster->usd_per_gpu_hour);
    t.gpu_power_w = given_or(given->gpu_power_w, mean_tdp_w(cluster, (long)gpus));
    t.pue = given_or(given->pue, 1.0);
    t.gpu_mean_s = given_or(given->gpu_mean_s, 3600.0 * LLAMA_3_GPU_HOURS);
    t.restart_s = given_or(given->restart_s, ASSUMED_RESTART_S);
    t.write_bytes_per_s =
        given_or(given->write_bytes_per_s, gpus * LLAMA_3_WRITE_BYTES_PER_S);
    return t;
}

/* A checkpoint has the optimizer's moments and the weights in their most exact copy. */
static double checkpoint_bytes_of(const ms_workload *workload)
{
    const ms_stack *stack = workload->stack;
    double weight_bytes = stack->master_bytes.value > 0.0 ? stack->master_bytes.value
                                                          : stack->param_bytes.value;
    return ms_model_params(workload->model).total *
           (weight_bytes + stack->moment_bytes.value);
}

/* The campaign of an answer's terms and step; results that mean nothing are unknown. */
static ms_campaign reckon(const ms_campaign_answer *a)
{
    const double none = (double)NAN;
    ms_campaign c = ms_campaign_of(&a->terms, &a->step);
    if (!ms_campaign_advances(&c)) {
        c.elapsed_s = c.elapsed_low_s = c.elapsed_high_s = none;
        c.gpu_hours = c.cost = c.energy_kwh = c.co2_kg = none;
        c.num_interruptions = c.spare_nodes = none;
    }
    return c;
}

ms_campaign_answer ms_campaign_of_plan(const ms_campaign_question *question,
                                       const ms_workload *workload, const ms_plan *plan,
                                       const ms_prediction *prediction)
{
    ms_campaign_answer a = {
        .terms = ms_campaign_terms_of(question, workload, (double)plan->gpus),
        .step = {.step_s = prediction->step_s,
                 .step_low_s = prediction->step_low_s,
                 .step_high_s = prediction->step_high_s,
                 .tokens = ms_workload_useful_tokens(workload, plan->global_batch),
                 .checkpoint_bytes = checkpoint_bytes_of(workload),
                 .gpus = plan->gpus,
                 .gpus_per_node = workload->cluster->gpus_per_node},
        .deadline_s = question->deadline_s,
        .budget = question->budget};
    a.campaign = reckon(&a);
    return a;
}

bool ms_campaign_advances(const ms_campaign *campaign)
{
    return campaign->goodput_frac >= LEAST_GOODPUT;
}

const char *ms_no_progress_text(ms_arena *arena, const ms_campaign_answer *answer)
{
    const ms_interruptions *job = &answer->campaign.job;
    return ms_arena_printf(
        arena,
        "no plan makes progress: the job on %ld GPUs is interrupted every %.4g s, a step "
        "takes %.4g s, a checkpoint %.4g s and a restart %.4g s",
        answer->step.gpus, job->mean_s, answer->step.step_s, job->checkpoint_s,
        job->restart_s);
}

ms_status ms_campaign_fail_progress(ms_ctx *cx, const ms_campaign_answer *answer)
{
    ms_fail(cx, MS_ENOFIT, MS_NOWHERE, "%s", ms_no_progress_text(cx->arena, answer));
    return ms_hint(cx, "look at --mtbf, --restart and --write-bandwidth");
}

bool ms_campaign_keeps_limits(const ms_campaign_answer *answer)
{
    const ms_campaign *c = &answer->campaign;
    bool late = !isnan(answer->deadline_s) && !(c->elapsed_s <= answer->deadline_s);
    bool dear = !isnan(answer->budget) && !(c->cost <= answer->budget);
    return ms_campaign_advances(c) && !late && !dear;
}

ms_campaign_answer ms_campaign_with_step(const ms_campaign_answer *answer, double step_s)
{
    ms_campaign_answer changed = *answer;
    changed.step.step_s = step_s;
    changed.campaign = reckon(&changed);
    return changed;
}

static bool keeps_if_slower(const ms_campaign_answer *answer, double slower_frac)
{
    ms_campaign_answer changed =
        ms_campaign_with_step(answer, answer->step.step_s * (1.0 + slower_frac));
    return ms_campaign_keeps_limits(&changed);
}

double ms_campaign_slack_frac(const ms_campaign_answer *answer, double most_frac)
{
    if (keeps_if_slower(answer, most_frac))
        return most_frac;
    double low = 0.0, high = most_frac;
    for (int i = 0; i < 60; i++) {
        double middle = 0.5 * (low + high);
        if (keeps_if_slower(answer, middle))
            low = middle;
        else
            high = middle;
    }
    return low;
}
