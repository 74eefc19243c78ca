/* Tests of layer programs of the small models on several ranks: kernels and transfers
 * give every tensor that the reference interpreter gives. */
#include "exec/lower/lower_async.h"
#include "tests/support/program_cases.h"
#include "tests/support/run_ranks.h"
#include "tests/test.h"

/* Greatest error relative to a tensor's largest value; sums are added in another
 * order. */
#define TOLERANCE_FP64 1e-12
#define TOLERANCE_FP32 2e-4

typedef struct test_case {
    const ms_model *model;
    ms_program_key key;
    long data_parallel;
    bool balanced_routing;
    /* sequence positions in natural order, not head-tail balanced over cp */
    bool stored_order;
    bool fp32;
    bool async_tp;
} test_case;

static double interpret_and_run(ms_ctx *cx, const test_case *c, const char **why)
{
    long *positions = MS_NEW_ARRAY(cx->arena, MS_SMALL_SEQUENCE, long);
    ms_interp_positions(positions, MS_SMALL_SEQUENCE, c->stored_order ? 1 : c->key.cp);
    ms_dtype type = c->fp32 ? MS_FP32 : MS_FP64;
    const ms_program *program = ms_program_make(
        cx->arena, c->model, &c->key, MS_SMALL_SEQUENCE, c->data_parallel, type);
    ms_interp_options options = {
        .seed = 31, .positions = positions, .balanced_routing = c->balanced_routing};
    ms_interp *like = ms_interp_run(cx->arena, program, &options);
    *why = like->why;
    if (like->why[0] != '\0')
        return HUGE_VAL;
    ms_plan plan = ms_ranks_plan(program);
    plan.async_tp = c->async_tp;
    ms_ranks_job job = {.program = program,
                        .plan = &plan,
                        .like = like,
                        .backend = &ms_backend_loop,
                        .type = c->fp32 ? MS_REAL_FP32 : MS_REAL_FP64};
    ms_cell *cells;
    ASSERT_OK(ms_ranks_run(cx, &job, &cells), cx);
    return ms_ranks_difference(cx->arena, like, cells,
                               c->fp32 ? TOLERANCE_FP32 : TOLERANCE_FP64, why);
}

static void check_case(const test_case *c)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    const char *why;
    double difference = interpret_and_run(&cx, c, &why);
    if (!(difference <= (c->fp32 ? TOLERANCE_FP32 : TOLERANCE_FP64)))
        ms_case_wrong(ms_case_describe(cx.arena, c->model, &c->key), why);
    ms_arena_close(cx.arena);
}

/* Counts the asynchronous tp pairs of a program: [0] all-gather with product, [1] product
 * with reduce-scatter. */
static void count_pairs(const test_case *c, int num_pairs[2])
{
    ms_arena *arena = ms_arena_open();
    const ms_program *program = ms_program_make(
        arena, c->model, &c->key, MS_SMALL_SEQUENCE, c->data_parallel, MS_FP64);
    ms_plan plan = ms_ranks_plan(program);
    for (int n = 0; n < program->num_nodes; n++) {
        plan.async_tp = false;
        assert_false(ms_async_pair(program, n, &plan));
        plan.async_tp = true;
        if (ms_async_pair(program, n, &plan))
            num_pairs[program->nodes[n].op != MS_OP_REDISTRIBUTE]++;
    }
    ms_arena_close(arena);
}

/* Makes small model i without dropout, which is not executed. */
static ms_model model_of(int i)
{
    ms_model model = ms_case_model(i);
    model.dropout = false;
    return model;
}

/* Checks two of twelve combinations of sequence parallelism, recomputation, fused
 * attention and repeated gathers, beginning with combination `first`. */
static void check_modes(test_case c, int first)
{
    for (int i = first; i < first + 2; i++) {
        c.key.sequence_parallel = i % 2 != 0;
        c.key.recompute = (unsigned char)(i % MS_RECOMPUTE_AUTO);
        c.key.reruns_layer = i % 3 == 0;
        c.key.attention_fused = i % 3 != 2;
        c.key.regather = i % 4 >= 2;
        check_case(&c);
    }
}

static bool heads_divide(const ms_model *model, long ranks)
{
    return model->num_heads % ranks == 0 &&
           (model->attention == MS_ATTENTION_MLA || model->num_kv_heads % ranks == 0);
}

