/* The array operations of exec/core/arrays.h on a GPU. */
#include "exec/cuda/cuda_backend_priv.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* Bytes of a pinned staging buffer: STAGING_BYTES, or FEW_BYTES if these suffice. */
#define STAGING_BYTES ((size_t)16 << 20)
#define FEW_BYTES     ((size_t)64 << 10)

/* ---- asynchronous operations ---- */

/* Notes that the compute stream gets work; false if the rank has failed. */
static bool begin_work(ms_device_rank *d)
{
    ms_cuda_moved(d);
    return d->status == MS_OK;
}

static void end_work(ms_device_rank *d)
{
    ms_cuda_keep_status(d, d->driver->check(d->cx, d->gpu));
}

/* Launches an array kernel on the compute stream, unless `count` is 0. */
#define ENQUEUE(d, count, kernel, ...)                                                   \
    do {                                                                                 \
        if ((count) != 0 && begin_work(d)) {                                             \
            (d)->kernels->kernel((d)->compute, __VA_ARGS__);                             \
            end_work(d);                                                                 \
        }                                                                                \
    } while (0)

static void fill(ms_device_rank *d, ms_scalar scalar, void *to, double value, long count)
{
    size_t bytes = (size_t)count * ms_scalar_bytes(scalar);
    if (value != 0.0)
        ENQUEUE(d, count, fill, scalar, to, value, count);
    else if (count != 0 && begin_work(d))
        ms_cuda_keep_status(d, d->driver->clear(d->cx, d->compute, to, bytes));
}

static void add(ms_device_rank *d, ms_scalar scalar, void *to, const void *from,
                long count)
{
    ENQUEUE(d, count, add, scalar, to, from, count);
}

static void round_sum(ms_device_rank *d, const ms_rounded_sum *sum)
{
    ENQUEUE(d, sum->count, round_sum, sum);
}

static void scale(ms_device_rank *d, ms_scalar scalar, void *x, double factor, long count)
{
    ENQUEUE(d, count, scale, scalar, x, factor, count);
}

static void copy(ms_device_rank *d, void *to, const void *from, size_t bytes)
{
    if (bytes > 0 && begin_work(d))
        ms_cuda_keep_status(
            d, d->driver->copy(d->cx, d->compute, to, from, bytes, MS_CUDA_ON_DEVICE));
}

static void copy_box(ms_device_rank *d, const ms_box_copy *box)
{
    ENQUEUE(d, 1, copy_box, box);
}

static void initialise(ms_device_rank *d, ms_scalar scalar, void *to,
                       const ms_initial_piece *piece)
{
    ENQUEUE(d, piece->number, initialise, scalar, to, piece);
}

static void add_sum(ms_device_rank *d, ms_scalar scalar, int slot, const void *x,
                    long count)
{
    assert(slot >= 0 && slot < MS_MAX_SUMS);
    ENQUEUE(d, count, add_sum, scalar, d->sums + slot, x, count, d->sum_scratch);
}

static void add_squares(ms_device_rank *d, ms_scalar scalar, int slot, const void *x,
                        long count)
{
    assert(slot >= 0 && slot < MS_MAX_SUMS);
    ENQUEUE(d, count, add_squares, scalar, d->sums + slot, x, count, d->sum_scratch);
}

static void adamw(ms_device_rank *d, const ms_adamw *how, const ms_update *update)
{
    ENQUEUE(d, update->count, adamw, how, update);
}

/* ---- attention over one block of keys ---- */

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
                         .workspace = workspace,
                         .attention = d->job->outer->attention,
                         .attention_use = &d->attention};
    if (!begin_work(d))
        return;
    ms_status status = ms_cuda_batch_of(d->cx, d, block->call, &batch);
    ms_cuda_keep_status(d, status == MS_OK ? kernel(&call, block) : status);
    end_work(d);
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

/* ---- conversions between fp64 and array types ---- */

#define LOAD(type, expression)                                                           \
    for (long i = 0; i < num; i++) {                                                     \
        type x;                                                                          \
        memcpy(&x, from + (size_t)i * sizeof x, sizeof x);                               \
        to[i] = (expression);                                                            \
    }                                                                                    \
    return

static void load_values(ms_scalar scalar, double *to, const char *from, long num)
{
    switch (scalar) {
    case MS_SCALAR_FP32:
        LOAD(float, (double)x);
    case MS_SCALAR_FP64:
        LOAD(double, x);
    case MS_SCALAR_BF16:
        LOAD(uint16_t, ms_bf16_value(x));
    case MS_SCALAR_LONG:
        LOAD(long, (double)x);
    case MS_SCALAR_BYTE:
        LOAD(unsigned char, (double)x);
    case MS_SCALAR_E4M3: /* FP8 arrays exist only in GEMM workspaces */
    case MS_SCALAR_E5M2:
    case MS_NUM_SCALARS:
        break;
    }
    assert(false);
}

#define STORE(type, expression)                                                          \
    for (long i = 0; i < num; i++) {                                                     \
        type x = (expression);                                                           \
        memcpy(to + (size_t)i * sizeof x, &x, sizeof x);                                 \
    }                                                                                    \
    return

