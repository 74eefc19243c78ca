/* What one rank keeps over a step, by its parts, with what it does meanwhile. */
#ifndef MS_PLOTS_MEMORY_CURVE_H
#define MS_PLOTS_MEMORY_CURVE_H

#include "plots/boxes.h"
#include "plots/script.h"
#include "sim/prediction.h"

typedef struct ms_memory_curve {
    ms_arena *arena; /* for texts */
    const ms_plan *plan;
    const ms_workload *workload;
    ms_prediction prediction; /* by replay, of a machine without faults */
    ms_simulation simulation;
    long rank;
    const ms_actor *actor; /* what stands for it */
    int num_samples;       /* thinned: at most 4 a pixel column */
    const ms_memory_sample *samples;
    int peak; /* index into samples */
    /* micro-batches of all chunks whose activations are kept at the peak, the one at
     * work included */
    int num_alive;
    long num_boxes; /* 0: too many to be drawn */
    const ms_box *boxes;
} ms_memory_curve;

/* Simulates a plan that is open, which outlives the result, action by action. `rank` -1:
 * the first of those with the highest peak. Lives in cx->arena. MS_EINPUT: there is no
 * such rank, or as ms_simulate. */
ms_status ms_memory_curve_make(ms_ctx *cx, const ms_planned *planned,
                               const ms_simulate_options *options, long rank,
                               ms_memory_curve *out);

/* Samples that a picture of so many columns over step_s can show: of each column the
 * first, the last, the lowest and the highest sum, in their order and as they are. Of
 * samples at one time the last. The first of those with the highest sum is among them. In
 * the arena. */
typedef struct ms_thinned_samples {
    int num;
    const ms_memory_sample *samples;
    int peak; /* index of the highest */
} ms_thinned_samples;
ms_thinned_samples ms_memory_samples_thin(ms_arena *arena,
                                          const ms_memory_sample *samples, int num,
                                          double step_s, int columns);

void ms_memory_curve_write_data(FILE *out, const ms_memory_curve *curve);
ms_status ms_memory_curve_write_script(ms_ctx *cx, FILE *out,
                                       const ms_memory_curve *curve, const char *name,
                                       ms_picture_format format);
/* The data as members of an open object. */
void ms_memory_curve_write_json(ms_jout *out, const ms_memory_curve *curve);
/* A few lines of text. */
void ms_memory_curve_print(FILE *out, const ms_memory_curve *curve);

#endif
