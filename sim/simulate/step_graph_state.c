/* Transfers of parameters and gradients in the step graph with a task per node: block
 * by block, on streams of their own. */
#include "sim/simulate/step_graph_node.h"

#include "base/number.h"
#include "sim/simulate/interference.h"

#include <assert.h>

/* ---- units ---- */

ms_walk_unit ms_walk_unit_at(const ms_walk *w, int position)
{
    int num = w->blocks->num, index = position;
    ms_block_ops *const *blocks = w->blocks->blocks;
    if (position < 0 || position >= num)
        return (ms_walk_unit){0};
    bool forward = w->pass == MS_BILL_FORWARD;
    if (!forward)
        index = num - 1 - position;
    int most = (int)blocks[index]->block->unit_layers, run = index;
    if (most <= 1)
        return (ms_walk_unit){blocks[index], position, 1};
    while (run > 0 && blocks[run - 1] == blocks[index])
        run--;
    int first = run + (index - run) / most * most, last = first;
    while (last < num && last < first + most && blocks[last] == blocks[index])
        last++;
    return (ms_walk_unit){blocks[index], forward ? first : num - last, last - first};
}

static bool begins_unit(const ms_walk *w)
{
    return ms_walk_unit_at(w, w->block).first == w->block;
}

static bool ends_unit(const ms_walk *w)
{
    ms_walk_unit unit = ms_walk_unit_at(w, w->block);
    return unit.first + unit.num - 1 == w->block;
}

/* The transfer of a unit of so many blocks. */
static ms_state_move times(ms_node_builder *b, ms_state_move move, int blocks)
{
    if (blocks == 1 || move.seconds <= 0.0)
        return move;
    ms_task_work work = b->s.work[move.work];
    work.bytes *= blocks;
    move.size_bytes *= blocks;
    move.split.per_block *= blocks;
    move.seconds *= blocks;
    move.work = ms_step_add_work(&b->s, work);
    return move;
}

/* ---- moves ---- */

/* Stream of a transfer. Parameter gathers and gradient reductions share one: NCCL runs a
 * communicator's collectives in the order of launch, whatever their CUDA streams. */
static int stream_id(int actor, int stream)
{
    bool turns = stream == MS_STREAM_REDUCE;
    return actor * MS_NUM_STREAMS + (turns ? MS_STREAM_GATHER : stream);
}

/* Members meet when each has ended what is before on its stream, too: a collective of
 * another group, whose ranks are not theirs, may last longer for some. */
static int add_join(ms_step_builder *s, int stream, const int *members, int num,
                    const int *waits, const int *more)
{
    int gate = ms_step_add_join(s, "all members");
    for (int i = 0; i < num; i++) {
        ms_graph_wait(s->graph, ms_graph_last(s->graph, stream_id(members[i], stream)));
        ms_graph_wait(s->graph, waits[members[i]]);
        ms_graph_wait(s->graph, more != NULL ? more[members[i]] : 0);
    }
    return gate;
}

/* Adds a gather or reduction on all simulated ranks of the pipeline rank. Members of a
 * group start together, after the tasks before[0][actor] and before[1][actor] (NULL:
 * none) and what their streams have; done[actor] becomes the task. */
static void add_transfer(ms_node_builder *b, const ms_walk *w, const ms_state_move *move,
                         ms_task_tag tag, const int *const before[2], int *done)
{
    const int *waits = before[0], *more = before[1];
    assert(waits != NULL && done != NULL);
    ms_step_builder *s = &b->s;
    const ms_actors *actors = s->actors;
    const ms_meetings *meetings = &actors->meetings[move->group];
    if (move->seconds <= 0.0)
        return;
    ms_moved moved = {.group = move->group,
                      .collective = move->collective,
                      .size_bytes = move->split.size_bytes,
                      .count = (int)ms_max(move->split.per_block + 0.5, 1.0),
                      .bytes = move->size_bytes,
                      .seconds = move->seconds,
                      .use = move->use};
    tag.kind = MS_TASK_COLLECTIVE;
    tag.work = move->work;
    for (int i = actors->first_at[w->rank]; i < actors->first_at[w->rank + 1]; i++) {
        int a = actors->at[i], num;
        const int *members = ms_meeting_actors(meetings, meetings->of_actor[a], &num);
        if (members[0] != a)
            continue;
        int gate = num > 1 ? add_join(s, tag.stream, members, num, waits, more) : 0;
        for (int j = 0; j < num; j++) {
            int wait = waits[members[j]], another = more != NULL ? more[members[j]] : 0;
            tag.actor = members[j];
            int cost = ms_step_moved_cost(s, &moved, move->seconds, members[j],
                                          ms_step_load_frac(s, members, num, members[j]));
            done[members[j]] =
                ms_graph_add(s->graph, stream_id(members[j], tag.stream), cost, tag);
            ms_graph_wait(s->graph, gate != 0 ? gate : wait);
            ms_graph_wait(s->graph, gate != 0 ? 0 : another);
        }
        if (num > 1 && b->shares)
            ms_step_join(s, members, num, done);
    }
}

