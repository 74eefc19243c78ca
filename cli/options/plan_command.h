/* Plans of the command line: read from it, and written back as flags. */
#ifndef MS_CLI_OPTIONS_PLAN_COMMAND_H
#define MS_CLI_OPTIONS_PLAN_COMMAND_H

#include "cli/options/commands.h"
#include "sim/request/opened_plan.h"

/* Quotes `text` for a shell if it has characters that a shell interprets. */
const char *ms_shell_quoted(ms_arena *arena, const char *text);

/* Writes a plan as flags: "--model 70b --gpus 512 --pp 4 --dp-shard 16 --tp 8 --zero 1".
 * ms_plan_from_options makes the same plan of them, except for layers_per_stage, which
 * must be the default split, data types of states, which have no flags, and
 * reshard_after_forward below zero 3, where it has no effect. */
char *ms_plan_command_text(ms_arena *arena, const ms_plan *plan);

/* The arguments that made a plan: the file, if any, and every given option of plans. NULL:
 * the plan came from standard input. */
const char *ms_plan_arguments_text(ms_arena *arena, const ms_plan_options *options,
                                   const ms_plan *plan);

/* The command that exports the plan of `arguments` in the words of its stack, with --lossy
 * if need be. NULL: the framework refuses the plan, or `arguments` is NULL. */
const char *ms_export_command_text(ms_arena *arena, const ms_plan *plan,
                                   bool ignore_rules, const char *arguments);

/* Reads the plan of a command that takes one plan file as its argument. MS_EINPUT also
 * when the output would replace a file that the plan is read from. */
ms_status ms_plan_of_command(ms_ctx *cx, const ms_args *args, ms_plan_options *options,
                             ms_plan *out);

/* MS_EINPUT when `output` (NULL: standard output) is a file that the plan is read from.
 * */
ms_status ms_plan_options_check_output(ms_ctx *cx, const ms_plan_options *opts,
                                       const ms_plan *plan, const char *output);

#endif
