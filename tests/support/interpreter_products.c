/* Matrix products in the reference interpreter: einsums, per-expert products, and biases
 * with their gradients. */
#include "tests/support/interpreter_priv.h"

#include <string.h>

#define MAX_LETTERS 8

/* An einsum c[..] = sum of a[..] * b[..]: loops over the letters of c, then over the
 * contracted letters. */
typedef struct product {
    char term[3][MS_MAX_DIMS + 1]; /* letters of a, b and c */
    long size['z' + 1];
    int num_letters, num_outer;
    long count[MAX_LETTERS];
    long stride[3][MAX_LETTERS];
} product;

static bool split_einsum(const char *text, char term[3][MS_MAX_DIMS + 1])
{
    const char *comma = text != NULL ? strchr(text, ',') : NULL;
    const char *arrow = text != NULL ? strstr(text, "->") : NULL;
    if (comma == NULL || arrow == NULL || arrow < comma)
        return false;
    const char *from[3] = {text, comma + 1, arrow + 2};
    const char *end[3] = {comma, arrow, text + strlen(text)};
    for (int i = 0; i < 3; i++) {
        if (end[i] - from[i] > MS_MAX_DIMS)
            return false;
        memcpy(term[i], from[i], (size_t)(end[i] - from[i]));
        term[i][end[i] - from[i]] = '\0';
    }
    return true;
}

static long stride_of(const product *p, int term, char letter)
{
    const char *where = strchr(p->term[term], letter);
    if (where == NULL)
        return 0;
    long stride = 1;
    for (const char *c = where + 1; *c != '\0'; c++)
        stride *= p->size[(unsigned char)*c];
    return stride;
}

static void add_letter(product *p, char letter)
{
    p->count[p->num_letters] = p->size[(unsigned char)letter];
    for (int term = 0; term < 3; term++)
        p->stride[term][p->num_letters] = stride_of(p, term, letter);
    p->num_letters++;
}

static void plan_loops(product *p)
{
    p->num_letters = 0;
    for (const char *c = p->term[2]; *c != '\0'; c++)
        add_letter(p, *c);
    p->num_outer = p->num_letters;
    for (const char *c = p->term[0]; *c != '\0'; c++)
        if (strchr(p->term[2], *c) == NULL)
            add_letter(p, *c);
}

static double contract(const product *p, int depth, const double *a, const double *b)
{
    if (depth == p->num_letters)
        return *a * *b;
    long count = p->count[depth], stride_a = p->stride[0][depth],
         stride_b = p->stride[1][depth];
    double sum = 0;
    if (depth == p->num_letters - 1) {
        for (long i = 0; i < count; i++)
            sum += a[i * stride_a] * b[i * stride_b];
        return sum;
    }
    for (long i = 0; i < count; i++)
        sum += contract(p, depth + 1, a + i * stride_a, b + i * stride_b);
    return sum;
}

static void loop(const product *p, int depth, const double *a, const double *b, double *c)
{
    if (depth == p->num_outer) {
        *c += contract(p, depth, a, b);
        return;
    }
    for (long i = 0; i < p->count[depth]; i++)
        loop(p, depth + 1, a + i * p->stride[0][depth], b + i * p->stride[1][depth],
             c + i * p->stride[2][depth]);
}

static double product_flop(const product *p)
{
    double flop = 2;
    for (int i = 0; i < p->num_letters; i++)
        flop *= (double)p->count[i];
    return flop;
}

/* Reads each letter's size from the shapes of all three operands, which must agree. */
static bool read_sizes(ms_interp *run, const ms_node *node, product *p,
                       ms_cell *const cells[3])
{
    for (int term = 0; term < 3; term++) {
        if ((int)strlen(p->term[term]) != cells[term]->num_dims) {
            ms_interp_fail(run, node, "einsum %s: operand %d has %d dims", node->einsum,
                           term, cells[term]->num_dims);
            return false;
        }
        for (int i = 0; i < cells[term]->num_dims; i++) {
            long *size = &p->size[(unsigned char)p->term[term][i]];
            if (*size >= 0 && *size != cells[term]->shape[i]) {
                ms_interp_fail(run, node, "einsum %s: '%c' is %ld and %ld long on a rank",
                               node->einsum, p->term[term][i], *size,
                               cells[term]->shape[i]);
                return false;
            }
            *size = cells[term]->shape[i];
        }
    }
    return true;
}

