/* Measured collectives from a CSV file in the columns of nccl-tests: each row becomes a
 * group on a cluster, or a reason why it cannot be priced. */
#ifndef MS_SIM_COLLECTIVE_ROWS_H
#define MS_SIM_COLLECTIVE_ROWS_H

#include "costmodel/collective_cost.h"
#include "sim/score_print.h"

typedef struct ms_collective_row {
    int line;
    const char *source, *system; /* "?" where the row is malformed */
    const char *fault;           /* what is malformed; NULL: nothing */
    const char *reason;          /* why it cannot be priced; NULL: it can */
    ms_collective collective;
    /* that was forced; MS_ALGORITHM_NONE: NCCL's choice */
    ms_algorithm algorithm;
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
    ms_skipped skipped;      /* those with a reason */
} ms_collective_rows;

/* Reads text; `name` stands for its file in messages. Everything lives in cx->arena.
 * Columns: source, system, gpus, nodes, collective, algo, bytes, time_us; others may be
 * there. Malformed rows are rows with a fault. Errors: MS_EINPUT for a header that lacks
 * a column, or has one twice, and for an empty file. */
ms_status ms_collective_rows_read(ms_ctx *cx, const char *name, const char *text,
                                  size_t length, ms_collective_rows *out);

/* The law of a row without reason. */
ms_collective_law ms_collective_row_law(const ms_collective_row *row);
/* Its time: by the algorithm that was forced, or by the choice of the law. */
double ms_collective_row_s(const ms_collective_row *row);
/* What holds the coefficients that its time is made of, but for those that it shares with
 * others: "link", "nvls" (all-reduces that may be made in the switch), "all_to_all",
 * "send", or "networks.NAME". */
const char *ms_collective_row_law_name(ms_arena *arena, const ms_collective_row *row);

/* Coefficients of collectives in a profile, by the tables that read it:
 * ms_profile_figures. Counts of ranks are none. */
bool ms_collective_figure(const ms_figure *figure);
/* Whether it belongs to the law of that name. */
bool ms_collective_figure_of_law(const ms_figure *figure, const char *law);
/* Whether a coefficient was fitted on a row of that source, or measured there: it names
 * the source up to its revision or remark. */
bool ms_coefficient_names_source(const ms_coefficient *c, const char *source);

#endif
