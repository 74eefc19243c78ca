/* Arguments of Megatron-LM: notations of stages and layers, errors with their places, what
 * it cannot express, models found by their shapes. */
#include "tests/test.h"

#include "costmodel/port/megatron_priv.h"
#include "costmodel/port/port.h"

static const char shapes[] =
    "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
    "--group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm "
    "--position-embedding-type rope --disable-bias-linear "
    "--untie-embeddings-and-output-weights --seq-length 8192 --bf16 "
    "--rotary-base 500000 --max-position-embeddings 131072 ";

static const ms_port_format *megatron(void)
{
    const ms_port_format *format;
    ASSERT_OK(ms_port_format_find(test_cx(), "megatron", &format), test_cx());
    return format;
}

static ms_status import_text(ms_ctx *cx, const char *text, long gpus,
                             ms_port_imported *out)
{
    ms_port_import_options options = {.name = "run.sh", .gpus = gpus};
    return ms_port_import(cx, megatron(), text, strlen(text), &options, out);
}

static ms_plan plan_of(const char *arguments, long gpus)
{
    ms_ctx *cx = test_cx();
    ms_port_imported imported;
    const char *text = ms_arena_printf(cx->arena, "%s %s", shapes, arguments);
    ASSERT_OK(import_text(cx, text, gpus, &imported), cx);
    return imported.plan;
}

static void refuse(const char *arguments, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_port_imported imported;
    const char *text =
        ms_arena_printf(cx->arena, "%s --micro-batch-size 1 \\\n%s", shapes, arguments);
    ASSERT_INT(import_text(cx, text, 64, &imported), MS_EINPUT);
    if (strstr(test_messages(cx), message) == NULL)
        fail_msg("\"%s\" is not in:\n%s", message, test_messages(cx));
}

/* ---- stages ---- */

static void assert_layers(const char *arguments, long gpus, const char *want)
{
    ms_plan plan = plan_of(arguments, gpus);
    const char *got = "";
    for (long i = 0; i < plan.num_stage_layers; i++)
        got = ms_arena_printf(test_cx()->arena, "%s%s%ld", got, i == 0 ? "" : ",",
                              plan.layers_per_stage[i]);
    ASSERT_TEXT(got, want);
}

static void stages_have_their_layers(void **state)
{
    (void)state;
    assert_layers("--micro-batch-size 1 --pipeline-model-parallel-size 4 "
                  "--pipeline-model-parallel-layout 'Et*4|(t*4|)*6t*4L'",
                  4, "");
    assert_layers("--micro-batch-size 1 --pipeline-model-parallel-size 4 "
                  "--pipeline-model-parallel-layout 'Ett|(t*5,|)*6L'",
                  4, "2,5,5,5,5,5,5,0");
    assert_layers("--micro-batch-size 1 --pipeline-model-parallel-size 4 "
                  "--decoder-first-pipeline-num-layers 6 "
                  "--decoder-last-pipeline-num-layers 10",
                  4, "6,8,8,10");
    assert_layers("--micro-batch-size 1 --pipeline-model-parallel-size 3 "
                  "--account-for-embedding-in-pipeline-split",
                  3, "10,11,11");
}

static void notations_of_virtual_stages_agree(void **state)
{
    (void)state;
    ms_plan chunks = plan_of("--micro-batch-size 1 --pipeline-model-parallel-size 4 "
                             "--num-virtual-stages-per-pipeline-rank 2",
                             4);
    ms_plan sizes = plan_of("--micro-batch-size 1 --pipeline-model-parallel-size 4 "
                            "--num-layers-per-virtual-pipeline-stage 4",
                            4);
    ms_plan layout = plan_of("--micro-batch-size 1 --pipeline-model-parallel-size 4 "
                             "--pipeline-model-parallel-layout 'Et*4|(t*4|)*6t*4L'",
                             4);
    ASSERT_INT(chunks.virtual_stages, 2);
    assert_true(ms_plan_equal(&chunks, &sizes) && ms_plan_equal(&chunks, &layout));
    ASSERT_INT(chunks.schedule, MS_INTERLEAVED);
}

/* ---- meanings ---- */

static void framework_defaults_are_taken(void **state)
{
    (void)state;
    ms_plan plan = plan_of("--micro-batch-size 2 --tensor-model-parallel-size 2 "
                           "--context-parallel-size 2",
                           32);
    ASSERT_INT(plan.size[MS_DP_SHARD], 8);
    ASSERT_INT(plan.global_batch, 16);
    ASSERT_INT(plan.zero, 0);
    ASSERT_INT(plan.cp_method, MS_CP_RING);
    assert_true(!plan.sequence_parallel && plan.loss_parallel);
}

