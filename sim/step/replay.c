/* Longest path over the slots of a pipeline schedule: a slot starts when its rank is free
 * and its input has arrived. Durations are kept per class of equal slots: fewer bytes. */
#include "sim/step/replay.h"

#include "base/number.h"

#include <math.h>

/* Error of a condensed replay above which longer lists are replayed. */
#define MOST_ERROR_FRAC 1e-9

typedef struct slot_cost {
    double wait_s; /* least seconds after the end of the rank's previous slot */
    /* seconds from the sender's end to the arrival; 0 if nothing is received */
    double delay_s;
    /* delay_s of the second message that an overlapped pair receives, the gradient */
    double delay2_s;
    double duration_s;
    double release_s; /* earliest start of the slot, in seconds of the step */
} slot_cost;

/* Seconds of one half of an overlapped pair, whose time is divided in the proportion of
 * forward and backward without overlap. */
static double pair_half_s(const ms_schedule *schedule, const ms_slot_cost *cost,
                          const ms_stage_times *stages)
{
    const ms_stage_times *forward = &stages[cost->stage],
                         *backward = &stages[cost->backward_stage];
    double both_s = forward->forward_s + backward->backward_s;
    double seconds = both_s;
    if (forward->pair_saved_s != NULL)
        seconds -=
            forward
                ->pair_saved_s[ms_schedule_chunk(&schedule->shape, cost->backward_stage)];
    double share_s = both_s > 0.0 ? seconds * forward->forward_s / both_s : 0.0;
    if (cost->kind == MS_SLOT_PAIR_FORWARD)
        return share_s + (cost->first_forward
                              ? forward->first_forward_s - forward->forward_s
                              : 0.0);
    return seconds - share_s +
           (cost->last_backward ? backward->last_backward_s - backward->backward_s : 0.0);
}

double ms_slot_cost_s(const ms_schedule *schedule, const ms_slot_cost *cost,
                      const ms_stage_times *stages)
{
    const ms_stage_times *t = &stages[cost->stage];
    switch ((ms_slot_kind)cost->kind) {
    case MS_SLOT_FORWARD:
        return cost->first_forward ? t->first_forward_s : t->forward_s;
    case MS_SLOT_BACKWARD:
        return cost->last_backward ? t->last_backward_s : t->backward_s;
    case MS_SLOT_INPUT:
        return t->input_s;
    case MS_SLOT_WEIGHT:
        return cost->last_backward ? t->last_weight_s : t->weight_s;
    case MS_SLOT_PAIR_FORWARD:
    case MS_SLOT_PAIR_REST:
        break;
    }
    return pair_half_s(schedule, cost, stages);
}

double ms_step_wait_s(const ms_slot_cost *cost, const ms_stage_times *stages)
{
    bool rest = cost->kind == MS_SLOT_PAIR_REST;
    const ms_stage_times *t = &stages[rest ? cost->backward_stage : cost->stage];
    bool gathers_again =
        rest || cost->kind == MS_SLOT_BACKWARD || cost->kind == MS_SLOT_INPUT;
    double again_s = cost->after_backward ? t->regather_s : t->late_gather_s;
    double regather_s = gathers_again ? again_s : 0.0;
    if (cost->after_last == 0)
        return regather_s;
    const ms_stage_times *last = &stages[cost->after_last - 1];
    double pending_s = cost->after_last_weight ? last->weight_pending_s : last->pending_s;
    return cost->kind == MS_SLOT_WEIGHT
               ? ms_max(0.0, pending_s + t->reduced_s - t->weight_s)
               : regather_s + pending_s;
}

/* Durations and delays of a class of slots. A forward receives from the previous stage, a
 * backward from the next one. */
static slot_cost price_slot_class(const ms_schedule *schedule, const ms_slot_cost *cost,
                                  const ms_stage_times *stages)
{
    slot_cost out = {.duration_s = ms_slot_cost_s(schedule, cost, stages),
                     .wait_s = ms_step_wait_s(cost, stages)};
    bool forward = cost->kind == MS_SLOT_FORWARD || cost->kind == MS_SLOT_PAIR_FORWARD;
    if (cost->first_forward)
        out.release_s = stages[cost->stage].release_s;
    if (cost->receives)
        out.delay_s = forward ? stages[cost->stage - 1].send_forward_s
                              : stages[cost->stage + 1].send_backward_s;
    if (cost->receives2)
        out.delay2_s = stages[cost->backward_stage + 1].send_backward_s;
    return out;
}

static slot_cost *cost_table(const ms_schedule *schedule, const ms_stage_times *stages,
                             ms_arena *scratch)
{
    slot_cost *table = MS_NEW_ARRAY(scratch, schedule->num_slot_costs, slot_cost);
    for (int i = 0; i < schedule->num_slot_costs; i++)
        table[i] = price_slot_class(schedule, &schedule->slot_costs[i], stages);
    return table;
}

