/* Patterns of tasks that repeat. References inside a pattern are relative to its first
 * task; those to earlier tasks go through the ports of the repetition, which are entries
 * of the state before it. */
#include "sim/engine/graph_priv.h"

#include <assert.h>
#include <string.h>

struct graph_pattern {
    int num_tasks;
    const ms_stored_task *tasks;
    const ms_task_tag *tags;
    int num_ports, ports_capacity;
    int *ports; /* (num_ports): entry of the state that is the port; ports[0] is unused */
    /* per entry, state after the pattern: a reference into it (> 0); 0: no task; -1 - i:
     * the task of entry i before it */
    int *left;
};

/* ---- the state ---- */

static int *variable(ms_graph_builder *b, const ms_graph_state *state, int entry)
{
    return entry < state->num
               ? &state->tasks[entry]
               : graph_last_of_stream(b, state->streams[entry - state->num]);
}

/* The slot of a task in the hash table of the state's entries. */
static int *slot_of(const graph_patterns *p, int task)
{
    unsigned last = (unsigned)p->slot_capacity - 1, at = (unsigned)task * 2654435769U;
    for (at = at >> 8 & last; p->slots[at] != 0; at = (at + 1) & last)
        if (p->entries[p->slots[at] - 1] == task)
            break;
    return &p->slots[at];
}

/* 1 + index of the first entry of the state that was `task`; 0: there is none. */
static int entry_of(const graph_patterns *p, int task)
{
    return *slot_of(p, task);
}

static void read_state(ms_graph_builder *b, const ms_graph_state *state)
{
    graph_patterns *p = &b->patterns;
    p->num = state->num + state->num_streams;
    if (p->num > p->entry_capacity) {
        p->entry_capacity = p->num;
        p->slot_capacity = 64;
        while (p->slot_capacity < 2 * p->num)
            p->slot_capacity *= 2;
        p->entries = MS_NEW_ARRAY(b->work, p->num, int);
        p->slots = MS_NEW_ARRAY(b->work, p->slot_capacity, int);
    }
    memset(p->slots, 0, (size_t)p->slot_capacity * sizeof *p->slots);
    for (int i = 0; i < p->num; i++) {
        p->entries[i] = *variable(b, state, i);
        int *slot = slot_of(p, p->entries[i]);
        if (*slot == 0)
            *slot = 1 + i;
    }
}

/* Index of the pattern that is determined by `key` and by the equal entries of the state;
 * a new one gets the index after the last. */
static int find_pattern(ms_graph_builder *b, const void *key, size_t key_size)
{
    graph_patterns *p = &b->patterns;
    size_t size = key_size + (size_t)p->num * sizeof(int);
    if (size > (size_t)p->key_capacity) {
        p->key_capacity = (int)size;
        p->key = ms_arena_take(b->work, size);
    }
    memcpy(p->key, key, key_size);
    for (int i = 0; i < p->num; i++) {
        int equal = p->entries[i] == 0 ? 0 : entry_of(p, p->entries[i]);
        memcpy(p->key + key_size + (size_t)i * sizeof equal, &equal, sizeof equal);
    }
    p->keys.arena = b->work;
    return ms_map_add(&p->keys, p->key, size);
}

/* ---- repetitions ---- */

/* Adds a repetition after the state that was read, and sets the state after it. */
static void add_repetition(ms_graph_builder *b, const graph_pattern *pattern,
                           int microbatch, const ms_graph_state *state)
{
    const graph_patterns *p = &b->patterns;
    int base = b->num_tasks;
    int *ports = MS_NEW_ARRAY(b->arena, pattern->num_ports, int);
    for (int i = 1; i < pattern->num_ports; i++)
        ports[i] = p->entries[pattern->ports[i]];
    for (int i = 0; i < p->num; i++) {
        int left = pattern->left[i];
        *variable(b, state, i) = left > 0    ? base + left
                                 : left == 0 ? 0
                                             : p->entries[-1 - left];
    }
    graph_add_part(b,
                   (ms_graph_part){.base = base,
                                   .microbatch = microbatch,
                                   .tasks = pattern->tasks,
                                   .tags = pattern->tags,
                                   .ports = ports},
                   pattern->num_tasks);
    b->num_tasks += pattern->num_tasks;
}

bool ms_graph_repeat(ms_graph_builder *b, const void *key, size_t key_size,
                     int microbatch, ms_graph_state *state)
{
    graph_patterns *p = &b->patterns;
    assert(p->recorded == 0);
    graph_end_part(b);
    read_state(b, state);
    int num = p->keys.num, index = find_pattern(b, key, key_size);
    if (index < num) {
        add_repetition(b, &p->patterns[index], microbatch, state);
        return true;
    }
    MS_MAKE_ROOM(b->work, p->patterns, num, p->capacity, 16);
    p->recorded = 1 + index;
    return false;
}

/* ---- new patterns ---- */

/* The reference for a task that a pattern's task waits for; a port if it is earlier. */
static int reference_to(ms_graph_builder *b, graph_pattern *pattern, int *port_of,
                        int task)
{
    if (task == 0 || task >= b->first)
        return task == 0 ? 0 : task - b->first + 1;
    int entry = entry_of(&b->patterns, task) - 1;
    assert(entry >= 0); /* the task is in the state */
    if (port_of[entry] == 0) {
        MS_MAKE_ROOM(b->work, pattern->ports, pattern->num_ports, pattern->ports_capacity,
                     64);
        port_of[entry] = pattern->num_ports;
        pattern->ports[pattern->num_ports++] = entry;
    }
    return -port_of[entry];
}

static void make_pattern(ms_graph_builder *b, graph_pattern *pattern,
                         const ms_graph_state *state)
{
    int *port_of = MS_NEW_ARRAY(b->work, b->patterns.num, int);
    MS_MAKE_ROOM(b->work, pattern->ports, 0, pattern->ports_capacity, 64);
    pattern->num_ports = 1;
    pattern->num_tasks = b->num_added;
    for (int i = 0; i < b->num_added; i++) {
        ms_stored_task *task = &b->tasks[i];
        task->before = reference_to(b, pattern, port_of, task->before);
        task->cross = reference_to(b, pattern, port_of, task->cross);
        int *list = &b->lists[task->more];
        for (int j = 1; j <= list[0]; j++)
            list[j] = reference_to(b, pattern, port_of, list[j]);
    }
    pattern->left = MS_NEW_ARRAY(b->work, b->patterns.num, int);
    for (int i = 0; i < b->patterns.num; i++) {
        int task = *variable(b, state, i);
        int entry = entry_of(&b->patterns, task);
        assert(task == 0 || task >= b->first || entry > 0);
        pattern->left[i] = task == 0          ? 0
                           : task >= b->first ? task - b->first + 1
                                              : -entry;
    }
    pattern->tasks = GRAPH_COPY(b, b->tasks, b->num_added);
    pattern->tags = GRAPH_COPY(b, b->tags, b->num_added);
}

void ms_graph_end_pattern(ms_graph_builder *b, const ms_graph_state *state)
{
    graph_patterns *p = &b->patterns;
    if (p->recorded == 0)
        return;
    graph_pattern *pattern = &p->patterns[p->recorded - 1];
    p->recorded = 0;
    make_pattern(b, pattern, state);
    b->num_tasks -= b->num_added;
    b->num_added = 0;
    add_repetition(b, pattern, -1, state);
}
