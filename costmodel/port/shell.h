/* Commands of a shell script as words, without running it: variables, arrays, quotes,
 * defaults (${N:-8}) and whole-number arithmetic are expanded; what only a running script
 * knows (command substitutions, unset variables, branches) is marked as unsettled. */
#ifndef MS_COSTMODEL_PORT_SHELL_H
#define MS_COSTMODEL_PORT_SHELL_H

#include "base/diag.h"

#include <stdbool.h>

typedef struct ms_shell_word {
    const char *text; /* expanded; what is unknown stands as it is written: "$HOSTS" */
    ms_loc loc;       /* where its first character is written */
    bool unsettled;   /* a part of it is unknown until the script runs */
} ms_shell_word;

typedef struct ms_shell_command {
    ms_shell_word *words; /* (num) */
    int num, capacity;
    bool is_directive; /* a line "#SBATCH ..." of the batch system */
} ms_shell_command;

typedef struct ms_shell_script {
    ms_shell_command *commands; /* (num), in the order of the text */
    int num, capacity;
} ms_shell_script;

/* Reads a script, or arguments alone. Grammar: POSIX.1-2017 chapter 2 and the arrays of
 * bash; here documents are skipped. Everything lives in cx->arena. MS_EINPUT, at line and
 * column: quotes or brackets that are never closed, a zero byte, words whose expansion
 * takes more than 16 MiB in all. */
ms_status ms_shell_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                        ms_shell_script *out);

#endif
