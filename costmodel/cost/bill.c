/* Prices the nodes of a layer program: seconds, FLOP, kernels and collectives. */
#include "costmodel/cost/bill_priv.h"

#include "costmodel/cost/cast.h"
#include "costmodel/program/ring.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- compute ---- */

/* HBM passes that an operation adds if its pointwise chain is not fused, as a fraction of
 * the passes of the fused kernel: two norms and two residual sums 12 / 10, a gated
 * activation 2 / 3, a rotary embedding 2 / 2. */
static double unfused_passes(ms_op op)
{
    switch ((int)op) {
    case MS_OP_NORM:
    case MS_OP_NORM_GRAD:
    case MS_OP_GROUP_NORM:
    case MS_OP_GROUP_NORM_GRAD:
    case MS_OP_ADD:
        return 1.2;
    case MS_OP_ACTIVATION:
    case MS_OP_ACTIVATION_GRAD:
        return 2.0 / 3.0;
    case MS_OP_ROTARY:
        return 1.0;
    default:
        return 0.0;
    }
}

/* HBM bytes of a pointwise chain. */
static double chain_bytes(const ms_program *program, const ms_node *node,
                          const ms_stack *stack)
{
    double bytes = node->op == MS_OP_NORM        ? stack->norm_bytes.value
                   : node->op == MS_OP_NORM_GRAD ? stack->norm_grad_bytes.value
                                                 : 0.0;
    /* PyTorch's layer norm is one kernel, with or without torch.compile */
    if (bytes > 0.0 && program->model->norm == MS_NORM_RMS)
        return bytes * ms_tensor_local_elements(program, node->out[0]);
    return ms_node_traffic_bytes(program, node) *
           (1.0 + unfused_passes(node->op) * stack->unfused_traffic.value);
}

/* Share of the stack's loss_bytes (HBM bytes per logit) in an operation of the loss:
 * maximum, sum or gradient. */
static double loss_share(ms_op op)
{
    return op == MS_OP_LOSS_GRAD ? 0.5 : 0.25;
}

/* Seconds of separate operations on experts' rows (padding, sorting, biases), counted at
 * the down projection: 0.4 of them at its GEMM, 0.6 at its input gradient; else 0. */
static double expert_rows_s(const ms_program *program, const ms_node *node,
                            const ms_pricer *pricer)
{
    const ms_stack *stack = pricer->stack;
    bool forward = node->pass == MS_PASS_FORWARD || node->pass == MS_PASS_RECOMPUTE;
    int result = forward ? node->out[0] : node->in[0];
    const char *dims = program->tensors[result].dims;
    if (ms_fuses_experts(program, pricer) || node->pass == MS_PASS_BACKWARD_WEIGHT ||
        dims[0] != MS_DIM_ROWS || dims[1] != MS_DIM_HIDDEN)
        return 0.0;
    bool pads_in_exchange =
        stack->shares_token_copies && pricer->wide_domain && program->key.ep > 1;
    double bytes =
        (pads_in_exchange ? 0.0 : stack->expert_row_bytes.value) +
        (program->model->moe.expert_bias ? stack->expert_bias_bytes.value : 0.0);
    return ms_stream_s(pricer, (forward ? 0.4 : 0.6) * bytes *
                                   ms_tensor_local_elements(program, result));
}

ms_gemm_shape ms_node_product(const ms_program *program, const ms_node *node,
                              const ms_stack *stack)
{
    ms_gemm_shape shape = ms_node_gemm(program, node);
    if (node->pass == MS_PASS_BACKWARD_WEIGHT && stack->accumulate_bytes.value <= 0.0)
        shape.result_bytes = 2.0 * stack->grad_bytes.value;
    return shape;
}

static bool is_routing(const ms_node *node)
{
    return node->op == MS_OP_ROUTE || node->op == MS_OP_ROUTE_GRAD;
}

/* Share of the stack's routing_s and routing_launches, stated per layer, in one node. */
static double routing_share(const ms_node *node)
{
    if (!is_routing(node))
        return 0.0;
    return node->op == MS_OP_ROUTE ? 0.6 : 0.4;
}

