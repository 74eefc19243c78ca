/* Text diagrams of a schedule: lanes (ranks) with bars (actions) over time. */
#include "cli/report/gantt.h"

#include "tests/test.h"

static const ms_gantt_kind kinds[] = {
    {'F', "forward", "\033[30;46m"}, {'B', "backward", "\033[30;43m"}, {0}};
static const char *const two_lanes[] = {"rank 0", "rank 1"};

static const char *draw(ms_ctx *cx, const ms_gantt *gantt)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_gantt_draw(file, cx->arena, gantt);
    return test_read_back(cx->arena, file);
}

static ms_gantt gantt_of(const ms_gantt_bar *bars, int num_bars, double end, int width)
{
    return (ms_gantt){.kinds = kinds,
                      .num_lanes = 2,
                      .lane_names = two_lanes,
                      .num_bars = num_bars,
                      .bars = bars,
                      .end = end,
                      .unit = "ms",
                      .width = width};
}

static void bars_show_letter_number_and_length(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_gantt_bar bars[] = {
        {0, 0, 0, 1, 0, 0}, {0, 0, 1, 2, 1, 0},  {0, 1, 4, 6, 0, 0},   {0, 1, 6, 8, 1, 0},
        {1, 0, 1, 2, 0, 0}, {1, 1, 2, 4, 10, 0}, {1, 1, 4, 4.2, 11, 0}};
    ms_gantt gantt = gantt_of(bars, 7, 8.0, 8 + 32);
    ASSERT_TEXT(draw(cx, &gantt), "ms      0                   5\n"
                                  "        |                   |\n"
                                  "rank 0  F0--F1--........B0------B1------\n"
                                  "rank 1  ....F0--B10-----B...............\n"
                                  "        F forward, B backward, . idle\n");
}

/* Bars show their micro-batch's number where they are wide enough, provided that most
 * bars are. The diagram has two columns per unit of time. */
static void numbers_are_shown_where_most_have_room(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_gantt_bar bars[] = {{0, 0, 0, 1, 0, 0},
                                 {0, 0, 1, 2, 1111, 0},
                                 {1, 0, 0, 2, 2, 0},
                                 {1, 1, 3, 5, 3, 0}};
    ms_gantt gantt = gantt_of(bars, 4, 5.0, 8 + 10);
    assert_non_null(strstr(draw(cx, &gantt), "rank 0  F0F-......\n"
                                             "rank 1  F2--..B3--\n"));
    /* only half of the bars are wide enough for their numbers: no number is shown */
    gantt.num_bars = 2;
    assert_non_null(strstr(draw(cx, &gantt), "rank 0  FFFF......\n"));
}

/* A diagram of a hundred thousand bars in ten columns. Each column shows what fills most
 * of its time: forward, backward or idle time. */
static void crowded_cells_show_what_they_mostly_are(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    int num_bars = 0;
    ms_gantt_bar *bars = MS_NEW_ARRAY(cx->arena, 100000, ms_gantt_bar);
    for (int i = 0; i < 50000; i++) {
        double forward = i < 25000 ? 0.6 : 0.4, backward = i < 40000 ? 0.35 : 0.05;
        bars[num_bars++] = (ms_gantt_bar){0, 0, i, i + forward, i, 0};
        bars[num_bars++] =
            (ms_gantt_bar){0, 1, i + forward, i + forward + backward, i, 0};
    }
    ms_gantt gantt = gantt_of(bars, num_bars, 50000.0, 8 + 10);
    assert_non_null(strstr(draw(cx, &gantt), "rank 0  FFFFFFFF..\n"));
}

/* Bars that begin before the shown time window or end after it are cut; bars outside
 * are not drawn. */
static void windows_cut_bars(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_gantt_bar bars[] = {
        {0, 0, 0, 3, 7, 0}, {0, 1, 5, 9, 8, 0}, {1, 0, 0, 1, 1, 0}, {1, 1, 8, 9, 2, 0}};
    ms_gantt gantt = gantt_of(bars, 4, 6.0, 8 + 16);
    gantt.start = 2.0;
    const char *text = draw(cx, &gantt);
    assert_non_null(strstr(text, "rank 0  F7--........B8--\n"
                                 "rank 1  ................\n"));
    assert_non_null(strstr(text, "ms                  5\n"));
}

/* Bars of the same group (pieces of one action) are drawn as one bar. A gap between them
 * is drawn as idle only where it is at least a column wide. */
static void groups_are_drawn_as_one(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_gantt_bar bars[] = {{0, 0, 0, 1, 5, 1}, {0, 0, 1.3, 2, 5, 1},
                                 {0, 0, 2, 3, 5, 2}, {1, 0, 0, 1, 5, 0},
                                 {1, 0, 1, 2, 5, 0}, {1, 1, 2, 3, 5, 1}};
    ms_gantt gantt = gantt_of(bars, 6, 4.0, 8 + 16);
    gantt.kinds = kinds;
    assert_non_null(strstr(draw(cx, &gantt), "rank 0  F5--.F5-F5--....\n"
                                             "rank 1  F5--F5--B5--....\n"));
    /* columns of 0.4 time units each: the gap of 0.3 is less than a column */
    gantt.width = 8 + 10;
    assert_non_null(strstr(draw(cx, &gantt), "rank 0  F5---F5-..\n"));
}

static void colours_begin_and_end_around_each_bar(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_gantt_bar bars[] = {{0, 0, 0, 4, 3, 0}};
    ms_gantt gantt = gantt_of(bars, 1, 8.0, 8 + 16);
    gantt.colours = true;
    assert_non_null(
        strstr(draw(cx, &gantt), "rank 0  \033[30;46mF3------\033[0m........\n"));
}

/* Diagrams without bars, without duration, or with hardly any columns are drawn, too. */
static void degenerate_diagrams_are_drawn(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_gantt gantt = gantt_of(NULL, 0, 0.0, 1);
    assert_non_null(strstr(draw(cx, &gantt), "rank 1  ..........\n"));
    const ms_gantt_bar bar = {0, 0, 0, 0, 0, 0};
    gantt = gantt_of(&bar, 1, 1e-300, 80);
    assert_non_null(strstr(draw(cx, &gantt), "rank 0  .........."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bars_show_letter_number_and_length),
        cmocka_unit_test(numbers_are_shown_where_most_have_room),
        cmocka_unit_test(crowded_cells_show_what_they_mostly_are),
        cmocka_unit_test(windows_cut_bars),
        cmocka_unit_test(groups_are_drawn_as_one),
        cmocka_unit_test(colours_begin_and_end_around_each_bar),
        cmocka_unit_test(degenerate_diagrams_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
