/* Megatron-LM at commit d98e8a64 (2026-08-22, Core 0.20 development): the checks of
 * megatron/training/arguments.py (validate_args), core/transformer/transformer_config.py,
 * core/parallel_state.py and core/pipeline_parallel/schedules.py; versions in which an
 * argument appeared from the tags core_v0.8 to core_v0.19. Ids count these checks; M0 is
 * a choice for which there is no argument. */
#include "tests/frameworks/frameworks.h"

/* ---- ranks, batch, heads ---- */

static bool wrong_ranks(const ms_launch *a)
{
    return a->world % (a->tp * a->pp * a->cp) != 0 ||
           a->world % (a->etp * a->ep * a->pp) != 0;
}

static bool wrong_batch(const ms_launch *a)
{
    return a->plan->global_batch % (a->plan->microbatch * a->dp) != 0;
}

static bool wrong_heads(const ms_launch *a)
{
    return a->model->num_heads % a->tp != 0;
}

/* --num-query-groups */
static bool wrong_kv_heads(const ms_launch *a)
{
    long groups = a->model->num_kv_heads;
    if (a->model->attention == MS_ATTENTION_MLA || groups % a->tp == 0)
        return false;
    return a->minor < 16 || a->tp % groups != 0;
}

/* ---- layers of stages ---- */

/* --account-for-embedding-in-pipeline-split and --account-for-loss-...: as one layer each */
static bool splits_evenly(const ms_launch *a, long embedding, long loss)
{
    long counted = a->model->num_layers + embedding + loss;
    if (counted % a->stages != 0)
        return false;
    long share = counted / a->stages;
    for (long i = 0; a->stage_layers != NULL && i < a->stages; i++) {
        long less = (i == 0 ? embedding : 0) + (i == a->stages - 1 ? loss : 0);
        if (a->stage_layers[i] != share - less)
            return false;
    }
    return true;
}

/* Whether the chunks of a rank share its layers equally: `first` of the first rank, `last`
 * of the last, `middle` of each other one. */
static bool has_rank_layers(const ms_launch *a, long first, long middle, long last)
{
    long v = a->plan->virtual_stages;
    for (long i = 0; a->stage_layers != NULL && i < a->stages; i++) {
        long rank = i % a->pp;
        long layers = rank == 0 ? first : rank == a->pp - 1 ? last : middle;
        if (a->stage_layers[i] * v != layers)
            return false;
    }
    return true;
}

/* --decoder-first-pipeline-num-layers and --decoder-last-...; 0: not given */
static bool splits_with_ends(const ms_launch *a, long first, long last)
{
    long v = a->plan->virtual_stages, rest = a->model->num_layers - first - last;
    long ranks = a->pp - (first > 0) - (last > 0);
    if (ranks <= 0 || rest <= 0)
        return ranks == 0 && rest == 0 && has_rank_layers(a, first, 0, last);
    if (rest % (ranks * v) != 0)
        return false;
    long middle = rest / ranks;
    return has_rank_layers(a, first > 0 ? first : middle, middle,
                           last > 0 ? last : middle);
}

/* The ends' layers are multiples of v; v > 1 needs
 * --num-virtual-stages-per-pipeline-rank, since 0.11. */
static bool splits_with_some_ends(const ms_launch *a)
{
    long v = a->plan->virtual_stages, layers = a->model->num_layers;
    if (v > 1 && a->minor < 11)
        return false;
    for (long first = 0; a->pp > 1 && first < layers; first += v)
        for (long last = 0; first + last <= layers; last += v)
            if (splits_with_ends(a, first, last))
                return true;
    return false;
}

/* --pipeline-model-parallel-layout, since 0.13, states any split. */
static bool wrong_layers(const ms_launch *a)
{
    if (a->minor >= 13)
        return false;
    return !splits_evenly(a, 0, 0) && !splits_evenly(a, 1, 0) &&
           !splits_evenly(a, 0, 1) && !splits_evenly(a, 1, 1) &&
           !splits_with_some_ends(a);
}

/* ---- schedules ---- */

static bool combines(const ms_launch *a)
{
    return a->pp > 1 && a->plan->schedule == MS_COMBINED_1F1B;
}

