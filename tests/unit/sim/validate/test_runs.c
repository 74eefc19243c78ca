/* Rows of published training runs become models, clusters, frameworks and plans, or
 * get a reason why not. The rows of runs_sample.csv name their sources. */
#include "sim/validate/pubrun_prices.h"

#include "tests/support/run_tables.h"
#include "tests/unit/run_rows.h"

#define SAMPLE MS_SOURCE_DIR "/tests/data/runs_sample.csv"

static const ms_pubrun *sample_row(ms_ctx *cx, const char *id)
{
    ms_pubruns runs;
    ASSERT_OK(ms_pubruns_load(cx, SAMPLE, &runs), cx);
    for (int i = 0; i < runs.num_runs; i++)
        if (strcmp(runs.runs[i].id, id) == 0)
            return &runs.runs[i];
    fail_msg("no row %s", id);
    return NULL;
}

static void a_stated_row_is_taken_as_it_is(void **state)
{
    (void)state;
    const ms_pubrun *run = sample_row(test_cx(), "tt-002");
    ASSERT_TEXT(run->reason, NULL);
    assert_true(run->complete);
    ASSERT_TEXT(run->plan.cluster, "h100-96g-500w");
    ASSERT_TEXT(run->plan.stack, "torchtitan-2024"); /* the run is of December 2024 */
    ASSERT_INT(run->plan.size[MS_DP_SHARD], 8);
    ASSERT_INT(run->plan.zero, 3);
    ASSERT_INT(run->plan.recompute, MS_RECOMPUTE_PER_OP);
    ASSERT_INT(run->plan.global_batch, 16);
    ASSERT_INT(run->model->num_kv_heads, 8);
    ASSERT_NEAR(ms_model_params(run->model).total, 8030261248.0, 0);
    /* 16 sequences of 8192 tokens at 6667 tokens per second on each of 8 GPUs */
    ASSERT_NEAR(run->measured_step_s, 16 * 8192.0 / (6667 * 8.0), 1e-9);
    ASSERT_NEAR(run->measured_peak_bytes, 77.0 * 1073741824.0, 1e-12);
}

/* The peak memory in the Zero Bubble paper is in GB of 1e9 bytes, although the column
 * is in GiB. */
static void gigabytes_are_those_of_the_source(void **state)
{
    (void)state;
    const ms_pubrun *run = sample_row(test_cx(), "zb-001");
    ASSERT_NEAR(run->measured_peak_bytes, 59e9, 1e-15);
    ASSERT_NEAR(sample_row(test_cx(), "tt-009")->measured_peak_bytes, 62.0 * 1073741824.0,
                1e-15);
}

static void shard_groups_with_context_parallelism_are_taken_apart(void **state)
{
    (void)state;
    const ms_pubrun *run = sample_row(test_cx(), "tt-005");
    ASSERT_TEXT(run->reason, NULL);
    ASSERT_INT(run->plan.size[MS_CP], 2);
    /* the publication counts 8 shards, which are dp_shard 4 x cp 2 */
    ASSERT_INT(run->plan.size[MS_DP_SHARD], 4);
    ASSERT_INT(run->plan.compute, MS_FP8);
}

static void a_truncated_model_keeps_its_kind(void **state)
{
    (void)state;
    const ms_pubrun *run = sample_row(test_cx(), "sx-010");
    ASSERT_TEXT(run->reason, NULL);
    ASSERT_INT(run->model->num_layers, 12);
    ASSERT_INT(run->model->hidden, 8192);
    ASSERT_TEXT(run->plan.stack, "simumax");
    ASSERT_INT(run->plan.zero, 1);
    /* the row's dp_replicate 4 becomes dp_shard 4, since ZeRO-1 shards optimizer
     * states */
    ASSERT_INT(run->plan.size[MS_DP_SHARD], 4);
    ASSERT_INT(run->plan.size[MS_DP_REPLICATE], 1);
    ASSERT_NEAR(run->measured_step_s, 1.387, 1e-12);
}