static void experts_split_over_tensors_by_default(void **state)
{
    (void)state;
    const char *experts = "--micro-batch-size 1 --tensor-model-parallel-size 2 "
                          "--expert-model-parallel-size 8 --sequence-parallel "
                          "--num-experts 64";
    ms_plan plan = plan_of(experts, 32);
    ASSERT_INT(plan.ep, 8);
    ASSERT_INT(plan.etp, 2);
    ASSERT_INT(plan.dispatcher, MS_DISPATCH_ALL_GATHER);
}

/* The sharding strategy counts with FSDP alone. */
static void strategies_need_fsdp(void **state)
{
    (void)state;
    static const char strategy[] = "--micro-batch-size 1 --use-distributed-optimizer "
                                   "--data-parallel-sharding-strategy optim_grads_params";
    ms_plan without = plan_of(strategy, 8);
    ms_plan with =
        plan_of(ms_arena_printf(test_cx()->arena, "%s --use-megatron-fsdp", strategy), 8);
    ASSERT_INT(without.zero, 1);
    ASSERT_INT(with.zero, 3);
}

static void lists_say_what_was_not_read(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_port_imported got;
    const char *text = ms_arena_printf(
        cx->arena, "%s --micro-batch-size 4 --micro-batch-size 1 --lr 1e-4 --swiglu",
        shapes);
    ASSERT_OK(import_text(cx, text, 8, &got), cx);
    ASSERT_INT(got.plan.microbatch, 1);
    ASSERT_INT(got.ignored.num, 3);
    ASSERT_TEXT(got.ignored.texts[0], "--swiglu (given again later)");
    ASSERT_TEXT(got.ignored.texts[1], "--micro-batch-size 4 (given again later)");
    ASSERT_TEXT(got.ignored.texts[2], "--lr 1e-4");
    ASSERT_INT(got.assumed.num, 1);
    ASSERT_TEXT(got.assumed.texts[0], "--global-batch-size 8, one micro-batch a rank");
}

/* ---- errors ---- */

static void wrong_values_are_refused_at_their_place(void **state)
{
    (void)state;
    refuse("--tensor-model-parallel-size four", "run.sh:2:1: error: "
                                                "--tensor-model-parallel-size: \"four\"");
    refuse("  --tensor-model-parallel-size 0", "run.sh:2:3: error: ");
    refuse("--tensor-model-parallel-size $TP", "known only when the script runs");
    refuse("--tensor-model-parallel-sizes 2",
           "did you mean --tensor-model-parallel-size?");
    refuse("--hierarchical-context-parallel-sizes 2 2", "no plan can have it");
    refuse("--cp-comm-type a2a+p2p --context-parallel-size 4",
           "one of p2p, all_gather, a2a");
    refuse("--tensor-model-parallel-size 3", "do not divide 64 GPUs");
    refuse("--recompute-granularity full", "--recompute-method is missing");
    refuse("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et*31|L'",
           "2 stages are no multiple of pp 4");
    refuse("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*31|L'",
           "31 layers, but the model has 32");
    refuse("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et(t|L'",
           "is no layout");
    refuse("--num-experts 8 --moe-layer-freq '([0]*3+[1]*28)'", "for 32 layers");
    refuse("--optimizer-cpu-offload --optimizer-offload-fraction 0.5",
           "all optimizer states");
}

static void gpus_must_be_known(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_port_imported got;
    const char *text = ms_arena_printf(cx->arena, "%s --micro-batch-size 1", shapes);
    ASSERT_INT(import_text(cx, text, 0, &got), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "the number of GPUs is missing"));
}

/* ---- patterns of layers ---- */

