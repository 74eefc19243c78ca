/* A task per action of the schedule: the replay as a graph. */
#include "sim/step_graph_priv.h"

#include "base/number.h"

typedef struct builder {
    ms_step_builder s;
    const ms_schedule *schedule;
    ms_stage_times *times; /* by placed stage */
    /* (steps + 1): where the ends of a step are in `ends`, one per actor of its pipeline rank */
    long *first_end;
    int *ends;
    int *place;     /* (actors): among those of its pipeline rank */
    int *next_span; /* (actors): actions begun, less one */
    int *reduced;   /* (actors): after the reductions that were added so far */
    int *gates; /* (actors): when the last backward of all that reduce together is done */
    int labels[MS_NUM_TASK_KINDS];
} builder;

static int rank_of_step(const builder *b, int step)
{
    const ms_schedule *schedule = b->schedule;
    return ms_schedule_rank(&schedule->shape,
                            schedule->step_costs[schedule->steps[step].cost].stage);
}

static int end_of(const builder *b, int step, int actor)
{
    return b->ends[b->first_end[step] + b->place[actor]];
}

static void place_ends(builder *b, ms_arena *arena)
{
    const ms_actors *actors = b->s.actors;
    b->first_end = MS_NEW_ARRAY(arena, b->schedule->num_steps + 1, long);
    b->place = MS_NEW_ARRAY(arena, actors->num, int);
    for (int r = 0; r < actors->num_pipeline_ranks; r++)
        for (int i = actors->first_at[r]; i < actors->first_at[r + 1]; i++)
            b->place[actors->at[i]] = i - actors->first_at[r];
    long num = 0;
    for (int step = 1; step <= b->schedule->num_steps; step++) {
        int rank = rank_of_step(b, step);
        b->first_end[step] = num;
        num += actors->first_at[rank + 1] - actors->first_at[rank];
    }
    b->ends = MS_NEW_ARRAY(arena, num, int);
}

/* ---- what an action waits for ---- */

/* The step's end on the pipeline of `actor`, sent to it. */
static int add_send(builder *b, int step, int actor, double seconds, ms_task_tag tag)
{
    ms_step_builder *s = &b->s;
    int rank = rank_of_step(b, step);
    int sender = s->actors->along[(long)actor * s->actors->num_pipeline_ranks + rank];
    tag.actor = sender;
    tag.kind = MS_TASK_SEND;
    tag.stream = MS_STREAM_SEND;
    tag.label = b->labels[MS_TASK_SEND];
    int send = ms_step_add_beside(s, tag, ms_step_cost_of(s, seconds));
    ms_graph_wait(s->graph, end_of(b, step, sender));
    return send;
}

typedef struct arrivals {
    int activation, gradient, released;
} arrivals;

static arrivals add_arrivals(builder *b, int step, const ms_step_cost *cost, int actor)
{
    const ms_step *at = &b->schedule->steps[step];
    const ms_action *action = &b->schedule->actions[b->schedule->step_action[step]];
    ms_step_builder *s = &b->s;
    arrivals out = {0};
    bool forward = cost->kind == MS_STEP_FORWARD || cost->kind == MS_STEP_PAIR_FORWARD;
    if (at->cross != 0 && forward) {
        ms_task_tag tag = {.stage = (short)(cost->stage - 1),
                           .microbatch = action->microbatch};
        out.activation =
            add_send(b, at->cross, actor, b->times[cost->stage - 1].send_forward_s, tag);
    }
    int gradient_step = forward ? at->cross2 : at->cross;
    if (gradient_step != 0) {
        bool pair = cost->kind == MS_STEP_PAIR_FORWARD;
        int next = (pair ? cost->backward_stage : cost->stage) + 1;
        ms_task_tag tag = {.stage = (short)next,
                           .microbatch =
                               pair ? action->backward_microbatch : action->microbatch};
        out.gradient =
            add_send(b, gradient_step, actor, b->times[next].send_backward_s, tag);
    }
    if (cost->first_forward && b->times[cost->stage].release_s > 0.0) {
        ms_task_tag tag = {.actor = -1,
                           .stage = cost->stage,
                           .microbatch = -1,
                           .kind = MS_TASK_GATHERING,
                           .label = ms_graph_label(s->graph, "parameters are there")};
        out.released = ms_step_add_beside(
            s, tag, ms_step_cost_of(s, b->times[cost->stage].release_s));
    }
    return out;
}

