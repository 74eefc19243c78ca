/* Words of published runs for schedules and recomputation, and what is assumed for
 * rows without them. */
#include "base/utf8.h"

#include "tests/unit/run_rows.h"

/* Schedules are known whatever their spelling; for an unknown word the framework's
 * usual schedule is taken, with a note. */
static void schedules_are_known_whatever_their_spelling(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        ms_schedule_kind kind;
        long virtual_stages;
        const char *note; /* note among the run's defaults; NULL: none */
    } known[] = {
        {"1F1B", MS_1F1B, 1, NULL},
        {"1F1B (non-interleaved)", MS_1F1B, 1, NULL},
        {"VP=2", MS_INTERLEAVED, 2, NULL},
        {"v=2", MS_INTERLEAVED, 2, NULL},
        {"1F1B (vpp 2)", MS_INTERLEAVED, 2, NULL},
        {"interleaved (2 chunks)", MS_INTERLEAVED, 2, NULL},
        {"circular (2 repeats)", MS_INTERLEAVED, 2, NULL},
        {"interleaved vpp=4", MS_INTERLEAVED, 4, NULL},
        {"4", MS_INTERLEAVED, 4, NULL},
        {"VPP 2", MS_INTERLEAVED, 2, NULL},
        {"virtual pipeline 2", MS_INTERLEAVED, 2, NULL},
        {"interleaved 1F1B (4 virtual stages)", MS_INTERLEAVED, 4, NULL},
        {"interleaved", MS_INTERLEAVED, 4, "interleaved in chunks of a layer"},
        {"zero bubble", MS_ZB_AUTO, 1, NULL},
        {"none", MS_1F1B, 1, NULL},
        {"wave", MS_1F1B, 1, "schedule \"wave\" is not known, schedule 1f1b"},
        {"", MS_1F1B, 1, "schedule 1f1b"},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *row = ms_arena_printf(
            cx->arena,
            GPT_ROW("a", "8", "2,,2,0,,2,%s,1,1,1,none,bf16,,Megatron-LM,,1.5,"),
            known[i].text);
        const ms_pubrun run = *row_of(row);
        ASSERT_TEXT(run.reason, NULL);
        ASSERT_INT(run.plan.schedule, known[i].kind);
        ASSERT_INT(run.plan.virtual_stages, known[i].virtual_stages);
        if (known[i].note != NULL)
            assert_non_null(strstr(run.defaults, known[i].note));
    }
}

static void recomputation_is_known_whatever_its_spelling(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        ms_recompute mode;
    } known[] = {
        {"full", MS_RECOMPUTE_FULL},
        {"True", MS_RECOMPUTE_FULL},
        {"gradient checkpointing", MS_RECOMPUTE_FULL},
        {"activation ckpt on", MS_RECOMPUTE_FULL},
        {"AC", MS_RECOMPUTE_FULL},
        {"none", MS_RECOMPUTE_NONE},
        {"off", MS_RECOMPUTE_NONE},
        {"w/o ckpt", MS_RECOMPUTE_NONE},
        {"no checkpointing", MS_RECOMPUTE_NONE},
        {"activation ckpt: off", MS_RECOMPUTE_NONE},
        {"False", MS_RECOMPUTE_NONE},
        {"selective", MS_RECOMPUTE_SELECTIVE},
        {"core_attn", MS_RECOMPUTE_SELECTIVE},
        {"mla_up_proj mlp", MS_RECOMPUTE_SELECTIVE},
        {"enabled", MS_RECOMPUTE_FULL},
        {"SAC", MS_RECOMPUTE_PER_OP},
        {"half", MS_RECOMPUTE_NONE}, /* unknown word: usual in Megatron-LM */
        {"remat", MS_RECOMPUTE_FULL},
        {"activation recomputation", MS_RECOMPUTE_FULL},
        {"nothing_saveable", MS_RECOMPUTE_FULL},
        {"layer", MS_RECOMPUTE_FULL},
        /* unknown word: usual in Megatron-LM */
        {"transformer layers: none", MS_RECOMPUTE_NONE},
        {"minimal_flash", MS_RECOMPUTE_PER_OP},
        {"SAC", MS_RECOMPUTE_PER_OP},
        {"mlp", MS_RECOMPUTE_SELECTIVE},
        {"moe", MS_RECOMPUTE_SELECTIVE},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *row = ms_arena_printf(
            cx->arena,
            GPT_ROW("a", "8", "2,,2,0,,2,1F1B,1,1,1,%s,bf16,,Megatron-LM,,1.5,"),
            known[i].text);
        const ms_pubrun run = *row_of(row);
        ASSERT_TEXT(run.reason, NULL);
        ASSERT_INT(run.plan.recompute, known[i].mode);
    }
}

