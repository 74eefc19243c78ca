#include "tests/support/attention_cases.h"

#include "base/rng.h"
#include "exec/core/alibi.h"
#include "exec/cpu/kernels.h"
#include "exec/cuda/cuda_attention.h"
#include "tests/support/attention_text.h"
#include "tests/support/cuda_cases.h"
#include "tests/support/cuda_emulated.h"
#include "tests/support/interpreter.h"
#include "tests/test.h"

#define ALIGNMENT  256 /* alignment of driver allocations, bytes */
#define QUERY_SIZE 3.0

enum {
    Q,
    K,
    V,
    GO,
    O,
    LSE,
    P,
    GQ,
    GK,
    GV,
    NUM_TENSORS
};
static const char *const names[] = {"q",   "k",           "v",  "go", "o",
                                    "lse", "probability", "gq", "gk", "gv"};
static const char *const dims[] = {"bsnd", "bsgd", "bsgw", "bsnw", "bsnw",
                                   "bsn",  "bnst", "bsnd", "bsgd", "bsgw"};

/* One case with one number type: whole tensors in fp64, and the magnitudes that bound
 * their errors. */
typedef struct trial {
    ms_arena *arena;
    const char *text;
    const attention_case *c;
    ms_precision precision;
    ms_model model;
    ms_program program;
    ms_tensor tensors[NUM_TENSORS];
    ms_node node[2]; /* forward and backward node */
    long *positions;
    int *device_positions;
    ms_local whole[NUM_TENSORS];
    /* sums of |t| and of |t'| over an element's terms (attention_cases.h) */
    double *rounded[NUM_TENSORS], *summed[NUM_TENSORS];
    ms_cuda_batch batch;
    ms_attention_library *library; /* NULL: own kernels only */
    void *blocks[8 * NUM_TENSORS]; /* device memory to be released */
    int num_blocks;
} trial;

static double *values(const ms_local *x)
{
    return x->data;
}

static ms_scalar scalar_of(const trial *t, int tensor)
{
    return tensor == LSE ? t->precision.statistic : t->precision.real;
}

static bool is_ring(const attention_case *c)
{
    return c->num_ranks > 0 && !c->is_gathered;
}

/* Whether every rank has the whole tensor rather than its part of the sequence. */
static bool is_whole(const trial *t, int tensor)
{
    bool of_keys = tensor == K || tensor == V || tensor == GK || tensor == GV;
    return t->c->num_ranks == 0 || (t->c->is_gathered && of_keys);
}

/* ---- operands ---- */

static void make_local(trial *t, int tensor)
{
    ms_local *x = &t->whole[tensor];
    *x = (ms_local){.scalar = MS_SCALAR_FP64, .count = 1};
    for (const char *d = dims[tensor]; *d != '\0'; d++) {
        if (*d == 'n')
            x->start[x->num_dims] = t->c->first_head;
        char letter = *d == 't' ? 's' : *d;
        x->shape[x->num_dims] = (long)t->program.size[letter - '0'];
        x->count *= x->shape[x->num_dims++];
    }
    x->data = MS_NEW_ARRAY(t->arena, x->count + 1, double);
    t->rounded[tensor] = MS_NEW_ARRAY(t->arena, x->count + 1, double);
    t->summed[tensor] = MS_NEW_ARRAY(t->arena, x->count + 1, double);
    memcpy(t->tensors[tensor].dims, dims[tensor], strlen(dims[tensor]) + 1);
    if (t->c->num_ranks > 0 && !is_whole(t, tensor))
        t->tensors[tensor].at[1] = (ms_placement){.kind = MS_SHARD, .dim = 's'};
}

static void round_to_type(const trial *t, int tensor)
{
    const ms_local *x = &t->whole[tensor];
    void *rounded = ms_arena_alloc(t->arena, (size_t)x->count * sizeof(double) + 1);
    ms_case_store(scalar_of(t, tensor), rounded, values(x), x->count);
    ms_case_load(scalar_of(t, tensor), values(x), rounded, x->count);
}

