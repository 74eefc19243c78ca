/* Configurations of torchtitan in TOML: syntax, meanings, errors with their places. */
#include "tests/support/settings_text.h"
#include "tests/test.h"

#include "costmodel/port/toml.h"

static const char *settings_of(const char *text)
{
    return settings_text(ms_toml_read, "job.toml", text);
}

static void settings_have_dotted_keys(void **state)
{
    (void)state;
    ASSERT_TEXT(settings_of("a = 1\n[b.c] # d\ne = \"f # g\"\n\n[h]\ni=true\r\n"),
                "a=1\nb.c.e=f # g\nh.i=true");
    ASSERT_TEXT(settings_of("\"a b\".c = 'd\\n'\ne = \"x\\ty\\\\\""),
                "a b.c=d\\n\ne=x\ty\\");
    ASSERT_TEXT(settings_of("a = [1, [2, \"]\"], # b\n 3]\nc = 1_000.5e-3"),
                "a=[1, [2, \"]\"], # b\n 3]\nc=1_000.5e-3");
    ASSERT_TEXT(settings_of("[a]\nb = {c = -1, d = {e = 'f'}}"), "a.b.c=-1\na.b.d.e=f");
    ASSERT_TEXT(settings_of(""), "");
}

static void refuse(const char *text, const char *message)
{
    expect_refused(ms_toml_read, "job.toml", text, message);
}

static void malformed_files_are_refused(void **state)
{
    (void)state;
    refuse("a = 1\nb = ", "job.toml:2:5: error: a text, number");
    refuse("a = 1 2", "job.toml:1:7: error: a new line");
    refuse("a 1", "job.toml:1:3: error: \"=\"");
    refuse("[a\nb = 1", "job.toml:1:3: error: \"]\"");
    refuse("[[a]]", "arrays of tables");
    refuse("a = \"b\nc\"", "job.toml:1:7: error: this text is never closed");
    refuse("a = \"\"\"b\"\"\"", "several lines");
    refuse("a = [1, 2", "job.toml:1:10: error: ");
    refuse("a = 1\n[b]\n[b]\nc = 1\nc = 2", "job.toml:5:1: error: b.c stands twice");
    refuse("a = 2020-01-01", "job.toml:1:15: error: ");
    refuse("a = no", "a text, number");
    refuse(" = 1", "job.toml:1:2: error: a key");
}

static ms_status import_text(ms_ctx *cx, const char *text, long gpus,
                             ms_port_imported *out)
{
    const ms_port_format *format;
    ms_port_import_options options = {.name = "job.toml", .gpus = gpus};
    ASSERT_OK(ms_port_format_find(cx, "torchtitan", &format), cx);
    return ms_port_import(cx, format, text, strlen(text), &options, out);
}

#define MODEL "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"

static void ends_of_a_pipeline_give_up_layers(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_port_imported got;
    const char *text = MODEL "[parallelism]\npipeline_parallel_degree = 2\n"
                             "pipeline_parallel_schedule = \"interleaved1f1b\"\n"
                             "pipeline_parallel_layers_per_stage = 6\n"
                             "pipeline_parallel_first_stage_less_layers = 2\n";
    ASSERT_OK(import_text(cx, text, 4, &got), cx);
    ASSERT_INT(got.plan.virtual_stages, 3);
    ASSERT_INT(got.plan.num_stage_layers, 6);
    static const long want[] = {4, 6, 6, 6, 6, 4}; /* 35 = 5 * 6 + 5 */
    for (int i = 0; i < 6; i++)
        ASSERT_INT(got.plan.layers_per_stage[i], want[i]);
}

static void wrong_values_are_refused_at_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"[parallelism]\ntensor_parallel_degre = 2", "job.toml:5:1: error: "},
        {"[parallelism]\ntensor_parallel_degree = 3", "the degrees make 0 ranks, not 2"},
        {"[training]\nseq_len = 'x'", "job.toml:5:1: error: training.seq_len: \"x\""},
        {"[parallelism]\npipeline_parallel_degree = 2\n[training]\nlocal_batch_size = 2\n"
         "global_batch_size = 8",
         "several flushes"},
        {"[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = 'ZBH1'",
         "\"ZBH1\" is no value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_port_imported got;
        const char *text = ms_arena_printf(cx->arena, MODEL "%s", cases[i].text);
        ASSERT_INT(import_text(cx, text, 2, &got), MS_EINPUT);
        if (strstr(test_messages(cx), cases[i].message) == NULL)
            fail_msg("\"%s\" is not in %s", cases[i].message, test_messages(cx));
    }
}

static void unknown_flavors_need_a_model(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_port_imported got;
    ASSERT_INT(import_text(cx, "model.name = 'llama3'\nmodel.flavor = 'mine'", 2, &got),
               MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "--model NAME says which model it is"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_have_dotted_keys),
        cmocka_unit_test(malformed_files_are_refused),
        cmocka_unit_test(ends_of_a_pipeline_give_up_layers),
        cmocka_unit_test(wrong_values_are_refused_at_their_place),
        cmocka_unit_test(unknown_flavors_need_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
