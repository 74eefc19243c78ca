/* Kernels that the calibration measures: every node of the layer programs of some small
 * models, each shape once. */
#include "exec/measure/measure_priv.h"

#include "exec/core/rank.h"

#include <string.h>

/* Sizes of a one-layer model and of its micro-batch. */
typedef struct small_model {
    long hidden, heads, kv_heads, head_dim, ffn, vocab;
    long sequence, sequences;
    bool quick; /* whether quick mode measures the model, too */
} small_model;

static const small_model plain_models[] = {
    {64, 2, 1, 32, 256, 1024, 64, 1, true},
    {64, 2, 2, 32, 256, 1024, 256, 2, false},
    {128, 4, 2, 32, 512, 2048, 128, 1, true},
    {256, 4, 4, 64, 768, 4096, 64, 1, false},
    {256, 4, 2, 64, 768, 4096, 256, 1, true},
    {256, 8, 4, 32, 1024, 8192, 512, 1, true},
    {256, 4, 4, 64, 512, 2048, 1024, 1, false},
    {512, 4, 4, 128, 1536, 4096, 128, 1, true},
    {512, 4, 4, 128, 1024, 2048, 256, 4, false},
    {512, 8, 4, 64, 2048, 4096, 512, 1, false},
    {1024, 8, 8, 128, 2816, 4096, 64, 1, false},
    {1024, 8, 4, 128, 4096, 2048, 256, 1, false},
    {2048, 16, 4, 128, 4096, 512, 64, 1, false},
};
/* Sizes of models of the families EXPERTS (expert routing) and BIASED (biases). */
static const small_model other_models[] = {
    {128, 4, 4, 32, 256, 1024, 64, 1, true},
    {256, 4, 4, 64, 768, 4096, 256, 1, true},
    {512, 8, 8, 64, 1024, 2048, 256, 2, false},
};
/* Models measured if `large`: layers of published models; others that cover the rows,
 * widths and sequence lengths of real runs. */
static const small_model large_plain_models[] = {
    {256, 4, 4, 64, 1024, 4096, 256, 1, true},
    {512, 8, 8, 64, 2048, 8192, 512, 1, false},
    {1024, 16, 4, 64, 4096, 16384, 1024, 1, true},
    {1024, 8, 8, 128, 2816, 8192, 8192, 1, false},
    {2048, 32, 8, 64, 8192, 128256, 4096, 1, true}, /* Llama 3.2 1B */
    {2048, 32, 8, 64, 8192, 32000, 2048, 4, false},
    {2048, 16, 16, 128, 5632, 32000, 512, 8, false},
    {3072, 24, 8, 128, 8192, 128256, 4096, 1, true}, /* Llama 3.2 3B */
    {3072, 24, 8, 128, 8192, 32000, 4096, 2, false},
    {4096, 32, 8, 128, 14336, 32000, 256, 1, false},
    {4096, 32, 8, 128, 14336, 32000, 4096, 1, false}, /* Llama 3.1 8B, smaller vocab */
    {4096, 32, 32, 128, 11008, 32000, 2048, 2, false},
    {6144, 48, 8, 128, 16384, 16384, 1024, 1, false},
    {8192, 64, 8, 128, 16384, 16384, 2048, 1, false},
    {2048, 16, 8, 128, 16384, 4096, 16384, 1, false},
};
static const small_model large_other_models[] = {
    {512, 8, 8, 64, 1024, 2048, 512, 1, true},
    {2048, 16, 16, 128, 4096, 4096, 2048, 1, true},
    {4096, 32, 32, 128, 4096, 4096, 4096, 2, false},
};
/* Elements of arrays in bandwidth tests; the largest exceed all caches. */
static const long stream_counts[] = {1 << 21, 1 << 22, 1 << 23};
static const long large_stream_counts[] = {1 << 26, 1 << 27, 1 << 28};
static const long update_counts[] = {1 << 10, 1 << 13, 1 << 16, 1 << 19, 1 << 22};
static const long large_update_counts[] = {1 << 14, 1 << 18, 1 << 22, 1 << 25, 1 << 28};

