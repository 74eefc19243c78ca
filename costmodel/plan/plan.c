/* Defaults, meshes and schedules of plans. */
#include "costmodel/plan/plan_field.h"
#include "costmodel/schedule/schedule_csv.h"

#include <assert.h>

const char *const ms_plan_axis_names[] = {"pp", "dp_replicate", "dp_shard",
                                          "cp", "tp",           NULL};

long ms_plan_data_parallel(const ms_plan *plan)
{
    return plan->size[MS_DP_REPLICATE] * plan->size[MS_DP_SHARD];
}

long ms_plan_microbatches(const ms_plan *plan)
{
    return plan->global_batch / (ms_plan_data_parallel(plan) * plan->microbatch);
}

long ms_plan_head_ranks(const ms_plan *plan)
{
    return plan->size[MS_TP] * (plan->cp_method == MS_CP_ULYSSES ? plan->size[MS_CP] : 1);
}

long ms_plan_secondary_shards(const ms_plan *plan)
{
    bool is_fewer = plan->reshard_ranks < plan->size[MS_DP_SHARD] * plan->size[MS_CP];
    return is_fewer && ms_plan_reshard_ranks_divide(plan) ? plan->reshard_ranks : 0;
}

bool ms_plan_balances_sequence(const ms_plan *plan)
{
    return plan->size[MS_CP] > 1 && plan->cp_balance == MS_CP_HEAD_TAIL &&
           plan->cp_method != MS_CP_ULYSSES;
}

bool ms_plan_has_unequal_ranks(const ms_plan *plan)
{
    return plan->size[MS_CP] > 1 && plan->cp_balance == MS_CP_NONE &&
           plan->cp_method != MS_CP_ULYSSES;
}

bool ms_plan_pads_experts(const ms_plan *plan)
{
    return plan->pad_experts && plan->expert_capacity > 0.0;
}

ms_cp_method ms_plan_cp_method(const ms_plan *plan)
{
    return plan->size[MS_CP] > 1 ? plan->cp_method : MS_CP_ALL_GATHER;
}

/* ---- defaults ---- */

long ms_plan_default_batch(long gpus, long sequence_length)
{
    const long least_tokens = 4L << 20, tokens_per_gpu = 1L << 10;
    long tokens =
        gpus > least_tokens / tokens_per_gpu ? gpus * tokens_per_gpu : least_tokens;
    long sequences = tokens / sequence_length;
    return sequences > 0 ? sequences : 1;
}

ms_plan ms_plan_default(long gpus)
{
    ms_plan plan = {
        .cluster = "hgx-h100",
        .stack = "megatron",
        .lora_targets = "all",
        .gpus = gpus,
        .order = {MS_PP, MS_DP_REPLICATE, MS_DP_SHARD, MS_CP, MS_TP},
    };
    ms_plan_make_plain(&plan);
    ms_plan_reset(&plan, MS_CHOOSE_SEQUENCE_LENGTH);
    ms_plan_reset(&plan, MS_CHOOSE_COMPUTE);
    plan.size[MS_DP_SHARD] = 0;
    plan.global_batch = ms_plan_default_batch(gpus, plan.sequence_length);
    plan.zero = -1;
    plan.sequence_parallel = true;
    return plan;
}

ms_lora ms_plan_lora(const ms_plan *plan)
{
    unsigned char targets = 0;
    if (plan->lora_rank <= 0 || plan->lora_targets == NULL ||
        !ms_lora_targets_parse(plan->lora_targets, &targets))
        return (ms_lora){0};
    return (ms_lora){.rank = (short)plan->lora_rank,
                     .targets = targets,
                     .base = (unsigned char)plan->lora_base};
}

void ms_plan_fill_defaults(ms_plan *plan)
{
    if (plan->size[MS_DP_SHARD] == 0) {
        long rest = plan->gpus;
        for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
            if (axis != MS_DP_SHARD)
                rest /= plan->size[axis];
        plan->size[MS_DP_SHARD] = rest > 0 ? rest : 1;
    }
    if (plan->global_batch == 0)
        plan->global_batch = ms_plan_default_batch(plan->gpus, plan->sequence_length);
    if (plan->zero < 0)
        plan->zero = plan->size[MS_DP_SHARD] * plan->size[MS_CP] > 1 ? 3 : 0;
}

/* ---- meshes ---- */

