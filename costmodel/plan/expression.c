/* Recursive descent: each function below reads one line of the grammar in the header. */
#include "costmodel/plan/expression.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 16 /* levels of parentheses and "not" */

typedef struct parser {
    ms_ctx *cx;
    ms_loc loc;
    const char *text, *at;
    const ms_variable *variables;
    ms_expression *out;
    int depth;
} parser;

/* ---- tokens ---- */

static ms_status fail(const parser *p, const char *expected)
{
    const char *at = p->at + strspn(p->at, " ");
    if (*at == '\0')
        return ms_fail(p->cx, MS_EINPUT, p->loc, "\"%s\" ends where %s is expected",
                       p->text, expected);
    return ms_fail(p->cx, MS_EINPUT, p->loc, "\"%s\" has \"%s\" where %s is expected",
                   p->text, at, expected);
}

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Length of the word at `at`; a hyphen joins it to a letter or digit after it. */
static size_t word_length(const char *at)
{
    size_t length = 0;
    while (is_word_char(at[length]) ||
           (length > 0 && at[length] == '-' && is_word_char(at[length + 1])))
        length++;
    return length;
}

/* Takes the next token if it equals `token`, a word or an operator. */
static bool take(parser *p, const char *token)
{
    const char *at = p->at + strspn(p->at, " ");
    size_t length = strlen(token);
    if (strncmp(at, token, length) != 0 ||
        (is_word_char(token[0]) && word_length(at) != length))
        return false;
    p->at = at + length;
    return true;
}

/* The next word, or NULL. */
static const char *take_word(parser *p)
{
    const char *at = p->at + strspn(p->at, " ");
    size_t length = word_length(at);
    if (length == 0)
        return NULL;
    p->at = at + length;
    return ms_arena_strndup(p->cx->arena, at, length);
}

static ms_status emit(parser *p, ms_instruction_kind kind, long operand)
{
    ms_expression *out = p->out;
    if (out->num == MS_MAX_INSTRUCTIONS)
        return ms_fail(p->cx, MS_EINPUT, p->loc,
                       "\"%s\" has more than %d names, numbers and operators", p->text,
                       MS_MAX_INSTRUCTIONS);
    out->code[out->num++] = (ms_instruction){kind, operand};
    return MS_OK;
}

/* ---- names ---- */

static int num_names(const parser *p, const char **names)
{
    int num = 0;
    for (const ms_variable *v = p->variables; v->name != NULL; v++)
        names[num++] = v->name;
    return num;
}

static ms_status push_name(parser *p, const char *name)
{
    const char *names[MS_MAX_VARIABLES];
    int num = num_names(p, names);
    for (int i = 0; i < num; i++) {
        if (strcmp(names[i], name) != 0)
            continue;
        p->out->reads |= MS_VARIABLE(i);
        return emit(p, MS_PUSH_VARIABLE, i);
    }
    ms_fail(p->cx, MS_EINPUT, p->loc, "unknown name \"%s\" in \"%s\"", name, p->text);
    const char *nearest = ms_nearest(name, names, num);
    return nearest == NULL ? MS_EINPUT : ms_hint(p->cx, "did you mean \"%s\"?", nearest);
}

/* The words of the variable that the last instruction pushes; NULL: it has none. */
static const char *const *words_before(const parser *p, int first)
{
    const ms_expression *out = p->out;
    if (out->num != first + 1 || out->code[first].kind != MS_PUSH_VARIABLE)
        return NULL;
    return p->variables[out->code[first].operand].words;
}

/* Reads one of the words and emits its index. */
static ms_status push_word(parser *p, const char *const *words)
{
    const char *word = take_word(p);
    if (word == NULL)
        return fail(p, "a word");
    int index = ms_choice_find(word, words);
    if (index >= 0)
        return emit(p, MS_PUSH_NUMBER, index);
    ms_fail(p->cx, MS_EINPUT, p->loc, "unknown word \"%s\" in \"%s\"", word, p->text);
    const char *list = words[0];
    for (int i = 1; words[i] != NULL; i++)
        list = ms_arena_printf(p->cx->arena, "%s, %s", list, words[i]);
    return ms_hint(p->cx, "use %s", list);
}

/* ---- grammar ---- */

static ms_status read_any(parser *p);

