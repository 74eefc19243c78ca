/* Tests of quantized operands: which products have them, and along which dims. */
#include "base/rng.h"
#include "exec/cpu/quantize.h"
#include "exec/cpu/quantized_product.h"
#include "tests/support/hand_program.h"
#include "tests/test.h"

#define HIDDEN 150
#define WIDTH  70
#define TOKENS 130
#define BATCH  2

/* A product, its operands, and where in them the terms of its sums lie. */
typedef struct product {
    const char *einsum;
    ms_role roles[3];
    struct {
        long rows, terms, row_stride, term_stride;
    } side[2];
} product;

static const product products[] = {
    {"bsh,hf->bsf",
     {MS_ROLE_ACTIVATION, MS_ROLE_WEIGHT, MS_ROLE_ACTIVATION},
     {{BATCH * TOKENS, HIDDEN, HIDDEN, 1}, {WIDTH, HIDDEN, 1, WIDTH}}},
    {"bsf,hf->bsh",
     {MS_ROLE_GRADIENT, MS_ROLE_WEIGHT, MS_ROLE_GRADIENT},
     {{BATCH * TOKENS, WIDTH, WIDTH, 1}, {HIDDEN, WIDTH, WIDTH, 1}}},
    {"bsh,bsf->hf",
     {MS_ROLE_ACTIVATION, MS_ROLE_GRADIENT, MS_ROLE_WEIGHT_GRADIENT},
     {{HIDDEN, BATCH *TOKENS, 1, HIDDEN}, {WIDTH, BATCH *TOKENS, 1, WIDTH}}},
};

typedef struct hand_call {
    ms_hand *hand;
    ms_op_call call;
    ms_local local[3];
    float *start[2]; /* operands before they were quantized */
} hand_call;

static long size_of(char letter)
{
    switch (letter) {
    case MS_DIM_BATCH:
        return BATCH;
    case MS_DIM_SEQUENCE:
        return TOKENS;
    case MS_DIM_HIDDEN:
        return HIDDEN;
    case MS_DIM_EXPERTS:
        return 3;
    case MS_DIM_ROWS:
        return 5;
    default:
        return WIDTH;
    }
}

static void make_local(ms_arena *arena, ms_rng *rng, const char *dims, ms_local *out)
{
    *out = (ms_local){.scalar = MS_SCALAR_FP32, .count = 1};
    for (; dims[out->num_dims] != '\0'; out->num_dims++) {
        out->shape[out->num_dims] = size_of(dims[out->num_dims]);
        out->count *= out->shape[out->num_dims];
    }
    float *values = MS_NEW_ARRAY(arena, out->count, float);
    for (long i = 0; i < out->count; i++)
        values[i] =
            (float)((ms_rng_uniform(rng) - 0.5) * exp2(floor(12 * ms_rng_uniform(rng))));
    out->data = values;
}

/* Quantizes the operands of an operation made by hand. */
static hand_call *quantize(ms_op op, const char *einsum, const ms_role *roles,
                           ms_recipe recipe, const ms_routing *routing)
{
    hand_call *c = MS_NEW(test_cx()->arena, hand_call);
    ms_hand *h = c->hand = ms_hand_open(test_cx()->arena);
    ms_rng rng = ms_rng_seed(6);
    char dims[3][MS_MAX_DIMS + 1] = {{0}};
    int tensor[3];
    assert_int_equal(
        sscanf(einsum, "%4[a-zA-Z],%4[a-zA-Z]->%4s", dims[0], dims[1], dims[2]), 3);
    for (int i = 0; i < 3; i++) {
        tensor[i] = ms_hand_tensor(h, dims[i], roles[i], "RRR");
        make_local(h->arena, &rng, dims[i], &c->local[i]);
    }
    ms_node *node = ms_hand_binary(h, op, tensor[0], tensor[1], tensor[2]);
    node->einsum = einsum;
    c->call = (ms_op_call){.program = &h->program,
                           .node = node,
                           .in = {&c->local[0], &c->local[1]},
                           .out = {&c->local[2]},
                           .routing = routing,
                           .recipe = recipe};
    for (int i = 0; i < 2; i++) {
        c->start[i] = MS_NEW_ARRAY(h->arena, c->local[i].count, float);
        memcpy(c->start[i], c->local[i].data, (size_t)c->local[i].count * sizeof(float));
    }
    ms_quantize_operands(&c->call);
    return c;
}

static bool is_unchanged(const hand_call *c)
{
    for (int i = 0; i < 2; i++)
        if (memcmp(c->start[i], c->local[i].data,
                   (size_t)c->local[i].count * sizeof(float)) != 0)
            return false;
    return true;
}

