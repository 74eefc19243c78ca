/* A what-if study as JSON and CSV. */
#include "base/print.h"
#include "cli/report/whatif_report.h"

#include <math.h>

static const char *const side_names[] = {"low", "high"};

/* ---- plans ---- */

/* Writes the figures of a plan into an open object. */
static void write_figures(ms_jout *out, const ms_best_plan *plan)
{
    const ms_campaign *c = &plan->campaign.campaign;
    bool campaign = plan->found && plan->has_campaign;
    double none = (double)NAN;
    ms_jout_bool_field(out, "found", plan->found);
    ms_jout_text_field(out, "reason", plan->found ? NULL : plan->reason);
    ms_jout_number_field(out, "step_s", ms_what_if_value_of(MS_WHAT_IF_STEP, plan));
    ms_jout_number_field(out, "tokens_per_s",
                         plan->found ? plan->prediction.tokens_per_s : none);
    ms_jout_number_field(out, "peak_bytes",
                         plan->found ? plan->prediction.peak_bytes : none);
    ms_jout_number_field(out, "elapsed_s", ms_what_if_value_of(MS_WHAT_IF_TIME, plan));
    ms_jout_number_field(out, "gpu_hours", campaign ? c->gpu_hours : none);
    ms_jout_number_field(out, "cost", ms_what_if_value_of(MS_WHAT_IF_COST, plan));
    ms_jout_bool_field(out, "keeps_limits", ms_best_plan_keeps_limits(plan));
}

static void write_plan(ms_jout *out, const ms_best_plan *plan, bool is_written)
{
    ms_jout_key(out, "plan");
    if (plan->found && is_written)
        ms_plan_write_json(out, &plan->plan);
    else
        ms_jout_null(out);
}

static void write_kept(ms_jout *out, const ms_best_plan *plan, bool with_plan)
{
    ms_jout_begin_object_field(out, "kept");
    write_figures(out, plan);
    if (with_plan)
        write_plan(out, plan, true);
    ms_jout_end_object(out);
}

static void write_best(ms_jout *out, const ms_best_plan *plan, bool with_plan)
{
    ms_jout_begin_object_field(out, "best");
    write_figures(out, plan);
    ms_jout_bool_field(out, "optimal", plan->optimal);
    write_plan(out, plan, with_plan);
    ms_jout_end_object(out);
}

static void write_outcome(ms_jout *out, const ms_what_if_outcome *outcome)
{
    write_kept(out, &outcome->kept, false);
    ms_jout_bool_field(out, "searched", outcome->searched);
    ms_jout_bool_field(out, "plan_changes", outcome->plan_changes);
    if (outcome->searched) {
        write_best(out, &outcome->best, outcome->plan_changes);
        return;
    }
    ms_jout_key(out, "best");
    ms_jout_null(out);
}

/* ---- JSON ---- */

static void write_number(ms_jout *out, const ms_what_if_number *n)
{
    static const char *const units[] = {"B", "B/s", "s", "FLOP/s", "", ""};
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "file", n->file);
    ms_jout_text_field(out, "key", n->key);
    ms_jout_text_field(out, "help", n->help);
    ms_jout_text_field(out, "unit", units[n->unit]);
    ms_jout_number_field(out, "value", n->value);
    ms_jout_number_field(out, "swing_frac",
                         isfinite(n->swing_frac) ? n->swing_frac : (double)NAN);
    for (int side = 0; side < MS_WHAT_IF_SIDES; side++) {
        ms_jout_begin_object_field(out, side_names[side]);
        ms_jout_number_field(out, "value", n->changed[side]);
        ms_jout_bool_field(out, "limited", n->limited[side]);
        write_outcome(out, &n->sides[side]);
        ms_jout_end_object(out);
    }
    ms_jout_end_object(out);
}

static void write_hardware(ms_jout *out, const ms_what_if_hardware *h)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "name", h->name);
    ms_jout_text_field(out, "reason", h->reason);
    ms_jout_begin_array_field(out, "changes");
    for (int i = 0; i < h->num_edits; i++) {
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "key", h->edits[i].key);
        ms_jout_number_field(out, "from", h->edits[i].from);
        ms_jout_number_field(out, "to", h->edits[i].to);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_number_field(out, "gain_frac", h->gain_frac);
    ms_jout_key(out, "outcome");
    if (h->reason != NULL) {
        ms_jout_null(out);
    } else {
        ms_jout_begin_object(out);
        write_outcome(out, &h->outcome);
        ms_jout_end_object(out);
    }
    ms_jout_end_object(out);
}

static void write_value(ms_jout *out, const ms_what_if_value *v, const char *good)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "good", good);
    ms_jout_text_field(out, "reason", v->reason);
    ms_jout_number_field(out, "tried", v->tried);
    ms_jout_number_field(out, "step", v->step);
    ms_jout_number_field(out, "units", v->units);
    ms_jout_number_field(out, "gain_frac", v->gain_frac);
    ms_jout_number_field(out, "gpu_hours_per_day", v->gpu_hours_per_day);
    ms_jout_number_field(out, "money_per_day", v->money_per_day);
    ms_jout_number_field(out, "net_gpu_hours_per_day", v->net_gpu_hours_per_day);
    ms_jout_number_field(out, "net_money_per_day", v->net_money_per_day);
    write_best(out, &v->best, v->found);
    ms_jout_end_object(out);
}

