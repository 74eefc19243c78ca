#include "cli/report/replay_report.h"

#include "base/print.h"
#include "base/table.h"
#include "sim/step/prediction_text.h"

#include <math.h>

static const char not_validated[] =
    "links, algorithms of collectives, stragglers and routing: transfers took their "
    "predicted times, experts got equal numbers of tokens";

double ms_replayed_action_s(const ms_replay_report *report, const ms_replayed *replayed,
                            ms_action_time which, bool measured)
{
    const ms_recomposition *r = report->recomposition;
    const ms_schedule *schedule = report->planned->schedule;
    double sum_s = 0.0;
    int num = 0;
    for (int chunk = 0; chunk < schedule->num_chunks; chunk++) {
        int stage = ms_schedule_stage(&schedule->shape, replayed->pipeline_rank, chunk);
        const ms_stage_times *times = measured ? r->times : r->predicted;
        if (!r->is_measured[stage][which])
            continue;
        sum_s += ms_action_time_s(&times[stage], which);
        num++;
    }
    return num > 0 ? sum_s / num : (double)NAN;
}

/* ---- text ---- */

static void print_inputs(FILE *out, ms_arena *arena, const ms_replay_report *r)
{
    ms_print(out, "%s\n", ms_plan_inputs_text(arena, r->plan, r->prediction->unit));
    ms_print(out, "plan     %s\n", ms_plan_text(arena, r->plan));
    ms_print(out,
             "replay   %d of %ld ranks, one at a time on backend %s, %s; other ranks and "
             "links are modelled\n",
             r->num_replayed, r->plan->gpus, r->backend, r->dtype);
    ms_print(out, "steps    %ld of each", r->num_steps);
    if (r->warm_up > 0)
        ms_print(out, ", the first %s not measured",
                 r->warm_up == 1 ? "one" : ms_arena_printf(arena, "%ld", r->warm_up));
    if (r->interrupted)
        ms_print(out, "; interrupted while rank %ld executed, which is left out",
                 r->interrupted_rank);
    fputc('\n', out);
}

static void milliseconds_cells(ms_table *table, double measured_s, double predicted_s)
{
    ms_table_cells(table, "%.3f\t%.3f", 1e3 * measured_s, 1e3 * predicted_s);
    if (measured_s > 0.0 && predicted_s > 0.0)
        ms_table_cell(table, "%.3g", predicted_s / measured_s);
    else
        ms_table_cell(table, "%s", "");
}

static void print_actions(FILE *out, ms_arena *arena, const ms_replay_report *r)
{
    ms_table *table = MS_TABLE(arena, "rrrLrrr", "rank", "pp", "stands for", "action",
                               "measured (ms)", "predicted (ms)", "predicted/measured");
    long pipelines = r->plan->gpus / r->plan->size[MS_PP];
    for (int i = 0; i < r->num_replayed; i++) {
        const ms_replayed *one = &r->replayed[i];
        for (int which = 0; which < MS_NUM_ACTION_TIMES; which++) {
            double measured_s = ms_replayed_action_s(r, one, (ms_action_time)which, true);
            if (isnan(measured_s))
                continue;
            ms_table_cells(table, "%ld\t%d\t%ld\t%s", one->rank, one->pipeline_rank,
                           one->num_alike * pipelines, ms_action_time_names[which]);
            milliseconds_cells(
                table, measured_s,
                ms_replayed_action_s(r, one, (ms_action_time)which, false));
        }
    }
    fputs("\nactions: medians over micro-batches and steps, mean over a rank's stages\n",
          out);
    ms_table_print(table, out);
}

/* A rank that executes alone waits for no other: time outside its kernels and transfers
 * is time in which the device waits for the host. */
static double host_bound_frac(const ms_replayed *one)
{
    return one->measured.times->host_s / one->measured.step_s;
}

static void print_times(FILE *out, ms_arena *arena, const ms_replay_report *r)
{
    ms_table *table = MS_TABLE(arena, "rrrrrrr", "rank", "pp", "step alone", "kernels",
                               "exposed comm", "optimizer", "host-bound");
    for (int i = 0; i < r->num_replayed; i++) {
        const ms_replayed *one = &r->replayed[i];
        const ms_measured_times *times = one->measured.times;
        ms_table_cells(table, "%ld\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.1f %%", one->rank,
                       one->pipeline_rank, 1e3 * one->measured.step_s,
                       1e3 * times->compute_s, 1e3 * times->exposed_comm_s,
                       1e3 * times->optimizer_s, 1e2 * host_bound_frac(one));
    }
    fputs("\nwhere a rank's step goes (ms); host-bound: the device waits for the host\n",
          out);
    ms_table_print(table, out);
}

/* ---- kernels beside transfers ---- */

#define MAX_SLOWDOWNS 12

