/* State of the reader of shell scripts, shared by its files. */
#ifndef MS_COSTMODEL_PORT_SHELL_PRIV_H
#define MS_COSTMODEL_PORT_SHELL_PRIV_H

#include "base/map.h"
#include "costmodel/port/shell.h"

#include <stdint.h>

/* Characters with the offset in the script at which each is written. */
typedef struct ms_shell_text {
    char *chars;
    uint32_t *from; /* 2 * offset, + 1 for a character that is unsettled */
    int num, capacity, from_capacity;
} ms_shell_text;

/* The value of a variable: one text, or the items of an array. */
typedef struct ms_shell_value {
    ms_shell_text *items; /* (num) */
    int num, capacity;
    bool is_array;
} ms_shell_value;

typedef struct ms_shell {
    ms_ctx *cx;
    const char *name, *text;
    size_t length, at;
    size_t *lines; /* (num_lines) offsets at which lines start */
    int num_lines, lines_capacity;
    ms_map names;           /* names of variables */
    ms_shell_value *values; /* (names.num) */
    int values_capacity;
    int nesting;      /* defaults around: ${A:-${B:-1}} has two */
    int depth;        /* compound commands around: their words are unsettled */
    size_t expanded;  /* characters that expansions have made so far */
    ms_status status; /* status of the first error */
    /* the word that is being read, and those before it in the command or array */
    ms_shell_text word;
    bool has_word;
    ms_shell_value words;
} ms_shell;

ms_loc ms_shell_loc(const ms_shell *r, size_t offset);
/* Records an error at an offset, if it is the first, and ends the reading. */
void ms_shell_fail(ms_shell *r, size_t offset, const char *message);
void ms_shell_append(ms_shell *r, ms_shell_text *text, char c, uint32_t from);
/* Ends the current word, if there is one, and adds it to the words. */
void ms_shell_end_word(ms_shell *r);
/* The variable of a name; NULL: it is not set. */
const ms_shell_value *ms_shell_get(const ms_shell *r, const char *name, size_t length);
/* Reads from a `$`, a quote, a backslash or a plain character on, and appends what it
 * stands for to the current word, which an expansion outside quotes may end (`splits`). */
void ms_shell_read_part(ms_shell *r, bool splits);
bool ms_shell_is_name(char c, bool first);

#endif
