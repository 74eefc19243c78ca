/* Tests of collectives and gradient placements that placement propagation derives for
 * layer programs, against published ones: Megatron-LM's tensor and sequence parallelism
 * (Shoeybi et al. 2019, Korthikanti et al. 2022), the einsum rules of DTensor and GSPMD
 * (a contracted letter that is sharded gives partial sums), loss parallelism (PyTorch
 * torch/distributed/tensor/parallel/loss.py). */
#include "tests/oracle/published_programs.h"

enum {
    DP,
    CP,
    TP
};

/* ---- traffic ---- */

typedef struct traffic {
    int count;
    double bytes; /* sum of the collectives' sizes */
} traffic;

/* Sums collectives of one kind over one axis of the dense mesh (TP + 1: over ep), in the
 * forward pass or in all other passes. */
static traffic traffic_of(const ms_program *program, bool forward, int axis,
                          ms_collective collective)
{
    traffic sum = {0, 0.0};
    for (int i = 0; i < program->num_nodes; i++) {
        const ms_node *node = &program->nodes[i];
        ms_node_comm comm;
        if ((node->op != MS_OP_REDISTRIBUTE && node->op != MS_OP_EXCHANGE) ||
            (node->pass == MS_PASS_FORWARD) != forward ||
            !ms_node_communicates(program, node, &comm))
            continue;
        int at = comm.mesh == MS_SPARSE_MESH && comm.axis == 1 ? TP + 1 : comm.axis;
        if (at == axis && comm.collective == collective) {
            sum.count++;
            sum.bytes += comm.size_bytes;
        }
    }
    return sum;
}

static int total_count(const ms_program *program)
{
    int count = 0;
    for (int axis = 0; axis <= TP + 1; axis++)
        for (int c = 0; c < MS_NUM_COLLECTIVES; c++)
            count += traffic_of(program, true, axis, (ms_collective)c).count +
                     traffic_of(program, false, axis, (ms_collective)c).count;
    return count;
}

static void expect(const ms_program *program, bool forward, int axis,
                   ms_collective collective, traffic want)
{
    traffic got = traffic_of(program, forward, axis, collective);
    if (got.count != want.count || fabs(got.bytes - want.bytes) > 1e-9 * want.bytes)
        fail_msg("%s %s over axis %d: %d of %.0f bytes in all, want %d of %.0f",
                 forward ? "forward" : "backward", ms_collective_names[collective], axis,
                 got.count, got.bytes, want.count, want.bytes);
}

static double stream_bytes(const ms_model *model)
{
    return 2.0 * SEQUENCE * (double)model->hidden;
}

/* Tensor parallelism: two all-reduces of 2 s b h bytes forward, two backward (sequence s,
 * batch b, hidden h). */
static void tensor_parallelism_needs_four_all_reduces(void **state)
{
    (void)state;
    const char *const names[] = {"llama-3.1-70b", "gpt3-175b", "bloom-176b"};
    for (int i = 0; i < 3; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = model_named(cx, names[i]);
        const ms_program *layer = make(cx, model, key_of(MS_BLOCK_LAYER, 8, false), 1);
        traffic two = {2, 2.0 * stream_bytes(model)};
        expect(layer, true, TP, MS_ALL_REDUCE, two);
        expect(layer, false, TP, MS_ALL_REDUCE, two);
        ASSERT_INT(total_count(layer), 4);
    }
}

/* A layer with attention and MLP in parallel sums both before one reduction forward;
 * backward needs one reduction for each norm (GPT-J has one norm a layer, Falcon 40B
 * two). */
static void parallel_blocks_reduce_once_per_norm(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model = *model_named(cx, "falcon-40b");
    for (int norms = 1; norms <= 2; norms++) {
        model.norms_per_layer = norms;
        const ms_program *layer = make(cx, &model, key_of(MS_BLOCK_LAYER, 8, false), 1);
        expect(layer, true, TP, MS_ALL_REDUCE, (traffic){1, stream_bytes(&model)});
        expect(layer, false, TP, MS_ALL_REDUCE,
               (traffic){norms, norms * stream_bytes(&model)});
        ASSERT_INT(total_count(layer), 1 + norms);
    }
}

