/* Formats known by their text; models and lengths that replace those of a file. */
#include "tests/test.h"

#include "base/csv.h"
#include "costmodel/port/port.h"

static ms_csv text_of(ms_ctx *cx, const char *name)
{
    ms_csv text;
    ASSERT_OK(
        ms_csv_load(cx, ms_arena_printf(cx->arena, "tests/data/port/%s", name), &text),
        cx);
    return text;
}

static const ms_port_format *format_of(ms_ctx *cx, const char *name)
{
    ms_csv text = text_of(cx, name);
    return ms_port_format_of_text(cx->arena, text.text, text.length);
}

static void files_are_known_by_their_words(void **state)
{
    (void)state;
    static const struct {
        const char *file, *format;
    } rows[] = {{"mixtral.sh", "megatron"},
                {"arguments.txt", "megatron"},
                {"llama3_70b.toml", "torchtitan"},
                {"llama3_8b.yaml", "nanotron"},
                {"llama2_7b.yaml", "nanotron"},
                {"zero3.json", "deepspeed"},
                {"offload.json", "deepspeed"},
                {"fsdp2_hsdp.yaml", "accelerate"},
                {"accelerate_zero3.yaml", "accelerate"}};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ms_port_format *format = format_of(cx, rows[i].file);
        assert_non_null(format);
        ASSERT_TEXT(ms_port_format_name(format), rows[i].format);
    }
}

static void other_texts_are_of_no_format(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "{\"schema\": \"meshsim.plan/1\", \"microbatch\": 1}", "echo hello\n",
        "\0--num-layers 2",
        "torchrun train.py --num-layers 2 # instead of [parallelism]"};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_null(ms_port_format_of_text(cx->arena, texts[i], strlen(texts[i])));
}

static ms_status import(ms_ctx *cx, bool overrides, ms_port_imported *got)
{
    ms_csv text = text_of(cx, "mixtral.sh");
    const ms_port_format *format =
        ms_port_format_of_text(cx->arena, text.text, text.length);
    ms_port_import_options options = {.name = "mixtral.sh",
                                      .model = "qwen3-30b-a3b",
                                      .sequence_length = 8192,
                                      .overrides = overrides};
    const ms_model *model;
    MS_TRY(ms_port_import(cx, format, text.text, text.length, &options, got));
    return ms_port_find_model(cx, format, &options, got, &model);
}

static void names_override_a_file_on_request(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_port_imported got;
    ASSERT_INT(import(cx, false, &got), MS_EINPUT);
    ASSERT_OK(import(test_cx(), true, &got), cx);
    ASSERT_TEXT(got.plan.model, "qwen3-30b-a3b");
    ASSERT_INT(got.plan.sequence_length, 4096);
    ASSERT_TEXT(got.assumed.texts[got.assumed.num - 1],
                "model qwen3-30b-a3b, which differs from the file in --num-layers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_known_by_their_words),
        cmocka_unit_test(other_texts_are_of_no_format),
        cmocka_unit_test(names_override_a_file_on_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
