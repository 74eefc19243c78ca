#include "tests/support/run_ranks.h"

#include "exec/lower/lower_async.h"
#include "tests/support/interpreter_priv.h"

#include <assert.h>
#include <math.h>
#include <string.h>

ms_plan ms_ranks_plan(const ms_program *program)
{
    const long *size = program->mesh_size[MS_DENSE_MESH];
    ms_plan plan = ms_plan_default(size[0] * size[1] * size[2]);
    plan.size[MS_DP_SHARD] = size[0];
    plan.size[MS_CP] = size[1];
    plan.size[MS_TP] = size[2];
    plan.ep = program->mesh_size[MS_SPARSE_MESH][1];
    plan.etp = program->mesh_size[MS_SPARSE_MESH][2];
    return plan;
}

/* ---- one rank ---- */

typedef struct shared {
    const ms_ranks_job *job;
    const ms_world *world;
    ms_arena **arenas; /* results of each rank */
    ms_cell *cells;
} shared;

typedef struct walk {
    const ms_ranks_job *job;
    ms_rank rank;
    int at; /* the rank's number in the interpreter */
    ms_local *locals;
    ms_routing *routing;
    ms_batch batch;
} walk;

static int number_of(const ms_world *world, const ms_place *place)
{
    return (int)((place->dp * world->cp + place->cp) * world->tp + place->tp);
}

/* Tokens of the rank's batch as the interpreter draws them; stream 0: inputs, 1:
 * targets. */
static const int *tokens_of(const walk *w, int stream)
{
    const ms_batch *b = &w->batch;
    int *tokens =
        MS_NEW_ARRAY(w->rank.scratch, b->num_sequences * b->sequence_length, int);
    for (long i = 0; i < b->num_sequences * b->sequence_length; i++)
        tokens[i] = (int)ms_interp_token(w->job->like, stream,
                                         b->first_sequence + i / b->sequence_length,
                                         i % b->sequence_length);
    return tokens;
}

static void make_batch(walk *w)
{
    const ms_interp *like = w->job->like;
    long sequences = ms_interp_size(like, MS_DIM_BATCH),
         length = ms_interp_size(like, MS_DIM_SEQUENCE);
    long each = sequences / w->rank.world->dp;
    w->batch = (ms_batch){.first_sequence = w->rank.place->dp * each,
                          .num_sequences = each,
                          .sequence_length = length,
                          .positions = like->options.positions,
                          .num_tokens = (double)(sequences * length)};
    if (ms_interp_size(like, MS_DIM_VOCAB) == 0)
        return;
    w->batch.tokens = tokens_of(w, 0);
    w->batch.targets = tokens_of(w, 1);
}

static double bytes_of(const ms_local *local)
{
    return (double)local->count * (double)ms_scalar_bytes((ms_scalar)local->scalar);
}

static void fill(const walk *w, const ms_local *local, double value)
{
    w->rank.backend->arrays->fill(w->rank.device, (ms_scalar)local->scalar, local->data,
                                  value, local->count);
}

static ms_status allocate(walk *w, int tensor)
{
    ms_local *local = &w->locals[tensor];
    MS_TRY(
        ms_rank_allocate(&w->rank, MS_MEMORY_ACTIVATIONS, bytes_of(local), &local->data));
    if (local->scalar != MS_SCALAR_BYTE)
        fill(w, local, NAN);
    return MS_OK;
}

/* Allocates the tensors that no node produces, with the interpreter's values, and zeroed
 * weight gradients, to which nodes add. */
static ms_status allocate_given(walk *w)
{
    const ms_program *program = w->job->program;
    for (int t = 0; t < program->num_tensors; t++) {
        w->locals[t] = ms_world_local(w->rank.world, program, t, w->rank.place);
        w->locals[t].scalar = (unsigned char)ms_rank_scalar(&w->rank, program, t);
        const ms_cell *cell = ms_interp_cell(w->job->like, t, w->at);
        if (program->tensors[t].producer < 0) {
            MS_TRY(allocate(w, t));
            assert(cell->count == w->locals[t].count);
            MS_TRY(w->rank.backend->arrays->write(
                w->rank.cx, w->rank.device, (ms_scalar)w->locals[t].scalar,
                w->locals[t].data, cell->values, cell->count));
        } else if (program->tensors[t].role == MS_ROLE_WEIGHT_GRADIENT) {
            MS_TRY(allocate(w, t));
            fill(w, &w->locals[t], 0.0);
        }
    }
    return MS_OK;
}

