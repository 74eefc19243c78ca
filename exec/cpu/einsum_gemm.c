#include "exec/cpu/einsum_gemm.h"

#include <string.h>

static void split_einsum(const char *einsum, ms_einsum *e)
{
    int term = 0, length = 0;
    for (const char *c = einsum; *c != '\0'; c++) {
        if (*c == ',' || *c == '>') {
            term++;
            length = 0;
        } else if (*c != '-' && term < 3 && length < MS_MAX_DIMS) {
            e->text[term][length++] = *c;
        }
    }
}

ms_einsum ms_einsum_of(const ms_op_call *call)
{
    const ms_local *const operands[3] = {call->in[0], call->in[1], call->out[0]};
    ms_einsum e = {0};
    split_einsum(call->node->einsum, &e);
    for (int term = 0; term < 3; term++)
        for (int i = 0; e.text[term][i] != '\0'; i++)
            e.size[(unsigned char)e.text[term][i]] = operands[term]->shape[i];
    return e;
}

bool ms_einsum_has(const ms_einsum *e, int term, char letter)
{
    return strchr(e->text[term], letter) != NULL;
}

long ms_einsum_size(const ms_einsum *e, const char *letters)
{
    long size = 1;
    for (const char *c = letters; *c != '\0'; c++)
        size *= e->size[(unsigned char)*c];
    return size;
}

/* ---- conversion to a matrix product ---- */

/* Letters of an einsum by role in a matrix product: batch (in a, b and c), m (rows: in a
 * and c), n (columns: in b and c), k (summed: in a and b). */
typedef struct roles {
    char batch[MS_MAX_DIMS + 1], m[MS_MAX_DIMS + 1], n[MS_MAX_DIMS + 1],
        k[MS_MAX_DIMS + 1];
} roles;

static void append_letter(char *letters, char letter)
{
    size_t length = strlen(letters);
    letters[length] = letter;
    letters[length + 1] = '\0';
}

/* Sorts letters into roles; false if a letter is summed in one operand alone. */
static bool find_roles(const ms_einsum *e, roles *r)
{
    memset(r, 0, sizeof *r);
    for (const char *c = e->text[2]; *c != '\0'; c++) {
        bool in_a = ms_einsum_has(e, 0, *c), in_b = ms_einsum_has(e, 1, *c);
        append_letter(in_a && in_b ? r->batch : in_a ? r->m : r->n, *c);
    }
    for (const char *c = e->text[0]; *c != '\0'; c++) {
        if (ms_einsum_has(e, 2, *c))
            continue;
        if (!ms_einsum_has(e, 1, *c))
            return false;
        append_letter(r->k, *c);
    }
    for (const char *c = e->text[1]; *c != '\0'; c++)
        if (!ms_einsum_has(e, 0, *c) && !ms_einsum_has(e, 2, *c))
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

/* Whether `text` has the letters batch, rows, cols in this order, or in the order batch,
 * cols, rows, which sets *transposed. */
static bool is_matrix(const char *text, const char *batch, const char *rows,
                      const char *cols, bool *transposed)
{
    *transposed = !is_joined(text, batch, rows, cols);
    return !*transposed || is_joined(text, batch, cols, rows);
}

static void swap_roles(ms_gemm *g)
{
    ms_gemm from = *g;
    g->transpose_a = !from.transpose_b;
    g->transpose_b = !from.transpose_a;
    g->m = from.n;
    g->n = from.m;
}

/* BLAS rejects a leading dimension of 0, even for a matrix without rows. */
static long at_least_one(long ld)
{
    return ld > 0 ? ld : 1;
}

bool ms_einsum_as_product(const ms_einsum *e, ms_einsum_product *out)
{
    roles r;
    *out = (ms_einsum_product){0};
    ms_gemm *g = &out->gemm;
    if (!find_roles(e, &r) ||
        !is_matrix(e->text[0], r.batch, r.m, r.k, &g->transpose_a) ||
        !is_matrix(e->text[1], r.batch, r.k, r.n, &g->transpose_b) ||
        !is_matrix(e->text[2], r.batch, r.m, r.n, &out->swapped))
        return false;
    g->m = ms_einsum_size(e, r.m);
    g->n = ms_einsum_size(e, r.n);
    g->k = ms_einsum_size(e, r.k);
    g->num_batch = ms_einsum_size(e, r.batch);
    if (out->swapped)
        swap_roles(g);
    g->stride_a = g->m * g->k;
    g->stride_b = g->k * g->n;
    g->stride_c = g->m * g->n;
    g->ld_a = at_least_one(g->transpose_a ? g->m : g->k);
    g->ld_b = at_least_one(g->transpose_b ? g->k : g->n);
    g->ld_c = at_least_one(g->n);
    return true;
}

/* ---- one matrix product per expert ---- */

long ms_rows_of_expert(const ms_routing *routing, long expert)
{
    bool whole = routing->num_sharers == 0;
    const long *counts = whole ? routing->counts : routing->shared;
    long rows = 0, num = whole ? routing->num_sources : routing->num_sharers;
    for (long i = 0; i < num; i++)
        rows += counts[i * routing->num_experts + expert];
    return rows;
}

/* Removes the letter of experts at the front; returns whether it was there. */
static bool drop_experts(char *text)
{
    bool is_first = text[0] == MS_DIM_EXPERTS;
    if (is_first)
        memmove(text, text + 1, strlen(text));
    return is_first;
}

ms_grouped ms_grouped_begin(const ms_op_call *call)
{
    ms_grouped g = {.einsum = ms_einsum_of(call), .routing = call->routing};
    for (int term = 0; term < 3; term++) {
        char *text = g.einsum.text[term];
        g.by_expert[term] = drop_experts(text);
        g.step[term] = ms_einsum_size(&g.einsum, text + (g.by_expert[term] ? 0 : 1));
    }
    return g;
}

bool ms_grouped_next(ms_grouped *g, long at[3])
{
    if (g->expert == g->routing->num_experts)
        return false;
    long rows = ms_rows_of_expert(g->routing, g->expert++);
    g->einsum.size[MS_DIM_ROWS] = rows;
    for (int term = 0; term < 3; term++) {
        at[term] = g->at[term];
        g->at[term] += g->step[term] * (g->by_expert[term] ? 1 : rows);
    }
    return true;
}
