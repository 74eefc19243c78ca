#include "sim/step/idle_choices.h"

#include "base/number.h"
#include "sim/step/bill_key.h"
#include "sim/step/sync_units.h"

#include <math.h>

typedef struct stated {
    ms_arena *arena;
    ms_workload *workload;
    const ms_plan *plan;
} stated;

/* ---- sharding ---- */

static long num_shards(const ms_plan *plan)
{
    return plan->size[MS_DP_SHARD] * plan->size[MS_CP];
}

static const char *on_one_rank(const stated *s)
{
    return s->plan->gpus == 1 ? "has no effect: one GPU sends nothing" : NULL;
}

static const char *not_synchronised(const stated *s)
{
    long ranks = ms_plan_data_parallel(s->plan) * s->plan->size[MS_CP];
    return ranks == 1 && s->workload->model->moe.num_experts == 0
               ? "has no effect: dp_replicate x dp_shard x cp is 1, no rank has a replica "
                 "or a shard of another's parameters"
               : NULL;
}

static const char *not_gathered(const stated *s)
{
    bool has_shards = num_shards(s->plan) > 1 || s->workload->model->moe.num_experts > 0;
    return s->plan->zero == 0 || !has_shards
               ? "has no effect: no parameters are sharded, so none are gathered"
               : NULL;
}

static const char *sharded_so_anyway(const stated *s)
{
    return s->plan->reshard_ranks >= num_shards(s->plan)
               ? ms_arena_printf(s->arena,
                                 "has no effect: %ld ranks shard the parameters",
                                 num_shards(s->plan))
               : NULL;
}

static const char *past_the_layers(const stated *s)
{
    const ms_model *model = s->workload->model;
    long most = 1;
    for (int layer = 0; layer < model->num_layers; layer++) {
        long run = layer - s->workload->first_alike[layer] + 1;
        most = run > most ? run : most;
    }
    return s->plan->unit_layers > most
               ? ms_arena_printf(s->arena,
                                 "acts as %ld: %s has no more equal layers in a row",
                                 most, model->name)
               : NULL;
}

/* Buckets that are smaller than the matrices of every kind of layers. */
static const char *below_the_matrices(const stated *s)
{
    const ms_stack *stack = s->workload->stack;
    ms_bill_key key = ms_plan_bill_key(s->workload, s->plan);
    const ms_bill_set *bills = ms_workload_bills(s->workload, &key);
    double least_bytes = INFINITY;
    for (int kind = 0; kind < s->workload->model->num_kinds; kind++) {
        const ms_bill *bill = bills->layer[kind][MS_RECOMPUTE_NONE];
        least_bytes = ms_min(least_bytes, bill->dense_params / bill->num_matrices[0]);
    }
    least_bytes *= ms_min(stack->grad_comm_bytes.value, stack->param_comm_bytes.value);
    return s->plan->bucket_bytes < least_bytes
               ? ms_arena_printf(s->arena,
                                 "acts as a collective for each matrix: those of a layer "
                                 "have %.3g MB, mean",
                                 least_bytes / 1e6)
               : NULL;
}

/* ---- experts ---- */

static const char *no_experts(const stated *s)
{
    return s->workload->model->moe.num_experts == 0
               ? ms_arena_printf(s->arena, "has no effect: %s has no experts",
                                 s->workload->model->name)
               : NULL;
}

static const char *loads_are_measured(const stated *s)
{
    return s->plan->expert_loads != NULL ? "has no effect beside --expert-loads" : NULL;
}

static const char *no_uneven_ranks(const stated *s)
{
    return s->plan->ep == 1 && s->plan->expert_capacity == 0.0
               ? "has no effect without --ep above 1 or --expert-capacity"
               : NULL;
}

static const char *nothing_dropped(const stated *s)
{
    ms_expert_fill free = s->workload->expert_fill;
    free.capacity = 0.0;
    double excess_frac = ms_expert_excess_frac(&free, s->plan->ep);
    return !free.pads && free.loads == NULL &&
                   1.0 + excess_frac <= s->plan->expert_capacity
               ? ms_arena_printf(s->arena,
                                 "is predicted to drop nothing: the fullest "
                                 "experts have %g x the mean",
                                 1.0 + excess_frac)
               : NULL;
}

/* ---- devices ---- */

static const char *one_group(const stated *s)
{
    const ms_cluster *cluster = s->workload->cluster;
    for (int i = 0; i < cluster->num_kinds; i++)
        if (cluster->kinds[i].group != cluster->kinds[0].group)
            return NULL;
    return ms_arena_printf(s->arena, "has no effect: cluster %s has devices of one kind",
                           cluster->name);
}

