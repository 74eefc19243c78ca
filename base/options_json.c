#include "base/options_json.h"

#include "base/json.h"

#include <string.h>

typedef struct reader {
    ms_ctx *cx;
    const ms_option_set *sets;
    int num_sets;
    int argc, capacity;
    char **argv;
} reader;

static void add(reader *r, char *argument)
{
    MS_MAKE_ROOM(r->cx->arena, r->argv, r->argc, r->capacity, 16);
    r->argv[r->argc++] = argument;
}

/* The kind of an option; MS_OPTION_END: no table has it. */
static ms_option_kind kind_of(const reader *r, const char *name)
{
    for (int i = 0; i < r->num_sets; i++)
        for (const ms_option *o = r->sets[i].options; o->kind != MS_OPTION_END; o++)
            if (o->kind != MS_OPTION_WORD && strcmp(o->name, name) == 0)
                return o->kind;
    return MS_OPTION_END;
}

/* The text of a scalar as the command line takes it; NULL, recorded: it is none. */
static const char *scalar_text(reader *r, ms_jval value)
{
    ms_ctx ignored = ms_ctx_quiet(r->cx, r->cx->arena);
    const char *text;
    double number;
    bool on;
    char buffer[32];
    if (ms_json_is_string(value))
        return ms_json_text(r->cx, value, &text) == MS_OK ? text : NULL;
    if (ms_json_bool(&ignored, value, &on) == MS_OK)
        return on ? "on" : "off";
    if (ms_json_number(&ignored, value, -1e300, 1e300, &number) == MS_OK)
        return ms_arena_strdup(r->cx->arena, ms_json_number_text(number, buffer));
    (void)ms_json_fail(r->cx, value, "must be a text, a number, true, false or a list");
    return NULL;
}

static ms_status add_list(reader *r, const char *name, ms_option_kind kind, ms_jval list)
{
    const char *joined = "";
    for (int i = 0; i < ms_json_length(list); i++) {
        const char *text = scalar_text(r, ms_json_element(r->cx, list, i));
        if (text == NULL)
            return MS_EINPUT;
        if (kind == MS_OPTION_LIST)
            add(r, ms_arena_printf(r->cx->arena, "%s=%s", name, text));
        else
            joined =
                ms_arena_printf(r->cx->arena, "%s%s%s", joined, i == 0 ? "" : ",", text);
    }
    if (kind != MS_OPTION_LIST)
        add(r, ms_arena_printf(r->cx->arena, "%s=%s", name, joined));
    return MS_OK;
}

static ms_status add_option(reader *r, const char *key, ms_jval value)
{
    ms_ctx ignored = ms_ctx_quiet(r->cx, r->cx->arena);
    char *name = ms_arena_printf(r->cx->arena, "--%s", key);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '_')
            *c = '-';
    ms_option_kind kind = kind_of(r, name);
    bool on;
    if (ms_json_is_null(value))
        return MS_OK;
    if (kind == MS_OPTION_FLAG && ms_json_bool(&ignored, value, &on) == MS_OK) {
        if (on)
            add(r, name);
        return MS_OK;
    }
    if (ms_json_is_array(value))
        return add_list(r, name, kind, value);
    const char *text = scalar_text(r, value);
    if (text == NULL)
        return MS_EINPUT;
    add(r, ms_arena_printf(r->cx->arena, "%s=%s", name, text));
    return MS_OK;
}

static ms_status add_options(reader *r, ms_jval root)
{
    if (!ms_json_is_object(root))
        return ms_json_fail(r->cx, root, "options must be an object");
    for (int i = 0; i < ms_json_length(root); i++) {
        const char *key;
        ms_jval value = ms_json_entry(r->cx, root, i, &key);
        MS_TRY(add_option(r, key, value));
    }
    return MS_OK;
}

ms_status ms_options_read_json(ms_ctx *cx, const ms_option_set *sets, int num_sets,
                               const char *name, const char *text)
{
    reader r = {.cx = cx, .sets = sets, .num_sets = num_sets};
    ms_jdoc *doc;
    ms_jval root;
    ms_words words;
    MS_TRY(ms_json_parse(cx, name, text, strlen(text), &doc, &root));
    ms_status status = add_options(&r, root);
    ms_json_close(doc);
    return status == MS_OK ? ms_options_parse(cx, sets, num_sets, r.argc, r.argv, &words)
                           : status;
}
