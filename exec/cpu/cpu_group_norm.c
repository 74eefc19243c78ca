/* CPU kernels of the norm inside Mamba-2 mixers: an RMS norm of each group of heads
 * (transformers modeling_nemotron_h.py, MambaRMSNormGated). */
#include "exec/cpu/cpu.h"

#include <math.h>

#define DEFAULT_EPSILON 1e-6

/* Entries of a group: those of all heads, of which a rank has whole groups. */
static long group_width(const ms_model *model)
{
    return ms_mamba_inner(model) / model->mamba.num_groups;
}

static double scale_of(const ms_model *model, const ms_real *x, long width)
{
    double epsilon = model->norm_epsilon > 0 ? model->norm_epsilon : DEFAULT_EPSILON;
    return 1 / sqrt(ms_cpu_sum_of_squares(x, 0, width) / (double)width + epsilon);
}

void MS_TYPED(ms_cpu_group_norm)(const ms_op_call *call)
{
    const ms_model *model = call->program->model;
    const ms_real *x = ms_cpu_in(call, 0), *weight = ms_cpu_in(call, 1);
    ms_real *out = ms_cpu_out(call, 0);
    long width = group_width(model), inner = call->in[1]->count;
    for (long at = 0; at < call->in[0]->count; at += width) {
        double scale = scale_of(model, x + at, width);
        for (long i = 0; i < width; i++)
            out[at + i] =
                (ms_real)((double)x[at + i] * scale * (double)weight[at % inner + i]);
    }
}

/* Gradient of x: scale (g - y mean(g y)), where y = x scale and g = gout weight. */
static void group_gradient(const ms_op_call *call, long at, long width, double *gweight)
{
    const ms_real *x = ms_cpu_in(call, 0) + at, *gout = ms_cpu_in(call, 2) + at,
                  *weight = ms_cpu_in(call, 1) + at % call->in[1]->count;
    ms_real *gx = ms_cpu_out(call, 0) + at;
    double scale = scale_of(call->program->model, x, width), mean = 0;
    for (long i = 0; i < width; i++)
        mean +=
            (double)gout[i] * (double)weight[i] * (double)x[i] * scale / (double)width;
    for (long i = 0; i < width; i++) {
        double y = (double)x[i] * scale, g = (double)gout[i] * (double)weight[i];
        gx[i] = (ms_real)(scale * (g - y * mean));
        gweight[i] += (double)gout[i] * y;
    }
}

size_t MS_TYPED(ms_cpu_group_norm_grad_bytes)(const ms_program *program,
                                              const ms_node *node)
{
    return (size_t)ms_tensor_local_size(program, node->in[1], MS_DIM_MAMBA_INNER) *
           sizeof(double);
}

void MS_TYPED(ms_cpu_group_norm_grad)(const ms_op_call *call)
{
    double *gweight = call->workspace;
    long width = group_width(call->program->model), inner = call->in[1]->count;
    for (long i = 0; i < inner; i++)
        gweight[i] = 0;
    for (long at = 0; at < call->in[0]->count; at += width)
        group_gradient(call, at, width, gweight + at % inner);
    if (call->node->num_out == 1)
        return; /* a frozen weight */
    ms_real *to = ms_cpu_out(call, 1);
    bool adds = ms_op_is_added(call, 1);
    for (long i = 0; i < inner && to != NULL; i++)
        to[i] = (ms_real)((adds ? (double)to[i] : 0) + gweight[i]);
}