ms_mesh ms_plan_mesh(const ms_plan *plan)
{
    const char *names[MS_NUM_PLAN_AXES];
    long sizes[MS_NUM_PLAN_AXES];
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++) {
        names[i] = ms_plan_axis_names[plan->order[i]];
        sizes[i] = plan->size[plan->order[i]];
    }
    return ms_mesh_make(names, sizes, MS_NUM_PLAN_AXES);
}

/* Mesh of expert layers: pp, dp_replicate, and the ranks of dp_shard x cp x tp as efsdp x
 * ep x etp. Source: TorchTitan parallel_dims.py (two meshes, December 2025). */
ms_mesh ms_plan_expert_mesh(const ms_plan *plan)
{
    const char *names[MS_NUM_PLAN_AXES];
    long sizes[MS_NUM_PLAN_AXES];
    int num_axes = 0;
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++) {
        int axis = plan->order[i];
        if (axis != MS_PP && axis != MS_DP_REPLICATE)
            continue;
        names[num_axes] = ms_plan_axis_names[axis];
        sizes[num_axes++] = plan->size[axis];
    }
    long shared = plan->size[MS_DP_SHARD] * plan->size[MS_CP] * plan->size[MS_TP];
    assert(num_axes == 2 && shared % (plan->ep * plan->etp) == 0);
    names[2] = "efsdp";
    sizes[2] = shared / (plan->ep * plan->etp);
    names[3] = "ep";
    sizes[3] = plan->ep;
    names[4] = "etp";
    sizes[4] = plan->etp;
    return ms_mesh_make(names, sizes, 5);
}

const char *ms_plan_schedule_name(const ms_plan *plan)
{
    return plan->schedule == MS_CUSTOM ? plan->schedule_file
                                       : ms_schedule_names[plan->schedule];
}

void ms_plan_set_schedule(ms_plan *plan, ms_schedule_kind kind)
{
    plan->schedule = kind;
    plan->schedule_file = NULL;
    plan->schedule_table = NULL;
    if (!ms_schedule_traits_of(kind).limits_memory)
        plan->memory_limit = 0.0;
}

ms_status ms_plan_load_schedule(ms_ctx *cx, const char *path, ms_plan *plan)
{
    ms_schedule_shape shape;
    MS_TRY(ms_schedule_csv_load(cx, path, &shape));
    const char *why;
    if (!ms_schedule_allows(&shape, &why))
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s: %s", path, why);
    const ms_schedule *schedule;
    ms_arena *scratch = ms_arena_open();
    ms_status status =
        ms_schedule_open(cx, scratch, &shape, (ms_loc){.file = path}, &schedule);
    ms_arena_close(scratch);
    if (status != MS_OK)
        return status;
    ms_plan_set_schedule(plan, MS_CUSTOM);
    plan->schedule_file = ms_arena_strdup(cx->arena, path);
    plan->schedule_table = shape.table;
    plan->virtual_stages = shape.virtual_stages;
    return MS_OK;
}

/* Micro-batches of a single rank just follow one another, as in 1F1B. */
static bool has_no_pipeline(const ms_plan *plan)
{
    return plan->size[MS_PP] == 1 && plan->virtual_stages == 1 &&
           plan->schedule != MS_CUSTOM;
}

ms_schedule_shape ms_plan_shape(const ms_plan *plan)
{
    bool plain = has_no_pipeline(plan);
    return (ms_schedule_shape){.kind = plain ? MS_1F1B : plan->schedule,
                               .num_ranks = (int)plan->size[MS_PP],
                               .num_microbatches = (int)ms_plan_microbatches(plan),
                               .virtual_stages = (int)plan->virtual_stages,
                               .group = plain ? 0 : (int)plan->microbatch_group,
                               .memory_limit = plain ? 0.0 : plan->memory_limit,
                               .table = plan->schedule_table};
}

/* ---- recomputation ---- */

ms_layer_mode ms_plan_layer_mode(const ms_plan *plan)
{
    if (plan->recompute != MS_RECOMPUTE_AUTO)
        return plan->recompute;
    for (int tenths = 0; tenths < MS_NUM_BUDGETS; tenths++) {
        ms_layer_mode mode = ms_layer_mode_of_budget(tenths);
        if (plan->recompute_budget_frac == ms_layer_mode_budget_frac(mode))
            return mode;
    }
    return MS_RECOMPUTE_AUTO;
}

void ms_plan_set_layer_mode(ms_plan *plan, ms_layer_mode mode)
{
    plan->recompute = ms_layer_mode_recompute(mode);
    plan->recompute_budget_frac =
        ms_layer_mode_has_budget(mode) ? ms_layer_mode_budget_frac(mode) : -1.0;
}
