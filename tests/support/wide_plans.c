#include "tests/support/wide_plans.h"

#include "costmodel/schedule/schedule_csv.h"
#include "tests/support/random_schedule.h"
#include "tests/test.h"

/* ---- drawn choices ---- */

static bool one_in(ms_rng *rng, uint64_t num)
{
    return ms_rng_below(rng, num) == 0;
}

static void keep_if_legal(const ms_model *model, const ms_plan *changed, ms_plan *plan)
{
    if (ms_plan_refusal(changed, model) == MS_LEGAL &&
        !ms_plan_copies_kv_heads(changed, model))
        *plan = *changed;
}

static void draw_order(ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    ms_plan changed = *plan;
    for (int i = MS_NUM_PLAN_AXES - 1; i > 0; i--) {
        int other = (int)ms_rng_below(rng, (uint64_t)i + 1);
        unsigned char axis = changed.order[i];
        changed.order[i] = changed.order[other];
        changed.order[other] = axis;
    }
    keep_if_legal(model, &changed, plan);
}

static void draw_file(ms_ctx *cx, ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    ms_plan changed = *plan;
    ms_schedule_shape shape;
    const char *text =
        ms_random_schedule(cx->arena, rng, (int)plan->size[MS_PP],
                           (int)plan->virtual_stages, (int)ms_plan_microbatches(plan));
    ASSERT_OK(ms_schedule_csv_read(cx, "random.csv", text, strlen(text), &shape), cx);
    ms_plan_set_schedule(&changed, MS_CUSTOM);
    changed.schedule_file = "random.csv";
    changed.schedule_table = shape.table;
    changed.microbatch_group = 0;
    keep_if_legal(model, &changed, plan);
}

static void draw_schedule(ms_ctx *cx, ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    static const double limits[] = {1.0, 1.5, 3.0};
    ms_schedule_traits traits = ms_schedule_traits_of(plan->schedule);
    ms_plan changed = *plan;
    if (traits.groups && one_in(rng, 2))
        changed.microbatch_group =
            1 + (long)ms_rng_below(rng, (uint64_t)ms_plan_microbatches(plan));
    if (traits.limits_memory && one_in(rng, 2))
        changed.memory_limit = limits[ms_rng_below(rng, 3)];
    keep_if_legal(model, &changed, plan);
    if (plan->size[MS_PP] > 1 && one_in(rng, 6))
        draw_file(cx, rng, model, plan);
}

/* Draws the layers of each stage: each gets one, the rest go anywhere; in every second
 * plan all go anywhere, so that stages between first and last may be empty. */
static void draw_layers(ms_ctx *cx, ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    long num = plan->size[MS_PP] * plan->virtual_stages;
    long *layers = MS_NEW_ARRAY(cx->arena, num, long);
    ms_plan changed = *plan;
    long least = one_in(rng, 2) ? 0 : 1;
    for (long i = 0; i < num; i++)
        layers[i] = least;
    for (long i = num * least; i < model->num_layers; i++)
        layers[ms_rng_below(rng, (uint64_t)num)]++;
    changed.num_stage_layers = num;
    changed.layers_per_stage = layers;
    keep_if_legal(model, &changed, plan);
}

void ms_widen_plan(ms_ctx *cx, ms_rng *rng, const ms_model *model, ms_plan *plan)
{
    if (one_in(rng, 3))
        draw_order(rng, model, plan);
    draw_schedule(cx, rng, model, plan);
    if (one_in(rng, 3))
        draw_layers(cx, rng, model, plan);
    ms_plan changed = *plan;
    changed.loss_parallel = !one_in(rng, 3);
    changed.cp_balance = one_in(rng, 3) ? MS_CP_NONE : MS_CP_HEAD_TAIL;
    if (plan->recompute == MS_RECOMPUTE_FULL && one_in(rng, 2))
        changed.recompute_layers =
            1 + (long)ms_rng_below(rng, (uint64_t)model->num_layers);
    if (plan->recompute == MS_RECOMPUTE_AUTO)
        changed.recompute_budget_frac = ms_rng_uniform(rng);
    keep_if_legal(model, &changed, plan);
}

/* ---- properties of plans ---- */

#define HAS(name, condition)                                                             \
    static bool name(const ms_model *m, const ms_plan *p)                                \
    {                                                                                    \
        (void)m, (void)p;                                                                \
        return condition;                                                                \
    }

static bool spreads(const ms_plan *p, ms_plan_axis axis)
{
    return p->size[axis] > 1;
}

static bool is_uneven(const ms_plan *p)
{
    for (long i = 1; i < p->num_stage_layers; i++)
        if (p->layers_per_stage[i] != p->layers_per_stage[0])
            return true;
    return false;
}

static bool has_nothing_between(const ms_plan *p)
{
    for (long i = 1; i < p->num_stage_layers - 1; i++)
        if (p->layers_per_stage[i] == 0)
            return true;
    return false;
}

static bool is_reordered(const ms_plan *p)
{
    for (int i = 1; i < MS_NUM_PLAN_AXES; i++)
        if (p->order[i] < p->order[i - 1])
            return true;
    return false;
}

static bool rings(const ms_plan *p, ms_cp_method method)
{
    return spreads(p, MS_CP) && p->cp_method == method;
}

