#include "exec/rank.h"

static ms_status no_memory(ms_rank *rank, double bytes)
{
    ms_fail(rank->cx, MS_EIO, MS_NOWHERE,
            "rank %ld has no memory for %.0f bytes beside the %.0f that it holds",
            rank->place->rank, bytes,
            rank->ledger.now_total_bytes + rank->ledger.workspace_bytes);
    ms_hint(rank->cx, "take a smaller micro-batch, more recomputation or more shards");
    return MS_EIO;
}

static ms_status allocate(ms_rank *rank, double bytes, void **out)
{
    *out = NULL;
    if (bytes <= 0.0 || !rank->backend->has_values)
        return MS_OK;
    *out = rank->backend->allocate(rank->device, (size_t)bytes);
    return *out != NULL ? MS_OK : no_memory(rank, bytes);
}

static void release(ms_rank *rank, double bytes, void *memory)
{
    if (memory != NULL)
        rank->backend->release(rank->device, memory, (size_t)bytes);
}

ms_status ms_rank_allocate(ms_rank *rank, ms_memory_part part, double bytes, void **out)
{
    MS_TRY(allocate(rank, bytes, out));
    ms_ledger_add(&rank->ledger, part, bytes);
    return MS_OK;
}

void ms_rank_release(ms_rank *rank, ms_memory_part part, double bytes, void *memory)
{
    release(rank, bytes, memory);
    ms_ledger_add(&rank->ledger, part, -bytes);
}

ms_status ms_rank_workspace(ms_rank *rank, double bytes, void **out)
{
    MS_TRY(allocate(rank, bytes, out));
    ms_ledger_add_workspace(&rank->ledger, bytes);
    return MS_OK;
}

void ms_rank_release_workspace(ms_rank *rank, double bytes, void *memory)
{
    release(rank, bytes, memory);
    ms_ledger_add_workspace(&rank->ledger, -bytes);
}
