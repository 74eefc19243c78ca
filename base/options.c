#include "base/options.h"

#include <assert.h>
#include <string.h>

typedef struct parser {
    ms_ctx *cx;
    const ms_option_set *sets;
    int num_sets;
    int argc;
    char *const *argv;
    int next; /* index of the next argument */
    ms_status status;
} parser;

static bool same_text(const char *a, const char *b, size_t length)
{
    return a != NULL && strlen(a) == length && strncmp(a, b, length) == 0;
}

/* The option called `name[0..length)`; `*target` is the member that it fills. */
static const ms_option *find_option(const parser *p, const char *name, size_t length,
                                    void **target)
{
    for (int i = 0; i < p->num_sets; i++) {
        const ms_option *option = p->sets[i].options;
        for (; option->kind != MS_OPTION_END; option++) {
            if (option->kind == MS_OPTION_WORD ||
                (!same_text(option->name, name, length) &&
                 !same_text(option->alias, name, length)))
                continue;
            *target = (char *)p->sets[i].out + option->offset;
            return option;
        }
    }
    return NULL;
}

/* Whether a row stands for an option that a command line may have. */
static bool is_option(const ms_option *option)
{
    return option->kind != MS_OPTION_MISTAKE && option->kind != MS_OPTION_WORD;
}

/* Names suggested for a misspelt option. */
static const char **option_names(const parser *p, int *num_names)
{
    int capacity = 0;
    for (int i = 0; i < p->num_sets; i++)
        for (const ms_option *o = p->sets[i].options; o->kind != MS_OPTION_END; o++)
            capacity++;
    const char **names = MS_NEW_ARRAY(p->cx->arena, capacity, const char *);
    *num_names = 0;
    for (int i = 0; i < p->num_sets; i++)
        for (const ms_option *o = p->sets[i].options; o->kind != MS_OPTION_END; o++)
            if (is_option(o))
                names[(*num_names)++] = o->name;
    return names;
}

/* The nearest name, or else the only name that begins with `name` ("--global"). */
static const char *suggest_option(const parser *p, const char *name)
{
    int num_names;
    const char **names = option_names(p, &num_names);
    const char *nearest = ms_nearest(name, names, num_names);
    if (nearest != NULL || strlen(name) < 4)
        return nearest;
    for (int i = 0; i < num_names; i++) {
        if (strncmp(names[i], name, strlen(name)) != 0)
            continue;
        if (nearest != NULL)
            return NULL;
        nearest = names[i];
    }
    return nearest;
}

static void refuse_unknown(parser *p, const char *name)
{
    p->status = ms_fail(p->cx, MS_EINPUT, MS_NOWHERE, "unknown option \"%s\"", name);
    const char *nearest = suggest_option(p, name);
    if (nearest != NULL)
        ms_hint(p->cx, "did you mean %s?", nearest);
    else
        ms_hint(p->cx, "--help lists the options");
}

char *ms_choice_text(ms_arena *arena, const char *const *choices, const char *separator)
{
    char *text = ms_arena_strdup(arena, choices[0]);
    for (int i = 1; choices[i] != NULL; i++)
        text = ms_arena_printf(arena, "%s%s%s", text, separator, choices[i]);
    return text;
}

const char *ms_list_next(ms_arena *arena, const char **list)
{
    if (*list == NULL)
        return NULL;
    size_t length = strcspn(*list, ",");
    const char *item = ms_arena_strndup(arena, *list, length);
    *list = (*list)[length] == ',' ? *list + length + 1 : NULL;
    return item;
}

static void read_integer(parser *p, const ms_option *option, const char *text,
                         ms_opt_integer *out)
{
    double value;
    if (!ms_parse_quantity(text, MS_UNIT_COUNT, &value) || value < option->low ||
        value > option->high || (double)(long)value != value) {
        p->status = ms_fail(p->cx, MS_EINPUT, MS_NOWHERE,
                            "%s is \"%s\", must be a whole number from %.0f to %.0f",
                            option->name, text, option->low, option->high);
        return;
    }
    *out = (ms_opt_integer){true, (long)value};
}

