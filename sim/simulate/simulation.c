#include "sim/simulate/simulation.h"

#include "base/number.h"
#include "base/rng.h"
#include "sim/simulate/block_ops.h"
#include "sim/simulate/memory_time.h"
#include "sim/simulate/step_graph.h"

#include <math.h>

const char *const ms_detail_names[] = {"action", "node", NULL};

/* ---- slowdowns ---- */

static ms_status slow_factors(ms_ctx *cx, const ms_plan *plan,
                              const ms_simulate_options *options, double *factor)
{
    for (long rank = 0; rank < plan->gpus; rank++)
        factor[rank] = 1.0;
    for (int i = 0; i < options->num_slow; i++) {
        const ms_slowdown *slow = &options->slow[i];
        if (slow->is_link)
            continue;
        if (slow->rank < 0 || slow->rank >= plan->gpus) {
            ms_fail(cx, MS_EINPUT, MS_NOWHERE, "there is no rank %ld to be slow",
                    slow->rank);
            ms_hint(cx, "the plan has ranks 0 to %ld", plan->gpus - 1);
            return MS_EINPUT;
        }
        factor[slow->rank] *= slow->factor;
    }
    return MS_OK;
}

static ms_status slow_links(ms_ctx *cx, const ms_fabric *fabric,
                            const ms_simulate_options *options, double *factor)
{
    int *links = MS_NEW_ARRAY(cx->arena, fabric->num_links + 1, int);
    for (long i = 0; i < fabric->num_links; i++)
        factor[i] = 1.0;
    for (int i = 0; i < options->num_slow; i++) {
        const ms_slowdown *slow = &options->slow[i];
        if (!slow->is_link)
            continue;
        int num = ms_fabric_find(fabric, slow->link, (int)fabric->num_links, links);
        if (num == 0) {
            ms_fail(cx, MS_EINPUT, MS_NOWHERE, "there is no link \"%s\" to be slow",
                    slow->link);
            ms_hint(cx, "links are named as \"%s\"",
                    ms_fabric_link_name(cx->arena, fabric, 0));
            return MS_EINPUT;
        }
        for (int j = 0; j < num; j++)
            factor[links[j]] *= slow->factor;
    }
    return MS_OK;
}

static bool has_slow_link(const ms_simulate_options *options)
{
    for (int i = 0; i < options->num_slow; i++)
        if (options->slow[i].is_link)
            return true;
    return false;
}

/* Opens the collection of link uses if tasks share links; otherwise leaves *out NULL. */
static ms_status open_uses(ms_ctx *cx, const ms_planned *planned,
                           const ms_simulate_options *options, ms_link_uses **out)
{
    bool is_mixed = planned->workload->cluster->num_kinds > 0;
    bool shares = options->engine == MS_ENGINE_EVENT && !options->unshared && !is_mixed &&
                  options->detail == MS_DETAIL_NODE;
    if (!shares && has_slow_link(options)) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "a slow link has no effect where links are not shared");
        ms_hint(cx, "simulate nodes with the event engine");
        return MS_EINPUT;
    }
    if (!shares)
        return MS_OK;
    const ms_cluster *cluster = planned->workload->cluster;
    bool is_torus = cluster->levels[0].topology == MS_TORUS;
    ms_torus torus;
    if (is_torus)
        torus = ms_plan_torus(planned->plan, cluster);
    const ms_fabric *fabric =
        ms_fabric_make(cx->arena, cluster, planned->plan->gpus, is_torus ? &torus : NULL);
    double *factor = MS_NEW_ARRAY(cx->arena, fabric->num_links + 1, double);
    MS_TRY(slow_links(cx, fabric, options, factor));
    *out = ms_link_uses_open(cx->arena, planned->plan, fabric, factor);
    ms_stage_blocks_note_uses(planned, ms_stage_blocks_make(cx->arena, planned), *out);
    return MS_OK;
}

/* ---- jitter ---- */

/* Multiplies the duration of every task except joins by a random factor of its own; hence
 * every task gets its own cost entry. */