/* Sequence parallelism moves the bytes of tensor parallelism's all-reduces as all-gathers
 * and reduce-scatters; backward gathers again what it needs of gathered tensors
 * (key.regather). */
static void sequence_parallelism_needs_gathers_and_scatters(void **state)
{
    (void)state;
    for (int regather = 0; regather <= 1; regather++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = model_named(cx, "llama-3.1-70b");
        ms_program_key key = key_of(MS_BLOCK_LAYER, 8, true);
        key.regather = regather;
        const ms_program *layer = make(cx, model, key, 1);
        double bytes = stream_bytes(model);
        expect(layer, true, TP, MS_ALL_GATHER, (traffic){2, 2.0 * bytes});
        expect(layer, true, TP, MS_REDUCE_SCATTER, (traffic){2, 2.0 * bytes});
        expect(layer, false, TP, MS_REDUCE_SCATTER, (traffic){2, 2.0 * bytes});
        int gathers = 2 + 2 * regather;
        expect(layer, false, TP, MS_ALL_GATHER, (traffic){gathers, gathers * bytes});
        ASSERT_INT(total_count(layer), 6 + gathers);
    }
}

/* Full recomputation repeats the forward's all-gathers, but not the reduce-scatter after
 * the last product. */
static void full_recomputation_gathers_again(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "llama-3.1-70b");
    ms_program_key key = key_of(MS_BLOCK_LAYER, 8, true);
    key.recompute = MS_RECOMPUTE_FULL;
    const ms_program *layer = make(cx, model, key, 1);
    double bytes = stream_bytes(model);
    expect(layer, false, TP, MS_ALL_GATHER, (traffic){4, 4.0 * bytes});
    expect(layer, false, TP, MS_REDUCE_SCATTER, (traffic){3, 3.0 * bytes});
}

/* Vocabulary-parallel loss: all-reduces of maximum, sum of exponentials and target logit,
 * 12 bytes a token. */
static void a_vocabulary_parallel_loss_needs_12_bytes_a_token(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "llama-3.1-70b");
    const ms_program *head = make(cx, model, key_of(MS_BLOCK_HEAD, 8, false), 1);
    expect(head, true, TP, MS_ALL_REDUCE, (traffic){3, 12.0 * SEQUENCE});
    /* backward: all-reduce of the product's input gradient, as for any column-parallel
     * product */
    expect(head, false, TP, MS_ALL_REDUCE, (traffic){1, stream_bytes(model)});
    ASSERT_INT(total_count(head), 4);
}

static void without_it_logits_are_gathered(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "llama-3.1-70b");
    ms_program_key key = key_of(MS_BLOCK_HEAD, 8, false);
    key.loss_parallel = false;
    const ms_program *head = make(cx, model, key, 1);
    ms_node_comm comm = {0};
    double gathered = 0.0;
    for (int i = 0; i < head->num_forward_nodes; i++)
        if (head->nodes[i].op == MS_OP_REDISTRIBUTE &&
            ms_node_communicates(head, &head->nodes[i], &comm) &&
            comm.collective == MS_ALL_GATHER)
            gathered += ms_tensor_local_elements(head, head->nodes[i].out[0]);
    ASSERT_NEAR(gathered, SEQUENCE * (double)model->vocab, 0);
    expect(head, true, TP, MS_ALL_REDUCE, (traffic){0, 0.0});
}

/* An embedding table split by vocabulary gives partial sums of 2 s b h bytes, reduced to
 * the residual stream (sequence s, batch b, hidden h); backward has no traffic, except
 * the gradient's all-gather under sequence parallelism. */
