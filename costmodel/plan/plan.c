/* Defaults, meshes and integer rules of plans. A search applies the rules millions of
 * times, so they only divide and compare. */
#include "costmodel/plan/plan_field.h"
#include "costmodel/schedule/schedule_csv.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

const char *const ms_plan_axis_names[] = {"pp", "dp_replicate", "dp_shard",
                                          "cp", "tp",           NULL};
const char *const ms_refusal_names[] = {
    "legal",   "ranks",  "heads",    "mamba", "ffn",   "sequence", "batch",
    "experts", "layers", "schedule", "zero",  "order", NULL};

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
        .stack = "generic",
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
        plan->zero = plan->size[MS_DP_SHARD] > 1 ? 3 : 0;
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

/* ---- integer rules ---- */

/* Whether divisor >= 1 divides number; powers of two need no division. */
static bool divides(long divisor, long number)
{
    if ((divisor & (divisor - 1)) == 0)
        return (number & (divisor - 1)) == 0;
    return number % divisor == 0;
}

static bool ranks_match(const ms_plan *plan)
{
    long product = 1;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        if (plan->size[axis] < 1 ||
            __builtin_mul_overflow(product, plan->size[axis], &product))
            return false;
    return product == plan->gpus;
}

bool ms_plan_copies_kv_heads(const ms_plan *plan, const ms_model *model)
{
    long tp = plan->size[MS_TP];
    return model->attention != MS_ATTENTION_MLA && tp > model->num_kv_heads &&
           divides(model->num_kv_heads, tp);
}

/* Whether the heads, query and key-value, can be split over ms_plan_head_ranks ranks. */
static bool heads_divide(const ms_plan *plan, const ms_model *model)
{
    long ranks = ms_plan_head_ranks(plan);
    if (!divides(ranks, model->num_heads))
        return false;
    return model->attention == MS_ATTENTION_MLA || divides(ranks, model->num_kv_heads) ||
           (ranks == plan->size[MS_TP] && ms_plan_copies_kv_heads(plan, model));
}

/* Whether tp divides the groups of Mamba-2 heads and cp is 1: cp passes no states on. */
static bool mamba_divides(const ms_plan *plan, const ms_model *model)
{
    return model->mamba.num_heads == 0 ||
           (plan->size[MS_CP] == 1 &&
            divides(plan->size[MS_TP], model->mamba.num_groups));
}

static bool has_dense_mlp(const ms_model *model)
{
    if (model->moe.num_experts == 0)
        return true;
    for (int i = 0; i < model->num_kinds; i++)
        if (ms_layer_kind_has_dense_mlp(&model->kinds[i]))
            return true;
    return false;
}

static bool ffn_divides(const ms_plan *plan, const ms_model *model)
{
    long tp = plan->size[MS_TP];
    if (has_dense_mlp(model) && !divides(tp, model->ffn_hidden))
        return false;
    return model->moe.num_experts == 0 || (divides(tp, model->moe.shared_ffn_hidden) &&
                                           divides(plan->etp, model->moe.ffn_hidden));
}

/* Whether tp ranks split tokens: with sequence parallelism, or if layers have experts. */
static bool splits_sequence(const ms_plan *plan, const ms_model *model)
{
    return plan->sequence_parallel || model->moe.num_experts > 0;
}

static bool sequence_divides(const ms_plan *plan, const ms_model *model)
{
    long cp = plan->size[MS_CP];
    long pieces = ms_plan_balances_sequence(plan) ? 2 * cp : cp;
    if (plan->sequence_length < 1 || !divides(pieces, plan->sequence_length))
        return false;
    if (model->position == MS_POSITION_LEARNED &&
        plan->sequence_length > model->max_positions)
        return false;
    return !splits_sequence(plan, model) ||
           divides(cp * plan->size[MS_TP], plan->sequence_length);
}

static bool batch_divides(const ms_plan *plan)
{
    long at_once; /* sequences per micro-batch over all data-parallel ranks */
    return plan->global_batch >= 1 && plan->microbatch >= 1 &&
           !__builtin_mul_overflow(ms_plan_data_parallel(plan), plan->microbatch,
                                   &at_once) &&
           divides(at_once, plan->global_batch);
}

