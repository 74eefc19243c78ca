#include "sim/request/campaign_options.h"

#include "base/note.h"

#include <math.h>

#define MOST_SIMULATED 1e8

/* Bounds keep all results finite. */
#define LONGEST_S 1e10
#define ROW(unit_of, member, option, placeholder, least, most, text, ...)                \
    MS_OPT_ROW(MS_OPTION_QUANTITY, ms_campaign_options, member, option,                  \
               .value = (placeholder), .unit = (unit_of), .low = (least),                \
               .above_low = (least) == 0.0, .high = (most), .help = (text),              \
               .example = __VA_ARGS__)

#define TERM_ROWS                                                                        \
    ROW(MS_UNIT_DECIMAL, tokens, "--tokens", "N", 0, 1e18,                               \
        "tokens that the model is to see: 15T, 300B; asks for days, GPU-hours, money "   \
        "and energy of the whole training",                                              \
        "15T"),                                                                          \
        MS_OPT_FLAG(ms_campaign_options, chinchilla, "--chinchilla",                     \
                    "instead of --tokens: 20 tokens a parameter"),                       \
        ROW(MS_UNIT_DECIMAL, flop, "--flop", "N", 0, 1e32,                               \
            "instead of --tokens: what training may take, 6 FLOP a parameter and "       \
            "token: 3.8e25",                                                             \
            "3.8e25"),                                                                   \
        ROW(MS_UNIT_DECIMAL, price, "--price", "X", 0, 1e9,                              \
            "price of a GPU for an hour, in any currency: 2.5, 2.5/gpu-hour (default "   \
            "the cluster's, if known)",                                                  \
            "2.5/gpu-hour", .endings = MS_PRICE_ENDINGS),                                \
        ROW(MS_UNIT_DECIMAL, power_w, "--power", "WATTS", 0, 1e6,                        \
            "power of a GPU with its share of the node and network (default the GPU's "  \
            "limit alone)",                                                              \
            "700W", .endings = "W"),                                                     \
        ROW(MS_UNIT_DECIMAL, pue, "--pue", "X", 1, 100,                                  \
            "power of the data centre per power of its computers (default 1)", "1.2"),   \
        ROW(MS_UNIT_DECIMAL, co2_kg_per_kwh, "--co2", "KG", 0, 100,                      \
            "CO2 of the grid, kg/kWh (default unknown)", "0.4kg/kWh",                    \
            .endings = "kg/kWh"),                                                        \
        ROW(MS_UNIT_SECONDS, mtbf_s, "--mtbf", "TIME", 0, LONGEST_S,                     \
            "mean time between interruptions by one GPU (default 50677h: Llama 3 405B)", \
            "50000h"),                                                                   \
        ROW(MS_UNIT_SECONDS, restart_s, "--restart", "TIME", 0, LONGEST_S,               \
            "from an interruption to the next step: detection, scheduling, loading "     \
            "(default 10min, assumed)",                                                  \
            "10min"),                                                                    \
        ROW(MS_UNIT_SECONDS, repair_s, "--repair", "TIME", 0, LONGEST_S,                 \
            "until a failed node is back: asks for spare nodes (default none are "       \
            "counted)",                                                                  \
            "2d"),                                                                       \
        ROW(MS_UNIT_BYTES_PER_S, write_bytes_per_s, "--write-bandwidth", "RATE", 0,      \
            1e18,                                                                        \
            "to storage, of the whole job (default 122 MB/s for each GPU: Llama 3's "    \
            "storage)",                                                                  \
            "200 GB/s"),                                                                 \
        ROW(MS_UNIT_SECONDS, stall_s, "--checkpoint-stall", "TIME", 0, LONGEST_S,        \
            "for which a checkpoint stops the job, where it is written meanwhile "       \
            "(default until it is written)",                                             \
            "10s"),                                                                      \
        ROW(MS_UNIT_SECONDS, deadline_s, "--deadline", "TIME", 0, LONGEST_S,             \
            "by when training must end: 60d", "60d"),                                    \
        ROW(MS_UNIT_DECIMAL, budget, "--budget", "X", 0, 1e18,                           \
            "what it may cost, in the currency of --price: 20M", "20M")

#define FAILURE_ROWS(text, text_of_seed)                                                 \
    MS_OPT_FLAG(ms_campaign_options, simulate_failures, "--simulate-failures", text),    \
        MS_OPT_INTEGER(ms_campaign_options, seed, "--failure-seed", "N", 0,              \
                       MS_OPT_MAX_SEED, text_of_seed)

const ms_option ms_campaign_option_table[] = {
    TERM_ROWS,
    FAILURE_ROWS("also simulate the campaign interruption by interruption",
                 "seed of --simulate-failures (default 0)"),
    {0},
};

const ms_option ms_campaign_jobs_option_table[] = {
    TERM_ROWS,
    FAILURE_ROWS(NULL, NULL), /* read, so that the refusal can say who takes them */
    {0},
};

