/* Megatron-LM: types of numbers, recipes, optimizer, buckets, CUDA graphs. */
#include "costmodel/port/megatron_priv.h"

#include <math.h>

/* ---- compute type and recipe ---- */

static const ms_port_word fp8_formats[] = {{"hybrid", 1}, {"e4m3", 2}, {0}};
static const ms_port_word fp8_recipes[] = {{"delayed", MS_RECIPE_DELAYED},
                                           {"tensorwise", MS_RECIPE_TENSORWISE},
                                           {"blockwise", MS_RECIPE_BLOCKWISE},
                                           {"mxfp8", MS_RECIPE_MXFP8},
                                           {0}};
static const ms_port_word fp4_formats[] = {{"e2m1", 1}, {0}};
static const ms_port_word fp4_recipes[] = {{"nvfp4", MS_RECIPE_NVFP4}, {0}};

static void put_recipe(ms_port *port, const char *key, const ms_port_word *recipes)
{
    ms_recipe recipe = port->plan->recipe;
    const char *word = ms_port_word_of(recipes, recipe);
    if (word != NULL)
        ms_port_put(port, key, word);
    else if (recipe != MS_RECIPE_DEFAULT)
        ms_port_leave_choice(port, MS_CHOOSE_RECIPE);
}

static void put_compute(ms_port *port)
{
    ms_dtype type = port->plan->compute;
    if (type == MS_FP16)
        ms_port_put(port, "--fp16", NULL);
    else if (type == MS_BF16 || type == MS_FP8 || type == MS_FP4)
        ms_port_put(port, "--bf16", NULL);
    else if (type != MS_FP32)
        ms_port_leave_choice(port, MS_CHOOSE_COMPUTE);
    if (type == MS_FP8) {
        ms_port_put(port, "--fp8-format", "hybrid");
        put_recipe(port, "--fp8-recipe", fp8_recipes);
    } else if (type == MS_FP4) {
        ms_port_put(port, "--fp4-format", "e2m1");
        put_recipe(port, "--fp4-recipe", fp4_recipes);
    }
}

/* The recipe of 8 bits that the file names; without one the stack's own way, which prices
 * Megatron's default. */
static ms_status take_recipe(ms_port *port, const char *key, const ms_port_word *recipes,
                             const char *usual)
{
    long recipe = MS_RECIPE_DEFAULT;
    MS_TRY(ms_port_take_word(port, key, recipes, &recipe));
    port->plan->recipe = (ms_recipe)recipe;
    if (recipe == MS_RECIPE_DEFAULT)
        ms_port_assume(port, "%s %s, as the stack's own", key, usual);
    return MS_OK;
}

static ms_status take_compute(ms_port *port)
{
    long fp8 = 0, fp4 = 0;
    bool bf16 = ms_port_has(port, "--bf16"), fp16 = ms_port_has(port, "--fp16");
    const char *key = ms_port_has(port, "--fp8-format") ? "--fp8-format" : "--fp8";
    MS_TRY(ms_port_take_word(port, key, fp8_formats, &fp8));
    MS_TRY(ms_port_take_word(port, "--fp4-format", fp4_formats, &fp4));
    port->plan->compute = fp4 > 0   ? MS_FP4
                          : fp8 > 0 ? MS_FP8
                          : bf16    ? MS_BF16
                          : fp16    ? MS_FP16
                                    : MS_FP32;
    if (fp4 > 0)
        return take_recipe(port, "--fp4-recipe", fp4_recipes, "nvfp4");
    if (fp8 > 0)
        return take_recipe(port, "--fp8-recipe", fp8_recipes, "delayed");
    if (!bf16 && !fp16)
        ms_port_assume(port, "32 bits: neither --bf16 nor --fp16 is given");
    return MS_OK;
}

static const char *const compute_keys[] = {
    "--bf16",       "--fp16",       "--fp8-format", "--fp8",
    "--fp8-recipe", "--fp4-format", "--fp4-recipe", NULL};
