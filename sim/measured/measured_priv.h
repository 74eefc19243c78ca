/* Parts of reading measurements from the texts of tools. */
#ifndef MS_SIM_MEASURED_MEASURED_PRIV_H
#define MS_SIM_MEASURED_MEASURED_PRIV_H

#include "base/map.h"
#include "sim/measured/measured.h"
#include "sim/validate/name_tables.h"

/* One import under way. */
typedef struct ms_measured_reader {
    ms_ctx *cx;
    const ms_measured_options *options;
    ms_measured_table *out;
    const ms_name_tables *names; /* collectives only */
} ms_measured_reader;

/* Adds an empty row; returns its cells. */
const char **ms_measured_add_row(ms_measured_reader *r);

/* ---- collectives ---- */

/* One test of nccl-tests: a collective over ranks, which each row times at a size. */
typedef struct ms_nccl_test {
    const char *collective; /* name in ms_nccl_tests_names; NULL: not stated yet */
    const char *algorithm;  /* forced by NCCL_ALGO, in lower case; NULL: none */
    const char *gpu;        /* name of the GPUs as drivers write it; NULL: not stated */
    const char *group;      /* group of the first rank; NULL: not stated */
    long ranks;
    ms_map hosts;
    bool is_noted; /* the table says what its rows rest on */
} ms_nccl_test;

/* The place of a rank or row: a line and column, or a value of JSON, whose line is found
 * only for an error. */
typedef struct ms_nccl_place {
    int line, column;
    ms_jval value; /* zeroed: none */
} ms_nccl_place;

/* One timed size. */
typedef struct ms_nccl_row {
    double size_bytes, time_us; /* out of place, as nccl-tests counts sizes */
    double wrong;               /* values that were wrong; 0 also if not checked */
    ms_nccl_place place;
} ms_nccl_row;

/* The collective whose program a path or word names ("./build/all_reduce_perf"); NULL. */
const char *ms_nccl_collective(const char *word, size_t length);
/* Counts a rank on a host. MS_EINPUT: ranks in several groups, or on other GPUs. */
ms_status ms_nccl_add_rank(ms_measured_reader *r, ms_nccl_test *test, ms_nccl_place place,
                           const char *host, const char *group, const char *gpu);
/* Adds a row to the table, if it can be one. MS_EINPUT: ranks or collective are unknown. */
ms_status ms_nccl_add_row(ms_measured_reader *r, ms_nccl_test *test,
                          const ms_nccl_row *row);

ms_status ms_nccl_read_text(ms_measured_reader *out, const char *text, size_t length);
ms_status ms_nccl_read_json(ms_measured_reader *r, const char *text, size_t length);

/* ---- logs ---- */

/* Reads a log of the framework with a number, in the order of ms_measured_format_names
 * from "megatron-log". */
ms_status ms_training_log_read(ms_measured_reader *out, int framework, const char *text,
                               size_t length);

#endif
