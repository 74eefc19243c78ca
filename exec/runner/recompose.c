#include "exec/runner/recompose.h"

#include "base/number.h"
#include "costmodel/calibrate/statistics.h"

#include <math.h>
#include <string.h>

const char *const ms_action_time_names[] = {[MS_TIME_FORWARD] = "forward",
                                            [MS_TIME_BACKWARD] = "backward",
                                            [MS_TIME_INPUT] = "backward for inputs",
                                            [MS_TIME_WEIGHT] = "backward for weights",
                                            NULL};

double ms_action_time_s(const ms_stage_times *times, ms_action_time which)
{
    const double seconds[MS_NUM_ACTION_TIMES] = {[MS_TIME_FORWARD] = times->forward_s,
                                                 [MS_TIME_BACKWARD] = times->backward_s,
                                                 [MS_TIME_INPUT] = times->input_s,
                                                 [MS_TIME_WEIGHT] = times->weight_s};
    return seconds[which];
}

/* ---- opening ---- */

ms_recomposition ms_recomposition_open(ms_arena *arena, const ms_planned *planned)
{
    const ms_schedule *schedule = planned->schedule;
    int ranks = schedule->shape.num_ranks, stages = schedule->num_stages;
    ms_stage_times *predicted = MS_NEW_ARRAY(arena, stages, ms_stage_times),
                   *times = MS_NEW_ARRAY(arena, stages, ms_stage_times);
    ms_step_durations(&planned->pipeline, planned->sharding, arena, predicted);
    memcpy(times, predicted, (size_t)stages * sizeof *times);
    ms_recomposition r = {.arena = arena,
                          .planned = planned,
                          .num_ranks = ranks,
                          .num_stages = stages,
                          .predicted = predicted,
                          .times = times,
                          .is_measured = ms_arena_array(
                              arena, (size_t)stages, sizeof(bool[MS_NUM_ACTION_TIMES])),
                          .measured_by = MS_NEW_ARRAY(arena, ranks, int),
                          .reduces_s = MS_NEW_ARRAY(arena, ranks, double),
                          .update_s = MS_NEW_ARRAY(arena, ranks, double),
                          .step_s = NAN};
    for (int rank = 0; rank < ranks; rank++)
        r.measured_by[rank] = -1;
    r.predicted_step_s =
        ms_step_time_of(&planned->pipeline, planned->sharding, schedule, predicted, arena)
            .step_s;
    return r;
}

static const ms_stage *stage_of(const ms_recomposition *r, int rank, int chunk)
{
    const ms_schedule_shape *shape = &r->planned->schedule->shape;
    int stage = ms_schedule_stage(shape, rank, chunk);
    return ms_planned_stage(r->planned, ms_schedule_model_stage(shape, stage));
}

bool ms_recomposition_is_alike(const ms_recomposition *r, int pipeline_rank, int other)
{
    for (int chunk = 0; chunk < r->planned->schedule->num_chunks; chunk++)
        if (stage_of(r, pipeline_rank, chunk) != stage_of(r, other, chunk))
            return false;
    return true;
}

/* ---- measured durations ---- */

/* The actions measured on a pipeline rank. */
typedef struct actions {
    const ms_schedule *schedule;
    const ms_outcome *outcome;
    int first; /* index of the rank's first action in schedule->actions */
    const ms_slot_cost **costs; /* (num_actions): class; of pairs that of the forward */
    double
        release_s; /* predicted gather before the first action, which the replay adds */
    long first_step;
    double *sorted; /* room for a value of each action in each step */
} actions;

static actions open_actions(const ms_recomposition *r, int pipeline_rank,
                            const ms_outcome *outcome, long warm_up)
{
    const ms_schedule *schedule = r->planned->schedule;
    long num = outcome->num_actions, steps = outcome->steps_done;
    actions a = {.schedule = schedule,
                 .outcome = outcome,
                 .first = schedule->first_action[pipeline_rank],
                 .costs = MS_NEW_ARRAY(r->arena, num, const ms_slot_cost *),
                 .first_step = warm_up < steps ? warm_up : 0,
                 .sorted = MS_NEW_ARRAY(r->arena, (num + 1) * steps, double)};
    for (int slot = schedule->num_slots; slot > 0; slot--) {
        int action = schedule->slot_action[slot] - a.first;
        if (action >= 0 && action < num)
            a.costs[action] = &schedule->slot_costs[schedule->slots[slot].cost];
    }
    a.release_s = r->predicted[a.costs[0]->stage].release_s;
    return a;
}