static void set_rows(const walk *w, const ms_op_call *call, int tensor)
{
    const ms_tensor *t = &w->job->program->tensors[tensor];
    const char *where = strchr(t->dims, MS_DIM_ROWS);
    ms_local *local = &w->locals[tensor];
    if (where == NULL || t->mesh != MS_SPARSE_MESH)
        return;
    assert(call->routing != NULL);
    long *rows = &local->shape[where - t->dims];
    *rows = ms_routing_rows(call->routing, t);
    local->count = 1;
    for (int i = 0; i < local->num_dims; i++)
        local->count *= local->shape[i];
}

static ms_status allocate_results(walk *w, const ms_op_call *call)
{
    for (int i = 0; i < call->node->num_out; i++) {
        int tensor = call->node->out[i];
        set_rows(w, call, tensor);
        if (w->locals[tensor].data == NULL && w->locals[tensor].count > 0)
            MS_TRY(allocate(w, tensor));
    }
    return MS_OK;
}

static ms_status call_of(walk *w, const ms_node *node, ms_op_call *call)
{
    ms_rank *rank = &w->rank;
    *call = (ms_op_call){.program = w->job->program,
                         .node = node,
                         .batch = &w->batch,
                         .balanced_routing = w->job->like->options.balanced_routing};
    for (int i = 0; i < node->num_in; i++)
        call->in[i] = &w->locals[node->in[i]];
    for (int i = 0; i < node->num_out; i++)
        call->out[i] = &w->locals[node->out[i]];
    if (node->op == MS_OP_EXCHANGE && w->routing == NULL)
        MS_TRY(ms_lower_route(rank, rank->scratch, call, &w->routing));
    call->routing = w->routing;
    return allocate_results(w, call);
}

static ms_status execute(walk *w, const ms_node *node)
{
    const ms_program *program = w->job->program;
    ms_rank *rank = &w->rank;
    ms_op_call call;
    MS_TRY(call_of(w, node, &call));
    double bytes = (double)rank->backend->workspace_bytes(program, node, w->job->type);
    MS_TRY(ms_rank_workspace(rank, bytes, &call.workspace));
    ms_status status = ms_is_lowered(program, node)
                           ? ms_lower(rank, &call)
                           : rank->backend->kernel(rank->cx, rank->device, &call);
    ms_rank_release_workspace(rank, bytes, call.workspace);
    return status;
}

/* Executes an asynchronous tp pair: two nodes at once. Their einsums need no
 * workspace. */
static ms_status execute_pair(walk *w, const ms_node *node)
{
    ms_op_call first, second;
    MS_TRY(call_of(w, node, &first));
    MS_TRY(call_of(w, node + 1, &second));
    return ms_lower_async(&w->rank, &first, &second);
}

static ms_status leave(walk *w, const shared *all)
{
    const ms_program *program = w->job->program;
    for (int t = 0; t < program->num_tensors; t++) {
        ms_local *local = &w->locals[t];
        ms_cell *cell = &all->cells[(long)t * all->world->num_ranks + w->at];
        *cell = (ms_cell){.num_dims = local->num_dims, .count = local->count};
        memcpy(cell->shape, local->shape, sizeof cell->shape);
        if (local->data == NULL)
            continue;
        cell->values = MS_NEW_ARRAY(all->arenas[w->at], local->count, double);
        if (local->scalar != MS_SCALAR_BYTE)
            MS_TRY(w->rank.backend->arrays->read(w->rank.cx, w->rank.device,
                                                 (ms_scalar)local->scalar, cell->values,
                                                 local->data, local->count));
        ms_rank_release(&w->rank, MS_MEMORY_ACTIVATIONS, bytes_of(local), local->data);
    }
    return MS_OK;
}

static ms_status walk_nodes(walk *w)
{
    const ms_program *program = w->job->program;
    MS_TRY(allocate_given(w));
    for (int n = 0; n < program->num_nodes; n++) {
        bool pair = ms_async_pair(program, n, w->job->plan);
        MS_TRY(pair ? execute_pair(w, &program->nodes[n])
                    : execute(w, &program->nodes[n]));
        n += pair;
    }
    return MS_OK;
}

