/* Models by the names that they have on the Hugging Face hub: shipped ones, and configs in
 * the local cache. Nothing is ever fetched. */
#ifndef MS_COSTMODEL_MODEL_MODEL_HUB_H
#define MS_COSTMODEL_MODEL_MODEL_HUB_H

#include "costmodel/model/model.h"

/* Whether a word reads like "owner/name" and no file of this path exists. */
bool ms_model_is_hub_name(const char *word);

/* Finds the model file of a hub name: if `shipped`, that of configs/names/hub.json,
 * whatever the case of letters; else the config.json of branch main in the local cache, in
 * $HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub (huggingface_hub,
 * "models--owner--name/refs/main" and "snapshots/COMMIT"). MS_EINPUT: it is in neither, or
 * the cache lacks a part. *path lives in cx->arena. */
ms_status ms_model_hub_find(ms_ctx *cx, const char *name, bool shipped,
                            const char **path);

/* Parameters by the root of a model.safetensors.index.json (formats of safetensors and
 * transformers): metadata.total_parameters, or metadata.total_size, bytes, over
 * `weight_bytes`; 0: it does not tell, or weight_bytes is 0. MS_EINPUT at line and
 * column: it is no object, or a figure is no number from 1 to 2^53. */
ms_status ms_model_index_params(ms_ctx *cx, ms_jval root, double weight_bytes,
                                double *num_params);

/* Compares a model read from `config`, a Hugging Face config at `path`, with the
 * model.safetensors.index.json beside it, if there is one, by the bytes of the config's
 * dtype. Sets model->checkpoint_note where they differ by more than 0.1 %. MS_EINPUT: an
 * index that cannot be read. Quantized checkpoints and those without dtype are not
 * compared. */
ms_status ms_model_check_index(ms_ctx *cx, const char *path, ms_jval config,
                               ms_model *model);

#endif
