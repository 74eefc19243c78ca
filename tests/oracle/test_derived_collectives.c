/* Collectives, placements of gradients and FLOP that follow from the graph by propagation, against what is known of them:
 * Megatron-LM's tensor and sequence parallelism (Shoeybi et al. 2019, Korthikanti et al. 2022), the einsum rules of DTensor and GSPMD (a letter
 * in both operands and not in the result gives partial sums), loss parallelism (PyTorch torch/distributed/tensor/parallel/loss.py), and
 * FLOP counts of PaLM (Chowdhery et al. 2022, appendix B). */
#include "costmodel/program.h"

#include "tests/test.h"

#define SEQUENCE 4096

enum {
    DP,
    CP,
    TP
};

/* ---- programs ---- */

static const ms_model *model_named(ms_ctx *cx, const char *name)
{
    const ms_model *model;
    ASSERT_OK(ms_model_load(cx, name, &model), cx);
    return model;
}

static ms_program_key key_of(ms_program_part part, int tp, bool sequence_parallel)
{
    return (ms_program_key){.part = (unsigned char)part,
                            .sequence_parallel = sequence_parallel,
                            .loss_parallel = true,
                            .attention_fused = true,
                            .regather = true,
                            .recompute = MS_RECOMPUTE_NONE,
                            .tp = (short)tp,
                            .cp = 1,
                            .ep = 1,
                            .etp = 1,
                            .microbatch = 1};
}

static const ms_program *make(ms_ctx *cx, const ms_model *model, ms_program_key key,
                              long dp)
{
    const ms_program *program =
        ms_program_make(cx->arena, model, &key, SEQUENCE, dp, MS_BF16);
    const char *why = "";
    if (!ms_program_check(program, &why))
        fail_msg("%s", why);
    return program;
}

/* ---- traffic ---- */

typedef struct traffic {
    int count;
    double bytes; /* sum of sizes */
} traffic;

/* Collectives of one kind over one axis of the dense mesh (or the ep axis: TP + 1) in the forward, or in all else. */
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

/* Two all-reduces of 2 s b h bytes forward, two backward. */
static void tensor_parallelism_needs_four_all_reduces(void **state)
{
    (void)state;
    const char *const names[] = {"llama-3.1-70b", "gpt3-175b", "bloom-176b"};
    for (int i = 0; i < 3; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = model_named(cx, names[i]);
        const ms_program *layer = make(cx, model, key_of(MS_PART_LAYER, 8, false), 1);
        traffic two = {2, 2.0 * stream_bytes(model)};
        expect(layer, true, TP, MS_ALL_REDUCE, two);
        expect(layer, false, TP, MS_ALL_REDUCE, two);
        ASSERT_INT(total_count(layer), 4);
    }
}

/* A parallel block sums attention and MLP before one reduction forward; backward needs one for each norm (GPT-J has
 * one norm a layer, Falcon 40B two). */
static void parallel_blocks_reduce_once_per_norm(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model = *model_named(cx, "falcon-40b");
    for (int norms = 1; norms <= 2; norms++) {
        model.norms_per_layer = norms;
        const ms_program *layer = make(cx, &model, key_of(MS_PART_LAYER, 8, false), 1);
        expect(layer, true, TP, MS_ALL_REDUCE, (traffic){1, stream_bytes(&model)});
        expect(layer, false, TP, MS_ALL_REDUCE,
               (traffic){norms, norms * stream_bytes(&model)});
        ASSERT_INT(total_count(layer), 1 + norms);
    }
}

/* The same bytes as gathers and scatters; what backward needs of the gathered tensors is gathered again. */
static void sequence_parallelism_needs_gathers_and_scatters(void **state)
{
    (void)state;
    for (int regather = 0; regather <= 1; regather++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = model_named(cx, "llama-3.1-70b");
        ms_program_key key = key_of(MS_PART_LAYER, 8, true);
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

/* Full recomputation runs the forward's gathers again. The scatter after the last product is not needed. */
static void full_recomputation_gathers_again(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "llama-3.1-70b");
    ms_program_key key = key_of(MS_PART_LAYER, 8, true);
    key.recompute = MS_RECOMPUTE_FULL;
    const ms_program *layer = make(cx, model, key, 1);
    double bytes = stream_bytes(model);
    expect(layer, false, TP, MS_ALL_GATHER, (traffic){4, 4.0 * bytes});
    expect(layer, false, TP, MS_REDUCE_SCATTER, (traffic){3, 3.0 * bytes});
}

/* All-reduces of maximum, sum of exponentials and target logit: 12 bytes a token. */
static void a_vocabulary_parallel_loss_needs_12_bytes_a_token(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "llama-3.1-70b");
    const ms_program *head = make(cx, model, key_of(MS_PART_HEAD, 8, false), 1);
    expect(head, true, TP, MS_ALL_REDUCE, (traffic){3, 12.0 * SEQUENCE});
    /* backward: only the gradient of the product's input, as for any column-parallel product */
    expect(head, false, TP, MS_ALL_REDUCE, (traffic){1, stream_bytes(model)});
    ASSERT_INT(total_count(head), 4);
}

