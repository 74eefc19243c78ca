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

static const ms_kernels *kernels_of(ms_scalar scalar)
{
    assert(scalar == MS_SCALAR_FP32 || scalar == MS_SCALAR_FP64);
    return ms_cpu_kernels(scalar == MS_SCALAR_FP64 ? MS_REAL_FP64 : MS_REAL_FP32);
}

static double *sum_of(ms_device_rank *device, int slot)
{
    assert(slot >= 0 && slot < MS_MAX_SUMS);
    return &host_rank(device)->sums[slot];
}

static void host_fill(ms_device_rank *device, ms_scalar scalar, void *to, double value,
                      long count)
{
    (void)device;
    if (scalar == MS_SCALAR_FP32 || scalar == MS_SCALAR_FP64) {
        kernels_of(scalar)->fill(to, value, count);
        return;
    }
    assert(value == 0.0);
    memset(to, 0, (size_t)count * ms_scalar_bytes(scalar));
}

static void host_add(ms_device_rank *device, ms_scalar scalar, void *to, const void *from,
                     long count)
{
    (void)device;
    kernels_of(scalar)->add(to, from, count);
}

/* Sets to = from [+ plus], unrounded: fp32 and fp64 are summed in their own type. */
static void host_round_sum(ms_device_rank *device, const ms_rounded_sum *sum)
{
    (void)device;
    if (sum->count > 0)
        memcpy(sum->to, sum->from, (size_t)sum->count * ms_scalar_bytes(sum->scalar));
    if (sum->plus != NULL)
        kernels_of(sum->scalar)->add(sum->to, sum->plus, sum->count);
}

static void host_scale(ms_device_rank *device, ms_scalar scalar, void *x, double factor,
                       long count)
{
    (void)device;
    kernels_of(scalar)->scale(x, factor, count);
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
    enum {
        AT_ONCE = 256
    };
    double values[AT_ONCE];
    for (long done = 0, num; done < piece->number; done += num) {
        num = piece->number - done < AT_ONCE ? piece->number - done : AT_ONCE;
        ms_initial_values(piece, done, num, values);
        kernels_of(scalar)->from_double(
            (char *)to + (size_t)done * ms_scalar_bytes(scalar), values, num);
    }
}

static ms_status host_read(ms_ctx *cx, ms_device_rank *device, ms_scalar scalar,
                           double *to, const void *from, long count)
{
    (void)cx;
    (void)device;
    kernels_of(scalar)->to_double(to, from, count);
    return MS_OK;
}

static ms_status host_write(ms_ctx *cx, ms_device_rank *device, ms_scalar scalar,
                            void *to, const double *from, long count)
{
    (void)cx;
    (void)device;
    kernels_of(scalar)->from_double(to, from, count);
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
        assert(value >= 0 && value < (double)num);
        counts[(long)value]++;
    }
    (void)num;
    return MS_OK;
}

static void host_add_sum(ms_device_rank *device, ms_scalar scalar, int slot,
                         const void *x, long num)
{
    double values[256], sum = 0.0;
    size_t bytes = ms_scalar_bytes(scalar);
    for (long done = 0; done < num; done += 256) {
        long piece = num - done < 256 ? num - done : 256;
        kernels_of(scalar)->to_double(values, (const char *)x + (size_t)done * bytes,
                                      piece);
        for (long i = 0; i < piece; i++)
            sum += values[i];
    }
    *sum_of(device, slot) += sum;
}

static void host_add_squares(ms_device_rank *device, ms_scalar scalar, int slot,
                             const void *x, long num)
{
    *sum_of(device, slot) += kernels_of(scalar)->sum_of_squares(x, num);
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
    (void)device;
    assert(u->master == NULL);
    kernels_of(u->scalar)->adamw(how, u->weight, u->gradient, u->first_moment,
                                 u->second_moment, u->count);
}

static void host_attention_block(ms_device_rank *device, const ms_attention_block *block,
                                 void *workspace)
{
    (void)device;
    kernels_of(block->q->scalar)->attention_block(block, workspace);
}

static void host_attention_block_grad(ms_device_rank *device,
                                      const ms_attention_block *block, void *workspace)
{
    (void)device;
    kernels_of(block->q->scalar)->attention_block_grad(block, workspace);
}

const ms_array_ops ms_host_arrays = {
    .fill = host_fill,
    .add = host_add,
    .round_sum = host_round_sum,
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
