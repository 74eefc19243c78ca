/* Work of a program node on one rank (GEMM shape, FLOP, bytes), from its tensors. */
#include "base/number.h"
#include "costmodel/program/program.h"
#include "costmodel/program/ring.h"

#include <assert.h>
#include <string.h>

double ms_tensor_local_size(const ms_program *program, int tensor, char letter)
{
    const ms_tensor *t = &program->tensors[tensor];
    double size = program->size[letter - '0'];
    if (t->received && letter == MS_DIM_ROWS)
        size *= 1.0 + program->key.expert_excess_frac;
    for (int axis = 0; axis < MS_MESH_AXES; axis++)
        if (t->at[axis].kind == MS_SHARD && t->at[axis].dim == letter)
            size /= (double)program->mesh_size[t->mesh][axis];
    return size;
}

double ms_tensor_local_elements(const ms_program *program, int tensor)
{
    double elements = 1.0;
    for (const char *c = program->tensors[tensor].dims; *c != '\0'; c++)
        elements *= ms_tensor_local_size(program, tensor, *c);
    return elements;
}

double ms_tensor_local_bytes(const ms_program *program, int tensor)
{
    return ms_tensor_local_elements(program, tensor) *
           program->tensors[tensor].element_bytes;
}

bool ms_node_is_product(const ms_node *node)
{
    return node->op == MS_OP_EINSUM || node->op == MS_OP_GROUPED;
}

bool ms_node_is_adapter(const ms_node *node)
{
    return node->op == MS_OP_EINSUM && strchr(node->einsum, MS_DIM_LORA) != NULL;
}

bool ms_node_reads(const ms_node *node, int tensor)
{
    for (int i = 0; i < node->num_in; i++)
        if (node->in[i] == tensor)
            return true;
    return false;
}

bool ms_node_combines(const ms_node *node)
{
    bool repeats = node->pass == MS_PASS_FORWARD || node->pass == MS_PASS_RECOMPUTE;
    return node->inverse == repeats;
}

/* ---- matrix products ---- */

static bool tensor_has(const ms_program *program, int tensor, char letter)
{
    return ms_tensor_has(&program->tensors[tensor], letter);
}

static ms_gemm_shape dense_gemm(const ms_program *program, const ms_node *node)
{
    ms_gemm_shape shape = {1.0,
                           1.0,
                           1.0,
                           1.0,
                           program->tensors[node->in[0]].element_bytes,
                           program->tensors[node->out[0]].element_bytes};
    bool seen['z' + 1] = {false};
    for (const char *c = node->einsum; *c != '\0'; c++) {
        if (*c == ',' || *c == '-' || *c == '>' || seen[(unsigned char)*c])
            continue;
        seen[(unsigned char)*c] = true;
        if (node->op == MS_OP_GROUPED && *c == MS_DIM_EXPERTS)
            continue;
        bool a = tensor_has(program, node->in[0], *c),
             w = tensor_has(program, node->in[1], *c);
        bool out = tensor_has(program, node->out[0], *c);
        int holder = a ? node->in[0] : w ? node->in[1] : node->out[0];
        double size = ms_tensor_local_size(program, holder, *c);
        if (a && w && out)
            shape.batch *= size;
        else if (a && w)
            shape.k *= size;
        else if (a)
            shape.m *= size;
        else
            shape.n *= size;
    }
    return shape;
}

/* GEMM shape of a GROUPED node: each row meets one expert, so experts are the batch. */
static ms_gemm_shape grouped_gemm(const ms_program *program, const ms_node *node)
{
    ms_gemm_shape shape = dense_gemm(program, node);
    int weight = node->in[1];
    for (int i = 0; i < 2; i++)
        if (tensor_has(program, node->in[i], MS_DIM_EXPERTS))
            weight = node->in[i];
    if (tensor_has(program, node->out[0], MS_DIM_EXPERTS))
        weight = node->out[0];
    double experts = ms_tensor_local_size(program, weight, MS_DIM_EXPERTS);
    shape.batch = experts;
    if (weight == node->out[0])
        shape.k /= experts;
    else
        shape.m /= experts;
    return shape;
}

ms_gemm_shape ms_node_gemm(const ms_program *program, const ms_node *node)
{
    return node->op == MS_OP_GROUPED ? grouped_gemm(program, node)
                                     : dense_gemm(program, node);
}

/* ---- attention ---- */

/* Causal query-key pairs of the last of c = `ranks` contiguous chunks of a sequence of s
 * tokens: queries see all keys before the chunk and half of those in it. About (2c - 1)/c
 * times the mean over chunks (Brandon et al. 2023, "Striped Attention"). */
