/* CPU kernels of embeddings: rows of a table by token or position. If another rank's
 * shard has the row, the result here is 0: the sum over ranks is the embedding. */
#include "exec/cpu/cpu.h"

#include <string.h>

/* Row of `table` for row `row` of the activations x; -1 if another rank holds it. */
static long table_row(const ms_op_call *call, const ms_local *x, const ms_local *table,
                      long row)
{
    const ms_batch *batch = call->batch;
    long length = x->shape[1];
    long at = ms_cpu_position(call, x->start[1] + row % length);
    long sequence = x->start[0] + row / length;
    if (call->node->by_position) {
        at += call->program->model->position_offset - ms_cpu_start(call, sequence, at);
    } else {
        long first = (sequence - batch->first_sequence) * batch->sequence_length;
        at += call->node->ahead;
        at = at < batch->sequence_length ? batch->tokens[first + at] : 0;
    }
    at -= table->start[0];
    return at >= 0 && at < table->shape[0] ? at : -1;
}

/* Factor of the looked-up rows. */
static double scale_of(const ms_op_call *call)
{
    double scale = call->program->model->embedding_scale;
    return scale > 0 && !call->node->by_position ? scale : 1;
}

void MS_TYPED(ms_cpu_embed)(const ms_op_call *call)
{
    const ms_local *x = call->out[0], *table = call->in[0];
    const ms_real *from = table->data;
    ms_real *to = x->data;
    long width = ms_local_last(x);
    double scale = scale_of(call);
    for (long row = 0; row < ms_local_leading(x); row++, to += width) {
        long at = table_row(call, x, table, row);
        if (at >= 0)
            memcpy(to, from + at * width, (size_t)width * sizeof *to);
        else
            memset(to, 0, (size_t)width * sizeof *to);
        if (scale != 1)
            MS_TYPED(ms_cpu_vector_scale)(to, scale, width);
    }
}

void MS_TYPED(ms_cpu_embed_grad)(const ms_op_call *call)
{
    const ms_local *gx = call->in[0], *gtable = call->out[0];
    const ms_real *from = gx->data;
    ms_real *to = gtable->data;
    long width = ms_local_last(gx);
    const ms_real scale = (ms_real)scale_of(call);
    if (to == NULL)
        return;
    if (!ms_op_is_added(call, 0))
        memset(to, 0, (size_t)gtable->count * sizeof *to);
    for (long row = 0; row < ms_local_leading(gx); row++, from += width) {
        long at = table_row(call, gx, gtable, row);
        for (long i = 0; at >= 0 && i < width; i++)
            to[at * width + i] += scale * from[i];
    }
}