/* ---- actions ---- */

static const unsigned char kind_of_step[] = {
    [MS_STEP_FORWARD] = MS_TASK_FORWARD,      [MS_STEP_BACKWARD] = MS_TASK_BACKWARD,
    [MS_STEP_INPUT] = MS_TASK_BACKWARD_INPUT, [MS_STEP_WEIGHT] = MS_TASK_BACKWARD_WEIGHT,
    [MS_STEP_PAIR_FORWARD] = MS_TASK_OVERLAP, [MS_STEP_PAIR_REST] = MS_TASK_OVERLAP,
};

/* Of a pair its second half is the backward's. */
static int stage_at_work(const ms_step_cost *cost)
{
    return cost->kind == MS_STEP_PAIR_REST ? cost->backward_stage : cost->stage;
}

static double part_compute_s(const ms_part *sum, ms_step_kind kind)
{
    double weight_frac = sum->backward_s > 0.0 ? sum->weight_s / sum->backward_s : 0.0;
    switch (kind) {
    case MS_STEP_FORWARD:
    case MS_STEP_PAIR_FORWARD:
        return sum->forward_compute_s;
    case MS_STEP_BACKWARD:
    case MS_STEP_PAIR_REST:
        return sum->backward_compute_s;
    case MS_STEP_INPUT:
        return sum->backward_compute_s * (1.0 - weight_frac);
    case MS_STEP_WEIGHT:
        break;
    }
    return sum->backward_compute_s * weight_frac;
}

/* A slow rank computes longer; what it waits for stays as it is. */
static double duration_s(const builder *b, const ms_step_cost *cost, double slow_factor)
{
    double seconds = ms_step_cost_s(b->schedule, cost, b->times);
    if (slow_factor == 1.0)
        return seconds;
    int stage = ms_schedule_model_stage(&b->schedule->shape, stage_at_work(cost));
    const ms_part *sum = &ms_planned_stage(b->s.planned, stage)->sum;
    return seconds + (slow_factor - 1.0) * part_compute_s(sum, (ms_step_kind)cost->kind);
}

static void note_span(builder *b, int actor, ms_step_kind kind, int task)
{
    ms_action_span *spans = b->s.spans + b->s.first_span[actor];
    if (kind != MS_STEP_PAIR_REST)
        spans[b->next_span[actor]++].first = task;
    spans[b->next_span[actor] - 1].last = task;
}

static ms_task_tag reduction_tag(ms_step_builder *s, int actor, int stage, bool shown)
{
    return (ms_task_tag){.actor = shown ? actor : -1,
                         .stage = (short)stage,
                         .stream = shown ? MS_STREAM_REDUCE : MS_STREAM_COMPUTE,
                         .kind = shown ? MS_TASK_COLLECTIVE : MS_TASK_GATHERING,
                         .microbatch = -1,
                         .label = ms_graph_label(s->graph, "reduce gradients")};
}

/* On its stream, beside the last backward: all but the tail, which must follow it. */
static void show_reduction(builder *b, int stage, int actor, int before, arrivals from)
{
    ms_step_builder *s = &b->s;
    const ms_stage_times *t = &b->times[stage];
    double beside_s = ms_max(t->reduce_s - t->reduce_tail_s, 0.0);
    if (beside_s <= 0.0)
        return;
    ms_step_add(s, reduction_tag(s, actor, stage, true), ms_step_cost_of(s, beside_s));
    ms_graph_wait(s->graph, before);
    ms_graph_wait(s->graph, from.activation);
    ms_graph_wait(s->graph, from.gradient);
}

