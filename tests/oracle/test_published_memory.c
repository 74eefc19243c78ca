/* Tests of predicted peak memory against published runs: SimuMax's Megatron-LM runs on
 * B200 (github.com/MooreThreads/SimuMax, allocated bytes), TorchTitan's Llama 3.1 8B
 * benchmarks (pytorch/torchtitan benchmarks/llama3_h100_202412_torchtitan.md and
 * llama3-8b_h200_202506_trainy-whitefiber.md, reserved bytes), the Zero Bubble paper's
 * 1F1B runs (arXiv 2401.10241, tables 3 and 4), and the Ultra-Scale Playbook (Hugging Face
 * 2025).
 *
 * The stacks simumax and torchtitan were fitted to these runs: for them the tests check
 * the memory model's arithmetic and are no validation. Expected bytes come from itemised
 * formulas that fit the published peaks to about 1 %. */
#include "sim/step/prediction.h"

#include "tests/test.h"

#define GIB 1073741824.0

/* Opens a workload for a model made in the test; to be closed by the caller. */
static ms_workload *open_with(ms_ctx *cx, const ms_plan *plan, const ms_model *model)
{
    ms_workload_inputs inputs = {.model = model};
    ms_workload *workload;
    ASSERT_OK(ms_cluster_load(cx, plan->cluster, &inputs.cluster), cx);
    ASSERT_OK(ms_profile_load(cx, inputs.cluster->device.profile, &inputs.profile), cx);
    ASSERT_OK(ms_stack_load(cx, plan->stack, &inputs.stack), cx);
    ASSERT_OK(ms_workload_make(cx, &inputs, plan, &workload), cx);
    return workload;
}

static ms_prediction predict(ms_ctx *cx, const ms_plan *plan, const ms_model *model)
{
    ms_prediction prediction;
    ASSERT_OK(ms_plan_check(cx, plan, model, MS_NOWHERE), cx);
    ms_workload *workload = open_with(cx, plan, model);
    ASSERT_OK(ms_predict(cx, workload, plan, &prediction), cx);
    ms_workload_close(workload);
    return prediction;
}

/* ---- SimuMax ---- */

typedef struct simumax_row {
    long tp, pp, dp, cp, sequence;
    double states[3]; /* bytes of parameters, gradients, optimizer state */
    double activations, logits, head_gradient, measured_gib;
} simumax_row;

/* Llama 3 70B cut to 12 layers, one sequence a micro-batch, distributed optimizer,
 * sequence parallelism. bf16 parameters, fp32 gradients, 12 bytes a parameter of
 * optimizer state over dp x cp; 12h + 4h_kv + 6f + 4a bytes a token and layer over tp
 * (hidden h, key width h_kv, MLP width f, a heads); fp32 logits; one fp32 gradient of the
 * head's matrix. The published numbers count norm parameters as divided over tp. */
static const simumax_row simumax_rows[] = {
    {2,
     1,
     4,
     1,
     4096,
     {12369207296, 24738414592, 18553810944},
     6750732288,
     1050673152,
     2101346304,
     60.68},
    {4,
     1,
     2,
     1,
     4096,
     {6184603648, 12369207296, 18553810944},
     3375366144,
     525336576,
     1050673152,
     39.07},
    {8,
     1,
     1,
     1,
     4096,
     {3092301824, 6184603648, 18553810944},
     1687683072,
     262668288,
     525336576,
     28.29},
    {2,
     1,
     1,
     4,
     32768,
     {12369207296, 24738414592, 18553810944},
     13501464576,
     2101346304,
     2101346304,
     68.43},
    {1,
     1,
     1,
     8,
     32768,
     {24738414592, 49476829184, 18553810944},
     13501464576,
     2101346304,
     4202692608,
     104.51},
    {2,
     1,
     1,
     4,
     131072,
     {12369207296, 24738414592, 18553810944},
     54005858304,
     8405385216,
     2101346304,
     112.67},
    {1,
     1,
     1,
     8,
     131072,
     {24738414592, 49476829184, 18553810944},
     54005858304,
     8405385216,
     4202692608,
     147.99},
};
#define NUM_SIMUMAX_ROWS (int)(sizeof simumax_rows / sizeof *simumax_rows)

/* Parameters of 25 norms of width 8192, which every tp rank holds whole. */
static const double norm_params = 25.0 * 8192.0;

static ms_model twelve_layers(ms_ctx *cx)
{
    const ms_model *model;
    ASSERT_OK(ms_model_load(cx, "llama-3.1-70b", &model), cx);
    ms_model twelve = *model; /* all layers are of one kind */
    twelve.num_layers = 12;
    return twelve;
}

