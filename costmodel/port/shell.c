/* Reads shell scripts: commands, assignments, compound commands, comments. */
#include "costmodel/port/shell_priv.h"

#include <ctype.h>
#include <string.h>

#define MAX_EXPANDED ((size_t)16 << 20)

/* ---- places ---- */

ms_loc ms_shell_loc(const ms_shell *r, size_t offset)
{
    int low = 0, high = r->num_lines - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (r->lines[middle] <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    return (ms_loc){
        .file = r->name, .line = low + 1, .column = (int)(offset - r->lines[low]) + 1};
}

void ms_shell_fail(ms_shell *r, size_t offset, const char *message)
{
    if (r->status == MS_OK)
        r->status = ms_fail(r->cx, MS_EINPUT, ms_shell_loc(r, offset), "%s", message);
    r->at = r->length;
}

static void find_lines(ms_shell *r)
{
    for (size_t i = 0; i <= r->length; i++) {
        if (i == 0 || r->text[i - 1] == '\n') {
            MS_MAKE_ROOM(r->cx->arena, r->lines, r->num_lines, r->lines_capacity, 256);
            r->lines[r->num_lines++] = i;
        }
    }
}

/* ---- words ---- */

void ms_shell_append(ms_shell *r, ms_shell_text *text, char c, uint32_t from)
{
    if (++r->expanded > MAX_EXPANDED) {
        ms_shell_fail(r, from / 2, "the script's words take more than 16 MiB");
        return;
    }
    MS_MAKE_ROOM(r->cx->arena, text->chars, text->num, text->capacity, 24);
    MS_MAKE_ROOM(r->cx->arena, text->from, text->num, text->from_capacity, 24);
    text->chars[text->num] = c;
    text->from[text->num++] = from;
}

void ms_shell_end_word(ms_shell *r)
{
    if (!r->has_word)
        return;
    ms_shell_value *w = &r->words;
    MS_MAKE_ROOM(r->cx->arena, w->items, w->num, w->capacity, 8);
    w->items[w->num++] = r->word;
    r->word = (ms_shell_text){0};
    r->has_word = false;
}

static bool is_text(const ms_shell_text *text, const char *word)
{
    size_t length = strlen(word);
    return (size_t)text->num == length && memcmp(text->chars, word, length) == 0;
}

static bool is_any(const ms_shell_text *text, const char *const *words)
{
    for (; *words != NULL; words++)
        if (is_text(text, *words))
            return true;
    return false;
}

/* ---- variables ---- */

const ms_shell_value *ms_shell_get(const ms_shell *r, const char *name, size_t length)
{
    int index = length == 0 ? -1 : ms_map_find(&r->names, name, length);
    return index < 0 ? NULL : &r->values[index];
}

static ms_shell_value *variable(ms_shell *r, const char *name, size_t length)
{
    int num = r->names.num, index = ms_map_add(&r->names, name, length);
    MS_MAKE_ROOM(r->cx->arena, r->values, num, r->values_capacity, 32);
    if (index == num)
        r->values[index] = (ms_shell_value){0};
    return &r->values[index];
}

/* The length of NAME in "NAME=" or "NAME+=" at the current place; 0: neither. */
static size_t assigned_name(const ms_shell *r)
{
    size_t i = r->at;
    while (i < r->length && ms_shell_is_name(r->text[i], i == r->at))
        i++;
    size_t length = i - r->at;
    if (i < r->length && r->text[i] == '+')
        i++;
    return i < r->length && r->text[i] == '=' ? length : 0;
}

static bool at_word_end(const ms_shell *r)
{
    return r->at >= r->length || strchr(" \t\r\n;&|<>()", r->text[r->at]) != NULL;
}

static void skip_comment(ms_shell *r)
{
    while (r->at < r->length && r->text[r->at] != '\n')
        r->at++;
}

/* The items of an array, behind its "(". */
static void read_items(ms_shell *r, size_t open)
{
    while (r->at < r->length && r->text[r->at] != ')') {
        char c = r->text[r->at];
        if (c == '#' && !r->has_word) {
            skip_comment(r);
        } else if (isspace((unsigned char)c)) {
            ms_shell_end_word(r);
            r->at++;
        } else {
            ms_shell_read_part(r, true);
        }
    }
    ms_shell_end_word(r);
    if (r->at >= r->length)
        ms_shell_fail(r, open, "this array is never closed");
    r->at++;
}

static void append_items(ms_shell *r, ms_shell_value *to, const ms_shell_value *from)
{
    for (int i = 0; i < from->num; i++) {
        MS_MAKE_ROOM(r->cx->arena, to->items, to->num, to->capacity, 8);
        to->items[to->num++] = from->items[i];
    }
}

/* Appends a text to the first item of a variable ("X+=more"). */
static void append_text(ms_shell *r, ms_shell_value *to, const ms_shell_text *text)
{
    ms_shell_text joined = {0};
    for (int i = 0; to->num > 0 && i < to->items[0].num; i++)
        ms_shell_append(r, &joined, to->items[0].chars[i], to->items[0].from[i]);
    for (int i = 0; i < text->num; i++)
        ms_shell_append(r, &joined, text->chars[i], text->from[i]);
    ms_shell_value only = {0};
    append_items(r, &only, &(ms_shell_value){.items = &joined, .num = 1});
    *to = only;
}

/* "NAME=value" at the current place; the words before it (export) stay. With `maybe` the
 * assignment depends on the command before it. */
static void assign(ms_shell *r, size_t name_length, bool maybe)
{
    const char *name = r->text + r->at;
    ms_shell_value before = r->words;
    r->words = (ms_shell_value){0};
    r->depth += maybe;
    r->at += name_length;
    bool adds = r->text[r->at] == '+';
    r->at += adds ? 2 : 1;
    ms_shell_value value = {.is_array = r->at < r->length && r->text[r->at] == '('};
    if (value.is_array) {
        size_t open = r->at++;
        read_items(r, open);
        value = r->words;
        value.is_array = true;
    } else {
        while (!at_word_end(r))
            ms_shell_read_part(r, false);
        append_items(r, &value, &(ms_shell_value){.items = &r->word, .num = 1});
    }
    ms_shell_value *to = variable(r, name, name_length);
    if (!adds)
        *to = value;
    else if (value.is_array)
        append_items(r, to, &value);
    else
        append_text(r, to, &value.items[0]);
    to->is_array = to->is_array || value.is_array;
    r->word = (ms_shell_text){0};
    r->has_word = false;
    r->words = before;
    r->depth -= maybe;
}

/* ---- commands ---- */

static ms_shell_word word_of(const ms_shell *r, const ms_shell_text *text)
{
    ms_shell_word word = {.text = ms_arena_strndup(r->cx->arena,
                                                   text->chars == NULL ? "" : text->chars,
                                                   (size_t)text->num)};
    if (text->num > 0)
        word.loc = ms_shell_loc(r, text->from[0] / 2);
    for (int i = 0; i < text->num; i++)
        word.unsettled = word.unsettled || (text->from[i] & 1) != 0;
    return word;
}

static void end_command(ms_shell *r, ms_shell_script *out, bool is_directive)
{
    ms_shell_end_word(r);
    if (r->words.num > 0) {
        ms_shell_command command = {.is_directive = is_directive};
        for (int i = 0; i < r->words.num; i++) {
            MS_MAKE_ROOM(r->cx->arena, command.words, command.num, command.capacity, 16);
            command.words[command.num++] = word_of(r, &r->words.items[i]);
        }
        MS_MAKE_ROOM(r->cx->arena, out->commands, out->num, out->capacity, 16);
        out->commands[out->num++] = command;
    }
    r->words = (ms_shell_value){0};
}

/* Drops a reserved word at the start of a command, after which another command starts. */
static void drop_reserved(ms_shell *r)
{
    static const char *const opens[] = {"if",   "for",    "while", "until",
                                        "case", "select", NULL};
    static const char *const closes[] = {"fi", "done", "esac", NULL};
    static const char *const between[] = {"then", "else", "elif", "do", "{",
                                          "}",    "!",    "time", NULL};
    if (r->words.num != 1)
        return;
    const ms_shell_text *first = &r->words.items[0];
    bool opened = is_any(first, opens), closed = is_any(first, closes);
    if (opened)
        r->depth++;
    if (closed && r->depth > 0)
        r->depth--;
    if (opened || closed || is_any(first, between))
        r->words = (ms_shell_value){0};
}

/* "#SBATCH --nodes=8" at the current place is a command of its own. */
static void read_comment(ms_shell *r, ms_shell_script *out)
{
    static const char directive[] = "#SBATCH";
    size_t length = sizeof directive - 1;
    bool is_directive = r->words.num == 0 && r->at + length < r->length &&
                        memcmp(r->text + r->at, directive, length) == 0;
    if (!is_directive) {
        skip_comment(r);
        return;
    }
    r->at += length;
    while (r->at < r->length && r->text[r->at] != '\n') {
        if (isspace((unsigned char)r->text[r->at])) {
            ms_shell_end_word(r);
            r->at++;
        } else if (r->text[r->at] == '#' && !r->has_word) {
            skip_comment(r);
        } else {
            ms_shell_read_part(r, true);
        }
    }
    end_command(r, out, true);
}

/* Skips the lines of a here document, behind its "<<". */
static void skip_here_document(ms_shell *r)
{
    size_t open = r->at;
    while (r->at < r->length && strchr("-'\" \t", r->text[r->at]) != NULL)
        r->at++;
    const char *mark = r->text + r->at;
    while (!at_word_end(r) && strchr("'\"", r->text[r->at]) == NULL)
        r->at++;
    size_t length = (size_t)(r->text + r->at - mark);
    for (skip_comment(r); r->at < r->length; skip_comment(r)) {
        size_t line = ++r->at;
        while (line < r->length && r->text[line] == '\t')
            line++;
        if (length > 0 && line + length <= r->length &&
            memcmp(r->text + line, mark, length) == 0 &&
            (line + length == r->length ||
             strchr("\r\n", r->text[line + length]) != NULL)) {
            r->at = line + length;
            return;
        }
    }
    ms_shell_fail(r, open, "this here document is never closed");
}

/* A redirection at the current place; the file behind it is no word. */
static void skip_redirection(ms_shell *r)
{
    if (r->has_word && r->word.num == 1 && isdigit((unsigned char)r->word.chars[0])) {
        r->word = (ms_shell_text){0};
        r->has_word = false;
    }
    ms_shell_end_word(r);
    if (r->at + 1 < r->length && r->text[r->at] == '<' && r->text[r->at + 1] == '<') {
        r->at += 2;
        skip_here_document(r);
        return;
    }
    while (r->at < r->length && strchr("<>&|", r->text[r->at]) != NULL)
        r->at++;
    while (r->at < r->length && (r->text[r->at] == ' ' || r->text[r->at] == '\t'))
        r->at++;
    ms_shell_value words = r->words;
    while (!at_word_end(r))
        ms_shell_read_part(r, false);
    r->words = words;
    r->word = (ms_shell_text){0};
    r->has_word = false;
}

/* Reads one operator, blank, comment, assignment or part of a word. */
static void read_next(ms_shell *r, ms_shell_script *out, bool *maybe)
{
    static const char *const declares[] = {"export",   "declare", "local",
                                           "readonly", "typeset", NULL};
    char c = r->text[r->at];
    bool ampersand = c == '&' && r->at + 1 < r->length && r->text[r->at + 1] == '>';
    if (c == '#' && !r->has_word) {
        read_comment(r, out);
    } else if (c == '<' || c == '>' || ampersand) {
        skip_redirection(r);
    } else if (strchr("\n;&|()", c) != NULL) {
        bool list =
            (c == '&' || c == '|') && r->at + 1 < r->length && r->text[r->at + 1] == c;
        ms_shell_end_word(r);
        drop_reserved(r);
        end_command(r, out, false);
        *maybe = list;
        r->at += list ? 2 : 1;
    } else if (c == ' ' || c == '\t' || c == '\r') {
        ms_shell_end_word(r);
        drop_reserved(r);
        r->at++;
    } else {
        bool starts =
            !r->has_word && (r->words.num == 0 || is_any(&r->words.items[0], declares));
        size_t name_length = starts ? assigned_name(r) : 0;
        if (name_length > 0)
            assign(r, name_length, *maybe);
        else
            ms_shell_read_part(r, true);
    }
}

ms_status ms_shell_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                        ms_shell_script *out)
{
    ms_shell r = {.cx = cx,
                  .name = name,
                  .text = text,
                  .length = length,
                  .names = {.arena = cx->arena}};
    *out = (ms_shell_script){0};
    find_lines(&r);
    const char *zero = length == 0 ? NULL : memchr(text, '\0', length);
    if (zero != NULL)
        ms_shell_fail(&r, (size_t)(zero - text), "a zero byte");
    bool maybe = false;
    while (r.at < r.length && r.status == MS_OK)
        read_next(&r, out, &maybe);
    if (r.status != MS_OK)
        return r.status;
    drop_reserved(&r);
    end_command(&r, out, false);
    return MS_OK;
}
