/* Tests of the fake GPU (tests/support/cuda_fake.h): what it executes, and which mistakes
 * of a program it reports. */
#include "tests/support/cuda_fake.h"
#include "tests/test.h"

#define NUM_SEEDS 40

static const ms_cuda_driver *const driver = &ms_cuda_fake_driver;

typedef struct one_rank {
    ms_ctx *cx;
    ms_cuda_device *device;
    ms_cuda_stream *a, *b;
    ms_cuda_event *event;
} one_rank;

static one_rank begin(const ms_cuda_fake_options *options)
{
    one_rank r = {.cx = test_cx()};
    ms_cuda_fake_begin(options);
    ASSERT_OK(driver->open(r.cx, 0, &r.device), r.cx);
    ASSERT_OK(driver->open_stream(r.cx, r.device, false, &r.a), r.cx);
    ASSERT_OK(driver->open_stream(r.cx, r.device, false, &r.b), r.cx);
    ASSERT_OK(driver->open_event(r.cx, r.device, true, &r.event), r.cx);
    return r;
}

static void close_rank(one_rank *r)
{
    driver->close_event(r->event);
    driver->close_stream(r->a);
    driver->close_stream(r->b);
    driver->close(r->device);
}

static void end(one_rank *r)
{
    close_rank(r);
    ms_cuda_fake_end();
}

/* ---- launches ---- */

typedef struct note_state {
    char *log;
    char letter;
} note_state;

static void note(void *state)
{
    note_state *n = state;
    size_t length = strlen(n->log);
    n->log[length] = n->letter;
    n->log[length + 1] = '\0';
    free(state);
}

static void launch_note(ms_cuda_stream *stream, char *log, char letter)
{
    note_state *state = malloc(sizeof *state);
    *state = (note_state){log, letter};
    ms_cuda_fake_enqueue(stream, note, state);
}

typedef struct scale_state {
    float *x;
    float factor;
} scale_state;

static void scale(void *state)
{
    const scale_state *s = state;
    *s->x *= s->factor;
    free(state);
}

static void launch_scale(ms_cuda_stream *stream, float *x, float factor)
{
    scale_state *state = malloc(sizeof *state);
    *state = (scale_state){x, factor};
    ms_cuda_fake_enqueue(stream, scale, state);
}

/* ---- order ---- */

static void nothing_is_done_before_someone_waits(void **state)
{
    (void)state;
    one_rank r = begin(NULL);
    char log[16] = "";
    launch_note(r.a, log, 'a');
    ASSERT_OK(driver->record(r.cx, r.event, r.a), r.cx);
    ASSERT_TEXT(log, "");
    ASSERT_INT(ms_cuda_fake_num_pending(), 2);
    ASSERT_OK(driver->finish(r.cx, r.a), r.cx);
    ASSERT_TEXT(log, "a");
    ASSERT_INT(ms_cuda_fake_num_pending(), 0);
    end(&r);
}

static void streams_run_in_many_orders_each_in_its_own(void **state)
{
    (void)state;
    char seen[NUM_SEEDS][16];
    int num_orders = 0;
    for (uint64_t seed = 0; seed < NUM_SEEDS; seed++) {
        one_rank r = begin(&(ms_cuda_fake_options){.seed = seed});
        char log[16] = "";
        for (int i = 0; i < 3; i++) {
            launch_note(r.a, log, (char)('a' + i));
            launch_note(r.b, log, (char)('x' + i));
        }
        ASSERT_OK(driver->finish(r.cx, r.a), r.cx);
        ASSERT_OK(driver->finish(r.cx, r.b), r.cx);
        ASSERT_INT(strlen(log), 6);
        assert_true(
            strchr(log, 'a') < strchr(log, 'b') && strchr(log, 'b') < strchr(log, 'c') &&
            strchr(log, 'x') < strchr(log, 'y') && strchr(log, 'y') < strchr(log, 'z'));
        bool is_new = true;
        for (int i = 0; i < num_orders; i++)
            is_new = is_new && strcmp(seen[i], log) != 0;
        if (is_new)
            strcpy(seen[num_orders++], log);
        end(&r);
    }
    assert_true(num_orders >= 4);
}

