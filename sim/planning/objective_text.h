/* The jobs among which an objective chose, as JSON, and why none was chosen. */
#ifndef MS_SIM_PLANNING_OBJECTIVE_TEXT_H
#define MS_SIM_PLANNING_OBJECTIVE_TEXT_H

#include "base/json.h"
#include "sim/planning/objective.h"

/* Why no job was chosen, in one sentence; NULL if one was. Lives in the arena. */
const char *ms_objective_reason(ms_arena *arena, const ms_objective_answer *answer);

/* Writes the member "objective" into an open object. */
void ms_objective_write_field(ms_jout *out, ms_arena *arena,
                              const ms_objective_answer *answer);

#endif
