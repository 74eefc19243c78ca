#include "sim/step/stage.h"

#include "base/number.h"
#include "sim/step/overlap.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- pairs ---- */

static ms_layer_mode mode_of_layer(const ms_stage_layout *layout, long layer)
{
    bool rest = layout->mode == MS_RECOMPUTE_FULL && layout->recompute_layers > 0 &&
                layer >= layout->recompute_layers;
    return rest ? MS_RECOMPUTE_NONE : layout->mode;
}

/* A layer of stage `f` in its forward, and the layer of stage `b` that overlaps it in its
 * backward. */
typedef struct layer_pair {
    const ms_pair_forward *forward;
    const ms_pair_backward *backward;
    double alone_s; /* seconds of both, one after the other */
} layer_pair;

static layer_pair layer_pair_at(const ms_workload *workload, const ms_block_costs *blocks,
                                const ms_stage_layout *f, const ms_stage_layout *b,
                                long i)
{
    const unsigned char *kinds = workload->model->kind_of_layer;
    long j = b->num_layers - 1 - i;
    int kind = kinds[f->first_layer + i], back = kinds[b->first_layer + j];
    ms_layer_mode mode = mode_of_layer(f, i), back_mode = mode_of_layer(b, j);
    return (layer_pair){.forward = &blocks->pair_forward[kind][mode],
                        .backward = &blocks->pair_backward[back][back_mode],
                        .alone_s = blocks->layer[kind][mode].forward_s +
                                   blocks->layer[back][back_mode].backward_s};
}

long ms_num_layer_pairs(const ms_stage_layout *f, const ms_stage_layout *b)
{
    return f->num_layers < b->num_layers ? f->num_layers : b->num_layers;
}

double ms_layer_pair_host_s(const ms_workload *workload, const ms_block_costs *blocks,
                            const ms_stage_layout *f, const ms_stage_layout *b, long i)
{
    layer_pair pair = layer_pair_at(workload, blocks, f, b, i);
    return ms_pair_host_s(pair.forward, pair.backward,
                          workload->stack->interference_frac.value);
}

double ms_pair_saved_s(const ms_workload *workload, const ms_block_costs *blocks,
                       const ms_stage_layout *f, const ms_stage_layout *b)
{
    double interference = workload->stack->interference_frac.value, saved_s = 0.0;
    const unsigned char *kinds = workload->model->kind_of_layer;
    /* [kind, mode of the forward as of the stage][those of the backward] */
    double known_s[2 * MS_MAX_LAYER_KINDS][2 * MS_MAX_LAYER_KINDS];
    bool is_known[2 * MS_MAX_LAYER_KINDS][2 * MS_MAX_LAYER_KINDS] = {{false}};
    for (long i = 0; i < ms_num_layer_pairs(f, b); i++) {
        long j = b->num_layers - 1 - i;
        int row = 2 * kinds[f->first_layer + i] + (mode_of_layer(f, i) == f->mode);
        int column = 2 * kinds[b->first_layer + j] + (mode_of_layer(b, j) == b->mode);
        if (!is_known[row][column]) {
            layer_pair pair = layer_pair_at(workload, blocks, f, b, i);
            double pair_s = ms_pair_s(pair.forward, pair.backward, interference);
            known_s[row][column] = ms_max(pair.alone_s - pair_s, 0.0);
        }
        is_known[row][column] = true;
        saved_s += known_s[row][column];
    }
    return saved_s;
}

/* ---- summing blocks into stages ---- */

static void add_bytes(ms_tensor_bytes *to, const ms_tensor_bytes *bytes, double count)
{
    to->activation_bytes += count * bytes->activation_bytes;
    to->logits_bytes += count * bytes->logits_bytes;
}

