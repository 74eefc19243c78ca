/* Communicators of the fake GPU (tests/support/cuda_fake.h), whose ranks are threads of
 * one process. */
#include "tests/support/cuda_fake_priv.h"

#include <string.h>

/* ---- one collective or send, once all that it concerns are there ---- */

static bool is_of_all(const ms_cuda_collective *c)
{
    return c->kind != MS_CUDA_SEND && c->kind != MS_CUDA_RECEIVE;
}

/* The rank's oldest communication, if it is at the head of its stream; NULL: none, or its
 * rank or communicator cannot go on. */
static fake_item *current(const ms_cuda_comm *comm)
{
    if (comm == NULL || comm->is_aborted || comm->group->has_failed ||
        comm->world_rank == fake.lost_rank || comm->device->has_failed)
        return NULL;
    fake_item *item = comm->first;
    return item != NULL && item->stream->first == item && !fake_places(item) &&
                   !fake_is_held_up(item)
               ? item
               : NULL;
}

/* Index of an item's first collective (peer < 0), or first send to or receive from
 * `peer`, that is not done; -1: none. */
static int first_open(const fake_item *item, ms_cuda_collective_kind kind, int peer)
{
    for (int i = 0; i < item->num_collectives; i++) {
        const ms_cuda_collective *c = &item->collectives[i];
        if (!item->is_done[i] &&
            (peer < 0 ? is_of_all(c) : c->kind == kind && c->peer == peer))
            return i;
    }
    return -1;
}

static bool begin_collective(fake_group *group)
{
    if (fake.fail_collective > 0 && --fake.fail_collective == 0)
        group->has_failed = true;
    return !group->has_failed;
}

static size_t send_bytes(const ms_cuda_collective *c, int size)
{
    long count = c->kind == MS_CUDA_REDUCE_SCATTER ? c->count * size : c->count;
    return c->kind == MS_CUDA_RECEIVE ? 0 : (size_t)count * ms_scalar_bytes(c->scalar);
}

static size_t receive_bytes(const ms_cuda_collective *c, int size)
{
    long count = c->kind == MS_CUDA_ALL_GATHER ? c->count * size : c->count;
    return c->kind == MS_CUDA_SEND ? 0 : (size_t)count * ms_scalar_bytes(c->scalar);
}

static bool match(const ms_cuda_collective *a, const ms_cuda_collective *b)
{
    return a->kind == b->kind && a->scalar == b->scalar && a->maximum == b->maximum &&
           a->count == b->count;
}

/* Runs one collective for all ranks; copies all sent data first, as send and receive may
 * be the same memory. */
static void run_for_all(const ms_cuda_collective *const *of, int size)
{
    size_t bytes = send_bytes(of[0], size), got = receive_bytes(of[0], size);
    unsigned char *sent = fake_zeroed(bytes * (size_t)size + 1);
    const void **parts = fake_zeroed((size_t)size * sizeof *parts);
    for (int r = 0; r < size; r++)
        memcpy(sent + (size_t)r * bytes, of[r]->send, bytes);
    for (int r = 0; r < size; r++) {
        size_t first = of[0]->kind == MS_CUDA_REDUCE_SCATTER ? (size_t)r * got : 0;
        for (int other = 0; other < size; other++)
            parts[other] = sent + (size_t)other * bytes + first;
        if (of[0]->kind == MS_CUDA_ALL_GATHER)
            memcpy(of[r]->receive, sent, got);
        else
            fake_reduce(of[0]->scalar, of[0]->maximum, of[r]->receive, parts, size,
                        of[0]->count);
    }
    free(sent);
    free(parts);
}

