/* Each fit evaluates the functions that price (kernel_cost.h, collective_cost.h) with the coefficients on trial, so that a law stands in one place. */
#include "costmodel/calibration.h"

#include "costmodel/statistics.h"

#include <math.h>
#include <string.h>

const char *const ms_sample_kind_names[] = {"product",   "attention",  "attention-grad",
                                            "pointwise", "collective", NULL};

void ms_samples_add(ms_arena *arena, ms_samples *samples, const ms_sample *sample)
{
    if (samples->num == samples->capacity) {
        int capacity = samples->capacity == 0 ? 256 : 2 * samples->capacity;
        ms_sample *items = MS_NEW_ARRAY(arena, capacity, ms_sample);
        if (samples->num > 0)
            memcpy(items, samples->items, (size_t)samples->num * sizeof *items);
        samples->items = items;
        samples->capacity = capacity;
    }
    samples->items[samples->num++] = *sample;
}

typedef struct work {
    ms_ctx *cx;
    const ms_calibration_input *in;
    ms_calibration *out;
    ms_pricer pricer; /* of out->profile, with the coefficients on trial */
} work;

/* Where the parameters of a fit are put before the law is evaluated. */
typedef struct trial {
    work *work;
    double *targets[MS_FIT_PARAMETERS];
    int num_targets;
    const ms_pointwise_profile *pointwise;
} trial;

static void set_targets(const trial *t, const double *parameters)
{
    for (int i = 0; i < t->num_targets; i++)
        *t->targets[i] = parameters[i];
}

/* ---- laws ---- */

static double product_s(void *state, const double *parameters, const double *point)
{
    const trial *t = state;
    set_targets(t, parameters);
    double bytes = ms_dtype_bytes(t->work->in->compute);
    return ms_gemm_s(&t->work->pricer, (ms_gemm_shape){point[0], point[1], point[2],
                                                       point[3], bytes, bytes});
}

static double attention_s(void *state, const double *parameters, const double *point)
{
    const trial *t = state;
    set_targets(t, parameters);
    return ms_attention_s(&t->work->pricer,
                          (ms_attention_shape){point[1], point[2], point[3], point[4],
                                               point[5],
                                               point[0] == MS_SAMPLE_ATTENTION_GRAD});
}

static double pointwise_s(void *state, const double *parameters, const double *point)
{
    const trial *t = state;
    set_targets(t, parameters);
    return ms_pointwise_s(t->pointwise, point[0]);
}

static double collective_s(void *state, const double *parameters, const double *point)
{
    const trial *t = state;
    set_targets(t, parameters);
    ms_span span = {.size = (long)point[1]};
    span.per_domain[0] = span.size;
    ms_collective_law law =
        ms_collective_law_make((ms_collective)(int)point[0], &span, t->work->in->cluster,
                               &t->work->out->profile);
    return ms_collective_s(&law, point[2]);
}

/* ---- points ---- */

typedef bool sample_filter(const ms_sample *sample, int what);

static bool is_product(const ms_sample *sample, int what)
{
    (void)what;
    return sample->kind == MS_SAMPLE_PRODUCT;
}

static bool is_attention(const ms_sample *sample, int what)
{
    (void)what;
    return sample->kind == MS_SAMPLE_ATTENTION ||
           sample->kind == MS_SAMPLE_ATTENTION_GRAD;
}

static bool is_operation(const ms_sample *sample, int what)
{
    return sample->kind == MS_SAMPLE_POINTWISE && sample->what == what;
}

static bool is_collective(const ms_sample *sample, int what)
{
    return sample->kind == MS_SAMPLE_COLLECTIVE && sample->what == what;
}

static bool is_ring(const ms_sample *sample, int what)
{
    (void)what;
    return is_collective(sample, MS_ALL_GATHER) ||
           is_collective(sample, MS_REDUCE_SCATTER) ||
           is_collective(sample, MS_ALL_REDUCE);
}

