/* Options as tables, of command lines and of the library: one row parses, checks and
 * documents an option. All errors of a command line are recorded, each with the nearest
 * known name as a hint. The struct that a table fills must start zeroed: zero means
 * "not given". */
#ifndef MS_BASE_OPTIONS_H
#define MS_BASE_OPTIONS_H

#include "base/diag.h"
#include "base/units.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum ms_option_kind {
    MS_OPTION_END = 0,  /* a table ends with {0} */
    MS_OPTION_FLAG,     /* bool; takes no value */
    MS_OPTION_SWITCH,   /* ms_opt_switch; on or off */
    MS_OPTION_INTEGER,  /* ms_opt_integer within [low, high]; "8k" is 8192 */
    MS_OPTION_QUANTITY, /* ms_opt_quantity in `unit`; from low to high, when high > 0 */
    MS_OPTION_TEXT,     /* const char *, not empty */
    MS_OPTION_LIST,     /* ms_opt_list; the only kind that may be repeated */
    MS_OPTION_CHOICE,   /* ms_opt_choice; index into `choices` */
    MS_OPTION_MISTAKE,  /* a wrong name that people try: an error, with `help` as hint */
    MS_OPTION_WORD      /* an argument that is no option, listed by help only */
} ms_option_kind;

typedef struct ms_opt_switch {
    bool given;
    bool value;
} ms_opt_switch;

typedef struct ms_opt_integer {
    bool given;
    long value;
} ms_opt_integer;

typedef struct ms_opt_quantity {
    bool given;
    double value;
} ms_opt_quantity;

typedef struct ms_opt_choice {
    bool given;
    int value;
    const char *text; /* word given on the command line */
} ms_opt_choice;

typedef struct ms_opt_list {
    bool given;
    int num_texts;
    const char **texts;
} ms_opt_list;

typedef struct ms_option {
    ms_option_kind kind;
    ms_unit unit;      /* unit of an MS_OPTION_QUANTITY */
    const char *name;  /* "--tp" */
    const char *alias; /* "-v"; NULL: none */
    size_t offset;     /* offset of the member that the option fills */
    const char *value; /* placeholder of the value in help: "N" */
    double low, high;
    bool above_low; /* a quantity equal to `low` is refused */
    const char
        *endings; /* units that a quantity may end with, "W|w"; NULL: its own alone */
    const char *example;        /* a quantity in messages; NULL: that of its unit */
    const char *const *choices; /* words of an MS_OPTION_CHOICE, NULL-ended */
    /* accepts words that `choices` lacks and sets their index; NULL: no such words */
    bool (*find)(const char *text, int *index);
    const char *help; /* NULL: internal option, not listed */
} ms_option;

/* Largest seed, 2^53: JSON holds whole numbers exactly up to it. */
#define MS_OPT_MAX_SEED 9007199254740992.0

/* Rows of an option table; `type` is the struct that the table fills. */
#define MS_OPT_ROW(kind_of, type, member, option, ...)                                   \
    {                                                                                    \
        .kind = (kind_of), .name = (option), .offset = offsetof(type, member),           \
        __VA_ARGS__                                                                      \
    }
#define MS_OPT_FLAG(type, member, option, text)                                          \
    MS_OPT_ROW(MS_OPTION_FLAG, type, member, option, .help = (text))
#define MS_OPT_INTEGER(type, member, option, placeholder, least, most, text)             \
    MS_OPT_ROW(MS_OPTION_INTEGER, type, member, option, .value = (placeholder),          \
               .low = (least), .high = (most), .help = (text))
#define MS_OPT_QUANTITY(type, member, option, placeholder, in_unit, text)                \
    MS_OPT_ROW(MS_OPTION_QUANTITY, type, member, option, .value = (placeholder),         \
               .unit = (in_unit), .help = (text))
#define MS_OPT_NUMBER(type, member, option, placeholder, most, text)                     \
    MS_OPT_ROW(MS_OPTION_QUANTITY, type, member, option, .value = (placeholder),         \
               .unit = MS_UNIT_COUNT, .high = (most), .help = (text))
#define MS_OPT_TEXT(type, member, option, placeholder, text)                             \
    MS_OPT_ROW(MS_OPTION_TEXT, type, member, option, .value = (placeholder),             \
               .help = (text))
#define MS_OPT_LIST(type, member, option, placeholder, text)                             \
    MS_OPT_ROW(MS_OPTION_LIST, type, member, option, .value = (placeholder),             \
               .help = (text))
#define MS_OPT_CHOICE(type, member, option, words, text)                                 \
    MS_OPT_ROW(MS_OPTION_CHOICE, type, member, option, .choices = (words), .help = (text))
#define MS_OPT_MISTAKE(option, text)                                                     \
    {                                                                                    \
        .kind = MS_OPTION_MISTAKE, .name = (option), .value = "VALUE", .help = (text)    \
    }

#define MS_OPT_WORD(word, text)                                                          \
    {                                                                                    \
        .kind = MS_OPTION_WORD, .name = (word), .help = (text)                           \
    }

/* A table and the struct that it fills. */
typedef struct ms_option_set {
    const char *title; /* heading in help */
    const ms_option *options;
    void *out;
} ms_option_set;

/* Arguments that are no options, in order; NULL-ended. */
typedef struct ms_words {
    int num_words;
    const char **words;
} ms_words;

/* Reads `--name value`, `--name=value`, flags and words; "--" ends the options, "-" is
 * a word. A value that begins with "--" must be written with '='. Errors: MS_EINPUT
 * for unknown names, bad, missing or superfluous values, and options given twice; what
 * was legal is filled in anyway. */
ms_status ms_options_parse(ms_ctx *cx, const ms_option_set *sets, int num_sets, int argc,
                           char *const *argv, ms_words *words);

/* Reads a quantity in `unit`, which may end with one of `endings`, separated by | (NULL:
 * none); false if it is none. */
bool ms_option_quantity(const char *text, ms_unit unit, const char *endings, double *out);

/* The name of the first given option of the set other than `except`; NULL: none. */
const char *ms_options_given(const ms_option_set *set, const char *except);
/* ... of a table and the struct that it has filled. */
const char *ms_options_given_in(const ms_option *options, const void *values,
                                const char *except);

/* The words of a NULL-ended list as one text: "a, b, c". */
char *ms_choice_text(ms_arena *arena, const char *const *choices, const char *separator);

/* The next item of a list separated by commas, "" for an empty one; NULL at its end.
 * `*list` moves behind the item and becomes NULL behind the last. */
const char *ms_list_next(ms_arena *arena, const char **list);

#endif