static void a_sharded_embedding_reduces_once(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "llama-3.1-70b");
    double bytes = stream_bytes(model);
    const ms_program *embedding = make(cx, model, key_of(MS_BLOCK_EMBED, 8, false), 1);
    expect(embedding, true, TP, MS_ALL_REDUCE, (traffic){1, bytes});
    ASSERT_INT(total_count(embedding), 1);
    embedding = make(cx, model, key_of(MS_BLOCK_EMBED, 8, true), 1);
    expect(embedding, true, TP, MS_REDUCE_SCATTER, (traffic){1, bytes});
    expect(embedding, false, TP, MS_ALL_GATHER, (traffic){1, bytes});
    ASSERT_INT(total_count(embedding), 2);
}

/* Context parallelism gathers keys and values of 2 h_kv/t bytes a token each (width h_kv
 * over t tp ranks), again for backward, and reduce-scatters their gradients. */
static void context_parallelism_gathers_keys_and_values(void **state)
{
    (void)state;
    for (int tp = 1; tp <= 4; tp *= 4)
        for (int regather = 0; regather <= 1; regather++) {
            ms_ctx *cx = test_cx();
            const ms_model *model = model_named(cx, "llama-3.1-70b");
            ms_program_key key = key_of(MS_BLOCK_LAYER, tp, tp > 1);
            key.cp = 4;
            key.regather = regather;
            const ms_program *layer = make(cx, model, key, 1);
            double kv = 2.0 * 2.0 * SEQUENCE * 8.0 * 128.0 / tp;
            expect(layer, true, CP, MS_ALL_GATHER, (traffic){2, kv});
            expect(layer, false, CP, MS_REDUCE_SCATTER, (traffic){2, kv});
            expect(layer, false, CP, MS_ALL_GATHER,
                   (traffic){2 * regather, regather * kv});
        }
}

/* Expert parallelism: two all-to-alls of k s b h elements forward and two backward (k
 * experts a token, sequence s, batch b, hidden h); exchanged rows are saved for
 * backward. */
static void experts_need_two_all_to_alls_each_way(void **state)
{
    (void)state;
    const char *const names[] = {"mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3"};
    for (int i = 0; i < 3; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = model_named(cx, names[i]);
        ms_program_key key = key_of(MS_BLOCK_LAYER, 1, false);
        while (!model->kinds[key.kind].moe)
            key.kind++;
        key.ep = 8;
        const ms_program *layer = make(cx, model, key, 8);
        double bytes = (double)model->moe.top_k * stream_bytes(model);
        expect(layer, true, TP + 1, MS_ALL_TO_ALL, (traffic){2, 2.0 * bytes});
        expect(layer, false, TP + 1, MS_ALL_TO_ALL, (traffic){2, 2.0 * bytes});
        ASSERT_INT(total_count(layer), 4);
    }
}

/* Every tp rank exchanges its own tokens without expert tensor parallelism (etp 1). */
static void tp_ranks_share_the_exchange(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "mixtral-8x7b");
    ms_program_key key = key_of(MS_BLOCK_LAYER, 4, true);
    key.ep = 8;
    const ms_program *layer = make(cx, model, key, 2);
    double bytes = 2.0 * stream_bytes(model) / 4.0;
    expect(layer, true, TP + 1, MS_ALL_TO_ALL, (traffic){2, 2.0 * bytes});
    expect(layer, false, TP + 1, MS_ALL_TO_ALL, (traffic){2, 2.0 * bytes});
}

/* Experts split over etp, as in Megatron Core's MoEAlltoAllTokenDispatcher: all-to-alls
 * move each tp rank's own tokens, then all rows are gathered and scattered within etp. */
