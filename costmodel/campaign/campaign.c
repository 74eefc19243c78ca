#include "costmodel/campaign/campaign.h"

#include "base/number.h"

#include <gsl/gsl_cdf.h>

#include <math.h>

#define SECONDS_OF_HOUR 3600.0

static ms_interruptions interruptions_of(const ms_campaign_terms *terms,
                                         const ms_campaign_step *step)
{
    double written_s = step->checkpoint_bytes / terms->write_bytes_per_s;
    return (ms_interruptions){
        .mean_s = terms->gpu_mean_s / (double)step->gpus,
        .checkpoint_s = isnan(terms->checkpoint_s) ? written_s : terms->checkpoint_s,
        .restart_s = terms->restart_s};
}

/* The better of the whole numbers of steps on both sides of the best interval. No
 * checkpoint begins before the previous one is written. */
static double interval_steps_of(const ms_campaign_terms *terms,
                                const ms_campaign_step *step, const ms_interruptions *job)
{
    double written_s = step->checkpoint_bytes / terms->write_bytes_per_s;
    double least = ms_max(1.0, ceil(written_s / step->step_s));
    double fewer = ms_max(least, floor(ms_best_interval_s(job) / step->step_s));
    return ms_goodput_frac(job, fewer * step->step_s) >=
                   ms_goodput_frac(job, (fewer + 1.0) * step->step_s)
               ? fewer
               : fewer + 1.0;
}

static double spare_nodes_of(const ms_campaign_terms *terms, const ms_campaign_step *step,
                             const ms_interruptions *job)
{
    double failing = terms->repair_s / job->mean_s;
    double most = ceil((double)step->gpus / (double)step->gpus_per_node);
    if (isnan(failing))
        return failing;
    unsigned spare = 0;
    while (spare < most && gsl_cdf_poisson_P(spare, failing) < 0.95)
        spare++;
    return spare;
}

ms_campaign ms_campaign_of(const ms_campaign_terms *terms, const ms_campaign_step *step)
{
    ms_campaign c = {.num_steps = ceil(terms->tokens / step->tokens),
                     .job = interruptions_of(terms, step)};
    c.useful_s = c.num_steps * step->step_s;
    c.interval_steps = interval_steps_of(terms, step, &c.job);
    c.goodput_frac = ms_goodput_frac(&c.job, c.interval_steps * step->step_s);
    c.elapsed_s = c.useful_s / c.goodput_frac;
    c.elapsed_low_s = c.elapsed_s * step->step_low_s / step->step_s;
    c.elapsed_high_s = c.elapsed_s * step->step_high_s / step->step_s;
    c.num_interruptions = c.elapsed_s / c.job.mean_s;
    c.spare_nodes = spare_nodes_of(terms, step, &c.job);
    double spare_gpus =
        isnan(c.spare_nodes) ? 0.0 : c.spare_nodes * (double)step->gpus_per_node;
    c.gpu_hours = ((double)step->gpus + spare_gpus) * c.elapsed_s / SECONDS_OF_HOUR;
    c.cost = c.gpu_hours * terms->gpu_hour_price;
    c.energy_kwh = (double)step->gpus * c.elapsed_s / SECONDS_OF_HOUR *
                   terms->gpu_power_w * terms->pue / 1e3;
    c.co2_kg = c.energy_kwh * terms->co2_kg_per_kwh;
    return c;
}
