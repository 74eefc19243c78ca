#include "exec/params/optimizer.h"

#include <math.h>

/* ---- element-wise optimizers ---- */

static void adamw(const ms_adamw *how, const ms_elements *e)
{
    double first = 1.0 - pow(how->beta1, (double)how->step),
           root = sqrt(1.0 - pow(how->beta2, (double)how->step)),
           decay = 1.0 - how->learning_rate * how->weight_decay;
    for (long i = 0; i < e->count; i++) {
        double g = e->gradient[i], *m = &e->moments[0][i], *v = &e->moments[1][i];
        *m += (g - *m) * (1.0 - how->beta1);
        *v = *v * how->beta2 + (1.0 - how->beta2) * g * g;
        e->weight[i] = e->weight[i] * decay -
                       how->learning_rate / first * *m / (sqrt(*v) / root + how->epsilon);
    }
}

static void sgd(const ms_adamw *how, const ms_elements *e)
{
    for (long i = 0; i < e->count; i++) {
        double *m = &e->moments[0][i];
        *m = how->beta1 * *m + e->gradient[i] + how->weight_decay * e->weight[i];
        e->weight[i] -= how->learning_rate * *m;
    }
}

static double sign_of(double x)
{
    return (double)((x > 0.0) - (x < 0.0));
}

static void lion(const ms_adamw *how, const ms_elements *e)
{
    for (long i = 0; i < e->count; i++) {
        double g = e->gradient[i], *m = &e->moments[0][i];
        double update = sign_of(how->beta1 * *m + (1.0 - how->beta1) * g);
        e->weight[i] -= how->learning_rate * (update + how->weight_decay * e->weight[i]);
        *m = how->beta2 * *m + (1.0 - how->beta2) * g;
    }
}

static void muon(const ms_adamw *how, const ms_elements *e)
{
    for (long i = 0; i < e->count; i++) {
        double g = e->gradient[i], *m = &e->moments[0][i];
        *m = how->beta1 * *m + (1.0 - how->beta1) * g;
        e->gradient[i] = (1.0 - how->beta1) * g + how->beta1 * *m;
    }
}

void ms_optimizer_step(ms_optimizer optimizer, const ms_adamw *how,
                       const ms_elements *elements)
{
    static void (*const steps[MS_NUM_OPTIMIZERS])(const ms_adamw *,
                                                  const ms_elements *) = {
        [MS_OPTIMIZER_ADAMW] = adamw, [MS_OPTIMIZER_ADAM_8BIT] = adamw,
        [MS_OPTIMIZER_SGD] = sgd,     [MS_OPTIMIZER_LION] = lion,
        [MS_OPTIMIZER_MUON] = muon,
    };
    steps[optimizer](how, elements);
}

/* ---- moments in 8 bits ---- */

#define NUM_DECADES 7

void ms_dynamic_tree(bool is_signed, double out[256])
{
    int zero = is_signed ? 127 : 0, at = zero;
    out[at++] = 0.0;
    for (int decade = 0; decade < NUM_DECADES; decade++) {
        int parts = (is_signed ? 1 : 2) << decade;
        for (int i = 0; i < parts; i++)
            out[at++] =
                pow(10.0, decade - NUM_DECADES + 1) * (0.1 + 0.9 * (i + 0.5) / parts);
    }
    for (int i = 1; is_signed && i <= zero; i++)
        out[zero - i] = -out[zero + i];
    out[255] = 1.0;
}

/* Index of the number nearest to x; of two as near the lower one. */
static int nearest(const double tree[256], double x)
{
    int low = 0, high = 255;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (tree[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return x - tree[low] <= tree[high] - x ? low : high;
}

static long block_end(long first, long count)
{
    return first + MS_STATE_BLOCK < count ? first + MS_STATE_BLOCK : count;
}

void ms_codes_write(bool is_signed, const double *values, long count,
                    unsigned char *codes, float *scales)
{
    double tree[256];
    ms_dynamic_tree(is_signed, tree);
    for (long first = 0; first < count; first += MS_STATE_BLOCK) {
        long end = block_end(first, count);
        double largest = 0.0;
        for (long i = first; i < end; i++)
            largest = fmax(largest, fabs(values[i]));
        float scale = (float)largest;
        scales[first / MS_STATE_BLOCK] = scale;
        for (long i = first; i < end; i++)
            codes[i] = (unsigned char)nearest(
                tree, scale > 0.0F ? values[i] / (double)scale : 0.0);
    }
}

void ms_codes_read(bool is_signed, const unsigned char *codes, const float *scales,
                   long count, double *values)
{
    double tree[256];
    ms_dynamic_tree(is_signed, tree);
    for (long i = 0; i < count; i++)
        values[i] = tree[codes[i]] * (double)scales[i / MS_STATE_BLOCK];
}
