/* An interrupt of `run --replay`: ranks that have finished are reported, the one at work is
 * named. */
#include "cli/cmd/run_replay.h"
#include "exec/backends/modelled.h"
#include "sim/step/prediction.h"
#include "tests/support/run_plan.h"

#include "tests/test.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define NUM_STEPS 3

static volatile int interrupted;
static bool interrupts; /* whether the end of rank 0's last step interrupts */

static void show_progress(void *state, const ms_run_position *at)
{
    (void)state;
    bool ended = at->num_actions_done == at->num_actions && !isnan(at->loss);
    if (interrupts && ended && at->step == NUM_STEPS - 1)
        interrupted = 1;
}

/* Replays both stages of a small plan; reads the JSON that is written. */
static ms_jdoc *replay(ms_ctx *cx, ms_status want, ms_jval *root)
{
    char path[] = "/tmp/meshsim-replay-XXXXXX";
    ms_run_opened opened;
    ms_jdoc *doc;
    ms_plan plan = ms_run_base_plan();
    plan.gpus = plan.size[MS_PP] = 2;
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_runner_options how = ms_run_options(model, &plan, MS_REAL_FP32);
    how.num_steps = NUM_STEPS;
    how.first_recorded_step = 1;
    how.wants_weights = how.wants_gradients = how.wants_updated = false;
    how.interrupted = &interrupted;
    how.progress = show_progress;
    (void)close(mkstemp(path));
    ASSERT_OK(ms_run_open(cx, model, &plan, "meshsim", &opened), cx);
    ms_prediction *prediction = MS_NEW(cx->arena, ms_prediction);
    (void)ms_predict_planned(cx, opened.planned, prediction);
    const ms_args args = {.common = {.json = true, .output = path}};
    const ms_run_flags flags = {.replay = "stages", .force = true};
    const ms_run_choice choice = {.backend = &ms_backend_modelled};
    ms_status status = ms_run_replay(cx, &(ms_run_prepared){.args = &args,
                                                            .flags = &flags,
                                                            .plan = &plan,
                                                            .planned = opened.planned,
                                                            .prediction = prediction,
                                                            .world = opened.world,
                                                            .how = &how,
                                                            .choice = &choice});
    ASSERT_INT(status, want);
    ms_run_close(&opened);
    ASSERT_OK(ms_json_load(cx, path, &doc, root), cx);
    (void)unlink(path);
    return doc;
}

static ms_jval at(ms_ctx *cx, ms_jval object, const char *key)
{
    ms_jval value = {0};
    assert_true(ms_json_member(cx, object, key, &value));
    return value;
}

/* A number, NaN: null. */
static double number(ms_ctx *cx, ms_jval object, const char *key)
{
    double value = NAN;
    ms_jval field = at(cx, object, key);
    if (!ms_json_is_null(field))
        ASSERT_OK(ms_json_number(cx, field, -HUGE_VAL, HUGE_VAL, &value), cx);
    return value;
}

static void ranks_before_an_interrupt_are_reported(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_jval root;
    interrupted = 0;
    interrupts = true;
    ms_jdoc *doc = replay(cx, MS_EINTERRUPTED, &root);
    ASSERT_TEXT(cx->first->message,
                "interrupted while rank 1 executed, after 1 replayed rank");
    ASSERT_NEAR(number(cx, root, "interrupted_rank"), 1.0, 0.0);
    ASSERT_INT(ms_json_length(at(cx, root, "ranks")), 1);
    ms_jval rank = ms_json_element(cx, at(cx, root, "ranks"), 0);
    ASSERT_NEAR(number(cx, rank, "rank"), 0.0, 0.0);
    ASSERT_NEAR(number(cx, rank, "pipeline_ranks_alike"), 1.0, 0.0);
    assert_true(number(cx, rank, "step_alone_s") > 0.0);
    assert_true(number(cx, root, "step_s") > 0.0);
    ms_json_close(doc);
}

static void an_interrupt_at_once_leaves_no_rank(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_jval root;
    interrupted = 1;
    ms_jdoc *doc = replay(cx, MS_EINTERRUPTED, &root);
    ASSERT_NEAR(number(cx, root, "interrupted_rank"), 0.0, 0.0);
    ASSERT_INT(ms_json_length(at(cx, root, "ranks")), 0);
    assert_true(isnan(number(cx, root, "step_s")));
    ms_json_close(doc);
}

static void without_an_interrupt_all_are_reported(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_jval root;
    interrupted = 0;
    interrupts = false;
    ms_jdoc *doc = replay(cx, MS_OK, &root);
    assert_true(isnan(number(cx, root, "interrupted_rank")));
    ASSERT_INT(ms_json_length(at(cx, root, "ranks")), 2);
    ms_json_close(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_before_an_interrupt_are_reported),
        cmocka_unit_test(an_interrupt_at_once_leaves_no_rank),
        cmocka_unit_test(without_an_interrupt_all_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
