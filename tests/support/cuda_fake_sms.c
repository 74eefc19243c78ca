/* Multiprocessors and hardware queues of the fake GPU (tests/support/cuda_fake.h): which
 * pieces of work can be placed on the GPU, and what they hold until they end.
 *
 * - A queue's work is placed in the order in which it was given, whatever its stream; a
 *   piece that cannot be placed yet holds up all behind it.
 * - A kernel of compute is placed with one multiprocessor at least, and takes all free
 *   ones up to its random number of blocks. It ends by itself.
 * - A kernel of a communicator needs one multiprocessor for each of its blocks, holds
 *   those that it has, and ends only when all its ranks' kernels have all theirs.
 * - Free multiprocessors go to urgent streams first. */
#include "tests/support/cuda_fake_priv.h"

/* NCCL's own limit of blocks (user guide, ncclConfig_t, maxCTAs) */
#define MOST_CTAS  32
#define MOST_TURNS 4

static bool is_kernel(const fake_item *item)
{
    return item->kind == FAKE_LAUNCH || item->kind == FAKE_GEMM ||
           item->kind == FAKE_COMMUNICATE;
}

static int *held_on(const fake_item *item)
{
    return &fake.held_sms[item->stream->device->ordinal];
}

static const fake_item *first_not_placed(const ms_cuda_stream *stream)
{
    const fake_item *item = stream->first;
    return item != NULL && item->is_placed ? item->next : item;
}

/* Whether work that was given earlier to the same hardware queue is not placed yet. */
static bool is_behind(const fake_item *item)
{
    const ms_cuda_stream *own = item->stream;
    for (const ms_cuda_stream *s = fake.streams; s != NULL; s = s->next) {
        if (s == own || s->queue != own->queue ||
            s->device->ordinal != own->device->ordinal)
            continue;
        const fake_item *other = first_not_placed(s);
        if (other != NULL && other->order < item->order)
            return true;
    }
    return false;
}

/* Whether an earlier call on a communicator that shares buffers has not ended: NCCL runs
 * the kernels of such communicators one after the other. */
static bool waits_for_shared(const fake_item *item)
{
    if (item->comm == NULL || item->comm->shared == NULL)
        return false;
    for (const ms_cuda_comm *c = fake.comms; c != NULL; c = c->next) {
        for (const fake_item *i = c->first; i != NULL && c->shared == item->comm->shared;
             i = i->next_of_comm)
            if (i->order < item->order)
                return true;
    }
    return false;
}

static bool urgent_work_needs_sms(const fake_item *item)
{
    for (const ms_cuda_stream *s = fake.streams; s != NULL; s = s->next) {
        const fake_item *first = s->first;
        if (s->is_urgent && first != NULL && first != item && is_kernel(first) &&
            !first->is_placed && s->device->ordinal == item->stream->device->ordinal &&
            !waits_for_shared(first) &&
            (fake.options.num_connections == 0 || !is_behind(first)))
            return true;
    }
    return false;
}

bool fake_is_held_up(const fake_item *item)
{
    if (item->is_placed)
        return false;
    if (waits_for_shared(item) || (fake.options.num_connections > 0 && is_behind(item)))
        return true;
    if (fake.options.num_sms == 0 || !is_kernel(item))
        return false;
    return *held_on(item) == fake.options.num_sms ||
           (!item->stream->is_urgent && urgent_work_needs_sms(item));
}

static void set_needs(fake_item *item)
{
    int num_sms = fake.options.num_sms;
    if (item->kind != FAKE_COMMUNICATE) {
        item->needs_sms = 1 + (int)ms_rng_below(&fake.rng, 2 * (uint64_t)num_sms);
        item->turns = (int)ms_rng_below(&fake.rng, MOST_TURNS);
        return;
    }
    item->needs_sms = item->comm->max_ctas > 0 ? item->comm->max_ctas : MOST_CTAS;
}

static bool is_limited(void)
{
    return fake.options.num_sms > 0 || fake.options.num_connections > 0;
}

bool fake_places(const fake_item *item)
{
    return is_limited() && !item->is_placed;
}

/* Takes free multiprocessors for a kernel's blocks. */
static void take_sms(fake_item *item)
{
    if (item->needs_sms == 0)
        set_needs(item);
    int free_sms = fake.options.num_sms - *held_on(item),
        wanted = item->needs_sms - item->held_sms,
        taken = wanted < free_sms ? wanted : free_sms;
    item->held_sms += taken;
    *held_on(item) += taken;
    item->is_placed = item->kind != FAKE_COMMUNICATE || taken == wanted;
}

bool fake_place(fake_item *item)
{
    bool goes_on = item->kind == FAKE_COMMUNICATE && fake_places(item);
    if (item->is_placed)
        return item->turns-- > 0;
    if (fake.options.num_sms > 0 && is_kernel(item)) {
        take_sms(item);
        return true;
    }
    item->is_placed = true;
    return goes_on;
}

void fake_release_sms(fake_item *item)
{
    *held_on(item) -= item->held_sms;
    item->held_sms = 0;
}
