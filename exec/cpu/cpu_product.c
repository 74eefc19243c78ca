/* CPU kernels EINSUM and GROUPED as matrix products or plain loops; BIAS and SUM_TO. */
#include "exec/cpu/cpu.h"
#include "exec/cpu/einsum_gemm.h"

#include <string.h>

static void run_gemm(const ms_einsum_product *p, const ms_real *a, const ms_real *b,
                     ms_real *c)
{
    const ms_gemm *g = &p->gemm;
    if (g->num_batch == 0)
        return;
    MS_TYPED(ms_gemm_run)(g, p->swapped ? b : a, p->swapped ? a : b, c);
}

/* ---- einsums that are no matrix product: loops over all letters ---- */

#define MAX_LETTERS (3 * MS_MAX_DIMS)

typedef struct loops {
    /* number of letters, and of those that are in the result, which come first */
    int num_letters, num_outer;
    long count[MAX_LETTERS], index[MAX_LETTERS];
    long stride[3][MAX_LETTERS];
} loops;

static long stride_of(const ms_einsum *e, int term, char letter)
{
    const char *where = strchr(e->text[term], letter);
    return where == NULL ? 0 : ms_einsum_size(e, where + 1);
}

static void plan_loops(const ms_einsum *e, loops *l)
{
    memset(l, 0, sizeof *l);
    for (int term = 2; term >= 0; term--) {
        for (const char *c = e->text[term]; *c != '\0'; c++) {
            if ((term < 2 && ms_einsum_has(e, 2, *c)) ||
                (term == 0 && ms_einsum_has(e, 1, *c)))
                continue;
            int i = l->num_letters++;
            l->count[i] = e->size[(unsigned char)*c];
            for (int operand = 0; operand < 3; operand++)
                l->stride[operand][i] = stride_of(e, operand, *c);
        }
        if (term == 2)
            l->num_outer = l->num_letters;
    }
}

/* Advances the loop indices from .. to - 1; false after the last combination. */
static bool advance_indices(loops *l, int from, int to)
{
    for (int i = to - 1; i >= from; i--) {
        if (++l->index[i] < l->count[i])
            return true;
        l->index[i] = 0;
    }
    return false;
}

static long operand_offset(const loops *l, int operand)
{
    long at = 0;
    for (int i = 0; i < l->num_letters; i++)
        at += l->index[i] * l->stride[operand][i];
    return at;
}

static void run_loops(const ms_einsum *e, const ms_real *a, const ms_real *b, ms_real *c,
                      bool add)
{
    loops l;
    plan_loops(e, &l);
    for (int i = 0; i < l.num_outer; i++)
        if (l.count[i] == 0)
            return;
    bool is_empty = false;
    for (int i = l.num_outer; i < l.num_letters; i++)
        is_empty = is_empty || l.count[i] == 0;
    do {
        double sum = 0;
        do {
            sum += is_empty ? 0
                            : (double)a[operand_offset(&l, 0)] *
                                  (double)b[operand_offset(&l, 1)];
        } while (!is_empty && advance_indices(&l, l.num_outer, l.num_letters));
        ms_real *to = c + operand_offset(&l, 2);
        *to = (ms_real)(sum + (add ? (double)*to : 0));
    } while (advance_indices(&l, 0, l.num_outer));
}

static void multiply_einsum(const ms_einsum *e, const ms_real *a, const ms_real *b,
                            ms_real *c, bool add)
{
    ms_einsum_product p;
    if (ms_einsum_as_product(e, &p)) {
        p.gemm.add = add;
        run_gemm(&p, a, b, c);
    } else {
        run_loops(e, a, b, c, add);
    }
}

void MS_TYPED(ms_cpu_einsum)(const ms_op_call *call)
{
    if (call->out[0]->data == NULL)
        return;
    ms_einsum e = ms_einsum_of(call);
    multiply_einsum(&e, ms_cpu_in(call, 0), ms_cpu_in(call, 1), ms_cpu_out(call, 0),
                    ms_op_is_added(call, 0));
}

/* ---- one matrix product per expert ---- */

void MS_TYPED(ms_cpu_grouped)(const ms_op_call *call)
{
    long at[3];
    if (call->out[0]->data == NULL)
        return;
    ms_grouped g = ms_grouped_begin(call);
    while (ms_grouped_next(&g, at))
        multiply_einsum(&g.einsum, ms_cpu_in(call, 0) + at[0], ms_cpu_in(call, 1) + at[1],
                        ms_cpu_out(call, 0) + at[2], ms_op_is_added(call, 0));
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
    bool add = ms_op_is_added(call, 0);
    for (long i = 0; i < width; i++)
        out[i] = (ms_real)(sum[i] + (add ? (double)out[i] : 0));
}

/* ---- biases of experts ---- */

/* The share of the bias that this rank adds: all of it, or where the ranks of etp add up
 * their rows, an equal part. */
static ms_real bias_share(const ms_op_call *call)
{
    const ms_program *program = call->program;
    bool adds_up = program->tensors[call->node->out[0]].at[2].kind == MS_PARTIAL_SUM;
    return adds_up ? (ms_real)1 / (ms_real)program->mesh_size[MS_SPARSE_MESH][2] : 1;
}

void MS_TYPED(ms_cpu_expert_bias)(const ms_op_call *call)
{
    const ms_real *x = ms_cpu_in(call, 0), *bias = ms_cpu_in(call, 1);
    const ms_real share = bias_share(call);
    ms_real *out = ms_cpu_out(call, 0);
    long width = ms_local_last(call->in[1]);
    for (long e = 0; e < call->routing->num_experts; e++, bias += width) {
        long rows = ms_rows_of_expert(call->routing, e);
        for (long row = 0; row < rows; row++, x += width, out += width)
            for (long i = 0; i < width; i++)
                out[i] = x[i] + share * bias[i];
    }
}

void MS_TYPED(ms_cpu_expert_bias_grad)(const ms_op_call *call)
{
    const ms_real *gout = ms_cpu_in(call, 0);
    ms_real *gbias = ms_cpu_out(call, 0);
    long width = ms_local_last(call->out[0]);
    if (gbias == NULL)
        return;
    for (long e = 0; e < call->routing->num_experts; e++, gbias += width) {
        long rows = ms_rows_of_expert(call->routing, e);
        for (long i = 0; i < width; i++) {
            double sum = ms_op_is_added(call, 0) ? (double)gbias[i] : 0;
            for (long row = 0; row < rows; row++)
                sum += (double)gout[row * width + i];
            gbias[i] = (ms_real)sum;
        }
        gout += rows * width;
    }
}
