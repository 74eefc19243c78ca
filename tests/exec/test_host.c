/* The machine that the tests run on, as a cluster. */
#include "exec/host.h"

#include "tests/test.h"

static void memory_is_that_of_a_machine(void **state)
{
    (void)state;
    double bytes = ms_host_memory_bytes();
    assert_true(bytes > 1e6 && bytes < 1e15);
}

static void ranks_share_one_node(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_cluster *generic, *one, *four;
    ASSERT_OK(ms_cluster_load(cx, "cpu", &generic), cx);
    ASSERT_OK(ms_host_cluster(cx, 1, &one), cx);
    ASSERT_OK(ms_host_cluster(cx, 4, &four), cx);
    ASSERT_INT(one->gpus_per_node, 1);
    ASSERT_INT(four->gpus_per_node, 4);
    ASSERT_INT(four->num_levels, 1);
    ASSERT_INT(four->device.num_sms, 1);
    /* others use memory too while the tests run */
    ASSERT_NEAR(4 * four->device.memory_bytes, one->device.memory_bytes, 0.5);
    for (int type = MS_FP64; type <= MS_FP32; type++)
        ASSERT_NEAR(four->device.peak_flop_per_s[type],
                    generic->device.peak_flop_per_s[type], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_that_of_a_machine),
        cmocka_unit_test(ranks_share_one_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
