#include "sim/validate/kernels_fit.h"

#include "sim/validate/pubrun_prices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of one cost law: of one device, and of one GEMM type or attention kernel. */
typedef struct law_rows {
    const ms_kernel_row **rows;
    int num_rows;
} law_rows;

typedef struct trial {
    ms_profile profile; /* profile with the coefficients on trial */
    ms_pricer pricer;
    const ms_kernel_row *const *rows;
    int num_rows;
    ms_law_trial law;
    bool one_rate; /* forward and backward have one rate, since every row times both */
} trial;

/* ---- the laws ---- */

typedef struct law_parameter {
    const char *key;
    ms_unit unit;
    ms_coefficient *target;
    double start;
    bool optional;
} law_parameter;

/* Adds a coefficient to the fit, unless its value in the profile is only assumed. */
static void add_coefficient(trial *t, ms_law_fit *out, const law_parameter *p)
{
    const ms_fit_parameter parameter = {p->key, p->start, p->optional};
    if (p->target->source != NULL && p->target->from != MS_ASSUMED)
        ms_law_trial_add(&t->law, &parameter, p->unit, &p->target->value, out);
}

/* Adds the coefficients of a GEMM type, six at most. Rows that include quantization leave
 * the launch time and the device's wave_frac as shipped. */
static void add_gemm(trial *t, ms_law_fit *out)
{
    const ms_kernel_row *row = t->rows[0];
    ms_gemm_profile *gemm = &t->profile.gemm[row->dtype];
    const law_parameter common[] = {
        {"efficiency", MS_UNIT_COUNT, &gemm->efficiency, 0.7, false},
        {"k_half", MS_UNIT_COUNT, &gemm->k_half, 100.0, true},
        {"hbm_frac", MS_UNIT_COUNT, &gemm->hbm_frac, 0.8, false},
        {"depth", MS_UNIT_SECONDS, &gemm->depth_s, 0.5e-9, true}};
    const law_parameter plain[] = {
        {"overhead", MS_UNIT_SECONDS, &gemm->overhead_s, 4e-6, true},
        {"wave", MS_UNIT_COUNT, &t->profile.wave_frac, 0.2, true}};
    const law_parameter made[] = {
        {"quantize_overhead", MS_UNIT_SECONDS, &gemm->quantize_overhead_s, 8e-6, true},
        {"quantize", MS_UNIT_COUNT, &gemm->quantize_frac, 0.4, false}};
    for (int i = 0; i < 4; i++)
        add_coefficient(t, out, &common[i]);
    for (int i = 0; i < 2; i++)
        add_coefficient(t, out, row->quantizes ? &made[i] : &plain[i]);
}

/* Whether some measured row runs exactly `passes` (forward, backward). */
static bool any_passes(const trial *t, int passes)
{
    for (int i = 0; i < t->num_rows; i++)
        if (t->rows[i]->passes == passes)
            return true;
    return false;
}

static bool any_small_head(const trial *t)
{
    for (int i = 0; i < t->num_rows; i++)
        if (t->rows[i]->attention.head_dim < 128.0)
            return true;
    return false;
}

/* Whether some measured row takes less than 1 ms. From longer ones alone, launch time and
 * the growth of the rate with the sequence (half_sequence) cannot be told apart. */
static bool any_short(const trial *t)
{
    const double short_s = 1e-3;
    for (int i = 0; i < t->num_rows; i++)
        if (t->rows[i]->measured_s < short_s)
            return true;
    return false;
}

