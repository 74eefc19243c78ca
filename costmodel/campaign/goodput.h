/* Goodput: the share of a training job's time that is useful work, when interruptions
 * throw it back to its last checkpoint.
 *
 * Interruptions are a Poisson process. One costs the work since the last checkpoint, and a
 * restart; interruptions strike during checkpoints and restarts, too. A checkpoint after
 * every interval of useful work stops the job for as long as it blocks. */
#ifndef MS_COSTMODEL_CAMPAIGN_GOODPUT_H
#define MS_COSTMODEL_CAMPAIGN_GOODPUT_H

typedef struct ms_interruptions {
    double mean_s;       /* mean time between interruptions of the job; infinite: none */
    double checkpoint_s; /* time for which a checkpoint stops the job */
    double restart_s;    /* detection, scheduling, loading: the job stands still */
} ms_interruptions;

/* Useful share of time with a checkpoint after every `interval_s` of useful work (> 0):
 * t / (M e^(R/M) (e^((t+C)/M) - 1)). Source: Daly, Future Generation Computer Systems 22
 * (2006), section 3, with restarts that fail. Without interruptions t / (t + C). */
double ms_goodput_frac(const ms_interruptions *job, double interval_s);

/* Interval that maximises ms_goodput_frac: M (1 + W(-e^(-1-C/M))), W the principal branch
 * of Lambert's function, from the derivative's zero. Infinite without interruptions, 0 if
 * checkpoints cost nothing. */
double ms_best_interval_s(const ms_interruptions *job);

/* Approximations of that interval, for comparison: sqrt(2 C M) (Young, Communications of
 * the ACM 17, 1974), and Daly's equation 37, which is M where C >= 2 M. */
double ms_young_interval_s(const ms_interruptions *job);
double ms_daly_interval_s(const ms_interruptions *job);

/* Monte Carlo of the same process: job time of `work_s` seconds of useful work, as
 * simulated interruption by interruption. Deterministic in `seed`. */
typedef struct ms_simulated_job {
    double elapsed_s;
    double goodput_frac;
    long num_interruptions, num_checkpoints;
} ms_simulated_job;
ms_simulated_job ms_simulate_job(const ms_interruptions *job, double interval_s,
                                 double work_s, long seed);

#endif
