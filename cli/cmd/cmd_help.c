/* meshsim help, and the help of every command from the tables of options. */
#include "base/print.h"
#include "base/table.h"
#include "base/wrap.h"
#include "cli/options/commands.h"
#include "cli/options/output.h"

#include <string.h>

#define MAX_NAME_COLUMN 30 /* columns; longer names stand on a line of their own */

static const char summary[] =
    "meshsim predicts the step time and memory of plans to train a language model on "
    "many GPUs, and finds the best";

/* An option's second name; NULL: none, or an option of an earlier set has it. */
static const char *alias_of(const ms_option_set *sets, const ms_option *option)
{
    if (option->alias == NULL)
        return NULL;
    for (;; sets++) {
        for (const ms_option *o = sets->options; o->kind != MS_OPTION_END; o++) {
            if (o == option)
                return option->alias;
            if (strcmp(o->name, option->alias) == 0)
                return NULL;
        }
    }
}

/* Name and value of an option: "--tp N", "-o, --output FILE", "--schedule gpipe|1f1b". */
static const char *option_usage(ms_arena *arena, const ms_option_set *sets,
                                const ms_option *option)
{
    const char *alias = alias_of(sets, option);
    const char *value = option->value;
    if (option->kind == MS_OPTION_CHOICE && value == NULL)
        value = ms_choice_text(arena, option->choices, "|");
    else if (option->kind == MS_OPTION_SWITCH)
        value = "on|off";
    return ms_arena_printf(arena, "%s%s%s%s%s", alias != NULL ? alias : "",
                           alias != NULL ? ", " : "", option->name,
                           value != NULL ? " " : "", value != NULL ? value : "");
}

static bool is_listed(const ms_option *option)
{
    return option->kind != MS_OPTION_MISTAKE && option->help != NULL;
}

static int name_column(ms_arena *arena, const ms_option_set *sets, int num_sets)
{
    size_t width = 0;
    for (int i = 0; i < num_sets; i++) {
        for (const ms_option *o = sets[i].options; o->kind != MS_OPTION_END; o++) {
            size_t length = strlen(option_usage(arena, sets, o));
            if (is_listed(o) && length > width && length <= MAX_NAME_COLUMN)
                width = length;
        }
    }
    return (int)width;
}

static void print_option(FILE *out, ms_arena *arena, const ms_option_set *sets,
                         const ms_option *option, int column)
{
    const char *usage = option_usage(arena, sets, option);
    if ((int)strlen(usage) > column) {
        ms_print(out, "  %s\n", usage);
        usage = "";
    }
    ms_wrap_print(out, ms_arena_printf(arena, "  %-*s  %s", column, usage, option->help),
                  (size_t)ms_table_most_width(), (size_t)column + 4);
}

void ms_help_print(FILE *out, ms_arena *arena, const ms_command *command,
                   const ms_option_set *sets, int num_sets)
{
    ms_print(out, "meshsim %s: %s\n\n", command->name, command->help);
    ms_print(out, "usage: meshsim %s %s%s[options]\n", command->name, command->words,
             command->max_words > 0 ? " " : "");
    ms_print(out, "example: %s\n", command->example);
    int column = name_column(arena, sets, num_sets);
    for (int i = 0; i < num_sets; i++) {
        ms_print(out, "\n%s\n", sets[i].title);
        for (const ms_option *o = sets[i].options; o->kind != MS_OPTION_END; o++)
            if (is_listed(o))
                print_option(out, arena, sets, o, column);
    }
}

static const char *const kind_names[] = {
    [MS_OPTION_FLAG] = "flag",       [MS_OPTION_SWITCH] = "switch",
    [MS_OPTION_INTEGER] = "integer", [MS_OPTION_QUANTITY] = "quantity",
    [MS_OPTION_TEXT] = "text",       [MS_OPTION_LIST] = "list",
    [MS_OPTION_CHOICE] = "choice",   [MS_OPTION_WORD] = "word",
};