static double measured_s(const actions *a, long step, int column)
{
    int columns = a->outcome->num_actions + MS_NUM_STEP_ENDS;
    double seconds = a->outcome->action_s[step * columns + column];
    return column == 0 ? ms_max(0.0, seconds - a->release_s) : seconds;
}

/* Whether an action has the class: of a pair, the stages of both halves count. */
static bool is_in_class(const ms_slot_cost *cost, const ms_slot_cost *class)
{
    bool pair = class->kind == MS_SLOT_PAIR_FORWARD;
    return cost->kind == class->kind && cost->stage == class->stage &&
           cost->first_forward == class->first_forward &&
           cost->last_backward == class->last_backward &&
           (!pair || cost->backward_stage == class->backward_stage);
}

/* Median of the class's actions over all measured steps; NaN: there are none. */
static double median_s(const actions *a, const ms_slot_cost *class)
{
    int num = 0;
    for (int i = 0; i < a->outcome->num_actions; i++)
        for (long step = a->first_step;
             is_in_class(a->costs[i], class) && step < a->outcome->steps_done; step++)
            a->sorted[num++] = measured_s(a, step, i);
    return num == 0 ? (double)NAN : ms_quantile(a->sorted, num, 0.5);
}

/* Median of a column after the actions. */
static double end_median_s(const actions *a, int end)
{
    int num = 0;
    for (long step = a->first_step; step < a->outcome->steps_done; step++)
        a->sorted[num++] = measured_s(a, step, a->outcome->num_actions + end);
    return ms_quantile(a->sorted, num, 0.5);
}

/* Sets *plain and *edge to medians of a kind's actions, and of the first or last one. A
 * duration without actions is the other's; without either, both remain predicted and the
 * result is false. */
static bool take_kind(const actions *a, ms_slot_cost class, bool is_forward,
                      double *plain, double *edge)
{
    double plain_s = median_s(a, &class);
    class.first_forward = is_forward;
    class.last_backward = !is_forward;
    double edge_s = median_s(a, &class);
    if (isnan(plain_s) && isnan(edge_s))
        return false;
    *plain = isnan(plain_s) ? edge_s : plain_s;
    *edge = isnan(edge_s) ? plain_s : edge_s;
    return true;
}

/* Durations of pairs, as seconds saved against both halves alone. */
static void take_pairs(const ms_recomposition *r, const actions *a, int stage)
{
    const ms_schedule_shape *shape = &a->schedule->shape;
    double *saved_s = MS_NEW_ARRAY(r->arena, a->schedule->num_chunks, double);
    const ms_stage_times *t = &r->times[stage];
    for (int chunk = 0; chunk < a->schedule->num_chunks; chunk++) {
        int other = ms_schedule_stage(shape, ms_schedule_rank(shape, stage), chunk);
        ms_slot_cost class = {.kind = MS_SLOT_PAIR_FORWARD,
                              .stage = (short)stage,
                              .backward_stage = (short)other};
        double pair_s = median_s(a, &class);
        double both_s = t->forward_s + r->times[other].backward_s;
        saved_s[chunk] = isnan(pair_s) ? 0.0 : both_s - pair_s;
    }
    r->times[stage].pair_saved_s = saved_s;
}

