/* Configurations of DeepSpeed in JSON: syntax, the batch's three figures, errors. */
#include "tests/support/settings_text.h"
#include "tests/test.h"

#include "costmodel/port/json_settings.h"

static void settings_have_dotted_keys(void **state)
{
    (void)state;
    ASSERT_TEXT(settings_text(ms_json_settings_read, "ds.json",
                              "{\"a\": {\"b\": 5e8, \"c\": null, \"d\": [1, 2]},\n"
                              " \"_note\": 1, \"e\": \"auto\", \"f\": true}"),
                "a.b=500000000\na.d=[2 items]\ne=auto\nf=true");
}

static void malformed_files_are_refused(void **state)
{
    (void)state;
    expect_refused(ms_json_settings_read, "ds.json", "[1]", "an object is expected");
    expect_refused(ms_json_settings_read, "ds.json", "{\"a\": 1,\n \"a\": 2}",
                   "key \"a\" stands twice");
    expect_refused(ms_json_settings_read, "ds.json", "{\"a.b\": 1, \"a\": {\"b\": 2}}",
                   "a.b stands twice");
    expect_refused(ms_json_settings_read, "ds.json", "{\"a\": }", "ds.json:1:");
}

static ms_status import(ms_ctx *cx, const char *text, ms_port_imported *got)
{
    const ms_port_format *format;
    ms_port_import_options options = {.name = "ds.json", .model = "8b", .gpus = 16};
    ASSERT_OK(ms_port_format_find(cx, "deepspeed", &format), cx);
    return ms_port_import(cx, format, text, strlen(text), &options, got);
}

static void two_of_three_figures_give_the_batch(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"train_batch_size\": 256, \"train_micro_batch_size_per_gpu\": 4}",
        "{\"train_batch_size\": 256, \"gradient_accumulation_steps\": 4}",
        "{\"train_micro_batch_size_per_gpu\": 4, \"gradient_accumulation_steps\": 4}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ms_ctx *cx = test_cx();
        ms_port_imported got;
        ASSERT_OK(import(cx, texts[i], &got), cx);
        ASSERT_INT(got.plan.global_batch, 256);
        ASSERT_INT(got.plan.microbatch, 4);
    }
}

/* AutoTP counts tensor-parallel ranks as data ranks. */
static void tensor_ranks_count_in_the_batch(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_port_imported got;
    ASSERT_OK(import(cx,
                     "{\"train_batch_size\": 64, \"gradient_accumulation_steps\": 2,"
                     " \"tensor_parallel\": {\"autotp_size\": 4}}",
                     &got),
              cx);
    ASSERT_INT(got.plan.size[MS_TP], 4);
    ASSERT_INT(got.plan.microbatch, 2);
    ASSERT_INT(got.plan.global_batch, 16);
}

static void refuse(const char *text, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_port_imported got;
    ASSERT_INT(import(cx, text, &got), MS_EINPUT);
    if (strstr(test_messages(cx), message) == NULL)
        fail_msg("\"%s\" is not in %s", message, test_messages(cx));
}

static void wrong_values_are_refused(void **state)
{
    (void)state;
    refuse("{\"train_batch_size\": 100, \"train_micro_batch_size_per_gpu\": 4}",
           "ds.json:1:22: error: train_batch_size: 100 is not micro-batch 4 x 1 steps");
    refuse("{\"train_batch_size\": \"auto\"}", "is known only when the script runs");
    refuse("{\"gradient_accumulation_steps\": 2}", "train_micro_batch_size_per_gpu");
    refuse("{\"train_batch_size\": 16, \"bf16\": {\"enabled\": true},"
           " \"fp16\": {\"enabled\": true}}",
           "bf16 or fp16, not both");
    refuse("{\"train_batch_size\": 16,"
           " \"zero_optimization\": {\"offload_param\": {\"device\": \"nvme\"}}}",
           "no value that a plan can have");
    refuse("{\"train_batch_size\": 16, \"zero_optimization\": {\"stages\": 3}}",
           "did you mean zero_optimization.stage");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_have_dotted_keys),
        cmocka_unit_test(malformed_files_are_refused),
        cmocka_unit_test(two_of_three_figures_give_the_batch),
        cmocka_unit_test(tensor_ranks_count_in_the_batch),
        cmocka_unit_test(wrong_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
