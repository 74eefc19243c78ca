/* Reads rows of a file of published runs: the model, hardware and plan of each. */
#include "sim/validate/pubrun.h"

#include "sim/validate/pubrun_priv.h"
#include "sim/validate/row_errors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BYTES_PER_GIB 1073741824.0

typedef struct row_reader {
    ms_ctx *cx;
    ms_pubrun_store *store;
    const ms_name_tables *names;
    const ms_pubrun_cells *cells;
    ms_pubrun *run;
    ms_pubrun_notes notes;
} row_reader;

/* Distributes data-parallel ranks over dp_replicate and dp_shard. Megatron's tables state
 * them all in one column: they go to dp_shard, over which ZeRO 1 to 3 shards.
 * torchtitan's dp_shard includes the context-parallel ranks, as zero_shard does. */
static void set_data_parallel(row_reader *r)
{
    const ms_pubrun_cells *c = r->cells;
    ms_plan *plan = &r->run->plan;
    long cp = plan->size[MS_CP],
         dp = plan->gpus / plan->size[MS_TP] / plan->size[MS_PP] / cp;
    long replicate = ms_pubrun_degree(c->dp_replicate),
         shard = ms_pubrun_degree(c->dp_shard);
    if (replicate * shard == dp * cp && shard % cp == 0)
        shard /= cp;
    long shards =
        c->optimizer_instances > 0 ? dp * cp / c->optimizer_instances : c->zero_shard;
    bool is_stated = shards > 0 && shards % cp == 0 && dp * cp % shards == 0;
    if (is_stated) {
        shard = shards / cp;
        replicate = dp / shard;
    }
    bool is_hybrid = replicate > 1 && (shard > 1 || is_stated) && replicate * shard == dp;
    plan->size[MS_DP_REPLICATE] = is_hybrid ? replicate : 1;
    plan->size[MS_DP_SHARD] = is_hybrid ? shard : dp;
}

/* Sets the tensor parallelism of experts: what the row states, even if no plan can have it.
 * Megatron Core's expert_tensor_parallel_size is tp unless given. Recipes with experts
 * narrower than the hidden size set it to 1 (DeepSeek-V3, Qwen3), those with wider ones
 * keep tp (Mixtral, Grok-1, Llama 4); other models are assumed to do so too. An illegal
 * value that is assumed becomes 1. */
static void set_expert_tensor(row_reader *r)
{
    ms_plan *plan = &r->run->plan;
    const ms_model *model = r->run->model;
    long tp = plan->size[MS_TP];
    if (!r->run->stack->splits_experts || tp == 1 || model->moe.num_experts == 0)
        return;
    if (r->cells->expert_tensor > 0) {
        plan->etp = r->cells->expert_tensor;
        return;
    }
    plan->etp = model->moe.ffn_hidden > model->hidden ? tp : 1;
    if (ms_plan_refusal(plan, r->run->model) != MS_LEGAL)
        plan->etp = 1;
    ms_pubrun_note(&r->notes, "etp %ld", plan->etp);
}

/* ZeRO stage in a framework's name: "DeepSpeed ZeRO-3", "zero stage 2"; -1 if none is
 * named. */
static long zero_stage_in_name(const char *framework)
{
    const char *at = strstr(framework, "zero");
    if (at == NULL)
        return -1;
    at += strspn(at, "zerostage=");
    return *at >= '0' && *at <= '3' ? *at - '0' : -1;
}

/* ZeRO stage that a framework's name or a row's replicas imply, other than the stack's
 * default; -1: none. If the default shards parameters, "PyTorch DDP", or dp_replicate
 * alone, implies 0; if not, "Megatron-FSDP" implies 3. */
static long zero_by_name_or_replicas(const ms_pubrun_cells *c, const ms_stack *stack,
                                     const char *framework)
{
    bool shards = stack->default_zero < 0 || stack->default_zero == 3;
    bool is_fsdp = strstr(framework, "fsdp") != NULL;
    bool is_ddp = !is_fsdp && strstr(framework, "ddp") != NULL;
    bool replicates = c->dp_replicate > 1 && c->dp_shard <= 1;
    if (!shards)
        return is_fsdp ? 3 : -1;
    return is_ddp || replicates ? 0 : -1;
}

