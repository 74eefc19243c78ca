/* Round trips of random plans that frameworks accept: the file that a plan is exported to
 * imports as a plan that is equal in all that the format carries. */
#include "tests/test.h"

#include "tests/support/port_trips.h"

#define MODELS(experts)                                                                  \
    {                                                                                    \
        "llama-3.1-70b", "llama-3.1-8b", (experts), "qwen3-235b-a22b", "deepseek-v3",    \
            "llama-3.1-405b"                                                             \
    }
static const char *const models[] = MODELS("mixtral-8x7b");
/* models that torchtitan has */
static const char *const flavors[] = MODELS("qwen3-30b-a3b");
_Static_assert(sizeof models / sizeof *models == PORT_TRIP_MODELS, "models");

static port_trip open_trip(const char *format, const char *stack,
                           void (*canonical)(ms_plan *plan))
{
    port_trip t = port_trip_open(format, stack, canonical);
    t.models = models;
    return t;
}

/* ---- plans ---- */

static bool once_in(ms_rng *rng, uint64_t times)
{
    return ms_rng_below(rng, times) == 0;
}

/* Choices that random framework plans leave at their defaults; old versions have no CUDA
 * graph of a whole step. */
static void draw_megatron(ms_rng *rng, const ms_model *model, bool old, ms_plan *plan)
{
    static const ms_optimizer optimizers[] = {MS_OPTIMIZER_ADAMW, MS_OPTIMIZER_SGD,
                                              MS_OPTIMIZER_MUON};
    bool moe = model->moe.num_experts > 0;
    if (once_in(rng, 3))
        plan->grad_dtype = MS_STORE_BF16;
    if (plan->compute == MS_FP8 && once_in(rng, 2)) {
        plan->recipe = (ms_recipe)ms_rng_below(rng, MS_RECIPE_NVFP4);
        plan->param_dtype = once_in(rng, 2) ? MS_STORE_FP8 : MS_STORE_DEFAULT;
    }
    if (once_in(rng, 4))
        plan->optimizer = optimizers[ms_rng_below(rng, 3)];
    if (once_in(rng, 4)) {
        plan->optimizer_dtype = once_in(rng, 2) ? MS_STORE_BF16 : MS_STORE_FP8;
        plan->master_dtype = MS_MASTER_FP32;
    } else if (once_in(rng, 4) && plan->zero > 0) {
        plan->offload_optimizer = MS_HOST_UPDATE;
    }
    if (plan->recompute == MS_RECOMPUTE_SELECTIVE && once_in(rng, 2))
        plan->recompute_modules = MS_MODULE_CORE_ATTN | (moe ? MS_MODULE_MOE_ACT : 0);
    if (moe) {
        plan->dispatcher = (ms_dispatcher)ms_rng_below(rng, MS_DISPATCH_HYBRIDEP);
        plan->expert_capacity = once_in(rng, 4) ? 1.25 : 0.0;
        plan->pad_experts = plan->expert_capacity > 0.0 && once_in(rng, 2);
    }
    if (once_in(rng, 4))
        plan->bucket_bytes = 4e6 * (double)(1 + ms_rng_below(rng, 100));
    if (once_in(rng, 4))
        plan->cuda_graphs = once_in(rng, 2) || old ? MS_GRAPHS_LAYERS : MS_GRAPHS_FULL;
    if (once_in(rng, 6))
        plan->partition_activations = true;
}

/* TOML cannot say that sequences are not balanced. */
static void draw_torchtitan(ms_rng *rng, const ms_model *model, bool old, ms_plan *plan)
{
    (void)old;
    plan->cp_balance = MS_CP_HEAD_TAIL;
    if (once_in(rng, 3))
        plan->param_dtype = MS_STORE_BF16;
    if (once_in(rng, 3))
        plan->comm_dtype = MS_STORE_BF16;
    if (plan->compute == MS_FP8 && once_in(rng, 2)) {
        static const ms_recipe recipes[] = {MS_RECIPE_TENSORWISE, MS_RECIPE_ROWWISE,
                                            MS_RECIPE_MXFP8};
        plan->recipe = recipes[ms_rng_below(rng, 3)];
        if (plan->recipe == MS_RECIPE_TENSORWISE && once_in(rng, 2))
            plan->comm_dtype = MS_STORE_FP8;
    }
    if (once_in(rng, 4))
        plan->compile = once_in(rng, 2) ? MS_COMPILE_NONE : MS_COMPILE_REGIONAL;
    if (model->moe.num_experts > 0 && once_in(rng, 2))
        plan->dispatcher = once_in(rng, 2) ? MS_DISPATCH_DEEPEP : MS_DISPATCH_ALL_TO_ALL;
    if (once_in(rng, 4))
        plan->loss_parallel = false;
    if (plan->recompute == MS_RECOMPUTE_AUTO)
        plan->recompute_budget_frac = (double)ms_rng_below(rng, 11) / 10.0;
}

