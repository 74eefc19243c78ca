/* Tests of FLOP summed over the nodes of whole models' programs against PaLM's counts
 * (Chowdhery et al. 2022, appendix B): 2 N a token forward and 4 N backward for N
 * parameters, and attention. */
#include "tests/oracle/published_programs.h"

/* ---- sums ---- */

typedef struct flop_sums {
    double forward, backward, recompute; /* FLOP of matrix products */
    double attention_forward, attention_backward, attention_again;
} flop_sums;

static void add_flop(const ms_program *program, double count, flop_sums *sums)
{
    for (int i = 0; i < program->num_nodes; i++) {
        const ms_node *node = &program->nodes[i];
        double flop = count * ms_node_flop(program, node);
        bool again = node->pass == MS_PASS_RECOMPUTE;
        if (node->op == MS_OP_ATTENTION)
            *(again ? &sums->attention_again : &sums->attention_forward) += flop;
        else if (node->op == MS_OP_ATTENTION_GRAD)
            sums->attention_backward += flop;
        else if (node->pass == MS_PASS_FORWARD)
            sums->forward += flop;
        else
            *(again ? &sums->recompute : &sums->backward) += flop;
    }
}

/* Sums the FLOP of a whole model on one rank with one sequence. */
static flop_sums model_flop(const ms_model *model, bool fused, ms_recompute recompute)
{
    flop_sums sums = {0};
    ms_ctx *cx = test_cx();
    for (int part = 0; part < MS_NUM_BLOCK_KINDS; part++) {
        ms_program_key key = key_of((ms_block_kind)part, 1, false);
        key.attention_fused = fused;
        if (part != MS_BLOCK_LAYER) {
            add_flop(make(cx, model, key, 1), 1.0, &sums);
            continue;
        }
        key.recompute = (unsigned char)recompute;
        for (int kind = 0; kind < model->num_kinds; kind++) {
            long count = 0;
            for (long i = 0; i < model->num_layers; i++)
                count += model->kind_of_layer[i] == kind;
            key.kind = (unsigned char)kind;
            add_flop(make(cx, model, key, 1), (double)count, &sums);
        }
    }
    return sums;
}

static const char *const flop_models[] = {
    "llama-3.1-8b",  "llama-3.1-70b", "qwen2.5-7b", "gpt3-175b", "mixtral-8x7b",
    "qwen3-30b-a3b", "deepseek-v3",   "falcon-40b", "gemma-2-9b"};
#define NUM_FLOP_MODELS (int)(sizeof flop_models / sizeof *flop_models)

/* Parameters that a token uses in matrix products (active experts only), the head's
 * included. */
static double product_params(ms_ctx *cx, const ms_model *model)
{
    double params = 0.0;
    for (int part = MS_BLOCK_LAYER; part < MS_NUM_BLOCK_KINDS; part++)
        for (int kind = 0; kind < (part == MS_BLOCK_LAYER ? model->num_kinds : 1);
             kind++) {
            ms_program_key key = key_of((ms_block_kind)part, 1, false);
            key.kind = (unsigned char)kind;
            const ms_program *program = make(cx, model, key, 1);
            double count = part == MS_BLOCK_HEAD ? 1.0 : 0.0;
            for (long i = 0; part == MS_BLOCK_LAYER && i < model->num_layers; i++)
                count += model->kind_of_layer[i] == kind;
            for (int i = 0; i < program->num_forward_nodes; i++) {
                const ms_node *node = &program->nodes[i];
                if (node->op != MS_OP_EINSUM && node->op != MS_OP_GROUPED)
                    continue;
                double share =
                    node->op == MS_OP_GROUPED
                        ? (double)model->moe.top_k / (double)model->moe.num_experts
                        : 1.0;
                params += count * share * ms_tensor_local_elements(program, node->in[1]);
            }
        }
    return params;
}

/* Matrix products take exactly 2 N FLOP a token forward and 4 N backward for N parameters
 * in products. */
