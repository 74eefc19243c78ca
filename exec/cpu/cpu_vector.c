/* CPU array operations for reductions, gradients and the optimizer. */
#include "exec/cpu/cpu.h"

#include <math.h>
#include <string.h>

MS_WIDE void MS_TYPED(ms_cpu_vector_add)(void *to, const void *from, long count)
{
    ms_real *x = to;
    const ms_real *y = from;
    for (long i = 0; i < count; i++)
        x[i] += y[i];
}

MS_WIDE void MS_TYPED(ms_cpu_vector_maximum)(void *to, const void *from, long count)
{
    ms_real *x = to;
    const ms_real *y = from;
    for (long i = 0; i < count; i++)
        x[i] = y[i] > x[i] ? y[i] : x[i];
}

MS_WIDE void MS_TYPED(ms_cpu_vector_scale)(void *x, double factor, long count)
{
    ms_real *values = x, by = (ms_real)factor;
    for (long i = 0; i < count; i++)
        values[i] *= by;
}

MS_WIDE void MS_TYPED(ms_cpu_vector_fill)(void *x, double value, long count)
{
    ms_real *values = x, with = (ms_real)value;
    for (long i = 0; i < count; i++)
        values[i] = with;
}

MS_WIDE double MS_TYPED(ms_cpu_vector_sum_of_squares)(const void *x, long count)
{
    return ms_cpu_sum_of_squares(x, 0, count);
}

/* Whether x is finite: the sum of x * 0 is then 0; infinity or NaN would make it NaN. */
MS_WIDE bool MS_TYPED(ms_cpu_vector_is_finite)(const void *x, long count)
{
    const ms_real *values = x;
    ms_real lane[MS_CPU_MANY_LANES] = {0};
    long i = 0;
    for (; i + MS_CPU_MANY_LANES <= count; i += MS_CPU_MANY_LANES)
        for (int j = 0; j < MS_CPU_MANY_LANES; j++)
            lane[j] += values[i + j] * 0;
    for (; i < count; i++)
        lane[0] += values[i] * 0;
    for (int j = 1; j < MS_CPU_MANY_LANES; j++)
        lane[0] += lane[j];
    return lane[0] == 0;
}

MS_WIDE void MS_TYPED(ms_cpu_vector_from_double)(void *to, const double *from, long count)
{
    ms_real *values = to;
    for (long i = 0; i < count; i++)
        values[i] = (ms_real)from[i];
}

MS_WIDE void MS_TYPED(ms_cpu_vector_to_double)(double *to, const void *from, long count)
{
    const ms_real *values = from;
    for (long i = 0; i < count; i++)
        to[i] = (double)values[i];
}

/* Scalars of an AdamW update in the type of the weights, as in PyTorch. */
typedef struct adamw_step {
    ms_real decay_factor; /* 1 - learning rate x weight decay */
    ms_real one_minus_beta1, beta2, one_minus_beta2;
    ms_real step_size, root_correction, epsilon, gradient_scale;
} adamw_step;

static adamw_step prepare_step(const ms_adamw *how)
{
    double first = 1 - pow(how->beta1, (double)how->step),
           second = 1 - pow(how->beta2, (double)how->step);
    return (adamw_step){.decay_factor =
                            (ms_real)(1 - how->learning_rate * how->weight_decay),
                        .one_minus_beta1 = (ms_real)(1 - how->beta1),
                        .beta2 = (ms_real)how->beta2,
                        .one_minus_beta2 = (ms_real)(1 - how->beta2),
                        .step_size = (ms_real)(how->learning_rate / first),
                        .root_correction = (ms_real)sqrt(second),
                        .epsilon = (ms_real)how->epsilon,
                        .gradient_scale = (ms_real)how->gradient_scale};
}

MS_WIDE static void update_weights(adamw_step s, ms_real *restrict weight,
                                   const ms_real *restrict gradient,
                                   ms_real *restrict first, ms_real *restrict second,
                                   long count)
{
    for (long i = 0; i < count; i++) {
        ms_real g = gradient[i] * s.gradient_scale;
        ms_real m = first[i] + (g - first[i]) * s.one_minus_beta1;
        ms_real v = second[i] * s.beta2 + s.one_minus_beta2 * g * g;
        ms_real root = MS_REAL_MATH(sqrt)(v) / s.root_correction + s.epsilon;
        weight[i] = weight[i] * s.decay_factor - s.step_size * (m / root);
        first[i] = m;
        second[i] = v;
    }
}

void MS_TYPED(ms_cpu_adamw)(const ms_adamw *how, void *weight, const void *gradient,
                            void *first_moment, void *second_moment, long count)
{
    update_weights(prepare_step(how), weight, gradient, first_moment, second_moment,
                   count);
}
