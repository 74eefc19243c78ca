/* The memory that the runner (the execution backend) allocates is what the memory model
 * predicts, to the byte: for every rank, memory category and pipeline action. Exceptions:
 * 1. Activations depend on how many tokens each expert gets. With routing by data, or
 * with too few tokens for even routing, only the other categories are compared.
 * 2. Predictions divide optimizer states and parameters exactly by the number of shards,
 * while all shards of the runner are as large as the largest. The difference is bounded.
 * 3. Of what is alive within an action, only the peak of a backward is predicted. After a
 * forward only the memory left at its end is compared. A pair's forward may hold more
 * beside the gradient that its backward received than the backward holds later; this is
 * not predicted and below 1 %. With offload its block at work has all of its activations
 * on the device, too, and the host never has all of both. Peaks of pairs with padded
 * experts are not compared: predictions count all rows of the forward from the start of
 * the pair, and when the backward is at its peak some are not made yet, or their results
 * not freed.
 * 4. Asynchronous TP holds the input of a transfer and the result of the product beside
 * the transfer at once, where predictions have one after the other.
 * 5. Peaks of schedules from files may be off by the bytes of a few tensors, whatever is
 * recomputed; plans that choose modules leave such schedules out. */
#include "base/number.h"
#include "costmodel/plan/stack_choices.h"
#include "exec/measure/measure.h"
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/run_cases.h"
#include "tests/test.h"

#include <stdlib.h>

#define NUM_CASES TEST_CASES(60, 20)
/* few cases: CUDA kernels are emulated on the host, which is slow */
#define NUM_BF16_CASES TEST_CASES(6, 2)
#define MOST_SHARDS    16

typedef struct comparison {
    ms_ctx *cx;
    const ms_model *model;
    const ms_simulation *simulation;
    const ms_rank_outcome *rank;
    const char *what;
    bool pads_experts;
    bool even; /* every expert gets as many tokens as any other, as predictions assume */
    bool is_bf16;
    bool states_only; /* activations and peaks are not compared */
    bool padded; /* shards are padded to the largest; predictions divide states exactly */
    /* asynchronous TP: bytes of a transfer's input, which the runner holds at the same
     * time as the result of the product that runs beside the transfer */
    double beside_bytes;
    double block_host_bytes; /* most bytes of one block in host memory */
    double code_bytes;       /* most by which rounded sizes of NF4 exceed predictions */
    double worst_bytes;
} comparison;

/* Bound of the padding of a memory category: less than an element of each shard, for
 * each of at most five segments of a block, and of the sums and scales of a segment. */
static double padding_bytes(const comparison *c, int part)
{
    const double most_elements = 5.0 * (double)(c->model->num_layers + 2) * MOST_SHARDS;
    if (part == MS_MEMORY_OPTIMIZER)
        return c->is_bf16 ? 12.0 * most_elements : 8.0 * most_elements;
    bool pads = part == MS_MEMORY_PARAMS || part == MS_MEMORY_GRADS ||
                part == MS_MEMORY_GATHERED_PARAMS;
    bool has_codes = part == MS_MEMORY_PARAMS || part == MS_MEMORY_GATHERED_PARAMS;
    return pads ? 4.0 * most_elements + (has_codes ? c->code_bytes : 0.0) : 0.0;
}

/* Bytes by which the ledger of a memory category differs from the prediction,
 * beyond what is allowed. */
static double error_bytes(const comparison *c, int part, double got, double want)
{
    bool is_state = part <= MS_MEMORY_OPTIMIZER || part == MS_MEMORY_GATHERED_PARAMS;
    if ((part == MS_MEMORY_ACTIVATIONS && !c->even) || (c->states_only && !is_state))
        return 0.0;
    if (c->padded && got > want)
        return ms_max(0.0, got - want - padding_bytes(c, part));
    return fabs(got - want);
}

