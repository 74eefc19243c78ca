#include "sim/simulate/simulated_timeline.h"

#include <math.h>
#include <stdlib.h>

char *ms_task_name(ms_arena *arena, const ms_simulation *s, int task)
{
    const ms_task_tag *tag = ms_graph_tag(s->graph, task);
    const char *label = s->graph->labels[tag->label];
    if (label[0] == '\0')
        label = ms_task_kind_names[tag->kind];
    int microbatch = ms_graph_microbatch(s->graph, task);
    if (s->options.detail == MS_DETAIL_ACTION && microbatch >= 0)
        return ms_arena_printf(arena, "%s %d", label, microbatch);
    return ms_arena_strdup(arena, label);
}

char *ms_task_phrase(ms_arena *arena, const ms_simulation *s, int task)
{
    const ms_task_tag *tag = ms_graph_tag(s->graph, task);
    char *name = ms_task_name(arena, s, task);
    int microbatch = ms_graph_microbatch(s->graph, task);
    if (s->options.detail == MS_DETAIL_ACTION || microbatch < 0)
        return name;
    return ms_arena_printf(arena, "%s %d: %s", ms_task_kind_names[tag->kind], microbatch,
                           name);
}

char *ms_actor_name(ms_arena *arena, const ms_simulation *s, int actor)
{
    const ms_actor *a = &s->actors[actor];
    const char *slow = "", *others = "";
    if (a->slow_factor != 1.0)
        slow = ms_arena_printf(arena, ", computes %.3g times as long", a->slow_factor);
    if (a->multiplicity > 1)
        others = ms_arena_printf(arena, ", stands for %ld ranks", a->multiplicity);
    return ms_arena_printf(arena, "rank %ld (pp %d%s%s)", a->rank, a->pipeline_rank, slow,
                           others);
}

/* ---- links ---- */

/* Most used links first. Uses that differ by rounding only count as equal. */
static int by_use(const void *left, const void *right)
{
    const ms_link_busy *a = left, *b = right;
    double a_frac = round(1e9 * a->used_frac), b_frac = round(1e9 * b->used_frac);
    if (a_frac != b_frac)
        return a_frac > b_frac ? -1 : 1;
    return a->link - b->link;
}

int ms_links_busy(ms_arena *arena, const ms_simulation *s, ms_link_busy **out)
{
    int num_links = s->link_totals == NULL ? 0 : s->graph->num_links, num_used = 0;
    ms_link_busy *busy = MS_NEW_ARRAY(arena, num_links, ms_link_busy);
    for (int i = 0; i < num_links; i++) {
        const ms_link_total *total = &s->link_totals[i];
        busy[i] = (ms_link_busy){i, total->busy_s / s->last_end_s, total->most_frac};
        num_used += busy[i].used_frac > 0.0;
    }
    qsort(busy, (size_t)num_links, sizeof busy[0], by_use);
    *out = busy;
    return num_used;
}

/* ---- actors ---- */

const ms_actor *ms_most_actor(const ms_simulation *s)
{
    const ms_actor *most = &s->actors[0];
    for (int i = 1; i < s->num_actors; i++)
        if (s->actors[i].peak_bytes > most->peak_bytes)
            most = &s->actors[i];
    return most;
}

int ms_stage_actors(const ms_simulation *s, int num_stages, int *actors)
{
    int num = 0;
    for (int stage = 0; stage < num_stages; stage++) {
        int latest = -1;
        for (int i = 0; i < s->num_actors; i++)
            if (s->actors[i].pipeline_rank == stage &&
                (latest < 0 || s->actors[i].end_s > s->actors[latest].end_s))
                latest = i;
        if (latest >= 0)
            actors[num++] = latest;
    }
    return num;
}
