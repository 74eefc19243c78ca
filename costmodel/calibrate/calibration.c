/* Fits the cost laws of a profile to samples. Each fit evaluates the same functions that
 * price plans (kernel_cost.h, collective_cost.h), with the coefficients on trial. */
#include "costmodel/calibrate/calibration_priv.h"

#include "costmodel/calibrate/statistics.h"

#include <math.h>

/* The coefficients under fit: a cost law reads them through `targets` when evaluated. */
typedef struct trial {
    ms_calibration_work *work;
    double *targets[MS_FIT_PARAMETERS];
    int num_targets;
    const ms_pointwise_profile *pointwise;
} trial;

static const trial *set_targets(const trial *t, const double *parameters)
{
    for (int i = 0; i < t->num_targets; i++)
        *t->targets[i] = parameters[i];
    return t;
}

/* ---- laws ---- */

static double product_s(void *state, const double *parameters, const double *point)
{
    const trial *t = set_targets(state, parameters);
    double bytes = ms_stored_bytes(t->work->in->compute);
    return ms_gemm_kernel_s(
        &t->work->pricer,
        (ms_gemm_shape){point[0], point[1], point[2], point[3], bytes, bytes});
}

static double attention_s(void *state, const double *parameters, const double *point)
{
    const trial *t = set_targets(state, parameters);
    return ms_attention_s(&t->work->pricer,
                          (ms_attention_shape){
                              .flop = point[1],
                              .key_tokens = point[2],
                              .head_dim = point[3],
                              .score_elements = point[4],
                              .traffic_bytes = point[5],
                              .query_rows = point[4] / point[2],
                              .backward = point[0] == MS_SAMPLE_ATTENTION_GRAD,
                          });
}

static double pointwise_s(void *state, const double *parameters, const double *point)
{
    const trial *t = set_targets(state, parameters);
    return ms_pointwise_s(t->pointwise, point[0]);
}

static double stream_s(void *state, const double *parameters, const double *point)
{
    const trial *t = set_targets(state, parameters);
    return ms_stream_s(&t->work->pricer, point[0]);
}

static double collective_s(void *state, const double *parameters, const double *point)
{
    const trial *t = set_targets(state, parameters);
    ms_span span = {.size = (long)point[1]};
    span.per_domain[0] = span.size;
    ms_collective_law law =
        ms_collective_law_make((ms_collective)(int)point[0], &span, t->work->in->cluster,
                               &t->work->out->profile);
    return ms_collective_s(&law, point[2]);
}

/* ---- points ---- */

