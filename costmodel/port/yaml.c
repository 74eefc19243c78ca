#include "costmodel/port/yaml.h"

#include "base/map.h"
#include "base/print.h"
#include "costmodel/port/port_priv.h"

#include <string.h>
#include <yaml.h>

#define MAX_DEPTH 32

/* An open mapping or list. */
typedef struct level {
    bool is_list;
    const char *prefix; /* dotted key of the level with a dot behind it; "" outside */
    const char *key;    /* key whose value comes next; NULL: a key comes next */
    long num_items;
} level;

typedef struct reader {
    ms_ctx *cx;
    const char *name;
    ms_map keys;
    ms_port_settings *out;
    level levels[MAX_DEPTH];
    int depth;
    int num_documents;
} reader;

static ms_loc loc_of(const reader *r, yaml_mark_t mark)
{
    return (ms_loc){
        .file = r->name, .line = (int)mark.line + 1, .column = (int)mark.column + 1};
}

static ms_status fail(reader *r, yaml_mark_t mark, const char *message)
{
    return ms_fail(r->cx, MS_EINPUT, loc_of(r, mark), "%s", message);
}

static ms_status add(reader *r, const char *key, const char *value, yaml_mark_t mark)
{
    int num = r->keys.num;
    if (ms_map_add(&r->keys, key, strlen(key)) < num)
        return ms_fail(r->cx, MS_EINPUT, loc_of(r, mark), "%s stands twice", key);
    ms_port_add(r->cx->arena, r->out,
                (ms_port_setting){.key = key, .value = value, .loc = loc_of(r, mark)});
    return MS_OK;
}

static bool is_null(const yaml_event_t *event)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    const char *text = (const char *)event->data.scalar.value;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE, found = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        found = found || strcmp(text, words[i]) == 0;
    return plain && found;
}

/* A level's key with a dot behind it; "" for the outermost mapping. */
static const char *prefix_of(const level *l)
{
    return l->prefix == NULL ? "" : l->prefix;
}

/* The level that is open; NULL: outside of all. */
static level *top(reader *r)
{
    return r->depth == 0 ? NULL : &r->levels[r->depth - 1];
}

/* A scalar is a key, the value of one, or an item of a list. */
static ms_status take_scalar(reader *r, const yaml_event_t *event)
{
    level *l = top(r);
    const char *text = (const char *)event->data.scalar.value;
    if (l == NULL)
        return fail(r, event->start_mark, "a mapping is expected");
    if (strlen(text) != event->data.scalar.length)
        return fail(r, event->start_mark, "a zero byte");
    if (l->is_list) {
        l->num_items++;
        return MS_OK;
    }
    if (l->key == NULL && text[0] == '\0')
        return fail(r, event->start_mark, "a key is empty");
    if (l->key == NULL) {
        if (strlen(prefix_of(l)) + strlen(text) > 1024)
            return fail(r, event->start_mark, "a key of more than 1024 characters");
        l->key = ms_arena_printf(r->cx->arena, "%s%s", prefix_of(l), text);
        return MS_OK;
    }
    const char *key = l->key;
    l->key = NULL;
    return is_null(event)
               ? MS_OK
               : add(r, key, ms_arena_strdup(r->cx->arena, text), event->start_mark);
}

/* Opens a mapping or a list, whose settings are those of the key before it. */
static ms_status open_level(reader *r, bool is_list, yaml_mark_t mark)
{
    level *l = top(r);
    if (r->depth == MAX_DEPTH)
        return fail(r, mark, "more than 32 levels");
    if (l == NULL && is_list)
        return fail(r, mark, "a mapping is expected");
    if (l != NULL && !l->is_list && l->key == NULL)
        return fail(r, mark, "a key is expected, not a list or mapping");
    bool in_list = l != NULL && l->is_list;
    const char *key =
        l == NULL  ? ""
        : !in_list ? l->key
                   : ms_arena_printf(r->cx->arena, "%s%ld", prefix_of(l), l->num_items++);
    if (l != NULL)
        l->key = NULL;
    int num = r->keys.num;
    const char *whole = ms_arena_printf(r->cx->arena, "%s.", key);
    if (ms_map_add(&r->keys, whole, strlen(whole)) < num)
        return ms_fail(r->cx, MS_EINPUT, loc_of(r, mark), "%s stands twice", key);
    r->levels[r->depth++] =
        (level){.is_list = is_list, .prefix = key[0] == '\0' ? "" : whole};
    return MS_OK;
}

