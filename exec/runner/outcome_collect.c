#include "exec/runner/outcome_collect.h"

#include "base/number.h"

#include <string.h>

/* ---- serialization of one rank ---- */

/* Head of a rank's serialized outcome. Step times, memory samples, time slices and names
 * follow; slices store names as offsets from the start of the names. */
typedef struct header {
    long rank;
    ms_ledger ledger;
    long num_steps, num_samples, num_slices, num_text;
} header;

static size_t text_length(const ms_recorder *recorder)
{
    size_t length = 0;
    const char *last = NULL;
    for (long i = 0; i < recorder->num; i++) {
        const char *name = recorder->slices[i].name;
        length += name == last ? 0 : strlen(name) + 1;
        last = name;
    }
    return length;
}

/* Copies time slices to `slices`, names to `text`; successive equal names only once. */
static void pack_slices(const ms_recorder *recorder, ms_recorded *slices, char *text)
{
    size_t at = 0, start = 0;
    const char *last = NULL;
    for (long i = 0; i < recorder->num; i++) {
        const char *name = recorder->slices[i].name;
        if (name != last) {
            start = at;
            at += strlen(name) + 1;
            memcpy(text + start, name, at - start);
        }
        last = name;
        ms_recorded slice = recorder->slices[i];
        slice.name = NULL;
        memcpy(&slices[i], &slice, sizeof slice);
        memcpy(&slices[i].name, &start, sizeof start);
    }
}

ms_packed ms_rank_outcome_pack(ms_arena *arena, const ms_rank_outcome *rank,
                               long num_steps)
{
    size_t text = text_length(&rank->recorder);
    header head = {.rank = rank->rank,
                   .ledger = rank->ledger,
                   .num_steps = num_steps,
                   .num_samples = rank->num_samples,
                   .num_slices = rank->recorder.num,
                   .num_text = (long)text};
    size_t samples = (size_t)rank->num_samples * sizeof(ms_ledger_sample);
    size_t slices = (size_t)rank->recorder.num * sizeof(ms_recorded);
    size_t steps = (size_t)num_steps * sizeof(double);
    size_t bytes = sizeof head + steps + samples + slices + text;
    bytes += (sizeof(long) - bytes % sizeof(long)) % sizeof(long);
    char *out = ms_arena_alloc(arena, bytes);
    memcpy(out, &head, sizeof head);
    char *at = out + sizeof head;
    if (steps > 0)
        memcpy(at, rank->step_s, steps);
    if (samples > 0)
        memcpy(at + steps, rank->samples, samples);
    at += steps + samples;
    pack_slices(&rank->recorder, (ms_recorded *)(void *)at, at + slices);
    return (ms_packed){bytes, out};
}

static void unpack_slices(ms_arena *arena, const header *head, const char *at,
                          ms_recorder *out)
{
    size_t bytes = (size_t)head->num_slices * sizeof(ms_recorded);
    char *text = ms_arena_alloc(arena, (size_t)head->num_text + 1);
    memcpy(text, at + bytes, (size_t)head->num_text);
    out->on = true;
    for (long i = 0; i < head->num_slices; i++) {
        ms_recorded slice;
        size_t start;
        memcpy(&slice, at + (size_t)i * sizeof slice, sizeof slice);
        memcpy(&start, &slice.name, sizeof start);
        slice.name = text + start;
        out->action = slice.action;
        out->microbatch = slice.microbatch;
        out->stage = slice.stage;
        ms_recorder_add(out, slice);
    }
    out->on = false;
}

void ms_rank_outcome_unpack(ms_arena *arena, const ms_packed *packed,
                            ms_rank_outcome *out)
{
    header head;
    memcpy(&head, packed->bytes, sizeof head);
    *out = (ms_rank_outcome){
        .rank = head.rank, .ledger = head.ledger, .num_samples = (int)head.num_samples};
    const char *at = (const char *)packed->bytes + sizeof head;
    double *step_s = MS_NEW_ARRAY(arena, head.num_steps, double);
    memcpy(step_s, at, (size_t)head.num_steps * sizeof *step_s);
    out->step_s = step_s;
    at += (size_t)head.num_steps * sizeof *step_s;
    ms_ledger_sample *samples = MS_NEW_ARRAY(arena, head.num_samples, ms_ledger_sample);
    size_t bytes = (size_t)head.num_samples * sizeof *samples;
    memcpy(samples, at, bytes);
    out->samples = samples;
    unpack_slices(arena, &head, at + bytes, &out->recorder);
}

/* ---- all ranks ---- */

typedef struct collection {
    ms_arena *arena; /* memory of the collected outcomes */
    const ms_backend_job *job;
    const ms_outcome *outcome;
    ms_rank_outcome *all; /* outcomes of all ranks; filled in on rank 0 */
} collection;

