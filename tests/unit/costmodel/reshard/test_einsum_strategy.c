/* The choice of how to shard an einsum, the shardings that follow in backward, and the
 * known patterns of tensor, sequence and data parallelism that come out. */
#include "costmodel/reshard/einsum_strategy.h"
#include "tests/test.h"
#include "topo/mesh_text.h"

typedef struct setting {
    ms_ctx *cx;
    ms_mesh mesh;
    ms_pricer pricer;
    ms_collective_prices prices;
    ms_spec wanted;
    ms_einsum_problem problem;
    ms_einsum_strategy strategy;
    ms_einsum_backward backward;
} setting;

/* Two numbers of tokens. The axis sizes of all meshes in this file divide both.
 * FEW_TOKENS make weights larger than activations, so that the weights are not moved;
 * MANY_TOKENS make weights smaller than activations. */
#define FEW_TOKENS  512
#define MANY_TOKENS 4096

static long size_of(char letter, long tokens)
{
    return letter == 's' ? tokens : letter == 'b' ? 8 : 8192;
}

static setting *opened(const char *einsum, const char *mesh, long tokens,
                       const char *const *in, const char *wanted)
{
    ms_ctx *cx = test_cx();
    setting *s = MS_NEW(cx->arena, setting);
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_stack *stack;
    s->cx = cx;
    ms_mesh_limits limits = {.most_ranks = 1024};
    ASSERT_OK(ms_mesh_parse(cx, mesh, &limits, &s->mesh), cx);
    ASSERT_OK(ms_cluster_load(cx, "hgx-h100", &cluster), cx);
    ASSERT_OK(ms_profile_load(cx, cluster->device.profile, &profile), cx);
    ASSERT_OK(ms_stack_load(cx, "generic", &stack), cx);
    ASSERT_OK(ms_pricer_make(cx, cluster, profile, stack, MS_BF16, &s->pricer), cx);
    ASSERT_OK(ms_collective_prices_make(cx, &s->mesh, cluster, profile, &s->prices), cx);
    ASSERT_OK(ms_einsum_parse(cx, einsum, &s->problem.einsum), cx);
    long size['z' + 1];
    for (int c = 0; c <= 'z'; c++)
        size[c] = size_of((char)c, tokens);
    ms_einsum_set_tensors(cx->arena, &s->problem, size, 2.0);
    for (int i = 0; i < s->problem.einsum.num_inputs; i++)
        ASSERT_OK(ms_spec_read(cx, in[i], &s->mesh, &s->problem.inputs[i],
                               &s->problem.given[i]),
                  cx);
    if (wanted != NULL) {
        ASSERT_OK(ms_spec_read(cx, wanted, &s->mesh, &s->problem.output, &s->wanted), cx);
        s->problem.wanted = &s->wanted;
    }
    s->problem.mesh = &s->mesh;
    s->problem.pricer = &s->pricer;
    s->problem.prices = &s->prices;
    return s;
}

static setting *solved(const char *einsum, const char *mesh, long tokens,
                       const char *const *in, const char *wanted)
{
    setting *s = opened(einsum, mesh, tokens, in, wanted);
    assert_true(ms_einsum_choose(s->cx->arena, &s->problem, &s->strategy));
    ms_einsum_derive_backward(s->cx->arena, &s->problem, &s->strategy.chosen,
                              &s->backward);
    return s;
}

/* A redistribution as text, such as "P@tp -> R: all-reduce tp". */
static const char *move_text(const setting *s, const ms_einsum_move *move)
{
    ms_arena *arena = s->cx->arena;
    const char *text = ms_spec_text(arena, &s->mesh, &move->from);
    if (ms_spec_equal(&s->mesh, &move->from, &move->to)) {
        ASSERT_INT(move->plan.num_steps, 0);
        return text;
    }
    text = ms_arena_printf(arena, "%s -> %s:", text,
                           ms_spec_text(arena, &s->mesh, &move->to));
    for (int i = 0; i < move->plan.num_steps; i++) {
        const ms_redistribute_step *step = &move->plan.steps[i];
        text = ms_arena_printf(arena, "%s %s", text, ms_change_names[step->change]);
        for (int axis = 0; axis < s->mesh.num_axes; axis++)
            if ((step->axes & (1U << axis)) != 0)
                text = ms_arena_printf(arena, "%s %s", text, s->mesh.axes[axis].name);
    }
    return text;
}

