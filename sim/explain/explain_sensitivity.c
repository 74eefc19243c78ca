/* On which input numbers a prediction depends: changes each number of cluster, profile
 * and stack a little, and predicts the plan again with the same split of layers. */
#include "sim/explain/explain_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RAISE 1.01
#define LOWER 0.99
/* Values that replace an input number of 0, to see whether it has an effect. */
#define SMALL_FRACTION 0.01
#define SMALL_SECONDS  1e-6

typedef enum file_kind {
    CLUSTER,
    PROFILE,
    STACK,
    NUM_FILES
} file_kind;

typedef struct study {
    ms_ctx *cx;
    ms_explanation *out;
    ms_workload_inputs inputs; /* model, cluster, profile and stack, unchanged */
    ms_explain_figure *list;
    int num;
} study;

/* ---- one change ---- */

static const void *file_of(const study *s, file_kind file)
{
    const void *files[NUM_FILES] = {s->inputs.cluster, s->inputs.profile,
                                    s->inputs.stack};
    return files[file];
}

typedef struct outcome {
    double step_s, peak_bytes;
    double change; /* relative change of the input number */
} outcome;

/* Predicts a plan with a number of `file` set to `value`; false if that is illegal. */
static bool predict_changed(const ms_workload_inputs *given, const ms_plan *plan,
                            file_kind file, const ms_figure *figure, double value,
                            outcome *out)
{
    ms_ctx scratch = {.arena = ms_arena_open()};
    ms_cluster *cluster = MS_NEW(scratch.arena, ms_cluster);
    ms_profile *profile = MS_NEW(scratch.arena, ms_profile);
    ms_stack *stack = MS_NEW(scratch.arena, ms_stack);
    *cluster = *given->cluster;
    *profile = *given->profile;
    *stack = *given->stack;
    void *files[NUM_FILES] = {cluster, profile, stack};
    double before = ms_figure_value(figure, files[file]);
    ms_figure_set(figure, files[file], value);
    double after = ms_figure_value(figure, files[file]);
    ms_workload_inputs inputs = {given->model, cluster, profile, stack, NULL};
    ms_workload *workload;
    ms_prediction prediction;
    bool done = false;
    bool allowed = figure->low >= figure->high || after >= figure->low;
    if (after != before && allowed &&
        ms_workload_make(&scratch, &inputs, plan, &workload) == MS_OK) {
        done = ms_predict(&scratch, workload, plan, &prediction) == MS_OK;
        *out = (outcome){prediction.step_s, prediction.peak_bytes,
                         before != 0.0 ? after / before - 1.0 : (double)NAN};
        ms_workload_close(workload);
    }
    ms_arena_close(scratch.arena);
    return done;
}

double ms_explain_step_with(const ms_workload *workload, const ms_plan *plan,
                            const ms_explain_figure *figure, double value)
{
    ms_workload_inputs inputs = {workload->model, workload->cluster, workload->profile,
                                 workload->stack, workload->group_profiles};
    outcome o;
    return predict_changed(&inputs, plan, (file_kind)figure->file_kind, figure->number,
                           value, &o)
               ? o.step_s
               : (double)NAN;
}

/* Whether two predictions differ by more than rounding, a few parts in 10^16. */
static bool moves(double a, double b)
{
    return fabs(a - b) > 1e-13 * fabs(b);
}

static bool has_effect(study *s, file_kind file, const ms_figure *figure, double value,
                       outcome *out)
{
    return predict_changed(&s->inputs, s->out->plan, file, figure, value, out) &&
           (moves(out->step_s, s->out->prediction.step_s) ||
            moves(out->peak_bytes, s->out->prediction.peak_bytes));
}

/* Whether the number has an effect: raised by 1 %, else lowered by 1 %, or a switch set
 * to 0. *out: the prediction with the first of these changes that has one. */
static bool find_effect(study *s, file_kind file, const ms_figure *figure, double value,
                        outcome *out)
{
    double small = figure->unit == MS_UNIT_SECONDS ? SMALL_SECONDS : SMALL_FRACTION;
    if (value == 0.0)
        return has_effect(s, file, figure, small, out);
    if (has_effect(s, file, figure, value * RAISE, out) ||
        has_effect(s, file, figure, value * LOWER, out))
        return true;
    bool is_switch =
        figure->is_coefficient && figure->low <= 0.0 && value >= figure->high;
    bool shows = is_switch && has_effect(s, file, figure, 0.0, out);
    out->change = NAN;
    return shows;
}

