/* Words of shell scripts: quotes, variables, defaults, arithmetic. */
#include "costmodel/port/shell_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 32 /* defaults or brackets inside each other */

static char peek(const ms_shell *r, size_t ahead)
{
    return r->at + ahead < r->length ? r->text[r->at + ahead] : '\0';
}

static uint32_t here(const ms_shell *r, bool unsettled)
{
    return (uint32_t)(2 * r->at) + (unsettled || r->depth > 0);
}

/* Appends the character of the script at the current place as it is written. */
static void take_char(ms_shell *r, bool unsettled)
{
    ms_shell_append(r, &r->word, r->text[r->at], here(r, unsettled));
    r->has_word = true;
    r->at++;
}

bool ms_shell_is_name(char c, bool first)
{
    return c == '_' || isalpha((unsigned char)c) || (!first && isdigit((unsigned char)c));
}

/* The offset behind the bracket that closes the one at `open`; r->length: none does. */
static size_t closing(const ms_shell *r, size_t open, char opens, char closes)
{
    int depth = 0;
    for (size_t i = open; i < r->length; i++) {
        if (r->text[i] == opens)
            depth++;
        else if (r->text[i] == closes && --depth == 0)
            return i + 1;
    }
    return r->length;
}

/* Appends what is unknown, as it is written up to `end`. */
static void take_unknown(ms_shell *r, size_t end)
{
    while (r->at < end)
        take_char(r, true);
}

/* ---- arithmetic ---- */

typedef struct sum {
    const ms_shell *r;
    const char *at, *end;
    bool known;
    int depth;
} sum;

static long add_up(sum *s);

static void skip_space(sum *s)
{
    while (s->at < s->end && isspace((unsigned char)*s->at))
        s->at++;
}

