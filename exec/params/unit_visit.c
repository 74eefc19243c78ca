/* Copies a rank's shard from or to the host by tensor: initial values, files, checks. */
#include "exec/params/unit_priv.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Most elements copied at once: enough to use the bus well, and little host memory. */
#define MOST_AT_ONCE (2L << 20)

/* Consecutive elements of one tensor (of one expert) in the rank's shard. */
typedef struct piece {
    const ms_unit_tensor *tensor;
    ms_segment *segment;
    long first; /* index of the piece's first element in the segment */
    long count;
    long expert;    /* -1 if the tensor is no expert's */
    long *indices;  /* flat indices in the whole tensor; padding is beyond its count */
    double *values; /* host copy of the elements */
} piece;

typedef ms_status piece_action(ms_rank *rank, const ms_param_unit *unit, const piece *p,
                               void *state);

/* ---- pieces ---- */

static void start_index(const ms_local *local, long element, long index[MS_MAX_DIMS])
{
    for (int d = local->num_dims; d-- > 0;) {
        index[d] = element % local->shape[d];
        element /= local->shape[d];
    }
}

static void step_index(const ms_local *local, long index[MS_MAX_DIMS])
{
    for (int d = local->num_dims; d-- > 0;) {
        if (++index[d] < local->shape[d])
            return;
        index[d] = 0;
    }
}

static long flat_index(const ms_unit_tensor *t, const long index[MS_MAX_DIMS])
{
    long index_in_tensor = t->name.offset;
    for (int d = 0; d < t->local.num_dims; d++)
        index_in_tensor += t->name.stride[d] * (t->local.start[d] + index[d]);
    return index_in_tensor;
}

/* Number of elements from `element` to `end` - 1 that belong to one expert's tensor. */
static long count_same_expert(const ms_unit_tensor *t, long element, long end)
{
    int by = t->name.expert_dim;
    long inner = 1;
    if (by < 0)
        return end - element;
    for (int d = by + 1; d < t->local.num_dims; d++)
        inner *= t->local.shape[d];
    long left = inner - element % inner;
    return left < end - element ? left : end - element;
}

/* Sets the piece that begins at `element` of the tensor, with up to `most` elements. */
static void set_piece(piece *p, long element, long most)
{
    const ms_unit_tensor *t = p->tensor;
    const ms_local *local = &t->local;
    long index[MS_MAX_DIMS];
    start_index(local, element, index);
    int by = t->name.expert_dim;
    p->first = t->first + element;
    p->expert = by >= 0 ? local->start[by] + index[by] : -1;
    p->count = count_same_expert(t, element, element + most);
    for (long i = 0; i < p->count && p->indices != NULL; i++) {
        p->indices[i] = flat_index(t, index);
        step_index(local, index);
    }
}

typedef struct visit {
    bool counted_only; /* skip elements that another rank counts */
    bool with_values;  /* allocate indices and values of pieces */
    piece_action *act;
    void *state;
} visit;

static ms_range own_range(const ms_param_unit *unit, const ms_unit_tensor *t)
{
    ms_range range = ms_range_overlap(unit->segments[t->segment]->own,
                                      (ms_range){t->first, t->first + t->local.count});
    return (ms_range){range.first - t->first, range.end - t->first};
}

static bool is_visited(const ms_param_unit *unit, const ms_unit_tensor *t, const visit *v)
{
    return t->segment >= unit->num_borrowed && t->same_as < 0 &&
           (t->is_counted || !v->counted_only);
}

static void allocate_host_buffers(ms_arena *arena, const ms_param_unit *unit,
                                  const visit *v, piece *p)
{
    long capacity = 0;
    for (int i = 0; i < unit->num_tensors; i++) {
        ms_range range = own_range(unit, &unit->tensors[i]);
        if (is_visited(unit, &unit->tensors[i], v))
            capacity =
                range.end - range.first > capacity ? range.end - range.first : capacity;
    }
    capacity = capacity < MOST_AT_ONCE ? capacity : MOST_AT_ONCE;
    p->indices = MS_NEW_ARRAY(arena, capacity, long);
    p->values = MS_NEW_ARRAY(arena, capacity, double);
}

