/* Executes a forward or backward through the blocks of a stage, op by op, alone or
 * interleaved with another one. */
#include "exec/runner/rank_run.h"

#include "base/number.h"
#include "exec/runner/block_offload.h"
#include "sim/simulate/interference.h"

#include <math.h>

static const unsigned char stream_of_group[] = {[MS_TRAFFIC_TP] = MS_STREAM_TP,
                                                [MS_TRAFFIC_CP] = MS_STREAM_CP,
                                                [MS_TRAFFIC_EP] = MS_STREAM_EP};

/* ---- position of a walk ---- */

static int index_of(const ms_walk_run *w, int block)
{
    return w->pass == MS_BLOCK_PASS_FORWARD ? block : w->stage->num_blocks - 1 - block;
}

ms_rank_block *ms_walk_run_block(const ms_walk_run *w, int block)
{
    return &w->stage->blocks[index_of(w, block)];
}

static ms_block_run block_run_at(const ms_walk_run *w)
{
    return (ms_block_run){.rank = &w->r->rank,
                          .block = ms_walk_run_block(w, w->block),
                          .tensors = &w->flight->blocks[index_of(w, w->block)],
                          .pass = w->pass,
                          .batch = &w->flight->batch,
                          .arena = w->flight->arena,
                          .workspace = w->r->workspace};
}

static const ms_block_entry *entry_at(const ms_walk_run *w)
{
    return &ms_walk_run_block(w, w->block)->plan->entries[w->bill_pass][w->entry];
}

/* ---- dependencies of the next task ---- */

void ms_walk_run_arrives(ms_walk_run *w, ms_event event)
{
    if (event == 0)
        return;
    MS_MAKE_ROOM(w->flight->arena, w->arrived, w->num_arrived, w->max_arrived, 8);
    w->arrived[w->num_arrived++] = event;
}

const ms_event *ms_walk_run_after(ms_walk_run *w, int *num)
{
    *num = 1 + w->num_arrived;
    MS_MAKE_ROOM(w->flight->arena, w->arrived, w->num_arrived, w->max_arrived, 8);
    w->arrived[w->num_arrived] = w->ready;
    return w->arrived;
}

ms_status ms_walk_run_wait_arrivals(ms_walk_run *w)
{
    const ms_rank *rank = &w->r->rank;
    MS_TRY(rank->backend->wait(rank->cx, rank->device, w->ready));
    for (int i = 0; i < w->num_arrived; i++)
        MS_TRY(rank->backend->wait(rank->cx, rank->device, w->arrived[i]));
    w->num_arrived = 0;
    return MS_OK;
}

ms_status ms_walk_run_spend(ms_walk_run *w, double seconds)
{
    const ms_rank *rank = &w->r->rank;
    if (seconds <= 0.0)
        return MS_OK;
    if (rank->backend->has_values) {
        rank->backend->idle(rank->device, seconds);
        return MS_OK;
    }
    MS_TRY(rank->backend->wait(rank->cx, rank->device, w->ready));
    rank->backend->idle(rank->device, seconds);
    w->ready = rank->backend->mark(rank->device);
    return MS_OK;
}

/* ---- entries with values ---- */

static double predicted_s(const ms_block_op *op)
{
    if (op == NULL)
        return 0.0;
    return op->moves ? op->exposed_s + op->interference_s : op->compute_s;
}

static ms_recorded slice_of(const ms_program *program, const ms_block_entry *entry)
{
    const ms_node *node = &program->nodes[entry->node];
    ms_node_comm comm;
    bool moves = (node->op == MS_OP_REDISTRIBUTE || node->op == MS_OP_EXCHANGE) &&
                 ms_node_communicates(program, node, &comm);
    ms_recorded slice = {.stream = MS_STREAM_COMPUTE,
                         .kind = (unsigned char)ms_node_task_kind(node),
                         .name = node->name,
                         .predicted_s = predicted_s(entry->op)};
    if (moves) {
        slice.stream = stream_of_group[ms_world_group(&comm)];
        slice.kind = MS_TASK_COLLECTIVE;
        slice.bytes = comm.size_bytes;
        slice.waits = true;
    }
    return slice;
}

