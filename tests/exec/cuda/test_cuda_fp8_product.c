/* Tests of matrix products in FP8: which products are made in FP8, and the error of their
 * results. */
#include "exec/cuda/cuda_fp8.h"
#include "exec/cuda/cuda_gemm.h"
#include "tests/support/cuda_cases.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/fp8_numbers.h"
#include "tests/test.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *take(size_t bytes)
{
    void *memory = NULL;
    assert_int_equal(posix_memalign(&memory, 256, bytes > 0 ? bytes : 1), 0);
    memset(memory, 0xff, bytes);
    return memory;
}

/* ---- products ---- */

static ms_cuda_gemm last; /* last product that the code asked of the GEMM library */
static int num_fp8, num_others;

static ms_status noted_product(ms_ctx *cx, ms_cuda_stream *stream, const ms_cuda_gemm *p)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    last = *p;
    *(ms_scalar_is_fp8(p->type) ? &num_fp8 : &num_others) += 1;
    pthread_mutex_unlock(&lock);
    return ms_cuda_fake_driver.product(cx, stream, p);
}

/* answers of the mock has_product: no FP8 algorithm exists, or the query fails */
static bool has_none, fails_to_say;

static ms_status answer(ms_ctx *cx, const ms_cuda_gemm *p, bool *has)
{
    if (fails_to_say)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "no answer");
    MS_TRY(ms_cuda_fake_driver.has_product(cx, p, has));
    assert_true(*has && ms_scalar_is_fp8(p->type));
    *has = !has_none;
    return MS_OK;
}

static const ms_cuda_driver *noting_driver(void)
{
    static ms_cuda_driver driver;
    driver = ms_cuda_fake_driver;
    driver.product = noted_product;
    driver.has_product = answer;
    return &driver;
}

typedef struct product_case {
    const char *text;
    ms_role role[3];
    const char *sizes;         /* letter sizes, as "b2 s9" */
    const ms_routing *routing; /* NULL: the node is an EINSUM */
    size_t result_shift; /* distance of the result from an aligned address, in elements */
} product_case;

/* An EINSUM or GROUPED node with operands a, b and result c in bf16. */
typedef struct product_run {
    ms_tensor tensors[3];
    ms_program program;
    ms_node node;
    ms_local local[3];
    void *memory[4];
    ms_op_call op;
    double *values[3]; /* values of a, b and of c before the product */
    long size['z' + 1];
} product_run;

static void read_sizes(product_run *r, const char *text)
{
    while (*text != '\0') {
        char letter = *text++, *end;
        r->size[(unsigned char)letter] = strtol(text, &end, 10);
        r->program.size[letter - '0'] = (double)r->size[(unsigned char)letter];
        text = *end == ' ' ? end + 1 : end;
    }
}

static void make_operand(product_run *r, const product_case *c, int i, const char *dims,
                         ms_rng *rng)
{
    ms_tensor *t = &r->tensors[i];
    ms_local *x = &r->local[i];
    bool is_sum = c->role[i] == MS_ROLE_WEIGHT_GRADIENT;
    *t = (ms_tensor){.name = "x", .role = (unsigned char)c->role[i], .element_bytes = 2};
    memcpy(t->dims, dims, strlen(dims));
    *x = (ms_local){.scalar = is_sum ? MS_SCALAR_FP32 : MS_SCALAR_BF16, .count = 1};
    for (const char *d = dims; *d != '\0'; d++)
        x->count *= x->shape[x->num_dims++] = r->size[(unsigned char)*d];
    size_t each = ms_scalar_bytes((ms_scalar)x->scalar),
           shift = i == 2 ? c->result_shift : 0;
    r->memory[i] = take(((size_t)x->count + shift) * each);
    x->data = (char *)r->memory[i] + shift * each;
    r->values[i] = MS_NEW_ARRAY(test_cx()->arena, x->count, double);
    for (long j = 0; j < x->count; j++) {
        double value = 2 * ms_rng_uniform(rng) - 1;
        ms_case_store((ms_scalar)x->scalar, (char *)x->data + (size_t)j * each, &value,
                      1);
    }
    ms_case_load((ms_scalar)x->scalar, r->values[i], x->data, x->count);
}

