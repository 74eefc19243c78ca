#include "exec/runner/block_run.h"

#include "costmodel/program/ring.h"
#include "exec/lower/lower.h"
#include "exec/lower/lower_async.h"

#include <assert.h>
#include <string.h>

/* ---- shapes and cells ---- */

/* Bytes of one element of a tensor: on backends with values those of the run's number
 * type, on simulating backends those that the cost model counts. */
static double element_bytes(const ms_rank *rank, const ms_program *program, int tensor)
{
    return rank->backend->has_values
               ? (double)ms_scalar_bytes(ms_rank_scalar(rank, program, tensor))
               : program->tensors[tensor].element_bytes;
}

const ms_local *ms_block_shapes(const ms_rank *rank, const ms_program *program)
{
    ms_local *shapes = MS_NEW_ARRAY(rank->cx->arena, program->num_tensors, ms_local);
    for (int t = 0; t < program->num_tensors; t++) {
        shapes[t] = ms_world_local(rank->world, program, t, rank->place);
        shapes[t].scalar = (unsigned char)ms_rank_scalar(rank, program, t);
        shapes[t].bytes = (double)shapes[t].count * element_bytes(rank, program, t);
        if (program->tensors[t].received)
            shapes[t].bytes *= 1.0 + program->key.expert_excess_frac;
    }
    return shapes;
}

ms_block_cells ms_block_cells_make(ms_arena *arena, const ms_rank_block *block)
{
    int num = block->plan->program->num_tensors;
    ms_block_cells made = {.cells = MS_NEW_ARRAY(arena, num, ms_local),
                           .alive = MS_NEW_ARRAY(arena, num, bool),
                           .on_host = MS_NEW_ARRAY(arena, num, ms_host_part)};
    memcpy(made.cells, block->shapes, (size_t)num * sizeof *made.cells);
    return made;
}

/* Whether a tensor is a weight's gradient that the input half of a split backward
 * makes. */
static bool is_early(const ms_program *program, int tensor)
{
    const ms_tensor *t = &program->tensors[tensor];
    return t->role == MS_ROLE_WEIGHT_GRADIENT && t->producer >= 0 &&
           program->nodes[t->producer].pass == MS_PASS_BACKWARD_INPUT;
}

ms_status ms_block_make_early(ms_rank *rank, ms_rank_block *block)
{
    const ms_program *program = block->plan->program;
    for (int t = 0; t < program->num_tensors; t++)
        if (is_early(program, t))
            block->num_early += block->shapes[t].count;
    ms_scalar scalar = rank->precision.comm;
    double bytes = (double)block->num_early * (double)ms_scalar_bytes(scalar);
    MS_TRY(ms_rank_workspace(rank, bytes, &block->early));
    if (block->early != NULL)
        rank->backend->arrays->fill(rank->device, scalar, block->early, 0.0,
                                    block->num_early);
    return MS_OK;
}

/* Whether a weight's gradient is bound to `early` memory in this pass. */
static bool is_bound_early(const ms_block_run *run, int tensor)
{
    const char *at = run->tensors->cells[tensor].data, *early = run->block->early;
    size_t bytes =
        (size_t)run->block->num_early * ms_scalar_bytes(run->rank->precision.comm);
    return early != NULL && at >= early && at < early + bytes;
}

/* Weight gradients: a split backward's first half writes some to `early`, its second half
 * adds these to the gradient buffers. */
static void bind_early(const ms_block_run *run)
{
    const ms_program *program = run->block->plan->program;
    const ms_rank *rank = run->rank;
    const ms_array_ops *arrays = rank->backend->arrays;
    ms_scalar scalar = rank->precision.comm;
    char *at = run->block->early;
    for (int t = 0; at != NULL && t < program->num_tensors; t++) {
        ms_local *cell = &run->tensors->cells[t];
        if (!is_early(program, t))
            continue;
        /* gradients in memory of their own may have another type, and are never early */
        bool fits = (ms_scalar)cell->scalar == scalar;
        if (run->pass == MS_BLOCK_PASS_BACKWARD_INPUT && cell->data == NULL)
            cell->data = at;
        if (run->pass == MS_BLOCK_PASS_BACKWARD_WEIGHT && cell->data != NULL && fits) {
            if (ms_unit_is_first(run->block->unit, t))
                arrays->copy(rank->device, cell->data, at,
                             (size_t)cell->count * ms_scalar_bytes(scalar));
            else
                arrays->add(rank->device, scalar, cell->data, at, cell->count);
            arrays->fill(rank->device, scalar, at, 0.0, cell->count);
        }
        at += (size_t)cell->count * ms_scalar_bytes(scalar);
    }
}

