/* Tests of the bytes that a layer program saves for backward against published formulas:
 * Korthikanti et al. 2022 ("Reducing Activation Recomputation in Large Transformer
 * Models", equations 1-4), the Ultra-Scale Playbook's plotted values (Hugging Face 2025),
 * and itemised formulas of Megatron-LM with Transformer Engine and of TorchTitan's per-op
 * policy. Letters: s sequence length, b batch, h hidden, a heads, f MLP width, t tensor
 * and c context parallel ranks.
 *
 * The program saves one more tensor than the formulas of Korthikanti et al.: the
 * log-sum-exp of attention, 4 a bytes a token (FlashAttention, Dao et al. 2022, algorithm
 * 1). Mean and variance of norms are not saved but recomputed. */
#include "costmodel/cost/bill.h"
#include "costmodel/program/program_check.h"

#include "tests/test.h"

#define GIB 1073741824.0

typedef struct layout {
    int tp, cp;
    bool sequence_parallel, attention_fused;
    ms_recompute recompute;
} layout;

/* ---- models ---- */

/* A model with a layer as in GPT-3: LayerNorms with bias, GELU, MLP width 4 * hidden,
 * dropout in attention, after it and after the MLP. */
static ms_model gpt(long hidden, long heads)
{
    return (ms_model){.name = "gpt",
                      .num_layers = 1,
                      .hidden = hidden,
                      .num_heads = heads,
                      .num_kv_heads = heads,
                      .head_dim = hidden / heads,
                      .value_head_dim = hidden / heads,
                      .ffn_hidden = 4 * hidden,
                      .vocab = 51200,
                      .max_positions = 2048,
                      .norm = MS_NORM_LAYER,
                      .norm_bias = true,
                      .norms_per_layer = 2,
                      .activation = MS_ACT_GELU,
                      .position = MS_POSITION_LEARNED,
                      .qkv_bias = true,
                      .attention_out_bias = true,
                      .mlp_bias = true,
                      .dropout = true,
                      .num_kinds = 1};
}

static ms_model llama(long hidden, long heads, long kv_heads, long ffn)
{
    ms_model model = gpt(hidden, heads);
    model.num_kv_heads = kv_heads;
    model.ffn_hidden = ffn;
    model.norm = MS_NORM_RMS;
    model.activation = MS_ACT_SWIGLU;
    model.position = MS_POSITION_ROTARY;
    model.norm_bias = model.qkv_bias = model.attention_out_bias = model.mlp_bias = false;
    model.dropout = false;
    return model;
}

/* ---- bytes kept ---- */

static const ms_pricer *any_pricer(ms_ctx *cx)
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

/* Prices the program (ms_bill) of one layer and micro-batch on one rank. */
static ms_bill layer_bill(const ms_model *model, layout at, long sequence, int microbatch)
{
    ms_ctx *cx = test_cx();
    ms_program_key key = {.block = MS_BLOCK_LAYER,
                          .sequence_parallel = at.sequence_parallel,
                          .loss_parallel = true,
                          .attention_fused = at.attention_fused,
                          .regather = true,
                          .recompute = (unsigned char)at.recompute,
                          .tp = (short)at.tp,
                          .cp = (short)at.cp,
                          .ep = 1,
                          .etp = 1,
                          .microbatch = microbatch};
    const ms_program *program =
        ms_program_make(cx->arena, model, &key, sequence, 1, MS_BF16);
    ms_check_finding finding;
    if (!ms_program_check(program, &finding))
        fail_msg("%s", finding.text);
    return ms_bill_make(cx->arena, program, any_pricer(cx));
}

static double saved_bytes(const ms_model *model, layout at, long sequence, int microbatch)
{
    return layer_bill(model, at, sequence, microbatch).memory.saved.activation_bytes;
}

static layout whole(void)
{
    return (layout){1, 1, false, true, MS_RECOMPUTE_NONE};
}