static void write_job(ms_jout *out, const ms_what_if *w)
{
    const ms_plan *job = &w->job;
    ms_jout_text_field(out, "model", job->model);
    ms_jout_text_field(out, "cluster", job->cluster);
    ms_jout_text_field(out, "profile", w->profile);
    ms_jout_text_field(out, "stack", job->stack);
    ms_jout_number_field(out, "gpus", (double)job->gpus);
    ms_jout_number_field(out, "sequence_length", (double)job->sequence_length);
    ms_jout_number_field(out, "global_batch", (double)job->global_batch);
    ms_jout_number_field(out, "change_frac", w->change_frac);
    ms_jout_number_field(out, "gpu_hour_price", w->gpu_hour_price);
    ms_jout_text_field(out, "measure", ms_what_if_measure_names[w->measure]);
    ms_jout_bool_field(out, "given", w->is_given);
    write_kept(out, &w->kept, true);
    write_best(out, &w->best, w->best.found);
}

void ms_whatif_report_write_json(ms_jout *out, const ms_what_if *w)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.whatif/1");
    write_job(out, w);
    ms_jout_begin_array_field(out, "numbers");
    for (int i = 0; i < w->num_numbers; i++)
        write_number(out, &w->numbers[i]);
    ms_jout_end_array(out);
    ms_jout_number_field(out, "numbers_without_effect", w->num_without_effect);
    ms_jout_begin_array_field(out, "hardware");
    for (int i = 0; i < w->num_hardware; i++)
        write_hardware(out, &w->hardware[i]);
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "values");
    for (ms_what_if_good good = 0; good < MS_WHAT_IF_GOODS && w->kept.found; good++)
        write_value(out, &w->values[good], ms_what_if_good_names[good]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

/* ---- CSV ---- */

/* A cell behind others: a number, empty if it is unknown. */
static void csv_number(FILE *out, double value)
{
    char text[32];
    ms_print(out, ",%s", isnan(value) ? "" : ms_json_number_text(value, text));
}

static void csv_text(FILE *out, const char *text)
{
    fputc(',', out);
    ms_print_csv_text(out, text != NULL ? text : "");
}

static void csv_measures(FILE *out, const ms_best_plan *plan)
{
    for (ms_what_if_measure m = 0; m < MS_WHAT_IF_MEASURES; m++)
        csv_number(out, ms_what_if_value_of(m, plan));
}

static void csv_outcome(FILE *out, ms_arena *arena, const ms_what_if_outcome *o,
                        const char *reason)
{
    csv_measures(out, &o->kept);
    csv_measures(out, &o->best);
    ms_print(out, ",%s", !o->searched ? "" : o->plan_changes ? "1" : "0");
    csv_text(out, o->best.found ? ms_plan_text(arena, &o->best.plan) : "");
    csv_text(out, reason != NULL   ? reason
                  : !o->searched   ? "not searched"
                  : !o->best.found ? o->best.reason
                  : !o->kept.found ? o->kept.reason
                                   : NULL);
    fputc('\n', out);
}

static void csv_side(FILE *out, ms_arena *arena, const ms_what_if_number *n, int side)
{
    ms_print_csv_text(out, "number");
    csv_text(out, ms_arena_printf(arena, "%s %s", n->file, n->key));
    csv_text(out, side_names[side]);
    csv_number(out, n->value);
    csv_number(out, n->changed[side]);
    csv_outcome(out, arena, &n->sides[side], NULL);
}

/* Steps of goods: from none to the smallest with which the best plan is faster. */
static void csv_value(FILE *out, ms_arena *arena, const ms_what_if_value *v,
                      const char *good)
{
    ms_what_if_outcome outcome = {
        .searched = v->found, .best = v->best, .plan_changes = v->found};
    ms_print_csv_text(out, "value");
    csv_text(out, good);
    csv_text(out, "");
    csv_number(out, 0.0);
    csv_number(out, v->step);
    csv_outcome(out, arena, &outcome, v->found ? "" : v->reason);
}

void ms_whatif_report_write_csv(FILE *out, ms_arena *arena, const ms_what_if *w)
{
    fputs("kind,name,side,from,to,kept_step_s,kept_elapsed_s,kept_cost,best_step_s,"
          "best_elapsed_s,best_cost,plan_changes,plan,reason\n",
          out);
    for (int i = 0; i < MS_WHAT_IF_SIDES * w->num_numbers; i++)
        csv_side(out, arena, &w->numbers[i / MS_WHAT_IF_SIDES], i % MS_WHAT_IF_SIDES);
    for (int i = 0; i < w->num_hardware; i++) {
        const ms_what_if_hardware *h = &w->hardware[i];
        ms_print_csv_text(out, "hardware");
        csv_text(out, h->name);
        csv_text(out, "");
        csv_number(out, h->num_edits > 0 ? h->edits[0].from : (double)NAN);
        csv_number(out, h->num_edits > 0 ? h->edits[0].to : (double)NAN);
        csv_outcome(out, arena, &h->outcome, h->reason);
    }
    for (ms_what_if_good good = 0; good < MS_WHAT_IF_GOODS && w->kept.found; good++)
        csv_value(out, arena, &w->values[good], ms_what_if_good_names[good]);
}
