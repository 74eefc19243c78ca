/* Expressions over named whole numbers, in which files of rules state what a framework
 * accepts: "tp divides heads", "schedule in {1f1b, interleaved}", "not (cp > 1 and mla)".
 *
 *   any        = all {"or" all}             all  = one {"and" one}
 *   one        = "not" one | comparison     product = atom {("*" | "/" | "%") atom}
 *   comparison = sum [("=" | "!=" | "<" | "<=" | ">" | ">=" | "divides") sum
 *              |      ("=" | "!=" | "has") WORD | "in" "{" WORD {"," WORD} "}"]
 *   sum        = product {("+" | "-") product}       atom = NUMBER | NAME | "(" any ")"
 *
 * A number holds if it is not 0. Words are the values of the variable on their left; one
 * whose value is a set has or has not a word. */
#ifndef MS_COSTMODEL_PLAN_EXPRESSION_H
#define MS_COSTMODEL_PLAN_EXPRESSION_H

#include "base/diag.h"

#include <stdbool.h>

#define MS_MAX_VARIABLES 128

/* A set of variables: bit i stands for variable i. */
__extension__ typedef unsigned __int128 ms_variables;
#define MS_VARIABLE(i)   ((ms_variables)1 << (i))
#define MS_ALL_VARIABLES (~(ms_variables)0)

typedef struct ms_variable {
    const char *name;         /* NULL ends a table */
    const char *const *words; /* names of the values 0, 1, ..., NULL; NULL: a number */
} ms_variable;

typedef enum ms_instruction_kind {
    MS_PUSH_NUMBER,
    MS_PUSH_VARIABLE,
    MS_NOT,
    MS_OR, /* this kind and all after it take two values */
    MS_AND,
    MS_EQUAL,
    MS_UNEQUAL,
    MS_LESS,
    MS_AT_MOST,
    MS_GREATER,
    MS_AT_LEAST,
    MS_DIVIDES,
    MS_HAS, /* whether a set has a bit of this index */
    MS_PLUS,
    MS_MINUS,
    MS_TIMES,
    MS_OVER, /* quotient and remainder by 0 are 0 */
    MS_REMAINDER
} ms_instruction_kind;

typedef struct ms_instruction {
    ms_instruction_kind kind;
    long operand; /* a number, or the index of a variable */
} ms_instruction;

#define MS_MAX_INSTRUCTIONS 64

/* An expression in postfix order. */
typedef struct ms_expression {
    int num;
    ms_instruction code[MS_MAX_INSTRUCTIONS];
    ms_variables reads;
} ms_expression;

/* Reads an expression over the variables of a table with at most MS_MAX_VARIABLES rows.
 * MS_EINPUT at `loc`, with the place in the text and a hint: it is no expression, names
 * an unknown variable or word, or is too long. */
ms_status ms_expression_parse(ms_ctx *cx, ms_loc loc, const char *text,
                              const ms_variable *variables, ms_expression *out);

/* Whether the expression holds for these values, one per row of the table. Sums and
 * products outside the range of long are its nearest end. */
bool ms_expression_holds(const ms_expression *expression, const long *values);
/* Whether the expression does not hold, whatever the values of variables that are not
 * `known`. False also where that takes more than a look at each operation by itself. */
bool ms_expression_fails(const ms_expression *expression, const long *values,
                         ms_variables known);

#endif
