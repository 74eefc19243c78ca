/* Plan files: defaults, errors at their line and column, and reading back what is
 * written. */
#include "costmodel/plan/plan.h"

#include "tests/test.h"
#include "tests/unit/legal_plans.h"

static ms_status read_text(ms_ctx *cx, const char *text, ms_plan *out)
{
    ms_jdoc *doc;
    ms_jval root;
    ms_status status = ms_json_parse(cx, "plan.json", text, strlen(text), &doc, &root);
    if (status != MS_OK)
        return status;
    status = ms_plan_read(cx, root, out);
    ms_json_close(doc);
    return status;
}

static void a_minimal_plan_takes_the_defaults(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan;
    ASSERT_OK(
        read_text(
            cx,
            "{\"model\": \"70b\", \"gpus\": 512, \"mesh\": [{\"axis\": \"tp\", \"size\": 8}]}",
            &plan),
        cx);
    ASSERT_INT(plan.size[MS_DP_SHARD], 64);
    ASSERT_INT(plan.zero, 3);
    assert_true(plan.reshard_after_forward);
    ASSERT_INT(plan.sequence_length, 8192);
    ASSERT_INT(plan.global_batch, 512);
    ASSERT_INT(plan.microbatch, 1);
    ASSERT_INT(plan.schedule, MS_1F1B);
    ASSERT_INT(plan.compute, MS_BF16);
    ASSERT_TEXT(plan.cluster, "hgx-h100");
    ASSERT_TEXT(plan.stack, "megatron");
    assert_int_equal(plan.param_dtype, MS_STORE_DEFAULT);
    ms_mesh mesh = ms_plan_mesh(&plan);
    ASSERT_INT(mesh.axes[ms_mesh_find(&mesh, "tp")].stride, 1);
}

static void zero_and_resharding_follow_from_the_axes(void **state)
{
    (void)state;
    const struct {
        const char *mesh;
        long zero;
        bool reshards;
    } cases[] = {
        {"{\"axis\": \"tp\", \"size\": 2}", 0, false},
        {"{\"axis\": \"dp_replicate\", \"size\": 2}", 0, false},
        {"{\"axis\": \"dp_shard\", \"size\": 2}", 3, true},
        {"{\"axis\": \"cp\", \"size\": 2}", 3, true},
        {"{\"axis\": \"cp\", \"size\": 2}, {\"axis\": \"pp\", \"size\": 2}", 3, false}};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_plan plan;
        const char *text = ms_arena_printf(
            cx->arena, "{\"model\": \"8b\", \"mesh\": [%s]}", cases[i].mesh);
        ASSERT_OK(read_text(cx, text, &plan), cx);
        ASSERT_INT(plan.zero, cases[i].zero);
        ASSERT_INT(plan.reshard_after_forward, cases[i].reshards);
    }
}

static void without_gpus_the_mesh_counts_them(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan;
    ASSERT_OK(
        read_text(
            cx,
            "{\"model\": \"8b\", \"mesh\": [{\"axis\": \"cp\", \"size\": 2}, {\"axis\": "
            "\"pp\", \"size\": 4}]}",
            &plan),
        cx);
    ASSERT_INT(plan.gpus, 8);
    ASSERT_INT(plan.size[MS_DP_SHARD], 1);
    ms_mesh mesh = ms_plan_mesh(&plan);
    ASSERT_INT(mesh.axes[ms_mesh_find(&mesh, "pp")].stride, 1);
    ASSERT_INT(mesh.axes[ms_mesh_find(&mesh, "cp")].stride, 4);
    ASSERT_OK(read_text(cx, "{\"model\": \"8b\"}", &plan), cx);
    ASSERT_INT(plan.gpus, 1);
}

static void read_back(const ms_plan *plan)
{
    ms_ctx *cx = test_cx();
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_jout out = ms_jout_open(file);
    ms_plan_write_json(&out, plan);
    ms_jout_close(&out);
    const char *text = test_read_back(cx->arena, file);
    ms_plan again;
    ASSERT_OK(read_text(cx, text, &again), cx);
    if (!ms_plan_equal(plan, &again))
        fail_msg("read back differently:\n%s", text);
}

