#include "tests/support/naive_engine.h"

#include <math.h>

/* ---- max-min fairness ---- */

/* Equal rate at which flows without a rate yet would fill a link; HUGE_VAL: there are
 * none. */
static double link_level(const ms_maxmin_problem *p, const double *rate, int link)
{
    double taken = 0.0, weight = 0.0;
    for (int v = 0; v < p->num_flows; v++) {
        for (int i = p->first_use[v]; i < p->first_use[v + 1]; i++) {
            if (p->uses[i].link != link)
                continue;
            taken += rate[v] >= 0.0 ? p->uses[i].weight * rate[v] : 0.0;
            weight += rate[v] >= 0.0 ? 0.0 : p->uses[i].weight;
        }
    }
    return weight > 0.0 ? fmax(0.0, p->capacity[link] - taken) / weight : HUGE_VAL;
}

void ms_naive_maxmin(const ms_maxmin_problem *p, double *rate)
{
    for (int v = 0; v < p->num_flows; v++)
        rate[v] = -1.0;
    for (int round = 0; round < p->num_flows; round++) {
        double best = HUGE_VAL;
        int flow = -1;
        for (int v = 0; v < p->num_flows; v++) {
            double level = rate[v] < 0.0 ? p->most[v] : HUGE_VAL;
            for (int i = p->first_use[v]; rate[v] < 0.0 && i < p->first_use[v + 1]; i++)
                level = fmin(level, link_level(p, rate, p->uses[i].link));
            if (level < best) {
                best = level;
                flow = v;
            }
        }
        rate[flow] = best;
    }
}

/* ---- events ---- */

typedef struct naive {
    const ms_graph *graph;
    const ms_event_options *options;
    double *end_s; /* end of each task; < 0: not ended */
    /* rest of each task; latency_s < 0: not started */
    double *latency_s, *work_s, *rate;
} naive;

static const ms_task_cost *cost_of(const naive *n, int task)
{
    return ms_graph_cost_of(n->graph, task);
}

static bool is_ready(const naive *n, int i)
{
    ms_task t = ms_graph_task(n->graph, i);
    for (int j = 0; j < t.num_more; j++)
        if (n->end_s[ms_task_more(&t, j)] < 0.0)
            return false;
    return n->end_s[t.before] >= 0.0 && n->end_s[t.cross] >= 0.0;
}

static bool is_running(const naive *n, int i)
{
    return n->end_s[i] < 0.0 && n->latency_s[i] >= 0.0;
}

static double speed_on_sms(const naive *n, int i)
{
    const ms_task_cost *cost = cost_of(n, i);
    if (!n->options->share_sms || cost->pool < 0)
        return 1.0;
    int sms = n->graph->pool_sms[cost->pool], left = sms;
    for (int j = 1; j <= n->graph->num_tasks; j++)
        if (is_running(n, j) && cost_of(n, j)->pool == cost->pool)
            left -= cost_of(n, j)->held_sms;
    left = left < 1 ? 1 : left;
    double waves =
        cost->tiles > 0 ? ceil(cost->tiles / left) / ceil(cost->tiles / sms) : 1;
    return 1.0 / (waves - cost->sm_frac * waves + cost->sm_frac * sms / left);
}

static void find_rates(naive *n, ms_arena *arena)
{
    const ms_graph *graph = n->graph;
    ms_arena_mark mark = ms_arena_save(arena);
    int num = graph->num_tasks;
    int *first = MS_NEW_ARRAY(arena, num + 2, int);
    double *most = MS_NEW_ARRAY(arena, num + 1, double);
    double *found = MS_NEW_ARRAY(arena, num + 1, double);
    ms_flow_use *uses = MS_NEW_ARRAY(arena, (num + 1) * 8, ms_flow_use);
    /* one flow per task, without link uses where the task moves no data */
    for (int i = 1; i <= num; i++) {
        const ms_task_cost *cost = cost_of(n, i);
        bool works = is_running(n, i) && n->latency_s[i] <= 0.0;
        double speed = works ? speed_on_sms(n, i) : 1.0, largest = 1.0;
        int at = first[i];
        if (works && n->options->share_links && cost->num_uses > 0) {
            const ms_link_use *u = &graph->uses[cost->first_use];
            largest = 0.0;
            for (int j = 0; j < cost->num_uses; j++)
                largest = fmax(largest, u[j].bytes_per_s);
            for (int j = 0; j < cost->num_uses; j++)
                uses[at++] = (ms_flow_use){u[j].link, u[j].bytes_per_s / largest};
        }
        first[i + 1] = at;
        most[i] = largest * speed;
        n->rate[i] = 1.0 / largest;
    }
    ms_maxmin_problem problem = {
        graph->num_links, graph->link_bytes_per_s, num, &first[1], uses, &most[1]};
    ms_naive_maxmin(&problem, &found[1]);
    for (int i = 1; i <= num; i++)
        n->rate[i] *= found[i];
    ms_arena_rewind(arena, mark);
}

static double next_step_s(const naive *n)
{
    double step_s = HUGE_VAL;
    for (int i = 1; i <= n->graph->num_tasks; i++)
        if (is_running(n, i))
            step_s = fmin(step_s, n->latency_s[i] > 0.0 ? n->latency_s[i]
                                                        : n->work_s[i] / n->rate[i]);
    return step_s;
}

static void advance(naive *n, double step_s, double now_s)
{
    for (int i = 1; i <= n->graph->num_tasks; i++) {
        if (!is_running(n, i))
            continue;
        double *left = n->latency_s[i] > 0.0 ? &n->latency_s[i] : &n->work_s[i];
        *left -= step_s * (left == &n->work_s[i] ? n->rate[i] : 1.0);
        *left = *left < 1e-12 ? 0.0 : *left;
        if (n->latency_s[i] <= 0.0 && n->work_s[i] <= 0.0)
            n->end_s[i] = now_s;
    }
}

void ms_naive_event_run(const ms_graph *graph, const ms_event_options *options,
                        ms_arena *arena, double *end_s)
{
    size_t num = (size_t)graph->num_tasks + 1;
    naive n = {.graph = graph,
               .options = options,
               .end_s = end_s,
               .latency_s = MS_NEW_ARRAY(arena, num, double),
               .work_s = MS_NEW_ARRAY(arena, num, double),
               .rate = MS_NEW_ARRAY(arena, num, double)};
    for (size_t i = 1; i < num; i++)
        end_s[i] = n.latency_s[i] = -1.0;
    end_s[0] = 0.0;
    for (double now_s = 0.0;;) {
        for (int i = 1; i <= graph->num_tasks; i++) {
            if (end_s[i] >= 0.0 || is_running(&n, i) || !is_ready(&n, i))
                continue;
            n.latency_s[i] = cost_of(&n, i)->latency_s;
            n.work_s[i] = cost_of(&n, i)->duration_s - n.latency_s[i];
        }
        find_rates(&n, arena);
        double step_s = next_step_s(&n);
        if (isinf(step_s))
            return;
        now_s += step_s;
        advance(&n, step_s, now_s);
    }
}
