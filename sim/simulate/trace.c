/* Writes a simulation as a trace, an event per line. Metadata comes first, so that
 * viewers know a track before its first event. */
#include "sim/simulate/trace.h"

#include "sim/simulate/node_kinds.h"
#include "sim/simulate/simulated_timeline.h"
#include "sim/simulate/trace_events.h"
#include "sim/step/prediction_text.h"

typedef struct writer {
    ms_jout json;
    ms_arena *arena;
    const ms_simulation *simulation;
    int num_actors;
    const int *actors;
    ms_trace_place *places; /* (1 + num_tasks): track of each task */
    int num_flows;
} writer;

/* ---- events ---- */

/* Bytes that a task moves over the link on which it moves most bytes. */
static double busiest_link_bytes(const ms_simulation *s, int task)
{
    const ms_task_cost *cost = ms_graph_cost_of(s->graph, task);
    double most = 0.0;
    for (int i = 0; i < cost->num_uses; i++) {
        double rate = s->graph->uses[cost->first_use + i].bytes_per_s;
        most = rate > most ? rate : most;
    }
    return most * (cost->duration_s - cost->latency_s);
}

static void write_slice_args(writer *w, const ms_slice *slice)
{
    const ms_simulation *s = w->simulation;
    const ms_task_tag *tag = ms_graph_tag(s->graph, slice->task);
    if (tag->stage >= 0)
        ms_jout_number_field(&w->json, "stage", tag->stage);
    int microbatch = ms_graph_microbatch(s->graph, slice->task);
    if (microbatch >= 0)
        ms_jout_number_field(&w->json, "microbatch", microbatch);
    double bytes = busiest_link_bytes(s, slice->task);
    if (bytes > 0.0)
        ms_jout_number_field(&w->json, "link_bytes", bytes);
    double alone_s = ms_graph_cost_of(s->graph, slice->task)->duration_s;
    long long late_ns = slice->end_ns - slice->start_ns - ms_trace_ns(alone_s);
    /* report a task's duration alone if sharing has changed it by more than rounding */
    if (late_ns > 1 || late_ns < -1)
        ms_jout_number_field(&w->json, "alone_s", alone_s);
}

static void write_slice(writer *w, ms_trace_place at, const ms_slice *slice)
{
    ms_arena_mark mark = ms_arena_save(w->arena);
    const ms_task_tag *tag = ms_graph_tag(w->simulation->graph, slice->task);
    ms_trace_begin_slice(&w->json, at, ms_task_name(w->arena, w->simulation, slice->task),
                         ms_task_kind_names[tag->kind], slice);
    write_slice_args(w, slice);
    ms_trace_end_args(&w->json);
    ms_arena_rewind(w->arena, mark);
}

/* ---- a rank ---- */

static void write_stream(writer *w, ms_trace_place first, int stream,
                         const ms_stream_slices *of)
{
    ms_trace_write_lanes(&w->json, first, stream, of->num_lanes);
    for (int i = 0; i < of->num_slices; i++) {
        ms_trace_place at = {first.pid, first.tid + of->slices[i].lane};
        w->places[of->slices[i].task] = at;
        write_slice(w, at, &of->slices[i]);
    }
}

static void write_memory(writer *w, int pid, const ms_actor *actor)
{
    for (int i = 0; i < actor->num_samples; i++) {
        const ms_memory_sample *sample = &actor->samples[i];
        bool replaced = i + 1 < actor->num_samples &&
                        ms_trace_ns(sample[1].time_s) == ms_trace_ns(sample->time_s);
        if (!replaced) /* trace viewers show one counter value per instant */
            ms_trace_write_memory(&w->json, pid, sample->time_s, sample->bytes);
    }
}

static void write_actor(writer *w, int pid, int actor)
{
    ms_arena_mark mark = ms_arena_save(w->arena);
    ms_stream_slices streams[MS_NUM_STREAMS];
    ms_trace_slices(w->arena, w->simulation, actor, streams);
    ms_trace_write_names(&w->json, "process", (ms_trace_place){pid, 0},
                         ms_actor_name(w->arena, w->simulation, actor), pid);
    int tid = 1;
    for (int stream = 0; stream < MS_NUM_STREAMS; stream++) {
        write_stream(w, (ms_trace_place){pid, tid}, stream, &streams[stream]);
        tid += streams[stream].num_lanes;
    }
    write_memory(w, pid, &w->simulation->actors[actor]);
    ms_arena_rewind(w->arena, mark);
}

