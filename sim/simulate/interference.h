/* Seconds by which gathers of parameters and reductions of gradients slow down the
 * kernels of each block that they overlap: the stack's interference fraction of the
 * shorter of both, as in the closed form (sim/step/stage.h). */
#ifndef MS_SIM_SIMULATE_INTERFERENCE_H
#define MS_SIM_SIMULATE_INTERFERENCE_H

#include "sim/step/planned.h"

/* A block of layers that runs within an action of the schedule. */
typedef struct ms_interference {
    const ms_block_cost *part;
    const ms_stage *stage;
    bool forward;
    /* which halves of a backward run: gradients of inputs, gradients of weights */
    bool inputs, weights;
    bool first_forward, last_backward;
} ms_interference;

/* Seconds that gathers and reductions of the block itself add with ZeRO-3. */
double ms_block_interference_s(const ms_planned *planned, const ms_interference *at);

/* Seconds that transfers once per step, or once per micro-batch for the whole stage,
 * add to the block: its share by duration of what they add to the action.
 * `gathers_once`: parameters are gathered at the start of the step. */
double ms_action_interference_s(const ms_planned *planned, const ms_interference *at,
                                bool gathers_once);

#endif
