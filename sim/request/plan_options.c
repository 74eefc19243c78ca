/* Makes plans from flags, plan files and defaults; `pick` functions note each default. */
#include "sim/request/plan_options.h"

#include "base/note.h"
#include "base/paths.h"
#include "costmodel/plan/stack_rules.h"
#include "costmodel/schedule/schedule.h"
#include "sim/request/plan_flags.h"
#include "sim/request/plan_order.h"
#include "sim/request/plan_source.h"

#include <math.h>
#include <string.h>

typedef struct resolver {
    ms_ctx *cx;
    const ms_plan_options *opts;
    ms_plan *plan;
    ms_plan file; /* the plan of the plan file, or the initial plan */
    const ms_stack *stack;
    ms_rule_set rules; /* rules of the stack: defaults obey them */
    bool from_file;
    bool silent;   /* print no notes on defaults: a search makes the choices not given */
    bool no_model; /* the plan needs no model */
} resolver;

static bool is_text(ms_choice choice)
{
    ms_choice_kind kind = ms_plan_fields[choice].kind;
    return kind == MS_CHOICE_TEXT || kind == MS_CHOICE_LIST;
}

bool ms_plan_is_given(const ms_plan_options *opts, ms_choice choice)
{
    return is_text(choice) ? opts->of[choice].text != NULL : opts->of[choice].whole.given;
}

long ms_plan_given_or(const ms_plan_options *opts, ms_choice choice, long otherwise)
{
    const ms_plan_option *option = &opts->of[choice];
    if (!ms_plan_is_given(opts, choice))
        return otherwise;
    return ms_plan_fields[choice].kind == MS_CHOICE_WHOLE    ? option->whole.value
           : ms_plan_fields[choice].kind == MS_CHOICE_SWITCH ? option->on.value
                                                             : option->word.value;
}

void ms_plan_give(ms_plan_options *opts, ms_choice choice, long value)
{
    if (ms_plan_fields[choice].kind == MS_CHOICE_WHOLE)
        opts->of[choice].whole = (ms_opt_integer){true, value};
    else
        opts->of[choice].word =
            (ms_opt_choice){true, (int)value, ms_choice_words(choice)[value]};
}

static void note_usual(const resolver *r, ms_choice choice)
{
    if (!r->silent)
        ms_note_default(r->cx, "%s %s", ms_plan_fields[choice].flag,
                        ms_plan_value_text(r->cx->arena, r->plan, choice));
}

/* Whether the plan file's value is kept; not if the choice matters only through flags. */
static bool is_from_file(const resolver *r, ms_choice choice)
{
    bool is_new = ms_plan_fields[choice].renewed && !ms_plan_matters(&r->file, choice) &&
                  ms_plan_matters(r->plan, choice);
    return r->from_file && !is_new;
}

/* Sets a number, switch or word of a plan from its flag, else the file, else a
 * default. */
static void pick(const resolver *r, ms_choice choice)
{
    const ms_plan_field *field = &ms_plan_fields[choice];
    bool given = ms_plan_is_given(r->opts, choice);
    if (field->flag == NULL || is_text(choice)) {
        return;
    }
    if (field->kind == MS_CHOICE_NUMBER) {
        if (given)
            *(double *)((char *)r->plan + field->offset) =
                r->opts->of[choice].number.value;
    } else if (given) {
        ms_plan_set(r->plan, choice, ms_plan_given_or(r->opts, choice, 0));
    } else if (!is_from_file(r, choice)) {
        ms_plan_set(r->plan, choice,
                    ms_rule_default(&r->rules, r->plan, r->stack, choice));
        note_usual(r, choice);
    }
}

static void pick_all(const resolver *r, ms_choice first, ms_choice end)
{
    for (ms_choice choice = first; choice < end; choice++)
        pick(r, choice);
}

/* Sets choices by their flags; their defaults, the stack's own, need no note. */
static void pick_given(const resolver *r, ms_choice first, ms_choice end)
{
    for (ms_choice choice = first; choice < end; choice++)
        if (ms_plan_is_given(r->opts, choice))
            pick(r, choice);
}

static void pick_text(const resolver *r, ms_choice choice, const char **out)
{
    if (ms_plan_is_given(r->opts, choice))
        *out = r->opts->of[choice].text;
    else if (!r->from_file)
        note_usual(r, choice);
}