/* When the messages that a slot waits for have arrived; 0: it receives none. */
static inline double slot_arrival_s(const ms_slot *slot, const slot_cost *cost,
                                    const double *restrict end_s)
{
    double arrival_s = end_s[slot->cross] + cost->delay_s;
    double arrival2_s = end_s[slot->cross2] + cost->delay2_s;
    return arrival_s > arrival2_s ? arrival_s : arrival2_s;
}

static inline double slot_start_s(const ms_slot *slot, const slot_cost *cost,
                                  const double *restrict end_s)
{
    double start_s = end_s[slot->before] + cost->wait_s;
    double arrival_s = slot_arrival_s(slot, cost, end_s);
    start_s = start_s > arrival_s ? start_s : arrival_s;
    return start_s > cost->release_s ? start_s : cost->release_s;
}

/* Allocates the array of all slots' ends; slot 0, which no rank runs, ends at time 0. */
static double *open_ends(const ms_schedule *schedule, ms_arena *scratch)
{
    double *end_s =
        ms_arena_take(scratch, (size_t)(schedule->num_slots + 1) * sizeof *end_s);
    end_s[0] = 0.0;
    return end_s;
}

/* Computes the ends of slots 1 and up, in seconds; end_s[0] is 0. */
static void find_slot_ends(const ms_schedule *schedule, const slot_cost *table,
                           double *restrict end_s)
{
    const ms_slot *slots = schedule->slots;
    int num_slots = schedule->num_slots;
    for (int i = 1; i <= num_slots; i++) {
        const slot_cost *cost = &table[slots[i].cost];
        end_s[i] = slot_start_s(&slots[i], cost, end_s) + cost->duration_s;
    }
}

static void sum_busy(const ms_schedule *schedule, const slot_cost *table,
                     ms_arena *scratch, double *busy_s)
{
    long *count = MS_NEW_ARRAY(scratch, schedule->num_slot_costs, long);
    for (int i = 1; i <= schedule->num_slots; i++)
        count[schedule->slots[i].cost]++;
    for (int rank = 0; rank < schedule->shape.num_ranks; rank++)
        busy_s[rank] = 0.0;
    for (int i = 0; i < schedule->num_slot_costs; i++) {
        int rank = ms_schedule_rank(&schedule->shape, schedule->slot_costs[i].stage);
        busy_s[rank] += (double)count[i] * table[i].duration_s;
    }
}

static void sum_idle(const ms_schedule *schedule, const slot_cost *table,
                     const double *end_s, bool spans, double *idle_s)
{
    for (int rank = 0; rank < schedule->shape.num_ranks; rank++)
        idle_s[rank] = 0.0;
    for (int i = 1; i <= schedule->num_slots; i++) {
        const ms_slot *slot = &schedule->slots[i];
        int rank =
            ms_schedule_rank(&schedule->shape, schedule->slot_costs[slot->cost].stage);
        double wait_s =
            slot_arrival_s(slot, &table[slot->cost], end_s) - end_s[slot->before];
        if (wait_s > 0.0 && (slot->before != 0 || !spans))
            idle_s[rank] += wait_s;
    }
}

static void find_starts(const ms_schedule *schedule, const slot_cost *table,
                        const double *end_s, double *start_s)
{
    int num_left = schedule->shape.num_ranks;
    for (int i = 1; num_left > 0; i++) {
        const ms_slot *slot = &schedule->slots[i];
        if (slot->before != 0)
            continue;
        int rank =
            ms_schedule_rank(&schedule->shape, schedule->slot_costs[slot->cost].stage);
        start_s[rank] = slot_start_s(slot, &table[slot->cost], end_s);
        num_left--;
    }
}

double ms_reduce_rest_s(const ms_stage_times *times, ms_slot_kind last_backward)
{
    bool split = last_backward == MS_SLOT_WEIGHT;
    double window_s = split ? times->last_weight_s : times->last_backward_s;
    return ms_max(times->reduce_s - window_s,
                  split ? times->weight_tail_s : times->reduce_tail_s);
}

/* The rank's stage with the earliest last backward after slot `after`; -1: none. */
static int next_complete_stage(const ms_schedule *schedule, int rank, int after)
{
    int next = -1, slot = schedule->num_slots + 1;
    for (int chunk = 0; chunk < schedule->num_chunks; chunk++) {
        int stage = ms_schedule_stage(&schedule->shape, rank, chunk);
        int last = schedule->last_backward_slot[stage];
        if (last > after && last < slot) {
            next = stage;
            slot = last;
        }
    }
    return next;
}