static void compare(comparison *c, const ms_ledger_sample *got,
                    const ms_memory_sample *want, const char *when)
{
    for (int part = 0; part < MS_MEMORY_CONTEXT; part++) {
        double off = error_bytes(c, part, got->bytes[part], want->bytes[part]);
        if (off > c->worst_bytes) {
            c->worst_bytes = off;
            c->what = ms_arena_printf(
                c->cx->arena, "rank %ld, action %d, %s: %s %.0f bytes, predicted %.1f",
                c->rank->rank, got->action, when, ms_memory_category_names[part],
                got->bytes[part], want->bytes[part]);
        }
    }
}

/* Compares only the total bytes at a peak: several instants may be equally high with
 * different parts. */
static void compare_total(comparison *c, const ms_ledger_sample *got,
                          const ms_memory_sample *want, int kind)
{
    double got_bytes = 0.0, want_bytes = 0.0;
    for (int part = 0; part < MS_MEMORY_CONTEXT; part++) {
        got_bytes += got->bytes[part];
        want_bytes += want->bytes[part];
    }
    double off = fabs(got_bytes - want_bytes);
    double pair_bytes = 0.01 * want_bytes + c->block_host_bytes;
    if (got_bytes > want_bytes)
        off = ms_max(0.0, off - (kind == MS_OVERLAP ? pair_bytes : c->beside_bytes));
    if (off > c->worst_bytes) {
        c->worst_bytes = off;
        c->what = ms_arena_printf(
            c->cx->arena, "rank %ld, action %d, at its peak: %.0f bytes, predicted %.1f",
            c->rank->rank, got->action, got_bytes, want_bytes);
    }
}

/* Compares a rank's ledger with the simulation, which has one sample for a forward
 * (after it), and two for a backward: its peak and after it. */
static void compare_rank(comparison *c, const ms_schedule *schedule, int pipeline_rank)
{
    const ms_actor *actor = c->simulation->actors;
    while (actor->pipeline_rank != pipeline_rank)
        actor++;
    int first = schedule->first_action[pipeline_rank], at = 1;
    int num = schedule->first_action[pipeline_rank + 1] - first;
    ASSERT_INT(c->rank->num_samples, 2 * num);
    for (int i = 0; i < num; i++) {
        int kind = schedule->actions[first + i].kind;
        if (kind != MS_FORWARD) {
            bool is_filled = c->pads_experts && kind == MS_OVERLAP;
            if (c->even && !c->padded && !c->states_only && !is_filled)
                compare_total(c, &c->rank->samples[2 * i], &actor->samples[at], kind);
            at++;
        }
        compare(c, &c->rank->samples[2 * i + 1], &actor->samples[at++], "after it");
    }
}

/* Most bytes in host memory of a micro-batch in one stage. */
static double largest_stage_bytes(const ms_planned *planned)
{
    double most = 0.0;
    for (int i = 0; i < planned->pipeline.split->num_classes; i++)
        most = ms_max(most, planned->stages[i].sum.memory.host_bytes);
    return most;
}

static bool has_pairs(const ms_schedule *schedule)
{
    for (int i = 0; i < schedule->first_action[schedule->shape.num_ranks]; i++)
        if (schedule->actions[i].kind == MS_OVERLAP)
            return true;
    return false;
}

/* Compares the most that a rank has in host memory: of activations only where every
 * expert gets as many tokens, of states up to their padding. */
