/* The optimizer pass of layer programs: sharded ranks reduce their gradients and
 * update their weights to the values that one rank computes. */
#include "costmodel/cost/bill.h"
#include "tests/support/interpreter.h"
#include "tests/support/program_cases.h"
#include "tests/test.h"

static int next_update(const ms_program *program, int from)
{
    while (from < program->num_nodes && program->nodes[from].op != MS_OP_ADAM)
        from++;
    return from;
}

static ms_interp *run(ms_ctx *cx, const ms_program *program, const long *positions)
{
    ms_interp_options options = {.seed = 5, .positions = positions};
    ms_interp *result = ms_interp_run(cx->arena, program, &options);
    ASSERT_TEXT(result->why, "");
    return result;
}

static void compare(ms_interp *got, int got_tensor, ms_interp *want, int want_tensor)
{
    long got_count, want_count;
    const double *got_values = ms_interp_gather(got, got_tensor, &got_count);
    const double *want_values = ms_interp_gather(want, want_tensor, &want_count);
    ASSERT_TEXT(got->why, "");
    assert_true(got_values != NULL && want_values != NULL);
    ASSERT_INT(got_count, want_count);
    double difference = ms_interp_difference(got_values, want_values, want_count);
    if (!(difference <= 1e-12))
        fail_msg("%s differs by %g", want->program->tensors[want_tensor].name,
                 difference);
}

/* Compares updated weights and optimizer moments of two runs, weight by weight.
 * Returns the number of weights. */
static int compare_updates(ms_interp *got, ms_interp *want)
{
    int count = 0;
    int g = next_update(got->program, 0), w = next_update(want->program, 0);
    for (; w < want->program->num_nodes; count++) {
        assert_true(g < got->program->num_nodes);
        for (int i = 0; i < 3; i++)
            compare(got, got->program->nodes[g].out[i], want,
                    want->program->nodes[w].out[i]);
        g = next_update(got->program, g + 1);
        w = next_update(want->program, w + 1);
    }
    ASSERT_INT(g, got->program->num_nodes);
    return count;
}

static void check_model(ms_make_model *make, int ep)
{
    ms_ctx *cx = test_cx();
    ms_model model = make();
    ms_program_key whole = ms_case_whole_key(MS_BLOCK_LAYER),
                   split = ms_case_split_key(MS_BLOCK_LAYER);
    whole.optimizer = split.optimizer = true;
    split.sequence_parallel = true;
    split.ep = (short)ep;
    whole.microbatch = 2 * MS_CASE_MICROBATCH; /* sequences of both data-parallel ranks */
    const ms_program *one = ms_case_program(cx->arena, &model, &whole, 1);
    const ms_program *many = ms_case_program(cx->arena, &model, &split, 2);
    long *positions =
        MS_NEW_ARRAY(cx->arena, (long)one->size[MS_DIM_SEQUENCE - '0'], long);
    ms_interp_positions(positions, (long)one->size[MS_DIM_SEQUENCE - '0'], 2);
    int updates = compare_updates(run(cx, many, positions), run(cx, one, positions));
    int weights = 0;
    for (int t = 0; t < many->num_tensors; t++)
        weights +=
            many->tensors[t].role == MS_ROLE_WEIGHT && many->tensors[t].gradient >= 0;
    ASSERT_INT(updates, weights);
    assert_true(weights > 5);
}

static void sharded_updates_are_those_of_one_rank(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_SMALL_DENSE; i++)
        check_model(ms_small_dense[i], 1);
}

static void sharded_updates_of_experts_are_those_of_one_rank(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_SMALL_MOE; i++)
        check_model(ms_small_moe[i], 2);
}

/* Gradients enter the update as whole sums: over sequences (dp), parts of sequences
 * (cp) and, for norms with sequence parallelism, tp. */
static void gradients_are_reduced_over_what_they_are_partial_on(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model = ms_small_dense[0]();
    ms_program_key key = ms_case_split_key(MS_BLOCK_LAYER);
    key.optimizer = key.sequence_parallel = true;
    const ms_program *program = ms_case_program(cx->arena, &model, &key, 2);
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (node->pass != MS_PASS_OPTIMIZER)
            continue;
        const ms_tensor *gradient = &program->tensors[node->in[node->op == MS_OP_ADAM]];
        if (node->op == MS_OP_REDISTRIBUTE)
            ASSERT_INT(node->from.kind, MS_PARTIAL_SUM);
        for (int axis = 0; node->op == MS_OP_ADAM && axis < MS_MESH_AXES; axis++)
            assert_true(gradient->at[axis].kind == MS_SHARD ||
                        gradient->at[axis].kind == MS_REPLICATE);
    }
    int norm = ms_interp_weight(program, 0);
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        ASSERT_INT(program->tensors[program->tensors[norm].gradient].at[axis].kind,
                   MS_PARTIAL_SUM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharded_updates_are_those_of_one_rank),
        cmocka_unit_test(sharded_updates_of_experts_are_those_of_one_rank),
        cmocka_unit_test(gradients_are_reduced_over_what_they_are_partial_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