static void what_is_left_open_is_filled_and_listed(void **state)
{
    (void)state;
    const ms_pubrun *run = sample_row(test_cx(), "vt-s0351");
    ASSERT_TEXT(run->reason, NULL);
    /* 50257 padded to a multiple of 128 x tp 4 */
    assert_non_null(strstr(run->defaults, "vocabulary 50688"));
    ASSERT_INT(run->model->vocab, 50688);
    assert_true(run->model->dropout);
    ASSERT_INT(run->model->norm, MS_NORM_LAYER);
    ASSERT_INT(run->model->activation, MS_ACT_GELU);
    assert_false(run->plan.sequence_parallel);
}

static void the_playbook_measures_its_first_rank(void **state)
{
    (void)state;
    const ms_pubrun *run = sample_row(test_cx(), "usp-1362");
    ASSERT_TEXT(run->reason, NULL);
    ASSERT_INT(run->memory_rank, MS_MEMORY_OF_FIRST);
    ASSERT_TEXT(run->plan.cluster, "h100-efa");
    ASSERT_INT(run->stack->layer_split, MS_SPLIT_BY_FLOP);
}

static void rows_that_cannot_be_predicted_say_why(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_TEXT(sample_row(cx, "mlh-002")->reason,
                "incomplete: neither time, tokens/s nor memory is measured");
    assert_false(sample_row(cx, "mlh-002")->complete);
}

static void layouts_must_have_as_many_ranks_as_gpus(void **state)
{
    (void)state;
    /* the third argument holds the row's cells of the columns dp_replicate, dp_shard, tp,
     * sp, async_tp, pp, schedule, cp, ep, zero, recompute and those after them */
    reason_is(GPT_ROW("a", "8", "2,,2,0,,2,1F1B,1,1,1,none,bf16,,Megatron-LM,,1.5,"),
              NULL);
    reason_is(GPT_ROW("a", "8", "4,,2,0,,2,1F1B,1,1,1,none,bf16,,Megatron-LM,,1.5,"),
              "layout: its product is not the number of GPUs");
    reason_is(GPT_ROW("a", "9", ",,2,0,,2,1F1B,1,1,1,none,bf16,,Megatron-LM,,1.5,"),
              "layout: its product is not the number of GPUs");
    reason_is(GPT_ROW("a", "96", ",,3,0,,2,1F1B,1,1,1,none,bf16,,Megatron-LM,,1.5,"),
              "plan: heads (16 attention heads and 16 key-value heads cannot be divided "
              "by tp 3)");
}

static void words_are_mapped_or_refused(void **state)
{
    (void)state;
    reason_is(GPT_ROW("a", "8", "2,,2,0,,2,AFAB,1,1,1,full,fp16,,Megatron-LM,,1.5,"),
              NULL);
    reason_is(GPT_ROW("a", "8", "2,,2,0,,2,1F1B,1,1,1,none,int8,,Megatron-LM,,1.5,"),
              "precision: no type of that name");
    reason_is(GPT_ROW("a", "8", "2,,2,0,,2,1F1B,1,1,1,none,fp8,,Megatron-LM,,1.5,"),
              "precision: the device has no coefficients for it");
    reason_is(GPT_ROW("a", "8", "2,,2,0,,2,1F1B,1,1,1,none,bf16,,MegaScale,,1.5,"),
              "changes the model's mathematics");
}

static void interleaving_follows_megatron(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_pubruns runs = read_text(
        cx, GPT_ROW("a", "8",
                    "2,,2,0,,2,interleaved vpp=2,1,1,1,none,bf16,,Megatron-LM,,1.5,"));
    const ms_pubrun *run = &runs.runs[0];
    ASSERT_TEXT(run->reason, NULL);
    ASSERT_INT(run->plan.schedule, MS_INTERLEAVED);
    ASSERT_INT(run->plan.virtual_stages, 2);
    ASSERT_INT(run->plan.microbatch_group, 2);
    ASSERT_TEXT(run->plan.stack, "megatron");
}