static void one_seed_gives_one_order(void **state)
{
    (void)state;
    char log[2][32] = {"", ""};
    for (int i = 0; i < 2; i++) {
        one_rank r = begin(&(ms_cuda_fake_options){.seed = 77});
        for (int j = 0; j < 8; j++)
            launch_note(j % 2 == 0 ? r.a : r.b, log[i], (char)('a' + j));
        ASSERT_OK(driver->finish(r.cx, r.a), r.cx);
        ASSERT_OK(driver->finish(r.cx, r.b), r.cx);
        end(&r);
    }
    ASSERT_TEXT(log[0], log[1]);
}

/* Writes x = 3 on stream a and doubles it on stream b; the result is 6 for sure only if b
 * waits for a's event. */
static bool is_product_right(uint64_t seed, bool waits)
{
    one_rank r = begin(&(ms_cuda_fake_options){.seed = seed});
    float *x = driver->allocate(r.device, sizeof *x), three = 3, got = 0;
    ASSERT_OK(driver->copy(r.cx, r.a, x, &three, sizeof three, MS_CUDA_TO_DEVICE), r.cx);
    ASSERT_OK(driver->record(r.cx, r.event, r.a), r.cx);
    if (waits)
        ASSERT_OK(driver->wait(r.cx, r.b, r.event), r.cx);
    launch_scale(r.b, x, 2);
    ASSERT_OK(driver->finish(r.cx, r.b), r.cx);
    ASSERT_OK(driver->finish(r.cx, r.a), r.cx);
    ASSERT_OK(driver->copy(r.cx, r.a, &got, x, sizeof got, MS_CUDA_TO_HOST), r.cx);
    driver->release(r.device, x);
    end(&r);
    return (double)got == 6;
}

static void a_missing_wait_gives_wrong_numbers(void **state)
{
    (void)state;
    int num_wrong = 0;
    for (uint64_t seed = 0; seed < NUM_SEEDS; seed++) {
        assert_true(is_product_right(seed, true));
        num_wrong += !is_product_right(seed, false);
    }
    assert_true(num_wrong >= NUM_SEEDS / 8);
}

static void a_wait_is_for_the_last_record_before_it(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < NUM_SEEDS; seed++) {
        one_rank r = begin(&(ms_cuda_fake_options){.seed = seed});
        char log[16] = "";
        /* waiting for a never-recorded event returns at once */
        ASSERT_OK(driver->wait(r.cx, r.b, r.event), r.cx);
        launch_note(r.a, log, '1');
        ASSERT_OK(driver->record(r.cx, r.event, r.a), r.cx);
        launch_note(r.a, log, '2');
        ASSERT_OK(driver->record(r.cx, r.event, r.a), r.cx);
        ASSERT_OK(driver->wait(r.cx, r.b, r.event), r.cx);
        launch_note(r.b, log, '3');
        /* record the event after stream b has waited for it */
        ASSERT_OK(driver->record(r.cx, r.event, r.b), r.cx);
        ASSERT_OK(driver->finish(r.cx, r.b), r.cx);
        ASSERT_TEXT(log, "123");
        end(&r);
    }
}

static void asking_again_and_again_sees_an_event_happen(void **state)
{
    (void)state;
    one_rank r = begin(&(ms_cuda_fake_options){.seed = 5});
    ms_cuda_event *first;
    bool happened = false;
    double seconds = 0;
    char log[16] = "";
    ASSERT_OK(driver->open_event(r.cx, r.device, true, &first), r.cx);
    ASSERT_OK(driver->query(r.cx, first, &happened), r.cx);
    assert_true(happened); /* a never-recorded event counts as happened */
    ASSERT_OK(driver->record(r.cx, first, r.a), r.cx);
    for (int i = 0; i < 5; i++)
        launch_note(r.a, log, 'x');
    ASSERT_OK(driver->record(r.cx, r.event, r.a), r.cx);
    ASSERT_INT(driver->elapsed(r.cx, first, r.event, &seconds), MS_EIO);
    int asked = 0;
    for (happened = false; !happened; asked++)
        ASSERT_OK(driver->query(r.cx, r.event, &happened), r.cx);
    assert_true(asked > 1);
    ASSERT_OK(driver->elapsed(r.cx, first, r.event, &seconds), r.cx);
    ASSERT_NEAR(seconds, 6 * MS_CUDA_FAKE_WORK_S, 1e-9);
    driver->close_event(first);
    end(&r);
}

