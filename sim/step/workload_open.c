/* Opens workloads: loads the files that a plan names, counts layers by kind. */
#include "sim/step/workload.h"

#include "costmodel/plan/stack_choices.h"
#include "sim/step/offload.h"
#include "topo/allocation.h"

#include <assert.h>
#include <math.h>

static void count_layers(ms_workload *workload)
{
    const ms_model *model = workload->model;
    for (int kind = 0; kind < model->num_kinds; kind++) {
        workload->layers_before[kind] =
            MS_NEW_ARRAY(workload->arena, model->num_layers + 1, int);
        for (long i = 0; i < model->num_layers; i++)
            workload->layers_before[kind][i + 1] =
                workload->layers_before[kind][i] + (model->kind_of_layer[i] == kind);
    }
    workload->first_alike = MS_NEW_ARRAY(workload->arena, model->num_layers, int);
    for (long i = 1; i < model->num_layers; i++) {
        bool alike = model->kind_of_layer[i] == model->kind_of_layer[i - 1];
        workload->first_alike[i] = alike ? workload->first_alike[i - 1] : (int)i;
    }
}

static bool repeats(const ms_model *model, long layer, long period)
{
    return layer >= period &&
           model->kind_of_layer[layer] == model->kind_of_layer[layer - period];
}

/* Finds the shortest period of the second half of the model, and where it begins. */
static void find_period(ms_workload *workload)
{
    const ms_model *model = workload->model;
    long num = model->num_layers, period = 0, first = num;
    while (first > num / 2 && period < MS_MAX_PERIOD) {
        period++;
        for (first = num; repeats(model, first - 1, period);)
            first--;
    }
    bool found = first <= num / 2;
    workload->period = found ? (int)period : 0;
    workload->first_periodic = found ? (int)(first - period) : (int)num;
}

static void open_cache(ms_workload *workload)
{
    workload->arena = ms_arena_open();
    workload->bill_keys = workload->split_keys = (ms_map){.arena = workload->arena};
    workload->bill_capacity = workload->split_capacity = 0;
    workload->bill_sets = NULL;
    workload->splits = NULL;
    count_layers(workload);
    find_period(workload);
}

void ms_workload_forget(ms_workload *workload)
{
    for (int i = 0; i < MS_NUM_KIND_SETS; i++)
        if (workload->of_kinds[i] != NULL)
            ms_workload_forget(workload->of_kinds[i]);
    ms_arena_close(workload->arena);
    open_cache(workload);
}

void ms_workload_set_memory_rule(ms_workload *workload, const ms_memory_rule *rule)
{
    workload->memory =
        ms_memory_limit_make(rule, workload->peak_spread, workload->stack->name,
                             workload->cluster->device.memory_bytes);
    for (int i = 0; i < MS_NUM_KIND_SETS; i++) {
        ms_workload *other = workload->of_kinds[i];
        if (other == NULL)
            continue;
        other->peak_spread = workload->peak_spread;
        ms_workload_set_memory_rule(other, rule);
    }
}

static ms_status load_expert_fill(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                                  ms_expert_fill *out)
{
    *out = (ms_expert_fill){.imbalance = plan->expert_imbalance,
                            .capacity = plan->expert_capacity,
                            .pads = ms_plan_pads_experts(plan)};
    return plan->expert_loads == NULL
               ? MS_OK
               : ms_expert_loads_load(cx, plan->expert_loads, model->moe.num_experts,
                                      &out->loads);
}

/* The model's FLOP per token, mean over the tokens of sequences of these lengths. */
static ms_flop_per_token flop_of_lengths(const ms_model *model, const ms_lengths *lengths)
{
    ms_flop_per_token sum = {0};
    double before = 0.0;
    for (int i = 0; i < lengths->num; i++) {
        ms_flop_per_token flop = ms_model_flop_per_token(model, lengths->tokens[i]);
        double share =
            (lengths->at_most[i] - before) * lengths->tokens[i] / lengths->mean_tokens;
        sum.matrix_flop += share * flop.matrix_flop;
        sum.causal_flop += share * flop.causal_flop;
        sum.full_flop += share * flop.full_flop;
        sum.vector_flop += share * flop.vector_flop;
        before = lengths->at_most[i];
    }
    return sum;
}

