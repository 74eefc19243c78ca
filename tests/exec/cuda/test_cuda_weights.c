/* Tests of weights on fake GPUs (tests/support/cuda_fake.h): initial values made by
 * kernels equal the CPU's, bf16 copies equal the rounded fp32 master weights, and reading
 * whole tensors takes few copies. */
#include "base/number.h"
#include "exec/params/names.h"
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/run_cases.h"

#include "tests/test.h"

#include <string.h>

/* ---- initial values ---- */

static ms_outcome begin(const ms_model *model, const ms_plan *plan, ms_real_type type,
                        const ms_backend *backend, ms_runner_options *options)
{
    ms_outcome out;
    ms_ctx *cx = test_cx();
    options->type = type;
    options->num_steps = 0;
    options->wants_gradients = options->wants_updated = false;
    ASSERT_OK(ms_run_plan(cx, model, plan, "generic", backend, options, &out), cx);
    return out;
}

static ms_plan plan_of(const long size[MS_NUM_PLAN_AXES], long zero)
{
    ms_plan plan = ms_plan_default(1);
    memcpy(plan.size, size, sizeof plan.size);
    plan.gpus = 1;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        plan.gpus *= size[axis];
    plan.ep = size[MS_DP_SHARD];
    plan.sequence_length = MS_SMALL_SEQUENCE;
    plan.global_batch = 8;
    plan.zero = zero;
    ms_plan_fill_defaults(&plan);
    return plan;
}

/* Initial weights equal the CPU's bit for bit: emulated kernels call the same sin, cos
 * and log. (A real GPU's differ in the last digit of fp64, hence in few elements of
 * fp32.) */
static void initial_weights_are_those_of_cpus(void **state)
{
    (void)state;
    static const long sizes[][MS_NUM_PLAN_AXES] = {
        {1, 1, 1, 1, 1}, {2, 1, 2, 1, 1}, {1, 1, 2, 1, 2}};
    ms_make_model *const makes[] = {ms_small_gpt, ms_small_deepseek, ms_small_qwen_moe};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const ms_model *model = ms_pubrun_model(cx->arena, makes[i]);
        ms_plan plan = plan_of(sizes[i], i > 0 ? 3 : 0);
        ms_runner_options options = ms_run_options(model, &plan, MS_REAL_FP32);
        for (int type = MS_REAL_FP32; type <= MS_REAL_FP64; type++) {
            ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = 60 + i, .num_devices = 4});
            ms_cuda_backend cuda = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
            options.weights_in_bf16 = i == 1;
            ms_outcome got =
                begin(model, &plan, (ms_real_type)type, &cuda.table, &options);
            ms_outcome want =
                begin(model, &plan, (ms_real_type)type, &ms_backend_loop, &options);
            assert_true(got.weights.num_tensors > 0);
            ASSERT_NEAR(ms_run_difference(&got.weights, &want.weights, NULL), 0.0, 0.0);
            ms_cuda_fake_end();
        }
    }
}

/* ---- masters and copies ---- */

#define MOST_LOOKED_AT 8192

/* The last bf16 weights written to the device, for comparison with the fp32 master
 * weights that are written after them. */
typedef struct look {
    const ms_array_ops *inner;
    double copy[MOST_LOOKED_AT];
    long num_copied, num_compared, num_wrong, num_rounded;
} look;
static look seen;

static void see(ms_device_rank *device, ms_scalar scalar, const void *at, long count)
{
    static double master[MOST_LOOKED_AT];
    bool is_master = scalar == MS_SCALAR_FP32;
    assert_true(count <= MOST_LOOKED_AT);
    ASSERT_OK(seen.inner->read(test_cx(), device, scalar, is_master ? master : seen.copy,
                               at, count),
              test_cx());
    for (long i = 0; i < count && is_master; i++) {
        seen.num_wrong += seen.copy[i] != ms_rounded_to_bf16((float)master[i]);
        seen.num_rounded += seen.copy[i] != master[i];
    }
    seen.num_copied += is_master ? 0 : count;
    seen.num_compared += is_master ? count : 0;
}

