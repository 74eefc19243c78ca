/* The explanation of an einsum: made by explain_einsum.c, written by
 * explain_einsum_print.c and _json.c. */
#ifndef MS_CLI_REPORT_EXPLAIN_EINSUM_PRIV_H
#define MS_CLI_REPORT_EXPLAIN_EINSUM_PRIV_H

#include "base/json.h"
#include "costmodel/reshard/einsum_strategy.h"

/* A collective or a local change of placement of one tensor in one pass. */
typedef struct einsum_event {
    bool backward;
    const char *tensor; /* "input 1", "gradient of input 1" */
    const ms_redistribute_step *step;
} einsum_event;

/* Sums over the collectives and local changes of placement on one set of axes. */
typedef struct einsum_total {
    ms_axis_set axes;
    double forward_s, backward_s;
    double sent_bytes; /* bytes sent by one rank in both passes */
} einsum_total;

typedef struct einsum_report {
    ms_arena *arena;
    const ms_cluster *cluster;
    const ms_profile *profile;
    ms_dtype dtype;
    ms_mesh mesh;
    long size['z' + 1];
    bool is_default['z' + 1]; /* [letter] whether that dim has the default size */
    int num_given; /* number of inputs that --in places; others are replicated */
    ms_spec wanted;
    ms_einsum_problem problem;
    ms_einsum_strategy strategy;
    ms_einsum_backward backward;
    double forward_flop, backward_flop, backward_compute_s;
    int num_events;
    einsum_event *events;
    int num_totals;
    einsum_total *totals;
} einsum_report;

/* Reason in one clause why an einsum may be sharded over a mesh axis by `spread`. */
const char *ms_einsum_rule_text(const einsum_report *report, ms_spread spread);
/* Bytes that one rank sends in one collective; 0 for a local change. */
double ms_einsum_sent_bytes(const einsum_report *report,
                            const ms_redistribute_step *step);
const char *ms_einsum_spec_text(const einsum_report *report, const ms_spec *spec);
void ms_einsum_print(FILE *out, const einsum_report *report);
void ms_einsum_write_json(ms_jout *out, const einsum_report *report);
/* Prints the redistribution of one tensor by the steps of `move`. */
void ms_redistribution_report_print(FILE *out, const einsum_report *report,
                                    const ms_einsum_move *move);
void ms_redistribution_report_write_json(ms_jout *out, const einsum_report *report,
                                         const ms_einsum_move *move);

#endif