static void add_block(const ms_workload *workload, ms_stage *stage,
                      const ms_block_cost *block, double count)
{
    ms_block_cost *sum = &stage->sum;
    sum->forward_s += count * block->forward_s;
    sum->backward_s += count * block->backward_s;
    sum->input_s += count * block->input_s;
    sum->weight_s += count * block->weight_s;
    sum->contended_forward_s += count * block->contended_forward_s;
    sum->contended_backward_s += count * block->contended_backward_s;
    sum->contended_input_s += count * block->contended_input_s;
    sum->contended_weight_s += count * block->contended_weight_s;
    sum->exchange_forward_s += count * block->exchange_forward_s;
    sum->exchange_backward_s += count * block->exchange_backward_s;
    sum->forward_compute_s += count * block->forward_compute_s;
    sum->backward_compute_s += count * block->backward_compute_s;
    sum->forward_host_s += count * block->forward_host_s;
    sum->backward_host_s += count * block->backward_host_s;
    sum->input_host_s += count * block->input_host_s;
    sum->weight_host_s += count * block->weight_host_s;
    sum->gather_s += count * block->gather_s;
    sum->reduce_s += count * block->reduce_s;
    sum->replicate_s += count * block->replicate_s;
    sum->all_reduce_s += count * block->all_reduce_s;
    sum->tp_sync_s += count * block->tp_sync_s;
    sum->dense_params += count * block->dense_params;
    sum->expert_params += count * block->expert_params;
    sum->frozen.dense += count * block->frozen.dense;
    sum->frozen.expert += count * block->frozen.expert;
    sum->frozen_gather_s += count * block->frozen_gather_s;
    sum->regather_saved_s += count * block->regather_saved_s;
    if (workload->updates_matrices)
        ms_update_cost_sum(&stage->update, block->update, count);
    add_bytes(&sum->memory.saved, &block->memory.saved, count);
    add_bytes(&sum->memory.delayed, &block->memory.delayed, count);
    sum->memory.host_bytes += count * block->memory.host_bytes;
}

/* Raises the size of the stage's largest unit to that of a unit of up to `count` blocks. */
static void raise_unit(const ms_workload *workload, const ms_block_cost *block,
                       double count, ms_stage *to)
{
    double trained = workload->stack->param_comm_bytes.value;
    double n = ms_min(ms_max(block->unit_layers, 1.0), count);
    const double bytes[2] = {trained * block->dense_params + block->frozen.dense,
                             trained * block->expert_params + block->frozen.expert};
    to->unit_dense_params = ms_max(to->unit_dense_params, n * block->dense_params);
    to->unit_expert_params = ms_max(to->unit_expert_params, n * block->expert_params);
    for (int i = 0; i < 2; i++)
        to->unit_gathered_bytes[i] = ms_max(to->unit_gathered_bytes[i], n * bytes[i]);
}

static void add_layers(const ms_workload *workload, const ms_block_costs *blocks,
                       ms_stage *stage, const long range[2], ms_layer_mode mode)
{
    long first = range[0], last = range[1];
    for (int kind = 0; kind < workload->model->num_kinds; kind++) {
        int count =
            workload->layers_before[kind][last] - workload->layers_before[kind][first];
        if (count == 0)
            continue;
        const ms_block_cost *block = &blocks->layer[kind][mode];
        add_block(workload, stage, block, (double)count);
        raise_unit(workload, block, (double)count, stage);
    }
}

/* `meet`: a rank has both the first and the last stage. In a V placement the first rank
 * has both; with placement in both directions (DualPipe) two ranks have both. */
ms_stage_layout ms_split_layout(const ms_split *split, int stage, ms_layer_mode mode,
                                long recompute_layers)
{
    int last = split->num_stages - 1;
    bool meet =
        ms_schedule_placement(split->shape.kind) == MS_PLACE_BOTH_WAYS ||
        ms_schedule_rank(&split->shape, 0) == ms_schedule_rank(&split->shape, last);
    return (ms_stage_layout){.first_layer = split->first_layer[stage],
                             .num_layers = split->layers[stage],
                             .has_embedding = stage == 0,
                             .has_head = stage == last,
                             .head_beside_embedding = meet,
                             .mode = mode,
                             .recompute_layers = recompute_layers};
}

