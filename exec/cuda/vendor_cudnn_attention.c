/* Attention as graphs of cuDNN operations, in the forms for which the library has fused
 * kernels (cuDNN documentation, "Graph API", "Supported Graph Patterns"; NVIDIA/
 * cudnn-frontend, "Scaled Dot Product Attention"). Which form an engine takes was tried
 * with cuDNN 9.19 for the properties of devices of compute capability 8.0, 9.0 and 10.0;
 * tests/exec/cuda/test_cuda_cudnn.c repeats that. */
#include "exec/cuda/vendor_cudnn_priv.h"

static const cudnnDataType_t bf16 = CUDNN_DATA_BFLOAT16, fp32 = CUDNN_DATA_FLOAT;

/* ---- operands ---- */

/* A tensor in memory, stored as [batch rows heads columns]. */
static ms_cudnn_tensor stored(int64_t uid, cudnnDataType_t type,
                              const int64_t dims[MS_CUDNN_DIMS])
{
    int64_t heads = dims[1], rows = dims[2], columns = dims[3];
    return (ms_cudnn_tensor){
        .uid = uid,
        .type = type,
        .dims = {dims[0], heads, rows, columns},
        .strides = {rows * heads * columns, columns, heads * columns, 1}};
}

static ms_cudnn_tensor number(ms_cudnn_graph *g, int64_t uid)
{
    return ms_cudnn_add_tensor(g, (ms_cudnn_tensor){.uid = uid,
                                                    .type = fp32,
                                                    .dims = {1, 1, 1, 1},
                                                    .strides = {1, 1, 1, 1},
                                                    .is_by_value = true});
}

/* Operands of both passes. Keys, and in the backward pass values, enter as matrices whose
 * columns are tokens. */
typedef struct operands {
    ms_cudnn_tensor q, k_transposed, v, o, lse, scale;
    int64_t q_dims[MS_CUDNN_DIMS], k_dims[MS_CUDNN_DIMS], v_dims[MS_CUDNN_DIMS],
        o_dims[MS_CUDNN_DIMS];
} operands;

static void set_dims(int64_t dims[MS_CUDNN_DIMS], const ms_cuda_fused_shape *s,
                     bool of_keys, long width)
{
    dims[0] = s->num_batch;
    dims[1] = of_keys ? s->num_kv_heads : s->num_heads;
    dims[2] = of_keys ? s->num_keys : s->num_queries;
    dims[3] = width;
}

static operands add_operands(ms_cudnn_graph *g, const ms_cuda_fused_shape *s)
{
    operands x;
    int64_t lse_dims[MS_CUDNN_DIMS];
    set_dims(x.q_dims, s, false, s->width);
    set_dims(x.k_dims, s, true, s->width);
    set_dims(x.v_dims, s, true, s->value_width);
    set_dims(x.o_dims, s, false, s->value_width);
    set_dims(lse_dims, s, false, 1);
    ms_cudnn_tensor v = stored(MS_CUDNN_V, bf16, x.v_dims);
    x.q = ms_cudnn_add_tensor(g, stored(MS_CUDNN_Q, bf16, x.q_dims));
    x.k_transposed =
        ms_cudnn_add_tensor(g, ms_cudnn_transposed(stored(MS_CUDNN_K, bf16, x.k_dims)));
    x.v = ms_cudnn_add_tensor(g, s->is_grad ? ms_cudnn_transposed(v) : v);
    x.o = ms_cudnn_add_tensor(g, stored(MS_CUDNN_O, bf16, x.o_dims));
    x.lse = ms_cudnn_add_tensor(g, stored(MS_CUDNN_LSE, fp32, lse_dims));
    x.scale = number(g, MS_CUDNN_SCALE);
    return x;
}

/* ---- steps of both passes ---- */

/* The virtual result, of type `type`, of a pointwise operation; it has the shape of x. */
static ms_cudnn_tensor apply_as(ms_cudnn_graph *g, cudnnDataType_t type,
                                ms_cudnn_pointwise p)
{
    p.y = ms_cudnn_add_row_major(g, 0, type, p.x.dims);
    ms_cudnn_add_pointwise(g, &p);
    return p.y;
}

