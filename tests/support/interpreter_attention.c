/* Attention in the reference interpreter: rotary positions, causal attention, and the
 * keys of latent attention (MLA). */
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
    /* inner: elements per sequence index */
    long length = x->shape[where - dims], inner = 1;
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

/* The queries of one rank and one block of keys and values: all keys, or those of one cp
 * rank in ring attention. */
typedef struct attention {
    const ms_cell *q, *k, *v;
    long num_batch, num_queries, num_keys, num_heads, num_kv_heads, width, value_width;
    long first_query, first_key; /* first stored sequence index of queries and keys */
    long window;
    long score_width; /* row length of the score tensor: the whole sequence */
    double scale;
} attention;

static long num_blocks(const ms_interp *run, const ms_node *node)
{
    return node->ring ? run->program->mesh_size[MS_DENSE_MESH][1] : 1;
}

/* The rank whose keys and values `rank` works on in ring step `step`: blocks travel to
 * the next rank. */
static int owner_of(const ms_interp *run, const ms_node *node, int rank, long step)
{
    if (!node->ring)
        return rank;
    long ranks = num_blocks(run, node);
    long own = ms_interp_coordinate(run, MS_DENSE_MESH, 1, rank);
    return ms_interp_peer(run, MS_DENSE_MESH, 1, rank, (own - step + ranks) % ranks);
}