static ms_task_tag transfer_tag(ms_node_builder *b, const ms_walk *w, int stream,
                                const char *label)
{
    return (ms_task_tag){.stage = (short)w->stage,
                         .stream = (unsigned char)stream,
                         .microbatch = w->microbatch,
                         .label = ms_graph_label(b->s.graph, label)};
}

static void add_gather(ms_node_builder *b, const ms_walk *w, ms_walk_unit unit,
                       const int *waits, const int *more, int *done)
{
    ms_task_tag tag = transfer_tag(b, w, MS_STREAM_GATHER, MS_MOVE_GATHER);
    const ms_state_move *moves =
        w->pass == MS_BILL_FORWARD ? unit.block->gather : unit.block->regather;
    for (int i = 0; i < 2; i++) {
        ms_state_move move = times(b, moves[i], unit.num);
        add_transfer(b, w, &move, tag, (const int *const[]){waits, more}, done);
    }
}

/* Adds a unit's gradient reductions (all-reduces if `all`, else reduce-scatters) after
 * its last kernels; s.reduced[actor] becomes the last task. */
static void add_reduction(ms_node_builder *b, const ms_walk *w, ms_walk_unit unit,
                          bool all)
{
    const ms_state_move *moves = all ? unit.block->all_reduce : unit.block->reduce;
    ms_task_tag tag = transfer_tag(b, w, MS_STREAM_REDUCE, MS_MOVE_REDUCE);
    for (int i = 0; i < 2; i++) {
        ms_state_move move = times(b, moves[i], unit.num);
        add_transfer(b, w, &move, tag, (const int *const[]){w->ready, NULL},
                     b->s.reduced);
    }
}

static void add_replication(ms_node_builder *b, const ms_walk *w, ms_walk_unit unit)
{
    ms_task_tag tag = transfer_tag(b, w, MS_STREAM_REDUCE, MS_MOVE_REPLICATE);
    ms_state_move move = times(b, unit.block->replicate, unit.num);
    add_transfer(b, w, &move, tag, (const int *const[]){w->ready, NULL}, b->s.reduced);
}

/* Adds the gradient reductions of a unit that its sharding runs once per step, when the
 * gradients are complete. */
static void add_last_reductions(ms_node_builder *b, const ms_walk *w, ms_walk_unit unit)
{
    ms_sharding sharding = b->s.planned->sharding;
    if (sharding == MS_ZERO_0) {
        add_reduction(b, w, unit, true);
        return;
    }
    if (!ms_shards_grads(sharding))
        add_reduction(b, w, unit, false);
    add_replication(b, w, unit);
}

/* ---- parameters ---- */

static int num_actors_of(const ms_node_builder *b, int rank)
{
    return b->s.actors->first_at[rank + 1] - b->s.actors->first_at[rank];
}

static const ms_stage_blocks *blocks_of(const ms_node_builder *b, int stage)
{
    return &b->blocks[ms_schedule_model_stage(&b->s.schedule->shape, stage)];
}

static void gather_stage(ms_node_builder *b, int rank, int stage)
{
    ms_step_builder *s = &b->s;
    const ms_actors *actors = s->actors;
    const ms_stage_blocks *blocks = blocks_of(b, stage);
    int width = num_actors_of(b, rank);
    int *nothing = MS_NEW_ARRAY(s->scratch, actors->num, int);
    int *done = MS_NEW_ARRAY(s->scratch, actors->num, int);
    ms_walk w = {.rank = rank, .stage = stage, .blocks = blocks, .microbatch = -1};
    b->gathered[stage] = MS_NEW_ARRAY(s->scratch, (long)blocks->num * width, int);
    for (int block = 0; block < blocks->num; block++) {
        ms_walk_unit unit = ms_walk_unit_at(&w, block);
        if (unit.first == block)
            add_gather(b, &w, unit, nothing, NULL, done);
        for (int i = 0; i < width; i++)
            b->gathered[stage][block * width + i] =
                done[actors->at[actors->first_at[rank] + i]];
    }
}

