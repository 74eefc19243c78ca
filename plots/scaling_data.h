/* Plot of the best plan at each of several numbers of GPUs: tokens per second and MFU. */
#ifndef MS_PLOTS_SCALING_DATA_H
#define MS_PLOTS_SCALING_DATA_H

#include "plots/script.h"
#include "sim/planning/best_plan.h"

typedef struct ms_scaling_point {
    long gpus;
    long global_batch; /* sequences per step */
    ms_best_plan best;
} ms_scaling_point;

typedef struct ms_scaling {
    ms_arena *arena; /* arena for captions */
    const char *model, *device;
    long sequence_length;
    const char *limits; /* limits of the search as text; "" for none */
    int num_points;
    ms_scaling_point *points; /* points by ascending number of GPUs */
} ms_scaling;

/* The point with the fewest GPUs that has a plan; NULL if none has. */
const ms_scaling_point *ms_scaling_first(const ms_scaling *scaling);

/* Tokens per second at point->gpus if each GPU made as many as at the first plan. */
double ms_scaling_linear(const ms_scaling *scaling, const ms_scaling_point *point);
/* 90 % interval of a plan's tokens per second; both ends the value itself if none is
 * known. */
void ms_scaling_interval(const ms_scaling_point *point, double *low, double *high);
/* Tokens of a step over all sizes: "weak scaling, 1 to 4 Mi tokens per step". */
const char *ms_scaling_batch_text(const ms_scaling *scaling);

void ms_scaling_write_data(FILE *out, const ms_scaling *scaling);
ms_status ms_scaling_write_script(ms_ctx *cx, FILE *out, const ms_scaling *scaling,
                                  const char *name, ms_picture_format format);
void ms_scaling_write_json(ms_jout *out, const ms_scaling *scaling);
void ms_scaling_print(FILE *out, const ms_scaling *scaling);

#endif