/* Bytes of attention's log-sum-exp on one rank. */
static double lse_bytes(const ms_model *model, layout at, double tokens)
{
    return 4.0 * (double)model->num_heads / at.tp * tokens / at.cp;
}

/* ---- Korthikanti et al. ---- */

static void a_layer_without_scores_keeps_34_sbh(void **state)
{
    (void)state;
    const long shapes[][2] = {{4096, 32}, {8192, 64}, {12288, 96}};
    for (int i = 0; i < 3; i++)
        for (int b = 1; b <= 4; b *= 4) {
            ms_model model = gpt(shapes[i][0], shapes[i][1]);
            double s = 2048, h = (double)shapes[i][0];
            ASSERT_NEAR(saved_bytes(&model, whole(), 2048, b),
                        34.0 * s * b * h + lse_bytes(&model, whole(), s * b), 0);
        }
}

/* Unfused attention saves 5 a s / h of s b h bytes more (a heads, sequence s, batch b,
 * hidden h): softmax 2 bytes, dropout mask 1, dropout result 2; and the log-sum-exp. */
static void unfused_attention_adds_5_as_over_h(void **state)
{
    (void)state;
    layout at = whole();
    at.attention_fused = false;
    for (long sequence = 512; sequence <= 8192; sequence *= 4) {
        ms_model model = gpt(6144, 64);
        double s = (double)sequence, h = 6144, a = 64;
        ASSERT_NEAR(saved_bytes(&model, at, sequence, 2),
                    2.0 * s * h * (34.0 + 5.0 * a * s / h) +
                        lse_bytes(&model, at, 2.0 * s),
                    1e-14);
    }
}

/* Tensor parallelism divides 24 of 34 s b h bytes (equation 2): inputs and outputs of
 * norms (8 s b h) and the two dropout masks outside of attention are whole on every
 * rank. */
static void tensor_parallelism_divides_24_of_34(void **state)
{
    (void)state;
    ms_model model = gpt(8192, 64);
    double s = 2048, h = 8192, a = 64;
    for (int t = 2; t <= 16; t *= 2)
        for (int fused = 0; fused <= 1; fused++) {
            layout at = {t, 1, false, fused, MS_RECOMPUTE_NONE};
            double scores = fused ? 0.0 : 5.0 * a * s / (h * t);
            ASSERT_NEAR(saved_bytes(&model, at, 2048, 1),
                        s * h * (10.0 + 24.0 / t + scores) + lse_bytes(&model, at, s), 0);
        }
}

/* Sequence parallelism divides all saved bytes (Korthikanti et al. 2022, equation 4). */
static void sequence_parallelism_divides_everything(void **state)
{
    (void)state;
    ms_model model = gpt(8192, 64);
    double s = 2048, h = 8192, a = 64;
    for (int t = 2; t <= 16; t *= 2)
        for (int fused = 0; fused <= 1; fused++) {
            layout at = {t, 1, true, fused, MS_RECOMPUTE_NONE};
            double scores = fused ? 0.0 : 5.0 * a * s / h;
            ASSERT_NEAR(saved_bytes(&model, at, 2048, 1),
                        s * h / t * (34.0 + scores) + lse_bytes(&model, at, s), 1e-14);
        }
}

/* Context parallelism over c ranks divides queries by c; scores are s/c x s, as every
 * rank needs all keys. Gathered keys and values are not saved. */
static void context_parallelism_divides_the_sequence(void **state)
{
    (void)state;
    ms_model model = gpt(8192, 64);
    double s = 8192, h = 8192, a = 64;
    for (int c = 2; c <= 8; c *= 2)
        for (int fused = 0; fused <= 1; fused++)
            for (int t = 1; t <= 4; t *= 4) {
                layout at = {t, c, t > 1, fused, MS_RECOMPUTE_NONE};
                double scores = fused ? 0.0 : 5.0 * a * s / h;
                ASSERT_NEAR(saved_bytes(&model, at, 8192, 1),
                            s * h / (t * c) * (34.0 + scores) + lse_bytes(&model, at, s),
                            1e-14);
            }
}