static void compare_host(comparison *c, const ms_planned *planned, int pipeline_rank)
{
    const ms_ledger *ledger = &c->rank->ledger;
    ms_rank_load load = ms_planned_load(c->cx, planned, pipeline_rank);
    if (!c->even)
        load.host_bytes = 0.0;
    double want = ms_rank_host_bytes(planned->workload, &load, planned->sharding,
                                     &planned->pipeline.shards);
    double off = ledger->host_peak_bytes - want;
    if (off > 0.0 && (c->padded || !c->even))
        off = c->even ? ms_max(0.0, off - padding_bytes(c, MS_MEMORY_OPTIMIZER)) : 0.0;
    if (off < 0.0 && has_pairs(planned->schedule))
        off = ms_min(0.0, off + largest_stage_bytes(planned));
    if (fabs(off) > c->worst_bytes) {
        c->worst_bytes = fabs(off);
        c->what =
            ms_arena_printf(c->cx->arena, "rank %ld, host: %.0f bytes, predicted %.1f",
                            c->rank->rank, ledger->host_peak_bytes, want);
    }
}

static bool divides(const ms_planned *p, const ms_block_cost *part)
{
    return fmod(part->dense_params, p->pipeline.shards.dense) == 0.0 &&
           fmod(part->expert_params, p->pipeline.shards.expert) == 0.0 &&
           fmod(part->frozen.dense, 4.0 * p->pipeline.shards.dense) == 0.0 &&
           fmod(part->frozen.expert, 4.0 * p->pipeline.shards.expert) == 0.0;
}

/* Whether all shards are of equal size: predictions know no padding. */
static bool all_divide(const ms_model *model, const ms_planned *p)
{
    bool all = divides(p, &p->blocks.embed) && divides(p, &p->blocks.head);
    for (int kind = 0; kind < model->num_kinds; kind++)
        for (int mode = 0; mode < MS_NUM_RECOMPUTE; mode++)
            all = all && divides(p, &p->blocks.layer[kind][mode]);
    return all;
}

/* Bound of what a base in NF4 takes beside 4.127 bits an element: less than 6 bytes (a
 * scale in fp32, one in 8 bits, half a code) for the part of each matrix, of each expert's
 * matrix, in a shard, which is as long as the longest. Models of 256 features have whole
 * groups in every shard. */
static double code_bytes(const ms_model *model, const ms_plan *plan)
{
    const double most_matrices = 9.0, experts = 1.0 + (double)model->moe.num_experts;
    return plan->lora_base == MS_BASE_NF4 && model->hidden < 256
               ? 6.0 * most_matrices * experts * (double)model->num_layers * MOST_SHARDS
               : 0.0;
}

/* Whether an optimizer has states whose sizes predictions round: a scale for each begun
 * block of 8-bit moments; matrices, vectors and sums, each in shards of their own. */
static bool has_rounded_states(const ms_plan *plan, const ms_planned *p)
{
    const ms_shard_sizes *shards = &p->pipeline.shards;
    bool is_sharded = p->sharding > MS_ZERO_0 && shards->dense + shards->expert > 2.0;
    return ms_plan_has_moment_blocks(plan) ||
           (is_sharded && (plan->optimizer == MS_OPTIMIZER_ADAFACTOR ||
                           plan->optimizer == MS_OPTIMIZER_MUON));
}

static double block_host_bytes(const ms_model *model, const ms_planned *p)
{
    double most =
        ms_max(p->blocks.embed.memory.host_bytes, p->blocks.head.memory.host_bytes);
    for (int kind = 0; kind < model->num_kinds; kind++)
        for (int mode = 0; mode < MS_NUM_RECOMPUTE; mode++)
            most = ms_max(most, p->blocks.layer[kind][mode].memory.host_bytes);
    return most;
}

/* Bytes of a layer's activations on one rank, with the tokens split over cp and tp; 0
 * without asynchronous TP. */
static double beside_bytes(const ms_model *model, const ms_plan *plan)
{
    double element_bytes = ms_dtype_bytes(plan->compute);
    if (!plan->async_tp || plan->size[MS_TP] == 1)
        return 0.0;
    long ranks = plan->size[MS_CP] * plan->size[MS_TP];
    return element_bytes *
           (double)(plan->microbatch * plan->sequence_length * model->hidden) /
           (double)ranks;
}

/* Whether balanced routing can give every expert equally many rows: whether the `top_k`
 * copies of all tokens in an ep group divide by the number of experts. */
