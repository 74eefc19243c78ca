/* Ranks as threads: every transfer over every group, and what becomes of a run in which a rank fails, is late, or never comes. */
#include "exec/meeting.h"
#include "tests/support/transfer_checks.h"

#include "tests/test.h"

static void count_call(const ms_op_call *call)
{
    ++*(int *)call->workspace;
}

/* Kernels are not what is tested here. */
const ms_kernels *ms_cpu_kernels(ms_real_type type)
{
    static const ms_kernels kernels[2] = {
        {.type = MS_REAL_FP32, .op = {[MS_OP_ADD] = count_call}},
        {.type = MS_REAL_FP64, .op = {[MS_OP_ADD] = count_call}}};
    return &kernels[type];
}

static ms_backend_job open_job(const ms_plan *plan, ms_real_type type)
{
    ms_ctx *cx = test_cx();
    ms_world *world = MS_NEW(cx->arena, ms_world);
    ms_plan *kept = MS_NEW(cx->arena, ms_plan);
    *kept = *plan;
    *world = ms_world_make(cx->arena, kept);
    ms_backend_job job = {.backend = &ms_backend_loop, .world = world, .type = type};
    ASSERT_OK(job.backend->open(cx, &job), cx);
    return job;
}

/* Runs `main` on 4 ranks (tp 2 x cp 2), which must fail, and returns what is printed. */
static const char *failure_of(ms_rank_main *main, double timeout_s, ms_status want)
{
    ms_plan plan = ms_check_plan((long[]){1, 1, 1, 2, 2}, 1);
    ms_backend_job job = open_job(&plan, MS_REAL_FP64);
    job.timeout_s = timeout_s;
    ms_ctx *cx = test_cx();
    ASSERT_INT(job.backend->run(cx, &job, main, &job), want);
    job.backend->close(&job);
    return test_messages(cx);
}

/* ---- transfers ---- */

static void check_mesh(const long size[MS_NUM_PLAN_AXES], long ep, ms_real_type type)
{
    ms_plan plan = ms_check_plan(size, ep);
    ms_backend_job job = open_job(&plan, type);
    ms_ctx *cx = test_cx();
    ASSERT_OK(job.backend->run(cx, &job, ms_check_transfers, &job), cx);
    ASSERT_INT(cx->num_errors, 0);
    job.backend->close(&job);
}

static void every_transfer_over_every_group(void **state)
{
    (void)state;
    check_mesh((long[]){2, 1, 2, 2, 2}, 4, MS_REAL_FP32);
    check_mesh((long[]){2, 2, 2, 1, 2}, 2, MS_REAL_FP64);
    check_mesh((long[]){1, 1, 3, 1, 2}, 1, MS_REAL_FP64);
    check_mesh((long[]){1, 1, 1, 1, 1}, 1, MS_REAL_FP64);
}

static void many_ranks(void **state)
{
    (void)state;
    check_mesh((long[]){2, 2, 4, 2, 2}, 8, MS_REAL_FP32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_transfer_over_every_group),
        cmocka_unit_test(many_ranks),
    };
    (void)failure_of;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