/* A row of the law's numbers: what a sample is, then its sizes. */
static int fill_point(const ms_sample *sample, double *point)
{
    int num = 0;
    if (is_attention(sample, 0))
        point[num++] = sample->kind;
    if (sample->kind == MS_SAMPLE_COLLECTIVE) {
        point[num++] = sample->what;
        point[num++] = (double)sample->ranks;
    }
    static const int sizes[] = {[MS_SAMPLE_PRODUCT] = 4,
                                [MS_SAMPLE_ATTENTION] = 5,
                                [MS_SAMPLE_ATTENTION_GRAD] = 5,
                                [MS_SAMPLE_POINTWISE] = 1,
                                [MS_SAMPLE_COLLECTIVE] = 1};
    for (int i = 0; i < sizes[sample->kind]; i++)
        point[num++] = sample->size[i];
    point[num++] = sample->seconds;
    return num;
}

static void collect(const work *w, sample_filter *filter, int what,
                    ms_fit_problem *problem)
{
    const int most_columns = MS_SAMPLE_SIZES + 2;
    const ms_samples *samples = w->in->samples;
    double *points = MS_NEW_ARRAY(w->cx->arena, samples->num * most_columns + 1, double);
    int *launch = MS_NEW_ARRAY(w->cx->arena, samples->num + 1, int);
    int num = 0, columns = 0;
    for (int i = 0; i < samples->num; i++) {
        if (!filter(&samples->items[i], what))
            continue;
        columns = fill_point(&samples->items[i], points + num * columns);
        launch[num++] = samples->items[i].launch;
    }
    problem->points = points;
    problem->launch = launch;
    problem->num_points = num;
    problem->num_columns = columns;
}

/* ---- fits ---- */

typedef struct coefficient_row {
    const char *name;
    ms_unit unit;
    double *target;
    double start;
    bool optional;
} coefficient_row;

typedef struct fit_plan {
    const char *name;
    ms_fit_law *law;
    sample_filter *filter;
    int what;
    const ms_pointwise_profile *pointwise;
    int num_rows;
    coefficient_row rows[MS_FIT_PARAMETERS];
} fit_plan;

/* Leaves the best values in their targets; `*out` is NULL when there are no samples at all. */
static ms_status run_fit(work *w, const fit_plan *plan, ms_calibration_fit **out)
{
    trial state = {
        .work = w, .num_targets = plan->num_rows, .pointwise = plan->pointwise};
    ms_fit_problem problem = {.name = plan->name,
                              .law = plan->law,
                              .state = &state,
                              .num_parameters = plan->num_rows,
                              .seed = 1};
    *out = NULL;
    collect(w, plan->filter, plan->what, &problem);
    if (problem.num_points == 0)
        return MS_OK;
    ms_calibration_fit *fit = &w->out->fits[w->out->num_fits];
    *fit = (ms_calibration_fit){.name = plan->name, .num_coefficients = plan->num_rows};
    for (int i = 0; i < plan->num_rows; i++) {
        const coefficient_row *row = &plan->rows[i];
        state.targets[i] = row->target;
        problem.parameters[i] = (ms_fit_parameter){row->name, row->start, row->optional};
        fit->coefficients[i] =
            (ms_calibration_coefficient){.name = row->name, .unit = row->unit};
    }
    MS_TRY(ms_fit_make(w->cx, &problem, &fit->fit));
    for (int i = 0; i < plan->num_rows; i++) {
        fit->coefficients[i].value = fit->fit.values[i];
        *plan->rows[i].target = fit->fit.values[i].value;
    }
    w->out->num_fits++;
    *out = fit;
    return MS_OK;
}

static ms_coefficient fitted(const work *w, const ms_calibration_fit *fit, int i)
{
    const ms_calibration_coefficient *c = &fit->coefficients[i];
    char low[32], high[32];
    const char *interval = "";
    if (c->value.dropped)
        interval = "; cannot be told from 0";
    else if (!isnan(c->value.low) && c->unit == MS_UNIT_COUNT)
        interval = ms_arena_printf(w->cx->arena, "; 90 %% interval %.3g to %.3g",
                                   c->value.low, c->value.high);
    else if (!isnan(c->value.low))
        interval = ms_arena_printf(
            w->cx->arena, "; 90 %% interval %s to %s",
            ms_format_quantity(low, sizeof low, c->value.low, c->unit),
            ms_format_quantity(high, sizeof high, c->value.high, c->unit));
    return (ms_coefficient){
        c->value.value, MS_FITTED,
        ms_arena_printf(
            w->cx->arena, "%s: %d points of %d launches, median error %.1f %%%s",
            w->out->profile.source, fit->fit.num_points, fit->fit.num_launches,
            100.0 * fit->fit.median_error_frac, interval)};
}