static bool is_even(const ms_model *model, const ms_plan *plan)
{
    long tokens = plan->microbatch * plan->sequence_length / plan->size[MS_CP];
    if (model->moe.num_experts == 0 || plan->ep == 1)
        return true;
    tokens /= plan->size[MS_TP];
    return tokens * plan->ep * model->moe.top_k % model->moe.num_experts == 0;
}

/* How plans are executed: on which backend, with which number type, and whether tokens
 * are routed to experts in turn. */
typedef struct habits {
    const ms_backend *backend;
    ms_real_type type;
    bool balanced;
    bool states_only;
} habits;

static bool agrees(ms_ctx *cx, const ms_run_case *c, const habits *how, int *num_compared)
{
    const ms_model *model = c->model;
    ms_run_opened opened;
    ms_runner_options options = ms_run_options(model, &c->plan, how->type);
    ms_outcome out;
    ms_simulation simulation;
    ms_simulate_options simulate = {.engine = MS_ENGINE_REPLAY,
                                    .detail = MS_DETAIL_ACTION};
    options.balanced_routing = how->balanced;
    ASSERT_OK(ms_run_open(cx, model, &c->plan, "meshsim", &opened), cx);
    ASSERT_OK(ms_simulate(cx, opened.planned, &simulate, &simulation), cx);
    ASSERT_OK(ms_run_opened_plan(cx, &opened, how->backend, &options, &out), cx);
    comparison all = {.cx = cx,
                      .model = model,
                      .simulation = &simulation,
                      .code_bytes = code_bytes(model, &c->plan),
                      .padded = !all_divide(model, opened.planned) ||
                                code_bytes(model, &c->plan) > 0.0 ||
                                c->plan.gather_bits != MS_NOT_QUANTISED ||
                                c->plan.reduce_bits != MS_NOT_QUANTISED ||
                                has_rounded_states(&c->plan, opened.planned),
                      .states_only = how->states_only,
                      .is_bf16 = how->type >= MS_REAL_BF16,
                      .pads_experts = c->plan.pad_experts,
                      .even = (how->balanced && is_even(model, &c->plan)) ||
                              c->plan.pad_experts || model->moe.num_experts == 0,
                      .beside_bytes = beside_bytes(model, &c->plan),
                      .block_host_bytes = block_host_bytes(model, opened.planned)};
    *num_compared += !all.padded;
    for (long i = 0; i < out.num_ranks; i++) {
        all.rank = &out.ranks[i];
        int pipeline_rank = (int)opened.world->places[out.ranks[i].rank].pp;
        compare_rank(&all, opened.planned->schedule, pipeline_rank);
        compare_host(&all, opened.planned, pipeline_rank);
    }
    ms_run_close(&opened);
    if (all.worst_bytes > 1e-3)
        printf("%s, %s: %s\n", model->name, ms_plan_text(cx->arena, &c->plan), all.what);
    return all.worst_bytes <= 1e-3;
}

/* `change` is made to each case; NULL: none. */
static void check_cases(long num, ms_real_type type, bool balanced,
                        void (*change)(ms_run_case *, long))
{
    int num_wrong = 0, num_compared = 0;
    for (long i = 0; i < num; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_run_case c = ms_run_case_draw(&cx, &ms_run_fp64, 21, i, 0);
        const habits how = {&ms_backend_loop, type, balanced, false};
        c.plan.compute = ms_measure_dtype(type);
        bool chooses = change == ms_run_case_choose_modules;
        if (change != NULL)
            change(&c, i);
        if (!(chooses && c.plan.schedule == MS_CUSTOM) &&
            !agrees(&cx, &c, &how, &num_compared)) {
            printf("that was case %ld\n", i);
            num_wrong++;
        }
        ms_arena_close(cx.arena);
    }
    ASSERT_INT(num_wrong, 0);
    assert_true(2 * num_compared > num);
}

