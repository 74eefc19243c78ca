/* Compute that overlaps with gathers and reductions: how much slower it runs, for
 * kernels and for other traffic on the same links, and which parts of a backward wait
 * for no communication. */
#include "sim/step/overlap.h"

#include "tests/unit/stage_bench.h"

/* ZeRO-3 on two layers, each of which needs 10 s of gathering and 20 s of reducing beside
 * a backward of 8 s. Compute of the last layer's forward, 4 / 0.75 s long, hides as much
 * of the first gather for backward. The embedding's reduction of 4 s is exposed in a
 * backward. In the last backward of a step, the embedding waits for no layer's
 * reduction. */
static void what_no_layer_waits_for_does_not_delay_a_backward(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_block_cost layer = {.forward_s = 4,
                           .backward_s = 8,
                           .gather_s = 10,
                           .reduce_s = 20,
                           .replicate_s = 1,
                           .tp_sync_s = 0.25};
    ms_block_costs parts = {.embed = {.forward_s = 1,
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
    ASSERT_NEAR(t.late_gather_s, 10 - last_s, 1e-12);
    ASSERT_NEAR(t.backward_s, 10.5 + 23 + 20 + 4, 1e-12);
    ASSERT_NEAR(t.last_backward_s, 10.5 + 24 + embedding_s, 1e-12);
    ASSERT_NEAR(t.reduce_tail_s, 21 - embedding_s + 4.5, 1e-12);
    ASSERT_NEAR(t.after_rank_s, 0.5, 1e-12);
}

/* ---- beside communication ---- */

/* The time until work and communication beside it both end. Work is kernels, other
 * traffic, or both (such as 8 s and 4 s). Kernels lose a fraction (the first argument,
 * such as 0.25) of the time in which communication runs beside them. The other traffic
 * shares links with the communication: each gets half of the bandwidth. */
static void work_beside_communication_shares_links(void **state)
{
    (void)state;
    ASSERT_NEAR(ms_overlap_s(0.25, 8, 0, 4), 9, 1e-12);
    ASSERT_NEAR(ms_overlap_s(0.25, 8, 0, 100), 100, 1e-12);
    ASSERT_NEAR(ms_overlap_s(1, 8, 0, 4), 12, 1e-12);
    ASSERT_NEAR(ms_overlap_s(0, 8, 0, 4), 8, 1e-12);
    ASSERT_NEAR(ms_overlap_s(0.25, 12, 4, 100), 104, 1e-12);
    ASSERT_NEAR(ms_overlap_s(0.25, 4, 4, 3), 7, 1e-12);
    ASSERT_NEAR(ms_overlap_s(1, 12, 4, 3), 15, 1e-12);
    /* Work and communication end together: kernels take 8 / 0.75 s and the other traffic
     * 2 x 4 s, during which communication at half of the bandwidth advances by 4 s. */
    double moves_s = 8 / 0.75 + 4;
    ASSERT_NEAR(ms_overlap_s(0.25, 12, 4, moves_s), 8 / 0.75 + 8, 1e-12);
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

/* Shares of link bandwidth that collectives take. A GPU has 100 B/s inside a domain of 8
 * GPUs, 20 B/s on the first network level and 40 / 4 = 10 B/s on the second; collectives
 * reach half of each. A ring of 32 ranks, 4 in each domain, sends 31/32 of its bytes on
 * every hop, and a quarter of the hops cross domains. */
static void a_collective_takes_its_share_of_links(void **state)
{
    (void)state;
    bench *b = open_bench();
    b->cluster =
        (ms_cluster){.network = "wires",
                     .num_levels = 3,
                     .levels = {{.bandwidth_bytes_per_s = 100},
                                {.bandwidth_bytes_per_s = 20, .oversubscription = 1},
                                {.bandwidth_bytes_per_s = 40, .oversubscription = 4}}};
    b->profile.num_networks = 1;
    b->profile.networks[0] =
        (ms_network_profile){.name = "wires", .bandwidth_frac.value = 0.5};
    const ms_span inside = {.size = 8, .per_domain = {8}},
                  across = {.size = 32, .per_domain = {4}, .tier = 1},
                  far = {.size = 32, .per_domain = {4}, .tier = 2};
    const struct {
        const ms_span *span;
        ms_collective collective;
        double size_bytes, seconds, inner_frac, outer_frac;
    } rows[] = {
        {&inside, MS_ALL_GATHER, 800, 20, 0.35, 0},
        {&across, MS_ALL_GATHER, 320, 10, 0.2325, 0.775},
        {&across, MS_ALL_REDUCE, 320, 20, 0.2325, 0.775},
        {&far, MS_ALL_GATHER, 320, 40, 0.058125, 0.3875},
        {&across, MS_ALL_TO_ALL, 320, 70, 30.0 / 7000, 0.4},
        {&across, MS_ALL_GATHER, 320, 0.1, 1, 1},
        {&across, MS_ALL_GATHER, 320, 0, 0, 0},
        {&across, MS_ALL_GATHER, 0, 10, 0, 0},
        {&(ms_span){.size = 1, .per_domain = {1}}, MS_ALL_GATHER, 800, 10, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ms_link_share got =
            ms_link_share_of(b->workload, rows[i].span, rows[i].collective,
                             rows[i].size_bytes, rows[i].seconds);
        ASSERT_NEAR(got.inner_frac, rows[i].inner_frac, 1e-12);
        ASSERT_NEAR(got.outer_frac, rows[i].outer_frac, 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_no_layer_waits_for_does_not_delay_a_backward),
        cmocka_unit_test(work_beside_communication_shares_links),
        cmocka_unit_test(collectives_contend_where_a_link_is_too_narrow),
        cmocka_unit_test(a_collective_takes_its_share_of_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