static void add_jitter(ms_arena *arena, const ms_simulate_options *options,
                       ms_graph *graph)
{
    ms_rng rng = ms_rng_seed(options->seed);
    ms_task_cost *costs = MS_NEW_ARRAY(arena, graph->num_tasks + 1, ms_task_cost);
    for (int i = 1; i <= graph->num_tasks; i++) {
        costs[i] = *ms_graph_cost_of(graph, i);
        if (ms_graph_tag(graph, i)->kind == MS_TASK_JOIN)
            continue;
        double stretch = exp(options->jitter_frac * ms_rng_normal(&rng));
        costs[i].duration_s *= stretch;
        costs[i].latency_s *= stretch;
    }
    graph->costs = costs;
    graph->num_costs = graph->num_tasks + 1;
    graph->own_costs = true;
}

/* ---- time and memory of actors ---- */

/* The task that ends last among those that `t` waited for; 0: none. */
static int cause_of(const ms_simulation *sim, const ms_task *t)
{
    int cause = sim->end_s[t->cross] > sim->end_s[t->before] ? t->cross : t->before;
    for (int i = 0; i < t->num_more; i++) {
        int other = ms_task_more(t, i);
        cause = sim->end_s[other] > sim->end_s[cause] ? other : cause;
    }
    return cause;
}

int ms_simulation_cause(const ms_simulation *sim, int task)
{
    ms_task t = ms_graph_task(sim->graph, task);
    return cause_of(sim, &t);
}

static bool is_message(const ms_simulation *sim, int task)
{
    int kind = ms_graph_tag(sim->graph, task)->kind;
    return kind == MS_TASK_SEND || kind == MS_TASK_RECEIVE;
}

/* When the last of the messages that `t` itself waits for has arrived; 0: none. */
static double arrival_s(const ms_simulation *sim, const ms_task *t)
{
    double latest_s = is_message(sim, t->cross) ? sim->end_s[t->cross] : 0.0;
    for (int i = 0; i < t->num_more; i++) {
        int other = ms_task_more(t, i);
        if (is_message(sim, other))
            latest_s = ms_max(latest_s, sim->end_s[other]);
    }
    return latest_s;
}

/* Seconds from `from_s`, where a gap before the task `t` begins, until the arrival of the
 * last message from another stage that the task waited for, directly or through what
 * delayed it most; 0: none. */
static double bubble_before_s(const ms_simulation *sim, ms_task t, double from_s)
{
    double latest_s = arrival_s(sim, &t);
    for (int cause = cause_of(sim, &t); cause != 0 && !is_message(sim, cause);
         cause = cause_of(sim, &t)) {
        bool passes = ms_graph_tag(sim->graph, cause)->kind == MS_TASK_JOIN ||
                      sim->start_s[cause] > from_s;
        if (!passes)
            break;
        t = ms_graph_task(sim->graph, cause);
        latest_s = ms_max(latest_s, arrival_s(sim, &t));
    }
    return ms_max(latest_s - from_s, 0.0);
}

static bool is_compute(const ms_task_tag *tag)
{
    return tag->actor >= 0 && tag->stream == MS_STREAM_COMPUTE &&
           tag->kind != MS_TASK_OPTIMIZER;
}

/* Adds a simulated rank's seconds of compute and of waiting for the host, from the
 * analytic costs of its stages. */
static void sum_actions(const ms_simulation *sim, ms_actor *actor)
{
    const ms_planned *p = sim->planned;
    const ms_schedule *schedule = p->schedule;
    double microbatches = ms_schedule_stage_microbatches(&schedule->shape);
    for (int chunk = 0; chunk < schedule->num_chunks; chunk++) {
        int stage = ms_schedule_stage(&schedule->shape, actor->pipeline_rank, chunk);
        const ms_block_cost *sum =
            &ms_planned_stage(p, ms_schedule_model_stage(&schedule->shape, stage))->sum;
        actor->compute_s += microbatches * actor->slow_factor *
                            (sum->forward_compute_s + sum->backward_compute_s);
    }
    actor->host_s += ms_planned_host_s(p, actor->pipeline_rank);
}

static bool waits_for_all(const ms_simulation *sim)
{
    return sim->optimizer_sync == MS_SYNC_GLOBAL;
}

/* Adds a task on the compute stream of a simulated rank: with tasks of nodes its seconds,
 * and to bubble_s those of the gap before it in which the rank waits for a message from
 * another stage. */
