/* Rows of a file of published runs: what each trained, on what, and with which plan. */
#include "sim/runs.h"

#include "costmodel/schedule.h"
#include "sim/runs_priv.h"
#include "sim/score_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_PER_GIB 1073741824.0

typedef struct row_reader {
    ms_ctx *cx;
    ms_run_store *store;
    const ms_run_cells *cells;
    ms_published_run *run;
    ms_run_notes notes;
} row_reader;

static long or_one(long stated)
{
    return stated > 0 ? stated : 1;
}

/* ---- what a complete row states ---- */

static const char *layout_gap(const ms_run_cells *c)
{
    if (c->gpus <= 0)
        return "incomplete: number of GPUs";
    if (c->tp <= 0 || c->pp <= 0)
        return "incomplete: layout";
    if (c->experts > 0 && c->ep <= 0)
        return "incomplete: expert parallelism";
    if (c->seq <= 0)
        return "incomplete: sequence length";
    return NULL;
}

static const char *gap_of(const ms_ctx *cx, const ms_run_cells *c)
{
    if (c->source == NULL)
        return "incomplete: source";
    if (c->model == NULL)
        return "incomplete: model";
    if (c->gpu_type == NULL)
        return "incomplete: type of GPU";
    const char *gap =
        ms_run_model_gap(c, ms_known_model_find(cx->arena, c->model, c->gated_ffn != 0));
    if (gap == NULL)
        gap = layout_gap(c);
    if (gap == NULL && isnan(c->step_s) && isnan(c->tokens_per_s_per_gpu) &&
        isnan(c->peak_mem_gib))
        gap = "incomplete: neither time, tokens/s nor memory is measured";
    return gap;
}

/* ---- layout ---- */

static bool divides_out(long *rest, long size)
{
    if (*rest % size != 0)
        return false;
    *rest /= size;
    return true;
}

/* NULL, or how the layout contradicts itself: such a row states none. */
static const char *contradiction(ms_arena *arena, const ms_run_cells *c)
{
    long tp = c->tp, pp = c->pp, cp = or_one(c->cp), dp = c->gpus;
    if (!divides_out(&dp, tp) || !divides_out(&dp, pp) || !divides_out(&dp, cp))
        return ms_arena_printf(arena, "tp %ld x pp %ld x cp %ld does not divide %ld GPUs",
                               tp, pp, cp, c->gpus);
    long stated = or_one(c->dp_replicate) * or_one(c->dp_shard);
    bool states_dp = c->dp_replicate > 0 || c->dp_shard > 0;
    if (states_dp && stated != dp && stated != dp * cp)
        return ms_arena_printf(
            arena, "tp %ld x pp %ld x cp %ld leaves %ld of %ld GPUs for dp, not %ld", tp,
            pp, cp, dp, c->gpus, stated);
    if (c->experts > 0 && c->ep > 0 && (dp * cp * tp) % c->ep != 0)
        return ms_arena_printf(arena,
                               "ep %ld does not divide the %ld GPUs of a pipeline rank",
                               c->ep, dp * cp * tp);
    return NULL;
}

/* Data-parallel ranks over both axes. Megatron's tables put them all into one column; sharding needs them on dp_shard, where ZeRO 0
 * is plain data parallelism. torchtitan's shard groups contain context parallelism. */
static void set_data_parallel(row_reader *r)
{
    const ms_run_cells *c = r->cells;
    ms_plan *plan = &r->run->plan;
    long cp = plan->size[MS_CP],
         dp = plan->gpus / plan->size[MS_TP] / plan->size[MS_PP] / cp;
    long replicate = or_one(c->dp_replicate), shard = or_one(c->dp_shard);
    if (replicate * shard == dp * cp && shard % cp == 0)
        shard /= cp;
    bool is_hybrid = replicate > 1 && shard > 1 && replicate * shard == dp;
    plan->size[MS_DP_REPLICATE] = is_hybrid ? replicate : 1;
    plan->size[MS_DP_SHARD] = is_hybrid ? shard : dp;
}