static ms_plan simumax_plan(long tp, long pp, long dp, long cp, long sequence)
{
    ms_plan plan = ms_plan_default(8);
    plan.model = "llama-3.1-70b";
    plan.cluster = "hgx-b200";
    plan.stack = "simumax";
    plan.size[MS_TP] = tp;
    plan.size[MS_PP] = pp;
    plan.size[MS_DP_SHARD] = dp;
    plan.size[MS_CP] = cp;
    plan.sequence_length = sequence;
    plan.global_batch = pp > 1 ? 8 * dp : dp;
    plan.zero = 1;
    plan.sequence_parallel = tp > 1;
    return plan;
}

static ms_prediction simumax_prediction(const simumax_row *row)
{
    ms_ctx *cx = test_cx();
    ms_model model = twelve_layers(cx);
    ms_plan plan = simumax_plan(row->tp, row->pp, row->dp, row->cp, row->sequence);
    return predict(cx, &plan, &model);
}

static void simumax_states_are_exact(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SIMUMAX_ROWS; i++) {
        const simumax_row *row = &simumax_rows[i];
        ms_prediction p = simumax_prediction(row);
        double whole_norms = norm_params * (1.0 - 1.0 / (double)row->tp);
        double shards = (double)(row->dp * row->cp);
        ASSERT_NEAR(p.memory[MS_MEMORY_PARAMS], row->states[0] + 2.0 * whole_norms,
                    1e-15);
        ASSERT_NEAR(p.memory[MS_MEMORY_OPTIMIZER],
                    row->states[2] + 12.0 * whole_norms / shards, 1e-15);
        /* the gradient of the head's matrix counts as a gradient */
        ASSERT_NEAR(p.memory[MS_MEMORY_GRADS],
                    row->states[1] + row->head_gradient + 4.0 * whole_norms, 1e-15);
        ASSERT_NEAR(p.memory[MS_MEMORY_LOGITS], row->logits, 1e-15);
    }
}

/* The activation formula omits what the head saves (input and output of its norm, 4h, and
 * 8 bytes of fp32 statistics a token) and temporary results within a block's backward: at
 * most an MLP's, 4f, or three whole tensors of the stream, 6h bytes a token. */
static void simumax_activations_follow_the_formula(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SIMUMAX_ROWS; i++) {
        const simumax_row *row = &simumax_rows[i];
        ms_prediction p = simumax_prediction(row);
        double tokens = (double)(row->sequence / row->cp), t = (double)row->tp;
        double head = (4.0 * 8192.0 / t + 8.0) * tokens;
        double beyond = p.memory[MS_MEMORY_ACTIVATIONS] - row->activations - head;
        if (beyond < 0.0 || beyond > 4.0 * fmax(28672.0 / t, 1.5 * 8192.0) * tokens)
            fail_msg("row %d: %.0f bytes beyond the formula", i, beyond);
    }
}

static void simumax_peaks_are_within_1_percent(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_SIMUMAX_ROWS; i++)
        ASSERT_NEAR(simumax_prediction(&simumax_rows[i]).peak_bytes / GIB,
                    simumax_rows[i].measured_gib, 0.01);
}

/* tp 1, pp 2, dp 4: two micro-batches alive on the first stage. 66.55 GiB measured. */
static void simumax_pipeline_peaks_on_its_first_stage(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_model model = twelve_layers(cx);
    ms_plan plan = simumax_plan(1, 2, 4, 1, 4096);
    const long halves[] = {6, 6};
    plan.num_stage_layers = 2;
    plan.layers_per_stage = halves;
    ms_prediction p = predict(cx, &plan, &model);
    ASSERT_INT(p.worst_rank, 0);
    ASSERT_NEAR(p.memory[MS_MEMORY_PARAMS], 12369199104.0, 1e-15);
    ASSERT_NEAR(p.memory[MS_MEMORY_GRADS], 24738398208.0, 1e-15);
    ASSERT_NEAR(p.memory[MS_MEMORY_OPTIMIZER], 18553798656.0, 1e-15);
    ASSERT_NEAR(p.memory[MS_MEMORY_LOGITS], 0.0, 0);
    double beyond = p.memory[MS_MEMORY_ACTIVATIONS] - 13501464576.0;
    /* at most an MLP's temporary results and the gradient from the second stage */
    assert_true(beyond >= 0.0 && beyond <= (4.0 * 28672.0 + 2.0 * 8192.0) * 4096.0);
    ASSERT_NEAR(p.peak_bytes / GIB, 66.55, 0.03);
}

