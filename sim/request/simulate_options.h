/* The flags of `meshsim simulate` besides those of a plan. */
#ifndef MS_SIM_REQUEST_SIMULATE_OPTIONS_H
#define MS_SIM_REQUEST_SIMULATE_OPTIONS_H

#include "base/options.h"
#include "sim/request/simulate_report.h"

#define MS_SIMULATE_WIDTH 100 /* columns of the diagram without a terminal */

typedef enum ms_trace_format {
    MS_TRACE_PERFETTO, /* one file for trace viewers */
    MS_TRACE_HTA,      /* a folder with a file per rank for HolisticTraceAnalysis */
    MS_TRACE_CHAKRA    /* Chakra execution traces, a file per rank, and their groups */
} ms_trace_format;
extern const char *const ms_trace_format_names[]; /* "perfetto" ..., NULL */

typedef struct ms_simulate_flags {
    ms_opt_choice engine, detail, gantt, optimizer_sync, trace_format;
    const char *trace;
    const char *ranks; /* ranks to show: "0,5", "stages" or "all" */
    bool no_gantt;
    bool ignore_rules; /* --ignore-rules, an option of plans */
    bool unfolded, unshared, rendezvous, first_step;
    ms_opt_list slow;
    ms_opt_quantity jitter_frac;
    ms_opt_integer seed, width;
    ms_opt_quantity from_s, to_s;
} ms_simulate_flags;

extern const ms_option ms_simulate_option_table[];

/* MS_EINPUT for flags that contradict each other; notes flags without effect. */
ms_status ms_simulate_flags_check(ms_ctx *cx, const ms_simulate_flags *flags);

/* Whether the tasks are nodes of programs. */
bool ms_simulate_has_nodes(const ms_simulate_flags *flags);

/* Returns `stack`, or with --optimizer-sync a copy in the arena with that convention. */
const ms_stack *ms_simulate_flags_stack(ms_arena *arena, const ms_simulate_flags *flags,
                                        const ms_stack *stack);

/* Makes options of a simulation; MS_EINPUT for malformed slowdowns. */
ms_status ms_simulate_flags_options(ms_ctx *cx, const ms_simulate_flags *flags,
                                    ms_simulate_options *out);

/* Prints a note if slow links change nothing, because simulated tasks load no links. */
void ms_simulate_note_links(const ms_ctx *cx, const ms_simulation *simulation);

/* Sets report->actors (in cx->arena), the actors (simulated ranks) that --ranks selects:
 * "stages": in each pipeline rank the one that ends last; "all"; or a list of ranks: the
 * actors that stand for them. MS_EINPUT for an unknown rank. */
ms_status ms_simulate_flags_actors(ms_ctx *cx, const ms_simulate_flags *flags,
                                   const ms_simulation *simulation, int num_stages,
                                   ms_simulate_report *report);

#endif
