#include "exec/core/backend.h"

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
    if (transfer->kind >= MS_TRANSFER_SEND) {
        /* tags from MS_MAX_TAG on are internal to a backend and not shown */
        const char *tag = transfer->tag < MS_MAX_TAG
                              ? ms_arena_printf(arena, ", tag %d", transfer->tag)
                              : "";
        return ms_arena_printf(arena, "%s (%s %s rank %ld%s)", name, kind,
                               transfer->kind == MS_TRANSFER_SEND ? "to" : "from",
                               transfer->peer, tag);
    }
    const char *group =
        ms_traffic_group_name(world->plan, (ms_traffic_group)transfer->group);
    return ms_arena_printf(arena, "%s (%s over %s)", name, kind, group);
}

ms_status ms_transfer_no_memory(ms_ctx *cx, const ms_world *world,
                                const ms_transfer *transfer)
{
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory is left for %s",
                   ms_transfer_text(cx->arena, world, transfer));
}

/* The ranks that a transfer waits for: "rank 3", "one of ranks 0, 3". */
static const char *other_ranks_text(ms_arena *arena, const ms_world *world, long own,
                                    const ms_transfer *transfer)
{
    if (transfer->kind >= MS_TRANSFER_SEND)
        return ms_arena_printf(arena, "rank %ld", transfer->peer);
    const ms_members *members = &world->members[transfer->group][own];
    const char *text = NULL;
    for (int i = 0; i < members->size; i++) {
        if (i == members->own)
            continue;
        long rank = members->ranks[i];
        text = text == NULL ? ms_arena_printf(arena, "%ld", rank)
                            : ms_arena_printf(arena, "%s, %ld", text, rank);
    }
    return ms_arena_printf(arena, members->size == 2 ? "rank %s" : "one of ranks %s",
                           text);
}

ms_status ms_transfer_waited(ms_ctx *cx, const ms_world *world, long rank,
                             const ms_transfer *transfer, double waited_s)
{
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "waited %g s for %s: %s has not come",
                   waited_s, ms_transfer_text(cx->arena, world, transfer),
                   other_ranks_text(cx->arena, world, rank, transfer));
}

bool ms_transfer_comes_before(const ms_transfer *first, const ms_transfer *then)
{
    if (then->kind < MS_TRANSFER_SEND)
        return first->kind < MS_TRANSFER_SEND && first->stream == then->stream;
    return first->kind == then->kind && first->peer == then->peer &&
           first->tag == then->tag;
}

ms_recorded ms_transfer_moves(const ms_transfer *t, double begin_s, double end_s)
{
    return (ms_recorded){.stream = t->stream,
                         .kind = MS_TASK_COLLECTIVE,
                         .name = t->name,
                         .start_s = begin_s,
                         .end_s = end_s,
                         .predicted_s = t->predicted_s,
                         .moves = true};
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