static bool shards(const ms_plan *p, long zero)
{
    return p->zero == zero && p->size[MS_DP_SHARD] * p->size[MS_CP] > 1;
}

HAS(replicates, spreads(p, MS_DP_REPLICATE) && !spreads(p, MS_DP_SHARD))
HAS(shards_optimizer, shards(p, 1))
HAS(shards_gradients, shards(p, 2))
HAS(shards_parameters, shards(p, 3) && p->reshard_after_forward)
HAS(keeps_gathered, shards(p, 3) && !p->reshard_after_forward)
HAS(is_hybrid, shards(p, 3) && spreads(p, MS_DP_REPLICATE))
HAS(splits_tensors, spreads(p, MS_TP) && !p->sequence_parallel)
HAS(splits_sequence, spreads(p, MS_TP) && p->sequence_parallel)
HAS(splits_loss, spreads(p, MS_TP) && p->loss_parallel)
HAS(gathers_logits, spreads(p, MS_TP) && !p->loss_parallel)
HAS(chunks_tensors, spreads(p, MS_TP) && p->async_tp)
HAS(rings_blocks, rings(p, MS_CP_RING) && p->cp_balance == MS_CP_NONE)
HAS(rings_zigzag, rings(p, MS_CP_RING) && p->cp_balance == MS_CP_HEAD_TAIL)
HAS(gathers_keys, rings(p, MS_CP_ALL_GATHER) && p->cp_balance == MS_CP_NONE)
HAS(gathers_keys_balanced, rings(p, MS_CP_ALL_GATHER) && p->cp_balance == MS_CP_HEAD_TAIL)
HAS(swaps_heads, rings(p, MS_CP_ULYSSES))
HAS(splits_experts, p->ep > 1 && (p->etp == 1 || !spreads(p, MS_TP)))
HAS(splits_inside_experts, p->ep > 1 && p->etp > 1)
HAS(splits_only_inside_experts, p->ep == 1 && p->etp > 1)
HAS(pipelines, spreads(p, MS_PP))
HAS(chunks_stages, spreads(p, MS_PP) && p->virtual_stages > 1)
HAS(groups_microbatches, p->microbatch_group > 0)
HAS(limits_memory, p->memory_limit > 0.0)
HAS(follows_a_file, p->schedule == MS_CUSTOM)
HAS(has_uneven_stages, is_uneven(p))
HAS(has_empty_stages, has_nothing_between(p))
HAS(accumulates, ms_plan_microbatches(p) > 1 && !spreads(p, MS_PP))
HAS(recomputes_nothing, p->recompute == MS_RECOMPUTE_NONE)
HAS(recomputes_some, p->recompute == MS_RECOMPUTE_SELECTIVE)
HAS(recomputes_per_op, p->recompute == MS_RECOMPUTE_PER_OP)
HAS(recomputes_all, p->recompute == MS_RECOMPUTE_FULL && p->recompute_layers == 0)
HAS(recomputes_first, p->recompute == MS_RECOMPUTE_FULL && p->recompute_layers > 0)
HAS(recomputes_budget, p->recompute == MS_RECOMPUTE_AUTO)
HAS(has_other_order, is_reordered(p))
HAS(ties_over_stages, m->tied_embeddings &&spreads(p, MS_PP))
HAS(mixes_kinds, m->num_kinds > 1)
HAS(composes_four, spreads(p, MS_PP) && spreads(p, MS_DP_SHARD) && spreads(p, MS_CP) &&
                       spreads(p, MS_TP))

const ms_plan_feature ms_plan_features[] = {
    {"replicas alone", replicates},
    {"zero 1", shards_optimizer},
    {"zero 2", shards_gradients},
    {"zero 3, resharded after forward", shards_parameters},
    {"zero 3, kept gathered", keeps_gathered},
    {"hsdp", is_hybrid},
    {"tp", splits_tensors},
    {"tp with sequence parallelism", splits_sequence},
    {"loss over a sharded vocabulary", splits_loss},
    {"loss over gathered logits", gathers_logits},
    {"asynchronous tp", chunks_tensors},
    {"ring", rings_blocks},
    {"zig-zag ring", rings_zigzag},
    {"gathered keys", gathers_keys},
    {"gathered keys, balanced", gathers_keys_balanced},
    {"ulysses", swaps_heads},
    {"ep", splits_experts},
    {"ep and etp", splits_inside_experts},
    {"etp alone", splits_only_inside_experts},
    {"pp", pipelines},
    {"virtual stages", chunks_stages},
    {"groups of micro-batches", groups_microbatches},
    {"memory limit", limits_memory},
    {"schedule from a file", follows_a_file},
    {"uneven layers per stage", has_uneven_stages},
    {"an empty stage", has_empty_stages},
    {"accumulation without a pipeline", accumulates},
    {"recompute none", recomputes_nothing},
    {"recompute selective", recomputes_some},
    {"recompute per-op", recomputes_per_op},
    {"recompute full", recomputes_all},
    {"recompute full on k layers", recomputes_first},
    {"recompute auto", recomputes_budget},
    {"order of axes", has_other_order},
    {"tied embeddings over stages", ties_over_stages},
    {"layers of two kinds", mixes_kinds},
    {"pp, dp, cp and tp", composes_four},
    {0}};
