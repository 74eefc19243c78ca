/* Seconds of nodes and the priced program (ms_bill) of programs made by hand: which
 * operations stream memory, how often unfused chains pass over it, the loss by its
 * bytes per logit, and what counts as kernel, FLOP and traffic. Memory moves 100 B/s,
 * matrix products run at 1 FLOP/s. */
#include "costmodel/cost/bill.h"

#include "tests/support/hand_program.h"
#include "tests/test.h"

typedef struct bench {
    ms_hand *hand;
    ms_device device;
    ms_profile profile;
    ms_stack stack;
    ms_pricer pricer;
} bench;

static bench *open_bench(void)
{
    ms_ctx *cx = test_cx();
    bench *b = MS_NEW(cx->arena, bench);
    b->hand = ms_hand_open(cx->arena);
    b->device.num_sms = 1;
    b->profile.tile_m.value = b->profile.tile_n.value = 1;
    b->stack.loss_bytes.value = 16;
    b->stack.unfused_traffic.value = 1.5;
    b->pricer = (ms_pricer){.device = &b->device,
                            .profile = &b->profile,
                            .stack = &b->stack,
                            .compute = MS_BF16,
                            .slowdown = 1,
                            .gemm_flop_per_s = 1,
                            .hbm_bytes_per_s = 100,
                            .gemm_hbm_bytes_per_s = 1e12};
    return b;
}

static double seconds_of(const bench *b, const ms_node *node)
{
    return ms_node_compute_s(&b->hand->program, node, &b->pricer);
}

static int stream(const bench *b)
{
    return ms_hand_tensor(b->hand, "bsh", MS_ROLE_ACTIVATION, "RRR");
}

/* ---- loss ---- */

/* The loss moves 16 bytes for each of 2 x 8 x 100 logits: a quarter of the bytes in
 * finding the maximum, a quarter in the sum, a half in the gradient. */
static void the_loss_moves_its_bytes_per_logit(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_hand_set_size(b->hand, MS_DIM_VOCAB, 100);
    int logits = ms_hand_tensor(b->hand, "bsv", MS_ROLE_ACTIVATION, "RRR");
    int max = ms_hand_tensor(b->hand, "bs", MS_ROLE_ACTIVATION, "RRR");
    ms_node *largest = ms_hand_unary(b->hand, MS_OP_LOSS_MAX, logits, max);
    ms_node *sum = ms_hand_binary(b->hand, MS_OP_LOSS_SUM, logits, max, max);
    ms_node *grad = ms_hand_binary(b->hand, MS_OP_LOSS_GRAD, logits, max, logits);
    ASSERT_NEAR(seconds_of(b, largest), 64, 1e-12);
    ASSERT_NEAR(seconds_of(b, sum), 64, 1e-12);
    ASSERT_NEAR(seconds_of(b, grad), 128, 1e-12);
    b->hand->tensors[logits].saved = true;
    b->stack.logit_bytes.value = 3;
    ms_bill bill = ms_bill_make(b->hand->arena, &b->hand->program, &b->pricer);
    ASSERT_NEAR(bill.compute_s[MS_BILL_FORWARD], 16 * 1600 / 100.0, 1e-12);
    ASSERT_NEAR(bill.memory.saved.logits_bytes, 3 * 1600, 0);
}

/* A rank moves an eighth of the logits when the vocabulary is sharded over 4 tp ranks
 * and the sequence over 2 cp ranks. */
static void a_rank_moves_its_own_logits(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_hand_set_size(b->hand, MS_DIM_VOCAB, 100);
    ms_hand_set_mesh(b->hand, MS_DENSE_MESH, 1, 2, 4);
    int logits = ms_hand_tensor(b->hand, "bsv", MS_ROLE_ACTIVATION, "Rsv");
    int max = ms_hand_tensor(b->hand, "bs", MS_ROLE_ACTIVATION, "RsM");
    ms_node *largest = ms_hand_unary(b->hand, MS_OP_LOSS_MAX, logits, max);
    ASSERT_NEAR(seconds_of(b, largest), 8, 1e-12);
}

/* ---- streaming kernels ---- */

/* Unfused elementwise operations move more bytes with a stack's unfused_traffic u = 1.5
 * than with u = 0: a norm or a sum 2.8 times as many, an activation 2 times, a rotary
 * embedding 2.5 times. A tensor [2, 8, 4] has 128 bytes, a norm's weight 8; memory moves
 * 100 B/s. */