/* Full recomputation saves a layer's input only, 2 s b h bytes (Korthikanti et al. 2022,
 * section 5); sequence parallelism divides it. */
static void full_recomputation_keeps_2_sbh(void **state)
{
    (void)state;
    ms_model model = gpt(8192, 64);
    double s = 2048, h = 8192;
    for (int t = 1; t <= 8; t *= 8)
        for (int sp = 0; sp <= (t > 1); sp++)
            for (int c = 1; c <= 4; c *= 4) {
                layout at = {t, c, sp, true, MS_RECOMPUTE_FULL};
                ASSERT_NEAR(saved_bytes(&model, at, 2048, 2),
                            2.0 * s * 2.0 * h / (sp ? t * c : c), 0);
            }
}

/* Not saving attention scores saves 70 % of the bytes for GPT-3 and 65 % for MT-NLG
 * (Korthikanti et al. 2022, section 6.1: 5as/h is 80 and 64). */
static void scores_are_most_of_what_large_models_keep(void **state)
{
    (void)state;
    const struct {
        long hidden, heads;
        double saving;
    } cases[] = {{12288, 96, 0.70}, {20480, 128, 0.65}};
    for (int i = 0; i < 2; i++) {
        ms_model model = gpt(cases[i].hidden, cases[i].heads);
        layout at = {8, 1, true, false, MS_RECOMPUTE_NONE};
        double all = saved_bytes(&model, at, 2048, 1);
        at.attention_fused = true;
        ASSERT_NEAR(1.0 - saved_bytes(&model, at, 2048, 1) / all, cases[i].saving, 0.01);
    }
}

/* ---- Qi et al. 2023 ("Zero Bubble Pipeline Parallelism", section 2.3) ---- */

/* Between a layer's input and weight gradients 32 s b h bytes stay alive (M_W in Qi et
 * al. 2023): 14 s b h of operands of the four products and 18 s b h of their results'
 * gradients. The weight gradients take 24 s b h^2 FLOP. */
static void weights_of_a_layer_wait_with_32_sbh(void **state)
{
    (void)state;
    const long shapes[][2] = {{4096, 32}, {6144, 48}, {12288, 96}};
    for (int i = 0; i < 3; i++)
        for (int sp = 0; sp <= 1; sp++) {
            ms_model model = gpt(shapes[i][0], shapes[i][1]);
            layout at = {sp ? 4 : 1, 1, sp, true, MS_RECOMPUTE_NONE};
            double s = 2048, h = (double)shapes[i][0];
            ms_bill bill = layer_bill(&model, at, 2048, 2);
            if (sp == 0)
                ASSERT_NEAR(bill.memory.delayed.activation_bytes, 32 * s * 2 * h, 0);
            ASSERT_NEAR(bill.weight_flop, s * 2 * h * 24 * h / at.tp, 1e-14);
        }
}

/* ---- plotted values of the Ultra-Scale Playbook ---- */

/* Playbook's GiB of all layers with one sequence: "8B" (32 layers, hidden 4096), "70B"
 * (80 layers, hidden 8192), head width 128; less the log-sum-exp that programs save
 * besides. Plots with scores include s b h bytes of dropout of the embedding, which is in
 * no layer. */