/* Megatron: without shards replicas are part of dp_shard; gradients in 32 bits and
 * all-to-alls are what is priced by default. */
static void make_canonical_megatron(ms_plan *plan)
{
    bool equal = true;
    for (long i = 1; i < plan->num_stage_layers; i++)
        equal = equal && plan->layers_per_stage[i] == plan->layers_per_stage[0];
    if (equal) {
        plan->num_stage_layers = 0;
        plan->layers_per_stage = NULL;
    }
    bool needs = plan->optimizer_dtype != MS_STORE_DEFAULT ||
                 plan->offload_optimizer != MS_HOST_NO_OPTIMIZER;
    if (plan->size[MS_DP_SHARD] * plan->size[MS_CP] == 1)
        plan->zero = needs ? 1 : 0;
    if (plan->zero < 3)
        plan->reshard_after_forward = true;
    if (plan->zero == 0) {
        plan->size[MS_DP_SHARD] *= plan->size[MS_DP_REPLICATE];
        plan->size[MS_DP_REPLICATE] = 1;
    }
    if (plan->ep > 1 && plan->dispatcher == MS_DISPATCH_OF_STACK)
        plan->dispatcher = MS_DISPATCH_ALL_TO_ALL;
    if (plan->size[MS_CP] > 1 && plan->cp_method == MS_CP_ULYSSES)
        plan->cp_balance = MS_CP_HEAD_TAIL;
    if (plan->recompute != MS_RECOMPUTE_SELECTIVE)
        plan->recompute_modules = 0;
    if (plan->virtual_stages == 1)
        plan->microbatch_group = 0;
}

static void megatron_plans_return(void **state)
{
    (void)state;
    port_trip t = open_trip("megatron", "megatron", make_canonical_megatron);
    t.draw_more = draw_megatron;
    port_trips_make(&t, TEST_CASES(500, 60));
}

static void plans_of_old_versions_return(void **state)
{
    (void)state;
    static const char *const stacks[] = {"megatron@0.9", "megatron@0.12",
                                         "megatron@0.14"};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        port_trip t = open_trip("megatron", stacks[i], make_canonical_megatron);
        t.draw_more = draw_megatron;
        port_trips_make(&t, TEST_CASES(100, 20));
    }
}

/* torchtitan: types that follow from others, and the schedule's own group. */
static void make_canonical_torchtitan(ms_plan *plan)
{
    if (plan->size[MS_DP_SHARD] * plan->size[MS_CP] == 1)
        plan->zero = 0;
    if (plan->zero < 3)
        plan->reshard_after_forward = true;
    plan->grad_dtype = plan->optimizer_dtype = MS_STORE_DEFAULT;
    plan->microbatch_group = 0;
    if (plan->compile == MS_COMPILE_REGIONAL)
        plan->compile = MS_COMPILE_OF_STACK;
}

static void torchtitan_plans_return(void **state)
{
    (void)state;
    port_trip t = open_trip("torchtitan", "torchtitan", make_canonical_torchtitan);
    t.models = flavors;
    t.draw_more = draw_torchtitan;
    port_trips_make(&t, TEST_CASES(500, 60));
}

static const char *const llamas[] = {"llama-3.1-70b", "llama-3.1-8b", "llama-2-7b",
                                     "llama-2-70b",   "llama-13b",    "llama-3.1-405b"};

static void draw_nanotron(ms_rng *rng, const ms_model *model, bool old, ms_plan *plan)
{
    (void)model;
    (void)old;
    if (once_in(rng, 3))
        plan->grad_dtype = MS_STORE_BF16;
    if (once_in(rng, 3))
        plan->optimizer = MS_OPTIMIZER_SGD;
    plan->num_stage_layers = 0;
}

