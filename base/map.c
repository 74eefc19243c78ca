#include "base/map.h"

#include <string.h>

/* Hash of a key: multiplication by 2^64 over the golden ratio, word by word. */
static uint64_t hash_of(const void *key, size_t size)
{
    uint64_t hash = size, word;
    const char *at = key;
    for (; size >= sizeof word; size -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    word = 0;
    memcpy(&word, at, size);
    hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 32);
}

static int find_hashed(const ms_map *map, uint64_t hash, const void *key, size_t size)
{
    if (map->num_slots == 0)
        return -1;
    uint64_t mask = (uint64_t)map->num_slots - 1;
    for (uint64_t at = hash & mask; map->slots[at] != 0; at = (at + 1) & mask) {
        const ms_map_key *have = &map->keys[map->slots[at] - 1];
        if (have->hash == hash && have->size == size &&
            memcmp(have->bytes, key, size) == 0)
            return map->slots[at] - 1;
    }
    return -1;
}

int ms_map_find(const ms_map *map, const void *key, size_t size)
{
    return find_hashed(map, hash_of(key, size), key, size);
}

static void place(ms_map *map, int index)
{
    uint64_t mask = (uint64_t)map->num_slots - 1, at = map->keys[index].hash & mask;
    while (map->slots[at] != 0)
        at = (at + 1) & mask;
    map->slots[at] = index + 1;
}

int ms_map_add(ms_map *map, const void *key, size_t size)
{
    uint64_t hash = hash_of(key, size);
    int found = find_hashed(map, hash, key, size);
    if (found >= 0)
        return found;
    MS_MAKE_ROOM(map->arena, map->keys, map->num, map->capacity, 16);
    void *bytes = memcpy(ms_arena_take(map->arena, size), key, size);
    map->keys[map->num++] = (ms_map_key){hash, bytes, size};
    if (2 * map->num > map->num_slots) {
        map->num_slots = map->num_slots == 0 ? 32 : 2 * map->num_slots;
        map->slots = MS_NEW_ARRAY(map->arena, map->num_slots, int);
        for (int i = 0; i < map->num - 1; i++)
            place(map, i);
    }
    place(map, map->num - 1);
    return map->num - 1;
}
