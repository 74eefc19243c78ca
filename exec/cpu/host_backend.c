#include "exec/cpu/host_backend.h"

#include "exec/cpu/orthogonalize.h"
#include "exec/params/names.h"

#include <assert.h>
#include <string.h>

static ms_host_rank *host_rank(ms_device_rank *device)
{
    return (ms_host_rank *)(void *)device;
}

void *ms_host_allocate(ms_device_rank *device, size_t bytes)
{
    return ms_pool_take(host_rank(device)->pool, bytes);
}

void ms_host_release(ms_device_rank *device, void *memory, size_t bytes)
{
    ms_pool_give(host_rank(device)->pool, memory, bytes);
}

void ms_host_idle(ms_device_rank *device, double seconds)
{
    (void)device;
    (void)seconds;
}

ms_event ms_host_mark(ms_device_rank *device)
{
    (void)device;
    return 0;
}

size_t ms_host_workspace_bytes(const ms_program *program, const ms_node *node,
                               ms_real_type type)
{
    return ms_cpu_kernels(type)->workspace_bytes(program, node);
}

/* ---- arrays ---- */

static double *sum_of(ms_device_rank *device, int slot)
{
    assert(slot >= 0 && slot < MS_MAX_SUMS);
    return &host_rank(device)->sums[slot];
}

static void host_fill(ms_device_rank *device, ms_scalar scalar, void *to, double value,
                      long count)
{
    (void)device;
    if (scalar <= MS_SCALAR_BF16) {
        ms_cpu_scalar_kernels(scalar)->fill(to, value, count);
        return;
    }
    assert(value == 0.0);
    memset(to, 0, (size_t)count * ms_scalar_bytes(scalar));
}

static void host_add(ms_device_rank *device, ms_scalar scalar, void *to, const void *from,
                     long count)
{
    (void)device;
    ms_cpu_scalar_kernels(scalar)->add(to, from, count);
}

#define AT_ONCE 256 /* elements that are held in double precision */

static long piece_of(long left)
{
    return left < AT_ONCE ? left : AT_ONCE;
}

static void load_piece(ms_scalar scalar, double *to, const void *from, long done,
                       long num)
{
    ms_cpu_scalar_kernels(scalar)->to_double(
        to, (const char *)from + (size_t)done * ms_scalar_bytes(scalar), num);
}

static void store_piece(ms_scalar scalar, void *to, long done, const double *from,
                        long num)
{
    ms_cpu_scalar_kernels(scalar)->from_double(
        (char *)to + (size_t)done * ms_scalar_bytes(scalar), from, num);
}

static void host_convert(ms_device_rank *device, const ms_conversion *c)
{
    (void)device;
    double values[AT_ONCE], to[AT_ONCE];
    for (long done = 0, num; done < c->count; done += num) {
        num = piece_of(c->count - done);
        load_piece(c->from_scalar, values, c->from, done, num);
        if (c->adds) {
            load_piece(c->to_scalar, to, c->to, done, num);
            for (long i = 0; i < num; i++)
                values[i] += to[i];
        }
        store_piece(c->to_scalar, c->to, done, values, num);
    }
}

static void host_round_sum(ms_device_rank *device, const ms_rounded_sum *sum)
{
    ms_scalar wide = sum->scalar == MS_SCALAR_BF16 ? MS_SCALAR_FP32 : sum->scalar;
    if (sum->plus != NULL && sum->count > 0)
        memmove(sum->to, sum->plus, (size_t)sum->count * ms_scalar_bytes(sum->scalar));
    host_convert(device, &(ms_conversion){.to_scalar = sum->scalar,
                                          .from_scalar = wide,
                                          .to = sum->to,
                                          .from = sum->from,
                                          .adds = sum->plus != NULL,
                                          .count = sum->count});
}

static void host_scale(ms_device_rank *device, ms_scalar scalar, void *x, double factor,
                       long count)
{
    (void)device;
    ms_cpu_scalar_kernels(scalar)->scale(x, factor, count);
}

static void host_copy(ms_device_rank *device, void *to, const void *from, size_t bytes)
{
    (void)device;
    if (bytes > 0)
        memcpy(to, from, bytes);
}

/* Copies dims `dim` and later of a box, whose first elements are at `to` and `from`. */
static void copy_dims(const ms_box_copy *box, int dim, char *to, const char *from)
{
    if (dim == MS_BOX_DIMS) {
        memcpy(to, from, (size_t)box->run * box->element_bytes);
        return;
    }
    for (long i = 0; i < box->num[dim]; i++) {
        copy_dims(box, dim + 1, to, from);
        to += (size_t)box->to_stride[dim] * box->element_bytes;
        from += (size_t)box->from_stride[dim] * box->element_bytes;
    }
}