static double last_chunk_pairs(double s, double ranks)
{
    double queries = s / ranks;
    return queries * (s - queries) + 0.5 * queries * (queries + 1.0);
}

/* Causal query-key pairs of one head and sequence, within the window if any: the mean
 * over the ranks that share them. */
static double mean_pairs(const ms_program *program, const ms_node *node)
{
    double s = program->size[MS_DIM_SEQUENCE - '0'];
    double window = (double)node->window_tokens;
    double pairs = 0.5 * s * (s + 1.0);
    if (program->key.lengths != NULL)
        pairs = s * ms_lengths_pairs_per_token(program->key.lengths, window);
    else if (window > 0.0 && window < s)
        pairs = 0.5 * window * (window + 1.0) + (s - window) * window;
    return pairs * ms_tensor_local_size(program, node->in[0], MS_DIM_SEQUENCE) / s;
}

/* The pairs that take a rank's time: with contiguous chunks of one sequence and no window
 * those of the last rank, otherwise those of the rank that has most. */
static double score_pairs(const ms_program *program, const ms_node *node)
{
    double s = program->size[MS_DIM_SEQUENCE - '0'];
    double window = (double)node->window_tokens;
    bool in_window = window > 0.0 && window < s;
    bool is_packed = program->key.lengths != NULL && program->key.longest_of == 0;
    if (program->key.cp_unbalanced && !in_window && !is_packed)
        return last_chunk_pairs(s, program->key.cp);
    return mean_pairs(program, node) * (1.0 + program->key.attention_excess_frac);
}

/* FLOP of attention for a query-key pair of every head and sequence on a rank. */
static double pair_flop(const ms_program *program, const ms_node *node)
{
    int q = node->in[0];
    double d = program->size[MS_DIM_HEAD - '0'], w = program->size[MS_DIM_VALUE - '0'];
    double heads = ms_tensor_local_size(program, q, MS_DIM_BATCH) *
                   ms_tensor_local_size(program, q, MS_DIM_HEADS);
    /* GEMMs of attention. Forward: scores, values. Backward: gradients of values,
     * probabilities, queries and keys, and the scores again unless they were saved. */
    double again = node->num_in > 6 ? 0.0 : d;
    return heads * (node->op == MS_OP_ATTENTION ? 2.0 * (d + w)
                                                : 2.0 * (again + 2.0 * d + 2.0 * w));
}

static double attention_flop(const ms_program *program, const ms_node *node)
{
    return score_pairs(program, node) * pair_flop(program, node);
}

double ms_node_mean_flop(const ms_program *program, const ms_node *node, bool fused)
{
    if (node->op == MS_OP_GROUPED)
        return ms_node_flop(program, node) / (1.0 + program->key.expert_excess_frac);
    if (node->op != MS_OP_ATTENTION && node->op != MS_OP_ATTENTION_GRAD)
        return ms_node_flop(program, node);
    double all = ms_tensor_local_size(program, node->in[0], MS_DIM_SEQUENCE) *
                 program->size[MS_DIM_SEQUENCE - '0'];
    return (fused ? mean_pairs(program, node) : all) * pair_flop(program, node);
}

/* HBM bytes per score of 2 bytes between the GEMMs of unfused attention: softmax with
 * scale and mask reads the causal half and writes all, 3; its gradient also reads half of
 * the probabilities, 4. Dropout reads and writes all, and saves a mask byte: 5 more. */
static double unfused_score_bytes(const ms_program *program, const ms_node *node)
{
    double dropout = program->model->dropout ? 5.0 : 0.0;
    return (node->op == MS_OP_ATTENTION ? 3.0 : 4.0) + dropout;
}

ms_attention_shape ms_node_attention(const ms_program *program, const ms_node *node)
{
    int q = node->in[0];
    double s = program->size[MS_DIM_SEQUENCE - '0'];
    double keys = node->window_tokens > 0 && (double)node->window_tokens < s
                      ? (double)node->window_tokens
                      : s;
    double filled = s; /* tokens of the sequence that a token belongs to */
    if (program->key.lengths != NULL)
        filled = ms_lengths_of_token(program->key.lengths);
    keys = ms_min(keys, filled);
    if (ms_node_is_ring(program, node))
        keys = ms_min(keys, ms_ring_key_tokens(program, node) * filled / s);
    double rows = ms_tensor_local_size(program, q, MS_DIM_BATCH) *
                  ms_tensor_local_size(program, q, MS_DIM_HEADS) *
                  ms_tensor_local_size(program, q, MS_DIM_SEQUENCE);
    return (ms_attention_shape){
        .flop = attention_flop(program, node),
        .key_tokens = keys,
        .head_dim = program->size[MS_DIM_HEAD - '0'],
        .score_elements = rows * s,
        .traffic_bytes = ms_node_traffic_bytes(program, node),
        .backward = node->op == MS_OP_ATTENTION_GRAD,
        .query_rows = rows,
        .value_dim = program->size[MS_DIM_VALUE - '0'],
        .batch = ms_tensor_local_size(program, q, MS_DIM_BATCH) *
                 ms_tensor_local_size(program, q, MS_DIM_HEADS),
        .score_bytes = unfused_score_bytes(program, node),
    };
}