static ms_cudnn_tensor apply(ms_cudnn_graph *g, cudnnPointwiseMode_t mode,
                             ms_cudnn_tensor x, ms_cudnn_tensor b)
{
    return apply_as(g, fp32, (ms_cudnn_pointwise){.mode = mode, .x = x, .b = b});
}

static ms_cudnn_tensor apply_to(ms_cudnn_graph *g, cudnnPointwiseMode_t mode,
                                ms_cudnn_tensor x)
{
    return apply_as(g, fp32, (ms_cudnn_pointwise){.mode = mode, .x = x});
}

/* Scores with those of keys after their query replaced. */
static ms_cudnn_tensor mask_later_keys(ms_cudnn_graph *g, ms_cudnn_tensor scores)
{
    const int of_query = 2, of_key = 3;
    ms_cudnn_pointwise index = {.mode = CUDNN_POINTWISE_GEN_INDEX, .x = scores};
    index.axis = of_query;
    ms_cudnn_tensor query = apply_as(g, CUDNN_DATA_INT32, index);
    index.axis = of_key;
    ms_cudnn_tensor key = apply_as(g, CUDNN_DATA_INT32, index);
    ms_cudnn_tensor is_seen = apply_as(
        g, CUDNN_DATA_BOOLEAN,
        (ms_cudnn_pointwise){.mode = CUDNN_POINTWISE_CMP_GE, .x = query, .b = key});
    return apply_as(g, fp32,
                    (ms_cudnn_pointwise){.mode = CUDNN_POINTWISE_BINARY_SELECT,
                                         .x = scores,
                                         .b = number(g, MS_CUDNN_MASKED),
                                         .t = is_seen});
}

/* The virtual product a b. */
static ms_cudnn_tensor product(ms_cudnn_graph *g, cudnnDataType_t type, ms_cudnn_tensor a,
                               ms_cudnn_tensor b)
{
    const int64_t dims[] = {a.dims[0], a.dims[1], a.dims[2], b.dims[3]};
    ms_cudnn_tensor c = ms_cudnn_add_row_major(g, 0, type, dims);
    ms_cudnn_add_matmul(g, a, b, c);
    return c;
}

static ms_cudnn_tensor scores_of(ms_cudnn_graph *g, const operands *x, bool is_causal)
{
    ms_cudnn_tensor scores = product(g, fp32, x->q, x->k_transposed);
    scores = apply(g, CUDNN_POINTWISE_MUL, scores, x->scale);
    return is_causal ? mask_later_keys(g, scores) : scores;
}

/* Reduces each row to one number. */
static ms_cudnn_tensor by_row(ms_cudnn_graph *g, cudnnReduceTensorOp_t operator,
                              ms_cudnn_tensor x)
{
    const int64_t dims[] = {x.dims[0], x.dims[1], x.dims[2], 1};
    ms_cudnn_tensor y = ms_cudnn_add_row_major(g, 0, fp32, dims);
    ms_cudnn_add_reduction(g, operator, x, y);
    return y;
}

/* ---- forward ---- */

static void add_forward(ms_cudnn_graph *g, const ms_cuda_fused_shape *s)
{
    operands x = add_operands(g, s);
    ms_cudnn_tensor scores = scores_of(g, &x, s->is_causal);
    ms_cudnn_tensor most = by_row(g, CUDNN_REDUCE_TENSOR_MAX, scores);
    ms_cudnn_tensor exps =
        apply_to(g, CUDNN_POINTWISE_EXP, apply(g, CUDNN_POINTWISE_SUB, scores, most));
    ms_cudnn_tensor sum = by_row(g, CUDNN_REDUCE_TENSOR_ADD, exps);
    ms_cudnn_add_pointwise(
        g, &(ms_cudnn_pointwise){.mode = CUDNN_POINTWISE_ADD,
                                 .x = most,
                                 .b = apply_to(g, CUDNN_POINTWISE_LOG, sum),
                                 .y = x.lse});
    /* operands of products have the type of the tensors in memory */
    ms_cudnn_tensor p = apply_as(
        g, bf16, (ms_cudnn_pointwise){.mode = CUDNN_POINTWISE_DIV, .x = exps, .b = sum});
    ms_cudnn_add_matmul(g, p, x.v, x.o);
}

/* ---- backward ---- */

