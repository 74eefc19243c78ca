/* Attention of the interpreter: rotary positions, causal attention, and the keys of MLA. */
#include "tests/support/interpreter_priv.h"

#include <math.h>
#include <string.h>

#define ROTARY_BASE 10000.0

void ms_interp_rotary(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *x = ms_interp_in(run, node, 0, rank);
    ms_cell *out = ms_interp_out(run, node, 0, rank);
    const char *dims = run->program->tensors[node->in[0]].dims;
    const char *where = strchr(dims, MS_DIM_SEQUENCE);
    long width = node->rotary_width, last = ms_cell_last(x);
    if (where == NULL || width <= 0 || width % 2 != 0 || width > last) {
        ms_interp_fail(run, node, "rotary width %ld of %s with last dim %ld", width, dims,
                       last);
        return;
    }
    if (!ms_interp_expect(run, node, out, x->count))
        return;
    long first = ms_interp_box(run, node->in[0], rank).start[where - dims];
    long length = x->shape[where - dims], inner = 1; /* elements per sequence index */
    for (long i = where - dims + 1; i < x->num_dims; i++)
        inner *= x->shape[i];
    memcpy(out->values, x->values, (size_t)x->count * sizeof(double));
    for (long row = 0; row < x->count; row += last) {
        long position = ms_interp_position(run, first + row / inner % length);
        const double *from = x->values + row + last - width;
        double *to = out->values + row + last - width;
        for (long i = 0; i < width / 2; i++) {
            double angle =
                (double)position / pow(ROTARY_BASE, 2.0 * (double)i / (double)width);
            double sine = node->inverse ? -sin(angle) : sin(angle), cosine = cos(angle);
            to[i] = from[i] * cosine - from[i + width / 2] * sine;
            to[i + width / 2] = from[i + width / 2] * cosine + from[i] * sine;
        }
    }
}

/* Shapes and positions of one attention on one rank. */
typedef struct attention {
    const ms_cell *q, *k, *v;
    long num_batch, num_queries, num_keys, num_heads, num_kv_heads, width, value_width;
    long first_query, first_key; /* stored indices */
    long window;
    double scale;
} attention;

static bool read_attention(ms_interp *run, const ms_node *node, int rank, attention *a)
{
    *a = (attention){.q = ms_interp_in(run, node, 0, rank),
                     .k = ms_interp_in(run, node, 1, rank),
                     .v = ms_interp_in(run, node, 2, rank),
                     .window = node->window_tokens};
    if (a->q->num_dims != 4 || a->k->num_dims != 4 || a->v->num_dims != 4) {
        ms_interp_fail(run, node, "queries, keys and values need 4 dims");
        return false;
    }
    a->num_batch = a->q->shape[0];
    a->num_queries = a->q->shape[1];
    a->num_heads = a->q->shape[2];
    a->width = a->q->shape[3];
    a->num_keys = a->k->shape[1];
    a->num_kv_heads = a->k->shape[2];
    a->value_width = a->v->shape[3];
    a->first_query = ms_interp_box(run, node->in[0], rank).start[1];
    a->first_key = ms_interp_box(run, node->in[1], rank).start[1];
    a->scale = 1 / sqrt((double)a->width);
    if (a->num_heads % a->num_kv_heads != 0 ||
        a->num_keys != ms_interp_size(run, MS_DIM_SEQUENCE)) {
        ms_interp_fail(run, node, "%ld heads, %ld kv heads and %ld keys on rank %d",
                       a->num_heads, a->num_kv_heads, a->num_keys, rank);
        return false;
    }
    return ms_interp_expect(run, node, a->k,
                            a->num_batch * a->num_keys * a->num_kv_heads * a->width) &&
           ms_interp_expect(run, node, a->v,
                            a->num_batch * a->num_keys * a->num_kv_heads *
                                a->value_width);
}

static bool sees(const ms_interp *run, const attention *a, long query, long key)
{
    long at = ms_interp_position(run, a->first_query + query);
    long of = ms_interp_position(run, a->first_key + key);
    return of <= at && (a->window == 0 || of > at - a->window);
}

/* First element of one query (of a tensor [b s n ..]) and of one key. */
static long query_at(const attention *a, long b, long query, long head)
{
    return (b * a->num_queries + query) * a->num_heads + head;
}

static long key_at(const attention *a, long b, long key, long head)
{
    return (b * a->num_keys + key) * a->num_kv_heads +
           head / (a->num_heads / a->num_kv_heads);
}

