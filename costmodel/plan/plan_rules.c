/* Integer rules of plans. A search applies them millions of times, so they only divide
 * and compare. */
#include "costmodel/plan/plan_field.h"

#include <limits.h>

const char *const ms_refusal_names[] = {
    "legal",  "ranks",   "heads",    "mamba", "ffn",  "sequence", "batch",     "experts",
    "layers", "modules", "schedule", "zero",  "lora", "order",    "framework", NULL};

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
    /* a norm over all key heads would have its weights by copies */
    return model->attention != MS_ATTENTION_MLA && !model->qk_norm_whole &&
           tp > model->num_kv_heads && divides(model->num_kv_heads, tp);
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

/* Whether tp ranks split tokens: with sequence parallelism, if layers have experts, or in
 * saved layer inputs. */
static bool splits_sequence(const ms_plan *plan, const ms_model *model)
{
    return plan->sequence_parallel || model->moe.num_experts > 0 ||
           plan->partition_activations;
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

static bool schedule_runs(const ms_plan *plan, const char **why)
{
    long microbatches = ms_plan_microbatches(plan);
    if (microbatches > INT_MAX || plan->microbatch_group > INT_MAX ||
        plan->microbatch_group < 0 || plan->size[MS_PP] > INT_MAX ||
        plan->virtual_stages > INT_MAX) {
        if (why != NULL)
            *why = ms_too_many_actions;
        return false;
    }
    ms_schedule_shape shape = ms_plan_shape(plan);
    /* refused even where it has no effect */
    shape.kind = plan->schedule;
    shape.group = (int)plan->microbatch_group;
    shape.memory_limit = plan->memory_limit;
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

int ms_plan_lacking_modules(const ms_plan *plan, const ms_model *model)
{
    int lacking = 0;
    if (model->attention != MS_ATTENTION_MLA)
        lacking |= MS_MODULE_MLA_UP_PROJ;
    if (model->moe.num_experts == 0)
        lacking |= MS_MODULES_OF_EXPERTS;
    if (model->moe.shared_ffn_hidden == 0)
        lacking |= MS_MODULE_SHARED_EXPERTS;
    return lacking & plan->recompute_modules;
}

/* Whether the model has the modules that are recomputed and the shared experts that
 * overlap, and no shared experts do both. */
static bool modules_exist(const ms_plan *plan, const ms_model *model)
{
    if (plan->recompute_modules != 0 && ms_plan_lacking_modules(plan, model) != 0)
        return false;
    return !plan->shared_overlap ||
           (model->moe.shared_ffn_hidden > 0 &&
            (plan->recompute_modules & MS_MODULE_SHARED_EXPERTS) == 0);
}

/* Whether the layers that get adapters are known, none of them routed experts, and tp can
 * split the rank. */
static bool adapters_fit(const ms_plan *plan, const ms_model *model)
{
    if (plan->lora_rank == 0)
        return true;
    ms_lora lora = ms_plan_lora(plan);
    return lora.rank > 0 && divides(plan->size[MS_TP], plan->lora_rank) &&
           (model->moe.num_experts == 0 || (lora.targets & MS_LORA_MLP) == 0);
}

bool ms_plan_reshard_ranks_divide(const ms_plan *plan)
{
    long shards = plan->size[MS_DP_SHARD] * plan->size[MS_CP];
    return plan->reshard_ranks == 0 || plan->reshard_ranks >= shards ||
           divides(plan->reshard_ranks, shards);
}

static bool zero_is_legal(const ms_plan *plan)
{
    return plan->zero >= 0 && plan->zero <= 3 &&
           (!ms_plan_matters(plan, MS_CHOOSE_RESHARD_RANKS) ||
            ms_plan_reshard_ranks_divide(plan));
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
    if (!modules_exist(plan, model))
        return MS_REFUSE_MODULES;
    if (!schedule_runs(plan, NULL))
        return MS_REFUSE_SCHEDULE;
    if (!zero_is_legal(plan))
        return MS_REFUSE_ZERO;
    if (!adapters_fit(plan, model))
        return MS_REFUSE_LORA;
    if (!ms_plan_order_is_legal(plan))
        return MS_REFUSE_ORDER;
    return MS_LEGAL;
}

const char *ms_plan_schedule_objection(const ms_plan *plan)
{
    const char *why = NULL;
    return schedule_runs(plan, &why) ? NULL : why;
}

ms_status ms_plan_check_cluster(ms_ctx *cx, const ms_plan *plan,
                                const ms_cluster *cluster)
{
    if (cluster->max_gpus == 0 || plan->gpus <= cluster->max_gpus)
        return MS_OK;
    return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                   "%ld GPUs are asked for, but cluster \"%s\" has at most %ld",
                   plan->gpus, plan->cluster, cluster->max_gpus);
}
