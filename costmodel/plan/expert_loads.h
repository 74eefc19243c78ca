/* Loads of experts: how many more token copies the fullest rank of a mixture computes
 * than the mean. docs/formulas 3.6.1. */
#ifndef MS_COSTMODEL_PLAN_EXPERT_LOADS_H
#define MS_COSTMODEL_PLAN_EXPERT_LOADS_H

#include "base/csv.h"

/* Token copies that a router sent to each expert, measured in layers of one model. */
typedef struct ms_expert_loads {
    long num_experts;
    int num_layers;
    const double *copies; /* (num_layers, num_experts) */
} ms_expert_loads;

/* Reads a CSV file with the columns "expert" (0 to num_experts - 1), "tokens" and, for
 * several layers, "layer" (any whole numbers); experts that are not listed got none. The
 * arrays live in cx->arena. Errors: MS_EIO; MS_EINPUT at line and column. */
ms_status ms_expert_loads_load(ms_ctx *cx, const char *path, long num_experts,
                               const ms_expert_loads **out);
/* Reads such a file from memory; `path` is for messages. */
ms_status ms_expert_loads_read(ms_ctx *cx, const char *path, ms_csv csv, long num_experts,
                               const ms_expert_loads **out);

/* How unevenly a plan's experts are loaded. */
typedef struct ms_expert_fill {
    /* token copies of the fullest rank / the mean, if not measured; 0: 1 */
    double imbalance;
    const ms_expert_loads *loads; /* measured loads; NULL: none */
    double capacity;              /* most copies of an expert / the mean; 0: no limit */
    bool pads; /* experts compute just as many copies as their capacity */
} ms_expert_fill;

/* Token copies that the fullest of `ep` ranks computes, divided by the mean of all ranks
 * without dropping, less 1. Copies beyond the capacity are dropped, or with `pads` every
 * expert computes just as many (Megatron Core, --moe-expert-capacity-factor,
 * --moe-pad-expert-input-to-capacity). Without measured loads all experts of the fullest
 * rank have `imbalance` times the mean, at most `ep`, which is all; with them the result is the mean over their
 * layers, whose times add up. `ep` divides the number of experts. */
double ms_expert_excess_frac(const ms_expert_fill *fill, long ep);

#endif