static void set_zero(row_reader *r)
{
    ms_plan *plan = &r->run->plan;
    const char *framework = ms_plain_text(r->cx->arena, r->cells->framework);
    plan->zero = r->cells->zero_stage;
    if (plan->zero < 0)
        plan->zero = zero_stage_in_name(framework);
    if (plan->zero < 0) {
        plan->zero = zero_by_name_or_replicas(r->cells, r->run->stack, framework);
        if (plan->zero >= 0)
            ms_pubrun_note(&r->notes, "zero %ld by name or replicas", plan->zero);
    }
    bool assumed = plan->zero < 0;
    if (assumed) {
        plan->zero = r->run->stack->default_zero;
        if (plan->zero < 0)
            plan->zero = plan->size[MS_DP_SHARD] > 1 ? 3 : 0;
        r->run->zero_open = true;
        ms_pubrun_note(&r->notes, "zero %ld", plan->zero);
    }
    if (plan->zero == 2 && r->run->stack->stage_2_is_fsdp) {
        plan->zero = 3;
        plan->reshard_after_forward = false;
        ms_pubrun_note(&r->notes, "zero 2 as 3 without resharding");
    }
    if (assumed && plan->zero == 3 && plan->size[MS_PP] > 1 &&
        !r->run->stack->reshards_in_pipelines) {
        plan->reshard_after_forward = false;
        ms_pubrun_note(&r->notes, "no resharding");
    }
}

/* Whether the table row's framework had sequence parallelism: Korthikanti et al. (arXiv
 * 2205.05198) brought it to Megatron-LM in May 2022; the older forks of DeepSpeed,
 * BigScience and EleutherAI lack it. */
static bool has_sequence_parallelism(const row_reader *r)
{
    return !ms_pubrun_is_before(r->cells, 202205) &&
           !r->run->stack->lacks_sequence_parallel;
}

/* Whether tensor parallelism is asynchronous where the table row does not say it: by
 * Megatron's --tp-comm-overlap; on TPUs, the devices of a torus, where XLA splits products
 * into parts that run beside their collectives unless told not to (Wang et al., ASPLOS
 * 2023, "Overlap communication with dependent computation via decomposition"). */
static bool assumes_async_tp(const row_reader *r)
{
    const char *flags = ms_plain_text(r->cx->arena, r->cells->compile);
    return strstr(flags, "tpcommoverlap") != NULL ||
           r->run->cluster->levels[0].topology == MS_TORUS;
}

/* Sets sequence and asynchronous tensor parallelism. */
static void set_tensor(row_reader *r)
{
    const ms_pubrun_cells *c = r->cells;
    ms_plan *plan = &r->run->plan;
    bool many = plan->size[MS_TP] > 1;
    bool assumed = has_sequence_parallelism(r) &&
                   c->seq % (plan->size[MS_TP] * plan->size[MS_CP]) == 0;
    plan->sequence_parallel = many && (c->sp > 0 || (c->sp < 0 && assumed));
    if (many && c->sp < 0)
        ms_pubrun_note(&r->notes, "%ssequence parallel", assumed ? "" : "not ");
    bool async = c->async_tp < 0 ? assumes_async_tp(r) : c->async_tp > 0;
    plan->async_tp = many && async;
    if (many && c->async_tp < 0)
        ms_pubrun_note(&r->notes, "%sasynchronous tp", async ? "" : "no ");
}

/* ---- batch, recomputation, precision ---- */

/* Sequences per micro-batch where the table row does not state them: 1 as in Megatron's
 * scripts; or a rank's whole share where its stack accumulates gradients only on request
 * (torchtitan config/job_config.py, global_batch_size -1; MaxText configs/base.yml,
 * gradient_accumulation_steps 1). torchtitan's pipelines had as many micro-batches as
 * stages (pipeline_parallel_microbatches) until 2025, then micro-batches of 1 sequence
 * (pipeline_parallel_microbatch_size). */
