/* Builds the task graph of a step with a task per node of the layer programs. */
#include "sim/simulate/step_graph_node.h"

#include "base/number.h"
#include "sim/simulate/interference.h"

static const unsigned char stream_of_group[] = {[MS_TRAFFIC_TP] = MS_STREAM_TP,
                                                [MS_TRAFFIC_CP] = MS_STREAM_CP,
                                                [MS_TRAFFIC_EP] = MS_STREAM_EP};

const ms_block_ops *ms_walk_neighbour(const ms_walk *w, int steps)
{
    int block = w->block + steps, num = w->blocks->num;
    bool forward = w->pass == MS_BILL_FORWARD;
    if (block < 0 || block >= num)
        return NULL;
    return w->blocks->blocks[forward ? block : num - 1 - block];
}

const ms_block_ops *ms_walk_block(const ms_walk *w)
{
    return ms_walk_neighbour(w, 0);
}

static const ms_block_op *op_at(const ms_walk *w)
{
    return &ms_walk_block(w)->ops[w->pass][w->op];
}

static ms_task_tag tag_of(const ms_walk *w, const ms_block_op *op, int actor, int stream)
{
    return (ms_task_tag){.actor = actor,
                         .stage = (short)w->stage,
                         .stream = (unsigned char)stream,
                         .kind = op->kind,
                         .microbatch = w->microbatch,
                         .label = op->label,
                         .work = op->work};
}

/* ---- kernels ---- */

static void add_kernel(ms_node_builder *b, ms_walk *w, const ms_block_op *op)
{
    ms_step_builder *s = &b->s;
    const ms_actors *actors = s->actors;
    const ms_program *program = ms_walk_block(w)->program;
    int first = actors->first_at[w->rank], last = actors->first_at[w->rank + 1];
    for (int i = first; i < last; i++) {
        int a = actors->at[i];
        ms_kernel_start *start = &w->starts[(long)w->op * (last - first) + s->place[a]];
        *start = (ms_kernel_start){
            ms_graph_last(s->graph, a * MS_NUM_STREAMS + MS_STREAM_COMPUTE), w->ready[a],
            w->arrived[a]};
        int task = ms_step_add(s, tag_of(w, op, a, MS_STREAM_COMPUTE),
                               ms_step_kernel_cost(s, op, program, a));
        ms_graph_wait(s->graph, w->ready[a]);
        ms_graph_wait(s->graph, w->arrived[a]);
        w->arrived[a] = 0;
        w->ready[a] = task;
        b->first_kernel[a] = b->first_kernel[a] != 0 ? b->first_kernel[a] : task;
    }
}

/* Adds a wait of the compute stream, on each simulated rank where it takes any time. */
static void add_wait(ms_node_builder *b, ms_walk *w, ms_task_kind kind, const char *label,
                     double seconds, const int *others)
{
    ms_step_builder *s = &b->s;
    const ms_actors *actors = s->actors;
    ms_task_tag tag = {.stage = (short)w->stage,
                       .stream = MS_STREAM_COMPUTE,
                       .kind = (unsigned char)kind,
                       .microbatch = w->microbatch,
                       .label = ms_graph_label(s->graph, label)};
    int cost = ms_step_cost_of(s, seconds);
    for (int i = actors->first_at[w->rank]; i < actors->first_at[w->rank + 1]; i++) {
        int a = actors->at[i], other = others != NULL ? others[a] : 0;
        if (seconds <= 0.0 && other == 0)
            continue;
        tag.actor = a;
        int task = ms_step_add(s, tag, cost);
        ms_graph_wait(s->graph, w->ready[a]);
        ms_graph_wait(s->graph, other);
        w->ready[a] = task;
    }
}

void ms_add_interference(ms_node_builder *b, ms_walk *w, double seconds)
{
    if (!b->shares)
        add_wait(b, w, MS_TASK_COLLECTIVE, "interference", seconds, NULL);
}

