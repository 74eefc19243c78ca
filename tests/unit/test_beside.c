/* Work beside gathers and reductions: what it loses to them, on kernels and on links, and what of a backward waits for none of them. */
#include "sim/beside.h"

#include "tests/unit/stage_bench.h"

/* Traffic of 10 + 20 s a layer beside a backward of 8: the forward before hides 4 / 0.75 of the first gather, the embedding's reduction is behind it; in the last backward
 * the embedding waits for no reduction. */
static void what_no_layer_waits_for_does_not_delay_a_backward(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_part layer = {.forward_s = 4,
                     .backward_s = 8,
                     .gather_s = 10,
                     .reduce_s = 20,
                     .replicate_s = 1,
                     .tp_sync_s = 0.25};
    ms_parts parts = {.embed = {.forward_s = 1,
                                .backward_s = 1,
                                .gather_s = 3,
                                .reduce_s = 4,
                                .replicate_s = 0.5}};
    parts.layer[0][MS_RECOMPUTE_NONE] = parts.layer[1][MS_RECOMPUTE_NONE] = layer;
    ms_stage_layout layout = {.num_layers = 2, .has_embedding = true};
    ms_stage stage = stage_of(b, &parts, layout);
    ms_stage_times t = ms_stage_durations(b->workload, &stage, MS_ZERO_3, 0);
    double last_s = 4 / 0.75, embedding_s = 1 / 0.75;
    ASSERT_NEAR(t.forward_s, 3 + 10 + 10 + last_s, 1e-12);
    ASSERT_NEAR(t.backward_s, 10 - last_s + 10.5 + 23 + 20 + 4, 1e-12);
    ASSERT_NEAR(t.last_backward_s, 10 - last_s + 10.5 + 24 + embedding_s, 1e-12);
    ASSERT_NEAR(t.reduce_tail_s, 21 - embedding_s + 4.5 + 0.5, 1e-12);
}

/* ---- beside communication ---- */

/* 8 s of kernels lose a quarter of what runs beside them; 4 s of traffic on the same links lose all of it: in the time in which kernels do 0.75, traffic does its
 * half and the other its half. */
static void work_beside_communication_shares_links(void **state)
{
    (void)state;
    ASSERT_NEAR(ms_beside_s(0.25, 8, 0, 4), 9, 1e-12);
    ASSERT_NEAR(ms_beside_s(0.25, 8, 0, 100), 100, 1e-12);
    ASSERT_NEAR(ms_beside_s(1, 8, 0, 4), 12, 1e-12);
    ASSERT_NEAR(ms_beside_s(0, 8, 0, 4), 8, 1e-12);
    ASSERT_NEAR(ms_beside_s(0.25, 12, 4, 100), 104, 1e-12);
    ASSERT_NEAR(ms_beside_s(0.25, 4, 4, 3), 7, 1e-12);
    ASSERT_NEAR(ms_beside_s(1, 12, 4, 3), 15, 1e-12);
    /* both end together: 8 / 0.75 + 2 x 4 s, of which the other moves 8 / 0.75 + 4 */
    double moves_s = 8 / 0.75 + 4;
    ASSERT_NEAR(ms_beside_s(0.25, 12, 4, moves_s), 8 / 0.75 + 8, 1e-12);
    ASSERT_NEAR(ms_slowed_s(0.25, 12, 4, 1000), 8 / 0.75 + 8 - 12, 1e-12);
}

static void collectives_contend_where_a_link_is_too_narrow(void **state)
{
    (void)state;
    ms_link_share inside = {0.8, 0}, across = {0.25, 1}, half = {0, 0.5};
    ASSERT_NEAR(ms_contended_frac(inside, inside), 0.6, 1e-12);
    ASSERT_NEAR(ms_contended_frac(across, across), 1, 1e-12);
    ASSERT_NEAR(ms_contended_frac(inside, across), 0.05, 1e-12);
    ASSERT_NEAR(ms_contended_frac(across, half), 0.5, 1e-12);
    ASSERT_NEAR(ms_contended_frac(inside, half), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_no_layer_waits_for_does_not_delay_a_backward),
        cmocka_unit_test(work_beside_communication_shares_links),
        cmocka_unit_test(collectives_contend_where_a_link_is_too_narrow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
