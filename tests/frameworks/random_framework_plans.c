/* Random plans that a framework accepts, or refuses for one or two of their choices. */
#include "tests/frameworks/frameworks.h"

#include <string.h>

/* One of the values, which end with 0; the first ones may be repeated to be drawn more. */
static long one_of(ms_rng *rng, const long *values)
{
    uint64_t num = 0;
    while (values[num] != 0)
        num++;
    return values[ms_rng_below(rng, num)];
}

static bool once_in(ms_rng *rng, uint64_t times)
{
    return ms_rng_below(rng, times) == 0;
}

/* ---- each group of choices ---- */

static void draw_axes(ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    (void)model;
    static const long pp[] = {1, 1, 2, 2, 3, 4, 4, 6, 8, 16, 0};
    static const long replicate[] = {1, 1, 1, 2, 4, 0};
    static const long shard[] = {1, 2, 2, 4, 8, 16, 0};
    static const long cp[] = {1, 1, 1, 2, 4, 0};
    static const long tp[] = {1, 1, 2, 4, 8, 16, 0};
    static const long *const sizes[] = {pp, replicate, shard, cp, tp};
    plan->gpus = 1;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++) {
        plan->size[axis] = one_of(rng, sizes[axis]);
        plan->gpus *= plan->size[axis];
    }
}

static void draw_experts(ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    static const long ep[] = {1, 1, 2, 4, 8, 16, 32, 0};
    bool moe = model->moe.num_experts > 0;
    plan->ep = moe ? one_of(rng, ep) : 1;
    plan->etp = moe && once_in(rng, 2) ? plan->size[MS_TP] : 1;
}

/* The default order, in which two axes are exchanged up to twice. */
static void draw_order(ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    (void)model;
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        plan->order[i] = (unsigned char)i;
    int exchanges = (int)ms_rng_below(rng, 3);
    for (int i = 0; i < exchanges; i++) {
        uint64_t one = ms_rng_below(rng, MS_NUM_PLAN_AXES);
        uint64_t other = ms_rng_below(rng, MS_NUM_PLAN_AXES);
        unsigned char axis = plan->order[one];
        plan->order[one] = plan->order[other];
        plan->order[other] = axis;
    }
}

static void draw_schedule(ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    (void)model;
    static const long virtual_stages[] = {1, 2, 2, 3, 4, 5, 0};
    static const long groups[] = {2, 3, 4, 5, 6, 8, 0};
    ms_plan_set_schedule(plan, once_in(rng, 2)
                                   ? (ms_schedule_kind)ms_rng_below(rng, 3)
                                   : (ms_schedule_kind)ms_rng_below(rng, MS_CUSTOM));
    if (plan->schedule == MS_INTERLEAVED && plan->size[MS_PP] == 1)
        ms_plan_set_schedule(plan, MS_1F1B);
    ms_schedule_traits traits = ms_schedule_traits_of(plan->schedule);
    plan->virtual_stages =
        traits.most_virtual > 0 ? traits.most_virtual : one_of(rng, virtual_stages);
    plan->microbatch_group = traits.groups && once_in(rng, 3) ? one_of(rng, groups) : 0;
}

/* Multiples of pp most often, as interleaving wants them. */
static void draw_batch(ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    (void)model;
    long microbatches = 1 + (long)ms_rng_below(rng, 24);
    if (!once_in(rng, 3))
        microbatches = plan->size[MS_PP] * (1 + (long)ms_rng_below(rng, 4));
    plan->microbatch = 1 + (long)ms_rng_below(rng, 2);
    plan->global_batch = microbatches * plan->microbatch * ms_plan_data_parallel(plan);
}

static void draw_sequence(ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    (void)model;
    static const long lengths[] = {4096, 8192, 8192, 16384, 4100, 8208, 8240, 0};
    plan->sequence_length = one_of(rng, lengths);
}

static void draw_sharding(ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    (void)model;
    plan->zero = (long)ms_rng_below(rng, 4);
    plan->reshard_after_forward = plan->zero == 3 && plan->size[MS_PP] == 1;
}

static void draw_tensor(ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    (void)model;
    plan->sequence_parallel = !once_in(rng, 3);
    plan->async_tp = once_in(rng, 3);
}

static void draw_context(ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    (void)model;
    plan->cp_method = (ms_cp_method)ms_rng_below(rng, MS_NUM_CP_METHODS);
    plan->cp_balance = once_in(rng, 4) ? MS_CP_NONE : MS_CP_HEAD_TAIL;
}

static void draw_recompute(ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    (void)model;
    plan->recompute = (ms_recompute)ms_rng_below(rng, MS_NUM_RECOMPUTE);
    plan->recompute_layers =
        plan->recompute == MS_RECOMPUTE_FULL && once_in(rng, 3) ? 1 : 0;
}

static void draw_precision(ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    (void)model;
    static const ms_dtype types[] = {MS_BF16, MS_BF16, MS_BF16, MS_FP32,
                                     MS_FP8,  MS_FP4,  MS_TF32, MS_FP64};
    plan->compute = types[ms_rng_below(rng, sizeof types / sizeof *types)];
}

/* Optimizer, types of its states and of messages, recipe of GEMMs in 8 bits. */
static void draw_states(ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    (void)model;
    if (once_in(rng, 2))
        plan->optimizer = (ms_optimizer)ms_rng_below(rng, MS_NUM_OPTIMIZERS);
    if (once_in(rng, 2))
        plan->optimizer_dtype = (ms_storage)ms_rng_below(rng, MS_STORE_INT8 + 1);
    plan->param_dtype = once_in(rng, 3) ? MS_STORE_BF16 : MS_STORE_DEFAULT;
    if (!once_in(rng, 3))
        return;
    plan->compute = MS_FP8;
    plan->recipe = (ms_recipe)ms_rng_below(rng, MS_RECIPE_NVFP4);
    plan->comm_dtype = once_in(rng, 2) ? MS_STORE_FP8 : MS_STORE_DEFAULT;
}

