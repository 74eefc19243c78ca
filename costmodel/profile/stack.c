/* Reads stack files: numbers have a provenance, switches and words have none. */
#include "costmodel/profile/stack.h"

#include "base/paths.h"

#include <string.h>

static const char *const recompute_modes[] = {"none", "selective", "full", "per-op",
                                              NULL};

const char *const ms_optimizer_sync_names[] = {"global", "post-validation", NULL};
const char *const ms_layer_split_names[] = {"balanced", "even", "by-flop", NULL};

/* Members that the field table of stack files fills; words become enums afterwards. */
typedef struct stack_file {
    ms_stack stack;
    int attention, recompute, layer_split, cp_method, optimizer_sync, compile;
    const char *schedules, *default_schedule, *selective_modules;
} stack_file;

/* Macros for rows of the field table, one macro for each kind of field. */
#define ROW(type, keyword, at, must, least, most, list, text)                            \
    {                                                                                    \
        .kind = MS_FIELD_##type, .key = (keyword), .offset = offsetof(stack_file, at),   \
        .required = (must), .low = (least), .high = (most), .unit = MS_UNIT_COUNT,       \
        .choices = (list), .help = (text)                                                \
    }
#define SECONDS(at, keyword, must, most, text)                                           \
    {                                                                                    \
        .kind = MS_FIELD_ANY, .key = (keyword),                                          \
        .offset = offsetof(stack_file, stack.at), .required = (must),                    \
        .nullable = (must), .high = (most), .unit = MS_UNIT_SECONDS, .help = (text)      \
    }
