/* MaxText: its configuration in YAML, or the words KEY=VALUE of a launch script. */
#include "base/print.h"
#include "costmodel/port/maxtext_priv.h"
#include "costmodel/port/script.h"
#include "costmodel/port/yaml.h"

#include <ctype.h>
#include <string.h>

/* ---- recomputation ---- */

#define POLICY "remat_policy"
#define INPUTS "decoder_layer_input"

/* Policies that keep results of modules apart from those that a plan recomputes. The
 * products of matrices are kept where no module stands that contains them. */
enum {
    POINTWISE = MS_MODULE_NORMS | MS_MODULE_ACTIVATIONS
};
typedef struct policy {
    const char *name;
    ms_recompute mode;
    int modules;
    bool offloads; /* kept results are in host memory */
} policy;

static const policy policies[] = {
    {"full", MS_RECOMPUTE_FULL, 0, false},
    {"minimal_with_context", MS_RECOMPUTE_SELECTIVE, POINTWISE, false},
    {"minimal", MS_RECOMPUTE_SELECTIVE, POINTWISE | MS_MODULE_CORE_ATTN, false},
    {"save_dot_with_context_except_mlp", MS_RECOMPUTE_SELECTIVE,
     MS_MODULE_NORMS | MS_MODULE_MLP, false},
    {"save_dot_except_mlp", MS_RECOMPUTE_SELECTIVE,
     MS_MODULE_NORMS | MS_MODULE_MLP | MS_MODULE_CORE_ATTN, false},
    {"minimal_offloaded", MS_RECOMPUTE_SELECTIVE, POINTWISE | MS_MODULE_CORE_ATTN, true},
    {"minimal_flash", MS_RECOMPUTE_SELECTIVE, POINTWISE, false}, /* older name */
};
#define NUM_POLICIES (sizeof policies / sizeof *policies)

static const policy *policy_of(const ms_plan *plan)
{
    bool offloads = plan->offload_activations_frac == 1.0;
    for (size_t i = 0; i < NUM_POLICIES; i++) {
        const policy *p = &policies[i];
        bool same = p->mode != MS_RECOMPUTE_SELECTIVE ||
                    (plan->recompute_modules == p->modules && offloads == p->offloads);
        if (p->mode == plan->recompute && same)
            return p;
    }
    return NULL;
}

/* Backward makes at least what is no product of matrices again. */
static void put_recompute(ms_port *port)
{
    const ms_plan *plan = port->plan;
    const policy *p = policy_of(plan);
    bool is_full = plan->recompute == MS_RECOMPUTE_FULL;
    if (p == NULL)
        ms_port_leave_choice(port, plan->recompute == MS_RECOMPUTE_SELECTIVE
                                       ? MS_CHOOSE_RECOMPUTE_MODULES
                                       : MS_CHOOSE_RECOMPUTE);
    if (is_full && plan->recompute_layers > 0)
        ms_port_leave_choice(port, MS_CHOOSE_RECOMPUTE_LAYERS);
    if (plan->offload_activations_frac > 0.0 && (p == NULL || !p->offloads))
        ms_port_leave_choice(port, MS_CHOOSE_OFFLOAD_ACTIVATIONS);
    if (plan->offload_layer_inputs && !is_full)
        ms_port_leave_choice(port, MS_CHOOSE_OFFLOAD_LAYER_INPUTS);
    if (is_full && plan->offload_layer_inputs) {
        ms_port_put_text(port, POLICY, "custom");
        ms_port_put_text(port, INPUTS, "offload");
        return;
    }
    ms_port_put_text(port, POLICY, p == NULL ? "minimal_with_context" : p->name);
}

/* Tensors that the policy `custom` keeps on the device, moves to the host or makes again. */
static const char *const tensors[] = {
    "context",   "mlpwi",         "mlpwi_0",     "mlpwi_1",   "mlpwo",
    "moe_mlpwi", "moe_mlpwi_0",   "moe_mlpwi_1", "moe_mlpwo", "query_proj",
    "key_proj",  "value_proj",    "qkv_proj",    "out_proj",  "mla_q",
    "mla_kv",    "attention_out", NULL};

