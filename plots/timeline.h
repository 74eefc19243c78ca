/* The pipeline of a step as a Gantt diagram: one row per pipeline rank. */
#ifndef MS_PLOTS_TIMELINE_H
#define MS_PLOTS_TIMELINE_H

#include "plots/script.h"
#include "sim/prediction.h"

typedef enum ms_box_kind {
    MS_BOX_FORWARD,
    MS_BOX_BACKWARD, /* whole */
    MS_BOX_INPUT,    /* backward for inputs, and for weights, by themselves */
    MS_BOX_WEIGHT,
    MS_BOX_GATHER, /* of parameters, before the first forward */
    MS_BOX_REDUCE, /* of gradients, after the last action */
    MS_BOX_OPTIMIZER,
    MS_NUM_BOX_KINDS
} ms_box_kind;
extern const char *const ms_box_kind_names[]; /* "forward" ... */

typedef enum ms_box_half {
    MS_BOX_WHOLE,
    MS_BOX_UPPER, /* two actions at once lie above each other */
    MS_BOX_LOWER
} ms_box_half;

typedef struct ms_box {
    int lane; /* pipeline rank */
    double start_s, end_s;
    ms_box_kind kind;
    int microbatch; /* -1: of none */
    int chunk;      /* of the rank */
    ms_box_half half;
} ms_box;

typedef struct ms_timeline {
    const ms_plan *plan;
    const ms_workload *workload;
    ms_prediction prediction;
    int num_lanes, num_chunks;
    long num_boxes;
    const ms_box *boxes; /* by lane, then by start */
    double step_s;
} ms_timeline;

/* More are too many to be drawn. */
#define MS_MAX_BOXES 400000

/* From the replay of a plan that is open, which outlives the result. Lives in cx->arena. MS_EINPUT: more than MS_MAX_BOXES actions. */
ms_status ms_timeline_make(ms_ctx *cx, const ms_planned *planned, ms_timeline *out);

void ms_timeline_write_data(FILE *out, const ms_timeline *timeline);
/* `name` of the files. */
ms_status ms_timeline_write_script(ms_ctx *cx, FILE *out, const ms_timeline *timeline,
                                   const char *name, ms_picture_format format);
/* The rows as members of an open object. */
void ms_timeline_write_json(ms_jout *out, const ms_timeline *timeline);
/* A few lines of text. */
void ms_timeline_print(FILE *out, ms_arena *arena, const ms_timeline *timeline);

#endif
