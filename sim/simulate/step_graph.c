#include "sim/simulate/step_graph_priv.h"

#include "sim/step/offload.h"

/* ---- opening and closing ---- */

static void make_spans(ms_step_builder *s)
{
    const ms_schedule *schedule = s->planned->schedule;
    const ms_actors *actors = s->actors;
    long num = 0;
    for (int a = 0; a < actors->num; a++) {
        int rank = actors->pipeline_rank[a];
        s->first_span[a] = num;
        num += schedule->first_action[rank + 1] - schedule->first_action[rank];
    }
    s->spans = MS_NEW_ARRAY(s->cx->arena, num, ms_action_span);
}

static double update_s(ms_ctx *cx, const ms_planned *p, int rank)
{
    ms_rank_load load = ms_planned_load(cx, p, rank);
    return ms_rank_update_s(&p->pipeline, rank, &load, p->sharding);
}

static void place_ends(ms_step_builder *s)
{
    const ms_actors *actors = s->actors;
    int num_slots = s->schedule->num_slots;
    s->first_end = MS_NEW_ARRAY(s->scratch, num_slots + 1, long);
    s->place = MS_NEW_ARRAY(s->scratch, actors->num, int);
    for (int r = 0; r < actors->num_pipeline_ranks; r++)
        for (int i = actors->first_at[r]; i < actors->first_at[r + 1]; i++)
            s->place[actors->at[i]] = i - actors->first_at[r];
    long num = 0;
    for (int slot = 1; slot <= num_slots; slot++) {
        int rank = ms_step_rank(s, slot);
        s->first_end[slot] = num;
        num += actors->first_at[rank + 1] - actors->first_at[rank];
    }
    s->ends = MS_NEW_ARRAY(s->scratch, num, int);
}

bool ms_step_gathers_once(const ms_step_builder *s)
{
    switch (s->planned->sharding) {
    case MS_ZERO_1:
    case MS_ZERO_2:
        return !s->options->first_step;
    case MS_ZERO_3_NO_RESHARD:
        return true;
    case MS_ZERO_0:
    case MS_ZERO_3:
    case MS_NUM_SHARDINGS:
        break;
    }
    return false;
}

/* Removes the wait for parameter gathers from the first forward of each stage. */
static void drop_gathers(ms_step_builder *s)
{
    for (int stage = 0; stage < s->schedule->num_stages; stage++) {
        s->times[stage].first_forward_s = s->times[stage].forward_s;
        s->times[stage].release_s = 0.0;
    }
}

ms_step_builder ms_step_builder_open(ms_ctx *cx, const ms_planned *planned,
                                     const ms_simulate_options *options,
                                     const ms_actors *actors)
{
    ms_arena *scratch = ms_arena_open();
    const ms_schedule *schedule = planned->schedule;
    ms_step_builder s = {
        .cx = cx,
        .scratch = scratch,
        .planned = planned,
        .options = options,
        .actors = actors,
        .schedule = schedule,
        .times = MS_NEW_ARRAY(scratch, schedule->num_stages, ms_stage_times),
        .graph = ms_graph_open(cx->arena),
        .ready = MS_NEW_ARRAY(scratch, actors->num, int),
        .next_span = MS_NEW_ARRAY(scratch, actors->num, int),
        .first_span = MS_NEW_ARRAY(cx->arena, actors->num, long),
        .reduced = MS_NEW_ARRAY(scratch, actors->num, int),
        .gates = MS_NEW_ARRAY(scratch, actors->num, int),
        .complete = MS_NEW_ARRAY(cx->arena, actors->num, int),
        .optimizer = MS_NEW_ARRAY(cx->arena, actors->num, int),
        .done = MS_NEW_ARRAY(cx->arena, actors->num, int),
        .update_s = MS_NEW_ARRAY(scratch, actors->num_pipeline_ranks, double),
        .send_work = MS_NEW_ARRAY(
            scratch, (long)actors->num_pipeline_ranks * actors->num_pipeline_ranks, int)};
    (void)ms_step_add_work(&s, (ms_task_work){0});
    ms_step_durations(&planned->pipeline, planned->sharding, scratch, s.times);
    if (!ms_step_gathers_once(&s))
        drop_gathers(&s);
    s.no_time = ms_step_cost_of(&s, 0.0);
    for (int kind = 0; kind < MS_NUM_TASK_KINDS; kind++)
        s.labels[kind] = ms_graph_label(s.graph, ms_task_kind_names[kind]);
    for (int r = 0; r < actors->num_pipeline_ranks; r++)
        s.update_s[r] = update_s(cx, planned, r);
    make_spans(&s);
    place_ends(&s);
    return s;
}

