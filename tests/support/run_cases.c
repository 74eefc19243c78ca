#include "tests/support/run_cases.h"

#include "costmodel/plan/plan_field.h"
#include "exec/core/plan_types.h"

#include "base/number.h"
#include "exec/measure/measure.h"
#include "tests/support/wide_plans.h"
#include "tests/test.h"

#include <math.h>
#include <string.h>

#define NUM_STEPS      5
#define NUM_MODELS     (MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE)
#define MOST_RANKS     16
#define MOST_SEQUENCES 16

const ms_run_tolerance ms_run_fp64 = {MS_REAL_FP64, 8, 1e-12, 1e-12, 1e-12, 1e-12};
/* At most six layers: with eight and query norms one rank's fp32 gradients already differ
 * from fp64 by 1e-5. */
const ms_run_tolerance ms_run_fp32 = {MS_REAL_FP32, 6, 1e-6, 1e-5, 1e-5, HUGE_VAL};
const ms_run_tolerance ms_run_bf16 = {MS_REAL_BF16, 4, 2e-2, 2e-2, 2.0, HUGE_VAL};
const ms_run_tolerance ms_run_fp8 = {MS_REAL_FP8, 4, 5e-2, 5e-2, HUGE_VAL, HUGE_VAL};

const ms_choice ms_run_types[MS_NUM_RUN_TYPES] = {
    MS_CHOOSE_PARAM_DTYPE, MS_CHOOSE_GRAD_DTYPE, MS_CHOOSE_COMM_DTYPE,
    MS_CHOOSE_MASTER_DTYPE, MS_CHOOSE_OPTIMIZER_DTYPE};

void ms_run_case_settle_moments(ms_run_case *c)
{
    bool has_codes = c->plan.optimizer_dtype == MS_STORE_INT8;
    if (c->plan.optimizer == MS_OPTIMIZER_ADAM_8BIT
            ? !has_codes
            : c->plan.optimizer == MS_OPTIMIZER_ADAFACTOR && has_codes)
        c->plan.optimizer_dtype = MS_STORE_DEFAULT;
}

void ms_run_case_choose_types(ms_run_case *c, ms_real_type type, ms_rng *rng)
{
    static const ms_storage types[] = {MS_STORE_DEFAULT, MS_STORE_FP32, MS_STORE_BF16};
    ms_ctx apart = {.arena = ms_arena_open(), .verbosity = -1};
    do {
        c->plan.param_dtype = types[ms_rng_below(rng, 3)];
        c->plan.grad_dtype = types[ms_rng_below(rng, 3)];
        c->plan.comm_dtype = types[ms_rng_below(rng, 3)];
        c->plan.optimizer_dtype = types[ms_rng_below(rng, 3)];
        c->plan.master_dtype = (ms_master_copy)ms_rng_below(rng, 4);
        ms_run_case_settle_moments(c);
    } while (ms_plan_check_run_types(&apart, type, &c->plan) != MS_OK);
    ms_arena_close(apart.arena);
}

/* ---- runs ---- */

/* Gives the model two kinds of layers: with and without experts, or with different
 * attention windows. */
static void mix_kinds(ms_model *model)
{
    model->num_kinds = 2;
    model->kinds[1] = model->kinds[0];
    if (model->kinds[0].moe)
        model->kinds[1].moe = false;
    else
        model->kinds[1].window_tokens = model->kinds[0].window_tokens > 0 ? 0 : 7;
    for (long i = 0; i < model->num_layers; i++)
        model->kind_of_layer[i] = i % 2 == 1;
}

static const ms_model *draw_model(ms_ctx *cx, ms_rng *rng, const ms_run_tolerance *how,
                                  long number)
{
    static const long all_layers[] = {4, 4, 4, 5, 6, 8};
    long layers = all_layers[ms_rng_below(rng, 6)];
    int which = (int)(number % NUM_MODELS);
    ms_model *model = MS_NEW(cx->arena, ms_model);
    *model = which < MS_NUM_SMALL_DENSE ? ms_small_dense[which]()
                                        : ms_small_moe[which - MS_NUM_SMALL_DENSE]();
    model->dropout = false; /* not executed */
    model->num_layers = layers < how->most_layers ? layers : how->most_layers;
    model->kind_of_layer = MS_NEW_ARRAY(cx->arena, model->num_layers, unsigned char);
    model->tied_embeddings = ms_rng_below(rng, 4) == 0;
    if (ms_rng_below(rng, 4) == 0)
        mix_kinds(model);
    return model;
}

/* Number of parallel axes with more than one rank; expert parallelism counts as one. */
static int num_axes(const ms_plan *plan)
{
    int num = plan->ep > 1;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        num += plan->size[axis] > 1;
    return num;
}

/* Partitions saved layer inputs of every second plan, where that is legal, and cuts
 * all-reduces of gradients of every third one into buckets. */
