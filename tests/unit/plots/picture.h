/* Pictures that tests draw in a folder of their own with the installed gnuplot, and what
 * they must look like; tests that draw are skipped without gnuplot. */
#ifndef MS_TESTS_UNIT_PLOTS_PICTURE_H
#define MS_TESTS_UNIT_PLOTS_PICTURE_H

#include "cli/cmd/plot_files.h"
#include "plots/gnuplot.h"
#include "plots/priced_plan.h"
#include "tests/test.h"

#include <unistd.h>

static char picture_folder[] = "/tmp/meshsim-test-kinds-XXXXXX";

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(picture_folder) == NULL || chdir(picture_folder) != 0 ? -1 : 0;
}

static inline int remove_folder(void **state)
{
    (void)state;
    return rmdir(picture_folder); /* fails if a test left files in the folder */
}

static inline void write_files(ms_ctx *cx, const ms_plot_writer *writer,
                               ms_picture_format format)
{
    FILE *file = fopen("a.dat", "w");
    assert_non_null(file);
    writer->write_data(file, writer->plot);
    fclose(file);
    file = fopen("a.gp", "w");
    assert_non_null(file);
    ASSERT_OK(writer->write_script(cx, file, writer->plot, "a", format), cx);
    fclose(file);
}

/* Draws the plot; NULL without gnuplot. `*length`: bytes of the picture. */
static inline const char *render(ms_ctx *cx, const ms_plot_writer *writer,
                                 ms_picture_format format, size_t *length)
{
    write_files(cx, writer, format);
    FILE *picture = tmpfile();
    bool found;
    assert_non_null(picture);
    ASSERT_OK(ms_gnuplot_run(cx, "a.gp", fileno(picture), &found), cx);
    ASSERT_INT(remove("a.dat") + remove("a.gp"), 0);
    ASSERT_INT(fseek(picture, 0, SEEK_END), 0);
    *length = (size_t)ftell(picture);
    rewind(picture);
    char *bytes = MS_NEW_ARRAY(cx->arena, *length + 1, char);
    ASSERT_INT(fread(bytes, 1, *length, picture), *length);
    fclose(picture);
    return found ? bytes : NULL;
}

static inline int count(const char *text, const char *word)
{
    int num = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word))
        num++;
    return num;
}

/* Big-endian number of four bytes, as in the header of a PNG. */
static inline long number_at(const char *bytes)
{
    long value = 0;
    for (int i = 0; i < 4; i++)
        value = value * 256 + (unsigned char)bytes[i];
    return value;
}

/* The picture has `words` as text, at least `least` painted shapes in SVG, and a PNG of
 * sensible size that is no blank sheet. */
static inline void check_picture(ms_ctx *cx, const ms_plot_writer *writer,
                                 const char *words, int least)
{
    size_t length;
    const char *svg = render(cx, writer, MS_PICTURE_SVG, &length);
    if (svg == NULL)
        skip();
    if (strstr(svg, words) == NULL)
        fail_msg("\"%s\" is not in the picture", words);
    int shapes = count(svg, "<path") + count(svg, "<polygon") + count(svg, "<rect") +
                 count(svg, "<use") + count(svg, "<circle");
    if (shapes < least)
        fail_msg("%d shapes in the picture, expected %d", shapes, least);
    const char *png = render(cx, writer, MS_PICTURE_PNG, &length);
    assert_memory_equal(png, "\x89PNG", 4);
    assert_true(number_at(png + 16) >= 600 && number_at(png + 16) <= 2000);
    assert_true(number_at(png + 20) >= 150 && number_at(png + 20) <= 1500);
    assert_true(length > 8000);
    const char *pdf = render(cx, writer, MS_PICTURE_PDF, &length);
    assert_memory_equal(pdf, "%PDF-", 5);
    assert_true(length > 5000);
}

static inline ms_plan plan_of(const char *model, long gpus, long pp, long tp)
{
    ms_plan plan = ms_plan_default(gpus);
    plan.model = model;
    plan.size[MS_PP] = pp;
    plan.size[MS_TP] = tp;
    plan.size[MS_DP_SHARD] = gpus / pp / tp;
    plan.global_batch = 2 * gpus / tp;
    plan.zero = 1;
    plan.sequence_parallel = tp > 1;
    return plan;
}

static inline ms_priced_plan priced(ms_ctx *cx, const ms_plan *given, const char *name)
{
    ms_plan *plan = MS_NEW(cx->arena, ms_plan);
    *plan = *given;
    ms_workload *workload;
    ms_priced_plan out = {.name = name, .plan = plan};
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_predict(cx, workload, plan, &out.prediction), cx);
    out.workload = workload;
    ms_workload_close(workload);
    return out;
}

#endif
