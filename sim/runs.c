/* Rows of a file of published runs: what each trained, on what, and with which plan. */
#include "sim/runs.h"

#include "costmodel/schedule.h"
#include "sim/runs_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* Data-parallel ranks over both axes. Megatron's tables put them all into one column; sharding needs them on dp_shard, where ZeRO 0
 * is plain data parallelism. torchtitan's shard groups contain context parallelism. */
static const char *set_data_parallel(row_reader *r)
{
    const ms_run_cells *c = r->cells;
    ms_plan *plan = &r->run->plan;
    static const char mismatch[] = "layout: its product is not the number of GPUs";
    static const ms_plan_axis inner[] = {MS_TP, MS_PP, MS_CP};
    long dp = plan->gpus;
    for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
        if (dp % plan->size[inner[i]] != 0)
            return mismatch;
        dp /= plan->size[inner[i]];
    }
    long replicate = or_one(c->dp_replicate), shard = or_one(c->dp_shard);
    bool counts_cp = replicate * shard == dp * plan->size[MS_CP] && plan->size[MS_CP] > 1;
    if (counts_cp && shard % plan->size[MS_CP] == 0)
        shard /= plan->size[MS_CP];
    if ((c->dp_replicate > 0 || c->dp_shard > 0) && replicate * shard != dp)
        return mismatch;
    bool is_hybrid = c->dp_replicate > 1 && c->dp_shard > 1;
    plan->size[MS_DP_REPLICATE] = is_hybrid ? replicate : 1;
    plan->size[MS_DP_SHARD] = is_hybrid ? shard : dp;
    return NULL;
}

