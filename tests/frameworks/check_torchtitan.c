/* pytorch/torchtitan v0.2.2 (73a0e697, 2026-02-20) and main (b5bcd76c, 2026-08-21):
 * config, trainer.py, distributed/ and models/common/decoder.py; schedules from
 * torch/distributed/pipelining/schedules.py (pytorch 00722e64). Ids count these checks;
 * T14 is a choice for which there is no key. */
#include "tests/frameworks/frameworks.h"

static bool is_main(const ms_launch *a)
{
    return a->minor == MS_MINOR_MAIN;
}

static bool has_schedule(const ms_launch *a, ms_schedule_kind kind)
{
    return a->pp == 1 ? kind == MS_1F1B : a->plan->schedule == kind;
}

/* ---- ranks, heads, sequence, experts ---- */

static bool wrong_ranks(const ms_launch *a)
{
    return a->dp * a->cp * a->tp * a->pp != a->world;
}

static bool wrong_heads(const ms_launch *a)
{
    return a->model->num_heads % a->tp != 0;
}

/* main checks it; v0.2 fails where it views the heads of a rank. */
static bool wrong_kv_heads(const ms_launch *a)
{
    return a->model->attention != MS_ATTENTION_MLA && a->model->num_kv_heads % a->tp != 0;
}

/* v0.2: tp * 2 cp divides a sequence, even with cp 1. main: the tokens of a micro-batch
 * divide by tp with sequence parallelism, and by 2 cp with cp > 1. */
static bool wrong_sequence(const ms_launch *a)
{
    long length = a->plan->sequence_length;
    if (!is_main(a))
        return length % (a->tp * 2 * a->cp) != 0;
    long pieces = (a->sequence_parallel ? a->tp : 1) * (a->uses_cp ? 2 * a->cp : 1);
    return a->plan->microbatch * length % pieces != 0;
}

static bool wrong_experts(const ms_launch *a)
{
    if (!a->moe)
        return a->ep > 1;
    return a->model->moe.num_experts % a->ep != 0 ||
           a->sharers * a->tp % (a->ep * (a->ep > 1 ? a->etp : 1)) != 0;
}

/* v0.2: expert_tensor_parallel_degree; main has no key: 1 with ep > 1, else tp. */
static bool wrong_expert_tensor(const ms_launch *a)
{
    if (!a->moe)
        return false;
    if (is_main(a))
        return a->etp != (a->ep > 1 ? 1 : a->tp);
    return a->etp != 1 && a->etp != a->tp;
}

/* ---- pipelines ---- */

static bool wrong_batch(const ms_launch *a)
{
    return a->plan->global_batch % (a->plan->microbatch * a->dp) != 0;
}

/* A file is pipeline_parallel_schedule_csv. */
static bool wrong_schedule(const ms_launch *a)
{
    static const ms_schedule_kind known[] = {MS_1F1B,           MS_GPIPE, MS_INTERLEAVED,
                                             MS_LOOPED_BFS,     MS_ZB_V,  MS_DUALPIPEV,
                                             MS_INTERLEAVED_ZB, MS_CUSTOM};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (has_schedule(a, known[i]))
            return false;
    return true;
}

static bool wrong_virtual_stages(const ms_launch *a)
{
    long v = a->plan->virtual_stages;
    if (a->pp == 1)
        return v > 1;
    if (has_schedule(a, MS_1F1B) || has_schedule(a, MS_GPIPE))
        return v != 1;
    if (has_schedule(a, MS_ZB_V) || has_schedule(a, MS_DUALPIPEV))
        return v != 2;
    return v < 2 && (has_schedule(a, MS_INTERLEAVED) || has_schedule(a, MS_LOOPED_BFS) ||
                     has_schedule(a, MS_INTERLEAVED_ZB));
}

static bool wrong_microbatches(const ms_launch *a)
{
    if (a->pp == 1)
        return false;
    return (has_schedule(a, MS_1F1B) && a->microbatches < a->pp) ||
           (has_schedule(a, MS_DUALPIPEV) && a->microbatches < 2 * a->pp);
}

