/* Command-line flags of a plan: defaults, how dp_shard follows from the other sizes,
 * flags on top of a plan file, axis orders. */
#include "tests/test.h"

#include "cli/options/plan_command.h"
#include "sim/request/plan_options.h"

#define MAX_ARGUMENTS 24

static ms_status read_flags(ms_ctx *cx, const char *line, ms_plan_options *opts)
{
    *opts = (ms_plan_options){0};
    char *argv[MAX_ARGUMENTS];
    int argc = 0;
    for (char *rest = ms_arena_strdup(cx->arena, line); *rest != '\0';) {
        size_t length = strcspn(rest, " ");
        argv[argc++] = ms_arena_strndup(cx->arena, rest, length);
        rest += length + (rest[length] == ' ');
    }
    ms_option_set set = {"plan", ms_plan_option_table(), opts};
    ms_words words;
    MS_TRY(ms_options_parse(cx, &set, 1, argc, argv, &words));
    return ms_plan_options_word(cx, opts, words.num_words > 0 ? words.words[0] : NULL);
}

static ms_status plan_of(ms_ctx *cx, const char *line, ms_plan *out)
{
    ms_plan_options opts;
    MS_TRY(read_flags(cx, line, &opts));
    return ms_plan_from_options(cx, &opts, out);
}

static ms_plan plan_ok(const char *line)
{
    ms_ctx *cx = test_cx();
    ms_plan plan;
    ASSERT_OK(plan_of(cx, line, &plan), cx);
    return plan;
}

static void assert_refused(const char *line, const char *messages)
{
    ms_ctx *cx = test_cx();
    ms_plan plan;
    ASSERT_INT(plan_of(cx, line, &plan), MS_EINPUT);
    ASSERT_TEXT(test_messages(cx), messages);
}