static ms_status for_each_piece(ms_rank *rank, const ms_param_unit *unit, const visit *v)
{
    piece p = {0};
    ms_arena *arena = ms_arena_open();
    ms_status status = MS_OK;
    if (v->with_values)
        allocate_host_buffers(arena, unit, v, &p);
    for (int i = 0; i < unit->num_tensors; i++) {
        p.tensor = &unit->tensors[i];
        p.segment = unit->segments[p.tensor->segment];
        if (!is_visited(unit, p.tensor, v))
            continue;
        ms_range range = own_range(unit, p.tensor);
        for (long at = range.first; at < range.end && status == MS_OK; at += p.count) {
            long left = range.end - at;
            set_piece(&p, at,
                      v->with_values && left > MOST_AT_ONCE ? MOST_AT_ONCE : left);
            status = v->act(rank, unit, &p, v->state);
        }
    }
    ms_arena_close(arena);
    return status;
}

static bool has_master(const ms_param_unit *unit, const piece *p)
{
    return unit->precision.has_master && !p->segment->is_frozen;
}

/* Writes p->values as weights and, if there are any, as master weights; with
 * weights_in_bf16 both are rounded to bf16. Weights in NF4 are quantized then. */
static ms_status set_values(ms_rank *rank, const ms_param_unit *unit, const piece *p)
{
    const ms_array_ops *arrays = rank->backend->arrays;
    const ms_precision *precision = &unit->precision;
    for (long i = 0; i < p->count && precision->statistic == MS_SCALAR_FP32; i++)
        p->values[i] = (double)(float)p->values[i];
    for (long i = 0; i < p->count && rank->weights_in_bf16; i++)
        p->values[i] = ms_rounded_to_bf16(p->values[i]);
    if (p->segment->is_coded) {
        ms_segment_write_codes(p->segment, p->first, p->values, p->count);
        return MS_OK;
    }
    MS_TRY(arrays->write(rank->cx, rank->device, ms_segment_param_type(unit, p->segment),
                         ms_segment_param(unit, p->segment, p->first), p->values,
                         p->count));
    if (!has_master(unit, p))
        return MS_OK;
    return arrays->write(rank->cx, rank->device, precision->master,
                         ms_segment_master(unit, p->segment, p->first), p->values,
                         p->count);
}

/* Reads weights in NF4 as kernels do. */
static void get_decoded(const ms_param_unit *unit, const piece *p)
{
    ms_segment_read_codes(p->segment, p->first, p->values, p->count);
    for (long i = 0; i < p->count && unit->precision.real == MS_SCALAR_FP32; i++)
        p->values[i] = (double)(float)p->values[i];
}

/* Reads a piece's gradients, or its weights, from the masters if there are any. */
static ms_status get_values(ms_rank *rank, const ms_param_unit *unit, const piece *p,
                            ms_unit_content content)
{
    const ms_precision *precision = &unit->precision;
    ms_scalar scalar = precision->gradient;
    if (content == MS_UNIT_GRADIENTS && p->segment->is_frozen) {
        memset(p->values, 0, (size_t)p->count * sizeof *p->values);
        return MS_OK;
    }
    if (p->segment->is_coded) {
        get_decoded(unit, p);
        return MS_OK;
    }
    const void *from = ms_segment_gradient(unit, p->segment, p->first);
    if (content == MS_UNIT_WEIGHTS && has_master(unit, p)) {
        scalar = precision->master;
        from = ms_segment_master(unit, p->segment, p->first);
    } else if (content == MS_UNIT_WEIGHTS) {
        scalar = ms_segment_param_type(unit, p->segment);
        from = ms_segment_param(unit, p->segment, p->first);
    }
    return rank->backend->arrays->read(rank->cx, rank->device, scalar, p->values, from,
                                       p->count);
}

/* ---- initial values ---- */

static ms_initial_piece initial_piece(const ms_rank *rank, const ms_initial *initial,
                                      const piece *p)
{
    const ms_weight_name *name = &p->tensor->name;
    const ms_local *local = &p->tensor->local;
    char text[MS_NAME_TEXT];
    ms_weight_name_text(name, p->expert, text);
    ms_initial_piece out = {.key = ms_initial_key(initial, text),
                            .deviation = initial->deviation,
                            .spread = initial->spread,
                            .is_norm = name->is_norm,
                            .is_bias = name->is_bias,
                            .in_bf16 = rank->weights_in_bf16,
                            .num_dims = local->num_dims,
                            .offset = name->offset,
                            .count = name->count,
                            .first = p->first - p->tensor->first,
                            .number = p->count};
    static_assert(MS_MAX_DIMS == MS_INITIAL_DIMS,
                  "dims of kernels are those of programs");
    for (int d = 0; d < local->num_dims; d++) {
        out.shape[d] = local->shape[d];
        out.start[d] = local->start[d];
        out.stride[d] = name->stride[d];
    }
    return out;
}

