/* A plan explained: every tensor of its parts, every collective of its step and why it is
 * there, every figure that the numbers come from, and answers to what people ask about a
 * layout. All of it from the plan's own graph, traffic and predictions. */
#ifndef MS_SIM_EXPLAIN_EXPLAIN_H
#define MS_SIM_EXPLAIN_EXPLAIN_H

#include "base/figure.h"
#include "sim/step/prediction.h"

/* A part of the model with the program that its costs come from. */
typedef struct ms_explain_block {
    /* "embedding", "layer" ("layer.dense", "layer.experts", "layer.mamba", ... of several
     * kinds), "head" */
    const char *name;
    ms_held_block held;
    const ms_program *program; /* for all data-parallel ranks of the plan */
    /* of this kind and recomputation in the model; 1 for embedding and head */
    long num_layers;
    int first_rank; /* of the pipeline that holds one */
} ms_explain_block;

/* One placement change that a collective carries out. */
typedef struct ms_explain_cause {
    const char *pass;   /* "forward" "recompute" "backward" */
    const char *tensor; /* whose placement changes: "mlp.norm" */
    const char *change; /* "S(s) -> R @tp" */
    const char *why;    /* a sentence */
} ms_explain_cause;

typedef struct ms_explain_collective {
    const ms_traffic_entry *entry;
    /* of the pipeline: the one explained, or the first that holds a part which that
     * one does not */
    int rank;
    const char *part; /* name; NULL: of the rank as a whole */
    const char *axis; /* ms_traffic_group_name */
    const ms_span *span;
    const char *tier;
    int num_causes;
    const ms_explain_cause *causes;
} ms_explain_collective;

/* A coefficient or figure that the prediction depends on, found by changing it: raised by
 * 1 % (a switch or a zero: set to the other end), does step or memory move? */
typedef struct ms_explain_figure {
    const char *file; /* "profile h100-sxm" "stack generic" "cluster hgx-h100" */
    const char *key, *help;
    ms_unit unit;
    double value;
    ms_provenance from; /* figures of a cluster: MS_SPEC */
    const char *source;
    /* relative change of the step for a relative change of 1; NaN: cannot be scaled */
    double step_effect;
    double memory_effect; /* the same of the peak memory */
} ms_explain_figure;

typedef struct ms_explain_answer {
    const char *key; /* "tensor-parallel" */
    const char *question, *answer;
} ms_explain_answer;

#define MS_MAX_EXPLAIN_BLOCKS (2 + 2 * MS_MAX_LAYER_KINDS)
#define MS_NUM_ANSWERS        5

typedef struct ms_explanation {
    const ms_plan *plan; /* with the layers of each stage */
    ms_planned *planned;
    ms_prediction prediction;
    int rank; /* of the pipeline, whose traffic it is */
    ms_traffic traffic;
    int num_parts;
    ms_explain_block parts[MS_MAX_EXPLAIN_BLOCKS];
    int num_collectives;
    const ms_explain_collective *collectives;
    int num_axes;
    ms_axis_prediction axes[MS_MAX_AXIS_PREDICTIONS];
    int num_figures; /* by their effect on the step, then on memory */
    const ms_explain_figure *figures;
    ms_explain_answer answers[MS_NUM_ANSWERS];
} ms_explanation;

/* What takes long is done only when asked for. */
typedef struct ms_explain_options {
    int rank;     /* of the pipeline; -1: the one that ends the step, as in predictions */
    bool figures; /* one prediction for each */
    bool answers; /* predicts other plans */
} ms_explain_options;

/* The plan must be legal (ms_plan_check) and options->rank below pp. Of parameters and
 * gradients the exposed time is known for the rank that ends the step only; of others it
 * is NaN. Lives in cx->arena, and points into the workload. Errors: those of
 * ms_predict. */
ms_status ms_explain(ms_ctx *cx, ms_workload *workload, const ms_plan *plan,
                     const ms_explain_options *options, ms_explanation *out);

/* The layer part that most layers are; the embedding's of a model without. */
const ms_explain_block *ms_explain_main_block(const ms_explanation *e);

#endif
