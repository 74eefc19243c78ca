/* Folder cli/options: the command line: commands, options, output files; commands are in
 * cli/cmd, tables and drawings of results in cli/report.
 *
 * The commands of the program: one row each in the table of commands.c, one file each. */
#ifndef MS_CLI_OPTIONS_COMMANDS_H
#define MS_CLI_OPTIONS_COMMANDS_H

#include "base/options.h"
#include "base/version.h"
#include "cli/options/output.h"

struct ms_args;

typedef struct ms_command {
    const char *name;
    ms_status (*run)(ms_ctx *cx, struct ms_args *args);
    const char *words; /* arguments besides options: "[NAME]"; "" for none */
    int max_words;
    const char *help;    /* one-line description */
    const char *example; /* example of a full command line */
} ms_command;

/* All commands; the last row has the name NULL. */
extern const ms_command ms_commands[];
/* Finds a command; NULL: an `unknown command` error with the nearest name is recorded. */
const ms_command *ms_command_find(ms_ctx *cx, const char *name);

typedef struct ms_common_options {
    bool json;
    bool json_lines; /* progress as lines of JSON */
    bool quiet;
    bool verbose;
    bool help;
    bool wide;
    const char *output;     /* NULL: standard output */
    ms_opt_integer threads; /* --threads; if not given, the command chooses */
} ms_common_options;

/* One call of a command. */
typedef struct ms_args {
    const ms_command *command;
    int argc; /* arguments behind the name of the command */
    char *const *argv;
    ms_common_options common;
    ms_words words;
    bool done; /* help was requested and printed */
} ms_args;

#define MS_MAX_OPTION_SETS 16
/* Parses the command line into `sets` (the command's own options, at most
 * MS_MAX_OPTION_SETS) and the common options, and sets cx->verbosity and the width of
 * tables. With --help it prints the help and sets args->done: the command then returns
 * MS_OK at once. Errors: MS_EINPUT, all recorded. */
ms_status ms_args_read(ms_ctx *cx, ms_args *args, const ms_option_set *sets,
                       int num_sets);

/* For commands that list names when they get no name: MS_EINPUT when one of their own
 * options is given, because these concern one name. */
ms_status ms_args_check_listing(ms_ctx *cx, const ms_args *args,
                                const ms_option_set *own);

/* Number of threads: --threads, or one per processor. */
int ms_args_threads(const ms_args *args);

void ms_help_print(FILE *out, ms_arena *arena, const ms_command *command,
                   const ms_option_set *sets, int num_sets);
/* Writes the help of one command as JSON of schema meshsim.help/1. */
void ms_help_write_json(ms_jout *json, const ms_command *command,
                        const ms_option_set *sets, int num_sets);
/* Prints the help of a call without arguments: examples, then the commands. */
void ms_help_print_short(FILE *out);

/* Writes a list of names, one a line, or as {"schema": "meshsim.KIND/1", KIND:
 * [names]}. */
ms_status ms_args_write_names(ms_ctx *cx, const ms_args *args, const char *kind,
                              const char *const *names, int num_names);

ms_status ms_cmd_calibrate(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_cluster(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_compare(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_explain(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_export(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_help(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_import(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_info(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_mesh(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_model(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_plot(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_predict(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_report(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_run(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_schedule(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_search(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_simulate(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_stack(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_sweep(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_validate(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_version(ms_ctx *cx, ms_args *args);
ms_status ms_cmd_whatif(ms_ctx *cx, ms_args *args);

#endif
