/* The groups of ranks of a plan and their cost laws, by hand: 64 ranks in nodes of 8,
 * whose links give 100 B/s, half of it reached, and whose NICs give 20 B/s at an
 * oversubscription of 2. */
#include "sim/step/links.h"

#include "tests/test.h"

static const ms_cluster cluster = {.network = "infiniband",
                                   .gpus_per_node = 8,
                                   .num_levels = 2,
                                   .levels = {{.name = "nvlink",
                                               .gpus_per_domain = 8,
                                               .bandwidth_bytes_per_s = 100,
                                               .oversubscription = 1},
                                              {.name = "leaf",
                                               .bandwidth_bytes_per_s = 20,
                                               .latency_s = 0.5,
                                               .oversubscription = 2}}};

static const ms_profile profile = {.link_base_s.value = 3,
                                   .link_step_s.value = 1,
                                   .link_frac.value = 0.5,
                                   .all_to_all_base_s.value = 5,
                                   .all_to_all_step_s.value = 2,
                                   .all_to_all_frac.value = 0.25,
                                   .nvls_bytes_per_s.value = NAN,
                                   .p2p_base_s.value = 4,
                                   .num_networks = 1,
                                   .networks = {{.name = "infiniband",
                                                 .base_s.value = 10,
                                                 .step_s.value = 2,
                                                 .bandwidth_frac.value = 1,
                                                 .tree_frac.value = 1}}};

/* The plan pp 2 x dp_replicate 2 x dp_shard 4 x cp 2 x tp 2 in the default order:
 * strides 32, 16, 4, 2, 1. */
static ms_plan make_plan(void)
{
    ms_plan plan = {.gpus = 64, .ep = 1, .etp = 1};
    static const long sizes[] = {2, 2, 4, 2, 2};
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++) {
        plan.size[i] = sizes[i];
        plan.order[i] = (unsigned char)i;
    }
    return plan;
}

static void set_order(ms_plan *plan, const ms_plan_axis order[MS_NUM_PLAN_AXES])
{
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        plan->order[i] = (unsigned char)order[i];
}

static ms_links make_links(const ms_plan *plan)
{
    static const ms_stack stack = {0};
    const ms_workload workload = {
        .cluster = &cluster, .profile = &profile, .stack = &stack};
    return ms_links_make(&workload, plan);
}

static void expect_span(const ms_span *span, long size, long per_node)
{
    ASSERT_INT(span->size, size);
    ASSERT_INT(span->per_domain[0], per_node);
    ASSERT_INT(span->tier, size > per_node);
}

static void expect_law(const ms_collective_law *law, double alpha_s, double beta)
{
    assert_true(law->num_algorithms >= 1);
    ASSERT_NEAR(law->algorithm[0].alpha_s, alpha_s, 1e-12);
    ASSERT_NEAR(law->algorithm[0].beta_s_per_byte, beta, 1e-12);
}

/* ---- groups ---- */

static void groups_are_the_products_of_their_axes(void **state)
{
    (void)state;
    ms_plan plan = make_plan();
    ms_links links = make_links(&plan);
    expect_span(&links.span[MS_BILL_TP], 2, 2);
    expect_span(&links.span[MS_BILL_CP], 2, 2);
    expect_span(&links.span[MS_BILL_EP], 1, 1);
    /* a shard group: 4 x 2 ranks, 2 apart */
    expect_span(&links.sync_span[MS_SYNC_FSDP], 8, 4);
    expect_span(&links.sync_span[MS_SYNC_REPLICATE], 2, 1); /* 2 ranks, 16 apart */
    expect_span(&links.sync_span[MS_SYNC_ALL], 16, 4);
    expect_span(&links.pipeline_span, 2, 1);
    expect_span(&links.world_span, 64, 8);
}

static void groups_follow_the_order_of_axes(void **state)
{
    (void)state;
    ms_plan plan = make_plan();
    set_order(&plan,
              (const ms_plan_axis[]){MS_PP, MS_TP, MS_DP_REPLICATE, MS_DP_SHARD, MS_CP});
    ms_links links = make_links(&plan);
    expect_span(&links.span[MS_BILL_TP], 2, 1); /* a tp group: 2 ranks, 16 apart */
    /* a shard group: the 8 ranks of a node */
    expect_span(&links.sync_span[MS_SYNC_FSDP], 8, 8);
    expect_span(&links.sync_span[MS_SYNC_REPLICATE], 2, 1);
    expect_span(&links.sync_span[MS_SYNC_ALL], 16, 8);
    /* dp_replicate now lies between dp_shard and cp. A shard group has 4 pairs of ranks:
     * the ranks of a pair are 2 apart, and a pair begins every 8 ranks. */
    set_order(&plan,
              (const ms_plan_axis[]){MS_PP, MS_DP_SHARD, MS_DP_REPLICATE, MS_CP, MS_TP});
    links = make_links(&plan);
    expect_span(&links.sync_span[MS_SYNC_FSDP], 8, 2);
    expect_span(&links.sync_span[MS_SYNC_REPLICATE], 2, 2); /* 2 ranks, 4 apart */
    expect_span(&links.sync_span[MS_SYNC_ALL], 16, 4);
}

/* Experts have a mesh of their own. dp_shard, cp and tp have 16 ranks together: a group
 * of ep 4 is the innermost 4 of these, a group of efsdp is 4 of these at stride 4. */
