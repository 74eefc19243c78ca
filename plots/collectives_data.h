/* Plot of a collective's predicted time and bus bandwidth over message sizes: one curve
 * for each network tier of a cluster, measured points beside them. */
#ifndef MS_PLOTS_COLLECTIVES_DATA_H
#define MS_PLOTS_COLLECTIVES_DATA_H

#include "costmodel/cost/collective_cost.h"
#include "plots/script.h"
#include "sim/validate/collective_rows.h"

typedef struct ms_collective_curve {
    long ranks;            /* consecutive GPUs */
    const ms_level *level; /* the innermost one that connects all of them */
    ms_collective_law law;
    int num_measured;
    const ms_collective_row **measured;
} ms_collective_curve;

typedef struct ms_collectives_plot {
    ms_arena *arena; /* arena for captions */
    const ms_cluster *cluster;
    const ms_profile *profile;
    ms_collective collective;
    int num_curves, num_measured;
    ms_collective_curve curves[MS_MAX_LEVELS];
} ms_collectives_plot;

/* Makes a curve for each level: over one of its domains, or over all `gpus` where these
 * are fewer. `rows` (NULL: none) are measured; those of the cluster, collective and
 * numbers of GPUs drawn are used. MS_EINPUT: one GPU; no coefficients for the network; no
 * row to draw. */
ms_status ms_collectives_plot_make(ms_ctx *cx, const ms_cluster *cluster,
                                   const ms_profile *profile, long gpus,
                                   const ms_collective_rows *rows,
                                   ms_collectives_plot *plot);

void ms_collectives_plot_write_data(FILE *out, const ms_collectives_plot *plot);
ms_status ms_collectives_plot_write_script(ms_ctx *cx, FILE *out,
                                           const ms_collectives_plot *plot,
                                           const char *name, ms_picture_format format);
void ms_collectives_plot_write_json(ms_jout *out, const ms_collectives_plot *plot);
void ms_collectives_plot_print(FILE *out, const ms_collectives_plot *plot);

#endif
