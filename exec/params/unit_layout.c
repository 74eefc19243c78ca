/* Layout of a block's parameters on a rank: tensors in segments, shards; their memory. */
#include "exec/params/unit_priv.h"

#include <assert.h>
#include <string.h>

ms_range ms_range_overlap(ms_range a, ms_range b)
{
    long first = a.first > b.first ? a.first : b.first;
    long end = a.end < b.end ? a.end : b.end;
    return (ms_range){first, end > first ? end : first};
}

long ms_range_length(ms_range range)
{
    return range.end - range.first;
}

/* The type of a segment's weights, of which those that are trained have `trained`. */
static ms_scalar type_of(const ms_precision *precision, const ms_segment *segment,
                         ms_scalar trained)
{
    if (segment->is_coded)
        return MS_SCALAR_BYTE;
    return segment->is_frozen ? precision->real : trained;
}

ms_scalar ms_segment_param_type(const ms_param_unit *unit, const ms_segment *segment)
{
    return type_of(&unit->precision, segment, unit->precision.param);
}

ms_scalar ms_segment_gather_type(const ms_param_unit *unit, const ms_segment *segment)
{
    return type_of(&unit->precision, segment, unit->precision.gather);
}

bool ms_segment_shares_gradients(const ms_param_unit *unit, const ms_segment *segment)
{
    return ms_shards_grads(unit->sharding) && segment->num_shards > 1 &&
           !segment->is_frozen;
}

void ms_unit_convert(const ms_rank *rank, const ms_conversion *c)
{
    const ms_array_ops *arrays = rank->backend->arrays;
    if (c->to_scalar != c->from_scalar)
        arrays->convert(rank->device, c);
    else if (c->adds)
        arrays->add(rank->device, c->to_scalar, c->to, c->from, c->count);
    else
        arrays->copy(rank->device, c->to, c->from,
                     (size_t)c->count * ms_scalar_bytes(c->to_scalar));
}

void *ms_unit_at(ms_scalar scalar, void *base, long element)
{
    return base == NULL ? NULL : (char *)base + (size_t)element * ms_scalar_bytes(scalar);
}

long ms_segment_whole_bytes(const ms_param_unit *unit, const ms_segment *segment)
{
    return segment->is_coded
               ? segment->num_shards * segment->shard_bytes
               : segment->count *
                     (long)ms_scalar_bytes(ms_segment_gather_type(unit, segment));
}

void *ms_segment_param(const ms_param_unit *unit, const ms_segment *segment, long element)
{
    return ms_unit_at(ms_segment_param_type(unit, segment), segment->params,
                      element - segment->kept_params.first);
}

void *ms_segment_master(const ms_param_unit *unit, const ms_segment *segment,
                        long element)
{
    return ms_unit_at(unit->precision.master, segment->master,
                      element - segment->own.first);
}

void *ms_segment_gradient(const ms_param_unit *unit, const ms_segment *segment,
                          long element)
{
    ms_scalar scalar = unit->precision.gradient;
    if (segment->reduced != NULL)
        return ms_unit_at(scalar, segment->reduced, element - segment->own.first);
    return ms_unit_at(scalar, segment->grads, element - segment->kept_grads.first);
}

/* ---- tensors ---- */

/* Whether this rank, of all that hold a weight's elements (replicas, tp ranks, copies of
 * a stage), is the one that counts them in gradient norms and passes them to files. */
static bool is_counted(const ms_rank *rank, const ms_param_unit *unit,
                       const ms_tensor *tensor, const ms_weight_name *name)
{
    const ms_place *at = rank->place;
    bool expert = tensor->mesh == MS_SPARSE_MESH;
    const long place[2][MS_MESH_AXES] = {{0, 0, at->tp}, {0, at->ep, at->etp}};
    if (unit->options.is_copy || name->is_tied || at->dp_replicate != 0)
        return false;
    bool whole =
        unit->sharding == MS_ZERO_0 || (tensor->frozen && unit->sharding < MS_ZERO_3);
    if (whole && (expert ? at->efsdp : at->dp_shard + at->cp) != 0)
        return false;
    for (int axis = 1; axis < MS_MESH_AXES; axis++)
        if (tensor->at[axis].kind != MS_SHARD && place[tensor->mesh][axis] != 0)
            return false;
    return true;
}

/* Where tp exceeds the key-value heads, neighbouring tp ranks hold one head: as many as
 * the program has heads for one of the model (ms_model_split_kv_heads). */