static void a_saved_plan_reads_back_as_the_same_plan(void **state)
{
    (void)state;
    ms_plan plan = dense_plan();
    read_back(&plan);
    plan = expert_plan();
    read_back(&plan);

    const long layers[] = {10, 10, 10, 10, 10, 10, 10, 10};
    const unsigned char order[] = {MS_TP, MS_CP, MS_DP_SHARD, MS_DP_REPLICATE, MS_PP};
    plan = (ms_plan){.model = "dir/odd \"name\".json",
                     .cluster = "c",
                     .stack = "megatron",
                     .gpus = 4 * 2 * 3 * 2 * 8,
                     .size = {4, 2, 3, 2, 8},
                     .ep = 6,
                     .etp = 8,
                     .sequence_length = 131072,
                     .global_batch = 4800,
                     .microbatch = 2,
                     .schedule = MS_INTERLEAVED,
                     .virtual_stages = 2,
                     .microbatch_group = 5,
                     .num_stage_layers = 8,
                     .layers_per_stage = layers,
                     .zero = 2,
                     .reshard_after_forward = false,
                     .sequence_parallel = false,
                     .async_tp = true,
                     .loss_parallel = false,
                     .cp_balance = MS_CP_NONE,
                     .recompute = MS_RECOMPUTE_FULL,
                     .recompute_layers = 7,
                     .compute = MS_FP8,
                     .param_dtype = MS_STORE_BF16,
                     .grad_dtype = MS_STORE_FP32,
                     .optimizer_dtype = MS_STORE_FP32,
                     .comm_dtype = MS_STORE_BF16};
    memcpy(plan.order, order, sizeof order);
    read_back(&plan);
    plan.recompute = MS_RECOMPUTE_AUTO;
    plan.recompute_layers = 0;
    plan.recompute_budget_frac = 0.1 + 0.2;
    read_back(&plan);
    plan.recompute_budget_frac = -1; /* -1: no budget is set */
    read_back(&plan);
}

static void equality_sees_every_choice(void **state)
{
    (void)state;
    ms_plan plan = dense_plan(), other = dense_plan();
    assert_true(ms_plan_equal(&plan, &other));
    other.order[0] = MS_TP;
    assert_false(ms_plan_equal(&plan, &other));
    other = dense_plan();
    other.comm_dtype = MS_STORE_FP32;
    assert_false(ms_plan_equal(&plan, &other));
    other = dense_plan();
    other.loss_parallel = false;
    assert_false(ms_plan_equal(&plan, &other));
    other = dense_plan();
    const long layers[] = {20, 20, 20, 20};
    other.num_stage_layers = 4;
    other.layers_per_stage = layers;
    assert_false(ms_plan_equal(&plan, &other));
}

static void words_may_be_those_of_other_tools(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan;
    ASSERT_OK(
        read_text(cx,
                  "{\"model\": \"8b\", \"mesh\": [{\"axis\": \"cp\", \"size\": 2}], "
                  "\"pipeline\": {\"schedule\": \"afab\"}, \"context\": {\"method\": "
                  "\"p2p\"}}",
                  &plan),
        cx);
    ASSERT_INT(plan.schedule, MS_GPIPE);
    ASSERT_INT(plan.cp_method, MS_CP_RING);
    ASSERT_INT(
        read_text(cx,
                  "{\"model\": \"8b\", \"mesh\": [{\"axis\": \"cp\", \"size\": 2}], "
                  "\"context\": {\"method\": \"rung\"}}",
                  &plan),
        MS_EINPUT);
    ASSERT_TEXT(cx->first->loc.path, "/context/method");
    ASSERT_TEXT(cx->first->hint, "did you mean \"ring\"?");
}