static void add_attention(trial *t, ms_law_fit *out)
{
    const ms_kernel_row *row = t->rows[0];
    ms_attention_profile *attention = &t->profile.attention[row->kernel];
    double rate = 0.5 * row->cluster->device.peak_flop_per_s[row->dtype];
    const law_parameter forward = {"forward", MS_UNIT_FLOP_PER_S,
                                   &attention->forward_flop_per_s, rate, false};
    const law_parameter backward = {"backward", MS_UNIT_FLOP_PER_S,
                                    &attention->backward_flop_per_s, rate, false};
    const law_parameter small = {"small_head", MS_UNIT_COUNT, &attention->small_head_frac,
                                 0.8, false};
    const law_parameter half = {"half_sequence", MS_UNIT_COUNT, &attention->half_sequence,
                                500.0, true};
    ms_coefficient *overhead = &attention->overhead_s;
    const law_parameter launch = {"overhead", MS_UNIT_SECONDS, overhead, 1e-5, true};
    bool alone = any_passes(t, MS_KERNEL_FORWARD),
         back = any_passes(t, MS_KERNEL_BACKWARD),
         both = any_passes(t, MS_KERNEL_FORWARD | MS_KERNEL_BACKWARD);
    t->one_rate = both && !alone && !back;
    if (alone || both)
        add_coefficient(t, out, &forward);
    if (back || (both && alone))
        add_coefficient(t, out, &backward);
    if (any_small_head(t))
        add_coefficient(t, out, &small);
    add_coefficient(t, out, &half);
    if (any_short(t)) { /* fit the host's launch time, even if not shipped */
        overhead->source = "host";
        overhead->from = MS_FITTED;
        add_coefficient(t, out, &launch);
    }
}

/* Sets the pricer to the coefficients on trial, for the kernel of a measured row. */
static void set_rates(trial *t, const ms_kernel_row *row)
{
    const ms_device *device = &row->cluster->device;
    const ms_gemm_profile *gemm = &t->profile.gemm[row->dtype];
    const ms_attention_profile *attention = &t->profile.attention[row->kernel];
    ms_pricer *p = &t->pricer;
    if (row->is_attention) {
        double sustained = row->profile->attention[row->kernel].sustained_frac.value;
        p->attention_forward_flop_per_s = attention->forward_flop_per_s.value * sustained;
        p->attention_backward_flop_per_s =
            (t->one_rate ? attention->forward_flop_per_s : attention->backward_flop_per_s)
                .value *
            sustained;
        p->attention_small_head_frac = attention->small_head_frac.value;
        p->attention_half_sequence = attention->half_sequence.value;
        p->attention_overhead_s =
            isnan(attention->overhead_s.value) ? 0.0 : attention->overhead_s.value;
        return;
    }
    ms_gemm_profile tried = row->profile->gemm[row->dtype];
    tried.efficiency = gemm->efficiency;
    p->gemm_flop_per_s = ms_gemm_flop_per_s(
        device, &tried, ms_flop_per_joule(row->profile, row->dtype), row->dtype);
    p->gemm_hbm_bytes_per_s = device->hbm_bytes_per_s * gemm->hbm_frac.value;
    p->quantize_bytes_per_s = device->hbm_bytes_per_s * gemm->quantize_frac.value;
}

static double law_s(void *state, const double *parameters, const double *point)
{
    trial *t = state;
    ms_law_trial_set(&t->law, parameters);
    const ms_kernel_row *row = t->rows[(int)point[0]];
    set_rates(t, row);
    return ms_kernel_row_s(&t->pricer, row);
}

/* ---- rows ---- */

static bool same_law(const ms_kernel_row *a, const ms_kernel_row *b)
{
    return a->cluster == b->cluster && a->is_attention == b->is_attention &&
           (a->is_attention ? a->kernel == b->kernel : a->dtype == b->dtype);
}

/* Measured rows of the same cost law as row `like` for which `counts` is true. */
static law_rows collect(ms_arena *arena, const ms_kernel_rows *all,
                        const ms_kernel_row *like, bool (*counts)(const ms_kernel_row *))
{
    law_rows out = {.rows = MS_NEW_ARRAY(arena, all->num_rows, const ms_kernel_row *)};
    for (int i = 0; i < all->num_rows; i++)
        if (all->rows[i].reason == NULL && same_law(&all->rows[i], like) &&
            counts(&all->rows[i]))
            out.rows[out.num_rows++] = &all->rows[i];
    return out;
}

static bool is_fitted(const ms_kernel_row *row)
{
    return row->fitted;
}

/* Whether a row of a fitted source is in the half of shapes that is not fitted to. */
static bool is_held_out(const ms_kernel_row *row)
{
    return row->of_fitted_source && !row->in_half;
}

