#include "costmodel/port/script.h"

#include "costmodel/port/shell.h"

#include <string.h>

#define LAUNCHER "launcher"

static bool is_flag(const ms_shell_word *word)
{
    return word->text[0] == '-' && word->text[1] == '-' && word->text[2] != '\0';
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), rest = strlen(end);
    return length >= rest && strcmp(text + length - rest, end) == 0;
}

static bool is_setting(const ms_script_style *style, const ms_shell_word *word)
{
    return style->is_setting != NULL && style->is_setting(word->text);
}

static int num_flags(const ms_shell_command *command, const ms_script_style *style)
{
    int num = 0;
    for (int i = 0; i < command->num; i++)
        num += is_flag(&command->words[i]) || is_setting(style, &command->words[i]);
    return num;
}

/* The index of the training program's word ("pretrain_gpt.py"); of programs that take
 * words "KEY=VALUE" the last, or that of a module ("-m maxtext.train"), since programs that
 * submit jobs stand before; -1: the command has none. */
static int program_of(const ms_shell_command *command, const ms_script_style *style)
{
    int found = -1;
    for (int i = 0; i < command->num; i++) {
        bool is_module = style->is_setting != NULL && i > 0 &&
                         strcmp(command->words[i - 1].text, "-m") == 0;
        bool is_first = found < 0 || style->is_setting != NULL;
        if (is_first && (is_module || ends_with(command->words[i].text, ".py")))
            found = i;
    }
    return found;
}

/* ---- the command that trains ---- */

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

/* Splits the text of `sh -c "..."`, whose characters were expanded before, at blanks. */
static void add_split(ms_ctx *cx, ms_shell_command *command, const ms_shell_word *word)
{
    static const char blanks[] = " \t\r\n\\\"'";
    for (const char *at = word->text + strspn(word->text, blanks); *at != '\0';) {
        size_t length = strcspn(at, blanks);
        MS_MAKE_ROOM(cx->arena, command->words, command->num, command->capacity, 16);
        ms_shell_word part = {.text = ms_arena_strndup(cx->arena, at, length),
                              .loc = word->loc};
        part.unsettled = strpbrk(part.text, "$`") != NULL;
        command->words[command->num++] = part;
        at += length;
        at += strspn(at, blanks);
    }
}

/* A command whose shells' commands ("srun sh -c '...'") are words of its own. */
static ms_shell_command opened(ms_ctx *cx, const ms_shell_command *command)
{
    static const char *const before_text[] = {"-c", "-lc", "--command", NULL};
    ms_shell_command out = {0};
    for (int i = 0; i < command->num; i++) {
        const ms_shell_word *word = &command->words[i];
        bool is_text = i > 0 && is_one_of(command->words[i - 1].text, before_text) &&
                       strchr(word->text, ' ') != NULL;
        if (is_text) {
            add_split(cx, &out, word);
            continue;
        }
        MS_MAKE_ROOM(cx->arena, out.words, out.num, out.capacity, 16);
        out.words[out.num++] = *word;
    }
    return out;
}

/* Arguments alone: the words of all commands, which are lines. */
static ms_shell_command joined(ms_ctx *cx, const ms_shell_script *script)
{
    ms_shell_command out = {0};
    for (int i = 0; i < script->num; i++) {
        for (int w = 0; w < script->commands[i].num && !script->commands[i].is_directive;
             w++) {
            MS_MAKE_ROOM(cx->arena, out.words, out.num, out.capacity, 16);
            out.words[out.num++] = script->commands[i].words[w];
        }
    }
    return out;
}

/* The command with a program and the most flags, the last of equals; without a program
 * anywhere, all words. */
static ms_shell_command training_command(ms_ctx *cx, const ms_shell_script *script,
                                         const ms_script_style *style)
{
    ms_shell_command best = {0};
    int most = 0;
    for (int i = 0; i < script->num; i++) {
        if (script->commands[i].is_directive)
            continue;
        ms_shell_command command = opened(cx, &script->commands[i]);
        int flags = num_flags(&command, style);
        if (program_of(&command, style) >= 0 && flags >= most && flags > 0) {
            best = command;
            most = flags;
        }
    }
    return most > 0 ? best : joined(cx, script);
}

/* ---- settings ---- */

static const char *joined_values(ms_arena *arena, const char *value, const char *more)
{
    return value == NULL ? more : ms_arena_printf(arena, "%s %s", value, more);
}

/* The key of a flag with the prefix of launchers, `_` as `-` there: torchrun takes both. */
static const char *key_of(ms_arena *arena, const char *prefix, const char *text,
                          size_t length)
{
    char *key = ms_arena_printf(arena, "%s%.*s", prefix, (int)length, text);
    for (char *c = key; prefix[0] != '\0' && *c != '\0'; c++)
        if (*c == '_')
            *c = '-';
    return key;
}

/* "-N 8" and "-n 8" of launchers. */
static bool is_short_flag(const ms_shell_word *word)
{
    return word->text[0] == '-' && word->text[1] != '\0' &&
           strchr("Nn", word->text[1]) != NULL && word->text[2] == '\0';
}

