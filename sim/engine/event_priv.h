/* Discrete-event engine: the queue of events, and the tasks that wait for others. */
#ifndef MS_SIM_ENGINE_EVENT_PRIV_H
#define MS_SIM_ENGINE_EVENT_PRIV_H

#include "sim/engine/event.h"

#include <stdint.h>
#include <string.h>

/* ---- the queue ---- */

/* Events of equal times are in one list, in the order in which they were added: ranks that
 * do the same at the same time are many. Lists are in a heap with four children per node,
 * ordered by time, and at equal times by the sequence in which lists were begun. */

typedef struct queued_event {
    /* the task that ends; with sharing an index in sharing.places, or -task for a task that
     * needs no shared resource */
    int what;
    unsigned sequence; /* number of the event in the sequence of added events */
    int next;          /* the next event of the list, or of unused events; 0: none */
} queued_event;

#define NO_TIME UINT64_MAX

typedef struct event_list {
    uint64_t time_bits; /* time as in list_key; NO_TIME: the list is unused */
    int first, last;    /* events; first 0: the list is empty, `last` has no meaning */
    int next_unused;
} event_list;

/* Place of a list in the heap. time_bits: its time (>= 0) as an integer of equal order,
 * compared faster. */
typedef struct list_key {
    uint64_t time_bits;
    /* upper 32 bits: number of the list in the sequence of lists; lower 32 bits: list */
    uint64_t order;
} list_key;

#define NUM_RECENT_LISTS 256

typedef struct event_queue {
    ms_arena *arena;
    int num, capacity;
    list_key *heap; /* (num) */
    int num_lists, lists_capacity, unused_list;
    event_list *lists; /* (num_lists): index 0 is unused */
    int num_events, events_capacity, unused_event;
    queued_event *events; /* index 0 is unused */
    /* number of the event, and of the list, added last */
    uint32_t sequence, list_sequence;
    int recent[NUM_RECENT_LISTS]; /* list begun last, for each hash of a time */
} event_queue;

/* Begins an empty list of events at a time, and returns it. */
int event_queue_begin_list(event_queue *q, uint64_t time_bits);
/* Makes room for more events; sets q->unused_event. */
void event_queue_grow(event_queue *q);
/* Removes the list at index `at` of the heap. The order of the heap is restored if it was
 * the first; otherwise event_queue_rebuild must follow. */
void event_queue_drop_list(event_queue *q, int at);
void event_queue_rebuild(event_queue *q);

static inline double queue_time_s(uint64_t time_bits)
{
    double time_s;
    memcpy(&time_s, &time_bits, sizeof time_s);
    return time_s;
}

/* Adds an event to the queue and returns its sequence number. */
static inline uint32_t event_queue_add(event_queue *q, double time_s, int what)
{
    uint64_t time_bits;
    memcpy(&time_bits, &time_s, sizeof time_bits);
    int *recent = &q->recent[time_bits * UINT64_C(0x9E3779B97F4A7C15) >> 56];
    if (*recent == 0 || q->lists[*recent].time_bits != time_bits)
        *recent = event_queue_begin_list(q, time_bits);
    if (q->unused_event == 0)
        event_queue_grow(q);
    event_list *list = &q->lists[*recent];
    int added = q->unused_event;
    queued_event *event = &q->events[added];
    q->unused_event = event->next;
    *event = (queued_event){what, ++q->sequence, 0};
    if (list->first == 0)
        list->first = added;
    else
        q->events[list->last].next = added;
    list->last = added;
    q->num_events++;
    return q->sequence;
}

/* Finds the earliest event in the queue: sets its time and returns true; false: the queue
 * is empty. */
static inline bool event_queue_next(event_queue *q, double *time_s)
{
    while (q->num > 0 && q->lists[(uint32_t)q->heap[0].order].first == 0)
        event_queue_drop_list(q, 0);
    if (q->num > 0)
        *time_s = queue_time_s(q->heap[0].time_bits);
    return q->num > 0;
}

/* Removes and returns the event that the last call of event_queue_next found. */
static inline queued_event event_queue_take(event_queue *q)
{
    event_list *list = &q->lists[(uint32_t)q->heap[0].order];
    int taken = list->first;
    queued_event event = q->events[taken];
    list->first = event.next;
    q->events[taken].next = q->unused_event;
    q->unused_event = taken;
    q->num_events--;
    return event;
}

/* ---- dependencies ---- */

/* A task that waits for several others is in the waiting list of one of them, and moves
 * to the list of another when that one ends. */

#define TASK_DONE (-1)

typedef struct waiting {
    const ms_graph *graph;
    /* (1 + num_tasks): first task of each task's waiting list; 0: none; TASK_DONE: the
     * task that they waited for has ended */
    int *first;
    int *next; /* (1 + num_tasks): the next task in the same waiting list */
    /* (1 + num_tasks): the ends of tasks; before its end, the number of the further tasks
     * that a task waits for (ms_task_more) that were found done so far */
    double *end_s;
} waiting;

/* Puts every task into the waiting list of a task that it depends on; tasks without
 * dependencies into that of task 0. */
void waiting_init(waiting *w, const ms_graph *graph, double *end_s, ms_arena *arena);
int waiting_for_more(waiting *w, int task, const ms_task *t);

/* A task, not yet done, that `task` waits for; 0: `task` can start. */
static inline int waiting_for(waiting *w, int task, const ms_task *t)
{
    /* the later task likely ends later, which saves moves between waiting lists */
    int later = t->before > t->cross ? t->before : t->cross;
    if (w->first[later] != TASK_DONE)
        return later;
    int earlier = t->before > t->cross ? t->cross : t->before;
    if (w->first[earlier] != TASK_DONE)
        return earlier;
    return t->num_more == 0 ? 0 : waiting_for_more(w, task, t);
}

static inline void waiting_add(waiting *w, int task, int other)
{
    w->next[task] = w->first[other];
    w->first[other] = task;
}

/* Marks `task` as done; returns the first task of its waiting list, 0: none. */
static inline int waiting_end(waiting *w, int task)
{
    int waiter = w->first[task];
    w->first[task] = TASK_DONE;
    return waiter;
}

void event_run_shared(const ms_graph *graph, const ms_event_options *options,
                      ms_arena *arena, ms_event_result *out);

#endif
