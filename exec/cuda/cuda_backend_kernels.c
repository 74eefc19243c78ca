/* Runs a rank's kernels; caches on its GPU the micro-batches that they read. */
#include "exec/cuda/cuda_backend_priv.h"

#include <assert.h>
#include <string.h>

/* ---- micro-batches ---- */

ms_status ms_cuda_no_memory(ms_ctx *cx, const ms_device_rank *d, size_t bytes,
                            const char *what)
{
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory is left on GPU %d for %zu bytes%s",
                   d->ordinal, bytes, what);
}

/* The cache entry of micro-batch `number`; if none, the least recently used entry. */
static ms_cuda_kept_batch *find_batch(ms_device_rank *d, unsigned long number)
{
    ms_cuda_kept_batch *oldest = &d->batches[0];
    for (int i = 0; i < MS_CUDA_BATCHES; i++) {
        ms_cuda_kept_batch *cached = &d->batches[i];
        if (number > 0 && cached->number == number)
            return cached;
        if (cached->used_at < oldest->used_at)
            oldest = cached;
    }
    return oldest;
}

static void release_batch(ms_device_rank *d, ms_cuda_kept_batch *cached)
{
    ms_cuda_memory_give(d->memory, cached->tokens);
    if (cached->staging != NULL)
        d->driver->release_host(d->gpu, cached->staging);
    cached->tokens = cached->targets = cached->staging = NULL;
    cached->room = 0;
}

static ms_status reserve_batch(ms_ctx *cx, ms_device_rank *d, ms_cuda_kept_batch *cached,
                               long count)
{
    if (cached->room >= count)
        return MS_OK;
    size_t bytes = 2 * (size_t)count * sizeof(int);
    release_batch(d, cached);
    cached->tokens = ms_cuda_memory_take(d->memory, bytes);
    cached->staging = d->driver->allocate_host(d->gpu, bytes);
    if (cached->tokens == NULL || cached->staging == NULL)
        return ms_cuda_no_memory(cx, d, bytes, " of tokens");
    cached->room = count;
    return MS_OK;
}

/* Copies a micro-batch to the GPU, after the previous copy from the buffer `staging`. */
static ms_status upload(ms_ctx *cx, ms_device_rank *d, ms_cuda_kept_batch *cached,
                        const ms_batch *batch)
{
    long count = batch->num_sequences * batch->sequence_length;
    size_t bytes = (size_t)count * sizeof(int);
    cached->number = 0;
    if (cached->sent != NULL)
        MS_TRY(ms_cuda_finish_event(cx, d, cached->sent));
    else
        MS_TRY(ms_cuda_take_event(cx, d, MS_CUDA_ORDERS, &cached->sent));
    MS_TRY(reserve_batch(cx, d, cached, count));
    cached->targets = cached->tokens + count;
    memcpy(cached->staging, batch->tokens, bytes);
    memcpy(cached->staging + count, batch->targets, bytes);
    ms_cuda_moved(d);
    MS_TRY(d->driver->copy(cx, d->compute, cached->tokens, cached->staging, 2 * bytes,
                           MS_CUDA_TO_DEVICE));
    MS_TRY(d->driver->record(cx, cached->sent, d->compute));
    cached->number = batch->number;
    cached->count = count;
    return MS_OK;
}

static void *take_angles(void *state, size_t bytes)
{
    ms_device_rank *d = state;
    return ms_cuda_memory_take(d->memory, bytes);
}

/* Gives back tables whose positions change. */
static void forget_angles(ms_device_rank *d)
{
    for (int i = 0; i < d->angles.num; i++)
        ms_cuda_memory_give(d->memory, d->angles.table[i].angles);
    d->angles.num = 0;
}

/* Copies token positions to the GPU once: all micro-batches of a run have the same. */
static ms_status upload_positions(ms_ctx *cx, ms_device_rank *d, const ms_batch *batch)
{
    if (batch->positions == NULL || batch->positions == d->positions)
        return MS_OK;
    size_t bytes = (size_t)batch->sequence_length * sizeof(int);
    ms_cuda_memory_give(d->memory, d->device_positions);
    d->positions = NULL;
    forget_angles(d);
    d->device_positions = ms_cuda_memory_take(d->memory, bytes);
    if (d->device_positions == NULL)
        return ms_cuda_no_memory(cx, d, bytes, " of tokens");
    int *narrow = MS_NEW_ARRAY(d->arena, batch->sequence_length, int);
    for (long i = 0; i < batch->sequence_length; i++)
        narrow[i] = (int)batch->positions[i];
    ms_cuda_moved(d);
    MS_TRY(d->driver->copy(cx, d->compute, d->device_positions, narrow, bytes,
                           MS_CUDA_TO_DEVICE));
    d->positions = batch->positions;
    return MS_OK;
}

