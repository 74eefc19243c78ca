/* The answer to --why in lines: what each stage of the search decided about the plan, and
 * by which numbers. */
#include <math.h>
#include <string.h>

#include "sim/search/mesh_orders.h"
#include "sim/search/shortfall.h"
#include "sim/search/ties.h"
#include "sim/search/why_priv.h"
#include "sim/step/prediction_text.h"

typedef struct writer {
    const ms_why_context *known;
    ms_arena *arena;
    ms_why *why;
    ms_why_stage *stage; /* line of the answer being written */
} writer;

static void begin(writer *w, const char *stage, const char *verdict, const char *detail)
{
    w->stage = &w->why->stages[w->why->num_stages++];
    *w->stage = (ms_why_stage){.stage = stage, .verdict = verdict, .detail = detail};
}

static void number(writer *w, const char *name, double value)
{
    ms_why_stage *stage = w->stage;
    stage->numbers[stage->num_numbers].name = name;
    stage->numbers[stage->num_numbers++].value = value;
}

/* Text of a time: "7.794 s" */
static const char *seconds(const writer *w, double value)
{
    return ms_arena_printf(w->arena, "%.*f s", ms_decimals(value), value);
}

/* ---- legal, space ---- */

static void write_legal(writer *w)
{
    const ms_why *why = w->why;
    if (why->refused == NULL) {
        begin(w, "legal", "yes", NULL);
        return;
    }
    begin(w, "legal",
          ms_arena_printf(w->arena, "refused (%s)", ms_refusal_names[why->refusal]),
          why->refused);
}

/* Text of asked choices that have no effect: "; async_tp=on has no effect here". */
static const char *without_effect(const writer *w)
{
    const ms_plan *plan = &w->why->plan;
    const ms_space *asked = &w->why->question->asked;
    const char *text = "";
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++) {
        bool may_idle = ms_plan_fields[i].matters != NULL && i != MS_CHOOSE_SCHEDULE;
        if (may_idle && ms_why_is_given(asked, (int)i) &&
            asked->low[i] != ms_plan_get(plan, i))
            text = ms_arena_printf(w->arena, "%s; %s has no effect here", text,
                                   ms_space_choice_text(w->arena, i, asked->low[i]));
    }
    return text;
}

static void write_space(writer *w)
{
    const ms_why *why = w->why;
    if (why->excluded != NULL) {
        const char *rest =
            why->is_another
                ? "; followed is the best plan tried in its place"
                : "; followed is the best plan that matches, as if it were inside";
        begin(w, "space", "outside",
              ms_arena_printf(w->arena, "%s%s", why->excluded, rest));
    } else if (!why->has_plan) {
        begin(w, "space", "unknown",
              "interrupted before a plan that matches was looked at");
    } else if (why->num_plans == 1) {
        begin(w, "space", "inside",
              ms_arena_printf(w->arena, "this one plan%s", without_effect(w)));
    } else {
        begin(w, "space", "inside",
              ms_arena_printf(
                  w->arena, "%ld plans match; followed is the %s%s", why->num_plans,
                  why->is_partial        ? "best of those looked at before the interrupt"
                  : why->prediction.fits ? "fastest of them that fits"
                                         : "one that needs least memory, as none fits",
                  without_effect(w)));
    }
    number(w, "plans", (double)why->num_plans);
}

/* ---- bounds ---- */

/* Text of the step time to beat: "the slowest of the 10 fastest (7.959 s)" */
static const char *last_of_list(const writer *w)
{
    return ms_arena_printf(w->arena, "the slowest of the %d fastest (%s)",
                           w->known->options->num_best, seconds(w, w->why->threshold_s));
}

