/* Plans that frameworks accept or refuse, one a row of tests/frameworks/cases.csv, judged
 * by the checks of tests/frameworks. tests/run_framework_cases.sh asks the program. */
#include "tests/test.h"

#include "base/csv.h"
#include "sim/request/plan_options.h"

#include "tests/frameworks/frameworks.h"

#define CASES MS_SOURCE_DIR "/tests/frameworks/cases.csv"

enum {
    MOST_ARGUMENTS = 40,
    MOST_BROKEN = 32
};
/* The columns of the file: `verdict` is "legal" or the subject of the only broken check,
 * `check` the id of the check that the row is about, and `refused_by` says "plan" where
 * every stack refuses the plan, with the verdict by ms_plan_refusal. */
enum {
    STACK,
    MODEL,
    FLAGS,
    VERDICT,
    CHECK,
    REFUSED_BY,
    NUM_COLUMNS
};

/* The plan of flags. Stack ideal allows all, so that no stack file has a say. */
static ms_plan plan_of(ms_ctx *cx, const char *const *cells)
{
    char *line = ms_arena_printf(cx->arena, "--stack ideal --model %s %s", cells[MODEL],
                                 cells[FLAGS]);
    char *argv[MOST_ARGUMENTS], *rest = NULL;
    int argc = 0;
    for (char *word = strtok_r(line, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest)) {
        assert_true(argc < MOST_ARGUMENTS);
        argv[argc++] = word;
    }
    ms_plan_options opts = {0};
    ms_option_set set = {"plan", ms_plan_option_table(), &opts};
    ms_words words;
    ms_plan plan;
    ASSERT_OK(ms_options_parse(cx, &set, 1, argc, argv, &words), cx);
    ASSERT_OK(ms_plan_from_options(cx, &opts, &plan), cx);
    return plan;
}

static bool begins_with_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    return strncmp(text, word, length) == 0 && text[length] == ' ';
}

/* Whether exactly one check breaks, the one that the row names by id and subject; a legal
 * plan breaks none. */
static bool is_as_told(const char *const *cells, const char **broken, int num)
{
    if (strcmp(cells[VERDICT], "legal") == 0)
        return num == 0;
    return num == 1 && begins_with_word(broken[0], cells[CHECK]) &&
           ms_rule_is_about(broken[0], cells[VERDICT]);
}

/* Whether the plan has the verdict of its row; prints what else it has. */
static bool judge(const ms_csv_row *row)
{
    ms_ctx *cx = test_cx();
    const char *const *cells = row->cells;
    ms_plan plan = plan_of(cx, cells);
    const ms_model *model;
    ASSERT_OK(ms_model_load(cx, cells[MODEL], &model), cx);
    ms_refusal refusal = ms_plan_refusal(&plan, model);
    bool plain = strcmp(cells[REFUSED_BY], "plan") == 0; /* every stack refuses it */
    const char *broken[MOST_BROKEN] = {0};
    int num =
        plain ? 0 : ms_list_broken_rules(cells[STACK], &plan, model, broken, MOST_BROKEN);
    bool right = plain ? strcmp(ms_refusal_names[refusal], cells[VERDICT]) == 0
                       : refusal == MS_LEGAL && is_as_told(cells, broken, num);
    if (!right)
        print_message("cases.csv:%d: %s %s %s: want %s %s; %s, broken: %d \"%s\"\n",
                      row->line, cells[STACK], cells[MODEL], cells[FLAGS], cells[CHECK],
                      cells[VERDICT], ms_refusal_names[refusal], num,
                      num > 0 ? broken[num - 1] : "");
    return right;
}

static void checks_agree_with_the_cases(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_csv csv;
    ms_csv_row row;
    ASSERT_OK(ms_csv_load(cx, CASES, &csv), cx);
    assert_true(ms_csv_next(cx->arena, &csv, &row)); /* the header */
    int num_legal = 0, num_rows = 0, num_wrong = 0;
    while (ms_csv_next(cx->arena, &csv, &row)) {
        ASSERT_INT(row.num_cells, NUM_COLUMNS);
        num_wrong += !judge(&row);
        num_rows++;
        num_legal += strcmp(row.cells[VERDICT], "legal") == 0;
    }
    ASSERT_INT(num_wrong, 0);
    assert_true(num_rows >= 200);
    assert_in_range(num_legal, num_rows / 3, 2 * num_rows / 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(checks_agree_with_the_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
