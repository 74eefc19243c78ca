/* Names that published sweeps give to systems, as tables of substrings; the first row
 * that matches holds. */
#include "sim/collective_rows_priv.h"

#include <math.h>
#include <string.h>

typedef struct system_rule {
    const char *part, *other_part; /* both in the name; NULL: anything */
    bool several_nodes;            /* only rows of more than one node */
    const char *cluster;           /* NULL: the reason says why there is none */
    const char *reason;
} system_rule;

static const system_rule rules[] = {
    {"L40S", NULL, false, NULL,
     "system: a host without peer access, 1-2 GB/s among 8 GPUs"},
    {"pairwise", NULL, false, NULL,
     "system: pairs of GPUs on NVLink bridges; its send/recv rows repeat one table"},
    {"bridge", NULL, false, NULL, "system: pairs of GPUs on NVLink bridges"},
    {"SHARP", NULL, false, NULL, "system: reduction in the network's switches"},
    {"GB300", NULL, false, "gb300-nvl72", NULL},
    {"GB200", NULL, false, "gb200-nvl72", NULL},
    {"p5en", NULL, true, "h200-efa", NULL},
    {"p6-b200", NULL, true, "b200-efa", NULL},
    {"p5.48", NULL, true, "h100-efa", NULL},
    {"p4d", NULL, true, "a100-efa", NULL},
    {"B200", "EFA", true, "b200-efa", NULL},
    {"H200", "EFA", true, "h200-efa", NULL},
    {"H100", "EFA", true, "h100-efa", NULL},
    {"A100", "EFA", true, "a100-efa", NULL},
    {"H100", "TCPXO", true, "h100-tcpxo", NULL},
    {"H100", "TCPX", true, "h100-tcpx", NULL},
    {"H200", "RoCE", true, "h200-roce", NULL},
    {"H100", "RoCE", true, "h100-roce", NULL},
    {"A100", "RoCE", true, "a100-roce", NULL},
    {"MI300X", NULL, false, "mi300x", NULL},
    {"p6-b200", NULL, false, "hgx-b200", NULL},
    {"p5en", NULL, false, "hgx-h200", NULL},
    {"p5.48", NULL, false, "hgx-h100", NULL},
    {"B300", NULL, false, "hgx-b300", NULL},
    {"B200", NULL, false, "hgx-b200", NULL},
    {"H200", NULL, false, "hgx-h200", NULL},
    {"H20", NULL, false, "hgx-h20", NULL},
    {"H800", NULL, false, "hgx-h800", NULL},
    {"H100", NULL, false, "hgx-h100", NULL},
    {"p4d", NULL, false, "hgx-a100-40g", NULL},
    {"A100-40", NULL, false, "hgx-a100-40g", NULL},
    {"A100", NULL, false, "hgx-a100-80g", NULL},
    {"RTX PRO 6000", NULL, false, "pcie-rtx-pro-6000", NULL},
    {"4090", NULL, false, "workstation-rtx4090", NULL},
};

static bool has_part(const char *text, const char *part)
{
    return part == NULL || strstr(text, part) != NULL;
}

const char *ms_collective_system_cluster(const char *system, long nodes,
                                         const char **reason)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const system_rule *rule = &rules[i];
        if (!has_part(system, rule->part) || !has_part(system, rule->other_part) ||
            (rule->several_nodes && nodes < 2))
            continue;
        *reason = rule->reason;
        return rule->cluster;
    }
    *reason = "system: no cluster file for it";
    return NULL;
}

/* ---- sources ---- */

/* Sources that time a call from the host: their short collectives all take 30 to 60 us,
 * the time of a launch. */
#define HOST_FLOOR_S 60e-6

static const char *const host_timed[] = {"vidur", "AI-benchmarking-guide",
                                         "all_reduce_bench"};

static bool is_host_timed(const ms_collective_row *row)
{
    for (size_t i = 0; i < sizeof host_timed / sizeof host_timed[0]; i++)
        if (has_part(row->source, host_timed[i]))
            return true;
    return false;
}

const char *ms_collective_row_defect(const ms_collective_row *row)
{
    if (isnan(row->measured_s))
        return "time: not stated";
    if (has_part(row->source, "vidur") && has_part(row->system, "A100") && row->nodes > 1)
        return "time: network of its hosts not stated, 8 GB/s; larger sizes are faster "
               "in part";
    if (has_part(row->system, "p5en") && row->size_bytes <= 8.0)
        return "time: first call of its sweep, six times the next";
    if (row->collective == MS_ALL_REDUCE && is_host_timed(row) &&
        row->measured_s < HOST_FLOOR_S)
        return "time: below 60 us from a source that times the host's launch";
    return NULL;
}
