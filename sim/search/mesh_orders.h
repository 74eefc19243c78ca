/* What every order of a plan's mesh axes costs on its cluster, by the same prediction as
 * everything else. */
#ifndef MS_SIM_SEARCH_MESH_ORDERS_H
#define MS_SIM_SEARCH_MESH_ORDERS_H

#include "sim/search/space.h"
#include "sim/step/prediction.h"

/* Orders in which all groups lie the same way cost the same: one entry. */
typedef struct ms_order_cost {
    /* outer to inner; axes of size 1 anywhere */
    const unsigned char (*orders)[MS_NUM_PLAN_AXES];
    int num_orders;
    bool is_plans; /* the plan's own order is one of them */
    double step_s, exposed_comm_s, bubble_s;
    bool fits;
    int num_axes;
    ms_axis_prediction axes[MS_MAX_AXIS_PREDICTIONS];
} ms_order_cost;

typedef struct ms_mesh_orders {
    int num; /* fastest first */
    ms_order_cost *costs;
    int num_refused;
    struct {
        unsigned char order[MS_NUM_PLAN_AXES];
        ms_refusal refusal;
    } refused[MS_MAX_ORDERS];
} ms_mesh_orders;

/* The plan must be legal in some order: MS_EINPUT otherwise, as ms_plan_check says it.
 * Lives in cx->arena. */
ms_status ms_mesh_orders_compare(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                                 ms_mesh_orders *out);

/* What an axis costs in an order, NULL when it has no traffic there. */
const ms_axis_prediction *ms_order_axis(const ms_order_cost *cost, ms_traffic_group axis);

/* The other order in which an axis waits longest for its traffic (exposed_s), and how
 * much longer than in the first; or with `least` the one in which it waits shortest, and
 * how much shorter. NULL when there is none. Of pp, whose waiting is bubble, seconds of
 * sends are compared. */
const ms_order_cost *ms_mesh_orders_extreme(const ms_mesh_orders *orders,
                                            ms_traffic_group axis, bool least,
                                            double *difference_s);

/* NICs that one group of an axis can use in a node; 0 inside a node. */
double ms_axis_nics(const ms_axis_prediction *axis, const ms_cluster *cluster);

/* "pp,dp_shard,tp": axes larger than 1. */
const char *ms_order_text(ms_arena *arena, const ms_plan *plan,
                          const unsigned char order[MS_NUM_PLAN_AXES]);

#endif