static ms_status refuse_alone(ms_ctx *cx, const ms_campaign_options *options)
{
    const char *name = ms_options_given_in(ms_campaign_option_table, options, "--tokens");
    if (name == NULL)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "%s is about a whole training, and its length is not given", name);
    return ms_hint(cx, "add --tokens 15T, --chinchilla or --flop 3.8e25");
}

ms_status ms_campaign_options_check(ms_ctx *cx, const ms_campaign_options *options,
                                    bool *asked)
{
    int num = options->tokens.given + options->chinchilla + options->flop.given;
    *asked = num == 1;
    if (num == 0)
        return refuse_alone(cx, options);
    if (num > 1) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "the length of training is given %d times: one of --tokens, "
                "--chinchilla and --flop is enough",
                num);
        return ms_hint(cx, "leave out all but one");
    }
    if (options->budget.given && !options->price.given) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--budget needs a price of GPUs");
        return ms_hint(cx, "add --price 2.5");
    }
    return MS_OK;
}

static double given_or_none(const ms_opt_quantity *option)
{
    return option->given ? option->value : (double)NAN;
}

ms_campaign_question ms_campaign_options_question(const ms_campaign_options *options)
{
    const ms_campaign_terms given = {
        .tokens = given_or_none(&options->tokens),
        .gpu_hour_price = given_or_none(&options->price),
        .gpu_power_w = given_or_none(&options->power_w),
        .pue = given_or_none(&options->pue),
        .co2_kg_per_kwh = given_or_none(&options->co2_kg_per_kwh),
        .gpu_mean_s = given_or_none(&options->mtbf_s),
        .restart_s = given_or_none(&options->restart_s),
        .repair_s = given_or_none(&options->repair_s),
        .write_bytes_per_s = given_or_none(&options->write_bytes_per_s),
        .checkpoint_s = given_or_none(&options->stall_s)};
    return (ms_campaign_question){.given = given,
                                  .flop = given_or_none(&options->flop),
                                  .chinchilla = options->chinchilla,
                                  .deadline_s = given_or_none(&options->deadline_s),
                                  .budget = given_or_none(&options->budget),
                                  .simulate_failures = options->simulate_failures,
                                  .seed = options->seed.given ? options->seed.value : 0};
}

void ms_campaign_options_note(ms_ctx *cx, const ms_campaign_options *options,
                              const ms_campaign_terms *terms)
{
    if (!options->mtbf_s.given)
        ms_note_default(cx, "--mtbf %.0fh a GPU, as Llama 3 405B was interrupted",
                        terms->gpu_mean_s / 3600.0);
    if (!options->restart_s.given)
        ms_note_default(cx, "--restart 10min, assumed");
    if (!options->write_bytes_per_s.given)
        ms_note_default(
            cx, "--write-bandwidth \"%.3g GB/s\": 122 MB/s a GPU, as Llama 3's storage",
            terms->write_bytes_per_s / 1e9);
    if (!options->power_w.given && !isnan(terms->gpu_power_w))
        ms_note_default(cx, "--power %g, the GPU's limit alone", terms->gpu_power_w);
    if (!options->pue.given)
        ms_note_default(cx, "--pue %g", terms->pue);
    if (!options->price.given && !isnan(terms->gpu_hour_price))
        ms_note_default(cx, "--price %g, as the cluster's file has it",
                        terms->gpu_hour_price);
    if (options->simulate_failures && !options->seed.given)
        ms_note_default(cx, "--failure-seed 0");
}

/* MS_ENOFIT for a training that does not advance, MS_EINPUT for one too long to
 * simulate. */
static ms_status check_advance(ms_ctx *cx, const ms_campaign_answer *a)
{
    const ms_campaign *c = &a->campaign;
    if (!ms_campaign_advances(c))
        return ms_campaign_fail_progress(cx, a);
    double num_simulated = c->num_steps / c->interval_steps + c->num_interruptions;
    if (!a->simulated || num_simulated <= MOST_SIMULATED)
        return MS_OK;
    return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                   "--simulate-failures can follow %.0g checkpoints and interruptions, "
                   "and this training has %.2g",
                   MOST_SIMULATED, num_simulated);
}

ms_status ms_campaign_options_apply(ms_ctx *cx, const ms_campaign_options *options,
                                    const ms_workload *workload, const ms_plan *plan,
                                    const ms_prediction *prediction,
                                    ms_campaign_answer *out)
{
    ms_campaign_question question = ms_campaign_options_question(options);
    *out = ms_campaign_of_plan(&question, workload, plan, prediction);
    out->simulated = question.simulate_failures;
    ms_campaign_options_note(cx, options, &out->terms);
    MS_TRY(check_advance(cx, out));
    const ms_campaign *c = &out->campaign;
    if (out->simulated)
        out->failures = ms_simulate_job(&c->job, c->interval_steps * out->step.step_s,
                                        c->useful_s, question.seed);
    return MS_OK;
}
