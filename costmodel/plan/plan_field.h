/* The table of a plan's choices: JSON, flags, defaults, texts, comparison, and what a
 * search may vary. `plain` values are the defaults of plan files (JSON), mostly those
 * without parallelism. */
#ifndef MS_COSTMODEL_PLAN_PLAN_FIELD_H
#define MS_COSTMODEL_PLAN_PLAN_FIELD_H

#include "costmodel/plan/plan.h"
#include "costmodel/profile/stack.h"

typedef enum ms_choice_kind {
    MS_CHOICE_WHOLE,  /* C type long */
    MS_CHOICE_NUMBER, /* C type double */
    MS_CHOICE_SWITCH, /* C type bool */
    MS_CHOICE_WORD,   /* C enum: index into `words` */
    MS_CHOICE_SET,    /* C type int: a bit for each of `words`; 0: none is stated */
    MS_CHOICE_TEXT,   /* C type const char * */
    MS_CHOICE_LIST    /* the choices `order` and `layers_per_stage` */
} ms_choice_kind;

/* How a plan file shows a choice whose value is the JSON default. */
typedef enum ms_choice_plain {
    MS_PLAIN_WRITTEN,
    MS_PLAIN_NULL,
    MS_PLAIN_OMITTED /* left out if the JSON default, or if without effect */
} ms_choice_plain;

/* How a search treats a choice. */
typedef enum ms_choice_search {
    MS_SEARCH_KEEPS, /* keeps the user's value */
    MS_SEARCH_TRIES,
    MS_SEARCH_REFUSES /* refuses values other than the JSON default */
} ms_choice_search;

/* When a printed command line of a plan (cli/options/plan_command.h) names a choice. */
typedef enum ms_choice_flag_rule {
    MS_FLAG_UNUSUAL, /* print if unlike the JSON default or the command-line default */
    MS_FLAG_NOT_DEFAULT, /* print if unlike the command-line default */
    MS_FLAG_IN_EFFECT,   /* print if it has effect: its default is the stack's */
    MS_FLAG_ALWAYS,
    MS_FLAG_NEVER
} ms_choice_flag_rule;

/* The loop of the search (sim/search/explore.c) that tries the values of a choice. */
typedef enum ms_choice_decides {
    MS_DECIDES_ITS_OWN, /* the search has a loop for this choice alone */
    MS_DECIDES_LAYERS,  /* outermost search loop: the choice changes layer programs */
    MS_DECIDES_PRICES   /* inner search loop: the choice changes prices only */
} ms_choice_decides;

typedef struct ms_plan_field {
    ms_choice_kind kind;
    size_t offset;          /* offset of the member in ms_plan */
    const char *name;       /* name in options --fix, --limit and --why */
    const char *short_name; /* alias and column heading; NULL: none */
    /* plan file: object with the key (NULL: the outermost); key (NULL: not saved) */
    const char *section, *key;
    bool required;
    ms_choice_plain json_plain;
    double low, high; /* range of the choice's numbers */
    double flag_high; /* largest value that the flag accepts; 0: equal to `high` */
    bool above_low;   /* the flag accepts only values above `low` */
    bool in_bytes;    /* the number is bytes, which the flag takes with a unit */
    const char *const *words;
    bool (*find)(const char *text, int *index); /* word index by alias; NULL: none */
    /* flag, its placeholder and help text; NULL: no flag */
    const char *flag, *value, *help;
    double plain; /* JSON default: the value that an absent key stands for */
    /* command-line default, given all choices before this one; NULL: the JSON default */
    long (*usual)(const ms_plan *plan, const ms_stack *stack);
    /* whether the choice has any effect in `plan`, and the flags that give it one, in
     * words; NULL: it always has, as far as the plan alone says */
    bool (*matters)(const ms_plan *plan);
    const char *needs;
    /* whether a stack supports a value; NULL: every stack does */
    bool (*can)(const ms_stack *stack, long value);
    bool renewed; /* default replaces the file's value if only flags give it effect */
    ms_choice_flag_rule flag_rule;
    ms_choice_search search;
    ms_choice_decides decides; /* search loop that tries the choice */
    bool in_table;             /* shown as a column in tables of plans */
    bool hidden;               /* no column if all plans have the JSON default */
    const char *text_on;       /* words for a switch that is on, in ms_plan_text */
} ms_plan_field;

extern const ms_plan_field ms_plan_fields[MS_NUM_CHOICES];

/* A plan's value of a whole number, switch, word or set; 0 for other kinds of choices. */
long ms_plan_get(const ms_plan *plan, ms_choice choice);
void ms_plan_set(ms_plan *plan, ms_choice choice, long value);
/* Sets a choice to its JSON default. */
void ms_plan_reset(ms_plan *plan, ms_choice choice);
/* Sets all choices that a search tries or refuses, axes included, to the JSON default. */
void ms_plan_make_plain(ms_plan *plan);
/* Whether two plans agree in a choice; texts are compared by content. */
bool ms_plan_same(const ms_plan *a, const ms_plan *b, ms_choice choice);
/* Whether two plans agree in the choices that one workload has for all its plans: batch,
 * sequence, types, optimizer, and all that a search keeps. */
bool ms_plan_same_workload(const ms_plan *a, const ms_plan *b);
bool ms_plan_is_plain(const ms_plan *plan, ms_choice choice);
bool ms_plan_matters(const ms_plan *plan, ms_choice choice);
/* Command-line default of a choice, given all choices before it in the table. */
long ms_plan_usual(const ms_plan *plan, const ms_stack *stack, ms_choice choice);
/* Words of a switch, enum or set; NULL for other kinds. */
const char *const *ms_choice_words(ms_choice choice);
/* Index of the last word of a choice. */
long ms_choice_last(ms_choice choice);
/* A value of a choice as flags and limits write it: "8", "on", "1f1b", "mlp,moe". */
const char *ms_choice_value_text(ms_arena *arena, ms_choice choice, long value);
/* A plan's value of a choice as its flag takes it. */
const char *ms_plan_value_text(ms_arena *arena, const ms_plan *plan, ms_choice choice);
/* Whether a command line for the plan must name the choice (ms_choice_flag_rule). */
bool ms_plan_needs_flag(const ms_plan *plan, ms_choice choice);

#endif
