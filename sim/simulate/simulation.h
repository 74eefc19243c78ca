/* Folder sim/simulate: a training step as tasks of an engine, with loads of links,
 * memory over time and traces; the engines are in sim/engine.
 *
 * Simulation of a plan: the task graph of its training step, timed by an engine, with the
 * time and memory of every simulated rank. */
#ifndef MS_SIM_SIMULATE_SIMULATION_H
#define MS_SIM_SIMULATE_SIMULATION_H

#include "sim/engine/event.h"
#include "sim/simulate/fold.h"
#include "sim/simulate/task_work.h"
#include "sim/step/planned.h"

typedef enum ms_detail {
    MS_DETAIL_ACTION, /* a task per action of the schedule */
    MS_DETAIL_NODE    /* a task per node of the layer programs inside actions */
} ms_detail;
extern const char *const ms_detail_names[]; /* "action" "node", NULL */

/* A slowdown: a rank computes, or a link transfers, `factor` times as slowly. */
typedef struct ms_slowdown {
    bool is_link;
    long rank;
    const char *link; /* name of the slow links (ms_fabric_find) */
    double factor;    /* > 0; 1.3: compute or transfers take 1.3 times as long */
} ms_slowdown;

#define MS_MAX_SLOWDOWNS 64

typedef struct ms_simulate_options {
    ms_engine engine;
    ms_detail detail;
    bool unfolded; /* simulates every rank instead of one per class of equal ranks */
    /* tasks do not share links and SMs: the event engine gives the times of a replay; in
     * mixed clusters they never do */
    bool unshared;
    bool rendezvous; /* sends wait for the receiver; false: eager sends */
    /* true: simulates the first step after initialisation, in which weights that ranks
     * hold whole (ZeRO-1, ZeRO-2) need no gather, and the optimizer's first update
     * creates its moments (docs/formulas). false: a later step. */
    bool first_step;
    bool wants_link_samples; /* the simulation keeps samples of link use, for a trace */
    int num_slow;
    ms_slowdown slow[MS_MAX_SLOWDOWNS];
    /* standard deviation of the logarithm of each task's random factor; 0: none */
    double jitter_frac;
    unsigned long seed;
} ms_simulate_options;

/* Memory of a rank from `time_s` until the next sample. */
typedef struct ms_memory_sample {
    double time_s;
    double bytes[MS_NUM_MEMORY_CATEGORIES];
} ms_memory_sample;

/* A simulated rank, which represents `multiplicity` ranks. */
typedef struct ms_actor {
    long rank;
    long multiplicity;
    int pipeline_rank;
    double slow_factor;
    /* components of the simulated step time on this rank, s; they sum to it */
    double compute_s, exposed_comm_s, bubble_s, optimizer_s, host_s;
    double end_s;
    int num_samples; /* memory samples, ordered by time; the first at time 0 */
    const ms_memory_sample *samples;
    int peak_sample;
    double peak_bytes;
    int peak_task; /* task at whose start or end memory peaks; 0: start of the step */
} ms_actor;

typedef struct ms_simulation {
    ms_simulate_options options;
    const ms_planned *planned;
    const ms_graph *graph;
    const ms_task_work *work;      /* work of tasks by ms_task_tag.work; [0]: none */
    const double *start_s, *end_s; /* (1 + graph->num_tasks): times of each task */
    ms_fold fold;
    int num_actors;
    const ms_actor *actors; /* (num_actors): one per class of `fold`, in that order */
    int last_actor;         /* index of the actor that determines step_s */
    /* Step time as in ms_step_time: when the last rank ends; if the optimizer does not
     * wait for all ranks, the longest time of any rank from its first task to its end. */
    double step_s;
    double last_end_s; /* latest end of any simulated rank */
    /* ranks that the optimizer waits for, by the workload's stack */
    ms_optimizer_sync optimizer_sync;
    /* step time from the replay of actions, as ms_predict returns it */
    double predicted_step_s;
    long num_events, num_rate_changes;
    /* (graph->num_links): use of links; NULL without sharing in the event engine */
    const ms_link_total *link_totals;
    long num_link_samples; /* number of samples of link use */
    const ms_link_sample *link_samples;
} ms_simulation;

/* Simulates a step of the plan. `planned` comes from ms_planned_open and outlives the
 * result, which lives in cx->arena. MS_EINPUT: a slowdown of a rank or link that does not
 * exist, a slow link although links are not shared, or a graph that is too large (the
 * message has the number of tasks and ways to reduce it). */
ms_status ms_simulate(ms_ctx *cx, const ms_planned *planned,
                      const ms_simulate_options *options, ms_simulation *out);

/* The task that ends last among those that a task waited for; 0: none. */
int ms_simulation_cause(const ms_simulation *simulation, int task);

/* Reads a slowdown, "rank=5:1.3" or "link=nic 12:2", into `out`. MS_EINPUT with a
 * message if the text is malformed. */
ms_status ms_slowdown_read(ms_ctx *cx, const char *text, ms_slowdown *out);

#endif
