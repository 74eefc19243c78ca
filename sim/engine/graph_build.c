#include "sim/engine/graph_priv.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

/* Most tasks of a part outside of patterns: they are copied once, when the part ends. */
#define MAX_PART_TASKS (1 << 12)

/* ---- arrays that grow ---- */

static void *grown(ms_arena *arena, const void *items, int num, int capacity,
                   size_t item_size)
{
    void *larger = ms_arena_array(arena, (size_t)capacity, item_size);
    if (num > 0)
        memcpy(larger, items, (size_t)num * item_size);
    return larger;
}

/* Enlarges an array, of which `num` items are used, to hold `wanted` items. */
#define RESERVE(arena, items, num, capacity, wanted)                                     \
    do {                                                                                 \
        if ((wanted) > (capacity)) {                                                     \
            (capacity) = larger_capacity((capacity), (wanted));                          \
            (items) = grown((arena), (items), (num), (capacity), sizeof *(items));       \
        }                                                                                \
    } while (0)

static int larger_capacity(int capacity, int wanted)
{
    assert(wanted <= INT_MAX / 4);
    int larger = capacity < 16 ? 16 : 2 * capacity;
    return larger < wanted ? wanted : larger;
}

/* ---- costs and names ---- */

/* Fills b->key with the numbers that identify a cost; returns how many. */
static int make_key(ms_graph_builder *b, const ms_task_cost *cost,
                    const ms_link_use *uses)
{
    int num = 6;
    RESERVE(b->work, b->key, 0, b->key_capacity, num + 2 * cost->num_uses);
    const double numbers[] = {cost->duration_s, cost->latency_s, cost->pool,
                              cost->held_sms,   cost->tiles,     cost->sm_frac};
    memcpy(b->key, numbers, sizeof numbers);
    for (int i = 0; i < cost->num_uses; i++) {
        b->key[num++] = uses[i].link;
        b->key[num++] = uses[i].bytes_per_s;
    }
    return num;
}

int ms_graph_cost(ms_graph_builder *b, const ms_task_cost *cost, const ms_link_use *uses)
{
    assert(cost->duration_s >= 0.0 && cost->latency_s >= 0.0 &&
           cost->latency_s <= cost->duration_s);
    assert(cost->sm_frac >= 0.0 && cost->sm_frac <= 1.0);
    assert(cost->pool >= -1 && cost->pool < b->made.num_pools);
    /* the cost's link uses go to the end of b->uses, to stay if the cost is new */
    ms_graph *made = &b->made;
    RESERVE(b->work, b->uses, made->num_uses, b->uses_capacity,
            made->num_uses + cost->num_uses);
    ms_task_cost added = *cost;
    added.first_use = made->num_uses;
    added.num_uses = 0;
    for (int i = 0; i < cost->num_uses; i++) {
        assert(uses[i].link >= 0 && uses[i].link < made->num_links);
        if (uses[i].bytes_per_s > 0.0)
            b->uses[made->num_uses + added.num_uses++] = uses[i];
    }
    int num_numbers = make_key(b, &added, &b->uses[made->num_uses]);
    int i = ms_map_add(&b->cost_keys, b->key, (size_t)num_numbers * sizeof *b->key);
    if (i < made->num_costs)
        return i;
    RESERVE(b->work, b->costs, made->num_costs, b->costs_capacity, made->num_costs + 1);
    b->costs[made->num_costs++] = added;
    made->num_uses += added.num_uses;
    return i;
}

int ms_graph_label(ms_graph_builder *b, const char *text)
{
    int i = ms_map_add(&b->label_keys, text, strlen(text)), num = b->made.num_labels;
    if (i < num)
        return i;
    RESERVE(b->work, b->labels, num, b->labels_capacity, num + 1);
    b->labels[b->made.num_labels++] = ms_arena_strdup(b->arena, text);
    return i;
}

int ms_graph_link(ms_graph_builder *b, const char *name, double bytes_per_s)
{
    assert(bytes_per_s > 0.0);
    int num = b->made.num_links;
    int capacity = b->links_capacity; /* for both link_names and link_bytes_per_s */
    RESERVE(b->work, b->link_names, num, capacity, num + 1);
    RESERVE(b->work, b->link_bytes_per_s, num, b->links_capacity, num + 1);
    b->link_names[num] = ms_arena_strdup(b->arena, name);
    b->link_bytes_per_s[num] = bytes_per_s;
    return b->made.num_links++;
}

int ms_graph_pool(ms_graph_builder *b, int sms)
{
    assert(sms > 0);
    int num = b->made.num_pools;
    RESERVE(b->work, b->pool_sms, num, b->pools_capacity, num + 1);
    b->pool_sms[num] = sms;
    return b->made.num_pools++;
}

/* ---- tasks ---- */

