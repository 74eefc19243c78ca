/* Answers a what-if question with progress. */
#ifndef MS_CLI_OPTIONS_WHATIF_ANSWER_H
#define MS_CLI_OPTIONS_WHATIF_ANSWER_H

#include "cli/options/commands.h"
#include "sim/planning/what_if.h"

/* ms_what_if_find with the command's threads, interrupts and, on a terminal, progress. */
ms_status ms_whatif_answer(ms_ctx *cx, const ms_args *args, ms_what_if_question *question,
                           ms_what_if *out);

#endif
