/* Plot of time, memory and money of plans of many jobs: those that no other beats in all
 * three, and faintly the others. */
#ifndef MS_PLOTS_PARETO_DATA_H
#define MS_PLOTS_PARETO_DATA_H

#include "plots/script.h"
#include "sim/planning/plan_sweep.h"

typedef struct ms_pareto_point {
    int cluster;                /* index of its cluster */
    const ms_best_plan *answer; /* a plan with a campaign */
    double cost;                /* money, or GPU-hours */
    bool is_best; /* no other is at least as good in all three and better in one */
} ms_pareto_point;

typedef struct ms_pareto {
    ms_arena *arena; /* arena for captions */
    const char *model;
    bool by_money; /* costs are money, else GPU-hours */
    bool is_stuck; /* plans were found, and none makes progress */
    int num_clusters;
    const char *const *clusters; /* (num_clusters) names; as many as colours, 7 */
    int num;
    ms_pareto_point *points; /* (num) cluster by cluster */
} ms_pareto;

/* The plot of an answered sweep of one task with campaigns: plans without a price are left
 * out where others have one, and equal plans but for the first. */
ms_pareto ms_pareto_make(ms_arena *arena, const ms_plan_sweep *sweep, int num_clusters,
                         const char *model);

void ms_pareto_write_data(FILE *out, const ms_pareto *plot);
ms_status ms_pareto_write_script(ms_ctx *cx, FILE *out, const ms_pareto *plot,
                                 const char *name, ms_picture_format format);
void ms_pareto_write_json(ms_jout *out, const ms_pareto *plot);
void ms_pareto_print(FILE *out, const ms_pareto *plot);

#endif
