#include "cli/options/plan_command.h"

#include "base/paths.h"
#include "cli/options/output.h"
#include "costmodel/plan/plan_field.h"
#include "sim/request/export_answer.h"

#include <string.h>

const char *ms_shell_quoted(ms_arena *arena, const char *text)
{
    static const char harmless[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+=:@%,";
    if (strspn(text, harmless) == strlen(text))
        return text;
    char *out = ms_arena_strdup(arena, "'");
    for (const char *rest = text; *rest != '\0';) {
        size_t length = strcspn(rest, "'");
        bool quote = rest[length] == '\'';
        out = ms_arena_printf(arena, "%s%.*s%s", out, (int)length, rest,
                              quote ? "'\\''" : "");
        rest += length + quote;
    }
    return ms_arena_printf(arena, "%s'", out);
}

static char *add_flag(ms_arena *arena, char *text, const ms_plan *plan, ms_choice choice)
{
    if (ms_plan_fields[choice].flag == NULL || !ms_plan_needs_flag(plan, choice))
        return text;
    return ms_arena_printf(
        arena, "%s%s%s %s", text, text[0] == '\0' ? "" : " ", ms_plan_fields[choice].flag,
        ms_shell_quoted(arena, ms_plan_value_text(arena, plan, choice)));
}

/* Writes flags of inputs (model, batch) first; omits values that all stacks default
 * to. */
char *ms_plan_command_text(ms_arena *arena, const ms_plan *plan)
{
    static const ms_choice inputs[] = {
        MS_CHOOSE_MODEL,           MS_CHOOSE_CLUSTER,          MS_CHOOSE_STACK,
        MS_CHOOSE_PROFILE,         MS_CHOOSE_RANKS_PER_DOMAIN, MS_CHOOSE_GPUS,
        MS_CHOOSE_SEQUENCE_LENGTH, MS_CHOOSE_GLOBAL_BATCH,     MS_CHOOSE_COMPUTE};
    char *text = ms_arena_strdup(arena, "");
    bool done[MS_NUM_CHOICES] = {false};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        text = add_flag(arena, text, plan, inputs[i]);
        done[inputs[i]] = true;
    }
    for (int i = 0; i < MS_NUM_CHOICES; i++)
        if (!done[i])
            text = add_flag(arena, text, plan, (ms_choice)i);
    return text;
}

const char *ms_plan_arguments_text(ms_arena *arena, const ms_plan_options *options,
                                   const ms_plan *plan)
{
    if (options->plan_file != NULL && strcmp(options->plan_file, "-") == 0)
        return NULL;
    const char *text =
        options->plan_file == NULL ? "" : ms_shell_quoted(arena, options->plan_file);
    for (int i = 0; i < MS_NUM_CHOICES; i++) {
        if (ms_plan_fields[i].flag != NULL && ms_plan_is_given(options, (ms_choice)i)) {
            text = ms_arena_printf(
                arena, "%s%s%s %s", text, text[0] == '\0' ? "" : " ",
                ms_plan_fields[i].flag,
                ms_shell_quoted(arena, ms_plan_value_text(arena, plan, (ms_choice)i)));
        }
    }
    return text;
}

static bool can_export(ms_ctx *cx, const ms_export_inputs *inputs, const ms_plan *plan)
{
    ms_export_answer answer;
    bool can = ms_export_ask(cx, inputs, plan, &answer) == MS_OK;
    ms_export_answer_close(&answer);
    return can;
}

const char *ms_export_command_text(ms_arena *arena, const ms_plan *plan,
                                   bool ignore_rules, const char *arguments)
{
    ms_ctx apart = {.arena = arena, .verbosity = -1};
    const ms_stack *stack;
    if (arguments == NULL || ms_stack_load(&apart, plan->stack, &stack) != MS_OK)
        return NULL;
    ms_export_inputs inputs = {.format = ms_port_format_name_of(stack),
                               .ignore_rules = ignore_rules};
    if (!can_export(&apart, &inputs, plan)) {
        inputs.lossy = true;
        if (!can_export(&apart, &inputs, plan))
            return NULL;
    }
    return ms_arena_printf(arena, "meshsim export %s --format %s%s%s", arguments,
                           inputs.format, inputs.lossy ? " --lossy" : "",
                           ignore_rules ? " --ignore-rules" : "");
}

/* The path of a configuration file; NULL if the text is a name in configs/ or NULL. */
static const char *config_path(const char *name_or_path)
{
    return name_or_path != NULL && ms_config_is_path(name_or_path) ? name_or_path : NULL;
}

ms_status ms_plan_options_check_output(ms_ctx *cx, const ms_plan_options *opts,
                                       const ms_plan *plan, const char *output)
{
    const char *inputs[] = {opts->plan_file,
                            config_path(plan->model),
                            config_path(plan->cluster),
                            config_path(plan->stack),
                            config_path(plan->profile),
                            plan->schedule_file,
                            plan->expert_loads,
                            plan->lengths};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        MS_TRY(ms_output_check_differ(cx, inputs[i], output));
    return MS_OK;
}

ms_status ms_plan_of_command(ms_ctx *cx, const ms_args *args, ms_plan_options *options,
                             ms_plan *out)
{
    MS_TRY(ms_plan_options_word(cx, options, args->words.words[0]));
    MS_TRY(ms_plan_from_options(cx, options, out));
    return ms_plan_options_check_output(cx, options, out, args->common.output);
}