/* Of a rate, as a fraction of the listed one. */
static ms_status fraction(const work *w, const ms_calibration_fit *fit, int i,
                          double listed, ms_coefficient *out)
{
    char rate[32], list[32];
    const ms_calibration_coefficient *c = &fit->coefficients[i];
    ms_coefficient made = fitted(w, fit, i);
    made.value = c->value.value / listed;
    if (made.value >= 0.01 && made.value <= 1.5) {
        *out = made;
        return MS_OK;
    }
    ms_fail(w->cx, MS_EINPUT, MS_NOWHERE,
            "%s of %s is %s, %.3g of what cluster \"%s\" lists (%s)", c->name, fit->name,
            ms_format_quantity(rate, sizeof rate, c->value.value, c->unit), made.value,
            w->in->cluster->name, ms_format_quantity(list, sizeof list, listed, c->unit));
    ms_hint(w->cx, "copy the cluster's file, write rates of this machine into it, and "
                   "give it with --cluster");
    return MS_EINPUT;
}

static ms_status too_few(const work *w, const char *what)
{
    return ms_fail(w->cx, MS_EINPUT, MS_NOWHERE, "no %s was measured", what);
}

/* ---- kernels ---- */

static ms_status fit_operation(work *w, int op)
{
    ms_profile *profile = &w->out->profile;
    ms_pointwise_profile on_trial = {{.value = 1e9}, {.value = 1e-6}};
    ms_calibration_fit *fit;
    fit_plan plan = {
        .name = ms_op_names[op],
        .law = pointwise_s,
        .filter = is_operation,
        .what = op,
        .pointwise = &on_trial,
        .num_rows = 2,
        .rows = {{"rate", MS_UNIT_BYTES_PER_S, &on_trial.bytes_per_s.value, 2e9, false},
                 {"overhead", MS_UNIT_SECONDS, &on_trial.overhead_s.value, 1e-6, true}}};
    MS_TRY(run_fit(w, &plan, &fit));
    if (fit == NULL)
        return MS_OK;
    profile->pointwise[op] = (ms_pointwise_profile){fitted(w, fit, 0), fitted(w, fit, 1)};
    if (op != MS_OP_ADD)
        return MS_OK;
    double listed = w->in->cluster->device.hbm_bytes_per_s;
    MS_TRY(fraction(w, fit, 0, listed, &profile->hbm_frac));
    w->pricer.hbm_bytes_per_s = fit->fit.values[0].value;
    return MS_OK;
}

static ms_status fit_operations(work *w)
{
    ms_profile *profile = &w->out->profile;
    profile->pointwise = MS_NEW_ARRAY(w->cx->arena, MS_NUM_OPS, ms_pointwise_profile);
    for (int op = 0; op < MS_NUM_OPS; op++)
        profile->pointwise[op].bytes_per_s.value = NAN;
    for (int op = 0; op < MS_NUM_OPS; op++)
        MS_TRY(fit_operation(w, op));
    return isnan(profile->pointwise[MS_OP_ADD].bytes_per_s.value)
               ? too_few(w, "sum of two arrays")
               : MS_OK;
}