/* ---- TorchTitan ---- */

typedef struct titan_row {
    const char *stack, *cluster;
    long gpus, microbatch;
    ms_recompute recompute;
    double states, activations, logit_bytes, formula_gib, measured_gib;
} titan_row;

#define H100_2024 "torchtitan-2024", "h100-96g-500w"
#define H200_2025 "torchtitan", "hgx-h200"

/* Llama 3.1 8B with FSDP: 16 bytes a parameter over the shards; 63,616 bytes a token and
 * layer, or 2h with full recomputation (hidden h); 14 bytes a logit, 4 with a compiled
 * loss; for the largest unit, the head, two buffers of gathered bf16 parameters, the bf16
 * gradient and the fp32 buffer of its reduction: 10 bytes a parameter. */
static const titan_row titan_rows[] = {
    {H100_2024, 8, 2, MS_RECOMPUTE_PER_OP, 16060522496, 33353105408, 14, 78.31, 77.0},
    {H100_2024, 8, 4, MS_RECOMPUTE_FULL, 16060522496, 8589934592, 14, 82.64, 83.9},
    {H100_2024, 128, 2, MS_RECOMPUTE_PER_OP, 1003782656, 33353105408, 14, 64.29, 62.0},
    {H200_2025, 32, 2, MS_RECOMPUTE_PER_OP, 4015130624, 33353105408, 4, 47.52, 47.96},
    {H200_2025, 64, 2, MS_RECOMPUTE_PER_OP, 2007565312, 33353105408, 4, 45.65, 46.97},
};

static ms_prediction titan_prediction(const titan_row *row)
{
    ms_ctx *cx = test_cx();
    const ms_model *model;
    ASSERT_OK(ms_model_load(cx, "llama-3.1-8b", &model), cx);
    ms_plan plan = ms_plan_default(row->gpus);
    plan.model = "llama-3.1-8b";
    plan.cluster = row->cluster;
    plan.stack = row->stack;
    plan.size[MS_DP_SHARD] = row->gpus;
    plan.sequence_length = 8192;
    plan.microbatch = row->microbatch;
    plan.global_batch = row->gpus * row->microbatch;
    plan.zero = 3;
    plan.recompute = row->recompute;
    plan.sequence_parallel = false;
    return predict(cx, &plan, model);
}

static void torchtitan_states_and_logits_are_exact(void **state)
{
    (void)state;
    const double head_bytes = 2.0 * 128256.0 * 4096.0;
    for (size_t i = 0; i < sizeof titan_rows / sizeof *titan_rows; i++) {
        const titan_row *row = &titan_rows[i];
        ms_prediction p = titan_prediction(row);
        double states = p.memory[MS_MEMORY_PARAMS] + p.memory[MS_MEMORY_GRADS] +
                        p.memory[MS_MEMORY_OPTIMIZER];
        double extra =
            states - row->states; /* bytes of the head's gradient, if alive at the peak */
        assert_true(extra >= -1.0 && extra <= head_bytes + 1.0);
        ASSERT_NEAR(p.memory[MS_MEMORY_LOGITS],
                    row->logit_bytes * 128256.0 * 8192.0 * (double)row->microbatch,
                    1e-12);
        assert_true(p.memory[MS_MEMORY_ACTIVATIONS] >= row->activations);
    }
}

/* The formula omits log-sum-exp and temporary results of backward: less than 1 %. */
static void torchtitan_peaks_are_within_5_percent(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof titan_rows / sizeof *titan_rows; i++) {
        double gib = titan_prediction(&titan_rows[i]).peak_bytes / GIB;
        ASSERT_NEAR(gib, titan_rows[i].formula_gib, 0.01);
        ASSERT_NEAR(gib, titan_rows[i].measured_gib, 0.05);
    }
}

/* ---- nanotron: Llama of 1B and 8B, eager, ZeRO-0, TP 1, sequences of 4096, vocabulary 131072 ---- */

typedef struct nanotron_row {
    long layers, hidden, ffn, stages, data_parallel, microbatch, global_batch;
    long first_layers; /* layers of the first stage, whose memory was logged */
    bool tied;
    double measured_gib; /* max_memory_allocated of rank 0, GiB */
} nanotron_row;

/* Runs from the Ultra-Scale Playbook's interactive benchmark. */
static const nanotron_row nanotron_rows[] = {
    {16, 2048, 8192, 1, 8, 1, 256, 16, true, 36.7},
    {16, 2048, 8192, 1, 128, 2, 256, 16, true, 48.5},
    {16, 2048, 8192, 2, 4, 1, 256, 10, false, 26.8},
    {16, 2048, 8192, 8, 1, 1, 256, 3, false, 18.4},
    {32, 4096, 14336, 8, 1, 1, 256, 5, false, 62.5},
    {32, 4096, 14336, 8, 2, 1, 256, 5, false, 65.9},
    {32, 4096, 14336, 16, 8, 1, 256, 3, false, 62.6},
};