static void take_stage(const ms_recomposition *r, const actions *a, int stage)
{
    ms_stage_times *t = &r->times[stage];
    const ms_stage_times predicted = *t;
    *t = (ms_stage_times){.forward_s = predicted.forward_s,
                          .first_forward_s = predicted.forward_s,
                          .backward_s = predicted.backward_s,
                          .last_backward_s = predicted.backward_s,
                          .input_s = predicted.input_s,
                          .weight_s = predicted.weight_s,
                          .last_weight_s = predicted.weight_s,
                          .send_forward_s = predicted.send_forward_s,
                          .send_backward_s = predicted.send_backward_s,
                          .release_s = predicted.release_s};
    bool *is_measured = r->is_measured[stage];
    ms_slot_cost class = {.kind = MS_SLOT_FORWARD, .stage = (short)stage};
    is_measured[MS_TIME_FORWARD] =
        take_kind(a, class, true, &t->forward_s, &t->first_forward_s);
    class.kind = MS_SLOT_BACKWARD;
    is_measured[MS_TIME_BACKWARD] =
        take_kind(a, class, false, &t->backward_s, &t->last_backward_s);
    class.kind = MS_SLOT_WEIGHT;
    is_measured[MS_TIME_WEIGHT] =
        take_kind(a, class, false, &t->weight_s, &t->last_weight_s);
    class.kind = MS_SLOT_INPUT;
    double input_s = median_s(a, &class);
    is_measured[MS_TIME_INPUT] = !isnan(input_s);
    t->input_s = isnan(input_s) ? t->input_s : input_s;
}

/* Gives `rank` the durations of `from`, which are measured, chunk by chunk. */
static void copy_rank(ms_recomposition *r, int from, int rank)
{
    const ms_schedule *schedule = r->planned->schedule;
    for (int chunk = 0; chunk < schedule->num_chunks; chunk++) {
        int stage = ms_schedule_stage(&schedule->shape, rank, chunk);
        ms_stage_times *to = &r->times[stage], own = r->predicted[stage];
        *to = r->times[ms_schedule_stage(&schedule->shape, from, chunk)];
        to->send_forward_s = own.send_forward_s;
        to->send_backward_s = own.send_backward_s;
        to->release_s = own.release_s;
    }
    r->reduces_s[rank] = r->reduces_s[from];
    r->update_s[rank] = r->update_s[from];
    r->measured_by[rank] = from;
}

void ms_recomposition_add(ms_recomposition *r, int pipeline_rank,
                          const ms_outcome *outcome, long warm_up)
{
    const ms_schedule *schedule = r->planned->schedule;
    actions a = open_actions(r, pipeline_rank, outcome, warm_up);
    for (int chunk = 0; chunk < schedule->num_chunks; chunk++)
        take_stage(r, &a, ms_schedule_stage(&schedule->shape, pipeline_rank, chunk));
    for (int chunk = 0; chunk < schedule->num_chunks; chunk++)
        take_pairs(r, &a, ms_schedule_stage(&schedule->shape, pipeline_rank, chunk));
    r->reduces_s[pipeline_rank] = end_median_s(&a, MS_STEP_REDUCES);
    r->update_s[pipeline_rank] = end_median_s(&a, MS_STEP_UPDATES);
    r->measured_by[pipeline_rank] = pipeline_rank;
    for (int other = 0; other < r->num_ranks; other++)
        if (r->measured_by[other] != other &&
            ms_recomposition_is_alike(r, pipeline_rank, other))
            copy_rank(r, pipeline_rank, other);
}

/* ---- the step ---- */

void ms_recompose(ms_recomposition *r)
{
    const ms_planned *p = r->planned;
    ms_replay_result result = {.end_s = MS_NEW_ARRAY(r->arena, r->num_ranks, double)};
    ms_replay(p->schedule, r->times, r->arena, &result);
    int slowest;
    double update_s = 0.0, complete_s = 0.0;
    for (int rank = 0; rank < r->num_ranks; rank++) {
        bool measured = r->measured_by[rank] >= 0;
        complete_s = ms_max(complete_s,
                            result.end_s[rank] + (measured ? r->reduces_s[rank] : 0.0));
        update_s = ms_max(update_s,
                          measured ? r->update_s[rank]
                                   : ms_optimizer_s(&p->pipeline, p->sharding, &slowest));
    }
    r->step_s = complete_s + update_s;
}
