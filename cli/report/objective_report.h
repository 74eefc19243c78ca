/* The jobs among which an objective chose, as text. */
#ifndef MS_CLI_REPORT_OBJECTIVE_REPORT_H
#define MS_CLI_REPORT_OBJECTIVE_REPORT_H

#include "sim/planning/objective.h"

#include <stdio.h>

void ms_objective_print(FILE *out, ms_arena *arena, const ms_objective_answer *answer);

#endif