/* Megatron Core's expert_tensor_parallel_size is tp unless given. Recipes of models with experts narrower than the hidden size give 1 (DeepSeek-V3, Qwen3),
 * those of wide experts leave it (Mixtral, Grok-1, Llama 4): assumed of others. What does not divide cannot have been. */
static void set_expert_tensor(row_reader *r)
{
    ms_plan *plan = &r->run->plan;
    const ms_model *model = r->run->model;
    long tp = plan->size[MS_TP];
    if (!r->run->stack->splits_experts || tp == 1 || model->moe.num_experts == 0)
        return;
    plan->etp = model->moe.ffn_hidden > model->hidden ? tp : 1;
    if (ms_plan_refusal(plan, r->run->model) != MS_LEGAL)
        plan->etp = 1;
    ms_run_note(&r->notes, "etp %ld", plan->etp);
}

/* "DeepSpeed ZeRO-3", "zero stage 2"; -1: none is named. */
static long zero_in(const char *framework)
{
    const char *at = strstr(framework, "zero");
    if (at == NULL)
        return -1;
    at += strspn(at, "zerostage=");
    return *at >= '0' && *at <= '3' ? *at - '0' : -1;
}

static void set_zero(row_reader *r)
{
    ms_plan *plan = &r->run->plan;
    plan->zero = r->cells->zero_stage;
    if (plan->zero < 0)
        plan->zero = zero_in(ms_plain_text(r->cx->arena, r->cells->framework));
    if (plan->zero < 0) {
        plan->zero = r->run->stack->default_zero;
        if (plan->zero < 0)
            plan->zero = plan->size[MS_DP_SHARD] > 1 ? 3 : 0;
        r->run->zero_open = true;
        ms_run_note(&r->notes, "zero %ld", plan->zero);
    }
    /* FSDP2 that keeps gathered weights until the step's end: stage 2 in tables, sharded storage in truth */
    if (plan->zero == 2 && strncmp(r->run->stack->name, "torchtitan", 10) == 0) {
        plan->zero = 3;
        plan->reshard_after_forward = false;
        ms_run_note(&r->notes, "zero 2 as 3 without resharding");
    }
}

static void set_tensor(row_reader *r)
{
    const ms_run_cells *c = r->cells;
    ms_plan *plan = &r->run->plan;
    bool many = plan->size[MS_TP] > 1;
    bool divides = c->seq % (plan->size[MS_TP] * plan->size[MS_CP]) == 0;
    plan->sequence_parallel = many && (c->sp > 0 || (c->sp < 0 && divides));
    if (many && c->sp < 0)
        ms_run_note(&r->notes, "%ssequence parallel", divides ? "" : "not ");
    plan->async_tp = many && c->async_tp > 0;
    if (many && c->async_tp < 0)
        ms_run_note(&r->notes, "no asynchronous tp");
}

/* ---- schedule ---- */

/* The number after "vpp" or "v", as in "interleaved vpp=2", "VPP 4", "v=2"; 0: none. */
static long virtual_stages_in(const char *plain)
{
    for (const char *at = strchr(plain, 'v'); at != NULL; at = strchr(at + 1, 'v')) {
        const char *digits = at + 1 + strspn(at + 1, "pstages=:");
        long v = strtol(digits, NULL, 10);
        if (v >= 1 && v <= 1000)
            return v;
    }
    return 0;
}

static const char *set_interleaved(row_reader *r, long virtual_stages)
{
    ms_plan *plan = &r->run->plan;
    if (virtual_stages <= 0) { /* the least that interleaves, torchtitan's default */
        virtual_stages = 2;
        ms_run_note(&r->notes, "2 virtual stages");
    }
    plan->virtual_stages = virtual_stages;
    if (virtual_stages == 1)
        return NULL;
    plan->schedule = MS_INTERLEAVED;
    /* Megatron-LM's microbatch_group_size_per_vp_stage is the pipeline size unless given */
    long microbatches = ms_plan_microbatches(plan);
    if (microbatches % plan->size[MS_PP] == 0)
        plan->microbatch_group = plan->size[MS_PP];
    return NULL;
}

/* A layer in each chunk; where that comes out so, embedding and head count as a layer each and are alone in the first chunk and the last (arXiv 2401.10241
 * section 4). */
