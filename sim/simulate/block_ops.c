#include "sim/simulate/block_ops.h"

#include "base/number.h"
#include "costmodel/cost/cast.h"
#include "costmodel/program/ring.h"
#include "sim/simulate/move_names.h"

#include <assert.h>
#include <math.h>

/* A block's operations in one pass (forward or backward), while they are collected. */
typedef struct op_list {
    const ms_planned *planned;
    const ms_prices *prices; /* prices on the stage's devices */
    const ms_bill *bill;
    const ms_program *program;
    int pass; /* MS_BILL_FORWARD or MS_BILL_BACKWARD */
    int num;
    ms_block_op *ops;
} op_list;

/* ---- collectives ---- */

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(a);
}

/* The entry of the block's costs (ms_bill) in which collective `one` is counted. */
static const ms_bill_comm *find_entry(const op_list *l, const ms_bill_comm *one)
{
    const ms_bill_comm *entries = l->bill->comms[l->pass];
    for (int i = 0; i < l->bill->num_comms[l->pass]; i++) {
        const ms_bill_comm *e = &entries[i];
        if (e->axis == one->axis && e->collective == one->collective &&
            e->ring == one->ring && e->size_bytes == one->size_bytes &&
            is_near(e->window_s / e->count, one->window_s / one->count) &&
            is_near(e->beside_s / e->count, one->beside_s / one->count))
            return e;
    }
    return NULL;
}

/* Whether a collective's hidden part runs beside the kernels after it: a gather's, and an
 * exchange of tokens before shared experts; in backward these come first. */
static bool overlaps_later_ops(const ms_node *node, const ms_bill_comm *one)
{
    bool is_exchange = node != NULL && node->op == MS_OP_EXCHANGE && one->beside_s > 0.0;
    return is_exchange ? node->pass == MS_PASS_FORWARD || node->pass == MS_PASS_RECOMPUTE
                       : one->collective == MS_ALL_GATHER;
}

/* Adds collective `one` of a node. The block's costs (ms_bill) list equal collectives as
 * one entry: `one` gets its share, by count, of that entry's exposed and hidden time. */
static void add_collective(op_list *l, ms_block_op op, const ms_bill_comm *one)
{
    const ms_planned *p = l->planned;
    const ms_links *links = l->prices->links;
    const ms_bill_comm *entry = find_entry(l, one);
    assert(entry != NULL); /* the layer program's costs include all collectives */
    double share = (double)one->count / entry->count;
    double all_s = entry->count * ms_collective_s(&links->law[one->axis][one->collective],
                                                  one->size_bytes);
    double exposed_s =
        ms_comm_exposed_s(l->prices->workload, entry, links, p->plan->async_tp);
    bool overlaps = entry->ring || entry->beside_s > 0.0 ||
                    ms_comm_is_async(entry, links, p->plan->async_tp);
    double interference = overlaps ? p->workload->stack->interference_frac.value : 0.0;
    double hidden_s =
        interference < 1.0 ? (all_s - exposed_s) / (1.0 - interference) : 0.0;
    op.kind = MS_TASK_COLLECTIVE;
    op.moves = true;
    op.ring = one->ring;
    op.count = one->count;
    op.group = (ms_traffic_group)one->axis;
    op.collective = (ms_collective)one->collective;
    op.size_bytes = one->size_bytes;
    op.hidden_s = share * ms_max(hidden_s, 0.0);
    op.interference_s = op.hidden_s * interference;
    op.all_count = one->count;
    op.all_bytes = one->count * one->size_bytes;
    op.all_s = share * all_s;
    op.exposed_s = ms_max(share * exposed_s - op.interference_s, 0.0);
    op.overlaps_later_ops = overlaps_later_ops(op.node, one);
    op.overlapped_s = op.hidden_s;
    l->ops[l->num++] = op;
}

static void add_redistribution(op_list *l, ms_block_op op, const ms_node *node)
{
    ms_bill_comm one;
    if (ms_node_bill_comm(l->program, &l->prices->workload->pricer, node, &one))
        add_collective(l, op, &one);
}

/* Adds the transfers of ring attention, which run one after the other beside the
 * attention kernel, and after that kernel one operation for their exposed seconds. */
