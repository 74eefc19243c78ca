/* Tests of EINSUM and GROUPED (per-expert) products on a GPU: the matrix products
 * requested from the library, and results against the CPU kernels in fp64. */
#include "exec/cuda/cuda_gemm.h"
#include "tests/support/cuda_cases.h"
#include "tests/support/cuda_fake.h"
#include "tests/test.h"

static const ms_cuda_kernel einsum = {.op = ms_cuda_einsum,
                                      .workspace = ms_cuda_einsum_bytes};
static const ms_cuda_kernel grouped = {.op = ms_cuda_grouped};

/* ---- hand-made nodes ---- */

typedef struct einsum_case {
    const char *text, *a, *b, *c; /* einsum, and shapes of a, b and c */
    ms_case_numbers numbers_a, numbers_b, numbers_c;
} einsum_case;

static void run_einsum(const einsum_case *is, uint64_t seed)
{
    ms_cuda_case *c = ms_cuda_case_make(test_cx()->arena, MS_OP_EINSUM, seed);
    char dims[3][MS_MAX_DIMS + 1] = {"", "", ""};
    int term = 0;
    for (const char *s = is->text; *s != '\0'; s++) {
        if (*s == ',' || *s == '>')
            term++;
        else if (*s != '-')
            dims[term][strlen(dims[term])] = *s;
    }
    c->node.einsum = is->text;
    ms_cuda_case_in(c, dims[0], is->a, is->numbers_a);
    ms_cuda_case_in(c, dims[1], is->b, is->numbers_b);
    ms_cuda_case_out(c, dims[2], is->c, is->numbers_c);
    ms_cuda_case_run(c, is->text, &einsum);
}

#define REAL MS_CASE_REAL
#define STAT MS_CASE_STATISTIC
#define GRAD MS_CASE_WEIGHT_GRADIENT

