/* The Gantt chart of a simulation: in each lane the tasks of one action form one bar. */
#include "cli/report/gantt.h"
#include "cli/report/simulate_report.h"

/* Kinds of bars: actions have the letters of schedule CSV files, communication the
 * colours of mesh axes. */
static const ms_gantt_kind kinds[] = {
    [MS_TASK_FORWARD] = {'F', "forward", "\033[30;46m"},
    [MS_TASK_BACKWARD] = {'B', "backward", "\033[30;42m"},
    [MS_TASK_BACKWARD_INPUT] = {'I', "backward for inputs", "\033[30;102m"},
    [MS_TASK_BACKWARD_WEIGHT] = {'W', "backward for weights", "\033[30;43m"},
    [MS_TASK_OVERLAP] = {'X', "forward and backward together", "\033[30;45m"},
    [MS_TASK_RECOMPUTE] = {'R', "recomputation", "\033[30;105m"},
    [MS_TASK_HOST] = {'H', "waiting for the host", "\033[97;41m"},
    [MS_TASK_COLLECTIVE] = {'C', "collective", "\033[97;44m"},
    [MS_TASK_SEND] = {'>', "send", "\033[30;104m"},
    [MS_TASK_RECEIVE] = {'<', "receive", "\033[30;106m"},
    [MS_TASK_OPTIMIZER] = {'O', "optimizer", "\033[30;103m"},
    [MS_NUM_TASK_KINDS] = {0},
};

typedef struct lanes {
    ms_arena *arena;
    const ms_simulate_report *report;
    int num;
    const char **names; /* names of lanes from top to bottom */
    int *lane_of;       /* [actor][stream] 1 + index of its lane; 0: not drawn */
} lanes;

static void add_lane(lanes *l, int actor, int stream, const char *name)
{
    l->names[l->num++] = name;
    l->lane_of[actor * MS_NUM_STREAMS + stream] = l->num;
}

/* Label of an actor, "pp 3", with its rank if several have the same pipeline rank. */
static const char *actor_label(const lanes *l, int actor)
{
    const ms_simulation *s = l->report->simulation;
    const ms_actor *a = &s->actors[actor];
    for (int i = 0; i < s->num_actors; i++)
        if (i != actor && s->actors[i].pipeline_rank == a->pipeline_rank)
            return ms_arena_printf(l->arena, "pp %d rank %ld", a->pipeline_rank, a->rank);
    return ms_arena_printf(l->arena, "pp %d", a->pipeline_rank);
}

/* Sets used[stream] for each GPU stream that has a task of some duration. */
static void find_streams(const ms_simulation *s, bool used[MS_NUM_STREAMS])
{
    for (int task = 1; task <= s->graph->num_tasks; task++) {
        const ms_task_tag *tag = ms_graph_tag(s->graph, task);
        if (tag->actor >= 0 && s->end_s[task] > s->start_s[task])
            used[tag->stream] = true;
    }
}

static lanes make_lanes(ms_arena *arena, const ms_simulate_report *r)
{
    int most = r->num_actors * MS_NUM_STREAMS;
    lanes l = {arena, r, 0, MS_NEW_ARRAY(arena, most, const char *),
               MS_NEW_ARRAY(arena, r->simulation->num_actors * MS_NUM_STREAMS, int)};
    bool used[MS_NUM_STREAMS] = {false};
    if (r->gantt == MS_SIMULATE_GANTT_STREAMS)
        find_streams(r->simulation, used);
    for (int i = 0; i < r->num_actors; i++) {
        const char *label = actor_label(&l, r->actors[i]);
        bool alone = r->gantt != MS_SIMULATE_GANTT_STREAMS;
        add_lane(&l, r->actors[i], MS_STREAM_COMPUTE,
                 alone ? label : ms_arena_printf(arena, "%s compute", label));
        for (int stream = MS_STREAM_COMPUTE + 1; stream < MS_NUM_STREAMS; stream++)
            if (used[stream])
                add_lane(&l, r->actors[i], stream,
                         ms_arena_printf(arena, "  %s", ms_stream_names[stream]));
    }
    return l;
}

/* Marks which backwards are not split: [placed stage, micro-batch]; NULL: each task is an
 * action. The tasks of such a backward are of both halves, layer by layer. */