static void chains_that_are_not_fused_pass_more_often(void **state)
{
    (void)state;
    bench *b = open_bench();
    int x = stream(b), y = stream(b), out = stream(b);
    int weight = ms_hand_tensor(b->hand, "h", MS_ROLE_WEIGHT, "RRR");
    ms_node *norm = ms_hand_binary(b->hand, MS_OP_NORM, x, weight, out);
    ms_node *sum = ms_hand_binary(b->hand, MS_OP_ADD, x, y, out);
    ms_node *gated = ms_hand_binary(b->hand, MS_OP_ACTIVATION, x, y, out);
    ms_node *rotary = ms_hand_unary(b->hand, MS_OP_ROTARY, x, out);
    ms_node *gate = ms_hand_binary(b->hand, MS_OP_GATE, x, y, out);
    ASSERT_NEAR(seconds_of(b, norm), 2.64 * 2.8, 1e-12);
    ASSERT_NEAR(seconds_of(b, sum), 3.84 * 2.8, 1e-12);
    ASSERT_NEAR(seconds_of(b, gated), 3.84 * 2, 1e-12);
    ASSERT_NEAR(seconds_of(b, rotary), 2.56 * 2.5, 1e-12);
    ASSERT_NEAR(seconds_of(b, gate), 3.84, 1e-12);
    b->stack.unfused_traffic.value = 0;
    ASSERT_NEAR(seconds_of(b, norm), 2.64, 1e-12);
    ASSERT_NEAR(seconds_of(b, rotary), 2.56, 1e-12);
}

static void backward_of_norms_and_activations_passes_as_often(void **state)
{
    (void)state;
    bench *b = open_bench();
    int x = stream(b), y = stream(b), gx = stream(b), gy = stream(b);
    ms_node *norm = ms_hand_node(b->hand, MS_OP_NORM_GRAD, 2, 1);
    ms_node *gated = ms_hand_node(b->hand, MS_OP_ACTIVATION_GRAD, 3, 2);
    norm->in[0] = gated->in[0] = x;
    norm->in[1] = gated->in[1] = y;
    gated->in[2] = gy;
    norm->out[0] = gated->out[0] = gx;
    gated->out[1] = gy;
    ASSERT_NEAR(seconds_of(b, norm), 3.84 * 2.8, 1e-12);
    ASSERT_NEAR(seconds_of(b, gated), 6.4 * 2, 1e-12);
}

/* 64 elements of a norm made of single operations move 36 bytes each, those of its
 * gradient 92; a layer norm is one kernel, whose 2.64 s are passed over 2.8 times. */
static void norms_of_single_operations_move_bytes_of_their_own(void **state)
{
    (void)state;
    bench *b = open_bench();
    int x = stream(b), gy = stream(b), gx = stream(b);
    int weight = ms_hand_tensor(b->hand, "h", MS_ROLE_WEIGHT, "RRR");
    ms_node *norm = ms_hand_binary(b->hand, MS_OP_NORM, x, weight, gx);
    ms_node *grad = ms_hand_binary(b->hand, MS_OP_NORM_GRAD, x, gy, gx);
    b->stack.norm_bytes.value = 36;
    b->stack.norm_grad_bytes.value = 92;
    b->hand->model.norm = MS_NORM_RMS;
    ASSERT_NEAR(seconds_of(b, norm), 36 * 0.64, 1e-12);
    ASSERT_NEAR(seconds_of(b, grad), 92 * 0.64, 1e-12);
    b->hand->model.norm = MS_NORM_LAYER;
    ASSERT_NEAR(seconds_of(b, norm), 2.64 * 2.8, 1e-12);
}

static void an_embedding_reads_rows_and_not_the_table(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_hand_set_size(b->hand, MS_DIM_VOCAB, 1000);
    int table = ms_hand_tensor(b->hand, "vh", MS_ROLE_WEIGHT, "RRR"), out = stream(b);
    ms_node *embed = ms_hand_unary(b->hand, MS_OP_EMBED, table, out);
    ASSERT_NEAR(seconds_of(b, embed), 1.28, 1e-12);
}

/* ---- products, and what costs no time of its own ---- */

/* The product of [16, 4] by [4, 10] is 1280 FLOP, and half of it on each of 2 tp ranks
 * that split the columns. It is one tile on one multiprocessor. */
