/* Pricing a backward that is split into an input half and a weight half, and further into
 * segments: for every small model, block, recomputation mode and way to split, the times
 * of the parts add up to the time of the unsplit backward, and their memory is that found
 * by counting the tensors alive at every node. */
#include "costmodel/cost/bill.h"
#include "costmodel/program/ring.h"

#include "tests/support/program_cases.h"
#include "tests/test.h"

static const ms_pricer *pricer_of(ms_ctx *cx)
{
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_stack *loaded;
    ms_pricer *pricer = MS_NEW(cx->arena, ms_pricer);
    ASSERT_OK(ms_cluster_load(cx, "hgx-h100", &cluster), cx);
    ASSERT_OK(ms_profile_load(cx, cluster->device.profile, &profile), cx);
    ASSERT_OK(ms_stack_load(cx, "megatron", &loaded), cx);
    ms_stack *stack = MS_NEW(cx->arena, ms_stack);
    *stack = *loaded;
    /* logits are priced at the bytes in which the layer program stores them */
    stack->logit_bytes.value = ms_dtype_bytes(MS_BF16);
    /* the stack saves the results of experts, as the layer program does */
    stack->weighs_in_experts = false;
    ASSERT_OK(ms_pricer_make(cx, cluster, profile, stack, MS_BF16, pricer), cx);
    return pricer;
}

/* ---- cases ---- */

typedef void check_case(const char *label, const ms_program *program,
                        const ms_bill *bill);

static void each_key(ms_ctx *cx, const ms_pricer *pricer, const ms_model *model,
                     ms_program_key key, check_case *check)
{
    for (int mode = 0; mode < MS_NUM_RECOMPUTE; mode++)
        for (int regather = 0; regather <= (key.tp > 1); regather++) {
            key.recompute = (unsigned char)mode;
            key.regather = regather;
            const ms_program *program = ms_case_program(cx->arena, model, &key, 2);
            ms_bill bill = ms_bill_make(cx->arena, program, pricer);
            check(ms_case_describe(cx->arena, model, &key), program, &bill);
        }
}

static void each_split(ms_ctx *cx, const ms_pricer *pricer, int model_index,
                       ms_block_kind part, check_case *check)
{
    ms_model model = ms_case_model(model_index);
    ms_program_key key = ms_case_whole_key(part);
    each_key(cx, pricer, &model, key, check);
    key.attention_fused = false;
    each_key(cx, pricer, &model, key, check);
    key = ms_case_split_key(part);
    each_key(cx, pricer, &model, key, check);
    key.loss_parallel = !key.loss_parallel;
    each_key(cx, pricer, &model, key, check);
    key.sequence_parallel = true;
    each_key(cx, pricer, &model, key, check);
    key.cp_method = MS_CP_RING;
    each_key(cx, pricer, &model, key, check);
    if (model_index < MS_NUM_SMALL_DENSE)
        return;
    key.ep = 4;
    each_key(cx, pricer, &model, key, check);
    key.ep = 2;
    key.etp = 2;
    each_key(cx, pricer, &model, key, check);
}

static void each_case(check_case *check)
{
    ms_ctx *cx = test_cx();
    const ms_pricer *pricer = pricer_of(cx);
    for (int i = 0; i < MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE; i++)
        for (int part = 0; part < MS_NUM_BLOCK_KINDS; part++)
            each_split(cx, pricer, i, (ms_block_kind)part, check);
    ASSERT_INT(ms_case_num_wrong(), 0);
}

static void expect(const char *label, const char *what, double got, double want)
{
    if (fabs(got - want) > 1e-12 * fabs(want))
        ms_case_wrong(label, what);
}

/* ---- compute and communication ---- */

static double sum_of(const double *seconds)
{
    return seconds[0] + seconds[1] + seconds[2];
}

