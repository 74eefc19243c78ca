/* CPU kernels of Mamba-2 mixers (Dao and Gu 2024, arXiv 2405.21060) between their
 * projections: a causal convolution, the recurrence
 *     state[t] = exp(-exp(decay) step[t]) state[t - 1] + step[t] x[t] B[t]^T
 *     y[t] = state[t] C[t] + skip x[t]
 * and the gate y silu(z), token after token and in fp64. A group of heads is contiguous:
 * projected z, x, B, C, steps; channels of the convolution x, B, C; so tp splits
 * groups. */
#include "exec/cpu/cpu.h"

#include <math.h>
#include <string.h>

enum {
    PROJECTED,
    TAPS,
    CONVOLUTION_BIAS,
    DECAY,
    SKIP,
    STEP_BIAS,
    UNGATED,
    GATED_GRADIENT
};

/* Sizes of a rank's mixer. */
typedef struct sizes {
    long batch, sequence, groups;
    long heads, width, state; /* heads of a group, width of a head, states per channel */
    long taps, chunk;
    long inner, channels, projected; /* widths per group */
} sizes;

static sizes sizes_of(const ms_model *model, long batch, long sequence, long heads)
{
    long per_group = model->mamba.num_heads / model->mamba.num_groups;
    sizes s = {.batch = batch,
               .sequence = sequence,
               .groups = heads / per_group,
               .heads = per_group,
               .width = model->mamba.head_dim,
               .state = model->mamba.state_size,
               .taps = model->mamba.conv_kernel,
               .chunk = ms_cpu_smaller(model->mamba.chunk_size, sequence)};
    s.inner = s.heads * s.width;
    s.channels = s.inner + 2 * s.state;
    s.projected = s.inner + s.channels + s.heads;
    return s;
}

/* Work of one sequence and group, and sums of a rank's gradients of weights; gradients
 * only for SCAN_GRAD. */
typedef struct scan {
    sizes s;
    const ms_op_call *call;
    long batch, group;
    double *before, *after; /* (sequence, channels) around silu of the convolution */
    double *raw_step;       /* (sequence, heads) steps before softplus */
    double *states;         /* (1 + chunk, width x state): states of one chunk */
    double *chunks;         /* (chunks, width x state): states before each chunk */
    double *gafter, *gstep; /* gradients of `after` and of raw_step */
    double *gstate, *gy;    /* (width x state); (width) gradient of y of one token */
    double *weights;        /* gradients of taps, biases, decays, skips, step biases */
} scan;

static long num_chunks(const sizes *s)
{
    return (s->sequence + s->chunk - 1) / s->chunk;
}

static long num_weights(const sizes *s)
{
    return s->groups * (s->channels * (s->taps + 1) + 3 * s->heads);
}

/* Sets the arrays of `w` one after the other from `memory` on; returns their number of
 * elements. */
static size_t set_arrays(scan *w, double *memory)
{
    const sizes *s = &w->s;
    long one = s->width * s->state;
    const struct {
        double **array;
        long count;
    } all[] = {{&w->before, s->sequence * s->channels},
               {&w->after, s->sequence * s->channels},
               {&w->raw_step, s->sequence * s->heads},
               {&w->states, (1 + s->chunk) * one},
               {&w->chunks, num_chunks(s) * one},
               {&w->gafter, s->sequence * s->channels},
               {&w->gstep, s->sequence * s->heads},
               {&w->gstate, one},
               {&w->gy, s->width},
               {&w->weights, num_weights(s)}};
    size_t total = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i].array = memory != NULL ? memory + total : NULL;
        total += (size_t)all[i].count;
    }
    return total;
}

size_t MS_TYPED(ms_cpu_scan_bytes)(const ms_program *program, const ms_node *node)
{
    int x = node->in[PROJECTED], heads = node->in[DECAY];
    scan w = {.s = sizes_of(
                  program->model, (long)ms_tensor_local_size(program, x, MS_DIM_BATCH),
                  (long)ms_tensor_local_size(program, x, MS_DIM_SEQUENCE),
                  (long)ms_tensor_local_size(program, heads, MS_DIM_MAMBA_HEADS))};
    return set_arrays(&w, NULL) * sizeof(double);
}

