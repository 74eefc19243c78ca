/* CPU kernels of causal attention in tiles of queries and keys (FlashAttention, Dao et
 * al. 2022, algorithms 1 and 4). Tiles in which all keys are masked are skipped. */
#include "exec/core/alibi.h"
#include "exec/core/dropout.h"
#include "exec/cpu/cpu.h"
#include "exec/cpu/cpu_exp.h"

#include <math.h>
#include <string.h>

#define TILE 128

/* Attention of a rank's queries to one block of keys and values. */
typedef struct attention {
    const ms_attention_block *block;
    long num_batch, num_queries, num_keys, num_heads, num_kv_heads, value_width;
    long window;
    ms_real scale;
    double dropout;            /* probability that a probability becomes 0 */
    ms_real cap;               /* soft cap of scores (Gemma 2); 0: none */
    long alibi_heads;          /* heads of the whole model; 0: no ALiBi */
    ms_real *scores, *gscores; /* scores and their gradients, (TILE, TILE) each */
    ms_real *slopes; /* (TILE, TILE): derivatives of capped scores; NULL without a cap */
    /* saved probabilities (batch, heads, queries, keys); NULL if fused */
    const ms_local *stored;
} attention;

size_t MS_TYPED(ms_cpu_attention_bytes)(const ms_program *program, const ms_node *node)
{
    (void)node;
    size_t num_tiles = program->model->attention_softcap > 0 ? 3 : 2;
    return num_tiles * TILE * TILE * sizeof(ms_real);
}

static attention attention_of_block(const ms_attention_block *block, void *workspace)
{
    const ms_local *q = block->q, *k = block->k;
    const ms_model *model = block->call->program->model;
    attention a = {.block = block,
                   .num_batch = q->shape[0],
                   .num_queries = q->shape[1],
                   .num_keys = k->shape[1],
                   .num_heads = q->shape[2],
                   .num_kv_heads = k->shape[2],
                   .value_width = block->v->shape[3],
                   .window = block->call->node->window_tokens,
                   .scale = (ms_real)ms_model_attention_scale(model, q->shape[3]),
                   .dropout = model->attention_dropout,
                   .cap = (ms_real)model->attention_softcap,
                   .alibi_heads =
                       model->position == MS_POSITION_ALIBI ? model->num_heads : 0,
                   .scores = workspace};
    a.gscores = a.scores + TILE * TILE;
    a.slopes = a.cap > 0 ? a.gscores + TILE * TILE : NULL;
    return a;
}

/* A tile of one head: queries, keys and the sequence position of each. */
typedef struct tile {
    long batch, head;
    long first_query, num_queries, first_key, num_keys;
    bool is_whole; /* true if no key is masked for any query of the tile */
    int query[TILE], key[TILE];
    int start[TILE]; /* position of the first key that a query sees without a window */
} tile;

static void read_positions(const ms_op_call *call, long first, long count, int *to)
{
    for (long i = 0; i < count; i++)
        to[i] = (int)ms_cpu_position(call, first + i);
}

static void range_of(const int *x, long count, int *least, int *most)
{
    *least = *most = x[0];
    for (long i = 1; i < count; i++) {
        *least = x[i] < *least ? x[i] : *least;
        *most = x[i] > *most ? x[i] : *most;
    }
}

static void move_to_queries(const attention *a, tile *t, long first)
{
    t->first_query = first;
    t->num_queries = ms_cpu_smaller(TILE, a->num_queries - first);
    read_positions(a->block->call, a->block->q->start[1] + first, t->num_queries,
                   t->query);
}

/* Reads where the sequences of the tile's queries start in row t->batch. */
static void read_starts(const attention *a, tile *t)
{
    const ms_op_call *call = a->block->call;
    if (call->batch == NULL || call->batch->starts == NULL)
        return; /* all are 0 */
    for (long i = 0; i < t->num_queries; i++)
        t->start[i] =
            (int)ms_cpu_start(call, a->block->q->start[0] + t->batch, t->query[i]);
}

