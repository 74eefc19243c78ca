/* What the builders of step graphs share. */
#ifndef MS_SIM_STEP_GRAPH_PRIV_H
#define MS_SIM_STEP_GRAPH_PRIV_H

#include "sim/move_names.h"
#include "sim/part_ops.h"
#include "sim/step_graph.h"

typedef struct ms_step_builder {
    ms_ctx *cx;
    ms_arena *scratch;
    const ms_planned *planned;
    const ms_simulate_options *options;
    const ms_actors *actors;
    const ms_schedule *schedule;
    ms_stage_times *times; /* by placed stage */
    ms_graph_builder *graph;
    int no_time; /* the cost of a gathering task */
    int labels[MS_NUM_TASK_KINDS];
    int *ready; /* (actors): what an actor's next task on its compute stream waits for */
    /* (steps + 1): where the ends of a step are in `ends`, one per actor of its pipeline
     * rank */
    long *first_end;
    int *ends;
    int *place;     /* (actors): among those of its pipeline rank */
    int *next_span; /* (actors): actions begun */
    long *first_span;
    ms_action_span *spans;
    int *reduced; /* (actors): after the reductions that were added so far */
    int *gates;   /* (actors): room for meetings */
    int *complete, *optimizer, *done;
    /* with sharing, else NULL */
    ms_link_uses *uses;
    const int *class_link;         /* (link classes): of the graph */
    const int *memory_link, *pool; /* (actors): HBM, and SMs */
    int comm_sms; /* that communication takes of a device, by the stack's interference */
    double *update_s; /* (pipeline ranks): the pass over parameters in the optimizer */
} ms_step_builder;

ms_step_builder ms_step_builder_open(ms_ctx *cx, const ms_planned *planned,
                                     const ms_simulate_options *options,
                                     const ms_actors *actors);
/* MS_EINPUT: more than MS_MAX_TASKS. */
ms_status ms_step_check_size(ms_ctx *cx, const ms_actors *actors, double tasks_per_actor);
void ms_step_builder_close(ms_step_builder *s, ms_step_graph *out);

/* ---- steps of the schedule ---- */

const ms_step_cost *ms_step_class(const ms_step_builder *s, int step);
const ms_action *ms_step_action(const ms_step_builder *s, int step);
int ms_step_rank(const ms_step_builder *s, int step);
/* The stage whose gradients a step makes, of a pair's second half the backward's. */
int ms_step_stage(const ms_step_cost *cost);
bool ms_step_is_forward(const ms_step_cost *cost);
void ms_step_set_end(ms_step_builder *s, int step, int actor, int task);
/* The first and the last task of the actor's next action. */
void ms_step_begin_span(ms_step_builder *s, int actor, int task);
void ms_step_end_span(ms_step_builder *s, int actor, int task);
/* The sends of what a step receives, as tasks beside all streams; 0: nothing is
 * received. */
typedef struct ms_arrivals {
    int activation, gradient;
} ms_arrivals;
ms_arrivals ms_step_add_arrivals(ms_step_builder *s, int step, int actor);

/* The message of a step whose stage waits until it is sent, on the stream of compute:
 * ms_message_hold_s. The task that the actor goes on after; `after` itself where messages
 * travel beside compute, or there is none. */
double ms_step_hold_s(const ms_step_builder *s, const ms_step_cost *cost);
int ms_step_add_hold(ms_step_builder *s, int step, int actor, int after);

/* ---- tasks ---- */

/* A task of an actor on one of its streams, or beside them. */
int ms_step_add(ms_step_builder *s, ms_task_tag tag, int cost);
int ms_step_add_beside(ms_step_builder *s, ms_task_tag tag, int cost);
int ms_step_cost_of(ms_step_builder *s, double duration_s);

/* A collective, or a part of one: `share` of its seconds. Actors that meet for it share
 * the use of links and their memory; all are done when all are. */
typedef struct ms_moved {
    ms_traffic_group group;
    ms_collective collective;
    double size_bytes; /* of one */
    /* of all */
    int count;
    double bytes, seconds;
    int use; /* kind of link uses */
} ms_moved;
int ms_step_moved_cost(ms_step_builder *s, const ms_moved *moved, double duration_s,
                       int actor, double load_frac);
/* The part of a collective's load on links that a member of a meeting of actors stands
 * for: as many of all as the ranks that it stands for. */
double ms_step_load_frac(const ms_step_builder *s, const int *members, int num,
                         int actor);
/* A kernel of a node, on an actor; `hbm_bytes` and `tiles` are of the node. */
int ms_step_kernel_cost(ms_step_builder *s, const ms_part_op *op,
                        const ms_program *program, int actor);
/* Makes links and pools for the actors. */
void ms_step_share(ms_step_builder *s, ms_link_uses *uses);
int ms_step_add_gathering(ms_step_builder *s, const char *label);

/* Actors of the pipeline rank that meet in a group wait for each other: gates[actor]
 * becomes a task after the gates of all. */
void ms_step_meet(ms_step_builder *s, int pipeline_rank, ms_traffic_group group,
                  int *gates);
/* Of a stage of the model, the exchange of its gradients with the copy on another rank;
 * 0: there is no copy. */
double ms_step_twin_s(const ms_step_builder *s, int model_stage);
/* A task after what ready[] has for all members becomes what each of them has. */
void ms_step_join(ms_step_builder *s, const int *members, int num, int *ready);
/* The same over the groups that parameters are sharded over, and over those in which
 * gradients are reduced. */
void ms_step_meet_for_shards(ms_step_builder *s, int pipeline_rank, int *gates);
void ms_step_meet_for_reduction(ms_step_builder *s, int pipeline_rank, int *gates);

/* Whether parameters are gathered once, from the start of the step. In the first step
 * weights that ranks hold whole are there from the initialisation (Megatron-LM,
 * training/training.py: the hook that waits for gathers is enabled after the first
 * iteration). */
bool ms_step_gathers_once(const ms_step_builder *s);

/* When all actions are there: each actor's reductions, what the stack's optimizer_sync
 * makes all wait for (the exchange of a tied matrix, the gradient norm), and each
 * actor's update. */
void ms_step_add_optimizer(ms_step_builder *s);

#endif
