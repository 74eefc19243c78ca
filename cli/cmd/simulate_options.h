/* The flags of `meshsim simulate`, and what they ask for. */
#ifndef MS_CLI_CMD_SIMULATE_OPTIONS_H
#define MS_CLI_CMD_SIMULATE_OPTIONS_H

#include "cli/options/options.h"
#include "cli/report/simulate_report.h"

#define MS_SIMULATE_WIDTH 100 /* columns, where there is no terminal */

typedef struct ms_simulate_flags {
    ms_opt_choice engine, detail, gantt, optimizer_sync;
    const char *trace;
    const char *ranks; /* "0,5", "stages", "all" */
    bool no_gantt;
    bool unfolded, unshared, rendezvous, first_step;
    ms_opt_list slow;
    ms_opt_quantity jitter_frac;
    ms_opt_integer seed, width;
    ms_opt_quantity from_s, to_s;
} ms_simulate_flags;

/* Fills a ms_simulate_flags. */
extern const ms_option ms_simulate_option_table[];

/* Flags that contradict each other: MS_EINPUT. Notes those without effect. */
ms_status ms_simulate_flags_check(ms_ctx *cx, const ms_simulate_flags *flags);

/* The workload's stack with the habits that flags replace; lives in the arena. */
const ms_stack *ms_simulate_flags_stack(ms_arena *arena, const ms_simulate_flags *flags,
                                        const ms_stack *stack);

/* MS_EINPUT for slowdowns that cannot be read. */
ms_status ms_simulate_flags_options(ms_ctx *cx, const ms_simulate_flags *flags,
                                    ms_simulate_options *out);

/* A slow link can only slow down tasks that are known to use it: notes those without
 * effect. */
void ms_simulate_note_links(const ms_ctx *cx, const ms_simulation *simulation);

/* The actors to show: of each pipeline rank the one that ends last, all, or those that
 * stand for the ranks asked for. MS_EINPUT when there is no such rank. Fills
 * report->actors, which lives in cx->arena. */
ms_status ms_simulate_flags_actors(ms_ctx *cx, const ms_simulate_flags *flags,
                                   const ms_simulation *simulation, int num_stages,
                                   ms_simulate_report *report);

#endif
