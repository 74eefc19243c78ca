/* The first gradient of a weight in a step is written, not added to zeroes: the kernels
 * that write give the numbers of those that add to zeroes, and read no old ones. On CPUs
 * (loop) and on the fake GPU. */
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/run_plan.h"
#include "tests/test.h"

#include <math.h>
#include <stdatomic.h>

static const ms_backend *tested;
/* Nodes with gradients of weights that wrote, that added, and that gave other numbers. */
static atomic_long num_written, num_added, num_wrong;

static bool is_gradient(const ms_op_call *call, int result)
{
    return call->program->tensors[call->node->out[result]].role ==
               MS_ROLE_WEIGHT_GRADIENT &&
           call->out[result]->data != NULL;
}

static ms_status read_result(ms_ctx *cx, ms_device_rank *device, const ms_local *x,
                             double **out)
{
    *out = MS_NEW_ARRAY(cx->arena, x->count, double);
    return tested->arrays->read(cx, device, (ms_scalar)x->scalar, *out, x->data,
                                x->count);
}

static ms_status run_on(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call,
                        bool writes, double *results[MS_MAX_OPERANDS])
{
    ms_op_call own = *call;
    own.writes = writes;
    for (int i = 0; i < call->node->num_out; i++)
        if (is_gradient(call, i))
            tested->arrays->fill(device, (ms_scalar)call->out[i]->scalar,
                                 call->out[i]->data, writes ? (double)NAN : 0.0,
                                 call->out[i]->count);
    MS_TRY(tested->kernel(cx, device, &own));
    for (int i = 0; i < call->node->num_out; i++)
        if (is_gradient(call, i))
            MS_TRY(read_result(cx, device, call->out[i], &results[i]));
    return MS_OK;
}

static ms_status compare(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call)
{
    bool has_gradient = false;
    double *added[MS_MAX_OPERANDS], *written[MS_MAX_OPERANDS];
    for (int i = 0; i < call->node->num_out; i++)
        has_gradient = has_gradient || is_gradient(call, i);
    num_added += has_gradient && !call->writes;
    if (!call->writes)
        return tested->kernel(cx, device, call);
    num_written++;
    MS_TRY(run_on(cx, device, call, false, added));
    MS_TRY(run_on(cx, device, call, true, written));
    for (int i = 0; i < call->node->num_out; i++)
        for (long e = 0; is_gradient(call, i) && e < call->out[i]->count; e++)
            num_wrong += added[i][e] != written[i][e]; /* NaN differs from all */
    return MS_OK;
}

static void check(ms_make_model *make, long zero, const ms_backend *backend)
{
    ms_ctx *cx = test_cx();
    num_written = num_added = num_wrong = 0;
    const ms_model *model = ms_pubrun_model(cx->arena, make);
    ms_plan plan = ms_run_base_plan();
    plan.gpus = plan.size[MS_DP_SHARD] = 2;
    plan.zero = zero;
    plan.microbatch = 2; /* two micro-batches a step */
    ms_runner_options options = ms_run_options(model, &plan, MS_REAL_FP32);
    options.num_steps = 2;
    ms_outcome out;
    ASSERT_OK(ms_run_plan(cx, model, &plan, "ideal", backend, &options, &out), cx);
    ASSERT_INT(num_wrong, 0);
    assert_true(num_written > 0);
    /* a micro-batch writes to a buffer of its own where gradients are sharded; a mixture's
     * experts add */
    if (zero < 2)
        assert_true(num_added >= num_written);
}

static void check_models(const ms_backend *backend)
{
    check(ms_small_llama, 0, backend);
    check(ms_small_gpt, 1, backend);
    check(ms_small_gemma, 2, backend);
    check(ms_small_mixtral, 3, backend);
}

static void on_cpus(void **state)
{
    (void)state;
    ms_backend backend = ms_backend_loop;
    tested = &ms_backend_loop;
    backend.kernel = compare;
    check_models(&backend);
}

static void on_gpus(void **state)
{
    (void)state;
    ms_cuda_backend plain = ms_test_cuda_backend(MS_CUDA_BY_NCCL), backend = plain;
    tested = &plain.table;
    backend.table.kernel = compare;
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = 5, .num_devices = 2});
    check(ms_small_gpt, 1, &backend.table);
    check(ms_small_mixtral, 3, &backend.table);
    ms_cuda_fake_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_cpus),
        cmocka_unit_test(on_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
