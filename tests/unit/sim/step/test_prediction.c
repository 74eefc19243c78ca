/* Predictions of training steps by hand. The GPU computes and sends in next to no
 * time, and its host takes 3 s for every layer and micro-batch: a layer takes 1 s
 * forward and 2 s backward. Step times, bubbles, rates and sums follow from counting. */
#include "sim/step/prediction.h"

#include "tests/support/small_models.h"
#include "tests/test.h"

#define PEAK 1e20 /* peak rate, FLOP/s */

typedef struct bench {
    ms_ctx *cx;
    ms_model model;
    ms_cluster cluster;
    ms_profile profile;
    ms_stack stack;
} bench;

static void set_machine(bench *b)
{
    b->cluster = (ms_cluster){
        .name = "ideal",
        .network = "none",
        .gpus_per_node = 8,
        .num_levels = 1,
        .levels = {{.name = "link",
                    .bandwidth_bytes_per_s = 1e20,
                    .oversubscription = 1}},
        .device = {.memory_bytes = 1e12, .hbm_bytes_per_s = 1e20, .num_sms = 1}};
    b->cluster.device.peak_flop_per_s[MS_BF16] = PEAK;
    b->profile = (ms_profile){.tile_m.value = 1,
                              .tile_n.value = 1,
                              .hbm_frac.value = 1,
                              .link_frac.value = 1,
                              .all_to_all_frac.value = 1,
                              .nvls_bytes_per_s.value = NAN};
    b->profile.gemm[MS_BF16].efficiency.value = 1;
    b->profile.gemm[MS_BF16].sustained_frac.value = 1;
    for (int i = 0; i < MS_NUM_ATTENTION_KERNELS; i++) {
        ms_attention_profile *attention = &b->profile.attention[i];
        attention->forward_flop_per_s.value = attention->backward_flop_per_s.value = 1e20;
        attention->small_head_frac.value = attention->sustained_frac.value = 1;
    }
    b->stack = (ms_stack){.attention = MS_ATTENTION_FA2,
                          .host_s_per_layer.value = 3,
                          .dp_overlap.value = 1,
                          .optimizer_bytes.value = 1,
                          .param_bytes.value = 2,
                          .grad_bytes.value = 4,
                          .moment_bytes.value = 8,
                          .logit_bytes.value = 2,
                          .param_comm_bytes.value = 2,
                          .grad_comm_bytes.value = 4,
                          .layer_split = MS_SPLIT_EVEN};
}

/* Opens a model of four layers, hidden size 16, 8 heads of 4, MLP width 24, vocabulary
 * 32. */
static bench *open_bench(void)
{
    ms_ctx *cx = test_cx();
    bench *b = MS_NEW(cx->arena, bench);
    b->cx = cx;
    b->model = ms_small_llama();
    b->model.num_layers = 4;
    b->model.kind_of_layer = MS_NEW_ARRAY(cx->arena, 4, unsigned char);
    set_machine(b);
    return b;
}

/* A plan on pp x dp_shard x tp with sequences of 16 tokens and micro-batches of one
 * sequence. */
static ms_plan make_plan(long pp, long dp, long tp, long microbatches)
{
    ms_plan plan = {.gpus = pp * dp * tp,
                    .size = {pp, 1, dp, 1, tp},
                    .ep = 1,
                    .etp = 1,
                    .sequence_length = 16,
                    .global_batch = dp * microbatches,
                    .microbatch = 1,
                    .schedule = MS_1F1B,
                    .virtual_stages = 1,
                    .reshard_after_forward = true,
                    .compute = MS_BF16};
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        plan.order[i] = (unsigned char)i;
    return plan;
}

static ms_prediction predict(bench *b, const ms_plan *plan)
{
    const ms_workload_inputs inputs = {&b->model, &b->cluster, &b->profile, &b->stack,
                                       NULL};
    ms_workload *workload;
    ms_prediction prediction;
    ASSERT_OK(ms_workload_make(b->cx, &inputs, plan, &workload), b->cx);
    ASSERT_OK(ms_predict(b->cx, workload, plan, &prediction), b->cx);
    ms_workload_close(workload);
    return prediction;
}

/* ---- times ---- */