static void slowdown_row(ms_table *table, ms_arena *arena, const ms_kernel_slowdown *s)
{
    const ms_node_kind kind = {.name = s->name, .task_kind = s->task_kind};
    ms_table_cells(table, "%s\t%ld\t%ld",
                   s->name != NULL ? ms_node_kind_text(arena, &kind) : "all compared",
                   s->num_alone, s->num_overlapped);
    if (s->num_compared == 0) {
        ms_table_cells(table, "%s\t%s\t%s\t%s\t%s", "", "", "", "", "");
        return;
    }
    ms_table_cells(table, "%.3f\t%.3f\t%.0f %%\t%.3f\t%.3f", 1e3 * s->alone_s,
                   1e3 * s->overlapped_s, 1e2 * s->moving_s / s->overlapped_s,
                   s->overlapped_s / s->alone_s, s->predicted_s / s->alone_s);
}

static void print_slowdowns(FILE *out, ms_arena *arena, const ms_replayed *one)
{
    const ms_kernel_slowdowns *all = &one->slowdowns;
    ms_table *table =
        MS_TABLE(arena, "Lrrrrrrr", "kernels", "alone", "beside", "alone (ms)",
                 "beside (ms)", "transfers move", "slowdown", "predicted");
    slowdown_row(table, arena, &all->all);
    for (int i = 0; i < all->num && i < MAX_SLOWDOWNS; i++)
        slowdown_row(table, arena, &all->kinds[i]);
    ms_print(out,
             "\nkernels alone and beside transfers, rank %ld: executions, mean times of "
             "equal kernels",
             one->rank);
    if (all->num > MAX_SLOWDOWNS)
        ms_print(out, "; %d of %d kinds, --json has all", MAX_SLOWDOWNS, all->num);
    fputc('\n', out);
    ms_table_print(table, out);
}

static void write_slowdown_fields(ms_jout *out, const ms_kernel_slowdown *s)
{
    ms_jout_number_field(out, "alone", (double)s->num_alone);
    ms_jout_number_field(out, "beside_transfers", (double)s->num_overlapped);
    ms_jout_number_field(out, "compared", (double)s->num_compared);
    ms_jout_number_field(out, "alone_s", s->alone_s);
    ms_jout_number_field(out, "beside_transfers_s", s->overlapped_s);
    ms_jout_number_field(out, "moving_s", s->moving_s);
    ms_jout_number_field(out, "predicted_s", s->predicted_s);
    ms_jout_number_field(out, "slowdown", s->overlapped_s / s->alone_s);
    ms_jout_number_field(out, "predicted_slowdown", s->predicted_s / s->alone_s);
}

