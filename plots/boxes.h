/* Boxes of a Gantt diagram: actions, optimizers and collectives of simulated ranks. */
#ifndef MS_PLOTS_BOXES_H
#define MS_PLOTS_BOXES_H

#include "sim/simulate/simulation.h"

typedef enum ms_box_kind {
    MS_BOX_FORWARD,
    MS_BOX_BACKWARD, /* backward pass for inputs and weights together */
    MS_BOX_INPUT,    /* separate backward passes for inputs and for weights */
    MS_BOX_WEIGHT,
    MS_BOX_GATHER, /* all-gather of parameters, overlapped with actions */
    MS_BOX_REDUCE, /* reduction of gradients, overlapped with actions or after them */
    MS_BOX_OPTIMIZER,
    MS_NUM_BOX_KINDS
} ms_box_kind;
/* names of ms_box_kind: "forward", ..., NULL-ended */
extern const char *const ms_box_kind_names[];

/* The part of a lane's height that a box takes. */
typedef enum ms_box_half {
    MS_BOX_WHOLE,
    MS_BOX_UPPER, /* a forward, drawn above a simultaneous backward */
    MS_BOX_LOWER,
    MS_BOX_COMMUNICATION /* thin lane of collectives below the actions */
} ms_box_half;

typedef struct ms_box {
    int lane; /* row of the diagram: pipeline rank */
    double start_s, end_s;
    ms_box_kind kind;
    int microbatch; /* -1: the box belongs to no micro-batch */
    int chunk;      /* model chunk (virtual stage) of the rank */
    ms_box_half half;
} ms_box;

/* Makes the boxes of all actors with a lane in `lane_of_actor` (-1: none), ordered by
 * lane, then communication before actions, then start; *out is in the arena. Returns how
 * many. */
long ms_boxes_make(ms_arena *arena, const ms_simulation *simulation,
                   const int *lane_of_actor, const ms_box **out);

/* Writes the kinds and halves of boxes as a comment of a data file. */
void ms_boxes_write_kinds(FILE *out);

#endif