static bool step_for_all(fake_item *item, bool try_only)
{
    fake_group *group = item->comm->group;
    const ms_cuda_collective **of = fake_zeroed((size_t)group->size * sizeof *of);
    bool is_ready = true;
    for (int r = 0; r < group->size && is_ready; r++) {
        fake_item *theirs = current(group->members[r]);
        int i = theirs != NULL ? first_open(theirs, MS_CUDA_SEND, -1) : -1;
        is_ready = i >= 0;
        of[r] = is_ready ? &theirs->collectives[i] : NULL;
    }
    if (is_ready && !try_only) {
        for (int r = 1; r < group->size && !group->has_failed; r++) {
            if (!match(of[0], of[r])) {
                fake_note_defect(
                    "ranks 0 and %d start different collectives: kinds %d and %d, counts %ld and %ld, types %d and %d",
                    r, (int)of[0]->kind, (int)of[r]->kind, of[0]->count, of[r]->count,
                    (int)of[0]->scalar, (int)of[r]->scalar);
                group->has_failed = true;
            }
        }
        is_ready = !group->has_failed && begin_collective(group);
        if (is_ready && of[0]->count > 0)
            run_for_all(of, group->size);
        for (int r = 0; r < group->size && is_ready; r++) {
            fake_item *theirs = current(group->members[r]);
            theirs->is_done[of[r] - theirs->collectives] = true;
        }
    }
    free(of);
    return is_ready;
}

static bool step_to_peer(fake_item *item, int i, bool try_only)
{
    ms_cuda_collective *mine = &item->collectives[i];
    fake_group *group = item->comm->group;
    fake_item *theirs = current(group->members[mine->peer]);
    bool sends = mine->kind == MS_CUDA_SEND;
    if (theirs == NULL || first_open(item, mine->kind, mine->peer) != i)
        return false;
    int j = first_open(theirs, sends ? MS_CUDA_RECEIVE : MS_CUDA_SEND, item->comm->rank);
    if (j < 0 || try_only)
        return j >= 0;
    const ms_cuda_collective *send = sends ? mine : &theirs->collectives[j],
                             *receive = sends ? &theirs->collectives[j] : mine;
    if (send->count != receive->count || send->scalar != receive->scalar) {
        fake_note_defect("a send of %ld meets a receive of %ld, types %d and %d",
                         send->count, receive->count, (int)send->scalar,
                         (int)receive->scalar);
        group->has_failed = true;
    }
    if (group->has_failed || !begin_collective(group))
        return false;
    if (send->count > 0)
        memmove(receive->receive, send->send, send_bytes(send, 1));
    item->is_done[i] = theirs->is_done[j] = true;
    return true;
}

bool fake_communicate_step(fake_item *item, bool try_only)
{
    if (current(item->comm) != item)
        return false;
    for (int i = 0; i < item->num_collectives; i++) {
        if (!item->is_done[i] &&
            (is_of_all(&item->collectives[i]) ? step_for_all(item, try_only)
                                              : step_to_peer(item, i, try_only)))
            return true;
    }
    return false;
}

/* ---- open ---- */

static fake_group *new_group(int size)
{
    fake_group *group = FAKE_NEW(fake_group);
    group->size = size;
    group->members = fake_zeroed((size_t)size * sizeof *group->members);
    group->next = fake.groups;
    fake.groups = group;
    return group;
}

static ms_cuda_comm *new_comm(fake_group *group, ms_cuda_device *device, int rank,
                              int world_rank)
{
    ms_cuda_comm *comm = FAKE_NEW(ms_cuda_comm);
    comm->device = device;
    comm->group = group;
    comm->rank = rank;
    comm->world_rank = world_rank;
    comm->is_open = true;
    comm->next = fake.comms;
    fake.comms = comm;
    group->members[rank] = comm;
    return comm;
}

void fake_free_groups(void)
{
    while (fake.groups != NULL) {
        fake_group *group = fake.groups;
        fake.groups = group->next;
        while (group->splits != NULL) {
            fake_split *split = group->splits;
            group->splits = split->next;
            free(split->color);
            free(split->key);
            free(split->made);
            free(split);
        }
        free(group->members);
        free(group);
    }
    while (fake.comms != NULL) {
        ms_cuda_comm *comm = fake.comms;
        fake.comms = comm->next;
        free(comm);
    }
}

