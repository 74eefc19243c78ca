/* Builds the task graph of a step with a task per schedule action; its longest path takes
 * the step time that ms_replay computes. */
#include "sim/simulate/step_graph_priv.h"

#include "base/number.h"

/* Adds the task that ends when the parameters of the stage of `slot`, a first forward,
 * are gathered; returns 0 if `slot` is no first forward, or one that need not wait. */
static int add_release(ms_step_builder *s, int slot)
{
    const ms_slot_cost *cost = ms_step_class(s, slot);
    double release_s = s->times[cost->stage].release_s;
    if (!cost->first_forward || release_s <= 0.0)
        return 0;
    ms_task_tag tag = {.actor = -1,
                       .stage = cost->stage,
                       .microbatch = -1,
                       .kind = MS_TASK_JOIN,
                       .label = ms_graph_label(s->graph, "parameters are there")};
    return ms_step_add_streamless(s, tag, ms_step_cost_of(s, release_s));
}

/* ---- actions ---- */

static const unsigned char kind_of_slot[] = {
    [MS_SLOT_FORWARD] = MS_TASK_FORWARD,      [MS_SLOT_BACKWARD] = MS_TASK_BACKWARD,
    [MS_SLOT_INPUT] = MS_TASK_BACKWARD_INPUT, [MS_SLOT_WEIGHT] = MS_TASK_BACKWARD_WEIGHT,
    [MS_SLOT_PAIR_FORWARD] = MS_TASK_OVERLAP, [MS_SLOT_PAIR_REST] = MS_TASK_OVERLAP,
};

static double block_compute_s(const ms_block_cost *sum, ms_slot_kind kind)
{
    double halves_s = sum->input_s + sum->weight_s;
    double weight_frac = halves_s > 0.0 ? sum->weight_s / halves_s : 0.0;
    switch (kind) {
    case MS_SLOT_FORWARD:
    case MS_SLOT_PAIR_FORWARD:
        return sum->forward_compute_s;
    case MS_SLOT_BACKWARD:
    case MS_SLOT_PAIR_REST:
        return sum->backward_compute_s;
    case MS_SLOT_INPUT:
        return sum->backward_compute_s * (1.0 - weight_frac);
    case MS_SLOT_WEIGHT:
        break;
    }
    return sum->backward_compute_s * weight_frac;
}

/* Duration of a schedule slot, s: on a slow rank compute takes longer, waits do not. */
static double duration_s(const ms_step_builder *s, const ms_slot_cost *cost,
                         double slow_factor)
{
    double seconds = ms_slot_cost_s(s->schedule, cost, s->times);
    if (slow_factor == 1.0)
        return seconds;
    int stage = ms_schedule_model_stage(&s->schedule->shape, ms_step_stage(cost));
    const ms_block_cost *sum = &ms_planned_stage(s->planned, stage)->sum;
    return seconds + (slow_factor - 1.0) * block_compute_s(sum, (ms_slot_kind)cost->kind);
}

static ms_task_tag reduction_tag(ms_step_builder *s, int actor, int stage, bool shown)
{
    return (ms_task_tag){.actor = shown ? actor : -1,
                         .stage = (short)stage,
                         .stream = shown ? MS_STREAM_REDUCE : MS_STREAM_COMPUTE,
                         .kind = shown ? MS_TASK_COLLECTIVE : MS_TASK_JOIN,
                         .microbatch = -1,
                         .label = ms_graph_label(s->graph, MS_MOVE_REDUCE)};
}

/* Adds, only for display in traces, the gradient reductions that overlap the last
 * backward: all except the tail, which follows that backward. */
static void show_reduction(ms_step_builder *s, int stage, int actor, int before,
                           ms_arrivals from)
{
    const ms_stage_times *t = &s->times[stage];
    double beside_s = ms_max(t->reduce_s - t->reduce_tail_s, 0.0);
    if (beside_s <= 0.0)
        return;
    ms_step_add(s, reduction_tag(s, actor, stage, true), ms_step_cost_of(s, beside_s));
    ms_graph_wait(s->graph, before);
    ms_graph_wait(s->graph, from.activation);
    ms_graph_wait(s->graph, from.gradient);
}

/* Before an action that directly follows another backward of its rank: adds the wait for
 * the first gather of its parameters, or of a W for reductions before its own. */
static void wait_for_transfers(ms_step_builder *s, const ms_slot_cost *cost, int actor)
{
    double seconds = ms_step_wait_s(cost, s->times);
    bool weight = cost->kind == MS_SLOT_WEIGHT;
    if (seconds <= 0.0)
        return;
    ms_task_tag tag = {
        .actor = actor,
        .stage = (short)ms_step_stage(cost),
        .stream = weight ? MS_STREAM_REDUCE : MS_STREAM_GATHER,
        .kind = MS_TASK_COLLECTIVE,
        .microbatch = -1,
        .label = ms_graph_label(s->graph, weight ? MS_MOVE_REDUCE : MS_MOVE_GATHER)};
    int wait = ms_step_add_streamless(s, tag, ms_step_cost_of(s, seconds));
    ms_graph_wait(s->graph, s->ready[actor]);
    s->ready[actor] = wait;
}