static const int compute_choices[] = {MS_CHOOSE_RECIPE, -1};

/* ---- parameters, gradients, messages ---- */

static bool is_whole(ms_storage type)
{
    return type == MS_STORE_DEFAULT || type == MS_STORE_FP32;
}

static void put_params(ms_port *port)
{
    const ms_plan *plan = port->plan;
    ms_storage own = plan->compute == MS_FP32 ? MS_STORE_FP32 : MS_STORE_BF16;
    if (plan->param_dtype == MS_STORE_FP8)
        ms_port_put(port, "--fp8-param-gather", NULL);
    else if (plan->param_dtype != MS_STORE_DEFAULT && plan->param_dtype != own)
        ms_port_leave_choice(port, MS_CHOOSE_PARAM_DTYPE);
    if (plan->comm_dtype == MS_STORE_FP8 && plan->param_dtype != MS_STORE_FP8)
        ms_port_leave_choice(port, MS_CHOOSE_COMM_DTYPE);
}

/* Gradients are summed and sent in one type. */
static void put_grads(ms_port *port)
{
    const ms_plan *plan = port->plan;
    bool narrow = plan->grad_dtype == MS_STORE_BF16;
    if (narrow)
        ms_port_put(port, "--grad-reduce-in-bf16", NULL);
    bool sent_narrow = plan->comm_dtype == MS_STORE_BF16;
    bool sent_whole = plan->comm_dtype == MS_STORE_FP32;
    if ((narrow && sent_whole) || (!narrow && sent_narrow))
        ms_port_leave_choice(port, MS_CHOOSE_COMM_DTYPE);
}

static void put_types(ms_port *port)
{
    put_params(port);
    put_grads(port);
}

static ms_status take_types(ms_port *port)
{
    ms_plan *plan = port->plan;
    (void)ms_port_has(port, "--accumulate-allreduce-grads-in-fp32");
    if (ms_port_has(port, "--fp8-param-gather"))
        plan->param_dtype = MS_STORE_FP8;
    if (ms_port_has(port, "--grad-reduce-in-bf16"))
        plan->grad_dtype = MS_STORE_BF16;
    return MS_OK;
}

static const char *const type_keys[] = {"--fp8-param-gather", "--grad-reduce-in-bf16",
                                        "--accumulate-allreduce-grads-in-fp32", NULL};
static const int type_choices[] = {MS_CHOOSE_GRAD_DTYPE, MS_CHOOSE_COMM_DTYPE, -1};

/* ---- optimizer ---- */

static const ms_port_word optimizers[] = {{"adam", MS_OPTIMIZER_ADAMW},
                                          {"sgd", MS_OPTIMIZER_SGD},
                                          {"muon", MS_OPTIMIZER_MUON},
                                          {0}};
static const ms_port_word state_types[] = {
    {"fp32", MS_STORE_DEFAULT}, {"bf16", MS_STORE_BF16}, {"fp8", MS_STORE_FP8}, {0}};
static const ms_port_word main_types[] = {{"fp32", MS_MASTER_FP32}, {0}};
static const ms_port_word grad_types[] = {
    {"fp32", MS_STORE_DEFAULT}, {"bf16", MS_STORE_BF16}, {0}};

/* Moments in 16 or 8 bits leave the main parameters in 32; a plan whose copy follows its
 * states in 16 bits has another. */