void ms_block_bind(const ms_block_run *run)
{
    ms_unit_bind(run->block->unit, run->tensors->cells);
    if (run->pass == MS_BLOCK_PASS_BACKWARD_INPUT ||
        run->pass == MS_BLOCK_PASS_BACKWARD_WEIGHT)
        bind_early(run);
}

/* Number of maxima of operand `which` of a product: one per expert. */
static int num_maxima(const ms_rank_block *block, const ms_node *node)
{
    const ms_program *program = block->plan->program;
    if (node->op != MS_OP_GROUPED)
        return 1;
    const int tensors[] = {node->in[0], node->in[1], node->out[0]};
    int i = 0; /* One of the three has experts. */
    while (i < 2 && program->tensors[tensors[i]].dims[0] != MS_DIM_EXPERTS)
        i++;
    return (int)block->shapes[tensors[i]].shape[0];
}

void ms_block_make_history(const ms_rank *rank, ms_rank_block *block, long num_steps)
{
    const ms_program *program = block->plan->program;
    if (rank->recipe != MS_RECIPE_DELAYED || !rank->backend->has_values)
        return;
    ms_arena *arena = rank->cx->arena;
    int *first_slot = MS_NEW_ARRAY(arena, program->num_tensors, int), num_slots = 0;
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        for (int i = 0; i < 2 && ms_is_layer_product(program, node); i++) {
            first_slot[node->in[i]] = num_slots;
            num_slots += num_maxima(block, node);
        }
    }
    block->history = ms_scale_history_make(arena, num_slots, first_slot, num_steps);
}

/* ---- memory ---- */

static ms_status allocate_tensor(const ms_block_run *run, int tensor)
{
    ms_local *cell = &run->tensors->cells[tensor];
    const ms_program *program = run->block->plan->program;
    assert(!run->tensors->alive[tensor]);
    run->tensors->alive[tensor] = true;
    return ms_rank_allocate(run->rank, ms_block_category(program, tensor), cell->bytes,
                            &cell->data);
}

static void free_tensor(const ms_block_run *run, int tensor)
{
    ms_local *cell = &run->tensors->cells[tensor];
    ms_rank_release(run->rank, ms_block_category(run->block->plan->program, tensor),
                    cell->bytes, cell->data);
    run->tensors->alive[tensor] = false;
    cell->data = NULL;
}

void ms_block_give(const ms_block_run *run, int tensor, ms_handed given)
{
    assert(given.there && given.bytes == run->tensors->cells[tensor].bytes);
    run->tensors->cells[tensor].data = given.data;
    run->tensors->alive[tensor] = true;
}

ms_status ms_block_take(const ms_block_run *run, int tensor, ms_handed *out)
{
    ms_local *cell = &run->tensors->cells[tensor];
    *out = (ms_handed){true, cell->data, cell->bytes};
    assert(run->tensors->alive[tensor]);
    if (!run->block->plan->program->tensors[tensor].saved) {
        run->tensors->alive[tensor] = false;
        cell->data = NULL;
        return MS_OK;
    }
    MS_TRY(ms_rank_allocate(run->rank, MS_MEMORY_ACTIVATIONS, cell->bytes, &out->data));
    if (out->data != NULL)
        run->rank->backend->arrays->copy(run->rank->device, out->data, cell->data,
                                         (size_t)cell->bytes);
    return MS_OK;
}

/* Whether a tensor of copies at their tokens' rank stays at their experts' instead, since
 * an all-gather brought the tokens there: experts' results and their gradients. */
