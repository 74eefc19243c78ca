/* EINSUM and GROUPED as matrix products, and biases. */
#include "exec/cpu.h"

#include <string.h>

/* The letters of "a,b->c" with their local sizes. */
typedef struct terms {
    char text[3][MS_MAX_DIMS + 1]; /* a, b, c */
    long size['z' + 1];
} terms;

static void split_einsum(const char *einsum, terms *t)
{
    int term = 0, length = 0;
    memset(t->text, 0, sizeof t->text);
    for (const char *c = einsum; *c != '\0'; c++) {
        if (*c == ',' || *c == '>') {
            term++;
            length = 0;
        } else if (*c != '-' && term < 3 && length < MS_MAX_DIMS) {
            t->text[term][length++] = *c;
        }
    }
}

static void read_sizes(const ms_op_call *call, terms *t)
{
    const ms_local *const operands[3] = {call->in[0], call->in[1], call->out[0]};
    for (int term = 0; term < 3; term++)
        for (int i = 0; t->text[term][i] != '\0'; i++)
            t->size[(unsigned char)t->text[term][i]] = operands[term]->shape[i];
}

static bool has(const terms *t, int term, char letter)
{
    return strchr(t->text[term], letter) != NULL;
}

/* ---- as one matrix product ---- */

/* Letters of each role, in the order of the result, contracted ones in that of a. */
typedef struct roles {
    char batch[MS_MAX_DIMS + 1], m[MS_MAX_DIMS + 1], n[MS_MAX_DIMS + 1],
        k[MS_MAX_DIMS + 1];
} roles;

static void append(char *letters, char letter)
{
    size_t length = strlen(letters);
    letters[length] = letter;
    letters[length + 1] = '\0';
}

/* False when a letter is summed in one operand alone. */
static bool find_roles(const terms *t, roles *r)
{
    memset(r, 0, sizeof *r);
    for (const char *c = t->text[2]; *c != '\0'; c++) {
        bool in_a = has(t, 0, *c), in_b = has(t, 1, *c);
        append(in_a && in_b ? r->batch : in_a ? r->m : r->n, *c);
    }
    for (const char *c = t->text[0]; *c != '\0'; c++) {
        if (has(t, 2, *c))
            continue;
        if (!has(t, 1, *c))
            return false;
        append(r->k, *c);
    }
    for (const char *c = t->text[1]; *c != '\0'; c++)
        if (!has(t, 0, *c) && !has(t, 2, *c))
            return false;
    return true;
}

static bool is_joined(const char *text, const char *x, const char *y, const char *z)
{
    size_t length_x = strlen(x), length_y = strlen(y);
    return strlen(text) == length_x + length_y + strlen(z) &&
           strncmp(text, x, length_x) == 0 &&
           strncmp(text + length_x, y, length_y) == 0 &&
           strcmp(text + length_x + length_y, z) == 0;
}

static long size_of(const terms *t, const char *letters)
{
    long size = 1;
    for (const char *c = letters; *c != '\0'; c++)
        size *= t->size[(unsigned char)*c];
    return size;
}

/* Operand stored (batch, rows, cols), or transposed; false: neither. */
static bool is_matrix(const char *text, const char *batch, const char *rows,
                      const char *cols, bool *transposed)
{
    *transposed = !is_joined(text, batch, rows, cols);
    return !*transposed || is_joined(text, batch, cols, rows);
}

typedef struct matrix_product {
    ms_gemm gemm;
    bool swapped; /* c is stored (n, m): its transpose is b' a' */
} matrix_product;

static void swap_roles(matrix_product *p)
{
    ms_gemm *g = &p->gemm, from = p->gemm;
    g->transpose_a = !from.transpose_b;
    g->transpose_b = !from.transpose_a;
    g->m = from.n;
    g->n = from.m;
}

/* BLAS refuses rows of no elements, even of empty matrices (an expert without rows). */
static long at_least_one(long ld)
{
    return ld > 0 ? ld : 1;
}

