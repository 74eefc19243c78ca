/* Plans: names, defaults, meshes, and each rule on their numbers with its refusal. */
#include "costmodel/plan/plan.h"

#include "tests/test.h"
#include "tests/unit/legal_plans.h"

/* A model of the shapes of Llama 3.1 70B (huggingface.co/meta-llama/Llama-3.1-70B
 * config.json). */
static ms_model dense_model(void)
{
    return (ms_model){.name = "dense",
                      .num_layers = 80,
                      .hidden = 8192,
                      .num_heads = 64,
                      .num_kv_heads = 8,
                      .head_dim = 128,
                      .ffn_hidden = 28672,
                      .vocab = 128256,
                      .num_kinds = 1};
}

/* A model of the shapes of DeepSeek-V3 (huggingface.co/deepseek-ai/DeepSeek-V3
 * config.json). */
static ms_model expert_model(void)
{
    ms_model model = {.name = "experts",
                      .num_layers = 61,
                      .hidden = 7168,
                      .num_heads = 128,
                      .num_kv_heads = 128,
                      .ffn_hidden = 18432,
                      .vocab = 129280,
                      .attention = MS_ATTENTION_MLA,
                      .num_kinds = 2,
                      .kinds = {{.moe = false}, {.moe = true}}};
    model.moe.num_experts = 256;
    model.moe.ffn_hidden = 2048;
    model.moe.shared_ffn_hidden = 2048;
    return model;
}

static void expect_refusal(const ms_plan *plan, const ms_model *model, ms_refusal want)
{
    ms_refusal got = ms_plan_refusal(plan, model);
    if (got != want)
        fail_msg("got \"%s\", want \"%s\"", ms_refusal_names[got],
                 ms_refusal_names[want]);
    ms_ctx *cx = test_cx();
    ms_status status = ms_plan_check(cx, plan, model, MS_NOWHERE);
    ASSERT_INT(status, want == MS_LEGAL ? MS_OK : MS_EINPUT);
    ASSERT_INT(cx->num_errors, want == MS_LEGAL ? 0 : 1);
}

/* ---- names and defaults ---- */

