/* Tests of CUDA kernels against the CPU's: embedding tables, the loss, the router and the
 * rows of experts. */
#include "exec/cuda/cuda_embed.h"
#include "exec/cuda/cuda_loss.h"
#include "exec/cuda/cuda_permute.h"
#include "exec/cuda/cuda_router.h"
#include "tests/support/cuda_cases.h"
#include "tests/support/cuda_emulated.h"
#include "tests/test.h"

static const ms_cuda_kernel
    embed = {.op = ms_cuda_embed},
    embed_grad = {.op = ms_cuda_embed_grad, .workspace = ms_cuda_embed_grad_bytes},
    loss_max = {.op = ms_cuda_loss_max}, loss_sum = {.op = ms_cuda_loss_sum},
    loss = {.op = ms_cuda_loss}, loss_grad = {.op = ms_cuda_loss_grad},
    route = {.op = ms_cuda_route}, route_grad = {.op = ms_cuda_route_grad},
    permute = {.op = ms_cuda_permute, .workspace = ms_cuda_permute_bytes},
    permute_grad = {.op = ms_cuda_permute_grad, .workspace = ms_cuda_permute_bytes},
    unpermute = {.op = ms_cuda_unpermute, .workspace = ms_cuda_permute_bytes},
    unpermute_grad = {.op = ms_cuda_unpermute_grad, .workspace = ms_cuda_permute_bytes};

/* Writes a shape as text, as "3 40 7"; dims of 0 are left out. */
static const char *shape_of(ms_arena *arena, long a, long b, long c)
{
    return c > 0   ? ms_arena_printf(arena, "%ld %ld %ld", a, b, c)
           : b > 0 ? ms_arena_printf(arena, "%ld %ld", a, b)
                   : ms_arena_printf(arena, "%ld", a);
}

/* ---- nodes of programs ---- */

