#include "exec/runner/measured.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- steps ---- */

static int compare_values(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

/* Median, for which `values` are sorted into `sorted`. */
static double median_of(const double *values, long num, double *sorted)
{
    memcpy(sorted, values, (size_t)num * sizeof *sorted);
    qsort(sorted, (size_t)num, sizeof *sorted, compare_values);
    return (sorted[(num - 1) / 2] + sorted[num / 2]) / 2.0;
}

static void measure_steps(ms_arena *arena, const ms_outcome *outcome, long warm_up,
                          ms_measured *out)
{
    long first = warm_up < outcome->steps_done ? warm_up : 0;
    long num = outcome->steps_done - first;
    out->num_steps = num;
    out->step_s = out->least_step_s = out->most_step_s = out->wall_step_s = NAN;
    if (num == 0)
        return;
    double *sorted = MS_NEW_ARRAY(arena, num, double);
    if (outcome->wall_s != NULL)
        out->wall_step_s = median_of(outcome->wall_s + first, num, sorted);
    out->step_s = median_of(outcome->step_s + first, num, sorted);
    out->least_step_s = sorted[0];
    out->most_step_s = sorted[num - 1];
}

/* ---- time of a rank by category ---- */

static void add_slice(ms_measured_times *times, const ms_recorded *slice)
{
    double seconds = slice->end_s - slice->start_s;
    bool between_stages = slice->kind == MS_TASK_SEND || slice->kind == MS_TASK_RECEIVE;
    if (slice->moves)
        return;
    if (slice->waits && between_stages)
        times->bubble_s += seconds;
    else if (slice->waits)
        times->exposed_comm_s += seconds;
    else if (slice->stream != MS_STREAM_COMPUTE)
        return; /* a transfer that overlaps with compute costs no time of its own */
    else if (slice->kind == MS_TASK_OPTIMIZER)
        times->optimizer_s += seconds;
    else if (slice->kind != MS_TASK_HOST)
        times->compute_s += seconds;
}

/* Scale from sums over the measured steps to the median step: its time / their time. */
static double share_of_median(const ms_outcome *outcome, const ms_measured *measured)
{
    double sum_s = 0.0;
    for (long i = outcome->steps_done - measured->num_steps; i < outcome->steps_done; i++)
        sum_s += outcome->step_s[i];
    return measured->step_s / sum_s;
}

static ms_measured_times times_of(const ms_recorder *recorder, double share,
                                  double step_s)
{
    ms_measured_times t = {0};
    if (recorder->num == 0)
        return (ms_measured_times){NAN, NAN, NAN, NAN, NAN};
    for (long i = 0; i < recorder->num; i++)
        add_slice(&t, &recorder->slices[i]);
    t.compute_s *= share;
    t.exposed_comm_s *= share;
    t.bubble_s *= share;
    t.optimizer_s *= share;
    t.host_s = step_s - t.compute_s - t.exposed_comm_s - t.bubble_s - t.optimizer_s;
    return t;
}

static void measure_times(ms_arena *arena, const ms_outcome *outcome, ms_measured *out)
{
    ms_measured_times *times = MS_NEW_ARRAY(arena, outcome->num_ranks, ms_measured_times);
    double share = share_of_median(outcome, out);
    for (long r = 0; r < outcome->num_ranks; r++)
        times[r] = times_of(&outcome->ranks[r].recorder, share, out->step_s);
    out->times = times;
}

ms_measured_times ms_measured_stage_times(const ms_measured *measured,
                                          const ms_outcome *outcome,
                                          const ms_world *world, long pipeline_rank)
{
    ms_measured_times sum = {0};
    double num = 0.0;
    for (long r = 0; r < outcome->num_ranks; r++) {
        if (world->places[outcome->ranks[r].rank].pp != pipeline_rank)
            continue;
        const ms_measured_times *t = &measured->times[r];
        num += 1.0;
        sum.compute_s += t->compute_s;
        sum.exposed_comm_s += t->exposed_comm_s;
        sum.bubble_s += t->bubble_s;
        sum.optimizer_s += t->optimizer_s;
        sum.host_s += t->host_s;
    }
    return (ms_measured_times){sum.compute_s / num, sum.exposed_comm_s / num,
                               sum.bubble_s / num, sum.optimizer_s / num,
                               sum.host_s / num};
}

/* ---- kinds of nodes ---- */

static void add_slice_to_kind(ms_node_kind *kind, const ms_recorded *slice)
{
    double before_s = isnan(kind->measured_s) ? 0.0 : kind->measured_s;
    kind->count += slice->goes_on ? 0.0 : 1.0;
    kind->measured_s = before_s + slice->end_s - slice->start_s;
    if (isnan(slice->predicted_s))
        return;
    before_s = isnan(kind->predicted_s) ? 0.0 : kind->predicted_s;
    kind->predicted_s = before_s + slice->predicted_s;
}

/* Replaces predicted seconds in `out` by `predicted`: the time records, from which `out`
 * was made, have no predictions of transfers that overlap with compute. */
static void take_predicted(const ms_node_kinds *predicted, ms_node_kinds *out)
{
    for (int i = 0; i < out->num; i++)
        out->kinds[i].predicted_s = 0.0;
    for (int i = 0; i < predicted->num; i++) {
        const ms_node_kind *from = &predicted->kinds[i];
        ms_node_kind *kind = ms_node_kinds_at(out, from->name, from->task_kind);
        kind->predicted_s = from->predicted_s;
        if (isnan(kind->measured_s))
            kind->measured_s = 0.0;
    }
}

static void collect_kinds(ms_arena *arena, const ms_outcome *outcome,
                          const ms_node_kinds *predicted, ms_measured *out)
{
    ms_node_kinds *kinds = &out->kinds;
    *kinds = ms_node_kinds_make(arena);
    for (long r = 0; r < outcome->num_ranks; r++) {
        const ms_recorder *recorder = &outcome->ranks[r].recorder;
        for (long i = 0; i < recorder->num; i++) {
            const ms_recorded *slice = &recorder->slices[i];
            if (slice->moves)
                continue;
            add_slice_to_kind(ms_node_kinds_at(kinds, slice->name, slice->kind), slice);
        }
    }
    double steps = (double)out->num_steps, share = share_of_median(outcome, out);
    for (int i = 0; i < kinds->num; i++) {
        kinds->kinds[i].count /= steps;
        kinds->kinds[i].measured_s *= share;
        kinds->kinds[i].predicted_s /= steps;
    }
    if (predicted != NULL && kinds->num > 0)
        take_predicted(predicted, kinds);
    ms_node_kinds_sort(kinds);
}

void ms_measured_make(ms_arena *arena, const ms_outcome *outcome, long warm_up,
                      double tokens_per_step, const ms_node_kinds *predicted,
                      ms_measured *out)
{
    *out = (ms_measured){0};
    measure_steps(arena, outcome, warm_up, out);
    out->tokens_per_s = tokens_per_step / out->step_s;
    for (long r = 0; r < outcome->num_ranks; r++) {
        const ms_rank_outcome *rank = &outcome->ranks[r];
        if (rank->ledger.peak_bytes <= out->peak_bytes)
            continue;
        out->peak_bytes = rank->ledger.peak_bytes;
        out->worst_rank = rank->rank;
    }
    measure_times(arena, outcome, out);
    collect_kinds(arena, outcome, predicted, out);
}
