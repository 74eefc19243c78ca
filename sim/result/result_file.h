/* Reads the result files of commands about training steps, to compare them: a prediction,
 * a simulation, a run, a trace, a plan, or the plans of a search. */
#ifndef MS_SIM_RESULT_RESULT_FILE_H
#define MS_SIM_RESULT_RESULT_FILE_H

#include "sim/step/prediction.h"

typedef enum ms_result_kind {
    MS_RESULT_PREDICTION,
    MS_RESULT_SIMULATION,
    MS_RESULT_RUN,
    MS_RESULT_TRACE,
    MS_RESULT_PLAN, /* a plan file, or a plan of a search */
    MS_NUM_RESULT_KINDS
} ms_result_kind;
/* Names of the kinds of result files: "prediction" "simulation" "run" "trace" "plan", NULL */
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
    int search_rank;  /* place of the plan in a search's list, from 1; 0: no search */
    const char *plan; /* names of plan, model and cluster; NULL if the file has none */
    const ms_plan *made_for; /* the plan; NULL if the file has none */
    bool has_interval;       /* a prediction whose errors are known from published runs */
    double step_s;
    /* probability that the first of the compared results is faster; NaN if unknown */
    double first_faster_probability;
    double predicted_step_s; /* step time predicted for a run; NaN for other kinds */
    double times_s[MS_NUM_RESULT_TIMES];
    double mfu_frac;
    double peak_bytes;   /* highest peak memory of any rank */
    double device_bytes; /* peak_bytes with what the framework does not count */
    double capacity_bytes;
    double fits_probability;
    double memory[MS_NUM_MEMORY_CATEGORIES];
    int num_nodes;
    ms_result_node *nodes;
} ms_result;

/* Reads a result from a parsed JSON document. Its kind follows from the field "schema"; a
 * trace is recognised by its events (of sim/simulate/trace.h, or of a real run).
 * MS_EINPUT: the kind is unknown, or a field is missing or is no number where one is
 * needed. The result lives in cx->arena. */
ms_status ms_result_read(ms_ctx *cx, ms_jval root, ms_result *out);

/* Results of several files, in their order. Starts zeroed. */
typedef struct ms_results {
    int num, capacity;
    ms_result *items;
} ms_results;

/* Appends what a parsed document of a file holds, as ms_results_add_file does. */
ms_status ms_results_add(ms_ctx *cx, ms_jval root, const char *path, ms_results *results);
/* Appends what a file holds: one result, the plan of a plan file, whose figures are NaN
 * until ms_result_predicted sets them, or all plans of a search (schema
 * meshsim.search/1). MS_EIO: the file cannot be read; otherwise as ms_result_read. */
ms_status ms_results_add_file(ms_ctx *cx, const char *path, ms_results *results);
/* Sets the figures of a plan to its prediction's. */
void ms_result_predicted(ms_result *result, const ms_prediction *prediction);

#endif
