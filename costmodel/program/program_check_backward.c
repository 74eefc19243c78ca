/* Checks the backward pass: recomputed nodes equal forward nodes, backward nodes are
 * their derivatives, gradients are complete and placed as their tensors require. */
#include "costmodel/program/program_check_priv.h"

#include <string.h>

/* One backward operation of forward operation `op`; `slots`: its operands '>' the
 * gradients that it makes. a b c ... are operands of the forward node, x y z its results,
 * capitals the gradients of either, '@' a loss's logits; optional ones follow '|'. */
typedef struct derivative {
    unsigned char op, backward;
    const char *slots;
} derivative;

static const derivative derivatives[] = {
    {MS_OP_EINSUM, MS_OP_EINSUM, "Xb>A"},
    {MS_OP_EINSUM, MS_OP_EINSUM, "aX>B"},
    {MS_OP_GROUPED, MS_OP_GROUPED, "Xbc>A"},
    {MS_OP_GROUPED, MS_OP_GROUPED, "aXc>B"},
    {MS_OP_BIAS, MS_OP_SUM_TO, "X>B"},
    {MS_OP_EXPERT_BIAS, MS_OP_EXPERT_BIAS_GRAD, "Xc>B"},
    {MS_OP_ATTENTION, MS_OP_SINK_GRAD, "xyXd>D"},
    {MS_OP_ADD, MS_OP_DROPOUT_GRAD, "Xy>B"},
    {MS_OP_NORM, MS_OP_NORM_GRAD, "abX>AB|C"},
    {MS_OP_NORM, MS_OP_NORM_GRAD, "abX>A"}, /* frozen weights */
    {MS_OP_ROTARY, MS_OP_ROTARY, "X>A"},
    {MS_OP_ATTENTION, MS_OP_ATTENTION_GRAD, "abcxyX|z>ABC"},
    {MS_OP_MLA_KEYS, MS_OP_MLA_KEYS_GRAD, "XY>AB"},
    {MS_OP_ACTIVATION, MS_OP_ACTIVATION_GRAD, "aX>A"},
    {MS_OP_ACTIVATION, MS_OP_ACTIVATION_GRAD, "abX>AB"},
    {MS_OP_EMBED, MS_OP_EMBED_GRAD, "X>A"},
    {MS_OP_LOSS, MS_OP_LOSS_GRAD, "@ab>@"},
    {MS_OP_ROUTE, MS_OP_ROUTE_GRAD, "axyX>A"},
    {MS_OP_PERMUTE, MS_OP_PERMUTE_GRAD, "Xb>A"},
    {MS_OP_EXCHANGE, MS_OP_EXCHANGE, "Xb>A"},
    {MS_OP_UNPERMUTE, MS_OP_UNPERMUTE_GRAD, "Xabc>AB"},
    {MS_OP_GATE, MS_OP_GATE_GRAD, "abX>AB"},
    {MS_OP_SCAN, MS_OP_SCAN_GRAD, "abcdefyX>ABCDEF"},
    {MS_OP_SCAN, MS_OP_SCAN_GRAD, "abcdefyX>A"}, /* frozen weights */
    {MS_OP_CONCAT, MS_OP_CONCAT_GRAD, "X>AB"},
    {MS_OP_GROUP_NORM, MS_OP_GROUP_NORM_GRAD, "abX>AB"},
    {MS_OP_GROUP_NORM, MS_OP_GROUP_NORM_GRAD, "abX>A"}, /* frozen weights */
};
#define NUM_DERIVATIVES ((int)(sizeof derivatives / sizeof *derivatives))

/* Summands that each gradient must have, and has, counted per contributor: one index per
 * operand of each forward node, the last for the gradient of the program's result. */
typedef struct books {
    ms_checker *c;
    int num_leaves;
    unsigned char **wanted; /* [forward tensor] required summands; NULL: no gradient */
    unsigned char **got;    /* [gradient] actual summands; NULL: no gradient */
} books;

