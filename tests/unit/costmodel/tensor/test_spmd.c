/* Types of SPMD values (replicated R, invariant I, varying V, partial P over an axis):
 * every type change of the table with its backward, the rules of operations, and in
 * numbers that a change and its backward are transposes of each other on four ranks. */
#include "costmodel/tensor/spmd.h"
#include "tests/support/program_cases.h"
#include "tests/test.h"

#define R MS_SPMD_REPLICATE
#define I MS_SPMD_INVARIANT
#define V MS_SPMD_VARYING
#define P MS_SPMD_PARTIAL

/* ---- the table ---- */

typedef struct row {
    ms_spmd_primitive forward;
    ms_spmd_type from, to;
    ms_spmd_primitive backward;
    ms_spmd_type backward_from, backward_to;
} row;

/* Type changes and their transposes as in JAX: all_gather, psum, psum_scatter,
 * all_to_all and pvary under varying manual axes; Megatron's f is I -> R, its g is P
 * -> I. */
static const row rows[] = {
    {MS_SPMD_ALL_GATHER, V, R, MS_SPMD_REDUCE_SCATTER, P, V},
    {MS_SPMD_ALL_GATHER, V, I, MS_SPMD_CONVERT, I, V},
    {MS_SPMD_ALL_REDUCE, P, R, MS_SPMD_ALL_REDUCE, P, R},
    {MS_SPMD_ALL_REDUCE, P, I, MS_SPMD_CONVERT, I, R},
    {MS_SPMD_REDUCE_SCATTER, P, V, MS_SPMD_ALL_GATHER, V, R},
    {MS_SPMD_ALL_TO_ALL, V, V, MS_SPMD_ALL_TO_ALL, V, V},
    {MS_SPMD_CONVERT, I, R, MS_SPMD_ALL_REDUCE, P, I},
    {MS_SPMD_CONVERT, I, V, MS_SPMD_ALL_GATHER, V, I},
    {MS_SPMD_CONVERT, R, V, MS_SPMD_CONVERT, V, P},
    {MS_SPMD_CONVERT, V, P, MS_SPMD_CONVERT, R, V},
    {MS_SPMD_CONVERT, R, P, MS_SPMD_CONVERT, R, P},
    {MS_SPMD_REINTERPRET, R, V, MS_SPMD_REINTERPRET, V, P},
    {MS_SPMD_REINTERPRET, V, P, MS_SPMD_REINTERPRET, R, V},
};
#define NUM_ROWS ((int)(sizeof rows / sizeof *rows))

static void every_forward_collective_implies_its_backward_one(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_ROWS; i++) {
        const ms_spmd_change *forward =
            ms_spmd_find(rows[i].forward, rows[i].from, rows[i].to);
        assert_non_null(forward);
        const ms_spmd_change *backward = ms_spmd_backward(forward);
        assert_non_null(backward);
        ASSERT_TEXT(ms_spmd_primitive_names[backward->primitive],
                    ms_spmd_primitive_names[rows[i].backward]);
        ASSERT_TEXT(ms_spmd_type_names[backward->from],
                    ms_spmd_type_names[rows[i].backward_from]);
        ASSERT_TEXT(ms_spmd_type_names[backward->to],
                    ms_spmd_type_names[rows[i].backward_to]);
        assert_ptr_equal(ms_spmd_backward(backward), forward);
    }
}

static void what_is_not_in_the_table_is_illegal(void **state)
{
    (void)state;
    int num_legal = 0;
    for (int primitive = 0; primitive < MS_NUM_SPMD_PRIMITIVES; primitive++)
        for (int from = 0; from < MS_NUM_SPMD_TYPES; from++)
            for (int to = 0; to < MS_NUM_SPMD_TYPES; to++)
                num_legal += ms_spmd_find((ms_spmd_primitive)primitive,
                                          (ms_spmd_type)from, (ms_spmd_type)to) != NULL;
    ASSERT_INT(num_legal, NUM_ROWS);
    assert_null(ms_spmd_find(MS_SPMD_ALL_GATHER, V, P));
    assert_null(ms_spmd_find(MS_SPMD_ALL_REDUCE, V, R));
    assert_null(ms_spmd_find(MS_SPMD_CONVERT, R, I));
}

/* ---- the table in numbers ---- */

#define RANKS 4

static double sum_of(const double *x, int stride, int at)
{
    double sum = 0;
    for (int rank = 0; rank < RANKS; rank++)
        sum += x[rank * stride + at];
    return sum;
}

