/* Reads stacks, the habits of training frameworks, from configs/stacks/. Figures are
 * coefficients with provenance; switches and words are plain. */
#include "costmodel/profile/stack.h"

#include "base/paths.h"

#include <string.h>

static const char *const recompute_modes[] = {"none", "selective", "full", "per-op",
                                              NULL};

const char *const ms_optimizer_sync_names[] = {"global", "post-validation", NULL};
static const char *const layer_split_names[] = {"balanced", "even", "by-flop", NULL};

/* What the table fills; the words are turned into their types afterwards. */
typedef struct stack_file {
    ms_stack stack;
    int attention;
    int recompute;
    int layer_split;
    int cp_method;
    int optimizer_sync;
    const char *schedules;
} stack_file;

#define AT(member) offsetof(stack_file, member)
#define FIGURE(member, keyword, least, most, text)                                       \
    {                                                                                    \
        .kind = MS_FIELD_ANY, .key = (keyword), .offset = AT(stack.member),              \
        .required = true, .low = (least), .high = (most), .unit = MS_UNIT_COUNT,         \
        .help = (text)                                                                   \
    }

/* 0 where the file has none. */
#define OPTIONAL(member, keyword, most, text)                                            \
    {                                                                                    \
        .kind = MS_FIELD_ANY, .key = (keyword), .offset = AT(stack.member), .low = 0,    \
        .high = (most), .unit = MS_UNIT_COUNT, .help = (text)                            \
    }

#define CAN_CP(method, keyword, text)                                                    \
    {                                                                                    \
        .kind = MS_FIELD_BOOL, .key = (keyword), .offset = AT(stack.can_cp[method]),     \
        .required = true, .help = (text)                                                 \
    }

