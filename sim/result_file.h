/* What commands wrote about one step: a prediction, a simulation, a run or a trace, read
 * back to be compared. */
#ifndef MS_SIM_RESULT_FILE_H
#define MS_SIM_RESULT_FILE_H

#include "sim/memory.h"

typedef enum ms_result_kind {
    MS_RESULT_PREDICTION,
    MS_RESULT_SIMULATION,
    MS_RESULT_RUN,
    MS_RESULT_TRACE,
    MS_NUM_RESULT_KINDS
} ms_result_kind;
/* "prediction" "simulation" "run" "trace", NULL */
extern const char *const ms_result_kind_names[];

/* Where a rank's time goes, as predictions name it: they sum to the step. */
typedef enum ms_result_time {
    MS_RESULT_COMPUTE,
    MS_RESULT_EXPOSED_COMM,
    MS_RESULT_BUBBLE,
    MS_RESULT_OPTIMIZER,
    MS_RESULT_HOST,
    MS_NUM_RESULT_TIMES
} ms_result_time;
extern const char *const ms_result_time_names[]; /* "compute" "exposed_comm" ..., NULL */

/* Seconds of a step, mean over ranks (sim/node_kinds.h). */
typedef struct ms_result_node {
    const char *kind;   /* "mlp.down forward" */
    double seconds;     /* measured by a run, predicted by a simulation */
    double predicted_s; /* NaN: not predicted */
} ms_result_node;

/* NaN: not said. */
typedef struct ms_result {
    const char *path;
    ms_result_kind kind;
    const char *plan; /* in words, with model and cluster; NULL: not in the file */
    double step_s;
    double predicted_step_s; /* of runs: their own prediction */
    double times_s[MS_NUM_RESULT_TIMES];
    double peak_bytes; /* of the rank that keeps most */
    double memory[MS_NUM_MEMORY_PARTS];
    int num_nodes;
    ms_result_node *nodes;
} ms_result;

/* By its schema; a trace by its events (sim/trace.h, or of a real run). MS_EIO: cannot be
 * read. MS_EINPUT: something else, or fields that are missing or no numbers. Lives in
 * cx->arena. */
ms_status ms_result_load(ms_ctx *cx, const char *path, ms_result *out);
/* The same of a document. */
ms_status ms_result_read(ms_ctx *cx, ms_jval root, ms_result *out);

#endif
