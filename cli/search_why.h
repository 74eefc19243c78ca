/* The question of `search --why`, and its answer. */
#ifndef MS_CLI_SEARCH_WHY_H
#define MS_CLI_SEARCH_WHY_H

#include "sim/why.h"

/* Reads "tp=8,pp=4,recompute=none,order=pp,dp,tp": values as --fix takes them, and the order of axes as --order does (its
 * names may be separated by commas, as nothing else is without "="). Errors: MS_EINPUT. */
ms_status ms_why_question_read(ms_ctx *cx, const char *text, const ms_plan *base,
                               const ms_stack *stack, ms_why_question *out);

/* The answer as text, with the command line that shows the plan in full. */
void ms_why_show(FILE *out, ms_arena *arena, const ms_why *why);

#endif