static void patterns_return(void **state)
{
    (void)state;
    bool on[8], again[8];
    for (unsigned bits = 0; bits < 256; bits++) {
        for (int i = 0; i < 8; i++)
            on[i] = bits >> i & 1;
        const char *text = ms_megatron_pattern_text(test_cx()->arena, on, 8);
        assert_true(ms_megatron_pattern_read(text, 8, true, again));
        assert_memory_equal(on, again, sizeof on);
    }
    assert_true(ms_megatron_pattern_read("([0]+[1, 1]) * 2+[0]*2", 8, true, again));
    assert_true(!again[0] && again[1] && again[2] && !again[3] && again[5] && !again[7]);
    assert_true(ms_megatron_pattern_read("4", 8, true, again));
    assert_true(again[0] && !again[3] && again[4]);
    assert_true(ms_megatron_pattern_read("4", 8, false, again));
    assert_true(again[0] && !again[3] && again[4] && !again[7]);
    static const char *const wrong[] = {"[1]*7",  "[1]*9", "[2]*8", "([1]*8",
                                        "[1]*8x", "",      "0",     "[1]*-8"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(ms_megatron_pattern_read(wrong[i], 8, true, again));
}

/* ---- export ---- */

static ms_status export_plan(ms_ctx *cx, const ms_plan *plan, const ms_model *model,
                             bool lossy, ms_port_exported *out)
{
    const ms_stack *stack;
    ms_rule_set rules;
    ASSERT_OK(ms_stack_load(cx, "megatron", &stack), cx);
    ASSERT_OK(ms_rule_set_load(cx, stack, &rules), cx);
    ms_port_subject subject = {plan, model, stack, &rules, 8};
    return ms_port_export(cx, megatron(), &subject, lossy, out);
}

static void what_cannot_be_said_is_named(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model;
    ms_port_exported exported;
    ASSERT_OK(ms_model_load(cx, "8b", &model), cx);
    ms_plan plan = ms_plan_default(8);
    plan.size[MS_DP_SHARD] = 8;
    plan.global_batch = 64;
    plan.lora_rank = 16;
    plan.gather_bits = MS_QUANTISED_8;
    plan.optimizer_dtype = MS_STORE_BF16;
    plan.zero = 1;
    ASSERT_INT(export_plan(cx, &plan, model, false, &exported), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "cannot express lora_rank 16"));
    assert_non_null(strstr(test_messages(cx), "quantized.gathers 8"));
    assert_non_null(strstr(test_messages(cx), "master_dtype"));
    ms_ctx *again = test_cx();
    ASSERT_OK(export_plan(again, &plan, model, true, &exported), again);
    ASSERT_INT(exported.left_out.num, 3);
}

/* Every shipped model that Megatron can express is found again by its arguments, or
 * another one with as many parameters. */
static void models_return_by_their_shapes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const *names;
    int num, num_exact = 0;
    ASSERT_OK(ms_model_names(cx, &names, &num), cx);
    for (int i = 0; i < num; i += TEST_CASES(3, 12)) {
        const ms_model *model, *found;
        ms_port_exported exported;
        ms_port_imported back;
        ASSERT_OK(ms_model_load(cx, names[i], &model), cx);
        ms_plan plan = ms_plan_default(1);
        plan.model = names[i];
        plan.sequence_length = 1024;
        ms_plan_fill_defaults(&plan);
        ASSERT_OK(export_plan(cx, &plan, model, true, &exported), cx);
        if (exported.left_out.num > 0)
            continue;
        char *text;
        size_t length;
        FILE *file = open_memstream(&text, &length);
        assert_non_null(file);
        ms_port_export_options options = {.launcher = MS_PORT_SRUN, .gpus_per_node = 1};
        ms_port_write(file, cx->arena, megatron(), &plan, &exported, &options);
        fclose(file);
        ASSERT_OK(import_text(cx, text, 0, &back), cx);
        ASSERT_OK(ms_port_find_model(cx, megatron(),
                                     &(ms_port_import_options){.name = "run.sh"}, &back,
                                     &found),
                  cx);
        ASSERT_NEAR(ms_model_params(found).total, ms_model_params(model).total, 1e-9);
        num_exact++;
        free(text);
    }
    print_message("%d models return\n", num_exact);
    assert_true(num_exact >= TEST_CASES(40, 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_have_their_layers),
        cmocka_unit_test(notations_of_virtual_stages_agree),
        cmocka_unit_test(framework_defaults_are_taken),
        cmocka_unit_test(experts_split_over_tensors_by_default),
        cmocka_unit_test(strategies_need_fsdp),
        cmocka_unit_test(lists_say_what_was_not_read),
        cmocka_unit_test(wrong_values_are_refused_at_their_place),
        cmocka_unit_test(gpus_must_be_known),
        cmocka_unit_test(patterns_return),
        cmocka_unit_test(what_cannot_be_said_is_named),
        cmocka_unit_test(models_return_by_their_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