/* ---- names ---- */

static ms_status read_text(ms_ctx *cx, const char *text, ms_plan *out)
{
    ms_jdoc *doc;
    ms_jval root;
    MS_TRY(ms_json_parse(cx, "plan", text, strlen(text), &doc, &root));
    ms_status status = ms_plan_read(cx, root, out);
    ms_json_close(doc);
    return status;
}

static ms_status start(resolver *r)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    *plan = ms_plan_default(ms_plan_given_or(opts, MS_CHOOSE_GPUS, 1));
    if (opts->plan_text != NULL)
        MS_TRY(read_text(r->cx, opts->plan_text, plan));
    else if (opts->plan_file != NULL)
        MS_TRY(ms_plan_source_load(r->cx, opts, plan));
    r->from_file = opts->plan_text != NULL || opts->plan_file != NULL;
    r->file = *plan;
    if (ms_plan_is_given(opts, MS_CHOOSE_MODEL))
        plan->model = opts->of[MS_CHOOSE_MODEL].text;
    if (plan->model == NULL && !r->no_model) {
        ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "no model is given");
        return ms_hint(r->cx, "--model 8b; \"meshsim model\" lists the names");
    }
    pick_text(r, MS_CHOOSE_CLUSTER, &plan->cluster);
    pick_text(r, MS_CHOOSE_STACK, &plan->stack);
    plan->ranks_per_domain =
        ms_plan_given_or(opts, MS_CHOOSE_RANKS_PER_DOMAIN, plan->ranks_per_domain);
    plan->profile = opts->of[MS_CHOOSE_PROFILE].text;
    if (plan->profile == NULL && !r->from_file)
        ms_note_default(r->cx, "--profile that of the cluster");
    MS_TRY(ms_stack_load(r->cx, plan->stack, &r->stack));
    return ms_rule_set_load(r->cx, r->stack, &r->rules);
}

/* ---- axes ---- */

static double num_ranks(const ms_plan *plan)
{
    double product = 1.0;
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        product *= (double)plan->size[axis];
    return product;
}

/* The axes above 1 as text: "pp 3 x tp 8". */
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

/* Text of the smaller sizes that the plan's only axis above 1 may have: "tp may be one of
 * 1 2 4 8, or "; "" unless exactly one axis is above 1. */
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

/* Sets axis sizes, dp_shard without a note; true unless all are those of the plan
 * file. */
static bool set_sizes(const resolver *r)
{
    bool changed = !r->from_file || ms_plan_is_given(r->opts, MS_CHOOSE_GPUS);
    for (ms_choice axis = MS_CHOOSE_PP; axis <= MS_CHOOSE_TP; axis++) {
        resolver quiet = *r;
        quiet.silent = r->silent || axis == MS_CHOOSE_DP_SHARD;
        pick(&quiet, axis);
        changed = changed || ms_plan_is_given(r->opts, axis);
    }
    return changed;
}

static ms_status resolve_axes(const resolver *r)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    if (!set_sizes(r))
        return MS_OK;
    bool shard_given = ms_plan_is_given(opts, MS_CHOOSE_DP_SHARD);
    bool dp_given = shard_given || ms_plan_is_given(opts, MS_CHOOSE_DP_REPLICATE);
    plan->gpus = ms_plan_given_or(opts, MS_CHOOSE_GPUS, r->from_file ? plan->gpus : 0);
    if (plan->gpus > 0 && !dp_given)
        return take_rest(r);
    double product = num_ranks(plan);
    if (!shard_given && !r->from_file)
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

/* ---- choices besides names and axes ---- */

static void resolve_batch(const resolver *r)
{
    pick_all(r, MS_CHOOSE_SEQUENCE_LENGTH, MS_CHOOSE_MICROBATCH);
    pick(r, MS_CHOOSE_COMPUTE);
}

