/* Plot of the peak memory of every pipeline rank of one or several plans, by category. */
#ifndef MS_PLOTS_MEMORY_DATA_H
#define MS_PLOTS_MEMORY_DATA_H

#include "plots/priced_plan.h"
#include "plots/script.h"

typedef struct ms_memory_plot {
    ms_arena *arena; /* arena for captions */
    int num_plans;   /* number of plans, 1 to MS_MAX_PLOT_PLANS */
    const ms_priced_plan *plans;
} ms_memory_plot;

void ms_memory_plot_write_data(FILE *out, const ms_memory_plot *plot);
ms_status ms_memory_plot_write_script(ms_ctx *cx, FILE *out, const ms_memory_plot *plot,
                                      const char *name, ms_picture_format format);
void ms_memory_plot_write_json(ms_jout *out, const ms_memory_plot *plot);
void ms_memory_plot_print(FILE *out, const ms_memory_plot *plot);

#endif
