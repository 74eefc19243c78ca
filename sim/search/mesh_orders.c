#include "sim/search/mesh_orders.h"

#include <stdlib.h>
#include <string.h>

static void collect_alike(ms_arena *arena, const ms_plan *plan, const ms_order_list *list,
                          int first, ms_order_cost *cost)
{
    unsigned char(*orders)[MS_NUM_PLAN_AXES] =
        ms_arena_array(arena, (size_t)list->num, sizeof *orders);
    for (int i = first; i < list->num; i++) {
        if (list->orders[i].alike != first)
            continue;
        memcpy(orders[cost->num_orders++], list->orders[i].order, sizeof *orders);
        cost->is_plans =
            cost->is_plans || ms_space_same_order(plan, list->orders[i].order);
    }
    cost->orders = (const unsigned char(*)[MS_NUM_PLAN_AXES])orders;
}

static ms_status price(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                       ms_order_cost *cost)
{
    ms_plan variant = *plan;
    memcpy(variant.order, cost->orders[0], sizeof variant.order);
    ms_prediction prediction;
    ms_arena_mark mark = ms_arena_save(cx->arena);
    ms_status status = ms_predict(cx, workload, &variant, &prediction);
    if (status != MS_OK)
        return status;
    cost->step_s = prediction.step_s;
    cost->exposed_comm_s = prediction.exposed_comm_s;
    cost->bubble_s = prediction.bubble_s;
    cost->fits = prediction.fits;
    cost->num_axes = prediction.num_axes;
    memcpy(cost->axes, prediction.axes, sizeof cost->axes);
    ms_arena_rewind(cx->arena, mark); /* cost->axes holds no pointers into the arena */
    return MS_OK;
}

/* Sorts by step time, fastest first; of equal times the plan's own order comes first. */
static int compare_costs(const void *a, const void *b)
{
    const ms_order_cost *x = a, *y = b;
    if (x->step_s != y->step_s)
        return x->step_s < y->step_s ? -1 : 1;
    if (x->is_plans != y->is_plans)
        return x->is_plans ? -1 : 1;
    return memcmp(x->orders[0], y->orders[0], sizeof x->orders[0]);
}

ms_status ms_mesh_orders_compare(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                                 ms_mesh_orders *out)
{
    ms_order_list *list = MS_NEW(cx->arena, ms_order_list);
    ms_space_list_orders(plan, workload, list);
    out->num = out->num_refused = 0;
    out->costs = MS_NEW_ARRAY(cx->arena, list->num, ms_order_cost);
    for (int i = 0; i < list->num; i++) {
        if (list->orders[i].alike < 0) {
            memcpy(out->refused[out->num_refused].order, list->orders[i].order,
                   sizeof list->orders[i].order);
            out->refused[out->num_refused++].refusal = list->orders[i].refusal;
        }
        if (list->orders[i].alike != i)
            continue;
        ms_order_cost *cost = &out->costs[out->num++];
        collect_alike(cx->arena, plan, list, i, cost);
        MS_TRY(price(cx, workload, plan, cost));
    }
    if (out->num == 0)
        return ms_plan_check(cx, plan, workload->model, MS_NOWHERE);
    qsort(out->costs, (size_t)out->num, sizeof *out->costs, compare_costs);
    return MS_OK;
}

const ms_axis_prediction *ms_order_axis(const ms_order_cost *cost, ms_traffic_group axis)
{
    for (int i = 0; i < cost->num_axes; i++)
        if (cost->axes[i].group == axis)
            return &cost->axes[i];
    return NULL;
}

static double waiting_s(const ms_order_cost *cost, ms_traffic_group axis)
{
    const ms_axis_prediction *found = ms_order_axis(cost, axis);
    if (found == NULL)
        return 0.0;
    return axis == MS_TRAFFIC_PP ? found->seconds : found->exposed_s;
}

const ms_order_cost *ms_mesh_orders_extreme(const ms_mesh_orders *orders,
                                            ms_traffic_group axis, bool least,
                                            double *difference_s)
{
    const ms_order_cost *found = NULL;
    double first_s = waiting_s(&orders->costs[0], axis);
    *difference_s = 0.0;
    for (int i = 1; i < orders->num; i++) {
        double more_s = waiting_s(&orders->costs[i], axis) - first_s;
        double difference = least ? -more_s : more_s;
        if (difference <= *difference_s)
            continue;
        *difference_s = difference;
        found = &orders->costs[i];
    }
    return found;
}

double ms_axis_nics(const ms_axis_prediction *axis, const ms_cluster *cluster)
{
    if (axis->level == 0)
        return 0.0;
    return (double)axis->nic_ranks * cluster->levels[1].nics_per_gpu;
}

const char *ms_order_text(ms_arena *arena, const ms_plan *plan,
                          const unsigned char order[MS_NUM_PLAN_AXES])
{
    const char *text = "";
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        if (plan->size[order[i]] > 1)
            text = ms_arena_printf(arena, "%s%s%s", text, text[0] == '\0' ? "" : ",",
                                   ms_plan_axis_names[order[i]]);
    return text[0] == '\0' ? "one rank" : text;
}