/* nanotron: all data-parallel ranks are one axis. */
static void make_canonical_nanotron(ms_plan *plan)
{
    if (plan->size[MS_DP_SHARD] * plan->size[MS_CP] == 1)
        plan->zero = 0;
    plan->size[MS_DP_SHARD] *= plan->size[MS_DP_REPLICATE];
    plan->size[MS_DP_REPLICATE] = 1;
    plan->reshard_after_forward = true;
}

static void nanotron_plans_return(void **state)
{
    (void)state;
    port_trip t = open_trip("nanotron", "nanotron", make_canonical_nanotron);
    t.models = llamas;
    t.draw_more = draw_nanotron;
    port_trips_make(&t, TEST_CASES(500, 60));
}

/* DeepSpeed's file has no pipelines, and tensor or sequence parallelism, not both. */
static void draw_deepspeed(ms_rng *rng, const ms_model *model, bool old, ms_plan *plan)
{
    static const ms_optimizer optimizers[] = {MS_OPTIMIZER_SGD, MS_OPTIMIZER_LION,
                                              MS_OPTIMIZER_MUON};
    (void)model;
    (void)old;
    bool both = plan->size[MS_CP] > 1 && plan->size[MS_TP] > 1;
    plan->gpus /= plan->size[MS_PP] * (both ? plan->size[MS_TP] : 1);
    plan->size[MS_PP] = plan->virtual_stages = 1;
    plan->size[MS_TP] = both ? 1 : plan->size[MS_TP];
    ms_plan_set_schedule(plan, MS_1F1B);
    plan->num_stage_layers = 0;
    plan->reshard_after_forward = true;
    long sharers = plan->size[MS_DP_SHARD] * plan->size[MS_CP];
    if (once_in(rng, 3))
        plan->optimizer = optimizers[ms_rng_below(rng, 3)];
    if (once_in(rng, 3))
        plan->grad_dtype = (ms_storage)ms_rng_below(rng, MS_STORE_BF16 + 1);
    if (once_in(rng, 3))
        plan->comm_dtype = (ms_storage)ms_rng_below(rng, MS_STORE_BF16 + 1);
    if (plan->compute == MS_BF16 && once_in(rng, 4))
        plan->optimizer_dtype = MS_STORE_BF16;
    if (once_in(rng, 4))
        plan->bucket_bytes = 4e6 * (double)(1 + ms_rng_below(rng, 100));
    if (plan->recompute == MS_RECOMPUTE_FULL) {
        plan->partition_activations = once_in(rng, 4);
        plan->offload_layer_inputs = once_in(rng, 4);
    }
    if (plan->zero > 0 && sharers > 1 && once_in(rng, 4))
        plan->offload_optimizer = MS_HOST_UPDATE;
    if (plan->zero == 3 && sharers > 1 && once_in(rng, 2)) {
        plan->gather_bits = once_in(rng, 2) ? MS_QUANTISED_8 : MS_NOT_QUANTISED;
        plan->reduce_bits = once_in(rng, 2) ? MS_QUANTISED_4 : MS_NOT_QUANTISED;
        plan->reshard_ranks = sharers % 4 == 0 && once_in(rng, 2) ? 2 : 0;
    }
}

/* DeepSpeed: replicas of shards are ZeRO-3's; otherwise they are plain data parallelism. */
static void make_canonical_deepspeed(ms_plan *plan)
{
    if (plan->size[MS_DP_SHARD] * plan->size[MS_CP] == 1)
        plan->zero = 0;
    if (plan->zero == 0) {
        plan->size[MS_DP_SHARD] *= plan->size[MS_DP_REPLICATE];
        plan->size[MS_DP_REPLICATE] = 1;
    }
    plan->reshard_ranks = ms_plan_secondary_shards(plan);
    plan->reshard_after_forward = true;
    plan->cp_balance = MS_CP_HEAD_TAIL;
}

static void deepspeed_plans_return(void **state)
{
    (void)state;
    port_trip t = open_trip("deepspeed", "deepspeed", make_canonical_deepspeed);
    t.draw_more = draw_deepspeed;
    port_trips_make(&t, TEST_CASES(500, 60));
}

