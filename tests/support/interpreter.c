/* Core of the reference interpreter: each rank's tensor parts, initial values, and the
 * execution of nodes in order. The operations are in interpreter_*.c. */
#include "tests/support/interpreter.h"

#include "base/rng.h"
#include "tests/support/interpreter_priv.h"

#include <stdarg.h>
#include <string.h>

typedef struct op_entry {
    ms_interp_kernel *kernel;
    int min_in, max_in, min_out, max_out;
} op_entry;

static const op_entry op_table[MS_NUM_OPS] = {
    [MS_OP_EINSUM] = {ms_interp_einsum, 2, 2, 1, 1},
    [MS_OP_BIAS] = {ms_interp_bias, 2, 2, 1, 1},
    [MS_OP_SUM_TO] = {ms_interp_sum_to, 1, 1, 1, 1},
    [MS_OP_ADD] = {ms_interp_add, 2, 2, 1, 2},
    [MS_OP_DROPOUT_GRAD] = {ms_interp_dropout_grad, 2, 2, 1, 1},
    [MS_OP_NORM] = {ms_interp_norm, 2, 3, 1, 1},
    [MS_OP_NORM_GRAD] = {ms_interp_norm_grad, 3, 3, 1, 3},
    [MS_OP_ROTARY] = {ms_interp_rotary, 1, 1, 1, 1},
    [MS_OP_ATTENTION] = {ms_interp_attention, 3, 3, 2, 3},
    [MS_OP_ATTENTION_GRAD] = {ms_interp_attention_grad, 6, 7, 3, 3},
    [MS_OP_MLA_KEYS] = {ms_interp_mla_keys, 2, 2, 2, 2},
    [MS_OP_MLA_KEYS_GRAD] = {ms_interp_mla_keys_grad, 2, 2, 2, 2},
    [MS_OP_ACTIVATION] = {ms_interp_activation, 1, 2, 1, 1},
    [MS_OP_ACTIVATION_GRAD] = {ms_interp_activation_grad, 2, 3, 1, 2},
    [MS_OP_EMBED] = {ms_interp_embed, 1, 1, 1, 1},
    [MS_OP_EMBED_GRAD] = {ms_interp_embed_grad, 1, 1, 1, 1},
    [MS_OP_LOSS_MAX] = {ms_interp_loss_max, 1, 1, 1, 1},
    [MS_OP_LOSS_SUM] = {ms_interp_loss_sum, 2, 2, 2, 2},
    [MS_OP_LOSS] = {ms_interp_loss_token, 3, 3, 1, 1},
    [MS_OP_LOSS_GRAD] = {ms_interp_loss_grad, 3, 3, 1, 1},
    [MS_OP_ROUTE] = {ms_interp_route, 1, 2, 2, 2},
    [MS_OP_ROUTE_GRAD] = {ms_interp_route_grad, 4, 4, 1, 1},
    [MS_OP_PERMUTE] = {ms_interp_permute, 2, 2, 1, 1},
    [MS_OP_PERMUTE_GRAD] = {ms_interp_permute_grad, 2, 2, 1, 1},
    [MS_OP_EXCHANGE] = {ms_interp_exchange, 2, 2, 1, 1},
    [MS_OP_GROUPED] = {ms_interp_grouped, 3, 3, 1, 1},
    [MS_OP_UNPERMUTE] = {ms_interp_unpermute, 3, 3, 1, 1},
    [MS_OP_UNPERMUTE_GRAD] = {ms_interp_unpermute_grad, 4, 4, 2, 2},
    [MS_OP_GATE] = {ms_interp_gate, 2, 2, 1, 1},
    [MS_OP_GATE_GRAD] = {ms_interp_gate_grad, 3, 3, 2, 2},
    [MS_OP_REDISTRIBUTE] = {ms_interp_redistribute, 1, 1, 1, 1},
    [MS_OP_ADAM] = {ms_interp_adam, 4, 4, 3, 3},
};

void ms_interp_fail(ms_interp *run, const ms_node *node, const char *format, ...)
{
    if (run->why[0] != '\0')
        return;
    int used = 0;
    if (node != NULL)
        used = snprintf(run->why, sizeof run->why,
                        "node %ld (%s): ", (long)(node - run->program->nodes),
                        node->name != NULL ? node->name : "no name");
    if (used < 0 || used >= (int)sizeof run->why)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(run->why + used, sizeof run->why - (size_t)used, format, args);
    va_end(args);
}