static ms_row_errors held_out_errors(ms_ctx *cx, const ms_kernel_rows *rows,
                                     const trial *t, const ms_kernel_row *like)
{
    law_rows held = collect(cx->arena, rows, like, is_held_out);
    double *error_fracs = MS_NEW_ARRAY(cx->arena, held.num_rows, double);
    for (int i = 0; i < held.num_rows; i++)
        error_fracs[i] = ms_pubrun_error_frac(ms_kernel_row_s(&t->pricer, held.rows[i]),
                                              held.rows[i]->measured_s);
    return ms_row_errors_of(cx->arena, error_fracs, held.num_rows);
}

/* ---- one fit ---- */

static const char *law_name(ms_arena *arena, const ms_kernel_row *row)
{
    return row->is_attention
               ? ms_arena_printf(arena, "attention.%s",
                                 ms_attention_kernel_names[row->kernel])
               : ms_arena_printf(arena, "gemm.%s", ms_dtype_names[row->dtype]);
}

static ms_status fit_law(ms_ctx *cx, const ms_kernel_rows *rows, const law_rows *used,
                         ms_kernel_fit *out)
{
    const ms_kernel_row *first = used->rows[0];
    trial *t = MS_NEW(cx->arena, trial);
    double *measured_s = MS_NEW_ARRAY(cx->arena, used->num_rows, double);
    for (int i = 0; i < used->num_rows; i++)
        measured_s[i] = used->rows[i]->measured_s;
    ms_law_trial_open(cx->arena, &t->law, measured_s, used->num_rows);
    t->profile = *first->profile;
    t->rows = used->rows;
    t->num_rows = used->num_rows;
    MS_TRY(ms_kernel_row_pricer(cx, first, &t->pricer));
    t->pricer.profile = &t->profile;
    *out = (ms_kernel_fit){
        .law = {.profile = first->profile->name, .law = law_name(cx->arena, first)},
        .source = first->source};
    out->shipped_errors = held_out_errors(cx, rows, t, first);
    (first->is_attention ? add_attention : add_gemm)(t, &out->law);
    t->law.problem.name = out->law.law;
    t->law.problem.law = law_s;
    t->law.problem.state = t;
    MS_TRY(ms_law_trial_fit(cx, &t->law, &out->law));
    set_rates(t, first);
    out->fitted_errors = held_out_errors(cx, rows, t, first);
    return MS_OK;
}

static int compare_laws(const void *a, const void *b)
{
    const ms_kernel_fit *x = a, *y = b;
    int order = strcmp(x->law.profile, y->law.profile);
    return order != 0 ? order : strcmp(x->law.law, y->law.law);
}

ms_status ms_kernels_fit_make(ms_ctx *cx, const ms_kernel_rows *rows, ms_kernels_fit *out)
{
    const int least_rows = 7;
    ms_kernel_fit *fits = MS_NEW_ARRAY(cx->arena, 1, ms_kernel_fit);
    const ms_kernel_row **done = NULL;
    int fits_capacity = 1, done_capacity = 0, num_done = 0;
    *out = (ms_kernels_fit){0};
    for (int i = 0; i < rows->num_rows; i++) {
        const ms_kernel_row *row = &rows->rows[i];
        bool known = row->reason != NULL || !row->fitted;
        for (int j = 0; j < num_done && !known; j++)
            known = same_law(done[j], row);
        if (known)
            continue;
        MS_MAKE_ROOM(cx->arena, done, num_done, done_capacity, 16);
        done[num_done++] = row;
        law_rows used = collect(cx->arena, rows, row, is_fitted);
        if (used.num_rows < least_rows)
            continue;
        MS_MAKE_ROOM(cx->arena, fits, out->num_fits, fits_capacity, 16);
        MS_TRY(fit_law(cx, rows, &used, &fits[out->num_fits++]));
    }
    if (out->num_fits > 1)
        qsort(fits, (size_t)out->num_fits, sizeof *fits, compare_laws);
    out->fits = fits;
    return MS_OK;
}
