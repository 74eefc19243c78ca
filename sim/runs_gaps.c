/* What a row of published runs leaves open about its layout: what its framework does unless told otherwise, or why nothing can be predicted. */
#include "sim/runs_priv.h"

#include <math.h>

long ms_run_degree(long stated)
{
    return stated > 0 ? stated : 1;
}

/* ---- what is filled in ---- */

/* Tables of tensor parallelism alone give no number of GPUs: one replica, unless they state more. */
static void fill_gpus(ms_run_cells *c, ms_run_notes *notes)
{
    if (c->gpus > 0 || c->tp <= 0 || c->pp <= 0)
        return;
    const long most = 1 << 20;
    const long degrees[] = {c->tp, c->pp, c->cp, c->dp_replicate, c->dp_shard};
    long gpus = 1;
    for (size_t i = 0; i < sizeof degrees / sizeof *degrees; i++) {
        if (ms_run_degree(degrees[i]) > most / gpus)
            return;
        gpus *= ms_run_degree(degrees[i]);
    }
    c->gpus = gpus;
    ms_run_note(notes, "%ld GPUs, as the stated degrees make", gpus);
}

/* Frameworks that shard weights by default split nothing else unless told to (MaxText's ici_fsdp_parallelism -1 and torchtitan's
 * data_parallel_shard_degree -1 take all that is left; their other degrees are 1). */
static void fill_degrees(ms_run_cells *c, const ms_stack *stack, ms_run_notes *notes)
{
    bool shards = stack != NULL && (stack->default_zero < 0 || stack->default_zero == 3);
    if (!shards || c->gpus <= 0 || (c->tp > 0 && c->pp > 0))
        return;
    ms_run_note(notes, "%s%s", c->tp <= 0 ? "tp 1" : "",
                c->pp > 0 ? "" : (c->tp <= 0 ? ", pp 1" : "pp 1"));
    c->tp = ms_run_degree(c->tp);
    c->pp = ms_run_degree(c->pp);
}

static long common_divisor(long a, long b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* Experts over as many of a stage's ranks as divide them: dispatchers are made for it, and large mixtures fit no other way. */
static void fill_experts(ms_run_cells *c, ms_run_notes *notes)
{
    if (c->experts <= 0 || c->ep > 0 || c->gpus <= 0 || c->tp <= 0 || c->pp <= 0)
        return;
    c->ep = common_divisor(c->experts, c->gpus / c->pp);
    ms_run_note(notes, "ep %ld", c->ep);
}

void ms_run_layout_fill(ms_run_cells *cells, const ms_stack *stack, ms_run_notes *notes)
{
    fill_gpus(cells, notes);
    fill_degrees(cells, stack, notes);
    fill_experts(cells, notes);
}

/* ---- what a complete row states ---- */

static const char *layout_gap(const ms_run_cells *c)
{
    if (c->gpus <= 0)
        return "incomplete: number of GPUs";
    if (c->tp <= 0 || c->pp <= 0)
        return "incomplete: layout";
    if (c->seq <= 0)
        return "incomplete: sequence length";
    return NULL;
}

const char *ms_run_gap(ms_arena *arena, const ms_run_cells *c)
{
    if (c->source == NULL)
        return "incomplete: source";
    if (c->model == NULL)
        return "incomplete: model";
    if (c->gpu_type == NULL)
        return "incomplete: type of GPU";
    const char *gap =
        ms_run_model_gap(c, ms_known_model_find(arena, c->model, c->gated_ffn != 0));
    if (gap == NULL)
        gap = layout_gap(c);
    if (gap == NULL && isnan(c->step_s) && isnan(c->tokens_per_s_per_gpu) &&
        isnan(c->peak_mem_gib))
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

const char *ms_run_contradiction(ms_arena *arena, const ms_run_cells *c)
{
    long tp = c->tp, pp = c->pp, cp = ms_run_degree(c->cp), dp = c->gpus;
    if (!divides_out(&dp, tp) || !divides_out(&dp, pp) || !divides_out(&dp, cp))
        return ms_arena_printf(arena, "tp %ld x pp %ld x cp %ld does not divide %ld GPUs",
                               tp, pp, cp, c->gpus);
    long stated = ms_run_degree(c->dp_replicate) * ms_run_degree(c->dp_shard);
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
