/* State and functions shared by the builders of a step graph per action and per node. */
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
    ms_stage_times *times; /* (placed stages): durations of schedule actions */
    ms_graph_builder *graph;
    int no_time; /* index of the cost of a join, which takes no time */
    int labels[MS_NUM_TASK_KINDS];
    int *ready; /* (num_actors): task that the next compute task waits for */
    /* (slots + 1): index in `ends` of a schedule slot's first entry. A slot has an entry
     * per actor of its pipeline rank: the actor's last task of the slot */
    long *first_end;
    int *ends;
    int *place; /* (num_actors): index of the actor among those of its pipeline rank */
    int *next_span; /* (num_actors): number of actions that the actor has begun */
    long *first_span;
    ms_action_span *spans;
    /* (num_actors): the task after which all reductions added so far are done; 0: none */
    int *reduced;
    int *gates; /* (num_actors): work memory: joins of group members */
    int *complete, *optimizer, *done;
    /* link uses of collectives; NULL: tasks share no links or SMs, and the fields from
     * class_link to comm_sms are not set */
    ms_link_uses *uses;
    const int *class_link; /* (link classes): index of a graph link; -1: no bandwidth */
    /* (num_actors): indices in the task graph of a rank's HBM (a link) and pool of SMs */
    const int *memory_link, *pool;
    /* SMs that a collective occupies on a device: the stack's interference_frac of all */
    int comm_sms;
    /* (num_pipeline_ranks): seconds of the optimizer's pass over parameters */
    double *update_s;
    int num_work, work_capacity;
    ms_task_work *work; /* (num_work): work of tasks; [0]: none */
    int *send_work; /* [from][to] pipeline rank: index of a message in `work`; 0: new */
} ms_step_builder;

ms_step_builder ms_step_builder_open(ms_ctx *cx, const ms_planned *planned,
                                     const ms_simulate_options *options,
                                     const ms_actors *actors);
/* MS_EINPUT with a message: the task graph would have more than MS_MAX_TASKS tasks. */
ms_status ms_step_check_size(ms_ctx *cx, const ms_actors *actors, double tasks_per_actor);
void ms_step_builder_close(ms_step_builder *s, ms_step_graph *out);

/* ---- work of tasks, for traces ---- */

/* Add work to the list and return its index. `hidden`: the part of a collective that
 * overlaps kernels, otherwise the exposed part. */
int ms_step_add_work(ms_step_builder *s, ms_task_work work);
int ms_step_op_work(ms_step_builder *s, const ms_block_op *op, const ms_program *program,
                    bool hidden);
/* Sets the work of a block's transfers of parameters and gradients. */
void ms_step_state_work(ms_step_builder *s, ms_block_ops *block);
/* Add the work of an exchange of gradients with the replica of a stage on another pipeline
 * rank, and of the tied matrix's gradient between the ranks that hold its ends. */
int ms_step_replica_work(ms_step_builder *s, int rank, int model_stage);
int ms_step_tied_work(ms_step_builder *s, int rank);
/* Index of the work of a message between two pipeline ranks. */
int ms_step_send_work(ms_step_builder *s, int from, int to);

/* ---- slots of the schedule ---- */

const ms_slot_cost *ms_step_class(const ms_step_builder *s, int slot);
const ms_action *ms_step_action(const ms_step_builder *s, int slot);
int ms_step_rank(const ms_step_builder *s, int slot);
/* The stage of a slot; of the second half of an overlapped pair the backward's stage. */
int ms_step_stage(const ms_slot_cost *cost);
bool ms_step_is_forward(const ms_slot_cost *cost);
void ms_step_set_end(ms_step_builder *s, int slot, int actor, int task);
/* Set the first task of a rank's next schedule action; the last of its current action. */
void ms_step_begin_span(ms_step_builder *s, int actor, int task);
void ms_step_end_span(ms_step_builder *s, int actor, int task);
/* Tasks that send the messages which a schedule slot receives; 0: it receives none. */
typedef struct ms_arrivals {
    int activation, gradient;
} ms_arrivals;
ms_arrivals ms_step_add_arrivals(ms_step_builder *s, int slot, int actor);