static void collect(const ms_calibration_work *w, ms_sample_filter filter,
                    ms_fit_problem *problem)
{
    const int most_columns = MS_SAMPLE_SIZES + 2;
    const ms_samples *samples = w->in->samples;
    double *points = MS_NEW_ARRAY(w->cx->arena, samples->num * most_columns + 1, double);
    int *launch = MS_NEW_ARRAY(w->cx->arena, samples->num + 1, int);
    int num = 0, columns = 0;
    for (int i = 0; i < samples->num; i++) {
        if (!ms_sample_matches(&samples->items[i], filter))
            continue;
        columns = ms_sample_point(&samples->items[i], points + num * columns);
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
    double start_profile;
    bool optional;
} coefficient_row;

typedef struct fit_plan {
    const char *name;
    ms_fit_law *law;
    ms_sample_filter filter;
    const ms_pointwise_profile *pointwise;
    /* name of the samples without which the fit fails; NULL: it is skipped then */
    const char *required;
    int num_rows;
    coefficient_row rows[MS_FIT_PARAMETERS];
} fit_plan;

/* Fits one cost law and stores its coefficients; *out is NULL if it has no samples. */
static ms_status run_fit(ms_calibration_work *w, const fit_plan *plan,
                         ms_calibration_fit **out)
{
    trial state = {
        .work = w, .num_targets = plan->num_rows, .pointwise = plan->pointwise};
    ms_fit_problem problem = {.name = plan->name,
                              .law = plan->law,
                              .state = &state,
                              .num_parameters = plan->num_rows,
                              .seed = 1};
    *out = NULL;
    collect(w, plan->filter, &problem);
    if (problem.num_points == 0 && plan->required == NULL)
        return MS_OK;
    if (problem.num_points == 0) {
        ms_fail(w->cx, MS_EINPUT, MS_NOWHERE, "no %s was measured", plan->required);
        return MS_EINPUT;
    }
    ms_calibration_fit *fit = &w->out->fits[w->out->num_fits];
    *fit = (ms_calibration_fit){.name = plan->name, .num_coefficients = plan->num_rows};
    for (int i = 0; i < plan->num_rows; i++) {
        const coefficient_row *row = &plan->rows[i];
        state.targets[i] = row->target;
        problem.parameters[i] =
            (ms_fit_parameter){row->name, row->start_profile, row->optional};
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

static ms_coefficient fitted_coefficient(const ms_calibration_work *w,
                                         const ms_calibration_fit *fit, int i)
{
    const ms_calibration_coefficient *c = &fit->coefficients[i];
    char low[32], high[32];
    const char *interval = "";
    if (c->value.dropped) {
        interval = "; indistinguishable from 0";
    } else if (!isnan(c->value.low) && c->unit == MS_UNIT_COUNT) {
        interval = ms_arena_printf(w->cx->arena, "; 90 %% interval %.3g to %.3g",
                                   c->value.low, c->value.high);
    } else if (!isnan(c->value.low)) {
        interval = ms_arena_printf(
            w->cx->arena, "; 90 %% interval %s to %s",
            ms_format_quantity(low, sizeof low, c->value.low, c->unit),
            ms_format_quantity(high, sizeof high, c->value.high, c->unit));
    }
    return (ms_coefficient){
        c->value.value, MS_FITTED,
        ms_arena_printf(
            w->cx->arena, "%s: %d points of %d launches, median error %.1f %%%s",
            w->out->profile.source, fit->fit.num_points, fit->fit.num_launches,
            100.0 * fit->fit.median_error_frac, interval)};
}

/* Sets *out to the fitted coefficient `i`, a rate, over `listed`, the cluster file's rate
 * (1: `i` is a fraction already). MS_EINPUT if the quotient is implausible. */
static ms_status set_fraction_of_listed(const ms_calibration_work *w,
                                        const ms_calibration_fit *fit, int i,
                                        double listed, ms_coefficient *out)
{
    char rate[32], list[32];
    const ms_calibration_coefficient *c = &fit->coefficients[i];
    ms_coefficient made = fitted_coefficient(w, fit, i);
    made.value = c->value.value / listed;
    if (made.value >= MS_LEAST_RATE_FRAC && made.value <= MS_MOST_RATE_FRAC) {
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

/* ---- kernels ---- */

static ms_status fit_memory(ms_calibration_work *w)
{
    double listed = w->in->cluster->device.hbm_bytes_per_s;
    ms_calibration_fit *fit;
    fit_plan plan = {.name = "memory",
                     .required = "sum of two large arrays",
                     .law = stream_s,
                     .filter = {1U << MS_SAMPLE_STREAM, 0},
                     .num_rows = 1,
                     .rows = {{"rate", MS_UNIT_BYTES_PER_S, &w->pricer.hbm_bytes_per_s,
                               listed, false}}};
    MS_TRY(run_fit(w, &plan, &fit));
    return set_fraction_of_listed(w, fit, 0, listed, &w->out->profile.hbm_frac);
}

static ms_status fit_operation(ms_calibration_work *w, int op)
{
    ms_profile *profile = &w->out->profile;
    ms_pointwise_profile on_trial = {{.value = 1e9}, {.value = 1e-6}};
    ms_calibration_fit *fit;
    fit_plan plan = {
        .name = ms_op_names[op],
        .law = pointwise_s,
        .filter = {1U << MS_SAMPLE_POINTWISE, 1ULL << op},
        .pointwise = &on_trial,
        .num_rows = 2,
        .rows = {{"rate", MS_UNIT_BYTES_PER_S, &on_trial.bytes_per_s.value, 2e9, false},
                 {"overhead", MS_UNIT_SECONDS, &on_trial.overhead_s.value, 1e-6, true}}};
    MS_TRY(run_fit(w, &plan, &fit));
    if (fit == NULL)
        return MS_OK;
    profile->pointwise[op] = (ms_pointwise_profile){fitted_coefficient(w, fit, 0),
                                                    fitted_coefficient(w, fit, 1)};
    return MS_OK;
}

static ms_status fit_operations(ms_calibration_work *w)
{
    ms_profile *profile = &w->out->profile;
    profile->pointwise = MS_NEW_ARRAY(w->cx->arena, MS_NUM_OPS, ms_pointwise_profile);
    for (int op = 0; op < MS_NUM_OPS; op++)
        profile->pointwise[op].bytes_per_s.value = NAN;
    for (int op = 0; op < MS_NUM_OPS; op++)
        MS_TRY(fit_operation(w, op));
    return MS_OK;
}

static ms_status fit_products(ms_calibration_work *w)
{
    ms_dtype compute = w->in->compute;
    ms_gemm_profile *gemm = &w->out->profile.gemm[compute];
    double peak = w->in->cluster->device.peak_flop_per_s[compute];
    ms_calibration_fit *fit;
    fit_plan plan = {
        .name = "products",
        .required = "matrix product",
        .law = product_s,
        .filter = {1U << MS_SAMPLE_GEMM, 0},
        .num_rows = 3,
        .rows = {
            {"rate", MS_UNIT_FLOP_PER_S, &w->pricer.gemm_flop_per_s, 0.5 * peak, false},
            {"k_half", MS_UNIT_COUNT, &gemm->k_half.value, 16.0, true},
            {"overhead", MS_UNIT_SECONDS, &gemm->overhead_s.value, 1e-6, true}}};
    MS_TRY(run_fit(w, &plan, &fit));
    MS_TRY(set_fraction_of_listed(w, fit, 0, peak, &gemm->efficiency));
    gemm->k_half = fitted_coefficient(w, fit, 1);
    gemm->overhead_s = fitted_coefficient(w, fit, 2);
    gemm->sustained_frac = (ms_coefficient){1.0, MS_MEASURED, w->out->profile.source};
    return MS_OK;
}

static ms_status fit_attention(ms_calibration_work *w)
{
    ms_pricer *p = &w->pricer;
    double rate = 0.3 * p->gemm_flop_per_s;
    ms_calibration_fit *fit;
    fit_plan plan = {
        .name = "attention",
        .required = "attention",
        .law = attention_s,
        .filter = {1U << MS_SAMPLE_ATTENTION | 1U << MS_SAMPLE_ATTENTION_GRAD, 0},
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
    ms_attention_profile made = {fitted_coefficient(w, fit, 0),
                                 fitted_coefficient(w, fit, 1),
                                 fitted_coefficient(w, fit, 2),
                                 fitted_coefficient(w, fit, 3),
                                 {1.0, MS_MEASURED, w->out->profile.source},
                                 fitted_coefficient(w, fit, 4)};
    for (int i = 0; i < MS_NUM_ATTENTION_KERNELS; i++)
        w->out->profile.attention[i].forward_flop_per_s.value = NAN;
    bool has_kernel = w->in->stack->attention != MS_ATTENTION_UNFUSED;
    w->out->profile.attention[has_kernel ? w->in->stack->attention : MS_ATTENTION_FA2] =
        made;
    return MS_OK;
}

/* ---- collectives ---- */

/* Profile members that receive a law's fitted coefficients; NULL: no such coefficient. */
typedef struct law_coefficients {
    ms_coefficient *base_s, *step_s, *frac, *ramp;
} law_coefficients;

/* Fits the cost law of one kind of collective; nothing if it was not measured. */
static ms_status fit_law(ms_calibration_work *w, fit_plan plan, law_coefficients law)
{
    const struct {
        const char *name;
        ms_coefficient *target;
        ms_unit unit;
        double start_profile;
    } rows[] = {{"base", law.base_s, MS_UNIT_SECONDS, 1e-6},
                {"step", law.step_s, MS_UNIT_SECONDS, 1e-6},
                {"frac", law.frac, MS_UNIT_COUNT, 0.5},
                {"ramp", law.ramp, MS_UNIT_COUNT, 0.5}};
    ms_coefficient *targets[MS_FIT_PARAMETERS];
    plan.law = collective_s;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].target == NULL)
            continue;
        bool optional = rows[i].target != law.frac;
        targets[plan.num_rows] = rows[i].target;
        plan.rows[plan.num_rows++] =
            (coefficient_row){rows[i].name, rows[i].unit, &rows[i].target->value,
                              rows[i].start_profile, optional};
    }
    ms_calibration_fit *fit;
    MS_TRY(run_fit(w, &plan, &fit));
    for (int i = 0; fit != NULL && i < plan.num_rows; i++) {
        if (targets[i] == law.frac)
            MS_TRY(set_fraction_of_listed(w, fit, i, 1.0, law.frac));
        else
            *targets[i] = fitted_coefficient(w, fit, i);
    }
    return MS_OK;
}

/* Fits the cost laws of ring collectives, of all-to-alls, and of sends (latency only). */
static ms_status fit_collectives(ms_calibration_work *w)
{
    ms_profile *p = &w->out->profile;
    const unsigned kind = 1U << MS_SAMPLE_COLLECTIVE;
    const fit_plan rings = {.name = "rings",
                            .filter = {kind, 1U << MS_ALL_GATHER |
                                                 1U << MS_REDUCE_SCATTER |
                                                 1U << MS_ALL_REDUCE}};
    const fit_plan all_to_all = {.name = "all-to-all",
                                 .filter = {kind, 1U << MS_ALL_TO_ALL}};
    const fit_plan sends = {.name = "sends", .filter = {kind, 1U << MS_SEND}};
    MS_TRY(fit_law(
        w, rings,
        (law_coefficients){&p->link_base_s, &p->link_step_s, &p->link_frac, &p->ramp}));
    MS_TRY(fit_law(w, all_to_all,
                   (law_coefficients){&p->all_to_all_base_s, &p->all_to_all_step_s,
                                      &p->all_to_all_frac, NULL}));
    return fit_law(w, sends, (law_coefficients){.base_s = &p->p2p_base_s});
}

/* ---- calibration ---- */

/* Sets the host's time to launch a kernel. Without launch samples it is 0: then the time
 * of the call is part of each kernel's overhead. */
static void set_launch(ms_calibration_work *w)
{
    const ms_samples *samples = w->in->samples;
    double *seconds = MS_NEW_ARRAY(w->cx->arena, samples->num + 1, double);
    int num = 0;
    for (int i = 0; i < samples->num; i++)
        if (samples->items[i].kind == MS_SAMPLE_LAUNCH)
            seconds[num++] = samples->items[i].seconds;
    w->out->profile.launch_s =
        num == 0
            ? (ms_coefficient){0.0, MS_MEASURED,
                               "calls are part of each kernel's overhead"}
            : (ms_coefficient){
                  ms_quantile(seconds, num, 0.5), MS_MEASURED,
                  ms_arena_printf(w->cx->arena,
                                  "%s: the host's time for one of many small kernels, "
                                  "median of %d launches",
                                  w->out->profile.source, num)};
}

static void start_profile(ms_calibration_work *w)
{
    const ms_calibration_input *in = w->in;
    ms_profile *profile = &w->out->profile;
    *profile = *in->assumed;
    profile->pointwise = NULL;
    profile->measured = NULL;
    profile->name = "calibrated";
    profile->source = ms_arena_printf(
        w->cx->arena, "meshsim calibrate, %s, %s backend, %ld rank%s at once, %s%s%s",
        in->date, in->backend, in->ranks, in->ranks == 1 ? "" : "s",
        in->machine.gpu != NULL   ? in->machine.gpu
        : in->machine.cpu != NULL ? in->machine.cpu
                                  : "unknown processor",
        in->kernels != NULL ? ", " : "", in->kernels != NULL ? in->kernels : "");
    for (int i = 0; i < MS_NUM_DTYPES; i++)
        if (i != (int)in->compute)
            profile->gemm[i].efficiency.value = NAN;
    set_launch(w);
}

ms_status ms_calibration_make(ms_ctx *cx, const ms_calibration_input *input,
                              ms_calibration *out)
{
    *out = (ms_calibration){.input = input};
    ms_calibration_input fitted = *input;
    ms_calibration_take_conditions(cx, &fitted, out);
    ms_calibration_work w = {.cx = cx, .in = &fitted, .out = out};
    start_profile(&w);
    MS_TRY(ms_pricer_make(cx, input->cluster, &out->profile, input->stack, input->compute,
                          &w.pricer));
    MS_TRY(fit_memory(&w));
    MS_TRY(fit_operations(&w));
    MS_TRY(fit_products(&w));
    MS_TRY(fit_attention(&w));
    MS_TRY(fit_collectives(&w));
    ms_calibration_add_tables(&w);
    return MS_OK;
}
