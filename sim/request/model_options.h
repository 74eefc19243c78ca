/* Options of what is shown of a model. */
#ifndef MS_SIM_REQUEST_MODEL_OPTIONS_H
#define MS_SIM_REQUEST_MODEL_OPTIONS_H

#include "base/options.h"
#include "costmodel/model/model.h"

typedef struct ms_model_options {
    ms_opt_integer sequence_length;
    const char *model_type;
} ms_model_options;

/* Options that fill a ms_model_options. */
extern const ms_option ms_model_option_table[];

/* Loads the model of a name or path as the options say, with the sequence length of its
 * FLOP per token. MS_EINPUT; MS_EIO. */
ms_status ms_model_options_load(ms_ctx *cx, const char *name,
                                const ms_model_options *options, const ms_model **model,
                                long *sequence_length);

#endif
