/* Every kind of plot drawn by the installed gnuplot, with extreme data; skipped where
 * gnuplot is missing. */
#include "plots/gnuplot.h"
#include "plots/memory_curve_data.h"
#include "plots/memory_data.h"
#include "plots/scaling_data.h"
#include "plots/timeline_data.h"
#include "tests/test.h"

#include <unistd.h>

static char folder[] = "/tmp/meshsim-test-render-XXXXXX";

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

static FILE *create(const char *name)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    return file;
}

/* Runs the gnuplot script a.gp on the data file a.dat; the picture must begin as its
 * format does and not be empty. */
static void render(ms_ctx *cx, ms_picture_format format)
{
    static const char *const starts[] = {"\x89PNG", "<?xml", "%PDF-"};
    FILE *picture = tmpfile();
    bool found;
    assert_non_null(picture);
    ASSERT_OK(ms_gnuplot_run(cx, "a.gp", fileno(picture), &found), cx);
    ASSERT_INT(remove("a.dat") + remove("a.gp"), 0);
    if (!found) {
        fclose(picture);
        skip();
    }
    char start[8] = "";
    ASSERT_INT(fseek(picture, 0, SEEK_END), 0);
    assert_true(ftell(picture) > 3000);
    rewind(picture);
    size_t length = strlen(starts[format]);
    ASSERT_INT(fread(start, 1, length, picture), length);
    assert_memory_equal(start, starts[format], length);
    fclose(picture);
}

static ms_plan plan_of(long gpus, long pp, const char *cluster)
{
    ms_plan plan = ms_plan_default(gpus);
    plan.model = "8b";
    plan.cluster = cluster;
    plan.size[MS_PP] = pp;
    plan.size[MS_DP_SHARD] = gpus / pp;
    plan.global_batch = 8 * gpus / pp;
    plan.zero = 1;
    return plan;
}

/* Predicts a plan on 4 x `pp` GPUs; its workload stays open. */
static ms_priced_plan predicted(ms_ctx *cx, long pp, const char *cluster)
{
    ms_plan *plan = MS_NEW(cx->arena, ms_plan);
    *plan = plan_of(4 * pp, pp, cluster);
    ms_workload *workload;
    ms_priced_plan out = {.name = "a_name", .plan = plan};
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_predict(cx, workload, plan, &out.prediction), cx);
    out.workload = workload;
    ms_workload_close(workload);
    return out;
}

/* ---- timeline ---- */

static void draw_timeline(ms_ctx *cx, const ms_timeline *timeline,
                          ms_picture_format format)
{
    FILE *file = create("a.dat");
    ms_timeline_write_data(file, timeline);
    fclose(file);
    file = create("a.gp");
    ASSERT_OK(ms_timeline_write_script(cx, file, timeline, "a", format), cx);
    fclose(file);
    render(cx, format);
}

static void timelines_render(void **state)
{
    (void)state;
    for (long pp = 1; pp <= 32; pp *= 32) {
        ms_ctx *cx = test_cx();
        ms_plan plan = plan_of(pp, pp, "hgx-h100");
        ms_workload *workload;
        ms_planned planned;
        ms_timeline timeline;
        ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
        ms_planned_open(cx, workload, &plan, &planned);
        ASSERT_OK(ms_timeline_make(cx, &planned, &(ms_simulate_options){0}, &timeline),
                  cx);
        draw_timeline(cx, &timeline, pp == 1 ? MS_PICTURE_PNG : MS_PICTURE_PDF);
        ms_workload_close(workload);
    }
}

static void pairs_render_above_each_other(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_priced_plan made = predicted(cx, 2, "hgx-h100");
    ms_box boxes[] = {
        {0, 0.0, 1.0, MS_BOX_FORWARD, 0, 0, MS_BOX_WHOLE},
        {0, 1.0, 3.0, MS_BOX_FORWARD, 1, 0, MS_BOX_UPPER},
        {0, 1.0, 3.0, MS_BOX_BACKWARD, 0, 1, MS_BOX_LOWER},
        {1, 0.0, 1.0, MS_BOX_INPUT, 0, 0, MS_BOX_WHOLE},
        {1, 1.0, 2.0, MS_BOX_WEIGHT, 0, 0, MS_BOX_WHOLE},
        {1, 3.0, 3.5, MS_BOX_OPTIMIZER, -1, 0, MS_BOX_WHOLE},
    };
    ms_timeline timeline = {.plan = made.plan,
                            .workload = made.workload,
                            .prediction = made.prediction,
                            .num_lanes = 2,
                            .num_chunks = 2,
                            .num_boxes = sizeof boxes / sizeof *boxes,
                            .boxes = boxes,
                            .step_s = 3.5};
    draw_timeline(cx, &timeline, MS_PICTURE_SVG);
}