/* ---- memory ---- */

static void memory_holds_nans_at_first(void **state)
{
    (void)state;
    one_rank r = begin(NULL);
    double *x = driver->allocate(r.device, 8 * sizeof *x), got[8];
    assert_true((uintptr_t)x % 256 == 0);
    ASSERT_OK(driver->copy(r.cx, r.a, got, x, sizeof got, MS_CUDA_TO_HOST), r.cx);
    for (int i = 0; i < 8; i++)
        assert_true(isnan(got[i]));
    ASSERT_OK(driver->clear(r.cx, r.a, x + 1, sizeof *x), r.cx);
    ASSERT_OK(driver->copy(r.cx, r.a, got, x, sizeof got, MS_CUDA_TO_HOST), r.cx);
    assert_true(isnan(got[0]) && got[1] == 0 && isnan(got[2]));
    driver->release(r.device, x);
    end(&r);
}

static void memory_ends_and_comes_back(void **state)
{
    (void)state;
    one_rank r = begin(&(ms_cuda_fake_options){.memory_bytes = 1000});
    double free_bytes, total_bytes;
    void *x = driver->allocate(r.device, 600);
    assert_non_null(x);
    assert_null(driver->allocate(r.device, 600));
    ASSERT_OK(driver->memory(r.cx, r.device, &free_bytes, &total_bytes), r.cx);
    ASSERT_NEAR(free_bytes, 400, 0);
    ASSERT_NEAR(total_bytes, 1000, 0);
    driver->release(r.device, x);
    x = driver->allocate(r.device, 1000);
    assert_non_null(x);
    driver->release(r.device, x);
    ASSERT_NEAR(ms_cuda_fake_used_bytes(0), 0, 0);
    ASSERT_NEAR(ms_cuda_fake_most_bytes(0), 1000, 0);
    end(&r);
}

/* A copy from pageable memory takes the values at the call; from allocate_host, the
 * values when the copy runs. */
static void copies_take_pageable_memory_at_the_call_and_other_memory_later(void **state)
{
    (void)state;
    one_rank r = begin(NULL);
    int *pinned = driver->allocate_host(r.device, sizeof *pinned), pageable = 1, got[2];
    int *x = driver->allocate(r.device, 2 * sizeof *x);
    *pinned = 1;
    ASSERT_OK(driver->copy(r.cx, r.a, x, &pageable, sizeof *x, MS_CUDA_TO_DEVICE), r.cx);
    ASSERT_OK(driver->copy(r.cx, r.a, x + 1, pinned, sizeof *x, MS_CUDA_TO_DEVICE), r.cx);
    pageable = *pinned = 2;
    ASSERT_OK(driver->copy(r.cx, r.a, got, x, sizeof got, MS_CUDA_TO_HOST), r.cx);
    ASSERT_INT(got[0], 1);
    ASSERT_INT(got[1], 2);
    ASSERT_OK(driver->copy(r.cx, r.a, x + 1, x, sizeof *x, MS_CUDA_ON_DEVICE), r.cx);
    ASSERT_OK(driver->copy(r.cx, r.a, pinned, x + 1, sizeof *x, MS_CUDA_TO_HOST), r.cx);
    ASSERT_INT(*pinned, 2); /* the copy has not run yet */
    ASSERT_OK(driver->finish(r.cx, r.a), r.cx);
    ASSERT_INT(*pinned, 1);
    driver->release_host(r.device, pinned);
    driver->release(r.device, x);
    end(&r);
}

