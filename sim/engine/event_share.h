/* The event engine with sharing: running tasks use links and pools of SMs, and have
 * rates. */
#ifndef MS_SIM_ENGINE_EVENT_SHARE_H
#define MS_SIM_ENGINE_EVENT_SHARE_H

#include "sim/engine/event_priv.h"

/* A running task that needs a shared resource. Its remaining work, in seconds at full
 * speed, is (end_s - now) x rate, so that a task which is never slowed ends exactly
 * its duration after its start. */
typedef struct running {
    /* the running task; for an unused place the index of the next unused place */
    int task;
    double end_s, rate;
    double sm_rate;     /* the task's rate if limited by free SMs only */
    unsigned sequence;  /* sequence number of the task's event in the queue; 0: none */
    bool waits_latency; /* the task's next event is the end of its latency */
    bool on_links, in_pool;
    bool is_changed; /* the task is listed in `changed` */
    unsigned visit;  /* number of the last collection of flows that included this task */
    int flow;        /* index of the task in that collection of flows */
    int next_in_pool, previous_in_pool; /* neighbours among the pool's tasks; -1: none */
} running;

/* Demand on a link is counted in integer units of 2^-40 of its capacity, so that sums
 * are exact in whatever order tasks start and end. A link is contested when its tasks,
 * at the rate that SMs allow, ask for more than its capacity by over 1.2e-10, which
 * rounding cannot explain. */
#define FULL_LOAD      ((long)1 << 40)
#define CONTESTED_LOAD (FULL_LOAD + 128)

typedef struct shared_link {
    long load;
    /* place x max_uses + index among the task's uses, for its first user; -1: none */
    int first_use;
    bool was_contested; /* the link was contested when rates were last solved */
    bool is_dirty, is_touched;
    int local; /* index of the link in the current collection; -1: not in it */
    double sampled_frac;
} shared_link;

typedef struct shared_pool {
    int held_sms;
    /* place of the first running task whose duration depends on SMs; -1: none */
    int first;
    bool is_dirty;
} shared_pool;

typedef struct int_list {
    int num, capacity;
    int *items;
} int_list;

typedef struct sharing {
    const ms_graph *graph;
    ms_event_options options;
    ms_event_result *out;
    ms_arena *scratch; /* arena that lasts until the end of the simulation */
    ms_arena *solving; /* arena for one solution of rates; empty in between */
    event_queue queue;
    /* events in the queue that are obsolete because their time has changed */
    int num_stale;
    waiting waiting;
    double now_s;
    int max_uses;
    int places_capacity;
    int free_place; /* index of the first unused place; -1: none is free */
    running *places;
    /* neighbours in the list of a link's users, by place x max_uses + index */
    int *next_use, *previous_use;
    shared_link *links;
    shared_pool *pools;
    int_list dirty_links, dirty_pools, changed, touched_links, solved_links,
        solved_places;
    unsigned visit;
    long samples_capacity;
    ms_link_sample *samples;
} sharing;

void int_list_add(ms_arena *arena, int_list *list, int item);

static inline const ms_task_cost *running_cost(const sharing *s, int place)
{
    return &s->graph->costs[s->graph->tasks[s->places[place].task].cost];
}

/* Marks that the task of this place needs a new event in the queue. */
void sharing_mark_changed(sharing *s, int place);
/* Sets the rate of the task of this place from now on. */
void sharing_set_rate(sharing *s, int place, double rate);

/* ---- event_links.c ---- */

void sharing_join_links(sharing *s, int place);
void sharing_leave_links(sharing *s, int place);
/* Changes a running task's demand on its links to what its SMs allow. Returns whether
 * solving the links will set its rate. */
bool sharing_change_demand(sharing *s, int place, double sm_rate);
/* Solves the rates of all tasks that share contested links, directly or through other
 * tasks, with a changed link. */
void sharing_solve_links(sharing *s);
/* Notes that the rate of a task on links has changed. */
void sharing_touch_links(sharing *s, int place);
/* Adds samples of all links whose use changed at the current instant, after its last
 * event. */
void sharing_sample_links(sharing *s);

#endif