static void write_mesh(writer *w)
{
    const ms_why *why = w->why;
    const char *least = seconds(w, why->mesh_bound_s);
    bool interrupted = !w->known->result->optimal && why->rank == 0;
    const char *rest = "; the list has room";
    if (why->mesh_ruled_out)
        rest = ms_arena_printf(w->arena, ", longer than %s", last_of_list(w));
    else if (interrupted)
        rest = "; the search was interrupted";
    else if (isfinite(why->threshold_s))
        rest = ms_arena_printf(w->arena, ", which is below %s", last_of_list(w));
    begin(w, "mesh",
          why->mesh_ruled_out ? "ruled out"
          : interrupted       ? "open"
                              : "explored",
          ms_arena_printf(w->arena, "%s %s%s",
                          why->mesh_ruled_out ? "no plan of its mesh takes less than"
                                              : "its plans take at least",
                          least, rest));
    number(w, "bound_s", why->mesh_bound_s);
    number(w, "threshold_s", why->threshold_s);
}

/* Text of what the plan's bound exceeds: "and another plan of its mesh takes 7.794 s". */
static const char *beaten_by(const writer *w)
{
    const ms_watch *among = &w->why->among;
    if (!among->by_mesh)
        return ms_arena_printf(w->arena, "longer than %s", last_of_list(w));
    return ms_arena_printf(w->arena, "and another plan of its mesh takes %s",
                           seconds(w, among->beaten_by_s));
}

static void write_sharding(writer *w)
{
    const ms_watch *alone = &w->why->alone, *among = &w->why->among;
    bool reached = !w->why->mesh_ruled_out && among->fate != MS_FATE_ASYNC;
    bool ruled_out = reached && (among->fate == MS_FATE_SCHEDULE_BOUND ||
                                 among->fate == MS_FATE_SHARDING_BOUND ||
                                 among->fate == MS_FATE_PLAN_BOUND);
    const char *text = ms_arena_printf(w->arena, "on its own links at least %s",
                                       seconds(w, alone->sharding_bound_s));
    if (ruled_out && among->fate == MS_FATE_SCHEDULE_BOUND)
        text = ms_arena_printf(
            w->arena, "its micro-batch and schedule take at least %s on ideal links",
            seconds(w, alone->schedule_bound_s));
    if (ruled_out && among->fate == MS_FATE_PLAN_BOUND)
        text = ms_arena_printf(w->arena, "%s, with its recomputation %s", text,
                               seconds(w, alone->bound_s));
    if (ruled_out)
        text = ms_arena_printf(w->arena, "%s, %s", text, beaten_by(w));
    begin(w, "sharding",
          ruled_out ? "ruled out"
          : reached ? "not ruled out"
                    : "not reached",
          text);
    number(w, "schedule_bound_s", alone->schedule_bound_s);
    number(w, "bound_s", alone->sharding_bound_s);
    number(w, "plan_bound_s", alone->bound_s);
    number(w, "beaten_by_s", among->beaten_by_s);
}

/* ---- memory ---- */

/* The nearest change with which the plan would fit, with its prediction. */
static const char *change_text(const writer *w)
{
    const ms_why_context *known = w->known;
    ms_shortfall shortfall;
    ms_shortfall_of_plan(known->cx, known->workload, &w->why->plan, &w->why->prediction,
                         known->options, &shortfall);
    if (shortfall.change == NULL)
        return "nothing near it fits";
    return ms_arena_printf(w->arena, "%s: %s (%s, %.2f GiB)",
                           shortfall.is_searched ? "no near change fits, but this plan"
                                                 : "the nearest change that fits",
                           shortfall.change, seconds(w, shortfall.step_s),
                           ms_gib(shortfall.peak_bytes));
}

