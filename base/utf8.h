/* UTF-8 characters, for all code that reads or prints text from files and arguments. */
#ifndef MS_BASE_UTF8_H
#define MS_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes (1 to 4) of the valid UTF-8 character at text[0..length), 0 if there is none:
 * overlong forms, surrogates and values above U+10FFFF are invalid. */
size_t ms_utf8_step(const char *text, size_t length);

/* Number of characters; each invalid byte counts as one. */
size_t ms_utf8_width(const char *text);

/* Bytes of the first `most` characters, for "%.*s"; an invalid byte is a character. */
int ms_utf8_prefix(const char *text, int most);

/* Whether a valid character is a control character: C0, DEL or C1 (U+0080 to U+009F). */
bool ms_utf8_is_control(const char *text, size_t step);

#endif