static void schedules_are_known_by_the_names_of_pytorch_and_megatron(void **state)
{
    (void)state;
    const struct {
        const char *text;
        ms_schedule_kind kind;
    } cases[] = {
        {"gpipe", MS_GPIPE},
        {"AFAB", MS_GPIPE},
        {"ScheduleGPipe", MS_GPIPE},
        {"1F1B", MS_1F1B},
        {"schedule1f1b", MS_1F1B},
        {"non-interleaved", MS_1F1B},
        {"vpp", MS_INTERLEAVED},
        {"Interleaved1F1B", MS_INTERLEAVED},
        {"interleaved-1f1b", MS_INTERLEAVED},
        {"ScheduleInterleaved1F1B", MS_INTERLEAVED},
        {"LoopedBFS", MS_LOOPED_BFS},
        {"InterleavedZeroBubble", MS_INTERLEAVED_ZB},
        {"zb1p", MS_ZB_H1},
        {"ZB-2p", MS_ZB_AUTO},
        {"ZBVZeroBubble", MS_ZB_V},
        {"DualPipeV", MS_DUALPIPEV},
        {"cut-in-half", MS_DUALPIPEV},
        {"Interleaved1F1B", MS_INTERLEAVED},
        {"looped_bfs", MS_LOOPED_BFS},
        {"zbh1", MS_ZB_H1},
        {"ZBV", MS_ZB_V},
        {"vhalf", MS_V_HALF},
        {"Dual-Pipe", MS_DUALPIPE},
        {"forward_backward_pipelining_with_interleaving", MS_INTERLEAVED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ms_schedule_kind kind = MS_NUM_SCHEDULES;
        assert_true(ms_schedule_parse(cases[i].text, &kind));
        ASSERT_INT(kind, cases[i].kind);
    }
    ms_schedule_kind kind;
    assert_false(ms_schedule_parse("zb-h3", &kind));
    assert_false(ms_schedule_parse("", &kind));
    assert_false(ms_schedule_parse("-", &kind));
    assert_false(ms_schedule_parse("1f", &kind));
    assert_false(ms_schedule_parse("1f1b--", &kind));
    assert_false(ms_schedule_parse("1f1b ", &kind));
}

static void the_default_batch_is_four_mi_tokens_or_one_ki_per_gpu(void **state)
{
    (void)state;
    ASSERT_INT(ms_plan_default_batch(1, 8192), 512);
    ASSERT_INT(ms_plan_default_batch(4096, 8192), 512);
    ASSERT_INT(ms_plan_default_batch(16384, 8192), 2048);
    ASSERT_INT(ms_plan_default_batch(512, 4096), 1024);
    ASSERT_INT(ms_plan_default_batch(1, 1L << 30), 1);
}

static void settling_gives_dp_shard_the_rest_and_zero_its_default(void **state)
{
    (void)state;
    ms_plan plan = dense_plan();
    ASSERT_INT(plan.size[MS_DP_SHARD], 16);
    ASSERT_INT(plan.zero, 3);
    ASSERT_INT(plan.global_batch, 512);
    ASSERT_INT(ms_plan_data_parallel(&plan), 16);
    ASSERT_INT(ms_plan_microbatches(&plan), 32);

    ms_plan alone = ms_plan_default(1);
    ms_plan_fill_defaults(&alone);
    ASSERT_INT(alone.size[MS_DP_SHARD], 1);
    ASSERT_INT(alone.zero, 0);

    ms_plan sequence = ms_plan_default(2);
    sequence.size[MS_CP] = 2; /* states are sharded over dp_shard x cp */
    ms_plan_fill_defaults(&sequence);
    ASSERT_INT(sequence.size[MS_DP_SHARD], 1);
    ASSERT_INT(sequence.zero, 3);

    ms_plan chosen = dense_plan();
    chosen.zero = 1;
    ms_plan_fill_defaults(&chosen);
    ASSERT_INT(chosen.zero, 1);
}

/* ---- meshes ---- */

static void strides_follow_the_order(void **state)
{
    (void)state;
    ms_plan plan = dense_plan();
    ms_mesh mesh = ms_plan_mesh(&plan);
    ASSERT_INT(mesh.num_axes, 5); /* axes of size 1 are kept in the mesh */
    ASSERT_INT(mesh.num_ranks, 512);
    ASSERT_INT(mesh.axes[ms_mesh_find(&mesh, "pp")].stride, 128);
    ASSERT_INT(mesh.axes[ms_mesh_find(&mesh, "dp_shard")].stride, 8);
    ASSERT_INT(mesh.axes[ms_mesh_find(&mesh, "tp")].stride, 1);

    const unsigned char order[] = {MS_DP_REPLICATE, MS_DP_SHARD, MS_TP, MS_CP, MS_PP};
    memcpy(plan.order, order, sizeof order);
    mesh = ms_plan_mesh(&plan);
    ASSERT_INT(mesh.axes[ms_mesh_find(&mesh, "pp")].stride, 1);
    ASSERT_INT(mesh.axes[ms_mesh_find(&mesh, "tp")].stride, 4);
    ASSERT_INT(mesh.axes[ms_mesh_find(&mesh, "dp_shard")].stride, 32);
}

static void expect_group(const ms_mesh *mesh, const char *axis, long rank,
                         const long *want, long num_want)
{
    int axis_idx = ms_mesh_find(mesh, axis);
    assert_true(axis_idx >= 0);
    ms_group group = ms_mesh_group(mesh, &axis_idx, 1);
    ASSERT_INT(group.size, num_want);
    long ranks[16];
    ms_mesh_group_ranks(mesh, &group, rank, ranks);
    for (long i = 0; i < num_want; i++)
        ASSERT_INT(ranks[i], want[i]);
}

/* The two meshes of TorchTitan's parallel_dims.py (pytorch/torchtitan #1660) on 16
 * ranks with pp 2, dp_shard 2, cp 2, tp 2, ep 4: ep takes the tp ranks first, then cp,
 * then dp_shard. */
static void experts_take_tp_ranks_first_then_cp_then_dp_shard(void **state)
{
    (void)state;
    ms_plan plan = ms_plan_default(16);
    plan.size[MS_PP] = plan.size[MS_DP_SHARD] = plan.size[MS_CP] = plan.size[MS_TP] = 2;
    plan.ep = 4;
    ms_mesh mesh = ms_plan_expert_mesh(&plan);
    ASSERT_INT(mesh.num_ranks, 16);
    expect_group(&mesh, "ep", 0, (const long[]){0, 1, 2, 3}, 4);
    expect_group(&mesh, "ep", 13, (const long[]){12, 13, 14, 15}, 4);
    expect_group(&mesh, "efsdp", 0, (const long[]){0, 4}, 2);
    expect_group(&mesh, "efsdp", 3, (const long[]){3, 7}, 2);
    expect_group(&mesh, "pp", 7, (const long[]){7, 15}, 2);

    /* tp ranks split each expert's matrices (etp 2), so ep spans the cp and dp_shard
     * ranks */
    plan.etp = 2;
    mesh = ms_plan_expert_mesh(&plan);
    expect_group(&mesh, "ep", 1, (const long[]){1, 3, 5, 7}, 4);
    expect_group(&mesh, "etp", 2, (const long[]){2, 3}, 2);
}

static void the_expert_mesh_keeps_the_order_of_pp_and_dp_replicate(void **state)
{
    (void)state;
    ms_plan plan = ms_plan_default(16);
    plan.size[MS_PP] = 2;
    plan.size[MS_DP_REPLICATE] = 2;
    plan.size[MS_DP_SHARD] = 4;
    plan.ep = 2;
    plan.order[0] = MS_DP_REPLICATE;
    plan.order[1] = MS_PP;
    ms_mesh mesh = ms_plan_expert_mesh(&plan);
    ASSERT_INT(mesh.axes[ms_mesh_find(&mesh, "dp_replicate")].stride, 8);
    ASSERT_INT(mesh.axes[ms_mesh_find(&mesh, "pp")].stride, 4);
}

/* ---- rules ---- */

static void ranks_must_multiply_to_the_gpus(void **state)
{
    (void)state;
    ms_model model = dense_model();
    ms_plan plan = dense_plan();
    expect_refusal(&plan, &model, MS_LEGAL);
    plan.size[MS_DP_SHARD] = 15;
    expect_refusal(&plan, &model, MS_REFUSE_RANKS);
    plan.size[MS_DP_SHARD] = 8;
    expect_refusal(&plan, &model, MS_REFUSE_RANKS);
    plan.size[MS_DP_SHARD] = 0;
    expect_refusal(&plan, &model, MS_REFUSE_RANKS);
}

static void heads_and_mlp_must_divide_by_tp(void **state)
{
    (void)state;
    ms_model model = dense_model();
    ms_plan plan = dense_plan();
    model.num_kv_heads = 4; /* tp 8: each key-value head is copied to two tp ranks */
    expect_refusal(&plan, &model, MS_LEGAL);
    model.num_kv_heads = 6;
    expect_refusal(&plan, &model, MS_REFUSE_HEADS);
    /* latent attention does not split key-value heads */
    model.attention = MS_ATTENTION_MLA;
    expect_refusal(&plan, &model, MS_LEGAL);
    model.num_heads = 60;
    expect_refusal(&plan, &model, MS_REFUSE_HEADS);
    model = dense_model();
    model.ffn_hidden = 28668;
    expect_refusal(&plan, &model, MS_REFUSE_FFN);
    model = dense_model();
    model.vocab = 128255; /* odd vocabularies are padded */
    expect_refusal(&plan, &model, MS_LEGAL);
}

static void ulysses_splits_heads_and_keeps_sequences_whole(void **state)
{
    (void)state;
    ms_model model = dense_model();
    ms_plan plan = dense_plan();
    plan.size[MS_TP] = 2;
    plan.size[MS_CP] = 4; /* cp x tp = 8 divides the 64 heads and the 8 key-value heads */
    expect_refusal(&plan, &model, MS_LEGAL);
    plan.cp_method = MS_CP_ULYSSES;
    expect_refusal(&plan, &model, MS_LEGAL);
    model.num_kv_heads = 4;
    expect_refusal(&plan, &model, MS_REFUSE_HEADS);
    plan.cp_method = MS_CP_RING;
    expect_refusal(&plan, &model, MS_LEGAL);
    model = dense_model();
    plan.size[MS_TP] = 1;
    plan.size[MS_CP] = 8;
    plan.sequence_length = 8 * 1001; /* not divisible into 2 cp = 16 chunks */
    expect_refusal(&plan, &model, MS_REFUSE_SEQUENCE);
    plan.cp_method = MS_CP_ULYSSES;
    expect_refusal(&plan, &model, MS_LEGAL);
}

static void context_parallel_methods_have_other_names(void **state)
{
    (void)state;
    ms_cp_method method;
    for (int i = 0; i < MS_NUM_CP_METHODS; i++) {
        assert_true(ms_cp_method_parse(ms_cp_method_names[i], &method));
        ASSERT_INT(method, i);
    }
    assert_true(ms_cp_method_parse("P2P", &method));
    ASSERT_INT(method, MS_CP_RING);
    assert_true(ms_cp_method_parse("a2a", &method));
    ASSERT_INT(method, MS_CP_ULYSSES);
    assert_false(ms_cp_method_parse("rings", &method));
}

static void sequences_divide_by_tp_and_twice_cp(void **state)
{
    (void)state;
    ms_model model = dense_model();
    ms_plan plan = dense_plan();
    plan.sequence_length = 8188; /* not divisible by tp 8 */
    expect_refusal(&plan, &model, MS_REFUSE_SEQUENCE);
    plan.sequence_parallel = false;
    expect_refusal(&plan, &model, MS_LEGAL);

    plan = dense_plan();
    plan.size[MS_TP] = 1;
    plan.size[MS_CP] = 8;
    plan.sequence_length = 8 * 1001;
    expect_refusal(&plan, &model, MS_REFUSE_SEQUENCE);
    plan.cp_balance = MS_CP_NONE;
    expect_refusal(&plan, &model, MS_LEGAL);
    plan.sequence_length = 8 * 1001 + 4;
    expect_refusal(&plan, &model, MS_REFUSE_SEQUENCE);

    plan = dense_plan();
    plan.size[MS_DP_SHARD] = 8;
    plan.size[MS_CP] = 2;
    plan.sequence_length = 24; /* tp 8 does not divide the 12 tokens of a cp rank */
    expect_refusal(&plan, &model, MS_REFUSE_SEQUENCE);
}

static void the_batch_divides_by_data_parallel_and_microbatch(void **state)
{
    (void)state;
    ms_model model = dense_model();
    ms_plan plan = dense_plan();
    plan.microbatch = 3;
    expect_refusal(&plan, &model, MS_REFUSE_BATCH);
    plan.microbatch = 64;
    expect_refusal(&plan, &model, MS_REFUSE_BATCH);
    plan.microbatch = 32;
    expect_refusal(&plan, &model, MS_LEGAL);
    plan.global_batch = 520;
    expect_refusal(&plan, &model, MS_REFUSE_BATCH);
}

static void experts_divide_by_ep_and_their_mesh_by_both(void **state)
{
    (void)state;
    ms_model model = expert_model(), dense = dense_model();
    ms_plan plan = expert_plan();
    expect_refusal(&plan, &model, MS_LEGAL);
    plan.ep = 96;
    expect_refusal(&plan, &model, MS_REFUSE_EXPERTS);
    plan.ep = 256; /* more than the 128 ranks of a pipeline stage */
    expect_refusal(&plan, &model, MS_REFUSE_EXPERTS);
    plan.ep = 128;
    expect_refusal(&plan, &model, MS_LEGAL);
    plan.etp = 2; /* etp must be 1 or tp */
    expect_refusal(&plan, &model, MS_REFUSE_EXPERTS);

    plan = expert_plan();
    plan.size[MS_TP] = 2;
    plan.size[MS_DP_SHARD] = 64;
    plan.ep = 128;
    expect_refusal(&plan, &model, MS_LEGAL);
    plan.etp = 2; /* ep x etp = 256 is more than the 128 ranks of a stage */
    expect_refusal(&plan, &model, MS_REFUSE_EXPERTS);
    plan.ep = 64;
    expect_refusal(&plan, &model, MS_LEGAL);
    model.moe.ffn_hidden = 2049;
    expect_refusal(&plan, &model, MS_REFUSE_FFN);

    plan = dense_plan();
    plan.ep = 2;
    expect_refusal(&plan, &dense, MS_REFUSE_EXPERTS);
}

static void modules_belong_to_the_model(void **state)
{
    (void)state;
    ms_model dense = dense_model(), model = dense;
    ms_plan plan = dense_plan();
    plan.recompute = MS_RECOMPUTE_SELECTIVE;
    plan.recompute_modules = MS_MODULE_CORE_ATTN | MS_MODULE_MLP;
    expect_refusal(&plan, &dense, MS_LEGAL);
    plan.recompute_modules = MS_MODULE_MLA_UP_PROJ;
    expect_refusal(&plan, &dense, MS_REFUSE_MODULES);
    model.attention = MS_ATTENTION_MLA;
    expect_refusal(&plan, &model, MS_LEGAL);
    plan.recompute_modules = MS_MODULE_MOE;
    expect_refusal(&plan, &dense, MS_REFUSE_MODULES);
    plan.recompute_modules = 0;
    plan.shared_overlap = true;
    expect_refusal(&plan, &dense, MS_REFUSE_MODULES);
}

static void layers_of_stages_add_up_to_the_model(void **state)
{
    (void)state;
    ms_model model = dense_model();
    ms_plan plan = dense_plan();
    const long good[] = {19, 21, 21, 19}, short_of[] = {19, 21, 21, 18},
               empty[] = {0, 40, 20, 20}, negative[] = {-1, 41, 20, 20};
    plan.num_stage_layers = 4;
    plan.layers_per_stage = good;
    expect_refusal(&plan, &model, MS_LEGAL);
    plan.layers_per_stage = short_of;
    expect_refusal(&plan, &model, MS_REFUSE_LAYERS);
    plan.layers_per_stage = empty; /* the first stage has the embedding and no layer */
    expect_refusal(&plan, &model, MS_LEGAL);
    plan.layers_per_stage = negative;
    expect_refusal(&plan, &model, MS_REFUSE_LAYERS);
    plan.layers_per_stage = good;
    plan.num_stage_layers = 3;
    expect_refusal(&plan, &model, MS_REFUSE_LAYERS);

    plan = dense_plan();
    model.num_layers = 3;
    expect_refusal(&plan, &model, MS_REFUSE_LAYERS);
    model.num_layers = 80;
    plan.recompute_layers = 81;
    expect_refusal(&plan, &model, MS_REFUSE_LAYERS);
}

static void schedules_refuse_what_they_cannot_run(void **state)
{
    (void)state;
    ms_model model = dense_model();
    ms_plan plan = dense_plan();
    plan.virtual_stages = 2;
    expect_refusal(&plan, &model, MS_REFUSE_SCHEDULE);
    plan.schedule = MS_INTERLEAVED;
    expect_refusal(&plan, &model, MS_LEGAL);
    plan.microbatch_group = 2;
    expect_refusal(&plan, &model, MS_REFUSE_SCHEDULE);
    plan.microbatch_group = 1L << 40;
    expect_refusal(&plan, &model, MS_REFUSE_SCHEDULE);
    plan.microbatch_group = 8;
    expect_refusal(&plan, &model, MS_LEGAL);
    plan.virtual_stages = 1;
    expect_refusal(&plan, &model, MS_REFUSE_SCHEDULE);
    plan.virtual_stages = 21;
    expect_refusal(&plan, &model, MS_REFUSE_LAYERS);

    plan = dense_plan();
    plan.size[MS_PP] = 1;
    plan.size[MS_DP_SHARD] = 64;
    expect_refusal(&plan, &model, MS_LEGAL);
    plan.schedule = MS_GPIPE;
    expect_refusal(&plan, &model, MS_LEGAL);
    plan.schedule = MS_INTERLEAVED;
    plan.virtual_stages = 2;
    expect_refusal(&plan, &model, MS_REFUSE_SCHEDULE);
}

static void zero_has_four_stages(void **state)
{
    (void)state;
    ms_model model = dense_model();
    ms_plan plan = dense_plan();
    for (long zero = -1; zero <= 4; zero++) {
        plan.zero = zero;
        expect_refusal(&plan, &model, zero < 0 || zero > 3 ? MS_REFUSE_ZERO : MS_LEGAL);
    }
}

static void expert_meshes_need_their_axes_innermost_in_order(void **state)
{
    (void)state;
    ms_model model = expert_model();
    ms_plan plan = expert_plan();
    const unsigned char pp_inside[] = {MS_DP_REPLICATE, MS_DP_SHARD, MS_CP, MS_TP, MS_PP};
    memcpy(plan.order, pp_inside, sizeof pp_inside);
    expect_refusal(&plan, &model, MS_REFUSE_ORDER);
    plan.ep = 1; /* no expert parallelism, so no mesh for experts */
    expect_refusal(&plan, &model, MS_LEGAL);

    /* cp and tp have size 1, so their place in the order does not matter */
    plan = expert_plan();
    const unsigned char harmless[] = {MS_TP, MS_PP, MS_CP, MS_DP_SHARD, MS_DP_REPLICATE};
    memcpy(plan.order, harmless, sizeof harmless);
    expect_refusal(&plan, &model, MS_LEGAL);

    const unsigned char twice[] = {MS_PP, MS_PP, MS_CP, MS_DP_SHARD, MS_TP};
    memcpy(plan.order, twice, sizeof twice);
    expect_refusal(&plan, &model, MS_REFUSE_ORDER);
}

static void a_check_names_the_numbers(void **state)
{
    (void)state;
    ms_model model = dense_model();
    ms_plan plan = dense_plan();
    plan.size[MS_DP_SHARD] = 15;
    ms_ctx *cx = test_cx();
    ASSERT_INT(ms_plan_check(cx, &plan, &model, MS_NOWHERE), MS_EINPUT);
    ASSERT_TEXT(cx->first->message,
                "pp 4 x dp_replicate 1 x dp_shard 15 x cp 1 x tp 8 = 480 ranks, "
                "but there are 512 GPUs");
    ASSERT_TEXT(cx->first->hint, "dp_shard 16 would use all of them");
}

static void one_line_says_what_matters(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    ms_plan plan = dense_plan();
    ASSERT_TEXT(ms_plan_text(arena, &plan),
                "pp 4 x dp_shard 16 x tp 8, mbs 1, 1f1b, zero 3, sp, bf16");
    plan = expert_plan();
    plan.schedule = MS_INTERLEAVED;
    plan.virtual_stages = 2;
    plan.microbatch_group = 16;
    plan.recompute = MS_RECOMPUTE_FULL;
    plan.recompute_layers = 2;
    ASSERT_TEXT(
        ms_plan_text(arena, &plan),
        "pp 16 x dp_shard 128, ep 64 etp 1, mbs 1, interleaved v2 group 16, zero 3, "
        "recompute full on 2 layers, bf16");
    plan = ms_plan_default(1);
    ms_plan_fill_defaults(&plan);
    ASSERT_TEXT(ms_plan_text(arena, &plan), "1 rank, mbs 1, zero 0, bf16");
    plan.recompute = MS_RECOMPUTE_AUTO;
    ASSERT_TEXT(ms_plan_text(arena, &plan),
                "1 rank, mbs 1, zero 0, recompute auto, bf16");
    plan.recompute_budget_frac = 0.375;
    ASSERT_TEXT(ms_plan_text(arena, &plan),
                "1 rank, mbs 1, zero 0, recompute auto 0.375, bf16");
    plan.recompute = MS_RECOMPUTE_NONE;
    plan.size[MS_CP] = 4;
    plan.cp_method = MS_CP_RING;
    ASSERT_TEXT(ms_plan_text(arena, &plan), "cp 4, ring cp, mbs 1, zero 0, bf16");
    plan.cp_balance = MS_CP_NONE;
    ASSERT_TEXT(ms_plan_text(arena, &plan),
                "cp 4, contiguous ring cp, mbs 1, zero 0, bf16");
    plan.cp_method = MS_CP_ALL_GATHER;
    ASSERT_TEXT(ms_plan_text(arena, &plan), "cp 4, contiguous cp, mbs 1, zero 0, bf16");
    plan.cp_method = MS_CP_ULYSSES;
    ASSERT_TEXT(ms_plan_text(arena, &plan), "cp 4, ulysses cp, mbs 1, zero 0, bf16");
}

/* Budgets that are tenths have layer modes of their own, as a search compares them; others
 * are the workload's. */
static void layer_modes_are_modes_and_tenths_of_a_budget(void **state)
{
    (void)state;
    ms_plan plan = ms_plan_default(1);
    for (ms_layer_mode mode = 0; mode < MS_NUM_LAYER_MODES; mode++) {
        ms_plan_set_layer_mode(&plan, mode);
        ASSERT_INT(ms_plan_layer_mode(&plan), mode);
        ASSERT_INT(plan.recompute, ms_layer_mode_recompute(mode));
        assert_true((plan.recompute_budget_frac >= 0.0) ==
                    ms_layer_mode_has_budget(mode));
    }
    ASSERT_NEAR(plan.recompute_budget_frac, 1.0, 0);
    plan.recompute_budget_frac = 0.3;
    ASSERT_INT(ms_plan_layer_mode(&plan), ms_layer_mode_of_budget(3));
    plan.recompute_budget_frac = 0.35;
    ASSERT_INT(ms_plan_layer_mode(&plan), MS_RECOMPUTE_AUTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_are_known_by_the_names_of_pytorch_and_megatron),
        cmocka_unit_test(the_default_batch_is_four_mi_tokens_or_one_ki_per_gpu),
        cmocka_unit_test(settling_gives_dp_shard_the_rest_and_zero_its_default),
        cmocka_unit_test(strides_follow_the_order),
        cmocka_unit_test(experts_take_tp_ranks_first_then_cp_then_dp_shard),
        cmocka_unit_test(the_expert_mesh_keeps_the_order_of_pp_and_dp_replicate),
        cmocka_unit_test(ranks_must_multiply_to_the_gpus),
        cmocka_unit_test(heads_and_mlp_must_divide_by_tp),
        cmocka_unit_test(ulysses_splits_heads_and_keeps_sequences_whole),
        cmocka_unit_test(context_parallel_methods_have_other_names),
        cmocka_unit_test(sequences_divide_by_tp_and_twice_cp),
        cmocka_unit_test(the_batch_divides_by_data_parallel_and_microbatch),
        cmocka_unit_test(experts_divide_by_ep_and_their_mesh_by_both),
        cmocka_unit_test(layers_of_stages_add_up_to_the_model),
        cmocka_unit_test(modules_belong_to_the_model),
        cmocka_unit_test(schedules_refuse_what_they_cannot_run),
        cmocka_unit_test(zero_has_four_stages),
        cmocka_unit_test(expert_meshes_need_their_axes_innermost_in_order),
        cmocka_unit_test(a_check_names_the_numbers),
        cmocka_unit_test(one_line_says_what_matters),
        cmocka_unit_test(layer_modes_are_modes_and_tenths_of_a_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
