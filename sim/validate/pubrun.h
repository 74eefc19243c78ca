/* Published training runs read from a CSV file: each row becomes a model, a cluster, a
 * stack and a plan with its measurement, or a reason why it cannot be predicted. Values
 * that a row does not state are filled in by the conventions of its stack and listed in
 * `defaults`. */
#ifndef MS_SIM_VALIDATE_PUBRUN_H
#define MS_SIM_VALIDATE_PUBRUN_H

#include "costmodel/plan/plan.h"
#include "costmodel/profile/stack.h"
#include "sim/step/rank_memory.h"
#include "sim/validate/row_errors.h"

typedef struct ms_pubrun {
    int line;
    const char *file; /* name of the table in messages */
    const char *id;   /* the table row's id; "line 17" if malformed or without id */
    const char *source;
    /* Why the table row cannot be predicted; NULL if it can be. The reason may end in a
     * remark that holds for this row alone: "plan: batch (24 ...)". */
    const char *reason;
    const char *fault; /* which cell is malformed, and how; NULL if none is */
    /* row states architecture, layout, GPUs and, unless unfinished, a measurement */
    bool complete;
    /* The run crashed or ran out of memory: its row needs no measurement, and one that it
     * states is ignored. */
    bool unfinished;
    bool out_of_memory; /* unfinished, and the row says that memory was the reason */
    /* The run changes the model's mathematics: it is not comparable and is reported
     * apart. */
    bool changes_mathematics;
    /* Values that were filled in or replaced: "zero 1, recompute none, cp 0 taken as 1";
     * NULL if none. */
    const char *defaults;
    /* Cells of the table row, equal for all runs whose layouts are ranked together; NULL
     * if not stated. */
    const char *model_text, *gpu_type, *precision;
    const char *framework, *network; /* cells of the table row; NULL if not stated */
    double measured_step_s;          /* step time; NaN if not measured */
    double measured_peak_bytes;      /* peak memory; NaN if not measured */
    ms_memory_kind memory_kind;      /* kind of measured_peak_bytes */
    bool skips_memory; /* the memory figure cannot be priced; `defaults` says why */
    ms_memory_rank memory_rank; /* the pipeline rank that it was measured on */
    /* The table row states no recomputation, and runs of its stack recompute only what
     * memory demands. */
    bool recompute_open;
    /* the table row states no batch at all: memory determines its micro-batch */
    bool batch_open;
    /* The table row states a batch but no micro-batch, and has no pipeline: memory
     * determines its micro-batch, at most a rank's share of the batch. */
    bool microbatch_open;
    bool zero_open; /* the table row does not state a ZeRO stage */
    /* The members below are set only if `reason` is NULL. */
    const ms_model *model; /* equal models are one object */
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_stack *stack;
    bool has_rules; /* the stack's framework has rules (ms_pubruns_check_rules) */
    const char *broken_rule; /* first of them that the layout breaks; NULL: none */
    ms_plan plan;
} ms_pubrun;

typedef struct ms_pubruns {
    int num_runs;
    ms_pubrun *runs; /* the published runs, in the order of the file */
} ms_pubruns;

/* Reads published runs from `length` bytes of text in memory; `name` stands for the file
 * in messages, and the result lives in cx->arena. A malformed row becomes a run with a
 * `fault`. A column that a header lacks is read as empty cells, tp and pp as 1, and named
 * in a note with what is taken for it. MS_EINPUT for an empty file, and for a header that
 * has a column twice, misspells one, or lacks model, gpu_type, gpus, seq or every
 * measurement. */
ms_status ms_pubruns_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                          ms_pubruns *out);

/* Files that stand in for those of every row, as names or paths; NULL: each row's own. */
typedef struct ms_pubrun_files {
    const char *stack, *profile;
} ms_pubrun_files;

/* ms_pubruns_read with files for all rows; also the errors of ms_stack_load and, for each
 * run's cluster, of ms_profile_load_for. */
ms_status ms_pubruns_read_by(ms_ctx *cx, const char *name, const char *text,
                             size_t length, const ms_pubrun_files *files,
                             ms_pubruns *out);

/* Appends the runs of another file. Those whose id a run of `to` has become malformed. */
void ms_pubruns_append(ms_arena *arena, ms_pubruns *to, const ms_pubruns *from);

/* The runs with a reason not to be predicted. Lives in the arena. */
ms_skipped ms_pubruns_skipped(ms_arena *arena, const ms_pubruns *runs);

#endif