static const ms_block_cost *head_block_of(const ms_workload *workload,
                                          const ms_block_costs *blocks,
                                          const ms_stage_layout *layout)
{
    bool shared = (layout->has_embedding || layout->head_beside_embedding) &&
                  ms_head_shares_weights(workload);
    return shared ? &blocks->tied_head : &blocks->head;
}

/* ---- a backward ---- */

/* A stage's backward on its way from the last block to the first: memory freed and
 * transfers overlapped so far. */
typedef struct backward_walk {
    ms_stage *stage;
    ms_unit_overlap units;
    /* bytes freed by the blocks already passed */
    ms_tensor_bytes freed[MS_NUM_BILL_HALVES];
} backward_walk;

static double total_bytes(const ms_live_bytes *live)
{
    return live->activation_bytes + live->logits_bytes + live->head_grad_bytes;
}

/* Raises stage->transient to the bytes alive in the current block, if those are more. The
 * gradient of the head's matrix exists only in a whole backward or a weight half. */
static void note_transient(backward_walk *d, const ms_block_cost *block,
                           double head_grad_bytes)
{
    for (int half = 0; half < MS_NUM_BILL_HALVES; half++) {
        const ms_tensor_bytes *at = &block->memory.transient[half];
        const ms_tensor_bytes *freed = &d->freed[half];
        ms_live_bytes live = {at->activation_bytes - freed->activation_bytes,
                              at->logits_bytes - freed->logits_bytes,
                              half == MS_BILL_INPUT_HALF ? 0.0 : head_grad_bytes, 0.0};
        if (total_bytes(&live) > total_bytes(&d->stage->transient[half]))
            d->stage->transient[half] = live;
    }
}

static void free_blocks(backward_walk *d, const ms_block_cost *block, double count)
{
    const ms_bill_memory *memory = &block->memory;
    add_bytes(&d->freed[MS_BILL_WHOLE], &memory->saved, count);
    add_bytes(&d->freed[MS_BILL_INPUT_HALF], &memory->saved, count);
    add_bytes(&d->freed[MS_BILL_INPUT_HALF], &memory->delayed, -count);
    add_bytes(&d->freed[MS_BILL_WEIGHT_HALF], &memory->delayed, count);
}

/* Adds `count` equal blocks; the first or the last of them has the most bytes alive. */
static void walk_blocks(backward_walk *d, const ms_block_cost *block, long count)
{
    ms_unit_overlap_pass(&d->units, block, block, (double)count);
    note_transient(d, block, 0.0);
    free_blocks(d, block, (double)(count - 1));
    if (count > 1)
        note_transient(d, block, 0.0);
    free_blocks(d, block, 1.0);
}

/* A stage's layers on the way from the last to the first, as groups of equal kind and
 * recomputation. */
typedef struct layer_walk {
    const ms_workload *workload;
    const ms_block_costs *blocks;
    const ms_stage_layout *layout;
    long middle; /* first layer of the stage that is not recomputed like its first */
    long last;   /* last layer of the stage that is not passed; -1: none */
} layer_walk;

/* First of the layers down to which recomputation is that of the last. */
static long segment_start(const layer_walk *w)
{
    return w->last >= w->middle ? w->middle : 0;
}

static ms_block_group take_group(layer_walk *w)
{
    long offset = w->layout->first_layer, start = segment_start(w), last = w->last;
    int kind = w->workload->model->kind_of_layer[offset + last];
    long first = w->workload->first_alike[offset + last] - offset;
    first = first > start ? first : start;
    w->last = first - 1;
    return (ms_block_group){&w->blocks->layer[kind][mode_of_layer(w->layout, last)],
                            (double)(last - first + 1)};
}

/* Number of whole periods of the model's pattern of layers from the last one down; 0 if
 * the period does not begin with another kind of layer than it ends with. */
static long num_periods(const layer_walk *w)
{
    const unsigned char *kinds = w->workload->model->kind_of_layer;
    long period = w->workload->period, offset = w->layout->first_layer;
    long start = segment_start(w), end = offset + w->last;
    if (start + offset < w->workload->first_periodic)
        start = w->workload->first_periodic - offset;
    if (period < 2 || w->last - start + 1 < period ||
        kinds[end] == kinds[end - period + 1])
        return 0;
    return (w->last - start + 1) / period;
}