static const char *not_of_the_job(const stated *s)
{
    bool reversed = s->plan->device_order == MS_DEVICES_REVERSED;
    ms_slow_count count = ms_slow_nodes_count(s->workload->cluster, s->plan->slow_nodes,
                                              reversed, s->plan->gpus);
    if (count.in_job == 0)
        return "has no effect: the job has none of these nodes";
    return count.in_job < count.all
               ? ms_arena_printf(s->arena,
                                 "slows %ld of these %ld nodes: the others are not "
                                 "in the job",
                                 count.in_job, count.all)
               : NULL;
}

static const char *in_one_domain(const stated *s)
{
    return s->plan->gpus <= s->plan->ranks_per_domain
               ? "has no effect: the job is in one domain"
               : NULL;
}

/* ---- data and stages ---- */

static const char *lengths_are_measured(const stated *s)
{
    return s->plan->lengths != NULL ? "has no effect beside --lengths" : NULL;
}

static const char *above_the_sequence(const stated *s)
{
    return s->plan->length_mean_tokens > (double)s->plan->sequence_length
               ? ms_arena_printf(s->arena, "acts as %.0f: sequences are cut to --seq %ld",
                                 s->workload->lengths.mean_tokens,
                                 s->plan->sequence_length)
               : NULL;
}

static const char *one_axis(const stated *s)
{
    int num = 0;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        num += s->plan->size[axis] > 1;
    return num < 2 ? "has no effect: fewer than two axes are above 1" : NULL;
}

static const char *one_stage(const stated *s)
{
    return s->plan->size[MS_PP] * s->plan->virtual_stages == 1
               ? "has no effect: one stage has all layers"
               : NULL;
}

/* ---- all of them ---- */

/* Conditions that leave a stated choice without effect; the first that holds is said. */
static const struct {
    ms_choice choice;
    bool of_job; /* does not depend on what a search tries */
    const char *(*why)(const stated *s);
} rules[] = {
    {MS_CHOOSE_ORDER, false, one_axis},
    {MS_CHOOSE_STAGE_LAYERS, false, one_stage},
    {MS_CHOOSE_COMM_DTYPE, true, on_one_rank},
    {MS_CHOOSE_REDUCE_BITS, true, on_one_rank},
    {MS_CHOOSE_GATHER_BITS, false, not_gathered},
    {MS_CHOOSE_BUCKET_BYTES, false, not_synchronised},
    {MS_CHOOSE_BUCKET_BYTES, false, below_the_matrices},
    {MS_CHOOSE_UNIT_LAYERS, false, not_synchronised},
    {MS_CHOOSE_UNIT_LAYERS, true, past_the_layers},
    {MS_CHOOSE_RESHARD_RANKS, false, sharded_so_anyway},
    {MS_CHOOSE_EXPERT_IMBALANCE, true, loads_are_measured},
    {MS_CHOOSE_EXPERT_LOADS, false, no_uneven_ranks},
    {MS_CHOOSE_EXPERT_CAPACITY, true, no_experts},
    {MS_CHOOSE_EXPERT_CAPACITY, false, nothing_dropped},
    {MS_CHOOSE_PAD_EXPERTS, true, no_experts},
    {MS_CHOOSE_DEVICE_ORDER, true, one_group},
    {MS_CHOOSE_SLOW_NODES, true, not_of_the_job},
    {MS_CHOOSE_RANKS_PER_DOMAIN, true, in_one_domain},
    {MS_CHOOSE_LENGTH_MEAN, true, lengths_are_measured},
    {MS_CHOOSE_LENGTH_MEAN, true, above_the_sequence},
    {MS_CHOOSE_LENGTH_DEVIATION, true, lengths_are_measured},
};

const char *ms_idle_choice_text(ms_arena *arena, ms_workload *workload,
                                const ms_plan *plan, ms_choice choice, bool of_job)
{
    const stated s = {arena, workload, plan};
    if (ms_plan_is_plain(plan, choice) || !ms_plan_matters(plan, choice))
        return NULL;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].choice != choice || (of_job && !rules[i].of_job))
            continue;
        const char *why = rules[i].why(&s);
        if (why != NULL)
            return ms_arena_printf(arena, "%s %s %s", ms_plan_fields[choice].flag,
                                   ms_plan_value_text(arena, plan, choice), why);
    }
    return NULL;
}