/* Checks that the redistribution `got`, as text, is `want`. If `want` ends in ':', only
 * the placements before the ':' are compared, not the collectives after it. */
static void check_move(const char *got, const char *want)
{
    size_t length = strlen(want);
    if (want[length - 1] != ':' || strncmp(got, want, length) != 0)
        ASSERT_TEXT(got, want);
}

/* ---- worked patterns ---- */

typedef struct pattern {
    const char *what, *einsum, *mesh;
    long tokens;
    const char *in[2];
    const char *wanted;
    /* expected redistribution of each input before the product, as text */
    const char *inputs[2];
    const char *output, *output_gradient;
    const char *gradients[2];
} pattern;

/* Shardings of Megatron-LM (Shoeybi et al. 2019, section 3; Korthikanti et al. 2022,
 * section 4.2.2) and of FSDP (Zhao et al. 2023, section 3). */
static const pattern patterns[] = {
    {"column-parallel: its input's gradient is all-reduced",
     "sbi,io->sbo",
     "tp=8",
     FEW_TOKENS,
     {"R", "S(o)@tp"},
     NULL,
     {"R", "S(o)@tp"},
     "S(o)@tp",
     "S(o)@tp",
     {"P@tp -> R: all-reduce tp", "S(o)@tp"}},
    {"row-parallel: its output is all-reduced, nothing in backward",
     "sbi,io->sbo",
     "tp=8",
     FEW_TOKENS,
     {"S(i)@tp", "S(i)@tp"},
     "R",
     {"S(i)@tp", "S(i)@tp"},
     "P@tp -> R: all-reduce tp",
     "R",
     {"S(i)@tp", "S(i)@tp"}},
    {"row-parallel into a sequence shard: reduce-scatter, all-gather in backward",
     "sbi,io->sbo",
     "tp=8",
     FEW_TOKENS,
     {"S(i)@tp", "S(i)@tp"},
     "S(s)@tp",
     {"S(i)@tp", "S(i)@tp"},
     "P@tp -> S(s)@tp: reduce-scatter tp",
     "S(s)@tp -> R: all-gather tp",
     {"S(i)@tp", "S(i)@tp"}},
    {"column-parallel from a sequence shard: all-gather, reduce-scatter in backward",
     "sbi,io->sbo",
     "tp=8",
     FEW_TOKENS,
     {"S(s)@tp", "S(o)@tp"},
     "S(o)@tp",
     {"S(s)@tp -> R: all-gather tp", "S(o)@tp"},
     "S(o)@tp",
     "S(o)@tp",
     {"P@tp -> S(s)@tp: reduce-scatter tp", "S(o)@tp"}},
    {"the scale of a norm under sequence parallelism",
     "sbh,h->sbh",
     "tp=8",
     FEW_TOKENS,
     {"S(s)@tp", "R"},
     NULL,
     {"S(s)@tp", "R"},
     "S(s)@tp",
     "S(s)@tp",
     {"S(s)@tp", "P@tp -> R: all-reduce tp"}},
    {"data parallelism",
     "sbi,io->sbo",
     "dp=8",
     MANY_TOKENS,
     {"S(b)@dp", "R"},
     NULL,
     {"S(b)@dp", "R"},
     "S(b)@dp",
     "S(b)@dp",
     {"S(b)@dp", "P@dp -> R: all-reduce dp"}},
    {"fully sharded data parallelism",
     "sbi,io->sbo",
     "dp=8",
     MANY_TOKENS,
     {"S(b)@dp", "S(i)@dp"},
     "S(b)@dp",
     {"S(b)@dp", "S(i)@dp -> R: all-gather dp"},
     "S(b)@dp",
     "S(b)@dp",
     {"S(b)@dp", "P@dp -> S(i)@dp: reduce-scatter dp"}},
    {"hybrid sharded data parallelism: one replica after the other",
     "sbi,io->sbo",
     "rep=2,dp=4",
     MANY_TOKENS,
     {"S(b)@rep S(b)@dp", "S(i)@dp"},
     "S(b)@rep S(b)@dp",
     {"S(b)@rep S(b)@dp", "S(i)@dp -> R: all-gather dp"},
     "S(b)@rep S(b)@dp",
     "S(b)@rep S(b)@dp",
     {"S(b)@rep S(b)@dp", "P@rep P@dp -> S(i)@dp:"}},
};

