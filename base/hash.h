/* Hash of bytes. */
#ifndef MS_BASE_HASH_H
#define MS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a (Fowler, Noll and Vo). */
static inline uint64_t ms_hash_bytes(const void *bytes, size_t num)
{
    const unsigned char *at = bytes;
    uint64_t hash = 14695981039346656037ULL;
    for (size_t i = 0; i < num; i++)
        hash = (hash ^ at[i]) * 1099511628211ULL;
    return hash;
}

#endif