static unsigned char *leaves_of(const books *b, unsigned char **of, int tensor)
{
    if (of[tensor] == NULL)
        of[tensor] = MS_NEW_ARRAY(b->c->arena, b->num_leaves, unsigned char);
    return of[tensor];
}

static void add_leaves(const books *b, unsigned char *to, const unsigned char *from)
{
    for (int i = 0; from != NULL && i < b->num_leaves; i++)
        to[i] = (unsigned char)(to[i] + from[i]);
}

static int leaf(int forward, int operand)
{
    return forward * MS_MAX_OPERANDS + operand;
}

/* ---- required contributions ---- */

/* Whether a node's operand has the same gradient as its result (sums, biases). */
static bool passes_through(const ms_node *node, int operand)
{
    if (node->op == MS_OP_BIAS || node->op == MS_OP_EXPERT_BIAS)
        return operand == 0;
    return node->op == MS_OP_ADD && (operand == 0 || node->num_out == 1);
}

static bool gives(const derivative *d, int operand)
{
    return strchr(strchr(d->slots, '>'), 'A' + operand) != NULL;
}

/* Whether a result of a forward node has a gradient from which its derivative starts. */
static bool is_reached(const books *b, const derivative *d, const ms_node *node)
{
    for (const char *s = d->slots; *s != '>'; s++)
        if ((*s == 'X' || *s == 'Y') && *s - 'X' < node->num_out &&
            b->wanted[node->out[*s - 'X']] != NULL)
            return true;
    return false;
}

/* The logits of a LOSS node, as read by its LOSS_MAX node; -1: none. */
static int logits_of(const ms_checker *c, const ms_node *loss)
{
    int producer = c->program->tensors[c->root[loss->in[0]]].producer;
    if (producer < 0 || c->program->nodes[producer].op != MS_OP_LOSS_MAX)
        return -1;
    return c->root[c->program->nodes[producer].in[0]];
}

static void want_of_operand(books *b, int f, int operand)
{
    const ms_node *node = &b->c->program->nodes[f];
    int tensor = b->c->root[node->in[operand]];
    const unsigned char *result = b->wanted[node->out[0]];
    if (b->c->program->tensors[tensor].frozen)
        return;
    if (passes_through(node, operand)) {
        if (result != NULL)
            add_leaves(b, leaves_of(b, b->wanted, tensor), result);
        return;
    }
    for (int i = 0; i < NUM_DERIVATIVES; i++) {
        if (derivatives[i].op == node->op && gives(&derivatives[i], operand) &&
            is_reached(b, &derivatives[i], node)) {
            leaves_of(b, b->wanted, tensor)[leaf(f, operand)]++;
            return;
        }
    }
}

/* Finds the summands that gradients must have, from the last forward node on. */
static void find_wanted(books *b)
{
    const ms_program *program = b->c->program;
    if (program->output >= 0 && program->output_gradient >= 0)
        leaves_of(b, b->wanted, b->c->root[program->output])[b->num_leaves - 1]++;
    for (int f = program->num_forward_nodes - 1; f >= 0; f--) {
        const ms_node *node = &program->nodes[f];
        if (node->op == MS_OP_REDISTRIBUTE)
            continue;
        if (node->op == MS_OP_LOSS && logits_of(b->c, node) >= 0)
            leaves_of(b, b->wanted, logits_of(b->c, node))[leaf(f, 0)]++;
        for (int i = 0; i < node->num_in; i++)
            want_of_operand(b, f, i);
    }
}

static bool is_complete(const books *b, int gradient, int of)
{
    const unsigned char *got = b->got[gradient], *wanted = b->wanted[b->c->root[of]];
    return got != NULL && wanted != NULL &&
           memcmp(got, wanted, (size_t)b->num_leaves) == 0;
}

/* ---- one backward node ---- */