/* ---- defects ---- */

static void write_behind(void *state)
{
    unsigned char *x;
    memcpy(&x, state, sizeof x);
    x[10] = 0;
    free(state);
}

typedef enum mistake {
    RELEASE_TWICE,
    RELEASE_IN_USE,
    RELEASE_BEFORE_LAUNCH,
    RELEASE_OF_A_PART,
    COPY_BEYOND,
    COPY_OF_RELEASED,
    COPY_OF_PROGRAMS,
    WRITE_BEHIND,
    CLOSED_STREAM,
    CLOSED_EVENT,
    CLOSE_TWICE,
    CLOSE_WITH_WORK,
    OTHER_DEVICE,
    POP_TOO_MUCH,
    LONG_PRODUCT,
    NUM_MISTAKES
} mistake;

static void make_stream_mistake(one_rank *r, mistake which, unsigned char *x)
{
    ms_cuda_stream *more = NULL;
    ms_cuda_event *event = NULL;
    ms_cuda_device *other = NULL;
    ASSERT_OK(driver->open_stream(r->cx, r->device, false, &more), r->cx);
    ASSERT_OK(driver->open_event(r->cx, r->device, true, &event), r->cx);
    if (which == CLOSE_WITH_WORK)
        driver->record(r->cx, event, more);
    driver->close_stream(more);
    driver->close_event(event);
    if (which == CLOSED_STREAM)
        driver->clear(r->cx, more, x, 1);
    if (which == CLOSED_EVENT)
        driver->record(r->cx, event, r->a);
    if (which == CLOSE_TWICE)
        driver->close_stream(more);
    if (which == OTHER_DEVICE) {
        ASSERT_OK(driver->open(r->cx, 1, &other), r->cx);
        driver->clear(r->cx, r->a, x, 1);
        driver->close(other);
        driver->enter(r->device);
    }
    if (which == POP_TOO_MUCH) {
        driver->push_range("outer");
        driver->pop_range();
        ASSERT_INT(ms_cuda_fake_num_defects(), 0);
        driver->pop_range();
        driver->push_range("what was too much");
    }
}

static void make_memory_mistake(one_rank *r, mistake which, unsigned char *x)
{
    unsigned char here[32] = {0};
    if (which == RELEASE_BEFORE_LAUNCH)
        launch_scale(r->a, (float *)(void *)x, 1);
    if (which == RELEASE_IN_USE)
        driver->copy(r->cx, r->a, x, here, 10, MS_CUDA_TO_DEVICE);
    if (which == RELEASE_OF_A_PART)
        driver->release(r->device, x + 1);
    if (which == COPY_BEYOND)
        driver->copy(r->cx, r->a, x + 1, here, 10, MS_CUDA_TO_DEVICE);
    if (which == COPY_OF_PROGRAMS)
        driver->copy(r->cx, r->a, here, here, 10, MS_CUDA_ON_DEVICE);
    if (which == WRITE_BEHIND) {
        unsigned char **state = malloc(sizeof *state);
        *state = x;
        ms_cuda_fake_enqueue(r->a, write_behind, state);
        ASSERT_OK(driver->finish(r->cx, r->a), r->cx);
    }
    if (which == LONG_PRODUCT)
        driver->product(r->cx, r->a,
                        &(ms_cuda_gemm){.m = 1,
                                        .n = 2,
                                        .k = 2,
                                        .ld_a = 2,
                                        .ld_b = 2,
                                        .ld_c = 2,
                                        .a = x,
                                        .b = x,
                                        .c = x});
}