static ms_status execute(ms_walk_run *w, const ms_block_entry *entry)
{
    ms_block_run run = block_run_at(w);
    double start_s = ms_rank_run_clock(w->r);
    if (entry->node >= 0) {
        MS_TRY(ms_block_execute(&run, entry));
        ms_rank_run_record(w->r, slice_of(run.block->plan->program, entry), start_s);
    }
    return entry->op != NULL && entry->op->moves
               ? ms_walk_run_spend(w, entry->op->interference_s)
               : MS_OK;
}

/* ---- entries on a virtual clock ---- */

static ms_status move(ms_walk_run *w, const ms_block_op *op)
{
    const ms_rank *rank = &w->r->rank;
    ms_event done = 0;
    int num;
    /* kind: any, since simulating backends use only the predicted time */
    ms_transfer transfer = {.kind = MS_TRANSFER_ALL_REDUCE,
                            .group = (unsigned char)op->group,
                            .stream = stream_of_group[op->group],
                            .name = op->name,
                            .predicted = op};
    const ms_event *after = ms_walk_run_after(w, &num);
    MS_TRY(rank->backend->start(rank->cx, rank->device, &transfer, after, num, &done));
    if (done != 0) {
        w->ready = done;
        w->num_arrived = 0;
    }
    return ms_walk_run_spend(w, op->interference_s);
}

static ms_status compute(ms_walk_run *w, const ms_block_entry *entry)
{
    const ms_rank *rank = &w->r->rank;
    const ms_block_op *op = entry->op;
    const ms_program *program = ms_walk_run_block(w, w->block)->plan->program;
    ms_op_call call = {.program = program, .predicted = op};
    MS_TRY(ms_walk_run_wait_arrivals(w));
    if (entry->node < 0)
        return ms_walk_run_spend(w, op->compute_s);
    call.node = &program->nodes[entry->node];
    MS_TRY(rank->backend->kernel(rank->cx, rank->device, &call));
    w->ready = rank->backend->mark(rank->device);
    return MS_OK;
}

static ms_status simulate_entry(ms_walk_run *w, const ms_block_entry *entry)
{
    ms_block_run run = block_run_at(w);
    if (entry->op != NULL)
        MS_TRY(entry->op->moves ? move(w, entry->op) : compute(w, entry));
    return entry->node >= 0 ? ms_block_skip(&run, entry) : MS_OK;
}

/* ---- execution of a walk ---- */

static ms_status begin_block(ms_walk_run *w)
{
    MS_TRY(ms_state_before_block(w));
    ms_block_run run = block_run_at(w);
    const ms_backend *backend = run.rank->backend;
    if (backend->begin_block != NULL)
        backend->begin_block(run.rank->device, run.block->plan->ops, w->bill_pass);
    const ms_program *program = run.block->plan->program;
    int input =
        w->pass == MS_BLOCK_PASS_FORWARD ? program->input : program->output_gradient;
    if (w->pass != MS_BLOCK_PASS_FORWARD)
        MS_TRY(ms_block_from_host(&run));
    if (input >= 0 && w->pass != MS_BLOCK_PASS_BACKWARD_WEIGHT)
        ms_block_give(&run, input, w->carried);
    ms_block_bind(&run);
    w->entry = 0;
    return MS_OK;
}

/* Adds a micro-batch's loss to the sum of its slot. */
static ms_status add_loss(ms_walk_run *w, const ms_block_run *run)
{
    const ms_program *program = run->block->plan->program;
    ms_handed loss_tensor;
    ms_block_add_loss(run, program->output, ms_loss_slot(w->flight->microbatch));
    MS_TRY(ms_block_take(run, program->output, &loss_tensor));
    ms_rank_release(&w->r->rank, ms_block_category(program, program->output),
                    loss_tensor.bytes, loss_tensor.data);
    return MS_OK;
}

static ms_status end_block(ms_walk_run *w)
{
    ms_block_run run = block_run_at(w);
    const ms_program *program = run.block->plan->program;
    ms_block_end_pass(&run);
    if (w->pass == MS_BLOCK_PASS_FORWARD && program->key.block == MS_BLOCK_HEAD)
        MS_TRY(add_loss(w, &run));
    else if (w->pass == MS_BLOCK_PASS_FORWARD)
        MS_TRY(ms_block_take(&run, program->output, &w->carried));
    else if (w->inputs && program->input_gradient >= 0)
        MS_TRY(ms_block_take(&run, program->input_gradient, &w->carried));
    if (w->pass == MS_BLOCK_PASS_FORWARD)
        MS_TRY(ms_block_to_host(&run));
    return ms_state_after_block(w);
}

