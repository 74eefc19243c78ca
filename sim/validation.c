/* Predicts published runs and summarises the errors. Medians, not means: published tables hold outliers. */
#include "sim/validation.h"

#include "costmodel/statistics.h"
#include "sim/prediction.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- predictions ---- */

/* Workloads that rows share, so that layer programs are priced once. */
typedef struct kept_workload {
    const ms_published_run *first; /* the run it was made for */
    ms_workload *workload;
    struct kept_workload *next;
} kept_workload;

static bool same_workload(const ms_published_run *a, const ms_published_run *b)
{
    return a->model == b->model && a->cluster == b->cluster && a->stack == b->stack &&
           a->plan.sequence_length == b->plan.sequence_length &&
           a->plan.global_batch == b->plan.global_batch &&
           a->plan.compute == b->plan.compute;
}

static ms_status find_workload(ms_ctx *cx, kept_workload **list,
                               const ms_published_run *run, ms_workload **out)
{
    for (kept_workload *at = *list; at != NULL; at = at->next) {
        if (same_workload(at->first, run)) {
            *out = at->workload;
            return MS_OK;
        }
    }
    const ms_workload_parts parts = {run->model, run->cluster, run->profile, run->stack};
    MS_TRY(ms_workload_make(cx, &parts, &run->plan, out));
    kept_workload *made = MS_NEW(cx->arena, kept_workload);
    *made = (kept_workload){.first = run, .workload = *out, .next = *list};
    *list = made;
    return MS_OK;
}

static double signed_error(double predicted, double measured)
{
    return predicted / measured - 1.0;
}

static double measured_rank_bytes(const ms_published_run *run,
                                  const ms_prediction *prediction)
{
    bool first = run->memory_of_first_rank && prediction->num_stages > 0;
    return first ? prediction->stages[0].peak_bytes : prediction->peak_bytes;
}

static ms_run_score score_of(const ms_published_run *run, const ms_prediction *prediction)
{
    double peak_bytes = measured_rank_bytes(run, prediction);
    ms_run_score score = {.step_s = prediction->step_s,
                          .peak_bytes = peak_bytes,
                          .peak_low_bytes = peak_bytes,
                          .peak_high_bytes = peak_bytes};
    score.step_error_frac = signed_error(score.step_s, run->measured_step_s);
    score.peak_error_frac = signed_error(score.peak_bytes, run->measured_peak_bytes);
    score.priced = !isnan(score.step_error_frac) || !isnan(score.peak_error_frac);
    score.over_memory = score.priced && !prediction->fits;
    return score;
}

typedef struct predictor {
    kept_workload *list;
    ms_arena *scratch;
} predictor;

static ms_status predict_run(ms_ctx *cx, predictor *p, const ms_published_run *run,
                             ms_prediction *out)
{
    ms_workload *workload = NULL;
    MS_TRY(find_workload(cx, &p->list, run, &workload));
    ms_ctx inner = {.arena = p->scratch};
    return ms_predict(&inner, workload, &run->plan, out);
}

/* The same object for the same stack: workloads are shared by it. */
static const ms_stack *settled_stack(ms_ctx *cx, const predictor *p,
                                     const ms_stack *stack, bool kept)
{
    for (const kept_workload *at = p->list; at != NULL; at = at->next)
        if (at->first->stack != stack && at->first->stack->regather == !kept &&
            !at->first->stack->keeps_gathers_alone &&
            strcmp(at->first->stack->name, stack->name) == 0)
            return at->first->stack;
    ms_stack *settled = MS_NEW(cx->arena, ms_stack);
    *settled = ms_stack_with_gathers(stack, kept);
    return settled;
}

/* Activations of a micro-batch more than the schedule has in flight, if there are so many: a host that is ahead of its GPU begins the next forward before a
 * backward has given up what it had. */
static double one_more_bytes(const ms_published_run *run, const ms_prediction *prediction)
{
    const ms_stage_prediction *stage = &prediction->stages[0];
    bool more = ms_plan_microbatches(&run->plan) > stage->live_microbatches;
    return more && stage->live_microbatches > 0
               ? stage->memory[MS_MEMORY_ACTIVATIONS] / stage->live_microbatches
               : 0.0;
}

/* Peaks of a stack that keeps what it gathered or not: without, and with all of it and one micro-batch more. */
static ms_status predict_range(ms_ctx *cx, predictor *p, const ms_published_run *run,
                               ms_run_score *score)
{
    double *const ends[] = {&score->peak_low_bytes, &score->peak_high_bytes};
    if (!run->stack->keeps_gathers_alone || run->plan.size[MS_TP] == 1)
        return MS_OK;
    for (int kept = 0; kept < 2; kept++) {
        ms_published_run *settled = MS_NEW(cx->arena, ms_published_run);
        *settled = *run;
        settled->stack = settled_stack(cx, p, run->stack, kept == 1);
        ms_prediction prediction;
        MS_TRY(predict_run(cx, p, settled, &prediction));
        *ends[kept] = measured_rank_bytes(run, &prediction);
        if (kept == 1)
            *ends[kept] += one_more_bytes(run, &prediction);
    }
    return MS_OK;
}

