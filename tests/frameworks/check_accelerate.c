/* Checks of Hugging Face's Accelerate 16cb6eb8 (2026-07-24) with FSDP version 2:
 * parallelism_config.py, utils/dataclasses.py, commands/launch.py. Ids are those of rules
 * A1 to A6; 0: what has no key at all. */
#include "tests/frameworks/frameworks.h"

#include <stddef.h>

static bool wrong_pipeline(const ms_launch *a)
{
    return a->pp > 1;
}

static bool wrong_experts(const ms_launch *a)
{
    return a->ep > 1 || (a->moe && a->etp > 1);
}

/* Replicas without shards are DDP, which no other axis goes with. */
static bool wrong_replicas(const ms_launch *a)
{
    const long *size = a->plan->size;
    return (a->tp > 1 || a->uses_cp) && size[MS_DP_REPLICATE] > 1 &&
           size[MS_DP_SHARD] == 1;
}

static bool wrong_zero(const ms_launch *a)
{
    return a->sharers > 1 && a->zero != 3;
}

static bool wrong_cp_method(const ms_launch *a)
{
    return a->uses_cp && a->cp_method == MS_CP_ULYSSES;
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
           !ms_launch_computes_in(a, MS_FP32) && !ms_launch_computes_in(a, MS_FP8);
}

const ms_framework_rule ms_accelerate_rules[] = {
    {"A0 pp: none", wrong_pipeline},
    {"A0 experts: whole on every rank", wrong_experts},
    {"A3 replicas: with tp or cp above 1 only beside shards", wrong_replicas},
    {"A5 zero: FSDP reshards or keeps gathered what is sharded", wrong_zero},
    {"A2 cp_method: all-gather or ring", wrong_cp_method},
    {"A0 sequence_parallel: none over tp", wrong_sequence_parallel},
    {"A0 async_tp: none", wrong_async_tp},
    {"A1 order: dp_replicate,dp_shard,cp,tp", wrong_order},
    {"A0 recompute: every wrapped block, or none", wrong_recompute},
    {"A0 precision: fp32, bf16, fp16 or fp8", wrong_precision},
    {0},
};
