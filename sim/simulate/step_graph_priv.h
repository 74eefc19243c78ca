/* State and functions that both builders of step graphs share. */
#ifndef MS_SIM_SIMULATE_STEP_GRAPH_PRIV_H
#define MS_SIM_SIMULATE_STEP_GRAPH_PRIV_H

#include "sim/simulate/block_ops.h"
#include "sim/simulate/move_names.h"
#include "sim/simulate/step_graph.h"

typedef struct ms_step_builder {
    ms_ctx *cx;
    ms_arena *scratch;
    const ms_planned *planned;
    const ms_simulate_options *options;
    const ms_actors *actors;
    const ms_schedule *schedule;
    ms_stage_times *times; /* (placed stages): durations of actions */
    ms_graph_builder *graph;
    int no_time; /* index of the cost of a join, which takes no time */
    int labels[MS_NUM_TASK_KINDS];
    int *ready; /* (actors): the task that an actor's next compute task waits for */
    /* (slots + 1): where the last tasks of a slot start in `ends`, one per actor of
     * its pipeline rank */
    long *first_end;
    int *ends;
    int *place;     /* (actors): index of the actor among those of its pipeline rank */
    int *next_span; /* (actors): number of actions begun */
    long *first_span;
    ms_action_span *spans;
    /* (actors): the task after which all reductions added so far are done; 0: none */
    int *reduced;
    int *gates; /* (actors): work memory: tasks that a meeting's actors wait for */
    int *complete, *optimizer, *done;
    /* sharing: uses (NULL without it), class_link, memory_link, pool */
    ms_link_uses *uses;
    const int *class_link; /* (link classes): link index in the task graph; -1: none */
    /* (actors): link of the graph for HBM, and pool of SMs */
    const int *memory_link, *pool;
    /* SMs that communication takes on a device, by the stack's interference fraction */
    int comm_sms;
    /* (pipeline ranks): seconds of the optimizer's pass over parameters */
    double *update_s;
} ms_step_builder;

ms_step_builder ms_step_builder_open(ms_ctx *cx, const ms_planned *planned,
                                     const ms_simulate_options *options,
                                     const ms_actors *actors);
/* MS_EINPUT with a message: more than MS_MAX_TASKS tasks. */
ms_status ms_step_check_size(ms_ctx *cx, const ms_actors *actors, double tasks_per_actor);
void ms_step_builder_close(ms_step_builder *s, ms_step_graph *out);

/* ---- slots of the schedule ---- */

const ms_slot_cost *ms_step_class(const ms_step_builder *s, int step);
const ms_action *ms_step_action(const ms_step_builder *s, int step);
int ms_step_rank(const ms_step_builder *s, int step);
/* The stage of a slot; for the second half of an overlapped pair that of the backward. */
int ms_step_stage(const ms_slot_cost *cost);
bool ms_step_is_forward(const ms_slot_cost *cost);
void ms_step_set_end(ms_step_builder *s, int step, int actor, int task);
/* Set the first task of the actor's next action, and the last task of the action begun
 * last. */
void ms_step_begin_span(ms_step_builder *s, int actor, int task);
void ms_step_end_span(ms_step_builder *s, int actor, int task);
/* Tasks of the sends that a slot receives, on no stream; 0: nothing is received. */
typedef struct ms_arrivals {
    int activation, gradient;
} ms_arrivals;
ms_arrivals ms_step_add_arrivals(ms_step_builder *s, int step, int actor);

/* Seconds that a stage waits for the slot's message, and its task on the compute
 * stream (ms_message_hold_s). ms_step_add_hold returns the task after which the actor
 * continues: `after` itself where messages overlap with compute, or there is none. */
double ms_step_hold_s(const ms_step_builder *s, const ms_slot_cost *cost);
int ms_step_add_hold(ms_step_builder *s, int step, int actor, int after);

/* ---- tasks ---- */

/* Add a task of an actor on one of its streams, or on no stream; return its index. */
int ms_step_add(ms_step_builder *s, ms_task_tag tag, int cost);
int ms_step_add_streamless(ms_step_builder *s, ms_task_tag tag, int cost);
int ms_step_cost_of(ms_step_builder *s, double duration_s);

/* A collective, or a share of one, for ms_step_moved_cost. Actors that take part in it
 * share its use of links; all end when the last one does. */
typedef struct ms_moved {
    ms_traffic_group group;
    ms_collective collective;
    double size_bytes; /* bytes of one collective */
    /* number, bytes and seconds of all equal collectives */
    int count;
    double bytes, seconds;
    int use; /* index of a kind of link uses (ms_link_uses_kind) */
} ms_moved;
int ms_step_moved_cost(ms_step_builder *s, const ms_moved *moved, double duration_s,
                       int actor, double load_frac);
/* Share of a collective's load on links that one member of a meeting represents: the
 * number of ranks it represents over that of all members. */
double ms_step_load_frac(const ms_step_builder *s, const int *members, int num,
                         int actor);
/* Cost of a node's kernel on an actor. */
int ms_step_kernel_cost(ms_step_builder *s, const ms_block_op *op,
                        const ms_program *program, int actor);
/* Adds links and pools of SMs to the graph for the actors. */
void ms_step_share(ms_step_builder *s, ms_link_uses *uses);
int ms_step_add_join(ms_step_builder *s, const char *label);

/* Makes actors of the pipeline rank that take part in a group wait for each other:
 * gates[actor] becomes a task after the gates of all. */
void ms_step_meet(ms_step_builder *s, int pipeline_rank, ms_traffic_group group,
                  int *gates);
/* Seconds in which a stage of the model exchanges its gradients with its replica on
 * another rank; 0: it has no replica. */
double ms_step_replica_s(const ms_step_builder *s, int model_stage);
/* Adds a task after ready[member] of all members, and makes it the new ready[member]. */
void ms_step_join(ms_step_builder *s, const int *members, int num, int *ready);
/* ms_step_meet for the groups over which parameters are sharded, and for those in
 * which gradients are reduced. */
void ms_step_meet_for_shards(ms_step_builder *s, int pipeline_rank, int *gates);
void ms_step_meet_for_reduction(ms_step_builder *s, int pipeline_rank, int *gates);

/* Whether parameters are gathered once, from the start of the step. In the first step
 * unsharded weights exist from the initialisation (Megatron-LM, training/training.py:
 * the hook that waits for gathers is enabled after the first iteration). */
bool ms_step_gathers_once(const ms_step_builder *s);

/* Adds the end of the step, after all actions: each actor's reductions, the
 * synchronization of the stack's optimizer_sync (the exchange of a tied matrix, the
 * gradient norm), and each actor's update. */
void ms_step_add_optimizer(ms_step_builder *s);

#endif