static void racks_are_shared_evenly(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_pubruns runs = read_text(
        cx, "a,Test,2025-05,Qwen3 235B,,,,,,,1,,,,,,,4096,1,8192,256,GB200,,,,1,,,8,"
            "interleaved vpp=3,1,32,1,none,bf16,,Megatron-Bridge,,30,\n");
    const ms_pubrun *run = &runs.runs[0];
    ASSERT_TEXT(run->reason, NULL);
    ASSERT_INT(run->cluster->levels[0].gpus_per_domain, 64);
    assert_non_null(strstr(run->defaults, "64 of 72 GPUs in a domain"));
    ASSERT_INT(run->model->moe.num_experts, 128);
    ASSERT_INT(run->plan.ep, 32);
}

static void equal_models_are_one_object(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_pubruns runs = read_text(
        cx, GPT_ROW("a", "8", "2,,2,0,,2,1F1B,1,1,1,none,bf16,,Megatron-LM,,1.5,")
                GPT_ROW("b", "4", "2,,2,0,,1,,1,1,1,none,bf16,,Megatron-LM,,1.5,"));
    ASSERT_INT(runs.num_runs, 2);
    assert_ptr_equal(runs.runs[0].model, runs.runs[1].model);
    assert_ptr_equal(runs.runs[0].cluster, runs.runs[1].cluster);
}

/* ---- names as publications write them ---- */

static void frameworks_are_known_whatever_their_spelling(void **state)
{
    (void)state;
    static const struct {
        const char *framework, *stack;
    } known[] = {
        {"Megatron-DeepSpeed (BLOOM)", "megatron-deepspeed-bf16"},
        {"GPT-NeoX", "megatron-deepspeed-bf16"},
        {"DeepSpeed ZeRO-3", "deepspeed"},
        {"Colossal-AI", "deepspeed"},
        {"InternEvo", "internevo"},
        {"PaLM / Pax (JAX)", "maxtext"},
        {"MaxText", "maxtext"},
        {"levanter", "maxtext"},
        {"LLM Foundry", "llm-foundry"},
        {"Composer", "llm-foundry"},
        {"Megatron-Core MoE", "megatron"},
        {"Megatron-LM (2022)", "megatron-2022"},
        {"Megatron-LM (baseline of MegaScale)", "megatron-2023"},
        {"Megatron-LM v2.5", "megatron-2021"},
        {"FairScale / metaseq", "llm-foundry-2023"},
        {"torchtune", "torchtune-eager"},
        {"HF Accelerate FSDP", "torchtitan-eager"},
        {"axolotl", "torchtitan-eager"},
        {"veScale", "torchtitan-eager"},
        {"OLMo", "fms-fsdp"},
        {"OLMo-core", "torchtitan"},
        {"HAI-LLM", "hai-llm"},
        {"Meta internal (FSDP2 + tp + pp)", "meta-llama3"},
        {"torchtitan (Meta)", "torchtitan-eager"},
        {"Meta in-house (FSDP + TP + PP + CP)", "meta-llama3"},
        {"AMD Primus", "megatron"},
        {"Megatron-Core with DeepEP", "megatron-bridge"},
        {"Megatron-MoE-ModelZoo", "megatron-bridge"},
        {"DeepSpeed-Megatron", "megatron-deepspeed-bf16"},
        {"ZeRO-Infinity", "deepspeed"},
        {"LLaMA-Factory (DeepSpeed ZeRO-3)", "deepspeed"},
        {"LLaMA-Factory", "torchtitan-eager"},
        {"Hugging Face Trainer", "torchtitan-eager"},
        {"PyTorch DDP", "torchtitan-eager"},
        {"modalities", "torchtitan-eager"},
        {"picotron", "torchtitan-eager"},
        {"Meta Lingua", "torchtitan"},
        {"nanoGPT", "torchtitan"},
        {"NeMo Megatron", "nemo"},
        {"NeMo 2.0", "nemo"},
        {"PaddlePaddle", "megatron"},
        {"MindSpore", "megatron"},
        {"Pax", "maxtext"},
        {"AXLearn", "maxtext"},
        {"NeuronX Distributed", "maxtext"},
        {"MegaScale-MoE", "megatron"},
        {"something new", "generic"},
        {"\"a \"\"quoted\"\" one\"", "generic"},
        {"", "generic"},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *row = ms_arena_printf(
            cx->arena, GPT_ROW("a", "8", "2,,2,0,,2,1F1B,1,1,1,none,bf16,,%s,,1.5,"),
            known[i].framework);
        ms_pubruns runs = read_text(cx, row);
        ASSERT_TEXT(runs.runs[0].reason, NULL);
        ASSERT_TEXT(runs.runs[0].stack->name, known[i].stack);
    }
}