/* Applies a type change to the local values `x` of four ranks, which gives `y`. A rank's
 * value is one number if varying, otherwise four numbers. */
static void carry_out(const ms_spmd_change *change, const double *x, double *y)
{
    int wide = change->primitive == MS_SPMD_REINTERPRET ? 1 : RANKS;
    for (int rank = 0; rank < RANKS; rank++) {
        for (int i = 0; i < RANKS; i++) {
            double *to = &y[rank * RANKS + i];
            *to = 0;
            if (change->primitive == MS_SPMD_ALL_GATHER)
                *to = x[i * RANKS];
            else if (change->primitive == MS_SPMD_ALL_REDUCE)
                *to = sum_of(x, RANKS, i);
            else if (change->primitive == MS_SPMD_REDUCE_SCATTER)
                *to = i == 0 ? sum_of(x, RANKS, rank) : 0;
            else if (change->primitive == MS_SPMD_ALL_TO_ALL)
                *to = x[i * RANKS + rank];
            else if (wide == 1 || (change->from == I && change->to == R))
                *to = x[rank * RANKS + i];
            else if (change->to == V)
                *to = i == 0 ? x[rank * RANKS + rank] : 0;
            else if (change->from == V)
                *to = i == rank ? x[rank * RANKS] : 0;
            else
                *to = x[rank * RANKS + i] / RANKS;
        }
    }
}

/* Fills x with a value of the type: equal on all ranks if replicated or invariant; if
 * varying, different on each rank, with one element (`narrow`) or four. */
static void fill(ms_spmd_type type, bool narrow, unsigned seed, double *x)
{
    for (int rank = 0; rank < RANKS; rank++)
        for (int i = 0; i < RANKS; i++) {
            bool equal = type == R || type == I;
            unsigned at = (unsigned)((equal ? 0 : rank) * 7 + i) * 2654435761u + seed;
            bool absent = type == V && narrow && i > 0;
            x[rank * RANKS + i] = absent ? 0 : (double)(at % 97) - 48;
        }
}

/* Inner product of a value x with its gradient g, counting each global element once. An
 * invariant value and its gradient are equal on all ranks, so the sum over ranks is
 * divided by their number. */
static double pairing(ms_spmd_type type, const double *x, const double *g)
{
    double sum = 0;
    for (int i = 0; i < RANKS * RANKS; i++)
        sum += x[i] * g[i];
    return type == I ? sum / RANKS : sum;
}

static void a_backward_is_the_transpose_of_its_forward(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_ROWS; i++) {
        const ms_spmd_change *forward =
            ms_spmd_find(rows[i].forward, rows[i].from, rows[i].to);
        const ms_spmd_change *backward = ms_spmd_backward(forward);
        bool narrow = forward->primitive != MS_SPMD_ALL_TO_ALL &&
                      forward->primitive != MS_SPMD_REINTERPRET;
        double x[RANKS * RANKS], y[RANKS * RANKS], gy[RANKS * RANKS], gx[RANKS * RANKS];
        fill(forward->from, narrow, 11, x);
        fill(ms_spmd_gradient(forward->to), narrow, 5, gy);
        carry_out(forward, x, y);
        carry_out(backward, gy, gx);
        ASSERT_NEAR(pairing(forward->from, x, gx), pairing(forward->to, y, gy), 1e-12);
    }
}

static void gradients_of_partial_sums_are_replicated(void **state)
{
    (void)state;
    ASSERT_INT(ms_spmd_gradient(R), P);
    ASSERT_INT(ms_spmd_gradient(P), R);
    ASSERT_INT(ms_spmd_gradient(V), V);
    ASSERT_INT(ms_spmd_gradient(I), I);
}

/* ---- placements ---- */

static void placements_have_types(void **state)
{
    (void)state;
    const ms_placement sum = {.kind = MS_PARTIAL_SUM}, max = {.kind = MS_PARTIAL_MAX};
    ms_spmd_type type;
    assert_true(ms_spmd_of_placement(ms_shard('b'), true, &type));
    ASSERT_INT(type, V);
    assert_true(ms_spmd_of_placement(ms_replicate, true, &type));
    ASSERT_INT(type, R);
    assert_true(ms_spmd_of_placement(ms_replicate, false, &type));
    ASSERT_INT(type, I);
    assert_true(ms_spmd_of_placement(sum, false, &type));
    ASSERT_INT(type, P);
    assert_false(ms_spmd_of_placement(max, false, &type));
}