/* The tensor of a forward node that a slot letter names, small or capital; -1: none. */
static int slot_tensor(const books *b, const ms_node *forward, char slot)
{
    if (slot == '@')
        return logits_of(b->c, forward);
    if (slot >= 'A' && slot <= 'Z')
        slot = (char)(slot - 'A' + 'a');
    int operand = slot - 'a', result = slot - 'x';
    if (result >= 0)
        return result < forward->num_out ? forward->out[result] : -1;
    return operand < forward->num_in ? forward->in[operand] : -1;
}

static bool is_gradient_slot(char slot)
{
    return slot >= 'A' && slot <= 'Z';
}

static bool operand_fits(const books *b, const ms_node *node, const ms_node *forward,
                         char slot, int operand)
{
    int tensor = slot_tensor(b, forward, slot);
    if (tensor < 0 || operand >= node->num_in)
        return false;
    if (is_gradient_slot(slot))
        return is_complete(b, node->in[operand], tensor);
    return b->c->root[node->in[operand]] == b->c->root[tensor];
}

/* Counts operands that fit a derivative; *wrong: index of the first misfit, -1: none. */
static int count_fitting(const books *b, const ms_node *node, const ms_node *forward,
                         const derivative *d, int *wrong, char *slot)
{
    int fitting = 0, operand = 0;
    *wrong = -1;
    for (const char *s = d->slots; *s != '>'; s++) {
        if (*s == '|') {
            if (operand == node->num_in)
                break;
            continue;
        }
        if (operand_fits(b, node, forward, *s, operand)) {
            fitting++;
        } else if (*wrong < 0) {
            *wrong = operand;
            *slot = *s;
        }
        operand++;
    }
    if (*wrong < 0 && operand != node->num_in) {
        *wrong = operand;
        *slot = '\0';
    }
    return fitting;
}

static void report_operand(const books *b, int n, const ms_node *forward, int operand,
                           char slot)
{
    const ms_node *node = &b->c->program->nodes[n];
    int tensor = slot != '\0' ? slot_tensor(b, forward, slot) : -1;
    if (tensor < 0 || operand >= node->num_in) {
        ms_checker_report(b->c, MS_CHECK_GRADIENT, n, -1,
                          "its operands are not those of the derivative of node %d",
                          node->forward);
        return;
    }
    const ms_tensor *want = &b->c->program->tensors[tensor],
                    *is = ms_checker_in(b->c, node, operand);
    if (is_gradient_slot(slot)) {
        ms_checker_report(b->c, MS_CHECK_GRADIENT, n, -1,
                          "%s[%s] is not the whole gradient of %s[%s]: contributions are "
                          "missing, counted twice or of other tensors",
                          is->name, is->dims, want->name, want->dims);
    } else {
        ms_checker_report(b->c, MS_CHECK_GRADIENT, n, -1,
                          "it takes %s[%s] where the derivative of node %d takes %s[%s]",
                          is->name, is->dims, node->forward, want->name, want->dims);
    }
}

static bool same_attributes(const ms_node *x, const ms_node *y)
{
    return x->rotary_width == y->rotary_width && x->window_tokens == y->window_tokens &&
           x->by_position == y->by_position && x->ring == y->ring;
}

/* Checks a gradient's placement: split like its tensor; whole if that is partial. */
static void check_dual(ms_checker *c, int n, int of, int gradient)
{
    const ms_tensor *t = &c->program->tensors[of], *g = &c->program->tensors[gradient];
    c->gradient[of] = gradient;
    for (int axis = 0; axis < MS_MESH_AXES; axis++) {
        ms_placement at = t->at[axis], its = g->at[axis];
        bool dual = at.kind == MS_SHARD ? ms_placement_equal(at, its)
                    : at.kind == MS_REPLICATE
                        ? its.kind == MS_REPLICATE || its.kind == MS_PARTIAL_SUM
                        : its.kind == MS_REPLICATE;
        if (dual || !ms_checker_is_active(c->program, t->mesh, axis))
            continue;
        bool forgotten = its.kind == MS_PARTIAL_SUM;
        ms_checker_report(c, forgotten ? MS_CHECK_FORGOTTEN_REDUCTION : MS_CHECK_GRADIENT,
                          n, axis, "%s[%s] is %s, and its gradient %s", t->name, t->dims,
                          ms_checker_describe(at).text, ms_checker_describe(its).text);
    }
}