static void einsums_of_layers_are_products(void **state)
{
    (void)state;
    const einsum_case cases[] = {
        {"bsh,hnd->bsnd", "2 3 5", "5 3 4", "2 3 3 4", REAL, REAL, REAL},
        {"bsnd,hnd->bsh", "2 3 3 4", "5 3 4", "2 3 5", REAL, REAL, REAL},
        {"bsh,bsnd->hnd", "2 3 5", "2 3 3 4", "5 3 4", REAL, REAL, GRAD},
        {"bsnw,nwh->bsh", "1 17 2 8", "2 8 16", "1 17 16", REAL, REAL, REAL},
        {"bsh,vh->bsv", "2 7 33", "65 33", "2 7 65", REAL, REAL, REAL},
        {"bsv,vh->bsh", "2 7 65", "65 33", "2 7 33", REAL, REAL, REAL},
        {"bsv,bsh->vh", "2 7 65", "2 7 33", "65 33", REAL, REAL, GRAD},
        /* transposed result c */
        {"bsh,bsv->vh", "1 9 3", "1 9 4", "4 3", REAL, REAL, GRAD},
        {"bsh,h1->bs1", "3 4 31", "31 1", "3 4 1", REAL, REAL, REAL},
        {"bnsd,bntd->bnst", "2 3 5 4", "2 3 6 4", "2 3 5 6", REAL, REAL,
         REAL}, /* batched product */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        run_einsum(&cases[i], i);
}

/* Products of fp32 and bf16 operands (router logits are fp32) are computed in fp32. */
static void unlike_types_meet_in_the_wider_one(void **state)
{
    (void)state;
    const einsum_case cases[] = {
        {"bsh,he->bse", "2 5 37", "37 8", "2 5 8", REAL, REAL, STAT},
        {"bse,he->bsh", "2 5 8", "37 8", "2 5 37", STAT, REAL, REAL},
        {"bsh,bse->he", "2 5 37", "2 5 8", "37 8", REAL, STAT, GRAD},
        {"bse,bsh->he", "2 5 8", "2 5 37", "37 8", STAT, REAL, GRAD},
        {"bsh,he->bse", "1 3 7", "7 2", "1 3 2", STAT, STAT, REAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        run_einsum(&cases[i], 100 + i);
}

static void products_of_nothing_are_nothing(void **state)
{
    (void)state;
    const einsum_case cases[] = {
        /* sums without terms are 0 */
        {"bsh,hf->bsf", "2 3 0", "0 4", "2 3 4", REAL, REAL, REAL},
        /* a gradient stays as it was: nothing is added */
        {"bsh,bsf->hf", "2 0 3", "2 0 4", "3 4", REAL, REAL, GRAD},
        {"bsh,hf->bsf", "0 3 5", "5 4", "0 3 4", REAL, REAL, REAL},
        {"bse,he->bsh", "1 0 2", "3 2", "1 0 3", STAT, REAL, REAL},
        {"bnsd,bntd->bnst", "0 3 5 4", "0 3 6 4", "0 3 5 6", REAL, REAL, REAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        run_einsum(&cases[i], 200 + i);
}

/* Runs a grouped product of 4 experts with rows from 3 source ranks; the second expert
 * has no rows. */
static void run_grouped(const char *text, const char *const shapes[3], bool is_gradient)
{
    const long counts[12] = {1, 0, 5, 2, 3, 0, 0, 1, 0, 0, 7, 4};
    ms_cuda_case *c = ms_cuda_case_make(test_cx()->arena, MS_OP_GROUPED, 31);
    const char *comma = strchr(text, ','), *arrow = strstr(text, "->");
    char dims[3][MS_MAX_DIMS + 1] = {"", "", ""};
    memcpy(dims[0], text, (size_t)(comma - text));
    memcpy(dims[1], comma + 1, (size_t)(arrow - comma - 1));
    memcpy(dims[2], arrow + 2, strlen(arrow + 2));
    c->node.einsum = text;
    c->node.name = "experts";
    c->routing = (ms_routing){
        .num_sources = 3, .num_experts = 4, .counts = counts, .num_rows = 23};
    ms_cuda_case_in(c, dims[0], shapes[0], REAL);
    ms_cuda_case_in(c, dims[1], shapes[1], REAL);
    ms_cuda_case_out(c, dims[2], shapes[2], is_gradient ? GRAD : REAL);
    ms_cuda_case_run(c, text, &grouped);
}

static void every_expert_has_its_product(void **state)
{
    (void)state;
    run_grouped("rh,ehi->ri", (const char *const[]){"23 6", "4 6 5", "23 5"}, false);
    run_grouped("ri,eih->rh", (const char *const[]){"23 5", "4 5 6", "23 6"}, false);
    run_grouped("ri,ehi->rh", (const char *const[]){"23 5", "4 6 5", "23 6"}, false);
    run_grouped("rh,ri->ehi", (const char *const[]){"23 6", "23 5", "4 6 5"}, true);
    run_grouped("ri,rh->ehi", (const char *const[]){"23 5", "23 6", "4 6 5"}, true);
}

static void a_weight_without_a_gradient_is_left_out(void **state)
{
    (void)state;
    ms_cuda_case *c = ms_cuda_case_make(test_cx()->arena, MS_OP_EINSUM, 1);
    c->node.einsum = "bsh,bsf->hf";
    ms_cuda_case_in(c, "bsh", "1 2 3", REAL);
    ms_cuda_case_in(c, "bsf", "1 2 4", REAL);
    ms_cuda_case_out(c, "hf", "3 4", GRAD)->data = NULL;
    ms_cuda_case_run(c, "no gradient", &einsum);
}

/* ---- nodes of programs ---- */

static void einsums_of_small_models_equal_the_cpus(void **state)
{
    (void)state;
    assert_true(ms_cuda_cases_of_programs(test_cx()->arena, MS_OP_EINSUM, &einsum) > 100);
    assert_true(ms_cuda_cases_of_programs(test_cx()->arena, MS_OP_GROUPED, &grouped) > 5);
}

/* ---- failures ---- */

static void what_is_no_product_is_refused(void **state)
{
    (void)state;
    double x[64] = {0};
    ms_local a = {.scalar = MS_SCALAR_FP64,
                  .data = x,
                  .num_dims = 2,
                  .shape = {2, 3},
                  .count = 6},
             b = a, out = a;
    ms_tensor tensors[3] = {{.name = "x"}};
    ms_program program = {.tensors = tensors};
    ms_node node = {.einsum = "sh,ht->sht", .in = {0, 1}, .out = {2}};
    ms_op_call op = {.program = &program, .node = &node, .in = {&a, &b}, .out = {&out}};
    ms_cuda_call call = {.cx = test_cx(), .driver = &ms_cuda_fake_driver, .op = &op};
    b.shape[0] = 3;
    b.shape[1] = 2;
    out.num_dims = 3;
    out.shape[1] = out.shape[2] = 2;
    ASSERT_INT(ms_cuda_einsum(&call), MS_EIO);
    assert_non_null(strstr(test_messages(call.cx), "\"sh,ht->sht\""));
}

/* A product's operands lie in device memory and its work on the given stream; a failure
 * of the library is reported. */
static void products_go_to_the_stream(void **state)
{
    (void)state;
    const ms_cuda_driver *driver = &ms_cuda_fake_driver;
    ms_ctx *cx = test_cx();
    ms_cuda_device *device;
    ms_cuda_stream *stream;
    ms_cuda_fake_begin(NULL);
    ASSERT_OK(driver->open(cx, 0, &device), cx);
    ASSERT_OK(driver->open_stream(cx, device, false, &stream), cx);
    float *memory = driver->allocate(device, 3 * sizeof *memory), got = 0;
    const float two_and_three[2] = {2, 3};
    ASSERT_OK(driver->copy(cx, stream, memory, two_and_three, sizeof two_and_three,
                           MS_CUDA_TO_DEVICE),
              cx);
    ms_local a = {.scalar = MS_SCALAR_FP32,
                  .data = memory,
                  .num_dims = 2,
                  .shape = {1, 1},
                  .count = 1},
             b = a, out = a;
    b.data = memory + 1;
    out.data = memory + 2;
    ms_tensor tensors[3] = {{.name = "x"}};
    ms_program program = {.tensors = tensors};
    ms_node node = {.einsum = "sh,hf->sf", .in = {0, 1}, .out = {2}};
    ms_op_call op = {.program = &program, .node = &node, .in = {&a, &b}, .out = {&out}};
    ms_cuda_call call = {.cx = cx, .driver = driver, .stream = stream, .op = &op};
    ASSERT_OK(ms_cuda_einsum(&call), cx);
    ASSERT_INT(ms_cuda_fake_num_pending(), 2);
    ASSERT_OK(driver->copy(cx, stream, &got, out.data, sizeof got, MS_CUDA_TO_HOST), cx);
    ASSERT_NEAR((double)got, 6, 0);
    ms_cuda_fake_fail(MS_FAKE_GEMM, 1);
    ASSERT_INT(ms_cuda_einsum(&call), MS_EIO);
    driver->release(device, memory);
    driver->close_stream(stream);
    driver->close(device);
    ms_cuda_fake_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(einsums_of_layers_are_products),
        cmocka_unit_test(unlike_types_meet_in_the_wider_one),
        cmocka_unit_test(products_of_nothing_are_nothing),
        cmocka_unit_test(every_expert_has_its_product),
        cmocka_unit_test(a_weight_without_a_gradient_is_left_out),
        cmocka_unit_test(einsums_of_small_models_equal_the_cpus),
        cmocka_unit_test(what_is_no_product_is_refused),
        cmocka_unit_test(products_go_to_the_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
