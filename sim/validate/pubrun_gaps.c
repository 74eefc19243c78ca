/* Values of the layout that a row of published runs does not state: filled in by its
 * framework's defaults, or a reason why the row cannot be predicted. */
#include "sim/validate/pubrun_priv.h"

#include <math.h>
#include <string.h>
#include <strings.h>

long ms_pubrun_degree(long stated)
{
    return stated > 0 ? stated : 1;
}

/* ---- defaults ---- */

/* Fills in the number of GPUs as the product of the stated degrees. A table row that
 * states tp and pp, but neither data parallelism nor a batch, counts as one replica. */
static void fill_gpus(ms_pubrun_cells *c, ms_pubrun_notes *notes)
{
    bool states_dp = c->dp_replicate > 1 || c->dp_shard > 0;
    if (c->gpus > 0 || c->tp <= 0 || c->pp <= 0 || (!states_dp && c->gbs_seqs > 0))
        return;
    const long most = 1 << 20;
    const long degrees[] = {c->tp, c->pp, c->cp, c->dp_replicate, c->dp_shard};
    long gpus = 1;
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++) {
        if (ms_pubrun_degree(degrees[i]) > most / gpus)
            return;
        gpus *= ms_pubrun_degree(degrees[i]);
    }
    c->gpus = gpus;
    ms_pubrun_note(notes, "%ld GPUs, as the stated degrees make", gpus);
}

/* Fills in tp and pp. Frameworks that shard weights by default split nothing else unless
 * configured to: MaxText's ici_fsdp_parallelism -1 and torchtitan's
 * data_parallel_shard_degree -1 take all remaining GPUs; their other degrees are 1. */
static void fill_degrees(ms_pubrun_cells *c, const ms_stack *stack,
                         ms_pubrun_notes *notes)
{
    bool shards = stack != NULL && (stack->default_zero < 0 || stack->default_zero == 3);
    if (!shards || c->gpus <= 0 || (c->tp > 0 && c->pp > 0))
        return;
    ms_pubrun_note(notes, "%s%s", c->tp <= 0 ? "tp 1" : "",
                   c->pp > 0 ? "" : (c->tp <= 0 ? ", pp 1" : "pp 1"));
    c->tp = ms_pubrun_degree(c->tp);
    c->pp = ms_pubrun_degree(c->pp);
}

/* Computes the global batch where both step time and tokens/s are measured. */
static void fill_batch(ms_pubrun_cells *c, ms_pubrun_notes *notes)
{
    double sequences =
        c->step_s * c->tokens_per_s_per_gpu * (double)c->gpus / (double)c->seq;
    if (c->gbs_seqs > 0 || c->gpus <= 0 || c->seq <= 0 || !(sequences >= 0.5) ||
        sequences > 1e9)
        return;
    c->gbs_seqs = lround(sequences);
    ms_pubrun_note(notes, "global batch %ld by step and rate", c->gbs_seqs);
}

long ms_pubrun_default_ep(const ms_pubrun_cells *c, long num_experts)
{
    long ranks = c->gpus / c->pp, experts = num_experts;
    while (ranks != 0) { /* Euclid's algorithm: greatest common divisor */
        long rest = experts % ranks;
        experts = ranks;
        ranks = rest;
    }
    return experts;
}

void ms_pubrun_layout_fill(ms_pubrun_cells *cells, const ms_stack *stack,
                           ms_pubrun_notes *notes)
{
    fill_gpus(cells, notes);
    fill_degrees(cells, stack, notes);
    fill_batch(cells, notes);
}

/* ---- required values ---- */

bool ms_pubrun_is_unfinished(const ms_pubrun_cells *c)
{
    return c->status != NULL && (strcasecmp(c->status, "unfinished") == 0 ||
                                 strcasecmp(c->status, "oom") == 0);
}

static const char *layout_gap(const ms_pubrun_cells *c)
{
    if (c->gpus <= 0)
        return "incomplete: number of GPUs";
    if (c->tp <= 0 || c->pp <= 0)
        return "incomplete: layout";
    if (c->seq <= 0)
        return "incomplete: sequence length";
    return NULL;
}

const char *ms_pubrun_gap(ms_ctx *cx, ms_pubrun_store *store, const ms_pubrun_cells *c)
{
    if (c->source == NULL)
        return "incomplete: source";
    if (c->model == NULL)
        return "incomplete: model";
    if (c->gpu_type == NULL)
        return "incomplete: type of GPU";
    const char *gap = ms_pubrun_model_gap(cx, store, c);
    if (gap == NULL)
        gap = layout_gap(c);
    if (gap == NULL && isnan(c->step_s) && isnan(c->tokens_per_s_per_gpu) &&
        isnan(c->peak_mem_gib) && !ms_pubrun_is_unfinished(c))
        gap = "incomplete: neither time, tokens/s nor memory is measured";
    return gap;
}

/* ---- layouts that contradict themselves ---- */

static bool divides_out(long *rest, long size)
{
    if (*rest % size != 0)
        return false;
    *rest /= size;
    return true;
}

const char *ms_pubrun_contradiction(ms_arena *arena, const ms_pubrun_cells *c)
{
    long tp = c->tp, pp = c->pp, cp = ms_pubrun_degree(c->cp), dp = c->gpus;
    if (!divides_out(&dp, tp) || !divides_out(&dp, pp) || !divides_out(&dp, cp))
        return ms_arena_printf(arena, "tp %ld x pp %ld x cp %ld does not divide %ld GPUs",
                               tp, pp, cp, c->gpus);
    long stated = ms_pubrun_degree(c->dp_replicate) * ms_pubrun_degree(c->dp_shard);
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

ms_skipped ms_pubruns_skipped(ms_arena *arena, const ms_pubruns *runs)
{
    ms_skipped skipped = {0, MS_NEW_ARRAY(arena, runs->num_runs, ms_skipped_row)};
    for (int i = 0; i < runs->num_runs; i++) {
        const ms_pubrun *run = &runs->runs[i];
        if (run->reason != NULL)
            skipped.rows[skipped.num_rows++] =
                (ms_skipped_row){run->line, NULL, run->reason, run->fault};
    }
    return skipped;
}
