/* Configuration files: in which folders they are looked for, which names are allowed,
 * and the message when one is not found. */
#include "base/paths.h"
#include "tests/test.h"

#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/meshsim-test-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void touch(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "models/%s", name);
    write_file(path, "{}");
}

#define ALIASES "{\"models\": {\"175b\": \"gpt3-175b\", \"70b\": \"llama-3.1-70b\"}}"

static int make_configs(void **state)
{
    (void)state;
    if (mkdtemp(root) == NULL)
        return 1;
    char path[256];
    snprintf(path, sizeof path, "%s/models", root);
    mkdir(path, 0700);
    touch("llama-3.1-70b.json");
    touch("gpt3-175b.json");
    touch("notes.txt");
    touch(".hidden.json");
    snprintf(path, sizeof path, "%s/names", root);
    mkdir(path, 0700);
    write_file("names/aliases.json", ALIASES);
    return setenv("MESHSIM_CONFIGS", root, 1);
}

static int remove_configs(void **state)
{
    (void)state;
    static const char *const names[] = {"/models/llama-3.1-70b.json",
                                        "/models/gpt3-175b.json",
                                        "/models/notes.txt",
                                        "/models/.hidden.json",
                                        "/models",
                                        "/names/aliases.json",
                                        "/names",
                                        ""};
    char path[256];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s%s", root, names[i]);
        if (remove(path) != 0)
            return 1;
    }
    return 0;
}

static void names_are_sorted_and_only_json(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const *names;
    int num_names;
    ASSERT_OK(ms_config_names(cx, "models", &names, &num_names), cx);
    ASSERT_INT(num_names, 2);
    ASSERT_TEXT(names[0], "gpt3-175b");
    ASSERT_TEXT(names[1], "llama-3.1-70b");
}

static void a_name_becomes_the_path_of_its_file(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *path;
    ASSERT_OK(ms_config_resolve(cx, "models", "model", "gpt3-175b", &path), cx);
    ASSERT_TEXT(path, ms_arena_printf(cx->arena, "%s/models/gpt3-175b.json", root));
}

static void an_alias_becomes_the_name_it_stands_for(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *path;
    ASSERT_OK(ms_config_resolve(cx, "models", "model", "70b", &path), cx);
    ASSERT_TEXT(path, ms_arena_printf(cx->arena, "%s/models/llama-3.1-70b.json", root));
}

static void the_aliases_of_a_name_are_listed(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const *aliases;
    int num;
    ASSERT_OK(ms_config_aliases(cx, "models", "gpt3-175b", &aliases, &num), cx);
    ASSERT_INT(num, 1);
    ASSERT_TEXT(aliases[0], "175b");
    ASSERT_OK(ms_config_aliases(cx, "stacks", "gpt3-175b", &aliases, &num), cx);
    ASSERT_INT(num, 0);
}

static void a_bad_list_of_aliases_is_an_error_at_its_place(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"{\"models\":\n  {\"a\": 1}}", "aliases.json:2:9: error: \"a\" is a number"},
        {"{\"models\": []}", "aliases.json:1:12: error: an object must stand here"},
        {"{\"model\": {}}", "aliases.json:1:2: error: unknown key \"model\""},
        {"{", "aliases.json:1:2: error: "}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ms_ctx *cx = test_cx();
        const char *path;
        write_file("names/aliases.json", bad[i][0]);
        ASSERT_INT(ms_config_resolve(cx, "models", "model", "70b", &path), MS_EINPUT);
        if (strstr(test_messages(cx), bad[i][1]) == NULL)
            fail_msg("%s: no \"%s\"", test_messages(cx), bad[i][1]);
    }
    write_file("names/aliases.json", ALIASES);
}

static void a_path_is_taken_as_it_is(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *path;
    ASSERT_OK(ms_config_resolve(cx, "models", "model", "./any/thing", &path), cx);
    ASSERT_TEXT(path, "./any/thing");
    ASSERT_OK(ms_config_resolve(cx, "models", "model", "mine.json", &path), cx);
    ASSERT_TEXT(path, "mine.json");
}