static const char *set_single_layers(row_reader *r)
{
    ms_plan *plan = &r->run->plan;
    long num_layers = r->run->model->num_layers, pp = plan->size[MS_PP];
    bool ends_alone = num_layers % pp != 0 && (num_layers + 2) % pp == 0;
    if (ends_alone) {
        long *layers = MS_NEW_ARRAY(r->cx->arena, num_layers + 2, long);
        for (long i = 1; i <= num_layers; i++)
            layers[i] = 1;
        plan->layers_per_stage = layers;
        plan->num_stage_layers = num_layers + 2;
    }
    return set_interleaved(r, (num_layers + (ends_alone ? 2 : 0)) / pp);
}

static const char *set_schedule(row_reader *r)
{
    ms_plan *plan = &r->run->plan;
    const char *text = r->cells->schedule;
    plan->schedule = MS_1F1B;
    plan->virtual_stages = 1;
    if (plan->size[MS_PP] == 1)
        return NULL;
    if (text == NULL) {
        ms_run_note(&r->notes, "schedule 1f1b");
        return NULL;
    }
    const char *plain = ms_plain_text(r->cx->arena, text);
    long stages = virtual_stages_in(plain);
    bool is_plain = strcmp(plain, "none") == 0 || strcmp(plain, "n/a") == 0;
    if (strstr(plain, "1layerperchunk") != NULL)
        return set_single_layers(r);
    if ((strstr(plain, "interleave") != NULL && strstr(plain, "zb") == NULL) ||
        strncmp(plain, "vpp", 3) == 0 || strncmp(plain, "1f1bi", 5) == 0)
        return set_interleaved(r, stages);
    if (is_plain)
        return NULL;
    if (!ms_schedule_parse(text, &plan->schedule))
        return "schedule: unknown name";
    ms_schedule_traits traits = ms_schedule_traits_of(plan->schedule);
    plan->virtual_stages = traits.least_virtual;
    if (traits.groups && traits.least_virtual > 1)
        return "schedule: number of virtual stages not stated";
    return NULL;
}

/* ---- batch, recomputation, precision ---- */

/* What a row leaves open: 1 as in Megatron's scripts; without pipeline torchtitan and FSDP loops do not accumulate gradients unless told to (torchtitan
 * config/job_config.py, global_batch_size -1). With one torchtitan had as many micro-batches as stages (pipeline_parallel_microbatches) until
 * pipeline_parallel_microbatch_size, 1, came in 2025. */
static long default_microbatch(const row_reader *r)
{
    const ms_plan *plan = &r->run->plan;
    const char *stack = r->run->stack->name;
    long stages = plan->size[MS_PP], ways = ms_plan_data_parallel(plan) * stages;
    bool is_titan = strncmp(stack, "torchtitan", 10) == 0;
    bool splits = is_titan && (stages == 1 || ms_run_is_before(r->cells, 202504));
    bool whole = splits || (strcmp(stack, "fms-fsdp") == 0 && stages == 1);
    return whole && r->cells->gbs_seqs > 0 && r->cells->gbs_seqs % ways == 0
               ? r->cells->gbs_seqs / ways
               : 1;
}

static const char *set_batch(row_reader *r)
{
    const ms_run_cells *c = r->cells;
    ms_plan *plan = &r->run->plan;
    plan->sequence_length = c->seq;
    plan->microbatch = c->mbs;
    plan->global_batch = c->gbs_seqs;
    if (c->mbs <= 0) {
        plan->microbatch = default_microbatch(r);
        ms_run_note(&r->notes, "micro-batch %ld", plan->microbatch);
    }
    if (c->gbs_seqs > 0)
        return NULL;
    plan->global_batch = ms_run_default_batch(r->cx->arena, c);
    if (plan->global_batch > 0) {
        ms_run_note(&r->notes, "global batch %ld", plan->global_batch);
        return NULL;
    }
    /* one micro-batch tells nothing about a pipeline; without one the rate hardly depends on their number */
    if (plan->size[MS_PP] > 1 || c->mbs <= 0 || isnan(c->tokens_per_s_per_gpu))
        return "batch: not stated";
    plan->global_batch = plan->microbatch * ms_plan_data_parallel(plan);
    ms_run_note(&r->notes, "global batch of one micro-batch per rank");
    return NULL;
}