static ms_status take_custom(ms_port *port)
{
    static const ms_port_word places[] = {
        {"remat", 0}, {"device", 1}, {"offload", 2}, {0}};
    long inputs = 1;
    MS_TRY(ms_port_take_word(port, INPUTS, places, &inputs));
    for (int i = 0; tensors[i] != NULL; i++) {
        long place = 0;
        MS_TRY(ms_port_take_word(port, tensors[i], places, &place));
        if (place != 0)
            return ms_port_fail(port, ms_port_find(port, tensors[i]),
                                "no plan keeps one tensor of a layer");
    }
    port->plan->recompute = MS_RECOMPUTE_FULL;
    port->plan->offload_layer_inputs = inputs == 2;
    return MS_OK;
}

static ms_status fail_policy(ms_port *port, const ms_port_setting *setting)
{
    const char *list = "";
    for (size_t i = 0; i < NUM_POLICIES; i++)
        list = ms_arena_printf(port->cx->arena, "%s%s, ", list, policies[i].name);
    ms_port_fail(port, setting, "\"%s\" is no policy that a plan can have",
                 setting->value == NULL ? "" : setting->value);
    return ms_hint(port->cx, "one of %scustom", list);
}

static ms_status take_recompute(ms_port *port)
{
    ms_plan *plan = port->plan;
    const ms_port_setting *setting = ms_port_find(port, POLICY);
    const char *name =
        setting == NULL || setting->value == NULL ? "full" : setting->value;
    if (setting == NULL && !ms_port_is_given(port, MS_CHOOSE_RECOMPUTE))
        ms_port_assume(port, POLICY " full");
    if (strcmp(name, "custom") == 0)
        return take_custom(port);
    (void)ms_port_has(port, INPUTS);
    for (int i = 0; tensors[i] != NULL; i++)
        (void)ms_port_has(port, tensors[i]);
    for (size_t i = 0; i < NUM_POLICIES; i++) {
        if (strcmp(policies[i].name, name) != 0)
            continue;
        plan->recompute = policies[i].mode;
        plan->recompute_modules = policies[i].modules;
        plan->offload_activations_frac = policies[i].offloads ? 1.0 : 0.0;
        return MS_OK;
    }
    return fail_policy(port, setting);
}

static const char *const recompute_keys[] = {POLICY, INPUTS, NULL};
static const int recompute_choices[] = {
    MS_CHOOSE_RECOMPUTE_LAYERS,     MS_CHOOSE_RECOMPUTE_MODULES,
    MS_CHOOSE_RECOMPUTE_BUDGET,     MS_CHOOSE_OFFLOAD_ACTIVATIONS,
    MS_CHOOSE_OFFLOAD_LAYER_INPUTS, -1};

/* ---- types ---- */

/* GEMMs in 8 and 4 bits. A plan without a recipe has the one that takes several
 * micro-batches. */
typedef struct quantization {
    const char *name;
    ms_dtype compute;
    ms_recipe recipe;
} quantization;

static const quantization quantizations[] = {
    {"te_fp8_delayedscaling", MS_FP8, MS_RECIPE_DELAYED},
    {"te_fp8_currentscaling", MS_FP8, MS_RECIPE_TENSORWISE},
    {"te_fp8_currentscaling", MS_FP8, MS_RECIPE_DEFAULT},
    {"te_mxfp8", MS_FP8, MS_RECIPE_MXFP8},
    {"te_nvfp4", MS_FP4, MS_RECIPE_NVFP4},
    {"te_nvfp4", MS_FP4, MS_RECIPE_DEFAULT},
    {"fp8", MS_FP8, MS_RECIPE_DELAYED},
    {"nanoo_fp8", MS_FP8, MS_RECIPE_DELAYED},
};
#define NUM_QUANTIZATIONS (sizeof quantizations / sizeof *quantizations)

