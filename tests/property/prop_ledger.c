/* What the runner allocates is what the memory model says: for every rank, category and action, to the byte. */
#include "tests/support/random_plans.h"
#include "tests/support/run_plan.h"
#include "tests/test.h"

#include <stdlib.h>

#define NUM_MODELS (MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE)

static ms_make_model *model_of(int i)
{
    return i < MS_NUM_SMALL_DENSE ? ms_small_dense[i]
                                  : ms_small_moe[i - MS_NUM_SMALL_DENSE];
}

typedef struct comparison {
    ms_ctx *cx;
    const ms_simulation *simulation;
    const ms_rank_outcome *rank;
    const char *what;
    double worst_bytes;
} comparison;

static void compare(comparison *c, const ms_ledger_sample *got,
                    const ms_memory_sample *want, const char *when)
{
    for (int part = 0; part < MS_MEMORY_CONTEXT; part++) {
        double off = fabs(got->bytes[part] - want->bytes[part]);
        if (off > c->worst_bytes) {
            c->worst_bytes = off;
            c->what = ms_arena_printf(
                c->cx->arena, "rank %ld, action %d, %s: %s %.0f bytes, predicted %.1f",
                c->rank->rank, got->action, when, ms_memory_part_names[part],
                got->bytes[part], want->bytes[part]);
        }
    }
}

/* Of an instant only the sum: several may be as high. */
static void compare_total(comparison *c, const ms_ledger_sample *got,
                          const ms_memory_sample *want)
{
    double got_bytes = 0.0, want_bytes = 0.0;
    for (int part = 0; part < MS_MEMORY_CONTEXT; part++) {
        got_bytes += got->bytes[part];
        want_bytes += want->bytes[part];
    }
    if (fabs(got_bytes - want_bytes) > c->worst_bytes) {
        c->worst_bytes = fabs(got_bytes - want_bytes);
        c->what = ms_arena_printf(
            c->cx->arena, "rank %ld, action %d, at its peak: %.0f bytes, predicted %.1f",
            c->rank->rank, got->action, got_bytes, want_bytes);
    }
}

/* The simulation has one sample for a forward (what is left after it), two for a backward: its peak and what is left. */
static void compare_rank(comparison *c, const ms_schedule *schedule, int pipeline_rank)
{
    const ms_actor *actor = c->simulation->actors;
    while (actor->pipeline_rank != pipeline_rank)
        actor++;
    int first = schedule->first_action[pipeline_rank], at = 1;
    int num = schedule->first_action[pipeline_rank + 1] - first;
    ASSERT_INT(c->rank->num_samples, 2 * num);
    for (int i = 0; i < num; i++) {
        int kind = schedule->actions[first + i].kind;
        if (kind != MS_FORWARD) {
            if (kind != MS_OVERLAP)
                compare_total(c, &c->rank->samples[2 * i], &actor->samples[at]);
            at++;
        }
        compare(c, &c->rank->samples[2 * i + 1], &actor->samples[at++], "after it");
    }
}

static bool divides(const ms_planned *p, const ms_part *part)
{
    return fmod(part->dense_params, p->pipeline.shards.dense) == 0.0 &&
           fmod(part->expert_params, p->pipeline.shards.expert) == 0.0;
}

/* Shards of equal size: predictions know no padding. */
static bool all_divide(const ms_model *model, const ms_planned *p)
{
    bool all = divides(p, &p->parts.embed) && divides(p, &p->parts.head);
    for (int kind = 0; kind < model->num_kinds; kind++)
        for (int mode = 0; mode < MS_NUM_RECOMPUTE; mode++)
            all = all && divides(p, &p->parts.layer[kind][mode]);
    return all;
}

static bool agrees(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                   int *num_compared)
{
    ms_run_opened opened;
    ms_runner_options options = ms_run_options(model, plan, MS_REAL_FP32);
    ms_outcome out;
    ms_simulation simulation;
    ms_simulate_options simulate = {.engine = MS_ENGINE_REPLAY,
                                    .detail = MS_DETAIL_ACTION};
    options.balanced_routing = true;
    ASSERT_OK(ms_run_open(cx, model, plan, "meshsim", &opened), cx);
    if (!all_divide(model, opened.planned)) {
        ms_run_close(&opened);
        return true;
    }
    (*num_compared)++;
    ASSERT_OK(ms_simulate(cx, opened.planned, &simulate, &simulation), cx);
    ASSERT_OK(ms_run_opened_plan(cx, &opened, &ms_backend_loop, &options, &out), cx);
    comparison c = {.cx = cx, .simulation = &simulation};
    for (long i = 0; i < out.num_ranks; i++) {
        c.rank = &out.ranks[i];
        compare_rank(&c, opened.planned->schedule,
                     (int)opened.world->places[out.ranks[i].rank].pp);
    }
    ms_run_close(&opened);
    if (c.worst_bytes > 1e-3)
        printf("%s, %s, %s: %s\n", model->name, ms_plan_schedule_name(plan),
               ms_plan_text(cx->arena, plan), c.what);
    return c.worst_bytes <= 1e-3;
}

static void the_ledger_is_what_was_predicted(void **state)
{
    (void)state;
    const char *asked = getenv("MESHSIM_RUNS");
    int num = asked != NULL ? atoi(asked) : 60, num_wrong = 0, num_compared = 0;
    ms_rng rng = ms_rng_seed(21);
    for (int i = 0; i < num; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = ms_run_model(cx->arena, model_of(i % NUM_MODELS));
        ms_workload workload = {.model = model};
        ms_plan base = ms_run_base_plan();
        ms_plan plan = ms_random_plan(&rng, &workload, &base, 16);
        num_wrong += !agrees(cx, model, &plan, &num_compared);
    }
    ASSERT_INT(num_wrong, 0);
    assert_true(2 * num_compared > num);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ledger_is_what_was_predicted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