static void patterns_of_parallelism_come_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        const pattern *p = &patterns[i];
        print_message("%s\n", p->what);
        const setting *s = solved(p->einsum, p->mesh, p->tokens, p->in, p->wanted);
        const ms_einsum_choice *choice = &s->strategy.chosen;
        for (int k = 0; k < 2; k++) {
            ASSERT_TEXT(move_text(s, &choice->inputs[k]), p->inputs[k]);
            check_move(move_text(s, &s->backward.inputs[k].move), p->gradients[k]);
        }
        ASSERT_TEXT(move_text(s, &choice->output), p->output);
        ASSERT_TEXT(move_text(s, &s->backward.output), p->output_gradient);
    }
}

/* ---- a gated MLP over dp and tp ---- */

/* A gated MLP, out = (x w1 * x w3) w2, as published for sharded types in JAX: w1 and
 * w3 are sharded by columns, w2 by rows. */
static void a_gated_mlp_reduces_its_input_gradient_once(void **state)
{
    (void)state;
    const char *mesh = "dp=2,tp=4";
    const char *up[] = {"S(b)@dp", "S(f)@tp"};
    const char *gate[] = {"S(b)@dp S(f)@tp", "S(b)@dp S(f)@tp"};
    const char *down[] = {"S(b)@dp S(f)@tp", "S(f)@tp"};
    const setting *w1 = solved("sbh,hf->sbf", mesh, MANY_TOKENS, up, NULL);
    const setting *product = solved("sbf,sbf->sbf", mesh, MANY_TOKENS, gate, NULL);
    const setting *w2 = solved("sbf,fh->sbh", mesh, MANY_TOKENS, down, NULL);
    assert_true(w1->strategy.is_legal && product->strategy.is_legal &&
                w2->strategy.is_legal);
    ASSERT_TEXT(move_text(w1, &w1->strategy.chosen.output), "S(b)@dp S(f)@tp");
    ASSERT_TEXT(move_text(product, &product->strategy.chosen.output), "S(b)@dp S(f)@tp");
    ASSERT_TEXT(move_text(w2, &w2->strategy.chosen.output), "S(b)@dp P@tp");
    /* gradients inside the MLP are not redistributed */
    ASSERT_TEXT(move_text(w2, &w2->backward.inputs[0].move), "S(b)@dp S(f)@tp");
    ASSERT_TEXT(move_text(product, &product->backward.inputs[0].move), "S(b)@dp S(f)@tp");
    /* the gradients of the three weights are partial sums over dp only */
    const setting *weights[] = {w1, w1, w2};
    for (int i = 0; i < 3; i++)
        ASSERT_TEXT(move_text(weights[i], &weights[i]->backward.inputs[1].move),
                    "P@dp S(f)@tp -> S(f)@tp: all-reduce dp");
    /* x enters both w1 and w3: the two gradients of x are partial sums over tp, so
     * they are added first and reduced once */
    const ms_einsum_move *from_w1 = &w1->backward.inputs[0].move;
    ASSERT_TEXT(move_text(w1, from_w1), "S(b)@dp P@tp -> S(b)@dp: all-reduce tp");
    const char *sum[] = {"S(b)@dp P@tp"};
    const setting *summed = solved("sbh->sbh", mesh, MANY_TOKENS, sum, "S(b)@dp");
    /* addition is linear, so it accepts partial sums */
    assert_true(summed->strategy.is_legal);
    ASSERT_TEXT(move_text(summed, &summed->strategy.chosen.output),
                "S(b)@dp P@tp -> S(b)@dp: all-reduce tp");
    assert_true(summed->strategy.chosen.output.plan.seconds < 2 * from_w1->plan.seconds);
}

