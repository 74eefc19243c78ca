/* The table of a plan's choices, a row per choice, and functions that use its rows. */
#include "costmodel/plan/plan_field.h"

#include "costmodel/schedule/schedule.h"

#include <string.h>

#define MAX_GPUS   16777216 /* 2^24 */
#define MAX_TOKENS 4294967296.0
#define MAX_BATCH  4294967296.0
#define MAX_INT    2147483647.0

/* ---- words ---- */

static const char *const storage_words[] = {"fp32", "bf16", NULL};
static const char *const switch_words[] = {"off", "on", NULL};

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

/* ---- defaults of the command line ---- */

static long usual_batch(const ms_plan *plan, const ms_stack *stack)
{
    (void)stack;
    return ms_plan_default_batch(plan->gpus, plan->sequence_length);
}

/* Whether a schedule can have so many virtual stages; 1 stands for any number, too. */
static bool has_chunks(ms_schedule_kind kind, long virtual_stages)
{
    ms_schedule_traits traits = ms_schedule_traits_of(kind);
    return virtual_stages == 1 ||
           (virtual_stages >= traits.least_virtual &&
            (traits.most_virtual == 0 || virtual_stages <= traits.most_virtual));
}

/* The stack's default, interleaved with virtual stages, or the first schedule that the
 * stack has. Without a pipeline, where none has an effect, 1F1B. */
static long usual_schedule(const ms_plan *plan, const ms_stack *stack)
{
    bool is_free = stack == NULL || plan->size[MS_PP] == 1;
    ms_schedule_kind usual = plan->virtual_stages > 1 ? MS_INTERLEAVED
                             : is_free                ? MS_1F1B
                                                      : stack->default_schedule;
    if (is_free || stack->can_schedule[usual])
        return usual;
    for (ms_schedule_kind kind = 0; kind < MS_CUSTOM; kind++)
        if (stack->can_schedule[kind] && has_chunks(kind, plan->virtual_stages))
            return kind;
    return usual;
}

/* Default number of virtual stages; with a schedule file the number from that file. */
static long usual_virtual_stages(const ms_plan *plan, const ms_stack *stack)
{
    (void)stack;
    return plan->schedule == MS_CUSTOM
               ? plan->virtual_stages
               : ms_schedule_default_virtual(plan->schedule, plan->size[MS_PP]);
}

static long usual_zero(const ms_plan *plan, const ms_stack *stack)
{
    if (plan->size[MS_DP_SHARD] * plan->size[MS_CP] == 1)
        return 0;
    long zero = plan->size[MS_PP] > 1 && stack->pipeline_zero >= 0 ? stack->pipeline_zero
                                                                   : stack->default_zero;
    return zero >= 0 ? zero : 3;
}

static long usual_reshard(const ms_plan *plan, const ms_stack *stack)
{
    bool in_pipelines = stack != NULL && stack->reshards_in_pipelines;
    return plan->zero == 3 && (plan->size[MS_PP] == 1 || in_pipelines);
}

static long usual_sequence_parallel(const ms_plan *plan, const ms_stack *stack)
{
    return plan->size[MS_TP] > 1 && !stack->lacks_sequence_parallel;
}

static long usual_cp_method(const ms_plan *plan, const ms_stack *stack)
{
    return plan->size[MS_CP] > 1 ? (long)stack->cp_method : MS_CP_ALL_GATHER;
}

static long usual_recompute(const ms_plan *plan, const ms_stack *stack)
{
    (void)plan;
    for (long mode = 0; ms_recompute_names[mode] != NULL; mode++)
        if (strcmp(ms_recompute_names[mode], stack->recompute) == 0)
            return mode;
    return MS_RECOMPUTE_NONE;
}

/* ---- effects of choices ---- */

static bool has_pipeline(const ms_plan *plan)
{
    return plan->size[MS_PP] > 1;
}

static bool has_tensor(const ms_plan *plan)
{
    return plan->size[MS_TP] > 1;
}

static bool has_context(const ms_plan *plan)
{
    return plan->size[MS_CP] > 1;
}

static bool shards_parameters(const ms_plan *plan)
{
    return plan->zero == 3;
}

static bool has_budget(const ms_plan *plan)
{
    return plan->recompute == MS_RECOMPUTE_AUTO;
}

static bool can_cp(const ms_stack *stack, long method)
{
    return stack->can_cp[method];
}

/* ---- the table ---- */

