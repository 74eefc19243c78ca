#include "sim/search/mesh_orders.h"

#include "tests/test.h"

typedef struct bench {
    ms_ctx *cx;
    ms_workload *workload;
    ms_plan plan;
    ms_mesh_orders orders;
} bench;

static ms_plan plan_8b(void)
{
    ms_plan plan = ms_plan_default(64);
    plan.stack = "generic";
    plan.model = "llama-3.1-8b";
    plan.size[MS_PP] = 2;
    plan.size[MS_TP] = 8;
    plan.reshard_after_forward = false;
    ms_plan_fill_defaults(&plan);
    return plan;
}

static bench compare(ms_plan plan)
{
    bench b = {.cx = test_cx(), .plan = plan};
    ASSERT_OK(ms_workload_open(b.cx, &plan, &b.workload), b.cx);
    ASSERT_OK(ms_mesh_orders_compare(b.cx, b.workload, &plan, &b.orders), b.cx);
    return b;
}

static const ms_order_cost *find(const bench *b, const char *text, int *index)
{
    for (int k = 0; k < b->orders.num; k++)
        for (int i = 0; i < b->orders.costs[k].num_orders; i++)
            if (strcmp(
                    ms_order_text(b->cx->arena, &b->plan, b->orders.costs[k].orders[i]),
                    text) == 0) {
                *index = k;
                return &b->orders.costs[k];
            }
    fail_msg("no order %s", text);
    return NULL;
}

/* The step time given for an axis order is the prediction of the plan with this order. */
static void an_order_costs_what_its_plan_costs(void **state)
{
    (void)state;
    bench b = compare(plan_8b());
    for (int k = 0; k < b.orders.num; k++)
        for (int i = 0; i < b.orders.costs[k].num_orders; i++) {
            ms_plan variant = b.plan;
            ms_prediction prediction;
            memcpy(variant.order, b.orders.costs[k].orders[i], sizeof variant.order);
            ASSERT_OK(ms_predict(b.cx, b.workload, &variant, &prediction), b.cx);
            ASSERT_NEAR(b.orders.costs[k].step_s, prediction.step_s, 0.0);
            ASSERT_INT(b.orders.costs[k].num_axes, prediction.num_axes);
            for (int a = 0; a < prediction.num_axes; a++)
                ASSERT_NEAR(b.orders.costs[k].axes[a].exposed_s,
                            prediction.axes[a].exposed_s, 0.0);
        }
    ms_workload_close(b.workload);
}

static void orders_are_all_there_and_sorted(void **state)
{
    (void)state;
    bench b = compare(plan_8b());
    int num = 0, num_own = 0;
    for (int k = 0; k < b.orders.num; k++) {
        num += b.orders.costs[k].num_orders;
        num_own += b.orders.costs[k].is_plans;
        assert_true(k == 0 || b.orders.costs[k].step_s >= b.orders.costs[k - 1].step_s);
    }
    ASSERT_INT(num, 6); /* 3! orders of three axes */
    ASSERT_INT(num_own, 1);
    ASSERT_INT(b.orders.num_refused, 0);
    ms_workload_close(b.workload);
}

/* Tensor parallelism inside a node is the best order. As the outermost axis it has one
 * rank in each node, which is the worst order, and its cost is reported. */
static void tensor_parallelism_belongs_inside_the_node(void **state)
{
    (void)state;
    bench b = compare(plan_8b());
    int inner = -1, outer = -1;
    find(&b, "pp,dp_shard,tp", &inner);
    const ms_order_cost *worst = find(&b, "tp,pp,dp_shard", &outer);
    ASSERT_INT(inner, 0);
    ASSERT_INT(outer, b.orders.num - 1);
    const ms_axis_prediction *here = ms_order_axis(&b.orders.costs[0], MS_TRAFFIC_TP);
    const ms_axis_prediction *there = ms_order_axis(worst, MS_TRAFFIC_TP);
    ASSERT_INT(here->ranks_per_node, 8);
    ASSERT_INT(there->ranks_per_node, 1);
    ASSERT_NEAR(ms_axis_nics(here, b.workload->cluster), 0.0, 0.0);
    ASSERT_NEAR(ms_axis_nics(there, b.workload->cluster), 1.0, 0.0);
    double lost_s, gained_s;
    const ms_order_cost *most =
        ms_mesh_orders_extreme(&b.orders, MS_TRAFFIC_TP, false, &lost_s);
    assert_true(ms_order_axis(most, MS_TRAFFIC_TP)->exposed_s >= there->exposed_s);
    ASSERT_NEAR(lost_s, ms_order_axis(most, MS_TRAFFIC_TP)->exposed_s - here->exposed_s,
                1e-12);
    assert_null(ms_mesh_orders_extreme(&b.orders, MS_TRAFFIC_TP, true, &gained_s));
    ASSERT_NEAR(gained_s, 0.0, 0.0);
    ms_workload_close(b.workload);
}

static void experts_refuse_orders_that_break_their_mesh(void **state)
{
    (void)state;
    ms_plan plan = ms_plan_default(16);
    plan.stack = "generic";
    plan.model = "mixtral-8x7b";
    plan.size[MS_PP] = 2;
    plan.size[MS_TP] = 2;
    plan.ep = 4;
    ms_plan_fill_defaults(&plan);
    bench b = compare(plan);
    int num = b.orders.num_refused;
    for (int k = 0; k < b.orders.num; k++)
        num += b.orders.costs[k].num_orders;
    ASSERT_INT(num, 6);
    assert_true(b.orders.num_refused > 0);
    for (int i = 0; i < b.orders.num_refused; i++)
        ASSERT_INT(b.orders.refused[i].refusal, MS_REFUSE_ORDER);
    ms_workload_close(b.workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_costs_what_its_plan_costs),
        cmocka_unit_test(orders_are_all_there_and_sorted),
        cmocka_unit_test(tensor_parallelism_belongs_inside_the_node),
        cmocka_unit_test(experts_refuse_orders_that_break_their_mesh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
