/* Links in the discrete-event engine: which tasks use them, the rates of tasks that
 * contend for them, and samples of their use. */
#include "base/number.h"
#include "sim/engine/event_share.h"
#include "sim/engine/maxmin.h"

static long load_at(const ms_graph *graph, int index, double sm_rate)
{
    const ms_link_use *use = &graph->uses[index];
    double frac = use->bytes_per_s * sm_rate / graph->link_bytes_per_s[use->link];
    return (long)(ms_min(frac, 1e5) * (double)FULL_LOAD);
}

void sharing_make_loads(sharing *s)
{
    s->full_load = MS_NEW_ARRAY(s->scratch, s->graph->num_uses, long);
    for (int i = 0; i < s->graph->num_uses; i++)
        s->full_load[i] = load_at(s->graph, i, 1.0);
}

/* Demand on its link of the use `index` of a task at the rate that free SMs allow. */
static long load_of(const sharing *s, int index, double sm_rate)
{
    return sm_rate < 1.0 ? load_at(s->graph, index, sm_rate) : s->full_load[index];
}

static bool is_contested(const shared_link *link)
{
    return link->load > CONTESTED_LOAD;
}

static void touch(sharing *s, int index)
{
    shared_link *link = &s->links[index];
    if (link->is_touched)
        return;
    link->is_touched = true;
    int_list_add(s->scratch, &s->touched_links, index);
}

void sharing_touch_links(sharing *s, int place)
{
    const ms_task_cost *cost = running_cost(s, place);
    for (int i = cost->first_use; i < cost->first_use + cost->num_uses; i++)
        touch(s, s->graph->uses[i].link);
}

/* Notes that the demand on a link has changed. */
static void mark_link(sharing *s, int index)
{
    shared_link *link = &s->links[index];
    touch(s, index);
    if (link->is_dirty || (!link->was_contested && !is_contested(link)))
        return;
    link->is_dirty = true;
    int_list_add(s->scratch, &s->dirty_links, index);
}

void sharing_join_links(sharing *s, int place)
{
    running *r = &s->places[place];
    const ms_task_cost *cost = running_cost(s, place);
    for (int i = 0; i < cost->num_uses; i++) {
        const ms_link_use *use = &s->graph->uses[cost->first_use + i];
        shared_link *link = &s->links[use->link];
        int at = place * s->max_uses + i, next = link->first_use;
        s->next_use[at] = next;
        s->previous_use[at] = -1;
        if (next >= 0)
            s->previous_use[next] = at;
        link->first_use = at;
        link->load += load_of(s, cost->first_use + i, r->sm_rate);
        mark_link(s, use->link);
    }
    r->on_links = true;
}

void sharing_leave_links(sharing *s, int place)
{
    running *r = &s->places[place];
    const ms_task_cost *cost = running_cost(s, place);
    for (int i = 0; i < cost->num_uses; i++) {
        const ms_link_use *use = &s->graph->uses[cost->first_use + i];
        shared_link *link = &s->links[use->link];
        int at = place * s->max_uses + i;
        int next = s->next_use[at], previous = s->previous_use[at];
        if (next >= 0)
            s->previous_use[next] = previous;
        if (previous >= 0)
            s->next_use[previous] = next;
        else
            link->first_use = next;
        link->load -= load_of(s, cost->first_use + i, r->sm_rate);
        mark_link(s, use->link);
    }
    r->on_links = false;
}

bool sharing_change_demand(sharing *s, int place, double sm_rate)
{
    running *r = &s->places[place];
    const ms_task_cost *cost = running_cost(s, place);
    bool any_dirty = false;
    for (int i = 0; r->on_links && i < cost->num_uses; i++) {
        const ms_link_use *use = &s->graph->uses[cost->first_use + i];
        shared_link *link = &s->links[use->link];
        link->load += load_of(s, cost->first_use + i, sm_rate) -
                      load_of(s, cost->first_use + i, r->sm_rate);
        mark_link(s, use->link);
        any_dirty = any_dirty || link->is_dirty;
    }
    r->sm_rate = sm_rate;
    return any_dirty;
}

/* ---- rates ---- */

static void collect_link(sharing *s, int index)
{
    shared_link *link = &s->links[index];
    if (link->local >= 0)
        return;
    link->local = s->solved_links.num;
    int_list_add(s->scratch, &s->solved_links, index);
}

static void collect_place(sharing *s, int place)
{
    running *r = &s->places[place];
    if (r->visit == s->visit)
        return;
    r->visit = s->visit;
    r->flow = s->solved_places.num;
    int_list_add(s->scratch, &s->solved_places, place);
    const ms_task_cost *cost = running_cost(s, place);
    for (int i = cost->first_use; i < cost->first_use + cost->num_uses; i++)
        if (is_contested(&s->links[s->graph->uses[i].link]))
            collect_link(s, s->graph->uses[i].link);
}

/* Collects the links and tasks for which new rates are needed: the changed links, the
 * tasks on them, other contested links of these tasks, the tasks on those, and so on. */
static void collect(sharing *s)
{
    s->visit++;
    s->solved_links.num = s->solved_places.num = 0;
    for (int i = 0; i < s->dirty_links.num; i++) {
        collect_link(s, s->dirty_links.items[i]);
        s->links[s->dirty_links.items[i]].is_dirty = false;
    }
    s->dirty_links.num = 0;
    for (int i = 0; i < s->solved_links.num; i++) {
        int use = s->links[s->solved_links.items[i]].first_use;
        for (; use >= 0; use = s->next_use[use])
            collect_place(s, use / s->max_uses);
    }
}