static const ms_port_word types[] = {{"bfloat16", MS_BF16}, {"float32", MS_FP32}, {0}};

static void put_compute(ms_port *port)
{
    const ms_plan *plan = port->plan;
    const char *word = ms_port_word_of(types, plan->compute);
    ms_port_put_text(port, "dtype", word == NULL ? "bfloat16" : word);
    if (word != NULL)
        return;
    for (size_t i = 0; i < NUM_QUANTIZATIONS; i++) {
        const quantization *q = &quantizations[i];
        if (q->compute == plan->compute && q->recipe == plan->recipe) {
            ms_port_put_text(port, "quantization", q->name);
            return;
        }
    }
    bool narrow = plan->compute == MS_FP8 || plan->compute == MS_FP4;
    ms_port_leave_choice(port, narrow ? MS_CHOOSE_RECIPE : MS_CHOOSE_COMPUTE);
}

static ms_status take_compute(ms_port *port)
{
    ms_plan *plan = port->plan;
    long type = MS_BF16;
    MS_TRY(ms_port_take_word(port, "dtype", types, &type));
    plan->compute = (ms_dtype)type;
    const ms_port_setting *setting = ms_port_find(port, "quantization");
    if (setting == NULL || setting->value == NULL || setting->value[0] == '\0')
        return MS_OK;
    for (size_t i = 0; i < NUM_QUANTIZATIONS; i++) {
        if (strcmp(quantizations[i].name, setting->value) == 0) {
            plan->compute = quantizations[i].compute;
            plan->recipe = quantizations[i].recipe;
            return MS_OK;
        }
    }
    ms_port_fail(port, setting, "\"%s\" is nothing that a plan can have", setting->value);
    return ms_hint(port->cx, "one of fp8, te_fp8_delayedscaling, te_fp8_currentscaling, "
                             "te_mxfp8, te_nvfp4");
}

static const char *const compute_keys[] = {"dtype", "quantization", NULL};
static const int compute_choices[] = {MS_CHOOSE_RECIPE, -1};

/* Moments have the type of the weights; gradients one of their own. */
static void put_types(ms_port *port)
{
    const ms_plan *plan = port->plan;
    bool narrow = plan->param_dtype == MS_STORE_BF16;
    ms_storage own = narrow ? MS_STORE_BF16 : MS_STORE_FP32;
    ms_storage grads = plan->grad_dtype == MS_STORE_DEFAULT ? own : plan->grad_dtype;
    if (plan->param_dtype > MS_STORE_BF16)
        ms_port_leave_choice(port, MS_CHOOSE_PARAM_DTYPE);
    if (grads > MS_STORE_BF16)
        ms_port_leave_choice(port, MS_CHOOSE_GRAD_DTYPE);
    if (plan->optimizer_dtype != MS_STORE_DEFAULT && plan->optimizer_dtype != own)
        ms_port_leave_choice(port, MS_CHOOSE_OPTIMIZER_DTYPE);
    ms_port_put_text(port, "weight_dtype", narrow ? "bfloat16" : "float32");
    ms_port_put_text(port, "grad_dtype", grads == MS_STORE_BF16 ? "bfloat16" : "float32");
}

