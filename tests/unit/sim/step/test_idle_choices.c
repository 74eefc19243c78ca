/* Choices without effect: what is said of them, and that predictions do not see them. */
#include "sim/step/idle_choices.h"
#include "sim/step/prediction.h"

#include "tests/test.h"

static ms_plan plan_of(ms_ctx *cx, const char *json)
{
    ms_jdoc *doc;
    ms_jval root;
    ms_plan plan;
    ASSERT_OK(ms_json_parse(cx, "test", json, strlen(json), &doc, &root), cx);
    ASSERT_OK(ms_plan_read(cx, root, &plan), cx);
    ms_json_close(doc);
    return plan;
}

/* Predicts a plan file; *text becomes what is said of the choice, MS_NUM_CHOICES: of none. */
static ms_prediction predict(const char *json, ms_choice choice, const char **text)
{
    ms_ctx *cx = test_cx();
    ms_workload *workload = NULL;
    ms_prediction prediction;
    ms_plan plan = plan_of(cx, json);
    ASSERT_OK(ms_workload_open(cx, &plan, &workload), cx);
    ASSERT_OK(ms_plan_check(cx, &plan, workload->model, MS_NOWHERE), cx);
    if (choice < MS_NUM_CHOICES)
        *text = ms_idle_choice_text(cx->arena, workload, &plan, choice, false);
    ASSERT_OK(ms_predict(cx, workload, &plan, &prediction), cx);
    ms_workload_close(workload);
    return prediction;
}

#define JOB "{\"model\": \"llama-3.2-1b\", \"batch\": {\"global_batch\": 64}, \"gpus\": "
#define MIXTURE                                                                          \
    "{\"model\": \"mixtral-8x7b\", \"batch\": {\"global_batch\": 64}, \"gpus\": "
#define ZERO_3   ", \"sharding\": {\"zero\": 3}"
#define ZERO_0   ", \"sharding\": {\"zero\": 0}"
#define ON_TP    ", \"mesh\": [{\"axis\": \"tp\", \"size\": 8}]"
#define PACKED   ", \"data\": {\"packing\": \"packed\", \"length_mean\": "
#define TO_SEQ   ", \"data\": {\"packing\": \"packed\", \"length_mean\": 8192}}"
#define EXPERTS8 ", \"experts\": {\"ep\": 8}"

static const struct {
    ms_choice choice;
    const char *stated, *as; /* plans with the choice, and without it or as it acts */
    const char *text;
} cases[] = {
    {MS_CHOOSE_UNIT_LAYERS, JOB "8" ZERO_3 ", \"buckets\": {\"unit_layers\": 1000}}",
     JOB "8" ZERO_3 ", \"buckets\": {\"unit_layers\": 16}}",
     "--fsdp-unit-layers 1000 acts as 16: llama-3.2-1b has no more equal layers in a "
     "row"},
    {MS_CHOOSE_UNIT_LAYERS, JOB "8" ON_TP ", \"buckets\": {\"unit_layers\": 2}}",
     JOB "8" ON_TP "}",
     "--fsdp-unit-layers 2 has no effect: dp_replicate x dp_shard x cp is 1, no rank has a "
     "replica or a shard of another's parameters"},
    {MS_CHOOSE_BUCKET_BYTES, JOB "8" ZERO_3 ", \"buckets\": {\"bytes\": 1}}",
     JOB "8" ZERO_3 ", \"buckets\": {\"bytes\": 1000}}",
     "--bucket-size 1 B acts as a collective for each matrix: those of a layer have 17.4 "
     "MB, mean"},
    {MS_CHOOSE_COMM_DTYPE, JOB "1, \"precision\": {\"comm\": \"bf16\"}}", JOB "1}",
     "--comm-dtype bf16 has no effect: one GPU sends nothing"},
    {MS_CHOOSE_GATHER_BITS, JOB "8" ZERO_0 ", \"quantized\": {\"gathers\": \"8\"}}",
     JOB "8" ZERO_0 "}",
     "--quantized-gathers 8 has no effect: no parameters are sharded, so none are "
     "gathered"},
    {MS_CHOOSE_RESHARD_RANKS, JOB "8" ZERO_3 ", \"shards\": {\"reshard_ranks\": 8}}",
     JOB "8" ZERO_3 "}", "--reshard-ranks 8 has no effect: 8 ranks shard the parameters"},
    {MS_CHOOSE_EXPERT_CAPACITY, JOB "8, \"moe\": {\"capacity\": 2}}", JOB "8}",
     "--expert-capacity 2 has no effect: llama-3.2-1b has no experts"},
    {MS_CHOOSE_EXPERT_CAPACITY,
     MIXTURE "8" EXPERTS8 ", \"moe\": {\"imbalance\": 1.5, \"capacity\": 2}}",
     MIXTURE "8" EXPERTS8 ", \"moe\": {\"imbalance\": 1.5}}",
     "--expert-capacity 2 is predicted to drop nothing: the fullest experts have 1.5 x the "
     "mean"},
    {MS_CHOOSE_DEVICE_ORDER, JOB "8, \"devices\": {\"order\": \"reversed\"}}", JOB "8}",
     "--device-order reversed has no effect: cluster hgx-h100 has devices of one kind"},
    {MS_CHOOSE_SLOW_NODES, JOB "8, \"devices\": {\"slow_nodes\": \"1-2:0.5\"}}", JOB "8}",
     "--slow-nodes 1-2:0.5 has no effect: the job has none of these nodes"},
    {MS_CHOOSE_SLOW_NODES, JOB "8, \"devices\": {\"slow_nodes\": \"0-2:0.5\"}}",
     JOB "8, \"devices\": {\"slow_nodes\": \"0:0.5\"}}",
     "--slow-nodes 0-2:0.5 slows 1 of these 3 nodes: the others are not in the job"},
    {MS_CHOOSE_RANKS_PER_DOMAIN, JOB "4, \"ranks_per_domain\": 4}", JOB "4}",
     "--ranks-per-domain 4 has no effect: the job is in one domain"},
    {MS_CHOOSE_LENGTH_MEAN, JOB "8" PACKED "20000}}", JOB "8" TO_SEQ,
     "--length-mean 20000 acts as 8192: sequences are cut to --seq 8192"},
};

