/* Predicts a plan with all orders of its mesh axes (outer to inner on the cluster). */
#ifndef MS_SIM_SEARCH_MESH_ORDERS_H
#define MS_SIM_SEARCH_MESH_ORDERS_H

#include "sim/search/space.h"
#include "sim/step/prediction.h"

/* Axis orders that place all communication groups alike, and their common costs. */
typedef struct ms_order_cost {
    /* (num_orders): each lists axes from outer to inner */
    const unsigned char (*orders)[MS_NUM_PLAN_AXES];
    int num_orders;
    bool is_plans; /* one of `orders` is the plan's own */
    double step_s, exposed_comm_s, bubble_s;
    bool fits;
    int num_axes;
    ms_axis_prediction axes[MS_MAX_AXIS_PREDICTIONS];
} ms_order_cost;

typedef struct ms_mesh_orders {
    int num; /* number of `costs`, which are sorted fastest first */
    ms_order_cost *costs;
    int num_refused;
    struct {
        unsigned char order[MS_NUM_PLAN_AXES];
        ms_refusal refusal;
    } refused[MS_MAX_ORDERS];
} ms_mesh_orders;

/* Predicts the plan with every order of its axes. The result lives in cx->arena. Error:
 * MS_EINPUT if no order is legal. */
ms_status ms_mesh_orders_compare(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                                 ms_mesh_orders *out);

/* The traffic of mesh axis `axis` in the orders of `cost`; NULL if there is none. */
const ms_axis_prediction *ms_order_axis(const ms_order_cost *cost, ms_traffic_group axis);

/* The order in which sends of `axis` have the most exposed seconds (`least`: the fewest);
 * for pp all seconds of sends count, as waiting for them is bubble. *difference_s: how
 * many more (fewer) than in the fastest order. NULL: no order has more (fewer). */
const ms_order_cost *ms_mesh_orders_extreme(const ms_mesh_orders *orders,
                                            ms_traffic_group axis, bool least,
                                            double *difference_s);

/* NICs of one node that a communication group of the axis uses; 0: inside a node. */
double ms_axis_nics(const ms_axis_prediction *axis, const ms_cluster *cluster);

/* Text of an order of axes larger than 1: "pp,dp_shard,tp"; "one rank" if none is. */
const char *ms_order_text(ms_arena *arena, const ms_plan *plan,
                          const unsigned char order[MS_NUM_PLAN_AXES]);

#endif