static void a_framework_has_the_habits_of_its_time(void **state)
{
    (void)state;
    static const struct {
        const char *date, *framework, *precision, *stack;
    } known[] = {
        {"2021-04", "Megatron-LM", "fp16", "megatron-2021"},
        {"2022-01", "Megatron-LM", "bf16", "megatron-2021"},
        {"2022-12-31", "Megatron-LM", "bf16", "megatron-2022"},
        {"2023-01", "Megatron-LM", "bf16", "megatron-2023"},
        {"2023", "Megatron-LM", "bf16", "megatron-2023"},
        {"2023-12", "Megatron-LM", "bf16", "megatron-2023"},
        {"2024-01", "Megatron-LM", "bf16", "megatron"},
        {"", "Megatron-LM", "bf16", "megatron"},
        {"2024-02", "Megatron-LM (baseline of MegaScale)", "bf16", "megatron-2023"},
        {"2022-04", "GPT-NeoX", "fp16", "megatron-deepspeed"},
        {"2022-03", "Megatron-DeepSpeed", "bf16", "megatron-deepspeed-bf16"},
        {"2023-05 to 2023-10", "llm-foundry", "bf16", "llm-foundry-2023"},
        {"2024-01", "llm-foundry", "bf16", "llm-foundry"},
        {"2024-12", "torchtitan", "bf16", "torchtitan-eager"},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *row = ms_arena_printf(
            cx->arena,
            "a,Test,%s,GPT X,8,1024,16,16,64,4096,0,51200,1,,,,,2048,1,16,8,A100 80GB,,,2,"
            "2,0,,2,1F1B,1,1,1,none,%s,,%s,,1.5,\n",
            known[i].date, known[i].precision, known[i].framework);
        ms_pubruns runs = read_text(cx, row);
        ASSERT_TEXT(runs.runs[0].reason, NULL);
        ASSERT_TEXT(runs.runs[0].stack->name, known[i].stack);
    }
}