static ms_status resolve_schedule(const resolver *r)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    plan->virtual_stages =
        ms_plan_given_or(opts, MS_CHOOSE_VIRTUAL_STAGES, plan->virtual_stages);
    if (ms_plan_given_or(opts, MS_CHOOSE_SCHEDULE, MS_1F1B) == MS_CUSTOM)
        MS_TRY(
            ms_plan_load_schedule(r->cx, opts->of[MS_CHOOSE_SCHEDULE].word.text, plan));
    else
        pick(r, MS_CHOOSE_SCHEDULE);
    pick_all(r, MS_CHOOSE_VIRTUAL_STAGES, MS_CHOOSE_ZERO);
    return MS_OK;
}

static ms_status resolve_pipeline(const resolver *r)
{
    const ms_plan_options *opts = r->opts;
    ms_plan *plan = r->plan;
    pick_all(r, MS_CHOOSE_MICROBATCH, MS_CHOOSE_SCHEDULE);
    MS_TRY(resolve_schedule(r));
    if (ms_plan_is_given(opts, MS_CHOOSE_STAGE_LAYERS))
        return ms_layers_parse(r->cx, opts->of[MS_CHOOSE_STAGE_LAYERS].text, plan);
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

static void resolve_sharding(const resolver *r)
{
    const ms_plan *plan = r->plan;
    pick_all(r, MS_CHOOSE_ZERO, MS_CHOOSE_SEQUENCE_PARALLEL);
    if (!r->silent && plan->zero > 0 && plan->size[MS_DP_SHARD] * plan->size[MS_CP] == 1)
        ms_note(r->cx,
                "zero %ld has no effect: dp_shard x cp is 1, nothing to shard over",
                plan->zero);
}

static void resolve_context(const resolver *r)
{
    const ms_plan *plan = r->plan;
    pick_all(r, MS_CHOOSE_SEQUENCE_PARALLEL, MS_CHOOSE_RECOMPUTE);
    if (!r->silent && plan->size[MS_CP] > 1 && plan->cp_method == MS_CP_ULYSSES &&
        ms_plan_is_given(r->opts, MS_CHOOSE_CP_BALANCE))
        ms_note(r->cx, "--cp-balance has no effect with ulysses: every rank sees whole "
                       "sequences, with some of the heads");
}

/* Refuses the recomputation flag of `choice`, which has no effect in the plan's mode but
 * in `mode`; if the value is from a plan file, resets it to the default instead. */
static ms_status refuse_idle(const resolver *r, ms_choice choice, const char *mode)
{
    const char *flag = ms_plan_fields[choice].flag;
    const char *value = ms_plan_value_text(r->cx->arena, r->plan, choice);
    if (ms_plan_is_plain(r->plan, choice))
        return MS_OK;
    if (!ms_plan_is_given(r->opts, choice)) {
        ms_plan_reset(r->plan, choice);
        return MS_OK;
    }
    ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "%s %s has no effect with recompute %s", flag,
            value, ms_recompute_names[r->plan->recompute]);
    return ms_hint(r->cx, "--recompute %s %s %s", mode, flag, value);
}

static ms_status resolve_recompute(const resolver *r)
{
    const ms_plan *plan = r->plan;
    pick_given(r, MS_CHOOSE_RECOMPUTE_MODULES, MS_CHOOSE_COMPUTE);
    pick_all(r, MS_CHOOSE_RECOMPUTE, MS_CHOOSE_RECOMPUTE_MODULES);
    if (plan->recompute != MS_RECOMPUTE_SELECTIVE)
        MS_TRY(refuse_idle(r, MS_CHOOSE_RECOMPUTE_MODULES, "selective"));
    if (plan->recompute != MS_RECOMPUTE_AUTO)
        MS_TRY(refuse_idle(r, MS_CHOOSE_RECOMPUTE_BUDGET, "auto"));
    return plan->recompute == MS_RECOMPUTE_FULL
               ? MS_OK
               : refuse_idle(r, MS_CHOOSE_RECOMPUTE_LAYERS, "full");
}

/* Takes the optional choices, those after ranks_per_domain, from their flags. */
static void resolve_optional(const resolver *r)
{
    resolver quiet = *r;
    quiet.silent = true; /* their defaults are "not chosen" */
    for (ms_choice choice = MS_CHOOSE_RANKS_PER_DOMAIN + 1; choice < MS_NUM_CHOICES;
         choice++) {
        if (ms_plan_fields[choice].kind != MS_CHOICE_TEXT)
            pick(&quiet, choice);
        else if (ms_plan_is_given(r->opts, choice))
            *(const char **)((char *)r->plan + ms_plan_fields[choice].offset) =
                r->opts->of[choice].text;
    }
}