static void make_program(trial *t)
{
    const attention_case *c = t->c;
    const char letters[] = "bsngdw";
    const long sizes[] = {c->batch,    c->sequence, c->heads,
                          c->kv_heads, c->width,    c->value_width};
    for (int i = 0; letters[i] != '\0'; i++)
        t->program.size[letters[i] - '0'] = (double)sizes[i];
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        t->program.mesh_size[0][axis] = axis == 1 && c->num_ranks > 0 ? c->num_ranks : 1;
    t->model.attention_softcap = (double)c->cap;
    t->model.position = c->alibi_heads > 0 ? MS_POSITION_ALIBI : MS_POSITION_ROTARY;
    t->model.num_heads = c->alibi_heads;
    t->program.model = &t->model;
    t->program.tensors = t->tensors;
    t->program.num_tensors = NUM_TENSORS;
    const ms_node nodes[] = {{.op = MS_OP_ATTENTION,
                              .num_in = 3,
                              .num_out = c->is_unfused ? 3 : 2,
                              .in = {Q, K, V},
                              .out = {O, LSE, P}},
                             {.op = MS_OP_ATTENTION_GRAD,
                              .num_in = c->is_unfused ? 7 : 6,
                              .num_out = 3,
                              .in = {Q, K, V, O, LSE, GO, P},
                              .out = {GQ, GK, GV}}};
    for (int i = 0; i < 2; i++) {
        t->node[i] = nodes[i];
        t->node[i].window_tokens = c->window;
    }
}

static void make_positions(trial *t)
{
    const attention_case *c = t->c;
    t->positions = MS_NEW_ARRAY(t->arena, c->sequence + 1, long);
    t->device_positions = MS_NEW_ARRAY(t->arena, c->sequence + 1, int);
    if (c->head_tail)
        ms_interp_positions(t->positions, c->sequence,
                            c->num_ranks > 0 ? c->num_ranks : 2);
    else
        for (long i = 0; i < c->sequence; i++)
            t->positions[i] = i;
    for (long i = 0; i < c->sequence; i++)
        t->device_positions[i] = (int)t->positions[i];
    t->batch = (ms_cuda_batch){.num_sequences = c->batch,
                               .sequence_length = c->sequence,
                               .positions = c->head_tail ? t->device_positions : NULL};
}

/* ---- the reference ---- */

static void run_reference(trial *t, int pass)
{
    const ms_node *node = &t->node[pass];
    ms_batch batch = {.num_sequences = t->c->batch,
                      .sequence_length = t->c->sequence,
                      .positions = t->positions};
    ms_op_call call = {.program = &t->program, .node = node, .batch = &batch};
    const ms_kernels *kernels = ms_cpu_kernels(MS_REAL_FP64);
    for (int i = 0; i < node->num_in; i++)
        call.in[i] = &t->whole[node->in[i]];
    for (int i = 0; i < node->num_out; i++)
        call.out[i] = &t->whole[node->out[i]];
    call.workspace =
        ms_arena_alloc(t->arena, kernels->workspace_bytes(&t->program, node));
    kernels->op[node->op](&call);
}

/* A query and a key: the elements at which their rows begin. */
typedef struct pair {
    /* row: row of the log-sum-exp [b s n]; q, go, k, v: index of the pair's first element
     * in that tensor */
    long row, q, go, k, v;
    /* p: probability; size: magnitude of the gradient of the score; alibi: added to the
     * score */
    double p, size, alibi;
} pair;

static double product(const double *x, const double *y, long count, bool by_magnitude)
{
    double sum = 0;
    for (long i = 0; i < count; i++)
        sum += by_magnitude ? fabs(x[i] * y[i]) : x[i] * y[i];
    return sum;
}

static void add_magnitudes(double *to, double factor, const double *x, long count)
{
    for (long i = 0; i < count; i++)
        to[i] += factor * fabs(x[i]);
}