static void networks_are_those_that_the_row_states(void **state)
{
    (void)state;
    static const struct {
        const char *device, *text, *network;
        double gb_per_s;
    } known[] = {
        {"H100", "", "infiniband", 50},
        {"H100", "400 Gb/s", "infiniband", 50},
        {"H100", "3200 Gb/s EFA", "efa", 50},
        {"H100", "3.2 Tb/s", "infiniband", 50},
        {"H100", "RoCE 8x400G", "roce", 50},
        {"H100", "50 GB/s per GPU", "infiniband", 50},
        {"H100", "TCPX 4 x 200 Gbps per node", "ethernet", 12.5},
        {"H100", "200 Gb/s per GPU", "infiniband", 25},
        {"A100 80GB", "InfiniBand HDR 200G x8", "infiniband", 25},
        {"A100 80GB", "4 x HDR 200 Gb/s", "infiniband", 12.5},
        {"A100 80GB", "4x100G Omni-Path", "infiniband", 6.25},
        {"A100 80GB", "1600 Gb/s node-node RoCE", "roce", 25},
        {"A100 80GB", "EFA 400 Gb/s", "efa", 6.25},
        {"A100 80GB", "ConnectX-7", "infiniband", 25},
        {"A100 80GB", "CX-6 200 Gb/s", "infiniband", 25},
        {"A100 80GB", "4 x HDR100", "infiniband", 6.25},
        {"A100 80GB", "4xHDR", "infiniband", 12.5},
        {"A100 80GB", "4 HDR NICs (200 Gb/s each)", "infiniband", 12.5},
        {"A100 80GB", "dual 200 Gb/s HDR", "infiniband", 6.25},
        {"A100 80GB", "RoCEv2 8x200G", "roce", 25},
        {"A100 80GB", "Slingshot-11 4x200 Gb/s", "infiniband", 12.5},
        {"A100 80GB", "NVLink 600 GB/s + 4x100 Gb/s IB", "infiniband", 6.25},
        {"A100 80GB", "AWS EFA", "efa", 6.25},
        {"H100", "8x NDR400", "infiniband", 50},
        {"H100", "8x ConnectX-7 400 Gb/s", "infiniband", 50},
        {"H100", "TCPXO", "tcpxo", 25},
        {"H100", "GPUDirect-TCPX", "ethernet", 12.5},
        {"A100 80GB", "NVLink only 600 GB/s", "infiniband", 25},
        {"A100 80GB", "InfiniBand EDR", "infiniband", 12.5},
        /* 12.5 GB/s an adapter, four adapters for eight GPUs */
        {"V100", "EDR", "infiniband", 6.25},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const ms_pubrun run = device_row(cx, known[i].device, known[i].text, "");
        ASSERT_TEXT(run.reason, NULL);
        ASSERT_TEXT(run.cluster->network, known[i].network);
        for (int l = 1; l < run.cluster->num_levels; l++)
            ASSERT_NEAR(run.cluster->levels[l].bandwidth_bytes_per_s,
                        known[i].gb_per_s * 1e9, 1e-12);
    }
}

static void a_network_that_stands_for_another_is_noted(void **state)
{
    (void)state;
    static const struct {
        /* `note`: what the run's list of defaults must contain; NULL: no such note */
        const char *text, *note;
    } known[] = {{"Slingshot 11", "Slingshot priced as infiniband"},
                 {"8x200G HDR", NULL}};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *defaults = device_row(cx, "MI300A", known[i].text, "").defaults;
        ASSERT_INT(defaults != NULL && strstr(defaults, " priced as ") != NULL,
                   known[i].note != NULL);
        if (known[i].note != NULL)
            assert_non_null(strstr(defaults, known[i].note));
    }
}

/* vTrain's tables name no network, but its nodes are known to have half as many
 * adapters as usual for the device. A network that the row names comes first. */
static void a_network_may_be_known_by_the_source(void **state)
{
    (void)state;
    static const struct {
        const char *source, *gpus, *dp, *text;
        double gb_per_s;
    } known[] = {
        {"vTrain measured (multi-node)", "16", "8", "", 12.5},
        {"vTrain measured (multi-node)", "16", "8", "8 x 200 Gb/s", 25},
        {"vTrain measured (single-node)", "8", "4", "", 25},
        {"Test", "16", "8", "", 25},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *row = ms_arena_printf(
            cx->arena,
            "a,%s,2024-09,GPT X,8,1024,16,16,64,4096,0,51200,1,,,,,2048,1,16,%s,A100 80GB,"
            "%s,,%s,2,0,,1,,1,1,0,none,fp16,,Megatron-DeepSpeed,,1.5,\n",
            known[i].source, known[i].gpus, known[i].text, known[i].dp);
        ms_pubruns runs = read_text(cx, row);
        ASSERT_TEXT(runs.runs[0].reason, NULL);
        ASSERT_NEAR(runs.runs[0].cluster->levels[1].bandwidth_bytes_per_s,
                    known[i].gb_per_s * 1e9, 1e-12);
    }
}

