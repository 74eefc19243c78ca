/* Hugging Face's names and layouts of weights, and positions of their elements. */
#include "exec/params/names.h"

#include "base/rng.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PI 3.14159265358979323846

/* A weight and the Hugging Face tensor that contains it. `layout`: the tensor's dims,
 * outer to inner, separated by spaces. A dim is a letter of layer programs, or several
 * that it flattens ("nd"). '+' joins segments of a dim that belong to different weights;
 * this weight's is number `segment`, from 0. */
typedef struct weight_row {
    const char *weight; /* name in the layer program */
    /* Hugging Face name; unless it ends in "_bias", ".weight" or ".bias" is appended. %L
     * stands for the layer, %ld for the expert */
    const char *name;
    const char *layout;
    int segment;
} weight_row;

/* Sources: transformers modeling_llama.py; modeling_qwen2.py, modeling_qwen3.py (biases,
 * norms of queries and keys); modeling_gemma2.py (four norms); modeling_deepseek_v3.py
 * (one projection gives the latent and the shared rotary key). */
static const weight_row llama_rows[] = {
    {"embedding.tokens", "model.embed_tokens", "v h", 0},
    {"attention.norm", "model.layers.%L.input_layernorm", "h", 0},
    {"attention.query", "model.layers.%L.self_attn.q_proj", "nd h", 0},
    {"attention.key", "model.layers.%L.self_attn.k_proj", "gd h", 0},
    {"attention.value", "model.layers.%L.self_attn.v_proj", "gw h", 0},
    {"attention.query_bias", "model.layers.%L.self_attn.q_proj", "nd", 0},
    {"attention.key_bias", "model.layers.%L.self_attn.k_proj", "gd", 0},
    {"attention.value_bias", "model.layers.%L.self_attn.v_proj", "gw", 0},
    {"attention.query_position", "model.layers.%L.self_attn.q_norm", "d", 0},
    {"attention.key_position", "model.layers.%L.self_attn.k_norm", "d", 0},
    {"attention.query_down", "model.layers.%L.self_attn.q_a_proj", "q h", 0},
    {"attention.query_norm", "model.layers.%L.self_attn.q_a_layernorm", "q", 0},
    {"attention.query_up", "model.layers.%L.self_attn.q_b_proj", "nd q", 0},
    {"attention.kv_down", "model.layers.%L.self_attn.kv_a_proj_with_mqa", "c+o h", 0},
    {"attention.key_rope", "model.layers.%L.self_attn.kv_a_proj_with_mqa", "c+o h", 1},
    {"attention.kv_norm", "model.layers.%L.self_attn.kv_a_layernorm", "c", 0},
    {"attention.kv_up", "model.layers.%L.self_attn.kv_b_proj", "nu c", 0},
    {"attention.output", "model.layers.%L.self_attn.o_proj", "h nw", 0},
    {"attention.output_bias", "model.layers.%L.self_attn.o_proj", "h", 0},
    {"mlp.norm", "model.layers.%L.post_attention_layernorm", "h", 0},
    {"mlp.gate", "model.layers.%L.mlp.gate_proj", "f h", 0},
    {"mlp.up", "model.layers.%L.mlp.up_proj", "f h", 0},
    {"mlp.down", "model.layers.%L.mlp.down_proj", "h f", 0},
    {"mlp.gate_bias", "model.layers.%L.mlp.gate_proj", "f", 0},
    {"mlp.up_bias", "model.layers.%L.mlp.up_proj", "f", 0},
    {"mlp.down_bias", "model.layers.%L.mlp.down_proj", "h", 0},
    {"head.norm", "model.norm", "h", 0},
    {"head.logits", "lm_head", "v h", 0},
    {"head.bias", "lm_head", "v", 0},
    {NULL, NULL, NULL, 0},
};

/* Gemma's norm after attention has the name of other models' norm before the MLP. */
static const weight_row gemma_rows[] = {
    {"attention.post_norm", "model.layers.%L.post_attention_layernorm", "h", 0},
    {"mlp.norm", "model.layers.%L.pre_feedforward_layernorm", "h", 0},
    {"mlp.post_norm", "model.layers.%L.post_feedforward_layernorm", "h", 0},
    {NULL, NULL, NULL, 0},
};

