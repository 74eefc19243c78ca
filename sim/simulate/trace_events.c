#include "sim/simulate/trace_events.h"

#include "sim/engine/graph.h"
#include "sim/step/prediction_text.h"

#include <stdio.h>

void ms_trace_begin_event(ms_jout *json, const char *phase, const char *name,
                          ms_trace_place at)
{
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "ph", phase);
    ms_jout_text_field(json, "name", name);
    ms_jout_number_field(json, "pid", at.pid);
    ms_jout_number_field(json, "tid", at.tid);
}

void ms_trace_time_field(ms_jout *json, const char *key, long long ns)
{
    ms_jout_number_field(json, key, (double)ns / 1000.0);
}

void ms_trace_begin_args(ms_jout *json)
{
    ms_jout_begin_object_field(json, "args");
}

void ms_trace_end_args(ms_jout *json)
{
    ms_jout_end_object(json);
    ms_jout_end_object(json);
}

void ms_trace_write_names(ms_jout *json, const char *of, ms_trace_place at,
                          const char *name, int index)
{
    char event[32];
    snprintf(event, sizeof event, "%s_name", of);
    ms_trace_begin_event(json, "M", event, at);
    ms_trace_begin_args(json);
    ms_jout_text_field(json, "name", name);
    ms_trace_end_args(json);
    snprintf(event, sizeof event, "%s_sort_index", of);
    ms_trace_begin_event(json, "M", event, at);
    ms_trace_begin_args(json);
    ms_jout_number_field(json, "sort_index", index);
    ms_trace_end_args(json);
}

void ms_trace_begin_slice(ms_jout *json, ms_trace_place at, const char *name,
                          const char *category, const ms_slice *slice)
{
    ms_trace_begin_event(json, "X", name, at);
    ms_jout_text_field(json, "cat", category);
    ms_trace_time_field(json, "ts", slice->start_ns);
    ms_trace_time_field(json, "dur", slice->end_ns - slice->start_ns);
    ms_trace_begin_args(json);
}

void ms_trace_write_lanes(ms_jout *json, ms_trace_place first, int stream, int num_lanes)
{
    for (int lane = 0; lane < num_lanes; lane++) {
        char name[48];
        if (lane == 0)
            snprintf(name, sizeof name, "%s", ms_stream_names[stream]);
        else
            snprintf(name, sizeof name, "%s %d", ms_stream_names[stream], lane + 1);
        ms_trace_place at = {first.pid, first.tid + lane};
        ms_trace_write_names(json, "thread", at, name, at.tid);
    }
}

void ms_trace_write_memory(ms_jout *json, int pid, double time_s, const double *bytes)
{
    ms_trace_begin_event(json, "C", "memory (GiB)", (ms_trace_place){pid, 0});
    ms_trace_time_field(json, "ts", ms_trace_ns(time_s));
    ms_trace_begin_args(json);
    for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++)
        ms_jout_number_field(json, ms_memory_category_names[part], ms_gib(bytes[part]));
    ms_trace_end_args(json);
}

void ms_trace_write_step_end(ms_jout *json, double end_s)
{
    ms_trace_begin_event(json, "i", "end of the step", (ms_trace_place){1, 1});
    ms_jout_text_field(json, "cat", "step");
    ms_trace_time_field(json, "ts", ms_trace_ns(end_s));
    ms_jout_text_field(json, "s", "g");
    ms_jout_end_object(json);
}

void ms_trace_begin_events(ms_jout *json)
{
    ms_jout_begin_array_field(json, "traceEvents");
    json->line_depth = json->depth;
}
