/* Operands of FP8 products are cast only once, on the shard before it is gathered. */
#include "costmodel/cost/cast.h"
#include "sim/step/bill_key.h"

#include "tests/unit/planned_case.h"

#include <math.h>

static ms_planned *planned_for(ms_ctx *cx, ms_plan *plan, const char *stack,
                               ms_dtype compute)
{
    *plan = sequence_plan("llama-3.1-8b", 4, stack, compute);
    return open_planned(cx, plan);
}

static double bytes_of(const ms_bill *bill, ms_collective collective)
{
    double bytes = 0.0;
    for (int i = 0; i < bill->num_comms[MS_BILL_FORWARD]; i++)
        if (bill->comms[MS_BILL_FORWARD][i].collective == collective)
            bytes += bill->comms[MS_BILL_FORWARD][i].size_bytes *
                     bill->comms[MS_BILL_FORWARD][i].count;
    return bytes;
}

/* An all-gather before a product carries the operand cast to the product's type;
 * reductions carry 16 bits, whatever the type. */
static void gathers_for_products_are_of_cast_operands(void **state)
{
    (void)state;
    static const struct {
        const char *stack;
        ms_dtype compute;
        double element_bytes;
    } cases[] = {
        {"torchtitan", MS_FP8, 1}, {"torchtitan", MS_BF16, 2}, {"meshsim", MS_FP8, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_plan plan;
        ms_planned *p = planned_for(test_cx(), &plan, cases[i].stack, cases[i].compute);
        const ms_bill *layer = p->bills->layer[0][MS_RECOMPUTE_NONE];
        double elements = 2.0 * 4096.0 * 4096.0; /* inputs of attention and MLP */
        ASSERT_NEAR(bytes_of(layer, MS_ALL_GATHER), elements * cases[i].element_bytes, 0);
        ASSERT_NEAR(bytes_of(layer, MS_REDUCE_SCATTER), elements * 2.0, 0);
        ms_workload_close(p->workload);
    }
}

static const ms_node *node_named(const ms_program *program, const char *name)
{
    for (int n = 0; n < program->num_forward_nodes; n++)
        if (program->nodes[n].op == MS_OP_EINSUM &&
            strcmp(program->nodes[n].name, name) == 0)
            return &program->nodes[n];
    return NULL;
}

static const ms_program *part_of(ms_ctx *cx, const ms_planned *p, ms_block_kind part)
{
    const ms_program_key key = {.block = (unsigned char)part,
                                .sequence_parallel = true,
                                .attention_fused = true,
                                .loss_parallel = true,
                                .tp = 4,
                                .cp = 1,
                                .ep = 1,
                                .etp = 1,
                                .microbatch = 1};
    return ms_program_make(cx->arena, p->workload->model, &key, 4096, 1, MS_FP8);
}

/* `share`: tokens that a product is charged to cast, as a fraction of the sequence.
 * Products of one operand share its cast, which is of this tp rank's quarter of the
 * tokens: query, key and value 1/12 each, gate and up 1/8 each. The output and down
 * projections cast the whole of their own operands. */
static void an_operand_is_cast_once_where_it_is_smallest(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double share;
    } cases[] = {{"attention.query", 1.0 / 12},
                 {"attention.key", 1.0 / 12},
                 {"mlp.up", 1.0 / 8},
                 {"attention.output", 1},
                 {"mlp.down", 1}};
    ms_ctx *cx = test_cx();
    ms_plan plan;
    ms_planned *p = planned_for(cx, &plan, "torchtitan", MS_FP8);
    const ms_pricer *pricer = &p->workload->pricer;
    const ms_program *layer = part_of(cx, p, MS_BLOCK_LAYER);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ms_node *node = node_named(layer, cases[i].name);
        ms_gemm_shape shape = ms_node_gemm(layer, node);
        double cast_s =
            ms_node_product_s(layer, node, pricer) - ms_gemm_kernel_s(pricer, shape);
        ASSERT_NEAR(cast_s, ms_cast_s(pricer, shape, cases[i].share), 1e-9);
    }
    ms_workload_close(p->workload);
}

/* Bytes of the casts of one GEMM per element of activations: seconds beyond the kernel. */
static double cast_bytes(const ms_planned *p, const ms_program *program,
                         const ms_node *node)
{
    const ms_pricer *pricer = &p->workload->pricer;
    double cast_s =
        ms_node_product_s(program, node, pricer) -
        ms_gemm_kernel_s(pricer, ms_node_product(program, node, pricer->stack));
    return cast_s / ms_stream_s(pricer, 1.0);
}