static void bad_plans_are_errors_at_their_place(void **state)
{
    (void)state;
    const struct {
        const char *text, *message;
    } cases[] = {
        {"{}", "model"},
        {"[]", "plan.json:1:1"},
        {"{\"model\": \"x\", \"modle\": 1}", "modle"},
        {"{\"model\": \"x\", \"schema\": \"meshsim.plan/2\"}", "meshsim.plan/2"},
        {"{\"model\": \"x\", \"mesh\": [{\"axis\": \"dp\", \"size\": 2}]}",
         "/mesh/0/axis"},
        {"{\"model\": \"x\", \"mesh\": [{\"axis\": \"tp\", \"size\": 0}]}",
         "/mesh/0/size"},
        {"{\"model\": \"x\", \"mesh\": [{\"axis\": \"tp\"}]}", "size"},
        {"{\"model\": \"x\", \"mesh\": [{\"axis\": \"tp\", \"size\": 2}, {\"axis\": \"tp\", \"size\": "
         "2}]}",
         "twice"},
        {"{\"model\": \"x\", \"mesh\": {\"tp\": 2}}", "array"},
        {"{\"model\": \"x\", \"gpus\": 12, \"mesh\": [{\"axis\": \"tp\", \"size\": 8}]}",
         "/gpus"},
        {"{\"model\": \"x\", \"gpus\": 12, \"mesh\": [{\"axis\": \"dp_shard\", \"size\": 6}]}",
         "6 ranks"},
        {"{\"model\": \"x\", \"mesh\": [{\"axis\": \"tp\", \"size\": 16000000}, {\"axis\": \"pp\", "
         "\"size\": 16000000}]}",
         "at most 16777216"},
        {"{\"model\": \"x\", \"pipeline\": {\"schedule\": \"1f1c\"}}",
         "did you mean \"1f1b\""},
        {"{\"model\": \"x\", \"pipeline\": {\"schedule\": \"onepipe\"}}",
         "/pipeline/schedule"},
        {"{\"model\": \"x\", \"pipeline\": {\"layers_per_stage\": 4}}",
         "/pipeline/layers_per_stage"},
        {"{\"model\": \"x\", \"pipeline\": {\"layers_per_stage\": [4, -1]}}",
         "/pipeline/layers_per_stage/1"},
        {"{\"model\": \"x\", \"sharding\": {\"zero\": 4}}", "/sharding/zero"},
        {"{\"model\": \"x\", \"recompute\": {\"mode\": \"none\", \"layers\": 4}}",
         "/recompute/layers"},
        {"{\"model\": \"x\", \"recompute\": {\"mode\": \"auto\", \"layers\": 4}}",
         "/recompute/layers"},
        {"{\"model\": \"x\", \"recompute\": {\"mode\": \"full\", \"budget_frac\": 0.5}}",
         "/recompute/budget_frac"},
        {"{\"model\": \"x\", \"recompute\": {\"mode\": \"auto\", \"budget_frac\": 1.5}}",
         "/recompute/budget_frac"},
        {"{\"model\": \"x\", \"sharding\": 3}", "/sharding"},
        {"{\"model\": \"x\", \"precision\": {\"grads\": \"fp8\"}}", "/precision/grads"},
        {"{\"model\": \"x\", \"tensor\": {\"async\": \"yes\"}}", "/tensor/async"},
        {"{\"model\": \"x\", \"batch\": {\"microbatch\": 1.5}}", "/batch/microbatch"},
        {"{\"model\": \"x\", \"recompute\": {\"mode\": \"some\"}}", "/recompute/mode"},
        {"{\"model\": \"x\", \"buckets\": {\"bytes\": 0}}",
         "bytes is 0, must be above it, or null"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan;
        ASSERT_INT(read_text(cx, cases[i].text, &plan), MS_EINPUT);
        const char *messages = test_messages(cx);
        if (strstr(messages, cases[i].message) == NULL)
            fail_msg("%s\nlacks \"%s\":\n%s", cases[i].text, cases[i].message, messages);
    }
}

static void all_errors_of_a_plan_are_reported(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan;
    read_text(cx,
              "{\"model\": \"x\", \"experts\": {\"ep\": 0}, \"sharding\": {\"zero\": 9}, "
              "\"tensor\": {\"asink\": true}}",
              &plan);
    ASSERT_INT(cx->num_errors, 3);
}

static void a_missing_file_is_an_io_error(void **state)
{
    (void)state;
    ms_plan plan;
    ASSERT_INT(ms_plan_load(test_cx(), "/no/such/plan.json", &plan), MS_EIO);
}

static void example_plans_are_legal(void **state)
{
    (void)state;
    const char *const paths[] = {MS_SOURCE_DIR "/configs/plans/llama-3.1-70b-512.json",
                                 MS_SOURCE_DIR "/configs/plans/deepseek-v3-2048.json"};
    for (size_t i = 0; i < 2; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan;
        ASSERT_OK(ms_plan_load(cx, paths[i], &plan), cx);
        const ms_model *model;
        ASSERT_OK(ms_model_load(cx, plan.model, &model), cx);
        ASSERT_OK(ms_plan_check(cx, &plan, model, MS_NOWHERE), cx);
        read_back(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minimal_plan_takes_the_defaults),
        cmocka_unit_test(zero_and_resharding_follow_from_the_axes),
        cmocka_unit_test(without_gpus_the_mesh_counts_them),
        cmocka_unit_test(a_saved_plan_reads_back_as_the_same_plan),
        cmocka_unit_test(equality_sees_every_choice),
        cmocka_unit_test(words_may_be_those_of_other_tools),
        cmocka_unit_test(bad_plans_are_errors_at_their_place),
        cmocka_unit_test(all_errors_of_a_plan_are_reported),
        cmocka_unit_test(a_missing_file_is_an_io_error),
        cmocka_unit_test(example_plans_are_legal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