static void segments_add_up(const char *label, const ms_program *program,
                            const ms_bill *bill)
{
    const ms_bill_segments *s = &bill->segments;
    expect(label, "forward segments", sum_of(s->forward_s),
           bill->compute_s[MS_BILL_FORWARD]);
    expect(label, "weight segments", sum_of(s->weight_s), bill->weight_s);
    expect(label, "input segments", sum_of(s->input_s) + sum_of(s->weight_s),
           bill->compute_s[MS_BILL_BACKWARD]);
    bool experts = program->model->kinds[0].moe && program->key.block == MS_BLOCK_LAYER;
    for (int i = 0; i < MS_NUM_BILL_EXCHANGES; i++)
        if ((s->exchange_bytes[i] > 0) != (experts && program->key.ep > 1))
            ms_case_wrong(label, "exchanges");
    if (experts &&
        !(s->forward_s[MS_SEGMENT_EXPERTS] > 0 && s->forward_s[MS_SEGMENT_RESULT] > 0 &&
          s->input_s[MS_SEGMENT_EXPERTS] > 0 && s->weight_s[MS_SEGMENT_EXPERTS] > 0))
        ms_case_wrong(label, "a segment of a layer with experts takes no time");
    if (!experts && sum_of(s->forward_s) != s->forward_s[MS_SEGMENT_ATTENTION])
        ms_case_wrong(label, "a layer without experts is cut");
}

static int count_of(const ms_bill *bill, int list)
{
    int count = 0;
    for (int i = 0; i < bill->num_comms[list]; i++)
        count += bill->comms[list][i].count;
    return count;
}

static int count_nodes(const ms_program *program, bool weights_only)
{
    int count = 0;
    ms_node_comm comm;
    for (int n = program->num_forward_nodes; n < program->num_nodes; n++) {
        const ms_node *node = &program->nodes[n];
        bool moves = node->op == MS_OP_REDISTRIBUTE || node->op == MS_OP_EXCHANGE;
        if (moves && ms_node_communicates(program, node, &comm))
            count += !weights_only || node->pass == MS_PASS_BACKWARD_WEIGHT;
    }
    return count;
}

static void collectives_add_up(const char *label, const ms_program *program,
                               const ms_bill *bill)
{
    if (program->key.cp_method != MS_CP_RING &&
        count_of(bill, MS_BILL_BACKWARD) != count_nodes(program, false))
        ms_case_wrong(label, "collectives of the backward");
    if (count_of(bill, MS_BILL_WEIGHT) != count_nodes(program, true))
        ms_case_wrong(label, "collectives of the weight half");
    for (int i = 0; i < bill->num_comms[MS_BILL_BACKWARD]; i++) {
        const ms_bill_comm *comm = &bill->comms[MS_BILL_BACKWARD][i];
        if (comm->weight_window_s > comm->window_s * (1 + 1e-12))
            ms_case_wrong(label, "a window smaller than its part");
    }
}

static void parts_add_up(void **state)
{
    (void)state;
    each_case(segments_add_up);
    each_case(collectives_add_up);
}

/* ---- memory, counted anew at every node ---- */

static bool is_weight_node(const ms_node *node)
{
    return node->pass == MS_PASS_BACKWARD_WEIGHT;
}

static double bytes_of(const ms_program *program, int t)
{
    int role = program->tensors[t].role;
    bool counted = role == MS_ROLE_ACTIVATION || role == MS_ROLE_GRADIENT;
    return counted ? ms_tensor_local_bytes(program, t) : 0.0;
}

static bool reads(const ms_node *node, int t)
{
    for (int i = 0; i < node->num_in; i++)
        if (node->in[i] == t)
            return true;
    return false;
}

static bool runs_in(int half, const ms_node *node)
{
    return half == MS_BILL_WHOLE || is_weight_node(node) == (half == MS_BILL_WEIGHT_HALF);
}

/* Whether a node of the half of backward, at index `from` or later, reads tensor t. */
static bool read_later(const ms_program *program, int half, int from, int t)
{
    for (int n = from; n < program->num_nodes; n++)
        if (runs_in(half, &program->nodes[n]) && reads(&program->nodes[n], t))
            return true;
    return false;
}