/* The environment variable MESHSIM_RUNS sets the number of cases. */
static void the_ledger_is_what_was_predicted(void **state)
{
    (void)state;
    const char *asked = getenv("MESHSIM_RUNS");
    check_cases(asked != NULL ? strtol(asked, NULL, 10) : NUM_CASES, MS_REAL_FP32, true,
                NULL);
}

/* Parameters in bf16 with master weights, gradients and states in fp32. */
static void the_ledger_in_bf16_is_what_was_predicted(void **state)
{
    (void)state;
    check_cases(NUM_CASES, MS_REAL_BF16, true, NULL);
}

static void choose_nvfp4(ms_run_case *c, long number)
{
    (void)number;
    c->plan.recipe = MS_RECIPE_NVFP4;
}

/* The stack saves operands in bf16 (keeps_casts is not set) and rounds them for each
 * product, under every recipe. */
static void every_recipe_saves_what_was_predicted(void **state)
{
    (void)state;
    check_cases(NUM_CASES, MS_REAL_FP8, true, ms_run_case_choose_recipe);
    check_cases(NUM_CASES / 4, MS_REAL_FP4, true, choose_nvfp4);
}

/* The CUDA backend emulated in host memory. */
static void the_ledger_of_gpus_in_bf16_is_what_was_predicted(void **state)
{
    (void)state;
    ms_cuda_backend cuda = ms_test_cuda_backend(MS_CUDA_BY_HOST);
    const habits how = {&cuda.table, MS_REAL_BF16, true, false};
    int num_wrong = 0, num_compared = 0;
    for (long i = 0; i < NUM_BF16_CASES; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_run_case c = ms_run_case_draw(&cx, &ms_run_fp64, 22, i, 0);
        c.plan.compute = MS_BF16;
        ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = (uint64_t)i});
        if (!agrees(&cx, &c, &how, &num_compared)) {
            printf("that was case %ld in bf16\n", i);
            num_wrong++;
        }
        ms_cuda_fake_end();
        ms_arena_close(cx.arena);
    }
    ASSERT_INT(num_wrong, 0);
    assert_true(num_compared > 0);
}

static void routing_changes_only_activations(void **state)
{
    (void)state;
    check_cases(NUM_CASES / 2, MS_REAL_FP32, false, NULL);
}

/* Each module drops what it is said to, and backward makes it again when it is needed. */
static void modules_drop_what_was_predicted(void **state)
{
    (void)state;
    check_cases(NUM_CASES, MS_REAL_FP32, true, ms_run_case_choose_modules);
}

/* Plans with adapters; of models with experts everything but activations. */
static void frozen_weights_have_no_states(void **state)
{
    (void)state;
    check_cases(NUM_CASES / 2, MS_REAL_FP32, false, ms_run_case_adapt);
    check_cases(NUM_CASES / 2, MS_REAL_BF16, false, ms_run_case_adapt);
}

/* Host memory has what was predicted, and the device what is left: with recomputation of
 * all kinds, in every third case of modules. */
static void offload_and_recompute(ms_run_case *c, long number)
{
    if (number % 3 == 0 && c->plan.schedule != MS_CUSTOM)
        ms_run_case_choose_modules(c, number);
    ms_run_case_offload(c, number);
}

static void host_memory_holds_what_was_predicted(void **state)
{
    (void)state;
    check_cases(NUM_CASES, MS_REAL_FP32, true, offload_and_recompute);
}

/* Matrices of whole groups of 16384 elements on every rank: no byte is rounded, and peaks
 * contain the copy of the matrix in use. */