ms_status fake_make_id(ms_ctx *cx, ms_cuda_id *out)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_MAKE_ID);
    for (int i = 0; i < MS_CUDA_ID_BYTES; i++)
        out->bytes[i] = (unsigned char)ms_rng_below(&fake.rng, 256);
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "make_id") : MS_OK;
}

static fake_group *group_of(const ms_cuda_id *id, int size)
{
    for (fake_group *g = fake.groups; g != NULL; g = g->next)
        if (g->has_id && memcmp(&g->id, id, sizeof *id) == 0)
            return g;
    fake_group *group = new_group(size);
    group->id = *id;
    group->has_id = true;
    return group;
}

ms_status fake_open_comm(ms_ctx *cx, ms_cuda_device *device, const ms_cuda_id *id,
                         int rank, int size, ms_cuda_comm **out)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_OPEN_COMM);
    *out = NULL;
    fake_expect_entered(device, "open_comm");
    fake_group *group = fails ? NULL : group_of(id, size);
    struct timespec since = fake_now();
    if (group != NULL) {
        if (group->size != size || rank < 0 || rank >= size || group->members[rank])
            fake_note_defect("open_comm: rank %d of %d came to a communicator of %d",
                             rank, size, group->size);
        else
            *out = new_comm(group, device, rank, rank);
        group->num_arrived++;
        pthread_cond_broadcast(&fake_change);
        while (!fails && group->num_arrived < size)
            fails = !fake_pause(since);
        if (fails && *out != NULL) {
            (*out)->is_open = false;
            *out = NULL;
        }
    }
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "open_comm: a rank did not come") : MS_OK;
}

/* ---- split ---- */

static fake_split *split_of(fake_group *group, int number)
{
    for (fake_split *s = group->splits; s != NULL; s = s->next)
        if (s->number == number)
            return s;
    fake_split *split = FAKE_NEW(fake_split);
    size_t size = (size_t)group->size;
    split->number = number;
    split->color = fake_zeroed(size * sizeof *split->color);
    split->key = fake_zeroed(size * sizeof *split->key);
    split->made = fake_zeroed(size * sizeof(ms_cuda_comm *));
    split->next = group->splits;
    group->splits = split;
    return split;
}

/* Whether rank `a` comes before rank `b` in a split communicator: by key, then by
 * rank. */
static bool is_before(const fake_split *split, int a, int b)
{
    return split->key[a] < split->key[b] || (split->key[a] == split->key[b] && a < b);
}

static void make_group(fake_group *parent, fake_split *split, int color)
{
    int size = 0;
    for (int r = 0; r < parent->size; r++)
        size += split->color[r] == color;
    fake_group *group = new_group(size);
    for (int r = 0; r < parent->size; r++) {
        int rank = 0;
        for (int other = 0; other < parent->size; other++)
            rank += split->color[other] == color && is_before(split, other, r);
        if (split->color[r] == color)
            split->made[r] = new_comm(group, parent->members[r]->device, rank,
                                      parent->members[r]->world_rank);
    }
}

static void make_groups(fake_group *parent, fake_split *split)
{
    for (int r = 0; r < parent->size; r++)
        if (split->color[r] >= 0 && split->made[r] == NULL)
            make_group(parent, split, split->color[r]);
    split->is_done = true;
    pthread_cond_broadcast(&fake_change);
}