static void products_take_6_n_flop_a_token(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_FLOP_MODELS; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = model_named(cx, flop_models[i]);
        flop_sums sums = model_flop(model, true, MS_RECOMPUTE_NONE);
        ASSERT_NEAR(sums.forward, 2.0 * SEQUENCE * product_params(cx, model), 1e-13);
        ASSERT_NEAR(sums.backward, 2.0 * sums.forward, 1e-13);
        ASSERT_NEAR(sums.recompute, 0.0, 0);
    }
}

/* Attention has 2 products forward and 4 backward; fused attention recomputes the scores
 * in backward. */
static void attention_backward_takes_two_and_a_half_forwards(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "llama-3.1-8b");
    flop_sums fused = model_flop(model, true, MS_RECOMPUTE_NONE);
    ASSERT_NEAR(fused.attention_backward, 2.5 * fused.attention_forward, 1e-14);
    flop_sums unfused = model_flop(model, false, MS_RECOMPUTE_NONE);
    ASSERT_NEAR(unfused.attention_backward, 2.0 * unfused.attention_forward, 1e-14);
    double pairs = 0.5 * SEQUENCE * (SEQUENCE + 1.0);
    ASSERT_NEAR(fused.attention_forward, 32.0 * 4.0 * 4096.0 * pairs, 1e-14);
}

/* Model FLOP per token (ms_model_flop_per_token) count s/2 pairs of query and key a
 * token, where (s + 1)/2 are executed for sequence s, 6 FLOP for every parameter, also of
 * norms and biases (vector_flop), and no recomputed scores. With these differences they equal the
 * executed FLOP of unfused attention without windows. */
static void model_flop_per_token_agree(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_FLOP_MODELS; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = model_named(cx, flop_models[i]);
        if (model->kinds[0].window_tokens > 0 || model->num_kinds > 1)
            continue;
        flop_sums sums = model_flop(model, false, MS_RECOMPUTE_NONE);
        ms_param_counts params = ms_model_params(model);
        double tables = params.embedding;
        if (model->tied_embeddings) /* the token table is the head's matrix */
            tables -= (double)model->vocab * (double)model->hidden;
        double executed = sums.forward + sums.backward +
                          (sums.attention_forward + sums.attention_backward) * SEQUENCE /
                              (SEQUENCE + 1.0);
        double others = params.active - tables - product_params(cx, model);
        assert_true(others >= 0.0 && others < 1e-3 * params.active);
        ms_flop_per_token flop = ms_model_flop_per_token(model, SEQUENCE);
        ASSERT_NEAR(executed / SEQUENCE + 6.0 * others, flop.causal_flop, 1e-12);
        ASSERT_NEAR(flop.vector_flop, 6.0 * others, 1e-12);
    }
}

/* Full recomputation repeats a block's forward, except a last product whose result only
 * the next layer reads (PyTorch's checkpoint stops early for the same reason); the mask
 * of a dropout after it needs that product, too. */
static void full_recomputation_adds_one_forward(void **state)
{
    (void)state;
    const char *const names[] = {"llama-3.1-8b", "gpt3-175b"};
    for (int i = 0; i < 2; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = model_named(cx, names[i]);
        flop_sums full = model_flop(model, true, MS_RECOMPUTE_FULL);
        flop_sums none = model_flop(model, true, MS_RECOMPUTE_NONE);
        double h = (double)model->hidden, layers = (double)model->num_layers;
        double head = 2.0 * SEQUENCE * h * (double)model->vocab;
        double last = 2.0 * SEQUENCE * h * (double)model->ffn_hidden * layers;
        if (model->dropout)
            last = 0.0;
        ASSERT_NEAR(full.recompute, none.forward - head - last, 1e-13);
        ASSERT_NEAR(full.attention_again, none.attention_forward, 0);
        ASSERT_NEAR(full.backward, none.backward, 0);
    }
}

/* A rank's FLOP are the unsharded model's divided by the ranks, with tensor, context and
 * expert parallelism. */