ms_graph_builder *ms_graph_open(ms_arena *arena)
{
    ms_arena *work = ms_arena_open();
    ms_graph_builder *b = MS_NEW(work, ms_graph_builder);
    b->arena = arena;
    b->work = b->cost_keys.arena = b->label_keys.arena = work;
    b->made.num_lists = 1;
    RESERVE(work, b->lists, 0, b->lists_capacity, 1);
    RESERVE(work, b->tasks, 0, b->tasks_capacity, 1);
    RESERVE(work, b->tags, 0, b->tags_capacity, 1);
    b->num_added = 1; /* task 0 */
    return b;
}

void graph_add_part(ms_graph_builder *b, ms_graph_part part, int num_tasks)
{
    int num = b->made.num_parts++;
    MS_MAKE_ROOM(b->work, b->parts, num, b->parts_capacity, 64);
    b->parts[num] = part;
    b->parts[num].first = b->first;
    b->first += num_tasks;
}

void graph_end_part(ms_graph_builder *b)
{
    static const int no_ports[1] = {0};
    int num = b->num_added;
    if (num == 0)
        return;
    graph_add_part(b,
                   (ms_graph_part){.microbatch = -1,
                                   .tasks = GRAPH_COPY(b, b->tasks, num),
                                   .tags = GRAPH_COPY(b, b->tags, num),
                                   .ports = no_ports},
                   num);
    b->num_added = 0;
}

int *graph_last_of_stream(ms_graph_builder *b, int stream)
{
    int streams = b->streams_capacity;
    RESERVE(b->work, b->last_of_stream, streams, b->streams_capacity, stream + 1);
    return &b->last_of_stream[stream];
}

int ms_graph_add(ms_graph_builder *b, int stream, int cost, ms_task_tag tag)
{
    assert(cost >= 0 && cost < b->made.num_costs && b->num_tasks < INT_MAX - 1);
    if (b->num_added >= MAX_PART_TASKS && b->patterns.recorded == 0)
        graph_end_part(b);
    int num = b->num_added++, task = ++b->num_tasks;
    MS_MAKE_ROOM(b->work, b->tasks, num, b->tasks_capacity, 256);
    MS_MAKE_ROOM(b->work, b->tags, num, b->tags_capacity, 256);
    b->tasks[num] = (ms_stored_task){.cost = cost};
    b->tags[num] = tag;
    if (stream >= 0) {
        int *last = graph_last_of_stream(b, stream);
        b->tasks[num].before = *last;
        *last = task;
    }
    return task;
}

void ms_graph_wait(ms_graph_builder *b, int other)
{
    assert(b->num_added > 0 && other >= 0 && other < b->num_tasks);
    ms_stored_task *task = &b->tasks[b->num_added - 1];
    if (other == task->before || other == task->cross || other == 0)
        return;
    if (task->cross == 0) {
        task->cross = other;
        return;
    }
    /* the list of the task added last is at the end of b->lists */
    int *num = &b->made.num_lists;
    RESERVE(b->work, b->lists, *num, b->lists_capacity, *num + 2);
    if (task->more == 0) {
        task->more = *num;
        b->lists[(*num)++] = 0;
    }
    b->lists[task->more]++;
    b->lists[(*num)++] = other;
}

int ms_graph_last(const ms_graph_builder *b, int stream)
{
    return stream >= 0 && stream < b->streams_capacity ? b->last_of_stream[stream] : 0;
}

/* ---- the result ---- */

static const int *make_part_table(const ms_graph_builder *b, int num_parts)
{
    int num = 1 + (b->num_tasks >> MS_PART_SHIFT), part = 0;
    int *table = MS_NEW_ARRAY(b->arena, num, int);
    for (int i = 0; i < num; i++) {
        while (part + 1 < num_parts && b->parts[part + 1].first <= i << MS_PART_SHIFT)
            part++;
        table[i] = part;
    }
    return table;
}

#define COPY(b, items, num)                                                              \
    grown((b)->arena, (b)->items, (num), (num), sizeof *(b)->items)

const ms_graph *ms_graph_close(ms_graph_builder *b)
{
    ms_graph *graph = MS_NEW(b->arena, ms_graph);
    graph_end_part(b);
    graph_add_part(b, (ms_graph_part){0}, 0);
    *graph = b->made;
    graph->num_tasks = b->num_tasks;
    graph->num_parts--; /* the last one only marks the end */
    graph->parts = COPY(b, parts, graph->num_parts + 1);
    graph->part_at = make_part_table(b, graph->num_parts);
    graph->lists = COPY(b, lists, graph->num_lists);
    graph->costs = COPY(b, costs, graph->num_costs);
    graph->uses = COPY(b, uses, graph->num_uses);
    graph->link_bytes_per_s = COPY(b, link_bytes_per_s, graph->num_links);
    graph->link_names = COPY(b, link_names, graph->num_links);
    graph->pool_sms = COPY(b, pool_sms, graph->num_pools);
    graph->labels = COPY(b, labels, graph->num_labels);
    ms_arena_close(b->work);
    return graph;
}
