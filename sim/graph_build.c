/* Builder of task graphs. Tasks are collected in memory blocks and copied once, so
 * that large graphs are never moved while they grow. Growing arrays lie in arenas of
 * the builder, which closing frees. */
#include "sim/graph.h"

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#define FIRST_CHUNK_TASKS 256
#define LAST_CHUNK_TASKS  (1 << 17)

typedef struct chunk {
    struct chunk *next;
    int num, capacity;
    ms_task *tasks;
    ms_task_tag *tags;
} chunk;

/* Hash table with open addressing, over items that are numbered from 0. */
typedef struct index_table {
    int num_slots; /* a power of two, at least twice the number of items */
    int *slots;    /* item + 1; 0: free */
    int num, capacity;
    uint64_t *hashes; /* (capacity): hash of each item */
} index_table;

struct ms_graph_builder {
    ms_arena *arena; /* where the finished graph lives */
    ms_arena *work;
    ms_arena *task_work,
        /* memory of the blocks of tasks and of tags, freed one by one; tag_work: NULL
         * without tags */
        *tag_work;
    chunk *first_chunk, *chunk;
    int num_tasks;
    int streams_capacity, *last_of_stream; /* last task of each stream; 0: none */
    int num_lists, lists_capacity, *lists;
    index_table cost_table, label_table;
    int costs_capacity, uses_capacity, labels_capacity, links_capacity, pools_capacity;
    ms_task_cost *costs;
    ms_link_use *uses;
    const char **labels;
    double *link_bytes_per_s;
    const char **link_names;
    int *pool_sms;
    ms_graph made; /* holds the numbers of the items above */
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

/* Makes room for `wanted` items in an array of which `num` are in use. */
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

/* ---- equal items get one index ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 29);
}

static uint64_t mix_number(uint64_t hash, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return mix(hash, bits);
}

static void place_item(index_table *table, int item)
{
    uint64_t mask = (uint64_t)table->num_slots - 1, at = table->hashes[item] & mask;
    while (table->slots[at] != 0)
        at = (at + 1) & mask;
    table->slots[at] = item + 1;
}

/* The next item with this hash; -1: none. `at` is the number of slots already tried: 0
 * for the first call, then left to this function. */
static int next_candidate(const index_table *table, uint64_t hash, uint64_t *at)
{
    if (table->num_slots == 0)
        return -1;
    uint64_t mask = (uint64_t)table->num_slots - 1;
    for (;; ++*at) {
        int item = table->slots[(hash + *at) & mask] - 1;
        if (item >= 0 && table->hashes[item] != hash)
            continue;
        ++*at;
        return item;
    }
}

static int add_item(ms_arena *work, index_table *table, uint64_t hash)
{
    RESERVE(work, table->hashes, table->num, table->capacity, table->num + 1);
    table->hashes[table->num] = hash;
    if (2 * (table->num + 1) > table->num_slots) {
        table->num_slots = table->num_slots == 0 ? 32 : 2 * table->num_slots;
        table->slots = MS_NEW_ARRAY(work, table->num_slots, int);
        for (int i = 0; i < table->num; i++)
            place_item(table, i);
    }
    place_item(table, table->num);
    return table->num++;
}

/* ---- costs and names ---- */

static uint64_t cost_hash(const ms_task_cost *cost, const ms_link_use *uses)
{
    uint64_t hash = mix_number(0, cost->duration_s);
    hash = mix_number(hash, cost->latency_s);
    hash = mix(hash, (uint64_t)cost->pool);
    hash = mix(hash, (uint64_t)cost->held_sms);
    hash = mix_number(hash, cost->tiles);
    hash = mix_number(hash, cost->sm_frac);
    for (int i = 0; i < cost->num_uses; i++) {
        hash = mix(hash, (uint64_t)uses[i].link);
        hash = mix_number(hash, uses[i].bytes_per_s);
    }
    return hash;
}

static bool same_number(double a, double b)
{
    return a <= b && a >= b;
}

static bool same_cost(const ms_graph_builder *b, const ms_task_cost *have,
                      const ms_task_cost *cost, const ms_link_use *uses)
{
    if (!same_number(have->duration_s, cost->duration_s) ||
        !same_number(have->latency_s, cost->latency_s) || have->pool != cost->pool ||
        have->held_sms != cost->held_sms || !same_number(have->tiles, cost->tiles) ||
        !same_number(have->sm_frac, cost->sm_frac) || have->num_uses != cost->num_uses)
        return false;
    const ms_link_use *have_uses = &b->uses[have->first_use];
    for (int i = 0; i < cost->num_uses; i++)
        if (have_uses[i].link != uses[i].link ||
            !same_number(have_uses[i].bytes_per_s, uses[i].bytes_per_s))
            return false;
    return true;
}

int ms_graph_cost(ms_graph_builder *b, const ms_task_cost *cost, const ms_link_use *uses)
{
    assert(cost->duration_s >= 0.0 && cost->latency_s >= 0.0 &&
           cost->latency_s <= cost->duration_s);
    assert(cost->sm_frac >= 0.0 && cost->sm_frac <= 1.0);
    assert(cost->pool >= -1 && cost->pool < b->made.num_pools);
    /* write behind the last use, where the uses stay if the cost is new */
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
    const ms_link_use *added_uses = &b->uses[made->num_uses];
    uint64_t hash = cost_hash(&added, added_uses), at = 0;
    for (int i; (i = next_candidate(&b->cost_table, hash, &at)) >= 0;)
        if (same_cost(b, &b->costs[i], &added, added_uses))
            return i;
    RESERVE(b->work, b->costs, made->num_costs, b->costs_capacity, made->num_costs + 1);
    b->costs[made->num_costs++] = added;
    made->num_uses += added.num_uses;
    return add_item(b->work, &b->cost_table, hash);
}

int ms_graph_label(ms_graph_builder *b, const char *text)
{
    uint64_t hash = 0, at = 0;
    for (const char *c = text; *c != '\0'; c++)
        hash = mix(hash, (unsigned char)*c);
    for (int i; (i = next_candidate(&b->label_table, hash, &at)) >= 0;)
        if (strcmp(b->labels[i], text) == 0)
            return i;
    int num = b->made.num_labels;
    RESERVE(b->work, b->labels, num, b->labels_capacity, num + 1);
    b->labels[b->made.num_labels++] = ms_arena_strdup(b->arena, text);
    return add_item(b->work, &b->label_table, hash);
}

int ms_graph_link(ms_graph_builder *b, const char *name, double bytes_per_s)
{
    assert(bytes_per_s > 0.0);
    int num = b->made.num_links;
    int capacity = b->links_capacity; /* both arrays have this capacity */
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
    if (b->tag_work != NULL)
        added->tags = MS_NEW_ARRAY(b->tag_work, capacity, ms_task_tag);
    if (b->chunk == NULL)
        b->first_chunk = added;
    else
        b->chunk->next = added;
    b->chunk = added;
}

static ms_graph_builder *open_builder(ms_arena *arena, bool with_tags)
{
    ms_arena *work = ms_arena_open();
    ms_graph_builder *b = MS_NEW(work, ms_graph_builder);
    b->arena = arena;
    b->work = work;
    b->task_work = ms_arena_open();
    b->tag_work = with_tags ? ms_arena_open() : NULL;
    b->num_lists = 1;
    RESERVE(work, b->lists, 0, b->lists_capacity, 1);
    add_chunk(b, FIRST_CHUNK_TASKS);
    b->chunk->num = 1; /* task 0 is no task */
    return b;
}

ms_graph_builder *ms_graph_open(ms_arena *arena)
{
    return open_builder(arena, true);
}

ms_graph_builder *ms_graph_open_untagged(ms_arena *arena)
{
    return open_builder(arena, false);
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
    if (c->tags != NULL)
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
    /* the list of the task added last is the last list */
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
    graph->tags = b->tag_work == NULL ? NULL : take_tags(b);
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