/* What tables write for the modes, as parts of the plain text; the first that matches holds. */
static const struct {
    const char *part;
    ms_recompute mode;
} recompute_words[] = {
    {"perop", MS_RECOMPUTE_PER_OP},
    {"select", MS_RECOMPUTE_SELECTIVE},
    {"core", MS_RECOMPUTE_SELECTIVE},
    {"attn", MS_RECOMPUTE_SELECTIVE},
    {"attention", MS_RECOMPUTE_SELECTIVE},
    {"full", MS_RECOMPUTE_FULL},
    {"uniform", MS_RECOMPUTE_FULL},
    {"block", MS_RECOMPUTE_FULL},
    {"yes", MS_RECOMPUTE_FULL},
    {"on", MS_RECOMPUTE_FULL},
    {"1", MS_RECOMPUTE_FULL},
    {"off", MS_RECOMPUTE_NONE},
    {"no", MS_RECOMPUTE_NONE},
    {"0", MS_RECOMPUTE_NONE},
};

static bool parse_recompute(ms_arena *arena, const char *text, ms_recompute *out)
{
    const char *plain = ms_plain_text(arena, text);
    for (size_t i = 0; i < sizeof recompute_words / sizeof *recompute_words; i++) {
        const char *part = recompute_words[i].part;
        bool whole = strlen(part) < 4; /* "on" is in "none" */
        if (whole && strncmp(part, "no", 2) == 0)
            whole = strncmp(plain, "no", 2) != 0;
        if (whole ? strcmp(plain, part) == 0 : strstr(plain, part) != NULL) {
            *out = recompute_words[i].mode;
            return true;
        }
    }
    return false;
}

static const char *set_recompute(row_reader *r)
{
    ms_plan *plan = &r->run->plan;
    const char *text = r->cells->recompute;
    const char *stack = r->run->stack->name;
    if (text == NULL) {
        text = r->run->stack->recompute;
        r->run->recompute_open = r->run->stack->recomputes_by_need;
        ms_run_note(&r->notes, "recompute %s", text);
    }
    if (!parse_recompute(r->cx->arena, text, &plan->recompute))
        return "recompute: not available";
    /* what fms-fsdp calls selective is a share of whole layers, all by default (fms_fsdp/config/training.py, selective_checkpointing = 1) */
    if (strcmp(stack, "fms-fsdp") == 0 && plan->recompute == MS_RECOMPUTE_SELECTIVE) {
        plan->recompute = MS_RECOMPUTE_FULL;
        ms_run_note(&r->notes, "recompute of all layers");
    }
    return NULL;
}

/* fp16 runs at the rates and sizes of bf16 where a device has both. */
static const char *set_precision(row_reader *r)
{
    ms_plan *plan = &r->run->plan;
    const ms_profile *profile = r->run->profile;
    if (!ms_run_dtype(r->cx->arena, r->cells->precision, &plan->compute))
        return "precision: no type of that name";
    if (r->cells->precision == NULL)
        ms_run_note(&r->notes, "precision bf16");
    bool has_bf16 = !isnan(profile->gemm[MS_BF16].efficiency.value);
    if (plan->compute == MS_FP16 && has_bf16)
        plan->compute = MS_BF16;
    if (plan->compute == MS_BF16 && !has_bf16 && r->cells->precision == NULL)
        plan->compute = MS_FP16;
    if (isnan(profile->gemm[plan->compute].efficiency.value))
        return "precision: the device has no coefficients for it";
    return NULL;
}

/* ---- one row ---- */

static const char *find_device(row_reader *r)
{
    ms_published_run *run = r->run;
    const char *name = ms_run_cluster_name(r->cx->arena, r->cells);
    if (name == NULL)
        return ms_arena_printf(r->cx->arena, "device: no configuration for \"%.40s\"",
                               r->cells->gpu_type);
    const ms_cluster *cluster = ms_run_store_cluster(r->cx, r->store, name);
    if (cluster == NULL)
        return "device: its cluster cannot be read";
    run->profile = ms_run_store_profile(r->cx, r->store, cluster->device.profile);
    if (run->profile == NULL)
        return "device: its profile cannot be read";
    if (cluster->max_gpus > 0 && r->cells->gpus > cluster->max_gpus)
        return "device: its cluster has fewer GPUs";
    run->cluster =
        ms_run_store_cluster_of(r->store, cluster, run->profile, r->cells, &r->notes);
    return NULL;
}