static void store_values(ms_scalar scalar, char *to, const double *from, long num)
{
    switch (scalar) {
    case MS_SCALAR_FP32:
        STORE(float, (float)from[i]);
    case MS_SCALAR_FP64:
        STORE(double, from[i]);
    case MS_SCALAR_BF16:
        STORE(uint16_t, ms_bf16_of(from[i]));
    case MS_SCALAR_LONG:
        STORE(long, (long)from[i]);
    case MS_SCALAR_BYTE:
        STORE(unsigned char, (unsigned char)from[i]);
    case MS_SCALAR_E4M3: /* FP8 arrays exist only in GEMM workspaces */
    case MS_SCALAR_E5M2:
    case MS_NUM_SCALARS:
        break;
    }
    assert(false);
}

/* ---- copies between host and device ---- */

static ms_status wait_for_staging(ms_ctx *cx, ms_device_rank *d, int which)
{
    return d->staged[which] != NULL ? ms_cuda_finish_event(cx, d, d->staged[which])
                                    : MS_OK;
}

static ms_status open_staging(ms_ctx *cx, ms_device_rank *d, int which, size_t bytes)
{
    if (d->staging_bytes[which] >= bytes)
        return wait_for_staging(cx, d, which);
    size_t room = bytes <= FEW_BYTES ? FEW_BYTES : STAGING_BYTES;
    MS_TRY(wait_for_staging(cx, d, which));
    if (d->staging[which] != NULL)
        d->driver->release_host(d->gpu, d->staging[which]);
    d->staging[which] = d->driver->allocate_host(d->gpu, room);
    d->staging_bytes[which] = d->staging[which] != NULL ? room : 0;
    if (d->staging[which] == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE,
                       "no host memory is left for copies from and to GPU %d",
                       d->ordinal);
    return MS_OK;
}

static ms_status note_staged(ms_ctx *cx, ms_device_rank *d, int which)
{
    if (d->staged[which] == NULL)
        MS_TRY(ms_cuda_take_event(cx, d, MS_CUDA_ORDERS, &d->staged[which]));
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
        MS_TRY(open_staging(cx, d, which, (size_t)num * each));
        store_values(scalar, d->staging[which], from + done, num);
        ms_cuda_moved(d);
        MS_TRY(d->driver->copy(cx, d->compute, (char *)to + (size_t)done * each,
                               d->staging[which], (size_t)num * each, MS_CUDA_TO_DEVICE));
        MS_TRY(note_staged(cx, d, which));
    }
    return MS_OK;
}

typedef struct piece_use {
    void (*piece)(ms_scalar scalar, const char *piece, long num, void *state);
    void *state;
} piece_use;

static ms_status begin_read(ms_ctx *cx, ms_device_rank *d, const void *from, size_t bytes,
                            int which)
{
    MS_TRY(open_staging(cx, d, which, bytes));
    MS_TRY(
        d->driver->copy(cx, d->compute, d->staging[which], from, bytes, MS_CUDA_TO_HOST));
    return note_staged(cx, d, which);
}

/* Reads an array by pieces: copies the next piece to the host while `with` uses one. */
static ms_status read_pieces(ms_ctx *cx, ms_device_rank *d, ms_scalar scalar,
                             const void *from, long count, piece_use with)
{
    size_t each = ms_scalar_bytes(scalar), bytes = (size_t)count * each, begun = 0;
    MS_TRY(ms_cuda_check_rank(cx, d));
    for (size_t done = 0; done < bytes;) {
        while (begun < bytes && begun < done + 2 * STAGING_BYTES) {
            size_t most = bytes - begun;
            most = most < STAGING_BYTES ? most : STAGING_BYTES;
            MS_TRY(begin_read(cx, d, (const char *)from + begun, most,
                              (int)(begun / STAGING_BYTES % 2)));
            begun += most;
        }
        int which = (int)(done / STAGING_BYTES % 2);
        size_t here = bytes - done < STAGING_BYTES ? bytes - done : STAGING_BYTES;
        MS_TRY(wait_for_staging(cx, d, which));
        with.piece(scalar, d->staging[which], (long)(here / each), with.state);
        done += here;
    }
    return MS_OK;
}

static void copy_values(ms_scalar scalar, const char *piece, long num, void *state)
{
    double **to = state;
    load_values(scalar, *to, piece, num);
    *to += num;
}

static ms_status read_array(ms_ctx *cx, ms_device_rank *d, ms_scalar scalar, double *to,
                            const void *from, long count)
{
    return read_pieces(cx, d, scalar, from, count, (piece_use){copy_values, &to});
}

typedef struct counting {
    long *counts, num;
} counting;

static void count_values(ms_scalar scalar, const char *piece, long num, void *state)
{
    enum {
        AT_ONCE = 256
    };
    const counting *c = state;
    double values[AT_ONCE];
    for (long done = 0, here; done < num; done += here) {
        here = num - done < AT_ONCE ? num - done : AT_ONCE;
        load_values(scalar, values, piece + (size_t)done * ms_scalar_bytes(scalar), here);
        for (long i = 0; i < here; i++) {
            assert(values[i] >= 0 && values[i] < (double)c->num);
            c->counts[(long)values[i]]++;
        }
    }
}

static ms_status count_array(ms_ctx *cx, ms_device_rank *d, const ms_local *x,
                             long *counts, /* NOLINT(readability-non-const-parameter) */
                             long num)
{
    counting c = {counts, num};
    return read_pieces(cx, d, (ms_scalar)x->scalar, x->data, x->count,
                       (piece_use){count_values, &c});
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
    .round_sum = round_sum,
    .scale = scale,
    .copy = copy,
    .copy_box = copy_box,
    .initialise = initialise,
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
