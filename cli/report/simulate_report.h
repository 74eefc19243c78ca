/* Text and diagram of `meshsim simulate`. */
#ifndef MS_CLI_REPORT_SIMULATE_REPORT_H
#define MS_CLI_REPORT_SIMULATE_REPORT_H

#include "sim/request/simulate_report.h"

#include <stdio.h>

void ms_simulate_print(FILE *out, ms_arena *arena, const ms_simulate_report *report);
/* Draws the diagram, times in milliseconds. */
void ms_simulate_draw(FILE *out, ms_arena *arena, const ms_simulate_report *report);

#endif
