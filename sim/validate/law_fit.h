/* Fits coefficients of one cost law of one device to measured rows, to compare them with
 * the shipped ones. Shared by the fits of kernels and of collectives. */
#ifndef MS_SIM_VALIDATE_LAW_FIT_H
#define MS_SIM_VALIDATE_LAW_FIT_H

#include "base/json.h"
#include "base/units.h"
#include "costmodel/calibrate/fit.h"

typedef struct ms_law_value {
    const char *key; /* coefficient's key in the profile or its cost law: "efficiency" */
    ms_unit unit;
    double shipped;
    ms_fit_value fitted;
} ms_law_value;

typedef struct ms_law_fit {
    const char *profile;
    const char *law; /* "gemm.bf16", "attention.fa3", "link", "networks.efa" */
    int num_values;
    ms_law_value values[MS_FIT_PARAMETERS];
    ms_fit fit; /* fit to the measured rows */
} ms_law_fit;

/* A fit in progress: the problem, and the variables that hold the coefficients while the
 * cost law is evaluated. */
typedef struct ms_law_trial {
    ms_fit_problem problem;
    double *targets[MS_FIT_PARAMETERS];
} ms_law_trial;

/* Sets up a fit to the measured seconds of rows. A point that the cost law receives is a
 * row's index; each row is a benchmark launch. The caller sets problem.law and .state. */
void ms_law_trial_open(ms_arena *arena, ms_law_trial *trial, const double *measured_s,
                       int num_rows);
/* Adds a coefficient to a fit; its `target` holds the shipped value. Returns false if
 * there are MS_FIT_PARAMETERS already. */
bool ms_law_trial_add(ms_law_trial *trial, const ms_fit_parameter *parameter,
                      ms_unit unit, double *target, ms_law_fit *out);
/* Sets the coefficients' targets to the parameters on trial; called by the cost law. */
void ms_law_trial_set(const ms_law_trial *trial, const double *parameters);
/* Fits, and leaves the fitted values in the targets. Status: that of ms_fit_make. */
ms_status ms_law_trial_fit(ms_ctx *cx, ms_law_trial *trial, ms_law_fit *out);

/* Writes the list of coefficients to JSON under "coefficients". */
void ms_law_fit_write_values(ms_jout *out, const ms_law_fit *fit);

#endif
