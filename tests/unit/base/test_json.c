/* JSON reading: positions in error messages, field tables, limits of the text. JSON
 * writing: what is written reads back the same. */
#include "base/json.h"
#include "tests/test.h"

typedef struct device {
    const char *name;
    bool ecc;
    long sms;
    double scale;
    double memory_bytes;
    int kind;
} device;

static const char *const kinds[] = {"gpu", "cpu", NULL};
static const ms_field device_fields[] = {
    {MS_FIELD_TEXT, "name", offsetof(device, name), .required = true,
     .help = "what to call it"},
    {MS_FIELD_BOOL, "ecc", .offset = offsetof(device, ecc)},
    {MS_FIELD_INTEGER, "sms", offsetof(device, sms), .low = 1, .high = 4096,
     .nullable = true},
    {MS_FIELD_NUMBER, "scale", offsetof(device, scale), .low = 0.5, .high = 2.0},
    {MS_FIELD_QUANTITY, "memory", offsetof(device, memory_bytes), .unit = MS_UNIT_BYTES},
    {MS_FIELD_CHOICE, "kind", offsetof(device, kind), .choices = kinds},
    {MS_FIELD_ANY, "extra", .offset = 0},
    {0},
};

static ms_status parse(ms_ctx *cx, const char *text, ms_jdoc **doc, ms_jval *root)
{
    return ms_json_parse(cx, "t.json", text, strlen(text), doc, root);
}

/* The error messages from reading `text` as a device. */
static const char *complaints(const char *text, device *out)
{
    ms_ctx *cx = test_cx();
    ms_jdoc *doc;
    ms_jval root;
    if (parse(cx, text, &doc, &root) == MS_OK) {
        ms_status status = ms_json_read(cx, root, device_fields, out);
        ASSERT_INT(status == MS_OK, cx->num_errors == 0);
        ms_json_close(doc);
    }
    return test_messages(cx);
}

static void a_table_fills_the_struct(void **state)
{
    (void)state;
    device d = {.scale = 1.0, .sms = 7};
    ASSERT_TEXT(
        complaints(
            "{\"name\": \"H\\u00e9\", \"ecc\": true, \"sms\": null, \"kind\": \"cpu\","
            " \"memory\": \"80 GiB\", \"extra\": [1], \"_c\": {}, \"note\": \"n\"}",
            &d),
        "");
    ASSERT_TEXT(d.name, "H\xC3\xA9");
    assert_true(d.ecc);
    ASSERT_INT(d.sms, 7);
    ASSERT_NEAR(d.scale, 1.0, 0.0);
    ASSERT_NEAR(d.memory_bytes, 85899345920.0, 0.0);
    ASSERT_INT(d.kind, 1);
}

static void all_errors_of_an_object_are_reported(void **state)
{
    (void)state;
    device d = {0};
    ASSERT_TEXT(
        complaints("{\n  \"name\": 3,\n  \"sms\": 5000,\n  \"scale\": 0.25,\n"
                   "  \"memory\": 80,\n  \"kind\": \"gpuu\",\n  \"memroy\": 1\n}",
                   &d),
        "t.json:2:11: error: \"name\" is a number, must be a string (at /name)\n"
        "t.json:3:10: error: \"sms\" is 5000, must be between 1 and 4096 (at /sms)\n"
        "t.json:4:12: error: \"scale\" is 0.25, must be between 0.5 and 2 (at /scale)\n"
        "t.json:5:13: error: \"memory\" is a number without a unit: 80 (at /memory)\n"
        "  hint: write a string with the unit, for instance \"80 GiB\"\n"
        "t.json:6:11: error: \"kind\" is \"gpuu\", must be one of gpu, cpu (at /kind)\n"
        "  hint: did you mean \"gpu\"?\n"
        "t.json:7:3: error: unknown key \"memroy\" (at /memroy)\n"
        "  hint: did you mean \"memory\"?\n");
}

static void missing_field_points_at_the_parent(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_jdoc *doc;
    ms_jval root, inner;
    device d = {0};
    ASSERT_OK(parse(cx, "{\"a\": 1,\n \"in\": {\"sms\": 4}}", &doc, &root), cx);
    assert_true(ms_json_member(cx, root, "in", &inner));
    ASSERT_INT(ms_json_read(cx, inner, device_fields, &d), MS_EINPUT);
    ms_json_close(doc);
    ASSERT_TEXT(test_messages(cx),
                "t.json:2:8: error: field \"name\" is missing (at /in)\n"
                "  hint: name: what to call it\n");
    ASSERT_INT(d.sms, 4);
}