static bool was_lacking; /* whether the last product had no FP8 algorithm */

static ms_status try_multiply(product_run *r, ms_real_type type)
{
    was_lacking = false;
    ms_cuda_call call = {.cx = test_cx(),
                         .driver = noting_driver(),
                         .precision = ms_precision_of(type),
                         .op = &r->op,
                         .workspace = r->memory[3],
                         .lacks_fp8 = &was_lacking};
    num_fp8 = num_others = 0;
    return r->node.op == MS_OP_GROUPED ? ms_cuda_grouped(&call) : ms_cuda_einsum(&call);
}

static void multiply(product_run *r, ms_real_type type)
{
    ASSERT_OK(try_multiply(r, type), test_cx());
}

static product_run *run_product(const product_case *c, uint64_t seed)
{
    product_run *r = MS_NEW(test_cx()->arena, product_run);
    ms_rng rng = ms_rng_seed(seed);
    char dims[3][MS_MAX_DIMS + 1] = {"", "", ""};
    int term = 0;
    for (const char *s = c->text; *s != '\0'; s++) {
        if (*s == ',' || *s == '>')
            term++;
        else if (*s != '-')
            dims[term][strlen(dims[term])] = *s;
    }
    r->program = (ms_program){.tensors = r->tensors,
                              .nodes = &r->node,
                              .num_nodes = 1,
                              .num_tensors = 3,
                              .compute_bytes = 2};
    for (int d = 0; d < 6; d++)
        r->program.mesh_size[d / 3][d % 3] = 1;
    read_sizes(r, c->sizes);
    r->node = (ms_node){
        .op = (unsigned char)(c->routing != NULL ? MS_OP_GROUPED : MS_OP_EINSUM),
        .einsum = c->text,
        .name = "product",
        .in = {0, 1},
        .out = {2},
        .num_in = 2,
        .num_out = 1};
    r->op = (ms_op_call){.program = &r->program, .node = &r->node, .routing = c->routing};
    for (int i = 0; i < 3; i++) {
        make_operand(r, c, i, dims[i], &rng);
        if (i < 2)
            r->op.in[i] = &r->local[i];
        else
            r->op.out[0] = &r->local[i];
    }
    ms_precision precision = ms_precision_of(MS_REAL_FP8);
    bool grouped = c->routing != NULL;
    r->memory[3] = take((grouped ? ms_cuda_fp8_bytes : ms_cuda_einsum_bytes)(
        &r->program, &r->node, &precision));
    multiply(r, MS_REAL_FP8);
    return r;
}

static void end_product(product_run *r)
{
    for (int i = 0; i < 4; i++)
        free(r->memory[i]);
}

/* Greatest rounding error of x in an FP8 format scaled to the largest value `most`: half
 * a unit of the last bit, or of the smallest subnormal. */
static double half_unit(ms_scalar format, double x, double most)
{
    bool is_e4m3 = format == MS_SCALAR_E4M3;
    double relative = is_e4m3 ? 0x1p-4 : 0x1p-3, smallest = is_e4m3 ? 0x1p-10 : 0x1p-17,
           top = is_e4m3 ? 448 : 57344;
    return fmax(relative * fabs(x), smallest * most / top);
}

