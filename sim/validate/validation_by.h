/* Errors of runs grouped by the values of keys: --by gpus, --by gpu_type+precision. */
#ifndef MS_SIM_VALIDATE_VALIDATION_BY_H
#define MS_SIM_VALIDATE_VALIDATION_BY_H

#include "sim/validate/validation.h"

#define MS_MAX_JOINED_KEYS 4

/* A grouping of runs: by the value of one key, or of several joined keys. */
typedef struct ms_pubrun_keys {
    const char *text; /* keys as the user wrote them: "gpu_type+precision" */
    int num_keys;
    int keys[MS_MAX_JOINED_KEYS];
} ms_pubrun_keys;

/* Parses a list of keys as "gpus,pp+tp"; + joins keys, repetitions count once. MS_EINPUT
 * if a key is unknown, with a message that names `option`. */
ms_status ms_pubrun_keys_parse(ms_ctx *cx, const char *option, const char *text,
                               ms_pubrun_keys **out, int *num);
/* Values of the keys of a predicted run, as "H100, bf16". */
const char *ms_pubrun_keys_value(ms_arena *arena, const ms_pubrun_keys *keys,
                                 const ms_pubrun *run);

/* Errors of runs by the value of one key or of joined keys, values in natural order. */
typedef struct ms_pubrun_grouping {
    const char *key;
    int num_time, num_memory;
    const ms_source_score *time, *memory;
} ms_pubrun_grouping;

/* Sets the groupings that --by requests in a validation. */
void ms_validation_group(ms_arena *arena, const ms_pubrun_keys *keys, int num_keys,
                         ms_validation *validation);

void ms_pubrun_groupings_write_json(ms_jout *out, const ms_validation *validation);

#endif