static void every_mistake_is_found(void **state)
{
    (void)state;
    for (int which = 0; which < NUM_MISTAKES; which++) {
        one_rank r =
            begin(&(ms_cuda_fake_options){.num_devices = 2, .record_defects = true});
        unsigned char *x = driver->allocate(r.device, 10);
        make_stream_mistake(&r, (mistake)which, x);
        make_memory_mistake(&r, (mistake)which, x);
        driver->release(r.device, x);
        if (which == RELEASE_TWICE)
            driver->release(r.device, x);
        if (which == COPY_OF_RELEASED)
            driver->clear(r.cx, r.a, x, 1);
        if (ms_cuda_fake_num_defects() != 1)
            fail_msg("mistake %d: %ld defects: %s", which, ms_cuda_fake_num_defects(),
                     ms_cuda_fake_defect());
        if (which != RELEASE_BEFORE_LAUNCH) {
            ASSERT_OK(driver->finish(r.cx, r.a), r.cx);
            end(&r);
            ASSERT_INT(ms_cuda_fake_num_defects(), 1);
        }
    }
}

static void what_is_left_open_is_found(void **state)
{
    (void)state;
    one_rank r = begin(&(ms_cuda_fake_options){.record_defects = true});
    end(&r);
    ASSERT_INT(ms_cuda_fake_num_defects(), 0);
    r = begin(&(ms_cuda_fake_options){.record_defects = true});
    driver->allocate_host(r.device, 1);
    close_rank(&r);
    ASSERT_INT(ms_cuda_fake_num_defects(),
               1); /* the device is closed before its memory is released */
    ms_cuda_fake_end();
    ASSERT_INT(ms_cuda_fake_num_defects(), 2);
}

static void waiting_for_ever_ends(void **state)
{
    (void)state;
    one_rank r =
        begin(&(ms_cuda_fake_options){.record_defects = true, .stuck_seconds = 0.05});
    ms_cuda_id id;
    ms_cuda_comm *comm;
    float *x = driver->allocate(r.device, sizeof *x);
    ASSERT_OK(driver->make_id(r.cx, &id), r.cx);
    ASSERT_OK(driver->open_comm(r.cx, r.device, &id, 0, 1, &comm), r.cx);
    ms_cuda_collective to_itself = {
        .kind = MS_CUDA_SEND, .scalar = MS_SCALAR_FP32, .send = x, .count = 1};
    ASSERT_OK(driver->communicate(r.cx, comm, r.a, &to_itself, 1), r.cx);
    ASSERT_INT(driver->finish(r.cx, r.a), MS_EIO);
    ASSERT_INT(ms_cuda_fake_num_defects(), 1);
    driver->abort_comm(comm);
    ASSERT_OK(driver->finish(r.cx, r.a), r.cx);
    driver->close_comm(comm);
    driver->release(r.device, x);
    end(&r);
    ASSERT_INT(ms_cuda_fake_num_defects(), 1);
}

/* ---- failures ---- */

static void calls_fail_when_they_are_told_to(void **state)
{
    (void)state;
    one_rank r = begin(NULL);
    int num_devices;
    ms_cuda_fake_fail(MS_FAKE_FIND, 2);
    ASSERT_OK(driver->find(r.cx, &num_devices), r.cx);
    ASSERT_INT(driver->find(r.cx, &num_devices), MS_EIO);
    ASSERT_OK(driver->find(r.cx, &num_devices), r.cx);
    ASSERT_INT(ms_cuda_fake_calls(MS_FAKE_FIND), 3);
    ms_cuda_fake_fail(MS_FAKE_ALLOCATE, 1);
    assert_null(driver->allocate(r.device, 1));
    char log[4] = "";
    ms_cuda_fake_fail(MS_FAKE_LAUNCH, 1);
    launch_note(r.a, log, 'a');
    ASSERT_INT(driver->check(r.cx, r.device), MS_EIO);
    ASSERT_OK(driver->check(r.cx, r.device), r.cx);
    end(&r);
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.missing = "no driver here"});
    ASSERT_INT(driver->find(r.cx, &num_devices), MS_EIO);
    assert_non_null(strstr(test_messages(r.cx), "no driver here"));
    ms_cuda_fake_end();
}

