/* Seconds by which concurrent gathers of parameters and reductions of gradients slow down
 * the kernels of a block: the stack's interference_frac times the duration of the kernels
 * or of the transfers, whichever is shorter; as in sim/step/stage.h. */
#ifndef MS_SIM_SIMULATE_INTERFERENCE_H
#define MS_SIM_SIMULATE_INTERFERENCE_H

#include "sim/step/planned.h"

/* A block (embedding, layer or head) and the schedule action in which it runs. */
typedef struct ms_interference {
    const ms_block_cost *block;
    const ms_stage *stage;
    bool forward;
    /* gradients that a backward action computes: of inputs, of weights */
    bool inputs, weights;
    bool first_forward, last_backward;
} ms_interference;

/* Seconds by which the block's own gathers and reductions slow it down with ZeRO-3. */
double ms_block_interference_s(const ms_planned *planned, const ms_interference *at);

/* Seconds by which gathers and reductions of the whole stage, run once per step or per
 * micro-batch, slow down the block at->block. The slowdown of an action is divided among
 * its blocks by duration. `gathers_once`: parameters are gathered at the step's start. */
double ms_action_interference_s(const ms_planned *planned, const ms_interference *at,
                                bool gathers_once);

#endif