/* Groups have micro-batches div max(1, micro-batches div pp) micro-batches. */
static bool wrong_group(const ms_launch *a)
{
    if (a->plan->microbatch_group != 0 && a->plan->microbatch_group != a->default_group)
        return true;
    if (!has_schedule(a, MS_INTERLEAVED) && !has_schedule(a, MS_INTERLEAVED_ZB))
        return false;
    long rounds = a->microbatches / a->pp;
    return a->microbatches % (rounds > 1 ? rounds : 1) != 0;
}

static bool wrong_tied_embeddings(const ms_launch *a)
{
    return is_main(a) && a->model->tied_embeddings && a->pp > 1;
}

/* Whether the schedule refuses modules that v0.2 has compiled block by block. */
static bool refuses_compiled(const ms_launch *a)
{
    return !is_main(a) && (has_schedule(a, MS_INTERLEAVED_ZB) ||
                           has_schedule(a, MS_ZB_V) || has_schedule(a, MS_DUALPIPEV));
}

/* Asynchronous tensor parallelism needs a compiled model. */
static bool wrong_async_tp(const ms_launch *a)
{
    return a->async_tp && refuses_compiled(a);
}

/* ---- sharding, order, context parallelism ---- */

static bool wrong_zero(const ms_launch *a)
{
    return a->sharers > 1 && a->zero != 3;
}

/* v0.2 wraps replicas that share nothing in DDP. */
static bool wrong_replicas(const ms_launch *a)
{
    return !is_main(a) && a->sharers == 1 && a->dp > 1 &&
           (a->pp > 1 || a->tp > 1 || a->ep > 1);
}

static bool wrong_order(const ms_launch *a)
{
    return !ms_launch_has_default_order(a);
}

static bool wrong_sequence_parallel(const ms_launch *a)
{
    return !is_main(a) && a->tp > 1 && !a->sequence_parallel;
}

/* context_parallel_rotate_method of v0.2: allgather, or alltoall, which is a ring */
static bool wrong_cp_method(const ms_launch *a)
{
    return a->uses_cp && a->cp_method != MS_CP_ALL_GATHER &&
           (is_main(a) || a->cp_method != MS_CP_RING);
}

/* v0.2: gpt_oss, whose layers have sliding windows, trains without context parallelism */
static bool wrong_windows(const ms_launch *a)
{
    bool has_windows = false;
    for (int i = 0; i < a->model->num_kinds; i++)
        has_windows = has_windows || a->model->kinds[i].window_tokens > 0;
    return !is_main(a) && a->uses_cp && has_windows;
}

/* ---- recomputation, precision ---- */

static bool wrong_recompute(const ms_launch *a)
{
    return a->recompute == MS_RECOMPUTE_SELECTIVE || a->partial_recompute;
}

/* A memory budget needs a compiled model. */
static bool wrong_budget(const ms_launch *a)
{
    return a->recompute == MS_RECOMPUTE_AUTO && refuses_compiled(a);
}

/* v0.2 overlaps forward and backward of DualPipeV with experts only without it. */
static bool wrong_overlap(const ms_launch *a)
{
    return !is_main(a) && has_schedule(a, MS_DUALPIPEV) && a->ep > 1 &&
           a->recompute != MS_RECOMPUTE_NONE;
}

static bool wrong_precision(const ms_launch *a)
{
    return !ms_launch_computes_in(a, MS_BF16) && !ms_launch_computes_in(a, MS_FP32) &&
           !ms_launch_computes_in(a, MS_FP8) &&
           !(ms_launch_computes_in(a, MS_FP4) && is_main(a));
}

static bool wrong_optimizer(const ms_launch *a)
{
    return a->plan->optimizer != MS_OPTIMIZER_ADAMW;
}

