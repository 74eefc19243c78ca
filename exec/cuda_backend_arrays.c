/* What the runner does to arrays (exec/arrays.h), on a GPU. */
#include "exec/cuda_backend_priv.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* Numbers of the program pass through two pieces of host memory in turn. */
#define STAGING_BYTES ((size_t)4 << 20)

/* ---- what the program does not wait for ---- */

/* Whether work can go on; it belongs to compute. */
static bool begin(ms_device_rank *d)
{
    ms_cuda_moved(d);
    return d->status == MS_OK;
}

static void end(ms_device_rank *d)
{
    ms_cuda_keep_status(d, d->driver->check(d->cx, d->gpu));
}

static void fill(ms_device_rank *d, ms_scalar scalar, void *to, double value, long count)
{
    if (count == 0 || !begin(d))
        return;
    if (value == 0.0) {
        ms_cuda_keep_status(d, d->driver->clear(d->cx, d->compute, to,
                                                (size_t)count * ms_scalar_bytes(scalar)));
        return;
    }
    d->kernels->fill(d->compute, scalar, to, value, count);
    end(d);
}

static void add(ms_device_rank *d, ms_scalar scalar, void *to, const void *from,
                long count)
{
    if (count == 0 || !begin(d))
        return;
    d->kernels->add(d->compute, scalar, to, from, count);
    end(d);
}

static void scale(ms_device_rank *d, ms_scalar scalar, void *x, double factor, long count)
{
    if (count == 0 || !begin(d))
        return;
    d->kernels->scale(d->compute, scalar, x, factor, count);
    end(d);
}

static void copy(ms_device_rank *d, void *to, const void *from, size_t bytes)
{
    if (bytes > 0 && begin(d))
        ms_cuda_keep_status(
            d, d->driver->copy(d->cx, d->compute, to, from, bytes, MS_CUDA_ON_DEVICE));
}

static void copy_box(ms_device_rank *d, const ms_box_copy *box)
{
    if (!begin(d))
        return;
    d->kernels->copy_box(d->compute, box);
    end(d);
}

static void add_sum(ms_device_rank *d, ms_scalar scalar, int slot, const void *x,
                    long count)
{
    assert(slot >= 0 && slot < MS_MAX_SUMS);
    if (count == 0 || !begin(d))
        return;
    d->kernels->add_sum(d->compute, scalar, d->sums + slot, x, count, d->sum_scratch);
    end(d);
}

static void add_squares(ms_device_rank *d, ms_scalar scalar, int slot, const void *x,
                        long count)
{
    assert(slot >= 0 && slot < MS_MAX_SUMS);
    if (count == 0 || !begin(d))
        return;
    d->kernels->add_squares(d->compute, scalar, d->sums + slot, x, count, d->sum_scratch);
    end(d);
}

static void adamw(ms_device_rank *d, const ms_adamw *how, const ms_update *update)
{
    if (update->count == 0 || !begin(d))
        return;
    d->kernels->adamw(d->compute, how, update);
    end(d);
}

/* ---- blocks of attention ---- */

typedef ms_status block_kernel(const ms_cuda_call *call, const ms_attention_block *block);

static void run_block(ms_device_rank *d, const ms_attention_block *block, void *workspace,
                      block_kernel *kernel)
{
    ms_cuda_batch batch;
    ms_cuda_call call = {.cx = d->cx,
                         .driver = d->driver,
                         .stream = d->compute,
                         .precision = d->precision,
                         .op = block->call,
                         .batch = block->call->batch != NULL ? &batch : NULL,
                         .workspace = workspace};
    if (!begin(d))
        return;
    ms_status status = ms_cuda_batch_of(d->cx, d, block->call, &batch);
    ms_cuda_keep_status(d, status == MS_OK ? kernel(&call, block) : status);
    end(d);
}

static void attention_block(ms_device_rank *d, const ms_attention_block *block,
                            void *workspace)
{
    run_block(d, block, workspace, d->kernels->attention_block);
}