static bool stays_at_experts(const ms_block_run *run, const ms_tensor *t)
{
    const ms_program *program = run->block->plan->program;
    const ms_node *maker = &program->nodes[t->producer < 0 ? 0 : t->producer];
    return t->producer >= 0 && ms_lower_gathers(run->rank, program) &&
           (maker->op == MS_OP_UNPERMUTE_GRAD ||
            (maker->op == MS_OP_EXCHANGE && ms_node_combines(maker)));
}

/* Sizes a tensor of experts' tokens to the number of tokens routed to the rank. */
static void size_rows(const ms_block_run *run, int tensor)
{
    const ms_tensor *t = &run->block->plan->program->tensors[tensor];
    ms_local *cell = &run->tensors->cells[tensor];
    const char *rows = strchr(t->dims, MS_DIM_ROWS);
    const ms_routing *routing = run->tensors->routing[t->module];
    if (rows == NULL || routing == NULL || !run->rank->backend->has_values ||
        (t->mesh != MS_SPARSE_MESH && !stays_at_experts(run, t)))
        return;
    int dim = (int)(rows - t->dims);
    cell->shape[dim] =
        t->mesh == MS_SPARSE_MESH ? ms_routing_rows(routing, t) : routing->num_rows;
    cell->count = 1;
    for (int i = 0; i < cell->num_dims; i++)
        cell->count *= cell->shape[i];
    cell->bytes =
        (double)cell->count * element_bytes(run->rank, run->block->plan->program, tensor);
}

/* ---- nodes ---- */

static bool is_in_place(const ms_node *node)
{
    return node->op == MS_OP_LOSS_GRAD;
}

/* Gives the memory of tensor `from` (logits) to `to` (gradient), written in place. */
static void pass_memory(const ms_block_run *run, int from, int to)
{
    ms_block_cells *t = run->tensors;
    t->cells[to].data = t->cells[from].data;
    t->cells[from].data = NULL;
    t->alive[to] = true;
    t->alive[from] = false;
}

/* The layer of the model of a node; modules of multi-token prediction follow the last. */
static long layer_of(const ms_block_run *run, const ms_node *node)
{
    const ms_program *program = run->block->plan->program;
    int module = program->tensors[node->in[0]].module;
    return module > 0 ? program->model->num_layers + module - 1
                      : ms_unit_layer(run->block->unit);
}

static ms_op_call call_of(const ms_block_run *run, const ms_block_entry *entry)
{
    const ms_program *program = run->block->plan->program;
    const ms_node *node = &program->nodes[entry->node];
    ms_op_call call = {.program = program,
                       .node = node,
                       .batch = run->batch,
                       .routing =
                           run->tensors->routing[program->tensors[node->in[0]].module],
                       .layer = layer_of(run, node),
                       .balanced_routing = run->rank->balanced_routing,
                       .capacity = run->rank->capacity,
                       .workspace = run->workspace,
                       .recipe = run->rank->recipe,
                       .history = run->block->history,
                       .predicted = entry->op};
    for (int i = 0; i < node->num_in; i++)
        call.in[i] = &run->tensors->cells[node->in[i]];
    for (int i = 0; i < node->num_out; i++)
        call.out[i] = &run->tensors->cells[node->out[i]];
    return call;
}

/* Whether an operation's kernel writes each element of a gradient of weights once. A
 * grouped GEMM adds the products of several sources, and none for experts without rows. */
static bool can_write(const ms_node *node)
{
    return node->op == MS_OP_EINSUM || node->op == MS_OP_SUM_TO ||
           node->op == MS_OP_NORM_GRAD || node->op == MS_OP_EMBED_GRAD ||
           node->op == MS_OP_SINK_GRAD || node->op == MS_OP_EXPERT_BIAS_GRAD;
}

/* Lets a node write gradients of weights whose memory holds nothing yet; where it can only
 * add, zeroes them. */
