/* The rank's shard as pieces of whole tensors: initial values, files, checks. */
#include "exec/unit_priv.h"

#include <assert.h>
#include <stdio.h>

/* Elements that are read or written at once, at most: enough for a bus to be busy with,
 * while the program's copy stays small. */
#define MOST_AT_ONCE (2L << 20)

/* Elements of one tensor, and of one expert, that lie one after the other in the shard. */
typedef struct piece {
    const ms_unit_tensor *tensor;
    ms_segment *segment;
    long first; /* element of the segment */
    long count;
    long expert; /* -1: none */
    /* (MOST_AT_ONCE, or as many as the largest tensor has); NULL: not asked for */
    long *places;   /* in the whole tensor; beyond its count: padding of the vocabulary */
    double *values; /* room for the numbers */
} piece;

typedef ms_status piece_action(ms_rank *rank, const ms_param_unit *unit, const piece *p,
                               void *state);

/* ---- places ---- */

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

static long place_of(const ms_unit_tensor *t, const long index[MS_MAX_DIMS])
{
    long place = t->name.offset;
    for (int d = 0; d < t->local.num_dims; d++)
        place += t->name.stride[d] * (t->local.start[d] + index[d]);
    return place;
}

/* Elements from `element` on, up to `end`, that are of one expert. */
static long same_expert(const ms_unit_tensor *t, long element, long end)
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

/* The piece that begins at `element` of the tensor, of up to `most` elements. */
static void set_piece(piece *p, long element, long most)
{
    const ms_unit_tensor *t = p->tensor;
    const ms_local *local = &t->local;
    long index[MS_MAX_DIMS];
    start_index(local, element, index);
    int by = t->name.expert_dim;
    p->first = t->first + element;
    p->expert = by >= 0 ? local->start[by] + index[by] : -1;
    p->count = same_expert(t, element, element + most);
    for (long i = 0; i < p->count && p->places != NULL; i++) {
        p->places[i] = place_of(t, index);
        step_index(local, index);
    }
}

/* What is done to pieces of a unit's tensors. */
typedef struct visit {
    bool counted_only; /* elements that the rank answers for */
    bool with_values;  /* in the program's memory, and their places */
    piece_action *act;
    void *state;
} visit;

static ms_range own_part(const ms_param_unit *unit, const ms_unit_tensor *t)
{
    ms_range part = ms_range_overlap(unit->segments[t->segment]->own,
                                     (ms_range){t->first, t->first + t->local.count});
    return (ms_range){part.first - t->first, part.end - t->first};
}

static bool is_visited(const ms_param_unit *unit, const ms_unit_tensor *t, const visit *v)
{
    return t->segment >= unit->num_borrowed && (t->counts || !v->counted_only);
}

static void make_rooms(ms_arena *arena, const ms_param_unit *unit, const visit *v,
                       piece *p)
{
    long room = 0;
    for (int i = 0; i < unit->num_tensors; i++) {
        ms_range part = own_part(unit, &unit->tensors[i]);
        if (is_visited(unit, &unit->tensors[i], v))
            room = part.end - part.first > room ? part.end - part.first : room;
    }
    room = room < MOST_AT_ONCE ? room : MOST_AT_ONCE;
    p->places = MS_NEW_ARRAY(arena, room, long);
    p->values = MS_NEW_ARRAY(arena, room, double);
}

static ms_status for_pieces(ms_rank *rank, const ms_param_unit *unit, const visit *v)
{
    piece p = {0};
    ms_arena *arena = ms_arena_open();
    ms_status status = MS_OK;
    if (v->with_values)
        make_rooms(arena, unit, v, &p);
    for (int i = 0; i < unit->num_tensors; i++) {
        p.tensor = &unit->tensors[i];
        p.segment = unit->segments[p.tensor->segment];
        if (!is_visited(unit, p.tensor, v))
            continue;
        ms_range part = own_part(unit, p.tensor);
        for (long at = part.first; at < part.end && status == MS_OK; at += p.count) {
            long left = part.end - at;
            set_piece(&p, at,
                      v->with_values && left > MOST_AT_ONCE ? MOST_AT_ONCE : left);
            status = v->act(rank, unit, &p, v->state);
        }
    }
    ms_arena_close(arena);
    return status;
}