static void attention_block_grad(ms_device_rank *d, const ms_attention_block *block,
                                 void *workspace)
{
    run_block(d, block, workspace, d->kernels->attention_block_grad);
}

/* ---- numbers of the program ---- */

static double value_at(ms_scalar scalar, const char *from, long i)
{
    float single;
    double value = 0.0;
    uint16_t half;
    long whole;
    switch (scalar) {
    case MS_SCALAR_FP32:
        memcpy(&single, from + (size_t)i * sizeof single, sizeof single);
        return (double)single;
    case MS_SCALAR_FP64:
        memcpy(&value, from + (size_t)i * sizeof value, sizeof value);
        return value;
    case MS_SCALAR_BF16:
        memcpy(&half, from + (size_t)i * sizeof half, sizeof half);
        memcpy(&single, &(uint32_t){(uint32_t)half << 16}, sizeof single);
        return (double)single;
    case MS_SCALAR_LONG:
        memcpy(&whole, from + (size_t)i * sizeof whole, sizeof whole);
        return (double)whole;
    case MS_SCALAR_BYTE:
        return (double)(unsigned char)from[i];
    case MS_SCALAR_E4M3: /* in workspaces of products alone */
    case MS_SCALAR_E5M2:
    case MS_NUM_SCALARS:
        break;
    }
    assert(false);
    return value;
}

/* To the nearest bf16, ties to even, from fp64 at once: by way of fp32 it would be rounded twice. */
static uint16_t bf16_of(double value)
{
    uint64_t bits;
    float single = (float)value;
    uint32_t narrow;
    memcpy(&bits, &value, sizeof bits);
    memcpy(&narrow, &single, sizeof narrow);
    if (value != value) /* NaN */
        return (uint16_t)(narrow >> 16 | 0x40U);
    /* what fp32 left out decides ties: one bit more stands for it */
    double left = value - (double)single;
    if ((narrow & 0xffffU) == 0x8000U && left != 0.0) {
        bool grows = (left > 0.0) == (value > 0.0);
        return (uint16_t)((narrow >> 16) + (grows ? 1 : 0));
    }
    return (uint16_t)((narrow + 0x7fffU + (narrow >> 16 & 1U)) >> 16);
}

static void put_value(ms_scalar scalar, char *to, long i, double value)
{
    float single = (float)value;
    long whole = (long)value;
    uint16_t half = bf16_of(value);
    switch (scalar) {
    case MS_SCALAR_FP32:
        memcpy(to + (size_t)i * sizeof single, &single, sizeof single);
        return;
    case MS_SCALAR_FP64:
        memcpy(to + (size_t)i * sizeof value, &value, sizeof value);
        return;
    case MS_SCALAR_BF16:
        memcpy(to + (size_t)i * sizeof half, &half, sizeof half);
        return;
    case MS_SCALAR_LONG:
        memcpy(to + (size_t)i * sizeof whole, &whole, sizeof whole);
        return;
    case MS_SCALAR_BYTE:
        to[i] = (char)(unsigned char)value;
        return;
    case MS_SCALAR_E4M3: /* in workspaces of products alone */
    case MS_SCALAR_E5M2:
    case MS_NUM_SCALARS:
        break;
    }
    assert(false);
}

/* ---- there and back ---- */

static ms_status open_staging(ms_ctx *cx, ms_device_rank *d, int which)
{
    if (d->staging[which] != NULL)
        return MS_OK;
    d->staging[which] = d->driver->allocate_host(d->gpu, STAGING_BYTES);
    if (d->staging[which] == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE,
                       "no host memory is left for copies from and to GPU %d",
                       d->ordinal);
    return MS_OK;
}

/* What left it last has arrived. */
static ms_status free_staging(ms_ctx *cx, ms_device_rank *d, int which)
{
    return d->staged[which] != NULL ? ms_cuda_finish_event(cx, d, d->staged[which])
                                    : MS_OK;
}

static ms_status note_staged(ms_ctx *cx, ms_device_rank *d, int which)
{
    if (d->staged[which] == NULL)
        MS_TRY(ms_cuda_take_event(cx, d, &d->staged[which]));
    return d->driver->record(cx, d->staged[which], d->compute);
}