static void set_copies(const ms_rank *rank, const ms_program *program,
                       ms_unit_tensor *tensor)
{
    const char *dims = program->tensors[tensor->weight].dims;
    const char *heads = strchr(dims, MS_DIM_KV_HEADS);
    tensor->num_copies = 1;
    if (heads == NULL)
        return;
    tensor->num_copies =
        (int)program->size[MS_DIM_KV_HEADS - '0'] / (int)program->model->num_kv_heads;
    tensor->local.start[heads - dims] /= tensor->num_copies;
    if (rank->place->tp % tensor->num_copies != 0)
        tensor->is_counted = false;
}

/* The unit's earlier tensor that is the same matrix; -1 if there is none. */
static int earlier_matrix(const ms_param_unit *unit, const ms_unit_tensor *tensor)
{
    const ms_tensor *tensors = unit->options.program->tensors;
    for (int i = 0; tensors[tensor->weight].shared && &unit->tensors[i] < tensor; i++)
        if (strcmp(unit->tensors[i].name.name, tensor->name.name) == 0)
            return i;
    return -1;
}

static void collect_tensors(ms_rank *rank, ms_param_unit *unit)
{
    const ms_program *program = unit->options.program;
    unit->tensors = MS_NEW_ARRAY(rank->cx->arena, program->num_tensors, ms_unit_tensor);
    for (int t = 0; t < program->num_tensors; t++) {
        const ms_tensor *tensor = &program->tensors[t];
        if (tensor->role != MS_ROLE_WEIGHT)
            continue;
        ms_unit_tensor *to = &unit->tensors[unit->num_tensors++];
        to->weight = t;
        to->gradient = tensor->gradient;
        to->segment = -1; /* set by add_segment */
        to->local = ms_world_local(rank->world, program, t, rank->place);
        ms_weight_name_of(program, t, unit->options.layer, &to->name);
        to->same_as = earlier_matrix(unit, to);
        to->is_counted = is_counted(rank, unit, tensor, &to->name);
        set_copies(rank, program, to);
        to->is_partial = to->gradient >= 0 && program->mesh_size[tensor->mesh][2] > 1 &&
                         program->tensors[to->gradient].at[2].kind == MS_PARTIAL_SUM;
    }
}

/* ---- segments ---- */

enum {
    COMPLETE,
    PARTIAL,
    WITHOUT_GRADIENT,
    NUM_KINDS
};

static int kind_of(const ms_unit_tensor *tensor)
{
    return tensor->gradient < 0 ? WITHOUT_GRADIENT
           : tensor->is_partial ? PARTIAL
                                : COMPLETE;
}

static void set_shards(const ms_rank *rank, const ms_param_unit *unit,
                       ms_segment *segment)
{
    bool sharded =
        segment->is_frozen ? unit->sharding >= MS_ZERO_3 : unit->sharding != MS_ZERO_0;
    segment->shard_group =
        ms_traffic_state_group(rank->world->plan, segment->is_expert, true);
    const ms_members *shards =
        &rank->world->members[segment->shard_group][rank->place->rank];
    long num = sharded ? shards->size : 1, own = sharded ? shards->own : 0;
    segment->num_shards = (int)num;
    segment->count = (segment->count + num - 1) / num * num;
    long size = segment->count / num;
    ms_range all = {0, segment->count};
    segment->own = (ms_range){own * size, (own + 1) * size};
    segment->kept_params = unit->sharding >= MS_ZERO_3 ? segment->own : all;
    segment->kept_grads = ms_shards_grads(unit->sharding) ? segment->own : all;
    if (segment->is_frozen)
        segment->kept_grads = (ms_range){0, 0};
}

/* Concatenates a segment's tensors by gradient: complete, partial over tp, then none. */
static void place_tensors(ms_param_unit *unit, int number, ms_segment *segment)
{
    for (int kind = 0; kind < NUM_KINDS; kind++) {
        if (kind == PARTIAL)
            segment->partial.first = segment->count;
        if (kind == WITHOUT_GRADIENT)
            segment->partial.end = segment->num_updated = segment->count;
        for (int i = 0; i < unit->num_tensors; i++) {
            ms_unit_tensor *tensor = &unit->tensors[i];
            if (tensor->segment != number || kind_of(tensor) != kind ||
                tensor->same_as >= 0)
                continue;
            tensor->first = segment->count;
            segment->count += tensor->local.count;
        }
    }
    for (int i = 0; i < unit->num_tensors; i++)
        if (unit->tensors[i].segment == number && unit->tensors[i].same_as >= 0)
            unit->tensors[i].first = unit->tensors[unit->tensors[i].same_as].first;
}