static ms_status score_run(ms_ctx *cx, predictor *p, const ms_published_run *run,
                           ms_run_score *out)
{
    ms_prediction prediction;
    MS_TRY(predict_run(cx, p, run, &prediction));
    *out = score_of(run, &prediction);
    return isnan(run->measured_peak_bytes) ? MS_OK : predict_range(cx, p, run, out);
}

static const ms_run_score unpriced = {.step_s = (double)NAN,
                                      .peak_bytes = (double)NAN,
                                      .step_error_frac = (double)NAN,
                                      .peak_error_frac = (double)NAN};

ms_status ms_validate(ms_ctx *cx, ms_published_runs *runs, ms_validation *out)
{
    ms_run_score *scores = MS_NEW_ARRAY(cx->arena, runs->num_runs, ms_run_score);
    predictor p = {.scratch = ms_arena_open()};
    ms_arena_mark empty = ms_arena_save(p.scratch);
    for (int i = 0; i < runs->num_runs; i++) {
        ms_published_run *run = &runs->runs[i];
        scores[i] = unpriced;
        if (run->reason != NULL)
            continue;
        ms_ctx quiet = {.arena = cx->arena};
        if (score_run(&quiet, &p, run, &scores[i]) != MS_OK)
            run->reason = "prediction failed";
        else if (!scores[i].priced)
            run->reason = "prediction: not finite";
        ms_arena_rewind(p.scratch, empty);
    }
    ms_arena_close(p.scratch);
    for (; p.list != NULL; p.list = p.list->next)
        ms_workload_close(p.list->workload);
    ms_validation_summarise(cx->arena, runs, scores, out);
    return MS_OK;
}

/* ---- errors by source ---- */

typedef struct error_entry {
    const char *source;
    double error_frac;
} error_entry;

static int by_source(const void *a, const void *b)
{
    const error_entry *x = a, *y = b;
    return strcmp(x->source, y->source);
}

static ms_source_score source_score(ms_arena *arena, const char *source,
                                    const error_entry *entries, int num_entries)
{
    double *errors = MS_NEW_ARRAY(arena, num_entries, double);
    for (int i = 0; i < num_entries; i++)
        errors[i] = entries[i].error_frac;
    ms_source_score score = {.source = source, .num_runs = num_entries};
    score.bias_frac = ms_quantile(errors, num_entries, 0.5);
    for (int i = 0; i < num_entries; i++)
        errors[i] = fabs(errors[i]);
    score.median_ape_frac = ms_quantile(errors, num_entries, 0.5);
    score.p90_ape_frac = ms_quantile(errors, num_entries, 0.9);
    return score;
}

static int gather_errors(const ms_published_runs *runs, const ms_run_score *scores,
                         bool of_memory, error_entry *entries)
{
    int num_entries = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        double error = of_memory ? scores[i].peak_error_frac : scores[i].step_error_frac;
        if (!isnan(error))
            entries[num_entries++] = (error_entry){runs->runs[i].source, error};
    }
    if (num_entries > 1)
        qsort(entries, (size_t)num_entries, sizeof *entries, by_source);
    return num_entries;
}

/* Sources of their own first; the rest moves to `pooled`. */
static int score_sources(ms_arena *arena, const error_entry *entries, int num_entries,
                         ms_source_score *sources)
{
    error_entry *pooled = MS_NEW_ARRAY(arena, num_entries, error_entry);
    int num_sources = 0, num_pooled = 0;
    for (int first = 0, end; first < num_entries; first = end) {
        end = first + 1;
        while (end < num_entries && by_source(&entries[first], &entries[end]) == 0)
            end++;
        if (end - first >= MS_POOLED_SOURCES) {
            sources[num_sources++] =
                source_score(arena, entries[first].source, &entries[first], end - first);
            continue;
        }
        for (int i = first; i < end; i++)
            pooled[num_pooled++] = entries[i];
    }
    if (num_pooled > 0)
        sources[num_sources++] = source_score(arena, "pooled", pooled, num_pooled);
    return num_sources;
}

/* Whether a peak is a range, not a point, and how the measurement lies to it. */
static void count_ranges(const ms_published_runs *runs, const ms_run_score *scores,
                         ms_error_summary *out)
{
    int num_under = 0, num_held = 0;
    for (int i = 0; i < runs->num_runs; i++) {
        double error = scores[i].peak_error_frac,
               measured = runs->runs[i].measured_peak_bytes;
        if (isnan(error))
            continue;
        bool range = scores[i].peak_high_bytes > scores[i].peak_low_bytes;
        if (!range) {
            num_under += error < -MS_UNDER_FRAC;
            continue;
        }
        bool under = signed_error(scores[i].peak_high_bytes, measured)<
            -MS_UNDER_FRAC, over = signed_error(scores[i].peak_low_bytes, measured)>
            MS_UNDER_FRAC;
        out->num_ranges++;
        num_under += under;
        num_held += !under && !over;
    }
    out->under_frac = (double)num_under / out->num_runs;
    out->range_cover_frac = (double)num_held / out->num_ranges;
}

