/* Tests against PyTorch's results (tests/oracle/torch/make_oracle.py): the same generated
 * weights and tokens, and the same loss and gradients of a step. */
#include "exec/params/names.h"
#include "exec/params/tokens.h"

#include "tests/support/program_cases.h"
#include "tests/support/run_plan.h"
#include "tests/support/torch_oracle.h"
#include "tests/test.h"

static ms_torch_oracle load(ms_ctx *cx, const char *name)
{
    ms_torch_oracle oracle = {0};
    ASSERT_OK(ms_torch_oracle_load(cx, name, &oracle), cx);
    return oracle;
}

/* ---- weights ---- */

/* Adds the Hugging Face tensors (one per expert) that hold a weight of a program to
 * `file`. */
static void add_weight(ms_arena *arena, ms_safe_file *file, const ms_weight_name *as,
                       long num_experts)
{
    for (long expert = 0; expert < num_experts; expert++) {
        char name[MS_NAME_TEXT];
        ms_weight_name_text(as, expert, name);
        if (ms_safe_find(file, name) != NULL)
            continue;
        ms_safe_tensor *tensor = &file->tensors[file->num_tensors++];
        tensor->name = ms_arena_strdup(arena, name);
        tensor->num_dims = as->num_dims;
        tensor->count = as->count;
        memcpy(tensor->shape, as->shape, sizeof tensor->shape);
        double *values = MS_NEW_ARRAY(arena, as->count, double);
        uint64_t key = ms_initial_key(&ms_torch_initial, name);
        for (long i = 0; i < as->count; i++)
            values[i] =
                ms_initial_value(&ms_torch_initial, key, i, as->is_norm, as->is_bias);
        tensor->values = values;
    }
}

static ms_safe_file all_weights(ms_arena *arena, const ms_model *model)
{
    ms_safe_file file = {.tensors = MS_NEW_ARRAY(arena, 256, ms_safe_tensor)};
    for (int part = 0; part < MS_NUM_BLOCK_KINDS; part++) {
        ms_program_key key = ms_case_whole_key((ms_block_kind)part);
        const ms_program *program = ms_case_program(arena, model, &key, 1);
        long num_layers = part == MS_BLOCK_LAYER ? model->num_layers : 1;
        for (long layer = 0; layer < num_layers; layer++)
            for (int t = 0; t < program->num_tensors; t++) {
                if (program->tensors[t].role != MS_ROLE_WEIGHT)
                    continue;
                ms_weight_name as;
                ms_weight_name_of(program, t, layer, &as);
                add_weight(arena, &file, &as,
                           as.expert_dim < 0 ? 1 : model->moe.num_experts);
            }
    }
    return file;
}

static void initial_weights_are_those_of_the_script(void **state)
{
    (void)state;
    for (int i = 0; ms_torch_models[i] != NULL; i++) {
        ms_ctx *cx = test_cx();
        ms_torch_oracle oracle = load(cx, ms_torch_models[i]);
        ms_safe_file ours = all_weights(cx->arena, oracle.model);
        const char *worst;
        double off = ms_torch_difference(&ours, &oracle.weights, &worst);
        if (!(off <= 1e-12))
            fail_msg("%s: %s differs by %g", ms_torch_models[i], worst, off);
    }
}

/* ---- tokens ---- */

static void tokens_are_those_of_the_script(void **state)
{
    (void)state;
    for (int i = 0; ms_torch_models[i] != NULL; i++) {
        ms_ctx *cx = test_cx();
        ms_torch_oracle oracle = load(cx, ms_torch_models[i]);
        ms_tokens tokens = ms_torch_tokens(&oracle);
        const ms_safe_tensor *want[] = {ms_safe_find(&oracle.batch, "input_ids"),
                                        ms_safe_find(&oracle.batch, "labels")};
        assert_true(want[0] != NULL && want[1] != NULL);
        ASSERT_INT(want[0]->count, MS_TORCH_BATCH * MS_TORCH_SEQUENCE);
        for (long s = 0; s < MS_TORCH_BATCH; s++) {
            int got[2][MS_TORCH_SEQUENCE];
            ms_tokens_sequence(&tokens, 0, s, got[0], got[1]);
            for (long k = 0; k < 2 * MS_TORCH_SEQUENCE; k++)
                ASSERT_INT(got[k % 2][k / 2],
                           want[k % 2]->values[s * MS_TORCH_SEQUENCE + k / 2]);
        }
    }
}

/* ---- gradients ---- */

