/* Penalised least squares against problems whose minimum has a closed form. */
#include "costmodel/calibrate/penalised.h"

#include "tests/test.h"

#include <math.h>

/* Two parameters; residuals a[i] . x - b[i]. */
typedef struct linear {
    int num_data;
    double a[3][2], b[3];
} linear;

static bool linear_residuals(void *state, const double *x, double *out)
{
    const linear *l = state;
    for (int i = 0; i < l->num_data; i++)
        out[i] = l->a[i][0] * x[0] + l->a[i][1] * x[1] - l->b[i];
    return true;
}

/* The minimum of |A x - b|^2 + |x|^2 solves (A^T A + 1) x = A^T b, and the deviations are
 * the square roots of the inverse's diagonal. */
static void a_linear_problem_has_its_closed_form(void **state)
{
    (void)state;
    linear l = {3, {{2.0, 0.5}, {1.0, -1.0}, {0.0, 3.0}}, {1.0, 2.0, -0.5}};
    double m[2][2] = {{1.0, 0.0}, {0.0, 1.0}}, v[2] = {0.0, 0.0};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++) {
            v[j] += l.a[i][j] * l.b[i];
            for (int k = 0; k < 2; k++)
                m[j][k] += l.a[i][j] * l.a[i][k];
        }
    double det = m[0][0] * m[1][1] - m[0][1] * m[1][0];
    ms_ctx *cx = test_cx();
    ms_penalised_fit fit;
    ASSERT_OK(ms_penalised_fit_make(
                  cx, &(ms_penalised_problem){2, 3, linear_residuals, &l}, &fit),
              cx);
    ASSERT_NEAR(fit.x[0], (m[1][1] * v[0] - m[0][1] * v[1]) / det, 1e-3);
    ASSERT_NEAR(fit.x[1], (m[0][0] * v[1] - m[1][0] * v[0]) / det, 1e-3);
    ASSERT_NEAR(fit.deviation[0], sqrt(m[1][1] / det), 1e-6);
    ASSERT_NEAR(fit.deviation[1], sqrt(m[0][0] / det), 1e-6);
    ASSERT_NEAR(fit.squares_before, 1.0 + 4.0 + 0.25, 1e-9);
    assert_true(fit.squares < fit.squares_before && !fit.stopped);
}

/* A parameter that no residual depends on stays, with the width that it had. */
static void what_nothing_tells_stays(void **state)
{
    (void)state;
    linear l = {1, {{3.0, 0.0}}, {2.0}};
    ms_ctx *cx = test_cx();
    ms_penalised_fit fit;
    ASSERT_OK(ms_penalised_fit_make(
                  cx, &(ms_penalised_problem){2, 1, linear_residuals, &l}, &fit),
              cx);
    ASSERT_NEAR(fit.x[0], 6.0 / 10.0, 1e-3);
    assert_true(fit.x[1] == 0.0);
    ASSERT_NEAR(fit.deviation[0], sqrt(0.1), 1e-6);
    ASSERT_NEAR(fit.deviation[1], 1.0, 1e-12);
}

static void no_measurement_moves_nothing(void **state)
{
    (void)state;
    linear l = {.num_data = 0};
    ms_ctx *cx = test_cx();
    ms_penalised_fit fit;
    ASSERT_OK(ms_penalised_fit_make(
                  cx, &(ms_penalised_problem){2, 0, linear_residuals, &l}, &fit),
              cx);
    assert_true(fit.x[0] == 0.0 && fit.x[1] == 0.0);
    assert_true(fit.deviation[0] == 1.0 && fit.deviation[1] == 1.0);
}

/* 25 (exp(x) - c)^2 + x^2 is least where its derivative is 0. */
static bool exponential(void *state, const double *x, double *out)
{
    const double *want = state;
    out[0] = 5.0 * (exp(x[0]) - *want);
    return true;
}

static void a_curved_problem_ends_where_its_slope_is_0(void **state)
{
    (void)state;
    double want = 3.0;
    ms_ctx *cx = test_cx();
    ms_penalised_fit fit;
    ASSERT_OK(ms_penalised_fit_make(cx, &(ms_penalised_problem){1, 1, exponential, &want},
                                    &fit),
              cx);
    double x = fit.x[0];
    assert_true(fabs(25.0 * (exp(x) - want) * exp(x) + x) < 0.05);
    assert_true(x > 1.0 && x < log(3.0));
}

/* One-sided evidence: r = min(0, x - 2) is satisfied by every x from 2. */
static bool one_sided(void *state, const double *x, double *out)
{
    (void)state;
    out[0] = fmin(0.0, 10.0 * (x[0] - 2.0));
    return true;
}

static void one_sided_evidence_draws_to_its_edge(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_penalised_fit fit;
    ASSERT_OK(
        ms_penalised_fit_make(cx, &(ms_penalised_problem){1, 1, one_sided, NULL}, &fit),
        cx);
    ASSERT_NEAR(fit.x[0], 200.0 / 101.0, 0.01); /* least of 100 (x - 2)^2 + x^2 */
}

static bool unknown(void *state, const double *x, double *out)
{
    (void)state;
    (void)x;
    out[0] = (double)NAN;
    return true;
}

static void unknown_residuals_are_an_error(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_penalised_fit fit;
    ASSERT_INT(
        ms_penalised_fit_make(cx, &(ms_penalised_problem){1, 1, unknown, NULL}, &fit),
        MS_EIO);
    assert_true(fit.x[0] == 0.0);
    assert_non_null(strstr(test_messages(cx), "does not converge"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_linear_problem_has_its_closed_form),
        cmocka_unit_test(what_nothing_tells_stays),
        cmocka_unit_test(no_measurement_moves_nothing),
        cmocka_unit_test(a_curved_problem_ends_where_its_slope_is_0),
        cmocka_unit_test(one_sided_evidence_draws_to_its_edge),
        cmocka_unit_test(unknown_residuals_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
