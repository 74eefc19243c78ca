/* What simulated ranks did, as boxes to be drawn. */
#ifndef MS_PLOTS_BOXES_H
#define MS_PLOTS_BOXES_H

#include "sim/simulation.h"

typedef enum ms_box_kind {
    MS_BOX_FORWARD,
    MS_BOX_BACKWARD, /* whole */
    MS_BOX_INPUT,    /* backward for inputs, and for weights, by themselves */
    MS_BOX_WEIGHT,
    MS_BOX_GATHER, /* of parameters, beside the actions */
    MS_BOX_REDUCE, /* of gradients, beside the actions and after them */
    MS_BOX_OPTIMIZER,
    MS_NUM_BOX_KINDS
} ms_box_kind;
extern const char *const ms_box_kind_names[]; /* "forward" ... */

typedef enum ms_box_half {
    MS_BOX_WHOLE,
    MS_BOX_UPPER, /* two actions at once lie above each other */
    MS_BOX_LOWER,
    MS_BOX_BESIDE /* communication while actions run, or between them */
} ms_box_half;

typedef struct ms_box {
    int lane; /* pipeline rank */
    double start_s, end_s;
    ms_box_kind kind;
    int microbatch; /* -1: of none */
    int chunk;      /* of the rank */
    ms_box_half half;
} ms_box;

/* The actions of the shown actors, their optimizers, and the gathers and reductions
 * beside them, by lane: those beside first, then by start. The simulation is of actions.
 * lane_of_actor is -1 for those not shown. Returns how many; `*out` lives in the
 * arena. */
long ms_boxes_make(ms_arena *arena, const ms_simulation *simulation,
                   const int *lane_of_actor, ms_box **out);

#endif
