/* Element-wise operations and normalisation in the reference interpreter. */
#include "tests/support/interpreter_priv.h"

#include <math.h>

#define NORM_EPSILON 1e-6

void ms_interp_add(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *a = ms_interp_in(run, node, 0, rank),
                  *b = ms_interp_in(run, node, 1, rank);
    ms_cell *out = ms_interp_out(run, node, 0, rank);
    if (!ms_interp_expect(run, node, b, a->count) ||
        !ms_interp_expect(run, node, out, a->count))
        return;
    for (long i = 0; i < a->count; i++)
        out->values[i] = a->values[i] + b->values[i];
    if (node->num_out < 2)
        return;
    ms_cell *mask = ms_interp_out(run, node, 1, rank);
    for (long i = 0; i < mask->count; i++)
        mask->values[i] = 1;
}

void ms_interp_dropout_grad(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *gout = ms_interp_in(run, node, 0, rank),
                  *mask = ms_interp_in(run, node, 1, rank);
    ms_cell *gin = ms_interp_out(run, node, 0, rank);
    if (!ms_interp_expect(run, node, mask, gout->count) ||
        !ms_interp_expect(run, node, gin, gout->count))
        return;
    for (long i = 0; i < gout->count; i++)
        gin->values[i] = gout->values[i] * mask->values[i];
}

/* Returns 1 / root mean square of x less its mean; `mean` gets the mean (0 for RMS
 * norms). */
static double norm_scale(const ms_interp *run, const double *x, long width, double *mean)
{
    *mean = 0;
    if (run->program->model->norm == MS_NORM_LAYER) {
        for (long i = 0; i < width; i++)
            *mean += x[i] / (double)width;
    }
    double square = 0;
    for (long i = 0; i < width; i++)
        square += (x[i] - *mean) * (x[i] - *mean);
    return 1 / sqrt(square / (double)width + NORM_EPSILON);
}

void ms_interp_norm(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *x = ms_interp_in(run, node, 0, rank),
                  *weight = ms_interp_in(run, node, 1, rank);
    const ms_cell *bias = node->num_in > 2 ? ms_interp_in(run, node, 2, rank) : NULL;
    ms_cell *out = ms_interp_out(run, node, 0, rank);
    long width = ms_cell_last(x);
    if (!ms_interp_expect(run, node, weight, width) ||
        !ms_interp_expect(run, node, out, x->count))
        return;
    if (bias != NULL && !ms_interp_expect(run, node, bias, width))
        return;
    for (long row = 0; row < x->count; row += width) {
        double mean, scale = norm_scale(run, x->values + row, width, &mean);
        for (long i = 0; i < width; i++)
            out->values[row + i] =
                (x->values[row + i] - mean) * scale * weight->values[i] +
                (bias != NULL ? bias->values[i] : 0);
    }
}