#define WHOLE(member_of, label)                                                          \
    .kind = MS_CHOICE_WHOLE, .offset = offsetof(ms_plan, member_of), .name = (label)
#define NUMBER(member_of, label)                                                         \
    .kind = MS_CHOICE_NUMBER, .offset = offsetof(ms_plan, member_of), .name = (label)
#define SWITCH(member_of, label)                                                         \
    .kind = MS_CHOICE_SWITCH, .offset = offsetof(ms_plan, member_of), .name = (label)
#define WORD(member_of, label, list)                                                     \
    .kind = MS_CHOICE_WORD, .offset = offsetof(ms_plan, member_of), .name = (label),     \
    .words = (list)
#define TEXT(member_of)                                                                  \
    .kind = MS_CHOICE_TEXT, .offset = offsetof(ms_plan, member_of), .name = #member_of
#define JSON(object, word) .section = (object), .key = (word)
#define FLAG(option, stands_for, text)                                                   \
    .flag = (option), .value = (stands_for), .help = (text)
#define AXIS(axis, label, option, text)                                                  \
    {                                                                                    \
        WHOLE(size[axis], label), .low = 1, .high = MAX_GPUS, .plain = 1,                \
                                  FLAG(option, "N", text), .search = MS_SEARCH_TRIES,    \
                                  .in_table = true                                       \
    }