static void a_product_takes_its_local_shape(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_hand_set_size(b->hand, MS_DIM_FFN, 10);
    int x = stream(b), weight = ms_hand_tensor(b->hand, "hf", MS_ROLE_WEIGHT, "RRf");
    int out = ms_hand_tensor(b->hand, "bsf", MS_ROLE_ACTIVATION, "RRf");
    ms_node *product = ms_hand_binary(b->hand, MS_OP_EINSUM, x, weight, out);
    product->einsum = "bsh,hf->bsf";
    ASSERT_NEAR(seconds_of(b, product), 1280, 1e-12);
    ms_hand_set_mesh(b->hand, MS_DENSE_MESH, 1, 1, 2);
    ASSERT_NEAR(seconds_of(b, product), 640, 1e-12);
    /* now memory traffic at 100 B/s is the limit: 128 bytes of x, 40 of the rank's
     * weight, 160 of its result */
    b->pricer.gemm_flop_per_s = 1e9;
    b->pricer.gemm_hbm_bytes_per_s = 100;
    ASSERT_NEAR(seconds_of(b, product), 3.28, 1e-12);
}

/* A product that gives a weight's gradient. Where the product adds to the accumulated
 * gradient itself, it reads and writes this fp32 sum. Where a separate kernel
 * accumulates, the product only writes a result of 16 bits. Elements: x 64, `grad` 160,
 * the result 40. */
static void products_that_add_to_sums_move_the_sums(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_hand_set_size(b->hand, MS_DIM_FFN, 10);
    int x = stream(b), grad = ms_hand_tensor(b->hand, "bsf", MS_ROLE_ACTIVATION, "RRf");
    int out = ms_hand_tensor(b->hand, "hf", MS_ROLE_WEIGHT, "RRf");
    ms_node *product = ms_hand_binary(b->hand, MS_OP_EINSUM, x, grad, out);
    product->einsum = "bsh,bsf->hf";
    product->pass = MS_PASS_BACKWARD_WEIGHT;
    b->pricer.gemm_flop_per_s = 1e12; /* memory traffic is the limit */
    b->pricer.gemm_hbm_bytes_per_s = 100;
    b->stack.grad_bytes.value = 4;
    double elements[] = {ms_tensor_local_elements(&b->hand->program, x),
                         ms_tensor_local_elements(&b->hand->program, grad),
                         ms_tensor_local_elements(&b->hand->program, out)};
    double operands_bytes = 2.0 * (elements[0] + elements[1]), fused_s, apart_s;
    fused_s = seconds_of(b, product);
    b->stack.accumulate_bytes.value = 9;
    apart_s = seconds_of(b, product);
    ASSERT_NEAR(apart_s, (operands_bytes + 2.0 * elements[2]) / 100.0, 1e-9);
    /* fused: 8 bytes of sum an element are read and written; half of the time of the 6
     * beyond a 16-bit result is not hidden by the product */
    ASSERT_NEAR(fused_s,
                pow(pow((operands_bytes + 8.0 * elements[2]) / 100.0, 4) +
                        pow(0.5 * 6.0 * elements[2] / 100.0, 4),
                    0.25),
                1e-9);
    product->pass = MS_PASS_BACKWARD_INPUT;
    b->stack.accumulate_bytes.value = 0;
    ASSERT_NEAR(seconds_of(b, product), apart_s, 1e-12);
}

static void biases_and_placements_take_no_compute(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_hand_set_mesh(b->hand, MS_DENSE_MESH, 1, 1, 2);
    int x = ms_hand_tensor(b->hand, "bsh", MS_ROLE_ACTIVATION, "RRP");
    int weight = ms_hand_tensor(b->hand, "h", MS_ROLE_WEIGHT, "RRR");
    ms_hand_redistribute(b->hand, x, 2, "RRR");
    ms_node *bias = ms_hand_binary(b->hand, MS_OP_BIAS, x, weight, stream(b));
    ASSERT_NEAR(seconds_of(b, &b->hand->nodes[0]), 0, 0);
    ASSERT_NEAR(seconds_of(b, bias), 0, 0);
    ms_bill bill = ms_bill_make(b->hand->arena, &b->hand->program, &b->pricer);
    ASSERT_INT(bill.kernels[MS_BILL_FORWARD], 0);
    ASSERT_INT(bill.num_comms[MS_BILL_FORWARD], 1);
    const ms_bill_comm *comm = &bill.comms[MS_BILL_FORWARD][0];
    ASSERT_INT(comm->axis, MS_BILL_TP);
    ASSERT_INT(comm->collective, MS_ALL_REDUCE);
    ASSERT_INT(comm->count, 1);
    ASSERT_NEAR(comm->size_bytes, 128, 0);
}

