#include "exec/runner/run_check.h"

#include "base/number.h"

#include <assert.h>
#include <math.h>

/* Results on a value's way through a layer: norm, projection, position, attention, output,
 * sum, norm, projection, activation, projection, sum. Its gradient has as many. */
#define ROUNDINGS_PER_LAYER (2 * 11)

/* Difference of a bf16 gradient from that of a run that rounds elsewhere, or with
 * `is_wide` not at all, relative to the tensor's largest element. Roundings add up at
 * random; numbers in [1, 2) are off by up to 2^-8, uniformly, and numbers are spread evenly
 * over their logarithms. */
static double bf16_difference(bool is_wide, long num_layers)
{
    double rounding = ldexp(1.0, -8) / sqrt(3.0) * sqrt(3.0 / (8.0 * log(2.0)));
    double runs = is_wide ? 1.0 : 2.0;
    return rounding * sqrt(runs * ROUNDINGS_PER_LAYER * (double)num_layers);
}

ms_run_check_tolerance ms_run_check_tolerance_of(ms_real_type type, bool other_kernels,
                                                 long num_layers)
{
    static const ms_run_check_tolerance tolerances[MS_NUM_REAL_TYPES][2] = {
        [MS_REAL_FP32] = {{1e-6, 1e-5, 1e-5, INFINITY}, {1e-4, 1e-4, 1e-4, INFINITY}},
        [MS_REAL_FP64] = {{1e-12, 1e-12, 1e-12, 1e-12}, {1e-10, 1e-10, 1e-10, 1e-10}},
        [MS_REAL_BF16] = {{2e-2, 2e-2, 2e-2, INFINITY}, {2e-2, 2e-2, 2e-2, INFINITY}},
        [MS_REAL_FP8] = {{5e-2, 5e-2, INFINITY, INFINITY},
                         {5e-2, 5e-2, INFINITY, INFINITY}},
        [MS_REAL_FP4] = {{1e-1, 1e-1, INFINITY, INFINITY},
                         {1e-1, 1e-1, INFINITY, INFINITY}}};
    ms_run_check_tolerance tolerance = tolerances[type][other_kernels];
    if (type == MS_REAL_BF16)
        tolerance.gradient =
            ms_max(tolerance.gradient, bf16_difference(other_kernels, num_layers));
    return tolerance;
}

/* Whether a difference is within a tolerance; NaN never is. */
static bool is_within(double relative, double tolerance)
{
    return relative <= tolerance || (isinf(tolerance) && !isnan(relative));
}

/* Whether a difference exceeds the worst one so far; NaN exceeds any number. */
static bool is_worse(double relative, double worst)
{
    return !isnan(worst) && (isnan(relative) || relative > worst);
}

static double relative_of(double difference, double scale)
{
    if (difference == 0.0)
        return 0.0;
    if (scale == 0.0 && !isnan(difference))
        return INFINITY;
    return difference / scale;
}

/* ---- losses ---- */

static double loss_difference(double got, double expected)
{
    return relative_of(fabs(got - expected), fabs(expected));
}

/* The largest relative difference of the losses of a step: the model's and its modules'. */
static double step_difference(const ms_outcome *run, const ms_outcome *reference,
                              long step)
{
    double worst = loss_difference(run->losses[step], reference->losses[step]);
    for (int i = 0; i < reference->num_modules; i++) {
        long at = step * reference->num_modules + i;
        double relative =
            loss_difference(run->module_losses[at], reference->module_losses[at]);
        worst = is_worse(relative, worst) ? relative : worst;
    }
    return worst;
}

static void compare_losses(const ms_outcome *run, const ms_outcome *reference,
                           ms_run_check *out)
{
    out->num_steps =
        run->steps_done < reference->steps_done ? run->steps_done : reference->steps_done;
    out->worst_step = 1;
    assert(run->num_modules == reference->num_modules);
    for (long step = 0; step < out->num_steps; step++) {
        double relative = step_difference(run, reference, step);
        if (step == 0) {
            out->first_loss = relative;
        } else if (is_worse(relative, out->later_loss)) {
            out->later_loss = relative;
            out->worst_step = step + 1;
        }
    }
}