/* The words name modules, some of which a GPT has. */
static void modules_are_read_from_words(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int modules;
    } known[] = {
        {"selective", 0},
        {"selective:core_attn", MS_MODULE_CORE_ATTN},
        {"selective (layernorm mlp)", MS_MODULE_LAYERNORM | MS_MODULE_MLP},
        {"mla_up_proj mlp", MS_MODULE_MLP},
        {"full:mlp", 0}, /* whole layers */
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const ms_pubrun run = *row_of(ms_arena_printf(
            cx->arena,
            GPT_ROW("a", "8", "2,,2,0,,2,1F1B,1,1,1,%s,bf16,,Megatron-LM,,1.5,"),
            known[i].text));
        ASSERT_TEXT(run.reason, NULL);
        ASSERT_INT(run.plan.recompute_modules, known[i].modules);
    }
}

/* Llama 3 training (arXiv 2407.21783 section 3.3.2): 126 layers, the embedding and the
 * head are 128 chunks, weights are gathered once a step, messages are asynchronous. */
static void llama_3_interleaves_single_layers(void **state)
{
    (void)state;
    static const char *const layouts[] = {
        /* cells of framework, schedule and zero; the last two rows do not name Meta, but
         * their source tells that they are of Llama 3 */
        "Meta internal,interleaved,2", "Meta internal,,", ",,", "in-house,,2"};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        char words[3][32] = {"", "", ""};
        const char *at = layouts[i];
        for (int w = 0; w < 3; w++) {
            size_t length = strcspn(at, ",");
            snprintf(words[w], sizeof words[w], "%.*s", (int)length, at);
            at += length + (at[length] == ',');
        }
        const char *row = ms_arena_printf(
            cx->arena,
            "a,The Llama 3 herd of models,2024-07,Llama 3 405B,,,,,,,1,,,,,,,8192,1,2048,8192,"
            "H100,,,64,8,,,16,%s,1,1,%s,,bf16,,%s,,12.5,\n",
            words[1], words[2], words[0]);
        const ms_pubrun run = *row_of(row);
        ASSERT_TEXT(run.reason, NULL);
        ASSERT_TEXT(run.stack->name, "meta-llama3");
        ASSERT_INT(run.plan.schedule, MS_INTERLEAVED);
        ASSERT_INT(run.plan.virtual_stages, 8);
        ASSERT_INT(run.plan.num_stage_layers, 128);
        ASSERT_INT(run.plan.zero, 3);
        assert_false(run.plan.reshard_after_forward);
        ASSERT_INT(run.plan.recompute, MS_RECOMPUTE_NONE);
    }
}

/* Numbers within one cell are not joined: in cells of GPUs, of degrees of parallelism and
 * of the ZeRO stage, a range, a sign, or a comma other than between thousands is an
 * error. A ZeRO stage may be words, which may also deny it ("no distributed
 * optimizer"). */