void ms_step_builder_close(ms_step_builder *s, ms_step_graph *out)
{
    *out = (ms_step_graph){.graph = ms_graph_close(s->graph),
                           .first_span = s->first_span,
                           .spans = s->spans,
                           .complete = s->complete,
                           .optimizer = s->optimizer,
                           .done = s->done,
                           .work = s->work};
    ms_arena_close(s->scratch);
}

ms_status ms_step_check_size(ms_ctx *cx, const ms_actors *actors, double tasks_per_actor)
{
    double tasks = tasks_per_actor * actors->num;
    if (tasks <= (double)MS_MAX_TASKS)
        return MS_OK;
    ms_fail(
        cx, MS_EINPUT, MS_NOWHERE,
        "%d simulated ranks with about %.0f tasks each are more than %ld million tasks",
        actors->num, tasks_per_actor, MS_MAX_TASKS / 1000000);
    ms_hint(cx,
            "fold ranks that behave alike, simulate actions instead of nodes, or take "
            "fewer micro-batches");
    return MS_EINPUT;
}

/* ---- slots of the schedule ---- */

const ms_slot_cost *ms_step_class(const ms_step_builder *s, int slot)
{
    return &s->schedule->slot_costs[s->schedule->slots[slot].cost];
}

const ms_action *ms_step_action(const ms_step_builder *s, int slot)
{
    return &s->schedule->actions[s->schedule->slot_action[slot]];
}

int ms_step_rank(const ms_step_builder *s, int slot)
{
    return ms_schedule_rank(&s->schedule->shape, ms_step_class(s, slot)->stage);
}

int ms_step_stage(const ms_slot_cost *cost)
{
    return cost->kind == MS_SLOT_PAIR_REST ? cost->backward_stage : cost->stage;
}

bool ms_step_is_forward(const ms_slot_cost *cost)
{
    return cost->kind == MS_SLOT_FORWARD || cost->kind == MS_SLOT_PAIR_FORWARD;
}

/* The last task of schedule slot `slot` on simulated rank `actor`. */
static int slot_end(const ms_step_builder *s, int slot, int actor)
{
    return s->ends[s->first_end[slot] + s->place[actor]];
}

void ms_step_set_end(ms_step_builder *s, int slot, int actor, int task)
{
    s->ends[s->first_end[slot] + s->place[actor]] = task;
}

void ms_step_begin_span(ms_step_builder *s, int actor, int task)
{
    s->spans[s->first_span[actor] + s->next_span[actor]++].first = task;
}

void ms_step_end_span(ms_step_builder *s, int actor, int task)
{
    s->spans[s->first_span[actor] + s->next_span[actor] - 1].last = task;
}

static int send_cost(ms_step_builder *s, int sender, int receiver, double seconds)
{
    if (s->uses == NULL)
        return ms_step_cost_of(s, seconds);
    double bytes = s->planned->blocks.wire_bytes;
    ms_moved moved = {.group = MS_TRAFFIC_PP,
                      .collective = MS_SEND,
                      .size_bytes = bytes,
                      .count = 1,
                      .bytes = bytes,
                      .seconds = seconds,
                      .use = ms_send_use(s->planned, s->uses,
                                         s->actors->pipeline_rank[sender],
                                         s->actors->pipeline_rank[receiver])};
    return ms_step_moved_cost(s, &moved, seconds, sender, 1.0);
}

