/* Forward results that frameworks (stacks) save for backward: operands as their FP8
 * casts, no results of experts that routing weights are applied inside, and more bytes
 * per logit when tp shards them. */
#include "tests/unit/planned_case.h"

#define TOKENS 4096.0

/* Opens the plan of one sequence, with the recomputation that `plan` has. */
static ms_planned *planned_for(ms_ctx *cx, ms_plan *plan, const char *model, int tp,
                               const char *stack, ms_dtype compute)
{
    ms_recompute recompute = plan->recompute;
    *plan = sequence_plan(model, tp, stack, compute);
    plan->recompute = recompute;
    return open_planned(cx, plan);
}

static double layer_bytes(const char *model, int tp, const char *stack, ms_dtype compute)
{
    ms_plan plan = {.recompute = MS_RECOMPUTE_NONE};
    ms_planned *p = planned_for(test_cx(), &plan, model, tp, stack, compute);
    double bytes = p->bills->layer[0][MS_RECOMPUTE_NONE]->memory.saved.activation_bytes;
    ms_workload_close(p->workload);
    return bytes;
}

/* `less`: bytes a token by which a Llama layer saves less in FP8 than in BF16 (h hidden
 * size, f MLP width). nemo: inputs of products are saved as casts of half the bytes,
 * namely two norms (2 h less) and the input of the down projection (f less); the result
 * of attention stays in BF16 for attention's own gradient, with a cast beside it (h
 * more). hai-llm: casts only, also of attention's result (h less) and of gate and up (2 f
 * less). torchtitan: saves operands in BF16. */
static void gradients_of_weights_keep_casts(void **state)
{
    (void)state;
    const double h = 4096, f = 14336;
    const struct {
        const char *stack;
        double less;
    } cases[] = {
        {"nemo", 2 * h + f - h}, {"hai-llm", 2 * h + 3 * f + h}, {"torchtitan", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double wide = layer_bytes("llama-3.1-8b", 4, cases[i].stack, MS_BF16),
               cast = layer_bytes("llama-3.1-8b", 4, cases[i].stack, MS_FP8);
        ASSERT_NEAR(wide - cast, TOKENS / 4 * cases[i].less, 0);
    }
}

/* Applying routing weights inside experts saves the results of two experts a token, of
 * 4096 elements of 2 bytes. */
static void weighed_experts_leave_no_results(void **state)
{
    (void)state;
    double outside = layer_bytes("mixtral-8x7b", 1, "torchtitan", MS_BF16),
           inside = layer_bytes("mixtral-8x7b", 1, "nemo", MS_BF16);
    ASSERT_NEAR(outside - inside, TOKENS * 2 * 4096 * 2, 0);
}

/* Operands that wait for gradients of weights are held as FP8 casts, whether they are
 * saved or recomputed. */
static void what_waits_is_cast(void **state)
{
    (void)state;
    double bytes[2][2];
    for (int i = 0; i < 4; i++) {
        ms_plan plan = {.recompute = i < 2 ? MS_RECOMPUTE_NONE : MS_RECOMPUTE_SELECTIVE};
        ms_planned *p = planned_for(test_cx(), &plan, "llama-3.1-8b", 4, "nemo",
                                    i % 2 == 0 ? MS_BF16 : MS_FP8);
        bytes[i / 2][i % 2] =
            p->bills->layer[0][plan.recompute]->memory.delayed.activation_bytes;
        ms_workload_close(p->workload);
    }
    ASSERT_NEAR(bytes[1][0], bytes[0][0], 0);
    ASSERT_NEAR(bytes[1][1], bytes[0][1], 0);
    assert_true(bytes[0][1] < bytes[0][0]);
}

/* The loss saves 14 bytes a logit when a rank has whole logits, 18 when tp shards
 * them. */
static void the_loss_of_sharded_logits_has_bytes_of_its_own(void **state)
{
    (void)state;
    for (int tp = 1; tp <= 4; tp *= 4) {
        ms_plan plan = {.recompute = MS_RECOMPUTE_NONE};
        ms_planned *p =
            planned_for(test_cx(), &plan, "llama-3.1-8b", tp, "torchtitan-2024", MS_BF16);
        ASSERT_NEAR(p->bills->head.memory.saved.logits_bytes,
                    (tp > 1 ? 18.0 : 14.0) * TOKENS * 128256 / tp, 0);
        ms_workload_close(p->workload);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_weights_keep_casts),
        cmocka_unit_test(weighed_experts_leave_no_results),
        cmocka_unit_test(what_waits_is_cast),
        cmocka_unit_test(the_loss_of_sharded_logits_has_bytes_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