static double dot(const double *a, const double *b, long count)
{
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static void add_scaled(double *to, const double *from, double factor, long count)
{
    for (long i = 0; i < count; i++)
        to[i] += factor * from[i];
}

static double score(const attention *a, long b, long query, long key, long head)
{
    return a->scale * dot(a->q->values + query_at(a, b, query, head) * a->width,
                          a->k->values + key_at(a, b, key, head) * a->width, a->width);
}

static long attend(const ms_interp *run, const attention *a, long row,
                   double *probability, double *o, double *lse)
{
    long head = row % a->num_heads, query = row / a->num_heads % a->num_queries;
    long b = row / a->num_heads / a->num_queries;
    double largest = -HUGE_VAL, sum = 0;
    long num_pairs = 0;
    for (long key = 0; key < a->num_keys; key++) {
        if (!sees(run, a, query, key))
            continue;
        probability[key] = score(a, b, query, key, head);
        largest = fmax(largest, probability[key]);
        num_pairs++;
    }
    for (long key = 0; key < a->num_keys; key++)
        if (sees(run, a, query, key))
            sum += exp(probability[key] - largest);
    *lse = largest + log(sum);
    for (long key = 0; key < a->num_keys; key++) {
        if (!sees(run, a, query, key))
            continue;
        probability[key] = exp(probability[key] - *lse);
        add_scaled(o, a->v->values + key_at(a, b, key, head) * a->value_width,
                   probability[key], a->value_width);
    }
    return num_pairs;
}

void ms_interp_attention(ms_interp *run, const ms_node *node, int rank)
{
    attention a;
    if (!read_attention(run, node, rank, &a))
        return;
    ms_cell *o = ms_interp_out(run, node, 0, rank),
            *lse = ms_interp_out(run, node, 1, rank);
    ms_cell *scores = node->num_out > 2 ? ms_interp_out(run, node, 2, rank) : NULL;
    long num_rows = a.num_batch * a.num_queries * a.num_heads, num_pairs = 0;
    if (!ms_interp_expect(run, node, o, num_rows * a.value_width) ||
        !ms_interp_expect(run, node, lse, num_rows) ||
        (scores != NULL && !ms_interp_expect(run, node, scores, num_rows * a.num_keys)))
        return;
    double *scratch = MS_NEW_ARRAY(run->arena, a.num_keys, double);
    for (long row = 0; row < num_rows; row++) {
        long head = row % a.num_heads, query = row / a.num_heads % a.num_queries;
        long b = row / a.num_heads / a.num_queries;
        double *probability = scratch;
        if (scores != NULL)
            probability = scores->values +
                          ((b * a.num_heads + head) * a.num_queries + query) * a.num_keys;
        num_pairs += attend(run, &a, row, probability, o->values + row * a.value_width,
                            &lse->values[row]);
    }
    ms_interp_count_flop(run, node,
                         2.0 * (double)num_pairs * (double)(a.width + a.value_width));
}

/* Operands and results of the backward pass beyond q, k, v. */
typedef struct attention_grad {
    const ms_cell *o, *lse, *go, *scores;
    ms_cell *gq, *gk, *gv;
} attention_grad;

static long attend_grad(const ms_interp *run, const attention *a, const attention_grad *g,
                        long b, long query, long head)
{
    long row = query_at(a, b, query, head), num_pairs = 0;
    const double *go = g->go->values + row * a->value_width;
    double mean = dot(go, g->o->values + row * a->value_width, a->value_width);
    for (long key = 0; key < a->num_keys; key++) {
        if (!sees(run, a, query, key))
            continue;
        long at = key_at(a, b, key, head);
        double p =
            g->scores != NULL
                ? g->scores->values[((b * a->num_heads + head) * a->num_queries + query) *
                                        a->num_keys +
                                    key]
                : exp(score(a, b, query, key, head) - g->lse->values[row]);
        double gp = dot(go, a->v->values + at * a->value_width, a->value_width);
        double gscore = p * (gp - mean) * a->scale;
        add_scaled(g->gv->values + at * a->value_width, go, p, a->value_width);
        add_scaled(g->gq->values + row * a->width, a->k->values + at * a->width, gscore,
                   a->width);
        add_scaled(g->gk->values + at * a->width, a->q->values + row * a->width, gscore,
                   a->width);
        num_pairs++;
    }
    return num_pairs;
}

/* Products: scores again (unless they were kept), gv, gp, gq, gk. */
void ms_interp_attention_grad(ms_interp *run, const ms_node *node, int rank)
{
    attention a;
    if (!read_attention(run, node, rank, &a))
        return;
    attention_grad g = {.o = ms_interp_in(run, node, 3, rank),
                        .lse = ms_interp_in(run, node, 4, rank),
                        .go = ms_interp_in(run, node, 5, rank),
                        .scores =
                            node->num_in > 6 ? ms_interp_in(run, node, 6, rank) : NULL,
                        .gq = ms_interp_out(run, node, 0, rank),
                        .gk = ms_interp_out(run, node, 1, rank),
                        .gv = ms_interp_out(run, node, 2, rank)};
    long num_rows = a.num_batch * a.num_queries * a.num_heads, num_pairs = 0;
    if (!ms_interp_expect(run, node, g.o, num_rows * a.value_width) ||
        !ms_interp_expect(run, node, g.go, g.o->count) ||
        !ms_interp_expect(run, node, g.lse, num_rows) ||
        !ms_interp_expect(run, node, g.gq, a.q->count) ||
        !ms_interp_expect(run, node, g.gk, a.k->count) ||
        !ms_interp_expect(run, node, g.gv, a.v->count) ||
        (g.scores != NULL &&
         !ms_interp_expect(run, node, g.scores, num_rows * a.num_keys)))
        return;
    for (long row = 0; row < num_rows; row++)
        num_pairs += attend_grad(run, &a, &g, row / a.num_heads / a.num_queries,
                                 row / a.num_heads % a.num_queries, row % a.num_heads);
    long score_products = g.scores != NULL ? 2 : 3;
    ms_interp_count_flop(run, node,
                         2.0 * (double)num_pairs *
                             (double)(score_products * a.width + 2 * a.value_width));
}

void ms_interp_mla_keys(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *up = ms_interp_in(run, node, 0, rank),
                  *rope = ms_interp_in(run, node, 1, rank);
    ms_cell *k = ms_interp_out(run, node, 0, rank),
            *v = ms_interp_out(run, node, 1, rank);
    long width = ms_cell_last(k), rope_width = ms_cell_last(rope),
         nope = width - rope_width;
    long value_width = ms_cell_last(v), num_rows = ms_cell_leading(up),
         num_heads = up->shape[2];
    if (!ms_interp_expect(run, node, up, num_rows * (nope + value_width)) ||
        !ms_interp_expect(run, node, k, num_rows * width) ||
        !ms_interp_expect(run, node, v, num_rows * value_width) ||
        !ms_interp_expect(run, node, rope, num_rows / num_heads * rope_width))
        return;
    for (long row = 0; row < num_rows; row++) {
        const double *from = up->values + row * (nope + value_width);
        const double *shared = rope->values + row / num_heads * rope_width;
        memcpy(k->values + row * width, from, (size_t)nope * sizeof(double));
        memcpy(k->values + row * width + nope, shared,
               (size_t)rope_width * sizeof(double));
        memcpy(v->values + row * value_width, from + nope,
               (size_t)value_width * sizeof(double));
    }
}

void ms_interp_mla_keys_grad(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *gk = ms_interp_in(run, node, 0, rank),
                  *gv = ms_interp_in(run, node, 1, rank);
    ms_cell *gup = ms_interp_out(run, node, 0, rank),
            *grope = ms_interp_out(run, node, 1, rank);
    long width = ms_cell_last(gk), rope_width = ms_cell_last(grope),
         nope = width - rope_width;
    long value_width = ms_cell_last(gv), num_rows = ms_cell_leading(gk),
         num_heads = gk->shape[2];
    if (!ms_interp_expect(run, node, gup, num_rows * (nope + value_width)) ||
        !ms_interp_expect(run, node, gv, num_rows * value_width) ||
        !ms_interp_expect(run, node, grope, num_rows / num_heads * rope_width))
        return;
    for (long row = 0; row < num_rows; row++) {
        double *to = gup->values + row * (nope + value_width);
        memcpy(to, gk->values + row * width, (size_t)nope * sizeof(double));
        memcpy(to + nope, gv->values + row * value_width,
               (size_t)value_width * sizeof(double));
        add_scaled(grope->values + row / num_heads * rope_width,
                   gk->values + row * width + nope, 1, rope_width);
    }
}
