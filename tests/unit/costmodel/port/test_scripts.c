/* Scripts and configurations as people write them, against the plans that a careful
 * reader of each wrote down in tests/data/port/plans.csv: every choice with an effect that
 * is not plain (costmodel/plan/plan_field.h) is listed, and no other may differ. */
#include "tests/test.h"

#include "base/csv.h"
#include "costmodel/plan/plan_field.h"
#include "costmodel/port/port.h"

#define FOLDER "tests/data/port/"

enum {
    FILE_NAME,
    FORMAT,
    MODEL,
    GPUS,
    PLAN,
    NUM_COLUMNS
};

static const char *const columns[] = {"file", "format", "model", "gpus", "plan"};

/* "tp 8, pp 4": the choices of a plan that have an effect and are not plain. */
static const char *choices_of(ms_arena *arena, const ms_plan *plan)
{
    const char *text = "";
    for (int i = 0; i < MS_NUM_CHOICES; i++) {
        if (ms_plan_fields[i].kind == MS_CHOICE_TEXT || !ms_plan_matters(plan, i) ||
            ms_plan_is_plain(plan, i))
            continue;
        text =
            ms_arena_printf(arena, "%s%s%s %s", text, *text == '\0' ? "" : ", ",
                            ms_plan_fields[i].name, ms_plan_value_text(arena, plan, i));
    }
    return text;
}

static void import_row(ms_ctx *cx, const ms_csv_row *row, ms_port_imported *got)
{
    const ms_port_format *format;
    const ms_model *model;
    ms_csv file;
    const char *name = ms_arena_printf(cx->arena, FOLDER "%s", row->cells[FILE_NAME]);
    ASSERT_OK(ms_csv_load(cx, name, &file), cx);
    format = ms_port_format_of_text(cx->arena, file.text, file.length);
    if (format == NULL || strcmp(ms_port_format_name(format), row->cells[FORMAT]) != 0)
        fail_msg("%s is known as %s", name,
                 format == NULL ? "nothing" : ms_port_format_name(format));
    ms_port_import_options options = {
        .name = name,
        .model = *row->cells[MODEL] == '\0' ? NULL : row->cells[MODEL],
        .gpus = strtol(row->cells[GPUS], NULL, 10)};
    ASSERT_OK(ms_port_import(cx, format, file.text, file.length, &options, got), cx);
    ASSERT_OK(ms_port_find_model(cx, format, &options, got, &model), cx);
}

static void check_row(const ms_csv_row *row)
{
    ms_ctx *cx = test_cx();
    ms_port_imported got;
    import_row(cx, row, &got);
    const char *text = ms_arena_printf(cx->arena, "%s: %s", got.plan.model,
                                       choices_of(cx->arena, &got.plan));
    if (strcmp(text, row->cells[PLAN]) != 0)
        fail_msg("%s is the plan\n  %s, not\n  %s", row->cells[FILE_NAME], text,
                 row->cells[PLAN]);
}

/* Formats with fewer than ten rows fail the test, so that none is forgotten. */
static void count_rows(const int *num_rows)
{
    for (int i = 0; ms_port_format_names[i] != NULL; i++) {
        if (num_rows[i] < 10)
            fail_msg("%d files of %s, not ten", num_rows[i], ms_port_format_names[i]);
    }
}

static void files_import_to_the_plans_that_a_reader_writes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    int num_rows[32] = {0};
    ms_csv csv;
    ms_csv_row row;
    ASSERT_OK(ms_csv_load(cx, FOLDER "plans.csv", &csv), cx);
    assert_true(ms_csv_next(cx->arena, &csv, &row));
    for (int i = 0; i < NUM_COLUMNS; i++)
        ASSERT_TEXT(row.cells[i], columns[i]);
    while (ms_csv_next(cx->arena, &csv, &row)) {
        ASSERT_INT(row.num_cells, NUM_COLUMNS);
        check_row(&row);
        for (int i = 0; ms_port_format_names[i] != NULL; i++)
            num_rows[i] += strcmp(ms_port_format_names[i], row.cells[FORMAT]) == 0;
    }
    count_rows(num_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_import_to_the_plans_that_a_reader_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