static void wrong_kinds_are_named(void **state)
{
    (void)state;
    device d = {0};
    ASSERT_TEXT(complaints("[]", &d), "t.json:1:1: error: an object must stand here\n");
    ASSERT_TEXT(complaints("{\"name\": null}", &d),
                "t.json:1:10: error: \"name\" is null, must be a string (at /name)\n");
    ASSERT_TEXT(complaints("{\"name\": \"\", \"sms\": 1.5}", &d),
                "t.json:1:21: error: \"sms\" is 1.5, must be a whole number (at /sms)\n");
    ASSERT_TEXT(complaints("{\"name\": \"\", \"sms\": 1e999}", &d),
                "t.json:1:21: error: \"sms\" is too large for a number (at /sms)\n");
    ASSERT_TEXT(
        complaints("{\"name\": \"\", \"note\": 1}", &d),
        "t.json:1:22: error: \"note\" is a number, must be a string (at /note)\n");
}

static void a_repeated_key_is_an_error_at_the_second(void **state)
{
    (void)state;
    device d = {0};
    ASSERT_TEXT(complaints("{\"x\": [0, {\"b\": 1, \"a\": 2,\n \"b\": 3}]}", &d),
                "t.json:2:2: error: key \"b\" stands twice in one object (at /x/1/b)\n");
}

static void keys_with_slashes_and_escapes_are_found(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_jdoc *doc;
    ms_jval root, value;
    ASSERT_OK(parse(cx, "{\"q\\\"}\": \"]\", \"a/b~\":\n 5}", &doc, &root), cx);
    assert_true(ms_json_member(cx, root, "a/b~", &value));
    ms_loc loc = ms_json_loc(cx, value), key_loc = ms_json_key_loc(cx, root, "a/b~");
    ms_json_close(doc);
    ASSERT_INT(loc.line, 2);
    ASSERT_INT(loc.column, 2);
    ASSERT_TEXT(loc.path, "/a~1b~0");
    ASSERT_TEXT(loc.file, "t.json");
    ASSERT_INT(key_loc.line, 1);
    ASSERT_INT(key_loc.column, 15);
}

static void elements_and_entries_are_walked(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_jdoc *doc;
    ms_jval root, list;
    const char *key;
    double number;
    ASSERT_OK(parse(cx, "{\"n\": [10, 11, 12], \"m\": {}}", &doc, &root), cx);
    ASSERT_INT(ms_json_length(root), 2);
    list = ms_json_entry(cx, root, 1, &key);
    ASSERT_TEXT(key, "m");
    ASSERT_INT(ms_json_length(list), 0);
    list = ms_json_entry(cx, root, 0, &key);
    ASSERT_INT(ms_json_length(list), 3);
    for (int i = 2; i >= 0; i--) {
        ASSERT_OK(ms_json_number(cx, ms_json_element(cx, list, i), 0, 100, &number), cx);
        ASSERT_NEAR(number, 10.0 + i, 0.0);
    }
    ASSERT_INT(ms_json_number(cx, ms_json_element(cx, list, 1), 12, 100, &number),
               MS_EINPUT);
    ms_json_close(doc);
    ASSERT_TEXT(
        test_messages(cx),
        "t.json:1:12: error: element 1 is 11, must be between 12 and 100 (at /n/1)\n");
}