/* torch.optim makes states like parameters; main has bf16 states beside these. */
static bool wrong_states(const ms_launch *a)
{
    ms_storage type = a->plan->optimizer_dtype;
    ms_storage params =
        a->plan->param_dtype == MS_STORE_BF16 ? MS_STORE_BF16 : MS_STORE_FP32;
    return type != MS_STORE_DEFAULT && type != params &&
           !(is_main(a) && (type == MS_STORE_BF16 || type == MS_STORE_FP32));
}

static bool wrong_recipe(const ms_launch *a)
{
    ms_recipe recipe = a->plan->recipe;
    return ms_launch_computes_in(a, MS_FP8) &&
           (recipe == MS_RECIPE_DELAYED || recipe == MS_RECIPE_BLOCKWISE ||
            (recipe == MS_RECIPE_TENSORWISE && is_main(a)));
}

static bool wrong_gathers(const ms_launch *a)
{
    return a->plan->comm_dtype == MS_STORE_FP8 &&
           (is_main(a) || a->plan->recipe != MS_RECIPE_TENSORWISE);
}

const ms_framework_rule ms_torchtitan_rules[] = {
    {"T1 ranks: the product of the degrees is the number of ranks", wrong_ranks},
    {"T2 experts: ep etp divides dp_shard cp tp, and ep the experts", wrong_experts},
    {"T2 experts: etp is 1 or tp; in main 1 with ep > 1, else tp", wrong_expert_tensor},
    {"T3 heads: tp divides the heads", wrong_heads},
    {"T3 kv_heads: tp divides the key-value heads", wrong_kv_heads},
    {"T4 sequence: 2 tp cp divides the sequence", wrong_sequence},
    {"T5 batch: the local batch times dp divides the global batch", wrong_batch},
    {"T14 schedule: 1F1B, GPipe, Interleaved1F1B, LoopedBFS, InterleavedZeroBubble, "
     "ZBVZeroBubble, DualPipeV or a file",
     wrong_schedule},
    {"T6 virtual_stages: 1 with 1F1B and GPipe, 2 in a V, else at least 2; none without "
     "pipeline ranks",
     wrong_virtual_stages},
    {"T7 microbatches: 1F1B needs pp, DualPipeV 2 pp of them", wrong_microbatches},
    {"T7 interleaving: micro-batches divide by max(1, micro-batches div pp)",
     wrong_group},
    {"T9 async_tp: compiled blocks are refused by zero-bubble schedules and DualPipeV",
     wrong_async_tp},
    {"T9 recompute: a memory budget needs compiled blocks, which zero-bubble schedules "
     "and DualPipeV refuse",
     wrong_budget},
    {"T9 recompute: DualPipeV with experts needs none", wrong_overlap},
    {"T10 tied_embeddings: an embedding that is also the head needs pp 1",
     wrong_tied_embeddings},
    {"T11 cp_method: all-gather; in v0.2 also a ring", wrong_cp_method},
    {"T11 architecture: sliding windows (gpt_oss) need cp 1 in v0.2", wrong_windows},
    {"T12 ddp: replicas without shards have no other axis", wrong_replicas},
    {"T14 zero: FSDP2 is ZeRO-3", wrong_zero},
    {"T14 order: pp,dp_replicate,dp_shard,cp,tp", wrong_order},
    {"T14 sequence_parallel: always on with tp > 1 in v0.2", wrong_sequence_parallel},
    {"T14 recompute: none, per-op, full in every layer, or a memory budget",
     wrong_recompute},
    {"T14 precision: bf16, fp32, fp8, in main also fp4", wrong_precision},
    {"T0 optimizer: Adam or AdamW", wrong_optimizer},
    {"T0 states: the type of parameters, in main also bf16", wrong_states},
    {"T13 recipe: rowwise, mxfp8, in v0.2 also tensorwise", wrong_recipe},
    {"T14 gathers: in fp8 with tensorwise scales in v0.2", wrong_gathers},
    {0},
};
