/* Transfers through host memory, by the inner backend (loop or mpi): values of the host
 * program and, for tests of correctness, arrays of GPUs, which are copied to the host and
 * back. bf16 is converted to fp32 for the transfer; sums are rounded to bf16 once. */
#include "exec/cuda/cuda_backend_priv.h"

#include <stdint.h>
#include <string.h>

/* ---- sizes ---- */

static long sum_counts(const long *counts, int num)
{
    long total = 0;
    for (int i = 0; i < num; i++)
        total += counts[i];
    return total;
}

long ms_cuda_num_sent(const ms_transfer *t, int size)
{
    if (t->kind == MS_TRANSFER_ALL_TO_ALL)
        return sum_counts(t->send_counts, size);
    if (t->kind == MS_TRANSFER_RECEIVE)
        return 0;
    return t->kind == MS_TRANSFER_REDUCE_SCATTER ? t->count * size : t->count;
}

static long num_received(const ms_transfer *t, int size)
{
    if (t->kind == MS_TRANSFER_ALL_TO_ALL)
        return sum_counts(t->receive_counts, size);
    if (t->kind == MS_TRANSFER_SEND)
        return 0;
    return t->kind == MS_TRANSFER_ALL_GATHER ? t->count * size : t->count;
}

/* ---- bf16 ---- */

static ms_scalar scalar_on_host(ms_scalar scalar)
{
    return scalar == MS_SCALAR_BF16 ? MS_SCALAR_FP32 : scalar;
}

/* Converts bf16 to fp32 in place, from last to first, since fp32 is twice as wide. */
static void widen(void *data, long count)
{
    char *bytes = data;
    for (long i = count; i-- > 0;) {
        uint16_t half;
        memcpy(&half, bytes + 2 * i, sizeof half);
        uint32_t whole = (uint32_t)half << 16;
        memcpy(bytes + 4 * i, &whole, sizeof whole);
    }
}

/* Rounds fp32 to the nearest bf16, ties to even; a NaN stays a NaN. */
static uint16_t bf16_of_fp32(uint32_t whole)
{
    if ((whole & 0x7fffffffU) > 0x7f800000U)
        return (uint16_t)(whole >> 16 | 0x40U);
    return (uint16_t)((whole + 0x7fffU + (whole >> 16 & 1U)) >> 16);
}

static void narrow(void *data, long count)
{
    char *bytes = data;
    for (long i = 0; i < count; i++) {
        uint32_t whole;
        memcpy(&whole, bytes + 4 * i, sizeof whole);
        uint16_t half = bf16_of_fp32(whole);
        memcpy(bytes + 2 * i, &half, sizeof half);
    }
}

/* ---- staging buffers ---- */

static int size_of(const ms_device_rank *d, const ms_transfer *t)
{
    return t->kind >= MS_TRANSFER_SEND ? 1 : ms_cuda_members(d, t)->size;
}

/* Least size of pinned buffers, which are slow to allocate; powers of 2, for reuse. */
#define LEAST_STAGING_BYTES ((size_t)4 << 10)

static size_t rounded_size(size_t bytes)
{
    size_t size = LEAST_STAGING_BYTES;
    while (size < bytes)
        size *= 2;
    return size;
}

static ms_cuda_staging *idle_staging(ms_device_rank *d, size_t bytes)
{
    ms_cuda_staging **at = &d->idle_staging;
    while (*at != NULL && (*at)->bytes != bytes)
        at = &(*at)->next;
    ms_cuda_staging *found = *at;
    if (found != NULL)
        *at = found->next;
    return found;
}

static ms_status take_staging(ms_ctx *cx, ms_device_rank *d, const ms_transfer *t,
                              long count, ms_cuda_staging **out)
{
    size_t bytes = (size_t)count * ms_scalar_bytes(scalar_on_host((ms_scalar)t->scalar));
    *out = NULL;
    if (bytes == 0)
        return MS_OK;
    bytes = rounded_size(bytes);
    *out = idle_staging(d, bytes);
    if (*out != NULL)
        return MS_OK;
    void *memory = d->driver->allocate_host(d->gpu, bytes);
    if (memory == NULL)
        return ms_transfer_no_memory(cx, d->job->outer->world, t);
    *out = MS_NEW(d->arena, ms_cuda_staging);
    **out = (ms_cuda_staging){memory, bytes, NULL};
    return MS_OK;
}

