/* Folder sim/explain: why a plan costs what it does; text is written in cli/report.
 *
 * Explanation of a plan: the tensors of its blocks, its collectives with their reasons,
 * the input numbers on which its prediction depends, and answers to common questions. */
#ifndef MS_SIM_EXPLAIN_EXPLAIN_H
#define MS_SIM_EXPLAIN_EXPLAIN_H

#include "base/figure.h"
#include "sim/step/prediction.h"

/* A block of the model (layer, embedding, head) with its layer program. */
typedef struct ms_explain_block {
    const char *name; /* "embedding", "head", "layer" or its kind: "layer.experts" */
    ms_held_block held;
    const ms_program *program; /* layer program with the plan's data-parallel ranks */
    long num_layers; /* number of such layers in the model; 1 for embedding and head */
    int first_rank;  /* first pipeline rank that holds such a block */
} ms_explain_block;

/* Why a collective exists: a tensor that changes its placement on ranks. */
typedef struct ms_explain_cause {
    const char *pass;   /* "forward", "recompute", "backward", "optimizer" */
    const char *tensor; /* name of the tensor: "mlp.norm" */
    const char *change; /* change of placement: "S(s) -> R @tp" */
    const char *why;    /* reason for the change, a sentence */
} ms_explain_cause;

typedef struct ms_explain_collective {
    const ms_traffic_entry *entry;
    int rank; /* the explained rank; if that lacks the block, the first with it */
    const char *block; /* block whose layer program sends; NULL: outside of programs */
    const char *axis;  /* communication group: ms_traffic_group_name */
    const ms_span *span;
    const char *tier;
    int num_causes;
    const ms_explain_cause *causes;
} ms_explain_collective;

/* A number of cluster, profile or stack that changes step time or peak memory when it
 * changes by 1 %, is turned off (a switch), or from 0 becomes a small value. */
typedef struct ms_explain_figure {
    const char *file; /* "profile h100-sxm", "stack generic" or "cluster hgx-h100" */
    const char *key, *help;
    const ms_figure *number; /* where it is in the struct of its file */
    int file_kind;           /* which file: explain_sensitivity.c numbers them */
    ms_unit unit;
    double value;
    ms_provenance from; /* kind of source; MS_SPEC for a cluster's numbers */
    const char *source;
    /* relative change of step time (of peak memory) per relative change of `value`; NaN:
     * `value` is 0, a switch or an integer */
    double step_effect, memory_effect;
} ms_explain_figure;

typedef struct ms_explain_answer {
    const char *key; /* identifier of the question: "tensor_parallel" */
    const char *question, *answer;
} ms_explain_answer;

#define MS_MAX_EXPLAIN_BLOCKS (2 + 2 * MS_MAX_LAYER_KINDS)
#define MS_NUM_ANSWERS        5

typedef struct ms_explanation {
    const ms_plan *plan; /* the plan, with the number of layers of each stage */
    ms_planned *planned;
    ms_prediction prediction;
    int rank; /* pipeline rank of `traffic` and `axes` */
    ms_traffic traffic;
    int num_blocks;
    ms_explain_block blocks[MS_MAX_EXPLAIN_BLOCKS];
    int num_collectives;
    const ms_explain_collective *collectives;
    int num_axes;
    ms_axis_prediction axes[MS_MAX_AXIS_PREDICTIONS];
    int num_figures; /* sorted by effect on step time, then on memory */
    const ms_explain_figure *figures;
    ms_explain_answer answers[MS_NUM_ANSWERS];
} ms_explanation;

typedef struct ms_explain_options {
    int rank;     /* pipeline rank to explain; -1: the one that ends the step */
    bool figures; /* compute the explanation's `figures`: predicts for each number */
    bool answers; /* compute the explanation's `answers`: predicts other plans */
} ms_explain_options;

/* Explains a legal plan (ms_plan_check); options->rank is below its pp. On ranks other
 * than the one that ends the step, exposed seconds of parameters and gradients are NaN.
 * `*out` points into cx->arena and the workload. Error statuses: those of ms_predict. */
ms_status ms_explain(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                     const ms_explain_options *options, ms_explanation *out);

/* The most frequent kind of layer; the embedding in a model without layers. */
const ms_explain_block *ms_explain_main_block(const ms_explanation *e);

#endif