static void sum_task(const ms_simulation *sim, const ms_graph_part *part, int i,
                     ms_actor *actor)
{
    const ms_task_tag *tag = &part->tags[i - part->first];
    double seconds = sim->end_s[i] - sim->start_s[i];
    bool is_node = sim->options.detail == MS_DETAIL_NODE;
    if (is_node && tag->kind == MS_TASK_HOST)
        actor->host_s += seconds;
    else if (is_node && tag->kind != MS_TASK_COLLECTIVE)
        actor->compute_s += seconds;
    ms_task t = ms_graph_task_of(sim->graph, part, i);
    bool has_gap =
        sim->start_s[i] > sim->end_s[t.before] && (t.before != 0 || waits_for_all(sim));
    if (has_gap)
        actor->bubble_s += bubble_before_s(sim, t, sim->end_s[t.before]);
}

static void sum_tasks(const ms_simulation *sim, ms_actor *actors)
{
    const ms_graph_part *part = sim->graph->parts;
    for (int i = 1; i <= sim->graph->num_tasks; i++) {
        while (i >= part[1].first)
            part++;
        const ms_task_tag *tag = &part->tags[i - part->first];
        if (is_compute(tag))
            sum_task(sim, part, i, &actors[tag->actor]);
    }
}

/* When a rank's step starts, s: 0 if all ranks synchronize, else its first action. */
static double actor_start_s(const ms_simulation *sim, const ms_step_graph *step, int a)
{
    return waits_for_all(sim) ? 0.0
                              : sim->start_s[step->spans[step->first_span[a]].first];
}

static void finish_actor(const ms_simulation *sim, const ms_step_graph *step, int a,
                         ms_actor *actor)
{
    int done = step->done[a];
    double waiting_s = sim->start_s[done] - sim->end_s[step->complete[a]];
    actor->end_s = sim->end_s[done];
    actor->optimizer_s = actor->end_s - sim->start_s[done];
    double rest_s = sim->step_s - (actor->end_s - actor_start_s(sim, step, a));
    actor->bubble_s += waiting_s + ms_max(rest_s, 0.0);
    double known_s =
        actor->compute_s + actor->host_s + actor->bubble_s + actor->optimizer_s;
    actor->exposed_comm_s = ms_max(sim->step_s - known_s, 0.0);
}

/* Seconds of a simulated rank's step, summed in the order in which ms_step_time_of sums,
 * so that both results have the same rounding. */
static double actor_step_s(const ms_simulation *sim, const ms_step_graph *step, int a)
{
    if (waits_for_all(sim))
        return sim->end_s[step->done[a]];
    double span_s = sim->end_s[step->complete[a]] - actor_start_s(sim, step, a);
    return span_s + ms_graph_cost_of(sim->graph, step->done[a])->duration_s;
}

static void find_step(const ms_step_graph *step, ms_simulation *sim)
{
    for (int a = 0; a < sim->num_actors; a++) {
        double seconds = actor_step_s(sim, step, a);
        if (a == 0 || seconds > sim->step_s) {
            sim->step_s = seconds;
            sim->last_actor = a;
        }
        sim->last_end_s = ms_max(sim->last_end_s, sim->end_s[step->done[a]]);
    }
}

static void fill_memory(ms_ctx *cx, const ms_step_graph *step, int a,
                        const ms_simulation *sim, ms_actor *actor)
{
    ms_memory_track track =
        ms_memory_over_time(cx, sim, actor->pipeline_rank,
                            step->spans + step->first_span[a], step->optimizer[a]);
    actor->num_samples = track.num_samples;
    actor->samples = track.samples;
    actor->peak_sample = track.peak_sample;
    actor->peak_bytes = track.peak_bytes;
    actor->peak_task = track.peak_task;
}

static void fill_actors(ms_ctx *cx, const ms_actors *from, const ms_step_graph *step,
                        ms_simulation *sim)
{
    ms_actor *actors = MS_NEW_ARRAY(cx->arena, from->num, ms_actor);
    sim->actors = actors;
    sim->num_actors = from->num;
    find_step(step, sim);
    sum_tasks(sim, actors);
    for (int a = 0; a < from->num; a++) {
        ms_actor *actor = &actors[a];
        actor->rank = from->fold.member[a];
        actor->multiplicity = from->fold.multiplicity[a];
        actor->pipeline_rank = from->pipeline_rank[a];
        actor->slow_factor = from->slow_factor[a];
        if (sim->options.detail == MS_DETAIL_ACTION)
            sum_actions(sim, actor);
        finish_actor(sim, step, a, actor);
        fill_memory(cx, step, a, sim, actor);
    }
}

