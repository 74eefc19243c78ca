#include "cli/options/run_memory.h"

#include "exec/core/host_memory.h"
#include "exec/cuda/cuda_driver.h"
#include "sim/step/prediction_text.h"

void ms_run_place_on_gpus(const ms_ctx *cx, ms_run_place *place)
{
    const ms_cuda_driver *driver = ms_cuda_driver_of_libraries();
    ms_ctx apart = {.arena = cx->arena, .verbosity = -1};
    ms_cuda_facts facts;
    int num_gpus;
    if (driver == NULL || driver->find(&apart, &num_gpus) != MS_OK ||
        driver->describe(&apart, 0, &facts) != MS_OK)
        return;
    place->num_gpus = num_gpus;
    place->gpu_bytes = facts.memory_bytes;
}

static double peak_bytes(const ms_prediction *prediction, const ms_run_place *place,
                         long rank)
{
    return prediction->stages[place->world->places[rank].pp].peak_bytes;
}

/* Host memory that a run needs: whole tensors, the reference rank, and ranks on CPUs. */
static double host_bytes(const ms_prediction *prediction, const ms_run_place *place,
                         const ms_model *model)
{
    double sum = (double)place->num_whole * ms_model_params(model).total * sizeof(double);
    if (place->reference != NULL)
        sum += place->reference->stages[0].peak_bytes;
    for (long i = 0; i < place->num_ranks && place->num_gpus == 0; i++) {
        long rank = place->first_rank + i;
        sum += peak_bytes(prediction, place, rank) +
               prediction->stages[place->world->places[rank].pp].host_bytes;
    }
    return sum;
}

