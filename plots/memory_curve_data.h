/* Plot of one rank's memory over a step, by category, with its actions below. */
#ifndef MS_PLOTS_MEMORY_CURVE_DATA_H
#define MS_PLOTS_MEMORY_CURVE_DATA_H

#include "plots/boxes.h"
#include "plots/script.h"
#include "sim/step/prediction.h"

typedef struct ms_memory_curve {
    ms_arena *arena; /* arena for captions */
    const ms_plan *plan;
    const ms_workload *workload;
    ms_prediction prediction; /* prediction by replay without disturbances */
    ms_simulation simulation;
    long rank;
    const ms_actor *actor; /* simulated actor that represents the rank */
    int num_samples;       /* thinned for drawing: at most 4 samples per pixel column */
    const ms_memory_sample *samples;
    int peak; /* index of the sample with the peak */
    /* micro-batches with activations saved at the peak, the running one too */
    int num_alive;
    long num_boxes; /* boxes of the rank's actions; 0: too many to be drawn */
    const ms_box *boxes;
} ms_memory_curve;

/* Simulates an opened plan action by action and fills the curve of `rank` (-1: the first
 * with the highest peak) in cx->arena; `planned` must outlive it. MS_EINPUT if there is
 * no such rank, and all errors of ms_simulate. */
ms_status ms_memory_curve_make(ms_ctx *cx, const ms_planned *planned,
                               const ms_simulate_options *options, long rank,
                               ms_memory_curve *out);

typedef struct ms_thinned_samples {
    int num;
    const ms_memory_sample *samples;
    int peak; /* index of the sample with the highest sum */
} ms_thinned_samples;
/* Thins samples for `columns` pixel columns over step_s. Keeps of each column the first,
 * the last and those with lowest and highest sum, and the highest of all; unchanged, in
 * order, in the arena. Of samples at one time only the last counts. */
ms_thinned_samples ms_memory_samples_thin(ms_arena *arena,
                                          const ms_memory_sample *samples, int num,
                                          double step_s, int columns);

void ms_memory_curve_write_data(FILE *out, const ms_memory_curve *curve);
ms_status ms_memory_curve_write_script(ms_ctx *cx, FILE *out,
                                       const ms_memory_curve *curve, const char *name,
                                       ms_picture_format format);
void ms_memory_curve_write_json(ms_jout *out, const ms_memory_curve *curve);
void ms_memory_curve_print(FILE *out, const ms_memory_curve *curve);

#endif
