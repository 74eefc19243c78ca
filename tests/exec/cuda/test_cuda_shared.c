/* Tests of NCCL ranks that share one GPU (NCCL_MULTI_RANK_GPU_ENABLE): refused unless
 * requested and supported, right results, and transfer times that are reported as no link
 * times. */
#include "cli/report/run_report.h"
#include "exec/launch/environment.h"
#include "exec/measure/measure.h"
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/run_cases.h"

#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#define VARIABLE "NCCL_MULTI_RANK_GPU_ENABLE"

static ms_plan plan_of_two(void)
{
    ms_plan plan = ms_run_base_plan();
    plan.size[MS_TP] = 2;
    plan.gpus = 2;
    ms_plan_fill_defaults(&plan);
    return plan;
}

static void begin(int nccl_version, int num_devices)
{
    ms_cuda_fake_begin(&(ms_cuda_fake_options){
        .seed = 90, .num_devices = num_devices, .nccl_version = nccl_version});
}

/* ---- whether they may ---- */

static void the_variable_is_a_number(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        bool enables;
    } cases[] = {{"1", true}, {"2", true}, {"0", false}, {"", false}, {"yes", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv(VARIABLE, cases[i].value, 1);
        ASSERT_INT(ms_nccl_shares_gpus(), cases[i].enables);
    }
    unsetenv(VARIABLE);
    ASSERT_INT(ms_nccl_shares_gpus(), false);
}

/* Opens a job of two ranks; `shares` gets whether ranks share a GPU. Returns the
 * messages. */
static const char *open_job(int nccl_version, int num_devices,
                            ms_cuda_transport transport, bool *shares)
{
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of_two();
    ms_world world = ms_world_make(cx->arena, &plan);
    ms_cuda_backend backend = ms_test_cuda_backend(transport);
    ms_backend_job job = {
        .backend = &backend.table, .world = &world, .type = MS_REAL_FP32};
    begin(nccl_version, num_devices);
    ms_status status = backend.table.open(cx, &job);
    *shares = status == MS_OK && ms_cuda_job_shares_gpus(&job);
    if (status == MS_OK)
        backend.table.close(&job);
    else
        ASSERT_INT(status, MS_EINPUT);
    ms_cuda_fake_end();
    return status == MS_OK ? NULL : test_messages(cx);
}

static void only_where_it_is_asked_for_and_new_enough(void **state)
{
    (void)state;
    bool shares;
    const char *said = open_job(23000, 1, MS_CUDA_BY_NCCL, &shares);
    assert_non_null(strstr(said, "2 ranks share 1 GPU, and NCCL gives"));
    assert_non_null(strstr(said, VARIABLE "=1"));
    setenv(VARIABLE, "1", 1);
    said = open_job(22907, 1, MS_CUDA_BY_NCCL, &shares);
    assert_non_null(strstr(said, VARIABLE " needs NCCL 2.30, and 2.29.7 is installed"));
    assert_non_null(strstr(said, "--transport host"));
    said = open_job(0, 1, MS_CUDA_BY_NCCL, &shares);
    assert_non_null(strstr(said, "needs NCCL 2.30, and none is installed"));
    assert_null(open_job(23000, 1, MS_CUDA_BY_NCCL, &shares));
    ASSERT_INT(shares, true);
    assert_null(open_job(23000, 2, MS_CUDA_BY_NCCL, &shares));
    ASSERT_INT(shares, false);
    assert_null(open_job(23000, 1, MS_CUDA_BY_HOST, &shares));
    ASSERT_INT(shares, false);
    unsetenv(VARIABLE);
}

static void numbers_are_the_same(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_plan plan = plan_of_two();
    ms_runner_options options = ms_run_options(model, &plan, MS_REAL_FP32);
    ms_outcome shared, apart;
    ms_cuda_backend backend = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
    setenv(VARIABLE, "1", 1);
    begin(23001, 1);
    ASSERT_OK(ms_run_plan(cx, model, &plan, "generic", &backend.table, &options, &shared),
              cx);
    ms_cuda_fake_end();
    begin(23001, 2);
    ASSERT_OK(ms_run_plan(cx, model, &plan, "generic", &backend.table, &options, &apart),
              cx);
    ms_cuda_fake_end();
    unsetenv(VARIABLE);
    ASSERT_NEAR(shared.losses[0], apart.losses[0], 0.0);
    ASSERT_NEAR(ms_run_difference(&shared.gradients, &apart.gradients, NULL), 0.0, 0.0);
}

/* ---- reports ---- */

static void links_are_not_measured(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_cuda_backend backend = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
    ms_measure how = {
        .backend = &backend.table, .type = MS_REAL_FP32, .num_ranks = 2, .quick = true};
    ms_samples samples = {0};
    setenv(VARIABLE, "1", 1);
    begin(23000, 1);
    ASSERT_INT(ms_measure_launch(cx, &how, &samples), MS_EINPUT);
    ms_cuda_fake_end();
    unsetenv(VARIABLE);
    ASSERT_INT(samples.num, 0);
    assert_non_null(strstr(test_messages(cx), "says nothing about links"));
}

/* Returns the report of a run without steps, as text or JSON. */
static const char *text_of(ms_cuda_transport transport, bool shares, bool json)
{
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of_two();
    ms_world world = ms_world_make(cx->arena, &plan);
    ms_stage_prediction stage = {0};
    ms_prediction prediction = {.stages = &stage, .unit = "gpu"};
    ms_outcome outcome = {0};
    ms_cuda_used used = {.facts = {.name = "a GPU"}};
    const ms_run_report report = {.plan = &plan,
                                  .prediction = &prediction,
                                  .world = &world,
                                  .backend = "cuda",
                                  .dtype = "bf16",
                                  .on_gpu = true,
                                  .transport = transport,
                                  .shares_gpus = shares,
                                  .device = &used,
                                  .outcome = &outcome};
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    if (json) {
        ms_jout to = ms_jout_open(out);
        ms_run_write_json(&to, &report);
        ms_jout_close(&to);
    } else {
        ms_run_print(out, cx->arena, &report);
    }
    fclose(out);
    const char *kept = ms_arena_strdup(cx->arena, text);
    free(text);
    return kept;
}

static void runs_say_what_they_show(void **state)
{
    (void)state;
    const char *text = text_of(MS_CUDA_BY_NCCL, true, false);
    assert_non_null(strstr(text, "between ranks on one GPU by NCCL: functional only"));
    assert_non_null(strstr(text_of(MS_CUDA_BY_NCCL, true, true),
                           "\"restriction\": \"functional only\""));
    text = text_of(MS_CUDA_BY_HOST, false, false);
    assert_non_null(strstr(text, "between ranks through host memory: correctness only"));
    assert_non_null(strstr(text_of(MS_CUDA_BY_HOST, false, true),
                           "\"restriction\": \"correctness only\""));
    assert_null(strstr(text_of(MS_CUDA_BY_NCCL, false, false), "only"));
    assert_null(strstr(text_of(MS_CUDA_BY_NCCL, false, true), "restriction"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_variable_is_a_number),
        cmocka_unit_test(only_where_it_is_asked_for_and_new_enough),
        cmocka_unit_test(numbers_are_the_same),
        cmocka_unit_test(links_are_not_measured),
        cmocka_unit_test(runs_say_what_they_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
