/* Folder sim/measured: what tools and frameworks print about runs, as rows of the tables
 * that validate and calibrate read; no predictions.
 *
 * Measured collectives from nccl-tests, and step times from the logs of frameworks. */
#ifndef MS_SIM_MEASURED_MEASURED_H
#define MS_SIM_MEASURED_MEASURED_H

#include "base/texts.h"
#include "costmodel/plan/plan.h"

/* Names of the formats: "nccl-tests" (the text, or the JSON of its option -J),
 * "megatron-log", "torchtitan-log", "nanotron-log", "deepspeed-log", NULL. */
extern const char *const ms_measured_format_names[];
/* Whether a format (index in ms_measured_format_names) is the log of a training, which
 * needs the plan that ran. */
bool ms_measured_is_log(int format);

/* Collectives that nccl-tests has programs for: "all_reduce" ..., NULL. */
extern const char *const ms_nccl_tests_names[];

typedef struct ms_measured_options {
    const char *name;   /* the file in messages, and in the rows' column `source` */
    const char *system; /* nccl-tests: name or path of the cluster that was measured */
    const ms_cluster *cluster; /* nccl-tests: this cluster */
    const char
        *collective;     /* nccl-tests: for texts that do not state it; NULL: they do */
    const ms_plan *plan; /* logs: the plan that ran, with its model and cluster */
} ms_measured_options;

/* A table of measurements. */
typedef struct ms_measured_table {
    const char *const *columns; /* (num_columns) names */
    const char **cells;         /* (num_rows, num_columns); NULL: empty */
    int num_columns, num_rows, capacity;
    ms_texts found;   /* facts of the text that the rows rest on */
    ms_texts assumed; /* facts that it lacks */
    ms_texts ignored; /* lines that became no rows, and why */
} ms_measured_table;

/* Reads `length` bytes of a format. Time and memory are linear in the length. Everything
 * lives in cx->arena. MS_EINPUT at line and column: syntax, a text without measurements,
 * GPUs or a batch other than those of the cluster or plan. */
ms_status ms_measured_read(ms_ctx *cx, int format, const char *text, size_t length,
                           const ms_measured_options *options, ms_measured_table *out);
/* Writes a table as a CSV file. */
void ms_measured_write_csv(FILE *out, const ms_measured_table *table);

#endif