static void nodes_of_programs_are_those_of_cpus(void **state)
{
    (void)state;
    static const struct {
        ms_op op;
        const ms_cuda_kernel *kernel;
    } all[] = {{MS_OP_EMBED, &embed},         {MS_OP_EMBED_GRAD, &embed_grad},
               {MS_OP_LOSS_MAX, &loss_max},   {MS_OP_LOSS_SUM, &loss_sum},
               {MS_OP_LOSS, &loss},           {MS_OP_LOSS_GRAD, &loss_grad},
               {MS_OP_ROUTE, &route},         {MS_OP_ROUTE_GRAD, &route_grad},
               {MS_OP_PERMUTE, &permute},     {MS_OP_PERMUTE_GRAD, &permute_grad},
               {MS_OP_UNPERMUTE, &unpermute}, {MS_OP_UNPERMUTE_GRAD, &unpermute_grad}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_true(
            ms_cuda_cases_of_programs(test_cx()->arena, all[i].op, all[i].kernel) > 0);
}

/* ---- tables ---- */

typedef struct table_case {
    long sequences, length; /* the rank's part of the batch */
    long width, table_start, table_rows, vocab;
    bool by_position, permuted;
} table_case;

/* Makes a batch with more sequences and positions than the rank's part of it. Small token
 * ids are more frequent. */
static ms_batch make_batch(ms_cuda_case *c, const table_case *t)
{
    long sequences = t->sequences + 2, length = t->length + 3;
    int *tokens = MS_NEW_ARRAY(c->arena, sequences * length, int);
    long *positions = MS_NEW_ARRAY(c->arena, length, long);
    for (long i = 0; i < sequences * length; i++) {
        double u = ms_rng_uniform(&c->rng);
        tokens[i] = (int)(u * u * (double)t->vocab);
    }
    for (long i = 0; i < length; i++)
        positions[i] = (i + 2) % length;
    return (ms_batch){.first_sequence = 5,
                      .num_sequences = sequences,
                      .sequence_length = length,
                      .tokens = tokens,
                      .targets = tokens,
                      .positions = t->permuted ? positions : NULL,
                      .num_tokens = (double)(sequences * length)};
}

static ms_cuda_case *table_node(ms_arena *arena, const table_case *t, ms_op op)
{
    ms_cuda_case *c = ms_cuda_case_make(arena, op, 31);
    const char *x = shape_of(arena, t->sequences, t->length, t->width),
               *table = shape_of(arena, t->table_rows, t->width, 0),
               *dims = t->by_position ? "ph" : "vh";
    bool gives_rows = op == MS_OP_EMBED;
    ms_local *given = gives_rows ? ms_cuda_case_in(c, dims, table, MS_CASE_REAL)
                                 : ms_cuda_case_in(c, "bsh", x, MS_CASE_REAL);
    ms_local *made = gives_rows
                         ? ms_cuda_case_out(c, "bsh", x, MS_CASE_REAL)
                         : ms_cuda_case_out(c, dims, table, MS_CASE_WEIGHT_GRADIENT);
    ms_local *rows = gives_rows ? made : given;
    (gives_rows ? given : made)->start[0] = t->table_start;
    rows->start[0] = 5 + 2;
    rows->start[1] = 1;
    c->node.by_position = t->by_position;
    c->model.embedding_scale = t->sequences == 2 ? 59.5 : 0;
    c->batch = make_batch(c, t);
    return c;
}

static void tables_of_any_size_and_part(void **state)
{
    (void)state;
    const table_case cases[] = {
        {1, 1, 1, 0, 1, 1, false, false},
        {2, 9, 8, 0, 13, 13, false, false},
        {2, 9, 7, 3, 5, 13, false, true},
        {1, 40, 64, 0, 1500, 1500, false, false},
        {2, 300, 24, 100, 700, 1500, false, true}, /* several chunks and sort digits */
        {1, 700, 5, 0, 3, 3, false, false},        /* many rows of one token */
        {1, 5, 2072, 0, 7, 7, false, false}, /* several blocks of threads for a row */
        {2, 11, 40, 0, 14, 1, true, false},
        {3, 11, 40, 4, 5, 1, true, true},
        /* no token lies in the rank's part of the table */
        {1, 6, 16, 20, 6, 13, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_arena *arena = test_cx()->arena;
        const char *label = ms_arena_printf(arena, "table %zu", i);
        ms_cuda_case_run(table_node(arena, &cases[i], MS_OP_EMBED), label, &embed);
        ms_cuda_case *c = table_node(arena, &cases[i], MS_OP_EMBED_GRAD);
        ms_cuda_case_run(c, label, &embed_grad);
        c->call.out[0]->data = NULL; /* gradient is not wanted */
        unsigned long before = ms_cuda_emulated_num_launches();
        ms_cuda_case_run(c, label, &embed_grad);
        assert_true(ms_cuda_emulated_num_launches() == before);
    }
}

/* ---- the loss ---- */

static ms_cuda_case *loss_node(ms_arena *arena, ms_op op, long width, long start,
                               long vocab)
{
    const table_case t = {.sequences = 2, .length = 3, .vocab = vocab, .permuted = true};
    ms_cuda_case *c = ms_cuda_case_make(arena, op, 32);
    ms_local *logits =
        ms_cuda_case_in(c, "bsv", shape_of(arena, 2, 3, width), MS_CASE_REAL);
    c->model.vocab = vocab;
    c->model.logit_softcap = width % 3 == 1 ? 18 : 0;
    c->batch = make_batch(c, &t);
    int *targets = MS_NEW_ARRAY(arena, 4 * 6, int);
    /* some targets lie in the padding of the vocabulary, on no rank */
    for (int i = 0; i < 4 * 6; i++)
        targets[i] = i % 4 == 3 ? (int)vocab : c->batch.tokens[i];
    c->batch.targets = targets;
    c->program.size['v' - '0'] = (double)(start + width);
    logits->start[0] = 5 + 1;
    logits->start[1] = 2;
    logits->start[2] = start;
    double *x = ms_cuda_case_values(logits);
    for (long i = 0; i < logits->count; i++)
        x[i] =
            /* padding must not be read */
            start + i % width >= vocab ? (double)NAN : 20 * x[i];
    return c;
}

static void give_statistic(ms_cuda_case *c, double least)
{
    ms_local *x = ms_cuda_case_in(c, "bs", "2 3", MS_CASE_STATISTIC);
    for (long i = 0; i < x->count; i++)
        ms_cuda_case_values(x)[i] = least + fabs(ms_cuda_case_values(x)[i]);
}

static void want_statistic(ms_cuda_case *c)
{
    ms_cuda_case_out(c, "bs", "2 3", MS_CASE_STATISTIC);
}

static void losses_of_any_width_and_part(void **state)
{
    (void)state;
    const struct {
        long width, start, vocab;
    } cases[] = {{1, 0, 1},   {5, 0, 5},       {7, 7, 11},       {31, 31, 31},
                 {64, 0, 64}, {1003, 0, 1000}, {257, 771, 1028}, {9000, 9000, 17999}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_arena *arena = test_cx()->arena;
        long width = cases[i].width, start = cases[i].start, vocab = cases[i].vocab;
        const char *label = ms_arena_printf(arena, "loss of %ld columns", width);
        ms_cuda_case *c = loss_node(arena, MS_OP_LOSS_MAX, width, start, vocab);
        want_statistic(c);
        ms_cuda_case_run(c, label, &loss_max);
        c = loss_node(arena, MS_OP_LOSS_SUM, width, start, vocab);
        give_statistic(c, 19);
        want_statistic(c);
        want_statistic(c);
        ms_cuda_case_run(c, label, &loss_sum);
        c = loss_node(arena, MS_OP_LOSS_GRAD, width, start, vocab);
        give_statistic(c, 20);
        give_statistic(c, 0.1);
        ms_cuda_case_out(c, "bsv", shape_of(arena, 2, 3, width), MS_CASE_REAL);
        ms_cuda_case_run(c, label, &loss_grad);
    }
}

static void losses_of_rows(void **state)
{
    (void)state;
    ms_cuda_case *c = ms_cuda_case_make(test_cx()->arena, MS_OP_LOSS, 33);
    for (int i = 0; i < 3; i++) {
        ms_local *x = ms_cuda_case_in(c, "bs", "3 411", MS_CASE_STATISTIC);
        for (long j = 0; j < x->count && i == 1; j++)
            ms_cuda_case_values(x)[j] = 1e4 * (1.001 + ms_cuda_case_values(x)[j]);
    }
    ms_cuda_case_out(c, "bs", "3 411", MS_CASE_STATISTIC);
    ms_cuda_case_run(c, "losses", &loss);
}

/* The gradient of the loss may overwrite the logits or lie elsewhere; rows begin at any
 * offset from aligned vectors. */
static void a_gradient_in_the_memory_of_the_logits(void **state)
{
    (void)state;
    enum {
        ROWS = 3,
        WIDTH = 1357,
        REAL = 1355,
        COUNT = ROWS * WIDTH
    };
    static float apart[COUNT + 1];
    static _Alignas(16) float logits[COUNT], elsewhere[COUNT + 1];
    float max[ROWS] = {1, 2, 1.5F}, sum[ROWS] = {3, 4, 5};
    const int targets[ROWS] = {0, 1354, 77};
    ms_rng rng = ms_rng_seed(34);
    for (int i = 0; i < COUNT; i++)
        logits[i] = (float)ms_rng_uniform(&rng);
    ms_cuda_loss_args args = {.scalar = MS_SCALAR_FP32,
                              .logits = logits,
                              .num_rows = ROWS,
                              .width = WIDTH,
                              .num_real = REAL,
                              .targets = targets,
                              .length = ROWS,
                              .sequence_length = ROWS,
                              .num_tokens = ROWS,
                              .scale = 1,
                              .max = max,
                              .sum = sum,
                              .gradient = apart};
    ms_cuda_loss_row_grad(NULL, &args);
    args.gradient = elsewhere + 1;
    ms_cuda_loss_row_grad(NULL, &args);
    args.gradient = logits;
    for (int i = 0; i < COUNT; i++) {
        int row = i / WIDTH, column = i % WIDTH;
        double want = exp((double)(logits[i] - max[row])) / (double)sum[row] / ROWS -
                      (targets[row] == column ? 1.0 / ROWS : 0);
        ASSERT_NEAR((double)apart[i], column < REAL ? want : 0, 1e-6);
    }
    ms_cuda_loss_row_grad(NULL, &args);
    assert_memory_equal(logits, apart, sizeof logits);
    assert_memory_equal(elsewhere + 1, apart, sizeof logits);
}

/* ---- the router ---- */

typedef struct router_case {
    ms_router_kind kind;
    bool norm_topk, has_bias, has_ties;
    long sequences, length, experts, chosen;
    long groups, top_groups; /* 0: experts are chosen from all */
    double scaling;          /* 0: none */
} router_case;

static const router_case routers[] = {
    {MS_ROUTER_SOFTMAX_TOPK, false, false, false, 2, 9, 8, 2, 0, 0, 0},
    {MS_ROUTER_SOFTMAX_TOPK, true, false, true, 1, 33, 40, 6, 0, 0, 0},
    {MS_ROUTER_TOPK_SOFTMAX, false, false, true, 3, 5, 7, 7, 0, 0, 0},
    {MS_ROUTER_SIGMOID, false, true, false, 1, 21, 256, 8, 0, 0, 0},
    {MS_ROUTER_SIGMOID, false, true, true, 2, 4, 33, 5, 0, 0, 0},
    {MS_ROUTER_SIGMOID, false, false, false, 1, 1, 1, 1, 0, 0, 0},
    {MS_ROUTER_SOFTMAX_TOPK, false, false, true, 1, 3, MS_CUDA_ROUTER_EXPERTS, 3, 0, 0,
     0},
    {MS_ROUTER_SOFTMAX_TOPK, false, false, true, 2, 9, 24, 3, 8, 2, 16},
    {MS_ROUTER_SIGMOID, true, true, false, 1, 21, 256, 8, 8, 4, 2.5},
    {MS_ROUTER_SIGMOID, true, false, true, 1, 9, 80, 5, 40, 4, 0.5},
    {MS_ROUTER_SIGMOID, false, false, false, 1, 5, 7, 3, 7, 6, 2},
};

static ms_cuda_case *router_node(ms_arena *arena, const router_case *r, ms_op op)
{
    ms_cuda_case *c = ms_cuda_case_make(arena, op, 35);
    ms_local *logits =
        ms_cuda_case_in(c, "bse", shape_of(arena, r->sequences, r->length, r->experts),
                        MS_CASE_STATISTIC);
    c->model.moe.router = r->kind;
    c->model.moe.norm_topk = r->norm_topk;
    c->model.moe.num_groups = r->groups;
    c->model.moe.top_groups = r->top_groups;
    c->model.moe.routed_scaling = r->scaling;
    c->program.size['k' - '0'] = (double)r->chosen;
    for (long i = 0; i < logits->count; i++) {
        double *x = ms_cuda_case_values(logits) + i;
        *x = r->has_ties ? round(3 * *x) : 4 * *x;
    }
    logits->start[0] = 2;
    logits->start[1] = 3;
    return c;
}

static void experts_are_chosen_as_on_cpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof routers / sizeof *routers; i++) {
        for (int balanced = 0; balanced < 2; balanced++) {
            const router_case *r = &routers[i];
            ms_arena *arena = test_cx()->arena;
            ms_cuda_case *c = router_node(arena, r, MS_OP_ROUTE);
            const char *of_slots = shape_of(arena, r->sequences, r->length, r->chosen);
            if (r->has_bias) {
                ms_local *bias = ms_cuda_case_in(
                    c, "e", shape_of(arena, r->experts, 0, 0), MS_CASE_REAL);
                for (long e = 0; e < bias->count && r->has_ties; e++)
                    ms_cuda_case_values(bias)[e] = 0;
            }
            ms_cuda_case_out(c, "bsk", of_slots, MS_CASE_STATISTIC);
            ms_cuda_case_out(c, "bsk", of_slots, MS_CASE_STATISTIC);
            c->program.size['s' - '0'] = (double)r->length + 7;
            c->call.balanced_routing = balanced == 1;
            ms_cuda_case_run(c, ms_arena_printf(arena, "router %zu", i), &route);
        }
    }
}

