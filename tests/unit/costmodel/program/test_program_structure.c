/* Properties of layer programs before they are executed: the same program for every
 * dp, statistics in fp32 at least, and saved tensors as the recomputation mode says. */
#include "costmodel/program/program.h"

#include "tests/support/program_cases.h"
#include "tests/test.h"

static bool same_tensor(const ms_program *x, const ms_program *y, int t)
{
    const ms_tensor *a = &x->tensors[t], *b = &y->tensors[t];
    bool same = strcmp(a->dims, b->dims) == 0 && a->mesh == b->mesh &&
                a->saved == b->saved &&
                ms_tensor_local_elements(x, t) == ms_tensor_local_elements(y, t);
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        same = same && a->at[axis].kind == b->at[axis].kind &&
               (a->at[axis].kind != MS_SHARD || a->at[axis].dim == b->at[axis].dim);
    return same;
}

static void compare_structure(const ms_program *one, const ms_program *two,
                              const char *label)
{
    if (one->num_nodes != two->num_nodes || one->num_tensors != two->num_tensors) {
        ms_case_wrong(label, one->num_nodes > two->num_nodes
                                 ? "has more nodes with dp 1 than with dp 2"
                                 : "has fewer nodes or tensors with dp 1 than with dp 2");
        return;
    }
    for (int t = 0; t < one->num_tensors; t++)
        if (!same_tensor(one, two, t))
            ms_case_wrong(label, one->tensors[t].name);
    for (int i = 0; i < one->num_nodes; i++)
        if (one->nodes[i].op != two->nodes[i].op ||
            ms_node_flop(one, &one->nodes[i]) != ms_node_flop(two, &two->nodes[i]))
            ms_case_wrong(label, one->nodes[i].name);
}

