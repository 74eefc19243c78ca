/* Names of tasks and simulated ranks, use of links, and choice of ranks to show, for
 * traces, diagrams and summaries of a simulation. */
#ifndef MS_SIM_SIMULATE_SIMULATED_TIMELINE_H
#define MS_SIM_SIMULATE_SIMULATED_TIMELINE_H

#include "sim/simulate/simulation.h"

/* Name of a task: "forward 3" (action, micro-batch) with a task per action, the node's
 * name with a task per node. Lives in the arena. */
char *ms_task_name(ms_arena *arena, const ms_simulation *simulation, int task);

/* Name of a task for text, with the action that contains a node: "backward 3: mlp.down".
 * Lives in the arena. */
char *ms_task_phrase(ms_arena *arena, const ms_simulation *simulation, int task);

/* Name of a simulated rank: "rank 5 (pp 1, stands for 64 ranks)". Lives in the arena. */
char *ms_actor_name(ms_arena *arena, const ms_simulation *simulation, int actor);

typedef struct ms_link_busy {
    int link;
    double used_frac; /* used share of the link's bandwidth: mean over the step */
    double most_frac; /* used share of the link's bandwidth: maximum over time */
} ms_link_busy;

/* Lists the links that tasks share, most used first; returns how many are used at all.
 * The list lives in the arena. */
int ms_links_busy(ms_arena *arena, const ms_simulation *simulation, ms_link_busy **out);

/* Selects for each pipeline rank the simulated rank that ends last. Fills `actors`, in
 * the order of pipeline ranks, and returns their number. */
int ms_stage_actors(const ms_simulation *simulation, int num_stages, int *actors);

/* The simulated rank with the largest memory peak; the first of several. */
const ms_actor *ms_most_actor(const ms_simulation *s);

#endif
