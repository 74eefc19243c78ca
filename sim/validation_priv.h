/* Shared by the validation_*.c files. */
#ifndef MS_SIM_VALIDATION_PRIV_H
#define MS_SIM_VALIDATION_PRIV_H

#include "base/table.h"
#include "sim/validation.h"

/* Fills groups and summaries from runs and scores. */
void ms_validation_rank(ms_arena *arena, ms_validation *out);
/* "source: model, 64 x H100, bf16, seq 4096, batch 256": what the layouts of a ranking
 * group share. */
const char *ms_run_workload_text(ms_arena *arena, const ms_published_run *run);
/* "-" for NULL. */
const char *ms_or_unstated(const char *text);

/* ---- JSON ---- */

/* An array of objects, whose names are under `name_key`. */
void ms_validation_write_scores(ms_jout *out, const char *key, const char *name_key,
                                const ms_source_score *scores, int num_scores);

/* ---- text ---- */

/* One line per score, below what they share. */
void ms_validation_print_scores(FILE *out, ms_arena *arena, const char *shared,
                                const ms_source_score *scores, int num_scores);

#endif
