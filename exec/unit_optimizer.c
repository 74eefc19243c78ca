/* The norm of the gradients, and AdamW on the rank's shard. */
#include "exec/unit_priv.h"

double ms_unit_sum_of_squares(ms_rank *rank, const ms_param_unit *unit)
{
    double sum = 0.0;
    for (int i = 0; i < unit->num_tensors && rank->backend->has_values; i++) {
        const ms_unit_tensor *t = &unit->tensors[i];
        const ms_segment *s = unit->segments[t->segment];
        if (t->segment < unit->num_borrowed || !t->counts || t->gradient < 0)
            continue;
        ms_range part =
            ms_range_overlap(s->own, (ms_range){t->first, t->first + t->local.count});
        sum += rank->kernels->sum_of_squares(ms_segment_gradient(unit, s, part.first),
                                             ms_range_length(part));
    }
    return sum;
}

ms_status ms_unit_update(ms_rank *rank, ms_param_unit *unit, const ms_adamw *how)
{
    for (int i = unit->num_borrowed; i < unit->num_segments; i++) {
        ms_segment *s = unit->segments[i];
        ms_range part = ms_range_overlap(s->own, (ms_range){0, s->num_updated});
        if (!rank->backend->has_values || ms_range_length(part) == 0)
            continue;
        rank->kernels->adamw(how, ms_segment_param(unit, s, part.first),
                             ms_segment_gradient(unit, s, part.first),
                             ms_unit_at(unit, s->moments[0], part.first - s->own.first),
                             ms_unit_at(unit, s->moments[1], part.first - s->own.first),
                             ms_range_length(part));
    }
    return MS_OK;
}