/* Bytes per second, at full speed, on the link that the task loads most. A task uses all
 * its links at the same rate. */
static double largest_use(const sharing *s, const ms_task_cost *cost)
{
    double largest = 0.0;
    for (int i = cost->first_use; i < cost->first_use + cost->num_uses; i++)
        largest = ms_max(largest, s->graph->uses[i].bytes_per_s);
    return largest;
}

/* Fills `out` with a task's uses of the collected links, each with a weight: its bytes/s
 * divided by `largest`, those of the largest use. Returns their number. */
static int list_uses(const sharing *s, const ms_task_cost *cost, double largest,
                     ms_flow_use *out)
{
    int num = 0;
    for (int i = cost->first_use; i < cost->first_use + cost->num_uses; i++) {
        int local = s->links[s->graph->uses[i].link].local;
        if (local >= 0)
            out[num++] = (ms_flow_use){local, s->graph->uses[i].bytes_per_s / largest};
    }
    return num;
}

void sharing_solve_links(sharing *s)
{
    if (s->dirty_links.num == 0)
        return;
    collect(s);
    int num_links = s->solved_links.num, num_flows = s->solved_places.num, num_uses = 0;
    for (int v = 0; v < num_flows; v++)
        num_uses += running_cost(s, s->solved_places.items[v])->num_uses;
    ms_arena_mark mark = ms_arena_save(s->solving);
    double *capacity = MS_NEW_ARRAY(s->solving, num_links, double);
    double *most = MS_NEW_ARRAY(s->solving, num_flows, double);
    double *rate = MS_NEW_ARRAY(s->solving, num_flows, double);
    int *first_use = MS_NEW_ARRAY(s->solving, num_flows + 1, int);
    ms_flow_use *uses = MS_NEW_ARRAY(s->solving, num_uses, ms_flow_use);
    for (int i = 0; i < num_links; i++)
        capacity[i] = s->graph->link_bytes_per_s[s->solved_links.items[i]];
    for (int v = 0; v < num_flows; v++) {
        int place = s->solved_places.items[v];
        const ms_task_cost *cost = running_cost(s, place);
        double largest = largest_use(s, cost);
        most[v] = largest * s->places[place].sm_rate;
        first_use[v + 1] =
            first_use[v] + list_uses(s, cost, largest, &uses[first_use[v]]);
    }
    ms_maxmin_problem problem = {num_links, capacity, num_flows, first_use, uses, most};
    ms_maxmin_solve(&problem, s->solving, rate);
    for (int v = 0; v < num_flows; v++) {
        int place = s->solved_places.items[v];
        double sm_rate = s->places[place].sm_rate;
        double largest = largest_use(s, running_cost(s, place));
        sharing_set_rate(
            s, place, rate[v] < most[v] ? ms_min(rate[v] / largest, sm_rate) : sm_rate);
    }
    for (int i = 0; i < num_links; i++) {
        shared_link *link = &s->links[s->solved_links.items[i]];
        link->was_contested = is_contested(link);
        link->local = -1;
    }
    ms_arena_rewind(s->solving, mark);
}

/* ---- use ---- */

static double used_frac(const sharing *s, int index)
{
    double used_bytes_per_s = 0.0;
    for (int at = s->links[index].first_use; at >= 0; at = s->next_use[at]) {
        int place = at / s->max_uses, i = at % s->max_uses;
        const ms_task_cost *cost = running_cost(s, place);
        used_bytes_per_s +=
            s->graph->uses[cost->first_use + i].bytes_per_s * s->places[place].rate;
    }
    return used_bytes_per_s / s->graph->link_bytes_per_s[index];
}

static void add_sample(sharing *s, int link, double frac)
{
    long num = s->out->num_samples;
    if (num == s->samples_capacity) {
        s->samples_capacity = num == 0 ? 256 : 2 * num;
        ms_link_sample *larger =
            MS_NEW_ARRAY(s->scratch, s->samples_capacity, ms_link_sample);
        for (long i = 0; i < num; i++)
            larger[i] = s->samples[i];
        s->samples = larger;
    }
    s->samples[num] = (ms_link_sample){s->now_s, link, frac};
    s->out->num_samples = num + 1;
}

/* Adds a link's use until now to its total. */
static void count_use(const sharing *s, shared_link *link)
{
    link->total.busy_s += link->used_frac * (s->now_s - link->since_s);
    link->since_s = s->now_s;
}

void sharing_sample_links(sharing *s)
{
    for (int i = 0; i < s->touched_links.num; i++) {
        int index = s->touched_links.items[i];
        shared_link *link = &s->links[index];
        double frac = used_frac(s, index), change = frac - link->used_frac;
        link->is_touched = false;
        /* a smaller change of the link's use is rounding */
        if (change > 1e-12 || change < -1e-12) {
            count_use(s, link);
            link->used_frac = frac;
            link->total.most_frac = ms_max(link->total.most_frac, frac);
            if (s->out->wants_samples)
                add_sample(s, index, frac);
        }
    }
    s->touched_links.num = 0;
}

const ms_link_total *sharing_total_links(sharing *s, ms_arena *arena)
{
    ms_link_total *totals = MS_NEW_ARRAY(arena, s->graph->num_links, ms_link_total);
    for (int i = 0; i < s->graph->num_links; i++) {
        count_use(s, &s->links[i]);
        totals[i] = s->links[i].total;
    }
    return totals;
}