static void split_experts_gather_after_the_exchange(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "mixtral-8x7b");
    ms_program_key key = key_of(MS_BLOCK_LAYER, 4, true);
    const ms_program *whole = make(cx, model, key, 2);
    traffic before[2][2];
    for (int pass = 0; pass < 2; pass++) {
        before[pass][0] = traffic_of(whole, pass == 0, TP, MS_ALL_GATHER);
        before[pass][1] = traffic_of(whole, pass == 0, TP, MS_REDUCE_SCATTER);
    }
    key.ep = 2;
    key.etp = 4;
    const ms_program *layer = make(cx, model, key, 2);
    double rows = 2.0 * stream_bytes(model);
    for (int pass = 0; pass < 2; pass++) {
        bool forward = pass == 0;
        expect(layer, forward, TP + 1, MS_ALL_TO_ALL, (traffic){2, 2.0 * rows / 4.0});
        traffic gather = before[pass][0], scatter = before[pass][1];
        expect(layer, forward, TP, MS_ALL_GATHER,
               (traffic){gather.count + 1, gather.bytes + rows});
        expect(layer, forward, TP, MS_REDUCE_SCATTER,
               (traffic){scatter.count + 1, scatter.bytes + rows});
    }
}

static void one_rank_needs_no_traffic(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "llama-3.1-70b");
    for (int part = 0; part < MS_NUM_BLOCK_KINDS; part++)
        ASSERT_INT(total_count(make(cx, model, key_of((ms_block_kind)part, 1, false), 1)),
                   0);
}

/* ---- placements ---- */

static const ms_node *node_named(const ms_program *program, const char *name, ms_op op,
                                 ms_pass pass)
{
    for (int i = 0; i < program->num_nodes; i++) {
        const ms_node *node = &program->nodes[i];
        if (node->op == op && node->pass == pass && strcmp(node->name, name) == 0)
            return node;
    }
    fail_msg("no node %s", name);
    return NULL;
}

/* Placement on an axis as a character: R replicated, P partial, otherwise the letter of
 * the sharded dim. */
static char placement(const ms_program *program, int tensor, int axis)
{
    ms_placement at = program->tensors[tensor].at[axis];
    return at.kind == MS_REPLICATE ? 'R' : at.kind == MS_SHARD ? at.dim : 'P';
}

static char gradient_placement(const ms_program *program, const ms_node *node, int axis)
{
    return placement(program, program->tensors[node->in[1]].gradient, axis);
}

/* Placement over tp of the gradient of a product's first operand, before any
 * reduction. */
static char input_gradient_placement(const ms_program *program, const ms_node *forward)
{
    for (int i = program->num_forward_nodes; i < program->num_nodes; i++) {
        const ms_node *node = &program->nodes[i];
        if (node->pass == MS_PASS_BACKWARD_INPUT && node->op == MS_OP_EINSUM &&
            node->forward >= 0 && &program->nodes[node->forward] == forward)
            return placement(program, node->out[0], TP);
    }
    fail_msg("no gradient of the input of %s", forward->name);
    return 0;
}

static void products_propagate_as_in_the_table(void **state)
{
    (void)state;
    const struct {
        const char *name;
        char output, input_gradient, weight_gradient;
    } rows[] = {
        /* column-parallel weights: the input's gradient is partial */
        {"attention.query", 'n', 'P', 'n'},
        {"attention.key", 'g', 'P', 'g'},
        {"mlp.gate", 'f', 'P', 'f'},
        {"mlp.up", 'f', 'P', 'f'},
        /* row-parallel weights: the result is partial */
        {"attention.output", 'P', 'n', 'n'},
        {"mlp.down", 'P', 'f', 'f'},
    };
    ms_ctx *cx = test_cx();
    for (int sp = 0; sp <= 1; sp++) {
        const ms_program *layer =
            make(cx, model_named(cx, "llama-3.1-8b"), key_of(MS_BLOCK_LAYER, 8, sp), 1);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const ms_node *node =
                node_named(layer, rows[i].name, MS_OP_EINSUM, MS_PASS_FORWARD);
            ASSERT_INT(placement(layer, node->out[0], TP), rows[i].output);
            ASSERT_INT(input_gradient_placement(layer, node), rows[i].input_gradient);
            ASSERT_INT(gradient_placement(layer, node, TP), rows[i].weight_gradient);
        }
    }
}

