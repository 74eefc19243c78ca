/* Coefficients of collectives, fitted on the measured rows whose sources the shipped ones
 * name; and errors of systems by coefficients fitted without them. */
#ifndef MS_SIM_COLLECTIVES_FIT_H
#define MS_SIM_COLLECTIVES_FIT_H

#include "sim/collective_validation.h"
#include "sim/law_fit.h"

/* One law of one profile. */
typedef struct ms_collective_fit {
    ms_law_fit law;
    int num_systems; /* that it was fitted on */
} ms_collective_fit;

/* Rows of one system that one law of one profile prices. */
typedef struct ms_system_errors {
    const char *system, *profile, *law;
    ms_row_errors shipped_large, shipped_small; /* from 1 MiB on, and below */
    bool has_others; /* other systems tell the same law, and a fit to them converges */
    ms_row_errors large, small; /* by coefficients fitted on those */
} ms_system_errors;

/* A shipped coefficient that says it was fitted or measured, on rows that are not here or
 * are too few. */
typedef struct ms_untold {
    const char *profile, *key;
    ms_unit unit;
    const ms_coefficient *shipped;
} ms_untold;

typedef struct ms_collectives_fit {
    int num_fits, num_systems, num_untold;
    const ms_collective_fit *fits;   /* by profile and law */
    const ms_system_errors *systems; /* in the same order; none without `holdout` */
    const ms_untold *untold;         /* of all shipped profiles */
} ms_collectives_fit;

/* A coefficient is fitted on the rows whose source it names, together with those of its
 * law that name the same or others; the rest stay as they are. Intervals by bootstrap
 * with a fixed seed: of sweeps (one system, collective and group) where there are at
 * least 8, else of rows. Errors: those of ms_fit_make, and of loading profiles. */
ms_status ms_collectives_fit_make(ms_ctx *cx, const ms_collective_rows *rows,
                                  bool holdout, ms_collectives_fit *out);

/* meshsim.fit-collectives/1 */
void ms_collectives_fit_write_json(ms_jout *out, const ms_collectives_fit *fit);
void ms_collectives_fit_print(FILE *out, ms_arena *arena, const ms_collectives_fit *fit,
                              bool holdout);

#endif
