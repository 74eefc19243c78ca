/* Plot of predicted against measured step times and memory peaks, coloured by source. */
#ifndef MS_PLOTS_VALIDATION_DATA_H
#define MS_PLOTS_VALIDATION_DATA_H

#include "plots/script.h"
#include "sim/validate/validation.h"

typedef struct ms_plotted_source {
    const char *name;
    int num_time, num_memory; /* points in the plots of step time and of memory */
} ms_plotted_source;

typedef struct ms_validation_plot {
    ms_arena *arena; /* arena for captions */
    const ms_validation *validation;
    int num_sources;
    /* ordered by descending number of points; pooled ones last */
    ms_plotted_source *sources;
    const int *source_of; /* [run] index into `sources`; -1: the run has no point */
} ms_validation_plot;

/* Makes the plot in the arena; num_sources is 0 if nothing was predicted. */
ms_validation_plot ms_validation_plot_make(ms_arena *arena,
                                           const ms_validation *validation);
void ms_validation_plot_write_data(FILE *out, const ms_validation_plot *plot);
ms_status ms_validation_plot_write_script(ms_ctx *cx, FILE *out,
                                          const ms_validation_plot *plot,
                                          const char *name, ms_picture_format format);
void ms_validation_plot_write_json(ms_jout *out, const ms_validation_plot *plot);
void ms_validation_plot_print(FILE *out, const ms_validation_plot *plot);

#endif