static void stated_attention_and_nodes_replace_those_of_the_configurations(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    char *header = ms_arena_strdup(cx->arena, columns);
    *strchr(header, '\n') = '\0';
    const char *text = ms_arena_printf(
        cx->arena,
        "%s,gpus_per_node,flash_attention\n"
        "a,Test,2024-01,GPT X,8,1024,16,16,64,4096,0,51200,1,,,,,2048,1,16,8,A100 80GB,,2,,2,"
        "0,,2,1F1B,1,1,1,none,bf16,,Megatron-LM,,1.5,,4,0\n"
        "b,Test,2021-01,GPT X,8,1024,16,16,64,4096,0,51200,1,,,,,2048,1,16,8,A100 80GB,,2,,2,"
        "0,,2,1F1B,1,1,1,none,bf16,,Megatron-LM,,1.5,,8,1\n",
        header);
    ms_pubruns runs;
    ASSERT_OK(ms_pubruns_read(cx, "runs.csv", text, strlen(text), &runs), cx);
    ASSERT_TEXT(runs.runs[0].stack->name, "megatron");
    ASSERT_INT(runs.runs[0].stack->attention, MS_ATTENTION_UNFUSED);
    ASSERT_INT(runs.runs[0].cluster->levels[0].gpus_per_domain, 4);
    ASSERT_TEXT(runs.runs[1].stack->name, "megatron-2021");
    ASSERT_INT(runs.runs[1].stack->attention, MS_ATTENTION_FA2);
    ASSERT_INT(runs.runs[1].cluster->levels[0].gpus_per_domain, 8);
}

/* Qi et al. 2023 split 22 layers in 24 chunks, the first of which has only the
 * embedding and the last only the head. */
static void ends_of_the_model_can_be_alone(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pubruns runs = read_text(
        cx,
        "a,Test,2023-11,GPT 1.5B,22,2304,24,24,96,,,,,,,,,1024,6,144,8,A100 80GB,,1,1,1,"
        "0,,8,1F1B-I (1 layer per chunk),1,1,,,,,Megatron-LM fork (zero-bubble),,,40\n");
    const ms_plan *plan = &runs.runs[0].plan;
    ASSERT_TEXT(runs.runs[0].reason, NULL);
    ASSERT_INT(plan->virtual_stages, 3);
    ASSERT_INT(plan->num_stage_layers, 24);
    ASSERT_INT(plan->layers_per_stage[0], 0);
    ASSERT_INT(plan->layers_per_stage[1], 1);
    ASSERT_INT(plan->layers_per_stage[23], 0);
}

static void contradictions_and_repeats_are_named_by_line(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pubruns runs = read_text(
        cx, GPT_ROW("a", "9", ",,2,0,,2,1F1B,1,1,1,none,bf16,,Megatron-LM,,1.5,")
                GPT_ROW("b", "8", "4,,2,0,,2,1F1B,1,1,1,none,bf16,,Megatron-LM,,1.5,")
                    GPT_ROW("c", "8", "2,,2,0,,2,1F1B,1,1,1,none,bf16,,Megatron-LM,,1.5,")
                        GPT_ROW("c", "8",
                                "2,,2,0,,2,1F1B,1,1,1,none,bf16,,Megatron-LM,,1.5,"));
    ASSERT_TEXT(runs.runs[0].fault, "tp 2 x pp 2 x cp 1 does not divide 9 GPUs");
    assert_false(runs.runs[0].complete);
    ASSERT_TEXT(runs.runs[1].fault,
                "tp 2 x pp 2 x cp 1 leaves 2 of 8 GPUs for dp, not 4");
    ASSERT_TEXT(runs.runs[2].fault, NULL);
    ASSERT_TEXT(runs.runs[3].fault, "its id is that of line 4");
    assert_false(runs.runs[3].complete);
}

