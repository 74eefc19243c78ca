/* Choices among points of a sweep, and answers kept in a file. */
#include "sim/planning/plan_sweep.h"
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- choices ---- */

typedef struct point {
    long gpus;
    double elapsed_s, cost, gpu_hours;
} point;

static ms_plan_sweep sweep_of(ms_ctx *cx, const point *points, int num, double deadline_s)
{
    ms_plan_sweep sweep = {.num_tasks = 1,
                           .per_task = num,
                           .answered = MS_NEW_ARRAY(cx->arena, num, bool),
                           .answers = MS_NEW_ARRAY(cx->arena, num, ms_best_plan)};
    for (int i = 0; i < num; i++) {
        ms_best_plan *a = &sweep.answers[i];
        sweep.answered[i] = true;
        a->found = a->has_campaign = true;
        a->plan.gpus = points[i].gpus;
        a->campaign.deadline_s = deadline_s;
        a->campaign.budget = (double)NAN;
        a->campaign.campaign = (ms_campaign){.elapsed_s = points[i].elapsed_s,
                                             .cost = points[i].cost,
                                             .gpu_hours = points[i].gpu_hours,
                                             .goodput_frac = 0.9};
    }
    return sweep;
}

static void choices_keep_the_deadline(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const point points[] = {
        {8, 90, 1, 1}, {16, 50, 3, 3}, {32, 30, 5, 5}, {32, 40, 6, 6}, {64, 20, 9, 9}};
    ms_plan_sweep sweep = sweep_of(cx, points, 5, 60);
    ms_plan_sweep_choice c = ms_plan_sweep_choose(cx->arena, &sweep, 0);
    ASSERT_INT(c.fastest, 4);
    ASSERT_INT(c.cheapest, 1);
    ASSERT_INT(c.fewest, 1);
    ASSERT_INT(c.num_pareto, 3); /* point 3 is slower and dearer than point 2 */
    ASSERT_INT(c.pareto[0], 4);
    ASSERT_INT(c.pareto[1], 2);
    ASSERT_INT(c.pareto[2], 1);
    sweep.answered[4] = false;
    ASSERT_INT(ms_plan_sweep_choose(cx->arena, &sweep, 0).fastest, 2);
    sweep = sweep_of(cx, points, 5, 10);
    c = ms_plan_sweep_choose(cx->arena, &sweep, 0);
    ASSERT_INT(c.fastest, -1);
    ASSERT_INT(c.cheapest, -1);
    ASSERT_INT(c.num_pareto, 0);
}

/* Money is not compared with GPU-hours: a point without a price is not the cheapest. */
static void unknown_prices_are_not_compared(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const double none = (double)NAN;
    point points[] = {{8, 90, none, 1}, {8, 80, 7, 3}, {8, 70, 9, 2}};
    ms_plan_sweep sweep = sweep_of(cx, points, 3, none);
    ms_plan_sweep_choice c = ms_plan_sweep_choose(cx->arena, &sweep, 0);
    ASSERT_INT(c.cheapest, 1);
    ASSERT_INT(c.num_pareto, 2);
    points[1].cost = points[2].cost = none;
    sweep = sweep_of(cx, points, 3, none);
    ASSERT_INT(ms_plan_sweep_choose(cx->arena, &sweep, 0).cheapest, 0);
}

/* ---- answers in a file ---- */

#define STATE_FILE "test_plan_sweep.state"
#define NUM_JOBS   5

typedef struct job_case {
    ms_plan_limits limits;
    ms_best_question questions[NUM_JOBS];
    ms_plan_sweep sweep;
} job_case;

/* Jobs on 1, 2 ... 16 GPUs; the second is too large for its GPUs. */
static job_case *make_jobs(ms_ctx *cx)
{
    job_case *jobs = MS_NEW(cx->arena, job_case);
    for (int i = 0; i < NUM_JOBS; i++) {
        ms_plan base = ms_plan_default(1L << i);
        base.model = i == 1 ? "405b" : "llama-3.2-1b";
        base.cluster = "hgx-h100";
        base.stack = "megatron";
        base.sequence_length = 4096;
        base.global_batch = 16;
        jobs->questions[i] = (ms_best_question){.base = base, .limits = &jobs->limits};
    }
    jobs->sweep = (ms_plan_sweep){1, NUM_JOBS, jobs->questions,
                                  MS_NEW_ARRAY(cx->arena, NUM_JOBS, bool),
                                  MS_NEW_ARRAY(cx->arena, NUM_JOBS, ms_best_plan)};
    return jobs;
}

typedef struct stopping {
    ms_plan_sweep *sweep;
    ms_plan_sweep_state *state;
    volatile int stop;
    int after, num;
} stopping;