static void check_duals(const books *b, int n, const ms_node *forward,
                        const derivative *d)
{
    const ms_node *node = &b->c->program->nodes[n];
    int operand = 0;
    for (const char *s = d->slots; *s != '>' && operand < node->num_in; s++) {
        if (*s == '|')
            continue;
        if (is_gradient_slot(*s))
            check_dual(b->c, n, slot_tensor(b, forward, *s), node->in[operand]);
        operand++;
    }
}

static void book_results(books *b, int n, const ms_node *forward, const derivative *d)
{
    const ms_node *node = &b->c->program->nodes[n];
    int result = 0;
    for (const char *s = strchr(d->slots, '>') + 1; *s != '\0'; s++) {
        if (*s == '|')
            continue;
        int operand = *s == '@' ? 0 : *s - 'A', tensor = slot_tensor(b, forward, *s);
        if (tensor < 0 || result >= node->num_out)
            break;
        int gradient = node->out[result++];
        leaves_of(b, b->got, gradient)[leaf(node->forward, operand)]++;
        if (b->c->gradient[tensor] < 0)
            b->c->gradient[tensor] = gradient;
        if (strcmp(b->c->program->tensors[gradient].dims,
                   b->c->program->tensors[tensor].dims) != 0)
            ms_checker_report(
                b->c, MS_CHECK_GRADIENT, n, -1, "the gradient of %s[%s] has other dims",
                b->c->program->tensors[tensor].name, b->c->program->tensors[tensor].dims);
    }
    if (result != node->num_out)
        ms_checker_report(b->c, MS_CHECK_GRADIENT, n, -1,
                          "it does not give one gradient for each operand of node %d",
                          node->forward);
}

static void check_derivative(books *b, int n)
{
    const ms_node *node = &b->c->program->nodes[n];
    const ms_node *forward = &b->c->program->nodes[node->forward];
    const derivative *best = NULL;
    int most = -1, wrong = -1;
    char slot = '\0';
    for (int i = 0; i < NUM_DERIVATIVES; i++) {
        const derivative *d = &derivatives[i];
        int its_wrong;
        char its_slot = '\0';
        if (d->op != forward->op || d->backward != node->op)
            continue;
        int fitting = count_fitting(b, node, forward, d, &its_wrong, &its_slot);
        if (best == NULL || its_wrong < 0 || (wrong >= 0 && fitting > most)) {
            best = d;
            most = fitting;
            wrong = its_wrong;
            slot = its_slot;
        }
        if (wrong < 0)
            break;
    }
    bool turned = node->op == MS_OP_ROTARY || node->op == MS_OP_EXCHANGE;
    if (best == NULL || !same_attributes(node, forward) ||
        (turned && node->inverse == forward->inverse)) {
        ms_checker_report(b->c, MS_CHECK_GRADIENT, n, -1,
                          "it is not the derivative of node %d, %s", node->forward,
                          ms_op_names[forward->op]);
        return;
    }
    if (wrong >= 0)
        report_operand(b, n, forward, wrong, slot);
    else
        check_duals(b, n, forward, best);
    book_results(b, n, forward, best);
}

/* ---- recomputed nodes ---- */

static void check_copy(ms_checker *c, int n)
{
    const ms_node *node = &c->program->nodes[n];
    const ms_node *forward =
        node->forward >= 0 && node->forward < c->program->num_forward_nodes
            ? &c->program->nodes[node->forward]
            : NULL;
    bool copy = forward != NULL && node->op == forward->op &&
                node->num_in == forward->num_in && node->num_out == forward->num_out &&
                node->inverse == forward->inverse && same_attributes(node, forward);
    for (int i = 0; copy && i < node->num_in; i++)
        copy = c->root[node->in[i]] == c->root[forward->in[i]];
    if (!copy)
        ms_checker_report(c, MS_CHECK_GRADIENT, n, -1,
                          "it does not compute again what node %d computed",
                          node->forward);
}