/* ---- tensors ---- */

static bool has_same_shape(const ms_safe_tensor *a, const ms_safe_tensor *b)
{
    if (a->num_dims != b->num_dims || a->count != b->count)
        return false;
    for (int i = 0; i < a->num_dims; i++)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

static double compare_values(const ms_safe_tensor *run, const ms_safe_tensor *reference)
{
    double largest = 0.0, scale = 0.0;
    for (long i = 0; i < reference->count; i++) {
        double difference = fabs(run->values[i] - reference->values[i]);
        double size = fabs(reference->values[i]);
        if (isnan(difference))
            return NAN;
        largest = difference > largest ? difference : largest;
        scale = size > scale ? size : scale;
    }
    return relative_of(largest, scale);
}

static void note_worst(ms_run_check_worst *worst, const char *name, double relative)
{
    if (worst->name != NULL && !is_worse(relative, worst->relative))
        return;
    worst->name = name;
    worst->relative = relative;
}

static ms_run_check_worst compare_files(const ms_safe_file *run,
                                        const ms_safe_file *reference)
{
    ms_run_check_worst worst = {0};
    for (int i = 0; i < reference->num_tensors; i++) {
        const ms_safe_tensor *expected = &reference->tensors[i];
        const ms_safe_tensor *got = ms_safe_find(run, expected->name);
        double relative = INFINITY;
        if (got != NULL && has_same_shape(got, expected))
            relative = compare_values(got, expected);
        note_worst(&worst, expected->name, relative);
    }
    for (int i = 0; i < run->num_tensors; i++)
        if (ms_safe_find(reference, run->tensors[i].name) == NULL)
            note_worst(&worst, run->tensors[i].name, INFINITY);
    worst.num_tensors = reference->num_tensors;
    return worst;
}

/* ---- verdict ---- */

static const char *loss_failure(ms_arena *arena, long step, double relative,
                                double tolerance)
{
    if (is_within(relative, tolerance))
        return NULL;
    return ms_arena_printf(arena,
                           "the loss of step %ld differs from the unsharded one by %.2g "
                           "of it, more than %.0e",
                           step, relative, tolerance);
}

static const char *tensor_failure(ms_arena *arena, const char *what,
                                  const ms_run_check_worst *worst, double tolerance)
{
    if (worst->name == NULL || is_within(worst->relative, tolerance))
        return NULL;
    return ms_arena_printf(arena,
                           "the %s %s differs from the unsharded one by %.2g of its "
                           "largest value, more than %.0e",
                           what, worst->name, worst->relative, tolerance);
}

static const char *find_failure(ms_arena *arena, const ms_run_check *c)
{
    if (c->num_steps == 0)
        return "no step was done that could be compared";
    const char *failure =
        tensor_failure(arena, "gradient of", &c->gradients, c->tolerance.gradient);
    if (failure == NULL)
        failure = loss_failure(arena, 1, c->first_loss, c->tolerance.first_loss);
    if (failure == NULL)
        failure =
            loss_failure(arena, c->worst_step, c->later_loss, c->tolerance.later_loss);
    if (failure == NULL)
        failure =
            tensor_failure(arena, "updated weight", &c->weights, c->tolerance.weight);
    return failure;
}

void ms_run_check_outcomes(ms_arena *arena, const ms_outcome *run,
                           const ms_outcome *reference,
                           const ms_run_check_tolerance *tolerance, ms_run_check *out)
{
    *out = (ms_run_check){.tolerance = *tolerance};
    compare_losses(run, reference, out);
    out->gradients = compare_files(&run->gradients, &reference->gradients);
    /* weights are comparable only after the same number of steps */
    if (run->steps_done == reference->steps_done)
        out->weights = compare_files(&run->updated, &reference->updated);
    out->failure = find_failure(arena, out);
    out->passes = out->failure == NULL;
}
