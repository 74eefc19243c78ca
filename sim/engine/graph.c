#include "sim/engine/graph.h"

#include "base/number.h"

const char *const ms_engine_names[] = {"replay", "event", NULL};

const char *const ms_stream_names[] = {"compute", "tp",   "cp",      "ep", "gather",
                                       "reduce",  "send", "receive", NULL};

const char *const ms_task_kind_names[] = {
    "forward", "backward",  "backward-input", "backward-weight",
    "overlap", "recompute", "host",           "collective",
    "send",    "receive",   "optimizer",      "gathering",
    NULL};

/* Latest end, in seconds, of the tasks for which a task waits. */
static double ready_s(const ms_task *task, const double *end_s)
{
    double latest_s = ms_max(end_s[task->before], end_s[task->cross]);
    for (int i = 0; i < task->num_more; i++)
        latest_s = ms_max(latest_s, end_s[ms_task_more(task, i)]);
    return latest_s;
}

double ms_graph_replay(const ms_graph *graph, double *start_s, double *end_s)
{
    const ms_graph_part *part = graph->parts;
    double latest_s = 0.0;
    end_s[0] = 0.0;
    if (start_s != NULL)
        start_s[0] = 0.0;
    for (int i = 1; i <= graph->num_tasks; i++) {
        while (i >= part[1].first)
            part++;
        ms_task task = ms_graph_task_of(graph, part, i);
        double at_s = ready_s(&task, end_s);
        if (start_s != NULL)
            start_s[i] = at_s;
        end_s[i] = at_s + graph->costs[task.cost].duration_s;
        latest_s = ms_max(latest_s, end_s[i]);
    }
    return latest_s;
}