/* ---- the loss ---- */

static void check_loss(ms_checker *c, int n)
{
    const ms_node *node = &c->program->nodes[n];
    int logits = logits_of(c, node), sum = c->root[node->in[1]],
        target = c->root[node->in[2]];
    int producer = c->program->tensors[sum].producer;
    const ms_node *parts = producer >= 0 ? &c->program->nodes[producer] : NULL;
    if (logits < 0 || parts == NULL || parts->op != MS_OP_LOSS_SUM ||
        parts->num_in != 2 || parts->num_out != 2 || parts->out[0] != sum ||
        parts->out[1] != target || c->root[parts->in[0]] != logits ||
        c->root[parts->in[1]] != c->root[node->in[0]])
        ms_checker_report(c, MS_CHECK_STRUCTURE, n, -1,
                          "maximum, sum and target are not those of the same logits");
}

/* ---- the pass ---- */

static void book_node(books *b, int n)
{
    const ms_node *node = &b->c->program->nodes[n];
    if (node->op == MS_OP_REDISTRIBUTE) {
        if (node->num_in == 1 && node->num_out == 1 && b->got[node->in[0]] != NULL)
            add_leaves(b, leaves_of(b, b->got, node->out[0]), b->got[node->in[0]]);
        return;
    }
    if (node->op == MS_OP_ADD && node->forward < 0) {
        for (int i = 0; i < node->num_in; i++) {
            if (b->got[node->in[i]] == NULL) {
                ms_checker_report(b->c, MS_CHECK_GRADIENT, n, -1,
                                  "%s[%s] is added to a gradient, but is none",
                                  ms_checker_in(b->c, node, i)->name,
                                  ms_checker_in(b->c, node, i)->dims);
            }
            add_leaves(b, leaves_of(b, b->got, node->out[0]), b->got[node->in[i]]);
        }
        return;
    }
    if (node->forward >= 0 && node->forward < b->c->program->num_forward_nodes)
        check_derivative(b, n);
    else
        ms_checker_report(b->c, MS_CHECK_GRADIENT, n, -1,
                          "it belongs to no node of the forward pass");
}

/* Checks a gradient that leaves the program: a weight's may be a partial sum, which the
 * optimizer reduces; the input's is placed as the input, whole. */
static void check_given(const books *b, int tensor, int gradient)
{
    ms_checker *c = b->c;
    const ms_tensor *t = &c->program->tensors[tensor];
    c->gradient[tensor] = gradient;
    if (b->wanted[tensor] == NULL && gradient < 0)
        return;
    if (gradient < 0 || !is_complete(b, gradient, tensor)) {
        ms_checker_report_tensor(c, MS_CHECK_GRADIENT, tensor, -1,
                                 gradient < 0
                                     ? "it has no gradient"
                                     : "its gradient is not whole: contributions "
                                       "are missing, counted twice or of other "
                                       "tensors");
        return;
    }
    const ms_tensor *g = &c->program->tensors[gradient];
    for (int axis = 0; axis < MS_MESH_AXES; axis++) {
        ms_placement at = t->at[axis], its = g->at[axis];
        bool pending = t->role == MS_ROLE_WEIGHT && its.kind == MS_PARTIAL_SUM &&
                       at.kind == MS_REPLICATE;
        if (ms_placement_equal(at, its) || pending ||
            !ms_checker_is_active(c->program, t->mesh, axis))
            continue;
        ms_checker_report_tensor(
            c,
            its.kind == MS_PARTIAL_SUM ? MS_CHECK_FORGOTTEN_REDUCTION : MS_CHECK_GRADIENT,
            tensor, axis, "it is %s, and its gradient %s", ms_checker_describe(at).text,
            ms_checker_describe(its).text);
    }
}