#define TEXT(keyword, at, text) ROW(TEXT, keyword, at, true, 0, 0, NULL, text)
#define CHOICE(at, words, text) ROW(CHOICE, #at, at, true, 0, 0, words, text)
#define FIGURE(at, least, most, text)                                                    \
    ROW(ANY, #at, stack.at, true, least, most, NULL, text)
#define SHARE(at, keyword, text) ROW(ANY, keyword, stack.at, true, 0, 1, NULL, text)
#define OPTIONAL(at, most, text) ROW(ANY, #at, stack.at, false, 0, most, NULL, text)
#define SWITCH(at, text)         ROW(BOOL, #at, stack.at, false, 0, 0, NULL, text)
#define MUST_SWITCH(at, text)    ROW(BOOL, #at, stack.at, true, 0, 0, NULL, text)
#define CAN_CP(keyword, method, text)                                                    \
    ROW(BOOL, keyword, stack.can_cp[method], true, 0, 0, NULL, text)
#define MONTH(at, text) ROW(INTEGER, #at, stack.at, false, 199001, 210012, NULL, text)

static const ms_field stack_fields[] = {
    TEXT("name", stack.name, "name of the stack"),
    TEXT("source", stack.source, "framework and version, and the runs its figures fit"),
    ROW(TEXT, "rules", stack.rules, false, 0, 0, NULL,
        "rules of the framework: a name in configs/rules, or NAME@VERSION"),
    CHOICE(attention, ms_attention_kernel_names, "attention kernel"),
    FIGURE(unfused_traffic, 0, 20, "extra passes of pointwise chains over memory"),
    OPTIONAL(norm_bytes, 1000,
             "memory traffic per element of a norm made of single operations, forward"),
    OPTIONAL(norm_grad_bytes, 1000, "norm_bytes of the backward"),
    SECONDS(host_s_per_layer, "host_per_layer", true, 1,
            "host time of a layer and micro-batch; null: kernels x launch"),
    SECONDS(
        host_s_per_collective_rank, "host_per_collective_rank", false, 1,
        "host time of a collective for each rank of its group, if pipeline stages lie "
        "on several nodes; default: 0"),
    SECONDS(message_stall_s, "message_stall", false, 10,
            "delay of a message between pipeline stages in runs that stall; default: 0"),
    OPTIONAL(stalling_nodes, 100000,
             "least number of nodes of pipelined runs that stall"),
    OPTIONAL(stalling_tensor_nodes, 1000,
             "least number of nodes per tensor group of pipelined runs that stall"),
    SECONDS(routing_s, "routing", false, 1,
            "routing time of a layer and micro-batch beyond its bytes; default: 0"),
    OPTIONAL(expert_row_bytes, 1000,
             "memory traffic of separate operations on experts' rows, per element"),
    OPTIONAL(expert_bias_bytes, 1000,
             "memory traffic of biases of experts, per element of their results"),
    OPTIONAL(expert_launches, 1000,
             "host time of a grouped GEMM for each expert of the rank, in launches"),
    OPTIONAL(expert_cast_launches, 1000,
             "host time of casts of a grouped GEMM's operands, in launches"),
    OPTIONAL(routing_launches, 10000,
             "host time of a layer's routing and dispatch, in launches"),
    OPTIONAL(scan_loss, 100, "time of a Mamba scan over that of its traffic, minus 1"),
    FIGURE(launch_frac, 0, 10, "share of the launch time that remains per kernel"),
    ROW(CHOICE, "compile", compile, false, 0, 0, &ms_compile_names[MS_COMPILE_NONE],
        "what torch.compile compiles; default: none"),
    ROW(TEXT, "compile_counterpart", stack.compile_counterpart, false, 0, 0, NULL,
        "stack with the numbers for layers that are compiled, or not, unlike here"),
    SWITCH(launches_operations,
           "each operation of a pointwise chain that is not compiled is one launch"),
    SECONDS(dtensor_s, "dtensor", false, 1,
            "host time that DTensor adds to an operation on tensors sharded over tp"),
    SECONDS(graph_launch_s, "graph_launch", false, 1,
            "host time to replay a CUDA graph; default: the stack has none"),
    SHARE(tp_overlap_frac, "tp_overlap", "hidden share of tensor-parallel traffic"),
    SHARE(dp_overlap, "dp_overlap", "1: gradient and parameter traffic overlaps compute"),
    OPTIONAL(send_hold, 4, "messages awaited after an action of gpipe and 1f1b"),
    OPTIONAL(interleaved_send_hold, 4, "messages awaited after an interleaved action"),
    SHARE(cp_overlap_frac, "cp_overlap", "hidden share of context-parallel traffic"),
    SHARE(ring_overlap_frac, "ring_overlap",
          "hidden share of a ring attention's transfer"),
    OPTIONAL(
        ring_gradient_bytes, 8,
        "bytes per element of key and value gradients in a ring; default: as stored"),
    SWITCH(ring_repeats_heads, "rings carry keys and values once per query head"),
    SHARE(interference_frac, "interference",
          "lost share of the shorter of two overlapping"),
    FIGURE(optimizer_bytes, 0, 200, "memory traffic per owned parameter"),
    FIGURE(accumulate_bytes, 0, 200, "memory traffic of gradient accumulation"),
    FIGURE(loss_bytes, 0, 200, "memory traffic per local logit"),
    FIGURE(param_bytes, 0.5, 16, "bytes of a parameter between steps"),
    OPTIONAL(cast_param_bytes, 4,
             "8-bit compute types: casts of a parameter that stay, value and transpose"),
    FIGURE(grad_bytes, 0.5, 16, "bytes of a gradient, accumulation included"),
    OPTIONAL(bucket_bytes, 16, "gradient copies for data parallelism, per parameter"),
    OPTIONAL(late_grad_bytes, 16,
             "gradients of the previous micro-batch in a pipeline, per parameter"),
    FIGURE(master_bytes, 0, 16, "fp32 copy of the optimizer, per parameter"),
    FIGURE(moment_bytes, 0, 16, "Adam's m and v, per parameter"),
    FIGURE(logit_bytes, 0, 64, "bytes alive per local logit at the loss"),
    OPTIONAL(sharded_logit_bytes, 64, "logit_bytes for logits sharded over tp"),
    FIGURE(head_grad_bytes, 0, 64,
           "bytes alive per local head parameter at its backward"),
    ROW(ANY, "workspace", stack.workspace_bytes, false, 0, 1e12, NULL,
        "bytes of libraries in the framework's allocator"),
    ROW(ANY, "older_workspace", stack.older_workspace_bytes, false, 0, 1e12, NULL,
        "workspace below compute capability 9.0 and on 12.x; default: equal to it"),
    ROW(ANY, "engine_workspace", stack.engine_workspace_bytes, false, 0, 1e12, NULL,
        "bytes of a cuBLAS workspace of Transformer Engine; default: 0"),
    ROW(ANY, "older_engine_workspace", stack.older_engine_workspace_bytes, false, 0, 1e12,
        NULL, "engine_workspace below compute capability 9.0; default: 0"),
    OPTIONAL(engine_streams, 64,
             "further workspaces of Transformer Engine for grouped products of experts"),
    ROW(ANY, "eager_kernels", stack.eager_kernels_bytes, false, 0, 1e12, NULL,
        "bytes of kernels that the driver loads at start, besides the context"),
    SHARE(fragmentation_frac, "fragmentation", "reserved over allocated, minus 1"),
    ROW(ANY, "loss_reserve", stack.loss_reserve_frac, false, 0, 4, NULL,
        "share of the logits' bytes that a loss may need once more; default: 0"),
    ROW(ANY, "reserve", stack.reserve_frac, false, 0, 1, NULL,
        "what the allocator keeps cached over its peak; default: 0"),
    OPTIONAL(boundary_copies, 4,
             "copies of inputs and outputs of stages per live micro-batch"),
    OPTIONAL(more_communicators, 100,
             "communicators of pipelined runs besides one for each kind of group"),
    SWITCH(frees_gradients, "gradients are freed after each step and made by backward"),
    OPTIONAL(held_logit_bytes, 16,
             "pipelines: bytes per logit of each micro-batch until the step ends"),
    SWITCH(receives_apart, "each micro-batch of a step has its own receive buffers"),
    ROW(ANY, "host_activations", stack.host_activation_frac, false, 0, 1, NULL,
        "share of saved activations in host memory; default: 0"),
    OPTIONAL(host_update_bytes, 400,
             "host memory traffic of an optimizer on the host, per owned parameter; "
             "default 0: the stack has none"),
    ROW(ANY, "host_memory", stack.host_memory_frac, false, 0, 1, NULL,
        "share of the host memory's listed bandwidth that such an optimizer reaches"),
    SWITCH(offloads_gradients,
           "with the optimizer on the host, backward copies gradients there"),
    FIGURE(grad_comm_bytes, 0.5, 8, "bytes per parameter in gradient reductions"),
    FIGURE(param_comm_bytes, 0.5, 8, "bytes per parameter in gathers"),
    SWITCH(
        states_in_compute_type,
        "with fp32 and fp64, states and logits are in that type without a master copy"),
    SWITCH(
        fixed_unit_buffers,
        "gathered parameters have buffers of the largest unit, with embedding and head"),
    SWITCH(exposes_shards, "with dp_overlap, only all-reduces of ZeRO-0 overlap"),
    SWITCH(scatters_sends, "a tp rank sends only its part of messages between stages"),
    SWITCH(adds_reduced_gradients,
           "reduce-scatter clears its buffer first and adds the result to the shard"),
    MUST_SWITCH(regather, "gathered layer inputs are gathered again in backward"),
    SWITCH(reruns_layers, "full recomputation repeats all of a layer"),
    SWITCH(holds_gathers_alone,
           "gathered layer inputs stay without a pipeline, or if the host is ahead"),
    SWITCH(overlaps_gradients,
           "backward tensor-parallel traffic overlaps with the layer's other gradient"),
    SWITCH(fuses_projections, "query, key and value are one matrix, gate and up another"),
    SWITCH(trains_mtp, "modules of multi-token prediction are trained"),
    SWITCH(casts_once, "operands below 16 bits are cast once, before gathers over tp"),
    SWITCH(gathers_cast, "parameters are gathered in a compute type of 8 bits"),
    SWITCH(fuses_experts, "below 16 bits, one kernel serves all experts of a rank"),
    SWITCH(shares_token_copies, "a token goes to each rank and node at most once"),
    SWITCH(splits_experts,
           "by default, experts wider than the hidden size have etp = tp"),
    SWITCH(recomputes_by_need, "by default, runs recompute as little as fits"),
    SWITCH(keeps_gate, "a gated MLP saves its activated gate as well"),
    SWITCH(keeps_eager_norms,
           "norms save their input in fp32 and their result before the weight"),
    SWITCH(keeps_unrotated, "queries and keys before the rotary embedding are saved too"),
    SWITCH(keeps_casts, "weight gradients save the cast of operands below 16 bits"),
    SWITCH(keeps_casts_alone, "with keeps_casts, no operand is saved beside its cast"),
    SWITCH(weighs_in_experts, "routing weights multiply the activations of experts"),
    SWITCH(sequence_first,
           "FlashAttention's result is saved in two orders of sequence and batch"),
    SWITCH(deterministic, "PyTorch's deterministic algorithms are used"),
    SWITCH(makes_mask, "the data loader makes a mask of attention"),
    SWITCH(stage_2_is_fsdp, "ZeRO-2 in published runs stores parameter shards, too"),
    SWITCH(single_layer_chunks, "by default, interleaved runs have one layer per chunk"),
    SWITCH(interleaves, "by default, the schedule is interleaved"),
    SWITCH(pads_vocab, "published runs pad vocabularies to a multiple of 128 tp"),
    SWITCH(uses_dropout, "published runs use dropout, if the model has it"),
    SWITCH(lacks_sequence_parallel, "by default, runs have no sequence parallelism"),
    SWITCH(whole_microbatch,
           "by default, runs without a pipeline do not accumulate gradients"),
    ROW(TEXT, "selective_modules", selective_modules, false, 0, 0, NULL,
        "modules that selective recomputation repeats, by commas; default: norms, "
        "activations, scores and mla_up_proj"),
    SWITCH(selective_is_full, "selective recomputation in runs repeats whole layers"),
    SWITCH(casts_once_by_tensor, "casts_once does not hold with one scale per row"),
    SWITCH(reports_first_rank, "its memory figure is the first rank's"),
    MONTH(fuses_attention_since, "first month with fused attention, as 202304"),
    MONTH(stages_split_batch_before,
          "month, as 202504, before which runs had as many micro-batches as stages"),
    MUST_SWITCH(counts_context, "its memory figure includes context and communication"),
    CHOICE(recompute, recompute_modes, "default recomputation"),
    ROW(INTEGER, "default_zero", stack.default_zero, true, -1, 3, NULL,
        "default ZeRO stage; -1: 3 if sharded, else 0"),
    ROW(INTEGER, "pipeline_zero", stack.pipeline_zero, false, -1, 3, NULL,
        "default ZeRO stage with a pipeline, if it differs"),
    SWITCH(reshards_in_pipelines, "by default, ZeRO 3 reshards with pipelines, too"),
    CHOICE(cp_method, ms_cp_method_names, "default method of context parallelism"),
    CAN_CP("can_cp_all_gather", MS_CP_ALL_GATHER, "gathers keys and values over cp"),
    CAN_CP("can_cp_ring", MS_CP_RING, "passes keys and values around a ring"),
    CAN_CP("can_cp_ulysses", MS_CP_ULYSSES, "splits heads over cp by all-to-all"),
    TEXT("schedules", schedules,
         "pipeline schedules, by commas (\"file\": those from files), or \"all\""),
    ROW(TEXT, "default_schedule", default_schedule, false, 0, 0, NULL,
        "default pipeline schedule, one of `schedules`, if not 1f1b"),
    SWITCH(states_layouts,
           "uneven pipeline stages are stated by --pipeline-model-parallel-layout"),
    CHOICE(optimizer_sync, ms_optimizer_sync_names, "event that the optimizer waits for"),
    CHOICE(layer_split, ms_layer_split_names,
           "default distribution of layers over pipeline stages"),
    {0}};

/* Takes the next name off a comma-separated list, without blanks around it. */
static const char *next_name(ms_arena *arena, const char **at)
{
    const char *first = *at + strspn(*at, " ,");
    size_t length = strcspn(first, ",");
    *at = first + length;
    while (length > 0 && first[length - 1] == ' ')
        length--;
    return ms_arena_printf(arena, "%.*s", (int)length, first);
}

static ms_status find_schedule(ms_ctx *cx, ms_jval root, const char *name,
                               ms_schedule_kind *out)
{
    if (ms_schedule_parse(name, out))
        return MS_OK;
    ms_fail(cx, MS_EINPUT, ms_json_loc(cx, root), "\"%s\" is no pipeline schedule", name);
    const char *nearest = ms_nearest(name, ms_schedule_names, MS_CUSTOM);
    return nearest != NULL ? ms_hint(cx, "did you mean \"%s\"?", nearest)
                           : ms_hint(cx, "use names as in \"1f1b, interleaved\", or "
                                         "\"all\"");
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
        if (strcmp(name, "file") == 0) {
            can[MS_CUSTOM] = true;
            continue;
        }
        MS_TRY(find_schedule(cx, root, name, &kind));
        can[kind] = true;
    }
    return MS_OK;
}

