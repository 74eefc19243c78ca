/* Tests of the features of models: what is executed, refused by name, and documented. */
#include "exec/runner/model_features.h"

#include "exec/backends/backends.h"
#include "tests/support/small_models.h"
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

static const ms_backend gpu = {.name = "cuda", .has_values = true, .on_gpu = true};

/* Each model has one feature more than small Llama, by that name and no other. */
static void a_feature_is_found_by_its_name(void **state)
{
    (void)state;
    ms_model plain = ms_small_llama(), m[23];
    for (int i = 0; i < 23; i++)
        m[i] = plain;
    m[0].norm_plus_one = true;
    m[1].embedding_scale = 4;
    m[2].query_pre_attn_scalar = 9;
    m[3].attention_softcap = 50;
    m[4].logit_softcap = 30;
    m[5].rotary_dim = 2;
    m[6].rotary_interleaved = true;
    m[7].rotary_local_base = 100;
    m[8].rotary_scaling.kind = MS_ROTARY_SCALING_LINEAR;
    m[9].rotary_scaling.kind = MS_ROTARY_SCALING_LLAMA3;
    m[10].rotary_scaling.kind = MS_ROTARY_SCALING_YARN;
    m[11].moe.num_groups = 2;
    m[12].moe.routed_scaling = 2.5;
    m[13].num_nextn_predict_layers = 1;
    m[14].dropout = true;
    m[14].hidden_dropout = 0.1;
    m[15].moe.expert_bias = true;
    m[16].position_offset = 2;
    m[17].no_pre_norms = true;
    m[18].qk_norm_whole = true;
    m[19].moe.logit_bias = true;
    m[20].swiglu_limit = 7;
    m[21].attention_sinks = true;
    m[22].logit_scale = 0.5;
    static const char *const names[23] = {"norms that multiply by 1 + weight",
                                          "scaled token embeddings",
                                          "query_pre_attn_scalar",
                                          "soft cap of attention scores",
                                          "soft cap of logits",
                                          "partial rotary positions",
                                          "interleaved rotary positions",
                                          "rotary base of layers with a window",
                                          "rotary scaling: linear",
                                          "rotary scaling: llama3",
                                          "rotary scaling: yarn",
                                          "group-limited routing",
                                          "scaled weights of experts",
                                          "multi-token prediction",
                                          "dropout",
                                          "biases of experts",
                                          "offset of learned positions",
                                          "no norms before attention and MLP",
                                          "norms over all queries and all keys",
                                          "bias of the router's logits",
                                          "clamped SwiGLU",
                                          "attention sinks",
                                          "factor of logits"};
    for (int i = 0; i < 23; i++)
        for (const ms_model_feature *f = ms_model_features; f->name != NULL; f++)
            ASSERT_INT(f->has(&m[i]), f->has(&plain) || strcmp(f->name, names[i]) == 0);
}

static void what_is_not_executed_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const refused[2][2] = {
        {"dropout without its rates", "relative positions"},
        {"dropout", "biases of experts"}};
    for (int way = 0; way < 2; way++) {
        const ms_backend *backend = way == 0 ? &ms_backend_loop : &gpu;
        ms_model model = ms_small_llama();
        ASSERT_OK(ms_model_check_features(test_cx(), &model, backend), test_cx());
        model.dropout = model.moe.expert_bias = true;
        model.not_executed = (const char *const[]){"relative positions", NULL};
        ms_ctx *cx = test_cx();
        ASSERT_INT(ms_model_check_features(cx, &model, backend), MS_EINPUT);
        const char *message = cx->first->message;
        assert_non_null(strstr(message, backend->name));
        assert_non_null(strstr(message, "relative positions"));
        for (int i = 0; i < 2; i++)
            assert_non_null(strstr(message, refused[way][i]));
        assert_null(cx->first->next);
    }
    ms_model model = ms_small_llama();
    model.dropout = true;
    ASSERT_OK(ms_model_check_features(test_cx(), &model, &ms_backend_null), test_cx());
}

/* A feature that a GPU executes has a reference on CPUs. */
static void gpus_execute_what_cpus_do(void **state)
{
    (void)state;
    for (const ms_model_feature *f = ms_model_features; f->name != NULL; f++)
        assert_true(f->on_cpu || !f->on_gpu);
}

static void the_page_has_all_features(void **state)
{
    (void)state;
    static char page[1 << 16];
    FILE *file = fopen("docs/models.md", "r");
    assert_non_null(file);
    size_t length = fread(page, 1, sizeof page - 1, file);
    fclose(file);
    page[length] = '\0';
    int num_features = 0, num_rows = -2; /* a table begins with two lines of its own */
    for (const ms_model_feature *f = ms_model_features; f->name != NULL; f++) {
        char row[256];
        (void)snprintf(row, sizeof row, "\n| %s | %s | %s | %s |\n", f->name,
                       f->on_cpu ? "executed" : "refused",
                       f->on_gpu ? "executed" : "refused",
                       ms_feature_price_words[f->price]);
        if (strstr(page, row) == NULL)
            fail_msg("docs/models.md lacks this row:%s", row);
        num_features++;
    }
    const char *end = strstr(page, "<!-- parity"), *choices = strstr(page, "## Choices");
    assert_non_null(end);
    assert_non_null(choices);
    end = choices < end ? choices : end;
    for (const char *at = page; (at = strstr(at, "\n|")) != NULL && at < end; at++)
        num_rows++;
    ASSERT_INT(num_rows, num_features);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_feature_is_found_by_its_name),
        cmocka_unit_test(what_is_not_executed_is_refused_by_name),
        cmocka_unit_test(gpus_execute_what_cpus_do),
        cmocka_unit_test(the_page_has_all_features),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