enum {
    TIED_MATRIX,
    DENSE,
    EXPERT,
    DENSE_VECTORS,
    EXPERT_VECTORS,
    FROZEN_DENSE,
    FROZEN_EXPERT,
    CODED_DENSE, /* last, since they have bytes where others have numbers */
    CODED_EXPERT,
    NUM_CLASSES
};

static int class_of(const ms_rank *rank, const ms_param_unit *unit,
                    const ms_unit_tensor *tensor)
{
    const ms_program *program = unit->options.program;
    const ms_tensor *weight = &program->tensors[tensor->weight];
    if (ms_tensor_is_tied(program, tensor->weight))
        return TIED_MATRIX;
    if (ms_weight_is_coded(program, tensor->weight))
        return weight->mesh == MS_SPARSE_MESH ? CODED_EXPERT : CODED_DENSE;
    if (weight->frozen)
        return weight->mesh == MS_SPARSE_MESH ? FROZEN_EXPERT : FROZEN_DENSE;
    if (ms_weight_is_vector(rank, program, tensor->weight))
        return weight->mesh == MS_SPARSE_MESH ? EXPERT_VECTORS : DENSE_VECTORS;
    return weight->mesh == MS_SPARSE_MESH ? EXPERT : DENSE;
}

static bool is_frozen(const ms_param_unit *unit, int segment)
{
    const ms_program *program = unit->options.program;
    for (int i = 0; i < unit->num_tensors; i++)
        if (unit->tensors[i].segment == segment)
            return program->tensors[unit->tensors[i].weight].frozen;
    return false;
}

static void add_segment(ms_rank *rank, ms_param_unit *unit, int class)
{
    int number = unit->num_segments, found = 0;
    for (int i = 0; i < unit->num_tensors; i++) {
        if (class_of(rank, unit, &unit->tensors[i]) != class)
            continue;
        unit->tensors[i].segment = number;
        found++;
    }
    if (found == 0)
        return;
    assert(number < MS_MAX_SEGMENTS);
    unit->num_segments++;
    if (class == TIED_MATRIX && unit->options.tied != NULL) {
        const ms_param_unit *tied = unit->options.tied;
        assert(tied->matrix >= 0);
        unit->segments[number] = tied->segments[tied->matrix];
        unit->num_borrowed = 1;
        return;
    }
    ms_segment *segment = MS_NEW(rank->cx->arena, ms_segment);
    segment->is_expert = class == EXPERT || class == EXPERT_VECTORS ||
                         class == FROZEN_EXPERT || class == CODED_EXPERT;
    segment->is_coded = class == CODED_DENSE || class == CODED_EXPERT;
    segment->is_frozen = is_frozen(unit, number);
    place_tensors(unit, number, segment);
    set_shards(rank, unit, segment);
    unit->segments[number] = segment;
    if (segment->is_coded)
        ms_segment_set_codes(rank, unit, number);
    else
        ms_segment_set_messages(rank, unit, segment);
    ms_segment_set_states(rank, unit, number);
    if (class == TIED_MATRIX)
        unit->matrix = number;
}

static void set_buffer_offsets(ms_param_unit *unit)
{
    long next[2] = {0, 0}, next_byte[2] = {0, 0}, next_message[2] = {0, 0};
    for (int i = 0; i < unit->num_segments; i++) {
        const ms_segment *segment = unit->segments[i];
        unit->buffer_first[i] = next[segment->is_expert];
        unit->buffer_byte[i] = next_byte[segment->is_expert];
        unit->message_byte[i] = next_message[segment->is_expert];
        if (segment->num_shards <= 1)
            continue;
        next[segment->is_expert] += segment->count;
        next_byte[segment->is_expert] += ms_segment_whole_bytes(unit, segment);
        if (ms_segment_is_quantized(segment))
            next_message[segment->is_expert] +=
                segment->num_shards * segment->shard_bytes;
    }
}

/* ---- memory ---- */

/* Whether memory of a category is the host's. */
static bool is_on_host(const ms_rank *rank, ms_memory_category part)
{
    return part == MS_MEMORY_OPTIMIZER &&
           rank->planned->workload->stack->host_optimizer != MS_HOST_NO_OPTIMIZER;
}

