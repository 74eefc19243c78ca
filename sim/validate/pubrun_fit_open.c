/* Reads the list of constants to fit, and binds them to the runs' profiles and stacks. */
#include "base/figure.h"
#include "base/json.h"
#include "base/paths.h"
#include "sim/validate/pubrun_response.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_SOURCES 8 /* a source with fewer rows than this has less weight */
/* least relative change of a prediction that counts as dependence */
#define CHANGE 1e-3

/* ---- sources ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_measured(const ms_pubruns_fit *fit, const ms_pubrun *run)
{
    return run->reason == NULL && !isnan(ms_pubrun_measured(run, fit->measurement));
}

static void find_sources(ms_arena *arena, ms_pubruns_fit *fit)
{
    const ms_pubruns *runs = fit->runs;
    const char **names = MS_NEW_ARRAY(arena, runs->num_runs, const char *);
    int num = 0;
    for (int i = 0; i < runs->num_runs; i++)
        if (is_measured(fit, &runs->runs[i]))
            names[num++] = runs->runs[i].source;
    if (num > 1)
        qsort(names, (size_t)num, sizeof *names, compare_names);
    for (int i = 0; i < num; i++)
        if (fit->num_sources == 0 || strcmp(names[fit->num_sources - 1], names[i]) != 0)
            names[fit->num_sources++] = names[i];
    fit->sources = names;
}

static void set_weights(ms_arena *arena, ms_pubruns_fit *fit)
{
    const ms_pubruns *runs = fit->runs;
    int *source_of = MS_NEW_ARRAY(arena, runs->num_runs, int);
    int *num_rows = MS_NEW_ARRAY(arena, fit->num_sources, int);
    double *weight_of = MS_NEW_ARRAY(arena, runs->num_runs, double);
    for (int i = 0; i < runs->num_runs; i++) {
        source_of[i] = -1;
        for (int s = 0; s < fit->num_sources && is_measured(fit, &runs->runs[i]); s++)
            if (strcmp(fit->sources[s], runs->runs[i].source) == 0)
                source_of[i] = s;
        if (source_of[i] >= 0)
            num_rows[source_of[i]]++;
    }
    for (int i = 0; i < runs->num_runs; i++)
        if (source_of[i] >= 0)
            weight_of[i] = 1.0 / fmax(num_rows[source_of[i]], SMALL_SOURCES);
    fit->source_of = source_of;
    fit->weight_of = weight_of;
}

/* ---- files ---- */

/* A profile or stack that runs use, and the copy in which the fit changes numbers. */
typedef struct copied {
    const void *original;
    void *copy;
    const char *name; /* file in configs/: "profiles/h100-sxm" */
    ms_figures figures;
    struct copied *next;
} copied;

static copied *find_original(copied *list, const void *original)
{
    while (list != NULL && list->original != original)
        list = list->next;
    return list;
}

static copied *copy_profile(ms_arena *arena, const ms_profile *profile, copied *next)
{
    ms_profile *copy = MS_NEW(arena, ms_profile);
    copied *made = MS_NEW(arena, copied);
    *copy = *profile;
    *made = (copied){profile,
                     copy,
                     ms_arena_printf(arena, "profiles/%s", profile->name),
                     {.arena = arena},
                     next};
    ms_profile_figures(copy, &made->figures);
    return made;
}

static copied *copy_stack(ms_arena *arena, const ms_stack *stack, copied *next)
{
    ms_stack *copy = MS_NEW(arena, ms_stack);
    copied *made = MS_NEW(arena, copied);
    *copy = *stack;
    *made = (copied){stack,
                     copy,
                     ms_arena_printf(arena, "stacks/%s", stack->name),
                     {.arena = arena},
                     next};
    ms_stack_figures(&made->figures);
    return made;
}

static copied *copy_files(ms_arena *arena, ms_pubruns *runs)
{
    copied *list = NULL;
    for (int i = 0; i < runs->num_runs; i++) {
        ms_pubrun *run = &runs->runs[i];
        if (run->reason != NULL)
            continue;
        if (find_original(list, run->profile) == NULL)
            list = copy_profile(arena, run->profile, list);
        if (find_original(list, run->stack) == NULL)
            list = copy_stack(arena, run->stack, list);
        run->profile = find_original(list, run->profile)->copy;
        run->stack = find_original(list, run->stack)->copy;
    }
    return list;
}