/* ---- the choice ---- */

static void legal_placements_stay(void **state)
{
    (void)state;
    const char *in[] = {"R", "R"};
    const setting *s = solved("sbi,io->sbo", "dp=2,tp=4", MANY_TOKENS, in, NULL);
    assert_true(s->strategy.is_legal);
    ASSERT_TEXT(move_text(s, &s->strategy.chosen.output), "R");
    /* computing everything on every rank is legal, but far slower than slicing first */
    assert_true(s->strategy.has_cheaper);
    assert_true(s->strategy.cheaper.total_s < 0.2 * s->strategy.chosen.total_s);
    const char *split[] = {"S(b)@dp", "S(o)@tp"};
    assert_false(solved("sbi,io->sbo", "dp=2,tp=4", MANY_TOKENS, split, NULL)
                     ->strategy.has_cheaper);
}

static void conflicts_are_resolved_by_redistributions(void **state)
{
    (void)state;
    const struct {
        const char *in[2];
        ms_einsum_conflict conflict;
        const char *inputs[2];
        const char *output;
    } cases[] = {
        /* partial sums cannot be multiplied, so both inputs are first reduce-scattered
         * along i; contracting over the sharded i then makes the output partial */
        {{"P@tp", "P@tp"},
         MS_CONFLICT_TWO_PARTIALS,
         {"P@tp -> S(i)@tp: reduce-scatter tp", "P@tp -> S(i)@tp: reduce-scatter tp"},
         "P@tp"},
        {{"S(i)@tp", "SS(i,2)@tp"},
         MS_CONFLICT_STRIDED,
         {"S(i)@tp", "SS(i,2)@tp -> S(i)@tp:"},
         "P@tp"},
        {{"S(i)@tp", "R"},
         MS_CONFLICT_ONE_SIDED,
         {"S(i)@tp", "R -> S(i)@tp: slice tp"},
         "P@tp"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const setting *s = solved("sbi,io->sbo", "tp=4", MANY_TOKENS, cases[i].in, NULL);
        assert_false(s->strategy.is_legal);
        ASSERT_INT(s->strategy.conflict[0], cases[i].conflict);
        for (int k = 0; k < 2; k++)
            check_move(move_text(s, &s->strategy.chosen.inputs[k]), cases[i].inputs[k]);
        ASSERT_TEXT(move_text(s, &s->strategy.chosen.output), cases[i].output);
    }
}

/* No combination of shardings over the axes is cheaper than the chosen one, and of
 * equal ones the first is chosen. */
static void no_combination_is_cheaper(void **state)
{
    (void)state;
    const char *in[] = {"S(s)@dp P@tp", "S(i)@tp"};
    const setting *s = solved("sbi,io->sbo", "dp=2,tp=4", MANY_TOKENS, in, NULL);
    assert_true(s->strategy.is_exhaustive && !s->strategy.is_legal);
    const ms_spread options[] = {{.letter = MS_WHOLE}, {.letter = 's'},
                                 {.letter = 'b'},      {.letter = 'i'},
                                 {.letter = 'o'},      {.letter = MS_LINEAR}};
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 6; j++) {
            ms_spread spread[MS_MAX_AXES] = {options[i], options[j]};
            ms_einsum_choice choice;
            assert_true(ms_einsum_price(s->cx->arena, &s->problem, spread, &choice));
            assert_true(choice.total_s >= s->strategy.chosen.total_s * (1 - 2e-9));
        }
}

/* Axes are decided one after the other if there are more than 4096 combinations; legal
 * shardings are still found, and needed redistributions still made. */
static void many_axes_are_settled_one_by_one(void **state)
{
    (void)state;
    const char *in[] = {"S(a)@p S(b)@q S(c)@r S(d)@s", "S(a)@p S(b)@q S(c)@r"};
    const setting *s =
        solved("abcd,abcde->abcde", "p=2,q=2,r=2,s=2,t=1", MANY_TOKENS, in, NULL);
    assert_false(s->strategy.is_exhaustive);
    ASSERT_TEXT(move_text(s, &s->strategy.chosen.inputs[1]),
                "S(a)@p S(b)@q S(c)@r -> S(a)@p S(b)@q S(c)@r S(d)@s: slice s");
}

