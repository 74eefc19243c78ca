/* Operations that a host launches for a node where nothing fuses them. */
#include "costmodel/cost/host_operations.h"

#include "tests/test.h"

static ms_host_operations operations(ms_op op, int num_in, int kernels, bool is_split)
{
    ms_node node = {.op = (unsigned char)op, .num_in = (unsigned char)num_in};
    return ms_node_host_operations(&node, kernels, is_split);
}

/* An RMS norm is cast, square, mean, sum, root, product, cast, product. A gated activation
 * is the function and a product; its gradient two products and that of the function. */
static void chains_are_counted_by_operation(void **state)
{
    (void)state;
    ASSERT_INT(operations(MS_OP_NORM, 2, 1, false).total, 8);
    ASSERT_INT(operations(MS_OP_ACTIVATION, 2, 1, false).total, 2);
    ASSERT_INT(operations(MS_OP_ACTIVATION, 1, 1, false).total, 1);
    ASSERT_INT(operations(MS_OP_ACTIVATION_GRAD, 3, 1, false).total, 3);
    ASSERT_INT(operations(MS_OP_ADD, 2, 1, false).total, 1);
    ASSERT_INT(operations(MS_OP_EINSUM, 2, 1, false).total, 1);
    /* more kernels than one, as of experts one by one, are launches of their own */
    ASSERT_INT(operations(MS_OP_GROUPED, 3, 5, false).total, 5);
    ASSERT_INT(operations(MS_OP_ROUTE, 1, 4, false).total, 11);
    ASSERT_INT(operations(MS_OP_BIAS, 2, 0, false).total, 0);
}

/* Linear layers return local tensors, on which activations, rotations and the attention
 * work; norms are of DTensors, if tp shards them. */
static void norms_and_products_are_of_dtensors(void **state)
{
    (void)state;
    ASSERT_INT(operations(MS_OP_NORM, 2, 1, true).sharded, 8);
    ASSERT_INT(operations(MS_OP_EINSUM, 2, 1, true).sharded, 1);
    ASSERT_INT(operations(MS_OP_EINSUM, 2, 1, false).sharded, 0);
    ASSERT_INT(operations(MS_OP_ROTARY, 1, 1, true).sharded, 0);
    ASSERT_INT(operations(MS_OP_ACTIVATION, 2, 1, true).sharded, 0);
    ASSERT_INT(operations(MS_OP_ATTENTION, 3, 1, true).sharded, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_are_counted_by_operation),
        cmocka_unit_test(norms_and_products_are_of_dtensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
