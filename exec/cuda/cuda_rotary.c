/* Launch code of rotary positions and of the keys of multi-head latent attention; results
 * equal those of exec/cpu/cpu_rotary.c. */
#include "exec/cuda/cuda_rotary.h"

#include <string.h>

static int sequence_axis(const ms_program *program, int tensor)
{
    const char *dims = program->tensors[tensor].dims;
    return (int)(strchr(dims, MS_DIM_SEQUENCE) - dims);
}

static size_t bytes_of_angles(ms_scalar scalar, long length, long count)
{
    size_t each = scalar == MS_SCALAR_FP64 ? sizeof(double) : sizeof(float);
    return (size_t)length * 2 * (size_t)count * each;
}

size_t ms_cuda_rotary_bytes(const ms_program *program, const ms_node *node,
                            const ms_precision *precision)
{
    long length = (long)ms_tensor_local_size(program, node->in[0], MS_DIM_SEQUENCE);
    return bytes_of_angles(precision->real, length, node->rotary_width / 2);
}

static bool has_equal_angles(const ms_rotary *x, const ms_rotary *y)
{
    return x->law == y->law && x->count == y->count && x->base == y->base &&
           x->factor == y->factor && x->low == y->low && x->high == y->high &&
           x->amplitude == y->amplitude;
}

static bool is_table_of(const ms_cuda_angle_table *table, const ms_cuda_rotary_args *a)
{
    return table->scalar == a->scalar && table->length == a->length &&
           table->first_stored == a->first_stored &&
           has_equal_angles(&table->how, &a->how) && table->positions == a->positions;
}

/* Sets args->angles: a table of the run, made at its first use, or the workspace. */
static void find_angles(const ms_cuda_call *call, ms_cuda_rotary_args *args)
{
    ms_cuda_angle_tables *tables = call->angle_tables;
    args->angles = call->workspace;
    for (int i = 0; tables != NULL && i < tables->num; i++) {
        if (!is_table_of(&tables->table[i], args))
            continue;
        args->angles = tables->table[i].angles;
        return;
    }
    void *made = NULL;
    if (tables != NULL && tables->num < MS_CUDA_ANGLE_TABLES)
        made = tables->take(tables->state,
                            bytes_of_angles(args->scalar, args->length, args->how.count));
    if (made != NULL) {
        args->angles = made;
        tables->table[tables->num++] =
            (ms_cuda_angle_table){.scalar = args->scalar,
                                  .length = args->length,
                                  .first_stored = args->first_stored,
                                  .how = args->how,
                                  .positions = args->positions,
                                  .angles = made};
    }
    ms_cuda_make_angles(call->stream, args);
}

ms_status ms_cuda_rotary(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    const ms_local *x = op->in[0];
    int axis = sequence_axis(op->program, op->node->in[0]);
    long outer = 1, inner = 1, width = ms_local_last(x);
    for (int i = 0; i < axis; i++)
        outer *= x->shape[i];
    for (int i = axis + 1; i < x->num_dims; i++)
        inner *= x->shape[i];
    if (x->count == 0)
        return MS_OK;
    ms_cuda_rotary_args args = {.scalar = (ms_scalar)x->scalar,
                                .outer = outer,
                                .length = x->shape[axis],
                                .heads = (int)(inner / width),
                                .width = (int)width,
                                .x = x->data,
                                .out = op->out[0]->data,
                                .how = ms_rotary_of(op->program->model, op->node),
                                .is_inverse = op->node->inverse,
                                .first_stored = x->start[axis],
                                .positions =
                                    call->batch != NULL ? call->batch->positions : NULL};
    find_angles(call, &args);
    ms_cuda_rotate(call->stream, &args);
    return MS_OK;
}

/* ---- keys of multi-head latent attention ---- */

static ms_cuda_mla_args read_latent(const ms_local *up, const ms_local *rope,
                                    const ms_local *k, const ms_local *v)
{
    int width = (int)ms_local_last(rope);
    return (ms_cuda_mla_args){.scalar = (ms_scalar)k->scalar,
                              .num_tokens = k->shape[0] * k->shape[1],
                              .heads = (int)k->shape[2],
                              .nope = (int)ms_local_last(k) - width,
                              .rope = width,
                              .value = (int)ms_local_last(v),
                              .up = up->data,
                              .shared = rope->data,
                              .k = k->data,
                              .v = v->data};
}

ms_status ms_cuda_mla_keys(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    ms_cuda_mla_args args = read_latent(op->in[0], op->in[1], op->out[0], op->out[1]);
    ms_cuda_join_keys(call->stream, &args);
    return MS_OK;
}

ms_status ms_cuda_mla_keys_grad(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    ms_cuda_mla_args args = read_latent(op->out[0], op->out[1], op->in[0], op->in[1]);
    ms_cuda_join_keys_grad(call->stream, &args);
    return MS_OK;
}