static void begin_gradients(const ms_block_run *run, ms_op_call *call)
{
    const ms_program *program = call->program;
    const ms_node *node = call->node;
    bool is_first[MS_MAX_OPERANDS] = {false}, adds = !can_write(node), writes = false;
    for (int i = 0; i < node->num_out; i++) {
        if (program->tensors[node->out[i]].role != MS_ROLE_WEIGHT_GRADIENT ||
            call->out[i]->data == NULL)
            continue;
        is_first[i] = !is_bound_early(run, node->out[i]) &&
                      ms_unit_is_first(run->block->unit, node->out[i]);
        writes = writes || is_first[i];
        adds = adds || !is_first[i];
    }
    call->writes = writes && !adds;
    for (int i = 0; i < node->num_out && adds; i++) {
        const ms_local *out = call->out[i];
        if (is_first[i])
            run->rank->backend->arrays->fill(run->rank->device, (ms_scalar)out->scalar,
                                             out->data, 0.0, out->count);
    }
}

static ms_status allocate_results(const ms_block_run *run, const ms_node *node)
{
    const ms_program *program = run->block->plan->program;
    for (int i = 0; i < node->num_out; i++) {
        size_rows(run, node->out[i]);
        if (ms_block_allocates(program, node->out[i]) && !is_in_place(node))
            MS_TRY(allocate_tensor(run, node->out[i]));
    }
    return MS_OK;
}

static void free_after(const ms_block_run *run, int index)
{
    const ms_block_plan *plan = run->block->plan;
    const ms_node *node = &plan->program->nodes[index];
    for (int i = 0; i < node->num_in; i++) {
        int t = node->in[i];
        if (run->tensors->alive[t] && plan->last_use[run->pass][t] == index &&
            ms_block_plan_frees(plan, run->pass, t))
            free_tensor(run, t);
    }
    for (int i = 0; run->pass == MS_BLOCK_PASS_FORWARD && i < node->num_out; i++) {
        int t = node->out[i];
        if (run->tensors->alive[t] && plan->last_use[run->pass][t] < 0 &&
            ms_block_plan_frees(plan, run->pass, t))
            free_tensor(run, t);
    }
}

ms_status ms_block_skip(const ms_block_run *run, const ms_block_entry *entry)
{
    const ms_node *node = &run->block->plan->program->nodes[entry->node];
    MS_TRY(allocate_results(run, node));
    if (is_in_place(node))
        pass_memory(run, node->in[0], node->out[0]);
    double buffer_bytes = ms_ring_buffer_bytes(run->block->plan->program, node) +
                          ms_node_decoded_bytes(run->block->plan->program, node);
    ms_ledger_add(&run->rank->ledger, MS_MEMORY_ACTIVATIONS, buffer_bytes);
    ms_ledger_add(&run->rank->ledger, MS_MEMORY_ACTIVATIONS, -buffer_bytes);
    free_after(run, entry->node);
    return MS_OK;
}

/* Gives a node's weights in NF4 copies to read, or takes these away after it. */
static ms_status decode_weights(const ms_block_run *run, const ms_node *node)
{
    const ms_program *program = run->block->plan->program;
    for (int i = 0; i < node->num_in; i++) {
        ms_local *cell = &run->tensors->cells[node->in[i]];
        if (!ms_weight_is_coded(program, node->in[i]))
            continue;
        MS_TRY(
            ms_rank_allocate(run->rank, MS_MEMORY_ACTIVATIONS, cell->bytes, &cell->data));
        MS_TRY(ms_unit_decode(run->rank, run->block->unit, node->in[i], cell->data));
    }
    return MS_OK;
}

static void drop_decoded(const ms_block_run *run, const ms_node *node)
{
    const ms_program *program = run->block->plan->program;
    for (int i = 0; i < node->num_in; i++) {
        ms_local *cell = &run->tensors->cells[node->in[i]];
        if (!ms_weight_is_coded(program, node->in[i]))
            continue;
        ms_rank_release(run->rank, MS_MEMORY_ACTIVATIONS, cell->bytes, cell->data);
        cell->data = NULL;
    }
}

