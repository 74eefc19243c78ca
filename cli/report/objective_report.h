/* The jobs among which an objective chose, as text and JSON. */
#ifndef MS_CLI_REPORT_OBJECTIVE_REPORT_H
#define MS_CLI_REPORT_OBJECTIVE_REPORT_H

#include "base/json.h"
#include "sim/planning/objective.h"

/* Why no job was chosen, in one sentence; NULL if one was. Lives in the arena. */
const char *ms_objective_reason(ms_arena *arena, const ms_objective_answer *answer);

void ms_objective_print(FILE *out, ms_arena *arena, const ms_objective_answer *answer);
/* Writes the member "objective" into an open object. */
void ms_objective_write_field(ms_jout *out, ms_arena *arena,
                              const ms_objective_answer *answer);

#endif
