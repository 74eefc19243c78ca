/* Internals of the validation_*.c files. */
#ifndef MS_SIM_VALIDATE_VALIDATION_PRIV_H
#define MS_SIM_VALIDATE_VALIDATION_PRIV_H

#include "sim/validate/validation.h"

/* Sets ranking groups and their summaries from runs and scores. */
void ms_validation_rank(ms_arena *arena, ms_validation *out);
/* Text of the workload that the layouts of a ranking group share: "source: model, 64 x
 * H100, bf16, seq 4096, batch 256". */
const char *ms_pubrun_workload_text(ms_arena *arena, const ms_pubrun *run);
/* Returns the text; "-" for NULL. */
const char *ms_or_unstated(const char *text);

/* Writes an array of scores under `key`, each with its name under `name_key`. */
void ms_validation_write_scores(ms_jout *out, const char *key, const char *name_key,
                                const ms_source_score *scores, int num_scores);

#endif
