/* Slowdown of kernels beside transfers: cases by hand, and ranks that execute alone, whose
 * transfers are known. */
#include "exec/backends/modelled.h"
#include "exec/runner/kernel_slowdown.h"
#include "tests/support/run_cases.h"

#include "tests/test.h"

#include <math.h>
#include <string.h>

/* ---- a record made by hand ---- */

static void add(ms_recorder *r, const char *name, double start_s, double end_s,
                double predicted_s)
{
    ms_recorder_add(r, (ms_recorded){.stream = MS_STREAM_COMPUTE,
                                     .kind = MS_TASK_FORWARD,
                                     .name = name,
                                     .start_s = start_s,
                                     .end_s = end_s,
                                     .predicted_s = predicted_s});
}

static void move(ms_recorder *r, int stream, double start_s, double end_s)
{
    ms_transfer transfer = {.name = "gather", .stream = (unsigned char)stream};
    ms_recorder_add(r, ms_transfer_moves(&transfer, start_s, end_s));
}

static const ms_kernel_slowdown *find(const ms_kernel_slowdowns *all, const char *name)
{
    for (int i = 0; i < all->num; i++)
        if (strcmp(all->kinds[i].name, name) == 0)
            return &all->kinds[i];
    fail_msg("no kind %s", name);
    return NULL;
}

/* Transfers of two streams move from 10 to 13 and from 12 to 16: from 10 to 16 without a
 * pause, and again from 30 to 31. */
static ms_recorder by_hand(void)
{
    ms_recorder r = {.on = true};
    add(&r, "a", 0.0, 2.0, 1.0);   /* alone: 2 s */
    add(&r, "a", 2.0, 6.0, 1.0);   /* alone: 4 s */
    add(&r, "a", 8.0, 12.0, 1.0);  /* 2 of its 4 s beside */
    add(&r, "a", 12.0, 17.0, 1.0); /* 4 of its 5 s beside */
    add(&r, "a", 17.0, 18.0, 9.0); /* of another shape, never beside */
    add(&r, "b", 18.0, 19.0, 1.0); /* never beside */
    add(&r, "c", 30.0, 30.5, 1.0); /* never alone */
    add(&r, "d", 30.5, 32.0, 1.0); /* 0.5 of its 1.5 s beside */
    add(&r, "d", 32.0, 33.0, 1.0); /* alone */
    move(&r, MS_STREAM_REDUCE, 12.0, 16.0);
    move(&r, MS_STREAM_GATHER, 10.0, 13.0);
    move(&r, MS_STREAM_GATHER, 30.0, 31.0);
    /* a wait is no kernel */
    ms_recorder_add(&r, (ms_recorded){.stream = MS_STREAM_TP,
                                      .kind = MS_TASK_COLLECTIVE,
                                      .name = "a",
                                      .start_s = 12.0,
                                      .end_s = 13.0,
                                      .waits = true});
    return r;
}

static void equal_kernels_are_compared(void **state)
{
    (void)state;
    ms_recorder r = by_hand();
    ms_kernel_slowdowns all = ms_kernel_slowdowns_make(test_cx()->arena, &r, 0.25);
    const ms_kernel_slowdown *a = find(&all, "a"), *d = find(&all, "d");
    ASSERT_INT(all.num, 4);
    assert_ptr_equal(a, &all.kinds[0]); /* most time beside transfers */
    ASSERT_INT(a->num_alone, 3);
    ASSERT_INT(a->num_overlapped, 2);
    ASSERT_INT(a->num_compared, 2);
    ASSERT_NEAR(a->alone_s, 3.0, 1e-12);
    ASSERT_NEAR(a->overlapped_s, 4.5, 1e-12);
    ASSERT_NEAR(a->moving_s, 3.0, 1e-12);
    /* begun at 8: 2 s free, 1 s of work at 3/4 of the speed; begun at 12: 3 s until 16 */
    ASSERT_NEAR(a->predicted_s, ((2.0 + 1.0 / 0.75) + 4.0) / 2.0, 1e-12);
    /* begun at 30.5: 0.375 s of work until 31, then 0.625 s */
    ASSERT_NEAR(d->predicted_s, 0.5 + 0.625, 1e-12);
    ASSERT_NEAR(d->overlapped_s / d->alone_s, 1.5, 1e-12);
    /* overall: the two of "a" and the one of "d" */
    ASSERT_INT(all.all.num_compared, 3);
    ASSERT_NEAR(all.all.overlapped_s, (4.0 + 5.0 + 1.5) / 3.0, 1e-12);
    ASSERT_NEAR(all.all.alone_s, (3.0 + 3.0 + 1.0) / 3.0, 1e-12);
    ASSERT_INT(all.all.num_alone, 5);
    ASSERT_INT(all.all.num_overlapped, 4);
    ms_recorder_close(&r);
}