static bool read_attention(ms_interp *run, const ms_node *node, int rank, long step,
                           attention *a)
{
    int owner = owner_of(run, node, rank, step);
    *a = (attention){.q = ms_interp_in(run, node, 0, rank),
                     .k = ms_interp_in(run, node, 1, owner),
                     .v = ms_interp_in(run, node, 2, owner),
                     .window = node->window_tokens,
                     .score_width = ms_interp_size(run, MS_DIM_SEQUENCE)};
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
    a->first_key = ms_interp_box(run, node->in[1], owner).start[1];
    a->scale = 1 / sqrt((double)a->width);
    if (a->num_heads % a->num_kv_heads != 0 ||
        a->num_keys * num_blocks(run, node) != a->score_width) {
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

/* Row index of a query in a tensor [b s n ..], and of a key in [b t g ..] for a query
 * head. */
static long query_at(const attention *a, long b, long query, long head)
{
    return (b * a->num_queries + query) * a->num_heads + head;
}

static long key_at(const attention *a, long b, long key, long head)
{
    return (b * a->num_keys + key) * a->num_kv_heads +
           head / (a->num_heads / a->num_kv_heads);
}

/* Scores of query row `row` with the first key of the block, in the tensor [b n s t]. */
static double *scores_at(const attention *a, const ms_cell *scores, long row)
{
    long head = row % a->num_heads, query = row / a->num_heads % a->num_queries;
    long b = row / a->num_heads / a->num_queries;
    return scores->values +
           ((b * a->num_heads + head) * a->num_queries + query) * a->score_width +
           a->first_key;
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

/* Attends one query row to one block: probabilities within the block, their weighted sum
 * of values (added to `o`), and their log-sum-exp (minus infinity if no key is seen).
 * Returns the number of pairs. */
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
    *lse = -HUGE_VAL;
    if (num_pairs == 0)
        return 0;
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

/* Merges attention results of two sets of keys: (o, lse) becomes that of both. */
static void merge(double *o, double *lse, const double *block_o, double block_lse,
                  long width)
{
    if (block_lse == -HUGE_VAL)
        return;
    double largest = fmax(*lse, block_lse);
    double both = largest + log(exp(*lse - largest) + exp(block_lse - largest));
    for (long i = 0; i < width; i++)
        o[i] = o[i] * exp(*lse - both) + block_o[i] * exp(block_lse - both);
    *lse = both;
}

/* Results of a rank's attention node; scores NULL: not stored. */
typedef struct attended {
    ms_cell *o, *lse, *scores;
    double *block_o, *block_lse,
        /* scratch: one value row, log-sum-exps (blocks * rows), probabilities (keys) */
        *probability;
} attended;

static long attend_block(const ms_interp *run, const attention *a, const attended *out,
                         double *block_lse)
{
    long num_rows = a->num_batch * a->num_queries * a->num_heads, num_pairs = 0;
    for (long row = 0; row < num_rows; row++) {
        double *probability =
            out->scores != NULL ? scores_at(a, out->scores, row) : out->probability;
        memset(out->block_o, 0, (size_t)a->value_width * sizeof(double));
        num_pairs += attend(run, a, row, probability, out->block_o, &block_lse[row]);
        merge(out->o->values + row * a->value_width, &out->lse->values[row], out->block_o,
              block_lse[row], a->value_width);
    }
    return num_pairs;
}

/* Rescales stored probabilities from within a block to within all keys. */
static void rescale(const attention *a, const attended *out, const double *block_lse)
{
    for (long row = 0; row < out->lse->count; row++) {
        double *probability = scores_at(a, out->scores, row);
        for (long key = 0; key < a->num_keys; key++)
            probability[key] *= exp(block_lse[row] - out->lse->values[row]);
    }
}

/* Counts the wire bytes of a ring: each step but the last sends a block of keys and
 * values; in backward the gradients make one hop more. */
static void count_ring_bytes(ms_interp *run, const ms_node *node, int rank)
{
    if (!node->ring)
        return;
    const ms_tensor *tensors = run->program->tensors;
    double ranks = (double)num_blocks(run, node), bytes = 0;
    for (int i = 1; i <= 2; i++) {
        bytes += (ranks - 1) * (double)ms_interp_in(run, node, i, rank)->count *
                 tensors[node->in[i]].element_bytes;
        if (node->op == MS_OP_ATTENTION_GRAD && ranks > 1)
            bytes += ranks * (double)ms_interp_cell(run, node->out[i], rank)->count *
                     tensors[node->out[i]].element_bytes;
    }
    run->node_wire_bytes[(node - run->program->nodes) * run->num_ranks + rank] = bytes;
}

void ms_interp_attention(ms_interp *run, const ms_node *node, int rank)
{
    attention a;
    if (!read_attention(run, node, rank, 0, &a))
        return;
    attended out = {.o = ms_interp_out(run, node, 0, rank),
                    .lse = ms_interp_out(run, node, 1, rank),
                    .scores =
                        node->num_out > 2 ? ms_interp_out(run, node, 2, rank) : NULL};
    long num_rows = a.num_batch * a.num_queries * a.num_heads, num_pairs = 0;
    long blocks = num_blocks(run, node);
    if (!ms_interp_expect(run, node, out.o, num_rows * a.value_width) ||
        !ms_interp_expect(run, node, out.lse, num_rows) ||
        (out.scores != NULL &&
         !ms_interp_expect(run, node, out.scores, num_rows * a.score_width)))
        return;
    out.block_o = MS_NEW_ARRAY(run->arena, a.value_width, double);
    out.block_lse = MS_NEW_ARRAY(run->arena, blocks * num_rows, double);
    out.probability = MS_NEW_ARRAY(run->arena, a.num_keys, double);
    for (long row = 0; row < num_rows; row++)
        out.lse->values[row] = -HUGE_VAL;
    for (long step = 0; step < blocks; step++) {
        if (!read_attention(run, node, rank, step, &a))
            return;
        num_pairs += attend_block(run, &a, &out, out.block_lse + step * num_rows);
    }
    for (long step = 0; step < blocks && out.scores != NULL; step++)
        if (read_attention(run, node, rank, step, &a))
            rescale(&a, &out, out.block_lse + step * num_rows);
    count_ring_bytes(run, node, rank);
    ms_interp_count_flop(run, node,
                         2.0 * (double)num_pairs * (double)(a.width + a.value_width));
}

/* Operands and results of attention backward besides q, k, v; gk and gv belong to the
 * owner of the key block. */
typedef struct attention_grad {
    const ms_cell *o, *lse, *go, *scores;
    ms_cell *gq, *gk, *gv;
} attention_grad;

static long attend_grad(const ms_interp *run, const attention *a, const attention_grad *g,
                        long row)
{
    long head = row % a->num_heads, query = row / a->num_heads % a->num_queries;
    long b = row / a->num_heads / a->num_queries, num_pairs = 0;
    const double *go = g->go->values + row * a->value_width;
    double mean = dot(go, g->o->values + row * a->value_width, a->value_width);
    for (long key = 0; key < a->num_keys; key++) {
        if (!sees(run, a, query, key))
            continue;
        long at = key_at(a, b, key, head);
        double p = g->scores != NULL
                       ? scores_at(a, g->scores, row)[key]
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

/* Allocates the gradients of keys and values. In a ring, where all ranks add to all
 * blocks, the group's first rank allocates all. */
static void make_key_gradients(ms_interp *run, const ms_node *node, int rank)
{
    if (node->ring && ms_interp_coordinate(run, MS_DENSE_MESH, 1, rank) > 0)
        return;
    for (long step = 0; step < num_blocks(run, node); step++)
        for (int i = 1; i <= 2; i++)
            ms_interp_out(run, node, i, owner_of(run, node, rank, step));
}

static bool read_gradients(ms_interp *run, const ms_node *node, int rank,
                           const attention *a, attention_grad *g)
{
    make_key_gradients(run, node, rank);
    *g = (attention_grad){.o = ms_interp_in(run, node, 3, rank),
                          .lse = ms_interp_in(run, node, 4, rank),
                          .go = ms_interp_in(run, node, 5, rank),
                          .scores =
                              node->num_in > 6 ? ms_interp_in(run, node, 6, rank) : NULL,
                          .gq = ms_interp_out(run, node, 0, rank)};
    long num_rows = a->num_batch * a->num_queries * a->num_heads;
    return ms_interp_expect(run, node, g->o, num_rows * a->value_width) &&
           ms_interp_expect(run, node, g->go, g->o->count) &&
           ms_interp_expect(run, node, g->lse, num_rows) &&
           ms_interp_expect(run, node, g->gq, a->q->count) &&
           (g->scores == NULL ||
            ms_interp_expect(run, node, g->scores, num_rows * a->score_width));
}

/* Attention backward: recomputes scores unless stored, then gradients of values,
 * probabilities, queries and keys. */
void ms_interp_attention_grad(ms_interp *run, const ms_node *node, int rank)
{
    attention a;
    attention_grad g;
    if (!read_attention(run, node, rank, 0, &a) ||
        !read_gradients(run, node, rank, &a, &g))
        return;
    long num_pairs = 0;
    for (long step = 0; step < num_blocks(run, node); step++) {
        int owner = owner_of(run, node, rank, step);
        g.gk = ms_interp_cell(run, node->out[1], owner);
        g.gv = ms_interp_cell(run, node->out[2], owner);
        if (!read_attention(run, node, rank, step, &a) ||
            !ms_interp_expect(run, node, g.gk, a.k->count) ||
            !ms_interp_expect(run, node, g.gv, a.v->count))
            return;
        for (long row = 0; row < g.lse->count; row++)
            num_pairs += attend_grad(run, &a, &g, row);
    }
    count_ring_bytes(run, node, rank);
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