static void share_out(long number, const ms_model *model, ms_plan *plan)
{
    plan->partition_activations = number % 2 == 0;
    if (ms_plan_refusal(plan, model) != MS_LEGAL)
        plan->partition_activations = false;
    if (number % 3 == 0 && plan->zero == 0)
        plan->bucket_bytes = 1000.0;
}

ms_run_case ms_run_case_draw(ms_ctx *cx, const ms_run_tolerance *how, uint64_t seed,
                             long number, long gpus)
{
    static const char *const stacks[] = {"generic",    "megatron", "meshsim",
                                         "torchtitan", "nanotron", "simumax"};
    ms_rng rng = ms_rng_split(ms_rng_seed(seed), (uint64_t)number);
    ms_run_case c = {.model = draw_model(cx, &rng, how, number)};
    const ms_workload workload = {.model = c.model};
    const ms_plan base = ms_run_base_plan();
    const bool composed = ms_rng_below(&rng, 8) == 0 && gpus == 0;
    do
        c.plan = ms_random_plan(&rng, &workload, &base, gpus > 0 ? gpus : MOST_RANKS);
    while ((gpus > 0 && c.plan.gpus != gpus) || c.plan.global_batch > MOST_SEQUENCES ||
           (composed && num_axes(&c.plan) < 4));
    ms_widen_plan(cx, &rng, c.model, &c.plan);
    c.stack = stacks[ms_rng_below(&rng, sizeof stacks / sizeof *stacks)];
    share_out(number, c.model, &c.plan);
    c.balanced = how->type >= MS_REAL_BF16 && c.model->moe.num_experts > 0;
    return c;
}

/* Makes the case of one rank: equal model and sequences, in one micro-batch. */
static ms_run_case serial_case(const ms_run_case *c)
{
    ms_run_case serial = {
        .model = c->model, .plan = ms_run_base_plan(), .stack = c->stack};
    serial.plan.global_batch = serial.plan.microbatch = c->plan.global_batch;
    serial.plan.lora_rank = c->plan.lora_rank;
    serial.plan.lora_targets = c->plan.lora_targets;
    serial.plan.optimizer = c->plan.optimizer;
    serial.plan.optimizer_dtype = c->plan.optimizer_dtype;
    if (c->plan.expert_capacity > 0.0) {
        serial.plan.microbatch = c->plan.microbatch;
        serial.plan.expert_capacity = c->plan.expert_capacity;
        serial.grouped_as = &c->plan;
    }
    serial.shares[0] = c->plan.size[MS_TP];
    serial.shares[1] = c->plan.etp;
    return serial;
}

/* Trains a case from the weights `load` (NULL: random ones); `weights_in_bf16`: initial
 * weights are rounded to bf16. */
static ms_outcome run(ms_ctx *cx, const ms_run_case *c, ms_real_type type,
                      bool weights_in_bf16, const ms_safe_file *load,
                      const ms_backend *backend)
{
    ms_outcome out;
    ms_runner_options options = ms_run_options(c->model, &c->plan, type);
    ms_plan typed = c->plan;
    typed.compute = ms_measure_dtype(type);
    if (type < MS_REAL_FP8)
        typed.recipe = MS_RECIPE_DEFAULT;
    options.num_steps = NUM_STEPS;
    options.balanced_routing = c->balanced;
    options.weights_in_bf16 = weights_in_bf16;
    options.load = load;
    options.grouped_as = c->grouped_as;
    memcpy(options.orthogonal_shares, c->shares, sizeof c->shares);
    ASSERT_OK(ms_run_plan(cx, c->model, &typed, c->stack, backend, &options, &out), cx);
    return out;
}

/* ---- comparison ---- */

/* Largest relative loss difference over steps first, ..., end - 1; HUGE_VAL: a loss is
 * NaN. */
static double loss_difference(const ms_outcome *got, const ms_outcome *want, int first,
                              int end)
{
    double most = 0.0;
    for (int i = first; i < end; i++) {
        double difference = fabs(got->losses[i] / want->losses[i] - 1.0);
        most = isnan(difference) ? HUGE_VAL : ms_max(most, difference);
    }
    return most;
}

