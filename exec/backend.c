#include "exec/backend.h"

const char *const ms_transfer_kind_names[] = {[MS_TRANSFER_ALL_GATHER] = "all-gather",
                                              [MS_TRANSFER_REDUCE_SCATTER] =
                                                  "reduce-scatter",
                                              [MS_TRANSFER_ALL_REDUCE] = "all-reduce",
                                              [MS_TRANSFER_ALL_TO_ALL] = "all-to-all",
                                              [MS_TRANSFER_SEND] = "send",
                                              [MS_TRANSFER_RECEIVE] = "receive",
                                              NULL};

const char *ms_transfer_text(ms_arena *arena, const ms_world *world,
                             const ms_transfer *transfer)
{
    const char *name = transfer->name != NULL ? transfer->name : "a transfer";
    const char *kind = ms_transfer_kind_names[transfer->kind];
    if (transfer->kind >= MS_TRANSFER_SEND)
        return ms_arena_printf(arena, "%s (%s %s rank %ld, tag %d)", name, kind,
                               transfer->kind == MS_TRANSFER_SEND ? "to" : "from",
                               transfer->peer, transfer->tag);
    const char *group =
        ms_traffic_group_name(world->plan, (ms_traffic_group)transfer->group);
    return ms_arena_printf(arena, "%s (%s over %s)", name, kind, group);
}

size_t ms_element_bytes(ms_real_type type, ms_element element)
{
    if (element == MS_ELEMENT_LONG)
        return sizeof(long);
    return element == MS_ELEMENT_REAL && type == MS_REAL_FP32 ? sizeof(float)
                                                              : sizeof(double);
}

ms_status ms_rank_failed(ms_ctx *cx, long rank, const ms_ctx *of_rank, ms_status status)
{
    const ms_diag *d = of_rank->first;
    if (status == MS_OK)
        status = MS_EIO;
    if (d == NULL && status != MS_EINTERRUPTED)
        ms_fail(cx, status, MS_NOWHERE, "rank %ld: gave up", rank);
    if (d == NULL)
        return status;
    ms_fail(cx, d->status, d->loc, "rank %ld: %s", rank, d->message);
    if (d->hint != NULL)
        ms_hint(cx, "%s", d->hint);
    return status;
}

const ms_backend *ms_mpi_backend(void)
{
#ifdef MS_WITH_MPI
    return &ms_backend_mpi;
#else
    return NULL;
#endif
}