static ms_status take_types(ms_port *port)
{
    static const ms_port_word stored[] = {
        {"float32", MS_STORE_FP32}, {"bfloat16", MS_STORE_BF16}, {0}};
    ms_plan *plan = port->plan;
    long weights = MS_STORE_FP32, grads = MS_STORE_FP32;
    MS_TRY(ms_port_take_word(port, "weight_dtype", stored, &weights));
    MS_TRY(ms_port_take_word(port, "grad_dtype", stored, &grads));
    plan->param_dtype = weights == MS_STORE_BF16 ? MS_STORE_BF16 : MS_STORE_DEFAULT;
    plan->grad_dtype = grads == weights ? MS_STORE_DEFAULT : (ms_storage)grads;
    const ms_port_setting *mu = ms_port_find(port, "mu_dtype");
    long moments = weights;
    if (mu == NULL || mu->value == NULL || mu->value[0] == '\0')
        return MS_OK;
    MS_TRY(ms_port_take_word(port, "mu_dtype", stored, &moments));
    if (moments != weights)
        ms_port_assume(port, "mu_dtype as weight_dtype: a plan has one type for both "
                             "moments");
    return MS_OK;
}

static const char *const type_keys[] = {"weight_dtype", "grad_dtype", "mu_dtype", NULL};
static const int type_choices[] = {MS_CHOOSE_GRAD_DTYPE, MS_CHOOSE_OPTIMIZER_DTYPE, -1};

static void put_host(ms_port *port)
{
    ms_host_optimizer host = port->plan->offload_optimizer;
    if (host == MS_HOST_UPDATE)
        ms_port_leave_choice(port, MS_CHOOSE_OFFLOAD_OPTIMIZER);
    if (host == MS_HOST_STATES)
        ms_port_put(port, "optimizer_memory_host_offload", "true");
}

static ms_status take_host(ms_port *port)
{
    bool on = false;
    MS_TRY(ms_port_take_on(port, "optimizer_memory_host_offload", &on));
    port->plan->offload_optimizer = on ? MS_HOST_STATES : MS_HOST_NO_OPTIMIZER;
    return MS_OK;
}

/* ---- experts ---- */

static bool has_experts(const ms_port *port)
{
    return port->moe;
}

/* A capacity is that of dense products, which compute all of it. */
static void put_capacity(ms_port *port)
{
    const ms_plan *plan = port->plan;
    if (plan->expert_capacity <= 0.0)
        return;
    if (!plan->pad_experts)
        ms_port_leave_choice(port, MS_CHOOSE_PAD_EXPERTS);
    ms_port_put(port, "sparse_matmul", "false");
    ms_port_put_number(port, "capacity_factor", plan->expert_capacity);
}

static ms_status take_capacity(ms_port *port)
{
    bool sparse = true;
    double capacity = -1.0;
    MS_TRY(ms_port_take_on(port, "sparse_matmul", &sparse));
    MS_TRY(ms_port_take_number(port, "capacity_factor", -1.0, 1e6, &capacity));
    if (!sparse && capacity <= 0.0)
        return ms_port_fail(port, ms_port_find(port, "sparse_matmul"),
                            "without a capacity_factor every expert computes every "
                            "token: no plan does");
    if (sparse && capacity > 0.0)
        ms_port_assume(port, "capacity_factor has no effect");
    port->plan->expert_capacity = sparse ? 0.0 : capacity;
    port->plan->pad_experts = !sparse;
    return MS_OK;
}

static const char *const capacity_keys[] = {"sparse_matmul", "capacity_factor", NULL};
static const int capacity_choices[] = {MS_CHOOSE_PAD_EXPERTS, -1};

/* ---- the table ---- */

static bool has_tensor(const ms_port *port)
{
    return port->plan->size[MS_TP] > 1;
}

static bool has_context(const ms_port *port)
{
    return port->plan->size[MS_CP] > 1;
}

static const ms_port_word strategies[] = {{"all_gather", MS_CP_ALL_GATHER},
                                          {"ring", MS_CP_RING},
                                          {"ulysses", MS_CP_ULYSSES},
                                          {0}};
static const ms_port_word balances[] = {
    {"true", MS_CP_HEAD_TAIL}, {"false", MS_CP_NONE}, {0}};
static const ms_port_word optimizers[] = {{"adamw", MS_OPTIMIZER_ADAMW},
                                          {"adam_pax", MS_OPTIMIZER_ADAMW},
                                          {"sgd", MS_OPTIMIZER_SGD},
                                          {"muon", MS_OPTIMIZER_MUON},
                                          {0}};

