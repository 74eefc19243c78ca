/* Halves and segments of bills add up to the whole, for every small model, part, mode and way to split; their memory is what counting
 * every tensor alive at every node gives. */
#include "costmodel/bill.h"
#include "costmodel/ring.h"

#include "tests/support/program_cases.h"
#include "tests/test.h"

static const ms_pricer *pricer_of(ms_ctx *cx)
{
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_stack *stack;
    ms_pricer *pricer = MS_NEW(cx->arena, ms_pricer);
    ASSERT_OK(ms_cluster_load(cx, "hgx-h100", &cluster), cx);
    ASSERT_OK(ms_profile_load(cx, cluster->device.profile, &profile), cx);
    ASSERT_OK(ms_stack_load(cx, "megatron", &stack), cx);
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
            ms_bill bill = ms_bill_make(program, pricer);
            check(ms_case_describe(cx->arena, model, &key), program, &bill);
        }
}

static void each_split(ms_ctx *cx, const ms_pricer *pricer, int model_index,
                       ms_program_part part, check_case *check)
{
    ms_model model = ms_case_model(model_index);
    ms_program_key key = ms_case_whole_key(part);
    each_key(cx, pricer, &model, key, check);
    key.attention_fused = false;
    each_key(cx, pricer, &model, key, check);
    key = ms_case_split_key(part);
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
        for (int part = 0; part < MS_NUM_PARTS; part++)
            each_split(cx, pricer, i, (ms_program_part)part, check);
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
    bool experts = program->model->kinds[0].moe && program->key.part == MS_PART_LAYER;
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
    const ms_tensor *tensor = &program->tensors[t];
    bool counted = tensor->role == MS_ROLE_ACTIVATION || tensor->role == MS_ROLE_GRADIENT;
    return counted && strchr(tensor->dims, MS_DIM_VOCAB) == NULL
               ? ms_tensor_local_bytes(program, t)
               : 0.0;
}

static bool reads(const ms_node *node, int t)
{
    for (int i = 0; i < node->num_in; i++)
        if (node->in[i] == t)
            return true;
    return false;
}

/* Whether a node of the half, no earlier than `from`, reads t. */
static bool read_later(const ms_program *program, bool weights, int from, int t)
{
    for (int n = from; n < program->num_nodes; n++)
        if (is_weight_node(&program->nodes[n]) == weights && reads(&program->nodes[n], t))
            return true;
    return false;
}

static bool read_by_weights(const ms_program *program, int t)
{
    return read_later(program, true, program->num_forward_nodes, t);
}

static bool read_by_backward(const ms_program *program, int t)
{
    return read_by_weights(program, t) ||
           read_later(program, false, program->num_forward_nodes, t);
}

/* Whether t is alive while input node n runs and all weights' gradients come afterwards. */
static bool alive_at(const ms_program *program, int n, int t)
{
    const ms_tensor *tensor = &program->tensors[t];
    int producer = tensor->producer;
    bool made = producer >= program->num_forward_nodes && producer <= n;
    bool delayed = read_by_weights(program, t);
    if (tensor->saved && !read_by_backward(program, t))
        return true; /* kept by a policy that names it */
    if (made && !read_by_backward(program, t))
        return true; /* the input's gradient */
    if (t == program->output_gradient)
        return delayed;
    return (made || tensor->saved) && (delayed || read_later(program, false, n, t));
}

static double input_peak_bytes(const ms_program *program, double peak)
{
    for (int n = program->num_forward_nodes; n < program->num_nodes; n++) {
        double live = ms_ring_buffer_bytes(program, &program->nodes[n]);
        for (int t = 0; !is_weight_node(&program->nodes[n]) && t < program->num_tensors;
             t++)
            live += alive_at(program, n, t) ? bytes_of(program, t) : 0.0;
        peak = fmax(peak, live);
    }
    return peak;
}

static double outside_bytes(const ms_program *program)
{
    int seed = program->output_gradient;
    return seed >= 0 && read_by_weights(program, seed) ? bytes_of(program, seed) : 0.0;
}

static void memory_is_that_of_living_tensors(const char *label, const ms_program *program,
                                             const ms_bill *bill)
{
    const ms_bill_halves *halves = &bill->halves;
    double delayed = 0.0, start = bill->saved_bytes + outside_bytes(program);
    for (int t = 0; t < program->num_tensors; t++)
        delayed += read_by_weights(program, t) ? bytes_of(program, t) : 0.0;
    expect(label, "delayed bytes", halves->delayed_bytes, delayed);
    expect(label, "peak of the input half",
           bill->saved_bytes + halves->transient_input_bytes,
           input_peak_bytes(program, start));
    if (bill->saved_bytes + halves->transient_input_bytes < delayed * (1 - 1e-12))
        ms_case_wrong(label, "less alive than waits");
    if (bill->transient_bytes > halves->transient_input_bytes * (1 + 1e-12))
        ms_case_wrong(label, "delaying saves memory");
    if (halves->transient_weight_bytes != 0)
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