/* Which collective a redistribution uses, and which are refused, as in pytorch
 * torch/distributed/tensor/_redistribute.py and _collective_utils.py. */
static void redistributions_are_changes_of_type(void **state)
{
    (void)state;
    const ms_placement sum = {.kind = MS_PARTIAL_SUM}, max = {.kind = MS_PARTIAL_MAX};
    const ms_placement strided = {.kind = MS_SHARD, .dim = 'b', .split_factor = 2};
    const struct {
        ms_placement from, to;
        int primitive; /* -1: illegal redistribution */
    } cases[] = {
        {ms_shard('b'), ms_replicate, MS_SPMD_ALL_GATHER},
        {ms_shard('b'), ms_shard('s'), MS_SPMD_ALL_TO_ALL},
        {ms_shard('b'), strided, MS_SPMD_ALL_TO_ALL},
        {sum, ms_replicate, MS_SPMD_ALL_REDUCE},
        {max, ms_replicate, MS_SPMD_ALL_REDUCE},
        {sum, ms_shard('s'), MS_SPMD_REDUCE_SCATTER},
        {ms_replicate, ms_shard('s'), MS_SPMD_CONVERT},
        {ms_replicate, sum, MS_SPMD_CONVERT},
        {ms_shard('s'), sum, -1},
        {ms_shard('s'), max, -1},
        {sum, max, -1},
        {max, sum, -1},
        {ms_replicate, max, -1},
        {ms_shard('s'), ms_shard('s'), -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ms_spmd_change *change =
            ms_spmd_of_redistribution(cases[i].from, cases[i].to);
        ASSERT_INT(change != NULL ? (int)change->primitive : -1, cases[i].primitive);
    }
}

/* ---- programs ---- */

typedef struct traffic {
    int count[MS_MESH_AXES][MS_NUM_SPMD_PRIMITIVES];
} traffic;

/* Counts collectives by mesh axis: in `made` those that the program has in backward, in
 * `implied` the transposes of those that it has in forward. The two agree with sequence
 * parallelism, where every gathered tensor has a partial gradient. The branches of a
 * parallel block add up to one sum, so they share one gradient, which is gathered
 * once. */
static void count_changes(const ms_program *program, traffic *implied, traffic *made)
{
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (node->op != MS_OP_REDISTRIBUTE || node->pass == MS_PASS_OPTIMIZER)
            continue;
        const ms_spmd_change *change = ms_spmd_of_redistribution(node->from, node->to);
        assert_non_null(change);
        if (node->pass == MS_PASS_FORWARD)
            implied->count[node->axis][ms_spmd_backward(change)->primitive]++;
        else
            made->count[node->axis][change->primitive]++;
    }
}

static void backward_traffic_follows_from_the_forward_pass(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_SMALL_DENSE; i++) {
        ms_ctx *cx = test_cx();
        ms_model model = ms_small_dense[i]();
        ms_program_key key = ms_case_split_key(MS_BLOCK_LAYER);
        key.sequence_parallel = true;
        const ms_program *program = ms_case_program(cx->arena, &model, &key, 2);
        traffic implied = {0}, made = {0};
        int num_made = 0;
        count_changes(program, &implied, &made);
        for (int axis = 0; axis < MS_MESH_AXES; axis++)
            for (int primitive = 0; primitive < MS_NUM_SPMD_PRIMITIVES; primitive++) {
                int num = made.count[axis][primitive];
                int num_implied = implied.count[axis][primitive];
                num_made += num;
                if (num > num_implied || (num < num_implied && !model.parallel_block))
                    fail_msg("%s: %d %s on %s in backward, %d follow from forward",
                             model.name, num, ms_spmd_primitive_names[primitive],
                             ms_mesh_axis_names[MS_DENSE_MESH][axis], num_implied);
            }
        assert_true(num_made >= 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_forward_collective_implies_its_backward_one),
        cmocka_unit_test(what_is_not_in_the_table_is_illegal),
        cmocka_unit_test(a_backward_is_the_transpose_of_its_forward),
        cmocka_unit_test(gradients_of_partial_sums_are_replicated),
        cmocka_unit_test(placements_have_types),
        cmocka_unit_test(redistributions_are_changes_of_type),
        cmocka_unit_test(backward_traffic_follows_from_the_forward_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
