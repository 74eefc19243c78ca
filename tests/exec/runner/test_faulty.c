/* Tests of the fault-injecting backend (tests/support/faulty_backend.h): a run in which
 * one backend call fails ends with the error of that call. */
#include "tests/support/faulty_backend.h"
#include "tests/support/transfer_checks.h"

#include "tests/test.h"

typedef struct faulty_run {
    ms_ctx *cx;
    ms_plan plan;
    ms_world world;
    ms_backend_job job;
    ms_faulty faulty;
} faulty_run;

static void open_run(faulty_run *r)
{
    r->cx = test_cx();
    r->plan = ms_check_plan((long[]){1, 1, 1, 2, 2}, 1);
    r->world = ms_world_make(r->cx->arena, &r->plan);
    r->job = (ms_backend_job){.world = &r->world, .type = MS_REAL_FP32};
    r->faulty = (ms_faulty){.inner = &ms_backend_loop, .rank = 2};
    ms_faulty_wrap(&r->faulty, &r->job);
    ASSERT_OK(r->job.backend->open(r->cx, &r->job), r->cx);
}

static ms_status run_with(faulty_run *r, long fail_at, ms_rank_main *main)
{
    r->cx = test_cx();
    r->faulty.fail_at = fail_at;
    return r->job.backend->run(r->cx, &r->job, main, &r->job);
}

static void every_call_can_fail(void **state)
{
    (void)state;
    faulty_run r;
    open_run(&r);
    ASSERT_OK(run_with(&r, 0, ms_check_transfers), r.cx);
    long num_calls = r.faulty.num_calls;
    assert_true(num_calls > 200 && !r.faulty.failed);
    for (long k = 1; k <= num_calls; k += 1 + k / 8) {
        ASSERT_INT(run_with(&r, k, ms_check_transfers), MS_EIO);
        assert_true(r.faulty.failed);
        char want[64];
        snprintf(want, sizeof want, "error: rank 2: call %ld (", k);
        const char *said = test_messages(r.cx);
        bool of_memory = strcmp(said, "error: rank 2: no memory\n") == 0;
        if (strncmp(said, want, strlen(want)) != 0 && !of_memory)
            fail_msg("%ld: %s", k, said);
    }
    ASSERT_OK(run_with(&r, num_calls + 1, ms_check_transfers), r.cx);
    assert_false(r.faulty.failed);
    r.job.backend->close(&r.job);
}

static ms_status one_of_each(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    const ms_backend *b = ((ms_backend_job *)state)->backend;
    (void)rank;
    float *x = b->allocate(device, 2 * sizeof *x);
    if (x == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory");
    x[0] = x[1] = 1;
    ms_local part = {.data = x, .num_dims = 1, .shape = {2}, .count = 2};
    ms_node node = {.op = MS_OP_ADD, .num_in = 2, .num_out = 1, .name = "residual"};
    ms_tensor tensor = {.role = MS_ROLE_ACTIVATION};
    ms_program program = {.tensors = &tensor, .num_tensors = 1};
    ms_op_call call = {
        .program = &program, .node = &node, .in = {&part, &part}, .out = {&part}};
    ms_transfer t = {.kind = MS_TRANSFER_ALL_REDUCE,
                     .group = MS_TRAFFIC_TP,
                     .send = x,
                     .receive = x,
                     .count = 2,
                     .name = "mlp.down"};
    ms_event done;
    ms_status status = b->kernel(cx, device, &call);
    if (status == MS_OK)
        status = b->start(cx, device, &t, NULL, 0, &done);
    if (status == MS_OK)
        status = b->wait(cx, device, done);
    b->release(device, x, 2 * sizeof *x);
    return status;
}

static void failures_say_which_call(void **state)
{
    (void)state;
    static const char *const want[] = {
        "error: rank 2: no memory\n",
        "error: rank 2: call 2 (add residual) was made to fail\n",
        "error: rank 2: call 3 (all-reduce mlp.down) was made to fail\n",
        "error: rank 2: call 4 (wait) was made to fail\n",
    };
    faulty_run r;
    open_run(&r);
    for (int k = 1; k <= 4; k++) {
        ASSERT_INT(run_with(&r, k, one_of_each), MS_EIO);
        ASSERT_TEXT(test_messages(r.cx), want[k - 1]);
    }
    ASSERT_OK(run_with(&r, 5, one_of_each), r.cx);
    ASSERT_INT(r.faulty.num_calls, 4);
    r.job.backend->close(&r.job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_can_fail),
        cmocka_unit_test(failures_say_which_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
