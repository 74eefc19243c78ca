/* CPU kernels: activations, additions, concatenation, the gate of shared experts, dropout
 * masks. */
#include "exec/core/dropout.h"
#include "exec/cpu/cpu.h"
#include "exec/cpu/cpu_exp.h"

#include <string.h>

/* Activation functions; GELU is exact or by tanh. */
typedef enum curve {
    CURVE_SILU,
    CURVE_RELU,
    CURVE_RELU2,
    CURVE_GELU,
    CURVE_GELU_TANH
} curve;

static curve curve_of(const ms_model *model)
{
    switch (model->activation) {
    case MS_ACT_SWIGLU:
        return CURVE_SILU;
    case MS_ACT_RELU:
        return CURVE_RELU;
    case MS_ACT_RELU2:
        return CURVE_RELU2;
    case MS_ACT_GEGLU:
    case MS_ACT_GELU:
        break;
    }
    return model->gelu_tanh ? CURVE_GELU_TANH : CURVE_GELU;
}

#define SQRT_HALF         0.70710678118654752
#define SQRT_2_OVER_PI    0.79788456080286536
#define ONE_OVER_SQRT_2PI 0.39894228040143268
#define GELU_CUBIC        0.044715

/* GELU (Hendrycks and Gimpel 2016): x Phi(x), or x / 2 (1 + tanh(u)) = x sigmoid(2 u)
 * with u = sqrt(2 / pi) (x + 0.044715 x^3). */
static inline ms_real value_at(curve kind, ms_real x)
{
    if (kind == CURVE_SILU)
        return x * ms_real_sigmoid(x);
    if (kind == CURVE_RELU)
        return x > 0 ? x : 0;
    if (kind == CURVE_RELU2)
        return x > 0 ? x * x : 0;
    if (kind == CURVE_GELU)
        return (ms_real)0.5 * x * (1 + MS_REAL_MATH(erf)(x * (ms_real)SQRT_HALF));
    ms_real twice = (ms_real)(2 * SQRT_2_OVER_PI) * (x + (ms_real)GELU_CUBIC * x * x * x);
    return x * ms_real_sigmoid(twice);
}

static inline ms_real slope_at(curve kind, ms_real x)
{
    if (kind == CURVE_SILU) {
        ms_real open = ms_real_sigmoid(x);
        return open * (1 + x * (1 - open));
    }
    if (kind == CURVE_RELU)
        return x > 0 ? 1 : 0;
    if (kind == CURVE_RELU2)
        return x > 0 ? 2 * x : 0;
    if (kind == CURVE_GELU)
        return (ms_real)0.5 * (1 + MS_REAL_MATH(erf)(x * (ms_real)SQRT_HALF)) +
               x * ms_real_exp(-x * x / 2) * (ms_real)ONE_OVER_SQRT_2PI;
    const ms_real scale = (ms_real)(2 * SQRT_2_OVER_PI);
    ms_real open = ms_real_sigmoid(scale * (x + (ms_real)GELU_CUBIC * x * x * x));
    return open + x * open * (1 - open) * scale * (1 + (ms_real)(3 * GELU_CUBIC) * x * x);
}

/* Arrays of an activation; `factor` is NULL if not gated, `gout` in the forward pass. */
typedef struct activation {
    const ms_real *x, *factor, *gout;
    ms_real *out, *gfactor; /* in backward, out is the gradient of x */
    long count;
} activation;