bool ms_run_agrees(ms_ctx *cx, const ms_run_case *c, const ms_backend *backend,
                   const ms_run_tolerance *how)
{
    ms_run_case serial = c->balanced ? *c : serial_case(c);
    bool rounds = how->type >= MS_REAL_BF16 || ms_plan_narrows(how->type, &c->plan);
    ms_real_type type = rounds ? MS_REAL_FP32 : how->type;
    for (int i = 0; rounds && i < MS_NUM_RUN_TYPES; i++)
        ms_plan_reset(&serial.plan, ms_run_types[i]);
    ms_outcome got = run(cx, c, how->type, rounds, NULL, backend);
    const ms_safe_file *load = c->plan.lora_base == MS_BASE_NF4 ? &got.weights : NULL;
    ms_outcome want = run(cx, &serial, type, rounds, load, &ms_backend_loop);
    const char *worst = "";
    double first = loss_difference(&got, &want, 0, 1);
    double later = loss_difference(&got, &want, 1, NUM_STEPS);
    double gradients = ms_run_difference(&got.gradients, &want.gradients, &worst);
    if (rounds) {
        ms_outcome unrounded = run(cx, &serial, type, false, load, &ms_backend_loop);
        gradients = ms_run_relative_norm(&got.gradients, &want.gradients) /
                    ms_run_relative_norm(&unrounded.gradients, &want.gradients);
    }
    double updated = ms_run_difference(&got.updated, &want.updated, NULL);
    ASSERT_INT(got.steps_done, NUM_STEPS);
    bool ok = first <= how->first_loss && later <= how->later_loss &&
              gradients <= how->gradients && updated <= how->updated;
    if (!ok)
        printf("%s, %s, %s: loss %.1e, later %.1e, gradient of %s %.1e, weights %.1e\n",
               c->model->name, c->stack, ms_plan_text(cx->arena, &c->plan), first, later,
               worst, gradients, updated);
    return ok;
}

/* Replaces values by multiples of 2^-8 up to `most` times that, which every third one is,
 * and each of a vector: so that every shard, be it of two elements, has one. */
static ms_safe_file representable(ms_arena *arena, const ms_safe_file *file, long most)
{
    ms_rng rng = ms_rng_seed(41);
    ms_safe_tensor *tensors = MS_NEW_ARRAY(arena, file->num_tensors, ms_safe_tensor);
    for (int t = 0; t < file->num_tensors; t++) {
        double *values = MS_NEW_ARRAY(arena, file->tensors[t].count, double);
        tensors[t] = file->tensors[t];
        tensors[t].values = values;
        for (long i = 0; i < tensors[t].count; i++) {
            long code = (long)ms_rng_below(&rng, 2 * (uint64_t)most + 1) - most;
            if (i % 3 == 0 || tensors[t].num_dims == 1)
                code = code < 0 ? -most : most;
            values[i] = ldexp((double)code, -8);
        }
    }
    return (ms_safe_file){file->num_tensors, tensors};
}

bool ms_run_agrees_on_codes(ms_ctx *cx, const ms_run_case *c, const ms_run_tolerance *how)
{
    ms_run_case serial = serial_case(c);
    const char *worst = "";
    ms_outcome drawn = run(cx, &serial, how->type, false, NULL, &ms_backend_loop);
    ms_safe_file load = representable(cx->arena, &drawn.weights,
                                      c->plan.gather_bits == MS_QUANTISED_4 ? 7 : 127);
    ms_outcome want = run(cx, &serial, how->type, false, &load, &ms_backend_loop);
    ms_outcome got = run(cx, c, how->type, false, &load, &ms_backend_loop);
    double loss = loss_difference(&got, &want, 0, 1);
    double gradients = ms_run_difference(&got.gradients, &want.gradients, &worst);
    bool ok = loss <= how->first_loss && gradients <= how->gradients;
    if (!ok)
        printf("%s, %s, %s: loss %.1e, gradient of %s %.1e\n", c->model->name, c->stack,
               ms_plan_text(cx->arena, &c->plan), loss, worst, gradients);
    return ok;
}

void ms_run_case_adapt(ms_run_case *c, long number)
{
    static const char *const targets[] = {"all", "q,v", "attention", "o,gate,down"};
    bool has_experts = c->model->moe.num_experts > 0;
    c->plan.lora_rank = 4 * c->plan.size[MS_TP];
    c->plan.lora_targets = has_experts ? "attention" : targets[number % 4];
}

void ms_run_case_quantize_base(ms_run_case *c, long number)
{
    ms_run_case_adapt(c, number);
    c->plan.lora_base = MS_BASE_NF4;
}

void ms_run_case_choose_recipe(ms_run_case *c, long number)
{
    c->plan.recipe = (ms_recipe)(MS_RECIPE_DELAYED + number % 5);
}

bool ms_run_case_quantize_gathers(ms_run_case *c, long number)
{
    c->plan.gather_bits = number % 2 == 0 ? MS_QUANTISED_8 : MS_QUANTISED_4;
    return c->plan.zero == 3 && c->plan.reshard_after_forward &&
           ms_plan_sharding(&c->plan) == MS_ZERO_3;
}

bool ms_run_case_quantize_reductions(ms_run_case *c, long number)
{
    c->plan.reduce_bits = number % 2 == 0 ? MS_QUANTISED_8 : MS_QUANTISED_4;
    return ms_shards_grads(ms_plan_sharding(&c->plan)) &&
           c->plan.size[MS_DP_REPLICATE] == 1;
}