static void what_is_said_is_what_predictions_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = NULL;
        ms_prediction stated = predict(cases[i].stated, cases[i].choice, &text);
        ms_prediction as = predict(cases[i].as, MS_NUM_CHOICES, NULL);
        ASSERT_TEXT(text, cases[i].text);
        ASSERT_NEAR(stated.step_s, as.step_s, 0);
        ASSERT_NEAR(stated.peak_bytes, as.peak_bytes, 0);
    }
}

static void nothing_is_said_of_choices_with_effect(void **state)
{
    (void)state;
    const struct {
        ms_choice choice;
        const char *stated, *without;
    } effective[] = {
        {MS_CHOOSE_UNIT_LAYERS, JOB "8" ZERO_3 ", \"buckets\": {\"unit_layers\": 16}}",
         JOB "8" ZERO_3 "}"},
        {MS_CHOOSE_BUCKET_BYTES, JOB "8" ZERO_3 ", \"buckets\": {\"bytes\": 2e7}}",
         JOB "8" ZERO_3 "}"},
        {MS_CHOOSE_RESHARD_RANKS, JOB "16" ZERO_3 ", \"shards\": {\"reshard_ranks\": 8}}",
         JOB "16" ZERO_3 "}"},
        {MS_CHOOSE_EXPERT_CAPACITY,
         MIXTURE "8" EXPERTS8 ", \"moe\": {\"imbalance\": 1.5, \"capacity\": 1.2}}",
         MIXTURE "8" EXPERTS8 ", \"moe\": {\"imbalance\": 1.5}}"},
        {MS_CHOOSE_SLOW_NODES, JOB "8, \"devices\": {\"slow_nodes\": \"0:0.5\"}}",
         JOB "8}"},
        {MS_CHOOSE_LENGTH_MEAN, JOB "8" PACKED "2000}}", JOB "8" TO_SEQ},
    };
    for (size_t i = 0; i < sizeof effective / sizeof *effective; i++) {
        const char *text = NULL;
        ms_prediction stated = predict(effective[i].stated, effective[i].choice, &text);
        ms_prediction without = predict(effective[i].without, MS_NUM_CHOICES, NULL);
        assert_null(text);
        assert_true(stated.step_s != without.step_s);
    }
}

/* A schedule without a pipeline only orders the micro-batches of one rank. */
static void schedules_need_a_pipeline(void **state)
{
    (void)state;
    ms_prediction plain = predict(JOB "8}", MS_NUM_CHOICES, NULL);
    ms_prediction gpipe =
        predict(JOB "8, \"pipeline\": {\"schedule\": \"gpipe\"}}", MS_NUM_CHOICES, NULL);
    ASSERT_NEAR(gpipe.step_s, plain.step_s, 0);
    ASSERT_NEAR(gpipe.peak_bytes, plain.peak_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_is_what_predictions_do),
        cmocka_unit_test(nothing_is_said_of_choices_with_effect),
        cmocka_unit_test(schedules_need_a_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