/* Adds the send, to simulated rank `actor`, of the message that schedule slot `slot` of
 * another pipeline rank produces; returns the send's task. */
static int add_send(ms_step_builder *s, int slot, int actor, double seconds,
                    ms_task_tag tag)
{
    const ms_actors *actors = s->actors;
    int rank = ms_step_rank(s, slot);
    int sender = actors->along[(long)actor * actors->num_pipeline_ranks + rank];
    if (s->planned->pipeline.send_hold_s > 0.0)
        /* ms_step_add_hold has already added the send, on the sender's compute stream */
        return slot_end(s, slot, sender);
    tag.actor = sender;
    tag.kind = MS_TASK_SEND;
    tag.work = ms_step_send_work(s, rank, actors->pipeline_rank[actor]);
    tag.stream = MS_STREAM_SEND;
    int send = ms_step_add_streamless(s, tag, send_cost(s, sender, actor, seconds));
    ms_graph_wait(s->graph, slot_end(s, slot, sender));
    if (s->options->rendezvous)
        ms_graph_wait(s->graph, s->ready[actor]);
    return send;
}

ms_arrivals ms_step_add_arrivals(ms_step_builder *s, int slot, int actor)
{
    const ms_slot *at = &s->schedule->slots[slot];
    const ms_slot_cost *cost = ms_step_class(s, slot);
    const ms_action *action = ms_step_action(s, slot);
    bool pair = cost->kind == MS_SLOT_PAIR_FORWARD;
    ms_arrivals out = {0};
    if (at->cross != 0 && ms_step_is_forward(cost)) {
        int last = cost->stage - 1;
        ms_task_tag tag = {.stage = (short)last,
                           .microbatch = action->microbatch,
                           .label = ms_graph_label(s->graph, MS_MOVE_ACTIVATIONS)};
        out.activation =
            add_send(s, at->cross, actor, s->times[last].send_forward_s, tag);
    }
    int from = ms_step_is_forward(cost) ? at->cross2 : at->cross;
    if (from != 0) {
        int next = (pair ? cost->backward_stage : cost->stage) + 1;
        ms_task_tag tag = {.stage = (short)next,
                           .microbatch =
                               pair ? action->backward_microbatch : action->microbatch,
                           .label = ms_graph_label(s->graph, MS_MOVE_GRADIENTS)};
        out.gradient = add_send(s, from, actor, s->times[next].send_backward_s, tag);
    }
    return out;
}

/* The stage that receives a schedule slot's message; -1: there is none. */
static int message_receiver(const ms_step_builder *s, const ms_slot_cost *cost)
{
    int to = ms_step_is_forward(cost) ? cost->stage + 1 : cost->stage - 1;
    return to < s->schedule->num_stages ? to : -1;
}

double ms_step_hold_s(const ms_step_builder *s, const ms_slot_cost *cost)
{
    return message_receiver(s, cost) < 0 ? 0.0 : s->planned->pipeline.send_hold_s;
}

int ms_step_add_hold(ms_step_builder *s, int slot, int actor, int after)
{
    const ms_slot_cost *cost = ms_step_class(s, slot);
    double seconds = ms_step_hold_s(s, cost);
    if (seconds <= 0.0)
        return after;
    bool forward = ms_step_is_forward(cost);
    int rank = ms_schedule_rank(&s->schedule->shape, message_receiver(s, cost));
    int receiver = s->actors->along[(long)actor * s->actors->num_pipeline_ranks + rank];
    ms_task_tag tag = {
        .actor = actor,
        .stage = (short)cost->stage,
        .stream = MS_STREAM_COMPUTE,
        .kind = MS_TASK_SEND,
        .microbatch = ms_step_action(s, slot)->microbatch,
        .label =
            ms_graph_label(s->graph, forward ? MS_MOVE_ACTIVATIONS : MS_MOVE_GRADIENTS),
        .work = ms_step_send_work(s, s->actors->pipeline_rank[actor], rank)};
    int task = ms_step_add(s, tag, send_cost(s, actor, receiver, seconds));
    ms_graph_wait(s->graph, after);
    return task;
}