#define SIZE_TAG  1
#define BYTES_TAG 2

static ms_transfer host_message(ms_transfer_kind kind, long peer, int tag, long count)
{
    return (ms_transfer){.kind = (unsigned char)kind,
                         .scalar = MS_SCALAR_LONG,
                         .on_host = true,
                         .stream = kind == MS_TRANSFER_SEND ? MS_STREAM_SEND
                                                            : MS_STREAM_RECEIVE,
                         .peer = peer,
                         .tag = tag,
                         .count = count,
                         .name = "collect records"};
}

static ms_status transfer(ms_ctx *cx, const collection *c, ms_device_rank *device,
                          const ms_transfer *what)
{
    ms_event done;
    MS_TRY(c->job->backend->start(cx, device, what, NULL, 0, &done));
    return c->job->backend->wait(cx, device, done);
}

static ms_status send_outcome(ms_ctx *cx, const collection *c, ms_device_rank *device,
                              const ms_rank_outcome *outcome)
{
    ms_packed packed = ms_rank_outcome_pack(cx->arena, outcome, c->outcome->steps_done);
    long count = (long)(packed.num_bytes / sizeof(long));
    ms_transfer size = host_message(MS_TRANSFER_SEND, 0, SIZE_TAG, 1);
    size.send = &count;
    MS_TRY(transfer(cx, c, device, &size));
    ms_transfer bytes = host_message(MS_TRANSFER_SEND, 0, BYTES_TAG, count);
    bytes.send = packed.bytes;
    return transfer(cx, c, device, &bytes);
}

static ms_status receive_outcome(ms_ctx *cx, const collection *c, ms_device_rank *device,
                                 long peer)
{
    long count = 0;
    ms_transfer size = host_message(MS_TRANSFER_RECEIVE, peer, SIZE_TAG, 1);
    size.receive = &count;
    MS_TRY(transfer(cx, c, device, &size));
    ms_packed packed = {(size_t)count * sizeof(long), NULL};
    packed.bytes = ms_arena_alloc(c->arena, packed.num_bytes);
    ms_transfer bytes = host_message(MS_TRANSFER_RECEIVE, peer, BYTES_TAG, count);
    bytes.receive = packed.bytes;
    MS_TRY(transfer(cx, c, device, &bytes));
    ms_rank_outcome_unpack(c->arena, &packed, &c->all[peer]);
    return MS_OK;
}

static const ms_rank_outcome *find_rank_outcome(const ms_outcome *outcome, long rank)
{
    for (long r = 0; r < outcome->num_ranks; r++)
        if (outcome->ranks[r].rank == rank)
            return &outcome->ranks[r];
    return NULL;
}

static ms_status collect_rank(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    const collection *c = state;
    const ms_rank_outcome *outcome = find_rank_outcome(c->outcome, rank);
    if (rank != 0)
        return send_outcome(cx, c, device, outcome);
    c->all[0] = *outcome;
    for (long peer = 1; peer < c->job->world->num_ranks; peer++)
        MS_TRY(receive_outcome(cx, c, device, peer));
    return MS_OK;
}

void ms_outcome_find_step_times(ms_outcome *outcome)
{
    for (long r = 0; r < outcome->num_ranks; r++)
        for (long step = 0; step < outcome->steps_done; step++)
            outcome->step_s[step] =
                ms_max(outcome->step_s[step], outcome->ranks[r].step_s[step]);
}

static void close_recorders(ms_rank_outcome *ranks, long num)
{
    for (long r = 0; r < num; r++)
        ms_recorder_close(&ranks[r].recorder);
}

ms_status ms_outcome_collect(ms_ctx *cx, ms_backend_job *job, ms_outcome *outcome)
{
    long num_ranks = job->world->num_ranks;
    if (outcome->num_ranks == num_ranks)
        return MS_OK;
    collection c = {cx->arena, job, outcome,
                    MS_NEW_ARRAY(cx->arena, num_ranks, ms_rank_outcome)};
    ms_status status = job->backend->run(cx, job, collect_rank, &c);
    if (status != MS_OK) {
        /* c.all[0] has the recorder of `outcome` */
        close_recorders(c.all + 1, num_ranks - 1);
        return status;
    }
    if (!job->backend->carries(job, 0))
        return MS_OK;
    outcome->ranks = c.all;
    outcome->num_ranks = num_ranks;
    ms_outcome_find_step_times(outcome);
    return MS_OK;
}

void ms_outcome_close(ms_outcome *outcome)
{
    close_recorders(outcome->ranks, outcome->num_ranks);
    outcome->num_ranks = 0;
}