typedef enum family {
    PLAIN,
    EXPERTS,
    BIASED
} family;

typedef struct maker {
    ms_ctx *cx;
    const ms_measure *how;
    const ms_world *world;
    ms_kernel_cases *cases;
    bool has_op[MS_NUM_OPS]; /* operations of earlier families: not measured again */
    unsigned long num_batches;
} maker;

ms_dtype ms_measure_dtype(ms_real_type type)
{
    static const ms_dtype dtypes[] = {[MS_REAL_FP32] = MS_FP32,
                                      [MS_REAL_FP64] = MS_FP64,
                                      [MS_REAL_BF16] = MS_BF16,
                                      [MS_REAL_FP8] = MS_FP8,
                                      [MS_REAL_FP4] = MS_FP4};
    return dtypes[type];
}

/* ---- models ---- */

static const char *model_text(ms_arena *arena, const small_model *m, family which)
{
    static const char *const rest[] = {
        [PLAIN] = "\"norm\": \"rms\", \"activation\": \"swiglu\", \"position\": "
                  "\"rotary\", \"ffn_hidden\": %ld}",
        [EXPERTS] = "\"norm\": \"rms\", \"activation\": \"swiglu\", \"position\": "
                    "\"rotary\", \"moe\": {\"num_experts\": 4, \"top_k\": 2, "
                    "\"ffn_hidden\": %ld, \"router\": \"topk-softmax\", \"norm_topk\": "
                    "true}}",
        [BIASED] = "\"norm\": \"layer\", \"activation\": \"gelu\", \"position\": "
                   "\"learned\", \"qkv_bias\": true, \"attention_out_bias\": true, "
                   "\"mlp_bias\": true, \"ffn_hidden\": %ld}",
    };
    const char *form = rest[which];
    char *number = ms_arena_printf(arena, "%ld", m->ffn);
    long positions = m->sequence > 4096 ? m->sequence : 4096;
    const char *at = strstr(form, "%ld");
    return ms_arena_printf(
        arena,
        "{\"schema\": \"meshsim.model-config/1\", \"name\": \"small\", \"family\": "
        "\"small\", \"source\": \"calibration\", \"layers\": 1, \"hidden\": %ld, "
        "\"heads\": %ld, \"kv_heads\": %ld, \"head_dim\": %ld, \"vocab\": %ld, "
        "\"max_positions\": %ld, \"tied_embeddings\": false, %.*s%s%s",
        m->hidden, m->heads, m->kv_heads, m->head_dim, m->vocab, positions,
        (int)(at - form), form, number, at + 3);
}

static ms_status read_model(ms_ctx *cx, const small_model *m, family which,
                            const ms_model **out)
{
    const char *text = model_text(cx->arena, m, which);
    ms_jdoc *doc;
    ms_jval root;
    ms_model *model = MS_NEW(cx->arena, ms_model);
    MS_TRY(ms_json_parse(cx, "calibration", text, strlen(text), &doc, &root));
    ms_status status = ms_model_read(cx, root, "small", model);
    ms_json_close(doc);
    *out = model;
    return status;
}

static const ms_batch *make_batch(ms_arena *arena, const small_model *m,
                                  unsigned long number)
{
    long count = m->sequence * m->sequences;
    int *tokens = MS_NEW_ARRAY(arena, count, int);
    ms_rng rng = ms_rng_seed(5);
    for (long i = 0; i < count; i++)
        tokens[i] = (int)ms_rng_below(&rng, (uint64_t)m->vocab);
    ms_batch *batch = MS_NEW(arena, ms_batch);
    *batch = (ms_batch){.num_sequences = m->sequences,
                        .sequence_length = m->sequence,
                        .tokens = tokens,
                        .targets = tokens,
                        .num_tokens = (double)count,
                        .number = number};
    return batch;
}

/* ---- cases ---- */

static bool is_enough(const ms_measure *how, const ms_kernel_cases *cases,
                      const ms_sample *sample)
{
    int num = 0;
    for (int i = 0; i < cases->num; i++) {
        const ms_sample *other = &cases->items[i].sample;
        if (ms_samples_alike(other, sample))
            return true;
        num += other->kind == sample->kind && other->what == sample->what;
    }
    return how->most_shapes > 0 && num >= how->most_shapes;
}

