/* Indices of keys: equal keys get one index, counted from 0 in the order in which they
 * are added, so that users keep what belongs to a key in arrays of their own. Keys are
 * bytes without padding. An open-addressing table with linear probing. */
#ifndef MS_BASE_MAP_H
#define MS_BASE_MAP_H

#include "base/arena.h"

#include <stdint.h>

typedef struct ms_map_key {
    uint64_t hash;
    const void *bytes;
    size_t size;
} ms_map_key;

/* Starts as {.arena = arena}; all that it needs lives there. */
typedef struct ms_map {
    ms_arena *arena;
    int num, capacity;
    ms_map_key *keys; /* (num) */
    int num_slots;    /* 0, or a power of two, at least twice the number of keys */
    int *slots;       /* index + 1; 0: free */
} ms_map;

/* The index of a key; -1: there is none. */
int ms_map_find(const ms_map *map, const void *key, size_t size);
/* The index of a key, which is copied when it is new: then its index is map->num before
 * the call. */
int ms_map_add(ms_map *map, const void *key, size_t size);

#endif
