/* Measured collectives from a CSV file in the columns of nccl-tests: each row becomes a group on a cluster, or a reason why it cannot be priced. */
#ifndef MS_SIM_COLLECTIVE_ROWS_H
#define MS_SIM_COLLECTIVE_ROWS_H

#include "costmodel/collective_cost.h"

typedef struct ms_collective_row {
    int line;
    const char *source, *system; /* "?" where the row is malformed */
    const char *fault;           /* what is malformed; NULL: nothing */
    const char *reason;          /* why it cannot be priced; NULL: it can */
    ms_collective collective;
    const char
        *algorithm; /* that was forced, by the name of its law; NULL: NCCL's choice */
    long gpus, nodes;
    double size_bytes; /* of nccl-tests: ms_collective_law's S */
    double measured_s; /* NaN: none */
    /* only without reason */
    const ms_cluster *cluster;
    const ms_profile *profile;
    bool fitted; /* a coefficient of its law names this source */
} ms_collective_row;

typedef struct ms_collective_rows {
    int num_rows;
    ms_collective_row *rows; /* in the order of the file */
} ms_collective_rows;

/* Reads the file ("-" is standard input); everything lives in cx->arena. Columns: source, system, gpus, nodes, collective, algo, bytes, time_us; others may
 * be there. Malformed rows are rows with a fault. Errors: MS_EIO, and MS_EINPUT for a header that lacks a column, or has one twice, and for an empty file. */
ms_status ms_collective_rows_load(ms_ctx *cx, const char *path, ms_collective_rows *out);
/* The same from memory; `name` stands for the file in messages. */
ms_status ms_collective_rows_read(ms_ctx *cx, const char *name, const char *text,
                                  size_t length, ms_collective_rows *out);

/* The law of a row without reason. */
ms_collective_law ms_collective_row_law(const ms_collective_row *row);

#endif
