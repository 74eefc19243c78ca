#include "sim/engine/event.h"

#include "sim/engine/event_priv.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

void event_queue_grow(event_queue *q)
{
    assert(q->capacity <= INT_MAX / 8);
    MS_MAKE_ROOM(q->arena, q->events, q->num, q->capacity, 256);
}

void event_queue_rebuild(event_queue *q)
{
    for (int i = (q->num - 2) / 4; i >= 0 && q->num > 1; i--)
        event_queue_sift(q, i, q->events[i]);
}

int waiting_in_list(waiting *w, int list)
{
    const int *items = &w->graph->lists[list];
    int *done = &w->done_of_list[list];
    while (*done < items[0] && w->first[items[1 + *done]] == TASK_DONE)
        ++*done;
    return *done < items[0] ? items[1 + *done] : 0;
}

void waiting_init(waiting *w, const ms_graph *graph, ms_arena *arena)
{
    w->graph = graph;
    w->first = MS_NEW_ARRAY(arena, 1 + (size_t)graph->num_tasks, int);
    w->next = MS_NEW_ARRAY(arena, 1 + (size_t)graph->num_tasks, int);
    w->done_of_list = MS_NEW_ARRAY(arena, graph->num_lists, int);
    w->first[0] = TASK_DONE;
    int ready = 0;
    /* last task first, so that each waiting list ends up in the order of tasks */
    for (int i = graph->num_tasks; i > 0; i--) {
        int other = waiting_for(w, i);
        if (other != 0) {
            waiting_add(w, i, other);
        } else {
            w->next[i] = ready;
            ready = i;
        }
    }
    w->first[0] = ready;
}

/* Starts, without sharing, a task that waits for none: it ends after its duration. */
static inline void start_alone(const ms_graph *graph, event_queue *queue, int task,
                               double now_s, ms_event_result *out)
{
    if (out->start_s != NULL)
        out->start_s[task] = now_s;
    event_queue_add(queue, now_s + graph->costs[graph->tasks[task].cost].duration_s,
                    task);
}

static void run_alone(const ms_graph *graph, ms_event_result *out)
{
    ms_arena *scratch = ms_arena_open();
    waiting w;
    waiting_init(&w, graph, scratch);
    event_queue queue = {.arena = scratch};
    double now_s = 0.0;
    for (int task = 0;;) {
        for (int waiter = waiting_end(&w, task), next; waiter > 0; waiter = next) {
            next = w.next[waiter];
            int other = waiting_for(&w, waiter);
            if (other == 0)
                start_alone(graph, &queue, waiter, now_s, out);
            else
                waiting_add(&w, waiter, other);
        }
        if (event_queue_next(&queue) == NULL)
            break;
        queued_event event = event_queue_take(&queue);
        now_s = event_time_s(event);
        task = event_what(event);
        out->end_s[task] = now_s;
    }
    out->makespan_s = now_s;
    ms_arena_close(scratch);
}

static bool shares_anything(const ms_graph *graph, const ms_event_options *options)
{
    return (options->share_links && graph->num_uses > 0) ||
           (options->share_sms && graph->num_pools > 0);
}

void ms_event_run(const ms_graph *graph, const ms_event_options *options, ms_arena *arena,
                  ms_event_result *out)
{
    out->end_s[0] = 0.0;
    if (out->start_s != NULL)
        out->start_s[0] = 0.0;
    out->num_events = 2 * (long)graph->num_tasks;
    out->num_rate_changes = 0;
    out->num_samples = 0;
    out->samples = NULL;
    if (shares_anything(graph, options))
        event_run_shared(graph, options, arena, out);
    else
        run_alone(graph, out);
}