/* The file that a configuration changes; of another one nothing is known. */
static ms_status take_base(ms_port *port)
{
    const ms_port_setting *base = ms_port_find(port, "base_config");
    const char *path = base == NULL || base->value == NULL ? "base.yml" : base->value;
    const char *slash = strrchr(path, '/');
    if (strcmp(slash == NULL ? path : slash + 1, "base.yml") != 0)
        ms_port_assume(port, "defaults of base.yml: %s is not read", path);
    return MS_OK;
}

#define WORD(name, choose, list, usual)                                                  \
    .kind = MS_PORT_WORD, .key = (name), .choice = (choose), .words = (list),            \
    .absent = (usual)
#define OWN(choose, puts, takes)                                                         \
    .kind = MS_PORT_OWN, .choice = (choose), .put = (puts), .take = (takes)

static const ms_port_row plan_rows[] = {
    {.kind = MS_PORT_OWN, .choice = -1, .key = "base_config", .take = take_base},
    {OWN(MS_CHOOSE_PP, ms_maxtext_put_mesh, ms_maxtext_take_mesh),
     .keys = ms_maxtext_mesh_keys, .choices = ms_maxtext_mesh_choices},
    {OWN(MS_CHOOSE_SCHEDULE, ms_maxtext_put_pipeline, ms_maxtext_take_pipeline),
     .keys = ms_maxtext_pipeline_keys, .choices = ms_maxtext_pipeline_choices},
    {OWN(MS_CHOOSE_SEQUENCE_LENGTH, ms_maxtext_put_batch, ms_maxtext_take_batch),
     .keys = ms_maxtext_batch_keys, .choices = ms_maxtext_batch_choices},
    {.kind = MS_PORT_FIXED,
     .choice = MS_CHOOSE_LOSS_PARALLEL,
     .absent = 1,
     .when = has_tensor},
    {WORD("context_parallel_strategy", MS_CHOOSE_CP_METHOD, strategies, MS_CP_ALL_GATHER),
     .always = true, .when = has_context},
    {WORD("context_parallel_load_balance", MS_CHOOSE_CP_BALANCE, balances,
          MS_CP_HEAD_TAIL),
     .when = has_context},
    {OWN(MS_CHOOSE_RECOMPUTE, put_recompute, take_recompute), .keys = recompute_keys,
     .choices = recompute_choices},
    {OWN(MS_CHOOSE_COMPUTE, put_compute, take_compute), .keys = compute_keys,
     .choices = compute_choices},
    {OWN(MS_CHOOSE_PARAM_DTYPE, put_types, take_types), .keys = type_keys,
     .choices = type_choices},
    {WORD("opt_type", MS_CHOOSE_OPTIMIZER, optimizers, MS_OPTIMIZER_ADAMW)},
    {OWN(MS_CHOOSE_OFFLOAD_OPTIMIZER, put_host, take_host),
     .key = "optimizer_memory_host_offload"},
    {OWN(MS_CHOOSE_EXPERT_CAPACITY, put_capacity, take_capacity), .keys = capacity_keys,
     .choices = capacity_choices, .when = has_experts},
    /* rules refuse all orders but stage, data, fsdp, context, tensor */
    {.kind = MS_PORT_OWN, .choice = MS_CHOOSE_ORDER},
    {0},
};

/* ---- the file ---- */

static bool is_setting(const char *word)
{
    size_t length = 0;
    while (islower((unsigned char)word[length]) || isdigit((unsigned char)word[length]) ||
           word[length] == '_')
        length++;
    return length > 0 && !isdigit((unsigned char)word[0]) && word[length] == '=';
}

