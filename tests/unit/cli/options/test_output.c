/* Output files of commands: a file is complete or absent, and never replaces a device
 * such as /dev/null. */
#include "tests/test.h"

#include "cli/options/output.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/meshsim-test-output-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* fails if a test left files in the folder */
}

static const char *path_of(ms_ctx *cx, const char *name)
{
    return ms_arena_printf(cx->arena, "%s/%s", folder, name);
}

static const char *content(ms_ctx *cx, const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    ASSERT_INT(fseek(file, 0, SEEK_END), 0);
    return test_read_back(cx->arena, file);
}

static ms_status write_text(ms_ctx *cx, const char *path, const char *text,
                            ms_status status)
{
    ms_output out;
    MS_TRY(ms_output_open(cx, path, &out));
    fputs(text, out.file);
    return ms_output_close(cx, &out, status);
}

static void a_file_appears_when_it_is_complete(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *path = path_of(cx, "a");
    ms_output out;
    ASSERT_OK(ms_output_open(cx, path, &out), cx);
    fputs("text", out.file);
    assert_null(content(cx, path));
    ASSERT_OK(ms_output_close(cx, &out, MS_OK), cx);
    ASSERT_TEXT(content(cx, path), "text");
    ASSERT_INT(remove(path), 0);
}

static void failures_leave_what_was_there(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *path = path_of(cx, "a");
    ASSERT_OK(write_text(cx, path, "old", MS_OK), cx);
    ASSERT_INT(write_text(cx, path, "new", MS_EIO), MS_EIO);
    ASSERT_INT(write_text(cx, path, "new", MS_EINPUT), MS_EINPUT);
    ASSERT_TEXT(content(cx, path), "old");
    ASSERT_INT(remove(path), 0);
}

static void results_without_success_are_kept(void **state)
{
    (void)state;
    static const ms_status kept[] = {MS_ENOFIT, MS_ECHECK, MS_EINTERRUPTED};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        ms_ctx *cx = test_cx();
        const char *path = path_of(cx, "a");
        ASSERT_INT(write_text(cx, path, "why", kept[i]), kept[i]);
        ASSERT_TEXT(content(cx, path), "why");
        ASSERT_INT(remove(path), 0);
    }
}

static void permissions_survive(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *path = path_of(cx, "a");
    ASSERT_OK(write_text(cx, path, "old", MS_OK), cx);
    ASSERT_INT(chmod(path, 0640), 0);
    ASSERT_OK(write_text(cx, path, "new", MS_OK), cx);
    struct stat info;
    ASSERT_INT(stat(path, &info), 0);
    ASSERT_INT(info.st_mode & 0777, 0640);
    ASSERT_INT(remove(path), 0);
}

static void links_are_followed(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *path = path_of(cx, "a"), *link_path = path_of(cx, "b");
    ASSERT_INT(symlink(path, link_path), 0);
    ASSERT_OK(write_text(cx, link_path, "text", MS_OK), cx);
    ASSERT_TEXT(content(cx, path), "text");
    ASSERT_INT(remove(link_path), 0);
    ASSERT_INT(remove(path), 0);
}

static void what_cannot_be_written_is_named(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_INT(write_text(cx, "/dev/full", "text", MS_OK), MS_EIO);
    ASSERT_TEXT(test_messages(cx),
                "error: cannot write /dev/full: No space left on device\n");
    cx = test_cx();
    ASSERT_INT(write_text(cx, folder, "text", MS_OK), MS_EIO);
    ASSERT_TEXT(
        test_messages(cx),
        ms_arena_printf(cx->arena, "error: cannot write %s: Is a directory\n", folder));
}

static void two_names_of_one_file_are_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *a = path_of(cx, "a"), *other = path_of(cx, "./a"), *b = path_of(cx, "b");
    const char *same[] = {a, other}, *alike[] = {b, a}, *none[] = {NULL, NULL},
               *out[] = {"-", "-"}, *device[] = {"/dev/null", "/dev/null"};
    /* two names of one file that does not exist yet */
    ASSERT_INT(ms_output_check_distinct(cx, same, 2), MS_EINPUT);
    ASSERT_OK(write_text(cx, a, "text", MS_OK), cx);
    ASSERT_INT(ms_output_check_distinct(cx, same, 2), MS_EINPUT);
    ASSERT_OK(ms_output_check_distinct(cx, alike, 2), cx);
    ASSERT_INT(symlink(a, b), 0);
    ASSERT_INT(ms_output_check_distinct(cx, alike, 2), MS_EINPUT);
    ASSERT_OK(ms_output_check_distinct(cx, none, 2), cx);
    ASSERT_OK(ms_output_check_distinct(cx, out, 2), cx);
    ASSERT_OK(ms_output_check_distinct(cx, device, 2), cx);
    ASSERT_INT(remove(b), 0);
    ASSERT_INT(remove(a), 0);
}

static void a_dropped_output_leaves_what_was_there(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *path = path_of(cx, "a");
    ASSERT_OK(write_text(cx, path, "old", MS_OK), cx);
    ms_output out;
    ASSERT_OK(ms_output_open(cx, path, &out), cx);
    fputs("new", out.file);
    ms_output_drop(cx, &out);
    ASSERT_TEXT(content(cx, path), "old");
    ASSERT_INT(remove(path), 0);
    ASSERT_INT(cx->num_errors, 0);
}

static void what_can_be_written_is_known_before(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *there = path_of(cx, "there"), *fresh = path_of(cx, "fresh");
    ASSERT_OK(ms_output_check_writable(cx, NULL), cx);
    ASSERT_OK(ms_output_check_writable(cx, "-"), cx);
    ASSERT_OK(ms_output_check_writable(cx, "/dev/null"), cx);
    ASSERT_OK(ms_output_check_writable(cx, fresh), cx);
    ASSERT_INT(access(fresh, F_OK), -1); /* the check leaves no file behind */
    ASSERT_OK(write_text(cx, there, "kept", MS_OK), cx);
    ASSERT_OK(ms_output_check_writable(cx, there), cx);
    ASSERT_TEXT(content(cx, there), "kept");
    ASSERT_INT(unlink(there), 0);
    ASSERT_INT(ms_output_check_writable(cx, folder), MS_EIO);
    ASSERT_INT(ms_output_check_writable(cx, path_of(cx, "missing/file")), MS_EIO);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_can_be_written_is_known_before),
        cmocka_unit_test(a_file_appears_when_it_is_complete),
        cmocka_unit_test(failures_leave_what_was_there),
        cmocka_unit_test(results_without_success_are_kept),
        cmocka_unit_test(permissions_survive),
        cmocka_unit_test(links_are_followed),
        cmocka_unit_test(what_cannot_be_written_is_named),
        cmocka_unit_test(two_names_of_one_file_are_refused),
        cmocka_unit_test(a_dropped_output_leaves_what_was_there),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
