/* Tests against PyTorch's results for small models of published architectures
 * (tests/support/torch_features.h): gradients of the first step and losses of five steps,
 * on one rank and on several meshes. UPDATE=1 rewrites their table in docs/models.md. */
#include "tests/support/torch_features.h"
#include "tests/test.h"

static const ms_feature_mesh meshes[] = {
    {"tp 2, dp 2, ZeRO-3", 2, 2, 1, 1, 1, 3, false, MS_CP_ALL_GATHER, "meshsim"},
    {"cp 2, pp 2", 1, 1, 2, 2, 1, 0, false, MS_CP_ALL_GATHER, "meshsim"},
    {"ring cp 4", 1, 1, 4, 1, 1, 0, false, MS_CP_RING, "meshsim"},
    {"ulysses cp 2", 1, 1, 2, 1, 1, 0, false, MS_CP_ULYSSES, "meshsim"},
    {"scores kept", 2, 2, 1, 1, 1, 0, false, MS_CP_ALL_GATHER, "megatron-2022"},
    {"dp 4, recomputed", 4, 1, 1, 1, 1, 1, true, MS_CP_ALL_GATHER, "meshsim"},
    {"tp 4, dp 2, ZeRO-2", 2, 4, 1, 1, 1, 2, false, MS_CP_ALL_GATHER, "meshsim"},
    {"dp 2, tp 2, ep 2", 2, 2, 1, 1, 2, 0, false, MS_CP_ALL_GATHER, "meshsim"}};

/* Differences of one model on one rank and, the largest, on all meshes. */
typedef struct parity {
    ms_feature_difference fp64, fp32, meshes;
    int num_meshes;
} parity;
#define MAX_MODELS 64
static parity found[MAX_MODELS];

static void losses_and_gradients_are_those_of_pytorch(void **state)
{
    (void)state;
    for (int i = 0; ms_feature_models[i] != NULL; i++) {
        assert_true(i < MAX_MODELS);
        found[i].fp64 = ms_feature_compare(ms_feature_models[i], &ms_feature_one_rank,
                                           MS_REAL_FP64, &ms_backend_loop);
        found[i].fp32 = ms_feature_compare(ms_feature_models[i], &ms_feature_one_rank,
                                           MS_REAL_FP32, &ms_backend_loop);
    }
}

static void so_are_those_of_all_meshes(void **state)
{
    (void)state;
    for (int i = 0; ms_feature_models[i] != NULL; i++) {
        parity *p = &found[i];
        for (size_t m = 0; m < sizeof meshes / sizeof *meshes; m++) {
            ms_feature_difference off = ms_feature_compare(
                ms_feature_models[i], &meshes[m], MS_REAL_FP64, &ms_backend_loop);
            p->meshes.loss = fmax(p->meshes.loss, off.loss);
            p->meshes.gradient = fmax(p->meshes.gradient, off.gradient);
            p->num_meshes += off.gradient > 0.0;
        }
        assert_true(p->num_meshes >= 3);
    }
}

/* ---- the table of docs/models.md ---- */

#define PAGE  "docs/models.md"
#define BEGIN "<!-- parity: make check T=torch_features UPDATE=1 -->\n"
#define END   "<!-- end of parity -->"

static const char *text_of_page(ms_ctx *cx)
{
    char *text = ms_arena_alloc(cx->arena, 1 << 16);
    FILE *file = fopen(PAGE, "r");
    assert_non_null(file);
    text[fread(text, 1, (1 << 16) - 1, file)] = '\0';
    (void)fclose(file);
    return text;
}

static const char *name_of(int model)
{
    return strchr(ms_feature_models[model], '/') + 1;
}