static ms_status keep_answer(void *payload, int index, const ms_best_plan *answer)
{
    stopping *s = payload;
    s->sweep->answered[index] = true;
    s->stop = s->stop || ++s->num == s->after;
    return ms_plan_sweep_state_add(s->state, index, answer);
}

/* Answers with the file until `after` answers are there; returns how many were known. */
static int answer_until(ms_ctx *cx, ms_plan_sweep *sweep, int after, ms_status expected)
{
    stopping s = {.sweep = sweep, .after = after};
    int num_known, num_answered;
    ASSERT_OK(ms_plan_sweep_state_open(cx, STATE_FILE, sweep, &s.state, &num_known), cx);
    bool known[NUM_JOBS];
    memcpy(known, sweep->answered, sizeof known);
    ms_best_batch batch = {.num = NUM_JOBS,
                           .questions = sweep->questions,
                           .known = known,
                           .num_threads = 2,
                           .interrupted = &s.stop,
                           .answered = keep_answer,
                           .payload = &s};
    ASSERT_INT(ms_best_batch_answer(cx, &batch, sweep->answers, &num_answered), expected);
    ms_plan_sweep_state_close(s.state);
    return num_known;
}

static void an_interrupted_sweep_goes_on(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    (void)remove(STATE_FILE);
    ms_plan_sweep whole = make_jobs(cx)->sweep, first = make_jobs(cx)->sweep,
                  second = make_jobs(cx)->sweep;
    answer_until(cx, &whole, 0, MS_OK);
    (void)remove(STATE_FILE);
    answer_until(cx, &first, 2, MS_EINTERRUPTED);
    FILE *file = fopen(STATE_FILE, "a"); /* as a kill in the middle of a line leaves it */
    fputs("{\"question\": \"12", file);
    fclose(file);
    int num_known = answer_until(cx, &second, 0, MS_OK);
    assert_true(num_known >= 2 && num_known < NUM_JOBS);
    for (int i = 0; i < NUM_JOBS; i++) {
        const ms_best_plan *a = &whole.answers[i], *b = &second.answers[i];
        assert_true(a->found == b->found && a->optimal == b->optimal);
        ASSERT_NEAR(a->prediction.step_s, b->prediction.step_s, 0);
        ASSERT_NEAR(a->prediction.peak_bytes, b->prediction.peak_bytes, 0);
        assert_true(a->found == (i != 1));
    }
    assert_string_equal(whole.answers[1].reason, second.answers[1].reason);
    ms_plan_sweep third = make_jobs(cx)->sweep;
    ASSERT_INT(answer_until(cx, &third, 0, MS_OK), NUM_JOBS);
    ASSERT_INT(remove(STATE_FILE), 0);
}

static void answers_are_of_all_choices_of_a_job(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    (void)remove(STATE_FILE);
    ms_plan_sweep whole = make_jobs(cx)->sweep;
    answer_until(cx, &whole, 0, MS_OK);
    job_case *others = make_jobs(cx);
    others->questions[0].base.lora_rank = 8;
    others->questions[2].base.optimizer = MS_OPTIMIZER_MUON;
    ASSERT_INT(answer_until(cx, &others->sweep, 0, MS_OK), NUM_JOBS - 2);
    ASSERT_INT(others->sweep.answers[0].plan.lora_rank, 8);
    ASSERT_INT(remove(STATE_FILE), 0);
}

static void other_files_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"[1]\n", "{\"question\": \"1\"}\n", "no JSON\n",
                                        "\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ms_ctx *cx = test_cx();
        ms_plan_sweep sweep = make_jobs(cx)->sweep;
        FILE *file = fopen(STATE_FILE, "w");
        fputs(texts[i], file);
        fclose(file);
        ms_plan_sweep_state *kept;
        int num_known;
        ASSERT_INT(ms_plan_sweep_state_open(cx, STATE_FILE, &sweep, &kept, &num_known),
                   MS_EINPUT);
        assert_non_null(strstr(test_messages(cx), STATE_FILE ", line 1"));
    }
    ASSERT_INT(remove(STATE_FILE), 0);
    ms_ctx *cx = test_cx();
    ms_plan_sweep sweep = make_jobs(cx)->sweep;
    ms_plan_sweep_state *kept;
    int num_known;
    ASSERT_INT(
        ms_plan_sweep_state_open(cx, "/no/such/folder/a", &sweep, &kept, &num_known),
        MS_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_keep_the_deadline),
        cmocka_unit_test(unknown_prices_are_not_compared),
        cmocka_unit_test(an_interrupted_sweep_goes_on),
        cmocka_unit_test(answers_are_of_all_choices_of_a_job),
        cmocka_unit_test(other_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