static void add_action(ms_step_builder *s, int slot, int actor)
{
    const ms_slot_cost *cost = ms_step_class(s, slot);
    wait_for_transfers(s, cost, actor);
    const ms_action *action = ms_step_action(s, slot);
    ms_arrivals from = ms_step_add_arrivals(s, slot, actor);
    int released = add_release(s, slot), kind = kind_of_slot[cost->kind];
    bool rest = cost->kind == MS_SLOT_PAIR_REST;
    ms_task_tag tag = {.actor = actor,
                       .stage = (short)ms_step_stage(cost),
                       .stream = MS_STREAM_COMPUTE,
                       .kind = (unsigned char)kind,
                       .microbatch =
                           rest ? action->backward_microbatch : action->microbatch,
                       .label = s->labels[kind]};
    double seconds =
        duration_s(s, cost, s->actors->slow_factor[actor]) - ms_step_hold_s(s, cost);
    int task = ms_step_add(s, tag, ms_step_cost_of(s, seconds));
    ms_graph_wait(s->graph, s->ready[actor]);
    ms_graph_wait(s->graph, from.activation);
    ms_graph_wait(s->graph, from.gradient);
    ms_graph_wait(s->graph, released);
    if (cost->last_backward)
        show_reduction(s, ms_step_stage(cost), actor, s->ready[actor], from);
    s->ready[actor] = ms_step_add_hold(s, slot, actor, task);
    if (!rest)
        ms_step_begin_span(s, actor, task);
    ms_step_end_span(s, actor, s->ready[actor]);
}

/* Makes ranks that communicate inside a schedule action end it together. */
static void meet_in_action(ms_step_builder *s, const ms_slot_cost *cost, int rank)
{
    for (int group = MS_TRAFFIC_TP; group <= MS_TRAFFIC_EP; group++)
        ms_step_meet(s, rank, (ms_traffic_group)group, s->ready);
    if (s->planned->sharding == MS_ZERO_3 ||
        (s->planned->sharding == MS_ZERO_2 && !ms_step_is_forward(cost)))
        ms_step_meet_for_shards(s, rank, s->ready);
}

/* ---- parameters and gradients ---- */

/* Adds, only for display in traces, the parameter gathers at the start of the step; the
 * durations of actions already include waiting for them. */
static void show_gathers(ms_step_builder *s, int actor)
{
    const ms_schedule *schedule = s->schedule;
    if (!ms_step_gathers_once(s))
        return;
    for (int chunk = 0; chunk < schedule->num_chunks; chunk++) {
        int stage =
            ms_schedule_stage(&schedule->shape, s->actors->pipeline_rank[actor], chunk);
        int model_stage = ms_schedule_model_stage(&schedule->shape, stage);
        double seconds = ms_planned_stage(s->planned, model_stage)->sum.gather_s;
        ms_task_tag tag = {.actor = actor,
                           .stage = (short)stage,
                           .stream = MS_STREAM_GATHER,
                           .kind = MS_TASK_COLLECTIVE,
                           .microbatch = -1,
                           .label = ms_graph_label(s->graph, MS_MOVE_GATHER)};
        if (seconds > 0.0)
            ms_step_add(s, tag, ms_step_cost_of(s, seconds));
    }
}

static void show_tail(ms_step_builder *s, int stage, int actor, int gate)
{
    double tail_s = s->times[stage].reduce_tail_s;
    if (tail_s <= 0.0)
        return;
    ms_step_add(s, reduction_tag(s, actor, stage, true), ms_step_cost_of(s, tail_s));
    ms_graph_wait(s->graph, gate);
}

/* Adds what comes after all reductions of a rank: one task for each model chunk. */
static void add_after_rank(ms_step_builder *s, int rank, int actor)
{
    for (int chunk = 0; chunk < s->schedule->num_chunks; chunk++) {
        int stage = ms_schedule_stage(&s->schedule->shape, rank, chunk);
        double seconds = s->times[stage].after_rank_s;
        if (seconds <= 0.0)
            continue;
        bool copies =
            ms_schedule_placement(s->schedule->shape.kind) == MS_PLACE_BOTH_WAYS;
        ms_task_tag shown = reduction_tag(s, actor, stage, true);
        shown.label =
            ms_graph_label(s->graph, copies ? MS_MOVE_REPLICA : MS_MOVE_TP_SYNC);
        int cost = ms_step_cost_of(s, seconds);
        ms_step_add(s, shown, cost);
        ms_graph_wait(s->graph, s->reduced[actor]);
        int task = ms_step_add_streamless(s, reduction_tag(s, actor, stage, false), cost);
        ms_graph_wait(s->graph, s->reduced[actor]);
        s->reduced[actor] = task;
    }
}

