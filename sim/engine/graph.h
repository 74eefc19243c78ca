/* Folder sim/engine: engines that time task graphs; nothing of training.
 *
 * Task graphs, the input of the simulation engines: tasks with durations, resources and
 * dependencies. A task may be a whole action of a pipeline schedule or a single kernel.
 *
 * Tasks are numbered from 1, each after all tasks that it waits for; task 0 means "none"
 * and ends at time 0. A task waits for the previous task on its stream, for one other
 * task, and rarely for more. A collective among several simulated ranks is a join (a task
 * without stream or duration that waits for the dependencies of all members) followed by
 * one task for each member.
 *
 * Most tasks of a step repeat: a layer of the next micro-batch has the tasks of the one
 * before, with other numbers. A graph stores them once, in a pattern (ms_graph_repeat);
 * each repetition is a part that refers to it. Functions below read tasks by number. */
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

/* A task as a pattern stores it: `before`, `cross` and the entries of lists are references
 * to tasks, relative to the part (ms_graph_refer). */
typedef struct ms_stored_task {
    int before; /* the previous task on the same stream; 0: none */
    int cross;  /* another task that this task waits for; 0: none */
    /* 0: none; else graph->lists[more] is the number of further tasks that this task
     * waits for, and references to them follow in graph->lists */
    int more;
    int cost; /* index in graph->costs */
} ms_stored_task;

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
    int microbatch;       /* micro-batch; -1: none; read by ms_graph_microbatch */
    int label;            /* index in graph->labels */
    int work; /* index in a list of the caller's; 0: none. The engine does not read it. */
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

/* Consecutive tasks of a graph: a repetition of a pattern, or tasks added one by one. */
typedef struct ms_graph_part {
    int first;      /* number of its first task */
    int base;       /* number added to positive references */
    int microbatch; /* micro-batch of its tasks that have one; -1: that of their tags */
    const ms_stored_task *tasks;
    const ms_task_tag *tags;
    const int *ports; /* earlier tasks, to which references of 0 (none) and below refer */
} ms_graph_part;

/* Tasks between two entries of ms_graph.part_at, as a power of two. */
#define MS_PART_SHIFT 10

typedef struct ms_graph {
    int num_tasks;
    int num_parts;
    const ms_graph_part *parts; /* (num_parts + 1): the last begins after all tasks */
    const int *part_at;         /* part_at[i] is the part of task i << MS_PART_SHIFT */
    bool own_costs;             /* task i has the cost costs[i] */
    int num_lists;              /* length of the array `lists`; lists[0] is unused */
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

/* ---- tasks by number ---- */

static inline const ms_graph_part *ms_graph_part_of(const ms_graph *graph, int task)
{
    const ms_graph_part *part = &graph->parts[graph->part_at[task >> MS_PART_SHIFT]];
    while (task >= part[1].first)
        part++;
    return part;
}

/* The number of the task to which a task of the part refers; 0: none. */
static inline int ms_graph_refer(const ms_graph_part *part, int reference)
{
    return reference > 0 ? part->base + reference : part->ports[-reference];
}

/* A task of the graph: the tasks that it waits for, by number (0: none), and its cost. */
typedef struct ms_task {
    int before, cross, cost;
    int num_more; /* number of further tasks that it waits for (ms_task_more) */
    const int *more;
    const ms_graph_part *part;
} ms_task;

static inline ms_task ms_graph_task_of(const ms_graph *graph, const ms_graph_part *part,
                                       int task)
{
    const ms_stored_task *stored = &part->tasks[task - part->first];
    const int *list = &graph->lists[stored->more];
    return (ms_task){.before = ms_graph_refer(part, stored->before),
                     .cross = ms_graph_refer(part, stored->cross),
                     .cost = graph->own_costs ? task : stored->cost,
                     .num_more = list[0],
                     .more = list + 1,
                     .part = part};
}

static inline ms_task ms_graph_task(const ms_graph *graph, int task)
{
    return ms_graph_task_of(graph, ms_graph_part_of(graph, task), task);
}

static inline int ms_task_more(const ms_task *task, int index)
{
    return ms_graph_refer(task->part, task->more[index]);
}

static inline const ms_task_tag *ms_graph_tag(const ms_graph *graph, int task)
{
    const ms_graph_part *part = ms_graph_part_of(graph, task);
    return &part->tags[task - part->first];
}

static inline int ms_graph_microbatch(const ms_graph *graph, int task)
{
    int own = ms_graph_tag(graph, task)->microbatch;
    int of_part = ms_graph_part_of(graph, task)->microbatch;
    return own < 0 || of_part < 0 ? own : of_part;
}

static inline const ms_task_cost *ms_graph_cost_of(const ms_graph *graph, int task)
{
    return &graph->costs[ms_graph_task(graph, task).cost];
}

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
/* Tasks for which those of a pattern may wait, and what they leave to later ones. */
typedef struct ms_graph_state {
    int num;
    int *tasks; /* (num): tasks by number, 0: none */
    /* (num_streams): streams whose last tasks are part of the state, too */
    int num_streams;
    const int *streams;
} ms_graph_state;

/* Begins tasks that are determined by `key` and by which entries of the state are equal or
 * 0: they are on streams of the state or on none, and wait for each other and for tasks of
 * the state. If the same have been added before, adds them again with the given
 * micro-batch, sets the state to what they leave, and returns true. Otherwise returns
 * false: the caller adds them, and calls ms_graph_end_pattern with the state after them
 * (no effect unless tasks were begun). */
bool ms_graph_repeat(ms_graph_builder *b, const void *key, size_t key_size,
                     int microbatch, ms_graph_state *state);
void ms_graph_end_pattern(ms_graph_builder *b, const ms_graph_state *state);

/* The task added last to a stream; 0: none. */
int ms_graph_last(const ms_graph_builder *b, int stream);
const ms_graph *ms_graph_close(ms_graph_builder *b);

#endif
