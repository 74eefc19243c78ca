/* What the builders of step graphs share. */
#ifndef MS_SIM_STEP_GRAPH_PRIV_H
#define MS_SIM_STEP_GRAPH_PRIV_H

#include "sim/step_graph.h"

typedef struct ms_step_builder {
    ms_ctx *cx;
    const ms_planned *planned;
    const ms_simulate_options *options;
    const ms_actors *actors;
    ms_graph_builder *graph;
    int no_time; /* the cost of a gathering task */
    int *ready;  /* (actors): what an actor's next task on its compute stream waits for */
    long *first_span;
    ms_action_span *spans;
    int *complete, *optimizer;
    /* of each pipeline rank, alone: the pass over its parameters in the optimizer */
    double *update_s;
} ms_step_builder;

ms_step_builder ms_step_builder_open(ms_ctx *cx, const ms_planned *planned,
                                     const ms_simulate_options *options,
                                     const ms_actors *actors);
void ms_step_builder_close(ms_step_builder *s, ms_step_graph *out);

/* A task of an actor on one of its streams, or beside them. */
int ms_step_add(ms_step_builder *s, ms_task_tag tag, int cost);
int ms_step_add_beside(ms_step_builder *s, ms_task_tag tag, int cost);
int ms_step_cost_of(ms_step_builder *s, double duration_s);

/* Actors of the pipeline rank that meet in a group wait for each other: gates[actor] becomes a task after the gates of all. */
void ms_step_meet(ms_step_builder *s, int pipeline_rank, ms_traffic_group group,
                  int *gates);
/* The same over the groups that parameters are sharded over, and over those in which gradients are reduced. */
void ms_step_meet_for_shards(ms_step_builder *s, int pipeline_rank, int *gates);
void ms_step_meet_for_reduction(ms_step_builder *s, int pipeline_rank, int *gates);

/* After complete[] is filled: the gradient norm, which all wait for, and each actor's update. */
void ms_step_add_optimizer(ms_step_builder *s);

#endif
