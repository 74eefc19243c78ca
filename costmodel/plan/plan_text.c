/* Messages for refused plans, and the one-line summary of a plan. */
#include "base/number.h"
#include "costmodel/plan/plan_field.h"

/* Lists the numbers of ranks that may share the attention heads: "1 2 4 8". */
static const char *head_ranks_text(ms_ctx *cx, long heads, long kv_heads, bool may_copy)
{
    const char *text = "1";
    for (long i = 2; i <= heads && i <= 1024; i++)
        if (heads % i == 0 && (kv_heads % i == 0 || (may_copy && i % kv_heads == 0)))
            text = ms_arena_printf(cx->arena, "%s %ld", text, i);
    return text;
}

static ms_status fail_ranks(ms_ctx *cx, const ms_plan *plan, ms_loc loc)
{
    const long *size = plan->size;
    double product = 1.0;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        product *= (double)size[axis];
    const char *num_gpus =
        plan->gpus == 1 ? "there is 1 GPU"
                        : ms_arena_printf(cx->arena, "there are %ld GPUs", plan->gpus);
    ms_status status = ms_fail(
        cx, MS_EINPUT, loc,
        "pp %ld x dp_replicate %ld x dp_shard %ld x cp %ld x tp %ld = %.0f ranks, but "
        "%s",
        size[MS_PP], size[MS_DP_REPLICATE], size[MS_DP_SHARD], size[MS_CP], size[MS_TP],
        product, num_gpus);
    double others = size[MS_DP_SHARD] > 0 ? product / (double)size[MS_DP_SHARD] : 0.0;
    if (others >= 1.0 && others <= (double)plan->gpus && plan->gpus % (long)others == 0)
        ms_hint(cx, "dp_shard %ld would use all of them", plan->gpus / (long)others);
    return status;
}

static ms_status fail_heads(ms_ctx *cx, const ms_plan *plan, const ms_model *model,
                            ms_loc loc)
{
    bool is_mla = model->attention == MS_ATTENTION_MLA;
    long kv_heads = is_mla ? model->num_heads : model->num_kv_heads;
    bool ulysses = ms_plan_head_ranks(plan) > plan->size[MS_TP];
    bool only_kv = !ulysses && model->num_heads % plan->size[MS_TP] == 0;
    ms_status status =
        only_kv ? ms_fail(cx, MS_EINPUT, loc,
                          "%ld key-value heads can neither be divided by tp %ld nor "
                          "copied evenly to its ranks",
                          kv_heads, plan->size[MS_TP])
                : ms_fail(cx, MS_EINPUT, loc,
                          "%ld attention heads and %ld key-value heads cannot be divided "
                          "by tp %ld%s",
                          model->num_heads, kv_heads, plan->size[MS_TP],
                          ulysses ? ms_arena_printf(cx->arena,
                                                    " x cp %ld (ulysses splits heads)",
                                                    plan->size[MS_CP])
                                  : "");
    ms_hint(cx, "%s may be one of %s", ulysses ? "tp x cp" : "tp",
            head_ranks_text(cx, model->num_heads, kv_heads,
                            !ulysses && !is_mla && !model->qk_norm_whole));
    return status;
}

static ms_status fail_mamba(ms_ctx *cx, const ms_plan *plan, const ms_model *model,
                            ms_loc loc)
{
    if (plan->size[MS_CP] > 1)
        return ms_fail(cx, MS_EINPUT, loc,
                       "cp %ld: context parallelism of Mamba-2 layers is not priced",
                       plan->size[MS_CP]);
    ms_status status = ms_fail(cx, MS_EINPUT, loc,
                               "%ld groups of Mamba-2 heads cannot be divided by tp %ld",
                               model->mamba.num_groups, plan->size[MS_TP]);
    ms_hint(cx, "tp may be one of %s",
            head_ranks_text(cx, model->mamba.num_groups, model->mamba.num_groups, false));
    return status;
}

