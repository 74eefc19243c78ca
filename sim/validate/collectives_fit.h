/* Fits coefficients of collectives to the measured rows of the sources that the shipped
 * coefficients name, and predicts each system by coefficients fitted without it. */
#ifndef MS_SIM_VALIDATE_COLLECTIVES_FIT_H
#define MS_SIM_VALIDATE_COLLECTIVES_FIT_H

#include "sim/validate/collective_validation.h"
#include "sim/validate/law_fit.h"

/* Fit of the coefficients of one cost law of one profile. */
typedef struct ms_collective_fit {
    ms_law_fit law;
    int num_systems; /* number of systems whose rows the fit uses */
} ms_collective_fit;

/* Errors of a profile's cost law on the rows of one system; large: from 1 MiB on. */
typedef struct ms_system_errors {
    const char *system, *profile, *law;
    ms_row_errors shipped_large, shipped_small; /* errors by shipped coefficients */
    bool has_others;            /* a fit of the cost law to other systems exists */
    ms_row_errors large, small; /* errors by the fit to other systems */
} ms_system_errors;

/* A coefficient shipped as fitted or measured that the rows given here do not determine:
 * its own rows are missing or too few. */
typedef struct ms_undetermined {
    const char *profile, *key;
    ms_unit unit;
    const ms_coefficient *shipped;
} ms_undetermined;

typedef struct ms_collectives_fit {
    int num_fits, num_systems, num_undetermined;
    const ms_collective_fit *fits;   /* sorted by profile and cost law */
    const ms_system_errors *systems; /* in order of cost laws; empty unless `holdout` */
    const ms_undetermined *untold; /* undetermined coefficients of all shipped profiles */
} ms_collectives_fit;

/* Fits in each cost law those shipped coefficients that name sources of `rows`, to the
 * rows of these sources; the others stay as shipped. `holdout`: also predicts each system
 * by a fit to the other systems. Intervals: bootstrap over rows with a fixed seed. Error
 * statuses: those of ms_fit_make, and of loading profiles. */
ms_status ms_collectives_fit_make(ms_ctx *cx, const ms_collective_rows *rows,
                                  bool holdout, ms_collectives_fit *out);

/* Writes the fits as JSON in the schema meshsim.fit-collectives/1. */
void ms_collectives_fit_write_json(ms_jout *out, const ms_collectives_fit *fit);

#endif