/* Refuses flags that say more of what another flag asks for, without that flag. */
static ms_status check_needed(const resolver *r)
{
    static const ms_choice choices[] = {MS_CHOOSE_LORA_TARGETS, MS_CHOOSE_LORA_BASE,
                                        MS_CHOOSE_LENGTH_MEAN, MS_CHOOSE_LENGTH_DEVIATION,
                                        MS_CHOOSE_LENGTHS};
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        if (ms_plan_is_given(r->opts, choices[i]) &&
            !ms_plan_matters(r->plan, choices[i])) {
            return ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "%s has no effect without %s",
                           ms_plan_fields[choices[i]].flag,
                           ms_plan_fields[choices[i]].needs);
        }
    }
    return MS_OK;
}

/* Whether a flag, or a key that plan files mostly leave out, states a value of a choice
 * unlike its default. */
static bool is_stated(const resolver *r, ms_choice choice)
{
    const ms_plan_field *field = &ms_plan_fields[choice];
    bool is_default = field->kind == MS_CHOICE_NUMBER || is_text(choice)
                          ? ms_plan_is_plain(r->plan, choice)
                          : ms_plan_get(r->plan, choice) ==
                                ms_rule_default(&r->rules, r->plan, r->stack, choice);
    return !is_default &&
           (ms_plan_is_given(r->opts, choice) || field->json_plain == MS_PLAIN_OMITTED);
}

/* Notes choices that the plan states and that have no effect in it, whatever the model
 * and the cluster are. */
static void note_idle(const resolver *r)
{
    for (ms_choice choice = 0; choice < MS_NUM_CHOICES; choice++) {
        if (!ms_plan_matters(r->plan, choice) && is_stated(r, choice)) {
            ms_note(r->cx, "%s %s has no effect without %s", ms_plan_fields[choice].flag,
                    ms_plan_value_text(r->cx->arena, r->plan, choice),
                    ms_plan_fields[choice].needs);
        }
    }
}

static ms_status resolve_rest(const resolver *r)
{
    resolve_optional(r);
    MS_TRY(check_needed(r));
    pick_all(r, MS_CHOOSE_EP, MS_CHOOSE_ORDER);
    MS_TRY(resolve_pipeline(r));
    resolve_sharding(r);
    resolve_context(r);
    MS_TRY(resolve_recompute(r));
    pick_given(r, MS_CHOOSE_PARAM_DTYPE, MS_CHOOSE_STACK);
    if (ms_plan_is_given(r->opts, MS_CHOOSE_ORDER))
        return ms_order_parse(r->cx, r->opts->of[MS_CHOOSE_ORDER].text, r->plan);
    if (!r->from_file)
        note_usual(r, MS_CHOOSE_ORDER);
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

static ms_status resolve(resolver *r)
{
    MS_TRY(start(r));
    MS_TRY(resolve_axes(r));
    resolve_batch(r);
    return resolve_rest(r);
}

ms_status ms_plan_from_options(ms_ctx *cx, const ms_plan_options *opts, ms_plan *out)
{
    resolver r = {.cx = cx, .opts = opts, .plan = out};
    MS_TRY(resolve(&r));
    note_idle(&r);
    return MS_OK;
}

ms_status ms_plan_mesh_from_options(ms_ctx *cx, const ms_plan_options *opts, ms_plan *out)
{
    return resolve(&(resolver){.cx = cx, .opts = opts, .plan = out, .no_model = true});
}

ms_status ms_plan_base_from_options(ms_ctx *cx, const ms_plan_options *opts, ms_plan *out)
{
    resolver r = {.cx = cx, .opts = opts, .plan = out};
    MS_TRY(start(&r));
    if (!ms_plan_is_given(opts, MS_CHOOSE_GPUS) && !r.from_file) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the number of GPUs is not given");
        return ms_hint(cx, "for example --gpus 512");
    }
    out->gpus = ms_plan_given_or(opts, MS_CHOOSE_GPUS, out->gpus);
    resolve_batch(&r);
    r.silent = true;
    (void)set_sizes(&r);
    return resolve_rest(&r);
}
