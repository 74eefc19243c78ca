/* Shared by the two files of the event engine: the queue of events, and who waits for
 * whom. */
#ifndef MS_SIM_EVENT_PRIV_H
#define MS_SIM_EVENT_PRIV_H

#include "sim/event.h"

#include <stdint.h>
#include <string.h>

/* ---- the queue: a heap of four children a node, ordered by time and by the sequence in
 * which events were added ---- */

/* Times are >= 0, and bits of such numbers are in their order: whole numbers compare
 * faster. */
typedef struct queued_event {
    uint64_t time_bits;
    /* sequence in the upper half, what happens in the lower: the task that ends; with
     * sharing see event_share.c */
    uint64_t order;
} queued_event;

typedef struct event_queue {
    ms_arena *arena; /* of its own use only */
    int num, capacity;
    /* the first was taken and nothing has its place yet: likely the next event that is
     * added */
    bool has_hole;
    queued_event *events;
    uint32_t sequence; /* of the event added last */
} event_queue;

void event_queue_grow(event_queue *q);
/* Restores the order after events were taken out of the middle. */
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
    /* one comparison of 128 bits */
    __extension__ typedef unsigned __int128 key;
    return ((key)a->time_bits << 64 | a->order) < ((key)b->time_bits << 64 | b->order);
}

/* The first of the children from `child` on. */
static inline int event_first_child(const queued_event *events, int child, int num)
{
    if (child + 4 <= num) { /* without jumps that nothing predicts */
        int a = child + event_is_before(&events[child + 1], &events[child]);
        int b = child + 2 + event_is_before(&events[child + 3], &events[child + 2]);
        return event_is_before(&events[b], &events[a]) ? b : a;
    }
    int first = child;
    for (int i = child + 1; i < num; i++)
        first = event_is_before(&events[i], &events[first]) ? i : first;
    return first;
}

/* Puts `moved` where it belongs, from `at` downwards. */
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

/* Returns the sequence number. */
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
    /* an equal time leaves the older event in front */
    for (int up; at > 0 && added.time_bits < events[up = (at - 1) / 4].time_bits; at = up)
        events[at] = events[up];
    events[at] = added;
    return q->sequence;
}

/* The next event, NULL: there is none. */
static inline const queued_event *event_queue_next(event_queue *q)
{
    if (q->has_hole) {
        q->has_hole = false;
        if (--q->num > 0)
            event_queue_sift(q, 0, q->events[q->num]);
    }
    return q->num > 0 ? q->events : NULL;
}

/* Takes out what event_queue_next has just told. */
static inline queued_event event_queue_take(event_queue *q)
{
    q->has_hole = true;
    return q->events[0];
}

/* ---- dependencies: a task waits in the list of one unfinished task at a time, and moves
 * on to the next when that ends ---- */

#define TASK_DONE (-1)

typedef struct waiting {
    const ms_graph *graph;
    /* (1 + num_tasks): the first task that waits for this one; 0: none; TASK_DONE */
    int *first;
    int *next; /* (1 + num_tasks): the next that waits for the same */
    /* (num_lists): by the start of a list, how many of its tasks are known to be done */
    int *done_of_list;
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
