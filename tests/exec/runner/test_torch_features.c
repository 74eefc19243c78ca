/* Tests against PyTorch's results for models with the features of Gemma, DeepSeek, Llama
 * 3.1, GPT-NeoX and GLM (tests/oracle/torch/make_features.py): gradients of the first step
 * and losses of five steps, on one rank and on several meshes. */
#include "tests/support/torch_features.h"
#include "tests/test.h"

static const ms_feature_mesh meshes[] = {
    {"tp 2, dp 2, ZeRO-3", 2, 2, 1, 1, 1, 3, false, MS_CP_ALL_GATHER, "meshsim"},
    {"cp 2, pp 2", 1, 1, 2, 2, 1, 0, false, MS_CP_ALL_GATHER, "meshsim"},
    {"ring cp 4", 1, 1, 4, 1, 1, 0, false, MS_CP_RING, "meshsim"},
    {"ulysses cp 2", 1, 1, 2, 1, 1, 0, false, MS_CP_ULYSSES, "meshsim"},
    {"scores kept", 2, 2, 1, 1, 1, 0, false, MS_CP_ALL_GATHER, "megatron-2022"},
    {"dp 4, recomputed", 4, 1, 1, 1, 1, 1, true, MS_CP_ALL_GATHER, "meshsim"},
    {"tp 4, dp 2, ZeRO-2", 2, 4, 1, 1, 1, 2, false, MS_CP_ALL_GATHER, "meshsim"},
    {"dp 2, tp 2, ep 2", 2, 2, 1, 1, 2, 0, false, MS_CP_ALL_GATHER, "meshsim"}};

static void losses_and_gradients_are_those_of_pytorch(void **state)
{
    (void)state;
    for (int i = 0; ms_feature_models[i] != NULL; i++) {
        ms_feature_compare(ms_feature_models[i], &ms_feature_one_rank, MS_REAL_FP64,
                           &ms_backend_loop);
        ms_feature_compare(ms_feature_models[i], &ms_feature_one_rank, MS_REAL_FP32,
                           &ms_backend_loop);
    }
}

static void so_are_those_of_all_meshes(void **state)
{
    (void)state;
    for (int i = 0; ms_feature_models[i] != NULL; i++)
        for (size_t m = 0; m < sizeof meshes / sizeof *meshes; m++)
            ms_feature_compare(ms_feature_models[i], &meshes[m], MS_REAL_FP64,
                               &ms_backend_loop);
}

#define MEMBER(name) offsetof(ms_model, name), sizeof((ms_model *)0)->name

/* A model without one of its features gives other losses: none is without effect. */
static void every_feature_matters(void **state)
{
    (void)state;
    static const struct {
        int model; /* index into ms_feature_models */
        size_t offset, size;
    } cases[] = {
        {0, MEMBER(norm_plus_one)},         {0, MEMBER(embedding_scale)},
        {0, MEMBER(query_pre_attn_scalar)}, {0, MEMBER(attention_softcap)},
        {0, MEMBER(logit_softcap)},         {1, MEMBER(rotary_local_base)},
        {1, MEMBER(rotary_scaling)},        {2, MEMBER(rotary_scaling)},
        {3, MEMBER(rotary_scaling)},        {4, MEMBER(moe.num_groups)},
        {4, MEMBER(moe.routed_scaling)},    {5, MEMBER(moe.num_groups)},
        {5, MEMBER(rotary_interleaved)},    {5, MEMBER(rotary_scaling.mscale_all_dim)},
        {5, MEMBER(moe.norm_topk)},         {6, MEMBER(rotary_dim)}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_feature_oracle o =
            ms_feature_oracle_load(cx, ms_feature_models[cases[i].model]);
        ms_model model = *o.model;
        memset((char *)&model + cases[i].offset, 0, cases[i].size);
        o.model = &model;
        ms_outcome got =
            ms_feature_run(cx, &o, &ms_feature_one_rank, MS_REAL_FP64, &ms_backend_loop);
        double off = ms_feature_loss_difference(&got, &o);
        if (!(off > 1e-6))
            fail_msg("%s: case %zu changes losses by %g", o.model->name, i, off);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_gradients_are_those_of_pytorch),
        cmocka_unit_test(so_are_those_of_all_meshes),
        cmocka_unit_test(every_feature_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
