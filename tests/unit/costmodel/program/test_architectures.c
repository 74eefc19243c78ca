/* Layer programs of published architectures with operations of their own, on any mesh:
 * biases of experts and attention sinks (GPT-OSS), norms over all heads (OLMo 2). */
#include "costmodel/program/program_check.h"

#include "tests/test.h"

#include <string.h>

static const ms_model *load(const char *name)
{
    ms_ctx *cx = test_cx();
    const ms_model *model = NULL;
    ASSERT_OK(ms_model_load(cx, name, &model), cx);
    return model;
}

static const ms_program *layer(const ms_model *model, ms_program_key key)
{
    key.block = MS_BLOCK_LAYER;
    key.microbatch = 1;
    const ms_program *program =
        ms_program_make(test_cx()->arena, model, &key, 64, 4, MS_BF16);
    ms_check_finding finding;
    if (!ms_program_check(program, &finding))
        fail_msg("%s, tp %d cp %d ep %d etp %d: %s", model->name, key.tp, key.cp, key.ep,
                 key.etp, finding.text);
    return program;
}

static void programs_are_sound_on_any_mesh(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt-oss-20b", "olmo-2-7b", "command-r-35b"};
    for (int m = 0; m < 3; m++) {
        const ms_model *model = load(names[m]);
        bool moe = model->moe.num_experts > 0;
        for (int i = 0; i < 48; i++) {
            layer(model,
                  (ms_program_key){.tp = i % 2 == 0 ? 1 : 2,
                                   .cp = i / 2 % 2 == 0 ? 1 : 2,
                                   .ep = moe && i / 4 % 2 == 1 ? 4 : 1,
                                   .etp = moe && i % 2 == 1 && i / 8 % 2 == 1 ? 2 : 1,
                                   .sequence_parallel = i / 16 % 2 == 0,
                                   .attention_fused = i % 3 != 0,
                                   .kind = (unsigned char)(i % model->num_kinds),
                                   .recompute =
                                       i % 5 == 0 ? MS_RECOMPUTE_FULL : MS_RECOMPUTE_NONE,
                                   .optimizer = i % 7 == 0,
                                   .cp_method = (unsigned char)(i % MS_NUM_CP_METHODS)});
        }
    }
}

static const ms_node *find(const ms_program *program, ms_op op)
{
    for (int n = 0; n < program->num_nodes; n++)
        if (program->nodes[n].op == op)
            return &program->nodes[n];
    return NULL;
}

/* Norms over all heads need them on one rank; each rank's attention has its own heads. */
static void heads_are_split_again_after_their_norm(void **state)
{
    (void)state;
    ms_program_key key = {.tp = 2, .cp = 1, .ep = 1, .etp = 1, .attention_fused = true};
    const ms_program *program = layer(load("olmo-2-7b"), key);
    const ms_node *attention = find(program, MS_OP_ATTENTION);
    assert_non_null(attention);
    for (int i = 0; i < 3; i++)
        ASSERT_INT(program->tensors[attention->in[i]].at[2].kind, MS_SHARD);
}

/* Sinks and biases of experts belong to the ranks with their heads and experts. */
static void each_rank_has_its_sinks_and_biases(void **state)
{
    (void)state;
    ms_program_key key = {.tp = 2, .cp = 1, .ep = 4, .etp = 1, .attention_fused = true};
    const ms_program *program = layer(load("gpt-oss-20b"), key);
    int found = 0;
    for (int t = 0; t < program->num_tensors; t++) {
        const ms_tensor *tensor = &program->tensors[t];
        if (tensor->role != MS_ROLE_WEIGHT)
            continue;
        double want = strcmp(tensor->name, "attention.sinks") == 0     ? 64 / 2
                      : strcmp(tensor->name, "experts.up_bias") == 0   ? 32 / 4 * 2880
                      : strcmp(tensor->name, "experts.down_bias") == 0 ? 32 / 4 * 2880
                                                                       : 0;
        found += want > 0;
        if (want > 0)
            ASSERT_NEAR(ms_tensor_local_elements(program, t), want, 1e-12);
    }
    ASSERT_INT(found, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_are_sound_on_any_mesh),
        cmocka_unit_test(heads_are_split_again_after_their_norm),
        cmocka_unit_test(each_rank_has_its_sinks_and_biases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
