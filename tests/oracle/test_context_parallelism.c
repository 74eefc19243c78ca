/* Tests of ring attention and Ulysses against their papers: Liu et al. 2023 ("Ring
 * Attention with Blockwise Transformers", section 3: when transfers are hidden), Brandon
 * et al. 2023 ("Striped Attention": work of a causal ring), Jacobs et al. 2023
 * ("DeepSpeed Ulysses": volume). */
#include "costmodel/cost/bill.h"
#include "costmodel/program/ring.h"
#include "tests/oracle/published_programs.h"

#include <math.h>

#define CP 4.0

static ms_program_key key_over(ms_cp_method method, int tp)
{
    ms_program_key key = key_of(MS_BLOCK_LAYER, tp, tp > 1);
    key.cp = (short)CP;
    key.cp_method = (unsigned char)method;
    return key;
}

static const ms_node *attention_of(const ms_program *program, ms_op op)
{
    for (int i = 0; i < program->num_nodes; i++)
        if (program->nodes[i].op == op)
            return &program->nodes[i];
    fail_msg("no %s", ms_op_names[op]);
    return NULL;
}

static double changes_over_cp(const ms_program *program)
{
    int count = 0;
    for (int i = 0; i < program->num_nodes; i++) {
        ms_node_comm comm;
        count += program->nodes[i].op == MS_OP_REDISTRIBUTE &&
                 ms_node_communicates(program, &program->nodes[i], &comm) &&
                 comm.axis == 1;
    }
    return count;
}

/* A ring over c ranks: a block of keys and values has 2 x 2 bytes of b (s/c) g d / t
 * elements (b batch, s sequence, g key/value heads of width d over t tp ranks). It makes
 * c - 1 hops forward, again c - 1 in backward, and its gradients c hops. */
static void a_ring_moves_its_blocks_around(void **state)
{
    (void)state;
    for (int tp = 1; tp <= 4; tp *= 4) {
        ms_ctx *cx = test_cx();
        const ms_model *model = model_named(cx, "llama-3.1-70b");
        const ms_program *layer = make(cx, model, key_over(MS_CP_RING, tp), 1);
        double block = 2.0 * 2.0 * SEQUENCE / CP * 8.0 * 128.0 / tp;
        ms_ring_transfer t[MS_MAX_RING_TRANSFERS];
        double bytes[2] = {0.0, 0.0};
        const ms_op ops[2] = {MS_OP_ATTENTION, MS_OP_ATTENTION_GRAD};
        for (int pass = 0; pass < 2; pass++)
            for (int i = ms_ring_transfers(layer, attention_of(layer, ops[pass]), t) - 1;
                 i >= 0; i--)
                bytes[pass] += t[i].count * t[i].size_bytes;
        ASSERT_NEAR(bytes[0], (CP - 1.0) * block, 1e-12);
        ASSERT_NEAR(bytes[1], (2.0 * CP - 1.0) * block, 1e-12);
        ASSERT_NEAR(changes_over_cp(layer), 0.0, 0.0);
    }
}

/* Ring transfers hide behind the attention of their own step only: with equal work of c
 * ranks, c - 1 forward steps are (c - 1)/c of the attention; with contiguous chunks the
 * last rank's first step has half the work of a block. In backward all steps but the
 * first also carry gradients. */
static void windows_of_a_ring_are_the_steps_beside_it(void **state)
{
    (void)state;
    for (int unbalanced = 0; unbalanced < 2; unbalanced++) {
        ms_ctx *cx = test_cx();
        ms_program_key key = key_over(MS_CP_RING, 1);
        key.cp_unbalanced = unbalanced;
        const ms_program *layer = make(cx, model_named(cx, "8b"), key, 1);
        ms_ring_transfer t[MS_MAX_RING_TRANSFERS];
        double first = unbalanced ? 0.5 / 3.5 : 0.25,
               later = unbalanced ? 1.0 / 3.5 : 0.25;
        ASSERT_INT(ms_ring_transfers(layer, attention_of(layer, MS_OP_ATTENTION), t), 2);
        ASSERT_NEAR(t[0].window_frac, first, 1e-14);
        ASSERT_NEAR(t[1].window_frac, 2.0 * later, 1e-14);
        ASSERT_INT(ms_ring_transfers(layer, attention_of(layer, MS_OP_ATTENTION_GRAD), t),
                   5);
        double shared = 0.0;
        for (int i = 0; i < 5; i++)
            shared += t[i].window_frac;
        ASSERT_NEAR(shared, 1.0, 1e-14);
        ASSERT_NEAR(t[4].window_frac, 0.0,
                    0.0); /* the gradients' last hop hides behind no attention */
    }
}

/* Ring attention with repeated heads, as in PyTorch: blocks of 32 heads where the model
 * has 8, gradients in fp32 and merged for all 32 heads. */