static long default_microbatch(const row_reader *r)
{
    const ms_plan *plan = &r->run->plan;
    const ms_stack *stack = r->run->stack;
    long stages = plan->size[MS_PP], ways = ms_plan_data_parallel(plan) * stages;
    bool whole = stages == 1
                     ? stack->whole_microbatch
                     : ms_pubrun_is_before(r->cells, stack->stages_split_batch_before);
    return whole && r->cells->gbs_seqs > 0 && r->cells->gbs_seqs % ways == 0
               ? r->cells->gbs_seqs / ways
               : 1;
}

/* The multiple of a step's smallest batch (one micro-batch per data-parallel rank) that
 * is nearest to `sequences`. */
static long whole_batch(const ms_plan *plan, long sequences)
{
    long least = plan->microbatch * ms_plan_data_parallel(plan);
    long times = (sequences + least / 2) / least;
    return least * (times > 1 ? times : 1);
}

/* Assumes a global batch for a table row whose tokens/s are measured, which hardly depend
 * on the batch: without a pipeline one micro-batch per rank; with one about 4 Mi tokens,
 * as is usual in pretraining (Llama 2, 3; BLOOM; InternLM), rounded to a batch that the
 * ranks can share. Returns NULL, or why the row cannot be predicted. */
static const char *assume_batch(row_reader *r)
{
    const double usual_tokens = 4194304.0;
    ms_plan *plan = &r->run->plan;
    if (isnan(r->cells->tokens_per_s_per_gpu))
        return "batch: not stated";
    long sequences =
        plan->size[MS_PP] > 1 ? (long)(usual_tokens / (double)plan->sequence_length) : 1;
    plan->global_batch = whole_batch(plan, sequences);
    if (!r->run->batch_open) /* an open batch is noted when memory has determined it */
        ms_pubrun_note(&r->notes, "global batch %ld", plan->global_batch);
    return NULL;
}

/* Rounds a stated batch that the ranks cannot share, as it is hardly the one that ran: by
 * at most 2 % if the step time, which grows with the batch, was measured; by at most a
 * tenth if only tokens/s were. */
static void round_batch(row_reader *r)
{
    ms_plan *plan = &r->run->plan;
    long whole = whole_batch(plan, r->cells->gbs_seqs);
    long most = plan->global_batch / (isnan(r->cells->step_s) ? 10 : 50);
    if (whole == plan->global_batch || labs(whole - plan->global_batch) > most)
        return;
    plan->global_batch = whole;
    ms_pubrun_note(&r->notes, "global batch %ld as the ranks can share it", whole);
}

static const char *set_batch(row_reader *r)
{
    const ms_pubrun_cells *c = r->cells;
    ms_plan *plan = &r->run->plan;
    plan->sequence_length = c->seq;
    plan->microbatch = c->mbs > 0 ? c->mbs : default_microbatch(r);
    plan->global_batch =
        c->gbs_seqs > 0 ? c->gbs_seqs : ms_pubrun_default_batch(r->names, c);
    r->run->batch_open = c->mbs <= 0 && plan->global_batch <= 0 &&
                         plan->size[MS_PP] == 1 && isnan(c->step_s) &&
                         isnan(c->peak_mem_gib);
    r->run->microbatch_open = c->mbs <= 0 && c->gbs_seqs > 0 && plan->size[MS_PP] == 1 &&
                              isnan(c->peak_mem_gib) &&
                              !r->run->stack->recomputes_by_need;
    if (c->mbs <= 0 && !r->run->batch_open && !r->run->microbatch_open)
        ms_pubrun_note(&r->notes, "micro-batch %ld", plan->microbatch);
    if (plan->global_batch <= 0)
        return assume_batch(r);
    if (c->gbs_seqs > 0)
        round_batch(r);
    else
        ms_pubrun_note(&r->notes, "global batch %ld", plan->global_batch);
    return NULL;
}