void ms_state_gather_once(ms_node_builder *b)
{
    const ms_schedule *schedule = b->s.schedule;
    b->gathered = MS_NEW_ARRAY(b->s.scratch, schedule->num_stages, int *);
    if (!ms_step_gathers_once(&b->s))
        return;
    for (int rank = 0; rank < schedule->shape.num_ranks; rank++)
        for (int chunk = 0; chunk < schedule->num_chunks; chunk++)
            gather_stage(b, rank, ms_schedule_stage(&schedule->shape, rank, chunk));
}

void ms_walk_wait(ms_node_builder *b, ms_walk *w, const int *others)
{
    ms_step_builder *s = &b->s;
    const ms_actors *actors = s->actors;
    for (int i = actors->first_at[w->rank]; i < actors->first_at[w->rank + 1]; i++) {
        int a = actors->at[i];
        if (others[a] == 0)
            continue;
        if (w->arrived[a] != 0) {
            int join = ms_step_add_join(s, "both");
            ms_graph_wait(s->graph, w->arrived[a]);
            ms_graph_wait(s->graph, others[a]);
            w->arrived[a] = join;
        } else {
            w->arrived[a] = others[a];
        }
    }
}

static void wait_for_block(ms_node_builder *b, ms_walk *w, int stage, int block)
{
    const ms_actors *actors = b->s.actors;
    int width = num_actors_of(b, w->rank);
    for (int i = 0; i < width; i++)
        w->params[actors->at[actors->first_at[w->rank] + i]] =
            b->gathered[stage][block * width + i];
    ms_walk_wait(b, w, w->params);
}

/* Makes a stage's first forward wait for gathered parameters: for each block in turn if
 * gathers overlap compute, otherwise for all parameters of the rank. */
static void wait_for_gathered(ms_node_builder *b, ms_walk *w)
{
    const ms_schedule *schedule = b->s.schedule;
    if (b->overlaps)
        wait_for_block(b, w, w->stage, w->block);
    for (int chunk = 0; chunk < schedule->num_chunks && !b->overlaps; chunk++) {
        int stage = ms_schedule_stage(&schedule->shape, w->rank, chunk);
        wait_for_block(b, w, stage, blocks_of(b, stage)->num - 1);
    }
}

static const ms_block_cost *cost_of(ms_walk_unit unit)
{
    return unit.num > 0 ? unit.block->block : NULL;
}

static ms_interference interference_of(const ms_walk *w)
{
    const ms_block_ops *first = ms_walk_neighbour(w, -w->block);
    long layer = w->block - (first->program->key.block != MS_BLOCK_LAYER);
    bool in_pair =
        ms_walk_block(w)->program->key.block == MS_BLOCK_LAYER && layer < w->num_pairs;
    ms_walk_unit at = ms_walk_unit_at(w, w->block),
                 before = ms_walk_unit_at(w, at.first - 1),
                 next = ms_walk_unit_at(w, at.first + at.num);
    return (ms_interference){.in_pair = in_pair,
                             .pair_host_s = in_pair ? w->pair_host_s[layer] : 0.0,
                             .block = ms_walk_block(w)->block,
                             .before = cost_of(before),
                             .next = cost_of(next),
                             .before_blocks = (double)before.num / at.num,
                             .next_blocks = (double)next.num / at.num,
                             .stage = w->sums,
                             .forward = w->pass == MS_BILL_FORWARD,
                             .inputs = w->inputs,
                             .weights = w->weights,
                             .first_forward = w->first_forward,
                             .last_backward = w->last_backward};
}

/* Adds the seconds by which the gather of the next unit lasts longer beside the current
 * unit's own communication, unless the engine shares links. */
static void add_contention(ms_node_builder *b, ms_walk *w, ms_walk_unit unit)
{
    const ms_actors *actors = b->s.actors;
    ms_interference at = interference_of(w);
    double seconds = b->shares ? 0.0 : unit.num * ms_contention_s(b->s.planned, &at);
    if (seconds <= 0.0)
        return;
    /* no traffic of any rank: the gather itself is listed with its own seconds */
    ms_task_tag tag = {.actor = -1,
                       .stage = (short)w->stage,
                       .kind = MS_TASK_JOIN,
                       .microbatch = w->microbatch,
                       .label = ms_graph_label(b->s.graph, "contention")};
    int cost = ms_step_cost_of(&b->s, seconds);
    for (int i = actors->first_at[w->rank]; i < actors->first_at[w->rank + 1]; i++) {
        int a = actors->at[i];
        int task = ms_graph_add(b->s.graph, stream_id(a, MS_STREAM_GATHER), cost, tag);
        ms_graph_wait(b->s.graph, w->params[a]);
        w->params[a] = task;
    }
}

