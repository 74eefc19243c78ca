/* Seconds that transfers of parameters and gradients cost the block beside them, by hand. */
#include "sim/simulate/interference.h"

#include "tests/test.h"

/* A block of 8 s of kernels and exchanges, of which 3 s contend with gathers, in a forward
 * of 10 s, for which the host launches it; a backward in two halves; and the block that
 * both run after it. Kernels beside a transfer lose a quarter of their speed. */
typedef struct bench {
    ms_stack stack;
    ms_workload workload;
    ms_planned planned;
    ms_block_cost block, next;
    ms_interference at;
} bench;

static void open_forward(bench *b)
{
    *b = (bench){.stack = {.interference_frac.value = 0.25, .dp_overlap.value = 1},
                 .block = {.forward_s = 10,
                           .forward_host_s = 2,
                           .contended_forward_s = 3,
                           .backward_s = 16,
                           .input_s = 9,
                           .weight_s = 7,
                           .contended_backward_s = 6,
                           .contended_input_s = 4,
                           .contended_weight_s = 2},
                 .next = {.gather_s = 5}};
    b->workload.stack = &b->stack;
    b->planned = (ms_planned){.workload = &b->workload, .sharding = MS_ZERO_3};
    b->at = (ms_interference){.block = &b->block,
                              .next = &b->next,
                              .before_blocks = 1,
                              .next_blocks = 1,
                              .forward = true};
}

static double contention_s(const bench *b)
{
    return ms_contention_s(&b->planned, &b->at);
}

/* The gather of 5 s shares its links with 3 s of the forward, 6 s of the backward (more
 * than its own 5) and 4 s of the half that makes gradients of inputs. The other half
 * gathers nothing. */
static void a_gather_lasts_longer_beside_other_traffic(void **state)
{
    (void)state;
    bench b;
    open_forward(&b);
    ASSERT_NEAR(contention_s(&b), 3, 0);
    b.at.forward = false;
    b.at.inputs = b.at.weights = true;
    ASSERT_NEAR(contention_s(&b), 5, 0);
    b.at.weights = false;
    ASSERT_NEAR(contention_s(&b), 4, 0);
    b.at.inputs = false;
    b.at.weights = true;
    ASSERT_NEAR(contention_s(&b), 0, 0);
}

static void without_a_gather_beside_nothing_contends(void **state)
{
    (void)state;
    bench b;
    open_forward(&b);
    b.next.gather_s = 0;
    ASSERT_NEAR(contention_s(&b), 0, 0);
    open_forward(&b);
    b.at.next = NULL;
    ASSERT_NEAR(contention_s(&b), 0, 0);
    open_forward(&b);
    b.planned.sharding = MS_ZERO_2;
    ASSERT_NEAR(contention_s(&b), 0, 0);
    open_forward(&b);
    b.stack.dp_overlap.value = 0;
    ASSERT_NEAR(contention_s(&b), 0, 0);
}

/* Kernels of 8 s lose a quarter of the 4 s of a gather; the host, 10 s
 * after the start, is waited for 1 s less. A gather that lasts as long as they do costs
 * them 8 / 0.75 - 8 s, and the host is done by then. */
static void the_host_launches_while_transfers_slow_kernels(void **state)
{
    (void)state;
    bench b;
    open_forward(&b);
    b.block.contended_forward_s = 0;
    b.next.gather_s = 4;
    double slowed_s = ms_interference_s(&b.planned, &b.at, false);
    ASSERT_NEAR(slowed_s, 1, 1e-12);
    ASSERT_NEAR(ms_host_wait_s(&b.at, slowed_s), 1, 1e-12);
    ASSERT_NEAR(ms_launch_s(&b.at), 10, 0);
    b.next.gather_s = 100;
    slowed_s = ms_interference_s(&b.planned, &b.at, false);
    ASSERT_NEAR(slowed_s, 8 / 0.75 - 8, 1e-12);
    ASSERT_NEAR(ms_host_wait_s(&b.at, slowed_s), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gather_lasts_longer_beside_other_traffic),
        cmocka_unit_test(without_a_gather_beside_nothing_contends),
        cmocka_unit_test(the_host_launches_while_transfers_slow_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
