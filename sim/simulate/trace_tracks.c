/* Distributes a stream's tasks over lanes without overlap, usually one. A greedy
 * partition of intervals in the order of their start needs no more lanes than tasks that
 * run at once (Kleinberg and Tardos, Algorithm Design, section 4.1). */
#include "sim/simulate/trace_tracks.h"

#include <math.h>
#include <stdlib.h>

long long ms_trace_ns(double seconds)
{
    return llround(seconds * 1e9);
}

static int by_start(const void *left, const void *right)
{
    const ms_slice *a = left, *b = right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return a->task - b->task;
}

static bool is_shown(const ms_simulation *s, int actor, int task)
{
    return ms_graph_tag(s->graph, task)->actor == actor &&
           ms_graph_tag(s->graph, task)->kind != MS_TASK_JOIN &&
           ms_trace_ns(s->end_s[task]) > ms_trace_ns(s->start_s[task]);
}

int ms_slice_lanes(ms_arena *arena, ms_slice *slices, int num_slices)
{
    qsort(slices, (size_t)num_slices, sizeof slices[0], by_start);
    int num_lanes = 0;
    ms_arena_mark mark = ms_arena_save(arena);
    long long *ends_ns = MS_NEW_ARRAY(arena, num_slices, long long);
    for (int i = 0; i < num_slices; i++) {
        int lane = 0;
        while (lane < num_lanes && ends_ns[lane] > slices[i].start_ns)
            lane++;
        if (lane == num_lanes)
            num_lanes++;
        slices[i].lane = lane;
        ends_ns[lane] = slices[i].end_ns;
    }
    ms_arena_rewind(arena, mark);
    return num_lanes;
}

void ms_trace_slices(ms_arena *arena, const ms_simulation *s, int actor,
                     ms_stream_slices out[MS_NUM_STREAMS])
{
    int count[MS_NUM_STREAMS] = {0};
    ms_slice *slices[MS_NUM_STREAMS];
    for (int task = 1; task <= s->graph->num_tasks; task++)
        if (is_shown(s, actor, task))
            count[ms_graph_tag(s->graph, task)->stream]++;
    for (int i = 0; i < MS_NUM_STREAMS; i++) {
        slices[i] = MS_NEW_ARRAY(arena, count[i], ms_slice);
        count[i] = 0;
    }
    for (int task = 1; task <= s->graph->num_tasks; task++) {
        if (!is_shown(s, actor, task))
            continue;
        int stream = ms_graph_tag(s->graph, task)->stream;
        slices[stream][count[stream]++] = (ms_slice){
            task, 0, ms_trace_ns(s->start_s[task]), ms_trace_ns(s->end_s[task])};
    }
    for (int i = 0; i < MS_NUM_STREAMS; i++) {
        int num_lanes = ms_slice_lanes(arena, slices[i], count[i]);
        out[i] = (ms_stream_slices){num_lanes, count[i], slices[i]};
    }
}
