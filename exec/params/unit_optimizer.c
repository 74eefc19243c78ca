/* Gradient norm and optimizer on the rank's shard. */
#include "exec/params/unit_priv.h"

void ms_unit_add_squares(ms_rank *rank, const ms_param_unit *unit, int slot)
{
    for (int i = 0; i < unit->num_tensors && rank->backend->has_values; i++) {
        const ms_unit_tensor *t = &unit->tensors[i];
        const ms_segment *s = unit->segments[t->segment];
        if (t->segment < unit->num_borrowed || !t->is_counted || t->gradient < 0)
            continue;
        ms_range range =
            ms_range_overlap(s->own, (ms_range){t->first, t->first + t->local.count});
        rank->backend->arrays->add_squares(rank->device, unit->precision.gradient, slot,
                                           ms_segment_gradient(unit, s, range.first),
                                           ms_range_length(range));
    }
}

static ms_status update_adamw(ms_rank *rank, const ms_param_unit *unit, ms_segment *s,
                              const ms_adamw *how)
{
    ms_range range = ms_segment_updated(s);
    long first = range.first - s->own.first;
    ms_scalar state = unit->precision.moment;
    const ms_update update = {.scalar = unit->precision.param,
                              .weight = ms_segment_param(unit, s, range.first),
                              .master = ms_unit_at(state, s->master, first),
                              .gradient = ms_segment_gradient(unit, s, range.first),
                              .first_moment = ms_unit_at(state, s->moments[0], first),
                              .second_moment = ms_unit_at(state, s->moments[1], first),
                              .count = ms_range_length(range)};
    if (update.count > 0)
        rank->backend->arrays->adamw(rank->device, how, &update);
    return MS_OK;
}

/* The optimizer of a segment: AdamW for what Muon has no matrices of. */
static ms_optimizer optimizer_of(const ms_rank *rank, const ms_segment *segment)
{
    ms_optimizer optimizer = rank->planned->plan->optimizer;
    bool as_adamw = optimizer == MS_OPTIMIZER_MUON && segment->is_vector;
    return as_adamw ? MS_OPTIMIZER_ADAMW : optimizer;
}

static ms_status update_elements(ms_rank *rank, const ms_param_unit *unit, ms_segment *s,
                                 const ms_adamw *how)
{
    ms_arena *arena = ms_arena_open();
    ms_chunk chunk = ms_chunk_make(arena, rank, unit, s, how);
    ms_range range = ms_segment_updated(s);
    ms_status status = MS_OK;
    for (long at = range.first; at < range.end && status == MS_OK; at += chunk.of.count) {
        status = ms_chunk_read(&chunk, at, range.end);
        if (status != MS_OK)
            break;
        ms_optimizer_step(optimizer_of(rank, s), how, &chunk.of);
        status = ms_chunk_write(&chunk);
    }
    ms_arena_close(arena);
    return status;
}

/* Whether AdamW's kernel updates such weights (ms_update). */
static bool has_kernel(const ms_precision *p)
{
    ms_scalar weight = p->has_master ? p->master : p->param;
    return weight == p->gradient && weight == p->moment &&
           (weight == MS_SCALAR_FP32 || (weight == MS_SCALAR_FP64 && !p->has_master));
}

static ms_segment_update *update_of(const ms_rank *rank, const ms_param_unit *unit,
                                    const ms_segment *segment)
{
    static ms_segment_update *const updates[MS_NUM_OPTIMIZERS] = {
        [MS_OPTIMIZER_ADAMW] = update_adamw,
        [MS_OPTIMIZER_ADAM_8BIT] = update_elements,
        [MS_OPTIMIZER_ADAFACTOR] = ms_segment_update_adafactor,
        [MS_OPTIMIZER_SGD] = update_elements,
        [MS_OPTIMIZER_LION] = update_elements,
        [MS_OPTIMIZER_MUON] = ms_segment_update_muon,
    };
    ms_segment_update *update = updates[optimizer_of(rank, segment)];
    return update == update_adamw && !has_kernel(&unit->precision) ? update_elements
                                                                   : update;
}

ms_status ms_unit_update(ms_rank *rank, ms_param_unit *unit, const ms_adamw *how)
{
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        ms_segment *segment = unit->segments[i];
        if (rank->backend->has_values && !segment->is_frozen)
            MS_TRY(ms_segment_update_offloaded(rank, unit, segment, how,
                                               update_of(rank, unit, segment)));
    }
    return MS_OK;
}