static const ms_field stack_fields[] = {
    {.kind = MS_FIELD_TEXT,
     .key = "name",
     .offset = AT(stack.name),
     .required = true,
     .help = "name of the stack"},
    {.kind = MS_FIELD_TEXT,
     .key = "source",
     .offset = AT(stack.source),
     .required = true,
     .help = "which framework and version, and what was fitted on which runs"},
    {.kind = MS_FIELD_CHOICE,
     .key = "attention",
     .offset = AT(attention),
     .required = true,
     .choices = ms_attention_kernel_names,
     .help = "attention kernel"},
    FIGURE(unfused_traffic, "unfused_traffic", 0, 20,
           "extra passes of pointwise chains over memory"),
    {.kind = MS_FIELD_ANY,
     .key = "host_per_layer",
     .offset = AT(stack.host_s_per_layer),
     .required = true,
     .nullable = true,
     .low = 0,
     .high = 1,
     .unit = MS_UNIT_SECONDS,
     .help =
         "host time of one layer and micro-batch, forward and backward; null: kernels x launch"},
    {.kind = MS_FIELD_ANY,
     .key = "host_per_collective_rank",
     .offset = AT(stack.host_s_per_collective_rank),
     .low = 0,
     .high = 1,
     .unit = MS_UNIT_SECONDS,
     .help =
         "host time of a collective for each rank of its group, where pipeline stages "
         "lie on several nodes; left out: nothing"},
    {.kind = MS_FIELD_ANY,
     .key = "message_stall",
     .offset = AT(stack.message_stall_s),
     .low = 0,
     .high = 10,
     .unit = MS_UNIT_SECONDS,
     .help = "what a message between pipeline stages takes more in a run that stalls; "
             "left out: nothing"},
    OPTIONAL(stalling_nodes, "stalling_nodes", 100000,
             "nodes from which on every pipelined run stalls"),
    OPTIONAL(stalling_tensor_nodes, "stalling_tensor_nodes", 1000,
             "nodes of a tensor group from which on every pipelined run stalls"),
    {.kind = MS_FIELD_ANY,
     .key = "routing",
     .offset = AT(stack.routing_s),
     .low = 0,
     .high = 1,
     .unit = MS_UNIT_SECONDS,
     .help =
         "what routing takes of a layer and micro-batch beside its bytes, forward and "
         "backward; left out: nothing"},
    OPTIONAL(expert_row_bytes, "expert_row_bytes", 1000,
             "memory traffic of operations on experts' rows by themselves, per element"),
    OPTIONAL(expert_bias_bytes, "expert_bias_bytes", 1000,
             "the same of the biases of experts' results"),
    OPTIONAL(expert_launches, "expert_launches", 1000,
             "host time of a grouped product for each expert of the rank, in launches"),
    OPTIONAL(expert_cast_launches, "expert_cast_launches", 1000,
             "what the casts of its operands add"),
    OPTIONAL(routing_launches, "routing_launches", 10000,
             "host time of a layer's routing and dispatch, forward and backward, in "
             "launches"),
    OPTIONAL(scan_loss, "scan_loss", 100,
             "what a Mamba mixer's recurrence takes beyond its traffic, relative to it"),
    FIGURE(launch_frac, "launch_frac", 0, 10,
           "of the launch time that remains per kernel"),
    FIGURE(tp_overlap_frac, "tp_overlap", 0, 1,
           "share of tensor-parallel traffic that hides"),
    FIGURE(dp_overlap, "dp_overlap", 0, 1,
           "1: gradient and parameter traffic overlaps compute"),
    OPTIONAL(send_hold, "send_hold", 4,
             "messages that a stage waits for after an action, gpipe and 1f1b"),
    OPTIONAL(interleaved_send_hold, "interleaved_send_hold", 4,
             "the same of the interleaved schedule"),
    FIGURE(cp_overlap_frac, "cp_overlap", 0, 1,
           "share of context-parallel traffic that hides"),
    FIGURE(ring_overlap_frac, "ring_overlap", 0, 1,
           "share of a ring attention's transfer that hides"),
    OPTIONAL(ring_gradient_bytes, "ring_gradient_bytes", 8,
             "per element, of gradients of keys and values that travel around a ring; "
             "left out: as they are stored"),
    {.kind = MS_FIELD_BOOL,
     .key = "ring_repeats_heads",
     .offset = AT(stack.ring_repeats_heads),
     .help =
         "keys and values are repeated for every query head before they travel a ring"},
    FIGURE(interference_frac, "interference", 0, 1,
           "of the shorter of two overlapping, lost"),
    FIGURE(optimizer_bytes, "optimizer_bytes", 0, 200,
           "memory traffic per owned parameter"),
    FIGURE(accumulate_bytes, "accumulate_bytes", 0, 200,
           "memory traffic of gradient accumulation"),
    FIGURE(loss_bytes, "loss_bytes", 0, 200, "memory traffic per local logit"),
    FIGURE(param_bytes, "param_bytes", 0.5, 16, "per parameter between steps"),
    FIGURE(grad_bytes, "grad_bytes", 0.5, 16, "per parameter, accumulation included"),
    OPTIONAL(bucket_bytes, "bucket_bytes", 16,
             "copies of gradients, per parameter, when data parallel"),
    OPTIONAL(late_grad_bytes, "late_grad_bytes", 16,
             "gradients of the micro-batch before, per parameter, in a pipeline"),
    FIGURE(master_bytes, "master_bytes", 0, 16, "fp32 copy of the optimizer"),
    FIGURE(moment_bytes, "moment_bytes", 0, 16, "Adam's m and v"),
    FIGURE(logit_bytes, "logit_bytes", 0, 64, "alive per local logit at the loss"),
    OPTIONAL(sharded_logit_bytes, "sharded_logit_bytes", 64,
             "alive per local logit at a loss of logits that tp shards"),
    FIGURE(head_grad_bytes, "head_grad_bytes", 0, 64,
           "alive per local head parameter at its backward"),
    OPTIONAL(workspace_bytes, "workspace", 1e12,
             "of libraries, from the framework's allocator"),
    FIGURE(fragmentation_frac, "fragmentation", 0, 1, "reserved over allocated, minus 1"),
    FIGURE(grad_comm_bytes, "grad_comm_bytes", 0.5, 8,
           "per parameter in gradient reductions"),
    FIGURE(param_comm_bytes, "param_comm_bytes", 0.5, 8, "per parameter in gathers"),
    {.kind = MS_FIELD_BOOL,
     .key = "states_in_compute_type",
     .offset = AT(stack.states_in_compute_type),
     .help =
         "with fp32 and fp64 states and logits are in that type, without a master copy"},
    {.kind = MS_FIELD_BOOL,
     .key = "fixed_unit_rooms",
     .offset = AT(stack.fixed_unit_rooms),
     .help =
         "memory for gathered parameters is that of the largest unit all the time, embedding "
         "and head included"},
    {.kind = MS_FIELD_BOOL,
     .key = "exposes_shards",
     .offset = AT(stack.exposes_shards),
     .help = "with dp_overlap, all-reduces of ZeRO-0 overlap alone"},
    {.kind = MS_FIELD_BOOL,
     .key = "scatters_sends",
     .offset = AT(stack.scatters_sends),
     .help = "without sequence parallelism, too, a rank of tp sends its part of a "
             "message between pipeline stages alone"},
    {.kind = MS_FIELD_BOOL,
     .key = "adds_reduced_gradients",
     .offset = AT(stack.adds_reduced_gradients),
     .help =
         "the buffer of a reduce-scatter is cleared before, and what arrives is added "
         "to the shard"},
    {.kind = MS_FIELD_BOOL,
     .key = "regather",
     .offset = AT(stack.regather),
     .required = true,
     .help = "gathered layer inputs are gathered again in backward"},
    {.kind = MS_FIELD_BOOL,
     .key = "reruns_layers",
     .offset = AT(stack.reruns_layers),
     .help =
         "full recomputation runs all of a layer again, not only what backward needs"},
    {.kind = MS_FIELD_BOOL,
     .key = "holds_gathers_alone",
     .offset = AT(stack.holds_gathers_alone),
     .help =
         "without a pipeline, or where the host is ahead, gathered layer inputs are held "
         "all the same"},
    {.kind = MS_FIELD_BOOL,
     .key = "overlaps_gradients",
     .offset = AT(stack.overlaps_gradients),
     .help = "backward, tensor-parallel traffic of a linear layer runs beside the "
             "product of its other gradient"},
    {.kind = MS_FIELD_BOOL,
     .key = "fuses_projections",
     .offset = AT(stack.fuses_projections),
     .help = "query, key and value are one matrix, gate and up another"},
    {.kind = MS_FIELD_BOOL,
     .key = "trains_mtp",
     .offset = AT(stack.trains_mtp),
     .help = "modules of multi-token prediction are trained, where the model has them"},
    {.kind = MS_FIELD_BOOL,
     .key = "casts_once",
     .offset = AT(stack.casts_once),
     .help =
         "operands in fewer than 16 bits are cast once, before they are gathered over tp"},
    {.kind = MS_FIELD_BOOL,
     .key = "gathers_cast",
     .offset = AT(stack.gathers_cast),
     .help = "parameters are gathered in the compute type where that has 8 bits"},
    {.kind = MS_FIELD_BOOL,
     .key = "fuses_experts",
     .offset = AT(stack.fuses_experts),
     .help =
         "in fewer than 16 bits experts are kernels for all of them together: none of "
         "the expert_ figures holds"},
    {.kind = MS_FIELD_BOOL,
     .key = "shares_token_copies",
     .offset = AT(stack.shares_token_copies),
     .help =
         "a token goes to a rank and to a node once, whichever of its experts are there"},
    {.kind = MS_FIELD_BOOL,
     .key = "splits_experts",
     .offset = AT(stack.splits_experts),
     .help = "runs that do not say have etp = tp for experts wider than the hidden size"},
    {.kind = MS_FIELD_BOOL,
     .key = "recomputes_by_need",
     .offset = AT(stack.recomputes_by_need),
     .help =
         "published runs that do not say what they compute again did it as little as fits"},
    {.kind = MS_FIELD_BOOL,
     .key = "keeps_gate",
     .offset = AT(stack.keeps_gate),
     .help = "the activated gate of a gated MLP is kept beside gate and product"},
    {.kind = MS_FIELD_BOOL,
     .key = "keeps_unrotated",
     .offset = AT(stack.keeps_unrotated),
     .help = "queries and keys are kept before and after the rotary embedding"},
    {.kind = MS_FIELD_BOOL,
     .key = "keeps_casts",
     .offset = AT(stack.keeps_casts),
     .help = "of operands in fewer than 16 bits gradients of weights keep the cast"},
    {.kind = MS_FIELD_BOOL,
     .key = "keeps_casts_alone",
     .offset = AT(stack.keeps_casts_alone),
     .help = "with keeps_casts, casts serve all that reads the operand, and inputs of "
             "activation functions are kept so, too"},
    {.kind = MS_FIELD_BOOL,
     .key = "weighs_in_experts",
     .offset = AT(stack.weighs_in_experts),
     .help = "routing weights multiply activations of experts, whose results are not "
             "kept for them"},
    {.kind = MS_FIELD_BOOL,
     .key = "stage_2_is_fsdp",
     .offset = AT(stack.stage_2_is_fsdp),
     .help = "what its tables call ZeRO-2 stores shards of the parameters, too"},
    {.kind = MS_FIELD_BOOL,
     .key = "single_layer_chunks",
     .offset = AT(stack.single_layer_chunks),
     .help = "runs that interleave and do not say how have one layer a chunk"},
    {.kind = MS_FIELD_BOOL,
     .key = "interleaves",
     .offset = AT(stack.interleaves),
     .help = "runs that do not name a schedule interleave"},
    {.kind = MS_FIELD_BOOL,
     .key = "pads_vocab",
     .offset = AT(stack.pads_vocab),
     .help = "published runs have vocabularies padded to a multiple of 128 tp"},
    {.kind = MS_FIELD_BOOL,
     .key = "uses_dropout",
     .offset = AT(stack.uses_dropout),
     .help = "published runs have dropout, where the model has it"},
    {.kind = MS_FIELD_BOOL,
     .key = "lacks_sequence_parallel",
     .offset = AT(stack.lacks_sequence_parallel),
     .help = "published runs that do not say have no sequence parallelism"},
    {.kind = MS_FIELD_BOOL,
     .key = "whole_microbatch",
     .offset = AT(stack.whole_microbatch),
     .help =
         "published runs without a pipeline that do not say how large a micro-batch is do not accumulate gradients"},
    {.kind = MS_FIELD_BOOL,
     .key = "selective_is_full",
     .offset = AT(stack.selective_is_full),
     .help = "what its tables call selective recomputation is that of whole layers"},
    {.kind = MS_FIELD_BOOL,
     .key = "casts_once_by_tensor",
     .offset = AT(stack.casts_once_by_tensor),
     .help = "casts_once does not hold where published runs have a scale a row"},
    {.kind = MS_FIELD_BOOL,
     .key = "reports_first_rank",
     .offset = AT(stack.reports_first_rank),
     .help = "its memory figure is that of the first rank"},
    {.kind = MS_FIELD_INTEGER,
     .key = "fuses_attention_since",
     .offset = AT(stack.fuses_attention_since),
     .low = 199001,
     .high = 210012,
     .help = "year and month of its first release with fused attention, as 202304"},
    {.kind = MS_FIELD_INTEGER,
     .key = "stages_split_batch_before",
     .offset = AT(stack.stages_split_batch_before),
     .low = 199001,
     .high = 210012,
     .help =
         "year and month, as 202504, before which runs with a pipeline had as many micro-batches as stages"},
    {.kind = MS_FIELD_BOOL,
     .key = "counts_context",
     .offset = AT(stack.counts_context),
     .required = true,
     .help = "its memory figure includes CUDA context and communication buffers"},
    {.kind = MS_FIELD_CHOICE,
     .key = "recompute",
     .offset = AT(recompute),
     .required = true,
     .choices = recompute_modes,
     .help = "default recomputation"},
    {.kind = MS_FIELD_INTEGER,
     .key = "default_zero",
     .offset = AT(stack.default_zero),
     .required = true,
     .low = -1,
     .high = 3,
     .help = "default ZeRO stage; -1: 3 when sharded, else 0"},
    {.kind = MS_FIELD_BOOL,
     .key = "can_zero3_with_pp",
     .offset = AT(stack.can_zero3_with_pp),
     .required = true,
     .help = "shards parameters under pipeline parallelism"},
    {.kind = MS_FIELD_CHOICE,
     .key = "cp_method",
     .offset = AT(cp_method),
     .required = true,
     .choices = ms_cp_method_names,
     .help = "default way of context parallelism"},
    CAN_CP(MS_CP_ALL_GATHER, "can_cp_all_gather", "gathers keys and values over cp"),
    CAN_CP(MS_CP_RING, "can_cp_ring", "passes keys and values around a ring"),
    CAN_CP(MS_CP_ULYSSES, "can_cp_ulysses", "splits heads over cp by all-to-all"),
    {.kind = MS_FIELD_TEXT,
     .key = "schedules",
     .offset = AT(schedules),
     .required = true,
     .help = "pipeline schedules that it can run, with commas between, or \"all\""},
    {.kind = MS_FIELD_CHOICE,
     .key = "optimizer_sync",
     .offset = AT(optimizer_sync),
     .required = true,
     .choices = ms_optimizer_sync_names,
     .help = "what the optimizer waits for"},
    {.kind = MS_FIELD_CHOICE,
     .key = "layer_split",
     .offset = AT(layer_split),
     .required = true,
     .choices = layer_split_names,
     .help = "default distribution of layers over pipeline stages"},
    {0}};