static void whole_groups_of_nf4_are_predicted_to_the_byte(void **state)
{
    (void)state;
    static const struct {
        long dp, tp, zero;
        bool reshards;
        ms_recompute recompute;
    } cases[] = {{1, 1, 0, true, MS_RECOMPUTE_NONE},  {2, 1, 2, true, MS_RECOMPUTE_NONE},
                 {2, 1, 3, true, MS_RECOMPUTE_FULL},  {2, 2, 3, true, MS_RECOMPUTE_NONE},
                 {2, 2, 3, false, MS_RECOMPUTE_NONE}, {1, 4, 0, true, MS_RECOMPUTE_FULL}};
    ms_ctx *cx = test_cx();
    ms_model model = *ms_pubrun_model(cx->arena, ms_small_llama);
    model.hidden = 256;
    model.head_dim = model.value_head_dim = 32;
    model.num_kv_heads = model.num_heads;
    model.ffn_hidden = 512;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_run_case c = {.model = &model, .plan = ms_run_base_plan(), .stack = "meshsim"};
        const habits how = {&ms_backend_loop, MS_REAL_FP32, false, false};
        int num_compared = 0;
        c.plan.gpus = cases[i].dp * cases[i].tp;
        c.plan.size[MS_DP_SHARD] = cases[i].dp;
        c.plan.size[MS_TP] = cases[i].tp;
        c.plan.microbatch = 1;
        c.plan.zero = cases[i].zero;
        c.plan.reshard_after_forward = cases[i].reshards;
        c.plan.recompute = cases[i].recompute;
        ms_run_case_quantize_base(&c, 0);
        assert_true(agrees(cx, &c, &how, &num_compared));
        ASSERT_INT(num_compared, 1);
    }
}

/* Cases that `change` can be made to; returns the number that were compared to the byte. */
static int check_some(uint64_t seed, long num, const habits *how,
                      bool (*change)(ms_run_case *, long))
{
    int num_wrong = 0, num_run = 0, num_compared = 0;
    for (long i = 0; i < num; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_run_case c = ms_run_case_draw(&cx, &ms_run_fp64, seed, i, 0);
        c.plan.compute = ms_measure_dtype(how->type);
        if (change(&c, i)) {
            num_run++;
            if (!agrees(&cx, &c, how, &num_compared)) {
                printf("that was case %ld\n", i);
                num_wrong++;
            }
        }
        ms_arena_close(cx.arena);
    }
    ASSERT_INT(num_wrong, 0);
    assert_true(20 * num_run > num);
    return num_compared;
}

static bool quantize_base(ms_run_case *c, long number)
{
    ms_run_case_quantize_base(c, number);
    return true;
}

static void bases_in_nf4_keep_what_was_predicted(void **state)
{
    (void)state;
    const habits how = {&ms_backend_loop, MS_REAL_FP32, false, false};
    (void)check_some(24, NUM_CASES / 2, &how, quantize_base);
}

static void check_quantized(uint64_t seed, ms_real_type type,
                            bool (*quantize)(ms_run_case *, long))
{
    const habits how = {&ms_backend_loop, type, true, false};
    (void)check_some(seed, NUM_CASES, &how, quantize);
}

/* Half of the cases have weights in bf16. */
static bool quantize_gathers(ms_run_case *c, long number)
{
    if (number / 2 % 2 == 0)
        c->plan.param_dtype = MS_STORE_BF16;
    return ms_run_case_quantize_gathers(c, number);
}

/* Buffers of what is quantized have both forms. Scales of begun blocks are rounded up, 4
 * bytes in each shard of a segment. */
static void quantized_gathers_hold_what_was_predicted(void **state)
{
    (void)state;
    check_quantized(25, MS_REAL_FP32, quantize_gathers);
}

/* Gradients are summed in fp32 beside the type of computation, in which they are sent. */
static void quantized_reductions_hold_what_was_predicted(void **state)
{
    (void)state;
    check_quantized(27, MS_REAL_FP32, ms_run_case_quantize_reductions);
    check_quantized(28, MS_REAL_BF16, ms_run_case_quantize_reductions);
}

/* Padded experts have as many rows as predicted, wherever the router sends tokens; an
 * all-gather of tokens has a buffer for those of an ep group. */
