#include "costmodel/campaign/goodput.h"

#include "base/number.h"
#include "base/rng.h"

#include <gsl/gsl_sf_lambert.h>

#include <math.h>
#include <stdbool.h>

double ms_goodput_frac(const ms_interruptions *job, double interval_s)
{
    double mean_s = job->mean_s;
    double busy_s = interval_s + job->checkpoint_s;
    if (isinf(mean_s))
        return isinf(interval_s) ? 1.0 : interval_s / busy_s;
    if (isinf(interval_s))
        return 0.0;
    return interval_s / (mean_s * exp(job->restart_s / mean_s) * expm1(busy_s / mean_s));
}

double ms_best_interval_s(const ms_interruptions *job)
{
    if (isinf(job->mean_s))
        return job->mean_s;
    /* Lambert's function loses half of its digits beside its branch point */
    double share = job->checkpoint_s / job->mean_s;
    if (share < 1e-9)
        return ms_young_interval_s(job);
    return job->mean_s * (1.0 + gsl_sf_lambert_W0(-exp(-1.0 - share)));
}

double ms_young_interval_s(const ms_interruptions *job)
{
    return sqrt(2.0 * job->checkpoint_s * job->mean_s);
}

double ms_daly_interval_s(const ms_interruptions *job)
{
    double half = job->checkpoint_s / (2.0 * job->mean_s);
    if (half >= 1.0)
        return job->mean_s;
    return ms_young_interval_s(job) * (1.0 + sqrt(half) / 3.0 + half / 9.0) -
           job->checkpoint_s;
}

/* ---- Monte Carlo ---- */

typedef struct process {
    ms_rng random;
    double mean_s;
    double now_s, next_s; /* the next interruption */
    long num_interruptions;
} process;

static double drawn_gap_s(process *p)
{
    return isinf(p->mean_s) ? p->mean_s : -p->mean_s * log1p(-ms_rng_uniform(&p->random));
}

/* Spends `seconds`, or less if an interruption comes first: then returns false. */
static bool spend(process *p, double seconds)
{
    if (p->now_s + seconds <= p->next_s) {
        p->now_s += seconds;
        return true;
    }
    p->now_s = p->next_s;
    p->next_s += drawn_gap_s(p);
    p->num_interruptions++;
    return false;
}

ms_simulated_job ms_simulate_job(const ms_interruptions *job, double interval_s,
                                 double work_s, long seed)
{
    process p = {.random = ms_rng_seed((uint64_t)seed), .mean_s = job->mean_s};
    p.next_s = drawn_gap_s(&p);
    ms_simulated_job out = {0};
    double done_s = 0.0;
    while (done_s < work_s) {
        double part_s = ms_min(interval_s, work_s - done_s);
        while (!spend(&p, part_s + job->checkpoint_s))
            while (!spend(&p, job->restart_s))
                ;
        done_s += part_s;
        out.num_checkpoints++;
    }
    out.elapsed_s = p.now_s;
    out.goodput_frac = work_s / p.now_s;
    out.num_interruptions = p.num_interruptions;
    return out;
}