static void add_terms(const trial *t, const pair *x)
{
    const double *go = values(&t->whole[GO]) + x->go, *v = values(&t->whole[V]) + x->v,
                 *o = values(&t->whole[O]) + x->go, *q = values(&t->whole[Q]) + x->q,
                 *k = values(&t->whole[K]) + x->k;
    long d = t->c->width, w = t->c->value_width;
    double scale = 1 / sqrt((double)d);
    for (int by_magnitude = 0; by_magnitude < 2; by_magnitude++) {
        double *const *to = by_magnitude ? t->summed : t->rounded;
        /* an absolute error of a score is a relative error of its probability */
        double magnitude = product(q, k, d, true) * scale + fabs(x->alibi);
        double p = by_magnitude ? x->p * (1 + magnitude) : x->p;
        double mean = product(o, go, w, by_magnitude);
        double g = product(go, v, w, by_magnitude) + (by_magnitude ? mean : -mean);
        double gs = p * fabs(g) * scale;
        add_magnitudes(to[O] + x->go, p, v, w);
        add_magnitudes(to[GV] + x->v, p, go, w);
        add_magnitudes(to[GQ] + x->q, gs, k, d);
        add_magnitudes(to[GK] + x->k, gs, q, d);
    }
}

static void add_pair(const trial *t, long b, long n, long query, long key)
{
    const attention_case *c = t->c;
    long row = (b * c->sequence + query) * c->heads + n,
         kv_row = (b * c->sequence + key) * c->kv_heads + n / (c->heads / c->kv_heads);
    pair x = {.row = row,
              .q = row * c->width,
              .go = row * c->value_width,
              .k = kv_row * c->width,
              .v = kv_row * c->value_width};
    double score =
        product(values(&t->whole[Q]) + x.q, values(&t->whole[K]) + x.k, c->width, false) /
        sqrt((double)c->width);
    if (c->cap > 0)
        score = (double)c->cap * tanh(score / (double)c->cap);
    if (c->alibi_heads > 0)
        x.alibi = ms_alibi_slope(c->alibi_heads, c->first_head + n) *
                  (double)(t->positions[key] - t->positions[query]);
    score += x.alibi;
    x.p = exp(score - values(&t->whole[LSE])[row]);
    add_terms(t, &x);
    if (c->is_unfused)
        t->rounded[P][((b * c->heads + n) * c->sequence + query) * c->sequence + key] =
            x.p;
}

static void add_pairs(const trial *t)
{
    const attention_case *c = t->c;
    for (long b = 0; b < c->batch; b++) {
        for (long n = 0; n < c->heads; n++) {
            for (long i = 0; i < c->sequence; i++) {
                for (long j = 0; j < c->sequence; j++) {
                    long distance = t->positions[i] - t->positions[j];
                    if (distance >= 0 && (c->window == 0 || distance < c->window))
                        add_pair(t, b, n, i, j);
                }
            }
        }
    }
}

/* ---- the device ---- */

static void *take_memory(trial *t, size_t bytes, bool is_aligned)
{
    void *block;
    size_t shift = is_aligned ? 0 : sizeof(double);
    assert_true(t->num_blocks < (int)(sizeof t->blocks / sizeof *t->blocks));
    assert_int_equal(posix_memalign(&block, ALIGNMENT, bytes + shift), 0);
    memset(block, 0xff, bytes + shift);
    t->blocks[t->num_blocks++] = block;
    return (char *)block + shift;
}

static void release_from(trial *t, int first)
{
    while (t->num_blocks > first)
        free(t->blocks[--t->num_blocks]);
}

/* Takes rows [first, first + length) of the sequence to device memory; without
 * with_values their contents are undefined. */
static ms_local take_part(trial *t, int tensor, long first, long length, bool with_values)
{
    const ms_local *whole = &t->whole[tensor];
    bool is_sum = is_ring(t->c) && !with_values; /* results that are summed over blocks */
    ms_scalar scalar = is_sum ? t->precision.statistic : scalar_of(t, tensor);
    ms_local part = *whole;
    part.scalar = (unsigned char)scalar;
    if (tensor != P) {
        part.shape[1] = length;
        part.start[1] = first;
        part.count = whole->count / whole->shape[1] * length;
    }
    size_t bytes = ms_scalar_bytes(scalar);
    part.data = take_memory(t, (size_t)part.count * bytes, !t->c->is_not_aligned);
    long row = part.count / part.shape[0], whole_row = whole->count / part.shape[0];
    long skipped = tensor != P ? whole_row / whole->shape[1] * first : 0;
    for (long b = 0; with_values && b < part.shape[0]; b++)
        ms_case_store(scalar, (char *)part.data + (size_t)(b * row) * bytes,
                      values(whole) + b * whole_row + skipped, row);
    return part;
}