/* False when the letters do not lie as a product of matrices needs them. */
static bool make_product(const terms *t, matrix_product *p)
{
    roles r;
    *p = (matrix_product){0};
    ms_gemm *g = &p->gemm;
    if (!find_roles(t, &r) ||
        !is_matrix(t->text[0], r.batch, r.m, r.k, &g->transpose_a) ||
        !is_matrix(t->text[1], r.batch, r.k, r.n, &g->transpose_b) ||
        !is_matrix(t->text[2], r.batch, r.m, r.n, &p->swapped))
        return false;
    g->m = size_of(t, r.m);
    g->n = size_of(t, r.n);
    g->k = size_of(t, r.k);
    g->num_batch = size_of(t, r.batch);
    g->stride_a = g->m * g->k;
    g->stride_b = g->k * g->n;
    g->stride_c = g->m * g->n;
    if (p->swapped) {
        swap_roles(p);
        g->stride_a = g->m * g->k;
        g->stride_b = g->k * g->n;
    }
    g->ld_a = at_least_one(g->transpose_a ? g->m : g->k);
    g->ld_b = at_least_one(g->transpose_b ? g->k : g->n);
    g->ld_c = at_least_one(g->n);
    return true;
}

static void run_product(const matrix_product *p, const ms_real *a, const ms_real *b,
                        ms_real *c)
{
    const ms_gemm *g = &p->gemm;
    if (g->num_batch == 0)
        return;
    MS_TYPED(ms_gemm_run)(g, p->swapped ? b : a, p->swapped ? a : b, c);
}

/* ---- any other einsum: a loop over its letters ---- */

#define MAX_LETTERS (3 * MS_MAX_DIMS)

typedef struct loops {
    int num_letters, num_outer; /* those of the result first */
    long count[MAX_LETTERS], index[MAX_LETTERS];
    long stride[3][MAX_LETTERS];
} loops;

static long stride_of(const terms *t, int term, char letter)
{
    const char *where = strchr(t->text[term], letter);
    return where == NULL ? 0 : size_of(t, where + 1);
}

static void plan_loops(const terms *t, loops *l)
{
    memset(l, 0, sizeof *l);
    for (int term = 2; term >= 0; term--) {
        for (const char *c = t->text[term]; *c != '\0'; c++) {
            if ((term < 2 && has(t, 2, *c)) || (term == 0 && has(t, 1, *c)))
                continue;
            int i = l->num_letters++;
            l->count[i] = t->size[(unsigned char)*c];
            for (int operand = 0; operand < 3; operand++)
                l->stride[operand][i] = stride_of(t, operand, *c);
        }
        if (term == 2)
            l->num_outer = l->num_letters;
    }
}

/* Moves to the next index of the letters from .. to; false after the last. */
static bool advance(loops *l, int from, int to)
{
    for (int i = to - 1; i >= from; i--) {
        if (++l->index[i] < l->count[i])
            return true;
        l->index[i] = 0;
    }
    return false;
}

static long offset(const loops *l, int operand)
{
    long at = 0;
    for (int i = 0; i < l->num_letters; i++)
        at += l->index[i] * l->stride[operand][i];
    return at;
}

static void run_loops(const terms *t, const ms_real *a, const ms_real *b, ms_real *c,
                      bool add)
{
    loops l;
    plan_loops(t, &l);
    for (int i = 0; i < l.num_outer; i++)
        if (l.count[i] == 0)
            return;
    bool is_empty = false;
    for (int i = l.num_outer; i < l.num_letters; i++)
        is_empty = is_empty || l.count[i] == 0;
    do {
        double sum = 0;
        do
            sum += is_empty ? 0 : (double)a[offset(&l, 0)] * (double)b[offset(&l, 1)];
        while (!is_empty && advance(&l, l.num_outer, l.num_letters));
        ms_real *to = c + offset(&l, 2);
        *to = (ms_real)(sum + (add ? (double)*to : 0));
    } while (advance(&l, 0, l.num_outer));
}

