/* Seconds by which concurrent gathers of parameters and reductions of gradients slow down
 * the kernels of a block, as in sim/step/stage.h (docs/formulas 4.3, 5.3 to 5.5). */
#ifndef MS_SIM_SIMULATE_INTERFERENCE_H
#define MS_SIM_SIMULATE_INTERFERENCE_H

#include "sim/step/planned.h"

/* A block (embedding, layer or head) and the schedule action in which it runs. */
typedef struct ms_interference {
    const ms_block_cost *block;
    /* blocks of the units that the action runs just before and after its unit; NULL: none */
    const ms_block_cost *before, *next;
    /* blocks of the units of these neighbours over those of the block's own unit */
    double before_blocks, next_blocks;
    const ms_stage *stage;
    bool forward;
    /* gradients that a backward action computes: of inputs, of weights */
    bool inputs, weights;
    bool first_forward, last_backward;
    /* overlapped pair: whether the block is a layer that the other half's layer overlaps,
     * and for how many seconds it waits for the host */
    bool in_pair;
    double pair_host_s;
} ms_interference;

/* Seconds for which each layer of a forward of stage `f` waits for the host, in the order
 * in which it runs them, and of a backward of stage `b` that overlaps it: (number of pairs)
 * each. Stages of the model. Returns the number of pairs of layers. Lives in the arena. */
long ms_pair_host_waits(ms_arena *arena, const ms_planned *planned, int f, int b,
                        double **forward_s, double **backward_s);

/* Seconds by which transfers slow down the block at->block: those of its neighbours where
 * every micro-batch moves parameters or gradients, otherwise its share, by duration, of
 * the slowdown of the action by transfers of the whole stage. 0 if the stack overlaps none.
 * `gathers_once`: parameters are gathered at the step's start. */
double ms_interference_s(const ms_planned *planned, const ms_interference *at,
                         bool gathers_once);

/* Multiprocessors that a collective holds: the stack's interference fraction of all. */
int ms_comm_sms(const ms_workload *workload);

/* Seconds in which the host launches the block at->block; 0 if its kernels take longer. */
double ms_launch_s(const ms_interference *at);
/* Seconds for which the block at->block then waits for the host, which launches while
 * transfers slow the block's kernels by interference_s. */
double ms_host_wait_s(const ms_interference *at, double interference_s);

/* Seconds by which the gather of the block at->next lasts longer, since the block at->block
 * communicates over its links meanwhile: min(E, M) of docs/formulas 4.3. */
double ms_contention_s(const ms_planned *planned, const ms_interference *at);

#endif