/* Sets the tile's keys; false if all of them are masked for all queries of the tile. */
static bool move_to_keys(const attention *a, tile *t, long first)
{
    int least_query, most_query, least_key, most_key, least_start, most_start;
    t->first_key = first;
    t->num_keys = ms_cpu_smaller(TILE, a->num_keys - first);
    read_positions(a->block->call, a->block->k->start[1] + first, t->num_keys, t->key);
    range_of(t->query, t->num_queries, &least_query, &most_query);
    range_of(t->key, t->num_keys, &least_key, &most_key);
    range_of(t->start, t->num_queries, &least_start, &most_start);
    bool windowed = a->window > 0;
    t->is_whole = most_key <= least_query && least_key >= most_start &&
                  (!windowed || least_key > most_query - a->window);
    return least_key <= most_query && most_key >= least_start &&
           (!windowed || most_key > least_query - a->window);
}

/* ---- addresses of a tile's rows in tensors [b s n ..] or [b t g ..] ---- */

static ms_real *query_rows(const attention *a, const tile *t, const ms_local *x)
{
    long width = x->num_dims == 4 ? x->shape[3] : 1;
    return (ms_real *)x->data +
           ((t->batch * a->num_queries + t->first_query) * a->num_heads + t->head) *
               width;
}

static ms_real *key_rows(const attention *a, const tile *t, const ms_local *x)
{
    long kv_head = t->head / (a->num_heads / a->num_kv_heads);
    return (ms_real *)x->data +
           ((t->batch * a->num_keys + t->first_key) * a->num_kv_heads + kv_head) *
               x->shape[3];
}

/* Matrix product to (queries, keys) = x (queries, width) times y^T (width, keys). */
static void queries_by_keys(const attention *a, const tile *t, const ms_local *x,
                            const ms_local *y, ms_real *to)
{
    ms_gemm g = {.transpose_b = true,
                 .m = t->num_queries,
                 .n = t->num_keys,
                 .k = x->shape[3],
                 .ld_a = a->num_heads * x->shape[3],
                 .ld_b = a->num_kv_heads * y->shape[3],
                 .ld_c = TILE};
    MS_TYPED(ms_gemm_run)(&g, query_rows(a, t, x), key_rows(a, t, y), to);
}

/* Matrix product to (queries, width) += p (queries, keys) times y (keys, width). */
static void add_to_queries(const attention *a, const tile *t, const ms_real *p,
                           const ms_local *y, const ms_local *to)
{
    ms_gemm g = {.add = true,
                 .m = t->num_queries,
                 .n = y->shape[3],
                 .k = t->num_keys,
                 .ld_a = TILE,
                 .ld_b = a->num_kv_heads * y->shape[3],
                 .ld_c = a->num_heads * y->shape[3]};
    MS_TYPED(ms_gemm_run)(&g, p, key_rows(a, t, y), query_rows(a, t, to));
}

/* Matrix product to (keys, width) += p^T (keys, queries) times x (queries, width). */
static void add_to_keys(const attention *a, const tile *t, const ms_real *p,
                        const ms_local *x, const ms_local *to)
{
    ms_gemm g = {.transpose_a = true,
                 .add = true,
                 .m = t->num_keys,
                 .n = x->shape[3],
                 .k = t->num_queries,
                 .ld_a = TILE,
                 .ld_b = a->num_heads * x->shape[3],
                 .ld_c = a->num_kv_heads * x->shape[3]};
    MS_TYPED(ms_gemm_run)(&g, p, query_rows(a, t, x), key_rows(a, t, to));
}

/* ---- softmax of a row ---- */