static ms_status read_atom(parser *p)
{
    if (take(p, "(")) {
        MS_TRY(read_any(p));
        return take(p, ")") ? MS_OK : fail(p, "\")\"");
    }
    const char *word = take_word(p);
    if (word == NULL)
        return fail(p, "a name or a number");
    if (!isdigit((unsigned char)word[0]))
        return push_name(p, word);
    char *end;
    long number = strtol(word, &end, 10);
    if (*end != '\0' || number == LONG_MAX)
        return ms_fail(p->cx, MS_EINPUT, p->loc, "\"%s\" in \"%s\" is no whole number",
                       word, p->text);
    return emit(p, MS_PUSH_NUMBER, number);
}

typedef struct operator_token {
    const char *token;
    ms_instruction_kind kind;
} operator_token;

/* Reads operands, by `read`, joined by any of the operators, from left to right. */
static ms_status read_chain(parser *p, ms_status (*read)(parser *p),
                            const operator_token *operators, int num)
{
    MS_TRY(read(p));
    for (int i = 0; i < num; i++) {
        if (!take(p, operators[i].token))
            continue;
        MS_TRY(read(p));
        MS_TRY(emit(p, operators[i].kind, 0));
        i = -1;
    }
    return MS_OK;
}

static ms_status read_product(parser *p)
{
    static const operator_token operators[] = {
        {"*", MS_TIMES}, {"/", MS_OVER}, {"%", MS_REMAINDER}};
    return read_chain(p, read_atom, operators, 3);
}

static ms_status read_sum(parser *p)
{
    static const operator_token operators[] = {{"+", MS_PLUS}, {"-", MS_MINUS}};
    return read_chain(p, read_product, operators, 2);
}

/* Reads "{a, b}" after a variable and "in"; emits "= a or variable = b". */
static ms_status read_set(parser *p, int first)
{
    const char *const *words = words_before(p, first);
    if (words == NULL)
        return fail(p, "a comparison of numbers");
    if (!take(p, "{"))
        return fail(p, "\"{\"");
    const ms_instruction variable = p->out->code[first];
    MS_TRY(push_word(p, words));
    MS_TRY(emit(p, MS_EQUAL, 0));
    while (take(p, ",")) {
        MS_TRY(emit(p, variable.kind, variable.operand));
        MS_TRY(push_word(p, words));
        MS_TRY(emit(p, MS_EQUAL, 0));
        MS_TRY(emit(p, MS_OR, 0));
    }
    return take(p, "}") ? MS_OK : fail(p, "\"}\"");
}

static ms_status read_comparison(parser *p)
{
    static const operator_token operators[] = {
        {"!=", MS_UNEQUAL}, {"<=", MS_AT_MOST}, {">=", MS_AT_LEAST},     {"=", MS_EQUAL},
        {"<", MS_LESS},     {">", MS_GREATER},  {"divides", MS_DIVIDES}, {"has", MS_HAS}};
    int first = p->out->num;
    MS_TRY(read_sum(p));
    if (take(p, "in"))
        return read_set(p, first);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (!take(p, operators[i].token))
            continue;
        const char *const *words = words_before(p, first);
        MS_TRY(words == NULL ? read_sum(p) : push_word(p, words));
        return emit(p, operators[i].kind, 0);
    }
    return MS_OK;
}

static ms_status read_one(parser *p)
{
    if (++p->depth > MAX_DEPTH)
        return ms_fail(p->cx, MS_EINPUT, p->loc, "\"%s\" is nested deeper than %d levels",
                       p->text, MAX_DEPTH);
    if (take(p, "not")) {
        MS_TRY(read_one(p));
        MS_TRY(emit(p, MS_NOT, 0));
    } else {
        MS_TRY(read_comparison(p));
    }
    p->depth--;
    return MS_OK;
}

static ms_status read_all(parser *p)
{
    static const operator_token operators[] = {{"and", MS_AND}};
    return read_chain(p, read_one, operators, 1);
}

static ms_status read_any(parser *p)
{
    static const operator_token operators[] = {{"or", MS_OR}};
    return read_chain(p, read_all, operators, 1);
}

ms_status ms_expression_parse(ms_ctx *cx, ms_loc loc, const char *text,
                              const ms_variable *variables, ms_expression *out)
{
    *out = (ms_expression){0};
    parser p = {.cx = cx,
                .loc = loc,
                .text = text,
                .at = text,
                .variables = variables,
                .out = out};
    MS_TRY(read_any(&p));
    return p.at[strspn(p.at, " ")] == '\0' ? MS_OK : fail(&p, "\"and\" or \"or\"");
}

