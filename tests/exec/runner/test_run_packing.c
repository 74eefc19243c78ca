/* Packed and padded sequences executed: losses and gradients are those of the sequences
 * run apart, and the same on any ranks. */
#include "exec/params/documents.h"
#include "tests/support/run_plan.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

#define NUM_TOKENS 1024

/* Tokens of a file, the same for runs with rows of other lengths. */
static const int *file_tokens(ms_arena *arena, long vocab)
{
    int *tokens = MS_NEW_ARRAY(arena, NUM_TOKENS, int);
    ms_rng rng = ms_rng_seed(11);
    for (int i = 0; i < NUM_TOKENS; i++)
        tokens[i] = (int)ms_rng_below(&rng, (uint64_t)vocab);
    return tokens;
}

static ms_plan packed_plan(ms_packing packing, double mean_tokens,
                           double deviation_tokens)
{
    ms_plan plan = ms_run_base_plan();
    plan.packing = packing;
    plan.length_mean_tokens = mean_tokens;
    plan.length_deviation_tokens = deviation_tokens;
    return plan;
}

/* A step of a plan on `tokens`, or on synthetic ones if NULL. */
static ms_outcome run(ms_ctx *cx, const ms_model *model, const ms_plan *plan,
                      const int *tokens)
{
    ms_outcome out;
    ms_runner_options options = ms_run_options(model, plan, MS_REAL_FP64);
    ms_plan typed = *plan;
    typed.compute = MS_FP64;
    options.num_steps = tokens == NULL ? 2 : 1;
    options.tokens.from_file = tokens;
    options.tokens.num_from_file = NUM_TOKENS;
    ASSERT_INT(ms_plan_check(cx, plan, model, MS_NOWHERE), MS_OK);
    ASSERT_OK(ms_run_plan(cx, model, &typed, "generic", &ms_backend_loop, &options, &out),
              cx);
    return out;
}

/* Sums of losses and gradients, by shares. */
typedef struct total {
    double loss;
    int num;
    ms_safe_file gradients;
} total;

static void add_outcome(ms_arena *arena, total *sum, const ms_outcome *one, double share)
{
    const ms_safe_file *from = &one->gradients;
    if (sum->num++ == 0) {
        sum->gradients = *from;
        sum->gradients.tensors = MS_NEW_ARRAY(arena, from->num_tensors, ms_safe_tensor);
        for (int i = 0; i < from->num_tensors; i++) {
            sum->gradients.tensors[i] = from->tensors[i];
            sum->gradients.tensors[i].values =
                MS_NEW_ARRAY(arena, from->tensors[i].count, double);
        }
    }
    sum->loss += share * one->losses[0];
    for (int i = 0; i < from->num_tensors; i++) {
        ms_safe_tensor *to = &sum->gradients.tensors[i];
        double *values = MS_NEW_ARRAY(arena, to->count, double);
        for (long j = 0; j < to->count; j++)
            values[j] = to->values[j] + share * from->tensors[i].values[j];
        to->values = values;
    }
}

/* Runs each sequence of a packed step alone; sums losses and gradients by their tokens. */
static total run_apart(ms_ctx *cx, const ms_model *model, const ms_plan *packed,
                       const int *tokens)
{
    long length = packed->sequence_length;
    ms_lengths lengths = ms_lengths_make(cx->arena, packed->length_mean_tokens,
                                         packed->length_deviation_tokens, (double)length);
    ms_documents documents = {.packing = MS_PACKED,
                              .lengths = &lengths,
                              .seed = 5, /* that of ms_run_options */
                              .sequence_length = length,
                              .global_batch = packed->global_batch};
    int *starts = MS_NEW_ARRAY(cx->arena, length, int);
    total sum = {0};
    for (long row = 0; row < packed->global_batch; row++) {
        ms_documents_starts(&documents, 0, row, starts);
        for (long from = 0, to; from < length; from = to) {
            for (to = from; to < length && starts[to] == from;)
                to++;
            ms_plan alone = ms_run_base_plan();
            alone.sequence_length = to - from;
            alone.global_batch = alone.microbatch = 1;
            ms_outcome one = run(cx, model, &alone, tokens + row * length + from);
            add_outcome(cx->arena, &sum, &one,
                        (double)(to - from) / (double)(length * packed->global_batch));
        }
    }
    return sum;
}

static void packed_sequences_train_as_apart(void **state)
{
    (void)state;
    ms_make_model *const makes[] = {ms_small_llama, ms_small_gpt, ms_small_gemma,
                                    ms_small_falcon, ms_small_mixtral};
    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++) {
        ms_ctx *cx = test_cx();
        const ms_model *model = ms_pubrun_model(cx->arena, makes[i]);
        const int *tokens = file_tokens(cx->arena, model->vocab);
        ms_plan plan = packed_plan(MS_PACKED, 5.0, 3.0);
        plan.global_batch = plan.microbatch = 2;
        ms_outcome got = run(cx, model, &plan, tokens);
        total want = run_apart(cx, model, &plan, tokens);
        assert_true(want.num > 4);
        const char *worst = "";
        double difference = ms_run_difference(&got.gradients, &want.gradients, &worst);
        printf("model %zu: %d sequences, loss %.3e, gradients %.1e (%s)\n", i, want.num,
               got.losses[0] / want.loss - 1, difference, worst);
        ASSERT_NEAR(got.losses[0], want.loss, 1e-12);
        assert_true(difference < 1e-11);
        plan.packing = MS_NOT_PACKED;
        ms_outcome crossed = run(cx, model, &plan, tokens);
        assert_true(ms_run_difference(&crossed.gradients, &want.gradients, NULL) > 1e-3);
    }
}