/* ---- constants ---- */

static const ms_figure *find_figure(const copied *file, const char *key)
{
    for (int i = 0; i < file->figures.num; i++)
        if (strcmp(file->figures.items[i].key, key) == 0)
            return &file->figures.items[i];
    return NULL;
}

/* Binds a constant's target, written as "profiles/h100-sxm gemm.bf16.sustained", to that
 * number; ignores files that no run uses. */
static ms_status bind_target(ms_ctx *cx, ms_jval at, copied *files,
                             const ms_fit_constant *constant, ms_fit_target *out)
{
    const char *text = NULL;
    MS_TRY(ms_json_text(cx, at, &text));
    size_t length = strcspn(text, " ");
    *out = (ms_fit_target){.name = text, .shipped = (double)NAN};
    if (text[length] == '\0') {
        return ms_json_fail(cx, at,
                            "\"%s\" is no file and figure, as in "
                            "\"stacks/nemo tp_overlap\"",
                            text);
    }
    for (copied *file = files; file != NULL; file = file->next) {
        if (strlen(file->name) != length || strncmp(file->name, text, length) != 0)
            continue;
        const ms_figure *figure = find_figure(file, text + length + 1);
        if (figure == NULL || !figure->is_coefficient)
            return ms_json_fail(cx, at, "%s has no coefficient \"%s\"", file->name,
                                text + length + 1);
        if (constant->low < figure->low || constant->high > figure->high)
            return ms_json_fail(
                cx, at, "%s must be between %g and %g; the constant tries %g to %g", text,
                figure->low, figure->high, constant->low, constant->high);
        out->value = (double *)(void *)((char *)file->copy + figure->offset);
        out->shipped = *out->value;
    }
    return MS_OK;
}

static const ms_field constant_fields[] = {
    {.kind = MS_FIELD_TEXT,
     .key = "name",
     .offset = offsetof(ms_fit_constant, name),
     .required = true,
     .help = "name of the constant"},
    {.kind = MS_FIELD_ANY,
     .key = "of",
     .required = true,
     .help = "figures that it sets, as \"stacks/nemo tp_overlap\""},
    {.kind = MS_FIELD_NUMBER,
     .key = "low",
     .offset = offsetof(ms_fit_constant, low),
     .required = true,
     .low = -1e18,
     .high = 1e18,
     .help = "lowest value tried, in the figure's base unit"},
    {.kind = MS_FIELD_NUMBER,
     .key = "high",
     .offset = offsetof(ms_fit_constant, high),
     .required = true,
     .low = -1e18,
     .high = 1e18,
     .help = "highest value tried"},
    {.kind = MS_FIELD_NUMBER,
     .key = "unknown",
     .offset = offsetof(ms_fit_constant, unknown),
     .required = true,
     .low = -1e18,
     .high = 1e18,
     .help = "value if no run determines the constant"},
    {.kind = MS_FIELD_ANY,
     .key = "choices",
     .help = "the only values tried, in ascending order"},
    {.kind = MS_FIELD_NUMBER,
     .key = "start",
     .offset = offsetof(ms_fit_constant, start),
     .low = -1e18,
     .high = 1e18,
     .help = "value where the search begins; default: the unknown value"},
    {.kind = MS_FIELD_BOOL,
     .key = "without_experts",
     .offset = offsetof(ms_fit_constant, without_experts),
     .help = "runs of mixtures of experts do not determine it"},
    {.kind = MS_FIELD_TEXT,
     .key = "unknown_source",
     .offset = offsetof(ms_fit_constant, unknown_source),
     .required = true,
     .help = "source of the unknown value"},
    {0}};

static bool is_choice(const ms_fit_constant *c, double value)
{
    bool found = c->num_choices == 0;
    for (int i = 0; i < c->num_choices; i++)
        found = found || c->choices[i] == value;
    return found;
}

