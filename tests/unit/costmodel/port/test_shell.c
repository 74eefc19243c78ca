/* Shell scripts as words: quotes, variables, arrays, arithmetic, what stays unknown. */
#include "tests/test.h"

#include "costmodel/port/shell.h"

static ms_shell_script read_script(ms_ctx *cx, const char *text)
{
    ms_shell_script script;
    ASSERT_OK(ms_shell_read(cx, "run.sh", text, strlen(text), &script), cx);
    return script;
}

/* The commands of a script: words in brackets, unsettled ones with "?", a line each. */
static const char *words_of(const char *text)
{
    ms_ctx *cx = test_cx();
    ms_shell_script script = read_script(cx, text);
    const char *out = "";
    for (int i = 0; i < script.num; i++) {
        if (i > 0)
            out = ms_arena_printf(cx->arena, "%s\n", out);
        for (int w = 0; w < script.commands[i].num; w++)
            out = ms_arena_printf(cx->arena, "%s[%s]%s", out,
                                  script.commands[i].words[w].text,
                                  script.commands[i].words[w].unsettled ? "?" : "");
    }
    return out;
}

static void words_are_split_and_quoted(void **state)
{
    (void)state;
    ASSERT_TEXT(words_of("a b\tc"), "[a][b][c]");
    ASSERT_TEXT(words_of("a \\\n  b # c\nd"), "[a][b]\n[d]");
    ASSERT_TEXT(words_of("'a b' \"c  d\" e\\ f ''"), "[a b][c  d][e f][]");
    ASSERT_TEXT(words_of("a; b && c | d & e"), "[a]\n[b]\n[c]\n[d]\n[e]");
    ASSERT_TEXT(words_of("a > log 2>&1 < in b &>> all"), "[a][b]");
    ASSERT_TEXT(words_of("a <<EOF b\ntext\nEOF\nc"), "[a]\n[c]");
    ASSERT_TEXT(words_of("(a)"), "[a]");
    ASSERT_TEXT(words_of("a#b \"it's\""), "[a#b][it's]");
}

static void variables_expand(void **state)
{
    (void)state;
    ASSERT_TEXT(words_of("A=1\necho $A ${A}2 \"$A $A\""), "[echo][1][12][1 1]");
    ASSERT_TEXT(words_of("A=\"x  y\"; echo $A \"$A\" z$A"), "[echo][x][y][x  y][zx][y]");
    ASSERT_TEXT(words_of("export A=1 B=2; echo $B$A"), "[export]\n[echo][21]");
    ASSERT_TEXT(words_of("A=(a 'b c' # d\n e)\nA+=(f)\necho \"${A[@]}\" $A"),
                "[echo][a][b c][e][f][a]");
    ASSERT_TEXT(words_of("A=a; A+=\" b\"; echo $A"), "[echo][a][b]");
    ASSERT_TEXT(words_of("A=(); echo \"${A[@]}\" b"), "[echo][b]");
    ASSERT_TEXT(words_of("X=1 echo a"), "[echo][a]");
}

static void defaults_and_arithmetic_expand(void **state)
{
    (void)state;
    ASSERT_TEXT(words_of("echo ${N:-8} ${M-$((1 + 2 * 3))}"), "[echo][8][7]");
    ASSERT_TEXT(words_of("N=4; echo ${N:-8} $((N * 2)) $(( (N+1) % 3 - ${N} / 3))"),
                "[echo][4][8][1]");
    ASSERT_TEXT(words_of("echo $((1 / 0)) $((X)) $((1 +))"),
                "[echo][$((1 / 0))]?[$((X))]?[$((1 +))]?");
}

static void unknown_parts_stay_and_are_marked(void **state)
{
    (void)state;
    ASSERT_TEXT(words_of("echo $A a$B $(ls | head) `pwd` $1 ${#A}"),
                "[echo][$A]?[a$B]?[$(ls | head)]?[`pwd`]?[$1]?[${#A}]?");
    ASSERT_TEXT(words_of("N=1\nif [ -n \"$X\" ]; then\n  N=2\nfi\necho $N a"),
                "[[]?[-n]?[$X]?[]]?\n[echo][2]?[a]");
    ASSERT_TEXT(words_of("N=1\ntest -f x && N=2\necho $N"), "[test][-f][x]\n[echo][2]?");
    ASSERT_TEXT(words_of("cd x && echo a"), "[cd][x]\n[echo][a]");
}

static void directives_are_commands(void **state)
{
    (void)state;
    ms_shell_script script = read_script(test_cx(), "#!/bin/sh\n#SBATCH -N 4\n# b\na");
    ASSERT_INT(script.num, 2);
    assert_true(script.commands[0].is_directive && !script.commands[1].is_directive);
    ASSERT_TEXT(script.commands[0].words[1].text, "4");
}

static void places_are_those_of_the_text(void **state)
{
    (void)state;
    ms_shell_script script = read_script(test_cx(), "A=(--tp \\\n  8)\nrun \"${A[@]}\"");
    ASSERT_INT(script.commands[0].words[2].loc.line, 2);
    ASSERT_INT(script.commands[0].words[2].loc.column, 3);
    ASSERT_INT(script.commands[0].words[0].loc.line, 3);
}

static void refuse(const char *text, size_t length, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_shell_script script;
    ASSERT_INT(ms_shell_read(cx, "run.sh", text, length, &script), MS_EINPUT);
    if (strstr(test_messages(cx), message) == NULL)
        fail_msg("\"%s\" is not in %s", message, test_messages(cx));
}

static void malformed_scripts_are_refused(void **state)
{
    (void)state;
    refuse("a 'b\nc", 6, "run.sh:1:3: error: this quote is never closed");
    refuse("a\n \"b", 5, "run.sh:2:2: error: this quote is never closed");
    refuse("A=(b\nc", 6, "run.sh:1:3: error: this array is never closed");
    refuse("a ${b", 5, "run.sh:1:3: error: this \"${\" is never closed");
    refuse("a $(b", 5, "run.sh:1:3: error: this \"$(\" is never closed");
    refuse("a <<E\nb", 7, "run.sh:1:5: error: this here document is never closed");
    refuse("a\0b", 3, "run.sh:1:2: error: a zero byte");
}

/* Variables that double each other stop at 16 MiB. */
static void expansions_are_bounded(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    const char *text = "A0=aaaaaaaaaaaaaaaa\n";
    for (int i = 1; i < 40; i++)
        text = ms_arena_printf(arena, "%sA%d=$A%d$A%d\n", text, i, i - 1, i - 1);
    refuse(text, strlen(text), "more than 16 MiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_split_and_quoted),
        cmocka_unit_test(variables_expand),
        cmocka_unit_test(defaults_and_arithmetic_expand),
        cmocka_unit_test(unknown_parts_stay_and_are_marked),
        cmocka_unit_test(directives_are_commands),
        cmocka_unit_test(places_are_those_of_the_text),
        cmocka_unit_test(malformed_scripts_are_refused),
        cmocka_unit_test(expansions_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
