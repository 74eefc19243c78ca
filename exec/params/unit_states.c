/* States of a plan's optimizer for a segment, and host copies of its elements. */
#include "costmodel/cost/update_cost.h"
#include "costmodel/plan/stack_choices.h"
#include "exec/params/unit_priv.h"
#include "sim/simulate/move_names.h"

#include <assert.h>
#include <string.h>

static const ms_optimizer_states *states_of(const ms_rank *rank)
{
    return &ms_states_of_optimizer[rank->planned->plan->optimizer];
}

/* Whether the optimizer keeps something else for matrices than for other weights. */
static bool updates_matrices(const ms_rank *rank)
{
    return states_of(rank)->num_moments != states_of(rank)->num_vector_moments;
}

static ms_matrices matrices_of(const ms_rank *rank, const ms_program *program, int weight)
{
    return ms_matrices_of(program, weight, states_of(rank)->orthogonal_iterations == 0);
}

bool ms_weight_is_vector(const ms_rank *rank, const ms_program *program, int weight)
{
    return updates_matrices(rank) && matrices_of(rank, program, weight).count == 0.0;
}

/* ---- matrices ---- */

/* Elements of a whole weight, or of one expert's, of which the rank has `local`. */
static double whole_count(const ms_program *program, const ms_unit_tensor *t,
                          double local, bool is_split)
{
    const ms_tensor *tensor = &program->tensors[t->weight];
    double count = local;
    if (is_split)
        count *= (double)program->mesh_size[tensor->mesh][2] / t->num_copies;
    if (strchr(tensor->dims, MS_DIM_VOCAB) != NULL)
        count *= (double)program->model->vocab / program->size[MS_DIM_VOCAB - '0'];
    return count;
}

/* Matrices that one rank makes of its whole weight to repeat what tp ranks do. */
static long num_shares(const ms_rank *rank, const ms_program *program, int weight)
{
    const ms_tensor *tensor = &program->tensors[weight];
    long shares = rank->orthogonal_shares[tensor->mesh == MS_SPARSE_MESH];
    if (tensor->tp_letter == 0 || shares <= 1)
        return 1;
    long heads = program->model->num_kv_heads;
    return tensor->tp_letter == MS_DIM_KV_HEADS && shares > heads ? heads : shares;
}

static void add_matrices(const ms_rank *rank, const ms_program *program,
                         const ms_unit_tensor *t, ms_segment *s)
{
    const ms_tensor *tensor = &program->tensors[t->weight];
    const ms_matrices of = matrices_of(rank, program, t->weight);
    bool has_experts = tensor->dims[0] == MS_DIM_EXPERTS;
    long count = has_experts ? t->local.shape[0] : 1, each = t->local.count / count;
    const char *split = strchr(tensor->dims, tensor->tp_letter);
    bool by_rows =
        s->is_vector || (size_t)(split - tensor->dims) < has_experts + of.num_row_dims;
    bool is_split = tensor->at[2].kind == MS_SHARD;
    long shares = num_shares(rank, program, t->weight);
    for (long i = 0; i < count; i++) {
        ms_unit_matrix *m = &s->matrices[s->num_matrices++];
        *m = (ms_unit_matrix){.first = t->first + i * each,
                              .rows = s->is_vector ? each : (long)of.rows,
                              .columns = s->is_vector ? 1 : (long)of.columns,
                              .sums = s->num_sums,
                              .splits_rows = is_split && by_rows,
                              .can_split_rows = tensor->tp_letter != 0 && by_rows,
                              .splits_columns = (is_split || shares > 1) && !by_rows,
                              .num_copies = t->num_copies,
                              .whole_count =
                                  whole_count(program, t, (double)each, is_split),
                              .num_shares = shares};
        assert(m->rows * m->columns == each);
        if (!s->is_vector && states_of(rank)->factored_bytes > 0.0)
            s->num_sums += m->rows + m->columns;
    }
}

static void set_matrices(const ms_rank *rank, const ms_param_unit *unit, int segment)
{
    ms_segment *s = unit->segments[segment];
    const ms_program *program = unit->options.program;
    long num = 0;
    for (int i = 0; i < unit->num_tensors; i++) {
        const ms_unit_tensor *t = &unit->tensors[i];
        bool has_experts = program->tensors[t->weight].dims[0] == MS_DIM_EXPERTS;
        if (t->segment == segment)
            num += has_experts ? t->local.shape[0] : 1;
    }
    s->matrices = MS_NEW_ARRAY(rank->cx->arena, num, ms_unit_matrix);
    for (int i = 0; i < unit->num_tensors; i++)
        if (unit->tensors[i].segment == segment && unit->tensors[i].gradient >= 0)
            add_matrices(rank, program, &unit->tensors[i], s);
    s->num_sums = (s->num_sums + s->num_shards - 1) / s->num_shards * s->num_shards;
}

void ms_segment_set_states(const ms_rank *rank, ms_param_unit *unit, int segment)
{
    ms_segment *s = unit->segments[segment];
    const ms_program *program = unit->options.program;
    int weight = -1;
    for (int i = 0; i < unit->num_tensors && weight < 0; i++)
        if (unit->tensors[i].segment == segment)
            weight = unit->tensors[i].weight;
    assert(weight >= 0);
    s->is_vector = ms_weight_is_vector(rank, program, weight);
    s->num_moments =
        s->is_vector ? states_of(rank)->num_vector_moments : states_of(rank)->num_moments;
    s->sum = unit->precision.moment == MS_SCALAR_FP64 ? MS_SCALAR_FP64 : MS_SCALAR_FP32;
    if (updates_matrices(rank) && !s->is_frozen)
        set_matrices(rank, unit, segment);
}