/* Path of a file that holds the plan; the caller removes it. */
static char *saved_plan(ms_ctx *cx, const ms_plan *plan)
{
    char *path = ms_arena_strdup(cx->arena, "/tmp/meshsim-test-plan-XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    ms_jout out = ms_jout_open(file);
    ms_plan_write_json(&out, plan);
    ms_jout_close(&out);
    ASSERT_INT(fclose(file), 0);
    char *json = ms_arena_printf(cx->arena, "%s.json", path);
    ASSERT_INT(rename(path, json), 0);
    return json;
}

static void defaults_are_those_of_the_design(void **state)
{
    (void)state;
    ms_plan plan = plan_ok("--model 8b --gpus 64");
    ASSERT_TEXT(plan.cluster, "hgx-h100");
    ASSERT_TEXT(plan.stack, "megatron");
    ASSERT_INT(plan.size[MS_DP_SHARD], 64);
    ASSERT_INT(plan.size[MS_PP] * plan.size[MS_TP] * plan.size[MS_CP], 1);
    ASSERT_INT(plan.sequence_length, 8192);
    ASSERT_INT(plan.global_batch, 512); /* 4 Mi tokens in sequences of 8192 */
    ASSERT_INT(plan.microbatch, 1);
    ASSERT_INT(plan.schedule, MS_1F1B);
    ASSERT_INT(plan.zero, 1);
    assert_true(!plan.sequence_parallel && !plan.async_tp);
    assert_true(plan.loss_parallel);
    ASSERT_INT(plan.compute, MS_BF16);
    ASSERT_INT(plan.etp, 1);
}

static void dp_shard_takes_the_rest(void **state)
{
    (void)state;
    ms_plan plan = plan_ok("--model 70b --gpus 512 --tp 8 --pp 4");
    ASSERT_INT(plan.size[MS_DP_SHARD], 16);
    ASSERT_INT(plan.size[MS_DP_REPLICATE], 1);
    assert_true(plan.sequence_parallel);
    assert_false(plan.reshard_after_forward);
}

static void the_product_must_be_the_gpus(void **state)
{
    (void)state;
    assert_refused("--model 70b --gpus 512 --tp 8 --pp 4 --dp-shard 2",
                   "error: pp 4 x dp_shard 2 x tp 8 = 64 ranks, but there are 512 GPUs\n"
                   "  hint: --dp-shard 16 makes it 512\n");
    assert_refused("--model 70b --gpus 100 --tp 8 --dp-replicate 2",
                   "error: dp_replicate 2 x tp 8 = 16 ranks, but there are 100 GPUs\n"
                   "  hint: --gpus 16 fits these axes\n");
    assert_refused(
        "--model 70b --gpus 100 --tp 8",
        "error: tp 8 = 8 ranks do not divide 100 GPUs\n"
        "  hint: tp may be one of 1 2 4 5, or --gpus 96 or --gpus 104 fits it\n");
    assert_refused("--model 70b --gpus 4 --tp 8",
                   "error: tp 8 = 8 ranks do not divide 4 GPUs\n"
                   "  hint: tp may be one of 1 2 4, or it needs at least --gpus 8\n");
}

static void huge_axes_do_not_overflow(void **state)
{
    (void)state;
    assert_refused(
        "--model 8b --pp 16777216 --tp 16777216 --cp 16777216 --dp-shard 16777216 "
        "--dp-replicate 16777216 --gpus 8",
        "error: pp 16777216 x dp_replicate 16777216 x dp_shard 16777216 x cp 16777216 "
        "x tp 16777216 = 1329227995784915872903807060280344576 ranks, but there are 8 "
        "GPUs\n  hint: make some of the axes smaller\n");
}

static void without_gpus_the_product_counts(void **state)
{
    (void)state;
    ASSERT_INT(plan_ok("--model 8b --tp 4 --dp-shard 2").gpus, 8);
    ASSERT_INT(plan_ok("--model 8b").gpus, 1);
}

static void zero_follows_the_stack(void **state)
{
    (void)state;
    ASSERT_INT(plan_ok("--model 8b --gpus 8 --stack megatron").zero, 1);
    ASSERT_INT(plan_ok("--model 8b --gpus 8 --tp 8 --stack megatron").zero, 0);
    ASSERT_INT(plan_ok("--model 8b --gpus 8 --stack torchtitan").zero, 3);
    ASSERT_INT(plan_ok("--model 8b --gpus 8 --zero 0").zero, 0);
    ASSERT_INT(plan_ok("--model 8b --gpus 8 --stack torchtitan").recompute,
               MS_RECOMPUTE_PER_OP);
}

static void a_budget_is_for_automatic_recomputation(void **state)
{
    (void)state;
    ms_plan plan = plan_ok("--model 8b --gpus 8 --recompute auto --recompute-budget 0.5");
    ASSERT_INT(plan.recompute, MS_RECOMPUTE_AUTO);
    ASSERT_NEAR(plan.recompute_budget_frac, 0.5, 0);
    plan = plan_ok("--model 8b --gpus 8 --recompute auto");
    ASSERT_NEAR(plan.recompute_budget_frac, -1, 0);
    assert_refused("--model 8b --gpus 8 --recompute full --recompute-budget 0.5",
                   "error: --recompute-budget 0.5 has no effect with recompute full\n"
                   "  hint: --recompute auto --recompute-budget 0.5\n");
    assert_refused("--model 8b --gpus 8 --recompute auto --recompute-layers 2",
                   "error: --recompute-layers 2 has no effect with recompute auto\n"
                   "  hint: --recompute full --recompute-layers 2\n");
}

static void assert_notes(const char *line, const char *notes)
{
    ms_ctx *cx = test_cx();
    ms_kept_notes kept = {0};
    ms_plan plan;
    cx->notes = &kept;
    ASSERT_OK(plan_of(cx, line, &plan), cx);
    const char *all = "";
    for (const ms_kept_note *note = kept.first; note != NULL; note = note->next)
        if (strcmp(note->kind, "note") == 0)
            all = ms_arena_printf(cx->arena, "%s%s\n", all, note->text);
    ASSERT_TEXT(all, notes);
}

static void choices_without_effect_are_said(void **state)
{
    (void)state;
    assert_notes(
        "--model 8b --gpus 8 --async-tp on --cp-method ring --sequence-parallel on",
        "--sequence-parallel on has no effect without --tp above 1\n"
        "--async-tp on has no effect without --tp above 1\n"
        "--cp-method ring has no effect without --cp above 1\n");
    assert_notes("--model 8b --gpus 8 --async-tp off --sequence-parallel off", "");
    assert_notes("--model 8b --gpus 8 --tp 8 --async-tp on", "");
    assert_notes("--model 8b --gpus 8 --schedule gpipe --reshard-ranks 4",
                 "--schedule gpipe has no effect without --pp above 1\n"
                 "--reshard-ranks 4 has no effect without --zero 3 and "
                 "--reshard-after-forward on\n");
    assert_notes("--model 8b --gpus 8 --moe-shared-expert-overlap on --pad-experts on "
                 "--partition-activations on",
                 "--pad-experts on has no effect without --expert-capacity\n"
                 "--moe-shared-expert-overlap on has no effect without --ep above 1\n"
                 "--partition-activations on has no effect without --tp above 1, "
                 "--sequence-parallel off and --recompute full\n");
}

static void resharding_in_pipelines_follows_the_stack(void **state)
{
    (void)state;
    const char *const torchtitan = "--model 8b --gpus 8 --pp 2 --stack torchtitan";
    ASSERT_INT(plan_ok(torchtitan).zero, 3);
    assert_false(plan_ok(torchtitan).reshard_after_forward);
    assert_true(plan_ok("--model 8b --gpus 8 --stack torchtitan").reshard_after_forward);
    assert_true(plan_ok("--model 8b --gpus 8 --pp 2 --zero 3").reshard_after_forward);
}

static void virtual_stages_mean_interleaving(void **state)
{
    (void)state;
    ms_plan plan = plan_ok("--model 8b --gpus 8 --pp 4 --virtual-stages 4");
    ASSERT_INT(plan.schedule, MS_INTERLEAVED);
    ASSERT_INT(plan.virtual_stages, 4);
    plan = plan_ok("--model 8b --gpus 8 --pp 4 --schedule Interleaved1F1B");
    ASSERT_INT(plan.schedule, MS_INTERLEAVED);
    ASSERT_INT(plan.virtual_stages, 2);
    plan =
        plan_ok("--model 8b --gpus 8 --pp 4 --schedule gpipe --layers-per-stage 7,8,8,9");
    ASSERT_INT(plan.schedule, MS_GPIPE);
    ASSERT_INT(plan.num_stage_layers, 4);
    ASSERT_INT(plan.layers_per_stage[3], 9);
    assert_refused(
        "--model 8b --layers-per-stage 7,,9",
        "error: --layers-per-stage is \"7,,9\", where \"\" is no number of layers\n"
        "  hint: one number for each virtual stage: 20,20,20,20\n");
}

static void batches_scale_with_sequence_and_gpus(void **state)
{
    (void)state;
    ASSERT_INT(plan_ok("--model 8b --gpus 8 --seq 4k").global_batch, 1024);
    ASSERT_INT(plan_ok("--model 8b --gpus 16384 --tp 8").global_batch, 2048);
    ASSERT_INT(plan_ok("--model 8b --gpus 8 --global-batch 24").global_batch, 24);
}

static void orders_take_other_names(void **state)
{
    (void)state;
    ms_plan plan = plan_ok("--model 8b --gpus 32 --tp 4 --pp 2 --order dp,pp,model");
    static const unsigned char want[] = {MS_CP, MS_DP_REPLICATE, MS_DP_SHARD, MS_PP,
                                         MS_TP};
    assert_memory_equal(plan.order, want, sizeof want);
    plan = plan_ok("--model 8b --order tp,cp,fsdp,replicate,pp");
    static const unsigned char reversed[] = {MS_TP, MS_CP, MS_DP_SHARD, MS_DP_REPLICATE,
                                             MS_PP};
    assert_memory_equal(plan.order, reversed, sizeof reversed);
}

static void bad_orders_are_explained(void **state)
{
    (void)state;
    assert_refused("--model 8b --gpus 8 --tp 2 --order tp,pp",
                   "error: --order is \"tp,pp\", which leaves out dp_shard of size 4\n");
    assert_refused("--model 8b --order tp,model",
                   "error: --order is \"tp,model\", which names tp twice\n");
    assert_refused("--model 8b --order dp_shart",
                   "error: --order names the unknown axis \"dp_shart\"\n"
                   "  hint: did you mean dp_shard?\n");
    assert_refused(
        "--model 8b --order dp,ep",
        "error: --order names the unknown axis \"ep\"\n"
        "  hint: ep lies on the expert mesh, always innermost; leave it out\n");
}

static void flags_override_a_saved_plan(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan saved =
        plan_ok("--model 8b --gpus 64 --tp 4 --seq 4k --zero 1 --global-batch 96");
    char *path = saved_plan(cx, &saved);
    ms_plan same = plan_ok(path);
    ms_plan wider = plan_ok(ms_arena_printf(cx->arena, "--plan %s --gpus 128", path));
    ms_plan other = plan_ok(ms_arena_printf(cx->arena, "%s --tp 8 --model 70b", path));
    ASSERT_INT(remove(path), 0);
    assert_true(ms_plan_equal(&saved, &same));
    ASSERT_INT(wider.size[MS_DP_SHARD], 32);
    ASSERT_INT(wider.sequence_length, 4096);
    ASSERT_INT(wider.zero, 1);
    ASSERT_INT(other.gpus, 64);
    ASSERT_INT(other.size[MS_DP_SHARD], 8);
    ASSERT_INT(other.global_batch, 96);
    ASSERT_TEXT(other.model, "70b");
}

static void two_plans_are_one_too_many(void **state)
{
    (void)state;
    assert_refused("a.json --plan b.json",
                   "error: two plans are given: \"a.json\" and --plan \"b.json\"\n");
}

static void a_plan_needs_a_model(void **state)
{
    (void)state;
    assert_refused("--gpus 8", "error: no model is given\n"
                               "  hint: --model 8b; \"meshsim model\" lists the names\n");
}

static void data_parallel_flags_that_people_try_are_explained(void **state)
{
    (void)state;
    assert_refused(
        "--model 8b --dp 8",
        "error: unknown option \"--dp\"\n  hint: --dp-shard N is data parallelism "
        "(plain with --zero 0); --dp-replicate N adds replicas\n");
}

static void a_search_starts_with_free_axes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan_options opts;
    ms_plan plan;
    ASSERT_OK(read_flags(cx, "--model 70b --gpus 512 --tp 8 --dp-shard 4", &opts), cx);
    ASSERT_OK(ms_plan_base_from_options(cx, &opts, &plan), cx);
    ASSERT_INT(plan.gpus, 512);
    ASSERT_INT(plan.size[MS_TP], 8);
    ASSERT_INT(plan.global_batch, 512);
    ASSERT_OK(read_flags(cx, "--model 70b", &opts), cx);
    ASSERT_INT(ms_plan_base_from_options(cx, &opts, &plan), MS_EINPUT);
}

