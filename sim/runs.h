/* Published training runs from a CSV file: each row becomes a model, a cluster, a stack
 * and a plan with its measurement, or a reason why it cannot be predicted. Whatever a row
 * leaves open is filled from the stack's habits and listed. */
#ifndef MS_SIM_RUNS_H
#define MS_SIM_RUNS_H

#include "costmodel/plan.h"
#include "costmodel/stack.h"
#include "sim/score_print.h"

typedef struct ms_published_run {
    int line;
    const char *id; /* "line 17" for a row that is malformed or without id */
    const char *source;
    /* why it cannot be predicted; NULL: it can. A remark of this row alone ends it:
     * "plan: batch (24 ...)" */
    const char *reason;
    const char *fault;        /* what is malformed; NULL: nothing */
    bool complete;            /* states architecture, layout, GPUs and a measurement */
    bool changes_mathematics; /* of the model: not comparable, reported apart */
    /* what was filled in, or not taken as it stands: "zero 1, recompute none, cp 0 taken
     * as 1"; NULL: nothing */
    const char *defaults;
    /* what ranking groups share besides the plan's numbers, as the file writes it; NULL:
     * not stated */
    const char *model_text, *gpu_type, *precision;
    const char *framework, *network; /* likewise */
    double measured_step_s;          /* NaN: not measured */
    double measured_peak_bytes;      /* NaN: not measured */
    /* what was measured is the first pipeline rank, not the worst one */
    bool memory_of_first_rank;
    /* the row does not say what is computed again, and its stack's runs do it by need */
    bool recompute_open;
    /* the row states no batch at all: its micro-batch is settled by memory */
    bool batch_open;
    /* the row states a batch and no micro-batch, and has no pipeline: likewise, up to
     * what a rank has of the batch */
    bool microbatch_open;
    bool zero_open; /* the row does not say what ZeRO shards */
    /* only without reason */
    const ms_model *model; /* equal models are one object */
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_stack *stack;
    ms_plan plan;
} ms_published_run;

typedef struct ms_published_runs {
    int num_runs;
    ms_published_run *runs; /* in the order of the file */
} ms_published_runs;

/* Reads text; `name` stands for its file in messages. Everything lives in cx->arena.
 * Malformed rows are rows with a fault. Errors: MS_EINPUT for a header that lacks a
 * column, or has one twice, and for an empty file. */
ms_status ms_runs_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                       ms_published_runs *out);

/* The runs with a reason not to be predicted. Lives in the arena. */
ms_skipped ms_runs_skipped(ms_arena *arena, const ms_published_runs *runs);

#endif
