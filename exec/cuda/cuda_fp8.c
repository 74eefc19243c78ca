#include "exec/cuda/cuda_fp8.h"

#include <stdint.h>

#define ALIGNMENT 256 /* alignment of arrays in the workspace, bytes */
/* row lengths (elements) and addresses (bytes) of results are multiples of this */
#define RESULT_ALIGNMENT 16

/* ---- selection of GEMMs ---- */

static bool uses_fp8(const ms_program *program, const ms_node *node,
                     const ms_precision *precision)
{
    if (!precision->has_fp8 || !ms_is_layer_product(program, node))
        return false;
    for (int i = 0; i < 2; i++)
        if (ms_tensor_scalar(program, node->in[i], precision) != MS_SCALAR_BF16)
            return false;
    return true;
}

static bool is_gradient(const ms_program *program, int tensor)
{
    return program->tensors[tensor].role == MS_ROLE_GRADIENT;
}

/* ---- workspace ---- */

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static long padded(long terms)
{
    return (terms + MS_CUDA_FP8_TERMS - 1) / MS_CUDA_FP8_TERMS * MS_CUDA_FP8_TERMS;
}

static size_t bytes_of(long m, long n, long k)
{
    return round_up(sizeof(ms_cuda_fp8_scales)) + round_up(MS_CUDA_FP8_PART_BYTES) +
           round_up((size_t)(m * padded(k))) + round_up((size_t)(n * padded(k)));
}

size_t ms_cuda_fp8_bytes(const ms_program *program, const ms_node *node,
                         const ms_precision *precision)
{
    if (!uses_fp8(program, node, precision))
        return 0;
    ms_gemm_shape shape = ms_node_gemm(program, node);
    bool by_expert = node->op == MS_OP_GROUPED,
         is_weight_gradient =
             program->tensors[node->out[0]].role == MS_ROLE_WEIGHT_GRADIENT;
    /* leaves room for one expert with the rows of all experts (balanced routing) */
    if (by_expert && is_weight_gradient)
        shape.k *= shape.batch;
    else if (by_expert)
        shape.m *= shape.batch;
    return bytes_of((long)shape.m, (long)shape.n, (long)shape.k);
}

typedef struct fp8_memory {
    ms_cuda_fp8_scales *scales;
    unsigned *parts;
    void *a, *b;
} fp8_memory;

static fp8_memory divide_workspace(void *workspace, const ms_cuda_gemm *p)
{
    unsigned char *at = workspace;
    fp8_memory m = {.scales = (void *)at};
    at += round_up(sizeof *m.scales);
    m.parts = (void *)at;
    at += round_up(MS_CUDA_FP8_PART_BYTES);
    m.a = at;
    m.b = at + round_up((size_t)(p->m * padded(p->k)));
    return m;
}

/* ---- products ---- */

static bool fits_fp8(const ms_cuda_call *call, const ms_cuda_gemm *p)
{
    const ms_op_call *op = call->op;
    return p->type == MS_SCALAR_BF16 && p->num_batch <= 1 && p->m > 0 && p->n > 0 &&
           p->k >= MS_CUDA_FP8_TERMS && p->n % RESULT_ALIGNMENT == 0 &&
           (uintptr_t)p->c % RESULT_ALIGNMENT == 0 && call->workspace != NULL &&
           bytes_of(p->m, p->n, p->k) <=
               ms_cuda_fp8_bytes(op->program, op->node, &call->precision);
}

/* Whether the library can compute the FP8 GEMM; also false on error (in *status). */
static bool is_supported(const ms_cuda_call *call, const ms_cuda_gemm *product,
                         ms_status *status)
{
    bool has = false;
    *status = call->driver->has_product(call->cx, product, &has);
    if (*status == MS_OK && !has && call->lacks_fp8 != NULL)
        *call->lacks_fp8 = true;
    return *status == MS_OK && has;
}

bool ms_cuda_fp8_gemm(const ms_cuda_call *call, const ms_cuda_gemm *p, bool swapped,
                      ms_status *status)
{
    const ms_program *program = call->op->program;
    const ms_node *node = call->op->node;
    if (!uses_fp8(program, node, &call->precision) || !fits_fp8(call, p))
        return false;
    bool wide[2] = {is_gradient(program, node->in[swapped]),
                    is_gradient(program, node->in[!swapped])};
    fp8_memory memory = divide_workspace(call->workspace, p);
    /* quantized operands are (m, k) and (n, k), row-major */
    const ms_cuda_fp8_matrix matrices[2] = {
        {.x = p->a,
         .rows = p->transpose_a ? p->k : p->m,
         .cols = p->transpose_a ? p->m : p->k,
         .transpose = p->transpose_a,
         .format = wide[0] ? MS_SCALAR_E5M2 : MS_SCALAR_E4M3,
         .to = memory.a},
        {.x = p->b,
         .rows = p->transpose_b ? p->n : p->k,
         .cols = p->transpose_b ? p->k : p->n,
         .transpose = !p->transpose_b,
         .format = wide[1] ? MS_SCALAR_E5M2 : MS_SCALAR_E4M3,
         .to = memory.b}};
    ms_cuda_gemm product = *p;
    product.type = matrices[0].format;
    product.type_b = matrices[1].format;
    product.transpose_a = false;
    product.transpose_b = true;
    product.k = product.ld_a = product.ld_b = padded(p->k);
    product.a = memory.a;
    product.b = memory.b;
    product.scale_a = &memory.scales->from_fp8[0];
    product.scale_b = &memory.scales->from_fp8[1];
    if (p->varies == MS_CUDA_GEMM_K) /* so do leading dimensions here */
        product.varies = MS_CUDA_GEMM_NONE;
    product.fast = !wide[0] && !wide[1];
    if (!is_supported(call, &product, status))
        return *status != MS_OK;
    ms_cuda_fp8_find_scales(call->stream, memory.scales, memory.parts, matrices);
    for (int i = 0; i < 2; i++)
        ms_cuda_fp8_cast(call->stream, &matrices[i], memory.scales, i);
    *status = call->driver->product(call->cx, call->stream, &product);
    return true;
}
