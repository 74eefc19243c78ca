#include "tests/support/cuda_cases.h"

#include "tests/support/cuda_emulated.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/interpreter.h"
#include "tests/support/program_cases.h"
#include "tests/support/run_program.h"
#include "tests/test.h"

#define WEIGHT_GRADIENT_START 0.25
/* errors of smaller values are absolute, as sums may cancel */
#define SMALLEST_SCALE 1e-2
#define RANDOM_ORDER   78
#define GUARD          64 /* least bytes before an operand */

/* ---- numbers ---- */

/* Rounds to bf16 (nearest, ties to even) by integer arithmetic. */
static unsigned short to_bf16(double x)
{
    float rounded = (float)x;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    if (isnan(x))
        return (unsigned short)(bits >> 16 | 0x40U);
    return (unsigned short)((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

double ms_case_from_bf16(unsigned short bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &word, sizeof x);
    return (double)x;
}

static void store_one(ms_scalar scalar, void *to, double x, long i)
{
    switch (scalar) {
    case MS_SCALAR_FP32:
        ((float *)to)[i] = (float)x;
        break;
    case MS_SCALAR_FP64:
        ((double *)to)[i] = x;
        break;
    case MS_SCALAR_BF16:
        ((unsigned short *)to)[i] = to_bf16(x);
        break;
    case MS_SCALAR_LONG:
        ((long *)to)[i] = (long)x;
        break;
    case MS_SCALAR_BYTE:
        ((unsigned char *)to)[i] = (unsigned char)x;
        break;
    case MS_SCALAR_E4M3:
    case MS_SCALAR_E5M2:
    case MS_NUM_SCALARS:
        break;
    }
}

static double load_one(ms_scalar scalar, const void *from, long i)
{
    switch (scalar) {
    case MS_SCALAR_FP32:
        return (double)((const float *)from)[i];
    case MS_SCALAR_FP64:
        return ((const double *)from)[i];
    case MS_SCALAR_BF16:
        return ms_case_from_bf16(((const unsigned short *)from)[i]);
    case MS_SCALAR_LONG:
        return (double)((const long *)from)[i];
    case MS_SCALAR_BYTE:
        return ((const unsigned char *)from)[i];
    case MS_SCALAR_E4M3:
    case MS_SCALAR_E5M2:
    case MS_NUM_SCALARS:
        break;
    }
    return (double)NAN;
}

void ms_case_store(ms_scalar scalar, void *to, const double *from, long count)
{
    for (long i = 0; i < count; i++)
        store_one(scalar, to, from[i], i);
}

void ms_case_load(ms_scalar scalar, double *to, const void *from, long count)
{
    for (long i = 0; i < count; i++)
        to[i] = load_one(scalar, from, i);
}

/* ---- nodes made by hand ---- */

ms_cuda_case *ms_cuda_case_make(ms_arena *arena, ms_op op, uint64_t seed)
{
    ms_cuda_case *c = MS_NEW(arena, ms_cuda_case);
    c->arena = arena;
    c->rng = ms_rng_seed(seed);
    c->program.model = &c->model;
    c->program.tensors = c->tensors;
    c->program.nodes = &c->node;
    c->program.num_nodes = 1;
    c->program.num_tensors = 2 * MS_MAX_OPERANDS;
    c->program.compute_bytes = 2;
    for (int i = 0; i < 2; i++)
        for (int axis = 0; axis < MS_MESH_AXES; axis++)
            c->program.mesh_size[i][axis] = 1;
    c->node.op = (unsigned char)op;
    c->call = (ms_op_call){.program = &c->program,
                           .node = &c->node,
                           .batch = &c->batch,
                           .routing = &c->routing};
    return c;
}

static ms_local *make_operand(ms_cuda_case *c, int tensor, const char *dims,
                              const char *shape, ms_case_numbers numbers)
{
    static const unsigned char bytes[] = {2, 4, 4, 1};
    ms_local *x = MS_NEW(c->arena, ms_local);
    ms_tensor *t = &c->tensors[tensor];
    memcpy(t->dims, dims, strlen(dims) + 1);
    t->element_bytes = bytes[numbers];
    t->role =
        numbers == MS_CASE_WEIGHT_GRADIENT ? MS_ROLE_WEIGHT_GRADIENT : MS_ROLE_ACTIVATION;
    x->count = 1;
    for (const char *s = shape; *s != '\0'; x->num_dims++) {
        char *end;
        x->shape[x->num_dims] = strtol(s, &end, 10);
        x->count *= x->shape[x->num_dims];
        c->program.size[dims[x->num_dims] - '0'] = (double)x->shape[x->num_dims];
        s = end;
    }
    x->scalar = numbers == MS_CASE_MASK ? MS_SCALAR_BYTE : MS_SCALAR_FP64;
    x->data = MS_NEW_ARRAY(c->arena, x->count + 1, double);
    return x;
}

ms_local *ms_cuda_case_in(ms_cuda_case *c, const char *dims, const char *shape,
                          ms_case_numbers numbers)
{
    int i = c->node.num_in++;
    ms_local *x = make_operand(c, i, dims, shape, numbers);
    c->node.in[i] = i;
    c->call.in[i] = x;
    for (long j = 0; j < x->count; j++) {
        store_one((ms_scalar)x->scalar, x->data,
                  numbers == MS_CASE_MASK ? (double)ms_rng_below(&c->rng, 2)
                                          : 2 * ms_rng_uniform(&c->rng) - 1,
                  j);
    }
    return x;
}

ms_local *ms_cuda_case_out(ms_cuda_case *c, const char *dims, const char *shape,
                           ms_case_numbers numbers)
{
    int i = c->node.num_out++, tensor = MS_MAX_OPERANDS + i;
    c->node.out[i] = tensor;
    c->call.out[i] = make_operand(c, tensor, dims, shape, numbers);
    return c->call.out[i];
}

/* ---- one comparison ---- */

typedef struct comparison {
    ms_arena *arena;
    const char *label;
    const ms_cuda_kernel *kernel;
    const ms_op_call *call; /* call of the test, with fp64 operands */
    ms_precision precision;
    /* fp64 copies of operands, rounded to the tested types */
    ms_local in[MS_MAX_OPERANDS], out[MS_MAX_OPERANDS];
    ms_op_call reference;
} comparison;

static const ms_tensor *tensor_of(const comparison *x, bool is_result, int i)
{
    const ms_node *node = x->call->node;
    return &x->call->program->tensors[is_result ? node->out[i] : node->in[i]];
}

/* Number type of an operand as ranks choose it (exec/core/rank.c). */
static ms_scalar scalar_of(const comparison *x, bool is_result, int i)
{
    const ms_tensor *t = tensor_of(x, is_result, i);
    if (t->element_bytes == 1)
        return MS_SCALAR_BYTE;
    if (t->role == MS_ROLE_WEIGHT_GRADIENT)
        return x->precision.gradient;
    return t->element_bytes == x->call->program->compute_bytes ? x->precision.real
                                                               : x->precision.statistic;
}

static bool is_added(const comparison *x, int result)
{
    return tensor_of(x, true, result)->role == MS_ROLE_WEIGHT_GRADIENT;
}

static double start_of(const comparison *x, int result)
{
    return is_added(x, result) ? WEIGHT_GRADIENT_START : (double)NAN;
}

static void run_reference(comparison *x)
{
    const ms_kernels *kernels = ms_cpu_kernels(MS_REAL_FP64);
    const ms_node *node = x->call->node;
    x->reference = *x->call;
    for (int i = 0; i < node->num_in; i++) {
        x->in[i] = *x->call->in[i];
        x->reference.in[i] = &x->in[i];
        ms_scalar scalar = scalar_of(x, false, i);
        if (scalar == MS_SCALAR_BYTE || x->in[i].data == NULL)
            continue;
        double *values = MS_NEW_ARRAY(x->arena, x->in[i].count + 1, double), rounded;
        const double *given = x->call->in[i]->data;
        for (long j = 0; j < x->in[i].count; j++) {
            store_one(scalar, &rounded, given[j], 0);
            values[j] = load_one(scalar, &rounded, 0);
        }
        x->in[i].data = values;
    }
    for (int i = 0; i < node->num_out; i++) {
        x->out[i] = *x->call->out[i];
        x->reference.out[i] = &x->out[i];
        if (x->call->out[i]->data == NULL)
            continue;
        x->out[i].data = MS_NEW_ARRAY(x->arena, x->out[i].count + 1, double);
        if (scalar_of(x, true, i) != MS_SCALAR_BYTE)
            kernels->fill(x->out[i].data, start_of(x, i), x->out[i].count);
    }
    x->reference.workspace =
        ms_arena_alloc(x->arena, kernels->workspace_bytes(x->call->program, node) + 1);
    if (x->kernel->reference != NULL)
        x->kernel->reference(&x->reference);
    else
        kernels->op[node->op](&x->reference);
}

/* Memory that ends where the operand ends, so that the address sanitizer finds reads
 * beyond. */
typedef struct device_memory {
    void *block, *data;
} device_memory;

static device_memory take_memory(size_t bytes, size_t shift)
{
    device_memory m;
    assert_int_equal(posix_memalign(&m.block, GUARD, GUARD + shift + bytes), 0);
    memset(m.block, 0xff, GUARD + shift + bytes);
    m.data = (char *)m.block + GUARD + shift;
    return m;
}

static ms_local to_device(const ms_local *host, ms_scalar scalar, bool is_shifted,
                          device_memory *memory)
{
    ms_local local = *host;
    local.scalar = (unsigned char)scalar;
    *memory = (device_memory){0};
    local.data = NULL;
    if (host->data == NULL)
        return local;
    size_t bytes = ms_scalar_bytes(scalar);
    *memory = take_memory((size_t)host->count * bytes, is_shifted ? bytes : 0);
    local.data = memory->data;
    return local;
}

typedef struct device_call {
    ms_op_call op;
    ms_local in[MS_MAX_OPERANDS], out[MS_MAX_OPERANDS];
    ms_cuda_batch batch;
    device_memory memory[2 * MS_MAX_OPERANDS + 1];
} device_call;

static void fill_batch(ms_arena *arena, const ms_batch *from, ms_cuda_batch *to)
{
    *to = (ms_cuda_batch){.num_sequences = from->num_sequences,
                          .sequence_length = from->sequence_length,
                          .tokens = from->tokens,
                          .targets = from->targets,
                          .num_tokens = from->num_tokens};
    if (from->positions == NULL)
        return;
    int *positions = MS_NEW_ARRAY(arena, from->sequence_length, int);
    for (long i = 0; i < from->sequence_length; i++)
        positions[i] = (int)from->positions[i];
    to->positions = positions;
}

static void run_on_device(comparison *x, device_call *d, bool is_shifted)
{
    const ms_node *node = x->call->node;
    d->op = *x->call;
    for (int i = 0; i < node->num_in; i++) {
        ms_scalar scalar = scalar_of(x, false, i);
        d->in[i] = to_device(&x->in[i], scalar, is_shifted, &d->memory[i]);
        d->op.in[i] = &d->in[i];
        if (d->in[i].data == NULL)
            continue;
        if (scalar == MS_SCALAR_BYTE)
            memcpy(d->in[i].data, x->in[i].data, (size_t)x->in[i].count);
        else
            ms_case_store(scalar, d->in[i].data, x->in[i].data, x->in[i].count);
    }
    for (int i = 0; i < node->num_out; i++) {
        ms_scalar scalar = scalar_of(x, true, i);
        d->out[i] =
            to_device(&x->out[i], scalar, is_shifted, &d->memory[MS_MAX_OPERANDS + i]);
        d->op.out[i] = &d->out[i];
        for (long j = 0; d->out[i].data != NULL && j < d->out[i].count; j++)
            store_one(scalar, d->out[i].data,
                      scalar == MS_SCALAR_BYTE ? 0xee : start_of(x, i), j);
    }
    size_t bytes = x->kernel->workspace != NULL
                       ? x->kernel->workspace(x->call->program, node, &x->precision)
                       : 0;
    d->memory[2 * MS_MAX_OPERANDS] = take_memory(bytes, 0);
    d->op.workspace = NULL;
    ms_cuda_call call = {.cx = test_cx(),
                         /* fake driver: without a stream it runs all work at once */
                         .driver = &ms_cuda_fake_driver,
                         .precision = x->precision,
                         .op = &d->op,
                         .workspace = d->memory[2 * MS_MAX_OPERANDS].data};
    if (x->call->batch != NULL) {
        fill_batch(x->arena, x->call->batch, &d->batch);
        call.batch = &d->batch;
    }
    ASSERT_OK(x->kernel->op(&call), call.cx);
}

/* Greatest error of an element that should be `want`, in a result whose largest element
 * is `scale`. */
static double tolerance_of(const comparison *x, ms_scalar scalar, double want,
                           double scale)
{
    /* bf16: half a unit of the last bit */
    const double fp64 = 1e-12, fp32 = 1e-5, of_bf16 = 0x1p-8;
    double before = x->kernel->num_roundings * of_bf16 * scale;
    switch (x->precision.real == MS_SCALAR_BF16 ? scalar : x->precision.real) {
    case MS_SCALAR_FP64:
        return fp64 * scale;
    case MS_SCALAR_BF16:
        return of_bf16 * fabs(want) + before + fp32 * scale;
    case MS_SCALAR_FP32:
    case MS_SCALAR_LONG:
    case MS_SCALAR_BYTE:
    case MS_SCALAR_E4M3:
    case MS_SCALAR_E5M2:
    case MS_NUM_SCALARS:
        break;
    }
    return fp32 * scale + (x->precision.real == MS_SCALAR_BF16 ? before : 0);
}

static void compare_result(const comparison *x, const ms_local *got, int result)
{
    ms_scalar scalar = scalar_of(x, true, result);
    const ms_local *want = &x->out[result];
    double scale = SMALLEST_SCALE;
    ms_scalar of_want = scalar == MS_SCALAR_BYTE ? MS_SCALAR_BYTE : MS_SCALAR_FP64;
    for (long i = 0; i < want->count; i++) {
        double y = fabs(load_one(of_want, want->data, i));
        scale = y > scale && isfinite(y) ? y : scale;
    }
    for (long i = 0; i < want->count; i++) {
        double a = load_one(scalar, got->data, i), b = load_one(of_want, want->data, i);
        double allowed = scalar == MS_SCALAR_BYTE ? 0 : tolerance_of(x, scalar, b, scale);
        if (a != b && !(fabs(a - b) <= allowed)) {
            fail_msg(
                "%s, %s: result %d element %ld of %ld: %.9g, not %.9g (largest %.3g)",
                x->label, ms_scalar_names[x->precision.real], result, i, want->count, a,
                b, scale);
        }
    }
}

static void release_call(device_call *d)
{
    for (int i = 0; i < 2 * MS_MAX_OPERANDS + 1; i++)
        free(d->memory[i].block);
    memset(d->memory, 0, sizeof d->memory);
}

static void compare_in(comparison *x)
{
    const ms_node *node = x->call->node;
    run_reference(x);
    static device_call calls[3];
    memset(calls, 0, sizeof calls);
    const unsigned long seeds[] = {0, 1, RANDOM_ORDER};
    for (int order = 0; order < 3; order++) {
        ms_cuda_emulated_set_seed(seeds[order]);
        run_on_device(x, &calls[order], order == 2);
        for (int i = 0; i < node->num_out; i++)
            if (x->out[i].data != NULL)
                compare_result(x, &calls[order].out[i], i);
    }
    for (int i = 0; i < node->num_out; i++) {
        if (x->out[i].data != NULL &&
            memcmp(calls[0].out[i].data, calls[1].out[i].data,
                   (size_t)x->out[i].count * ms_scalar_bytes(scalar_of(x, true, i))) != 0)
            fail_msg("%s, %s: result %d depends on the order of threads", x->label,
                     ms_scalar_names[x->precision.real], i);
    }
    for (int order = 0; order < 3; order++)
        release_call(&calls[order]);
}

static void compare_call(ms_arena *arena, const char *label, const ms_op_call *call,
                         const ms_cuda_kernel *kernel)
{
    /* FP8 runs differ from bf16 runs in products only */
    for (int type = 0; type < MS_REAL_FP8; type++) {
        comparison *x = MS_NEW(arena, comparison);
        *x = (comparison){.arena = arena,
                          .label = label,
                          .kernel = kernel,
                          .call = call,
                          .precision = ms_precision_of((ms_real_type)type)};
        compare_in(x);
    }
}

void ms_cuda_case_run(ms_cuda_case *c, const char *label, const ms_cuda_kernel *kernel)
{
    compare_call(c->arena, label, &c->call, kernel);
}

/* ---- nodes of programs ---- */

static int compare_nodes(ms_arena *arena, const ms_program *program, const char *label,
                         ms_op op, const ms_cuda_kernel *kernel)
{
    int num = 0;
    for (int i = 0; i < program->num_nodes; i++)
        num += program->nodes[i].op == op;
    if (num == 0)
        return 0;
    long positions[MS_SMALL_SEQUENCE];
    ms_interp_positions(positions, MS_SMALL_SEQUENCE, 2);
    ms_interp *interp = ms_interp_run(
        arena, program, &(ms_interp_options){.seed = 5, .positions = positions});
    ASSERT_TEXT(interp->why, "");
    ms_program_run *run = ms_program_run_prepare(interp, ms_cpu_kernels(MS_REAL_FP64));
    ms_program_run_execute(run);
    for (int i = 0; i < program->num_nodes; i++) {
        const ms_node *node = &program->nodes[i];
        if (node->op != op)
            continue;
        ms_op_call call = ms_program_run_call(run, node);
        compare_call(arena, ms_arena_printf(arena, "%s, %s", label, node->name), &call,
                     kernel);
    }
    return num;
}

int ms_cuda_cases_of_programs(ms_arena *arena, ms_op op, const ms_cuda_kernel *kernel)
{
    int num = 0;
    for (int m = 0; m < MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE; m++) {
        ms_model *model = MS_NEW(arena, ms_model);
        *model = ms_case_model(m);
        for (int part = 0; part < MS_NUM_BLOCK_KINDS; part++) {
            ms_program_key key = ms_case_whole_key((ms_block_kind)part);
            const ms_program *program = ms_case_program(arena, model, &key, 1);
            num += compare_nodes(arena, program, ms_case_describe(arena, model, &key), op,
                                 kernel);
        }
    }
    return num;
}