static void check_nodes(books *b)
{
    const ms_program *program = b->c->program;
    for (int n = 0; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        if (node->op == MS_OP_LOSS && node->num_in == 3)
            check_loss(b->c, n);
        if (node->pass == MS_PASS_RECOMPUTE)
            check_copy(b->c, n);
        else if (node->pass == MS_PASS_BACKWARD_INPUT ||
                 node->pass == MS_PASS_BACKWARD_WEIGHT)
            book_node(b, n);
    }
}

/* Checks the start of backward: the gradient of the program's result, or a loss. */
static void check_start(books *b)
{
    const ms_program *program = b->c->program;
    int output = program->output;
    if (output < 0)
        return;
    if (program->output_gradient >= 0) {
        leaves_of(b, b->got, program->output_gradient)[b->num_leaves - 1]++;
        check_dual(b->c, program->num_forward_nodes, output, program->output_gradient);
        return;
    }
    int producer = program->tensors[b->c->root[output]].producer;
    if (producer < 0 || program->nodes[producer].op != MS_OP_LOSS)
        ms_checker_report_tensor(b->c, MS_CHECK_GRADIENT, output, -1,
                                 "the program's result is no loss and has no gradient");
}

void ms_check_backward(ms_checker *c)
{
    const ms_program *program = c->program;
    if (program->num_nodes == program->num_forward_nodes)
        return; /* the program has no backward */
    books b = {.c = c, .num_leaves = program->num_forward_nodes * MS_MAX_OPERANDS + 1};
    b.wanted = MS_NEW_ARRAY(c->arena, program->num_tensors, unsigned char *);
    b.got = MS_NEW_ARRAY(c->arena, program->num_tensors, unsigned char *);
    find_wanted(&b);
    check_start(&b);
    check_nodes(&b);
    if (program->input >= 0)
        check_given(&b, program->input, program->input_gradient);
    for (int t = 0; t < program->num_tensors; t++)
        if (program->tensors[t].role == MS_ROLE_WEIGHT)
            check_given(&b, t, program->tensors[t].gradient);
}

/* ---- updates ---- */

static int root_gradient(const ms_checker *c, int weight)
{
    int gradient = c->program->tensors[weight].gradient;
    return gradient >= 0 ? c->root[gradient] : -1;
}

static void check_update(ms_checker *c, int n, int *uses)
{
    const ms_node *node = &c->program->nodes[n];
    const ms_tensor *weight = ms_checker_in(c, node, 0);
    for (int i = 0; i < node->num_in; i++)
        uses[node->in[i]]++;
    if (weight->role != MS_ROLE_WEIGHT ||
        c->root[node->in[1]] != root_gradient(c, node->in[0]))
        ms_checker_report(c, MS_CHECK_UPDATE, n, -1,
                          "%s[%s] is updated with another tensor than its gradient",
                          weight->name, weight->dims);
    for (int i = 2; i < 4; i++) {
        if (ms_checker_in(c, node, i)->role != MS_ROLE_STATE ||
            ms_checker_in(c, node, i)->producer >= 0 || uses[node->in[i]] > 1)
            ms_checker_report(
                c, MS_CHECK_UPDATE, n, -1, "%s[%s] is no moment of this weight alone",
                ms_checker_in(c, node, i)->name, ms_checker_in(c, node, i)->dims);
    }
    ms_checker_require_whole(c, node->in[1], n, "the gradient of");
}

void ms_check_updates(ms_checker *c)
{
    const ms_program *program = c->program;
    int *uses = MS_NEW_ARRAY(c->arena, program->num_tensors, int);
    for (int n = 0; n < program->num_nodes; n++)
        if (program->nodes[n].op == MS_OP_ADAM && program->nodes[n].num_in == 4)
            check_update(c, n, uses);
    if (!program->key.optimizer)
        return;
    for (int t = 0; t < program->num_tensors; t++) {
        const ms_tensor *weight = &program->tensors[t];
        if (weight->role == MS_ROLE_WEIGHT && weight->gradient >= 0 && uses[t] != 1)
            ms_checker_report_tensor(c, MS_CHECK_UPDATE, t, -1, "it is updated %d times",
                                     uses[t]);
    }
}
