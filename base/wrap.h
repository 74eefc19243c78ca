/* Long lines broken at spaces and behind given characters, such as commas. */
#ifndef MS_BASE_WRAP_H
#define MS_BASE_WRAP_H

#include <stddef.h>
#include <stdio.h>

/* Bytes of the first line of a text in lines of at most `width` characters (at least 1),
 * broken at spaces and behind the characters of `behind`; a longer word anywhere. */
size_t ms_wrap_bytes(const char *text, size_t width, const char *behind);
/* Characters of the longest word, which is never broken if lines are as wide; spaces
 * before the first word belong to it. */
size_t ms_wrap_longest_word(const char *text, const char *behind);
/* The rest of a text behind its first `bytes`, without the spaces it begins with. */
const char *ms_wrap_rest(const char *text, size_t bytes);

/* Prints a text, escaped as by ms_print, in lines of at most `width` characters, broken at
 * spaces and behind commas; all but the first begin with `indent` spaces, or
 * with half the width. Width 0: one line. */
void ms_wrap_print(FILE *out, const char *text, size_t width, size_t indent);

#endif
