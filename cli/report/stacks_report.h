/* Several stacks searched side by side, as text. */
#ifndef MS_CLI_REPORT_STACKS_REPORT_H
#define MS_CLI_REPORT_STACKS_REPORT_H

#include "sim/request/stacks_answer.h"

#include <stdio.h>

void ms_stacks_print(FILE *out, ms_arena *arena, const ms_stacks_report *report);

#endif