static void fill(const ms_local *x, double value)
{
    for (long i = 0; i < x->count; i++)
        ms_case_store((ms_scalar)x->scalar,
                      (char *)x->data + (size_t)i * ms_scalar_bytes((ms_scalar)x->scalar),
                      &value, 1);
}

/* Copies a part's rows back to the same rows of the whole tensor in fp64. */
static void put_part(const ms_local *part, const ms_local *whole, double *to)
{
    size_t bytes = ms_scalar_bytes((ms_scalar)part->scalar);
    long row = part->count / part->shape[0], whole_row = whole->count / part->shape[0];
    long skipped = part->num_dims > 1 && row != whole_row
                       ? whole_row / whole->shape[1] * part->start[1]
                       : 0;
    for (long b = 0; b < part->shape[0]; b++)
        ms_case_load((ms_scalar)part->scalar, to + b * whole_row + skipped,
                     (char *)part->data + (size_t)(b * row) * bytes, row);
}

static ms_cuda_call make_call(trial *t, ms_op_call *op, int pass)
{
    *op = (ms_op_call){.program = &t->program, .node = &t->node[pass]};
    size_t bytes =
        ms_cuda_attention_workspace(&t->program, &t->node[pass], &t->precision);
    return (ms_cuda_call){.cx = test_cx(),
                          .precision = t->precision,
                          .op = op,
                          .batch = &t->batch,
                          .workspace = take_memory(t, bytes, true),
                          .driver = t->library != NULL ? t->library->driver : NULL,
                          .attention = t->library != NULL ? t->library->choice
                                                          : MS_RUN_ATTENTION_OWN,
                          .attention_use = t->library != NULL ? &t->library->use : NULL};
}

static ms_local take_own(trial *t, int tensor, int rank, bool with_values)
{
    long length = t->c->sequence / (is_whole(t, tensor) ? 1 : t->c->num_ranks);
    return take_part(t, tensor, is_whole(t, tensor) ? 0 : rank * length, length,
                     with_values);
}

/* Runs attention without a ring: all queries, or those of a rank that has all keys.
 * Gradients of keys are summed over ranks. */
static void run_one(trial *t, int pass, int rank, double *got[NUM_TENSORS])
{
    const ms_node *node = &t->node[pass];
    ms_op_call op;
    ms_cuda_call call = make_call(t, &op, pass);
    ms_local part[NUM_TENSORS];
    for (int i = 0; i < node->num_in; i++) {
        part[node->in[i]] = take_own(t, node->in[i], rank, true);
        op.in[i] = &part[node->in[i]];
    }
    for (int i = 0; i < node->num_out; i++) {
        part[node->out[i]] = take_own(t, node->out[i], rank, false);
        op.out[i] = &part[node->out[i]];
    }
    ASSERT_OK(pass == 0 ? ms_cuda_attention(&call) : ms_cuda_attention_grad(&call),
              call.cx);
    for (int i = 0; i < node->num_out; i++) {
        const ms_local *whole = &t->whole[node->out[i]];
        double *own = MS_NEW_ARRAY(t->arena, whole->count + 1, double);
        put_part(op.out[i], whole, own);
        for (long j = 0; j < whole->count; j++)
            got[node->out[i]][j] += own[j];
    }
}

static void run_ranks(trial *t, int pass, double *got[NUM_TENSORS])
{
    int num_ranks = t->c->num_ranks > 0 ? (int)t->c->num_ranks : 1;
    assert_true(t->c->sequence % num_ranks == 0);
    for (int rank = 0; rank < num_ranks; rank++) {
        run_one(t, pass, rank, got);
        release_from(t, 0);
    }
}

/* ---- rings ---- */