/* Adds so many periods, the same as those passed just before, at once. */
static void walk_periods(backward_walk *d, layer_walk *w, long times)
{
    ms_block_group groups[MS_MAX_PERIOD];
    long rest = w->last - times * w->workload->period;
    long end = w->last - w->workload->period;
    int num = 0;
    while (w->last > end)
        groups[num++] = take_group(w);
    ms_unit_overlap_repeat(&d->units, groups, num, (double)times);
    for (int i = 0; i < num; i++)
        free_blocks(d, groups[i].block, (double)times * groups[i].count);
    w->last = rest;
}

static void walk_down_to(backward_walk *d, layer_walk *w, long end)
{
    while (w->last > end) {
        ms_block_group group = take_group(w);
        walk_blocks(d, group.block, (long)group.count);
    }
}

#define MANY_PERIODS 64

/* Adds a stage's layers, from the last. Of a pattern that repeats often the first two
 * periods and the last are added group by group, one of which has the most bytes alive. */
static void walk_layers(backward_walk *d, const ms_workload *workload,
                        const ms_block_costs *blocks, const ms_stage_layout *layout)
{
    long most = layout->mode == MS_RECOMPUTE_FULL ? layout->recompute_layers : 0;
    layer_walk w = {workload, blocks, layout, most, layout->num_layers - 1};
    while (w.last >= 0) {
        long num = num_periods(&w);
        if (num >= MANY_PERIODS) {
            walk_down_to(d, &w, w.last - 2L * workload->period);
            walk_periods(d, &w, num - 3);
        }
        walk_down_to(d, &w, w.last - 1);
    }
}

/* Costs whose gather_s and reduce_s are the head's if blocks are moved one by one. */
static const ms_block_cost *moved_head(const ms_workload *workload,
                                       const ms_block_costs *blocks,
                                       const ms_stage_layout *layout)
{
    return workload->stack->fixed_unit_buffers ? &blocks->head
                                               : head_block_of(workload, blocks, layout);
}

static double slowed_frac(double interference_frac, double busy_s, double contended_s,
                          double comm_s)
{
    return busy_s > 0.0
               ? ms_slowed_s(interference_frac, busy_s, contended_s, comm_s) / busy_s
               : 0.0;
}

/* An overlap of the stage's blocks with their transfers; `stage` has the sums of all. */
static ms_unit_overlap open_overlap(const ms_workload *workload, ms_stage *stage)
{
    const ms_block_cost *sum = &stage->sum;
    double interference = workload->stack->interference_frac.value;
    ms_unit_overlap walk = {.interference_frac = interference, .out = &stage->by_unit};
    if (!stage->pipelined)
        walk.slow_forward_frac =
            slowed_frac(interference, sum->forward_s - sum->forward_host_s,
                        sum->contended_forward_s, sum->gather_s);
    const double reduce_s[] = {[MS_REDUCES_SHARDS] = sum->reduce_s + sum->replicate_s,
                               [MS_REDUCES_WHOLE] = sum->all_reduce_s};
    for (int i = 0; i < MS_NUM_STEP_REDUCTIONS; i++) {
        walk.slow_backward_frac[i] =
            slowed_frac(interference, sum->backward_s - sum->backward_host_s,
                        sum->contended_backward_s, reduce_s[i]);
        walk.slow_weight_frac[i] =
            slowed_frac(interference, sum->weight_s - sum->weight_host_s,
                        sum->contended_weight_s, reduce_s[i]);
    }
    return walk;
}

