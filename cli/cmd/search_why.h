/* The question of `search --why`, and its answer. */
#ifndef MS_CLI_CMD_SEARCH_WHY_H
#define MS_CLI_CMD_SEARCH_WHY_H

#include "sim/search/why.h"

/* MS_EINPUT when nothing but automatic recomputation is left: a search picks among fixed
 * sets of kept tensors. */
ms_status ms_search_check_recompute(ms_ctx *cx, const ms_space *space);

/* ms_why_question_read, with the order of axes as --order takes it. Errors: MS_EINPUT. */
ms_status ms_search_why_read(ms_ctx *cx, const char *text, const ms_plan *base,
                             const ms_stack *stack, ms_why_question *out);

/* The answer as text, with the command line that shows the plan in full. */
void ms_search_why_print(FILE *out, ms_arena *arena, const ms_why *why);

#endif
