/* Multi-token prediction (MTP): what an MTP module behind the model adds to the head's
 * program, on any mesh, and which stacks train it. */
#include "costmodel/model/model.h"
#include "costmodel/program/program_check.h"
#include "sim/step/traffic.h"

#include "tests/unit/planned_case.h"

static const ms_model *load(const char *name)
{
    ms_ctx *cx = test_cx();
    const ms_model *model = NULL;
    ASSERT_OK(ms_model_load(cx, name, &model), cx);
    return model;
}

/* The program of the head, with 64 tokens a sequence. */
static const ms_program *head(const ms_model *model, ms_program_key key)
{
    key.block = MS_BLOCK_HEAD;
    key.kind = model->kind_of_layer[model->num_layers - 1];
    key.microbatch = 1;
    key.attention_fused = true;
    const ms_program *program =
        ms_program_make(test_cx()->arena, model, &key, 64, 4, MS_BF16);
    ms_check_finding finding;
    if (!ms_program_check(program, &finding))
        fail_msg("tp %d cp %d: %s", key.tp, key.cp, finding.text);
    return program;
}

static double forward_flop(const ms_program *program)
{
    double flop = 0.0;
    for (int n = 0; n < program->num_forward_nodes; n++)
        if (program->nodes[n].op != MS_OP_ATTENTION)
            flop += ms_node_flop(program, &program->nodes[n]);
    return flop;
}

static double params(const ms_program *program)
{
    double count = 0.0;
    for (int t = 0; t < program->num_tensors; t++)
        if (program->tensors[t].role == MS_ROLE_WEIGHT && !program->tensors[t].shared)
            count += ms_tensor_local_elements(program, t);
    return count;
}

static void programs_are_sound_on_any_mesh(void **state)
{
    (void)state;
    const ms_model *model = load("deepseek-v3");
    for (int i = 0; i < 16; i++) {
        head(model,
             (ms_program_key){.mtp = 1,
                              .tp = i % 2 == 0 ? 1 : 2,
                              .cp = i / 2 % 2 == 0 ? 1 : 2,
                              .ep = 4,
                              .etp = 1,
                              .loss_parallel = i / 4 % 2 == 0,
                              .sequence_parallel = i / 8 % 2 == 0,
                              .optimizer = i % 3 == 0,
                              .cp_method = i % 5 < 2 ? MS_CP_RING : MS_CP_ALL_GATHER});
    }
}

/* Weights by which an MTP module of DeepSeek-V3 (hidden size h = 7168) multiplies each
 * token: a projection 2 h^2; a layer with latent attention (187,105,280), a router (256
 * h) and the 8 + 1 experts of the token (3 h 2048 each); and the head 129280 h. */
static void a_module_adds_a_projection_a_layer_and_a_head(void **state)
{
    (void)state;
    const ms_model *model = load("deepseek-v3");
    ms_program_key key = {.tp = 1, .cp = 1, .ep = 1, .etp = 1, .loss_parallel = true};
    const ms_program *without = head(model, key);
    key.mtp = 1;
    const ms_program *with = head(model, key);
    double h = 7168.0,
           latent = h * 1536 + 1536 * 24576 + h * 576 + 512 * 32768 + 16384 * h;
    double weights = 2.0 * h * h + latent + 9.0 * 3 * h * 2048 + 256 * h + 129280 * h;
    double tokens = 4.0 * 64 / 4; /* tokens of one rank */
    ASSERT_NEAR(forward_flop(with) - forward_flop(without), 2.0 * tokens * weights,
                1e-12);
    /* The module also holds the 256 - 8 experts that a token does not visit, 256 biases
     * of the router, and norms: 5 h, and 1536 + 512 of the latents. Its copy of the
     * embedding is as large as the head that it shares, which `weights` counts. */
    double held = weights + 248.0 * 3 * h * 2048 + 256 + 5 * h + 1536 + 512;
    ASSERT_NEAR(params(with) - params(without), held, 1e-12);
}