static ms_status fail_ffn(ms_ctx *cx, const ms_plan *plan, const ms_model *model,
                          ms_loc loc)
{
    if (model->moe.num_experts == 0)
        return ms_fail(cx, MS_EINPUT, loc,
                       "the MLP width %ld cannot be divided by tp %ld", model->ffn_hidden,
                       plan->size[MS_TP]);
    return ms_fail(
        cx, MS_EINPUT, loc,
        "MLP widths %ld (dense) and %ld (shared experts) must be divisible by tp %ld, "
        "and %ld (routed experts) by etp %ld",
        model->ffn_hidden, model->moe.shared_ffn_hidden, plan->size[MS_TP],
        model->moe.ffn_hidden, plan->etp);
}

ms_status ms_plan_check_positions(ms_ctx *cx, const ms_plan *plan, const ms_model *model,
                                  ms_loc loc)
{
    if (model->position != MS_POSITION_LEARNED ||
        plan->sequence_length <= model->max_positions)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, loc,
            "a sequence of %ld is longer than the %ld learned positions of %s",
            plan->sequence_length, model->max_positions, model->name);
    ms_hint(cx, "try --seq %ld", model->max_positions);
    return MS_EINPUT;
}

static ms_status fail_sequence(ms_ctx *cx, const ms_plan *plan, const ms_model *model,
                               ms_loc loc)
{
    MS_TRY(ms_plan_check_positions(cx, plan, model, loc));
    long cp = plan->size[MS_CP], tp = plan->size[MS_TP];
    bool is_balanced = ms_plan_balances_sequence(plan);
    ms_status status = ms_fail(
        cx, MS_EINPUT, loc, "a sequence of %ld tokens cannot be divided by cp %ld%s%s",
        plan->sequence_length, cp,
        is_balanced ? " in 2 cp pieces (head-tail balance)" : "",
        plan->sequence_parallel && tp > 1 ? " and each part by tp (sequence parallelism)"
                                          : "");
    ms_hint(cx, "a multiple of %ld works", (is_balanced ? 2 * cp : cp) * tp);
    return status;
}

static ms_status fail_experts(ms_ctx *cx, const ms_plan *plan, const ms_model *model,
                              ms_loc loc)
{
    const long *size = plan->size;
    if (model->moe.num_experts == 0)
        return ms_fail(cx, MS_EINPUT, loc,
                       "a model without experts needs ep 1 and etp 1, not %ld and %ld",
                       plan->ep, plan->etp);
    if (plan->etp != 1 && plan->etp != size[MS_TP])
        return ms_fail(cx, MS_EINPUT, loc, "etp is %ld, must be 1 or tp (%ld)", plan->etp,
                       size[MS_TP]);
    if (plan->ep < 1 || model->moe.num_experts % plan->ep != 0)
        return ms_fail(cx, MS_EINPUT, loc, "%ld experts cannot be divided by ep %ld",
                       model->moe.num_experts, plan->ep);
    return ms_fail(cx, MS_EINPUT, loc,
                   "ep %ld x etp %ld does not divide dp_shard %ld x cp %ld x tp %ld",
                   plan->ep, plan->etp, size[MS_DP_SHARD], size[MS_CP], size[MS_TP]);
}

static ms_status fail_layers(ms_ctx *cx, const ms_plan *plan, const ms_model *model,
                             ms_loc loc)
{
    long pp = plan->size[MS_PP], v = plan->virtual_stages;
    if (v < 1 || (plan->num_stage_layers == 0 && v > model->num_layers / pp)) {
        return ms_fail(
            cx, MS_EINPUT, loc,
            "pp %ld with %ld virtual stage%s per rank is more than the model's %ld layers",
            pp, v, v == 1 ? "" : "s", model->num_layers);
    }
    if (plan->recompute_layers < 0 || plan->recompute_layers > model->num_layers)
        return ms_fail(cx, MS_EINPUT, loc,
                       "recompute of %ld layers, but the model has %ld",
                       plan->recompute_layers, model->num_layers);
    if (plan->num_stage_layers != pp * v)
        return ms_fail(cx, MS_EINPUT, loc,
                       "layers_per_stage has %ld entries, but there are %ld stages",
                       plan->num_stage_layers, pp * v);
    double sum = 0.0;
    for (long i = 0; i < plan->num_stage_layers; i++) {
        if (plan->layers_per_stage[i] < 0)
            return ms_fail(cx, MS_EINPUT, loc, "stage %ld has %ld layers", i,
                           plan->layers_per_stage[i]);
        sum += (double)plan->layers_per_stage[i];
    }
    return ms_fail(cx, MS_EINPUT, loc,
                   "layers_per_stage adds up to %.0f, but the model has %ld layers", sum,
                   model->num_layers);
}

