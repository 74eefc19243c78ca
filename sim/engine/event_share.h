/* The discrete-event engine with sharing: running tasks use links and pools of SMs, which
 * determine their rates. */
#ifndef MS_SIM_ENGINE_EVENT_SHARE_H
#define MS_SIM_ENGINE_EVENT_SHARE_H

#include "sim/engine/event_priv.h"

/* A running task that uses links or SMs. `rate` is relative to full speed (1). Remaining
 * work, in seconds at full speed, is (end_s - now) x rate: a task that is never slowed
 * ends exactly its duration after its start. */
typedef struct running {
    /* number of the running task; in an unused entry: index of the next unused entry */
    int task;
    const ms_task_cost *cost;
    double end_s, rate;
    double sm_rate;     /* the task's rate if limited by free SMs only */
    unsigned sequence;  /* sequence number of the task's event in the queue; 0: none */
    bool waits_latency; /* the task's next event is the end of its latency */
    bool on_links, in_pool;
    bool is_changed; /* the task is listed in sharing.changed */
    /* sharing.visit in the last rate computation that included the task */
    unsigned visit;
    int flow; /* the task's index among the flows of that rate computation */
    int next_in_pool, previous_in_pool; /* neighbours among the pool's tasks; -1: none */
} running;

/* Demand on a link (`load`) is an integer in units of 2^-40 of the link's capacity: sums
 * are exact in any order. A link is contested if its tasks, at the rates that free SMs
 * allow, demand more than 1 + 1.2e-10 of its capacity, too much for a rounding error. */
#define FULL_LOAD      ((long)1 << 40)
#define CONTESTED_LOAD (FULL_LOAD + 128)

typedef struct shared_link {
    long load;
    /* first use in the link's list of uses, as index of sharing.next_use; -1: none */
    int first_use;
    bool was_contested; /* the link was contested when rates were last computed */
    bool is_dirty, is_touched;
    int local; /* index of the link in the current rate computation; -1: not in it */
    /* use of the link, and since when; its total until then */
    double used_frac, since_s;
    ms_link_total total;
} shared_link;

typedef struct shared_pool {
    int held_sms;
    /* first of the pool's tasks that need SMs, as index of places; -1: none */
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
    ms_arena *scratch; /* memory until the end of the simulation */
    ms_arena *solving; /* memory for one computation of rates */
    event_queue queue;
    /* number of events in the queue that are obsolete, since a task's rate has changed */
    int num_stale;
    waiting waiting;
    double now_s;
    int max_uses;
    int places_capacity;
    int free_place; /* first unused entry of `places`; -1: none */
    running *places;
    /* next and previous use in a link's list, -1: none; use u of the task places[p] has
     * number p x max_uses + u */
    int *next_use, *previous_use;
    long *full_load; /* (num_uses): demand of a use at full speed, as shared_link.load */
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
    return s->places[place].cost;
}

/* Notes that the running task places[place] needs a new event in the queue. */
void sharing_mark_changed(sharing *s, int place);
/* Sets the rate of the running task places[place] from now on. */
void sharing_set_rate(sharing *s, int place, double rate);

/* ---- event_links.c ---- */

void sharing_make_loads(sharing *s);
void sharing_join_links(sharing *s, int place);
void sharing_leave_links(sharing *s, int place);
/* Sets the demand of the running task places[place] on its links to that at `sm_rate`.
 * Returns whether sharing_solve_links will set its rate; otherwise the caller must. */
bool sharing_change_demand(sharing *s, int place, double sm_rate);
/* Computes the rates of all tasks that changed links can affect, directly or through
 * other tasks and contested links. */
void sharing_solve_links(sharing *s);
/* Notes that a task's use of its links has changed, for totals and samples. */
void sharing_touch_links(sharing *s, int place);
/* Adds to totals, and to samples if wanted, of all links whose use the events of the
 * current instant have changed. */
void sharing_sample_links(sharing *s);
/* Totals of all links until now. */
const ms_link_total *sharing_total_links(sharing *s, ms_arena *arena);

#endif