/* Weights in bf16 are their masters rounded, as after a step of the optimizer. */
static ms_status set_values(ms_rank *rank, const ms_param_unit *unit, const piece *p)
{
    const ms_array_ops *arrays = rank->backend->arrays;
    const ms_precision *precision = &unit->precision;
    for (long i = 0; i < p->count && precision->state == MS_SCALAR_FP32; i++)
        p->values[i] = (double)(float)p->values[i];
    for (long i = 0; i < p->count && rank->weights_in_bf16; i++)
        p->values[i] = ms_rounded_to_bf16((float)p->values[i]);
    MS_TRY(arrays->write(rank->cx, rank->device, precision->real,
                         ms_segment_param(unit, p->segment, p->first), p->values,
                         p->count));
    if (!precision->has_master)
        return MS_OK;
    return arrays->write(rank->cx, rank->device, precision->state,
                         ms_segment_master(unit, p->segment, p->first), p->values,
                         p->count);
}

/* The most exact weights that there are. */
static ms_status get_values(ms_rank *rank, const ms_param_unit *unit, const piece *p,
                            ms_unit_content content)
{
    const ms_precision *precision = &unit->precision;
    ms_scalar scalar = precision->gradient;
    const void *from = ms_segment_gradient(unit, p->segment, p->first);
    if (content == MS_UNIT_WEIGHTS) {
        scalar = precision->has_master ? precision->state : precision->real;
        from = precision->has_master ? ms_segment_master(unit, p->segment, p->first)
                                     : ms_segment_param(unit, p->segment, p->first);
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

static ms_status initialise(ms_rank *rank, const ms_param_unit *unit, const piece *p,
                            void *state)
{
    const ms_precision *precision = &unit->precision;
    const ms_array_ops *arrays = rank->backend->arrays;
    ms_initial_piece made = initial_piece(rank, state, p);
    arrays->initialise(rank->device, precision->real,
                       ms_segment_param(unit, p->segment, p->first), &made);
    if (precision->has_master)
        arrays->initialise(rank->device, precision->state,
                           ms_segment_master(unit, p->segment, p->first), &made);
    return MS_OK;
}

ms_status ms_unit_initialise(ms_rank *rank, ms_param_unit *unit,
                             const ms_initial *initial)
{
    ms_initial how = *initial;
    const visit all = {.act = initialise, .state = &how};
    return rank->backend->has_values ? for_pieces(rank, unit, &all) : MS_OK;
}

/* ---- reading ---- */

typedef struct showing {
    ms_unit_content content;
    ms_unit_visitor *call;
    void *state;
} showing;

static ms_status show(ms_rank *rank, const ms_param_unit *unit, const piece *p,
                      void *state)
{
    const showing *s = state;
    const ms_weight_name *name = &p->tensor->name;
    long count = 0;
    if (s->content == MS_UNIT_GRADIENTS && p->tensor->gradient < 0)
        return MS_OK;
    MS_TRY(get_values(rank, unit, p, s->content));
    for (long i = 0; i < p->count; i++) {
        if (p->places[i] >= name->count)
            continue;
        p->places[count] = p->places[i];
        p->values[count++] = p->values[i];
    }
    return count > 0 ? s->call(s->state, name, p->expert, p->places, p->values, count)
                     : MS_OK;
}

ms_status ms_unit_visit(ms_rank *rank, const ms_param_unit *unit, ms_unit_content content,
                        ms_unit_visitor *call, void *state)
{
    showing s = {content, call, state};
    const visit counted = {true, true, show, &s};
    return rank->backend->has_values ? for_pieces(rank, unit, &counted) : MS_OK;
}

/* ---- writing ---- */

typedef struct load {
    ms_tensor_finder *find;
    void *state;
    /* found last */
    const ms_unit_tensor *tensor;
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
    ms_hint(rank->cx, "names and shapes are those of Hugging Face");
    return MS_EINPUT;
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
            p->places[i] < p->tensor->name.count ? l->values[p->places[i]] : 0.0;
    return set_values(rank, unit, p);
}

ms_status ms_unit_load(ms_rank *rank, ms_param_unit *unit, ms_tensor_finder *find,
                       void *state)
{
    load l = {.find = find, .state = state};
    const visit all = {.with_values = true, .act = set_loaded, .state = &l};
    return rank->backend->has_values ? for_pieces(rank, unit, &all) : MS_OK;
}
