/* Plot of the pipeline of one step as a Gantt diagram with one row per pipeline rank. */
#ifndef MS_PLOTS_TIMELINE_DATA_H
#define MS_PLOTS_TIMELINE_DATA_H

#include "plots/boxes.h"
#include "plots/script.h"
#include "sim/step/prediction.h"

typedef struct ms_timeline {
    const ms_plan *plan;
    const ms_workload *workload;
    ms_prediction prediction;  /* prediction by replay without disturbances */
    ms_simulation simulation;  /* the simulation that is drawn */
    int num_lanes, num_chunks; /* pipeline ranks; model chunks per rank */
    long num_boxes;
    const ms_box *boxes; /* boxes ordered by lane */
    double step_s, bubble_s, mfu_frac;
} ms_timeline;

#define MS_MAX_BOXES 400000 /* Limit of the actions that can be drawn. */

/* Simulates an opened plan action by action and fills the diagram with the pipeline whose
 * actions end last, in cx->arena; `planned` must outlive it. MS_EINPUT if there are more
 * than MS_MAX_BOXES actions, and all errors of ms_simulate. */
ms_status ms_timeline_make(ms_ctx *cx, const ms_planned *planned,
                           const ms_simulate_options *options, ms_timeline *out);

void ms_timeline_write_data(FILE *out, const ms_timeline *timeline);
ms_status ms_timeline_write_script(ms_ctx *cx, FILE *out, const ms_timeline *timeline,
                                   const char *name, ms_picture_format format);
void ms_timeline_write_json(ms_jout *out, const ms_timeline *timeline);
void ms_timeline_print(FILE *out, ms_arena *arena, const ms_timeline *timeline);

#endif