void ms_add_host(ms_node_builder *b, ms_walk *w, double seconds, const int *others)
{
    add_wait(b, w, MS_TASK_HOST, "host", seconds, others);
}

/* ---- collectives ---- */

/* Adds, on simulated rank `actor`, a task for the hidden or the exposed seconds of the
 * collective `op` that takes the fraction `load_frac` of the collective's load on links.
 * Returns the task. */
static int add_share(ms_node_builder *b, const ms_walk *w, const ms_block_op *op,
                     bool hidden, int actor, double load_frac)
{
    double seconds = hidden ? op->hidden_s : op->exposed_s;
    ms_task_tag tag = tag_of(w, op, actor, stream_of_group[op->group]);
    tag.work = hidden ? op->hidden_work : op->work;
    ms_moved moved = {.group = op->group,
                      .collective = op->collective,
                      .size_bytes = op->size_bytes,
                      .count = op->all_count,
                      .bytes = op->all_bytes,
                      .seconds = op->all_s,
                      .use = op->use};
    return ms_step_add(&b->s, tag,
                       ms_step_moved_cost(&b->s, &moved, seconds, actor, load_frac));
}

static bool op_runs(const ms_walk *w, const ms_block_op *op)
{
    return w->pass == MS_BILL_FORWARD || (op->weight ? w->weights : w->inputs);
}

static bool ran(const void *walk, int op)
{
    const ms_walk *w = walk;
    return op_runs(w, &ms_walk_block(w)->ops[w->pass][op]);
}

/* The tasks for which the first kernel that the current collective overlaps waited. If this
 * half of a split backward runs no such kernel: those for which the next one would wait. */
static ms_kernel_start overlap_start(const ms_node_builder *b, const ms_walk *w,
                                     int actor)
{
    const ms_step_builder *s = &b->s;
    int width = s->actors->first_at[w->rank + 1] - s->actors->first_at[w->rank];
    int first = ms_first_overlapped(ms_walk_block(w)->ops[w->pass], w->op, ran, w);
    if (first >= 0)
        return w->starts[(long)first * width + s->place[actor]];
    return (ms_kernel_start){
        ms_graph_last(s->graph, actor * MS_NUM_STREAMS + MS_STREAM_COMPUTE),
        w->ready[actor], w->arrived[actor]};
}

/* Adds the hidden share of the collective `op`, which overlaps earlier kernels: it starts
 * on all `members` at once, when all can start the first of these kernels. */
static void add_hidden_before(ms_node_builder *b, ms_walk *w, const ms_block_op *op,
                              const int *members, int num)
{
    ms_step_builder *s = &b->s;
    int gate = num > 1 ? ms_step_add_join(s, op->name) : 0;
    for (int i = 0; i < num; i++) {
        int a = members[i];
        ms_kernel_start start = overlap_start(b, w, a);
        if (num == 1)
            add_share(b, w, op, true, a, 1.0);
        ms_graph_wait(s->graph, start.before);
        ms_graph_wait(s->graph, start.ready);
        ms_graph_wait(s->graph, start.arrived);
    }
    for (int i = 0; num > 1 && i < num; i++) {
        add_share(b, w, op, true, members[i],
                  ms_step_load_frac(&b->s, members, num, members[i]));
        ms_graph_wait(s->graph, gate);
    }
}

static void add_exposed(ms_node_builder *b, ms_walk *w, const ms_block_op *op,
                        const int *members, int num)
{
    ms_step_builder *s = &b->s;
    int gate = num > 1 ? ms_step_add_join(s, op->name) : 0;
    for (int i = 0; num > 1 && i < num; i++) {
        ms_graph_wait(s->graph, w->ready[members[i]]);
        ms_graph_wait(s->graph, w->arrived[members[i]]);
    }
    for (int i = 0; i < num; i++) {
        int a = members[i];
        int task =
            add_share(b, w, op, false, a, ms_step_load_frac(&b->s, members, num, a));
        ms_graph_wait(s->graph, gate != 0 ? gate : w->ready[a]);
        ms_graph_wait(s->graph, gate != 0 ? 0 : w->arrived[a]);
        w->arrived[a] = 0;
        w->ready[a] = task;
    }
    if (num > 1 && b->shares)
        ms_step_join(s, members, num, w->ready);
}