/* Blocks of 4096 elements share a scale, so that errors are up to a 254th, or a 14th, of
 * the largest gradient among them, which is a few times their root mean square. */
bool ms_run_agrees_within_codes(ms_ctx *cx, const ms_run_case *c)
{
    ms_run_case serial = serial_case(c), coarse = *c;
    coarse.plan.reduce_bits = MS_QUANTISED_4;
    ms_outcome want = run(cx, &serial, MS_REAL_FP64, false, NULL, &ms_backend_loop),
               fine = run(cx, c, MS_REAL_FP64, false, NULL, &ms_backend_loop),
               rough = run(cx, &coarse, MS_REAL_FP64, false, NULL, &ms_backend_loop);
    double loss = loss_difference(&fine, &want, 0, 1),
           by_8 = ms_run_relative_norm(&fine.gradients, &want.gradients),
           by_4 = ms_run_relative_norm(&rough.gradients, &want.gradients);
    bool ok = loss <= 1e-12 && by_8 > 1e-4 && by_8 < 0.05 && by_4 > 5.0 * by_8 &&
              by_4 < 40.0 * by_8;
    if (!ok)
        printf("%s, %s, %s: loss %.1e, gradients %.1e in 8 bits, %.1e in 4\n",
               c->model->name, c->stack, ms_plan_text(cx->arena, &c->plan), loss, by_8,
               by_4);
    return ok;
}

bool ms_run_case_fill_experts(ms_run_case *c, long number)
{
    ms_plan *plan = &c->plan;
    double rows = (double)(1 + number % 5);
    long tokens = plan->microbatch * plan->sequence_length /
                  (plan->size[MS_CP] * plan->size[MS_TP]);
    double copies = (double)(tokens * c->model->moe.top_k);
    plan->pad_experts = true;
    plan->expert_capacity = rows * (double)c->model->moe.num_experts / copies;
    return c->model->moe.num_experts > 0;
}

void ms_run_case_choose_modules(ms_run_case *c, long number)
{
    const ms_model *model = c->model;
    ms_rng rng = ms_rng_split(ms_rng_seed(31), (uint64_t)number);
    bool has_shared = model->moe.shared_ffn_hidden > 0;
    c->plan.shared_overlap = has_shared && c->plan.ep > 1 && number % 2 == 1;
    c->plan.recompute_modules = (1 << MS_NUM_MODULES) - 1;
    int legal = c->plan.recompute_modules & ~ms_plan_lacking_modules(&c->plan, model);
    if (c->plan.shared_overlap)
        legal &= ~MS_MODULE_SHARED_EXPERTS;
    int modules = 0;
    while (modules == 0)
        modules = legal & (int)ms_rng_below(&rng, 1 << MS_NUM_MODULES) &
                  (int)ms_rng_below(&rng, 1 << MS_NUM_MODULES);
    c->plan.recompute = MS_RECOMPUTE_SELECTIVE;
    c->plan.recompute_layers = 0;
    c->plan.recompute_budget_frac = -1.0;
    c->plan.recompute_modules = modules;
}

bool ms_run_case_gather_tokens(ms_run_case *c, long number)
{
    (void)number;
    c->plan.dispatcher = MS_DISPATCH_ALL_GATHER;
    return c->model->moe.num_experts > 0 && c->plan.ep > 1;
}

bool ms_run_case_limit_experts(ms_run_case *c, long number)
{
    static const double capacities[] = {0.5, 1.0, 0.8, 1.5};
    c->plan.expert_capacity = capacities[number / 2 % 4];
    c->plan.pad_experts = number % 2 == 1;
    return c->model->moe.num_experts > 0;
}

void ms_run_case_offload(ms_run_case *c, long number)
{
    static const double shares[] = {0.37, 1.0, 0.0, 0.03, 0.81};
    static const ms_host_optimizer optimizers[] = {MS_HOST_UPDATE, MS_HOST_NO_OPTIMIZER,
                                                   MS_HOST_STATES};
    c->plan.offload_activations_frac = shares[number % 5];
    c->plan.offload_optimizer = optimizers[number % 3];
    c->plan.offload_layer_inputs =
        number % 4 == 2 || (number % 5 == 2 && number % 3 == 1);
}

int ms_run_random_plans(const ms_run_tolerance *how, uint64_t seed, long first, long num)
{
    int num_wrong = 0;
    for (long i = first; i < first + num; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_run_case c = ms_run_case_draw(&cx, how, seed, i, 0);
        if (!ms_run_agrees(&cx, &c, &ms_backend_loop, how)) {
            printf("that was case %ld of seed %llu\n", i, (unsigned long long)seed);
            num_wrong++;
        }
        ms_arena_close(cx.arena);
    }
    return num_wrong;
}