/* Runs cited from papers without having the papers at hand (nothing is fitted to them)
 * state all that a plan needs. */
static void rows_of_papers_are_complete(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pubruns runs;
    ASSERT_OK(ms_pubruns_load(cx, MS_SOURCE_DIR "/tests/data/runs_cited.csv", &runs), cx);
    ASSERT_INT(runs.num_runs, 68);
    for (int i = 0; i < runs.num_runs; i++) {
        const ms_pubrun *run = &runs.runs[i];
        assert_true(run->complete);
        ASSERT_TEXT(run->reason, NULL);
        assert_true(run->measured_step_s > 0.1 && run->measured_step_s < 300.0);
    }
}

static void malformed_rows_are_named_by_line(void **state)
{
    (void)state;
    ms_pubruns runs =
        read_text(test_cx(), "x,y\n" GPT_ROW("a", "eight", ",,,,,,,,,,,,,,,,"));
    ASSERT_INT(runs.num_runs, 2);
    ASSERT_TEXT(runs.runs[0].id, "line 2");
    ASSERT_TEXT(runs.runs[0].fault, "2 fields, but the header has 40");
    ASSERT_TEXT(runs.runs[1].reason, "malformed");
    ASSERT_INT(runs.runs[1].line, 3);
    ASSERT_TEXT(runs.runs[1].fault,
                "gpus is \"eight\", must be a whole number from 0 to 16777216");
}

static void missing_columns_are_bad_input(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pubruns runs;
    ASSERT_INT(ms_pubruns_read(cx, "runs.csv", "id,source\n", 10, &runs), MS_EINPUT);
    assert_non_null(
        strstr(test_messages(cx), "runs.csv:1: error: column \"model\" is missing"));
    ASSERT_INT(ms_pubruns_read(test_cx(), "runs.csv", "", 0, &runs), MS_EINPUT);
}

#define FEW_COLUMNS "model,gpu_type,gpus,seq,gbs_seqs,measured_step_s"
#define FEW_CELLS   "\nLlama 3.1 8B,H100 SXM,8,8192,128,16\n"

/* The other columns count as empty, tp and pp as 1; a note names them. */
static void few_columns_are_enough(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_pubruns runs;
    const char *text = FEW_COLUMNS FEW_CELLS;
    cx->verbosity = -1;
    ASSERT_OK(ms_pubruns_read(cx, "runs.csv", text, strlen(text), &runs), cx);
    ASSERT_INT(runs.num_runs, 1);
    const ms_pubrun *run = &runs.runs[0];
    if (run->reason != NULL)
        fail_msg("%s", run->reason);
    ASSERT_TEXT(run->id, "line 2");
    ASSERT_TEXT(run->source, "own runs");
    ASSERT_TEXT(run->stack->name, "generic");
    assert_true(run->plan.size[MS_TP] == 1 && run->plan.size[MS_PP] == 1);
    assert_true(run->plan.global_batch == 128 && run->plan.gpus == 8);
    ASSERT_NEAR(run->measured_step_s, 16.0, 1e-12);
}

/* A column whose name is nearly that of a missing one would be passed over in silence;
 * short names have too many near ones. */
static void misspelt_columns_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {FEW_COLUMNS ",frame_work" FEW_CELLS, "is it the one called \"frame_work\"?"},
        {FEW_COLUMNS ",T_P" FEW_CELLS, "is it the one called \"T_P\"?"},
        {FEW_COLUMNS ",dp,x" FEW_CELLS, NULL},
        {"model,gpu_type,gpus,seq,gbs_seqs" FEW_CELLS, "no column is a measurement"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_pubruns runs;
        cx->verbosity = -1;
        ASSERT_INT(
            ms_pubruns_read(cx, "runs.csv", cases[i][0], strlen(cases[i][0]), &runs),
            cases[i][1] == NULL ? MS_OK : MS_EINPUT);
        if (cases[i][1] != NULL && strstr(test_messages(cx), cases[i][1]) == NULL)
            fail_msg("\"%s\" lacks %s", test_messages(cx), cases[i][1]);
    }
}

