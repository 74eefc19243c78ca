/* The choice of which forward results a layer saves (selective recomputation). Each point
 * on the front between bytes and seconds is what the program really saves and recomputes;
 * no other set of saved nodes is better; one end of the front is full recomputation, the
 * other end is no recomputation. */
#include "costmodel/cost/saved_choice.h"

#include "base/rng.h"
#include "costmodel/cost/bill.h"
#include "costmodel/cost/cast.h"

#include "tests/support/program_cases.h"
#include "tests/test.h"

typedef struct bench {
    ms_ctx *cx;
    ms_pricer *pricer;
    ms_saved_prices prices;
} bench;

static bench open_bench(void)
{
    bench b = {.cx = test_cx()};
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_stack *stack;
    b.pricer = MS_NEW(b.cx->arena, ms_pricer);
    ASSERT_OK(ms_cluster_load(b.cx, "hgx-h100", &cluster), b.cx);
    ASSERT_OK(ms_profile_load(b.cx, cluster->device.profile, &profile), b.cx);
    ASSERT_OK(ms_stack_load(b.cx, "megatron", &stack), b.cx);
    ASSERT_OK(ms_pricer_make(b.cx, cluster, profile, stack, MS_BF16, b.pricer), b.cx);
    b.prices = (ms_saved_prices){b.pricer, 1e9};
    return b;
}

/* ---- bytes and seconds of a program, counted from its nodes ---- */

typedef struct outcome {
    ms_bill bill;
    double bytes,
        /* `bytes`: saved beyond the layer's input; `seconds`: of recomputation and
         * communication, except of gathering saved shards again */
        seconds;
} outcome;

static double node_s(const bench *b, const ms_program *program, const ms_node *node)
{
    ms_node_comm comm;
    bool moves = node->op == MS_OP_REDISTRIBUTE || node->op == MS_OP_EXCHANGE;
    double seconds = ms_node_compute_s(program, node, b->pricer);
    if (moves && ms_node_communicates(program, node, &comm))
        seconds += comm.size_bytes / b->prices.bytes_per_s;
    return seconds;
}

static double recompute_s(const bench *b, const ms_program *program)
{
    double seconds = 0.0;
    for (int n = program->num_forward_nodes; n < program->num_nodes; n++)
        if (program->nodes[n].pass == MS_PASS_RECOMPUTE)
            seconds += node_s(b, program, &program->nodes[n]);
    return seconds;
}

static outcome outcome_of(const bench *b, ms_arena *arena, const ms_model *model,
                          ms_program_key key)
{
    const ms_program *program = ms_case_program(arena, model, &key, 2);
    outcome out = {.bill = ms_bill_make(arena, program, b->pricer),
                   .seconds = recompute_s(b, program)};
    for (int t = 0; t < program->num_tensors; t++)
        if (program->tensors[t].saved && program->tensors[t].producer >= 0)
            out.bytes +=
                ms_saved_frac(program, t, b->pricer) * ms_tensor_local_bytes(program, t);
    return out;
}

static outcome outcome_with(const bench *b, ms_arena *arena, const ms_model *model,
                            ms_program_key key, const ms_saved *keep)
{
    key.recompute = MS_RECOMPUTE_AUTO;
    key.keep = *keep;
    return outcome_of(b, arena, model, key);
}

/* ---- cases ---- */

typedef struct problem {
    const bench *b;
    const ms_model *model;
    ms_program_key key; /* the program without recomputation */
    const ms_program *program;
    ms_saved_front front;
    /* seconds of gathering saved shards again, which every choice pays */
    double regather_s;
    const char *label;
} problem;

typedef void check_problem(const problem *p, ms_arena *arena);