static void walk_back(const ms_workload *workload, const ms_block_costs *blocks,
                      const ms_stage_layout *layout, ms_stage *stage)
{
    backward_walk d = {.stage = stage, .units = open_overlap(workload, stage)};
    if (layout->has_head) {
        const ms_block_cost *head = head_block_of(workload, blocks, layout);
        ms_unit_overlap_pass(&d.units, head, moved_head(workload, blocks, layout), 1.0);
        note_transient(&d, head,
                       blocks->head_params * workload->stack->head_grad_bytes.value);
        free_blocks(&d, head, 1.0);
    }
    walk_layers(&d, workload, blocks, layout);
    if (layout->has_embedding)
        walk_blocks(&d, &blocks->embed, 1);
    /* a stage without blocks only passes a gradient on */
    if (!layout->has_head && !layout->has_embedding && layout->num_layers == 0)
        stage->transient[MS_BILL_WHOLE].activation_bytes =
            stage->transient[MS_BILL_INPUT_HALF].activation_bytes = blocks->send_bytes;
    ms_unit_overlap_end(&d.units);
}

/* Counts the embedding, and the head with its matrix even if shared, in the parameters of
 * the stage's largest block; in stacks with fixed_unit_buffers only. */
static void note_end_units(const ms_workload *workload, const ms_block_costs *blocks,
                           const ms_stage_layout *layout, ms_stage *stage)
{
    if (!workload->stack->fixed_unit_buffers)
        return;
    if (layout->has_embedding)
        raise_unit(workload, &blocks->embed, 1.0, stage);
    if (layout->has_head)
        raise_unit(workload, &blocks->head, 1.0, stage);
}

static void add_head(const ms_workload *workload, const ms_block_costs *blocks,
                     const ms_stage_layout *layout, ms_stage *stage)
{
    const ms_block_cost *head = head_block_of(workload, blocks, layout);
    const ms_block_cost *moved = moved_head(workload, blocks, layout);
    stage->tied_gather_s =
        moved->gather_s + moved->frozen_gather_s - head->gather_s - head->frozen_gather_s;
    stage->tied_regather_saved_s = moved->regather_saved_s - head->regather_saved_s;
    stage->tied_reduce_s = moved->reduce_s - head->reduce_s;
    add_block(workload, stage, head, 1.0);
    if (workload->updates_matrices)
        ms_update_cost_drop(&workload->pricer,
                            blocks->head.dense_params - head->dense_params,
                            (double)workload->model->hidden, &stage->update);
}

void ms_stage_make(const ms_workload *workload, const ms_block_costs *blocks,
                   const ms_stage_layout *layout, ms_stage *out)
{
    memset(out, 0, sizeof *out);
    long first = layout->first_layer, last = first + layout->num_layers, middle = first;
    if (layout->has_embedding)
        add_block(workload, out, &blocks->embed, 1.0);
    ms_layer_mode rest = layout->mode;
    if (layout->mode == MS_RECOMPUTE_FULL && layout->recompute_layers > 0) {
        middle = first + (layout->recompute_layers < layout->num_layers
                              ? layout->recompute_layers
                              : layout->num_layers);
        add_layers(workload, blocks, out, (long[]){first, middle}, MS_RECOMPUTE_FULL);
        rest = MS_RECOMPUTE_NONE;
    }
    if (middle < last)
        add_layers(workload, blocks, out, (long[]){middle, last}, rest);
    if (layout->has_head)
        add_head(workload, blocks, layout, out);
    out->num_layers = layout->num_layers;
    out->pipelined = !(layout->has_embedding && layout->has_head);
    out->is_first = layout->has_embedding;
    note_end_units(workload, blocks, layout, out);
    int messages = !layout->has_embedding + !layout->has_head;
    out->sum.memory.saved.activation_bytes +=
        messages * workload->stack->boundary_copies.value * blocks->send_bytes;
    if (!layout->compute_alone)
        walk_back(workload, blocks, layout, out);
}

/* ---- durations ---- */

ms_reduction_time ms_stage_reduces_when(const ms_stack *stack, const ms_stage *stage,
                                        ms_sharding sharding)
{
    if (!ms_overlaps_sync(stack, sharding) || (sharding == MS_ZERO_2 && stage->pipelined))
        return MS_REDUCE_AFTER_RANK;
    return ms_shards_grads(sharding) || stage->is_first ? MS_REDUCE_BY_UNIT
                                                        : MS_REDUCE_AFTER_STAGE;
}