/* modeling_mixtral.py: w1 is the gate projection, w3 goes up, w2 down. */
static const weight_row mixtral_rows[] = {
    {"router.logits", "model.layers.%L.block_sparse_moe.gate", "e h", 0},
    {"experts.gate", "model.layers.%L.block_sparse_moe.experts.%ld.w1", "i h", 0},
    {"experts.up", "model.layers.%L.block_sparse_moe.experts.%ld.w3", "i h", 0},
    {"experts.down", "model.layers.%L.block_sparse_moe.experts.%ld.w2", "h i", 0},
    {NULL, NULL, NULL, 0},
};

/* Source: modeling_qwen2_moe.py, modeling_qwen3_moe.py. */
static const weight_row qwen_moe_rows[] = {
    {"router.logits", "model.layers.%L.mlp.gate", "e h", 0},
    {"experts.gate", "model.layers.%L.mlp.experts.%ld.gate_proj", "i h", 0},
    {"experts.up", "model.layers.%L.mlp.experts.%ld.up_proj", "i h", 0},
    {"experts.down", "model.layers.%L.mlp.experts.%ld.down_proj", "h i", 0},
    {"shared.gate", "model.layers.%L.mlp.shared_expert.gate_proj", "F h", 0},
    {"shared.up", "model.layers.%L.mlp.shared_expert.up_proj", "F h", 0},
    {"shared.down", "model.layers.%L.mlp.shared_expert.down_proj", "h F", 0},
    {"shared.router", "model.layers.%L.mlp.shared_expert_gate", "1 h", 0},
    {NULL, NULL, NULL, 0},
};

/* modeling_deepseek_v3.py: differences from the Qwen MoE names. */
static const weight_row deepseek_rows[] = {
    {"router.bias", "model.layers.%L.mlp.gate.e_score_correction_bias", "e", 0},
    {"mtp.embedding_norm", "model.layers.%L.enorm", "h", 0},
    {"mtp.hidden_norm", "model.layers.%L.hnorm", "h", 0},
    {"mtp.projection", "model.layers.%L.eh_proj", "h H", 0},
    {"mtp.norm", "model.layers.%L.shared_head.norm", "h", 0},
    {"shared.gate", "model.layers.%L.mlp.shared_experts.gate_proj", "F h", 0},
    {"shared.up", "model.layers.%L.mlp.shared_experts.up_proj", "F h", 0},
    {"shared.down", "model.layers.%L.mlp.shared_experts.down_proj", "h F", 0},
    {NULL, NULL, NULL, 0},
};

/* modeling_gpt2.py: Conv1D is [in, out]; q, k and v are columns of one matrix. */
static const weight_row gpt2_rows[] = {
    {"embedding.tokens", "wte", "v h", 0},
    {"embedding.positions", "wpe", "p h", 0},
    {"attention.norm", "h.%L.ln_1", "h", 0},
    {"attention.query", "h.%L.attn.c_attn", "h nd+gd+gw", 0},
    {"attention.key", "h.%L.attn.c_attn", "h nd+gd+gw", 1},
    {"attention.value", "h.%L.attn.c_attn", "h nd+gd+gw", 2},
    {"attention.query_bias", "h.%L.attn.c_attn", "nd+gd+gw", 0},
    {"attention.key_bias", "h.%L.attn.c_attn", "nd+gd+gw", 1},
    {"attention.value_bias", "h.%L.attn.c_attn", "nd+gd+gw", 2},
    {"attention.output", "h.%L.attn.c_proj", "nw h", 0},
    {"attention.output_bias", "h.%L.attn.c_proj", "h", 0},
    {"mlp.norm", "h.%L.ln_2", "h", 0},
    {"mlp.up", "h.%L.mlp.c_fc", "h f", 0},
    {"mlp.up_bias", "h.%L.mlp.c_fc", "f", 0},
    {"mlp.down", "h.%L.mlp.c_proj", "f h", 0},
    {"mlp.down_bias", "h.%L.mlp.c_proj", "h", 0},
    {"head.norm", "ln_f", "h", 0},
    {"head.logits", "lm_head", "v h", 0},
    {NULL, NULL, NULL, 0},
};

