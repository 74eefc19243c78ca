/* Updates of parameters whose optimizer states are in host memory. */
#include "exec/params/unit_priv.h"

static double bytes_of(ms_scalar scalar, long count)
{
    return (double)count * (double)ms_scalar_bytes(scalar);
}

/* Makes a copy, in workspace, of `count` elements. */
static ms_status copy_out(ms_rank *rank, ms_scalar scalar, const void *from, long count,
                          void **copy)
{
    MS_TRY(ms_rank_workspace(rank, bytes_of(scalar, count), copy));
    ms_rank_copy(rank, *copy, from, bytes_of(scalar, count));
    return MS_OK;
}

/* Frees such a copy, after writing it back if `to` is not NULL. */
static void copy_back(ms_rank *rank, ms_scalar scalar, void *to, long count, void *copy)
{
    if (to != NULL)
        ms_rank_copy(rank, to, copy, bytes_of(scalar, count));
    ms_rank_release_workspace(rank, bytes_of(scalar, count), copy);
}

/* ---- on the device, with states that pass through it ---- */

/* The arrays of a segment that are optimizer states. */
static int list_states(const ms_param_unit *unit, ms_segment *segment,
                       ms_segment_array out[MS_SEGMENT_ARRAYS])
{
    ms_segment_array all[MS_SEGMENT_ARRAYS];
    int num_all = ms_segment_arrays(&unit->precision, segment, all), num = 0;
    for (int i = 0; i < num_all; i++)
        if (all[i].part == MS_MEMORY_OPTIMIZER && all[i].count > 0)
            out[num++] = all[i];
    return num;
}

static ms_status update_on_device(ms_rank *rank, const ms_param_unit *unit,
                                  ms_segment *segment, const ms_adamw *how,
                                  ms_segment_update *update)
{
    ms_segment_array states[MS_SEGMENT_ARRAYS];
    void *on_host[MS_SEGMENT_ARRAYS];
    int num = list_states(unit, segment, states), done = 0;
    ms_status status = MS_OK;
    for (; done < num && status == MS_OK; done++) {
        on_host[done] = *states[done].memory;
        status = copy_out(rank, states[done].scalar, on_host[done], states[done].count,
                          states[done].memory);
    }
    if (status == MS_OK)
        status = update(rank, unit, segment, how);
    for (int i = 0; i < done; i++) {
        copy_back(rank, states[i].scalar, status == MS_OK ? on_host[i] : NULL,
                  states[i].count, *states[i].memory);
        *states[i].memory = on_host[i];
    }
    return status;
}

/* ---- on the host ---- */

static ms_status update_on_host(ms_rank *rank, const ms_param_unit *unit,
                                ms_segment *segment, const ms_adamw *how,
                                ms_segment_update *update)
{
    ms_scalar weights = ms_segment_param_type(unit, segment),
              gradient = unit->precision.gradient;
    ms_range range = ms_segment_updated(segment);
    long count = ms_range_length(range);
    void *on_device = ms_segment_param(unit, segment, range.first);
    const void *gradients = ms_segment_gradient(unit, segment, range.first);
    const ms_segment kept = *segment;
    segment->kept_params = segment->kept_grads = range;
    segment->reduced = NULL;
    ms_status status = copy_out(rank, weights, on_device, count, &segment->params);
    if (status == MS_OK)
        status = copy_out(rank, gradient, gradients, count, &segment->grads);
    if (status == MS_OK)
        status = update(rank, unit, segment, how);
    if (status == MS_OK) {
        copy_back(rank, weights, on_device, count, segment->params);
        copy_back(rank, gradient, NULL, count, segment->grads);
    }
    *segment = kept;
    return status;
}

ms_status ms_segment_update_offloaded(ms_rank *rank, const ms_param_unit *unit,
                                      ms_segment *segment, const ms_adamw *how,
                                      ms_segment_update *update)
{
    switch (rank->planned->workload->stack->host_optimizer) {
    case MS_HOST_STATES:
        return update_on_device(rank, unit, segment, how, update);
    case MS_HOST_UPDATE:
        return update_on_host(rank, unit, segment, how, update);
    case MS_HOST_NO_OPTIMIZER:
        break;
    }
    return update(rank, unit, segment, how);
}