static ms_status rank_main(ms_ctx *cx, ms_device_rank *device, long rank, void *state)
{
    const shared *all = state;
    const ms_place *place = &all->world->places[rank];
    walk w = {.job = all->job,
              .rank = {.cx = cx,
                       .world = all->world,
                       .place = place,
                       .backend = all->job->backend,
                       .device = device,
                       .precision = ms_precision_of(all->job->type),
                       .scratch = cx->arena},
              .at = number_of(all->world, place)};
    w.locals = MS_NEW_ARRAY(cx->arena, all->job->program->num_tensors, ms_local);
    make_batch(&w);
    ms_status status = walk_nodes(&w);
    if (status == MS_OK)
        status = leave(&w, all);
    const ms_ledger *ledger = &w.rank.ledger;
    if (status == MS_OK && (ledger->now_total_bytes != 0 || ledger->workspace_bytes != 0))
        status = ms_fail(cx, MS_EIO, MS_NOWHERE,
                         "%g bytes and %g of workspace are counted at the end",
                         ledger->now_total_bytes, ledger->workspace_bytes);
    return status;
}

/* ---- all ranks ---- */

static void take_over(ms_ctx *cx, const shared *all)
{
    long num = all->job->program->num_tensors * all->world->num_ranks;
    for (long i = 0; i < num; i++) {
        ms_cell *cell = &all->cells[i];
        double *values = cell->values;
        if (values == NULL)
            continue;
        cell->values = MS_NEW_ARRAY(cx->arena, cell->count, double);
        memcpy(cell->values, values, (size_t)cell->count * sizeof *values);
    }
}

ms_status ms_ranks_run(ms_ctx *cx, const ms_ranks_job *job, ms_cell **cells)
{
    ms_world world = ms_world_make(cx->arena, job->plan);
    ms_backend_job opened = {.backend = job->backend, .world = &world, .type = job->type};
    shared all = {
        job, &world, MS_NEW_ARRAY(cx->arena, world.num_ranks, ms_arena *),
        MS_NEW_ARRAY(cx->arena, job->program->num_tensors * world.num_ranks, ms_cell)};
    assert(world.num_ranks == job->like->num_ranks);
    MS_TRY(job->backend->open(cx, &opened));
    for (long rank = 0; rank < world.num_ranks; rank++)
        all.arenas[rank] = ms_arena_open();
    ms_status status = job->backend->run(cx, &opened, rank_main, &all);
    take_over(cx, &all);
    for (long rank = 0; rank < world.num_ranks; rank++)
        ms_arena_close(all.arenas[rank]);
    job->backend->close(&opened);
    *cells = all.cells;
    return status;
}

/* ---- comparison ---- */

static bool is_compared(const ms_program *program, int tensor)
{
    int producer = program->tensors[tensor].producer;
    if (producer < 0)
        return true;
    const ms_node *node = &program->nodes[producer];
    bool scores =
        node->op == MS_OP_ATTENTION && node->num_out > 2 && node->out[2] == tensor;
    return !scores || !ms_is_lowered(program, node);
}

double ms_ranks_difference(ms_arena *arena, const ms_interp *like, const ms_cell *cells,
                           double tolerance, const char **why)
{
    const ms_program *program = like->program;
    double largest = 0;
    *why = "";
    for (long i = 0; i < (long)program->num_tensors * like->num_ranks; i++) {
        const ms_cell *got = &cells[i], *want = &like->cells[i];
        int tensor = (int)(i / like->num_ranks);
        if (!is_compared(program, tensor))
            continue;
        double difference = HUGE_VAL;
        if (got->count == want->count && (got->values != NULL || got->count == 0))
            difference = ms_interp_difference(got->values, want->values, got->count);
        largest = fmax(largest, difference);
        if (difference <= tolerance || (*why)[0] != '\0')
            continue;
        int producer = program->tensors[tensor].producer;
        *why = ms_arena_printf(
            arena, "%s[%s] of rank %ld (%s) differs by %g", program->tensors[tensor].name,
            program->tensors[tensor].dims, i % like->num_ranks,
            producer < 0 ? "given" : ms_op_names[program->nodes[producer].op],
            difference);
    }
    return largest;
}
