#include "sim/engine/event_share.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

/* ---- storage ---- */

static void *grown(ms_arena *arena, const void *items, size_t num, size_t capacity,
                   size_t item_size)
{
    void *larger = ms_arena_array(arena, capacity, item_size);
    if (num > 0)
        memcpy(larger, items, num * item_size);
    return larger;
}

void int_list_add(ms_arena *arena, int_list *list, int item)
{
    if (list->num == list->capacity) {
        list->capacity = list->capacity == 0 ? 64 : 2 * list->capacity;
        list->items = grown(arena, list->items, (size_t)list->num, (size_t)list->capacity,
                            sizeof *list->items);
    }
    list->items[list->num++] = item;
}

static void add_places(sharing *s)
{
    int have = s->places_capacity, want = have == 0 ? 64 : 2 * have;
    assert(want <= INT_MAX / (s->max_uses + 1));
    size_t uses = (size_t)have * (size_t)s->max_uses;
    size_t uses_wanted = (size_t)want * (size_t)s->max_uses;
    s->places = grown(s->scratch, s->places, (size_t)have, (size_t)want, sizeof(running));
    s->next_use = grown(s->scratch, s->next_use, uses, uses_wanted, sizeof(int));
    s->previous_use = grown(s->scratch, s->previous_use, uses, uses_wanted, sizeof(int));
    for (int i = want - 1; i >= have; i--) {
        s->places[i].task = s->free_place;
        s->free_place = i;
    }
    s->places_capacity = want;
}

static int take_place(sharing *s, int task, const ms_task_cost *cost)
{
    if (s->free_place < 0)
        add_places(s);
    int place = s->free_place;
    s->free_place = s->places[place].task;
    s->places[place] = (running){.task = task, .cost = cost, .rate = 1.0, .sm_rate = 1.0};
    return place;
}

/* ---- rates ---- */

void sharing_mark_changed(sharing *s, int place)
{
    running *r = &s->places[place];
    if (r->sequence != 0)
        s->num_stale++;
    r->sequence = 0;
    if (r->is_changed)
        return;
    r->is_changed = true;
    int_list_add(s->scratch, &s->changed, place);
}

void sharing_set_rate(sharing *s, int place, double rate)
{
    running *r = &s->places[place];
    if (rate <= r->rate && rate >= r->rate)
        return;
    r->end_s = s->now_s + (r->end_s - s->now_s) * r->rate / rate;
    r->rate = rate;
    s->out->num_rate_changes++;
    if (r->on_links)
        sharing_touch_links(s, place);
    sharing_mark_changed(s, place);
}

static void mark_pool(sharing *s, int index)
{
    if (s->pools[index].is_dirty)
        return;
    s->pools[index].is_dirty = true;
    int_list_add(s->scratch, &s->dirty_pools, index);
}

/* Rate of a kernel on the SMs that communication leaves free, at least one SM. */
static double sm_rate(const ms_task_cost *cost, int sms, int held_sms)
{
    if (held_sms <= 0)
        return 1.0;
    double all = sms, left = sms - held_sms < 1 ? 1 : sms - held_sms;
    double waves =
        cost->tiles > 0.0 ? ceil(cost->tiles / left) / ceil(cost->tiles / all) : 1.0;
    return 1.0 / ((1.0 - cost->sm_frac) * waves + cost->sm_frac * all / left);
}

static void update_pool(sharing *s, int index)
{
    const shared_pool *pool = &s->pools[index];
    int sms = s->graph->pool_sms[index];
    for (int place = pool->first; place >= 0; place = s->places[place].next_in_pool) {
        running *r = &s->places[place];
        double rate = sm_rate(running_cost(s, place), sms, pool->held_sms);
        if (rate <= r->sm_rate && rate >= r->sm_rate)
            continue;
        if (!sharing_change_demand(s, place, rate))
            sharing_set_rate(s, place, rate);
    }
}

static void join_pool(sharing *s, int place, int index)
{
    running *r = &s->places[place];
    shared_pool *pool = &s->pools[index];
    r->in_pool = true;
    r->next_in_pool = pool->first;
    r->previous_in_pool = -1;
    if (pool->first >= 0)
        s->places[pool->first].previous_in_pool = place;
    pool->first = place;
    if (pool->held_sms > 0)
        mark_pool(s, index);
}