static bool wrong_schedule(const ms_launch *a)
{
    ms_schedule_kind kind = a->plan->schedule;
    return a->pp > 1 && kind != MS_1F1B && kind != MS_INTERLEAVED &&
           !(combines(a) && a->minor >= 14);
}

static bool wrong_virtual_stages(const ms_launch *a)
{
    return a->plan->virtual_stages > 1 && a->pp == 1;
}

/* --microbatch-group-size-per-virtual-pipeline-stage, since 0.10; pp by default */
static bool wrong_group(const ms_launch *a)
{
    if (a->plan->virtual_stages == 1)
        return false;
    long given = a->plan->microbatch_group, group = given > 0 ? given : a->pp;
    long rest = a->microbatches % group;
    return group < a->pp || group > a->microbatches || (rest != 0 && rest < a->pp) ||
           (group != a->pp && a->minor < 10);
}

/* --overlap-moe-expert-parallel-comm */
static bool wrong_combination(const ms_launch *a)
{
    if (!combines(a))
        return false;
    return a->ep == 1 || (a->pp > 1 && a->plan->virtual_stages == 1) ||
           a->recompute == MS_RECOMPUTE_FULL || ms_launch_computes_in(a, MS_FP32);
}

/* ---- experts, tensor parallelism ---- */

static bool wrong_experts(const ms_launch *a)
{
    return a->moe ? a->model->moe.num_experts % a->ep != 0 : a->ep > 1;
}

static bool wrong_expert_bias(const ms_launch *a)
{
    return a->moe && a->model->moe.expert_bias && a->etp > 1;
}

static bool wrong_sequence_parallel(const ms_launch *a)
{
    return a->moe && a->tp > 1 && !a->sequence_parallel;
}

/* --tp-comm-overlap */
static bool wrong_async_tp(const ms_launch *a)
{
    return a->async_tp && !a->sequence_parallel;
}

/* ---- context parallelism ---- */

static bool wrong_sequence(const ms_launch *a)
{
    return a->uses_cp && a->plan->sequence_length % (2 * a->cp) != 0;
}

static bool wrong_balance(const ms_launch *a)
{
    return a->uses_cp && a->cp_method != MS_CP_ULYSSES && !a->head_tail;
}

/* --cp-comm-type p2p has no sliding windows. */
static bool wrong_cp_method(const ms_launch *a)
{
    if (!a->uses_cp || a->cp_method != MS_CP_RING)
        return false;
    for (int i = 0; i < a->model->num_kinds; i++)
        if (a->model->kinds[i].window_tokens > 0)
            return true;
    return false;
}

/* ---- sharding, order, recomputation, precision ---- */

/* --use-megatron-fsdp, since 0.14; --use-custom-fsdp in 0.12 and 0.13. Both gather
 * parameters for forward and again for backward; to keep them between takes
 * --use-torch-fsdp2 --torch-fsdp2-no-reshard-after-forward, which has no replicas, no
 * pipeline, no expert parallelism and no tied embeddings. */
static bool wrong_zero(const ms_launch *a)
{
    bool keeps = a->zero == 3 && !a->plan->reshard_after_forward;
    bool torch_fsdp2 = a->pp == 1 && a->ep == 1 && !a->model->tied_embeddings &&
                       a->plan->size[MS_DP_REPLICATE] == 1;
    return a->zero >= 2 && (a->minor < 12 || (keeps && !torch_fsdp2));
}

/* --use-tp-pp-dp-mapping puts pp inside dp, and then wants as many data-parallel ranks of
 * experts as of dense layers. */
static bool wrong_order(const ms_launch *a)
{
    static const ms_plan_axis mapped[] = {MS_DP_REPLICATE, MS_DP_SHARD, MS_PP, MS_CP,
                                          MS_TP};
    if (ms_launch_has_default_order(a))
        return false;
    return !ms_launch_has_order(a, mapped) ||
           a->world / (a->etp * a->ep * a->pp) != a->dp;
}

static bool wrong_recompute(const ms_launch *a)
{
    return a->recompute == MS_RECOMPUTE_PER_OP || a->recompute == MS_RECOMPUTE_AUTO;
}