static const char *find_stack(row_reader *r)
{
    ms_published_run *run = r->run;
    const char *name = ms_run_stack_name(r->cx->arena, r->cells);
    if (name == NULL) {
        name = "generic";
        ms_run_note(&r->notes, "stack generic");
    }
    run->stack = ms_run_store_stack(r->cx, r->store, name);
    if (run->stack == NULL)
        return "framework: its stack cannot be read";
    if (r->cells->flash_attention == 0 || r->cells->flash_attention == 1)
        run->stack =
            ms_run_store_attention(r->store, run->stack, r->cells->flash_attention > 0);
    run->stack = ms_run_store_recipe(r->store, run->stack, r->cells->precision);
    run->memory_of_first_rank = ms_stack_reports_first_rank(name);
    return NULL;
}

static void start_plan(row_reader *r)
{
    const ms_run_cells *c = r->cells;
    ms_plan *plan = &r->run->plan;
    *plan = ms_plan_default(c->gpus);
    plan->model = c->model;
    plan->cluster = r->run->cluster->name;
    plan->stack = r->run->stack->name;
    plan->size[MS_TP] = c->tp;
    plan->size[MS_PP] = c->pp;
    plan->size[MS_CP] = or_one(c->cp);
    if (plan->size[MS_CP] > 1)
        plan->cp_method = r->run->stack->cp_method;
    plan->ep = r->run->model->moe.num_experts > 0 ? or_one(c->ep) : 1;
}

static const char *check_plan(row_reader *r)
{
    const long most = 16384;
    const ms_plan *plan = &r->run->plan;
    if (plan->size[MS_TP] > most || plan->size[MS_CP] > most || plan->ep > most ||
        plan->size[MS_PP] > most)
        return "plan: an axis of more than 16384";
    ms_ctx said = {.arena = r->cx->arena};
    if (ms_plan_check(&said, plan, r->run->model, MS_NOWHERE) == MS_OK)
        return NULL;
    return ms_arena_printf(r->cx->arena, "plan: %s" MS_REMARK "%s)",
                           ms_refusal_names[ms_plan_refusal(plan, r->run->model)],
                           said.first->message);
}

/* NULL, or why the row cannot be predicted. */
static const char *resolve(row_reader *r)
{
    const ms_known_model *known =
        ms_known_model_find(r->cx->arena, r->cells->model, r->cells->gated_ffn != 0);
    const char *reason = known->unsupported;
    if (reason == NULL)
        reason = find_device(r);
    if (reason == NULL)
        reason = find_stack(r);
    if (reason != NULL)
        return reason;
    r->run->model =
        ms_run_model(r->cx, r->store, r->cells, r->run->stack->name, &r->notes, &reason);
    if (r->run->model == NULL)
        return reason;
    start_plan(r);
    set_data_parallel(r);
    static const char *(*const steps[])(row_reader *) = {set_batch, set_schedule,
                                                         set_recompute, set_precision};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        reason = steps[i](r);
        if (reason != NULL)
            return reason;
    }
    set_zero(r);
    set_tensor(r);
    set_expert_tensor(r);
    return check_plan(r);
}

static void measure(ms_arena *arena, const ms_run_cells *c, ms_published_run *run)
{
    run->measured_step_s = c->step_s;
    if (isnan(c->step_s) && !isnan(c->tokens_per_s_per_gpu) && run->reason == NULL)
        run->measured_step_s = (double)run->plan.global_batch *
                               (double)run->plan.sequence_length /
                               (c->tokens_per_s_per_gpu * (double)run->plan.gpus);
    run->measured_peak_bytes =
        c->peak_mem_gib * (ms_run_memory_is_decimal(arena, c) ? 1e9 : BYTES_PER_GIB);
}

