/* Blocks of a step graph whose tasks repeat: layers with equal programs, and those of the
 * next micro-batches. */
#include "sim/simulate/step_graph_node.h"

#include <string.h>

/* Number of tasks, besides the last ones of its streams, for which the tasks of a block
 * wait on a simulated rank. */
#define STATE_OF_ACTOR 6

void ms_repeat_open(ms_node_builder *b)
{
    const ms_actors *actors = b->s.actors;
    int num_streams = actors->num * MS_NUM_STREAMS;
    b->state = MS_NEW_ARRAY(b->s.scratch, actors->num * STATE_OF_ACTOR, int);
    b->streams = MS_NEW_ARRAY(b->s.scratch, num_streams, int);
    for (int i = 0; i < num_streams; i++)
        b->streams[i] =
            actors->at[i / MS_NUM_STREAMS] * MS_NUM_STREAMS + i % MS_NUM_STREAMS;
}

/* The state of a walk between two blocks, with b->state as its memory. `stores` sets the
 * walk's tasks to those in b->state; otherwise these become the walk's. */
static ms_graph_state walk_state(const ms_node_builder *b, const ms_walk *w, bool stores)
{
    const ms_actors *actors = b->s.actors;
    int first = actors->first_at[w->rank], last = actors->first_at[w->rank + 1];
    int *const kept[STATE_OF_ACTOR] = {w->ready,       w->arrived,   w->params,
                                       b->block_start, b->s.reduced, b->first_kernel};
    for (int i = first; i < last; i++) {
        int *tasks = b->state + (i - first) * STATE_OF_ACTOR;
        for (int k = 0; k < STATE_OF_ACTOR; k++) {
            if (stores)
                kept[k][actors->at[i]] = tasks[k];
            else
                tasks[k] = kept[k][actors->at[i]];
        }
    }
    return (ms_graph_state){.num = (last - first) * STATE_OF_ACTOR,
                            .tasks = b->state,
                            .num_streams = (last - first) * MS_NUM_STREAMS,
                            .streams = b->streams + first * MS_NUM_STREAMS};
}

bool ms_repeat_block(ms_node_builder *b, ms_walk *w)
{
    /* a first forward waits for the gathers of each block, which run once per step */
    if (w->first_forward && ms_step_gathers_once(&b->s))
        return false;
    /* a block's tasks depend on the units beside its own by gathers and interference */
    ms_walk_unit unit = ms_walk_unit_at(w, w->block),
                 before = ms_walk_unit_at(w, unit.first - 1),
                 next = ms_walk_unit_at(w, unit.first + unit.num);
    const ms_block_ops *blocks[] = {before.block, unit.block, next.block};
    const int facts[] = {w->stage,
                         w->pass,
                         w->inputs,
                         w->weights,
                         w->first_forward,
                         w->last_backward,
                         w->block - unit.first,
                         before.num,
                         unit.num,
                         next.num};
    char key[sizeof blocks + sizeof facts];
    memcpy(key, blocks, sizeof blocks);
    memcpy(key + sizeof blocks, facts, sizeof facts);
    ms_graph_state state = walk_state(b, w, false);
    if (!ms_graph_repeat(b->s.graph, key, sizeof key, w->microbatch, &state))
        return false;
    walk_state(b, w, true);
    w->block++;
    return true;
}

void ms_repeat_end_block(ms_node_builder *b, const ms_walk *w)
{
    ms_graph_state state = walk_state(b, w, false);
    ms_graph_end_pattern(b->s.graph, &state);
}