/* ---- bills ---- */

/* One product (1280 FLOP, 1280 s) runs once in each pass: forward, recomputation,
 * gradient of the input, gradient of the weight. */
static void a_bill_tells_passes_apart(void **state)
{
    (void)state;
    static const ms_pass passes[] = {MS_PASS_FORWARD, MS_PASS_RECOMPUTE,
                                     MS_PASS_BACKWARD_INPUT, MS_PASS_BACKWARD_WEIGHT};
    bench *b = open_bench();
    ms_hand_set_size(b->hand, MS_DIM_FFN, 10);
    int x = stream(b), weight = ms_hand_tensor(b->hand, "hf", MS_ROLE_WEIGHT, "RRR");
    int out = ms_hand_tensor(b->hand, "bsf", MS_ROLE_ACTIVATION, "RRR");
    for (int i = 0; i < 4; i++) {
        ms_node *product = ms_hand_binary(b->hand, MS_OP_EINSUM, x, weight, out);
        product->einsum = "bsh,hf->bsf";
        product->pass = (unsigned char)passes[i];
    }
    b->hand->program.num_forward_nodes = 1;
    ms_bill bill = ms_bill_make(b->hand->arena, &b->hand->program, &b->pricer);
    ASSERT_NEAR(bill.compute_s[MS_BILL_FORWARD], 1280, 1e-12);
    ASSERT_NEAR(bill.compute_s[MS_BILL_BACKWARD], 3 * 1280, 1e-12);
    ASSERT_NEAR(bill.flop[MS_BILL_FORWARD], 1280, 0);
    ASSERT_NEAR(bill.flop[MS_BILL_BACKWARD], 3 * 1280, 0);
    ASSERT_NEAR(bill.recompute_flop, 1280, 0);
    ASSERT_NEAR(bill.weight_s, 1280, 1e-12);
    ASSERT_INT(bill.kernels[MS_BILL_FORWARD], 1);
    ASSERT_INT(bill.kernels[MS_BILL_BACKWARD], 3);
    ASSERT_NEAR(bill.dense_params, 40, 0);
    ASSERT_NEAR(bill.output_bytes, 320, 0);
}

/* A product for the gradient of a weight of 4 x 10 writes 2 bytes an element, or, where
 * the product accumulates, reads and writes an fp32 sum. */
static void fused_accumulation_moves_sums(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_hand_set_size(b->hand, MS_DIM_FFN, 10);
    int x = stream(b), gout = ms_hand_tensor(b->hand, "bsf", MS_ROLE_GRADIENT, "RRR");
    int gradient = ms_hand_tensor(b->hand, "hf", MS_ROLE_WEIGHT_GRADIENT, "RRR");
    ms_node *product = ms_hand_binary(b->hand, MS_OP_EINSUM, x, gout, gradient);
    product->einsum = "bsh,bsf->hf";
    product->pass = MS_PASS_BACKWARD_WEIGHT;
    b->pricer.gemm_hbm_bytes_per_s = 1e-3; /* so slow that only memory traffic counts */
    b->stack.grad_bytes.value = 4;
    ms_gemm_shape shape = ms_node_gemm(&b->hand->program, product);
    for (int fused = 0; fused < 2; fused++) {
        b->stack.accumulate_bytes.value = fused == 1 ? 0 : 9;
        shape.result_bytes = fused == 1 ? 8 : shape.element_bytes;
        double want_s = ms_gemm_s(&b->pricer, shape);
        ASSERT_NEAR(seconds_of(b, product), want_s, 1e-12 * want_s);
    }
}