static bool read_in(const ms_program *program, int half, int t)
{
    return read_later(program, half, program->num_forward_nodes, t);
}

static bool is_delayed(const ms_program *program, int t)
{
    return read_in(program, MS_BILL_WEIGHT_HALF, t);
}

static bool is_there(const ms_program *program, int half, int t)
{
    if (half == MS_BILL_WEIGHT_HALF)
        return is_delayed(program, t);
    return program->tensors[t].saved || t == program->output_gradient;
}

static bool is_overwritten(const ms_program *program, int n, int t)
{
    for (int i = program->num_forward_nodes; i <= n; i++)
        if (program->nodes[i].op == MS_OP_LOSS_GRAD && program->nodes[i].in[0] == t)
            return true;
    return false;
}

/* Whether tensor t is alive while node n of the half of backward runs. */
static bool alive_at(const ms_program *program, int half, int n, int t)
{
    int producer = program->tensors[t].producer;
    bool made = producer >= program->num_forward_nodes && producer <= n &&
                runs_in(half, &program->nodes[producer]);
    if ((!made && !is_there(program, half, t)) || is_overwritten(program, n, t))
        return false;
    return !read_in(program, half, t) || read_later(program, half, n, t) ||
           (half == MS_BILL_INPUT_HALF && is_delayed(program, t));
}

static double start_bytes(const ms_program *program, int half)
{
    double bytes = 0.0;
    for (int t = 0; t < program->num_tensors; t++)
        bytes += is_there(program, half, t) ? bytes_of(program, t) : 0.0;
    return bytes;
}

static double peak_bytes(const ms_program *program, int half)
{
    double peak = start_bytes(program, half);
    for (int n = program->num_forward_nodes; n < program->num_nodes; n++) {
        if (!runs_in(half, &program->nodes[n]))
            continue;
        double live = ms_ring_buffer_bytes(program, &program->nodes[n]);
        for (int t = 0; t < program->num_tensors; t++)
            live += alive_at(program, half, n, t) ? bytes_of(program, t) : 0.0;
        peak = fmax(peak, live);
    }
    return peak;
}

static double total(ms_tensor_bytes bytes)
{
    return bytes.activation_bytes + bytes.logits_bytes;
}

static void memory_is_that_of_living_tensors(const char *label, const ms_program *program,
                                             const ms_bill *bill)
{
    const ms_bill_memory *memory = &bill->memory;
    double saved = total(memory->saved), delayed = total(memory->delayed);
    int seed = program->output_gradient;
    expect(label, "saved bytes", saved,
           start_bytes(program, MS_BILL_WHOLE) -
               (seed >= 0 ? bytes_of(program, seed) : 0.0));
    expect(label, "delayed bytes", delayed, start_bytes(program, MS_BILL_WEIGHT_HALF));
    for (int half = 0; half < MS_NUM_BILL_HALVES; half++)
        expect(label, "peak",
               (half == MS_BILL_WEIGHT_HALF ? delayed : saved) +
                   total(memory->transient[half]),
               peak_bytes(program, half));
    if (saved + total(memory->transient[MS_BILL_INPUT_HALF]) < delayed * (1 - 1e-12))
        ms_case_wrong(label, "less alive than waits");
    if (total(memory->transient[MS_BILL_WHOLE]) >
        total(memory->transient[MS_BILL_INPUT_HALF]) * (1 + 1e-12))
        ms_case_wrong(label, "delaying saves memory");
    if (total(memory->transient[MS_BILL_WEIGHT_HALF]) != 0)
        ms_case_wrong(label, "gradients of weights make activations");
}

static void memory_is_counted_right(void **state)
{
    (void)state;
    each_case(memory_is_that_of_living_tensors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(parts_add_up, ms_case_start),
        cmocka_unit_test_setup(memory_is_counted_right, ms_case_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