/* Replaces the scaled scores x of a row by cap tanh(x / cap), and saves the derivatives. */
static void cap_row(const attention *a, const tile *t, long query)
{
    ms_real *row = a->scores + query * TILE, *slope = a->slopes + query * TILE;
    for (long i = 0; i < t->num_keys; i++) {
        ms_real y = MS_REAL_MATH(tanh)(row[i] * (a->scale / a->cap));
        row[i] = a->cap * y;
        slope[i] = 1 - y * y;
    }
}

/* Multiplies a row of scores by `scale` and sets masked keys to minus infinity. */
MS_WIDE static void scale_row(const attention *a, const tile *t, long query,
                              ms_real scale, ms_real *restrict row)
{
    int position = t->query[query];
    int oldest = a->window > 0 && a->window <= position ? position - (int)a->window : -1;
    oldest = oldest < t->start[query] ? t->start[query] - 1 : oldest;
    const int *restrict key = t->key;
    const ms_real masked = (ms_real)-HUGE_VAL;
    if (t->is_whole)
        for (long i = 0; i < t->num_keys; i++)
            row[i] *= scale;
    else
        for (long i = 0; i < t->num_keys; i++)
            row[i] = (key[i] <= position) & (key[i] > oldest) ? row[i] * scale : masked;
}

/* Adds the head's slope times the distance of query and key. */
static void add_alibi(const attention *a, const tile *t, long query,
                      ms_real *restrict row)
{
    long head = a->block->q->start[2] + t->head;
    ms_real slope = (ms_real)ms_alibi_slope(a->alibi_heads, head);
    for (long i = 0; i < t->num_keys; i++)
        row[i] += slope * (ms_real)(t->key[i] - t->query[query]);
}

/* Makes scores of the products of a query and keys, minus infinity for masked keys. */
static void mask_row(const attention *a, const tile *t, long query)
{
    bool is_capped = a->slopes != NULL;
    if (is_capped)
        cap_row(a, t, query);
    scale_row(a, t, query, is_capped ? 1 : a->scale, a->scores + query * TILE);
    if (a->alibi_heads > 0)
        add_alibi(a, t, query, a->scores + query * TILE);
}

/* Replaces the elements of x by exp(x - shift) and returns their sum. */
MS_WIDE static ms_real exp_of_row(ms_real *restrict x, long count, ms_real shift)
{
    ms_real lane[MS_CPU_LANES] = {0}, sum = 0;
    for (long i = 0; i < count; i++)
        x[i] = ms_real_exp(x[i] - shift);
    long i = 0;
    for (; i + MS_CPU_LANES <= count; i += MS_CPU_LANES)
        for (int j = 0; j < MS_CPU_LANES; j++)
            lane[j] += x[i + j];
    for (; i < count; i++)
        lane[0] += x[i];
    for (int j = 0; j < MS_CPU_LANES; j++)
        sum += lane[j];
    return sum;
}

/* Softmax of each query so far: largest score `max`, and sum of exp(score - max). */
typedef struct online_softmax {
    ms_real max[TILE], sum[TILE];
} online_softmax;

MS_WIDE static ms_real largest_of(const ms_real *x, long count, ms_real least)
{
    return ms_cpu_largest(x, count, least);
}

/* Replaces a tile's scores by exp(score - max), with max over all keys so far; rescales
 * earlier sums. While all keys are masked, max is -infinity and the results are 0. */
static void exponentiate_tile(const attention *a, const tile *t, online_softmax *r)
{
    ms_real *o = query_rows(a, t, a->block->o);
    for (long i = 0; i < t->num_queries; i++) {
        ms_real *row = a->scores + i * TILE;
        mask_row(a, t, i);
        ms_real max = largest_of(row, t->num_keys, r->max[i]);
        ms_real shift = isinf(max) ? 0 : max; /* -inf if no key is visible yet */
        ms_real sum = exp_of_row(row, t->num_keys, shift);
        if (max > r->max[i]) {
            ms_real factor = ms_real_exp(r->max[i] - max);
            r->sum[i] *= factor;
            MS_TYPED(ms_cpu_vector_scale)
            (o + i * a->num_heads * a->value_width, (double)factor, a->value_width);
        }
        r->sum[i] += sum;
        r->max[i] = max;
    }
}