ms_status fake_split_comm(ms_ctx *cx, ms_cuda_comm *comm, const ms_cuda_split *how,
                          ms_cuda_comm **out)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_SPLIT) || comm->is_aborted;
    fake_expect_entered(comm->device, "split");
    struct timespec since = fake_now();
    *out = NULL;
    if (!fails) {
        fake_split *split = split_of(comm->group, comm->num_splits++);
        split->color[comm->rank] = how->color;
        split->key[comm->rank] = how->key;
        if (++split->num_arrived == comm->group->size)
            make_groups(comm->group, split);
        while (!fails && !split->is_done)
            fails = comm->is_aborted || !fake_pause(since);
        *out = split->made[comm->rank];
    }
    if (*out != NULL) {
        (*out)->max_ctas = how->max_ctas;
        (*out)->is_parent = how->is_parent;
        (*out)->shared = comm->is_parent ? comm : NULL;
    }
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "split: a rank did not come") : MS_OK;
}

/* ---- work ---- */

static void expect_operands(const ms_cuda_collective *c, int size)
{
    fake_expect_memory(c->send, send_bytes(c, size), false, "communicate: send");
    fake_expect_memory(c->receive, receive_bytes(c, size), false, "communicate: receive");
    if (!is_of_all(c) && (c->peer < 0 || c->peer >= size))
        fake_note_defect("communicate: peer %d of %d ranks", c->peer, size);
}

static void give(ms_cuda_comm *comm, ms_cuda_stream *stream,
                 const ms_cuda_collective *collectives, int num)
{
    fake_item *item = fake_give(stream, FAKE_COMMUNICATE);
    size_t bytes = (size_t)num * sizeof *collectives;
    item->comm = comm;
    item->collectives = fake_zeroed(bytes);
    memcpy(item->collectives, collectives, bytes);
    item->is_done = fake_zeroed((size_t)num * sizeof *item->is_done);
    item->num_collectives = num;
    if (comm->last != NULL)
        comm->last->next_of_comm = item;
    else
        comm->first = item;
    comm->last = item;
}

ms_status fake_communicate(ms_ctx *cx, ms_cuda_comm *comm, ms_cuda_stream *stream,
                           const ms_cuda_collective *collectives, int num)
{
    pthread_mutex_lock(&fake_lock);
    /* lock: another thread may abort the communicator meanwhile */
    bool fails =
        fake_call(MS_FAKE_COMMUNICATE) || comm->device->has_failed || comm->is_aborted;
    fake_expect_entered(comm->device, "communicate");
    if (!comm->is_open || !stream->is_open || stream->device != comm->device)
        fake_note_defect("communicate: closed, or a stream of another device");
    for (int i = 0; i < num; i++)
        expect_operands(&collectives[i], comm->group->size);
    if (!fails && num > 0)
        give(comm, stream, collectives, num);
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "communicate") : MS_OK;
}

ms_status fake_check_comm(ms_ctx *cx, ms_cuda_comm *comm)
{
    pthread_mutex_lock(&fake_lock);
    bool fails = fake_call(MS_FAKE_CHECK_COMM) || comm->group->has_failed;
    if (!comm->is_open)
        fake_note_defect("check_comm of a closed communicator");
    pthread_mutex_unlock(&fake_lock);
    return fails ? fake_failure(cx, "the communicator") : MS_OK;
}

void fake_abort_comm(ms_cuda_comm *comm)
{
    pthread_mutex_lock(&fake_lock);
    fake_call(MS_FAKE_ABORT_COMM);
    if (!comm->is_open)
        fake_note_defect("abort of a closed communicator");
    comm->is_aborted = true;
    pthread_cond_broadcast(&fake_change);
    pthread_mutex_unlock(&fake_lock);
}

void fake_close_comm(ms_cuda_comm *comm)
{
    if (comm == NULL)
        return;
    pthread_mutex_lock(&fake_lock);
    if (!comm->is_open)
        fake_note_defect("a communicator is closed twice");
    if (comm->first != NULL && !comm->is_aborted && !comm->device->has_failed)
        fake_note_defect("a communicator is closed before its work is done");
    comm->is_open = false;
    pthread_mutex_unlock(&fake_lock);
}
