/* Assembles a layer program: sizes, meshes, forward, recompute, backward, optimizer. */
#include "costmodel/program/program.h"

#include "base/print.h"
#include "costmodel/program/program_priv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *const ms_mesh_axis_names[2][MS_MESH_AXES] = {{"dp", "cp", "tp"},
                                                         {"edp", "ep", "etp"}};

/* ---- sets of nodes ---- */

bool ms_saved_has(const ms_saved *keep, int node)
{
    return node < MS_MAX_SAVED && (keep->word[node / 64] >> (node % 64) & 1ULL) != 0;
}

void ms_saved_add(ms_saved *keep, int node)
{
    assert(node < MS_MAX_SAVED);
    keep->word[node / 64] |= 1ULL << (node % 64);
}

/* ---- the builder's arrays ---- */

int ms_add_tensor(ms_builder *b, const char *name, const char *dims, ms_role role,
                  double element_bytes)
{
    assert(b->num_tensors < MS_MAX_TENSORS && strlen(dims) <= MS_MAX_DIMS);
    int index = b->num_tensors++;
    ms_tensor *tensor = &b->tensors[index];
    *tensor = (ms_tensor){.name = name,
                          .role = (unsigned char)role,
                          .module = b->module,
                          .element_bytes = element_bytes,
                          .producer = -1,
                          .gradient = -1};
    memcpy(tensor->dims, dims, strlen(dims) + 1);
    b->gradient[index].num = 0;
    return index;
}

int ms_add_tensor_like(ms_builder *b, int model, ms_role role, double element_bytes)
{
    const ms_tensor *like = &b->tensors[model];
    int index = ms_add_tensor(b, like->name, like->dims, role, element_bytes);
    b->tensors[index].mesh = like->mesh;
    b->tensors[index].module = like->module;
    b->tensors[index].received = like->received;
    memcpy(b->tensors[index].at, like->at, sizeof like->at);
    return index;
}

double ms_node_loss_weight(const ms_program *program, const ms_node *node)
{
    return node->ahead == 0 ? 1.0 : program->model->nextn_loss_weight / program->key.mtp;
}

bool ms_tensor_is_tied(const ms_program *program, int weight)
{
    const ms_program_key *key = &program->key;
    const ms_tensor *tensor = &program->tensors[weight];
    if (key->block == MS_BLOCK_LAYER || tensor->role != MS_ROLE_WEIGHT ||
        strcmp(tensor->dims, "vh") != 0)
        return false;
    bool is_embedding =
        key->block == MS_BLOCK_EMBED || strcmp(tensor->name, "mtp.embedding") == 0;
    return program->model->tied_embeddings || (key->mtp > 0 && is_embedding);
}

bool ms_weight_is_frozen_matrix(const ms_program *program, int weight)
{
    const ms_tensor *tensor = &program->tensors[weight];
    return tensor->frozen && program->key.block == MS_BLOCK_LAYER &&
           strlen(tensor->dims) > 1;
}

bool ms_weight_is_coded(const ms_program *program, int weight)
{
    return program->key.lora.base == MS_BASE_NF4 &&
           ms_weight_is_frozen_matrix(program, weight);
}

double ms_node_decoded_bytes(const ms_program *program, const ms_node *node)
{
    double bytes = 0.0;
    for (int i = 0; i < node->num_in; i++)
        if (ms_weight_is_coded(program, node->in[i]))
            bytes += ms_tensor_local_bytes(program, node->in[i]);
    return bytes;
}

void ms_node_take(ms_node *node, int tensor)
{
    assert(node->num_in < MS_MAX_OPERANDS);
    node->in[node->num_in++] = tensor;
}

int ms_node_give(ms_node *node, int tensor)
{
    assert(node->num_out < MS_MAX_OPERANDS);
    return node->out[node->num_out++] = tensor;
}

/* ms_node.joined, by the node's name. */
static unsigned char joined_group(const ms_node *node)
{
    enum {
        NUM_GROUPS = 6
    };
    static const char *const names[NUM_GROUPS][3] = {
        {"attention.query", "attention.key", "attention.value"},
        {"mlp.gate", "mlp.up", ""},
        {"shared.gate", "shared.up", ""},
        {"experts.gate", "experts.up", ""},
        {"attention.query.lora_b", "attention.key.lora_b", "attention.value.lora_b"},
        {"mlp.gate.lora_b", "mlp.up.lora_b", ""}};
    for (int group = 0; group < NUM_GROUPS; group++)
        for (int i = 0; i < 3; i++)
            if (strcmp(node->name, names[group][i]) == 0)
                return (unsigned char)(group + 1);
    return 0;
}

/* The modules in which a forward node is written; a reduction is part of those that made
 * the partial sum. */
static unsigned short modules_of(const ms_builder *b, const ms_node *node)
{
    bool reduces = node->op == MS_OP_REDISTRIBUTE && ms_placement_is_partial(node->from);
    int producer = reduces ? b->tensors[node->in[0]].producer : -1;
    return producer >= 0 ? b->nodes[producer].modules : b->modules;
}

int ms_push_node(ms_builder *b, const ms_node *node)
{
    assert(b->num_nodes < MS_MAX_NODES);
    int index = b->num_nodes++;
    b->nodes[index] = *node;
    if (node->op == MS_OP_REDISTRIBUTE && node->pass == MS_PASS_FORWARD)
        /* a redistribution belongs to the pass that needs its result */
        b->nodes[index].pass = b->pass;
    b->nodes[index].joined = ms_node_is_product(node) ? joined_group(node) : 0;
    if (b->pass == MS_PASS_FORWARD)
        b->nodes[index].modules = modules_of(b, node);
    memset(b->strategy[index], 0, sizeof b->strategy[index]);
    for (int i = 0; i < node->num_out; i++)
        b->tensors[node->out[i]].producer = index;
    return index;
}