static ms_status fail_file(ms_ctx *cx, const ms_plan *plan, ms_loc loc)
{
    const ms_schedule_table *table = plan->schedule_table;
    long chunks = table->num_stages / table->num_ranks, m = ms_plan_microbatches(plan);
    const char *file = plan->schedule_file;
    if (table->num_ranks != plan->size[MS_PP])
        return ms_fail(cx, MS_EINPUT, loc, "%s has rows for %d ranks, but pp is %ld",
                       file, table->num_ranks, plan->size[MS_PP]);
    if (chunks != plan->virtual_stages)
        return ms_fail(cx, MS_EINPUT, loc,
                       "%s has %ld stages on each rank, but virtual_stages is %ld", file,
                       chunks, plan->virtual_stages);
    if (table->num_microbatches == m)
        return ms_fail(cx, MS_EINPUT, loc, "%s: %s", file,
                       ms_plan_schedule_objection(plan));
    ms_status status =
        ms_fail(cx, MS_EINPUT, loc, "%s has %d micro-batches, but the plan has %ld", file,
                table->num_microbatches, m);
    ms_hint(cx, "a global batch of %ld makes it %d",
            table->num_microbatches * ms_plan_data_parallel(plan) * plan->microbatch,
            table->num_microbatches);
    return status;
}

static ms_status fail_schedule(ms_ctx *cx, const ms_plan *plan, ms_loc loc)
{
    if (plan->schedule == MS_CUSTOM)
        return fail_file(cx, plan, loc);
    ms_status status = ms_fail(
        cx, MS_EINPUT, loc,
        "%s with pp %ld, %ld virtual stage%s, group %ld and %ld micro-batch%s: %s",
        ms_plan_schedule_name(plan), plan->size[MS_PP], plan->virtual_stages,
        plan->virtual_stages == 1 ? "" : "s", plan->microbatch_group,
        ms_plan_microbatches(plan), ms_plan_microbatches(plan) == 1 ? "" : "es",
        ms_plan_schedule_objection(plan));
    if (ms_plan_schedule_objection(plan) == ms_too_many_actions)
        ms_hint(cx, "a larger --microbatch or a smaller --global-batch has fewer");
    else if (ms_schedule_traits_of(plan->schedule).groups && plan->size[MS_PP] > 1 &&
             plan->virtual_stages > 1)
        ms_hint(cx, "micro-batches divisible by pp always work, with group %ld",
                plan->size[MS_PP]);
    return status;
}

static ms_status fail_batch(ms_ctx *cx, const ms_plan *plan, ms_loc loc)
{
    return ms_fail(
        cx, MS_EINPUT, loc,
        "a global batch of %ld sequence%s cannot be divided by dp_replicate %ld x "
        "dp_shard %ld x micro-batch %ld",
        plan->global_batch, plan->global_batch == 1 ? "" : "s",
        plan->size[MS_DP_REPLICATE], plan->size[MS_DP_SHARD], plan->microbatch);
}

static ms_status fail_modules(ms_ctx *cx, const ms_plan *plan, const ms_model *model,
                              ms_loc loc)
{
    const char *does = plan->shared_overlap ? "overlap" : "recompute";
    if ((ms_plan_lacking_modules(plan, model) & MS_MODULE_MLA_UP_PROJ) != 0) {
        return ms_fail(cx, MS_EINPUT, loc,
                       "recomputation of mla_up_proj needs latent attention, which %s "
                       "has not",
                       model->name);
    }
    if (model->moe.num_experts == 0)
        return ms_fail(cx, MS_EINPUT, loc, "%s has no experts to %s", model->name, does);
    if (model->moe.shared_ffn_hidden == 0)
        return ms_fail(cx, MS_EINPUT, loc, "%s has no shared experts to %s", model->name,
                       does);
    ms_fail(cx, MS_EINPUT, loc,
            "shared experts that overlap the exchange of tokens cannot be recomputed");
    return ms_hint(cx, "leave shared_experts out of --recompute-modules");
}

