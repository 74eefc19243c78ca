/* Reads the result files of commands about one training step (a prediction, a simulation,
 * a run or a trace), to compare them. */
#ifndef MS_SIM_RESULT_RESULT_FILE_H
#define MS_SIM_RESULT_RESULT_FILE_H

#include "sim/step/rank_memory.h"

typedef enum ms_result_kind {
    MS_RESULT_PREDICTION,
    MS_RESULT_SIMULATION,
    MS_RESULT_RUN,
    MS_RESULT_TRACE,
    MS_NUM_RESULT_KINDS
} ms_result_kind;
/* Names of the kinds of result files: "prediction" "simulation" "run" "trace", NULL */
extern const char *const ms_result_kind_names[];

/* Components of a rank's step time, as in predictions; they sum to the step time. */
typedef enum ms_result_time {
    MS_RESULT_COMPUTE,
    MS_RESULT_EXPOSED_COMM,
    MS_RESULT_BUBBLE,
    MS_RESULT_OPTIMIZER,
    MS_RESULT_HOST,
    MS_NUM_RESULT_TIMES
} ms_result_time;
extern const char *const ms_result_time_names[]; /* "compute" "exposed_comm" ..., NULL */

/* Seconds per step of one kind of node (sim/simulate/node_kinds.h), mean over ranks. */
typedef struct ms_result_node {
    const char *kind;   /* name of the kind: "mlp.down forward" */
    double seconds;     /* seconds measured by a run, or predicted by a simulation */
    double predicted_s; /* predicted seconds; NaN if not predicted */
} ms_result_node;

/* Contents of one result file; NaN for values that the file lacks. */
typedef struct ms_result {
    const char *path;
    ms_result_kind kind;
    const char *plan; /* names of plan, model and cluster; NULL if the file has none */
    const ms_plan *made_for; /* the plan; NULL if the file has none */
    bool has_interval;       /* a prediction whose errors are known from published runs */
    double step_s;
    double predicted_step_s; /* step time predicted for a run; NaN for other kinds */
    double times_s[MS_NUM_RESULT_TIMES];
    double peak_bytes; /* highest peak memory of any rank */
    double memory[MS_NUM_MEMORY_CATEGORIES];
    int num_nodes;
    ms_result_node *nodes;
} ms_result;

/* Reads a result file. Its kind follows from the field "schema"; a trace is recognised by
 * its events (of sim/simulate/trace.h, or of a real run). MS_EIO: the file cannot be
 * read; MS_EINPUT: its kind is unknown, or a field is missing or is no number where one
 * is needed. The result lives in cx->arena. */
ms_status ms_result_load(ms_ctx *cx, const char *path, ms_result *out);
/* Reads a result from a parsed JSON document; errors as for ms_result_load. */
ms_status ms_result_read(ms_ctx *cx, ms_jval root, ms_result *out);

#endif
