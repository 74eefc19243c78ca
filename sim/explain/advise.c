#include "sim/explain/advise.h"

#include "sim/explain/advise_priv.h"
#include "sim/explain/explain_priv.h"
#include "sim/explain/plan_edit.h"
#include "sim/step/prediction_text.h"
#include "sim/step/recompute_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Prediction of a changed plan with the edits that make it. */
typedef struct candidate {
    ms_advised advised;
    ms_plan plan; /* layers_per_stage is NULL for the default split */
    const ms_plan_edit *edit;
    int number; /* place in the order of edits, to break ties */
} candidate;

typedef struct advisor {
    ms_ctx *cx;
    ms_workload *workload;
    const ms_plan *plan;
    ms_advice *out;
    candidate *candidates;
    int num;
} advisor;

/* ---- one plan ---- */

/* Predicts a plan whose recomputation saves another share of activations than the
 * workload's plans do, and finds that share if the plan leaves it open. */
static ms_status predict_refitted(ms_ctx *cx, const ms_workload *workload, ms_plan *plan,
                                  ms_prediction *out)
{
    ms_workload_inputs inputs = {workload->model, workload->cluster, workload->profile,
                                 workload->stack, workload->group_profiles};
    ms_workload *own;
    MS_TRY(ms_workload_make(cx, &inputs, plan, &own));
    own->spread = workload->spread;
    own->peak_spread = workload->peak_spread;
    own->memory = workload->memory;
    ms_status status = ms_recompute_fit(own, plan);
    if (status == MS_OK)
        status = ms_predict(cx, own, plan, out);
    ms_workload_close(own);
    return status;
}

static ms_status predict(ms_ctx *cx, ms_workload *workload, ms_plan *plan,
                         ms_prediction *out)
{
    double budget_frac = plan->recompute_budget_frac;
    bool refits = ms_plan_layer_mode(plan) == MS_RECOMPUTE_AUTO &&
                  (budget_frac < 0.0 || budget_frac != workload->recompute_budget_frac);
    return refits ? predict_refitted(cx, workload, plan, out)
                  : ms_predict(cx, workload, plan, out);
}

static ms_status advised(advisor *a, const ms_plan *plan, ms_advised *out)
{
    ms_ctx scratch = {.arena = ms_arena_open()};
    ms_prediction p;
    ms_plan used = *plan;
    ms_status status = predict(&scratch, a->workload, &used, &p);
    if (status == MS_OK) {
        used = ms_prediction_plan(&used, &p);
        size_t bytes = (size_t)used.num_stage_layers * sizeof(long);
        long *layers = MS_NEW_ARRAY(a->cx->arena, used.num_stage_layers, long);
        used.layers_per_stage = memcpy(layers, p.layers_per_stage, bytes);
        *out = (ms_advised){ms_plan_edit_text(a->cx->arena, a->plan, &used),
                            used,
                            p.step_s,
                            p.peak_bytes,
                            p.fits_probability,
                            p.fits,
                            p.peak_bytes + p.outside_bytes <= p.limit.limit_bytes};
    }
    ms_arena_close(scratch.arena);
    return status;
}

/* ---- single changes ---- */

static bool is_known(const advisor *a, const ms_plan *plan)
{
    bool known = ms_plan_equal(plan, a->plan);
    for (int i = 0; i < a->num && !known; i++)
        known = ms_plan_equal(plan, &a->candidates[i].plan);
    return known;
}

