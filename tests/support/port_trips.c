#include "tests/support/port_trips.h"

#include "tests/frameworks/frameworks.h"
#include "tests/test.h"

static const ms_model *model_named(const char *name)
{
    ms_ctx *cx = test_cx();
    const ms_model *model;
    ASSERT_OK(ms_model_load(cx, name, &model), cx);
    return model;
}

/* The stack's own split stands as a list of layers where the format needs one. */
static void state_layers(ms_arena *arena, const ms_port_format *format,
                         const ms_model *model, ms_plan *plan)
{
    long stages = plan->size[MS_PP] * plan->virtual_stages, layers = model->num_layers;
    if (!ms_port_needs_layers(format, plan, model))
        return;
    long *list = MS_NEW_ARRAY(arena, stages, long);
    for (long i = 0; i < stages; i++)
        list[i] = layers / stages + (i < layers % stages);
    plan->num_stage_layers = stages;
    plan->layers_per_stage = list;
}

/* ---- choices that a format carries ---- */

/* Choices without effect take their defaults; so do values that stand for the default. */
static void make_canonical(ms_plan *plan)
{
    static const unsigned char listed[] = {MS_PP, MS_DP_REPLICATE, MS_DP_SHARD, MS_CP,
                                           MS_TP};
    static const unsigned char mapped[] = {MS_DP_REPLICATE, MS_DP_SHARD, MS_PP, MS_CP,
                                           MS_TP};
    int place[MS_NUM_PLAN_AXES];
    for (ms_choice i = MS_CHOOSE_SCHEDULE; i < MS_NUM_CHOICES; i++) {
        ms_choice_kind kind = ms_plan_fields[i].kind;
        if (kind != MS_CHOICE_LIST && kind != MS_CHOICE_TEXT && !ms_plan_matters(plan, i))
            ms_plan_reset(plan, i);
    }
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        place[plan->order[i]] = i;
    bool outer =
        (plan->size[MS_DP_SHARD] > 1 && place[MS_DP_SHARD] < place[MS_PP]) ||
        (plan->size[MS_DP_REPLICATE] > 1 && place[MS_DP_REPLICATE] < place[MS_PP]);
    memcpy(plan->order, outer && plan->size[MS_PP] > 1 ? mapped : listed, sizeof listed);
    if (plan->size[MS_PP] == 1) {
        plan->num_stage_layers = 0;
        plan->layers_per_stage = NULL;
        plan->virtual_stages = 1;
        plan->microbatch_group = 0;
    }
}

static void assert_same(const ms_plan *want, const ms_plan *got, const char *text)
{
    ms_arena *arena = test_cx()->arena;
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++) {
        if (i == MS_CHOOSE_MODEL || ms_plan_same(want, got, i))
            continue;
        print_message("%s\n", text);
        fail_msg("%s: exported %s, imported %s", ms_plan_fields[i].name,
                 ms_plan_value_text(arena, want, i), ms_plan_value_text(arena, got, i));
    }
}

/* ---- round trips ---- */

port_trip port_trip_open(const char *format, const char *stack,
                         void (*canonical)(ms_plan *))
{
    ms_ctx *cx = test_cx();
    port_trip t = {.stack_name = stack, .make_canonical = canonical};
    ASSERT_OK(ms_port_format_find(cx, format, &t.format), cx);
    ASSERT_OK(ms_stack_load(cx, stack, &t.stack), cx);
    ASSERT_OK(ms_rule_set_load(cx, t.stack, &t.rules), cx);
    return t;
}

static char *text_of(ms_ctx *cx, const port_trip *t, const ms_plan *plan,
                     const ms_port_exported *exported, size_t *length)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, length);
    assert_non_null(file);
    ms_port_export_options options = {.launcher = MS_PORT_TORCHRUN, .gpus_per_node = 1};
    ms_port_write(file, cx->arena, t->format, plan, exported, &options);
    fclose(file);
    return text;
}

static void import_back(const port_trip *t, const ms_plan *plan, const ms_model *model,
                        const char *text, size_t length)
{
    ms_ctx *cx = test_cx();
    ms_port_import_options options = {.name = "exported",
                                      .model = plan->model,
                                      .stack = t->stack_name,
                                      .gpus = plan->gpus,
                                      .sequence_length = plan->sequence_length};
    ms_port_imported back;
    ms_status status = ms_port_import(cx, t->format, text, length, &options, &back);
    if (status != MS_OK)
        ms_diag_print(cx, stderr);
    if (status != MS_OK)
        fail_msg("%s", text);
    const ms_model *found;
    ASSERT_OK(ms_port_find_model(cx, t->format, &options, &back, &found), cx);
    ASSERT_INT(ms_plan_refusal(&back.plan, model), MS_LEGAL);
    if (ms_check_framework(t->stack_name, &back.plan, model) != NULL)
        fail_msg("%s: %s\n%s", ms_check_framework(t->stack_name, &back.plan, model),
                 ms_plan_text(cx->arena, &back.plan), text);
    ms_plan want = *plan, got = back.plan;
    want.cluster = got.cluster;
    make_canonical(&want);
    make_canonical(&got);
    t->make_canonical(&want);
    t->make_canonical(&got);
    assert_same(&want, &got, text);
}

static bool obeys(const port_trip *t, const ms_plan *plan, const ms_model *model)
{
    ms_facts facts = ms_facts_of(plan, model, t->stack);
    return ms_plan_refusal(plan, model) == MS_LEGAL &&
           ms_check_framework(t->stack_name, plan, model) == NULL &&
           ms_rule_broken(&t->rules, &facts, MS_ALL_VARIABLES, MS_ALL_VARIABLES) == NULL;
}

/* A plan with further choices, all of which the framework takes. */
static ms_plan draw_plan(const port_trip *t, ms_rng *rng, ms_ctx *cx,
                         const ms_model *model)
{
    for (;;) {
        ms_plan plan =
            ms_random_framework_plan(rng, cx->arena, t->stack_name, model, true);
        plan.stack = t->stack_name;
        state_layers(cx->arena, t->format, model, &plan);
        ms_plan more = plan;
        t->draw_more(rng, model, strchr(t->stack_name, '@') != NULL, &more);
        if (obeys(t, &more, model))
            return more;
    }
}

void port_trips_make(const port_trip *t, int num_plans)
{
    ms_rng rng = ms_rng_seed(41);
    int num_more = 0;
    for (int i = 0; i < num_plans; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = model_named(t->models[i % PORT_TRIP_MODELS]);
        ms_plan plan = draw_plan(t, &rng, cx, model);
        ms_port_exported exported;
        long per_node = t->per_node == NULL ? 1 : t->per_node(&rng, &plan);
        ms_port_subject subject = {&plan, model, t->stack, &t->rules, per_node};
        ASSERT_OK(ms_port_export(cx, t->format, &subject, false, &exported), cx);
        size_t length;
        char *text = text_of(cx, t, &plan, &exported, &length);
        import_back(t, &plan, model, text, length);
        num_more += plan.cuda_graphs != MS_GRAPHS_NONE || plan.bucket_bytes > 0.0 ||
                    plan.comm_dtype == MS_STORE_BF16 ||
                    plan.grad_dtype == MS_STORE_BF16 ||
                    plan.recompute == MS_RECOMPUTE_FULL ||
                    plan.offload_optimizer != MS_HOST_NO_OPTIMIZER;
        free(text);
    }
    assert_true(num_more > num_plans / 20);
}