static void words_of_counts_are_not_joined(void **state)
{
    (void)state;
    static const struct {
        const char *gpus, *tp, *zero;
        long stage; /* ZeRO stage; -1: the row is malformed */
    } known[] = {
        {"8", "2", "distributed optimizer", 1},
        {"8", "2", "no distributed optimizer", 0},
        {"4 x 2", "2", "ZeRO-1", 1},
        {"8", "2", "2x1", -1},
        {"8", "2", "1,0", -1},
        {"4-8", "2", "1", -1},
        {"-8", "2", "1", -1},
        {"8", "1 2", "1", -1},
        {"8", "0x10", "1", -1},
        {"8", "2x0", "1", -1},
        {"8", "2", "ZeRO-2 + distributed optimizer", 2},
        {"8", "2", "2 + distributed optimizer", 2},
        {"8", "2", "distributed optimizer (ZeRO-2)", 2},
        {"8", "2", "distributed optimizer (ZeRO-1 style)", 1},
        {"8", "2", "ZeRO-3 (FSDP)", 3},
        {"8", "2", "3 (FSDP2)", 3},
        {"8", "2", "FSDP2 (ZeRO-2)", 2},
        {"8", "2", "FSDP (reshard)", 3},
        {"8", "2", "DDP (no ZeRO-1)", 0},
        {"8", "2", "ZeRO-1 / ZeRO-2", -1},
        {"8", "2", "ZeRO-1/2", -1},
        {"8", "2", "ZeRO-1, 2", -1},
        {"8", "2", "ZeRO-1 or ZeRO-3 + distributed optimizer", -1},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *row = ms_arena_printf(
            cx->arena,
            GPT_ROW("a", "\"%s\"",
                    ",2,%s,,,2,1F1B,1,1,\"%s\",none,bf16,,Megatron-LM,,1.5,"),
            known[i].gpus, known[i].tp, known[i].zero);
        const ms_pubrun run = *row_of(row);
        assert_int_equal(run.fault != NULL, known[i].stage < 0);
        if (known[i].stage >= 0)
            ASSERT_INT(run.plan.zero, known[i].stage);
    }
}

/* No run had sequence parallelism before Korthikanti et al. 2022, and forks of older
 * Megatron-LM never got it. */
static void sequence_parallelism_has_its_time(void **state)
{
    (void)state;
    static const struct {
        const char *date, *framework;
        bool sequence_parallel;
    } known[] = {
        {"2021-10", "Megatron-LM", false}, {"2022-06", "Megatron-LM", true},
        {"", "Megatron-LM", true},         {"2021/10", "Megatron-LM", false},
        {"10-2021", "Megatron-LM", true},  {"2022-08", "Megatron-DeepSpeed", false},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *row = ms_arena_printf(
            cx->arena,
            "a,Test,%s,GPT X,8,1024,16,16,64,4096,0,51200,1,,,,,2048,1,16,8,A100 80GB,,,2,"
            "2,,,2,1F1B,1,1,1,none,fp16,,%s,,1.5,\n",
            known[i].date, known[i].framework);
        ASSERT_INT(row_of(row)->plan.sequence_parallel, known[i].sequence_parallel);
    }
}

static void asynchronous_tensor_parallelism_is_a_column_a_flag_or_a_torus(void **state)
{
    (void)state;
    static const struct {
        const char *column, *flags;
        bool asynchronous;
    } known[] = {
        {"1", "", true},
        {"0", "tp-comm-overlap", false},
        {"", "overlap-grad-reduce; --tp-comm-overlap", true},
        {"", "ub_tp_comm_overlap", true},
        {"", "TP/DP/PP comm overlap OFF", false},
        {"", "", false},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *row = ms_arena_printf(
            cx->arena,
            GPT_ROW("a", "8", "2,,2,1,%s,2,1F1B,1,1,1,none,bf16,%s,Megatron-LM,,1.5,"),
            known[i].column, known[i].flags);
        ASSERT_INT(row_of(row)->plan.async_tp, known[i].asynchronous);
    }
    ASSERT_INT(device_row(cx, "TPU v5p", "", "bf16").plan.async_tp, true);
    ASSERT_INT(device_row(cx, "H100", "", "bf16").plan.async_tp, false);
}

/* A row with a measured rate (tokens/s) does not need a batch, since the rate hardly
 * depends on it: a batch that is missing, or that the ranks cannot share, is replaced. A
 * row with a measured step time and such a batch is refused. */
