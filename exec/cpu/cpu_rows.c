/* CPU kernels PERMUTE, UNPERMUTE: copies of each token sorted by expert, then token.
 * Those that an expert drops (ms_op_call.capacity) have no row. */
#include "exec/cpu/cpu.h"

#include <string.h>

typedef struct row_order {
    const ms_real *choice; /* (tokens, k): chosen experts */
    long num_chosen, num_tokens, width;
    long *next; /* (num_experts) each expert's next row to fill or read */
} row_order;

static row_order begin_rows(const ms_op_call *call, const ms_local *choice, long width)
{
    long num_experts = (long)call->program->size[MS_DIM_EXPERTS - '0'], begin = 0;
    row_order o = {.choice = choice->data,
                   .num_chosen = ms_local_last(choice),
                   .num_tokens = ms_local_leading(choice),
                   .width = width,
                   .next = call->workspace};
    memset(o.next, 0, (size_t)num_experts * sizeof *o.next);
    for (long i = 0; i < choice->count; i++)
        if (o.choice[i] >= 0)
            o.next[(long)o.choice[i]]++;
    for (long e = 0; e < num_experts; e++) {
        long count = o.next[e];
        o.next[e] = begin;
        begin += count;
    }
    return o;
}

/* Offset, in elements, of the row for copy number `slot` of a token; -1 if it is dropped.
 * Each call takes a row: call once per (token, slot), in ascending order. */
static long next_row(row_order *o, long token, long slot)
{
    if (o->choice[token * o->num_chosen + slot] < 0)
        return -1;
    return o->next[(long)o->choice[token * o->num_chosen + slot]]++ * o->width;
}

void MS_TYPED(ms_cpu_permute)(const ms_op_call *call)
{
    row_order o = begin_rows(call, call->in[1], ms_local_last(call->in[0]));
    const ms_real *x = ms_cpu_in(call, 0);
    ms_real *rows = ms_cpu_out(call, 0);
    for (long token = 0; token < o.num_tokens; token++) {
        for (long slot = 0; slot < o.num_chosen; slot++) {
            long row = next_row(&o, token, slot);
            if (row >= 0)
                memcpy(rows + row, x + token * o.width, (size_t)o.width * sizeof *rows);
        }
    }
}

void MS_TYPED(ms_cpu_permute_grad)(const ms_op_call *call)
{
    row_order o = begin_rows(call, call->in[1], ms_local_last(call->out[0]));
    const ms_real *grows = ms_cpu_in(call, 0);
    ms_real *gx = ms_cpu_out(call, 0);
    for (long token = 0; token < o.num_tokens; token++, gx += o.width) {
        memset(gx, 0, (size_t)o.width * sizeof *gx);
        for (long slot = 0; slot < o.num_chosen; slot++) {
            long row = next_row(&o, token, slot);
            if (row >= 0)
                MS_TYPED(ms_cpu_vector_add)(gx, grows + row, o.width);
        }
    }
}

MS_WIDE static void add_scaled(ms_real *restrict to, const ms_real *restrict from,
                               ms_real factor, long count)
{
    for (long i = 0; i < count; i++)
        to[i] += factor * from[i];
}

void MS_TYPED(ms_cpu_unpermute)(const ms_op_call *call)
{
    row_order o = begin_rows(call, call->in[2], ms_local_last(call->out[0]));
    const ms_real *rows = ms_cpu_in(call, 0), *weight = ms_cpu_in(call, 1);
    ms_real *y = ms_cpu_out(call, 0);
    memset(y, 0, (size_t)call->out[0]->count * sizeof *y);
    for (long token = 0; token < o.num_tokens; token++, y += o.width) {
        for (long slot = 0; slot < o.num_chosen; slot++) {
            long row = next_row(&o, token, slot);
            if (row >= 0)
                add_scaled(y, rows + row, weight[token * o.num_chosen + slot], o.width);
        }
    }
}

MS_WIDE static double scale_and_dot(ms_real *restrict to, const ms_real *restrict g,
                                    const ms_real *restrict row, ms_real factor,
                                    long count)
{
    double lane[MS_CPU_LANES] = {0};
    long i = 0;
    for (; i + MS_CPU_LANES <= count; i += MS_CPU_LANES)
        for (int j = 0; j < MS_CPU_LANES; j++)
            lane[j] += (double)g[i + j] * (double)row[i + j];
    for (; i < count; i++)
        lane[0] += (double)g[i] * (double)row[i];
    for (i = 0; i < count; i++)
        to[i] = factor * g[i];
    return ms_cpu_sum_lanes(lane);
}

void MS_TYPED(ms_cpu_unpermute_grad)(const ms_op_call *call)
{
    row_order o = begin_rows(call, call->in[3], ms_local_last(call->in[0]));
    const ms_real *gy = ms_cpu_in(call, 0), *rows = ms_cpu_in(call, 1),
                  *weight = ms_cpu_in(call, 2);
    ms_real *grows = ms_cpu_out(call, 0), *gweight = ms_cpu_out(call, 1);
    for (long token = 0; token < o.num_tokens; token++, gy += o.width) {
        for (long slot = 0; slot < o.num_chosen; slot++) {
            long at = token * o.num_chosen + slot, row = next_row(&o, token, slot);
            gweight[at] = 0;
            if (row >= 0)
                gweight[at] = (ms_real)scale_and_dot(grows + row, gy, rows + row,
                                                     weight[at], o.width);
        }
    }
}
