/* The task graph of a plan's training step, for every simulated rank, with a task per
 * action of the schedule, or per node of the layer programs inside actions. */
#ifndef MS_SIM_SIMULATE_STEP_GRAPH_H
#define MS_SIM_SIMULATE_STEP_GRAPH_H

#include "sim/simulate/actors.h"
#include "sim/simulate/link_uses.h"
#include "sim/simulate/simulation.h"

/* First and last task of a schedule action on a simulated rank. */
typedef struct ms_action_span {
    int first, last;
} ms_action_span;

typedef struct ms_step_graph {
    const ms_graph *graph;
    /* (num_actors): index in `spans` of a simulated rank's first action; a rank has one
     * span per action, in the order of its actions */
    const long *first_span;
    const ms_action_span *spans;
    /* (num_actors): the task after which actions and reductions of a rank are done */
    const int *complete;
    const int *optimizer; /* (num_actors): the task that updates the parameters */
    /* (num_actors): the task with whose end a simulated rank's step ends. If all ranks
     * synchronize, it spans that and the update, summed in ms_step_time_of's order. */
    const int *done;
    const ms_task_work *work; /* work of tasks by ms_task_tag.work; [0]: none */
} ms_step_graph;

/* Builds a task graph of a step with a task per schedule action, of the duration that
 * ms_step_durations gives: the longest path equals ms_step_exact_s bit for bit. Sends,
 * gathers and reductions have tasks of their own. Ranks that communicate within an action
 * (over tp, cp or ep, or to gather sharded parameters for every action) end it together.
 * The result lives in cx->arena. MS_EINPUT: more than MS_MAX_TASKS tasks. */
ms_status ms_step_graph_actions(ms_ctx *cx, const ms_planned *planned,
                                const ms_simulate_options *options,
                                const ms_actors *actors, ms_step_graph *out);

/* Builds a task graph of a step with a task per node of the layer programs: kernels on
 * the compute stream, collectives on the streams of their groups. `uses`: link uses of
 * the collectives, folded for `actors`; NULL: tasks share no links and SMs. A
 * collective's hidden share (by the stack's fractions) runs during the adjacent kernels,
 * the rest before the task that waits for the collective. Parameters are gathered block
 * by block, with ZeRO-3 one block ahead; gradients are reduced block by block. Without
 * sharing, gathers and reductions run one after the other, and their interference with
 * kernels is a task of its own; with sharing the links determine both. In an overlapped
 * pair, kernels of forward and backward alternate as they become ready. The result lives
 * in cx->arena. MS_EINPUT: more than MS_MAX_TASKS tasks. */
ms_status ms_step_graph_nodes(ms_ctx *cx, const ms_planned *planned,
                              const ms_simulate_options *options, const ms_actors *actors,
                              ms_link_uses *uses, ms_step_graph *out);

#define MS_MAX_TASKS 40000000L

#endif