void ms_interp_norm_grad(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *x = ms_interp_in(run, node, 0, rank),
                  *weight = ms_interp_in(run, node, 1, rank);
    const ms_cell *gout = ms_interp_in(run, node, 2, rank);
    ms_cell *gx = ms_interp_out(run, node, 0, rank),
            *gweight = node->num_out > 1 ? ms_interp_out(run, node, 1, rank) : NULL;
    ms_cell *gbias = node->num_out > 2 ? ms_interp_out(run, node, 2, rank) : NULL;
    long width = ms_cell_last(x);
    if (!ms_interp_expect(run, node, weight, width) ||
        (gweight != NULL && !ms_interp_expect(run, node, gweight, width)) ||
        !ms_interp_expect(run, node, gout, x->count) ||
        !ms_interp_expect(run, node, gx, x->count))
        return;
    if (gbias != NULL && !ms_interp_expect(run, node, gbias, width))
        return;
    for (long row = 0; row < x->count; row += width) {
        double mean, scale = norm_scale(run, x->values + row, width, &mean);
        /* means of gradient * weight, and of gradient * weight * normed value */
        double sum = 0, dot = 0;
        for (long i = 0; i < width; i++) {
            double g = gout->values[row + i],
                   normed = (x->values[row + i] - mean) * scale;
            sum += g * weight->values[i] / (double)width;
            dot += g * weight->values[i] * normed / (double)width;
            if (gweight != NULL)
                gweight->values[i] += g * normed;
            if (gbias != NULL)
                gbias->values[i] += g;
        }
        if (run->program->model->norm != MS_NORM_LAYER)
            sum = 0;
        for (long i = 0; i < width; i++) {
            double normed = (x->values[row + i] - mean) * scale;
            gx->values[row + i] =
                scale * (gout->values[row + i] * weight->values[i] - sum - normed * dot);
        }
    }
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double activate(ms_activation kind, double x)
{
    if (kind == MS_ACT_SWIGLU)
        return x * sigmoid(x);
    if (kind == MS_ACT_RELU)
        return x > 0 ? x : 0;
    if (kind == MS_ACT_RELU2)
        return x > 0 ? x * x : 0;
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}

static double activate_slope(ms_activation kind, double x)
{
    const double two_pi = 6.283185307179586;
    if (kind == MS_ACT_SWIGLU)
        return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
    if (kind == MS_ACT_RELU)
        return x > 0 ? 1 : 0;
    if (kind == MS_ACT_RELU2)
        return x > 0 ? 2 * x : 0;
    return 0.5 * (1 + erf(x / sqrt(2))) + x * exp(-x * x / 2) / sqrt(two_pi);
}

void ms_interp_activation(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *x = ms_interp_in(run, node, 0, rank);
    const ms_cell *factor = node->num_in > 1 ? ms_interp_in(run, node, 1, rank) : NULL;
    ms_cell *out = ms_interp_out(run, node, 0, rank);
    if (!ms_interp_expect(run, node, out, x->count) ||
        (factor != NULL && !ms_interp_expect(run, node, factor, x->count)))
        return;
    for (long i = 0; i < x->count; i++)
        out->values[i] = activate(run->program->model->activation, x->values[i]) *
                         (factor != NULL ? factor->values[i] : 1);
}

void ms_interp_activation_grad(ms_interp *run, const ms_node *node, int rank)
{
    bool is_gated = node->num_in == 3;
    ms_activation kind = run->program->model->activation;
    const ms_cell *x = ms_interp_in(run, node, 0, rank);
    const ms_cell *factor = is_gated ? ms_interp_in(run, node, 1, rank) : NULL;
    const ms_cell *gout = ms_interp_in(run, node, node->num_in - 1, rank);
    if (node->num_out != node->num_in - 1) {
        ms_interp_fail(run, node, "%d operands but %d results", node->num_in,
                       node->num_out);
        return;
    }
    ms_cell *gx = ms_interp_out(run, node, 0, rank);
    ms_cell *gfactor = is_gated ? ms_interp_out(run, node, 1, rank) : NULL;
    if (!ms_interp_expect(run, node, gout, x->count) ||
        !ms_interp_expect(run, node, gx, x->count) ||
        (is_gated && (!ms_interp_expect(run, node, factor, x->count) ||
                      !ms_interp_expect(run, node, gfactor, x->count))))
        return;
    for (long i = 0; i < x->count; i++) {
        double slope = activate_slope(kind, x->values[i]);
        gx->values[i] = gout->values[i] * slope * (is_gated ? factor->values[i] : 1);
        if (is_gated)
            gfactor->values[i] = gout->values[i] * activate(kind, x->values[i]);
    }
}

void ms_interp_gate(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *x = ms_interp_in(run, node, 0, rank),
                  *gate = ms_interp_in(run, node, 1, rank);
    ms_cell *out = ms_interp_out(run, node, 0, rank);
    if (!ms_interp_expect(run, node, gate, ms_cell_leading(x)) ||
        !ms_interp_expect(run, node, out, x->count))
        return;
    for (long i = 0; i < x->count; i++)
        out->values[i] = x->values[i] * sigmoid(gate->values[i / ms_cell_last(x)]);
}

void ms_interp_gate_grad(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *x = ms_interp_in(run, node, 0, rank),
                  *gate = ms_interp_in(run, node, 1, rank);
    const ms_cell *gout = ms_interp_in(run, node, 2, rank);
    ms_cell *gx = ms_interp_out(run, node, 0, rank),
            *ggate = ms_interp_out(run, node, 1, rank);
    if (!ms_interp_expect(run, node, gate, ms_cell_leading(x)) ||
        !ms_interp_expect(run, node, ggate, gate->count) ||
        !ms_interp_expect(run, node, gout, x->count) ||
        !ms_interp_expect(run, node, gx, x->count))
        return;
    for (long i = 0; i < x->count; i++) {
        long row = i / ms_cell_last(x);
        double open = sigmoid(gate->values[row]);
        gx->values[i] = gout->values[i] * open;
        ggate->values[row] += gout->values[i] * x->values[i] * open * (1 - open);
    }
}

void ms_interp_adam(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *in[4];
    ms_cell *out[3];
    for (int i = 0; i < 4; i++)
        in[i] = ms_interp_in(run, node, i, rank);
    for (int i = 0; i < 3; i++) {
        out[i] = ms_interp_out(run, node, i, rank);
        if (!ms_interp_expect(run, node, in[i + 1], out[i]->count) ||
            !ms_interp_expect(run, node, in[0], out[i]->count))
            return;
    }
    for (long i = 0; i < out[0]->count; i++) {
        double g = in[1]->values[i];
        double m = 0.9 * in[2]->values[i] + 0.1 * g;
        double v = 0.95 * in[3]->values[i] + 0.05 * g * g;
        out[0]->values[i] = in[0]->values[i] - 0.001 * m / (sqrt(v) + 1e-8);
        out[1]->values[i] = m;
        out[2]->values[i] = v;
    }
}
