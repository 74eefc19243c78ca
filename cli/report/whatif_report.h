/* A what-if study as text, JSON (meshsim.whatif/1) and CSV. */
#ifndef MS_CLI_REPORT_WHATIF_REPORT_H
#define MS_CLI_REPORT_WHATIF_REPORT_H

#include "base/json.h"
#include "sim/planning/what_if.h"

/* The answer in a sentence, then tables; `all`: also numbers of little effect. */
void ms_whatif_report_print(FILE *out, ms_arena *arena, const ms_what_if *w, bool all);
void ms_whatif_report_write_json(ms_jout *out, const ms_what_if *w);
/* One row a side of a number, and a named hardware, whose first change is from and to. */
void ms_whatif_report_write_csv(FILE *out, ms_arena *arena, const ms_what_if *w);

#endif
