/* Errors of the runs that share something: --by gpus, --by gpu_type+precision. */
#ifndef MS_SIM_VALIDATION_BY_H
#define MS_SIM_VALIDATION_BY_H

#include "sim/validation.h"

#define MS_MAX_JOINED_KEYS 4

/* What runs are grouped by: the value of a key, or of several together. */
typedef struct ms_run_keys {
    const char *text; /* as given: "gpu_type+precision" */
    int num_keys;
    int keys[MS_MAX_JOINED_KEYS];
} ms_run_keys;

/* "gpus,pp+tp": a list of keys, of which + makes one; what is named twice counts once.
 * MS_EINPUT: an unknown one, by the name of `option`. */
ms_status ms_run_keys_parse(ms_ctx *cx, const char *option, const char *text,
                            ms_run_keys **out, int *num);
/* "H100, bf16" of a run that is predicted. */
const char *ms_run_keys_value(ms_arena *arena, const ms_run_keys *keys,
                              const ms_published_run *run);

/* Errors by the values of a key, in their natural order. */
typedef struct ms_run_grouping {
    const char *key;
    int num_time, num_memory;
    const ms_source_score *time, *memory;
} ms_run_grouping;

/* Fills the groupings of a validation. */
void ms_validation_group(ms_arena *arena, const ms_run_keys *keys, int num_keys,
                         ms_validation *validation);

void ms_run_groupings_write_json(ms_jout *out, const ms_validation *validation);
void ms_run_groupings_print(FILE *out, ms_arena *arena, const ms_validation *validation);

#endif