/* ---- values ---- */

static long plus(long a, long b)
{
    long sum;
    return !__builtin_add_overflow(a, b, &sum) ? sum : a > 0 ? LONG_MAX : LONG_MIN;
}

static long minus(long a, long b)
{
    long difference;
    return !__builtin_sub_overflow(a, b, &difference) ? difference
           : a >= 0                                   ? LONG_MAX
                                                      : LONG_MIN;
}

static long times(long a, long b)
{
    long product;
    return !__builtin_mul_overflow(a, b, &product) ? product
           : (a < 0) == (b < 0)                    ? LONG_MAX
                                                   : LONG_MIN;
}

/* The remainder; 0 if there is none: b is 0, or -1, which has no LONG_MIN / -1. */
static long remainder_of(long a, long b)
{
    return b == 0 || b == -1 ? 0 : a % b;
}

static inline long apply(ms_instruction_kind kind, long a, long b)
{
    switch (kind) {
    case MS_OR:
        return a != 0 || b != 0;
    case MS_AND:
        return a != 0 && b != 0;
    case MS_EQUAL:
        return a == b;
    case MS_UNEQUAL:
        return a != b;
    case MS_LESS:
        return a < b;
    case MS_AT_MOST:
        return a <= b;
    case MS_GREATER:
        return a > b;
    case MS_AT_LEAST:
        return a >= b;
    case MS_DIVIDES:
        return a != 0 && remainder_of(b, a) == 0;
    case MS_HAS:
        return b >= 0 && b < 63 && (a >> b & 1) != 0;
    case MS_PLUS:
        return plus(a, b);
    case MS_MINUS:
        return minus(a, b);
    case MS_TIMES:
        return times(a, b);
    case MS_OVER:
        return b == 0 ? 0 : b == -1 ? minus(0, a) : a / b;
    case MS_REMAINDER:
        return remainder_of(a, b);
    case MS_PUSH_NUMBER:
    case MS_PUSH_VARIABLE:
    case MS_NOT:
        break;
    }
    return 0;
}

bool ms_expression_holds(const ms_expression *expression, const long *values)
{
    long stack[MS_MAX_INSTRUCTIONS + 1];
    int top = 0;
    stack[0] = 1; /* an empty expression holds */
    for (int i = 0; i < expression->num; i++) {
        const ms_instruction *one = &expression->code[i];
        if (one->kind == MS_PUSH_NUMBER) {
            stack[++top] = one->operand;
        } else if (one->kind == MS_PUSH_VARIABLE) {
            stack[++top] = values[one->operand];
        } else if (one->kind == MS_NOT) {
            stack[top] = stack[top] == 0;
        } else if (top > 0) {
            top--;
            stack[top] = apply(one->kind, stack[top], stack[top + 1]);
        }
    }
    return stack[top] != 0;
}

/* A value of which it may not be known what it is. */
typedef struct known_value {
    bool known;
    long value;
} known_value;

/* A false operand decides an "and", a true one an "or". */
static known_value apply_known(ms_instruction_kind kind, known_value a, known_value b)
{
    bool is_and = kind == MS_AND;
    if ((is_and || kind == MS_OR) && !(a.known && b.known)) {
        bool decided = (a.known && (a.value == 0) == is_and) ||
                       (b.known && (b.value == 0) == is_and);
        return (known_value){decided, !is_and};
    }
    return (known_value){a.known && b.known, apply(kind, a.value, b.value)};
}

bool ms_expression_fails(const ms_expression *expression, const long *values,
                         ms_variables known)
{
    known_value stack[MS_MAX_INSTRUCTIONS + 1] = {{true, 1}};
    int top = 0;
    for (int i = 0; i < expression->num; i++) {
        const ms_instruction *one = &expression->code[i];
        if (one->kind == MS_PUSH_NUMBER) {
            stack[++top] = (known_value){true, one->operand};
        } else if (one->kind == MS_PUSH_VARIABLE) {
            bool is_known = (known & MS_VARIABLE(one->operand)) != 0;
            stack[++top] = (known_value){is_known, is_known ? values[one->operand] : 0};
        } else if (one->kind == MS_NOT) {
            stack[top].value = stack[top].value == 0;
        } else if (top > 0) {
            top--;
            stack[top] = apply_known(one->kind, stack[top], stack[top + 1]);
        }
    }
    return stack[top].known && stack[top].value == 0;
}