static void multiply(const terms *t, const ms_real *a, const ms_real *b, ms_real *c,
                     bool add)
{
    matrix_product p;
    if (make_product(t, &p)) {
        p.gemm.add = add;
        run_product(&p, a, b, c);
    } else {
        run_loops(t, a, b, c, add);
    }
}

void MS_TYPED(ms_cpu_einsum)(const ms_op_call *call)
{
    terms t;
    if (call->out[0]->data == NULL)
        return;
    split_einsum(call->node->einsum, &t);
    read_sizes(call, &t);
    multiply(&t, ms_cpu_in(call, 0), ms_cpu_in(call, 1), ms_cpu_out(call, 0),
             ms_cpu_is_added(call, 0));
}

/* ---- one product for each expert ---- */

static long rows_of_expert(const ms_routing *routing, long expert)
{
    long rows = 0;
    for (long source = 0; source < routing->num_sources; source++)
        rows += routing->counts[source * routing->num_experts + expert];
    return rows;
}

/* Takes the letter of experts, the first where it is, from the term; returns whether it was there. */
static bool drop_experts(char *text)
{
    bool is_first = text[0] == MS_DIM_EXPERTS;
    if (is_first)
        memmove(text, text + 1, strlen(text));
    return is_first;
}

void MS_TYPED(ms_cpu_grouped)(const ms_op_call *call)
{
    terms t;
    long at[3] = {0}, step[3];
    bool by_expert[3];
    if (call->out[0]->data == NULL)
        return;
    split_einsum(call->node->einsum, &t);
    read_sizes(call, &t);
    for (int term = 0; term < 3; term++) {
        by_expert[term] = drop_experts(t.text[term]);
        step[term] = size_of(&t, t.text[term] + (by_expert[term] ? 0 : 1));
    }
    for (long expert = 0; expert < call->routing->num_experts; expert++) {
        long rows = rows_of_expert(call->routing, expert);
        t.size[MS_DIM_ROWS] = rows;
        multiply(&t, ms_cpu_in(call, 0) + at[0], ms_cpu_in(call, 1) + at[1],
                 ms_cpu_out(call, 0) + at[2], ms_cpu_is_added(call, 0));
        for (int term = 0; term < 3; term++)
            at[term] += step[term] * (by_expert[term] ? 1 : rows);
    }
}

/* ---- biases ---- */

MS_WIDE void MS_TYPED(ms_cpu_bias)(const ms_op_call *call)
{
    const ms_real *x = ms_cpu_in(call, 0), *bias = ms_cpu_in(call, 1);
    ms_real *out = ms_cpu_out(call, 0);
    long width = call->in[1]->count;
    for (long row = 0; row < call->in[0]->count; row += width)
        for (long i = 0; i < width; i++)
            out[row + i] = x[row + i] + bias[i];
}

size_t MS_TYPED(ms_cpu_sum_to_bytes)(const ms_program *program, const ms_node *node)
{
    return (size_t)ms_tensor_local_elements(program, node->out[0]) * sizeof(double);
}

MS_WIDE static void sum_rows(double *restrict sum, const ms_real *restrict x, long count,
                             long width)
{
    memset(sum, 0, (size_t)width * sizeof *sum);
    for (long row = 0; row < count; row += width)
        for (long i = 0; i < width; i++)
            sum[i] += (double)x[row + i];
}

void MS_TYPED(ms_cpu_sum_to)(const ms_op_call *call)
{
    ms_real *out = ms_cpu_out(call, 0);
    double *sum = call->workspace;
    long width = call->out[0]->count;
    if (out == NULL || width == 0)
        return;
    sum_rows(sum, ms_cpu_in(call, 0), call->in[0]->count, width);
    bool add = ms_cpu_is_added(call, 0);
    for (long i = 0; i < width; i++)
        out[i] = (ms_real)(sum[i] + (add ? (double)out[i] : 0));
}
