/* Mixed clusters: which kinds of devices each pipeline rank of a plan has, and the prices
 * of a stage on them. All ranks of a stage wait for each other, so that a stage with
 * several kinds is as slow as its slowest, in compute and in links (docs/formulas 5.8). */
#ifndef MS_SIM_STEP_KIND_PRICES_H
#define MS_SIM_STEP_KIND_PRICES_H

#include "sim/step/block_cost.h"
#include "topo/device_kinds.h"

/* Rates, links and costs with which a stage of a plan is priced. */
typedef struct ms_prices {
    const ms_workload *workload;
    const ms_bill_set *bills;
    const ms_links *links;
    const ms_block_costs *blocks;
} ms_prices;

/* The set of kinds (ms_kind_set) of each pipeline rank, pp of them, in the arena; NULL if
 * the workload's devices are all alike. With stages in both directions (DualPipe) a rank
 * has the kinds of its mirror image, too: both have the same stages. */
const unsigned char *ms_plan_kinds(ms_arena *arena, const ms_plan *plan,
                                   const ms_workload *workload);
/* The kinds of all ranks. */
ms_kind_set ms_all_kinds(const unsigned char *kinds, int num_ranks);

/* The workload whose devices are those of a set of kinds; 0: all devices are alike. */
static inline ms_workload *ms_workload_of_kinds(ms_workload *workload, ms_kind_set kinds)
{
    return kinds == 0 ? workload : workload->of_kinds[kinds];
}

#endif