static void push(ms_arena *arena, ms_kernel_cases *cases, const ms_kernel_case *item)
{
    MS_MAKE_ROOM(arena, cases->items, cases->num, cases->capacity, 128);
    cases->items[cases->num++] = *item;
}

/* Sets the sample's kind and size by the node; false if such nodes are not measured. */
static bool describe(const ms_program *program, const ms_node *node, ms_sample *sample)
{
    if (node->op == MS_OP_EINSUM) {
        ms_gemm_shape shape = ms_node_gemm(program, node);
        const double size[] = {shape.batch, shape.m, shape.n, shape.k};
        sample->kind = MS_SAMPLE_GEMM;
        memcpy(sample->size, size, sizeof size);
        return true;
    }
    if (node->op == MS_OP_ATTENTION || node->op == MS_OP_ATTENTION_GRAD) {
        ms_attention_shape shape = ms_node_attention(program, node);
        const double size[] = {shape.flop, shape.key_tokens, shape.head_dim,
                               shape.score_elements, shape.traffic_bytes};
        sample->kind = shape.backward ? MS_SAMPLE_ATTENTION_GRAD : MS_SAMPLE_ATTENTION;
        memcpy(sample->size, size, sizeof size);
        return true;
    }
    sample->kind = MS_SAMPLE_POINTWISE;
    sample->what = node->op;
    sample->size[0] = ms_node_pointwise_bytes(program, node);
    return ms_op_is_pointwise((ms_op)node->op) && sample->size[0] > 0.0;
}

static ms_local local_of(const maker *m, const ms_program *program, int tensor,
                         const ms_precision *precision)
{
    ms_local local = ms_world_local(m->world, program, tensor, &m->world->places[0]);
    local.scalar = (unsigned char)ms_tensor_scalar(program, tensor, precision);
    return local;
}

static void add_node(maker *m, const ms_program *program, const ms_node *node,
                     const ms_batch *batch)
{
    ms_precision precision = ms_precision_of(m->how->type);
    ms_kernel_case item = {.sample = {.ranks = m->how->num_ranks},
                           .program = program,
                           .node = node,
                           .batch = batch};
    if (node->pass == MS_PASS_RECOMPUTE || m->has_op[node->op] ||
        !describe(program, node, &item.sample) ||
        is_enough(m->how, m->cases, &item.sample))
        return;
    for (int i = 0; i < node->num_in; i++)
        item.in[i] = local_of(m, program, node->in[i], &precision);
    for (int i = 0; i < node->num_out; i++)
        item.out[i] = local_of(m, program, node->out[i], &precision);
    push(m->cx->arena, m->cases, &item);
}

static ms_status add_model(maker *m, const small_model *sizes, family which)
{
    const ms_model *model;
    MS_TRY(read_model(m->cx, sizes, which, &model));
    const ms_batch *batch = make_batch(m->cx->arena, sizes, ++m->num_batches);
    ms_dtype compute = ms_measure_dtype(m->how->type);
    for (int block = 0; block < MS_NUM_BLOCK_KINDS; block++) {
        ms_program_key key = {.block = (unsigned char)block,
                              .attention_fused = true,
                              .recompute = MS_RECOMPUTE_NONE,
                              .tp = 1,
                              .cp = 1,
                              .ep = 1,
                              .etp = 1,
                              .microbatch = (int)sizes->sequences};
        const ms_program *program =
            ms_program_make(m->cx->arena, model, &key, sizes->sequence, 1, compute);
        for (int n = 0; n < program->num_nodes; n++)
            add_node(m, program, &program->nodes[n], batch);
    }
    return MS_OK;
}

static ms_status add_family(maker *m, const small_model *models, size_t num, family which)
{
    for (int i = 0; i < m->cases->num; i++)
        if (m->cases->items[i].node != NULL)
            m->has_op[m->cases->items[i].node->op] = true;
    for (size_t i = 0; i < num; i++)
        if (models[i].quick || !m->how->quick)
            MS_TRY(add_model(m, &models[i], which));
    return MS_OK;
}