/* One name of the list, without the blanks around it. */
static const char *next_name(ms_arena *arena, const char **at)
{
    const char *first = *at + strspn(*at, " ,");
    size_t length = strcspn(first, ",");
    *at = first + length;
    while (length > 0 && first[length - 1] == ' ')
        length--;
    return ms_arena_printf(arena, "%.*s", (int)length, first);
}

static ms_status read_schedules(ms_ctx *cx, ms_jval root, const char *text, bool *can)
{
    ms_schedule_kind kind;
    if (strcmp(text, "all") == 0) {
        for (int i = 0; i < MS_NUM_SCHEDULES; i++)
            can[i] = true;
        return MS_OK;
    }
    for (const char *at = text; at[strspn(at, " ,")] != '\0';) {
        const char *name = next_name(cx->arena, &at);
        if (!ms_schedule_parse(name, &kind)) {
            ms_fail(cx, MS_EINPUT, ms_json_loc(cx, root),
                    "\"%s\" is no pipeline schedule", name);
            const char *nearest = ms_nearest(name, ms_schedule_names, MS_CUSTOM);
            if (nearest != NULL)
                ms_hint(cx, "did you mean \"%s\"?", nearest);
            else
                ms_hint(cx, "use names as in \"1f1b, interleaved\", or \"all\"");
            return MS_EINPUT;
        }
        can[kind] = true;
    }
    return MS_OK;
}