/* A grouped product costs the host launches for each of the 3 experts on the rank. */
static void grouped_products_keep_the_host_for_each_expert(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_hand_set_size(b->hand, MS_DIM_ROWS, 12);
    ms_hand_set_size(b->hand, MS_DIM_EXPERTS, 3);
    ms_hand_set_size(b->hand, MS_DIM_EXPERT_FFN, 5);
    int rows = ms_hand_tensor(b->hand, "rh", MS_ROLE_ACTIVATION, "RRR");
    int weight = ms_hand_tensor(b->hand, "ehi", MS_ROLE_WEIGHT, "RRR");
    int out = ms_hand_tensor(b->hand, "ri", MS_ROLE_ACTIVATION, "RRR");
    ms_hand_binary(b->hand, MS_OP_GROUPED, rows, weight, out)->einsum = "rh,ehi->ri";
    ms_bill bill = ms_bill_make(b->hand->arena, &b->hand->program, &b->pricer);
    ASSERT_INT(bill.kernels[MS_BILL_FORWARD], 1);
    b->stack.expert_launches.value = 9;
    b->stack.expert_cast_launches.value = 2;
    bill = ms_bill_make(b->hand->arena, &b->hand->program, &b->pricer);
    ASSERT_INT(bill.kernels[MS_BILL_FORWARD], 27);
    b->pricer.compute = MS_FP8;
    bill = ms_bill_make(b->hand->arena, &b->hand->program, &b->pricer);
    ASSERT_INT(bill.kernels[MS_BILL_FORWARD], 33);
    b->stack.fuses_experts = true;
    bill = ms_bill_make(b->hand->arena, &b->hand->program, &b->pricer);
    ASSERT_INT(bill.kernels[MS_BILL_FORWARD], 33);
    b->device.peak_flop_per_s[MS_FP4] = 1;
    bill = ms_bill_make(b->hand->arena, &b->hand->program, &b->pricer);
    ASSERT_INT(bill.kernels[MS_BILL_FORWARD], 33);
    ASSERT_INT(bill.expert_kernels[MS_BILL_FORWARD], 33);
    b->pricer.wide_domain = true;
    bill = ms_bill_make(b->hand->arena, &b->hand->program, &b->pricer);
    ASSERT_INT(bill.kernels[MS_BILL_FORWARD], 1);
    b->hand->model.activation = MS_ACT_RELU2;
    bill = ms_bill_make(b->hand->arena, &b->hand->program, &b->pricer);
    ASSERT_INT(bill.kernels[MS_BILL_FORWARD], 33);
}

/* Operations on the rows of experts: 12 rows of 4 elements, over memory of 100 B/s. They
 * move 10 bytes an element (expert_row_bytes 3 and expert_bias_bytes 7), 4 of them in
 * forward and 6 in backward. No bytes are charged to an expert's first product, nor to
 * any product in FP8 where the stack fuses experts. Where the exchange of tokens pads the
 * rows itself, only the bytes for biases are charged. */
static void operations_on_experts_rows_move_them(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_hand_set_size(b->hand, MS_DIM_ROWS, 12);
    ms_hand_set_size(b->hand, MS_DIM_EXPERTS, 3);
    ms_hand_set_size(b->hand, MS_DIM_EXPERT_FFN, 5);
    int rows = ms_hand_tensor(b->hand, "rh", MS_ROLE_ACTIVATION, "RRR");
    int hidden = ms_hand_tensor(b->hand, "ri", MS_ROLE_ACTIVATION, "RRR");
    int up = ms_hand_tensor(b->hand, "ehi", MS_ROLE_WEIGHT, "RRR");
    int down = ms_hand_tensor(b->hand, "eih", MS_ROLE_WEIGHT, "RRR");
    const struct {
        const char *einsum;
        int in, weight, out;
        ms_pass pass;
        double want_s;
    } cases[] = {
        {"rh,ehi->ri", rows, up, hidden, MS_PASS_FORWARD, 0.0},
        {"ri,eih->rh", hidden, down, rows, MS_PASS_FORWARD, 12 * 4 * 4 / 100.0},
        {"rh,eih->ri", rows, down, hidden, MS_PASS_BACKWARD_INPUT, 12 * 4 * 6 / 100.0},
    };
    b->hand->model.moe.expert_bias = true;
    b->stack.fuses_experts = true;
    b->device.peak_flop_per_s[MS_FP4] = 1;
    for (int i = 0; i < 12; i++) {
        ms_node *product = ms_hand_binary(b->hand, MS_OP_GROUPED, cases[i % 3].in,
                                          cases[i % 3].weight, cases[i % 3].out);
        product->einsum = cases[i % 3].einsum;
        product->pass = (unsigned char)cases[i % 3].pass;
        b->pricer.compute = i < 3 || i >= 6 ? MS_BF16 : MS_FP8;
        b->pricer.wide_domain = i >= 3;
        b->stack.shares_token_copies = i >= 6;
        b->hand->program.key.ep = i >= 9 ? 1 : 2;
        b->stack.expert_row_bytes.value = b->stack.expert_bias_bytes.value = 0;
        double without_s = seconds_of(b, product);
        b->stack.expert_row_bytes.value = 3;
        b->stack.expert_bias_bytes.value = 7;
        double of_bytes = i < 3 || i >= 9 ? 1.0 : i < 6 ? 0.0 : 0.7;
        ASSERT_NEAR(seconds_of(b, product) - without_s, of_bytes * cases[i % 3].want_s,
                    1e-12);
    }
}

