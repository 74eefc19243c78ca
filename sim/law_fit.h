/* Coefficients of one law of one device, fitted on measured rows beside the shipped ones:
 * what fits of kernels and of collectives share. */
#ifndef MS_SIM_LAW_FIT_H
#define MS_SIM_LAW_FIT_H

#include "base/json.h"
#include "base/table.h"
#include "base/units.h"
#include "costmodel/fit.h"

typedef struct ms_law_value {
    const char *key; /* in its file, or below its law: "efficiency" */
    ms_unit unit;
    double shipped;
    ms_fit_value fitted;
} ms_law_value;

typedef struct ms_law_fit {
    const char *profile;
    const char *law; /* "gemm.bf16", "attention.fa3", "link", "networks.efa" */
    int num_values;
    ms_law_value values[MS_FIT_PARAMETERS];
    ms_fit fit; /* of the rows fitted on */
} ms_law_fit;

/* A fit under way: a problem, and where its parameters are set before the law is
 * asked. */
typedef struct ms_law_trial {
    ms_fit_problem problem;
    double *targets[MS_FIT_PARAMETERS];
} ms_law_trial;

/* Measured seconds of the rows, which the law then gets by their indices, one launch
 * each; the law and its state are the caller's. */
void ms_law_trial_open(ms_arena *arena, ms_law_trial *trial, const double *measured_s,
                       int num_rows);
/* One more coefficient, which holds the shipped value now. False: there is no room. */
bool ms_law_trial_add(ms_law_trial *trial, const ms_fit_parameter *parameter,
                      ms_unit unit, double *target, ms_law_fit *out);
/* For the law: sets the coefficients. */
void ms_law_trial_set(const ms_law_trial *trial, const double *parameters);
/* Fits, and leaves the fitted values where the parameters are set. Errors: those of
 * ms_fit_make. */
ms_status ms_law_trial_fit(ms_ctx *cx, ms_law_trial *trial, ms_law_fit *out);

/* A list of coefficients under "coefficients". */
void ms_law_fit_write_values(ms_jout *out, const ms_law_fit *fit);
/* With its unit; a dash for what is undefined. */
void ms_law_value_cell(ms_table *table, double value, ms_unit unit);
#define MS_LAW_VALUE_TITLES "shipped", "fitted", "90 % from", "to"
void ms_law_value_cells(ms_table *table, const ms_law_value *value);

#endif
