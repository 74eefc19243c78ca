/* Discrete-event engine: the queue of events, and the tasks that wait for others. */
#ifndef MS_SIM_ENGINE_EVENT_PRIV_H
#define MS_SIM_ENGINE_EVENT_PRIV_H

#include "sim/engine/event.h"

#include <stdint.h>
#include <string.h>

/* ---- the queue ---- */

/* The event queue is a heap with four children per node, ordered by time, and at equal
 * times by the sequence in which events were added. */

/* An event. time_bits: its time (>= 0) as an integer of equal order, compared faster. */
typedef struct queued_event {
    uint64_t time_bits;
    /* Upper 32 bits: number of the event in the sequence of added events. Lower 32 bits:
     * without sharing the task that ends; with sharing an index in sharing.places, or
     * -task for a task that needs no shared resource. */
    uint64_t order;
} queued_event;

typedef struct event_queue {
    ms_arena *arena; /* holds the array `events` and nothing else */
    int num, capacity;
    /* events[0] was taken and is empty; most often the next event added fills it */
    bool has_hole;
    queued_event *events;
    uint32_t sequence; /* sequence number of the event added last */
} event_queue;

void event_queue_grow(event_queue *q);
/* Restores the heap order of the queue after events were removed from its middle. */
void event_queue_rebuild(event_queue *q);

static inline double event_time_s(queued_event event)
{
    double time_s;
    memcpy(&time_s, &event.time_bits, sizeof time_s);
    return time_s;
}

static inline int event_what(queued_event event)
{
    return (int)(uint32_t)event.order;
}

static inline bool event_is_before(const queued_event *a, const queued_event *b)
{
    /* time and sequence number, in one comparison of 128 bits */
    __extension__ typedef unsigned __int128 key;
    return ((key)a->time_bits << 64 | a->order) < ((key)b->time_bits << 64 | b->order);
}

/* Index of the earliest of a heap node's up to four children, which start at `child`. */
static inline int event_first_child(const queued_event *events, int child, int num)
{
    if (child + 4 <= num) { /* four children: compared without unpredictable branches */
        int a = child + event_is_before(&events[child + 1], &events[child]);
        int b = child + 2 + event_is_before(&events[child + 3], &events[child + 2]);
        return event_is_before(&events[b], &events[a]) ? b : a;
    }
    int first = child;
    for (int i = child + 1; i < num; i++)
        first = event_is_before(&events[i], &events[first]) ? i : first;
    return first;
}

/* Puts event `moved` into the heap at index `at` or below. */
static inline void event_queue_sift(event_queue *q, int at, queued_event moved)
{
    queued_event *events = q->events;
    int num = q->num;
    while (4 * at + 1 < num) {
        int child = event_first_child(events, 4 * at + 1, num);
        if (!event_is_before(&events[child], &moved))
            break;
        events[at] = events[child];
        at = child;
    }
    events[at] = moved;
}

/* Adds an event to the queue and returns its sequence number. */
static inline uint32_t event_queue_add(event_queue *q, double time_s, int what)
{
    queued_event added = {.order = (uint64_t)++q->sequence << 32 | (uint32_t)what};
    memcpy(&added.time_bits, &time_s, sizeof time_s);
    if (q->has_hole) {
        q->has_hole = false;
        event_queue_sift(q, 0, added);
        return q->sequence;
    }
    if (q->num == q->capacity)
        event_queue_grow(q);
    queued_event *events = q->events;
    int at = q->num++;
    /* at equal times the event added first stays in front */
    for (int up; at > 0 && added.time_bits < events[up = (at - 1) / 4].time_bits; at = up)
        events[at] = events[up];
    events[at] = added;
    return q->sequence;
}

/* The earliest event in the queue, which stays there; NULL: the queue is empty. */
static inline const queued_event *event_queue_next(event_queue *q)
{
    if (q->has_hole) {
        q->has_hole = false;
        if (--q->num > 0)
            event_queue_sift(q, 0, q->events[q->num]);
    }
    return q->num > 0 ? q->events : NULL;
}

/* Removes and returns the event that the last call of event_queue_next returned. */
static inline queued_event event_queue_take(event_queue *q)
{
    q->has_hole = true;
    return q->events[0];
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
    /* (num_lists), used where a task's list starts in graph->lists (ms_task.more): number
     * of tasks in that list found done so far */
    int *done_of_list;
} waiting;

/* Puts every task into the waiting list of a task that it depends on; tasks without
 * dependencies into that of task 0. */
void waiting_init(waiting *w, const ms_graph *graph, ms_arena *arena);
int waiting_in_list(waiting *w, int list);

/* A task, not yet done, that `task` waits for; 0: `task` can start. */
static inline int waiting_for(waiting *w, int task)
{
    const ms_task *t = &w->graph->tasks[task];
    /* the later task likely ends later, which saves moves between waiting lists */
    int later = t->before > t->cross ? t->before : t->cross;
    if (w->first[later] != TASK_DONE)
        return later;
    int earlier = t->before > t->cross ? t->cross : t->before;
    if (w->first[earlier] != TASK_DONE)
        return earlier;
    return t->more == 0 ? 0 : waiting_in_list(w, t->more);
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