static void routing_takes_its_time_forward_and_backward(void **state)
{
    (void)state;
    bench *b = open_bench();
    int logits = ms_hand_tensor(b->hand, "bse", MS_ROLE_ACTIVATION, "RRR");
    int choice = ms_hand_tensor(b->hand, "bsk", MS_ROLE_ACTIVATION, "RRR");
    ms_node *route = ms_hand_unary(b->hand, MS_OP_ROUTE, logits, choice);
    ms_node *back = ms_hand_unary(b->hand, MS_OP_ROUTE_GRAD, choice, logits);
    double forward_s = seconds_of(b, route), backward_s = seconds_of(b, back);
    b->stack.routing_s.value = 5;
    ASSERT_NEAR(seconds_of(b, route) - forward_s, 3, 1e-12);
    ASSERT_NEAR(seconds_of(b, back) - backward_s, 2, 1e-12);
}

/* Routing has 10 launches: 6 of them forward, beside one for the node itself. */
static void routing_keeps_the_host_for_its_launches(void **state)
{
    (void)state;
    bench *b = open_bench();
    int logits = ms_hand_tensor(b->hand, "bse", MS_ROLE_ACTIVATION, "RRR");
    int choice = ms_hand_tensor(b->hand, "bsk", MS_ROLE_ACTIVATION, "RRR");
    ms_hand_unary(b->hand, MS_OP_ROUTE, logits, choice);
    b->stack.routing_launches.value = 10;
    ms_bill bill = ms_bill_make(b->hand->arena, &b->hand->program, &b->pricer);
    ASSERT_INT(bill.kernels[MS_BILL_FORWARD], 7);
    ASSERT_INT(bill.expert_kernels[MS_BILL_FORWARD], 7);
}

/* A gathered sequence feeds two products of 1280 s each: the chunks of the gather may
 * hide behind both. */
static void a_gather_may_hide_behind_the_products_that_use_it(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_hand_set_size(b->hand, MS_DIM_FFN, 10);
    ms_hand_set_mesh(b->hand, MS_DENSE_MESH, 1, 1, 2);
    int x = ms_hand_tensor(b->hand, "bsh", MS_ROLE_ACTIVATION, "RRs");
    int weight = ms_hand_tensor(b->hand, "hf", MS_ROLE_WEIGHT, "RRR");
    int whole = ms_hand_redistribute(b->hand, x, 2, "RRR");
    for (int i = 0; i < 2; i++) {
        int out = ms_hand_result(b->hand, "bsf", "RRR");
        ms_hand_binary(b->hand, MS_OP_EINSUM, whole, weight, out)->einsum = "bsh,hf->bsf";
    }
    ms_bill bill = ms_bill_make(b->hand->arena, &b->hand->program, &b->pricer);
    ASSERT_INT(bill.num_comms[MS_BILL_FORWARD], 1);
    ASSERT_INT(bill.comms[MS_BILL_FORWARD][0].collective, MS_ALL_GATHER);
    ASSERT_NEAR(bill.comms[MS_BILL_FORWARD][0].size_bytes, 128, 0);
    ASSERT_NEAR(bill.comms[MS_BILL_FORWARD][0].window_s, 2 * 1280, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_moves_its_bytes_per_logit),
        cmocka_unit_test(a_rank_moves_its_own_logits),
        cmocka_unit_test(chains_that_are_not_fused_pass_more_often),
        cmocka_unit_test(backward_of_norms_and_activations_passes_as_often),
        cmocka_unit_test(norms_of_single_operations_move_bytes_of_their_own),
        cmocka_unit_test(an_embedding_reads_rows_and_not_the_table),
        cmocka_unit_test(a_product_takes_its_local_shape),
        cmocka_unit_test(products_that_add_to_sums_move_the_sums),
        cmocka_unit_test(biases_and_placements_take_no_compute),
        cmocka_unit_test(a_bill_tells_passes_apart),
        cmocka_unit_test(fused_accumulation_moves_sums),
        cmocka_unit_test(grouped_products_keep_the_host_for_each_expert),
        cmocka_unit_test(operations_on_experts_rows_move_them),
        cmocka_unit_test(routing_takes_its_time_forward_and_backward),
        cmocka_unit_test(routing_keeps_the_host_for_its_launches),
        cmocka_unit_test(a_gather_may_hide_behind_the_products_that_use_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