static void check_key(const bench *b, const ms_model *model, ms_program_key key,
                      check_problem *check)
{
    ms_arena *arena = ms_arena_open();
    problem p = {.b = b, .model = model, .key = key};
    p.program = ms_case_program(arena, model, &key, 2);
    p.front = ms_saved_front_make(arena, p.program, &b->prices);
    p.regather_s = recompute_s(b, p.program);
    p.label = ms_case_describe(b->cx->arena, model, &key);
    check(&p, arena);
    ms_arena_close(arena);
}

static void each_problem(check_problem *check)
{
    bench b = open_bench();
    for (int i = 0; i < MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE; i++) {
        ms_model model = ms_case_model(i);
        ms_program_key key = ms_case_whole_key(MS_BLOCK_LAYER);
        check_key(&b, &model, key, check);
        key.attention_fused = false;
        check_key(&b, &model, key, check);
        key = ms_case_split_key(MS_BLOCK_LAYER);
        check_key(&b, &model, key, check);
        key.sequence_parallel = key.regather = true;
        if (i >= MS_NUM_SMALL_DENSE)
            key.ep = 4;
        check_key(&b, &model, key, check);
        key.cp_method = MS_CP_ULYSSES;
        check_key(&b, &model, key, check);
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static bool near(double got, double want)
{
    return fabs(got - want) <= 1e-9 * fabs(want) + 1e-18;
}

/* ---- points ---- */

static void points_are_real(const problem *p, ms_arena *arena)
{
    int step = p->front.num_points / 12 + 1;
    for (int i = 0; i < p->front.num_points; i += step) {
        const ms_saved_point *point = &p->front.points[i];
        outcome real = outcome_with(p->b, arena, p->model, p->key, &point->keep);
        if (real.bytes != point->bytes)
            ms_case_wrong(p->label, "a program keeps other bytes than its point says");
        if (!near(real.seconds, point->seconds + p->regather_s))
            ms_case_wrong(p->label,
                          "a program computes again longer than its point says");
    }
}

static void the_front_descends(const problem *p, ms_arena *arena)
{
    (void)arena;
    for (int i = 1; i < p->front.num_points; i++)
        if (p->front.points[i].bytes <= p->front.points[i - 1].bytes ||
            p->front.points[i].seconds >= p->front.points[i - 1].seconds)
            ms_case_wrong(p->label, "a point beats its neighbour");
}

static void points_are_what_programs_do(void **state)
{
    (void)state;
    each_problem(points_are_real);
    each_problem(the_front_descends);
}

/* ---- ends ---- */

static bool equal_bills(ms_bill a, ms_bill b)
{
    for (int list = 0; list < MS_NUM_BILL_LISTS; list++) {
        if (a.num_comms[list] != b.num_comms[list] ||
            (a.num_comms[list] > 0 &&
             memcmp(a.comms[list], b.comms[list],
                    (size_t)a.num_comms[list] * sizeof *a.comms[list]) != 0))
            return false;
        a.comms[list] = b.comms[list] = NULL;
    }
    return memcmp(&a, &b, sizeof a) == 0;
}

static void ends_are_the_modes(const problem *p, ms_arena *arena)
{
    static const ms_recompute modes[] = {MS_RECOMPUTE_FULL, MS_RECOMPUTE_NONE};
    for (int end = 0; end < 2; end++) {
        const ms_saved_point *point = ms_saved_choose(&p->front, end);
        outcome real = outcome_with(p->b, arena, p->model, p->key, &point->keep);
        ms_program_key key = p->key;
        key.recompute = (unsigned char)modes[end];
        outcome want = outcome_of(p->b, arena, p->model, key);
        /* saving nothing (budget 0) may be faster than full recomputation where there are
         * experts, so the two need not be equal */
        if (end == 0 && p->model->moe.num_experts > 0) {
            if (point->bytes != 0.0 || real.seconds > want.seconds)
                ms_case_wrong(p->label, "budget 0 keeps something or takes longer");
        } else if (!equal_bills(real.bill, want.bill))
            ms_case_wrong(p->label, end == 0 ? "budget 0 is not full recomputation"
                                             : "budget 1 recomputes");
    }
}

static void budgets_0_and_1_are_full_and_none(void **state)
{
    (void)state;
    each_problem(ends_are_the_modes);
}

static void more_budget_is_faster(const problem *p, ms_arena *arena)
{
    (void)arena;
    double seconds = INFINITY;
    for (int i = 0; i <= 40; i++) {
        const ms_saved_point *point = ms_saved_choose(&p->front, i / 40.0);
        if (point->bytes > i / 40.0 * p->front.all.bytes * (1 + 1e-9))
            ms_case_wrong(p->label, "a budget is exceeded");
        if (point->seconds > seconds)
            ms_case_wrong(p->label, "more budget takes longer");
        seconds = point->seconds;
    }
}

static void more_budget_never_takes_longer(void **state)
{
    (void)state;
    each_problem(more_budget_is_faster);
}

/* ---- against other sets ---- */

/* Least seconds among points of the front that save at most so many bytes. */
static double best_s(const ms_saved_front *front, double bytes)
{
    double seconds = INFINITY;
    for (int i = 0; i < front->num_points; i++)
        if (front->points[i].bytes <= bytes * (1 + 1e-12))
            seconds = front->points[i].seconds;
    return seconds;
}

static void expect_unbeaten(const problem *p, const ms_saved *keep)
{
    ms_arena *arena = ms_arena_open();
    outcome real = outcome_with(p->b, arena, p->model, p->key, keep);
    ms_arena_close(arena);
    if (real.bytes <= p->front.all.bytes &&
        real.seconds - p->regather_s < best_s(&p->front, real.bytes) * (1 - 1e-9) - 1e-15)
        ms_case_wrong(p->label, "a set of nodes beats the choice");
}

static void random_sets_lose(const problem *p, ms_arena *arena)
{
    (void)arena;
    ms_rng rng = ms_rng_seed(17);
    for (int i = 0; i < 25; i++) {
        ms_saved keep = {{0}};
        uint64_t share = ms_rng_below(&rng, 10);
        for (int n = 0; n < p->program->num_forward_nodes; n++)
            if (ms_rng_below(&rng, 10) < share)
                ms_saved_add(&keep, n);
        expect_unbeaten(p, &keep);
    }
}

/* Tries every subset of the results that backward needs: none beats the front. */
static void every_set_loses(const problem *p, ms_arena *arena)
{
    (void)arena;
    int nodes[MS_MAX_SAVED], num_nodes = 0;
    for (int n = 0; n < p->program->num_forward_nodes; n++)
        if (ms_saved_has(&p->front.all.keep, n))
            nodes[num_nodes++] = n;
    assert_true(num_nodes >= 7 && num_nodes <= 13);
    for (unsigned set = 0; set < 1U << num_nodes; set++) {
        ms_saved keep = {{0}};
        for (int i = 0; i < num_nodes; i++)
            if ((set >> i & 1U) != 0)
                ms_saved_add(&keep, nodes[i]);
        expect_unbeaten(p, &keep);
    }
}

static void no_set_beats_the_choice(void **state)
{
    (void)state;
    each_problem(random_sets_lose);
    bench b = open_bench();
    ms_make_model *const few[] = {ms_small_falcon, ms_small_llama, ms_small_gpt};
    for (int i = 0; i < 3; i++) {
        ms_model model = few[i]();
        check_key(&b, &model, ms_case_whole_key(MS_BLOCK_LAYER), every_set_loses);
        check_key(&b, &model, ms_case_split_key(MS_BLOCK_LAYER), every_set_loses);
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(points_are_what_programs_do, ms_case_start),
        cmocka_unit_test_setup(budgets_0_and_1_are_full_and_none, ms_case_start),
        cmocka_unit_test_setup(more_budget_never_takes_longer, ms_case_start),
        cmocka_unit_test_setup(no_set_beats_the_choice, ms_case_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