static void add_action(builder *b, int step, int actor)
{
    const ms_schedule *schedule = b->schedule;
    ms_step_builder *s = &b->s;
    const ms_step_cost *cost = &schedule->step_costs[schedule->steps[step].cost];
    const ms_action *action = &schedule->actions[schedule->step_action[step]];
    arrivals from = add_arrivals(b, step, cost, actor);
    int kind = kind_of_step[cost->kind];
    ms_task_tag tag = {.actor = actor,
                       .stage = cost->stage,
                       .stream = MS_STREAM_COMPUTE,
                       .kind = (unsigned char)kind,
                       .microbatch = action->microbatch,
                       .label = b->labels[kind]};
    double seconds = duration_s(b, cost, s->actors->slow_factor[actor]);
    int task = ms_step_add(s, tag, ms_step_cost_of(s, seconds));
    ms_graph_wait(s->graph, s->ready[actor]);
    ms_graph_wait(s->graph, from.activation);
    ms_graph_wait(s->graph, from.gradient);
    ms_graph_wait(s->graph, from.released);
    if (cost->last_backward)
        show_reduction(b, stage_at_work(cost), actor, s->ready[actor], from);
    s->ready[actor] = task;
    note_span(b, actor, (ms_step_kind)cost->kind, task);
}

/* Ranks that communicate inside an action end it together. */
static void meet_in_action(builder *b, const ms_step_cost *cost, int rank)
{
    ms_step_builder *s = &b->s;
    for (int group = MS_TRAFFIC_TP; group <= MS_TRAFFIC_EP; group++)
        ms_step_meet(s, rank, (ms_traffic_group)group, s->ready);
    bool forward = cost->kind == MS_STEP_FORWARD || cost->kind == MS_STEP_PAIR_FORWARD;
    if (s->planned->sharding == MS_ZERO_3 ||
        (s->planned->sharding == MS_ZERO_2 && !forward))
        ms_step_meet_for_shards(s, rank, s->ready);
}

/* ---- parameters and gradients ---- */

/* Seen beside the actions; the actions themselves wait as their durations have it. */
static void show_gathers(builder *b, int actor)
{
    ms_step_builder *s = &b->s;
    const ms_schedule *schedule = b->schedule;
    if (s->planned->sharding == MS_ZERO_0 || s->planned->sharding == MS_ZERO_3)
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
                           .label = ms_graph_label(s->graph, "gather parameters")};
        if (seconds > 0.0)
            ms_step_add(s, tag, ms_step_cost_of(s, seconds));
    }
}

/* What nothing can hide is shown after the last backward; what the step waits for is as in ms_replay, to the last bit. */
static void add_reduction(builder *b, const ms_step_cost *cost, int actor, int gate)
{
    ms_step_builder *s = &b->s;
    int stage = stage_at_work(cost);
    const ms_stage_times *t = &b->times[stage];
    if (t->reduce_tail_s > 0.0) {
        ms_step_add(s, reduction_tag(s, actor, stage, true),
                    ms_step_cost_of(s, t->reduce_tail_s));
        ms_graph_wait(s->graph, gate);
    }
    ms_task_tag tag = reduction_tag(s, actor, stage, false);
    int in_turn = ms_step_add_beside(s, tag, ms_step_cost_of(s, t->reduce_s));
    ms_graph_wait(s->graph, b->reduced[actor]);
    double rest_s = ms_reduce_rest_s(t, (ms_step_kind)cost->kind);
    int after = ms_step_add_beside(s, tag, ms_step_cost_of(s, rest_s));
    ms_graph_wait(s->graph, gate);
    b->reduced[actor] = ms_step_add_beside(s, tag, s->no_time);
    ms_graph_wait(s->graph, in_turn);
    ms_graph_wait(s->graph, after);
}

static void add_reductions(builder *b, const ms_step_cost *cost, int rank)
{
    ms_step_builder *s = &b->s;
    const ms_actors *actors = s->actors;
    for (int i = actors->first_at[rank]; i < actors->first_at[rank + 1]; i++)
        b->gates[actors->at[i]] = s->ready[actors->at[i]];
    ms_step_meet_for_reduction(s, rank, b->gates);
    for (int i = actors->first_at[rank]; i < actors->first_at[rank + 1]; i++)
        add_reduction(b, cost, actors->at[i], b->gates[actors->at[i]]);
}