/* ms_step_hold_s: seconds that compute waits after a slot for the message it sends
 * (ms_message_hold_s). ms_step_add_hold adds a compute task for this wait and returns the
 * task after which the rank continues: that one, or without a wait `after`. */
double ms_step_hold_s(const ms_step_builder *s, const ms_slot_cost *cost);
int ms_step_add_hold(ms_step_builder *s, int slot, int actor, int after);

/* ---- tasks ---- */

/* Add a task on one of a simulated rank's streams, or on no stream; return its index. */
int ms_step_add(ms_step_builder *s, ms_task_tag tag, int cost);
int ms_step_add_streamless(ms_step_builder *s, ms_task_tag tag, int cost);
int ms_step_cost_of(ms_step_builder *s, double duration_s);

/* Equal collectives as a whole; ms_step_moved_cost prices a task for a part of them. The
 * simulated ranks that take part share the load on links, and all end with the last. */
typedef struct ms_moved {
    ms_traffic_group group;
    ms_collective collective;
    double size_bytes; /* bytes of one collective */
    /* number of the equal collectives, and their total bytes and seconds */
    int count;
    double bytes, seconds;
    int use; /* index of a kind of link uses (ms_link_uses_kind) */
} ms_moved;
int ms_step_moved_cost(ms_step_builder *s, const ms_moved *moved, double duration_s,
                       int actor, double load_frac);
/* Share of a collective's load on links that `actor`, one of `members`, carries: the
 * number of ranks for which it stands, divided by the sum over all members. */
double ms_step_load_frac(const ms_step_builder *s, const int *members, int num,
                         int actor);
/* Adds the cost of a node's kernel on a simulated rank; returns the cost's index. */
int ms_step_kernel_cost(ms_step_builder *s, const ms_block_op *op,
                        const ms_program *program, int actor);
/* HBM bytes of a kernel that takes `seconds`. */
double ms_step_kernel_bytes(const ms_step_builder *s, const ms_block_op *op,
                            const ms_program *program, double seconds);
/* Adds the network links, and HBM and SMs of each simulated rank, to the task graph. */
void ms_step_share(ms_step_builder *s, ms_link_uses *uses);
int ms_step_add_join(ms_step_builder *s, const char *label);

/* Joins gates[actor], a task of each simulated rank of a pipeline rank, within every
 * group of kind `group`; the join replaces the tasks of its members in `gates`. */
void ms_step_meet(ms_step_builder *s, int pipeline_rank, ms_traffic_group group,
                  int *gates);
/* Seconds in which a stage exchanges its gradients with its replica on another pipeline
 * rank; 0: it has no replica. */
double ms_step_replica_s(const ms_step_builder *s, int model_stage);
/* Adds a join that waits for ready[a] of each member a, and then replaces ready[a]. */
void ms_step_join(ms_step_builder *s, const int *members, int num, int *ready);
/* Join `gates` like ms_step_meet, in the groups over which parameters are sharded, and in
 * those over which gradients are reduced. */
void ms_step_meet_for_shards(ms_step_builder *s, int pipeline_rank, int *gates);
void ms_step_meet_for_reduction(ms_step_builder *s, int pipeline_rank, int *gates);

/* Whether parameters are gathered once, from the start of the step; not in a first step,
 * where the initialisation leaves unsharded weights (Megatron-LM, training/training.py:
 * the hook that waits for gathers is enabled after an iteration). */
bool ms_step_gathers_once(const ms_step_builder *s);

/* Adds the end of the step, after all actions: waits for each simulated rank's
 * reductions; by the stack's optimizer_sync a synchronization of all ranks, with exchange
 * of a tied matrix's gradient and the gradient norm; each rank's update of parameters. */
void ms_step_add_optimizer(ms_step_builder *s);

#endif