static ms_status fail_lora(ms_ctx *cx, const ms_plan *plan, ms_loc loc)
{
    if (ms_plan_lora(plan).rank == 0) {
        ms_fail(cx, MS_EINPUT, loc, "unknown layers for adapters: \"%s\"",
                plan->lora_targets);
        ms_hint(cx,
                "known are attention, mlp, all, and lists of q, k, v, o, gate, up and "
                "down");
        return MS_EINPUT;
    }
    if (plan->lora_rank % plan->size[MS_TP] != 0)
        return ms_fail(cx, MS_EINPUT, loc,
                       "adapters of rank %ld cannot be split over tp %ld",
                       plan->lora_rank, plan->size[MS_TP]);
    ms_fail(cx, MS_EINPUT, loc, "adapters of routed experts are not modelled");
    ms_hint(cx, "--lora-targets attention leaves the experts frozen");
    return MS_EINPUT;
}

static ms_status fail_zero(ms_ctx *cx, const ms_plan *plan, ms_loc loc)
{
    if (plan->zero < 0 || plan->zero > 3)
        return ms_fail(cx, MS_EINPUT, loc, "zero is %ld, must be between 0 and 3",
                       plan->zero);
    return ms_fail(cx, MS_EINPUT, loc,
                   "reshard_ranks %ld does not divide the %ld ranks of dp_shard x cp",
                   plan->reshard_ranks, plan->size[MS_DP_SHARD] * plan->size[MS_CP]);
}

ms_status ms_plan_check(ms_ctx *cx, const ms_plan *plan, const ms_model *model,
                        ms_loc loc)
{
    switch (ms_plan_refusal(plan, model)) {
    case MS_REFUSE_RANKS:
        return fail_ranks(cx, plan, loc);
    case MS_REFUSE_HEADS:
        return fail_heads(cx, plan, model, loc);
    case MS_REFUSE_MAMBA:
        return fail_mamba(cx, plan, model, loc);
    case MS_REFUSE_FFN:
        return fail_ffn(cx, plan, model, loc);
    case MS_REFUSE_SEQUENCE:
        return fail_sequence(cx, plan, model, loc);
    case MS_REFUSE_BATCH:
        return fail_batch(cx, plan, loc);
    case MS_REFUSE_EXPERTS:
        return fail_experts(cx, plan, model, loc);
    case MS_REFUSE_LAYERS:
        return fail_layers(cx, plan, model, loc);
    case MS_REFUSE_MODULES:
        return fail_modules(cx, plan, model, loc);
    case MS_REFUSE_SCHEDULE:
        return fail_schedule(cx, plan, loc);
    case MS_REFUSE_ZERO:
        return fail_zero(cx, plan, loc);
    case MS_REFUSE_LORA:
        return fail_lora(cx, plan, loc);
    case MS_REFUSE_ORDER:
        return ms_fail(
            cx, MS_EINPUT, loc,
            "experts with ep %ld and etp %ld need the axes dp_shard, cp, tp innermost "
            "and in this order",
            plan->ep, plan->etp);
    case MS_REFUSE_FRAMEWORK:
    case MS_LEGAL:
    case MS_NUM_REFUSALS:
        break;
    }
    return MS_OK;
}

/* ---- one line ---- */

static const char *axes_text(ms_arena *arena, const ms_plan *plan)
{
    const char *text = "";
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++) {
        int axis = plan->order[i];
        if (plan->size[axis] > 1)
            text =
                ms_arena_printf(arena, "%s%s%s %ld", text, text[0] == '\0' ? "" : " x ",
                                ms_plan_axis_names[axis], plan->size[axis]);
    }
    return text[0] == '\0' ? "1 rank" : text;
}

