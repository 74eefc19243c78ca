/* A step as tasks: what the engines run. A graph does not know whether its tasks are
 * actions of a schedule or nodes inside them.
 *
 * Tasks stand in an order in which each comes after all that it waits for, counted from
 * 1; task 0 is no task and ends at time 0. A task waits for the one before it on its
 * stream, for one other, and rarely for more. A collective of several ranks that are
 * simulated apart is a gathering task without stream or duration that waits for what all
 * its members wait for, and one task per member after it. */
#ifndef MS_SIM_GRAPH_H
#define MS_SIM_GRAPH_H

#include "base/arena.h"

#include <stdbool.h>

typedef enum ms_engine {
    /* longest path: no sharing, the stack's interference fraction instead */
    MS_ENGINE_REPLAY,
    MS_ENGINE_EVENT /* links, SMs and HBM are shared */
} ms_engine;
extern const char *const ms_engine_names[]; /* "replay" "event", NULL */

typedef enum ms_stream {
    MS_STREAM_COMPUTE,
    MS_STREAM_TP,
    MS_STREAM_CP,
    MS_STREAM_EP,
    MS_STREAM_GATHER, /* of parameters */
    MS_STREAM_REDUCE, /* of gradients */
    MS_STREAM_SEND,   /* of a pipeline */
    MS_STREAM_RECEIVE,
    MS_NUM_STREAMS
} ms_stream;
extern const char *const ms_stream_names[]; /* "compute" "tp" ..., NULL */

typedef struct ms_task {
    int before; /* task before it on its stream; 0: none */
    int cross;  /* another that it waits for; 0: none */
    int more; /* index into graph->lists of a count and so many further tasks; 0: none */
    int cost; /* index into graph->costs */
} ms_task;

/* What a task needs while it runs. Tasks of one cost are alike. */
typedef struct ms_task_cost {
    double duration_s;       /* alone on the machine */
    double latency_s;        /* of it, the start in which no byte moves */
    int first_use, num_uses; /* of graph->uses; they count after the latency */
    int pool;     /* processors that it runs on, index into graph->pool_sms; -1: none */
    int held_sms; /* SMs that communication takes from the pool while it runs */
    /* Of a matrix product: its time is whole waves over the SMs that are left. 0: not
     * limited by SMs. */
    double tiles;
    /* Share of the duration that is limited by SMs without waves being known (several
     * kernels together): it stretches with SMs / SMs left. */
    double sm_frac;
} ms_task_cost;

/* Share of a link that a task takes at full speed. */
typedef struct ms_link_use {
    int link;
    double bytes_per_s;
} ms_link_use;

/* For output: what a task is. */
typedef struct ms_task_tag {
    int actor;   /* simulated rank (class), index of the builder; -1: a gathering task */
    short stage; /* of the schedule; -1: none */
    unsigned char stream; /* ms_stream */
    unsigned char kind;   /* ms_task_kind */
    int microbatch;       /* -1: none */
    int label;            /* index into graph->labels */
} ms_task_tag;

typedef enum ms_task_kind {
    MS_TASK_FORWARD,
    MS_TASK_BACKWARD,
    MS_TASK_BACKWARD_INPUT,
    MS_TASK_BACKWARD_WEIGHT,
    MS_TASK_OVERLAP,
    MS_TASK_RECOMPUTE,
    MS_TASK_HOST, /* the device waits for the host */
    MS_TASK_COLLECTIVE,
    MS_TASK_SEND,
    MS_TASK_RECEIVE,
    MS_TASK_OPTIMIZER,
    MS_TASK_GATHERING, /* no time */
    MS_NUM_TASK_KINDS
} ms_task_kind;
extern const char *const ms_task_kind_names[];

typedef struct ms_graph {
    int num_tasks;
    ms_task *tasks;    /* (1 + num_tasks) */
    ms_task_tag *tags; /* (1 + num_tasks); NULL when the builder kept none */
    int num_lists;     /* length of lists; lists[0] is not used */
    const int *lists;
    int num_costs;
    const ms_task_cost *costs;
    int num_uses;
    const ms_link_use *uses;
    int num_links;
    const double *link_bytes_per_s; /* capacity, by class of equal links */
    const char *const *link_names;
    int num_pools;
    const int *pool_sms;
    int num_labels;
    const char *const *labels;
} ms_graph;

/* Longest path, no queue: a task starts at the latest end of what it waits for, and ends
 * its duration later. start_s (may be NULL) and end_s are (1 + num_tasks). Returns the
 * latest end. */
double ms_graph_replay(const ms_graph *graph, double *start_s, double *end_s);

/* ---- building ---- */

typedef struct ms_graph_builder ms_graph_builder;
/* What the builder makes lives in the arena; ms_graph_close must be called, also when the
 * graph is not wanted any more: until then the builder holds memory of its own. */
ms_graph_builder *ms_graph_open(ms_arena *arena);
/* An index for a cost, a label, a link or a pool; equal costs and labels get the same
 * one. `uses` are cost->num_uses; cost->first_use is not read, and uses of no bytes are
 * left out. Durations are finite and >= 0, latency_s within duration_s, sm_frac within 0
 * and 1. */
int ms_graph_cost(ms_graph_builder *b, const ms_task_cost *cost, const ms_link_use *uses);
int ms_graph_label(ms_graph_builder *b, const char *text);
int ms_graph_link(ms_graph_builder *b, const char *name, double bytes_per_s);
int ms_graph_pool(ms_graph_builder *b, int sms);
/* Streams are numbered by the builder's user: the last task of each is remembered here.
 * -1: no stream. Returns the task's index. */
int ms_graph_add(ms_graph_builder *b, int stream, int cost, ms_task_tag tag);
/* The task last added waits for `other`, an earlier one, too; 0: nothing. */
void ms_graph_wait(ms_graph_builder *b, int other);
/* Last task of a stream; 0: none. */
int ms_graph_last(const ms_graph_builder *b, int stream);
const ms_graph *ms_graph_close(ms_graph_builder *b);

#endif