static void set_recompute(row_reader *r)
{
    ms_plan *plan = &r->run->plan;
    const char *text = r->cells->recompute;
    bool known = text != NULL && ms_pubrun_recompute(r->names, text, &plan->recompute);
    if (!known) {
        if (text != NULL)
            ms_pubrun_note(&r->notes, "recompute \"%s\" is not known",
                           ms_cell_text(r->cx->arena, text));
        text = r->run->stack->recompute;
        (void)ms_pubrun_recompute(r->names, text, &plan->recompute);
        r->run->recompute_open = r->run->stack->recomputes_by_need;
        ms_pubrun_note(&r->notes, "recompute %s", text);
    }
    /* "Selective" of fms-fsdp is a share of whole layers, all of them by default
     * (fms_fsdp/config/training.py, selective_checkpointing = 1). */
    if (r->run->stack->selective_is_full && plan->recompute == MS_RECOMPUTE_SELECTIVE) {
        plan->recompute = MS_RECOMPUTE_FULL;
        ms_pubrun_note(&r->notes, "recompute of all layers");
    }
    ms_pubrun_set_modules(r->cells, text, r->run);
}

/* Sets the compute type of the plan; fp16 has the rates and sizes of bf16 where a device
 * has both. Returns NULL, or why the table row cannot be predicted. */
static const char *set_precision(row_reader *r)
{
    ms_plan *plan = &r->run->plan;
    const ms_profile *profile = r->run->profile;
    if (!ms_pubrun_precision(r->names, r->cells->precision, plan))
        return "precision: no type of that name";
    if (r->cells->precision == NULL)
        ms_pubrun_note(&r->notes, "precision bf16");
    bool has_bf16 = !isnan(profile->gemm[MS_BF16].efficiency.value);
    if (plan->compute == MS_FP16 && has_bf16)
        plan->compute = MS_BF16;
    if (plan->compute == MS_BF16 && !has_bf16 && r->cells->precision == NULL)
        plan->compute = MS_FP16;
    if (isnan(profile->gemm[plan->compute].efficiency.value))
        return "precision: the device has no coefficients for it";
    const ms_operand_scaling *scaling = ms_recipe_scaling(plan->recipe);
    bool has_blocks = r->run->cluster->device.peak_flop_per_s[MS_FP4] > 0.0;
    if (scaling != NULL && scaling->needs_blocks && !has_blocks)
        plan->recipe = MS_RECIPE_DEFAULT;
    return NULL;
}

/* ---- one row ---- */

static const char *find_device(row_reader *r)
{
    ms_pubrun *run = r->run;
    const char *name = ms_pubrun_cluster_name(r->names, r->cells);
    if (ms_pubrun_mixes_devices(r->names, r->cells))
        return ms_arena_printf(r->cx->arena, "device: several kinds in \"%s\"",
                               ms_cell_text(r->cx->arena, r->cells->gpu_type));
    if (ms_pubrun_mixes_memories(r->names, r->cells))
        return ms_arena_printf(r->cx->arena, "device: several memories in \"%s\"",
                               ms_cell_text(r->cx->arena, r->cells->gpu_type));
    if (name == NULL)
        return ms_arena_printf(r->cx->arena, "device: no configuration for \"%s\"",
                               ms_cell_text(r->cx->arena, r->cells->gpu_type));
    const ms_cluster *cluster = ms_pubrun_store_cluster(r->cx, r->store, name);
    if (cluster == NULL)
        return "device: its cluster cannot be read";
    run->profile = ms_pubrun_store_profile(r->cx, r->store, cluster->device.profile);
    if (run->profile == NULL)
        return "device: its profile cannot be read";
    if (cluster->max_gpus > 0 && r->cells->gpus > cluster->max_gpus)
        return "device: its cluster has fewer GPUs";
    run->cluster =
        ms_pubrun_store_cluster_of(r->store, cluster, run->profile, r->cells, &r->notes);
    return NULL;
}

/* Whether the table row states fused attention: 1 fused, 0 unfused, -1 not stated. */
static int stated_fused_attention(const row_reader *r, const ms_stack *stack)
{
    if (r->cells->flash_attention == 0 || r->cells->flash_attention == 1)
        return (int)r->cells->flash_attention;
    return ms_pubrun_is_before(r->cells, stack->fuses_attention_since) ? 0 : -1;
}

/* Whether the row's notes name FlashAttention 3, or 4, which profiles of devices that have
 * it list in its place. */
