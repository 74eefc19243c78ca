/* The printed comparison of axis orders: the best order first; then, for each axis, its
 * places in the order that would cost and that would gain most time. */
#include "cli/report/report.h"

#include "tests/test.h"

static const unsigned char first[2][MS_NUM_PLAN_AXES] = {
    {MS_PP, MS_DP_REPLICATE, MS_DP_SHARD, MS_CP, MS_TP},
    {MS_DP_SHARD, MS_PP, MS_DP_REPLICATE, MS_CP, MS_TP}};
static const unsigned char second[1][MS_NUM_PLAN_AXES] = {
    {MS_TP, MS_PP, MS_DP_REPLICATE, MS_DP_SHARD, MS_CP}};

static const ms_cluster cluster = {.num_levels = 2,
                                   .levels = {{.name = "link", .gpus_per_domain = 8},
                                              {.name = "leaf", .nics_per_gpu = 1.0}}};

static ms_axis_prediction axis(ms_traffic_group group, double exposed_s, int level,
                               long p)
{
    return (ms_axis_prediction){.group = group,
                                .axis = group == MS_TRAFFIC_TP ? "tp" : "dp_shard",
                                .size = 8,
                                .ranks_per_node = p,
                                .nic_ranks = p,
                                .level = level,
                                .tier = cluster.levels[level].name,
                                .bytes = 1e9,
                                .seconds = exposed_s,
                                .exposed_s = exposed_s};
}

static ms_mesh_orders two_orders(ms_ctx *cx)
{
    ms_mesh_orders orders = {.num = 2, .num_refused = 1};
    orders.costs = MS_NEW_ARRAY(cx->arena, 2, ms_order_cost);
    orders.costs[0] = (ms_order_cost){
        .orders = first,
        .num_orders = 2,
        .is_plans = true,
        .step_s = 1.0,
        .fits = true,
        .num_axes = 2,
        .axes = {axis(MS_TRAFFIC_TP, 0.1, 0, 8), axis(MS_TRAFFIC_FSDP, 0.2, 1, 1)}};
    orders.costs[1] = (ms_order_cost){
        .orders = second,
        .num_orders = 1,
        .step_s = 2.5,
        .fits = true,
        .num_axes = 2,
        .axes = {axis(MS_TRAFFIC_TP, 1.7, 1, 1), axis(MS_TRAFFIC_FSDP, 0.15, 0, 8)}};
    memcpy(orders.refused[0].order, second[0], sizeof second[0]);
    orders.refused[0].refusal = MS_REFUSE_ORDER;
    return orders;
}

static ms_plan plan_of_128(void)
{
    ms_plan plan = ms_plan_default(128);
    plan.model = "m";
    plan.size[MS_PP] = 2;
    plan.size[MS_TP] = 8;
    plan.ep = 4;
    ms_plan_fill_defaults(&plan);
    return plan;
}

static void the_text_says_who_pays(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_mesh_orders orders = two_orders(cx);
    ms_plan plan = plan_of_128();
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_mesh_orders_print(file, cx->arena, &orders, &plan, &cluster);
    const char *text = test_read_back(cx->arena, file);
    static const char *const parts[] = {
        "1  pp,dp_shard,tp *",
        "1  pp,dp_shard,tp = dp_shard,pp,tp",
        "Refused: 1 order, for ep 4",
        "the slowest order, tp,pp,dp_shard, takes 2.50 times as long",
        "tp           waits 1600.0 ms more in tp,pp,dp_shard: leaf, 1 rank a node, 1 NIC",
        "dp_shard     waits 50.0 ms less in tp,pp,dp_shard: link, 8 ranks a node\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(text, parts[i]) == NULL)
            fail_msg("\"%s\" is missing in\n%s", parts[i], text);
}

static void json_says_the_same(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_mesh_orders orders = two_orders(cx);
    ms_plan plan = plan_of_128();
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_jout json = ms_jout_open(file);
    ms_jout_begin_object(&json);
    ms_mesh_orders_write_fields(&json, cx->arena, &orders, &plan, &cluster);
    ms_jout_end_object(&json);
    ms_jout_close(&json);
    const char *text = test_read_back(cx->arena, file);
    ms_jdoc *doc;
    ms_jval root, list;
    ASSERT_OK(ms_json_parse(cx, "orders", text, strlen(text), &doc, &root), cx);
    assert_true(ms_json_member(cx, root, "orders", &list));
    ASSERT_INT(ms_json_length(list), 2);
    assert_true(ms_json_member(cx, root, "refused_orders", &list));
    ASSERT_INT(ms_json_length(list), 1);
    ms_json_close(doc);
    assert_non_null(strstr(text, "\"slower_frac\": 1.5"));
    assert_non_null(strstr(text, "\"nics_per_group\": 1"));
    assert_non_null(strstr(text, "\"reason\": \"order\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_says_who_pays),
        cmocka_unit_test(json_says_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
