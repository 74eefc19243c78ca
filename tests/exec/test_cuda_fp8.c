/* Products in FP8: rounding, scales, casts, and which products are made so. */
#include "exec/cuda_fp8.h"
#include "exec/cuda_product.h"
#include "tests/support/cuda_cases.h"
#include "tests/support/cuda_emulated.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/cuda_fake_numbers.h"
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUM_CODES 256
#define NUM_BF16  (1L << 16)

static const ms_scalar formats[2] = {MS_SCALAR_E4M3, MS_SCALAR_E5M2};
static const double largest[2] = {448, 57344};

static void *take(size_t bytes)
{
    void *memory = NULL;
    assert_int_equal(posix_memalign(&memory, 256, bytes > 0 ? bytes : 1), 0);
    memset(memory, 0xff, bytes);
    return memory;
}

static double decoded(int format, unsigned code)
{
    unsigned char bits = (unsigned char)code;
    return fake_number(formats[format], &bits, 0);
}

/* ---- rounding ---- */

/* By looking at all numbers of the format: the nearest, of two the even one; beyond the largest that one. */
static unsigned nearest(int format, double x)
{
    unsigned best = 0, sign = signbit(x) ? 0x80 : 0;
    if (isnan(x))
        return sign | 0x7f;
    for (unsigned code = 0; code < 0x80; code++) {
        double y = decoded(format, code), far = fabs(fabs(x) - y),
               so_far = fabs(fabs(x) - decoded(format, best));
        if (isfinite(y) && (far < so_far || (far == so_far && code % 2 == 0)))
            best = code;
    }
    return sign | (fabs(x) > largest[format] ? nearest(format, largest[format]) : best);
}

/* All numbers of bf16 times `scale`, which is what kernels round. */
static void expect_rounded(float scale)
{
    unsigned short *x = take(NUM_BF16 * sizeof *x);
    unsigned char *got = take(NUM_BF16);
    ms_cuda_fp8_scales *scales = take(sizeof *scales);
    *scales = (ms_cuda_fp8_scales){.to_fp8 = {scale, scale}};
    for (long i = 0; i < NUM_BF16; i++)
        x[i] = (unsigned short)i;
    for (int f = 0; f < 2; f++) {
        ms_cuda_fp8_matrix m = {
            .x = x, .rows = 256, .cols = NUM_BF16 / 256, .format = formats[f], .to = got};
        ms_cuda_fp8_cast(NULL, &m, scales, f);
        for (long i = 0; i < NUM_BF16; i++) {
            double value = (double)((float)ms_case_from_bf16(x[i]) * scale);
            unsigned want = nearest(f, value),
                     bits = isnan(value) ? got[i] | 0x80U : got[i];
            if (bits != (isnan(value) ? want | 0x80U : want))
                fail_msg("%a is %#x in %s, not %#x", value, got[i],
                         ms_scalar_names[formats[f]], want);
        }
    }
    free(x);
    free(got);
    free(scales);
}

static void known_numbers(void **state)
{
    (void)state;
    const struct {
        unsigned code[2];
        double value[2];
    } known[] = {
        {{0x00, 0x00}, {0, 0}},
        {{0x01, 0x01}, {0x1p-9, 0x1p-16}},     /* smallest */
        {{0x07, 0x03}, {0x1.cp-7, 0x1.8p-15}}, /* largest subnormal */
        {{0x08, 0x04}, {0x1p-6, 0x1p-14}},     /* smallest normal */
        {{0x38, 0x3c}, {1, 1}},
        {{0x7e, 0x7b}, {448, 57344}},
        {{0xfe, 0xfb}, {-448, -57344}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (int f = 0; f < 2; f++)
            ASSERT_NEAR(decoded(f, known[i].code[f]), known[i].value[f], 0);
    assert_true(isnan(decoded(0, 0x7f)) && isnan(decoded(1, 0x7f)));
    assert_true(isinf(decoded(1, 0x7c)));
}

/* The middle between any two neighbours is a bf16: times a little more or less than 1 it is next to it. */
static void numbers_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    const float one[] = {1, 1 + 0x1p-23f, 1 - 0x1p-24f};
    for (int i = 0; i < 3; i++)
        expect_rounded(one[i]);
    ms_rng rng = ms_rng_seed(8);
    for (int i = 0; i < 3; i++)
        expect_rounded((float)exp2(20 * ms_rng_uniform(&rng) - 10));
}

static void every_number_of_a_format_is_its_own(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++)
        for (unsigned code = 0; code < NUM_CODES; code++)
            if (isfinite(decoded(f, code)))
                ASSERT_INT(nearest(f, decoded(f, code)), code);
}