static void host_copy_box(ms_device_rank *device, const ms_box_copy *box)
{
    (void)device;
    copy_dims(box, 0, box->to, box->from);
}

static void host_initialise(ms_device_rank *device, ms_scalar scalar, void *to,
                            const ms_initial_piece *piece)
{
    (void)device;
    ms_initial_piece made = *piece;
    made.in_bf16 = made.in_bf16 || scalar == MS_SCALAR_BF16;
    double values[AT_ONCE];
    for (long done = 0, num; done < piece->number; done += num) {
        num = piece_of(piece->number - done);
        ms_initial_values(&made, done, num, values);
        store_piece(scalar, to, done, values, num);
    }
}

static ms_status host_read(ms_ctx *cx, ms_device_rank *device, ms_scalar scalar,
                           double *to, const void *from, long count)
{
    (void)cx;
    (void)device;
    ms_cpu_scalar_kernels(scalar)->to_double(to, from, count);
    return MS_OK;
}

static ms_status host_write(ms_ctx *cx, ms_device_rank *device, ms_scalar scalar,
                            void *to, const double *from, long count)
{
    (void)cx;
    (void)device;
    ms_cpu_scalar_kernels(scalar)->from_double(to, from, count);
    return MS_OK;
}

static ms_status host_count(ms_ctx *cx, ms_device_rank *device, const ms_local *x,
                            long *counts, long num)
{
    (void)cx;
    (void)device;
    bool is_double = x->scalar == MS_SCALAR_FP64;
    for (long i = 0; i < x->count; i++) {
        double value = is_double ? ((const double *)x->data)[i]
                                 : (double)((const float *)x->data)[i];
        assert(value < (double)num);
        if (value >= 0)
            counts[(long)value]++;
    }
    (void)num;
    return MS_OK;
}

static void host_add_sum(ms_device_rank *device, ms_scalar scalar, int slot,
                         const void *x, long num)
{
    double values[AT_ONCE], sum = 0.0;
    for (long done = 0; done < num; done += AT_ONCE) {
        long piece = piece_of(num - done);
        load_piece(scalar, values, x, done, piece);
        for (long i = 0; i < piece; i++)
            sum += values[i];
    }
    *sum_of(device, slot) += sum;
}

static void host_add_squares(ms_device_rank *device, ms_scalar scalar, int slot,
                             const void *x, long num)
{
    *sum_of(device, slot) += ms_cpu_scalar_kernels(scalar)->sum_of_squares(x, num);
}

static ms_status host_read_sums(ms_ctx *cx, ms_device_rank *device, double *sums, int num)
{
    (void)cx;
    for (int i = 0; i < num; i++) {
        sums[i] = *sum_of(device, i);
        *sum_of(device, i) = 0.0;
    }
    return MS_OK;
}

static void host_adamw(ms_device_rank *device, const ms_adamw *how, const ms_update *u)
{
    bool has_master = u->master != NULL;
    ms_cpu_scalar_kernels(has_master ? MS_SCALAR_FP32 : u->scalar)
        ->adamw(how, has_master ? u->master : u->weight, u->gradient, u->first_moment,
                u->second_moment, u->count);
    if (has_master) {
        host_round_sum(device, &(ms_rounded_sum){.scalar = u->scalar,
                                                 .to = u->weight,
                                                 .from = u->master,
                                                 .count = u->count});
    }
}

static void host_attention_block(ms_device_rank *device, const ms_attention_block *block,
                                 void *workspace)
{
    (void)device;
    ms_cpu_scalar_kernels(block->q->scalar)->attention_block(block, workspace);
}

static void host_attention_block_grad(ms_device_rank *device,
                                      const ms_attention_block *block, void *workspace)
{
    (void)device;
    ms_cpu_scalar_kernels(block->q->scalar)->attention_block_grad(block, workspace);
}

const ms_array_ops ms_host_arrays = {
    .fill = host_fill,
    .add = host_add,
    .round_sum = host_round_sum,
    .convert = host_convert,
    .scale = host_scale,
    .copy = host_copy,
    .copy_box = host_copy_box,
    .initialise = host_initialise,
    .read = host_read,
    .write = host_write,
    .count = host_count,
    .add_sum = host_add_sum,
    .add_squares = host_add_squares,
    .read_sums = host_read_sums,
    .adamw = host_adamw,
    .attention_block = host_attention_block,
    .attention_block_grad = host_attention_block_grad,
    .orthogonalize = ms_host_orthogonalize,
};