/* ZeRO-3: waits for the current unit's parameter gather, which started with the unit
 * before, and starts the next unit's gather. A forward's first gather overlaps nothing;
 * that of a backward starts with the last unit of the rank's previous action. */
static void gather_for_unit(ms_node_builder *b, ms_walk *w)
{
    bool forward = w->pass == MS_BILL_FORWARD;
    ms_walk_unit unit = ms_walk_unit_at(w, w->block),
                 next = ms_walk_unit_at(w, w->block + unit.num);
    if (!b->overlaps || (w->block == 0 && forward))
        add_gather(b, w, unit, w->ready, w->arrived, w->params);
    else if (w->block == 0)
        add_gather(b, w, unit, b->block_start, NULL, w->params);
    ms_walk_wait(b, w, w->params);
    if (!b->overlaps || next.num == 0)
        return;
    add_gather(b, w, next, w->ready, w->arrived, w->params);
    add_contention(b, w, unit);
}

/* Where the engine shares links, the host launches a block while its kernels, slowed by
 * other tasks, run: its end waits for both. In a pair, whose halves take turns, as without
 * sharing, the block waits at its end for a time that is known before. */
static void begin_launch(ms_node_builder *b, const ms_walk *w)
{
    ms_step_builder *s = &b->s;
    const ms_actors *actors = s->actors;
    ms_interference at = interference_of(w);
    double seconds = b->shares && !at.in_pair ? ms_launch_s(&at) : 0.0;
    ms_task_tag tag = {.actor = -1,
                       .stage = (short)w->stage,
                       .kind = MS_TASK_HOST,
                       .microbatch = w->microbatch,
                       .label = ms_graph_label(s->graph, "launches")};
    int cost = ms_step_cost_of(s, seconds);
    for (int i = actors->first_at[w->rank]; i < actors->first_at[w->rank + 1]; i++) {
        int a = actors->at[i];
        b->launched[a] = 0;
        if (seconds <= 0.0)
            continue;
        int before = ms_graph_last(s->graph, stream_id(a, MS_STREAM_COMPUTE));
        b->launched[a] = ms_step_add_streamless(s, tag, cost);
        ms_graph_wait(s->graph, before);
        ms_graph_wait(s->graph, w->ready[a]);
        ms_graph_wait(s->graph, w->arrived[a]);
    }
}

void ms_state_begin_block(ms_node_builder *b, ms_walk *w)
{
    const ms_actors *actors = b->s.actors;
    ms_sharding sharding = b->s.planned->sharding;
    bool needs_params = w->pass == MS_BILL_FORWARD || w->inputs;
    if (sharding == MS_ZERO_3 && needs_params && begins_unit(w))
        gather_for_unit(b, w);
    if (ms_step_gathers_once(&b->s) && w->first_forward)
        wait_for_gathered(b, w);
    for (int i = actors->first_at[w->rank];
         begins_unit(w) && i < actors->first_at[w->rank + 1]; i++)
        b->block_start[actors->at[i]] = w->ready[actors->at[i]];
    begin_launch(b, w);
}

/* ---- gradients ---- */

static void wait_for_reductions(ms_node_builder *b, ms_walk *w)
{
    const ms_actors *actors = b->s.actors;
    for (int i = actors->first_at[w->rank]; i < actors->first_at[w->rank + 1]; i++) {
        int a = actors->at[i];
        w->ready[a] = b->s.reduced[a] != 0 ? b->s.reduced[a] : w->ready[a];
    }
}

static ms_reduction_time reduces_when(const ms_node_builder *b, const ms_walk *w)
{
    const ms_planned *planned = b->s.planned;
    return ms_stage_reduces_when(planned->workload->stack, w->sums, planned->sharding);
}

