/* The pipeline of a step as a Gantt diagram: one row per pipeline rank. */
#ifndef MS_PLOTS_TIMELINE_H
#define MS_PLOTS_TIMELINE_H

#include "plots/boxes.h"
#include "plots/script.h"
#include "sim/prediction.h"

typedef struct ms_timeline {
    const ms_plan *plan;
    const ms_workload *workload;
    ms_prediction prediction; /* by replay, of a machine without faults */
    ms_simulation simulation; /* of this */
    int num_lanes, num_chunks;
    long num_boxes;
    const ms_box *boxes; /* by lane */
    double step_s, bubble_s, mfu_frac;
} ms_timeline;

/* More are too many to be drawn. */
#define MS_MAX_BOXES 400000

/* Simulates a plan that is open, which outlives the result, action by action; the ranks
 * of the pipeline whose actions end last are shown. Lives in cx->arena. MS_EINPUT: more
 * than MS_MAX_BOXES actions, or as ms_simulate. */
ms_status ms_timeline_make(ms_ctx *cx, const ms_planned *planned,
                           const ms_simulate_options *options, ms_timeline *out);

void ms_timeline_write_data(FILE *out, const ms_timeline *timeline);
/* `name` of the files. */
ms_status ms_timeline_write_script(ms_ctx *cx, FILE *out, const ms_timeline *timeline,
                                   const char *name, ms_picture_format format);
/* The rows as members of an open object. */
void ms_timeline_write_json(ms_jout *out, const ms_timeline *timeline);
/* A few lines of text. */
void ms_timeline_print(FILE *out, ms_arena *arena, const ms_timeline *timeline);

#endif