static void put_states(ms_port *port)
{
    const ms_plan *plan = port->plan;
    bool narrow = !is_whole(plan->optimizer_dtype);
    bool host = plan->offload_optimizer == MS_HOST_UPDATE;
    bool whole = plan->size[MS_DP_SHARD] * plan->size[MS_CP] > 1 && plan->zero == 0;
    if (narrow || host)
        ms_port_put(port, "--use-precision-aware-optimizer", NULL);
    if (narrow) {
        const char *word = ms_port_word_of(state_types, plan->optimizer_dtype);
        if (word == NULL) {
            ms_port_leave_choice(port, MS_CHOOSE_OPTIMIZER_DTYPE);
        } else {
            ms_port_put(port, "--exp-avg-dtype", word);
            ms_port_put(port, "--exp-avg-sq-dtype", word);
        }
    }
    bool follows =
        plan->master_dtype == MS_MASTER_DEFAULT && plan->optimizer_dtype == MS_STORE_BF16;
    if (follows || plan->master_dtype == MS_MASTER_BF16 ||
        plan->master_dtype == MS_MASTER_NONE) {
        ms_port_leave_out(port, "the optimizer's copy of parameters %s (master_dtype)",
                          follows ? "in the type of its states"
                          : plan->master_dtype == MS_MASTER_BF16 ? "in bf16"
                                                                 : "left out");
    }
    if (host && !whole) {
        ms_port_put(port, "--optimizer-cpu-offload", NULL);
        ms_port_put(port, "--optimizer-offload-fraction", "1.0");
    } else if (plan->offload_optimizer != MS_HOST_NO_OPTIMIZER) {
        ms_port_leave_choice(port, MS_CHOOSE_OFFLOAD_OPTIMIZER);
    }
}

static ms_status take_host(ms_port *port)
{
    double share = 1.0;
    const ms_port_setting *setting = ms_port_find(port, "--optimizer-offload-fraction");
    MS_TRY(ms_port_take_number(port, "--optimizer-offload-fraction", 0.0, 1.0, &share));
    if (!ms_port_has(port, "--optimizer-cpu-offload") || share == 0.0)
        return MS_OK;
    if (share < 1.0) {
        return ms_port_fail(port, setting,
                            "plans keep all optimizer states in host memory "
                            "or none, not %g of them",
                            share);
    }
    port->plan->offload_optimizer = MS_HOST_UPDATE;
    return MS_OK;
}

static ms_status take_states(ms_port *port)
{
    ms_plan *plan = port->plan;
    long first = MS_STORE_DEFAULT, second = MS_STORE_DEFAULT, master = MS_MASTER_FP32;
    long grads = plan->grad_dtype;
    (void)ms_port_has(port, "--use-precision-aware-optimizer");
    MS_TRY(ms_port_take_word(port, "--exp-avg-dtype", state_types, &first));
    MS_TRY(ms_port_take_word(port, "--exp-avg-sq-dtype", state_types, &second));
    MS_TRY(ms_port_take_word(port, "--main-params-dtype", main_types, &master));
    MS_TRY(ms_port_take_word(port, "--main-grads-dtype", grad_types, &grads));
    if (first != second) {
        const char *key = ms_port_has(port, "--exp-avg-sq-dtype") ? "--exp-avg-sq-dtype"
                                                                  : "--exp-avg-dtype";
        return ms_port_fail(port, ms_port_find(port, key),
                            "plans have both moments in one type");
    }
    plan->optimizer_dtype = (ms_storage)first;
    plan->grad_dtype = (ms_storage)grads;
    if (first != MS_STORE_DEFAULT)
        plan->master_dtype = MS_MASTER_FP32;
    return take_host(port);
}

static const char *const state_keys[] = {"--use-precision-aware-optimizer",
                                         "--exp-avg-dtype",
                                         "--exp-avg-sq-dtype",
                                         "--main-params-dtype",
                                         "--main-grads-dtype",
                                         "--optimizer-cpu-offload",
                                         "--optimizer-offload-fraction",
                                         NULL};
static const int state_choices[] = {MS_CHOOSE_MASTER_DTYPE, MS_CHOOSE_OFFLOAD_OPTIMIZER,
                                    -1};

/* ---- buckets ---- */

static double gradient_bytes(const ms_plan *plan)
{
    return ms_plan_get(plan, MS_CHOOSE_GRAD_DTYPE) == MS_STORE_BF16 ? 2.0 : 4.0;
}