static ms_error_summary summarise(ms_arena *arena, const ms_published_runs *runs,
                                  const ms_run_score *scores, bool of_memory)
{
    error_entry *entries = MS_NEW_ARRAY(arena, runs->num_runs, error_entry);
    ms_error_summary out = {0};
    out.num_runs = gather_errors(runs, scores, of_memory, entries);
    ms_source_score *sources = MS_NEW_ARRAY(arena, out.num_runs, ms_source_score);
    out.num_sources = score_sources(arena, entries, out.num_runs, sources);
    out.sources = sources;
    if (of_memory)
        count_ranges(runs, scores, &out);
    for (int i = 0; i < out.num_sources; i++) {
        out.macro_median_ape_frac += sources[i].median_ape_frac;
        out.macro_p90_ape_frac += sources[i].p90_ape_frac;
    }
    out.macro_median_ape_frac /= out.num_sources; /* 0 / 0 is NaN: undefined */
    out.macro_p90_ape_frac /= out.num_sources;
    return out;
}

/* ---- ranking ---- */

typedef struct ranked_run {
    const char *group;
    const ms_published_run *run;
    double predicted_s;
} ranked_run;

static const char *or_unstated(const char *text)
{
    return text == NULL ? "-" : text;
}

static const char *group_of(ms_arena *arena, const ms_published_run *run)
{
    return ms_arena_printf(arena, "%s: %s, %ld x %s, %s, seq %ld, batch %ld", run->source,
                           run->model_text, run->plan.gpus, run->gpu_type,
                           or_unstated(run->precision), run->plan.sequence_length,
                           run->plan.global_batch);
}

static int by_group(const void *a, const void *b)
{
    const ranked_run *x = a, *y = b;
    int order = strcmp(x->group, y->group);
    return order != 0 ? order : (x->run > y->run) - (x->run < y->run);
}

/* Sums of the runs that repeat the layout of run `first`; 0 when an earlier run has it. */
static int sum_repeats(const ranked_run *runs, int num_runs, int first, double *measured,
                       double *predicted)
{
    const ms_plan *plan = &runs[first].run->plan;
    int num_repeats = 0;
    for (int i = 0; i < num_runs; i++) {
        if (!ms_plan_equal(&runs[i].run->plan, plan))
            continue;
        if (i < first)
            return 0;
        *measured += runs[i].run->measured_step_s;
        *predicted += runs[i].predicted_s;
        num_repeats++;
    }
    return num_repeats;
}

static ms_ranking_group rank_group(ms_arena *arena, const ranked_run *runs, int num_runs)
{
    double *measured = MS_NEW_ARRAY(arena, num_runs, double);
    double *predicted = MS_NEW_ARRAY(arena, num_runs, double);
    int num_layouts = 0;
    for (int i = 0; i < num_runs; i++) {
        double sum_measured = 0, sum_predicted = 0;
        int num_repeats = sum_repeats(runs, num_runs, i, &sum_measured, &sum_predicted);
        if (num_repeats == 0)
            continue;
        measured[num_layouts] = sum_measured / num_repeats;
        predicted[num_layouts++] = sum_predicted / num_repeats;
    }
    ms_rank_agreement agreement =
        ms_rank_agree(measured, predicted, num_layouts, MS_RANKING_TIE_FRAC);
    return (ms_ranking_group){runs->group, num_layouts, agreement.kendall_tau,
                              agreement.top1_regret};
}

static void rank(ms_arena *arena, const ms_published_runs *runs,
                 const ms_run_score *scores, ms_validation *out)
{
    ranked_run *ranked = MS_NEW_ARRAY(arena, runs->num_runs, ranked_run);
    int num_ranked = 0;
    for (int i = 0; i < runs->num_runs; i++)
        if (!isnan(scores[i].step_error_frac))
            ranked[num_ranked++] = (ranked_run){group_of(arena, &runs->runs[i]),
                                                &runs->runs[i], scores[i].step_s};
    if (num_ranked > 1)
        qsort(ranked, (size_t)num_ranked, sizeof *ranked, by_group);
    ms_ranking_group *groups = MS_NEW_ARRAY(arena, num_ranked, ms_ranking_group);
    for (int first = 0, end; first < num_ranked; first = end) {
        end = first + 1;
        while (end < num_ranked && strcmp(ranked[first].group, ranked[end].group) == 0)
            end++;
        ms_ranking_group group = rank_group(arena, &ranked[first], end - first);
        if (group.num_layouts > 1)
            groups[out->num_groups++] = group;
    }
    out->groups = groups;
}

void ms_validation_summarise(ms_arena *arena, const ms_published_runs *runs,
                             const ms_run_score *scores, ms_validation *out)
{
    *out = (ms_validation){.runs = runs, .scores = scores};
    for (int i = 0; i < runs->num_runs; i++) {
        out->num_complete += runs->runs[i].complete;
        out->num_priced += scores[i].priced;
        out->num_over_memory += scores[i].over_memory;
        out->num_changed_mathematics += runs->runs[i].changes_mathematics;
    }
    out->time = summarise(arena, runs, scores, false);
    out->memory = summarise(arena, runs, scores, true);
    rank(arena, runs, scores, out);
}
