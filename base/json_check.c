/* Strict check of JSON text before cJSON, which takes any byte up to 0x20 for a space,
 * accepts "01" and control characters, cuts strings at \u0000 and locates no errors. */
#include "base/json_priv.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NUMBER_CHARS 60 /* cJSON cuts numbers at 63 characters */

#define NO_VALUE                                                                         \
    "a value must stand here (object, array, string, number, true, false, null)"

typedef struct scan {
    const char *p;
    const char *end;
    int depth;
    ms_json_fault fault;
    const char *text;
    const char *bare_word; /* the first of NaN, Infinity and -Infinity */
} scan;

static bool scan_value(scan *s);

static bool stop_at(scan *s, const char *at, const char *message)
{
    s->fault = (ms_json_fault){message, (size_t)(at - s->text)};
    return false;
}

static bool stop(scan *s, const char *message)
{
    return stop_at(s, s->p, s->p == s->end ? "the text ends too early" : message);
}

static void skip_space(scan *s)
{
    while (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r')
        s->p++;
}

/* The value of four hexadecimal digits; -1 if they are none. */
static int hex_value(const char *p)
{
    char digits[5] = {0};
    memcpy(digits, p, strnlen(p, 4));
    bool valid = strspn(digits, "0123456789abcdefABCDEF") == 4;
    return valid ? (int)strtol(digits, NULL, 16) : -1;
}

/* Checks an escape \uNNNN, or the surrogate pair of two; s->p is at the first 'u'. */
static bool scan_unicode_escape(scan *s)
{
    const char *start = s->p - 1;
    int code = hex_value(s->p + 1);
    if (code < 0)
        return stop_at(s, start, "\\u must be followed by four hexadecimal digits");
    if (code == 0)
        return stop_at(s, start, "\\u0000 is not allowed in a string");
    s->p += 5;
    if (code < 0xD800 || code > 0xDFFF)
        return true;
    int low =
        code < 0xDC00 && s->p[0] == '\\' && s->p[1] == 'u' ? hex_value(s->p + 2) : -1;
    if (low < 0xDC00 || low > 0xDFFF)
        return stop_at(s, start, "\\u escape is half of a surrogate pair");
    s->p += 6;
    return true;
}

static bool scan_string(scan *s)
{
    const char *start = s->p++;
    while (*s->p != '"') {
        if (s->p == s->end || *s->p == '\n')
            return stop_at(s, start, "string without closing quote");
        if ((unsigned char)*s->p < 0x20)
            return stop(s, "control character in a string must be escaped");
        if (*s->p != '\\') {
            s->p++;
            continue;
        }
        s->p++;
        if (*s->p == 'u') {
            if (!scan_unicode_escape(s))
                return false;
        } else if (*s->p != '\0' && strchr("\"\\/bfnrt", *s->p) != NULL) {
            s->p++;
        } else {
            return stop(s, "unknown escape in a string");
        }
    }
    s->p++;
    return true;
}

/* Words that Python's json module writes for numbers that JSON lacks. */
static const struct {
    const char *word, *json;
} bare_words[] = {{"NaN", "null"}, {"Infinity", "1e999"}};
#define NUM_BARE_WORDS (sizeof bare_words / sizeof *bare_words)

/* Index in bare_words of the word at p; -1: none. */
static int bare_word_at(const char *p)
{
    for (size_t i = 0; i < NUM_BARE_WORDS; i++)
        if (strncmp(p, bare_words[i].word, strlen(bare_words[i].word)) == 0)
            return (int)i;
    return -1;
}

/* Steps over a bare word; false if none stands at s->p. */
static bool scan_bare_word(scan *s)
{
    const char *start = s->p, *p = start + (*start == '-');
    int found = bare_word_at(p);
    if (found < 0 || (p > start && bare_words[found].word[0] == 'N'))
        return false;
    if (s->bare_word == NULL)
        s->bare_word = start;
    s->p = p + strlen(bare_words[found].word);
    return true;
}

static bool scan_digits(scan *s)
{
    if (*s->p < '0' || *s->p > '9')
        return stop(s, "a digit must stand here");
    while (*s->p >= '0' && *s->p <= '9')
        s->p++;
    return true;
}

static bool scan_number(scan *s)
{
    const char *start = s->p;
    s->p += *s->p == '-';
    if (*s->p == '0' && s->p[1] >= '0' && s->p[1] <= '9')
        return stop_at(s, start, "a number must not begin with 0");
    if (!scan_digits(s))
        return false;
    if (*s->p == '.') {
        s->p++;
        if (!scan_digits(s))
            return false;
    }
    if (*s->p == 'e' || *s->p == 'E') {
        s->p++;
        s->p += *s->p == '+' || *s->p == '-';
        if (!scan_digits(s))
            return false;
    }
    if (s->p - start > MAX_NUMBER_CHARS)
        return stop_at(s, start, "number is longer than 60 characters");
    return true;
}

static bool scan_word(scan *s)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(s->p, words[i], length) == 0) {
            s->p += length;
            return true;
        }
    }
    return stop(s, NO_VALUE);
}

