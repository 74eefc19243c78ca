#include "tests/support/whole_optimizers.h"

#include "tests/test.h"

#include <math.h>
#include <string.h>

typedef struct update {
    ms_whole_tensor *t;
    const ms_adamw *how;
    double *g; /* clipped gradient */
    long rows, columns;
} update;

/* torch.optim.SGD(momentum=beta1, weight_decay=...): the buffer begins with the first
 * gradient. */
static void sgd(const update *u)
{
    for (long i = 0; i < u->t->count; i++) {
        double d = u->g[i] + u->how->weight_decay * u->t->weight[i];
        u->t->moments[0][i] =
            u->how->step == 1 ? d : u->how->beta1 * u->t->moments[0][i] + d;
        u->t->weight[i] -= u->how->learning_rate * u->t->moments[0][i];
    }
}

static void lion(const update *u)
{
    const ms_adamw *how = u->how;
    for (long i = 0; i < u->t->count; i++) {
        double *m = &u->t->moments[0][i];
        double c = how->beta1 * *m + (1 - how->beta1) * u->g[i];
        double sign = c > 0 ? 1 : c < 0 ? -1 : 0;
        u->t->weight[i] =
            u->t->weight[i] -
            how->learning_rate * (sign + how->weight_decay * u->t->weight[i]);
        *m = how->beta2 * *m + (1 - how->beta2) * u->g[i];
    }
}

/* Means in place of the sums of Shazeer and Stern, as in Hugging Face's Adafactor
 * (scale_parameter=False, relative_step=False, clip_threshold=1). */
static void adafactor(const update *u)
{
    ms_whole_tensor *t = u->t;
    double beta2 = 1 - pow((double)u->how->step, -0.8), root = 0, mean = 0;
    double *row = t->moments[0], *column = t->moments[1], *change = u->g;
    bool is_matrix = u->columns > 1;
    for (long i = 0; is_matrix && i < u->rows; i++) {
        double squares = 0;
        for (long j = 0; j < u->columns; j++)
            squares += u->g[i * u->columns + j] * u->g[i * u->columns + j] + 1e-30;
        row[i] = beta2 * row[i] + (1 - beta2) * squares / (double)u->columns;
        mean += row[i] / (double)u->rows;
    }
    for (long j = 0; is_matrix && j < u->columns; j++) {
        double squares = 0;
        for (long i = 0; i < u->rows; i++)
            squares += u->g[i * u->columns + j] * u->g[i * u->columns + j] + 1e-30;
        column[j] = beta2 * column[j] + (1 - beta2) * squares / (double)u->rows;
    }
    for (long i = 0; i < t->count; i++) {
        if (!is_matrix)
            row[i] = beta2 * row[i] + (1 - beta2) * (u->g[i] * u->g[i] + 1e-30);
        double v =
            is_matrix ? row[i / u->columns] * column[i % u->columns] / mean : row[i];
        change[i] = u->g[i] / sqrt(v);
        root += change[i] * change[i] / (double)t->count;
    }
    for (long i = 0; i < t->count; i++) {
        t->weight[i] -= u->how->learning_rate * u->how->weight_decay * t->weight[i];
        t->weight[i] -= u->how->learning_rate * change[i] / fmax(1, sqrt(root));
    }
}

/* y = a b, or a b' */
static void multiply(const double *a, const double *b, bool transposed, long m, long n,
                     long k, double *y)
{
    for (long i = 0; i < m; i++) {
        for (long j = 0; j < n; j++) {
            double sum = 0;
            for (long l = 0; l < k; l++)
                sum += a[i * k + l] * (transposed ? b[j * k + l] : b[l * n + j]);
            y[i * n + j] = sum;
        }
    }
}

/* Newton-Schulz with the rows as they are, though there may be more than columns. */
static void orthogonalize(double *x, long m, long n)
{
    ms_arena *arena = ms_arena_open();
    double *a = MS_NEW_ARRAY(arena, m * m, double),
           *aa = MS_NEW_ARRAY(arena, m * m, double);
    double *bx = MS_NEW_ARRAY(arena, m * n, double), norm = 0;
    for (long i = 0; i < m * n; i++)
        norm += x[i] * x[i];
    for (long i = 0; i < m * n; i++)
        x[i] /= sqrt(norm) + 1e-7;
    for (int iteration = 0; iteration < 5; iteration++) {
        multiply(x, x, true, m, m, n, a);
        multiply(a, a, false, m, m, m, aa);
        for (long i = 0; i < m * m; i++)
            aa[i] = -4.7750 * a[i] + 2.0315 * aa[i];
        multiply(aa, x, false, m, n, m, bx);
        for (long i = 0; i < m * n; i++)
            x[i] = 3.4445 * x[i] + bx[i];
    }
    ms_arena_close(arena);
}

static void adamw(const update *u)
{
    for (long i = 0; i < u->t->count; i++) {
        const ms_adamw *how = u->how;
        double *m = &u->t->moments[0][i], *v = &u->t->moments[1][i];
        *m = how->beta1 * *m + (1 - how->beta1) * u->g[i];
        *v = how->beta2 * *v + (1 - how->beta2) * u->g[i] * u->g[i];
        u->t->weight[i] -= how->learning_rate * how->weight_decay * u->t->weight[i];
        u->t->weight[i] -=
            how->learning_rate * (*m / (1 - pow(how->beta1, (double)how->step))) /
            (sqrt(*v / (1 - pow(how->beta2, (double)how->step))) + how->epsilon);
    }
}

/* torch.optim.Muon with nesterov, scaled as Liu et al. 2025. */
static void muon(const update *u)
{
    const ms_adamw *how = u->how;
    ms_whole_tensor *t = u->t;
    bool is_table =
        strstr(t->name, "embed") != NULL || strstr(t->name, "lm_head") != NULL;
    if (is_table || u->columns == 1) {
        adamw(u);
        return;
    }
    for (long i = 0; i < t->count; i++) {
        double *m = &t->moments[0][i];
        *m = how->beta1 * *m + (1 - how->beta1) * u->g[i];
        u->g[i] = (1 - how->beta1) * u->g[i] + how->beta1 * *m;
    }
    orthogonalize(u->g, u->rows, u->columns);
    double most = u->rows > u->columns ? (double)u->rows : (double)u->columns;
    for (long i = 0; i < t->count; i++) {
        t->weight[i] *= 1 - how->learning_rate * how->weight_decay;
        t->weight[i] -= how->learning_rate * 0.2 * sqrt(most) * u->g[i];
    }
}

void ms_whole_update_by(ms_whole *whole, ms_optimizer optimizer, const ms_adamw *how)
{
    static void (*const updates[MS_NUM_OPTIMIZERS])(const update *) = {
        [MS_OPTIMIZER_ADAMW] = adamw, [MS_OPTIMIZER_ADAFACTOR] = adafactor,
        [MS_OPTIMIZER_SGD] = sgd,     [MS_OPTIMIZER_LION] = lion,
        [MS_OPTIMIZER_MUON] = muon,
    };
    for (int i = 0; i < whole->num; i++) {
        ms_whole_tensor *t = &whole->tensors[i];
        ms_arena *arena = ms_arena_open();
        update u = {t, how, MS_NEW_ARRAY(arena, t->count, double), t->count, 1};
        assert_true(t->num_dims <= 2);
        if (t->num_dims == 2) {
            u.rows = t->shape[0];
            u.columns = t->shape[1];
        }
        for (long e = 0; e < t->count; e++)
            u.g[e] = how->gradient_scale * t->gradient[e];
        if (t->has_gradient[0])
            updates[optimizer](&u);
        ms_arena_close(arena);
    }
}
