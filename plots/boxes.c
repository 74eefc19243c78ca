#include "plots/boxes.h"

#include "base/print.h"

#include <stdlib.h>

const char *const ms_box_kind_names[] = {"forward",         "backward", "backward-input",
                                         "backward-weight", "gather",   "reduce",
                                         "optimizer",       NULL};

/* The kind of box for a simulated task; MS_NUM_BOX_KINDS: the task is not drawn. */
static ms_box_kind kind_of(const ms_task_tag *tag)
{
    static const ms_box_kind kinds[MS_NUM_TASK_KINDS] = {
        [MS_TASK_FORWARD] = MS_BOX_FORWARD,
        [MS_TASK_BACKWARD] = MS_BOX_BACKWARD,
        [MS_TASK_BACKWARD_INPUT] = MS_BOX_INPUT,
        [MS_TASK_BACKWARD_WEIGHT] = MS_BOX_WEIGHT,
        [MS_TASK_OVERLAP] = MS_BOX_FORWARD,
        [MS_TASK_RECOMPUTE] = MS_NUM_BOX_KINDS,
        [MS_TASK_HOST] = MS_NUM_BOX_KINDS,
        [MS_TASK_COLLECTIVE] = MS_NUM_BOX_KINDS,
        [MS_TASK_SEND] = MS_NUM_BOX_KINDS,
        [MS_TASK_RECEIVE] = MS_NUM_BOX_KINDS,
        [MS_TASK_OPTIMIZER] = MS_BOX_OPTIMIZER,
        [MS_TASK_JOIN] = MS_NUM_BOX_KINDS,
    };
    if (tag->kind == MS_TASK_COLLECTIVE && tag->stream == MS_STREAM_GATHER)
        return MS_BOX_GATHER;
    if (tag->kind == MS_TASK_COLLECTIVE && tag->stream == MS_STREAM_REDUCE)
        return MS_BOX_REDUCE;
    return kinds[tag->kind];
}

/* The lane of a simulated task; -1: the task is not drawn. */
static int lane_of(const ms_simulation *s, const int *lane_of_actor, int task)
{
    const ms_task_tag *tag = ms_graph_tag(s->graph, task);
    bool drawn = tag->actor >= 0 && kind_of(tag) != MS_NUM_BOX_KINDS &&
                 (tag->kind == MS_TASK_OVERLAP || s->end_s[task] > s->start_s[task]);
    return drawn ? lane_of_actor[tag->actor] : -1;
}

static ms_box box_of(const ms_simulation *s, int lane, int task)
{
    const ms_task_tag *tag = ms_graph_tag(s->graph, task);
    ms_box box = {.lane = lane,
                  .start_s = s->start_s[task],
                  .end_s = s->end_s[task],
                  .kind = kind_of(tag),
                  .microbatch = ms_graph_microbatch(s->graph, task)};
    if (tag->stage >= 0)
        box.chunk = ms_schedule_chunk(&s->planned->schedule->shape, tag->stage);
    if (box.kind == MS_BOX_GATHER || box.kind == MS_BOX_REDUCE)
        box.half = MS_BOX_COMMUNICATION;
    return box;
}

/* Gives a forward and the backward that it overlaps the same start and end; the
 * simulation runs one after the other. */
static void join_pair(ms_box *forward, ms_box *backward)
{
    forward->half = MS_BOX_UPPER;
    forward->end_s = backward->end_s;
    backward->kind = MS_BOX_BACKWARD;
    backward->half = MS_BOX_LOWER;
    backward->start_s = forward->start_s;
}

static int by_lane_and_start(const void *left, const void *right)
{
    const ms_box *a = left, *b = right;
    if (a->lane != b->lane)
        return a->lane - b->lane;
    int a_acts = a->half != MS_BOX_COMMUNICATION,
        b_acts = b->half != MS_BOX_COMMUNICATION;
    if (a_acts != b_acts)
        return a_acts - b_acts;
    if (a->start_s != b->start_s)
        return a->start_s < b->start_s ? -1 : 1;
    return (int)a->half - (int)b->half;
}

long ms_boxes_make(ms_arena *arena, const ms_simulation *s, const int *lane_of_actor,
                   const ms_box **out)
{
    long capacity = 0, num = 0;
    for (int i = 1; i <= s->graph->num_tasks; i++)
        capacity += lane_of(s, lane_of_actor, i) >= 0;
    ms_box *boxes = MS_NEW_ARRAY(arena, capacity, ms_box);
    /* per actor: 1 + index of the forward box of an unfinished pair; 0: none */
    long *open = MS_NEW_ARRAY(arena, s->num_actors, long);
    for (int i = 1; i <= s->graph->num_tasks; i++) {
        int lane = lane_of(s, lane_of_actor, i);
        if (lane < 0)
            continue;
        const ms_task_tag *tag = ms_graph_tag(s->graph, i);
        boxes[num++] = box_of(s, lane, i);
        if (tag->kind == MS_TASK_OVERLAP && open[tag->actor] > 0) {
            join_pair(&boxes[open[tag->actor] - 1], &boxes[num - 1]);
            open[tag->actor] = 0;
        } else if (tag->kind == MS_TASK_OVERLAP) {
            open[tag->actor] = num;
        }
    }
    qsort(boxes, (size_t)num, sizeof boxes[0], by_lane_and_start);
    *out = boxes;
    return num;
}

void ms_boxes_write_kinds(FILE *out)
{
    fputs("\n# kinds:", out);
    for (int i = 0; i < MS_NUM_BOX_KINDS; i++)
        ms_print(out, " %d %s", i, ms_box_kind_names[i]);
    fputs(
        "; micro-batch -1: none; half 0 whole lane, 1 upper, 2 lower, 3 communication\n",
        out);
}