/* Seconds of a pass of the stage slowed by comm_s of transfers: at least those of its
 * blocks one by one, blocks_s, whose kernels are slowed while the host launches them. */
static double slowed_pass_s(double interference_frac, ms_work sum, double comm_s,
                            double blocks_s)
{
    double gpu_s = sum.busy_s - sum.host_s;
    double slowed_s =
        gpu_s + ms_slowed_s(interference_frac, gpu_s, sum.contended_s, comm_s);
    return ms_max(ms_max(sum.busy_s, slowed_s), blocks_s);
}

/* Durations if parameters are gathered once, at the start of the step: all ranks of a
 * pipeline gather at the same time, while most of them wait for their first input. */
static void gather_per_step(const ms_stack *stack, const ms_stage *stage,
                            ms_stage_times *t)
{
    const ms_block_cost *sum = &stage->sum;
    if (!ms_overlaps_sync(stack, MS_ZERO_1)) {
        t->release_s = sum->gather_s;
        return;
    }
    ms_work whole = {sum->forward_s, sum->forward_host_s, sum->contended_forward_s};
    double slowed_s = slowed_pass_s(stack->interference_frac.value, whole, sum->gather_s,
                                    stage->by_unit.slowed_forward_s);
    t->first_forward_s = stage->pipelined ? t->first_forward_s : slowed_s;
    t->release_s = ms_max(stage->by_unit.gathering_s, stage->by_unit.first_gather_s);
}

/* Lets the first forward wait for frozen parameters, too, as far as its compute is shorter
 * than all gathers. */
static void gather_frozen_per_step(const ms_stack *stack, const ms_stage *stage,
                                   ms_stage_times *t)
{
    const ms_block_cost *sum = &stage->sum;
    if (sum->frozen_gather_s <= 0.0)
        return;
    double hidden_s = ms_overlaps_sync(stack, MS_ZERO_1) ? sum->forward_s : 0.0;
    t->release_s = ms_max(t->release_s, sum->gather_s + sum->frozen_gather_s - hidden_s);
}

/* Durations if gradients are reduced once per step, beside and after the last
 * backward. */
static void reduce_per_step(const ms_stack *stack, const ms_stage *stage,
                            ms_sharding sharding, double reduce_s, ms_stage_times *t)
{
    const ms_block_cost *sum = &stage->sum;
    ms_step_reduction kind = sharding == MS_ZERO_0 ? MS_REDUCES_WHOLE : MS_REDUCES_SHARDS;
    t->reduce_s = t->reduce_tail_s = t->weight_tail_s = reduce_s;
    if (ms_stage_reduces_when(stack, stage, sharding) != MS_REDUCE_BY_UNIT)
        return;
    double interference = stack->interference_frac.value;
    const ms_unit_times *by_unit = &stage->by_unit;
    t->last_backward_s = slowed_pass_s(
        interference,
        (ms_work){sum->backward_s, sum->backward_host_s, sum->contended_backward_s},
        reduce_s, by_unit->slowed_backward_s[kind]);
    t->last_weight_s = slowed_pass_s(
        interference,
        (ms_work){sum->weight_s, sum->weight_host_s, sum->contended_weight_s}, reduce_s,
        by_unit->slowed_weight_s[kind]);
    t->reduce_tail_s = ms_max(by_unit->late_s[kind], by_unit->last_unit_s[kind]);
    t->weight_tail_s = ms_max(by_unit->weight_late_s[kind], by_unit->last_unit_s[kind]);
}

/* Durations if gradients are reduced in every micro-batch, at the end of its backward. */
static void reduce_per_microbatch(const ms_stack *stack, const ms_stage *stage,
                                  double reduce_s, ms_stage_times *t)
{
    bool overlaps = ms_overlaps_sync(stack, MS_ZERO_2);
    t->backward_s =
        overlaps ? stage->by_unit.reduced_backward_s : t->backward_s + reduce_s;
    t->weight_s = overlaps ? stage->by_unit.weight_s : t->weight_s + reduce_s;
    if (ms_stage_reduces_when(stack, stage, MS_ZERO_2) == MS_REDUCE_BY_UNIT) {
        reduce_per_step(stack, stage, MS_ZERO_2, reduce_s + stage->sum.replicate_s, t);
        return;
    }
    t->last_backward_s = t->backward_s;
    t->last_weight_s = t->weight_s;
    t->reduce_s = t->reduce_tail_s = t->weight_tail_s = stage->sum.replicate_s;
}

