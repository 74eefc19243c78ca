#include "exec/cpu/quantized_product.h"

#include "exec/cpu/einsum_gemm.h"
#include "exec/cpu/quantize.h"

#include <assert.h>

static ms_operand operand_of(const ms_op_call *call, int which)
{
    switch (call->program->tensors[call->node->in[which]].role) {
    case MS_ROLE_WEIGHT:
        return MS_OPERAND_WEIGHT;
    case MS_ROLE_GRADIENT:
        return MS_OPERAND_GRADIENT;
    default:
        return MS_OPERAND_ACTIVATION;
    }
}

/* Quantizes one operand of one product, under a scale of earlier steps if there is one. */
static void quantize_matrix(const ms_op_call *call, int which, long expert,
                            const ms_product_operand *m)
{
    float largest = 0.0F;
    if (call->history != NULL)
        largest = ms_scale_history_note(call->history, call->node->in[which], expert,
                                        ms_largest_of(m));
    ms_quantize(call->recipe, operand_of(call, which), largest, m);
}

/* Quantizes both operands of an einsum, which begin at elements at[0] and at[1]. */
static void quantize_einsum(const ms_op_call *call, const ms_einsum *e, const long *at,
                            long expert)
{
    ms_einsum_product p;
    bool is_product = ms_einsum_as_product(e, &p);
    assert(is_product); /* All layers' products are. */
    (void)is_product;
    const ms_gemm *g = &p.gemm;
    /* Whether the terms of a sum are rows of the operand, as stored. */
    const bool across[2] = {g->transpose_a, !g->transpose_b};
    const long rows[2] = {g->m, g->n}, ld[2] = {g->ld_a, g->ld_b},
               stride[2] = {g->stride_a, g->stride_b};
    for (int side = 0; side < 2; side++) {
        int which = p.swapped ? 1 - side : side;
        float *x = (float *)call->in[which]->data + at[which];
        for (long i = 0; i < g->num_batch; i++) {
            quantize_matrix(
                call, which, expert,
                &(ms_product_operand){.x = x + i * stride[side],
                                      .rows = rows[side],
                                      .terms = g->k,
                                      .row_stride = across[side] ? 1 : ld[side],
                                      .term_stride = across[side] ? ld[side] : 1});
        }
    }
}

void ms_quantize_operands(const ms_op_call *call)
{
    long at[3] = {0};
    if (call->recipe == MS_RECIPE_DEFAULT ||
        !ms_is_layer_product(call->program, call->node))
        return;
    if (call->node->op == MS_OP_EINSUM) {
        ms_einsum e = ms_einsum_of(call);
        quantize_einsum(call, &e, at, 0);
        return;
    }
    ms_grouped g = ms_grouped_begin(call);
    while (ms_grouped_next(&g, at))
        quantize_einsum(call, &g.einsum, at, g.expert - 1);
}