static void playbook_values_are_reproduced(void **state)
{
    (void)state;
    const layout one = whole();
    const layout none = {1, 1, false, false, MS_RECOMPUTE_NONE};
    const layout tp8 = {8, 1, false, true, MS_RECOMPUTE_NONE};
    const layout tp8_sp = {8, 1, true, true, MS_RECOMPUTE_NONE};
    const layout tp16_sp = {16, 1, true, true, MS_RECOMPUTE_NONE};
    const layout cp4 = {1, 4, false, true, MS_RECOMPUTE_NONE};
    const struct {
        long layers, hidden, sequence;
        layout at;
        double gib;
    } cases[] = {
        {32, 4096, 1024, one, 4.25},         {32, 4096, 4096, one, 17},
        {32, 4096, 16384, one, 68},          {32, 4096, 1024, none, 9.25},
        {32, 4096, 4096, none, 97},          {32, 4096, 16384, none, 1348},
        {80, 8192, 1024, tp8, 8.125},        {80, 8192, 4096, tp8, 32.5},
        {80, 8192, 16384, tp8, 130},         {80, 8192, 1024, tp8_sp, 2.65625},
        {80, 8192, 4096, tp8_sp, 10.625},    {80, 8192, 16384, tp8_sp, 42.5},
        {80, 8192, 1024, tp16_sp, 1.328125}, {80, 8192, 4096, tp16_sp, 5.3125},
        {80, 8192, 16384, tp16_sp, 21.25},   {32, 4096, 16384, cp4, 17},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_model model = gpt(cases[i].hidden, cases[i].hidden / 128);
        double tokens = (double)cases[i].sequence;
        double bytes = saved_bytes(&model, cases[i].at, cases[i].sequence, 1) -
                       lse_bytes(&model, cases[i].at, tokens);
        ASSERT_NEAR((double)cases[i].layers * bytes / GIB, cases[i].gib, 0);
    }
}

/* Playbook's plot of full recomputation: 2 s b h bytes a layer. */
static void playbook_full_recomputation(void **state)
{
    (void)state;
    ms_model model = gpt(4096, 32);
    layout at = whole();
    at.recompute = MS_RECOMPUTE_FULL;
    ASSERT_NEAR(32.0 * saved_bytes(&model, at, 4096, 1) / GIB, 1.0, 0);
}

/* ---- Llama ---- */

/* Llama layers with fused attention and SwiGLU as in Transformer Engine save, in bytes a
 * token: inputs and outputs of norms 8h, queries 2h, keys and values 4 h_kv, attention's
 * result 2h, gate, up and their product 6f, log-sum-exp 4a (hidden h, key width h_kv, MLP
 * width f, a heads). Fits peak memory of eight Megatron-LM runs to 0.3 %. */
static void llama_layers_keep_the_itemised_bytes(void **state)
{
    (void)state;
    const long shapes[][4] = {
        {4096, 32, 8, 14336}, {8192, 64, 8, 28672}, {4096, 32, 32, 11008}};
    for (int i = 0; i < 3; i++) {
        ms_model model = llama(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]);
        double h = (double)shapes[i][0], a = (double)shapes[i][1],
               f = (double)shapes[i][3];
        double h_kv = (double)(shapes[i][2] * model.head_dim);
        double token = 12.0 * h + 4.0 * h_kv + 6.0 * f + 4.0 * a;
        for (int t = 1; t <= 8; t *= 2)
            for (int c = 1; c <= 4; c *= 2) {
                layout at = {t, c, t > 1, true, MS_RECOMPUTE_NONE};
                ASSERT_NEAR(saved_bytes(&model, at, 4096, 1), 4096.0 * token / (t * c),
                            0);
            }
    }
}

/* Tensor parallelism without sequence parallelism leaves 8h of the 12h bytes a token
 * (hidden h), the inputs and outputs of norms, whole on every tp rank. */
static void llama_norms_stay_whole_without_sequence_parallelism(void **state)
{
    (void)state;
    ms_model model = llama(8192, 64, 8, 28672);
    double h = 8192, h_kv = 1024, f = 28672, a = 64;
    for (int t = 2; t <= 8; t *= 2) {
        layout at = {t, 1, false, true, MS_RECOMPUTE_NONE};
        double token = 8.0 * h + (4.0 * h + 4.0 * h_kv + 6.0 * f + 4.0 * a) / t;
        ASSERT_NEAR(saved_bytes(&model, at, 4096, 1), 4096.0 * token, 0);
    }
}