/* ---- arrows ---- */

static void write_arrow_end(writer *w, const char *phase, int id, int task, long long ns)
{
    ms_trace_begin_event(&w->json, phase, "send", w->places[task]);
    ms_jout_text_field(&w->json, "cat", "flow");
    ms_jout_number_field(&w->json, "id", id);
    ms_trace_time_field(&w->json, "ts", ns);
    if (phase[0] == 'f')
        /* "bp": "e" binds the arrow to the enclosing slice */
        ms_jout_text_field(&w->json, "bp", "e");
    ms_jout_end_object(&w->json);
}

/* Writes the arrow from a send to the task that waits for it, if both are drawn. Each end
 * of the arrow must lie inside its slice. */
static void write_arrow(writer *w, int send, int receiver)
{
    if (w->places[send].pid == 0 || w->places[receiver].pid == 0)
        return;
    const double *start_s = w->simulation->start_s, *end_s = w->simulation->end_s;
    long long from = ms_trace_ns(start_s[send]), to = ms_trace_ns(start_s[receiver]);
    if (to < from && ms_trace_ns(end_s[receiver]) > from)
        to = from; /* the receive began earlier: the arrow ends at the send's start */
    if (to < from)
        return;
    int id = ++w->num_flows;
    write_arrow_end(w, "s", id, send, from);
    write_arrow_end(w, "f", id, receiver, to);
}

/* State of the search for arrows from sends to the tasks that wait for them. */
typedef struct arrow_search {
    /* (1 + num_tasks): for a send itself; for a receive that is not drawn, the send that
     * it received from; 0: none */
    int *source;
    /* (1 + num_tasks), for a join where a send and its receive meet (rendezvous): the
     * first of both that was found; 0: none */
    int *met;
    /* (1 + num_tasks), for a send: 1 + the simulated rank of its last arrow's end */
    int *taken_by;
} arrow_search;

static void follow_dependency(writer *w, const arrow_search *f, int task, int other)
{
    const ms_graph *graph = w->simulation->graph;
    const ms_task_tag *tag = ms_graph_tag(graph, task);
    int kind = tag->kind, send = f->source[other];
    if (kind == MS_TASK_RECEIVE && w->places[task].pid == 0) {
        /* a receive that takes no time is not drawn: the task after it gets the arrow */
        f->source[task] = send;
    } else if (send != 0 && tag->actor != ms_graph_tag(graph, send)->actor) {
        if (f->taken_by[send] != 1 + tag->actor)
            write_arrow(w, send, task);
        f->taken_by[send] = 1 + tag->actor;
    } else if (other != 0 && ms_graph_tag(graph, other)->kind == MS_TASK_JOIN &&
               (kind == MS_TASK_SEND || kind == MS_TASK_RECEIVE)) {
        int first = f->met[other];
        f->met[other] = task;
        if (first != 0 && ms_graph_tag(graph, first)->kind != kind)
            write_arrow(w, kind == MS_TASK_SEND ? task : first,
                        kind == MS_TASK_SEND ? first : task);
    }
}

static void write_arrows(writer *w)
{
    const ms_graph *graph = w->simulation->graph;
    arrow_search f = {MS_NEW_ARRAY(w->arena, 1 + graph->num_tasks, int),
                      MS_NEW_ARRAY(w->arena, 1 + graph->num_tasks, int),
                      MS_NEW_ARRAY(w->arena, 1 + graph->num_tasks, int)};
    for (int task = 1; task <= graph->num_tasks; task++) {
        if (ms_graph_tag(graph, task)->kind == MS_TASK_SEND)
            f.source[task] = task;
        ms_task t = ms_graph_task(graph, task);
        follow_dependency(w, &f, task, t.cross);
        for (int i = 0; i < t.num_more; i++)
            follow_dependency(w, &f, task, ms_task_more(&t, i));
    }
}

/* ---- links ---- */