static void leave_pool(sharing *s, int place, int index)
{
    const running *r = &s->places[place];
    if (r->next_in_pool >= 0)
        s->places[r->next_in_pool].previous_in_pool = r->previous_in_pool;
    if (r->previous_in_pool >= 0)
        s->places[r->previous_in_pool].next_in_pool = r->next_in_pool;
    else
        s->pools[index].first = r->next_in_pool;
}

/* ---- events ---- */

static bool uses_links(const sharing *s, const ms_task_cost *cost)
{
    return s->options.share_links && cost->num_uses > 0;
}

static bool holds_sms(const sharing *s, const ms_task_cost *cost)
{
    return s->options.share_sms && cost->pool >= 0 && cost->held_sms > 0;
}

static bool needs_sms(const sharing *s, const ms_task_cost *cost)
{
    return s->options.share_sms && cost->pool >= 0 &&
           (cost->tiles > 0.0 || cost->sm_frac > 0.0);
}

/* Puts a task on its links and SMs after its latency; update_rates will queue its end. */
static void begin_work(sharing *s, int place)
{
    const ms_task_cost *cost = running_cost(s, place);
    s->places[place].waits_latency = false;
    if (needs_sms(s, cost))
        join_pool(s, place, cost->pool);
    if (uses_links(s, cost))
        sharing_join_links(s, place);
    sharing_mark_changed(s, place);
}

static void start_task(sharing *s, int task, const ms_task_cost *cost)
{
    bool works = uses_links(s, cost) || needs_sms(s, cost), holds = holds_sms(s, cost);
    if (s->out->start_s != NULL)
        s->out->start_s[task] = s->now_s;
    double end_s = s->now_s + cost->duration_s;
    if (!(works || holds) || cost->duration_s <= 0.0) {
        event_queue_add(&s->queue, end_s, -task);
        return;
    }
    int place = take_place(s, task, cost);
    running *r = &s->places[place];
    r->end_s = end_s;
    if (holds) {
        s->pools[cost->pool].held_sms += cost->held_sms;
        mark_pool(s, cost->pool);
    }
    bool has_work = works && cost->latency_s < cost->duration_s;
    if (has_work && cost->latency_s <= 0.0) {
        begin_work(s, place);
    } else {
        r->waits_latency = has_work;
        double event_s = has_work ? s->now_s + cost->latency_s : end_s;
        r->sequence = event_queue_add(&s->queue, event_s, place);
    }
}

/* Releases a finished task's links and SMs, and its entry in sharing.places. */
static void release_resources(sharing *s, int place)
{
    running *r = &s->places[place];
    const ms_task_cost *cost = running_cost(s, place);
    if (r->on_links)
        sharing_leave_links(s, place);
    if (r->in_pool)
        leave_pool(s, place, cost->pool);
    if (holds_sms(s, cost)) {
        s->pools[cost->pool].held_sms -= cost->held_sms;
        mark_pool(s, cost->pool);
    }
    r->task = s->free_place;
    s->free_place = place;
    r->sequence = 0;
}

static void end_task(sharing *s, int task)
{
    s->out->end_s[task] = s->now_s;
    for (int waiter = waiting_end(&s->waiting, task), next; waiter > 0; waiter = next) {
        next = s->waiting.next[waiter];
        ms_task t = ms_graph_task(s->graph, waiter);
        int other = waiting_for(&s->waiting, waiter, &t);
        if (other == 0)
            start_task(s, waiter, &s->graph->costs[t.cost]);
        else
            waiting_add(&s->waiting, waiter, other);
    }
}

static bool is_stale(const sharing *s, const queued_event *event)
{
    return event->what >= 0 && s->places[event->what].sequence != event->sequence;
}

/* Removes obsolete events from a list. */
static void drop_stale_of(sharing *s, event_list *list)
{
    queued_event *events = s->queue.events;
    int kept = 0;
    for (int at = list->first, next; at != 0; at = next) {
        next = events[at].next;
        if (is_stale(s, &events[at])) {
            events[at].next = s->queue.unused_event;
            s->queue.unused_event = at;
            s->queue.num_events--;
            continue;
        }
        if (kept == 0)
            list->first = at;
        else
            events[kept].next = at;
        kept = at;
    }
    if (kept == 0)
        list->first = 0;
    else
        events[kept].next = 0;
    list->last = kept;
}

