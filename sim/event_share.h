/* The event engine with sharing: tasks that run hold places on links and in pools of SMs,
 * and have rates. */
#ifndef MS_SIM_EVENT_SHARE_H
#define MS_SIM_EVENT_SHARE_H

#include "sim/event_priv.h"

/* A task that runs and needs something that is shared. Its work is counted in seconds at
 * full speed; what is left of it is (end_s - now) x rate, so that a task which is never
 * slowed ends exactly its duration after its start. */
typedef struct running {
    int task; /* of an unused place: the next unused one */
    double end_s, rate;
    double sm_rate;     /* what SMs allow */
    unsigned sequence;  /* of its event in the queue; 0: none */
    bool waits_latency; /* its event is the end of its latency */
    bool on_links, in_pool;
    bool is_changed;                    /* in `changed` */
    unsigned visit;                     /* last collection that it was part of */
    int flow;                           /* its index there */
    int next_in_pool, previous_in_pool; /* -1: none */
} running;

/* Demand is counted in whole parts of the capacity, so that sums are exact in whatever
 * order tasks come and go. A link is contested when its tasks at the speed that SMs allow
 * ask for more than it has, beyond what rounding explains: 1.2e-10 of the capacity. */
#define FULL_LOAD      ((long)1 << 40)
#define CONTESTED_LOAD (FULL_LOAD + 128)

typedef struct shared_link {
    long load;
    int first_use;      /* place x max_uses + index among its uses; -1: none */
    bool was_contested; /* when rates were last found */
    bool is_dirty, is_touched;
    int local; /* index in the present collection; -1: none */
    double sampled_frac;
} shared_link;

typedef struct shared_pool {
    int held_sms;
    int first; /* running task whose time depends on SMs; -1: none */
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
    ms_arena *scratch; /* what stays during the run */
    ms_arena *solving; /* of one solution; empty in between */
    event_queue queue;
    int num_stale; /* events in the queue whose time has changed */
    waiting waiting;
    double now_s;
    int max_uses;
    int places_capacity, free_place; /* -1: none is free */
    running *places;
    int *next_use, *previous_use; /* by place x max_uses + index: uses of one link */
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

/* A place's event must be queued again. */
void sharing_mark_changed(sharing *s, int place);
/* From now on the task of this place runs at `rate`. */
void sharing_set_rate(sharing *s, int place, double rate);

/* ---- event_links.c ---- */

void sharing_join_links(sharing *s, int place);
void sharing_leave_links(sharing *s, int place);
/* A running task's demand follows what its SMs allow. Returns whether it will get its
 * rate from its links. */
bool sharing_change_demand(sharing *s, int place, double sm_rate);
/* New rates for the tasks that share contested links, directly or through others, with a
 * link that has changed. */
void sharing_solve_links(sharing *s);
/* The rate of a task on links has changed. */
void sharing_touch_links(sharing *s, int place);
/* Use of the links that were touched, at an instant that is over. */
void sharing_sample_links(sharing *s);

#endif
