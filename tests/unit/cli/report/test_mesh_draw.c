#include "cli/report/mesh_draw.h"

#include "tests/test.h"
#include "topo/mesh_text.h"

static const char *draw(ms_ctx *cx, const char *text, long node_ranks, bool svg)
{
    ms_mesh *mesh = MS_NEW(cx->arena, ms_mesh);
    ASSERT_OK(ms_mesh_parse(cx, text,
                            &(ms_mesh_limits){.num_ranks = 0, .most_ranks = 4096}, mesh),
              cx);
    ms_drawing drawing = {
        .grid = ms_grid_make(mesh), .node_ranks = node_ranks, .width = 120};
    FILE *file = tmpfile();
    assert_non_null(file);
    if (svg)
        ms_mesh_draw_svg(file, cx->arena, &drawing);
    else
        ms_mesh_draw(file, cx->arena, &drawing);
    return test_read_back(cx->arena, file);
}

/* A line of rank numbers and separators, with blanks reduced to single ones; NULL: the
 * line holds something else. */
static const char *rank_row(ms_ctx *cx, const char *line, size_t length)
{
    char *row = ms_arena_alloc(cx->arena, length + 1);
    size_t used = 0;
    bool digits = false;
    for (size_t i = 0; i < length; i++) {
        if (strchr("0123456789|: ", line[i]) == NULL)
            return NULL;
        digits = digits || (line[i] >= '0' && line[i] <= '9');
        if (line[i] != ' ' || (used > 0 && row[used - 1] != ' '))
            row[used++] = line[i];
    }
    return digits ? row : NULL;
}

/* All lines of rank numbers in the drawing, one after the other; other lines are left
 * out. */
static const char *rank_rows(ms_ctx *cx, const char *text)
{
    const char *rows = "";
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        const char *row = rank_row(cx, text, length);
        if (row != NULL)
            rows = ms_arena_printf(cx->arena, "%s%s\n", rows, row);
        text += length + (text[length] == '\n');
    }
    return rows;
}

static void expect_rows(const char *mesh, const char *want)
{
    ms_ctx *cx = test_cx();
    ASSERT_TEXT(rank_rows(cx, draw(cx, mesh, 8, false)), want);
}

/* The layouts printed in E. Z. Yang, "Visualizing a high dimensional mesh as a matrix
 * of matrices". */
static void dimensions_alternate_between_across_and_down(void **state)
{
    (void)state;
    expect_rows("a=1", "0\n");
    expect_rows("a=4", "0 1 2 3\n");
    expect_rows("a=2,b=3", "0 1 2\n3 4 5\n");
    expect_rows("a=2,b=2,c=2", "0 1 | 4 5\n2 3 | 6 7\n");
    expect_rows("a=2,b=2,c=2,d=2", "0 1 | 4 5\n2 3 | 6 7\n8 9 | 12 13\n10 11 | 14 15\n");
    expect_rows("a=2,b=2,c=2,d=2,e=2",
                "0 1 | 4 5 || 16 17 | 20 21\n2 3 | 6 7 || 18 19 | 22 23\n"
                "8 9 | 12 13 || 24 25 | 28 29\n10 11 | 14 15 || 26 27 | 30 31\n");
    expect_rows("a=3,b=1,c=2,d=2", "0 1 | 4 5 | 8 9\n2 3 | 6 7 | 10 11\n");
}

static void a_node_that_ends_inside_a_row_shows(void **state)
{
    (void)state;
    expect_rows("a=10", "0 1 2 3 4 5 6 7 : 8 9\n");
    expect_rows("a=2,b=12", "0 1 2 3 4 5 6 7 : 8 9 10 11\n"
                            "12 13 14 15 : 16 17 18 19 20 21 22 23\n");
}

/* In a mesh whose axes all have size 2 the drawn ranks are in Morton order: the bits
 * of row and column interleave. */