static void drop_stale(sharing *s)
{
    event_queue *q = &s->queue;
    if (s->num_stale < 64 || s->num_stale < q->num_events / 2)
        return;
    for (int i = q->num - 1; i >= 0; i--) {
        event_list *list = &q->lists[(uint32_t)q->heap[i].order];
        drop_stale_of(s, list);
        if (list->first == 0 && i > 0)
            event_queue_drop_list(q, i);
    }
    s->num_stale = 0;
    event_queue_rebuild(q);
}

/* After all events of an instant: computes rates, queues the ends that they change. */
static void update_rates(sharing *s)
{
    for (int i = 0; i < s->dirty_pools.num; i++) {
        update_pool(s, s->dirty_pools.items[i]);
        s->pools[s->dirty_pools.items[i]].is_dirty = false;
    }
    s->dirty_pools.num = 0;
    sharing_solve_links(s);
    for (int i = 0; i < s->changed.num; i++) {
        int place = s->changed.items[i];
        running *r = &s->places[place];
        r->is_changed = false;
        r->sequence = event_queue_add(&s->queue, r->end_s, place);
    }
    s->changed.num = 0;
    drop_stale(s);
}

static bool rates_are_current(const sharing *s)
{
    return s->dirty_pools.num + s->dirty_links.num + s->changed.num == 0;
}

static void handle_event(sharing *s, queued_event event)
{
    int place = event.what;
    if (place < 0) {
        end_task(s, -place);
    } else if (s->places[place].waits_latency) {
        s->places[place].sequence = 0;
        begin_work(s, place);
    } else {
        int task = s->places[place].task;
        release_resources(s, place);
        end_task(s, task);
    }
}

static void run_events(sharing *s)
{
    event_queue *q = &s->queue;
    end_task(s, 0);
    for (;;) {
        double next_s = 0.0;
        bool any = event_queue_next(q, &next_s);
        if (!any || next_s > s->now_s) {
            if (!rates_are_current(s)) {
                update_rates(s);
                continue;
            }
            sharing_sample_links(s);
            if (!any)
                break;
        }
        queued_event event = event_queue_take(q);
        if (is_stale(s, &event)) {
            s->num_stale--;
            continue;
        }
        s->now_s = next_s;
        handle_event(s, event);
    }
    s->out->makespan_s = s->now_s;
}

static void make_links_and_pools(sharing *s)
{
    const ms_graph *graph = s->graph;
    for (int i = 0; i < graph->num_costs; i++)
        if (graph->costs[i].num_uses > s->max_uses)
            s->max_uses = graph->costs[i].num_uses;
    s->links = MS_NEW_ARRAY(s->scratch, graph->num_links, shared_link);
    for (int i = 0; i < graph->num_links; i++)
        s->links[i].first_use = s->links[i].local = -1;
    sharing_make_loads(s);
    s->pools = MS_NEW_ARRAY(s->scratch, graph->num_pools, shared_pool);
    for (int i = 0; i < graph->num_pools; i++)
        s->pools[i].first = -1;
}

void event_run_shared(const ms_graph *graph, const ms_event_options *options,
                      ms_arena *arena, ms_event_result *out)
{
    ms_arena *scratch = ms_arena_open();
    sharing *s = MS_NEW(scratch, sharing);
    s->graph = graph;
    s->options = *options;
    s->out = out;
    s->scratch = s->queue.arena = scratch;
    s->solving = ms_arena_open();
    s->free_place = -1;
    make_links_and_pools(s);
    waiting_init(&s->waiting, graph, out->end_s, scratch);
    run_events(s);
    if (out->num_samples > 0)
        out->samples = grown(arena, s->samples, (size_t)out->num_samples,
                             (size_t)out->num_samples, sizeof *s->samples);
    if (options->share_links)
        out->links = sharing_total_links(s, arena);
    ms_arena_close(s->solving);
    ms_arena_close(scratch);
}
