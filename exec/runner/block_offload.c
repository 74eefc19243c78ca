#include "exec/runner/block_offload.h"

#include "base/number.h"
#include "costmodel/cost/bill.h"

static const ms_program *program_of(const ms_block_run *run)
{
    return run->block->plan->program;
}

static const ms_stack *stack_of(const ms_block_run *run)
{
    return run->rank->planned->workload->stack;
}

/* Whether a tensor is a saved activation on the device. */
static bool is_saved(const ms_block_run *run, int tensor)
{
    const ms_program *program = program_of(run);
    return run->tensors->alive[tensor] && program->tensors[tensor].saved &&
           ms_block_category(program, tensor) == MS_MEMORY_ACTIVATIONS;
}

/* Gives a tensor of `from_bytes` on the device memory of `to_bytes` instead, with the
 * values of its last bytes: as many as both have. */
static ms_status resize(const ms_block_run *run, int tensor, double from_bytes,
                        double to_bytes)
{
    ms_rank *rank = run->rank;
    void **data = &run->tensors->cells[tensor].data, *kept = NULL;
    double kept_bytes = ms_min(from_bytes, to_bytes);
    MS_TRY(ms_rank_workspace(rank, kept_bytes, &kept));
    if (kept != NULL)
        ms_rank_copy(rank, kept, (char *)*data + (size_t)(from_bytes - kept_bytes),
                     kept_bytes);
    ms_rank_release(rank, MS_MEMORY_ACTIVATIONS, from_bytes, *data);
    MS_TRY(ms_rank_allocate(rank, MS_MEMORY_ACTIVATIONS, to_bytes, data));
    if (kept != NULL)
        ms_rank_copy(rank, (char *)*data + (size_t)(to_bytes - kept_bytes), kept,
                     kept_bytes);
    ms_rank_release_workspace(rank, kept_bytes, kept);
    return MS_OK;
}

/* Moves the first `bytes` of a tensor. */
static ms_status move_to_host(const ms_block_run *run, int tensor, double bytes)
{
    ms_local *cell = &run->tensors->cells[tensor];
    ms_host_part *part = &run->tensors->on_host[tensor];
    MS_TRY(ms_rank_allocate_on_host(run->rank, bytes, &part->memory));
    part->bytes = bytes;
    ms_rank_copy(run->rank, part->memory, cell->data, bytes);
    run->tensors->alive[tensor] = false;
    return resize(run, tensor, cell->bytes, cell->bytes - bytes);
}

static ms_status move_from_host(const ms_block_run *run, int tensor)
{
    ms_local *cell = &run->tensors->cells[tensor];
    ms_host_part *part = &run->tensors->on_host[tensor];
    MS_TRY(resize(run, tensor, cell->bytes - part->bytes, cell->bytes));
    run->tensors->alive[tensor] = true;
    ms_rank_copy(run->rank, cell->data, part->memory, part->bytes);
    ms_rank_release_on_host(run->rank, part->bytes, part->memory);
    *part = (ms_host_part){0};
    return MS_OK;
}

ms_status ms_block_to_host(const ms_block_run *run)
{
    const ms_program *program = program_of(run);
    const ms_local *cells = run->tensors->cells;
    int input = ms_bill_host_input(program, stack_of(run));
    double saved_bytes = 0.0, input_bytes = input >= 0 ? cells[input].bytes : 0.0;
    for (int t = 0; t < program->num_tensors; t++)
        if (is_saved(run, t))
            saved_bytes += cells[t].bytes;
    double left_bytes =
        ms_bill_host_bytes(stack_of(run), saved_bytes, input_bytes) - input_bytes;
    if (input_bytes > 0.0)
        MS_TRY(move_to_host(run, input, input_bytes));
    for (int t = 0; t < program->num_tensors && left_bytes > 0.0; t++) {
        double bytes = ms_min(left_bytes, cells[t].bytes);
        if (!is_saved(run, t) || bytes <= 0.0)
            continue;
        MS_TRY(move_to_host(run, t, bytes));
        left_bytes -= bytes;
    }
    return MS_OK;
}

ms_status ms_block_from_host(const ms_block_run *run)
{
    for (int t = 0; t < program_of(run)->num_tensors; t++)
        if (run->tensors->on_host[t].bytes > 0.0)
            MS_TRY(move_from_host(run, t));
    return MS_OK;
}
