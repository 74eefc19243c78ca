/* Seconds of communication that compute does not hide, with round coefficients by hand:
 * shares of a stack, ring attention, and asynchronous TP in chunks. */
#include "tests/unit/stage_bench.h"

static void traffic_is_exposed_less_the_share_of_the_stack(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_links links = make_links();
    ms_bill_comm tp = two_of(MS_BILL_TP, MS_ALL_REDUCE, 10),
                 cp = two_of(MS_BILL_CP, MS_ALL_GATHER, 10),
                 ep = two_of(MS_BILL_EP, MS_ALL_TO_ALL, 10);
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &tp, &links, false), 6, 1e-12);
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &cp, &links, false), 6, 1e-12);
    b->stack.tp_overlap_frac.value = 0.25;
    b->stack.cp_overlap_frac.value = 0.5;
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &tp, &links, false), 4.5, 1e-12);
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &cp, &links, false), 3, 1e-12);
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &ep, &links, false), 6, 1e-12);
}

/* Two sends of ring attention, 3 s each, beside steps of 2 s each: 4 s hide, and slow
 * compute by a quarter of that; with ring_overlap_frac 0.5, 3 s hide. */
static void sends_of_a_ring_hide_behind_their_steps(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_links links = make_links();
    ms_bill_comm ring = two_of(MS_BILL_CP, MS_SEND, 4);
    ring.ring = true;
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &ring, &links, false), 6, 1e-12);
    b->stack.ring_overlap_frac.value = 1;
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &ring, &links, false), 6 - 4 * 0.75,
                1e-12);
    b->stack.ring_overlap_frac.value = 0.5;
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &ring, &links, false), 6 - 3 * 0.75,
                1e-12);
}

/* A collective of 6 s in 4 chunks can hide all but the first chunk: 4.5 s behind a
 * long product, which loses a quarter of that; 2 s behind a product of 2 s. */
static void all_but_the_first_chunk_hides_behind_the_product(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_links links = make_links();
    ms_bill_comm gather = two_of(MS_BILL_TP, MS_ALL_GATHER, 10),
                 scatter = two_of(MS_BILL_TP, MS_REDUCE_SCATTER, 2),
                 alone = two_of(MS_BILL_TP, MS_ALL_GATHER, 0);
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &gather, &links, true), 6 - 4.5 * 0.75,
                1e-12);
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &scatter, &links, true), 6 - 2 * 0.75,
                1e-12);
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &alone, &links, true), 6, 1e-12);
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &gather, &links, false), 6, 1e-12);
}

static void what_cannot_be_chunked_stays_exposed(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_links links = make_links();
    ms_bill_comm reduce = two_of(MS_BILL_TP, MS_ALL_REDUCE, 10),
                 other_axis = two_of(MS_BILL_CP, MS_ALL_GATHER, 10),
                 gather = two_of(MS_BILL_TP, MS_ALL_GATHER, 10);
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &reduce, &links, true), 6, 1e-12);
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &other_axis, &links, true), 6, 1e-12);
    links.span[MS_BILL_TP].tier = 1; /* the group crosses domains */
    ASSERT_NEAR(ms_comm_exposed_s(b->workload, &gather, &links, true), 6, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traffic_is_exposed_less_the_share_of_the_stack),
        cmocka_unit_test(sends_of_a_ring_hide_behind_their_steps),
        cmocka_unit_test(all_but_the_first_chunk_hides_behind_the_product),
        cmocka_unit_test(what_cannot_be_chunked_stays_exposed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