static void add_ring(op_list *l, ms_block_op op, const ms_node *node)
{
    const ms_pricer *pricer = &l->prices->workload->pricer;
    ms_ring_transfer transfers[MS_MAX_RING_TRANSFERS];
    int num = ms_ring_transfers(l->program, node, transfers);
    double seconds = ms_attention_s(pricer, ms_node_attention(l->program, node));
    op.compute_s = 0.0;
    op.node = NULL;
    double exposed_s = 0.0;
    ms_block_op all = {0};
    for (int i = 0; i < num; i++) {
        ms_bill_comm one = {.axis = MS_BILL_CP,
                            .collective = MS_SEND,
                            .ring = true,
                            .count = transfers[i].count,
                            .size_bytes = transfers[i].size_bytes,
                            .window_s = transfers[i].window_frac * seconds};
        add_collective(l, op, &one);
        ms_block_op *added = &l->ops[l->num - 1];
        added->overlapped_s = 0.0;
        added->waits_later = true;
        exposed_s += added->exposed_s;
        all.all_count += added->all_count;
        all.all_bytes += added->all_bytes;
        all.all_s += added->all_s;
        added->exposed_s = 0.0;
    }
    if (num == 0)
        return;
    ms_block_op rest = l->ops[l->num - 1];
    rest.count = 0;
    rest.waits_later = false;
    rest.exposed_s = exposed_s;
    rest.all_count = all.all_count;
    rest.all_bytes = all.all_bytes;
    rest.all_s = all.all_s;
    rest.hidden_s = rest.interference_s = 0.0;
    l->ops[l->num++] = rest;
}

/* ---- collectives one after the other ---- */

/* Whether two neighbouring operations are collectives of one stream that overlap the same
 * kernels: those after them (gathers), or those before them. */
static bool share_kernels(const ms_block_op *a, const ms_block_op *b)
{
    return a->moves && b->moves && !a->ring && !b->ring && a->group == b->group &&
           a->overlaps_later_ops == b->overlaps_later_ops;
}

/* Moves the hidden seconds of the collectives from `first` to `last` to their end, if they
 * overlap later kernels, otherwise to their beginning: on one stream a later collective's
 * exposed seconds would otherwise wait for an earlier one's hidden seconds. */
static void gather_hidden_seconds(op_list *l, int first, int last)
{
    double hidden_s = 0.0, exposed_s = 0.0;
    for (int i = first; i <= last; i++) {
        hidden_s += l->ops[i].hidden_s;
        exposed_s += l->ops[i].exposed_s;
    }
    bool later = l->ops[first].overlaps_later_ops;
    double overlapped_s = hidden_s;
    for (int i = first; i <= last; i++) {
        ms_block_op *op = &l->ops[i];
        double all_s = op->exposed_s + op->hidden_s;
        op->exposed_s = later ? ms_min(exposed_s, all_s) : ms_max(all_s - hidden_s, 0.0);
        op->hidden_s = all_s - op->exposed_s;
        op->waits_later = op->exposed_s <= 0.0 && (later || i < last);
        exposed_s -= op->exposed_s;
        hidden_s -= op->hidden_s;
        op->overlapped_s = overlapped_s;
    }
}

static void gather_all_hidden_seconds(op_list *l)
{
    for (int first = 0, last; first < l->num; first = last + 1) {
        last = first;
        while (last + 1 < l->num && share_kernels(&l->ops[first], &l->ops[last + 1]))
            last++;
        if (l->ops[first].moves && !l->ops[first].ring)
            gather_hidden_seconds(l, first, last);
    }
}

int ms_first_overlapped(const ms_block_op *ops, int index, ms_op_ran *ran,
                        const void *pass)
{
    int first = -1, at = index - 1;
    while (at >= 0 && ops[at].moves && ops[at].group == ops[index].group)
        at--;
    for (double seconds = 0.0; at >= 0 && !ops[at].moves; at--) {
        if (!ran(pass, at))
            continue;
        first = at;
        seconds += ops[at].compute_s;
        if (seconds >= ops[index].overlapped_s)
            break;
    }
    return first;
}

/* ---- ops of a pass ---- */

ms_task_kind ms_node_task_kind(const ms_node *node)
{
    switch ((ms_pass)node->pass) {
    case MS_PASS_RECOMPUTE:
        return MS_TASK_RECOMPUTE;
    case MS_PASS_BACKWARD_INPUT:
        return MS_TASK_BACKWARD_INPUT;
    case MS_PASS_BACKWARD_WEIGHT:
        return MS_TASK_BACKWARD_WEIGHT;
    case MS_PASS_FORWARD:
    case MS_PASS_OPTIMIZER:
    case MS_NUM_PASSES:
        break;
    }
    return MS_TASK_FORWARD;
}