static ms_status load_lengths(ms_ctx *cx, const ms_plan *plan, ms_workload *workload)
{
    workload->packing = plan->packing;
    if (plan->packing == MS_NOT_PACKED)
        return MS_OK;
    double longest = (double)plan->sequence_length;
    if (plan->lengths != NULL) {
        MS_TRY(ms_lengths_load(cx, plan->lengths, longest, &workload->lengths));
    } else if (plan->length_mean_tokens > 0.0) {
        workload->lengths = ms_lengths_make(cx->arena, plan->length_mean_tokens,
                                            plan->length_deviation_tokens, longest);
    } else {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "sequences are %s, but of unknown lengths",
                ms_packing_names[plan->packing]);
        return ms_hint(cx, "--length-mean and --length-std, or --lengths FILE");
    }
    workload->flop_of_lengths = flop_of_lengths(workload->model, &workload->lengths);
    return MS_OK;
}

/* ---- kinds of devices ---- */

/* The kind of a set on which large GEMMs take longest. */
static int slowest_of(const ms_workload *workload, ms_kind_set kinds)
{
    int slowest = -1;
    double least = INFINITY;
    for (int k = 0; k < workload->cluster->num_kinds; k++) {
        const ms_workload *alone = workload->of_kinds[1U << k];
        assert(alone != NULL); /* each kind alone is made first */
        if ((kinds >> k & 1U) == 0 || alone->pricer.gemm_flop_per_s >= least)
            continue;
        least = alone->pricer.gemm_flop_per_s;
        slowest = k;
    }
    return slowest;
}

/* Makes the workload for ranks with these kinds of devices, priced as the slowest. */
static ms_status make_of_kinds(ms_ctx *cx, ms_workload *workload,
                               const ms_workload_inputs *inputs, const ms_plan *plan,
                               ms_kind_set kinds, int slowest)
{
    const ms_cluster *cluster = workload->cluster;
    ms_workload_inputs own = *inputs;
    ms_plan plain = *plan;
    plain.slow_nodes = NULL; /* slow already */
    own.cluster = ms_cluster_of_kinds(cx->arena, cluster, kinds, slowest);
    const ms_device_kind *kind = &cluster->kinds[slowest];
    if (inputs->group_profiles != NULL)
        own.profile = inputs->group_profiles[kind->group];
    else if (kind->like != NULL)
        MS_TRY(ms_profile_load_for(cx, own.cluster->device.profile, kind->like,
                                   &own.profile));
    return ms_workload_make(cx, &own, &plain, &workload->of_kinds[kinds]);
}

static ms_status make_kinds(ms_ctx *cx, ms_workload *workload,
                            const ms_workload_inputs *inputs, const ms_plan *plan)
{
    int num_kinds = workload->cluster->num_kinds;
    if (num_kinds > 0 && workload->cluster->kinds[0].like != NULL &&
        plan->profile != NULL) {
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "profile %s is of one device, and cluster %s has several kinds, "
                       "each with its own profile",
                       plan->profile, workload->cluster->name);
    }
    for (int k = 0; k < num_kinds; k++)
        MS_TRY(make_of_kinds(cx, workload, inputs, plan, 1U << k, k));
    for (ms_kind_set kinds = 1; kinds >> num_kinds == 0; kinds++)
        if (workload->of_kinds[kinds] == NULL)
            MS_TRY(make_of_kinds(cx, workload, inputs, plan, kinds,
                                 slowest_of(workload, kinds)));
    return MS_OK;
}

static void close_kinds(ms_workload *workload)
{
    for (int i = 0; i < MS_NUM_KIND_SETS; i++)
        if (workload->of_kinds[i] != NULL)
            ms_workload_close(workload->of_kinds[i]);
}

/* Refuses choices that device, stack or model do not have. */
static ms_status check_choices(ms_ctx *cx, const ms_workload_inputs *inputs,
                               const ms_plan *plan)
{
    MS_TRY(ms_plan_check_types(cx, plan, &inputs->cluster->device));
    MS_TRY(ms_plan_check_host(cx, plan, inputs->stack, inputs->model));
    return ms_plan_check_dispatcher(cx, plan);
}