static ms_status write_array(ms_ctx *cx, ms_device_rank *d, ms_scalar scalar, void *to,
                             const double *from, long count)
{
    size_t each = ms_scalar_bytes(scalar);
    long most = (long)(STAGING_BYTES / each);
    MS_TRY(ms_cuda_check_rank(cx, d));
    for (long done = 0, num; done < count; done += num) {
        int which = (int)(done / most % 2);
        num = count - done < most ? count - done : most;
        MS_TRY(open_staging(cx, d, which));
        MS_TRY(free_staging(cx, d, which));
        for (long i = 0; i < num; i++)
            put_value(scalar, d->staging[which], i, from[done + i]);
        ms_cuda_moved(d);
        MS_TRY(d->driver->copy(cx, d->compute, (char *)to + (size_t)done * each,
                               d->staging[which], (size_t)num * each, MS_CUDA_TO_DEVICE));
        MS_TRY(note_staged(cx, d, which));
    }
    return MS_OK;
}

/* What is done with the elements of a piece. */
typedef struct use {
    void (*piece)(ms_scalar scalar, const char *piece, long num, void *state);
    void *state;
} use;

static ms_status read_pieces(ms_ctx *cx, ms_device_rank *d, ms_scalar scalar,
                             const void *from, long count, use with)
{
    size_t each = ms_scalar_bytes(scalar);
    long most = (long)(STAGING_BYTES / each);
    MS_TRY(ms_cuda_check_rank(cx, d));
    for (long done = 0, num; done < count; done += num) {
        num = count - done < most ? count - done : most;
        MS_TRY(open_staging(cx, d, 0));
        MS_TRY(free_staging(cx, d, 0));
        MS_TRY(d->driver->copy(cx, d->compute, d->staging[0],
                               (const char *)from + (size_t)done * each,
                               (size_t)num * each, MS_CUDA_TO_HOST));
        MS_TRY(ms_cuda_finish(cx, d, d->compute));
        with.piece(scalar, d->staging[0], num, with.state);
    }
    return MS_OK;
}

static void keep_values(ms_scalar scalar, const char *piece, long num, void *state)
{
    double **to = state;
    for (long i = 0; i < num; i++)
        *(*to)++ = value_at(scalar, piece, i);
}

static ms_status read_array(ms_ctx *cx, ms_device_rank *d, ms_scalar scalar, double *to,
                            const void *from, long count)
{
    return read_pieces(cx, d, scalar, from, count, (use){keep_values, &to});
}

typedef struct counting {
    long *counts, num;
} counting;

static void count_values(ms_scalar scalar, const char *piece, long num, void *state)
{
    const counting *c = state;
    for (long i = 0; i < num; i++) {
        long value = (long)value_at(scalar, piece, i);
        assert(value >= 0 && value < c->num);
        c->counts[value]++;
    }
}

static ms_status count_array(ms_ctx *cx, ms_device_rank *d, const ms_local *x,
                             long *counts, long num)
{
    counting c = {.num = num};
    c.counts = counts;
    return read_pieces(cx, d, (ms_scalar)x->scalar, x->data, x->count,
                       (use){count_values, &c});
}

static ms_status read_sums(ms_ctx *cx, ms_device_rank *d, double *sums, int num)
{
    MS_TRY(read_array(cx, d, MS_SCALAR_FP64, sums, d->sums, num));
    ms_cuda_moved(d);
    return d->driver->clear(cx, d->compute, d->sums, (size_t)num * sizeof(double));
}

const ms_array_ops ms_cuda_arrays = {
    .fill = fill,
    .add = add,
    .scale = scale,
    .copy = copy,
    .copy_box = copy_box,
    .read = read_array,
    .write = write_array,
    .count = count_array,
    .add_sum = add_sum,
    .add_squares = add_squares,
    .read_sums = read_sums,
    .adamw = adamw,
    .attention_block = attention_block,
    .attention_block_grad = attention_block_grad,
};
