/* Why a search finds no legal plan. */
#ifndef MS_SIM_SEARCH_REFUSALS_H
#define MS_SIM_SEARCH_REFUSALS_H

#include "sim/search/explore.h"

/* Numbers of refused plans by rule, and what the rule that refuses most says of one of them:
 * "refused: heads 15, modules 194; modules: llama-3.1-8b has no experts to overlap". Lives in
 * the arena. */
const char *ms_refusals_text(ms_arena *arena, const ms_workload *workload,
                             const ms_space *space, const ms_counts *counts);

#endif