double ms_node_compute_s(const ms_program *program, const ms_node *node,
                         const ms_pricer *pricer)
{
    const ms_stack *stack = pricer->stack;
    const ms_pointwise_profile *pointwise = ms_pricer_pointwise(pricer, node->op);
    if (node->op == MS_OP_ADAM)
        return ms_update_s(pricer, ms_tensor_local_elements(program, node->in[0]));
    if (pointwise != NULL)
        return pricer->slowdown *
               ms_pointwise_s(pointwise, ms_node_pointwise_bytes(program, node));
    if (stack->fuses_projections && ms_node_sums_joined(program, node))
        return 0.0;
    switch (node->op) {
    case MS_OP_REDISTRIBUTE:
    case MS_OP_EXCHANGE:
    case MS_OP_BIAS:        /* a bias is added in the GEMM's epilogue */
    case MS_OP_SINK_GRAD:   /* attention's kernels have the rows' sums */
    case MS_OP_EXPERT_BIAS: /* expert_rows_s prices both */
    case MS_OP_EXPERT_BIAS_GRAD:
        return 0.0;
    case MS_OP_EINSUM:
    case MS_OP_GROUPED:
        return ms_node_product_s(program, node, pricer) +
               (node->op == MS_OP_GROUPED ? expert_rows_s(program, node, pricer) : 0.0);
    case MS_OP_ATTENTION:
    case MS_OP_ATTENTION_GRAD:
        return ms_attention_s(pricer, ms_node_attention(program, node)) +
               ms_stream_s(pricer, ms_ring_merge_bytes(program, node));
    case MS_OP_SCAN:
    case MS_OP_SCAN_GRAD:
        return ms_scan_s(pricer, ms_node_scan(program, node));
    case MS_OP_LOSS_MAX:
    case MS_OP_LOSS_SUM:
    case MS_OP_LOSS_GRAD:
        return ms_stream_s(pricer, loss_share(node->op) * stack->loss_bytes.value *
                                       ms_tensor_local_elements(program, node->in[0]));
    default:
        return ms_stream_s(pricer, chain_bytes(program, node, stack)) +
               routing_share(node) * stack->routing_s.value * pricer->slowdown;
    }
}

/* Kernel launches per expert of a grouped GEMM; 0 if one kernel runs all experts. */
static double launches_per_expert(const ms_program *program, const ms_pricer *pricer)
{
    const ms_stack *stack = pricer->stack;
    if (ms_fuses_experts(program, pricer))
        return 0.0;
    return stack->expert_launches.value +
           (ms_pricer_casts(pricer) ? stack->expert_cast_launches.value : 0.0);
}

/* Number of kernels of a node. Ring attention has one per step, and one to merge each
 * result but the first; a grouped GEMM may be launched and cast by expert. */
static int num_kernels(const ms_program *program, const ms_node *node,
                       const ms_pricer *pricer)
{
    double per_expert = launches_per_expert(program, pricer);
    if (node->op == MS_OP_GROUPED && per_expert > 0.0)
        return (int)lround(per_expert * ms_node_gemm(program, node).batch);
    if (node->op == MS_OP_REDISTRIBUTE || node->op == MS_OP_BIAS ||
        node->op == MS_OP_SINK_GRAD || node->op == MS_OP_EXPERT_BIAS ||
        node->op == MS_OP_EXPERT_BIAS_GRAD)
        return 0;
    if (node->op == MS_OP_SCAN || node->op == MS_OP_SCAN_GRAD)
        return ms_scan_kernels(node->op == MS_OP_SCAN_GRAD);
    if (is_routing(node))
        return 1 +
               (int)lround(routing_share(node) * pricer->stack->routing_launches.value);
    return ms_node_is_ring(program, node)
               ? 2 * (int)program->mesh_size[MS_DENSE_MESH][1] - 1
               : 1;
}

static double *segments_of(ms_bill_segments *segments, ms_pass pass)
{
    switch ((int)pass) {
    case MS_PASS_FORWARD:
        return segments->forward_s;
    case MS_PASS_BACKWARD_WEIGHT:
        return segments->weight_s;
    default:
        return segments->input_s;
    }
}

static void add_operations(ms_host_operations *sum, ms_host_operations more)
{
    sum->total += more.total;
    sum->sharded += more.sharded;
}