static int by_rank(const void *left, const void *right)
{
    const candidate *x = left, *y = right;
    const ms_advised *a = &x->advised, *b = &y->advised;
    if (a->fits != b->fits)
        return a->fits ? -1 : 1;
    if (a->step_s != b->step_s)
        return a->step_s < b->step_s ? -1 : 1;
    if (a->peak_bytes != b->peak_bytes)
        return a->peak_bytes < b->peak_bytes ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static ms_status try_singles(advisor *a)
{
    ms_plan_edit *edits;
    int num_edits = ms_plan_edits(a->cx->arena, a->workload, a->plan, &edits);
    a->candidates = MS_NEW_ARRAY(a->cx->arena, num_edits, candidate);
    for (int i = 0; i < num_edits; i++) {
        ms_plan plan;
        if (!ms_plan_edit_apply(a->workload, a->plan, &edits[i], &plan) ||
            is_known(a, &plan))
            continue;
        candidate *c = &a->candidates[a->num];
        *c = (candidate){.plan = plan, .edit = &edits[i], .number = i};
        MS_TRY(advised(a, &plan, &c->advised));
        a->num++;
    }
    qsort(a->candidates, (size_t)a->num, sizeof *a->candidates, by_rank);
    ms_advised *changes = MS_NEW_ARRAY(a->cx->arena, a->num, ms_advised);
    for (int i = 0; i < a->num; i++) {
        changes[i] = a->candidates[i].advised;
        a->out->num_fitting += changes[i].fits;
    }
    a->out->changes = changes;
    a->out->num = a->num;
    return MS_OK;
}

/* ---- pairs ---- */

/* The fastest step of a plan that fits, so far: the given plan's counts too. */
static double fastest_s(const ms_advice *advice)
{
    double fastest = advice->given.fits ? advice->given.step_s : (double)INFINITY;
    if (advice->num_fitting > 0)
        fastest = fmin(fastest, advice->changes[0].step_s);
    return advice->has_pair ? fmin(fastest, advice->pair.step_s) : fastest;
}

/* Whether the share of activations that a plan saves is still to be found. */
static bool is_open(const ms_plan *plan)
{
    return plan->recompute == MS_RECOMPUTE_AUTO && plan->recompute_budget_frac < 0.0;
}

/* Whether a plan can be the fastest, by a bound of its step. Recomputation only adds time,
 * so the bound of an open plan is without any. */
static bool may_win(advisor *a, const ms_plan *plan)
{
    ms_ctx scratch = {.arena = ms_arena_open()};
    ms_plan lean = *plan;
    if (is_open(plan))
        lean.recompute = MS_RECOMPUTE_NONE;
    double bound_s = ms_planned_bound_s(&scratch, a->workload, &lean);
    ms_arena_close(scratch.arena);
    return bound_s < fastest_s(a->out);
}

static ms_status try_pair(advisor *a, const candidate *first, const candidate *second,
                          bool open)
{
    ms_plan plan;
    ms_advised pair;
    if (!ms_plan_edit_apply(a->workload, &first->plan, second->edit, &plan) ||
        is_open(&plan) != open || is_known(a, &plan) || !may_win(a, &plan))
        return MS_OK;
    MS_TRY(advised(a, &plan, &pair));
    if (pair.fits && pair.step_s < fastest_s(a->out)) {
        a->out->has_pair = true;
        a->out->pair = pair;
    }
    return MS_OK;
}

/* Tries all pairs; open plans come last, when a fast pair can rule them out. */
static ms_status try_pairs(advisor *a)
{
    for (int open = 0; open < 2; open++)
        for (int i = 0; i < a->num; i++)
            for (int k = i + 1; k < a->num; k++)
                MS_TRY(try_pair(a, &a->candidates[i], &a->candidates[k], open));
    return MS_OK;
}

/* ---- all ---- */

static ms_status advise(advisor *a)
{
    MS_TRY(advised(a, a->plan, &a->out->given));
    MS_TRY(try_singles(a));
    MS_TRY(try_pairs(a));
    return ms_advise_measure(a->cx, a->workload, a->out);
}

ms_status ms_advise(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                    const ms_memory_rule *rule, ms_advice *out)
{
    ms_memory_limit before = workload->memory;
    ms_workload_set_memory_rule(workload, rule);
    *out = (ms_advice){.limit = workload->memory};
    advisor a = {.cx = cx, .workload = workload, .plan = plan, .out = out};
    ms_status status = advise(&a);
    workload->memory = before;
    return status;
}

/* ---- JSON ---- */

static void write_fields(ms_jout *out, const ms_advised *change, double given_s)
{
    ms_jout_text_field(out, "change", change->change);
    ms_jout_number_field(out, "step_s", change->step_s);
    ms_jout_number_field(out, "step_change_frac", change->step_s / given_s - 1.0);
    ms_jout_number_field(out, "peak_bytes", change->peak_bytes);
    ms_jout_bool_field(out, "fits", change->fits);
    ms_jout_number_field(out, "fits_probability", change->fits_probability);
    ms_jout_key(out, "plan");
    ms_plan_write_json(out, &change->plan);
}

static void write_coefficient(ms_jout *out, const ms_advice_measure *m)
{
    const ms_explain_figure *f = m->figure;
    ms_jout_text_field(out, "file", f->file);
    ms_jout_text_field(out, "key", f->key);
    ms_jout_text_field(out, "help", f->help);
    ms_jout_text_field(out, "from", ms_provenance_names[f->from]);
    ms_jout_text_field(out, "source", f->source);
    ms_jout_text_field(out, "unit", ms_explain_unit(f));
    ms_jout_number_field(out, "value", f->value);
    ms_jout_number_field(out, "low", m->low);
    ms_jout_number_field(out, "high", m->high);
    ms_jout_number_field(out, "flip_value", m->flip_value);
}

static void write_measure(ms_jout *out, const ms_advice_measure *m)
{
    ms_jout_text_field(out, "what", m->figure == NULL ? "peak_memory" : "coefficient");
    ms_jout_text_field(out, "best", m->best->change);
    ms_jout_text_field(out, "rival", m->rival->change);
    if (m->figure != NULL)
        write_coefficient(out, m);
}

void ms_advice_write_field(ms_jout *out, const ms_advice *advice)
{
    ms_jout_begin_object_field(out, "advice");
    ms_jout_begin_array_field(out, "changes");
    for (int i = 0; i < advice->num; i++) {
        ms_jout_begin_object(out);
        write_fields(out, &advice->changes[i], advice->given.step_s);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_key(out, "pair");
    if (advice->has_pair) {
        ms_jout_begin_object(out);
        write_fields(out, &advice->pair, advice->given.step_s);
        ms_jout_end_object(out);
    } else {
        ms_jout_null(out);
    }
    ms_jout_key(out, "measure");
    if (advice->has_measure) {
        ms_jout_begin_object(out);
        write_measure(out, &advice->measure);
        ms_jout_end_object(out);
    } else {
        ms_jout_null(out);
    }
    ms_jout_end_object(out);
}
