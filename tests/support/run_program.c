/* Executes a layer program on one rank: memory from the arena, and a CPU kernel for every
 * node. */
#include "tests/support/run_program.h"

#include "tests/support/interpreter_priv.h"

#include <math.h>
#include <string.h>

static bool is_mask(const ms_program *program, int tensor)
{
    int producer = program->tensors[tensor].producer;
    const ms_node *node = producer >= 0 ? &program->nodes[producer] : NULL;
    return node != NULL && node->op == MS_OP_ADD && node->num_out > 1 &&
           node->out[1] == tensor;
}

static void make_local(ms_program_run *run, int tensor)
{
    const ms_tensor *t = &run->program->tensors[tensor];
    ms_local *local = &run->locals[tensor];
    *local = (ms_local){.num_dims = (int)strlen(t->dims), .count = 1};
    for (int i = 0; i < local->num_dims; i++) {
        local->shape[i] = (long)run->program->size[t->dims[i] - '0'];
        local->count *= local->shape[i];
    }
    local->scalar = is_mask(run->program, tensor)        ? MS_SCALAR_BYTE
                    : run->kernels->type == MS_REAL_BF16 ? MS_SCALAR_BF16
                    : run->kernels->type == MS_REAL_FP64 ? MS_SCALAR_FP64
                                                         : MS_SCALAR_FP32;
    local->bytes = (double)local->count * t->element_bytes;
    local->data = ms_arena_alloc(run->arena, (size_t)local->count * sizeof(double));
    if (!is_mask(run->program, tensor)) {
        run->kernels->fill(local->data,
                           t->role == MS_ROLE_WEIGHT_GRADIENT ? MS_RUN_GRADIENT_START
                                                              : (double)NAN,
                           local->count);
    }
}

static const int *make_tokens(ms_program_run *run, const ms_interp *interp, int stream)
{
    long count = run->batch.num_sequences * run->batch.sequence_length;
    int *tokens = MS_NEW_ARRAY(run->arena, count, int);
    for (long i = 0; i < count; i++)
        tokens[i] = (int)ms_interp_token(interp, stream, i / run->batch.sequence_length,
                                         i % run->batch.sequence_length);
    return tokens;
}

void ms_program_run_set(ms_program_run *run, int tensor, const double *values)
{
    run->kernels->from_double(run->locals[tensor].data, values,
                              run->locals[tensor].count);
}

ms_program_run *ms_program_run_prepare(ms_interp *interp, const ms_kernels *kernels)
{
    const ms_program *program = interp->program;
    ms_program_run *run = MS_NEW(interp->arena, ms_program_run);
    *run = (ms_program_run){.program = program,
                            .kernels = kernels,
                            .arena = interp->arena,
                            .balanced_routing = interp->options.balanced_routing};
    run->locals = MS_NEW_ARRAY(run->arena, program->num_tensors, ms_local);
    for (int i = 0; i < program->num_tensors; i++) {
        make_local(run, i);
        if (program->tensors[i].producer < 0)
            ms_program_run_set(run, i, ms_interp_cell(interp, i, 0)->values);
    }
    run->batch = (ms_batch){.num_sequences = ms_interp_size(interp, MS_DIM_BATCH),
                            .sequence_length = ms_interp_size(interp, MS_DIM_SEQUENCE),
                            .positions = interp->options.positions};
    run->batch.num_tokens =
        (double)(run->batch.num_sequences * run->batch.sequence_length);
    if (ms_interp_size(interp, MS_DIM_VOCAB) > 0) {
        run->batch.tokens = make_tokens(run, interp, 0);
        run->batch.targets = make_tokens(run, interp, 1);
    }
    return run;
}

ms_op_call ms_program_run_call(ms_program_run *run, const ms_node *node)
{
    size_t bytes = run->kernels->workspace_bytes(run->program, node);
    ms_op_call call = {.program = run->program,
                       .node = node,
                       .batch = &run->batch,
                       .routing = &run->routing,
                       .balanced_routing = run->balanced_routing,
                       .workspace = ms_arena_alloc(run->arena, bytes)};
    for (int i = 0; i < node->num_in; i++)
        call.in[i] = &run->locals[node->in[i]];
    for (int i = 0; i < node->num_out; i++)
        call.out[i] = &run->locals[node->out[i]];
    return call;
}

/* Computes the routing of one rank: all rows of its experts come from itself. */
static void route(ms_program_run *run, int choice)
{
    long num_experts = (long)run->program->size[MS_DIM_EXPERTS - '0'];
    const double *chosen = ms_program_run_values(run, choice);
    long *counts = MS_NEW_ARRAY(run->arena, num_experts, long);
    for (long i = 0; i < run->locals[choice].count; i++)
        counts[(long)chosen[i]]++;
    run->routing = (ms_routing){.num_sources = 1,
                                .num_experts = num_experts,
                                .counts = counts,
                                .sent = counts,
                                .num_rows = run->locals[choice].count};
}

static void exchange(ms_program_run *run, const ms_node *node)
{
    route(run, node->in[1]);
    memcpy(run->locals[node->out[0]].data, run->locals[node->in[0]].data,
           (size_t)run->locals[node->in[0]].count * run->kernels->real_bytes);
}

void ms_program_run_node(ms_program_run *run, const ms_node *node)
{
    if (node->op == MS_OP_EXCHANGE) {
        exchange(run, node);
        return;
    }
    ms_op_call call = ms_program_run_call(run, node);
    run->kernels->op[node->op](&call);
}

void ms_program_run_execute(ms_program_run *run)
{
    for (int i = 0; i < run->program->num_nodes; i++)
        ms_program_run_node(run, &run->program->nodes[i]);
}

const double *ms_program_run_values(ms_program_run *run, int tensor)
{
    const ms_local *local = &run->locals[tensor];
    double *values = MS_NEW_ARRAY(run->arena, local->count, double);
    bool is_added = run->program->tensors[tensor].role == MS_ROLE_WEIGHT_GRADIENT;
    if (is_mask(run->program, tensor)) {
        for (long i = 0; i < local->count; i++)
            values[i] = ((const unsigned char *)local->data)[i];
        return values;
    }
    run->kernels->to_double(values, local->data, local->count);
    for (long i = 0; i < local->count && is_added; i++)
        values[i] -= MS_RUN_GRADIENT_START;
    return values;
}