static void read_row(ms_ctx *cx, ms_run_store *store, const ms_run_cells *cells,
                     ms_published_run *run)
{
    run->source = cells->source;
    run->model_text = cells->model;
    run->gpu_type = cells->gpu_type;
    run->precision = cells->precision;
    run->framework = cells->framework;
    run->network = cells->network;
    run->changes_mathematics = ms_run_changes_mathematics(cx->arena, cells);
    run->reason = gap_of(cx, cells);
    if (run->reason == NULL)
        run->fault = contradiction(cx->arena, cells);
    if (run->fault != NULL)
        run->reason = "layout: its product is not the number of GPUs";
    else if (run->changes_mathematics)
        run->reason = "changes the model's mathematics";
    run->complete = run->reason == NULL;
    if (run->complete) {
        row_reader r = {cx, store, cells, run, {.arena = cx->arena}};
        ms_run_odd_cells_note(cells, &r.notes);
        run->reason = resolve(&r);
        run->defaults = r.notes.text;
    }
    measure(cx->arena, cells, run);
}

static int by_id(const void *a, const void *b)
{
    const ms_published_run *x = *(ms_published_run *const *)a;
    const ms_published_run *y = *(ms_published_run *const *)b;
    int order = strcmp(x->id, y->id);
    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

/* A run that stands twice would count twice. */
static void fault_repeats(ms_arena *arena, ms_published_runs *runs)
{
    ms_published_run **sorted = MS_NEW_ARRAY(arena, runs->num_runs, ms_published_run *);
    for (int i = 0; i < runs->num_runs; i++)
        sorted[i] = &runs->runs[i];
    if (runs->num_runs > 1)
        qsort(sorted, (size_t)runs->num_runs, sizeof(ms_published_run *), by_id);
    for (int i = 1; i < runs->num_runs; i++) {
        ms_published_run *run = sorted[i];
        if (strcmp(run->id, sorted[i - 1]->id) != 0)
            continue;
        run->fault =
            ms_arena_printf(arena, "its id is that of line %d", sorted[i - 1]->line);
        run->reason = "malformed";
        run->complete = false;
    }
}

static void read_runs(ms_ctx *cx, ms_csv *csv, const ms_cell_columns *columns,
                      ms_published_runs *out)
{
    ms_run_store *store = ms_run_store_open(cx->arena);
    int capacity = 0;
    ms_csv_row row;
    while (ms_csv_next(cx->arena, csv, &row)) {
        MS_MAKE_ROOM(cx->arena, out->runs, out->num_runs, capacity, 64);
        ms_published_run *run = &out->runs[out->num_runs++];
        ms_run_cells cells;
        run->line = row.line;
        run->measured_step_s = run->measured_peak_bytes = (double)NAN;
        run->fault = ms_run_cells_read(cx->arena, columns, &row, &cells);
        run->id = cells.id != NULL && run->fault == NULL
                      ? cells.id
                      : ms_arena_printf(cx->arena, "line %d", row.line);
        if (run->fault == NULL)
            read_row(cx, store, &cells, run);
        else
            run->reason = "malformed";
    }
    fault_repeats(cx->arena, out);
}

static ms_status read_csv(ms_ctx *cx, const char *name, ms_csv *csv,
                          ms_published_runs *out)
{
    *out = (ms_published_runs){0};
    ms_csv_row header;
    if (!ms_csv_next(cx->arena, csv, &header))
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = name},
                       "the file is empty, it must begin with a header");
    ms_cell_columns columns;
    MS_TRY(ms_run_columns_find(cx, name, &header, &columns));
    read_runs(cx, csv, &columns, out);
    return MS_OK;
}

ms_status ms_runs_load(ms_ctx *cx, const char *path, ms_published_runs *out)
{
    ms_csv csv;
    MS_TRY(ms_csv_load(cx, path, &csv));
    return read_csv(cx, strcmp(path, "-") == 0 ? "standard input" : path, &csv, out);
}

ms_status ms_runs_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                       ms_published_runs *out)
{
    ms_csv csv = ms_csv_open(text, length);
    return read_csv(cx, name, &csv, out);
}
