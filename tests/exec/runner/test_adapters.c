/* Training of adapters (LoRA) on the loop backend: beside every kind of frozen weight, and
 * from files with and without adapters. */
#include "tests/support/torch_features.h"
#include "tests/test.h"

/* A plan with adapters of rank 4; `mesh` NULL: one rank. */
static ms_plan plan_of(const ms_feature_mesh *mesh, const char *targets)
{
    ms_plan plan = ms_run_base_plan();
    plan.compute = MS_FP64;
    plan.sequence_length = MS_TORCH_SEQUENCE;
    plan.global_batch = plan.microbatch = MS_TORCH_BATCH;
    plan.lora_rank = targets != NULL ? 4 : 0;
    plan.lora_targets = targets;
    if (mesh == NULL)
        return plan;
    plan.size[MS_DP_SHARD] = mesh->dp_shard;
    plan.size[MS_TP] = mesh->tp;
    plan.gpus = mesh->dp_shard * mesh->tp;
    plan.zero = (int)mesh->zero;
    plan.microbatch = 1;
    return plan;
}

/* Trains two steps from `load` (NULL: random weights). */
static ms_status run(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                     const ms_safe_file *load, ms_outcome *out)
{
    ms_runner_options options = ms_run_options(model, plan, MS_REAL_FP64);
    options.num_steps = 2;
    options.load = load;
    options.wants_weights = true;
    ASSERT_OK(ms_plan_check(cx, plan, model, MS_NOWHERE), cx);
    return ms_run_plan(cx, model, plan, "meshsim", &ms_backend_loop, &options, out);
}

static ms_outcome trained(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                          const ms_safe_file *load)
{
    ms_outcome out;
    ASSERT_OK(run(cx, model, plan, load, &out), cx);
    return out;
}

/* ---- every kind of frozen weight ---- */

static void check_sharded(ms_ctx *cx, const ms_model *model, const ms_feature_mesh *mesh,
                          const char *targets)
{
    ms_plan serial = plan_of(NULL, targets), sharded = plan_of(mesh, targets);
    ms_outcome want = trained(cx, model, &serial, NULL),
               got = trained(cx, model, &sharded, NULL);
    const char *worst = "";
    double off = ms_run_difference(&got.gradients, &want.gradients, &worst),
           updated = ms_run_difference(&got.updated, &want.updated, NULL);
    if (!(off <= 1e-12 && updated <= 1e-12))
        fail_msg("%s, adapters of %s: gradient of %s differs by %g, weights by %g",
                 model->name, targets, worst, off, updated);
    assert_true(ms_run_difference(&got.updated, &got.weights, NULL) > 1e-6);
}

static void sharded_adapters_of_every_model_equal_those_of_one_rank(void **state)
{
    (void)state;
    static const ms_feature_mesh mesh = {
        "tp 2, dp 2, ZeRO-3", 2, 2, 1, 1, 1, 3, false, MS_CP_ALL_GATHER, "meshsim"};
    int num = 0;
    for (int i = 0; ms_feature_models[i] != NULL; i++) {
        ms_ctx *cx = test_cx();
        ms_feature_oracle o = ms_feature_oracle_load(cx, ms_feature_models[i]);
        if (!ms_feature_can(&o, &mesh, &ms_backend_loop) ||
            o.model->num_nextn_predict_layers > 0)
            continue;
        check_sharded(cx, o.model, &mesh, "attention");
        if (o.model->moe.num_experts == 0)
            check_sharded(cx, o.model, &mesh, "all");
        num++;
    }
    assert_true(num >= 30);
}

/* ---- files ---- */

static bool is_of(const ms_safe_tensor *tensor, const char *part)
{
    return strstr(tensor->name, part) != NULL;
}

/* A base of weights without adapters starts with its own loss: A as drawn without a file,
 * B 0. */
static void a_base_gets_adapters_without_effect(void **state)
{
    (void)state;
    static const ms_feature_mesh mesh = {
        "tp 2, dp 2, ZeRO-3", 2, 2, 1, 1, 1, 3, false, MS_CP_ALL_GATHER, "meshsim"};
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_plan plain = plan_of(NULL, NULL), adapted = plan_of(&mesh, "all");
    ms_outcome base = trained(cx, model, &plain, NULL),
               drawn = trained(cx, model, &adapted, NULL),
               got = trained(cx, model, &adapted, &base.weights);
    int num = 0;
    ASSERT_NEAR(got.losses[0], base.losses[0], 1e-12);
    for (int i = 0; i < got.weights.num_tensors; i++) {
        const ms_safe_tensor *tensor = &got.weights.tensors[i],
                             *other = ms_safe_find(&drawn.weights, tensor->name);
        num += is_of(tensor, ".lora_");
        for (long j = 0; j < tensor->count; j++)
            assert_true(tensor->values[j] ==
                        (is_of(tensor, ".lora_b.") ? 0.0 : other->values[j]));
    }
    ASSERT_INT(got.loaded.num_drawn, num);
    ASSERT_INT(got.loaded.num_unread, 0);
    assert_true(num > 0);
}

static void check_refused(const ms_model *model, const ms_plan *plan,
                          const ms_safe_file *load, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_outcome out;
    ASSERT_INT(run(cx, model, plan, load, &out), MS_EINPUT);
    const char *got = test_messages(cx);
    if (strstr(got, message) == NULL)
        fail_msg("not \"%s\": %s", message, got);
}

static void adapters_that_fit_in_part_are_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_plan plain = plan_of(NULL, NULL), two = plan_of(NULL, "q,v"),
            one = plan_of(NULL, "q");
    ms_safe_file weights = trained(cx, model, &two, NULL).weights;
    check_refused(model, &plain, &weights, "query.lora_a.weight\", which the run does");
    check_refused(model, &one, &weights, "value.lora_a.weight\", which the run does");
    ms_safe_file of_one = trained(cx, model, &one, NULL).weights;
    check_refused(model, &two, &of_one, "8 of the run's 16 tensors of adapters, and no");
    ms_outcome again = trained(cx, model, &two, &weights);
    ASSERT_INT(again.loaded.num_drawn, 0);
}

static void unread_tensors_are_counted(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_plan plain = plan_of(NULL, NULL);
    ms_safe_file file = trained(cx, model, &plain, NULL).weights;
    ms_safe_tensor *tensors =
        MS_NEW_ARRAY(cx->arena, file.num_tensors + 2, ms_safe_tensor);
    memcpy(tensors, file.tensors, (size_t)file.num_tensors * sizeof *tensors);
    for (int i = 0; i < 2; i++) {
        tensors[file.num_tensors + i] = file.tensors[0];
        tensors[file.num_tensors + i].name = i == 0 ? "model.inv_freq" : "model.other";
    }
    file = (ms_safe_file){file.num_tensors + 2, tensors};
    ms_outcome got = trained(cx, model, &plain, &file);
    ASSERT_INT(got.loaded.num_unread, 2);
    assert_string_equal(got.loaded.first_unread, "model.inv_freq");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharded_adapters_of_every_model_equal_those_of_one_rank),
        cmocka_unit_test(a_base_gets_adapters_without_effect),
        cmocka_unit_test(adapters_that_fit_in_part_are_refused),
        cmocka_unit_test(unread_tensors_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
