/* Tests of training on fake GPUs (tests/support/cuda_fake.h) against PyTorch's results for
 * small models of published architectures; fp32 and several ranks for those that have all
 * features between them. */
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/torch_features.h"

#include "tests/test.h"

#include <limits.h>

static const ms_feature_mesh meshes[] = {
    {"one rank", 1, 1, 1, 1, 1, 0, false, MS_CP_ALL_GATHER, "meshsim"},
    {"tp 2, dp 2, ZeRO-3, ep 2", 2, 2, 1, 1, 2, 3, false, MS_CP_ALL_GATHER, "meshsim"},
    {"ring cp 2", 1, 1, 2, 1, 1, 0, false, MS_CP_RING, "meshsim"},
    {"scores kept", 1, 2, 1, 1, 1, 0, false, MS_CP_ALL_GATHER, "megatron-2022"}};

static void compare(const ms_feature_mesh *m, ms_real_type type, int num_models)
{
    for (int i = 0; i < num_models && ms_feature_models[i] != NULL; i++) {
        ms_cuda_fake_begin(&(ms_cuda_fake_options){
            .seed = 7 + (uint64_t)i, .num_devices = (int)(m->dp_shard * m->tp * m->cp)});
        ms_cuda_backend backend = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
        ms_feature_compare(ms_feature_models[i], m, type, &backend.table);
        ms_cuda_fake_end();
    }
}

static void one_rank_calculates_what_pytorch_does(void **state)
{
    (void)state;
    compare(&meshes[0], MS_REAL_FP64, INT_MAX);
    compare(&meshes[0], MS_REAL_FP32, MS_NUM_FEATURE_MODELS);
}

static void so_do_several(void **state)
{
    (void)state;
    for (size_t m = 1; m < sizeof meshes / sizeof *meshes; m++)
        compare(&meshes[m], MS_REAL_FP64, MS_NUM_FEATURE_MODELS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_calculates_what_pytorch_does),
        cmocka_unit_test(so_do_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
