#include "exec/backend_parcel.h"

#include <stdio.h>
#include <string.h>

#define ALIGNMENT 64

static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

static size_t bytes_of(const ms_transfer *transfer, long count)
{
    return (size_t)count * ms_scalar_bytes((ms_scalar)transfer->scalar);
}

/* ---- parcels ---- */

/* Room for counts of `num_counts` members before the data. */
static ms_parcel *make(ms_pool *pool, const ms_transfer *transfer, long count,
                       int num_counts)
{
    size_t head = sizeof(ms_parcel) + (size_t)num_counts * sizeof(long);
    head = (head + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t bytes = head + bytes_of(transfer, count);
    char *memory = ms_pool_take(pool, bytes);
    if (memory == NULL)
        return NULL;
    ms_parcel *made = (ms_parcel *)(void *)memory;
    *made = (ms_parcel){.pool = pool,
                        .bytes = bytes,
                        .transfer = *transfer,
                        .count = count,
                        .data = memory + head};
    atomic_init(&made->holders, 1);
    if (num_counts > 0)
        made->counts = (long *)(void *)(memory + sizeof(ms_parcel));
    return made;
}

ms_parcel *ms_parcel_pack(ms_pool *pool, const ms_transfer *transfer, int size)
{
    bool uneven = transfer->kind == MS_TRANSFER_ALL_TO_ALL;
    long count = uneven ? 0 : transfer->count;
    for (int i = 0; i < size && uneven; i++)
        count += transfer->send_counts[i];
    if (transfer->kind == MS_TRANSFER_REDUCE_SCATTER)
        count *= size;
    ms_parcel *made = make(pool, transfer, count, uneven ? size : 0);
    if (made == NULL)
        return NULL;
    if (uneven)
        copy(made->counts, transfer->send_counts, (size_t)size * sizeof(long));
    copy(made->data, transfer->send, bytes_of(transfer, count));
    return made;
}

ms_parcel *ms_parcel_portion(ms_pool *pool, const ms_transfer *transfer, long count,
                             const char *name)
{
    ms_parcel *made = make(pool, transfer, count, 0);
    if (made == NULL)
        return NULL;
    made->is_part = true;
    snprintf(made->name, sizeof made->name, "%s", name);
    made->transfer.name = made->name[0] != '\0' ? made->name : NULL;
    return made;
}

void ms_parcel_hold(ms_parcel *parcel)
{
    (void)atomic_fetch_add(&parcel->holders, 1);
}

void ms_parcel_drop(void *parcel)
{
    ms_parcel *p = parcel;
    if (atomic_fetch_sub(&p->holders, 1) > 1)
        return;
    ms_pool_give(p->pool, p, p->bytes);
}

ms_portion ms_parcel_for(const ms_parcel *parcel, int member)
{
    const ms_transfer *t = &parcel->transfer;
    if (parcel->is_part)
        return (ms_portion){parcel->data, parcel->count};
    if (t->kind == MS_TRANSFER_REDUCE_SCATTER)
        return (ms_portion){parcel->data + bytes_of(t, member * t->count), t->count};
    if (t->kind != MS_TRANSFER_ALL_TO_ALL)
        return (ms_portion){parcel->data, parcel->count};
    long before = 0;
    for (int i = 0; i < member; i++)
        before += parcel->counts[i];
    return (ms_portion){parcel->data + bytes_of(t, before), parcel->counts[member]};
}

bool ms_parcels_agree(const ms_parcel *a, const ms_parcel *b)
{
    const ms_transfer *x = &a->transfer, *y = &b->transfer;
    return x->kind == y->kind && x->scalar == y->scalar && x->maximum == y->maximum &&
           (x->count == y->count || x->kind == MS_TRANSFER_ALL_TO_ALL);
}

/* ---- sums and maxima ---- */

static void fold_float(float *to, const float *from, long count, bool maximum)
{
    for (long i = 0; i < count; i++) {
        if (!maximum)
            to[i] += from[i];
        else if (from[i] > to[i])
            to[i] = from[i];
    }
}

static void fold_double(double *to, const double *from, long count, bool maximum)
{
    for (long i = 0; i < count; i++) {
        if (!maximum)
            to[i] += from[i];
        else if (from[i] > to[i])
            to[i] = from[i];
    }
}

static void fold_long(long *to, const long *from, long count, bool maximum)
{
    for (long i = 0; i < count; i++) {
        if (!maximum)
            to[i] += from[i];
        else if (from[i] > to[i])
            to[i] = from[i];
    }
}

static void fold(const ms_transfer *how, void *to, const void *from, long count)
{
    if (how->scalar == MS_SCALAR_LONG)
        fold_long(to, from, count, how->maximum);
    else if (how->scalar == MS_SCALAR_FP32)
        fold_float(to, from, count, how->maximum);
    else
        fold_double(to, from, count, how->maximum);
}

void ms_parcel_fold(const ms_parcel *like, void *to, const void *from, long count)
{
    fold(&like->transfer, to, from, count);
}

/* ---- what members get ---- */

void ms_parcel_combine(const ms_transfer *transfer, const ms_portion *parts, int num)
{
    bool adds = transfer->kind == MS_TRANSFER_REDUCE_SCATTER ||
                transfer->kind == MS_TRANSFER_ALL_REDUCE;
    char *to = transfer->receive;
    for (int i = 0; i < num; i++) {
        if (adds && i > 0) {
            fold(transfer, to, parts[i].data, parts[i].count);
            continue;
        }
        copy(to, parts[i].data, bytes_of(transfer, parts[i].count));
        if (!adds)
            to += bytes_of(transfer, parts[i].count);
    }
}

ms_status ms_parcel_receive(ms_ctx *cx, const ms_world *world,
                            const ms_transfer *transfer, const ms_parcel *came)
{
    if (came->count == transfer->count && came->transfer.scalar == transfer->scalar) {
        copy(transfer->receive, came->data, bytes_of(transfer, came->count));
        return MS_OK;
    }
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "%s of %ld elements gets %s of %ld elements",
                   ms_transfer_text(cx->arena, world, transfer), transfer->count,
                   ms_transfer_text(cx->arena, world, &came->transfer), came->count);
}