/* Host time of the embedding and of the head, in units of a layer's host time: they
 * launch 1 and 5 kernels in forward, a layer launches 15. */
static const double embed_layers = 1.0 / 15, head_layers = 5.0 / 15;

/* Two stages of two layers (1 s forward, 2 s backward each) and the embedding or the
 * head: the step is a forward of the first stage, four forwards and backwards of the
 * last, and a backward of the first. */
static void a_step_is_counted_in_slots(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_plan plan = make_plan(2, 1, 1, 4);
    ms_prediction p = predict(b, &plan);
    double first_s = 3 * (2 + embed_layers), last_s = 3 * (2 + head_layers);
    double step_s = first_s + 4 * last_s;
    ASSERT_NEAR(p.step_s, step_s, 1e-9);
    ASSERT_NEAR(p.host_s, 4 * last_s, 1e-9);
    ASSERT_NEAR(p.bubble_s, first_s, 1e-9);
    assert_true(p.compute_s < 1e-9 && p.exposed_comm_s < 1e-9 && p.optimizer_s < 1e-9);
    ASSERT_NEAR(p.tokens_per_s, 4 * 16 / step_s, 1e-9);
    ASSERT_NEAR(p.tokens_per_s_per_gpu, 2 * 16 / step_s, 1e-9);
}

static void stages_report_their_own_seconds(void **state)
{
    (void)state;
    bench *b = open_bench();
    static const long uneven[] = {1, 3};
    ms_plan plan = make_plan(2, 1, 1, 4);
    plan.num_stage_layers = 2;
    plan.layers_per_stage = uneven;
    ms_prediction p = predict(b, &plan);
    ASSERT_INT(p.num_stages, 2);
    for (int rank = 0; rank < 2; rank++) {
        const ms_stage_prediction *stage = &p.stages[rank];
        ASSERT_INT(stage->rank, rank);
        ASSERT_INT(stage->num_layers, uneven[rank]);
        double forward_s =
            (double)uneven[rank] + (rank == 0 ? embed_layers : head_layers);
        ASSERT_NEAR(stage->forward_s, forward_s, 1e-9);
        ASSERT_NEAR(stage->backward_s, 2 * forward_s, 1e-9);
        ASSERT_NEAR(stage->busy_s, 4 * 3 * forward_s, 1e-9);
    }
    /* rank 1 works without a pause from rank 0's first forward to rank 0's last
     * backward */
    ASSERT_NEAR(p.step_s, 3 * (1 + embed_layers) + 12 * (3 + head_layers), 1e-9);
}

/* Interleaved chunks of one layer on two ranks: rank 0 holds the embedding and two
 * layers, rank 1 two layers and the head; every slot takes as long as the longest
 * chunk. */
static void stages_sum_their_chunks(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_plan plan = make_plan(2, 1, 1, 4);
    plan.schedule = MS_INTERLEAVED;
    plan.virtual_stages = 2;
    ms_prediction p = predict(b, &plan);
    ASSERT_INT(p.num_stage_layers, 4);
    for (int rank = 0; rank < 2; rank++) {
        ASSERT_INT(p.stages[rank].num_layers, 2);
        double forward_s = 2 + (rank == 0 ? embed_layers : head_layers);
        ASSERT_NEAR(p.stages[rank].forward_s, forward_s, 1e-9);
        ASSERT_NEAR(p.stages[rank].backward_s, 2 * forward_s, 1e-9);
        ASSERT_NEAR(p.stages[rank].busy_s, 12 * forward_s, 1e-9);
        ASSERT_INT(p.layers_per_stage[rank], 1);
    }
    /* 2 (p - 1) + (v - 1) p + 1 chunks for p = v = 2 */
    ASSERT_INT(p.stages[0].live_microbatches, 5);
    ASSERT_INT(p.stages[1].live_microbatches, 3);
}

