/* Adds the end of a step to its task graph: completion of gradients, synchronization of
 * all ranks, and the update of the parameters. */
#include "sim/simulate/step_graph_priv.h"

static ms_task_tag end_tag(ms_step_builder *s, int actor, const char *label)
{
    return (ms_task_tag){.actor = actor,
                         .stage = -1,
                         .microbatch = -1,
                         .stream = actor >= 0 ? MS_STREAM_REDUCE : MS_STREAM_COMPUTE,
                         .kind = actor >= 0 ? MS_TASK_COLLECTIVE : MS_TASK_JOIN,
                         .label = ms_graph_label(s->graph, label)};
}

static void complete_actors(ms_step_builder *s)
{
    for (int a = 0; a < s->actors->num; a++) {
        s->complete[a] = ms_step_add_join(s, "gradients are there");
        ms_graph_wait(s->graph, s->ready[a]);
        ms_graph_wait(s->graph, s->reduced[a]);
    }
}

/* Adds the gradient exchange of the matrix that embedding and head share: own[actor]
 * becomes its task on each simulated rank with the matrix. Returns an equally long task
 * for the other ranks to wait for: the gradient norm needs the exchanged gradient. */
static int add_tied_exchange(ms_step_builder *s, int gate, double seconds, int *own)
{
    const ms_split *split = s->planned->pipeline.split;
    const char *label = MS_MOVE_TIED;
    int cost = ms_step_cost_of(s, seconds);
    for (int a = 0; a < s->actors->num; a++) {
        int rank = s->actors->pipeline_rank[a];
        if (!ms_split_holds(split, rank, 0) &&
            !ms_split_holds(split, rank, split->num_stages - 1))
            continue;
        ms_task_tag tag = end_tag(s, a, label);
        tag.work = ms_step_tied_work(s, rank);
        own[a] = ms_step_add(s, tag, cost);
        ms_graph_wait(s->graph, gate);
    }
    int exchanged = ms_step_add_streamless(s, end_tag(s, -1, label), cost);
    ms_graph_wait(s->graph, gate);
    return exchanged;
}

/* Makes all simulated ranks wait for each other, then adds the all-reduce of the gradient
 * norm; norms[actor] becomes its task. Returns the join of all ranks. */
static int synchronize_actors(ms_step_builder *s, int *norms)
{
    const ms_planned *p = s->planned;
    double norm_s = ms_collective_s(&p->links.world, MS_NORM_BYTES);
    double tied_s = p->pipeline.world_sync_s - norm_s;
    int gate = ms_step_add_join(s, "all gradients are there");
    for (int a = 0; a < s->actors->num; a++)
        ms_graph_wait(s->graph, s->complete[a]);
    int *own = MS_NEW_ARRAY(s->scratch, s->actors->num, int);
    int before = tied_s > 0.0 ? add_tied_exchange(s, gate, tied_s, own) : gate;
    int cost = ms_step_cost_of(s, norm_s);
    int work = ms_step_add_work(s, (ms_task_work){.kind = MS_WORK_COLLECTIVE,
                                                  .group = MS_TRAFFIC_WORLD,
                                                  .collective = MS_ALL_REDUCE,
                                                  .bytes = MS_NORM_BYTES,
                                                  .element_bytes = MS_NORM_BYTES});
    for (int a = 0; a < s->actors->num; a++) {
        norms[a] = before;
        if (norm_s <= 0.0)
            continue;
        ms_task_tag tag = end_tag(s, a, MS_MOVE_NORM);
        tag.work = work;
        norms[a] = ms_step_add(s, tag, cost);
        ms_graph_wait(s->graph, own[a]);
        ms_graph_wait(s->graph, before);
    }
    return gate;
}

void ms_step_add_optimizer(ms_step_builder *s)
{
    const ms_actors *actors = s->actors;
    bool global = s->planned->workload->stack->optimizer_sync == MS_SYNC_GLOBAL;
    complete_actors(s);
    int gate = global ? synchronize_actors(s, s->gates) : 0;
    for (int a = 0; a < actors->num; a++) {
        double update_s = s->update_s[actors->pipeline_rank[a]] * actors->slow_factor[a];
        ms_task_tag tag = end_tag(s, a, MS_MOVE_OPTIMIZER);
        tag.stream = MS_STREAM_COMPUTE;
        tag.kind = MS_TASK_OPTIMIZER;
        tag.work = ms_step_add_work(
            s, (ms_task_work){.bytes = update_s *
                                       s->planned->workload->pricer.hbm_bytes_per_s});
        s->optimizer[a] = ms_step_add(s, tag, ms_step_cost_of(s, update_s));
        ms_graph_wait(s->graph, global ? s->gates[a] : s->complete[a]);
        s->done[a] = s->optimizer[a];
        if (!global || s->options->jitter_frac > 0.0)
            continue;
        double all_s = s->planned->pipeline.world_sync_s + update_s;
        s->done[a] = ms_step_add_streamless(s, end_tag(s, -1, "step is done"),
                                            ms_step_cost_of(s, all_s));
        ms_graph_wait(s->graph, gate);
    }
}
