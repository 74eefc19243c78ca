#include "cli/options/run_options.h"

#include "cli/options/interrupt.h"
#include "cli/options/kernel_options.h"
#include "cli/options/output.h"
#include "exec/backends/backends.h"
#include "exec/measure/measure.h"

#include <math.h>
#include <string.h>

#define MAX_STEPS 1000000

static const char *const dtype_names[] = {
    [MS_REAL_FP32] = "fp32", [MS_REAL_FP64] = "fp64", [MS_REAL_BF16] = "bf16",
    [MS_REAL_FP8] = "fp8",   [MS_REAL_FP4] = "fp4",   NULL};

#define ROW(row, member, ...) row(ms_run_flags, member, __VA_ARGS__)
#define NUMBER(member, option, most, text)                                               \
    MS_OPT_NUMBER(ms_run_flags, member, option, "X", most, text)

const ms_option ms_run_option_table[] = {
    ROW(MS_OPT_CHOICE, backend, "--backend", ms_backend_names,
        "null: virtual clock, no values; " MS_BACKENDS_HELP
        " (default auto: mpi if possible, else loop)"),
    ROW(MS_OPT_CHOICE, transport, "--transport", ms_cuda_transport_names,
        "transport of backend cuda: nccl, or host (host memory), for tests of "
        "correctness with several ranks on one GPU (default nccl); modelled, with "
        "--replay alone"),
    MS_KERNEL_OPTION_ROWS(ms_run_flags),
    ROW(MS_OPT_TEXT, replay, "--replay", "stages|rank=R",
        "execute one rank of each kind of pipeline rank, or rank R, alone; other ranks "
        "and links are modelled, and the whole job's step is put together"),
    ROW(MS_OPT_FLAG, no_hold, "--no-hold",
        "with --replay on a GPU: modelled transfers hold no multiprocessors"),
    ROW(MS_OPT_INTEGER, steps, "--steps", "N", 1, MAX_STEPS,
        "training steps, warm-up included (default 5; 1 with null)"),
    ROW(MS_OPT_INTEGER, warm_up, "--warm-up", "N", 0, MAX_STEPS,
        "first steps that are not measured (default 1; 0 with null)"),
    ROW(MS_OPT_CHOICE, dtype, "--dtype", dtype_names,
        "type of values; bf16 has sums and states in fp32, fp8 and fp4 are bf16 with "
        "operands of GEMMs of weights in 8 or 4 bits, by --precision-recipe (default "
        "tensorwise, nvfp4); replaces --precision (default fp32; bf16 with cuda)"),
    ROW(MS_OPT_INTEGER, seed, "--seed", "N", 0, MS_OPT_MAX_SEED,
        "seed of initial weights and synthetic tokens (default 0)"),
    ROW(MS_OPT_TEXT, tokens, "--tokens", "FILE",
        "token ids as text, or safetensors of input_ids and labels (default synthetic)"),
    NUMBER(learning_rate, "--lr", 1e6, "learning rate (default 0.001)"),
    NUMBER(beta1, "--beta1", 1,
           "beta1 of AdamW and Lion; momentum of SGD and Muon (default 0.9)"),
    NUMBER(beta2, "--beta2", 1, "beta2 of AdamW and Lion (default 0.95)"),
    NUMBER(epsilon, "--epsilon", 1e6, "epsilon of AdamW (default 1e-5)"),
    NUMBER(weight_decay, "--weight-decay", 1e6, "weight decay (default 0.1)"),
    NUMBER(clip, "--clip", 1e12,
           "maximum norm of all gradients; 0: no limit (default 1)"),
    NUMBER(deviation, "--init-std", 1e6,
           "standard deviation of initial weights (default 0.02)"),
    ROW(MS_OPT_FLAG, balanced_routing, "--balanced-routing",
        "give every expert the same number of tokens, whatever the router chooses"),
    ROW(MS_OPT_FLAG, check, "--check",
        "also run the training on one rank; compare losses, gradients and weights"),
    ROW(MS_OPT_TEXT, load_weights, "--load-weights", "FILE",
        "initial weights, as safetensors"),
    ROW(MS_OPT_TEXT, save_weights, "--save-weights", "FILE",
        "weights before the first step, as safetensors"),
    ROW(MS_OPT_TEXT, save_final_weights, "--save-final-weights", "FILE",
        "weights after the last step, as safetensors"),
    ROW(MS_OPT_TEXT, save_grads, "--save-grads", "FILE",
        "gradients of the mean loss of the first step, as safetensors"),
    ROW(MS_OPT_TEXT, save_batch, "--save-batch", "FILE",
        "tokens of the first step as safetensors: input_ids, labels"),
    ROW(MS_OPT_TEXT, trace, "--trace", "FILE",
        "write a trace for ui.perfetto.dev or chrome://tracing"),
    ROW(MS_OPT_QUANTITY, timeout_s, "--timeout", "TIME", MS_UNIT_SECONDS,
        "longest time that a rank waits for another (default 600 s)"),
    ROW(MS_OPT_FLAG, force, "--force", "run even if memory may not suffice"),
    {0},
};

