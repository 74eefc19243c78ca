#include "costmodel/cost/cast.h"

#include "costmodel/cost/bill.h"
#include "costmodel/cost/collective_cost.h"

#include <math.h>
#include <string.h>

double ms_cast_element_bytes(const ms_pricer *pricer)
{
    const ms_operand_scaling *scaling = pricer->stack->scaling;
    return ms_dtype_bytes(pricer->compute) +
           (scaling == NULL ? 0.0 : scaling->scale_bytes);
}

/* ---- gathers for products ---- */

static bool is_for_products(const ms_program *program, int tensor)
{
    bool any = false;
    for (int n = program->tensors[tensor].producer + 1; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (!ms_node_reads(node, tensor))
            continue;
        if (!ms_node_is_product(node) || ms_node_is_adapter(node))
            return false;
        any = true;
    }
    return any;
}

/* The all-gather over tp that makes a tensor; NULL if the tensor is made otherwise. */
static const ms_node *gather_of(const ms_program *program, int tensor)
{
    int producer = program->tensors[tensor].producer;
    if (producer < 0)
        return NULL;
    const ms_node *node = &program->nodes[producer];
    ms_node_comm comm;
    bool gathers =
        node->op == MS_OP_REDISTRIBUTE && ms_node_communicates(program, node, &comm) &&
        comm.collective == MS_ALL_GATHER && ms_node_bill_axis(&comm) == MS_BILL_TP;
    return gathers ? node : NULL;
}

static bool sends_cast(const ms_program *program, const ms_node *gather,
                       const ms_pricer *pricer)
{
    return gather != NULL && ms_pricer_casts(pricer) && pricer->stack->casts_once &&
           program->key.block == MS_BLOCK_LAYER &&
           is_for_products(program, gather->out[0]);
}

/* An exchange in which each rank of the ep group gets all its tokens, one copy each, and
 * sums of experts' results are scattered back (Megatron Core,
 * MoEAllGatherTokenDispatcher). */
static ms_node_comm gathered_tokens(const ms_program *program, const ms_node *node,
                                    ms_node_comm comm)
{
    bool back = program->tensors[node->in[0]].received;
    double copies_bytes =
        ms_tensor_local_bytes(program, back ? node->out[0] : node->in[0]);
    comm.collective = back ? MS_REDUCE_SCATTER : MS_ALL_GATHER;
    comm.size_bytes = copies_bytes / (double)program->model->moe.top_k *
                      (double)program->mesh_size[comm.mesh][comm.axis];
    return comm;
}

bool ms_node_sends(const ms_program *program, const ms_node *node,
                   const ms_pricer *pricer, ms_node_comm *out)
{
    if (!ms_node_communicates(program, node, out))
        return false;
    if (node->op == MS_OP_EXCHANGE && pricer->stack->gathers_tokens)
        *out = gathered_tokens(program, node, *out);
    if (node->op == MS_OP_EXCHANGE && pricer->stack->shares_token_copies)
        out->size_bytes *= ms_shared_copies_frac(
            (double)program->mesh_size[out->mesh][out->axis], program->model->moe.top_k);
    if (node->op == MS_OP_REDISTRIBUTE &&
        sends_cast(program, gather_of(program, node->out[0]), pricer))
        out->size_bytes *=
            ms_cast_element_bytes(pricer) / ms_stored_bytes(pricer->compute);
    return true;
}

/* ---- products ---- */

/* Number of GEMMs of one pass that share the cast of their first operand. */
static double num_sharers(const ms_program *program, const ms_node *node)
{
    double sharers = 0.0;
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *other = &program->nodes[n];
        if (ms_node_is_product(other) && other->pass == node->pass &&
            other->in[0] == node->in[0])
            sharers += 1.0;
    }
    return sharers;
}

/* Fraction of a GEMM's first operand whose cast counts for this GEMM on one rank. With
 * casts_once: the shard cast before a gather, divided among the GEMMs that read it. */