static void initialise(ms_device_rank *device, ms_scalar scalar, void *to,
                       const ms_initial_piece *piece)
{
    seen.inner->initialise(device, scalar, to, piece);
    see(device, scalar, to, piece->number);
}

static ms_status write_array(ms_ctx *cx, ms_device_rank *device, ms_scalar scalar,
                             void *to, const double *from, long count)
{
    MS_TRY(seen.inner->write(cx, device, scalar, to, from, count));
    see(device, scalar, to, count);
    return MS_OK;
}

static void check_copies(const ms_model *model, const ms_plan *plan,
                         ms_runner_options *options)
{
    ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = 70});
    ms_cuda_backend cuda = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
    seen = (look){.inner = cuda.table.arrays};
    ms_array_ops arrays = *seen.inner;
    arrays.initialise = initialise;
    arrays.write = write_array;
    cuda.table.arrays = &arrays;
    begin(model, plan, MS_REAL_BF16, &cuda.table, options);
    ms_cuda_fake_end();
    assert_true(seen.num_copied > 0);
    ASSERT_INT(seen.num_compared, seen.num_copied);
    ASSERT_INT(seen.num_wrong, 0);
    assert_int_equal(seen.num_rounded > 0, !options->weights_in_bf16);
}

/* Weights made on the device, and weights read from an fp64 file, are rounded to bf16 via
 * fp32: rounding fp64 directly would differ from the master halfway between two bf16
 * numbers. */
static void copies_are_rounded_masters(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_plan plan = ms_run_base_plan();
    plan.compute = MS_BF16;
    ms_runner_options options = ms_run_options(model, &plan, MS_REAL_BF16);
    check_copies(model, &plan, &options);
    options.weights_in_bf16 = true;
    check_copies(model, &plan, &options);
    ms_plan in_fp64 = ms_run_base_plan();
    ms_outcome saved = begin(model, &in_fp64, MS_REAL_FP64, &ms_backend_loop, &options);
    double *first = (double *)(uintptr_t)saved.weights.tensors[0].values;
    /* rounds to 1 + 2^-8 in fp32, halfway between two bf16; then to even: 1 */
    first[0] = 1.0 + 0x1p-8 + 0x1p-30;
    options.load = &saved.weights;
    check_copies(model, &plan, &options);
    options.weights_in_bf16 = false;
    check_copies(model, &plan, &options);
}

/* ---- number of copies ---- */

/* A model of ten million parameters in 21 tensors: initial values are made without
 * copies, and reading takes one copy per 2^21 elements of a tensor. */
static void whole_tensors_take_few_copies(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model *model = MS_NEW(cx->arena, ms_model);
    *model = *ms_pubrun_model(cx->arena, ms_small_llama);
    model->num_layers = 2;
    model->vocab = 16384;
    model->hidden = 256;
    model->ffn_hidden = 768;
    ms_plan plan = ms_run_base_plan();
    ms_runner_options options = ms_run_options(model, &plan, MS_REAL_FP32);
    options.wants_weights = false;
    long copies[2], launches = 0, num_params = 0;
    for (int wants = 0; wants < 2; wants++) {
        ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = 80});
        ms_cuda_backend cuda = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
        options.wants_weights = wants == 1;
        ms_outcome out = begin(model, &plan, MS_REAL_FP32, &cuda.table, &options);
        copies[wants] = ms_cuda_fake_calls(MS_FAKE_COPY);
        launches = ms_cuda_fake_calls(MS_FAKE_LAUNCH);
        for (int i = 0; i < out.weights.num_tensors; i++)
            num_params += out.weights.tensors[i].count;
        if (wants == 1) {
            ASSERT_INT(launches, out.weights.num_tensors);
            /* embedding and head have 2^22 elements: two copies each */
            ASSERT_INT(copies[1] - copies[0], out.weights.num_tensors + 2);
        }
        ms_cuda_fake_end();
    }
    assert_true(num_params > 9000000);
    ASSERT_INT(copies[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initial_weights_are_those_of_cpus),
        cmocka_unit_test(copies_are_rounded_masters),
        cmocka_unit_test(whole_tensors_take_few_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
