/* Features of models: which of them each kind of backend executes. The runner refuses a
 * model with any other feature, by name, so that nothing of a model is left out. */
#ifndef MS_EXEC_RUNNER_MODEL_FEATURES_H
#define MS_EXEC_RUNNER_MODEL_FEATURES_H

#include "costmodel/model/model.h"
#include "exec/core/backend.h"

typedef enum ms_feature_price {
    MS_FEATURE_PRICED,     /* operations, bytes and parameters of its own */
    MS_FEATURE_FUSED,      /* inside an operation that costs the same without it */
    MS_FEATURE_NOT_PRICED, /* predictions leave it out */
    MS_NUM_FEATURE_PRICES
} ms_feature_price;
extern const char *const ms_feature_price_words[];

typedef struct ms_model_feature {
    const char *name;
    bool (*has)(const ms_model *model); /* whether a model has the feature */
    bool on_cpu, on_gpu;                /* whether backends execute it */
    ms_feature_price price;
} ms_model_feature;

/* All features that a model can state, ended by a row without a name. docs/models.md
 * shows them. */
extern const ms_model_feature ms_model_features[];

/* MS_EINPUT, with the names of all features of the model that the backend does not
 * execute; a backend without values executes nothing and refuses nothing. */
ms_status ms_model_check_features(ms_ctx *cx, const ms_model *model,
                                  const ms_backend *backend);

#endif