static void run_forward_of(trial *t, int rank, double *got[NUM_TENSORS])
{
    int num_ranks = (int)t->c->num_ranks;
    long length = t->c->sequence / num_ranks, first = rank * length;
    ms_op_call op;
    ms_cuda_call call = make_call(t, &op, 0);
    ms_local q = take_part(t, Q, first, length, true),
             o = take_part(t, O, first, length, false),
             lse = take_part(t, LSE, first, length, false);
    fill(&o, 0);
    fill(&lse, -HUGE_VAL);
    for (int step = 0; step < num_ranks; step++) {
        int before = t->num_blocks;
        long block_first = (rank - step + num_ranks) % num_ranks * length;
        ms_local k = take_part(t, K, block_first, length, true),
                 v = take_part(t, V, block_first, length, true);
        ms_attention_block block = {
            .call = &op, .q = &q, .k = &k, .v = &v, .o = &o, .lse = &lse};
        ASSERT_OK(ms_cuda_attention_block(&call, &block), call.cx);
        release_from(t, before);
    }
    put_part(&o, &t->whole[O], got[O]);
    put_part(&lse, &t->whole[LSE], got[LSE]);
}

/* Runs attention backward of one rank over all key blocks; adds to gk and gv of the whole
 * sequence. */
static void run_backward_of(trial *t, int rank, ms_local *gk, ms_local *gv,
                            double *got[NUM_TENSORS])
{
    int num_ranks = (int)t->c->num_ranks;
    long length = t->c->sequence / num_ranks, first = rank * length;
    ms_op_call op;
    ms_cuda_call call = make_call(t, &op, 1);
    ms_local q = take_part(t, Q, first, length, true),
             o = take_part(t, O, first, length, true),
             lse = take_part(t, LSE, first, length, true),
             go = take_part(t, GO, first, length, true),
             gq = take_part(t, GQ, first, length, false);
    fill(&gq, 0);
    for (int step = 0; step < num_ranks; step++) {
        int before = t->num_blocks, owner = (rank - step + num_ranks) % num_ranks;
        ms_local k = take_part(t, K, owner * length, length, true),
                 v = take_part(t, V, owner * length, length, true);
        ms_attention_block block = {.call = &op,
                                    .q = &q,
                                    .k = &k,
                                    .v = &v,
                                    .o = &o,
                                    .lse = &lse,
                                    .go = &go,
                                    .gq = &gq,
                                    .gk = &gk[owner],
                                    .gv = &gv[owner]};
        ASSERT_OK(ms_cuda_attention_block_grad(&call, &block), call.cx);
        release_from(t, before);
    }
    put_part(&gq, &t->whole[GQ], got[GQ]);
}

static void run_ring(trial *t, int pass, double *got[NUM_TENSORS])
{
    enum {
        MOST = 8
    };
    ms_local gk[MOST], gv[MOST];
    int num_ranks = (int)t->c->num_ranks;
    long length = t->c->sequence / num_ranks;
    assert_true(num_ranks <= MOST && length * num_ranks == t->c->sequence);
    for (int rank = 0; pass == 1 && rank < num_ranks; rank++) {
        gk[rank] = take_part(t, GK, rank * length, length, false);
        gv[rank] = take_part(t, GV, rank * length, length, false);
        fill(&gk[rank], 0);
        fill(&gv[rank], 0);
    }
    for (int rank = 0; rank < num_ranks; rank++) {
        int before = t->num_blocks;
        if (pass == 0)
            run_forward_of(t, rank, got);
        else
            run_backward_of(t, rank, gk, gv, got);
        release_from(t, before);
    }
    for (int rank = 0; pass == 1 && rank < num_ranks; rank++) {
        put_part(&gk[rank], &t->whole[GK], got[GK]);
        put_part(&gv[rank], &t->whole[GV], got[GV]);
    }
}

/* ---- comparison ---- */

static const char *describe(const trial *t)
{
    return ms_arena_printf(t->arena, "%s, %s", t->text,
                           ms_scalar_names[t->precision.real]);
}

/* Greatest error of element i. The log-sum-exp has the absolute error of the scores
 * alone, as its terms are positive. */