/* Inlining with a constant activation function leaves no branches in the loops. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE void forward_loop(curve kind, const activation *a)
{
    const ms_real *x = a->x, *factor = a->factor;
    ms_real *out = a->out;
    if (factor != NULL)
        for (long i = 0; i < a->count; i++)
            out[i] = value_at(kind, x[i]) * factor[i];
    else
        for (long i = 0; i < a->count; i++)
            out[i] = value_at(kind, x[i]);
}

ALWAYS_INLINE void backward_loop(curve kind, const activation *a)
{
    const ms_real *restrict x = a->x, *restrict factor = a->factor,
                            *restrict gout = a->gout;
    ms_real *restrict gx = a->out, *restrict gfactor = a->gfactor;
    if (factor == NULL) {
        for (long i = 0; i < a->count; i++)
            gx[i] = gout[i] * slope_at(kind, x[i]);
        return;
    }
    for (long i = 0; i < a->count; i++) {
        ms_real g = gout[i];
        gx[i] = g * slope_at(kind, x[i]) * factor[i];
        gfactor[i] = g * value_at(kind, x[i]);
    }
}

ALWAYS_INLINE void curve_loop(curve kind, const activation *a)
{
    if (a->gout != NULL)
        backward_loop(kind, a);
    else
        forward_loop(kind, a);
}

MS_WIDE static void apply_curve(curve kind, const activation *a)
{
    switch (kind) {
    case CURVE_SILU:
        curve_loop(CURVE_SILU, a);
        break;
    case CURVE_RELU:
        curve_loop(CURVE_RELU, a);
        break;
    case CURVE_RELU2:
        curve_loop(CURVE_RELU2, a);
        break;
    case CURVE_GELU:
        curve_loop(CURVE_GELU, a);
        break;
    case CURVE_GELU_TANH:
        curve_loop(CURVE_GELU_TANH, a);
        break;
    }
}

/* GPT-OSS (openai/gpt-oss, model.py, swiglu): factor of the gate in the sigmoid. */
#define CLAMPED_SIGMOID 1.702

/* SwiGLU with gate x and factor limited: gate at most `limit`, factor within -limit ..
 * limit, to which 1 is added. Values beyond a limit have no gradient. */
static void clamped_swiglu(const activation *a, ms_real limit)
{
    for (long i = 0; i < a->count; i++) {
        ms_real x = a->x[i] < limit ? a->x[i] : limit, up = a->factor[i];
        up = up < -limit ? -limit : up > limit ? limit : up;
        ms_real open = ms_real_sigmoid((ms_real)CLAMPED_SIGMOID * x);
        if (a->gout == NULL) {
            a->out[i] = (up + 1) * x * open;
            continue;
        }
        ms_real slope = open * (1 + (ms_real)CLAMPED_SIGMOID * x * (1 - open));
        a->out[i] = a->x[i] <= limit ? a->gout[i] * (up + 1) * slope : 0;
        a->gfactor[i] = up == a->factor[i] ? a->gout[i] * x * open : 0;
    }
}

static void activate(const ms_model *model, const activation *a)
{
    if (model->swiglu_limit > 0.0 && a->factor != NULL)
        clamped_swiglu(a, (ms_real)model->swiglu_limit);
    else
        apply_curve(curve_of(model), a);
}

void MS_TYPED(ms_cpu_activation)(const ms_op_call *call)
{
    activation a = {.x = ms_cpu_in(call, 0),
                    .factor = call->node->num_in > 1 ? ms_cpu_in(call, 1) : NULL,
                    .out = ms_cpu_out(call, 0),
                    .count = call->in[0]->count};
    activate(call->program->model, &a);
}

void MS_TYPED(ms_cpu_activation_grad)(const ms_op_call *call)
{
    bool gated = call->node->num_in > 2;
    activation a = {.x = ms_cpu_in(call, 0),
                    .factor = gated ? ms_cpu_in(call, 1) : NULL,
                    .gout = ms_cpu_in(call, call->node->num_in - 1),
                    .out = ms_cpu_out(call, 0),
                    .gfactor = gated ? ms_cpu_out(call, 1) : NULL,
                    .count = call->in[0]->count};
    activate(call->program->model, &a);
}

/* ---- sums and masks ---- */

MS_WIDE static void add_arrays(ms_real *out, const ms_real *x, const ms_real *y,
                               long count)
{
    for (long i = 0; i < count; i++)
        out[i] = x[i] + y[i];
}