/* Adds a stage's gradient reductions after its last backward: for display in traces their
 * exposed tail; for the optimizer to wait for, undisplayed tasks with the times of
 * ms_replay to the last bit. */
static void add_reduction(ms_step_builder *s, const ms_slot_cost *cost, int actor,
                          int gate)
{
    int stage = ms_step_stage(cost);
    const ms_stage_times *t = &s->times[stage];
    show_tail(s, stage, actor, gate);
    ms_task_tag tag = reduction_tag(s, actor, stage, false);
    int in_turn = ms_step_add_streamless(s, tag, ms_step_cost_of(s, t->reduce_s));
    ms_graph_wait(s->graph, s->reduced[actor]);
    double rest_s = ms_reduce_rest_s(t, (ms_slot_kind)cost->kind);
    int after = ms_step_add_streamless(s, tag, ms_step_cost_of(s, rest_s));
    ms_graph_wait(s->graph, gate);
    s->reduced[actor] = ms_step_add_streamless(s, tag, s->no_time);
    ms_graph_wait(s->graph, in_turn);
    ms_graph_wait(s->graph, after);
}

/* Adds the gradient reductions of a rank that overlaps none with compute: one task for
 * each model chunk, in the order of ms_replay. */
static void add_tails(ms_step_builder *s, int rank, int actor, int gate)
{
    s->reduced[actor] = gate;
    for (int chunk = 0; chunk < s->schedule->num_chunks; chunk++) {
        int stage = ms_schedule_stage(&s->schedule->shape, rank, chunk);
        show_tail(s, stage, actor, gate);
        ms_task_tag tag = reduction_tag(s, actor, stage, false);
        int tail = ms_step_add_streamless(
            s, tag, ms_step_cost_of(s, s->times[stage].reduce_tail_s));
        ms_graph_wait(s->graph, s->reduced[actor]);
        s->reduced[actor] = tail;
    }
}

static void add_reductions(ms_step_builder *s, const ms_slot_cost *cost, int rank)
{
    bool last = s->times[ms_step_stage(cost)].reduces_last;
    bool ends_rank = ms_schedule_last_complete(s->schedule, rank) == ms_step_stage(cost);
    if (last && !ends_rank)
        return;
    const ms_actors *actors = s->actors;
    for (int i = actors->first_at[rank]; i < actors->first_at[rank + 1]; i++)
        s->gates[actors->at[i]] = s->ready[actors->at[i]];
    ms_step_meet_for_reduction(s, rank, s->gates);
    for (int i = actors->first_at[rank]; i < actors->first_at[rank + 1]; i++) {
        if (last)
            add_tails(s, rank, actors->at[i], s->gates[actors->at[i]]);
        else
            add_reduction(s, cost, actors->at[i], s->gates[actors->at[i]]);
        if (ends_rank)
            add_after_rank(s, rank, actors->at[i]);
    }
}

/* ---- the step ---- */

static void add_slot(ms_step_builder *s, int slot)
{
    const ms_actors *actors = s->actors;
    const ms_slot_cost *cost = ms_step_class(s, slot);
    int rank = ms_step_rank(s, slot);
    for (int i = actors->first_at[rank]; i < actors->first_at[rank + 1]; i++)
        add_action(s, slot, actors->at[i]);
    meet_in_action(s, cost, rank);
    for (int i = actors->first_at[rank]; i < actors->first_at[rank + 1]; i++)
        ms_step_set_end(s, slot, actors->at[i], s->ready[actors->at[i]]);
    if (cost->last_backward)
        add_reductions(s, cost, rank);
}

/* Estimated tasks of a schedule slot: the action, its messages, joins and reductions. */
#define TASKS_PER_SLOT 4.0

ms_status ms_step_graph_actions(ms_ctx *cx, const ms_planned *planned,
                                const ms_simulate_options *options,
                                const ms_actors *actors, ms_step_graph *out)
{
    int num_slots = planned->schedule->num_slots;
    double per_actor = TASKS_PER_SLOT * num_slots / actors->num_pipeline_ranks;
    MS_TRY(ms_step_check_size(cx, actors, per_actor));
    ms_step_builder s = ms_step_builder_open(cx, planned, options, actors);
    for (int a = 0; a < actors->num; a++)
        show_gathers(&s, a);
    for (int slot = 1; slot <= num_slots; slot++)
        add_slot(&s, slot);
    ms_step_add_optimizer(&s);
    ms_step_builder_close(&s, out);
    return MS_OK;
}
