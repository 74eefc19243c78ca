/* Plot of goodput over the interval between checkpoints, with the best interval and those
 * of Young and Daly, and a band for half and twice the time between interruptions. */
#ifndef MS_PLOTS_GOODPUT_DATA_H
#define MS_PLOTS_GOODPUT_DATA_H

#include "costmodel/campaign/campaign.h"
#include "plots/script.h"
#include "sim/step/prediction.h"

typedef struct ms_goodput_plot {
    ms_arena *arena; /* arena for captions */
    const ms_plan *plan;
    const ms_workload *workload;
    ms_interruptions job;
    double gpu_mean_s; /* mean time between interruptions by one GPU */
    double step_s;
    double interval_steps; /* the interval to choose, in whole steps */
} ms_goodput_plot;

void ms_goodput_plot_write_data(FILE *out, const ms_goodput_plot *plot);
ms_status ms_goodput_plot_write_script(ms_ctx *cx, FILE *out, const ms_goodput_plot *plot,
                                       const char *name, ms_picture_format format);
void ms_goodput_plot_write_json(ms_jout *out, const ms_goodput_plot *plot);
void ms_goodput_plot_print(FILE *out, const ms_goodput_plot *plot);

#endif
