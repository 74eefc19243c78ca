/* Every field goes through one of the pick functions: the flag, else the plan file,
 * else a default that is noted. So no default can be used without being printable. */
#include "cli/plan_options.h"

#include "base/paths.h"
#include "cli/output.h"
#include "cli/plan_flags.h"
#include "cli/plan_order.h"
#include "costmodel/schedule.h"
#include "costmodel/stack.h"

#include <math.h>
#include <string.h>

typedef struct resolver {
    ms_ctx *cx;
    const ms_plan_options *opts;
    ms_plan *plan;
    const ms_stack *stack;
    bool from_file;
    bool silent;   /* no notes: a search chooses what is not given */
    bool no_model; /* none is needed */
} resolver;

static long pick_long(const resolver *r, const char *name, ms_opt_integer given,
                      long from_file, long fallback)
{
    if (given.given)
        return given.value;
    if (r->from_file)
        return from_file;
    if (!r->silent)
        ms_note_default(r->cx, "%s %ld", name, fallback);
    return fallback;
}

static bool pick_bool(const resolver *r, const char *name, ms_opt_switch given,
                      bool from_file, bool fallback)
{
    if (given.given)
        return given.value;
    if (r->from_file)
        return from_file;
    if (!r->silent)
        ms_note_default(r->cx, "%s %s", name, fallback ? "on" : "off");
    return fallback;
}

static int pick_choice(const resolver *r, const char *name, ms_opt_choice given,
                       const char *const *words, int from_file_or_default)
{
    if (given.given)
        return given.value;
    if (!r->from_file && !r->silent)
        ms_note_default(r->cx, "%s %s", name, words[from_file_or_default]);
    return from_file_or_default;
}

static const char *pick_text(const resolver *r, const char *name, const char *given,
                             const char *from_file_or_default)
{
    if (given != NULL)
        return given;
    if (!r->from_file)
        ms_note_default(r->cx, "%s %s", name, from_file_or_default);
    return from_file_or_default;
}

/* ---- names ---- */

static ms_status start(resolver *r)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    *plan = ms_plan_default(opts->gpus.given ? opts->gpus.value : 1);
    if (opts->plan_file != NULL)
        MS_TRY(ms_plan_load(r->cx, opts->plan_file, plan));
    r->from_file = opts->plan_file != NULL;
    if (opts->model != NULL)
        plan->model = opts->model;
    if (plan->model == NULL && !r->no_model) {
        ms_status status = ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "no model is given");
        ms_hint(r->cx, "--model 8b; \"meshsim model\" lists the names");
        return status;
    }
    plan->cluster = pick_text(r, "--cluster", opts->cluster, plan->cluster);
    plan->stack = pick_text(r, "--stack", opts->stack, plan->stack);
    plan->profile = opts->profile;
    if (plan->profile == NULL && !r->from_file)
        ms_note_default(r->cx, "--profile that of the cluster");
    return ms_stack_load(r->cx, plan->stack, &r->stack);
}

/* ---- axes ---- */

static double num_ranks(const ms_plan *plan)
{
    double product = 1.0;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        product *= (double)plan->size[axis];
    return product;
}

/* "pp 3 x tp 8": the axes that are not 1. */
static const char *axes_text(const resolver *r)
{
    const char *text = "";
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++) {
        if (r->plan->size[axis] > 1)
            text = ms_arena_printf(r->cx->arena, "%s%s%s %ld", text,
                                   text[0] == '\0' ? "" : " x ", ms_plan_axis_names[axis],
                                   r->plan->size[axis]);
    }
    return text[0] == '\0' ? "every axis of size 1" : text;
}

static ms_status refuse_product(const resolver *r, double product)
{
    const ms_plan *plan = r->plan;
    ms_status status =
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "%s = %.0f ranks, but there are %ld GPUs",
                axes_text(r), product, plan->gpus);
    double others = product / (double)plan->size[MS_DP_SHARD];
    double rest = (double)plan->gpus / others;
    if (rest >= 1.0 && rest == floor(rest))
        ms_hint(r->cx, "--dp-shard %.0f makes it %ld", rest, plan->gpus);
    else if (product <= MS_MAX_GPUS)
        ms_hint(r->cx, "--gpus %.0f fits these axes", product);
    else
        ms_hint(r->cx, "make some of the axes smaller");
    return status;
}