static void recycle_staging(ms_device_rank *d, ms_cuda_staging *staging)
{
    if (staging == NULL)
        return;
    staging->next = d->idle_staging;
    d->idle_staging = staging;
}

static void drop_transfer(ms_device_rank *d, ms_cuda_pending *p)
{
    recycle_staging(d, p->sent);
    recycle_staging(d, p->received);
    ms_cuda_pending_drop(d, p);
}

/* Frees all staging buffers; no transfer may be in progress. */
void ms_cuda_host_close(ms_device_rank *d)
{
    while (d->first_pending != NULL)
        drop_transfer(d, d->first_pending);
    for (; d->idle_staging != NULL; d->idle_staging = d->idle_staging->next)
        d->driver->release_host(d->gpu, d->idle_staging->memory);
}

static ms_status copy_to_host(ms_ctx *cx, ms_device_rank *d, const ms_transfer *t,
                              long count, const ms_cuda_staging *to)
{
    size_t bytes = (size_t)count * ms_scalar_bytes((ms_scalar)t->scalar);
    if (bytes == 0 || to == NULL)
        return MS_OK;
    MS_TRY(d->driver->copy(cx, d->compute, to->memory, t->send, bytes, MS_CUDA_TO_HOST));
    MS_TRY(ms_cuda_finish(cx, d, d->compute));
    if (t->scalar == MS_SCALAR_BF16)
        widen(to->memory, count);
    return MS_OK;
}

static ms_status copy_to_device(ms_ctx *cx, ms_device_rank *d, const ms_transfer *t,
                                long count, const ms_cuda_staging *from)
{
    size_t bytes = (size_t)count * ms_scalar_bytes((ms_scalar)t->scalar);
    if (bytes == 0 || from == NULL)
        return MS_OK;
    if (t->scalar == MS_SCALAR_BF16)
        narrow(from->memory, count);
    ms_cuda_moved(d);
    MS_TRY(d->driver->copy(cx, d->compute, t->receive, from->memory, bytes,
                           MS_CUDA_TO_DEVICE));
    return ms_cuda_finish(cx, d, d->compute);
}

/* ---- start and end ---- */

static ms_status start_inner(ms_ctx *cx, ms_device_rank *d, const ms_transfer *t,
                             ms_cuda_pending *p)
{
    ms_transfer inner = *t;
    if (!t->on_host) {
        inner.on_host = true;
        inner.scalar = (unsigned char)scalar_on_host((ms_scalar)t->scalar);
        inner.send = p->sent != NULL ? p->sent->memory : NULL;
        inner.receive = p->received != NULL ? p->received->memory : NULL;
    }
    return d->job->inner->start(cx, d->inner, &inner, NULL, 0, &p->inner_event);
}

/* Starts a transfer through host memory; returns when the data to send are there. */
ms_status ms_cuda_start_by_host(ms_ctx *cx, ms_device_rank *d,
                                const ms_transfer *transfer, ms_event *done)
{
    int size = size_of(d, transfer);
    long sent = ms_cuda_num_sent(transfer, size);
    long received = num_received(transfer, size);
    ms_cuda_pending *p = ms_cuda_pending_add(cx, d, transfer);
    p->by_host = true;
    *done = p->event;
    ms_status status = MS_OK;
    if (!transfer->on_host) {
        status = take_staging(cx, d, transfer, sent, &p->sent);
        if (status == MS_OK)
            status = take_staging(cx, d, transfer, received, &p->received);
        if (status == MS_OK)
            status = copy_to_host(cx, d, transfer, sent, p->sent);
        p->transfer.count = received;
    }
    if (status == MS_OK)
        status = start_inner(cx, d, transfer, p);
    /* a send ends here: inner backends send from copies */
    if (status != MS_OK || transfer->kind == MS_TRANSFER_SEND)
        drop_transfer(d, p);
    return status;
}

ms_status ms_cuda_finish_by_host(ms_ctx *cx, ms_device_rank *d, ms_cuda_pending *p)
{
    ms_status status = d->job->inner->wait(cx, d->inner, p->inner_event);
    if (status == MS_OK && !p->transfer.on_host)
        status = copy_to_device(cx, d, &p->transfer, p->transfer.count, p->received);
    drop_transfer(d, p);
    return status;
}
