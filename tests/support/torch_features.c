#include "tests/support/torch_features.h"

#include "tests/test.h"

const char *const ms_feature_models[] = {"features/gemma-2",
                                         "features/gemma-3",
                                         "features/llama-3.1",
                                         "features/qwen-yarn",
                                         "features/deepseek-v2",
                                         "features/deepseek-v3",
                                         "features/neox",
                                         "features/glm",
                                         "architectures/bloom",
                                         "architectures/gpt2",
                                         "architectures/opt",
                                         "architectures/mpt",
                                         "architectures/baichuan-13b",
                                         "architectures/falcon-7b",
                                         "architectures/falcon-40b",
                                         "architectures/gpt-j",
                                         "architectures/phi-2",
                                         "architectures/stablelm-2",
                                         "architectures/mistral",
                                         "architectures/qwen2",
                                         "architectures/qwen3",
                                         "architectures/mixtral",
                                         "architectures/qwen2-moe",
                                         "architectures/qwen3-moe",
                                         "architectures/starcoder2",
                                         "architectures/nemotron-4",
                                         "architectures/nemotron-h",
                                         "architectures/nemotron-nano",
                                         "features/deepseek-v3-mtp",
                                         "features/two-ahead",
                                         "architectures/olmo-2",
                                         "architectures/command-r",
                                         "architectures/gpt-oss",
                                         "features/dropout",
                                         NULL};

ms_feature_oracle ms_feature_oracle_load(ms_ctx *cx, const char *name)
{
    ms_feature_oracle o = {0};
    const char *stem = ms_arena_printf(cx->arena, "tests/data/run/%s", name);
    ASSERT_OK(ms_model_load(cx, ms_arena_printf(cx->arena, "%s.json", stem), &o.model),
              cx);
    ASSERT_OK(
        ms_safetensors_load(
            cx, ms_arena_printf(cx->arena, "%s.results.safetensors", stem), &o.gradients),
        cx);
    const ms_safe_tensor *losses = ms_safe_find(&o.gradients, "losses");
    assert_non_null(losses);
    ASSERT_INT(losses->count, MS_FEATURE_STEPS);
    o.losses = losses->values;
    long at = losses - o.gradients.tensors;
    o.gradients.num_tensors--;
    memmove(&o.gradients.tensors[at], &o.gradients.tensors[at + 1],
            (size_t)(o.gradients.num_tensors - at) * sizeof *o.gradients.tensors);
    return o;
}

const ms_feature_mesh ms_feature_one_rank = {
    "one rank", 1, 1, 1, 1, 1, 0, false, MS_CP_ALL_GATHER, "meshsim"};

bool ms_feature_can(const ms_feature_oracle *o, const ms_feature_mesh *m,
                    const ms_backend *backend)
{
    const ms_model *model = o->model;
    if (backend->on_gpu &&
        (model->attention_sinks || model->moe.expert_bias || model->dropout))
        return false;
    if (ms_model_is_hybrid(model) && (m->cp > 1 || backend->on_gpu))
        return false;
    /* stacks of published frameworks do not train modules of multi-token prediction */
    if (o->model->num_nextn_predict_layers > 0 && strcmp(m->stack, "meshsim") != 0)
        return false;
    if (model->qk_norm_whole && model->num_kv_heads % m->tp != 0)
        return false;
    bool is_split = m->cp > 1 && m->cp_method == MS_CP_ULYSSES;
    return !is_split || o->model->num_kv_heads % (m->cp * m->tp) == 0;
}

ms_outcome ms_feature_run(ms_ctx *cx, const ms_feature_oracle *o,
                          const ms_feature_mesh *m, ms_real_type type,
                          const ms_backend *backend)
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
    options.num_steps = MS_FEATURE_STEPS;
    options.clip_norm = 0.0;
    options.initial = ms_torch_initial;
    options.tokens.seed = MS_TORCH_SEED;
    ASSERT_INT(ms_plan_check(cx, &plan, o->model, MS_NOWHERE), MS_OK);
    ASSERT_OK(ms_run_plan(cx, o->model, &plan, m->stack, backend, &options, &out), cx);
    ASSERT_INT(out.steps_done, MS_FEATURE_STEPS);
    return out;
}

double ms_feature_loss_difference(const ms_outcome *got, const ms_feature_oracle *o)
{
    double most = 0.0;
    for (int i = 0; i < MS_FEATURE_STEPS; i++)
        most = fmax(most, fabs(got->losses[i] / o->losses[i] - 1.0));
    return most;
}

ms_feature_difference ms_feature_compare(const char *name, const ms_feature_mesh *m,
                                         ms_real_type type, const ms_backend *backend)
{
    ms_ctx *cx = test_cx();
    ms_feature_oracle o = ms_feature_oracle_load(cx, name);
    if (!ms_feature_can(&o, m, backend))
        return (ms_feature_difference){0};
    ms_outcome got = ms_feature_run(cx, &o, m, type, backend);
    bool fp64 = type == MS_REAL_FP64;
    const char *worst = "";
    double off = ms_torch_difference(&got.gradients, &o.gradients, &worst),
           loss = ms_feature_loss_difference(&got, &o);
    printf("%s, %s, %s, %s: losses %.1e, gradient of %s %.1e\n", name, m->name,
           backend->name, fp64 ? "fp64" : "fp32", loss, worst, off);
    if (!(off <= (fp64 ? 1e-12 : 1e-5)))
        fail_msg("%s, %s: gradient of %s differs by %g", name, m->name, worst, off);
    if (!(loss <= (fp64 ? 1e-12 : 1e-5)))
        fail_msg("%s, %s: losses differ by %g", name, m->name, loss);
    return (ms_feature_difference){loss, off};
}