static double cast_share(const ms_program *program, const ms_node *node,
                         const ms_pricer *pricer)
{
    if (!pricer->stack->casts_once)
        return 1.0;
    const ms_node *gather = gather_of(program, node->in[0]);
    double share = 1.0;
    if (sends_cast(program, gather, pricer))
        share = ms_tensor_local_elements(program, gather->in[0]) /
                ms_tensor_local_elements(program, gather->out[0]);
    return share / num_sharers(program, node);
}

/* ---- products of one matrix ---- */

/* The GEMM size along which projections are joined to one matrix. */
static double *joined_side(const ms_node *node, ms_gemm_shape *shape)
{
    return node->pass == MS_PASS_BACKWARD_INPUT ? &shape->k : &shape->n;
}

/* Shape of the GEMM by the joined matrix (ms_node.joined) of which a node is a part;
 * *share: its part of that GEMM. A recomputed node is a part of the forward GEMM. */
static ms_gemm_shape joined_product(const ms_program *program, const ms_node *node,
                                    const ms_stack *stack, double *share)
{
    ms_gemm_shape shape = ms_node_product(program, node, stack);
    double own = *joined_side(node, &shape), all = 0.0;
    ms_pass pass = node->pass == MS_PASS_RECOMPUTE ? MS_PASS_FORWARD : node->pass;
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *other = &program->nodes[n];
        if (other->pass == pass && other->joined == node->joined) {
            ms_gemm_shape its = ms_node_product(program, other, stack);
            all += *joined_side(other, &its);
        }
    }
    *joined_side(node, &shape) = all;
    *share = all > 0.0 ? own / all : 1.0;
    return shape;
}

static bool is_part_of_sum(const ms_program *program, int tensor)
{
    int producer = program->tensors[tensor].producer;
    return producer >= 0 && (program->nodes[producer].joined > 0 ||
                             ms_node_sums_joined(program, &program->nodes[producer]));
}

bool ms_node_sums_joined(const ms_program *program, const ms_node *node)
{
    return node->op == MS_OP_ADD && node->pass == MS_PASS_BACKWARD_INPUT &&
           is_part_of_sum(program, node->in[0]) && is_part_of_sum(program, node->in[1]);
}

/* Seconds of a GEMM node's kernels; experts may be launched one by one. */
static double kernels_s(const ms_pricer *pricer, const ms_node *node, ms_gemm_shape shape)
{
    double kernels = 1.0;
    if (node->op == MS_OP_GROUPED && pricer->stack->expert_launches.value > 0.0) {
        kernels = shape.batch;
        shape.batch = 1.0;
    }
    return kernels * ms_gemm_kernel_s(pricer, shape);
}

/* Bytes of the casts of one operand for one direction of reading: 16 bits read, values
 * and scales written. */
static double one_cast_bytes(const ms_pricer *pricer)
{
    const ms_operand_scaling *scaling = pricer->stack->scaling;
    return 2.0 * scaling->reads + ms_cast_element_bytes(pricer);
}

/* Bytes per element of a cast for a forward GEMM or an input gradient. Stacks that keep
 * casts write both directions at once (Transformer Engine, cast_transpose). */
static double first_cast_bytes(const ms_pricer *pricer)
{
    double other_bytes = pricer->stack->keeps_casts ? ms_cast_element_bytes(pricer) : 0.0;
    return one_cast_bytes(pricer) + other_bytes;
}

/* Bytes per element of a weight's cast, once per GEMM that reads the weight, or for both
 * directions in forward; none if the cast stays between micro-batches or is gathered. */
static double weight_cast_bytes(const ms_pricer *pricer, ms_pass pass)
{
    const ms_stack *stack = pricer->stack;
    if (stack->cast_param_bytes.value > 0.0 || stack->gathers_cast ||
        (stack->keeps_casts && pass == MS_PASS_BACKWARD_INPUT))
        return 0.0;
    return first_cast_bytes(pricer);
}