/* Model FLOP per token of DeepSeek-V3 as NVIDIA's tables print them, with 4096 tokens
 * a sequence and causal attention: 260.0 to 260.4 GFLOP by Megatron-Bridge, which
 * trains the MTP module, 249.5 to 249.7 by NeMo AutoModel, which does not. */
static void published_flop_tell_who_trains_it(void **state)
{
    (void)state;
    const ms_model *model = load("deepseek-v3");
    double alone = ms_model_flop_per_token(model, 4096.0).causal_flop;
    ms_program_key key = {.tp = 1, .cp = 1, .ep = 1, .etp = 1, .loss_parallel = true};
    double base = forward_flop(head(model, key));
    key.mtp = 1;
    double module = 3.0 * (forward_flop(head(model, key)) - base) / 64.0 +
                    3.0 * 128 * (192 + 128) * 4096;
    ASSERT_NEAR(alone / 1e9, 249.6, 0.005);
    ASSERT_NEAR((alone + module) / 1e9, 260.2, 0.005);
}

static double head_seconds(const char *stack)
{
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_plan_default(64);
    plan.model = "deepseek-v3";
    plan.stack = stack;
    plan.size[MS_DP_SHARD] = 16; /* a plan with every kind of traffic */
    plan.size[MS_TP] = plan.size[MS_CP] = 2;
    plan.sequence_parallel = true;
    plan.ep = 64;
    plan.sequence_length = 4096;
    plan.global_batch = 64;
    const ms_planned *planned = open_planned(cx, &plan);
    double seconds = planned->bills->head.compute_s[MS_BILL_FORWARD];
    double expert_params = planned->bills->head.expert_params;
    ASSERT_NEAR(expert_params,
                planned->workload->stack->trains_mtp ? 4.0 * 3 * 7168 * 2048 : 0.0,
                1e-12);
    ms_workload_close(planned->workload);
    return seconds;
}

static void stacks_train_it_or_do_not(void **state)
{
    (void)state;
    assert_true(head_seconds("megatron-bridge") > 1.5 * head_seconds("automodel"));
}

/* Parameters of the head (with its MTP module) on the rank that has the last stage. */
static double head_params_of_last(int pp)
{
    ms_ctx *cx = test_cx();
    ms_plan plan = ms_plan_default(64);
    plan.model = "deepseek-v3";
    plan.stack = "megatron-bridge";
    plan.size[MS_PP] = pp;
    plan.size[MS_DP_SHARD] = 64 / pp;
    plan.ep = 32;
    plan.sequence_length = 4096;
    plan.global_batch = 64;
    const ms_planned *planned = open_planned(cx, &plan);
    const ms_block_cost *layers = &planned->blocks.layer[1][MS_RECOMPUTE_NONE];
    const ms_split *split = planned->pipeline.split;
    long num_layers = pp > 1 ? split->layers[pp - 1] : 58;
    double others = (double)num_layers * layers->dense_params;
    if (pp == 1)
        others += 3.0 * planned->blocks.layer[0][MS_RECOMPUTE_NONE].dense_params +
                  planned->blocks.embed.dense_params;
    double head = ms_planned_load(cx, planned, pp - 1).dense_params - others;
    ms_workload_close(planned->workload);
    return head;
}

/* The MTP module shares the embedding (129280 x 7168) of the first stage on the same
 * rank, and needs a copy when the last stage is on another rank. */
static void one_stage_holds_one_embedding(void **state)
{
    (void)state;
    ASSERT_NEAR(head_params_of_last(2) - head_params_of_last(1), 129280.0 * 7168, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_are_sound_on_any_mesh),
        cmocka_unit_test(a_module_adds_a_projection_a_layer_and_a_head),
        cmocka_unit_test(published_flop_tell_who_trains_it),
        cmocka_unit_test(stacks_train_it_or_do_not),
        cmocka_unit_test(one_stage_holds_one_embedding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
