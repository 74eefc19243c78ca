/* Task graphs: the input of the simulation engines. A graph does not know whether its
 * tasks are actions of a schedule or nodes inside them.
 *
 * Tasks are numbered from 1, each after all tasks that it waits for; task 0 is no task
 * and ends at time 0. A task waits for the one before it on its stream, for one other,
 * and rarely for more. A collective of several ranks that are simulated apart is a join,
 * a task without stream or duration that waits for the dependencies of all members, and
 * after it one task per member. */
#ifndef MS_SIM_ENGINE_GRAPH_H
#define MS_SIM_ENGINE_GRAPH_H

#include "base/arena.h"

#include <stdbool.h>

typedef enum ms_engine {
    /* longest path: tasks share nothing; the stack's interference fraction slows
     * overlapped kernels */
    MS_ENGINE_REPLAY,
    MS_ENGINE_EVENT /* discrete-event simulation: tasks share links, SMs and HBM */
} ms_engine;
extern const char *const ms_engine_names[]; /* "replay", "event", then NULL */

typedef enum ms_stream {
    MS_STREAM_COMPUTE,
    MS_STREAM_TP,
    MS_STREAM_CP,
    MS_STREAM_EP,
    MS_STREAM_GATHER, /* gathers of parameters */
    MS_STREAM_REDUCE, /* reductions of gradients */
    MS_STREAM_SEND,   /* messages sent to other pipeline stages */
    MS_STREAM_RECEIVE,
    MS_NUM_STREAMS
} ms_stream;
extern const char *const ms_stream_names[]; /* names by ms_stream, then NULL */

typedef struct ms_task {
    int before; /* the previous task on the same stream; 0: none */
    int cross;  /* another task that this task waits for; 0: none */
    /* index into graph->lists: a count, then that many further tasks that this task waits
     * for; 0: none */
    int more;
    int cost; /* the task's cost, in graph->costs */
} ms_task;

/* Time and resources of a task. Tasks with equal costs share one entry. */
typedef struct ms_task_cost {
    double duration_s; /* seconds when nothing is shared */
    double latency_s;  /* part of duration_s, at the start, in which no byte moves */
    int first_use, num_uses; /* range of graph->uses: the links used after the latency */
    int pool;                /* index into graph->pool_sms: the task's SMs; -1: none */
    int held_sms; /* SMs that a communication kernel takes from the pool while it runs */
    /* Tiles of a GEMM, which takes whole waves over the free SMs. 0: not limited by
     * whole waves. */
    double tiles;
    /* Share of the duration that stretches with SMs / free SMs, for kernels without
     * known waves. */
    double sm_frac;
} ms_task_cost;

/* Bandwidth of a link that a task takes at full speed. */
typedef struct ms_link_use {
    int link;
    double bytes_per_s;
} ms_link_use;

/* Description of a task, for output. */
typedef struct ms_task_tag {
    int actor;   /* index of the simulated rank, defined by the builder; -1: a join */
    short stage; /* pipeline stage of the task; -1: none */
    unsigned char stream; /* stream of the task (ms_stream) */
    unsigned char kind;   /* kind of the task (ms_task_kind) */
    int microbatch;       /* micro-batch of the task; -1: none */
    int label;            /* the task's label, in graph->labels */
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
    MS_TASK_JOIN, /* a join: waits for several tasks and takes no time */
    MS_NUM_TASK_KINDS
} ms_task_kind;
extern const char *const ms_task_kind_names[];

typedef struct ms_graph {
    int num_tasks;
    ms_task *tasks;    /* (1 + num_tasks) */
    ms_task_tag *tags; /* (1 + num_tasks); NULL if the graph was built without tags */
    int num_lists;     /* length of the array `lists`; lists[0] is unused */
    const int *lists;
    int num_costs;
    const ms_task_cost *costs;
    int num_uses;
    const ms_link_use *uses;
    int num_links;
    /* (num_links): capacity; one link stands for a class of equally loaded links */
    const double *link_bytes_per_s;
    const char *const *link_names;
    int num_pools;
    const int *pool_sms;
    int num_labels;
    const char *const *labels;
} ms_graph;

/* Longest path: a task starts at the latest end of the tasks that it waits for, and
 * ends its duration later. Fills start_s (may be NULL) and end_s, both (1 +
 * num_tasks). Returns the latest end, in seconds. */
double ms_graph_replay(const ms_graph *graph, double *start_s, double *end_s);

/* ---- building ---- */

typedef struct ms_graph_builder ms_graph_builder;
/* Starts building a graph that will live in the arena. The builder holds memory of its
 * own until ms_graph_close, which must be called even if the graph is no longer
 * wanted. */
ms_graph_builder *ms_graph_open(ms_arena *arena);
/* Adds a cost, a label, a link or a pool and returns its index; equal costs and equal
 * labels get one index. `uses` has cost->num_uses entries; cost->first_use is not
 * read, and uses of 0 bytes/s are dropped. Durations are finite and >= 0, latency_s is
 * within duration_s, sm_frac within 0 and 1. */
int ms_graph_cost(ms_graph_builder *b, const ms_task_cost *cost, const ms_link_use *uses);
int ms_graph_label(ms_graph_builder *b, const char *text);
int ms_graph_link(ms_graph_builder *b, const char *name, double bytes_per_s);
int ms_graph_pool(ms_graph_builder *b, int sms);
/* Adds a task after the last one of its stream and returns its index. The caller
 * numbers the streams; -1: the task is on no stream. */
int ms_graph_add(ms_graph_builder *b, int stream, int cost, ms_task_tag tag);
/* Makes the task added last wait for `other`, an earlier task, too; 0: no effect. */
void ms_graph_wait(ms_graph_builder *b, int other);
/* The last task of a stream; 0: none. */
int ms_graph_last(const ms_graph_builder *b, int stream);
const ms_graph *ms_graph_close(ms_graph_builder *b);

#endif