ms_status ms_workload_make(ms_ctx *cx, const ms_workload_inputs *inputs,
                           const ms_plan *plan, ms_workload **out)
{
    ms_workload *workload = MS_NEW(cx->arena, ms_workload);
    workload->model = inputs->model;
    MS_TRY(ms_cluster_slow_down_by(cx, inputs->cluster, plan->slow_nodes,
                                   &workload->cluster));
    workload->profile = inputs->profile;
    workload->group_profiles = inputs->group_profiles;
    MS_TRY(check_choices(cx, inputs, plan));
    ms_stack *stack = MS_NEW(cx->arena, ms_stack);
    *stack = ms_stack_of_plan(inputs->stack, plan);
    workload->stack = stack;
    workload->updates_matrices = ms_stack_updates_matrices(stack);
    MS_TRY(ms_pricer_make(cx, workload->cluster, workload->profile, workload->stack,
                          plan->compute, &workload->pricer));
    workload->sequence_length = plan->sequence_length;
    workload->global_batch = plan->global_batch;
    workload->compute = plan->compute;
    workload->lora = ms_plan_lora(plan);
    workload->recompute_budget_frac = plan->recompute_budget_frac;
    MS_TRY(load_expert_fill(cx, inputs->model, plan, &workload->expert_fill));
    MS_TRY(load_lengths(cx, plan, workload));
    if (make_kinds(cx, workload, inputs, plan) != MS_OK) {
        close_kinds(workload);
        return cx->status;
    }
    ms_workload_set_memory_rule(workload, &(ms_memory_rule){0});
    pthread_mutex_init(&workload->lock, NULL);
    open_cache(workload);
    *out = workload;
    return MS_OK;
}

ms_status ms_workload_make_like(ms_ctx *cx, const ms_workload *like,
                                const ms_workload_inputs *inputs, const ms_plan *plan,
                                ms_workload **out)
{
    MS_TRY(ms_workload_make(cx, inputs, plan, out));
    (*out)->rules = like->rules;
    (*out)->spread = like->spread;
    (*out)->peak_spread = like->peak_spread;
    ms_workload_set_memory_rule(*out, &(ms_memory_rule){0});
    return MS_OK;
}

/* Loads the errors of predictions of published runs. NULL for CPUs and calibrated
 * profiles, with which no published run was predicted. */
static ms_status load_spread(ms_ctx *cx, const ms_workload_inputs *inputs,
                             const char *name, const ms_error_spread **out)
{
    const ms_profile *profile = inputs->profile;
    bool calibrated = profile->measured != NULL || profile->pointwise != NULL;
    *out = NULL;
    if (calibrated || inputs->cluster->device.unit != NULL)
        return MS_OK;
    return ms_error_spread_load(cx, name, out);
}

static ms_status close_unless(ms_status status, ms_workload **workload)
{
    if (status == MS_OK)
        return MS_OK;
    ms_workload_close(*workload);
    *workload = NULL;
    return status;
}

ms_status ms_workload_open(ms_ctx *cx, const ms_plan *plan, ms_workload **out)
{
    ms_workload_inputs inputs = {0};
    const ms_error_spread *spread, *peak_spread;
    MS_TRY(ms_model_load(cx, plan->model, &inputs.model));
    MS_TRY(ms_cluster_load_for_job(cx, plan->cluster, plan->gpus, plan->ranks_per_domain,
                                   &inputs.cluster));
    MS_TRY(ms_profile_load_for(
        cx, plan->profile != NULL ? plan->profile : inputs.cluster->device.profile,
        inputs.cluster, &inputs.profile));
    MS_TRY(ms_stack_load(cx, plan->stack, &inputs.stack));
    MS_TRY(load_spread(cx, &inputs, MS_STEP_SPREAD, &spread));
    MS_TRY(load_spread(cx, &inputs, MS_PEAK_SPREAD, &peak_spread));
    ms_rule_set rules;
    MS_TRY(ms_rule_set_load(cx, inputs.stack, &rules));
    MS_TRY(ms_workload_make(cx, &inputs, plan, out));
    (*out)->rules = rules;
    (*out)->spread = spread;
    (*out)->peak_spread = peak_spread;
    ms_workload_set_memory_rule(*out, &(ms_memory_rule){0});
    return close_unless(ms_offload_check(cx, *out, plan), out);
}

void ms_workload_close(ms_workload *workload)
{
    close_kinds(workload);
    pthread_mutex_destroy(&workload->lock);
    ms_arena_close(workload->arena);
}