/* ---- scales and casts ---- */

typedef struct cast_case {
    long rows, cols;
    bool transpose;
    int format;
    size_t shift; /* elements from an aligned address */
} cast_case;

static long padded(long x)
{
    return (x + 15) / 16 * 16;
}

static unsigned short *random_bf16(ms_rng *rng, long count, size_t shift, double exponent)
{
    unsigned short *x = take(((size_t)count + shift) * sizeof *x);
    for (long i = 0; i < count; i++) {
        double value =
            (2 * ms_rng_uniform(rng) - 1) * exp2(exponent - 12 * ms_rng_uniform(rng));
        ms_case_store(MS_SCALAR_BF16, x + shift + i, &value, 1);
    }
    return x;
}

static double bf16_at(const unsigned short *x, long i)
{
    return ms_case_from_bf16(x[i]);
}

static double largest_of(const unsigned short *x, long count)
{
    double most = 0;
    for (long i = 0; i < count; i++)
        most = fmax(most, fabs(bf16_at(x, i)));
    return most;
}

static void check_cast(const cast_case *c, const unsigned short *x,
                       const unsigned char *got, float scale)
{
    long rows = c->transpose ? c->cols : c->rows, cols = c->transpose ? c->rows : c->cols;
    for (long row = 0; row < rows; row++) {
        for (long col = 0; col < padded(cols); col++) {
            unsigned want = 0;
            if (col < cols)
                want = nearest(
                    c->format,
                    (double)((float)bf16_at(x, c->transpose ? col * c->cols + row
                                                            : row * c->cols + col) *
                             scale));
            if (got[row * padded(cols) + col] != want)
                fail_msg("(%ld, %ld)%s: element %ld, %ld is %#x, not %#x", c->rows,
                         c->cols, c->transpose ? " transposed" : "", row, col,
                         got[row * padded(cols) + col], want);
        }
    }
}

/* Both operands of a pair, in three orders of threads. */
static void run_casts(const cast_case pair[2], uint64_t seed)
{
    ms_rng rng = ms_rng_seed(seed);
    ms_cuda_fp8_matrix m[2];
    ms_cuda_fp8_scales *scales = take(sizeof *scales);
    unsigned *parts = take(MS_CUDA_FP8_PART_BYTES);
    unsigned short *memory[2];
    const unsigned long orders[] = {0, 1, 17};
    for (int i = 0; i < 2; i++) {
        const cast_case *c = &pair[i];
        long rows = c->transpose ? c->cols : c->rows,
             cols = c->transpose ? c->rows : c->cols;
        memory[i] = random_bf16(&rng, c->rows * c->cols, c->shift, i == 0 ? 3 : -40);
        m[i] = (ms_cuda_fp8_matrix){.x = memory[i] + c->shift,
                                    .rows = c->rows,
                                    .cols = c->cols,
                                    .transpose = c->transpose,
                                    .format = formats[c->format],
                                    .to = take((size_t)(rows * padded(cols)))};
    }
    for (int order = 0; order < 3; order++) {
        ms_cuda_emulated_set_seed(orders[order]);
        ms_cuda_fp8_find_scales(NULL, scales, parts, m);
        for (int i = 0; i < 2; i++) {
            const cast_case *c = &pair[i];
            float most = (float)largest_of(m[i].x, c->rows * c->cols),
                  top = (float)largest[c->format];
            ASSERT_NEAR((double)scales->to_fp8[i], (double)(top / most), 0);
            ASSERT_NEAR((double)scales->from_fp8[i], (double)(most / top), 0);
            ms_cuda_fp8_cast(NULL, &m[i], scales, i);
            check_cast(c, m[i].x, m[i].to, scales->to_fp8[i]);
        }
    }
    for (int i = 0; i < 2; i++) {
        free(memory[i]);
        free(m[i].to);
    }
    free(scales);
    free(parts);
}

