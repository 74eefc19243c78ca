#include "exec/cuda/cuda_memory.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* log2 of the number of free lists from one power of 2 of bytes to the next */
#define STEPS_BITS     3
#define NUM_LISTS      (64 << STEPS_BITS)
#define FIRST_CAPACITY 256

/* A piece of a memory block from the driver, in use or free. */
typedef struct piece {
    char *start;
    size_t bytes;
    bool is_free;
    struct piece *before, *after; /* neighbouring pieces of the block; NULL at its ends */
    /* neighbours in its free list, or in the list of unused `piece` structs */
    struct piece *previous, *next;
} piece;

typedef struct block {
    void *memory;
    size_t bytes;
    struct block *next;
} block;

struct ms_cuda_memory {
    ms_arena *arena;
    ms_cuda_memory_source source;
    block *blocks, *idle_blocks;
    piece *lists[NUM_LISTS];
    piece *idle_pieces;
    long num_used, room; /* room: capacity of `used`, a power of two */
    piece **used;        /* (room) hash table by address, linear probing */
    size_t held_bytes, most_held_bytes, used_bytes, most_used_bytes;
    long num_blocks;
};

/* ---- records ---- */

static piece *new_piece(ms_cuda_memory *m, piece value)
{
    piece *p = m->idle_pieces;
    if (p == NULL)
        p = MS_NEW(m->arena, piece);
    else
        m->idle_pieces = p->next;
    *p = value;
    return p;
}

static void recycle_record(ms_cuda_memory *m, piece *p)
{
    p->next = m->idle_pieces;
    m->idle_pieces = p;
}

/* ---- pieces in use, by address ---- */

static long slot_of(const ms_cuda_memory *m, const void *start)
{
    uint64_t hash = (uint64_t)(uintptr_t)start * 0x9E3779B97F4A7C15ULL;
    long at = (long)(hash >> 33) & (m->room - 1);
    while (m->used[at] != NULL && m->used[at]->start != start)
        at = (at + 1) & (m->room - 1);
    return at;
}

static void grow_used(ms_cuda_memory *m)
{
    if (2 * (m->num_used + 1) <= m->room)
        return;
    piece **old = m->used;
    long room = m->room;
    m->room = room > 0 ? 2 * room : FIRST_CAPACITY;
    m->used = MS_NEW_ARRAY(m->arena, m->room, piece *);
    for (long i = 0; i < room; i++)
        if (old[i] != NULL)
            m->used[slot_of(m, old[i]->start)] = old[i];
}

static void insert_used(ms_cuda_memory *m, piece *p)
{
    grow_used(m);
    m->used[slot_of(m, p->start)] = p;
    m->num_used++;
    m->used_bytes += p->bytes;
    if (m->used_bytes > m->most_used_bytes)
        m->most_used_bytes = m->used_bytes;
}

/* Removes a piece from the hash table, and reinserts the entries up to the next gap. */
static piece *remove_used(ms_cuda_memory *m, const void *start)
{
    long at = slot_of(m, start);
    piece *found = m->used[at];
    assert(found != NULL);
    m->used[at] = NULL;
    m->num_used--;
    m->used_bytes -= found->bytes;
    for (at = (at + 1) & (m->room - 1); m->used[at] != NULL;
         at = (at + 1) & (m->room - 1)) {
        piece *moved = m->used[at];
        m->used[at] = NULL;
        m->used[slot_of(m, moved->start)] = moved;
    }
    return found;
}

/* ---- free pieces, by size ---- */

/* Index of the free list for pieces of `bytes`; lists are in ascending order of size. */
static int list_of(size_t bytes)
{
    int doubling = 63 - __builtin_clzll((unsigned long long)bytes);
    size_t step = (bytes - ((size_t)1 << doubling)) >> (doubling - STEPS_BITS);
    return (doubling << STEPS_BITS) + (int)step;
}

static void add_to_free_list(ms_cuda_memory *m, piece *p)
{
    piece **list = &m->lists[list_of(p->bytes)];
    p->is_free = true;
    p->previous = NULL;
    p->next = *list;
    if (p->next != NULL)
        p->next->previous = p;
    *list = p;
}

static void remove_from_free_list(ms_cuda_memory *m, piece *p)
{
    if (p->previous != NULL)
        p->previous->next = p->next;
    else
        m->lists[list_of(p->bytes)] = p->next;
    if (p->next != NULL)
        p->next->previous = p->previous;
    p->is_free = false;
    p->previous = p->next = NULL;
}

/* The smallest free piece that fits; among equal ones the lowest address, so that
 * allocation is reproducible. */
static piece *best_fit(const ms_cuda_memory *m, size_t bytes)
{
    for (int i = list_of(bytes); i < NUM_LISTS; i++) {
        piece *best = NULL;
        for (piece *p = m->lists[i]; p != NULL; p = p->next) {
            bool fits = p->bytes >= bytes;
            bool is_better = best == NULL || p->bytes < best->bytes ||
                             (p->bytes == best->bytes && p->start < best->start);
            if (fits && is_better)
                best = p;
        }
        if (best != NULL)
            return best;
    }
    return NULL;
}

/* ---- blocks ---- */

static size_t round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