/* "tp may be one of 1 2 4 8, or ": what the one axis above 1 can be on these GPUs; ""
 * when there are several. */
static const char *divisors_text(const resolver *r)
{
    const ms_plan *plan = r->plan;
    const char *text = "";
    int only = -1;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++) {
        if (plan->size[axis] > 1 && only >= 0)
            return "";
        if (plan->size[axis] > 1)
            only = axis;
    }
    if (only < 0)
        return "";
    for (long size = 1; size <= plan->gpus && size < plan->size[only]; size++)
        if (plan->gpus % size == 0)
            text = ms_arena_printf(r->cx->arena, "%s %ld", text, size);
    return ms_arena_printf(r->cx->arena, "%s may be one of%s, or ",
                           ms_plan_axis_names[only], text);
}

static ms_status refuse_rest(const resolver *r, double others)
{
    long gpus = r->plan->gpus;
    ms_status status =
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "%s = %.0f ranks do not divide %ld GPUs",
                axes_text(r), others, gpus);
    double below = others * floor((double)gpus / others), above = below + others;
    const char *smaller = divisors_text(r);
    if (below > 0)
        ms_hint(r->cx, "%s--gpus %.0f or --gpus %.0f fits %s", smaller, below, above,
                smaller[0] == '\0' ? "these axes" : "it");
    else if (above <= MS_MAX_GPUS)
        ms_hint(r->cx, "%s%s at least --gpus %.0f", smaller,
                smaller[0] == '\0' ? "these axes need" : "it needs", above);
    else
        ms_hint(r->cx, "make some of the axes smaller");
    return status;
}

static ms_status take_rest(const resolver *r)
{
    ms_plan *plan = r->plan;
    plan->size[MS_DP_SHARD] = 1;
    double others = num_ranks(plan), rest = (double)plan->gpus / others;
    if (rest < 1.0 || rest != floor(rest))
        return refuse_rest(r, others);
    plan->size[MS_DP_SHARD] = (long)rest;
    ms_note_default(r->cx, "--dp-shard %ld (the rest of %ld GPUs)", (long)rest,
                    plan->gpus);
    return MS_OK;
}

static const char *const axis_options[] = {"--pp", "--dp-replicate", "--dp-shard", "--cp",
                                           "--tp"};

/* True when a flag changes the mesh; dp_shard is noted by whoever settles it. */
static bool set_sizes(const resolver *r)
{
    bool changed = !r->from_file || r->opts->gpus.given;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++) {
        resolver quiet = *r;
        quiet.silent = r->silent || axis == MS_DP_SHARD;
        r->plan->size[axis] = pick_long(&quiet, axis_options[axis], r->opts->size[axis],
                                        r->plan->size[axis], 1);
        changed = changed || r->opts->size[axis].given;
    }
    return changed;
}

static ms_status resolve_axes(const resolver *r)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    if (!set_sizes(r))
        return MS_OK;
    bool dp_given = opts->size[MS_DP_REPLICATE].given || opts->size[MS_DP_SHARD].given;
    if (opts->gpus.given)
        plan->gpus = opts->gpus.value;
    else if (!r->from_file)
        plan->gpus = 0;
    if (plan->gpus > 0 && !dp_given)
        return take_rest(r);
    double product = num_ranks(plan);
    if (!opts->size[MS_DP_SHARD].given && !r->from_file)
        ms_note_default(r->cx, "--dp-shard 1");
    if (plan->gpus == 0) {
        if (product > MS_MAX_GPUS)
            return ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                           "%s = %.0f ranks, must be at most %d", axes_text(r), product,
                           MS_MAX_GPUS);
        plan->gpus = (long)product;
        ms_note_default(r->cx, "--gpus %ld (the product of the axes)", plan->gpus);
    }
    return (double)plan->gpus == product ? MS_OK : refuse_product(r, product);
}

