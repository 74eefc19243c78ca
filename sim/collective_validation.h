/* Predictions beside measured collectives: errors per system, and per collective and
 * number of nodes, for large and small sizes. */
#ifndef MS_SIM_COLLECTIVE_VALIDATION_H
#define MS_SIM_COLLECTIVE_VALIDATION_H

#include "base/json.h"
#include "sim/collective_rows.h"
#include "sim/score_print.h"

/* From this size on a row is large: bandwidth counts, not latency. */
#define MS_LARGE_COLLECTIVE_BYTES 1048576.0

/* Rows of one system; of a detail, also of one collective and number of nodes. */
typedef struct ms_collective_score {
    const char *system;
    const char *cluster;
    const char *collective; /* NULL: all */
    long nodes;             /* 0: all */
    int num_fitted;         /* of its rows */
    ms_row_errors large, small;
} ms_collective_score;

typedef struct ms_collective_validation {
    const ms_collective_rows *rows;
    const double *predicted_s; /* (num_rows); NaN: not priced */
    int num_priced;
    int num_systems, num_details;
    const ms_collective_score *systems, *details; /* by name */
} ms_collective_validation;

/* Prices every row without reason. Lives in cx->arena. */
void ms_collective_validate(ms_ctx *cx, const ms_collective_rows *rows,
                            ms_collective_validation *out);

/* meshsim.validation-collectives/1. Errors are fractions. */
void ms_collective_validation_write_json(ms_jout *out,
                                         const ms_collective_validation *validation);
/* Tables for people; with `rows` one line per priced row before them. */
void ms_collective_validation_print(FILE *out, ms_arena *arena,
                                    const ms_collective_validation *validation,
                                    bool rows);

#endif