/* Programs are priced with dp 1, so they must not depend on dp. */
static void programs_do_not_depend_on_dp(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * (MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE); i++) {
        ms_ctx *cx = test_cx();
        ms_model model = ms_case_model(i / 2);
        for (int part = 0; part < MS_NUM_BLOCK_KINDS; part++) {
            ms_program_key key = i % 2 == 0 ? ms_case_whole_key((ms_block_kind)part)
                                            : ms_case_split_key((ms_block_kind)part);
            key.ep = key.tp;
            compare_structure(ms_case_program(cx->arena, &model, &key, 1),
                              ms_case_program(cx->arena, &model, &key, 2),
                              ms_case_describe(cx->arena, &model, &key));
        }
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static bool has_saved_output(const ms_program *program, ms_op op, int result)
{
    for (int i = 0; i < program->num_forward_nodes; i++)
        if (program->nodes[i].op == op &&
            program->tensors[program->nodes[i].out[result]].saved)
            return true;
    return false;
}

/* Bytes of an element of the log-sum-exp that attention saves. */
static double statistic_bytes(ms_dtype compute)
{
    ms_ctx *cx = test_cx();
    ms_model model = ms_case_model(0);
    ms_program_key key = ms_case_whole_key(MS_BLOCK_LAYER);
    const ms_program *program = ms_program_make(cx->arena, &model, &key, 16, 1, compute);
    for (int i = 0; i < program->num_forward_nodes; i++)
        if (program->nodes[i].op == MS_OP_ATTENTION)
            return program->tensors[program->nodes[i].out[1]].element_bytes;
    return 0.0;
}

static void statistics_are_at_least_fp32(void **state)
{
    (void)state;
    ASSERT_NEAR(statistic_bytes(MS_BF16), 4, 0);
    ASSERT_NEAR(statistic_bytes(MS_FP32), 4, 0);
    ASSERT_NEAR(statistic_bytes(MS_FP64), 8, 0);
}

static int count_recomputed(const ms_program *program)
{
    int count = 0;
    for (int i = 0; i < program->num_nodes; i++)
        count += program->nodes[i].pass == MS_PASS_RECOMPUTE;
    return count;
}

static void recompute_modes_keep_what_they_say(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model = ms_small_llama();
    ms_program_key key = ms_case_whole_key(MS_BLOCK_LAYER);
    key.attention_fused = false;
    const ms_program *all = ms_case_program(cx->arena, &model, &key, 1);
    ASSERT_INT(count_recomputed(all), 0);
    assert_true(has_saved_output(all, MS_OP_NORM, 0) &&
                has_saved_output(all, MS_OP_ATTENTION, 2));
    key.recompute = MS_RECOMPUTE_SELECTIVE;
    const ms_program *selective = ms_case_program(cx->arena, &model, &key, 1);
    assert_false(has_saved_output(selective, MS_OP_NORM, 0));
    assert_false(has_saved_output(selective, MS_OP_ACTIVATION, 0));
    assert_false(has_saved_output(selective, MS_OP_ATTENTION, 2));
    assert_true(has_saved_output(selective, MS_OP_EINSUM, 0));
    key.recompute = MS_RECOMPUTE_FULL;
    const ms_program *none = ms_case_program(cx->arena, &model, &key, 1);
    int num_saved = 0;
    for (int t = 0; t < none->num_tensors; t++)
        num_saved += none->tensors[t].saved;
    ASSERT_INT(num_saved, 1);
    assert_true(none->tensors[none->input].saved);
}

static double recomputed_flop(const ms_program *program)
{
    double flop = 0.0;
    for (int i = 0; i < program->num_nodes; i++)
        if (program->nodes[i].pass == MS_PASS_RECOMPUTE)
            flop += ms_node_flop(program, &program->nodes[i]);
    return flop;
}

/* In a layer without dropout, no backward node reads the result of the layer's last
 * product. Frameworks that recompute only what backward needs skip this product;
 * frameworks that call the whole layer again (`reruns_layer`) run it. */
static void a_layer_that_is_called_again_runs_as_a_whole(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model = ms_small_llama();
    ms_program_key key = ms_case_split_key(MS_BLOCK_LAYER);
    key.recompute = MS_RECOMPUTE_FULL;
    const ms_program *needed = ms_case_program(cx->arena, &model, &key, 2);
    key.reruns_layer = true;
    const ms_program *whole = ms_case_program(cx->arena, &model, &key, 2);
    double forward = 0.0, down = 0.0;
    for (int i = 0; i < whole->num_forward_nodes; i++) {
        const ms_node *node = &whole->nodes[i];
        forward += ms_node_flop(whole, node);
        if (strcmp(node->name, "mlp.down") == 0)
            down += ms_node_flop(whole, node);
    }
    assert_true(down > 0.0);
    ASSERT_NEAR(recomputed_flop(whole), forward, 0);
    ASSERT_NEAR(recomputed_flop(needed), forward - down, 0);
    ASSERT_INT(count_recomputed(whole), whole->num_forward_nodes);
}

/* Whether TorchTitan's selective recomputation saves the node's result (its
 * activation_checkpoint.py): attention kernels, reduce-scatters, all-to-alls, top-k;
 * of matrix products every second, from the first. */
static bool is_on_save_list(const ms_node *node, int *num_products)
{
    switch (node->op) {
    case MS_OP_ATTENTION:
    case MS_OP_EXCHANGE:
    case MS_OP_ROUTE:
        return true;
    case MS_OP_EINSUM:
        return (*num_products)++ % 2 == 0;
    case MS_OP_REDISTRIBUTE:
        return node->from.kind == MS_PARTIAL_SUM && node->to.kind == MS_SHARD;
    default:
        return false;
    }
}

static void per_op_recomputation_keeps_the_save_list_alone(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    for (int i = 0; i < MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE; i++) {
        ms_model model = ms_case_model(i);
        ms_program_key key = ms_case_split_key(MS_BLOCK_LAYER);
        key.sequence_parallel = key.regather = true;
        key.ep = i < MS_NUM_SMALL_DENSE ? 1 : 4;
        key.recompute = MS_RECOMPUTE_PER_OP;
        const ms_program *program = ms_case_program(cx->arena, &model, &key, 2);
        int num_products = 0;
        for (int n = 0; n < program->num_forward_nodes; n++) {
            const ms_node *node = &program->nodes[n];
            bool kept = is_on_save_list(node, &num_products);
            for (int j = 0; j < node->num_out; j++)
                if (program->tensors[node->out[j]].saved != kept)
                    ms_case_wrong(ms_case_describe(cx->arena, &model, &key), node->name);
        }
        assert_true(num_products >= 4);
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static void the_input_leads_to_its_gradient(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model = ms_small_llama();
    ms_program_key key = ms_case_split_key(MS_BLOCK_LAYER);
    const ms_program *program = ms_case_program(cx->arena, &model, &key, 2);
    ASSERT_INT(program->tensors[program->input].gradient, program->input_gradient);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_input_leads_to_its_gradient),
        cmocka_unit_test(statistics_are_at_least_fp32),
        cmocka_unit_test_setup(programs_do_not_depend_on_dp, ms_case_start),
        cmocka_unit_test(recompute_modes_keep_what_they_say),
        cmocka_unit_test(a_layer_that_is_called_again_runs_as_a_whole),
        cmocka_unit_test_setup(per_op_recomputation_keeps_the_save_list_alone,
                               ms_case_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