static bool states_newer_attention(const row_reader *r)
{
    const char *notes = r->cells->notes;
    return notes != NULL &&
           (strstr(notes, "FA3") != NULL || strstr(notes, "FA4") != NULL);
}

static const char *find_stack(row_reader *r)
{
    ms_pubrun *run = r->run;
    const char *name = ms_pubrun_stack_name(r->names, r->cells);
    if (name == NULL) {
        name = "generic";
        ms_pubrun_note(&r->notes, "stack generic");
    } else if (ms_pubrun_stack_is_of_source(r->names, r->cells)) {
        ms_pubrun_note(&r->notes, "stack %s by the source", name);
    }
    run->stack = ms_pubrun_store_stack(r->cx, r->store, name);
    if (run->stack == NULL)
        return "framework: its stack cannot be read";
    int fused = stated_fused_attention(r, run->stack);
    if (fused >= 0)
        run->stack = ms_pubrun_store_attention(r->store, run->stack, fused > 0,
                                               states_newer_attention(r));
    if (fused == 0 && r->cells->flash_attention != 0)
        ms_pubrun_note(&r->notes, "attention without a fused kernel");
    return NULL;
}

static void start_plan(row_reader *r)
{
    const ms_pubrun_cells *c = r->cells;
    ms_plan *plan = &r->run->plan;
    *plan = ms_plan_default(c->gpus);
    plan->model = c->model;
    plan->cluster = r->run->cluster->name;
    plan->stack = r->run->stack->name;
    plan->size[MS_TP] = c->tp;
    plan->size[MS_PP] = c->pp;
    plan->size[MS_CP] = ms_pubrun_degree(c->cp);
    if (plan->size[MS_CP] > 1)
        plan->cp_method = r->run->stack->cp_method;
    long num_experts = r->run->model->moe.num_experts;
    plan->ep = num_experts > 0 ? ms_pubrun_degree(c->ep) : 1;
    if (num_experts > 0 && c->ep <= 0) {
        plan->ep = ms_pubrun_default_ep(c, num_experts);
        ms_pubrun_note(&r->notes, "ep %ld", plan->ep);
    }
}

/* Sets adapters of the stated rank on the layers of attention, those of MLPerf's
 * benchmark (training_policies, llama2_70b_lora). */
static void set_adapters(row_reader *r)
{
    if (r->cells->lora_rank <= 0)
        return;
    r->run->plan.lora_rank = r->cells->lora_rank;
    r->run->plan.lora_targets = "attention";
    ms_pubrun_note(&r->notes, "adapters of attention");
}

static const char *check_plan(row_reader *r)
{
    const long most = 16384;
    const ms_plan *plan = &r->run->plan;
    if (plan->size[MS_TP] > most || plan->size[MS_CP] > most || plan->ep > most ||
        plan->size[MS_PP] > most)
        return "plan: an axis of more than 16384";
    ms_ctx check_context = {.arena = r->cx->arena};
    if (ms_plan_check(&check_context, plan, r->run->model, MS_NOWHERE) == MS_OK)
        return NULL;
    return ms_arena_printf(r->cx->arena, "plan: %s" MS_REMARK "%s)",
                           ms_refusal_names[ms_plan_refusal(plan, r->run->model)],
                           check_context.first->message);
}

/* Reads what the memory figure counts. Where it cannot be priced, the figure is left out
 * if a time was measured, too. Returns NULL, or why the row cannot be predicted. */
static const char *set_memory(row_reader *r)
{
    const ms_pubrun_cells *c = r->cells;
    const char *reason = ms_pubrun_set_states(r->store, c, &r->notes, r->run);
    if (reason == NULL)
        reason = ms_pubrun_set_memory_kind(c, r->run);
    if (reason == NULL || (isnan(c->step_s) && isnan(c->tokens_per_s_per_gpu)))
        return reason;
    r->run->skips_memory = true;
    ms_pubrun_note(&r->notes, "memory not compared: %s", reason);
    return NULL;
}

/* Sets model, hardware, stack and plan of the table row. Returns NULL, or why it cannot
 * be predicted. */
