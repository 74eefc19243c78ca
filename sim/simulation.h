/* A plan simulated task by task: the graph of its step, run by an engine, with what every
 * simulated rank did and kept over time. */
#ifndef MS_SIM_SIMULATION_H
#define MS_SIM_SIMULATION_H

#include "sim/event.h"
#include "sim/fold.h"
#include "sim/planned.h"

typedef enum ms_detail {
    MS_DETAIL_ACTION, /* a task per action of the schedule */
    MS_DETAIL_NODE    /* a task per node of the layer programs inside them */
} ms_detail;
extern const char *const ms_detail_names[]; /* "action" "node", NULL */

/* One bad part: a rank that computes, or a link that moves, `factor` times as slowly. */
typedef struct ms_slow_part {
    bool is_link;
    long rank;
    const char *link; /* as ms_fabric_find takes it */
    double factor;    /* > 0; 1.3: takes 1.3 times as long */
} ms_slow_part;

#define MS_MAX_SLOW_PARTS 64

typedef struct ms_simulate_options {
    ms_engine engine;
    ms_detail detail;
    bool unfolded;   /* every rank by itself */
    bool unshared;   /* event engine without sharing: equals replay on the same graph */
    bool rendezvous; /* sends wait for their receiver; otherwise eager */
    /* The step after initialisation: weights that ranks hold whole (ZeRO-1, ZeRO-2) need
     * no gather, and the optimizer's moments come with its first update
     * (docs/formulas). Otherwise a step in a row of steps. */
    bool first_step;
    int num_slow;
    ms_slow_part slow[MS_MAX_SLOW_PARTS];
    /* standard deviation of the logarithm of each task's duration; 0: none */
    double jitter_frac;
    unsigned long seed;
} ms_simulate_options;

/* What a rank keeps from `time_s` on. */
typedef struct ms_memory_sample {
    double time_s;
    double bytes[MS_NUM_MEMORY_PARTS];
} ms_memory_sample;

/* A simulated rank, which stands for `multiplicity` ranks. */
typedef struct ms_actor {
    long rank;
    long multiplicity;
    int pipeline_rank;
    double slow_factor;
    /* they sum to the step */
    double compute_s, exposed_comm_s, bubble_s, optimizer_s, host_s;
    double end_s;
    int num_samples; /* in the order of time; the first is at 0 */
    const ms_memory_sample *samples;
    int peak_sample;
    double peak_bytes;
    int peak_task; /* during which it is reached */
} ms_actor;

typedef struct ms_simulation {
    ms_simulate_options options;
    const ms_planned *planned;
    const ms_graph *graph;
    const double *start_s, *end_s; /* (1 + graph->num_tasks) */
    ms_fold fold;
    int num_actors;
    const ms_actor *actors; /* in the order of the classes of the fold */
    int last_actor;         /* that step_s is counted for */
    /* As ms_step_time has it: up to the end of the last actor; with post-validation the
     * longest span of any actor, from its first task to its end */
    double step_s;
    double last_end_s;                /* of any actor */
    ms_optimizer_sync optimizer_sync; /* of the workload's stack */
    double predicted_step_s; /* by the replay of actions, as ms_predict gives it */
    long num_events, num_rate_changes;
    long num_link_samples; /* event engine with sharing */
    const ms_link_sample *link_samples;
} ms_simulation;

/* The plan is open (ms_planned_open) and outlives the result, which lives in cx->arena.
 * MS_EINPUT: a slow part that does not exist, a graph that is too large (told with the
 * number of tasks and what would make it smaller). */
ms_status ms_simulate(ms_ctx *cx, const ms_planned *planned,
                      const ms_simulate_options *options, ms_simulation *out);

/* Of what a task waited for, the one that came last; 0: nothing. */
int ms_simulation_cause(const ms_simulation *simulation, int task);

/* "rank=5:1.3", "link=nic 12:2" into `out`; MS_EINPUT says what is wrong. */
ms_status ms_slow_part_read(ms_ctx *cx, const char *text, ms_slow_part *out);

#endif