/* TorchTitan's per-op policy saves attention and every second product: the layer's input,
 * queries, values, attention's result with its log-sum-exp, gate and down projections:
 * 63,616 bytes a token and layer for Llama 8B; 2h with full recomputation. */
static void per_op_recomputation_keeps_every_second_product(void **state)
{
    (void)state;
    ms_model model = llama(4096, 32, 8, 14336);
    double h = 4096, h_kv = 1024, f = 14336, a = 32;
    double token = 8.0 * h + 2.0 * h_kv + 2.0 * f + 4.0 * a;
    ASSERT_NEAR(token, 63616.0, 0);
    layout at = whole();
    at.recompute = MS_RECOMPUTE_PER_OP;
    ASSERT_NEAR(saved_bytes(&model, at, 8192, 2), 16384.0 * token, 0);
    at.recompute = MS_RECOMPUTE_FULL;
    ASSERT_NEAR(saved_bytes(&model, at, 8192, 2), 16384.0 * 2.0 * h, 0);
}

/* Selective recomputation does not save outputs of norms (4h bytes a token, hidden h),
 * the MLP's product of gate and up (2f, MLP width f) or scores. */
static void selective_recomputation_drops_norms_and_activations(void **state)
{
    (void)state;
    ms_model model = llama(8192, 64, 8, 28672);
    double h = 8192, h_kv = 1024, f = 28672, a = 64;
    double token = 8.0 * h + 4.0 * h_kv + 4.0 * f + 4.0 * a;
    layout at = whole();
    at.recompute = MS_RECOMPUTE_SELECTIVE;
    for (int fused = 0; fused <= 1; fused++) {
        at.attention_fused = fused;
        ASSERT_NEAR(saved_bytes(&model, at, 4096, 1), 4096.0 * token, 0);
    }
}

/* Selective recomputation of latent attention saves its latents (1536 and 512 wide) and,
 * if fused, its result; queries, keys and values of 128 heads (192 and 128 wide) are
 * recomputed from them. */
static void selective_recomputation_makes_heads_of_latents_again(void **state)
{
    (void)state;
    ms_model model = llama(7168, 128, 128, 18432);
    model.attention = MS_ATTENTION_MLA;
    model.mla.q_lora_rank = 1536;
    model.mla.kv_lora_rank = 512;
    model.mla.nope_head_dim = 128;
    model.mla.rope_head_dim = 64;
    model.head_dim = 192;
    model.value_head_dim = 128;
    layout at = whole();
    double heads = 2.0 * 128 * (192 + 192 + 128), norms = 2.0 * (2 * 7168 + 1536 + 512),
           product = 2.0 * 18432, rope = 2.0 * 64;
    double none = saved_bytes(&model, at, 4096, 1);
    at.recompute = MS_RECOMPUTE_SELECTIVE;
    ASSERT_NEAR(none - saved_bytes(&model, at, 4096, 1),
                4096.0 * (heads + norms + product), 4096.0 * rope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_without_scores_keeps_34_sbh),
        cmocka_unit_test(unfused_attention_adds_5_as_over_h),
        cmocka_unit_test(tensor_parallelism_divides_24_of_34),
        cmocka_unit_test(sequence_parallelism_divides_everything),
        cmocka_unit_test(context_parallelism_divides_the_sequence),
        cmocka_unit_test(full_recomputation_keeps_2_sbh),
        cmocka_unit_test(scores_are_most_of_what_large_models_keep),
        cmocka_unit_test(weights_of_a_layer_wait_with_32_sbh),
        cmocka_unit_test(playbook_values_are_reproduced),
        cmocka_unit_test(playbook_full_recomputation),
        cmocka_unit_test(llama_layers_keep_the_itemised_bytes),
        cmocka_unit_test(llama_norms_stay_whole_without_sequence_parallelism),
        cmocka_unit_test(per_op_recomputation_keeps_every_second_product),
        cmocka_unit_test(selective_recomputation_drops_norms_and_activations),
        cmocka_unit_test(selective_recomputation_makes_heads_of_latents_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
