/* Options given as JSON, for callers that are programs. */
#ifndef MS_BASE_OPTIONS_JSON_H
#define MS_BASE_OPTIONS_JSON_H

#include "base/options.h"

/* Fills the sets from a JSON object: {"gpus": 512, "fix": ["tp=8"], "variants": true} is
 * --gpus 512 --fix tp=8 --variants, with the same checks and messages. Words of a key are
 * separated by "-" or "_". A list repeats an option that may be repeated, and is joined by
 * commas for others; false is "off" for a switch and leaves out a flag, as null does every
 * option. `name` stands for the text in messages. MS_EINPUT. */
ms_status ms_options_read_json(ms_ctx *cx, const ms_option_set *sets, int num_sets,
                               const char *name, const char *text);

#endif
