/* Shared by the two files of the event engine: the queue of events, and who waits for whom. */
#ifndef MS_SIM_EVENT_PRIV_H
#define MS_SIM_EVENT_PRIV_H

#include "sim/event.h"

/* ---- the queue: a heap of four children a node, ordered by time and by the sequence in which events were added ---- */

typedef struct queued_event {
    double time_s;
    unsigned sequence;
    int what; /* the task that ends; with sharing see event_share.c */
} queued_event;

typedef struct event_queue {
    ms_arena *arena; /* of its own use only */
    int num, capacity;
    queued_event *events; /* the first is the next */
    unsigned sequence;    /* of the event added last */
} event_queue;

static inline bool event_is_before(queued_event a, queued_event b)
{
    return a.time_s < b.time_s || (a.time_s <= b.time_s && a.sequence < b.sequence);
}

void event_queue_grow(event_queue *q);
/* Restores the order after events were taken out of the middle. */
void event_queue_rebuild(event_queue *q);

/* Returns the sequence number. */
static inline unsigned event_queue_add(event_queue *q, double time_s, int what)
{
    if (q->num == q->capacity)
        event_queue_grow(q);
    queued_event added = {time_s, ++q->sequence, what};
    queued_event *events = q->events;
    int at = q->num++;
    /* an equal time leaves the older event in front */
    for (int up; at > 0 && time_s < events[up = (at - 1) / 4].time_s; at = up)
        events[at] = events[up];
    events[at] = added;
    return added.sequence;
}

/* Puts `moved` where it belongs, from `at` downwards. */
static inline void event_queue_sift(event_queue *q, int at, queued_event moved)
{
    queued_event *events = q->events;
    for (int child; (child = 4 * at + 1) < q->num; at = child) {
        int last = child + 3 < q->num ? child + 3 : q->num - 1;
        for (int i = child + 1; i <= last; i++)
            if (event_is_before(events[i], events[child]))
                child = i;
        if (!event_is_before(events[child], moved))
            break;
        events[at] = events[child];
    }
    events[at] = moved;
}

static inline queued_event event_queue_take(event_queue *q)
{
    queued_event first = q->events[0];
    if (--q->num > 0)
        event_queue_sift(q, 0, q->events[q->num]);
    return first;
}

/* ---- dependencies: a task waits in the list of one unfinished task at a time, and moves on to the next when that ends ---- */

#define TASK_DONE (-1)

typedef struct waiting {
    const ms_graph *graph;
    int *
        first; /* (1 + num_tasks): the first task that waits for this one; 0: none; TASK_DONE */
    int *next; /* (1 + num_tasks): the next that waits for the same */
    int *
        done_of_list; /* (num_lists): by the start of a list, how many of its tasks are known to be done */
} waiting;

/* Lets all tasks wait. `first` to start are linked as those that waited for task 0. */
void waiting_init(waiting *w, const ms_graph *graph, ms_arena *arena);
int waiting_in_list(waiting *w, int list);

/* A task that is not done and that this one waits for; 0: it can start. */
static inline int waiting_for(waiting *w, int task)
{
    const ms_task *t = &w->graph->tasks[task];
    /* the later one likely ends later: fewer moves */
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

/* The task is done: the first of the tasks that waited for it. */
static inline int waiting_end(waiting *w, int task)
{
    int waiter = w->first[task];
    w->first[task] = TASK_DONE;
    return waiter;
}

void event_run_shared(const ms_graph *graph, const ms_event_options *options,
                      ms_arena *arena, ms_event_result *out);

#endif