/* Starts with o and lse of earlier blocks of keys: their sum of exp(score - lse) is 1. */
static void begin_queries(const attention *a, const tile *t, online_softmax *r)
{
    const ms_real *lse = query_rows(a, t, a->block->lse);
    for (long i = 0; i < t->num_queries; i++) {
        r->max[i] = lse[i * a->num_heads];
        /* if no key was visible yet, lse is -inf; the first visible key turns 1 into 0 */
        r->sum[i] = 1;
    }
}

static void end_queries(const attention *a, const tile *t, const online_softmax *r)
{
    ms_real *lse = query_rows(a, t, a->block->lse), *o = query_rows(a, t, a->block->o);
    for (long i = 0; i < t->num_queries; i++) {
        lse[i * a->num_heads] = r->max[i] + MS_REAL_MATH(log)(r->sum[i]);
        MS_TYPED(ms_cpu_vector_scale)
        (o + i * a->num_heads * a->value_width, (double)(1 / r->sum[i]), a->value_width);
    }
}

/* Sets elements of a tile that dropout drops to 0, and scales the others. */
static void drop_of_tile(const attention *a, const tile *t, ms_real *p)
{
    const ms_local *q = a->block->q;
    const ms_real scale = (ms_real)(1 / (1 - a->dropout));
    for (long i = 0; i < t->num_queries; i++) {
        ms_dropout d = ms_dropout_row(a->block->call, a->dropout,
                                      MS_DROPOUT_HEADS + q->start[2] + t->head,
                                      q->start[0] + t->batch, t->query[i]);
        for (long j = 0; j < t->num_keys; j++)
            p[i * TILE + j] *= ms_dropout_keeps(&d, t->key[j]) ? scale : 0;
    }
}

static void attend_tile(const attention *a, tile *t)
{
    online_softmax r = {{0}, {0}};
    begin_queries(a, t, &r);
    for (long key = 0; key < a->num_keys; key += TILE) {
        if (!move_to_keys(a, t, key))
            continue;
        queries_by_keys(a, t, a->block->q, a->block->k, a->scores);
        exponentiate_tile(a, t, &r);
        if (a->dropout > 0.0)
            drop_of_tile(a, t, a->scores);
        add_to_queries(a, t, a->scores, a->block->v, a->block->o);
    }
    end_queries(a, t, &r);
}

/* Calls `visit` for each sequence, head and tile of queries. */
static void for_each_query_tile(const attention *a,
                                void (*visit)(const attention *, tile *))
{
    tile t = {0};
    for (long query = 0; query < a->num_queries; query += TILE) {
        move_to_queries(a, &t, query);
        for (t.batch = 0; t.batch < a->num_batch; t.batch++) {
            read_starts(a, &t);
            for (t.head = 0; t.head < a->num_heads; t.head++)
                visit(a, &t);
        }
    }
}

void MS_TYPED(ms_cpu_attention_block)(const ms_attention_block *block, void *workspace)
{
    attention a = attention_of_block(block, workspace);
    for_each_query_tile(&a, attend_tile);
}

/* ---- backward ---- */

/* Per query: lse, and `mean`: the dot product of o and its gradient, equal to the sum
 * over keys of probability x its gradient (FlashAttention, algorithm 4). */
typedef struct row_state {
    ms_real lse[TILE], mean[TILE];
} row_state;

static void read_lse(const attention *a, const tile *t, row_state *s)
{
    const ms_real *lse = query_rows(a, t, a->block->lse);
    for (long i = 0; i < t->num_queries; i++, lse += a->num_heads)
        /* lse is -inf if all keys are masked; then 0 is subtracted from scores of -inf */
        s->lse[i] = isinf(*lse) ? 0 : *lse;
}