static bool accept(sum *s, char c)
{
    skip_space(s);
    if (s->at >= s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

/* The whole number that a text is; sets *known to false if it is none below 1e9. */
static long number_in(const char *text, size_t length, bool *known)
{
    long value = 0;
    if (length == 0 || length > 9)
        *known = false;
    for (size_t i = 0; i < length && *known; i++) {
        *known = isdigit((unsigned char)text[i]);
        value = 10 * value + (text[i] - '0');
    }
    return value;
}

static long variable_in(sum *s)
{
    const char *start = s->at;
    while (s->at < s->end && ms_shell_is_name(*s->at, s->at == start))
        s->at++;
    const ms_shell_value *value = ms_shell_get(s->r, start, (size_t)(s->at - start));
    if (s->at == start || value == NULL || value->is_array || value->num != 1) {
        s->known = false;
        return 0;
    }
    const ms_shell_text *text = &value->items[0];
    for (int i = 0; i < text->num; i++)
        s->known = s->known && (text->from[i] & 1) == 0;
    return number_in(text->chars, (size_t)text->num, &s->known);
}

static long factor(sum *s)
{
    if (s->depth > MAX_DEPTH)
        s->known = false;
    if (!s->known)
        return 0;
    if (accept(s, '(')) {
        s->depth++;
        long value = add_up(s);
        s->depth--;
        s->known = s->known && accept(s, ')');
        return value;
    }
    if (accept(s, '$')) {
        bool braces = accept(s, '{');
        long value = variable_in(s);
        s->known = s->known && (!braces || accept(s, '}'));
        return value;
    }
    skip_space(s);
    const char *start = s->at;
    if (s->at >= s->end || !isdigit((unsigned char)*s->at))
        return variable_in(s);
    while (s->at < s->end && isdigit((unsigned char)*s->at))
        s->at++;
    return number_in(start, (size_t)(s->at - start), &s->known);
}

static long product(sum *s)
{
    const long most = 1000000000;
    long value = factor(s);
    while (s->known) {
        bool times = accept(s, '*'), over = !times && accept(s, '/');
        if (!times && !over && !accept(s, '%'))
            break;
        long by = factor(s);
        if (!s->known || (!times && by == 0)) {
            s->known = false;
            return 0;
        }
        value = times ? value * by : over ? value / by : value % by;
        s->known = labs(value) <= most;
    }
    return value;
}

static long add_up(sum *s)
{
    const long most = 1000000000;
    long value = product(s);
    while (s->known) {
        bool plus = accept(s, '+');
        if (!plus && !accept(s, '-'))
            break;
        long by = product(s);
        value = plus ? value + by : value - by;
        s->known = s->known && labs(value) <= most;
    }
    return value;
}

/* "$((" at the current place. */
static void take_arithmetic(ms_shell *r)
{
    size_t end = closing(r, r->at + 1, '(', ')');
    if (r->text[end - 1] != ')') {
        ms_shell_fail(r, r->at, "this \"$((\" is never closed");
        return;
    }
    sum s = {r, r->text + r->at + 3, r->text + end - 2, true, 0};
    long value = s.at <= s.end ? add_up(&s) : 0;
    skip_space(&s);
    if (!s.known || s.at != s.end) {
        take_unknown(r, end);
        return;
    }
    const char *digits = ms_arena_printf(r->cx->arena, "%ld", value);
    uint32_t from = here(r, false);
    for (; *digits != '\0'; digits++)
        ms_shell_append(r, &r->word, *digits, from);
    r->has_word = true;
    r->at = end;
}

/* ---- variables ---- */

static void add_item(ms_shell *r, const ms_shell_text *item, bool splits)
{
    for (int i = 0; i < item->num && r->status == MS_OK; i++) {
        if (splits && isspace((unsigned char)item->chars[i])) {
            ms_shell_end_word(r);
            continue;
        }
        ms_shell_append(r, &r->word, item->chars[i], item->from[i] | (r->depth > 0));
        r->has_word = true;
    }
}

/* The first item for a plain name, as in bash; all with [@]. */
static void add_value(ms_shell *r, const ms_shell_value *value, bool all, bool splits,
                      bool quoted)
{
    int num = all ? value->num : value->num > 0;
    r->has_word = r->has_word || (quoted && !all);
    for (int i = 0; i < num && r->status == MS_OK; i++) {
        if (i > 0)
            ms_shell_end_word(r);
        r->has_word = r->has_word || quoted;
        add_item(r, &value->items[i], splits);
    }
}

static void read_until(ms_shell *r, size_t end, bool splits)
{
    int depth = r->depth;
    while (r->at < end && r->status == MS_OK)
        ms_shell_read_part(r, splits);
    r->depth = depth;
}

/* "${" at the current place. */
static void take_braces(ms_shell *r, bool splits, bool quoted)
{
    size_t end = closing(r, r->at + 1, '{', '}'), name = r->at + 2, after = name;
    if (r->text[end - 1] != '}' || end <= r->at + 2) {
        ms_shell_fail(r, r->at, "this \"${\" is never closed");
        return;
    }
    while (after < end &&
           ms_shell_is_name(r->text[after],
                            after == name && !isdigit((unsigned char)r->text[after])))
        after++;
    const ms_shell_value *value = ms_shell_get(r, r->text + name, after - name);
    bool all = after + 3 < end && r->text[after] == '[' &&
               strchr("@*", r->text[after + 1]) != NULL && r->text[after + 2] == ']';
    size_t rest = after + (all ? 3 : 0);
    if (after > name && value != NULL && rest + 1 == end) {
        r->at = end;
        add_value(r, value, all, splits, quoted);
        return;
    }
    if (rest < end && r->text[rest] == ':')
        rest++;
    bool is_default =
        after > name && rest < end && (r->text[rest] == '-' || r->text[rest] == '=');
    if (!is_default || r->nesting > MAX_DEPTH) {
        take_unknown(r, end);
        return;
    }
    if (value != NULL) {
        add_value(r, value, all, splits, quoted);
    } else {
        r->nesting++;
        r->at = rest + 1;
        read_until(r, end - 1, splits);
        r->nesting--;
    }
    r->at = end;
}

/* "$" at the current place. */
static void take_dollar(ms_shell *r, bool splits, bool quoted)
{
    if (peek(r, 1) == '(' && peek(r, 2) == '(') {
        take_arithmetic(r);
    } else if (peek(r, 1) == '(') {
        size_t end = closing(r, r->at + 1, '(', ')');
        if (r->text[end - 1] != ')')
            ms_shell_fail(r, r->at, "this \"$(\" is never closed");
        else
            take_unknown(r, end);
    } else if (peek(r, 1) == '{') {
        take_braces(r, splits, quoted);
    } else if (ms_shell_is_name(peek(r, 1), true)) {
        size_t name = r->at + 1, end = name;
        while (end < r->length && ms_shell_is_name(r->text[end], end == name))
            end++;
        const ms_shell_value *value = ms_shell_get(r, r->text + name, end - name);
        if (value == NULL) {
            take_unknown(r, end);
            return;
        }
        r->at = end;
        add_value(r, value, false, splits, quoted);
    } else {
        bool special = peek(r, 1) != '\0' && strchr("0123456789@*#?$!-", peek(r, 1));
        take_unknown(r, r->at + 1 + special);
    }
}

/* ---- quotes ---- */

static void take_single_quotes(ms_shell *r)
{
    size_t open = r->at++;
    r->has_word = true;
    while (r->at < r->length && r->text[r->at] != '\'')
        take_char(r, false);
    if (r->at >= r->length)
        ms_shell_fail(r, open, "this quote is never closed");
    r->at++;
}

static void take_back_quotes(ms_shell *r)
{
    size_t open = r->at;
    do
        take_char(r, true);
    while (r->at < r->length && r->text[r->at] != '`');
    if (r->at >= r->length)
        ms_shell_fail(r, open, "this quote is never closed");
    else
        take_char(r, true);
}

static void take_double_quotes(ms_shell *r)
{
    size_t open = r->at++;
    bool array_alone = peek(r, 0) == '$' && peek(r, 1) == '{' &&
                       r->at + 5 < r->length; /* "${A[@]}" of no items is no word */
    const char *end =
        array_alone ? memchr(r->text + r->at, '"', r->length - r->at) : NULL;
    array_alone =
        end != NULL && end - (r->text + r->at) >= 5 && memcmp(end - 4, "[@]}", 4) == 0;
    r->has_word = r->has_word || !array_alone;
    while (r->at < r->length && r->text[r->at] != '"' && r->status == MS_OK) {
        char next = peek(r, 1);
        if (r->text[r->at] == '\\' && next == '\n') {
            r->at += 2;
        } else if (r->text[r->at] == '\\' && next != '\0' && strchr("\"\\$`", next)) {
            r->at++;
            take_char(r, false);
        } else if (r->text[r->at] == '$') {
            take_dollar(r, false, true);
        } else if (r->text[r->at] == '`') {
            take_back_quotes(r);
        } else {
            take_char(r, false);
        }
    }
    if (r->at >= r->length)
        ms_shell_fail(r, open, "this quote is never closed");
    r->at++;
}

void ms_shell_read_part(ms_shell *r, bool splits)
{
    switch (r->text[r->at]) {
    case '\'':
        take_single_quotes(r);
        break;
    case '"':
        take_double_quotes(r);
        break;
    case '`':
        take_back_quotes(r);
        break;
    case '$':
        take_dollar(r, splits, false);
        break;
    case '\\':
        if (peek(r, 1) == '\n' || (peek(r, 1) == '\r' && peek(r, 2) == '\n')) {
            r->at += peek(r, 1) == '\n' ? 2 : 3;
        } else {
            r->at++;
            if (r->at < r->length)
                take_char(r, false);
        }
        break;
    default:
        take_char(r, false);
        break;
    }
}
