#include "cli/cmd/report_campaign.h"

#include "cli/cmd/report_json.h"
#include "cli/options/output.h"

#include <math.h>

/* Values of a file and of a flag closer than this are the same. */
#define SAME_FRAC 1e-9

typedef struct term {
    const char *key;
    size_t offset; /* ms_opt_quantity in ms_campaign_options */
} term;

static const term campaign_keys[] = {
    {"tokens", offsetof(ms_campaign_options, tokens)},
    {"checkpoint_stall_s", offsetof(ms_campaign_options, stall_s)},
    {"deadline_s", offsetof(ms_campaign_options, deadline_s)},
    {"budget", offsetof(ms_campaign_options, budget)},
    {NULL, 0},
};
static const term term_keys[] = {
    {"price_per_gpu_hour", offsetof(ms_campaign_options, price)},
    {"gpu_power_w", offsetof(ms_campaign_options, power_w)},
    {"pue", offsetof(ms_campaign_options, pue)},
    {"co2_kg_per_kwh", offsetof(ms_campaign_options, co2_kg_per_kwh)},
    {"gpu_mtbf_s", offsetof(ms_campaign_options, mtbf_s)},
    {"restart_s", offsetof(ms_campaign_options, restart_s)},
    {"repair_s", offsetof(ms_campaign_options, repair_s)},
    {"write_bytes_per_s", offsetof(ms_campaign_options, write_bytes_per_s)},
    {NULL, 0},
};

static ms_status read_terms(ms_ctx *cx, ms_jval object, const term *terms,
                            ms_campaign_options *out)
{
    for (const term *t = terms; t->key != NULL; t++) {
        ms_opt_quantity *option = (ms_opt_quantity *)((char *)out + t->offset);
        MS_TRY(ms_report_number(cx, object, t->key, &option->value));
        option->given = !isnan(option->value);
    }
    return MS_OK;
}

ms_status ms_report_campaign_read(ms_ctx *cx, ms_jval object, ms_campaign_options *out)
{
    ms_jval campaign = ms_report_member(cx, object, "campaign");
    if (!ms_json_is_object(campaign))
        return MS_OK;
    MS_TRY(read_terms(cx, campaign, campaign_keys, out));
    ms_jval terms = ms_report_member(cx, campaign, "terms");
    return ms_json_is_object(terms) ? read_terms(cx, terms, term_keys, out) : MS_OK;
}

static bool is_same(const ms_opt_quantity *a, const ms_opt_quantity *b)
{
    return a->given && b->given && fabs(a->value / b->value - 1.0) <= SAME_FRAC;
}

/* Replaces terms by the given ones. Returns whether one differs from what was there. */
static bool replace(const term *terms, const ms_campaign_options *given,
                    ms_campaign_options *out)
{
    bool differs = false;
    for (const term *t = terms; t->key != NULL; t++) {
        const ms_opt_quantity *new =
            (const ms_opt_quantity *)((const char *)given + t->offset);
        ms_opt_quantity *old = (ms_opt_quantity *)((char *)out + t->offset);
        differs = differs || (new->given && !is_same(new, old));
        if (new->given)
            *old = *new;
    }
    return differs;
}

ms_status ms_report_campaign_merge(ms_ctx *cx, const ms_campaign_options *given,
                                   const char *compared, ms_campaign_options *campaign,
                                   bool *asked)
{
    bool has_file = campaign->tokens.given;
    bool by_length = given->tokens.given || given->chinchilla || given->flop.given;
    bool differs = replace(campaign_keys, given, campaign);
    differs = replace(term_keys, given, campaign) || differs || given->chinchilla ||
              given->flop.given;
    if (has_file && differs && compared != NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "the options give another training than %s, whose jobs were compared by "
                "their own",
                compared);
        return ms_hint(cx, "leave them out, or search again with them");
    }
    if (by_length)
        campaign->tokens = given->tokens;
    campaign->chinchilla = given->chinchilla;
    campaign->flop = given->flop;
    campaign->simulate_failures = given->simulate_failures;
    campaign->seed = given->seed;
    return ms_campaign_options_check(cx, campaign, asked);
}