static ms_status initialise_piece(ms_rank *rank, const ms_param_unit *unit,
                                  const piece *p, void *state)
{
    const ms_precision *precision = &unit->precision;
    const ms_array_ops *arrays = rank->backend->arrays;
    ms_initial_piece made = initial_piece(rank, state, p);
    if (p->segment->is_coded) {
        arrays->initialise(rank->device, MS_SCALAR_FP64, p->values, &made);
        return set_values(rank, unit, p);
    }
    arrays->initialise(rank->device, ms_segment_param_type(unit, p->segment),
                       ms_segment_param(unit, p->segment, p->first), &made);
    if (has_master(unit, p))
        arrays->initialise(rank->device, precision->master,
                           ms_segment_master(unit, p->segment, p->first), &made);
    return MS_OK;
}

ms_status ms_unit_initialise(ms_rank *rank, ms_param_unit *unit,
                             const ms_initial *initial)
{
    ms_initial how = *initial;
    visit all = {.act = initialise_piece, .state = &how};
    for (int i = 0; i < unit->num_segments; i++)
        all.with_values = all.with_values || unit->segments[i]->is_coded;
    return rank->backend->has_values ? for_each_piece(rank, unit, &all) : MS_OK;
}

/* ---- reading ---- */

typedef struct visitor_call {
    ms_unit_content content;
    ms_unit_visitor *call;
    void *state;
} visitor_call;

static ms_status visit_piece(ms_rank *rank, const ms_param_unit *unit, const piece *p,
                             void *state)
{
    const visitor_call *s = state;
    const ms_weight_name *name = &p->tensor->name;
    long count = 0;
    if (s->content == MS_UNIT_GRADIENTS && p->tensor->gradient < 0)
        return MS_OK;
    MS_TRY(get_values(rank, unit, p, s->content));
    for (long i = 0; i < p->count; i++) {
        if (p->indices[i] >= name->count)
            continue;
        p->indices[count] = p->indices[i];
        p->values[count++] = p->values[i];
    }
    return count > 0 ? s->call(s->state, name, p->expert, p->indices, p->values, count)
                     : MS_OK;
}

ms_status ms_unit_visit(ms_rank *rank, const ms_param_unit *unit, ms_unit_content content,
                        ms_unit_visitor *call, void *state)
{
    visitor_call s = {content, call, state};
    const visit counted = {true, true, visit_piece, &s};
    return rank->backend->has_values ? for_each_piece(rank, unit, &counted) : MS_OK;
}

/* ---- writing ---- */

typedef struct load {
    ms_tensor_finder *find;
    void *state;
    const ms_unit_tensor *tensor; /* tensor found by the last search */
    long expert;
    const double *values;
} load;

static ms_status no_tensor(ms_rank *rank, const ms_weight_name *name, const char *text)
{
    char shape[96] = "";
    size_t length = 0;
    for (int d = 0; d < name->num_dims && length < sizeof shape; d++)
        length += (size_t)snprintf(shape + length, sizeof shape - length, "%s%ld",
                                   d > 0 ? " x " : "", name->shape[d]);
    ms_fail(rank->cx, MS_EINPUT, MS_NOWHERE,
            "the weights have no tensor \"%s\" of shape %s", text, shape);
    return ms_hint(rank->cx, "names and shapes are those of Hugging Face");
}

static ms_status find_whole(ms_rank *rank, const piece *p, load *l)
{
    if (l->values != NULL && l->tensor == p->tensor && l->expert == p->expert)
        return MS_OK;
    const ms_weight_name *name = &p->tensor->name;
    char text[MS_NAME_TEXT];
    ms_weight_name_text(name, p->expert, text);
    l->tensor = p->tensor;
    l->expert = p->expert;
    l->values = l->find(l->state, text, name->num_dims, name->shape);
    return l->values != NULL ? MS_OK : no_tensor(rank, name, text);
}

static ms_status set_loaded(ms_rank *rank, const ms_param_unit *unit, const piece *p,
                            void *state)
{
    load *l = state;
    MS_TRY(find_whole(rank, p, l));
    for (long i = 0; i < p->count; i++)
        p->values[i] =
            p->indices[i] < p->tensor->name.count ? l->values[p->indices[i]] : 0.0;
    return set_values(rank, unit, p);
}

ms_status ms_unit_load(ms_rank *rank, ms_param_unit *unit, ms_tensor_finder *find,
                       void *state)
{
    load l = {.find = find, .state = state};
    const visit all = {.with_values = true, .act = set_loaded, .state = &l};
    return rank->backend->has_values ? for_each_piece(rank, unit, &all) : MS_OK;
}
