/* Tests of the CPU attention kernels, which work in tiles and blocks: incomplete tiles,
 * key blocks in any order, queries that see no key. */
#include "exec/cpu/kernels.h"
#include "tests/support/hand_program.h"
#include "tests/support/interpreter_priv.h"
#include "tests/support/run_program.h"
#include "tests/test.h"

static const double tolerance[] = {[MS_REAL_FP32] = 1e-5, [MS_REAL_FP64] = 1e-12};

typedef struct shape {
    long sequence, heads, kv_heads, width, value_width, window;
    bool head_tail; /* positions of a sequence in head-tail balanced order */
} shape;

enum {
    Q,
    K,
    V,
    GO,
    O,
    LSE,
    GQ,
    GK,
    GV
};

/* Interprets forward and backward of one attention; its tensors are numbered Q, K, V,
 * ... */
static ms_interp *interpret(const shape *s)
{
    ms_hand *h = ms_hand_open(test_cx()->arena);
    long *positions = MS_NEW_ARRAY(h->arena, s->sequence, long);
    if (s->head_tail)
        ms_interp_positions(positions, s->sequence, 2);
    h->options.positions = s->head_tail ? positions : NULL;
    ms_hand_set_size(h, MS_DIM_SEQUENCE, s->sequence);
    ms_hand_set_size(h, MS_DIM_HEADS, s->heads);
    ms_hand_set_size(h, MS_DIM_KV_HEADS, s->kv_heads);
    ms_hand_set_size(h, MS_DIM_HEAD, s->width);
    ms_hand_set_size(h, MS_DIM_VALUE, s->value_width);
    const char *given[] = {"bsnd", "bsgd", "bsgw", "bsnw"},
               *made[] = {"bsnw", "bsn", "bsnd", "bsgd", "bsgw"};
    for (int i = 0; i < 4; i++)
        ms_hand_tensor(h, given[i], MS_ROLE_WEIGHT, "RRR");
    for (int i = 0; i < 5; i++) {
        int tensor = ms_hand_result(h, made[i], "RRR");
        h->tensors[tensor].producer = i < 2 ? 0 : 1;
    }
    const ms_node nodes[] = {{.op = MS_OP_ATTENTION,
                              .num_in = 3,
                              .num_out = 2,
                              .in = {Q, K, V},
                              .out = {O, LSE}},
                             {.op = MS_OP_ATTENTION_GRAD,
                              .num_in = 6,
                              .num_out = 3,
                              .in = {Q, K, V, O, LSE, GO},
                              .out = {GQ, GK, GV}}};
    for (int i = 0; i < 2; i++) {
        h->nodes[i] = nodes[i];
        h->nodes[i].window_tokens = s->window;
        h->nodes[i].name = "attention";
    }
    h->program.num_nodes = h->program.num_forward_nodes = 2;
    ms_interp *run = ms_interp_run(h->arena, &h->program, &h->options);
    assert_string_equal(run->why, "");
    return run;
}

static void expect_equal(ms_program_run *run, ms_interp *want, int tensor)
{
    const ms_cell *cell = ms_interp_cell(want, tensor, 0);
    double difference = ms_interp_difference(ms_program_run_values(run, tensor),
                                             cell->values, cell->count);
    if (!(difference <= tolerance[run->kernels->type]))
        fail_msg("tensor %d differs by %.3g", tensor, difference);
}

static void tiles_end_where_the_sequence_ends(void **state)
{
    (void)state;
    const shape shapes[] = {
        {1, 2, 2, 4, 4, 0, false},     {64, 2, 1, 4, 4, 0, false},
        {65, 4, 2, 6, 10, 0, false},   {128, 2, 2, 8, 4, 0, true},
        {196, 3, 1, 4, 4, 0, false},   {196, 2, 2, 4, 6, 50, false},
        {196, 2, 1, 4, 4, 64, true},   {132, 2, 1, 4, 4, 1, true},
        {196, 2, 1, 4, 4, 500, false},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int type = 0; type < 2; type++) {
            ms_interp *want = interpret(&shapes[i]);
            ms_program_run *run =
                ms_program_run_prepare(want, ms_cpu_kernels((ms_real_type)type));
            ms_program_run_execute(run);
            for (int tensor = O; tensor <= GV; tensor++)
                expect_equal(run, want, tensor);
        }
}

/* ---- blocks ---- */

/* Copies keys [first, first + length) of a tensor [b t g d]. */
static ms_local take_keys(ms_program_run *run, int tensor, long first, long length)
{
    const ms_local *all = &run->locals[tensor];
    ms_local part = *all;
    size_t row = (size_t)(all->shape[2] * all->shape[3]) * run->kernels->real_bytes;
    part.shape[1] = length;
    part.start[1] = first;
    part.count = all->count / all->shape[1] * length;
    part.data = ms_arena_alloc(run->arena, (size_t)part.count * sizeof(double));
    for (long b = 0; b < all->shape[0]; b++)
        memcpy((char *)part.data + (size_t)(b * length) * row,
               (char *)all->data + (size_t)(b * all->shape[1] + first) * row,
               (size_t)length * row);
    return part;
}

