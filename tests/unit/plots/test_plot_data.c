/* The data of plots: the boxes of a timeline are the replayed actions, the bars of
 * memory are the prediction, and texts are quoted for gnuplot. */
#include "plots/caption.h"
#include "plots/memory_data.h"
#include "plots/timeline_data.h"
#include "tests/test.h"

static ms_plan plan_of(ms_schedule_kind schedule, long virtual_stages, long zero)
{
    ms_plan plan = ms_plan_default(32);
    plan.stack = "generic";
    plan.model = "8b";
    plan.size[MS_PP] = 4;
    plan.size[MS_DP_SHARD] = 4;
    plan.size[MS_TP] = 2;
    plan.global_batch = 32;
    plan.schedule = schedule;
    plan.virtual_stages = virtual_stages;
    plan.zero = zero;
    plan.sequence_parallel = true;
    return plan;
}

static void simulate_timeline(ms_ctx *cx, const ms_plan *plan,
                              const ms_simulate_options *options, ms_timeline *timeline)
{
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_plan_check(cx, plan, workload->model, MS_NOWHERE), cx);
    ms_planned *planned = MS_NEW(cx->arena, ms_planned);
    ms_planned_open(cx, workload, plan, planned);
    ASSERT_OK(ms_timeline_make(cx, planned, options, timeline), cx);
    ms_workload_close(workload);
}

static void make_timeline(ms_ctx *cx, const ms_plan *plan, ms_timeline *timeline)
{
    simulate_timeline(cx, plan, &(ms_simulate_options){0}, timeline);
}

static void check_lane(const ms_timeline *t, int lane)
{
    double end_s = 0.0, busy_s = 0.0, last_s = 0.0;
    long actions = 0;
    for (long i = 0; i < t->num_boxes; i++) {
        const ms_box *box = &t->boxes[i];
        if (box->lane != lane)
            continue;
        bool is_action = box->kind <= MS_BOX_WEIGHT;
        assert_true(box->end_s > box->start_s && box->end_s <= t->step_s * (1.0 + 1e-12));
        ASSERT_INT(box->microbatch >= 0, is_action);
        actions += is_action;
        if (is_action)
            busy_s += box->end_s - box->start_s;
        if (box->half == MS_BOX_COMMUNICATION)
            continue;
        assert_true(box->start_s >= end_s - 1e-9);
        end_s = box->end_s;
        if (box->kind == MS_BOX_OPTIMIZER)
            last_s = box->end_s;
    }
    ASSERT_NEAR(busy_s, t->prediction.stages[lane].busy_s, 1e-9);
    ASSERT_NEAR(last_s, t->simulation.actors[t->simulation.fold.class_of[8 * lane]].end_s,
                1e-12);
    ASSERT_INT(actions, 2 * ms_plan_microbatches(t->plan) * t->num_chunks);
}

static void a_timeline_is_the_replay(void **state)
{
    (void)state;
    const struct {
        ms_schedule_kind schedule;
        long virtual_stages, zero;
    } cases[] = {
        {MS_1F1B, 1, 1}, {MS_GPIPE, 1, 0}, {MS_INTERLEAVED, 2, 1}, {MS_1F1B, 1, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = plan_of(cases[i].schedule, cases[i].virtual_stages, cases[i].zero);
        ms_timeline timeline;
        make_timeline(cx, &plan, &timeline);
        ASSERT_INT(timeline.num_lanes, 4);
        for (int lane = 0; lane < 4; lane++)
            check_lane(&timeline, lane);
        ASSERT_NEAR(timeline.step_s, timeline.prediction.step_s, 1e-12);
        ASSERT_NEAR(timeline.mfu_frac, timeline.prediction.mfu_frac, 1e-12);
        ASSERT_NEAR(timeline.bubble_s, timeline.prediction.bubble_s, 1e-9);
    }
}

/* A timeline with one slow rank shows the slow rank's pipeline and the ranks that
 * wait for it, not other ranks of the same stages. */
static void a_slow_pipeline_is_shown(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of(MS_1F1B, 1, 1);
    plan.global_batch = 32;
    ms_simulate_options options = {.num_slow = 1, .slow = {{.rank = 11, .factor = 2.0}}};
    ms_timeline sound, slow;
    simulate_timeline(cx, &plan, &(ms_simulate_options){0}, &sound);
    simulate_timeline(cx, &plan, &options, &slow);
    assert_true(slow.step_s > 1.2 * sound.step_s && slow.mfu_frac < sound.mfu_frac);
    double last_s[4] = {0};
    for (long i = 0; i < slow.num_boxes; i++) {
        const ms_box *box = &slow.boxes[i];
        if (box->kind == MS_BOX_BACKWARD && box->end_s > last_s[box->lane])
            last_s[box->lane] = box->end_s;
    }
    for (int lane = 0; lane < 4; lane++)
        assert_true(last_s[lane] > 0.7 * slow.step_s);
}

/* A pair (forward and backward run together) is drawn as two boxes at one time, one
 * above the other. */
static void pairs_are_two_boxes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of(MS_DUALPIPE, 1, 1);
    plan.global_batch = 64;
    ms_timeline t;
    make_timeline(cx, &plan, &t);
    long pairs = 0;
    for (long i = 0; i + 1 < t.num_boxes; i++) {
        const ms_box *upper = &t.boxes[i], *lower = &t.boxes[i + 1];
        if (upper->half != MS_BOX_UPPER)
            continue;
        pairs++;
        ASSERT_INT(lower->half, MS_BOX_LOWER);
        ASSERT_INT(upper->kind, MS_BOX_FORWARD);
        ASSERT_INT(lower->kind, MS_BOX_BACKWARD);
        assert_true(upper->start_s == lower->start_s && upper->end_s == lower->end_s);
        assert_true(upper->chunk != lower->chunk);
    }
    assert_true(pairs > 10);
}

