#include "sim/validate/validation_worst.h"

#include "sim/validate/validation_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct ranked_error {
    int run;
    double ape_frac;
} ranked_error;

static int compare_errors(const void *a, const void *b)
{
    const ranked_error *x = a, *y = b;
    if (x->ape_frac != y->ape_frac)
        return x->ape_frac > y->ape_frac ? -1 : 1;
    return x->run - y->run;
}

void ms_validation_find_worst(ms_arena *arena, int num, ms_validation *v)
{
    ranked_error *errors = MS_NEW_ARRAY(arena, v->runs->num_runs, ranked_error);
    int num_errors = 0;
    for (int i = 0; i < v->runs->num_runs; i++)
        if (!isnan(v->scores[i].step_error_frac))
            errors[num_errors++] = (ranked_error){i, fabs(v->scores[i].step_error_frac)};
    if (num_errors > 1)
        qsort(errors, (size_t)num_errors, sizeof *errors, compare_errors);
    v->num_worst = num < num_errors ? num : num_errors;
    int *worst = MS_NEW_ARRAY(arena, v->num_worst, int);
    for (int i = 0; i < v->num_worst; i++)
        worst[i] = errors[i].run;
    v->worst = worst;
}

/* ---- facts about a run ---- */

double ms_measured_mfu_frac(const ms_validation *v, int run)
{
    const ms_pubrun_score *score = &v->scores[run];
    return score->mfu_frac * score->step_s / v->runs->runs[run].measured_step_s;
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(ms_or_unstated(a), ms_or_unstated(b)) == 0;
}

ms_run_repeats ms_run_repeats_of(const ms_validation *v, int run)
{
    const ms_pubrun *of = &v->runs->runs[run];
    ms_run_repeats out = {0, (double)NAN, (double)NAN};
    for (int i = 0; i < v->runs->num_runs; i++) {
        const ms_pubrun *other = &v->runs->runs[i];
        if (i == run || isnan(v->scores[i].step_error_frac) ||
            !same_text(other->source, of->source) ||
            !same_text(other->model_text, of->model_text) ||
            !same_text(other->gpu_type, of->gpu_type) ||
            !ms_plan_equal(&other->plan, &of->plan))
            continue;
        out.num++;
        out.least_s = fmin(out.least_s, other->measured_step_s); /* fmin ignores NaN */
        out.most_s = fmax(out.most_s, other->measured_step_s);
    }
    return out;
}

const ms_step_component ms_step_components[MS_NUM_STEP_COMPONENTS] = {
    {"compute_frac", "compute (%)", offsetof(ms_pubrun_score, compute_s)},
    {"exposed_comm_frac", "waiting for communication (%)",
     offsetof(ms_pubrun_score, exposed_comm_s)},
    {"bubble_frac", "bubbles (%)", offsetof(ms_pubrun_score, bubble_s)},
    {"optimizer_frac", "optimizer (%)", offsetof(ms_pubrun_score, optimizer_s)},
    {"host_frac", "host (%)", offsetof(ms_pubrun_score, host_s)},
};

double ms_step_component_frac(const ms_pubrun_score *score, int component)
{
    double component_s;
    memcpy(&component_s, (const char *)score + ms_step_components[component].offset,
           sizeof component_s);
    return component_s / score->step_s;
}

/* ---- output ---- */

static void write_run(ms_jout *out, const ms_validation *v, int i)
{
    const ms_pubrun *run = &v->runs->runs[i];
    const ms_pubrun_score *score = &v->scores[i];
    ms_run_repeats others = ms_run_repeats_of(v, i);
    ms_arena *arena = ms_arena_open();
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "id", run->id);
    ms_jout_text_field(out, "workload", ms_pubrun_workload_text(arena, run));
    ms_jout_text_field(out, "layout", ms_plan_text(arena, &run->plan));
    ms_jout_number_field(out, "measured_step_s", run->measured_step_s);
    ms_jout_number_field(out, "predicted_step_s", score->step_s);
    ms_jout_number_field(out, "step_error_frac", score->step_error_frac);
    ms_jout_number_field(out, "measured_mfu_frac", ms_measured_mfu_frac(v, i));
    ms_jout_number_field(out, "predicted_mfu_frac", score->mfu_frac);
    for (int component = 0; component < MS_NUM_STEP_COMPONENTS; component++)
        ms_jout_number_field(out, ms_step_components[component].key,
                             ms_step_component_frac(score, component));
    ms_jout_number_field(out, "repeats", others.num);
    ms_jout_number_field(out, "repeats_least_step_s", others.least_s);
    ms_jout_number_field(out, "repeats_most_step_s", others.most_s);
    ms_jout_end_object(out);
    ms_arena_close(arena);
}

void ms_worst_write_json(ms_jout *out, const ms_validation *v)
{
    ms_jout_begin_array_field(out, "worst");
    for (int i = 0; i < v->num_worst; i++)
        write_run(out, v, v->worst[i]);
    ms_jout_end_array(out);
}