/* Draws different experts for each token. */
static void fill_choice(ms_cuda_case *c, ms_local *choice, long num_experts)
{
    long chosen = choice->shape[choice->num_dims - 1];
    for (long i = 0; i < choice->count; i += chosen) {
        long first = (long)ms_rng_below(&c->rng, (uint64_t)num_experts);
        for (long slot = 0; slot < chosen; slot++)
            ms_cuda_case_values(choice)[i + slot] =
                (double)((first + slot * slot) % num_experts);
    }
}

static void gradients_of_routers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof routers / sizeof *routers; i++) {
        const router_case *r = &routers[i];
        ms_arena *arena = test_cx()->arena;
        ms_cuda_case *c = router_node(arena, r, MS_OP_ROUTE_GRAD);
        const char *of_slots = shape_of(arena, r->sequences, r->length, r->chosen);
        ms_cuda_case_in(c, "bsk", of_slots, MS_CASE_STATISTIC);
        ms_local *choice = ms_cuda_case_in(c, "bsk", of_slots, MS_CASE_STATISTIC);
        fill_choice(c, choice, r->experts);
        ms_cuda_case_in(c, "bsk", of_slots, MS_CASE_STATISTIC);
        ms_cuda_case_out(c, "bse", shape_of(arena, r->sequences, r->length, r->experts),
                         MS_CASE_STATISTIC);
        ms_cuda_case_run(c, ms_arena_printf(arena, "router %zu", i), &route_grad);
    }
}