long ms_interp_size(const ms_interp *run, char letter)
{
    return (long)run->program->size[letter - '0'];
}

long ms_interp_coordinate(const ms_interp *run, int mesh, int axis, int rank)
{
    const long *size = run->program->mesh_size[mesh];
    if (axis == 2)
        return rank % size[2];
    if (axis == 1)
        return rank / size[2] % size[1];
    return rank / size[2] / size[1];
}

int ms_interp_peer(const ms_interp *run, int mesh, int axis, int rank, long coordinate)
{
    const long *size = run->program->mesh_size[mesh];
    long stride = axis == 2 ? 1 : axis == 1 ? size[2] : size[2] * size[1];
    return rank +
           (int)((coordinate - ms_interp_coordinate(run, mesh, axis, rank)) * stride);
}

static void split_box(ms_interp *run, const ms_tensor *t, int axis, int rank, ms_box *box)
{
    const char *where = strchr(t->dims, t->at[axis].dim);
    long parts = run->program->mesh_size[t->mesh][axis];
    if (where == NULL || t->at[axis].dim == '\0') {
        ms_interp_fail(run, NULL, "%s[%s] is sharded over axis %d by a dim '%c' it lacks",
                       t->name, t->dims, axis, t->at[axis].dim);
        return;
    }
    long i = where - t->dims;
    if (box->len[i] % parts != 0)
        ms_interp_fail(run, NULL, "%s[%s]: %ld of '%c' cannot be split into %ld", t->name,
                       t->dims, box->len[i], *where, parts);
    box->len[i] /= parts;
    box->start[i] += box->len[i] * ms_interp_coordinate(run, t->mesh, axis, rank);
}

/* Number of pieces into which later mesh axes split the dim that a strided shard splits;
 * a rank's part is a box only if this is the shard's split factor. */
static long later_pieces(const ms_interp *run, const ms_tensor *t, int axis)
{
    long pieces = 1;
    for (int later = axis + 1; later < MS_MESH_AXES; later++)
        if (t->at[later].kind == MS_SHARD && t->at[later].dim == t->at[axis].dim)
            pieces *= run->program->mesh_size[t->mesh][later];
    return pieces;
}

/* Returns a rank's part of a tensor; strided shards split what the other axes leave. */
ms_box ms_interp_box(ms_interp *run, int tensor, int rank)
{
    const ms_tensor *t = &run->program->tensors[tensor];
    ms_box box = {.num_dims = (int)strlen(t->dims)};
    for (int i = 0; i < box.num_dims; i++)
        box.len[i] = ms_interp_size(run, t->dims[i]);
    for (int strided = 0; strided < 2; strided++) {
        for (int axis = 0; axis < MS_MESH_AXES; axis++)
            if (t->at[axis].kind == MS_SHARD &&
                (t->at[axis].split_factor > 1) == (strided == 1))
                split_box(run, t, axis, rank, &box);
    }
    for (int axis = 0; axis < MS_MESH_AXES; axis++) {
        if (t->at[axis].kind == MS_SHARD && t->at[axis].split_factor > 1 &&
            t->at[axis].split_factor != later_pieces(run, t, axis))
            ms_interp_fail(run, NULL, "%s[%s]: axis %d takes a part of each of %d pieces",
                           t->name, t->dims, axis, t->at[axis].split_factor);
    }
    return box;
}

bool ms_box_next(const ms_box *box, long *index)
{
    for (int i = box->num_dims - 1; i >= 0; i--) {
        if (++index[i] < box->len[i])
            return true;
        index[i] = 0;
    }
    return false;
}

ms_cell *ms_interp_cell(ms_interp *run, int tensor, int rank)
{
    return &run->cells[(long)tensor * run->num_ranks + rank];
}

ms_cell *ms_interp_in(ms_interp *run, const ms_node *node, int operand, int rank)
{
    return ms_interp_cell(run, node->in[operand], rank);
}

static ms_cell *fill_cell(ms_interp *run, int tensor, int rank, long num_rows)
{
    const char *dims = run->program->tensors[tensor].dims;
    ms_cell *cell = ms_interp_cell(run, tensor, rank);
    ms_box box = ms_interp_box(run, tensor, rank);
    *cell = (ms_cell){.num_dims = box.num_dims, .count = 1};
    for (int i = 0; i < box.num_dims; i++) {
        cell->shape[i] = dims[i] == MS_DIM_ROWS && num_rows >= 0 ? num_rows : box.len[i];
        cell->count *= cell->shape[i];
    }
    cell->values = MS_NEW_ARRAY(run->arena, cell->count, double);
    return cell;
}