ms_status ms_stack_read(ms_ctx *cx, ms_jval root, ms_stack *out)
{
    stack_file file = {0}; /* what is left out is 0 and has no source */
    MS_TRY(ms_coefficients_read(cx, root, stack_fields, &file));
    *out = file.stack;
    out->attention = (ms_attention_kernel)file.attention;
    out->recompute = recompute_modes[file.recompute];
    out->layer_split = (ms_layer_split)file.layer_split;
    out->cp_method = (ms_cp_method)file.cp_method;
    out->optimizer_sync = (ms_optimizer_sync)file.optimizer_sync;
    return read_schedules(cx, root, file.schedules, out->can_schedule);
}

ms_status ms_stack_load(ms_ctx *cx, const char *name, const ms_stack **out)
{
    const char *path = NULL;
    MS_TRY(ms_config_resolve(cx, "stacks", "stack", name, &path));
    ms_jdoc *doc = NULL;
    ms_jval root;
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    ms_stack *stack = MS_NEW(cx->arena, ms_stack);
    ms_status status = ms_stack_read(cx, root, stack);
    ms_json_close(doc);
    *out = stack;
    return status;
}

ms_stack ms_stack_adapt(const ms_stack *stack, ms_dtype compute)
{
    ms_stack adapted = *stack;
    double bytes = ms_dtype_bytes(compute);
    if (stack->gathers_cast && bytes == 1.0)
        adapted.param_comm_bytes = (ms_coefficient){
            bytes, MS_SPEC, "parameters are gathered in the compute type"};
    if (!stack->states_in_compute_type || bytes < 4.0)
        return adapted;
    const struct {
        ms_coefficient *figure;
        double elements;
    } figures[] = {{&adapted.param_bytes, 1},     {&adapted.grad_bytes, 1},
                   {&adapted.master_bytes, 0},    {&adapted.moment_bytes, 2},
                   {&adapted.grad_comm_bytes, 1}, {&adapted.param_comm_bytes, 1},
                   {&adapted.logit_bytes, 1},     {&adapted.optimizer_bytes, 8},
                   {&adapted.loss_bytes, 4}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        *figures[i].figure =
            (ms_coefficient){figures[i].elements * bytes, MS_SPEC,
                             "states, messages and logits are in the compute type"};
    adapted.states_in_compute_type = false;
    return adapted;
}

ms_stack ms_stack_with_gathers(const ms_stack *stack, bool kept)
{
    ms_stack settled = *stack;
    settled.regather = !kept;
    settled.holds_gathers_alone = false;
    return settled;
}

void ms_stack_figures(ms_figures *list)
{
    static const ms_field end = {0};
    _Static_assert(offsetof(stack_file, stack) == 0, "offsets are those of the stack");
    for (const ms_field *field = stack_fields; field->kind != MS_FIELD_END; field++) {
        const ms_field one[2] = {*field, end};
        if (field->kind == MS_FIELD_ANY)
            ms_figures_add(list, "", one, 0);
    }
}
