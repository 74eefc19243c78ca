/* Tests of matrix products, by BLAS where it is built in and by plain loops, and of
 * einsums as matrix products. */
#include "exec/cpu/gemm.h"
#include "exec/cpu/kernels.h"
#include "tests/support/hand_program.h"
#include "tests/support/interpreter_priv.h"
#include "tests/support/run_program.h"
#include "tests/test.h"

#include "base/rng.h"

#define MOST 210
#define PAD  3 /* unused elements after each row */

typedef struct operands {
    double a[MOST * MOST], b[MOST * MOST], c[MOST * MOST], want[MOST * MOST];
    float af[MOST * MOST], bf[MOST * MOST], cf[MOST * MOST];
} operands;

static operands *make_operands(void)
{
    operands *x = MS_NEW(test_cx()->arena, operands);
    ms_rng rng = ms_rng_seed(3);
    for (long i = 0; i < MOST * MOST; i++) {
        x->af[i] = (float)(2 * ms_rng_uniform(&rng) - 1);
        x->bf[i] = (float)(2 * ms_rng_uniform(&rng) - 1);
        x->a[i] = (double)x->af[i];
        x->b[i] = (double)x->bf[i];
    }
    return x;
}

static void by_definition(const ms_gemm *g, operands *x)
{
    for (long i = 0; i < MOST * MOST; i++) {
        x->cf[i] = (float)(i % 1000);
        x->c[i] = (double)x->cf[i];
    }
    memcpy(x->want, x->c, sizeof x->c);
    for (long p = 0; p < (g->num_batch > 0 ? g->num_batch : 1); p++)
        for (long i = 0; i < g->m; i++)
            for (long j = 0; j < g->n; j++) {
                double *to = &x->want[p * g->stride_c + i * g->ld_c + j];
                *to = g->add ? *to : 0;
                for (long k = 0; k < g->k; k++)
                    *to += x->a[p * g->stride_a +
                                (g->transpose_a ? k * g->ld_a + i : i * g->ld_a + k)] *
                           x->b[p * g->stride_b +
                                (g->transpose_b ? j * g->ld_b + k : k * g->ld_b + j)];
            }
}

static void check(operands *x, const ms_gemm *g, bool plain)
{
    by_definition(g, x);
    (plain ? ms_gemm_plain_fp64 : ms_gemm_run_fp64)(g, x->a, x->b, x->c);
    (plain ? ms_gemm_plain_fp32 : ms_gemm_run_fp32)(g, x->af, x->bf, x->cf);
    for (long i = 0; i < MOST * MOST; i++) {
        /* sums of products below 1 and a whole number; unused elements must not change */
        double scale = fabs(x->want[i]) + (double)g->k;
        if (!(fabs(x->c[i] - x->want[i]) <= 1e-14 * scale) ||
            !(fabs((double)x->cf[i] - x->want[i]) <= 3e-7 * scale))
            fail_msg("%ld x %ld x %ld, element %ld: %g and %g, not %g", g->m, g->n, g->k,
                     i, x->c[i], (double)x->cf[i], x->want[i]);
    }
}

static void products_are_those_of_the_definition(void **state)
{
    (void)state;
    operands *x = make_operands();
    const long sizes[][3] = {{1, 1, 1},    {4, 16, 128}, {5, 17, 129},
                             {64, 128, 3}, {65, 130, 7}, {3, 200, 200},
                             {70, 9, 150}, {6, 5, 0},    {0, 5, 3}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int variant = 0; variant < 16; variant++) {
            ms_gemm g = {.transpose_a = variant & 1,
                         .transpose_b = variant & 2,
                         .add = variant & 4,
                         .m = sizes[i][0],
                         .n = sizes[i][1],
                         .k = sizes[i][2]};
            g.ld_a = (g.transpose_a ? g.m : g.k) + PAD;
            g.ld_b = (g.transpose_b ? g.k : g.n) + PAD;
            g.ld_c = g.n + PAD;
            check(x, &g, variant & 8);
        }
}

static void products_of_a_batch_lie_at_their_strides(void **state)
{
    (void)state;
    operands *x = make_operands();
    for (int plain = 0; plain < 2; plain++) {
        ms_gemm g = {.m = 7, .n = 5, .k = 3, .ld_a = 3, .ld_b = 5, .ld_c = 5};
        g.num_batch = 4;
        g.stride_a = 21;
        /* batch stride 0: all products of the batch read the same operand b */
        g.stride_b = 0;
        g.stride_c = 40;
        check(x, &g, plain);
    }
}

/* ---- einsums ---- */

static void expect_einsum(const char *einsum)
{
    ms_hand *h = ms_hand_open(test_cx()->arena);
    const char letters[] = "bshndgwftrv";
    const long sizes[] = {2, 5, 4, 3, 6, 2, 3, 7, 4, 5, 3};
    for (int i = 0; letters[i] != '\0'; i++)
        ms_hand_set_size(h, letters[i], sizes[i]);
    char dims[3][MS_MAX_DIMS + 1] = {{0}};
    assert_int_equal(sscanf(einsum, "%4[a-z],%4[a-z]->%4s", dims[0], dims[1], dims[2]),
                     3);
    int a = ms_hand_tensor(h, dims[0], MS_ROLE_WEIGHT, "RRR"),
        b = ms_hand_tensor(h, dims[1], MS_ROLE_WEIGHT, "RRR");
    int sum = ms_hand_result(h, dims[2], "RRR"),
        added = ms_hand_result(h, dims[2], "RRR");
    h->tensors[added].role = MS_ROLE_WEIGHT_GRADIENT;
    ms_hand_binary(h, MS_OP_EINSUM, a, b, sum)->einsum = einsum;
    ms_hand_binary(h, MS_OP_EINSUM, a, b, added)->einsum = einsum;
    ms_interp *want = ms_interp_run(h->arena, &h->program, &h->options);
    assert_string_equal(want->why, "");
    ms_program_run *run = ms_program_run_prepare(want, ms_cpu_kernels(MS_REAL_FP64));
    ms_program_run_execute(run);
    for (int tensor = sum; tensor <= added; tensor++) {
        const ms_cell *cell = ms_interp_cell(want, tensor, 0);
        double difference = ms_interp_difference(ms_program_run_values(run, tensor),
                                                 cell->values, cell->count);
        if (!(difference <= 1e-13))
            fail_msg("%s differs by %g", einsum, difference);
    }
}

static void einsums_of_any_order_of_letters(void **state)
{
    (void)state;
    const char *const einsums[] = {
        /* einsums that are one matrix product: of programs, with the result transposed,
         * and in batches */
        "bsh,hnd->bsnd", "bsnd,hnd->bsh", "bsh,bsnd->hnd", "bsnw,nwh->bsh", "bsh,hf->fbs",
        "hbs,fh->bsf", "bsd,btd->bst", "bds,bdt->bst", "bst,btd->bsd", "b,h->bh",
        "b,b->b", "bsn,bsn->bsn", "hf,fh->h",
        /* einsums whose letters are not adjacent, and with a letter that only one operand
         * has */
        "bhs,hf->bsf", "hbsd,hdf->bsf", "nbsd,hnd->bsh", "bsh,hf->sbf", "bsh,hs->bs",
        "bsh,hf->bf", "bsh,sf->bf", "sb,bs->b"};
    for (size_t i = 0; i < sizeof einsums / sizeof *einsums; i++)
        expect_einsum(einsums[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_those_of_the_definition),
        cmocka_unit_test(products_of_a_batch_lie_at_their_strides),
        cmocka_unit_test(einsums_of_any_order_of_letters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
