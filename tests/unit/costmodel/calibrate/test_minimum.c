/* Minimising functions of one variable whose minimum is known. */
#include "costmodel/calibrate/minimum.h"

#include "tests/test.h"

static double parabola(double x, void *state)
{
    double away = x - *(const double *)state;
    return away * away;
}

static double undefined(double x, void *state)
{
    (void)x;
    (void)state;
    return (double)NAN;
}

static void a_minimum_within_is_found(void **state)
{
    (void)state;
    double least = 0.3217;
    ASSERT_NEAR(ms_minimum(parabola, &least, &(ms_bracket){0.0, 0.5, 1.0, 1e-6}), least,
                1e-5);
}

static void without_a_valley_the_middle_is_returned(void **state)
{
    (void)state;
    /* minimum outside the bracket: the function rises all along it */
    double least = -3.0;
    ASSERT_NEAR(ms_minimum(parabola, &least, &(ms_bracket){0.0, 0.5, 1.0, 1e-6}), 0.5,
                0.0);
    ASSERT_NEAR(ms_minimum(parabola, &least, &(ms_bracket){0.5, 0.5, 0.5, 1e-6}), 0.5,
                0.0);
    ASSERT_NEAR(ms_minimum(undefined, NULL, &(ms_bracket){0.0, 0.5, 1.0, 1e-6}), 0.5,
                0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minimum_within_is_found),
        cmocka_unit_test(without_a_valley_the_middle_is_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