static void syntax_errors_have_a_place(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "1:1: error: the text ends too early"},
        {"{\"a\": 1,\n}", "2:1: error: a key in double quotes must stand here"},
        {"{\"a\" 1}", "1:6: error: \":\" must stand here"},
        {"[1 2]", "1:4: error: \",\" or \"]\" must stand here"},
        {"{\"a\": 1", "1:8: error: the text ends too early"},
        {"[1] x", "1:5: error: nothing may follow the first value"},
        {"[01]", "1:2: error: a number must not begin with 0"},
        {"[1.]", "1:4: error: a digit must stand here"},
        {"[-]", "1:3: error: a digit must stand here"},
        {"nul", "1:1: error: a value must stand here"},
        {"[NaN]", "1:2: error: a value must stand here"},
        {"\"abc", "1:1: error: string without closing quote"},
        {"\"a\tb\"", "1:3: error: control character in a string must be escaped"},
        {"\"\\x\"", "1:3: error: unknown escape in a string"},
        {"\"\\u00g0\"", "1:2: error: \\u must be followed by four hexadecimal digits"},
        {"\"\\u0000\"", "1:2: error: \\u0000 is not allowed in a string"},
        {"\"\\ud800x\"", "1:2: error: \\u escape is half of a surrogate pair"},
        {"[\"\xC3\"]", "1:3: error: the text is not valid UTF-8"},
        {"[\v1]", "1:2: error: a value must stand here"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ms_ctx *cx = test_cx();
        ms_jdoc *doc;
        ms_jval root;
        ASSERT_INT(parse(cx, cases[i][0], &doc, &root), MS_EINPUT);
        const char *got = test_messages(cx);
        if (strncmp(got, "t.json:", 7) != 0 ||
            strncmp(got + 7, cases[i][1], strlen(cases[i][1])) != 0)
            fail_msg("%s: got %s, want %s", cases[i][0], got, cases[i][1]);
    }
}

static void a_zero_byte_is_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_jdoc *doc;
    ms_jval root;
    ASSERT_INT(ms_json_parse(cx, "t.json", "[1]\0", 4, &doc, &root), MS_EINPUT);
    ASSERT_TEXT(test_messages(cx), "t.json:1:4: error: the text holds a zero byte\n");
}

static ms_status parse_nested(ms_ctx *cx, int depth)
{
    ms_jdoc *doc;
    ms_jval root;
    char *text = ms_arena_alloc(cx->arena, 2 * (size_t)depth + 1);
    memset(text, '[', (size_t)depth);
    memset(text + depth, ']', (size_t)depth);
    ms_status status = parse(cx, text, &doc, &root);
    ms_json_close(doc);
    return status;
}

static void nesting_ends_at_64(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_OK(parse_nested(cx, 64), cx);
    ASSERT_INT(parse_nested(cx, 65), MS_EINPUT);
    ASSERT_INT(parse_nested(cx, 100000), MS_EINPUT);
    ASSERT_TEXT(test_messages(cx), "t.json:1:65: error: nested deeper than 64 levels\n"
                                   "t.json:1:65: error: nested deeper than 64 levels\n");
}

static void large_arrays_are_walked_in_linear_time(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    enum {
        COUNT = 200000
    };
    char *text = ms_arena_alloc(cx->arena, 2 * COUNT + 2);
    memset(text, '1', 2 * COUNT + 1);
    text[0] = '[';
    for (int i = 1; i < COUNT; i++)
        text[2 * i] = ',';
    text[2 * COUNT] = ']';
    ms_jdoc *doc;
    ms_jval root;
    ASSERT_OK(parse(cx, text, &doc, &root), cx);
    double sum = 0.0, number;
    for (int i = 0; i < ms_json_length(root); i++) {
        ASSERT_OK(ms_json_number(cx, ms_json_element(cx, root, i), 0, 1, &number), cx);
        sum += number;
    }
    ms_json_close(doc);
    ASSERT_NEAR(sum, COUNT, 0.0);
}

static void files_that_cannot_be_read_are_io_errors(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_jdoc *doc;
    ms_jval root;
    ASSERT_INT(ms_json_load(cx, "/no/such/file.json", &doc, &root), MS_EIO);
    ASSERT_INT(ms_json_load(cx, "/", &doc, &root), MS_EIO);
    ASSERT_TEXT(test_messages(cx),
                "/no/such/file.json: error: cannot be opened: No such file or directory\n"
                "/: error: cannot be read: Is a directory\n");
}

static void endless_files_are_too_large(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_jdoc *doc;
    ms_jval root;
    ASSERT_INT(ms_json_load(cx, "/dev/zero", &doc, &root), MS_EINPUT);
    ASSERT_TEXT(test_messages(cx), "/dev/zero: error: larger than 64 MiB\n");
}

static void a_byte_order_mark_is_skipped(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_jdoc *doc;
    ms_jval root;
    ASSERT_OK(parse(cx, "\xEF\xBB\xBF{}", &doc, &root), cx);
    assert_true(ms_json_is_object(root));
    ms_json_close(doc);
}