static void add_node(const ms_program *program, const ms_node *node, double seconds,
                     const ms_pricer *pricer, ms_bill *bill)
{
    int pass = node->pass == MS_PASS_FORWARD ? MS_BILL_FORWARD : MS_BILL_BACKWARD;
    double flop = ms_node_mean_flop(program, node, pricer->attention_fused);
    int kernels = num_kernels(program, node, pricer);
    bill->compute_s[pass] += seconds;
    bill->flop[pass] += flop;
    bill->kernels[pass] += kernels;
    if (node->op == MS_OP_GROUPED || is_routing(node))
        bill->expert_kernels[pass] += kernels;
    add_operations(&bill->operations[pass],
                   ms_node_host_operations(node, kernels, program->key.tp > 1));
    if (node->pass == MS_PASS_BACKWARD_WEIGHT) {
        bill->weight_s += seconds;
        bill->weight_flop += flop;
        bill->weight_kernels += kernels;
    }
    if (node->pass == MS_PASS_RECOMPUTE)
        bill->recompute_flop += flop;
}

static void add_compute(const ms_program *program, const ms_pricer *pricer, ms_bill *bill)
{
    ms_bill_cut cut;
    ms_bill_cut_make(program, &cut);
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (node->pass == MS_PASS_OPTIMIZER)
            continue; /* the optimizer runs once per step, not per micro-batch */
        double seconds = ms_node_compute_s(program, node, pricer);
        segments_of(&bill->segments, (ms_pass)node->pass)[cut.of[n]] += seconds;
        add_node(program, node, seconds, pricer, bill);
    }
}

/* ---- communication ---- */

static bool sends_over_axis(const ms_program *program, const ms_node *node, int axis)
{
    ms_node_comm comm;
    return node->op == MS_OP_REDISTRIBUTE && node->axis == axis &&
           ms_node_communicates(program, node, &comm);
}

/* Adds GEMMs that read a gathered tensor to the compute that its gather may overlap: those
 * of its pass, forward or backward, before the next collective on the same axis. */
static void add_consumers(const ms_program *program, const ms_pricer *pricer,
                          const ms_node *gather, ms_bill_comm *out)
{
    int tensor = gather->out[0];
    bool forward = gather->pass == MS_PASS_FORWARD;
    for (int n = program->tensors[tensor].producer + 1; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if ((node->pass == MS_PASS_FORWARD) != forward ||
            sends_over_axis(program, node, gather->axis))
            return;
        if (!ms_node_reads(node, tensor) || !ms_node_is_product(node))
            continue;
        double seconds = ms_node_compute_s(program, node, pricer);
        out->window_s += seconds;
        if (node->pass == MS_PASS_BACKWARD_WEIGHT)
            out->weight_window_s += seconds;
    }
}

/* ---- gradients beside tensor-parallel traffic ---- */

/* Seconds of the GEMMs in `pass` that are gradients of the forward node of `gradient`. */
static double other_gradient_s(const ms_program *program, const ms_pricer *pricer,
                               const ms_node *gradient, ms_pass pass)
{
    double seconds = 0.0;
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (ms_node_is_product(node) && node->pass == pass &&
            node->forward == gradient->forward)
            seconds += ms_node_compute_s(program, node, pricer);
    }
    return seconds;
}

/* Seconds of the GEMMs whose result or sum of results is `tensor`, before its reduction;
 * with `weight_gradients` of the same linear layers' weight-gradient GEMMs instead. */
static double reduced_products_s(const ms_program *program, const ms_pricer *pricer,
                                 int tensor, bool weight_gradients)
{
    int producer = program->tensors[tensor].producer;
    if (producer < 0)
        return 0.0;
    const ms_node *node = &program->nodes[producer];
    if (node->op == MS_OP_ADD)
        return reduced_products_s(program, pricer, node->in[0], weight_gradients) +
               reduced_products_s(program, pricer, node->in[1], weight_gradients);
    if (!ms_node_is_product(node))
        return 0.0;
    if (!weight_gradients)
        return ms_node_compute_s(program, node, pricer);
    return node->pass == MS_PASS_BACKWARD_INPUT
               ? other_gradient_s(program, pricer, node, MS_PASS_BACKWARD_WEIGHT)
               : 0.0;
}