static void a_rate_needs_no_batch(void **state)
{
    (void)state;
    static const struct {
        const char *batch; /* cells of micro-batch, batch (both in sequences) and GPUs */
        const char *layout;
        const char *measured; /* cells of tokens/s and step time */
        long global_batch;    /* expected batch in sequences; 0: the row is refused */
    } known[] = {
        {"2,,8", "8,,1,0,,1,", "4000,", 16},
        {",,8", "8,,1,0,,1,", "4000,", 8},
        {"1,,8", "4,,1,0,,2,1F1B", "4000,", 2048},
        {"1,,24", "3,,1,0,,8,1F1B", "4000,", 2049},
        {"1,16,24", "3,,1,0,,8,1F1B", "4000,", 15},
        {"1,16,24", "3,,1,0,,8,1F1B", ",1.5", 0},
        {"1,,8", "4,,1,0,,2,1F1B", ",1.5", 0},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *row = ms_arena_printf(
            cx->arena,
            "a,Test,2024-01,GPT X,8,1024,16,16,64,4096,0,51200,1,,,,,2048,%s,A100 80GB,,%s,1,1,"
            "1,none,bf16,,Megatron-LM,%s,\n",
            known[i].batch, known[i].layout, known[i].measured);
        const ms_pubrun run = *row_of(row);
        ASSERT_INT(run.reason == NULL, known[i].global_batch > 0);
        if (known[i].global_batch > 0) {
            ASSERT_INT(run.plan.global_batch, known[i].global_batch);
            ASSERT_NEAR(run.measured_step_s,
                        (double)known[i].global_batch * 2048.0 /
                            (4000.0 * (double)run.plan.gpus),
                        1e-12);
        }
    }
}

/* Frameworks are known by whole words: "same table" contains "meta", but no word that
 * begins so. */
static void frameworks_are_words(void **state)
{
    (void)state;
    static const struct {
        const char *source, *framework, *stack;
    } known[] = {
        {"Appendix, same table", "", "generic"},
        {"Meta's report", "", "meta-llama3"},
        {"torch.compile ablation", "torchtitan (FSDP2)", "torchtitan-eager"},
        {"MegaScale table 2", "Megatron-LM", "megatron-2023"},
        {"Test", "NVIDIA Megatron-LM", "megatron"},
        {"Test", "MetaX Megatron-LM", "megatron"},
        {"Test", "MetaX", "generic"},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *row = ms_arena_printf(
            cx->arena,
            "a,\"%s\",2024-06,GPT X,8,1024,16,16,64,4096,0,51200,1,,,,,2048,1,16,8,A100 "
            "80GB,,8,,1,0,,1,,1,1,1,none,bf16,none,%s,,1.5,\n",
            known[i].source, known[i].framework);
        ASSERT_TEXT(row_of(row)->stack->name, known[i].stack);
    }
}

/* Counts may be written as words, and a count of pipeline stages may have a remark
 * behind it. */
static void counts_may_be_words(void **state)
{
    (void)state;
    static const struct {
        const char *pp, *zero, *sp;
        /* `stage`: the ZeRO stage; -1: the row is malformed */
        long virtual_stages, stage;
        bool sequence_parallel;
    } known[] = {
        {"2 (vpp 2)", "ZeRO-1", "yes", 2, 1, true},
        {"2", "stage 2", "no", 1, 2, false},
        {"2", "none", "False", 1, 0, false},
        {"1x2", "DistOpt", "Y", 1, 1, true},
        {"1 x 2", "distributed optimizer", "1", 1, 1, true},
        {"2", "-", "0", 1, 1, false},
        {"PP2", "FULL_SHARD", "yes*", 1, 3, true},
        {"pp = 2", "SHARD_GRAD_OP", "\xe2\x9c\x97", 1, 2, false},
        {"2-way", "NO_SHARD", "\xe2\x9c\x93", 1, 0, true},
        {"2[1]", "1\xe2\x80\xa0", "0*", 1, 1, false},
        {"2-", "1", "0", 1, -1, false},
        {"2[", "1", "0", 1, -1, false},
        {"pp", "1", "0", 1, -1, false},
        {"1/2", "1", "0", 1, -1, false},
        {"yes", "1", "0", 1, -1, false},
        {"two", "1", "0", 1, -1, false},
        {"2x9999999", "1", "0", 1, -1, false},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *row = ms_arena_printf(
            cx->arena,
            GPT_ROW("a", "8", "2,,2,%s,,%s,,1,1,%s,none,bf16,,Megatron-LM,,1.5,"),
            known[i].sp, known[i].pp, known[i].zero);
        const ms_pubrun run = *row_of(row);
        ASSERT_INT(run.fault != NULL, known[i].stage < 0);
        if (run.fault != NULL)
            continue;
        ASSERT_TEXT(run.reason, NULL);
        ASSERT_INT(run.plan.size[MS_PP], 2);
        ASSERT_INT(run.plan.virtual_stages, known[i].virtual_stages);
        ASSERT_INT(run.plan.zero, known[i].stage);
        ASSERT_INT(run.plan.sequence_parallel, known[i].sequence_parallel);
    }
}

