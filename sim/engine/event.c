#include "sim/engine/event.h"

#include "sim/engine/event_priv.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

/* ---- the queue ---- */

static bool is_before(const list_key *a, const list_key *b)
{
    /* time and sequence number, in one comparison of 128 bits */
    __extension__ typedef unsigned __int128 key;
    return ((key)a->time_bits << 64 | a->order) < ((key)b->time_bits << 64 | b->order);
}

/* Index of the earliest of a heap node's up to four children, which start at `child`. */
static int first_child(const list_key *heap, int child, int num)
{
    if (child + 4 <= num) { /* four children: compared without unpredictable branches */
        int a = child + is_before(&heap[child + 1], &heap[child]);
        int b = child + 2 + is_before(&heap[child + 3], &heap[child + 2]);
        return is_before(&heap[b], &heap[a]) ? b : a;
    }
    int first = child;
    for (int i = child + 1; i < num; i++)
        first = is_before(&heap[i], &heap[first]) ? i : first;
    return first;
}

/* Puts the list `moved` into the heap at index `at` or below. */
static void sift(event_queue *q, int at, list_key moved)
{
    list_key *heap = q->heap;
    while (4 * at + 1 < q->num) {
        int child = first_child(heap, 4 * at + 1, q->num);
        if (!is_before(&heap[child], &moved))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

/* The key of a list that is the last one begun. */
static list_key key_of(event_queue *q, int list)
{
    return (list_key){q->lists[list].time_bits,
                      (uint64_t)++q->list_sequence << 32 | (uint32_t)list};
}

int event_queue_begin_list(event_queue *q, uint64_t time_bits)
{
    if (q->num > 0 && q->lists[(uint32_t)q->heap[0].order].first == 0) {
        /* the first list is at its end: most often the next one begun takes its place */
        int ended = (int)(uint32_t)q->heap[0].order;
        q->lists[ended] = (event_list){.time_bits = time_bits};
        sift(q, 0, key_of(q, ended));
        return ended;
    }
    int list = q->unused_list;
    if (list != 0) {
        q->unused_list = q->lists[list].next_unused;
    } else {
        list = q->num_lists == 0 ? 1 : q->num_lists;
        MS_MAKE_ROOM(q->arena, q->lists, q->num_lists, q->lists_capacity, 256);
        q->num_lists = list + 1;
    }
    q->lists[list] = (event_list){.time_bits = time_bits};
    MS_MAKE_ROOM(q->arena, q->heap, q->num, q->capacity, 256);
    list_key added = key_of(q, list), *heap = q->heap;
    int at = q->num++;
    /* at equal times the list begun first stays in front */
    for (int up; at > 0 && time_bits < heap[up = (at - 1) / 4].time_bits; at = up)
        heap[at] = heap[up];
    heap[at] = added;
    return list;
}

void event_queue_grow(event_queue *q)
{
    assert(q->events_capacity <= INT_MAX / 8);
    int have = q->events_capacity;
    MS_MAKE_ROOM(q->arena, q->events, have, q->events_capacity, 256);
    for (int i = q->events_capacity - 1; i >= have && i > 0; i--) {
        q->events[i].next = q->unused_event;
        q->unused_event = i;
    }
}

void event_queue_drop_list(event_queue *q, int at)
{
    int list = (int)(uint32_t)q->heap[at].order;
    q->lists[list] = (event_list){.time_bits = NO_TIME, .next_unused = q->unused_list};
    q->unused_list = list;
    list_key moved = q->heap[--q->num];
    if (at == 0 && q->num > 0)
        sift(q, 0, moved);
    else if (at < q->num)
        q->heap[at] = moved;
}

void event_queue_rebuild(event_queue *q)
{
    for (int i = (q->num - 2) / 4; i >= 0 && q->num > 1; i--)
        sift(q, i, q->heap[i]);
}

/* ---- dependencies ---- */

int waiting_for_more(waiting *w, int task, const ms_task *t)
{
    int done = (int)w->end_s[task];
    while (done < t->num_more && w->first[ms_task_more(t, done)] == TASK_DONE)
        done++;
    w->end_s[task] = done;
    return done < t->num_more ? ms_task_more(t, done) : 0;
}

void waiting_init(waiting *w, const ms_graph *graph, double *end_s, ms_arena *arena)
{
    w->graph = graph;
    w->first = MS_NEW_ARRAY(arena, 1 + (size_t)graph->num_tasks, int);
    w->next = ms_arena_take(arena, (1 + (size_t)graph->num_tasks) * sizeof *w->next);
    w->end_s = end_s;
    w->first[0] = TASK_DONE;
    int ready = 0;
    /* last task first, so that each waiting list ends up in the order of tasks */
    const ms_graph_part *part = graph->parts + graph->num_parts;
    for (int i = graph->num_tasks; i > 0; i--) {
        while (i < part->first)
            part--;
        ms_task t = ms_graph_task_of(graph, part, i);
        end_s[i] = 0.0;
        int other = waiting_for(w, i, &t);
        if (other != 0) {
            waiting_add(w, i, other);
        } else {
            w->next[i] = ready;
            ready = i;
        }
    }
    w->first[0] = ready;
}

/* ---- events without sharing ---- */

/* Starts, without sharing, a task that waits for none: it ends after its duration. */
static inline void start_alone(event_queue *queue, int task, double duration_s,
                               double now_s, ms_event_result *out)
{
    if (out->start_s != NULL)
        out->start_s[task] = now_s;
    event_queue_add(queue, now_s + duration_s, task);
}

static void run_alone(const ms_graph *graph, ms_event_result *out)
{
    ms_arena *scratch = ms_arena_open();
    waiting w;
    waiting_init(&w, graph, out->end_s, scratch);
    event_queue queue = {.arena = scratch};
    double now_s = 0.0;
    for (int task = 0;;) {
        for (int waiter = waiting_end(&w, task), next; waiter > 0; waiter = next) {
            next = w.next[waiter];
            ms_task t = ms_graph_task(graph, waiter);
            int other = waiting_for(&w, waiter, &t);
            if (other == 0)
                start_alone(&queue, waiter, graph->costs[t.cost].duration_s, now_s, out);
            else
                waiting_add(&w, waiter, other);
        }
        if (!event_queue_next(&queue, &now_s))
            break;
        task = event_queue_take(&queue).what;
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
    out->links = NULL;
    if (shares_anything(graph, options))
        event_run_shared(graph, options, arena, out);
    else
        run_alone(graph, out);
}
