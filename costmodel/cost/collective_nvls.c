/* Cost law and link loads of all-reduces in the switch of a domain (NVLink SHARP). */
#include "costmodel/cost/collective_priv.h"

#include <math.h>

/* Adds in-switch all-reduce to a cost law, by its measured latency and rate. */
static void add_nvls(ms_collective_law *law, const ms_law_setting *s)
{
    double min_ranks = s->profile->nvls_min_ranks.value;
    if (s->tier > 0 || s->cluster->levels[0].topology != MS_SWITCH ||
        isnan(s->profile->nvls_bytes_per_s.value) || !(s->ranks >= min_ranks))
        return;
    ms_law_add(law, MS_ALGORITHM_NVLS, s->profile->nvls_base_s.value,
               2.0 * (s->ranks - 1.0) / (s->ranks * ms_law_in_switch_rate(s)), 0.0);
}

/* Adds the link bytes of an all-reduce of S bytes: (n+1)/n S each way for each rank. */
static void add_loads(ms_link_load *load, const ms_flow *flow)
{
    double n = (double)flow->num_ranks;
    ms_load_inside(load, (ms_domain_ranks){flow->ranks, flow->num_ranks},
                   (n + 1.0) / n * flow->size_bytes);
}

const ms_algorithm_row ms_algorithm_nvls = {
    .name = "nvls",
    .collectives = 1u << MS_ALL_REDUCE,
    .in_switch = true,
    .add_law = add_nvls,
    .add_loads = add_loads,
};