/* Advances to the next entry with a predicted op, executing entries without one on the
 * way; *more: there is such an entry. */
static ms_status find_entry(ms_walk_run *w, bool *more)
{
    bool values = w->r->rank.backend->has_values;
    while (w->block < w->stage->num_blocks) {
        const ms_block_plan *plan = ms_walk_run_block(w, w->block)->plan;
        if (w->entry < 0)
            MS_TRY(begin_block(w));
        for (; w->entry < plan->num_entries[w->bill_pass]; w->entry++) {
            const ms_block_entry *entry = entry_at(w);
            if (!ms_block_pass_runs(w->pass, entry))
                continue;
            *more = true;
            if (entry->op != NULL)
                return MS_OK;
            MS_TRY(values ? execute(w, entry) : simulate_entry(w, entry));
        }
        MS_TRY(end_block(w));
        w->block++;
        w->entry = -1;
    }
    *more = false;
    ms_result_leaves(w);
    return MS_OK;
}

/* Executes the current entry. *free_s (in, out): predicted time when compute is free. */
static ms_status take_entry(ms_walk_run *w, double *free_s)
{
    MS_TRY(ms_rank_run_go_on(w->r));
    const ms_block_entry *entry = entry_at(w);
    const ms_block_op *op = entry->op;
    if (op->moves) {
        w->when_s += op->exposed_s;
    } else {
        *free_s = ms_max(*free_s, w->when_s) + op->compute_s;
        w->when_s = *free_s;
    }
    MS_TRY(w->r->rank.backend->has_values ? execute(w, entry) : simulate_entry(w, entry));
    w->entry++;
    return MS_OK;
}

/* Receives the tensor that a stage without blocks passes on; else does nothing. */
static ms_status begin_walk(ms_walk_run *w)
{
    if (w->stage->num_blocks > 0 || w->pass == MS_BLOCK_PASS_BACKWARD_WEIGHT)
        return MS_OK;
    if (!w->received)
        MS_TRY(ms_receive_for(w, &w->carried));
    MS_TRY(ms_walk_run_wait_arrivals(w));
    w->ready = w->r->rank.backend->mark(w->r->rank.device);
    return MS_OK;
}

ms_status ms_walk_run_alone(ms_walk_run *w)
{
    double free_s = 0.0;
    bool more;
    MS_TRY(begin_walk(w));
    for (;;) {
        MS_TRY(find_entry(w, &more));
        if (!more)
            return ms_state_after_walk(w);
        MS_TRY(take_entry(w, &free_s));
    }
}

/* Interleaves a forward and a backward as sim/simulate/step_graph_node.c does. While one
 * exchanges tokens between experts, the other's kernels run; other collectives stop both.
 * If both have a kernel next, that with the earlier predicted start runs first:
 * predictions, unlike measurements, are equal on all ranks of a group. */
ms_status ms_walk_run_pair(ms_walk_run *forward, ms_walk_run *backward)
{
    double free_s = 0.0;
    bool more[2];
    const ms_planned *planned = forward->r->rank.planned;
    forward->num_pairs = backward->num_pairs = ms_pair_host_waits(
        forward->flight->arena, planned, forward->stage->model_stage,
        backward->stage->model_stage, &forward->pair_host_s, &backward->pair_host_s);
    MS_TRY(begin_walk(forward));
    MS_TRY(begin_walk(backward));
    MS_TRY(find_entry(forward, &more[0]));
    MS_TRY(find_entry(backward, &more[1]));
    while (more[0] || more[1]) {
        bool moves = more[1] && entry_at(backward)->op->moves;
        bool first = more[0] && (entry_at(forward)->op->moves || !more[1] ||
                                 (!moves && forward->when_s < backward->when_s));
        ms_walk_run *w = first ? forward : backward, *other = first ? backward : forward;
        const ms_block_op *op = entry_at(w)->op;
        MS_TRY(take_entry(w, &free_s));
        if (op->moves && op->group != MS_TRAFFIC_EP) {
            ms_walk_run_arrives(other, w->ready);
            free_s = ms_max(free_s, w->when_s);
        }
        MS_TRY(find_entry(w, &more[first ? 0 : 1]));
    }
    MS_TRY(ms_state_after_walk(forward));
    return ms_state_after_walk(backward);
}