static void draw_partition(ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    draw_recompute(rng, model, plan);
    plan->partition_activations = once_in(rng, 2);
}

typedef void (*draw)(ms_rng *rng, const ms_model *model, ms_plan *plan);
/* Choices in the order in which they depend on each other. */
static const draw draws[] = {draw_axes,    draw_experts,   draw_order,    draw_schedule,
                             draw_batch,   draw_sequence,  draw_sharding, draw_tensor,
                             draw_context, draw_recompute, draw_precision};
/* Changes of a plan, those repeated that seldom break a check. */
static const draw changes[] = {
    draw_axes,      draw_axes,     draw_axes,     draw_experts,  draw_experts,
    draw_order,     draw_schedule, draw_schedule, draw_batch,    draw_batch,
    draw_batch,     draw_sequence, draw_sequence, draw_sharding, draw_tensor,
    draw_tensor,    draw_tensor,   draw_context,  draw_context,  draw_recompute,
    draw_precision, draw_states,   draw_states,   draw_partition};
#define NUM_OF(list) ((int)(sizeof(list) / sizeof *(list)))

/* ---- layers of stages ---- */

/* Layers as even as possible, then some moved from one stage to another. */
static const long *uneven_layers(ms_rng *rng, ms_arena *arena, long layers, long stages)
{
    long *of_stage = MS_NEW_ARRAY(arena, stages, long);
    for (long i = 0; i < stages; i++)
        of_stage[i] = layers / stages + (i < layers % stages);
    for (uint64_t moves = ms_rng_below(rng, 4); moves > 0; moves--) {
        uint64_t from = ms_rng_below(rng, (uint64_t)stages);
        if (of_stage[from] > 1) {
            of_stage[from]--;
            of_stage[ms_rng_below(rng, (uint64_t)stages)]++;
        }
    }
    return of_stage;
}

static void draw_layers(ms_rng *rng, ms_arena *arena, const ms_model *model,
                        ms_plan *plan)
{
    long stages = plan->size[MS_PP] * plan->virtual_stages;
    plan->num_stage_layers = 0;
    plan->layers_per_stage = NULL;
    if (!once_in(rng, 4) || stages > model->num_layers)
        return;
    plan->num_stage_layers = stages;
    plan->layers_per_stage = uneven_layers(rng, arena, model->num_layers, stages);
}

/* ---- plans ---- */

static ms_plan draw_plan(ms_rng *rng, ms_arena *arena, const char *stack,
                         const ms_model *model)
{
    ms_plan plan = ms_plan_default(1);
    plan.model = model->name;
    plan.stack = ms_arena_strndup(arena, stack, strcspn(stack, "@"));
    for (int i = 0; i < NUM_OF(draws); i++)
        draws[i](rng, model, &plan);
    draw_layers(rng, arena, model, &plan);
    return plan;
}

static bool is_accepted(const char *stack, const ms_plan *plan, const ms_model *model)
{
    return ms_plan_refusal(plan, model) == MS_LEGAL &&
           ms_check_framework(stack, plan, model) == NULL;
}

static ms_plan accepted_plan(ms_rng *rng, ms_arena *arena, const char *stack,
                             const ms_model *model)
{
    for (;;) {
        ms_plan plan = draw_plan(rng, arena, stack, model);
        if (is_accepted(stack, &plan, model))
            return plan;
    }
}

/* One group of choices drawn anew, or the layers of stages; as many micro-batches as
 * before, unless these are what is drawn. */
static void change(ms_rng *rng, ms_arena *arena, const ms_model *model, ms_plan *plan)
{
    long microbatches = ms_plan_microbatches(plan);
    int which = (int)ms_rng_below(rng, NUM_OF(changes) + 2);
    if (which >= NUM_OF(changes))
        draw_layers(rng, arena, model, plan);
    else
        changes[which](rng, model, plan);
    if (which >= NUM_OF(changes) || changes[which] != draw_batch)
        plan->global_batch =
            microbatches * plan->microbatch * ms_plan_data_parallel(plan);
    if (plan->num_stage_layers != plan->size[MS_PP] * plan->virtual_stages)
        plan->num_stage_layers = 0;
}

/* Accepted plans are drawn anew after some changes that broke nothing. */
static ms_plan refused_plan(ms_rng *rng, ms_arena *arena, const char *stack,
                            const ms_model *model)
{
    const int num_tries = 100;
    for (;;) {
        ms_plan accepted = accepted_plan(rng, arena, stack, model);
        for (int i = 0; i < num_tries; i++) {
            ms_plan plan = accepted;
            change(rng, arena, model, &plan);
            if (once_in(rng, 2))
                change(rng, arena, model, &plan);
            if (ms_plan_refusal(&plan, model) == MS_LEGAL &&
                ms_check_framework(stack, &plan, model) != NULL)
                return plan;
        }
    }
}

ms_plan ms_random_framework_plan(ms_rng *rng, ms_arena *arena, const char *stack,
                                 const ms_model *model, bool accepted)
{
    return accepted ? accepted_plan(rng, arena, stack, model)
                    : refused_plan(rng, arena, stack, model);
}