/* If no other table lists them: embedding and head in one layout, so they can be tied. */
static const weight_row common_rows[] = {
    {"embedding.tokens", "model.embedding.tokens", "v h", 0},
    {"head.logits", "model.head.logits", "v h", 0},
    {NULL, NULL, NULL, 0},
};

/* Most name tables of one model family; the first that lists a weight is used. */
#define MAX_TABLES 3
typedef struct family_row {
    const char *family;
    const weight_row *tables[MAX_TABLES];
} family_row;

static const family_row families[] = {
    {"llama", {llama_rows}},
    {"mistral", {llama_rows}},
    {"mixtral", {mixtral_rows, llama_rows}},
    {"qwen2", {llama_rows}},
    {"qwen3", {llama_rows}},
    {"qwen2_moe", {qwen_moe_rows, llama_rows}},
    {"qwen3_moe", {qwen_moe_rows, llama_rows}},
    {"deepseek_v2", {deepseek_rows, qwen_moe_rows, llama_rows}},
    {"deepseek_v3", {deepseek_rows, qwen_moe_rows, llama_rows}},
    {"gemma2", {gemma_rows, llama_rows}},
    {"gemma3", {gemma_rows, llama_rows}},
    {"gemma3_text", {gemma_rows, llama_rows}},
    {"gpt2", {gpt2_rows}},
};

/* ---- tables ---- */

static const weight_row *row_in(const weight_row *table, const char *weight)
{
    for (; table->weight != NULL; table++)
        if (strcmp(table->weight, weight) == 0)
            return table;
    return NULL;
}

static const weight_row *find_row(const char *family, const char *weight)
{
    const weight_row *row = NULL;
    for (size_t f = 0; family != NULL && f < sizeof families / sizeof *families; f++) {
        if (strcmp(families[f].family, family) != 0)
            continue;
        for (int t = 0; t < MAX_TABLES && row == NULL; t++)
            if (families[f].tables[t] != NULL)
                row = row_in(families[f].tables[t], weight);
    }
    return row != NULL ? row : row_in(common_rows, weight);
}

/* Operands of SCAN: biases of the convolution and of steps start about 0, the skip about
 * 1. */
enum {
    SCAN_BIAS = 2,
    SCAN_SKIP = 4,
    SCAN_STEP_BIAS
};

/* Sets whether a weight is a norm's or a bias, by the node that reads it. */
static void set_norm_and_bias(const ms_program *program, int weight, ms_weight_name *out)
{
    for (int n = 0; n < program->num_forward_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        for (int i = 1; i < node->num_in; i++) {
            if (node->in[i] != weight)
                continue;
            bool norm = node->op == MS_OP_NORM, scan = node->op == MS_OP_SCAN;
            out->is_norm = ((norm || node->op == MS_OP_GROUP_NORM) && i == 1) ||
                           (scan && i == SCAN_SKIP);
            out->is_bias = (norm && i == 2) || node->op == MS_OP_BIAS ||
                           node->op == MS_OP_EXPERT_BIAS || node->op == MS_OP_ROUTE ||
                           (scan && (i == SCAN_BIAS || i == SCAN_STEP_BIAS));
            return;
        }
    }
}

/* ---- element positions ---- */

static long letter_size(const ms_program *program, char letter)
{
    if (letter == MS_DIM_VOCAB) /* vocabulary size without padding */
        return program->model->vocab;
    if (letter == MS_DIM_KV_HEADS) /* heads without copies */
        return program->model->num_kv_heads;
    return (long)program->size[letter - '0'];
}

/* Size of the segment of a dim that begins at `text`, up to a '+', a space or the end. */
static long segment_size(const ms_program *program, const char *text)
{
    long size = 1;
    for (; *text != '\0' && *text != ' ' && *text != '+'; text++)
        size *= letter_size(program, *text);
    return size;
}