/* Seconds of the input gradients that overlap a gather repeated for weight gradients. */
static double beside_gather_s(const ms_program *program, const ms_pricer *pricer,
                              int tensor)
{
    double seconds = 0.0;
    for (int n = program->tensors[tensor].producer + 1; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (!ms_node_reads(node, tensor) || !ms_node_is_product(node))
            continue;
        if (node->pass != MS_PASS_BACKWARD_WEIGHT)
            return 0.0;
        seconds += other_gradient_s(program, pricer, node, MS_PASS_BACKWARD_INPUT);
    }
    return seconds;
}

/* ---- shared experts beside token exchanges ---- */

/* Whether a forward node is one of the shared experts that run beside dispatch, or with
 * `combine` beside combine: those written after it. */
static bool is_shared_beside(const ms_program *program, int node, bool combine)
{
    bool combined = false;
    for (int n = 0; n < node; n++)
        combined = combined ||
                   (program->nodes[n].op == MS_OP_EXCHANGE && program->nodes[n].inverse);
    return (program->nodes[node].modules & MS_MODULE_SHARED_EXPERTS) != 0 &&
           combined == combine;
}

/* Seconds of shared experts beside an exchange of tokens in the exchange's own pass:
 * forward, recomputation, or gradients of inputs and weights. */
static double shared_beside_s(const ms_program *program, const ms_pricer *pricer,
                              const ms_node *exchange)
{
    bool repeats =
        exchange->pass == MS_PASS_FORWARD || exchange->pass == MS_PASS_RECOMPUTE;
    bool combine = ms_node_combines(exchange);
    double seconds = 0.0;
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        int forward = node->pass == MS_PASS_FORWARD ? n : node->forward;
        bool same_pass = node->pass == exchange->pass ||
                         (!repeats && node->pass == MS_PASS_BACKWARD_WEIGHT);
        if (same_pass && forward >= 0 && is_shared_beside(program, forward, combine))
            seconds += ms_node_compute_s(program, node, pricer);
    }
    return seconds;
}

double ms_node_overlap_s(const ms_program *program, const ms_pricer *pricer,
                         const ms_node *node, const ms_node_comm *comm)
{
    if (node->op == MS_OP_EXCHANGE)
        return program->key.shared_overlap ? shared_beside_s(program, pricer, node) : 0.0;
    bool in_backward =
        node->pass == MS_PASS_BACKWARD_INPUT || node->pass == MS_PASS_BACKWARD_WEIGHT;
    if (!pricer->stack->overlaps_gradients || !in_backward || comm->axis != 2)
        return 0.0;
    return comm->collective == MS_ALL_GATHER
               ? beside_gather_s(program, pricer, node->out[0])
               : reduced_products_s(program, pricer, node->in[0], true);
}

/* ---- attention beside context-parallel traffic ---- */

static bool moves_over_cp(const ms_program *program, int node)
{
    if (node < 0 || program->nodes[node].op != MS_OP_REDISTRIBUTE)
        return false;
    const ms_node *n = &program->nodes[node];
    return n->axis == 1 && program->tensors[n->in[0]].mesh == MS_DENSE_MESH;
}

static bool is_attention(const ms_node *node)
{
    return node->op == MS_OP_ATTENTION || node->op == MS_OP_ATTENTION_GRAD;
}

/* Number of redistributions over cp (keys, ...) before and after an attention node. */
static int num_movements(const ms_program *program, const ms_node *attention)
{
    int count = 0;
    for (int i = 0; i < attention->num_in; i++)
        count += moves_over_cp(program, program->tensors[attention->in[i]].producer);
    for (int i = 0; i < attention->num_out; i++)
        for (int n = 0; n < program->num_nodes; n++)
            count += moves_over_cp(program, n) &&
                     ms_node_reads(&program->nodes[n], attention->out[i]);
    return count;
}

/* Seconds of adjacent attention that one redistribution over cp may overlap. */
static double attention_share_s(const ms_program *program, const ms_pricer *pricer,
                                const ms_node *movement)
{
    double seconds = 0.0;
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        bool next = ms_node_reads(node, movement->out[0]) ||
                    program->tensors[movement->in[0]].producer == n;
        if (is_attention(node) && next)
            seconds +=
                ms_node_compute_s(program, node, pricer) / num_movements(program, node);
    }
    return seconds;
}

/* ---- collecting ---- */