static void put_keys(ms_program_run *run, int tensor, const ms_local *part)
{
    const ms_local *all = &run->locals[tensor];
    size_t row = (size_t)(all->shape[2] * all->shape[3]) * run->kernels->real_bytes;
    for (long b = 0; b < all->shape[0]; b++)
        memcpy((char *)all->data + (size_t)(b * all->shape[1] + part->start[1]) * row,
               (char *)part->data + (size_t)(b * part->shape[1]) * row,
               (size_t)part->shape[1] * row);
}

static void run_block(ms_program_run *run, int node, long first, long length)
{
    ms_op_call call = ms_program_run_call(run, &run->program->nodes[node]);
    ms_local k = take_keys(run, K, first, length), v = take_keys(run, V, first, length);
    ms_attention_block block = {.call = &call,
                                .q = &run->locals[Q],
                                .k = &k,
                                .v = &v,
                                .o = &run->locals[O],
                                .lse = &run->locals[LSE]};
    if (node == 0) {
        run->kernels->attention_block(&block, call.workspace);
        return;
    }
    ms_local gk = take_keys(run, GK, first, length),
             gv = take_keys(run, GV, first, length);
    block.go = &run->locals[GO];
    block.gq = &run->locals[GQ];
    block.gk = &gk;
    block.gv = &gv;
    run->kernels->attention_block_grad(&block, call.workspace);
    put_keys(run, GK, &gk);
    put_keys(run, GV, &gv);
}

static void clear(ms_program_run *run)
{
    const int zero[] = {O, GQ, GK, GV};
    for (int i = 0; i < 4; i++)
        run->kernels->fill(run->locals[zero[i]].data, 0, run->locals[zero[i]].count);
    run->kernels->fill(run->locals[LSE].data, -HUGE_VAL, run->locals[LSE].count);
}

static void expect_blocks(ms_program_run *run, ms_interp *want, const int *order,
                          int num_blocks)
{
    long sequence = run->locals[Q].shape[1], length = sequence / num_blocks;
    clear(run);
    for (int node = 0; node < 2; node++)
        for (int i = 0; i < num_blocks; i++) {
            long first = order[i] * length;
            bool is_last = order[i] == num_blocks - 1;
            run_block(run, node, first, is_last ? sequence - first : length);
        }
    for (int tensor = O; tensor <= GV; tensor++)
        expect_equal(run, want, tensor);
}

static void blocks_in_any_order_equal_one(void **state)
{
    (void)state;
    const shape shapes[] = {{44, 4, 2, 6, 10, 0, false},
                            {132, 2, 1, 4, 4, 0, true},
                            {132, 2, 2, 4, 4, 20, true}};
    const int orders[][4] = {{0, 1, -1},    {1, 0, -1},   {0, 1, 2, -1},
                             {2, 0, 1, -1}, {0, 1, 2, 3}, {3, 2, 1, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        ms_interp *want = interpret(&shapes[i]);
        for (int type = 0; type < 2; type++) {
            ms_program_run *run =
                ms_program_run_prepare(want, ms_cpu_kernels((ms_real_type)type));
            for (size_t j = 0; j < sizeof orders / sizeof *orders; j++) {
                int num_blocks = 0;
                while (num_blocks < 4 && orders[j][num_blocks] >= 0)
                    num_blocks++;
                expect_blocks(run, want, orders[j], num_blocks);
            }
        }
    }
}

/* A block whose keys are all later than the queries changes nothing, and later blocks
 * give the right result. */
static void queries_that_see_no_key_are_left_as_they_were(void **state)
{
    (void)state;
    const shape s = {24, 2, 1, 4, 4, 5, false};
    ms_interp *want = interpret(&s);
    for (int type = 0; type < 2; type++) {
        ms_program_run *run =
            ms_program_run_prepare(want, ms_cpu_kernels((ms_real_type)type));
        clear(run);
        run_block(run, 0, 12, 12);
        const double *o = ms_program_run_values(run, O),
                     *lse = ms_program_run_values(run, LSE);
        for (long row = 0; row < run->locals[LSE].count; row++) {
            bool sees = row / s.heads % s.sequence >= 12;
            assert_true(sees ? isfinite(lse[row]) : lse[row] == -HUGE_VAL);
            for (long i = 0; i < s.value_width; i++)
                assert_true(sees ? isfinite(o[row * s.value_width + i])
                                 : o[row * s.value_width + i] == 0);
        }
        run_block(run, 1, 12, 12);
        const double *gq = ms_program_run_values(run, GQ);
        for (long i = 0; i < run->locals[GQ].count; i++)
            assert_true(isfinite(gq[i]));
        assert_true(gq[0] == 0 &&
                    run->kernels->is_finite(run->locals[GK].data, run->locals[GK].count));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_end_where_the_sequence_ends),
        cmocka_unit_test(blocks_in_any_order_equal_one),
        cmocka_unit_test(queries_that_see_no_key_are_left_as_they_were),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