static void an_unknown_name_suggests_the_nearest(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *path;
    ASSERT_INT(ms_config_resolve(cx, "models", "model", "lama-3.1-70b", &path),
               MS_EINPUT);
    ASSERT_TEXT(test_messages(cx), "error: unknown model \"lama-3.1-70b\"\n"
                                   "  hint: did you mean \"llama-3.1-70b\"?\n");
}

static void a_name_far_from_all_lists_them(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *path;
    ASSERT_INT(ms_config_resolve(cx, "models", "model", "zzzz", &path), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "known: gpt3-175b, llama-3.1-70b"));
}

static void names_that_could_leave_the_folder_are_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    assert_non_null(ms_config_file(cx, "models", "gpt3-175b"));
    assert_null(ms_config_file(cx, "models", "../models/gpt3-175b"));
    assert_null(ms_config_file(cx, "models", ""));
    assert_null(ms_config_file(cx, "models", "a b"));
    assert_null(ms_config_file(cx, "models", "gpt3\xFF"));
}

static void a_kind_without_folder_is_an_error(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const *names;
    int num_names;
    assert_null(ms_config_folder(cx, "no-such-kind"));
    ASSERT_INT(ms_config_names(cx, "no-such-kind", &names, &num_names), MS_EIO);
    assert_non_null(strstr(test_messages(cx), "configs/no-such-kind"));
}

static void names_that_contain_the_word_are_offered_first(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *path;
    ASSERT_INT(ms_config_resolve(cx, "models", "model", "LLAMA", &path), MS_EINPUT);
    assert_non_null(
        strstr(test_messages(cx), "  hint: did you mean \"llama-3.1-70b\"?\n"));
    cx = test_cx();
    ASSERT_INT(ms_config_resolve(cx, "models", "model", "b", &path), MS_EINPUT);
    assert_non_null(
        strstr(test_messages(cx), "did you mean \"gpt3-175b\" or \"llama-3.1-70b\"?\n"));
}

static void five_names_are_offered_at_most(void **state)
{
    (void)state;
    static const char *const names[] = {"x-1.json", "x-2.json", "x-3.json",
                                        "x-4.json", "x-5.json", "x-6.json"};
    for (int i = 0; i < 6; i++)
        touch(names[i]);
    ms_ctx *cx = test_cx();
    const char *path;
    ASSERT_INT(ms_config_resolve(cx, "models", "model", "x-", &path), MS_EINPUT);
    assert_non_null(
        strstr(test_messages(cx),
               "did you mean \"x-1\", \"x-2\", \"x-3\", \"x-4\" or \"x-5\"?\n"));
    for (int i = 0; i < 6; i++)
        ASSERT_INT(remove(ms_arena_printf(cx->arena, "%s/models/%s", root, names[i])), 0);
}

static void a_copied_program_finds_what_lies_beside_it(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    char program[1024];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    const char *configs = ms_arena_printf(cx->arena, "%s/configs", program);
    const char *kind = ms_arena_printf(cx->arena, "beside-%ld", (long)getpid());
    const char *folder = ms_arena_printf(cx->arena, "%s/%s", configs, kind);
    assert_null(ms_config_folder(cx, kind));
    mkdir(configs, 0700);
    ASSERT_INT(mkdir(folder, 0700), 0);
    const char *found = ms_config_folder(cx, kind);
    ASSERT_INT(rmdir(folder), 0);
    (void)rmdir(configs);
    ASSERT_TEXT(found, folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_sorted_and_only_json),
        cmocka_unit_test(a_name_becomes_the_path_of_its_file),
        cmocka_unit_test(an_alias_becomes_the_name_it_stands_for),
        cmocka_unit_test(the_aliases_of_a_name_are_listed),
        cmocka_unit_test(a_bad_list_of_aliases_is_an_error_at_its_place),
        cmocka_unit_test(a_path_is_taken_as_it_is),
        cmocka_unit_test(an_unknown_name_suggests_the_nearest),
        cmocka_unit_test(a_name_far_from_all_lists_them),
        cmocka_unit_test(names_that_could_leave_the_folder_are_refused),
        cmocka_unit_test(a_kind_without_folder_is_an_error),
        cmocka_unit_test(names_that_contain_the_word_are_offered_first),
        cmocka_unit_test(five_names_are_offered_at_most),
        cmocka_unit_test(a_copied_program_finds_what_lies_beside_it),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_configs, remove_configs);
}