/* ---- rows of experts ---- */

typedef struct rows_case {
    long sequences, length, chosen, experts, width;
} rows_case;

static const rows_case rows_cases[] = {
    {1, 1, 1, 1, 1},  {2, 5, 2, 4, 8},      {1, 37, 3, 60, 7},
    {2, 75, 2, 3, 5}, {1, 200, 8, 300, 24}, {1, 3, 2, 5, 2072},
};

static void run_rows(const rows_case *r, ms_op op, const ms_cuda_kernel *kernel)
{
    ms_arena *arena = test_cx()->arena;
    ms_cuda_case *c = ms_cuda_case_make(arena, op, 36);
    const char *x = shape_of(arena, r->sequences, r->length, r->width),
               *slots = shape_of(arena, r->sequences, r->length, r->chosen),
               *rows = shape_of(arena, r->sequences * r->length * r->chosen, r->width, 0);
    bool is_forward = op == MS_OP_PERMUTE || op == MS_OP_UNPERMUTE_GRAD;
    if (is_forward)
        ms_cuda_case_in(c, "bsh", x, MS_CASE_REAL);
    if (op != MS_OP_PERMUTE)
        ms_cuda_case_in(c, "rh", rows, MS_CASE_REAL);
    if (op == MS_OP_UNPERMUTE || op == MS_OP_UNPERMUTE_GRAD)
        ms_cuda_case_in(c, "bsk", slots, MS_CASE_STATISTIC);
    ms_local *choice = ms_cuda_case_in(c, "bsk", slots, MS_CASE_STATISTIC);
    fill_choice(c, choice, r->experts);
    if (is_forward)
        ms_cuda_case_out(c, "rh", rows, MS_CASE_REAL);
    else
        ms_cuda_case_out(c, "bsh", x, MS_CASE_REAL);
    if (op == MS_OP_UNPERMUTE_GRAD)
        ms_cuda_case_out(c, "bsk", slots, MS_CASE_STATISTIC);
    c->program.size['e' - '0'] = (double)r->experts;
    ms_cuda_case_run(c, ms_arena_printf(arena, "%s of %s", ms_op_names[op], rows),
                     kernel);
}