ms_status ms_cuda_batch_of(ms_ctx *cx, ms_device_rank *d, const ms_op_call *call,
                           ms_cuda_batch *out)
{
    const ms_batch *batch = call->batch;
    if (batch == NULL)
        return MS_OK;
    MS_TRY(upload_positions(cx, d, batch));
    *out = (ms_cuda_batch){.num_sequences = batch->num_sequences,
                           .sequence_length = batch->sequence_length,
                           .positions =
                               batch->positions != NULL ? d->device_positions : NULL,
                           .num_tokens = batch->num_tokens};
    if (batch->tokens == NULL)
        return MS_OK;
    ms_cuda_kept_batch *cached = find_batch(d, batch->number);
    if (batch->number == 0 || cached->number != batch->number)
        MS_TRY(upload(cx, d, cached, batch));
    cached->used_at = ++d->num_uses;
    out->tokens = cached->tokens;
    out->targets = cached->targets;
    return MS_OK;
}

/* ---- kernels ---- */

ms_status ms_cuda_kernel(ms_ctx *cx, ms_device_rank *d, const ms_op_call *op)
{
    ms_cuda_batch batch;
    ms_cuda_call call = {.cx = cx,
                         .driver = d->driver,
                         .stream = d->compute,
                         .precision = d->precision,
                         .op = op,
                         .batch = op->batch != NULL ? &batch : NULL,
                         .workspace = op->workspace,
                         .angle_tables = &d->angles,
                         .lacks_fp8 = &d->lacks_fp8,
                         .attention = d->job->outer->attention,
                         .attention_use = &d->attention};
    ms_cuda_op *kernel = d->kernels->op[op->node->op];
    assert(kernel != NULL);
    MS_TRY(ms_cuda_check_rank(cx, d));
    MS_TRY(ms_cuda_batch_of(cx, d, op, &batch));
    ms_cuda_moved(d);
    d->driver->push_range(op->node->name != NULL ? op->node->name : "kernel");
    ms_status status = kernel(&call);
    d->driver->pop_range();
    return status == MS_OK ? d->driver->check(cx, d->gpu) : status;
}

size_t ms_cuda_kernels_workspace(const ms_cuda_kernels *kernels,
                                 const ms_program *program, const ms_node *node,
                                 ms_real_type type)
{
    ms_precision precision = ms_precision_of(type);
    ms_cuda_workspace *bytes = kernels->workspace[node->op];
    return bytes != NULL ? bytes(program, node, &precision) : 0;
}

/* ---- open and close ---- */

static ms_status take(ms_ctx *cx, ms_device_rank *d, size_t bytes, void **out)
{
    *out = ms_cuda_memory_take(d->memory, bytes);
    return *out != NULL || bytes == 0 ? MS_OK : ms_cuda_no_memory(cx, d, bytes, "");
}

ms_status ms_cuda_kernels_open(ms_ctx *cx, ms_device_rank *d)
{
    void *sums;
    size_t bytes = MS_MAX_SUMS * sizeof(double);
    MS_TRY(take(cx, d, bytes, &sums));
    d->sums = sums;
    MS_TRY(take(cx, d, d->kernels->sum_bytes, &d->sum_scratch));
    d->angles.take = take_angles;
    d->angles.state = d;
    return d->driver->clear(cx, d->compute, d->sums, bytes);
}

/* Frees host buffers and events; ms_cuda_memory_close releases the device memory. */
void ms_cuda_kernels_close(ms_device_rank *d)
{
    for (int i = 0; i < MS_CUDA_BATCHES; i++) {
        ms_cuda_kept_batch *cached = &d->batches[i];
        if (cached->staging != NULL)
            d->driver->release_host(d->gpu, cached->staging);
        ms_cuda_give_event(d, MS_CUDA_ORDERS, cached->sent);
        *cached = (ms_cuda_kept_batch){0};
    }
    for (int i = 0; i < 2; i++) {
        if (d->staging[i] != NULL)
            d->driver->release_host(d->gpu, d->staging[i]);
        ms_cuda_give_event(d, MS_CUDA_ORDERS, d->staged[i]);
        d->staging[i] = NULL;
        d->staging_bytes[i] = 0;
        d->staged[i] = NULL;
    }
}