static bool make_product(ms_interp *run, const ms_node *node, int rank, product *p,
                         ms_cell *cells[3])
{
    if (!split_einsum(node->einsum, p->term)) {
        ms_interp_fail(run, node, "cannot read the einsum");
        return false;
    }
    for (int i = 0; i <= 'z'; i++)
        p->size[i] = -1;
    cells[0] = ms_interp_in(run, node, 0, rank);
    cells[1] = ms_interp_in(run, node, 1, rank);
    cells[2] = ms_interp_out(run, node, 0, rank);
    return read_sizes(run, node, p, cells);
}

void ms_interp_einsum(ms_interp *run, const ms_node *node, int rank)
{
    product p;
    ms_cell *cells[3];
    if (!make_product(run, node, rank, &p, cells))
        return;
    plan_loops(&p);
    loop(&p, 0, cells[0]->values, cells[1]->values, cells[2]->values);
    ms_interp_count_flop(run, node, product_flop(&p));
}

/* Elements per index of the first dim. */
static long row_width(const ms_cell *cell)
{
    return cell->shape[0] > 0 ? cell->count / cell->shape[0] : 0;
}

/* Multiplies each expert's rows by its matrix; rows and experts are the first dims of the
 * operands. */
void ms_interp_grouped(ms_interp *run, const ms_node *node, int rank)
{
    product p;
    ms_cell *cells[3];
    if (!make_product(run, node, rank, &p, cells))
        return;
    long num_experts = p.size[MS_DIM_EXPERTS];
    long *counts = MS_NEW_ARRAY(run->arena, ms_interp_size(run, MS_DIM_EXPERTS), long);
    long num_rows = ms_interp_expert_rows(run, node, node->in[2], rank, counts);
    long ep = run->program->mesh_size[MS_SPARSE_MESH][1];
    if (num_rows != p.size[MS_DIM_ROWS] ||
        num_experts * ep != ms_interp_size(run, MS_DIM_EXPERTS)) {
        ms_interp_fail(run, node, "%ld rows routed to rank %d, %ld held, by %ld experts",
                       num_rows, rank, p.size[MS_DIM_ROWS], num_experts);
        return;
    }
    double *at[3];
    for (int i = 0; i < 3; i++)
        at[i] = cells[i]->values;
    for (int i = 0; i < 3; i++)
        if (p.term[i][0] == MS_DIM_EXPERTS)
            memmove(p.term[i], p.term[i] + 1, strlen(p.term[i]));
    for (long e = 0; e < num_experts; e++) {
        p.size[MS_DIM_ROWS] = counts[e];
        plan_loops(&p);
        loop(&p, 0, at[0], at[1], at[2]);
        ms_interp_count_flop(run, node, product_flop(&p));
        for (int i = 0; i < 3; i++)
            at[i] += row_width(cells[i]) * (p.term[i][0] == MS_DIM_ROWS ? counts[e] : 1);
    }
}

void ms_interp_bias(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *x = ms_interp_in(run, node, 0, rank);
    const ms_cell *bias = ms_interp_in(run, node, 1, rank);
    ms_cell *out = ms_interp_out(run, node, 0, rank);
    bool fits = bias->num_dims <= x->num_dims;
    for (int i = 0; fits && i < bias->num_dims; i++)
        fits = bias->shape[bias->num_dims - 1 - i] == x->shape[x->num_dims - 1 - i];
    if (!fits) {
        ms_interp_fail(run, node, "the bias does not have the last dims of its operand");
        return;
    }
    if (!ms_interp_expect(run, node, out, x->count))
        return;
    for (long i = 0; i < x->count; i++)
        out->values[i] = x->values[i] + bias->values[i % bias->count];
}

void ms_interp_sum_to(ms_interp *run, const ms_node *node, int rank)
{
    const ms_cell *x = ms_interp_in(run, node, 0, rank);
    ms_cell *out = ms_interp_out(run, node, 0, rank);
    bool fits = out->num_dims <= x->num_dims;
    for (int i = 0; fits && i < out->num_dims; i++)
        fits = out->shape[out->num_dims - 1 - i] == x->shape[x->num_dims - 1 - i];
    if (!fits) {
        ms_interp_fail(run, node, "the sum does not have the last dims of its operand");
        return;
    }
    for (long i = 0; i < x->count; i++)
        out->values[i % out->count] += x->values[i];
}