static void without_it_logits_are_gathered(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "llama-3.1-70b");
    ms_program_key key = key_of(MS_PART_HEAD, 8, false);
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

/* The table's rows are split by vocabulary: partial sums of 2 s b h bytes, reduced to the stream; no traffic backward but
 * the gather of the gradient under sequence parallelism. */
static void a_sharded_embedding_reduces_once(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "llama-3.1-70b");
    double bytes = stream_bytes(model);
    const ms_program *embedding = make(cx, model, key_of(MS_PART_EMBED, 8, false), 1);
    expect(embedding, true, TP, MS_ALL_REDUCE, (traffic){1, bytes});
    ASSERT_INT(total_count(embedding), 1);
    embedding = make(cx, model, key_of(MS_PART_EMBED, 8, true), 1);
    expect(embedding, true, TP, MS_REDUCE_SCATTER, (traffic){1, bytes});
    expect(embedding, false, TP, MS_ALL_GATHER, (traffic){1, bytes});
    ASSERT_INT(total_count(embedding), 2);
}

/* Keys and values of 2 h_kv/t bytes each are gathered, their gradients scattered; gathered again for backward. */
static void context_parallelism_gathers_keys_and_values(void **state)
{
    (void)state;
    for (int tp = 1; tp <= 4; tp *= 4)
        for (int regather = 0; regather <= 1; regather++) {
            ms_ctx *cx = test_cx();
            const ms_model *model = model_named(cx, "llama-3.1-70b");
            ms_program_key key = key_of(MS_PART_LAYER, tp, tp > 1);
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

/* Two all-to-alls of k s b h elements each way. The exchanged rows are kept for backward where it needs them. */
static void experts_need_two_all_to_alls_each_way(void **state)
{
    (void)state;
    const char *const names[] = {"mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3"};
    for (int i = 0; i < 3; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = model_named(cx, names[i]);
        ms_program_key key = key_of(MS_PART_LAYER, 1, false);
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

/* With etp 1 every tp rank sends its own tokens. */
static void tp_ranks_share_the_exchange(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "mixtral-8x7b");
    ms_program_key key = key_of(MS_PART_LAYER, 4, true);
    key.ep = 8;
    const ms_program *layer = make(cx, model, key, 2);
    double bytes = 2.0 * stream_bytes(model) / 4.0;
    expect(layer, true, TP + 1, MS_ALL_TO_ALL, (traffic){2, 2.0 * bytes});
    expect(layer, false, TP + 1, MS_ALL_TO_ALL, (traffic){2, 2.0 * bytes});
}

static void one_rank_needs_no_traffic(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = model_named(cx, "llama-3.1-70b");
    for (int part = 0; part < MS_NUM_PARTS; part++)
        ASSERT_INT(
            total_count(make(cx, model, key_of((ms_program_part)part, 1, false), 1)), 0);
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

/* 'R', 'P' or the letter of the dim that is split. */
static char placement(const ms_program *program, int tensor, int axis)
{
    ms_placement at = program->tensors[tensor].at[axis];
    return at.kind == MS_REPLICATE ? 'R' : at.kind == MS_SHARD ? at.dim : 'P';
}

static char gradient_placement(const ms_program *program, const ms_node *node, int axis)
{
    return placement(program, program->tensors[node->in[1]].gradient, axis);
}

/* The gradient of the product's first operand, before any reduction. */
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
        /* by columns: the input's gradient is partial */
        {"attention.query", 'n', 'P', 'n'},
        {"attention.key", 'g', 'P', 'g'},
        {"mlp.gate", 'f', 'P', 'f'},
        {"mlp.up", 'f', 'P', 'f'},
        /* by rows: the result is partial */
        {"attention.output", 'P', 'n', 'n'},
        {"mlp.down", 'P', 'f', 'f'},
    };
    ms_ctx *cx = test_cx();
    for (int sp = 0; sp <= 1; sp++) {
        const ms_program *layer =
            make(cx, model_named(cx, "llama-3.1-8b"), key_of(MS_PART_LAYER, 8, sp), 1);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const ms_node *node =
                node_named(layer, rows[i].name, MS_OP_EINSUM, MS_PASS_FORWARD);
            ASSERT_INT(placement(layer, node->out[0], TP), rows[i].output);
            ASSERT_INT(input_gradient_placement(layer, node), rows[i].input_gradient);
            ASSERT_INT(gradient_placement(layer, node, TP), rows[i].weight_gradient);
        }
    }
}

/* Norms see all tokens without sequence parallelism, their own ones with it. */
static void norm_gradients_are_partial_with_sequence_parallelism(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const names[] = {"attention.norm", "mlp.norm"};
    for (int sp = 0; sp <= 1; sp++) {
        const ms_program *layer =
            make(cx, model_named(cx, "llama-3.1-8b"), key_of(MS_PART_LAYER, 8, sp), 1);
        for (int i = 0; i < 2; i++) {
            const ms_node *norm =
                node_named(layer, names[i], MS_OP_NORM, MS_PASS_FORWARD);
            ASSERT_INT(gradient_placement(layer, norm, TP), sp ? 'P' : 'R');
        }
    }
}

/* Every weight, whatever it is split by over tp: its tokens are others on every dp and cp rank. */
static void weight_gradients_are_partial_over_dp_and_cp(void **state)
{
    (void)state;
    const char *const names[] = {"llama-3.1-8b", "bloom-7b1", "mixtral-8x7b"};
    for (int i = 0; i < 9; i++) {
        ms_ctx *cx = test_cx();
        ms_program_key key = key_of((ms_program_part)(i % 3), 2, true);
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

/* Gradients of gate and up are both partial: they are summed first and reduced once. */
static void gradients_are_summed_before_they_are_reduced(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_program *layer =
        make(cx, model_named(cx, "llama-3.1-8b"), key_of(MS_PART_LAYER, 8, false), 1);
    int reduced_sums = 0;
    for (int i = layer->num_forward_nodes; i < layer->num_nodes; i++) {
        const ms_node *node = &layer->nodes[i];
        if (node->op != MS_OP_REDISTRIBUTE)
            continue;
        int producer = layer->tensors[node->in[0]].producer;
        reduced_sums += layer->nodes[producer].op == MS_OP_ADD;
    }
    ASSERT_INT(reduced_sums, 2); /* of the MLP's two, and of attention's three products */
}

/* ---- FLOP ---- */

typedef struct flop_sums {
    double forward, backward, recompute; /* matrix products */
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

/* The whole model on one rank with one sequence. */
static flop_sums model_flop(const ms_model *model, bool fused, ms_recompute recompute)
{
    flop_sums sums = {0};
    ms_ctx *cx = test_cx();
    for (int part = 0; part < MS_NUM_PARTS; part++) {
        ms_program_key key = key_of((ms_program_part)part, 1, false);
        key.attention_fused = fused;
        if (part != MS_PART_LAYER) {
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

/* Parameters that take part in no matrix product: norms, biases, tables (the head's matrix does). */
static double product_params(ms_ctx *cx, const ms_model *model)
{
    double params = 0.0;
    for (int part = MS_PART_LAYER; part < MS_NUM_PARTS; part++)
        for (int kind = 0; kind < (part == MS_PART_LAYER ? model->num_kinds : 1);
             kind++) {
            ms_program_key key = key_of((ms_program_part)part, 1, false);
            key.kind = (unsigned char)kind;
            const ms_program *program = make(cx, model, key, 1);
            double count = part == MS_PART_HEAD ? 1.0 : 0.0;
            for (long i = 0; part == MS_PART_LAYER && i < model->num_layers; i++)
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

/* 2 N forward and 4 N backward a token, exactly. */
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

/* Scores and values are 2 products forward, 4 backward, and the scores once more where they were not kept. */
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

/* Model FLOP per token count half of s pairs where s + 1 of 2 s are executed, six times N with norms and biases, and no scores
 * computed twice. Unfused attention of models without windows then agrees to (s + 1)/s and the parameters of no product. */
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
        ASSERT_NEAR(executed / SEQUENCE + 6.0 * others,
                    ms_model_flop_per_token(model, SEQUENCE).causal_flop, 1e-12);
    }
}

/* A checkpointed block runs forward again, but for a last product whose result only the next layer reads (PyTorch's checkpoint
 * stops early for the same reason); with dropout its mask needs that product too. */
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

/* One rank's FLOP are the whole's divided by the ranks: dense, context and expert parallel. */
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
        ms_program_key key = key_of(MS_PART_LAYER, 1, false);
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
        /* routers are not divided by tp: with sequence parallelism every rank scores its own tokens */
        ASSERT_NEAR(rank.forward * ranks, one.forward, 1e-13);
        ASSERT_NEAR(rank.backward * ranks, one.backward, 1e-13);
        ASSERT_NEAR(rank.attention_forward * ranks, one.attention_forward, 1e-13);
    }
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
        cmocka_unit_test(one_rank_needs_no_traffic),
        cmocka_unit_test(products_propagate_as_in_the_table),
        cmocka_unit_test(norm_gradients_are_partial_with_sequence_parallelism),
        cmocka_unit_test(weight_gradients_are_partial_over_dp_and_cp),
        cmocka_unit_test(gradients_are_summed_before_they_are_reduced),
        cmocka_unit_test(products_take_6_n_flop_a_token),
        cmocka_unit_test(attention_backward_takes_two_and_a_half_forwards),
        cmocka_unit_test(model_flop_per_token_agree),
        cmocka_unit_test(full_recomputation_adds_one_forward),
        cmocka_unit_test(ranks_share_the_flop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