/* ---- running ---- */

/* When a wait for the host begins, s: when the tasks end that it follows, launches aside. */
static double host_wait_start_s(const ms_graph *graph, ms_task t, const double *end_s)
{
    double start_s = end_s[t.before];
    for (int i = -1; i < t.num_more; i++) {
        int wait = i < 0 ? t.cross : ms_task_more(&t, i);
        if (wait != 0 && ms_graph_tag(graph, wait)->kind != MS_TASK_HOST)
            start_s = ms_max(start_s, end_s[wait]);
    }
    return start_s;
}

/* Where launches are tasks beside the kernels, lets waits for them begin with the kernels'
 * end: the engine starts and ends such a wait with the launch. */
static void begin_host_waits(const ms_graph *graph, double *start_s, const double *end_s)
{
    const ms_graph_part *part = graph->parts;
    for (int i = 1; i <= graph->num_tasks; i++) {
        while (i >= part[1].first)
            part++;
        const ms_task_tag *tag = &part->tags[i - part->first];
        if (tag->kind == MS_TASK_HOST && is_compute(tag) && start_s[i] == end_s[i])
            start_s[i] =
                host_wait_start_s(graph, ms_graph_task_of(graph, part, i), end_s);
    }
}

static void run_engine(ms_ctx *cx, const ms_graph *graph, ms_simulation *sim)
{
    size_t size = ((size_t)graph->num_tasks + 1) * sizeof(double);
    double *start_s = ms_arena_take(cx->arena, size);
    double *end_s = ms_arena_take(cx->arena, size);
    sim->graph = graph;
    sim->start_s = start_s;
    sim->end_s = end_s;
    if (sim->options.engine == MS_ENGINE_REPLAY) {
        ms_graph_replay(graph, start_s, end_s);
        return;
    }
    bool shared = !sim->options.unshared;
    ms_event_options options = {.share_links = shared, .share_sms = shared};
    ms_event_result result = {.start_s = start_s,
                              .end_s = end_s,
                              .wants_samples = sim->options.wants_link_samples};
    ms_event_run(graph, &options, cx->arena, &result);
    begin_host_waits(graph, start_s, end_s);
    sim->num_events = result.num_events;
    sim->num_rate_changes = result.num_rate_changes;
    sim->link_totals = result.links;
    sim->num_link_samples = result.num_samples;
    sim->link_samples = result.samples;
}

ms_status ms_simulate(ms_ctx *cx, const ms_planned *planned,
                      const ms_simulate_options *options, ms_simulation *out)
{
    const ms_plan *plan = planned->plan;
    double *factor = MS_NEW_ARRAY(cx->arena, plan->gpus, double);
    MS_TRY(slow_factors(cx, plan, options, factor));
    *out = (ms_simulation){.options = *options,
                           .planned = planned,
                           .optimizer_sync = planned->workload->stack->optimizer_sync};
    /* one fabric, and one number of SMs, stands for all devices */
    out->options.unshared |= planned->workload->cluster->num_kinds > 0;
    bool unfolded = options->unfolded || options->jitter_frac > 0.0;
    ms_link_uses *uses = NULL;
    MS_TRY(open_uses(cx, planned, options, &uses));
    const int *colours = uses != NULL && !unfolded ? ms_link_uses_colours(uses) : NULL;
    ms_actors actors = ms_actors_make(cx->arena, plan, factor, colours, unfolded);
    if (uses != NULL)
        ms_link_uses_fold(uses, &actors);
    out->fold = actors.fold;
    ms_step_graph step;
    MS_TRY(options->detail == MS_DETAIL_NODE
               ? ms_step_graph_nodes(cx, planned, options, &actors, uses, &step)
               : ms_step_graph_actions(cx, planned, options, &actors, &step));
    ms_graph graph = *step.graph;
    if (options->jitter_frac > 0.0)
        add_jitter(cx->arena, options, &graph);
    ms_graph *kept = MS_NEW(cx->arena, ms_graph);
    *kept = graph;
    run_engine(cx, kept, out);
    out->work = step.work;
    fill_actors(cx, &actors, &step, out);
    out->predicted_step_s = ms_step_exact_s(&planned->pipeline, planned->sharding,
                                            planned->schedule, cx->arena);
    return MS_OK;
}
