/* Texts on why a tensor's placement changes. A gather: nodes that use the whole tensor
 * are split by another of their dimensions (a letter). A reduction: nodes sum over a
 * dimension of which each rank has a part. */
#include "sim/explain/explain_reason.h"

#include <string.h>

#define MAX_NAMES 3

/* ---- words ---- */

const char *ms_placement_word(ms_arena *arena, ms_placement placement)
{
    return ms_placement_text(placement, ms_arena_alloc(arena, MS_PLACEMENT_TEXT));
}

const char *ms_tensor_placement_text(ms_arena *arena, const ms_program *program,
                                     int tensor)
{
    const ms_tensor *t = &program->tensors[tensor];
    const char *text = "";
    for (int axis = 0; axis < MS_MESH_AXES; axis++) {
        if (t->at[axis].kind != MS_REPLICATE && program->mesh_size[t->mesh][axis] > 1)
            text = ms_arena_printf(arena, "%s%s%s@%s", text, text[0] == '\0' ? "" : " ",
                                   ms_placement_word(arena, t->at[axis]),
                                   ms_mesh_axis_names[t->mesh][axis]);
    }
    return text[0] == '\0' ? "whole" : text;
}

static bool is_attention(const ms_node *node)
{
    return node->op == MS_OP_ATTENTION || node->op == MS_OP_ATTENTION_GRAD;
}

const char *ms_node_change_text(ms_arena *arena, const ms_program *program,
                                const ms_node *node)
{
    const ms_tensor *in = &program->tensors[node->in[0]];
    if (node->op == MS_OP_EXCHANGE)
        return in->mesh == MS_DENSE_MESH ? "by token -> by expert"
                                         : "by expert -> by token";
    if (is_attention(node))
        return "blocks of s around @cp";
    const char *axis = ms_mesh_axis_names[in->mesh][node->axis];
    return ms_arena_printf(arena, "%s -> %s @%s", ms_placement_word(arena, node->from),
                           ms_placement_word(arena, node->to), axis);
}

/* ---- lists of names and letters ---- */

typedef struct names {
    ms_arena *arena;
    int num;
    bool plural;
    const char *listed[MAX_NAMES];
    const char *text;
    const ms_node *first;          /* first node named in the sentence */
    char letters[MS_MAX_OPERANDS]; /* dimensions by which the named nodes are split */
} names;

static void add_letter(names *list, char letter)
{
    size_t length = strlen(list->letters);
    if (letter != 0 && strchr(list->letters, letter) == NULL &&
        length + 1 < sizeof list->letters)
        list->letters[length] = letter;
}

/* `name` without its prefix, such as "attention.", if `before` has the same prefix. */
static const char *without_prefix(const char *name, const char *before)
{
    const char *dot = strchr(name, '.');
    if (dot == NULL || strncmp(name, before, (size_t)(dot + 1 - name)) != 0)
        return name;
    return dot + 1;
}

static void add_name(names *list, const ms_node *node)
{
    const char *name = node->name;
    bool gradient =
        node->pass == MS_PASS_BACKWARD_WEIGHT || node->pass == MS_PASS_BACKWARD_INPUT;
    for (int i = 0; i < list->num && i < MAX_NAMES; i++)
        if (strcmp(list->listed[i], name) == 0)
            return;
    if (list->num == 0)
        list->first = node;
    if (list->num < MAX_NAMES) {
        list->listed[list->num] = name;
        if (list->num == 0)
            list->text = ms_arena_printf(list->arena, "%s%s",
                                         gradient ? "gradients of " : "", name);
        else
            list->text = ms_arena_printf(list->arena, "%s, %s", list->text,
                                         without_prefix(name, list->listed[0]));
        list->plural = gradient || list->num > 0;
    } else if (list->num == MAX_NAMES) {
        list->text = ms_arena_printf(list->arena, "%s, ...", list->text);
    }
    list->num++;
}

static const char *letters_text(const names *list)
{
    const char *text = "";
    for (const char *c = list->letters; *c != '\0'; c++)
        text = ms_arena_printf(list->arena, "%s%s%c", text,
                               c == list->letters ? "" : ", ", *c);
    return text;
}

/* ---- around a node ---- */

static bool uses(const ms_node *node, int tensor)
{
    for (int i = 0; i < node->num_in; i++)
        if (node->in[i] == tensor)
            return true;
    return false;
}

/* The dimension (a letter) by which mesh axis `axis` splits a result of the node, or else
 * an operand, as where the result is a partial sum; 0: none is split. */
static char split_letter(const ms_program *program, const ms_node *node, int axis)
{
    for (int i = 0; i < node->num_out; i++)
        if (program->tensors[node->out[i]].at[axis].kind == MS_SHARD)
            return program->tensors[node->out[i]].at[axis].dim;
    for (int i = 0; i < node->num_in; i++)
        if (program->tensors[node->in[i]].at[axis].kind == MS_SHARD)
            return program->tensors[node->in[i]].at[axis].dim;
    return 0;
}