/* Whether nodes index, index + 1 (a GEMM and its collective) run as overlapped chunks. */
static bool goes_with_next(const ms_block_run *run, int index)
{
    const ms_program *program = run->block->plan->program;
    if (!ms_async_pair(program, index, run->rank->planned->plan))
        return false;
    const ms_block_entry next = {
        index + 1, NULL, program->nodes[index + 1].pass == MS_PASS_BACKWARD_WEIGHT};
    return ms_block_pass_runs(run->pass, &next);
}

/* Executes such nodes, whose results have tokens: none is a gradient of a weight. */
static ms_status execute_pair(const ms_block_run *run, const ms_block_entry *entry)
{
    const ms_node *nodes = run->block->plan->program->nodes;
    const ms_block_entry next = {entry->node + 1, NULL, false};
    MS_TRY(allocate_results(run, &nodes[entry->node]));
    MS_TRY(allocate_results(run, &nodes[next.node]));
    MS_TRY(decode_weights(run, &nodes[entry->node]));
    MS_TRY(decode_weights(run, &nodes[next.node]));
    const ms_op_call first = call_of(run, entry), second = call_of(run, &next);
    MS_TRY(ms_lower_async(run->rank, &first, &second));
    drop_decoded(run, &nodes[entry->node]);
    drop_decoded(run, &nodes[next.node]);
    free_after(run, entry->node);
    free_after(run, next.node);
    run->tensors->done_ahead = next.node;
    return MS_OK;
}

void ms_block_add_loss(const ms_block_run *run, int tensor, int slot)
{
    const ms_rank *rank = run->rank;
    const ms_local *loss = &run->tensors->cells[tensor];
    bool counts = rank->place->tp == 0 ||
                  run->block->plan->program->tensors[tensor].at[2].kind == MS_SHARD;
    if (loss->data != NULL && counts)
        rank->backend->arrays->add_sum(rank->device, (ms_scalar)loss->scalar, slot,
                                       loss->data, loss->count);
}

static ms_status execute_alone(const ms_block_run *run, const ms_block_entry *entry)
{
    const ms_node *node = &run->block->plan->program->nodes[entry->node];
    ms_op_call call = call_of(run, entry);
    if (node->op == MS_OP_EXCHANGE && call.routing == NULL)
        MS_TRY(ms_lower_route(
            run->rank, run->arena, &call,
            &run->tensors->routing[call.program->tensors[node->in[0]].module]));
    MS_TRY(allocate_results(run, node));
    if (is_in_place(node))
        run->tensors->cells[node->out[0]].data = run->tensors->cells[node->in[0]].data;
    MS_TRY(decode_weights(run, node));
    call = call_of(run, entry);
    begin_gradients(run, &call);
    bool done;
    MS_TRY(ms_lower_gathered(run->rank, &call, &done));
    if (!done && ms_is_lowered(call.program, node))
        MS_TRY(ms_lower(run->rank, &call));
    else if (!done)
        MS_TRY(run->rank->backend->kernel(run->rank->cx, run->rank->device, &call));
    drop_decoded(run, node);
    if (node->op == MS_OP_LOSS && node->ahead > 0) /* freed below: backward reads none */
        ms_block_add_loss(run, node->out[0], MS_MODULE_LOSS_SLOT + node->ahead - 1);
    if (is_in_place(node))
        pass_memory(run, node->in[0], node->out[0]);
    free_after(run, entry->node);
    return MS_OK;
}

ms_status ms_block_execute(const ms_block_run *run, const ms_block_entry *entry)
{
    if (entry->node != 0 && entry->node == run->tensors->done_ahead)
        return MS_OK;
    run->tensors->done_ahead = 0;
    return goes_with_next(run, entry->node) ? execute_pair(run, entry)
                                            : execute_alone(run, entry);
}

void ms_block_end_pass(const ms_block_run *run)
{
    const ms_block_plan *plan = run->block->plan;
    for (int t = 0; t < plan->program->num_tensors; t++)
        if (run->tensors->alive[t] && ms_block_plan_frees(plan, run->pass, t))
            free_tensor(run, t);
}
