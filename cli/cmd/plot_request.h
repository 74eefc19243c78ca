/* Inside `meshsim plot`: a call of the command, what its kinds of pictures share, and the
 * kinds, a file each. */
#ifndef MS_CLI_CMD_PLOT_REQUEST_H
#define MS_CLI_CMD_PLOT_REQUEST_H

#include "cli/cmd/plot_files.h"
#include "cli/cmd/simulate_options.h"
#include "cli/options/commands.h"
#include "cli/options/plan_options.h"

typedef struct ms_plot_options {
    ms_opt_choice format;
    bool keep;
    const char *gpus; /* of scaling */
    ms_opt_list limit;
    bool over_time; /* of memory */
    ms_opt_integer rank;
} ms_plot_options;

/* A call of the command. */
typedef struct ms_plot_request {
    ms_ctx *cx;
    ms_args *args;
    const char *kind;
    ms_plot_options options;
    ms_plan_options plan;
    ms_simulate_flags simulate;
    const ms_option *simulate_table;
    ms_plot_target target;
} ms_plot_request;

/* A kind of plot that has been made. */
typedef struct ms_plotted {
    ms_plot_writer writer;
    void (*write_json)(ms_jout *out, const void *plot);
    void (*print)(FILE *out, ms_arena *arena, const void *plot);
} ms_plotted;

/* ---- what kinds share ---- */

/* The picture and a summary, or with --json what would be drawn. */
ms_status ms_plot_show(const ms_plot_request *r, const ms_plotted *p);
ms_status ms_plot_write_json(const ms_plot_request *r, const ms_plotted *p);
/* MS_EINPUT: something that is written is what the plan is read from. */
ms_status ms_plot_check_outputs(const ms_plot_request *r, const ms_plan_options *opts,
                                const ms_plan *plan);
void ms_plot_note_fit(const ms_plot_request *r, const ms_prediction *prediction,
                      const char *what);
/* Of a simulation: by replay unless an engine is named. */
ms_status ms_plot_simulate_options(const ms_plot_request *r, ms_simulate_options *out);
/* Opens the one plan that is given, and draws it. */
ms_status ms_plot_draw_plan(ms_plot_request *r,
                            ms_status (*draw_it)(ms_plot_request *r, const ms_plan *plan,
                                                 ms_workload *workload));

/* ---- kinds ---- */

ms_status ms_plot_timeline(ms_plot_request *r);
ms_status ms_plot_memory(ms_plot_request *r);
ms_status ms_plot_scaling(ms_plot_request *r);

#endif