static void add_hidden_after(ms_node_builder *b, ms_walk *w, const ms_block_op *op,
                             const int *members, int num)
{
    for (int i = 0; i < num; i++)
        add_share(b, w, op, true, members[i],
                  ms_step_load_frac(&b->s, members, num, members[i]));
}

static void add_collective(ms_node_builder *b, ms_walk *w, const ms_block_op *op)
{
    ms_step_builder *s = &b->s;
    const ms_actors *actors = s->actors;
    const ms_meetings *meetings = &actors->meetings[op->group];
    for (int i = actors->first_at[w->rank]; i < actors->first_at[w->rank + 1]; i++) {
        int a = actors->at[i], num;
        const int *members = ms_meeting_actors(meetings, meetings->of_actor[a], &num);
        if (members[0] != a)
            continue;
        if (op->hidden_s > 0.0 && !op->overlaps_later_ops)
            add_hidden_before(b, w, op, members, num);
        if (!op->waits_later)
            add_exposed(b, w, op, members, num);
        if (op->hidden_s > 0.0 && op->overlaps_later_ops)
            add_hidden_after(b, w, op, members, num);
    }
    ms_add_interference(b, w, op->interference_s);
}

/* ---- walks ---- */

/* Advances a forward or backward to the next operation of its block that it runs, which
 * begins the block, or ends it and returns false. */
static bool find_op_of_block(ms_node_builder *b, ms_walk *w)
{
    const ms_block_ops *block = ms_walk_block(w);
    if (w->op < 0) {
        ms_state_begin_block(b, w);
        w->op = 0;
    }
    while (w->op < block->num_ops[w->pass] && !op_runs(w, op_at(w)))
        w->op++;
    if (w->op < block->num_ops[w->pass])
        return true;
    ms_state_end_block(b, w);
    w->block++;
    w->op = -1;
    return false;
}

/* Advances to the next operation that a forward or backward runs, in this block or a later
 * one. Returns false at the end of the stage. */
static bool find_op(ms_node_builder *b, ms_walk *w)
{
    while (w->block < w->blocks->num)
        if (find_op_of_block(b, w))
            return true;
    return false;
}

static void add_op(ms_node_builder *b, ms_walk *w, double *free_s)
{
    const ms_block_op *op = op_at(w);
    if (op->moves) {
        add_collective(b, w, op);
        w->next_op_s += op->exposed_s;
    } else {
        add_kernel(b, w, op);
        *free_s = ms_max(*free_s, w->next_op_s) + op->compute_s;
        w->next_op_s = *free_s;
    }
    w->op++;
}

static ms_walk open_walk(ms_node_builder *b, int slot, int stage, int microbatch)
{
    ms_step_builder *s = &b->s;
    const ms_actors *actors = s->actors;
    int rank = ms_step_rank(s, slot);
    int model_stage = ms_schedule_model_stage(&s->schedule->shape, stage);
    int width = actors->first_at[rank + 1] - actors->first_at[rank];
    ms_walk w = {
        .rank = rank,
        .stage = stage,
        .sums = ms_planned_stage(s->planned, model_stage),
        .blocks = &b->blocks[model_stage],
        .microbatch = microbatch,
        .op = -1,
        .ready = MS_NEW_ARRAY(s->scratch, actors->num, int),
        .arrived = MS_NEW_ARRAY(s->scratch, actors->num, int),
        .params = MS_NEW_ARRAY(s->scratch, actors->num, int),
        .starts = MS_NEW_ARRAY(s->scratch, (long)b->most_ops * width, ms_kernel_start)};
    for (int i = actors->first_at[rank]; i < actors->first_at[rank + 1]; i++)
        w.ready[actors->at[i]] = s->ready[actors->at[i]];
    return w;
}