static void set_stride(const ms_tensor *tensor, char letter, long stride,
                       ms_weight_name *out)
{
    const char *dim = strchr(tensor->dims, letter);
    assert(dim != NULL);
    out->stride[dim - tensor->dims] = stride;
}

/* Handles one dim of a layout (`text`) whose inner dims have `inner` elements in all:
 * sets strides of the weight's letters and adds its segment's offset. Returns the dim's
 * size. */
static long set_dim(const ms_program *program, const ms_tensor *tensor,
                    const weight_row *row, const char *text, long inner,
                    ms_weight_name *out)
{
    long size = 0;
    bool shared = memchr(text, '+', strcspn(text, " ")) != NULL;
    for (int segment = 0; *text != '\0' && *text != ' '; segment++) {
        size_t length = strcspn(text, "+ ");
        if (!shared || segment == row->segment) {
            long stride = inner;
            for (size_t i = length; i-- > 0;) {
                set_stride(tensor, text[i], stride, out);
                stride *= letter_size(program, text[i]);
            }
            out->offset += size * inner;
        }
        size += segment_size(program, text);
        text += length + (text[length] == '+' ? 1 : 0);
    }
    return size;
}

static void set_layout(const ms_program *program, const ms_tensor *tensor,
                       const weight_row *row, ms_weight_name *out)
{
    const char *dims[MS_MAX_DIMS];
    for (const char *text = row->layout; text != NULL; text = strchr(text, ' ')) {
        text += *text == ' ' ? 1 : 0;
        assert(out->num_dims < MS_MAX_DIMS);
        dims[out->num_dims++] = text;
    }
    out->count = 1;
    for (int d = out->num_dims; d-- > 0;) {
        out->shape[d] = set_dim(program, tensor, row, dims[d], out->count, out);
        out->count *= out->shape[d];
    }
}

/* ---- the name ---- */

/* Writes the tensor's name with %L replaced by the layer; %ld (expert) stays. */
static void write_name(const char *pattern, long layer, bool is_bias, ms_weight_name *out)
{
    const char *at = strstr(pattern, "%L");
    size_t length = strlen(pattern);
    bool whole = length > 5 && strcmp(pattern + length - 5, "_bias") == 0;
    const char *suffix = whole ? "" : is_bias ? ".bias" : ".weight";
    int written;
    if (at == NULL)
        written = snprintf(out->name, sizeof out->name, "%s%s", pattern, suffix);
    else
        written = snprintf(out->name, sizeof out->name, "%.*s%ld%s%s",
                           (int)(at - pattern), pattern, layer, at + 2, suffix);
    assert(written > 0 && written < MS_NAME_TEXT);
    (void)written;
}

#define LAYOUT_TEXT (2 * MS_MAX_DIMS)

/* Name and layout of an unlisted weight: "model.layers.3.experts.up.%ld.weight". */
static weight_row fallback_row(const ms_program *program, const ms_tensor *tensor,
                               char name[MS_NAME_TEXT], char layout[LAYOUT_TEXT])
{
    bool experts = tensor->mesh == MS_SPARSE_MESH;
    snprintf(name, MS_NAME_TEXT, "model.%s%s%s",
             program->key.block == MS_BLOCK_LAYER || tensor->module > 0 ? "layers.%L."
                                                                        : "",
             tensor->name, experts ? ".%ld" : "");
    char *to = layout;
    for (const char *dim = tensor->dims; *dim != '\0'; dim++) {
        if (experts && *dim == MS_DIM_EXPERTS)
            continue;
        if (to > layout)
            *to++ = ' ';
        *to++ = *dim;
    }
    *to = '\0';
    return (weight_row){.weight = tensor->name, .name = name, .layout = layout};
}

/* Weights of norms that multiply by 1 + weight start at 0, like biases. */
static void start_at_0(const ms_program *program, ms_weight_name *out)
{
    if (!out->is_norm || !program->model->norm_plus_one)
        return;
    out->is_norm = false;
    out->is_bias = true;
}