static void work_that_fails_ends_its_device(void **state)
{
    (void)state;
    one_rank r = begin(NULL);
    char log[8] = "";
    ms_cuda_fake_fail_work(2);
    for (int i = 0; i < 3; i++)
        launch_note(r.a, log, (char)('a' + i));
    ASSERT_OK(driver->check(r.cx, r.device), r.cx); /* the failing work has not run yet */
    ASSERT_INT(driver->finish(r.cx, r.a), MS_EIO);
    ASSERT_TEXT(log, "a");
    ASSERT_INT(driver->check(r.cx, r.device), MS_EIO);
    ASSERT_INT(driver->check(r.cx, r.device), MS_EIO);
    ASSERT_INT(driver->record(r.cx, r.event, r.a), MS_EIO);
    end(&r);
}

/* ---- products ---- */

static uint16_t bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    /* exact: the tests' numbers need no rounding to bf16 */
    return (uint16_t)(bits >> 16);
}

/* Adds to 1 the products of [1 2; 3 4] with [1 0; 2 1] and with its transpose. */
static void products_are_of_bf16_too(void **state)
{
    (void)state;
    const float a[] = {1, 2, 3, 4}, b[] = {1, 0, 2, 1};
    /* a b, and a times b transposed */
    const double want[2][4] = {{5, 2, 11, 4}, {1, 4, 3, 10}};
    for (int transpose = 0; transpose < 2; transpose++) {
        one_rank r = begin(NULL);
        uint16_t half[8];
        float got[4], ones[4] = {1, 1, 1, 1};
        uint16_t *x = driver->allocate(r.device, sizeof half);
        float *c = driver->allocate(r.device, sizeof got);
        for (int i = 0; i < 4; i++) {
            half[i] = bf16_of(a[transpose ? i % 2 * 2 + i / 2 : i]);
            half[4 + i] = bf16_of(b[i]);
        }
        ASSERT_OK(driver->copy(r.cx, r.a, x, half, sizeof half, MS_CUDA_TO_DEVICE), r.cx);
        ASSERT_OK(driver->copy(r.cx, r.a, c, ones, sizeof ones, MS_CUDA_TO_DEVICE), r.cx);
        ms_cuda_gemm p = {.type = MS_SCALAR_BF16,
                          .result = MS_SCALAR_FP32,
                          .transpose_a = transpose,
                          .transpose_b = transpose,
                          .add = true,
                          .m = 2,
                          .n = 2,
                          .k = 2,
                          .ld_a = 2,
                          .ld_b = 2,
                          .ld_c = 2,
                          .a = x,
                          .b = x + 4,
                          .c = c};
        ASSERT_OK(driver->product(r.cx, r.a, &p), r.cx);
        ASSERT_OK(driver->copy(r.cx, r.a, got, c, sizeof got, MS_CUDA_TO_HOST), r.cx);
        for (int i = 0; i < 4; i++)
            ASSERT_NEAR((double)got[i], want[transpose][i] + 1, 0);
        driver->release(r.device, x);
        driver->release(r.device, c);
        end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_done_before_someone_waits),
        cmocka_unit_test(streams_run_in_many_orders_each_in_its_own),
        cmocka_unit_test(one_seed_gives_one_order),
        cmocka_unit_test(a_missing_wait_gives_wrong_numbers),
        cmocka_unit_test(a_wait_is_for_the_last_record_before_it),
        cmocka_unit_test(asking_again_and_again_sees_an_event_happen),
        cmocka_unit_test(memory_holds_nans_at_first),
        cmocka_unit_test(memory_ends_and_comes_back),
        cmocka_unit_test(copies_take_pageable_memory_at_the_call_and_other_memory_later),
        cmocka_unit_test(every_mistake_is_found),
        cmocka_unit_test(what_is_left_open_is_found),
        cmocka_unit_test(waiting_for_ever_ends),
        cmocka_unit_test(calls_fail_when_they_are_told_to),
        cmocka_unit_test(work_that_fails_ends_its_device),
        cmocka_unit_test(products_are_of_bf16_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
