#include "cli/options/run_memory.h"

#include "exec/core/host_memory.h"
#include "sim/step/prediction_text.h"

static double peak_bytes(const ms_prediction *prediction, const ms_run_place *place,
                         long rank)
{
    return prediction->stages[place->world->places[rank].pp].peak_bytes;
}

/* In the memory of the machine, beside GPUs or without. */
static double host_bytes(const ms_prediction *prediction, const ms_run_place *place,
                         const ms_model *model)
{
    double sum = (double)place->num_whole * ms_model_params(model).total * sizeof(double);
    if (place->reference != NULL)
        sum += place->reference->stages[0].peak_bytes;
    for (long i = 0; i < place->num_ranks && place->num_gpus == 0; i++)
        sum += peak_bytes(prediction, place, place->first_rank + i);
    return sum;
}

/* Of the GPU that needs most; 0 without any. */
static double gpu_bytes(const ms_prediction *prediction, const ms_run_place *place,
                        int *most)
{
    double largest = 0.0;
    *most = 0;
    for (int gpu = 0; gpu < place->num_gpus; gpu++) {
        double sum = 0.0;
        for (long i = gpu; i < place->num_ranks; i += place->num_gpus)
            sum += peak_bytes(prediction, place, place->first_rank + i);
        sum += prediction->outside_bytes; /* its ranks share a context */
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

/* ---- changes ---- */

typedef struct change {
    const char *flags;
    void (*apply)(ms_plan *plan);
} change;

static void recompute_all(ms_plan *plan)
{
    plan->recompute = MS_RECOMPUTE_FULL;
    plan->recompute_layers = 0;
}

static void shard_all(ms_plan *plan)
{
    plan->zero = 3;
}

static void take_single(ms_plan *plan)
{
    plan->microbatch = 1;
}

static void take_all(ms_plan *plan)
{
    recompute_all(plan);
    shard_all(plan);
    take_single(plan);
}

static const change changes[] = {
    {"--recompute full", recompute_all},
    {"--zero 3", shard_all},
    {"--microbatch 1", take_single},
    {"--recompute full --zero 3 --microbatch 1", take_all},
};

static const char *find_change(ms_ctx *cx, ms_workload *workload,
                               const ms_run_place *place, double available)
{
    ms_ctx quiet = {.arena = cx->arena};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        ms_plan changed = *place->world->plan;
        changes[i].apply(&changed);
        ms_prediction prediction;
        if (ms_plan_refusal(&changed, workload->model) == MS_LEGAL &&
            ms_predict(&quiet, workload, &changed, &prediction) == MS_OK &&
            fits(&prediction, place, workload->model, available))
            return changes[i].flags;
    }
    return NULL;
}

static const char *reason_on_gpu(ms_arena *arena, const ms_run_memory *room,
                                 const ms_run_place *place, int gpu)
{
    double needed = ms_gib(room->needed_bytes), has = ms_gib(room->available_bytes);
    long num = (place->num_ranks - gpu + place->num_gpus - 1) / place->num_gpus;
    const char *ranks =
        num == 1 ? "the rank" : ms_arena_printf(arena, "the %ld ranks", num);
    return ms_arena_printf(
        arena,
        "%s of this plan on GPU %d need%s %.2f GiB, it has %.2f GiB: %.2f GiB short",
        ranks, gpu, num == 1 ? "s" : "", needed, has, needed - has);
}

static const char *reason_beside_gpus(ms_arena *arena, const ms_run_memory *room)
{
    double needed = ms_gib(room->needed_bytes), has = ms_gib(room->available_bytes);
    return ms_arena_printf(
        arena,
        "whole tensors and the rank to compare with need %.2f GiB beside "
        "the GPUs, this machine has %.2f GiB free: %.2f GiB short",
        needed, has, needed - has);
}

static const char *reason_of(ms_arena *arena, const ms_run_memory *room,
                             const ms_run_place *place)
{
    if (place->num_gpus > 0)
        return reason_beside_gpus(arena, room);
    double needed = ms_gib(room->needed_bytes), available = ms_gib(room->available_bytes);
    long num = place->num_ranks, num_all = place->world->num_ranks;
    const char *some = num == num_all ? "" : ms_arena_printf(arena, "%ld of ", num);
    const char *ranks =
        num_all == 1
            ? ms_arena_printf(arena, "the rank of this plan needs %.2f GiB", needed)
            : ms_arena_printf(arena,
                              "%sthe %ld ranks of this plan need %.2f GiB together", some,
                              num_all, needed);
    return ms_arena_printf(arena, "%s, this machine has %.2f GiB free: %.2f GiB short",
                           ranks, available, needed - available);
}

ms_run_memory ms_run_memory_of(ms_ctx *cx, ms_workload *workload,
                               const ms_prediction *prediction, const ms_run_place *place)
{
    double available_bytes = ms_host_memory_bytes();
    int gpu;
    ms_run_memory room = {.needed_bytes = gpu_bytes(prediction, place, &gpu),
                          .available_bytes = place->gpu_bytes};
    if (room.needed_bytes > room.available_bytes) {
        room.reason = reason_on_gpu(cx->arena, &room, place, gpu);
    } else {
        room.needed_bytes = host_bytes(prediction, place, workload->model);
        room.available_bytes = available_bytes;
        if (!(room.needed_bytes > room.available_bytes)) /* or it is not known */
            return room;
        room.reason = reason_of(cx->arena, &room, place);
    }
    room.change = find_change(cx, workload, place, available_bytes);
    return room;
}

/* ---- what is said ---- */

ms_status ms_run_memory_fail(ms_ctx *cx, const ms_run_memory *room)
{
    ms_fail(cx, MS_ENOFIT, MS_NOWHERE, "%s", room->reason);
    if (room->change != NULL)
        ms_hint(cx, "%s would fit; --force runs it as it is", room->change);
    else
        ms_hint(cx, "take a smaller model or batch; --force runs it as it is");
    return MS_ENOFIT;
}

static void write_change(ms_jout *out, const ms_run_memory *room)
{
    ms_jout_key(out, "nearest_change");
    if (room->change == NULL) {
        ms_jout_null(out);
        return;
    }
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "flags", room->change);
    ms_jout_end_object(out);
}

void ms_run_memory_write_json(ms_jout *out, const ms_run_memory *room,
                              const ms_plan *plan)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "reason", room->reason);
    ms_jout_number_field(out, "needed_bytes", room->needed_bytes);
    ms_jout_number_field(out, "capacity_bytes", room->available_bytes);
    ms_jout_number_field(out, "shortfall_bytes",
                         room->needed_bytes - room->available_bytes);
    ms_jout_key(out, "plan");
    ms_plan_write_json(out, plan);
    write_change(out, room);
    ms_jout_end_object(out);
}