/* Adds a case per count n: a pass that reads and writes `arrays` arrays of n elements. */
static void add_passes(maker *m, const long *counts, size_t num, ms_sample sample,
                       double arrays)
{
    double bytes = ms_stored_bytes(ms_measure_dtype(m->how->type));
    sample.ranks = m->how->num_ranks;
    for (size_t i = 0; i < num; i++) {
        ms_kernel_case item = {.sample = sample, .count = counts[i]};
        item.sample.size[0] = arrays * bytes * (double)counts[i];
        if (!is_enough(m->how, m->cases, &item.sample))
            push(m->cx->arena, m->cases, &item);
    }
}

/* Adds cases of the optimizer's pass (sums squares of gradients, updates weights, clears
 * gradients: 7 arrays) and of a bandwidth test (reads two arrays, writes one). */
static void add_all_passes(maker *m)
{
    const ms_sample update = {.kind = MS_SAMPLE_POINTWISE, .what = MS_OP_ADAM},
                    stream = {.kind = MS_SAMPLE_STREAM};
    bool large = m->how->large;
    add_passes(m, large ? large_update_counts : update_counts,
               sizeof update_counts / sizeof *update_counts, update, 7);
    add_passes(m, large ? large_stream_counts : stream_counts,
               sizeof stream_counts / sizeof *stream_counts, stream, 3);
}

/* Adds a case of MS_SAMPLE_ZERO_GEMM: the GEMM of the most FLOP. */
static void add_zeros(maker *m)
{
    const ms_kernel_case *most = NULL;
    double most_size = 0.0;
    for (int i = 0; i < m->cases->num; i++) {
        const ms_kernel_case *item = &m->cases->items[i];
        const double *s = item->sample.size;
        double size = s[0] * s[1] * s[2] * s[3];
        if (item->sample.kind != MS_SAMPLE_GEMM || size <= most_size)
            continue;
        most = item;
        most_size = size;
    }
    if (most == NULL)
        return;
    ms_kernel_case zeros = *most;
    zeros.sample.kind = MS_SAMPLE_ZERO_GEMM;
    push(m->cx->arena, m->cases, &zeros);
}

/* Adds a case of MS_SAMPLE_LAUNCH: the measured operation that moves the fewest bytes. */
static void add_launch(maker *m)
{
    const ms_kernel_case *least = NULL;
    for (int i = 0; i < m->cases->num; i++) {
        const ms_kernel_case *item = &m->cases->items[i];
        if (item->node != NULL && item->sample.kind == MS_SAMPLE_POINTWISE &&
            (least == NULL || item->sample.size[0] < least->sample.size[0]))
            least = item;
    }
    if (least == NULL)
        return;
    ms_kernel_case launch = *least;
    launch.sample =
        (ms_sample){.kind = MS_SAMPLE_LAUNCH, .ranks = m->how->num_ranks, .size = {1.0}};
    push(m->cx->arena, m->cases, &launch);
}

ms_status ms_kernel_cases_make(ms_ctx *cx, const ms_measure *how, const ms_world *world,
                               ms_kernel_cases *out)
{
    *out = (ms_kernel_cases){0};
    maker m = {.cx = cx, .how = how, .world = world, .cases = out};
    const small_model *plain = how->large ? large_plain_models : plain_models;
    const small_model *other = how->large ? large_other_models : other_models;
    size_t num_plain = how->large ? sizeof large_plain_models / sizeof *large_plain_models
                                  : sizeof plain_models / sizeof *plain_models;
    const size_t num_other = sizeof other_models / sizeof *other_models;
    MS_TRY(add_family(&m, plain, num_plain, PLAIN));
    MS_TRY(add_family(&m, other, num_other, EXPERTS));
    MS_TRY(add_family(&m, other, num_other, BIASED));
    add_all_passes(&m);
    if (how->backend->read_clock != NULL) {
        add_zeros(&m);
        add_launch(&m);
    }
    return MS_OK;
}