static void add_node(op_list *l, const ms_node *node)
{
    ms_block_op op = {.kind = (unsigned char)ms_node_task_kind(node),
                      .weight = node->pass == MS_PASS_BACKWARD_WEIGHT,
                      .name = node->name,
                      .node = node};
    if (node->op == MS_OP_REDISTRIBUTE || node->op == MS_OP_EXCHANGE) {
        add_redistribution(l, op, node);
        return;
    }
    op.compute_s = ms_node_compute_s(l->program, node, &l->prices->workload->pricer);
    if (op.compute_s > 0.0)
        l->ops[l->num++] = op;
    if (ms_node_is_ring(l->program, node))
        add_ring(l, op, node);
}

/* Adds the sums of gradients of a backward in a stack that makes them apart. */
static void add_accumulation(op_list *l)
{
    const ms_workload *workload = l->prices->workload;
    double accumulate_bytes = workload->stack->accumulate_bytes.value *
                              (l->bill->dense_params + l->bill->expert_params);
    double seconds = ms_stream_s(&workload->pricer, accumulate_bytes);
    if (l->pass != MS_BILL_BACKWARD || seconds <= 0.0)
        return;
    l->ops[l->num++] = (ms_block_op){.kind = MS_TASK_BACKWARD_WEIGHT,
                                     .weight = true,
                                     .name = MS_MOVE_ACCUMULATE,
                                     .compute_s = seconds};
}

/* The blocks of stages on devices of one set of kinds, made as they are needed. */
typedef struct collection {
    ms_arena *arena;
    const ms_planned *planned;
    ms_prices prices; /* prices on the devices of these stages */
    ms_block_ops *embed, *head, *tied_head;
    ms_block_ops *layer[MS_MAX_LAYER_KINDS][MS_NUM_LAYER_MODES];
} collection;

/* Maximum operations besides one per node: ring transfers, gradient sums. */
#define MORE_OPS (4 * (MS_MAX_RING_TRANSFERS + 1) + 1)

static void collect_ops(const collection *c, const ms_held_block *held, ms_block_ops *out)
{
    ms_arena *arena = c->arena;
    const ms_program *program = out->program;
    for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++) {
        bool forward = pass == MS_BILL_FORWARD;
        int first = forward ? 0 : program->num_forward_nodes;
        int last = forward ? program->num_forward_nodes : program->num_nodes;
        op_list l = {.planned = c->planned,
                     .prices = &c->prices,
                     .bill = held->bill,
                     .program = program,
                     .pass = pass,
                     .ops = MS_NEW_ARRAY(arena, last - first + MORE_OPS, ms_block_op)};
        for (int n = first; n < last; n++)
            if (program->nodes[n].pass != MS_PASS_OPTIMIZER)
                add_node(&l, &program->nodes[n]);
        gather_all_hidden_seconds(&l);
        add_accumulation(&l);
        out->num_ops[pass] = l.num;
        out->ops[pass] = l.ops;
    }
}

/* ---- parameters and gradients ---- */

static ms_state_move move_of(const collection *c, ms_traffic_group group,
                             ms_collective collective, ms_sync_split split)
{
    const ms_collective_law *law = ms_traffic_law(c->prices.links, group, collective);
    return (ms_state_move){.group = group,
                           .collective = collective,
                           .size_bytes = split.size_bytes * split.per_block,
                           .split = split,
                           .seconds = ms_sync_s(law, split)};
}

static ms_sync_split split_of(const collection *c, const ms_block_ops *ops,
                              const ms_bill *bill, bool expert, double bytes)
{
    return ms_sync_split_of(c->prices.workload->stack, bill, expert,
                            ops->block->unit_layers, bytes);
}

static void collect_gathers(const collection *c, const ms_bill *bill, bool expert,
                            double num_params, ms_block_ops *out)
{
    const ms_planned *p = c->planned;
    double bytes = p->workload->stack->param_comm_bytes.value * num_params;
    if (p->sharding >= MS_ZERO_3)
        bytes += expert ? out->block->frozen.expert : out->block->frozen.dense;
    ms_sync_split split = split_of(c, out, bill, expert, bytes);
    const ms_traffic_group groups[] = {ms_traffic_state_group(p->plan, expert, true),
                                       ms_traffic_regather_group(p, expert)};
    ms_state_move *moves[] = {&out->gather[expert], &out->regather[expert]};
    for (int again = 0; again < 2; again++) {
        ms_sync_group sync = (ms_sync_group)(groups[again] - MS_TRAFFIC_FSDP);
        *moves[again] = move_of(c, groups[again], MS_ALL_GATHER, split);
        moves[again]->seconds +=
            ms_quantize_gather_s(c->prices.workload, c->prices.links, sync, num_params);
    }
}