/* ---- the step ---- */

static void add_step(builder *b, int step)
{
    const ms_schedule *schedule = b->schedule;
    const ms_actors *actors = b->s.actors;
    const ms_step_cost *cost = &schedule->step_costs[schedule->steps[step].cost];
    int rank = rank_of_step(b, step);
    for (int i = actors->first_at[rank]; i < actors->first_at[rank + 1]; i++)
        add_action(b, step, actors->at[i]);
    meet_in_action(b, cost, rank);
    for (int i = actors->first_at[rank]; i < actors->first_at[rank + 1]; i++)
        b->ends[b->first_end[step] + i - actors->first_at[rank]] =
            b->s.ready[actors->at[i]];
    if (cost->last_backward)
        add_reductions(b, cost, rank);
}

static void complete_actors(builder *b)
{
    ms_step_builder *s = &b->s;
    ms_task_tag tag = {.actor = -1,
                       .stage = -1,
                       .kind = MS_TASK_GATHERING,
                       .microbatch = -1,
                       .label = ms_graph_label(s->graph, "gradients are there")};
    for (int a = 0; a < s->actors->num; a++) {
        s->complete[a] = ms_step_add_beside(s, tag, s->no_time);
        ms_graph_wait(s->graph, s->ready[a]);
        ms_graph_wait(s->graph, b->reduced[a]);
    }
}

/* Tasks of a step of one actor, at the most: itself, two arrivals, parameters, a meeting in each group, and reductions. */
#define MOST_TASKS_PER_STEP 4

static ms_status check_size(ms_ctx *cx, const ms_actors *actors,
                            const ms_schedule *schedule)
{
    double per_rank = (double)schedule->num_steps / schedule->shape.num_ranks;
    double tasks = MOST_TASKS_PER_STEP * per_rank * actors->num;
    if (tasks <= (double)MS_MAX_TASKS)
        return MS_OK;
    ms_fail(
        cx, MS_EINPUT, MS_NOWHERE,
        "%d simulated ranks with %.0f actions each are about %.0f million tasks, more "
        "than %ld million",
        actors->num, per_rank, tasks * 1e-6, MS_MAX_TASKS / 1000000);
    ms_hint(cx, "fold ranks that behave alike, or take fewer micro-batches");
    return MS_EINPUT;
}

static void name_kinds(builder *b)
{
    for (int kind = 0; kind < MS_NUM_TASK_KINDS; kind++)
        b->labels[kind] = ms_graph_label(b->s.graph, ms_task_kind_names[kind]);
}

ms_status ms_step_graph_actions(ms_ctx *cx, const ms_planned *planned,
                                const ms_simulate_options *options,
                                const ms_actors *actors, ms_step_graph *out)
{
    const ms_schedule *schedule = planned->schedule;
    MS_TRY(check_size(cx, actors, schedule));
    ms_arena *scratch = ms_arena_open();
    builder b = {.s = ms_step_builder_open(cx, planned, options, actors),
                 .schedule = schedule,
                 .times = MS_NEW_ARRAY(scratch, schedule->num_stages, ms_stage_times),
                 .next_span = MS_NEW_ARRAY(scratch, actors->num, int),
                 .reduced = MS_NEW_ARRAY(scratch, actors->num, int),
                 .gates = MS_NEW_ARRAY(scratch, actors->num, int)};
    ms_step_durations(&planned->pipeline, planned->sharding, b.times);
    name_kinds(&b);
    place_ends(&b, scratch);
    for (int a = 0; a < actors->num; a++)
        show_gathers(&b, a);
    for (int step = 1; step <= schedule->num_steps; step++)
        add_step(&b, step);
    complete_actors(&b);
    ms_step_add_optimizer(&b.s);
    ms_step_builder_close(&b.s, out);
    ms_arena_close(scratch);
    return MS_OK;
}