static ms_walk open_forward(ms_node_builder *b, int slot)
{
    const ms_slot_cost *cost = ms_step_class(&b->s, slot);
    ms_walk w = open_walk(b, slot, cost->stage, ms_step_action(&b->s, slot)->microbatch);
    w.pass = MS_BILL_FORWARD;
    w.first_forward = cost->first_forward;
    return w;
}

static ms_walk open_backward(ms_node_builder *b, int slot, bool last)
{
    const ms_slot_cost *cost = ms_step_class(&b->s, slot);
    const ms_action *action = ms_step_action(&b->s, slot);
    bool pair = cost->kind == MS_SLOT_PAIR_FORWARD;
    ms_walk w = open_walk(b, slot, pair ? cost->backward_stage : cost->stage,
                          pair ? action->backward_microbatch : action->microbatch);
    w.pass = MS_BILL_BACKWARD;
    w.inputs = cost->kind != MS_SLOT_WEIGHT;
    w.weights = cost->kind != MS_SLOT_INPUT;
    w.last_backward = last;
    return w;
}

/* ---- actions ---- */

/* Adds the messages that an action receives; its forward or backward waits for them, and
 * both of a pair for both. */
static void begin_action(ms_node_builder *b, int slot, ms_walk *forward,
                         ms_walk *backward)
{
    ms_step_builder *s = &b->s;
    const ms_actors *actors = s->actors;
    int rank = ms_step_rank(s, slot);
    for (int i = actors->first_at[rank]; i < actors->first_at[rank + 1]; i++) {
        int a = actors->at[i];
        ms_arrivals from = ms_step_add_arrivals(s, slot, a);
        int both = from.activation != 0 ? from.activation : from.gradient;
        if (from.activation != 0 && from.gradient != 0) {
            both = ms_step_add_join(s, "both messages");
            ms_graph_wait(s->graph, from.activation);
            ms_graph_wait(s->graph, from.gradient);
        }
        if (forward != NULL)
            forward->arrived[a] = both;
        if (backward != NULL)
            backward->arrived[a] = both;
    }
}

/* Makes a stage without blocks pass on its input once that has arrived. */
static void begin_walk(ms_node_builder *b, ms_walk *w)
{
    ms_step_builder *s = &b->s;
    const ms_actors *actors = s->actors;
    for (int i = actors->first_at[w->rank]; i < actors->first_at[w->rank + 1]; i++) {
        int a = actors->at[i], before = w->ready[a];
        if (w->blocks->num > 0 || w->arrived[a] == 0)
            continue;
        w->ready[a] = ms_step_add_join(s, "handed on");
        ms_graph_wait(s->graph, before);
        ms_graph_wait(s->graph, w->arrived[a]);
        w->arrived[a] = 0;
    }
}

static void walk_alone(ms_node_builder *b, ms_walk *w)
{
    begin_walk(b, w);
    while (w->block < w->blocks->num) {
        if (ms_repeat_block(b, w))
            continue;
        for (double free_s = 0.0; find_op_of_block(b, w);)
            add_op(b, w, &free_s);
        ms_repeat_end_block(b, w);
    }
    ms_state_end_walk(b, w);
}

/* Makes the end of the walk the end of `slot`. */
static void set_ends(ms_node_builder *b, int slot, const ms_walk *w)
{
    const ms_actors *actors = b->s.actors;
    for (int i = actors->first_at[w->rank]; i < actors->first_at[w->rank + 1]; i++)
        ms_step_set_end(&b->s, slot, actors->at[i], w->ready[actors->at[i]]);
}

/* Adds the tasks of an overlapped pair of a forward and a backward. Token exchanges of
 * one overlap kernels of the other; during other collectives of one, the other waits (as
 * in costmodel/cost/overlapped_pair.h). Of the next kernels of both, the one ready first
 * runs first. The end of the forward becomes the end of `slot`. */