static void stages_report_their_own_memory(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_plan plan = make_plan(2, 2, 1, 4);
    ms_prediction p = predict(b, &plan);
    ASSERT_INT(p.stages[0].live_microbatches, 2);
    ASSERT_INT(p.stages[1].live_microbatches, 1);
    double largest = 0;
    for (int rank = 0; rank < 2; rank++) {
        double sum = 0;
        for (int i = 0; i < MS_NUM_MEMORY_CATEGORIES; i++)
            sum += p.stages[rank].memory[i];
        ASSERT_NEAR(p.stages[rank].peak_bytes, sum, 1e-12);
        largest = fmax(largest, sum);
        /* two layers of 2720; rank 0 the embedding of 32 x 16, rank 1 a head of 32 x
         * 16 and a norm of 16 */
        double params = 2 * 2720 + 512 + 16 * rank;
        ASSERT_NEAR(p.stages[rank].memory[MS_MEMORY_PARAMS], 2 * params, 0);
        ASSERT_NEAR(p.stages[rank].memory[MS_MEMORY_GRADS], 4 * params, 0);
    }
    ASSERT_NEAR(p.peak_bytes, largest, 0);
    ASSERT_NEAR(p.stages[p.worst_rank].peak_bytes, largest, 0);
    assert_true(p.fits);
}

/* A plan on two data-parallel ranks needs, besides the peak that its framework reports,
 * memory for the context (1000 bytes) and two communicators (of the world and of the
 * shards, 100 each). It fits a device with exactly the sum, and does not with one byte
 * less. The reported peak is the same in both cases. */
static void a_plan_fits_with_what_its_framework_does_not_count(void **state)
{
    (void)state;
    bench *b = open_bench();
    b->profile.context_bytes.value = 1000;
    b->profile.communicator_bytes.value = 100;
    ms_plan plan = make_plan(1, 2, 1, 4);
    double reported_bytes = predict(b, &plan).peak_bytes;
    for (int missing = 0; missing < 2; missing++) {
        b->cluster.device.memory_bytes = reported_bytes + 1200 - missing;
        ms_prediction p = predict(b, &plan);
        ASSERT_NEAR(p.peak_bytes, reported_bytes, 0);
        ASSERT_NEAR(p.outside_bytes, 1200, 0);
        ASSERT_NEAR(ms_prediction_free_bytes(&p, p.peak_bytes), -missing, 1e-9);
        assert_true(p.fits == (missing == 0));
    }
    b->stack.counts_context = true;
    ms_prediction counted = predict(b, &plan);
    ASSERT_NEAR(counted.peak_bytes, reported_bytes + 1200, 1e-9);
    ASSERT_NEAR(counted.outside_bytes, 0, 0);
}

/* Six sources have runs on few GPUs, five on many: the interval of a plan's step time
 * comes from sources of its number of GPUs, that of its memory peak from one class for
 * all. */
static void peaks_are_classed_alike_on_any_number_of_gpus(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_error_row rows[11];
    for (int i = 0; i < 11; i++) {
        const char *source = ms_arena_printf(b->cx->arena, "source %d", i);
        double error = i < 6 ? 0.1 : 0.5;
        rows[i] = (ms_error_row){source, source, "stack", i < 6 ? MS_PEAK_CLASS_GPUS : 64,
                                 error,  error};
    }
    b->stack.name = "another stack";
    ms_error_spread spread = ms_error_spread_make(b->cx->arena, rows, 11, 2.0);
    for (long gpus = 8; gpus <= 64; gpus *= 8) {
        ms_plan plan = make_plan(1, gpus, 1, 4);
        const ms_workload_inputs inputs = {&b->model, &b->cluster, &b->profile, &b->stack,
                                           NULL};
        ms_workload *workload;
        ms_prediction p;
        ASSERT_OK(ms_workload_make(b->cx, &inputs, &plan, &workload), b->cx);
        workload->spread = workload->peak_spread = &spread;
        ASSERT_OK(ms_predict(b->cx, workload, &plan, &p), b->cx);
        ms_workload_close(workload);
        ASSERT_INT(p.interval.num_runs[MS_ERRORS_OF_SCALE], gpus == 8 ? 6 : 5);
        ASSERT_INT(p.peak_interval.num_runs[MS_ERRORS_OF_SCALE], 6);
    }
}

/* ---- rates ---- */

/* Model FLOP of a token. 6 for each of 11408 parameters: 4 layers of 1536 (attention) +
 * 1152 (MLP) + 32 (norms), a last norm of 16, a head of 512. For attention 6 x 4 x 8 x (4
 * + 4) x 16 more: 4 layers, 8 heads, keys and values of 4 each, all 16 tokens. */
