#include "exec/backends/transfer_copy.h"

#include "exec/cpu/kernels.h"

#include <string.h>

#define ALIGNMENT 64

static void copy_bytes(void *to, const void *from, size_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, bytes);
}

static size_t bytes_of(const ms_transfer *transfer, long count)
{
    return (size_t)count * ms_scalar_bytes((ms_scalar)transfer->scalar);
}

/* The counts of an all-to-all are stored between the ms_transfer_copy and its data. */
ms_transfer_copy *ms_transfer_copy_pack(ms_pool *pool, const ms_transfer *transfer,
                                        int size)
{
    bool uneven = transfer->kind == MS_TRANSFER_ALL_TO_ALL;
    size_t counts_bytes = uneven ? (size_t)size * sizeof(long) : 0;
    long count = uneven ? 0 : transfer->count;
    for (int i = 0; i < size && uneven; i++)
        count += transfer->send_counts[i];
    if (transfer->kind == MS_TRANSFER_REDUCE_SCATTER)
        count *= size;
    size_t head =
        (sizeof(ms_transfer_copy) + counts_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t bytes = head + bytes_of(transfer, count);
    char *memory = ms_pool_take(pool, bytes);
    if (memory == NULL)
        return NULL;
    ms_transfer_copy *made = (ms_transfer_copy *)(void *)memory;
    *made = (ms_transfer_copy){.pool = pool,
                               .bytes = bytes,
                               .transfer = *transfer,
                               .count = count,
                               .counts = uneven ? (long *)(void *)(made + 1) : NULL,
                               .data = memory + head};
    copy_bytes(made->counts, transfer->send_counts, counts_bytes);
    copy_bytes(made->data, transfer->send, bytes_of(transfer, count));
    return made;
}

void ms_transfer_copy_drop(void *copy)
{
    ms_transfer_copy *p = copy;
    ms_pool_give(p->pool, p, p->bytes);
}

ms_portion ms_transfer_copy_for(const ms_transfer_copy *copy, int member)
{
    const ms_transfer *t = &copy->transfer;
    long before = 0, count = copy->count;
    if (t->kind == MS_TRANSFER_REDUCE_SCATTER) {
        before = member * t->count;
        count = t->count;
    } else if (t->kind == MS_TRANSFER_ALL_TO_ALL) {
        for (int i = 0; i < member; i++)
            before += copy->counts[i];
        count = copy->counts[member];
    }
    return (ms_portion){copy->data + bytes_of(t, before), count, bytes_of(t, count)};
}

bool ms_transfer_copies_agree(const ms_transfer_copy *a, const ms_transfer_copy *b)
{
    const ms_transfer *x = &a->transfer, *y = &b->transfer;
    return x->kind == y->kind && x->scalar == y->scalar && x->maximum == y->maximum &&
           (x->count == y->count || x->kind == MS_TRANSFER_ALL_TO_ALL);
}

/* ---- sums and maxima ---- */

static void fold_long(long *to, const long *from, long count, bool maximum)
{
    for (long i = 0; i < count; i++) {
        if (!maximum)
            to[i] += from[i];
        else if (from[i] > to[i])
            to[i] = from[i];
    }
}

void ms_transfer_copy_fold(const ms_transfer_copy *like, void *to, const void *from,
                           long count)
{
    const ms_transfer *how = &like->transfer;
    if (how->scalar == MS_SCALAR_LONG) {
        fold_long(to, from, count, how->maximum);
        return;
    }
    const ms_kernels *kernels = ms_cpu_scalar_kernels((ms_scalar)how->scalar);
    (how->maximum ? kernels->maximum : kernels->add)(to, from, count);
}
