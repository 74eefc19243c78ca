/* An order is a permutation of the axes, so what is left out (size 1) goes outermost,
 * where it changes no stride. */
#include "cli/plan_order.h"

#include <string.h>

/* Names of axes in DeviceMesh, FSDP, JAX and DDP; -1 stands for both data-parallel
 * axes. */
typedef struct axis_name {
    const char *name;
    int axis;
} axis_name;

#define DATA_PARALLEL (-1)

static const axis_name axis_aliases[] = {
    {"dp", DATA_PARALLEL},
    {"ddp", DATA_PARALLEL},
    {"batch", DATA_PARALLEL},
    {"dp-replicate", MS_DP_REPLICATE},
    {"replicate", MS_DP_REPLICATE},
    {"dp-shard", MS_DP_SHARD},
    {"fsdp", MS_DP_SHARD},
    {"shard", MS_DP_SHARD},
    {"model", MS_TP},
    {NULL, 0},
};

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
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        if (strcmp(ms_plan_axis_names[axis], name) == 0)
            return append_axis(cx, list, axis, text);
    for (const axis_name *alias = axis_aliases; alias->name != NULL; alias++) {
        if (strcmp(alias->name, name) != 0)
            continue;
        if (alias->axis != DATA_PARALLEL)
            return append_axis(cx, list, alias->axis, text);
        MS_TRY(append_axis(cx, list, MS_DP_REPLICATE, text));
        return append_axis(cx, list, MS_DP_SHARD, text);
    }
    return refuse_axis(cx, name);
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
        probe.size[axis] = space->high[axis] > 1 ? 2 : 1;
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
