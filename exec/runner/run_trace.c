#include "exec/runner/run_trace.h"

#include "sim/simulate/trace_events.h"
#include "sim/step/prediction_text.h"

#include <math.h>

typedef struct writer {
    ms_jout json;
    ms_arena *arena;
    const ms_run_trace *trace;
    double begin_s, end_s;
} writer;

static void find_time_range(writer *w)
{
    w->begin_s = INFINITY;
    for (long r = 0; r < w->trace->num_ranks; r++) {
        const ms_recorder *recorder = &w->trace->ranks[r].recorder;
        for (long i = 0; i < recorder->num; i++) {
            const ms_recorded *slice = &recorder->slices[i];
            w->begin_s = slice->start_s < w->begin_s ? slice->start_s : w->begin_s;
            w->end_s = slice->end_s > w->end_s ? slice->end_s : w->end_s;
        }
    }
    if (isinf(w->begin_s))
        w->begin_s = 0.0; /* if no slice was recorded */
}

static void write_slice(writer *w, ms_trace_place at, const ms_recorded *recorded,
                        const ms_slice *slice)
{
    ms_trace_begin_slice(&w->json, at, recorded->name, ms_task_kind_names[recorded->kind],
                         slice);
    if (recorded->stage >= 0)
        ms_jout_number_field(&w->json, "stage", recorded->stage);
    if (recorded->microbatch >= 0)
        ms_jout_number_field(&w->json, "microbatch", recorded->microbatch);
    if (recorded->bytes > 0.0)
        ms_jout_number_field(&w->json, "bytes", recorded->bytes);
    if (!isnan(recorded->predicted_s))
        ms_jout_number_field(&w->json, "predicted_s", recorded->predicted_s);
    if (recorded->waits)
        ms_jout_bool_field(&w->json, "waits", true);
    ms_trace_end_args(&w->json);
}

/* Collects one stream's time slices longer than 0 ns, with their index in `recorder`. */
static int collect_slices(const writer *w, const ms_recorder *recorder, int stream,
                          ms_slice *slices)
{
    int num = 0;
    for (long i = 0; i < recorder->num; i++) {
        const ms_recorded *r = &recorder->slices[i];
        ms_slice slice = {(int)i, 0, ms_trace_ns(r->start_s - w->begin_s),
                          ms_trace_ns(r->end_s - w->begin_s)};
        if (r->stream == stream && slice.end_ns > slice.start_ns)
            slices[num++] = slice;
    }
    return num;
}

static int write_stream(writer *w, ms_trace_place first, int stream,
                        const ms_recorder *recorder)
{
    ms_arena_mark mark = ms_arena_save(w->arena);
    ms_slice *slices = MS_NEW_ARRAY(w->arena, recorder->num, ms_slice);
    int num = collect_slices(w, recorder, stream, slices);
    int num_lanes = ms_slice_lanes(w->arena, slices, num);
    ms_trace_write_lanes(&w->json, first, stream, num_lanes);
    for (int i = 0; i < num; i++)
        write_slice(w, (ms_trace_place){first.pid, first.tid + slices[i].lane},
                    &recorder->slices[slices[i].task], &slices[i]);
    ms_arena_rewind(w->arena, mark);
    return num_lanes;
}

static void write_rank(writer *w, int pid, const ms_rank_outcome *rank)
{
    char name[32];
    snprintf(name, sizeof name, "rank %ld", rank->rank);
    ms_trace_write_names(&w->json, "process", (ms_trace_place){pid, 0}, name, pid);
    int tid = 1;
    for (int stream = 0; stream < MS_NUM_STREAMS; stream++)
        tid += write_stream(w, (ms_trace_place){pid, tid}, stream, &rank->recorder);
    for (int i = 0; i < rank->num_samples; i++) {
        const ms_ledger_sample *sample = &rank->samples[i];
        if (sample->time_s >= w->begin_s)
            ms_trace_write_memory(&w->json, pid, sample->time_s - w->begin_s,
                                  sample->bytes);
    }
}

static void write_summary(writer *w)
{
    const ms_run_trace *t = w->trace;
    ms_jout_text_field(&w->json, "displayTimeUnit", "ms");
    ms_jout_begin_object_field(&w->json, "otherData");
    ms_jout_text_field(&w->json, "backend", t->backend);
    ms_jout_number_field(&w->json, "step_s", t->step_s);
    ms_jout_number_field(&w->json, "steps", (double)t->num_steps);
    ms_jout_number_field(&w->json, "ranks", (double)t->num_ranks);
    ms_node_kinds_write_json(&w->json, t->kinds, true);
    ms_jout_text_field(&w->json, "inputs",
                       ms_plan_inputs_text(w->arena, t->plan, "rank"));
    ms_jout_text_field(&w->json, "plan", ms_plan_text(w->arena, t->plan));
    ms_jout_end_object(&w->json);
}

void ms_run_trace_write(FILE *out, ms_arena *arena, const ms_run_trace *trace)
{
    ms_arena_mark mark = ms_arena_save(arena);
    writer w = {.json = ms_jout_open(out), .arena = arena, .trace = trace};
    find_time_range(&w);
    ms_jout_begin_object(&w.json);
    write_summary(&w);
    ms_trace_begin_events(&w.json);
    for (long r = 0; r < trace->num_ranks; r++)
        write_rank(&w, 1 + (int)r, &trace->ranks[r]);
    if (trace->num_ranks > 0)
        ms_trace_write_step_end(&w.json, w.end_s - w.begin_s);
    ms_jout_end_array(&w.json);
    ms_jout_end_object(&w.json);
    ms_jout_close(&w.json);
    ms_arena_rewind(arena, mark);
}