/* ---- the rest ---- */

static void resolve_batch(const resolver *r)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    plan->sequence_length =
        pick_long(r, "--seq", opts->sequence_length, plan->sequence_length,
                  ms_plan_default(1).sequence_length);
    long sequences = ms_plan_default_batch(plan->gpus, plan->sequence_length);
    plan->global_batch =
        pick_long(r, "--global-batch", opts->global_batch, plan->global_batch, sequences);
    plan->compute = (ms_dtype)pick_choice(r, "--precision", opts->precision,
                                          ms_dtype_names, (int)plan->compute);
}

static ms_status resolve_schedule(const resolver *r)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    long fallback;
    if (opts->schedule.given && opts->schedule.value == MS_CUSTOM) {
        MS_TRY(ms_plan_load_schedule(r->cx, opts->schedule.text, plan));
        fallback = plan->virtual_stages;
    } else {
        bool chunks = opts->virtual_stages.given && opts->virtual_stages.value > 1;
        if (!r->from_file)
            plan->schedule = chunks ? MS_INTERLEAVED : MS_1F1B;
        int kind = pick_choice(r, "--schedule", opts->schedule, ms_schedule_names,
                               (int)plan->schedule);
        if (opts->schedule.given || !r->from_file)
            ms_plan_set_schedule(plan, (ms_schedule_kind)kind);
        fallback = ms_schedule_default_virtual(plan->schedule, plan->size[MS_PP]);
    }
    plan->virtual_stages = pick_long(r, "--virtual-stages", opts->virtual_stages,
                                     plan->virtual_stages, fallback);
    if (opts->memory_limit.given)
        plan->memory_limit = opts->memory_limit.value;
    return MS_OK;
}

static ms_status resolve_pipeline(const resolver *r)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    plan->microbatch =
        pick_long(r, "--microbatch", opts->microbatch, plan->microbatch, 1);
    MS_TRY(resolve_schedule(r));
    plan->microbatch_group =
        pick_long(r, "--group", opts->microbatch_group, plan->microbatch_group, 0);
    if (opts->layers_per_stage != NULL)
        return ms_layers_parse(r->cx, opts->layers_per_stage, plan);
    if (plan->num_stage_layers > 0 &&
        plan->num_stage_layers != plan->size[MS_PP] * plan->virtual_stages) {
        ms_note(r->cx,
                "the plan's layers_per_stage has %ld entries for %ld virtual stages: "
                "balanced instead",
                plan->num_stage_layers, plan->size[MS_PP] * plan->virtual_stages);
        plan->num_stage_layers = 0;
        plan->layers_per_stage = NULL;
    }
    return MS_OK;
}

static long default_zero(const resolver *r)
{
    const ms_plan *plan = r->plan;
    if (plan->size[MS_DP_SHARD] * plan->size[MS_CP] == 1)
        return 0;
    if (r->stack->default_zero >= 0)
        return r->stack->default_zero;
    return 3;
}

static ms_status resolve_sharding(const resolver *r)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    plan->zero = pick_long(r, "--zero", opts->zero, plan->zero, default_zero(r));
    plan->reshard_after_forward =
        pick_bool(r, "--reshard-after-forward", opts->reshard_after_forward,
                  plan->reshard_after_forward, plan->zero == 3 && plan->size[MS_PP] == 1);
    if (r->silent)
        return MS_OK;
    if (plan->zero > 0 && plan->size[MS_DP_SHARD] * plan->size[MS_CP] == 1)
        ms_note(r->cx,
                "zero %ld has no effect: dp_shard x cp is 1, nothing to shard over",
                plan->zero);
    if (plan->zero == 3 && plan->reshard_after_forward && plan->size[MS_PP] > 1 &&
        !r->stack->can_zero3_with_pp) {
        ms_status status = ms_fail(
            r->cx, MS_EINPUT, MS_NOWHERE,
            "stack \"%s\" keeps parameters gathered with %ld pipeline stages, but "
            "reshard_after_forward is on",
            plan->stack, plan->size[MS_PP]);
        ms_hint(r->cx, "--reshard-after-forward off, or --stack generic");
        return status;
    }
    return MS_OK;
}