/* Sets the compute that a collective may overlap: adjacent GEMMs, or attention (cp). */
static void set_window(const ms_program *program, const ms_pricer *pricer,
                       const ms_node *node, const ms_node_comm *comm, ms_bill_comm *out)
{
    if (comm->collective == MS_ALL_TO_ALL)
        return;
    if (comm->mesh == MS_DENSE_MESH && comm->axis == 1)
        out->window_s = attention_share_s(program, pricer, node);
    else if (comm->collective == MS_ALL_GATHER)
        add_consumers(program, pricer, node, out);
    else
        out->window_s = reduced_products_s(program, pricer, node->in[0], false);
}

/* Whether two otherwise equal collectives may be one entry of the bill: each overlaps as
 * many seconds of compute, of other gradients too. */
static bool same_window(const ms_bill_comm *a, const ms_bill_comm *b)
{
    double window_s = a->window_s * b->count, beside_s = a->beside_s * b->count;
    return fabs(window_s - b->window_s * a->count) <= 1e-12 * window_s &&
           fabs(beside_s - b->beside_s * a->count) <= 1e-12 * beside_s;
}

static bool same_kind(const ms_bill_comm *a, const ms_bill_comm *b)
{
    return a->axis == b->axis && a->collective == b->collective && a->ring == b->ring &&
           a->size_bytes == b->size_bytes && same_window(a, b);
}

#define MAX_COMMS 32 /* different collectives of a block, per list */

static void add_comm(ms_bill *bill, int pass, ms_bill_comm comm)
{
    for (int i = 0; i < bill->num_comms[pass]; i++) {
        ms_bill_comm *known = &bill->comms[pass][i];
        if (same_kind(known, &comm)) {
            known->count += comm.count;
            known->window_s += comm.window_s;
            known->weight_window_s += comm.weight_window_s;
            known->beside_s += comm.beside_s;
            return;
        }
    }
    assert(bill->num_comms[pass] < MAX_COMMS);
    bill->comms[pass][bill->num_comms[pass]++] = comm;
}

ms_bill_axis ms_node_bill_axis(const ms_node_comm *comm)
{
    if (comm->axis == 2)
        return MS_BILL_TP;
    return comm->mesh == MS_SPARSE_MESH ? MS_BILL_EP : MS_BILL_CP;
}

bool ms_node_bill_comm(const ms_program *program, const ms_pricer *pricer,
                       const ms_node *node, ms_bill_comm *out)
{
    ms_node_comm comm;
    if (!ms_node_sends(program, node, pricer, &comm))
        return false;
    *out = (ms_bill_comm){.axis = (unsigned char)ms_node_bill_axis(&comm),
                          .collective = (unsigned char)comm.collective,
                          .count = 1,
                          .size_bytes = comm.size_bytes,
                          .beside_s = ms_node_overlap_s(program, pricer, node, &comm)};
    set_window(program, pricer, node, &comm, out);
    return true;
}

static void add_change(const ms_program *program, const ms_pricer *pricer,
                       const ms_node *node, int pass, ms_bill *bill)
{
    ms_bill_comm comm;
    if (!ms_node_bill_comm(program, pricer, node, &comm))
        return;
    add_comm(bill, pass, comm);
    add_operations(&bill->operations[pass],
                   (ms_host_operations){1, comm.axis == MS_BILL_TP});
    if (node->pass == MS_PASS_BACKWARD_WEIGHT)
        add_comm(bill, MS_BILL_WEIGHT, comm);
}

static void add_ring(const ms_program *program, const ms_pricer *pricer,
                     const ms_node *node, int pass, ms_bill *bill)
{
    ms_ring_transfer transfers[MS_MAX_RING_TRANSFERS];
    int num_transfers = ms_ring_transfers(program, node, transfers);
    double seconds = ms_attention_s(pricer, ms_node_attention(program, node));
    for (int i = 0; i < num_transfers; i++) {
        ms_bill_comm comm = {.axis = MS_BILL_CP,
                             .collective = MS_SEND,
                             .ring = true,
                             .count = transfers[i].count,
                             .size_bytes = transfers[i].size_bytes,
                             .window_s = transfers[i].window_frac * seconds};
        add_comm(bill, pass, comm);
    }
}