static ms_status read_default_schedule(ms_ctx *cx, ms_jval root, const stack_file *file,
                                       ms_stack *out)
{
    ms_jval value;
    out->default_schedule = MS_1F1B;
    if (file->default_schedule == NULL)
        return MS_OK;
    (void)ms_json_member(cx, root, "default_schedule", &value);
    MS_TRY(find_schedule(cx, value, file->default_schedule, &out->default_schedule));
    return out->can_schedule[out->default_schedule]
               ? MS_OK
               : ms_json_fail(cx, value, "schedules do not have the default \"%s\"",
                              file->default_schedule);
}

static ms_status read_modules(ms_ctx *cx, ms_jval root, const char *text, int *out)
{
    ms_jval value;
    *out = MS_MODULES_DEFAULT;
    if (text == NULL || ms_modules_parse(text, out))
        return MS_OK;
    (void)ms_json_member(cx, root, "selective_modules", &value);
    return ms_json_fail(cx, value, "\"%s\" is no list of modules to recompute", text);
}

ms_status ms_stack_read(ms_ctx *cx, ms_jval root, ms_stack *out)
{
    /* absent numbers are 0 without a source */
    stack_file file = {.stack = {.pipeline_zero = -1}};
    MS_TRY(ms_coefficients_read(cx, root, stack_fields, &file));
    *out = file.stack;
    out->attention = (ms_attention_kernel)file.attention;
    out->recompute = recompute_modes[file.recompute];
    out->layer_split = (ms_layer_split)file.layer_split;
    out->cp_method = (ms_cp_method)file.cp_method;
    out->optimizer_sync = (ms_optimizer_sync)file.optimizer_sync;
    out->compile = (ms_compile)(MS_COMPILE_NONE + file.compile);
    MS_TRY(read_modules(cx, root, file.selective_modules, &out->selective_modules));
    MS_TRY(read_schedules(cx, root, file.schedules, out->can_schedule));
    return read_default_schedule(cx, root, &file, out);
}