/* Accelerate: full recomputation is FSDP's; context parallelism balances sequences. */
static void draw_accelerate(ms_rng *rng, const ms_model *model, bool old, ms_plan *plan)
{
    (void)model;
    (void)old;
    plan->num_stage_layers = 0;
    plan->virtual_stages = 1;
    ms_plan_set_schedule(plan, MS_1F1B);
    plan->reshard_after_forward = plan->zero < 3 || once_in(rng, 2);
    plan->cp_balance = MS_CP_HEAD_TAIL;
    if (plan->size[MS_DP_SHARD] * plan->size[MS_CP] * plan->size[MS_TP] == 1)
        plan->recompute = MS_RECOMPUTE_NONE;
}

/* The batch is the training script's; what is neither sharded nor split is a replica. */
static void make_canonical_accelerate(ms_plan *plan)
{
    plan->microbatch = 1;
    plan->global_batch = ms_plan_data_parallel(plan);
    if (plan->size[MS_DP_SHARD] * plan->size[MS_CP] == 1)
        plan->zero = 0;
    if (plan->zero < 3)
        plan->reshard_after_forward = true;
}

static void accelerate_plans_return(void **state)
{
    (void)state;
    port_trip t = open_trip("accelerate", "accelerate", make_canonical_accelerate);
    t.draw_more = draw_accelerate;
    port_trips_make(&t, TEST_CASES(500, 60));
}

/* A section of DeepSpeed has stages and offloading, and Ulysses' ranks. */
static void draw_section(ms_rng *rng, const ms_model *model, bool old, ms_plan *plan)
{
    (void)model;
    (void)old;
    plan->gpus /= plan->size[MS_PP] * plan->size[MS_TP];
    plan->size[MS_PP] = plan->virtual_stages = plan->size[MS_TP] = 1;
    if (plan->zero > 0) {
        plan->gpus /= plan->size[MS_DP_REPLICATE];
        plan->global_batch /= plan->size[MS_DP_REPLICATE];
        plan->size[MS_DP_REPLICATE] = 1;
    }
    plan->ep = plan->etp = 1;
    ms_plan_set_schedule(plan, MS_1F1B);
    plan->num_stage_layers = 0;
    plan->reshard_after_forward = true;
    plan->recompute = MS_RECOMPUTE_NONE;
    if (plan->zero > 0 && plan->size[MS_DP_SHARD] * plan->size[MS_CP] > 1 &&
        once_in(rng, 2))
        plan->offload_optimizer = MS_HOST_UPDATE;
    plan->grad_dtype = MS_STORE_DEFAULT;
}

/* The section has the number of micro-batches, not their size. */
static void make_canonical_section(ms_plan *plan)
{
    plan->global_batch = ms_plan_microbatches(plan) * ms_plan_data_parallel(plan);
    plan->microbatch = 1;
    make_canonical_deepspeed(plan);
}

static void sections_of_deepspeed_return(void **state)
{
    (void)state;
    port_trip t = open_trip("accelerate", "deepspeed", make_canonical_section);
    t.draw_more = draw_section;
    port_trips_make(&t, TEST_CASES(200, 30));
}

/* MaxText: policies of all layers, one type of both moments, experts split as tensors are
 * and over fsdp's ranks. */