static void operands_are_rounded_where_they_lie_and_turned(void **state)
{
    (void)state;
    const cast_case cases[][2] = {
        {{16, 32, false, 0, 0}, {32, 16, true, 1, 0}},
        {{1, 1, false, 0, 0}, {1, 1, true, 0, 0}},
        {{64, 64, true, 0, 0}, {128, 192, true, 1, 0}},
        {{17, 24, false, 1, 0}, {24, 17, true, 0, 0}},
        {{3, 100, false, 0, 1}, {100, 72, true, 0, 3}},
        {{65, 63, true, 0, 0}, {63, 65, false, 1, 0}},
        {{200, 8, true, 1, 0}, {8, 200, false, 0, 0}},
        {{70, 1, true, 0, 0}, {1, 70, false, 0, 5}},
        {{130, 80, false, 0, 0}, {80, 130, true, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_casts(cases[i], 40 + i);
    ms_cuda_emulated_set_seed(0);
}

/* More elements than one block takes: several parts. */
static void large_operands_have_many_parts(void **state)
{
    (void)state;
    const cast_case pair[2] = {{129, 512, false, 0, 0}, {48, 40, true, 1, 0}};
    run_casts(pair, 60);
    ms_cuda_emulated_set_seed(0);
}

static void scale_two(ms_cuda_fp8_scales *scales, const double *x, const double *y)
{
    static unsigned parts[2 * MS_CUDA_FP8_PARTS];
    unsigned short bits[2][4];
    ms_cuda_fp8_matrix m[2] = {
        {.x = bits[0], .rows = 1, .cols = 4, .format = MS_SCALAR_E4M3},
        {.x = bits[1], .rows = 1, .cols = 4, .format = MS_SCALAR_E5M2}};
    ms_case_store(MS_SCALAR_BF16, bits[0], x, 4);
    ms_case_store(MS_SCALAR_BF16, bits[1], y, 4);
    ms_cuda_fp8_find_scales(NULL, scales, parts, m);
}

/* Zeros have a scale that is a number; a NaN or an infinity is not hidden. */
static void scales_of_odd_operands(void **state)
{
    (void)state;
    ms_cuda_fp8_scales s;
    scale_two(&s, (const double[]){0, 0, -0.0, 0}, (const double[]){0x1p-120, 0, 0, 0});
    for (int i = 0; i < 2; i++) {
        assert_true(isnormal(s.to_fp8[i]) && isnormal(s.from_fp8[i]));
        ASSERT_NEAR((double)s.from_fp8[i], (double)(0x1p-100f / (float)largest[i]), 0);
    }
    scale_two(&s, (const double[]){1, HUGE_VAL, 2, 3},
              (const double[]){1, 2, (double)NAN, 4});
    assert_true(isinf(s.from_fp8[0]));
    ASSERT_NEAR((double)s.to_fp8[0], 0, 0); /* zeros times infinity: NaN */
    assert_true(isnan(s.from_fp8[1]));
}

/* ---- products ---- */

static ms_cuda_product last; /* that the library was asked for */
static int num_fp8, num_others;

static ms_status noted_product(ms_ctx *cx, ms_cuda_stream *stream,
                               const ms_cuda_product *p)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    last = *p;
    *(ms_scalar_is_fp8(p->type) ? &num_fp8 : &num_others) += 1;
    pthread_mutex_unlock(&lock);
    return ms_cuda_fake_driver.product(cx, stream, p);
}

static const ms_cuda_driver *noting_driver(void)
{
    static ms_cuda_driver driver;
    driver = ms_cuda_fake_driver;
    driver.product = noted_product;
    return &driver;
}

typedef struct product_case {
    const char *text;
    ms_role role[3];
    long size['z' + 1];
    ms_op op;
    const ms_routing *routing;
    size_t result_shift; /* elements from an aligned address */
} product_case;

/* An EINSUM or GROUPED node with its operands in bf16. */
typedef struct product_run {
    ms_tensor tensors[3];
    ms_program program;
    ms_node node;
    ms_local local[3];
    void *memory[4];
    ms_op_call op;
    ms_precision precision;
    double *values[3]; /* c: before */
} product_run;

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
        x->count *= x->shape[x->num_dims++] = c->size[(unsigned char)*d];
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
    for (int letter = '0'; letter <= 'z'; letter++)
        r->program.size[letter - '0'] = (double)c->size[letter];
    r->node = (ms_node){.op = (unsigned char)c->op,
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
    r->precision = ms_precision_of(MS_REAL_FP8);
    bool grouped = c->op == MS_OP_GROUPED;
    r->memory[3] = take((grouped ? ms_cuda_fp8_bytes : ms_cuda_einsum_bytes)(
        &r->program, &r->node, &r->precision));
    ms_cuda_call call = {.cx = test_cx(),
                         .driver = noting_driver(),
                         .precision = r->precision,
                         .op = &r->op,
                         .workspace = r->memory[3]};
    num_fp8 = num_others = 0;
    ASSERT_OK((grouped ? ms_cuda_grouped : ms_cuda_einsum)(&call), call.cx);
    return r;
}

static void end_product(product_run *r)
{
    for (int i = 0; i < 4; i++)
        free(r->memory[i]);
}

/* How far rounding moves x, at most: half a unit of its last bit, or of the smallest numbers. */
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

/* Sums over all indices of a b, of the numbers that FP8 made of them, and of how far they may be apart. */
typedef struct sums {
    double plain, rounded, apart;
} sums;

static double rounded_value(int format, double x, double most)
{
    float scale = (float)largest[format] / (float)most,
          back = (float)most / (float)largest[format];
    return decoded(format, nearest(format, (double)((float)x * scale))) * (double)back;
}

/* One EINSUM by its letters, slowly: of the element of c whose letters have the values `at`. */
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
        num *= c->size[(unsigned char)*l];
    int format[2];
    double most[2];
    for (int i = 0; i < 2; i++) {
        format[i] = c->role[i] == MS_ROLE_GRADIENT;
        most[i] = largest_value(r->values[i], r->local[i].count);
    }
    for (long t = 0; t < num; t++) {
        long rest = t;
        double x[2], y[2], d[2];
        for (const char *l = terms; *l != '\0'; l++) {
            at[(unsigned char)*l] = rest % c->size[(unsigned char)*l];
            rest /= c->size[(unsigned char)*l];
        }
        for (int i = 0; i < 2; i++) {
            long index = 0;
            for (const char *l = r->tensors[i].dims; *l != '\0'; l++)
                index = index * c->size[(unsigned char)*l] + at[(unsigned char)*l];
            x[i] = r->values[i][index];
            y[i] = rounded_value(format[i], x[i], most[i]);
            d[i] = half_unit(formats[format[i]], x[i], most[i]);
        }
        s.plain += x[0] * x[1];
        s.rounded += y[0] * y[1];
        s.apart += fabs(x[0]) * d[1] + fabs(x[1]) * d[0] + d[0] * d[1];
    }
    return s;
}

/* Every element: of the rounded operands but for the last rounding, of the given ones as far as the formats are. */
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
        {"bsh,hf->bsf",
         {ACT, WEI, ACT},
         {['b'] = 2, ['s'] = 9, ['h'] = 32, ['f'] = 48},
         0,
         NULL,
         0},
        {"bsh,hnd->bsnd",
         {ACT, WEI, ACT},
         {['b'] = 1, ['s'] = 5, ['h'] = 40, ['n'] = 4, ['d'] = 8},
         0,
         NULL,
         0},
        {"bsnw,nwh->bsh",
         {ACT, WEI, ACT},
         {['b'] = 1, ['s'] = 64, ['n'] = 2, ['w'] = 24, ['h'] = 80},
         0,
         NULL,
         0},
        {"bsf,hf->bsh",
         {GRA, WEI, GRA},
         {['b'] = 2, ['s'] = 7, ['h'] = 32, ['f'] = 72},
         0,
         NULL,
         0},
        {"bsh,bsf->hf",
         {ACT, GRA, WGRA},
         {['b'] = 2, ['s'] = 17, ['h'] = 33, ['f'] = 48},
         0,
         NULL,
         0},
        {"bsh,bsf->fh",
         {ACT, GRA, WGRA},
         {['b'] = 1, ['s'] = 16, ['h'] = 32, ['f'] = 19},
         0,
         NULL,
         0},
        {"bsf,bsh->hf",
         {GRA, ACT, WGRA},
         {['b'] = 1, ['s'] = 70, ['h'] = 16, ['f'] = 64},
         0,
         NULL,
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const product_case *c = &cases[i];
        bool is_forward = c->role[0] != GRA && c->role[1] != GRA;
        product_run *r = run_product(c, 300 + i);
        ASSERT_INT(num_fp8, 1);
        ASSERT_INT(num_others, 0);
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
        /* head and router */
        {"bsh,vh->bsv",
         {ACT, WEI, ACT},
         {['b'] = 1, ['s'] = 16, ['h'] = 32, ['v'] = 64},
         0,
         NULL,
         0},
        {"bsh,he->bse",
         {ACT, WEI, ACT},
         {['b'] = 1, ['s'] = 16, ['h'] = 32, ['e'] = 16},
         0,
         NULL,
         0},
        /* of no weight */
        {"sh,hf->sf", {ACT, ACT, ACT}, {['s'] = 16, ['h'] = 32, ['f'] = 16}, 0, NULL, 0},
        {"bnsd,bntd->bnst",
         {ACT, WEI, ACT},
         {['b'] = 2, ['n'] = 2, ['s'] = 16, ['t'] = 16, ['d'] = 16},
         0,
         NULL,
         0},
        /* rows of the result are no multiple of 16 bytes; few terms; an odd address */
        {"sh,hf->sf", {ACT, WEI, ACT}, {['s'] = 16, ['h'] = 32, ['f'] = 24}, 0, NULL, 0},
        {"sh,hf->sf", {ACT, WEI, ACT}, {['s'] = 16, ['h'] = 12, ['f'] = 16}, 0, NULL, 0},
        {"sh,sf->hf", {ACT, GRA, WGRA}, {['s'] = 16, ['h'] = 32, ['f'] = 16}, 0, NULL, 1},
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
    const product_case none = {
        "sh,hf->sf", {ACT, WEI, ACT}, {['s'] = 0, ['h'] = 32, ['f'] = 16}, 0, NULL, 0};
    product_run *r = run_product(&none, 1);
    ASSERT_INT(num_fp8 + num_others, 0);
    end_product(r);
}

/* Experts with odd numbers of rows, and with none; each has scales of its own, so that all are near the unrounded products. */
static void experts_have_products_of_their_own(void **state)
{
    (void)state;
    const long counts[4] = {17, 0, 31, 3}, too_many[4] = {60, 0, 0, 0};
    ms_routing routing = {
        .num_sources = 1, .num_experts = 4, .counts = counts, .num_rows = 51};
    const product_case cases[] = {
        {"rh,ehi->ri",
         {ACT, WEI, ACT},
         {['r'] = 51, ['e'] = 4, ['h'] = 48, ['i'] = 32},
         MS_OP_GROUPED,
         &routing,
         0},
        {"ri,ehi->rh",
         {GRA, WEI, GRA},
         {['r'] = 51, ['e'] = 4, ['h'] = 48, ['i'] = 32},
         MS_OP_GROUPED,
         &routing,
         0},
        {"rh,ri->ehi",
         {ACT, GRA, WGRA},
         {['r'] = 51, ['e'] = 4, ['h'] = 48, ['i'] = 32},
         MS_OP_GROUPED,
         &routing,
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        product_run *r = run_product(&cases[i], 500 + i);
        bool is_weight = i == 2; /* 3 rows are too few terms */
        ASSERT_INT(num_fp8, is_weight ? 2 : 3);
        double *in_fp8 = MS_NEW_ARRAY(test_cx()->arena, r->local[2].count, double);
        double *in_bf16 = MS_NEW_ARRAY(test_cx()->arena, r->local[2].count, double);
        ms_scalar scalar = (ms_scalar)r->local[2].scalar;
        ms_case_load(scalar, in_fp8, r->local[2].data, r->local[2].count);
        ms_case_store(scalar, r->local[2].data, r->values[2], r->local[2].count);
        ms_cuda_call call = {.cx = test_cx(),
                             .driver = noting_driver(),
                             .precision = ms_precision_of(MS_REAL_BF16),
                             .op = &r->op};
        ASSERT_OK(ms_cuda_grouped(&call), call.cx);
        ms_case_load(scalar, in_bf16, r->local[2].data, r->local[2].count);
        /* 48 terms or less below 1, each 2^-4 + 2^-3 off at most, at random: a tenth of all is far */
        double square = 0, apart = 0;
        for (long j = 0; j < r->local[2].count; j++) {
            square += in_bf16[j] * in_bf16[j];
            apart += (in_fp8[j] - in_bf16[j]) * (in_fp8[j] - in_bf16[j]);
        }
        assert_true(apart > 0 && apart < 0.1 * 0.1 * square);
        end_product(r);
    }
    /* more than balanced routing gives to all experts: in bf16 */
    product_case over = cases[0];
    over.size['r'] = 60;
    routing = (ms_routing){
        .num_sources = 1, .num_experts = 4, .counts = too_many, .num_rows = 60};
    product_run *r = run_product(&over, 9);
    ASSERT_INT(num_fp8, 1);
    r->program.size['r' - '0'] = 30;
    num_fp8 = num_others = 0;
    ms_cuda_call call = {.cx = test_cx(),
                         .driver = noting_driver(),
                         .op = &r->op,
                         .precision = r->precision,
                         .workspace = r->memory[3]};
    ASSERT_OK(ms_cuda_grouped(&call), call.cx);
    ASSERT_INT(num_fp8, 0);
    assert_true(num_others > 0);
    end_product(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_numbers),
        cmocka_unit_test(every_number_of_a_format_is_its_own),
        cmocka_unit_test(numbers_are_rounded_to_the_nearest),
        cmocka_unit_test(operands_are_rounded_where_they_lie_and_turned),
        cmocka_unit_test(large_operands_have_many_parts),
        cmocka_unit_test(scales_of_odd_operands),
        cmocka_unit_test(products_are_those_of_rounded_operands),
        cmocka_unit_test(other_products_stay_in_bf16),
        cmocka_unit_test(products_of_nothing_stay_nothing),
        cmocka_unit_test(experts_have_products_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
