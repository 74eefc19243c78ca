/* PyTorch's results for small models of published architectures: tests/data/run/features
 * and tests/data/run/architectures, made by tests/oracle/torch/make_features.py and
 * make_architectures.py. */
#ifndef MS_TESTS_SUPPORT_TORCH_FEATURES_H
#define MS_TESTS_SUPPORT_TORCH_FEATURES_H

#include "tests/support/run_plan.h"
#include "tests/support/torch_oracle.h"

#define MS_FEATURE_STEPS 5

/* Models that have all features between them; they come first in ms_feature_models. */
#define MS_NUM_FEATURE_MODELS 9
/* Folders and names of the models, ended by NULL. */
extern const char *const ms_feature_models[];

typedef struct ms_feature_oracle {
    const ms_model *model;
    ms_safe_file gradients; /* gradients of the first step, by weight name */
    const double *losses;   /* losses of all steps */
} ms_feature_oracle;

ms_feature_oracle ms_feature_oracle_load(ms_ctx *cx, const char *name);

/* Ranks along each axis and further choices of a plan. */
typedef struct ms_feature_mesh {
    const char *name;
    long dp_shard, tp, cp, pp, ep, zero;
    bool recompute; /* full recomputation */
    ms_cp_method cp_method;
    const char *stack;
} ms_feature_mesh;
extern const ms_feature_mesh ms_feature_one_rank;

/* Whether the mesh and backend can run the model: Ulysses copies no heads, cp passes no
 * states of Mamba-2 on, and GPUs do not execute it. */
bool ms_feature_can(const ms_feature_oracle *o, const ms_feature_mesh *m,
                    const ms_backend *backend);

/* Trains the oracle's model for all steps. */
ms_outcome ms_feature_run(ms_ctx *cx, const ms_feature_oracle *o,
                          const ms_feature_mesh *m, ms_real_type type,
                          const ms_backend *backend);

/* Largest relative difference of the losses of all steps. */
double ms_feature_loss_difference(const ms_outcome *got, const ms_feature_oracle *o);

/* Largest relative differences: of losses, and of gradients to their tensor's largest. */
typedef struct ms_feature_difference {
    double loss, gradient;
} ms_feature_difference;

/* Trains a model on a backend and fails unless losses and gradients are within 1e-12 in
 * fp64 and 1e-5 in fp32 of the oracle's; 0 unless ms_feature_can. */
ms_feature_difference ms_feature_compare(const char *name, const ms_feature_mesh *m,
                                         ms_real_type type, const ms_backend *backend);

#endif