static bool *find_whole_backwards(ms_arena *arena, const ms_simulation *s)
{
    if (s->options.detail != MS_DETAIL_NODE || s->planned == NULL)
        return NULL;
    const ms_schedule *schedule = s->planned->schedule;
    int num = schedule->shape.num_microbatches;
    bool *whole = MS_NEW_ARRAY(arena, (long)schedule->num_stages * num, bool);
    for (int i = 0; i < schedule->first_action[schedule->shape.num_ranks]; i++) {
        const ms_action *a = &schedule->actions[i];
        if (a->kind == MS_BACKWARD)
            whole[a->stage * num + a->microbatch] = true;
        if (a->kind == MS_OVERLAP)
            whole[a->backward_stage * num + a->backward_microbatch] = true;
    }
    return whole;
}

/* Kind of the action that a task belongs to; without streams, communication and waiting
 * for the host are part of an action. */
static int action_kind(const ms_simulation *s, int task, const bool *whole)
{
    const ms_task_tag *tag = ms_graph_tag(s->graph, task);
    bool is_half = tag->kind == MS_TASK_BACKWARD_INPUT ||
                   tag->kind == MS_TASK_BACKWARD_WEIGHT || tag->kind == MS_TASK_RECOMPUTE;
    if (whole == NULL || !is_half)
        return tag->kind;
    int num = s->planned->schedule->shape.num_microbatches;
    if (whole[tag->stage * num + ms_graph_microbatch(s->graph, task)])
        return MS_TASK_BACKWARD;
    return tag->kind == MS_TASK_RECOMPUTE ? MS_TASK_BACKWARD_INPUT : tag->kind;
}

static ms_gantt_bar bar_of_task(const ms_simulation *s, int task)
{
    const ms_task_tag *tag = ms_graph_tag(s->graph, task);
    bool is_part = s->options.detail == MS_DETAIL_NODE && tag->stage >= 0;
    int microbatch = ms_graph_microbatch(s->graph, task);
    return (ms_gantt_bar){.kind = tag->kind,
                          .start = s->start_s[task] * 1e3,
                          .end = s->end_s[task] * 1e3,
                          .number = microbatch,
                          .group =
                              is_part ? 1 + tag->stage + 4096 * (1 + microbatch) : 0};
}

/* Whether `next` continues the action whose bar is `bar`, and is in it from then on. */
static bool continues(const ms_gantt_bar *bar, const ms_gantt_bar *next)
{
    bool is_wait = next->kind == MS_TASK_HOST || next->kind == MS_TASK_COLLECTIVE;
    return next->group != 0 && bar->group == next->group &&
           (bar->kind == next->kind || is_wait);
}

static int make_bars(ms_arena *arena, const lanes *l, ms_gantt_bar **out)
{
    const ms_simulation *s = l->report->simulation;
    bool by_action = l->report->gantt != MS_SIMULATE_GANTT_STREAMS;
    ms_gantt_bar *bars = MS_NEW_ARRAY(arena, s->graph->num_tasks, ms_gantt_bar);
    int num = 0;
    int *last = MS_NEW_ARRAY(arena, l->num, int); /* [lane] 1 + index of its last bar */
    const bool *whole = find_whole_backwards(arena, s);
    for (int task = 1; task <= s->graph->num_tasks; task++) {
        const ms_task_tag *tag = ms_graph_tag(s->graph, task);
        if (tag->actor < 0 || tag->kind == MS_TASK_JOIN)
            continue;
        int lane = l->lane_of[tag->actor * MS_NUM_STREAMS + tag->stream] - 1;
        if (lane < 0 || s->end_s[task] <= s->start_s[task])
            continue;
        ms_gantt_bar bar = bar_of_task(s, task);
        bar.lane = lane;
        if (by_action)
            bar.kind = action_kind(s, task, whole);
        ms_gantt_bar *latest = last[lane] > 0 ? &bars[last[lane] - 1] : NULL;
        if (by_action && latest != NULL && continues(latest, &bar)) {
            latest->end = bar.end;
            continue;
        }
        bars[num++] = bar;
        last[lane] = num;
    }
    *out = bars;
    return num;
}

void ms_simulate_draw(FILE *out, ms_arena *arena, const ms_simulate_report *report)
{
    ms_arena_mark mark = ms_arena_save(arena);
    lanes l = make_lanes(arena, report);
    ms_gantt_bar *bars;
    int num_bars = make_bars(arena, &l, &bars);
    bool whole = report->to_s <= report->from_s;
    ms_gantt gantt = {.kinds = kinds,
                      .num_lanes = l.num,
                      .lane_names = l.names,
                      .num_bars = num_bars,
                      .bars = bars,
                      .start = whole ? 0.0 : report->from_s * 1e3,
                      .end =
                          (whole ? report->simulation->last_end_s : report->to_s) * 1e3,
                      .unit = "ms",
                      .width = report->width,
                      .colours = report->colours};
    ms_gantt_draw(out, arena, &gantt);
    ms_arena_rewind(arena, mark);
}
