/* Folder sim/engine: engines that time task graphs; nothing of training.
 *
 * Task graphs, the input of the simulation engines: tasks with durations, resources and
 * dependencies. A task may be a whole action of a pipeline schedule or a single kernel.
 *
 * Tasks are numbered from 1, each after all tasks that it waits for; task 0 means "none"
 * and ends at time 0. A task waits for the previous task on its stream, for one other
 * task, and rarely for more. A collective among several simulated ranks is a join (a task
 * without stream or duration that waits for the dependencies of all members) followed by
 * one task for each member. */
#ifndef MS_SIM_ENGINE_GRAPH_H
#define MS_SIM_ENGINE_GRAPH_H

#include "base/arena.h"

#include <stdbool.h>

typedef enum ms_engine {
    /* longest path through the graph: tasks share nothing; overlapped kernels are slowed
     * by the stack's interference fraction */
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
extern const char *const ms_stream_names[]; /* names of streams, then NULL */

typedef struct ms_task {
    int before; /* the previous task on the same stream; 0: none */
    int cross;  /* another task that this task waits for; 0: none */
    /* 0: none; else graph->lists[more] is the number of further tasks that this task
     * waits for, and their task numbers follow in graph->lists */
    int more;
    int cost; /* index in graph->costs */
} ms_task;

/* Duration and resources of a task. Tasks with equal costs share one entry. */
typedef struct ms_task_cost {
    double duration_s;       /* seconds at full speed, when nothing is shared */
    double latency_s;        /* first part of duration_s, in which no byte moves */
    int first_use, num_uses; /* range of graph->uses: links used after latency_s */
    int pool;                /* index in graph->pool_sms: the device's SMs; -1: none */
    int held_sms; /* SMs that a communication kernel takes from the pool while it runs */
    /* Tiles of a GEMM, which takes whole waves over the free SMs; 0: other kernels */
    double tiles;
    /* For kernels without `tiles`: share (0 to 1) of duration_s that is inversely
     * proportional to the number of free SMs. */
    double sm_frac;
} ms_task_cost;

/* Bandwidth of a link that a task takes at full speed. */
typedef struct ms_link_use {
    int link;
    double bytes_per_s;
} ms_link_use;

/* Description of a task, for output. */
typedef struct ms_task_tag {
    int actor;            /* simulated rank, numbered by the caller; -1: a join */
    short stage;          /* pipeline stage; -1: none */
    unsigned char stream; /* ms_stream */
    unsigned char kind;   /* ms_task_kind */
    int microbatch;       /* micro-batch; -1: none */
    int label;            /* index in graph->labels */
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
    MS_TASK_JOIN, /* waits for tasks of several ranks; takes no time */
    MS_NUM_TASK_KINDS
} ms_task_kind;
extern const char *const ms_task_kind_names[];

typedef struct ms_graph {
    int num_tasks;
    ms_task *tasks;    /* (1 + num_tasks): by task number */
    ms_task_tag *tags; /* (1 + num_tasks): by task number, for output */
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

/* Replays the graph: a task starts at the latest end of the tasks that it waits for, and
 * takes its duration. Fills start_s (may be NULL) and end_s, both (1 + num_tasks), in
 * seconds. Returns the latest end. */
double ms_graph_replay(const ms_graph *graph, double *start_s, double *end_s);

/* ---- building ---- */

typedef struct ms_graph_builder ms_graph_builder;
/* Starts building a graph that will live in the arena. ms_graph_close must always be
 * called: it frees the builder's own memory. */
ms_graph_builder *ms_graph_open(ms_arena *arena);
/* Add a cost, a label, a link or a pool of SMs to the graph and return its index. A cost
 * or label equal to an earlier one gets the earlier index. `uses` has cost->num_uses
 * entries (those of 0 bytes/s are dropped); cost->first_use is not read. Durations must
 * be finite and >= 0, latency_s at most duration_s, sm_frac from 0 to 1. */
int ms_graph_cost(ms_graph_builder *b, const ms_task_cost *cost, const ms_link_use *uses);
int ms_graph_label(ms_graph_builder *b, const char *text);
int ms_graph_link(ms_graph_builder *b, const char *name, double bytes_per_s);
int ms_graph_pool(ms_graph_builder *b, int sms);
/* Adds a task after the last one of its stream and returns its index. Streams have
 * numbers chosen by the caller; -1: no stream. */
int ms_graph_add(ms_graph_builder *b, int stream, int cost, ms_task_tag tag);
/* Makes the task added last also wait for `other`, an earlier task; 0: no effect. */
void ms_graph_wait(ms_graph_builder *b, int other);
/* The task added last to a stream; 0: none. */
int ms_graph_last(const ms_graph_builder *b, int stream);
const ms_graph *ms_graph_close(ms_graph_builder *b);

#endif