static void release_idle_blocks(ms_cuda_memory *m)
{
    for (block **at = &m->blocks; *at != NULL;) {
        block *b = *at;
        piece *whole = NULL;
        for (piece *p = m->lists[list_of(b->bytes)]; p != NULL; p = p->next)
            whole = p->start == b->memory && p->bytes == b->bytes ? p : whole;
        if (whole == NULL) {
            at = &b->next;
            continue;
        }
        remove_from_free_list(m, whole);
        recycle_record(m, whole);
        m->source.release(m->source.state, b->memory);
        m->held_bytes -= b->bytes;
        m->num_blocks--;
        *at = b->next;
        b->next = m->idle_blocks;
        m->idle_blocks = b;
    }
}

/* Requests a block of `least` bytes or, if possible, more: at least held_bytes / 2 and
 * least_block_bytes, so that blocks are few. */
static void *allocate_block(ms_cuda_memory *m, size_t least, size_t *bytes)
{
    size_t wanted = m->held_bytes / 2;
    wanted = wanted > m->source.least_block_bytes ? wanted : m->source.least_block_bytes;
    wanted = round_up(wanted > least ? wanted : least, m->source.page_bytes);
    size_t exact = round_up(least, m->source.page_bytes);
    *bytes = wanted;
    void *memory = m->source.allocate(m->source.state, wanted);
    if (memory != NULL)
        return memory;
    *bytes = exact;
    if (wanted > exact)
        memory = m->source.allocate(m->source.state, exact);
    if (memory != NULL)
        return memory;
    release_idle_blocks(m);
    return m->source.allocate(m->source.state, exact);
}

static piece *new_block(ms_cuda_memory *m, size_t least)
{
    size_t bytes;
    void *memory = allocate_block(m, least, &bytes);
    if (memory == NULL)
        return NULL;
    assert((uintptr_t)memory % MS_CUDA_ALIGNMENT == 0);
    block *b = m->idle_blocks;
    if (b == NULL)
        b = MS_NEW(m->arena, block);
    else
        m->idle_blocks = b->next;
    *b = (block){memory, bytes, m->blocks};
    m->blocks = b;
    m->num_blocks++;
    m->held_bytes += bytes;
    if (m->held_bytes > m->most_held_bytes)
        m->most_held_bytes = m->held_bytes;
    piece *whole = new_piece(m, (piece){.start = memory, .bytes = bytes});
    add_to_free_list(m, whole);
    return whole;
}

/* ---- allocation ---- */

ms_cuda_memory *ms_cuda_memory_open(ms_arena *arena, const ms_cuda_memory_source *source)
{
    ms_cuda_memory *m = MS_NEW(arena, ms_cuda_memory);
    m->arena = arena;
    m->source = *source;
    return m;
}

void ms_cuda_memory_close(ms_cuda_memory *memory)
{
    if (memory == NULL)
        return;
    for (block *b = memory->blocks; b != NULL; b = b->next)
        memory->source.release(memory->source.state, b->memory);
    *memory = (ms_cuda_memory){.arena = memory->arena, .source = memory->source};
}

static void split(ms_cuda_memory *m, piece *p, size_t bytes)
{
    if (p->bytes == bytes)
        return;
    piece *rest = new_piece(m, (piece){.start = p->start + bytes,
                                       .bytes = p->bytes - bytes,
                                       .before = p,
                                       .after = p->after});
    if (rest->after != NULL)
        rest->after->before = rest;
    p->after = rest;
    p->bytes = bytes;
    add_to_free_list(m, rest);
}

void *ms_cuda_memory_take(ms_cuda_memory *memory, size_t bytes)
{
    if (bytes == 0 || bytes > SIZE_MAX / 4)
        return NULL;
    bytes = round_up(bytes, MS_CUDA_ALIGNMENT);
    piece *p = best_fit(memory, bytes);
    if (p == NULL)
        p = new_block(memory, bytes);
    if (p == NULL)
        return NULL;
    remove_from_free_list(memory, p);
    split(memory, p, bytes);
    insert_used(memory, p);
    return p->start;
}

static void join_next(ms_cuda_memory *m, piece *p)
{
    piece *next = p->after;
    p->bytes += next->bytes;
    p->after = next->after;
    if (p->after != NULL)
        p->after->before = p;
    recycle_record(m, next);
}

void ms_cuda_memory_give(ms_cuda_memory *memory, void *part)
{
    if (part == NULL)
        return;
    piece *p = remove_used(memory, part);
    if (p->after != NULL && p->after->is_free) {
        remove_from_free_list(memory, p->after);
        join_next(memory, p);
    }
    if (p->before != NULL && p->before->is_free) {
        p = p->before;
        remove_from_free_list(memory, p);
        join_next(memory, p);
    }
    add_to_free_list(memory, p);
}

ms_cuda_memory_figures ms_cuda_memory_look(const ms_cuda_memory *memory)
{
    ms_cuda_memory_figures out = {.held_bytes = (double)memory->held_bytes,
                                  .most_held_bytes = (double)memory->most_held_bytes,
                                  .used_bytes = (double)memory->used_bytes,
                                  .most_used_bytes = (double)memory->most_used_bytes,
                                  .num_blocks = memory->num_blocks,
                                  .num_parts = memory->num_used};
    size_t largest = 0;
    for (int i = NUM_LISTS; i-- > 0 && largest == 0;)
        for (const piece *p = memory->lists[i]; p != NULL; p = p->next)
            largest = p->bytes > largest ? p->bytes : largest;
    out.largest_free_bytes = (double)largest;
    double idle = out.held_bytes - out.used_bytes;
    out.fragmentation = idle > 0.0 ? 1.0 - out.largest_free_bytes / idle : 0.0;
    return out;
}