#define FULL_FLOP (6.0 * 11408 + 24576)
/* FLOP executed for a sequence of 16 tokens. For each token 6 for each parameter, as in
 * model FLOP. For attention 56 for each of 136 causal pairs of
 * tokens, 8 heads and 4 layers: 2 (4 + 4) forward and 2 (3 x 4 + 2 x 4) backward. */
#define SEQUENCE_FLOP (16 * 6.0 * 11408 + 56.0 * 136 * 8 * 4)
/* FLOP executed again by the recomputation of one layer for a sequence. For each token 2
 * for each of 1536 + 768 weights: without the MLP's last product, whose result backward
 * does not read. For attention 16 for each causal pair and head. */
#define AGAIN_FLOP (16 * 2.0 * 2304 + 16.0 * 136 * 8)

static void expect_rates(const ms_prediction *p, const ms_plan *plan, double flop)
{
    double sequences = (double)plan->global_batch, gpus = (double)plan->gpus;
    ASSERT_NEAR(p->mfu_frac, sequences * 16 * FULL_FLOP / (p->step_s * gpus * PEAK),
                1e-12);
    ASSERT_NEAR(p->mfu_causal_frac,
                sequences * 16 * (FULL_FLOP - 12288) / (p->step_s * gpus * PEAK), 1e-12);
    ASSERT_NEAR(p->hfu_frac, sequences * flop / (p->step_s * gpus * PEAK), 1e-12);
}

static void utilisation_counts_model_and_executed_flop(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_plan plan = make_plan(1, 1, 1, 3);
    ms_prediction p = predict(b, &plan);
    ASSERT_NEAR(p.step_s, 3 * 3 * (4 + embed_layers + head_layers), 1e-9);
    expect_rates(&p, &plan, SEQUENCE_FLOP);
}

static void utilisation_is_shared_by_all_ranks(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_plan plan = make_plan(2, 2, 2, 4);
    ms_prediction p = predict(b, &plan);
    ASSERT_INT(plan.gpus, 8);
    expect_rates(&p, &plan, SEQUENCE_FLOP);
    plan.sequence_parallel = plan.loss_parallel = true;
    p = predict(b, &plan);
    expect_rates(&p, &plan, SEQUENCE_FLOP);
}

/* A measured product of 2e6 FLOP replaces the listed peak if it is faster and of the
 * same type; a slower one and one of another type do not. */
static void a_measured_rate_above_the_peak_replaces_it(void **state)
{
    (void)state;
    static const struct {
        double seconds, rate;
        ms_dtype dtype;
    } rows[] = {{1e-14, 2e20, MS_BF16}, {4e-14, NAN, MS_BF16}, {1e-14, NAN, MS_FP32}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bench *b = open_bench();
        double products[] = {1, 100, 100, 100, 1e-9, 1, 100, 100, 100, rows[i].seconds};
        ms_sweep measured = {.dtype = (int)rows[i].dtype, .products = {2, products}};
        b->profile.measured = &measured;
        ms_plan plan = make_plan(2, 2, 2, 4);
        ms_prediction p = predict(b, &plan);
        ASSERT_INT(isnan(p.measured_peak_flop_per_s), isnan(rows[i].rate));
        double peak = isnan(rows[i].rate) ? PEAK : p.measured_peak_flop_per_s;
        if (!isnan(rows[i].rate))
            ASSERT_NEAR(peak, rows[i].rate, 1e-12);
        ASSERT_NEAR(p.mfu_frac * p.step_s * (double)plan.gpus * peak,
                    (double)plan.global_batch * 16 * FULL_FLOP, 1.0);
    }
}

/* Full recomputation of the first k layers of every stage adds to the executed FLOP;
 * model FLOP stay the same. */