static void add_communication(const ms_program *program, const ms_pricer *pricer,
                              ms_bill *bill)
{
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        int pass = node->pass == MS_PASS_FORWARD ? MS_BILL_FORWARD : MS_BILL_BACKWARD;
        if (node->pass == MS_PASS_OPTIMIZER)
            continue;
        if (node->op == MS_OP_REDISTRIBUTE || node->op == MS_OP_EXCHANGE)
            add_change(program, pricer, node, pass, bill);
        else if (ms_node_is_ring(program, node))
            add_ring(program, pricer, node, pass, bill);
    }
}

/* ---- parameters ---- */

/* Bytes of an element of a frozen weight: matrices of layers as the plan stores them;
 * embedding, head, norms and biases in 16 bits or more. */
static double frozen_element_bytes(const ms_program *program, int weight,
                                   const ms_pricer *pricer)
{
    return ms_weight_is_frozen_matrix(program, weight)
               ? pricer->stack->frozen_param_bytes
               : program->tensors[weight].element_bytes;
}

static void add_frozen(const ms_program *program, int weight, const ms_pricer *pricer,
                       ms_bill *bill)
{
    const ms_tensor *tensor = &program->tensors[weight];
    double bytes = ms_tensor_local_elements(program, weight) *
                   frozen_element_bytes(program, weight, pricer);
    if (tensor->mesh == MS_SPARSE_MESH)
        bill->frozen.expert += bytes;
    else
        bill->frozen.dense += bytes;
    if (program->key.block == MS_BLOCK_HEAD && strlen(tensor->dims) == 2)
        bill->frozen_head_bytes = bytes;
}

static void add_params(const ms_program *program, const ms_pricer *pricer, ms_bill *bill)
{
    bool updates_matrices = ms_stack_updates_matrices(pricer->stack);
    for (int t = 0; t < program->num_tensors; t++) {
        const ms_tensor *tensor = &program->tensors[t];
        if (tensor->role != MS_ROLE_WEIGHT || tensor->shared)
            continue;
        double elements = ms_tensor_local_elements(program, t);
        bool is_expert = tensor->mesh == MS_SPARSE_MESH;
        bool is_head = program->key.block == MS_BLOCK_HEAD &&
                       ms_tensor_has(tensor, MS_DIM_VOCAB) && strlen(tensor->dims) == 2;
        if (tensor->frozen) {
            add_frozen(program, t, pricer, bill);
            continue;
        }
        *(is_expert ? &bill->expert_params : &bill->dense_params) += elements;
        if (strlen(tensor->dims) > 1)
            bill->num_matrices[is_expert] +=
                is_expert ? program->size[MS_DIM_EXPERTS - '0'] / program->key.ep : 1.0;
        if (updates_matrices)
            ms_update_cost_add(program, t, pricer, &bill->update);
        if (tensor->gradient >= 0 && program->mesh_size[tensor->mesh][2] > 1 &&
            program->tensors[tensor->gradient].at[2].kind == MS_PARTIAL_SUM)
            bill->tp_partial_params += elements;
        if (is_head)
            bill->head_params = elements;
        if (strcmp(tensor->name, "mtp.embedding") == 0)
            bill->next_embedding_params += elements;
    }
}

ms_bill ms_bill_make(ms_arena *arena, const ms_program *program, const ms_pricer *pricer)
{
    ms_bill bill = {.block = program->key.block};
    for (int list = 0; list < MS_NUM_BILL_LISTS; list++)
        bill.comms[list] = ms_arena_take(arena, MAX_COMMS * sizeof(ms_bill_comm));
    add_compute(program, pricer, &bill);
    add_communication(program, pricer, &bill);
    add_params(program, pricer, &bill);
    ms_bill_add_memory(program, pricer, &bill);
    ms_bill_add_exchanges(program, pricer, &bill.segments);
    return bill;
}

ms_bill ms_bill_copy(ms_arena *arena, const ms_bill *bill)
{
    ms_bill copy = *bill;
    for (int list = 0; list < MS_NUM_BILL_LISTS; list++) {
        size_t size = (size_t)bill->num_comms[list] * sizeof(ms_bill_comm);
        copy.comms[list] = ms_arena_take(arena, size);
        if (size > 0)
            memcpy(copy.comms[list], bill->comms[list], size);
    }
    return copy;
}