/* Adds a word "KEY=VALUE" or "KEY" as a setting. */
static ms_port_setting *add_setting(ms_port *port, const ms_shell_word *word,
                                    const char *prefix)
{
    size_t length = strcspn(word->text, "=");
    const char *value = word->text[length] == '=' ? word->text + length + 1 : NULL;
    ms_port_add(
        port->cx->arena, port->settings,
        (ms_port_setting){.key = key_of(port->cx->arena, prefix, word->text, length),
                          .value = value,
                          .loc = word->loc,
                          .used = prefix[0] != '\0',
                          .unsettled = word->unsettled});
    return &port->settings->rows[port->settings->num - 1];
}

/* Adds words from `from` to before `to` as settings of a launcher: "--key value",
 * "--key=value", "-N 8". */
static void add_launcher(ms_port *port, const ms_shell_command *command, int from, int to)
{
    ms_port_setting *last = NULL;
    for (int i = from; i < to; i++) {
        const ms_shell_word *word = &command->words[i];
        if (is_flag(word) || is_short_flag(word)) {
            last = add_setting(port, word, LAUNCHER);
            last = last->value == NULL ? last : NULL;
        } else if (last != NULL) {
            last->value = joined_values(port->cx->arena, last->value, word->text);
            last->unsettled = last->unsettled || word->unsettled;
            last = NULL;
        }
    }
}

/* Adds words from `from` as settings of the program: "--key value ...", "--key=value",
 * "KEY=VALUE", and names of its files. */
static void add_settings(ms_port *port, const ms_shell_command *command, int from,
                         const ms_script_style *style)
{
    ms_port_setting *last = NULL;
    for (int i = from; i < command->num; i++) {
        const ms_shell_word *word = &command->words[i];
        if (is_setting(style, word)) {
            add_setting(port, word, "");
            last = NULL;
        } else if (is_flag(word)) {
            last = add_setting(port, word, "");
        } else if (last != NULL) {
            last->value = joined_values(port->cx->arena, last->value, word->text);
            last->unsettled = last->unsettled || word->unsettled;
        } else if (style->file_key != NULL && ends_with(word->text, "ml")) {
            ms_port_add(port->cx->arena, port->settings,
                        (ms_port_setting){.key = style->file_key,
                                          .value = word->text,
                                          .loc = word->loc,
                                          .unsettled = word->unsettled});
        }
    }
}

ms_status ms_script_read(ms_port *port, const char *name, const char *text, size_t length,
                         const ms_script_style *style)
{
    ms_shell_script script;
    MS_TRY(ms_shell_read(port->cx, name, text, length, &script));
    for (int i = 0; i < script.num; i++)
        if (script.commands[i].is_directive)
            add_launcher(port, &script.commands[i], 0, script.commands[i].num);
    ms_shell_command command = training_command(port->cx, &script, style);
    int program = program_of(&command, style);
    if (program >= 0)
        add_launcher(port, &command, 0, program);
    add_settings(port, &command, program + 1, style);
    if (num_flags(&command, style) > 0 && port->settings->num > 0)
        return MS_OK;
    ms_fail(port->cx, MS_EINPUT, (ms_loc){.file = name}, "there are no arguments");
    return ms_hint(port->cx, "such as %s, alone or in a script that launches them",
                   style->example);
}

/* ---- ranks ---- */

ms_status ms_script_take_first(ms_port *port, const char *const *keys, long *out)
{
    *out = 0;
    for (; *keys != NULL; keys++) {
        const char *key = ms_arena_printf(port->cx->arena, LAUNCHER "%s", *keys);
        if (*out == 0 && ms_port_has(port, key))
            MS_TRY(ms_port_take_whole(port, key, 1,
                                      (long)ms_plan_fields[MS_CHOOSE_GPUS].high, out));
    }
    return MS_OK;
}

ms_status ms_script_ranks(ms_port *port, long *ranks)
{
    static const char *const torchrun_keys[] = {"--nproc-per-node", NULL};
    static const char *const per_node_keys[] = {"--ntasks-per-node", "--gpus-per-node",
                                                NULL};
    static const char *const node_keys[] = {"--nnodes", "--nodes", "-N", NULL};
    static const char *const all_keys[] = {"--ntasks", "-n", NULL};
    *ranks = 0;
    if (port->gpus > 0)
        return MS_OK;
    long per_node, nodes;
    MS_TRY(ms_script_take_first(port, torchrun_keys, &per_node));
    if (per_node == 0)
        MS_TRY(ms_script_take_first(port, all_keys, ranks));
    if (per_node == 0 && *ranks == 0)
        MS_TRY(ms_script_take_first(port, per_node_keys, &per_node));
    MS_TRY(ms_script_take_first(port, node_keys, &nodes));
    if (*ranks == 0 && per_node > 0)
        *ranks = per_node * (nodes > 0 ? nodes : 1);
    return MS_OK;
}