static void write_link_sample(writer *w, int pid, const ms_link_sample *sample)
{
    ms_trace_begin_event(&w->json, "C", w->simulation->graph->link_names[sample->link],
                         (ms_trace_place){pid, 0});
    ms_trace_time_field(&w->json, "ts", ms_trace_ns(sample->time_s));
    ms_trace_begin_args(&w->json);
    ms_jout_number_field(&w->json, "used_frac", sample->used_frac);
    ms_trace_end_args(&w->json);
}

/* Writes counters of the use of the most used links. Of several samples of a link in one
 * nanosecond the last counts. */
static void write_links(writer *w, int pid)
{
    const ms_simulation *s = w->simulation;
    if (s->num_link_samples == 0)
        return;
    bool *shown = MS_NEW_ARRAY(w->arena, s->graph->num_links, bool);
    ms_link_busy *busy;
    int num_used = ms_links_busy(w->arena, s, &busy);
    for (int i = 0; i < num_used && i < MS_MAX_TRACED_LINKS; i++)
        shown[busy[i].link] = true;
    ms_trace_write_names(&w->json, "process", (ms_trace_place){pid, 0}, "links", pid);
    const ms_link_sample **held =
        MS_NEW_ARRAY(w->arena, s->graph->num_links, const ms_link_sample *);
    for (long i = 0; i < s->num_link_samples; i++) {
        const ms_link_sample *sample = &s->link_samples[i], **of = &held[sample->link];
        if (!shown[sample->link])
            continue;
        if (*of != NULL && ms_trace_ns((*of)->time_s) < ms_trace_ns(sample->time_s))
            write_link_sample(w, pid, *of);
        *of = sample;
    }
    for (int i = 0; i < s->graph->num_links; i++)
        if (held[i] != NULL)
            write_link_sample(w, pid, held[i]);
}

/* ---- the document ---- */

/* Writes the step time, the plan and seconds by kind of node as trace metadata. */
static void write_summary(writer *w)
{
    const ms_simulation *s = w->simulation;
    ms_jout_text_field(&w->json, "displayTimeUnit", "ms");
    ms_jout_begin_object_field(&w->json, "otherData");
    ms_jout_text_field(&w->json, "engine", ms_engine_names[s->options.engine]);
    ms_jout_text_field(&w->json, "detail", ms_detail_names[s->options.detail]);
    ms_jout_number_field(&w->json, "step_s", s->step_s);
    ms_jout_number_field(&w->json, "ranks", (double)s->fold.num_ranks);
    ms_node_kinds kinds = ms_simulated_kinds(w->arena, s);
    ms_node_kinds_write_json(&w->json, &kinds, false);
    if (s->planned != NULL) {
        ms_jout_text_field(
            &w->json, "inputs",
            ms_plan_inputs_text(w->arena, s->planned->plan,
                                s->planned->workload->cluster->device.unit));
        ms_jout_text_field(&w->json, "plan", ms_plan_text(w->arena, s->planned->plan));
    }
    ms_jout_end_object(&w->json);
}

static void write_events(writer *w)
{
    for (int i = 0; i < w->num_actors; i++)
        write_actor(w, 1 + i, w->actors == NULL ? i : w->actors[i]);
    write_arrows(w);
    write_links(w, 1 + w->num_actors);
    if (w->num_actors > 0)
        ms_trace_write_step_end(&w->json, w->simulation->last_end_s);
}

void ms_trace_write(FILE *out, ms_arena *arena, const ms_simulation *s,
                    const ms_trace_options *options)
{
    ms_arena_mark mark = ms_arena_save(arena);
    bool all = options->num_actors == 0;
    writer w = {.json = ms_jout_open(out),
                .arena = arena,
                .simulation = s,
                .num_actors = all ? s->num_actors : options->num_actors,
                .actors = all ? NULL : options->actors,
                .places = MS_NEW_ARRAY(arena, 1 + s->graph->num_tasks, ms_trace_place)};
    ms_jout_begin_object(&w.json);
    write_summary(&w);
    ms_trace_begin_events(&w.json);
    write_events(&w);
    ms_jout_end_array(&w.json);
    ms_jout_end_object(&w.json);
    ms_jout_close(&w.json);
    ms_arena_rewind(arena, mark);
}
