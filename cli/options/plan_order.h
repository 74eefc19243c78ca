/* Lists inside plan flags: `--order pp,dp,tp` and `--layers-per-stage 20,20,20,20`. */
#ifndef MS_CLI_OPTIONS_PLAN_ORDER_H
#define MS_CLI_OPTIONS_PLAN_ORDER_H

#include "sim/search/space.h"

/* Sets plan->order from axis names, outer to inner, separated by commas; sizes must be
 * set. Names of the mesh zoo are taken (topo/mesh_zoo.h); dp, ddp and batch stand for
 * dp_replicate,dp_shard. Axes of size 1 may
 * be left out. Errors: MS_EINPUT. */
ms_status ms_order_parse(ms_ctx *cx, const char *text, ms_plan *plan);

/* Fixes the order of a space: it holds for every mesh, so it must place each axis that
 * may be larger than 1. `name` is how it was given ("--order"). Errors: MS_EINPUT. */
ms_status ms_order_fix(ms_ctx *cx, const char *name, const char *text, ms_space *space);

/* Sets plan->layers_per_stage and its number of entries. Errors: MS_EINPUT. */
ms_status ms_layers_parse(ms_ctx *cx, const char *text, ms_plan *plan);

#endif