/* Also when a flag raises tp from a plan whose tp of 1 had no use for the setting. */
static void resolve_tensor(const resolver *r, long tp_of_file)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    resolver fresh = *r;
    fresh.from_file = r->from_file && (tp_of_file > 1 || plan->size[MS_TP] == tp_of_file);
    plan->sequence_parallel =
        pick_bool(&fresh, "--sequence-parallel", opts->sequence_parallel,
                  plan->sequence_parallel, plan->size[MS_TP] > 1);
    plan->async_tp = pick_bool(r, "--async-tp", opts->async_tp, plan->async_tp, false);
    plan->loss_parallel = pick_bool(&fresh, "--loss-parallel", opts->loss_parallel,
                                    plan->loss_parallel, true);
}

static ms_status check_cp_method(const resolver *r)
{
    const ms_plan *plan = r->plan;
    if (plan->size[MS_CP] == 1 || r->stack->can_cp[plan->cp_method])
        return MS_OK;
    ms_status status =
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                "stack \"%s\" has no context parallelism by %s, and cp is %ld",
                plan->stack, ms_cp_method_names[plan->cp_method], plan->size[MS_CP]);
    for (int i = 0; i < MS_NUM_CP_METHODS; i++) {
        if (r->stack->can_cp[i]) {
            ms_hint(r->cx, "--cp-method %s, or --stack generic", ms_cp_method_names[i]);
            return status;
        }
    }
    ms_hint(r->cx, "--cp 1, or --stack generic");
    return status;
}

static ms_status resolve_context(const resolver *r)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    if (!r->from_file && plan->size[MS_CP] > 1)
        plan->cp_method = r->stack->cp_method;
    plan->cp_method = (ms_cp_method)pick_choice(r, "--cp-method", opts->cp_method,
                                                ms_cp_method_names, (int)plan->cp_method);
    plan->cp_balance = (ms_cp_balance)pick_choice(
        r, "--cp-balance", opts->cp_balance, ms_cp_balance_names, (int)plan->cp_balance);
    if (r->silent)
        return MS_OK;
    if (plan->size[MS_CP] > 1 && plan->cp_method == MS_CP_ULYSSES &&
        opts->cp_balance.given)
        ms_note(r->cx, "--cp-balance has no effect with ulysses: every rank sees whole "
                       "sequences, of a part of the heads");
    return check_cp_method(r);
}

static ms_status resolve_recompute_budget(const resolver *r)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    if (opts->recompute_budget.given)
        plan->recompute_budget_frac = opts->recompute_budget.value;
    if (plan->recompute == MS_RECOMPUTE_AUTO)
        return MS_OK;
    plan->recompute_budget_frac = -1.0; /* of a file, whose mode a flag changes */
    if (!opts->recompute_budget.given)
        return MS_OK;
    ms_status status =
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                "--recompute-budget %g has no effect with recompute %s",
                opts->recompute_budget.value, ms_recompute_names[plan->recompute]);
    ms_hint(r->cx, "--recompute auto --recompute-budget %g",
            opts->recompute_budget.value);
    return status;
}