static void an_output_in_the_place_of_an_input_is_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *path = "/tmp/meshsim-test-no-such-plan.json",
               *alias = "/tmp/./meshsim-test-no-such-plan.json";
    ms_plan plan = {.model = "8b", .cluster = "h100", .stack = "generic"};
    ms_plan_options opts = {.plan_file = path};
    ASSERT_INT(ms_plan_options_check_output(cx, &opts, &plan, alias), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "are one file"));
    opts.plan_file = NULL;
    ASSERT_OK(ms_plan_options_check_output(cx, &opts, &plan, alias), cx);
    ASSERT_OK(ms_plan_options_check_output(cx, &opts, &plan, "8b"), cx);
    plan.model = path;
    ASSERT_INT(ms_plan_options_check_output(cx, &opts, &plan, alias), MS_EINPUT);
    ASSERT_OK(ms_plan_options_check_output(cx, &opts, &plan, NULL), cx);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_design),
        cmocka_unit_test(dp_shard_takes_the_rest),
        cmocka_unit_test(the_product_must_be_the_gpus),
        cmocka_unit_test(huge_axes_do_not_overflow),
        cmocka_unit_test(without_gpus_the_product_counts),
        cmocka_unit_test(zero_follows_the_stack),
        cmocka_unit_test(a_budget_is_for_automatic_recomputation),
        cmocka_unit_test(choices_without_effect_are_said),
        cmocka_unit_test(resharding_in_pipelines_follows_the_stack),
        cmocka_unit_test(virtual_stages_mean_interleaving),
        cmocka_unit_test(batches_scale_with_sequence_and_gpus),
        cmocka_unit_test(orders_take_other_names),
        cmocka_unit_test(bad_orders_are_explained),
        cmocka_unit_test(flags_override_a_saved_plan),
        cmocka_unit_test(two_plans_are_one_too_many),
        cmocka_unit_test(a_plan_needs_a_model),
        cmocka_unit_test(data_parallel_flags_that_people_try_are_explained),
        cmocka_unit_test(a_search_starts_with_free_axes),
        cmocka_unit_test(an_output_in_the_place_of_an_input_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