static void every_weight_has_a_gradient(void **state)
{
    (void)state;
    for (int i = 0; ms_torch_models[i] != NULL; i++) {
        ms_torch_oracle oracle = load(test_cx(), ms_torch_models[i]);
        ASSERT_INT(oracle.gradients.num_tensors, oracle.weights.num_tensors);
        for (int t = 0; t < oracle.weights.num_tensors; t++) {
            const ms_safe_tensor *weight = &oracle.weights.tensors[t];
            const ms_safe_tensor *gradient =
                ms_safe_find(&oracle.gradients, weight->name);
            assert_non_null(gradient);
            ASSERT_INT(gradient->count, weight->count);
            double squares = 0.0;
            for (long k = 0; k < gradient->count; k++)
                squares += gradient->values[k] * gradient->values[k];
            assert_true(squares > 0.0);
        }
        ASSERT_NEAR(oracle.loss_fp32, oracle.loss, 1e-6);
        /* log(vocabulary of 64): loss of an untrained model */
        assert_true(fabs(oracle.loss - log(64.0)) < 1.0);
    }
}

/* Trains on one rank, or if `parallel` on tp 2 x dp_shard 2 with ZeRO-3. */
static ms_outcome run(ms_ctx *cx, const ms_torch_oracle *oracle, bool parallel,
                      ms_real_type type)
{
    ms_outcome out;
    ms_plan plan = ms_run_base_plan();
    plan.sequence_length = MS_TORCH_SEQUENCE;
    plan.global_batch = plan.microbatch = MS_TORCH_BATCH;
    plan.compute = type == MS_REAL_FP64 ? MS_FP64 : MS_FP32;
    if (parallel) {
        plan.gpus = 4;
        plan.size[MS_TP] = plan.size[MS_DP_SHARD] = 2;
        plan.zero = 3;
        plan.microbatch = 1;
    }
    ms_runner_options options = ms_run_options(oracle->model, &plan, type);
    options.initial = ms_torch_initial;
    options.tokens = ms_torch_tokens(oracle);
    ASSERT_OK(ms_run_plan(cx, oracle->model, &plan, "meshsim", &ms_backend_loop, &options,
                          &out),
              cx);
    return out;
}

static void the_runner_calculates_what_pytorch_does(void **state)
{
    (void)state;
    for (int i = 0; ms_torch_models[i] != NULL; i++) {
        for (int way = 0; way < 4; way++) {
            bool fp64 = way / 2 == 1;
            ms_ctx *cx = test_cx();
            ms_torch_oracle oracle = load(cx, ms_torch_models[i]);
            ms_outcome got =
                run(cx, &oracle, way % 2 == 1, fp64 ? MS_REAL_FP64 : MS_REAL_FP32);
            const char *worst = "";
            double off = ms_torch_difference(&got.gradients, &oracle.gradients, &worst);
            ASSERT_NEAR(got.losses[0], oracle.loss, fp64 ? 1e-7 : 1e-6);
            /* gradients are kept in fp32 even in fp64 runs */
            if (!(off <= (fp64 ? 1e-6 : 1e-5)))
                fail_msg("%s: gradient of %s differs by %g", ms_torch_models[i], worst,
                         off);
        }
    }
}

static void differences_are_found(void **state)
{
    (void)state;
    ms_torch_oracle oracle = load(test_cx(), "tiny-llama");
    ms_torch_oracle other = load(test_cx(), "tiny-llama");
    const char *worst;
    ASSERT_NEAR(ms_torch_difference(&other.gradients, &oracle.gradients, &worst), 0.0,
                0.0);
    ms_safe_tensor *changed = &other.gradients.tensors[3];
    double *values = (double *)(uintptr_t)changed->values, largest = 0.0;
    for (long k = 0; k < changed->count; k++)
        largest = fmax(largest, fabs(values[k]));
    values[1] += 1e-3 * largest;
    ASSERT_NEAR(ms_torch_difference(&other.gradients, &oracle.gradients, &worst), 1e-3,
                1e-9);
    ASSERT_TEXT(worst, changed->name);
    changed->name = "renamed";
    assert_true(isinf(ms_torch_difference(&other.gradients, &oracle.gradients, &worst)));
    ASSERT_TEXT(worst, "renamed");
    other.gradients.num_tensors--;
    assert_true(isinf(ms_torch_difference(&other.gradients, &oracle.gradients, &worst)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initial_weights_are_those_of_the_script),
        cmocka_unit_test(tokens_are_those_of_the_script),
        cmocka_unit_test(every_weight_has_a_gradient),
        cmocka_unit_test(the_runner_calculates_what_pytorch_does),
        cmocka_unit_test(differences_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
