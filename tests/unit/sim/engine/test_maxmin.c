/* Max-min fair rates of flows on shared links, with known answers. */
#include "sim/engine/maxmin.h"

#include "tests/test.h"

#define MAX_FLOWS 8

typedef struct sample {
    const char *what;
    int num_links;
    double capacity[4];
    int num_flows;
    int first_use[MAX_FLOWS + 1];
    ms_flow_use uses[16];
    double most[MAX_FLOWS], want[MAX_FLOWS];
} sample;

#define MANY 1e9

static const sample samples[] = {
    {"one link, three flows",
     1,
     {12.0},
     3,
     {0, 1, 2, 3},
     {{0, 1}, {0, 1}, {0, 1}},
     {MANY, MANY, MANY},
     {4.0, 4.0, 4.0}},
    {"a bound leaves more for the others",
     1,
     {12.0},
     3,
     {0, 1, 2, 3},
     {{0, 1}, {0, 1}, {0, 1}},
     {2.0, MANY, MANY},
     {2.0, 5.0, 5.0}},
    {"bounds that just fit",
     1,
     {12.0},
     3,
     {0, 1, 2, 3},
     {{0, 1}, {0, 1}, {0, 1}},
     {2.0, 3.0, 7.0},
     {2.0, 3.0, 7.0}},
    {"a long flow over three links, a short one on each",
     3,
     {10.0, 10.0, 10.0},
     4,
     {0, 3, 4, 5, 6},
     {{0, 1}, {1, 1}, {2, 1}, {0, 1}, {1, 1}, {2, 1}},
     {MANY, MANY, MANY, MANY},
     {5.0, 5.0, 5.0, 5.0}},
    {"links of unequal capacity",
     2,
     {10.0, 4.0},
     3,
     {0, 2, 3, 4},
     {{0, 1}, {1, 1}, {0, 1}, {1, 1}},
     {MANY, MANY, MANY},
     {2.0, 8.0, 2.0}},
    {"four ports of 8 behind an uplink of 8: oversubscribed 4 to 1",
     1,
     {8.0},
     4,
     {0, 1, 2, 3, 4},
     {{0, 1}, {0, 1}, {0, 1}, {0, 1}},
     {8.0, 8.0, 8.0, 8.0},
     {2.0, 2.0, 2.0, 2.0}},
    {"weights: equal rates, unequal shares",
     1,
     {12.0},
     2,
     {0, 1, 2},
     {{0, 2}, {0, 1}},
     {MANY, MANY},
     {4.0, 4.0}},
    {"a weight in one link frees another",
     2,
     {10.0, 10.0},
     3,
     {0, 2, 3, 4},
     {{0, 4}, {1, 1}, {0, 1}, {1, 1}},
     {MANY, MANY, MANY},
     {2.0, 2.0, 8.0}},
    {"a link twice",
     1,
     {12.0},
     2,
     {0, 2, 3},
     {{0, 1}, {0, 1}, {0, 1}},
     {MANY, MANY},
     {4.0, 4.0}},
    {"no link", 1, {1.0}, 1, {0, 0}, {{0, 0}}, {3.5}, {3.5}},
};

static void known_rates_come_out(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const sample *s = &samples[i];
        ms_maxmin_problem problem = {s->num_links, s->capacity, s->num_flows,
                                     s->first_use, s->uses,     s->most};
        double rate[MAX_FLOWS];
        ms_maxmin_solve(&problem, arena, rate);
        for (int v = 0; v < s->num_flows; v++)
            if (!(fabs(rate[v] - s->want[v]) <= 1e-12 * s->want[v]))
                fail_msg("%s: flow %d: got %.17g, want %.17g", s->what, v, rate[v],
                         s->want[v]);
    }
}

/* A flow alone gets exactly `most`, its own largest rate. At this rate it fills link 0,
 * whose capacity is `use`, although in floating point (use / most) * most may exceed
 * `use`. */
static void a_flow_alone_gets_its_rate_bit_for_bit(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    int num_uneven = 0;
    for (int i = 1; i < 2000; i++) {
        double most = 3.7e11 / i, use = 1e9 * (1.0 + 0.1 * i), capacity[] = {use, most};
        ms_flow_use uses[] = {{0, use / most}, {1, 1.0}};
        const int first_use[] = {0, 2};
        ms_maxmin_problem problem = {2, capacity, 1, first_use, uses, &most};
        double rate;
        ms_maxmin_solve(&problem, arena, &rate);
        num_uneven += use / most * most > use;
        if (rate < most || rate > most)
            fail_msg("%d: got %.17g, want %.17g", i, rate, most);
    }
    /* use / most * most exceeded `use` by rounding in some cases */
    assert_true(num_uneven > 0);
}

/* The first of two flows has a bound, most[0], that equals its fair share of the link up
 * to rounding. This flow gets exactly its bound, and the other flow, whose bound is ten
 * times as high, gets the rest. */
static void a_bound_at_the_level_is_met_bit_for_bit(void **state)
{
    (void)state;
    ms_arena *arena = test_cx()->arena;
    int num_lower = 0;
    for (int i = 1; i < 2000; i++) {
        double most[] = {3.7e11 / i, 3.7e12 / i}, use = 1e9 * (1.0 + 0.1 * i);
        double weight = use / most[0], capacity = 2.0 * use, rate[2];
        ms_flow_use uses[] = {{0, weight}, {0, weight}};
        const int first_use[] = {0, 1, 2};
        ms_maxmin_problem problem = {1, &capacity, 2, first_use, uses, most};
        ms_maxmin_solve(&problem, arena, rate);
        num_lower += capacity / (weight + weight) < most[0];
        if (rate[0] < most[0] || rate[0] > most[0])
            fail_msg("%d: got %.17g, want %.17g", i, rate[0], most[0]);
        ASSERT_NEAR(rate[1], most[0], 1e-12);
    }
    /* in some cases rounding made the fair share smaller than the bound most[0] */
    assert_true(num_lower > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_rates_come_out),
        cmocka_unit_test(a_flow_alone_gets_its_rate_bit_for_bit),
        cmocka_unit_test(a_bound_at_the_level_is_met_bit_for_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
