/* Launch scripts of Megatron-LM: the command that trains, its launcher, its arguments. */
#include "base/print.h"
#include "costmodel/port/megatron_priv.h"
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

static int num_flags(const ms_shell_command *command)
{
    int num = 0;
    for (int i = 0; i < command->num; i++)
        num += is_flag(&command->words[i]);
    return num;
}

/* The index of the training program's word ("pretrain_gpt.py"); -1: the command has
 * none. */
static int program_of(const ms_shell_command *command)
{
    for (int i = 0; i < command->num; i++)
        if (ends_with(command->words[i].text, ".py"))
            return i;
    return -1;
}

/* ---- the command that trains ---- */

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
    ms_shell_command out = {0};
    for (int i = 0; i < command->num; i++) {
        const ms_shell_word *word = &command->words[i];
        bool is_text = i > 0 &&
                       (strcmp(command->words[i - 1].text, "-c") == 0 ||
                        strcmp(command->words[i - 1].text, "-lc") == 0) &&
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
static ms_shell_command training_command(ms_ctx *cx, const ms_shell_script *script)
{
    ms_shell_command best = {0};
    int most = 0;
    for (int i = 0; i < script->num; i++) {
        if (script->commands[i].is_directive)
            continue;
        ms_shell_command command = opened(cx, &script->commands[i]);
        int flags = num_flags(&command);
        if (program_of(&command) >= 0 && flags >= most && flags > 0) {
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

/* Adds words from `from` to before `to` as settings: "--key value", "--key=value", and
 * "-N 8" of launchers. */
static void add_settings(ms_port *port, const ms_shell_command *command, int from, int to,
                         const char *prefix)
{
    ms_arena *arena = port->cx->arena;
    ms_port_setting *last = NULL;
    for (int i = from; i < to; i++) {
        const ms_shell_word *word = &command->words[i];
        bool is_short = prefix[0] != '\0' && word->text[0] == '-' &&
                        word->text[1] != '\0' && strchr("Nn", word->text[1]) != NULL &&
                        word->text[2] == '\0';
        if (is_flag(word) || is_short) {
            size_t length = strcspn(word->text, "=");
            const char *value =
                word->text[length] == '=' ? word->text + length + 1 : NULL;
            ms_port_add(
                arena, port->settings,
                (ms_port_setting){.key = key_of(arena, prefix, word->text, length),
                                  .value = value,
                                  .loc = word->loc,
                                  .used = prefix[0] != '\0',
                                  .unsettled = word->unsettled});
            last = &port->settings->rows[port->settings->num - 1];
        } else if (last != NULL) {
            last->value = joined_values(arena, last->value, word->text);
            last->unsettled = last->unsettled || word->unsettled;
            last = prefix[0] != '\0' ? NULL : last;
        }
    }
}

ms_status ms_megatron_read(ms_port *port, const char *name, const char *text,
                           size_t length)
{
    ms_shell_script script;
    MS_TRY(ms_shell_read(port->cx, name, text, length, &script));
    for (int i = 0; i < script.num; i++)
        if (script.commands[i].is_directive)
            add_settings(port, &script.commands[i], 0, script.commands[i].num, LAUNCHER);
    ms_shell_command command = training_command(port->cx, &script);
    int program = program_of(&command);
    if (program >= 0)
        add_settings(port, &command, 0, program, LAUNCHER);
    add_settings(port, &command, program + 1, command.num, "");
    if (num_flags(&command) > 0)
        return MS_OK;
    ms_fail(port->cx, MS_EINPUT, (ms_loc){.file = name}, "there are no arguments");
    return ms_hint(port->cx, "such as --tensor-model-parallel-size 8, alone or in a "
                             "script that launches them");
}

/* ---- ranks ---- */

/* The first of some keys of launchers that the file has, as a number; 0: none. */
static ms_status take_first(ms_port *port, const char *const *keys, long *out)
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

ms_status ms_megatron_ranks(ms_port *port, long *ranks)
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
    MS_TRY(take_first(port, torchrun_keys, &per_node));
    if (per_node == 0)
        MS_TRY(take_first(port, all_keys, ranks));
    if (per_node == 0 && *ranks == 0)
        MS_TRY(take_first(port, per_node_keys, &per_node));
    MS_TRY(take_first(port, node_keys, &nodes));
    if (*ranks == 0 && per_node > 0)
        *ranks = per_node * (nodes > 0 ? nodes : 1);
    return MS_OK;
}

/* ---- writing ---- */

void ms_megatron_write(FILE *out, ms_arena *arena, const ms_plan *plan,
                       const ms_port_exported *exported,
                       const ms_port_export_options *options)
{
    bool alone = options->launcher == MS_PORT_NO_LAUNCHER;
    if (!alone)
        ms_print(out, "#!/bin/bash\n");
    ms_port_write_head(out, arena, "#", plan, exported);
    if (!alone) {
        ms_print(out, "# to be added: data, tokenizer, learning rate, training length, "
                      "checkpoints\n");
        if (plan->size[MS_TP] * plan->size[MS_CP] > 1 && plan->zero < 2)
            ms_print(out, "export CUDA_DEVICE_MAX_CONNECTIONS=1\n");
        ms_port_write_launcher(out, plan, options, "", "pretrain_gpt.py");
    }
    for (int i = 0; i < exported->settings.num; i++) {
        const ms_port_setting *s = &exported->settings.rows[i];
        bool harmless =
            s->value == NULL || strpbrk(s->value, "|*()[]+ ") == NULL || !s->quoted;
        if (i > 0 || !alone)
            ms_print(out, alone ? "\n" : " \\\n    ");
        ms_print(out, "%s", s->key);
        if (s->value != NULL)
            ms_print(out, harmless ? " %s" : " '%s'", s->value);
    }
    ms_print(out, "\n");
}
