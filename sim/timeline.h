/* What traces, diagrams and summaries say about a simulation. */
#ifndef MS_SIM_TIMELINE_H
#define MS_SIM_TIMELINE_H

#include "sim/simulation.h"

/* What a task is called: "forward 3" for actions, names of nodes inside them. Lives in
 * the arena. */
char *ms_task_name(ms_arena *arena, const ms_simulation *simulation, int task);

/* The same for text: with nodes, the action as well, "backward 3: mlp.down". Lives in the
 * arena. */
char *ms_task_phrase(ms_arena *arena, const ms_simulation *simulation, int task);

/* "rank 5 (pp 1, stands for 64 ranks)". Lives in the arena. */
char *ms_actor_name(ms_arena *arena, const ms_simulation *simulation, int actor);

typedef struct ms_link_busy {
    int link;
    double used_frac; /* over the step */
    double most_frac; /* at one time */
} ms_link_busy;

/* Every link of the graph, the one with the most use first; returns how many are used at
 * all. Lives in the arena. */
int ms_links_busy(ms_arena *arena, const ms_simulation *simulation, ms_link_busy **out);

/* The actor that shows what happens on each pipeline rank: of those, the one that ends
 * last. Fills `actors` (pipeline ranks, in their order) and returns how many. */
int ms_stage_actors(const ms_simulation *simulation, int num_stages, int *actors);

/* The actor with the largest peak; of several the first. */
const ms_actor *ms_most_actor(const ms_simulation *s);

#endif
