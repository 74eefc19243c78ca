/* Tests of CUDA kernels against the CPU's: normalisation, biases and sums over rows. */
#include "exec/cuda/cuda_norm.h"
#include "exec/cuda/cuda_sums.h"
#include "tests/support/cuda_cases.h"
#include "tests/test.h"

static const ms_cuda_kernel norm = {.op = ms_cuda_norm},
                            norm_grad = {.op = ms_cuda_norm_grad,
                                         .workspace = ms_cuda_norm_grad_bytes},
                            bias = {.op = ms_cuda_bias},
                            sum_to = {.op = ms_cuda_sum_to,
                                      .workspace = ms_cuda_sum_to_bytes};

/* Sizes for every variant of the norm kernel: rows per warp and per block of threads,
 * rows kept in registers or not, odd widths, with and without 16-byte vectors. */
static const struct {
    long rows, width;
} sizes[] = {{1, 1},    {3, 2},    {7, 5},     {19, 16},   {9, 128},
             {2120, 8}, {33, 200}, {5, 1000},  {530, 136}, {3, 4096},
             {2, 4104}, {2, 8200}, {1, 16384}, {2, 16392}, {0, 64}};
#define NUM_SIZES (int)(sizeof sizes / sizeof *sizes)

static const char *shape_of(ms_arena *arena, long rows, long width)
{
    return ms_arena_printf(arena, "%ld 1 %ld", rows, width);
}

static const char *width_of(ms_arena *arena, long width)
{
    return ms_arena_printf(arena, "%ld", width);
}

/* Adds `by` to all elements, so that means are far from 0. */
static void move(const ms_local *x, double by)
{
    for (long i = 0; i < x->count; i++)
        ms_cuda_case_values(x)[i] += by;
}

typedef enum variant {
    RMS,
    LAYER,
    LAYER_WITHOUT_BIAS,
    NUM_VARIANTS
} variant;

static void norm_of_size(ms_arena *arena, int size, variant kind, bool is_gradient)
{
    /* LayerNorm of two elements gives 1 and -1: its gradient is rounding noise */
    if (is_gradient && kind != RMS && sizes[size].width == 2)
        return;
    ms_cuda_case *c = ms_cuda_case_make(arena, is_gradient ? MS_OP_NORM_GRAD : MS_OP_NORM,
                                        (uint64_t)(size * NUM_VARIANTS + (int)kind));
    const char *rows = shape_of(arena, sizes[size].rows, sizes[size].width),
               *width = width_of(arena, sizes[size].width);
    c->model.norm = kind == RMS ? MS_NORM_RMS : MS_NORM_LAYER;
    c->model.norm_plus_one = size % 3 == 1;
    c->model.norm_epsilon = size % 2 == 0 ? 1e-5 : 0;
    move(ms_cuda_case_in(c, "bsh", rows, MS_CASE_REAL), 0.5);
    move(ms_cuda_case_in(c, "h", width, MS_CASE_REAL), 1);
    if (is_gradient)
        ms_cuda_case_in(c, "bsh", rows, MS_CASE_REAL);
    else if (kind == LAYER)
        ms_cuda_case_in(c, "h", width, MS_CASE_REAL);
    ms_cuda_case_out(c, "bsh", rows, MS_CASE_REAL);
    if (is_gradient)
        ms_cuda_case_out(c, "h", width, MS_CASE_WEIGHT_GRADIENT);
    if (is_gradient && kind == LAYER)
        ms_cuda_case_out(c, "h", width, MS_CASE_WEIGHT_GRADIENT);
    const char *label = ms_arena_printf(arena, "%s %s, kind %d",
                                        is_gradient ? "gradient of" : "norm", rows, kind);
    ms_cuda_case_run(c, label, is_gradient ? &norm_grad : &norm);
    const long few =
        1000; /* elements: unwanted gradients are tested for small sizes only */
    if (!is_gradient || sizes[size].rows * sizes[size].width > few)
        return;
    /* unwanted gradients (data NULL): first one, then both */
    for (int i = c->node.num_out - 1; i > 0; i--) {
        c->call.out[i]->data = NULL;
        ms_cuda_case_run(c, label, &norm_grad);
    }
}

static void norms_of_all_sizes(void **state)
{
    (void)state;
    for (int size = 0; size < NUM_SIZES; size++)
        for (variant kind = RMS; kind < NUM_VARIANTS; kind = (variant)(kind + 1))
            norm_of_size(test_cx()->arena, size, kind, false);
}

static void gradients_of_norms_of_all_sizes(void **state)
{
    (void)state;
    for (int size = 0; size < NUM_SIZES; size++)
        for (variant kind = RMS; kind < NUM_VARIANTS; kind = (variant)(kind + 1))
            norm_of_size(test_cx()->arena, size, kind, true);
}

static void biases_of_all_sizes(void **state)
{
    (void)state;
    for (int size = 0; size < NUM_SIZES; size++) {
        ms_arena *arena = test_cx()->arena;
        ms_cuda_case *c = ms_cuda_case_make(arena, MS_OP_BIAS, (uint64_t)size);
        const char *rows = shape_of(arena, sizes[size].rows, sizes[size].width);
        ms_cuda_case_in(c, "bsh", rows, MS_CASE_REAL);
        ms_cuda_case_in(c, "h", width_of(arena, sizes[size].width), MS_CASE_REAL);
        ms_cuda_case_out(c, "bsh", rows, MS_CASE_REAL);
        ms_cuda_case_run(c, rows, &bias);
    }
}

static void sums_of_all_sizes(void **state)
{
    (void)state;
    for (int size = 0; size < 2 * NUM_SIZES; size++) {
        ms_arena *arena = test_cx()->arena;
        ms_cuda_case *c = ms_cuda_case_make(arena, MS_OP_SUM_TO, (uint64_t)size);
        long rows = sizes[size / 2].rows, width = sizes[size / 2].width;
        ms_cuda_case_in(c, "bsh", shape_of(arena, rows, width), MS_CASE_REAL);
        /* weight gradients are added to the earlier values, other results replace them */
        ms_cuda_case_out(c, "h", width_of(arena, width),
                         size % 2 == 0 ? MS_CASE_WEIGHT_GRADIENT : MS_CASE_REAL);
        ms_cuda_case_run(c, shape_of(arena, rows, width), &sum_to);
        c->call.out[0]->data = NULL;
        ms_cuda_case_run(c, "not wanted", &sum_to);
    }
}

static void nodes_of_programs(void **state)
{
    (void)state;
    const struct {
        ms_op op;
        const ms_cuda_kernel *kernel;
    } ops[] = {{MS_OP_NORM, &norm},
               {MS_OP_NORM_GRAD, &norm_grad},
               {MS_OP_BIAS, &bias},
               {MS_OP_SUM_TO, &sum_to}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        assert_true(
            ms_cuda_cases_of_programs(test_cx()->arena, ops[i].op, ops[i].kernel) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_of_all_sizes),
        cmocka_unit_test(gradients_of_norms_of_all_sizes),
        cmocka_unit_test(biases_of_all_sizes),
        cmocka_unit_test(sums_of_all_sizes),
        cmocka_unit_test(nodes_of_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
