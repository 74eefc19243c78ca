/* Explanation of a plan: the tensors of its blocks, the collectives of its step with their
 * reasons, the figures that its prediction depends on, and answers to common questions.
 * This room computes them from the plan's programs, traffic and predictions; text output
 * is in cli/report, the prediction itself in sim/step. */
#ifndef MS_SIM_EXPLAIN_EXPLAIN_H
#define MS_SIM_EXPLAIN_EXPLAIN_H

#include "base/figure.h"
#include "sim/step/prediction.h"

/* A block of the model (layer, embedding, head) with its layer program. */
typedef struct ms_explain_block {
    const char *name; /* "embedding", "head", "layer" or a kind of it: "layer.experts" */
    ms_held_block held;
    const ms_program *program; /* layer program for all data-parallel ranks of the plan */
    long num_layers;           /* equal layers in the model; 1 for embedding and head */
    int first_rank;            /* first pipeline rank that holds such a layer */
} ms_explain_block;

/* One placement change that a collective carries out. */
typedef struct ms_explain_cause {
    const char *pass;   /* pass: "forward" "recompute" "backward" */
    const char *tensor; /* name of the tensor whose placement changes: "mlp.norm" */
    const char *change; /* placement change: "S(s) -> R @tp" */
    const char *why;    /* reason for the change, a sentence */
} ms_explain_cause;

typedef struct ms_explain_collective {
    const ms_traffic_entry *entry;
    int rank;         /* pipeline rank: the explained one, or the first with the block */
    const char *part; /* block's name; NULL: traffic of the whole rank */
    const char *axis; /* mesh axis, by ms_traffic_group_name */
    const ms_span *span;
    const char *tier;
    int num_causes;
    const ms_explain_cause *causes;
} ms_explain_collective;

/* A coefficient or figure on which the step time or memory depends, found by predicting
 * with a value changed by 1 % (a switch or a zero: set to the other end). */
typedef struct ms_explain_figure {
    const char *file; /* "profile h100-sxm" "stack generic" "cluster hgx-h100" */
    const char *key, *help;
    ms_unit unit;
    double value;
    ms_provenance from; /* source of the value; MS_SPEC for a cluster's */
    const char *source;
    /* relative changes of step time and peak memory for a relative change of 1; NaN: the
     * figure cannot be scaled */
    double step_effect, memory_effect;
} ms_explain_figure;

typedef struct ms_explain_answer {
    const char *key; /* identifier of the question: "tensor-parallel" */
    const char *question, *answer;
} ms_explain_answer;

#define MS_MAX_EXPLAIN_BLOCKS (2 + 2 * MS_MAX_LAYER_KINDS)
#define MS_NUM_ANSWERS        5

typedef struct ms_explanation {
    const ms_plan *plan; /* the plan, with the layers of each stage */
    ms_planned *planned;
    ms_prediction prediction;
    int rank; /* pipeline rank whose `traffic` and `axes` these are */
    ms_traffic traffic;
    int num_parts;
    ms_explain_block parts[MS_MAX_EXPLAIN_BLOCKS];
    int num_collectives;
    const ms_explain_collective *collectives;
    int num_axes;
    ms_axis_prediction axes[MS_MAX_AXIS_PREDICTIONS];
    int num_figures; /* sorted by effect on the step, then on memory */
    const ms_explain_figure *figures;
    ms_explain_answer answers[MS_NUM_ANSWERS];
} ms_explanation;

typedef struct ms_explain_options {
    int rank;     /* explained pipeline rank; -1: the one that ends the step */
    bool figures; /* list figures, which takes a prediction for each */
    bool answers; /* answer questions, which predicts other plans */
} ms_explain_options;

/* Explains a legal plan (ms_plan_check); options->rank is below pp. The exposed time of
 * parameters and gradients is NaN except for the rank that ends the step. The result lives
 * in cx->arena and points into the workload. Errors: those of ms_predict. */
ms_status ms_explain(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                     const ms_explain_options *options, ms_explanation *out);

/* The most frequent kind of layer; the embedding for a model without layers. */
const ms_explain_block *ms_explain_main_block(const ms_explanation *e);

#endif
