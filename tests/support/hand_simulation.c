#include "tests/support/hand_simulation.h"

enum {
    NUM_ACTORS = 3,
    NUM_MICROBATCHES = 2
};

typedef struct maker {
    ms_arena *arena;
    ms_graph_builder *graph;
    double stretch;
    /* [is backward][receiving actor][micro-batch]: index of the send task */
    int arrives[2][NUM_ACTORS][NUM_MICROBATCHES];
} maker;

static int add(maker *m, int actor, ms_stream stream, ms_task_kind kind, int microbatch)
{
    static const double seconds[MS_NUM_TASK_KINDS] = {[MS_TASK_FORWARD] = 1.0,
                                                      [MS_TASK_BACKWARD] = 2.0,
                                                      [MS_TASK_SEND] = 0.1,
                                                      [MS_TASK_OPTIMIZER] = 0.25};
    bool is_slow = actor == 2 && stream == MS_STREAM_COMPUTE;
    ms_task_cost cost = {.duration_s = seconds[kind] * m->stretch * (is_slow ? 1.5 : 1.0),
                         .pool = -1};
    ms_link_use use = {ms_graph_link(m->graph, "leaf out", 50e9), 25e9};
    if (kind == MS_TASK_SEND)
        cost.num_uses = 1;
    ms_task_tag tag = {.actor = actor,
                       .stage = (short)(actor > 0),
                       .stream = (unsigned char)stream,
                       .kind = (unsigned char)kind,
                       .microbatch = microbatch,
                       .label = ms_graph_label(m->graph, ms_task_kind_names[kind])};
    return ms_graph_add(m->graph, actor * MS_NUM_STREAMS + (int)stream,
                        ms_graph_cost(m->graph, &cost, &use), tag);
}

/* Adds a compute task, then sends of its result: a forward of rank 0 sends to both other
 * ranks, their backward sends to rank 0. */
static void act(maker *m, int actor, ms_task_kind kind, int microbatch)
{
    bool backward = kind == MS_TASK_BACKWARD;
    int from = m->arrives[backward][actor][microbatch];
    int done = add(m, actor, MS_STREAM_COMPUTE, kind, microbatch);
    ms_graph_wait(m->graph, from);
    if (backward == (actor == 0))
        return;
    int send = add(m, actor, MS_STREAM_SEND, MS_TASK_SEND, microbatch);
    ms_graph_wait(m->graph, done);
    for (int other = 0; other < NUM_ACTORS; other++)
        if ((other == 0) != (actor == 0))
            m->arrives[backward][other][microbatch] = send;
}

static ms_actor actor_of(ms_arena *arena, const ms_simulation *s, int index)
{
    static const long ranks[NUM_ACTORS] = {0, 64, 127}, counts[NUM_ACTORS] = {64, 63, 1};
    ms_actor a = {.rank = ranks[index],
                  .multiplicity = counts[index],
                  .pipeline_rank = index > 0,
                  .slow_factor = index == 2 ? 1.5 : 1.0,
                  .num_samples = 3};
    for (int task = 1; task <= s->graph->num_tasks; task++) {
        const ms_task_tag *tag = ms_graph_tag(s->graph, task);
        if (tag->actor != index || tag->stream != MS_STREAM_COMPUTE)
            continue;
        double taken_s = s->end_s[task] - s->start_s[task];
        *(tag->kind == MS_TASK_OPTIMIZER ? &a.optimizer_s : &a.compute_s) += taken_s;
        if (tag->kind == MS_TASK_BACKWARD && a.peak_task == 0)
            a.peak_task = task;
        if (s->end_s[task] > a.end_s)
            a.end_s = s->end_s[task];
    }
    a.bubble_s = s->step_s - a.compute_s - a.optimizer_s;
    ms_memory_sample *samples = MS_NEW_ARRAY(arena, a.num_samples, ms_memory_sample);
    for (int i = 0; i < a.num_samples; i++) {
        samples[i].time_s = i * a.end_s / a.num_samples;
        samples[i].bytes[MS_MEMORY_PARAMS] = 2147483648.0;
        samples[i].bytes[MS_MEMORY_ACTIVATIONS] = i == 1 ? 1073741824.0 : 0.0;
    }
    a.samples = samples;
    a.peak_sample = 1;
    a.peak_bytes = 3.0 * 1073741824.0;
    return a;
}

static const ms_graph *make_graph(ms_arena *arena, double stretch)
{
    maker m = {.arena = arena, .graph = ms_graph_open(arena), .stretch = stretch};
    act(&m, 0, MS_TASK_FORWARD, 0);
    act(&m, 0, MS_TASK_FORWARD, 1);
    for (int microbatch = 0; microbatch < NUM_MICROBATCHES; microbatch++) {
        /* rank 0 waits for the send added last, by actor 1 */
        for (int actor = 2; actor >= 1; actor--) {
            act(&m, actor, MS_TASK_FORWARD, microbatch);
            act(&m, actor, MS_TASK_BACKWARD, microbatch);
        }
    }
    for (int microbatch = 0; microbatch < NUM_MICROBATCHES; microbatch++)
        act(&m, 0, MS_TASK_BACKWARD, microbatch);
    for (int actor = 0; actor < NUM_ACTORS; actor++)
        add(&m, actor, MS_STREAM_COMPUTE, MS_TASK_OPTIMIZER, -1);
    return ms_graph_close(m.graph);
}

ms_simulation *ms_hand_simulation(ms_arena *arena, double stretch)
{
    ms_simulation *s = MS_NEW(arena, ms_simulation);
    const ms_graph *graph = make_graph(arena, stretch);
    double *start_s = MS_NEW_ARRAY(arena, 1 + graph->num_tasks, double);
    double *end_s = MS_NEW_ARRAY(arena, 1 + graph->num_tasks, double);
    s->graph = graph;
    s->step_s = ms_graph_replay(graph, start_s, end_s);
    s->start_s = start_s;
    s->end_s = end_s;
    s->last_end_s = s->step_s;
    s->predicted_step_s = s->step_s * 0.99;
    int *class_of = MS_NEW_ARRAY(arena, 128, int);
    for (int rank = 64; rank < 128; rank++)
        class_of[rank] = rank == 127 ? 2 : 1;
    s->fold =
        (ms_fold){.num_ranks = 128, .num_classes = NUM_ACTORS, .class_of = class_of};
    s->num_actors = NUM_ACTORS;
    ms_actor *actors = MS_NEW_ARRAY(arena, NUM_ACTORS, ms_actor);
    for (int i = 0; i < NUM_ACTORS; i++) {
        actors[i] = actor_of(arena, s, i);
        if (actors[i].end_s > actors[s->last_actor].end_s)
            s->last_actor = i;
    }
    s->actors = actors;
    s->num_events = 2L * graph->num_tasks;
    return s;
}
