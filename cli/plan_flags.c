/* The table of plan flags: what the user may write, and what help says about it. */
#include "cli/plan_flags.h"

#include "cli/plan_options.h"

#define MAX_TOKENS 1073741824
#define MAX_COUNT  16777216
#define MAX_STAGES 4096

static bool find_schedule(const char *text, int *index)
{
    ms_schedule_kind kind = MS_CUSTOM;
    if (!ms_schedule_is_file(text) && !ms_schedule_parse(text, &kind))
        return false;
    *index = (int)kind;
    return true;
}

static bool find_cp_method(const char *text, int *index)
{
    ms_cp_method method;
    if (!ms_cp_method_parse(text, &method))
        return false;
    *index = (int)method;
    return true;
}

#define TEXT(member, ...)   MS_OPT_TEXT(ms_plan_options, member, __VA_ARGS__)
#define CHOICE(member, ...) MS_OPT_CHOICE(ms_plan_options, member, __VA_ARGS__)
#define SWITCH(member, ...) MS_OPT_SWITCH(ms_plan_options, member, __VA_ARGS__)
#define WHOLE(member, ...)  MS_OPT_INTEGER(ms_plan_options, member, __VA_ARGS__)
#define RANKS(member, option, text)                                                      \
    MS_OPT_INTEGER(ms_plan_options, member, option, "N", 1, MS_MAX_GPUS, text)

const ms_option ms_plan_option_table[] = {
    TEXT(plan_file, "--plan", "FILE",
         "plan to start from (meshsim.plan/1); flags override it"),
    TEXT(model, "--model", "NAME|FILE",
         "model by name (70b, mixtral-8x7b), or its config.json"),
    TEXT(cluster, "--cluster", "NAME|FILE",
         "cluster by name or file (default hgx-h100; of run: cpu)"),
    TEXT(profile, "--profile", "NAME|FILE",
         "cost profile in place of the cluster's own (\"meshsim calibrate\" writes one)"),
    RANKS(gpus, "--gpus", "number of GPUs (default: the product of the axes)"),
    RANKS(size[MS_PP], "--pp", "pipeline stages (default 1)"),
    RANKS(size[MS_DP_REPLICATE], "--dp-replicate",
          "replicas of the sharded model (default 1)"),
    RANKS(size[MS_DP_SHARD], "--dp-shard",
          "data-parallel ranks that --zero shards over (default: the rest of --gpus)"),
    RANKS(size[MS_CP], "--cp", "context parallelism (default 1)"),
    RANKS(size[MS_TP], "--tp", "tensor parallelism (default 1)"),
    RANKS(ep, "--ep",
          "expert parallelism, over the ranks of dp_shard, cp and tp (default 1)"),
    RANKS(etp, "--etp", "tensor parallelism inside experts: 1 or tp (default 1)"),
    TEXT(order, "--order", "AXES",
         "axes outer to inner (default pp,dp_replicate,dp_shard,cp,tp)"),
    WHOLE(sequence_length, "--seq", "TOKENS", 1, MAX_TOKENS,
          "sequence length (default 8k)"),
    WHOLE(global_batch, "--global-batch", "SEQUENCES", 1, MAX_COUNT,
          "sequences per step (default max(4 Mi, 1 Ki x GPUs) tokens)"),
    WHOLE(microbatch, "--microbatch", "SEQUENCES", 1, MAX_COUNT,
          "sequences per micro-batch and data-parallel rank (default 1)"),
    {.kind = MS_OPTION_CHOICE,
     .name = "--schedule",
     .offset = offsetof(ms_plan_options, schedule),
     .choices = ms_schedule_names,
     .find = find_schedule,
     .help = "pipeline schedule (default 1f1b; interleaved with --virtual-stages), or a "
             "file of actions: FILE.csv"},
    WHOLE(virtual_stages, "--virtual-stages", "N", 1, MAX_STAGES,
          "chunks of layers per pipeline rank (default 1; 2 when interleaved)"),
    WHOLE(microbatch_group, "--group", "N", 0, MAX_COUNT,
          "micro-batches per turn of a chunk (default 0: the schedule's own)"),
    MS_OPT_MEMORY_LIMIT(ms_plan_options, memory_limit),
    TEXT(layers_per_stage, "--layers-per-stage", "N,N,...",
         "layers of each virtual stage, in order (default: balanced)"),
    WHOLE(zero, "--zero", "0..3", 0, 3,
          "sharded over dp_shard x cp: 1 optimizer, 2 gradients too, 3 parameters too"),
    SWITCH(reshard_after_forward, "--reshard-after-forward",
           "gather again for backward (default: on with zero 3 and no pipeline)"),
    SWITCH(sequence_parallel, "--sequence-parallel",
           "shard norms and residuals over tp (default: on when tp > 1)"),
    SWITCH(async_tp, "--async-tp",
           "overlap tensor-parallel traffic with its matrix products (default off)"),
    SWITCH(loss_parallel, "--loss-parallel",
           "keep logits sharded over tp for the loss (default on)"),
    {.kind = MS_OPTION_CHOICE,
     .name = "--cp-method",
     .offset = offsetof(ms_plan_options, cp_method),
     .choices = ms_cp_method_names,
     .find = find_cp_method,
     .help = "how attention gets the keys of other cp ranks (default: the stack's)"},
    CHOICE(cp_balance, "--cp-balance", ms_cp_balance_names,
           "how a causal sequence is cut over cp (default head-tail)"),
    CHOICE(recompute, "--recompute", ms_recompute_names,
           "what backward computes again (default: the stack's)"),
    WHOLE(recompute_layers, "--recompute-layers", "N", 0, MAX_COUNT,
          "layers of each chunk with --recompute full (default 0: all)"),
    {.kind = MS_OPTION_QUANTITY,
     .name = "--recompute-budget",
     .offset = offsetof(ms_plan_options, recompute_budget),
     .value = "SHARE",
     .unit = MS_UNIT_COUNT,
     .high = 1,
     .help = "bytes to keep with --recompute auto, from 0 (none) to 1 (all); "
             "default: the most that fits"},
    CHOICE(precision, "--precision", ms_dtype_names, "compute type (default bf16)"),
    TEXT(stack, "--stack", "NAME|FILE",
         "training framework whose habits apply (default generic; of run: meshsim)"),
    MS_OPT_MISTAKE("--dp", "--dp-shard N is data parallelism (plain with --zero 0); "
                           "--dp-replicate N adds replicas"),
    MS_OPT_MISTAKE("--fsdp", "did you mean --dp-shard?"),
    MS_OPT_MISTAKE("--batch",
                   "--global-batch counts sequences per step, --microbatch per pass"),
    {0},
};
