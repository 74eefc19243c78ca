/* Lists inside plan flags: `--order pp,dp,tp` and `--layers-per-stage 20,20,20,20`. */
#ifndef MS_SIM_REQUEST_PLAN_ORDER_H
#define MS_SIM_REQUEST_PLAN_ORDER_H

#include "sim/search/space.h"
#include "topo/mesh_zoo.h"

/* The plan axis of a role, dp_shard for "dp"; -1: none. */
int ms_plan_axis_of_role(ms_axis_role role);

/* Sets plan->order from axis names, outer to inner, separated by commas; sizes must be
 * set. All names of the mesh zoo are known (topo/mesh_zoo.h); dp, ddp and batch stand for
 * dp_replicate,dp_shard. Axes of size 1 may be left out. Errors: MS_EINPUT. */
ms_status ms_order_parse(ms_ctx *cx, const char *text, ms_plan *plan);

/* Fixes the order of axes of every mesh of a space; `text` must name each axis that may
 * be larger than 1. `name` is the option in messages ("--order"). Errors: MS_EINPUT. */
ms_status ms_order_fix(ms_ctx *cx, const char *name, const char *text, ms_space *space);

/* Sets plan->layers_per_stage and its number of entries from "20,20,20". MS_EINPUT. */
ms_status ms_layers_parse(ms_ctx *cx, const char *text, ms_plan *plan);

#endif