static void sizes_of_two_draw_a_morton_curve(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_mesh mesh;
    ASSERT_OK(ms_mesh_parse(cx, "a=2,b=2,c=2,d=2,e=2,f=2",
                            &(ms_mesh_limits){.num_ranks = 0, .most_ranks = 64}, &mesh),
              cx);
    ms_grid grid = ms_grid_make(&mesh);
    for (long row = 0; row < 8; row++)
        for (long column = 0; column < 8; column++) {
            long want = 0;
            for (int bit = 0; bit < 3; bit++)
                want |= (column >> bit & 1) << 2 * bit | (row >> bit & 1)
                                                             << (2 * bit + 1);
            ASSERT_INT(ms_grid_rank(&grid, row, column), want);
        }
}

/* Every whole number in the drawing is a rank, each rank appears once, and lines stay
 * within the width. */
static void only_ranks_are_bare_numbers(void **state)
{
    (void)state;
    static const char *const meshes[] = {
        "dp=64",           "dp=1024",         "pp=4,dp_replicate=2,dp_shard=16,tp=8",
        "a=3,b=5,c=7,d=2", "dp=4,cp=8,tp=32", "a=2,b=2,c=2,d=2,e=2,f=2,g=2,h=2",
        "a=5,b=41",        "a=37,b=3",        "a=960",
        "a=8,b=4,c=25",    "a=3,b=16,c=3,d=7"};
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        ms_ctx *cx = test_cx();
        char *text = ms_arena_strdup(cx->arena, draw(cx, meshes[i], 8, false));
        int seen[1024] = {0}, num = 0;
        for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
            bool is_row = rank_row(cx, line, strlen(line)) != NULL;
            assert_true(strlen(line) <= 120);
            for (char *at = line; *at != '\0';) {
                at += strspn(at, " ");
                size_t length = strcspn(at, " ");
                if (length > 0 && strspn(at, "0123456789") == length) {
                    assert_true(is_row);
                    seen[strtol(at, NULL, 10)]++;
                    num++;
                }
                at += length;
            }
        }
        for (int rank = 0; rank < num; rank++)
            ASSERT_INT(seen[rank], 1);
        assert_true(num > 60);
    }
}

static void a_picture_has_a_cell_for_each_rank(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *svg = draw(cx, "a=4,b=3,c=2", 8, true);
    for (int rank = 0; rank < 24; rank++) {
        const char *cell = ms_arena_printf(cx->arena, "class=\"number\">%d</text>", rank);
        const char *first = strstr(svg, cell);
        assert_non_null(first);
        assert_null(strstr(first + 1, cell));
    }
    assert_non_null(strstr(svg, ">node2</text>"));
    assert_null(strstr(svg, ">node3</text>"));
    assert_non_null(strstr(svg, "a=3"));
    ASSERT_TEXT(svg, draw(cx, "a=4,b=3,c=2", 8, true));
}

/* A large SVG picture is scaled down: programs that read SVG refuse sides beyond 32767
 * pixels. */
static void a_long_picture_is_shown_smaller(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *svg = draw(cx, "a=4096", 8, true);
    assert_non_null(
        strstr(svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"16384\""));
    assert_null(strstr(svg, "viewBox=\"0 0 16384 "));
    svg = draw(cx, "a=4,b=8", 8, true);
    const char *width = strstr(svg, " width=\""), *box = strstr(svg, "viewBox=\"0 0 ");
    assert_non_null(width);
    assert_non_null(box);
    ASSERT_INT(strtol(width + 8, NULL, 10), strtol(box + 13, NULL, 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dimensions_alternate_between_across_and_down),
        cmocka_unit_test(a_node_that_ends_inside_a_row_shows),
        cmocka_unit_test(sizes_of_two_draw_a_morton_curve),
        cmocka_unit_test(only_ranks_are_bare_numbers),
        cmocka_unit_test(a_picture_has_a_cell_for_each_rank),
        cmocka_unit_test(a_long_picture_is_shown_smaller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
