/* Progress of commands that take long: text on a terminal, or lines of JSON for programs. */
#ifndef MS_CLI_OPTIONS_PROGRESS_H
#define MS_CLI_OPTIONS_PROGRESS_H

#include "cli/options/commands.h"

typedef struct ms_progress {
    const char *unit; /* "searches": units of `done` and `total` */
    double done;      /* finished units, at most `total` */
    double total;
    double best_step_s; /* fastest plan so far; NAN: unknown */
    double loss;        /* loss of the last finished step; NAN: unknown */
} ms_progress;

/* Whether a command shows progress: with --json-lines, else on a terminal without --quiet. */
bool ms_progress_is_shown(const ms_args *args);

/* Writes one line of JSON (docs/json.md, "Progress") on standard error and returns true.
 * False without --json-lines: the command shows text of its own. */
bool ms_progress_write(const ms_args *args, const ms_progress *progress);

/* Clears the line that a command has shown on a terminal; nothing with --json-lines. */
void ms_progress_clear(const ms_args *args);

#endif