/* Megatron counts elements. */
static void put_bucket(ms_port *port)
{
    double elements = port->plan->bucket_bytes / gradient_bytes(port->plan);
    if (elements == 0.0)
        return;
    if (elements != floor(elements) || elements > 1e12)
        ms_port_leave_choice(port, MS_CHOOSE_BUCKET_BYTES);
    else
        ms_port_put_whole(port, "--ddp-bucket-size", (long)elements);
}

static ms_status take_bucket(ms_port *port)
{
    long elements = 0;
    MS_TRY(ms_port_take_whole(port, "--ddp-bucket-size", 1, 1000000000000, &elements));
    port->plan->bucket_bytes = (double)elements * gradient_bytes(port->plan);
    return MS_OK;
}

/* ---- CUDA graphs ---- */

static const ms_port_word implementations[] = {
    {"none", 0}, {"local", 1}, {"transformer_engine", 1}, {0}};

/* Names from memory: --enable-cuda-graph before 0.15, --cuda-graph-impl since then. */
static void put_graphs(ms_port *port)
{
    ms_cuda_graphs kind = port->plan->cuda_graphs;
    if (kind == MS_GRAPHS_NONE)
        return;
    if (ms_port_since(port, 15))
        ms_port_put(port, "--cuda-graph-impl", "local");
    else
        ms_port_put(port, "--enable-cuda-graph", NULL);
    if (kind == MS_GRAPHS_FULL && ms_port_since(port, 14))
        ms_port_put(port, "--cuda-graph-scope", "full_iteration");
    else if (kind == MS_GRAPHS_FULL)
        ms_port_leave_choice(port, MS_CHOOSE_CUDA_GRAPHS);
}

static ms_status take_graphs(ms_port *port)
{
    static const ms_port_word scopes[] = {
        {"full_iteration", MS_GRAPHS_FULL}, {"full", MS_GRAPHS_LAYERS}, {0}};
    long graphs = ms_port_has(port, "--enable-cuda-graph") ||
                  ms_port_has(port, "--external-cuda-graph");
    MS_TRY(ms_port_take_word(port, "--cuda-graph-impl", implementations, &graphs));
    long scope = MS_GRAPHS_LAYERS;
    MS_TRY(ms_port_take_word(port, "--cuda-graph-scope", scopes, &scope));
    port->plan->cuda_graphs = graphs > 0 ? (ms_cuda_graphs)scope : MS_GRAPHS_NONE;
    return MS_OK;
}

static const char *const graph_keys[] = {"--cuda-graph-impl", "--cuda-graph-scope",
                                         "--enable-cuda-graph", "--external-cuda-graph",
                                         NULL};

#define OWN(choose, puts, takes)                                                         \
    .kind = MS_PORT_OWN, .choice = (choose), .put = (puts), .take = (takes)

const ms_port_row ms_megatron_type_rows[] = {
    {OWN(MS_CHOOSE_COMPUTE, put_compute, take_compute), .keys = compute_keys,
     .choices = compute_choices},
    {OWN(MS_CHOOSE_PARAM_DTYPE, put_types, take_types), .keys = type_keys,
     .choices = type_choices},
    {.kind = MS_PORT_WORD,
     .key = "--optimizer",
     .choice = MS_CHOOSE_OPTIMIZER,
     .words = optimizers,
     .absent = MS_OPTIMIZER_ADAMW},
    {OWN(MS_CHOOSE_OPTIMIZER_DTYPE, put_states, take_states), .keys = state_keys,
     .choices = state_choices},
    {OWN(MS_CHOOSE_BUCKET_BYTES, put_bucket, take_bucket), .key = "--ddp-bucket-size"},
    {OWN(MS_CHOOSE_CUDA_GRAPHS, put_graphs, take_graphs), .keys = graph_keys},
    {0},
};