static bool wrong_precision(const ms_launch *a)
{
    return ms_launch_computes_in(a, MS_FP64) || ms_launch_computes_in(a, MS_TF32);
}

static bool wrong_optimizer(const ms_launch *a)
{
    ms_optimizer kind = a->plan->optimizer;
    return kind != MS_OPTIMIZER_ADAMW && kind != MS_OPTIMIZER_SGD &&
           !(kind == MS_OPTIMIZER_MUON && a->minor >= 15);
}

/* States below 32 bits: --use-precision-aware-optimizer with --exp-avg-dtype, which needs
 * --use-distributed-optimizer. */
static bool wrong_states(const ms_launch *a)
{
    ms_storage type = a->plan->optimizer_dtype;
    bool whole = a->plan->size[MS_DP_SHARD] * a->cp > 1 && a->zero == 0;
    return type == MS_STORE_INT8 || ((type == MS_STORE_BF16 || type == MS_STORE_FP8) &&
                                     (whole || a->plan->optimizer != MS_OPTIMIZER_ADAMW));
}

/* --distribute-saved-activations */
static bool wrong_partition(const ms_launch *a)
{
    return a->plan->partition_activations &&
           (a->tp == 1 || a->recompute != MS_RECOMPUTE_FULL ||
            a->plan->sequence_parallel);
}

static bool wrong_recipe(const ms_launch *a)
{
    return ms_launch_computes_in(a, MS_FP8) && a->plan->recipe == MS_RECIPE_ROWWISE;
}

const ms_framework_rule ms_megatron_rules[] = {
    {"M1 ranks: tp pp cp, and etp ep pp, divide the ranks", wrong_ranks},
    {"M2 batch: the micro-batch size times dp divides the global batch", wrong_batch},
    {"M3 heads: tp divides the heads", wrong_heads},
    {"M3 kv_heads: query groups are a multiple of tp, since 0.16 also a divisor",
     wrong_kv_heads},
    {"M4 layers: layers divide over stages, counting embedding and loss or apart from the "
     "first and last rank; since 0.13 by a layout",
     wrong_layers},
    {"M0 schedule: 1F1B, interleaved, and since 0.14 combined 1F1B", wrong_schedule},
    {"M7 virtual_stages: several chunks need several pipeline ranks",
     wrong_virtual_stages},
    {"M8 interleaving: pp <= group <= micro-batches, whose rest is 0 or at least pp",
     wrong_group},
    {"M19 schedule: overlapped expert parallelism needs ep > 1, virtual stages with pp > "
     "1, 16 bits, and no full recomputation",
     wrong_combination},
    {"M9 experts: ep divides the experts", wrong_experts},
    {"M10 experts: experts with biases need etp 1", wrong_expert_bias},
    {"M10 sequence_parallel: experts with tp > 1 need sequence parallelism",
     wrong_sequence_parallel},
    {"M11 async_tp: overlapped tensor parallelism needs sequence parallelism",
     wrong_async_tp},
    {"M12 sequence: 2 cp divides the sequence", wrong_sequence},
    {"M0 cp_balance: context parallelism cuts sequences head to tail", wrong_balance},
    {"M12 cp_method: sliding windows need a2a or all_gather", wrong_cp_method},
    {"M16 M17 zero: gradients and parameters are sharded by FSDP, since 0.12",
     wrong_zero},
    {"M23 order: pp,dp,cp,tp; or dp,pp,cp,tp if experts have as many data-parallel ranks",
     wrong_order},
    {"M20 recompute: none, selective or full", wrong_recompute},
    {"M21 precision: fp32, bf16, fp16, fp8 or fp4", wrong_precision},
    {"M21 recipe: delayed, tensorwise, blockwise or mxfp8", wrong_recipe},
    {"M21 states: fp32, or with the distributed optimizer of Adam 16 and 8 bits",
     wrong_states},
    {"M0 optimizer: adam, sgd, since 0.15 muon", wrong_optimizer},
    {"M20 partition_activations: with tp > 1, full recomputation, no sequence parallelism",
     wrong_partition},
    {0},
};