static double number_or(const ms_ctx *cx, ms_opt_quantity given, const char *name,
                        double fallback)
{
    if (given.given)
        return given.value;
    ms_note_default(cx, "%s %g", name, fallback);
    return fallback;
}

static long integer_or(const ms_ctx *cx, ms_opt_integer given, const char *name,
                       long fallback)
{
    if (given.given)
        return given.value;
    ms_note_default(cx, "%s %ld", name, fallback);
    return fallback;
}

/* The backend named by --backend; NULL for auto, or if this program lacks the backend. */
static const ms_backend *named_backend(const ms_run_flags *f)
{
    return ms_backend_find(ms_backend_names[f->backend.value]);
}

static ms_status check_limits(ms_ctx *cx, const ms_run_flags *f)
{
    const struct {
        const char *name;
        ms_opt_quantity given;
    } betas[] = {{"--beta1", f->beta1}, {"--beta2", f->beta2}};
    ms_status status = MS_OK;
    for (int i = 0; i < 2; i++)
        if (betas[i].given.given && betas[i].given.value >= 1.0)
            status = ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s is %g, must be below 1",
                             betas[i].name, betas[i].given.value);
    if (f->epsilon.given && f->epsilon.value <= 0.0)
        status = ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--epsilon is 0, must be above 0");
    return status;
}

/* Refuses tokens from standard input when ranks are processes, which do not share it. */
static ms_status check_tokens(ms_ctx *cx, const ms_run_flags *f)
{
    const ms_backend *backend = named_backend(f);
    if (f->tokens == NULL || strcmp(f->tokens, "-") != 0 ||
        (backend != NULL && backend->in_process))
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "tokens are read from standard input, which ranks do not share");
    return ms_hint(cx, "write them to a file, or take --backend loop");
}

static ms_status check_values(ms_ctx *cx, const ms_run_flags *f)
{
    if (f->backend.value != MS_BACKEND_NULL)
        return MS_OK;
    const char *values[] = {f->check ? "--check" : NULL,
                            f->save_weights != NULL ? "--save-weights" : NULL,
                            f->save_final_weights != NULL ? "--save-final-weights" : NULL,
                            f->save_grads != NULL ? "--save-grads" : NULL,
                            f->load_weights != NULL ? "--load-weights" : NULL};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i] == NULL)
            continue;
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "%s needs values, and --backend null has only a clock", values[i]);
        return ms_hint(cx, "--backend loop");
    }
    return MS_OK;
}

/* Sets the default of --dtype; MS_EINPUT for a transport that needs a replay. */
static ms_status fill_dtype(ms_ctx *cx, ms_run_flags *f)
{
    bool on_gpu = f->backend.value == MS_BACKEND_CUDA;
    if (!f->dtype.given) {
        f->dtype.value = on_gpu ? MS_REAL_BF16 : MS_REAL_FP32;
        ms_note_default(cx, "--dtype %s", dtype_names[f->dtype.value]);
    }
    if (f->transport.value == MS_CUDA_MODELLED && f->replay == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--transport modelled is for one rank alone, and all would run");
        return ms_hint(cx, "--replay stages, or --replay rank=R");
    }
    if (f->no_hold && (f->replay == NULL || !on_gpu))
        ms_note(cx, "--no-hold has no effect: no modelled transfer holds part of a GPU");
    if (f->transport.given && !on_gpu && f->replay == NULL)
        ms_note(cx, "--transport has no effect: only backend cuda has transports");
    ms_kernel_options_note_idle(cx, f->attention, f->gemm_algorithms, on_gpu);
    return MS_OK;
}

/* Timing GEMMs needs a step that is not measured. */
static ms_status check_gemm_algorithms(ms_ctx *cx, const ms_run_flags *f)
{
    if (f->gemm_algorithms == NULL || f->backend.value != MS_BACKEND_CUDA ||
        f->warm_up.value > 0)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "--gemm-algorithms times GEMMs in the first step, which would be measured");
    return ms_hint(cx, "--warm-up 1, with at least two --steps");
}