static void read_rows(const attention *a, const tile *t, row_state *s)
{
    const ms_real *o = query_rows(a, t, a->block->o),
                  *go = query_rows(a, t, a->block->go);
    read_lse(a, t, s);
    for (long i = 0; i < t->num_queries; i++) {
        double sum = 0;
        for (long j = 0; j < a->value_width; j++)
            sum += (double)o[j] * (double)go[j];
        s->mean[i] = (ms_real)sum;
        o += a->num_heads * a->value_width;
        go += a->num_heads * a->value_width;
    }
}

/* Saved probabilities of one query of the tile with all keys (unfused attention). */
static ms_real *stored_row(const attention *a, const tile *t, long query)
{
    long row = (t->batch * a->num_heads + t->head) * a->num_queries + t->first_query;
    return (ms_real *)a->stored->data + (row + query) * a->num_keys;
}

static void compute_probabilities(const attention *a, const tile *t, const row_state *s)
{
    queries_by_keys(a, t, a->block->q, a->block->k, a->scores);
    for (long i = 0; i < t->num_queries; i++) {
        mask_row(a, t, i);
        exp_of_row(a->scores + i * TILE, t->num_keys, s->lse[i]);
    }
}

static void load_probabilities(const attention *a, const tile *t)
{
    for (long i = 0; i < t->num_queries; i++)
        memcpy(a->scores + i * TILE, stored_row(a, t, i) + t->first_key,
               (size_t)t->num_keys * sizeof(ms_real));
}

MS_WIDE static void score_gradient(const attention *a, const tile *t, const row_state *s)
{
    for (long i = 0; i < t->num_queries; i++) {
        const ms_real *restrict p = a->scores + i * TILE;
        ms_real *restrict gp = a->gscores + i * TILE;
        ms_real mean = s->mean[i], scale = a->scale;
        for (long j = 0; j < t->num_keys; j++)
            gp[j] = p[j] * (gp[j] - mean) * scale;
        const ms_real *restrict slope = a->slopes;
        for (long j = 0; slope != NULL && j < t->num_keys; j++)
            gp[j] *= slope[i * TILE + j];
    }
}

/* Adds to the gradient of values, and computes that of probabilities in `gscores`; both
 * by the same mask, while `scores` keep all probabilities. */
static void values_grad(const attention *a, const tile *t)
{
    const ms_attention_block *block = a->block;
    ms_real *used = a->scores;
    if (a->dropout > 0.0) {
        used = memcpy(a->gscores, a->scores, TILE * TILE * sizeof(ms_real));
        drop_of_tile(a, t, used);
    }
    add_to_keys(a, t, used, block->go, block->gv);
    queries_by_keys(a, t, block->go, block->v, a->gscores);
    if (a->dropout > 0.0)
        drop_of_tile(a, t, a->gscores);
}

static void attend_tile_grad(const attention *a, tile *t)
{
    const ms_attention_block *block = a->block;
    row_state s = {{0}, {0}};
    read_rows(a, t, &s);
    for (long key = 0; key < a->num_keys; key += TILE) {
        if (!move_to_keys(a, t, key))
            continue;
        if (a->stored != NULL && a->slopes == NULL)
            load_probabilities(a, t);
        else
            compute_probabilities(a, t, &s);
        values_grad(a, t);
        score_gradient(a, t, &s);
        add_to_queries(a, t, a->gscores, block->k, block->gq);
        add_to_keys(a, t, a->gscores, block->q, block->gk);
    }
}

void MS_TYPED(ms_cpu_attention_block_grad)(const ms_attention_block *block,
                                           void *workspace)
{
    attention a = attention_of_block(block, workspace);
    for_each_query_tile(&a, attend_tile_grad);
}

/* ---- one block of all keys ---- */