/* Seconds of a GEMM's casts by the plan's recipe. `share`: of the first operand's cast.
 * Stacks that save operands in 16 bits cast the input once more for the weight gradient
 * (torchao, float8_linear.py, matmul_with_hp_or_float8_args), and copy the result's
 * gradient in the other direction, or cast it once more. */
static double scaled_casts_s(const ms_pricer *pricer, const ms_node *node,
                             ms_gemm_shape shape, double share)
{
    double first = shape.batch * shape.m * shape.k,
           second = shape.batch * shape.k * shape.n;
    double copy_bytes = pricer->stack->scaling->by_tensor
                            ? 2.0 * ms_dtype_bytes(pricer->compute)
                            : one_cast_bytes(pricer);
    if (node->pass != MS_PASS_BACKWARD_WEIGHT)
        return ms_stream_s(pricer,
                           share * first * first_cast_bytes(pricer) +
                               second * weight_cast_bytes(pricer, (ms_pass)node->pass));
    return pricer->stack->keeps_casts
               ? 0.0
               : ms_stream_s(pricer, share * first * one_cast_bytes(pricer) +
                                         second * copy_bytes);
}

static double multiply_s(const ms_program *program, const ms_node *node,
                         const ms_pricer *pricer)
{
    double share = 1.0;
    bool joined = pricer->stack->fuses_projections && node->joined > 0;
    ms_gemm_shape shape = joined ? joined_product(program, node, pricer->stack, &share)
                                 : ms_node_product(program, node, pricer->stack);
    return share * kernels_s(pricer, node, shape);
}

/* Whether the node is the output head's GEMM or one of its gradients. */
static bool makes_logits(const ms_node *node)
{
    return node->op == MS_OP_EINSUM && strchr(node->einsum, MS_DIM_VOCAB) != NULL;
}

/* Seconds to make an operand of a frozen weight, and its transpose (ms_stack). */
static double thaw_s(const ms_program *program, const ms_node *node,
                     const ms_pricer *pricer)
{
    const ms_stack *stack = pricer->stack;
    int weight = -1;
    for (int i = 0; i < 2; i++)
        if (program->tensors[node->in[i]].frozen)
            weight = node->in[i];
    if (weight < 0 || program->key.block != MS_BLOCK_LAYER ||
        node->pass == MS_PASS_BACKWARD_WEIGHT)
        return 0.0;
    bool transposes = node->pass == MS_PASS_BACKWARD_INPUT &&
                      isnan(pricer->device->peak_flop_per_s[MS_FP4]);
    double bytes =
        stack->frozen_use_bytes + (transposes ? stack->frozen_transpose_bytes : 0.0);
    return ms_stream_s(pricer, bytes * ms_tensor_local_elements(program, weight));
}

bool ms_fuses_experts(const ms_program *program, const ms_pricer *pricer)
{
    return pricer->stack->fuses_experts && ms_pricer_casts(pricer) &&
           /* an unlisted rate is NaN, which makes this false */
           pricer->device->peak_flop_per_s[MS_FP4] > 0.0 && pricer->wide_domain &&
           ms_activation_is_gated(program->model->activation);
}

static double product_s(const ms_program *program, const ms_node *node,
                        const ms_pricer *pricer)
{
    ms_gemm_shape shape = ms_node_product(program, node, pricer->stack);
    if (!ms_pricer_casts(pricer))
        return multiply_s(program, node, pricer);
    if (makes_logits(node)) {
        const ms_pricer wide = ms_pricer_in(pricer, MS_BF16);
        return ms_gemm_s(&wide, shape);
    }
    if (ms_node_is_adapter(node)) {
        const ms_pricer wide = ms_pricer_in(pricer, MS_BF16);
        return multiply_s(program, node, &wide);
    }
    if (node->op == MS_OP_GROUPED && ms_fuses_experts(program, pricer))
        return ms_gemm_kernel_s(pricer, shape);
    double share = cast_share(program, node, pricer);
    return multiply_s(program, node, pricer) +
           (pricer->stack->scaling == NULL ? ms_cast_s(pricer, shape, share)
                                           : scaled_casts_s(pricer, node, shape, share));
}