static ms_status resolve_recompute(const resolver *r)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    if (!r->from_file && !opts->recompute.given) {
        int mode = ms_choice_find(r->stack->recompute, ms_recompute_names);
        if (mode < 0)
            return ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                           "stack \"%s\" has the unknown recompute mode \"%s\"",
                           plan->stack, r->stack->recompute);
        plan->recompute = (ms_recompute)mode;
    }
    plan->recompute = (ms_recompute)pick_choice(r, "--recompute", opts->recompute,
                                                ms_recompute_names, (int)plan->recompute);
    plan->recompute_layers = pick_long(r, "--recompute-layers", opts->recompute_layers,
                                       plan->recompute_layers, 0);
    MS_TRY(resolve_recompute_budget(r));
    if (plan->recompute == MS_RECOMPUTE_FULL || plan->recompute_layers == 0)
        return MS_OK;
    if (!opts->recompute_layers.given) {
        plan->recompute_layers = 0; /* of the file, whose mode a flag changes */
        return MS_OK;
    }
    ms_status status =
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                "--recompute-layers %ld has no effect with recompute %s",
                plan->recompute_layers, ms_recompute_names[plan->recompute]);
    ms_hint(r->cx, "--recompute full --recompute-layers %ld", plan->recompute_layers);
    return status;
}

static ms_status resolve_rest(const resolver *r, long tp_of_file)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    plan->ep = pick_long(r, "--ep", opts->ep, plan->ep, 1);
    plan->etp = pick_long(r, "--etp", opts->etp, plan->etp, 1);
    MS_TRY(resolve_pipeline(r));
    MS_TRY(resolve_sharding(r));
    resolve_tensor(r, tp_of_file);
    MS_TRY(resolve_context(r));
    MS_TRY(resolve_recompute(r));
    if (opts->order != NULL)
        return ms_order_parse(r->cx, opts->order, plan);
    if (!r->from_file && !r->silent)
        ms_note_default(r->cx, "--order pp,dp_replicate,dp_shard,cp,tp");
    return MS_OK;
}

ms_status ms_plan_options_word(ms_ctx *cx, ms_plan_options *opts, const char *word)
{
    if (word == NULL)
        return MS_OK;
    if (opts->plan_file != NULL)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "two plans are given: \"%s\" and --plan \"%s\"", word,
                       opts->plan_file);
    opts->plan_file = word;
    return MS_OK;
}

/* Of a configuration: NULL when the text is the name of one that is known. */
static const char *path_in(const char *name_or_path)
{
    return name_or_path != NULL && ms_config_is_path(name_or_path) ? name_or_path : NULL;
}

ms_status ms_plan_options_check_output(ms_ctx *cx, const ms_plan_options *opts,
                                       const ms_plan *plan, const char *output)
{
    const char *inputs[] = {opts->plan_file,        path_in(plan->model),
                            path_in(plan->cluster), path_in(plan->stack),
                            path_in(plan->profile), plan->schedule_file};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        MS_TRY(ms_output_check_distinct(cx, (const char *const[]){inputs[i], output}, 2));
    return MS_OK;
}

static ms_status resolve(resolver *r)
{
    MS_TRY(start(r));
    long tp_of_file = r->plan->size[MS_TP];
    MS_TRY(resolve_axes(r));
    resolve_batch(r);
    return resolve_rest(r, tp_of_file);
}

ms_status ms_plan_from_options(ms_ctx *cx, const ms_plan_options *opts, ms_plan *out)
{
    return resolve(&(resolver){.cx = cx, .opts = opts, .plan = out});
}

ms_status ms_plan_mesh_from_options(ms_ctx *cx, const ms_plan_options *opts, ms_plan *out)
{
    return resolve(&(resolver){.cx = cx, .opts = opts, .plan = out, .no_model = true});
}

ms_status ms_plan_base_from_options(ms_ctx *cx, const ms_plan_options *opts, ms_plan *out)
{
    resolver r = {.cx = cx, .opts = opts, .plan = out};
    MS_TRY(start(&r));
    if (!opts->gpus.given && !r.from_file) {
        ms_status status =
            ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the number of GPUs is not given");
        ms_hint(cx, "for example --gpus 512");
        return status;
    }
    if (opts->gpus.given)
        out->gpus = opts->gpus.value;
    long tp_of_file = out->size[MS_TP];
    resolve_batch(&r);
    r.silent = true;
    (void)set_sizes(&r);
    return resolve_rest(&r, tp_of_file);
}
