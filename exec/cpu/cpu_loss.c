/* CPU kernels of cross entropy (LOSS_MAX, LOSS_SUM, LOSS) without vocabulary padding. */
#include "exec/cpu/cpu.h"
#include "exec/cpu/cpu_exp.h"

#include <math.h>

/* A rank's shard of the logits (batch, sequence, vocabulary) as rows. */
typedef struct rows {
    const ms_op_call *call;
    const ms_local *logits;
    long num_rows, width;
    long num_real; /* columns that are not vocabulary padding */
    ms_real cap;   /* soft cap of logits (Gemma 2); 0: none */
    ms_real scale; /* factor of logits (Cohere) */
    bool is_plain; /* neither of both */
} rows;

static rows read_rows(const ms_op_call *call)
{
    const ms_local *logits = call->in[0];
    long width = ms_local_last(logits);
    long left = call->program->model->vocab - logits->start[2];
    const ms_model *model = call->program->model;
    double scale = model->logit_scale > 0.0 ? model->logit_scale : 1.0;
    return (rows){.call = call,
                  .logits = logits,
                  .num_rows = ms_local_leading(logits),
                  .width = width,
                  .num_real = left < 0 ? 0 : ms_cpu_smaller(width, left),
                  .cap = (ms_real)model->logit_softcap,
                  .scale = (ms_real)scale,
                  .is_plain = scale == 1.0 && !(model->logit_softcap > 0.0)};
}

/* The logit x after its factor and the soft cap c: c tanh(x / c), which keep the order. */
static ms_real capped(const rows *r, ms_real x)
{
    x *= r->scale;
    return r->cap > 0 ? r->cap * MS_REAL_MATH(tanh)(x / r->cap) : x;
}

/* Derivative of `capped` where it gives y; that of tanh is 1 - tanh^2. */
static ms_real slope_at(const rows *r, ms_real y)
{
    return r->scale * (r->cap > 0 ? 1 - y / r->cap * (y / r->cap) : 1);
}

#define NO_TARGET (-2)

/* Column of the target token in a row of logits; -1 if another rank holds it; NO_TARGET
 * for padding, and for tokens at the end of a sequence if targets are further ahead. */
static long target_of(const rows *r, long row)
{
    const ms_batch *batch = r->call->batch;
    long length = r->logits->shape[1];
    long sequence = r->logits->start[0] + row / length - batch->first_sequence;
    long position = ms_cpu_position(r->call, r->logits->start[1] + row % length) +
                    r->call->node->ahead;
    long target = position < batch->sequence_length
                      ? batch->targets[sequence * batch->sequence_length + position]
                      : -1;
    if (target < 0)
        return NO_TARGET;
    long at = target - r->logits->start[2];
    return at >= 0 && at < r->num_real ? at : -1;
}

MS_WIDE static ms_real largest_of(const ms_real *x, long count)
{
    return ms_cpu_largest(x, count, (ms_real)-HUGE_VAL);
}

void MS_TYPED(ms_cpu_loss_max)(const ms_op_call *call)
{
    rows r = read_rows(call);
    const ms_real *logits = ms_cpu_in(call, 0);
    ms_real *max = ms_cpu_out(call, 0);
    for (long row = 0; row < r.num_rows; row++)
        max[row] = capped(&r, largest_of(logits + row * r.width, r.num_real));
}

/* Elements per piece of a row, so that exp and the sum are separate, vectorized loops. */
#define PIECE 256

static double capped_sum_of_exp(const rows *r, const ms_real *x, ms_real max)
{
    double total = 0;
    for (long i = 0; i < r->num_real; i++)
        total += (double)ms_real_exp(capped(r, x[i]) - max);
    return total;
}

MS_WIDE static double sum_of_exp(const ms_real *x, ms_real max, long count)
{
    double total = 0;
    ms_real terms[PIECE];
    for (long first = 0; first < count; first += PIECE) {
        long length = ms_cpu_smaller(PIECE, count - first);
        for (long i = 0; i < length; i++)
            terms[i] = ms_real_exp(x[first + i] - max);
        total += ms_cpu_sum(terms, length);
    }
    return total;
}

void MS_TYPED(ms_cpu_loss_sum)(const ms_op_call *call)
{
    rows r = read_rows(call);
    const ms_real *logits = ms_cpu_in(call, 0), *max = ms_cpu_in(call, 1);
    ms_real *sum = ms_cpu_out(call, 0), *target = ms_cpu_out(call, 1);
    for (long row = 0; row < r.num_rows; row++) {
        const ms_real *from = logits + row * r.width;
        long at = target_of(&r, row);
        sum[row] = (ms_real)(r.is_plain ? sum_of_exp(from, max[row], r.num_real)
                                        : capped_sum_of_exp(&r, from, max[row]));
        target[row] = at >= 0 ? capped(&r, from[at]) : 0;
        if (at == NO_TARGET) { /* log(1) + max - max is 0, summed over ranks */
            sum[row] = r.logits->start[2] == 0 ? 1 : 0;
            target[row] = r.logits->start[2] == 0 ? max[row] : 0;
        }
    }
}

void MS_TYPED(ms_cpu_loss)(const ms_op_call *call)
{
    const ms_real *max = ms_cpu_in(call, 0), *sum = ms_cpu_in(call, 1),
                  *target = ms_cpu_in(call, 2);
    ms_real *loss = ms_cpu_out(call, 0);
    for (long i = 0; i < call->out[0]->count; i++)
        loss[i] = (ms_real)((double)max[i] + log((double)sum[i]) - (double)target[i]);
}

/* out = exp(x - max) * factor; `out` may be `x` itself. */
MS_WIDE static void softmax_row(ms_real *out, const ms_real *x, ms_real max,
                                ms_real factor, long count)
{
    for (long i = 0; i < count; i++)
        out[i] = ms_real_exp(x[i] - max) * factor;
}

/* Number of tokens by which gradients are divided, for a loss of weight 1. */
static double num_tokens(const ms_op_call *call)
{
    return call->batch->num_tokens / ms_node_loss_weight(call->program, call->node);
}

/* Gradient of a row of logits before their factor and soft cap. */
static void capped_gradient(const rows *r, ms_real *out, const ms_real *x, ms_real max,
                            ms_real factor, long target)
{
    ms_real one = (ms_real)(1 / num_tokens(r->call));
    for (long i = 0; i < r->num_real; i++) {
        ms_real y = capped(r, x[i]);
        out[i] =
            (ms_real_exp(y - max) * factor - (i == target ? one : 0)) * slope_at(r, y);
    }
}

void MS_TYPED(ms_cpu_loss_grad)(const ms_op_call *call)
{
    rows r = read_rows(call);
    const ms_real *logits = ms_cpu_in(call, 0), *max = ms_cpu_in(call, 1),
                  *sum = ms_cpu_in(call, 2);
    ms_real *glogits = ms_cpu_out(call, 0);
    const double num = num_tokens(call);
    for (long row = 0; row < r.num_rows; row++) {
        ms_real *to = glogits + row * r.width;
        long at = target_of(&r, row);
        ms_real factor = (ms_real)(at == NO_TARGET ? 0 : 1 / ((double)sum[row] * num));
        if (!r.is_plain)
            capped_gradient(&r, to, logits + row * r.width, max[row], factor, at);
        else
            softmax_row(to, logits + row * r.width, max[row], factor, r.num_real);
        for (long i = r.num_real; i < r.width; i++)
            to[i] = 0;
        if (at >= 0 && r.is_plain)
            to[at] -= (ms_real)(1 / num);
    }
}