static ms_status close_list(reader *r, yaml_mark_t mark)
{
    const level *l = &r->levels[--r->depth];
    size_t length = strlen(prefix_of(l));
    const char *key = ms_arena_strndup(r->cx->arena, prefix_of(l), length - 1);
    return add(r, key, ms_arena_printf(r->cx->arena, "[%ld items]", l->num_items), mark);
}

static ms_status take_event(reader *r, const yaml_event_t *event)
{
    switch ((int)event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return r->num_documents++ == 0
                   ? MS_OK
                   : fail(r, event->start_mark, "only one document is read");
    case YAML_ALIAS_EVENT:
        return fail(r, event->start_mark, "aliases are not read");
    case YAML_SCALAR_EVENT:
        return take_scalar(r, event);
    case YAML_MAPPING_START_EVENT:
        return open_level(r, false, event->start_mark);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(r, true, event->start_mark);
    case YAML_MAPPING_END_EVENT:
        r->depth--;
        return MS_OK;
    case YAML_SEQUENCE_END_EVENT:
        return close_list(r, event->start_mark);
    default:
        return MS_OK;
    }
}

static ms_status read_events(reader *r, yaml_parser_t *parser)
{
    for (bool ended = false; !ended;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return fail(r, parser->problem_mark,
                        parser->problem == NULL ? "this is no YAML" : parser->problem);
        ms_status status = take_event(r, &event);
        ended = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        MS_TRY(status);
    }
    return MS_OK;
}

ms_status ms_yaml_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                       ms_port_settings *out)
{
    reader r = {.cx = cx, .name = name, .keys = {.arena = cx->arena}, .out = out};
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return ms_fail(cx, MS_EIO, (ms_loc){.file = name}, "memory is exhausted");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    ms_status status = read_events(&r, &parser);
    yaml_parser_delete(&parser);
    return status;
}

/* ---- writing ---- */

static void indent(FILE *out, int depth)
{
    for (int i = 0; i < depth; i++)
        ms_print(out, "  ");
}

typedef struct writer {
    FILE *out;
    ms_arena *arena;
    const ms_port_settings *settings;
    bool *done; /* (settings->num) whether a setting is written */
} writer;

/* A value as YAML 1.1 reads it: "1e-05" is a number with a point only, "1.0e-05". */
static const char *value_text(ms_arena *arena, const char *value)
{
    size_t digits = value == NULL ? 0 : strspn(value, "0123456789");
    if (digits == 0 || value[digits] != 'e')
        return value == NULL ? "true" : value;
    return ms_arena_printf(arena, "%.*s.0%s", (int)digits, value, value + digits);
}

/* Writes the settings whose keys begin as that of row `first` does up to `from`, all of one
 * mapping together. */
static void write_level(writer *w, int first, size_t from, int depth)
{
    const char *prefix = w->settings->rows[first].key;
    for (int i = first; i < w->settings->num; i++) {
        const ms_port_setting *s = &w->settings->rows[i];
        if (w->done[i] || strncmp(s->key, prefix, from) != 0)
            continue;
        size_t length = strcspn(s->key + from, ".");
        indent(w->out, depth);
        ms_print(w->out, "%s:", ms_arena_strndup(w->arena, s->key + from, length));
        if (s->key[from + length] == '\0') {
            ms_print(w->out, " %s\n", value_text(w->arena, s->value));
            w->done[i] = true;
        } else {
            ms_print(w->out, "\n");
            write_level(w, i, from + length + 1, depth + 1);
        }
    }
}

void ms_yaml_write(FILE *out, ms_arena *arena, const ms_port_settings *settings)
{
    writer w = {out, arena, settings, MS_NEW_ARRAY(arena, settings->num + 1, bool)};
    if (settings->num > 0)
        write_level(&w, 0, 0, 0);
}