/* The down projection of Llama 3.1 8B with tp 4 on 4096 tokens: operands of 4096 x 3584
 * and 3584 x 4096, gradient 4096 x 4096. torchtitan casts operands and weights for each
 * GEMM; Megatron Core casts both directions of activations at once, and keeps weights. */
static void recipes_cast_in_their_passes(void **state)
{
    (void)state;
    const double input = 4096.0 * 3584.0, weight = input, gradient = 4096.0 * 4096.0;
    const struct {
        const char *stack;
        ms_recipe recipe;
        double forward, back, of_weight;
    } cases[] = {{"torchtitan", MS_RECIPE_TENSORWISE, 5 * (input + weight),
                  5 * (gradient + weight), 5 * input + 2 * gradient},
                 {"torchtitan", MS_RECIPE_ROWWISE, 5 * (input + weight),
                  5 * (gradient + weight), 5 * (input + gradient)},
                 {"megatron", MS_RECIPE_DELAYED, 4 * input, 4 * gradient, 0},
                 {"megatron", MS_RECIPE_TENSORWISE, 6 * input, 6 * gradient, 0},
                 {"megatron", MS_RECIPE_BLOCKWISE, 4.0625 * input, 4.0625 * gradient, 0}};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_plan plan = sequence_plan("llama-3.1-8b", 4, cases[i].stack, MS_FP8);
        plan.recipe = cases[i].recipe;
        ms_planned *p = open_planned(cx, &plan);
        const ms_program *layer = part_of(cx, p, MS_BLOCK_LAYER);
        for (int n = 0; n < layer->num_nodes; n++) {
            const ms_node *node = &layer->nodes[n];
            if (node->op != MS_OP_EINSUM || strcmp(node->name, "mlp.down") != 0)
                continue;
            double bytes = node->pass == MS_PASS_FORWARD          ? cases[i].forward
                           : node->pass == MS_PASS_BACKWARD_INPUT ? cases[i].back
                                                                  : cases[i].of_weight;
            ASSERT_NEAR(cast_bytes(p, layer, node), bytes, 1e-6 * gradient);
        }
        ms_workload_close(p->workload);
    }
}