/* Seconds at which a rank's last gradient reduction ends without overlap: reductions
 * start after all backwards of the rank. */
static double unoverlapped_reductions_end_s(const ms_schedule *schedule,
                                            const ms_stage_times *stages,
                                            const double *end_s, int rank)
{
    int last = ms_schedule_last_complete(schedule, rank);
    double done_s = end_s[schedule->last_backward_slot[last]];
    for (int chunk = 0; chunk < schedule->num_chunks; chunk++)
        done_s += stages[ms_schedule_stage(&schedule->shape, rank, chunk)].reduce_tail_s;
    return done_s;
}

/* Seconds at which the reductions of a rank's stages end. Stages are reduced in the order
 * of their last backwards, and overlap with those. */
static double stages_reduced_s(const ms_schedule *schedule, const ms_stage_times *stages,
                               const double *end_s, int rank)
{
    double done_s = 0.0;
    int after = 0;
    if (stages[ms_schedule_stage(&schedule->shape, rank, 0)].reduces_last)
        return unoverlapped_reductions_end_s(schedule, stages, end_s, rank);
    for (int i = 0; i < schedule->num_chunks; i++) {
        int stage = next_complete_stage(schedule, rank, after);
        after = schedule->last_backward_slot[stage];
        const ms_slot_cost *cost = &schedule->slot_costs[schedule->slots[after].cost];
        double rest_s = ms_reduce_rest_s(&stages[stage], (ms_slot_kind)cost->kind);
        done_s = ms_max(done_s + stages[stage].reduce_s, end_s[after] + rest_s);
    }
    return done_s;
}

/* Seconds at which a rank's gradients are complete. */
static double reductions_end_s(const ms_schedule *schedule, const ms_stage_times *stages,
                               const double *end_s, int rank)
{
    double done_s = stages_reduced_s(schedule, stages, end_s, rank);
    for (int chunk = 0; chunk < schedule->num_chunks; chunk++)
        done_s += stages[ms_schedule_stage(&schedule->shape, rank, chunk)].after_rank_s;
    return done_s;
}

static void find_ends(const ms_schedule *schedule, const ms_stage_times *stages,
                      const double *end_s, ms_replay_result *out)
{
    out->makespan_s = -1.0;
    for (int rank = 0; rank < schedule->shape.num_ranks; rank++) {
        double rank_end_s = ms_max(end_s[schedule->last_slot[rank]],
                                   reductions_end_s(schedule, stages, end_s, rank));
        if (rank_end_s > out->makespan_s) {
            out->makespan_s = rank_end_s;
            out->last_rank = rank;
        }
        if (out->end_s != NULL)
            out->end_s[rank] = rank_end_s;
    }
}

/* Replays the lists of a schedule. Returns the ends of its slots. */
static const double *replay_lists(const ms_schedule *schedule,
                                  const ms_stage_times *stages, ms_arena *scratch,
                                  ms_replay_result *out)
{
    const slot_cost *table = cost_table(schedule, stages, scratch);
    double *end_s = open_ends(schedule, scratch);
    find_slot_ends(schedule, table, end_s);
    find_ends(schedule, stages, end_s, out);
    if (out->start_s != NULL)
        find_starts(schedule, table, end_s, out->start_s);
    if (out->busy_s != NULL)
        sum_busy(schedule, table, scratch, out->busy_s);
    if (out->idle_s != NULL)
        sum_idle(schedule, table, end_s, out->spans, out->idle_s);
    return end_s;
}

/* ---- condensed schedules ---- */

/* Ends of actions by their place in their rank's list, counted from its end. */
static double *ends_of_actions(const ms_schedule *schedule, const double *slot_end_s,
                               ms_arena *scratch)
{
    int num = schedule->first_action[schedule->shape.num_ranks];
    double *end_s = MS_NEW_ARRAY(scratch, num, double);
    for (int i = 1; i <= schedule->num_slots; i++)
        end_s[schedule->slot_action[i]] = slot_end_s[i];
    return end_s;
}

/* Difference of the largest and the smallest time by which one more period delays an
 * action, over the later half of the shorter lists. */
static double spread_of_advances(const ms_schedule *schedule, const double *end_s,
                                 const double *shorter_end_s)
{
    double least = (double)INFINITY, most = 0.0;
    const int *first = schedule->first_action, *of = schedule->shorter->first_action;
    for (int rank = 0; rank < schedule->shape.num_ranks; rank++) {
        int num = (of[rank + 1] - of[rank]) / 2;
        for (int i = 1; i <= num; i++) {
            double advance_s =
                end_s[first[rank + 1] - i] - shorter_end_s[of[rank + 1] - i];
            least = ms_min(least, advance_s);
            most = ms_max(most, advance_s);
        }
    }
    return most - least;
}

