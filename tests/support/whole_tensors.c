#include "tests/support/whole_tensors.h"

#include <math.h>
#include <string.h>

/* ---- tensors ---- */

ms_whole_tensor *ms_whole_find(const ms_whole *whole, const char *name)
{
    for (int i = 0; i < whole->num; i++)
        if (strcmp(whole->tensors[i].name, name) == 0)
            return &whole->tensors[i];
    return NULL;
}

const double *ms_whole_find_initial(void *state, const char *name, int num_dims,
                                    const long *shape)
{
    const ms_whole_tensor *t = ms_whole_find(state, name);
    long count = 1;
    for (int d = 0; d < num_dims; d++)
        count *= shape[d];
    return t != NULL && t->count == count ? t->initial : NULL;
}

static void add(ms_whole *whole, ms_arena *arena, const ms_weight_name *name, long expert)
{
    char text[MS_NAME_TEXT];
    ms_weight_name_text(name, expert, text);
    if (ms_whole_find(whole, text) != NULL)
        return;
    long count = name->count;
    ms_whole_tensor *t = &whole->tensors[whole->num++];
    *t = (ms_whole_tensor){.name = ms_arena_strdup(arena, text),
                           .count = count,
                           .is_norm = name->is_norm,
                           .is_bias = name->is_bias,
                           .has_gradient = MS_NEW_ARRAY(arena, count, bool),
                           .visits = MS_NEW_ARRAY(arena, count, int)};
    t->num_dims = name->num_dims;
    memcpy(t->shape, name->shape, sizeof t->shape);
    double **arrays[] = {&t->initial,    &t->gradient,   &t->weight,
                         &t->moments[0], &t->moments[1], &t->seen};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = MS_NEW_ARRAY(arena, count, double);
    uint64_t key = ms_initial_key(&whole->initial, text);
    for (long i = 0; i < count; i++)
        t->initial[i] = t->weight[i] =
            ms_initial_value(&whole->initial, key, i, t->is_norm, t->is_bias);
}

typedef void weight_action(ms_whole *whole, void *state, const ms_program *program,
                           int weight, const ms_weight_name *name);

static void for_weights(ms_whole *whole, void *state, weight_action *act)
{
    for (int s = 0; s < whole->planned->pipeline.split->num_stages; s++) {
        for (int i = 0; i < whole->parts[s].num; i++) {
            const ms_program *program = whole->parts[s].blocks[i]->program;
            for (int t = 0; t < program->num_tensors; t++) {
                ms_weight_name name;
                if (program->tensors[t].role != MS_ROLE_WEIGHT)
                    continue;
                ms_weight_name_of(program, t, ms_whole_layer(whole, s, i), &name);
                act(whole, state, program, t, &name);
            }
        }
    }
}

static void add_weight(ms_whole *whole, void *arena, const ms_program *program,
                       int weight, const ms_weight_name *name)
{
    (void)weight;
    for (long e = 0; name->expert_dim >= 0 && e < program->model->moe.num_experts; e++)
        add(whole, arena, name, e);
    if (name->expert_dim < 0)
        add(whole, arena, name, -1);
}

#define MOST_TENSORS 512

ms_whole *ms_whole_make(ms_arena *arena, const ms_planned *planned, const ms_world *world,
                        ms_initial initial)
{
    ms_whole *whole = MS_NEW(arena, ms_whole);
    *whole = (ms_whole){.planned = planned,
                        .world = world,
                        .parts = ms_stage_blocks_make(arena, planned),
                        .initial = initial,
                        .tensors = MS_NEW_ARRAY(arena, MOST_TENSORS, ms_whole_tensor)};
    for_weights(whole, arena, add_weight);
    return whole;
}

long ms_whole_layer(const ms_whole *whole, int stage, int block)
{
    const ms_stage_blocks *blocks = &whole->parts[stage];
    if (blocks->blocks[block]->program->key.block != MS_BLOCK_LAYER)
        return -1;
    bool has_embedding = blocks->blocks[0]->program->key.block == MS_BLOCK_EMBED;
    return whole->planned->pipeline.split->first_layer[stage] + block - has_embedding;
}