static void set_zero(row_reader *r)
{
    ms_plan *plan = &r->run->plan;
    plan->zero = r->cells->zero_stage;
    if (plan->zero < 0) {
        plan->zero = r->run->stack->default_zero;
        if (plan->zero < 0)
            plan->zero = plan->size[MS_DP_SHARD] > 1 ? 3 : 0;
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
    plan->sequence_parallel = many && c->sp != 0;
    if (many && c->sp < 0)
        ms_run_note(&r->notes, "sequence parallel");
    plan->async_tp = many && c->async_tp > 0;
    if (many && c->async_tp < 0)
        ms_run_note(&r->notes, "no asynchronous tp");
}

/* ---- schedule ---- */

/* The number after "vpp=" or "v="; 0: none. */
static long virtual_stages_in(const char *text)
{
    const char *at = strstr(text, "v=");
    if (at == NULL)
        at = strstr(text, "pp=");
    if (at == NULL)
        return 0;
    long v = strtol(strchr(at, '=') + 1, NULL, 10);
    return v >= 1 && v <= 1000 ? v : 0;
}

static const char *set_interleaved(row_reader *r, long virtual_stages)
{
    ms_plan *plan = &r->run->plan;
    if (virtual_stages <= 0)
        return "schedule: number of virtual stages not stated";
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
    if (strncasecmp(text, "interleaved", 11) == 0 || strncasecmp(text, "vpp", 3) == 0)
        return set_interleaved(r, virtual_stages_in(text));
    /* the embedding and the head count as a layer each (arXiv 2401.10241 section 4) */
    if (strncasecmp(text, "1F1B-I", 6) == 0) {
        bool single = strstr(text, "1 layer per chunk") != NULL;
        long chunks = (r->run->model->num_layers + 2) / plan->size[MS_PP];
        return set_interleaved(r, single ? chunks : virtual_stages_in(text));
    }
    if (!ms_schedule_parse(text, &plan->schedule))
        return "schedule: unknown name";
    ms_schedule_traits traits = ms_schedule_traits_of(plan->schedule);
    plan->virtual_stages = traits.least_virtual;
    if (traits.groups && traits.least_virtual > 1)
        return "schedule: number of virtual stages not stated";
    return NULL;
}

/* ---- batch, recomputation, precision ---- */

static const char *set_batch(row_reader *r)
{
    const ms_run_cells *c = r->cells;
    ms_plan *plan = &r->run->plan;
    plan->sequence_length = c->seq;
    plan->microbatch = c->mbs;
    plan->global_batch = c->gbs_seqs;
    if (c->mbs <= 0) {
        plan->microbatch = 1;
        ms_run_note(&r->notes, "micro-batch 1");
    }
    if (c->gbs_seqs > 0)
        return NULL;
    /* one micro-batch tells nothing about a pipeline; without one the rate hardly depends on their number */
    if (plan->size[MS_PP] > 1 || c->mbs <= 0 || isnan(c->tokens_per_s_per_gpu))
        return "batch: not stated";
    plan->global_batch = plan->microbatch * ms_plan_data_parallel(plan);
    ms_run_note(&r->notes, "global batch of one micro-batch per rank");
    return NULL;
}

static bool parse_recompute(const char *text, ms_recompute *out)
{
    for (int i = 0; i < MS_RECOMPUTE_AUTO; i++) { /* a run states what it kept */
        if (strcasecmp(text, ms_recompute_names[i]) == 0) {
            *out = (ms_recompute)i;
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
        ms_run_note(&r->notes, "recompute %s", text);
    }
    /* what fms-fsdp calls selective is a share of whole layers, which its table does not print */
    if (strcmp(stack, "fms-fsdp") == 0 && strcasecmp(text, "selective") == 0)
        return "recompute: selective, share of layers not stated";
    return parse_recompute(text, &plan->recompute) ? NULL : "recompute: not available";
}

static const char *set_precision(row_reader *r)
{
    const char *reason = NULL;
    ms_plan *plan = &r->run->plan;
    if (!ms_run_dtype(r->cells->precision, &plan->compute, &reason))
        return reason;
    if (r->cells->precision == NULL)
        ms_run_note(&r->notes, "precision bf16");
    if (isnan(r->run->profile->gemm[plan->compute].efficiency.value))
        return "precision: the device has no coefficients for it";
    return NULL;
}

/* ---- one row ---- */

static const char *find_configs(row_reader *r)
{
    ms_published_run *run = r->run;
    const char *cluster = ms_run_cluster_name(r->cells);
    if (cluster == NULL)
        return "device: no configuration for it";
    const char *stack = ms_run_stack_name(r->cells);
    if (stack == NULL) {
        stack = "generic";
        ms_run_note(&r->notes, "stack generic");
    }
    run->cluster = ms_run_store_cluster(r->cx, r->store, cluster);
    run->stack = ms_run_store_stack(r->cx, r->store, stack);
    if (run->cluster == NULL || run->stack == NULL)
        return "device or framework: its configuration cannot be read";
    run->profile = ms_run_store_profile(r->cx, r->store, run->cluster->device.profile);
    if (run->profile == NULL)
        return "device: its profile cannot be read";
    const ms_cluster *whole = run->cluster;
    run->cluster = ms_run_store_share(r->cx, r->store, whole, r->cells->gpus);
    if (run->cluster != whole)
        ms_run_note(&r->notes, "%ld of %ld GPUs in a domain",
                    run->cluster->levels[0].gpus_per_domain,
                    whole->levels[0].gpus_per_domain);
    run->memory_of_first_rank = ms_stack_reports_first_rank(stack);
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
    ms_refusal refusal = ms_plan_refusal(plan, r->run->model);
    if (refusal == MS_LEGAL)
        return NULL;
    return ms_arena_printf(r->cx->arena, "plan: %s", ms_refusal_names[refusal]);
}

/* NULL, or why the row cannot be predicted. */
static const char *resolve(row_reader *r)
{
    const ms_known_model *known =
        ms_known_model_find(r->cx->arena, r->cells->model, r->cells->gated_ffn != 0);
    const char *reason = known->unsupported;
    if (reason == NULL)
        reason = find_configs(r);
    if (reason != NULL)
        return reason;
    r->run->model =
        ms_run_model(r->cx, r->store, r->cells, r->run->stack->name, &r->notes, &reason);
    if (r->run->model == NULL)
        return reason;
    start_plan(r);
    static const char *(*const steps[])(row_reader *) = {
        set_data_parallel, set_batch, set_schedule, set_recompute, set_precision};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        reason = steps[i](r);
        if (reason != NULL)
            return reason;
    }
    set_zero(r);
    set_tensor(r);
    return check_plan(r);
}

static void measure(const ms_run_cells *c, ms_published_run *run)
{
    run->measured_step_s = c->step_s;
    if (isnan(c->step_s) && !isnan(c->tokens_per_s_per_gpu) && run->reason == NULL)
        run->measured_step_s = (double)run->plan.global_batch *
                               (double)run->plan.sequence_length /
                               (c->tokens_per_s_per_gpu * (double)run->plan.gpus);
    run->measured_peak_bytes =
        c->peak_mem_gib * (ms_run_memory_is_decimal(c) ? 1e9 : BYTES_PER_GIB);
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
    run->changes_mathematics = ms_run_changes_mathematics(cells);
    run->reason = gap_of(cx, cells);
    if (run->changes_mathematics)
        run->reason = "changes the model's mathematics";
    run->complete = run->reason == NULL;
    if (run->complete) {
        row_reader r = {cx, store, cells, run, {.arena = cx->arena}};
        run->reason = resolve(&r);
        run->defaults = r.notes.text;
    }
    measure(cells, run);
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
