/* Reads measured collectives from a CSV file in the columns of nccl-tests: each row
 * becomes a group on a cluster, or a reason why it cannot be predicted. */
#ifndef MS_SIM_VALIDATE_COLLECTIVE_ROWS_H
#define MS_SIM_VALIDATE_COLLECTIVE_ROWS_H

#include "costmodel/cost/collective_cost.h"
#include "sim/validate/row_errors.h"

typedef struct ms_collective_row {
    int line;
    const char *source, *system; /* texts of the measured row; "?" where malformed */
    const char *fault;           /* which cell is malformed, and how; NULL if none is */
    const char *reason;          /* why the row cannot be priced; NULL if it can */
    ms_collective collective;
    ms_algorithm algorithm; /* forced algorithm; MS_ALGORITHM_NONE: NCCL's choice */
    long gpus, nodes;
    double size_bytes; /* size in bytes as nccl-tests counts it */
    double measured_s; /* measured seconds; NaN if not stated */
    /* The members below are set only if `reason` is NULL. */
    const ms_cluster *cluster;
    const ms_profile *profile;
    bool fitted; /* a coefficient of the row's cost law was fitted to the row's source */
} ms_collective_row;

typedef struct ms_collective_rows {
    int num_rows;
    ms_collective_row *rows; /* the measured rows, in the order of the file */
    ms_skipped skipped;      /* rows that cannot be predicted */
} ms_collective_rows;

/* Reads measured collectives from `length` bytes of text; `name` stands for the file in
 * messages, and the result lives in cx->arena. Columns: source, system, gpus, nodes,
 * collective, algo, bytes, time_us; others are ignored. A malformed row has a `fault`.
 * MS_EINPUT for an empty file and for a header that lacks a column or has one twice. */
ms_status ms_collective_rows_read(ms_ctx *cx, const char *name, const char *text,
                                  size_t length, ms_collective_rows *out);

/* The cost law that predicts a measured row whose `reason` is NULL. */
ms_collective_law ms_collective_row_law(const ms_collective_row *row);
/* Algorithm of a measured row: the forced one, or the one that its cost law chooses. */
ms_algorithm ms_collective_row_algorithm(const ms_collective_row *row);
/* Predicted seconds of a measured row whose `reason` is NULL: by the forced algorithm, or
 * by the one that its cost law chooses. */
double ms_collective_row_s(const ms_collective_row *row);
/* Name of a measured row's cost law, and of the coefficients in a profile that price the
 * row: "link", "nvls" (all-reduces that may be reduced in the switch), "all_to_all",
 * "send", or "networks.NAME". */
const char *ms_collective_row_law_name(ms_arena *arena, const ms_collective_row *row);

/* Whether a number of a profile (ms_profile_figures) is a coefficient of collectives;
 * minimum numbers of ranks are not. */
bool ms_collective_figure(const ms_figure *figure);
/* Whether a number of a profile is a coefficient of the cost law named `law`. */
bool ms_collective_figure_of_law(const ms_figure *figure, const char *law);
/* Whether coefficient `c` was fitted to, or measured in, rows of `source`: the text
 * c->source contains `source` without its revision and remark. */
bool ms_coefficient_names_source(const ms_coefficient *c, const char *source);

#endif
