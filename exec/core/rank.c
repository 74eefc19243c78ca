#include "exec/core/rank.h"

#include <stdint.h>

static ms_status no_memory(ms_rank *rank, double bytes)
{
    ms_fail(rank->cx, MS_EIO, MS_NOWHERE,
            "no memory is left for %.0f bytes in addition to the %.0f allocated", bytes,
            rank->ledger.now_total_bytes + rank->ledger.workspace_bytes);
    return ms_hint(rank->cx,
                   "use a smaller micro-batch, more recomputation or more shards");
}

ms_scalar ms_rank_scalar(const ms_rank *rank, const ms_program *program, int tensor)
{
    return ms_tensor_scalar(program, tensor, &rank->precision);
}

/* ---- table of held memory ---- */

static long held_index(const ms_rank *rank, const void *memory)
{
    uint64_t hash = (uint64_t)(uintptr_t)memory * 0x9E3779B97F4A7C15ULL;
    long at = (long)(hash >> 33) & (rank->table_size - 1);
    while (rank->held[at].memory != NULL && rank->held[at].memory != memory)
        at = (at + 1) & (rank->table_size - 1);
    return at;
}

static void grow_held(ms_rank *rank)
{
    ms_held_memory *old = rank->held;
    long old_size = rank->table_size;
    long more = old_size > 0 ? 2 * old_size : 256;
    rank->held = MS_NEW_ARRAY(rank->cx->arena, more, ms_held_memory);
    rank->table_size = more;
    for (long i = 0; i < old_size; i++)
        if (old[i].memory != NULL)
            rank->held[held_index(rank, old[i].memory)] = old[i];
}

static void add_held(ms_rank *rank, void *memory, double bytes)
{
    if (2 * (rank->num_held + 1) > rank->table_size)
        grow_held(rank);
    rank->held[held_index(rank, memory)] = (ms_held_memory){memory, bytes};
    rank->num_held++;
}

/* Removes an entry of the hash table and re-inserts those behind it in its cluster. */
static void remove_held(ms_rank *rank, const void *memory)
{
    long at = held_index(rank, memory);
    rank->held[at].memory = NULL;
    rank->num_held--;
    for (at = (at + 1) & (rank->table_size - 1); rank->held[at].memory != NULL;
         at = (at + 1) & (rank->table_size - 1)) {
        ms_held_memory moved = rank->held[at];
        rank->held[at].memory = NULL;
        rank->held[held_index(rank, moved.memory)] = moved;
    }
}

void ms_rank_release_all(ms_rank *rank)
{
    for (long i = 0; i < rank->table_size; i++)
        if (rank->held[i].memory != NULL)
            rank->backend->release(rank->device, rank->held[i].memory,
                                   (size_t)rank->held[i].bytes);
    rank->num_held = rank->table_size = 0;
}

static ms_status allocate_held(ms_rank *rank, double bytes, void **out)
{
    *out = NULL;
    if (bytes <= 0.0 || !rank->backend->has_values)
        return MS_OK;
    *out = rank->backend->allocate(rank->device, (size_t)bytes);
    if (*out == NULL)
        return no_memory(rank, bytes);
    add_held(rank, *out, bytes);
    return MS_OK;
}

static void release_held(ms_rank *rank, double bytes, void *memory)
{
    if (memory == NULL)
        return;
    remove_held(rank, memory);
    rank->backend->release(rank->device, memory, (size_t)bytes);
}

/* ---- allocation by category ---- */

ms_status ms_rank_allocate(ms_rank *rank, ms_memory_category part, double bytes,
                           void **out)
{
    MS_TRY(allocate_held(rank, bytes, out));
    ms_ledger_add(&rank->ledger, part, bytes);
    return MS_OK;
}

void ms_rank_release(ms_rank *rank, ms_memory_category part, double bytes, void *memory)
{
    release_held(rank, bytes, memory);
    ms_ledger_add(&rank->ledger, part, -bytes);
}

ms_status ms_rank_workspace(ms_rank *rank, double bytes, void **out)
{
    MS_TRY(allocate_held(rank, bytes, out));
    ms_ledger_add_workspace(&rank->ledger, bytes);
    return MS_OK;
}

void ms_rank_release_workspace(ms_rank *rank, double bytes, void *memory)
{
    release_held(rank, bytes, memory);
    ms_ledger_add_workspace(&rank->ledger, -bytes);
}

ms_status ms_rank_allocate_on_host(ms_rank *rank, double bytes, void **out)
{
    MS_TRY(allocate_held(rank, bytes, out));
    ms_ledger_add_host(&rank->ledger, bytes);
    return MS_OK;
}

void ms_rank_release_on_host(ms_rank *rank, double bytes, void *memory)
{
    release_held(rank, bytes, memory);
    ms_ledger_add_host(&rank->ledger, -bytes);
}

void ms_rank_copy(const ms_rank *rank, void *to, const void *from, double bytes)
{
    if (rank->backend->has_values && bytes > 0.0)
        rank->backend->arrays->copy(rank->device, to, from, (size_t)bytes);
}