static void write_slowdowns(ms_jout *out, ms_arena *arena, const ms_kernel_slowdowns *all)
{
    ms_jout_begin_object_field(out, "slowdown");
    write_slowdown_fields(out, &all->all);
    ms_jout_begin_array_field(out, "kinds");
    for (int i = 0; i < all->num; i++) {
        const ms_kernel_slowdown *s = &all->kinds[i];
        const ms_node_kind kind = {.name = s->name, .task_kind = s->task_kind};
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "kind", ms_node_kind_text(arena, &kind));
        write_slowdown_fields(out, s);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

/* ---- memory ---- */

static void print_devices(FILE *out, const ms_replay_report *r)
{
    const double gib = 1 << 30;
    for (int i = 0; i < r->num_replayed; i++) {
        const ms_replayed *one = &r->replayed[i];
        const ms_cuda_used *used = &one->device;
        if (!one->on_gpu)
            continue;
        ms_print(out,
                 "device   rank %ld: %s, %.1f of %.1f GiB in use, %.1f in the arena\n",
                 one->rank, used->facts.name, used->device_used_bytes / gib,
                 used->device_total_bytes / gib, used->memory.most_held_bytes / gib);
    }
}

static void print_memory(FILE *out, ms_arena *arena, const ms_replay_report *r)
{
    ms_table *table = MS_TABLE(arena, "rrrrrr", "rank", "pp", "peak", "predicted",
                               "difference (bytes)", "scratch");
    const double mib = 1 << 20;
    for (int i = 0; i < r->num_replayed; i++) {
        const ms_replayed *one = &r->replayed[i];
        const ms_ledger *ledger = &one->outcome.ranks[0].ledger;
        double predicted = r->prediction->stages[one->pipeline_rank].peak_bytes;
        ms_table_cells(table, "%ld\t%d\t%.3f\t%.3f\t%.0f\t%.2f", one->rank,
                       one->pipeline_rank, ledger->peak_bytes / mib, predicted / mib,
                       ledger->peak_bytes - predicted,
                       ledger->workspace_peak_bytes / mib);
    }
    fputs("\nmemory at the peak (MiB); scratch memory is extra\n", out);
    ms_table_print(table, out);
}

/* The rank whose step took longest. */
static const ms_replayed *slowest(const ms_replay_report *r)
{
    const ms_replayed *out = &r->replayed[0];
    for (int i = 1; i < r->num_replayed; i++)
        if (r->replayed[i].measured.step_s > out->measured.step_s)
            out = &r->replayed[i];
    return out;
}

void ms_replay_print(FILE *out, ms_arena *arena, const ms_replay_report *r)
{
    const ms_recomposition *whole = r->recomposition;
    print_inputs(out, arena, r);
    if (r->num_replayed == 0) {
        fputs("\nno rank was replayed\n", out);
        return;
    }
    print_devices(out, r);
    print_actions(out, arena, r);
    print_times(out, arena, r);
    print_memory(out, arena, r);
    const ms_replayed *longest = slowest(r);
    ms_run_print_kinds(
        out, arena, &longest->measured.kinds,
        ms_arena_printf(arena, "rank %ld, which took longest", longest->rank));
    print_slowdowns(out, arena, longest);
    int num_predicted = 0;
    for (int rank = 0; rank < whole->num_ranks; rank++)
        num_predicted += whole->measured_by[rank] < 0;
    ms_print(out, "\nstep time     %.*f ms recomposed; predicted %.*f ms\n",
             ms_decimals(1e3 * whole->step_s), 1e3 * whole->step_s,
             ms_decimals(1e3 * whole->predicted_step_s), 1e3 * whole->predicted_step_s);
    if (num_predicted > 0)
        ms_print(out, "              stages of %d of %d pipeline ranks as predicted\n",
                 num_predicted, whole->num_ranks);
    ms_print(out, "not validated %s\n", not_validated);
}

/* ---- JSON ---- */

static void write_actions(ms_jout *out, const ms_replay_report *r, const ms_replayed *one)
{
    ms_jout_begin_array_field(out, "actions");
    for (int which = 0; which < MS_NUM_ACTION_TIMES; which++) {
        double measured_s = ms_replayed_action_s(r, one, (ms_action_time)which, true);
        if (isnan(measured_s))
            continue;
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "action", ms_action_time_names[which]);
        ms_jout_number_field(out, "measured_s", measured_s);
        ms_jout_number_field(out, "predicted_s",
                             ms_replayed_action_s(r, one, (ms_action_time)which, false));
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static void write_rank(ms_jout *out, const ms_replay_report *r, const ms_replayed *one)
{
    const ms_ledger *ledger = &one->outcome.ranks[0].ledger;
    const ms_measured_times *times = one->measured.times;
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "rank", (double)one->rank);
    ms_jout_number_field(out, "pipeline_rank", one->pipeline_rank);
    ms_jout_number_field(out, "pipeline_ranks_alike", one->num_alike);
    ms_jout_number_field(out, "step_alone_s", one->measured.step_s);
    ms_jout_number_field(out, "compute_s", times->compute_s);
    ms_jout_number_field(out, "exposed_comm_s", times->exposed_comm_s);
    ms_jout_number_field(out, "host_s", times->host_s);
    ms_jout_number_field(out, "host_bound_frac", host_bound_frac(one));
    ms_jout_number_field(out, "peak_bytes", ledger->peak_bytes);
    ms_jout_number_field(out, "predicted_peak_bytes",
                         r->prediction->stages[one->pipeline_rank].peak_bytes);
    ms_jout_number_field(out, "scratch_peak_bytes", ledger->workspace_peak_bytes);
    if (one->on_gpu) {
        ms_jout_number_field(out, "device_used_bytes", one->device.device_used_bytes);
        ms_jout_text_field(out, "attention", ms_attention_used(&one->device.attention));
        ms_jout_number_field(out, "arena_bytes", one->device.memory.most_held_bytes);
    }
    write_actions(out, r, one);
    write_slowdowns(out, one->measured.kinds.arena, &one->slowdowns);
    ms_node_kinds_write_json(out, &one->measured.kinds, true);
    ms_jout_end_object(out);
}

void ms_replay_write_json(ms_jout *out, const ms_replay_report *r)
{
    const ms_recomposition *whole = r->recomposition;
    ms_plan used = ms_prediction_plan(r->plan, r->prediction);
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.rank_replay/1");
    ms_jout_text_field(out, "backend", r->backend);
    ms_jout_text_field(out, "transport", "modelled");
    ms_jout_text_field(out, "dtype", r->dtype);
    ms_jout_bool_field(out, "interrupted", r->interrupted);
    ms_jout_number_field(out, "interrupted_rank",
                         r->interrupted ? (double)r->interrupted_rank : (double)NAN);
    ms_jout_number_field(out, "steps", (double)r->num_steps);
    ms_jout_number_field(out, "warm_up_steps", (double)r->warm_up);
    ms_jout_number_field(out, "step_s", whole->step_s);
    ms_jout_number_field(out, "predicted_step_s", whole->predicted_step_s);
    ms_jout_text_field(out, "not_validated", not_validated);
    ms_jout_begin_array_field(out, "measured_by");
    for (int rank = 0; rank < whole->num_ranks; rank++)
        ms_jout_number(out, whole->measured_by[rank] < 0 ? (double)NAN
                                                         : whole->measured_by[rank]);
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "ranks");
    for (int i = 0; i < r->num_replayed; i++)
        write_rank(out, r, &r->replayed[i]);
    ms_jout_end_array(out);
    ms_jout_key(out, "plan");
    ms_plan_write_json(out, &used);
    ms_jout_end_object(out);
}