static void write_memory(writer *w)
{
    const ms_prediction *p = &w->why->prediction;
    double free_bytes = ms_prediction_free_bytes(p, p->peak_bytes);
    const char *needs = ms_arena_printf(
        w->arena, "%.2f GiB%s on pipeline rank %d, a GPU has %.2f: %.2f ",
        ms_gib(p->peak_bytes), ms_outside_text(w->arena, p), p->worst_rank,
        ms_gib(p->capacity_bytes), ms_gib(free_bytes < 0.0 ? -free_bytes : free_bytes));
    if (p->fits)
        begin(w, "memory", "fits", ms_arena_printf(w->arena, "%sfree", needs));
    else if (free_bytes < 0.0)
        begin(w, "memory", "does not fit",
              ms_arena_printf(w->arena, "%sGiB short; %s", needs, change_text(w)));
    else
        begin(w, "memory", "too close",
              ms_arena_printf(w->arena, "%sGiB free, fits with probability %.2f; %s",
                              needs, p->fits_probability, change_text(w)));
    number(w, "peak_bytes", p->peak_bytes);
    number(w, "device_bytes", p->peak_bytes + p->outside_bytes);
    number(w, "capacity_bytes", p->capacity_bytes);
    number(w, "fits_probability", p->fits_probability);
    number(w, "shortfall_bytes", p->fits ? 0.0 : p->needed_bytes - p->limit.limit_bytes);
}

/* ---- dominance ---- */

/* Writes the line about the plan that a search tries instead, with its predicted time and
 * memory: the watched plan without recomputation, or with asynchronous TP. */
static ms_status write_dominated_by(writer *w, bool by_async)
{
    ms_plan instead = w->why->plan;
    ms_prediction p;
    if (by_async) {
        instead.async_tp = true;
    } else {
        instead.recompute = MS_RECOMPUTE_NONE;
        instead.recompute_layers = 0;
    }
    MS_TRY(ms_predict(w->known->cx, w->known->workload, &instead, &p));
    const char *why = by_async ? "async_tp=on is never slower"
                               : "it fits without recomputation, which only adds time";
    begin(w, "dominated", w->why->mesh_ruled_out ? "not reached" : "dominated",
          ms_arena_printf(w->arena, "%s: %s, %.2f GiB", why, seconds(w, p.step_s),
                          ms_gib(p.peak_bytes)));
    number(w, "instead_step_s", p.step_s);
    number(w, "instead_peak_bytes", p.peak_bytes);
    return MS_OK;
}

static ms_status write_dominance(writer *w)
{
    const ms_why *why = w->why;
    ms_fate fate = why->among.fate;
    if (fate == MS_FATE_UNNEEDED || fate == MS_FATE_ASYNC)
        return write_dominated_by(w, fate == MS_FATE_ASYNC);
    bool unreached = why->mesh_ruled_out || fate == MS_FATE_SCHEDULE_BOUND ||
                     fate == MS_FATE_SHARDING_BOUND;
    if (why->is_stand_in) {
        begin(w, "dominated", "same as another",
              ms_arena_printf(
                  w->arena, "order %s lies on the same links, and is tried in its place",
                  ms_order_text(w->arena, &why->among.plan, why->among.plan.order)));
    } else {
        begin(w, "dominated", unreached ? "not reached" : "no", NULL);
    }
    return MS_OK;
}

/* ---- replay ---- */

/* Text of the plan's step time against than_s: "0.118 s (1.5 %) slower than the best" */
static const char *against(const writer *w, double than_s, const char *what)
{
    double more_s = w->why->prediction.step_s - than_s;
    if (!(fabs(more_s) > 0.0))
        return ms_arena_printf(w->arena, "as fast as %s, which comes first", what);
    return ms_arena_printf(w->arena, "%.*f s (%.1f %%) %s than %s", ms_decimals(than_s),
                           fabs(more_s), 100.0 * fabs(more_s) / than_s,
                           more_s > 0.0 ? "slower" : "faster", what);
}

static const char *against_best(const writer *w)
{
    if (w->known->best == NULL)
        return "no plan was found to compare with";
    return against(w, w->known->best->step_s,
                   w->known->result->optimal ? "the best" : "the best so far");
}

