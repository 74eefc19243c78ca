/* Tokens that reach experts by an all-gather: what travels is what predictions price, and
 * who refuses it. */
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/run_plan.h"
#include "tests/test.h"

#include "sim/step/traffic.h"

#include <pthread.h>
#include <string.h>

static ms_plan gathering(long ep, long tp)
{
    ms_plan plan = ms_run_base_plan();
    plan.gpus = ep;
    plan.size[MS_DP_SHARD] = ep / tp;
    plan.size[MS_TP] = tp;
    plan.ep = ep;
    plan.microbatch = 1;
    plan.dispatcher = MS_DISPATCH_ALL_GATHER;
    return plan;
}

/* ---- traffic ---- */

/* Bytes of collectives of tokens in ep groups, summed over the ranks that start them. */
static struct {
    pthread_mutex_t mutex;
    long num_tokens, hidden; /* tokens of a rank, and their width */
    double gathered_bytes, scattered_bytes, other_bytes;
} seen = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static ms_status counting_start(ms_ctx *cx, ms_device_rank *device,
                                const ms_transfer *transfer, const ms_event *after,
                                int num_after, ms_event *done)
{
    bool is_tokens = transfer->count == seen.num_tokens * seen.hidden;
    double bytes =
        (double)transfer->count * (double)ms_scalar_bytes((ms_scalar)transfer->scalar);
    (void)pthread_mutex_lock(&seen.mutex);
    if (transfer->group == MS_TRAFFIC_EP && !transfer->on_host)
        *(!is_tokens                                     ? &seen.other_bytes
          : transfer->kind == MS_TRANSFER_ALL_GATHER     ? &seen.gathered_bytes
          : transfer->kind == MS_TRANSFER_REDUCE_SCATTER ? &seen.scattered_bytes
                                                         : &seen.other_bytes) += bytes;
    (void)pthread_mutex_unlock(&seen.mutex);
    return ms_backend_loop.start(cx, device, transfer, after, num_after, done);
}

/* Predicted bytes of a collective in ep groups, all of a rank's in a step. */
static double predicted_bytes(ms_ctx *cx, const ms_planned *planned, ms_collective what)
{
    ms_traffic traffic = ms_traffic_make(cx, planned, 0);
    double bytes = 0.0;
    for (int i = 0; i < traffic.num_entries; i++)
        if (traffic.entries[i].group == MS_TRAFFIC_EP &&
            traffic.entries[i].collective == what)
            bytes += traffic.entries[i].size_bytes * traffic.entries[i].count;
    return bytes;
}

/* Beside tokens, choices, weights and their gradients travel: 4 numbers of each copy. */
static void tokens_travel_as_predicted(void **state)
{
    (void)state;
    static const long meshes[][2] = {{2, 1}, {4, 1}, {4, 2}};
    ms_backend counting = ms_backend_loop;
    counting.start = counting_start;
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = ms_pubrun_model(cx->arena, ms_small_mixtral);
        ms_plan plan = gathering(meshes[i][0], meshes[i][1]);
        ms_runner_options options = ms_run_options(model, &plan, MS_REAL_FP32);
        ms_run_opened opened;
        ms_outcome out;
        options.num_steps = 1;
        seen.num_tokens = plan.sequence_length / meshes[i][1];
        seen.hidden = model->hidden;
        seen.gathered_bytes = seen.scattered_bytes = seen.other_bytes = 0.0;
        ASSERT_OK(ms_run_open(cx, model, &plan, "meshsim", &opened), cx);
        ASSERT_OK(ms_run_opened_plan(cx, &opened, &counting, &options, &out), cx);
        double gathers = predicted_bytes(cx, opened.planned, MS_ALL_GATHER),
               scatters = predicted_bytes(cx, opened.planned, MS_REDUCE_SCATTER);
        assert_true(gathers > 0.0 && scatters > 0.0);
        /* a rank's part of each of `ep` ranks is the size of one collective */
        ASSERT_NEAR(seen.gathered_bytes, gathers, 1e-12);
        ASSERT_NEAR(seen.scattered_bytes, scatters, 1e-12);
        ASSERT_NEAR(seen.other_bytes / seen.gathered_bytes,
                    4.0 * (double)model->moe.top_k / (2.0 * (double)model->hidden),
                    1e-12);
        ASSERT_NEAR(predicted_bytes(cx, opened.planned, MS_ALL_TO_ALL), 0.0, 0.0);
        ms_run_close(&opened);
    }
}

/* ---- refusals ---- */

static void expect_refusal(const ms_plan *plan, const ms_backend *backend,
                           const char *text)
{
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_mixtral);
    ms_runner_options options = ms_run_options(model, plan, MS_REAL_FP32);
    ms_outcome out;
    ms_status status = ms_runner_check_plan(cx, plan);
    if (status == MS_OK)
        status = ms_run_plan(cx, model, plan, "meshsim", backend, &options, &out);
    ASSERT_INT(status, MS_EINPUT);
    assert_non_null(strstr(cx->first->message, text));
}

static void gpus_and_padded_experts_refuse_it(void **state)
{
    (void)state;
    ms_cuda_backend cuda = ms_test_cuda_backend(MS_CUDA_BY_HOST);
    ms_plan plan = gathering(2, 1);
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = 1});
    expect_refusal(&plan, &cuda.table, "does not execute --moe-dispatcher allgather");
    ms_cuda_fake_end();
    plan.expert_capacity = 1.25;
    ASSERT_INT(ms_runner_check_plan(test_cx(), &plan), MS_OK);
    plan.pad_experts = true;
    expect_refusal(&plan, &ms_backend_loop,
                   "does not execute --moe-dispatcher allgather");
    plan.dispatcher = MS_DISPATCH_DEEPEP;
    expect_refusal(&plan, &ms_backend_loop, "does not execute --moe-dispatcher deepep");
    plan.dispatcher = MS_DISPATCH_ALL_TO_ALL;
    ASSERT_INT(ms_runner_check_plan(test_cx(), &plan), MS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_travel_as_predicted),
        cmocka_unit_test(gpus_and_padded_experts_refuse_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