static double largest_value(const double *x, long count)
{
    double most = 0;
    for (long i = 0; i < count; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

/* Sums of a b over the contracted indices: `plain` of the given operands, `rounded` of
 * the operands rounded to FP8, `apart` the greatest difference of both. */
typedef struct sums {
    double plain, rounded, apart;
} sums;

static double rounded_value(ms_scalar format, double x, double most)
{
    float largest = (float)ms_fp8_largest(format), scale = largest / (float)most,
          back = (float)most / largest;
    return ms_fp8_value(format, ms_fp8_nearest(format, (double)((float)x * scale))) *
           (double)back;
}

/* Computes one element of an EINSUM by loops; at[letter] is the element's index of each
 * letter. */
static sums sum_over(const product_case *c, const product_run *r, long at['z' + 1])
{
    sums s = {0};
    char terms[8] = "";
    const char *arrow = strchr(c->text, '>') + 1;
    for (const char *l = r->tensors[0].dims; *l != '\0'; l++)
        if (strchr(arrow, *l) == NULL)
            terms[strlen(terms)] = *l;
    long num = 1;
    for (const char *l = terms; *l != '\0'; l++)
        num *= r->size[(unsigned char)*l];
    ms_scalar format[2];
    double most[2];
    for (int i = 0; i < 2; i++) {
        format[i] = c->role[i] == MS_ROLE_GRADIENT ? MS_SCALAR_E5M2 : MS_SCALAR_E4M3;
        most[i] = largest_value(r->values[i], r->local[i].count);
    }
    for (long t = 0; t < num; t++) {
        long rest = t;
        double x[2], y[2], d[2];
        for (const char *l = terms; *l != '\0'; l++) {
            at[(unsigned char)*l] = rest % r->size[(unsigned char)*l];
            rest /= r->size[(unsigned char)*l];
        }
        for (int i = 0; i < 2; i++) {
            long index = 0;
            for (const char *l = r->tensors[i].dims; *l != '\0'; l++)
                index = index * r->size[(unsigned char)*l] + at[(unsigned char)*l];
            x[i] = r->values[i][index];
            y[i] = rounded_value(format[i], x[i], most[i]);
            d[i] = half_unit(format[i], x[i], most[i]);
        }
        s.plain += x[0] * x[1];
        s.rounded += y[0] * y[1];
        s.apart += fabs(x[0]) * d[1] + fabs(x[1]) * d[0] + d[0] * d[1];
    }
    return s;
}

/* Checks every element: near the product of the FP8-rounded operands up to the last
 * rounding, and near the exact product within the error of the formats. */
static void check_product(const product_case *c, const product_run *r)
{
    const ms_local *out = &r->local[2];
    bool is_added = c->role[2] == MS_ROLE_WEIGHT_GRADIENT;
    double *got = MS_NEW_ARRAY(test_cx()->arena, out->count, double);
    ms_case_load((ms_scalar)out->scalar, got, out->data, out->count);
    for (long i = 0; i < out->count; i++) {
        long at['z' + 1], rest = i;
        for (int d = out->num_dims; d-- > 0; rest /= out->shape[d])
            at[(unsigned char)r->tensors[2].dims[d]] = rest % out->shape[d];
        sums s = sum_over(c, r, at);
        double was = is_added ? r->values[2][i] : 0;
        double fp32 = 1e-5 * (1 + fabs(was) + fabs(s.rounded) + s.apart),
               last_bit = is_added ? fp32 : 0x1p-8 * fabs(s.rounded) + fp32;
        if (!(fabs(got[i] - was - s.rounded) <= last_bit))
            fail_msg("%s: element %ld is %.9g, of rounded operands %.9g", c->text, i,
                     got[i], was + s.rounded);
        if (!(fabs(got[i] - was - s.plain) <= s.apart + last_bit))
            fail_msg("%s: element %ld is %.9g, %.3g from %.9g, more than %.3g", c->text,
                     i, got[i], got[i] - was - s.plain, was + s.plain, s.apart);
    }
}

#define ACT  MS_ROLE_ACTIVATION
#define WEI  MS_ROLE_WEIGHT
#define GRA  MS_ROLE_GRADIENT
#define WGRA MS_ROLE_WEIGHT_GRADIENT

static void products_are_those_of_rounded_operands(void **state)
{
    (void)state;
    const product_case cases[] = {
        {"bsh,hf->bsf", {ACT, WEI, ACT}, "b2 s9 h32 f48", NULL, 0},
        {"bsh,hnd->bsnd", {ACT, WEI, ACT}, "b1 s5 h40 n4 d8", NULL, 0},
        {"bsnw,nwh->bsh", {ACT, WEI, ACT}, "b1 s64 n2 w24 h80", NULL, 0},
        {"bsf,hf->bsh", {GRA, WEI, GRA}, "b2 s7 h32 f72", NULL, 0},
        {"bsh,bsf->hf", {ACT, GRA, WGRA}, "b2 s17 h33 f48", NULL, 0},
        {"bsh,bsf->fh", {ACT, GRA, WGRA}, "b1 s16 h32 f19", NULL, 0},
        {"bsf,bsh->hf", {GRA, ACT, WGRA}, "b1 s70 h16 f64", NULL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const product_case *c = &cases[i];
        bool is_forward = c->role[0] != GRA && c->role[1] != GRA;
        product_run *r = run_product(c, 300 + i);
        ASSERT_INT(num_fp8, 1);
        ASSERT_INT(num_others, 0);
        ASSERT_INT(was_lacking, false);
        ASSERT_INT(last.fast, is_forward);
        assert_true(is_forward || last.type == MS_SCALAR_E5M2 ||
                    last.type_b == MS_SCALAR_E5M2);
        assert_true(last.type == MS_SCALAR_E4M3 || last.type_b == MS_SCALAR_E4M3);
        check_product(c, r);
        end_product(r);
    }
}

static void other_products_stay_in_bf16(void **state)
{
    (void)state;
    const product_case cases[] = {
        /* head and router, which are kept in bf16 */
        {"bsh,vh->bsv", {ACT, WEI, ACT}, "b1 s16 h32 v64", NULL, 0},
        {"bsh,he->bse", {ACT, WEI, ACT}, "b1 s16 h32 e16", NULL, 0},
        /* product of two activations, without a weight */
        {"sh,hf->sf", {ACT, ACT, ACT}, "s16 h32 f16", NULL, 0},
        {"bnsd,bntd->bnst", {ACT, WEI, ACT}, "b2 n2 s16 t16 d16", NULL, 0},
        /* result rows that are no multiple of 16 bytes; too few terms; a result at an odd
         * address */
        {"sh,hf->sf", {ACT, WEI, ACT}, "s16 h32 f24", NULL, 0},
        {"sh,hf->sf", {ACT, WEI, ACT}, "s16 h12 f16", NULL, 0},
        {"sh,sf->hf", {ACT, GRA, WGRA}, "s16 h32 f16", NULL, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        product_run *r = run_product(&cases[i], 400 + i);
        ASSERT_INT(num_fp8, 0);
        ASSERT_INT(num_others, 1);
        end_product(r);
    }
}

static void products_of_nothing_stay_nothing(void **state)
{
    (void)state;
    const product_case none = {"sh,hf->sf", {ACT, WEI, ACT}, "s0 h32 f16", NULL, 0};
    product_run *r = run_product(&none, 1);
    ASSERT_INT(num_fp8 + num_others, 0);
    end_product(r);
}

/* Returns what the product gave (less the earlier values of an added gradient), and
 * restores the result's earlier values. */
static double *take_result(product_run *r)
{
    ms_local *out = &r->local[2];
    bool is_added = out->scalar == MS_SCALAR_FP32;
    double *got = MS_NEW_ARRAY(test_cx()->arena, out->count, double);
    ms_case_load((ms_scalar)out->scalar, got, out->data, out->count);
    for (long i = 0; i < out->count && is_added; i++)
        got[i] -= r->values[2][i];
    ms_case_store((ms_scalar)out->scalar, out->data, r->values[2], out->count);
    return got;
}

/* Experts with odd numbers of rows and with none. Terms of a sum have random relative
 * errors of up to 2^-4 + 2^-3, so the result is within a tenth of bf16's; with the scale
 * of another expert it would not be. */
static void experts_have_products_of_their_own(void **state)
{
    (void)state;
    const long counts[4] = {17, 0, 31, 3};
    const ms_routing routing = {
        .num_sources = 1, .num_experts = 4, .counts = counts, .num_rows = 51};
    const product_case cases[] = {
        {"rh,ehi->ri", {ACT, WEI, ACT}, "r51 e4 h48 i32", &routing, 0},
        {"ri,ehi->rh", {GRA, WEI, GRA}, "r51 e4 h48 i32", &routing, 0},
        {"rh,ri->ehi", {ACT, GRA, WGRA}, "r51 e4 h48 i32", &routing, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        product_run *r = run_product(&cases[i], 500 + i);
        /* the weight gradient of 3 rows has too few terms for FP8 */
        bool is_weight = i == 2;
        ASSERT_INT(num_fp8, is_weight ? 2 : 3);
        const double *in_fp8 = take_result(r);
        multiply(r, MS_REAL_BF16);
        ASSERT_INT(num_fp8, 0);
        const double *in_bf16 = take_result(r);
        double square = 0, apart = 0;
        for (long j = 0; j < r->local[2].count; j++) {
            square += in_bf16[j] * in_bf16[j];
            apart += (in_fp8[j] - in_bf16[j]) * (in_fp8[j] - in_bf16[j]);
        }
        assert_true(apart > 0 && apart < 0.1 * 0.1 * square);
        end_product(r);
    }
}

/* One expert has more rows than the workspace is made for: the product is made in
 * bf16. */
static void too_many_rows_are_multiplied_in_bf16(void **state)
{
    (void)state;
    const long counts[2] = {60, 0};
    const ms_routing routing = {
        .num_sources = 1, .num_experts = 2, .counts = counts, .num_rows = 60};
    const product_case fits = {
        "rh,ehi->ri", {ACT, WEI, ACT}, "r60 e2 h48 i32", &routing, 0};
    product_run *r = run_product(&fits, 9);
    ASSERT_INT(num_fp8, 1);
    r->program.size[MS_DIM_ROWS - '0'] = 30;
    multiply(r, MS_REAL_FP8);
    ASSERT_INT(num_fp8, 0);
    ASSERT_INT(num_others, 1);
    end_product(r);
}

/* Products without an FP8 algorithm in the library give the bits of bf16 and do not touch
 * the workspace. */
static void what_the_library_lacks_is_multiplied_in_bf16(void **state)
{
    (void)state;
    const product_case cases[] = {
        {"bsh,hf->bsf", {ACT, WEI, ACT}, "b2 s9 h32 f48", NULL, 0},
        {"bsh,bsf->hf", {ACT, GRA, WGRA}, "b2 s17 h33 f48", NULL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        has_none = true;
        product_run *r = run_product(&cases[i], 600 + i);
        has_none = false;
        ASSERT_INT(num_fp8, 0);
        ASSERT_INT(num_others, 1);
        ASSERT_INT(was_lacking, true);
        ASSERT_INT(*(unsigned char *)r->memory[3], 0xff);
        const double *got = take_result(r);
        multiply(r, MS_REAL_BF16);
        ASSERT_INT(was_lacking, false);
        const double *want = take_result(r);
        for (long j = 0; j < r->local[2].count; j++)
            ASSERT_NEAR(got[j], want[j], 0);
        fails_to_say = true;
        ASSERT_INT(try_multiply(r, MS_REAL_FP8), MS_EIO);
        fails_to_say = false;
        ASSERT_INT(num_fp8 + num_others, 0);
        end_product(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_those_of_rounded_operands),
        cmocka_unit_test(other_products_stay_in_bf16),
        cmocka_unit_test(products_of_nothing_stay_nothing),
        cmocka_unit_test(experts_have_products_of_their_own),
        cmocka_unit_test(too_many_rows_are_multiplied_in_bf16),
        cmocka_unit_test(what_the_library_lacks_is_multiplied_in_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
