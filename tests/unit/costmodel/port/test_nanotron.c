/* Configurations of nanotron in YAML: syntax, meanings, errors with their places. */
#include "tests/support/settings_text.h"
#include "tests/test.h"

#include "costmodel/port/yaml.h"

static const char *settings_of(const char *text)
{
    return settings_text(ms_yaml_read, "job.yaml", text);
}

static void settings_have_dotted_keys(void **state)
{
    (void)state;
    ASSERT_TEXT(settings_of("a: 1 # b\nc:\n  d: 'e f'\n  g: {h: null, i: 'null'}"),
                "a=1\nc.d=e f\nc.g.i=null");
    ASSERT_TEXT(settings_of("a: [1, 2]\nb:\n- c: 3\n- d"),
                "a=[2 items]\nb.0.c=3\nb=[2 items]");
    ASSERT_TEXT(settings_of(""), "");
}

static void refuse(const char *text, const char *message)
{
    expect_refused(ms_yaml_read, "job.yaml", text, message);
}

static void malformed_files_are_refused(void **state)
{
    (void)state;
    refuse("a: &x 1\nb: *x", "job.yaml:2:4: error: aliases are not read");
    refuse("a: 1\n---\nb: 2", "only one document");
    refuse("a: 1\nb: 2\na: 3", "job.yaml:3:4: error: a stands twice");
    refuse("a:\n  b: 1\nc: 2\na:\n  d: 1", "job.yaml:5:3: error: a stands twice");
    refuse("'': [1]", "job.yaml:1:1: error: a key is empty");
    refuse("- a", "job.yaml:1:1: error: a mapping is expected");
    refuse("a", "a mapping is expected");
    refuse("? [a]\n: b", "a key is expected");
    refuse("a: [1", "job.yaml:");
    refuse("a: b: c", "job.yaml:1:5: error: ");
}

static void settings_are_written_as_they_are_read(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_port_setting rows[] = {{.key = "a.b.c", .value = "1"},
                              {.key = "a.b.d", .value = "x"},
                              {.key = "a.e", .value = "2e-05"},
                              {.key = "f.g"},
                              {.key = "a.b.h", .value = "3"}};
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_yaml_write(file, cx->arena, &(ms_port_settings){.rows = rows, .num = 5});
    const char *text = test_read_back(cx->arena, file);
    ASSERT_TEXT(text,
                "a:\n  b:\n    c: 1\n    d: x\n    h: 3\n  e: 2.0e-05\nf:\n  g: true\n");
    ASSERT_TEXT(settings_of(text), "a.b.c=1\na.b.d=x\na.b.h=3\na.e=2.0e-05\nf.g=true");
}

static void framework_defaults_are_taken(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_port_format *format;
    ms_port_imported got;
    ms_port_import_options options = {.name = "job.yaml", .model = "8b"};
    static const char text[] = "parallelism: {dp: 4, pp: 2, tp: 8}\n"
                               "optimizer: {zero_stage: 3}\n"
                               "tokens: {sequence_length: 4096, micro_batch_size: 2}\n";
    ASSERT_OK(ms_port_format_find(cx, "nanotron", &format), cx);
    ASSERT_OK(ms_port_import(cx, format, text, sizeof text - 1, &options, &got), cx);
    ASSERT_INT(got.plan.gpus, 64);
    ASSERT_INT(got.plan.schedule, MS_GPIPE);
    ASSERT_INT(got.plan.zero, 1);
    ASSERT_INT(got.plan.global_batch, 8);
    assert_false(got.plan.sequence_parallel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_have_dotted_keys),
        cmocka_unit_test(malformed_files_are_refused),
        cmocka_unit_test(settings_are_written_as_they_are_read),
        cmocka_unit_test(framework_defaults_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