static void write_table(FILE *out)
{
    (void)fprintf(out, "| model | losses, fp64 | gradients, fp64 | losses, fp32 | "
                       "gradients, fp32 | meshes | losses, fp64 | gradients, fp64 |\n"
                       "|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; ms_feature_models[i] != NULL; i++) {
        const parity *p = &found[i];
        (void)fprintf(out, "| %s | %.0e | %.0e | %.0e | %.0e | %d | %.0e | %.0e |\n",
                      name_of(i), p->fp64.loss, p->fp64.gradient, p->fp32.loss,
                      p->fp32.gradient, p->num_meshes, p->meshes.loss,
                      p->meshes.gradient);
    }
}

/* Digits depend on the compiler, so a page is right that has all models. */
static void the_page_has_all_models(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *text = text_of_page(cx), *update = getenv("UPDATE");
    const char *begin = strstr(text, BEGIN), *end = strstr(text, END);
    assert_non_null(begin);
    assert_non_null(end);
    if (update != NULL && strcmp(update, "1") == 0) {
        FILE *out = fopen(PAGE, "w");
        assert_non_null(out);
        (void)fwrite(text, 1, (size_t)(begin - text) + strlen(BEGIN), out);
        write_table(out);
        (void)fputs(end, out);
        assert_int_equal(fclose(out), 0);
        begin = strstr(text_of_page(cx), BEGIN);
    }
    for (int i = 0; ms_feature_models[i] != NULL; i++)
        if (strstr(begin, ms_arena_printf(cx->arena, "\n| %s | ", name_of(i))) == NULL)
            fail_msg(PAGE " lacks %s: make check T=torch_features UPDATE=1", name_of(i));
}

#define MEMBER(name) offsetof(ms_model, name), sizeof((ms_model *)0)->name

/* A model without one of its features gives other losses: none is without effect. */
static void every_feature_matters(void **state)
{
    (void)state;
    static const struct {
        int model; /* index into ms_feature_models */
        size_t offset, size;
    } cases[] = {{8, MEMBER(position)},
                 {0, MEMBER(norm_plus_one)},
                 {0, MEMBER(embedding_scale)},
                 {0, MEMBER(query_pre_attn_scalar)},
                 {0, MEMBER(attention_softcap)},
                 {0, MEMBER(logit_softcap)},
                 {1, MEMBER(rotary_local_base)},
                 {1, MEMBER(rotary_scaling)},
                 {2, MEMBER(rotary_scaling)},
                 {3, MEMBER(rotary_scaling)},
                 {4, MEMBER(moe.num_groups)},
                 {4, MEMBER(moe.routed_scaling)},
                 {5, MEMBER(moe.num_groups)},
                 {5, MEMBER(rotary_interleaved)},
                 {5, MEMBER(rotary_scaling.mscale_all_dim)},
                 {5, MEMBER(moe.norm_topk)},
                 {6, MEMBER(rotary_dim)},
                 {28, MEMBER(nextn_loss_weight)},
                 {30, MEMBER(qk_norm_whole)},
                 {31, MEMBER(logit_scale)},
                 {32, MEMBER(swiglu_limit)},
                 {32, MEMBER(attention_sinks)},
                 {32, MEMBER(rotary_scaling.untruncated)},
                 {33, MEMBER(hidden_dropout)},
                 {33, MEMBER(attention_dropout)}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_feature_oracle o =
            ms_feature_oracle_load(cx, ms_feature_models[cases[i].model]);
        ms_model model = *o.model;
        memset((char *)&model + cases[i].offset, 0, cases[i].size);
        o.model = &model;
        ms_outcome got =
            ms_feature_run(cx, &o, &ms_feature_one_rank, MS_REAL_FP64, &ms_backend_loop);
        double off = ms_feature_loss_difference(&got, &o);
        if (!(off > 1e-6))
            fail_msg("%s: case %zu changes losses by %g", o.model->name, i, off);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_gradients_are_those_of_pytorch),
        cmocka_unit_test(so_are_those_of_all_meshes),
        cmocka_unit_test(the_page_has_all_models),
        cmocka_unit_test(every_feature_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
