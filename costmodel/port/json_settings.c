#include "costmodel/port/json_settings.h"

#include "base/json.h"
#include "base/map.h"
#include "costmodel/port/port_priv.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BYTES    1048576
#define MAX_SETTINGS 1024

typedef struct reader {
    ms_ctx *cx;
    ms_map keys;
    ms_port_settings *out;
} reader;

/* Text of a value that is neither null nor an object. */
static const char *text_of(ms_ctx *cx, ms_jval value)
{
    const char *text = NULL;
    bool on = false;
    double number = 0.0;
    char digits[32];
    if (ms_json_is_string(value))
        return ms_json_text(cx, value, &text) == MS_OK ? text : NULL;
    if (ms_json_is_array(value))
        return ms_arena_printf(cx->arena, "[%d items]", ms_json_length(value));
    if (ms_json_is_bool(value))
        return ms_json_bool(cx, value, &on) != MS_OK ? NULL : on ? "true" : "false";
    return ms_json_number(cx, value, -1e300, 1e300, &number) != MS_OK
               ? NULL
               : ms_arena_strdup(cx->arena, ms_json_number_text(number, digits));
}

static ms_status add(reader *r, const char *key, ms_jval value)
{
    int num = r->keys.num;
    if (ms_map_add(&r->keys, key, strlen(key)) < num)
        return ms_json_fail(r->cx, value, "%s stands twice", key);
    if (r->out->num == MAX_SETTINGS)
        return ms_json_fail(r->cx, value, "more than %d settings", MAX_SETTINGS);
    const char *text = text_of(r->cx, value);
    if (text == NULL)
        return MS_EINPUT;
    ms_port_add(r->cx->arena, r->out,
                (ms_port_setting){.key = key,
                                  .value = text,
                                  .loc = ms_json_loc(r->cx, value),
                                  .unsettled = strcmp(text, "auto") == 0});
    return MS_OK;
}

static ms_status read_object(reader *r, ms_jval object, const char *prefix)
{
    for (int i = 0; i < ms_json_length(object); i++) {
        const char *name;
        ms_jval value = ms_json_entry(r->cx, object, i, &name);
        if (name[0] == '_' || ms_json_is_null(value))
            continue;
        if (strlen(prefix) + strlen(name) > 1024)
            return ms_json_fail(r->cx, value, "a key of more than 1024 characters");
        const char *key = ms_arena_printf(r->cx->arena, "%s%s", prefix, name);
        if (!ms_json_is_object(value)) {
            MS_TRY(add(r, key, value));
            continue;
        }
        MS_TRY(read_object(r, value, ms_arena_printf(r->cx->arena, "%s.", key)));
    }
    return MS_OK;
}

ms_status ms_json_settings_read(ms_ctx *cx, const char *name, const char *text,
                                size_t length, ms_port_settings *out)
{
    reader r = {.cx = cx, .keys = {.arena = cx->arena}, .out = out};
    ms_jdoc *doc;
    ms_jval root;
    if (length > MAX_BYTES)
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = name},
                       "a configuration of more than 1 MiB");
    MS_TRY(ms_json_parse(cx, name, text, length, &doc, &root));
    ms_status status = ms_json_is_object(root)
                           ? read_object(&r, root, "")
                           : ms_json_fail(cx, root, "an object is expected");
    ms_json_close(doc);
    return status;
}

/* ---- writing ---- */

typedef struct writer {
    ms_jout json;
    ms_arena *arena;
    const ms_port_settings *settings;
    bool *done; /* (settings->num) whether a setting is written */
} writer;

static void write_value(ms_jout *json, const ms_port_setting *setting)
{
    const char *text = setting->value;
    if (text == NULL || strcmp(text, "true") == 0)
        ms_jout_bool(json, true);
    else if (strcmp(text, "false") == 0)
        ms_jout_bool(json, false);
    else if (setting->quoted)
        ms_jout_text(json, text);
    else
        ms_jout_number(json, strtod(text, NULL));
}

/* Writes the settings whose keys begin as that of row `first` does up to `from`, all of one
 * object together. */
static void write_level(writer *w, int first, size_t from)
{
    const char *prefix = w->settings->rows[first].key;
    for (int i = first; i < w->settings->num; i++) {
        const ms_port_setting *s = &w->settings->rows[i];
        if (w->done[i] || strncmp(s->key, prefix, from) != 0)
            continue;
        size_t length = strcspn(s->key + from, ".");
        ms_jout_key(&w->json, ms_arena_strndup(w->arena, s->key + from, length));
        if (s->key[from + length] == '\0') {
            write_value(&w->json, s);
            w->done[i] = true;
        } else {
            ms_jout_begin_object(&w->json);
            write_level(w, i, from + length + 1);
            ms_jout_end_object(&w->json);
        }
    }
}

void ms_json_settings_write(FILE *out, ms_arena *arena, const ms_texts *comment,
                            const ms_port_settings *settings)
{
    writer w = {ms_jout_open(out), arena, settings,
                MS_NEW_ARRAY(arena, settings->num + 1, bool)};
    ms_jout_begin_object(&w.json);
    ms_jout_begin_array_field(&w.json, "_comment");
    for (int i = 0; i < comment->num; i++)
        ms_jout_text(&w.json, comment->texts[i]);
    ms_jout_end_array(&w.json);
    if (settings->num > 0)
        write_level(&w, 0, 0);
    ms_jout_end_object(&w.json);
    ms_jout_close(&w.json);
}