static void collect_moves(const collection *c, const ms_bill *bill, ms_block_ops *out)
{
    const ms_planned *p = c->planned;
    const ms_links *links = c->prices.links;
    double grad_bytes = p->workload->stack->grad_comm_bytes.value, shard_params = 0.0;
    for (int expert = 0; expert < 2; expert++) {
        double params[2]; /* number of parameters gathered [0] and reduced [1] */
        for (int reduces = 0; reduces < 2; reduces++) {
            params[reduces] =
                expert ? out->block->expert_params
                       : ms_moved_dense_params(p->workload, p->sharding, bill,
                                               out->block->dense_params, reduces == 1);
        }
        int shards = expert ? MS_SYNC_EXPERT_FSDP : MS_SYNC_FSDP;
        double kept = expert ? out->block->expert_params : out->block->dense_params;
        shard_params += kept / (double)links->sync_span[shards].size;
        collect_gathers(c, bill, expert, params[0], out);
        out->reduce[expert] =
            move_of(c, ms_traffic_state_group(p->plan, expert, true), MS_REDUCE_SCATTER,
                    split_of(c, out, bill, expert, grad_bytes * params[1]));
        out->reduce[expert].seconds += ms_accumulate_gradients_s(
            c->prices.workload, links, (ms_sync_group)shards, params[1]);
        out->all_reduce[expert] =
            move_of(c, ms_traffic_state_group(p->plan, expert, false), MS_ALL_REDUCE,
                    split_of(c, out, bill, expert, grad_bytes * kept));
    }
    out->replicate = move_of(c, MS_TRAFFIC_REPLICATE, MS_ALL_REDUCE,
                             split_of(c, out, bill, false, grad_bytes * shard_params));
    out->tp_sync = move_of(c, MS_TRAFFIC_TP, MS_ALL_REDUCE,
                           (ms_sync_split){grad_bytes * bill->tp_partial_params, 1.0});
}

/* ---- stages ---- */

static ms_block_ops *make_block(const collection *c, const ms_block_cost *block,
                                ms_held_block held)
{
    ms_block_ops *out = MS_NEW(c->arena, ms_block_ops);
    out->block = block;
    held.workload = c->prices.workload;
    out->program = ms_planned_program(c->arena, c->planned, &held);
    collect_ops(c, &held, out);
    collect_moves(c, held.bill, out);
    return out;
}

static ms_block_ops *layer_of(collection *c, int stage, long layer)
{
    const ms_planned *p = c->planned;
    long index = p->pipeline.split->first_layer[stage] + layer;
    int kind = p->workload->model->kind_of_layer[index];
    ms_layer_mode mode = ms_planned_mode(p, layer);
    ms_block_ops **made = &c->layer[kind][mode];
    if (*made == NULL) {
        *made = make_block(c, &c->prices.blocks->layer[kind][mode],
                           (ms_held_block){.block = MS_BLOCK_LAYER,
                                           .kind = kind,
                                           .mode = mode,
                                           .bill = c->prices.bills->layer[kind][mode]});
    }
    return *made;
}

static ms_block_ops *end_block_of(ms_block_ops **made, const collection *c,
                                  const ms_block_cost *block, ms_block_kind which,
                                  const ms_bill *bill)
{
    if (*made == NULL)
        *made = make_block(
            c, block,
            (ms_held_block){.block = which, .mode = MS_RECOMPUTE_NONE, .bill = bill});
    return *made;
}

/* Costs of a head that shares its matrix with the embedding on the same rank. In a stack
 * with fixed_unit_buffers the head gathers and reduces that matrix once more. */
static const ms_block_cost *tied_head(const collection *c)
{
    const ms_planned *p = c->planned;
    const ms_block_costs *blocks = c->prices.blocks;
    ms_block_cost *block = MS_NEW(c->arena, ms_block_cost);
    *block = blocks->tied_head;
    if (p->workload->stack->fixed_unit_buffers && p->sharding == MS_ZERO_3) {
        block->gather_s = blocks->head.gather_s;
        block->frozen_gather_s = blocks->head.frozen_gather_s;
        block->regather_saved_s = blocks->head.regather_saved_s;
        block->frozen = blocks->head.frozen;
    }
    if (p->workload->stack->fixed_unit_buffers && ms_shards_grads(p->sharding))
        block->reduce_s = blocks->head.reduce_s;
    return block;
}

