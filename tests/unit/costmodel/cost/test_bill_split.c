/* The priced program (ms_bill) of a backward that is split into an input half and a
 * weight half, on programs made by hand. Memory moves 100 B/s, products run at 1
 * FLOP/s. A tensor [2, 8, 4] has 128 bytes, [2, 8, 10] 320; their product with [4, 10]
 * is 1280 FLOP. */
#include "costmodel/cost/bill.h"

#include "tests/support/hand_program.h"
#include "tests/test.h"

typedef struct bench {
    ms_hand *hand;
    ms_device device;
    ms_profile profile;
    ms_stack stack;
    ms_pricer pricer;
    int x, weight, gout, gx;
    int num_forward;
} bench;

static bench *open_bench(void)
{
    ms_ctx *cx = test_cx();
    bench *b = MS_NEW(cx->arena, bench);
    b->hand = ms_hand_open(cx->arena);
    ms_hand_set_size(b->hand, MS_DIM_FFN, 10);
    b->device.num_sms = 1;
    b->profile.tile_m.value = b->profile.tile_n.value = 1;
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

static int made_by(bench *b, int tensor, const ms_node *node)
{
    b->hand->tensors[tensor].producer = (int)(node - b->hand->nodes);
    return tensor;
}

static ms_node *binary(bench *b, ms_pass pass, int x, int y, int out, const char *einsum)
{
    ms_node *node = ms_hand_binary(b->hand, MS_OP_EINSUM, x, y, out);
    node->einsum = einsum;
    node->pass = (unsigned char)pass;
    made_by(b, out, node);
    return node;
}

/* Writes the forward out = x w. write_backward writes gw = x' gout and gx = gout w',
 * where its parameter `x_again` is the tensor that stands for x in gw. */
static void write_forward(bench *b)
{
    b->x = ms_hand_tensor(b->hand, "bsh", MS_ROLE_ACTIVATION, "RRR");
    b->weight = ms_hand_tensor(b->hand, "hf", MS_ROLE_WEIGHT, "RRR");
    int out = ms_hand_tensor(b->hand, "bsf", MS_ROLE_ACTIVATION, "RRR");
    binary(b, MS_PASS_FORWARD, b->x, b->weight, out, "bsh,hf->bsf");
    b->num_forward = b->hand->program.num_nodes;
    b->gout = ms_hand_tensor(b->hand, "bsf", MS_ROLE_GRADIENT, "RRR");
    b->gx = ms_hand_tensor(b->hand, "bsh", MS_ROLE_GRADIENT, "RRR");
    b->hand->program.output_gradient = b->gout;
}

static void write_backward(bench *b, int x_again)
{
    int gw = ms_hand_tensor(b->hand, "hf", MS_ROLE_WEIGHT_GRADIENT, "RRR");
    binary(b, MS_PASS_BACKWARD_WEIGHT, x_again, b->gout, gw, "bsh,bsf->hf");
    binary(b, MS_PASS_BACKWARD_INPUT, b->gout, b->weight, b->gx, "bsf,hf->bsh");
}

/* Prices the program with only the tensor `kept` saved by forward. */
static ms_bill bill_of(bench *b, int kept)
{
    b->hand->program.num_forward_nodes = b->num_forward;
    for (int t = 0; t < b->hand->program.num_tensors; t++)
        b->hand->tensors[t].saved = t == kept;
    return ms_bill_make(b->hand->arena, &b->hand->program, &b->pricer);
}

/* ---- compute ---- */

static void the_weight_half_is_counted_apart(void **state)
{
    (void)state;
    bench *b = open_bench();
    write_forward(b);
    write_backward(b, b->x);
    ms_bill bill = bill_of(b, b->x);
    ASSERT_NEAR(bill.compute_s[MS_BILL_BACKWARD], 2 * 1280, 1e-12);
    ASSERT_NEAR(bill.weight_s, 1280, 1e-12);
    ASSERT_NEAR(bill.weight_flop, 1280, 0);
    ASSERT_INT(bill.weight_kernels, 1);
    ASSERT_INT(bill.kernels[MS_BILL_BACKWARD], 2);
    ASSERT_NEAR(bill.segments.forward_s[MS_SEGMENT_ATTENTION], 1280, 1e-12);
    ASSERT_NEAR(bill.segments.input_s[MS_SEGMENT_ATTENTION], 1280, 1e-12);
    ASSERT_NEAR(bill.segments.weight_s[MS_SEGMENT_ATTENTION], 1280, 1e-12);
    ASSERT_NEAR(bill.segments.exchange_bytes[MS_EXCHANGE_DISPATCH], 0, 0);
}

/* ---- memory ---- */

static void expect_bytes(const ms_bill *bill, double saved, double delayed,
                         const double transient[MS_NUM_BILL_HALVES])
{
    const ms_bill_memory *memory = &bill->memory;
    ASSERT_NEAR(memory->saved.activation_bytes, saved, 0);
    ASSERT_NEAR(memory->delayed.activation_bytes, delayed, 0);
    ASSERT_NEAR(memory->delayed.logits_bytes, 0, 0);
    for (int half = 0; half < MS_NUM_BILL_HALVES; half++)
        ASSERT_NEAR(memory->transient[half].activation_bytes, transient[half], 0);
}

/* Bytes alive: the saved x has 128, gout, given from outside, 320, gx 128. In a backward
 * of one piece, x is freed before gx is made, so at most 128 + 320 are alive. In a split
 * backward, x and gout both stay for the weight half: 128 + 320 + 128 are alive in the
 * input half, and 128 + 320 between the halves. */
static void operands_wait_for_the_weight_half(void **state)
{
    (void)state;
    bench *b = open_bench();
    write_forward(b);
    write_backward(b, b->x);
    ms_bill bill = bill_of(b, b->x);
    expect_bytes(&bill, 128, 448, (double[]){320, 448, 0});
}

/* The saved z has 128 bytes; y = z + z is not saved, but recomputed for the product,
 * and stays until then. z is freed once y is made. */
static void recomputed_tensors_wait_too(void **state)
{
    (void)state;
    bench *b = open_bench();
    int z = ms_hand_tensor(b->hand, "bsh", MS_ROLE_ACTIVATION, "RRR");
    write_forward(b);
    int y = ms_hand_tensor(b->hand, "bsh", MS_ROLE_ACTIVATION, "RRR");
    ms_node *again = ms_hand_binary(b->hand, MS_OP_ADD, z, z, y);
    again->pass = MS_PASS_RECOMPUTE;
    made_by(b, y, again);
    write_backward(b, y);
    ms_bill bill = bill_of(b, z);
    expect_bytes(&bill, 128, 448, (double[]){448, 448, 0});
}

/* A saved tensor that no node reads stays until the backward ends: 128 bytes beside x
 * (128), gout (320) and gx (128). */
static void kept_tensors_that_nothing_reads_stay(void **state)
{
    (void)state;
    bench *b = open_bench();
    write_forward(b);
    write_backward(b, b->x);
    int unread = ms_hand_tensor(b->hand, "bsh", MS_ROLE_ACTIVATION, "RRR");
    ms_bill bill = bill_of(b, b->x);
    b->hand->tensors[unread].saved = true;
    bill = ms_bill_make(b->hand->arena, &b->hand->program, &b->pricer);
    expect_bytes(&bill, 256, 448, (double[]){320, 448, 0});
}

/* An operand that the gradients of two weights read is counted once among the bytes
 * that wait for the weight half. */
static void shared_operands_wait_once(void **state)
{
    (void)state;
    bench *b = open_bench();
    write_forward(b);
    write_backward(b, b->x);
    int other = ms_hand_tensor(b->hand, "hf", MS_ROLE_WEIGHT_GRADIENT, "RRR");
    binary(b, MS_PASS_BACKWARD_WEIGHT, b->x, b->gout, other, "bsh,bsf->hf");
    ASSERT_NEAR(bill_of(b, b->x).memory.delayed.activation_bytes, 448, 0);
}

/* The gradient of logits [2, 8, 100] that waits for the weight half is counted
 * separately: 3200 bytes. */
static void gradients_of_logits_are_counted_apart(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_hand_set_size(b->hand, MS_DIM_VOCAB, 100);
    write_forward(b);
    int glogits = ms_hand_tensor(b->hand, "bsv", MS_ROLE_GRADIENT, "RRR");
    int gtable = ms_hand_tensor(b->hand, "hv", MS_ROLE_WEIGHT_GRADIENT, "RRR");
    binary(b, MS_PASS_BACKWARD_WEIGHT, b->x, glogits, gtable, "bsh,bsv->hv");
    ms_bill bill = bill_of(b, b->x);
    ASSERT_NEAR(bill.memory.delayed.activation_bytes, 128, 0);
    ASSERT_NEAR(bill.memory.delayed.logits_bytes, 3200, 0);
}

/* The gradient of 1600 saved logits, of 4 bytes each, takes the place of the logits. When
 * the whole gradient is then cut to one tp rank's half (800 elements of 2 bytes), this
 * half is alive beside the whole gradient until that is freed. */
static void the_gradient_of_logits_overwrites_them(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_hand_set_size(b->hand, MS_DIM_VOCAB, 100);
    b->stack.logit_bytes.value = 4;
    int logits = ms_hand_tensor(b->hand, "bsv", MS_ROLE_ACTIVATION, "RRR");
    int gradient = ms_hand_tensor(b->hand, "bsv", MS_ROLE_GRADIENT, "RRR");
    ms_node *loss = ms_hand_unary(b->hand, MS_OP_LOSS_GRAD, logits, gradient);
    loss->pass = MS_PASS_BACKWARD_INPUT;
    made_by(b, gradient, loss);
    ms_tensor_bytes most = bill_of(b, logits).memory.transient[MS_BILL_WHOLE];
    ASSERT_NEAR(most.logits_bytes, 0, 0);
    ms_hand_set_mesh(b->hand, MS_DENSE_MESH, 1, 1, 2);
    int slice = ms_hand_redistribute(b->hand, gradient, 2, "RRv");
    ms_node *cut = &b->hand->nodes[b->hand->program.num_nodes - 1];
    cut->pass = MS_PASS_BACKWARD_INPUT;
    b->hand->tensors[made_by(b, slice, cut)].role = MS_ROLE_GRADIENT;
    ms_bill bill = bill_of(b, logits);
    ASSERT_NEAR(bill.memory.saved.logits_bytes, 6400, 0);
    ASSERT_NEAR(bill.memory.transient[MS_BILL_WHOLE].logits_bytes, 1600, 0);
}

/* ---- communication ---- */

/* The tensor x is split over two ranks and gathered in backward. If a redistribution of
 * the weight half gathers it, the gather is listed for the weight half and for the whole
 * backward; if a recomputation does, for the whole backward only. Either gather may hide
 * behind the product for the weight's gradient, which the input half does not have. */
static void collectives_belong_to_the_half_of_their_node(void **state)
{
    (void)state;
    for (int delayed = 0; delayed <= 1; delayed++) {
        bench *b = open_bench();
        ms_hand_set_mesh(b->hand, MS_DENSE_MESH, 1, 1, 2);
        write_forward(b);
        int part = ms_hand_tensor(b->hand, "bsh", MS_ROLE_ACTIVATION, "RRs");
        int whole = ms_hand_redistribute(b->hand, part, 2, "RRR");
        ms_node *gather = &b->hand->nodes[b->hand->program.num_nodes - 1];
        gather->pass = delayed ? MS_PASS_BACKWARD_WEIGHT : MS_PASS_RECOMPUTE;
        write_backward(b, made_by(b, whole, gather));
        ms_bill bill = bill_of(b, b->x);
        ASSERT_INT(bill.num_comms[MS_BILL_FORWARD], 0);
        ASSERT_INT(bill.num_comms[MS_BILL_BACKWARD], 1);
        ASSERT_INT(bill.num_comms[MS_BILL_WEIGHT], delayed);
        const ms_bill_comm *comm =
            &bill.comms[delayed ? MS_BILL_WEIGHT : MS_BILL_BACKWARD][0];
        ASSERT_INT(comm->collective, MS_ALL_GATHER);
        ASSERT_NEAR(comm->size_bytes, 128, 0);
        ASSERT_NEAR(comm->window_s, 1280, 1e-12);
        ASSERT_NEAR(comm->weight_window_s, 1280, 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_weight_half_is_counted_apart),
        cmocka_unit_test(operands_wait_for_the_weight_half),
        cmocka_unit_test(recomputed_tensors_wait_too),
        cmocka_unit_test(kept_tensors_that_nothing_reads_stay),
        cmocka_unit_test(shared_operands_wait_once),
        cmocka_unit_test(gradients_of_logits_are_counted_apart),
        cmocka_unit_test(the_gradient_of_logits_overwrites_them),
        cmocka_unit_test(collectives_belong_to_the_half_of_their_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
