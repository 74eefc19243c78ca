/* The step of a plan as tasks, for every actor. Two sizes: a task per action of the
 * schedule, or the nodes of the layer programs inside them. */
#ifndef MS_SIM_STEP_GRAPH_H
#define MS_SIM_STEP_GRAPH_H

#include "sim/actors.h"
#include "sim/link_uses.h"
#include "sim/simulation.h"

/* First and last task of an action on an actor. */
typedef struct ms_action_span {
    int first, last;
} ms_action_span;

typedef struct ms_step_graph {
    const ms_graph *graph;
    /* (actors): where the spans of an actor start; there is one per action of its
     * pipeline rank, in their order */
    const long *first_span;
    const ms_action_span *spans;
    /* (actors): after it the actor's actions and reductions are done */
    const int *complete;
    const int *optimizer; /* (actors): its update of the parameters */
    /* (actors): ends with the actor's step; from its start on the actor waits for nobody.
     * Its duration is summed up as in ms_step_time_of. */
    const int *done;
} ms_step_graph;

/* With a task per action, durations are those of ms_step_durations, so that the longest
 * path is ms_step_exact_s bit for bit. Sends, gathers and reductions have tasks of their
 * own; ranks that meet in an action (tp, cp, ep, and the shards of parameters that every
 * action gathers) end it together. Lives in cx->arena. MS_EINPUT: more than MS_MAX_TASKS
 * tasks. */
ms_status ms_step_graph_actions(ms_ctx *cx, const ms_planned *planned,
                                const ms_simulate_options *options,
                                const ms_actors *actors, ms_step_graph *out);

/* With the nodes of the layer programs as tasks (`uses`: of links, folded for the actors;
 * NULL: nothing is shared): kernels on the compute stream, collectives on those of their
 * groups. What a collective hides (by the stack's shares) runs beside the kernels next to
 * it, the rest before what waits for it. Parameters are gathered part by part, with
 * ZeRO-3 one part ahead; gradients are reduced part by part. Without sharing, gathers and
 * reductions follow each other, and interference is a task of its own; with sharing both
 * come from the links. Of a pair the kernels of both directions take turns as they
 * become ready. */
ms_status ms_step_graph_nodes(ms_ctx *cx, const ms_planned *planned,
                              const ms_simulate_options *options, const ms_actors *actors,
                              ms_link_uses *uses, ms_step_graph *out);

#define MS_MAX_TASKS 40000000L

#endif
