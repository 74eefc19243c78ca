/* Output files of plots: a picture appears only when it is complete, and the data and
 * script behind it are kept when asked for. */
#include "cli/cmd/plot_files.h"
#include "tests/test.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/meshsim-test-plot-XXXXXX";
static char *usual_path;

static int make_folder(void **state)
{
    (void)state;
    usual_path = getenv("PATH");
    return mkdtemp(folder) == NULL || chdir(folder) != 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    setenv("PATH", usual_path, 1);
    return rmdir(folder); /* fails if a test left files in the folder */
}

/* Makes a program named gnuplot that runs `commands`, and sets PATH to its folder
 * alone. */
static void fake_gnuplot(const char *commands)
{
    FILE *file = fopen("gnuplot", "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", commands);
    fclose(file);
    ASSERT_INT(chmod("gnuplot", 0755), 0);
    setenv("PATH", folder, 1);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static void write_data(FILE *out, const void *plot)
{
    (void)plot;
    fputs("0\t0\t1\t0\t0\t0\t0\n", out);
}

static ms_status write_script(ms_ctx *cx, FILE *out, const void *plot, const char *name,
                              ms_picture_format format)
{
    const char *commands = plot;
    (void)cx;
    fprintf(out, "name = '%s'; format = '%s'\n%s\n", name,
            ms_picture_format_names[format], commands);
    return MS_OK;
}

static ms_status render(ms_ctx *cx, const char *path, bool keep, const char *commands,
                        bool *rendered)
{
    ms_plot_target target;
    ms_output picture;
    cx->verbosity = -1;
    ASSERT_OK(ms_plot_target_read(cx, "timeline", path, -1, keep, &target), cx);
    ASSERT_OK(ms_output_open(cx, target.path, &picture), cx);
    ms_plot_writer writer = {commands, write_data, write_script};
    return ms_plot_render(cx, &target, &writer, &picture, rendered);
}

static void targets_have_names(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plot_target target;
    ASSERT_OK(ms_plot_target_read(cx, "memory", NULL, -1, false, &target), cx);
    ASSERT_TEXT(target.path, "memory.png");
    ASSERT_TEXT(target.script, "memory.gp");
    ASSERT_OK(ms_plot_target_read(cx, "memory", NULL, MS_PICTURE_PDF, false, &target),
              cx);
    ASSERT_TEXT(target.path, "memory.pdf");
    ASSERT_OK(ms_plot_target_read(cx, "memory", "a.b/c.svg", -1, true, &target), cx);
    ASSERT_INT(target.format, MS_PICTURE_SVG);
    ASSERT_TEXT(target.data, "a.b/c.dat");
    ASSERT_TEXT(target.name, "c");
    ASSERT_OK(ms_plot_target_read(cx, "memory", "-", -1, true, &target), cx);
    ASSERT_TEXT(target.data, "memory.dat");
    ASSERT_INT(ms_plot_target_read(cx, "memory", "a.jpg", -1, false, &target), MS_EINPUT);
    ASSERT_TEXT(
        test_messages(cx),
        "error: \"a.jpg\" has no ending of a picture format: it must end in .png, "
        ".svg or .pdf\n  hint: or name the format: --format png\n");
}

static void a_failure_leaves_no_picture(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    bool rendered;
    fake_gnuplot(
        "echo half a picture; echo '\"x.gp\" line 3: that is wrong' >&2; exit 1");
    ASSERT_INT(render(cx, "a.png", false, "", &rendered), MS_EIO);
    ASSERT_TEXT(test_messages(cx),
                "error: gnuplot failed (exit 1): line 3: that is wrong\n"
                "  hint: --keep keeps the script for inspection\n");
    assert_true(!rendered && !exists("a.png") && !exists("a.dat") && !exists("a.gp"));
    ASSERT_INT(remove("gnuplot"), 0);
}

static void a_failure_keeps_the_picture_of_before(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    bool rendered;
    fake_gnuplot("echo new");
    ASSERT_OK(render(cx, "a.png", false, "", &rendered), cx);
    assert_true(rendered);
    fake_gnuplot("echo half; kill -9 $$");
    ASSERT_INT(render(cx, "a.png", true, "", &rendered), MS_EIO);
    ASSERT_TEXT(test_messages(cx), "error: gnuplot was ended by signal 9\n");
    FILE *file = fopen("a.png", "r");
    assert_non_null(file);
    ASSERT_INT(fseek(file, 0, SEEK_END), 0);
    ASSERT_TEXT(test_read_back(cx->arena, file), "new\n");
    assert_true(exists("a.dat") && exists("a.gp"));
    ASSERT_INT(remove("a.png") + remove("a.dat") + remove("a.gp") + remove("gnuplot"), 0);
}

static void without_gnuplot_data_and_script_stay(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    bool rendered;
    setenv("PATH", folder, 1);
    ASSERT_OK(render(cx, "a.png", false, "", &rendered), cx);
    assert_true(!rendered && !exists("a.png") && exists("a.dat") && exists("a.gp"));
    ASSERT_INT(remove("a.dat") + remove("a.gp"), 0);
}

static void full_outputs_are_told(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    bool rendered;
    fake_gnuplot("echo new");
    ms_plot_target target;
    ms_output picture;
    ms_plot_writer writer = {"", write_data, write_script};
    ASSERT_OK(
        ms_plot_target_read(cx, "memory", "/dev/full", MS_PICTURE_PNG, false, &target),
        cx);
    ASSERT_OK(ms_output_open(cx, target.path, &picture), cx);
    ASSERT_INT(ms_plot_render(cx, &target, &writer, &picture, &rendered), MS_EIO);
    assert_non_null(strstr(test_messages(cx), "/dev/full"));
    cx = test_cx();
    fake_gnuplot("exit 0");
    ASSERT_INT(render(cx, "a.png", false, "", &rendered), MS_EIO);
    assert_non_null(strstr(test_messages(cx), "gnuplot drew nothing"));
    assert_true(!exists("a.png"));
    ASSERT_INT(remove("gnuplot"), 0);
}

static void gnuplot_renders_png(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    bool rendered;
    setenv("PATH", usual_path, 1);
    ASSERT_OK(render(cx, "a.png", false,
                     "set terminal png size 64,64\n"
                     "plot ARG0[1:strlen(ARG0) - 2] . 'dat' using 2:3",
                     &rendered),
              cx);
    if (!rendered) {
        ASSERT_INT(remove("a.dat") + remove("a.gp"), 0);
        skip();
    }
    FILE *file = fopen("a.png", "r");
    char start[4] = "";
    assert_non_null(file);
    ASSERT_INT(fread(start, 1, 4, file), 4);
    fclose(file);
    assert_memory_equal(start, "\x89PNG", 4);
    assert_true(!exists("a.dat") && !exists("a.gp"));
    ASSERT_INT(remove("a.png"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_have_names),
        cmocka_unit_test(a_failure_leaves_no_picture),
        cmocka_unit_test(a_failure_keeps_the_picture_of_before),
        cmocka_unit_test(without_gnuplot_data_and_script_stay),
        cmocka_unit_test(full_outputs_are_told),
        cmocka_unit_test(gnuplot_renders_png),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
