/* Losses of modules of multi-token prediction: what is minimized is theirs and the model's,
 * and they are those of one rank on any mesh. */
#include "tests/support/torch_features.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

static const char *const models[] = {"features/deepseek-v3-mtp", "features/two-ahead"};

/* The loss whose gradients training follows, of one step from these weights. */
static double minimized(const ms_feature_oracle *o, const ms_safe_file *load,
                        ms_outcome *out)
{
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_run_base_plan();
    plan.sequence_length = MS_TORCH_SEQUENCE;
    plan.global_batch = plan.microbatch = MS_TORCH_BATCH;
    plan.compute = MS_FP64;
    ms_runner_options options = ms_run_options(o->model, &plan, MS_REAL_FP64);
    options.num_steps = 1;
    options.clip_norm = 0.0;
    options.initial = ms_torch_initial;
    options.tokens.seed = MS_TORCH_SEED;
    options.load = load;
    ASSERT_OK(
        ms_run_plan(cx, o->model, &plan, "meshsim", &ms_backend_loop, &options, out), cx);
    ASSERT_INT(out->num_modules, o->model->num_nextn_predict_layers);
    double sum = 0.0;
    for (int i = 0; i < out->num_modules; i++)
        sum += out->module_losses[i];
    return out->losses[0] + o->model->nextn_loss_weight * sum / out->num_modules;
}

/* Slope of the minimized loss along an element of a weight. */
static double slope_of(const ms_feature_oracle *o, const ms_safe_file *weights,
                       int tensor, long element)
{
    const double step = 1e-5;
    ms_arena *arena = test_cx()->arena;
    ms_safe_tensor *tensors = MS_NEW_ARRAY(arena, weights->num_tensors, ms_safe_tensor);
    memcpy(tensors, weights->tensors, (size_t)weights->num_tensors * sizeof *tensors);
    size_t bytes = (size_t)tensors[tensor].count * sizeof(double);
    double *values = memcpy(ms_arena_alloc(arena, bytes), tensors[tensor].values, bytes);
    const ms_safe_file moved = {weights->num_tensors, tensors};
    tensors[tensor].values = values;
    ms_outcome out;
    values[element] += step;
    double above = minimized(o, &moved, &out);
    values[element] -= 2.0 * step;
    return (above - minimized(o, &moved, &out)) / (2.0 * step);
}

static long largest_of(const ms_safe_tensor *tensor)
{
    long at = 0;
    for (long i = 0; i < tensor->count; i++)
        if (fabs(tensor->values[i]) > fabs(tensor->values[at]))
            at = i;
    return at;
}

/* Differences of losses on both sides of a weight, of a layer and of every module, are
 * PyTorch's gradients. */
static void gradients_are_those_of_all_losses(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        ms_feature_oracle o = ms_feature_oracle_load(test_cx(), models[m]);
        ms_outcome out;
        (void)minimized(&o, NULL, &out);
        int num = 0;
        for (int t = 0; t < out.weights.num_tensors; t++) {
            const ms_safe_tensor *weight = &out.weights.tensors[t];
            const ms_safe_tensor *want = ms_safe_find(&o.gradients, weight->name);
            if (want == NULL || (strstr(weight->name, "eh_proj") == NULL &&
                                 strstr(weight->name, "layers.0.self_attn") == NULL))
                continue;
            long at = largest_of(want);
            double slope = slope_of(&o, &out.weights, t, at);
            if (!(fabs(slope - want->values[at]) <= 1e-6 * fabs(slope) + 1e-9))
                fail_msg("%s: gradient %.9g, losses differ by %.9g", weight->name,
                         want->values[at], slope);
            num++;
        }
        assert_true(num > out.num_modules);
    }
}

static void any_mesh_has_the_losses_of_one_rank(void **state)
{
    (void)state;
    static const ms_feature_mesh meshes[] = {
        {"tp 2, dp 2, ZeRO-3", 2, 2, 1, 1, 1, 3, false, MS_CP_ALL_GATHER, "meshsim"},
        {"cp 2, pp 2", 1, 1, 2, 2, 1, 0, false, MS_CP_ALL_GATHER, "meshsim"},
        {"dp 4, recomputed", 4, 1, 1, 1, 1, 1, true, MS_CP_ALL_GATHER, "meshsim"},
        {"dp 2, tp 2, ep 2", 2, 2, 1, 1, 2, 0, false, MS_CP_ALL_GATHER, "meshsim"}};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        ms_ctx *cx = test_cx();
        ms_feature_oracle o = ms_feature_oracle_load(cx, models[m]);
        ms_outcome want =
            ms_feature_run(cx, &o, &ms_feature_one_rank, MS_REAL_FP64, &ms_backend_loop);
        for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
            ms_outcome got =
                ms_feature_run(cx, &o, &meshes[i], MS_REAL_FP64, &ms_backend_loop);
            ASSERT_INT(got.num_modules, want.num_modules);
            double worst = 0.0;
            for (int k = 0; k < MS_FEATURE_STEPS * want.num_modules; k++)
                worst =
                    fmax(worst, fabs(got.module_losses[k] / want.module_losses[k] - 1.0));
            printf("%s, %s: %.1e\n", o.model->name, meshes[i].name, worst);
            assert_true(worst <= 1e-12);
        }
        for (int k = 0; k < want.num_modules; k++) /* near the log of equal chances */
            assert_true(fabs(want.module_losses[k] / log((double)o.model->vocab) - 1.0) <
                        0.3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_all_losses),
        cmocka_unit_test(any_mesh_has_the_losses_of_one_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
