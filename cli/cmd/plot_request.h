/* meshsim plot: a call of the command and what plots of all kinds share; each kind has a
 * file plot_KIND.c. */
#ifndef MS_CLI_CMD_PLOT_REQUEST_H
#define MS_CLI_CMD_PLOT_REQUEST_H

#include "cli/cmd/plot_files.h"
#include "cli/options/commands.h"
#include "cli/options/sweep_options.h"
#include "cli/options/whatif_options.h"
#include "plots/priced_plan.h"
#include "sim/request/campaign_options.h"
#include "sim/request/memory_options.h"
#include "sim/request/plan_options.h"
#include "sim/request/simulate_options.h"

typedef struct ms_plot_options {
    ms_opt_choice format;
    bool keep;
    const char *gpus;     /* numbers of GPUs of plot scaling */
    const char *clusters; /* clusters of plot scaling; NULL: that of the plan */
    bool weak;            /* batches of plot scaling in proportion to the GPUs */
    ms_opt_list limit;    /* limits of searches */
    bool over_time;       /* `over_time` and `rank` belong to plot memory */
    ms_opt_integer rank;
    ms_opt_choice collective; /* `collective` and `measured` belong to plot collectives */
    const char *measured;
    const char *x, *y; /* `x`, `y` and `value` belong to plot heatmap */
    ms_opt_choice value;
    const char
        *state; /* `state` belongs to plot cost and pareto, `against` to plot cost */
    ms_opt_choice against;
} ms_plot_options;

typedef struct ms_plot_request {
    ms_ctx *cx;
    ms_args *args;
    const char *kind;
    ms_plot_options options;
    ms_plan_options plan;
    ms_simulate_flags simulate;
    const ms_option *simulate_table;
    ms_plot_target target;
    ms_memory_options memory;     /* memory rule of searches */
    ms_campaign_options campaign; /* interruptions of plot goodput */
    ms_sweep_options sweep;       /* jobs of plot cost and plot pareto */
    ms_whatif_options whatif;     /* job of plot sensitivity */
} ms_plot_request;

/* A plot with the functions that write its files, its JSON and its summary. */
typedef struct ms_plotted {
    ms_plot_writer writer;
    void (*write_json)(ms_jout *out, const void *plot);
    void (*print)(FILE *out, ms_arena *arena, const void *plot);
} ms_plotted;

/* Defines functions for a ms_plotted of TYPE: they call TYPE_write_data, _script, _json,
 * and TYPE_print with `print_arguments`. MS_PLOTTED is the ms_plotted of a `plot`. */
#define MS_PLOTTED_FUNCTIONS(type, print_arguments)                                      \
    MS_PLOT_WRITER_FUNCTIONS(type)                                                       \
    static void type##_json_of(ms_jout *out, const void *plot)                           \
    {                                                                                    \
        type##_write_json(out, plot);                                                    \
    }                                                                                    \
    static void type##_summary_of(FILE *out, ms_arena *arena, const void *plot)          \
    {                                                                                    \
        (void)arena;                                                                     \
        type##_print print_arguments;                                                    \
    }
#define MS_PLOTTED(type, plot)                                                           \
    {                                                                                    \
        MS_PLOT_WRITER(type, plot), type##_json_of, type##_summary_of                    \
    }

/* ---- functions for all kinds ---- */

/* Writes the picture and prints a summary, or with --json writes the data of the plot. */
ms_status ms_plot_show(const ms_plot_request *r, const ms_plotted *p);
/* ms_plot_show for plots of searches, which ended with `searched`. There is no picture, but
 * the summary or JSON, where they were interrupted and where no plan was found: MS_ENOFIT
 * with `none` as message (NULL: plans were found). */
ms_status ms_plot_show_found(const ms_plot_request *r, const ms_plotted *p,
                             ms_status searched, const char *none);
/* MS_EINPUT when an output would replace a file that the plan is read from. */
ms_status ms_plot_check_outputs(const ms_plot_request *r, const ms_plan_options *opts,
                                const ms_plan *plan);
/* MS_EINPUT when an output would replace the input file `path`. */
ms_status ms_plot_check_input(const ms_plot_request *r, const char *path);
/* Prints a note if plan `what` does not fit into memory. */
void ms_plot_note_fit(const ms_plot_request *r, const ms_prediction *prediction,
                      const char *what);
/* Options of a simulation of actions, by replay unless --engine is given. */
ms_status ms_plot_simulate_options(const ms_plot_request *r, ms_simulate_options *out);
/* Opens the plan and workload of the command line and calls `draw_it` with them. */
ms_status ms_plot_draw_plan(ms_plot_request *r,
                            ms_status (*draw_it)(ms_plot_request *r, const ms_plan *plan,
                                                 ms_workload *workload));
/* Predicts the plans of all files of the command line, changed by its flags, or the plan
 * of the flags alone; notes those that do not fit. Workloads are closed, but their model
 * and cluster stay in the arena. */
ms_status ms_plot_price_plans(ms_plot_request *r, const ms_priced_plan **out, int *num);
/* Makes the plan of the command line, whose model may be missing, and loads its cluster as
 * the job sees it. */
ms_status ms_plot_mesh(ms_plot_request *r, ms_plan *plan, const ms_cluster **cluster);

/* ---- kinds ---- */

ms_status ms_plot_timeline(ms_plot_request *r);
ms_status ms_plot_memory(ms_plot_request *r);
ms_status ms_plot_scaling(ms_plot_request *r);
ms_status ms_plot_breakdown(ms_plot_request *r);
ms_status ms_plot_roofline(ms_plot_request *r);
ms_status ms_plot_collectives(ms_plot_request *r);
ms_status ms_plot_topology(ms_plot_request *r);
ms_status ms_plot_goodput(ms_plot_request *r);
ms_status ms_plot_calibration(ms_plot_request *r);
ms_status ms_plot_heatmap(ms_plot_request *r);
ms_status ms_plot_sensitivity(ms_plot_request *r);
ms_status ms_plot_pareto(ms_plot_request *r);
ms_status ms_plot_cost(ms_plot_request *r);
ms_status ms_plot_validation(ms_plot_request *r);

#endif
