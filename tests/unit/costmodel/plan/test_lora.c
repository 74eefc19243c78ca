/* Adapters of plans: words, refusals, JSON, numbers of parameters, bytes of frozen
 * weights. */
#include "costmodel/plan/lora.h"

#include "costmodel/plan/plan_field.h"
#include "costmodel/plan/stack_choices.h"
#include "tests/test.h"

#include <string.h>

static void targets_are_lists_of_words(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int targets;
    } cases[] = {
        {"all", MS_LORA_ATTENTION | MS_LORA_MLP},
        {"attention", MS_LORA_ATTENTION},
        {"q,v", MS_LORA_QUERY | MS_LORA_VALUE},
        {"q_proj,down_proj", MS_LORA_QUERY | MS_LORA_DOWN},
        {"linear_qkv,linear_fc2",
         MS_LORA_QUERY | MS_LORA_KEY | MS_LORA_VALUE | MS_LORA_DOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char targets = 0;
        assert_true(ms_lora_targets_parse(cases[i].text, &targets));
        ASSERT_INT(targets, cases[i].targets);
    }
    static const char *const wrong[] = {"", "q,", "query", "q v", "linear_proj_proj",
                                        ","};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        unsigned char targets = 0;
        assert_false(ms_lora_targets_parse(wrong[i], &targets));
    }
}

static const ms_model *load(ms_ctx *cx, const char *name)
{
    const ms_model *model;
    ASSERT_OK(ms_model_load(cx, name, &model), cx);
    return model;
}

/* MLPerf Training's Llama 2 70B with LoRA states 44,564,480 trainable parameters: rank 16
 * on query, key and value, which share one A, and on the output. From memory. Hugging
 * Face PEFT on Llama 2 7B, rank 8 on q_proj and v_proj, prints 4,194,304. */
static void adapters_have_the_published_parameters(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_lora attention = {.rank = 16, .targets = MS_LORA_ATTENTION};
    const ms_lora two = {.rank = 8, .targets = MS_LORA_QUERY | MS_LORA_VALUE};
    ASSERT_NEAR(ms_lora_params(load(cx, "llama-2-70b"), &attention, true), 44564480.0,
                0.0);
    ASSERT_NEAR(ms_lora_params(load(cx, "llama-2-7b"), &two, false), 4194304.0, 0.0);
}

static ms_refusal refusal_of(const ms_model *model, long rank, const char *targets)
{
    ms_plan plan = ms_plan_default(8);
    plan.size[MS_TP] = 8;
    plan.lora_rank = rank;
    plan.lora_targets = targets;
    ms_plan_fill_defaults(&plan);
    return ms_plan_refusal(&plan, model);
}

static void impossible_adapters_are_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *dense = load(cx, "70b"), *experts = load(cx, "mixtral-8x7b");
    ASSERT_INT(refusal_of(dense, 16, "all"), MS_LEGAL);
    ASSERT_INT(refusal_of(dense, 12, "all"), MS_REFUSE_LORA);
    ASSERT_INT(refusal_of(dense, 16, "heads"), MS_REFUSE_LORA);
    ASSERT_INT(refusal_of(experts, 16, "attention"), MS_LEGAL);
    ASSERT_INT(refusal_of(experts, 16, "all"), MS_REFUSE_LORA);
}

static void plans_keep_their_adapters(void **state)
{
    (void)state;
    static const char text[] =
        "{\"model\": \"8b\", \"gpus\": 8, \"lora\": {\"rank\": 16, \"targets\": \"q,v\", "
        "\"base\": \"nf4\"}}";
    ms_ctx *cx = test_cx();
    ms_jdoc *doc;
    ms_jval root;
    ms_plan plan;
    ASSERT_OK(ms_json_parse(cx, "plan", text, strlen(text), &doc, &root), cx);
    ASSERT_OK(ms_plan_read(cx, root, &plan), cx);
    const ms_lora want = {16, MS_LORA_QUERY | MS_LORA_VALUE, MS_BASE_NF4};
    const ms_lora got = ms_plan_lora(&plan);
    assert_memory_equal(&got, &want, sizeof want);
    ms_json_close(doc);
}

static void frozen_weights_have_the_bytes_of_their_type(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_stack *megatron;
    ASSERT_OK(ms_stack_load(cx, "megatron", &megatron), cx);
    ms_plan plan = ms_plan_default(8);
    ASSERT_NEAR(ms_stack_of_plan(megatron, &plan).frozen_param_bytes, 0.0, 0.0);
    plan.lora_rank = 16;
    ASSERT_NEAR(ms_stack_of_plan(megatron, &plan).frozen_param_bytes, 2.0, 0.0);
    plan.compute = MS_FP8;
    ASSERT_NEAR(ms_stack_of_plan(megatron, &plan).frozen_param_bytes, 1.0, 0.0);
    plan.compute = MS_BF16;
    plan.lora_base = MS_BASE_NF4;
    ASSERT_NEAR(8.0 * ms_stack_of_plan(megatron, &plan).frozen_param_bytes, 4.127, 5e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_lists_of_words),
        cmocka_unit_test(adapters_have_the_published_parameters),
        cmocka_unit_test(impossible_adapters_are_refused),
        cmocka_unit_test(plans_keep_their_adapters),
        cmocka_unit_test(frozen_weights_have_the_bytes_of_their_type)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