static void experts_hold_what_was_predicted(void **state)
{
    (void)state;
    const habits how = {&ms_backend_loop, MS_REAL_FP32, false, false};
    const habits even = {&ms_backend_loop, MS_REAL_FP32, true, false};
    assert_true(4 * check_some(26, 2 * NUM_CASES, &how, ms_run_case_fill_experts) >
                NUM_CASES);
    (void)check_some(29, 2 * NUM_CASES, &even, ms_run_case_gather_tokens);
}

/* Every optimizer's moments in all types, sums and scales; with adapters now and then, and
 * now and then in host memory. */
static bool choose_optimizer(ms_run_case *c, long number)
{
    static const ms_storage stored[] = {MS_STORE_DEFAULT, MS_STORE_BF16, MS_STORE_INT8,
                                        MS_STORE_FP32};
    c->plan.optimizer = (ms_optimizer)(number % MS_NUM_OPTIMIZERS);
    c->plan.optimizer_dtype = stored[number / MS_NUM_OPTIMIZERS % 4];
    ms_run_case_settle_moments(c);
    if (number % 7 == 0)
        ms_run_case_adapt(c, number);
    if (number % 5 == 0)
        ms_run_case_offload(c, number);
    return true;
}

static void every_optimizer_keeps_what_was_predicted(void **state)
{
    (void)state;
    const habits how = {&ms_backend_loop, MS_REAL_FP32, true, true};
    assert_true(4 * check_some(23, NUM_CASES, &how, choose_optimizer) > NUM_CASES);
}

/* Weights, gradients, messages and states in types of the plan's own. */
static void types_of_a_plan_take_what_was_predicted(void **state)
{
    (void)state;
    int num_wrong = 0, num_compared = 0;
    for (long i = 0; i < NUM_CASES; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_rng rng = ms_rng_split(ms_rng_seed(24), (uint64_t)i);
        ms_run_case c = ms_run_case_draw(&cx, &ms_run_fp64, 25, i, 0);
        const habits how = {&ms_backend_loop, i % 2 == 0 ? MS_REAL_BF16 : MS_REAL_FP32,
                            true, i % 4 >= 2};
        c.plan.compute = i % 2 == 0 ? MS_BF16 : MS_FP32;
        if (i % 4 >= 2)
            c.plan.optimizer = (ms_optimizer)(i / 4 % MS_NUM_OPTIMIZERS);
        ms_run_case_choose_types(&c, how.type, &rng);
        if (!agrees(&cx, &c, &how, &num_compared)) {
            printf("that was case %ld\n", i);
            num_wrong++;
        }
        ms_arena_close(cx.arena);
    }
    ASSERT_INT(num_wrong, 0);
    assert_true(4 * num_compared > NUM_CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ledger_is_what_was_predicted),
        cmocka_unit_test(the_ledger_in_bf16_is_what_was_predicted),
        cmocka_unit_test(every_recipe_saves_what_was_predicted),
        cmocka_unit_test(the_ledger_of_gpus_in_bf16_is_what_was_predicted),
        cmocka_unit_test(routing_changes_only_activations),
        cmocka_unit_test(modules_drop_what_was_predicted),
        cmocka_unit_test(frozen_weights_have_no_states),
        cmocka_unit_test(host_memory_holds_what_was_predicted),
        cmocka_unit_test(bases_in_nf4_keep_what_was_predicted),
        cmocka_unit_test(whole_groups_of_nf4_are_predicted_to_the_byte),
        cmocka_unit_test(quantized_gathers_hold_what_was_predicted),
        cmocka_unit_test(quantized_reductions_hold_what_was_predicted),
        cmocka_unit_test(experts_hold_what_was_predicted),
        cmocka_unit_test(every_optimizer_keeps_what_was_predicted),
        cmocka_unit_test(types_of_a_plan_take_what_was_predicted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