/* Adds the nodes that use a tensor, directly or after a change of its placement. */
static void add_users(const ms_program *program, int tensor, int axis, names *list)
{
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (!uses(node, tensor))
            continue;
        if (node->op == MS_OP_REDISTRIBUTE) {
            add_users(program, node->out[0], axis, list);
            continue;
        }
        add_name(list, node);
        add_letter(list, split_letter(program, node, axis));
    }
}

/* Adds the nodes that compute a partial sum: back through nodes that only add partial
 * sums or pass them on. */
static void add_makers(const ms_program *program, int tensor, int axis, names *list)
{
    int producer = program->tensors[tensor].producer;
    if (producer < 0)
        return;
    const ms_node *node = &program->nodes[producer];
    bool passes_on = node->op == MS_OP_ADD || node->op == MS_OP_UNPERMUTE ||
                     node->op == MS_OP_EXCHANGE || node->op == MS_OP_REDISTRIBUTE;
    if (!passes_on) {
        add_name(list, node);
        add_letter(list, split_letter(program, node, axis));
        return;
    }
    int num_in = node->op == MS_OP_ADD ? 2 : 1;
    for (int i = 0; i < num_in; i++)
        add_makers(program, node->in[i], axis, list);
}

/* ---- sentences ---- */

static const char *gather_text(ms_arena *arena, const ms_program *program,
                               const ms_node *node)
{
    names users = {.arena = arena, .text = ""};
    add_users(program, node->out[0], node->axis, &users);
    const char *verb = users.plural ? "are" : "is";
    const char *need = users.plural ? "need" : "needs";
    bool by_other = users.letters[0] != '\0' && users.letters[0] != node->from.dim;
    if (by_other)
        return ms_arena_printf(arena, "%s %s split by %s and %s every %c", users.text,
                               verb, letters_text(&users), need, node->from.dim);
    if (users.first != NULL && users.first->op == MS_OP_ATTENTION)
        return ms_arena_printf(
            arena, "%s: a rank's queries attend to every key before them", users.text);
    return ms_arena_printf(arena, "%s %s every %c on each rank", users.text, need,
                           node->from.dim);
}

/* Reason of a reduction: a sum over a split dimension, or over each rank's tokens. */
static const char *sum_text(ms_arena *arena, const ms_program *program,
                            const ms_node *node)
{
    int producer = program->tensors[node->in[0]].producer;
    names makers = {.arena = arena, .text = ""};
    add_makers(program, node->in[0], node->axis, &makers);
    const ms_node *made = producer >= 0 ? &program->nodes[producer] : NULL;
    const char *verb = makers.plural ? "sum" : "sums";
    if (made != NULL && made->op == MS_OP_EMBED)
        return ms_arena_printf(arena, "%s finds the rows of a rank's own part of %s only",
                               makers.text, letters_text(&makers));
    if (made != NULL && made->op == MS_OP_LOSS_MAX)
        return ms_arena_printf(arena, "%s is the maximum over each rank's part of %s",
                               makers.text, letters_text(&makers));
    if (made != NULL && made->op == MS_OP_ATTENTION_GRAD)
        return ms_arena_printf(arena, "%s have the part of each rank's own queries",
                               makers.text);
    if (makers.letters[0] == '\0')
        return ms_arena_printf(arena, "%s %s what each rank has a part of", makers.text,
                               verb);
    return ms_arena_printf(arena, "%s %s over %s, of which each rank has a part",
                           makers.text, verb, letters_text(&makers));
}

static const char *exchange_text(const ms_program *program, const ms_node *node)
{
    bool gradient = program->tensors[node->in[0]].role == MS_ROLE_GRADIENT;
    if (program->tensors[node->in[0]].mesh == MS_DENSE_MESH)
        return gradient
                   ? "gradients of the experts' results go to the ranks that hold them"
                   : "tokens go to the ranks that hold their experts (dispatch)";
    return gradient ? "gradients of the tokens return to where the tokens are"
                    : "experts' results return to where the tokens are (combine)";
}

const char *ms_node_reason_text(ms_arena *arena, const ms_program *program,
                                const ms_node *node)
{
    if (node->op == MS_OP_EXCHANGE)
        return exchange_text(program, node);
    if (is_attention(node))
        return node->op == MS_OP_ATTENTION
                   ? "queries attend to every block of keys and values as it passes"
                   : "blocks pass again, and their gradients travel home with them";
    if (node->from.kind != MS_SHARD)
        return sum_text(arena, program, node);
    if (node->to.kind == MS_REPLICATE)
        return gather_text(arena, program, node);
    names users = {.arena = arena, .text = ""};
    add_users(program, node->out[0], node->axis, &users);
    return ms_arena_printf(arena, "%s %s every %c of a part of %c", users.text,
                           users.plural ? "need" : "needs", node->from.dim, node->to.dim);
}
