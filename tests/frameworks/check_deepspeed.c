/* deepspeedai/DeepSpeed at commit edaa7221 (2026-08-22, 0.19.6): runtime/config.py,
 * runtime/engine.py, runtime/pipe and the checks of AutoTP, AutoEP and Ulysses. Ids count
 * these checks; D0 is a choice for which there is no key. */
#include "tests/frameworks/frameworks.h"

static bool wrong_batch(const ms_launch *a)
{
    return a->plan->global_batch % (a->plan->microbatch * a->dp) != 0;
}

static bool wrong_schedule(const ms_launch *a)
{
    return a->pp > 1 && a->plan->schedule != MS_1F1B;
}

/* Whether two stages of [first, end) differ by more than one layer. */
static bool differ(const long *layers, long first, long end)
{
    long least = layers[first], most = layers[first];
    for (long i = first; i < end; i++) {
        least = layers[i] < least ? layers[i] : least;
        most = layers[i] > most ? layers[i] : most;
    }
    return most - least > 1;
}

/* Stages of a pipeline: partition_method `uniform` counts layers, `parameters` also what
 * embedding and head weigh, so that the ends may be shorter. */
static bool wrong_layers(const ms_launch *a)
{
    const long *layers = a->stage_layers;
    if (a->pp == 1 || layers == NULL || !differ(layers, 0, a->stages))
        return false;
    return a->stages < 3 || differ(layers, 1, a->stages - 1) ||
           layers[0] > layers[1] + 1 || layers[a->stages - 1] > layers[1] + 1;
}

static bool wrong_pipeline_zero(const ms_launch *a)
{
    return a->pp > 1 && a->zero > 1;
}

/* Only MiCS (mics_shard_size), which is ZeRO-3, shards inside groups and replicates
 * across. */
static bool wrong_replicas(const ms_launch *a)
{
    return a->plan->size[MS_DP_REPLICATE] > 1 && (a->zero == 1 || a->zero == 2);
}

static bool wrong_heads(const ms_launch *a)
{
    long heads = a->model->num_heads, kv_heads = a->model->num_kv_heads;
    return a->uses_cp &&
           (heads % a->cp != 0 || (kv_heads % a->cp != 0 && a->cp % kv_heads != 0));
}

static bool wrong_sequence(const ms_launch *a)
{
    return a->uses_cp && a->plan->sequence_length % a->cp != 0;
}

static bool wrong_cp_method(const ms_launch *a)
{
    return a->uses_cp && a->cp_method != MS_CP_ULYSSES;
}

static bool wrong_experts(const ms_launch *a)
{
    return a->moe
               ? a->model->moe.num_experts % a->ep != 0 || a->world / a->pp % a->ep != 0
               : a->ep > 1;
}

static bool wrong_expert_tensor(const ms_launch *a)
{
    return a->moe && a->etp > 1;
}

/* ZeRO-3 has no native MoE layers; its AutoEP has no AutoTP, Ulysses or MiCS. */
static bool wrong_sharded_experts(const ms_launch *a)
{
    return a->ep > 1 && a->zero == 3 &&
           (a->tp > 1 || a->uses_cp || a->plan->size[MS_DP_REPLICATE] > 1);
}

static bool wrong_sequence_parallel(const ms_launch *a)
{
    return a->sequence_parallel;
}

static bool wrong_async_tp(const ms_launch *a)
{
    return a->async_tp;
}

static bool wrong_order(const ms_launch *a)
{
    return !ms_launch_has_default_order(a);
}

static bool wrong_recompute(const ms_launch *a)
{
    return (a->recompute != MS_RECOMPUTE_NONE && a->recompute != MS_RECOMPUTE_FULL) ||
           a->partial_recompute;
}

static bool wrong_precision(const ms_launch *a)
{
    return !ms_launch_computes_in(a, MS_BF16) && !ms_launch_computes_in(a, MS_FP16) &&
           !ms_launch_computes_in(a, MS_FP32);
}

const ms_framework_rule ms_deepspeed_rules[] = {
    {"D1 batch: the micro-batch size times dp divides train_batch_size", wrong_batch},
    {"D2 zero: ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism",
     wrong_pipeline_zero},
    {"D2 layers: stages are cut evenly, or by parameters", wrong_layers},
    {"D0 zero: ZeRO-1 and ZeRO-2 shard over all data-parallel ranks", wrong_replicas},
    {"D3 heads: sp divides the heads, and divides or replicates key-value heads",
     wrong_heads},
    {"D3 sequence: sp divides the sequence", wrong_sequence},
    {"D8 cp_method: Ulysses only", wrong_cp_method},
    {"D8 schedule: 1F1B, one chunk a rank", wrong_schedule},
    {"D5 experts: ep divides the experts and the ranks of a stage", wrong_experts},
    {"D5 experts: etp is 1", wrong_expert_tensor},
    {"D5 experts: with ZeRO-3 no tensor parallelism, Ulysses or MiCS",
     wrong_sharded_experts},
    {"D0 sequence_parallel: none over tp", wrong_sequence_parallel},
    {"D0 async_tp: none", wrong_async_tp},
    {"D0 order: pp,dp_replicate,dp_shard,cp,tp", wrong_order},
    {"D0 recompute: none, or full in every layer", wrong_recompute},
    {"D7 precision: bf16, fp16 or fp32", wrong_precision},
    {0},
};