/* ---- elements ---- */

long ms_whole_place(ms_whole_cursor *cursor, long element)
{
    const ms_weight_name *name = cursor->name;
    const ms_local *local = cursor->local;
    long expert = -1, place = name->offset;
    for (int d = local->num_dims - 1; d >= 0; d--) {
        long global = local->start[d] + element % local->shape[d];
        element /= local->shape[d];
        place += global * name->stride[d];
        if (d == name->expert_dim)
            expert = global;
    }
    if (cursor->tensor == NULL || expert != cursor->expert) {
        char text[MS_NAME_TEXT];
        ms_weight_name_text(name, expert, text);
        cursor->tensor = ms_whole_find(cursor->whole, text);
        cursor->expert = expert;
    }
    return place < name->count ? place : -1;
}

/* ---- gradients ---- */

/* Contribution of a rank to an element's gradient: it depends on the rank's part of the
 * batch (its place in the dense or sparse mesh), and on its tp coordinate where gradients
 * are partial sums over tp. */
double ms_whole_contribution(const ms_whole *whole, const ms_program *program, int weight,
                             const ms_place *at, long microbatch, long place)
{
    const ms_tensor *t = &program->tensors[weight];
    const ms_tensor *gradient = &program->tensors[t->gradient];
    bool partial =
        gradient->at[2].kind == MS_PARTIAL_SUM && program->mesh_size[t->mesh][2] > 1;
    long rank = t->mesh == MS_SPARSE_MESH ? at->edp : at->dp * whole->world->cp + at->cp;
    long part = program->key.block == MS_BLOCK_HEAD ? 10 : 1;
    return (double)((1 + rank + (partial ? 100 * at->tp : 0)) * part * (1 + microbatch) *
                    (place % 11 - 4));
}

/* Adds the gradient contributions of every rank whose coordinates make them a distinct
 * summand. */
static void sum_weight(ms_whole *whole, void *state, const ms_program *program,
                       int weight, const ms_weight_name *name)
{
    const ms_tensor *t = &program->tensors[weight];
    const long *num_microbatches = state;
    if (t->gradient < 0)
        return;
    bool sparse = t->mesh == MS_SPARSE_MESH;
    bool split = t->at[2].kind == MS_SHARD ||
                 program->tensors[t->gradient].at[2].kind == MS_PARTIAL_SUM;
    for (long rank = 0; rank < whole->world->num_ranks; rank++) {
        const ms_place *at = &whole->world->places[rank];
        if (at->pp != 0 || (!split && (sparse ? at->etp : at->tp) != 0))
            continue;
        ms_local local = ms_world_local(whole->world, program, weight, at);
        ms_whole_cursor cursor = {whole, name, &local, -1, NULL};
        for (long e = 0; e < local.count; e++) {
            long place = ms_whole_place(&cursor, e);
            for (long m = 0; place >= 0 && m < *num_microbatches; m++)
                cursor.tensor->gradient[place] +=
                    ms_whole_contribution(whole, program, weight, at, m, place);
            if (place >= 0)
                cursor.tensor->has_gradient[place] = true;
        }
    }
}

void ms_whole_sum(ms_whole *whole, long num_microbatches)
{
    for (int i = 0; i < whole->num; i++)
        memset(whole->tensors[i].gradient, 0,
               (size_t)whole->tensors[i].count * sizeof(double));
    for_weights(whole, &num_microbatches, sum_weight);
}

double ms_whole_sum_of_squares(const ms_whole *whole)
{
    double sum = 0.0;
    for (int i = 0; i < whole->num; i++)
        for (long e = 0; e < whole->tensors[i].count; e++)
            sum += whole->tensors[i].gradient[e] * whole->tensors[i].gradient[e];
    return sum;
}