ms_cell *ms_interp_out_rows(ms_interp *run, const ms_node *node, int result, int rank,
                            long num_rows)
{
    return fill_cell(run, node->out[result], rank, num_rows);
}

ms_cell *ms_interp_out(ms_interp *run, const ms_node *node, int result, int rank)
{
    long num_rows = -1;
    for (int i = 0; i < node->num_in && num_rows < 0; i++) {
        const char *dims = run->program->tensors[node->in[i]].dims;
        const char *where = strchr(dims, MS_DIM_ROWS);
        if (where != NULL)
            num_rows = ms_interp_in(run, node, i, rank)->shape[where - dims];
    }
    return fill_cell(run, node->out[result], rank, num_rows);
}

bool ms_interp_expect(ms_interp *run, const ms_node *node, const ms_cell *cell,
                      long count)
{
    if (cell->count == count)
        return true;
    const ms_tensor *t = &run->program->tensors[(cell - run->cells) / run->num_ranks];
    ms_interp_fail(run, node, "%s[%s] has %ld elements on rank %ld where %ld are needed",
                   t->name, t->dims, cell->count,
                   (long)(cell - run->cells) % run->num_ranks, count);
    return false;
}

void ms_interp_count_flop(ms_interp *run, const ms_node *node, double flop)
{
    run->node_flop[node - run->program->nodes] += flop;
}

long ms_interp_position(const ms_interp *run, long stored)
{
    return run->options.positions != NULL ? run->options.positions[stored] : stored;
}

long ms_cell_last(const ms_cell *cell)
{
    return cell->shape[cell->num_dims - 1];
}

long ms_cell_leading(const ms_cell *cell)
{
    return cell->count / ms_cell_last(cell);
}

long ms_interp_token(const ms_interp *run, int stream, long sequence, long position)
{
    ms_rng rng = ms_rng_split(ms_rng_seed(run->options.seed + 77), (uint64_t)stream);
    rng = ms_rng_split(rng, (uint64_t)(sequence * 1000003 + position));
    return (long)ms_rng_below(&rng, (uint64_t)ms_interp_size(run, MS_DIM_VOCAB));
}

int ms_interp_weight(const ms_program *program, int n)
{
    for (int i = 0; i < program->num_tensors; i++)
        if (program->tensors[i].role == MS_ROLE_WEIGHT && n-- == 0)
            return i;
    return -1;
}

/* Random-number stream of a given tensor: by its ordinal among the weights, so that
 * sharded programs get equal values, or by its role as input or output gradient. */
static uint64_t stream_of(const ms_program *program, int tensor)
{
    uint64_t ordinal = 2;
    if (tensor == program->input)
        return 0;
    if (tensor == program->output_gradient)
        return 1;
    ms_role role = (ms_role)program->tensors[tensor].role;
    for (int i = 0; i < tensor; i++)
        ordinal += program->tensors[i].role == role;
    return role == MS_ROLE_STATE ? ordinal + 1000 : ordinal;
}

/* Draws an initial value: vectors (mostly scales) lie around 1, matrices keep activations
 * near unit size. */
static double initial_value(const ms_interp *run, int tensor, uint64_t stream, long index)
{
    const ms_tensor *t = &run->program->tensors[tensor];
    ms_rng rng = ms_rng_split(ms_rng_split(ms_rng_seed(run->options.seed), stream),
                              (uint64_t)index);
    double noise = 2 * ms_rng_uniform(&rng) - 1;
    bool is_nudged = run->options.num_nudged > 0 && run->options.nudged == tensor &&
                     run->options.nudged_element == index;
    double nudge = is_nudged ? run->options.nudge : 0;
    if (t->role == MS_ROLE_STATE)
        return 1.5 + noise; /* second moments must be positive */
    if (t->role != MS_ROLE_WEIGHT)
        return noise + nudge;
    return (strlen(t->dims) == 1 ? 1 + 0.25 * noise : 0.4 * noise) + nudge;
}

static void generate(ms_interp *run, int tensor, int rank)
{
    const char *dims = run->program->tensors[tensor].dims;
    uint64_t stream = stream_of(run->program, tensor);
    ms_cell *cell = fill_cell(run, tensor, rank, -1);
    ms_box box = ms_interp_box(run, tensor, rank);
    long index[MS_MAX_DIMS] = {0};
    for (long at = 0; at < cell->count; at++) {
        long global = 0;
        for (int i = 0; i < box.num_dims; i++)
            global = global * ms_interp_size(run, dims[i]) + box.start[i] + index[i];
        cell->values[at] = initial_value(run, tensor, stream, global);
        ms_box_next(&box, index);
    }
}

