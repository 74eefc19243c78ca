/* Loads of experts: the reader, and the fullest rank by hand. */
#include "tests/test.h"

#include "costmodel/plan/expert_loads.h"

#include <string.h>

static ms_status read_text(ms_ctx *cx, const char *text, const ms_expert_loads **out)
{
    return ms_expert_loads_read(cx, "loads.csv", ms_csv_open(text, strlen(text)), 4, out);
}

/* Experts 0 to 3 of layer 0 have 4, 2, 1, 1 of 8 copies, those of layer 5 have 2 each. */
static const char two_layers[] =
    "layer,expert,tokens\n0,0,4\n0,1,2\n0,2,1\n0,3,1\n5,3,2\n5,2,2\n5,1,2\n5,0,2\n";

static void the_fullest_rank_is_a_mean_over_layers(void **state)
{
    (void)state;
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_expert_fill fill = {.imbalance = 7.0};
    ASSERT_OK(read_text(&cx, two_layers, &fill.loads), &cx);
    /* the fullest rank: 2, 1.5, 1 times the mean in layer 0; 1 in layer 5 */
    ASSERT_NEAR(ms_expert_excess_frac(&fill, 4), 0.5, 1e-12);
    ASSERT_NEAR(ms_expert_excess_frac(&fill, 2), 0.25, 1e-12);
    ASSERT_NEAR(ms_expert_excess_frac(&fill, 1), 0.0, 1e-12);
    ms_arena_close(cx.arena);
}

static void copies_beyond_the_capacity_are_dropped(void **state)
{
    (void)state;
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_expert_fill fill = {.imbalance = 3.0, .capacity = 1.25};
    ASSERT_NEAR(ms_expert_excess_frac(&fill, 4), 0.25, 1e-12);
    ASSERT_NEAR(ms_expert_excess_frac(&fill, 1), 0.0, 1e-12);
    ASSERT_OK(read_text(&cx, two_layers, &fill.loads), &cx);
    /* layer 0 keeps 1.25, 1, 0.5, 0.5 times the mean of its experts */
    ASSERT_NEAR(ms_expert_excess_frac(&fill, 2), (1.125 + 1.0) / 2 - 1.0, 1e-12);
    ASSERT_NEAR(ms_expert_excess_frac(&fill, 1), (3.25 / 4 + 1.0) / 2 - 1.0, 1e-12);
    fill.pads = true;
    ASSERT_NEAR(ms_expert_excess_frac(&fill, 2), 0.25, 1e-12);
    ms_arena_close(cx.arena);
}

static void a_rank_has_at_most_all_copies(void **state)
{
    (void)state;
    ms_expert_fill fill = {.imbalance = 3.0};
    ASSERT_NEAR(ms_expert_excess_frac(&fill, 2), 1.0, 1e-12);
    ASSERT_NEAR(ms_expert_excess_frac(&fill, 8), 2.0, 1e-12);
    fill.imbalance = 0.0; /* not stated */
    ASSERT_NEAR(ms_expert_excess_frac(&fill, 8), 0.0, 1e-12);
}

static void bad_files_are_refused_at_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        int line, column;
    } cases[] = {
        {"", "the file has no loads of experts", 0, 0},
        {"expert,tokens\n", "the file has no loads of experts", 0, 0},
        {"expert\n", "the first line must name the columns expert and tokens", 1, 1},
        {"expert,tokens,age\n", "\"age\" is not one of the columns expert, tokens, layer",
         1, 15},
        {"expert,tokens\n4,1\n", "\"4\" is not an expert, 0 to 3", 2, 1},
        {"expert,tokens\n1.5,1\n", "\"1.5\" is not an expert, 0 to 3", 2, 1},
        {"expert,tokens\n0,-1\n", "\"-1\" is not a number of tokens, 0 or more", 2, 3},
        {"expert,tokens\n0,nan\n", "\"nan\" is not a number of tokens, 0 or more", 2, 3},
        {"expert,tokens\n0\n", "\"\" is not a number of tokens, 0 or more", 2, 1},
        {"expert,tokens\n0,1\n0,1\n", "\"0\" is not an expert that is listed once", 3, 1},
        {"expert,tokens\n0,0\n", "layer 0 has no tokens", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        const ms_expert_loads *loads;
        ASSERT_INT(read_text(&cx, cases[i].text, &loads), MS_EINPUT);
        ASSERT_TEXT(cx.first->message, cases[i].message);
        ASSERT_INT(cx.first->loc.line, cases[i].line);
        ASSERT_INT(cx.first->loc.column, cases[i].column);
        ms_arena_close(cx.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fullest_rank_is_a_mean_over_layers),
        cmocka_unit_test(copies_beyond_the_capacity_are_dropped),
        cmocka_unit_test(a_rank_has_at_most_all_copies),
        cmocka_unit_test(bad_files_are_refused_at_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