static void walk_pair(ms_node_builder *b, int slot, ms_walk *forward, ms_walk *backward)
{
    double free_s = 0.0;
    const ms_schedule_shape *shape = &b->s.schedule->shape;
    forward->num_pairs = backward->num_pairs = ms_pair_host_waits(
        b->s.scratch, b->s.planned, ms_schedule_model_stage(shape, forward->stage),
        ms_schedule_model_stage(shape, backward->stage), &forward->pair_host_s,
        &backward->pair_host_s);
    begin_walk(b, forward);
    begin_walk(b, backward);
    bool more[2] = {find_op(b, forward), find_op(b, backward)};
    while (more[0] || more[1]) {
        bool moves = more[1] && op_at(backward)->moves;
        bool first = more[0] && (op_at(forward)->moves || !more[1] ||
                                 (!moves && forward->next_op_s < backward->next_op_s));
        ms_walk *w = first ? forward : backward, *other = first ? backward : forward;
        const ms_block_op *op = op_at(w);
        add_op(b, w, &free_s);
        if (op->moves && op->group != MS_TRAFFIC_EP) {
            ms_walk_wait(b, other, w->ready);
            free_s = ms_max(free_s, w->next_op_s);
        }
        more[first ? 0 : 1] = find_op(b, w);
    }
    ms_state_end_walk(b, forward);
    set_ends(b, slot, forward);
    ms_state_end_walk(b, backward);
}

/* Adds the tasks of a pair whose backward follows its forward. */
static void walk_in_turn(ms_node_builder *b, int slot, ms_walk *forward,
                         ms_walk *backward)
{
    const ms_actors *actors = b->s.actors;
    walk_alone(b, forward);
    set_ends(b, slot, forward);
    for (int i = actors->first_at[forward->rank]; i < actors->first_at[forward->rank + 1];
         i++)
        backward->ready[actors->at[i]] = forward->ready[actors->at[i]];
    walk_alone(b, backward);
}

/* Ends a schedule action: the rank's next action starts after `w` and, in an overlapped
 * pair, after `other`; NULL: no pair. */
static void end_action(ms_node_builder *b, int last_slot, const ms_walk *w,
                       const ms_walk *other)
{
    ms_step_builder *s = &b->s;
    const ms_actors *actors = s->actors;
    for (int i = actors->first_at[w->rank]; i < actors->first_at[w->rank + 1]; i++) {
        int a = actors->at[i];
        s->ready[a] = w->ready[a];
        if (other != NULL) {
            s->ready[a] = ms_step_add_join(s, "pair");
            ms_graph_wait(s->graph, w->ready[a]);
            ms_graph_wait(s->graph, other->ready[a]);
        }
        int first_kernel = b->first_kernel[a] != 0 ? b->first_kernel[a] : s->ready[a];
        s->ready[a] = ms_step_add_hold(s, last_slot, a, s->ready[a]);
        ms_step_begin_span(s, a, first_kernel);
        ms_step_end_span(s, a, s->ready[a]);
        ms_step_set_end(s, last_slot, a, s->ready[a]);
        b->first_kernel[a] = 0;
    }
}

static void add_action(ms_node_builder *b, int slot)
{
    const ms_slot_cost *cost = ms_step_class(&b->s, slot);
    if (cost->kind == MS_SLOT_PAIR_REST)
        return; /* the slot of an overlapped pair's first half has added both */
    ms_arena_mark mark = ms_arena_save(b->s.scratch);
    if (cost->kind == MS_SLOT_PAIR_FORWARD) {
        bool last = ms_step_class(&b->s, slot + 1)->last_backward;
        ms_walk forward = open_forward(b, slot), backward = open_backward(b, slot, last);
        begin_action(b, slot, &forward, &backward);
        if (b->overlaps_pairs) {
            walk_pair(b, slot, &forward, &backward);
            end_action(b, slot + 1, &forward, &backward);
        } else {
            walk_in_turn(b, slot, &forward, &backward);
            end_action(b, slot + 1, &backward, NULL);
        }
    } else if (cost->kind == MS_SLOT_FORWARD) {
        ms_walk forward = open_forward(b, slot);
        begin_action(b, slot, &forward, NULL);
        walk_alone(b, &forward);
        end_action(b, slot, &forward, NULL);
    } else {
        ms_walk backward = open_backward(b, slot, cost->last_backward);
        begin_action(b, slot, NULL, &backward);
        walk_alone(b, &backward);
        end_action(b, slot, &backward, NULL);
    }
    ms_arena_rewind(b->s.scratch, mark);
}