/* ---- host copies ---- */

ms_range ms_segment_updated(const ms_segment *segment)
{
    return ms_range_overlap(segment->own, (ms_range){0, segment->num_updated});
}

ms_chunk ms_chunk_make(ms_arena *arena, ms_rank *rank, const ms_param_unit *unit,
                       const ms_segment *segment, const ms_adamw *how)
{
    double *room = MS_NEW_ARRAY(arena, 4L * MS_UPDATE_CHUNK, double);
    ms_chunk chunk = {.rank = rank,
                      .unit = unit,
                      .segment = segment,
                      .how = how,
                      .num_moments = segment->num_moments,
                      .of = {.weight = room, .gradient = room + MS_UPDATE_CHUNK}};
    for (int i = 0; i < segment->num_moments; i++)
        chunk.of.moments[i] = room + (2L + i) * MS_UPDATE_CHUNK;
    return chunk;
}

/* The device's weights that an update reads: master weights, if there are any. */
static void *weights_at(const ms_chunk *chunk, ms_scalar *scalar)
{
    const ms_precision *precision = &chunk->unit->precision;
    *scalar = precision->has_master ? precision->master
                                    : ms_segment_param_type(chunk->unit, chunk->segment);
    return precision->has_master
               ? ms_segment_master(chunk->unit, chunk->segment, chunk->first)
               : ms_segment_param(chunk->unit, chunk->segment, chunk->first);
}

static ms_status move_moment(const ms_chunk *chunk, int which, bool writes)
{
    const ms_segment *s = chunk->segment;
    const ms_rank *rank = chunk->rank;
    ms_scalar moment = chunk->unit->precision.moment;
    const ms_array_ops *arrays = rank->backend->arrays;
    long at = chunk->first - s->own.first, count = chunk->of.count;
    void *values = ms_unit_at(moment, s->moments[which], at);
    double *copy = chunk->of.moments[which];
    bool is_signed = which == 0;
    if (moment == MS_SCALAR_BYTE) {
        float *scales = (float *)s->scales[which] + at / MS_STATE_BLOCK;
        if (writes)
            ms_codes_write(is_signed, copy, count, values, scales);
        else
            ms_codes_read(is_signed, values, scales, count, copy);
        return MS_OK;
    }
    if (writes)
        return arrays->write(rank->cx, rank->device, moment, values, copy, count);
    return arrays->read(rank->cx, rank->device, moment, copy, values, count);
}

ms_status ms_chunk_read(ms_chunk *chunk, long first, long end)
{
    const ms_rank *rank = chunk->rank;
    const ms_array_ops *arrays = rank->backend->arrays;
    ms_elements *e = &chunk->of;
    ms_scalar scalar;
    chunk->first = first;
    e->count = end - first < MS_UPDATE_CHUNK ? end - first : MS_UPDATE_CHUNK;
    const void *weights = weights_at(chunk, &scalar);
    MS_TRY(arrays->read(rank->cx, rank->device, scalar, e->weight, weights, e->count));
    MS_TRY(
        arrays->read(rank->cx, rank->device, chunk->unit->precision.gradient, e->gradient,
                     ms_segment_gradient(chunk->unit, chunk->segment, first), e->count));
    for (long i = 0; i < e->count; i++)
        e->gradient[i] *= chunk->how->gradient_scale;
    for (int i = 0; i < chunk->num_moments; i++)
        MS_TRY(move_moment(chunk, i, false));
    return MS_OK;
}

ms_status ms_chunk_write(const ms_chunk *chunk)
{
    const ms_rank *rank = chunk->rank;
    const ms_array_ops *arrays = rank->backend->arrays;
    const ms_precision *precision = &chunk->unit->precision;
    const ms_elements *e = &chunk->of;
    ms_scalar scalar;
    void *weights = weights_at(chunk, &scalar);
    MS_TRY(arrays->write(rank->cx, rank->device, scalar, weights, e->weight, e->count));
    if (precision->has_master) {
        MS_TRY(arrays->write(rank->cx, rank->device,
                             ms_segment_param_type(chunk->unit, chunk->segment),
                             ms_segment_param(chunk->unit, chunk->segment, chunk->first),
                             e->weight, e->count));
    }
    for (int i = 0; i < chunk->num_moments; i++)
        MS_TRY(move_moment(chunk, i, true));
    return MS_OK;
}

/* ---- collectives ---- */

ms_status ms_unit_collect(ms_rank *rank, ms_transfer_kind kind, ms_traffic_group group,
                          const double *send, double *receive, long count)
{
    void *to = receive; /* written */
    ms_event after = rank->backend->mark(rank->device), done = 0;
    const ms_transfer transfer = {.kind = (unsigned char)kind,
                                  .scalar = MS_SCALAR_FP64,
                                  .on_host = true,
                                  .group = (unsigned char)group,
                                  .stream = MS_STREAM_REDUCE,
                                  .send = send,
                                  .receive = to,
                                  .count = count,
                                  .name = MS_MOVE_MATRICES};
    MS_TRY(rank->backend->start(rank->cx, rank->device, &transfer, &after, 1, &done));
    return rank->backend->wait(rank->cx, rank->device, done);
}