/* The transposed matrix, in bf16. */
static ms_cudnn_tensor transpose(ms_cudnn_graph *g, ms_cudnn_tensor x)
{
    ms_cudnn_tensor y = ms_cudnn_transposed(x);
    y.uid = 0;
    y.type = bf16;
    y = ms_cudnn_add_tensor(g, y);
    ms_cudnn_add_reshape(g, x, y);
    return y;
}

/* Adds to = a b, the gradient of keys or values. Gradients by query heads that share one of
 * `to` are summed; they are bf16 before, since engines for Blackwell refuse fp32. */
static void add_product_of_heads(ms_cudnn_graph *g, ms_cudnn_tensor a, ms_cudnn_tensor b,
                                 ms_cudnn_tensor to)
{
    if (to.dims[1] == a.dims[1])
        ms_cudnn_add_matmul(g, a, b, to);
    else
        ms_cudnn_add_reduction(g, CUDNN_REDUCE_TENSOR_ADD, product(g, bf16, a, b), to);
}

/* gq = gs k. Sums of gq in memory let thread blocks add theirs, in the order in which
 * they end; without, engines store gs, which needs memory for all scores. */
static void add_query_gradient(ms_cudnn_graph *g, const ms_cuda_fused_shape *s,
                               const operands *x, ms_cudnn_tensor gs)
{
    ms_cudnn_tensor k = transpose(g, x->k_transposed);
    ms_cudnn_tensor gq = ms_cudnn_add_tensor(g, stored(MS_CUDNN_GQ, bf16, x->q_dims));
    if (s->is_deterministic) {
        ms_cudnn_add_matmul(g, gs, k, gq);
        return;
    }
    ms_cudnn_tensor sum = ms_cudnn_add_row_major(g, MS_CUDNN_GQ_SUM, fp32, x->q_dims);
    ms_cudnn_add_matmul(g, gs, k, sum);
    ms_cudnn_add_pointwise(
        g, &(ms_cudnn_pointwise){.mode = CUDNN_POINTWISE_IDENTITY, .x = sum, .y = gq});
}

/* Sum of go * o per row: the mean gradient of a query's probabilities. The factor 1 has
 * the place of dropout's; without it, engines need memory for all scores. */
static ms_cudnn_tensor means_of(ms_cudnn_graph *g, ms_cudnn_tensor go, ms_cudnn_tensor o)
{
    ms_cudnn_tensor sums =
        by_row(g, CUDNN_REDUCE_TENSOR_ADD, apply(g, CUDNN_POINTWISE_MUL, go, o));
    return apply(g, CUDNN_POINTWISE_MUL, sums, number(g, MS_CUDNN_ONE));
}

static void add_backward(ms_cudnn_graph *g, const ms_cuda_fused_shape *s)
{
    operands x = add_operands(g, s);
    ms_cudnn_tensor go = ms_cudnn_add_tensor(g, stored(MS_CUDNN_GO, bf16, x.o_dims)),
                    gk = ms_cudnn_add_tensor(g, stored(MS_CUDNN_GK, bf16, x.k_dims)),
                    gv = ms_cudnn_add_tensor(g, stored(MS_CUDNN_GV, bf16, x.v_dims));
    ms_cudnn_tensor means = means_of(g, go, x.o);
    ms_cudnn_tensor scores = scores_of(g, &x, s->is_causal);
    ms_cudnn_tensor p =
        apply_to(g, CUDNN_POINTWISE_EXP, apply(g, CUDNN_POINTWISE_SUB, scores, x.lse));
    add_product_of_heads(g, transpose(g, p), go, gv);
    ms_cudnn_tensor gp = apply(g, CUDNN_POINTWISE_SUB, product(g, fp32, go, x.v), means);
    ms_cudnn_pointwise scaled = {.mode = CUDNN_POINTWISE_MUL,
                                 .x = apply(g, CUDNN_POINTWISE_MUL, gp, p),
                                 .b = x.scale};
    ms_cudnn_tensor gs = apply_as(g, bf16, scaled);
    add_product_of_heads(g, transpose(g, gs), x.q, gk);
    add_query_gradient(g, s, &x, gs);
}

void ms_cudnn_add_attention(ms_cudnn_graph *g, const ms_cuda_fused_shape *shape)
{
    if (shape->is_grad)
        add_backward(g, shape);
    else
        add_forward(g, shape);
}
