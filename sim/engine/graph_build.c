/* Builder of task graphs. Tasks are collected in chunks of memory and copied once at the
 * end, so that large graphs are not moved while they grow. */
#include "sim/engine/graph.h"

#include "base/map.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#define FIRST_CHUNK_TASKS 256
#define LAST_CHUNK_TASKS  (1 << 17)

typedef struct chunk {
    struct chunk *next;
    int num, capacity;
    ms_task *tasks;
    ms_task_tag *tags;
} chunk;

struct ms_graph_builder {
    ms_arena *arena; /* memory of the finished graph */
    ms_arena *work;
    ms_arena *task_work, *tag_work; /* memory of the chunks' tasks, and of their tags */
    chunk *first_chunk, *chunk;
    int num_tasks;
    int streams_capacity, *last_of_stream; /* last task of each stream; 0: none */
    int num_lists, lists_capacity, *lists;
    ms_map cost_keys, label_keys;
    int key_capacity;
    double *key; /* numbers that identify the cost being added */
    int costs_capacity, uses_capacity, labels_capacity, links_capacity, pools_capacity;
    ms_task_cost *costs;
    ms_link_use *uses;
    const char **labels;
    double *link_bytes_per_s;
    const char **link_names;
    int *pool_sms;
    /* the finished graph; while it is built only its num_* are valid */
    ms_graph made;
};

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

static void add_chunk(ms_graph_builder *b, int capacity)
{
    chunk *added = MS_NEW(b->work, chunk);
    added->capacity = capacity;
    added->tasks = MS_NEW_ARRAY(b->task_work, capacity, ms_task);
    added->tags = MS_NEW_ARRAY(b->tag_work, capacity, ms_task_tag);
    if (b->chunk == NULL)
        b->first_chunk = added;
    else
        b->chunk->next = added;
    b->chunk = added;
}

ms_graph_builder *ms_graph_open(ms_arena *arena)
{
    ms_arena *work = ms_arena_open();
    ms_graph_builder *b = MS_NEW(work, ms_graph_builder);
    b->arena = arena;
    b->work = b->cost_keys.arena = b->label_keys.arena = work;
    b->task_work = ms_arena_open();
    b->tag_work = ms_arena_open();
    b->num_lists = 1;
    RESERVE(work, b->lists, 0, b->lists_capacity, 1);
    add_chunk(b, FIRST_CHUNK_TASKS);
    b->chunk->num = 1; /* tasks are numbered from 1 */
    return b;
}

int ms_graph_add(ms_graph_builder *b, int stream, int cost, ms_task_tag tag)
{
    assert(cost >= 0 && cost < b->made.num_costs && b->num_tasks < INT_MAX - 1);
    chunk *c = b->chunk;
    if (c->num == c->capacity) {
        add_chunk(b, c->capacity < LAST_CHUNK_TASKS ? 2 * c->capacity : c->capacity);
        c = b->chunk;
    }
    int task = ++b->num_tasks;
    c->tasks[c->num].cost = cost;
    if (stream >= 0) {
        int streams = b->streams_capacity;
        RESERVE(b->work, b->last_of_stream, streams, b->streams_capacity, stream + 1);
        c->tasks[c->num].before = b->last_of_stream[stream];
        b->last_of_stream[stream] = task;
    }
    c->tags[c->num] = tag;
    c->num++;
    return task;
}

void ms_graph_wait(ms_graph_builder *b, int other)
{
    assert(b->num_tasks > 0 && other >= 0 && other < b->num_tasks);
    ms_task *task = &b->chunk->tasks[b->chunk->num - 1];
    if (other == task->before || other == task->cross || other == 0)
        return;
    if (task->cross == 0) {
        task->cross = other;
        return;
    }
    /* the list of the task added last is at the end of b->lists */
    RESERVE(b->work, b->lists, b->num_lists, b->lists_capacity, b->num_lists + 2);
    if (task->more == 0) {
        task->more = b->num_lists;
        b->lists[b->num_lists++] = 0;
    }
    b->lists[task->more]++;
    b->lists[b->num_lists++] = other;
}

int ms_graph_last(const ms_graph_builder *b, int stream)
{
    return stream >= 0 && stream < b->streams_capacity ? b->last_of_stream[stream] : 0;
}

/* ---- the result ---- */

static ms_task *take_tasks(ms_graph_builder *b)
{
    ms_task *tasks = MS_NEW_ARRAY(b->arena, 1 + (size_t)b->num_tasks, ms_task);
    ms_task *at = tasks;
    for (const chunk *c = b->first_chunk; c != NULL; at += c->num, c = c->next)
        memcpy(at, c->tasks, (size_t)c->num * sizeof *at);
    ms_arena_close(b->task_work);
    return tasks;
}

static ms_task_tag *take_tags(ms_graph_builder *b)
{
    ms_task_tag *tags = MS_NEW_ARRAY(b->arena, 1 + (size_t)b->num_tasks, ms_task_tag);
    ms_task_tag *at = tags;
    for (const chunk *c = b->first_chunk; c != NULL; at += c->num, c = c->next)
        memcpy(at, c->tags, (size_t)c->num * sizeof *at);
    ms_arena_close(b->tag_work);
    return tags;
}

#define COPY(b, items, num)                                                              \
    grown((b)->arena, (b)->items, (num), (num), sizeof *(b)->items)

const ms_graph *ms_graph_close(ms_graph_builder *b)
{
    ms_graph *graph = MS_NEW(b->arena, ms_graph);
    *graph = b->made;
    graph->num_tasks = b->num_tasks;
    graph->tasks = take_tasks(b);
    graph->tags = take_tags(b);
    graph->num_lists = b->num_lists;
    graph->lists = COPY(b, lists, b->num_lists);
    graph->costs = COPY(b, costs, graph->num_costs);
    graph->uses = COPY(b, uses, graph->num_uses);
    graph->link_bytes_per_s = COPY(b, link_bytes_per_s, graph->num_links);
    graph->link_names = COPY(b, link_names, graph->num_links);
    graph->pool_sms = COPY(b, pool_sms, graph->num_pools);
    graph->labels = COPY(b, labels, graph->num_labels);
    ms_arena_close(b->work);
    return graph;
}