static void repeated_heads_travel_and_are_merged(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_program_key key = key_over(MS_CP_RING, 2);
    key.ring_repeats_heads = true;
    key.ring_gradient_bytes = 4;
    const ms_program *layer = make(cx, model_named(cx, "8b"), key, 1);
    const ms_node *gradient = attention_of(layer, MS_OP_ATTENTION_GRAD);
    double rows = SEQUENCE / CP * 128.0, heads = 32.0 / 2.0;
    double block = 2.0 * 2.0 * rows * heads, bytes = 0.0;
    ms_ring_transfer t[MS_MAX_RING_TRANSFERS];
    for (int i = ms_ring_transfers(layer, gradient, t) - 1; i >= 0; i--)
        bytes += t[i].count * t[i].size_bytes;
    ASSERT_NEAR(bytes, (CP - 1.0) * block + CP * 2.0 * block, 1e-12);
    ASSERT_NEAR(ms_ring_merge_bytes(layer, gradient),
                10.0 * (CP - 1.0) * rows * 3.0 * heads, 1e-12);
    ASSERT_NEAR(ms_ring_buffer_bytes(layer, gradient), (2.0 + 2.0) * block, 1e-12);
}

/* Ulysses: all-to-alls of queries, keys, values and results forward, and of their
 * gradients backward. A rank holds 1/c of each on c ranks, so the volume falls with c;
 * that of gathered keys and values does not. */
static void heads_for_sequence_takes_four_all_to_alls_each_way(void **state)
{
    (void)state;
    for (int tp = 1; tp <= 2; tp++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = model_named(cx, "llama-3.1-70b");
        const ms_program *layer = make(cx, model, key_over(MS_CP_ULYSSES, tp), 1);
        int count[2] = {0, 0};
        double bytes[2] = {0.0, 0.0};
        for (int i = 0; i < layer->num_nodes; i++) {
            ms_node_comm comm;
            const ms_node *node = &layer->nodes[i];
            if (node->op != MS_OP_REDISTRIBUTE ||
                !ms_node_communicates(layer, node, &comm) || comm.axis != 1)
                continue;
            ASSERT_INT(comm.collective, MS_ALL_TO_ALL);
            int backward = node->pass != MS_PASS_FORWARD;
            count[backward]++;
            bytes[backward] += comm.size_bytes;
        }
        double whole = 2.0 * SEQUENCE * 128.0 * (2.0 * 64.0 + 2.0 * 8.0) / tp;
        for (int backward = 0; backward < 2; backward++) {
            ASSERT_INT(count[backward], 4);
            ASSERT_NEAR(bytes[backward], whole / CP, 1e-12);
        }
    }
}

static double attention_flop(const ms_program *program)
{
    double flop = 0.0;
    for (int i = 0; i < program->num_nodes; i++)
        if (program->nodes[i].op == MS_OP_ATTENTION ||
            program->nodes[i].op == MS_OP_ATTENTION_GRAD)
            flop += ms_node_flop(program, &program->nodes[i]);
    return flop;
}

static void every_method_does_the_same_products(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "llama-3.1-70b");
    double flop[MS_NUM_CP_METHODS];
    for (int method = 0; method < MS_NUM_CP_METHODS; method++)
        flop[method] =
            attention_flop(make(cx, model, key_over((ms_cp_method)method, 2), 1));
    ASSERT_NEAR(flop[MS_CP_RING], flop[MS_CP_ALL_GATHER], 1e-14);
    ASSERT_NEAR(flop[MS_CP_ULYSSES], flop[MS_CP_ALL_GATHER], 1e-14);
}

/* Ring attention holds two blocks of keys and values (three in backward), where gathering
 * holds the whole sequence. */
static void a_ring_holds_blocks_not_sequences(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_program *layer = make(cx, model_named(cx, "8b"), key_over(MS_CP_RING, 1), 1);
    double block = 2.0 * 2.0 * SEQUENCE / CP * 8.0 * 128.0;
    ASSERT_NEAR(ms_ring_buffer_bytes(layer, attention_of(layer, MS_OP_ATTENTION)),
                2.0 * block, 1e-12);
    ASSERT_NEAR(ms_ring_buffer_bytes(layer, attention_of(layer, MS_OP_ATTENTION_GRAD)),
                3.0 * block, 1e-12);
}

/* Merging the results of ring steps reads each bf16 result and reads and writes the fp32
 * sum, 10 bytes an element, c - 1 times on c ranks. */
static void results_of_steps_are_merged(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_program *layer = make(cx, model_named(cx, "8b"), key_over(MS_CP_RING, 1), 1);
    double rows = SEQUENCE / CP * 128.0;
    ASSERT_NEAR(ms_ring_merge_bytes(layer, attention_of(layer, MS_OP_ATTENTION)),
                10.0 * (CP - 1.0) * rows * 32.0, 1e-12);
    ASSERT_NEAR(ms_ring_merge_bytes(layer, attention_of(layer, MS_OP_ATTENTION_GRAD)),
                10.0 * (CP - 1.0) * rows * (32.0 + 8.0 + 8.0), 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_moves_its_blocks_around),
        cmocka_unit_test(repeated_heads_travel_and_are_merged),
        cmocka_unit_test(windows_of_a_ring_are_the_steps_beside_it),
        cmocka_unit_test(heads_for_sequence_takes_four_all_to_alls_each_way),
        cmocka_unit_test(every_method_does_the_same_products),
        cmocka_unit_test(a_ring_holds_blocks_not_sequences),
        cmocka_unit_test(results_of_steps_are_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
