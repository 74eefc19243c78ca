/* Options by which the plans of a search fit device memory: --min-fit and --headroom. */
#ifndef MS_SIM_REQUEST_MEMORY_OPTIONS_H
#define MS_SIM_REQUEST_MEMORY_OPTIONS_H

#include "base/options.h"
#include "sim/step/memory_rule.h"
#include "topo/cluster.h"

typedef struct ms_memory_options {
    ms_opt_quantity min_fit;
    const char *headroom; /* "8%" or "6 GiB"; NULL: none */
} ms_memory_options;

/* Options that fill a ms_memory_options. */
extern const ms_option ms_memory_option_table[];

/* The rule of the options, defaults noted. MS_EINPUT: a headroom that is no share of
 * memory and no quantity of bytes, or a probability of 1, which no prediction has. */
ms_status ms_memory_options_rule(ms_ctx *cx, const ms_memory_options *options,
                                 ms_memory_rule *out);
/* MS_EINPUT if the rule's headroom leaves nothing of the device's memory. */
ms_status ms_memory_options_check(ms_ctx *cx, const ms_memory_rule *rule,
                                  const ms_cluster *cluster);

#endif