bool ms_option_quantity(const char *text, ms_unit unit, const char *endings, double *out)
{
    size_t length = strlen(text), longest = 0;
    while (endings != NULL && *endings != '\0') {
        size_t each = strcspn(endings, "|");
        if (each < length && each > longest &&
            strncmp(text + length - each, endings, each) == 0)
            longest = each;
        endings += each + (endings[each] == '|');
    }
    char number[64];
    if (longest == 0 || length - longest >= sizeof number)
        return ms_parse_quantity(text, unit, out);
    memcpy(number, text, length - longest);
    number[length - longest] = '\0';
    return ms_parse_quantity(number, unit, out);
}

static void read_quantity(parser *p, const ms_option *option, const char *text,
                          ms_opt_quantity *out)
{
    double value;
    if (!ms_option_quantity(text, option->unit, option->endings, &value)) {
        bool is_number = option->unit == MS_UNIT_COUNT && option->high > 0;
        const char *wanted =
            is_number ? ms_arena_printf(p->cx->arena, "a number from %.10g to %.10g",
                                        option->low, option->high)
                      : ms_arena_printf(p->cx->arena, "a quantity such as \"%s\"",
                                        option->example != NULL
                                            ? option->example
                                            : ms_unit_example(option->unit));
        p->status = ms_fail(p->cx, MS_EINPUT, MS_NOWHERE, "%s is \"%s\", must be %s",
                            option->name, text, wanted);
        return;
    }
    bool too_low = value < option->low || (option->above_low && value == option->low);
    if (option->high > 0 && (too_low || value > option->high)) {
        char low[64], high[64];
        p->status =
            ms_fail(p->cx, MS_EINPUT, MS_NOWHERE, "%s is \"%s\", must be %s %s%s %s",
                    option->name, text, option->above_low ? "above" : "from",
                    ms_format_quantity(low, sizeof low, option->low, option->unit),
                    option->above_low ? ", at most" : " to",
                    ms_format_quantity(high, sizeof high, option->high, option->unit));
        return;
    }
    *out = (ms_opt_quantity){true, value};
}

static void read_choice(parser *p, const ms_option *option, const char *text,
                        ms_opt_choice *out)
{
    int index = -1;
    if (option->find == NULL || !option->find(text, &index))
        index = ms_choice_find(text, option->choices);
    if (index >= 0) {
        *out = (ms_opt_choice){true, index, text};
        return;
    }
    p->status =
        ms_fail(p->cx, MS_EINPUT, MS_NOWHERE, "%s is \"%s\", must be one of %s",
                option->name, text, ms_choice_text(p->cx->arena, option->choices, ", "));
    int num_choices = 0;
    while (option->choices[num_choices] != NULL)
        num_choices++;
    const char *nearest = ms_nearest(text, option->choices, num_choices);
    if (nearest != NULL)
        ms_hint(p->cx, "did you mean %s?", nearest);
    else if (option->find != NULL)
        ms_hint(p->cx, "%s: %s", option->name, option->help);
}

static void read_switch(parser *p, const ms_option *option, const char *text,
                        ms_opt_switch *out)
{
    bool is_on = strcmp(text, "on") == 0;
    if (is_on || strcmp(text, "off") == 0)
        *out = (ms_opt_switch){true, is_on};
    else
        p->status = ms_fail(p->cx, MS_EINPUT, MS_NOWHERE,
                            "%s is \"%s\", must be on or off", option->name, text);
}

static void read_text(parser *p, const ms_option *option, const char *text,
                      const char **out)
{
    if (text[0] == '\0')
        p->status = ms_fail(p->cx, MS_EINPUT, MS_NOWHERE, "%s is empty", option->name);
    else
        *out = text;
}

static void append_text(parser *p, const char *text, ms_opt_list *out)
{
    if (!out->given)
        out->texts = MS_NEW_ARRAY(p->cx->arena, p->argc, const char *);
    out->given = true;
    out->texts[out->num_texts++] = text;
}

/* Whether an option was given: its text is not NULL, other targets begin with true. */
static bool is_given(const ms_option *option, const void *target)
{
    if (option->kind == MS_OPTION_TEXT)
        return *(const char *const *)target != NULL;
    return *(const bool *)target;
}

static void read_value(parser *p, const ms_option *option, const char *text, void *target)
{
    switch (option->kind) {
    case MS_OPTION_SWITCH:
        read_switch(p, option, text, target);
        break;
    case MS_OPTION_INTEGER:
        read_integer(p, option, text, target);
        break;
    case MS_OPTION_QUANTITY:
        read_quantity(p, option, text, target);
        break;
    case MS_OPTION_TEXT:
        read_text(p, option, text, target);
        break;
    case MS_OPTION_LIST:
        append_text(p, text, target);
        break;
    case MS_OPTION_CHOICE:
        read_choice(p, option, text, target);
        break;
    case MS_OPTION_FLAG:
    case MS_OPTION_MISTAKE:
    case MS_OPTION_WORD:
    case MS_OPTION_END:
        assert(!"takes no value");
    }
}

