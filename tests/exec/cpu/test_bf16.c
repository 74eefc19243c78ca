/* Tests of bf16 on CPUs: how numbers are rounded, and that a kernel on bf16 arrays gives
 * the rounded results of the fp32 kernel on the same numbers. */
#include "base/rng.h"
#include "exec/cpu/kernels.h"
#include "tests/support/interpreter_priv.h"
#include "tests/support/program_cases.h"
#include "tests/support/run_program.h"
#include "tests/test.h"

#include <float.h>

/* ---- rounding ---- */

static void check_nearest(double x)
{
    uint16_t got = ms_bf16_of(x);
    double off = fabs(ms_bf16_value(got) - x);
    for (int step = -1; step <= 1; step += 2) {
        double other = fabs(ms_bf16_value((uint16_t)(got + step)) - x);
        if (off > other || (off == other && got % 2 != 0))
            fail_msg("%a was rounded to %a", x, ms_bf16_value(got));
    }
}

static void numbers_are_rounded_once_to_the_nearest(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(1);
    for (int i = 0; i < 100000; i++) {
        double x = ldexp(ms_rng_uniform(&rng) - 0.5, (int)ms_rng_below(&rng, 60) - 30);
        check_nearest(x);
        check_nearest((double)(float)x);
    }
    /* halfway between two numbers in fp32, but not in fp64 */
    ASSERT_NEAR(ms_rounded_to_bf16(1.0 + 0x1p-8 + 0x1p-40), 1.0 + 0x1p-7, 0);
    ASSERT_NEAR(ms_rounded_to_bf16(1.0 + 0x1p-8 - 0x1p-40), 1.0, 0);
    ASSERT_NEAR(ms_rounded_to_bf16(-1.0 - 0x1p-8), -1.0, 0);
    assert_true(isinf(ms_rounded_to_bf16(FLT_MAX)));
    assert_true(isinf(ms_rounded_to_bf16(-HUGE_VAL)));
    assert_true(isnan(ms_rounded_to_bf16((double)NAN)));
    assert_true(signbit(ms_rounded_to_bf16(-0.0)));
}

static void sums_of_arrays_are_rounded(void **state)
{
    (void)state;
    enum {
        NUM = 2500
    };
    const ms_kernels *k = ms_cpu_scalar_kernels(MS_SCALAR_BF16);
    uint16_t a[NUM], b[NUM];
    ms_rng rng = ms_rng_seed(2);
    double squares = 0.0;
    for (int i = 0; i < NUM; i++) {
        a[i] = ms_bf16_of(ms_rng_uniform(&rng) - 0.5);
        b[i] = ms_bf16_of(100.0 * (ms_rng_uniform(&rng) - 0.5));
        squares += ms_bf16_value(a[i]) * ms_bf16_value(a[i]);
    }
    uint16_t sum[NUM];
    memcpy(sum, a, sizeof sum);
    k->add(sum, b, NUM);
    for (int i = 0; i < NUM; i++)
        ASSERT_INT(sum[i], ms_bf16_of(ms_bf16_value(a[i]) + ms_bf16_value(b[i])));
    memcpy(sum, a, sizeof sum);
    k->scale(sum, 0.7, NUM);
    for (int i = 0; i < NUM; i++)
        ASSERT_INT(sum[i], ms_bf16_of(0.7 * ms_bf16_value(a[i])));
    ASSERT_NEAR(k->sum_of_squares(a, NUM), squares, 1e-12 * squares);
}

/* ---- kernels ---- */

static void compare_node(ms_program_run *bf16, ms_program_run *fp32, const ms_node *node)
{
    for (int i = 0; i < node->num_in; i++) {
        if (bf16->locals[node->in[i]].scalar == MS_SCALAR_BYTE)
            memcpy(fp32->locals[node->in[i]].data, bf16->locals[node->in[i]].data,
                   (size_t)bf16->locals[node->in[i]].count);
        else
            ms_program_run_set(fp32, node->in[i],
                               ms_program_run_values(bf16, node->in[i]));
    }
    ms_program_run_node(bf16, node);
    ms_program_run_node(fp32, node);
    for (int i = 0; i < node->num_out; i++) {
        const ms_local *got = &bf16->locals[node->out[i]];
        const float *want = fp32->locals[node->out[i]].data;
        for (long j = 0; j < got->count && got->scalar == MS_SCALAR_BF16; j++) {
            double x = ms_bf16_value(((const uint16_t *)got->data)[j]);
            double y = ms_rounded_to_bf16((double)want[j]);
            if (x != y && !(isnan(x) && isnan(y)))
                fail_msg("%s %ld of %s: %a, not %a", fp32->program->model->name, j,
                         fp32->program->tensors[node->out[i]].name, x, y);
        }
    }
}

/* Every node of every small model, its operands being what bf16 nodes before it made. */
static void kernels_round_what_fp32_kernels_compute(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    const ms_interp_options options = {.seed = 1};
    for (int m = 0; m < MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE; m++) {
        ms_model model = ms_case_model(m);
        for (int part = 0; part < MS_NUM_BLOCK_KINDS; part++) {
            ms_program_key key = ms_case_whole_key((ms_block_kind)part);
            const ms_program *program = ms_case_program(arena, &model, &key, 1);
            ms_interp *interp = ms_interp_run(arena, program, &options);
            ms_program_run *bf16 =
                ms_program_run_prepare(interp, ms_cpu_kernels(MS_REAL_BF16));
            ms_program_run *fp32 =
                ms_program_run_prepare(interp, ms_cpu_kernels(MS_REAL_FP32));
            for (int n = 0; n < program->num_nodes; n++)
                compare_node(bf16, fp32, &program->nodes[n]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_rounded_once_to_the_nearest),
        cmocka_unit_test(sums_of_arrays_are_rounded),
        cmocka_unit_test(kernels_round_what_fp32_kernels_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