#define EXPERTS(member, text)                                                            \
    {                                                                                    \
        WHOLE(member, #member), JSON("experts", #member),                                \
            .low = 1, .high = MAX_GPUS, .plain = 1, FLAG("--" #member, "N", text),       \
            .search = MS_SEARCH_TRIES, .in_table = true, .hidden = true                  \
    }
#define STORED(member_of, word)                                                          \
    {                                                                                    \
        .kind = MS_CHOICE_STORED, .offset = offsetof(ms_plan, member_of),                \
        .name = #member_of, .words = storage_words, JSON("precision", word),             \
        .json_plain = MS_PLAIN_NULL                                                      \
    }

const ms_plan_field ms_plan_fields[MS_NUM_CHOICES] = {
    [MS_CHOOSE_MODEL] = {TEXT(model), JSON(NULL, "model"), .required = true,
                         FLAG("--model", "NAME|FILE",
                              "model by name (70b, mixtral-8x7b), or its config.json")},
    [MS_CHOOSE_CLUSTER] =
        {TEXT(cluster), JSON(NULL, "cluster"),
         FLAG("--cluster", "NAME|FILE",
              "cluster by name or file (default hgx-h100; of run: cpu)")},
    [MS_CHOOSE_PROFILE] = {TEXT(profile),
                           FLAG("--profile", "NAME|FILE",
                                "cost profile in place of the cluster's own (\"meshsim "
                                "calibrate\" writes one)")},
    [MS_CHOOSE_GPUS] = {WHOLE(gpus, "gpus"), JSON(NULL, "gpus"), .low = 1,
                        .high = MAX_GPUS, .flag_rule = MS_FLAG_ALWAYS,
                        FLAG("--gpus", "N",
                             "number of GPUs (default: the product of the axes)")},
    [MS_CHOOSE_PP] = AXIS(MS_PP, "pp", "--pp", "pipeline stages (default 1)"),
    [MS_CHOOSE_DP_REPLICATE] = AXIS(MS_DP_REPLICATE, "dp_replicate", "--dp-replicate",
                                    "replicas of the sharded model (default 1)"),
    [MS_CHOOSE_DP_SHARD] =
        AXIS(MS_DP_SHARD, "dp_shard", "--dp-shard",
             "data-parallel ranks that --zero shards over (default: the rest of --gpus)"),
    [MS_CHOOSE_CP] = AXIS(MS_CP, "cp", "--cp", "context parallelism (default 1)"),
    [MS_CHOOSE_TP] = AXIS(MS_TP, "tp", "--tp", "tensor parallelism (default 1)"),
    [MS_CHOOSE_EP] =
        EXPERTS(ep, "expert parallelism, over the ranks of dp_shard, cp and tp "
                    "(default 1)"),
    [MS_CHOOSE_ETP] =
        EXPERTS(etp, "tensor parallelism inside experts: 1 or tp (default 1)"),
    [MS_CHOOSE_ORDER] = {.kind = MS_CHOICE_LIST,
                         .name = "order",
                         FLAG("--order", "AXES",
                              "axes outer to inner (default "
                              "pp,dp_replicate,dp_shard,cp,tp)")},
    [MS_CHOOSE_SEQUENCE_LENGTH] =
        {WHOLE(sequence_length, "sequence_length"), JSON("batch", "sequence_length"),
         .low = 1, .high = MAX_TOKENS, .flag_high = 1073741824, .plain = 8192,
         FLAG("--seq", "TOKENS", "sequence length (default 8k)")},
    [MS_CHOOSE_GLOBAL_BATCH] =
        {WHOLE(global_batch, "global_batch"), JSON("batch", "global_batch"), .low = 1,
         .high = MAX_BATCH, .flag_high = MAX_GPUS, .usual = usual_batch,
         .flag_rule = MS_FLAG_NOT_DEFAULT,
         FLAG("--global-batch", "SEQUENCES",
              "sequences per step (default max(4 Mi, 1 Ki x GPUs) tokens)")},
    [MS_CHOOSE_MICROBATCH] =
        {WHOLE(microbatch, "microbatch"), .short_name = "mbs",
         JSON("batch", "microbatch"), .low = 1, .high = MAX_BATCH, .flag_high = MAX_GPUS,
         .plain = 1, .search = MS_SEARCH_TRIES, .in_table = true,
         FLAG("--microbatch", "SEQUENCES",
              "sequences per micro-batch and data-parallel rank (default 1)")},
    [MS_CHOOSE_SCHEDULE] =
        {WORD(schedule, "schedule", ms_schedule_names), JSON("pipeline", "schedule"),
         .find = find_schedule, .plain = MS_1F1B, .usual = usual_schedule,
         .matters = has_pipeline, .flag_rule = MS_FLAG_IN_EFFECT,
         .search = MS_SEARCH_TRIES, .in_table = true,
         FLAG("--schedule", NULL,
              "pipeline schedule (default: the stack's, mostly 1f1b; interleaved with "
              "--virtual-stages), or a file of actions: FILE.csv")},
    [MS_CHOOSE_VIRTUAL_STAGES] =
        {WHOLE(virtual_stages, "virtual_stages"), .short_name = "v",
         JSON("pipeline", "virtual_stages"), .low = 1, .high = 32767, .flag_high = 4096,
         .plain = 1, .usual = usual_virtual_stages, .search = MS_SEARCH_TRIES,
         .in_table = true,
         FLAG("--virtual-stages", "N",
              "chunks of layers per pipeline rank (default 1; 2 when interleaved)")},
    [MS_CHOOSE_GROUP] =
        {WHOLE(microbatch_group, "microbatch_group"),
         JSON("pipeline", "microbatch_group"), .json_plain = MS_PLAIN_NULL,
         .high = MAX_INT, .flag_high = MAX_GPUS, .search = MS_SEARCH_REFUSES,
         FLAG("--group", "N",
              "micro-batches per turn of a chunk (default 0: the schedule's own)")},
    [MS_CHOOSE_MEMORY_LIMIT] =
        {NUMBER(memory_limit, "memory_limit"), JSON("pipeline", "memory_limit"),
         .json_plain = MS_PLAIN_OMITTED, .high = 4194304, .above_low = true,
         .search = MS_SEARCH_REFUSES,
         FLAG("--memory-limit", "X",
              "zb-auto: micro-batches in flight, as a multiple of 1f1b's peak on rank 0 "
              "(default 2)")},
    [MS_CHOOSE_STAGE_LAYERS] = {.kind = MS_CHOICE_LIST,
                                .name = "layers_per_stage",
                                JSON("pipeline", "layers_per_stage"),
                                .flag_rule = MS_FLAG_NEVER,
                                .search = MS_SEARCH_REFUSES,
                                FLAG("--layers-per-stage", "N,N,...",
                                     "layers of each virtual stage, in order (default: "
                                     "balanced)")},
    [MS_CHOOSE_ZERO] =
        {WHOLE(zero, "zero"), JSON("sharding", "zero"), .high = 3, .usual = usual_zero,
         .flag_rule = MS_FLAG_ALWAYS, .search = MS_SEARCH_TRIES, .in_table = true,
         FLAG("--zero", "0..3",
              "sharded over dp_shard x cp: 1 optimizer, 2 gradients too, 3 parameters "
              "too")},
    [MS_CHOOSE_RESHARD] =
        {SWITCH(reshard_after_forward, "reshard_after_forward"), .short_name = "reshard",
         JSON("sharding", "reshard_after_forward"), .plain = true, .usual = usual_reshard,
         .matters = shards_parameters, .flag_rule = MS_FLAG_IN_EFFECT,
         .search = MS_SEARCH_TRIES,
         FLAG("--reshard-after-forward", NULL,
              "gather again for backward (default: on with zero 3 and no pipeline)")},
    [MS_CHOOSE_SEQUENCE_PARALLEL] =
        {SWITCH(sequence_parallel, "sequence_parallel"), .short_name = "sp",
         JSON("tensor", "sequence_parallel"), .usual = usual_sequence_parallel,
         .matters = has_tensor, .renewed = true, .flag_rule = MS_FLAG_IN_EFFECT,
         .decides = MS_DECIDES_LAYERS, .search = MS_SEARCH_TRIES, .in_table = true,
         .text_on = "sp",
         FLAG("--sequence-parallel", NULL,
              "shard norms and residuals over tp (default: on when tp > 1)")},
    [MS_CHOOSE_ASYNC_TP] =
        {SWITCH(async_tp, "async_tp"), .short_name = "async", JSON("tensor", "async"),
         .matters = has_tensor, .decides = MS_DECIDES_PRICES, .search = MS_SEARCH_TRIES,
         .in_table = true, .hidden = true, .text_on = "async tp",
         FLAG("--async-tp", NULL,
              "overlap tensor-parallel traffic with its matrix products (default off)")},
    [MS_CHOOSE_LOSS_PARALLEL] =
        {SWITCH(loss_parallel, "loss_parallel"), JSON("tensor", "loss_parallel"),
         .plain = true, .matters = has_tensor, .renewed = true,
         .search = MS_SEARCH_REFUSES,
         FLAG("--loss-parallel", NULL,
              "keep logits sharded over tp for the loss (default on)")},
    [MS_CHOOSE_CP_METHOD] =
        {WORD(cp_method, "cp_method", ms_cp_method_names), .short_name = "cp by",
         JSON("context", "method"), .find = find_cp_method, .usual = usual_cp_method,
         .matters = has_context, .can = can_cp, .flag_rule = MS_FLAG_IN_EFFECT,
         .decides = MS_DECIDES_LAYERS, .search = MS_SEARCH_TRIES, .in_table = true,
         .hidden = true,
         FLAG("--cp-method", NULL,
              "how attention gets the keys of other cp ranks (default: the stack's)")},
    [MS_CHOOSE_CP_BALANCE] =
        {WORD(cp_balance, "cp_balance", ms_cp_balance_names), JSON("context", "balance"),
         .matters = has_context,
         FLAG("--cp-balance", NULL,
              "how a causal sequence is cut over cp (default head-tail)")},
    [MS_CHOOSE_RECOMPUTE] = {WORD(recompute, "recompute", ms_recompute_names),
                             JSON("recompute", "mode"), .usual = usual_recompute,
                             .flag_rule = MS_FLAG_ALWAYS, .search = MS_SEARCH_TRIES,
                             .in_table = true,
                             FLAG("--recompute", NULL,
                                  "what backward computes again (default: the stack's)")},
    [MS_CHOOSE_RECOMPUTE_LAYERS] =
        {WHOLE(recompute_layers, "recompute_layers"), JSON("recompute", "layers"),
         .json_plain = MS_PLAIN_NULL, .high = 1048576, .flag_high = MAX_GPUS,
         .search = MS_SEARCH_REFUSES,
         FLAG("--recompute-layers", "N",
              "layers of each chunk with --recompute full (default 0: all)")},
    [MS_CHOOSE_RECOMPUTE_BUDGET] =
        {NUMBER(recompute_budget_frac, "recompute_budget"),
         JSON("recompute", "budget_frac"), .json_plain = MS_PLAIN_OMITTED, .high = 1,
         .plain = -1, .matters = has_budget, .search = MS_SEARCH_REFUSES,
         FLAG("--recompute-budget", "SHARE",
              "bytes to keep with --recompute auto, from 0 (none) to 1 (all); default: "
              "the most that fits; a search tries tenths")},
    [MS_CHOOSE_COMPUTE] = {WORD(compute, "compute", ms_dtype_names),
                           JSON("precision", "compute"), .plain = MS_BF16,
                           FLAG("--precision", NULL, "compute type (default bf16)")},
    [MS_CHOOSE_PARAM_DTYPE] = STORED(param_dtype, "params"),
    [MS_CHOOSE_GRAD_DTYPE] = STORED(grad_dtype, "grads"),
    [MS_CHOOSE_OPTIMIZER_DTYPE] = STORED(optimizer_dtype, "optimizer"),
    [MS_CHOOSE_COMM_DTYPE] = STORED(comm_dtype, "comm"),
    [MS_CHOOSE_STACK] =
        {TEXT(stack), JSON(NULL, "stack"),
         FLAG(
             "--stack", "NAME|FILE",
             "training framework whose conventions apply (default megatron; "
             "of run: meshsim); search: also A,B,... for several, or all: each framework "
             "with rules, at its present version")},
    [MS_CHOOSE_RANKS_PER_DOMAIN] =
        {WHOLE(ranks_per_domain, "ranks_per_domain"), JSON(NULL, "ranks_per_domain"),
         .json_plain = MS_PLAIN_OMITTED, .low = 1, .high = MAX_GPUS,
         FLAG("--ranks-per-domain", "N",
              "ranks in each NVLink rack, node or TPU slice (default: equally many, if "
              "they divide)")},
};

/* ---- one choice ---- */

static const void *at(const ms_plan *plan, ms_choice choice)
{
    return (const char *)plan + ms_plan_fields[choice].offset;
}

long ms_plan_get(const ms_plan *plan, ms_choice choice)
{
    const void *value = at(plan, choice);
    ms_choice_kind kind = ms_plan_fields[choice].kind;
    return kind == MS_CHOICE_WHOLE    ? *(const long *)value
           : kind == MS_CHOICE_SWITCH ? *(const bool *)value
           : kind == MS_CHOICE_WORD   ? *(const int *)value
                                      : 0;
}

void ms_plan_set(ms_plan *plan, ms_choice choice, long value)
{
    void *target = (char *)plan + ms_plan_fields[choice].offset;
    if (choice == MS_CHOOSE_SCHEDULE)
        ms_plan_set_schedule(plan, (ms_schedule_kind)value);
    else if (ms_plan_fields[choice].kind == MS_CHOICE_WHOLE)
        *(long *)target = value;
    else if (ms_plan_fields[choice].kind == MS_CHOICE_SWITCH)
        *(bool *)target = value != 0;
    else if (ms_plan_fields[choice].kind == MS_CHOICE_WORD)
        *(int *)target = (int)value;
}

void ms_plan_reset(ms_plan *plan, ms_choice choice)
{
    if (ms_plan_fields[choice].kind == MS_CHOICE_NUMBER)
        *(double *)((char *)plan + ms_plan_fields[choice].offset) =
            ms_plan_fields[choice].plain;
    else
        ms_plan_set(plan, choice, (long)ms_plan_fields[choice].plain);
}

void ms_plan_make_plain(ms_plan *plan)
{
    for (int i = 0; i < MS_NUM_CHOICES; i++)
        if (ms_plan_fields[i].search != MS_SEARCH_KEEPS)
            ms_plan_reset(plan, (ms_choice)i);
    plan->num_stage_layers = 0;
    plan->layers_per_stage = NULL;
}

bool ms_plan_matters(const ms_plan *plan, ms_choice choice)
{
    return ms_plan_fields[choice].matters == NULL || ms_plan_fields[choice].matters(plan);
}

long ms_plan_usual(const ms_plan *plan, const ms_stack *stack, ms_choice choice)
{
    const ms_plan_field *field = &ms_plan_fields[choice];
    return field->usual == NULL ? (long)field->plain : field->usual(plan, stack);
}

const char *const *ms_choice_words(ms_choice choice)
{
    return ms_plan_fields[choice].kind == MS_CHOICE_SWITCH ? switch_words
                                                           : ms_plan_fields[choice].words;
}

long ms_choice_last(ms_choice choice)
{
    const char *const *words = ms_choice_words(choice);
    long last = 0;
    while (words[last + 1] != NULL)
        last++;
    return last;
}

const char *ms_choice_value_text(ms_arena *arena, ms_choice choice, long value)
{
    const char *const *words = ms_choice_words(choice);
    return words != NULL ? words[value] : ms_arena_printf(arena, "%ld", value);
}

/* Text of a choice that is a list: "pp,dp_replicate,dp_shard,cp,tp" or "20,20,20,20" */
static const char *list_text(ms_arena *arena, const ms_plan *plan, ms_choice choice)
{
    bool is_order = choice == MS_CHOOSE_ORDER;
    long num = is_order ? MS_NUM_PLAN_AXES : plan->num_stage_layers;
    const char *text = "";
    for (long i = 0; i < num; i++) {
        const char *comma = i == 0 ? "" : ",";
        text = is_order ? ms_arena_printf(arena, "%s%s%s", text, comma,
                                          ms_plan_axis_names[plan->order[i]])
                        : ms_arena_printf(arena, "%s%s%ld", text, comma,
                                          plan->layers_per_stage[i]);
    }
    return text;
}

const char *ms_plan_value_text(ms_arena *arena, const ms_plan *plan, ms_choice choice)
{
    ms_choice_kind kind = ms_plan_fields[choice].kind;
    if (choice == MS_CHOOSE_SCHEDULE)
        return ms_plan_schedule_name(plan);
    if (kind == MS_CHOICE_NUMBER)
        return ms_json_number_text(*(const double *)at(plan, choice),
                                   ms_arena_alloc(arena, 32));
    if (kind == MS_CHOICE_TEXT || kind == MS_CHOICE_STORED)
        return *(const char *const *)at(plan, choice);
    return kind == MS_CHOICE_LIST
               ? list_text(arena, plan, choice)
               : ms_choice_value_text(arena, choice, ms_plan_get(plan, choice));
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_stage_layers(const ms_plan *a, const ms_plan *b)
{
    return a->num_stage_layers == b->num_stage_layers &&
           (a->num_stage_layers == 0 ||
            memcmp(a->layers_per_stage, b->layers_per_stage,
                   (size_t)a->num_stage_layers * sizeof(long)) == 0);
}

bool ms_plan_same(const ms_plan *a, const ms_plan *b, ms_choice choice)
{
    ms_choice_kind kind = ms_plan_fields[choice].kind;
    if (choice == MS_CHOOSE_ORDER)
        return memcmp(a->order, b->order, sizeof a->order) == 0;
    if (choice == MS_CHOOSE_STAGE_LAYERS)
        return same_stage_layers(a, b);
    if (kind == MS_CHOICE_NUMBER)
        return *(const double *)at(a, choice) == *(const double *)at(b, choice);
    if (kind == MS_CHOICE_TEXT || kind == MS_CHOICE_STORED)
        return same_text(*(const char *const *)at(a, choice),
                         *(const char *const *)at(b, choice));
    return ms_plan_get(a, choice) == ms_plan_get(b, choice) &&
           (choice != MS_CHOOSE_SCHEDULE ||
            same_text(a->schedule_file, b->schedule_file));
}

/* Whether two plans are equal in all choices that plan files store. */
bool ms_plan_equal(const ms_plan *a, const ms_plan *b)
{
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++) {
        bool unwritten =
            i == MS_CHOOSE_PROFILE || (i == MS_CHOOSE_RECOMPUTE_BUDGET && !has_budget(a));
        if (!unwritten && !ms_plan_same(a, b, i))
            return false;
    }
    return true;
}

/* ---- the flags that give a plan ---- */

bool ms_plan_is_plain(const ms_plan *plan, ms_choice choice)
{
    ms_plan plain = ms_plan_default(plan->gpus);
    if (ms_plan_fields[choice].kind != MS_CHOICE_TEXT)
        ms_plan_reset(&plain, choice);
    return ms_plan_same(plan, &plain, choice);
}

/* Whether a choice whose default needs no stack differs from its command-line default. */
static bool is_not_default(const ms_plan *plan, ms_choice choice)
{
    return ms_plan_get(plan, choice) != ms_plan_usual(plan, NULL, choice);
}

bool ms_plan_needs_flag(const ms_plan *plan, ms_choice choice)
{
    const ms_plan_field *field = &ms_plan_fields[choice];
    if (field->kind == MS_CHOICE_NUMBER && !ms_plan_matters(plan, choice))
        return false;
    switch (field->flag_rule) {
    case MS_FLAG_UNUSUAL:
        return !ms_plan_is_plain(plan, choice) ||
               (field->usual != NULL && is_not_default(plan, choice));
    case MS_FLAG_NOT_DEFAULT:
        return is_not_default(plan, choice);
    case MS_FLAG_IN_EFFECT:
        return ms_plan_matters(plan, choice);
    case MS_FLAG_ALWAYS:
        return true;
    case MS_FLAG_NEVER:
        break;
    }
    return false;
}
