/* Plot of the best plans on several clusters at each of several numbers of GPUs. */
#ifndef MS_PLOTS_SCALING_CLUSTERS_DATA_H
#define MS_PLOTS_SCALING_CLUSTERS_DATA_H

#include "plots/scaling_data.h"

typedef struct ms_scaling_clusters {
    ms_arena *arena;           /* arena for captions */
    int num;                   /* clusters, 2 to 7: the colours of the palette */
    const char *const *names;  /* (num) */
    const ms_scaling *scaling; /* (num), with equal numbers of GPUs */
} ms_scaling_clusters;

void ms_scaling_clusters_write_data(FILE *out, const ms_scaling_clusters *plot);
ms_status ms_scaling_clusters_write_script(ms_ctx *cx, FILE *out,
                                           const ms_scaling_clusters *plot,
                                           const char *name, ms_picture_format format);
void ms_scaling_clusters_write_json(ms_jout *out, const ms_scaling_clusters *plot);
void ms_scaling_clusters_print(FILE *out, const ms_scaling_clusters *plot);

#endif