static scan scan_of(const ms_op_call *call)
{
    const ms_local *x = call->in[PROJECTED];
    scan w = {.s = sizes_of(call->program->model, x->shape[0], x->shape[1],
                            call->in[DECAY]->count),
              .call = call};
    set_arrays(&w, call->workspace);
    return w;
}

/* ---- addresses ---- */

/* Index of a token's group in a tensor [b s ..] with `width` elements a group. */
static long token_index(const scan *w, long token, long width)
{
    return ((w->batch * w->s.sequence + token) * w->s.groups + w->group) * width;
}

static double projected(const scan *w, long token, long i)
{
    return (double)ms_cpu_in(w->call,
                             PROJECTED)[token_index(w, token, w->s.projected) + i];
}

/* Element of a weight with `width` elements a group. */
static double weight(const scan *w, int operand, long width, long i)
{
    return (double)ms_cpu_in(w->call, operand)[w->group * width + i];
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Derivative of silu(x) = x sigmoid(x). */
static double silu_slope(double x)
{
    double y = sigmoid(x);
    return y * (1 + x * (1 - y));
}

static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* ---- the convolution and the steps ---- */

static double convolved(const scan *w, long token, long channel)
{
    const sizes *s = &w->s;
    double sum = weight(w, CONVOLUTION_BIAS, s->channels, channel);
    for (long k = 0; k < s->taps; k++) {
        long from = token - (s->taps - 1) + k;
        if (from >= 0)
            sum += weight(w, TAPS, s->channels * s->taps, channel * s->taps + k) *
                   projected(w, from, s->inner + channel);
    }
    return sum;
}

static void prepare(scan *w)
{
    const sizes *s = &w->s;
    for (long t = 0; t < s->sequence; t++) {
        for (long c = 0; c < s->channels; c++) {
            double x = convolved(w, t, c);
            w->before[t * s->channels + c] = x;
            w->after[t * s->channels + c] = x * sigmoid(x);
        }
        for (long h = 0; h < s->heads; h++)
            w->raw_step[t * s->heads + h] = projected(w, t, s->inner + s->channels + h) +
                                            weight(w, STEP_BIAS, s->heads, h);
    }
}

/* ---- the recurrence ---- */

/* One token of one head: x (width), B and C (state), the step, its decay rate and the
 * factor of the state. */
typedef struct token {
    const double *x, *b, *c;
    double step, rate, factor;
} token;

static token token_of(const scan *w, long t, long head)
{
    const sizes *s = &w->s;
    const double *row = w->after + t * s->channels;
    token k = {.x = row + head * s->width,
               .b = row + s->inner,
               .c = row + s->inner + s->state,
               .step = softplus(w->raw_step[t * s->heads + head]),
               .rate = -exp(weight(w, DECAY, s->heads, head))};
    k.factor = exp(k.rate * k.step);
    return k;
}

/* The state after a token, from the one before; both may be one array. */
static void next_state(const sizes *s, const token *k, const double *before,
                       double *after)
{
    for (long p = 0; p < s->width; p++)
        for (long n = 0; n < s->state; n++)
            after[p * s->state + n] =
                k->factor * before[p * s->state + n] + k->step * k->x[p] * k->b[n];
}

static void write_token(const scan *w, long t, long head, const double *state)
{
    const sizes *s = &w->s;
    token k = token_of(w, t, head);
    double skip = weight(w, SKIP, s->heads, head);
    long at = token_index(w, t, s->inner) + head * s->width;
    for (long p = 0; p < s->width; p++) {
        double y = skip * k.x[p], z = projected(w, t, head * s->width + p);
        for (long n = 0; n < s->state; n++)
            y += state[p * s->state + n] * k.c[n];
        ms_cpu_out(w->call, 0)[at + p] = (ms_real)(y * z * sigmoid(z));
        if (ms_cpu_out(w->call, 1) != NULL)
            ms_cpu_out(w->call, 1)[at + p] = (ms_real)y;
    }
}

static void for_each_group(scan *w, void (*visit)(scan *))
{
    for (w->batch = 0; w->batch < w->s.batch; w->batch++)
        for (w->group = 0; w->group < w->s.groups; w->group++)
            visit(w);
}

static void clear(double *x, long count)
{
    memset(x, 0, (size_t)count * sizeof *x);
}

static void scan_group(scan *w)
{
    const sizes *s = &w->s;
    prepare(w);
    for (long head = 0; head < s->heads; head++) {
        clear(w->states, s->width * s->state);
        for (long t = 0; t < s->sequence; t++) {
            token k = token_of(w, t, head);
            next_state(s, &k, w->states, w->states);
            write_token(w, t, head, w->states);
        }
    }
}

void MS_TYPED(ms_cpu_scan)(const ms_op_call *call)
{
    scan w = scan_of(call);
    for_each_group(&w, scan_group);
}

/* ---- backward ---- */

/* Gradients of a group's weights in w->weights: taps, biases of the convolution, then
 * decays, skips and step biases of its heads. */
static double *weight_gradient(const scan *w, int operand)
{
    const sizes *s = &w->s;
    const long width[] = {[TAPS] = s->channels * s->taps,
                          [CONVOLUTION_BIAS] = s->channels,
                          [DECAY] = s->heads,
                          [SKIP] = s->heads,
                          [STEP_BIAS] = s->heads};
    double *first = w->weights;
    for (int i = TAPS; i < operand; i++)
        first += s->groups * width[i];
    return first + w->group * width[operand];
}

/* Gradient of the gate of one token and head; sets gy (width), the gradient of y. */
static void gate_gradient(const scan *w, long t, long head, double *gy)
{
    const sizes *s = &w->s;
    long at = token_index(w, t, s->inner) + head * s->width;
    ms_real *gz =
        ms_cpu_out(w->call, 0) + token_index(w, t, s->projected) + head * s->width;
    for (long p = 0; p < s->width; p++) {
        double z = projected(w, t, head * s->width + p),
               g = (double)ms_cpu_in(w->call, GATED_GRADIENT)[at + p];
        gz[p] =
            (ms_real)(g * (double)ms_cpu_in(w->call, UNGATED)[at + p] * silu_slope(z));
        gy[p] = g * z * sigmoid(z);
    }
}

/* Gradient of one token of one head. On entry w->gstate is the gradient of the states
 * `after` it by later tokens; on return, that of the states `before` it. */
static void token_gradient(const scan *w, long t, long head, const double *before,
                           const double *after)
{
    const sizes *s = &w->s;
    token k = token_of(w, t, head);
    double skip = weight(w, SKIP, s->heads, head);
    double *gb = w->gafter + t * s->channels + s->inner, *gc = gb + s->state,
           *gx = w->gafter + t * s->channels + head * s->width;
    double gfactor = 0, gstep = 0, gskip = 0;
    gate_gradient(w, t, head, w->gy);
    for (long p = 0; p < s->width; p++) {
        gx[p] += skip * w->gy[p];
        gskip += w->gy[p] * k.x[p];
        for (long n = 0; n < s->state; n++) {
            long i = p * s->state + n;
            double g = w->gstate[i] + w->gy[p] * k.c[n];
            gc[n] += w->gy[p] * after[i];
            gb[n] += g * k.step * k.x[p];
            gx[p] += g * k.step * k.b[n];
            gstep += g * k.x[p] * k.b[n];
            gfactor += g * before[i];
            w->gstate[i] = g * k.factor;
        }
    }
    /* factor = exp(rate step), rate = -exp(decay), step = softplus(raw step) */
    double gexponent = gfactor * k.factor,
           graw =
               (gstep + gexponent * k.rate) * sigmoid(w->raw_step[t * s->heads + head]);
    w->gstep[t * s->heads + head] = graw;
    weight_gradient(w, DECAY)[head] += gexponent * k.step * k.rate;
    weight_gradient(w, SKIP)[head] += gskip;
    weight_gradient(w, STEP_BIAS)[head] += graw;
}

/* Saves the states of a head before each chunk. */
static void save_chunks(const scan *w, long head)
{
    const sizes *s = &w->s;
    long one = s->width * s->state;
    clear(w->states, one);
    for (long t = 0; t < s->sequence; t++) {
        token k = token_of(w, t, head);
        if (t % s->chunk == 0)
            memcpy(w->chunks + t / s->chunk * one, w->states,
                   (size_t)one * sizeof *w->states);
        next_state(s, &k, w->states, w->states);
    }
}

static void chunk_gradient(const scan *w, long head, long chunk)
{
    const sizes *s = &w->s;
    long one = s->width * s->state, first = chunk * s->chunk;
    long length = ms_cpu_smaller(s->chunk, s->sequence - first);
    memcpy(w->states, w->chunks + chunk * one, (size_t)one * sizeof *w->states);
    for (long i = 0; i < length; i++) {
        token k = token_of(w, first + i, head);
        next_state(s, &k, w->states + i * one, w->states + (i + 1) * one);
    }
    for (long i = length; i-- > 0;)
        token_gradient(w, first + i, head, w->states + i * one,
                       w->states + (i + 1) * one);
}

/* Turns gradients of the convolution's silu into those of its sums; adds those of its
 * weights. */
static void convolution_gradient(const scan *w, long channel)
{
    const sizes *s = &w->s;
    double *taps = weight_gradient(w, TAPS) + channel * s->taps,
           *bias = weight_gradient(w, CONVOLUTION_BIAS) + channel;
    for (long t = 0; t < s->sequence; t++) {
        double *g = &w->gafter[t * s->channels + channel];
        *g *= silu_slope(w->before[t * s->channels + channel]);
        *bias += *g;
        for (long k = 0; k < s->taps; k++) {
            long from = t - (s->taps - 1) + k;
            if (from >= 0)
                taps[k] += *g * projected(w, from, s->inner + channel);
        }
    }
}

/* Gradient of a channel's input: the convolution, transposed. */
static double input_gradient(const scan *w, long t, long channel)
{
    const sizes *s = &w->s;
    double sum = 0;
    for (long k = 0; k < s->taps; k++) {
        long to = t + (s->taps - 1) - k;
        if (to < s->sequence)
            sum += weight(w, TAPS, s->channels * s->taps, channel * s->taps + k) *
                   w->gafter[to * s->channels + channel];
    }
    return sum;
}

static void group_gradient(scan *w)
{
    const sizes *s = &w->s;
    prepare(w);
    clear(w->gafter, s->sequence * s->channels);
    for (long head = 0; head < s->heads; head++) {
        save_chunks(w, head);
        clear(w->gstate, s->width * s->state);
        for (long chunk = num_chunks(s); chunk-- > 0;)
            chunk_gradient(w, head, chunk);
    }
    for (long c = 0; c < s->channels; c++)
        convolution_gradient(w, c);
    for (long t = 0; t < s->sequence; t++) {
        ms_real *g = ms_cpu_out(w->call, 0) + token_index(w, t, s->projected) + s->inner;
        for (long c = 0; c < s->channels; c++)
            g[c] = (ms_real)input_gradient(w, t, c);
        for (long h = 0; h < s->heads; h++)
            g[s->channels + h] = (ms_real)w->gstep[t * s->heads + h];
    }
}

void MS_TYPED(ms_cpu_scan_grad)(const ms_op_call *call)
{
    scan w = scan_of(call);
    clear(w.weights, num_weights(&w.s));
    for_each_group(&w, group_gradient);
    const double *from = w.weights;
    for (int result = TAPS; result < call->node->num_out; result++) { /* none if frozen */
        ms_real *to = ms_cpu_out(call, result);
        bool adds = ms_op_is_added(call, result);
        long count = call->in[result]->count;
        for (long i = 0; i < count && to != NULL; i++)
            to[i] = (ms_real)((adds ? (double)to[i] : 0) + from[i]);
        from += count;
    }
}
