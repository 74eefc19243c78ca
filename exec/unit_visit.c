/* The rank's shard as pieces of whole tensors: initial values, files, checks. */
#include "exec/unit_priv.h"

#include <stdio.h>

#define PIECE 2048

/* Elements of one tensor, and of one expert, that lie one after the other in the shard. */
typedef struct piece {
    const ms_unit_tensor *tensor;
    ms_segment *segment;
    long first; /* element of the segment */
    long count;
    long expert; /* -1: none */
    long places
        [PIECE]; /* in the whole tensor; beyond its count: padding of the vocabulary */
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

/* The piece that begins at `element` of the tensor, up to `end`. */
static void set_piece(piece *p, long element, long end)
{
    const ms_unit_tensor *t = p->tensor;
    const ms_local *local = &t->local;
    long index[MS_MAX_DIMS];
    start_index(local, element, index);
    int by = t->name.expert_dim;
    p->first = t->first + element;
    p->expert = by >= 0 ? local->start[by] + index[by] : -1;
    for (p->count = 0; p->count < PIECE && element + p->count < end; p->count++) {
        if (by >= 0 && local->start[by] + index[by] != p->expert)
            break;
        p->places[p->count] = place_of(t, index);
        step_index(local, index);
    }
}

static ms_status for_pieces(ms_rank *rank, const ms_param_unit *unit, bool counted_only,
                            piece_action *act, void *state)
{
    for (int i = 0; i < unit->num_tensors; i++) {
        const ms_unit_tensor *t = &unit->tensors[i];
        if (t->segment < unit->num_borrowed || (counted_only && !t->counts))
            continue;
        piece p = {.tensor = t, .segment = unit->segments[t->segment]};
        ms_range part = ms_range_overlap(p.segment->own,
                                         (ms_range){t->first, t->first + t->local.count});
        long end = part.end - t->first;
        for (long at = part.first - t->first; at < end; at += p.count) {
            set_piece(&p, at, end);
            MS_TRY(act(rank, unit, &p, state));
        }
    }
    return MS_OK;
}

static ms_status set_values(ms_rank *rank, const ms_param_unit *unit, const piece *p,
                            const double *values)
{
    const ms_array_ops *arrays = rank->backend->arrays;
    const ms_precision *precision = &unit->precision;
    MS_TRY(arrays->write(rank->cx, rank->device, precision->real,
                         ms_segment_param(unit, p->segment, p->first), values, p->count));
    if (!precision->has_master)
        return MS_OK;
    return arrays->write(rank->cx, rank->device, precision->state,
                         ms_segment_master(unit, p->segment, p->first), values, p->count);
}

/* The most exact weights that there are. */
static ms_status get_values(ms_rank *rank, const ms_param_unit *unit, const piece *p,
                            ms_unit_content content, double *values)
{
    const ms_precision *precision = &unit->precision;
    ms_scalar scalar = precision->gradient;
    const void *from = ms_segment_gradient(unit, p->segment, p->first);
    if (content == MS_UNIT_WEIGHTS) {
        scalar = precision->has_master ? precision->state : precision->real;
        from = precision->has_master ? ms_segment_master(unit, p->segment, p->first)
                                     : ms_segment_param(unit, p->segment, p->first);
    }
    return rank->backend->arrays->read(rank->cx, rank->device, scalar, values, from,
                                       p->count);
}

/* ---- initial values ---- */

static ms_status initialise(ms_rank *rank, const ms_param_unit *unit, const piece *p,
                            void *state)
{
    const ms_initial *initial = state;
    const ms_weight_name *name = &p->tensor->name;
    char text[MS_NAME_TEXT];
    ms_weight_name_text(name, p->expert, text);
    uint64_t key = ms_initial_key(initial, text);
    double values[PIECE];
    for (long i = 0; i < p->count; i++) {
        bool is_padding = p->places[i] >= name->count;
        values[i] = is_padding ? 0.0
                               : ms_initial_value(initial, key, p->places[i],
                                                  name->is_norm, name->is_bias);
    }
    return set_values(rank, unit, p, values);
}

ms_status ms_unit_initialise(ms_rank *rank, ms_param_unit *unit,
                             const ms_initial *initial)
{
    ms_initial how = *initial;
    if (!rank->backend->has_values)
        return MS_OK;
    return for_pieces(rank, unit, false, initialise, &how);
}

/* ---- reading ---- */

typedef struct visit {
    ms_unit_content content;
    ms_unit_visitor *call;
    void *state;
} visit;

static ms_status show(ms_rank *rank, const ms_param_unit *unit, const piece *p,
                      void *state)
{
    const visit *v = state;
    const ms_weight_name *name = &p->tensor->name;
    if (v->content == MS_UNIT_GRADIENTS && p->tensor->gradient < 0)
        return MS_OK;
    double values[PIECE];
    long places[PIECE], count = 0;
    MS_TRY(get_values(rank, unit, p, v->content, values));
    for (long i = 0; i < p->count; i++) {
        if (p->places[i] >= name->count)
            continue;
        places[count] = p->places[i];
        values[count++] = values[i];
    }
    return count > 0 ? v->call(v->state, name, p->expert, places, values, count) : MS_OK;
}

ms_status ms_unit_visit(ms_rank *rank, const ms_param_unit *unit, ms_unit_content content,
                        ms_unit_visitor *call, void *state)
{
    visit v = {content, call, state};
    if (!rank->backend->has_values)
        return MS_OK;
    return for_pieces(rank, unit, true, show, &v);
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
    double values[PIECE];
    for (long i = 0; i < p->count; i++)
        values[i] = p->places[i] < p->tensor->name.count ? l->values[p->places[i]] : 0.0;
    return set_values(rank, unit, p, values);
}

ms_status ms_unit_load(ms_rank *rank, ms_param_unit *unit, ms_tensor_finder *find,
                       void *state)
{
    load l = {.find = find, .state = state};
    if (!rank->backend->has_values)
        return MS_OK;
    return for_pieces(rank, unit, false, set_loaded, &l);
}