/* Text that compares the plan with the listed plan of its mesh; "" if none is listed. */
static const char *against_mesh(const writer *w)
{
    const ms_why *why = w->why;
    if (why->rank > 0 || why->mesh_rank == 0)
        return "";
    if (why->mesh_rank == ms_search_fastest(w->known->result) + 1)
        return ", which is of the same mesh";
    const ms_found *listed = &w->known->result->found[why->mesh_rank - 1];
    return ms_arena_printf(
        w->arena, ", %s",
        against(w, listed->step_s,
                ms_arena_printf(w->arena, "#%d of the same mesh", why->mesh_rank)));
}

static const char *replay_text(const writer *w)
{
    const ms_why *why = w->why;
    const char *what =
        ms_arena_printf(w->arena, "%s, MFU %.1f %%: ", seconds(w, why->prediction.step_s),
                        100.0 * why->prediction.mfu_frac);
    if (why->rank > 0 && why->rank == ms_search_fastest(w->known->result) + 1)
        return ms_arena_printf(w->arena, "%sthe best%s", what,
                               w->known->result->optimal ? "" : " so far");
    return ms_arena_printf(w->arena, "%s%s%s", what, against_best(w), against_mesh(w));
}

static const char *replay_verdict(const writer *w)
{
    const ms_why *why = w->why;
    const char *tied =
        why->among.fate == MS_FATE_REPLAYED ? "" : " for its simplicity, by the tie band";
    if (why->rank > 0)
        return ms_arena_printf(w->arena, "listed as #%d%s%s", why->rank, tied,
                               w->known->result->optimal ? "" : " so far");
    bool reached = !why->mesh_ruled_out && (why->excluded == NULL || why->is_another);
    if (why->among.fate == MS_FATE_REPLAYED && reached)
        return w->known->result->optimal ? "replayed" : "open";
    return "not replayed in the search";
}

static void write_replay(writer *w)
{
    const ms_why *why = w->why;
    double best_s = w->known->best == NULL ? (double)NAN : w->known->best->step_s;
    begin(w, "replay", replay_verdict(w), replay_text(w));
    number(w, "step_s", why->prediction.step_s);
    number(w, "mfu_frac", why->prediction.mfu_frac);
    number(w, "rank", why->rank > 0 ? (double)why->rank : (double)NAN);
    number(w, "best_step_s", best_s);
    number(w, "slower_s", why->prediction.step_s - best_s);
    number(w, "slower_frac", why->prediction.step_s / best_s - 1.0);
}

/* `value`, or +0 if it would be printed as zero with these decimals. */
static double rounded(double value, int decimals)
{
    return fabs(value) < 0.5 * pow(10.0, -decimals) ? 0.0 : value;
}

static void write_difference(writer *w)
{
    const ms_prediction *p = &w->why->prediction, *best = w->known->best;
    if (best == NULL || !(fabs(p->step_s - best->step_s) > 0.0))
        return;
    const struct {
        const char *label, *name;
        double value;
    } parts[] = {
        {"compute", "compute_s", p->compute_s - best->compute_s},
        {"exposed communication", "exposed_comm_s",
         p->exposed_comm_s - best->exposed_comm_s},
        {"bubble", "bubble_s", p->bubble_s - best->bubble_s},
        {"optimizer", "optimizer_s", p->optimizer_s - best->optimizer_s},
        {"host", "host_s", p->host_s - best->host_s},
    };
    int decimals = ms_decimals(best->step_s);
    const char *text = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        text =
            ms_arena_printf(w->arena, "%s%s%s %+.*f s", text, i == 0 ? "" : ", ",
                            parts[i].label, decimals, rounded(parts[i].value, decimals));
    begin(w, "difference", "to the best", text);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        number(w, parts[i].name, parts[i].value);
}

ms_status ms_why_write_stages(const ms_why_context *known, ms_why *why)
{
    writer w = {.known = known, .arena = known->cx->arena, .why = why};
    write_legal(&w);
    if (why->refused == NULL)
        write_space(&w);
    if (!why->has_plan)
        return MS_OK;
    write_mesh(&w);
    write_sharding(&w);
    write_memory(&w);
    MS_TRY(write_dominance(&w));
    write_replay(&w);
    write_difference(&w);
    return MS_OK;
}