static const char *schedule_text(ms_arena *arena, const ms_plan *plan)
{
    if (plan->size[MS_PP] == 1)
        return "";
    const char *name = ms_plan_schedule_name(plan);
    if (plan->memory_limit > 0.0)
        return ms_arena_printf(arena, ", %s limit %g", name, plan->memory_limit);
    if (!ms_schedule_traits_of(plan->schedule).groups)
        return ms_arena_printf(arena, ", %s", name);
    if (plan->microbatch_group == 0)
        return ms_arena_printf(arena, ", %s v%ld", name, plan->virtual_stages);
    return ms_arena_printf(arena, ", %s v%ld group %ld", name, plan->virtual_stages,
                           plan->microbatch_group);
}

static const char *recompute_text(ms_arena *arena, const ms_plan *plan)
{
    if (plan->recompute == MS_RECOMPUTE_NONE)
        return "";
    const char *name = ms_recompute_names[plan->recompute];
    if (plan->recompute == MS_RECOMPUTE_FULL && plan->recompute_layers > 0)
        return ms_arena_printf(arena, ", recompute %s on %ld layers", name,
                               plan->recompute_layers);
    if (plan->recompute == MS_RECOMPUTE_AUTO && plan->recompute_budget_frac >= 0.0)
        return ms_arena_printf(arena, ", recompute %s %.3g", name,
                               plan->recompute_budget_frac);
    if (plan->recompute == MS_RECOMPUTE_SELECTIVE && plan->recompute_modules != 0)
        return ms_arena_printf(
            arena, ", recompute %s %s", name,
            ms_plan_value_text(arena, plan, MS_CHOOSE_RECOMPUTE_MODULES));
    return ms_arena_printf(arena, ", recompute %s", name);
}

/* Text of a plan's context parallelism, without its default method and balance. */
static const char *context_text(ms_arena *arena, const ms_plan *plan)
{
    if (plan->size[MS_CP] == 1)
        return "";
    const char *chunks = ms_plan_has_unequal_ranks(plan) ? " contiguous" : "";
    if (plan->cp_method != MS_CP_ALL_GATHER)
        return ms_arena_printf(arena, ",%s %s cp", chunks,
                               ms_cp_method_names[plan->cp_method]);
    return chunks[0] == '\0' ? "" : ms_arena_printf(arena, ",%s cp", chunks);
}

/* Names of a plan's switches that are on and have an effect: ", sp, async tp". */
static const char *switches_text(ms_arena *arena, const ms_plan *plan)
{
    const char *text = "";
    for (int i = 0; i < MS_NUM_CHOICES; i++) {
        const char *on = ms_plan_fields[i].text_on;
        if (on != NULL && ms_plan_get(plan, (ms_choice)i) &&
            ms_plan_matters(plan, (ms_choice)i))
            text = ms_arena_printf(arena, "%s, %s", text, on);
    }
    return text;
}

static const char *lora_text(ms_arena *arena, const ms_plan *plan)
{
    if (plan->lora_rank == 0)
        return "";
    const char *base = plan->lora_base == MS_BASE_NF4 ? " on nf4" : "";
    return ms_arena_printf(arena, ", lora %ld of %s%s", plan->lora_rank,
                           plan->lora_targets, base);
}

/* Text of what is in host memory, layer inputs aside: ", 0.5 of activations and optimizer
 * states on host". */
static const char *offload_text(ms_arena *arena, const ms_plan *plan)
{
    static const char *const optimizers[] = {"", "optimizer states", "optimizer"};
    double frac = plan->offload_activations_frac;
    const char *optimizer = optimizers[plan->offload_optimizer];
    if (frac <= 0.0 && *optimizer == '\0')
        return "";
    const char *activations =
        frac > 0.0 ? ms_arena_printf(arena, "%.3g of activations", frac) : "";
    return ms_arena_printf(arena, ", %s%s%s on host", activations,
                           frac > 0.0 && *optimizer != '\0' ? " and " : "", optimizer);
}