/* Gradients of norm weights are partial over tp with sequence parallelism, where each
 * rank sees its own tokens, and not without. */
static void norm_gradients_are_partial_with_sequence_parallelism(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const names[] = {"attention.norm", "mlp.norm"};
    for (int sp = 0; sp <= 1; sp++) {
        const ms_program *layer =
            make(cx, model_named(cx, "llama-3.1-8b"), key_of(MS_BLOCK_LAYER, 8, sp), 1);
        for (int i = 0; i < 2; i++) {
            const ms_node *norm =
                node_named(layer, names[i], MS_OP_NORM, MS_PASS_FORWARD);
            ASSERT_INT(gradient_placement(layer, norm, TP), sp ? 'P' : 'R');
        }
    }
}

/* Gradients of all weights, however tp splits them, are partial over dp and cp, whose
 * ranks have different tokens. */
static void weight_gradients_are_partial_over_dp_and_cp(void **state)
{
    (void)state;
    const char *const names[] = {"llama-3.1-8b", "bloom-7b1", "mixtral-8x7b"};
    for (int i = 0; i < 9; i++) {
        ms_ctx *cx = test_cx();
        ms_program_key key = key_of((ms_block_kind)(i % 3), 2, true);
        key.cp = 2;
        const ms_program *program = make(cx, model_named(cx, names[i / 3]), key, 2);
        for (int t = 0; t < program->num_tensors; t++) {
            const ms_tensor *tensor = &program->tensors[t];
            if (tensor->role != MS_ROLE_WEIGHT || tensor->gradient < 0)
                continue;
            ASSERT_INT(placement(program, tensor->gradient, DP), 'P');
            if (tensor->mesh == MS_DENSE_MESH)
                ASSERT_INT(placement(program, tensor->gradient, CP), 'P');
        }
    }
}

/* Input gradients of several products, all partial, are summed first and reduced once. */
static void gradients_are_summed_before_they_are_reduced(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_program *layer =
        make(cx, model_named(cx, "llama-3.1-8b"), key_of(MS_BLOCK_LAYER, 8, false), 1);
    int reduced_sums = 0;
    for (int i = layer->num_forward_nodes; i < layer->num_nodes; i++) {
        const ms_node *node = &layer->nodes[i];
        if (node->op != MS_OP_REDISTRIBUTE)
            continue;
        int producer = layer->tensors[node->in[0]].producer;
        reduced_sums += layer->nodes[producer].op == MS_OP_ADD;
    }
    /* sums over the MLP's two products and over attention's three */
    ASSERT_INT(reduced_sums, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensor_parallelism_needs_four_all_reduces),
        cmocka_unit_test(parallel_blocks_reduce_once_per_norm),
        cmocka_unit_test(sequence_parallelism_needs_gathers_and_scatters),
        cmocka_unit_test(full_recomputation_gathers_again),
        cmocka_unit_test(a_vocabulary_parallel_loss_needs_12_bytes_a_token),
        cmocka_unit_test(without_it_logits_are_gathered),
        cmocka_unit_test(a_sharded_embedding_reduces_once),
        cmocka_unit_test(context_parallelism_gathers_keys_and_values),
        cmocka_unit_test(experts_need_two_all_to_alls_each_way),
        cmocka_unit_test(tp_ranks_share_the_exchange),
        cmocka_unit_test(split_experts_gather_after_the_exchange),
        cmocka_unit_test(one_rank_needs_no_traffic),
        cmocka_unit_test(products_propagate_as_in_the_table),
        cmocka_unit_test(norm_gradients_are_partial_with_sequence_parallelism),
        cmocka_unit_test(weight_gradients_are_partial_over_dp_and_cp),
        cmocka_unit_test(gradients_are_summed_before_they_are_reduced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