static void ranks_share_the_flop(void **state)
{
    (void)state;
    const struct {
        const char *name;
        short tp, cp, ep, etp;
        long dp;
    } rows[] = {{"llama-3.1-70b", 8, 1, 1, 1, 1},
                {"llama-3.1-70b", 2, 4, 1, 1, 2},
                {"mixtral-8x7b", 2, 2, 8, 1, 2},
                {"mixtral-8x7b", 4, 1, 2, 4, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = model_named(cx, rows[i].name);
        ms_program_key key = key_of(MS_BLOCK_LAYER, 1, false);
        key.microbatch = 2;
        flop_sums one = {0}, rank = {0};
        add_flop(make(cx, model, key, 1), 1.0, &one);
        key.tp = rows[i].tp;
        key.cp = rows[i].cp;
        key.ep = rows[i].ep;
        key.etp = rows[i].etp;
        key.sequence_parallel = key.tp > 1;
        add_flop(make(cx, model, key, rows[i].dp), 1.0, &rank);
        double ranks = key.tp * key.cp;
        /* routers are not divided by tp: with sequence parallelism every rank routes its
         * own tokens */
        ASSERT_NEAR(rank.forward * ranks, one.forward, 1e-13);
        ASSERT_NEAR(rank.backward * ranks, one.backward, 1e-13);
        ASSERT_NEAR(rank.attention_forward * ranks, one.attention_forward, 1e-13);
    }
}

/* Context parallelism over 4 ranks with chunks of 1024: the last rank's queries see 3072
 * keys before the chunk and 1 to 1024 in it; balanced ranks share 4096 * 4097 / 2
 * pairs. */
static void contiguous_chunks_cost_what_the_last_rank_does(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "8b");
    double attention[2];
    for (int unbalanced = 0; unbalanced < 2; unbalanced++) {
        ms_program_key key = key_of(MS_BLOCK_LAYER, 1, false);
        key.cp = 4;
        key.cp_unbalanced = unbalanced;
        flop_sums sums = {0};
        add_flop(make(cx, model, key, 1), 1.0, &sums);
        attention[unbalanced] = sums.attention_forward;
    }
    double last = 1024.0 * 3072.0 + 1024.0 * 1025.0 / 2.0,
           mean = 4096.0 * 4097.0 / 2.0 / 4.0;
    ASSERT_NEAR(attention[1] / attention[0], last / mean, 1e-14);
}

/* Attention's FLOP of the mean rank, as executed: fused kernels skip masked pairs and
 * chunks of a sequence share them, GEMMs of unfused attention compute all s^2 pairs. */
static void executed_pairs_are_those_that_kernels_compute(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    double causal = 0.5 * SEQUENCE * (SEQUENCE + 1.0), all = (double)SEQUENCE * SEQUENCE;
    for (int fused = 0; fused < 2; fused++) {
        ms_program_key key = key_of(MS_BLOCK_LAYER, 1, false);
        key.attention_fused = fused != 0;
        key.cp = 4;
        key.cp_unbalanced = true;
        const ms_program *program = make(cx, model_named(cx, "8b"), key, 1);
        double flop = 0.0;
        for (int i = 0; i < program->num_nodes; i++)
            if (program->nodes[i].op == MS_OP_ATTENTION)
                flop += ms_node_mean_flop(program, &program->nodes[i], fused != 0);
        ASSERT_NEAR(flop, 4.0 * 4096.0 * (fused ? causal : all) / 4.0, 1e-14);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_take_6_n_flop_a_token),
        cmocka_unit_test(attention_backward_takes_two_and_a_half_forwards),
        cmocka_unit_test(model_flop_per_token_agree),
        cmocka_unit_test(full_recomputation_adds_one_forward),
        cmocka_unit_test(ranks_share_the_flop),
        cmocka_unit_test(contiguous_chunks_cost_what_the_last_rank_does),
        cmocka_unit_test(executed_pairs_are_those_that_kernels_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