/* Whether a text's first line that is no comment is a mapping's, not a command. */
static bool is_yaml(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        while (at < length && isspace((unsigned char)text[at]))
            at++;
        if (at == length || text[at] != '#')
            break;
        while (at < length && text[at] != '\n')
            at++;
    }
    if (length - at >= 3 && memcmp(text + at, "---", 3) == 0)
        return true;
    size_t end = at;
    while (end < length && (isalnum((unsigned char)text[end]) || text[end] == '_'))
        end++;
    while (end < length && text[end] == ' ')
        end++;
    bool has_colon = end < length && text[end] == ':';
    return at < length && (text[at] == '{' || (end > at && has_colon));
}

static ms_status read_file(ms_port *port, const char *name, const char *text,
                           size_t length)
{
    static const ms_script_style style = {.is_setting = is_setting,
                                          .file_key = "base_config",
                                          .example = "ici_fsdp_parallelism=8"};
    if (!is_yaml(text, length))
        return ms_script_read(port, name, text, length, &style);
    MS_TRY(ms_yaml_read(port->cx, name, text, length, port->settings));
    return port->settings->num > 0 ? MS_OK
                                   : ms_fail(port->cx, MS_EINPUT, (ms_loc){.file = name},
                                             "there are no keys");
}

/* A model without a name has the layers of Llama 2. */
static ms_status finish(ms_port *port)
{
    if (ms_maxtext_states_shapes(port)) {
        port->model->activation = MS_ACT_SWIGLU;
        port->model->final_norm = true;
    }
    return MS_OK;
}

/* A process per node runs the same program; Slurm starts all, or a person each. */
static void write_file(FILE *out, ms_arena *arena, const ms_plan *plan,
                       const ms_port_exported *exported,
                       const ms_port_export_options *options)
{
    long per_node, nodes = ms_port_nodes(plan, options, &per_node);
    ms_port_write_head(out, arena, "#", plan, exported);
    if (options->launcher == MS_PORT_SRUN) {
        ms_print(out,
                 "# srun --nodes %ld --ntasks-per-node 1 --gpus-per-node %ld \\\n#     ",
                 nodes, per_node);
    } else if (options->launcher == MS_PORT_TORCHRUN) {
        if (nodes > 1)
            ms_print(out, "# on each of %ld nodes with %ld GPUs:\n", nodes, per_node);
        ms_print(out, "# ");
    }
    if (options->launcher != MS_PORT_NO_LAUNCHER)
        ms_print(out, "python3 -m maxtext.trainers.pre_train.train THIS.yml "
                      "run_name=RUN\n");
    ms_print(out, "base_config: base.yml\nhardware: %s\n",
             nodes > 1 ? "gpu_multiprocess" : "gpu");
    ms_yaml_write(out, arena, &exported->settings);
}

/* Keys of base.yml whose names have reserved parts, and that change no plan. */
static const char *const ignored[] = {"quantization_local_shard_count",
                                      "quant_cfg_path",
                                      "quantize_kvcache",
                                      "replicate_quant_scale",
                                      "scan_pipeline_iterations",
                                      "scan_pipeline_repeats",
                                      "set_remat_policy_on_pipeline_iterations",
                                      "set_remat_policy_on_layers_per_stage",
                                      "context_parallel_reorder_strategy",
                                      "allow_split_physical_axes",
                                      "optimize_mesh_for_tpu_v6e",
                                      NULL};
static const char *const reserved[] = {"parallel", "pipeline", "remat", "quant",
                                       "offload",  "ici_",     "dcn_",  "shard_optimizer",
                                       "_dtype",   NULL};
static const char *const marks[] = {
    "per_device_batch_size", "_parallelism", "remat_policy",
    "max_target_length",     "base.yml",     NULL};

const ms_port_format ms_port_maxtext = {
    .name = "maxtext",
    .stack = "maxtext",
    .rules = "maxtext",
    .tables = {ms_maxtext_model_rows, plan_rows},
    .ignored = ignored,
    .reserved = reserved,
    .marks = marks,
    .read = read_file,
    .finish = finish,
    .write = write_file,
};