/* Bytes needed on the GPU that needs most, and its index (*most); 0 without GPUs. */
static double gpu_bytes(const ms_prediction *prediction, const ms_run_place *place,
                        int *most)
{
    double largest = 0.0;
    *most = 0;
    for (int gpu = 0; gpu < place->num_gpus; gpu++) {
        double sum = 0.0;
        for (long i = gpu; i < place->num_ranks; i += place->num_gpus)
            sum += peak_bytes(prediction, place, place->first_rank + i);
        sum += prediction->outside_bytes; /* ranks on one GPU share its CUDA context */
        *most = sum > largest ? gpu : *most;
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

static bool fits(const ms_prediction *prediction, const ms_run_place *place,
                 const ms_model *model, double available_bytes)
{
    int most;
    return !(host_bytes(prediction, place, model) > available_bytes) &&
           gpu_bytes(prediction, place, &most) <= place->gpu_bytes;
}

/* Changes of a plan that save memory, the smallest first. */
static const struct {
    const char *flags;
    bool recomputes, shards, one_sequence;
} changes[] = {
    {"--recompute full", true, false, false},
    {"--zero 3", false, true, false},
    {"--microbatch 1", false, false, true},
    {"--recompute full --zero 3 --microbatch 1", true, true, true},
};

/* The flags of the first change with which the plan fits into memory, or NULL. */
static const char *find_change(ms_ctx *cx, ms_workload *workload,
                               const ms_run_place *place, double available)
{
    ms_ctx quiet = {.arena = cx->arena};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        ms_plan changed = *place->world->plan;
        if (changes[i].recomputes) {
            changed.recompute = MS_RECOMPUTE_FULL;
            changed.recompute_layers = 0;
        }
        changed.zero = changes[i].shards ? 3 : changed.zero;
        changed.microbatch = changes[i].one_sequence ? 1 : changed.microbatch;
        ms_prediction prediction;
        if (ms_plan_refusal(&changed, workload->model) == MS_LEGAL &&
            ms_predict(&quiet, workload, &changed, &prediction) == MS_OK &&
            fits(&prediction, place, workload->model, available))
            return changes[i].flags;
    }
    return NULL;
}

/* Formats "<needs> X GiB<where> Y GiB<has>: Z GiB short", needed X, available Y. */
static const char *reason_text(ms_arena *arena, const ms_run_memory *shortfall,
                               const char *needs, const char *where, const char *has)
{
    double needed = ms_gib(shortfall->needed_bytes),
           available = ms_gib(shortfall->available_bytes);
    return ms_arena_printf(arena, "%s %.2f GiB%s %.2f GiB%s: %.2f GiB short", needs,
                           needed, where, available, has, needed - available);
}

static const char *reason_on_gpu(ms_arena *arena, const ms_run_memory *shortfall,
                                 const ms_run_place *place, int gpu)
{
    long num = (place->num_ranks - gpu + place->num_gpus - 1) / place->num_gpus;
    const char *needs =
        num == 1 ? ms_arena_printf(arena, "the rank of this plan on GPU %d needs", gpu)
                 : ms_arena_printf(arena, "the %ld ranks of this plan on GPU %d need",
                                   num, gpu);
    return reason_text(arena, shortfall, needs, ", it has", "");
}

static const char *reason_on_host(ms_arena *arena, const ms_run_memory *shortfall,
                                  const ms_run_place *place)
{
    long num = place->num_ranks, num_all = place->world->num_ranks;
    if (place->num_gpus > 0)
        return reason_text(arena, shortfall,
                           "whole tensors and the rank to compare with need",
                           " besides GPU memory, this machine has", " free");
    if (num_all == 1)
        return reason_text(arena, shortfall, "the rank of this plan needs",
                           ", this machine has", " free");
    const char *some = num == num_all ? "" : ms_arena_printf(arena, "%ld of ", num);
    return reason_text(
        arena, shortfall,
        ms_arena_printf(arena, "%sthe %ld ranks of this plan need", some, num_all),
        " together, this machine has", " free");
}

ms_run_memory ms_run_memory_of(ms_ctx *cx, ms_workload *workload,
                               const ms_prediction *prediction, const ms_run_place *place)
{
    double available_bytes = ms_host_memory_bytes();
    int gpu;
    ms_run_memory shortfall = {.needed_bytes = gpu_bytes(prediction, place, &gpu),
                               .available_bytes = place->gpu_bytes};
    if (shortfall.needed_bytes > shortfall.available_bytes) {
        shortfall.reason = reason_on_gpu(cx->arena, &shortfall, place, gpu);
    } else {
        shortfall.needed_bytes = host_bytes(prediction, place, workload->model);
        shortfall.available_bytes = available_bytes;
        if (!(shortfall.needed_bytes >
              shortfall.available_bytes)) /* NaN: amount unknown */
            return shortfall;
        shortfall.reason = reason_on_host(cx->arena, &shortfall, place);
    }
    shortfall.change = find_change(cx, workload, place, available_bytes);
    return shortfall;
}

/* ---- output ---- */

ms_status ms_run_memory_fail(ms_ctx *cx, const ms_run_memory *shortfall)
{
    ms_fail(cx, MS_ENOFIT, MS_NOWHERE, "%s", shortfall->reason);
    if (shortfall->change != NULL)
        ms_hint(cx, "%s would fit; --force runs it as it is", shortfall->change);
    else
        ms_hint(cx, "take a smaller model or batch; --force runs it as it is");
    return MS_ENOFIT;
}

void ms_run_memory_write_json(ms_jout *out, const ms_run_memory *shortfall,
                              const ms_plan *plan)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "reason", shortfall->reason);
    ms_jout_number_field(out, "needed_bytes", shortfall->needed_bytes);
    ms_jout_number_field(out, "capacity_bytes", shortfall->available_bytes);
    ms_jout_number_field(out, "shortfall_bytes",
                         shortfall->needed_bytes - shortfall->available_bytes);
    ms_jout_key(out, "plan");
    ms_plan_write_json(out, plan);
    ms_jout_key(out, "nearest_change");
    if (shortfall->change == NULL) {
        ms_jout_null(out);
    } else {
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "flags", shortfall->change);
        ms_jout_end_object(out);
    }
    ms_jout_end_object(out);
}
