/* Cost of every order of a plan's mesh axes on its cluster, by prediction. */
#ifndef MS_SIM_SEARCH_MESH_ORDERS_H
#define MS_SIM_SEARCH_MESH_ORDERS_H

#include "sim/search/space.h"
#include "sim/step/prediction.h"

/* Orders of axes that place all groups alike on the cluster, and their common cost. */
typedef struct ms_order_cost {
    /* (num_orders): axes from outer to inner */
    const unsigned char (*orders)[MS_NUM_PLAN_AXES];
    int num_orders;
    bool is_plans; /* the orders include the plan's own */
    double step_s, exposed_comm_s, bubble_s;
    bool fits;
    int num_axes;
    ms_axis_prediction axes[MS_MAX_AXIS_PREDICTIONS];
} ms_order_cost;

typedef struct ms_mesh_orders {
    int num; /* number of costs, which are sorted fastest first */
    ms_order_cost *costs;
    int num_refused;
    struct {
        unsigned char order[MS_NUM_PLAN_AXES];
        ms_refusal refusal;
    } refused[MS_MAX_ORDERS];
} ms_mesh_orders;

/* Predicts the plan with every order of its axes. MS_EINPUT of ms_plan_check if no
 * order is legal. The result lives in cx->arena. */
ms_status ms_mesh_orders_compare(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                                 ms_mesh_orders *out);

/* The traffic of a mesh axis in an order of axes; NULL if there is none. */
const ms_axis_prediction *ms_order_axis(const ms_order_cost *cost, ms_traffic_group axis);

/* The order in which exposed traffic of an axis takes longest, and how many seconds longer
 * than in the first order; with `least` shortest, and how many shorter. NULL if there is
 * none. For pp, which exposes bubble, seconds of sends are compared. */
const ms_order_cost *ms_mesh_orders_extreme(const ms_mesh_orders *orders,
                                            ms_traffic_group axis, bool least,
                                            double *difference_s);

/* NICs of a node that one group of an axis can use; 0 for a group inside a node. */
double ms_axis_nics(const ms_axis_prediction *axis, const ms_cluster *cluster);

/* Order of the axes larger than 1: "pp,dp_shard,tp"; "one rank" if there are none. */
const char *ms_order_text(ms_arena *arena, const ms_plan *plan,
                          const unsigned char order[MS_NUM_PLAN_AXES]);

#endif