static void executed_flop_include_recomputed_layers(void **state)
{
    (void)state;
    static const struct {
        long pp, k, recomputed;
    } rows[] = {{1, 0, 4}, {1, 1, 1}, {1, 3, 3}, {2, 0, 4}, {2, 1, 2}, {2, 9, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bench *b = open_bench();
        ms_plan plan = make_plan(rows[i].pp, 2, 1, 4);
        plan.recompute = MS_RECOMPUTE_FULL;
        plan.recompute_layers = rows[i].k;
        ms_prediction p = predict(b, &plan);
        expect_rates(&p, &plan, SEQUENCE_FLOP + (double)rows[i].recomputed * AGAIN_FLOP);
    }
}

/* An attention window of 5 tokens leaves 5 (2 - 5/16) pairs a token for the model's
 * FLOP, and 15 + 11 x 5 pairs a sequence for the kernels. */
static void utilisation_counts_pairs_in_the_window(void **state)
{
    (void)state;
    bench *b = open_bench();
    b->model.kinds[0].window_tokens = 5;
    ms_plan plan = make_plan(1, 1, 1, 1);
    ms_prediction p = predict(b, &plan);
    double model_flop = 6.0 * 11408 + 6 * 4 * 8 * 8 * 5 * (2 - 5 / 16.0);
    double flop = 16 * 6.0 * 11408 + 56.0 * 70 * 8 * 4;
    ASSERT_NEAR(p.mfu_frac, 16 * model_flop / (p.step_s * PEAK), 1e-12);
    ASSERT_NEAR(p.hfu_frac, flop / (p.step_s * PEAK), 1e-12);
}

/* ---- the default split ---- */

/* The framework nanotron splits layers by cost: a layer counts 4 h^2 + 3 h f + s h =
 * 2432, the head 512, 10240 in all; the first stage ends with the third layer, the
 * first one beyond half of it. */
static void the_split_is_the_habit_of_the_stack(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_plan plan = make_plan(2, 1, 1, 4);
    ms_prediction even = predict(b, &plan);
    ASSERT_INT(even.layers_per_stage[0], 2);
    ASSERT_INT(even.layers_per_stage[1], 2);
    b->stack.layer_split = MS_SPLIT_BY_FLOP;
    ms_prediction by_flop = predict(b, &plan);
    ASSERT_INT(by_flop.layers_per_stage[0], 3);
    ASSERT_INT(by_flop.layers_per_stage[1], 1);
}

/* The optimizer takes no time here, and a send takes 0.25 s, whatever its bytes: the
 * exchange of a tied embedding's gradient shows as one send. */
static void tied_embeddings_in_two_stages_exchange_their_gradient(void **state)
{
    (void)state;
    bench *b = open_bench();
    b->profile.p2p_base_s.value = 0.25;
    b->stack.optimizer_bytes.value = 0;
    ms_plan plan = make_plan(2, 1, 1, 4);
    double apart_s = predict(b, &plan).optimizer_s;
    b->model.tied_embeddings = true;
    ASSERT_NEAR(predict(b, &plan).optimizer_s - apart_s, 0.25, 1e-9);
    plan = make_plan(1, 1, 1, 4);
    ASSERT_NEAR(predict(b, &plan).optimizer_s, 0.0, 0.0);
}

/* 300 stages of 1 to 300 layers are 300 classes of stages, more than any sensible plan
 * has. */
static void stages_may_all_differ(void **state)
{
    (void)state;
    enum {
        NUM_STAGES = 300
    };
    bench *b = open_bench();
    long layers[NUM_STAGES];
    b->model.num_layers = 0;
    for (int i = 0; i < NUM_STAGES; i++)
        b->model.num_layers += layers[i] = i + 1;
    b->model.kind_of_layer =
        MS_NEW_ARRAY(b->cx->arena, b->model.num_layers, unsigned char);
    ms_plan plan = make_plan(NUM_STAGES, 1, 1, 1);
    plan.num_stage_layers = NUM_STAGES;
    plan.layers_per_stage = layers;
    ms_prediction p = predict(b, &plan);
    ASSERT_INT(p.stages[NUM_STAGES - 1].num_layers, NUM_STAGES);
    /* one micro-batch passes every layer, the embedding and the head */
    double layers_alike = (double)b->model.num_layers + embed_layers + head_layers;
    ASSERT_NEAR(p.step_s, 3.0 * layers_alike, 1e-6);
    assert_true(p.bound_s <= p.step_s);
}

/* ---- copies of key-value heads ---- */

/* A model with 2 key-value heads on 4 tp ranks: each rank has a copy of one head, with 2
 * (key, value) x 16 x 4 weights in a layer. So a rank holds, computes and sends as much
 * as with 4 key-value heads. Only the model's own FLOP are those of 2 heads. */
static void ranks_beyond_the_key_value_heads_hold_copies(void **state)
{
    (void)state;
    bench *b = open_bench();
    ms_plan plan = make_plan(1, 1, 4, 1);
    ms_prediction of[2];
    double model_flop[2];
    for (int i = 0; i < 2; i++) {
        b->model.num_kv_heads = i == 0 ? 2 : 4;
        ASSERT_INT(ms_plan_refusal(&plan, &b->model), MS_LEGAL);
        of[i] = predict(b, &plan);
        model_flop[i] = ms_model_flop_per_token(&b->model, 16).full_flop;
    }
    ASSERT_INT(of[0].kv_copies, 2);
    ASSERT_INT(of[1].kv_copies, 1);
    ASSERT_NEAR(of[0].step_s, of[1].step_s, 0);
    ASSERT_NEAR(of[0].peak_bytes, of[1].peak_bytes, 0);
    ASSERT_NEAR(of[0].hfu_frac, of[1].hfu_frac, 1e-12);
    ASSERT_NEAR(of[0].mfu_frac / of[1].mfu_frac, model_flop[0] / model_flop[1], 1e-12);
    assert_true(model_flop[0] < model_flop[1]);
}

static void heads_are_copied_only_evenly_and_only_to_tp(void **state)
{
    (void)state;
    bench *b = open_bench();
    static const struct {
        long heads, kv_heads, tp, cp;
        ms_cp_method method;
        bool legal;
    } rows[] = {{8, 2, 8, 1, MS_CP_ALL_GATHER, true},
                {8, 1, 8, 1, MS_CP_ALL_GATHER, true},
                {8, 2, 4, 2, MS_CP_ALL_GATHER, true},
                {8, 2, 4, 2, MS_CP_ULYSSES, false}, /* 8 ranks for 2 key-value heads */
                {8, 4, 2, 2, MS_CP_ULYSSES, true},
                {12, 6, 4, 1, MS_CP_ALL_GATHER, false},
                {12, 2, 3, 1, MS_CP_ALL_GATHER, false},
                {8, 2, 16, 1, MS_CP_ALL_GATHER, false}};
    b->model.ffn_hidden = 48;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_plan plan = make_plan(1, 1, rows[i].tp, 1);
        plan.gpus *= rows[i].cp;
        plan.size[MS_CP] = rows[i].cp;
        plan.cp_method = rows[i].method;
        b->model.num_heads = rows[i].heads;
        b->model.num_kv_heads = rows[i].kv_heads;
        ms_refusal refusal = ms_plan_refusal(&plan, &b->model);
        ASSERT_INT(refusal, rows[i].legal ? MS_LEGAL : MS_REFUSE_HEADS);
        bool even =
            rows[i].kv_heads % rows[i].tp == 0 || rows[i].tp % rows[i].kv_heads == 0;
        ASSERT_INT(ms_model_split_kv_heads(&b->model, rows[i].tp) > 0, even);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_counted_in_slots),
        cmocka_unit_test(stages_report_their_own_seconds),
        cmocka_unit_test(stages_sum_their_chunks),
        cmocka_unit_test(stages_report_their_own_memory),
        cmocka_unit_test(a_plan_fits_with_what_its_framework_does_not_count),
        cmocka_unit_test(utilisation_counts_model_and_executed_flop),
        cmocka_unit_test(utilisation_is_shared_by_all_ranks),
        cmocka_unit_test(peaks_are_classed_alike_on_any_number_of_gpus),
        cmocka_unit_test(a_measured_rate_above_the_peak_replaces_it),
        cmocka_unit_test(executed_flop_include_recomputed_layers),
        cmocka_unit_test(utilisation_counts_pairs_in_the_window),
        cmocka_unit_test(the_split_is_the_habit_of_the_stack),
        cmocka_unit_test(tied_embeddings_in_two_stages_exchange_their_gradient),
        cmocka_unit_test(stages_may_all_differ),
        cmocka_unit_test(ranks_beyond_the_key_value_heads_hold_copies),
        cmocka_unit_test(heads_are_copied_only_evenly_and_only_to_tp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
