/* The formats: found by name, by the marks of a text, and by the rules of a stack. */
#include "costmodel/port/port_priv.h"

#include <string.h>

const char *const ms_port_launchers[] = {"torchrun", "srun", "none", NULL};

static const ms_port_format *const formats[] = {&ms_port_megatron,   &ms_port_torchtitan,
                                                &ms_port_nanotron,   &ms_port_deepspeed,
                                                &ms_port_accelerate, &ms_port_maxtext};
#define NUM_FORMATS ((int)(sizeof formats / sizeof *formats))
const char *const ms_port_format_names[] = {
    "megatron", "torchtitan", "nanotron", "deepspeed", "accelerate", "maxtext", NULL};

ms_status ms_port_format_find(ms_ctx *cx, const char *name, const ms_port_format **out)
{
    const char *list = "";
    for (int i = 0; i < NUM_FORMATS; i++) {
        if (strcmp(formats[i]->name, name) == 0) {
            *out = formats[i];
            return MS_OK;
        }
        list = ms_arena_printf(cx->arena, "%s%s%s", list, i == 0 ? "" : ", ",
                               formats[i]->name);
    }
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "there is no format \"%s\"", name);
    return ms_hint(cx, "formats: %s", list);
}

static int num_marks(const ms_port_format *format, const char *text)
{
    int num = 0;
    for (int i = 0; format->marks[i] != NULL; i++)
        num += strstr(text, format->marks[i]) != NULL;
    return num;
}

const ms_port_format *ms_port_format_of_text(ms_arena *arena, const char *text,
                                             size_t length)
{
    const char *terminated = ms_arena_printf(arena, "\n%.*s", (int)length, text);
    const ms_port_format *best = NULL;
    int most = 0;
    for (int i = 0; i < NUM_FORMATS; i++) {
        int num = num_marks(formats[i], terminated);
        if (num >= most && num > 0)
            best = num > most ? formats[i] : NULL;
        most = num > most ? num : most;
    }
    return best;
}

const char *ms_port_format_name(const ms_port_format *format)
{
    return format->name;
}

static bool has_rules(const ms_stack *stack, const char *rules)
{
    size_t length = rules == NULL ? 0 : strlen(rules);
    return rules != NULL && stack->rules != NULL &&
           strncmp(stack->rules, rules, length) == 0 &&
           (stack->rules[length] == '@' || stack->rules[length] == '\0');
}

const char *ms_port_format_name_of(const ms_stack *stack)
{
    for (int i = 0; i < NUM_FORMATS; i++)
        if (has_rules(stack, formats[i]->rules))
            return formats[i]->name;
    return formats[0]->name;
}

const char *ms_port_format_stack(const ms_port_format *format, const char *name,
                                 const ms_stack *stack)
{
    return has_rules(stack, format->rules) || has_rules(stack, format->other_rules)
               ? name
               : format->stack;
}
