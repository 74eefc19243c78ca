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

/* Latest end, in seconds, of the tasks of a list. */
static double list_end_s(const int *list, const double *end_s)
{
    double latest_s = 0.0;
    for (int i = 1; i <= list[0]; i++)
        latest_s = ms_max(latest_s, end_s[list[i]]);
    return latest_s;
}

double ms_graph_replay(const ms_graph *graph, double *start_s, double *end_s)
{
    const ms_task *tasks = graph->tasks;
    const ms_task_cost *costs = graph->costs;
    int num_tasks = graph->num_tasks;
    double latest_s = 0.0;
    end_s[0] = 0.0;
    if (start_s != NULL)
        start_s[0] = 0.0;
    for (int i = 1; i <= num_tasks; i++) {
        const ms_task *task = &tasks[i];
        double ready_s = ms_max(end_s[task->before], end_s[task->cross]);
        if (task->more != 0)
            ready_s = ms_max(ready_s, list_end_s(&graph->lists[task->more], end_s));
        if (start_s != NULL)
            start_s[i] = ready_s;
        end_s[i] = ready_s + costs[task->cost].duration_s;
        latest_s = ms_max(latest_s, end_s[i]);
    }
    return latest_s;
}