static ms_prediction nanotron_prediction(const nanotron_row *row, long tp)
{
    ms_ctx *cx = test_cx();
    const ms_model *base;
    ASSERT_OK(ms_model_load(cx, "llama-2-7b", &base), cx);
    ms_model model = *base;
    model.num_layers = row->layers;
    model.kind_of_layer = MS_NEW_ARRAY(cx->arena, row->layers, unsigned char);
    model.hidden = row->hidden;
    model.num_heads = model.num_kv_heads = 32;
    model.head_dim = model.value_head_dim = row->hidden / 32;
    model.ffn_hidden = row->ffn;
    model.vocab = 131072;
    model.tied_embeddings = row->tied;
    ms_plan plan = ms_plan_default(row->stages * row->data_parallel * tp);
    plan.cluster = "h100-efa";
    plan.stack = "nanotron";
    plan.size[MS_TP] = tp;
    plan.size[MS_PP] = row->stages;
    plan.size[MS_DP_SHARD] = row->data_parallel;
    plan.sequence_length = 4096;
    plan.microbatch = row->microbatch;
    plan.global_batch = row->global_batch;
    plan.zero = 0;
    plan.sequence_parallel = tp > 1;
    return predict(cx, &plan, &model);
}

/* Activations of the first stage: 20h + 8f bytes a token and layer (hidden h, MLP width
 * f) and log-sum-exp, per micro-batch in flight; a backward adds less than a layer. */
static void nanotron_keeps_what_eager_operations_make(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nanotron_rows / sizeof *nanotron_rows; i++) {
        const nanotron_row *row = &nanotron_rows[i];
        const ms_prediction p = nanotron_prediction(row, 1);
        const ms_stage_prediction *first = &p.stages[0];
        double layer =
            (20.0 * (double)row->hidden + 8.0 * (double)row->ffn + 4.0 * 32.0) * 4096.0 *
            (double)row->microbatch;
        double kept = layer * (double)(row->first_layers * first->live_microbatches);
        ASSERT_INT(first->num_layers, row->first_layers);
        assert_true(first->memory[MS_MEMORY_ACTIVATIONS] >= kept);
        assert_true(first->memory[MS_MEMORY_ACTIVATIONS] <= kept + layer);
    }
}

/* Peak of the first stage as nanotron prints it: allocated bytes, to which what the loss
 * may need once more does not belong. */
static double nanotron_gib(const ms_prediction *p)
{
    const ms_stage_prediction *first = &p->stages[0];
    return (first->peak_bytes - first->memory[MS_MEMORY_FRAGMENTATION]) / GIB;
}

/* Peaks are published to 0.1 GiB. The 1B model on two stages is predicted 3 % too high:
 * at its real peak not all bf16 gradients exist. */
static void nanotron_first_stages_are_within_4_percent(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nanotron_rows / sizeof *nanotron_rows; i++) {
        const ms_prediction p = nanotron_prediction(&nanotron_rows[i], 1);
        ASSERT_NEAR(nanotron_gib(&p), nanotron_rows[i].measured_gib, 0.04);
    }
}

/* 1B model on one stage, tp 16, dp 8, micro-batch 32 of a batch of 256; measured: 41.0
 * GiB. It keeps two gathered inputs of 2h bytes a token and layer (beyond the rank's own
 * sixteenth), and the head's whole input and its gradient. */
static void nanotron_without_a_pipeline_keeps_what_it_gathered(void **state)
{
    (void)state;
    const nanotron_row row = {16, 2048, 8192, 1, 8, 32, 256, 16, true, 41.0};
    const ms_prediction p = nanotron_prediction(&row, 16);
    double tokens = 32.0 * 4096.0,
           gathered = 2.0 * 2.0 * 2048.0 * 16.0 * tokens * 15.0 / 16.0,
           split = (20.0 * 2048.0 + 8.0 * 8192.0) / 16.0 * 16.0 * tokens,
           of_head = 2.0 * 2.0 * 2048.0 * tokens, again = 2.0 * 2048.0 * tokens;
    ASSERT_NEAR(p.stages[0].memory[MS_MEMORY_ACTIVATIONS],
                gathered + split + of_head + again, 0.005);
    ASSERT_NEAR(nanotron_gib(&p), row.measured_gib, 0.04);
}

