/* Predicted against measured step times and peaks of memory of published runs, a colour
 * for each source. */
#ifndef MS_PLOTS_VALIDATION_H
#define MS_PLOTS_VALIDATION_H

#include "plots/script.h"
#include "sim/validation.h"

typedef struct ms_plotted_source {
    const char *name;
    int num_time, num_memory; /* points */
} ms_plotted_source;

typedef struct ms_validation_plot {
    ms_arena *arena; /* for texts */
    const ms_validation *validation;
    int num_sources;
    ms_plotted_source *sources; /* with many points first; what is pooled last */
    const int *source_of;       /* of each run; -1: it has no point */
} ms_validation_plot;

/* Lives in the arena; num_sources is 0 when nothing was predicted. */
ms_validation_plot ms_validation_plot_make(ms_arena *arena,
                                           const ms_validation *validation);
void ms_validation_plot_write_data(FILE *out, const ms_validation_plot *plot);
ms_status ms_validation_plot_write_script(ms_ctx *cx, FILE *out,
                                          const ms_validation_plot *plot,
                                          const char *name, ms_picture_format format);

#endif