static ms_status fit_products(work *w)
{
    ms_dtype compute = w->in->compute;
    ms_gemm_profile *gemm = &w->out->profile.gemm[compute];
    double peak = w->in->cluster->device.peak_flop_per_s[compute];
    ms_calibration_fit *fit;
    fit_plan plan = {
        .name = "products",
        .law = product_s,
        .filter = is_product,
        .num_rows = 3,
        .rows = {
            {"rate", MS_UNIT_FLOP_PER_S, &w->pricer.gemm_flop_per_s, 0.5 * peak, false},
            {"k_half", MS_UNIT_COUNT, &gemm->k_half.value, 16.0, true},
            {"overhead", MS_UNIT_SECONDS, &gemm->overhead_s.value, 1e-6, true}}};
    MS_TRY(run_fit(w, &plan, &fit));
    if (fit == NULL)
        return too_few(w, "matrix product");
    MS_TRY(fraction(w, fit, 0, peak, &gemm->efficiency));
    gemm->k_half = fitted(w, fit, 1);
    gemm->overhead_s = fitted(w, fit, 2);
    gemm->sustained_frac = (ms_coefficient){1.0, MS_MEASURED, w->out->profile.source};
    return MS_OK;
}

static ms_status fit_attention(work *w)
{
    ms_pricer *p = &w->pricer;
    double rate = 0.3 * p->gemm_flop_per_s;
    ms_calibration_fit *fit;
    fit_plan plan = {
        .name = "attention",
        .law = attention_s,
        .filter = is_attention,
        .num_rows = 5,
        .rows = {
            {"forward", MS_UNIT_FLOP_PER_S, &p->attention_forward_flop_per_s, rate,
             false},
            {"backward", MS_UNIT_FLOP_PER_S, &p->attention_backward_flop_per_s, rate,
             false},
            {"small_head", MS_UNIT_COUNT, &p->attention_small_head_frac, 0.8, false},
            {"half_sequence", MS_UNIT_COUNT, &p->attention_half_sequence, 50.0, true},
            {"overhead", MS_UNIT_SECONDS, &p->attention_overhead_s, 1e-6, true}}};
    MS_TRY(run_fit(w, &plan, &fit));
    if (fit == NULL)
        return too_few(w, "attention");
    ms_attention_profile made = {fitted(w, fit, 0),
                                 fitted(w, fit, 1),
                                 fitted(w, fit, 2),
                                 fitted(w, fit, 3),
                                 {1.0, MS_MEASURED, w->out->profile.source},
                                 fitted(w, fit, 4)};
    for (int i = 0; i < MS_NUM_ATTENTION_KERNELS; i++)
        w->out->profile.attention[i].forward_flop_per_s.value = NAN;
    w->out->profile.attention[MS_ATTENTION_UNFUSED] = made;
    w->out->profile.attention[w->in->stack->attention] = made;
    return MS_OK;
}

/* ---- collectives ---- */

static ms_status fit_rings(work *w)
{
    ms_profile *p = &w->out->profile;
    ms_calibration_fit *fit;
    fit_plan plan = {
        .name = "rings",
        .law = collective_s,
        .filter = is_ring,
        .num_rows = 4,
        .rows = {{"base", MS_UNIT_SECONDS, &p->link_base_s.value, 1e-6, true},
                 {"step", MS_UNIT_SECONDS, &p->link_step_s.value, 1e-6, true},
                 {"frac", MS_UNIT_COUNT, &p->link_frac.value, 0.5, false},
                 {"ramp", MS_UNIT_COUNT, &p->ramp.value, 0.5, true}}};
    MS_TRY(run_fit(w, &plan, &fit));
    if (fit == NULL)
        return MS_OK;
    p->link_base_s = fitted(w, fit, 0);
    p->link_step_s = fitted(w, fit, 1);
    p->ramp = fitted(w, fit, 3);
    return fraction(w, fit, 2, 1.0, &p->link_frac);
}

static ms_status fit_all_to_all(work *w)
{
    ms_profile *p = &w->out->profile;
    ms_calibration_fit *fit;
    fit_plan plan = {
        .name = "all-to-all",
        .law = collective_s,
        .filter = is_collective,
        .what = MS_ALL_TO_ALL,
        .num_rows = 3,
        .rows = {{"base", MS_UNIT_SECONDS, &p->all_to_all_base_s.value, 1e-6, true},
                 {"step", MS_UNIT_SECONDS, &p->all_to_all_step_s.value, 1e-6, true},
                 {"frac", MS_UNIT_COUNT, &p->all_to_all_frac.value, 0.5, false}}};
    MS_TRY(run_fit(w, &plan, &fit));
    if (fit == NULL)
        return MS_OK;
    p->all_to_all_base_s = fitted(w, fit, 0);
    p->all_to_all_step_s = fitted(w, fit, 1);
    return fraction(w, fit, 2, 1.0, &p->all_to_all_frac);
}