double ms_node_product_s(const ms_program *program, const ms_node *node,
                         const ms_pricer *pricer)
{
    return product_s(program, node, pricer) + thaw_s(program, node, pricer);
}

/* ---- saved operands ---- */

static bool reads_cast(const ms_program *program, const ms_node *node, int tensor,
                       const ms_pricer *pricer)
{
    if (node->op == MS_OP_REDISTRIBUTE)
        return sends_cast(program, gather_of(program, node->out[0]), pricer);
    if (node->op == MS_OP_ACTIVATION || node->op == MS_OP_ACTIVATION_GRAD)
        return pricer->stack->keeps_casts_alone;
    return ms_node_is_product(node) && !ms_node_is_adapter(node) && node->in[0] == tensor;
}

/* Whether `tensor` holds experts' results that the gradient of routing weights reads. */
static bool is_weighed(const ms_program *program, int tensor)
{
    for (int n = program->num_forward_nodes; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (node->op == MS_OP_UNPERMUTE_GRAD && node->in[1] == tensor)
            return true;
    }
    return false;
}

static double kept_cast_frac(const ms_program *program, int tensor,
                             const ms_pricer *pricer)
{
    if (!pricer->stack->keeps_casts || !ms_pricer_casts(pricer) ||
        program->key.block != MS_BLOCK_LAYER)
        return 1.0;
    bool cast = false, whole = false;
    for (int n = program->num_forward_nodes; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (!ms_node_reads(node, tensor))
            continue;
        *(reads_cast(program, node, tensor, pricer) ? &cast : &whole) = true;
    }
    double frac = ms_cast_element_bytes(pricer) / ms_stored_bytes(pricer->compute);
    if (!cast)
        return 1.0;
    return whole && !pricer->stack->keeps_casts_alone ? frac + 1.0 : frac;
}

/* Whether `tensor` is the activation of experts that a separate operation multiplies by
 * routing weights. Megatron Core has one kernel for both with SwiGLU and squared ReLU
 * (weighted_bias_swiglu_impl, weighted_squared_relu_impl; from memory). */
static bool is_weighed_apart(const ms_program *program, int tensor)
{
    int producer = program->tensors[tensor].producer;
    ms_activation activation = program->model->activation;
    bool is_fused = activation == MS_ACT_SWIGLU || activation == MS_ACT_RELU2;
    return !is_fused && producer >= 0 &&
           program->nodes[producer].op == MS_OP_ACTIVATION &&
           strchr(program->tensors[tensor].dims, MS_DIM_ROWS) != NULL;
}

/* Experts' results that are saved beside their weighted activations, as a share of the
 * rows that come back to their tokens' rank: with deterministic algorithms index_add adds
 * rows to tokens, and autograd saves the rows that it adds (Megatron Core, moe_utils.py,
 * unpermute; torch/csrc/autograd, IndexAddBackward0; from memory). Where tokens are
 * gathered, it adds them before the sums of etp ranks are scattered. */
static double added_rows_frac(const ms_program *program, const ms_stack *stack)
{
    if (!stack->deterministic)
        return 0.0;
    return stack->gathers_tokens ? program->key.etp : 1.0;
}

double ms_saved_frac(const ms_program *program, int tensor, const ms_pricer *pricer)
{
    double frac = kept_cast_frac(program, tensor, pricer);
    if (!pricer->stack->weighs_in_experts)
        return frac;
    /* the product is saved for the down-projection, the activation for the product */
    return is_weighed(program, tensor)         ? added_rows_frac(program, pricer->stack)
           : is_weighed_apart(program, tensor) ? frac + 1.0
                                               : frac;
}