ms_status ms_run_flags_fill_defaults(ms_ctx *cx, ms_run_flags *f)
{
    MS_TRY(check_limits(cx, f));
    MS_TRY(check_tokens(cx, f));
    MS_TRY(check_values(cx, f));
    if (!f->backend.given)
        ms_note_default(cx, "--backend auto");
    MS_TRY(fill_dtype(cx, f));
    /* steps of a virtual clock (backend null) take equal times: no warm-up */
    bool virtual_clock = f->backend.value == MS_BACKEND_NULL;
    f->steps.value = integer_or(cx, f->steps, "--steps", virtual_clock ? 1 : 5);
    f->warm_up.value = integer_or(cx, f->warm_up, "--warm-up", virtual_clock ? 0 : 1);
    if (f->warm_up.given && f->warm_up.value >= f->steps.value)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--warm-up is %ld, must be less than --steps, which is %ld",
                       f->warm_up.value, f->steps.value);
    if (f->warm_up.value >= f->steps.value)
        f->warm_up.value = f->steps.value - 1; /* at least one step is measured */
    MS_TRY(check_gemm_algorithms(cx, f));
    f->seed.value = integer_or(cx, f->seed, "--seed", 0);
    if (f->tokens == NULL)
        ms_note_default(cx, "synthetic tokens");
    f->learning_rate.value = number_or(cx, f->learning_rate, "--lr", 1e-3);
    f->beta1.value = number_or(cx, f->beta1, "--beta1", 0.9);
    f->beta2.value = number_or(cx, f->beta2, "--beta2", 0.95);
    f->epsilon.value = number_or(cx, f->epsilon, "--epsilon", 1e-5);
    f->weight_decay.value = number_or(cx, f->weight_decay, "--weight-decay", 0.1);
    f->clip.value = number_or(cx, f->clip, "--clip", 1.0);
    f->deviation.value = number_or(cx, f->deviation, "--init-std", 0.02);
    f->timeout_s.value = number_or(cx, f->timeout_s, "--timeout (seconds)", 600.0);
    return MS_OK;
}

/* ---- plans ---- */

/* The configured cluster of the first GPU; NULL if unknown, or if there is no GPU. */
static const char *cluster_of_gpu(const ms_ctx *cx)
{
    const ms_cuda_driver *driver = ms_cuda_driver_of_libraries();
    ms_ctx apart = {.arena = cx->arena, .verbosity = -1};
    ms_cuda_facts gpu;
    int num;
    if (driver == NULL || driver->find(&apart, &num) != MS_OK ||
        driver->describe(&apart, 0, &gpu) != MS_OK)
        return NULL;
    const char *name = ms_machine_cluster_of_gpu(&apart, gpu.name);
    if (name != NULL)
        return name;
    ms_note(cx,
            "no cluster has devices named \"%s\": predictions are those for CPU cores; "
            "--cluster NAME|FILE selects others",
            gpu.name);
    return NULL;
}

/* The cluster of this machine: that of its first GPU, or its CPU cores. */
static const char *cluster_here(const ms_ctx *cx, const ms_run_flags *flags)
{
    const char *name = NULL;
    /* no shipped profile of a GPU has coefficients of GEMMs in fp64 */
    if (flags->backend.value == MS_BACKEND_CUDA && flags->dtype.value != MS_REAL_FP64)
        name = cluster_of_gpu(cx);
    name = name != NULL ? name : "cpu";
    ms_note_default(cx, "--cluster %s (this machine)", name);
    return name;
}

ms_status ms_run_flags_plan(ms_ctx *cx, const ms_run_flags *flags,
                            ms_plan_options *options, ms_plan *out)
{
    if (!ms_plan_is_given(options, MS_CHOOSE_STACK)) {
        options->of[MS_CHOOSE_STACK].text = "meshsim";
        ms_note_default(cx, "--stack meshsim (this runner)");
    }
    if (!ms_plan_is_given(options, MS_CHOOSE_CLUSTER))
        options->of[MS_CHOOSE_CLUSTER].text = cluster_here(cx, flags);
    if (ms_plan_is_given(options, MS_CHOOSE_COMPUTE))
        ms_note(cx, "--precision has no effect: a run computes in --dtype");
    ms_real_type type = (ms_real_type)flags->dtype.value;
    ms_plan_give(options, MS_CHOOSE_COMPUTE, (long)ms_measure_dtype(type));
    MS_TRY(ms_plan_from_options(cx, options, out));
    bool on_gpu = flags->backend.value == MS_BACKEND_CUDA;
    ms_recipe recipe = ms_run_recipe(type, out->recipe);
    if (!on_gpu && out->recipe == MS_RECIPE_DEFAULT && recipe != MS_RECIPE_DEFAULT) {
        out->recipe = recipe;
        ms_note_default(cx, "--precision-recipe %s", ms_recipe_names[recipe]);
    }
    return MS_OK;
}