ms_status ms_unit_allocate(ms_rank *rank, ms_memory_category part, ms_scalar scalar,
                           long count, void **out)
{
    double bytes = (double)count * (double)ms_scalar_bytes(scalar);
    MS_TRY(is_on_host(rank, part) ? ms_rank_allocate_on_host(rank, bytes, out)
                                  : ms_rank_allocate(rank, part, bytes, out));
    if (*out != NULL)
        rank->backend->arrays->fill(rank->device, scalar, *out, 0.0, count);
    return MS_OK;
}

void ms_unit_free(ms_rank *rank, ms_memory_category part, ms_scalar scalar, long count,
                  void **memory)
{
    double bytes = (double)count * (double)ms_scalar_bytes(scalar);
    if (is_on_host(rank, part))
        ms_rank_release_on_host(rank, bytes, *memory);
    else
        ms_rank_release(rank, part, bytes, *memory);
    *memory = NULL;
}

int ms_segment_arrays(const ms_precision *p, ms_segment *s,
                      ms_segment_array out[MS_SEGMENT_ARRAYS])
{
    long own = s->is_frozen ? 0 : ms_range_length(s->own);
    long first = s->num_moments > 0 ? own : 0, second = s->num_moments > 1 ? own : 0;
    long per_moment =
        p->moment == MS_SCALAR_BYTE ? (own + MS_STATE_BLOCK - 1) / MS_STATE_BLOCK : 0;
    long scales[2] = {s->num_moments > 0 ? per_moment : 0,
                      s->num_moments > 1 ? per_moment : 0};
    const ms_segment_array all[MS_SEGMENT_ARRAYS] = {
        {MS_MEMORY_PARAMS, type_of(p, s, p->param),
         s->is_coded ? s->shard_bytes : ms_range_length(s->kept_params), &s->params},
        {MS_MEMORY_GRADS, p->gradient, ms_range_length(s->kept_grads), &s->grads},
        {MS_MEMORY_OPTIMIZER, p->moment, first, &s->moments[0]},
        {MS_MEMORY_OPTIMIZER, p->moment, second, &s->moments[1]},
        {MS_MEMORY_OPTIMIZER, MS_SCALAR_FP32, scales[0], &s->scales[0]},
        {MS_MEMORY_OPTIMIZER, MS_SCALAR_FP32, scales[1], &s->scales[1]},
        {MS_MEMORY_OPTIMIZER, s->sum, s->num_sums / s->num_shards, &s->sums},
        {MS_MEMORY_OPTIMIZER, p->master, p->has_master ? own : 0, &s->master}};
    memcpy(out, all, sizeof all);
    return MS_SEGMENT_ARRAYS;
}

static ms_status allocate_segment(ms_rank *rank, ms_segment *segment)
{
    ms_segment_array a[MS_SEGMENT_ARRAYS];
    int num = ms_segment_arrays(&rank->precision, segment, a);
    for (int i = 0; i < num; i++)
        MS_TRY(ms_unit_allocate(rank, a[i].part, a[i].scalar, a[i].count, a[i].memory));
    return MS_OK;
}

long ms_unit_layer(const ms_param_unit *unit)
{
    return unit->options.layer;
}

ms_status ms_unit_make(ms_rank *rank, const ms_unit_options *options, ms_param_unit **out)
{
    ms_param_unit *unit = MS_NEW(rank->cx->arena, ms_param_unit);
    *unit = (ms_param_unit){.options = *options,
                            .sharding = rank->planned->sharding,
                            .precision = rank->precision,
                            .matrix = -1};
    *out = unit; /* for the caller, who closes the unit even after a failure */
    collect_tensors(rank, unit);
    for (int class = 0; class < NUM_CLASSES; class ++)
        add_segment(rank, unit, class);
    set_buffer_offsets(unit);
    for (int i = unit->num_borrowed; i < unit->num_segments; i++)
        MS_TRY(allocate_segment(rank, unit->segments[i]));
    return MS_OK;
}

static void close_segment(ms_rank *rank, ms_segment *segment)
{
    ms_segment_array a[MS_SEGMENT_ARRAYS];
    int num = ms_segment_arrays(&rank->precision, segment, a);
    for (int i = 0; i < num; i++)
        ms_unit_free(rank, a[i].part, a[i].scalar, a[i].count, a[i].memory);
}

void ms_unit_close(ms_rank *rank, ms_param_unit *unit)
{
    ms_unit_clear_gradients(rank, unit); /* frees the reduced shards too */
    for (int i = unit->num_borrowed; i < unit->num_segments; i++)
        close_segment(rank, unit->segments[i]);
}