static const char *quantized_text(ms_arena *arena, const char *what,
                                  ms_quantized_bits bits)
{
    return bits == MS_NOT_QUANTISED ? ""
                                    : ms_arena_printf(arena, ", %s in %s bits", what,
                                                      ms_quantized_bits_names[bits]);
}

/* How kernels are launched: ", compile none, cuda graphs of layers". */
static const char *host_text(ms_arena *arena, const ms_plan *plan)
{
    static const char *const graphs[] = {"", ", cuda graphs of layers",
                                         ", one cuda graph"};
    const char *compile =
        plan->compile == MS_COMPILE_OF_STACK
            ? ""
            : ms_arena_printf(arena, ", compile %s", ms_compile_names[plan->compile]);
    return ms_arena_printf(arena, "%s%s", compile, graphs[plan->cuda_graphs]);
}

/* Lengths of sequences, and what is special about the devices: ", sequences packed, slow
 * nodes 3:0.8, devices reversed". */
static const char *data_text(ms_arena *arena, const ms_plan *plan)
{
    const char *text = "";
    if (plan->packing != MS_NOT_PACKED)
        text = ms_arena_printf(arena, ", sequences %s", ms_packing_names[plan->packing]);
    if (plan->slow_nodes != NULL)
        text = ms_arena_printf(arena, "%s, slow nodes %s", text, plan->slow_nodes);
    return plan->device_order == MS_DEVICES_REVERSED
               ? ms_arena_printf(arena, "%s, devices reversed", text)
               : text;
}

/* Units of parameters and gradients: ", units of 4 layers, buckets of 25 MB". */
static const char *units_text(ms_arena *arena, const ms_plan *plan)
{
    const char *text = "";
    char bytes[32];
    if (plan->unit_layers > 1)
        text = ms_arena_printf(arena, ", units of %ld layers", plan->unit_layers);
    if (plan->bucket_bytes > 0.0)
        text = ms_arena_printf(
            arena, "%s, buckets of %s", text,
            ms_format_quantity(bytes, sizeof bytes, plan->bucket_bytes, MS_UNIT_BYTES));
    return text;
}

static const char *reshard_text(ms_arena *arena, const ms_plan *plan)
{
    if (plan->zero == 3 && !plan->reshard_after_forward)
        return " kept gathered";
    long ranks = plan->zero == 3 ? ms_plan_secondary_shards(plan) : 0;
    return ranks > 0 ? ms_arena_printf(arena, " resharded over %ld", ranks) : "";
}

/* Stated types and optimizer: ", grads bf16, optimizer int8, muon". */
static const char *states_text(ms_arena *arena, const ms_plan *plan)
{
    const char *text = "";
    for (int i = MS_CHOOSE_PARAM_DTYPE; i <= MS_CHOOSE_RECIPE; i++)
        if (!ms_plan_is_plain(plan, (ms_choice)i))
            text = ms_arena_printf(arena, "%s, %s %s", text, ms_plan_fields[i].key,
                                   ms_plan_value_text(arena, plan, (ms_choice)i));
    return plan->optimizer == MS_OPTIMIZER_ADAMW
               ? text
               : ms_arena_printf(arena, "%s, %s", text,
                                 ms_optimizer_names[plan->optimizer]);
}

char *ms_plan_text(ms_arena *arena, const ms_plan *plan)
{
    const char *experts = "";
    if (plan->ep * plan->etp > 1)
        experts = ms_arena_printf(arena, ", ep %ld etp %ld", plan->ep, plan->etp);
    return ms_arena_printf(
        arena, "%s%s%s, mbs %ld%s, zero %ld%s%s%s%s%s%s%s, %s%s%s%s%s",
        axes_text(arena, plan), context_text(arena, plan), experts, plan->microbatch,
        schedule_text(arena, plan), plan->zero, reshard_text(arena, plan),
        units_text(arena, plan), switches_text(arena, plan), recompute_text(arena, plan),
        offload_text(arena, plan), quantized_text(arena, "gathers", plan->gather_bits),
        quantized_text(arena, "reductions", plan->reduce_bits),
        ms_dtype_names[plan->compute], states_text(arena, plan), lora_text(arena, plan),
        host_text(arena, plan), data_text(arena, plan));
}
