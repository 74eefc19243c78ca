/* The best job by each objective against brute force: all plans of small spaces are
 * replayed, and the campaign of each is reckoned. */
#include "sim/planning/objective.h"
#include "tests/test.h"

#include <math.h>

#define MAX_PLANS 20000
#define NUM_JOBS  3

/* Choices that are fixed, so that brute force takes no longer. */
static const char *const fixed[][3] = {{"zero=1", "recompute=full", "async=off"},
                                       {"tp=2", "zero=2", "async=off"},
                                       {"pp=1", "recompute=none", "async=off"},
                                       {"dp_replicate=1", "zero=3", "async=on"}};
#define NUM_FIXED (sizeof fixed / sizeof *fixed)

static const long gpus_of[NUM_JOBS] = {2, 4, 8};

typedef struct studied {
    ms_ctx *cx;
    ms_plan_limits limits;
    ms_campaign_question campaign;
    ms_best_question jobs[NUM_JOBS];
    ms_space spaces[NUM_JOBS];
} studied;

static studied study(ms_ctx *cx, const char *model, unsigned long seed)
{
    studied s = {.cx = cx,
                 .limits = {.memory = {.min_probability = seed % 2 == 0 ? 0.95 : 0.0}},
                 .campaign = ms_campaign_question_empty()};
    s.campaign.given.tokens = 3e11;
    s.campaign.given.gpu_hour_price = 2.5;
    s.campaign.given.gpu_mean_s = 3e5;
    s.campaign.given.repair_s = 8e4;
    for (int i = 0; i < NUM_JOBS; i++) {
        ms_plan base = ms_plan_default(gpus_of[i]);
        base.model = model;
        base.cluster = "hgx-h100";
        base.stack = "megatron";
        base.sequence_length = 4096;
        base.global_batch = 16;
        ms_workload *workload;
        ASSERT_OK(ms_workload_open(cx, &base, &workload), cx);
        s.spaces[i] = ms_space_all(&base, workload->stack);
        s.spaces[i].max_virtual_stages = 1;
        s.spaces[i].max_microbatch = 2;
        for (int k = 0; k < 3; k++)
            ASSERT_OK(ms_space_limit(cx, &s.spaces[i], fixed[seed % NUM_FIXED][k]), cx);
        ms_workload_close(workload);
        s.jobs[i] = (ms_best_question){.base = base};
    }
    return s;
}

/* Points inside `s`, once it is where it stays. */
static void point(studied *s)
{
    for (int i = 0; i < NUM_JOBS; i++) {
        s->jobs[i].limits = &s->limits;
        s->jobs[i].space = &s->spaces[i];
        s->jobs[i].campaign = &s->campaign;
    }
}

/* An objective's value of one plan, written down anew; infinite if it breaks a limit. */
static double value_of(ms_objective objective, const ms_workload *workload,
                       const ms_plan *plan, const ms_prediction *p,
                       const ms_campaign_question *question)
{
    ms_campaign_answer a = ms_campaign_of_plan(question, workload, plan, p);
    const ms_campaign *c = &a.campaign;
    if (c->elapsed_s > question->deadline_s || c->cost > question->budget)
        return INFINITY;
    double tokens_a_step = (double)(plan->global_batch * plan->sequence_length);
    switch (objective) {
    case MS_OBJECTIVE_TIME:
        return p->step_s / tokens_a_step;
    case MS_OBJECTIVE_COST:
        return c->cost;
    case MS_OBJECTIVE_GPUS:
        return (double)plan->gpus;
    case MS_OBJECTIVE_ENERGY:
        return c->energy_kwh;
    case MS_OBJECTIVE_MEMORY:
        return ms_needed_bytes(&workload->memory, p->peak_bytes, p->outside_bytes);
    case MS_OBJECTIVE_GOODPUT:
    case MS_NUM_OBJECTIVES:
    default:
        return c->elapsed_s / (c->num_steps * tokens_a_step);
    }
}

/* The least values of all plans of a job, into least[objective]; returns the plans. */
static int brute_force(const studied *s, int job, double least[MS_NUM_OBJECTIVES])
{
    ms_ctx *cx = s->cx;
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, &s->jobs[job].base, &workload), cx);
    ms_workload_set_memory_rule(workload, &s->limits.memory);
    ms_space space = s->spaces[job];
    space.stack = workload->stack;
    ms_search_options options = {
        .num_best = MAX_PLANS, .variants = true, .num_threads = 1, .exhaustive = true};
    ms_search_result all;
    ms_status status = ms_search(cx, workload, &space, &options, &all);
    assert_true(status == MS_OK || status == MS_ENOFIT);
    assert_true(all.num_found < MAX_PLANS);
    for (int i = 0; i < all.num_found; i++) {
        ms_prediction p;
        ASSERT_OK(ms_predict(cx, workload, &all.found[i].plan, &p), cx);
        for (int o = 0; o < MS_NUM_OBJECTIVES; o++)
            least[o] = fmin(least[o], value_of((ms_objective)o, workload,
                                               &all.found[i].plan, &p, &s->campaign));
    }
    ms_workload_close(workload);
    return all.num_found;
}

static int num_chosen, num_none, num_studied;

static void compare(const studied *s, int seed)
{
    double least[MS_NUM_OBJECTIVES];
    for (int o = 0; o < MS_NUM_OBJECTIVES; o++)
        least[o] = INFINITY;
    int num_plans = 0;
    for (int i = 0; i < NUM_JOBS; i++)
        num_plans += brute_force(s, i, least);
    num_studied += num_plans;
    for (int o = 0; o < MS_NUM_OBJECTIVES; o++) {
        ms_objective_question question = {.objective = (ms_objective)o,
                                          .num_jobs = NUM_JOBS,
                                          .jobs = s->jobs,
                                          .num_threads = 2};
        ms_objective_answer answer;
        ASSERT_OK(ms_objective_find(s->cx, &question, &answer), s->cx);
        assert_true(answer.optimal);
        double got = answer.best < 0 ? (double)INFINITY : answer.jobs[answer.best].value;
        bool close = got == least[o] || fabs(got / least[o] - 1.0) < 1e-12;
        if (!close)
            fail_msg("seed %d, least %s: %.17g, by brute force %.17g", seed,
                     ms_objective_names[o], got, least[o]);
        if (answer.best < 0)
            num_none++;
        else
            num_chosen++;
    }
}

static void objectives_equal_brute_force(void **state)
{
    (void)state;
    num_chosen = num_none = num_studied = 0;
    for (unsigned long seed = 1; seed <= 6; seed++) {
        ms_ctx *cx = test_cx();
        studied s = study(cx, seed % 3 == 0 ? "llama-3.2-3b" : "llama-3.2-1b", seed);
        point(&s);
        /* limits that none, some, or all numbers of GPUs keep */
        if (seed % 3 == 1)
            s.campaign.deadline_s = 86400.0 * 12.0 * (double)seed;
        if (seed % 3 == 2)
            s.campaign.budget = 1400.0 * (double)seed;
        compare(&s, (int)seed);
    }
    assert_true(num_chosen > 0 && num_none > 0 && num_studied > 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(objectives_equal_brute_force)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
