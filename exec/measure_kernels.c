/* Kernels of one rank, timed one call at a time. */
#include "exec/measure_priv.h"

#include "base/number.h"

#include <string.h>
#include <time.h>

/* Memory that kernels work in. Activations lie at the start of a buffer for each operand; weights and their gradients anywhere in a large one, as in a model whose
 * layers do not fit into caches together. */
typedef struct memory {
    size_t real_bytes;
    char *in[MS_MAX_OPERANDS], *out[MS_MAX_OPERANDS];
    char *weights;
    size_t weights_bytes;
    char *choice; /* experts of tokens, as reals */
    char *workspace;
} work_memory;

static const size_t least_weights_bytes = 64u << 20;
static const size_t line_bytes = 64;

/* The operand that holds experts of tokens; -1: none. */
static int choice_operand(const ms_node *node)
{
    switch ((int)node->op) {
    case MS_OP_PERMUTE:
    case MS_OP_PERMUTE_GRAD:
        return 1;
    case MS_OP_UNPERMUTE:
    case MS_OP_ROUTE_GRAD:
        return 2;
    case MS_OP_UNPERMUTE_GRAD:
        return 3;
    default:
        return -1;
    }
}

/* ---- allocation ---- */

typedef struct needs {
    size_t in[MS_MAX_OPERANDS], out[MS_MAX_OPERANDS], weights, choice, workspace;
} needs;

static void need(size_t *most, long count, size_t real_bytes)
{
    size_t bytes = (size_t)count * real_bytes;
    *most = bytes > *most ? bytes : *most;
}

static needs needs_of(const ms_kernel_cases *cases, const ms_kernels *kernels)
{
    needs n = {.weights = least_weights_bytes, .workspace = line_bytes};
    for (int c = 0; c < cases->num; c++) {
        const ms_kernel_case *item = &cases->items[c];
        need(&n.weights, 4 * item->count, kernels->real_bytes);
        if (item->node == NULL)
            continue;
        for (int i = 0; i < item->node->num_in; i++) {
            need(&n.in[i], item->in[i].count, kernels->real_bytes);
            need(&n.weights, 2 * item->in[i].count, kernels->real_bytes);
            need(&n.choice, item->in[i].count, kernels->real_bytes);
        }
        for (int i = 0; i < item->node->num_out; i++) {
            need(&n.out[i], item->out[i].count, kernels->real_bytes);
            need(&n.weights, 2 * item->out[i].count, kernels->real_bytes);
        }
        size_t workspace = kernels->workspace_bytes(item->program, item->node);
        n.workspace = workspace > n.workspace ? workspace : n.workspace;
    }
    return n;
}

/* Positive values of about 1: no kernel meets an infinity, a logarithm of nothing, or a subnormal number. */
static void fill(const ms_kernels *kernels, char *to, size_t bytes, ms_rng *rng)
{
    double values[256];
    size_t count = bytes / kernels->real_bytes;
    for (size_t done = 0; done < count;) {
        long piece = (long)ms_min(256.0, (double)(count - done));
        for (long i = 0; i < piece; i++)
            values[i] = 0.05 + ms_rng_uniform(rng);
        kernels->from_double(to + done * kernels->real_bytes, values, piece);
        done += (size_t)piece;
    }
}

static ms_status allocate_filled(const ms_measurer *m, const ms_kernels *kernels,
                                 size_t bytes, ms_rng *rng, char **out)
{
    void *made = NULL;
    *out = NULL;
    if (bytes == 0)
        return MS_OK;
    MS_TRY(ms_measurer_allocate(m, bytes, &made));
    *out = made;
    fill(kernels, *out, bytes, rng);
    return MS_OK;
}

/* Slot j of token t: expert (t k + j) mod 4, of the 4 with 2 slots of measure_cases.c. */
static void fill_choice(const ms_kernels *kernels, char *to, size_t bytes)
{
    for (size_t i = 0; i < bytes / kernels->real_bytes; i++)
        kernels->fill(to + i * kernels->real_bytes, (double)(i % 4), 1);
}

static ms_status make_memory(const ms_measurer *m, const ms_kernel_cases *cases,
                             const ms_kernels *kernels, work_memory *out)
{
    needs n = needs_of(cases, kernels);
    ms_rng rng = ms_rng_seed(11 + (uint64_t)m->rank);
    *out = (work_memory){.real_bytes = kernels->real_bytes, .weights_bytes = n.weights};
    for (int i = 0; i < MS_MAX_OPERANDS; i++) {
        MS_TRY(allocate_filled(m, kernels, n.in[i], &rng, &out->in[i]));
        MS_TRY(allocate_filled(m, kernels, n.out[i], &rng, &out->out[i]));
    }
    MS_TRY(allocate_filled(m, kernels, n.weights, &rng, &out->weights));
    MS_TRY(allocate_filled(m, kernels, n.choice, &rng, &out->choice));
    fill_choice(kernels, out->choice, n.choice);
    return allocate_filled(m, kernels, n.workspace, &rng, &out->workspace);
}