/* Its rate is that of the rings. */
static ms_status fit_sends(work *w)
{
    ms_profile *p = &w->out->profile;
    ms_calibration_fit *fit;
    fit_plan plan = {
        .name = "sends",
        .law = collective_s,
        .filter = is_collective,
        .what = MS_SEND,
        .num_rows = 1,
        .rows = {{"base", MS_UNIT_SECONDS, &p->p2p_base_s.value, 1e-6, true}}};
    MS_TRY(run_fit(w, &plan, &fit));
    if (fit != NULL)
        p->p2p_base_s = fitted(w, fit, 0);
    return MS_OK;
}

/* ---- tables ---- */

static bool same_case(const ms_sample *a, const ms_sample *b)
{
    return a->kind == b->kind && a->what == b->what && a->ranks == b->ranks &&
           memcmp(a->size, b->size, sizeof a->size) == 0;
}

/* Seconds of a case in all launches, from sample `first` on; returns how many. */
static int launches_of(const ms_samples *samples, int first, double *seconds)
{
    int num = 0;
    for (int i = first; i < samples->num; i++)
        if (same_case(&samples->items[first], &samples->items[i]))
            seconds[num++] = samples->items[i].seconds;
    return num;
}

/* Cases in the order of their first samples: one sample each, with the median of its launches. Their number. */
static int cases_of(const work *w, ms_sample *cases)
{
    const ms_samples *samples = w->in->samples;
    double *seconds = MS_NEW_ARRAY(w->cx->arena, samples->num + 1, double);
    int num = 0;
    for (int i = 0; i < samples->num; i++) {
        bool known = false;
        for (int c = 0; c < num && !known; c++)
            known = same_case(&cases[c], &samples->items[i]);
        if (known)
            continue;
        cases[num] = samples->items[i];
        cases[num++].seconds =
            ms_quantile(seconds, launches_of(samples, i, seconds), 0.5);
    }
    return num;
}

static ms_sweep_rows rows_of(const work *w, const ms_sample *cases, int num,
                             sample_filter *filter, const ms_sample *like)
{
    const int most_columns = MS_SAMPLE_SIZES + 1;
    double *values = MS_NEW_ARRAY(w->cx->arena, num * most_columns + 1, double);
    ms_sweep_rows rows = {0, values};
    for (int i = 0; i < num; i++) {
        if (!filter(&cases[i], like->what) || cases[i].kind != like->kind ||
            cases[i].ranks != like->ranks)
            continue;
        double point[MS_SAMPLE_SIZES + 3];
        int skip = like->kind == MS_SAMPLE_COLLECTIVE ? 2 : is_attention(like, 0);
        int columns = fill_point(&cases[i], point) - skip;
        memcpy(values + rows.num * columns, point + skip,
               (size_t)columns * sizeof *values);
        rows.num++;
    }
    return rows;
}

/* Collectives are measured by growing size (exec/measure.h). */
static void add_curves(const work *w, const ms_sample *cases, int num, ms_sweep *sweep)
{
    sweep->curves = MS_NEW_ARRAY(w->cx->arena, num + 1, ms_sweep_curve);
    for (int i = 0; i < num; i++) {
        const ms_sample *c = &cases[i];
        if (c->kind != MS_SAMPLE_COLLECTIVE ||
            ms_sweep_find(sweep, c->what, c->ranks) != NULL)
            continue;
        sweep->curves[sweep->num_curves++] =
            (ms_sweep_curve){c->what, c->ranks, rows_of(w, cases, num, is_collective, c)};
    }
}

