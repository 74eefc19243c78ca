#include "sim/step_graph_priv.h"

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
    double params = ms_rank_params(&load, &p->pipeline.shards, p->sharding >= MS_ZERO_1);
    return ms_stream_s(&p->workload->pricer,
                       params * p->workload->stack->optimizer_bytes.value);
}

ms_step_builder ms_step_builder_open(ms_ctx *cx, const ms_planned *planned,
                                     const ms_simulate_options *options,
                                     const ms_actors *actors)
{
    ms_step_builder s = {.cx = cx,
                         .planned = planned,
                         .options = options,
                         .actors = actors,
                         .graph = ms_graph_open(cx->arena),
                         .ready = MS_NEW_ARRAY(cx->arena, actors->num, int),
                         .first_span = MS_NEW_ARRAY(cx->arena, actors->num, long),
                         .complete = MS_NEW_ARRAY(cx->arena, actors->num, int),
                         .optimizer = MS_NEW_ARRAY(cx->arena, actors->num, int)};
    s.no_time = ms_step_cost_of(&s, 0.0);
    s.update_s = MS_NEW_ARRAY(cx->arena, actors->num_pipeline_ranks, double);
    for (int r = 0; r < actors->num_pipeline_ranks; r++)
        s.update_s[r] = update_s(cx, planned, r);
    make_spans(&s);
    return s;
}

void ms_step_builder_close(ms_step_builder *s, ms_step_graph *out)
{
    *out = (ms_step_graph){.graph = ms_graph_close(s->graph),
                           .first_span = s->first_span,
                           .spans = s->spans,
                           .complete = s->complete,
                           .optimizer = s->optimizer};
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

int ms_step_add_beside(ms_step_builder *s, ms_task_tag tag, int cost)
{
    return ms_graph_add(s->graph, -1, cost, tag);
}

static int add_gathering(ms_step_builder *s, const char *label)
{
    ms_task_tag tag = {.actor = -1,
                       .stage = -1,
                       .microbatch = -1,
                       .kind = MS_TASK_GATHERING,
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
        int gate = add_gathering(s, ms_traffic_group_name(s->planned->plan, group));
        for (int j = 0; j < num; j++)
            ms_graph_wait(s->graph, gates[members[j]]);
        for (int j = 0; j < num; j++)
            gates[members[j]] = gate;
    }
}

/* Expert parameters travel in groups of their own. */
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

/* ---- the end ---- */

void ms_step_add_optimizer(ms_step_builder *s)
{
    const ms_actors *actors = s->actors;
    int gate = add_gathering(s, "gradient norm");
    for (int a = 0; a < actors->num; a++)
        ms_graph_wait(s->graph, s->complete[a]);
    ms_task_tag tag = {.stage = -1,
                       .microbatch = -1,
                       .stream = MS_STREAM_COMPUTE,
                       .kind = MS_TASK_OPTIMIZER,
                       .label = ms_graph_label(s->graph, "optimizer")};
    for (int a = 0; a < actors->num; a++) {
        double update_s = s->update_s[actors->pipeline_rank[a]] * actors->slow_factor[a];
        tag.actor = a;
        s->optimizer[a] = ms_step_add(
            s, tag, ms_step_cost_of(s, s->planned->pipeline.world_sync_s + update_s));
        ms_graph_wait(s->graph, gate);
    }
}