void ms_state_end_block(ms_node_builder *b, ms_walk *w)
{
    ms_sharding sharding = b->s.planned->sharding;
    ms_walk_unit unit = ms_walk_unit_at(w, w->block);
    ms_interference at = interference_of(w);
    double slowed_s = ms_interference_s(b->s.planned, &at, ms_step_gathers_once(&b->s));
    ms_add_interference(b, w, slowed_s);
    bool beside = b->shares && !at.in_pair;
    ms_add_host(b, w, beside ? 0.0 : ms_host_wait_s(&at, slowed_s), b->launched);
    if (w->pass == MS_BILL_FORWARD || !w->weights || !ends_unit(w))
        return;
    if (ms_shards_grads(sharding)) {
        add_reduction(b, w, unit, false);
        if (!b->overlaps &&
            unit.block->reduce[0].seconds + unit.block->reduce[1].seconds > 0.0)
            wait_for_reductions(b, w);
    }
    if (w->last_backward && reduces_when(b, w) == MS_REDUCE_BY_UNIT)
        add_last_reductions(b, w, unit);
}

/* Adds the gradient exchange between the two replicas of a stage that is placed twice. */
static void add_replica_exchange(ms_node_builder *b, const ms_walk *w)
{
    ms_step_builder *s = &b->s;
    const ms_actors *actors = s->actors;
    int model_stage = ms_schedule_model_stage(&s->schedule->shape, w->stage);
    double seconds = ms_step_replica_s(s, model_stage);
    if (seconds <= 0.0)
        return;
    ms_task_tag tag = transfer_tag(b, w, MS_STREAM_REDUCE, MS_MOVE_REPLICA);
    tag.kind = MS_TASK_COLLECTIVE;
    tag.work = ms_step_replica_work(s, w->rank, model_stage);
    int cost = ms_step_cost_of(s, seconds);
    for (int i = actors->first_at[w->rank]; i < actors->first_at[w->rank + 1]; i++) {
        int a = actors->at[i];
        tag.actor = a;
        int task = ms_graph_add(s->graph, stream_id(a, tag.stream), cost, tag);
        ms_graph_wait(s->graph, w->ready[a]);
        ms_graph_wait(s->graph, s->reduced[a]);
        s->reduced[a] = task;
    }
}

static void add_tp_sync(ms_node_builder *b, const ms_walk *w)
{
    ms_task_tag tag = transfer_tag(b, w, MS_STREAM_TP, MS_MOVE_TP_SYNC);
    for (int i = 0; i < w->blocks->num; i++)
        add_transfer(b, w, &w->blocks->blocks[i]->tp_sync, tag,
                     (const int *const[]){w->ready, b->s.reduced}, b->s.reduced);
}

static void reduce_stage(ms_node_builder *b, const ms_walk *w)
{
    ms_walk at = *w;
    at.pass = MS_BILL_FORWARD;
    for (int i = 0; i < at.blocks->num; i += ms_walk_unit_at(&at, i).num)
        add_last_reductions(b, &at, ms_walk_unit_at(&at, i));
}

/* Calls `move` for all stages of a rank, after the rank's last backward. */
static void for_all_stages(ms_node_builder *b, const ms_walk *w,
                           void (*move)(ms_node_builder *, const ms_walk *))
{
    const ms_schedule *schedule = b->s.schedule;
    for (int chunk = 0; chunk < schedule->num_chunks; chunk++) {
        ms_walk at = *w;
        at.stage = ms_schedule_stage(&schedule->shape, w->rank, chunk);
        at.blocks = blocks_of(b, at.stage);
        move(b, &at);
    }
}

/* Ends a forward or backward of a stage. With ZeRO-2 a backward that computes weight
 * gradients ends only when their reductions end (PyTorch FSDP2, finalize_backward),
 * except, without a pipeline, the last one: its reductions continue, as with ZeRO-3. Sums
 * of gradients over tp come last (Megatron-LM, finalize_model_grads.py). */
void ms_state_end_walk(ms_node_builder *b, ms_walk *w)
{
    ms_step_builder *s = &b->s;
    ms_reduction_time when = reduces_when(b, w);
    bool continues = w->last_backward && when == MS_REDUCE_BY_UNIT;
    bool reduces = ms_shards_grads(s->planned->sharding) && w->weights &&
                   w->sums->sum.reduce_s > 0.0;
    if (reduces && !continues)
        wait_for_reductions(b, w);
    if (!w->last_backward)
        return;
    bool ends_rank = ms_schedule_last_complete(s->schedule, w->rank) == w->stage;
    if (when == MS_REDUCE_AFTER_STAGE)
        reduce_stage(b, w);
    if (!ends_rank)
        return;
    if (when == MS_REDUCE_AFTER_RANK)
        for_all_stages(b, w, reduce_stage);
    for_all_stages(b, w, add_replica_exchange);
    for_all_stages(b, w, add_tp_sync);
}