/* ---- memory ---- */

static void draw_memory(ms_ctx *cx, const ms_priced_plan *plans, int num,
                        ms_picture_format format)
{
    ms_memory_plot plot = {cx->arena, num, plans};
    FILE *file = create("a.dat");
    ms_memory_plot_write_data(file, &plot);
    fclose(file);
    file = create("a.gp");
    ASSERT_OK(ms_memory_plot_write_script(cx, file, &plot, "a", format), cx);
    fclose(file);
    render(cx, format);
}

static void memory_renders(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_priced_plan plans[MS_MAX_PLOT_PLANS];
    for (int i = 0; i < MS_MAX_PLOT_PLANS; i++)
        plans[i] = predicted(cx, 1L << i % 6, "hgx-h100");
    draw_memory(cx, plans, 1, MS_PICTURE_PNG);
    draw_memory(cx, plans, MS_MAX_PLOT_PLANS, MS_PICTURE_SVG);
    plans[1] = predicted(cx, 2, "hgx-h200");
    plans[1].name = NULL;
    draw_memory(cx, plans, 2, MS_PICTURE_PDF);
}

static void draw_curve(ms_ctx *cx, const ms_memory_curve *curve, ms_picture_format format)
{
    FILE *file = create("a.dat");
    ms_memory_curve_write_data(file, curve);
    fclose(file);
    file = create("a.gp");
    ASSERT_OK(ms_memory_curve_write_script(cx, file, curve, "a", format), cx);
    fclose(file);
    render(cx, format);
}

/* The plot of memory over time, with and without the boxes of actions, and with a
 * single sample. */
static void memory_over_time_renders(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of(8, 2, "hgx-h100");
    ms_workload *workload;
    ms_planned planned;
    ms_memory_curve curve;
    ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
    ms_planned_open(cx, workload, &plan, &planned);
    ms_simulate_options options = {.engine = MS_ENGINE_EVENT};
    ASSERT_OK(ms_memory_curve_make(cx, &planned, &options, -1, &curve), cx);
    draw_curve(cx, &curve, MS_PICTURE_PNG);
    curve.num_boxes = 0;
    draw_curve(cx, &curve, MS_PICTURE_SVG);
    curve.num_samples = 1; /* a curve of only the sample at the start */
    curve.peak = 0;
    draw_curve(cx, &curve, MS_PICTURE_PDF);
    ms_workload_close(workload);
}

/* ---- scaling ---- */

static void draw_scaling(ms_ctx *cx, const ms_scaling *scaling, ms_picture_format format)
{
    FILE *file = create("a.dat");
    ms_scaling_write_data(file, scaling);
    fclose(file);
    file = create("a.gp");
    ASSERT_OK(ms_scaling_write_script(cx, file, scaling, "a", format), cx);
    fclose(file);
    render(cx, format);
}

static void scaling_renders(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_scaling_point points[3];
    for (int i = 0; i < 3; i++) {
        ms_priced_plan made = predicted(cx, 1L << i, "hgx-h100");
        points[i] = (ms_scaling_point){
            .gpus = made.plan->gpus,
            .global_batch = made.plan->global_batch,
            .best = {.found = true, .plan = *made.plan, .prediction = made.prediction}};
    }
    ms_scaling scaling = {.arena = cx->arena,
                          .model = "8b",
                          .device = "H100",
                          .sequence_length = 8192,
                          .limits = "",
                          .num_points = 1,
                          .points = points};
    draw_scaling(cx, &scaling, MS_PICTURE_PNG);
    scaling.num_points = 3;
    draw_scaling(cx, &scaling, MS_PICTURE_SVG);
    points[0].best.found = points[2].best.found = false;
    points[0].best.reason = points[2].best.reason = "no legal plan";
    draw_scaling(cx, &scaling, MS_PICTURE_PDF);
}

static void what_gnuplot_cannot_read_is_told(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    FILE *file = create("a.gp");
    fputs("x = 1\nset nonsense x\n", file);
    fclose(file);
    bool found;
    FILE *out = tmpfile();
    ms_status status = ms_gnuplot_run(cx, "a.gp", fileno(out), &found);
    fclose(out);
    ASSERT_INT(remove("a.gp"), 0);
    if (!found)
        skip();
    ASSERT_INT(status, MS_EIO);
    assert_non_null(strstr(test_messages(cx), "line 2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timelines_render),
        cmocka_unit_test(pairs_render_above_each_other),
        cmocka_unit_test(memory_renders),
        cmocka_unit_test(memory_over_time_renders),
        cmocka_unit_test(scaling_renders),
        cmocka_unit_test(what_gnuplot_cannot_read_is_told),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
