/* AI-Hypercomputer/maxtext at commit e591f30c (2026-08-22): configs/types.py, base.yml and
 * layers/pipeline.py, on GPUs. X1 (products of ici and dcn sizes) is how a file is written
 * (costmodel/port); X6 is about a switch that no plan has; X0 is a choice for which there is
 * no key. */
#include "tests/frameworks/frameworks.h"

static bool wrong_layers(const ms_launch *a)
{
    for (long i = 1; a->pp > 1 && a->stage_layers != NULL && i < a->stages; i++)
        if (a->stage_layers[i] != a->stage_layers[0])
            return true;
    return a->pp > 1 && a->model->num_layers % a->stages != 0;
}

static bool wrong_microbatches(const ms_launch *a)
{
    return a->microbatches % a->pp != 0;
}

/* Micro-batches pass a stage one after another, and repeats of the stages follow. */
static bool wrong_schedule(const ms_launch *a)
{
    return a->pp > 1 && a->plan->schedule != MS_GPIPE &&
           a->plan->schedule != MS_LOOPED_BFS;
}

static bool wrong_recipe(const ms_launch *a)
{
    return a->pp == 1 && a->microbatches > 1 && ms_launch_computes_in(a, MS_FP8) &&
           a->plan->recipe == MS_RECIPE_DELAYED;
}

static bool wrong_cp_method(const ms_launch *a)
{
    return a->uses_cp && a->cp_method == MS_CP_ULYSSES;
}

static bool wrong_zero_2(const ms_launch *a)
{
    return a->zero == 2;
}

/* context and expert shard parameters as fsdp does. */
static bool wrong_zero_axes(const ms_launch *a)
{
    return a->sharers > 1 && (a->uses_cp || a->ep > 1) && a->zero != 3;
}

static bool wrong_zero_replicas(const ms_launch *a)
{
    return a->zero == 1 && a->plan->size[MS_DP_REPLICATE] > 1;
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
    return a->partial_recompute;
}

static bool wrong_precision(const ms_launch *a)
{
    return !ms_launch_computes_in(a, MS_FP32) && !ms_launch_computes_in(a, MS_BF16) &&
           !ms_launch_computes_in(a, MS_FP8) && !ms_launch_computes_in(a, MS_FP4);
}

static bool wrong_optimizer(const ms_launch *a)
{
    return a->plan->optimizer != MS_OPTIMIZER_ADAMW &&
           a->plan->optimizer != MS_OPTIMIZER_SGD &&
           a->plan->optimizer != MS_OPTIMIZER_MUON;
}

const ms_framework_rule ms_maxtext_rules[] = {
    {"X2 layers: stages x repeats x layers per stage are the layers", wrong_layers},
    {"X3 microbatches: stages divide the micro-batches", wrong_microbatches},
    {"X0 schedule: gpipe, and with repeats looped-bfs", wrong_schedule},
    {"X4 recipe: delayed scaling does not accumulate gradients", wrong_recipe},
    {"X5 cp_method: Ulysses is for TPUs", wrong_cp_method},
    {"X0 zero: fsdp shards parameters, gradients and states; ZeRO-2 does not exist",
     wrong_zero_2},
    {"X0 zero: context and expert shard parameters", wrong_zero_axes},
    {"X0 zero: states are sharded over all of data", wrong_zero_replicas},
    {"X0 async_tp: the compiler overlaps", wrong_async_tp},
    {"X0 order: stage, data, fsdp, context, tensor", wrong_order},
    {"X0 recompute: remat_policy is that of all layers", wrong_recompute},
    {"X0 precision: fp32, bf16, fp8 or fp4", wrong_precision},
    {"X0 optimizer: adamw, adam_pax, sgd or muon", wrong_optimizer},
    {0},
};