static void written_text_has_two_space_indentation(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    ms_jout out = ms_jout_open(file);
    ms_jout_begin_object(&out);
    ms_jout_text_field(&out, "t", "a\"\n\x01\xFF\xC3\xA9");
    ms_jout_begin_array_field(&out, "list");
    ms_jout_number(&out, 1.0);
    ms_jout_null(&out);
    ms_jout_begin_object(&out);
    ms_jout_end_object(&out);
    ms_jout_end_array(&out);
    ms_jout_number_field(&out, "nan", (double)NAN);
    ms_jout_bool_field(&out, "ok", true);
    ms_jout_text_field(&out, "none", NULL);
    ms_jout_end_object(&out);
    ms_jout_close(&out);
    ASSERT_TEXT(
        test_read_back(test_cx()->arena, file),
        "{\n  \"t\": \"a\\\"\\n\\u0001\\ufffd\xC3\xA9\",\n  \"list\": [\n    1,\n    null,\n"
        "    {}\n  ],\n  \"nan\": null,\n  \"ok\": true,\n  \"none\": null\n}\n");
}

static void deep_containers_can_stand_on_one_line(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    ms_jout out = ms_jout_open(file);
    ms_jout_begin_array(&out);
    out.line_depth = out.depth;
    for (int i = 0; i < 2; i++) {
        ms_jout_begin_object(&out);
        ms_jout_number_field(&out, "i", i);
        ms_jout_begin_array_field(&out, "list");
        ms_jout_number(&out, 1.0);
        ms_jout_begin_object(&out);
        ms_jout_end_object(&out);
        ms_jout_end_array(&out);
        ms_jout_end_object(&out);
    }
    ms_jout_end_array(&out);
    ms_jout_close(&out);
    ASSERT_TEXT(
        test_read_back(test_cx()->arena, file),
        "[\n  {\"i\": 0, \"list\": [1, {}]},\n  {\"i\": 1, \"list\": [1, {}]}\n]\n");
}

static void numbers_read_back_equal(void **state)
{
    (void)state;
    static const double values[] = {
        0.0,    -0.0, 0.1,           1.0 / 3.0,          4e-6, 1e300,
        5e-324, 1e15, 70553706496.0, 9007199254740992.0, -1.5, 1e22};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        ms_ctx *cx = test_cx();
        FILE *file = tmpfile();
        ms_jout out = ms_jout_open(file);
        ms_jout_number(&out, values[i]);
        ms_jout_close(&out);
        ms_jdoc *doc;
        ms_jval root;
        double got;
        ASSERT_OK(parse(cx, test_read_back(cx->arena, file), &doc, &root), cx);
        ASSERT_OK(ms_json_number(cx, root, (double)-INFINITY, (double)INFINITY, &got),
                  cx);
        ms_json_close(doc);
        ASSERT_NEAR(got, values[i], 0.0);
    }
}

static void whole_numbers_have_no_exponent(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    ms_jout out = ms_jout_open(file);
    ms_jout_number(&out, 405853388800.0);
    ms_jout_close(&out);
    ASSERT_TEXT(test_read_back(test_cx()->arena, file), "405853388800\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_fills_the_struct),
        cmocka_unit_test(all_errors_of_an_object_are_reported),
        cmocka_unit_test(missing_field_points_at_the_parent),
        cmocka_unit_test(wrong_kinds_are_named),
        cmocka_unit_test(a_repeated_key_is_an_error_at_the_second),
        cmocka_unit_test(keys_with_slashes_and_escapes_are_found),
        cmocka_unit_test(elements_and_entries_are_walked),
        cmocka_unit_test(syntax_errors_have_a_place),
        cmocka_unit_test(a_zero_byte_is_refused),
        cmocka_unit_test(nesting_ends_at_64),
        cmocka_unit_test(large_arrays_are_walked_in_linear_time),
        cmocka_unit_test(files_that_cannot_be_read_are_io_errors),
        cmocka_unit_test(endless_files_are_too_large),
        cmocka_unit_test(a_byte_order_mark_is_skipped),
        cmocka_unit_test(written_text_has_two_space_indentation),
        cmocka_unit_test(deep_containers_can_stand_on_one_line),
        cmocka_unit_test(numbers_read_back_equal),
        cmocka_unit_test(whole_numbers_have_no_exponent),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
