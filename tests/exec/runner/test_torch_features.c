/* Tests against PyTorch's results for models with the features of Gemma, DeepSeek, Llama
 * 3.1, GPT-NeoX and GLM (tests/oracle/torch/make_features.py): gradients of the first step
 * and losses of five steps, on one rank and on several meshes. */
#include "tests/support/run_plan.h"
#include "tests/support/torch_oracle.h"
#include "tests/test.h"

#define NUM_STEPS 5

static const char *const names[] = {"gemma-2",   "gemma-3",     "llama-3.1",
                                    "qwen-yarn", "deepseek-v2", "deepseek-v3",
                                    "neox",      "glm"};
#define NUM_MODELS (sizeof names / sizeof *names)

typedef struct oracle {
    const ms_model *model;
    ms_safe_file results; /* gradients by weight name, and "losses" */
    const double *losses;
} oracle;

static oracle load(ms_ctx *cx, const char *name)
{
    oracle o = {0};
    const char *stem = ms_arena_printf(cx->arena, "tests/data/run/features/%s", name);
    ASSERT_OK(ms_model_load(cx, ms_arena_printf(cx->arena, "%s.json", stem), &o.model),
              cx);
    ASSERT_OK(
        ms_safetensors_load(
            cx, ms_arena_printf(cx->arena, "%s.results.safetensors", stem), &o.results),
        cx);
    const ms_safe_tensor *losses = ms_safe_find(&o.results, "losses");
    assert_non_null(losses);
    ASSERT_INT(losses->count, NUM_STEPS);
    o.losses = losses->values;
    long at = losses - o.results.tensors;
    o.results.num_tensors--;
    memmove(&o.results.tensors[at], &o.results.tensors[at + 1],
            (size_t)(o.results.num_tensors - at) * sizeof *o.results.tensors);
    return o;
}

/* Ranks along each axis; `recompute`: full recomputation. */
typedef struct mesh {
    const char *name;
    long dp_shard, tp, cp, pp, ep, zero;
    bool recompute;
    ms_cp_method cp_method;
    const char *stack;
} mesh;

static const mesh meshes[] = {
    {"one rank", 1, 1, 1, 1, 1, 0, false, MS_CP_ALL_GATHER, "meshsim"},
    {"tp 2, dp 2, ZeRO-3", 2, 2, 1, 1, 1, 3, false, MS_CP_ALL_GATHER, "meshsim"},
    {"cp 2, pp 2", 1, 1, 2, 2, 1, 0, false, MS_CP_ALL_GATHER, "meshsim"},
    {"ring cp 4", 1, 1, 4, 1, 1, 0, false, MS_CP_RING, "meshsim"},
    {"ulysses cp 2", 1, 1, 2, 1, 1, 0, false, MS_CP_ULYSSES, "meshsim"},
    {"scores kept", 2, 2, 1, 1, 1, 0, false, MS_CP_ALL_GATHER, "megatron-2022"},
    {"dp 4, recomputed", 4, 1, 1, 1, 1, 1, true, MS_CP_ALL_GATHER, "meshsim"},
    {"dp 2, tp 2, ep 2", 2, 2, 1, 1, 2, 0, false, MS_CP_ALL_GATHER, "meshsim"}};

