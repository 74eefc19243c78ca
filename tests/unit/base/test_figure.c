/* Listing the numbers in a struct by the JSON field tables that read the struct. */
#include "base/figure.h"

#include "tests/test.h"

typedef struct inner {
    double rate_bytes_per_s;
} inner;

typedef struct outer {
    const char *name;
    double share, first;
    long count;
    inner parts[2];
} outer;

static const ms_field outer_fields[] = {
    {.kind = MS_FIELD_TEXT, .key = "name", .offset = offsetof(outer, name)},
    {.kind = MS_FIELD_NUMBER,
     .key = "share",
     .offset = offsetof(outer, share),
     .low = 0.5,
     .high = 1,
     .help = "a share"},
    {.kind = MS_FIELD_ANY,
     .key = "first",
     .offset = offsetof(outer, first),
     .low = 0,
     .high = 2,
     .unit = MS_UNIT_SECONDS},
    {.kind = MS_FIELD_ANY, .key = "subtree"},
    {.kind = MS_FIELD_INTEGER, .key = "count", .offset = offsetof(outer, count)},
    {0}};

static const ms_field inner_fields[] = {{.kind = MS_FIELD_QUANTITY,
                                         .key = "rate",
                                         .offset = offsetof(inner, rate_bytes_per_s),
                                         .unit = MS_UNIT_BYTES_PER_S},
                                        {0}};

static ms_figures figures_of_outer(ms_ctx *cx)
{
    ms_figures list = {.arena = cx->arena};
    ms_figures_add(&list, "", outer_fields, 0);
    for (size_t i = 0; i < 2; i++)
        ms_figures_add(&list, i == 0 ? "parts.a" : "parts.b", inner_fields,
                       offsetof(outer, parts) + i * sizeof(inner));
    return list;
}

static void numbers_are_listed_and_texts_are_not(void **state)
{
    (void)state;
    ms_figures list = figures_of_outer(test_cx());
    static const char *const keys[] = {"share", "first", "count", "parts.a.rate",
                                       "parts.b.rate"};
    ASSERT_INT(list.num, 5);
    for (int i = 0; i < list.num; i++)
        ASSERT_TEXT(list.items[i].key, keys[i]);
    ASSERT_TEXT(list.items[0].help, "a share");
    ASSERT_NEAR(list.items[0].low, 0.5, 0);
    ASSERT_NEAR(list.items[1].high, 2, 0);
    ASSERT_INT(list.items[0].unit, MS_UNIT_COUNT);
    ASSERT_INT(list.items[1].unit, MS_UNIT_SECONDS);
    ASSERT_INT(list.items[3].unit, MS_UNIT_BYTES_PER_S);
    assert_true(list.items[1].is_coefficient && list.items[2].is_integer);
    assert_false(list.items[0].is_coefficient || list.items[0].is_integer);
}

static void values_are_read_and_written_in_place(void **state)
{
    (void)state;
    ms_figures list = figures_of_outer(test_cx());
    outer o = {"o", 0.75, 0.25, 7, {{1e9}, {2e9}}};
    const double values[] = {0.75, 0.25, 7, 1e9, 2e9};
    for (int i = 0; i < list.num; i++) {
        ASSERT_NEAR(ms_figure_value(&list.items[i], &o), values[i], 0);
        ms_figure_set(&list.items[i], &o, 10.0 * values[i]);
    }
    ASSERT_NEAR(o.share, 7.5, 0);
    ASSERT_NEAR(o.first, 2.5, 0);
    ASSERT_INT(o.count, 70);
    ASSERT_NEAR(o.parts[1].rate_bytes_per_s, 2e10, 0);
}

/* The list of numbers grows to any length. */
static void lists_grow(void **state)
{
    (void)state;
    ms_figures list = {.arena = test_cx()->arena};
    for (int i = 0; i < 100; i++)
        ms_figures_add(&list, "x", inner_fields, (size_t)i * sizeof(inner));
    ASSERT_INT(list.num, 100);
    for (int i = 0; i < 100; i++) {
        ASSERT_INT(list.items[i].offset, i * (long)sizeof(inner));
        ASSERT_TEXT(list.items[i].key, "x.rate");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_listed_and_texts_are_not),
        cmocka_unit_test(values_are_read_and_written_in_place),
        cmocka_unit_test(lists_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