static ms_stage_blocks stage_of(collection *c, int stage)
{
    const ms_planned *p = c->planned;
    const ms_split *split = p->pipeline.split;
    ms_stage_layout layout = ms_split_layout(split, stage, ms_plan_layer_mode(p->plan),
                                             p->plan->recompute_layers);
    bool tied = ms_head_shares_weights(p->workload) &&
                (layout.has_embedding || layout.head_beside_embedding);
    ms_stage_blocks out = {
        0, MS_NEW_ARRAY(c->arena, split->layers[stage] + 2, ms_block_ops *)};
    if (layout.has_embedding)
        out.blocks[out.num++] = end_block_of(&c->embed, c, &c->prices.blocks->embed,
                                             MS_BLOCK_EMBED, &c->prices.bills->embed);
    for (long i = 0; i < split->layers[stage]; i++)
        out.blocks[out.num++] = layer_of(c, stage, i);
    if (layout.has_head) {
        out.blocks[out.num++] =
            end_block_of(tied ? &c->tied_head : &c->head, c,
                         tied ? tied_head(c) : &c->prices.blocks->head, MS_BLOCK_HEAD,
                         &c->prices.bills->head);
    }
    return out;
}

ms_stage_blocks *ms_stage_blocks_make(ms_arena *arena, const ms_planned *planned)
{
    collection *of_kinds[MS_NUM_KIND_SETS] = {NULL};
    int num_stages = planned->pipeline.split->num_stages;
    ms_stage_blocks *out = MS_NEW_ARRAY(arena, num_stages, ms_stage_blocks);
    for (int s = 0; s < num_stages; s++) {
        collection **c = &of_kinds[ms_split_kinds(planned->pipeline.split, s)];
        if (*c == NULL) {
            *c = MS_NEW(arena, collection);
            (*c)->arena = arena;
            (*c)->planned = planned;
            (*c)->prices = ms_planned_prices(planned, s);
        }
        out[s] = stage_of(*c, s);
    }
    return out;
}

/* ---- link uses ---- */

static int note_use(const ms_planned *p, ms_link_uses *uses, ms_traffic_group group,
                    ms_collective collective, double size_bytes, bool ring)
{
    const ms_collective_law *law = ms_traffic_law(&p->links, group, collective);
    ms_use_kind kind = {.group = group,
                        .collective = collective,
                        .algorithm = ms_collective_algorithm(law, size_bytes),
                        .wire_frac = law->wire_frac,
                        .ring = ring};
    return ms_link_uses_kind(uses, kind);
}

static void note_move(const ms_planned *p, ms_link_uses *uses, ms_state_move *move)
{
    if (move->seconds > 0.0)
        move->use = note_use(p, uses, move->group, move->collective,
                             move->split.size_bytes, false);
}

static void note_block(const ms_planned *p, ms_link_uses *uses, ms_block_ops *block)
{
    for (int pass = 0; pass < MS_NUM_BILL_PASSES; pass++) {
        for (int i = 0; i < block->num_ops[pass]; i++) {
            ms_block_op *op = &block->ops[pass][i];
            if (op->moves)
                op->use = note_use(p, uses, op->group, op->collective, op->size_bytes,
                                   op->ring);
        }
    }
    for (int i = 0; i < 2; i++) {
        note_move(p, uses, &block->gather[i]);
        note_move(p, uses, &block->regather[i]);
        note_move(p, uses, &block->reduce[i]);
        note_move(p, uses, &block->all_reduce[i]);
    }
    note_move(p, uses, &block->replicate);
    note_move(p, uses, &block->tp_sync);
}

int ms_send_use(const ms_planned *planned, ms_link_uses *uses, int from, int to)
{
    ms_use_kind kind = {.group = MS_TRAFFIC_PP,
                        .collective = MS_SEND,
                        .algorithm = ms_collective_algorithm(&planned->links.send,
                                                             planned->blocks.wire_bytes),
                        .from = from,
                        .to = to};
    return ms_link_uses_kind(uses, kind);
}

void ms_stage_blocks_note_uses(const ms_planned *planned, const ms_stage_blocks *blocks,
                               ms_link_uses *uses)
{
    const ms_schedule_shape *shape = &planned->schedule->shape;
    for (int s = 0; s < planned->pipeline.split->num_stages; s++)
        for (int i = 0; i < blocks[s].num; i++)
            note_block(planned, uses, blocks[s].blocks[i]);
    for (int s = 0; s + 1 < planned->schedule->num_stages; s++) {
        int from = ms_schedule_rank(shape, s), to = ms_schedule_rank(shape, s + 1);
        bool neighbours = ms_schedule_model_stage(shape, s + 1) > 0;
        if (from == to || !neighbours)
            continue;
        ms_send_use(planned, uses, from, to);
        ms_send_use(planned, uses, to, from);
    }
}
