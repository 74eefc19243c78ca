/* Names of tasks and actors, use of links, and choice of actors, for traces, diagrams
 * and summaries of a simulation. */
#ifndef MS_SIM_SIMULATE_SIMULATED_TIMELINE_H
#define MS_SIM_SIMULATE_SIMULATED_TIMELINE_H

#include "sim/simulate/simulation.h"

/* Name of a task: "forward 3" for actions, the name of the node inside them. Lives in
 * the arena. */
char *ms_task_name(ms_arena *arena, const ms_simulation *simulation, int task);

/* Name of a task for text, which includes the action of a node: "backward 3:
 * mlp.down". Lives in the arena. */
char *ms_task_phrase(ms_arena *arena, const ms_simulation *simulation, int task);

/* Name of an actor: "rank 5 (pp 1, stands for 64 ranks)". Lives in the arena. */
char *ms_actor_name(ms_arena *arena, const ms_simulation *simulation, int actor);

typedef struct ms_link_busy {
    int link;
    double used_frac; /* used share of the link's bandwidth: mean over the step */
    double most_frac; /* used share of the link's bandwidth: maximum over time */
} ms_link_busy;

/* Lists every link of the graph, the most used first; returns how many are used at
 * all. Lives in the arena. */
int ms_links_busy(ms_arena *arena, const ms_simulation *simulation, ms_link_busy **out);

/* Selects for each pipeline rank its actor that ends last. Fills `actors` (pipeline
 * ranks, in their order) and returns their number. */
int ms_stage_actors(const ms_simulation *simulation, int num_stages, int *actors);

/* The actor with the largest memory peak; the first of several. */
const ms_actor *ms_most_actor(const ms_simulation *s);

#endif
