/* Tests of the maxima that delayed scaling keeps. */
#include "exec/core/scale_history.h"
#include "tests/test.h"

static const int first_slot[] = {0, 1, 3}; /* tensor 1 has two experts */

static float note(ms_scale_history *h, int tensor, long expert, double largest)
{
    return ms_scale_history_note(h, tensor, expert, (float)largest);
}

static void a_step_sees_the_maxima_before_it(void **state)
{
    (void)state;
    ms_scale_history *h = ms_scale_history_make(test_cx()->arena, 4, first_slot, 5);
    ms_scale_history_begin_step(h);
    ASSERT_NEAR((double)note(h, 0, 0, 3), 0, 0);
    ASSERT_NEAR((double)note(h, 0, 0, 2), 0, 0);
    note(h, 1, 0, 7);
    note(h, 1, 1, 8);
    ms_scale_history_begin_step(h);
    ASSERT_NEAR((double)note(h, 0, 0, 1), 3, 0);
    ASSERT_NEAR((double)note(h, 1, 0, 1), 7, 0);
    ASSERT_NEAR((double)note(h, 1, 1, 1), 8, 0);
    ASSERT_NEAR((double)note(h, 2, 0, 1), 0, 0);
    ms_scale_history_begin_step(h);
    ASSERT_NEAR((double)note(h, 0, 0, 9), 3, 0);
    ASSERT_NEAR((double)note(h, 2, 0, 9), 1, 0);
}

/* The last 1,024 steps count, the one before them no longer. */
static void old_maxima_are_forgotten(void **state)
{
    (void)state;
    const long num_steps = MS_SCALE_HISTORY_STEPS + 10;
    ms_scale_history *h =
        ms_scale_history_make(test_cx()->arena, 4, first_slot, num_steps);
    for (long step = 0; step < num_steps; step++) {
        ms_scale_history_begin_step(h);
        double want = step == 0 ? 0 : step <= MS_SCALE_HISTORY_STEPS ? 100 : 1;
        ASSERT_NEAR((double)note(h, 0, 0, step == 0 ? 100 : 1), want, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_sees_the_maxima_before_it),
                                       cmocka_unit_test(old_maxima_are_forgotten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