static void experts_have_groups_of_a_mesh_of_their_own(void **state)
{
    (void)state;
    ms_plan plan = make_plan();
    plan.ep = 4;
    ms_links links = make_links(&plan);
    expect_span(&links.span[MS_BILL_EP], 4, 4);
    expect_span(&links.sync_span[MS_SYNC_EXPERT_FSDP], 4, 2);
    expect_span(&links.sync_span[MS_SYNC_EXPERT_ALL], 8, 2);
    /* groups of dense parameters do not change */
    expect_span(&links.sync_span[MS_SYNC_FSDP], 8, 4);
    /* ep 4 is now at stride 2, since etp takes the tp ranks; an efsdp group has 2
     * ranks */
    plan.etp = 2;
    links = make_links(&plan);
    expect_span(&links.span[MS_BILL_EP], 4, 4);
    expect_span(&links.sync_span[MS_SYNC_EXPERT_FSDP], 2, 1);
    expect_span(&links.sync_span[MS_SYNC_EXPERT_ALL], 4, 1);
}

/* If there is no expert parallelism, every rank holds all experts whole, also the ranks
 * of one tp group, which route different tokens. So the experts are sharded over tp
 * ranks, too. */
static void whole_experts_are_sharded_over_tp_ranks_too(void **state)
{
    (void)state;
    ms_plan plan = make_plan();
    ms_links links = make_links(&plan);
    expect_span(&links.sync_span[MS_SYNC_EXPERT_FSDP], 16, 8);
    expect_span(&links.sync_span[MS_SYNC_EXPERT_ALL], 32, 8);
    set_order(&plan,
              (const ms_plan_axis[]){MS_PP, MS_TP, MS_DP_REPLICATE, MS_DP_SHARD, MS_CP});
    links = make_links(&plan);
    expect_span(&links.sync_span[MS_SYNC_EXPERT_FSDP], 16, 8);
    expect_span(&links.sync_span[MS_SYNC_EXPERT_ALL], 32, 8);
}

/* ---- laws ---- */

/* The cost laws of a tp group of 2 ranks. Latency is that of one step (two for an
 * all-reduce). Bytes take half a step more; a step moves half of the bytes at 50 B/s. */
static void groups_in_a_node_use_its_links(void **state)
{
    (void)state;
    ms_plan plan = make_plan();
    ms_links links = make_links(&plan);
    const ms_collective_law *tp = links.law[MS_BILL_TP];
    expect_law(&tp[MS_ALL_GATHER], 3 + 1, 1.5 / (2 * 50));
    expect_law(&tp[MS_REDUCE_SCATTER], 3 + 1, 1.5 / (2 * 50));
    expect_law(&tp[MS_ALL_REDUCE], 3 + 2, 2.5 / (2 * 50));
    expect_law(&links.law[MS_BILL_CP][MS_ALL_TO_ALL], 5 + 2, 1.5 / (2 * 25));
    plan.ep = 4;
    links = make_links(&plan);
    expect_law(&links.law[MS_BILL_EP][MS_ALL_TO_ALL], 5 + 2 * 2, 3.5 / (4 * 25));
}

/* NICs give 10 B/s each. Shard group: 8 ranks in 2 nodes, 7 steps of which 1 crosses
 * nodes, over 4 NICs. World: 64 ranks in 8 nodes, 126 steps of which 14 cross, limited
 * by the links in the node. Replicas: 2 ranks in 2 nodes, over one NIC. */
static void groups_across_nodes_use_their_nics(void **state)
{
    (void)state;
    ms_plan plan = make_plan();
    ms_links links = make_links(&plan);
    expect_law(&links.gather[MS_SYNC_FSDP], 10 + 2 + 6, 7.0 / (8 * 40));
    expect_law(&links.reduce[MS_SYNC_FSDP], 10 + 2 + 6, 7.0 / (8 * 40));
    expect_law(&links.all_reduce[MS_SYNC_REPLICATE], 10 + 2 * 2, 2.0 / (2 * 10));
    expect_law(&links.world, 10 + 14 * 2 + 112, 126.5 / (64 * 50));
    expect_law(&links.send, 4 + 0.5, 1.0 / 10);
}

static void groups_of_one_rank_take_no_time(void **state)
{
    (void)state;
    ms_plan plan = make_plan();
    plan.gpus = 1;
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        plan.size[i] = 1;
    ms_links links = make_links(&plan);
    for (int i = 0; i < MS_NUM_SYNC_GROUPS; i++) {
        ASSERT_INT(links.sync_span[i].size, 1);
        ASSERT_INT(links.gather[i].num_algorithms, 0);
        ASSERT_INT(links.reduce[i].num_algorithms, 0);
        ASSERT_INT(links.all_reduce[i].num_algorithms, 0);
    }
    for (int axis = 0; axis < MS_NUM_BILL_AXES; axis++)
        for (int c = 0; c < MS_NUM_COLLECTIVES; c++)
            ASSERT_INT(links.law[axis][c].num_algorithms, 0);
    ASSERT_INT(links.send.num_algorithms, 0);
    ASSERT_INT(links.world.num_algorithms, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_the_products_of_their_axes),
        cmocka_unit_test(groups_follow_the_order_of_axes),
        cmocka_unit_test(experts_have_groups_of_a_mesh_of_their_own),
        cmocka_unit_test(whole_experts_are_sharded_over_tp_ranks_too),
        cmocka_unit_test(groups_in_a_node_use_its_links),
        cmocka_unit_test(groups_across_nodes_use_their_nics),
        cmocka_unit_test(groups_of_one_rank_take_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
