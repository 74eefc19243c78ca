/* One row for each choice of a plan. Equality, JSON, flags, defaults, the text of a plan
 * and what a search may fix are derived from the table. */
#ifndef MS_COSTMODEL_PLAN_PLAN_FIELD_H
#define MS_COSTMODEL_PLAN_PLAN_FIELD_H

#include "costmodel/plan/plan.h"
#include "costmodel/profile/stack.h"

typedef enum ms_choice_kind {
    MS_CHOICE_WHOLE,  /* long */
    MS_CHOICE_NUMBER, /* double */
    MS_CHOICE_SWITCH, /* bool */
    MS_CHOICE_WORD,   /* an enumeration: index into `words` */
    MS_CHOICE_TEXT,   /* const char * */
    MS_CHOICE_STORED, /* const char *: one of `words`, or NULL */
    MS_CHOICE_LIST    /* has code of its own: order, layers_per_stage */
} ms_choice_kind;

/* How JSON says the plain value. */
typedef enum ms_choice_plain {
    MS_PLAIN_WRITTEN,
    MS_PLAIN_NULL,
    MS_PLAIN_OMITTED /* and so where the choice has no effect */
} ms_choice_plain;

/* What a search does about a choice. */
typedef enum ms_choice_search {
    MS_SEARCH_KEEPS, /* an input */
    MS_SEARCH_TRIES,
    MS_SEARCH_REFUSES /* it is always plain */
} ms_choice_search;

/* When the flags of a plan (cli/options/plan_command.h) name the choice. */
typedef enum ms_choice_told {
    MS_TOLD_UNUSUAL,    /* it is not plain, or not the default */
    MS_TOLD_UNEXPECTED, /* it is not the default */
    MS_TOLD_IN_USE,     /* it is not the default, and has an effect */
    MS_TOLD_HABIT,      /* it is not plain, or in use with a stack that may differ */
    MS_TOLD_ALWAYS,
    MS_TOLD_NEVER
} ms_choice_told;

/* What a choice inside a mesh decides, and so in which loop of a search it is made
 * (sim/search/explore.c). */
typedef enum ms_choice_decides {
    MS_DECIDES_ITS_OWN, /* it has a loop of its own */
    MS_DECIDES_LAYERS,  /* what a layer computes: with the micro-batch, outermost */
    MS_DECIDES_PRICES   /* what the same layers take */
} ms_choice_decides;

typedef struct ms_plan_field {
    ms_choice_kind kind;
    size_t offset;    /* into ms_plan */
    const char *name; /* as --fix, --limit and --why call it */
    /* another name for it, and the heading of its column; NULL: none */
    const char *short_name;
    /* JSON: the object that it stands in (NULL: the plan) and its key (NULL: it is no part
     * of a saved plan) */
    const char *section, *key;
    bool required;
    ms_choice_plain json_plain;
    double low, high; /* numbers */
    double flag_high; /* of the flag; 0: high */
    bool above_low;   /* the flag refuses the lowest value */
    const char *const *words;
    bool (*find)(const char *text, int *index); /* other words; NULL: none */
    /* the command line; NULL: none, and so no flag */
    const char *flag, *value, *help;
    /* without parallelism, and where neither JSON nor a flag has another default */
    double plain;
    /* the default of the command line, all choices before being made; NULL: plain */
    long (*usual)(const ms_plan *plan, const ms_stack *stack);
    /* whether it has an effect; NULL: always */
    bool (*matters)(const ms_plan *plan);
    /* whether a stack can do it; NULL: it does not depend on the stack */
    bool (*can)(const ms_stack *stack, long value);
    /* a file's value does not count where it had no effect, and has one now */
    bool renewed;
    ms_choice_told told;
    ms_choice_search search;
    ms_choice_decides decides; /* switches and words only */
    bool in_table;       /* of plans found; `hidden` where every plan has it plain */
    bool hidden;         /* where all are plain */
    const char *text_on; /* of a switch: what ms_plan_text says when it is on */
} ms_plan_field;

extern const ms_plan_field ms_plan_fields[MS_NUM_CHOICES];

/* Of whole numbers, switches and words. */
long ms_plan_get(const ms_plan *plan, ms_choice choice);
void ms_plan_set(ms_plan *plan, ms_choice choice, long value);
/* Makes the choice plain. */
void ms_plan_reset(ms_plan *plan, ms_choice choice);
/* Makes all choices plain that a search tries or refuses, sizes too. */
void ms_plan_make_plain(ms_plan *plan);
/* Texts are compared by content. */
bool ms_plan_same(const ms_plan *a, const ms_plan *b, ms_choice choice);
bool ms_plan_is_plain(const ms_plan *plan, ms_choice choice);
bool ms_plan_matters(const ms_plan *plan, ms_choice choice);
/* The default, all choices before it being made. */
long ms_plan_usual(const ms_plan *plan, const ms_stack *stack, ms_choice choice);
/* Words of a choice that is no number; NULL otherwise. */
const char *const *ms_choice_words(ms_choice choice);
/* The index of the last word. */
long ms_choice_last(ms_choice choice);
/* "8", "on", "1f1b": a value as flags and limits take it. */
const char *ms_choice_value_text(ms_arena *arena, ms_choice choice, long value);
/* The choice's value as its flag takes it. */
const char *ms_plan_value_text(ms_arena *arena, const ms_plan *plan, ms_choice choice);
/* Whether the flags that give the plan must name the choice. */
bool ms_plan_tells(const ms_plan *plan, ms_choice choice);

#endif