/* An option's value: after '=', or the next argument unless an option; NULL: missing. */
static const char *take_value(parser *p, const ms_option *option, const char *equals)
{
    if (equals != NULL)
        return equals + 1;
    void *ignored;
    const char *next = p->next < p->argc ? p->argv[p->next] : NULL;
    if (next != NULL && strncmp(next, "--", 2) != 0 &&
        find_option(p, next, strlen(next), &ignored) == NULL) {
        p->next++;
        return next;
    }
    p->status = ms_fail(p->cx, MS_EINPUT, MS_NOWHERE, "%s needs a value", option->name);
    if (option->choices != NULL)
        ms_hint(p->cx, "one of %s", ms_choice_text(p->cx->arena, option->choices, ", "));
    else if (option->kind == MS_OPTION_SWITCH)
        ms_hint(p->cx, "on or off");
    else if (option->help != NULL)
        ms_hint(p->cx, "%s %s: %s", option->name, option->value, option->help);
    return NULL;
}

/* Skips the argument behind an unknown option: more likely its value than a word. */
static void skip_value(parser *p, const char *equals)
{
    if (equals == NULL && p->next < p->argc && p->argv[p->next][0] != '-')
        p->next++;
}

static void parse_option(parser *p, const char *argument)
{
    const char *equals = strncmp(argument, "--", 2) == 0 ? strchr(argument, '=') : NULL;
    size_t length = equals != NULL ? (size_t)(equals - argument) : strlen(argument);
    void *target = NULL;
    const ms_option *option = find_option(p, argument, length, &target);
    if (option == NULL) {
        refuse_unknown(p, ms_arena_strndup(p->cx->arena, argument, length));
        skip_value(p, equals);
        return;
    }
    if (option->kind == MS_OPTION_MISTAKE) {
        p->status =
            ms_fail(p->cx, MS_EINPUT, MS_NOWHERE, "unknown option \"%s\"", option->name);
        ms_hint(p->cx, "%s", option->help);
        skip_value(p, equals);
        return;
    }
    if (option->kind == MS_OPTION_FLAG && equals != NULL) {
        p->status =
            ms_fail(p->cx, MS_EINPUT, MS_NOWHERE, "%s takes no value, but has \"%s\"",
                    option->name, equals + 1);
        return;
    }
    const char *text = NULL;
    if (option->kind != MS_OPTION_FLAG) {
        text = take_value(p, option, equals);
        if (text == NULL)
            return;
    }
    if (option->kind != MS_OPTION_LIST && is_given(option, target)) {
        p->status =
            ms_fail(p->cx, MS_EINPUT, MS_NOWHERE, "%s is given twice", option->name);
    } else if (option->kind == MS_OPTION_FLAG) {
        *(bool *)target = true;
    } else {
        read_value(p, option, text, target);
    }
}

const char *ms_options_given_in(const ms_option *options, const void *values,
                                const char *except)
{
    for (const ms_option *option = options; option->kind != MS_OPTION_END; option++)
        if (is_option(option) && strcmp(option->name, except) != 0 &&
            is_given(option, (const char *)values + option->offset))
            return option->name;
    return NULL;
}

const char *ms_options_given(const ms_option_set *set, const char *except)
{
    return ms_options_given_in(set->options, set->out, except);
}

ms_status ms_options_parse(ms_ctx *cx, const ms_option_set *sets, int num_sets, int argc,
                           char *const *argv, ms_words *words)
{
    *words = (ms_words){0, MS_NEW_ARRAY(cx->arena, argc + 1, const char *)};
    parser p = {cx, sets, num_sets, argc, argv, 0, MS_OK};
    bool only_words = false;
    while (p.next < argc) {
        const char *argument = argv[p.next++];
        if (!only_words && strcmp(argument, "--") == 0)
            only_words = true;
        else if (!only_words && argument[0] == '-' && argument[1] != '\0')
            parse_option(&p, argument);
        else
            words->words[words->num_words++] = argument;
    }
    return p.status;
}