/* ---- Zero Bubble: Megatron-LM, 1F1B, dropout, attention scores kept ---- */

typedef struct bubble_row {
    long layers, hidden, heads, stages, microbatch, microbatches, end_layers;
    double states, activations, measured_gb; /* on pipeline rank 1: bytes, bytes, GB */
} bubble_row;

/* The first and last stage have one layer fewer, so pipeline rank 1 peaks: 16 bytes a
 * parameter, and p - 1 micro-batches alive with n layers of 34 s b h + 5 a s^2 b bytes
 * each (p stages, s sequence, b micro-batch, h hidden, a heads). */
static const bubble_row bubble_rows[] = {
    {22, 2304, 24, 8, 6, 24, 2, 3059085312, 25961693184, 30},
    {62, 6144, 48, 32, 1, 96, 1, 14498070528, 28865200128, 43},
};

static ms_model bubble_model(ms_ctx *cx, const bubble_row *row)
{
    return (ms_model){.name = "gpt",
                      .num_layers = row->layers,
                      .hidden = row->hidden,
                      .num_heads = row->heads,
                      .num_kv_heads = row->heads,
                      .head_dim = row->hidden / row->heads,
                      .value_head_dim = row->hidden / row->heads,
                      .ffn_hidden = 4 * row->hidden,
                      .vocab = 50304,
                      .max_positions = 1024,
                      .norm = MS_NORM_LAYER,
                      .norm_bias = true,
                      .norms_per_layer = 2,
                      .final_norm = true,
                      .activation = MS_ACT_GELU,
                      .position = MS_POSITION_LEARNED,
                      .qkv_bias = true,
                      .attention_out_bias = true,
                      .mlp_bias = true,
                      .dropout = true,
                      .num_kinds = 1,
                      .kind_of_layer =
                          MS_NEW_ARRAY(cx->arena, row->layers, unsigned char)};
}

static ms_prediction bubble_prediction(const bubble_row *row)
{
    ms_ctx *cx = test_cx();
    ms_model model = bubble_model(cx, row);
    ms_plan plan = ms_plan_default(row->stages);
    plan.model = "gpt";
    plan.cluster = "hgx-a100-80g";
    plan.stack = "megatron-2021";
    plan.size[MS_PP] = row->stages;
    plan.size[MS_DP_SHARD] = 1;
    plan.sequence_length = 1024;
    plan.microbatch = row->microbatch;
    plan.global_batch = row->microbatch * row->microbatches;
    plan.zero = 0;
    plan.sequence_parallel = false;
    long *layers = MS_NEW_ARRAY(cx->arena, row->stages, long);
    for (long i = 0; i < row->stages; i++)
        layers[i] = row->end_layers + (i > 0 && i < row->stages - 1);
    plan.layers_per_stage = layers;
    plan.num_stage_layers = row->stages;
    return predict(cx, &plan, &model);
}

/* The formula omits log-sum-exp and temporary results of one layer's backward. */
static void zero_bubble_1f1b_rows(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const bubble_row *row = &bubble_rows[i];
        ms_prediction p = bubble_prediction(row);
        const ms_stage_prediction *second = &p.stages[1];
        ASSERT_INT(p.worst_rank, 1);
        ASSERT_INT(second->live_microbatches, row->stages - 1);
        ASSERT_NEAR(second->memory[MS_MEMORY_PARAMS] + second->memory[MS_MEMORY_GRADS] +
                        second->memory[MS_MEMORY_OPTIMIZER],
                    row->states, 1e-15);
        assert_true(second->memory[MS_MEMORY_ACTIVATIONS] >= row->activations);
        ASSERT_NEAR(second->memory[MS_MEMORY_ACTIVATIONS], row->activations, 0.01);
        ASSERT_NEAR(second->peak_bytes / 1e9, row->measured_gb, 0.035);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simumax_states_are_exact),
        cmocka_unit_test(simumax_activations_follow_the_formula),
        cmocka_unit_test(simumax_peaks_are_within_1_percent),
        cmocka_unit_test(simumax_pipeline_peaks_on_its_first_stage),
        cmocka_unit_test(torchtitan_states_and_logits_are_exact),
        cmocka_unit_test(torchtitan_peaks_are_within_5_percent),
        cmocka_unit_test(nanotron_keeps_what_eager_operations_make),
        cmocka_unit_test(nanotron_first_stages_are_within_4_percent),
        cmocka_unit_test(nanotron_without_a_pipeline_keeps_what_it_gathered),
        cmocka_unit_test(zero_bubble_1f1b_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
