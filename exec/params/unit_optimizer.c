/* Gradient norm and AdamW on the rank's shard. */
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

ms_status ms_unit_update(ms_rank *rank, ms_param_unit *unit, const ms_adamw *how)
{
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        ms_segment *s = unit->segments[i];
        ms_range range = ms_range_overlap(s->own, (ms_range){0, s->num_updated});
        if (!rank->backend->has_values || ms_range_length(range) == 0)
            continue;
        long first = range.first - s->own.first;
        ms_scalar state = unit->precision.state;
        const ms_update update = {.scalar = unit->precision.real,
                                  .weight = ms_segment_param(unit, s, range.first),
                                  .master = ms_unit_at(state, s->master, first),
                                  .gradient = ms_segment_gradient(unit, s, range.first),
                                  .first_moment = ms_unit_at(state, s->moments[0], first),
                                  .second_moment =
                                      ms_unit_at(state, s->moments[1], first),
                                  .count = ms_range_length(range)};
        rank->backend->arrays->adamw(rank->device, how, &update);
    }
    return MS_OK;
}