static void what_was_never_both_is_unknown(void **state)
{
    (void)state;
    ms_recorder r = by_hand(), none = {0};
    ms_kernel_slowdowns all = ms_kernel_slowdowns_make(test_cx()->arena, &r, 0.25);
    ASSERT_INT(find(&all, "b")->num_overlapped, 0);
    ASSERT_INT(find(&all, "c")->num_alone, 0);
    assert_true(isnan(find(&all, "b")->alone_s) && isnan(find(&all, "b")->predicted_s));
    assert_true(isnan(find(&all, "c")->alone_s) && isnan(find(&all, "c")->overlapped_s));
    /* kernels that get no time beside transfers wait for their end */
    all = ms_kernel_slowdowns_make(test_cx()->arena, &r, 1.0);
    ASSERT_NEAR(find(&all, "a")->predicted_s, (9.0 + 7.0) / 2.0, 1e-12);
    ms_recorder_close(&r);
    all = ms_kernel_slowdowns_make(test_cx()->arena, &none, 0.25);
    assert_true(all.num == 0 && isnan(all.all.alone_s));
}

/* ---- ranks alone ---- */

/* Where kernels take their predicted times, transfers or not, none is slowed down. */
static void predicted_kernels_are_not_slowed(void **state)
{
    (void)state;
    long compared = 0;
    for (long number = 0; number < 20; number++) {
        ms_ctx *cx = test_cx();
        ms_run_opened opened;
        ms_outcome outcome;
        ms_run_case c = ms_run_case_draw(cx, &ms_run_fp32, 24, number, 0);
        ms_runner_options options = ms_run_options(c.model, &c.plan, MS_REAL_FP32);
        options.wants_weights = options.wants_gradients = options.wants_updated = false;
        options.replays = options.balanced_routing = true;
        ASSERT_OK(ms_run_open(cx, c.model, &c.plan, c.stack, &opened), cx);
        ms_backend_job job = {.backend = &ms_backend_modelled_untimed,
                              .world = opened.world,
                              .type = MS_REAL_FP32};
        ASSERT_OK(job.backend->open(cx, &job), cx);
        ASSERT_OK(ms_runner_run(cx, &job, opened.planned, &options, &outcome), cx);
        job.backend->close(&job);
        ms_recorder *recorder = &outcome.ranks[0].recorder;
        ms_kernel_slowdowns all = ms_kernel_slowdowns_make(cx->arena, recorder, 0.1);
        for (int i = 0; i < all.num; i++) {
            const ms_kernel_slowdown *s = &all.kinds[i];
            if (s->num_compared == 0)
                continue;
            ASSERT_NEAR(s->overlapped_s, s->alone_s, 1e-6);
            assert_true(s->moving_s > 0.0 && s->moving_s <= s->overlapped_s * (1 + 1e-9));
            assert_true(s->predicted_s > s->alone_s);
            assert_true(s->predicted_s <= s->alone_s / 0.9 * (1 + 1e-9));
        }
        compared += all.all.num_compared;
        ms_recorder_close(recorder);
        ms_run_close(&opened);
    }
    assert_true(compared > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_kernels_are_compared),
        cmocka_unit_test(what_was_never_both_is_unknown),
        cmocka_unit_test(predicted_kernels_are_not_slowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
