/* Answers of `search --why` about random candidate plans, against brute force: whether
 * the candidate is legal and in the search space, how many plans complete it, which is
 * the best, whether that fits, its rank and its time. Failures name the case and the
 * candidate. */
#include "base/rng.h"
#include "sim/search/why.h"
#include "sim/step/framework_rules.h"

#include "tests/property/search_cases.h"

#include <limits.h>

#define NUM_BEST 10

typedef struct trial {
    ms_ctx *cx;
    ms_workload *workload;
    ms_space space;
    ms_search_result list,
        /* `list`: result of the search; `brute`: result of replaying every plan of the
         * space */
        brute;
    ms_prediction *best; /* the fastest plan; NULL: none fits */
    ms_rng rng;
    const char *text;
    ms_why_question question;
    ms_why why;
} trial;

static const ms_search_options usual = {.num_best = NUM_BEST, .num_threads = 1};

static void wrong(const trial *t, const char *what, double got, double want)
{
    fail_msg("%s on %ld GPUs, \"%s\": %s (%.17g, %.17g); plan %s", t->space.base.model,
             t->space.base.gpus, t->text, what, got, want,
             t->why.has_plan ? ms_plan_text(t->cx->arena, &t->why.plan) : "none");
}

#define EXPECT(t, condition, got, want)                                                  \
    do {                                                                                 \
        if (!(condition))                                                                \
            wrong((t), #condition, (double)(got), (double)(want));                       \
    } while (0)

/* ---- random candidates ---- */

/* Values that a question may give each plan choice; some are illegal or outside of
 * every search space. */
static const long values[MS_NUM_CHOICES][8] = {
    [MS_CHOOSE_PP] = {1, 2, 4, 3, 40},
    [MS_CHOOSE_DP_REPLICATE] = {1, 2, 4},
    [MS_CHOOSE_DP_SHARD] = {1, 2, 4, 8, 16, 5},
    [MS_CHOOSE_CP] = {1, 2, 4},
    [MS_CHOOSE_TP] = {1, 2, 4, 8, 16},
    [MS_CHOOSE_EP] = {1, 2, 4, 3},
    [MS_CHOOSE_ETP] = {1, 2},
    [MS_CHOOSE_MICROBATCH] = {1, 2, 4, 3, 32},
    [MS_CHOOSE_SCHEDULE] = {MS_1F1B, MS_INTERLEAVED, MS_GPIPE},
    [MS_CHOOSE_VIRTUAL_STAGES] = {1, 2, 3, 9, 40},
    [MS_CHOOSE_ZERO] = {1, 2, 3},
    [MS_CHOOSE_RESHARD] = {1},
    [MS_CHOOSE_RECOMPUTE] = {1, 2, 3},
    [MS_CHOOSE_SEQUENCE_PARALLEL] = {1},
    [MS_CHOOSE_ASYNC_TP] = {1},
    [MS_CHOOSE_CP_METHOD] = {MS_CP_RING, MS_CP_ULYSSES},
};

static bool is_tried(int choice)
{
    return ms_plan_fields[choice].search == MS_SEARCH_TRIES;
}

/* A random one of the `values` listed for the plan choice. Choices that are words or
 * switches, and the ZeRO stage, may also get 0. */
static long pick_value(trial *t, int choice)
{
    int num = 0;
    while (num < 8 && values[choice][num] > 0)
        num++;
    bool zero = choice >= MS_CHOOSE_ZERO || choice == MS_CHOOSE_SCHEDULE;
    long at = (long)ms_rng_below(&t->rng, (uint64_t)(num + zero));
    return at < num ? values[choice][at] : 0;
}

static void ask_for(trial *t, int choice, long value)
{
    if (choice == MS_CHOOSE_SCHEDULE && !t->workload->stack->can_schedule[value])
        value = MS_1F1B;
    const char *one = ms_space_choice_text(t->cx->arena, (ms_choice)choice, value);
    t->text = ms_arena_printf(t->cx->arena, "%s%s%s", t->text,
                              t->text[0] == '\0' ? "" : ",", one);
    ASSERT_OK(ms_space_limit(t->cx, &t->question.asked, one), t->cx);
}

static void begin(trial *t, uint64_t seed)
{
    t->rng = ms_rng_seed(seed);
    t->text = "";
    t->question.asked = ms_space_all(&t->space.base, t->workload->stack);
}

static void answer(trial *t)
{
    t->question.text = t->text;
    ASSERT_OK(ms_why_ask(t->cx, t->workload, &t->space, &usual, &t->question, &t->why),
              t->cx);
    ms_why_context known = {t->cx, t->workload, &t->space, &usual, &t->list, t->best};
    ASSERT_OK(ms_why_answer(&known, &t->why), t->cx);
}

/* ---- against brute force ---- */

static ms_search_result all_of(trial *t, const ms_space *space)
{
    ms_search_options options = {.num_best = 1, .num_threads = 1, .exhaustive = true};
    ms_search_result result;
    (void)ms_search(t->cx, t->workload, space, &options, &result);
    return result;
}

static int rank_of(const ms_search_result *list, const ms_plan *plan)
{
    for (int i = 0; i < list->num_found; i++)
        if (ms_plan_equal(&list->found[i].plan, plan))
            return i + 1;
    return 0;
}

static double same_mesh_s(const ms_search_result *list, const ms_plan *plan)
{
    for (int i = 0; i < list->num_found; i++) {
        const ms_plan *one = &list->found[i].plan;
        if (memcmp(one->size, plan->size, sizeof one->size) == 0 && one->ep == plan->ep &&
            one->etp == plan->etp)
            return list->found[i].step_s;
    }
    return INFINITY;
}

static void check_bounds(const trial *t)
{
    const ms_watch *alone = &t->why.alone;
    double step_s = t->why.prediction.step_s;
    EXPECT(t, t->why.mesh_bound_s <= step_s, t->why.mesh_bound_s, step_s);
    EXPECT(t, alone->schedule_bound_s <= step_s, alone->schedule_bound_s, step_s);
    EXPECT(t, alone->sharding_bound_s <= step_s, alone->sharding_bound_s, step_s);
    EXPECT(t, t->why.mesh_bound_s <= alone->schedule_bound_s, t->why.mesh_bound_s,
           alone->schedule_bound_s);
    EXPECT(t,
           fabs(alone->peak_bytes - t->why.prediction.peak_bytes) <=
               1e-12 * alone->peak_bytes,
           alone->peak_bytes, t->why.prediction.peak_bytes);
}

/* Checks that the verdict on a plan that fits has the reason that brute force shows. */
static void check_verdict(trial *t, const ms_found *found)
{
    const ms_why *why = &t->why;
    int rank = rank_of(&t->brute, &why->among.plan);
    double mesh_s = same_mesh_s(&t->brute, &why->plan);
    bool is_late = found->step_s > why->threshold_s || found->step_s > mesh_s;
    EXPECT(t, why->rank == rank, why->rank, rank);
    EXPECT(t, (why->verdict == MS_WHY_LISTED) == (rank > 0), why->verdict, rank);
    if (rank > 0) {
        EXPECT(t, why->among.fate == MS_FATE_REPLAYED, why->among.fate, rank);
        EXPECT(t, !why->mesh_ruled_out, why->mesh_bound_s, why->threshold_s);
    }
    EXPECT(t, why->verdict != MS_WHY_OPEN, why->verdict, rank);
    EXPECT(t, why->verdict != MS_WHY_NO_FIT, why->verdict, rank);
    if (why->verdict == MS_WHY_SLOWER)
        EXPECT(t, is_late, found->step_s, why->threshold_s);
    if (why->verdict == MS_WHY_TIED)
        EXPECT(t, !(found->step_s > mesh_s || found->step_s < mesh_s), found->step_s,
               mesh_s);
    if (why->verdict != MS_WHY_DOMINATED)
        return;
    ms_plan instead = why->plan;
    if (why->among.fate == MS_FATE_ASYNC)
        instead.async_tp = true;
    else
        instead.recompute = MS_RECOMPUTE_NONE, instead.recompute_layers = 0;
    ms_prediction p;
    ASSERT_OK(ms_predict(t->cx, t->workload, &instead, &p), t->cx);
    EXPECT(t, p.step_s <= found->step_s, p.step_s, found->step_s);
    EXPECT(t, p.fits || why->among.fate == MS_FATE_ASYNC, p.peak_bytes, p.capacity_bytes);
}

static void check_inside(trial *t, const ms_search_result *want)
{
    const ms_why *why = &t->why;
    EXPECT(t, why->has_plan && why->excluded == NULL && why->refused == NULL,
           why->verdict, want->num_found);
    EXPECT(t, why->num_plans == want->counts.evaluated, why->num_plans,
           want->counts.evaluated);
    check_bounds(t);
    if (want->num_found == 0) {
        EXPECT(t, why->verdict == MS_WHY_NO_FIT, why->verdict, MS_WHY_NO_FIT);
        EXPECT(t, !why->prediction.fits, why->prediction.peak_bytes, 0);
        EXPECT(t, why->among.plan.gpus > 0 && why->rank == 0, why->rank, 0);
        return;
    }
    const ms_found *found = &want->found[0];
    EXPECT(t, ms_plan_equal(&why->plan, &found->plan), why->alone.step_s, found->step_s);
    EXPECT(t, memcmp(&why->alone.step_s, &found->step_s, sizeof(double)) == 0,
           why->alone.step_s, found->step_s);
    EXPECT(t, fabs(why->prediction.step_s - found->step_s) <= 1e-12 * found->step_s,
           why->prediction.step_s, found->step_s);
    check_verdict(t, found);
}

/* Checks the first value that the answer proposes ("would do: "), if it proposes any:
 * with this value in place of the value asked for, there are legal plans. */
static void check_mend(trial *t, const char *text)
{
    static const char before[] = "would do: ";
    const char *mend = strstr(text, before);
    if (mend == NULL)
        return;
    mend += strlen(before);
    size_t length = strcspn(mend, " "), name = strcspn(mend, "=");
    ms_space mended = t->question.asked;
    for (int i = 0; i < MS_NUM_CHOICES; i++) {
        if (strlen(ms_plan_fields[i].name) != name ||
            strncmp(ms_plan_fields[i].name, mend, name) != 0)
            continue;
        mended.low[i] = 0;
        mended.high[i] = LONG_MAX;
    }
    ASSERT_OK(
        ms_space_limit(t->cx, &mended, ms_arena_strndup(t->cx->arena, mend, length)),
        t->cx);
    mended.max_microbatch = mended.max_virtual_stages = 64;
    ms_search_result all = all_of(t, &mended);
    EXPECT(t, all.counts.evaluated > 0, all.counts.evaluated, 1);
}

static void check_without_plans(trial *t, const ms_plan *complete)
{
    const ms_why *why = &t->why;
    ms_space wide = t->question.asked;
    wide.max_microbatch = wide.max_virtual_stages = 64;
    long num = all_of(t, &wide).counts.evaluated;
    EXPECT(t, why->refused != NULL || why->excluded != NULL, why->verdict, 0);
    if (why->refused != NULL) {
        EXPECT(t, why->verdict == MS_WHY_REFUSED && num == 0, why->verdict, num);
        EXPECT(t, why->refusal != MS_LEGAL && !why->has_plan, why->refusal, 0);
        check_mend(t, why->refused);
    } else {
        EXPECT(t, why->verdict == MS_WHY_OUTSIDE, why->verdict, MS_WHY_OUTSIDE);
        EXPECT(t, why->is_another == (num == 0), why->is_another, num);
        if (why->is_another)
            check_mend(t, why->excluded);
    }
    if (complete == NULL)
        return;
    ms_refusal refusal = ms_plan_refusal(complete, t->workload->model);
    if (refusal == MS_LEGAL && ms_workload_broken_rule(t->workload, complete) != NULL)
        refusal = MS_REFUSE_FRAMEWORK;
    EXPECT(t, why->refusal == refusal, why->refusal, refusal);
}

static void check(trial *t, const ms_plan *complete)
{
    ms_choice empty;
    ms_space both = ms_space_both(&t->space, &t->question.asked, &empty);
    answer(t);
    ms_search_result want = {0};
    if (empty == MS_NUM_CHOICES)
        want = all_of(t, &both);
    if (want.counts.evaluated > 0)
        check_inside(t, &want);
    else
        check_without_plans(t, complete);
}

/* ---- trials ---- */

static const search_case cases[] = {
    {"8b", "generic", "hgx-h100", 8, 16, 0, 1.0, {NULL}},
    {"8b", "megatron", "hgx-h100", 12, 24, 0, 1.0, {"tp<=2", "pp>=2", NULL}},
    {"8b", "torchtitan", "hgx-h100", 8, 8, 0, 1.0, {"cp=1", "zero>=1", NULL}},
    {"qwen3-30b-a3b", "generic", "hgx-h200", 8, 8, 0, 1.0, {"cp=1", NULL}},
    {"llama-3.2-1b", "generic", "hgx-a100-80g", 4, 16, 0, 1.0, {NULL}},
    {"405b", "generic", "hgx-h100", 8, 8, 0, 1.0, {NULL}},
};
#define NUM_CASES TEST_CASES(sizeof cases / sizeof *cases, (size_t)2)

static trial open_trial(const search_case *c)
{
    trial t = {.cx = test_cx()};
    t.workload = open_case(t.cx, c, &t.space);
    t.list = search_with(t.cx, t.workload, &t.space, 1, false);
    t.brute = search_with(t.cx, t.workload, &t.space, 1, true);
    if (t.list.num_found > 0) {
        t.best = MS_NEW(t.cx->arena, ms_prediction);
        ASSERT_OK(ms_predict(t.cx, t.workload, &t.list.found[0].plan, t.best), t.cx);
    }
    return t;
}

/* Opens a trial for each case; all tests share them as their state. */
static int open_trials(void **state)
{
    ms_ctx *cx = test_cx();
    trial *trials = MS_NEW_ARRAY(cx->arena, NUM_CASES, trial);
    for (size_t i = 0; i < NUM_CASES; i++)
        trials[i] = open_trial(&cases[i]);
    *state = trials;
    return 0;
}

static int close_trials(void **state)
{
    trial *trials = *state;
    for (size_t i = 0; i < NUM_CASES; i++)
        ms_workload_close(trials[i].workload);
    return 0;
}

static int count_of(const int verdicts[MS_NUM_WHY_VERDICTS], ms_why_verdict verdict)
{
    return verdicts[verdict];
}

static void some_choices_are_answered_as_brute_force_does(void **state)
{
    trial *trials = *state;
    int verdicts[MS_NUM_WHY_VERDICTS] = {0};
    for (size_t c = 0; c < NUM_CASES; c++) {
        trial *t = &trials[c];
        for (uint64_t seed = 0; seed < TEST_CASES(30, 4); seed++) {
            begin(t, 100 * c + seed);
            uint64_t share = 2 + ms_rng_below(&t->rng, 6);
            for (int i = 0; i < MS_NUM_CHOICES; i++)
                if (is_tried(i) && ms_rng_below(&t->rng, share) == 0)
                    ask_for(t, i, pick_value(t, i));
            check(t, NULL);
            verdicts[t->why.verdict]++;
        }
    }
    for (int i = 0; i < MS_NUM_WHY_VERDICTS; i++)
        if (i != MS_WHY_OPEN && i != MS_WHY_TIED && TEST_CASES(true, false) &&
            count_of(verdicts, (ms_why_verdict)i) == 0)
            fail_msg("no candidate was said to be %s", ms_why_verdict_names[i]);
}

/* Asks about a random plan, legal or not, by giving values to all its choices. */
static ms_plan ask_for_plan(trial *t)
{
    ms_plan plan = ms_space_plan(&t->space, &(ms_mesh_choice){0});
    long chosen[MS_NUM_CHOICES];
    for (int i = 0; i < MS_NUM_CHOICES; i++) {
        bool dense = (i == MS_CHOOSE_EP || i == MS_CHOOSE_ETP) &&
                     t->workload->model->moe.num_experts == 0;
        bool plain = dense || !is_tried(i) || ms_rng_below(&t->rng, 3) == 0;
        chosen[i] = plain ? 1 : pick_value(t, i);
    }
    /* dp_shard, the axis not drawn, gets the GPUs that the other axes leave, where these
     * divide the number of GPUs */
    long others = chosen[MS_CHOOSE_PP] * chosen[MS_CHOOSE_DP_REPLICATE] *
                  chosen[MS_CHOOSE_CP] * chosen[MS_CHOOSE_TP];
    if (plan.gpus % others == 0)
        chosen[MS_CHOOSE_DP_SHARD] = plan.gpus / others;
    for (int i = 0; i < MS_NUM_CHOICES; i++) {
        if (!is_tried(i))
            continue;
        ask_for(t, i, chosen[i]);
        ms_plan_set(&plan, (ms_choice)i, chosen[i]);
    }
    if (plan.size[MS_CP] == 1)
        plan.cp_method = MS_CP_ALL_GATHER;
    return plan;
}

static void complete_plans_are_refused_for_the_reason_of_the_rules(void **state)
{
    trial *trials = *state;
    int num_refused = 0;
    for (size_t c = 0; c < NUM_CASES; c++) {
        trial *t = &trials[c];
        for (uint64_t seed = 0; seed < TEST_CASES(40, 8); seed++) {
            begin(t, 7777 + 100 * c + seed);
            ms_plan plan = ask_for_plan(t);
            check(t, &plan);
            num_refused += t->why.verdict == MS_WHY_REFUSED;
        }
    }
    assert_true(num_refused > TEST_CASES(20, 0));
}

/* Every plan that the search lists, asked for by all its choices and its axis order,
 * is answered as listed. */
static void listed_plans_are_said_to_be_listed(void **state)
{
    trial *trials = *state;
    for (size_t c = 0; c < NUM_CASES; c++) {
        trial *t = &trials[c];
        for (int i = 0; i < t->list.num_found; i++) {
            const ms_plan *plan = &t->list.found[i].plan;
            begin(t, 0);
            for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
                ask_for(t, MS_CHOOSE_PP + axis, plan->size[axis]);
            ask_for(t, MS_CHOOSE_EP, plan->ep);
            ask_for(t, MS_CHOOSE_ETP, plan->etp);
            t->question.asked.fixed_order = true;
            memcpy(t->question.asked.base.order, plan->order, sizeof plan->order);
            answer(t);
            EXPECT(t, t->why.verdict == MS_WHY_LISTED && t->why.rank == i + 1,
                   t->why.rank, i + 1);
        }
    }
}

/* Axis orders whose groups lie on the same network levels count as one. A question that
 * fixes such an order is answered for the one among them that the search tries. */
static void orders_that_lie_alike_are_one(void **state)
{
    (void)state;
    const search_case c = {"8b", "generic", "hgx-h100", 16, 32, 0, 1.0, {NULL}};
    trial t = open_trial(&c);
    int num_alike = 0;
    static const unsigned char orders[][MS_NUM_PLAN_AXES] = {
        {MS_DP_REPLICATE, MS_PP, MS_DP_SHARD, MS_CP, MS_TP},
        {MS_TP, MS_PP, MS_DP_REPLICATE, MS_DP_SHARD, MS_CP},
        {MS_CP, MS_DP_SHARD, MS_PP, MS_TP, MS_DP_REPLICATE},
        {MS_DP_SHARD, MS_DP_REPLICATE, MS_TP, MS_CP, MS_PP},
    };
    for (uint64_t seed = 0; seed < TEST_CASES(40, 12); seed++) {
        begin(&t, seed);
        static const int choices[] = {MS_CHOOSE_PP, MS_CHOOSE_CP, MS_CHOOSE_TP};
        for (int i = 0; i < 3; i++)
            ask_for(&t, choices[i], 1L << ms_rng_below(&t.rng, 3));
        t.question.asked.fixed_order = true;
        memcpy(t.question.asked.base.order, orders[seed % 4], sizeof orders[0]);
        answer(&t);
        if (!t.why.has_plan)
            continue;
        num_alike += t.why.is_stand_in;
        ms_prediction p;
        ASSERT_OK(ms_predict(t.cx, t.workload, &t.why.among.plan, &p), t.cx);
        EXPECT(&t, fabs(p.step_s - t.why.prediction.step_s) <= 1e-12 * p.step_s, p.step_s,
               t.why.prediction.step_s);
        EXPECT(&t, t.why.rank == rank_of(&t.brute, &t.why.among.plan), t.why.rank,
               rank_of(&t.brute, &t.why.among.plan));
        EXPECT(&t, t.why.among.fate != MS_FATE_UNSEEN, t.why.among.fate, 0);
    }
    assert_true(num_alike > 0);
    ms_workload_close(t.workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_choices_are_answered_as_brute_force_does),
        cmocka_unit_test(complete_plans_are_refused_for_the_reason_of_the_rules),
        cmocka_unit_test(listed_plans_are_said_to_be_listed),
        cmocka_unit_test(orders_that_lie_alike_are_one),
    };
    return cmocka_run_group_tests(tests, open_trials, close_trials);
}
