#include "tests/support/graphs.h"

static bool is_earlier(int other, int task)
{
    return other >= 0 && other < task;
}

static bool list_is_ordered(const ms_graph *graph, const ms_graph_part *part, int task)
{
    int at = part->tasks[task - part->first].more;
    if (at == 0)
        return true;
    if (at < 0 || at >= graph->num_lists)
        return false;
    int length = graph->lists[at];
    if (length < 0 || length >= graph->num_lists - at)
        return false;
    for (int i = at + 1; i <= at + length; i++)
        if (!is_earlier(ms_graph_refer(part, graph->lists[i]), task))
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
        const ms_graph_part *part = ms_graph_part_of(graph, i);
        if (!list_is_ordered(graph, part, i))
            return false;
        ms_task task = ms_graph_task(graph, i);
        if (!is_earlier(task.before, i) || !is_earlier(task.cross, i) || task.cost < 0 ||
            task.cost >= graph->num_costs)
            return false;
    }
    for (int i = 0; i < graph->num_costs; i++)
        if (!cost_is_valid(graph, &graph->costs[i]))
            return false;
    return true;
}
