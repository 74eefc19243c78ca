#include "costmodel/port/toml.h"

#include "base/map.h"
#include "base/print.h"
#include "costmodel/port/port_priv.h"

#include <ctype.h>
#include <string.h>

#define MAX_DEPTH 32 /* arrays and inline tables inside each other */

typedef struct reader {
    ms_ctx *cx;
    const char *name, *text;
    size_t length, at, line_start;
    int line;
    const char *section; /* "training." or "" */
    ms_map keys;
    ms_port_settings *out;
    int depth;
} reader;

static ms_loc loc_of(const reader *r)
{
    return (ms_loc){
        .file = r->name, .line = r->line, .column = (int)(r->at - r->line_start) + 1};
}

static ms_status fail(reader *r, const char *message)
{
    return ms_fail(r->cx, MS_EINPUT, loc_of(r), "%s", message);
}

/* The current character; '\0' at the end of the text. */
static char peek(const reader *r)
{
    return r->at < r->length ? r->text[r->at] : '\0';
}

static void next(reader *r)
{
    if (peek(r) == '\n') {
        r->line++;
        r->line_start = r->at + 1;
    }
    r->at++;
}

/* Skips blanks, and with `lines` line ends and comments too. */
static void skip(reader *r, bool lines)
{
    while (r->at < r->length) {
        char c = peek(r);
        if (c == '#' && lines)
            while (r->at < r->length && peek(r) != '\n')
                next(r);
        else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))
            next(r);
        else
            return;
    }
}

/* The end of a line: nothing but a comment may follow. */
static ms_status end_line(reader *r)
{
    skip(r, false);
    if (peek(r) == '#')
        while (r->at < r->length && peek(r) != '\n')
            next(r);
    if (peek(r) == '\r')
        next(r);
    return r->at >= r->length || peek(r) == '\n' ? MS_OK
                                                 : fail(r, "a new line is expected");
}

/* ---- texts and keys ---- */

/* The character that a backslash and the current one stand for; '\0': none that is read. */
static char escaped(char c)
{
    static const char letters[] = "btnfr\"\\", meanings[] = "\b\t\n\f\r\"\\";
    const char *at = c == '\0' ? NULL : strchr(letters, c);
    return at == NULL ? '\0' : meanings[at - letters];
}

static ms_status read_text(reader *r, const char **out)
{
    char quote = peek(r);
    next(r);
    if (r->at + 1 < r->length && peek(r) == quote && r->text[r->at + 1] == quote)
        return fail(r, "texts of several lines are not read: write it in one");
    size_t most = 0;
    while (r->at + most < r->length && r->text[r->at + most] != '\n')
        most++;
    char *text = ms_arena_alloc(r->cx->arena, most + 1);
    size_t num = 0;
    while (r->at < r->length && peek(r) != quote && peek(r) != '\n') {
        char c = peek(r);
        if (c == '\\' && quote == '"') {
            next(r);
            c = escaped(peek(r));
        }
        if (c == '\0')
            return fail(r,
                        "a character that no text of TOML has, or a \\ that is not read");
        text[num++] = c;
        next(r);
    }
    if (peek(r) != quote)
        return fail(r, "this text is never closed");
    next(r);
    *out = text;
    return MS_OK;
}

