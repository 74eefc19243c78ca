#include "cli/run_memory.h"

#include "sim/prediction_print.h"

#include <math.h>
#include <string.h>

static double needed_bytes(const ms_prediction *prediction, const ms_plan *plan,
                           const ms_model *model, int num_whole)
{
    double ranks = (double)plan->gpus / (double)prediction->num_stages, sum = 0.0;
    for (int stage = 0; stage < prediction->num_stages; stage++)
        sum += ranks * prediction->stages[stage].peak_bytes;
    return sum + num_whole * ms_model_params(model).total * (double)sizeof(double);
}

/* The number after `key` in a file of the system; with key NULL its first word. Negative: none. */
static double read_number(const char *path, const char *key)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return -1.0;
    char line[256];
    double value = -1.0;
    while (value < 0.0 && fgets(line, sizeof line, file) != NULL) {
        size_t skip = key != NULL ? strlen(key) : 0;
        if (key != NULL && strncmp(line, key, skip) != 0)
            continue;
        if (sscanf(line + skip, "%lf", &value) != 1) /* NOLINT(cert-err34-c): checked */
            value = -1.0;
        if (key == NULL)
            break;
    }
    (void)fclose(file);
    return value;
}

static double available_bytes(void)
{
    double available = 1024.0 * read_number("/proc/meminfo", "MemAvailable:");
    double limit = read_number("/sys/fs/cgroup/memory.max", NULL);
    double used = read_number("/sys/fs/cgroup/memory.current", NULL);
    double cached = read_number("/sys/fs/cgroup/memory.stat", "inactive_file ");
    used -= cached > 0.0 ? cached : 0.0;
    double free_bytes = available < 0.0 ? (double)INFINITY : available;
    if (limit >= 0.0 && used >= 0.0 && limit - used < free_bytes)
        free_bytes = limit > used ? limit - used : 0.0;
    return free_bytes;
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

static const char *find_change(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                               double available, int num_whole)
{
    ms_ctx quiet = {.arena = cx->arena};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        ms_plan changed = *plan;
        changes[i].apply(&changed);
        ms_prediction prediction;
        if (ms_plan_refusal(&changed, workload->model) == MS_LEGAL &&
            ms_predict(&quiet, workload, &changed, &prediction) == MS_OK &&
            needed_bytes(&prediction, plan, workload->model, num_whole) <= available)
            return changes[i].flags;
    }
    return NULL;
}

static const char *reason_of(ms_arena *arena, const ms_run_room *room,
                             const ms_plan *plan)
{
    double needed = ms_gib(room->needed_bytes), available = ms_gib(room->available_bytes);
    const char *ranks =
        plan->gpus == 1
            ? ms_arena_printf(arena, "the rank of this plan needs %.2f GiB", needed)
            : ms_arena_printf(arena, "the %ld ranks of this plan need %.2f GiB together",
                              plan->gpus, needed);
    return ms_arena_printf(arena, "%s, this machine has %.2f GiB free: %.2f GiB short",
                           ranks, available, needed - available);
}

ms_run_room ms_run_room_of(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                           const ms_prediction *prediction, int num_whole)
{
    ms_run_room room = {needed_bytes(prediction, plan, workload->model, num_whole),
                        available_bytes(), NULL, NULL};
    if (room.needed_bytes <= room.available_bytes)
        return room;
    room.reason = reason_of(cx->arena, &room, plan);
    room.change = find_change(cx, workload, plan, room.available_bytes, num_whole);
    return room;
}

/* ---- what is said ---- */

ms_status ms_run_room_fail(ms_ctx *cx, const ms_run_room *room)
{
    ms_fail(cx, MS_ENOFIT, MS_NOWHERE, "%s", room->reason);
    if (room->change != NULL)
        ms_hint(cx, "%s would fit; --force runs it as it is", room->change);
    else
        ms_hint(cx, "take a smaller model or batch; --force runs it as it is");
    return MS_ENOFIT;
}

static void write_change(ms_jout *out, const ms_run_room *room)
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

void ms_run_room_write_json(ms_jout *out, const ms_run_room *room, const ms_plan *plan)
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
