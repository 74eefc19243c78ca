#include "sim/request/plan_order.h"

#include "base/options.h"

#include <string.h>

int ms_plan_axis_of_role(ms_axis_role role)
{
    static const int axis_plus_1[MS_NUM_AXIS_ROLES] = {
        [MS_AXIS_PP] = 1 + MS_PP,
        [MS_AXIS_DP] = 1 + MS_DP_SHARD,
        [MS_AXIS_DP_REPLICATE] = 1 + MS_DP_REPLICATE,
        [MS_AXIS_DP_SHARD] = 1 + MS_DP_SHARD,
        [MS_AXIS_CP] = 1 + MS_CP,
        [MS_AXIS_TP] = 1 + MS_TP};
    return axis_plus_1[role] - 1;
}

typedef struct order {
    int num_axes;
    unsigned char axes[MS_NUM_PLAN_AXES];
    bool named[MS_NUM_PLAN_AXES];
} order;

static ms_status append_axis(ms_ctx *cx, order *list, int axis, const char *text)
{
    if (list->named[axis])
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--order is \"%s\", which names %s twice", text,
                       ms_plan_axis_names[axis]);
    list->named[axis] = true;
    list->axes[list->num_axes++] = (unsigned char)axis;
    return MS_OK;
}

static ms_status refuse_axis(ms_ctx *cx, const char *name)
{
    ms_status status =
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--order names the unknown axis \"%s\"", name);
    const char *nearest = ms_nearest(name, ms_plan_axis_names, MS_NUM_PLAN_AXES);
    if (strcmp(name, "ep") == 0 || strcmp(name, "etp") == 0)
        ms_hint(cx, "%s lies on the expert mesh, always innermost; leave it out", name);
    else if (nearest != NULL)
        ms_hint(cx, "did you mean %s?", nearest);
    else
        ms_hint(cx, "the axes are pp, dp_replicate, dp_shard, cp and tp");
    return status;
}

static ms_status append_name(ms_ctx *cx, order *list, const char *name, const char *text)
{
    ms_axis_role role = ms_axis_role_find(name);
    int axis = ms_plan_axis_of_role(role);
    if (axis < 0)
        return refuse_axis(cx, name);
    if (role == MS_AXIS_DP) /* "dp" names both data-parallel axes */
        MS_TRY(append_axis(cx, list, MS_DP_REPLICATE, text));
    return append_axis(cx, list, axis, text);
}

ms_status ms_order_parse(ms_ctx *cx, const char *text, ms_plan *plan)
{
    order list = {0};
    const char *rest = text, *name;
    while ((name = ms_list_next(cx->arena, &rest)) != NULL)
        MS_TRY(append_name(cx, &list, name, text));
    int num_missing = 0; /* axes left out have size 1 and become the outermost */
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++) {
        if (list.named[axis])
            continue;
        if (plan->size[axis] > 1)
            return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                           "--order is \"%s\", which leaves out %s of size %ld", text,
                           ms_plan_axis_names[axis], plan->size[axis]);
        plan->order[num_missing++] = (unsigned char)axis;
    }
    memcpy(plan->order + num_missing, list.axes, (size_t)list.num_axes);
    return MS_OK;
}

ms_status ms_order_fix(ms_ctx *cx, const char *name, const char *text, ms_space *space)
{
    ms_plan probe = space->base;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        probe.size[axis] = 1;
    MS_TRY(ms_order_parse(cx, text, &probe)); /* reports unknown or repeated axis names */
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        probe.size[axis] = space->high[MS_CHOOSE_PP + axis] > 1 ? 2 : 1;
    ms_ctx ignored = {.arena = cx->arena};
    if (ms_order_parse(&ignored, text, &probe) != MS_OK) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "%s is \"%s\", which leaves out an axis that is "
                "searched",
                name, text);
        return ms_hint(
            cx, "name pp, dp_replicate, dp_shard, cp and tp, or fix the others to 1");
    }
    space->fixed_order = true;
    memcpy(space->base.order, probe.order, sizeof probe.order);
    return MS_OK;
}

ms_status ms_layers_parse(ms_ctx *cx, const char *text, ms_plan *plan)
{
    long *layers = MS_NEW_ARRAY(cx->arena, strlen(text) + 1, long);
    long num_layers = 0;
    const char *rest = text, *item;
    while ((item = ms_list_next(cx->arena, &rest)) != NULL) {
        double value;
        if (!ms_parse_quantity(item, MS_UNIT_COUNT, &value) || value > 1e6 ||
            (double)(long)value != value) {
            ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                    "--layers-per-stage is \"%s\", where \"%s\" is no number of layers",
                    text, item);
            return ms_hint(cx, "one number for each virtual stage: 20,20,20,20");
        }
        layers[num_layers++] = (long)value;
    }
    plan->num_stage_layers = num_layers;
    plan->layers_per_stage = layers;
    return MS_OK;
}