/* ---- local work ---- */

static void flop_are_those_of_the_best_order_of_products(void **state)
{
    (void)state;
    const struct {
        const char *text;
        double flop;
    } rows[] = {
        /* sizes: a 2, b 3, c 5, d 7, e 11 */
        {"ab,bc->ac", 2 * 2 * 3 * 5},
        {"ab,bc,cd->ad", 2 * 2 * 3 * 5 + 2 * 2 * 5 * 7},
        /* best in another order than written */
        {"ab,cd,bc->ad", 2 * 2 * 3 * 5 + 2 * 2 * 5 * 7},
        /* gradients of the einsum above */
        {"ad,bc,cd->ab", 2 * 2 * 5 * 7 + 2 * 2 * 3 * 5},
        {"ab,ad,cd->bc", 2 * 2 * 7 * 5 + 2 * 2 * 3 * 5},
        {"ab,bc,cd,de->ae", 2 * 2 * 3 * 5 + 2 * 2 * 5 * 7 + 2 * 2 * 7 * 11},
        {"ab->a", 0},
        {"ab->ba", 0},
        {"ab,cb->b", 2 * 3},                  /* a and c are summed first */
        {"ab,ac->abc", 2 * 2 * 3 * 5},        /* nothing is contracted */
        {"abc,cd,e->abd", 2 * 2 * 3 * 5 * 7}, /* e is summed to one number first */
    };
    ms_letter_sizes sizes = {0};
    sizes.of['a'] = 2, sizes.of['b'] = 3, sizes.of['c'] = 5, sizes.of['d'] = 7;
    sizes.of['e'] = 11;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_ctx *cx = test_cx();
        ms_einsum einsum;
        ASSERT_OK(ms_einsum_parse(cx, rows[i].text, &einsum), cx);
        ASSERT_NEAR(ms_einsum_flop(&einsum, &sizes), rows[i].flop, 0.0);
    }
}

static void products_take_the_seconds_of_their_kernels(void **state)
{
    (void)state;
    const char *in[] = {"R", "R"};
    const setting *s = opened("sbi,io->sbo", "tp=4", MANY_TOKENS, in, NULL);
    ms_letter_sizes sizes = {0};
    sizes.of['s'] = 4096, sizes.of['b'] = 2, sizes.of['i'] = 1024, sizes.of['o'] = 512;
    ms_gemm_shape gemm = {1, 8192, 512, 1024, 2, 2};
    ASSERT_NEAR(ms_einsum_s(&s->pricer, &s->problem.einsum, &sizes, 2.0),
                ms_gemm_s(&s->pricer, gemm), 1e-12);
    /* the gradient of a sum reads the summed tensor's gradient and writes every
     * element */
    const char *one[] = {"R"};
    const setting *sum = opened("sb->s", "tp=4", MANY_TOKENS, one, NULL);
    ms_einsum gradient = ms_einsum_gradient(&sum->problem.einsum, 0);
    ASSERT_NEAR(ms_einsum_s(&s->pricer, &gradient, &sizes, 2.0),
                ms_stream_s(&s->pricer, 2.0 * (4096 + 8192)), 1e-12);
    sizes.of['s'] = 0;
    ASSERT_NEAR(ms_einsum_s(&s->pricer, &gradient, &sizes, 2.0), 0.0, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_of_parallelism_come_out),
        cmocka_unit_test(a_gated_mlp_reduces_its_input_gradient_once),
        cmocka_unit_test(legal_placements_stay),
        cmocka_unit_test(conflicts_are_resolved_by_redistributions),
        cmocka_unit_test(no_combination_is_cheaper),
        cmocka_unit_test(many_axes_are_settled_one_by_one),
        cmocka_unit_test(flop_are_those_of_the_best_order_of_products),
        cmocka_unit_test(products_take_the_seconds_of_their_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
