/* Hash map: gives keys (bytes without padding) indices from 0 in order of addition. */
#ifndef MS_BASE_MAP_H
#define MS_BASE_MAP_H

#include "base/arena.h"

#include <stdint.h>

typedef struct ms_map_key {
    uint64_t hash;
    const void *bytes;
    size_t size;
} ms_map_key;

/* A hash map; starts as {.arena = arena}, which holds all its memory. */
typedef struct ms_map {
    ms_arena *arena;
    int num, capacity;
    ms_map_key *keys; /* keys in order of addition, (num) */
    int num_slots; /* size of the hash table: 0 or a power of two, at least twice num */
    int *slots;    /* per slot: 1 + the index in `keys` of its key; 0: the slot is free */
} ms_map;

/* The index of a key; -1: there is none. */
int ms_map_find(const ms_map *map, const void *key, size_t size);
/* The index of a key; a new one is copied and gets the index map->num. */
int ms_map_add(ms_map *map, const void *key, size_t size);

#endif