static double tolerance_of(const trial *t, int tensor, long i)
{
    const double unit[] = {[MS_SCALAR_FP32] = 0x1p-24,
                           [MS_SCALAR_FP64] = 0x1p-53,
                           [MS_SCALAR_BF16] = 0x1p-8};
    const attention_case *c = t->c;
    double of_sums = 4 * (double)(c->width + c->value_width + c->sequence) *
                     unit[t->precision.statistic];
    double num_writes = is_ring(c) ? 0 : c->num_ranks > 0 ? (double)c->num_ranks : 1;
    if (t->library != NULL && c->heads != c->kv_heads && (tensor == GK || tensor == GV))
        num_writes++;
    if (tensor == LSE)
        return of_sums * (1 + fabs(values(&t->whole[LSE])[i]));
    if (tensor == P)
        return (unit[t->precision.real] + of_sums) * t->rounded[P][i];
    return unit[t->precision.real] * (1 + num_writes) * t->rounded[tensor][i] +
           of_sums * t->summed[tensor][i];
}

static void compare(const trial *t, int tensor, const double *got)
{
    const double *want = values(&t->whole[tensor]);
    for (long i = 0; i < t->whole[tensor].count; i++) {
        double tolerance = tolerance_of(t, tensor, i);
        if (got[i] != want[i] && !(fabs(got[i] - want[i]) <= tolerance))
            fail_msg("%s: %s element %ld is %.9g, not %.9g; may differ by %.3g",
                     describe(t), names[tensor], i, got[i], want[i], tolerance);
    }
}

static void compare_pass(trial *t, int pass)
{
    const ms_node *node = &t->node[pass];
    const unsigned long seeds[] = {1, 77};
    double *got[2][NUM_TENSORS];
    for (int order = 0; order < 2; order++) {
        ms_cuda_emulated_set_seed(seeds[order]);
        for (int i = 0; i < NUM_TENSORS; i++)
            got[order][i] = MS_NEW_ARRAY(t->arena, t->whole[i].count + 1, double);
        if (is_ring(t->c))
            run_ring(t, pass, got[order]);
        else
            run_ranks(t, pass, got[order]);
        release_from(t, 0);
    }
    for (int i = 0; i < node->num_out; i++) {
        int tensor = node->out[i];
        compare(t, tensor, got[0][tensor]);
        bool may_differ =
            t->library != NULL && t->library->choice == MS_RUN_ATTENTION_CUDNN;
        if (!may_differ && memcmp(got[0][tensor], got[1][tensor],
                                  (size_t)t->whole[tensor].count * sizeof(double)) != 0)
            fail_msg("%s: %s depends on the order of threads", describe(t),
                     names[tensor]);
    }
}

static void run_case(const char *text, ms_real_type type, ms_attention_library *library)
{
    ms_arena *arena = ms_arena_open();
    const attention_case read = ms_attention_case_read(arena, text), *c = &read;
    trial *t = MS_NEW(arena, trial);
    *t = (trial){.arena = arena,
                 .text = text,
                 .c = c,
                 .precision = ms_precision_of(type),
                 .library = library};
    ms_rng rng = ms_rng_seed((uint64_t)(c->sequence * 1000 + c->heads * 10 + c->width));
    make_program(t);
    make_positions(t);
    for (int i = 0; i < NUM_TENSORS; i++)
        if (i != P || c->is_unfused)
            make_local(t, i);
    for (int i = Q; i <= GO; i++) {
        for (long j = 0; j < t->whole[i].count; j++)
            values(&t->whole[i])[j] =
                (i == Q ? QUERY_SIZE : 1) * (2 * ms_rng_uniform(&rng) - 1);
        round_to_type(t, i);
    }
    run_reference(t, 0);
    add_pairs(t);
    compare_pass(t, 0);
    for (int i = O; i <= P; i++)
        if (i != P || c->is_unfused)
            round_to_type(t, i);
    run_reference(t, 1);
    compare_pass(t, 1);
    ms_arena_close(arena);
}

void ms_attention_cases_run(const char *const *cases, ms_real_type type)
{
    for (; *cases != NULL; cases++)
        run_case(*cases, type, NULL);
}

void ms_attention_cases_run_by(const char *const *cases, ms_attention_library *library)
{
    for (; *cases != NULL; cases++)
        run_case(*cases, MS_REAL_BF16, library);
}