/* Loads one file, without the stack that it names as its counterpart. */
static ms_status load_file(ms_ctx *cx, const char *name, ms_stack **out)
{
    const char *path = NULL;
    ms_jdoc *doc = NULL;
    ms_jval root;
    MS_TRY(ms_config_resolve(cx, "stacks", "stack", name, &path));
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    *out = MS_NEW(cx->arena, ms_stack);
    ms_status status = ms_stack_read(cx, root, *out);
    ms_json_close(doc);
    return status;
}

ms_status ms_stack_load(ms_ctx *cx, const char *name, const ms_stack **out)
{
    const char *at = ms_config_is_path(name) ? NULL : strchr(name, '@');
    if (at != NULL)
        name = ms_arena_strndup(cx->arena, name, (size_t)(at - name));
    ms_stack *stack = NULL, *counterpart = NULL;
    MS_TRY(load_file(cx, name, &stack));
    stack->version = at == NULL ? NULL : at + 1;
    if (stack->compile_counterpart != NULL) {
        MS_TRY(load_file(cx, stack->compile_counterpart, &counterpart));
        stack->counterpart = counterpart;
    }
    *out = stack;
    return MS_OK;
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
                   {&adapted.loss_bytes, 4},      {&adapted.host_update_bytes, 7}};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        if (figures[i].figure->value == 0.0) /* there is no such thing */
            continue;
        *figures[i].figure =
            (ms_coefficient){figures[i].elements * bytes, MS_SPEC,
                             "states, messages and logits are in the compute type"};
    }
    adapted.states_in_compute_type = false;
    return adapted;
}

ms_stack ms_stack_with_gathers(const ms_stack *stack, bool kept)
{
    ms_stack fixed = *stack;
    fixed.regather = !kept;
    fixed.holds_gathers_alone = false;
    return fixed;
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

int ms_stack_switches(ms_arena *arena, const ms_stack *stack, const ms_stack_switch **out)
{
    const size_t most = sizeof stack_fields / sizeof *stack_fields;
    ms_stack_switch *list = MS_NEW_ARRAY(arena, most, ms_stack_switch);
    int num = 0;
    for (const ms_field *field = stack_fields; field->kind != MS_FIELD_END; field++) {
        bool is_switch =
            field->kind == MS_FIELD_BOOL && strncmp(field->key, "can_", 4) != 0;
        if (is_switch && *(const bool *)((const char *)stack + field->offset))
            list[num++] = (ms_stack_switch){field->key, field->help};
    }
    *out = list;
    return num;
}