/* Durations with ZeRO-3: each block gathers its parameters first, reduces gradients
 * last. */
static void gather_and_reduce_per_block(const ms_stage *stage, bool overlaps,
                                        double reduce_s, ms_stage_times *t)
{
    const ms_unit_times *by_unit = &stage->by_unit;
    const ms_block_cost *sum = &stage->sum;
    double gather_s = sum->gather_s + sum->frozen_gather_s + stage->tied_gather_s;
    double regather_s = gather_s - sum->regather_saved_s - stage->tied_regather_saved_s;
    t->forward_s = overlaps ? by_unit->forward_s : t->forward_s + gather_s;
    t->first_forward_s = t->forward_s;
    t->backward_s =
        overlaps ? by_unit->backward_s : t->backward_s + regather_s + reduce_s;
    t->last_backward_s = overlaps ? by_unit->last_backward_s : t->backward_s;
    t->input_s = overlaps ? by_unit->input_s : t->input_s + regather_s;
    t->weight_s = overlaps ? by_unit->weight_s : t->weight_s + reduce_s;
    t->last_weight_s = overlaps ? by_unit->last_weight_s : t->weight_s;
    t->reduce_s = t->reduce_tail_s = t->weight_tail_s = stage->sum.replicate_s;
    if (!overlaps)
        return;
    t->regather_s = by_unit->regather_s;
    t->late_gather_s = by_unit->late_gather_s;
    t->reduce_s += reduce_s;
    t->reduce_tail_s = by_unit->tail_s;
    t->weight_tail_s = by_unit->weight_tail_s;
    if (regather_s > 0.0) {
        t->pending_s = t->reduce_tail_s;
        t->weight_pending_s = t->weight_tail_s;
        t->reduced_s = reduce_s;
    }
}

ms_stage_times ms_stage_durations(const ms_workload *workload, const ms_stage *stage,
                                  ms_sharding sharding, double send_s)
{
    const ms_block_cost *sum = &stage->sum;
    const ms_stack *stack = workload->stack;
    bool overlaps = ms_overlaps_sync(stack, sharding);
    double each_reduce_s = sum->reduce_s + stage->tied_reduce_s;
    ms_stage_times t = {.forward_s = sum->forward_s,
                        .first_forward_s = sum->forward_s,
                        .backward_s = sum->backward_s,
                        .last_backward_s = sum->backward_s,
                        .input_s = sum->input_s,
                        .weight_s = sum->weight_s,
                        .last_weight_s = sum->weight_s,
                        .send_forward_s = send_s,
                        .send_backward_s = send_s,
                        .reduces_last = ms_stage_reduces_when(stack, stage, sharding) ==
                                        MS_REDUCE_AFTER_RANK};
    switch (sharding) {
    case MS_ZERO_0:
        reduce_per_step(stack, stage, sharding, sum->all_reduce_s, &t);
        break;
    case MS_ZERO_1:
    case MS_ZERO_3_NO_RESHARD:
        gather_per_step(stack, stage, &t);
        if (sharding == MS_ZERO_3_NO_RESHARD)
            gather_frozen_per_step(stack, stage, &t);
        reduce_per_step(stack, stage, sharding, sum->reduce_s + sum->replicate_s, &t);
        break;
    case MS_ZERO_2:
        gather_per_step(stack, stage, &t);
        reduce_per_microbatch(stack, stage, each_reduce_s, &t);
        break;
    case MS_ZERO_3:
    case MS_NUM_SHARDINGS:
        gather_and_reduce_per_block(stage, overlaps, each_reduce_s, &t);
        break;
    }
    t.after_rank_s = sum->tp_sync_s;
    return t;
}
