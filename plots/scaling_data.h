/* Plot of the best plan at each of several numbers of GPUs: tokens per second and MFU. */
#ifndef MS_PLOTS_SCALING_DATA_H
#define MS_PLOTS_SCALING_DATA_H

#include "plots/script.h"
#include "sim/search/search.h"
#include "sim/step/prediction.h"

typedef struct ms_scaling_point {
    long gpus;
    long global_batch;  /* sequences per step */
    bool found;         /* true if a plan fits */
    const char *reason; /* why no plan was found, in a few words */
    ms_plan plan;       /* the fastest plan, if one was found */
    ms_prediction prediction;
    bool optimal; /* the search covered its whole space: the plan is optimal */
} ms_scaling_point;

typedef struct ms_scaling {
    ms_arena *arena; /* arena for captions */
    const char *model, *device;
    long sequence_length;
    const char *limits; /* limits of the search as text; "" for none */
    int num_points;
    ms_scaling_point *points; /* points by ascending number of GPUs */
} ms_scaling;

/* Limits of the searches. */
typedef struct ms_scaling_limits {
    int num;
    const char *const *texts; /* (num) of choices, as ms_space_limit reads them */
    ms_memory_rule memory;    /* plans must fit by this rule */
} ms_scaling_limits;

/* Searches the best plan for base->gpus; writes *point (arrays: cx->arena). MS_OK: also if
 * no plan fits; MS_EINPUT: base or limits; MS_EINTERRUPTED. */
ms_status ms_scaling_search(ms_ctx *cx, const ms_plan *base,
                            const ms_scaling_limits *limits,
                            const ms_search_options *options, ms_scaling_point *point);

/* The point with the fewest GPUs that has a plan; NULL if none has. */
const ms_scaling_point *ms_scaling_first(const ms_scaling *scaling);

void ms_scaling_write_data(FILE *out, const ms_scaling *scaling);
ms_status ms_scaling_write_script(ms_ctx *cx, FILE *out, const ms_scaling *scaling,
                                  const char *name, ms_picture_format format);
void ms_scaling_write_json(ms_jout *out, const ms_scaling *scaling);
void ms_scaling_print(FILE *out, const ms_scaling *scaling);

#endif