static const ms_pubrun *settled(ms_ctx *cx, const char *stated)
{
    const char *row = ms_arena_printf(
        cx->arena,
        "x,s,2023-08,GPT-3 5B,24,4096,32,32,128,16384,0,51200,1,,,,,2048,4,256,8,A100 "
        "80GB,,8,,1,0,0,1,,1,1,%s,bf16,,NeMo Megatron,5043,,\n",
        stated);
    ms_pubruns runs = read_text(cx, row);
    ASSERT_TEXT(runs.runs[0].reason, NULL);
    ms_pubrun_prices *prices = ms_pubrun_prices_open();
    ms_pubrun_fill_batch(cx->arena, prices, &runs.runs[0]);
    ms_pubrun_prices_close(prices);
    return &runs.runs[0];
}

/* A plan that cannot have fit its GPUs is changed as little as makes it fit: unsharded
 * states of a 5B model on 80 GB leave no room for anything else, and its attention
 * scores of 24 layers would take twice the rest. */
static void what_cannot_have_been_is_changed_as_little_as_fits(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_pubrun *open = settled(cx, ",none");
    ASSERT_INT(open->plan.zero, 1);
    ASSERT_INT(open->plan.recompute, MS_RECOMPUTE_SELECTIVE);
    assert_non_null(
        strstr(open->defaults, "zero 1 and recompute selective since it would not fit"));
    const ms_pubrun *stated = settled(cx, "0,none");
    ASSERT_INT(stated->plan.zero, 0);
    ASSERT_INT(stated->plan.recompute, MS_RECOMPUTE_NONE);
    const ms_pubrun *possible = settled(cx, "1,selective");
    ASSERT_INT(possible->plan.recompute, MS_RECOMPUTE_SELECTIVE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stated_row_is_taken_as_it_is),
        cmocka_unit_test(gigabytes_are_those_of_the_source),
        cmocka_unit_test(shard_groups_with_context_parallelism_are_taken_apart),
        cmocka_unit_test(a_truncated_model_keeps_its_kind),
        cmocka_unit_test(what_is_left_open_is_filled_and_listed),
        cmocka_unit_test(the_playbook_measures_its_first_rank),
        cmocka_unit_test(rows_that_cannot_be_predicted_say_why),
        cmocka_unit_test(layouts_must_have_as_many_ranks_as_gpus),
        cmocka_unit_test(words_are_mapped_or_refused),
        cmocka_unit_test(interleaving_follows_megatron),
        cmocka_unit_test(racks_are_shared_evenly),
        cmocka_unit_test(equal_models_are_one_object),
        cmocka_unit_test(frameworks_are_known_whatever_their_spelling),
        cmocka_unit_test(a_framework_has_the_habits_of_its_time),
        cmocka_unit_test(networks_are_those_that_the_row_states),
        cmocka_unit_test(a_network_that_stands_for_another_is_noted),
        cmocka_unit_test(a_network_may_be_known_by_the_source),
        cmocka_unit_test(stated_attention_and_nodes_replace_those_of_the_configurations),
        cmocka_unit_test(ends_of_the_model_can_be_alone),
        cmocka_unit_test(contradictions_and_repeats_are_named_by_line),
        cmocka_unit_test(rows_of_papers_are_complete),
        cmocka_unit_test(malformed_rows_are_named_by_line),
        cmocka_unit_test(missing_columns_are_bad_input),
        cmocka_unit_test(few_columns_are_enough),
        cmocka_unit_test(misspelt_columns_are_refused),
        cmocka_unit_test(what_cannot_have_been_is_changed_as_little_as_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