static void recipes_need_their_type_and_device(void **state)
{
    (void)state;
    const struct {
        const char *cluster;
        ms_dtype compute;
        ms_recipe recipe;
        const char *error; /* NULL: accepted */
    } cases[] = {
        {"hgx-h100", MS_FP8, MS_RECIPE_BLOCKWISE, NULL},
        {"hgx-b200", MS_FP8, MS_RECIPE_MXFP8, NULL},
        {"hgx-b200", MS_FP4, MS_RECIPE_NVFP4, NULL},
        {"hgx-h100", MS_BF16, MS_RECIPE_TENSORWISE, "computes in fp8, the plan in bf16"},
        {"hgx-b200", MS_FP8, MS_RECIPE_NVFP4, "computes in fp4, the plan in fp8"},
        {"hgx-h100", MS_FP8, MS_RECIPE_MXFP8, "no tensor cores with block scales"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = sequence_plan("llama-3.1-8b", 4, "megatron", cases[i].compute);
        plan.cluster = cases[i].cluster;
        plan.recipe = cases[i].recipe;
        ms_workload *workload;
        ms_status status = ms_workload_open(cx, &plan, &workload);
        ASSERT_INT(status, cases[i].error == NULL ? MS_OK : MS_EINPUT);
        if (status == MS_OK)
            ms_workload_close(workload);
        else
            assert_non_null(strstr(test_messages(cx), cases[i].error));
    }
}

static void the_head_stays_in_16_bits(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan wide_plan, plan;
    ms_planned *wide = planned_for(cx, &wide_plan, "torchtitan", MS_BF16);
    ms_planned *p = planned_for(cx, &plan, "torchtitan", MS_FP8);
    const ms_program *head = part_of(cx, p, MS_BLOCK_HEAD);
    const ms_node *logits = node_named(head, "head.logits");
    ASSERT_NEAR(ms_node_product_s(head, logits, &p->workload->pricer),
                ms_gemm_s(&wide->workload->pricer, ms_node_gemm(head, logits)), 1e-12);
    ms_workload_close(p->workload);
    ms_workload_close(wide->workload);
}

/* Seconds of the matrix products of a pass whose nodes have one of the names. */
static double products_s(const ms_program *program, const ms_pricer *pricer, ms_pass pass,
                         const char *const *names)
{
    double seconds = 0.0;
    for (int n = 0; n < program->num_nodes; n++)
        for (int i = 0; names[i] != NULL; i++)
            if (program->nodes[n].pass == pass &&
                (program->nodes[n].op == MS_OP_EINSUM ||
                 program->nodes[n].op == MS_OP_GROUPED) &&
                strcmp(program->nodes[n].name, names[i]) == 0)
                seconds += ms_node_product_s(program, &program->nodes[n], pricer);
    return seconds;
}

/* Query, key and value are priced as one product, gate and up as another: for Llama
 * 3.1 8B with tp 4 on 4096 tokens, 1024 + 256 + 256 and 3584 + 3584 columns. */
static void projections_of_one_matrix_are_one_product(void **state)
{
    (void)state;
    static const char *const names[2][4] = {
        {"attention.query", "attention.key", "attention.value", NULL},
        {"mlp.gate", "mlp.up", NULL}};
    static const double widths[] = {1536, 7168};
    ms_ctx *cx = test_cx();
    ms_plan plan;
    ms_planned *p = planned_for(cx, &plan, "megatron-2022", MS_BF16);
    const ms_pricer *pricer = &p->workload->pricer;
    const ms_program *layer = part_of(cx, p, MS_BLOCK_LAYER);
    for (int i = 0; i < 2; i++) {
        ms_gemm_shape whole = {1, 4096, widths[i], 4096, 2, 2};
        ASSERT_NEAR(products_s(layer, pricer, MS_PASS_FORWARD, names[i]),
                    ms_gemm_kernel_s(pricer, whole), 1e-12);
        ms_gemm_shape back = {1, 4096, 4096, widths[i], 2, 2};
        ASSERT_NEAR(products_s(layer, pricer, MS_PASS_BACKWARD_INPUT, names[i]),
                    ms_gemm_kernel_s(pricer, back), 1e-12);
    }
    int num_sums = 0;
    for (int n = 0; n < layer->num_nodes; n++)
        num_sums += ms_node_sums_joined(layer, &layer->nodes[n]);
    /* Joined products add up the input gradients of their parts by themselves: query, key
     * and value save two additions, gate and up one. */
    ASSERT_INT(num_sums, 3);
    ms_workload_close(p->workload);
}

static ms_plan plan_of_experts(const char *stack)
{
    ms_plan plan = ms_plan_default(8);
    plan.model = "qwen3-30b-a3b";
    plan.cluster = "hgx-h100";
    plan.stack = stack;
    plan.size[MS_DP_SHARD] = plan.ep = 8;
    plan.sequence_length = 4096;
    plan.global_batch = 8;
    plan.zero = 1;
    return plan;
}

/* Gate and up of an expert are priced as one product: for Qwen3 30B with 8 sequences
 * of 4096 tokens on 8 ranks of 16 experts each, 2048 rows an expert, 768 columns each. */
static void gate_and_up_of_an_expert_are_one_product(void **state)
{
    (void)state;
    static const char *const names[] = {"experts.gate", "experts.up", NULL};
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of_experts("megatron-bridge");
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
    const ms_pricer *pricer = &workload->pricer;
    const ms_program_key key = {.block = MS_BLOCK_LAYER,
                                .attention_fused = true,
                                .tp = 1,
                                .cp = 1,
                                .ep = 8,
                                .etp = 1,
                                .microbatch = 1};
    const ms_program *layer =
        ms_program_make(cx->arena, workload->model, &key, 4096, 8, MS_BF16);
    const struct {
        ms_pass pass;
        ms_gemm_shape whole;
    } cases[] = {{MS_PASS_FORWARD, {1, 2048, 1536, 2048, 2, 2}},
                 {MS_PASS_BACKWARD_INPUT, {1, 2048, 2048, 1536, 2, 2}},
                 {MS_PASS_BACKWARD_WEIGHT, {1, 2048, 1536, 2048, 2, 4}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ASSERT_NEAR(products_s(layer, pricer, cases[i].pass, names),
                    16 * ms_gemm_kernel_s(pricer, cases[i].whole), 1e-12);
    int num_sums = 0;
    for (int n = 0; n < layer->num_nodes; n++)
        num_sums += ms_node_sums_joined(layer, &layer->nodes[n]);
    ASSERT_INT(num_sums, 3);
    ms_workload_close(workload);
}

/* Megatron-LM of 2022 runs two collectives of a layer's backward beside products, without
 * sequence parallelism: the reductions of the gradients of two inputs, of attention and of
 * the MLP. Megatron-LM of 2021 runs none beside products. */
static void gradients_run_beside_traffic(void **state)
{
    (void)state;
    static const char *const stacks[] = {"megatron-2021", "megatron-2022"};
    double beside_s[2] = {0};
    int num_beside[2] = {0};
    ms_ctx *cx = test_cx();
    for (int i = 0; i < 2; i++) {
        ms_plan plan;
        ms_planned *p = planned_for(cx, &plan, stacks[i], MS_BF16);
        const ms_bill *layer = p->bills->layer[0][MS_RECOMPUTE_NONE];
        for (int c = 0; c < layer->num_comms[MS_BILL_BACKWARD]; c++) {
            const ms_bill_comm *comm = &layer->comms[MS_BILL_BACKWARD][c];
            beside_s[i] += comm->beside_s;
            num_beside[i] += comm->beside_s > 0.0 ? comm->count : 0;
        }
        for (int c = 0; c < layer->num_comms[MS_BILL_FORWARD]; c++)
            ASSERT_NEAR(layer->comms[MS_BILL_FORWARD][c].beside_s, 0, 0);
        ms_workload_close(p->workload);
    }
    ASSERT_NEAR(beside_s[0], 0, 0);
    assert_true(beside_s[1] > 0.0);
    ASSERT_INT(num_beside[1], 2);
}

/* A token's 8 copies for 8 experts go to only 8 (1 - (7/8)^8) different ones of 8
 * ranks, where a rank gets one copy for all its experts. */
static void copies_for_one_rank_are_sent_once(void **state)
{
    (void)state;
    static const char *const stacks[] = {"megatron", "megatron-bridge"};
    double bytes[2];
    for (int i = 0; i < 2; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = plan_of_experts(stacks[i]);
        ms_workload *workload;
        ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
        ms_planned planned;
        ms_planned_open(cx, workload, &plan, &planned);
        bytes[i] = bytes_of(planned.bills->layer[0][MS_RECOMPUTE_NONE], MS_ALL_TO_ALL);
        ms_workload_close(workload);
    }
    ASSERT_NEAR(bytes[0], 2.0 * 8 * 4096 * 2048 * 2, 0);
    ASSERT_NEAR(bytes[1] / bytes[0], 1 - pow(7.0 / 8, 8), 1e-12);
}

/* Saved bytes of a mixture's layer with another activation; the model has 2 experts a
 * token of width 14336, 8192 tokens on one rank. */
static double saved_bytes(const char *stack_name, ms_activation activation)
{
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_plan_default(1);
    plan.model = "mixtral-8x7b";
    plan.cluster = "h100";
    plan.stack = stack_name;
    ms_plan_fill_defaults(&plan);
    ms_workload *workload = NULL;
    ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
    ms_model model = *workload->model;
    model.activation = activation;
    workload->model = &model;
    ms_bill_key key = ms_plan_bill_key(workload, &plan);
    double bytes = ms_workload_bills(workload, &key)
                       ->layer[0][MS_RECOMPUTE_NONE]
                       ->memory.saved.activation_bytes;
    ms_workload_close(workload);
    return bytes;
}

/* Megatron Core has a kernel that weights SwiGLU's results, and none for GELU's, which are
 * saved before and behind their product with the weights. */
static void activations_weighed_apart_are_saved_twice(void **state)
{
    (void)state;
    double rows = 8192.0 * 2.0, width = 14336.0;
    double swiglu = saved_bytes("megatron", MS_ACT_SWIGLU);
    ASSERT_NEAR(saved_bytes("megatron", MS_ACT_GEGLU), swiglu + 2.0 * rows * width, 1e-9);
    /* no gate */
    ASSERT_NEAR(saved_bytes("megatron", MS_ACT_GELU), swiglu, 1e-9);
    ASSERT_NEAR(saved_bytes("megatron", MS_ACT_RELU2), swiglu - 2.0 * rows * width, 1e-9);
    ASSERT_NEAR(saved_bytes("generic", MS_ACT_GEGLU),
                saved_bytes("generic", MS_ACT_SWIGLU), 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathers_for_products_are_of_cast_operands),
        cmocka_unit_test(an_operand_is_cast_once_where_it_is_smallest),
        cmocka_unit_test(recipes_cast_in_their_passes),
        cmocka_unit_test(recipes_need_their_type_and_device),
        cmocka_unit_test(the_head_stays_in_16_bits),
        cmocka_unit_test(projections_of_one_matrix_are_one_product),
        cmocka_unit_test(gate_and_up_of_an_expert_are_one_product),
        cmocka_unit_test(gradients_run_beside_traffic),
        cmocka_unit_test(copies_for_one_rank_are_sent_once),
        cmocka_unit_test(activations_weighed_apart_are_saved_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
