#include "exec/cuda/cuda_gemm.h"

#include "exec/cpu/einsum_gemm.h"
#include "exec/cuda/cuda_arrays.h"
#include "exec/cuda/cuda_fp8.h"

/* alignment, in bytes, of operands in the workspace; suits any algorithm */
#define ALIGNMENT 256

/* ---- types ---- */

/* Types in which a GEMM computes; a, b, c of other types are cast in the workspace. */
typedef struct types {
    ms_scalar product; /* type of both operands */
    ms_scalar sum;     /* type of the result before casting */
    bool casts[3];     /* whether a, b and c are cast */
} types;

static ms_scalar wider(ms_scalar a, ms_scalar b)
{
    return ms_scalar_bytes(a) >= ms_scalar_bytes(b) ? a : b;
}

/* Types for the GEMM of operands a, b and result c; bf16 products are summed to bf16 or
 * fp32, the type of c. */
static types types_of(ms_scalar a, ms_scalar b, ms_scalar c)
{
    types t = {.product = wider(a, b)};
    bool widens = t.product == MS_SCALAR_BF16 && c == MS_SCALAR_FP32;
    t.sum = widens ? c : t.product;
    t.casts[0] = a != t.product;
    t.casts[1] = b != t.product;
    t.casts[2] = c != t.sum;
    return t;
}

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t ms_cuda_einsum_bytes(const ms_program *program, const ms_node *node,
                            const ms_precision *precision)
{
    const int tensor[3] = {node->in[0], node->in[1], node->out[0]};
    size_t bytes = ms_cuda_fp8_bytes(program, node, precision);
    if (bytes > 0) /* FP8 operands are quantized, not cast */
        return bytes;
    ms_scalar scalar[3];
    for (int i = 0; i < 3; i++)
        scalar[i] = ms_tensor_scalar(program, tensor[i], precision);
    types t = types_of(scalar[0], scalar[1], scalar[2]);
    for (int i = 0; i < 3; i++)
        if (t.casts[i])
            bytes += round_up((size_t)ms_tensor_local_elements(program, tensor[i]) *
                              ms_scalar_bytes(i < 2 ? t.product : t.sum));
    return bytes;
}

/* ---- products ---- */

typedef struct operands {
    const void *a, *b;
    void *c;
    types types;
    bool add;
    bool has_rows; /* some size is the rows of an expert, which vary */
} operands;

/* The size of the product that is the number of an expert's rows. */
static ms_cuda_gemm_size size_of_rows(const ms_einsum *e, bool swapped)
{
    bool in_a = ms_einsum_has(e, swapped ? 1 : 0, MS_DIM_ROWS),
         in_b = ms_einsum_has(e, swapped ? 0 : 1, MS_DIM_ROWS);
    return in_a && in_b ? MS_CUDA_GEMM_K : in_a ? MS_CUDA_GEMM_M : MS_CUDA_GEMM_N;
}

static ms_status multiply(const ms_cuda_call *call, const ms_einsum *e, const operands *x)
{
    ms_einsum_product p;
    if (!ms_einsum_as_product(e, &p))
        return ms_fail(call->cx, MS_EIO, MS_NOWHERE,
                       "einsum \"%s\" is no matrix product, which GPUs need",
                       call->op->node->einsum);
    const ms_gemm *g = &p.gemm;
    if (g->num_batch == 0 || g->m == 0 || g->n == 0)
        return MS_OK;
    ms_cuda_gemm product = {.type = x->types.product,
                            .result = x->types.sum,
                            .transpose_a = g->transpose_a,
                            .transpose_b = g->transpose_b,
                            .add = x->add,
                            .m = g->m,
                            .n = g->n,
                            .k = g->k,
                            .ld_a = g->ld_a,
                            .ld_b = g->ld_b,
                            .ld_c = g->ld_c,
                            .num_batch = g->num_batch,
                            .stride_a = g->stride_a,
                            .stride_b = g->stride_b,
                            .stride_c = g->stride_c,
                            .a = p.swapped ? x->b : x->a,
                            .b = p.swapped ? x->a : x->b,
                            .c = x->c};
    if (x->has_rows)
        product.varies = size_of_rows(e, p.swapped);
    ms_status status;
    return ms_cuda_fp8_gemm(call, &product, p.swapped, &status)
               ? status
               : call->driver->product(call->cx, call->stream, &product);
}

static types types_of_call(const ms_op_call *op)
{
    return types_of((ms_scalar)op->in[0]->scalar, (ms_scalar)op->in[1]->scalar,
                    (ms_scalar)op->out[0]->scalar);
}

static void *take(unsigned char **workspace, long count, ms_scalar scalar)
{
    void *taken = *workspace;
    *workspace += round_up((size_t)count * ms_scalar_bytes(scalar));
    return taken;
}

static void cast(const ms_cuda_call *call, ms_cuda_cast how)
{
    if (how.count > 0)
        ms_cuda_array_cast(call->stream, &how);
}

static const void *widened(const ms_cuda_call *call, const ms_local *x, ms_scalar scalar,
                           unsigned char **workspace)
{
    void *to = take(workspace, x->count, scalar);
    cast(call, (ms_cuda_cast){scalar, (ms_scalar)x->scalar, to, x->data, x->count});
    return to;
}

ms_status ms_cuda_einsum(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    const ms_local *out = op->out[0];
    if (out->data == NULL)
        return MS_OK;
    unsigned char *workspace = call->workspace;
    ms_einsum e = ms_einsum_of(op);
    operands x = {.a = op->in[0]->data,
                  .b = op->in[1]->data,
                  .c = out->data,
                  .types = types_of_call(op),
                  .add = ms_op_is_added(op, 0)};
    if (x.types.casts[0])
        x.a = widened(call, op->in[0], x.types.product, &workspace);
    if (x.types.casts[1])
        x.b = widened(call, op->in[1], x.types.product, &workspace);
    if (x.types.casts[2] && x.add)
        return ms_fail(call->cx, MS_EIO, MS_NOWHERE,
                       "sums in %s cannot be added to a gradient in %s",
                       ms_scalar_names[x.types.sum], ms_scalar_names[out->scalar]);
    if (x.types.casts[2])
        x.c = take(&workspace, out->count, x.types.sum);
    MS_TRY(multiply(call, &e, &x));
    if (x.types.casts[2])
        cast(call, (ms_cuda_cast){(ms_scalar)out->scalar, x.types.sum, out->data, x.c,
                                  out->count});
    return MS_OK;
}

ms_status ms_cuda_grouped(const ms_cuda_call *call)
{
    const ms_op_call *op = call->op;
    long at[3];
    if (op->out[0]->data == NULL)
        return MS_OK;
    types t = types_of_call(op);
    if (t.casts[0] || t.casts[1] || t.casts[2])
        return ms_fail(call->cx, MS_EIO, MS_NOWHERE,
                       "%s: operands of a grouped GEMM have different types",
                       op->node->name);
    size_t element = ms_scalar_bytes(t.product), sum = ms_scalar_bytes(t.sum);
    ms_grouped g = ms_grouped_begin(op);
    while (ms_grouped_next(&g, at)) {
        operands x = {
            .a = (const unsigned char *)op->in[0]->data + (size_t)at[0] * element,
            .b = (const unsigned char *)op->in[1]->data + (size_t)at[1] * element,
            .c = (unsigned char *)op->out[0]->data + (size_t)at[2] * sum,
            .types = t,
            .add = ms_op_is_added(op, 0),
            .has_rows = true};
        MS_TRY(multiply(call, &g.einsum, &x));
    }
    return MS_OK;
}