/* ---- the list ---- */

static ms_coefficient coefficient_of(study *s, file_kind file, const ms_figure *figure)
{
    ms_coefficient coefficient;
    memcpy(&coefficient, (const char *)file_of(s, file) + figure->offset,
           sizeof coefficient);
    return coefficient;
}

static void add_figure(study *s, file_kind file, const ms_figure *figure, double value,
                       const outcome *o)
{
    static const char *const words[NUM_FILES] = {"cluster", "profile", "stack"};
    const char *names[NUM_FILES] = {s->inputs.cluster->name, s->inputs.profile->name,
                                    s->inputs.stack->name};
    ms_explain_figure *to = &s->list[s->num++];
    *to = (ms_explain_figure){
        .file = ms_arena_printf(s->cx->arena, "%s %s", words[file], names[file]),
        .key = figure->key,
        .number = figure,
        .file_kind = file,
        .help = figure->help,
        .unit = figure->unit,
        .value = value,
        .from = MS_SPEC,
        .source = s->inputs.cluster->source,
        .step_effect = (o->step_s / s->out->prediction.step_s - 1.0) / o->change,
        .memory_effect =
            (o->peak_bytes / s->out->prediction.peak_bytes - 1.0) / o->change};
    if (figure->is_coefficient) {
        ms_coefficient coefficient = coefficient_of(s, file, figure);
        to->from = coefficient.from;
        to->source = coefficient.source;
    }
}

static void study_file(study *s, file_kind file, const ms_figures *figures)
{
    for (int i = 0; i < figures->num; i++) {
        const ms_figure *figure = &figures->items[i];
        double value = ms_figure_value(figure, file_of(s, file));
        outcome o = {NAN, NAN, NAN};
        bool counted = figure->is_integer && strncmp(figure->key, "device.", 7) != 0;
        if (figure->is_coefficient && coefficient_of(s, file, figure).source == NULL)
            continue; /* the file does not state this number */
        /* GPUs per domain, an integer that 1 % cannot change, always count as used */
        bool used = counted
                        ? strstr(figure->key, "gpus_per_domain") != NULL && value > 0.0
                        : !isnan(value) && find_effect(s, file, figure, value, &o);
        if (used)
            add_figure(s, file, figure, value, &o);
    }
}

static double rank_of(const ms_explain_figure *figure)
{
    double step = isnan(figure->step_effect) ? 0.0 : fabs(figure->step_effect);
    double memory = isnan(figure->memory_effect) ? 0.0 : fabs(figure->memory_effect);
    return step + 1e-6 * memory;
}

static int by_effect(const void *a, const void *b)
{
    const ms_explain_figure *x = a, *y = b;
    double rank_x = rank_of(x), rank_y = rank_of(y);
    if (rank_x != rank_y)
        return rank_x > rank_y ? -1 : 1;
    int files = strcmp(x->file, y->file);
    return files != 0 ? files : strcmp(x->key, y->key);
}

ms_status ms_explain_list_figures(ms_ctx *cx, ms_explanation *e)
{
    const ms_workload *w = e->planned->workload;
    study s = {
        .cx = cx, .out = e, .inputs = {w->model, w->cluster, w->profile, w->stack}};
    ms_figures figures[NUM_FILES] = {
        {.arena = cx->arena}, {.arena = cx->arena}, {.arena = cx->arena}};
    ms_cluster_figures(w->cluster, &figures[CLUSTER]);
    ms_profile_figures(w->profile, &figures[PROFILE]);
    ms_stack_figures(&figures[STACK]);
    int most = 0;
    for (int file = 0; file < NUM_FILES; file++)
        most += figures[file].num;
    s.list = MS_NEW_ARRAY(cx->arena, most, ms_explain_figure);
    /* groups of a mixed cluster have files of their own, which are not changed */
    bool has_groups = w->cluster->between != NULL;
    for (int file = 0; file < NUM_FILES; file++)
        if (file == STACK || !has_groups)
            study_file(&s, (file_kind)file, &figures[file]);
    qsort(s.list, (size_t)s.num, sizeof *s.list, by_effect);
    e->figures = s.list;
    e->num_figures = s.num;
    return MS_OK;
}