/* Messages that quote a cell are valid UTF-8 text, whatever the cell's bytes and
 * length. */
static void foreign_bytes_are_shown_as_numbers(void **state)
{
    (void)state;
    char letters[200] = "2 (\xff";
    for (int i = 0; i < 60; i++)
        strcat(letters, "\xc3\xa9");
    const char *row = ms_arena_printf(
        test_cx()->arena,
        GPT_ROW("a", "8", "2,,\"%s)\",0,,2,1F1B,1,1,1,none,bf16,,Megatron-LM,,1.5,"),
        letters);
    const char *defaults = row_of(row)->defaults;
    assert_non_null(strstr(defaults, "tp \"2 (\\xFF\xc3\xa9"));
    assert_non_null(strstr(defaults, "...\" read as 2"));
    size_t length = strlen(defaults);
    for (size_t at = 0, step; at < length; at += step) {
        step = ms_utf8_step(defaults + at, length - at);
        assert_true(step > 0);
    }
}

/* Measured values may have units and marks; the row is of 8 GPUs and 16 sequences of
 * 2048 tokens. */
static void measurements_may_have_units_and_marks(void **state)
{
    (void)state;
    static const struct {
        const char *rate, *step, *peak;
        /* expected values; NaN: not measured; negative: the row is malformed */
        double step_s, peak_gib;
    } known[] = {
        {"4096", "", "", 1.0, NAN},
        {"4,096", "", "", 1.0, NAN},
        {"~4096*", "", "", 1.0, NAN},
        {"4096 tok/s", "", "45.5 GiB", 1.0, 45.5},
        {"4096\xc2\xa0tok/s", "", "45.5\xe2\x80\xafGiB", 1.0, 45.5},
        {"4.096k", "n/a", "-", 1.0, NAN},
        {"4096 \xc2\xb1 20", "", "46,592", 1.0, -1.0},
        {"", "1.5 s", "45.5 (max)", 1.5, 45.5},
        {"", "1500 ms", "46592 MiB", 1.5, 45.5},
        {"", "1.5 ", "~45.5", 1.5, 45.5},
        {"4096 (380 TFLOPs)", "", "45.5 (GiB)", 1.0, 45.5},
        {"4096 (MFU 45%)", "", "", 1.0, NAN},
        {"4096 tok/s (TFLOPs: 380)", "", "", 1.0, NAN},
        {"4096 (tokens/s)", "", "", 1.0, NAN},
        {"4096 (sequence parallel)", "", "", 1.0, NAN},
        {"380 (TFLOPs)", "", "", -1.0, NAN},
        {"380 (model TFLOP/s)", "", "", -1.0, NAN},
        {"45 (MFU)", "", "", -1.0, NAN},
        {"2 (samples/s)", "", "", -1.0, NAN},
        {"2 (sequences per second)", "", "", -1.0, NAN},
        {"", "1500 (ms)", "", -1.0, NAN},
        {"", "4096 (tokens/s)", "", -1.0, NAN},
        {"", "1.5 (s)", "45.5 (GB)", 1.5, -1.0},
        {"-", "1.5\xe2\x80\xa0", "?", 1.5, NAN},
        {"", "1.5e3ms", "", -1.0, NAN},
        {"", "1,5", "", -1.0, NAN},
        {"", "1.4-1.5", "", -1.0, NAN},
        {"", "1.5.2 s", "", -1.0, NAN},
        {"", "OOM", "", -1.0, NAN},
        {"", "0x10", "", -1.0, NAN},
        {"", "<1.5", "", -1.0, NAN},
        {"", "1.5", "45.5 GB", 1.5, -1.0},
        {"", "1.5", "57%", 1.5, -1.0},
        {"40961234567890123456789012345678901234567890 tok/s", "", "", -1.0, NAN},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *row = ms_arena_printf(
            cx->arena,
            GPT_ROW("a", "8",
                    ",8,1,0,,1,,1,1,1,none,bf16,,Megatron-LM,\"%s\",\"%s\",\"%s\""),
            known[i].rate, known[i].step, known[i].peak);
        const ms_pubrun run = *row_of(row);
        ASSERT_INT(run.fault != NULL, known[i].step_s < 0.0 || known[i].peak_gib < 0.0);
        if (run.fault != NULL)
            continue;
        ASSERT_NEAR(run.measured_step_s, known[i].step_s, 1e-12);
        ASSERT_INT(isnan(run.measured_peak_bytes), isnan(known[i].peak_gib));
        if (!isnan(known[i].peak_gib))
            ASSERT_NEAR(run.measured_peak_bytes, known[i].peak_gib * 1073741824.0, 1e-12);
    }
}

