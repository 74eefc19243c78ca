/* Predictions compared with measured collectives: errors by system, and by collective and
 * number of nodes, for large and small sizes. */
#ifndef MS_SIM_VALIDATE_COLLECTIVE_VALIDATION_H
#define MS_SIM_VALIDATE_COLLECTIVE_VALIDATION_H

#include "base/json.h"
#include "sim/validate/collective_rows.h"
#include "sim/validate/row_errors.h"

/* Size from which a row counts as large: its time depends on bandwidth, not latency. */
#define MS_LARGE_COLLECTIVE_BYTES 1048576.0

/* Errors of the measured rows of one system; a detail covers only one collective and
 * number of nodes. */
typedef struct ms_collective_score {
    const char *system;
    const char *cluster;
    const char *collective; /* the collective that a detail covers; NULL for all */
    long nodes;             /* number of nodes that a detail covers; 0 for all */
    int num_fitted;         /* number of rows that coefficients were fitted to */
    ms_row_errors large, small;
} ms_collective_score;

typedef struct ms_collective_validation {
    const ms_collective_rows *rows;
    const double *predicted_s; /* (num_rows): seconds; NaN if not predicted */
    int num_priced;
    int num_systems, num_details;
    const ms_collective_score *systems, *details; /* sorted by system name */
} ms_collective_validation;

/* Predicts every row whose `reason` is NULL; scores the errors. *out is in cx->arena. */
void ms_collective_validate(ms_ctx *cx, const ms_collective_rows *rows,
                            ms_collective_validation *out);

/* Writes JSON in the schema meshsim.validation-collectives/1. Errors are fractions. */
void ms_collective_validation_write_json(ms_jout *out,
                                         const ms_collective_validation *validation);

#endif