static void extend(const ms_schedule *schedule, const ms_replay_result *shorter,
                   ms_replay_result *out)
{
    out->makespan_s = -1.0;
    for (int rank = 0; rank < schedule->shape.num_ranks; rank++) {
        out->end_s[rank] =
            ms_schedule_extend(schedule, out->end_s[rank], shorter->end_s[rank]);
        out->busy_s[rank] =
            ms_schedule_extend(schedule, out->busy_s[rank], shorter->busy_s[rank]);
        out->idle_s[rank] =
            ms_schedule_extend(schedule, out->idle_s[rank], shorter->idle_s[rank]);
        if (out->end_s[rank] > out->makespan_s) {
            out->makespan_s = out->end_s[rank];
            out->last_rank = rank;
        }
    }
}

static void replay_condensed(const ms_schedule *schedule, const ms_stage_times *stages,
                             ms_arena *scratch, ms_replay_result *out)
{
    int num_ranks = schedule->shape.num_ranks;
    ms_replay_result shorter = {.end_s = MS_NEW_ARRAY(scratch, num_ranks, double),
                                .busy_s = MS_NEW_ARRAY(scratch, num_ranks, double),
                                .idle_s = MS_NEW_ARRAY(scratch, num_ranks, double),
                                .spans = out->spans};
    const double *end_s = replay_lists(schedule, stages, scratch, out);
    const double *shorter_end_s =
        replay_lists(schedule->shorter, stages, scratch, &shorter);
    double spread_s =
        spread_of_advances(schedule, ends_of_actions(schedule, end_s, scratch),
                           ends_of_actions(schedule->shorter, shorter_end_s, scratch));
    extend(schedule, &shorter, out);
    out->error_s = schedule->num_left_out * spread_s;
}

static bool is_accurate(const ms_replay_result *result)
{
    return result->error_s <= MOST_ERROR_FRAC * result->makespan_s ||
           (result->enough_s > 0.0 &&
            result->makespan_s - result->error_s >= result->enough_s);
}

static void replay_extended(const ms_schedule *schedule, const ms_stage_times *stages,
                            ms_arena *scratch, ms_replay_result *out)
{
    int num_ranks = schedule->shape.num_ranks;
    ms_replay_result all = *out;
    double **sums[] = {&all.end_s, &all.busy_s, &all.idle_s};
    for (int i = 0; i < 3; i++)
        if (*sums[i] == NULL)
            *sums[i] = MS_NEW_ARRAY(scratch, num_ranks, double);
    replay_condensed(schedule, stages, scratch, &all);
    ms_schedule_shape whole = schedule->shape;
    whole.num_microbatches +=
        schedule->num_left_out *
        (whole.num_microbatches - schedule->shorter->shape.num_microbatches);
    const long most = MS_MOST_ACTIONS / 4;
    bool short_enough = ms_schedule_num_actions(&whole) <= most;
    long num_actions = short_enough ? most : 4L * schedule->first_action[num_ranks];
    while (!is_accurate(&all) && num_actions <= most) {
        const ms_schedule *longer = ms_schedule_condense(scratch, &whole, num_actions);
        if (longer->shorter == NULL) {
            all.error_s = 0.0;
            (void)replay_lists(longer, stages, scratch, &all);
            break;
        }
        double before_s = all.error_s;
        replay_condensed(longer, stages, scratch, &all);
        if (all.error_s > 0.5 * before_s)
            break; /* ranks take far longer to advance alike, if they ever do */
        num_actions *= 4;
    }
    out->makespan_s = all.makespan_s;
    out->last_rank = all.last_rank;
    out->error_s = all.error_s;
}

void ms_replay(const ms_schedule *schedule, const ms_stage_times *stages,
               ms_arena *scratch, ms_replay_result *out)
{
    ms_arena_mark mark = ms_arena_save(scratch);
    if (schedule->shorter != NULL)
        replay_extended(schedule, stages, scratch, out);
    else
        (void)replay_lists(schedule, stages, scratch, out);
    ms_arena_rewind(scratch, mark);
}

void ms_replay_actions(const ms_schedule *schedule, const ms_stage_times *stages,
                       ms_arena *scratch, double *end_s)
{
    ms_arena_mark mark = ms_arena_save(scratch);
    const slot_cost *table = cost_table(schedule, stages, scratch);
    double *slot_end_s = open_ends(schedule, scratch);
    find_slot_ends(schedule, table, slot_end_s);
    for (int i = 1; i <= schedule->num_slots; i++)
        end_s[schedule->slot_action[i]] = slot_end_s[i];
    ms_arena_rewind(scratch, mark);
}