static const char *resolve_row(row_reader *r)
{
    const char *reason = ms_pubrun_model_unsupported(r->cx, r->store, r->cells);
    if (reason == NULL)
        reason = find_device(r);
    if (reason == NULL)
        reason = find_stack(r);
    if (reason != NULL)
        return reason;
    r->run->model =
        ms_pubrun_model(r->cx, r->store, r->cells, r->run->stack, &r->notes, &reason);
    if (r->run->model == NULL)
        return reason;
    start_plan(r);
    set_adapters(r);
    set_data_parallel(r);
    reason = set_batch(r);
    if (reason == NULL)
        reason = ms_pubrun_set_schedule(r->cells, &r->notes, r->run);
    ms_pubrun_set_layers(r->cells, r->cx->arena, r->run);
    set_recompute(r);
    if (reason == NULL)
        reason = set_precision(r);
    if (reason == NULL)
        reason = set_memory(r);
    if (reason != NULL)
        return reason;
    set_zero(r);
    set_tensor(r);
    ms_pubrun_set_host(r->cells, &r->notes, r->run);
    set_expert_tensor(r);
    return check_plan(r);
}

static void set_measurements(const ms_pubrun_cells *c, bool decimal_memory,
                             ms_pubrun *run)
{
    if (run->unfinished)
        return;
    run->measured_step_s = c->step_s;
    if (isnan(c->step_s) && !isnan(c->tokens_per_s_per_gpu) && run->reason == NULL)
        run->measured_step_s = (double)run->plan.global_batch *
                               (double)run->plan.sequence_length /
                               (c->tokens_per_s_per_gpu * (double)run->plan.gpus);
    if (run->reason == NULL && !ms_pubrun_times_offload(run))
        run->measured_step_s = (double)NAN;
    run->measured_peak_bytes = c->peak_mem_gib * (decimal_memory ? 1e9 : BYTES_PER_GIB);
    if (run->skips_memory)
        run->measured_peak_bytes = (double)NAN;
}

void ms_pubrun_read_row(ms_ctx *cx, ms_pubrun_store *store, const ms_pubrun_cells *cells,
                        ms_pubrun *run)
{
    run->source = cells->source;
    run->model_text = cells->model;
    run->gpu_type = cells->gpu_type;
    run->precision = cells->precision;
    run->framework = cells->framework;
    run->network = cells->network;
    run->unfinished = ms_pubrun_is_unfinished(cells);
    run->out_of_memory = run->unfinished && strcasecmp(cells->status, "oom") == 0;
    if (cells->plan != NULL) {
        run->reason = ms_pubrun_read_plan(cx, store, cells, run);
        run->complete = run->reason == NULL;
        set_measurements(cells, false, run);
        return;
    }
    const ms_name_tables *names = ms_pubrun_store_names(store);
    ms_pubrun_fact facts = ms_pubrun_facts_of(names, cells);
    run->changes_mathematics = facts.changes_mathematics;
    ms_pubrun_cells filled = *cells;
    const char *unpriced = ms_pubrun_take_flags(cx->arena, &filled);
    row_reader r = {cx, store, names, &filled, run, {.arena = cx->arena}};
    const char *stack = ms_pubrun_stack_name(names, cells);
    ms_pubrun_layout_fill(&filled,
                          stack != NULL ? ms_pubrun_store_stack(cx, store, stack) : NULL,
                          &r.notes);
    run->reason = ms_pubrun_gap(cx, store, &filled);
    if (run->reason == NULL)
        run->fault = ms_pubrun_contradiction(cx->arena, &filled);
    if (run->fault != NULL)
        run->reason = "layout: its product is not the number of GPUs";
    else if (run->changes_mathematics)
        run->reason = "changes the model's mathematics";
    run->complete = run->reason == NULL;
    if (run->complete)
        run->reason = unpriced;
    if (run->complete && unpriced == NULL) {
        ms_pubrun_odd_cells_note(&filled, &r.notes);
        run->reason = resolve_row(&r);
        run->defaults = r.notes.text;
    }
    if (facts.device_memory && cells->memory_kind == NULL)
        run->memory_kind = MS_MEMORY_DEVICE;
    set_measurements(&filled, facts.decimal_memory, run);
}