static ms_status read_choices(ms_ctx *cx, ms_jval at, ms_fit_constant *out)
{
    ms_jval list;
    if (!ms_json_member(cx, at, "choices", &list))
        return MS_OK;
    int num = ms_json_is_array(list) ? ms_json_length(list) : 0;
    if (num < 2 || num > MS_MAX_FIT_CHOICES)
        return ms_json_fail(cx, list, "\"choices\" is no list of 2 to %d values",
                            MS_MAX_FIT_CHOICES);
    for (int i = 0; i < num; i++) {
        double low = i > 0 ? nextafter(out->choices[i - 1], out->high + 1.0) : out->low;
        MS_TRY(ms_json_number(cx, ms_json_element(cx, list, i), low, out->high,
                              &out->choices[i]));
    }
    out->num_choices = num;
    return MS_OK;
}

static ms_status read_range(ms_ctx *cx, ms_jval at, ms_fit_constant *out)
{
    out->start = (double)NAN;
    MS_TRY(ms_json_read(cx, at, constant_fields, out));
    if (isnan(out->start))
        out->start = out->unknown;
    if (out->low >= out->high || out->unknown < out->low || out->unknown > out->high)
        return ms_json_fail(cx, at, "\"low\", \"unknown\" and \"high\" do not ascend");
    if (out->start < out->low || out->start > out->high)
        return ms_json_fail(cx, at, "\"low\", \"start\" and \"high\" do not ascend");
    MS_TRY(read_choices(cx, at, out));
    if (!is_choice(out, out->unknown) || !is_choice(out, out->start))
        return ms_json_fail(cx, at, "\"unknown\" or \"start\" is none of \"choices\"");
    return MS_OK;
}

static ms_status read_constant(ms_ctx *cx, ms_jval at, copied *files,
                               ms_fit_constant *out)
{
    ms_jval of;
    MS_TRY(read_range(cx, at, out));
    (void)ms_json_member(cx, at, "of", &of);
    out->num_targets = ms_json_is_array(of) ? ms_json_length(of) : 0;
    if (out->num_targets == 0)
        return ms_json_fail(cx, of, "\"of\" is no list of figures");
    out->targets = MS_NEW_ARRAY(cx->arena, out->num_targets, ms_fit_target);
    for (int i = 0; i < out->num_targets; i++)
        MS_TRY(bind_target(cx, ms_json_element(cx, of, i), files, out, &out->targets[i]));
    out->value = out->unknown;
    out->value_low = out->value_high = (double)NAN;
    for (int i = out->num_targets - 1; i >= 0; i--)
        if (out->targets[i].value != NULL)
            out->value = out->targets[i].shipped;
    return MS_OK;
}

static ms_status read_constants(ms_ctx *cx, ms_jval root, copied *files,
                                ms_pubruns_fit *fit)
{
    typedef struct file {
        int schema, measurement;
    } file;
    static const char *const schemas[] = {"meshsim.fits/1", NULL};
    static const ms_field fields[] = {
        {.kind = MS_FIELD_CHOICE,
         .key = "schema",
         .offset = offsetof(file, schema),
         .choices = schemas,
         .help = ""},
        {.kind = MS_FIELD_CHOICE,
         .key = "measurement",
         .offset = offsetof(file, measurement),
         .choices = ms_measurement_names,
         .help = "measurement that the constants are fitted to"},
        {.kind = MS_FIELD_ANY, .key = "constants", .help = "list of constants"},
        {0}};
    ms_jval list;
    file read = {.measurement = MS_MEASURED_STEP};
    if (!ms_json_is_object(root) || !ms_json_member(cx, root, "constants", &list))
        return ms_json_fail(cx, root, "no list of constants: \"constants\" is missing");
    MS_TRY(ms_json_read(cx, root, fields, &read));
    fit->measurement = (ms_measurement)read.measurement;
    int num = ms_json_is_array(list) ? ms_json_length(list) : 0;
    if (num == 0 || num > MS_MAX_FIT_CONSTANTS)
        return ms_json_fail(cx, list, "\"constants\" is no list of 1 to %d constants",
                            MS_MAX_FIT_CONSTANTS);
    fit->constants = MS_NEW_ARRAY(cx->arena, num, ms_fit_constant);
    for (fit->num_constants = 0; fit->num_constants < num; fit->num_constants++)
        MS_TRY(read_constant(cx, ms_json_element(cx, list, fit->num_constants), files,
                             &fit->constants[fit->num_constants]));
    return MS_OK;
}

/* ---- rows ---- */