/* ---- sizes ---- */

static void set_sizes(ms_program *program, long sequence_length, long data_parallel)
{
    const ms_model *model = program->model;
    long batch = program->key.microbatch * data_parallel;
    const struct {
        char letter;
        long size;
    } sizes[] = {
        {MS_DIM_BATCH, batch},
        {MS_DIM_SEQUENCE, sequence_length},
        {MS_DIM_KEYS, sequence_length},
        {MS_DIM_CHOICES, model->moe.top_k},
        {MS_DIM_ROWS, batch * sequence_length * model->moe.top_k},
        {MS_DIM_HIDDEN, model->hidden},
        {MS_DIM_HEADS, model->num_heads},
        {MS_DIM_KV_HEADS, ms_model_split_kv_heads(model, program->key.tp)},
        {MS_DIM_HEAD, model->head_dim},
        {MS_DIM_VALUE, model->value_head_dim},
        {MS_DIM_FFN, model->ffn_hidden},
        {MS_DIM_SHARED, model->moe.shared_ffn_hidden},
        {MS_DIM_EXPERT_FFN, model->moe.ffn_hidden},
        {MS_DIM_VOCAB, ms_model_padded_vocab(model, program->key.tp)},
        {MS_DIM_EXPERTS, model->moe.num_experts},
        {MS_DIM_Q_LORA, model->mla.q_lora_rank},
        {MS_DIM_KV_LORA, model->mla.kv_lora_rank},
        {MS_DIM_ROPE, model->mla.rope_head_dim},
        {MS_DIM_KV_UP, model->mla.nope_head_dim + model->value_head_dim},
        {MS_DIM_POSITIONS, model->max_positions},
        {MS_DIM_LORA, program->key.lora.rank},
        {MS_DIM_ONE, 1},
        {MS_DIM_TWICE_HIDDEN, 2 * model->hidden},
        {MS_DIM_MAMBA_PROJECTED, ms_mamba_projected(model)},
        {MS_DIM_MAMBA_CHANNELS, ms_mamba_channels(model)},
        {MS_DIM_MAMBA_INNER, ms_mamba_inner(model)},
        {MS_DIM_MAMBA_HEADS, model->mamba.num_heads},
        {MS_DIM_MAMBA_TAPS, model->mamba.conv_kernel},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        program->size[sizes[i].letter - '0'] = (double)sizes[i].size;
}

static void set_meshes(ms_program *program, long data_parallel)
{
    const ms_program_key *key = &program->key;
    long dense[MS_MESH_AXES] = {data_parallel, key->cp, key->tp};
    long ranks = data_parallel * key->cp * key->tp;
    assert(ranks % ((long)key->ep * key->etp) == 0);
    long sparse[MS_MESH_AXES] = {ranks / ((long)key->ep * key->etp), key->ep, key->etp};
    memcpy(program->mesh_size[MS_DENSE_MESH], dense, sizeof dense);
    memcpy(program->mesh_size[MS_SPARSE_MESH], sparse, sizeof sparse);
}

/* ---- assembly ---- */

/* Returns a builder that is reused, with its counts reset: searches make programs by the
 * hundred thousand, and clearing 500 KB for each would take longer than building it. */
static ms_builder *open_builder(ms_arena *arena, ms_program *program)
{
    static _Thread_local ms_builder builder;
    ms_builder *b = &builder;
    b->arena = arena;
    b->program = program;
    b->model = program->model;
    b->modules = 0;
    b->num_tensors = b->num_nodes = b->num_conversions = b->num_logits = 0;
    b->module = 0;
    b->adapter_input[0] = b->adapter_input[1] = -1;
    program->tensors = b->tensors;
    program->nodes = b->nodes;
    return b;
}

static void copy_out(ms_arena *arena, const ms_builder *b, ms_program *program)
{
    program->num_tensors = b->num_tensors;
    program->num_nodes = b->num_nodes;
    program->tensors = MS_NEW_ARRAY(arena, b->num_tensors, ms_tensor);
    program->nodes = MS_NEW_ARRAY(arena, b->num_nodes, ms_node);
    memcpy(program->tensors, b->tensors, (size_t)b->num_tensors * sizeof *b->tensors);
    memcpy(program->nodes, b->nodes, (size_t)b->num_nodes * sizeof *b->nodes);
}

const ms_program *ms_program_make(ms_arena *arena, const ms_model *model,
                                  const ms_program_key *key, long sequence_length,
                                  long data_parallel, ms_dtype compute)
{
    static void (*const write[MS_NUM_BLOCK_KINDS])(ms_builder *) = {
        ms_write_embedding, ms_write_layer, ms_write_head};
    ms_program *program = MS_NEW(arena, ms_program);
    program->model = model;
    program->key = *key;
    program->compute_bytes = ms_stored_bytes(compute);
    program->input = program->output = program->input_part = program->input_gradient =
        program->output_gradient = -1;
    set_sizes(program, sequence_length, data_parallel);
    set_meshes(program, data_parallel);
    ms_builder *b = open_builder(arena, program);
    b->pass = MS_PASS_FORWARD;
    write[key->block](b);
    program->num_forward_nodes = b->num_nodes;
    ms_write_backward(b);
    ms_write_recompute(b, program->num_forward_nodes);
    if (key->optimizer)
        ms_write_optimizer(b);
    copy_out(arena, b, program);
    return program;
}
