/* What gathers of parameters and reductions of gradients cost the kernels that run beside
 * them, part by part, as the closed form has it (sim/stage.h): the stack's share of the
 * shorter of both. */
#ifndef MS_SIM_INTERFERENCE_H
#define MS_SIM_INTERFERENCE_H

#include "sim/planned.h"

/* A part at work within an action. */
typedef struct ms_interference {
    const ms_part *part;
    const ms_stage *stage;
    bool forward;
    bool inputs, weights; /* halves of a backward */
    bool first_forward, last_backward;
} ms_interference;

/* ZeRO-3: gathers and reductions of the part itself. */
double ms_part_interference_s(const ms_planned *planned, const ms_interference *at);

/* Of what moves once a step, or once a micro-batch for the whole stage: the part's share
 * by its seconds. `gathers_once`: parameters are gathered at the start of the step. */
double ms_action_interference_s(const ms_planned *planned, const ms_interference *at,
                                bool gathers_once);

#endif