/* ---- calls ---- */

static char *anywhere(const work_memory *memory, long count, ms_rng *rng)
{
    size_t spare = memory->weights_bytes - (size_t)count * memory->real_bytes;
    return memory->weights + line_bytes * ms_rng_below(rng, spare / line_bytes + 1);
}

static bool is_weight(const ms_program *program, int tensor)
{
    unsigned char role = program->tensors[tensor].role;
    return role == MS_ROLE_WEIGHT || role == MS_ROLE_WEIGHT_GRADIENT;
}

static void place_operands(ms_kernel_case *item, const work_memory *memory, ms_rng *rng,
                           ms_op_call *call)
{
    const ms_node *node = item->node;
    *call = (ms_op_call){.program = item->program,
                         .node = node,
                         .batch = item->batch,
                         .workspace = memory->workspace};
    int choice = choice_operand(node);
    for (int i = 0; i < node->num_in; i++) {
        item->in[i].data = i == choice ? memory->choice
                           : is_weight(item->program, node->in[i])
                               ? anywhere(memory, item->in[i].count, rng)
                               : memory->in[i];
        call->in[i] = &item->in[i];
    }
    for (int i = 0; i < node->num_out; i++) {
        item->out[i].data = is_weight(item->program, node->out[i])
                                ? anywhere(memory, item->out[i].count, rng)
                                : memory->out[i];
        call->out[i] = &item->out[i];
    }
}

static void update(const ms_kernels *kernels, char *at, long count)
{
    const ms_adamw how = {1e-6, 0.9, 0.95, 1e-8, 0.0, 100, 1.0};
    size_t bytes = (size_t)count * kernels->real_bytes;
    char *gradient = at + bytes;
    volatile double squares = kernels->sum_of_squares(gradient, count);
    (void)squares;
    kernels->adamw(&how, at, gradient, at + 2 * bytes, at + 3 * bytes, count);
    kernels->fill(gradient, 0.5, count);
}

/* Of this thread at work: a core that others use meanwhile makes long kernels look slow in every round. */
static double busy_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static ms_status run_once(const ms_measurer *m, const ms_op_call *call,
                          const ms_kernel_case *item, char *at)
{
    if (item->node != NULL)
        return m->how->backend->kernel(m->cx, m->device, call);
    const ms_kernels *kernels = ms_cpu_kernels(m->how->type);
    if (item->sample.kind == MS_SAMPLE_STREAM)
        kernels->add(at, at + (size_t)item->count * kernels->real_bytes, item->count);
    else
        update(kernels, at, item->count);
    return MS_OK;
}

static ms_status measure_one(const ms_measurer *m, ms_kernel_case *item,
                             const work_memory *memory, ms_rng *rng, double *seconds,
                             double *elapsed_s)
{
    const ms_backend *backend = m->how->backend;
    ms_op_call call;
    if (item->node != NULL)
        place_operands(item, memory, rng, &call);
    char *at = anywhere(memory, 4 * item->count, rng);
    double busy_before_s = busy_s();
    double start_s = backend->now_s(m->device);
    MS_TRY(run_once(m, &call, item, at));
    *elapsed_s = backend->now_s(m->device) - start_s;
    /* the clock of the thread is slower to read, which matters for short kernels */
    *seconds = ms_min(*elapsed_s, busy_s() - busy_before_s);
    return MS_OK;
}

static ms_status measure_rounds(const ms_measurer *m, ms_kernel_case *items,
                                const work_memory *memory, ms_rounds *rounds)
{
    const int least_rounds = 3;
    ms_rng rng = ms_rng_seed(23 + (uint64_t)m->rank);
    double start_s = m->how->backend->now_s(m->device);
    for (const int *order; (order = ms_rounds_next(rounds)) != NULL;) {
        for (int i = 0; i < rounds->num_cases; i++) {
            double seconds, elapsed_s;
            MS_TRY(measure_one(m, &items[order[i]], memory, &rng, &seconds, &elapsed_s));
            ms_rounds_set(rounds, order[i], seconds, elapsed_s);
        }
        double spent_s = m->how->backend->now_s(m->device) - start_s;
        if (rounds->num_rounds >= least_rounds && spent_s > m->how->kernel_s)
            break;
    }
    return MS_OK;
}

ms_status ms_measure_kernels(const ms_measurer *m, const ms_kernel_cases *cases,
                             double *results)
{
    ms_arena *arena = m->cx->arena;
    ms_kernel_case *own = MS_NEW_ARRAY(arena, cases->num, ms_kernel_case);
    memcpy(own, cases->items, (size_t)cases->num * sizeof *own);
    work_memory memory;
    MS_TRY(make_memory(m, cases, ms_cpu_kernels(m->how->type), &memory));
    ms_rounds rounds = ms_rounds_make(arena, cases->num, (uint64_t)m->how->launch);
    MS_TRY(measure_rounds(m, own, &memory, &rounds));
    ms_rounds_results(arena, &rounds, results);
    return MS_OK;
}