static ms_operand operand_of(ms_role role)
{
    return role == MS_ROLE_WEIGHT     ? MS_OPERAND_WEIGHT
           : role == MS_ROLE_GRADIENT ? MS_OPERAND_GRADIENT
                                      : MS_OPERAND_ACTIVATION;
}

/* The three products of a weight round each operand along their own sums. */
static void operands_are_rounded_along_the_sum(void **state)
{
    (void)state;
    for (int recipe = MS_RECIPE_DELAYED; recipe < MS_NUM_RECIPES; recipe++) {
        for (size_t p = 0; p < sizeof products / sizeof *products; p++) {
            const product *of = &products[p];
            hand_call *c =
                quantize(MS_OP_EINSUM, of->einsum, of->roles, (ms_recipe)recipe, NULL);
            for (int i = 0; i < 2; i++)
                ms_quantize((ms_recipe)recipe, operand_of(of->roles[i]), 0,
                            &(ms_product_operand){
                                c->start[i], of->side[i].rows, of->side[i].terms,
                                of->side[i].row_stride, of->side[i].term_stride});
            if (!is_unchanged(c))
                fail_msg("%s, %s", ms_recipe_names[recipe], of->einsum);
        }
    }
}

/* Each expert's matrix, and its rows of tokens, have their own scales. */
static void experts_are_rounded_apart(void **state)
{
    (void)state;
    const long counts[] = {3, 0, 2};
    const ms_routing routing = {
        .num_sources = 1, .num_experts = 3, .counts = counts, .num_rows = 5};
    const ms_role forward[] = {MS_ROLE_ACTIVATION, MS_ROLE_WEIGHT, MS_ROLE_ACTIVATION},
                  weight[] = {MS_ROLE_ACTIVATION, MS_ROLE_GRADIENT,
                              MS_ROLE_WEIGHT_GRADIENT};
    hand_call *c =
        quantize(MS_OP_GROUPED, "rh,ehi->ri", forward, MS_RECIPE_TENSORWISE, &routing);
    long row = 0;
    for (long e = 0; e < 3; row += counts[e++]) {
        ms_quantize(MS_RECIPE_TENSORWISE, MS_OPERAND_ACTIVATION, 0,
                    &(ms_product_operand){c->start[0] + row * HIDDEN, counts[e], HIDDEN,
                                          HIDDEN, 1});
        ms_quantize(MS_RECIPE_TENSORWISE, MS_OPERAND_WEIGHT, 0,
                    &(ms_product_operand){c->start[1] + e * HIDDEN * WIDTH, WIDTH, HIDDEN,
                                          1, WIDTH});
    }
    assert_true(is_unchanged(c));
    c = quantize(MS_OP_GROUPED, "rh,ri->ehi", weight, MS_RECIPE_BLOCKWISE, &routing);
    row = 0;
    for (long e = 0; e < 3; row += counts[e++]) {
        ms_quantize(MS_RECIPE_BLOCKWISE, MS_OPERAND_ACTIVATION, 0,
                    &(ms_product_operand){c->start[0] + row * HIDDEN, HIDDEN, counts[e],
                                          1, HIDDEN});
        ms_quantize(
            MS_RECIPE_BLOCKWISE, MS_OPERAND_GRADIENT, 0,
            &(ms_product_operand){c->start[1] + row * WIDTH, WIDTH, counts[e], 1, WIDTH});
    }
    assert_true(is_unchanged(c));
}

/* Head, router, adapters and products without weights keep their operands, and so do all
 * products without a recipe. */
static void other_products_are_not_rounded(void **state)
{
    (void)state;
    static const struct {
        const char *einsum;
        ms_role second;
        ms_recipe recipe;
    } rows[] = {{"bsh,hv->bsv", MS_ROLE_WEIGHT, MS_RECIPE_MXFP8},
                {"bsh,he->bse", MS_ROLE_WEIGHT, MS_RECIPE_MXFP8},
                {"bsh,hR->bsR", MS_ROLE_WEIGHT, MS_RECIPE_MXFP8},
                {"bsh,hf->bsf", MS_ROLE_ACTIVATION, MS_RECIPE_MXFP8},
                {"bsh,hf->bsf", MS_ROLE_WEIGHT, MS_RECIPE_DEFAULT}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ms_role roles[] = {MS_ROLE_ACTIVATION, rows[i].second, MS_ROLE_ACTIVATION};
        assert_true(is_unchanged(
            quantize(MS_OP_EINSUM, rows[i].einsum, roles, rows[i].recipe, NULL)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_are_rounded_along_the_sum),
        cmocka_unit_test(experts_are_rounded_apart),
        cmocka_unit_test(other_products_are_not_rounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
