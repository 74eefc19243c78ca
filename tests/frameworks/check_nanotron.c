/* huggingface/nanotron at commit 2411b022 (2026-04-07): config, parallel/context.py and
 * trainer.py. Ids count these checks; N0 is a choice for which there is no key. */
#include "tests/frameworks/frameworks.h"

static bool wrong_ranks(const ms_launch *a)
{
    return a->tp * a->pp * a->cp * a->dp != a->world;
}

static bool wrong_heads(const ms_launch *a)
{
    return a->model->num_heads % a->tp != 0;
}

static bool wrong_kv_heads(const ms_launch *a)
{
    return a->model->attention != MS_ATTENTION_MLA && a->model->num_kv_heads % a->tp != 0;
}

static bool wrong_schedule(const ms_launch *a)
{
    return a->pp > 1 && a->plan->schedule != MS_1F1B && a->plan->schedule != MS_GPIPE;
}

static bool wrong_microbatches(const ms_launch *a)
{
    return a->plan->schedule == MS_1F1B && a->microbatches < a->pp - 1;
}

/* A stage ends with the block whose cost brings the sum over its share of all costs:
 * layers by their matrices, the head by its own. */
static bool wrong_layers(const ms_launch *a)
{
    const ms_model *m = a->model;
    if (a->stage_layers == NULL || a->stages != a->pp)
        return false;
    double hidden = (double)m->hidden, width = (double)(m->num_heads * m->head_dim);
    double layer = 4 * width * hidden + 3 * (double)m->ffn_hidden * hidden;
    double all = layer * (double)m->num_layers + (double)m->vocab * hidden;
    long next = 0;
    for (long stage = 0; stage < a->pp; stage++) {
        long first = next;
        double share = all * (double)(stage + 1) / (double)a->pp;
        while (next < m->num_layers && layer * (double)next <= share)
            next++;
        if (a->stage_layers[stage] != next - first)
            return true;
    }
    return false;
}

static bool wrong_async_tp(const ms_launch *a)
{
    return a->async_tp && !a->sequence_parallel;
}

static bool wrong_experts(const ms_launch *a)
{
    return a->ep > 1;
}

static bool wrong_context(const ms_launch *a)
{
    return a->uses_cp;
}

/* Stages above 1 are silently 1, over all data-parallel ranks. */
static bool wrong_zero(const ms_launch *a)
{
    return a->zero > 1 || (a->zero == 1 && a->plan->size[MS_DP_REPLICATE] > 1);
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

static bool wrong_optimizer(const ms_launch *a)
{
    return a->plan->optimizer != MS_OPTIMIZER_ADAMW &&
           a->plan->optimizer != MS_OPTIMIZER_SGD;
}

const ms_framework_rule ms_nanotron_rules[] = {
    {"N1 ranks: tp pp cp dp is the number of ranks", wrong_ranks},
    {"N2 heads: tp divides the heads", wrong_heads},
    {"N2 kv_heads: tp divides the key-value heads", wrong_kv_heads},
    {"N0 schedule: all forward, all backward (gpipe), or 1f1b, one chunk a rank",
     wrong_schedule},
    {"N3 microbatches: 1f1b needs pp - 1 of them", wrong_microbatches},
    {"N0 layers: stages are cut by cost", wrong_layers},
    {"N4 async_tp: asynchronous communication needs sequence parallelism (REDUCE_SCATTER)",
     wrong_async_tp},
    {"N6 experts: the grid of ranks with ep > 1 never starts", wrong_experts},
    {"N7 context_parallel: training does not begin with cp > 1", wrong_context},
    {"N0 zero: 0, or 1 over all data-parallel ranks", wrong_zero},
    {"N0 order: pp,dp,cp,tp", wrong_order},
    {"N0 recompute: none, or full in every layer", wrong_recompute},
    {"N0 precision: bf16, fp16 or fp32", wrong_precision},
    {"N0 optimizer: adamW or sgd", wrong_optimizer},
    {0},
};
