#include "sim/graph.h"

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

static bool is_earlier(int other, int task)
{
    return other >= 0 && other < task;
}

static bool list_is_ordered(const ms_graph *graph, int task)
{
    int at = graph->tasks[task].more;
    if (at == 0)
        return true;
    if (at < 0 || at >= graph->num_lists)
        return false;
    int length = graph->lists[at];
    if (length < 0 || length >= graph->num_lists - at)
        return false;
    for (int i = at + 1; i <= at + length; i++)
        if (!is_earlier(graph->lists[i], task))
            return false;
    return true;
}

static bool cost_is_valid(const ms_graph *graph, const ms_task_cost *cost)
{
    if (cost->first_use < 0 || cost->num_uses < 0 ||
        cost->first_use > graph->num_uses - cost->num_uses)
        return false;
    for (int i = cost->first_use; i < cost->first_use + cost->num_uses; i++)
        if (graph->uses[i].link < 0 || graph->uses[i].link >= graph->num_links)
            return false;
    return cost->pool >= -1 && cost->pool < graph->num_pools;
}

bool ms_graph_is_ordered(const ms_graph *graph)
{
    for (int i = 1; i <= graph->num_tasks; i++) {
        const ms_task *task = &graph->tasks[i];
        if (!is_earlier(task->before, i) || !is_earlier(task->cross, i) ||
            !list_is_ordered(graph, i) || task->cost < 0 ||
            task->cost >= graph->num_costs)
            return false;
    }
    for (int i = 0; i < graph->num_costs; i++)
        if (!cost_is_valid(graph, &graph->costs[i]))
            return false;
    return true;
}
