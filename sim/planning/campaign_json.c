/* A training campaign as JSON. */
#include "sim/planning/campaign_text.h"

#include <math.h>
#include <string.h>

static void write_terms(ms_jout *out, const ms_campaign_terms *t)
{
    ms_jout_begin_object_field(out, "terms");
    ms_jout_number_field(out, "price_per_gpu_hour", t->gpu_hour_price);
    ms_jout_number_field(out, "gpu_power_w", t->gpu_power_w);
    ms_jout_number_field(out, "pue", t->pue);
    ms_jout_number_field(out, "co2_kg_per_kwh", t->co2_kg_per_kwh);
    ms_jout_number_field(out, "gpu_mtbf_s", t->gpu_mean_s);
    ms_jout_number_field(out, "restart_s", t->restart_s);
    ms_jout_number_field(out, "repair_s", t->repair_s);
    ms_jout_number_field(out, "write_bytes_per_s", t->write_bytes_per_s);
    ms_jout_end_object(out);
}

static void write_failures(ms_jout *out, const ms_simulated_job *job)
{
    ms_jout_begin_object_field(out, "simulated");
    ms_jout_number_field(out, "elapsed_s", job->elapsed_s);
    ms_jout_number_field(out, "goodput_frac", job->goodput_frac);
    ms_jout_number_field(out, "interruptions", (double)job->num_interruptions);
    ms_jout_end_object(out);
}

/* A figure that is proportional to the time, and the keys of its 90 % interval. */
typedef struct proportional {
    const char *key, *low, *high;
    size_t offset; /* place of a double in ms_campaign */
} proportional;

#define KEYS(member)                                                                     \
    {                                                                                    \
#member, #member "_low", #member "_high", offsetof(ms_campaign, member)          \
    }
static const proportional resources[] = {KEYS(gpu_hours), KEYS(cost), KEYS(energy_kwh),
                                         KEYS(co2_kg)};
#undef KEYS

static void write_resources(ms_jout *out, const ms_campaign *c)
{
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
        const proportional *r = &resources[i];
        double value;
        memcpy(&value, (const char *)c + r->offset, sizeof value);
        ms_jout_number_field(out, r->key, value);
        ms_jout_number_field(out, r->low, value * c->elapsed_low_s / c->elapsed_s);
        ms_jout_number_field(out, r->high, value * c->elapsed_high_s / c->elapsed_s);
    }
}

/* Writes whether a limit is kept; null without one. */
static void write_kept(ms_jout *out, const char *key, double value, double limit)
{
    if (isnan(limit))
        ms_jout_number_field(out, key, limit);
    else
        ms_jout_bool_field(out, key, value <= limit);
}

void ms_campaign_write_field(ms_jout *out, const ms_campaign_answer *answer)
{
    const ms_campaign *c = &answer->campaign;
    ms_jout_begin_object_field(out, "campaign");
    ms_jout_number_field(out, "tokens", answer->terms.tokens);
    ms_jout_number_field(out, "steps", c->num_steps);
    ms_jout_number_field(out, "elapsed_s", c->elapsed_s);
    ms_jout_number_field(out, "elapsed_s_low", c->elapsed_low_s);
    ms_jout_number_field(out, "elapsed_s_high", c->elapsed_high_s);
    ms_jout_number_field(out, "useful_s", c->useful_s);
    ms_jout_number_field(out, "goodput_frac", c->goodput_frac);
    ms_jout_number_field(out, "mtbf_s", c->job.mean_s);
    ms_jout_number_field(out, "interruptions", c->num_interruptions);
    ms_jout_number_field(out, "checkpoint_bytes", answer->step.checkpoint_bytes);
    ms_jout_number_field(out, "checkpoint_stall_s", c->job.checkpoint_s);
    ms_jout_number_field(out, "checkpoint_interval_steps", c->interval_steps);
    ms_jout_number_field(out, "spare_nodes", c->spare_nodes);
    write_resources(out, c);
    ms_jout_number_field(out, "deadline_s", answer->deadline_s);
    ms_jout_number_field(out, "budget", answer->budget);
    write_kept(out, "meets_deadline", c->elapsed_s, answer->deadline_s);
    write_kept(out, "within_budget", c->cost, answer->budget);
    write_terms(out, &answer->terms);
    if (answer->simulated)
        write_failures(out, &answer->failures);
    ms_jout_end_object(out);
}