/* Sets log-sum-exps before the first key: those of the sinks, or of no score at all. */
static void begin_lse(const ms_op_call *call, ms_local *lse)
{
    ms_real *to = lse->data;
    if (call->node->num_in == 3) {
        MS_TYPED(ms_cpu_vector_fill)(to, -HUGE_VAL, lse->count);
        return;
    }
    const ms_local *sinks = call->in[3];
    const ms_real *from = (const ms_real *)sinks->data + lse->start[2] - sinks->start[0];
    long num_heads = ms_local_last(lse);
    for (long row = 0; row < ms_local_leading(lse); row++)
        memcpy(to + row * num_heads, from, (size_t)num_heads * sizeof *to);
}

static void clear_result(ms_local *x)
{
    memset(x->data, 0, (size_t)x->count * sizeof(ms_real));
}

/* Saves the tile's probabilities exp(score - lse), lse over all keys; 0 if masked. */
static void store_probabilities(const attention *a, tile *t)
{
    row_state s = {{0}, {0}};
    read_lse(a, t, &s);
    memset(stored_row(a, t, 0), 0,
           (size_t)(t->num_queries * a->num_keys) * sizeof(ms_real));
    for (long key = 0; key < a->num_keys; key += TILE) {
        if (!move_to_keys(a, t, key))
            continue;
        compute_probabilities(a, t, &s);
        for (long i = 0; i < t->num_queries; i++)
            memcpy(stored_row(a, t, i) + key, a->scores + i * TILE,
                   (size_t)t->num_keys * sizeof(ms_real));
    }
}

void MS_TYPED(ms_cpu_attention)(const ms_op_call *call)
{
    ms_attention_block block = {.call = call,
                                .q = call->in[0],
                                .k = call->in[1],
                                .v = call->in[2],
                                .o = call->out[0],
                                .lse = call->out[1]};
    clear_result(block.o);
    begin_lse(call, block.lse);
    MS_TYPED(ms_cpu_attention_block)(&block, call->workspace);
    if (call->node->num_out > 2 && call->out[2]->data != NULL) {
        attention a = attention_of_block(&block, call->workspace);
        a.stored = call->out[2];
        for_each_query_tile(&a, store_probabilities);
    }
}

/* o and lse are only read here; copies make them writable for ms_attention_block. */
void MS_TYPED(ms_cpu_attention_grad)(const ms_op_call *call)
{
    ms_local o = *call->in[3], lse = *call->in[4];
    ms_attention_block block = {.call = call,
                                .q = call->in[0],
                                .k = call->in[1],
                                .v = call->in[2],
                                .o = &o,
                                .lse = &lse,
                                .go = call->in[5],
                                .gq = call->out[0],
                                .gk = call->out[1],
                                .gv = call->out[2]};
    for (int i = 0; i < 3; i++)
        clear_result(call->out[i]);
    attention a = attention_of_block(&block, call->workspace);
    a.stored = call->node->num_in > 6 ? call->in[6] : NULL;
    for_each_query_tile(&a, attend_tile_grad);
}

void MS_TYPED(ms_cpu_sink_grad)(const ms_op_call *call)
{
    const ms_local *lse = call->in[1], *sinks = call->in[3];
    const ms_real *o = ms_cpu_in(call, 0), *go = ms_cpu_in(call, 2);
    ms_real *gsinks = ms_cpu_out(call, 0);
    long num_heads = ms_local_last(lse), width = ms_local_last(call->in[0]),
         first = lse->start[2] - sinks->start[0];
    if (gsinks == NULL)
        return;
    for (long head = 0; head < sinks->count; head++) {
        double sum = ms_op_is_added(call, 0) ? (double)gsinks[head] : 0;
        bool is_here = head >= first && head < first + num_heads;
        for (long i = head - first; is_here && i < lse->count; i += num_heads) {
            double product = 0;
            for (long j = i * width; j < (i + 1) * width; j++)
                product += (double)o[j] * (double)go[j];
            sum -= product *
                   exp((double)ms_cpu_in(call, 3)[head] - (double)ms_cpu_in(call, 1)[i]);
        }
        gsinks[head] = (ms_real)sum;
    }
}
