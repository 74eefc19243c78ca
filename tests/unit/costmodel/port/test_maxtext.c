/* Configurations of MaxText: ranks within and between slices, batches, and what no plan
 * has, with its place. */
#include "tests/test.h"

#include "costmodel/port/port.h"

#define MODEL "model_name: llama3.1-8b\n"

static ms_status import_text(ms_ctx *cx, const char *text, long gpus,
                             ms_port_imported *got)
{
    const ms_port_format *format;
    ms_port_import_options options = {.name = "job.yml", .gpus = gpus};
    ASSERT_OK(ms_port_format_find(cx, "maxtext", &format), cx);
    return ms_port_import(cx, format, text, strlen(text), &options, got);
}

static ms_plan plan_of(const char *text, long gpus)
{
    ms_ctx *cx = test_cx();
    ms_port_imported got;
    ASSERT_OK(import_text(cx, text, gpus, &got), cx);
    return got.plan;
}

static void axes_take_the_rest(void **state)
{
    (void)state;
    ms_plan plan =
        plan_of(MODEL "dcn_data_parallelism: 2\nici_tensor_parallelism: 4", 64);
    ASSERT_INT(plan.size[MS_DP_REPLICATE], 2);
    ASSERT_INT(plan.size[MS_DP_SHARD], 8);
    ASSERT_INT(plan.size[MS_TP], 4);
    ASSERT_INT(plan.zero, 3);
    ASSERT_INT(plan.global_batch, 12 * 64);
    plan = plan_of(MODEL "ici_fsdp_parallelism: 8", 32);
    ASSERT_INT(plan.size[MS_DP_REPLICATE], 4);
    ASSERT_INT(plan.size[MS_DP_SHARD], 8);
    plan = plan_of(MODEL "ici_fsdp_parallelism: 4\nici_fsdp_transpose_parallelism: 2", 0);
    ASSERT_INT(plan.gpus, 8);
    ASSERT_INT(plan.size[MS_DP_SHARD], 8);
    plan = plan_of(MODEL "ici_fsdp_parallelism: 1\nici_data_parallelism: -1", 8);
    ASSERT_INT(plan.size[MS_DP_REPLICATE], 8);
    ASSERT_INT(plan.zero, 0);
}

/* 49 devices times the nearest number to 1/49 are less than 1. */
static void parts_of_a_sequence_make_a_whole_batch(void **state)
{
    (void)state;
    ms_plan plan = plan_of(MODEL "ici_fsdp_parallelism: 2\nici_context_parallelism: 4\n"
                                 "dcn_data_parallelism: 1\nper_device_batch_size: 0.25\n"
                                 "gradient_accumulation_steps: 3",
                           0);
    ASSERT_INT(plan.microbatch, 1);
    ASSERT_INT(plan.global_batch, 6);
    ms_ctx *cx = test_cx();
    const ms_port_format *format;
    const ms_model *model;
    ms_rule_set rules;
    const ms_stack *stack;
    ASSERT_OK(ms_port_format_find(cx, "maxtext", &format), cx);
    ASSERT_OK(ms_model_load(cx, "llama-3.1-8b", &model), cx);
    ASSERT_OK(ms_stack_load(cx, "maxtext", &stack), cx);
    ASSERT_OK(ms_rule_set_load(cx, stack, &rules), cx);
    plan.gpus = 49;
    plan.size[MS_DP_SHARD] = 1;
    plan.size[MS_CP] = 49;
    plan.global_batch = 1;
    ms_port_exported out;
    ms_port_subject subject = {&plan, model, stack, &rules, 49};
    ASSERT_OK(ms_port_export(cx, format, &subject, false, &out), cx);
    for (int i = 0; i < out.settings.num; i++)
        if (strcmp(out.settings.rows[i].key, "per_device_batch_size") == 0)
            assert_true(49.0 * strtod(out.settings.rows[i].value, NULL) >= 1.0);
}

static void refuse(const char *text, long gpus, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_port_imported got;
    ASSERT_INT(import_text(cx, text, gpus, &got), MS_EINPUT);
    char *printed = NULL;
    size_t length;
    FILE *file = open_memstream(&printed, &length);
    assert_non_null(file);
    ms_diag_print(cx, file);
    fclose(file);
    if (strstr(printed, message) == NULL)
        fail_msg("%s, without \"%s\"", printed, message);
    free(printed);
}

static void what_no_plan_has_is_refused(void **state)
{
    (void)state;
    refuse(MODEL "ici_fsdp_parallelism: 3", 8, "do not make 8 GPUs");
    refuse(MODEL "ici_data_parallelism: -1\nici_tensor_parallelism: -1\n"
                 "ici_fsdp_parallelism: 1",
           8, "job.yml:3:25: error: ici_tensor_parallelism: ici_data_parallelism takes");
    refuse(MODEL "ici_tensor_parallelism: -1", 8, "ici_fsdp_parallelism takes the rest");
    refuse(MODEL "ici_data_parallelism: -1", 8, "ici_fsdp_parallelism takes the rest");
    refuse(MODEL "ici_tensor_parallelism: 0", 8, "0 ranks");
    refuse(MODEL "ici_sequence_parallelism: 2", 8,
           "job.yml:2:27: error: ici_sequence_parallelism: no plan has this axis");
    refuse(MODEL "ici_tensor_parallelism: 2\nici_tensor_sequence_parallelism: 2", 8,
           "no plan has both");
    refuse(MODEL "ici_tensor_paralellism: 2", 8, "did you mean ici_tensor_parallelism?");
    refuse(MODEL "per_device_batch_size: 0.1", 8, "no whole micro-batches");
    refuse(MODEL "ici_pipeline_parallelism: 4\ngradient_accumulation_steps: 2", 8,
           "several flushes");
    refuse(MODEL "ici_pipeline_parallelism: 4\nnum_pipeline_repeats: 3", 8,
           "4 stages x 3 repeats x 1 layers a stage are not 32 layers");
    refuse(MODEL "remat_policy: save_qkv_proj", 8, "no policy that a plan can have");
    refuse(MODEL "remat_policy: custom\nmlpwo: device", 8, "keeps one tensor");
    refuse(MODEL "quantization: int8", 8, "nothing that a plan can have");
    refuse(MODEL "shard_optimizer_over_data: true\ndcn_data_parallelism: 2", 8,
           "states over others");
    refuse("model_name: llama9-8b", 8, "no name whose model is known");
    refuse("model_name: mixtral-8x7b\nsparse_matmul: false", 8,
           "every expert computes every token");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axes_take_the_rest),
        cmocka_unit_test(parts_of_a_sequence_make_a_whole_batch),
        cmocka_unit_test(what_no_plan_has_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
