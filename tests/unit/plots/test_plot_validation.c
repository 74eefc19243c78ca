/* The plot of predicted against measured times and peaks: which source a point belongs
 * to, and pictures of extreme data (skipped without gnuplot). */
#include "plots/gnuplot.h"
#include "plots/validation_data.h"
#include "tests/test.h"

#include <unistd.h>

#define MAX_RUNS 32

typedef struct made {
    ms_pubrun runs[MAX_RUNS];
    ms_pubrun_score scores[MAX_RUNS];
    ms_pubruns list;
} made;

static void add(made *m, const char *source, double step_s, double peak_bytes)
{
    int i = m->list.num_runs++;
    m->list.runs = m->runs;
    m->runs[i] = (ms_pubrun){.id = "x\"y",
                             .source = source,
                             .model_text = "M",
                             .gpu_type = "G",
                             .measured_step_s = 1.0,
                             .measured_peak_bytes = 0x1p30,
                             .plan = ms_plan_default(8)};
    m->scores[i] = (ms_pubrun_score){.step_s = step_s,
                                     .peak_bytes = peak_bytes,
                                     .peak_low_bytes = peak_bytes,
                                     .peak_high_bytes = peak_bytes,
                                     .step_error_frac = step_s - 1.0,
                                     .peak_error_frac = peak_bytes / 0x1p30 - 1.0,
                                     .priced = true};
}

static ms_validation summarise(made *m)
{
    ms_validation v;
    ms_validation_summarise(test_cx()->arena, &m->list, m->scores, &v);
    return v;
}

/* Measured runs: nine of source "a" with a step time; ten of source "b", all with a
 * memory peak, the last two also with a step time; one of source "c" with a step time,
 * too few runs for "c" to be shown by itself. */
static void make(made *m)
{
    *m = (made){0};
    for (int i = 0; i < 9; i++)
        add(m, "a", 0.5 + 0.1 * i, (double)NAN);
    for (int i = 0; i < 10; i++)
        add(m, "b", i < 8 ? (double)NAN : 2.0, (1 + 0.1 * i) * 0x1p30);
    add(m, "c", 4.0, (double)NAN);
    add(m, "c", (double)NAN, (double)NAN);
}

static void each_run_has_the_colour_of_its_source(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    made m;
    make(&m);
    ms_validation v = summarise(&m);
    ms_validation_plot plot = ms_validation_plot_make(cx->arena, &v);
    ASSERT_INT(plot.num_sources, 3);
    /* drawn first, below the others: it has more points */
    ASSERT_TEXT(plot.sources[0].name, "b");
    ASSERT_INT(plot.sources[0].num_time, 2);
    ASSERT_INT(plot.sources[0].num_memory, 10);
    ASSERT_TEXT(plot.sources[1].name, "a");
    ASSERT_TEXT(plot.sources[2].name, "pooled");
    ASSERT_INT(plot.source_of[0], 1);
    ASSERT_INT(plot.source_of[9], 0);
    ASSERT_INT(plot.source_of[19], 2);
    ASSERT_INT(plot.source_of[20], -1);
}

static void data_has_a_point_for_each_error(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    made m;
    make(&m);
    ms_validation v = summarise(&m);
    ms_validation_plot plot = ms_validation_plot_make(cx->arena, &v);
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_validation_plot_write_data(file, &plot);
    const char *text = test_read_back(cx->arena, file);
    int num[2] = {0}, block = 0;
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        if (strncmp(line, "# index 1", 9) == 0)
            block = 1;
        num[block] += line[0] != '#' && line[0] != '\n';
    }
    ASSERT_INT(num[0], 9 + 2 + 1); /* points of step times, of sources "a", "b" and "c" */
    ASSERT_INT(num[1], 10);        /* points of memory peaks, all of source "b" */
}

static char folder[] = "/tmp/meshsim-test-validation-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL || chdir(folder) != 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder); /* fails if a test left files in the folder */
}

static void render(ms_ctx *cx, const ms_validation *v, ms_picture_format format)
{
    ms_validation_plot plot = ms_validation_plot_make(cx->arena, v);
    FILE *data = fopen("a.dat", "w"), *script = fopen("a.gp", "w"), *picture = tmpfile();
    assert_non_null(data);
    assert_non_null(script);
    assert_non_null(picture);
    ms_validation_plot_write_data(data, &plot);
    fclose(data);
    ASSERT_OK(ms_validation_plot_write_script(cx, script, &plot, "a", format), cx);
    fclose(script);
    bool found;
    ASSERT_OK(ms_gnuplot_run(cx, "a.gp", fileno(picture), &found), cx);
    ASSERT_INT(remove("a.dat") + remove("a.gp"), 0);
    ASSERT_INT(fseek(picture, 0, SEEK_END), 0);
    bool drawn = ftell(picture) > 3000;
    fclose(picture);
    if (!found)
        skip();
    assert_true(drawn);
}

static void pictures_render(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    made m;
    make(&m);
    ms_validation v = summarise(&m);
    render(cx, &v, MS_PICTURE_PNG);
    m = (made){0};
    add(&m, "time' alone", 3.0, (double)NAN);
    v = summarise(&m);
    render(cx, &v, MS_PICTURE_SVG);
    m = (made){0};
    add(&m, "memory_{alone}", (double)NAN, 0x1p40);
    v = summarise(&m);
    render(cx, &v, MS_PICTURE_PDF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_run_has_the_colour_of_its_source),
        cmocka_unit_test(data_has_a_point_for_each_error),
        cmocka_unit_test(pictures_render),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