static void price_all(ms_pubruns_fit *fit, double *predicted)
{
    for (int i = 0; i < fit->runs->num_runs; i++) {
        ms_pubrun_score score = ms_pubrun_unpriced;
        if (fit->source_of[i] >= 0 &&
            ms_pubrun_price(fit->prices, &fit->runs->runs[i], &score) != MS_OK)
            score = ms_pubrun_unpriced;
        predicted[i] = ms_score_predicted(&score, fit->measurement);
    }
    ms_pubrun_prices_forget(fit->prices);
}

/* Marks in `changed` the runs whose prediction at `value` differs from their prediction
 * at the constant's low end, least_s. step_s: scratch (num_runs). */
static void note_changes(ms_pubruns_fit *fit, ms_fit_constant *c, double value,
                         const double *least_s, double *step_s, bool *changed)
{
    ms_fit_constant_set(c, value);
    price_all(fit, step_s);
    for (int i = 0; i < fit->runs->num_runs; i++)
        if (fabs(step_s[i] / least_s[i] - 1.0) > CHANGE) /* false for a NaN step time */
            changed[i] = true;
}

static bool determines(const ms_pubruns_fit *fit, const ms_fit_constant *c, int run)
{
    return !c->without_experts || fit->runs->runs[run].model->moe.num_experts == 0;
}

static void find_rows(ms_arena *arena, ms_pubruns_fit *fit, ms_fit_constant *c)
{
    int num_runs = fit->runs->num_runs;
    double *least_s = MS_NEW_ARRAY(arena, num_runs, double);
    double *step_s = MS_NEW_ARRAY(arena, num_runs, double);
    bool *changed = MS_NEW_ARRAY(arena, num_runs, bool);
    int *rows = MS_NEW_ARRAY(arena, num_runs, int);
    double value = c->value;
    ms_fit_constant_set(c, c->low);
    price_all(fit, least_s);
    note_changes(fit, c, c->high, least_s, step_s, changed);
    for (int i = 0; i < c->num_choices; i++)
        note_changes(fit, c, c->choices[i], least_s, step_s, changed);
    ms_fit_constant_set(c, value);
    for (int i = 0; i < num_runs; i++)
        if (changed[i] && determines(fit, c, i))
            rows[c->num_rows++] = i;
    c->num_changed = c->num_rows;
    for (int i = 0; i < num_runs; i++)
        if (changed[i] && !determines(fit, c, i))
            rows[c->num_changed++] = i;
    c->rows = rows;
}

/* Fills in the values that GPU memory determines, once, by the shipped coefficients: a
 * table row stays the same run in every fit, whatever coefficients the fit finds. */
static void fill_by_memory(ms_arena *arena, ms_pubruns *runs)
{
    ms_pubrun_prices *prices = ms_pubrun_prices_open();
    for (int i = 0; i < runs->num_runs; i++)
        if (runs->runs[i].reason == NULL)
            ms_pubrun_fill_batch(arena, prices, &runs->runs[i]);
    ms_pubrun_prices_close(prices);
}

ms_status ms_pubruns_fit_read(ms_ctx *cx, ms_jval root, ms_pubruns *runs,
                              ms_pubruns_fit *out)
{
    *out = (ms_pubruns_fit){.runs = runs};
    fill_by_memory(cx->arena, runs);
    copied *files = copy_files(cx->arena, runs);
    MS_TRY(read_constants(cx, root, files, out));
    find_sources(cx->arena, out);
    set_weights(cx->arena, out);
    out->prices = ms_pubrun_prices_open();
    out->arena = ms_arena_open();
    for (int i = 0; i < out->num_constants; i++)
        find_rows(cx->arena, out, &out->constants[i]);
    return MS_OK;
}

ms_status ms_pubruns_fit_load(ms_ctx *cx, const char *name, ms_pubruns *runs,
                              ms_pubruns_fit *out)
{
    ms_jdoc *doc = NULL;
    ms_jval root;
    const char *path = NULL;
    MS_TRY(ms_config_resolve(cx, "fits", "list of constants", name, &path));
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    ms_status status = ms_pubruns_fit_read(cx, root, runs, out);
    ms_json_close(doc);
    return status;
}

void ms_pubruns_fit_close(ms_pubruns_fit *fit)
{
    ms_pubrun_prices_close(fit->prices);
    ms_arena_close(fit->arena);
}