double ms_step_replica_s(const ms_step_builder *s, int model_stage)
{
    if (ms_schedule_placement(s->schedule->shape.kind) != MS_PLACE_BOTH_WAYS)
        return 0.0;
    return ms_replica_s(&s->planned->pipeline, ms_planned_stage(s->planned, model_stage),
                        s->planned->sharding);
}

/* ---- tasks ---- */

int ms_step_cost_of(ms_step_builder *s, double duration_s)
{
    return ms_graph_cost(s->graph, &(ms_task_cost){.duration_s = duration_s, .pool = -1},
                         NULL);
}

int ms_step_add(ms_step_builder *s, ms_task_tag tag, int cost)
{
    return ms_graph_add(s->graph, tag.actor * MS_NUM_STREAMS + tag.stream, cost, tag);
}

int ms_step_add_streamless(ms_step_builder *s, ms_task_tag tag, int cost)
{
    return ms_graph_add(s->graph, -1, cost, tag);
}

int ms_step_add_join(ms_step_builder *s, const char *label)
{
    ms_task_tag tag = {.actor = -1,
                       .stage = -1,
                       .microbatch = -1,
                       .kind = MS_TASK_JOIN,
                       .label = ms_graph_label(s->graph, label)};
    return ms_graph_add(s->graph, -1, s->no_time, tag);
}

/* ---- meetings ---- */

void ms_step_meet(ms_step_builder *s, int pipeline_rank, ms_traffic_group group,
                  int *gates)
{
    const ms_actors *actors = s->actors;
    const ms_meetings *meetings = &actors->meetings[group];
    if (meetings->size <= 1)
        return;
    for (int i = actors->first_at[pipeline_rank]; i < actors->first_at[pipeline_rank + 1];
         i++) {
        int first = actors->at[i], num;
        const int *members = ms_meeting_actors(meetings, meetings->of_actor[first], &num);
        if (num <= 1 || members[0] != first)
            continue;
        int gate = ms_step_add_join(s, ms_traffic_group_name(s->planned->plan, group));
        for (int j = 0; j < num; j++)
            ms_graph_wait(s->graph, gates[members[j]]);
        for (int j = 0; j < num; j++)
            gates[members[j]] = gate;
    }
}

void ms_step_join(ms_step_builder *s, const int *members, int num, int *ready)
{
    int gate = ms_step_add_join(s, "all members");
    for (int i = 0; i < num; i++)
        ms_graph_wait(s->graph, ready[members[i]]);
    for (int i = 0; i < num; i++)
        ready[members[i]] = gate;
}

/* Whether expert parameters have data-parallel groups of their own. */
static bool has_expert_groups(const ms_planned *p)
{
    const ms_plan *plan = p->plan;
    bool has_experts = false;
    for (int i = 0; i < p->pipeline.split->num_classes; i++)
        has_experts = has_experts || p->stages[i].sum.expert_params > 0.0;
    return has_experts && plan->ep * plan->etp * plan->size[MS_TP] > 1;
}

void ms_step_meet_for_shards(ms_step_builder *s, int pipeline_rank, int *gates)
{
    ms_step_meet(s, pipeline_rank, MS_TRAFFIC_FSDP, gates);
    if (has_expert_groups(s->planned))
        ms_step_meet(s, pipeline_rank, MS_TRAFFIC_EXPERT_FSDP, gates);
}

void ms_step_meet_for_reduction(ms_step_builder *s, int pipeline_rank, int *gates)
{
    if (s->planned->sharding != MS_ZERO_0) {
        ms_step_meet_for_shards(s, pipeline_rank, gates);
        ms_step_meet(s, pipeline_rank, MS_TRAFFIC_REPLICATE, gates);
        return;
    }
    ms_step_meet(s, pipeline_rank, MS_TRAFFIC_ALL, gates);
    if (has_expert_groups(s->planned))
        ms_step_meet(s, pipeline_rank, MS_TRAFFIC_EXPERT_ALL, gates);
}