static void dense_layers_are_executed_as_interpreted(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_SMALL_DENSE; i++) {
        ms_model model = model_of(i);
        test_case c = {.model = &model,
                       .key = ms_case_split_key(MS_BLOCK_LAYER),
                       .data_parallel = 2};
        for (int method = 0; method < MS_NUM_CP_METHODS; method++) {
            c.key.cp_method = (unsigned char)method;
            c.stored_order = method == MS_CP_ULYSSES;
            c.data_parallel = method == MS_CP_RING ? 2 : 1;
            if (method != MS_CP_ULYSSES || heads_divide(&model, 4))
                check_modes(c, 2 * (method + i));
        }
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static void expert_layers_are_executed_as_interpreted(void **state)
{
    (void)state;
    static const short meshes[][2] = {{1, 1}, {2, 1}, {8, 1}, {1, 2}, {4, 2}};
    for (int i = 0; i < MS_NUM_SMALL_MOE; i++) {
        ms_model model = model_of(MS_NUM_SMALL_DENSE + i);
        test_case c = {.model = &model,
                       .key = ms_case_split_key(MS_BLOCK_LAYER),
                       .data_parallel = 2};
        for (size_t j = 0; j < sizeof meshes / sizeof *meshes; j++) {
            c.key.ep = meshes[j][0];
            c.key.etp = meshes[j][1];
            c.key.cp_method = (unsigned char)(j % MS_NUM_CP_METHODS);
            c.balanced_routing = j % 2 != 0;
            if (c.key.cp_method != MS_CP_ULYSSES || heads_divide(&model, 4))
                check_modes(c, 2 * ((int)j + i));
        }
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static void other_meshes_are_executed_as_interpreted(void **state)
{
    (void)state;
    static const short meshes[][6] = {
        /* columns: dp, cp, tp, ep, etp, ms_cp_method */
        {1, 1, 1, 1, 1, 0}, {1, 1, 4, 4, 1, 0}, {1, 4, 1, 2, 1, 1},
        {4, 1, 1, 4, 1, 0}, {1, 1, 4, 1, 4, 0}, {2, 2, 4, 4, 4, 1},
        {1, 2, 4, 8, 1, 2}, {2, 4, 2, 8, 1, 2}, {1, 8, 1, 4, 1, 1}};
    for (size_t i = 0; i < 2 * sizeof meshes / sizeof *meshes; i++) {
        const short *mesh = meshes[i / 2];
        ms_model model = i % 2 == 0 ? ms_small_deepseek() : ms_small_qwen_moe();
        test_case c = {.model = &model,
                       .key = ms_case_whole_key(MS_BLOCK_LAYER),
                       .data_parallel = mesh[0]};
        c.key.cp = mesh[1];
        c.key.tp = mesh[2];
        c.key.ep = mesh[3];
        c.key.etp = mesh[4];
        c.key.cp_method = (unsigned char)mesh[5];
        c.key.sequence_parallel = mesh[2] > 1;
        c.stored_order = mesh[5] == MS_CP_ULYSSES;
        if (mesh[5] != MS_CP_ULYSSES || heads_divide(&model, mesh[1] * mesh[2]))
            check_case(&c);
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

/* Ring attention with contiguous chunks: some key blocks are seen by no query of a
 * rank. */
static void rings_in_stored_order_are_executed_as_interpreted(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_SMALL_DENSE; i++) {
        ms_model model = model_of(i);
        test_case c = {.model = &model,
                       .key = ms_case_whole_key(MS_BLOCK_LAYER),
                       .data_parallel = 1};
        c.stored_order = true;
        c.key.cp = 4;
        c.key.cp_method = MS_CP_RING;
        c.key.cp_unbalanced = true;
        check_case(&c);
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static void ends_are_executed_as_interpreted(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_SMALL_DENSE; i++) {
        ms_model model = model_of(i);
        model.head_bias = i % 2 == 0;
        model.embedding_norm = i % 4 >= 2;
        for (int j = 0; j < 2; j++) {
            test_case c = {.model = &model,
                           .key = ms_case_split_key(MS_BLOCK_EMBED),
                           .data_parallel = 2};
            c.key.sequence_parallel = (i + j) % 2 != 0;
            c.key.loss_parallel = j != 0;
            check_case(&c);
            c.key.block = MS_BLOCK_HEAD;
            check_case(&c);
        }
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

/* Asynchronous tp pairs (gather with product, product with scatter), forward and
 * backward, on two and four ranks, give the results of separate operations. */
static void asynchronous_pairs_give_the_same(void **state)
{
    (void)state;
    int num_pairs[2] = {0};
    for (int i = 0; i < MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE; i++) {
        ms_model model = model_of(i);
        test_case c = {.model = &model,
                       .key = ms_case_whole_key(MS_BLOCK_LAYER),
                       .data_parallel = 1};
        c.async_tp = true;
        c.key.sequence_parallel = true;
        c.key.tp = i % 2 == 0 ? 2 : 4;
        c.key.cp = i % 2 == 0 ? 2 : 1;
        c.key.recompute = (unsigned char)(i % MS_RECOMPUTE_AUTO);
        c.key.microbatch = 1 + i % 3;
        check_case(&c);
        count_pairs(&c, num_pairs);
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
    assert_true(num_pairs[0] >= 4 * MS_NUM_SMALL_DENSE + 2 * MS_NUM_SMALL_MOE);
    assert_true(num_pairs[1] >= 2 * MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE);
}

static void fp32_is_near(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE; i++) {
        ms_model model = model_of(i);
        test_case c = {.model = &model,
                       .key = ms_case_split_key(MS_BLOCK_LAYER),
                       .data_parallel = 2};
        c.fp32 = true;
        c.key.cp_method = MS_CP_RING;
        c.key.ep = i >= MS_NUM_SMALL_DENSE ? 4 : 1;
        c.key.sequence_parallel = true;
        check_case(&c);
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(dense_layers_are_executed_as_interpreted, ms_case_start),
        cmocka_unit_test_setup(expert_layers_are_executed_as_interpreted, ms_case_start),
        cmocka_unit_test_setup(other_meshes_are_executed_as_interpreted, ms_case_start),
        cmocka_unit_test_setup(rings_in_stored_order_are_executed_as_interpreted,
                               ms_case_start),
        cmocka_unit_test_setup(ends_are_executed_as_interpreted, ms_case_start),
        cmocka_unit_test_setup(asynchronous_pairs_give_the_same, ms_case_start),
        cmocka_unit_test_setup(fp32_is_near, ms_case_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
