/* The builder of a task graph: tasks added one by one, and patterns of tasks that repeat. */
#ifndef MS_SIM_ENGINE_GRAPH_PRIV_H
#define MS_SIM_ENGINE_GRAPH_PRIV_H

#include "base/map.h"
#include "sim/engine/graph.h"

typedef struct graph_pattern graph_pattern;

/* Patterns, and the state (its entries, then the last tasks of its streams) before the
 * repetition that is being added. */
typedef struct graph_patterns {
    ms_map keys; /* key of the caller and equal entries of the state */
    int capacity;
    graph_pattern *patterns; /* (keys.num) */
    int recorded;            /* 1 + the pattern that is being added; 0: none */
    int num, entry_capacity, slot_capacity, key_capacity;
    int *entries; /* (num) */
    int *slots;   /* hash table: 1 + index of the first entry of its value; 0: free */
    char *key;
} graph_patterns;

struct ms_graph_builder {
    ms_arena *arena; /* memory of the finished graph */
    ms_arena *work;
    int num_tasks;
    /* tasks from number `first` on that are in no part yet */
    int first, num_added, tasks_capacity, tags_capacity;
    ms_stored_task *tasks;
    ms_task_tag *tags;
    int streams_capacity, *last_of_stream; /* last task of each stream; 0: none */
    int lists_capacity, *lists;
    int parts_capacity;
    ms_graph_part *parts;
    graph_patterns patterns;
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

/* Copies the first `num` items of an array to the graph's memory. */
#define GRAPH_COPY(b, items, num)                                                        \
    memcpy(ms_arena_take((b)->arena, (size_t)(num) * sizeof *(items)), (items),          \
           (size_t)(num) * sizeof *(items))

/* Makes a part of the tasks that were added one by one since the last part. */
void graph_end_part(ms_graph_builder *b);
void graph_add_part(ms_graph_builder *b, ms_graph_part part, int num_tasks);
/* Where the number of a stream's last task is kept. */
int *graph_last_of_stream(ms_graph_builder *b, int stream);

#endif