static void draw_maxtext(ms_rng *rng, const ms_model *model, bool old, ms_plan *plan)
{
    static const int modules[] = {MS_MODULE_NORMS | MS_MODULE_ACTIVATIONS,
                                  MS_MODULE_NORMS | MS_MODULE_ACTIVATIONS |
                                      MS_MODULE_CORE_ATTN,
                                  MS_MODULE_NORMS | MS_MODULE_MLP,
                                  MS_MODULE_NORMS | MS_MODULE_MLP | MS_MODULE_CORE_ATTN};
    static const ms_recipe recipes[] = {MS_RECIPE_DEFAULT, MS_RECIPE_DELAYED,
                                        MS_RECIPE_TENSORWISE, MS_RECIPE_MXFP8};
    static const ms_optimizer optimizers[] = {MS_OPTIMIZER_ADAMW, MS_OPTIMIZER_SGD,
                                              MS_OPTIMIZER_MUON};
    (void)old;
    bool moe = model->moe.num_experts > 0;
    plan->num_stage_layers = 0;
    plan->microbatch_group = 0;
    plan->etp = moe ? plan->size[MS_TP] : 1;
    plan->ep = plan->size[MS_DP_SHARD] % plan->ep == 0 ? plan->ep : 1;
    plan->reshard_after_forward = plan->size[MS_PP] == 1 || once_in(rng, 2);
    plan->recompute = once_in(rng, 3) ? MS_RECOMPUTE_FULL : MS_RECOMPUTE_SELECTIVE;
    if (plan->recompute == MS_RECOMPUTE_SELECTIVE)
        plan->recompute_modules = modules[ms_rng_below(rng, 4)];
    else
        plan->offload_layer_inputs = once_in(rng, 4);
    bool minimal = plan->recompute_modules == modules[1];
    plan->offload_activations_frac = minimal && once_in(rng, 4) ? 1.0 : 0.0;
    if (plan->compute == MS_FP8)
        plan->recipe = recipes[ms_rng_below(rng, 4)];
    plan->param_dtype = once_in(rng, 3) ? MS_STORE_BF16 : MS_STORE_DEFAULT;
    plan->grad_dtype = once_in(rng, 3) ? MS_STORE_BF16 : MS_STORE_DEFAULT;
    plan->optimizer = optimizers[ms_rng_below(rng, 3)];
    plan->offload_optimizer = once_in(rng, 4) ? MS_HOST_STATES : MS_HOST_NO_OPTIMIZER;
    if (moe && once_in(rng, 4)) {
        plan->expert_capacity = 1.25;
        plan->pad_experts = true;
    }
}

/* The largest node, up to a drawn size, on which no axis crosses nodes. */
static long node_of_maxtext(ms_rng *rng, const ms_plan *plan)
{
    static const unsigned char inner[] = {MS_TP, MS_CP, MS_DP_SHARD, MS_DP_REPLICATE,
                                          MS_PP};
    for (long node = 1L << ms_rng_below(rng, 5); node > 1; node /= 2) {
        long left = node;
        bool fits = plan->gpus % node == 0;
        for (int i = 0; i < MS_NUM_PLAN_AXES && left > 1 && fits; i++) {
            long size = plan->size[inner[i]];
            fits = left % size == 0 || size % left == 0;
            left = left % size == 0 ? left / size : 1;
        }
        if (fits)
            return node;
    }
    return 1;
}

/* Data without shards is one axis; repeats of stages are looped-bfs, and one is gpipe. */
static void make_canonical_maxtext(ms_plan *plan)
{
    if (plan->size[MS_DP_SHARD] * plan->size[MS_CP] == 1)
        plan->zero = 0;
    if (plan->zero == 0) {
        plan->size[MS_DP_REPLICATE] *= plan->size[MS_DP_SHARD];
        plan->size[MS_DP_SHARD] = 1;
    }
    if (plan->zero < 3)
        plan->reshard_after_forward = true;
    if (plan->size[MS_PP] > 1)
        ms_plan_set_schedule(plan, plan->virtual_stages > 1 ? MS_LOOPED_BFS : MS_GPIPE);
    if (plan->compute == MS_FP8 && plan->recipe == MS_RECIPE_DEFAULT)
        plan->recipe = MS_RECIPE_TENSORWISE;
    if (plan->compute == MS_FP4)
        plan->recipe = MS_RECIPE_NVFP4;
    if (plan->param_dtype == MS_STORE_BF16 && plan->grad_dtype == MS_STORE_DEFAULT)
        plan->grad_dtype = MS_STORE_BF16;
}

static void maxtext_plans_return(void **state)
{
    (void)state;
    port_trip t = open_trip("maxtext", "maxtext", make_canonical_maxtext);
    t.draw_more = draw_maxtext;
    t.per_node = node_of_maxtext;
    port_trips_make(&t, TEST_CASES(500, 60));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(megatron_plans_return),
        cmocka_unit_test(plans_of_old_versions_return),
        cmocka_unit_test(torchtitan_plans_return),
        cmocka_unit_test(nanotron_plans_return),
        cmocka_unit_test(deepspeed_plans_return),
        cmocka_unit_test(accelerate_plans_return),
        cmocka_unit_test(sections_of_deepspeed_return),
        cmocka_unit_test(maxtext_plans_return),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