static bool scan_key(scan *s)
{
    if (*s->p != '"')
        return stop(s, "a key in double quotes must stand here");
    if (!scan_string(s))
        return false;
    skip_space(s);
    if (*s->p != ':')
        return stop(s, "\":\" must stand here");
    s->p++;
    return true;
}

/* Checks an object or array, which ends with `close`, from s->p behind its '{' or '['. */
static bool scan_members(scan *s, char close)
{
    skip_space(s);
    if (*s->p == close) {
        s->p++;
        return true;
    }
    for (;;) {
        skip_space(s);
        if (close == '}' && !scan_key(s))
            return false;
        if (!scan_value(s))
            return false;
        skip_space(s);
        if (*s->p == close) {
            s->p++;
            return true;
        }
        if (*s->p != ',')
            return stop(s, close == '}' ? "\",\" or \"}\" must stand here"
                                        : "\",\" or \"]\" must stand here");
        s->p++;
    }
}

static bool scan_container(scan *s, char close)
{
    if (s->depth == MS_JSON_MAX_DEPTH)
        return stop(s, "nested deeper than 64 levels");
    s->depth++;
    s->p++;
    bool sound = scan_members(s, close);
    s->depth--;
    return sound;
}

static bool scan_value(scan *s)
{
    skip_space(s);
    if (*s->p == '{')
        return scan_container(s, '}');
    if (*s->p == '[')
        return scan_container(s, ']');
    if (*s->p == '"')
        return scan_string(s);
    if (scan_bare_word(s))
        return true;
    return *s->p == '-' || (*s->p >= '0' && *s->p <= '9') ? scan_number(s) : scan_word(s);
}

static ms_json_fault check_bytes(const char *text, size_t length)
{
    for (size_t i = 0; i < length;) {
        size_t step = ms_utf8_step(text + i, length - i);
        if (step == 0)
            return (ms_json_fault){"the text is not valid UTF-8", i};
        if (text[i] == '\0')
            return (ms_json_fault){"the text holds a zero byte", i};
        i += step;
    }
    return (ms_json_fault){NULL, 0};
}

ms_json_fault ms_json_check(const char *text, size_t length, ms_json_fault *bare_word)
{
    *bare_word = (ms_json_fault){NULL, 0};
    ms_json_fault fault = check_bytes(text, length);
    if (fault.message != NULL)
        return fault;
    scan s = {.p = text, .end = text + length, .text = text};
    if (scan_value(&s)) {
        skip_space(&s);
        if (s.p != s.end)
            stop(&s, "nothing may follow the first value");
    }
    if (s.bare_word != NULL)
        *bare_word = (ms_json_fault){NO_VALUE, (size_t)(s.bare_word - text)};
    return s.fault;
}

void ms_json_replace_bare_words(const char *text, char *out)
{
    bool in_string = false;
    while (*text != '\0') {
        int found = in_string ? -1 : bare_word_at(text);
        if (found >= 0) {
            out = stpcpy(out, bare_words[found].json);
            text += strlen(bare_words[found].word);
            continue;
        }
        if (*text == '"')
            in_string = !in_string;
        else if (*text == '\\')
            *out++ = *text++;
        *out++ = *text++;
    }
    *out = '\0';
}
