/* CPU kernels of RMSNorm (Zhang and Sennrich 2019) and LayerNorm (Ba et al. 2016). */
#include "exec/cpu/cpu.h"

#include <math.h>
#include <string.h>

#define DEFAULT_EPSILON 1e-6

typedef struct norm {
    long width;
    bool is_centred; /* LayerNorm, which subtracts the mean */
    double epsilon;
    ms_real offset; /* added to weights: 1 in norms that multiply by 1 + weight */
} norm;

static norm read_norm(const ms_op_call *call)
{
    const ms_model *model = call->program->model;
    return (norm){.width = call->in[1]->count,
                  .is_centred = model->norm == MS_NORM_LAYER,
                  .epsilon =
                      model->norm_epsilon > 0 ? model->norm_epsilon : DEFAULT_EPSILON,
                  .offset = model->norm_plus_one ? 1 : 0};
}

/* Computes a row's mean (RMSNorm: 0); returns 1 / sqrt(variance + epsilon). */
static inline double scale_of_row(const norm *n, const ms_real *x, double *mean)
{
    double width = (double)n->width;
    *mean = n->is_centred ? ms_cpu_sum(x, n->width) / width : 0;
    return 1 / sqrt(ms_cpu_sum_of_squares(x, *mean, n->width) / width + n->epsilon);
}

MS_WIDE static void normalise_row(const norm *n, const ms_real *restrict x,
                                  const ms_real *restrict weight,
                                  const ms_real *restrict bias, ms_real *restrict out)
{
    double mean, scale = scale_of_row(n, x, &mean);
    ms_real shift = (ms_real)mean, factor = (ms_real)scale, offset = n->offset;
    if (bias != NULL)
        for (long i = 0; i < n->width; i++)
            out[i] = (x[i] - shift) * factor * (weight[i] + offset) + bias[i];
    else
        for (long i = 0; i < n->width; i++)
            out[i] = (x[i] - shift) * factor * (weight[i] + offset);
}

void MS_TYPED(ms_cpu_norm)(const ms_op_call *call)
{
    norm n = read_norm(call);
    const ms_real *x = ms_cpu_in(call, 0), *weight = ms_cpu_in(call, 1);
    const ms_real *bias = call->node->num_in > 2 ? ms_cpu_in(call, 2) : NULL;
    ms_real *out = ms_cpu_out(call, 0);
    for (long row = 0; row < call->in[0]->count; row += n.width)
        normalise_row(&n, x + row, weight, bias, out + row);
}

/* ---- backward ---- */

/* For a row x with y = (x - mean) scale, g = gout (weight + offset): of_g = mean of g (RMSNorm: 0),
 * of_g_y = mean of g y. The gradient of x is scale (g - of_g - y of_g_y). */
typedef struct row_means {
    double mean, scale;
    double of_g, of_g_y;
} row_means;

static inline row_means means_of_row(const norm *n, const ms_real *x,
                                     const ms_real *weight, const ms_real *gout)
{
    row_means m;
    m.scale = scale_of_row(n, x, &m.mean);
    double g_lane[MS_CPU_LANES] = {0}, y_lane[MS_CPU_LANES] = {0};
    long i = 0;
    for (; i + MS_CPU_LANES <= n->width; i += MS_CPU_LANES) {
        for (int j = 0; j < MS_CPU_LANES; j++) {
            double g = (double)gout[i + j] * (double)(weight[i + j] + n->offset);
            g_lane[j] += g;
            y_lane[j] += g * (((double)x[i + j] - m.mean) * m.scale);
        }
    }
    for (; i < n->width; i++) {
        double g = (double)gout[i] * (double)(weight[i] + n->offset);
        g_lane[0] += g;
        y_lane[0] += g * (((double)x[i] - m.mean) * m.scale);
    }
    m.of_g = n->is_centred ? ms_cpu_sum_lanes(g_lane) / (double)n->width : 0;
    m.of_g_y = ms_cpu_sum_lanes(y_lane) / (double)n->width;
    return m;
}

/* Gradients of weight and bias, summed over rows. */
typedef struct weight_sums {
    double *weight, *bias; /* (width) each; bias is NULL for RMSNorm */
} weight_sums;

MS_WIDE static void normalise_row_grad(const norm *n, const ms_real *restrict x,
                                       const ms_real *restrict weight,
                                       const ms_real *restrict gout, ms_real *restrict gx,
                                       weight_sums sums)
{
    row_means m = means_of_row(n, x, weight, gout);
    ms_real shift = (ms_real)m.mean, scale = (ms_real)m.scale, of_g = (ms_real)m.of_g,
            of_g_y = (ms_real)m.of_g_y, offset = n->offset;
    double *restrict gweight = sums.weight, *restrict gbias = sums.bias;
    for (long i = 0; i < n->width; i++) {
        ms_real y = (x[i] - shift) * scale;
        gx[i] = scale * (gout[i] * (weight[i] + offset) - of_g - y * of_g_y);
        gweight[i] += (double)(gout[i] * y);
    }
    for (long i = 0; i < n->width && gbias != NULL; i++)
        gbias[i] += (double)gout[i];
}

size_t MS_TYPED(ms_cpu_norm_grad_bytes)(const ms_program *program, const ms_node *node)
{
    return 2 * sizeof(double) * (size_t)ms_tensor_local_elements(program, node->in[1]);
}

static void store_sum(const ms_op_call *call, int result, const double *sum, long width)
{
    ms_real *out = ms_cpu_out(call, result);
    if (out == NULL)
        return;
    bool add = ms_op_is_added(call, result);
    for (long i = 0; i < width; i++)
        out[i] = (ms_real)(sum[i] + (add ? (double)out[i] : 0));
}

void MS_TYPED(ms_cpu_norm_grad)(const ms_op_call *call)
{
    norm n = read_norm(call);
    const ms_real *x = ms_cpu_in(call, 0), *weight = ms_cpu_in(call, 1),
                  *gout = ms_cpu_in(call, 2);
    ms_real *gx = ms_cpu_out(call, 0);
    double *memory = call->workspace;
    weight_sums sums = {memory, call->node->num_out > 2 ? memory + n.width : NULL};
    memset(memory, 0, 2 * (size_t)n.width * sizeof *memory);
    for (long row = 0; row < call->in[0]->count; row += n.width)
        normalise_row_grad(&n, x + row, weight, gout + row, gx + row, sums);
    if (call->node->num_out == 1)
        return; /* a frozen weight */
    store_sum(call, 1, sums.weight, n.width);
    if (sums.bias != NULL)
        store_sum(call, 2, sums.bias, n.width);
}