static bool is_bare(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* "a.b" or "\"a\".b" as a dotted key. */
static ms_status read_key(reader *r, const char **out)
{
    const char *key = "";
    for (;;) {
        skip(r, false);
        const char *part = "";
        if (peek(r) == '"' || peek(r) == '\'') {
            MS_TRY(read_text(r, &part));
        } else {
            size_t start = r->at;
            while (is_bare(peek(r)))
                next(r);
            if (r->at == start)
                return fail(r, "a key is expected");
            part = ms_arena_strndup(r->cx->arena, r->text + start, r->at - start);
        }
        if (strlen(key) + strlen(part) > 1024)
            return fail(r, "a key of more than 1024 characters");
        key =
            ms_arena_printf(r->cx->arena, "%s%s%s", key, key[0] == '\0' ? "" : ".", part);
        skip(r, false);
        if (peek(r) != '.')
            break;
        next(r);
    }
    *out = key;
    return MS_OK;
}

/* ---- values ---- */

static ms_status skip_array(reader *r);

/* A number, true or false as it is written. */
static ms_status read_plain(reader *r, const char **out)
{
    size_t start = r->at;
    while (is_bare(peek(r)) || peek(r) == '+' || peek(r) == '.')
        next(r);
    const char *text = ms_arena_strndup(r->cx->arena, r->text + start, r->at - start);
    bool is_word = strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
    bool is_number = strpbrk(text, "0123456789") != NULL &&
                     strspn(text, "+-0123456789_.eE") == strlen(text) &&
                     strstr(text + 1, "-") == NULL;
    bool has_exponent =
        strpbrk(text, "eE") != NULL && strspn(text, "+-0123456789_.eE") == strlen(text);
    if (!is_word && !is_number && !has_exponent)
        return fail(r, "a text, number, true, false, array or table is expected");
    *out = text;
    return MS_OK;
}

static ms_status read_item(reader *r)
{
    const char *ignored = "";
    if (peek(r) == '[')
        return skip_array(r);
    if (peek(r) == '"' || peek(r) == '\'')
        return read_text(r, &ignored);
    return read_plain(r, &ignored);
}

static ms_status skip_array(reader *r)
{
    if (++r->depth > MAX_DEPTH)
        return fail(r, "arrays are nested too deeply");
    next(r);
    for (skip(r, true); peek(r) != ']'; skip(r, true)) {
        MS_TRY(read_item(r));
        skip(r, true);
        if (peek(r) == ',')
            next(r);
        else if (peek(r) != ']')
            return fail(r, "\",\" or \"]\" is expected");
    }
    next(r);
    r->depth--;
    return MS_OK;
}

static ms_status read_pair(reader *r, const char *prefix);

static ms_status read_table(reader *r, const char *prefix)
{
    if (++r->depth > MAX_DEPTH)
        return fail(r, "tables are nested too deeply");
    next(r);
    for (skip(r, false); peek(r) != '}'; skip(r, false)) {
        MS_TRY(read_pair(r, prefix));
        skip(r, false);
        if (peek(r) == ',')
            next(r);
        else if (peek(r) != '}')
            return fail(r, "\",\" or \"}\" is expected");
    }
    next(r);
    r->depth--;
    return MS_OK;
}

static ms_status add(reader *r, const char *key, const char *value, ms_loc loc)
{
    int num = r->keys.num;
    if (ms_map_add(&r->keys, key, strlen(key)) < num)
        return ms_fail(r->cx, MS_EINPUT, loc, "%s stands twice", key);
    ms_port_add(r->cx->arena, r->out,
                (ms_port_setting){.key = key, .value = value, .loc = loc});
    return MS_OK;
}

/* "key = value"; the keys of an inline table follow its own key. */
static ms_status read_pair(reader *r, const char *prefix)
{
    const char *key = "", *value = "";
    skip(r, false);
    ms_loc loc = loc_of(r);
    MS_TRY(read_key(r, &key));
    key = ms_arena_printf(r->cx->arena, "%s%s", prefix, key);
    if (peek(r) != '=')
        return fail(r, "\"=\" is expected");
    next(r);
    skip(r, false);
    size_t start = r->at;
    if (peek(r) == '{')
        return read_table(r, ms_arena_printf(r->cx->arena, "%s.", key));
    if (peek(r) == '[') {
        MS_TRY(skip_array(r));
        value = ms_arena_strndup(r->cx->arena, r->text + start, r->at - start);
    } else if (peek(r) == '"' || peek(r) == '\'') {
        MS_TRY(read_text(r, &value));
    } else {
        MS_TRY(read_plain(r, &value));
    }
    return add(r, key, value, loc);
}

/* "[section]" at the current place. */
static ms_status read_section(reader *r)
{
    const char *key = "";
    next(r);
    if (peek(r) == '[')
        return fail(r, "arrays of tables are not read");
    MS_TRY(read_key(r, &key));
    if (peek(r) != ']')
        return fail(r, "\"]\" is expected");
    next(r);
    r->section = ms_arena_printf(r->cx->arena, "%s.", key);
    return MS_OK;
}

ms_status ms_toml_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                       ms_port_settings *out)
{
    reader r = {.cx = cx,
                .name = name,
                .text = text,
                .length = length,
                .line = 1,
                .section = "",
                .keys = {.arena = cx->arena},
                .out = out};
    for (skip(&r, true); r.at < r.length; skip(&r, true)) {
        MS_TRY(peek(&r) == '[' ? read_section(&r) : read_pair(&r, r.section));
        MS_TRY(end_line(&r));
    }
    return MS_OK;
}

/* ---- writing ---- */

static size_t section_length(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot == NULL ? 0 : (size_t)(dot - key);
}

static bool same_section(const char *a, const char *b)
{
    size_t length = section_length(a);
    return length == section_length(b) && memcmp(a, b, length) == 0;
}

static void write_setting(FILE *out, const ms_port_setting *s)
{
    size_t length = section_length(s->key);
    const char *value = s->value == NULL ? "true" : s->value;
    ms_print(out, s->quoted ? "%s = \"%s\"\n" : "%s = %s\n",
             s->key + length + (length > 0), value);
}

void ms_toml_write(FILE *out, ms_arena *arena, const ms_port_settings *settings)
{
    bool *done = MS_NEW_ARRAY(arena, settings->num + 1, bool);
    for (int i = 0; i < settings->num; i++) {
        const char *key = settings->rows[i].key;
        if (done[i])
            continue;
        ms_print(out, "\n[%s]\n", ms_arena_strndup(arena, key, section_length(key)));
        for (int k = i; k < settings->num; k++) {
            if (!done[k] && same_section(key, settings->rows[k].key)) {
                write_setting(out, &settings->rows[k]);
                done[k] = true;
            }
        }
    }
}