/* Rows of a gnuplot data file are numbers and quoted texts between tabs, with the same
 * number of columns throughout a block. */
static void data_files_are_tables(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of(MS_1F1B, 1, 1);
    ms_priced_plan one = {.name = "odd \"name\"\\", .plan = &plan};
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
    one.workload = workload;
    ASSERT_OK(ms_predict(cx, workload, &plan, &one.prediction), cx);
    ms_priced_plan two[] = {one, one};
    FILE *file = tmpfile();
    ms_memory_plot_write_data(file, &(ms_memory_plot){cx->arena, 2, two});
    char *text = ms_arena_strdup(cx->arena, test_read_back(cx->arena, file));
    int bars = 0, plans = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        if (line[0] == '#')
            continue;
        int tabs = 0, quotes = 0;
        for (const char *c = line; *c != '\0'; c++) {
            tabs += *c == '\t';
            quotes += *c == '"';
        }
        bars += tabs == 5 + MS_NUM_MEMORY_CATEGORIES && quotes == 0;
        plans += tabs == 3 && quotes == 2;
    }
    ASSERT_INT(bars, 8);
    ASSERT_INT(plans, 2);
    ms_workload_close(workload);
}

static void texts_of_scripts_are_escaped(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    FILE *file = tmpfile();
    ms_script_text(file, "a", "dp_shard 16 'x' ^{2} \\n@&~\n");
    ms_script_number(file, "b", 0.1);
    ASSERT_TEXT(test_read_back(cx->arena, file),
                "a = 'dp\\_shard 16 ''x'' \\^\\{2\\} \\\\n\\@\\&\\~ '\nb = 0.1\n");
    file = tmpfile();
    ms_data_text(file, "one\ntwo \"x\\\t");
    ASSERT_TEXT(test_read_back(cx->arena, file), "\"one\\ntwo _x__\"");
}

static void formats_are_endings(void **state)
{
    (void)state;
    ASSERT_INT(ms_picture_format_find("a.png"), MS_PICTURE_PNG);
    ASSERT_INT(ms_picture_format_find("b/a.b.svg"), MS_PICTURE_SVG);
    ASSERT_INT(ms_picture_format_find("a.pdf"), MS_PICTURE_PDF);
    ASSERT_INT(ms_picture_format_find("a.jpg"), -1);
    ASSERT_INT(ms_picture_format_find("png"), -1);
    ASSERT_INT(ms_picture_format_find("a.png/b"), -1);
}

static void captions_are_short(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of(MS_1F1B, 1, 1);
    ASSERT_TEXT(ms_caption_axes(cx->arena, &plan), "pp 4 · dp_shard 4 · tp 2");
    ASSERT_TEXT(ms_caption_wrap(cx->arena, "pp 4 · dp_shard 4 · tp 2", 18),
                "pp 4 · dp_shard 4\ntp 2");
    ASSERT_TEXT(ms_caption_wrap(cx->arena, "pp 4 · dp_shard 4 · tp 2", 1),
                "pp 4\ndp_shard 4\ntp 2");
    ASSERT_TEXT(ms_caption_name(cx->arena, "a/b/plan.json"), "plan");
    ASSERT_TEXT(ms_caption_name(cx->arena, "plan.old"), "plan.old");
    ASSERT_TEXT(ms_time_unit_of(0.5).name, "ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timeline_is_the_replay),
        cmocka_unit_test(a_slow_pipeline_is_shown),
        cmocka_unit_test(pairs_are_two_boxes),
        cmocka_unit_test(data_files_are_tables),
        cmocka_unit_test(texts_of_scripts_are_escaped),
        cmocka_unit_test(formats_are_endings),
        cmocka_unit_test(captions_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