/* The weight whose name and values a weight has: its own, unless matrices are shared. */
static const char *name_in_table(const ms_program *program, const ms_tensor *tensor)
{
    bool head = strcmp(tensor->name, "head.logits") == 0 ||
                strcmp(tensor->name, "mtp.logits") == 0;
    if (strcmp(tensor->name, "mtp.embedding") == 0 ||
        (head && program->model->tied_embeddings))
        return "embedding.tokens";
    return head ? "head.logits" : tensor->name;
}

void ms_weight_name_of(const ms_program *program, int weight, long layer,
                       ms_weight_name *out)
{
    const ms_model *model = program->model;
    const ms_tensor *tensor = &program->tensors[weight];
    assert(tensor->role == MS_ROLE_WEIGHT);
    memset(out, 0, sizeof *out);
    set_norm_and_bias(program, weight, out);
    const char *name = name_in_table(program, tensor);
    out->is_tied = strcmp(name, tensor->name) != 0;
    if (tensor->module > 0)
        layer = model->num_layers + tensor->module - 1;
    out->expert_dim = -1;
    if (tensor->mesh == MS_SPARSE_MESH)
        out->expert_dim = (int)(strchr(tensor->dims, MS_DIM_EXPERTS) - tensor->dims);
    char fallback_name[MS_NAME_TEXT], fallback_layout[LAYOUT_TEXT];
    weight_row fallback;
    const weight_row *row = find_row(model->family, name);
    if (row == NULL) {
        fallback = fallback_row(program, tensor, fallback_name, fallback_layout);
        row = &fallback;
    }
    write_name(row->name, layer, out->is_bias, out);
    set_layout(program, tensor, row, out);
    start_at_0(program, out);
}

void ms_weight_name_text(const ms_weight_name *name, long expert, char out[MS_NAME_TEXT])
{
    const char *at = strstr(name->name, "%ld");
    if (at == NULL)
        snprintf(out, MS_NAME_TEXT, "%s", name->name);
    else
        snprintf(out, MS_NAME_TEXT, "%.*s%ld%s", (int)(at - name->name), name->name,
                 expert, at + 3);
}

/* ---- initial values ---- */

uint64_t ms_initial_key(const ms_initial *initial, const char *name)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001B3u;
    return ms_rng_split(ms_rng_seed(initial->seed), hash).seed;
}

double ms_initial_value(const ms_initial *initial, uint64_t key, long element,
                        bool is_norm, bool is_bias)
{
    ms_rng rng = ms_rng_split(ms_rng_seed(key), (uint64_t)element);
    double first = ms_rng_uniform(&rng);
    if (is_norm || is_bias)
        return (is_norm ? 1.0 : 0.0) + initial->spread * (2.0 * first - 1.0);
    double angle = 2.0 * PI * ms_rng_uniform(&rng);
    return initial->deviation * sqrt(-2.0 * log(1.0 - first)) * cos(angle);
}

static long index_of_element(const ms_initial_piece *piece,
                             const long index[MS_INITIAL_DIMS])
{
    long element_index = piece->offset;
    for (int d = 0; d < piece->num_dims; d++)
        element_index += piece->stride[d] * (piece->start[d] + index[d]);
    return element_index;
}

void ms_initial_values(const ms_initial_piece *piece, long first, long num, double *out)
{
    const ms_initial initial = {.deviation = piece->deviation, .spread = piece->spread};
    long index[MS_INITIAL_DIMS], element = piece->first + first;
    for (int d = piece->num_dims; d-- > 0;) {
        index[d] = element % piece->shape[d];
        element /= piece->shape[d];
    }
    for (long i = 0; i < num; i++) {
        long element_index = index_of_element(piece, index);
        double x = element_index < piece->count
                       ? ms_initial_value(&initial, piece->key, element_index,
                                          piece->is_norm, piece->is_bias)
                       : 0.0;
        out[i] = piece->in_bf16 ? ms_rounded_to_bf16((float)x) : x;
        for (int d = piece->num_dims; d-- > 0 && ++index[d] == piece->shape[d];)
            index[d] = 0;
    }
}