/* Adds to x what dropout leaves of y, and saves the mask. */
static void add_dropped(const ms_op_call *call, double rate)
{
    const ms_local *shape = call->in[0];
    const ms_real *x = ms_cpu_in(call, 0), *y = ms_cpu_in(call, 1);
    const ms_real scale = (ms_real)(1 / (1 - rate));
    ms_real *out = ms_cpu_out(call, 0);
    unsigned char *mask = call->out[1]->data;
    long width = ms_local_last(shape),
         place = strcmp(call->node->name, "mlp.residual") == 0 ? MS_DROPOUT_MLP
                                                               : MS_DROPOUT_MIXER;
    for (long token = 0; token < ms_local_leading(shape); token++) {
        long position = ms_cpu_position(call, shape->start[1] + token % shape->shape[1]);
        ms_dropout d = ms_dropout_row(
            call, rate, place, shape->start[0] + token / shape->shape[1], position);
        for (long i = token * width; i < (token + 1) * width; i++) {
            mask[i] = ms_dropout_keeps(&d, shape->start[2] + i - token * width);
            out[i] = x[i] + (mask[i] != 0 ? y[i] * scale : 0);
        }
    }
}

void MS_TYPED(ms_cpu_add)(const ms_op_call *call)
{
    bool drops = call->node->num_out > 1 && call->out[1]->data != NULL;
    if (drops && call->program->model->hidden_dropout > 0.0) {
        add_dropped(call, call->program->model->hidden_dropout);
        return;
    }
    add_arrays(ms_cpu_out(call, 0), ms_cpu_in(call, 0), ms_cpu_in(call, 1),
               call->in[0]->count);
    if (drops)
        memset(call->out[1]->data, 1, (size_t)call->out[1]->count);
}

void MS_TYPED(ms_cpu_dropout_grad)(const ms_op_call *call)
{
    const ms_real *gout = ms_cpu_in(call, 0);
    const unsigned char *mask = call->in[1]->data;
    const ms_real scale = (ms_real)(1 / (1 - call->program->model->hidden_dropout));
    ms_real *gin = ms_cpu_out(call, 0);
    for (long i = 0; i < call->in[0]->count; i++)
        gin[i] = mask[i] != 0 ? gout[i] * scale : 0;
}

/* ---- concatenation ---- */

void MS_TYPED(ms_cpu_concat)(const ms_op_call *call)
{
    ms_real *out = ms_cpu_out(call, 0);
    for (int part = 0; part < 2; part++) {
        const ms_real *x = ms_cpu_in(call, part);
        long width = ms_local_last(call->in[part]);
        for (long row = 0; row < ms_local_leading(call->in[part]); row++)
            memcpy(out + (2 * row + part) * width, x + row * width,
                   (size_t)width * sizeof *x);
    }
}

void MS_TYPED(ms_cpu_concat_grad)(const ms_op_call *call)
{
    const ms_real *gout = ms_cpu_in(call, 0);
    for (int part = 0; part < 2; part++) {
        ms_real *gx = ms_cpu_out(call, part);
        long width = ms_local_last(call->out[part]);
        for (long row = 0; row < ms_local_leading(call->out[part]); row++)
            memcpy(gx + row * width, gout + (2 * row + part) * width,
                   (size_t)width * sizeof *gx);
    }
}

/* ---- gate ---- */

void MS_TYPED(ms_cpu_gate)(const ms_op_call *call)
{
    const ms_real *x = ms_cpu_in(call, 0), *gate = ms_cpu_in(call, 1);
    ms_real *out = ms_cpu_out(call, 0);
    long width = ms_local_last(call->in[0]);
    for (long row = 0; row < call->in[1]->count; row++) {
        ms_real open = ms_real_sigmoid(gate[row]);
        for (long i = row * width; i < (row + 1) * width; i++)
            out[i] = x[i] * open;
    }
}

void MS_TYPED(ms_cpu_gate_grad)(const ms_op_call *call)
{
    const ms_real *x = ms_cpu_in(call, 0), *gate = ms_cpu_in(call, 1),
                  *gout = ms_cpu_in(call, 2);
    ms_real *gx = ms_cpu_out(call, 0), *ggate = ms_cpu_out(call, 1);
    long width = ms_local_last(call->in[0]);
    for (long row = 0; row < call->in[1]->count; row++) {
        double open = 1 / (1 + exp(-(double)gate[row])), sum = 0;
        for (long i = row * width; i < (row + 1) * width; i++) {
            sum += (double)gout[i] * (double)x[i];
            gx[i] = gout[i] * (ms_real)open;
        }
        ggate[row] = (ms_real)(sum * open * (1 - open));
    }
}
