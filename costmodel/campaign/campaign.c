#include "costmodel/campaign/campaign.h"

#include "base/number.h"

#include <gsl/gsl_cdf.h>

#include <math.h>

#define SECONDS_OF_HOUR 3600.0
/* A Poisson variable of a larger mean is normally distributed to a node in a million. */
#define LARGE_MEAN 1e6

static double written_s_of(const ms_campaign_terms *terms, const ms_campaign_step *step)
{
    return step->checkpoint_bytes / terms->write_bytes_per_s;
}

/* Interruptions with a checkpoint after every `steps` steps (0: any number): it waits
 * until the previous one is written. */
static ms_interruptions interruptions_of(const ms_campaign_terms *terms,
                                         const ms_campaign_step *step, double steps)
{
    double written_s = written_s_of(terms, step);
    double stall_s = isnan(terms->checkpoint_s) ? written_s : terms->checkpoint_s;
    if (steps > 0.0)
        stall_s = ms_max(stall_s, written_s - steps * step->step_s);
    return (ms_interruptions){.mean_s = terms->gpu_mean_s / (double)step->gpus,
                              .checkpoint_s = stall_s,
                              .restart_s = terms->restart_s};
}

static double goodput_of(const ms_campaign_terms *terms, const ms_campaign_step *step,
                         double steps)
{
    ms_interruptions job = interruptions_of(terms, step, steps);
    return ms_goodput_frac(&job, steps * step->step_s);
}

/* The best number of steps between checkpoints: beside the best interval or, where that
 * is too short to write a checkpoint, beside the shortest without a wait. */
static double interval_steps_of(const ms_campaign_terms *terms,
                                const ms_campaign_step *step)
{
    ms_interruptions job = interruptions_of(terms, step, 0.0);
    double interval_s =
        ms_max(ms_best_interval_s(&job), written_s_of(terms, step) - job.checkpoint_s);
    double fewer = ms_max(1.0, floor(interval_s / step->step_s));
    return goodput_of(terms, step, fewer) >= goodput_of(terms, step, fewer + 1.0)
               ? fewer
               : fewer + 1.0;
}

/* 95th percentile of a Poisson variable, as the root of its distribution function between
 * one that is too small and one that is enough. */
static double percentile_95(double mean)
{
    unsigned below = 0, enough = 1;
    if (gsl_cdf_poisson_P(below, mean) >= 0.95)
        return 0.0;
    while (gsl_cdf_poisson_P(enough, mean) < 0.95)
        enough *= 2;
    while (enough - below > 1) {
        unsigned middle = below + (enough - below) / 2;
        if (gsl_cdf_poisson_P(middle, mean) < 0.95)
            below = middle;
        else
            enough = middle;
    }
    return enough;
}

static double spare_nodes_of(const ms_campaign_terms *terms, const ms_interruptions *job)
{
    double mean = terms->repair_s / job->mean_s;
    if (isnan(mean) || mean <= LARGE_MEAN)
        return isnan(mean) ? mean : percentile_95(mean);
    return ceil(mean + gsl_cdf_ugaussian_Pinv(0.95) * sqrt(mean));
}

ms_campaign ms_campaign_of(const ms_campaign_terms *terms, const ms_campaign_step *step)
{
    ms_campaign c = {.num_steps = ceil(terms->tokens / step->tokens),
                     .interval_steps = interval_steps_of(terms, step)};
    c.useful_s = c.num_steps * step->step_s;
    c.job = interruptions_of(terms, step, c.interval_steps);
    c.goodput_frac = ms_goodput_frac(&c.job, c.interval_steps * step->step_s);
    c.elapsed_s = c.useful_s / c.goodput_frac;
    c.elapsed_low_s = c.elapsed_s * step->step_low_s / step->step_s;
    c.elapsed_high_s = c.elapsed_s * step->step_high_s / step->step_s;
    c.num_interruptions = c.elapsed_s / c.job.mean_s;
    c.spare_nodes = spare_nodes_of(terms, &c.job);
    double spare_gpus =
        isnan(c.spare_nodes) ? 0.0 : c.spare_nodes * (double)step->gpus_per_node;
    c.gpu_hours = ((double)step->gpus + spare_gpus) * c.elapsed_s / SECONDS_OF_HOUR;
    c.cost = c.gpu_hours * terms->gpu_hour_price;
    c.energy_kwh = (double)step->gpus * c.elapsed_s / SECONDS_OF_HOUR *
                   terms->gpu_power_w * terms->pue / 1e3;
    c.co2_kg = c.energy_kwh * terms->co2_kg_per_kwh;
    return c;
}