/* A row without a ZeRO stage has the one that the framework's name or its degrees
 * tell, otherwise the framework's usual one. */
static void sharding_follows_the_name_of_the_framework(void **state)
{
    (void)state;
    static const struct {
        const char *framework, *replicate, *shard;
        long zero;
    } known[] = {
        {"DeepSpeed ZeRO-2", "", "8", 2}, {"PyTorch FSDP", "", "8", 3},
        {"PyTorch DDP", "", "8", 0},      {"PyTorch", "8", "1", 0},
        {"Megatron-LM", "8", "", 1},      {"Megatron-FSDP", "", "8", 3},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *row = ms_arena_printf(
            cx->arena, GPT_ROW("a", "8", "%s,%s,1,0,,1,,1,1,,none,bf16,,%s,,1.5,"),
            known[i].replicate, known[i].shard, known[i].framework);
        const ms_pubrun run = *row_of(row);
        ASSERT_TEXT(run.reason, NULL);
        ASSERT_INT(run.plan.zero, known[i].zero);
    }
}

/* A cell that names two models is neither of them; the second size of a mixture of
 * experts ("671B / 37B") is its active parameters. */
static void a_name_of_several_models_is_none_of_them(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        bool is_several;
    } known[] = {
        {"Llama 3.1 8B / 70B", true},         {"Llama 3.1 70B, 8B", true},
        {"Llama 3.1 8B or 70B", true},        {"Llama 3.1 8B", false},
        {"Llama 3.1 8B, 300B tokens", false}, {"DeepSeek-V3 671B / 37B", false},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *row = ms_arena_printf(
            cx->arena,
            "a,Test,2024-10,\"%s\",,,,,,,1,,,,,,,2048,1,64,64,H100,,,64,1,0,,1,,1,1,1,none,"
            "bf16,,Megatron-LM,,1.5,\n",
            known[i].model);
        const ms_pubrun run = *row_of(row);
        ASSERT_TEXT(run.reason,
                    !known[i].is_several
                        ? NULL
                        : ms_arena_printf(cx->arena, "model: several sizes in \"%s\"",
                                          known[i].model));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_are_known_whatever_their_spelling),
        cmocka_unit_test(recomputation_is_known_whatever_its_spelling),
        cmocka_unit_test(modules_are_read_from_words),
        cmocka_unit_test(llama_3_interleaves_single_layers),
        cmocka_unit_test(words_of_counts_are_not_joined),
        cmocka_unit_test(sequence_parallelism_has_its_time),
        cmocka_unit_test(asynchronous_tensor_parallelism_is_a_column_a_flag_or_a_torus),
        cmocka_unit_test(a_rate_needs_no_batch),
        cmocka_unit_test(frameworks_are_words),
        cmocka_unit_test(counts_may_be_words),
        cmocka_unit_test(foreign_bytes_are_shown_as_numbers),
        cmocka_unit_test(measurements_may_have_units_and_marks),
        cmocka_unit_test(sharding_follows_the_name_of_the_framework),
        cmocka_unit_test(a_name_of_several_models_is_none_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
