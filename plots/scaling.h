/* The best plan at each of several numbers of GPUs: tokens per second and MFU. */
#ifndef MS_PLOTS_SCALING_H
#define MS_PLOTS_SCALING_H

#include "plots/script.h"
#include "sim/prediction.h"
#include "sim/search.h"

typedef struct ms_scaling_point {
    long gpus;
    long global_batch; /* sequences */
    bool found;
    const char *reason; /* why none was found: a few words */
    ms_plan plan;       /* when found */
    ms_prediction prediction;
    bool optimal; /* the search covered its space */
} ms_scaling_point;

typedef struct ms_scaling {
    ms_arena *arena; /* for texts */
    const char *model, *device;
    long sequence_length;
    const char *limits; /* of the search; "" for none */
    int num_points;
    ms_scaling_point *points; /* by GPUs, ascending */
} ms_scaling;

/* Searches at the base's number of GPUs; `limits` as ms_space_limit takes them. MS_OK
 * also when nothing fits: see point->found. MS_EINPUT: the base or a limit is wrong.
 * MS_EINTERRUPTED: the search was interrupted. Lives in cx->arena. */
ms_status ms_scaling_search(ms_ctx *cx, const ms_plan *base, const char *const *limits,
                            int num_limits, const ms_search_options *options,
                            ms_scaling_point *point);

/* The first point with a plan; NULL: there is none. */
const ms_scaling_point *ms_scaling_first(const ms_scaling *scaling);

void ms_scaling_write_data(FILE *out, const ms_scaling *scaling);
ms_status ms_scaling_write_script(ms_ctx *cx, FILE *out, const ms_scaling *scaling,
                                  const char *name, ms_picture_format format);
/* The data as members of an open object. */
void ms_scaling_write_json(ms_jout *out, const ms_scaling *scaling);
/* A table: a row per size. */
void ms_scaling_print(FILE *out, const ms_scaling *scaling);

#endif