static bool experts_divide(const ms_plan *plan, const ms_model *model)
{
    if (plan->ep < 1 || plan->etp < 1)
        return false;
    if (model->moe.num_experts == 0)
        return plan->ep == 1 && plan->etp == 1;
    long shared = plan->size[MS_DP_SHARD] * plan->size[MS_CP] * plan->size[MS_TP];
    return (plan->etp == 1 || plan->etp == plan->size[MS_TP]) &&
           divides(plan->ep, model->moe.num_experts) &&
           divides(plan->ep * plan->etp, shared);
}

static bool layers_fit(const ms_plan *plan, const ms_model *model)
{
    long pp = plan->size[MS_PP], v = plan->virtual_stages, most = model->num_layers;
    if (v < 1 || plan->recompute_layers < 0 || plan->recompute_layers > most)
        return false;
    if (plan->num_stage_layers == 0)
        return v <= most && pp <= most && pp * v <= most;
    long stages = plan->num_stage_layers;
    if (pp > stages || v > stages || stages != pp * v)
        return false;
    long sum = 0;
    for (long i = 0; i < plan->num_stage_layers; i++) {
        long layers = plan->layers_per_stage[i];
        if (layers < 0 || layers > most)
            return false;
        sum += layers;
    }
    return sum == most;
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

ms_schedule_shape ms_plan_shape(const ms_plan *plan)
{
    return (ms_schedule_shape){.kind = plan->schedule,
                               .num_ranks = (int)plan->size[MS_PP],
                               .num_microbatches = (int)ms_plan_microbatches(plan),
                               .virtual_stages = (int)plan->virtual_stages,
                               .group = (int)plan->microbatch_group,
                               .memory_limit = plan->memory_limit,
                               .table = plan->schedule_table};
}

static bool schedule_runs(const ms_plan *plan, const char **why)
{
    long microbatches = ms_plan_microbatches(plan);
    if (microbatches > INT_MAX || plan->microbatch_group > INT_MAX ||
        plan->microbatch_group < 0 || plan->size[MS_PP] > INT_MAX ||
        plan->virtual_stages > INT_MAX) {
        if (why != NULL)
            *why = "a schedule has at most 4194304 actions";
        return false;
    }
    ms_schedule_shape shape = ms_plan_shape(plan);
    return ms_schedule_allows(&shape, why);
}

static bool order_is_permutation(const ms_plan *plan)
{
    unsigned seen = 0;
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        if (plan->order[i] < MS_NUM_PLAN_AXES)
            seen |= 1u << plan->order[i];
    return seen == (1u << MS_NUM_PLAN_AXES) - 1;
}

/* Whether the mesh order ends with dp_shard, cp, tp; axes of size 1 do not count. */
static bool order_suits_experts(const ms_plan *plan)
{
    if (plan->ep * plan->etp == 1)
        return true;
    int inner = 0; /* innermost of the axes dp_shard, cp, tp met so far */
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++) {
        int axis = plan->order[i];
        if (plan->size[axis] == 1)
            continue;
        if (axis < inner)
            return false;
        if (axis >= MS_DP_SHARD)
            inner = axis;
    }
    return true;
}

bool ms_plan_order_is_legal(const ms_plan *plan)
{
    return order_is_permutation(plan) && order_suits_experts(plan);
}

ms_refusal ms_plan_refusal(const ms_plan *plan, const ms_model *model)
{
    if (!ranks_match(plan))
        return MS_REFUSE_RANKS;
    if (!heads_divide(plan, model))
        return MS_REFUSE_HEADS;
    if (!mamba_divides(plan, model))
        return MS_REFUSE_MAMBA;
    if (!experts_divide(plan, model))
        return MS_REFUSE_EXPERTS;
    if (!ffn_divides(plan, model))
        return MS_REFUSE_FFN;
    if (!sequence_divides(plan, model))
        return MS_REFUSE_SEQUENCE;
    if (!batch_divides(plan))
        return MS_REFUSE_BATCH;
    if (!layers_fit(plan, model))
        return MS_REFUSE_LAYERS;
    if (!schedule_runs(plan, NULL))
        return MS_REFUSE_SCHEDULE;
    if (plan->zero < 0 || plan->zero > 3)
        return MS_REFUSE_ZERO;
    if (!ms_plan_order_is_legal(plan))
        return MS_REFUSE_ORDER;
    return MS_LEGAL;
}

const char *ms_plan_schedule_objection(const ms_plan *plan)
{
    const char *why = NULL;
    return schedule_runs(plan, &why) ? NULL : why;
}
