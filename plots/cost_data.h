/* Plot of what a training costs and how long it takes on each of many jobs: clusters and
 * numbers of GPUs, each with its fastest plan. */
#ifndef MS_PLOTS_COST_DATA_H
#define MS_PLOTS_COST_DATA_H

#include "plots/script.h"
#include "sim/planning/plan_sweep.h"

typedef struct ms_cost_plot {
    ms_arena *arena; /* arena for captions */
    const char *model;
    bool against_gpus;          /* the x axis has GPUs instead of days */
    const ms_plan_sweep *sweep; /* answered; one task, every question with a campaign */
    ms_plan_sweep_choice choice;
    bool
        by_money; /* costs are money, else GPU-hours; points without price are left out */
    int num_gpus; /* points of a cluster; those of a cluster are neighbours */
    int num_clusters; /* 1 to 7, the colours of the palette */
} ms_cost_plot;

/* The plot of a sweep of one task, with `num_clusters` clusters. */
ms_cost_plot ms_cost_plot_make(ms_arena *arena, const ms_plan_sweep *sweep,
                               int num_clusters, const char *model);

/* Number of points that can be drawn: with a plan, and with a price if others have one. */
int ms_cost_plot_num_points(const ms_cost_plot *plot);

void ms_cost_plot_write_data(FILE *out, const ms_cost_plot *plot);
ms_status ms_cost_plot_write_script(ms_ctx *cx, FILE *out, const ms_cost_plot *plot,
                                    const char *name, ms_picture_format format);
void ms_cost_plot_write_json(ms_jout *out, const ms_cost_plot *plot);
void ms_cost_plot_print(FILE *out, const ms_cost_plot *plot);

#endif
