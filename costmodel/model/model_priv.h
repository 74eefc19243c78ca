/* Functions, limits and words shared by the readers and writers of model files. */
#ifndef MS_COSTMODEL_MODEL_MODEL_PRIV_H
#define MS_COSTMODEL_MODEL_MODEL_PRIV_H

#include "costmodel/model/model.h"

#define MS_MAX_MODEL_LAYERS    10000
#define MS_NEXTN_LOSS_WEIGHT   0.1      /* Megatron-Core, --mtp-loss-scaling-factor */
#define MS_MAX_MODEL_SIZE      16777216 /* limit of hidden size, heads and vocabulary */
#define MS_MODEL_CONFIG_SCHEMA "meshsim.model-config/1"

/* Allocates kind_of_layer for all layers and removes the model's kinds of layers. */
void ms_model_clear_layers(ms_ctx *cx, ms_model *model);

/* Sets the kind of a layer; false if the model then has more than MS_MAX_LAYER_KINDS. */
bool ms_model_set_layer(ms_model *model, long layer_idx, ms_layer_kind kind);

/* Sets the kinds of layers by Nemotron-H's "hybrid_override_pattern": M Mamba-2, *
 * attention, - MLP, E experts. MS_EINPUT: other letters, or not one per layer. */
ms_status ms_model_read_hybrid(ms_ctx *cx, ms_jval pattern, ms_model *model);
/* Sets them by a text of these letters; `pattern` is the value that messages locate. */
ms_status ms_model_set_hybrid(ms_ctx *cx, ms_jval pattern, const char *text,
                              ms_model *model);
/* The "hybrid_override_pattern" of a hybrid model (ms_model_is_hybrid), in the arena. */
const char *ms_model_hybrid_text(ms_arena *arena, const ms_model *model);
/* Checks sizes of Mamba-2 mixers; refuses hybrid layers with parallel_block. */
ms_status ms_model_check_hybrid(ms_ctx *cx, const ms_model *model, ms_loc loc);

/* Checks features that change values: rotary positions and groups of experts. */
ms_status ms_model_check_values(ms_ctx *cx, const ms_model *model, ms_loc loc);
/* Adds a feature to model->not_executed, once; the text must live as long as the model. */
void ms_model_add_not_executed(ms_ctx *cx, ms_model *model, const char *name);

/* Reads a model file of format meshsim.model-config/1. */
ms_status ms_model_read_own(ms_ctx *cx, ms_jval root, ms_model *out);

/* The keys of an object for a message: "a, b, c", cut after 32 of them. */
const char *ms_model_keys_text(ms_ctx *cx, ms_jval object);

/* Words of model enums in files and in printed output, NULL-ended. */
extern const char *const ms_norm_words[];
extern const char *const ms_activation_words[];
extern const char *const ms_position_words[];
extern const char *const ms_router_words[];

#endif
