/* One row for each choice of a plan, for equality, JSON, flags, defaults and text of
 * plans and for the choices that a search may fix. "Plain" is a choice's default in JSON,
 * mostly the value without parallelism. */
#ifndef MS_COSTMODEL_PLAN_PLAN_FIELD_H
#define MS_COSTMODEL_PLAN_PLAN_FIELD_H

#include "costmodel/plan/plan.h"
#include "costmodel/profile/stack.h"

typedef enum ms_choice_kind {
    MS_CHOICE_WHOLE,  /* long */
    MS_CHOICE_NUMBER, /* double */
    MS_CHOICE_SWITCH, /* bool */
    MS_CHOICE_WORD,   /* enum: index into `words` */
    MS_CHOICE_TEXT,   /* const char * */
    MS_CHOICE_STORED, /* const char *: one of `words`; NULL: not stated */
    MS_CHOICE_LIST    /* order and layers_per_stage, by code of their own */
} ms_choice_kind;

/* How plan files write a choice at its JSON default (plain). */
typedef enum ms_choice_plain {
    MS_PLAIN_WRITTEN,
    MS_PLAIN_NULL,
    MS_PLAIN_OMITTED /* omitted also if the choice has no effect */
} ms_choice_plain;

/* How a search treats a choice. */
typedef enum ms_choice_search {
    MS_SEARCH_KEEPS, /* taken from the user */
    MS_SEARCH_TRIES,
    MS_SEARCH_REFUSES /* must have its JSON default */
} ms_choice_search;

/* When the command line of a plan (cli/options/plan_command.h) must name a choice. */
typedef enum ms_choice_flag_rule {
    MS_FLAG_UNUSUAL,     /* value is not the default of JSON or not that of flags */
    MS_FLAG_NOT_DEFAULT, /* value is not the default of flags */
    MS_FLAG_IN_USE,      /* value is not the default of flags, and has an effect */
    MS_FLAG_OF_STACK,    /* not the JSON default, or in effect with a named stack */
    MS_FLAG_ALWAYS,
    MS_FLAG_NEVER
} ms_choice_flag_rule;

/* Loop of a search (sim/search/explore.c) that varies a choice within one mesh. */
typedef enum ms_choice_decides {
    MS_DECIDES_ITS_OWN, /* the choice has a loop of its own */
    MS_DECIDES_LAYERS,  /* outermost loop: the choice changes layer programs */
    MS_DECIDES_PRICES   /* inner loop: the choice changes prices only */
} ms_choice_decides;

typedef struct ms_plan_field {
    ms_choice_kind kind;
    size_t offset;          /* offset of the member in ms_plan */
    const char *name;       /* name in --fix, --limit and --why */
    const char *short_name; /* alias and column heading; NULL: none */
    /* JSON: object of the key (NULL: the plan), and key (NULL: not in saved plans) */
    const char *section, *key;
    bool required;
    ms_choice_plain json_plain;
    double low, high; /* range of allowed numbers */
    double flag_high; /* upper limit on the command line; 0: `high` */
    bool above_low;   /* the flag refuses `low` itself */
    const char *const *words;
    bool (*find)(const char *text, int *index); /* index by alias; NULL: no aliases */
    /* flag, its placeholder and help; NULL: none */
    const char *flag, *value, *help;
    double plain; /* JSON default: value without parallelism */
    /* default on the command line, given all choices before this one; NULL: `plain` */
    long (*usual)(const ms_plan *plan, const ms_stack *stack);
    /* whether the choice has an effect; NULL: always */
    bool (*matters)(const ms_plan *plan);
    /* whether a stack supports a value; NULL: every stack does */
    bool (*can)(const ms_stack *stack, long value);
    bool renewed; /* the default replaces a file's value without effect there */
    ms_choice_flag_rule flag_rule;
    ms_choice_search search;
    ms_choice_decides decides; /* loop of a search; switches and words only */
    bool in_table;             /* has a column in tables of plans */
    bool hidden;               /* no column if all plans have the JSON default */
    const char *text_on;       /* words of ms_plan_text for a switch that is on */
} ms_plan_field;

extern const ms_plan_field ms_plan_fields[MS_NUM_CHOICES];

/* The plan's value of a whole number, switch or word; 0 for other kinds of choices. */
long ms_plan_get(const ms_plan *plan, ms_choice choice);
void ms_plan_set(ms_plan *plan, ms_choice choice, long value);
/* Sets the choice to its JSON default. */
void ms_plan_reset(ms_plan *plan, ms_choice choice);
/* Gives all choices that a search tries or refuses, axes included, their JSON default. */
void ms_plan_make_plain(ms_plan *plan);
/* Whether two plans agree in a choice; texts are compared by content. */
bool ms_plan_same(const ms_plan *a, const ms_plan *b, ms_choice choice);
bool ms_plan_is_plain(const ms_plan *plan, ms_choice choice);
bool ms_plan_matters(const ms_plan *plan, ms_choice choice);
/* The command line's default of a choice, given all choices before it. */
long ms_plan_usual(const ms_plan *plan, const ms_stack *stack, ms_choice choice);
/* Words of a switch or enum; NULL for other kinds. */
const char *const *ms_choice_words(ms_choice choice);
/* Index of the last word of a choice. */
long ms_choice_last(ms_choice choice);
/* A value in the form of flags and limits: "8", "on", "1f1b". */
const char *ms_choice_value_text(ms_arena *arena, ms_choice choice, long value);
/* The plan's value of a choice in the form of its flag. */
const char *ms_plan_value_text(ms_arena *arena, const ms_plan *plan, ms_choice choice);
/* Whether a command line for the plan must name the choice. */
bool ms_plan_needs_flag(const ms_plan *plan, ms_choice choice);

#endif
