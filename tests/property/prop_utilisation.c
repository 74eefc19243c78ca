/* FLOP utilisation of random plans: MFU by all attention pairs, MFU by causal pairs and
 * HFU are on one basis, and no step is faster than the peak of its devices allows. */
#include "base/rng.h"
#include "sim/step/prediction.h"
#include "tests/support/wide_plans.h"
#include "tests/test.h"

/* Dense, gated and plain MLPs, biases, windows, tied embeddings, latent attention,
 * experts, shared experts, hybrids; fused and unfused attention. */
typedef struct utilisation_case {
    const char *model, *stack, *cluster;
} utilisation_case;
static const utilisation_case cases[] = {
    {"llama-3.1-8b", "megatron", "hgx-h100"},
    {"llama-3.2-1b", "torchtitan", "hgx-h200"},
    {"qwen2.5-7b", "generic", "hgx-h100"},
    {"gpt3-2.7b", "megatron-2021", "hgx-a100-80g"},
    {"gpt2", "nanotron", "hgx-a100-80g"},
    {"gemma-2-9b", "maxtext", "tpu-v5p"},
    {"falcon-7b", "ideal", "mi300x"},
    {"mixtral-8x7b", "megatron", "hgx-h100"},
    {"qwen1.5-moe-a2.7b", "generic", "hgx-h800"},
    {"deepseek-v2-lite", "megatron", "gb200-nvl72"},
    {"deepseek-v3", "megatron-bridge", "hgx-h100"},
    {"gpt-oss-20b", "megatron", "hgx-h100"},
    {"nemotron-h-8b", "megatron", "hgx-h100"},
    {"nemotron-3-nano-30b-a3b", "megatron-bridge", "hgx-h100"},
};
#define NUM_CASES (int)(sizeof cases / sizeof *cases)

static void check(ms_ctx *cx, const ms_plan *plan, const ms_prediction *p)
{
    double least = p->mfu_causal_frac * (1.0 - 1e-12);
    if (p->hfu_frac >= least && p->mfu_frac >= least && p->hfu_frac <= 1.0 &&
        p->mfu_causal_frac > 0.0)
        return;
    fail_msg("%s, stack %s, sequence %ld, %s: MFU %.9g, causal %.9g, HFU %.9g",
             plan->model, plan->stack, plan->sequence_length,
             ms_plan_text(cx->arena, plan), p->mfu_frac, p->mfu_causal_frac, p->hfu_frac);
}

static void check_case(const utilisation_case *c, uint64_t seed)
{
    static const long sequences[] = {16, 96, 512, 1024, 1024, 1024};
    ms_ctx *cx = test_cx();
    ms_rng rng = ms_rng_seed(seed);
    ms_plan base = ms_plan_default(64);
    base.model = c->model;
    base.stack = c->stack;
    base.cluster = c->cluster;
    base.sequence_length = sequences[ms_rng_below(&rng, 6)];
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, &base, &workload), cx);
    for (int i = 0; i < 8; i++) {
        ms_arena_mark mark = ms_arena_save(cx->arena);
        ms_plan plan = ms_random_plan(&rng, workload, &base, 64);
        ms_prediction p;
        ms_widen_plan(cx, &rng, workload->model, &plan);
        ASSERT_OK(ms_predict(cx, workload, &plan, &p), cx);
        check(cx, &plan, &p);
        ms_arena_rewind(cx->arena, mark);
    }
    ms_workload_close(workload);
}

static void utilisations_are_on_one_basis(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_CASES; i++)
        for (int j = 0; j < TEST_CASES(10, 2); j++)
            check_case(&cases[i], (uint64_t)(100 * i + j));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utilisations_are_on_one_basis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