static void rows_of_experts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows_cases / sizeof *rows_cases; i++) {
        run_rows(&rows_cases[i], MS_OP_PERMUTE, &permute);
        run_rows(&rows_cases[i], MS_OP_PERMUTE_GRAD, &permute_grad);
        run_rows(&rows_cases[i], MS_OP_UNPERMUTE, &unpermute);
        run_rows(&rows_cases[i], MS_OP_UNPERMUTE_GRAD, &unpermute_grad);
    }
}

static void nothing_is_launched_for_no_tokens(void **state)
{
    (void)state;
    unsigned long before = ms_cuda_emulated_num_launches();
    ms_cuda_embed_rows(NULL, &(ms_cuda_embed_args){.width = 8});
    ms_cuda_embed_add(NULL, &(ms_cuda_embed_args){.width = 8}, NULL);
    ms_cuda_loss_row_max(NULL, &(ms_cuda_loss_args){.width = 8});
    ms_cuda_loss_row_sum(NULL, &(ms_cuda_loss_args){.width = 8});
    ms_cuda_loss_row_grad(NULL, &(ms_cuda_loss_args){.width = 8});
    ms_cuda_loss_of_rows(NULL, MS_SCALAR_FP32, &(ms_cuda_loss_args){.width = 8}, NULL);
    ms_cuda_router_choose(NULL, &(ms_cuda_router_args){.num_experts = 8});
    ms_cuda_router_gradient(NULL, &(ms_cuda_router_args){.num_experts = 8});
    const ms_cuda_permute_args none = {.num_chosen = 2, .num_experts = 4, .width = 8};
    ms_cuda_permute_rows(NULL, &none);
    ms_cuda_permute_back(NULL, &none);
    ms_cuda_permute_back_grad(NULL, &none);
    assert_true(ms_cuda_emulated_num_launches() == before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_of_programs_are_those_of_cpus),
        cmocka_unit_test(tables_of_any_size_and_part),
        cmocka_unit_test(losses_of_any_width_and_part),
        cmocka_unit_test(losses_of_rows),
        cmocka_unit_test(a_gradient_in_the_memory_of_the_logits),
        cmocka_unit_test(experts_are_chosen_as_on_cpus),
        cmocka_unit_test(gradients_of_routers),
        cmocka_unit_test(rows_of_experts),
        cmocka_unit_test(nothing_is_launched_for_no_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