static void padding_has_no_loss(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    const int *tokens = file_tokens(cx->arena, model->vocab);
    ms_plan padded = packed_plan(MS_PADDED_TO_SEQUENCE, 5.0, 0.0);
    padded.global_batch = padded.microbatch = 4;
    ms_outcome got = run(cx, model, &padded, tokens);
    total want = {0};
    for (long row = 0; row < 4; row++) {
        ms_plan alone = ms_run_base_plan();
        alone.sequence_length = 5;
        alone.global_batch = alone.microbatch = 1;
        ms_outcome one = run(cx, model, &alone, tokens + row * padded.sequence_length);
        add_outcome(cx->arena, &want, &one, 0.25);
    }
    ASSERT_NEAR(got.losses[0], want.loss, 1e-12);
    assert_true(ms_run_difference(&got.gradients, &want.gradients, NULL) < 1e-11);
}

typedef struct layout {
    const char *name;
    long pp, dp_shard, cp, tp, zero, microbatch;
    ms_cp_method method;
} layout;

static void expect_losses_of_one(const ms_plan *base, const layout *l)
{
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_outcome want = run(cx, model, base, NULL);
    ms_plan plan = *base;
    plan.size[MS_PP] = l->pp;
    plan.size[MS_DP_SHARD] = l->dp_shard;
    plan.size[MS_CP] = l->cp;
    plan.size[MS_TP] = l->tp;
    plan.gpus = l->pp * l->dp_shard * l->cp * l->tp;
    plan.zero = l->zero;
    plan.microbatch = l->microbatch;
    plan.cp_method = l->method;
    plan.sequence_parallel = l->tp > 1;
    ms_outcome got = run(cx, model, &plan, NULL);
    double gradients = ms_run_difference(&got.gradients, &want.gradients, NULL);
    printf("%s %s: loss %.1e gradients %.1e\n", ms_packing_names[base->packing], l->name,
           got.losses[1] / want.losses[1] - 1, gradients);
    ASSERT_NEAR(got.losses[0], want.losses[0], 1e-12);
    ASSERT_NEAR(got.losses[1], want.losses[1], 1e-11);
    assert_true(gradients < 1e-11);
}

static void any_ranks_give_the_losses_of_one(void **state)
{
    (void)state;
    static const layout layouts[] = {
        {"dp", 1, 2, 1, 1, 0, 2, MS_CP_ALL_GATHER},
        {"zero 3", 1, 2, 1, 1, 3, 1, MS_CP_ALL_GATHER},
        {"tp", 1, 1, 1, 2, 0, 4, MS_CP_ALL_GATHER},
        {"cp", 1, 1, 2, 1, 0, 4, MS_CP_ALL_GATHER},
        {"ring", 1, 1, 2, 1, 0, 4, MS_CP_RING},
        {"ulysses", 1, 1, 2, 1, 0, 4, MS_CP_ULYSSES},
        {"pp", 2, 1, 1, 1, 0, 1, MS_CP_ALL_GATHER},
        {"all", 2, 2, 2, 2, 3, 1, MS_CP_RING},
    };
    for (int i = 0; i < 2; i++) {
        ms_plan base = packed_plan(i == 0 ? MS_PACKED : MS_PADDED_TO_SEQUENCE, 6.0, 4.0);
        for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++)
            expect_losses_of_one(&base, &layouts[k]);
    }
}

static void lengths_depend_on_seed_step_and_row(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_lengths lengths = ms_lengths_make(cx->arena, 600.0, 400.0, 2048.0);
    ms_documents documents = {.packing = MS_PADDED_TO_SEQUENCE,
                              .lengths = &lengths,
                              .seed = 1,
                              .sequence_length = 2048,
                              .global_batch = 20000};
    ASSERT_INT(ms_documents_tokens(&documents, 3, 4),
               ms_documents_tokens(&documents, 3, 4));
    assert_true(ms_documents_tokens(&documents, 3, 4) !=
                ms_documents_tokens(&documents, 4, 3));
    ASSERT_NEAR(ms_documents_step_tokens(&documents, 0) / 20000.0, lengths.mean_tokens,
                0.02);
}

static void what_a_run_does_not_execute_is_refused(void **state)
{
    (void)state;
    ms_ctx cx = {.arena = ms_arena_open()};
    const ms_model *model = ms_pubrun_model(cx.arena, ms_small_llama);
    ms_plan plan = packed_plan(MS_PADDED, 5.0, 0.0);
    ms_runner_options options = ms_run_options(model, &plan, MS_REAL_FP32);
    ms_outcome out;
    ASSERT_INT(
        ms_run_plan(&cx, model, &plan, "generic", &ms_backend_loop, &options, &out),
        MS_EINPUT);
    assert_non_null(
        strstr(test_messages(&cx), "a run does not execute --packing padded"));
    ms_arena_close(cx.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_sequences_train_as_apart),
        cmocka_unit_test(padding_has_no_loss),
        cmocka_unit_test(any_ranks_give_the_losses_of_one),
        cmocka_unit_test(lengths_depend_on_seed_step_and_row),
        cmocka_unit_test(what_a_run_does_not_execute_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
