/* An order is a permutation of the axes, so what is left out (size 1) goes outermost,
 * where it changes no stride. */
#include "cli/options/plan_order.h"

#include "topo/mesh_zoo.h"

#include <string.h>

/* The plan's axis of a role; "dp" stands for both data-parallel axes. */
#define DATA_PARALLEL (-1)
#define NO_AXIS       (-2)

static int axis_of_name(const char *name)
{
    switch (ms_axis_role_find(name)) {
    case MS_AXIS_PP:
        return MS_PP;
    case MS_AXIS_DP:
        return DATA_PARALLEL;
    case MS_AXIS_DP_REPLICATE:
        return MS_DP_REPLICATE;
    case MS_AXIS_DP_SHARD:
        return MS_DP_SHARD;
    case MS_AXIS_CP:
        return MS_CP;
    case MS_AXIS_TP:
        return MS_TP;
    case MS_AXIS_OTHER:
    case MS_AXIS_DP_SHARD_MOD_EP:
    case MS_AXIS_DP_SHARD_IN_EP:
    case MS_AXIS_SP:
    case MS_AXIS_EFSDP:
    case MS_AXIS_EP:
    case MS_AXIS_ETP:
    case MS_NUM_AXIS_ROLES:
        break;
    }
    return NO_AXIS;
}

typedef struct order {
    int num_axes;
    unsigned char axes[MS_NUM_PLAN_AXES];
    bool named[MS_NUM_PLAN_AXES];
} order;

/* The next item of a list; NULL at its end. Empty items are returned as "". */
static const char *next_item(ms_arena *arena, const char **list)
{
    if (*list == NULL)
        return NULL;
    size_t length = strcspn(*list, ",");
    const char *item = ms_arena_strndup(arena, *list, length);
    *list = (*list)[length] == ',' ? *list + length + 1 : NULL;
    return item;
}

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
    int axis = axis_of_name(name);
    if (axis == NO_AXIS)
        return refuse_axis(cx, name);
    if (axis != DATA_PARALLEL)
        return append_axis(cx, list, axis, text);
    MS_TRY(append_axis(cx, list, MS_DP_REPLICATE, text));
    return append_axis(cx, list, MS_DP_SHARD, text);
}

ms_status ms_order_parse(ms_ctx *cx, const char *text, ms_plan *plan)
{
    order list = {0};
    const char *rest = text, *name;
    while ((name = next_item(cx->arena, &rest)) != NULL)
        MS_TRY(append_name(cx, &list, name, text));
    int num_missing = 0;
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
    MS_TRY(ms_order_parse(cx, text, &probe)); /* the names */
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        probe.size[axis] = space->high[MS_CHOOSE_PP + axis] > 1 ? 2 : 1;
    ms_ctx ignored = {.arena = cx->arena};
    if (ms_order_parse(&ignored, text, &probe) != MS_OK) {
        ms_status status = ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                                   "%s is \"%s\", which leaves out an axis that is "
                                   "searched",
                                   name, text);
        ms_hint(cx, "name pp, dp_replicate, dp_shard, cp and tp, or fix the others to 1");
        return status;
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
    while ((item = next_item(cx->arena, &rest)) != NULL) {
        double value;
        if (!ms_parse_quantity(item, MS_UNIT_COUNT, &value) || value > 1e6 ||
            (double)(long)value != value) {
            ms_status status = ms_fail(
                cx, MS_EINPUT, MS_NOWHERE,
                "--layers-per-stage is \"%s\", where \"%s\" is no number of layers", text,
                item);
            ms_hint(cx, "one number for each virtual stage: 20,20,20,20");
            return status;
        }
        layers[num_layers++] = (long)value;
    }
    plan->num_stage_layers = num_layers;
    plan->layers_per_stage = layers;
    return MS_OK;
}