static void add_tables(work *w, const ms_sample *cases, int num)
{
    ms_sweep *sweep = MS_NEW(w->cx->arena, ms_sweep);
    long ranks = w->in->ranks;
    *sweep = (ms_sweep){
        .machine = w->in->machine, .dtype = (int)w->in->compute, .ranks = ranks};
    sweep->products = rows_of(w, cases, num, is_product,
                              &(ms_sample){.kind = MS_SAMPLE_PRODUCT, .ranks = ranks});
    for (int i = 0; i < 2; i++)
        sweep->attention[i] =
            rows_of(w, cases, num, is_attention,
                    &(ms_sample){.kind = MS_SAMPLE_ATTENTION + i, .ranks = ranks});
    add_curves(w, cases, num, sweep);
    w->out->profile.measured = sweep;
}

/* ---- spread ---- */

static void add_launch_ratio(work *w)
{
    const ms_samples *samples = w->in->samples;
    double least = INFINITY, most = -INFINITY;
    for (int launch = 0; launch < w->in->num_launches; launch++) {
        double sum = 0.0;
        int num = 0;
        for (int i = 0; i < samples->num; i++) {
            if (samples->items[i].launch == launch) {
                sum += log(samples->items[i].seconds);
                num++;
            }
        }
        least = fmin(least, sum / num);
        most = fmax(most, sum / num);
    }
    w->out->launch_ratio = exp(most - least);
}

static void add_spread(work *w, const ms_sample *cases, int num)
{
    const ms_samples *samples = w->in->samples;
    double *ratios = MS_NEW_ARRAY(w->cx->arena, samples->num + 1, double);
    double *seconds = MS_NEW_ARRAY(w->cx->arena, samples->num + 1, double);
    for (int c = 0; c < num; c++) {
        int first = 0;
        while (!same_case(&samples->items[first], &cases[c]))
            first++;
        int launches = launches_of(samples, first, seconds);
        double least = ms_quantile(seconds, launches, 0.0);
        ratios[c] = ms_quantile(seconds, launches, 1.0) / least;
    }
    w->out->case_ratio_p90 = ms_quantile(ratios, num, 0.9);
    for (int i = 0; i < samples->num; i++)
        ratios[i] = samples->items[i].typical_s / samples->items[i].seconds;
    w->out->typical_ratio = ms_quantile(ratios, samples->num, 0.5);
    w->out->num_cases = num;
    add_launch_ratio(w);
}

/* ---- all of it ---- */

static void start(work *w)
{
    const ms_calibration_input *in = w->in;
    ms_profile *profile = &w->out->profile;
    *profile = *in->assumed;
    profile->pointwise = NULL;
    profile->measured = NULL;
    profile->name = "calibrated";
    profile->source = ms_arena_printf(
        w->cx->arena, "meshsim calibrate, %s, %s backend, %ld rank%s at once, %s",
        in->date, in->backend, in->ranks, in->ranks == 1 ? "" : "s",
        in->machine.cpu == NULL ? "unknown processor" : in->machine.cpu);
    for (int i = 0; i < MS_NUM_DTYPES; i++)
        if (i != (int)in->compute)
            profile->gemm[i].efficiency.value = NAN;
    profile->launch_s =
        (ms_coefficient){0.0, MS_MEASURED, "calls are part of each kernel's overhead"};
}

ms_status ms_calibration_make(ms_ctx *cx, const ms_calibration_input *input,
                              ms_calibration *out)
{
    *out = (ms_calibration){.input = input};
    work w = {.cx = cx, .in = input, .out = out};
    start(&w);
    MS_TRY(ms_pricer_make(cx, input->cluster, &out->profile, input->stack, input->compute,
                          &w.pricer));
    MS_TRY(fit_operations(&w));
    MS_TRY(fit_products(&w));
    MS_TRY(fit_attention(&w));
    MS_TRY(fit_rings(&w));
    MS_TRY(fit_all_to_all(&w));
    MS_TRY(fit_sends(&w));
    ms_sample *cases = MS_NEW_ARRAY(cx->arena, input->samples->num + 1, ms_sample);
    int num = cases_of(&w, cases);
    add_tables(&w, cases, num);
    add_spread(&w, cases, num);
    return MS_OK;
}