static void write_option(ms_jout *out, const ms_option_set *sets, const ms_option *option)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "name", option->name);
    ms_jout_text_field(out, "alias", alias_of(sets, option));
    ms_jout_text_field(out, "kind", kind_names[option->kind]);
    if (option->kind == MS_OPTION_INTEGER) {
        ms_jout_number_field(out, "low", option->low);
        ms_jout_number_field(out, "high", option->high);
    }
    if (option->kind == MS_OPTION_CHOICE) {
        ms_jout_begin_array_field(out, "choices");
        for (int i = 0; option->choices[i] != NULL; i++)
            ms_jout_text(out, option->choices[i]);
        ms_jout_end_array(out);
    }
    ms_jout_text_field(out, "help", option->help);
    ms_jout_end_object(out);
}

static void write_command_fields(ms_jout *out, const ms_command *command)
{
    ms_jout_text_field(out, "name", command->name);
    ms_jout_text_field(out, "arguments", command->words);
    ms_jout_text_field(out, "help", command->help);
    ms_jout_text_field(out, "example", command->example);
}

void ms_help_write_json(ms_jout *json, const ms_command *command,
                        const ms_option_set *sets, int num_sets)
{
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "schema", "meshsim.help/1");
    write_command_fields(json, command);
    ms_jout_begin_array_field(json, "options");
    for (int i = 0; i < num_sets; i++)
        for (const ms_option *o = sets[i].options; o->kind != MS_OPTION_END; o++)
            if (is_listed(o))
                write_option(json, sets, o);
    ms_jout_end_array(json);
    ms_jout_end_object(json);
}

static void print_commands(FILE *out)
{
    fputs("commands\n", out);
    for (const ms_command *command = ms_commands; command->name != NULL; command++)
        ms_print(out, "  %-9s %s\n", command->name, command->help);
}

void ms_help_print_short(FILE *out)
{
    ms_print(out, "%s\n\nexamples\n", summary);
    for (int i = 0; i < 3 && ms_commands[i].name != NULL; i++)
        ms_print(out, "  %s\n", ms_commands[i].example);
    fputc('\n', out);
    print_commands(out);
    fputs("\n\"meshsim help COMMAND\" lists the options of a command\n", out);
}

static void print_all(FILE *out)
{
    ms_print(out, "%s\n\nusage: meshsim COMMAND [options]\n\n", summary);
    print_commands(out);
    fputs("\nexamples\n", out);
    for (const ms_command *command = ms_commands; command->name != NULL; command++)
        ms_print(out, "  %s\n", command->example);
    fputs(
        "\n\"meshsim help COMMAND\" lists the options of a command\n"
        "exit codes: 0 done, 1 I/O or run-time failure, 2 wrong usage or bad input,\n"
        "            3 nothing fits or keeps the limits, 4 a check failed, 130 interrupted\n",
        out);
}

static void write_all(ms_jout *json)
{
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "schema", "meshsim.help/1");
    ms_jout_begin_array_field(json, "commands");
    for (const ms_command *command = ms_commands; command->name != NULL; command++) {
        ms_jout_begin_object(json);
        write_command_fields(json, command);
        ms_jout_end_object(json);
    }
    ms_jout_end_array(json);
    ms_jout_end_object(json);
}

/* Runs `meshsim COMMAND --help` with --json and -o of this `meshsim help COMMAND`. */
static ms_status help_command(ms_ctx *cx, const ms_args *args)
{
    const ms_command *command = ms_command_find(cx, args->words.words[0]);
    if (command == NULL)
        return MS_EINPUT;
    char **argv = MS_NEW_ARRAY(cx->arena, 4, char *);
    int argc = 0;
    argv[argc++] = ms_arena_strdup(cx->arena, "--help");
    if (args->common.json)
        argv[argc++] = ms_arena_strdup(cx->arena, "--json");
    if (args->common.output != NULL)
        argv[argc++] = ms_arena_printf(cx->arena, "--output=%s", args->common.output);
    ms_args inner = {.command = command, .argc = argc, .argv = argv};
    return command->run(cx, &inner);
}

ms_status ms_cmd_help(ms_ctx *cx, ms_args *args)
{
    MS_TRY(ms_args_read(cx, args, NULL, 0));
    if (args->done)
        return MS_OK;
    if (args->words.num_words > 0)
        return help_command(cx, args);
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        write_all(&out.json);
    else
        print_all(out.file);
    return ms_output_close(cx, &out, MS_OK);
}
