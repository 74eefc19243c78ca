/* States and time of optimizers by the shapes of matrices. */
#include "tests/unit/planned_case.h"

/* Llama 3.1 8B: hidden 4096, MLP 14336, keys and values 1024 wide, vocabulary 128256. */
#define LAYERS 32.0
#define HIDDEN 4096.0
#define FFN    14336.0
#define KV     1024.0
#define VOCAB  128256.0
#define PARAMS 8030261248.0
/* embedding, head and 65 norms */
#define VECTORS (2.0 * VOCAB * HIDDEN + 65.0 * HIDDEN)

static ms_planned *open_with(ms_ctx *cx, ms_plan *plan, const char *stack,
                             ms_optimizer optimizer)
{
    *plan = sequence_plan("llama-3.1-8b", 1, stack, MS_BF16);
    plan->optimizer = optimizer;
    return open_planned(cx, plan);
}

static double optimizer_bytes(ms_ctx *cx, const ms_planned *p)
{
    ms_rank_load load = ms_planned_load(cx, p, 0);
    double parts[MS_NUM_MEMORY_CATEGORIES];
    ms_rank_memory(p->workload, &load, p->sharding, &p->pipeline.shards, parts);
    return parts[MS_MEMORY_OPTIMIZER];
}

static void states_follow_the_shapes_of_matrices(void **state)
{
    (void)state;
    double sums = 2.0 * (HIDDEN + HIDDEN) + 2.0 * (HIDDEN + KV) + 3.0 * (HIDDEN + FFN);
    const struct {
        ms_optimizer optimizer;
        double bytes; /* states and a master copy of 4 bytes */
    } cases[] = {
        {MS_OPTIMIZER_ADAMW, 12.0 * PARAMS},
        {MS_OPTIMIZER_ADAM_8BIT, (6.0 + 8.0 / 256.0) * PARAMS},
        {MS_OPTIMIZER_SGD, 8.0 * PARAMS},
        {MS_OPTIMIZER_LION, 8.0 * PARAMS},
        {MS_OPTIMIZER_MUON, 8.0 * PARAMS + 4.0 * VECTORS},
        {MS_OPTIMIZER_ADAFACTOR, 4.0 * PARAMS + 4.0 * LAYERS * sums +
                                     4.0 * 2.0 * (VOCAB + HIDDEN) + 4.0 * 65.0 * HIDDEN},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_plan plan;
        ms_planned *p = open_with(cx, &plan, "megatron", cases[i].optimizer);
        ASSERT_NEAR(optimizer_bytes(cx, p), cases[i].bytes, 0);
        ms_workload_close(p->workload);
    }
}

/* Seconds of 5 iterations of Newton-Schulz on an m x n matrix, m <= n. */
static double iterations_s(const ms_pricer *pricer, double m, double n)
{
    return 5.0 * (ms_gemm_s(pricer, (ms_gemm_shape){1, m, m, n, 2, 2}) +
                  ms_gemm_s(pricer, (ms_gemm_shape){1, m, m, m, 2, 2}) +
                  ms_gemm_s(pricer, (ms_gemm_shape){1, m, n, m, 2, 2}));
}

static void muon_multiplies_each_matrix(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan;
    ms_planned *p = open_with(cx, &plan, "megatron", MS_OPTIMIZER_MUON);
    const ms_pricer *pricer = &p->workload->pricer;
    double products_s = LAYERS * (2.0 * iterations_s(pricer, HIDDEN, HIDDEN) +
                                  2.0 * iterations_s(pricer, KV, HIDDEN) +
                                  3.0 * iterations_s(pricer, HIDDEN, FFN));
    /* AdamW moves 32 bytes, with one moment less 24 */
    double streams_s = ms_stream_s(pricer, 24.0 * PARAMS + 8.0 * VECTORS);
    ms_rank_load load = ms_planned_load(cx, p, 0);
    ASSERT_NEAR(ms_rank_update_s(&p->pipeline, 0, &load, MS_ZERO_0),
                products_s + streams_s, 1e-9);
    /* one rank of endlessly many multiplies the largest matrix, and none is gathered */
    ms_pipeline many = p->pipeline;
    many.shards.dense = 1e12;
    load.update.matrix_params[0] = 0.0;
    ASSERT_NEAR(ms_rank_update_s(&many, 0, &load, MS_ZERO_1),
                iterations_s(pricer, HIDDEN, FFN), 1e-9);
    ms_workload_close(p->workload);
}

static void sharded_matrices_are_gathered_in_16_bits(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = sequence_plan("llama-3.1-8b", 1, "megatron", MS_BF16);
    plan.gpus = plan.size[MS_DP_SHARD] = plan.global_batch = 8;
    plan.zero = 1;
    plan.optimizer = MS_OPTIMIZER_MUON;
    ms_planned *p = open_planned(cx, &plan);
    ms_rank_load load = ms_planned_load(cx, p, 0), alone = load;
    ASSERT_NEAR(load.update.matrix_params[0], PARAMS - VECTORS, 0);
    alone.update.matrix_params[0] = 0.0;
    double gather_s =
        ms_collective_s(&p->links.gather[MS_SYNC_FSDP], 2.0 * (PARAMS - VECTORS));
    assert_true(gather_s > 0.01);
    ASSERT_NEAR(ms_rank_update_s(&p->pipeline, 0, &load, p->sharding) -
                    ms_rank_update_s(&p->pipeline, 0, &alone, p->sharding),
                gather_s, 1e-9);
    ms_workload_close(p->workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_follow_the_shapes_of_matrices),
        cmocka_unit_test(muon_multiplies_each_matrix),
        cmocka_unit_test(sharded_matrices_are_gathered_in_16_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