/* ---- scans ---- */

ms_scan_shape ms_node_scan(const ms_program *program, const ms_node *node)
{
    const ms_model *model = program->model;
    double heads = ms_tensor_local_size(program, node->in[3], MS_DIM_MAMBA_HEADS);
    double share = heads / (double)model->mamba.num_heads;
    return (ms_scan_shape){
        .tokens = ms_tensor_local_size(program, node->in[0], MS_DIM_BATCH) *
                  ms_tensor_local_size(program, node->in[0], MS_DIM_SEQUENCE),
        .heads = heads,
        .head_dim = (double)model->mamba.head_dim,
        .state_size = (double)model->mamba.state_size,
        .groups = share * (double)model->mamba.num_groups,
        .chunk_tokens =
            ms_min((double)model->mamba.chunk_size, program->size[MS_DIM_SEQUENCE - '0']),
        .element_bytes = program->tensors[node->in[0]].element_bytes,
        .backward = node->op == MS_OP_SCAN_GRAD,
    };
}

double ms_node_flop(const ms_program *program, const ms_node *node)
{
    ms_gemm_shape shape;
    switch (node->op) {
    case MS_OP_EINSUM:
    case MS_OP_GROUPED:
        shape = ms_node_gemm(program, node);
        return 2.0 * shape.batch * shape.m * shape.n * shape.k;
    case MS_OP_ATTENTION:
    case MS_OP_ATTENTION_GRAD:
        return attention_flop(program, node);
    case MS_OP_SCAN:
    case MS_OP_SCAN_GRAD:
        return ms_scan_flop(ms_node_scan(program, node));
    default:
        return 0.0;
    }
}

double ms_node_traffic_bytes(const ms_program *program, const ms_node *node)
{
    double bytes = 0.0;
    for (int i = 0; i < node->num_in; i++) {
        const ms_tensor *t = &program->tensors[node->in[i]];
        if (node->op != MS_OP_EMBED ||
            t->role != MS_ROLE_WEIGHT) /* EMBED reads few rows of its table */
            bytes += ms_tensor_local_bytes(program, node->in[i]);
    }
    for (int i = 0; i < node->num_out; i++)
        bytes += ms_tensor_local_bytes(program, node->out[i]);
    return bytes;
}

double ms_node_pointwise_bytes(const ms_program *program, const ms_node *node)
{
    double bytes = ms_node_traffic_bytes(program, node);
    if (node->op == MS_OP_EMBED_GRAD)
        bytes -= ms_tensor_local_bytes(program, node->out[0]);
    return bytes;
}

/* ---- communication ---- */

bool ms_node_communicates(const ms_program *program, const ms_node *node,
                          ms_node_comm *out)
{
    const ms_tensor *in = &program->tensors[node->in[0]];
    *out = (ms_node_comm){MS_ALL_TO_ALL, (ms_mesh_kind)in->mesh, node->axis,
                          ms_tensor_local_bytes(program, node->in[0])};
    if (node->op == MS_OP_EXCHANGE) {
        out->mesh = MS_SPARSE_MESH;
        out->axis = 1;
        /* the fullest rank receives in dispatch what it sends in combine */
        out->size_bytes =
            ms_max(out->size_bytes, ms_tensor_local_bytes(program, node->out[0]));
    } else if (node->op != MS_OP_REDISTRIBUTE || node->from.kind == MS_REPLICATE) {
        return false;
    } else if (node->from.kind == MS_SHARD && node->to.kind == MS_REPLICATE) {
        out->collective = MS_ALL_GATHER;
        out->size_bytes = ms_tensor_local_bytes(program, node->out[0]);
    } else if (node->from.kind != MS_SHARD) {
        out->collective =
            node->to.kind == MS_REPLICATE ? MS_ALL_REDUCE : MS_REDUCE_SCATTER;
    }
    return program->mesh_size[out->mesh][out->axis] > 1;
}