static void generate_all(ms_interp *run)
{
    const ms_program *program = run->program;
    for (int i = 0; i < program->num_tensors; i++) {
        const ms_tensor *t = &program->tensors[i];
        if (t->producer >= 0)
            continue;
        if (t->role != MS_ROLE_WEIGHT && t->role != MS_ROLE_STATE &&
            i != program->input && i != program->output_gradient)
            ms_interp_fail(run, NULL,
                           "%s has no producer and is neither weight nor input", t->name);
        for (int axis = 0; axis < MS_MESH_AXES; axis++)
            if (t->at[axis].kind != MS_SHARD && t->at[axis].kind != MS_REPLICATE)
                ms_interp_fail(run, NULL, "%s is given, but partial on axis %d", t->name,
                               axis);
        for (int rank = 0; rank < run->num_ranks; rank++)
            generate(run, i, rank);
    }
}

/* Marks activations that are not saved: backward must not use them. */
static void drop_unsaved(ms_interp *run)
{
    for (int i = 0; i < run->program->num_tensors; i++) {
        const ms_tensor *t = &run->program->tensors[i];
        run->dropped[i] = t->role == MS_ROLE_ACTIVATION && !t->saved;
    }
}

static bool operands_exist(ms_interp *run, const ms_node *node)
{
    const op_entry *entry = &op_table[node->op];
    if (node->num_in < entry->min_in || node->num_in > entry->max_in ||
        node->num_out < entry->min_out || node->num_out > entry->max_out) {
        ms_interp_fail(run, node, "operation %d with %d operands and %d results",
                       node->op, node->num_in, node->num_out);
        return false;
    }
    for (int i = 0; i < node->num_in; i++) {
        const char *name = run->program->tensors[node->in[i]].name;
        if (ms_interp_in(run, node, i, 0)->values == NULL)
            ms_interp_fail(run, node, "operand %s is not computed yet", name);
        else if (run->dropped[node->in[i]])
            ms_interp_fail(run, node, "operand %s was neither saved nor computed again",
                           name);
    }
    return run->why[0] == '\0';
}

static void execute(ms_interp *run, const ms_node *node)
{
    if (!operands_exist(run, node))
        return;
    for (int rank = 0; rank < run->num_ranks && run->why[0] == '\0'; rank++)
        op_table[node->op].kernel(run, node, rank);
    for (int i = 0; i < node->num_out; i++)
        run->dropped[node->out[i]] = false;
    if (run->why[0] != '\0' && strncmp(run->why, "node ", 5) != 0) {
        char text[sizeof run->why];
        memcpy(text, run->why, sizeof text);
        run->why[0] = '\0';
        ms_interp_fail(run, node, "%.300s", text);
    }
}

ms_interp *ms_interp_run(ms_arena *arena, const ms_program *program,
                         const ms_interp_options *options)
{
    ms_interp *run = MS_NEW(arena, ms_interp);
    const long(*size)[MS_MESH_AXES] = program->mesh_size;
    *run = (ms_interp){.program = program, .options = *options, .arena = arena};
    run->num_ranks = (int)(size[0][0] * size[0][1] * size[0][2]);
    if (size[1][0] * size[1][1] * size[1][2] != run->num_ranks)
        ms_interp_fail(run, NULL,
                       "the sparse mesh %ld x %ld x %ld does not have %d ranks",
                       size[1][0], size[1][1], size[1][2], run->num_ranks);
    run->cells =
        MS_NEW_ARRAY(arena, (long)program->num_tensors * run->num_ranks, ms_cell);
    run->dropped = MS_NEW_ARRAY(arena, program->num_tensors, bool);
    run->node_flop = MS_NEW_ARRAY(arena, program->num_nodes, double);
    run->node_wire_bytes =
        MS_NEW_ARRAY(arena, (long)program->num_nodes * run->num_ranks, double);
    generate_all(run);
    int num_nodes =
        options->forward_only ? program->num_forward_nodes : program->num_nodes;
    for (int i = 0; i < num_nodes && run->why[0] == '\0'; i++) {
        if (i == program->num_forward_nodes)
            drop_unsaved(run);
        execute(run, &program->nodes[i]);
    }
    return run;
}