static ms_outcome run(ms_ctx *cx, const oracle *o, const mesh *m, ms_real_type type)
{
    ms_outcome out;
    ms_plan plan = ms_run_base_plan();
    plan.gpus = m->dp_shard * m->tp * m->cp * m->pp;
    plan.size[MS_DP_SHARD] = m->dp_shard;
    plan.size[MS_TP] = m->tp;
    plan.size[MS_CP] = m->cp;
    plan.size[MS_PP] = m->pp;
    plan.ep = o->model->moe.num_experts > 0 ? m->ep : 1;
    plan.zero = (int)m->zero;
    plan.cp_method = m->cp_method;
    plan.recompute = m->recompute ? MS_RECOMPUTE_FULL : MS_RECOMPUTE_NONE;
    plan.sequence_length = MS_TORCH_SEQUENCE;
    plan.global_batch = MS_TORCH_BATCH;
    plan.microbatch = plan.gpus == 1 ? MS_TORCH_BATCH : 1;
    plan.compute = type == MS_REAL_FP64 ? MS_FP64 : MS_FP32;
    ms_runner_options options = ms_run_options(o->model, &plan, type);
    options.num_steps = NUM_STEPS;
    options.clip_norm = 0.0;
    options.initial = ms_torch_initial;
    options.tokens.seed = MS_TORCH_SEED;
    ASSERT_INT(ms_plan_check(cx, &plan, o->model, MS_NOWHERE), MS_OK);
    ASSERT_OK(
        ms_run_plan(cx, o->model, &plan, m->stack, &ms_backend_loop, &options, &out), cx);
    ASSERT_INT(out.steps_done, NUM_STEPS);
    return out;
}

/* Largest relative difference of the losses of all steps. */
static double loss_difference(const ms_outcome *got, const oracle *o)
{
    double most = 0.0;
    for (int i = 0; i < NUM_STEPS; i++)
        most = fmax(most, fabs(got->losses[i] / o->losses[i] - 1.0));
    return most;
}

static void compare(const char *name, const mesh *m, ms_real_type type)
{
    ms_ctx *cx = test_cx();
    oracle o = load(cx, name);
    ms_outcome got = run(cx, &o, m, type);
    bool fp64 = type == MS_REAL_FP64;
    const char *worst = "";
    double off = ms_torch_difference(&got.gradients, &o.results, &worst),
           loss = loss_difference(&got, &o);
    printf("%s, %s, %s: losses %.1e, gradient of %s %.1e\n", name, m->name,
           fp64 ? "fp64" : "fp32", loss, worst, off);
    if (!(off <= (fp64 ? 1e-12 : 1e-5)))
        fail_msg("%s, %s: gradient of %s differs by %g", name, m->name, worst, off);
    if (!(loss <= (fp64 ? 1e-12 : 1e-5)))
        fail_msg("%s, %s: losses differ by %g", name, m->name, loss);
}

static void losses_and_gradients_are_those_of_pytorch(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM_MODELS; i++) {
        compare(names[i], &meshes[0], MS_REAL_FP64);
        compare(names[i], &meshes[0], MS_REAL_FP32);
    }
}

static void so_are_those_of_all_meshes(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM_MODELS; i++)
        for (size_t m = 1; m < sizeof meshes / sizeof *meshes; m++)
            compare(names[i], &meshes[m], MS_REAL_FP64);
}

#define MEMBER(name) offsetof(ms_model, name), sizeof((ms_model *)0)->name

/* A model without one of its features gives other losses: none is without effect. */
static void every_feature_matters(void **state)
{
    (void)state;
    static const struct {
        int model; /* index into `names` */
        size_t offset, size;
    } cases[] = {{0, MEMBER(norm_plus_one)},
                 {0, MEMBER(embedding_scale)},
                 {0, MEMBER(query_pre_attn_scalar)},
                 {0, MEMBER(attention_softcap)},
                 {0, MEMBER(logit_softcap)},
                 {1, MEMBER(rotary_local_base)},
                 {1, MEMBER(rotary_scaling)},
                 {2, MEMBER(rotary_scaling)},
                 {3, MEMBER(rotary_scaling)},
                 {4, MEMBER(moe.num_groups)},
                 {4, MEMBER(moe.routed_scaling)},
                 {5, MEMBER(rotary_interleaved)},
                 {5, MEMBER(rotary_scaling.mscale_all_dim)},
                 {5, MEMBER(moe.norm_topk)},
                 {6, MEMBER(rotary_dim)}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        oracle o = load(cx, names[cases[i].model]);
        ms_model model = *o.model;
        memset((char *)&model + cases[i].offset, 0, cases[i].size);
        o.model = &model;
        ms_outcome got = run(cx, &o, &meshes[0], MS_REAL_FP64);
        double off = loss_difference(&got, &o);
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