/* ---- the step ---- */

/* Sets labels and work of a block's operations, once for equal blocks. */
static void prepare_block(ms_node_builder *b, ms_block_ops *block)
{
    for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++) {
        int num = block->num_ops[pass];
        b->most_ops = num > b->most_ops ? num : b->most_ops;
        for (int i = 0; i < num; i++) {
            ms_block_op *op = &block->ops[pass][i];
            if (op->work != 0)
                return;
            op->label = ms_graph_label(b->s.graph, op->name);
            op->work = ms_step_op_work(&b->s, op, block->program, false);
            if (op->hidden_s > 0.0)
                op->hidden_work = ms_step_op_work(&b->s, op, block->program, true);
        }
    }
    ms_step_state_work(&b->s, block);
}

static void prepare_blocks(ms_node_builder *b)
{
    int num_stages = b->s.planned->pipeline.split->num_stages;
    b->blocks = ms_stage_blocks_make(b->s.scratch, b->s.planned);
    for (int stage = 0; stage < num_stages; stage++)
        for (int i = 0; i < b->blocks[stage].num; i++)
            prepare_block(b, b->blocks[stage].blocks[i]);
}

/* Estimated tasks per simulated rank: one per operation, four per block for transfers. */
static double tasks_per_actor(const ms_node_builder *b)
{
    const ms_schedule *schedule = b->s.schedule;
    double ops = 0.0;
    for (int stage = 0; stage < schedule->num_stages; stage++) {
        const ms_stage_blocks *blocks =
            &b->blocks[ms_schedule_model_stage(&schedule->shape, stage)];
        for (int i = 0; i < blocks->num; i++)
            ops += blocks->blocks[i]->num_ops[MS_BILL_FORWARD] +
                   blocks->blocks[i]->num_ops[MS_BILL_BACKWARD] + 4;
    }
    return ops * ms_schedule_stage_microbatches(&schedule->shape) /
           schedule->shape.num_ranks;
}

ms_status ms_step_graph_nodes(ms_ctx *cx, const ms_planned *planned,
                              const ms_simulate_options *options, const ms_actors *actors,
                              ms_link_uses *uses, ms_step_graph *out)
{
    ms_node_builder b = {
        .s = ms_step_builder_open(cx, planned, options, actors),
        .shares = uses != NULL,
        .overlaps = ms_overlaps_sync(planned->workload->stack, planned->sharding),
        .overlaps_pairs =
            ms_pipeline_overlaps_pairs(&planned->pipeline, planned->sharding)};
    b.first_kernel = MS_NEW_ARRAY(b.s.scratch, actors->num, int);
    b.launched = MS_NEW_ARRAY(b.s.scratch, actors->num, int);
    b.block_start = MS_NEW_ARRAY(b.s.scratch, actors->num, int);
    ms_repeat_open(&b);
    prepare_blocks(&b);
    if (uses != NULL) {
        ms_step_share(&b.s, uses);
        ms_stage_blocks_note_uses(planned, b.blocks, uses);
    }
    ms_status status = ms_step_check_size(cx, actors, tasks_per_actor(&b));
    if (status == MS_OK) {
        ms_state_gather_once(&b);
        for (int slot = 1; slot <= planned->schedule->num_slots; slot++)
            add_action(&b, slot);
        ms_step_add_optimizer(&b.s);
    }
    ms_step_builder_close(&b.s, out);
    return status;
}
