/* Options that ask what a whole training campaign takes: days, GPU-hours, money, energy. */
#ifndef MS_SIM_REQUEST_CAMPAIGN_OPTIONS_H
#define MS_SIM_REQUEST_CAMPAIGN_OPTIONS_H

#include "base/options.h"
#include "sim/planning/campaign_of_plan.h"

typedef struct ms_campaign_options {
    ms_opt_quantity tokens, flop;
    bool chinchilla;
    ms_opt_quantity price, power_w, pue, co2_kg_per_kwh;
    ms_opt_quantity mtbf_s, restart_s, repair_s, write_bytes_per_s, stall_s;
    ms_opt_quantity deadline_s, budget;
    bool simulate_failures;
    ms_opt_integer seed;
} ms_campaign_options;

/* Options that fill a ms_campaign_options. */
extern const ms_option ms_campaign_option_table[];
/* Options of commands about many jobs, which do not simulate failures: their help does
 * not list those two. */
extern const ms_option ms_campaign_jobs_option_table[];
/* Units with which a price may end: "2.5/gpu-hour". */
#define MS_PRICE_ENDINGS "/gpu-hour|/GPU-hour|/gpu-h|/h"

/* Whether a campaign is asked for: --tokens, --chinchilla or --flop. MS_EINPUT for two of
 * them, or for other options of the table without one. */
ms_status ms_campaign_options_check(ms_ctx *cx, const ms_campaign_options *options,
                                    bool *asked);

/* The question that the options ask. */
ms_campaign_question ms_campaign_options_question(const ms_campaign_options *options);
/* Notes the defaults that `terms` took for options that are not given. */
void ms_campaign_options_note(ms_ctx *cx, const ms_campaign_options *options,
                              const ms_campaign_terms *terms);

/* The campaign of a plan by its prediction, defaults noted. MS_ENOFIT for one that does
 * not advance, MS_EINPUT for one with too many interruptions to simulate. */
ms_status ms_campaign_options_apply(ms_ctx *cx, const ms_campaign_options *options,
                                    const ms_workload *workload, const ms_plan *plan,
                                    const ms_prediction *prediction,
                                    ms_campaign_answer *out);

#endif