ms_plan ms_run_reference_plan(const ms_plan *plan)
{
    ms_plan out = *plan;
    ms_plan_make_plain(&out);
    for (ms_choice i = MS_CHOOSE_OFFLOAD_ACTIVATIONS; i <= MS_CHOOSE_OFFLOAD_OPTIMIZER;
         i++)
        ms_plan_reset(&out, i);
    ms_plan_reset(&out, MS_CHOOSE_GATHER_BITS);
    ms_plan_reset(&out, MS_CHOOSE_REDUCE_BITS);
    ms_plan_reset(&out, MS_CHOOSE_PAD_EXPERTS);
    out.gpus = 1;
    out.microbatch = plan->microbatch;
    out.lora_base = MS_BASE_IN_COMPUTE_TYPE;
    return out;
}

/* ---- options of the runner ---- */

static ms_status load_weights(ms_ctx *cx, const char *path, ms_runner_options *out)
{
    if (path == NULL)
        return MS_OK;
    ms_safe_file *file = MS_NEW(cx->arena, ms_safe_file);
    out->load = file;
    return ms_safetensors_load(cx, path, file);
}

static void note_passes(ms_ctx *cx, const ms_run_flags *f, const ms_tokens *tokens)
{
    double passes = ms_tokens_passes(tokens, f->steps.value);
    if (passes > 1.0) {
        ms_note(cx,
                "%s has %ld tokens, and %ld step%s of %ld take %.3g times as many: it is "
                "read again from its start",
                f->tokens, tokens->num_from_file, f->steps.value,
                f->steps.value == 1 ? "" : "s",
                tokens->global_batch * tokens->sequence_length, passes);
    }
}

/* Notes flags of constants that the plan's optimizer does not have. */
static void note_constants(ms_ctx *cx, const ms_run_flags *f, ms_optimizer optimizer)
{
    static const struct {
        bool beta1, beta2, epsilon;
    } lacks[MS_NUM_OPTIMIZERS] = {[MS_OPTIMIZER_ADAFACTOR] = {true, true, true},
                                  [MS_OPTIMIZER_SGD] = {false, true, true},
                                  [MS_OPTIMIZER_LION] = {false, false, true}};
    const struct {
        const char *flag;
        bool idle;
    } flags[] = {{"--beta1", f->beta1.given && lacks[optimizer].beta1},
                 {"--beta2", f->beta2.given && lacks[optimizer].beta2},
                 {"--epsilon", f->epsilon.given && lacks[optimizer].epsilon}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].idle)
            ms_note(cx, "%s has no effect: %s has no such constant", flags[i].flag,
                    ms_optimizer_names[optimizer]);
}

static void note_no_effect(ms_ctx *cx, const ms_run_flags *f, const ms_model *model)
{
    if (f->balanced_routing && model->moe.num_experts == 0)
        ms_note(cx, "--balanced-routing has no effect: %s has no experts", model->name);
}

ms_status ms_run_flags_options(ms_ctx *cx, const ms_run_flags *f, const ms_plan *plan,
                               const ms_model *model, ms_runner_options *out)
{
    *out = (ms_runner_options){
        .type = (ms_real_type)f->dtype.value,
        .num_steps = f->steps.value,
        .initial = {.seed = (uint64_t)f->seed.value, .deviation = f->deviation.value},
        .tokens = {.seed = (uint64_t)f->seed.value,
                   .vocab = model->vocab,
                   .sequence_length = plan->sequence_length,
                   .global_batch = plan->global_batch},
        .optimizer = {.learning_rate = f->learning_rate.value,
                      .beta1 = f->beta1.value,
                      .beta2 = f->beta2.value,
                      .epsilon = f->epsilon.value,
                      .weight_decay = f->weight_decay.value},
        .clip_norm = f->clip.value,
        .balanced_routing = f->balanced_routing,
        .wants_weights =
            f->save_weights != NULL || (f->check && plan->lora_base == MS_BASE_NF4),
        .wants_gradients = f->check || f->save_grads != NULL,
        .wants_updated = f->check || f->save_final_weights != NULL,
        .first_recorded_step = f->warm_up.value,
        .interrupted = &ms_interrupted,
    };
    if (f->tokens != NULL)
        MS_TRY(ms_tokens_load(cx, f->tokens, &out->tokens));
    note_passes(cx, f, &out->tokens);
    note_no_effect(cx, f, model);
    note_constants(cx, f, plan->optimizer);
    return load_weights(cx, f->load_weights, out);
}
